//! Access control: which caller may do what.
//!
//! A key is a secret of at least 16 bytes, sent as `Authorization: Bearer KEY`. Only hashes of keys are kept,
//! and comparing them takes the same time wherever they differ. A key has a role, and it may have an end of
//! its validity and be limited to some collections. Without keys, every client may do everything, provided
//! that it names the service by a loopback address (`host`).

pub(crate) mod host;
mod key;
pub(crate) mod request_access;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use self::key::AccessKey;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::error::{Result, bail, with_context};
use crate::limits::byte_budget::ClientId;

/// Smallest length of a key, in bytes.
const MIN_KEY_BYTES: usize = 16;

/// Rights of a caller. Each role includes the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessRole {
    /// Calls that reveal nothing of what is stored.
    Anyone,
    /// Calls that only read.
    Read,
    /// Inserting and deleting documents, uploading and deleting recipes.
    Write,
    /// Creating, changing and deleting collections; aliases; snapshots.
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

/// The accepted keys, as hashes with their rights.
#[derive(Default)]
pub struct AccessKeys {
    known: Vec<Arc<AccessKey>>,
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
            if key.trim() != key {
                bail!("{variable} begins or ends with white space: remove it");
            }
            if key.len() < MIN_KEY_BYTES {
                bail!(
                    "{variable} has {} bytes: a key has at least {MIN_KEY_BYTES}",
                    key.len()
                );
            }
            let key = AccessKey::new(variable, role, Sha256::digest(key.as_bytes()).into());
            keys.known.push(Arc::new(key));
        }
        Ok(keys)
    }

    fn parse_keys(&mut self, text: &str) -> Result<()> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = AccessKey::parse_line(line, number)
                .map_err(with_context(format!("line {number}")))?;
            self.known.push(Arc::new(key));
        }
        Ok(())
    }

    /// Returns `true` if there are no keys, so that every client may do everything.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the number of keys.
    pub(crate) fn key_count(&self) -> usize {
        self.known.len()
    }

    /// Identifies the caller of a request by its key. Compares the key with all accepted ones, so that timing
    /// reveals nothing.
    pub(crate) fn identify_caller(&self, headers: &HeaderMap) -> ApiCaller {
        if self.is_empty() {
            return ApiCaller::Unrestricted;
        }
        let Some(key) = bearer_token(headers) else {
            return ApiCaller::WithoutKey;
        };
        let is_long = Choice::from(u8::from(key.len() >= MIN_KEY_BYTES));
        self.find_entries(&Sha256::digest(key).into(), is_long)
    }

    /// Identifies the caller of a request that has begun with other keys.
    pub(crate) fn identify_again(&self, caller: &ApiCaller) -> ApiCaller {
        match caller.first_entry() {
            Some(entry) => self.find_entries(&entry.hash, Choice::from(1)),
            None => caller.clone(),
        }
    }

    /// Returns the caller with the entries of a hash; none of them is accepted if `is_accepted` is zero.
    fn find_entries(&self, hash: &[u8; 32], is_accepted: Choice) -> ApiCaller {
        let is_same = |known: &&Arc<AccessKey>| (known.hash.ct_eq(hash) & is_accepted).into();
        let entries: Vec<_> = self.known.iter().filter(is_same).map(Arc::clone).collect();
        if entries.is_empty() {
            ApiCaller::UnknownKey
        } else {
            ApiCaller::Known(entries)
        }
    }
}

/// The caller of a request.
#[derive(Clone)]
pub(crate) enum ApiCaller {
    /// The service has no keys, so the caller may do everything.
    Unrestricted,
    /// The request has no key.
    WithoutKey,
    /// The key of the request is not an accepted one.
    UnknownKey,
    /// The entries of the request's key, at least one. The caller may do what any of them permits.
    Known(Vec<Arc<AccessKey>>),
}

/// The part of the service that a call touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessScope<'a> {
    /// No collection, or only those that the caller may see.
    Nothing,
    /// One collection, under any of these names: an alias and what it stands for.
    Collection(&'a [&'a str]),
    /// The whole service.
    Service,
}

impl ApiCaller {
    /// Checks that the caller may make a call.
    ///
    /// # Errors
    /// [`ProblemCode::Unauthenticated`] without a valid key, [`ProblemCode::Forbidden`] if its rights do not
    /// include the call.
    pub(crate) fn check_access(
        &self,
        needed: AccessRole,
        scope: AccessScope<'_>,
    ) -> Result<(), ApiProblem> {
        if needed == AccessRole::Anyone {
            return Ok(());
        }
        let refuse = |detail: &str| Err(ApiProblem::new(ProblemCode::Unauthenticated, detail));
        match self {
            Self::Unrestricted => Ok(()),
            Self::WithoutKey => refuse("the call needs a key: send Authorization: Bearer KEY"),
            Self::UnknownKey => refuse("the key is not one of the accepted keys"),
            Self::Known(entries) => check_entries(entries, needed, scope, Timestamp::now()),
        }
    }

    /// Returns `true` if the caller may read what the scope covers.
    pub(crate) fn may_read(&self, scope: AccessScope<'_>) -> bool {
        self.check_access(AccessRole::Read, scope).is_ok()
    }

    /// Returns the identity of the caller for limits, if it has a key.
    pub(crate) fn client_id(&self) -> Option<ClientId> {
        let hash = &self.first_entry()?.hash;
        Some(ClientId::Key(u64::from_le_bytes(
            *hash.first_chunk().unwrap_or(&[0; 8]),
        )))
    }

    /// Returns the name of the caller's key, for the log.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.first_entry().map(|entry| entry.name.as_str())
    }

    /// Returns the time until the next entry of the caller's key expires, if one does.
    fn time_to_expiry(&self, now: Timestamp) -> Option<Duration> {
        let Self::Known(entries) = self else {
            return None;
        };
        let times = entries.iter().filter_map(|entry| entry.expires);
        let next = times.filter(|&time| time > now).min()?;
        next.duration_since(now).try_into().ok()
    }

    fn first_entry(&self) -> Option<&AccessKey> {
        match self {
            Self::Known(entries) => entries.first().map(Arc::as_ref),
            _ => None,
        }
    }
}

/// Checks that one of the entries of a key permits a call. The refusal names the first obstacle that no entry
/// overcomes: validity, role, collection.
fn check_entries(
    entries: &[Arc<AccessKey>],
    needed: AccessRole,
    scope: AccessScope<'_>,
    now: Timestamp,
) -> Result<(), ApiProblem> {
    let valid = || entries.iter().filter(|entry| entry.is_valid_at(now));
    let able = || valid().filter(|entry| entry.role >= needed);
    if able().any(|entry| entry.covers_scope(scope)) {
        return Ok(());
    }
    let Some(role) = valid().map(|entry| entry.role).max() else {
        let ended = entries.iter().filter_map(|entry| entry.expires).max();
        let ended = ended.map_or(String::new(), |time| format!(" at {time}"));
        let detail = format!("the key is no longer valid: it expired{ended}");
        return Err(ApiProblem::new(ProblemCode::Unauthenticated, detail));
    };
    let detail = match able().next() {
        None => format!(
            "the call needs a key with the role {}, and the key has the role {}",
            needed.role_name(),
            role.role_name()
        ),
        Some(entry) => format!(
            "the key is limited to the collections {}: {}",
            entry.collections.join(", "),
            match scope {
                AccessScope::Collection(names) =>
                    format!("'{}' is not one of them", names.first().unwrap_or(&"")),
                _ => "the call concerns the whole service".to_owned(),
            }
        ),
    };
    Err(ApiProblem::new(ProblemCode::Forbidden, detail))
}

fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| key.trim_ascii())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LONG: &str = "0123456789abcdef";
    pub(crate) const OTHER: &str = "fedcba9876543210";

    /// Returns keys from lines of which each is a role, a key, and more attributes.
    pub(crate) fn keys(lines: &[(&str, &str, &str)]) -> AccessKeys {
        let mut keys = AccessKeys::default();
        for (role, key, more) in lines {
            let hash = Sha256::digest(key.as_bytes());
            let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            keys.parse_keys(&format!("# a key\n{role} sha256:{digits}  -{more}\n"))
                .unwrap();
        }
        keys
    }

    pub(crate) fn caller(keys: &AccessKeys, key: &str) -> ApiCaller {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::AUTHORIZATION,
            format!("Bearer {key}").parse().unwrap(),
        );
        keys.identify_caller(&headers)
    }

    fn code(
        keys: &AccessKeys,
        key: &str,
        role: AccessRole,
        scope: AccessScope<'_>,
    ) -> Result<(), ProblemCode> {
        let checked = caller(keys, key).check_access(role, scope);
        checked.map_err(|problem| problem.code)
    }

    #[test]
    fn key_permits_what_its_role_permits() {
        let keys = keys(&[
            ("read", LONG, ""),
            ("write", OTHER, ""),
            ("read", OTHER, ""),
        ]);
        let code = |key, role| code(&keys, key, role, AccessScope::Service);
        for role in [AccessRole::Anyone, AccessRole::Read] {
            assert_eq!(code(LONG, role), Ok(()));
        }
        assert_eq!(code(LONG, AccessRole::Write), Err(ProblemCode::Forbidden));
        assert_eq!(code(OTHER, AccessRole::Write), Ok(()));
        assert_eq!(code(OTHER, AccessRole::Admin), Err(ProblemCode::Forbidden));
        let unknown = code("0123456789abcdeg", AccessRole::Read);
        assert_eq!(unknown, Err(ProblemCode::Unauthenticated));
        let none = keys.identify_caller(&HeaderMap::new());
        let refused = none.check_access(AccessRole::Read, AccessScope::Nothing);
        assert_eq!(refused.unwrap_err().code, ProblemCode::Unauthenticated);
        let anyone = none.check_access(AccessRole::Anyone, AccessScope::Nothing);
        assert!(anyone.is_ok() && !none.may_read(AccessScope::Nothing));
    }

    #[test]
    fn key_is_limited_to_its_collections() {
        let keys = keys(&[
            ("write", LONG, " collections=news,tenant-*,lock*"),
            ("read", LONG, " collections=archive"),
        ]);
        let of = |names: &[&str], role| code(&keys, LONG, role, AccessScope::Collection(names));
        for names in [["news"], ["tenant-"], ["tenant-7"], ["lock-1"]] {
            assert_eq!(of(&names, AccessRole::Write), Ok(()), "{names:?}");
        }
        assert_eq!(of(&["live", "news"], AccessRole::Write), Ok(()));
        assert_eq!(of(&["archive"], AccessRole::Read), Ok(()));
        for (name, role) in [
            ("archive", AccessRole::Write),
            ("newsy", AccessRole::Read),
            ("tenant", AccessRole::Read),
            ("news", AccessRole::Admin),
        ] {
            assert_eq!(of(&[name], role), Err(ProblemCode::Forbidden), "{name}");
        }
        let code = |scope| code(&keys, LONG, AccessRole::Read, scope);
        assert_eq!(code(AccessScope::Nothing), Ok(()));
        assert_eq!(code(AccessScope::Service), Err(ProblemCode::Forbidden));
    }

    #[test]
    fn expired_key_permits_nothing() {
        let keys = keys(&[
            ("admin", LONG, " expires=2026-01-31T12:00:00Z"),
            ("read", LONG, " expires=2026-03-01"),
        ]);
        let ApiCaller::Known(entries) = caller(&keys, LONG) else {
            panic!("the key is known");
        };
        let code = |role, now: &str| {
            let scope = AccessScope::Service;
            let checked = check_entries(&entries, role, scope, now.parse().unwrap());
            checked.map_err(|problem| (problem.code, problem.detail))
        };
        assert_eq!(code(AccessRole::Admin, "2026-01-31T11:59:59Z"), Ok(()));
        let (refused, _) = code(AccessRole::Admin, "2026-01-31T12:00:00Z").unwrap_err();
        assert_eq!(refused, ProblemCode::Forbidden);
        assert_eq!(code(AccessRole::Read, "2026-02-28T23:59:59Z"), Ok(()));
        let (refused, detail) = code(AccessRole::Read, "2026-03-01T00:00:00Z").unwrap_err();
        assert_eq!(refused, ProblemCode::Unauthenticated);
        assert!(detail.contains("2026-03-01T00:00:00Z"), "{detail}");
        assert_eq!(code(AccessRole::Anyone, "2020-01-01T00:00:00Z"), Ok(()));
    }

    #[test]
    fn short_keys_are_never_accepted() {
        let keys = keys(&[("admin", &LONG[1..], ""), ("admin", LONG, "")]);
        let code = |key| code(&keys, key, AccessRole::Read, AccessScope::Service);
        assert!(code(&LONG[1..]).is_err());
        assert!(code(LONG).is_ok());
    }

    #[test]
    fn clients_and_names_follow_keys() {
        let keys = keys(&[("read", LONG, " name=dashboard"), ("read", OTHER, "")]);
        let (one, other) = (caller(&keys, LONG), caller(&keys, OTHER));
        assert_eq!(one.key_name(), Some("dashboard"));
        assert_eq!(other.key_name(), Some("line-2"));
        assert!(one.client_id().is_some() && one.client_id() != other.client_id());
        assert!(ApiCaller::UnknownKey.client_id().is_none());
    }

    #[test]
    fn invalid_key_lines_are_refused() {
        let hash = "0".repeat(64);
        let with = |more: &str| format!("read sha256:{hash} {more}");
        for line in [
            with("more"),
            with("colour=red"),
            with("name="),
            with("name=two words"),
            with("name=a name=b"),
            with("expires=tomorrow"),
            with("expires=2026-02-30"),
            with("collections="),
            with("collections=a,,b"),
            with("collections=A"),
            with("collections=*b"),
            "read".to_owned(),
            "root sha256:00".to_owned(),
            format!("root sha256:{hash}"),
            "read sha256:0g".to_owned(),
            "read 0123456789abcdef".to_owned(),
        ] {
            let parsed = AccessKeys::default().parse_keys(&format!("\n{line}"));
            let error = parsed.unwrap_err().to_string();
            assert!(error.contains("line 2"), "{line}: {error}");
        }
    }
}
