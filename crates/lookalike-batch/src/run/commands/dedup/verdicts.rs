//! The verdicts of a run by document, and the clusters that follow from them.

use std::borrow::Cow;

use lookalike::dedup::{DedupOutcome, DocumentRemoval};
use lookalike::{DocId, Similarity};
use lookalike_io::error::Result;

use super::kept_members::KeptMembers;
use crate::ranked_set::RankedSet;
use crate::run::execution::audit::report::{AuditReport, ReportedPairs};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::LinkedRun;

/// The verdicts of all documents, by document.
pub(super) struct DocumentVerdicts<'a> {
    pub(super) corpus: &'a RunCorpus<'a>,
    pub(super) outcome: &'a DedupOutcome,
    /// The removals in the total order of their documents. They differ from those of the outcome if clusters keep several
    /// documents or none.
    pub(super) removals: Cow<'a, [DocumentRemoval]>,
    removal: RemovalIndex,
    /// The removals of the outcome by document; `None` if they are the same.
    verdict: Option<RemovalIndex>,
    members: KeptMembers,
    pub(super) components: Option<&'a [DocId]>,
}

/// Smallest number of kept documents in a component that is reported as stretched.
const MIN_STRETCHED_KEPT: u64 = 4;

/// A kept document and the documents that were removed for it.
#[derive(Clone, Copy)]
pub(super) struct VerdictCluster {
    pub(super) kept: DocId,
    pub(super) removed: u64,
    /// Number of these that are less than fully similar.
    pub(super) similar: u64,
    pub(super) least: f64,
}

impl<'a> DocumentVerdicts<'a> {
    pub(super) fn new(
        corpus: &'a RunCorpus<'a>,
        outcome: &'a DedupOutcome,
        components: Option<&'a [DocId]>,
        members: KeptMembers,
    ) -> Self {
        let removals = members.apply_to(&outcome.removals, corpus);
        let verdict = match &removals {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(RemovalIndex::new(&outcome.removals, corpus.len())),
        };
        Self {
            corpus,
            outcome,
            removal: RemovalIndex::new(&removals, corpus.len()),
            removals,
            verdict,
            members,
            components,
        }
    }

    /// Returns `true` if a document is kept, or a known one that is never written.
    pub(super) fn is_kept(&self, document: DocId) -> bool {
        self.removal.position_of(document).is_none()
    }

    /// Returns the removal of a document by its verdict alone, whether its cluster keeps further documents or none.
    pub(super) fn verdict_of(&self, document: DocId) -> Option<&DocumentRemoval> {
        let verdict = self.verdict.as_ref().unwrap_or(&self.removal);
        let at = verdict.position_of(document)?;
        Some(&self.outcome.removals[at])
    }

    /// Returns `true` if a document represents its cluster, or is alone.
    pub(super) fn is_representative(&self, document: DocId) -> bool {
        self.verdict_of(document).is_none()
    }

    /// Returns the document that represents the cluster of a document.
    pub(super) fn representative_of(&self, document: DocId) -> DocId {
        let verdict = self.verdict_of(document);
        verdict.map_or(document, |removal| removal.kept.with)
    }

    /// Returns the removed documents with the representatives to which they were compared. Representatives that are
    /// removed themselves are not among the removed documents here.
    pub(super) fn compared_removals(&self) -> &[DocumentRemoval] {
        match self.members {
            KeptMembers::DropClusters(_) => &self.outcome.removals,
            KeptMembers::Representative | KeptMembers::Best(_) => &self.removals,
        }
    }

    /// Returns the number of representatives that are removed.
    pub(super) fn dropped_count(&self) -> Option<u64> {
        let dropped = self.removals.len().checked_sub(self.outcome.removals.len());
        match self.members {
            KeptMembers::DropClusters(_) => dropped.map(|dropped| dropped as u64),
            KeptMembers::Representative | KeptMembers::Best(_) => None,
        }
    }

    pub(super) fn removal_of(&self, document: DocId) -> Option<&DocumentRemoval> {
        let at = self.removal.position_of(document)?;
        Some(&self.removals[at])
    }

    /// Lists the new documents, those of the inputs without the known ones, in reading order.
    pub(super) fn list_new_documents(&self) -> impl Iterator<Item = DocId> + '_ {
        (self.corpus.known_count()..self.corpus.len()).map(|at| DocId(at as u32))
    }

    /// Returns the clusters by size, largest first, then in reading order.
    pub(super) fn list_clusters(&self) -> Vec<VerdictCluster> {
        let removals = &self.outcome.removals;
        let kept = removals.iter().map(|removal| removal.kept.with.0);
        let with_removals = RankedSet::from_numbers(self.corpus.len(), kept);
        let empty = VerdictCluster {
            kept: DocId(0),
            removed: 0,
            similar: 0,
            least: 1.0,
        };
        let mut clusters = vec![empty; with_removals.len()];
        for removal in removals {
            let kept = removal.kept.with;
            let Some(at) = with_removals.rank_of(kept.0) else {
                continue;
            };
            let cluster = &mut clusters[at];
            cluster.kept = kept;
            cluster.removed += 1;
            cluster.similar += u64::from(removal.kept.similarity < Similarity::ONE);
            cluster.least = cluster.least.min(removal.kept.similarity.get());
        }
        clusters.sort_unstable_by_key(|cluster| (std::cmp::Reverse(cluster.removed), cluster.kept));
        clusters
    }

    /// Returns the report of the audit on these verdicts, if there is one.
    pub(super) fn audit_report(&self, run: &LinkedRun<'_>) -> Result<Option<AuditReport>> {
        let reported = ReportedPairs::from_removals(&self.outcome.removals);
        let kept = |document| self.is_representative(document);
        run.audit_report(reported, Some(&kept))
    }

    /// Returns the number of components of at least two documents, if components are wanted.
    pub(super) fn component_count(&self) -> Option<u64> {
        let components = self.components?;
        let others = components
            .iter()
            .enumerate()
            .filter(|(at, first)| first.index() != *at);
        let mut firsts: Vec<_> = others.map(|(_, first)| *first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Some(firsts.len() as u64)
    }

    /// Returns components that connect many kept documents, largest first.
    pub(super) fn stretched_components(&self) -> Vec<(DocId, u64)> {
        let Some(components) = self.components else {
            return Vec::new();
        };
        let mut kept = vec![0u64; components.len()];
        for (document, component) in (0..).map(DocId).zip(components) {
            kept[component.index()] += u64::from(self.is_representative(document));
        }
        let is_stretched = |(_, count): &(DocId, u64)| *count >= MIN_STRETCHED_KEPT;
        let mut found: Vec<_> = (0u32..).map(DocId).zip(kept).filter(is_stretched).collect();
        found.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        found
    }
}

/// The position of the removal of each removed document.
///
/// Memory: 1.5 bits for each document, and 4 bytes for each removed one if removals are not in reading order.
struct RemovalIndex {
    removed: RankedSet,
    /// By rank of the removed document; empty if that is the position.
    positions: Vec<u32>,
}

impl RemovalIndex {
    fn new(removals: &[DocumentRemoval], documents: usize) -> Self {
        let numbers = removals.iter().map(|removal| removal.document.0);
        let removed = RankedSet::from_numbers(documents, numbers);
        if removals.is_sorted_by_key(|removal| removal.document) {
            return Self {
                removed,
                positions: Vec::new(),
            };
        }
        let mut positions = vec![0; removed.len()];
        for (position, removal) in (0u32..).zip(removals) {
            if let Some(rank) = removed.rank_of(removal.document.0) {
                positions[rank] = position;
            }
        }
        Self { removed, positions }
    }

    fn position_of(&self, document: DocId) -> Option<usize> {
        let rank = self.removed.rank_of(document.0)?;
        let position = self.positions.get(rank);
        Some(position.map_or(rank, |&position| position as usize))
    }
}
