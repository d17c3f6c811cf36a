//! The summary of a dedup run, with the clusters that a person should look at.

use lookalike::Similarity;
use lookalike::dedup::DocumentRemoval;
use lookalike_io::error::Result;

use super::verdicts::{DocumentVerdicts, VerdictCluster};
use crate::run::commands::summary::{
    ByRoute, DedupSummary, FormAdvice, LargeCluster, RunSummary, SuspicionKind, SuspiciousCluster,
};
use crate::run::execution::form_learning::can_have_forms;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::LinkedRun;

/// Largest number of clusters that a summary names.
const NAMED_CLUSTERS: usize = 10;

/// Fewest removed documents, less than fully similar to the kept one, of a cluster that is reported as possible forms.
const MIN_FORM_DOCUMENTS: u64 = 10;

/// Makes the summary of a run. Times, and what other stages know, are still missing.
pub(super) fn summarize_run(
    run: &LinkedRun<'_>,
    verdicts: &DocumentVerdicts<'_>,
    rejected: u64,
    has_index: bool,
) -> Result<DedupSummary> {
    let (corpus, removals) = (&run.corpus, &verdicts.removals[..]);
    let documents = corpus.documents.len() as u64;
    let removed = removals.len() as u64;
    let clusters = verdicts.list_clusters();
    let plan = corpus.plan;
    Ok(DedupSummary {
        form_advice: advise_forms(corpus, has_index),
        documents,
        against: corpus.against.len() as u64,
        library: None,
        repeated_ids: corpus.repeated_ids(),
        shared_ids: corpus.shared_ids()?,
        mixed_values: corpus.documents.mixed_values(),
        kept: documents - removed,
        removed,
        dropped: verdicts.dropped_count(),
        clusters: clusters.len() as u64,
        components: verdicts.component_count(),
        run: RunSummary::new(corpus, plan, rejected),
        by_route: count_by_route(removals),
        states: run.text_states(),
        largest: name_largest_clusters(corpus, &clusters)?,
        suspicious: find_suspicious_clusters(run, &clusters, verdicts)?,
        histogram: removal_similarities(removals).collect(),
        forms: run.form_summary(Some(&|document| verdicts.is_representative(document))),
        audit: verdicts.audit_report(run)?,
        decisions: None,
        passages: None,
        spilled: run.spilled_summary(),
        stages: Vec::new(),
    })
}

fn count_by_route(removals: &[DocumentRemoval]) -> ByRoute {
    let mut counts = ByRoute::default();
    for removal in removals {
        counts.count_removal(removal.kept.route);
    }
    counts
}

fn name_largest_clusters(
    corpus: &RunCorpus<'_>,
    clusters: &[VerdictCluster],
) -> Result<Vec<LargeCluster>> {
    let named = clusters.iter().take(NAMED_CLUSTERS).map(|cluster| {
        Ok(LargeCluster {
            cluster: corpus.document_id(cluster.kept)?.into_owned(),
            documents: cluster.removed + 1,
            least_similarity: cluster.least,
        })
    });
    named.collect()
}

/// Returns how filled forms can be kept that the run has removed.
fn advise_forms(corpus: &RunCorpus<'_>, has_index: bool) -> FormAdvice {
    if !can_have_forms(corpus.run_recipe()) {
        FormAdvice::Impossible
    } else if has_index {
        FormAdvice::NewIndex
    } else if corpus.plan.compares_forms() {
        FormAdvice::ExtendTable
    } else {
        FormAdvice::Learn
    }
}

fn find_suspicious_clusters(
    run: &LinkedRun<'_>,
    clusters: &[VerdictCluster],
    verdicts: &DocumentVerdicts<'_>,
) -> Result<Vec<SuspiciousCluster>> {
    let corpus = &run.corpus;
    let mut found = Vec::new();
    for cluster in list_possible_forms(run, clusters) {
        found.push(SuspiciousCluster {
            cluster: corpus.document_id(cluster.kept)?.into_owned(),
            kind: SuspicionKind::Form,
            count: cluster.similar,
            reason: format!(
                "form: {} removed documents are similar to it and not equal; they may be filled \
                 forms that say different things",
                cluster.similar
            ),
        });
    }
    for (component, chained) in verdicts
        .stretched_components()
        .into_iter()
        .take(NAMED_CLUSTERS)
    {
        found.push(SuspiciousCluster {
            cluster: corpus.document_id(component)?.into_owned(),
            kind: SuspicionKind::Stretched,
            count: chained,
            reason: format!(
                "stretched: its component connects {chained} clusters by chains of matches, and \
                 their representatives are below the threshold with one another"
            ),
        });
    }
    Ok(found)
}

/// Returns the clusters with most removed documents that are similar and not equal, from [`MIN_FORM_DOCUMENTS`] on, if
/// the run has not learned the forms of its documents.
fn list_possible_forms(run: &LinkedRun<'_>, clusters: &[VerdictCluster]) -> Vec<VerdictCluster> {
    if run.has_own_forms {
        return Vec::new();
    }
    let is_large = |cluster: &&VerdictCluster| cluster.similar >= MIN_FORM_DOCUMENTS;
    let mut large: Vec<_> = clusters.iter().filter(is_large).copied().collect();
    large.sort_by_key(|cluster| std::cmp::Reverse(cluster.similar));
    large.truncate(NAMED_CLUSTERS);
    large
}

fn removal_similarities(removals: &[DocumentRemoval]) -> impl Iterator<Item = Similarity> {
    removals.iter().map(|removal| removal.kept.similarity)
}
