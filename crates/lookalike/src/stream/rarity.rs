//! Orders of features by rarity, for the prefix filter of a stream.
//!
//! The filter loses no pair under any total order of features if both documents use the same one. An
//! order by rarity yields the fewest candidates. A document is inserted under a feature on a [`BucketSide`].
//! Documents on the probing side are no candidates of each other, so documents that share a template
//! and too little else are not compared (see [`PrefixLengths`]).
//!
//! Rarity is learned from the kept documents. From time to time the counts become a new order, under
//! which documents are inserted from then on. A document is looked up under every order that live
//! documents were inserted under; these orders mostly select the same features.
//!
//! Guarantee: an order influences how long a look-up takes, and never its result. So after a restart,
//! other orders may be learned.
//!
//! Features are counted in a table without collision handling. A feature that shares its counter counts
//! as more frequent than it is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::arch;
use crate::candidates::{BucketSide, PrefixHits, PrefixLengths, feature_key};
use crate::similarity::OverlapBound;

/// A bucket key under which a document looks for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeKey {
    pub(super) key: u64,
    /// Side of the document under this key.
    side: BucketSide,
}

impl ProbeKey {
    /// Returns a key under which all documents are on the indexing side.
    pub(super) fn on_indexing_side(key: u64) -> Self {
        let side = BucketSide::Indexing;
        Self { key, side }
    }

    /// Returns the hit of a document that was inserted under this key on `side`, for containment.
    pub(super) fn hit_on_side(self, side: BucketSide) -> PrefixHits {
        PrefixHits::from_sides(self.side, side)
    }

    /// Returns `true` if the querying document can see one that was inserted under this key on `side`.
    pub(super) fn finds_side(self, side: BucketSide) -> bool {
        self.side == BucketSide::Indexing || side == BucketSide::Indexing
    }
}

/// Learns the frequencies of features, and keeps the orders made from them.
#[derive(Debug)]
pub(super) struct RarityOrders {
    bound: OverlapBound,
    counters: Vec<u32>,
    /// Orders of live documents before the newest one, the oldest first.
    older: VecDeque<Arc<RarityOrder>>,
    newest: Arc<RarityOrder>,
    /// Number of documents since the newest order began.
    since: u64,
    /// Number of orders that have begun.
    begun: u64,
}

/// The order under which documents are inserted. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct NewestOrder {
    bound: OverlapBound,
    order: Arc<RarityOrder>,
}

#[derive(Debug)]
struct RarityOrder {
    /// Number of the first document that may be inserted under this order.
    first: u64,
    /// Number below [`ORDER_MARKS`] that separates the keys of this order from those of others.
    mark: u64,
    /// Frequency class of each counter. Features of a higher class come later. The length is a power of
    /// two.
    classes: Box<[u8]>,
}

/// Number of documents before the first learned order, and least number between any two orders.
/// Documents before the first order are found by features that are not rare, as long as they live.
const LEAST_DOCUMENTS: u64 = 1024;

/// Number of different marks, a power of two. Marks are small so that the keys of one feature differ in
/// their lowest bits alone, and their chains begin in the same cache line. Two live orders can have the
/// same mark only if the window became 4¹⁶ times as large meanwhile; then their documents are
/// candidates unnecessarily.
const ORDER_MARKS: u64 = 16;

/// Mark of the probing side of a feature, where the sides have separate keys. Then all orders have the mark 0.
const PROBING_MARK: u64 = 1;

/// Largest number of counters: 16 MiB.
const MOST_COUNTERS: usize = 1 << 22;

impl RarityOrders {
    /// Returns the initial state, for sets whose overlap reaches `bound`.
    pub(super) fn new(bound: OverlapBound) -> Self {
        let first = RarityOrder {
            first: 0,
            mark: 0,
            classes: Box::new([0]),
        };
        Self {
            bound,
            counters: vec![0; 1 << 12],
            older: VecDeque::new(),
            newest: Arc::new(first),
            since: 0,
            begun: 0,
        }
    }

    /// Appends the keys under which a set looks for others: those of each order.
    pub(super) fn keys_to_ask(&self, features: &[u64], keys: &mut Vec<ProbeKey>) {
        with_ranking(features, self.bound, |ranking| {
            for order in self.iter_orders() {
                ranking.append_probe_keys(order, self.bound, keys);
            }
        });
    }

    /// Returns the order under which documents are inserted.
    pub(super) fn newest_order(&self) -> NewestOrder {
        NewestOrder {
            bound: self.bound,
            order: self.newest.clone(),
        }
    }

    fn iter_orders(&self) -> impl Iterator<Item = &RarityOrder> {
        let older = self.older.iter();
        older.chain(std::iter::once(&self.newest)).map(Arc::as_ref)
    }

    /// Prefetches the counters of features.
    pub(super) fn prefetch_counters(&self, features: &[u64]) {
        for &feature in features {
            arch::prefetch(&self.counters[counter_index(feature, self.counters.len())]);
        }
    }

    /// Counts features of a document.
    pub(super) fn count_features(&mut self, features: &[u64]) {
        for &feature in features {
            let at = counter_index(feature, self.counters.len());
            self.counters[at] = self.counters[at].saturating_add(1);
        }
    }

    /// Counts a document that was inserted with this number, and whose features are counted. All documents before `low`
    /// have expired, and `live` have not. Returns `true` if a new order begins with the next document.
    pub(super) fn count_document(&mut self, number: u64, low: u64, live: u64) -> bool {
        self.since += 1;
        if 8 * self.since > self.counters.len() as u64 && self.counters.len() < MOST_COUNTERS {
            // Both halves now contain the counts of features that shared a counter, so these count as
            // more frequent than they are.
            self.counters.extend_from_within(..);
        }
        let over = self.since >= self.order_lifetime(low, live);
        if over {
            self.begin_order(number + 1);
        }
        over
    }

    /// Returns the number of documents for which an order lasts. While the window fills, a new order
    /// begins when the documents are four times as many, so that orders are few. Once the window moves,
    /// it begins after half of the documents, so that features which were new at its start do not count
    /// as rare for long.
    fn order_lifetime(&self, low: u64, live: u64) -> u64 {
        let slides = self.newest.first <= low;
        let enough = if slides && low > 0 {
            live / 2
        } else {
            live / 4 * 3
        };
        enough.max(LEAST_DOCUMENTS)
    }

    fn begin_order(&mut self, first: u64) {
        let classes = self
            .counters
            .iter()
            .map(|&count| frequency_class(count))
            .collect();
        // A set that may contain another is looked up and inserted with all of its features, so the
        // prefix of the other one may be of any order, and one kind of keys serves all orders.
        let is_shared = has_separate_sides(self.bound);
        self.begun += u64::from(!is_shared);
        let newest = Arc::new(RarityOrder {
            first,
            mark: self.begun % ORDER_MARKS,
            classes,
        });
        let before = std::mem::replace(&mut self.newest, newest);
        self.older.extend((!is_shared).then_some(before));
        self.counters.iter_mut().for_each(|count| *count /= 2);
        self.since = 0;
    }

    /// Drops orders whose documents are all before `low`.
    pub(super) fn forget_before(&mut self, low: u64) {
        while self.second_order().first <= low && self.older.pop_front().is_some() {}
    }

    /// Returns the order after the oldest one, or the only one.
    fn second_order(&self) -> &RarityOrder {
        self.older.get(1).unwrap_or(&self.newest)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let classes: usize = self.iter_orders().map(|order| order.classes.len()).sum();
        (classes + 4 * self.counters.capacity()) as u64
    }
}

impl NewestOrder {
    /// Returns `true` if no document was inserted under keys that depend on an older order.
    pub(super) fn is_only_order(&self) -> bool {
        has_separate_sides(self.bound)
    }

    /// Appends the keys under which a set looks for others that were inserted under this order.
    pub(super) fn keys_to_ask(&self, features: &[u64], keys: &mut Vec<ProbeKey>) {
        with_ranking(features, self.bound, |ranking| {
            ranking.append_probe_keys(&self.order, self.bound, keys);
        });
    }

    /// Appends the keys under which a set is inserted.
    pub(super) fn keys_to_add(&self, features: &[u64], keys: &mut Vec<(u64, BucketSide)>) {
        let is_separate = has_separate_sides(self.bound);
        with_ranking(features, self.bound, |ranking| {
            keys.extend(
                ranking
                    .prefix_keys(&self.order)
                    .map(|(key, side)| match side {
                        BucketSide::Probing if is_separate => (key ^ PROBING_MARK, side),
                        _ => (key, side),
                    }),
            );
        });
    }
}

/// Returns `true` if the sides of a feature have keys of their own. For containment they have: a set is inserted
/// under all of its features, and most of these are frequent. So the documents of the probing side are many, and
/// only a set with the feature in its indexing prefix reads them.
fn has_separate_sides(bound: OverlapBound) -> bool {
    bound.least_containment().is_some()
}

fn with_ranking(features: &[u64], bound: OverlapBound, rank: impl FnOnce(&mut RankedFeatures)) {
    if features.is_empty() {
        return;
    }
    let mut ranking = RANKING_SCRATCH.take();
    ranking.begin_document(features, bound);
    rank(&mut ranking);
    if features.len() <= MOST_KEPT_FEATURES {
        RANKING_SCRATCH.set(ranking);
    }
}

/// Number of features up to which a thread keeps the memory of a ranking, some 2 MiB.
const MOST_KEPT_FEATURES: usize = 1 << 16;

thread_local! {
    static RANKING_SCRATCH: Cell<RankedFeatures> = Cell::default();
}

/// Sorts the features of a set by an [`RarityOrder`].
#[derive(Default)]
struct RankedFeatures {
    /// Features, and their keys without the mark of the order.
    features: Vec<(u64, u64)>,
    /// Numbers of features in the indexing and in the probing prefix.
    indexing: usize,
    probing: usize,
    /// Class of each feature, with its key in the bits below.
    ranked: Vec<u128>,
}

impl RankedFeatures {
    fn begin_document(&mut self, features: &[u64], bound: OverlapBound) {
        self.features.clear();
        let document_keys = |&feature: &u64| (feature, feature_key(feature));
        self.features.extend(features.iter().map(document_keys));
        let prefixes = PrefixLengths::from_feature_count(features.len(), bound);
        (self.indexing, self.probing) = (prefixes.indexing, prefixes.probing);
    }

    fn append_probe_keys(
        &mut self,
        order: &RarityOrder,
        bound: OverlapBound,
        keys: &mut Vec<ProbeKey>,
    ) {
        let is_separate = has_separate_sides(bound);
        let sided = self.prefix_keys(order);
        keys.extend(sided.flat_map(|(key, side)| {
            let finds_both = is_separate && side == BucketSide::Indexing;
            let probing = key ^ PROBING_MARK;
            std::iter::once(ProbeKey { key, side })
                .chain(finds_both.then_some(ProbeKey { key: probing, side }))
        }));
    }

    /// Returns the keys of the probing prefix, those of the indexing prefix first, and the side of the set
    /// under each.
    fn prefix_keys(&mut self, order: &RarityOrder) -> impl Iterator<Item = (u64, BucketSide)> {
        let size = order.classes.len();
        self.ranked.clear();
        self.ranked
            .extend(self.features.iter().map(|&(feature, key)| {
                let class = order.classes[counter_index(feature, size)];
                u128::from(class) << 64 | u128::from(key)
            }));
        put_least_first(&mut self.ranked, self.indexing, self.probing);
        let sides = std::iter::repeat_n(BucketSide::Indexing, self.indexing);
        let sides = sides.chain(std::iter::repeat(BucketSide::Probing));
        let keys = self.ranked[..self.probing].iter();
        keys.zip(sides)
            .map(|(&ranked, side)| (ranked as u64 ^ order.mark, side))
    }
}

/// Number of elements up to which insertion is faster than selection.
const FEW_ELEMENTS: usize = 16;

/// Moves the `some` smallest numbers to the front, with the `fewer` smallest of these before the
/// others. The rest of the slice is undefined afterwards.
fn put_least_first(numbers: &mut [u128], fewer: usize, some: usize) {
    if some > FEW_ELEMENTS {
        numbers.select_nth_unstable(some - 1);
        numbers[..some].select_nth_unstable(fewer - 1);
        return;
    }
    for at in 1..numbers.len() {
        let number = numbers[at];
        let mut to = at.min(some - 1);
        if at > to && number >= numbers[to] {
            continue;
        }
        while to > 0 && numbers[to - 1] > number {
            numbers[to] = numbers[to - 1];
            to -= 1;
        }
        numbers[to] = number;
    }
}

/// Returns the index of a feature's counter among a power of two of them.
fn counter_index(feature: u64, counters: usize) -> usize {
    (feature >> 20) as usize & (counters - 1)
}

/// Returns the frequency class of a count: four classes per doubling.
fn frequency_class(count: u32) -> u8 {
    let count = u64::from(count) + 1;
    let doublings = count.ilog2();
    let rest = ((count << 2) >> doublings) & 3;
    (4 * u64::from(doublings) + rest) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;
    use crate::types::Threshold;

    fn jaccard(threshold: f64) -> OverlapBound {
        OverlapBound::Jaccard(Threshold::new(threshold).unwrap())
    }

    type Sided = Vec<(u64, BucketSide)>;

    fn learn_features(
        rarity: &mut RarityOrders,
        features: &[u64],
        number: u64,
        low: u64,
        live: u64,
    ) -> bool {
        rarity.count_features(features);
        rarity.count_document(number, low, live)
    }

    #[test]
    fn classes_ascend_with_counts() {
        let classes: Vec<u8> = (0..5000).map(frequency_class).collect();
        assert!(classes.is_sorted());
        assert_eq!(
            (
                frequency_class(0),
                frequency_class(1),
                frequency_class(u32::MAX)
            ),
            (0, 4, 128)
        );
        assert!(classes[1023] < classes[1300] && classes[1300] < classes[1600]);
    }

    /// Returns `true` if the querying document finds one that was inserted under these keys.
    fn meets(probed: &ProbeKey, keys: &[(u64, BucketSide)]) -> bool {
        let sides = keys.iter().filter(|(key, _)| *key == probed.key);
        let mut sides = sides.map(|&(_, side)| side);
        sides.any(|side| probed.finds_side(side))
    }

    #[test]
    fn rarest_features_come_first() {
        let mut random = 1u64;
        for length in 1..60u64 {
            for some in 1..=length as usize {
                let fewer = 1 + length as usize % some;
                let mut numbers: Vec<u128> = (0..length)
                    .map(|at| {
                        random = mix_bits(random + at);
                        u128::from(random % 40) << 64
                    })
                    .collect();
                let mut sorted = numbers.clone();
                sorted.sort_unstable();
                put_least_first(&mut numbers, fewer, some);
                for count in [fewer, some] {
                    let first = &mut numbers[..count];
                    first.sort_unstable();
                    assert_eq!(first, &sorted[..count], "{some} of {length}");
                }
            }
        }
    }

    /// A set is looked up under every order, and found under each order only by sets of that order.
    #[test]
    fn keys_of_each_order_are_separate() {
        let mut rarity = RarityOrders::new(jaccard(0.8));
        let set: Vec<u64> = (0..10).map(mix_bits).collect();
        let mut added = Sided::new();
        for number in 0..8 * LEAST_DOCUMENTS {
            if rarity.begun as usize * 3 == added.len() {
                rarity.newest_order().keys_to_add(&set, &mut added);
            }
            learn_features(&mut rarity, &[mix_bits(number)], number, 0, number);
        }
        assert_eq!((rarity.iter_orders().count(), added.len()), (3, 9));
        let mut probed = Vec::new();
        rarity.keys_to_ask(&set, &mut probed);
        let keys = |keys: &mut dyn Iterator<Item = u64>| {
            let mut keys: Vec<u64> = keys.collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let probed = keys(&mut probed.iter().map(|probed| probed.key));
        assert_eq!(probed, keys(&mut added.iter().map(|&(key, _)| key)));
        assert_eq!(probed.len(), 9);
        let places: Vec<u64> = set
            .iter()
            .map(|&feature| feature_key(feature) / ORDER_MARKS)
            .collect();
        assert!(
            probed
                .iter()
                .all(|key| places.contains(&(key / ORDER_MARKS)))
        );
    }

    /// Two sets at the threshold share a key, whatever orders they were inserted and looked up under.
    #[test]
    fn sets_at_the_threshold_collide_in_all_orders() {
        for hundredths in [10, 50, 80, 90, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let mut rarity = RarityOrders::new(OverlapBound::Jaccard(threshold));
            let mut random = 1u64;
            let mut below = |limit: u64| {
                random = mix_bits(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                random % limit
            };
            let mut added: Vec<(Vec<u64>, Sided)> = Vec::new();
            let (mut met, mut orders) = (0, 0);
            for number in 0..30_000u64 {
                let size = 1 + below(20);
                let mut set: Vec<u64> =
                    (0..size).map(|_| mix_bits(below(60) * below(60))).collect();
                set.sort_unstable();
                set.dedup();
                if !added.is_empty() && below(2) == 0 {
                    set.clone_from(&added[below(added.len() as u64) as usize].0);
                    if set.len() > 1 && below(2) == 0 {
                        set.remove(below(set.len() as u64) as usize);
                    }
                }
                if number % 1000 < 30 {
                    let mut probed = Vec::new();
                    rarity.keys_to_ask(&set, &mut probed);
                    let distinct: std::collections::BTreeSet<_> =
                        probed.iter().map(|probed| probed.key).collect();
                    assert_eq!(distinct.len(), probed.len());
                    for (other, keys) in &added {
                        let shared = crate::similarity::intersection(&set, other);
                        if threshold.admits_ratio(shared, set.len() + other.len() - shared) {
                            assert!(probed.iter().any(|probed| meets(probed, keys)));
                            met += 1;
                        }
                    }
                }
                if number % 100 == 0 {
                    let mut keys = Vec::new();
                    rarity.newest_order().keys_to_add(&set, &mut keys);
                    added.push((set.clone(), keys));
                }
                learn_features(&mut rarity, &set, number, 0, number);
                orders = orders.max(rarity.iter_orders().count());
            }
            assert!(met > 0 && orders > 2, "{met} {orders}");
        }
    }

    /// Two sets at the containment have as many hits as are asked for, whatever orders they were inserted and
    /// looked up under.
    #[test]
    fn contained_sets_have_enough_hits_in_all_orders() {
        for hundredths in [50, 80, 90, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let bound = OverlapBound::Containment(threshold);
            let filter = crate::candidates::ContainmentFilter::new(threshold);
            let mut rarity = RarityOrders::new(bound);
            let mut random = 1u64;
            let mut below = |limit: u64| {
                random = mix_bits(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                random % limit
            };
            let mut added: Vec<(Vec<u64>, Sided)> = Vec::new();
            let (mut met, mut passed_over) = (0, 0);
            for number in 0..12_000u64 {
                let size = 1 + below(8) * below(8);
                let mut set: Vec<u64> =
                    (0..size).map(|_| mix_bits(below(60) * below(60))).collect();
                if !added.is_empty() && below(2) == 0 {
                    let earlier = &added[below(added.len() as u64) as usize].0;
                    set.extend(&earlier[below(3).min(earlier.len() as u64 - 1) as usize..]);
                }
                set.sort_unstable();
                set.dedup();
                let is_compared = number % 500 < 10;
                let mut probed = Vec::new();
                rarity.keys_to_ask(&set, &mut probed);
                for (other, keys) in added.iter().filter(|_| is_compared) {
                    let shared = crate::similarity::intersection(&set, other);
                    let is_match =
                        shared > 0 && bound.admits_overlap(shared, set.len(), other.len());
                    let may_match =
                        filter.may_match(count_hits(&probed, keys), set.len(), other.len());
                    assert!(may_match || !is_match, "{set:?} {other:?}");
                    met += usize::from(is_match);
                    passed_over += usize::from(!may_match);
                }
                if number % 100 == 0 {
                    let mut keys = Vec::new();
                    rarity.newest_order().keys_to_add(&set, &mut keys);
                    assert_eq!(keys.len(), set.len());
                    added.push((set.clone(), keys));
                }
                learn_features(&mut rarity, &set, number, 0, number);
                assert_eq!(rarity.iter_orders().count(), 1);
            }
            assert!(met > 20 && passed_over > 500, "{met} {passed_over}");
        }
    }

    fn count_hits(probed: &[ProbeKey], keys: &[(u64, BucketSide)]) -> PrefixHits {
        let mut hits = PrefixHits::default();
        for probed in probed {
            let same = keys.iter().filter(|(key, _)| *key == probed.key);
            let found = same.filter(|&&(_, side)| probed.finds_side(side));
            found.for_each(|&(_, side)| hits.add_hits(probed.hit_on_side(side)));
        }
        hits
    }

    /// Features that nearly every set has are not read, because only a few sets have them in their prefix.
    #[test]
    fn frequent_features_are_found_in_prefixes_alone() {
        let mut rarity = RarityOrders::new(OverlapBound::Containment(Threshold::new(0.9).unwrap()));
        let set_of = |number: u64| -> Vec<u64> {
            let own = (0..10).map(|at| mix_bits(1000 + 10 * number + at));
            (0..40).map(mix_bits).chain(own).collect()
        };
        let mut added = Sided::new();
        for number in 0..3 * LEAST_DOCUMENTS {
            if number >= 2 * LEAST_DOCUMENTS {
                rarity
                    .newest_order()
                    .keys_to_add(&set_of(number), &mut added);
            }
            learn_features(&mut rarity, &set_of(number), number, 0, number);
        }
        let mut probed = Vec::new();
        rarity.keys_to_ask(&set_of(3 * LEAST_DOCUMENTS), &mut probed);
        let read = |probed: &ProbeKey| added.iter().filter(|(key, _)| *key == probed.key).count();
        let read: usize = probed.iter().map(read).sum();
        // Inserted under all features, of which 40 are shared, and found by one of them at most.
        assert!(read as u64 <= 2 * LEAST_DOCUMENTS, "{read}");
    }

    /// Sets of one template whose own features are too many for the threshold find hardly any that were
    /// inserted under a learned order.
    #[test]
    fn template_sets_below_threshold_do_not_collide() {
        let mut rarity = RarityOrders::new(jaccard(0.75));
        let mut added: Vec<Sided> = Vec::new();
        for number in 0..4 * LEAST_DOCUMENTS {
            let own = (0..4).map(|at| mix_bits(1000 + 4 * number + at));
            let mut set: Vec<u64> = (0..20).map(mix_bits).chain(own).collect();
            set.sort_unstable();
            if number == LEAST_DOCUMENTS / 2 || number == 4 * LEAST_DOCUMENTS - 1 {
                let mut probed = Vec::new();
                rarity.keys_to_ask(&set, &mut probed);
                let met = |&number: &u64| {
                    let keys = &added[number as usize];
                    probed.iter().any(|probed| meets(probed, keys))
                };
                let met = |range: std::ops::Range<u64>| range.filter(|number| met(number)).count();
                if number < LEAST_DOCUMENTS {
                    assert!(met(0..number) > 400);
                } else {
                    assert!(
                        met(LEAST_DOCUMENTS..number) < 150,
                        "{}",
                        met(LEAST_DOCUMENTS..number)
                    );
                }
            }
            let mut keys = Vec::new();
            rarity.newest_order().keys_to_add(&set, &mut keys);
            added.push(keys);
            learn_features(&mut rarity, &set, number, 0, number);
        }
    }

    #[test]
    fn orders_expire_with_their_documents() {
        let mut rarity = RarityOrders::new(jaccard(0.8));
        for number in 0..200_000u64 {
            let low = number.saturating_sub(20_000);
            rarity.forget_before(low);
            learn_features(
                &mut rarity,
                &[mix_bits(number % 1000)],
                number,
                low,
                number - low,
            );
            assert!(rarity.iter_orders().count() <= 4);
        }
        rarity.forget_before(200_000);
        assert_eq!(rarity.iter_orders().count(), 1);
    }
}
