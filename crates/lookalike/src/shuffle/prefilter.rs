//! Prefilter data: the few bytes of a sketch that are sent with keys and rule out most pairs.

use super::ShuffleSetup;
use crate::byte_reader::ByteReader;
use crate::hash::mix_bits;
use crate::similarity::PairPredicate;
use crate::sketch::{DocumentSketches, LONG_SIZE, SetSummary};
use crate::types::DocId;

/// The kind of prefilter data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefilterLayout {
    /// None: all documents that share a key are linked.
    Nothing,
    /// Size and parities of a feature set, for documents in the exact join.
    Summary,
    /// Four bits of every slot of a signature, and the set size if the plan has an exact join.
    Slots,
    /// The SimHash fingerprint.
    Code,
    /// Size and bitmap of a feature set, for documents in the exact join by containment.
    Bitmap,
}

impl PrefilterLayout {
    /// Returns the prefilter data that is sent with the keys of a plan's sketches.
    pub(super) fn of_sketches(setup: &ShuffleSetup) -> Self {
        if setup.plan.band_plan().is_some() {
            Self::Slots
        } else if setup.plan.distance().is_some() {
            Self::Code
        } else {
            Self::Nothing
        }
    }

    /// Returns the prefilter data that is sent with the keys of features in a plan's exact join.
    pub(super) fn of_features(setup: &ShuffleSetup) -> Self {
        if setup.plan.joins_by_containment() {
            Self::Bitmap
        } else {
            Self::Summary
        }
    }

    pub(super) fn layout_number(self) -> u8 {
        self as u8
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Nothing,
            Self::Summary,
            Self::Slots,
            Self::Code,
            Self::Bitmap,
        ];
        all.into_iter()
            .find(|layout| layout.layout_number() == number)
    }
}

const BITS_PER_SLOT: usize = 4;
const SLOTS_A_WORD: usize = 64 / BITS_PER_SLOT;
/// Lowest bit of each slot in a word.
const LOWEST_SLOT_BITS: u64 = u64::MAX / 15;

/// Prefilter data of many documents.
#[derive(Clone, Debug)]
pub(super) enum PrefilterColumn {
    Nothing,
    Summaries(Vec<SetSummary>),
    Slots {
        sizes: Vec<u32>,
        words: usize,
        bits: Vec<u64>,
    },
    Codes(Vec<u128>),
    Bitmaps {
        sizes: Vec<u32>,
        bitmaps: Vec<FeatureBitmap>,
    },
}

/// A bit for each value of ten bits of a feature. It says more about containment than the parities of a
/// summary do, because a bit that is not set proves that a set lacks the features with these bits.
type FeatureBitmap = [u64; BITMAP_WORDS];

const BITMAP_WORDS: usize = 16;

fn bitmap_of(features: &[u64]) -> FeatureBitmap {
    let mut bitmap = [0; BITMAP_WORDS];
    for feature in features {
        let bit = mix_bits(*feature) as usize % (64 * BITMAP_WORDS);
        bitmap[bit / 64] |= 1 << (bit % 64);
    }
    bitmap
}

impl PrefilterColumn {
    pub(super) fn new(layout: PrefilterLayout, setup: &ShuffleSetup) -> Self {
        match layout {
            PrefilterLayout::Nothing => Self::Nothing,
            PrefilterLayout::Summary => Self::Summaries(Vec::new()),
            PrefilterLayout::Slots => Self::Slots {
                sizes: Vec::new(),
                words: setup.plan.signature_slots().div_ceil(SLOTS_A_WORD),
                bits: Vec::new(),
            },
            PrefilterLayout::Code => Self::Codes(Vec::new()),
            PrefilterLayout::Bitmap => Self::Bitmaps {
                sizes: Vec::new(),
                bitmaps: Vec::new(),
            },
        }
    }

    pub(super) fn layout(&self) -> PrefilterLayout {
        match self {
            Self::Nothing => PrefilterLayout::Nothing,
            Self::Summaries(_) => PrefilterLayout::Summary,
            Self::Slots { .. } => PrefilterLayout::Slots,
            Self::Codes(_) => PrefilterLayout::Code,
            Self::Bitmaps { .. } => PrefilterLayout::Bitmap,
        }
    }

    /// Adds a document, which must have the sketches of this layout. `features` are all of its features, if
    /// the layout is of features.
    pub(super) fn push_document(
        &mut self,
        sketches: &DocumentSketches,
        document: DocId,
        features: &[u64],
    ) {
        match self {
            Self::Nothing => {}
            Self::Summaries(summaries) => summaries.push(sketches.set_summary(document)),
            Self::Slots { sizes, words, bits } => {
                let summary = sketches.optional_summary(document);
                sizes.push(summary.map_or(LONG_SIZE, |summary| summary.size));
                let start = bits.len();
                bits.resize(start + *words, 0);
                let signature = sketches.minhash_signature(document).unwrap_or_default();
                for (at, &slot) in signature.iter().enumerate() {
                    let shift = at % SLOTS_A_WORD * BITS_PER_SLOT;
                    bits[start + at / SLOTS_A_WORD] |= slot_bits(slot) << shift;
                }
            }
            Self::Codes(codes) => codes.push(sketches.fingerprint(document).unwrap_or(0)),
            Self::Bitmaps { sizes, bitmaps } => {
                sizes.push(features.len() as u32);
                bitmaps.push(bitmap_of(features));
            }
        }
    }

    /// Adds a document from other prefilter data of the same layout.
    pub(super) fn copy_entry(&mut self, other: &Self, at: usize) {
        match (self, other) {
            (Self::Summaries(to), Self::Summaries(from)) => to.push(from[at]),
            (
                Self::Slots { sizes, words, bits },
                Self::Slots {
                    sizes: from_sizes,
                    bits: from,
                    ..
                },
            ) => {
                sizes.push(from_sizes[at]);
                bits.extend_from_slice(&from[at * *words..][..*words]);
            }
            (Self::Codes(to), Self::Codes(from)) => to.push(from[at]),
            (
                Self::Bitmaps { sizes, bitmaps },
                Self::Bitmaps {
                    sizes: from_sizes,
                    bitmaps: from,
                },
            ) => {
                sizes.push(from_sizes[at]);
                bitmaps.push(from[at]);
            }
            _ => {}
        }
    }

    pub(super) fn encode_column(&self, into: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Summaries(summaries) => {
                let sizes = summaries.iter().map(|summary| summary.size.to_le_bytes());
                sizes.for_each(|size| into.extend(size));
                let parities = summaries
                    .iter()
                    .map(|summary| summary.group_parities().to_le_bytes());
                parities.for_each(|parities| into.extend(parities));
            }
            Self::Slots { sizes, bits, .. } => {
                sizes
                    .iter()
                    .for_each(|size| into.extend(size.to_le_bytes()));
                bits.iter().for_each(|word| into.extend(word.to_le_bytes()));
            }
            Self::Codes(codes) => codes
                .iter()
                .for_each(|code| into.extend(code.to_le_bytes())),
            Self::Bitmaps { sizes, bitmaps } => {
                sizes
                    .iter()
                    .for_each(|size| into.extend(size.to_le_bytes()));
                let words = bitmaps.as_flattened().iter();
                words.for_each(|word| into.extend(word.to_le_bytes()));
            }
        }
    }

    /// Reads and appends the data of `count` documents. Returns `None` if there are too few bytes.
    pub(super) fn decode_column(
        &mut self,
        reader: &mut ByteReader<'_>,
        count: usize,
    ) -> Option<()> {
        match self {
            Self::Nothing => {}
            Self::Summaries(summaries) => {
                let sizes = reader.read_list(count, u32::from_le_bytes)?;
                let parities = reader.read_list(count, u64::from_le_bytes)?;
                let both = sizes.into_iter().zip(parities);
                summaries
                    .extend(both.map(|(size, parities)| SetSummary::without_key(size, parities)));
            }
            Self::Slots { sizes, words, bits } => {
                sizes.extend(reader.read_list(count, u32::from_le_bytes)?);
                bits.extend(reader.read_list(count.checked_mul(*words)?, u64::from_le_bytes)?);
            }
            Self::Codes(codes) => codes.extend(reader.read_list(count, u128::from_le_bytes)?),
            Self::Bitmaps { sizes, bitmaps } => {
                sizes.extend(reader.read_list(count, u32::from_le_bytes)?);
                let words = count.checked_mul(BITMAP_WORDS)?;
                let words = reader.read_list(words, u64::from_le_bytes)?;
                bitmaps.extend_from_slice(words.as_chunks().0);
            }
        }
        Some(())
    }
}

/// Returns a few bits of a slot, each of which depends on the whole slot.
fn slot_bits(slot: u32) -> u64 {
    u64::from(slot.wrapping_mul(0x9e37_79b1) >> (32 - BITS_PER_SLOT))
}

/// Compares prefilter data. Guarantee: two candidates are never ruled out.
pub(super) struct PairPrefilter<'s> {
    setup: &'s ShuffleSetup,
    rule: PairPredicate<'s>,
    /// Number of unused slots in the last word.
    padding: usize,
}

impl<'s> PairPrefilter<'s> {
    pub(super) fn new(setup: &'s ShuffleSetup) -> Self {
        let slots = setup.plan.signature_slots();
        Self {
            setup,
            rule: PairPredicate::new(&setup.plan),
            padding: slots.next_multiple_of(SLOTS_A_WORD) - slots,
        }
    }

    pub(super) fn may_match(&self, prefilters: &PrefilterColumn, a: usize, b: usize) -> bool {
        match prefilters {
            PrefilterColumn::Nothing => true,
            PrefilterColumn::Summaries(summaries) => self
                .rule
                .is_join_candidate(summaries[a], summaries[b])
                .unwrap_or(false),
            PrefilterColumn::Slots { sizes, words, bits } => {
                let reach = self
                    .setup
                    .plan
                    .join_plan()
                    .map_or(0, |join| join.max_partner_features);
                let decided_by_the_join = sizes[a].max(sizes[b]) as usize <= reach;
                !decided_by_the_join && {
                    let (a, b) = (&bits[a * words..][..*words], &bits[b * words..][..*words]);
                    self.are_near_slots(a, b)
                }
            }
            PrefilterColumn::Codes(codes) => self.are_near_fingerprints(codes[a], codes[b]),
            PrefilterColumn::Bitmaps { sizes, bitmaps } => self.may_overlap(
                (sizes[a] as usize, &bitmaps[a]),
                (sizes[b] as usize, &bitmaps[b]),
            ),
        }
    }

    /// Returns `true` if two sets of features may share enough. A bit that only one bitmap has stands for a
    /// feature that only this set has.
    fn may_overlap(&self, a: (usize, &FeatureBitmap), b: (usize, &FeatureBitmap)) -> bool {
        let most_shared = |one: (usize, &FeatureBitmap), other: &FeatureBitmap| {
            let words = one.1.iter().zip(other);
            let alone = words.map(|(one, other)| (one & !other).count_ones() as usize);
            one.0.saturating_sub(alone.sum())
        };
        let shared = most_shared(a, b.1).min(most_shared(b, a.1));
        shared > 0
            && self
                .setup
                .plan
                .overlap_bound()
                .admits_overlap(shared, a.0, b.0)
    }

    /// Returns `true` if enough slots may be equal. Equal slots have equal bits, so at least as many
    /// slots have equal bits as are equal.
    fn are_near_slots(&self, a: &[u64], b: &[u64]) -> bool {
        let Some(bands) = self.setup.plan.band_plan() else {
            return true;
        };
        let mut differing = 0;
        for (a, b) in a.iter().zip(b) {
            let bits = a ^ b;
            let bits = bits | bits >> 1;
            differing += ((bits | bits >> 2) & LOWEST_SLOT_BITS).count_ones() as usize;
        }
        a.len() * SLOTS_A_WORD - self.padding - differing >= bands.min_equal_slots
    }

    fn are_near_fingerprints(&self, a: u128, b: u128) -> bool {
        match (self.setup.plan.block_plan(), self.setup.plan.distance()) {
            (Some(blocks), _) => blocks.share_block(a, b),
            (None, Some(distance)) => (a ^ b).count_ones() <= distance.get(),
            (None, None) => true,
        }
    }
}
