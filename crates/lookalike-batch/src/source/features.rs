//! Text that comes as features already.

/// The features of a row: strings with a weight each, in the order of the input.
///
/// Read from a list of strings or of `[string, weight]`, from an object `{string: weight}`, or from
/// a string (any CSV cell), which is split at white space. A feature without a weight weighs 1;
/// weights are above 0 and at most [`MOST_WEIGHT`](lookalike::weight::MOST_WEIGHT). The same string may occur more than once.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    pub(super) text: &'a str,
    pub(super) entries: &'a [Entry],
}

/// A feature as a range of the text that holds them all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) weight: f64,
}

impl<'a> Features<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Each feature with its weight.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, f64)> + use<'a> {
        let text = self.text;
        self.entries
            .iter()
            .map(move |entry| (&text[entry.start..entry.end], entry.weight))
    }
}
