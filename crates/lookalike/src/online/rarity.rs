//! Which features are rare: orders of features for the prefix filter.
//!
//! The filter loses no pair under any total order of features, if both documents use the same one; by
//! rarity it meets the fewest others. What is rare is learned from the documents that are kept. From
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

use crate::matching::{Prefixes, feature_key};
use crate::types::Threshold;

/// What is rare.
#[derive(Debug)]
pub(super) struct Rarity {
    threshold: Threshold,
    counters: Vec<u32>,
    /// Orders of live documents, the newest last.
    orders: VecDeque<Order>,
    /// Documents since the newest order.
    since: u64,
    /// Orders that have begun.
    begun: u64,
}

#[derive(Debug)]
struct Order {
    /// The number of the first document that may be added under it.
    first: u64,
    /// Features with a higher class come later; a power of two of them.
    classes: Box<[u8]>,
}

/// Documents before the first order that was learned, and between any two.
const LEAST: u64 = 4096;

/// The most counters: 16 MiB.
const MOST_COUNTERS: usize = 1 << 22;

impl Rarity {
    /// For sets whose Jaccard index reaches a threshold.
    pub(super) fn new(threshold: Threshold) -> Self {
        let first = Order {
            first: 0,
            classes: Box::new([0]),
        };
        Self {
            threshold,
            counters: vec![0; 1 << 12],
            orders: VecDeque::from([first]),
            since: 0,
            begun: 0,
        }
    }

    /// Appends the keys under which a set is looked up, each once. The first ones are those under which
    /// it would be added; returns how many keys there are with them.
    pub(super) fn keys(&self, features: &[u64], keys: &mut Vec<u64>) -> usize {
        let start = keys.len();
        self.keys_to_add(features, keys);
        let added = keys.len();
        let mut ranked = RANKED.take();
        let older = self.orders.iter().rev().skip(1);
        older.for_each(|order| order.rarest(features, self.threshold, &mut ranked, keys));
        RANKED.set(ranked);
        drop_repeats(keys, start, added);
        added
    }

    /// Appends those under which it would be added alone.
    pub(super) fn keys_to_add(&self, features: &[u64], keys: &mut Vec<u64>) {
        let mut ranked = RANKED.take();
        if let Some(newest) = self.orders.back() {
            newest.rarest(features, self.threshold, &mut ranked, keys);
        }
        RANKED.set(ranked);
    }

    /// How many orders have begun.
    pub(super) fn generation(&self) -> u64 {
        self.begun
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
        let slides = self.orders.back().is_some_and(|newest| newest.first <= low);
        let enough = if slides && low > 0 {
            live / 2
        } else {
            live / 4 * 3
        };
        enough.max(LEAST)
    }

    fn begin(&mut self, first: u64) {
        let classes = self.counters.iter().map(|&count| class(count)).collect();
        self.orders.push_back(Order { first, classes });
        self.counters.iter_mut().for_each(|count| *count /= 2);
        self.since = 0;
        self.begun += 1;
    }

    /// Forgets orders of documents that are all before `low`.
    pub(super) fn forget_before(&mut self, low: u64) {
        while self.orders.get(1).is_some_and(|next| next.first <= low) {
            self.orders.pop_front();
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let classes: usize = self.orders.iter().map(|order| order.classes.len()).sum();
        (classes + 4 * self.counters.capacity()) as u64
    }
}

thread_local! {
    /// The features of a set with their classes.
    static RANKED: Cell<Vec<(u8, u64)>> = const { Cell::new(Vec::new()) };
}

/// Leaves out keys from `added` on that were there before, from `start` on or from `added` on.
fn drop_repeats(keys: &mut Vec<u64>, start: usize, added: usize) {
    if keys.len() == added {
        return;
    }
    keys[start..added].sort_unstable();
    keys[added..].sort_unstable();
    let mut end = added;
    for at in added..keys.len() {
        let key = keys[at];
        let last = keys[end - 1];
        let repeats = end > added && key == last || keys[start..added].binary_search(&key).is_ok();
        if !repeats {
            keys[end] = key;
            end += 1;
        }
    }
    keys.truncate(end);
}

impl Order {
    /// Appends the keys of the features of a set's prefix.
    fn rarest(
        &self,
        features: &[u64],
        threshold: Threshold,
        ranked: &mut Vec<(u8, u64)>,
        keys: &mut Vec<u64>,
    ) {
        if features.is_empty() {
            return;
        }
        let size = self.classes.len();
        ranked.clear();
        ranked.extend(features.iter().map(|&feature| {
            let class = self.classes[place(feature, size)];
            (class, feature_key(feature))
        }));
        let prefix = Prefixes::of(features.len(), threshold).probing;
        if prefix < ranked.len() {
            ranked.select_nth_unstable(prefix - 1);
        }
        keys.extend(ranked[..prefix].iter().map(|&(_, key)| key));
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

    #[test]
    fn classes_ascend_with_counts() {
        let classes: Vec<u8> = (0..5000).map(class).collect();
        assert!(classes.is_sorted());
        assert_eq!((class(0), class(1), class(u32::MAX)), (0, 4, 128));
        assert!(classes[1023] < classes[1300] && classes[1300] < classes[1600]);
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
            let mut added: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
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
                    rarity.keys(&set, &mut asked);
                    let distinct: std::collections::BTreeSet<_> = asked.iter().collect();
                    assert_eq!(distinct.len(), asked.len());
                    for (other, keys) in &added {
                        let shared = crate::verify::intersection(&set, other);
                        if threshold.admits(shared, set.len() + other.len() - shared) {
                            assert!(asked.iter().any(|key| keys.contains(key)));
                            met += 1;
                        }
                    }
                }
                if number % 100 == 0 {
                    let mut keys = Vec::new();
                    let count = rarity.keys(&set, &mut keys);
                    keys.truncate(count);
                    added.push((set.clone(), keys));
                }
                rarity.learn(&set, number, 0, number);
                orders = orders.max(rarity.orders.len());
            }
            assert!(met > 0 && orders > 2, "{met} {orders}");
        }
    }

    #[test]
    fn orders_leave_with_their_documents() {
        let mut rarity = Rarity::new(Threshold::new(0.8).unwrap());
        for number in 0..200_000u64 {
            let low = number.saturating_sub(20_000);
            rarity.forget_before(low);
            rarity.learn(&[mix(number % 1000)], number, low, number - low);
            assert!(rarity.orders.len() <= 4);
        }
        rarity.forget_before(200_000);
        assert_eq!(rarity.orders.len(), 1);
    }
}
