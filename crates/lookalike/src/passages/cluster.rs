//! Passages from pieces: pieces that lie close together in both texts are one passage, in whatever order.
//!
//! The pieces are parted where the document has more than [`MAX_DISTANCE`] between two of them, or more text that all
//! were given than a passage may have (see `base_text`), each part where the source has, and so on until nothing parts any more (the rule of Sanchez-Perez, Sidorov and Gelbukh 2014).
//! What remains together is one passage, unless too little of it is equal; then each piece is one.
//!
//! Cost: a sort of the pieces for every round; there are seldom more than three rounds.

use std::ops::Range;

use super::budget::StepMeter;
use super::chain::{MatchedPiece, MeasuredTokens};
use super::{Passage, PassageKind};
use crate::error::Result;

/// Largest width between two pieces of one passage, in each text.
const MAX_DISTANCE: u32 = 80;

/// Smallest share of equal tokens in the document's part of a passage of several pieces.
const MIN_DENSITY: f64 = 0.4;

/// Appends the passages that the pieces make. The passages have no order.
pub(super) fn append_passages(
    document: MeasuredTokens<'_>,
    source: MeasuredTokens<'_>,
    pieces: Vec<MatchedPiece>,
    passages: &mut Vec<Passage>,
    meter: &mut StepMeter<'_>,
) -> Result<()> {
    for group in part_groups([document, source], pieces, meter)? {
        append_group([document, source], group, passages);
    }
    Ok(())
}

/// Steps of one round for each piece: the sort of the pieces, and the way of each into its part.
const STEPS_PER_PIECE: u64 = 8;

/// Parts pieces into groups that lie close together in both texts.
///
/// # Errors
/// If the budget of the meter is used up.
pub(super) fn part_groups(
    [document, source]: [MeasuredTokens<'_>; 2],
    pieces: Vec<MatchedPiece>,
    meter: &mut StepMeter<'_>,
) -> Result<Vec<Vec<MatchedPiece>>> {
    let mut done = Vec::new();
    let mut groups = vec![(pieces, 0)];
    while let Some((mut group, unparted)) = groups.pop() {
        // Twice in a row without a border means that both texts agree.
        if unparted == 2 || group.len() <= 1 {
            done.extend(Some(group).filter(|pieces| !pieces.is_empty()));
            continue;
        }
        meter.count_steps(STEPS_PER_PIECE * group.len() as u64)?;
        let by_document = unparted == 0;
        let parts = if by_document {
            part_pieces(document, &mut group, |piece| &piece.document)
        } else {
            part_pieces(source, &mut group, |piece| &piece.source)
        };
        let is_whole = parts.len() == 1;
        // A group that the source parts is parted by the document again.
        let next = match (is_whole, by_document) {
            (true, _) => unparted + 1,
            (false, true) => 1,
            (false, false) => 0,
        };
        groups.extend(parts.into_iter().map(|part| (part, next)));
    }
    Ok(done)
}

/// Parts pieces where one text has a wide gap between them.
fn part_pieces(
    text: MeasuredTokens<'_>,
    group: &mut Vec<MatchedPiece>,
    range: impl Fn(&MatchedPiece) -> &Range<usize>,
) -> Vec<Vec<MatchedPiece>> {
    group.sort_by_key(|piece| range(piece).start);
    let mut parts: Vec<Vec<MatchedPiece>> = Vec::new();
    let mut end = 0;
    for piece in group.drain(..) {
        let here = range(&piece).clone();
        let is_near = here.start <= end
            || text.width(end..here.start) <= MAX_DISTANCE && !text.is_parted(&(end..here.start));
        end = end.max(here.end);
        match parts.last_mut().filter(|_| is_near) {
            Some(part) => part.push(piece),
            None => parts.push(vec![piece]),
        }
    }
    parts
}

fn append_group(
    texts: [MeasuredTokens<'_>; 2],
    mut group: Vec<MatchedPiece>,
    passages: &mut Vec<Passage>,
) {
    group.sort_by_key(|piece| piece.document.start);
    let whole = join_pieces(texts, &group);
    let density = whole.matched as f64 / whole.document.len() as f64;
    if group.len() > 1 && density < MIN_DENSITY {
        let alone = group.iter().map(std::slice::from_ref);
        passages.extend(alone.map(|piece| join_pieces(texts, piece)));
    } else {
        passages.push(whole);
    }
}

/// Returns the passage from the first to the last of some pieces, which are ascending by document.
fn join_pieces([document, source]: [MeasuredTokens<'_>; 2], pieces: &[MatchedPiece]) -> Passage {
    let of_document = join_ranges(pieces.iter().map(|piece| &piece.document));
    let of_source = join_ranges(pieces.iter().map(|piece| &piece.source));
    let follows = |two: &[MatchedPiece]| two[0].source.start <= two[1].source.start;
    let is_equal =
        document.originals()[of_document.clone()] == source.originals()[of_source.clone()];
    let kind = match () {
        () if is_equal => PassageKind::Verbatim,
        () if pieces.windows(2).all(follows) => PassageKind::Edited,
        () => PassageKind::Reordered,
    };
    let matched = match kind {
        PassageKind::Verbatim => of_document.len(),
        _ => count_matched(pieces)
            .min(of_document.len())
            .min(of_source.len()),
    };
    let given = match kind {
        PassageKind::Verbatim => document.given.count_within(&of_document),
        _ => pieces.iter().map(|piece| piece.given).sum(),
    };
    Passage {
        document: of_document,
        source: of_source,
        matched,
        given,
        longest: pieces.iter().map(|piece| piece.longest).max().unwrap_or(0),
        kind,
    }
}

/// Returns the range from the first start to the last end of some ranges.
pub(super) fn join_ranges<'a>(
    ranges: impl Iterator<Item = &'a Range<usize>> + Clone,
) -> Range<usize> {
    let start = ranges.clone().map(|range| range.start).min();
    let end = ranges.map(|range| range.end).max();
    start.unwrap_or(0)..end.unwrap_or(0)
}

/// Returns the number of equal tokens of pieces, which may overlap in the document.
fn count_matched(pieces: &[MatchedPiece]) -> usize {
    let mut end = 0;
    let parts = pieces.iter().map(|piece| {
        let overlap = end.max(piece.document.start).min(piece.document.end) - piece.document.start;
        end = end.max(piece.document.end);
        piece.matched.saturating_sub(overlap)
    });
    parts.sum()
}
