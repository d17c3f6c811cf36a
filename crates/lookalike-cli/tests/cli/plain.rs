//! The definitions in their simplest form, for lower-case ASCII words separated by single spaces.

use std::collections::{BTreeSet, HashMap};

/// Pairs of neighbouring words of a text.
pub(crate) struct Features<'a> {
    text: &'a str,
    set: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Features<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let words: Vec<_> = text.split(' ').collect();
        Self {
            text,
            set: words.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        }
    }

    /// Returns the Jaccard index of the sets of features. Texts without features are equal or have nothing in
    /// common.
    pub(crate) fn jaccard(&self, other: &Self) -> f64 {
        if self.text == other.text {
            return 1.0;
        }
        let shared = self
            .set
            .iter()
            .filter(|feature| other.set.contains(feature))
            .count();
        let union = self.set.len() + other.set.len() - shared;
        if union == 0 {
            0.0
        } else {
            shared as f64 / union as f64
        }
    }
}

/// Returns the Jaccard index of two texts.
pub(crate) fn jaccard(a: &str, b: &str) -> f64 {
    Features::new(a).jaccard(&Features::new(b))
}

/// Returns the similarity of every pair of documents, by position, the later one first.
pub(crate) fn similarities(corpus: &[(String, String)]) -> Vec<Vec<f64>> {
    let features: Vec<_> = corpus.iter().map(|(_, text)| Features::new(text)).collect();
    let row = |at: usize| {
        features[..at]
            .iter()
            .map(|a| a.jaccard(&features[at]))
            .collect()
    };
    (0..corpus.len()).map(row).collect()
}

/// Returns, for every removed document, the kept one that it is most similar to. A document is kept if no
/// kept document before it reaches the threshold.
pub(crate) fn verdicts(similarities: &[Vec<f64>], threshold: f64) -> HashMap<usize, (usize, f64)> {
    let mut kept: Vec<usize> = Vec::new();
    let mut removed = HashMap::new();
    for (document, similarity) in similarities.iter().enumerate() {
        let mut best: Option<(usize, f64)> = None;
        for &other in kept.iter().filter(|&&other| similarity[other] >= threshold) {
            if best.is_none_or(|(_, most)| similarity[other] > most) {
                best = Some((other, similarity[other]));
            }
        }
        match best {
            Some(best) => drop(removed.insert(document, best)),
            None => kept.push(document),
        }
    }
    removed
}
