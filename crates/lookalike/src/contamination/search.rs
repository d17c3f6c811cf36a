//! The search of a document: which items may stand in it, and where.

use std::ops::Range;

use super::alignment::{AlignmentBuffers, UnitAlignment, align_unit};
use super::evidence::{BlockTerms, CountedTerms};
use super::index::{ContaminationIndex, MAX_UNIT_TOKENS, SearchUnit, UnitKind};
use super::item_tokens::ItemTokenizer;
use super::nearby_parts::{NearbyPart, find_parts, nearby_range};
use super::seed_index::SeedHit;
use super::seed_prefilter::{STRETCH_TOKENS, SeedCover, SeedPrefilter};
use super::term_table::NO_TERM;
use crate::byte_reader::ByteReader;
use crate::error::Result;

/// Share of the bits of a unit that seeds must cover near one another: one of so many.
pub(super) const SEED_COVER_DIVISOR: u64 = 4;

/// Share of the bits of a unit that the alignment must find: one of so many.
const CANDIDATE_DIVISOR: u64 = 2;

/// Items with one question whose parts are looked for.
const MAX_ITEMS_OF_UNIT: usize = 4096;

/// The part of an item that a candidate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemPart {
    /// The question, with or without other parts nearby.
    Question,
    /// The answer without the question.
    Answer,
}

/// An item that may stand in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemCandidate {
    /// Number of the item, from 0.
    pub item: u32,
    /// The part that was found.
    pub part: ItemPart,
    /// Bytes of the document from the first to the last token that was found.
    pub place: Range<usize>,
    /// Bytes of the document with the answer and the choices found nearby as well.
    pub whole_place: Range<usize>,
    /// Tokens of the part from the first to the last that was found.
    pub part_tokens: Range<u32>,
    /// Tokens of the document in between that the part does not have.
    pub(super) skipped_tokens: u32,
    /// One bit for each token of the part that was found.
    pub(super) found_tokens: Vec<u64>,
    /// The parts that were found nearby, if this is a question.
    pub(super) nearby_parts: Vec<NearbyPart>,
}

impl ItemCandidate {
    pub(super) fn is_token_found(&self, at: usize) -> bool {
        self.found_tokens[at / 64] >> (at % 64) & 1 == 1
    }

    pub(super) fn found_token_count(&self) -> u64 {
        let ones = self.found_tokens.iter().map(|word| word.count_ones());
        u64::from(ones.sum::<u32>())
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.found_tokens) + size_of_val(&*self.nearby_parts)
    }

    /// Returns `true` if the answer stands near the question.
    pub fn has_answer(&self) -> bool {
        self.nearby_parts.iter().any(NearbyPart::is_answer)
    }
}

impl ItemCandidate {
    /// Appends the candidate as bytes, little-endian.
    pub fn append_bytes(&self, bytes: &mut Vec<u8>) {
        let place = |place: &Range<usize>| [place.start as u64, place.end as u64];
        let places = place(&self.place)
            .into_iter()
            .chain(place(&self.whole_place));
        bytes.extend(self.item.to_le_bytes());
        bytes.push(u8::from(self.part == ItemPart::Answer));
        places.for_each(|place| bytes.extend(place.to_le_bytes()));
        let numbers = [
            self.part_tokens.start,
            self.part_tokens.end,
            self.skipped_tokens,
            self.found_tokens.len() as u32,
            self.nearby_parts.len() as u32,
        ];
        numbers
            .iter()
            .for_each(|number| bytes.extend(number.to_le_bytes()));
        self.found_tokens
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        for part in &self.nearby_parts {
            part.append_bytes(bytes);
        }
    }

    /// Reads a candidate from bytes; `None` if they are not those of one of this index.
    pub fn from_bytes(reader: &mut ByteReader<'_>, index: &ContaminationIndex) -> Option<Self> {
        let item = reader.read_u32()?;
        let part = match reader.read_u8()? {
            0 => ItemPart::Question,
            1 => ItemPart::Answer,
            _ => return None,
        };
        let mut place = || {
            let start = usize::try_from(reader.read_u64()?).ok()?;
            let end = usize::try_from(reader.read_u64()?).ok()?;
            Some(start..end)
        };
        let (place, whole_place) = (place()?, place()?);
        let part_tokens = reader.read_u32()?..reader.read_u32()?;
        let skipped_tokens = reader.read_u32()?;
        let words = reader.read_u32()? as usize;
        let parts = reader.read_u32()?;
        let found_tokens = reader.read_list(words, u64::from_le_bytes)?;
        let parts = (0..parts).map(|_| NearbyPart::from_bytes(reader));
        let nearby_parts = parts.collect::<Option<Vec<_>>>()?;
        let kind = match part {
            ItemPart::Question => UnitKind::Question,
            ItemPart::Answer => UnitKind::Answer,
        };
        index.items.get(item as usize)?;
        let unit = index.unit_of(item, kind)?;
        (words == unit.tokens.len().div_ceil(64)).then_some(Self {
            item,
            part,
            place,
            whole_place,
            part_tokens,
            skipped_tokens,
            found_tokens,
            nearby_parts,
        })
    }
}

/// The hits of a unit in a document.
#[derive(Clone, Debug)]
struct UnitHits {
    unit: u32,
    /// The hits, as a range of [`ItemSearcher::hits`].
    hits: Range<usize>,
}

/// Searches documents for items, one after another, and counts their tokens.
#[derive(Debug)]
pub struct ItemSearcher<'a> {
    index: &'a ContaminationIndex,
    tokenizer: ItemTokenizer,
    terms: Vec<u32>,
    hits: Vec<SeedHit>,
    prefilter: SeedPrefilter,
    groups: Vec<UnitHits>,
    /// Candidates of a document before their places are known in bytes.
    windows: Vec<(u32, Range<usize>)>,
    counts: BlockTerms,
    alignment: AlignmentBuffers,
}

impl<'a> ItemSearcher<'a> {
    /// Creates a searcher for the items of an index.
    pub fn new(index: &'a ContaminationIndex) -> Self {
        Self {
            index,
            tokenizer: ItemTokenizer::new(),
            terms: Vec::new(),
            hits: Vec::new(),
            prefilter: SeedPrefilter::new(),
            groups: Vec::new(),
            windows: Vec::new(),
            counts: BlockTerms::new(index),
            alignment: AlignmentBuffers::default(),
        }
    }

    /// Returns the counts of the tokens of all documents since the last call.
    pub fn take_counts(&mut self) -> CountedTerms {
        self.counts.take_counts()
    }

    /// Appends the items that may stand in a document: at most one candidate for each item and part, the best one, by
    /// number.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the text has 4 GiB or more.
    pub fn search_text(&mut self, text: &str, candidates: &mut Vec<ItemCandidate>) -> Result<()> {
        let tokens = self.tokenizer.tokenize_text(text)?;
        self.terms.clear();
        let table = &self.index.table;
        table.append_terms(tokens.values(), &mut self.terms);
        self.counts.add_total(self.terms.len() as u64);
        for &term in self.terms.iter().filter(|&&term| term != NO_TERM) {
            self.counts.count_term(term);
        }
        self.hits.clear();
        self.index.seeds.find_seeds(&self.terms, &mut self.hits);
        self.prefilter.retain_plausible(&mut self.hits);
        self.hits
            .sort_unstable_by_key(|hit| u64::from(hit.place) << 32 | u64::from(hit.at));
        self.choose_windows();
        let mut windows = std::mem::take(&mut self.windows);
        for (unit, window) in windows.drain(..) {
            self.align_window(unit, window, candidates);
        }
        self.windows = windows;
        candidates.sort_by_key(|candidate| (candidate.item, candidate.part));
        Ok(())
    }

    /// Chooses the part of the document for each unit with enough seeds.
    fn choose_windows(&mut self) {
        self.group_hits();
        let mut hits = std::mem::take(&mut self.hits);
        let mut groups = std::mem::take(&mut self.groups);
        for group in groups.drain(..) {
            let of_unit = &mut hits[group.hits];
            of_unit.sort_unstable_by_key(|hit| (hit.at, hit.place));
            let unit = &self.index.units[group.unit as usize];
            if let Some(window) = self.choose_window(unit, of_unit) {
                self.windows.push((group.unit, window));
            }
        }
        (self.hits, self.groups) = (hits, groups);
    }

    /// Collects the units whose seeds may cover enough of them, and begins to load what is known of these.
    fn group_hits(&mut self) {
        let index = self.index;
        let mut start = 0;
        while let Some(first) = self.hits.get(start) {
            let unit = index.places.unit_of_place(first.place);
            let unit_end = index.places.end_of_unit(first.place);
            // Few units have many hits.
            let of_unit = self.hits[start..].iter();
            let end = start + of_unit.take_while(|hit| hit.place < unit_end).count();
            if SeedCover::are_enough(&self.hits[start..end]) {
                crate::prefetch(&index.units[unit as usize]);
                crate::prefetch(&index.terms[first.place as usize]);
                crate::prefetch(&index.shares[first.place as usize]);
                let hits = start..end;
                self.groups.push(UnitHits { unit, hits });
            }
            start = end;
        }
    }

    /// Returns the tokens of the document where most seeds of a unit stand; `None` if they cover too little of it.
    fn choose_window(&self, unit: &SearchUnit, hits: &[SeedHit]) -> Option<Range<usize>> {
        let length = unit.tokens.len();
        let reach = seed_reach(length) as u32;
        let (mut start, mut best) = (0, 0..0);
        for (end, hit) in hits.iter().enumerate() {
            while hit.at - hits[start].at > reach {
                start += 1;
            }
            if end + 1 - start > best.len() {
                best = start..end + 1;
            }
        }
        let hits = &hits[best];
        if !SeedCover::are_enough(hits) {
            return None;
        }
        let (first, last) = (hits.first()?, hits.last()?);
        if self.covered_weight(unit, hits) * SEED_COVER_DIVISOR < unit.weight {
            return None;
        }
        let slack = 8 + length / 4;
        let before = (first.place - unit.tokens.start) as usize + slack;
        let behind = (unit.tokens.end - last.place) as usize + slack;
        let start = (first.at as usize).saturating_sub(before);
        let end = (last.at as usize + behind).min(self.terms.len());
        Some(start..end)
    }

    /// Returns the bits of the tokens of a unit that are part of a seed.
    fn covered_weight(&self, unit: &SearchUnit, hits: &[SeedHit]) -> u64 {
        let mut covered = [0_u64; 8];
        let terms = self.index.unit_terms(unit);
        for hit in hits {
            let at = (hit.place - unit.tokens.start) as usize;
            let length = super::seed_index::seed_length(&terms[at..]);
            for token in at..at + length {
                covered[token / 64] |= 1 << (token % 64);
            }
        }
        let weights = &self.index.prior_weights;
        let first = unit.tokens.start as usize;
        let mut weight = 0;
        for (word, mut bits) in covered.into_iter().enumerate() {
            while bits != 0 {
                let at = 64 * word + bits.trailing_zeros() as usize;
                weight += u64::from(self.index.weight_at(first + at, weights));
                bits &= bits - 1;
            }
        }
        weight
    }

    /// Aligns a unit with a part of the document, and adds the candidates of its items.
    fn align_window(
        &mut self,
        number: u32,
        window: Range<usize>,
        candidates: &mut Vec<ItemCandidate>,
    ) {
        let index = self.index;
        let unit = &index.units[number as usize];
        let terms = index.unit_terms(unit);
        let part = &self.terms[window.clone()];
        let first = unit.tokens.start as usize;
        let weight_at = |at| index.weight_at(first + at, &index.prior_weights);
        let least_weight = unit.weight.div_ceil(CANDIDATE_DIVISOR);
        let alignment = align_unit(terms, part, weight_at, least_weight, &mut self.alignment);
        let (Some(found), Some(of_unit)) = (alignment.part_range(), alignment.unit_range()) else {
            return;
        };
        let weight = alignment.sum_found(weight_at);
        if weight < least_weight {
            return;
        }
        let skipped = found.len() - alignment.found_count();
        let place = window.start + found.start..window.start + found.end;
        let candidate = ItemCandidate {
            item: 0,
            part: match unit.kind {
                UnitKind::Question => ItemPart::Question,
                UnitKind::Answer => ItemPart::Answer,
            },
            place: self.tokenizer.last_tokens().byte_range(place.clone()),
            whole_place: self.tokenizer.last_tokens().byte_range(place.clone()),
            part_tokens: of_unit.start as u32..of_unit.end as u32,
            skipped_tokens: skipped as u32,
            found_tokens: found_bits(&alignment),
            nearby_parts: Vec::new(),
        };
        for &item in unit.items.iter().take(MAX_ITEMS_OF_UNIT) {
            let mut candidate = ItemCandidate {
                item,
                ..candidate.clone()
            };
            if unit.kind == UnitKind::Question {
                self.find_parts(&place, &alignment, window.start, &mut candidate);
            }
            candidates.push(candidate);
        }
    }

    /// Looks for choices, answer and passage near a question.
    fn find_parts(
        &mut self,
        question: &Range<usize>,
        alignment: &UnitAlignment,
        window_start: usize,
        candidate: &mut ItemCandidate,
    ) {
        let item = &self.index.items[candidate.item as usize];
        let nearby = nearby_range(item, question, self.terms.len());
        let mut around = self.terms[nearby.clone()].to_vec();
        for place in alignment.places.iter().flatten() {
            around[window_start + *place as usize - nearby.start] = NO_TERM;
        }
        let question = question.start - nearby.start..question.end - nearby.start;
        let (parts, whole) = find_parts(self.index, item, &around, question, &mut self.alignment);
        let whole = nearby.start + whole.start..nearby.start + whole.end;
        candidate.whole_place = self.tokenizer.last_tokens().byte_range(whole);
        candidate.nearby_parts = parts;
    }
}

/// Returns the number of tokens of a document by which the seeds of a unit with so many tokens may be apart.
const fn seed_reach(unit_tokens: usize) -> usize {
    unit_tokens + unit_tokens / 2 + 16
}

// The prefilter adds up what is near one another.
const _: () = assert!(seed_reach(MAX_UNIT_TOKENS) < STRETCH_TOKENS as usize);

fn found_bits(alignment: &UnitAlignment) -> Vec<u64> {
    let mut bits = vec![0; alignment.places.len().div_ceil(64)];
    for (at, place) in alignment.places.iter().enumerate() {
        bits[at / 64] |= u64::from(place.is_some()) << (at % 64);
    }
    bits
}
