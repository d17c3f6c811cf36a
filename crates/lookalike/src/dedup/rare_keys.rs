//! Bucket keys of the exact join: the rarest features of the documents, and combinations of them.
//!
//! The keys are exact under any total order of the features. Ordering by frequency keeps documents of one template
//! apart, because the features that they share are frequent: if too many of their features are their own for a
//! pair to reach the threshold, their prefixes have no feature in common. A feature that occurs once needs no
//! bucket.
//!
//! In a large corpus, even the rarest feature of a document is in many others. How many features a key needs
//! ([`KeyCombiner`]) is chosen by their cost for a sample of the documents: a further feature makes more keys, and
//! fewer documents to meet.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus::MatchCorpus;
use super::pair_verifier::PairVerifier;
use crate::candidates::buckets::{BucketSide, CandidateBucketsBuilder, DocumentRank, RankedKey};
use crate::candidates::{
    CombinedKey, FeatureCounters, KeyBuffer, KeyCombiner, KeyCounters, MAX_KEY_FEATURES,
    MAX_SEEN_TWICE, PrefixLengths, RarestFeatures, SeenTwiceFilter,
};
use crate::error::Result;
use crate::similarity::OverlapBound;

/// Largest number of passes. It is limited because each pass makes the features of all documents again.
const MAX_PASSES: u64 = 16;

/// Number of passes up to which [`RareKeys::learn_indexing_keys`] does not pay off.
const FEW_PASSES: usize = 2;

/// Number of set sizes whose prefixes are computed only once.
const SMALL_SETS: usize = 128;

/// Part of the cost of shorter keys below which longer ones are worth the time to count them.
const WORTHWHILE: f64 = 0.5;

/// Number of documents in the sample.
const SAMPLE: usize = 256;

/// The bucket keys of the rarest features of documents.
pub(super) struct RareKeys<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: &'a PairVerifier<'a>,
    ranks: &'a [DocumentRank],
    frequencies: FeatureCounters,
    /// Prefixes of small sets by their size.
    prefixes: Vec<(PrefixLengths, usize)>,
    combiner: KeyCombiner,
    /// Keys that a document has in its indexing prefix, once they are learned. Under other keys no two
    /// documents can be candidates.
    indexing: Option<SeenTwiceFilter>,
    expected: ExpectedKeys,
}

/// The keys of a pass, by chunks of documents.
struct PassKeys {
    chunks: Vec<KeyChunk>,
}

/// Number of parts into which keys are divided by their upper bits.
const PARTS: usize = 16;

fn part_of_key(key: u64) -> usize {
    (key >> 60) as usize
}

/// The keys of a chunk of documents, by parts.
struct KeyChunk {
    keys: Box<[RankedKey]>,
    /// The end of each part in `keys`.
    ends: [u32; PARTS],
}

impl KeyChunk {
    fn new(unordered: &[RankedKey]) -> Self {
        let mut ends = [0; PARTS];
        for ranked in unordered {
            ends[part_of_key(ranked.key)] += 1;
        }
        let mut end = 0;
        for of_part in &mut ends {
            end += std::mem::replace(of_part, end);
        }
        let mut keys = unordered.to_vec().into_boxed_slice();
        for &ranked in unordered {
            let at = &mut ends[part_of_key(ranked.key)];
            keys[*at as usize] = ranked;
            *at += 1;
        }
        Self { keys, ends }
    }

    fn part(&self, part: usize) -> &[RankedKey] {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start as usize..self.ends[part] as usize]
    }
}

impl PassKeys {
    /// Adds the buckets of the keys, part by part, so that only one part at a time takes memory twice.
    fn add_to(self, builder: &mut CandidateBucketsBuilder) {
        let mut ranked_keys = Vec::new();
        for part in 0..PARTS {
            ranked_keys.clear();
            let chunks = self.chunks.iter();
            chunks.for_each(|chunk| ranked_keys.extend_from_slice(chunk.part(part)));
            builder.add_keys(&mut ranked_keys, |_| true);
        }
    }
}

/// Estimates about the keys of all documents, from a sample.
#[derive(Clone, Copy, Default)]
struct ExpectedKeys {
    /// Number of keys.
    keys: f64,
    /// Number of keys of the largest number of features.
    longest: f64,
    /// Number of keys of indexing prefixes.
    indexing: f64,
    /// Upper bound of the candidates that the keys yield: the sum, over all keys of indexing prefixes, of
    /// the documents that have the key at all.
    candidates: f64,
}

impl ExpectedKeys {
    fn total_cost(&self, key_cost: f64) -> f64 {
        key_cost * self.keys + self.candidates
    }
}

impl<'a> RareKeys<'a> {
    /// Counts the features of the documents `ranks`, and chooses how many of them a key needs.
    pub(super) fn new(
        corpus: &'a MatchCorpus<'a>,
        verifier: &'a PairVerifier<'a>,
        ranks: &'a [DocumentRank],
    ) -> Result<Self> {
        let bound = corpus.plan.overlap_bound();
        let mut keys = Self {
            prefixes: (0..SMALL_SETS)
                .map(|size| prefixes_by_size(bound, size))
                .collect(),
            corpus,
            verifier,
            ranks,
            frequencies: count_features(corpus, verifier, ranks)?,
            combiner: KeyCombiner::for_single_features(),
            indexing: None,
            expected: ExpectedKeys::default(),
        };
        keys.choose_combinations()?;
        Ok(keys)
    }

    /// Returns an upper bound of the candidates that the keys yield, estimated from a sample.
    pub(super) fn expected_candidates(&self) -> f64 {
        self.expected.candidates
    }

    /// Chooses the limit above which keys are crowded, and the largest number of features in a key, and counts
    /// the combinations.
    fn choose_combinations(&mut self) -> Result<()> {
        let combines = self.can_combine_features();
        let sample = self.sample_documents(if combines { MAX_KEY_FEATURES - 1 } else { 0 })?;
        self.expected = self.estimate_keys(&sample, &self.combiner);
        if !combines {
            return Ok(());
        }
        // Estimate for keys with one feature less.
        let mut shorter = self.expected;
        let BatchSizes {
            crowded_keys,
            key_cost,
            ..
        } = self.verifier.batch_sizes;
        let cost = |expected: &ExpectedKeys| expected.total_cost(key_cost.unwrap_or(1.0));
        let pays_off = |longer: &ExpectedKeys, than: &ExpectedKeys| {
            key_cost.is_none() || cost(longer) < WORTHWHILE * cost(than)
        };
        let by_limit = crowded_keys.iter().map(|&most| {
            let combiner = KeyCombiner::with_limit(most, 2);
            let expected = self.estimate_keys(&sample, &combiner);
            (combiner, expected)
        });
        let best = by_limit.min_by(|one, other| cost(&one.1).total_cmp(&cost(&other.1)));
        if let Some((combiner, expected)) = best
            && pays_off(&expected, &shorter)
        {
            (self.combiner, self.expected) = (combiner, expected);
        }
        while self.combiner.is_uncounted() {
            let counters = self.count_longest_keys()?;
            self.combiner.add_counters(counters);
            self.expected = self.estimate_keys(&sample, &self.combiner);
            // In documents of one template, combinations are as frequent as their features.
            if !pays_off(&self.expected, &shorter) {
                self.combiner.remove_feature();
                self.expected = shorter;
                break;
            }
            shorter = self.expected;
            if self.combiner.max_features() == MAX_KEY_FEATURES {
                break;
            }
            self.combiner.add_feature();
            let expected = self.estimate_keys(&sample, &self.combiner);
            if pays_off(&expected, &shorter) {
                self.expected = expected;
            } else {
                self.combiner.remove_feature();
            }
        }
        Ok(())
    }

    /// Returns `false` if keys must be, or had better be, single features. Candidates for containment are counted by
    /// the single features that they share. Where most documents are long, counting combinations would cost more
    /// than it saves, because features are made again for it.
    fn can_combine_features(&self) -> bool {
        let bound = self.corpus.plan.overlap_bound();
        bound.least_containment().is_none() && !self.frequencies.records_long_documents()
    }

    /// Counts the keys of the largest number of features.
    fn count_longest_keys(&self) -> Result<KeyCounters> {
        let counters = KeyCounters::with_capacity(self.expected.longest as usize);
        self.ranks.par_chunks(1024).try_for_each(|ranks| {
            let (mut longest, mut buffer) = (Vec::new(), KeyBuffer::default());
            self.visit_rarest(ranks, self.further_features(), |_, rarest| {
                longest.clear();
                self.combiner.visit_keys(
                    rarest,
                    &mut buffer,
                    |_| true,
                    |key| {
                        if key.features == self.combiner.max_features() {
                            longest.push(key.key);
                        }
                    },
                );
                counters.count_keys(&longest);
            })
        })?;
        Ok(counters)
    }

    /// Returns the rarest features of a sample of the documents, and `further` ones behind their prefixes.
    fn sample_documents(&self, further: usize) -> Result<Vec<RarestFeatures>> {
        let sample = self.ranks.iter();
        let sample = sample.step_by(self.ranks.len().div_ceil(SAMPLE).max(1));
        let sample: Vec<DocumentRank> = sample.copied().collect();
        let mut all = Vec::with_capacity(sample.len());
        self.visit_rarest(&sample, further, |_, rarest| all.push(rarest.clone()))?;
        Ok(all)
    }

    fn estimate_keys(&self, sample: &[RarestFeatures], combiner: &KeyCombiner) -> ExpectedKeys {
        let scale = self.ranks.len() as f64 / sample.len().max(1) as f64;
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
                        let documents = match combiner.is_crowded(&key) {
                            true => combiner.most(),
                            false => key.frequency,
                        };
                        expected.candidates += scale * f64::from(documents);
                    }
                },
            );
        }
        expected
    }

    /// Calls `visit` with the keys of a document, without those that no other document can have, and without some
    /// or all that `wants` rejects.
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

    /// Adds the buckets of the keys.
    pub(super) fn add_buckets(mut self, builder: &mut CandidateBucketsBuilder) -> Result<()> {
        let batch_sizes = self.verifier.batch_sizes;
        let keys_at_once = batch_sizes.keys.max(self.ranks.len() * batch_sizes.rare);
        // Learning which keys have a document in an indexing prefix makes all features once more, which costs
        // as much as one further pass does. So it is only done where there would be more than a few passes.
        if self.expected.keys > (FEW_PASSES * keys_at_once) as f64 {
            self.learn_indexing_keys()?;
        }
        let passes = (self.expected.keys / keys_at_once as f64).ceil();
        let mut passes = passes.clamp(1.0, MAX_PASSES as f64) as u64;
        // Keys are spread evenly over the passes, so the first one shows whether there are enough passes.
        // But a single key of very many documents always stays in one pass, so the number of passes is
        // limited.
        let first = loop {
            let max_keys = if passes < MAX_PASSES {
                keys_at_once
            } else {
                usize::MAX
            };
            match self.keys_of_pass(0, passes, max_keys)? {
                Some(ranked_keys) => break ranked_keys,
                None => passes = (2 * passes).min(MAX_PASSES),
            }
        };
        first.add_to(builder);
        for pass in 1..passes {
            if let Some(ranked_keys) = self.keys_of_pass(pass, passes, usize::MAX)? {
                ranked_keys.add_to(builder);
            }
        }
        Ok(())
    }

    /// Learns the keys that some document has in its indexing prefix, so that all others are left out.
    fn learn_indexing_keys(&mut self) -> Result<()> {
        let indexing =
            SeenTwiceFilter::new((self.expected.indexing as usize).min(MAX_SEEN_TWICE / 4));
        self.ranks.par_chunks(1024).try_for_each(|ranks| {
            let mut buffer = KeyBuffer::default();
            self.visit_rarest(ranks, self.further_features(), |_, rarest| {
                self.visit_shared_keys(
                    rarest,
                    &self.combiner,
                    &mut buffer,
                    |_| true,
                    |key| {
                        if key.side == BucketSide::Indexing {
                            indexing.record_key(key.key);
                        }
                    },
                );
            })
        })?;
        self.indexing = Some(indexing);
        let sample = self.sample_documents(self.further_features())?;
        self.expected = self.estimate_keys(&sample, &self.combiner);
        Ok(())
    }

    /// Returns the keys of a pass, or `None` if there are more than `max_keys`.
    fn keys_of_pass(&self, pass: u64, passes: u64, max_keys: usize) -> Result<Option<PassKeys>> {
        let collected = AtomicUsize::new(0);
        let too_many = || collected.load(Ordering::Relaxed) > max_keys;
        let chunks = self.ranks.par_chunks(1024).filter(|_| !too_many());
        let buffers = || (Vec::new(), KeyBuffer::default());
        let chunks = chunks
            .map_init(buffers, |(ranked_keys, buffer), ranks| {
                ranked_keys.clear();
                let is_due = |key: u64| (key >> 32) % passes == pass;
                self.visit_rarest(ranks, self.further_features(), |rank, rarest| {
                    self.visit_shared_keys(rarest, &self.combiner, buffer, is_due, |key| {
                        if is_due(key.key) {
                            ranked_keys.push(RankedKey {
                                key: self.corpus.partitioned_key(key.key, rank),
                                side: key.side,
                                rank,
                            });
                        }
                    });
                })?;
                collected.fetch_add(ranked_keys.len(), Ordering::Relaxed);
                Ok(KeyChunk::new(ranked_keys))
            })
            .collect::<Result<_>>()?;
        Ok((!too_many()).then_some(PassKeys { chunks }))
    }

    /// Returns the number of features behind the prefixes that keys need.
    fn further_features(&self) -> usize {
        self.combiner.max_features() - 1
    }

    /// Returns the prefixes of a set, and the least number of features that it shares with a match.
    fn prefixes_of(&self, features: usize) -> (PrefixLengths, usize) {
        let known = self.prefixes.get(features).copied();
        known.unwrap_or_else(|| prefixes_by_size(self.corpus.plan.overlap_bound(), features))
    }

    /// Calls `visit` with the rarest features of each of these documents, and `further` ones behind its prefix.
    fn visit_rarest(
        &self,
        ranks: &[DocumentRank],
        further: usize,
        mut visit: impl FnMut(DocumentRank, &RarestFeatures),
    ) -> Result<()> {
        let (mut buffer, mut rarest) = (Vec::new(), RarestFeatures::default());
        for (at, &rank) in ranks.iter().enumerate() {
            if let Some(&soon) = ranks.get(at + 2) {
                let features = self
                    .corpus
                    .sketches
                    .kept_features(self.corpus.document_at(soon));
                self.frequencies
                    .prefetch_counters(features.unwrap_or_default());
            }
            self.verifier.features_once(rank, &mut buffer, |features| {
                let (prefixes, least) = self.prefixes_of(features.len());
                rarest.select(features, &self.frequencies, prefixes, least, further);
            })?;
            visit(rank, &rarest);
        }
        Ok(())
    }
}

/// Returns the prefixes of a set, and the least number of features that it shares with a match.
fn prefixes_by_size(bound: OverlapBound, features: usize) -> (PrefixLengths, usize) {
    let features = features.max(1);
    let prefixes = PrefixLengths::from_feature_count(features, bound);
    (prefixes, bound.least_shared_with_any(features))
}

/// Counts the features of documents.
fn count_features(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    ranks: &[DocumentRank],
) -> Result<FeatureCounters> {
    let size = (ranks.len() * 64)
        .next_power_of_two()
        .clamp(1 << 12, 1 << 23);
    let is_kept = |rank| {
        let features = corpus.sketches.kept_features(corpus.document_at(rank));
        features.is_some()
    };
    let short = ranks.iter().filter(|&&rank| is_kept(rank)).count();
    let filter = (2 * short < ranks.len())
        .then(|| SeenTwiceFilter::new((64 * ranks.len()).min(MAX_SEEN_TWICE)));
    let frequencies = FeatureCounters::from_counts(vec![0; size]).with_filter(filter);
    ranks.par_chunks(1024).try_for_each(|ranks| {
        let mut buffer = Vec::new();
        for &rank in ranks {
            verifier.features_once(rank, &mut buffer, |features| {
                frequencies.count_features(features)
            })?;
        }
        Ok(())
    })?;
    Ok(frequencies)
}
