//! The rows of removed documents and clusters in a report: which are listed, and their columns.

use std::collections::{HashMap, HashSet};

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike::similarity::Route;
use lookalike_io::error::Result;
use serde::Serialize;

use crate::run::execution::run_corpus::RunCorpus;
use crate::run::report::budgets::{
    CLUSTER_BYTES, REMOVAL_BYTES, count_digits, count_json_bytes, shorten_name,
};

/// Rows of removed documents, as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct RemovalColumns {
    /// All removed documents, listed or not.
    pub(super) total: usize,
    id: Vec<String>,
    /// Number of the source's name.
    source: Vec<usize>,
    row: Vec<u64>,
    /// Row of the cluster.
    cluster: Vec<usize>,
    similarity: Vec<f64>,
    /// Number of the route's name.
    route: Vec<u8>,
    /// Number of the text, or −1.
    pub(super) text: Vec<i64>,
}

/// Rows of clusters, as columns, largest first.
#[derive(Debug, Default, Serialize)]
pub(super) struct ClusterColumns {
    /// All clusters, listed or not.
    total: usize,
    id: Vec<String>,
    source: Vec<usize>,
    row: Vec<u64>,
    /// Documents, the kept one included.
    size: Vec<u64>,
    /// Smallest similarity to the kept document.
    least: Vec<f64>,
    /// Number of the kept document's text, or −1.
    pub(super) text: Vec<i64>,
}

/// Names of sources, each once.
#[derive(Debug, Default)]
pub(super) struct SourceNames {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl SourceNames {
    pub(super) fn number_source(&mut self, name: &str) -> usize {
        let name = shorten_name(name);
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = self.names.len();
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// A cluster, counted over all removals.
#[derive(Clone, Copy)]
pub(super) struct CountedCluster {
    pub(super) kept: DocId,
    pub(super) size: u64,
    pub(super) least: f64,
}

/// Counts all clusters. The largest come first, then the earlier ones.
pub(super) fn count_clusters(removals: &[DocumentRemoval]) -> Vec<CountedCluster> {
    let mut clusters: HashMap<DocId, CountedCluster> = HashMap::new();
    for removal in removals {
        let kept = removal.kept.with;
        let cluster = clusters.entry(kept).or_insert(CountedCluster {
            kept,
            size: 1,
            least: 1.0,
        });
        cluster.size += 1;
        cluster.least = cluster.least.min(removal.kept.similarity.get());
    }
    let mut clusters: Vec<_> = clusters.into_values().collect();
    clusters.sort_unstable_by_key(|cluster| (std::cmp::Reverse(cluster.size), cluster.kept));
    clusters
}

/// Returns a number by which documents are drawn: the same in every run.
pub(super) fn draw_number(document: DocId) -> u64 {
    lookalike::value_hash(&document.0.to_le_bytes())
}

/// The rows that a report lists.
pub(super) struct ListedRows {
    pub(super) removals: RemovalColumns,
    pub(super) clusters: ClusterColumns,
    /// Listed removals, by row: number among all removals.
    pub(super) removal_numbers: Vec<usize>,
    /// Row of a listed cluster.
    pub(super) cluster_row: HashMap<DocId, usize>,
}

/// Lists rows within the budgets: the removals `first` (numbers among all) with their clusters, then the largest
/// clusters, then removals of listed clusters in the order of their numbers drawn.
pub(super) fn list_rows(
    corpus: &RunCorpus<'_>,
    removals: &[DocumentRemoval],
    clusters: &[CountedCluster],
    first: &[usize],
    sources: &mut SourceNames,
) -> Result<ListedRows> {
    let mut listed = ListedRows {
        removals: RemovalColumns {
            total: removals.len(),
            ..RemovalColumns::default()
        },
        clusters: ClusterColumns {
            total: clusters.len(),
            ..ClusterColumns::default()
        },
        removal_numbers: Vec::new(),
        cluster_row: HashMap::new(),
    };
    let listed_clusters = choose_clusters(corpus, removals, clusters, first)?;
    for (row, cluster) in listed_clusters.iter().enumerate() {
        listed.cluster_row.insert(cluster.kept, row);
        listed.clusters.push_row(corpus, cluster, sources)?;
    }
    listed.removal_numbers = choose_removals(corpus, removals, first, &listed.cluster_row)?;
    for &at in &listed.removal_numbers {
        let cluster = listed.cluster_row[&removals[at].kept.with];
        listed
            .removals
            .push_row(corpus, &removals[at], cluster, sources)?;
    }
    Ok(listed)
}

/// Returns the clusters of the removals `first`, and as many of the other clusters as fit into the budget.
fn choose_clusters(
    corpus: &RunCorpus<'_>,
    removals: &[DocumentRemoval],
    clusters: &[CountedCluster],
    first: &[usize],
) -> Result<Vec<CountedCluster>> {
    let needed: HashSet<DocId> = first.iter().map(|&at| removals[at].kept.with).collect();
    let mut bytes = 0;
    for &document in &needed {
        bytes += row_bytes(corpus, document)?;
    }
    let mut listed = Vec::new();
    for cluster in clusters {
        let is_listed = if needed.contains(&cluster.kept) {
            true
        } else if bytes > CLUSTER_BYTES {
            false
        } else {
            bytes += row_bytes(corpus, cluster.kept)?;
            bytes <= CLUSTER_BYTES
        };
        if is_listed {
            listed.push(*cluster);
        }
    }
    Ok(listed)
}

/// Returns the numbers of the removals `first`, and of as many other removals of listed clusters as fit into the
/// budget, in ascending order.
fn choose_removals(
    corpus: &RunCorpus<'_>,
    removals: &[DocumentRemoval],
    first: &[usize],
    cluster_row: &HashMap<DocId, usize>,
) -> Result<Vec<usize>> {
    let removal_bytes =
        |at: usize| -> Result<usize> { Ok(row_bytes(corpus, removals[at].document)? + 12) };
    let mut is_listed = vec![false; removals.len()];
    let mut bytes = 0;
    for &at in first {
        is_listed[at] = true;
        bytes += removal_bytes(at)?;
    }
    let others = (0..removals.len())
        .filter(|&at| !is_listed[at] && cluster_row.contains_key(&removals[at].kept.with));
    let mut others: Vec<usize> = others.collect();
    others.sort_unstable_by_key(|&at| (draw_number(removals[at].document), at));
    for at in others {
        bytes += removal_bytes(at)?;
        if bytes > REMOVAL_BYTES {
            break;
        }
        is_listed[at] = true;
    }
    Ok((0..removals.len()).filter(|&at| is_listed[at]).collect())
}

/// Returns about how many bytes the row of a document takes in the report.
fn row_bytes(corpus: &RunCorpus<'_>, document: DocId) -> Result<usize> {
    let id = shorten_name(&corpus.document_id(document)?);
    let (_, row) = corpus.source_and_row(document);
    Ok(count_json_bytes(&id) + count_digits(row) + 26)
}

/// Returns a similarity with at most six digits, which a reader can use.
fn round_similarity(similarity: f64) -> f64 {
    (similarity * 1e6).round() / 1e6
}

impl RemovalColumns {
    fn push_row(
        &mut self,
        corpus: &RunCorpus<'_>,
        removal: &DocumentRemoval,
        cluster: usize,
        sources: &mut SourceNames,
    ) -> Result<()> {
        let (source, row) = corpus.source_and_row(removal.document);
        self.id
            .push(shorten_name(&corpus.document_id(removal.document)?));
        self.source.push(sources.number_source(source));
        self.row.push(row);
        self.cluster.push(cluster);
        self.similarity
            .push(round_similarity(removal.kept.similarity.get()));
        self.route.push(removal.kept.route.file_number());
        self.text.push(-1);
        Ok(())
    }
}

impl ClusterColumns {
    fn push_row(
        &mut self,
        corpus: &RunCorpus<'_>,
        cluster: &CountedCluster,
        sources: &mut SourceNames,
    ) -> Result<()> {
        let (source, row) = corpus.source_and_row(cluster.kept);
        self.id
            .push(shorten_name(&corpus.document_id(cluster.kept)?));
        self.source.push(sources.number_source(source));
        self.row.push(row);
        self.size.push(cluster.size);
        self.least.push(round_similarity(cluster.least));
        self.text.push(-1);
        Ok(())
    }
}

/// Returns the names of routes by their numbers.
pub(super) fn route_names() -> Vec<&'static str> {
    let mut routes = Route::ALL;
    routes.sort_by_key(|route| route.file_number());
    routes.iter().map(|route| route.name()).collect()
}
