//! A share estimated from a sample, with its interval.

/// A share of some cases, estimated from a sample of independent ones, with a 95 % interval.
///
/// The interval is Wilson's (1927), which inverts the score test. It stays within 0 to 1. Unlike the
/// usual mean ± 1.96 standard errors, it does not shrink to a point where all of the sample agree,
/// which is common where a method misses one pair in a hundred. The interval of Clopper and Pearson,
/// which never covers less than 95 %, is much wider at samples of tens. Over all shares, Wilson's
/// covers 95 % on average.
///
/// A case may be a share itself, for example the share of a document's near-duplicates that were found.
/// The variance of such a mean is at most that of as many cases of yes and no, so the interval is then
/// too wide rather than too narrow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonEstimate {
    /// Mean over the sample; 0 if the sample is empty.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of cases in the sample.
    pub cases: u64,
}

/// The 97.5th percentile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

impl WilsonEstimate {
    /// Returns the estimate of a mean from the sum of `cases` cases between 0 and 1. Without cases, the
    /// interval is from 0 to 1.
    pub fn new(sum: f64, cases: u64) -> Self {
        if cases == 0 {
            return Self {
                share: 0.0,
                low: 0.0,
                high: 1.0,
                cases,
            };
        }
        let count = cases as f64;
        let share = (sum / count).clamp(0.0, 1.0);
        let spread = NORMAL_QUANTILE * NORMAL_QUANTILE / count;
        let middle = (share + spread / 2.0) / (1.0 + spread);
        let half = (spread * (share * (1.0 - share) + spread / 4.0)).sqrt() / (1.0 + spread);
        Self {
            share,
            // Clamped because rounding must not move an end past a share of 0 or 1.
            low: (middle - half).clamp(0.0, share),
            high: (middle + half).clamp(share, 1.0),
            cases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::plant::random::SplitMix64;

    #[test]
    fn intervals_equal_worked_examples() {
        let close = |estimate: WilsonEstimate, low: f64, high: f64| {
            assert!((estimate.low - low).abs() < 5e-5, "{estimate:?}");
            assert!((estimate.high - high).abs() < 5e-5, "{estimate:?}");
        };
        // From Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        close(WilsonEstimate::new(81.0, 263), 0.2553, 0.3662);
        close(WilsonEstimate::new(15.0, 148), 0.0624, 0.1605);
        close(WilsonEstimate::new(0.0, 20), 0.0, 0.1611);
        close(WilsonEstimate::new(1.0, 29), 0.0061, 0.1718);
        let none = WilsonEstimate::new(0.0, 0);
        assert_eq!((none.low, none.high), (0.0, 1.0));
    }

    #[test]
    fn complete_success_leaves_an_interval() {
        let estimate = WilsonEstimate::new(50.0, 50);
        assert_eq!((estimate.share, estimate.high), (1.0, 1.0));
        assert!((0.92..0.94).contains(&estimate.low), "{estimate:?}");
    }

    #[test]
    fn ninety_percent_of_intervals_hold_the_truth() {
        let mut random = SplitMix64::from_document(1, "", "coverage");
        for (truth, cases) in [(0.99, 300), (0.95, 100), (0.5, 30), (0.9, 2000)] {
            let holds = (0..1000).filter(|_| {
                let hit =
                    |_: &u64| (random.next_bits() >> 11) as f64 / (1u64 << 53) as f64 <= truth;
                let hits = (0..cases).filter(hit).count();
                let estimate = WilsonEstimate::new(hits as f64, cases);
                estimate.low <= truth && truth <= estimate.high
            });
            let covered = holds.count();
            assert!(covered >= 920, "{covered} at {truth} of {cases}");
        }
    }
}
