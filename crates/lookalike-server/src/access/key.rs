//! One accepted key, as a line of a key file states it.

use jiff::Timestamp;

use super::{AccessRole, AccessScope};
use crate::api::problem::shorten_text;
use crate::collections::{LONGEST_NAME, check_name};
use crate::error::{Error, Result, bail};

/// An accepted key: its hash, and what it permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessKey {
    /// Name in the log.
    pub(super) name: String,
    pub(super) role: AccessRole,
    /// SHA-256 of the key.
    pub(super) hash: [u8; 32],
    /// Moment from which the key is not accepted any more.
    pub(super) expires: Option<Timestamp>,
    /// Names of the collections that it is limited to, where a `*` at the end stands for any rest; empty if
    /// it is not limited.
    pub(super) collections: Vec<String>,
}

impl AccessKey {
    /// Returns a key without an end, for all collections.
    pub(super) fn new(name: String, role: AccessRole, hash: [u8; 32]) -> Self {
        Self {
            name,
            role,
            hash,
            expires: None,
            collections: Vec::new(),
        }
    }

    /// Parses a line: a role, `sha256:` with the hash, and attributes. Accepts the `-` that `sha256sum` prints
    /// after the digits for standard input.
    ///
    /// # Errors
    /// If the line is malformed. The message contains neither the hash nor a text that may be a key.
    pub(super) fn parse_line(line: &str, number: usize) -> Result<Self> {
        let mut words = line.split_whitespace();
        let role = words.next().and_then(parse_role);
        let hash = words.next().and_then(parse_hash);
        let (Some(role), Some(hash)) = (role, hash) else {
            bail!(
                "give a role (read, write or admin), a space, and sha256: with 64 hexadecimal digits"
            );
        };
        let mut key = Self::new(String::new(), role, hash);
        for word in words.filter(|&word| word != "-") {
            key.set_attribute(word)?;
        }
        if key.name.is_empty() {
            key.name = format!("line-{number}");
        }
        Ok(key)
    }

    fn set_attribute(&mut self, word: &str) -> Result<()> {
        let Some((attribute, value)) = word.split_once('=').filter(|(_, it)| !it.is_empty()) else {
            bail!(
                "the text behind the hash is not an attribute: give name=NAME, expires=TIME or collections=NAME,NAME"
            );
        };
        let is_given = match attribute {
            "name" => !std::mem::replace(&mut self.name, parse_name(value)?).is_empty(),
            "expires" => self.expires.replace(parse_moment(value)?).is_some(),
            "collections" => {
                let names = parse_collections(value)?;
                !std::mem::replace(&mut self.collections, names).is_empty()
            }
            _ => bail!(
                "there is an unknown attribute: give name=NAME, expires=TIME or \
                 collections=NAME,NAME"
            ),
        };
        if is_given {
            bail!("the attribute '{attribute}' is given twice");
        }
        Ok(())
    }

    /// Returns `true` if the key is accepted at a moment.
    pub(super) fn is_valid_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| now < end)
    }

    /// Returns `true` if the collections of the key include what the call touches.
    pub(super) fn covers_scope(&self, scope: AccessScope<'_>) -> bool {
        self.collections.is_empty()
            || match scope {
                AccessScope::Nothing => true,
                AccessScope::Collection(names) => names.iter().any(|name| self.covers_name(name)),
                AccessScope::Service => false,
            }
    }

    fn covers_name(&self, name: &str) -> bool {
        self.collections
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            })
    }
}

/// Parses the name of a key, which appears in the log.
fn parse_name(text: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.len() > LONGEST_NAME || !text.chars().all(is_plain) {
        bail!(
            "'{}' is not a name of a key: give 1 to {LONGEST_NAME} of the letters A to Z and a to z, \
             digits, -, _ and .",
            shorten_text(text)
        );
    }
    Ok(text.to_owned())
}

fn parse_role(name: &str) -> Option<AccessRole> {
    let mut roles = AccessRole::WITH_KEYS.iter();
    let found = roles.find(|(known, _)| *known == name);
    found.map(|(_, role)| *role)
}

fn parse_hash(word: &str) -> Option<[u8; 32]> {
    let digits = word.strip_prefix("sha256:")?;
    let is_hex = digits.len() == 64 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate().take(32 * usize::from(is_hex)) {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    is_hex.then_some(hash)
}

/// Parses a moment, or a date for its beginning in UTC.
fn parse_moment(text: &str) -> Result<Timestamp> {
    let moment = text.parse::<Timestamp>();
    let moment = moment.or_else(|_| {
        let date: jiff::civil::Date = text.parse()?;
        Ok::<_, jiff::Error>(date.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
    });
    moment.map_err(|_| {
        Error::new(format!(
            "'{text}' is not a time: give expires=2027-01-31 or expires=2027-01-31T12:00:00Z"
        ))
    })
}

fn parse_collections(text: &str) -> Result<Vec<String>> {
    let names = text.split(',').map(|name| {
        let is_valid = match name.strip_suffix('*') {
            // A name that may go on is valid if it is valid with another letter.
            Some(start) => check_name(&format!("{start}a")).is_ok(),
            None => check_name(name).is_ok(),
        };
        if !is_valid {
            bail!(
                "'{name}' is not the name of a collection: give names separated by commas, or the \
                 beginning of names with * behind it"
            );
        }
        Ok(name.to_owned())
    });
    names.collect()
}
