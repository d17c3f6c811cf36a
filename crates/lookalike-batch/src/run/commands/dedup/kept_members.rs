//! How many documents of a cluster are kept: one, several, or none.
//!
//! The verdicts of a run keep one document of each cluster, its representative, and remove its other members. A rule
//! changes which rows are written for a cluster, and nothing else: which documents match and which document represents
//! a cluster stay as they are.
//!
//! * [`KeptMembers::Best`] keeps the representative and the first members in the total order, until the cluster has as
//!   many. A representative of `--against` counts, although it is never written.
//! * [`KeptMembers::DropClusters`] keeps no member of a cluster that has as many documents. Its representative is then
//!   removed too, with the member that is most similar to it as its match, the earliest one if several are. One of
//!   `--against` counts, and stays what it is.
//!
//! Cost: nothing if one document is kept, else 12 bytes of memory for each document.

use std::borrow::Cow;

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike::similarity::DocumentMatch;

use crate::run::execution::run_corpus::RunCorpus;

/// How many documents of a cluster are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptMembers {
    /// The representative alone.
    #[default]
    Representative,
    /// The representative and the members after it in the total order, at most so many documents together, from 1.
    Best(u32),
    /// The representative, or none of a cluster of at least so many documents, from 2.
    DropClusters(u32),
}

impl KeptMembers {
    /// Returns `true` if the representative of each cluster is kept and nothing else.
    pub(in crate::run) fn is_representative(self) -> bool {
        matches!(self, Self::Representative | Self::Best(0 | 1))
    }

    /// Returns the removals that follow from the verdicts, in the total order of their documents.
    pub(super) fn apply_to<'o>(
        self,
        verdicts: &'o [DocumentRemoval],
        corpus: &RunCorpus<'_>,
    ) -> Cow<'o, [DocumentRemoval]> {
        match self {
            Self::Representative | Self::Best(0 | 1) => Cow::Borrowed(verdicts),
            Self::Best(count) => {
                let mut members = vec![1u32; corpus.len()];
                let is_removed = |removal: &&DocumentRemoval| {
                    let kept = &mut members[removal.kept.with.index()];
                    *kept = kept.saturating_add(1);
                    *kept > count
                };
                Cow::Owned(verdicts.iter().filter(is_removed).copied().collect())
            }
            Self::DropClusters(least) => {
                let dropped = find_dropped(verdicts, corpus, least);
                let mut removals = verdicts.to_vec();
                removals.extend(dropped);
                corpus.sort_removals(&mut removals);
                Cow::Owned(removals)
            }
        }
    }
}

/// Returns the removals of the representatives of clusters of at least `least` documents.
fn find_dropped(
    verdicts: &[DocumentRemoval],
    corpus: &RunCorpus<'_>,
    least: u32,
) -> Vec<DocumentRemoval> {
    /// The cluster of a document that represents none, or has no member yet.
    const NO_MEMBER: u32 = u32::MAX;
    let mut sizes = vec![1u32; corpus.len()];
    let mut nearest = vec![NO_MEMBER; corpus.len()];
    for (at, removal) in (0u32..).zip(verdicts) {
        let representative = removal.kept.with.index();
        sizes[representative] = sizes[representative].saturating_add(1);
        let best = &mut nearest[representative];
        let is_nearer = *best == NO_MEMBER
            || removal.kept.similarity > verdicts[*best as usize].kept.similarity;
        if is_nearer {
            *best = at;
        }
    }
    let new = (corpus.known_count()..corpus.len())
        .filter(|&document| nearest[document] != NO_MEMBER && sizes[document] >= least);
    new.map(|document| {
        let nearest = &verdicts[nearest[document] as usize];
        DocumentRemoval {
            document: DocId(document as u32),
            kept: DocumentMatch {
                with: nearest.document,
                ..nearest.kept
            },
        }
    })
    .collect()
}
