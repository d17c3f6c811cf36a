//! Which features are rare: orders of features for the prefix filter.
//!
//! The filter loses no pair under any total order of features, if both documents use the same one; by
//! rarity it meets the fewest others. Documents stand under a feature on a [`Side`]: those on the
//! probing side do not meet one another, so that documents which share a template and too little else
//! pass one another by (see [`Prefixes`]). What is rare is learned from the documents that are kept. From
//! time to time what was learned becomes a new order, under which documents are added from then on.
//! A document is looked up under every order that live documents were added under; the features
//! that these choose are mostly the same.
//!
//! So an order decides how long a look-up takes and never what it finds, and after a restart other
//! orders may be learned.
//!
//! Features are counted in a table without collision handling: what shares a counter counts as more
//! frequent than it is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::arch;
use crate::matching::{Prefixes, Side, feature_key};
use crate::types::Threshold;

/// A key under which a document looks for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) key: u64,
    /// On which side the document is here.
    side: Side,
}

impl Asked {
    /// A key whose documents are all on the full side.
    pub(super) fn full(key: u64) -> Self {
        let side = Side::Full;
        Self { key, side }
    }

    /// Whether who asks finds a document that was added under the key on a side.
    pub(super) fn finds(self, side: Side) -> bool {
        self.side == Side::Full || side == Side::Full
    }
}

/// What is rare.
#[derive(Debug)]
pub(super) struct Rarity {
    threshold: Threshold,
    counters: Vec<u32>,
    /// Orders of live documents before the newest one, in their turn.
    older: VecDeque<Arc<Order>>,
    newest: Arc<Order>,
    /// Documents since the newest order.
    since: u64,
    /// Orders that have begun.
    begun: u64,
}

/// The order under which documents are added. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    threshold: Threshold,
    order: Arc<Order>,
}

#[derive(Debug)]
struct Order {
    /// The number of the first document that may be added under it.
    first: u64,
    /// What sets its keys apart from those of other orders: a number below [`ORDERS`].
    mark: u64,
    /// Features with a higher class come later; a power of two of them.
    classes: Box<[u8]>,
}

/// Documents before the first order that was learned, and between any two. Those before it are found
/// by features that are not rare, for as long as they live.
const LEAST: u64 = 1024;

/// Marks of orders are below this power of two, so that keys of one feature differ in their lowest bits
/// alone and their chains begin in one cache line. Should two live orders have the same, which takes a
/// window that became 4¹⁶ times as large, their documents meet without need.
const ORDERS: u64 = 16;

/// The most counters: 16 MiB.
const MOST_COUNTERS: usize = 1 << 22;

impl Rarity {
    /// For sets whose Jaccard index reaches a threshold.
    pub(super) fn new(threshold: Threshold) -> Self {
        let first = Order {
            first: 0,
            mark: 0,
            classes: Box::new([0]),
        };
        Self {
            threshold,
            counters: vec![0; 1 << 12],
            older: VecDeque::new(),
            newest: Arc::new(first),
            since: 0,
            begun: 0,
        }
    }

    /// Appends the keys under which a set looks for others: under each order its own.
    pub(super) fn keys_to_ask(&self, features: &[u64], keys: &mut Vec<Asked>) {
        with_ranking(features, self.threshold, |ranking| {
            for order in self.orders() {
                let sided = ranking.keys(order);
                keys.extend(sided.map(|(key, side)| Asked { key, side }));
            }
        });
    }

    /// The order under which documents are added.
    pub(super) fn newest(&self) -> Newest {
        Newest {
            threshold: self.threshold,
            order: self.newest.clone(),
        }
    }

    fn orders(&self) -> impl Iterator<Item = &Order> {
        let older = self.older.iter();
        older.chain(std::iter::once(&self.newest)).map(Arc::as_ref)
    }

    /// Asks for the counters of features.
    pub(super) fn prefetch(&self, features: &[u64]) {
        for &feature in features {
            arch::prefetch(&self.counters[place(feature, self.counters.len())]);
        }
    }

    /// Counts the features of the document with a number, which was added. `low` is the number before
    /// which all documents are gone, and `live` how many are not. Returns whether an order begins with
    /// the next one.
    pub(super) fn learn(&mut self, features: &[u64], number: u64, low: u64, live: u64) -> bool {
        for &feature in features {
            let at = place(feature, self.counters.len());
            self.counters[at] = self.counters[at].saturating_add(1);
        }
        self.since += 1;
        if 8 * self.since > self.counters.len() as u64 && self.counters.len() < MOST_COUNTERS {
            // What shared a counter is counted in both: more frequent than it is.
            self.counters.extend_from_within(..);
        }
        let over = self.since >= self.lasts(low, live);
        if over {
            self.begin(number + 1);
        }
        over
    }

    /// How many documents an order lasts. While there are more and more, four times as many as were
    /// before, so that orders are few; once the window slides, half of it, so that what was new
    /// when it began is not rare for long.
    fn lasts(&self, low: u64, live: u64) -> u64 {
        let slides = self.newest.first <= low;
        let enough = if slides && low > 0 {
            live / 2
        } else {
            live / 4 * 3
        };
        enough.max(LEAST)
    }

    fn begin(&mut self, first: u64) {
        let classes = self.counters.iter().map(|&count| class(count)).collect();
        self.begun += 1;
        let newest = Arc::new(Order {
            first,
            mark: self.begun % ORDERS,
            classes,
        });
        self.older
            .push_back(std::mem::replace(&mut self.newest, newest));
        self.counters.iter_mut().for_each(|count| *count /= 2);
        self.since = 0;
    }

    /// Forgets orders of documents that are all before `low`.
    pub(super) fn forget_before(&mut self, low: u64) {
        while self.second().first <= low && self.older.pop_front().is_some() {}
    }

    /// The order after the oldest one, or the only one.
    fn second(&self) -> &Order {
        self.older.get(1).unwrap_or(&self.newest)
    }

    pub(super) fn bytes(&self) -> u64 {
        let classes: usize = self.orders().map(|order| order.classes.len()).sum();
        (classes + 4 * self.counters.capacity()) as u64
    }
}

impl Newest {
    /// Appends the keys under which a set is added.
    pub(super) fn keys_to_add(&self, features: &[u64], keys: &mut Vec<(u64, Side)>) {
        with_ranking(features, self.threshold, |ranking| {
            keys.extend(ranking.keys(&self.order));
        });
    }
}

fn with_ranking(features: &[u64], threshold: Threshold, rank: impl FnOnce(&mut Ranking)) {
    if features.is_empty() {
        return;
    }
    let mut ranking = RANKING.take();
    ranking.begin(features, threshold);
    rank(&mut ranking);
    RANKING.set(ranking);
}

thread_local! {
    static RANKING: Cell<Ranking> = Cell::default();
}

/// Puts the features of a set into the order of an [`Order`].
#[derive(Default)]
struct Ranking {
    /// Features, and their keys but for the mark of the order.
    features: Vec<(u64, u64)>,
    /// How many of them are in the full and in the probing prefix.
    full: usize,
    probing: usize,
    /// Classes, and below them keys.
    ranked: Vec<u128>,
}

impl Ranking {
    fn begin(&mut self, features: &[u64], threshold: Threshold) {
        self.features.clear();
        let keyed = |&feature: &u64| (feature, feature_key(feature));
        self.features.extend(features.iter().map(keyed));
        let prefixes = Prefixes::of(features.len(), threshold);
        (self.full, self.probing) = (prefixes.full, prefixes.probing);
    }

    /// The keys of the probing prefix, those of the full one first, and on which side the set stands
    /// there.
    fn keys(&mut self, order: &Order) -> impl Iterator<Item = (u64, Side)> {
        let size = order.classes.len();
        self.ranked.clear();
        self.ranked
            .extend(self.features.iter().map(|&(feature, key)| {
                let class = order.classes[place(feature, size)];
                u128::from(class) << 64 | u128::from(key)
            }));
        put_least_first(&mut self.ranked, self.full, self.probing);
        let sides = std::iter::repeat_n(Side::Full, self.full);
        let sides = sides.chain(std::iter::repeat(Side::Probing));
        let keys = self.ranked[..self.probing].iter();
        keys.zip(sides)
            .map(|(&ranked, side)| (ranked as u64 ^ order.mark, side))
    }
}

/// So few are put in order one by one.
const FEW: usize = 16;

/// Puts the `some` least first, not fewer than the `fewer` least of these before the others. What is
/// behind them afterwards means nothing.
fn put_least_first(numbers: &mut [u128], fewer: usize, some: usize) {
    if some > FEW {
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

/// The counter of a feature among a power of two of them.
fn place(feature: u64, counters: usize) -> usize {
    (feature >> 20) as usize & (counters - 1)
}

/// Four classes to every doubling.
fn class(count: u32) -> u8 {
    let count = u64::from(count) + 1;
    let doublings = count.ilog2();
    let rest = ((count << 2) >> doublings) & 3;
    (4 * u64::from(doublings) + rest) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    type Sided = Vec<(u64, Side)>;

    #[test]
    fn classes_ascend_with_counts() {
        let classes: Vec<u8> = (0..5000).map(class).collect();
        assert!(classes.is_sorted());
        assert_eq!((class(0), class(1), class(u32::MAX)), (0, 4, 128));
        assert!(classes[1023] < classes[1300] && classes[1300] < classes[1600]);
    }

    /// Whether who asks finds a document that was added under these keys.
    fn meets(asked: &Asked, keys: &[(u64, Side)]) -> bool {
        let sides = keys.iter().filter(|(key, _)| *key == asked.key);
        let mut sides = sides.map(|&(_, side)| side);
        sides.any(|side| asked.finds(side))
    }

    #[test]
    fn the_least_stand_first() {
        let mut random = 1u64;
        for length in 1..60u64 {
            for some in 1..=length as usize {
                let fewer = 1 + length as usize % some;
                let mut numbers: Vec<u128> = (0..length)
                    .map(|at| {
                        random = mix(random + at);
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

    /// A set is asked for under every order, and found there by those of that order alone.
    #[test]
    fn orders_have_keys_of_their_own_in_one_place() {
        let mut rarity = Rarity::new(Threshold::new(0.8).unwrap());
        let set: Vec<u64> = (0..10).map(mix).collect();
        let mut added = Sided::new();
        for number in 0..8 * LEAST {
            if rarity.begun as usize * 3 == added.len() {
                rarity.newest().keys_to_add(&set, &mut added);
            }
            rarity.learn(&[mix(number)], number, 0, number);
        }
        assert_eq!((rarity.orders().count(), added.len()), (3, 9));
        let mut asked = Vec::new();
        rarity.keys_to_ask(&set, &mut asked);
        let keys = |keys: &mut dyn Iterator<Item = u64>| {
            let mut keys: Vec<u64> = keys.collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let asked = keys(&mut asked.iter().map(|asked| asked.key));
        assert_eq!(asked, keys(&mut added.iter().map(|&(key, _)| key)));
        assert_eq!(asked.len(), 9);
        let places: Vec<u64> = set
            .iter()
            .map(|&feature| feature_key(feature) / ORDERS)
            .collect();
        assert!(asked.iter().all(|key| places.contains(&(key / ORDERS))));
    }

    /// Two sets at the threshold share a key, whichever orders they were added and asked under.
    #[test]
    fn sets_at_the_threshold_meet_under_all_orders() {
        for hundredths in [10, 50, 80, 90, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let mut rarity = Rarity::new(threshold);
            let mut random = 1u64;
            let mut below = |limit: u64| {
                random = mix(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                random % limit
            };
            let mut added: Vec<(Vec<u64>, Sided)> = Vec::new();
            let (mut met, mut orders) = (0, 0);
            for number in 0..30_000u64 {
                let size = 1 + below(20);
                let mut set: Vec<u64> = (0..size).map(|_| mix(below(60) * below(60))).collect();
                set.sort_unstable();
                set.dedup();
                if !added.is_empty() && below(2) == 0 {
                    set.clone_from(&added[below(added.len() as u64) as usize].0);
                    if set.len() > 1 && below(2) == 0 {
                        set.remove(below(set.len() as u64) as usize);
                    }
                }
                if number % 1000 < 30 {
                    let mut asked = Vec::new();
                    rarity.keys_to_ask(&set, &mut asked);
                    let distinct: std::collections::BTreeSet<_> =
                        asked.iter().map(|asked| asked.key).collect();
                    assert_eq!(distinct.len(), asked.len());
                    for (other, keys) in &added {
                        let shared = crate::verify::intersection(&set, other);
                        if threshold.admits(shared, set.len() + other.len() - shared) {
                            assert!(asked.iter().any(|asked| meets(asked, keys)));
                            met += 1;
                        }
                    }
                }
                if number % 100 == 0 {
                    let mut keys = Vec::new();
                    rarity.newest().keys_to_add(&set, &mut keys);
                    added.push((set.clone(), keys));
                }
                rarity.learn(&set, number, 0, number);
                orders = orders.max(rarity.orders().count());
            }
            assert!(met > 0 && orders > 2, "{met} {orders}");
        }
    }

    /// Sets of one template whose own features are too many for the threshold find hardly any that was
    /// added under an order that was learned.
    #[test]
    fn siblings_below_the_threshold_do_not_meet() {
        let mut rarity = Rarity::new(Threshold::new(0.75).unwrap());
        let mut added: Vec<Sided> = Vec::new();
        for number in 0..4 * LEAST {
            let own = (0..4).map(|at| mix(1000 + 4 * number + at));
            let mut set: Vec<u64> = (0..20).map(mix).chain(own).collect();
            set.sort_unstable();
            if number == LEAST / 2 || number == 4 * LEAST - 1 {
                let mut asked = Vec::new();
                rarity.keys_to_ask(&set, &mut asked);
                let met = |&number: &u64| {
                    let keys = &added[number as usize];
                    asked.iter().any(|asked| meets(asked, keys))
                };
                let met = |range: std::ops::Range<u64>| range.filter(|number| met(number)).count();
                if number < LEAST {
                    assert!(met(0..number) > 400);
                } else {
                    assert!(met(LEAST..number) < 150, "{}", met(LEAST..number));
                }
            }
            let mut keys = Vec::new();
            rarity.newest().keys_to_add(&set, &mut keys);
            added.push(keys);
            rarity.learn(&set, number, 0, number);
        }
    }

    #[test]
    fn orders_leave_with_their_documents() {
        let mut rarity = Rarity::new(Threshold::new(0.8).unwrap());
        for number in 0..200_000u64 {
            let low = number.saturating_sub(20_000);
            rarity.forget_before(low);
            rarity.learn(&[mix(number % 1000)], number, low, number - low);
            assert!(rarity.orders().count() <= 4);
        }
        rarity.forget_before(200_000);
        assert_eq!(rarity.orders().count(), 1);
    }
}
