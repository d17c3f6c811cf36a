//! The properties by which a later process recognises that an object has not changed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of an object, as its store states it. The name and the length of the object are not part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectIdentity {
    /// The id of the version, in buckets that keep versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The `ETag`, without quotes and without the mark of a weak one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// Time of the last change, in UTC and to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl ObjectIdentity {
    /// Returns `true` if the store states something by which a change can be noticed.
    pub fn is_known(&self) -> bool {
        self.version.is_some() || self.e_tag.is_some() || self.modified.is_some()
    }

    /// Returns `true` if both are of the same version: by their `ETag`, or by the id of the version or the time of the
    /// last change if one of them has no `ETag`. Listings leave out ids of versions, and some stores leave out an
    /// `ETag`.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.e_tag, &other.e_tag) {
            (Some(one), Some(other)) => one == other,
            _ => match (&self.version, &other.version) {
                (Some(one), Some(other)) => one == other,
                _ => self.modified == other.modified,
            },
        }
    }
}

/// The property that decides, as a noun phrase.
impl fmt::Display for ObjectIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(e_tag) = &self.e_tag {
            write!(f, "the ETag {e_tag}")
        } else if let Some(version) = &self.version {
            write!(f, "the version {version}")
        } else if let Some(modified) = &self.modified {
            write!(f, "the time {modified} of the last change")
        } else {
            f.write_str("no version")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(version: &str, e_tag: &str, modified: &str) -> ObjectIdentity {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ObjectIdentity {
            version: given(version),
            e_tag: given(e_tag),
            modified: given(modified),
        }
    }

    #[test]
    fn tag_decides_before_version_and_version_before_time() {
        let cases = [
            (["1", "a", "x"], ["2", "a", "y"], true),
            (["1", "a", "x"], ["1", "b", "x"], false),
            (["1", "", "x"], ["1", "a", "y"], true),
            (["1", "", "x"], ["2", "", "x"], false),
            (["", "", "x"], ["2", "a", "x"], true),
            (["", "", "x"], ["", "", "y"], false),
        ];
        for (one, other, expected) in cases {
            let parse = |[version, e_tag, modified]: [&str; 3]| identity(version, e_tag, modified);
            assert_eq!(
                parse(one).is_same(&parse(other)),
                expected,
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn shown_property_is_the_one_that_decides() {
        assert_eq!(identity("1", "a", "x").to_string(), "the ETag a");
        assert_eq!(identity("1", "", "x").to_string(), "the version 1");
        assert_eq!(
            identity("", "", "x").to_string(),
            "the time x of the last change"
        );
        assert!(identity("", "", "x").is_known());
        assert!(!ObjectIdentity::default().is_known());
    }
}
