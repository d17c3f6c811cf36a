//! The hash that names the content of a text.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of a text in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The word before the digits.
    const HASH_PREFIX: &str = "sha256:";

    /// Returns the hash of a text.
    pub fn from_text(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Returns the hash that has these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses a hash as [`Display`](fmt::Display) writes it. Returns `None` if the text is not one.
    pub fn parse_hash(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::HASH_PREFIX)?;
        let mut hash = [0; 32];
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::HASH_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
