//! The verdict on every document, by the rule alone.
//!
//! *x is kept iff no kept y before x has x ~ y.* A removed x names the most similar kept document,
//! or the earliest of several equally similar ones. The caller defines "before": documents are
//! visited in the given order. The caller also defines x ~ y: the function that answers for a pair
//! applies a window, a field that must be equal, and the threshold.

use std::collections::HashMap;

use crate::pairs::SimilarPair;

/// The verdict on a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OracleVerdict {
    /// It is kept.
    Kept,
    /// It duplicates a kept document.
    Removed {
        /// Position of the most similar kept document before it.
        kept: usize,
        /// Similarity of the two.
        similarity: f64,
    },
}

/// Returns the verdict on every document, by position.
///
/// `order` lists every position once, in the total order of documents. The first `always_kept` of
/// them are kept regardless of similarity, as documents to compare against. `similar(x, y)` returns
/// the similarity if x ~ y.
pub fn judge_documents(
    order: &[usize],
    always_kept: usize,
    similar: impl Fn(usize, usize) -> Option<f64>,
) -> Vec<OracleVerdict> {
    let mut verdicts = vec![OracleVerdict::Kept; order.len()];
    let mut kept_so_far = Vec::new();
    for (place, &x) in order.iter().enumerate() {
        let mut best: Option<(usize, f64)> = None;
        if place >= always_kept {
            for &y in &kept_so_far {
                if let Some(similarity) = similar(x, y)
                    && best.is_none_or(|(_, most)| similarity > most)
                {
                    best = Some((y, similarity));
                }
            }
        }
        match best {
            Some((kept, similarity)) => verdicts[x] = OracleVerdict::Removed { kept, similarity },
            None => kept_so_far.push(x),
        }
    }
    verdicts
}

/// Returns the same verdicts from a list of all pairs with x ~ y, which suits large corpora.
pub fn verdicts_from_pairs(
    order: &[usize],
    always_kept: usize,
    pairs: &[SimilarPair],
) -> Vec<OracleVerdict> {
    let place: HashMap<usize, usize> = order.iter().enumerate().map(|(at, &x)| (x, at)).collect();
    let mut neighbours: Vec<Vec<(usize, f64)>> = vec![Vec::new(); order.len()];
    for &(i, j, similarity) in pairs {
        neighbours[i].push((j, similarity));
        neighbours[j].push((i, similarity));
    }
    let mut verdicts = vec![OracleVerdict::Kept; order.len()];
    for (at, &x) in order.iter().enumerate().skip(always_kept) {
        let mut before: Vec<_> = neighbours[x]
            .iter()
            .filter(|(y, _)| place[y] < at)
            .collect();
        before.sort_by_key(|(y, _)| place[y]);
        let mut best: Option<(usize, f64)> = None;
        for &&(y, similarity) in &before {
            if verdicts[y] == OracleVerdict::Kept && best.is_none_or(|(_, most)| similarity > most)
            {
                best = Some((y, similarity));
            }
        }
        if let Some((kept, similarity)) = best {
            verdicts[x] = OracleVerdict::Removed { kept, similarity };
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::OracleVerdict::{Kept, Removed};
    use super::*;
    use crate::generate::{self, CorpusKind};
    use crate::pairs::all_pairs;

    fn among(pairs: &[SimilarPair]) -> impl Fn(usize, usize) -> Option<f64> {
        move |x, y| {
            let pair = pairs
                .iter()
                .find(|&&(i, j, _)| (i, j) == (x.min(y), x.max(y)));
            pair.map(|&(_, _, similarity)| similarity)
        }
    }

    /// With a ~ b ~ c and not a ~ c, b is removed and c is kept, because b is not kept.
    #[test]
    fn middle_of_a_chain_is_removed() {
        let pairs = [(0, 1, 0.8), (1, 2, 0.9)];
        let expected = [
            Kept,
            Removed {
                kept: 0,
                similarity: 0.8,
            },
            Kept,
        ];
        assert_eq!(judge_documents(&[0, 1, 2], 0, among(&pairs)), expected);
        let expected = [
            Removed {
                kept: 1,
                similarity: 0.8,
            },
            Kept,
            Removed {
                kept: 1,
                similarity: 0.9,
            },
        ];
        assert_eq!(judge_documents(&[1, 0, 2], 0, among(&pairs)), expected);
    }

    #[test]
    fn earliest_most_similar_document_is_named() {
        let pairs = [(0, 3, 0.8), (1, 3, 0.9), (2, 3, 0.9)];
        let named = |order: &[usize]| judge_documents(order, 0, among(&pairs))[3];
        assert_eq!(
            named(&[0, 1, 2, 3]),
            Removed {
                kept: 1,
                similarity: 0.9
            }
        );
        assert_eq!(
            named(&[2, 1, 0, 3]),
            Removed {
                kept: 2,
                similarity: 0.9
            }
        );
    }

    #[test]
    fn reference_documents_are_always_kept() {
        let pairs = [(0, 1, 1.0), (0, 2, 0.8), (1, 2, 0.9)];
        let expected = [
            Kept,
            Kept,
            Removed {
                kept: 1,
                similarity: 0.9,
            },
        ];
        assert_eq!(judge_documents(&[0, 1, 2], 2, among(&pairs)), expected);
    }

    #[test]
    fn verdicts_and_pairs_agree_in_any_order() {
        let texts = generate::generate_corpus(CorpusKind::Short, 300, 3);
        let texts: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let pairs = all_pairs(&texts, 2, 0.5);
        let forward: Vec<usize> = (0..texts.len()).collect();
        let backward: Vec<usize> = forward.iter().rev().copied().collect();
        for order in [forward, backward] {
            for always_kept in [0, 50] {
                let expected = judge_documents(&order, always_kept, among(&pairs));
                assert!(expected.iter().any(|verdict| *verdict != Kept));
                assert_eq!(verdicts_from_pairs(&order, always_kept, &pairs), expected);
            }
        }
    }
}
