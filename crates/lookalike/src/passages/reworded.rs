//! Reworded passages: parts of two texts that share many of their rarer tokens, in whatever order.
//!
//! Where words were swapped for others, moved and left out, few runs of equal tokens remain, and no anchor. What
//! remains are the words themselves, close together in both texts:
//!
//! ```text
//! tokens ─► slices ─► cells            ─► seeds                ─► groups        ─► regions
//!           12 words  a token that two     2 × 2 slices with       close together   with exact borders
//!                     slices share         much shared weight      in both texts
//! ```
//!
//! 1. Both texts are cut into slices of [`SLICE_WIDTH`]. A token weighs more the fewer slices of both texts have it
//!    (the inverse sentence frequency of Sanchez-Perez, Sidorov and Gelbukh 2014), so words that stand everywhere
//!    count for nothing. The weights depend on the two texts alone: a pair has the same passages in any corpus.
//! 2. A cell is a token that a slice of the document and a slice of the source share. A seed is two neighbouring slices
//!    of each text whose four pairs of slices have cells with at least [`SEED_SHARE`] percent of the weight of the
//!    document's two slices.
//! 3. Seeds that lie close together in both texts are a group, by the rule of `cluster`.
//! 4. The region of a group is the part of the document in which shared weight outweighs the rest most, and the part
//!    of the source in which the weight shared with that part does.
//!
//! A region is a passage if it is wide enough and enough different tokens are shared. A pair is skipped if the parts of
//! either text outside its copied passages have less than a region's width together, as with two copies of a form. There
//! is no guarantee: it is a judgement by shares, whose constants were chosen on planted passages and on texts that share
//! none.
//!
//! Widths count 2 for a word and 1 for a character of a script without spaces.
//!
//! Cost: a sort of the tokens of both texts, and of the slices of the source that share tokens with each slice of the
//! document. A token in many slices tells little and makes no cells, so that there are at most [`MAX_CELLS`] for
//! each different token.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use super::budget::StepMeter;
use super::chain::{MatchedPiece, MeasuredTokens};
use super::cluster::{join_ranges, part_groups};
use super::grams::token_width;
use super::{Passage, PassageKind, count_covered};
use crate::error::Result;

/// Width of a slice.
pub(super) const SLICE_WIDTH: u32 = 24;

/// Largest number of cells that one token makes. A token that would make more tells little.
const MAX_CELLS: usize = 64;

/// Bytes of memory for each cell, in lists that grow.
const BYTES_PER_CELL: usize = 40;

/// Bytes of memory for each seed, and for its place in a group.
const BYTES_PER_SEED: usize = 256;

/// Smallest shared weight of a seed, in percent of the weight of its two slices of the document.
const SEED_SHARE: u64 = 30;

/// Smallest number of cells of a seed. A token in both slices of both texts makes four of them.
const MIN_SEED_CELLS: u32 = 3;

/// Smallest width of a region in each text, unless passages must be longer.
const MIN_WIDTH: u32 = 60;

/// Smallest share of the weight of a region that is shared, in percent. No beginning and no end of a region has less.
const REGION_SHARE: i64 = 45;

/// Smallest number of different shared tokens in a region.
const MIN_SHARED: usize = 8;

/// Share of a region, in percent, that lies in passages already if it tells nothing new.
const KNOWN_SHARE: usize = 90;

/// Returns `true` if passages leave as much of both texts as a region of at least a width needs.
pub(super) fn leave_room(
    [document, source]: [MeasuredTokens<'_>; 2],
    passages: &[Passage],
    min_width: u32,
) -> bool {
    let of_document = passages.iter().map(|passage| passage.document.clone());
    let of_source = passages.iter().map(|passage| passage.source.clone());
    let least = u64::from(min_width.max(MIN_WIDTH));
    free_width(document, of_document.collect()) >= least
        && free_width(source, of_source.collect()) >= least
}

/// Returns the width of what lies outside some ranges.
fn free_width(text: MeasuredTokens<'_>, mut ranges: Vec<Range<usize>>) -> u64 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut width, mut end) = (0, 0);
    for it in &ranges {
        width += u64::from(text.width(end..it.start.max(end)));
        end = end.max(it.end);
    }
    width + u64::from(text.width(end..text.tokens.len()))
}

/// Cuts a text into slices, as ranges of tokens: each is the shortest run from its start on with the width.
pub(super) fn cut_slices(tokens: &[u64]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (mut end, mut width) = (start, 0);
        while width < SLICE_WIDTH && end < tokens.len() {
            width += token_width(tokens[end]);
            end += 1;
        }
        let slice = start..end;
        start = end;
        (!slice.is_empty()).then_some(slice)
    })
}

/// The slices of a text, and which of them have which tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct SlicedText {
    /// First token of every slice, and the number of tokens.
    bounds: Vec<u32>,
    /// The different tokens, ascending; their places here are their numbers.
    different: Vec<u64>,
    /// Number of the token at each position.
    numbers: Vec<u32>,
    /// For each different token the end of its slices in `slices`, behind a zero.
    ends: Vec<u32>,
    /// The slices that have each different token, ascending.
    slices: Vec<u32>,
}

impl SlicedText {
    /// Cuts a text.
    pub(super) fn set_tokens(&mut self, tokens: &[u64]) {
        self.bounds.clear();
        let mut slice_of = Vec::with_capacity(tokens.len());
        for (number, slice) in (0..).zip(cut_slices(tokens)) {
            self.bounds.push(slice.start as u32);
            slice_of.resize(slice.end, number);
        }
        self.bounds.push(tokens.len() as u32);
        let mut order: Vec<(u64, u32)> = tokens.iter().copied().zip(0..).collect();
        order.sort_unstable();
        self.different.clear();
        self.slices.clear();
        self.ends.clear();
        self.ends.push(0);
        self.numbers.clear();
        self.numbers.resize(tokens.len(), 0);
        for places in order.chunk_by(|a, b| a.0 == b.0) {
            let first = self.slices.len();
            for &(_, at) in places {
                self.numbers[at as usize] = self.different.len() as u32;
                let slice = slice_of[at as usize];
                if self.slices[first..].last() != Some(&slice) {
                    self.slices.push(slice);
                }
            }
            self.different.push(places[0].0);
            self.ends.push(self.slices.len() as u32);
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let numbers = [&self.bounds, &self.numbers, &self.ends, &self.slices];
        8 * self.different.len() + 4 * numbers.map(Vec::len).iter().sum::<usize>()
    }

    /// Returns the number of tokens, which is that of the steps in which a pair weighs them.
    pub(super) fn token_count(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn slice_count(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// Returns the slices that have the token with this number.
    fn slices_with(&self, number: usize) -> &[u32] {
        &self.slices[self.ends[number] as usize..self.ends[number + 1] as usize]
    }

    /// Returns the tokens of two neighbouring slices.
    fn pair_range(&self, first: u32) -> Range<usize> {
        let last = self.bounds.len() - 1;
        let end = (first as usize + 2).min(last);
        self.bounds[first as usize] as usize..self.bounds[end] as usize
    }
}

/// No token of the other text.
const NO_TOKEN: u32 = u32::MAX;

/// The different tokens of one text of a pair.
#[derive(Debug, Default)]
struct PairTokens {
    weights: Vec<u32>,
    /// Number of the same token in the other text.
    partners: Vec<u32>,
}

impl PairTokens {
    fn push_token(&mut self, weight: u32, partner: Option<usize>) {
        self.weights.push(weight);
        self.partners
            .push(partner.map_or(NO_TOKEN, |partner| partner as u32));
    }
}

/// A part of a document and a part of a source that share much.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RewordedRegion {
    document: Range<usize>,
    source: Range<usize>,
    /// Weight of the shared tokens of the document's part.
    weight: i64,
}

/// A token that a slice of the document and a slice of the source share.
#[derive(Clone, Copy, Debug)]
struct SliceCell {
    /// Number of the document's slice.
    document: u32,
    /// Number of the source's slice.
    source: u32,
    /// Weight of the token.
    weight: u32,
}

/// Cells in the order of the document's slices.
struct CellRows {
    /// End of the cells of each slice in `order`, behind a zero.
    ends: Vec<u32>,
    order: Vec<u32>,
}

/// Number and weight of the cells of two slices.
#[derive(Clone, Copy, Debug, Default)]
struct CellSum {
    cells: u32,
    weight: u64,
}

impl CellRows {
    fn new(cells: &[SliceCell], slices: usize) -> Self {
        let mut ends = vec![0; slices + 3];
        for it in cells {
            ends[it.document as usize + 2] += 1;
        }
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut order = vec![0; cells.len()];
        for (at, it) in (0..).zip(cells) {
            let end = &mut ends[it.document as usize + 1];
            order[*end as usize] = at;
            *end += 1;
        }
        Self { ends, order }
    }

    /// Returns the cells of a slice of the document; none behind the last one.
    fn row<'a>(&self, cells: &'a [SliceCell], slice: usize) -> impl Iterator<Item = &'a SliceCell> {
        let range = self.ends[slice] as usize..self.ends[slice + 1] as usize;
        self.order[range].iter().map(|&at| &cells[at as usize])
    }

    fn add_row(&self, cells: &[SliceCell], slice: usize, sums: &mut [CellSum]) {
        for it in self.row(cells, slice) {
            let sum = &mut sums[it.source as usize];
            sum.cells += 1;
            sum.weight += u64::from(it.weight);
        }
    }
}

/// Finds the reworded regions of a document and a source.
pub(super) struct RewordedFinder<'a> {
    texts: [MeasuredTokens<'a>; 2],
    slices: [&'a SlicedText; 2],
    /// Of the document and of the source.
    tokens: [PairTokens; 2],
}

/// The texts of a pair.
const DOCUMENT_SIDE: usize = 0;
const SOURCE_SIDE: usize = 1;

impl<'a> RewordedFinder<'a> {
    /// Weighs the tokens of a document and a source.
    pub(super) fn new(texts: [MeasuredTokens<'a>; 2], slices: [&'a SlicedText; 2]) -> Self {
        let mut finder = Self {
            texts,
            slices,
            tokens: Default::default(),
        };
        let (mut document, mut source) = (0, 0);
        while let Some(order) = finder.compare_tokens(document, source) {
            let is_in = [order.is_le(), order.is_ge()];
            let places = [document, source];
            let with = |side: usize| {
                if is_in[side] {
                    slices[side].slices_with(places[side]).len()
                } else {
                    0
                }
            };
            let weight = finder.weigh_token(with(DOCUMENT_SIDE) + with(SOURCE_SIDE));
            for side in [DOCUMENT_SIDE, SOURCE_SIDE] {
                if is_in[side] {
                    let partner = order.is_eq().then_some(places[1 - side]);
                    finder.tokens[side].push_token(weight, partner);
                }
            }
            document += usize::from(is_in[DOCUMENT_SIDE]);
            source += usize::from(is_in[SOURCE_SIDE]);
        }
        finder
    }

    /// Compares the next different tokens of both texts; `None` at the end of both.
    fn compare_tokens(&self, document: usize, source: usize) -> Option<Ordering> {
        let [a, b] = self.slices;
        match (a.different.get(document), b.different.get(source)) {
            (None, None) => None,
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (Some(a), Some(b)) => Some(a.cmp(b)),
        }
    }

    /// Returns the weight of a token: log₂(slices ÷ slices that have it), in steps of 1/256.
    fn weigh_token(&self, slices_with: usize) -> u32 {
        let all: usize = self.slices.iter().map(|slice| slice.slice_count()).sum();
        approximate_log((((all as u64) << 8) / slices_with.max(1) as u64).max(256))
    }

    /// Adds the regions of at least a width to the passages of a pair, which ascend by document. A passage of
    /// which more than half lies in a region, in both texts, is joined with it.
    ///
    /// # Errors
    /// If the budget of the meter is used up.
    pub(super) fn add_regions(
        &self,
        min_width: u32,
        passages: Vec<Passage>,
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<Passage>> {
        let regions = self.find_regions(min_width, &passages, meter)?;
        let mut parts = vec![Vec::new(); regions.len()];
        let mut joined = Vec::new();
        for passage in passages {
            match find_containing(&regions, &passage) {
                Some(region) => parts[region].push(passage),
                None => joined.push(passage),
            }
        }
        let regions = regions.iter().zip(&parts);
        joined.extend(regions.map(|(region, parts)| self.join_region(region, parts)));
        joined.sort_by_key(|piece| (piece.document.start, piece.source.start));
        Ok(joined)
    }

    fn join_region(&self, region: &RewordedRegion, parts: &[Passage]) -> Passage {
        let of_document = parts.iter().map(|part| &part.document);
        let of_source = parts.iter().map(|part| &part.source);
        let document = join_ranges(of_document.chain([&region.document]));
        let source = join_ranges(of_source.chain([&region.source]));
        let sides = self.tokens_of(&document, &source);
        Passage {
            matched: count_common(sides).0,
            given: 0,
            longest: parts.iter().map(|part| part.longest).max().unwrap_or(0),
            kind: PassageKind::Reworded,
            document,
            source,
        }
    }

    /// Returns the regions of at least a width that do not lie in passages already, ascending by document. Of regions
    /// that overlap there, the heaviest remains.
    fn find_regions(
        &self,
        min_width: u32,
        passages: &[Passage],
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<RewordedRegion>> {
        let (cells, totals) = self.weigh_cells(meter)?;
        let seeds = self.choose_seeds(&cells, &totals, meter)?;
        let known = KnownPassages::new(passages);
        let min_width = min_width.max(MIN_WIDTH);
        let (mut regions, mut is_other) = (Vec::new(), Vec::new());
        for group in part_groups(self.texts, seeds, meter)? {
            let document = join_ranges(group.iter().map(|piece| &piece.document));
            let source = join_ranges(group.iter().map(|piece| &piece.source));
            // Each of three readings visits both parts, and the passages that the parts may lie in.
            let visited = 3 * (document.len() + source.len()) + passages.len();
            meter.count_steps(visited as u64)?;
            if !known.cover_parts(&document, &source) {
                let region = self.find_region(document, source, min_width, &mut is_other);
                regions.extend(
                    region.filter(|region| !known.cover_parts(&region.document, &region.source)),
                );
            }
        }
        regions.sort_by_key(|region| {
            (
                Reverse(region.weight),
                region.document.start,
                region.source.start,
            )
        });
        Ok(keep_disjoint(regions))
    }

    /// Returns the shared weight of slices of both texts, once for each token that they share, and the weight of all
    /// tokens of each slice of the document.
    fn weigh_cells(&self, meter: &mut StepMeter<'_>) -> Result<(Vec<SliceCell>, Vec<u64>)> {
        let [document, source] = self.slices;
        let mut totals = vec![0; document.slice_count() + 1];
        let mut cells: Vec<SliceCell> = Vec::new();
        let PairTokens { weights, partners } = &self.tokens[DOCUMENT_SIDE];
        for (number, (&weight, &partner)) in weights.iter().zip(partners).enumerate() {
            let with = document.slices_with(number);
            for &slice in with {
                totals[slice as usize] += u64::from(weight);
            }
            if partner == NO_TOKEN {
                continue;
            }
            let shared = source.slices_with(partner as usize);
            meter.count_steps(with.len() as u64)?;
            if with.len().saturating_mul(shared.len()) <= MAX_CELLS {
                meter.check_bytes(cells.len() * BYTES_PER_CELL)?;
                let pairs = with
                    .iter()
                    .flat_map(|&document| shared.iter().map(move |&source| (document, source)));
                cells.extend(pairs.map(|(document, source)| SliceCell {
                    document,
                    source,
                    weight,
                }));
            }
        }
        Ok((cells, totals))
    }

    /// Returns the pairs of neighbouring slices that share enough, ascending by document and then by source.
    fn choose_seeds(
        &self,
        cells: &[SliceCell],
        totals: &[u64],
        meter: &mut StepMeter<'_>,
    ) -> Result<Vec<MatchedPiece>> {
        let [document, source] = self.slices.map(SlicedText::slice_count);
        let rows = CellRows::new(cells, document);
        // Sums of the cells of two neighbouring slices of the document, for each slice of the source.
        let mut sums = [0, 1].map(|_| vec![CellSum::default(); source + 1]);
        let mut seeds = Vec::new();
        for first in 0..document {
            let [above, below] = &mut sums;
            if first == 0 {
                rows.add_row(cells, 0, above);
            }
            rows.add_row(cells, first + 1, below);
            let least = (SEED_SHARE * (totals[first] + totals[first + 1])).div_ceil(100);
            let mut touched: Vec<u32> = rows
                .row(cells, first)
                .chain(rows.row(cells, first + 1))
                .flat_map(|seed| seed.source.saturating_sub(1)..seed.source + 1)
                .collect();
            meter.count_steps(1 + 4 * touched.len() as u64)?;
            meter.check_bytes(cells.len() * BYTES_PER_CELL + seeds.len() * BYTES_PER_SEED)?;
            touched.sort_unstable();
            touched.dedup();
            for at in touched {
                let square = [&*above, &*below].map(|row| [row[at as usize], row[at as usize + 1]]);
                let cells: u32 = square.as_flattened().iter().map(|cell| cell.cells).sum();
                let weight: u64 = square.as_flattened().iter().map(|cell| cell.weight).sum();
                if cells >= MIN_SEED_CELLS && weight >= least {
                    seeds.push(MatchedPiece {
                        document: self.slices[0].pair_range(first as u32),
                        source: self.slices[1].pair_range(at),
                        matched: cells as usize,
                        given: 0,
                        longest: 0,
                    });
                }
            }
            for it in rows.row(cells, first) {
                above[it.source as usize] = CellSum::default();
            }
            sums.swap(0, 1);
        }
        Ok(seeds)
    }

    /// Returns the region of a group that spans parts of both texts.
    fn find_region(
        &self,
        document: Range<usize>,
        source: Range<usize>,
        min_width: u32,
        is_other: &mut Vec<bool>,
    ) -> Option<RewordedRegion> {
        let around = |range: Range<usize>, side: usize| {
            // In tokens, which is a slice or two.
            let margin = SLICE_WIDTH as usize;
            range.start.saturating_sub(margin)
                ..(range.end + margin).min(self.texts[side].tokens.len())
        };
        let wide = around(source, SOURCE_SIDE);
        let document = around(document, DOCUMENT_SIDE);
        let (document, _) = self.heaviest_part(DOCUMENT_SIDE, document, &wide, is_other)?;
        let (source, _) = self.heaviest_part(SOURCE_SIDE, wide, &document, is_other)?;
        // The document's part again, by the narrower part of the source.
        let (document, weight) = self.heaviest_part(DOCUMENT_SIDE, document, &source, is_other)?;
        let is_wide = self.texts[DOCUMENT_SIDE].width(document.clone()) >= min_width
            && self.texts[SOURCE_SIDE].width(source.clone()) >= min_width;
        let sides = self.tokens_of(&document, &source);
        (is_wide && count_common(sides).1 >= MIN_SHARED).then_some(RewordedRegion {
            document,
            source,
            weight,
        })
    }

    fn tokens_of(&self, document: &Range<usize>, source: &Range<usize>) -> [&[u64]; 2] {
        [
            &self.texts[DOCUMENT_SIDE].tokens[document.clone()],
            &self.texts[SOURCE_SIDE].tokens[source.clone()],
        ]
    }

    /// Returns the part of a range of one text in which the weight of tokens that a range of the other one has outweighs
    /// that of the rest most, and the weight of its shared tokens. All values of the buffer `is_other` are `false` before and after.
    fn heaviest_part(
        &self,
        side: usize,
        range: Range<usize>,
        others: &Range<usize>,
        is_other: &mut Vec<bool>,
    ) -> Option<(Range<usize>, i64)> {
        let PairTokens { weights, partners } = &self.tokens[side];
        let of_others = &self.slices[1 - side].numbers[others.clone()];
        is_other.resize(self.slices[1 - side].different.len(), false);
        for &number in of_others {
            is_other[number as usize] = true;
        }
        let numbers = &self.slices[side].numbers;
        let (mut sum, mut start, mut shared) = (0i64, range.start, 0i64);
        let mut best = (0, range.start..range.start, 0);
        for at in range {
            let number = numbers[at] as usize;
            let weight = i64::from(weights[number]);
            let partner = partners[number];
            if partner != NO_TOKEN && is_other[partner as usize] {
                sum += (100 - REGION_SHARE) * weight;
                shared += weight;
            } else {
                sum -= REGION_SHARE * weight;
            }
            if sum > best.0 {
                best = (sum, start..at + 1, shared);
            }
            if sum < 0 {
                (sum, start, shared) = (0, at + 1, 0);
            }
        }
        for &number in of_others {
            is_other[number as usize] = false;
        }
        (best.0 > 0).then_some((best.1, best.2))
    }
}

/// Returns the regions that share no tokens of the document with a returned one before them in the list, ascending by
/// document.
fn keep_disjoint(regions: Vec<RewordedRegion>) -> Vec<RewordedRegion> {
    let mut kept: BTreeMap<usize, RewordedRegion> = BTreeMap::new();
    for region in regions {
        let before = kept.range(..region.document.end).next_back();
        if before.is_none_or(|(_, it)| it.document.end <= region.document.start) {
            kept.insert(region.document.start, region);
        }
    }
    kept.into_values().collect()
}

/// Returns the region that has more than half of a passage, in both texts. The regions ascend by document and are
/// disjoint there, so that only the one with the middle of the passage can.
fn find_containing(regions: &[RewordedRegion], passage: &Passage) -> Option<usize> {
    let middle = passage.document.start.midpoint(passage.document.end);
    let at = regions.partition_point(|region| region.document.end <= middle);
    let region = regions.get(at)?;
    let is_in = |part: &Range<usize>, whole: &Range<usize>| 2 * overlap(part, whole) > part.len();
    (is_in(&passage.document, &region.document) && is_in(&passage.source, &region.source))
        .then_some(at)
}

/// Passages, ascending by document, in which parts of both texts are looked up.
struct KnownPassages<'a> {
    passages: &'a [Passage],
    /// For each passage the largest end in the document up to it.
    ends: Vec<usize>,
}

impl<'a> KnownPassages<'a> {
    fn new(passages: &'a [Passage]) -> Self {
        let ends = passages.iter().scan(0, |end, it| {
            *end = it.document.end.max(*end);
            Some(*end)
        });
        Self {
            passages,
            ends: ends.collect(),
        }
    }

    /// Returns `true` if passages cover most of a part of the document, and each has tokens of a part of the source.
    fn cover_parts(&self, document: &Range<usize>, source: &Range<usize>) -> bool {
        let first = self.ends.partition_point(|&end| end <= document.start);
        let around = self.passages[first..].iter();
        let meets = around
            .take_while(|region| region.document.start < document.end)
            .filter(|around| overlap(&around.source, source) > 0)
            .map(|around| clip(&around.document, document));
        100 * count_covered(meets.collect()) >= KNOWN_SHARE * document.len()
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    clip(a, b).len()
}

fn clip(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Returns an approximation of the binary logarithm of a number of 256ths, in steps of 1/256. It is exact for powers
/// of two and linear between them, so that it is the same on every machine.
fn approximate_log(value: u64) -> u32 {
    let power = value.ilog2();
    let fraction = (u128::from(value) << 8 >> power) as u32 & 255;
    (power - 8) * 256 + fraction
}

/// Returns the number of tokens that two lists have in common, each as often as in both, and the number of different
/// ones among them.
fn count_common(texts: [&[u64]; 2]) -> (usize, usize) {
    let sorted = |tokens: &[u64]| {
        let mut tokens = tokens.to_vec();
        tokens.sort_unstable();
        tokens
    };
    let [a, b] = texts.map(sorted);
    let (mut common, mut different) = (0, 0);
    let mut rest = &b[..];
    for equal in a.chunk_by(|a, b| a == b) {
        rest = &rest[rest.partition_point(|&it| it < equal[0])..];
        let count = rest.partition_point(|&it| it == equal[0]);
        common += equal.len().min(count);
        different += usize::from(count > 0);
    }
    (common, different)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::PassageBudget;
    use super::super::base_text::GivenTokens;
    use super::super::chain::sum_widths;
    use super::*;

    fn tokens() -> impl Strategy<Value = Vec<u64>> {
        let token = prop_oneof![2 => 0..60u64, 1 => (1 << 40)..(1 << 40) + 20u64];
        proptest::collection::vec(token, 1..200)
    }

    struct Text {
        tokens: Vec<u64>,
        given: GivenTokens,
        sums: Vec<u32>,
        slices: SlicedText,
    }

    impl Text {
        fn new(tokens: Vec<u64>) -> Self {
            let mut sums = Vec::new();
            sum_widths(&tokens, &mut sums);
            let mut slices = SlicedText::default();
            slices.set_tokens(&tokens);
            Self {
                tokens,
                given: GivenTokens::default(),
                sums,
                slices,
            }
        }

        fn measured(&self) -> MeasuredTokens<'_> {
            MeasuredTokens {
                tokens: &self.tokens,
                given: &self.given,
                sums: &self.sums,
            }
        }

        /// The different tokens of a slice; none behind the last one.
        fn tokens_of(&self, slice: usize) -> BTreeSet<u64> {
            let bounds = &self.slices.bounds;
            match bounds.get(slice..slice + 2) {
                Some(range) => {
                    let tokens = &self.tokens[range[0] as usize..range[1] as usize];
                    tokens.iter().copied().collect()
                }
                None => BTreeSet::new(),
            }
        }

        fn count_slices(&self, token: u64) -> usize {
            let slices = 0..self.slices.slice_count();
            slices
                .filter(|&it| self.tokens_of(it).contains(&token))
                .count()
        }
    }

    fn finder<'a>(document: &'a Text, source: &'a Text) -> RewordedFinder<'a> {
        RewordedFinder::new(
            [document.measured(), source.measured()],
            [&document.slices, &source.slices],
        )
    }

    fn passages() -> impl Strategy<Value = Vec<Passage>> {
        let passage = (0..80usize, 1..30usize, 0..80usize, 1..30usize);
        let passage = passage.prop_map(|(start, length, source, source_length)| Passage {
            document: start..start + length,
            source: source..source + source_length,
            matched: 1,
            given: 0,
            longest: 2,
            kind: PassageKind::Edited,
        });
        proptest::collection::vec(passage, 0..12).prop_map(|mut passages| {
            passages.sort_by_key(|passage| passage.document.start);
            passages
        })
    }

    fn region_of(passage: &Passage) -> RewordedRegion {
        RewordedRegion {
            document: passage.document.clone(),
            source: passage.source.clone(),
            weight: 0,
        }
    }

    #[test]
    fn logarithms_are_exact_at_powers_of_two() {
        for power in 0..40 {
            assert_eq!(approximate_log(256 << power), 256 * power);
        }
        assert_eq!(approximate_log(384), 128);
        assert!((256..5000).all(|value| approximate_log(value) <= approximate_log(value + 1)));
    }

    proptest! {
            /// Slices are the shortest runs with their width, and cover the text.
            #[test]
            fn slices_cover_the_text(tokens in tokens()) {
                let text = Text::new(tokens);
                let bounds = &text.slices.bounds;
                prop_assert_eq!((bounds[0], bounds[bounds.len() - 1] as usize), (0, text.tokens.len()));
                for slice in bounds.windows(2) {
                    let [start, end] = [slice[0] as usize, slice[1] as usize];
                    prop_assert!(text.measured().width(start..end - 1) < SLICE_WIDTH);
                    let is_last = end == text.tokens.len();
                    prop_assert!(is_last || text.measured().width(start..end) >= SLICE_WIDTH);
                }
                for (&token, &number) in text.tokens.iter().zip(&text.slices.numbers) {
                    prop_assert_eq!(text.slices.different[number as usize], token);
                    let slices = text.slices.slices_with(number as usize);
                    prop_assert!(slices.iter().all(|&it| text.tokens_of(it as usize).contains(&token)));
                    prop_assert_eq!(slices.len(), text.count_slices(token));
                }
                prop_assert!(text.slices.different.is_sorted());
            }

            /// Seeds are those of a table of all squares.
            #[test]
            fn seeds_equal_those_of_a_plain_table(a in tokens(), b in tokens(), swaps in 0..200usize) {
                // The second text begins like the first.
                let b = [&a[..swaps.min(a.len())], &b].concat();
                let (document, source) = (Text::new(a), Text::new(b));
                let finder = finder(&document, &source);
                let weight = |token: u64| {
                    let [of_document, of_source] = [&document, &source].map(|text| text.count_slices(token));
                    (u64::from(finder.weigh_token(of_document + of_source)), of_document * of_source)
                };
                let mut expected = Vec::new();
                for at in 0..document.slices.slice_count() {
                    let rows = [at, at + 1].map(|row| document.tokens_of(row));
                    let total: u64 = rows.iter().flatten().map(|&it| weight(it).0).sum();
                    for other in 0..source.slices.slice_count() {
                        let columns = [other, other + 1].map(|column| source.tokens_of(column));
                        let cells = rows.iter().flat_map(|row| columns.iter().map(move |column| row & column));
                        let shared: Vec<u64> = cells
                            .flatten()
                            .map(weight)
                            .filter(|pair| pair.1 <= MAX_CELLS)
                            .map(|pair| pair.0)
                            .collect();
                        let is_heavy = 100 * shared.iter().sum::<u64>() >= SEED_SHARE * total;
                        if shared.len() >= MIN_SEED_CELLS as usize && is_heavy {
                            expected.push((at as u32, other as u32, shared.len()));
                        }
                    }
                }
                let budget = PassageBudget::unlimited();
                let mut meter = StepMeter::new(&budget, 0);
                let (cells, totals) = finder.weigh_cells(&mut meter).unwrap();
                let seeds = finder.choose_seeds(&cells, &totals, &mut meter).unwrap();
                let expected: Vec<_> = expected
                    .into_iter()
                    .map(|(at, other, count)| {
                        (document.slices.pair_range(at), source.slices.pair_range(other), count)
                    })
                    .collect();
                let found: Vec<_> =
                    seeds.into_iter().map(|seed| (seed.document, seed.source, seed.matched)).collect();
                prop_assert_eq!(found, expected);
            }

            /// The width outside passages is that of a plain count, and a region needs all of its own.
            #[test]
            fn room_equals_a_plain_count(tokens in tokens(), passages in passages(), least in 50..80u32) {
                let text = Text::new(tokens);
                let end = text.tokens.len();
                let within = |it: &Range<usize>| it.start.min(end)..it.end.min(end);
                let ranges: Vec<_> = passages.iter().map(|passage| within(&passage.document)).collect();
                let is_free = |at: &usize| !ranges.iter().any(|range| range.contains(at));
                let expected: u64 = (0..end)
                    .filter(is_free)
                    .map(|at| u64::from(text.measured().width(at..at + 1)))
                    .sum();
                prop_assert_eq!(free_width(text.measured(), ranges), expected);

                let widest = expected.try_into().unwrap_or(u32::MAX).max(least);
                let whole: Vec<_> = passages
                    .into_iter()
                    .map(|passage| Passage { document: within(&passage.document), source: 0..0, ..passage })
                    .collect();
                let leaves = |width| leave_room([text.measured(); 2], &whole, width);
                let room = expected >= u64::from(MIN_WIDTH);
                prop_assert_eq!(leaves(widest - 1), room && expected + 1 >= u64::from(widest));
                prop_assert_eq!(leaves(widest), room && expected >= u64::from(widest));
                prop_assert!(!leaves(widest + 1));
            }

            /// Tokens of a part that lie in passages are those of a plain count.
            #[test]
            fn covered_parts_equal_a_plain_count(passages in passages(), parts in passages()) {
                let known = KnownPassages::new(&passages);
                for it in &parts {
                    let meets = |other: &&Passage| overlap(&other.source, &it.source) > 0;
                    let is_covered = |at: usize| {
                        let mut meeting = passages.iter().filter(meets);
                        meeting.any(|other| other.document.contains(&at))
                    };
                    let count = it.document.clone().filter(|&at| is_covered(at)).count();
                    let expected = 100 * count >= KNOWN_SHARE * it.document.len();
                    prop_assert_eq!(known.cover_parts(&it.document, &it.source), expected);
                }
            }

            /// The heavier of two regions that overlap remains, and passages belong to the region that has most of them.
            #[test]
            fn regions_are_disjoint(candidates in passages(), passages in passages()) {
                let all: Vec<RewordedRegion> = candidates.iter().rev().map(region_of).collect();
                let mut expected: Vec<RewordedRegion> = Vec::new();
                for region in &all {
                    if expected.iter().all(|passage| overlap(&passage.document, &region.document) == 0) {
                        expected.push(region.clone());
                    }
                }
                expected.sort_by_key(|passage| passage.document.start);
                let kept = keep_disjoint(all);
                prop_assert_eq!(&kept, &expected);
                for passage in &passages {
                    let has_most = |it: &RewordedRegion| {
                        2 * overlap(&passage.document, &it.document) > passage.document.len()
                            && 2 * overlap(&passage.source, &it.source) > passage.source.len()
                    };
                    prop_assert_eq!(find_containing(&kept, passage), kept.iter().position(has_most));
                }
            }

            /// No part of a range has a larger balance of shared and other weight.
            #[test]
            fn heaviest_part_has_the_largest_balance(a in tokens(), b in tokens()) {
                let (document, source) = (Text::new(a), Text::new(b));
                let finder = finder(&document, &source);
                let others: BTreeSet<u64> = source.tokens[source.tokens.len() / 2..].iter().copied().collect();
                let mut sums = vec![0i64];
                for token in &document.tokens {
                    let count = [&document, &source].map(|text| text.count_slices(*token));
                    let weight = i64::from(finder.weigh_token(count.iter().sum()));
                    let signed = if others.contains(token) {
    (100 - REGION_SHARE) * weight
    } else {
    -REGION_SHARE * weight
    };
                    sums.push(sums[sums.len() - 1] + signed);
                }
                let balance = |range: Range<usize>| sums[range.end] - sums[range.start];
                let range = 0..document.tokens.len().min(60);
                let half = source.tokens.len() / 2..source.tokens.len();
                let part = finder.heaviest_part(DOCUMENT_SIDE, range.clone(), &half, &mut Vec::new());
                let reached = part.map_or(0, |part| balance(part.0));
                for start in range.clone() {
                    for end in start..=range.end {
                        prop_assert!(balance(start..end) <= reached);
                    }
                }
            }
        }
}
