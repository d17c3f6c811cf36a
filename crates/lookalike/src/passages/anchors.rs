//! Anchors: maximal runs of equal tokens in two texts.
//!
//! The grams of the source are put into a table. The document is scanned from its start: of all places of the
//! source that have the gram at hand, the one with the longest run of equal tokens becomes an anchor, and the scan
//! goes on with the first gram that reaches beyond this run.
//!
//! Guarantee: every token of a run of equal tokens with at least the width of a gram lies in an anchor, except that
//! of a gram that the source repeats more than [`MAX_OCCURRENCES`] times, only the first of these places and the
//! one that continues the last anchor are tried.
//!
//! Cost: linear in both texts, because a token of the document is compared with at most [`MAX_OCCURRENCES`] places,
//! and an anchor extends backwards into the one before it by at most [`MAX_OVERLAP`] tokens.

use super::budget::StepMeter;
use super::grams::GramList;
use crate::error::Result;

/// Number of places of one gram that are tried in a source that repeats itself.
pub(super) const MAX_OCCURRENCES: u32 = 32;

/// Largest number of tokens by which an anchor may begin before the end of the one before it.
const MAX_OVERLAP: usize = 64;

/// A run of equal tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// First token in the document.
    pub(super) document: usize,
    /// First token in the source.
    pub(super) source: usize,
    /// Number of tokens.
    pub(super) length: usize,
}

impl Anchor {
    pub(super) fn document_end(&self) -> usize {
        self.document + self.length
    }

    pub(super) fn source_end(&self) -> usize {
        self.source + self.length
    }

    /// Returns the anchor without its first tokens.
    fn without_head(self, tokens: usize) -> Self {
        Self {
            document: self.document + tokens,
            source: self.source + tokens,
            length: self.length - tokens,
        }
    }
}

/// End of a list in a [`GramTable`].
const LIST_END: u32 = u32::MAX;

/// The places of every gram of a source.
#[derive(Debug, Default)]
pub(super) struct GramTable {
    /// First distinct gram by the upper bits of its hash.
    heads: Vec<u32>,
    /// Number of bits by which a hash is shifted to become an index of `heads`.
    shift: u32,
    entries: Vec<GramEntry>,
}

/// The facts about the gram that begins with a token.
#[derive(Clone, Copy, Debug)]
struct GramEntry {
    /// Next distinct gram with the same head.
    next_distinct: u32,
    /// Next place of the same gram.
    next_equal: u32,
    /// For the first place of a gram: its last place in the table, and the number of places.
    last_equal: u32,
    count: u32,
}

impl GramTable {
    /// Fills the table with the grams of a source.
    pub(super) fn fill_table(&mut self, grams: &GramList) {
        let bits = (2 * grams.hashes.len())
            .next_power_of_two()
            .trailing_zeros()
            .max(1);
        self.shift = 64 - bits;
        self.heads.clear();
        self.heads.resize(1 << bits, LIST_END);
        self.entries.clear();
        self.entries.reserve(grams.hashes.len());
        for (at, &hash) in grams.hashes.iter().enumerate() {
            self.add_place(grams, at as u32, hash);
        }
    }

    #[inline]
    fn add_place(&mut self, grams: &GramList, at: u32, hash: u64) {
        let first = self.first_place(grams, hash);
        let head = &mut self.heads[(hash >> self.shift) as usize];
        let mut entry = GramEntry {
            next_distinct: *head,
            next_equal: LIST_END,
            last_equal: at,
            count: 1,
        };
        match first {
            None => *head = at,
            Some(first) => {
                entry.next_distinct = LIST_END;
                let known = &mut self.entries[first as usize];
                if known.count < MAX_OCCURRENCES {
                    known.count += 1;
                    let last = std::mem::replace(&mut known.last_equal, at);
                    self.entries[last as usize].next_equal = at;
                }
            }
        }
        self.entries.push(entry);
    }

    /// Returns the first place of a gram.
    #[inline]
    fn first_place(&self, grams: &GramList, hash: u64) -> Option<u32> {
        let mut at = self.heads[(hash >> self.shift) as usize];
        while at != LIST_END {
            if grams.hashes[at as usize] == hash {
                return Some(at);
            }
            at = self.entries[at as usize].next_distinct;
        }
        None
    }

    /// Returns the places of a gram, ascending.
    #[inline]
    fn places(&self, grams: &GramList, hash: u64) -> impl Iterator<Item = usize> {
        let after = |&at: &u32| {
            let next = self.entries[at as usize].next_equal;
            (next != LIST_END).then_some(next)
        };
        std::iter::successors(self.first_place(grams, hash), after).map(|at| at as usize)
    }
}

/// One text of a pair.
#[derive(Clone, Copy)]
pub(super) struct GramText<'a> {
    pub(super) tokens: &'a [u64],
    pub(super) grams: &'a GramList,
}

/// Bytes of memory for each anchor: the anchor, its place in chains, and the piece and the passage that it may
/// become, in lists that grow.
pub(super) const BYTES_PER_ANCHOR: usize = 512;

/// Replaces `anchors` by those of a document and a source, ascending by document. `table` holds the grams of the
/// source.
///
/// # Errors
/// If the budget of the meter is used up.
pub(super) fn find_anchors(
    source: GramText<'_>,
    table: &GramTable,
    document: GramText<'_>,
    anchors: &mut Vec<Anchor>,
    meter: &mut StepMeter<'_>,
) -> Result<()> {
    anchors.clear();
    let mut at = 0;
    while at < document.grams.hashes.len() {
        let (found, compared) = find_longest(source, table, document, at, anchors.last());
        meter.count_steps(1 + compared)?;
        let Some(anchor) = found else {
            at += 1;
            continue;
        };
        at = next_gram(&document.grams.ends, at, anchor.document_end());
        push_anchor(
            anchors,
            extend_backwards(source.tokens, document.tokens, anchor, anchors.last()),
        );
        meter.check_list(anchors.len(), BYTES_PER_ANCHOR)?;
    }
    Ok(())
}

/// Returns the gram with which the scan goes on after an anchor that began with the gram at `at`: the first one that
/// ends behind the anchor, or the one before it where a run can end behind the anchor without such a gram. Of three
/// words and two characters, for example, only the first four tokens have the width of a gram.
fn next_gram(ends: &[u32], at: usize, anchor_end: usize) -> usize {
    let end_of = |gram: usize| ends.get(gram).map(|&end| end as usize);
    let mut next = at + 1;
    while end_of(next).is_some_and(|end| end <= anchor_end) {
        next += 1;
    }
    let is_wide = end_of(next).is_none_or(|end| end > anchor_end + 1);
    if is_wide && next - 1 > at {
        next - 1
    } else {
        next
    }
}

/// Returns the longest run of equal tokens that begins with the gram at `at` and ends behind the anchor before it; of
/// several, the one that continues that anchor, or else the first in the source. Also returns the steps that this
/// took.
fn find_longest(
    source: GramText<'_>,
    table: &GramTable,
    document: GramText<'_>,
    at: usize,
    before: Option<&Anchor>,
) -> (Option<Anchor>, u64) {
    let least_end = before.map_or(0, |before| before.document_end() + 1);
    let least_end = least_end.max(document.grams.ends[at] as usize);
    let tokens = &document.tokens[at..];
    let continued = before.and_then(|before| (before.source + at).checked_sub(before.document));
    let continued = continued.filter(|&place| place < source.tokens.len());
    // Length and place of the best run so far.
    let mut best = (least_end - at - 1, None);
    let mut steps = 0;
    for place in continued
        .into_iter()
        .chain(table.places(source.grams, document.grams.hashes[at]))
    {
        steps += 1;
        let run = &source.tokens[place..];
        // A longer run has this token, too, and most places do not.
        if run.get(best.0) != tokens.get(best.0) || run.len() <= best.0 {
            continue;
        }
        let length = count_equal(run, tokens);
        steps += length as u64 / TOKENS_PER_STEP;
        if length > best.0 {
            best = (length, Some(place));
        }
    }
    let longest = best.1.map(|place| Anchor {
        document: at,
        source: place,
        length: best.0,
    });
    (longest, steps)
}

/// Tokens of two runs that are compared in one step.
const TOKENS_PER_STEP: u64 = 8;

/// Returns the number of equal tokens at the starts of both.
#[inline]
fn count_equal(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn extend_backwards(
    source: &[u64],
    document: &[u64],
    anchor: Anchor,
    before: Option<&Anchor>,
) -> Anchor {
    let least = before.map_or(0, |before| {
        before.document_end().saturating_sub(MAX_OVERLAP)
    });
    let room = (anchor.document.saturating_sub(least)).min(anchor.source);
    let heads = source[..anchor.source]
        .iter()
        .rev()
        .zip(document[..anchor.document].iter().rev());
    let equal = heads.take(room).take_while(|(a, b)| a == b).count();
    Anchor {
        document: anchor.document - equal,
        source: anchor.source - equal,
        length: anchor.length + equal,
    }
}

/// Adds an anchor and removes those before it that it contains.
fn push_anchor(anchors: &mut Vec<Anchor>, anchor: Anchor) {
    while anchors
        .last()
        .is_some_and(|other| other.document >= anchor.document)
    {
        anchors.pop();
    }
    anchors.push(anchor);
}

/// Returns the second of two anchors without the tokens that overlap the first one in either text; `None` if
/// nothing remains, or if it does not follow the first in both.
pub(super) fn trim_overlap(first: &Anchor, second: &Anchor) -> Option<Anchor> {
    if second.document <= first.document || second.source <= first.source {
        return None;
    }
    let overlap = first.document_end().saturating_sub(second.document);
    let overlap = overlap.max(first.source_end().saturating_sub(second.source));
    (overlap < second.length).then(|| second.without_head(overlap))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::PassageBudget;
    use super::super::grams::{anchor_width, token_width};
    use super::*;

    fn anchors_of(source: &[u64], document: &[u64], width: u32) -> Vec<Anchor> {
        let (mut of_source, mut of_document) = (GramList::default(), GramList::default());
        of_source.fill_grams(source, anchor_width(width));
        of_document.fill_grams(document, anchor_width(width));
        let mut table = GramTable::default();
        table.fill_table(&of_source);
        let text = |tokens, grams| GramText { tokens, grams };
        let mut anchors = Vec::new();
        let source = text(source, &of_source);
        let document = text(document, &of_document);
        let budget = PassageBudget::unlimited();
        let mut meter = StepMeter::new(&budget, 0);
        find_anchors(source, &table, document, &mut anchors, &mut meter).unwrap();
        anchors
    }

    /// Few words and few characters.
    fn tokens() -> impl Strategy<Value = Vec<u64>> {
        let token = prop_oneof![3 => 0..3u64, 1 => (1 << 40)..(1 << 40) + 2u64];
        proptest::collection::vec(token, 0..120)
    }

    proptest! {
        /// Anchors are equal runs, and cover every token of every equal run that a plain scan finds.
        #[test]
        fn anchors_cover_all_equal_runs(
            source in tokens(),
            document in tokens(),
        ) {
            let anchors = anchors_of(&source, &document, 5);
            let mut covered = vec![false; document.len()];
            for it in &anchors {
                prop_assert_eq!(
                    &source[it.source..it.source_end()],
                    &document[it.document..it.document_end()]
                );
                covered[it.document..it.document_end()].fill(true);
            }
            prop_assert!(anchors.windows(2).all(|two| two[0].document < two[1].document));
            for at in 0..document.len() {
                for place in 0..source.len() {
                    let equal = count_equal(&source[place..], &document[at..]);
                    let width: u32 = document[at..at + equal].iter().map(|&it| token_width(it)).sum();
                    if width >= 5 {
                        prop_assert!(covered[at..at + equal].iter().all(|&it| it), "{at} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn repetitive_texts_have_few_anchors() {
        let same = vec![7; 20_000];
        assert_eq!(anchors_of(&same, &same, 10).len(), 1);
        let sentence: Vec<u64> = (0..15).collect();
        let repeated = sentence.repeat(2000);
        assert_eq!(anchors_of(&repeated, &repeated, 10).len(), 1);
        let words: Vec<u64> = (0..9).map(|at| at << 40).collect();
        let parted = |by: u64| [&words[..], &[by]].concat().repeat(2000);
        let anchors = anchors_of(&parted(1), &parted(2), 10);
        assert_eq!(anchors.len(), 2000);
        assert!(anchors.iter().all(|anchor| anchor.length == 9));
        assert_eq!(words.iter().map(|&it| token_width(it)).sum::<u32>(), 17);
    }
}
