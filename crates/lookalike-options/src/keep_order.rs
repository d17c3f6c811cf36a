//! Which document of a cluster is kept: the order that `--keep` sets.

/// The total order of a run's documents: the first document of a cluster in this order is kept. Ties
/// are broken by position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeepOrder {
    /// The document read first.
    #[default]
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

/// Parses `first`, `last`, `longest`, `max:FIELD` or `min:FIELD`.
///
/// # Errors
/// If the text is none of these. The message is a phrase that can follow the text.
pub fn parse_keep(text: &str) -> Result<KeepOrder, String> {
    match (text, text.split_once(':')) {
        ("first", _) => Ok(KeepOrder::First),
        ("last", _) => Ok(KeepOrder::Last),
        ("longest", _) => Ok(KeepOrder::Longest),
        (_, Some(("max", field))) if !field.is_empty() => Ok(KeepOrder::Max(field.to_owned())),
        (_, Some(("min", field))) if !field.is_empty() => Ok(KeepOrder::Min(field.to_owned())),
        _ => Err("give first, last, longest, max:FIELD or min:FIELD".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_rules_parse() {
        assert_eq!(parse_keep("longest"), Ok(KeepOrder::Longest));
        assert_eq!(parse_keep("max:a:b"), Ok(KeepOrder::Max("a:b".to_owned())));
        assert_eq!(parse_keep("min:id"), Ok(KeepOrder::Min("id".to_owned())));
        for text in ["", "max", "max:", "most:x", "First"] {
            assert!(parse_keep(text).is_err(), "{text}");
        }
    }
}
