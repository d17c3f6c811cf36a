//! Bucket keys of the exact join: the rarest features of the documents, and combinations of them.
//!
//! The keys are exact under any total order of the features. Ordering by frequency keeps documents of one template
//! apart, because the features that they share are frequent: if too many of their features are their own for a
//! pair to reach the threshold, their prefixes have no feature in common. A feature that occurs once needs no
//! bucket.
//!
//! In a large corpus, even the rarest feature of a document is in many others. How many features a key needs
//! ([`KeyChoice`]) follows from the documents.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::corpus::MatchCorpus;
use super::pair_verifier::PairVerifier;
use crate::candidates::buckets::{CandidateBucketsBuilder, DocumentRank, RankedKey};
use crate::candidates::{
    FeatureCounters, KEY_SAMPLE, KeyBuffer, KeyChoice, KeyPrices, MAX_SEEN_TWICE, PrefixTable,
    RarestFeatures, RarestSource, SeenTwiceFilter,
};
use crate::error::Result;

/// Largest number of passes. It is limited because each pass makes the features of all documents again.
const MAX_PASSES: u64 = 16;

/// Number of passes up to which [`KeyChoice::learn_indexing_keys`] does not pay off.
const FEW_PASSES: usize = 2;

/// The bucket keys of the rarest features of documents.
pub(super) struct RareKeys<'a> {
    documents: RareDocuments<'a>,
    choice: KeyChoice,
}

/// Documents, and the frequencies by which their features are ordered.
struct RareDocuments<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: &'a PairVerifier<'a>,
    ranks: &'a [DocumentRank],
    frequencies: FeatureCounters,
    prefixes: PrefixTable,
}

/// The keys of a pass, by chunks of documents.
struct PassKeys {
    chunks: Vec<KeyChunk>,
}

/// Number of parts into which keys are divided by their upper bits.
const KEY_PARTS: usize = 16;

fn part_of_key(key: u64) -> usize {
    (key >> 60) as usize
}

/// The keys of a chunk of documents, by parts.
struct KeyChunk {
    keys: Box<[RankedKey]>,
    /// The end of each part in `keys`.
    ends: [u32; KEY_PARTS],
}

impl KeyChunk {
    fn new(unordered: &[RankedKey]) -> Self {
        let mut ends = [0; KEY_PARTS];
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
        for part in 0..KEY_PARTS {
            ranked_keys.clear();
            let chunks = self.chunks.iter();
            chunks.for_each(|chunk| ranked_keys.extend_from_slice(chunk.part(part)));
            builder.add_keys(&mut ranked_keys, |_| true);
        }
    }
}

impl<'a> RareKeys<'a> {
    /// Counts the features of the documents `ranks`, and chooses how many of them a key needs.
    pub(super) fn new(
        corpus: &'a MatchCorpus<'a>,
        verifier: &'a PairVerifier<'a>,
        ranks: &'a [DocumentRank],
    ) -> Result<Self> {
        let documents = RareDocuments {
            prefixes: PrefixTable::new(corpus.plan.overlap_bound()),
            frequencies: count_features(corpus, verifier, ranks)?,
            corpus,
            verifier,
            ranks,
        };
        let prices = KeyPrices {
            crowded: verifier.batch_sizes.crowded_keys,
            key: verifier.batch_sizes.key_cost,
        };
        let choice = if documents.can_combine_features() {
            KeyChoice::of_combinations(&documents, prices)?
        } else {
            KeyChoice::of_single_features(&documents)?
        };
        Ok(Self { documents, choice })
    }

    /// Returns an upper bound of the candidates that the keys yield, estimated from a sample.
    pub(super) fn expected_candidates(&self) -> f64 {
        self.choice.expected.candidates
    }

    /// Adds the buckets of the keys.
    pub(super) fn add_buckets(mut self, builder: &mut CandidateBucketsBuilder) -> Result<()> {
        let batch_sizes = self.documents.verifier.batch_sizes;
        let documents = self.documents.ranks.len();
        let keys_at_once = batch_sizes.keys.max(documents * batch_sizes.rare);
        // Learning which keys have a document in an indexing prefix makes all features once more, which costs
        // as much as one further pass does. So it is only done where there would be more than a few passes.
        if self.choice.expected.keys > (FEW_PASSES * keys_at_once) as f64 {
            let indexing = self.choice.expected.indexing as usize;
            let filter = SeenTwiceFilter::new(indexing.min(MAX_SEEN_TWICE / 4));
            self.choice.learn_indexing_keys(&self.documents, filter)?;
        }
        let passes = (self.choice.expected.keys / keys_at_once as f64).ceil();
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

    /// Returns the keys of a pass, or `None` if there are more than `max_keys`.
    fn keys_of_pass(&self, pass: u64, passes: u64, max_keys: usize) -> Result<Option<PassKeys>> {
        let RareDocuments { corpus, ranks, .. } = self.documents;
        let collected = AtomicUsize::new(0);
        let too_many = || collected.load(Ordering::Relaxed) > max_keys;
        let chunks = ranks.par_chunks(1024).filter(|_| !too_many());
        let buffers = || (Vec::new(), KeyBuffer::default());
        let further = self.choice.further_features();
        let chunks = chunks
            .map_init(buffers, |(ranked_keys, buffer), ranks| {
                ranked_keys.clear();
                let is_due = |key: u64| (key >> 32) % passes == pass;
                self.documents
                    .visit_rarest(ranks, further, |rank, rarest| {
                        self.choice.visit_keys(rarest, buffer, is_due, |key| {
                            if is_due(key.key) {
                                let side = key.side;
                                corpus.visit_corpus_keys(key.key, rank, |key| {
                                    ranked_keys.push(RankedKey { key, side, rank });
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
}

impl RareDocuments<'_> {
    /// Returns `false` if keys must be, or had better be, single features. Candidates for containment are counted by
    /// the single features that they share. Where most documents are long, counting combinations would cost more
    /// than it saves, because features are made again for it.
    fn can_combine_features(&self) -> bool {
        let bound = self.corpus.plan.overlap_bound();
        bound.least_containment().is_none() && !self.frequencies.records_long_documents()
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
                let (prefixes, least) = self.prefixes.prefixes_of(features.len());
                rarest.select(features, &self.frequencies, prefixes, least, further);
            })?;
            visit(rank, &rarest);
        }
        Ok(())
    }
}

impl RarestSource for RareDocuments<'_> {
    fn document_count(&self) -> usize {
        self.ranks.len()
    }

    fn sample_documents(&self, further: usize) -> Result<Vec<RarestFeatures>> {
        let sample = self.ranks.iter();
        let sample = sample.step_by(self.ranks.len().div_ceil(KEY_SAMPLE).max(1));
        let sample: Vec<DocumentRank> = sample.copied().collect();
        let mut all = Vec::with_capacity(sample.len());
        self.visit_rarest(&sample, further, |_, rarest| all.push(rarest.clone()))?;
        Ok(all)
    }

    fn visit_all<S: Default>(
        &self,
        further: usize,
        visit: impl Fn(&mut S, &RarestFeatures) + Sync,
    ) -> Result<()> {
        self.ranks.par_chunks(1024).try_for_each(|ranks| {
            let mut state = S::default();
            self.visit_rarest(ranks, further, |_, rarest| visit(&mut state, rarest))
        })
    }
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
