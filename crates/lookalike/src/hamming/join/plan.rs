//! The cost model of a join: it decides how far to split before comparing.

/// Size of a group that is joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinLoad {
    /// Number of fingerprints on all sides.
    pub(super) elements: usize,
    /// Number of pairs of these fingerprints.
    pub(super) pairs: f64,
}

/// A way to split a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JoinSplit {
    /// Bits of a block.
    pub(super) width: u32,
    /// Predicted nanoseconds.
    pub(super) cost: f64,
}

/// Costs of splitting and comparing, and the sizes of units of work. They affect time, never
/// results.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinTuning {
    /// Largest number of fingerprints that are compared at once without asking the model.
    pub(super) small: usize,
    /// Number of fingerprints from which all threads work on one group.
    pub(super) large: usize,
    /// Number of fingerprints that are compared with one another in one go, so that they stay in
    /// the cache.
    pub(super) tile: usize,
    /// Largest number of bits of a key per pass, so that counters, cursors and the cache lines
    /// being filled stay in the cache.
    pub(super) key_bits: u32,
    /// Largest depth of nesting that is considered.
    pub(super) deepest: u32,
    /// Nanoseconds to copy one fingerprint to its bucket.
    pub(super) pass: f64,
    /// Nanoseconds to start with one fingerprint in a small bucket.
    pub(super) visit: f64,
    /// Nanoseconds to compare two fingerprints.
    pub(super) compare: f64,
    /// Candidates per fingerprint below which finer buckets gain nothing.
    pub(super) enough: f64,
}

impl Default for JoinTuning {
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

impl JoinTuning {
    /// Returns the nanoseconds for comparing all pairs.
    pub(super) fn compare_all(&self, load: JoinLoad) -> f64 {
        load.elements as f64 * self.visit + load.pairs * self.compare
    }

    /// Returns the cheapest way to split by `bits` bits, of which near pairs differ in at most
    /// `budget`, if fingerprints were spread evenly. The split nests to a depth d, so that every
    /// near pair shares a group in which d of the budget + d blocks are equal.
    ///
    /// Every fingerprint visits C(budget + t, t) buckets at depth t, one for each choice of the
    /// blocks that differ before the t-th equal block.
    pub(super) fn cheapest_split(
        &self,
        load: JoinLoad,
        bits: u32,
        budget: u32,
    ) -> Option<JoinSplit> {
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
            (width > 0).then_some(JoinSplit { width, cost })
        });
        plans.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }
}
