//! The bucket keys that a document has by its sketches.
//!
//! A plan compares sketches of at most one kind, so it has one rule that makes keys of them. Batch, stream and
//! shuffle make keys by this rule alone. A batch takes them in portions, because all keys of all documents
//! together need much memory.

use crate::hash::{fold_product, mix_bits};
use crate::plan::{BandPlan, BlockPlan, MatchPlan};
use crate::similarity::SketchRef;

/// The rule that makes bucket keys of a document's sketches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SketchKeys {
    /// None, because the plan compares no sketches.
    Nothing,
    /// A key for each band of the signature.
    Bands(BandPlan),
    /// A key for each block of bits of the fingerprint.
    Blocks(BlockPlan),
    /// The key that candidates have in common.
    EqualKey,
    /// A key for each of this many smallest hashes.
    Smallest(usize),
}

/// A portion of the keys of each document. Equal keys are always in the same portion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPortion {
    number: usize,
    count: usize,
    /// Largest number of keys of one document in the portion.
    most: usize,
    /// Share of a document's keys that the portion has, as a divisor, if keys are divided by their value.
    divisor: usize,
}

impl KeyPortion {
    const ALL: Self = Self {
        number: 0,
        count: 1,
        most: usize::MAX,
        divisor: 1,
    };

    /// Returns how many keys this many documents have in the portion: at most, or about, if keys are divided by
    /// their value.
    pub(crate) fn expected_keys(self, documents: usize) -> usize {
        (documents * self.most).div_ceil(self.divisor)
    }

    /// Returns the positions of the portion's keys, if keys are divided by their position.
    fn positions(self, keys: usize) -> std::ops::Range<usize> {
        let start = self.number * self.most;
        start.min(keys)..start.saturating_add(self.most).min(keys)
    }

    /// Returns `true` if a key is in the portion, if keys are divided by their value.
    fn has_value(self, key: u64) -> bool {
        (key >> 32) as usize % self.count == self.number
    }
}

impl SketchKeys {
    /// Returns the rule of a plan.
    pub(crate) fn new(plan: &MatchPlan) -> Self {
        if let Some(bands) = plan.band_plan() {
            Self::Bands(bands)
        } else if let Some(distance) = plan.distance() {
            // Two fingerprints within distance k have at least one of any k + 1 blocks in common.
            Self::Blocks(BlockPlan {
                count: distance.get() + 1,
                bits: plan.fingerprint_bits(),
            })
        } else if plan.equal_key().is_some() {
            Self::EqualKey
        } else if let Some(smallest) = plan.bottom_k_plan() {
            Self::Smallest(smallest.bucket_keys)
        } else {
            Self::Nothing
        }
    }

    /// Returns `true` if a document has the sketch that keys are made of.
    pub(crate) fn has_keys(self, document: SketchRef<'_>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Bands(_) => document.signature().is_some(),
            Self::Blocks(_) => document.fingerprint().is_some(),
            Self::EqualKey => document.equal_key().is_some(),
            Self::Smallest(_) => document.smallest_hashes().is_some(),
        }
    }

    /// Divides the keys into portions. In each, this many documents together have about `most` keys, but never
    /// fewer than one per document. Blocks are always taken one by one.
    pub(crate) fn divide_keys(
        self,
        documents: usize,
        most: usize,
    ) -> impl Iterator<Item = KeyPortion> {
        let (count, most) = match self {
            Self::Nothing => (0, 0),
            Self::Bands(BandPlan { bands, .. }) => {
                let at_once = (most / documents.max(1)).clamp(1, bands);
                (bands.div_ceil(at_once), at_once)
            }
            Self::Blocks(blocks) => (blocks.count as usize, 1),
            Self::EqualKey => (1, 1),
            Self::Smallest(keys) => (
                (documents * keys).div_ceil(most.max(documents).max(1)),
                keys,
            ),
        };
        let divisor = match self {
            Self::Smallest(_) => count.max(1),
            _ => 1,
        };
        (0..count).map(move |number| KeyPortion {
            number,
            count,
            most,
            divisor,
        })
    }

    /// Calls `visit` with all keys of a document.
    pub(crate) fn visit_keys(self, document: SketchRef<'_>, visit: impl FnMut(u64)) {
        self.visit_portion(document, KeyPortion::ALL, visit);
    }

    /// Calls `visit` with the keys of a document in a portion.
    pub(crate) fn visit_portion(
        self,
        document: SketchRef<'_>,
        portion: KeyPortion,
        mut visit: impl FnMut(u64),
    ) {
        match self {
            Self::Nothing => {}
            Self::Bands(bands) => {
                if let Some(signature) = document.signature() {
                    let positions = portion.positions(bands.bands);
                    positions.for_each(|band| visit(band_key(bands, band, signature)));
                }
            }
            Self::Blocks(blocks) => {
                if let Some(fingerprint) = document.fingerprint() {
                    let positions = portion.positions(blocks.count as usize);
                    let masks = blocks.block_masks().enumerate();
                    let masks = masks.skip(positions.start).take(positions.len());
                    masks.for_each(|(block, mask)| visit(block_key(block, fingerprint & mask)));
                }
            }
            Self::EqualKey => document.equal_key().into_iter().for_each(visit),
            Self::Smallest(count) => {
                let hashes = document.smallest_hashes().unwrap_or_default();
                let keys = hashes.iter().take(count).map(|&hash| smallest_key(hash));
                keys.filter(|&key| portion.has_value(key)).for_each(visit);
            }
        }
    }
}

/// Returns the bucket key of texts that are equal after normalisation.
pub(crate) fn equal_text_key(key: u128) -> u64 {
    key as u64 ^ (key >> 64) as u64
}

/// Returns the bucket key of one band of a signature.
pub(crate) fn band_key(bands: BandPlan, band: usize, signature: &[u32]) -> u64 {
    let rows = &signature[band * bands.rows..][..bands.rows];
    rows.iter().fold(mix_bits(band as u64), |key, &row| {
        fold_product(key ^ u64::from(row), BAND_FACTOR)
    })
}

const BAND_FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

/// Returns the bucket key of one of the smallest hashes.
fn smallest_key(hash: u64) -> u64 {
    mix_bits(hash)
}

/// Returns the bucket key of a block of a fingerprint, from the number of the block and its bits,
/// unshifted.
fn block_key(block: usize, bits: u128) -> u64 {
    mix_bits(bits as u64 ^ mix_bits((bits >> 64) as u64 ^ block as u64))
}
