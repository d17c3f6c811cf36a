//! Scores of found passages against true ones (Potthast, Stein, Barrón-Cedeño and Rosso 2010).
//!
//! A passage is two ranges of characters, one of the document and one of the source. A found passage *detects* a true
//! one if they share characters in both texts; then their common characters count, in both.
//!
//! - **Precision**: of each found passage, the share of its characters that lie in true passages that it detects;
//!   **recall**: of each true passage, the share that lies in found passages that detect it. *Macro* averages over
//!   passages, *micro* counts the characters of all passages.
//! - **Granularity**: by how many found passages a true one is detected, averaged over those that are detected.
//! - **Plagdet**: F₁ / log₂(1 + granularity), so finding each passage in two pieces loses 37 % of F₁.
//!
//! Cost: proportional to the pairs of found and true passages with the same document and source.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use crate::passages::count_covered;

/// A passage of a document that is also in a source, as ranges of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassagePlace {
    /// Number of the document.
    pub document: u32,
    /// Number of the source.
    pub source: u32,
    /// Characters of the document.
    pub range: Range<u64>,
    /// Characters of the source.
    pub source_range: Range<u64>,
}

impl PassagePlace {
    fn length(&self) -> u64 {
        self.range.end - self.range.start + self.source_range.end - self.source_range.start
    }

    /// Returns what this passage shares with another one; `None` unless they share characters in both texts.
    fn common(&self, other: &Self) -> Option<[Range<u64>; 2]> {
        let both = [
            overlap(&self.range, &other.range),
            overlap(&self.source_range, &other.source_range),
        ];
        both.iter()
            .all(|span| span.start < span.end)
            .then_some(both)
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Precision, recall, granularity and plagdet. A figure without passages to average over is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PassageScores {
    /// Macro-averaged precision.
    pub precision: Option<f64>,
    /// Macro-averaged recall.
    pub recall: Option<f64>,
    /// Found passages for each true passage that is detected.
    pub granularity: Option<f64>,
    /// F₁ of the macro averages over log₂(1 + granularity); 0 if nothing is detected.
    pub plagdet: Option<f64>,
    /// Precision over the characters of all passages.
    pub micro_precision: Option<f64>,
    /// Recall over the characters of all passages.
    pub micro_recall: Option<f64>,
    /// True passages that a found one detects.
    pub detected: u64,
}

/// Scores found passages.
///
/// ```
/// use lookalike::quality::passages::{PassagePlace, score_passages};
///
/// let place = |range| PassagePlace { document: 0, source: 1, range, source_range: 0..100 };
/// // One true passage, of which two found ones have three quarters.
/// let scores = score_passages(&[place(0..50), place(50..75)], &[place(0..100)]);
/// assert_eq!((scores.precision, scores.granularity), (Some(1.0), Some(2.0)));
/// assert_eq!(scores.recall, Some(0.875));
/// ```
pub fn score_passages(found: &[PassagePlace], truth: &[PassagePlace]) -> PassageScores {
    let precision = PassageCover::new(found, truth);
    let recall = PassageCover::new(truth, found);
    let granularity = mean(
        recall
            .detections
            .iter()
            .map(|&it| it as f64)
            .filter(|&it| it > 0.0),
    );
    let plagdet = match (precision.macro_share(), recall.macro_share()) {
        (_, None) => None,
        (Some(precision), Some(recall)) if precision + recall > 0.0 => {
            let f1 = 2.0 * precision * recall / (precision + recall);
            Some(f1 / (1.0 + granularity.unwrap_or(1.0)).log2())
        }
        _ => Some(0.0),
    };
    PassageScores {
        precision: precision.macro_share(),
        recall: recall.macro_share(),
        granularity,
        plagdet,
        micro_precision: micro_share(found, truth),
        micro_recall: micro_share(truth, found),
        detected: recall.detections.iter().filter(|&&it| it > 0).count() as u64,
    }
}

/// For each passage, the share that others cover and the number of those that do.
struct PassageCover {
    shares: Vec<f64>,
    detections: Vec<usize>,
}

impl PassageCover {
    fn new(passages: &[PassagePlace], others: &[PassagePlace]) -> Self {
        let by_pair = group_by_pair(others);
        let mut cover = Self {
            shares: Vec::new(),
            detections: Vec::new(),
        };
        for passage in passages {
            let near = by_pair.get(&(passage.document, passage.source));
            let common: Vec<_> = near
                .into_iter()
                .flatten()
                .filter_map(|other| passage.common(other))
                .collect();
            let side =
                |at: usize| count_covered(common.iter().map(|both| both[at].clone()).collect());
            cover
                .shares
                .push((side(0) + side(1)) as f64 / passage.length().max(1) as f64);
            cover.detections.push(common.len());
        }
        cover
    }

    fn macro_share(&self) -> Option<f64> {
        mean(self.shares.iter().copied())
    }
}

fn group_by_pair(passages: &[PassagePlace]) -> HashMap<(u32, u32), Vec<&PassagePlace>> {
    let mut groups: HashMap<_, Vec<_>> = HashMap::new();
    for passage in passages {
        groups
            .entry((passage.document, passage.source))
            .or_default()
            .push(passage);
    }
    groups
}

/// Returns the share of the characters of all passages that lie in others that detect them. A character of several
/// passages counts once in each text.
fn micro_share(passages: &[PassagePlace], others: &[PassagePlace]) -> Option<f64> {
    let by_pair = group_by_pair(others);
    let (mut all, mut covered) = (TextRanges::default(), TextRanges::default());
    for passage in passages {
        all.add_both(
            passage,
            [passage.range.clone(), passage.source_range.clone()],
        );
        let near = by_pair.get(&(passage.document, passage.source));
        for both in near
            .into_iter()
            .flatten()
            .filter_map(|other| passage.common(other))
        {
            covered.add_both(passage, both);
        }
    }
    let all = all.count_characters();
    (all > 0).then(|| covered.count_characters() as f64 / all as f64)
}

/// Ranges of characters by text.
#[derive(Default)]
struct TextRanges(HashMap<(bool, u32), Vec<Range<u64>>>);

impl TextRanges {
    fn add_both(&mut self, passage: &PassagePlace, [document, source]: [Range<u64>; 2]) {
        self.0
            .entry((true, passage.document))
            .or_default()
            .push(document);
        self.0
            .entry((false, passage.source))
            .or_default()
            .push(source);
    }

    fn count_characters(self) -> u64 {
        self.0.into_values().map(count_covered).sum()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), it| (sum + it, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(
        document: u32,
        source: u32,
        range: Range<u64>,
        source_range: Range<u64>,
    ) -> PassagePlace {
        PassagePlace {
            document,
            source,
            range,
            source_range,
        }
    }

    fn is_near(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < 1e-9)
    }

    #[test]
    fn scores_equal_hand_computed_ones() {
        let truth = [place(0, 9, 100..200, 0..100), place(1, 9, 0..50, 300..350)];
        // The first case in two pieces, half of the second, and a false one.
        let found = [
            place(0, 9, 100..150, 0..50),
            place(0, 9, 160..220, 60..120),
            place(1, 9, 0..25, 300..325),
            place(2, 9, 0..10, 0..10),
        ];
        let scores = score_passages(&found, &truth);
        // 1, (40 + 40) / 120, 1 and 0.
        assert!(is_near(
            scores.precision,
            (1.0 + 80.0 / 120.0 + 1.0 + 0.0) / 4.0
        ));
        // (90 + 90) / 200 and 50 / 100.
        assert!(is_near(scores.recall, (0.9 + 0.5) / 2.0));
        assert!(is_near(scores.granularity, 1.5));
        let (p, r) = (2.6666666666666665 / 4.0, 0.7);
        assert!(is_near(
            scores.plagdet,
            2.0 * p * r / (p + r) / 2.5f64.log2()
        ));
        assert_eq!(scores.detected, 2);
        // Found: 110 + 25 + 10 characters of documents; of the source 0..50, 60..120 and 300..325, because 0..10 is
        // in the first of these. Detected: 90 + 25, and 0..50, 60..100, 300..325.
        assert!(is_near(
            scores.micro_precision,
            (115.0 + 115.0) / (145.0 + 135.0)
        ));
        assert!(is_near(scores.micro_recall, (115.0 + 115.0) / 300.0));
    }

    #[test]
    fn passage_must_meet_in_both_texts() {
        let truth = [place(0, 1, 0..10, 0..10)];
        for found in [
            place(0, 1, 0..10, 10..20),
            place(0, 1, 10..20, 0..10),
            place(0, 2, 0..10, 0..10),
            place(3, 1, 0..10, 0..10),
        ] {
            let scores = score_passages(&[found], &truth);
            assert_eq!((scores.recall, scores.detected), (Some(0.0), 0));
            assert_eq!((scores.granularity, scores.plagdet), (None, Some(0.0)));
        }
    }

    #[test]
    fn figures_without_passages_are_absent() {
        let one = [place(0, 1, 0..10, 0..10)];
        let scores = score_passages(&[], &one);
        assert_eq!(
            (scores.precision, scores.recall, scores.plagdet),
            (None, Some(0.0), Some(0.0))
        );
        let scores = score_passages(&one, &[]);
        assert_eq!(
            (scores.precision, scores.recall, scores.plagdet),
            (Some(0.0), None, None)
        );
        let equal = score_passages(&one, &one);
        assert_eq!((equal.plagdet, equal.micro_recall), (Some(1.0), Some(1.0)));
    }
}
