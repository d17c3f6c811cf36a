//! Passages: what two texts share, where it stands in each, and how much it was changed.
//!
//! A similarity of .4 hides the paragraph that was taken word for word. This module finds the paragraph:
//!
//! ```text
//!  tokens of both texts ─► anchors ─► chains ─► pieces ─► passages
//!                          equal      across    with      close together
//!                          runs       edits     ends      in both texts
//! ```
//!
//! 1. `grams`: runs of four words or seven characters, as hashes.
//! 2. `anchors`: maximal runs of equal tokens.
//! 3. `chain`: anchors that follow one another in both texts, with what is equal in the gaps between them.
//! 4. `cluster`: pieces that lie close together in both texts, in any order, are one passage.
//!
//! On request, `reworded` finds parts of two texts that share many of their rarer words in whatever order, and
//! `rare_terms` the documents of a corpus that may have them.
//!
//! In a corpus, `index` finds the documents that may share a passage with a text, by winnowed grams; `live_index` does
//! so where documents come and go. `repeats` finds the text that stands in an earlier document already, and
//! `sentence_cuts` what of it can be cut out. `base_text` keeps text that all documents were given out of all passages.
//!
//! Tokens are words, and characters of scripts without spaces, after the normalisation of a recipe
//! ([`SpanTokenizer`](crate::text::SpanTokenizer)); so case, width, punctuation and Chinese script do not count.
//!
//! Guarantees: every run of equal tokens that is at least as long as the settings say lies in passages that are
//! reported, whatever surrounds it, unless the source repeats its grams more than 32 times; what is reported as
//! [`Verbatim`](PassageKind::Verbatim) is equal token by token. Several passages overlap where one place of the
//! document is equal to several places of the source and neither is part of the other.
//!
//! Limits: it knows no synonyms and no translations. A text whose every fourth word was replaced has few equal runs;
//! it may be found as reworded, for which there is no guarantee.

mod anchors;
mod base_text;
mod budget;
mod chain;
mod cluster;
mod grams;
mod index;
mod live_index;
mod places;
mod rare_terms;
mod repeats;
mod reworded;
mod sentence_cuts;
#[cfg(test)]
mod tests;

use std::ops::{AddAssign, Range, Sub};

use crate::error::{Error, Result};
use anchors::{Anchor, GramTable, GramText, find_anchors};
pub use base_text::BaseText;
use base_text::{GivenTokens, PairSide};
pub use budget::PassageBudget;
use budget::StepMeter;
use chain::{ChainBuffers, MeasuredTokens, PieceFinder, sum_widths};
pub use grams::is_character;
use grams::{GramList, anchor_width};
pub use index::{BoilerplateGram, PassageCandidate, PassageIndex, SelectedGram, Winnower};
pub use live_index::LivePassageIndex;
pub use places::{PlaceIndex, to_visible_characters};
pub use rare_terms::{PartTerms, RareTermIndex, find_reworded_candidates};
pub use repeats::{
    CopiedPiece, FirstPlaces, RepeatedRun, RepeatedRuns, RunCounter, RunList, RunPlace,
    join_repeated_runs,
};
use reworded::{RewordedFinder, SlicedText};
pub use sentence_cuts::{TextCut, choose_cuts, name_remaining_places};

/// Shortest length of a passage.
///
/// ```
/// use lookalike::passages::PassageSettings;
///
/// assert_eq!(PassageSettings::default().min_words(), 12);
/// assert!(PassageSettings::new(0).is_err());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageSettings {
    min_words: u32,
    finds_reworded: bool,
}

impl Default for PassageSettings {
    fn default() -> Self {
        Self {
            min_words: 12,
            finds_reworded: false,
        }
    }
}

impl PassageSettings {
    /// Largest value of [`min_words`](Self::min_words).
    pub const MAX_WORDS: u32 = 10_000;

    /// Creates settings for passages of at least `min_words` words, or twice as many characters of a script
    /// without spaces; in a text with both, a word counts as two characters.
    ///
    /// # Errors
    /// [`ErrorKind::Setting`](crate::ErrorKind::Setting) if the number is not in 2..=[`MAX_WORDS`](Self::MAX_WORDS).
    pub fn new(min_words: u32) -> Result<Self> {
        if (2..=Self::MAX_WORDS).contains(&min_words) {
            return Ok(Self {
                min_words,
                ..Self::default()
            });
        }
        Err(Error::setting_error(format!(
            "a passage of at least {min_words} words is out of range: give a number from 2 to {}, for example 12",
            Self::MAX_WORDS
        )))
    }

    /// Sets whether passages are found that share many of their rarer words, but few runs of equal words
    /// ([`Reworded`](PassageKind::Reworded)). By default they are not.
    pub fn with_reworded(self, finds_reworded: bool) -> Self {
        Self {
            finds_reworded,
            ..self
        }
    }

    /// Returns `true` if reworded passages are found.
    pub fn finds_reworded(self) -> bool {
        self.finds_reworded
    }

    /// Returns the smallest number of words of a passage.
    pub fn min_words(self) -> u32 {
        self.min_words
    }

    /// Returns the smallest width of a passage: a word has the width 2, and a character the width 1.
    fn min_width(self) -> u32 {
        2 * self.min_words
    }
}

/// Returns the number of places that lie in at least one range.
pub fn count_covered<N>(mut ranges: Vec<Range<N>>) -> N
where
    N: Copy + Default + Ord + AddAssign + Sub<Output = N>,
{
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut count, mut end) = (N::default(), N::default());
    for range in ranges {
        let start = range.start.max(end);
        if start < range.end {
            count += range.end - start;
            end = range.end;
        }
    }
    count
}

/// The way in which a passage was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassageKind {
    /// Token by token.
    Verbatim,
    /// With changes, in the same order.
    Edited,
    /// With parts in another order.
    Reordered,
    /// With so many changes that only words are equal, not runs of words. Found on request only
    /// ([`PassageSettings::with_reworded`]).
    Reworded,
}

impl PassageKind {
    /// Returns the name of the kind in reports.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Edited => "edited",
            Self::Reordered => "reordered",
            Self::Reworded => "reworded",
        }
    }
}

/// A passage that a document shares with a source. Positions are numbers of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Tokens of the document.
    pub document: Range<usize>,
    /// Tokens of the source.
    pub source: Range<usize>,
    /// Number of tokens that both have, in the same order within each part.
    pub matched: usize,
    /// Number of tokens among them that stand in a base text. They do not make the passage long enough.
    given: usize,
    /// Width of the longest run of equal tokens.
    longest: u32,
    /// The way in which the passage was taken over.
    pub kind: PassageKind,
}

impl Passage {
    /// Returns `true` if the equal tokens that stand in no base text have at least a width. The width of those beside the
    /// longest run is estimated by the average of the document's part.
    fn has_width(&self, document: MeasuredTokens<'_>, min_width: u32) -> bool {
        let width = u64::from(document.width(self.document.clone()));
        let own = self.matched.saturating_sub(self.given) as u64;
        let matched = width * own / self.document.len().max(1) as u64;
        self.longest >= min_width || matched >= u64::from(min_width)
    }

    /// Returns the share of equal tokens in both parts, in 0..=1: twice their number by the tokens of both.
    pub fn similarity(&self) -> f64 {
        2.0 * self.matched as f64 / (self.document.len() + self.source.len()).max(1) as f64
    }
}

/// One text of a comparison.
#[derive(Debug, Default)]
struct PreparedText {
    /// The tokens as they are compared: given ones are masked.
    tokens: Vec<u64>,
    given: GivenTokens,
    sums: Vec<u32>,
    grams: GramList,
    /// Empty unless reworded passages are found.
    slices: SlicedText,
}

impl PreparedText {
    fn set_tokens(
        &mut self,
        tokens: &[u64],
        settings: PassageSettings,
        base: Option<&BaseText>,
        side: PairSide,
    ) {
        self.tokens.clear();
        self.tokens.extend_from_slice(tokens);
        self.given.mask_text(base, &mut self.tokens, side);
        sum_widths(&self.tokens, &mut self.sums);
        self.grams
            .fill_grams(&self.tokens, anchor_width(settings.min_width()));
        if settings.finds_reworded {
            self.slices.set_tokens(&self.tokens);
        }
    }

    /// Returns the bytes of memory.
    fn memory_bytes(&self) -> usize {
        24 * self.tokens.len() + self.given.memory_bytes() + self.slices.memory_bytes()
    }

    fn as_grams(&self) -> GramText<'_> {
        GramText {
            tokens: &self.tokens,
            grams: &self.grams,
        }
    }

    fn as_measured(&self) -> MeasuredTokens<'_> {
        MeasuredTokens {
            tokens: &self.tokens,
            given: &self.given,
            sums: &self.sums,
        }
    }
}

/// A source, ready for any number of documents. It takes some 50 bytes of memory per token.
#[derive(Debug, Default)]
pub struct PassageSource {
    text: PreparedText,
    table: GramTable,
}

impl PassageSource {
    /// Prepares a source by its tokens. Cost: some nanoseconds per token.
    pub fn new(tokens: &[u64], settings: PassageSettings) -> Self {
        let mut source = Self::default();
        source.set_tokens(tokens, settings, None);
        source
    }

    /// Prepares a source as [`new`](Self::new) does. What it has of a base text is no part of any passage.
    pub fn with_base(tokens: &[u64], settings: PassageSettings, base: &BaseText) -> Self {
        let mut source = Self::default();
        source.set_tokens(tokens, settings, Some(base));
        source
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let text = &self.text;
        52 * text.tokens.len() + text.given.memory_bytes() + text.slices.memory_bytes()
    }

    /// Replaces the source by another one and keeps the memory. What it has of a base text, if there is one, is no part
    /// of any passage.
    pub fn set_tokens(
        &mut self,
        tokens: &[u64],
        settings: PassageSettings,
        base: Option<&BaseText>,
    ) {
        let side = PairSide::Source;
        self.text.set_tokens(tokens, settings, base, side);
        self.table.fill_table(&self.text.grams);
    }
}

/// Finds the passages that documents share with sources.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::passages::{PassageFinder, PassageKind, PassageSettings, PassageSource};
/// use lookalike::text::{SpanTokenizer, SpannedTokens};
///
/// let source = "The ferry leaves at seven, and nobody on the island misses it, because the next one leaves at noon.";
/// let document = "As everyone knows, THE FERRY leaves at seven and nobody on the island misses it because of the mail.";
/// let tokenizer = SpanTokenizer::new(&Recipe::default());
/// let (mut a, mut b) = (SpannedTokens::default(), SpannedTokens::default());
/// tokenizer.tokenize_text(source, &mut a)?;
/// tokenizer.tokenize_text(document, &mut b)?;
///
/// let settings = PassageSettings::default();
/// let mut finder = PassageFinder::new(settings);
/// finder.set_document(b.values(), None);
/// let passages = finder.find_passages(&PassageSource::new(a.values(), settings));
/// assert_eq!(passages.len(), 1);
/// assert_eq!(passages[0].kind, PassageKind::Verbatim);
/// assert_eq!(
///     &document[b.byte_range(passages[0].document.clone())],
///     "THE FERRY leaves at seven and nobody on the island misses it because"
/// );
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct PassageFinder {
    settings: PassageSettings,
    document: PreparedText,
    anchors: Vec<Anchor>,
    chains: ChainBuffers,
}

impl PassageFinder {
    /// Creates a finder. It keeps its buffers from pair to pair.
    pub fn new(settings: PassageSettings) -> Self {
        Self {
            settings,
            document: PreparedText::default(),
            anchors: Vec::new(),
            chains: ChainBuffers::default(),
        }
    }

    /// Sets the document by its tokens. What it has of a base text, if there is one, is no part of any passage. Cost:
    /// some nanoseconds per token, and 24 bytes of memory; 32 bytes if it has something of a base text.
    pub fn set_document(&mut self, tokens: &[u64], base: Option<&BaseText>) {
        let side = PairSide::Document;
        self.document.set_tokens(tokens, self.settings, base, side);
    }

    /// Returns the number of tokens of the document that stand in a base text.
    pub fn given_token_count(&self) -> usize {
        let all = 0..self.document.tokens.len();
        self.document.given.count_within(&all)
    }

    /// Returns the passages that the document shares with a source, ascending by document and then by source.
    /// The source must have been prepared with the same settings.
    ///
    /// Cost: some nanoseconds per token of the document, and some microseconds for each edit inside a passage.
    pub fn find_passages(&mut self, source: &PassageSource) -> Vec<Passage> {
        self.find_passages_within(source, &PassageBudget::unlimited())
            .expect("a budget without limits is never used up")
    }

    /// Returns the passages that the document shares with a source, as [`find_passages`](Self::find_passages) does,
    /// within a budget of steps and of memory.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`](crate::ErrorKind::TooCostly) if the budget is used up or the search is cancelled.
    pub fn find_passages_within(
        &mut self,
        source: &PassageSource,
        budget: &PassageBudget,
    ) -> Result<Vec<Passage>> {
        let text_bytes = self.document.memory_bytes() + source.memory_bytes();
        let mut meter = StepMeter::new(budget, text_bytes);
        let passages = self.find_metered(source, &mut meter)?;
        meter.take_pending()?;
        Ok(passages)
    }

    fn find_metered(
        &mut self,
        source: &PassageSource,
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<Passage>> {
        let passages = self.find_copied(source, meter)?;
        let texts = [self.document.as_measured(), source.text.as_measured()];
        let min_width = self.settings.min_width();
        if !self.settings.finds_reworded || !reworded::leave_room(texts, &passages, min_width) {
            return Ok(passages);
        }
        meter.count_steps(self.document.slices.token_count() + source.text.slices.token_count())?;
        let finder = RewordedFinder::new(texts, [&self.document.slices, &source.text.slices]);
        finder.add_regions(min_width, passages, meter)
    }

    fn find_copied(
        &mut self,
        source: &PassageSource,
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<Passage>> {
        let (of_source, document) = (source.text.as_grams(), self.document.as_grams());
        find_anchors(of_source, &source.table, document, &mut self.anchors, meter)?;
        if self.anchors.is_empty() {
            return Ok(Vec::new());
        }
        let (source, document) = (source.text.as_measured(), self.document.as_measured());
        let pieces = PieceFinder { document, source };
        let found = pieces.find_pieces(&self.anchors, &mut self.chains, meter)?;
        let mut passages = Vec::new();
        cluster::append_passages(document, source, found, &mut passages, meter)?;
        passages.retain(|passage| passage.has_width(document, self.settings.min_width()));
        passages.sort_by_key(|passage| (passage.document.start, passage.source.start));
        meter.count_steps(PieceFinder::EXTENSION_STEPS * passages.len() as u64)?;
        extend_passages(&pieces, &mut passages);
        Ok(passages)
    }
}

/// Extends passages across edits at both ends, but not into the passages beside them.
fn extend_passages(pieces: &PieceFinder<'_>, passages: &mut [Passage]) {
    let mut before = 0;
    for at in 0..passages.len() {
        let next = passages.get(at + 1).map(|passage| passage.document.start);
        let after = next.unwrap_or(pieces.document.tokens.len());
        pieces.extend_passage(&mut passages[at], before..after);
        before = before.max(passages[at].document.end);
    }
}
