//! Chains: anchors that follow one another in both texts, joined across small gaps.
//!
//! A gap is what an edit leaves between two anchors. It is bridged if it is short, or if its two sides still share
//! enough tokens in order. Chains are found by dynamic programming over the anchors: the score of a chain is the
//! width of its anchors less a cost for every gap, and each anchor belongs to the best chain that it is in.
//! The tokens that both sides of a gap share are those of a longest common subsequence, so that the similarity of
//! a passage counts what a light edit left. At both ends a chain is extended across edits as long as more tokens are
//! equal than changed.
//!
//! Cost: for each anchor, [`LOOK_BACK`] comparisons with anchors before it, and the alignment of one gap.

use std::ops::Range;

use super::anchors::{Anchor, trim_overlap};
use super::base_text::{GivenTokens, MAX_BRIDGED_WIDTH};
use super::budget::StepMeter;
use super::grams::token_width;
use super::{Passage, PassageKind};
use crate::error::Result;
use crate::similarity::indel_distance;

/// Number of anchors before an anchor among which its predecessor in a chain is looked for.
const LOOK_BACK: usize = 32;

/// Largest width of a gap that needs no further evidence.
const FREE_GAP: u32 = 24;

/// Largest width of a gap that is bridged if its sides are similar, or of one that only the source has, because a
/// copy often leaves a sentence out.
const MAX_GAP: u32 = 160;

/// Smallest similarity of the sides of a gap that is wider than [`FREE_GAP`].
const MIN_GAP_SIMILARITY: f64 = 0.35;

/// Largest number of tokens that are compared at either end of a chain.
const MAX_EXTENSION: usize = 24;

/// Equal tokens that make up for one changed token at an end of a chain.
const CHANGE_COST: i32 = 2;

/// A copied piece of text: a chain with what is equal in its gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatchedPiece {
    pub(super) document: Range<usize>,
    pub(super) source: Range<usize>,
    /// Number of equal tokens.
    pub(super) matched: usize,
    /// Number of tokens among them that stand in a base text.
    pub(super) given: usize,
    /// Width of the longest run of equal tokens.
    pub(super) longest: u32,
}

/// The tokens of a text, and the sums of their widths.
#[derive(Clone, Copy)]
pub(super) struct MeasuredTokens<'a> {
    pub(super) tokens: &'a [u64],
    /// Those that stand in a base text, which are masked among the tokens.
    pub(super) given: &'a GivenTokens,
    /// `sums[n]` is the width of the first n tokens.
    pub(super) sums: &'a [u32],
}

impl<'a> MeasuredTokens<'a> {
    /// Returns the width of some tokens.
    pub(super) fn width(&self, tokens: Range<usize>) -> u32 {
        self.sums[tokens.end].wrapping_sub(self.sums[tokens.start])
    }

    /// Returns the tokens as the text has them.
    pub(super) fn originals(&self) -> &'a [u64] {
        self.given.original_tokens(self.tokens)
    }

    /// Returns `true` if no passage goes across a gap between two pieces, because it has more given text than a passage
    /// may have between two of its words.
    pub(super) fn is_parted(&self, gap: &Range<usize>) -> bool {
        let mut parts = self.given.parts_within(gap);
        parts.any(|part| self.width(part) > MAX_BRIDGED_WIDTH)
    }
}

/// Replaces `sums` by the sums of the widths of tokens.
pub(super) fn sum_widths(tokens: &[u64], sums: &mut Vec<u32>) {
    sums.clear();
    sums.reserve(tokens.len() + 1);
    sums.push(0);
    let mut total = 0u32;
    sums.extend(tokens.iter().map(|&token| {
        total = total.wrapping_add(token_width(token));
        total
    }));
}

/// Buffers of [`PieceFinder::find_pieces`].
#[derive(Debug, Default)]
pub(super) struct ChainBuffers {
    /// Score of the best chain that ends with each anchor, and the anchor before it there.
    scores: Vec<(i64, usize)>,
    order: Vec<usize>,
    taken: Vec<bool>,
    chain: Vec<Anchor>,
}

/// No anchor before this one.
const NO_ANCHOR: usize = usize::MAX;

/// Joins the anchors of a document and a source.
pub(super) struct PieceFinder<'a> {
    pub(super) document: MeasuredTokens<'a>,
    pub(super) source: MeasuredTokens<'a>,
}

impl PieceFinder<'_> {
    /// Returns the pieces that the anchors make, ascending by document.
    ///
    /// # Errors
    /// If the budget of the meter is used up.
    pub(super) fn find_pieces(
        &self,
        anchors: &[Anchor],
        buffers: &mut ChainBuffers,
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<MatchedPiece>> {
        let mut pieces = Vec::new();
        self.score_chains(anchors, &mut buffers.scores, meter)?;
        let ChainBuffers {
            scores,
            order,
            taken,
            chain,
        } = buffers;
        order.clear();
        order.extend(0..anchors.len());
        order.sort_by_key(|&at| std::cmp::Reverse(scores[at].0));
        taken.clear();
        taken.resize(anchors.len(), false);
        for &last in &*order {
            if taken[last] {
                continue;
            }
            collect_chain(anchors, scores, taken, last, chain);
            self.append_pieces(chain, &mut pieces, meter)?;
        }
        pieces.sort_by_key(|piece| (piece.document.start, piece.source.start));
        Ok(pieces)
    }

    fn score_chains(
        &self,
        anchors: &[Anchor],
        scores: &mut Vec<(i64, usize)>,
        meter: &mut StepMeter<'_>,
    ) -> Result<()> {
        scores.clear();
        for (at, anchor) in anchors.iter().enumerate() {
            let mut best = (i64::from(self.width_of(anchor)), NO_ANCHOR);
            for before in (at.saturating_sub(LOOK_BACK)..at).rev() {
                let Some(gain) = self.link_gain(&anchors[before], anchor) else {
                    continue;
                };
                let score = scores[before].0 + gain;
                if score > best.0 {
                    best = (score, before);
                }
            }
            scores.push(best);
            meter.count_steps(LOOK_BACK as u64)?;
        }
        Ok(())
    }

    fn width_of(&self, anchor: &Anchor) -> u32 {
        self.document.width(anchor.document..anchor.document_end())
    }

    /// Returns what an anchor adds to the score of a chain that ends with `before`; `None` if it cannot follow it.
    fn link_gain(&self, before: &Anchor, anchor: &Anchor) -> Option<i64> {
        let rest = trim_overlap(before, anchor)?;
        let [document, source] = self.gap_widths(before, &rest);
        if document > MAX_GAP || source > MAX_GAP {
            return None;
        }
        let cost = document.abs_diff(source) / 4 + document.max(source) / 8;
        Some(i64::from(self.width_of(&rest)) - i64::from(cost))
    }

    fn gap_widths(&self, before: &Anchor, after: &Anchor) -> [u32; 2] {
        [
            self.document.width(before.document_end()..after.document),
            self.source.width(before.source_end()..after.source),
        ]
    }

    /// Parts a chain where a gap is not convincing, and appends its pieces.
    fn append_pieces(
        &self,
        chain: &[Anchor],
        pieces: &mut Vec<MatchedPiece>,
        meter: &mut StepMeter<'_>,
    ) -> Result<()> {
        let mut piece: Option<(MatchedPiece, Anchor)> = None;
        for anchor in chain {
            if let Some((open, last)) = &mut piece
                && let Some(rest) = trim_overlap(last, anchor)
                && let Some(shared) = self.bridge_gap(last, &rest, meter)?
            {
                open.document.end = anchor.document_end();
                open.source.end = anchor.source_end();
                open.matched += shared.all + rest.length;
                open.given += shared.given;
                open.longest = open.longest.max(self.width_of(anchor));
                *last = *anchor;
                continue;
            }
            let next = MatchedPiece {
                document: anchor.document..anchor.document_end(),
                source: anchor.source..anchor.source_end(),
                matched: anchor.length,
                given: 0,
                longest: self.width_of(anchor),
            };
            pieces.extend(piece.replace((next, *anchor)).map(|(done, _)| done));
        }
        pieces.extend(piece.map(|(done, _)| done));
        Ok(())
    }

    /// Returns what both sides of a gap share in order; `None` if the gap parts two pieces.
    fn bridge_gap(
        &self,
        before: &Anchor,
        after: &Anchor,
        meter: &mut StepMeter<'_>,
    ) -> Result<Option<GapTokens>> {
        let [document, source] = self.gap_widths(before, after);
        let of_document = before.document_end()..after.document;
        let of_source = before.source_end()..after.source;
        if self.document.is_parted(&of_document) || self.source.is_parted(&of_source) {
            return Ok(None);
        }
        let a = &self.document.tokens[of_document.clone()];
        let b = &self.source.tokens[of_source.clone()];
        // Each token of one side meets the words of 64 bits that stand for the other side.
        let (columns, rows) = (a.len() as u64, b.len() as u64);
        meter.count_steps(columns * (1 + rows / 64) + rows)?;
        let shared = count_shared(a, b);
        let similarity = 2.0 * shared as f64 / (a.len() + b.len()).max(1) as f64;
        let is_small = document <= FREE_GAP && (source <= FREE_GAP || document * 4 <= FREE_GAP);
        if !is_small && similarity < MIN_GAP_SIMILARITY {
            return Ok(None);
        }
        let has_given = self.document.given.count_within(&of_document) > 0
            || self.source.given.count_within(&of_source) > 0;
        let given = if has_given {
            let a = &self.document.originals()[of_document];
            let b = &self.source.originals()[of_source];
            count_shared(a, b).saturating_sub(shared)
        } else {
            0
        };
        Ok(Some(GapTokens {
            all: shared + given,
            given,
        }))
    }

    /// Steps of [`extend_passage`](Self::extend_passage): some cells of both alignments make a step.
    pub(super) const EXTENSION_STEPS: u64 = (2 * MAX_EXTENSION * MAX_EXTENSION / 4) as u64;

    /// Extends a passage across edits at both ends, within some tokens of the document.
    pub(super) fn extend_passage(&self, passage: &mut Passage, within: Range<usize>) {
        let last = |tokens: &[u64]| -> Vec<u64> {
            tokens.iter().rev().take(MAX_EXTENSION).copied().collect()
        };
        let first =
            |tokens: &[u64]| -> Vec<u64> { tokens.iter().take(MAX_EXTENSION).copied().collect() };
        let [document, source] = [self.document.tokens, self.source.tokens];
        let (start, end) = (passage.document.start, passage.document.end);
        let head = extend_end(
            &last(&document[within.start.min(start)..start]),
            &last(&source[..passage.source.start]),
        );
        let tail = extend_end(
            &first(&document[end..within.end.max(end)]),
            &first(&source[passage.source.end..]),
        );
        if head.matched + tail.matched > 0 {
            passage.document = start - head.document..end + tail.document;
            passage.source = passage.source.start - head.source..passage.source.end + tail.source;
            passage.matched += head.matched + tail.matched;
            passage.kind = passage.kind.max(PassageKind::Edited);
        }
    }
}

/// The tokens that both sides of a gap share in order.
#[derive(Clone, Copy, Debug)]
struct GapTokens {
    all: usize,
    /// Tokens among them that stand in a base text.
    given: usize,
}

/// Fills `chain` with the best chain that ends with the anchor `last`, up to an anchor that is taken.
fn collect_chain(
    anchors: &[Anchor],
    scores: &[(i64, usize)],
    taken: &mut [bool],
    last: usize,
    chain: &mut Vec<Anchor>,
) {
    chain.clear();
    let mut at = last;
    while at != NO_ANCHOR && !taken[at] {
        taken[at] = true;
        chain.push(anchors[at]);
        at = scores[at].1;
    }
    chain.reverse();
}

/// Returns the length of a longest common subsequence.
pub(super) fn count_shared(a: &[u64], b: &[u64]) -> usize {
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let all = a.len() + b.len();
    let distance = indel_distance(a, b, all);
    let distance = distance.expect("a gap is far below the limit of a comparison");
    (all - distance.unwrap_or(all)) / 2
}

/// Tokens that are added at an end of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EndExtension {
    document: usize,
    source: usize,
    matched: usize,
}

/// Returns the extension in which equal tokens outweigh changed ones most; nothing if none does. Of several, it
/// is the shortest.
fn extend_end(document: &[u64], source: &[u64]) -> EndExtension {
    if source.is_empty() {
        return EndExtension::default();
    }
    // Scores and numbers of equal tokens of the alignments with the first n tokens of the source.
    let mut row: [(i32, usize); MAX_EXTENSION + 1] =
        std::array::from_fn(|n| (-CHANGE_COST * n as i32, 0));
    let mut best = (0, EndExtension::default());
    for (read, token) in document.iter().enumerate() {
        let mut diagonal = row[0];
        row[0].0 -= CHANGE_COST;
        for (n, &other) in source.iter().enumerate() {
            let above = row[n + 1];
            let (aligned, equal) = diagonal;
            let change = (aligned - CHANGE_COST, equal);
            let aligned = if *token == other {
                (aligned + 1, equal + 1)
            } else {
                change
            };
            let skipped = above.max(row[n]);
            let cell = aligned.max((skipped.0 - CHANGE_COST, skipped.1));
            (diagonal, row[n + 1]) = (above, cell);
            if cell.0 > best.0 {
                let extension = EndExtension {
                    document: read + 1,
                    source: n + 1,
                    matched: cell.1,
                };
                best = (cell.0, extension);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook's table of longest common subsequences.
    fn plain_shared(a: &[u64], b: &[u64]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                table[i + 1][j + 1] = if x == y {
                    table[i][j] + 1
                } else {
                    table[i][j + 1].max(table[i + 1][j])
                };
            }
        }
        table[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn shared_tokens_equal_the_table(
            a in proptest::collection::vec(0..6u64, 0..90),
            b in proptest::collection::vec(0..6u64, 0..90),
        ) {
            prop_assert_eq!(count_shared(&a, &b), plain_shared(&a, &b));
        }

        /// An extension has the score of an alignment of its tokens, and no other extension has a higher one.
        #[test]
        fn extension_has_the_highest_score(
            a in proptest::collection::vec(0..4u64, 0..12),
            b in proptest::collection::vec(0..4u64, 0..12),
        ) {
            let score = |a: &[u64], b: &[u64]| -> i32 {
                let mut table = vec![vec![0i32; b.len() + 1]; a.len() + 1];
                for i in 0..=a.len() {
                    for j in 0..=b.len() {
                        let skip = |it: i32| it - CHANGE_COST;
                        table[i][j] = match (i, j) {
                            (0, _) => -CHANGE_COST * j as i32,
                            (_, 0) => -CHANGE_COST * i as i32,
                            _ => {
                                let step = if a[i - 1] == b[j - 1] { 1 } else { -CHANGE_COST };
                                (table[i - 1][j - 1] + step)
                                    .max(skip(table[i - 1][j]))
                                    .max(skip(table[i][j - 1]))
                            }
                        };
                    }
                }
                table[a.len()][b.len()]
            };
            let found = extend_end(&a, &b);
            let reached = score(&a[..found.document], &b[..found.source]);
            for i in 0..=a.len() {
                for j in 0..=b.len() {
                    prop_assert!(score(&a[..i], &b[..j]) <= reached);
                }
            }
            prop_assert!(found.matched <= found.document.min(found.source));
        }
    }
}
