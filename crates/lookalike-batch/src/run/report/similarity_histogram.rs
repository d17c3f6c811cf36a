//! Counts of pairs or removals by similarity.

use lookalike::Similarity;
use serde::Serialize;

/// Counts by similarity: for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct SimilarityHistogram {
    counts: Vec<u64>,
}

impl Default for SimilarityHistogram {
    fn default() -> Self {
        Self {
            counts: vec![0; Self::INTERVAL_COUNT + 1],
        }
    }
}

impl SimilarityHistogram {
    /// Number of intervals from 0 to 1.
    pub const INTERVAL_COUNT: usize = 20;

    /// Counts a similarity.
    pub fn add_similarity(&mut self, similarity: Similarity) {
        self.counts[Self::bin_of(similarity)] += 1;
    }

    /// Returns the bin in which a similarity is counted.
    pub fn bin_of(similarity: Similarity) -> usize {
        (similarity.get() * Self::INTERVAL_COUNT as f64) as usize
    }

    /// Returns the lower edge of a bin, and its upper edge, which is outside; `None` for the last bin, which has exactly 1.
    pub fn bin_edges(bin: usize) -> (f64, Option<f64>) {
        let edge = |bin: usize| bin as f64 / Self::INTERVAL_COUNT as f64;
        (
            edge(bin),
            (bin < Self::INTERVAL_COUNT).then(|| edge(bin + 1)),
        )
    }

    /// Returns the lower of two bins: that of a threshold, and the first one with a count. A threshold on the lower edge of a
    /// bin belongs to that bin.
    pub fn first_shown_bin(&self, threshold: f64) -> usize {
        let at_threshold = (threshold * Self::INTERVAL_COUNT as f64 + 1e-9) as usize;
        let first_used = self.counts.iter().position(|&count| count > 0);
        at_threshold.min(first_used.unwrap_or(at_threshold))
    }

    /// Returns the counts; the last one is that of exactly 1.
    pub fn bin_counts(&self) -> &[u64] {
        &self.counts
    }
}

impl FromIterator<Similarity> for SimilarityHistogram {
    fn from_iter<I: IntoIterator<Item = Similarity>>(similarities: I) -> Self {
        let mut histogram = Self::default();
        similarities
            .into_iter()
            .for_each(|similarity| histogram.add_similarity(similarity));
        histogram
    }
}
