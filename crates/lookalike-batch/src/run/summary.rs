//! What a run has done, for people and machines.

use lookalike::Similarity;
use serde::Serialize;

use super::audit::AuditReport;

/// Values of the field of `--keep` that are of two kinds: every string comes behind every number, so it
/// is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MixedValues {
    /// Documents with a number.
    pub numbers: u64,
    /// Documents with a string that is no number.
    pub strings: u64,
}

/// What a dedup run has done.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Documents read, without those given as known.
    pub documents: u64,
    /// Documents given as known (`--against`).
    pub against: u64,
    /// Documents with the id of an earlier one of the same inputs.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_ids: u64,
    /// Documents with the id of a known one, or its number where rows are numbered: tables tell the
    /// two apart by their sources and rows.
    #[serde(skip_serializing_if = "is_zero")]
    pub shared_ids: u64,
    /// Numbers and strings in the field of `--keep`, where there are both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_values: Option<MixedValues>,
    /// Documents kept.
    pub kept: u64,
    /// Documents removed.
    pub removed: u64,
    /// Kept documents that something was removed for.
    pub clusters: u64,
    /// Documents connected by verified pairs to at least one other, counted by group, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<u64>,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input as they were read (decompressed).
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// `auto`, `minhash`, …
    pub method: &'static str,
    /// `jaccard`, `levenshtein`, …
    pub measure: &'static str,
    /// The least Jaccard index for which candidates were found, where another measure decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates_from: Option<f64>,
    /// The least similarity that matched.
    pub threshold: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
    /// Removed documents by route: texts equal after normalisation, exact join, MinHash, and so on.
    pub by_route: ByRoute,
    /// Documents too short for an n-gram, documents of punctuation and symbols only, empty ones.
    pub states: States,
    /// The largest clusters, largest first, at most ten.
    pub largest: Vec<LargeCluster>,
    /// Clusters that a person should look at.
    pub suspicious: Vec<Suspicion>,
    /// Removed documents by similarity: counts for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
    pub histogram: Histogram,
    /// What the run has missed, by estimate, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// Seconds of every stage.
    pub stages: Vec<(&'static str, f64)>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Removed documents by how their match was found.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ByRoute {
    /// Equal after normalisation.
    pub exact: u64,
    /// Found by the exact join of short documents.
    pub join: u64,
    /// Found by MinHash bands.
    pub minhash: u64,
    /// Found by SimHash distance or blocks.
    pub simhash: u64,
    /// Found by their longest sentences.
    pub sentences: u64,
    /// Found by the smallest hashes of their features.
    pub bottomk: u64,
}

/// Documents by what they offer, the rich ones left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct States {
    /// Fewer tokens than an n-gram needs.
    pub poor: u64,
    /// No tokens.
    pub blank: u64,
    /// No text; matches nothing.
    pub empty: u64,
}

/// A cluster with many documents.
#[derive(Debug, Clone, Serialize)]
pub struct LargeCluster {
    /// Id of the representative, which names the cluster.
    pub cluster: String,
    /// Documents in it, the representative included.
    pub documents: u64,
    /// The least similarity of a member with the representative.
    pub least_similarity: f64,
}

/// Something about a cluster or component that deserves a look.
#[derive(Debug, Clone, Serialize)]
pub struct Suspicion {
    /// Id of the representative.
    pub cluster: String,
    /// A phrase: what is suspicious.
    pub reason: String,
}

/// Counts by similarity: for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; Self::STEPS + 1],
        }
    }
}

impl Histogram {
    /// Steps from 0 to 1.
    pub const STEPS: usize = 20;

    /// Counts a similarity.
    pub fn take(&mut self, similarity: Similarity) {
        self.counts[(similarity.get() * Self::STEPS as f64) as usize] += 1;
    }

    /// The counts, those of exactly 1 last.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl FromIterator<Similarity> for Histogram {
    fn from_iter<I: IntoIterator<Item = Similarity>>(similarities: I) -> Self {
        let mut histogram = Self::default();
        similarities.into_iter().for_each(|it| histogram.take(it));
        histogram
    }
}

/// What a pairs run has done.
#[derive(Debug, Clone, Serialize)]
pub struct PairsSummary {
    /// Documents read.
    pub documents: u64,
    /// Pairs written.
    pub pairs: u64,
    /// Documents whose text an earlier one within reach has; 0 where every combination is listed.
    pub equal: u64,
    /// Documents with the id of an earlier one.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_ids: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input as they were read (decompressed).
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// `auto`, `minhash`, …
    pub method: &'static str,
    /// `jaccard`, `levenshtein`, …
    pub measure: &'static str,
    /// The least Jaccard index for which candidates were found, where another measure decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates_from: Option<f64>,
    /// The least similarity that matched.
    pub threshold: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
    /// Pairs by similarity: counts for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
    pub histogram: Histogram,
    /// What the run has missed, by estimate, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
}
