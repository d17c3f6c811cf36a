//! Bucket keys: the values that candidates share.
//!
//! Each part of a plan yields keys of its own: equal texts, bands of MinHash signatures, rare features
//! of the exact join, near SimHash fingerprints or their blocks, longest sentences, smallest hashes.
//! Keys of bands, smallest hashes and rare features are collected in batches to bound memory, and most
//! that only one document has are dropped before sorting.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::buckets::{
    self, BucketSide, CandidateBuckets, CandidateBucketsBuilder, DocumentRank, RankedKey,
};
use crate::arch::prefetch;
use crate::dedup::deduplicator::{EqualTextNodes, MatchCorpus};
use crate::error::Result;
use crate::hamming::FingerprintCode;
use crate::hamming::join::{DistinctCodes, NearPair, near_values};
use crate::hash::{fold_product, mix_bits};
use crate::plan::{BandPlan, BlockPlan};
use crate::similarity::PairVerifier;
use crate::text::TextState;
use crate::types::{Distance, DocId, Threshold};

/// Builds the buckets of all parts of the plan, and finds the dense sets among them for the bitmap
/// filter.
pub(crate) fn build_buckets(
    corpus: &MatchCorpus<'_>,
    verifier: &mut PairVerifier<'_>,
    nodes: &EqualTextNodes,
) -> Result<CandidateBuckets> {
    let ranks_where = |takes: &(dyn Fn(DocId) -> bool + Sync)| -> Vec<DocumentRank> {
        let all = (0..corpus.len() as DocumentRank).into_par_iter();
        all.filter(|&rank| nodes.is_first(rank) && takes(corpus.document_at(rank)))
            .collect()
    };
    let sketches = corpus.sketches;
    let mut builder = CandidateBucketsBuilder::new(corpus.len());
    if !nodes.merges_equal_texts() {
        by_equality(corpus, &mut builder);
    }
    if let Some(bands) = corpus.plan.band_plan() {
        let signed = ranks_where(&|document| sketches.minhash_signature(document).is_some());
        add_band_buckets(corpus, verifier, bands, &signed, &mut builder)?;
    }
    if let Some(join) = corpus.plan.join_plan() {
        let joined = ranks_where(&|document| {
            let size = sketches.set_summary(document).size as usize;
            size > 0 && size <= join.reach
        });
        let frequencies = FeatureCounters::count_documents(corpus, verifier, &joined)?;
        let rare = RareKeys::new(corpus, verifier, &joined, frequencies)?;
        by_rare_features(rare, &mut builder)?;
    }
    if let Some(distance) = corpus.plan.distance() {
        let fingerprintable =
            ranks_where(&|document| sketches.text_state(document) == TextState::Fingerprintable);
        match corpus.plan.block_plan() {
            Some(blocks) => add_block_buckets(corpus, blocks, &fingerprintable, &mut builder),
            None => by_fingerprints(corpus, verifier, distance, &fingerprintable, &mut builder)?,
        }
    }
    if corpus.plan.sentence_count().is_some() {
        let fingerprintable =
            ranks_where(&|document| sketches.sentence_signature(document).is_some());
        let keys = SketchKeys {
            batch_count: 1,
            most: 1,
            of: &|document, _, visit| {
                sketches
                    .sentence_signature(document)
                    .into_iter()
                    .for_each(visit)
            },
        };
        by_sketches(corpus, verifier, &keys, &fingerprintable, &mut builder)?;
    }
    if let Some(smallest) = corpus.plan.bottom_k_plan() {
        let fingerprintable = ranks_where(&|document| sketches.smallest_hashes(document).is_some());
        by_smallest(
            corpus,
            verifier,
            smallest.meeting,
            &fingerprintable,
            &mut builder,
        )?;
    }
    let mut buckets = builder.build_buckets()?;
    verifier.find_dense_buckets(&mut buckets, |rank| nodes.first_equal(rank));
    Ok(buckets)
}

/// Adds the buckets of equal texts, for plans in which equal texts are separate nodes.
fn by_equality(corpus: &MatchCorpus<'_>, builder: &mut CandidateBucketsBuilder) {
    builder.add_keys(&mut keys_by_text(corpus), |_| true);
}

fn keys_by_text(corpus: &MatchCorpus<'_>) -> Vec<RankedKey> {
    (0..corpus.len() as DocumentRank)
        .into_par_iter()
        .filter(|&rank| corpus.sketches.text_state(corpus.document_at(rank)) != TextState::Empty)
        .map(|rank| {
            let key = corpus.sketches.text_key(corpus.document_at(rank));
            RankedKey::on_indexing_side(corpus.partitioned_key(equal_text_key(key), rank), rank)
        })
        .collect()
}

/// Calls `visit` with every document whose text an earlier document has, and with the earliest document
/// of that text.
pub(crate) fn equal_texts(
    corpus: &MatchCorpus<'_>,
    mut visit: impl FnMut(DocumentRank, DocumentRank),
) {
    let mut ranked_keys = keys_by_text(corpus);
    buckets::sort_keys(&mut ranked_keys);
    let name = |rank: DocumentRank| {
        let document = corpus.document_at(rank);
        (
            corpus.sketches.text_key(document),
            corpus.partitions.map(|parts| parts[document.index()]),
        )
    };
    for group in ranked_keys.chunk_by(|a, b| a.key == b.key) {
        for (at, member) in group.iter().enumerate().skip(1) {
            let same = |other: &&RankedKey| name(other.rank) == name(member.rank);
            if let Some(earliest) = group[..at].iter().find(same) {
                visit(member.rank, earliest.rank);
            }
        }
    }
}

/// Returns the bucket key of texts that are equal after normalisation.
pub(crate) fn equal_text_key(key: u128) -> u64 {
    key as u64 ^ (key >> 64) as u64
}

/// Returns the bucket key of one band of a signature.
pub(crate) fn band_key(bands: BandPlan, band: usize, signature: &[u32]) -> u64 {
    let rows = &signature[band * bands.rows..][..bands.rows];
    rows.iter().fold(mix_bits(band as u64), |key, &row| {
        fold_product(key ^ u64::from(row), BAND_FACTOR)
    })
}

const BAND_FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

fn add_band_buckets(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    bands: BandPlan,
    signed: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let at_once = (verifier.batch_sizes.keys / signed.len().max(1)).clamp(1, bands.bands);
    let keys = SketchKeys {
        batch_count: bands.bands.div_ceil(at_once),
        most: at_once,
        of: &|document, portion, visit| {
            let first = portion * at_once;
            if let Some(signature) = corpus.sketches.minhash_signature(document) {
                (first..(first + at_once).min(bands.bands))
                    .for_each(|band| visit(band_key(bands, band, signature)));
            }
        },
    };
    by_sketches(corpus, verifier, &keys, signed, builder)
}

/// Adds a bucket for each of the smallest hashes. If all documents have too many of them for one batch,
/// the batches divide the hashes by value.
fn by_smallest(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    meeting: usize,
    fingerprintable: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let batch_count = (fingerprintable.len() * meeting)
        .div_ceil(verifier.batch_sizes.keys.max(fingerprintable.len()).max(1));
    let keys = SketchKeys {
        batch_count,
        most: meeting,
        of: &|document, portion, visit| {
            let hashes = corpus
                .sketches
                .smallest_hashes(document)
                .unwrap_or_default();
            let meeting = hashes.iter().take(meeting).map(|&hash| smallest_key(hash));
            meeting
                .filter(|key| (key >> 32) as usize % batch_count == portion)
                .for_each(visit);
        },
    };
    by_sketches(corpus, verifier, &keys, fingerprintable, builder)
}

/// Returns the bucket key of one of the smallest hashes.
pub(crate) fn smallest_key(hash: u64) -> u64 {
    mix_bits(hash)
}

/// The bucket keys of sketches, in batches. Equal keys are always in the same batch.
struct SketchKeys<'a> {
    batch_count: usize,
    /// Largest number of keys of one document in one batch.
    most: usize,
    /// Calls back with the keys of a document in a batch.
    of: &'a KeysOf<'a>,
}

type KeysOf<'a> = dyn Fn(DocId, usize, &mut dyn FnMut(u64)) + Sync + 'a;

fn by_sketches(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    keys: &SketchKeys<'_>,
    ranks: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let refines = corpus.plan.least_jaccard().is_some();
    let mut hot: Vec<Vec<DocumentRank>> = Vec::new();
    for portion in 0..keys.batch_count {
        let ranked_keys = |ranks: &[DocumentRank]| {
            let mut ranked_keys = Vec::with_capacity(ranks.len() * keys.most);
            for &rank in ranks {
                (keys.of)(corpus.document_at(rank), portion, &mut |key| {
                    ranked_keys.push(RankedKey::on_indexing_side(
                        corpus.partitioned_key(key, rank),
                        rank,
                    ));
                });
            }
            ranked_keys
        };
        let mut ranked_keys = find_shared_keys(ranks.len() * keys.most, ranks, ranked_keys);
        builder.add_keys(&mut ranked_keys, |members| {
            let is_hot = refines && members.len() > verifier.batch_sizes.hot;
            if is_hot {
                hot.push(members.iter().map(|member| member.rank).collect());
            }
            !is_hot
        });
    }
    by_hot_groups(corpus, verifier, hot, builder)
}

/// Adds large buckets, either unchanged or replaced by buckets of their members' rarest features,
/// whichever costs less to scan.
fn by_hot_groups(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    hot: Vec<Vec<DocumentRank>>,
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    if hot.is_empty() {
        return Ok(());
    }
    let mut is_hot = vec![false; corpus.len()];
    hot.iter()
        .flatten()
        .for_each(|&rank| is_hot[rank as usize] = true);
    let ranks: Vec<DocumentRank> = (0..is_hot.len() as DocumentRank)
        .filter(|&rank| is_hot[rank as usize])
        .collect();
    drop(is_hot);
    let frequencies = FeatureCounters::count_documents(corpus, verifier, &ranks)?;
    let met = hot.iter().map(|members| (members.len() as f64).powi(2));
    let rare = RareKeys::new(corpus, verifier, &ranks, frequencies)?;
    if met.sum::<f64>() > verifier.batch_sizes.refining * rare.expected.met {
        drop(hot);
        by_rare_features(rare, builder)?;
    } else {
        for members in hot {
            builder.push_bucket(members);
        }
    }
    Ok(())
}

/// Returns the keys of `ranks`, without most of those that only one document has, so that these need not
/// be sorted. `keys` returns the keys of the given ranks, and `count` is an upper bound of the number of keys of
/// all ranks, which sizes the filter.
fn find_shared_keys(
    count: usize,
    ranks: &[DocumentRank],
    keys: impl Fn(&[DocumentRank]) -> Vec<RankedKey> + Sync,
) -> Vec<RankedKey> {
    let met = SeenTwiceFilter::new(count);
    let mut key_chunks: Vec<_> = ranks
        .par_chunks(512)
        .map(|ranks| {
            let keys = keys(ranks);
            keys.iter()
                .for_each(|ranked_key| met.record_key(ranked_key.key));
            keys
        })
        .collect();
    key_chunks
        .par_iter_mut()
        .for_each(|chunk| chunk.retain(|ranked_key| met.may_be_shared(ranked_key.key)));
    key_chunks.concat()
}

/// An approximate set that separates keys seen twice from most keys seen once, in 16 to 32 bits a key.
///
/// Each key has two bits in one word: seen once, and seen twice. A key that was seen twice is always
/// reported as such. A key that was seen once may be reported as seen twice if another key has the same
/// bits.
pub(crate) struct SeenTwiceFilter {
    words: Vec<AtomicU64>,
}

impl SeenTwiceFilter {
    pub(crate) fn new(keys: usize) -> Self {
        let words = (keys / 4).next_power_of_two();
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the word of a key and the lower of its two bits, which means "seen once". The next bit
    /// means "seen twice".
    fn bit_position(&self, key: u64) -> (&AtomicU64, u64) {
        let word = &self.words[(key >> 5) as usize & (self.words.len() - 1)];
        (word, 1 << (2 * (key % 32)))
    }

    /// Prefetches the words of keys.
    pub(crate) fn prefetch_keys(&self, keys: &[u64]) {
        keys.iter()
            .for_each(|&key| prefetch(self.bit_position(key).0));
    }

    pub(crate) fn record_key(&self, key: u64) {
        let (word, once) = self.bit_position(key);
        let before = word.fetch_or(once, Ordering::Relaxed);
        if before & once != 0 && before & once << 1 == 0 {
            word.fetch_or(once << 1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the key was recorded at least once. May be wrong in this direction alone.
    fn may_be_recorded(&self, key: u64) -> bool {
        let (word, once) = self.bit_position(key);
        word.load(Ordering::Relaxed) & once != 0
    }

    /// Returns `true` if the key was recorded at least twice. May be wrong in this direction alone.
    pub(crate) fn may_be_shared(&self, key: u64) -> bool {
        let (word, once) = self.bit_position(key);
        word.load(Ordering::Relaxed) & once << 1 != 0
    }
}

/// Adds the buckets of the prefix filter: the [prefixes](PrefixLengths) of each document's rarest features.
///
/// The filter is exact under any total order of the features. Ordering by frequency keeps documents of
/// one template apart, because the features that they share are frequent: if too many of their features
/// are their own for a pair to reach the threshold, their prefixes have no feature in common. A feature
/// that occurs once needs no bucket.
fn by_rare_features(mut keys: RareKeys<'_>, builder: &mut CandidateBucketsBuilder) -> Result<()> {
    let batch_sizes = keys.verifier.batch_sizes;
    let room = batch_sizes.keys.max(keys.ranks.len() * batch_sizes.rare);
    // Learning which keys have a document in an indexing prefix makes all features once more, which costs
    // as much as one further part does. So it is only done where there would be more than a few parts.
    if keys.expected.keys > (FEW_PARTS * room) as f64 {
        keys.learn_indexing_keys()?;
    }
    let parts = (keys.expected.keys / room as f64).ceil();
    let mut parts = parts.clamp(1.0, MOST_PARTS as f64) as u64;
    // Keys are spread evenly over the parts, so the first part shows whether there are enough parts.
    // But a single key of very many documents always stays in one part, so the number of parts is
    // limited.
    let first = loop {
        let most = if parts < MOST_PARTS { room } else { usize::MAX };
        match keys.keys_of_part(0, parts, most)? {
            Some(ranked_keys) => break ranked_keys,
            None => parts = (2 * parts).min(MOST_PARTS),
        }
    };
    builder.add_keys(&mut { first }, |_| true);
    for part in 1..parts {
        let ranked_keys = keys.keys_of_part(part, parts, usize::MAX)?;
        builder.add_keys(&mut ranked_keys.unwrap_or_default(), |_| true);
    }
    Ok(())
}

/// Largest number of keys for which a [`SeenTwiceFilter`] is sized: 64 MiB.
pub(crate) const MAX_SEEN_TWICE: usize = 1 << 25;

/// Largest number of parts. It is limited because each part makes the features of all documents again.
const MOST_PARTS: u64 = 16;

/// Number of parts up to which [`RareKeys::learn_indexing_keys`] does not pay off.
const FEW_PARTS: usize = 2;

/// The bucket keys of the rarest features of documents.
struct RareKeys<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: &'a PairVerifier<'a>,
    ranks: &'a [DocumentRank],
    frequencies: FeatureCounters,
    /// Keys that a document has in its indexing prefix, once they are learned. Under other keys no two
    /// documents can be candidates.
    indexing: Option<SeenTwiceFilter>,
    expected: ExpectedKeys,
}

/// Estimates about the keys of all documents, from a sample.
#[derive(Clone, Copy, Default)]
struct ExpectedKeys {
    /// Number of keys.
    keys: f64,
    /// Number of keys of indexing prefixes.
    indexing: f64,
    /// Sum, over all features of indexing prefixes, of the documents that have the feature at all. It
    /// bounds from above the candidates that the keys yield.
    met: f64,
}

/// Number of documents in the sample.
const SAMPLE: usize = 256;

impl<'a> RareKeys<'a> {
    fn new(
        corpus: &'a MatchCorpus<'a>,
        verifier: &'a PairVerifier<'a>,
        ranks: &'a [DocumentRank],
        frequencies: FeatureCounters,
    ) -> Result<Self> {
        let mut keys = Self {
            corpus,
            verifier,
            ranks,
            frequencies,
            indexing: None,
            expected: ExpectedKeys::default(),
        };
        keys.expected = keys.estimate_keys()?;
        Ok(keys)
    }

    fn estimate_keys(&self) -> Result<ExpectedKeys> {
        let sample = self.ranks.iter();
        let sample = sample.step_by(self.ranks.len().div_ceil(SAMPLE).max(1));
        let scale = self.ranks.len() as f64 / sample.len().max(1) as f64;
        let sample: Vec<DocumentRank> = sample.copied().collect();
        let mut expected = ExpectedKeys::default();
        self.visit_rarest(&sample, |_, rarest| {
            for (at, &(count, _)) in rarest.features.iter().enumerate() {
                expected.keys += scale;
                if at < rarest.indexing {
                    expected.indexing += scale;
                    expected.met += scale * f64::from(count);
                }
            }
        })?;
        Ok(expected)
    }

    /// Learns the keys that some document has in its indexing prefix, so that all others are left out.
    fn learn_indexing_keys(&mut self) -> Result<()> {
        let indexing =
            SeenTwiceFilter::new((self.expected.indexing as usize).min(MAX_SEEN_TWICE / 4));
        self.ranks.par_chunks(1024).try_for_each(|ranks| {
            self.visit_rarest(ranks, |_, rarest| {
                let keys = rarest
                    .bucket_keys()
                    .filter(|&(_, side)| side == BucketSide::Indexing);
                keys.for_each(|(key, _)| indexing.record_key(key));
            })
        })?;
        self.indexing = Some(indexing);
        self.expected = self.estimate_keys()?;
        Ok(())
    }

    /// Returns the keys that fall into a part, or `None` if there are more than `most`.
    fn keys_of_part(&self, part: u64, parts: u64, most: usize) -> Result<Option<Vec<RankedKey>>> {
        let collected = AtomicUsize::new(0);
        let too_many = || collected.load(Ordering::Relaxed) > most;
        let chunks = self.ranks.par_chunks(1024).filter(|_| !too_many());
        let ranked_keys: Vec<Vec<RankedKey>> = chunks
            .map(|ranks| {
                let mut ranked_keys = Vec::new();
                self.visit_rarest(ranks, |rank, rarest| {
                    let keys = rarest.bucket_keys();
                    let keys = keys.filter(|(key, _)| (key >> 32) % parts == part);
                    ranked_keys.extend(keys.map(|(key, side)| RankedKey {
                        key: self.corpus.partitioned_key(key, rank),
                        side,
                        rank,
                    }));
                })?;
                collected.fetch_add(ranked_keys.len(), Ordering::Relaxed);
                Ok(ranked_keys)
            })
            .collect::<Result<_>>()?;
        Ok((!too_many()).then(|| ranked_keys.concat()))
    }

    /// Calls `visit` with the rarest features of each of these documents.
    fn visit_rarest(
        &self,
        ranks: &[DocumentRank],
        mut visit: impl FnMut(DocumentRank, &RarestFeatures),
    ) -> Result<()> {
        let threshold = self.corpus.plan.candidate_threshold();
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
                self.frequencies
                    .select_rarest(features, threshold, &mut rarest);
            })?;
            if let Some(indexing) = &self.indexing {
                rarest.retain_keys(|key| indexing.may_be_recorded(key));
            }
            visit(rank, &rarest);
        }
        Ok(())
    }
}

/// Returns the bucket key of a feature.
pub(crate) fn feature_key(feature: u64) -> u64 {
    mix_bits(feature ^ FEATURE_ROUTE)
}

const FEATURE_ROUTE: u64 = 0x5851_f42d_4c95_7f2d;

/// Numbers of features of a set, the first in any total order, that serve as its bucket keys.
///
/// Of two sets with a Jaccard index of at least t, the probing prefix of the larger one and the indexing
/// prefix of the smaller one have a feature in common (Chaudhuri et al. 2006; Bayardo et al. 2007; both
/// lengths and their names: Xiao et al. 2008).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixLengths {
    /// n − ⌈2t / (1 + t) · n⌉ + 1 of n features. Under these, a set is a candidate for all sets with
    /// the key.
    pub(crate) indexing: usize,
    /// n − ⌈t · n⌉ + 1 of n features, which is no fewer. Under the additional ones, a set is a
    /// candidate only for sets that have the key in their indexing prefix.
    pub(crate) probing: usize,
}

impl PrefixLengths {
    /// Returns the prefixes of a set of `features` features, which must not be 0.
    pub(crate) fn from_feature_count(features: usize, threshold: Threshold) -> Self {
        let all_but = |least: usize| features - least.max(1) + 1;
        Self {
            indexing: all_but(threshold.least_shared(2 * features)),
            probing: all_but(threshold.least_part(features)),
        }
    }
}

/// The features of a document that serve as its bucket keys, with those of the indexing prefix first.
#[derive(Debug, Default)]
pub(crate) struct RarestFeatures {
    /// Pairs of a frequency and a feature.
    features: Vec<(u32, u64)>,
    /// Number of features in the indexing prefix.
    indexing: usize,
}

impl RarestFeatures {
    /// Returns the bucket key of each feature and the side on which the document is in that bucket.
    pub(crate) fn bucket_keys(&self) -> impl Iterator<Item = (u64, BucketSide)> {
        let indexing = self.indexing;
        let keys = self.features.iter().enumerate();
        keys.map(move |(at, &(_, feature))| {
            let side = if at < indexing {
                BucketSide::Indexing
            } else {
                BucketSide::Probing
            };
            (feature_key(feature), side)
        })
    }

    /// Removes the features of the probing prefix whose keys `keeps` rejects.
    fn retain_keys(&mut self, keeps: impl Fn(u64) -> bool) {
        let mut at = 0;
        self.features.retain(|&(_, feature)| {
            at += 1;
            at <= self.indexing || keeps(feature_key(feature))
        });
    }

    fn clear_features(&mut self) {
        self.features.clear();
        self.indexing = 0;
    }
}

/// Counts of how often features occur, in a table without collision handling.
///
/// A feature that shares its counter with others counts as more frequent than it is. That costs time
/// and never loses a pair, because the prefix filter is exact under any order.
pub(crate) struct FeatureCounters {
    counts: Vec<AtomicU32>,
    /// Features seen twice. Used where documents are so long that the features which only one of them
    /// has would fill the table.
    met: Option<SeenTwiceFilter>,
}

impl FeatureCounters {
    /// Counts the features of documents.
    fn count_documents(
        corpus: &MatchCorpus<'_>,
        verifier: &PairVerifier<'_>,
        ranks: &[DocumentRank],
    ) -> Result<Self> {
        let size = (ranks.len() * 64)
            .next_power_of_two()
            .clamp(1 << 12, 1 << 23);
        let remembered = |rank| {
            corpus
                .sketches
                .kept_features(corpus.document_at(rank))
                .is_some()
        };
        let short = ranks.iter().filter(|&&rank| remembered(rank)).count();
        let met = (2 * short < ranks.len())
            .then(|| SeenTwiceFilter::new((64 * ranks.len()).min(MAX_SEEN_TWICE)));
        let frequencies = Self {
            met,
            ..Self::from_counts(vec![0; size])
        };
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

    /// Returns a table of these counts. Their number must be a power of two.
    pub(crate) fn from_counts(counts: Vec<u32>) -> Self {
        let counts = counts.into_iter().map(AtomicU32::new).collect();
        Self { counts, met: None }
    }

    /// Prefetches the counters of features.
    fn prefetch_counters(&self, features: &[u64]) {
        let counters = features.iter().map(|&feature| self.counter_of(feature));
        counters.for_each(prefetch);
        if let Some(met) = &self.met {
            met.prefetch_keys(features);
        }
    }

    /// Adds the features of one document to the counts.
    pub(crate) fn count_features(&self, features: &[u64]) {
        // Prefetched first because an atomic addition waits for its cache line, and the following ones
        // wait with it.
        self.prefetch_counters(features);
        for &feature in features {
            self.counter_of(feature).fetch_add(1, Ordering::Relaxed);
        }
        if let Some(met) = &self.met {
            features.iter().for_each(|&feature| met.record_key(feature));
        }
    }

    /// Returns how often a feature occurs. Never less than the truth, and 1 for most features that
    /// occur once.
    fn count_of_feature(&self, feature: u64) -> u32 {
        match &self.met {
            Some(met) if !met.may_be_shared(feature) => 1,
            _ => self.counter_of(feature).load(Ordering::Relaxed),
        }
    }

    /// Returns all counts.
    pub(crate) fn iter_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    fn counter_of(&self, feature: u64) -> &AtomicU32 {
        &self.counts[(feature >> 20) as usize & (self.counts.len() - 1)]
    }

    /// Finds the features of a document that serve as its bucket keys. Leaves `rarest` empty if the document has
    /// so many features of its own that it cannot match any other.
    pub(crate) fn select_rarest(
        &self,
        features: &[u64],
        threshold: Threshold,
        rarest: &mut RarestFeatures,
    ) {
        rarest.clear_features();
        if features.is_empty() {
            return;
        }
        if self.met.is_some() {
            // The features of long documents were made only now, so nothing has prefetched their
            // counters.
            self.prefetch_counters(features);
        }
        let order = &mut rarest.features;
        let count = |&feature: &u64| (self.count_of_feature(feature), feature);
        order.extend(features.iter().map(count));
        let prefixes = PrefixLengths::from_feature_count(features.len(), threshold);
        let alone = order.iter().filter(|(count, _)| *count <= 1).count();
        if alone >= prefixes.probing {
            return rarest.clear_features();
        }
        for prefix in [prefixes.probing, prefixes.indexing] {
            if prefix < order.len() {
                order.select_nth_unstable(prefix - 1);
            }
            order.truncate(prefixes.probing);
        }
        order.retain(|&(count, _)| count > 1);
        rarest.indexing = prefixes.indexing.saturating_sub(alone);
    }
}

/// Adds a bucket for each distinct fingerprint, and connects buckets within the distance. Falls back to
/// blocks of bits where near fingerprints are so many that their pairs would take too much memory.
fn by_fingerprints(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    distance: Distance,
    fingerprintable: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let most = verifier.batch_sizes.near + verifier.batch_sizes.neighbours * fingerprintable.len();
    let joined = if corpus.plan.fingerprint_bits() <= u64::BITS {
        add_distance_buckets::<u64>(corpus, distance, fingerprintable, most, builder)
    } else {
        add_distance_buckets::<u128>(corpus, distance, fingerprintable, most, builder)
    };
    if !joined? {
        let blocks = BlockPlan {
            count: distance.get() + 1,
            bits: corpus.plan.fingerprint_bits(),
        };
        add_block_buckets(corpus, blocks, fingerprintable, builder);
    }
    Ok(())
}

/// Returns `false`, and adds nothing, if there are more than `most` pairs of near values.
fn add_distance_buckets<C: FingerprintCode>(
    corpus: &MatchCorpus<'_>,
    distance: Distance,
    fingerprintable: &[DocumentRank],
    most: usize,
    builder: &mut CandidateBucketsBuilder,
) -> Result<bool> {
    let code = |&rank: &DocumentRank| {
        let fingerprint = corpus.sketches.fingerprint(corpus.document_at(rank));
        C::narrow_from(fingerprint.expect("a fingerprintable document has a fingerprint"))
    };
    let codes: Vec<C> = fingerprintable.par_iter().map(code).collect();
    let values = DistinctCodes::new(&codes, corpus.plan.fingerprint_bits())?;
    drop(codes);
    let Some(near) = near_values_up_to(&values, distance, most)? else {
        return Ok(false);
    };
    let mut wanted: Vec<bool> = (0..values.len() as u32)
        .map(|value| values.rows_of_value(value).len() > 1)
        .collect();
    for &(one, other) in &near {
        (wanted[one as usize], wanted[other as usize]) = (true, true);
    }
    let mut of_values = OfValues::default();
    for value in 0..values.len() as u32 {
        let rows = values
            .rows_of_value(value)
            .iter()
            .filter(|_| wanted[value as usize]);
        of_values.add_documents(
            corpus,
            rows.map(|&row| fingerprintable[row as usize]),
            builder,
        );
    }
    for (one, other) in near {
        of_values.connect_values(one, other, builder);
    }
    Ok(true)
}

/// The buckets of each distinct fingerprint: one for each partition that has documents with it.
#[derive(Default)]
struct OfValues {
    ends: Vec<u32>,
    /// Pairs of a partition and a bucket, ascending by partition for each fingerprint.
    buckets: Vec<(u64, u32)>,
}

impl OfValues {
    /// Adds the documents of the next fingerprint.
    fn add_documents(
        &mut self,
        corpus: &MatchCorpus<'_>,
        documents: impl Iterator<Item = DocumentRank>,
        builder: &mut CandidateBucketsBuilder,
    ) {
        let mut parted: Vec<_> = documents
            .map(|rank| (corpus.partition_of(rank), rank))
            .collect();
        parted.sort_unstable();
        for members in parted.chunk_by(|a, b| a.0 == b.0) {
            let group = builder.push_bucket(members.iter().map(|&(_, rank)| rank));
            self.buckets.push((members[0].0, group));
        }
        self.ends.push(self.buckets.len() as u32);
    }

    fn buckets_of_value(&self, value: u32) -> &[(u64, u32)] {
        let start = value
            .checked_sub(1)
            .map_or(0, |before| self.ends[before as usize]);
        &self.buckets[start as usize..self.ends[value as usize] as usize]
    }

    /// Connects the buckets of two fingerprints that are of the same partition.
    fn connect_values(&self, one: u32, other: u32, builder: &mut CandidateBucketsBuilder) {
        let (few, many) = (self.buckets_of_value(one), self.buckets_of_value(other));
        let (few, many) = if few.len() <= many.len() {
            (few, many)
        } else {
            (many, few)
        };
        for &(part, group) in few {
            if let Ok(at) = many.binary_search_by_key(&part, |&(part, _)| part) {
                builder.connect_buckets(group, many[at].1);
            }
        }
    }
}

/// Returns the pairs of near values, or `None` if there are more than `most`.
fn near_values_up_to<C: FingerprintCode>(
    values: &DistinctCodes<C>,
    distance: Distance,
    most: usize,
) -> Result<Option<Vec<(u32, u32)>>> {
    let found = Mutex::new(Vec::new());
    let all = near_values(values, distance, &|near: &[NearPair]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() + near.len() > most {
            return ControlFlow::Break(());
        }
        found.extend(near.iter().map(|near| (near.a, near.b)));
        ControlFlow::Continue(())
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(all.is_continue().then_some(found))
}

/// Returns the bucket key of a block of a fingerprint, from the number of the block and its bits,
/// unshifted.
pub(crate) fn block_key(block: usize, bits: u128) -> u64 {
    mix_bits(bits as u64 ^ mix_bits((bits >> 64) as u64 ^ block as u64))
}

/// Adds a bucket for each block of bits. Complete, because two fingerprints within distance k have at
/// least one of any k + 1 blocks in common.
fn add_block_buckets(
    corpus: &MatchCorpus<'_>,
    blocks: BlockPlan,
    fingerprintable: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) {
    for (block, mask) in blocks.block_masks().enumerate() {
        let mut ranked_keys: Vec<_> = fingerprintable
            .par_iter()
            .filter_map(|&rank| {
                let fingerprint = corpus.sketches.fingerprint(corpus.document_at(rank))?;
                let key = block_key(block, fingerprint & mask);
                Some(RankedKey::on_indexing_side(
                    corpus.partitioned_key(key, rank),
                    rank,
                ))
            })
            .collect();
        builder.add_keys(&mut ranked_keys, |_| true);
    }
}
