//! Ready-made features, given in place of a text.

/// The features of a row: strings, each with a weight, in input order.
///
/// They are read from a list of strings or of `[string, weight]` pairs, from an object `{string:
/// weight}`, or from a string (for example a CSV cell), which is split at white space. The weight
/// defaults to 1; a weight is above 0 and at most [`MOST_WEIGHT`](lookalike::text::weight::MOST_WEIGHT). A
/// string may occur more than once.
#[derive(Debug, Clone, Copy)]
pub struct RowFeatures<'a> {
    pub(super) text: &'a str,
    pub(super) entries: &'a [FeatureRange],
}

/// A feature as a range of the text that holds all features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FeatureRange {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) weight: f64,
}

impl<'a> RowFeatures<'a> {
    /// Returns the number of features.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there are no features.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an iterator over the features and their weights.
    pub fn iter_weighted(&self) -> impl ExactSizeIterator<Item = (&'a str, f64)> + use<'a> {
        let text = self.text;
        self.entries
            .iter()
            .map(move |entry| (&text[entry.start..entry.end], entry.weight))
    }
}
