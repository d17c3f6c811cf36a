//! The choice of how many rare features a bucket key needs, by the cost of keys for a sample of the documents.
//!
//! A further feature makes more keys, and fewer documents to meet. Combinations are counted by passes over all
//! documents, which the [`RarestSource`] makes.

use super::buckets::BucketSide;
use super::key_combiner::{CombinedKey, KeyBuffer, KeyCombiner, KeyCounters, MAX_KEY_FEATURES};
use super::prefix_filter::RarestFeatures;
use super::seen_twice_filter::SeenTwiceFilter;
use crate::error::Result;

/// Part of the cost of shorter keys below which longer ones are worth the time to count them.
const WORTHWHILE_COST_SHARE: f64 = 0.5;

/// Number of documents in a sample.
pub(crate) const KEY_SAMPLE: usize = 256;

/// Documents whose rarest features can be visited.
pub(crate) trait RarestSource: Sync {
    /// Number of documents.
    fn document_count(&self) -> usize;

    /// Returns the rarest features of about [`KEY_SAMPLE`] documents, and `further` ones behind their prefixes.
    fn sample_documents(&self, further: usize) -> Result<Vec<RarestFeatures>>;

    /// Calls `visit` on all threads with the rarest features of every document, and `further` ones behind its
    /// prefix. `S` is the state of a thread.
    fn visit_all<S: Default>(
        &self,
        further: usize,
        visit: impl Fn(&mut S, &RarestFeatures) + Sync,
    ) -> Result<()>;
}

/// The prices by which keys are chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPrices<'a> {
    /// Limits to try: a key of more documents than this is crowded.
    pub(crate) crowded: &'a [u32],
    /// Cost of a key in candidates. `None` takes the longest keys whatever they cost.
    pub(crate) key: Option<f64>,
}

/// Estimates about the keys of all documents, from a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpectedKeys {
    /// Number of keys.
    pub(crate) keys: f64,
    /// Number of keys of the largest number of features.
    pub(crate) longest: f64,
    /// Number of keys of indexing prefixes.
    pub(crate) indexing: f64,
    /// Upper bound of the candidates that the keys yield: the sum, over all keys of indexing prefixes, of
    /// the documents that have the key at all.
    pub(crate) candidates: f64,
}

impl ExpectedKeys {
    fn total_cost(&self, key_cost: f64) -> f64 {
        key_cost * self.keys + self.candidates
    }
}

/// The chosen keys of documents.
pub(crate) struct KeyChoice {
    combiner: KeyCombiner,
    pub(crate) expected: ExpectedKeys,
    /// Keys that a document has in its indexing prefix, once they are learned. Under other keys no two
    /// documents can be candidates.
    indexing: Option<SeenTwiceFilter>,
}

impl KeyChoice {
    /// Returns keys of single features.
    pub(crate) fn of_single_features(source: &impl RarestSource) -> Result<Self> {
        let mut choice = Self {
            combiner: KeyCombiner::for_single_features(),
            expected: ExpectedKeys::default(),
            indexing: None,
        };
        let sample = source.sample_documents(0)?;
        choice.expected = choice.estimate_keys(source, &sample, &choice.combiner);
        Ok(choice)
    }

    /// Chooses the limit above which keys are crowded, and the largest number of features in a key, and counts
    /// the combinations.
    pub(crate) fn of_combinations(
        source: &impl RarestSource,
        prices: KeyPrices<'_>,
    ) -> Result<Self> {
        let sample = source.sample_documents(MAX_KEY_FEATURES - 1)?;
        let mut choice = Self {
            combiner: KeyCombiner::for_single_features(),
            expected: ExpectedKeys::default(),
            indexing: None,
        };
        choice.expected = choice.estimate_keys(source, &sample, &choice.combiner);
        // Estimate for keys with one feature less.
        let mut shorter = choice.expected;
        let cost = |expected: &ExpectedKeys| expected.total_cost(prices.key.unwrap_or(1.0));
        let pays_off = |longer: &ExpectedKeys, than: &ExpectedKeys| {
            prices.key.is_none() || cost(longer) < WORTHWHILE_COST_SHARE * cost(than)
        };
        let by_limit = prices.crowded.iter().map(|&most| {
            let combiner = KeyCombiner::with_limit(most, 2);
            let expected = choice.estimate_keys(source, &sample, &combiner);
            (combiner, expected)
        });
        let best = by_limit.min_by(|one, other| cost(&one.1).total_cmp(&cost(&other.1)));
        if let Some((combiner, expected)) = best
            && pays_off(&expected, &shorter)
        {
            (choice.combiner, choice.expected) = (combiner, expected);
        }
        while choice.combiner.is_uncounted() {
            let counters = choice.count_longest_keys(source)?;
            choice.combiner.add_counters(counters);
            choice.expected = choice.estimate_keys(source, &sample, &choice.combiner);
            // In documents of one template, combinations are as frequent as their features.
            if !pays_off(&choice.expected, &shorter) {
                choice.combiner.lower_max_features();
                choice.expected = shorter;
                break;
            }
            shorter = choice.expected;
            if choice.combiner.max_features() == MAX_KEY_FEATURES {
                break;
            }
            choice.combiner.raise_max_features();
            let expected = choice.estimate_keys(source, &sample, &choice.combiner);
            if pays_off(&expected, &shorter) {
                choice.expected = expected;
            } else {
                choice.combiner.lower_max_features();
            }
        }
        Ok(choice)
    }

    /// Leaves out, from now on, all keys that are not in `indexing`.
    pub(crate) fn learn_indexing_keys(
        &mut self,
        source: &impl RarestSource,
        indexing: SeenTwiceFilter,
    ) -> Result<()> {
        source.visit_all(self.further_features(), |buffer: &mut KeyBuffer, rarest| {
            self.visit_shared_keys(
                rarest,
                &self.combiner,
                buffer,
                |_| true,
                |key| {
                    if key.side == BucketSide::Indexing {
                        indexing.record_key(key.key);
                    }
                },
            );
        })?;
        self.indexing = Some(indexing);
        let sample = source.sample_documents(self.further_features())?;
        self.expected = self.estimate_keys(source, &sample, &self.combiner);
        Ok(())
    }

    /// Returns the number of features behind the prefixes that keys need.
    pub(crate) fn further_features(&self) -> usize {
        self.combiner.max_features() - 1
    }

    /// Calls `visit` with the keys of a document, without those that no other document can have, and without some
    /// or all that `wants` rejects.
    pub(crate) fn visit_keys(
        &self,
        rarest: &RarestFeatures,
        buffer: &mut KeyBuffer,
        wants: impl Fn(u64) -> bool,
        visit: impl FnMut(CombinedKey),
    ) {
        self.visit_shared_keys(rarest, &self.combiner, buffer, wants, visit);
    }

    fn visit_shared_keys(
        &self,
        rarest: &RarestFeatures,
        combiner: &KeyCombiner,
        buffer: &mut KeyBuffer,
        wants: impl Fn(u64) -> bool,
        mut visit: impl FnMut(CombinedKey),
    ) {
        combiner.visit_keys(rarest, buffer, wants, |key| {
            let is_shared = key.frequency != 1
                && (key.side == BucketSide::Indexing
                    || self
                        .indexing
                        .as_ref()
                        .is_none_or(|indexing| indexing.may_be_recorded(key.key)));
            if is_shared {
                visit(key);
            }
        });
    }

    /// Counts the keys of the largest number of features.
    fn count_longest_keys(&self, source: &impl RarestSource) -> Result<KeyCounters> {
        let counters = KeyCounters::with_capacity(self.expected.longest as usize);
        source.visit_all(
            self.further_features(),
            |(longest, buffer): &mut (Vec<u64>, KeyBuffer), rarest| {
                longest.clear();
                self.combiner.visit_keys(
                    rarest,
                    buffer,
                    |_| true,
                    |key| {
                        if key.features == self.combiner.max_features() {
                            longest.push(key.key);
                        }
                    },
                );
                counters.count_keys(longest);
            },
        )?;
        Ok(counters)
    }

    fn estimate_keys(
        &self,
        source: &impl RarestSource,
        sample: &[RarestFeatures],
        combiner: &KeyCombiner,
    ) -> ExpectedKeys {
        let scale = source.document_count() as f64 / sample.len().max(1) as f64;
        let (mut expected, mut buffer) = (ExpectedKeys::default(), KeyBuffer::default());
        for rarest in sample {
            self.visit_shared_keys(
                rarest,
                combiner,
                &mut buffer,
                |_| true,
                |key| {
                    // Of combinations that have not been counted, most belong to one document and are only counted.
                    expected.keys += scale * if key.frequency == 0 { 0.5 } else { 1.0 };
                    if key.features == combiner.max_features() {
                        expected.longest += scale;
                    }
                    if key.side == BucketSide::Indexing {
                        expected.indexing += scale;
                        // A crowded key of a tiny set is shared by tiny sets alone.
                        let documents = if combiner.is_crowded(&key) {
                            combiner.most()
                        } else {
                            key.frequency
                        };
                        expected.candidates += scale * f64::from(documents);
                    }
                },
            );
        }
        expected
    }
}
