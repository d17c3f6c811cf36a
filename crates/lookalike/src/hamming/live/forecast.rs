//! Predicted cost of a live index.

use std::fmt;

use super::BUCKET_LOAD;
use super::blocks::{LiveBlock, blocks_for_distance};
use super::line_rings::LAST;
use crate::arch::CacheLine;
use crate::error::{Error, Result};
use crate::hamming::MOST_DISTANCE;
use crate::hamming::plan::{
    CostPrediction, MOST_COUNTED, ball_volume, chance_above, line_nanoseconds,
};
use crate::types::Distance;

/// The blocks of a live index. There is one plan per width and distance, with few tables, because
/// every insertion writes to each table.
///
/// ```
/// use lookalike::Distance;
/// use lookalike::hamming::live::LivePlan;
///
/// let plan = LivePlan::new(64, Distance::new(3, 64)?)?;
/// assert_eq!(plan.to_string(), "32,32; 1,1 (live)");
/// assert_eq!(plan.predict_cost(50_000_000).probes, 32.0);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlan {
    bits: u32,
    blocks: Vec<LiveBlock>,
}

impl LivePlan {
    /// Creates the plan for fingerprints of `bits` bits and searches within up to `distance`.
    ///
    /// # Errors
    /// Returns an error if the bits are not 1–128, or if the distance is not below them or is above
    /// [`MOST_DISTANCE`].
    pub fn new(bits: u32, distance: Distance) -> Result<Self> {
        if !(1..=u128::BITS).contains(&bits) {
            return Err(Error::setting_error(format!(
                "fingerprints have 1 to {} bits, not {bits}",
                u128::BITS
            )));
        }
        let distance = Distance::new(distance.get(), bits)?.get();
        if distance > MOST_DISTANCE {
            return Err(Error::setting_error(format!(
                "the distance {distance} is above {MOST_DISTANCE}, the limit of a live index: scan \
                 instead"
            )));
        }
        Ok(Self {
            bits,
            blocks: blocks_for_distance(bits, distance),
        })
    }

    /// Predicts the cost of a look-up among `count` evenly distributed fingerprints, and the memory
    /// that they take while nothing has been removed or has expired.
    pub fn predict_cost(&self, count: u64) -> CostPrediction {
        let code = if self.bits <= u64::BITS {
            size_of::<u64>()
        } else {
            size_of::<u128>()
        };
        let count = count as f64;
        let mut total = CostPrediction {
            probes: 0.0,
            candidates: 0.0,
            survivors: 0.0,
            bytes: count * code as f64,
            nanoseconds: 40.0,
        };
        let passing = ball_volume(32, self.covered_distance()) / 2f64.powi(32);
        for block in &self.blocks {
            let buckets = (count / BUCKET_LOAD as f64).ceil().max(1.0);
            let pairs = buckets + pairs_beyond(count, buckets);
            let bytes = pairs * 2.0 * size_of::<CacheLine>() as f64;
            let probes = match (block.radius, block.width) {
                (1, 32) => 16.0,
                (radius, _) => ball_volume(buckets.log2().ceil() as u32, radius),
            };
            let candidates = probes * count / buckets;
            total.probes += probes;
            total.candidates += candidates;
            total.survivors += candidates * passing;
            total.bytes += bytes;
            total.nanoseconds += probes * pairs / buckets * line_nanoseconds(bytes / 2.0);
        }
        total.nanoseconds += total.survivors * 60.0;
        total
    }

    /// Returns the distance within which the tables together miss nothing.
    fn covered_distance(&self) -> u32 {
        let sees: u32 = self.blocks.iter().map(|block| block.radius + 1).sum();
        sees - 1
    }
}

/// Returns the number of overflow pairs of lines. Buckets are split in turn, so split buckets have
/// half the load of the others.
fn pairs_beyond(count: f64, buckets: f64) -> f64 {
    let before = 2f64.powi(buckets.log2() as i32);
    let split = buckets - before;
    let load = count / before;
    2.0 * split * overflow_pairs(load / 2.0) + (before - split) * overflow_pairs(load)
}

/// Returns the average number of overflow pairs of a bucket that has `load` entries on average.
fn overflow_pairs(load: f64) -> f64 {
    if load > MOST_COUNTED {
        return load / LAST as f64;
    }
    (LAST..10 * MOST_COUNTED as usize)
        .step_by(LAST)
        .map(|most| chance_above(load, most as u32))
        .sum()
}

impl fmt::Display for LivePlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: fn(&LiveBlock) -> u32| {
            let numbers = self.blocks.iter().map(|block| of(block).to_string());
            numbers.collect::<Vec<_>>().join(",")
        };
        let (widths, radii) = (list(|block| block.width), list(|block| block.radius));
        write!(formatter, "{widths}; {radii} (live)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::FingerprintCode;
    use crate::hamming::live::LiveIndex;

    #[test]
    fn predicted_memory_matches_used_memory() {
        fn check<C: FingerprintCode>(bits: u32, distance: u32, codes: &[C]) {
            let distance = Distance::new(distance, bits).unwrap();
            let plan = LivePlan::new(bits, distance).unwrap();
            let live = LiveIndex::<C>::new(bits, distance).unwrap();
            for some in codes.chunks(codes.len() / 5) {
                live.insert_many(some, 0).unwrap();
                let (predicted, taken) = (plan.predict_cost(live.len()).bytes, live.memory_bytes());
                let ratio = predicted / taken as f64;
                let case = format!("{bits} bits, {distance:?}: {predicted} for {taken}");
                assert!((0.9..1.1).contains(&ratio), "{case}");
            }
        }
        let narrow: Vec<u64> = (0..250_000).map(crate::hash::mix_bits).collect();
        let wide: Vec<u128> = narrow
            .iter()
            .map(|&code| u128::from(code) << 64 | u128::from(crate::hash::mix_bits(!code)))
            .collect();
        for distance in [0, 3, 6] {
            check(64, distance, &narrow);
        }
        check(128, 7, &wide);
    }

    #[test]
    fn invalid_live_index_settings_are_refused() {
        let distance = |most| Distance::new(most, 128).unwrap();
        assert!(LivePlan::new(0, distance(0)).is_err());
        assert!(LivePlan::new(129, distance(3)).is_err());
        assert!(LivePlan::new(8, distance(9)).is_err());
        assert!(LivePlan::new(64, distance(16)).is_ok());
        let said = LivePlan::new(64, distance(17)).unwrap_err().to_string();
        assert!(said.contains("17 is above 16"), "{said}");
    }
}
