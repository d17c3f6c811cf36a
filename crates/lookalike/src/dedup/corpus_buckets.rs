//! The buckets of a corpus: documents with a bucket key in common.
//!
//! Each part of a plan yields keys of its own: equal texts, sketches, rare features of the exact join. Near
//! fingerprints are joined by their distance instead. Keys of bands, smallest hashes and rare features are
//! collected in portions to bound memory, and nearly all that only one document has are dropped before sorting.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::corpus::{EqualTextNodes, MatchCorpus};
use super::pair_verifier::PairVerifier;
use super::rare_keys::RareKeys;
use crate::candidates::buckets::{
    self, CandidateBuckets, CandidateBucketsBuilder, DocumentRank, RankedKey,
};
use crate::candidates::{KeyPortion, SeenTwiceFilter, SketchKeys, equal_text_key};
use crate::error::Result;
use crate::hamming::FingerprintCode;
use crate::hamming::join::{DistinctCodes, NearPair, near_values};
use crate::similarity::SketchRef;
use crate::text::TextState;
use crate::types::{Distance, DocId};

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
        add_text_buckets(corpus, &mut builder);
    }
    let keys = SketchKeys::new(corpus.plan);
    let sketched = ranks_where(&|document| keys.has_keys(SketchRef { sketches, document }));
    match keys {
        SketchKeys::Nothing => {}
        SketchKeys::Blocks(_) => {
            add_fingerprint_buckets(corpus, verifier, keys, &sketched, &mut builder)?;
        }
        SketchKeys::Bands(_) | SketchKeys::EqualKey | SketchKeys::Smallest(_) => {
            add_sketch_buckets(corpus, verifier, keys, &sketched, &mut builder)?;
        }
    }
    if let Some(join) = corpus.plan.join_plan() {
        let joined = ranks_where(&|document| {
            let size = sketches.set_summary(document).size as usize;
            size > 0 && size <= join.max_partner_features
        });
        RareKeys::new(corpus, verifier, &joined)?.add_buckets(&mut builder)?;
    }
    let mut buckets = builder.build_buckets()?;
    verifier.find_dense_sets(&mut buckets, |rank| nodes.first_equal(rank));
    Ok(buckets)
}

/// Adds the buckets of equal texts, for plans in which equal texts are separate nodes.
fn add_text_buckets(corpus: &MatchCorpus<'_>, builder: &mut CandidateBucketsBuilder) {
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
            corpus
                .partitions
                .map(|partitions| partitions[document.index()]),
        )
    };
    for equal in ranked_keys.chunk_by(|a, b| a.key == b.key) {
        for (at, member) in equal.iter().enumerate().skip(1) {
            let same = |other: &&RankedKey| name(other.rank) == name(member.rank);
            if let Some(earliest) = equal[..at].iter().find(same) {
                visit(member.rank, earliest.rank);
            }
        }
    }
}

/// Adds the buckets of the documents' sketches.
fn add_sketch_buckets(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    keys: SketchKeys,
    ranks: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let refines = corpus.plan.guaranteed_jaccard().is_some();
    let mut crowded: Vec<Vec<DocumentRank>> = Vec::new();
    for portion in keys.divide_keys(ranks.len(), verifier.batch_sizes.keys) {
        let rank_portion = |ranks: &[DocumentRank]| rank_keys(corpus, keys, portion, ranks);
        let mut ranked_keys =
            find_shared_keys(portion.expected_keys(ranks.len()), ranks, rank_portion);
        builder.add_keys(&mut ranked_keys, |members| {
            let is_crowded = refines && members.len() > verifier.batch_sizes.crowded;
            if is_crowded {
                crowded.push(members.iter().map(|member| member.rank).collect());
            }
            !is_crowded
        });
    }
    add_crowded_buckets(corpus, verifier, crowded, builder)
}

/// Returns the keys of documents in a portion.
fn rank_keys(
    corpus: &MatchCorpus<'_>,
    keys: SketchKeys,
    portion: KeyPortion,
    ranks: &[DocumentRank],
) -> Vec<RankedKey> {
    let mut ranked_keys = Vec::with_capacity(portion.expected_keys(ranks.len()));
    for &rank in ranks {
        let document = SketchRef {
            sketches: corpus.sketches,
            document: corpus.document_at(rank),
        };
        keys.visit_portion(document, portion, |key| {
            corpus.visit_corpus_keys(key, rank, |key| {
                ranked_keys.push(RankedKey::on_indexing_side(key, rank));
            });
        });
    }
    ranked_keys
}

/// Adds large buckets, either unchanged or replaced by buckets of their members' rarest features,
/// whichever costs less to scan.
fn add_crowded_buckets(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    crowded: Vec<Vec<DocumentRank>>,
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    if crowded.is_empty() {
        return Ok(());
    }
    let mut is_crowded = vec![false; corpus.len()];
    crowded
        .iter()
        .flatten()
        .for_each(|&rank| is_crowded[rank as usize] = true);
    let ranks: Vec<DocumentRank> = (0..is_crowded.len() as DocumentRank)
        .filter(|&rank| is_crowded[rank as usize])
        .collect();
    drop(is_crowded);
    let unrefined = crowded.iter().map(|members| (members.len() as f64).powi(2));
    let rare = RareKeys::new(corpus, verifier, &ranks)?;
    if unrefined.sum::<f64>() > verifier.batch_sizes.refining * rare.expected_candidates() {
        drop(crowded);
        rare.add_buckets(builder)?;
    } else {
        for members in crowded {
            builder.push_bucket(members);
        }
    }
    Ok(())
}

/// Returns the keys of `ranks`, without nearly all of those that only one document has, so that these need not
/// be sorted. `keys` returns the keys of the given ranks, and `count` is about the number of keys of all
/// ranks, which sizes the filter.
fn find_shared_keys(
    count: usize,
    ranks: &[DocumentRank],
    keys: impl Fn(&[DocumentRank]) -> Vec<RankedKey> + Sync,
) -> Vec<RankedKey> {
    let seen = SeenTwiceFilter::new(count);
    let mut key_chunks: Vec<_> = ranks
        .par_chunks(512)
        .map(|ranks| {
            let keys = keys(ranks);
            keys.iter()
                .for_each(|ranked_key| seen.record_key(ranked_key.key));
            keys
        })
        .collect();
    key_chunks
        .par_iter_mut()
        .for_each(|chunk| chunk.retain(|ranked_key| seen.may_be_shared(ranked_key.key)));
    key_chunks.concat()
}

/// Adds a bucket for each distinct fingerprint, and connects buckets within the distance. Adds a bucket for
/// each block of bits instead if the plan compares blocks, or if near fingerprints are so many that their pairs
/// would take too much memory.
fn add_fingerprint_buckets(
    corpus: &MatchCorpus<'_>,
    verifier: &PairVerifier<'_>,
    keys: SketchKeys,
    fingerprintable: &[DocumentRank],
    builder: &mut CandidateBucketsBuilder,
) -> Result<()> {
    let max_pairs =
        verifier.batch_sizes.near + verifier.batch_sizes.neighbours * fingerprintable.len();
    let joined = match corpus.plan.distance() {
        Some(distance) if corpus.plan.block_plan().is_none() => {
            if corpus.plan.fingerprint_bits() <= u64::BITS {
                add_distance_buckets::<u64>(corpus, distance, fingerprintable, max_pairs, builder)?
            } else {
                add_distance_buckets::<u128>(corpus, distance, fingerprintable, max_pairs, builder)?
            }
        }
        _ => false,
    };
    if !joined {
        for portion in keys.divide_keys(fingerprintable.len(), verifier.batch_sizes.keys) {
            let chunks = fingerprintable.par_chunks(512);
            let ranked_keys: Vec<_> = chunks
                .map(|ranks| rank_keys(corpus, keys, portion, ranks))
                .collect();
            builder.add_keys(&mut ranked_keys.concat(), |_| true);
        }
    }
    Ok(())
}

/// Returns `false`, and adds nothing, if there are more than `max_pairs` pairs of near values.
fn add_distance_buckets<C: FingerprintCode>(
    corpus: &MatchCorpus<'_>,
    distance: Distance,
    fingerprintable: &[DocumentRank],
    max_pairs: usize,
    builder: &mut CandidateBucketsBuilder,
) -> Result<bool> {
    let code = |&rank: &DocumentRank| {
        let fingerprint = corpus.sketches.fingerprint(corpus.document_at(rank));
        C::narrow_from(fingerprint.expect("a fingerprintable document has a fingerprint"))
    };
    let codes: Vec<C> = fingerprintable.par_iter().map(code).collect();
    let values = DistinctCodes::new(&codes, corpus.plan.fingerprint_bits())?;
    drop(codes);
    let Some(near) = near_values_up_to(&values, distance, max_pairs)? else {
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
            let bucket = builder.push_bucket(members.iter().map(|&(_, rank)| rank));
            self.buckets.push((members[0].0, bucket));
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
        for &(partition, bucket) in few {
            if let Ok(at) = many.binary_search_by_key(&partition, |&(partition, _)| partition) {
                builder.connect_buckets(bucket, many[at].1);
            }
        }
    }
}

/// Returns the pairs of near values, or `None` if there are more than `max_pairs`.
fn near_values_up_to<C: FingerprintCode>(
    values: &DistinctCodes<C>,
    distance: Distance,
    max_pairs: usize,
) -> Result<Option<Vec<(u32, u32)>>> {
    let found = Mutex::new(Vec::new());
    let all = near_values(values, distance, &|near: &[NearPair]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() + near.len() > max_pairs {
            return ControlFlow::Break(());
        }
        found.extend(near.iter().map(|near| (near.a, near.b)));
        ControlFlow::Continue(())
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(all.is_continue().then_some(found))
}
