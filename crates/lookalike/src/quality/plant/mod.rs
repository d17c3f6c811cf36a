//! Edits of known kind and strength, planted into documents.
//!
//! People decide which texts are near-duplicates in practice. The effect of edits of known kind and strength on a
//! method can be measured on any corpus. An [`PlantedEdit`] changes a text as reposting, copying and
//! converting do, [`EditPlanter::plant_edits`] applies one or several, and whoever calls compares the result
//! with the original under his recipe. [`EditPlanter::fill_form`] makes texts that share a frame and say different
//! things. [`NegativeSampler`] finds pairs of the same corpus that are no
//! near-duplicates, so that what a method finds wrongly can be measured too.
//!
//! # What is guaranteed
//!
//! - An edited text follows from seed, document id, edits, text and [`TextStock`] alone, not from the
//!   order in which documents are edited or the number of threads.
//! - A planted text differs from the original. An edit that would change nothing, because the text
//!   has no number to change or too few words for a hundredth of them, gives none.
//! - A strength is kept to the nearest whole word or sentence; never is one edited where the
//!   strength means none.
//!
//! # What it does not do
//!
//! No paraphrases and no translations. Words are those of other documents of the corpus, so a
//! replaced word is a plausible word in an implausible place. Traditional characters are chosen
//! one by one, as simple converters do.
//!
//! Cost: some tens of nanoseconds a byte of text.

mod benchmark_items;
mod edits;
mod filled_forms;
mod negatives;
pub(crate) mod random;
mod stock;
mod structure;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::error::{Error, Result};
pub use benchmark_items::{ItemDecoy, ItemForm};
pub use negatives::{NegativeCandidates, NegativeOptions, NegativePair, NegativeSampler};
use random::SplitMix64;
pub use stock::TextStock;

/// The kind of an edit.
///
/// ```
/// use lookalike::quality::plant::EditKind;
///
/// assert_eq!(EditKind::from_name("delete-words")?, EditKind::DeleteWords);
/// assert!(EditKind::from_name("paraphrase").is_err());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EditKind {
    /// Leaves out a share of the characters at the beginning.
    TruncateHead,
    /// Leaves out a share of the characters at the end.
    TruncateTail,
    /// Puts a passage of another document before the text: one that several documents begin or end
    /// with, where there are such.
    BoilerplateBefore,
    /// Puts such a passage behind the text.
    BoilerplateAfter,
    /// Puts the paragraphs into another order.
    ShuffleParagraphs,
    /// Puts the sentences into another order.
    ShuffleSentences,
    /// Deletes a share of the sentences.
    DeleteSentences,
    /// Inserts as many sentences of other documents as a share of those there are.
    InsertSentences,
    /// Replaces a share of the sentences by those of other documents.
    ReplaceSentences,
    /// Deletes a share of the words; in scripts written without spaces, of the characters.
    DeleteWords,
    /// Inserts as many words of other documents as a share of those there are.
    InsertWords,
    /// Replaces a share of the words by those of other documents.
    ReplaceWords,
    /// Writes simplified Chinese characters as traditional ones, the first form of each by code
    /// point.
    Traditional,
    /// Writes traditional Chinese characters as simplified ones.
    Simplified,
    /// Writes ASCII characters and spaces in full width.
    FullWidth,
    /// Writes full-width characters and spaces in ASCII.
    HalfWidth,
    /// Replaces half of the punctuation marks by others.
    Punctuation,
    /// Changes spaces between Chinese characters and words in Latin letters, and doubles a quarter
    /// of the other spaces.
    Spacing,
    /// Puts zero-width characters behind one letter in twenty.
    ZeroWidth,
    /// Composes characters and their marks (NFC).
    Nfc,
    /// Decomposes characters into letters and marks (NFD).
    Nfd,
    /// Upper case throughout.
    UpperCase,
    /// Lower case throughout.
    LowerCase,
    /// Mistypes a share of the letters: swapped, doubled, dropped or wrong.
    Typos,
    /// Wraps the paragraphs in HTML and escapes the text.
    Html,
    /// Writes the text in Markdown: a heading, paragraphs, emphasis.
    Markdown,
    /// Changes one digit of one number or date.
    ChangedNumber,
}

/// Shares in thousandths, weakest first; kinds that know no strength have the share 0.
const NO_STRENGTH: &[u16] = &[0];
const OF_ENDS: &[u16] = &[100, 300, 500];
const OF_PARTS: &[u16] = &[10, 50, 100, 200];
const OF_LETTERS: &[u16] = &[5, 10, 20, 50];

const EDIT_KINDS: [(EditKind, &str, &[u16]); 27] = [
    (EditKind::TruncateHead, "truncate-head", OF_ENDS),
    (EditKind::TruncateTail, "truncate-tail", OF_ENDS),
    (
        EditKind::BoilerplateBefore,
        "boilerplate-before",
        NO_STRENGTH,
    ),
    (EditKind::BoilerplateAfter, "boilerplate-after", NO_STRENGTH),
    (
        EditKind::ShuffleParagraphs,
        "shuffle-paragraphs",
        NO_STRENGTH,
    ),
    (EditKind::ShuffleSentences, "shuffle-sentences", NO_STRENGTH),
    (EditKind::DeleteSentences, "delete-sentences", OF_PARTS),
    (EditKind::InsertSentences, "insert-sentences", OF_PARTS),
    (EditKind::ReplaceSentences, "replace-sentences", OF_PARTS),
    (EditKind::DeleteWords, "delete-words", OF_PARTS),
    (EditKind::InsertWords, "insert-words", OF_PARTS),
    (EditKind::ReplaceWords, "replace-words", OF_PARTS),
    (EditKind::Traditional, "traditional", NO_STRENGTH),
    (EditKind::Simplified, "simplified", NO_STRENGTH),
    (EditKind::FullWidth, "full-width", NO_STRENGTH),
    (EditKind::HalfWidth, "half-width", NO_STRENGTH),
    (EditKind::Punctuation, "punctuation", NO_STRENGTH),
    (EditKind::Spacing, "spacing", NO_STRENGTH),
    (EditKind::ZeroWidth, "zero-width", NO_STRENGTH),
    (EditKind::Nfc, "nfc", NO_STRENGTH),
    (EditKind::Nfd, "nfd", NO_STRENGTH),
    (EditKind::UpperCase, "upper-case", NO_STRENGTH),
    (EditKind::LowerCase, "lower-case", NO_STRENGTH),
    (EditKind::Typos, "typos", OF_LETTERS),
    (EditKind::Html, "html", NO_STRENGTH),
    (EditKind::Markdown, "markdown", NO_STRENGTH),
    (EditKind::ChangedNumber, "changed-number", NO_STRENGTH),
];

impl EditKind {
    /// All kinds, in the order of reports.
    pub fn all_kinds() -> impl Iterator<Item = Self> {
        EDIT_KINDS.iter().map(|&(kind, ..)| kind)
    }

    /// The name in reports and on the command line, such as `delete-words`.
    pub fn name(self) -> &'static str {
        EDIT_KINDS[self as usize].1
    }

    /// The kind of a name.
    ///
    /// # Errors
    /// If there is none, with the names that there are.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = EDIT_KINDS.iter().find(|(_, known, _)| *known == name);
        found.map(|&(kind, ..)| kind).ok_or_else(|| {
            let names: Vec<_> = EDIT_KINDS.iter().map(|(_, name, _)| *name).collect();
            Error::setting_error(format!(
                "there is no kind of edit '{name}': give one of {}",
                names.join(", ")
            ))
        })
    }

    /// The strengths at which the kind is planted, weakest first.
    fn edit_strengths(self) -> &'static [u16] {
        EDIT_KINDS[self as usize].2
    }
}

/// One edit: a kind and how much of a text it changes.
///
/// ```
/// use lookalike::quality::plant::PlantedEdit;
///
/// let edits = PlantedEdit::parse_edits("delete-words:10%")?;
/// assert_eq!((edits.len(), edits[0].edit_strength()), (1, Some(0.1)));
/// // Without a strength, the name stands for all strengths of the kind.
/// assert_eq!(PlantedEdit::parse_edits("delete-words")?.len(), 4);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlantedEdit {
    kind: EditKind,
    /// In thousandths; 0 if the kind knows no strength.
    share: u16,
}

impl PlantedEdit {
    /// Every kind at every strength, in the order of reports.
    pub fn all_edits() -> Vec<Self> {
        EditKind::all_kinds()
            .flat_map(Self::edits_of_kind)
            .collect()
    }

    /// A kind at every strength, weakest first.
    pub fn edits_of_kind(kind: EditKind) -> impl Iterator<Item = Self> {
        kind.edit_strengths()
            .iter()
            .map(move |&share| Self { kind, share })
    }

    /// The edits that a name means: `typos` all strengths of a kind, `typos:2%` one of them.
    ///
    /// # Errors
    /// If there is no such kind, or not at this strength; with what there is.
    pub fn parse_edits(name: &str) -> Result<Vec<Self>> {
        let kind = name.split_once(':').map_or(name, |(kind, _)| kind);
        let all: Vec<_> = Self::edits_of_kind(EditKind::from_name(kind)?).collect();
        if kind == name {
            return Ok(all);
        }
        let found = all.iter().find(|edit| edit.to_string() == name);
        found.map(|&edit| vec![edit]).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(Self::to_string).collect();
            let others = match &names[..] {
                [only] if only == kind => ", which has no strength".to_owned(),
                names => format!(" or one of {}", names.join(", ")),
            };
            Error::setting_error(format!("there is no edit '{name}': give {kind}{others}"))
        })
    }

    /// Returns the kind of the edit.
    pub fn edit_kind(self) -> EditKind {
        self.kind
    }

    /// The share of characters, words, sentences or letters that it changes, above 0 and at most .5;
    /// None if the kind knows no strength.
    pub fn edit_strength(self) -> Option<f64> {
        (self.share > 0).then(|| f64::from(self.share) / 1000.0)
    }

    /// Returns how many of `count` parts it changes.
    fn changed_count(self, count: usize) -> usize {
        (count * usize::from(self.share) + 500) / 1000
    }
}

impl fmt::Display for PlantedEdit {
    /// Such as `delete-words:5%`, or `nfd` where there is no strength.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share {
            0 => formatter.write_str(self.kind.name()),
            share if share % 10 == 0 => write!(formatter, "{}:{}%", self.kind.name(), share / 10),
            share => {
                let percent = f64::from(share) / 10.0;
                write!(formatter, "{}:{percent}%", self.kind.name())
            }
        }
    }
}

/// Plants edits that follow from a seed.
///
/// ```
/// use lookalike::quality::plant::{PlantedEdit, EditKind, EditPlanter, TextStock};
///
/// let planter = EditPlanter::new(7, TextStock::new(["One old lamp burns.", "Two boats left at dawn."]));
/// let number = PlantedEdit::edits_of_kind(EditKind::ChangedNumber).next().unwrap();
/// let text = "The ferry of 7:15 was late.";
/// let planted = planter.plant_edits("doc-1", text, &[number]).unwrap();
/// assert_eq!(planted.len(), text.len());
/// assert_ne!(planted, text);
/// // What has no number keeps none.
/// assert_eq!(planter.plant_edits("doc-2", "No number here.", &[number]), None);
/// ```
#[derive(Clone, Debug)]
pub struct EditPlanter {
    seed: u64,
    stock: TextStock,
}

impl EditPlanter {
    /// A planter that takes what it inserts from a stock.
    pub fn new(seed: u64, stock: TextStock) -> Self {
        Self { seed, stock }
    }

    /// The text with the edits applied one after another; None if one of them changes nothing, or
    /// if all together give the text back or leave nothing but white space.
    pub fn plant_edits(&self, id: &str, text: &str, edits: &[PlantedEdit]) -> Option<String> {
        let mut edited = text.to_owned();
        for (at, edit) in edits.iter().enumerate() {
            let mut random = SplitMix64::from_document(self.seed, id, &format!("{at} {edit}"));
            let after = edits::apply_edit(*edit, &edited, &self.stock, &mut random)?;
            if after == edited || after.trim().is_empty() {
                return None;
            }
            edited = after;
        }
        (edited != text).then_some(edited)
    }

    /// `count` edits of different kinds for a document, drawn from a list that must hold as many
    /// kinds; fewer if it does not.
    pub fn draw_edits(&self, id: &str, count: usize, among: &[PlantedEdit]) -> Vec<PlantedEdit> {
        let mut random = SplitMix64::from_document(self.seed, id, &format!("draw {count}"));
        let mut left = among.to_vec();
        let mut drawn: Vec<PlantedEdit> = Vec::new();
        while drawn.len() < count && !left.is_empty() {
            let edit = left[random.next_below(left.len())];
            left.retain(|other| other.kind != edit.kind);
            drawn.push(edit);
        }
        drawn
    }

    /// The edits of a list in an order of the document's own, so that taking the first few of every
    /// document takes all of them equally often.
    pub fn order_edits(&self, id: &str, among: &[PlantedEdit]) -> Vec<PlantedEdit> {
        let mut order = among.to_vec();
        SplitMix64::from_document(self.seed, id, "order").shuffle_list(&mut order);
        order
    }

    /// A number by which documents are drawn: those with the smallest are a sample.
    pub fn document_rank(&self, id: &str) -> u64 {
        SplitMix64::from_document(self.seed, id, "rank").next_bits()
    }
}
