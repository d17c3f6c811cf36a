//! What a person may choose of a run.

use lookalike::Recipe;
use lookalike::matching::CopyPairs;
use lookalike::plan;

use crate::rule::Spelling;
use crate::sink::Output;
use crate::source::{ReadOptions, Source};

/// Which document of a group comes first and is kept: the total order of a run. Ties are broken by
/// position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keep {
    /// The one read first.
    #[default]
    First,
    /// The one read last.
    Last,
    /// The one with the most characters.
    Longest,
    /// The one with the largest value of a field: numbers below strings, strings by their bytes; a
    /// document without the field comes last. The field of the ids always counts as strings.
    Max(String),
    /// The one with the smallest value of a field, ordered in the same way; a document without the
    /// field comes last.
    Min(String),
}

/// How far apart in time two documents may be to match.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The largest difference that counts, in seconds.
    pub seconds: f64,
    /// The field with the time: a number (seconds since 1970) or an ISO 8601 date or date and time.
    pub field: String,
}

/// What a person may choose of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How texts become features and sketches.
    pub recipe: Recipe,
    /// How candidates are found and checked.
    pub matching: plan::Settings,
    /// How inputs are read. `fields.extra` is filled by the run itself.
    pub read: ReadOptions,
    /// Which document of a group is kept.
    pub keep: Keep,
    /// Documents match only if they have equal values of this field.
    pub within: Option<String>,
    /// Documents match only if they are near in time.
    pub window: Option<Window>,
    /// How many threads work, from 1.
    pub threads: usize,
    /// Stop at the first bad row.
    pub strict: bool,
    /// Estimate what the run misses.
    pub audit: Option<AuditSettings>,
    /// How messages spell these settings.
    pub spelling: Spelling,
}

/// How a run is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// How many documents are drawn, from 1. If none is given, one in eighty as estimated from the
    /// first block, from 500 to 4,000, and 2,000 where the size of the input is not known.
    pub documents: Option<usize>,
    /// What draws them.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            matching: plan::Settings::default(),
            read: ReadOptions::default(),
            keep: Keep::default(),
            within: None,
            window: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            strict: false,
            audit: None,
            spelling: Spelling::default(),
        }
    }
}

/// What a dedup run writes; nothing is required.
#[derive(Debug, Clone, Default)]
pub struct DedupOutputs {
    /// The kept rows as they were (or, with `annotate`, all rows with added fields).
    pub kept: Option<Output>,
    /// All rows, with the fields `cluster`, `duplicate_of` and `similarity`.
    pub annotate: bool,
    /// A table of the removed documents: `id, kept, similarity, method, threshold, cluster, source,
    /// row, kept_source, kept_row`. Rows count from 1 within their source.
    pub removed: Option<Output>,
    /// A table of the documents of clusters: `id, cluster, representative, similarity, kept, source,
    /// row`.
    pub clusters: Option<Output>,
    /// Adds `component` to the table of clusters and counts components: documents connected by
    /// verified pairs.
    pub components: bool,
    /// The rows that could not be used, byte for byte.
    pub rejected: Option<Output>,
}

/// What a pairs run writes.
#[derive(Debug, Clone)]
pub struct PairsOutputs {
    /// A table of pairs: `a, b, similarity, a_source, a_row, b_source, b_row`. Rows count from 1
    /// within their source.
    pub pairs: Output,
    /// Which pairs of equal texts are listed.
    pub copies: CopyPairs,
    /// The rows that could not be used, byte for byte.
    pub rejected: Option<Output>,
}

/// The inputs of a run.
#[derive(Debug, Clone, Default)]
pub struct RunInputs {
    /// The documents.
    pub documents: Source,
    /// Documents that come before all others and count as kept whatever they match; they are never
    /// written.
    pub against: Source,
}

/// A rule as typed: `first`, `last`, `longest`, `max:FIELD` or `min:FIELD`.
///
/// # Errors
/// Anything else, in words that follow what was typed.
pub fn parse_keep(text: &str) -> Result<Keep, String> {
    match (text, text.split_once(':')) {
        ("first", _) => Ok(Keep::First),
        ("last", _) => Ok(Keep::Last),
        ("longest", _) => Ok(Keep::Longest),
        (_, Some(("max", field))) if !field.is_empty() => Ok(Keep::Max(field.to_owned())),
        (_, Some(("min", field))) if !field.is_empty() => Ok(Keep::Min(field.to_owned())),
        _ => Err("give first, last, longest, max:FIELD or min:FIELD".to_owned()),
    }
}

/// A length of time as typed, in seconds: a number with the unit s, m, h, d or w.
///
/// # Errors
/// Anything else, in words that follow what was typed.
pub fn parse_duration(text: &str) -> Result<f64, String> {
    let wrong = || "give a number with a unit: 90s, 15m, 36h, 2d or 1w".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        'w' => 604_800.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .map_err(|_| wrong())?;
    Some(number * seconds)
        .filter(|total| total.is_finite() && *total >= 0.0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_seconds() {
        let cases = [
            ("90s", 90.0),
            ("15m", 900.0),
            ("36h", 129_600.0),
            ("2d", 172_800.0),
            ("1w", 604_800.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        assert_eq!(parse_duration("1.5h"), Ok(5400.0));
        for text in [
            "", "d", "2", "2x", "-1d", "infd", "NaNs", "2 days", "1e400s", "2日",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keep_rules() {
        assert_eq!(parse_keep("longest"), Ok(Keep::Longest));
        assert_eq!(parse_keep("max:a:b"), Ok(Keep::Max("a:b".to_owned())));
        assert_eq!(parse_keep("min:id"), Ok(Keep::Min("id".to_owned())));
        for text in ["", "max", "max:", "most:x", "First"] {
            assert!(parse_keep(text).is_err(), "{text}");
        }
    }
}
