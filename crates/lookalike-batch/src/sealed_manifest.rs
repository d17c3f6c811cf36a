//! Manifests: texts that name the files of a directory, with a seal in their first line.
//!
//! ```text
//! MAGIC VERSION CHECKSUM     checksum of all that follows, in 16 hexadecimal digits
//! { … }                      JSON
//! ```
//!
//! An index and the directory of a run have one each. Guarantee: a text that was changed or cut is refused by the name
//! of its file.

use std::fmt;
use std::path::Path;

use lookalike_io::error::{Error, Result, display_path};
use serde::{Deserialize, Serialize};

/// A kind of manifest.
pub(crate) struct ManifestKind {
    /// The first word of the text.
    pub(crate) magic: &'static str,
    /// Noun phrase for such a text in messages: "the manifest of …".
    pub(crate) noun: &'static str,
    /// The versions that are read.
    pub(crate) versions: &'static [&'static str],
    /// Returns the error for a damaged file, with what to do.
    pub(crate) damaged_file: fn(&Path, &str) -> Error,
}

impl ManifestKind {
    /// Returns the text of a manifest.
    pub(crate) fn seal_manifest(&self, version: &str, manifest: &impl Serialize) -> String {
        let json = serde_json::to_string_pretty(manifest)
            .expect("a manifest has only strings, numbers and lists");
        let body = format!("{json}\n");
        let checksum = FileChecksum(lookalike::value_hash(body.as_bytes()));
        format!("{} {version} {checksum}\n{body}", self.magic)
    }

    /// Returns the manifest in a text. `path` is the name of its file in messages.
    ///
    /// # Errors
    /// If the text is no manifest of this kind, of another version, or damaged.
    pub(crate) fn open_manifest<T: for<'de> Deserialize<'de>>(
        &self,
        bytes: &[u8],
        path: &Path,
    ) -> Result<T> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| (self.damaged_file)(path, "it is not UTF-8"))?;
        let (first, body) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = first.split(' ');
        if words.next() != Some(self.magic) {
            return Err(Error::input_error(format!(
                "{} is not the manifest of {}",
                display_path(path),
                self.noun
            )));
        }
        let version = words.next().unwrap_or_default();
        if !self.versions.contains(&version) {
            let plural = if self.versions.len() == 1 { "" } else { "s" };
            return Err(Error::input_error(format!(
                "{} is of version {version}; this program reads version{plural} {}",
                display_path(path),
                self.versions.join(", ")
            )));
        }
        let checksum = FileChecksum(lookalike::value_hash(body.as_bytes())).to_string();
        if words.next() != Some(&checksum) || words.next().is_some() {
            return Err((self.damaged_file)(
                path,
                "its text does not match its checksum",
            ));
        }
        serde_json::from_str(body).map_err(|error| (self.damaged_file)(path, &error.to_string()))
    }
}

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
