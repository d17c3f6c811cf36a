//! Bytes and counts that keep a report small.
//!
//! | part | budget |
//! |---|---|
//! | texts and their differences | 6 MB |
//! | rows of clusters | 6 MB |
//! | rows of removed documents | 6 MB |
//! | forms with the values of their documents | 0.8 MB |
//! | everything else: counts, names, the plan, bad rows | less than 1 MB |
//! | the page itself | 0.2 MB |
//!
//! The sum stays below the 20 MB that a report may have.

use lookalike_options::shown_text::shorten_text;

/// Bytes of texts and differences, as JSON.
pub(super) const TEXT_BYTES: usize = 6_000_000;

/// Bytes of the rows of clusters, as JSON.
pub(super) const CLUSTER_BYTES: usize = 6_000_000;

/// Bytes of the rows of removed documents, as JSON.
pub(super) const REMOVAL_BYTES: usize = 6_000_000;

/// Removals nearest to the threshold that are listed, most of them with texts.
pub(super) const NEAREST_REMOVALS: usize = 500;

/// Largest clusters whose texts are shown, and members of each.
pub(super) const SHOWN_CLUSTERS: usize = 40;
pub(super) const SHOWN_MEMBERS: usize = 8;

/// Removals equal after normalisation that are read to find some with different texts, and pairs shown of these.
pub(super) const EQUAL_TEXTS_READ: usize = 2000;
pub(super) const EQUAL_TEXTS_SHOWN: usize = 60;

/// Pairs with texts from each twentieth of the similarity.
pub(super) const PAIRS_OF_BAND: usize = 25;

/// Bytes of the forms of the run with their documents, as JSON.
pub(super) const FORM_BYTES: usize = 500_000;

/// Bytes of the possible forms with their documents, as JSON.
pub(super) const POSSIBLE_FORM_BYTES: usize = 300_000;

/// Forms of the run that are listed.
pub(super) const LISTED_FORMS: usize = 300;

/// Groups of removals in which possible forms are looked for.
pub(super) const POSSIBLE_FORM_GROUPS: usize = 60;

/// Documents of a form whose values are listed.
pub(super) const LISTED_DOCUMENTS_PER_FORM: usize = 40;

/// Characters of a value that are shown.
pub(super) const VALUE_CHARACTERS: usize = 200;

/// Documents that are read again to find their forms, if their forms are not in memory.
pub(super) const FORM_DOCUMENTS_READ: usize = 20_000;

/// Characters of a text that are shown.
pub(super) const TEXT_CHARACTERS: usize = 8000;

/// Characters of an id or a name that are shown.
pub(super) const NAME_CHARACTERS: usize = 200;

/// Returns the bytes of a string in the JSON of a page.
pub(in crate::run) fn count_json_bytes(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 | b'<' => 6,
        _ => 1,
    });
    // The quotes and a comma.
    3 + escaped.sum::<usize>()
}

/// Returns the digits of a number and a comma.
pub(super) fn count_digits(number: u64) -> usize {
    2 + number.checked_ilog10().unwrap_or(0) as usize
}

/// Returns the text, or its beginning and an ellipsis.
pub(in crate::run) fn shorten_name(text: &str) -> String {
    shorten_text(text, NAME_CHARACTERS)
}

/// Bytes of names in rows of passages.
const NAME_BYTES: usize = 5_000_000;

/// Counts the bytes of names in rows.
#[derive(Default)]
pub(in crate::run) struct NameBudget {
    bytes: usize,
}

impl NameBudget {
    /// Counts the bytes of names. Returns `false` if the budget is spent.
    pub(in crate::run) fn count_names(&mut self, names: &[std::sync::Arc<str>]) -> bool {
        let bytes = names
            .iter()
            .map(|name| count_json_bytes(&shorten_name(name)) + 40);
        self.bytes += bytes.sum::<usize>();
        self.bytes <= NAME_BYTES
    }
}
