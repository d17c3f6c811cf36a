//! Which document of a cluster is kept: the order that `--keep` sets.

use std::fmt;
use std::str::FromStr;

/// A key of the order in which documents are preferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepKey {
    /// The document read first.
    First,
    /// The document read last.
    Last,
    /// The document with the most characters.
    Longest,
    /// The document with the largest value of a field. Numbers are smaller than strings, and strings
    /// are ordered by their bytes. A document without the field comes last. Ids always count as
    /// strings.
    Max(String),
    /// The document with the smallest value of a field, in the same order. A document without the field
    /// comes last.
    Min(String),
}

impl KeepKey {
    /// Returns `true` if no two documents are equal by the key.
    fn leaves_no_ties(&self) -> bool {
        matches!(self, Self::First | Self::Last)
    }

    /// Returns `true` if documents are equal by both keys or by none.
    fn has_same_ties(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Max(field) | Self::Min(field), Self::Max(other) | Self::Min(other)) => {
                field == other
            }
            _ => self == other,
        }
    }

    /// Parses one key; `None` if the text is none.
    fn parse_key(text: &str) -> Option<Self> {
        match (text, text.split_once(':')) {
            ("first", _) => Some(Self::First),
            ("last", _) => Some(Self::Last),
            ("longest", _) => Some(Self::Longest),
            (_, Some(("max", field))) if !field.is_empty() => Some(Self::Max(field.to_owned())),
            (_, Some(("min", field))) if !field.is_empty() => Some(Self::Min(field.to_owned())),
            _ => None,
        }
    }
}

/// The key as users write it.
impl fmt::Display for KeepKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => formatter.write_str("first"),
            Self::Last => formatter.write_str("last"),
            Self::Longest => formatter.write_str("longest"),
            Self::Max(field) => write!(formatter, "max:{field}"),
            Self::Min(field) => write!(formatter, "min:{field}"),
        }
    }
}

/// The total order of a run's documents: the first document of a cluster in this order is kept. The first key
/// decides, the next one decides between documents that are equal by it, and so on. The last ties are broken by
/// position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepOrder {
    /// At least one. None follows `First` or `Last`, and `First` is never the last one of several.
    keys: Vec<KeepKey>,
}

impl Default for KeepOrder {
    fn default() -> Self {
        Self::from(KeepKey::First)
    }
}

impl From<KeepKey> for KeepOrder {
    fn from(key: KeepKey) -> Self {
        Self { keys: vec![key] }
    }
}

impl KeepOrder {
    /// Returns the keys, the one that decides first before the others. There is at least one.
    pub fn keys(&self) -> &[KeepKey] {
        &self.keys
    }

    /// Returns the key if there is only one.
    pub fn single_key(&self) -> Option<&KeepKey> {
        match &self.keys[..] {
            [key] => Some(key),
            _ => None,
        }
    }
}

/// The keys as users write them, separated by commas.
impl fmt::Display for KeepOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, key) in self.keys.iter().enumerate() {
            if at > 0 {
                formatter.write_str(",")?;
            }
            key.fmt(formatter)?;
        }
        Ok(())
    }
}

impl FromStr for KeepOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_keep(text)
    }
}

/// Parses `first`, `last`, `longest`, `max:FIELD` or `min:FIELD`, or several of these, separated by commas. A comma
/// after which no key begins belongs to the name of a field. A `first` that follows other keys changes nothing, and is
/// left out.
///
/// # Errors
/// If the text is none of these, or if a key can never decide because one before it leaves no ties that it could break.
/// The message is a phrase that can follow the text.
pub fn parse_keep(text: &str) -> Result<KeepOrder, String> {
    let unknown = || {
        "give first, last, longest, max:FIELD or min:FIELD, or several of these, separated by commas"
            .to_owned()
    };
    let mut parts = text.split(',');
    let mut first = parts.next().unwrap_or_default().to_owned();
    let mut keys = Vec::new();
    for part in parts {
        if KeepKey::parse_key(part.trim_start()).is_some() {
            keys.push(std::mem::replace(&mut first, part.trim_start().to_owned()));
        } else {
            first.push(',');
            first.push_str(part);
        }
    }
    keys.push(first);
    let keys = keys.iter().map(|key| KeepKey::parse_key(key));
    let mut keys: Vec<KeepKey> = keys.collect::<Option<_>>().ok_or_else(unknown)?;
    for (at, key) in keys.iter().enumerate().skip(1) {
        if let Some(decisive) = keys[..at].iter().find(|before| before.leaves_no_ties()) {
            return Err(format!(
                "{key} never decides, because {decisive} leaves no ties: give {decisive} as the last key"
            ));
        }
        if let Some(same) = keys[..at].iter().find(|before| before.has_same_ties(key)) {
            return Err(format!(
                "{key} never decides, because {same} comes before it: leave one of them out"
            ));
        }
    }
    if keys.len() > 1 && keys.last() == Some(&KeepKey::First) {
        keys.pop();
    }
    Ok(KeepOrder { keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max(field: &str) -> KeepKey {
        KeepKey::Max(field.to_owned())
    }

    #[test]
    fn keep_rules_parse() {
        assert_eq!(parse_keep("longest"), Ok(KeepKey::Longest.into()));
        assert_eq!(parse_keep("max:a:b"), Ok(max("a:b").into()));
        assert_eq!(
            parse_keep("min:id"),
            Ok(KeepKey::Min("id".to_owned()).into())
        );
        for text in [
            "",
            "max",
            "max:",
            "most:x",
            "First",
            ",",
            "first,",
            "max:,first",
        ] {
            assert!(parse_keep(text).is_err(), "{text}");
        }
    }

    #[test]
    fn several_keys_parse_in_order() {
        let keys = |text: &str| parse_keep(text).unwrap().keys().to_vec();
        assert_eq!(
            keys("max:quality,longest,last"),
            [max("quality"), KeepKey::Longest, KeepKey::Last]
        );
        // The last ties go to the first document in any case.
        assert_eq!(keys("longest,first"), [KeepKey::Longest]);
        assert_eq!(keys("first"), [KeepKey::First]);
        // A comma that no key follows belongs to the name.
        assert_eq!(keys("max:a,b"), [max("a,b")]);
        assert_eq!(keys("max:a,b, max:c"), [max("a,b"), max("c")]);
        for text in ["longest", "max:a,b", "max:a,longest,min:b,last"] {
            assert_eq!(parse_keep(text).unwrap().to_string(), text);
        }
        for (text, part) in [
            ("first,longest", "first as the last key"),
            ("last,first", "last as the last key"),
            ("max:a,min:a", "min:a never decides"),
            ("longest,max:a,longest", "longest never decides"),
        ] {
            let message = parse_keep(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
