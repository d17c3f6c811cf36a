//! The parts of an item that stand near its question: choices, the answer, the end of the passage.

use std::ops::Range;

use super::alignment::{AlignmentBuffers, align_unit};
use super::index::{ContaminationIndex, IndexedItem};
use crate::byte_reader::ByteReader;

/// Tokens before and behind a question, beside twice as many as its parts have, in which these are looked for.
const NEARBY_TOKENS: usize = 32;

/// Tokens of a part that must stand in the document one behind the other. Longer parts are aligned.
pub(super) const MAX_EXACT_PART_TOKENS: usize = 4;

/// Choices of an item that are looked for.
const MAX_CHOICES: usize = 32;

/// Number of the answer among the parts, and of the passage. Smaller numbers are choices.
const ANSWER_NUMBER: u8 = 254;
const PASSAGE_NUMBER: u8 = 255;

/// A part of an item that was found near its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NearbyPart {
    number: u8,
    /// Tokens between the part and the question, or another part that is nearer to the question.
    pub(super) gap: u32,
}

impl NearbyPart {
    /// Returns the part's tokens, as a range of [`ContaminationIndex::terms`].
    pub(super) fn tokens<'a>(&self, item: &'a IndexedItem) -> Option<&'a Range<u32>> {
        match self.number {
            ANSWER_NUMBER => Some(&item.answer),
            PASSAGE_NUMBER => Some(&item.passage),
            choice => item.choices.get(usize::from(choice)),
        }
    }

    pub(super) fn is_choice(&self) -> bool {
        usize::from(self.number) < MAX_CHOICES
    }

    pub(super) fn is_answer(&self) -> bool {
        self.number == ANSWER_NUMBER
    }

    pub(super) fn append_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.number);
        bytes.extend(self.gap.to_le_bytes());
    }

    pub(super) fn from_bytes(reader: &mut ByteReader<'_>) -> Option<Self> {
        let number = reader.read_u8()?;
        let gap = reader.read_u32()?;
        Some(Self { number, gap })
    }
}

/// Returns the tokens of a document in which the parts of an item are looked for.
pub(super) fn nearby_range(
    item: &IndexedItem,
    question: &Range<usize>,
    document: usize,
) -> Range<usize> {
    let choices: usize = item.choices.iter().map(|range| range.len()).sum();
    let length = NEARBY_TOKENS + 2 * (choices + item.answer.len());
    let passage = 2 * item.passage.len();
    let start = question.start.saturating_sub(length + passage);
    start..(question.end + length).min(document)
}

/// Finds the parts of an item in the tokens around its question, from which those of the question are removed. Returns
/// them with the tokens from the first to the last of all, the question included.
pub(super) fn find_parts(
    index: &ContaminationIndex,
    item: &IndexedItem,
    around: &[u32],
    question: Range<usize>,
    buffers: &mut AlignmentBuffers,
) -> (Vec<NearbyPart>, Range<usize>) {
    let choices = item.choices.iter().take(MAX_CHOICES).enumerate();
    let choices = choices.map(|(number, tokens)| (number as u8, tokens));
    let others = [
        (ANSWER_NUMBER, &item.answer),
        (PASSAGE_NUMBER, &item.passage),
    ];
    let mut places: Vec<(usize, u8, Range<usize>)> = Vec::new();
    for (number, tokens) in choices.chain(others) {
        if let Some(place) = find_part(index, tokens, around, &question, buffers) {
            places.push((gap_between(&place, &question), number, place));
        }
    }
    places.sort_by_key(|&(gap, number, _)| (gap, number));
    let mut whole = question.clone();
    let mut before = vec![question];
    let mut parts = Vec::new();
    for (_, number, place) in places {
        let gaps = before.iter().map(|other| gap_between(&place, other));
        let gap = gaps.min().unwrap_or(0) as u32;
        parts.push(NearbyPart { number, gap });
        // The text of a passage is not part of the item.
        if number != PASSAGE_NUMBER {
            whole.start = whole.start.min(place.start);
            whole.end = whole.end.max(place.end);
        }
        before.push(place);
    }
    (parts, whole)
}

/// Returns the number of tokens between two ranges; 0 if they touch or overlap.
pub(super) fn gap_between(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.start
        .saturating_sub(b.end)
        .max(b.start.saturating_sub(a.end))
}

/// Returns the place of a part in some tokens of a document: the one nearest to the question if it is short.
fn find_part(
    index: &ContaminationIndex,
    part: &Range<u32>,
    around: &[u32],
    question: &Range<usize>,
    buffers: &mut AlignmentBuffers,
) -> Option<Range<usize>> {
    let terms = index.range_terms(part);
    if terms.is_empty() {
        return None;
    }
    if terms.len() <= MAX_EXACT_PART_TOKENS {
        let windows = around.windows(terms.len()).enumerate();
        let equal = windows.filter(|(_, window)| *window == terms);
        let places = equal.map(|(at, _)| at..at + terms.len());
        return places.min_by_key(|place| (gap_between(place, question), place.start));
    }
    let first = part.start as usize;
    let weight_at = |at| index.weight_at(first + at, &index.prior_weights);
    let all: u64 = index.range_weights(part, &index.prior_weights).sum();
    let least_weight = (3 * all).div_ceil(4);
    let alignment = align_unit(terms, around, weight_at, least_weight, buffers);
    let found = alignment.part_range()?;
    (alignment.sum_found(weight_at) >= least_weight).then_some(found)
}
