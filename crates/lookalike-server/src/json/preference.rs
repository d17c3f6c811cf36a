//! The parameter `prefer` of clusters: the best version by a field of `meta`.

use std::cmp::Ordering;
use std::str::FromStr;

use lookalike_options::keep_order::{KeepKey, parse_keep};
use lookalike_options::rank_value::RankValue;
use serde_json::value::RawValue;

use super::meta_filter::MetaFields;

/// Longest name of a field in bytes.
const LONGEST_FIELD: usize = 256;

/// A preference for the largest or smallest value of a top-level field of `meta`. The order of values is that
/// of `--keep`: numbers exactly and before texts, texts byte by byte, missing values last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterPreferenceRule {
    field: String,
    descending: bool,
}

impl FromStr for ClusterPreferenceRule {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let order = parse_keep(text).map_err(|_| ())?;
        let (field, descending) = match order.single_key() {
            Some(KeepKey::Max(field)) => (field.clone(), true),
            Some(KeepKey::Min(field)) => (field.clone(), false),
            _ => return Err(()),
        };
        if field.len() <= LONGEST_FIELD {
            Ok(Self { field, descending })
        } else {
            Err(())
        }
    }
}

impl ClusterPreferenceRule {
    /// Returns what the parameter must be, for a message.
    pub(crate) fn describe_form() -> String {
        format!("max:FIELD or min:FIELD, with a field of `meta` of at most {LONGEST_FIELD} bytes")
    }

    /// Compares the metadata of two documents: `Less` if the first document is preferred.
    pub(crate) fn compare_metas(&self, a: Option<&str>, b: Option<&str>) -> Ordering {
        let [a, b] = [a, b].map(|meta| self.rank_meta(meta));
        a.compare_preferred(&b, self.descending)
    }

    /// Returns the value of the field, as it stands in the metadata; `None` if it is missing or null.
    pub(crate) fn find_value<'m>(&self, meta: Option<&'m str>) -> Option<&'m RawValue> {
        MetaFields::parse_meta(meta)?.find_value(&self.field)
    }

    /// Returns the value by which a document is ranked. Lists and objects count as missing.
    fn rank_meta(&self, meta: Option<&str>) -> RankValue {
        let value = self.find_value(meta);
        value.map_or(RankValue::Missing, |value| {
            RankValue::from_json(value.get())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> ClusterPreferenceRule {
        text.parse().unwrap()
    }

    #[test]
    fn forms_are_checked() {
        assert_eq!(rule("max:a:b").field, "a:b");
        assert!(!rule("min:q").descending);
        let long = format!("max:{}", "f".repeat(LONGEST_FIELD + 1));
        for text in ["", "max", "max:", "first", "longest", "best:q", &long] {
            assert!(text.parse::<ClusterPreferenceRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_compared_as_runs_compare_them() {
        let rule = rule("max:q");
        // From the most to the least preferred.
        let metas = [
            r#"{"q":"b"}"#,
            r#"{"q":"a\u0062"}"#,
            r#"{"q":9007199254740993}"#,
            r#"{"q":"9007199254740992"}"#,
            r#"{"q":2.5}"#,
            r#"{"q":true}"#,
            r#"{"q":-3}"#,
            r#"{"q":null}"#,
        ];
        for (at, a) in metas.iter().enumerate() {
            for (other, b) in metas.iter().enumerate() {
                let order = rule.compare_metas(Some(a), Some(b));
                assert_eq!(order, at.cmp(&other), "{a} {b}");
            }
        }
        let missing = [
            None,
            Some("{}"),
            Some("[1]"),
            Some("7"),
            Some(r#"{"q":[1]}"#),
            Some("x"),
        ];
        for meta in missing.into_iter().chain([Some(r#"{"q":" "}"#)]) {
            assert_eq!(rule.compare_metas(meta, Some(metas[6])), Ordering::Greater);
            assert_eq!(rule.compare_metas(meta, Some(metas[7])), Ordering::Equal);
        }
    }
}
