//! How far to split before comparing: the cost model of a join.

/// What is to be joined at some point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Fingerprints, on all sides.
    pub(super) elements: usize,
    /// Pairs of them.
    pub(super) pairs: f64,
}

/// How to split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// Bits of a block.
    pub(super) width: u32,
    /// Nanoseconds predicted.
    pub(super) cost: f64,
}

/// What splitting and comparing cost, and the sizes of what is done at once: time depends on them,
/// results never.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Up to so many fingerprints are compared at once without asking the model.
    pub(super) small: usize,
    /// From so many on, all threads work on one group.
    pub(super) large: usize,
    /// Fingerprints that are compared with one another in one go: they stay in the cache.
    pub(super) tile: usize,
    /// The most bits of a key at once: counters, cursors and the cache lines being filled stay in
    /// the cache.
    pub(super) key_bits: u32,
    /// The deepest nesting that is considered.
    pub(super) deepest: u32,
    /// Nanoseconds to take one fingerprint to its bucket.
    pub(super) pass: f64,
    /// Nanoseconds to begin with one fingerprint in a small bucket.
    pub(super) visit: f64,
    /// Nanoseconds to compare two fingerprints.
    pub(super) compare: f64,
    /// Candidates a fingerprint below which finer buckets gain nothing.
    pub(super) enough: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            small: 32,
            large: 1 << 17,
            tile: 2048,
            key_bits: 12,
            deepest: 6,
            pass: 2.5,
            visit: 2.0,
            compare: 0.12,
            enough: 4.0,
        }
    }
}

impl Tuning {
    /// Nanoseconds for comparing everything.
    pub(super) fn compare_all(&self, load: Load) -> f64 {
        load.elements as f64 * self.visit + load.pairs * self.compare
    }

    /// The cheapest way to split by `bits` bits of which near pairs differ in at most `budget`, if they
    /// were spread evenly: nesting to depth d, so that every near pair meets where d blocks of
    /// budget + d are equal.
    ///
    /// Buckets at depth t are visited C(budget + t, t) times by every fingerprint: once for each choice
    /// of blocks that differ before the t-th that does not.
    pub(super) fn split(&self, load: Load, bits: u32, budget: u32) -> Option<Split> {
        let elements = load.elements as f64;
        let candidates = load.pairs / elements;
        let needed = (candidates / self.enough).max(2.0).log2();
        let (mut ways, mut passed) = (1.0, 0.0);
        let plans = (1..=self.deepest).map_while(|depth| {
            let most = bits / (budget + depth);
            let width = most.min((needed / f64::from(depth)).ceil() as u32);
            ways *= f64::from(budget + depth) / f64::from(depth);
            passed += ways * f64::from(width.div_ceil(self.key_bits)) * self.pass;
            let left = candidates / f64::from(width * depth).exp2();
            let cost = elements * (passed + ways * (self.visit + left * self.compare));
            (width > 0).then_some(Split { width, cost })
        });
        plans.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }
}
