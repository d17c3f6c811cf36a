//! The verdicts of a run by document, and the clusters that follow from them.

use std::borrow::Cow;

use lookalike::dedup::{DedupOutcome, DocumentRemoval};
use lookalike::{DocId, Similarity};
use lookalike_io::error::Result;

use super::kept_members::KeptMembers;
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
    /// Index of each document's removal, or [`NO_REMOVAL`].
    removal: Vec<u32>,
    /// Index of each document's removal in the outcome, or [`NO_REMOVAL`]; `None` if that is the same.
    verdict: Option<Vec<u32>>,
    members: KeptMembers,
    pub(super) components: Option<&'a [DocId]>,
}

const NO_REMOVAL: u32 = u32::MAX;

/// The cluster of documents for which nothing was removed.
const NO_CLUSTER: u32 = u32::MAX;

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
            Cow::Owned(_) => Some(index_removals(&outcome.removals, corpus.len())),
        };
        Self {
            corpus,
            outcome,
            removal: index_removals(&removals, corpus.len()),
            removals,
            verdict,
            members,
            components,
        }
    }

    /// Returns `true` if a document is kept, or a known one that is never written.
    pub(super) fn is_kept(&self, document: DocId) -> bool {
        self.removal[document.index()] == NO_REMOVAL
    }

    /// Returns the removal of a document by its verdict alone, whether its cluster keeps further documents or none.
    pub(super) fn verdict_of(&self, document: DocId) -> Option<&DocumentRemoval> {
        let verdict = self.verdict.as_ref().unwrap_or(&self.removal);
        match verdict[document.index()] {
            NO_REMOVAL => None,
            at => Some(&self.outcome.removals[at as usize]),
        }
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
        match self.removal[document.index()] {
            NO_REMOVAL => None,
            at => Some(&self.removals[at as usize]),
        }
    }

    /// Lists the new documents, those of the inputs without the known ones, in reading order.
    pub(super) fn list_new_documents(&self) -> impl Iterator<Item = DocId> + '_ {
        (self.corpus.known_count()..self.corpus.len()).map(|at| DocId(at as u32))
    }

    /// Returns the clusters by size, largest first, then in reading order.
    pub(super) fn list_clusters(&self) -> Vec<VerdictCluster> {
        let mut at_kept = vec![NO_CLUSTER; self.corpus.len()];
        let mut clusters: Vec<VerdictCluster> = Vec::new();
        for removal in &self.outcome.removals {
            let kept = removal.kept.with;
            let at = &mut at_kept[kept.index()];
            if *at == NO_CLUSTER {
                *at = clusters.len() as u32;
                clusters.push(VerdictCluster {
                    kept,
                    removed: 0,
                    similar: 0,
                    least: 1.0,
                });
            }
            let cluster = &mut clusters[*at as usize];
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

/// Returns the index of each document's removal, or [`NO_REMOVAL`].
fn index_removals(removals: &[DocumentRemoval], documents: usize) -> Vec<u32> {
    let mut index = vec![NO_REMOVAL; documents];
    for (at, removed) in (0u32..).zip(removals) {
        index[removed.document.index()] = at;
    }
    index
}
