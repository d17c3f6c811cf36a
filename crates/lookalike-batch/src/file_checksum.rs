//! The checksum of a file, as manifests state it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A checksum, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct FileChecksum(pub(crate) u64);

impl fmt::Display for FileChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<FileChecksum> for String {
    fn from(seal: FileChecksum) -> Self {
        seal.to_string()
    }
}

impl TryFrom<String> for FileChecksum {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        u64::from_str_radix(&text, 16)
            .ok()
            .map(Self)
            .filter(|seal| seal.to_string() == text)
            .ok_or_else(|| format!("'{text}' is not a checksum"))
    }
}
