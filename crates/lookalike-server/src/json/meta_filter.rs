//! The parameters `meta.FIELD=VALUE` of lists of documents and clusters: equality with top-level fields of `meta`.

use std::borrow::Cow;
use std::collections::HashMap;

use lookalike_options::rank_value::RankValue;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The top-level fields of a document's metadata, as they stand there.
#[derive(Deserialize)]
pub(crate) struct MetaFields<'m>(#[serde(borrow)] HashMap<Cow<'m, str>, &'m RawValue>);

impl<'m> MetaFields<'m> {
    /// Parses metadata; `None` if there is none, or it is not an object.
    pub(crate) fn parse_meta(meta: Option<&'m str>) -> Option<Self> {
        serde_json::from_str(meta?).ok()
    }

    /// Returns the value of a field; `None` if it is missing or null.
    pub(crate) fn find_value(&self, field: &str) -> Option<&'m RawValue> {
        let value = self.0.get(field).copied();
        value.filter(|value| value.get() != "null")
    }
}

/// Conditions on top-level fields of metadata, all of which must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetaFilter(Vec<(String, MetaValue)>);

/// The value that a field must have.
#[derive(Clone, Debug)]
enum MetaValue {
    /// The field is null, or missing.
    Null,
    Truth(bool),
    /// A number, compared by its value.
    Number(RankValue),
    Text(String),
}

impl MetaFilter {
    /// Adds the condition that a field has a value: the JSON value if `value` is a number, `true`, `false`, `null` or
    /// a string in quotes, and else the string `value`.
    pub(crate) fn add_condition(&mut self, field: &str, value: &str) {
        let wanted = MetaValue::from_json(value).filter(|_| value.trim() == value);
        let wanted = wanted.unwrap_or_else(|| MetaValue::Text(value.to_owned()));
        self.0.push((field.to_owned(), wanted));
    }

    /// Returns `true` for metadata that meets all conditions.
    pub(crate) fn accepts_meta(&self, meta: Option<&str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let fields = MetaFields::parse_meta(meta);
        self.0.iter().all(|(field, wanted)| {
            let value = fields.as_ref().and_then(|fields| fields.find_value(field));
            let value = value.map_or(Some(MetaValue::Null), |value| {
                MetaValue::from_json(value.get())
            });
            value.is_some_and(|value| value.is_equal(wanted))
        })
    }
}

impl MetaValue {
    /// Converts a JSON value; `None` for a list, an object and anything that is not JSON.
    fn from_json(literal: &str) -> Option<Self> {
        match serde_json::from_str(literal).ok()? {
            Value::Null => Some(Self::Null),
            Value::Bool(truth) => Some(Self::Truth(truth)),
            Value::Number(_) => Some(Self::Number(RankValue::from_json(literal.trim()))),
            Value::String(text) => Some(Self::Text(text)),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Truth(a), Self::Truth(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a.compare_preferred(b, false).is_eq(),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(conditions: &[(&str, &str)], meta: Option<&str>) -> bool {
        let mut filter = MetaFilter::default();
        for (field, value) in conditions {
            filter.add_condition(field, value);
        }
        filter.accepts_meta(meta)
    }

    #[test]
    fn values_are_compared_by_type() {
        let meta = Some(
            r#"{"n":1.50,"big":9007199254740993,"s":"a\u0062","d":"5","t":true,"u":"true","z":null,"l":[1],"b":" 5"}"#,
        );
        for (field, value) in [
            ("n", "1.5"),
            ("n", "15e-1"),
            ("big", "9007199254740993"),
            ("s", "ab"),
            ("s", "\"ab\""),
            ("d", "\"5\""),
            ("b", " 5"),
            ("t", "true"),
            ("u", "\"true\""),
            ("z", "null"),
            ("missing", "null"),
        ] {
            assert!(accepts(&[(field, value)], meta), "{field} {value}");
        }
        for (field, value) in [
            ("n", "1"),
            ("n", "\"1.5\""),
            ("big", "9007199254740992"),
            ("s", "AB"),
            ("d", "5"),
            ("t", "1"),
            ("t", "\"true\""),
            ("u", "true"),
            ("z", ""),
            ("l", "[1]"),
            ("l", "null"),
            ("missing", ""),
        ] {
            assert!(!accepts(&[(field, value)], meta), "{field} {value}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let meta = Some(r#"{"a":1,"b":2}"#);
        assert!(accepts(&[], None) && accepts(&[], Some("[1]")));
        assert!(accepts(&[("a", "1"), ("b", "2")], meta));
        assert!(!accepts(&[("a", "1"), ("b", "3")], meta));
        for meta in [None, Some("7"), Some("[1]"), Some("not JSON")] {
            assert!(!accepts(&[("a", "1")], meta));
            assert!(accepts(&[("a", "null")], meta));
        }
    }
}
