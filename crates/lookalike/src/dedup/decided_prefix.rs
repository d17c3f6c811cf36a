//! Deduplication that continues behind documents whose verdicts are known, for example those of a run that
//! was interrupted.
//!
//! A verdict depends on the kept documents before it, and on nothing else. Therefore the removed documents
//! of the prefix are left out, its kept documents count as kept whatever they match, and only the documents
//! behind the prefix are decided. Guarantee: prefix and continuation together are the verdicts of one run.
//! Cost: the buckets of the kept and of the undecided documents are built again; the decided ones are not
//! compared again.

use std::ops::ControlFlow;

use super::batch_sizes::BatchSizes;
use super::corpus::MatchCorpus;
use super::deduplicator::{DedupOutcome, Deduplicator, DocumentRemoval};
use super::pair_verifier::PairVerifier;
use crate::byte_reader::ByteReader;
use crate::error::{Error, Result};
use crate::similarity::{DocumentMatch, Route};
use crate::types::{DocId, Similarity};

/// Verdicts of the first documents in the total order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecidedPrefix {
    /// Number of documents at the start of the order that have a verdict.
    pub documents: usize,
    /// The removed ones among them, in the total order. All others are kept.
    pub removals: Vec<DocumentRemoval>,
}

/// Decides which documents behind a prefix are kept, for a caller that uses verdicts while the run goes on.
///
/// Calls `told` with 0 and no removals once the buckets are built, then with the size of the prefix and its
/// removals, and then after each block with the number of documents decided and the removals since the last
/// call. If `told` breaks, the outcome has the verdicts so far.
///
/// # Errors
/// Fails if the prefix contradicts the corpus, and as [`find_verdicts`](super::find_verdicts) does.
pub fn continue_verdicts(
    corpus: &MatchCorpus<'_>,
    prefix: DecidedPrefix,
    told: impl FnMut(usize, &[DocumentRemoval]) -> ControlFlow<()>,
) -> Result<DedupOutcome> {
    continue_in(BatchSizes::default(), corpus, prefix, told)
}

pub(crate) fn continue_in(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    prefix: DecidedPrefix,
    mut told: impl FnMut(usize, &[DocumentRemoval]) -> ControlFlow<()>,
) -> Result<DedupOutcome> {
    let decided = prefix.documents;
    let (order, kept) = match decided {
        0 => (Vec::new(), 0),
        _ => undecided_order(corpus, &prefix)?,
    };
    let rest = match decided {
        0 => *corpus,
        _ => MatchCorpus {
            order: Some(&order),
            known_prefix: kept.max(corpus.known_prefix),
            ..*corpus
        },
    };
    // A corpus without undecided documents needs no buckets.
    let deduplicator = (decided < corpus.len())
        .then(|| Deduplicator::new(PairVerifier::new(&rest, batch_sizes), &rest))
        .transpose()?;
    let mut outcome = DedupOutcome {
        removals: prefix.removals,
    };
    if told(0, &[]).is_break() || decided > 0 && told(decided, &outcome.removals).is_break() {
        return Ok(outcome);
    }
    if let Some(deduplicator) = deduplicator {
        let continued = deduplicator.run_blocks(|done, removals| match done.checked_sub(kept) {
            None | Some(0) => ControlFlow::Continue(()),
            Some(new) => told(decided + new, removals),
        })?;
        outcome.removals.extend(continued.removals);
    }
    Ok(outcome)
}

/// Returns the kept documents of the prefix and all documents behind it, in the total order, and the number
/// of the former.
fn undecided_order(
    corpus: &MatchCorpus<'_>,
    prefix: &DecidedPrefix,
) -> Result<(Vec<DocId>, usize)> {
    let contradicts = || Error::text_error("the known verdicts are not those of this corpus");
    let documents = corpus.len();
    if prefix.documents > documents {
        return Err(contradicts());
    }
    let mut is_removed = vec![false; corpus.sketches.len()];
    for removal in &prefix.removals {
        let is_removed = is_removed.get_mut(removal.document.index());
        *is_removed.ok_or_else(contradicts)? = true;
    }
    let ranks = |range: std::ops::Range<usize>| {
        range.map(|rank| corpus.document_at(rank as crate::candidates::buckets::DocumentRank))
    };
    let mut order: Vec<DocId> = ranks(0..prefix.documents)
        .filter(|document| !is_removed[document.index()])
        .collect();
    let kept = order.len();
    let has_all = prefix.documents - kept == prefix.removals.len();
    let known = corpus.known_prefix.min(prefix.documents);
    if !has_all || ranks(0..known).any(|document| is_removed[document.index()]) {
        return Err(contradicts());
    }
    order.extend(ranks(prefix.documents..documents));
    Ok((order, kept))
}

impl DocumentRemoval {
    /// Bytes of a removal as [`encode_removal`](Self::encode_removal) writes it.
    pub const BYTES: usize = 17;

    /// Appends the removal: both documents (4 bytes each), the similarity (8) and the route (1).
    pub fn encode_removal(&self, into: &mut Vec<u8>) {
        into.extend(self.document.0.to_le_bytes());
        into.extend(self.kept.with.0.to_le_bytes());
        into.extend(self.kept.similarity.get().to_bits().to_le_bytes());
        into.push(self.kept.route.file_number());
    }

    /// Reads a removal. Returns `None` if the bytes are none.
    pub fn decode_removal(reader: &mut ByteReader<'_>) -> Option<Self> {
        let document = DocId(reader.read_u32()?);
        let with = DocId(reader.read_u32()?);
        let similarity = f64::from_bits(reader.read_u64()?);
        let route = Route::from_file_number(reader.read_u8()?)?;
        (0.0..=1.0).contains(&similarity).then(|| Self {
            document,
            kept: DocumentMatch {
                with,
                similarity: Similarity::from_quotient(similarity, 1.0),
                route,
            },
        })
    }
}
