//! The frequencies of features over all portions, and the keys of the rarest features.

use super::ShuffleSetup;
use super::block_division::{refuse_no_parts, send_by_part};
use super::blocks::{self, DenseKeyAction, ShuffleContent, ShuffleFeatures, ShuffleKeys};
use super::scatter::{ShuffleBlock, ShuffleBlockKind};
use crate::candidates::{FeatureCounters, PrefixLengths, RarestFeatures};
use crate::error::{Error, Result};

/// The frequencies of features over all portions, which select the rarest ones as keys.
///
/// Every feature of a set could be a key, but those of its prefix are enough (see `candidates::PrefixLengths`).
/// A table loses no pair if it counts no feature less often than it occurs. So it must contain every portion: one
/// that lacks a portion, for example the empty default, loses pairs. Memory: 4 MiB.
pub struct FeatureOrder {
    frequencies: FeatureCounters,
}

const FEATURE_COUNTERS: usize = 1 << 20;

impl Default for FeatureOrder {
    fn default() -> Self {
        let frequencies = FeatureCounters::from_counts(vec![0; FEATURE_COUNTERS]);
        Self { frequencies }
    }
}

impl FeatureOrder {
    /// Reads a table that was written by [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Fails if the number of bytes is not that of a table.
    pub fn decode_order(bytes: &[u8]) -> Result<Self> {
        let (counts, rest) = bytes.as_chunks::<4>();
        if counts.len() != FEATURE_COUNTERS || !rest.is_empty() {
            return Err(Error::setting_error(format!(
                "a table of frequencies has {} bytes, not {}",
                4 * FEATURE_COUNTERS,
                bytes.len()
            )));
        }
        let counts = counts.iter().map(|count| u32::from_le_bytes(*count));
        Ok(Self {
            frequencies: FeatureCounters::from_counts(counts.collect()),
        })
    }

    /// Returns all counts as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.frequencies
            .iter_counts()
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    /// Counts the features of a block.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features.
    pub fn count_features(&self, setup: &ShuffleSetup, block: &[u8]) -> Result<()> {
        let features = features_of(setup, block)?;
        features.visit_documents(|_, features| self.frequencies.count_features(features));
        Ok(())
    }

    /// Returns a table with the counts of another one added.
    #[must_use]
    pub fn merge_counts(self, other: &Self) -> Self {
        let pairs = self
            .frequencies
            .iter_counts()
            .zip(other.frequencies.iter_counts());
        let sums = pairs.map(|(one, other)| one.saturating_add(other));
        let frequencies = FeatureCounters::from_counts(sums.collect());
        Self { frequencies }
    }

    /// Returns the rarest features of a block's documents as keys, in shuffle blocks for `parts` parts.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features, or if there are no parts.
    pub fn rarest_keys(
        &self,
        setup: &ShuffleSetup,
        block: &[u8],
        parts: u32,
    ) -> Result<Vec<ShuffleBlock>> {
        refuse_no_parts(parts)?;
        let features = features_of(setup, block)?;
        let layout = features.prefilters.layout();
        let mut to: Vec<_> = (0..parts)
            .map(|_| ShuffleKeys::new(setup, layout, DenseKeyAction::Split))
            .collect();
        let bound = setup.plan.overlap_bound();
        let (mut rarest, mut keys) = (RarestFeatures::default(), Vec::new());
        features.visit_documents(|document, set| {
            let prefixes = PrefixLengths::with_one_hit(set.len().max(1), bound);
            rarest.select(set, &self.frequencies, prefixes, 1, 0);
            keys.clear();
            let partition = features.partitions.get(document).copied().unwrap_or(0);
            let of_partition = |(key, side)| (setup.partitioned_key(key, partition), side);
            keys.extend(rarest.bucket_keys().map(of_partition));
            send_by_part(&mut keys, &mut to, |to, keys| {
                to.push_document(
                    features.nodes[document],
                    &features.prefilters,
                    document,
                    keys,
                );
            });
        });
        let shuffle_blocks = (0..).zip(to).filter(|(_, keys)| !keys.nodes.is_empty());
        Ok(shuffle_blocks
            .map(|(part, keys)| ShuffleBlock {
                kind: ShuffleBlockKind::Part,
                part,
                block: keys.encode_block(),
            })
            .collect())
    }
}

/// Reads a block of features.
pub(super) fn features_of(setup: &ShuffleSetup, block: &[u8]) -> Result<ShuffleFeatures> {
    match blocks::decode_block(setup, block)? {
        ShuffleContent::Features(features) => Ok(features),
        _ => Err(Error::setting_error(
            "a block holds no features: frequencies are counted from blocks of features only",
        )),
    }
}
