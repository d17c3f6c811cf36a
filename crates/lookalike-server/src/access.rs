//! Access control: keys and their roles.
//!
//! A key is a secret of at least 16 bytes, sent as `Authorization: Bearer KEY`. Only hashes of keys are kept,
//! and comparing them takes the same time wherever they differ. Without keys, every client may do
//! everything. Then only requests that name the service by a loopback address are answered, so that a web
//! page cannot reach it from a browser under a host name of its own (DNS rebinding).

use std::net::IpAddr;
use std::path::Path;

use axum::http::{HeaderMap, Uri, header};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::error::{Error, Result, bail, with_context};

/// Smallest length of a key, in bytes.
const MIN_KEY_BYTES: usize = 16;

/// Rights of a caller. Each role includes the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessRole {
    /// Calls that reveal nothing of what is stored.
    Anyone,
    /// Calls that only read.
    Read,
    /// Inserting and deleting documents.
    Write,
    /// Creating and deleting collections, and snapshots.
    Admin,
}

impl AccessRole {
    const WITH_KEYS: [(&'static str, Self); 3] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("admin", Self::Admin),
    ];

    pub(crate) fn role_name(self) -> &'static str {
        let named = Self::WITH_KEYS.iter().find(|(_, role)| *role == self);
        named.map_or("anyone", |(name, _)| name)
    }
}

/// The accepted keys, as hashes with their roles.
#[derive(Default)]
pub struct AccessKeys {
    known: Vec<(AccessRole, [u8; 32])>,
}

impl AccessKeys {
    /// Reads keys from a file, if one is given, and from the environment.
    ///
    /// # Errors
    /// If a line is not a key; the message has the line number but not the key.
    pub fn load_keys(file: Option<&Path>) -> Result<Self> {
        let mut keys = Self::default();
        if let Some(file) = file {
            let text = std::fs::read_to_string(file).map_err(with_context(format!(
                "cannot read the keys in {}",
                file.display()
            )))?;
            keys.parse_keys(&text)
                .map_err(with_context(format!("the keys in {}", file.display())))?;
            if keys.is_empty() {
                bail!(
                    "the keys in {}: the file has no keys: give one per line",
                    file.display()
                );
            }
        }
        for (name, role) in AccessRole::WITH_KEYS {
            let variable = format!("LOOKALIKE_{}_KEY", name.to_uppercase());
            let Some(key) = std::env::var_os(&variable) else {
                continue;
            };
            let Some(key) = key.to_str() else {
                bail!("{variable} is not UTF-8: a key is text of at least {MIN_KEY_BYTES} bytes");
            };
            if key.len() < MIN_KEY_BYTES {
                bail!(
                    "{variable} has {} bytes: a key has at least {MIN_KEY_BYTES}",
                    key.len()
                );
            }
            keys.known
                .push((role, Sha256::digest(key.as_bytes()).into()));
        }
        Ok(keys)
    }

    fn parse_keys(&mut self, text: &str) -> Result<()> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse_key_line(line).ok_or_else(|| {
                Error::new(format!(
                    "line {number}: give a role (read, write or admin), a space, and sha256: with \
                     64 hexadecimal digits"
                ))
            })?;
            self.known.push(key);
        }
        Ok(())
    }

    /// Returns `true` if there are no keys, so that every client may do everything.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Checks that the key of a request has a role.
    ///
    /// # Errors
    /// [`ProblemCode::Unauthenticated`] without an accepted key, [`ProblemCode::Forbidden`] if its role
    /// is lower.
    pub(crate) fn check_access(
        &self,
        headers: &HeaderMap,
        needed: AccessRole,
    ) -> Result<(), ApiProblem> {
        if needed == AccessRole::Anyone || self.is_empty() {
            return Ok(());
        }
        let Some(key) = bearer_token(headers) else {
            let detail = "the call needs a key: send Authorization: Bearer KEY";
            return Err(ApiProblem::new(ProblemCode::Unauthenticated, detail));
        };
        match self.role_of_key(key) {
            None => Err(ApiProblem::new(
                ProblemCode::Unauthenticated,
                "the key is not one of the accepted keys",
            )),
            Some(role) if role < needed => Err(ApiProblem::new(
                ProblemCode::Forbidden,
                format!(
                    "the call needs a key with the role {}, and the key has the role {}",
                    needed.role_name(),
                    role.role_name()
                ),
            )),
            Some(_) => Ok(()),
        }
    }

    /// Returns the position of a request's key among the accepted ones; the last one if it occurs more than
    /// once.
    pub(crate) fn find_key(&self, headers: &HeaderMap) -> Option<u32> {
        let key = bearer_token(headers)?;
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut found = u32::MAX;
        for (at, (_, known)) in (0..).zip(&self.known) {
            found.conditional_assign(&at, known.ct_eq(&hash) & long_enough(key));
        }
        (found != u32::MAX).then_some(found)
    }

    /// Returns the highest role of a key. Compares it with all accepted keys, so that timing reveals nothing.
    fn role_of_key(&self, key: &[u8]) -> Option<AccessRole> {
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut found = AccessRole::Anyone as u8;
        for (role, known) in &self.known {
            let higher = (*role as u8).max(found);
            found.conditional_assign(&higher, known.ct_eq(&hash) & long_enough(key));
        }
        let role = AccessRole::WITH_KEYS
            .iter()
            .find(|(_, role)| *role as u8 == found);
        role.map(|(_, role)| *role)
    }
}

fn long_enough(key: &[u8]) -> Choice {
    Choice::from(u8::from(key.len() >= MIN_KEY_BYTES))
}

/// Parses the line of a key. Accepts the `-` that `sha256sum` prints after the digits for standard input.
fn parse_key_line(line: &str) -> Option<(AccessRole, [u8; 32])> {
    let mut words = line.split_whitespace();
    let (name, key) = (words.next()?, words.next()?);
    if words.any(|word| word != "-") {
        return None;
    }
    let (_, role) = AccessRole::WITH_KEYS
        .iter()
        .find(|(known, _)| *known == name)?;
    let digits = key.strip_prefix("sha256:")?;
    let is_hex = digits.len() == 64 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate().take(32 * usize::from(is_hex)) {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    is_hex.then_some((*role, hash))
}

fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| key.trim_ascii())
}

/// Checks that a request names the service by a loopback address or `localhost`.
///
/// # Errors
/// [`ProblemCode::WrongHost`] if it names another host or none.
pub(crate) fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiProblem> {
    let stated = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let authority = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(stated);
    let host = authority.unwrap_or_default();
    if is_loopback(host) {
        return Ok(());
    }
    let told = match host {
        "" => "has no Host header".to_owned(),
        host => format!("is for '{}'", shorten_text(host)),
    };
    Err(ApiProblem::new(
        ProblemCode::WrongHost,
        format!(
            "the request {told}, and a service without keys answers only requests for a loopback \
             address or localhost"
        ),
    ))
}

/// Returns `true` if an authority, a host with an optional port, names this machine by loopback.
fn is_loopback(host: &str) -> bool {
    let parts = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']'),
        None => Some(host.split_at(host.find(':').unwrap_or(host.len()))),
    };
    let Some((name, port)) = parts else {
        return false;
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let address = name
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "0123456789abcdef";

    fn keys(lines: &[(&str, &str)]) -> AccessKeys {
        let mut keys = AccessKeys::default();
        for (role, key) in lines {
            let hash = Sha256::digest(key.as_bytes());
            let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            keys.parse_keys(&format!("# a key\n{role} sha256:{digits}  -\n"))
                .unwrap();
        }
        keys
    }

    fn with(key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::AUTHORIZATION,
            format!("Bearer {key}").parse().unwrap(),
        );
        headers
    }

    #[test]
    fn key_permits_what_its_role_permits() {
        let keys = keys(&[
            ("read", LONG),
            ("write", "fedcba9876543210"),
            ("read", "fedcba9876543210"),
        ]);
        let code = |key: &str, role| keys.check_access(&with(key), role).map_err(|it| it.code);
        for role in [AccessRole::Anyone, AccessRole::Read] {
            assert_eq!(code(LONG, role), Ok(()));
        }
        assert_eq!(code(LONG, AccessRole::Write), Err(ProblemCode::Forbidden));
        assert_eq!(code("fedcba9876543210", AccessRole::Write), Ok(()));
        assert_eq!(
            code("fedcba9876543210", AccessRole::Admin),
            Err(ProblemCode::Forbidden)
        );
        assert_eq!(
            code("0123456789abcdeg", AccessRole::Read),
            Err(ProblemCode::Unauthenticated)
        );
        let none = keys.check_access(&HeaderMap::new(), AccessRole::Read);
        assert_eq!(
            none.map_err(|it| it.code),
            Err(ProblemCode::Unauthenticated)
        );
        assert!(
            keys.check_access(&HeaderMap::new(), AccessRole::Anyone)
                .is_ok()
        );
    }

    #[test]
    fn short_keys_are_never_accepted() {
        let keys = keys(&[("admin", &LONG[1..]), ("admin", LONG)]);
        assert!(
            keys.check_access(&with(&LONG[1..]), AccessRole::Read)
                .is_err()
        );
        assert!(keys.check_access(&with(LONG), AccessRole::Admin).is_ok());
    }

    #[test]
    fn invalid_key_lines_are_refused() {
        let followed = format!("read sha256:{} more", "0".repeat(64));
        for line in [
            followed.as_str(),
            "read",
            "root sha256:00",
            "read sha256:0g",
            "read 0123456789abcdef",
        ] {
            let error = AccessKeys::default()
                .parse_keys(&format!("\n{line}"))
                .unwrap_err();
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }

    #[test]
    fn loopback_has_several_names() {
        for host in [
            "localhost",
            "LOCALHOST:7600",
            "127.0.0.1:7600",
            "127.1.2.3",
            "[::1]:7600",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "127.0.0.1.example.com",
            "[::2]:1",
            "10.0.0.1",
            "localhost.x",
            "localhost:80@example.com",
            "localhost:700000",
            "[::1]x",
            "[::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
