//! Verification: exact similarity of two texts.
//!
//! Sets of features have the Jaccard index and containment (`jaccard_index`). Features with weights have
//! the cosine and Euclidean distance (`cosine_similarity`). Sequences of characters or words have
//! Levenshtein and Indel distance (`edit`) and the longest common substring (`substring`). All are
//! symmetric and the same on every machine. The number that is compared with the threshold is the number
//! that is reported.
//!
//! | measure | similarity |
//! |---|---|
//! | Levenshtein | 1 − distance ÷ the length of the longer text |
//! | Indel | 1 − distance ÷ the sum of both lengths |
//! | longest common substring | 2 · its length ÷ the sum of both lengths |
//!
//! The similarity by the longest common substring is that of Indel for a single common run, and never exceeds
//! it. Dividing by the shorter length instead would give 1 to every text that is contained in another.

mod budget;
mod cosine;
mod document_comparer;
mod document_lists;
mod edit;
mod jaccard;
mod overlap_bound;
mod pair_predicate;
mod substring;

pub use budget::StepBudget;
pub use cosine::{WeightedFeature, cosine_similarity, euclidean_distance};
pub use document_comparer::{
    ComparedDocument, DocumentComparer, DocumentRecorder, MOST_INDEXED, visit_feature_keys,
    visit_record_keys,
};
pub use edit::{MOST_STEPS, SequenceSymbol, indel_distance, levenshtein_distance};
pub use jaccard::{containment_index, intersection, jaccard_index};
pub use substring::{MOST_SYMBOLS, longest_common_substring};

pub use pair_predicate::{DocumentMatch, Route};

pub(crate) use document_lists::{DocumentList, DocumentListCache};
pub(crate) use edit::SequenceOutline;
pub(crate) use overlap_bound::OverlapBound;
pub(crate) use pair_predicate::{PairInputs, PairPredicate, SketchRef};

use crate::error::Result;
use crate::plan::{MatchPlan, SimilarityMeasure};
use crate::types::{Similarity, Threshold};

/// Symbols that are read in the time of one step.
const SYMBOLS_READ_IN_A_STEP: u64 = 4;

/// A measure of the similarity of two sequences.
///
/// ```
/// use lookalike::Threshold;
/// use lookalike::similarity::SequenceMeasure;
///
/// let [a, b] = ["渡船七点开", "渡船八点开了"].map(|text| text.chars().collect::<Vec<_>>());
/// let similarity = SequenceMeasure::Levenshtein.similarity(&a, &b, Threshold::new(0.5)?)?;
/// // Two edits in six characters.
/// assert_eq!(similarity.map(|it| it.get()), Some(4.0 / 6.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceMeasure {
    /// 1 − Levenshtein distance ÷ the length of the longer sequence.
    Levenshtein,
    /// 1 − Indel distance ÷ the sum of both lengths.
    Indel,
    /// 2 · length of the longest common substring ÷ the sum of both lengths.
    Substring,
}

impl SequenceMeasure {
    /// Returns the similarity of two sequences if it reaches a threshold; `None` also if both are empty.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the sequences are so long and the threshold so low
    /// that it takes more than [`MOST_STEPS`] steps.
    pub fn similarity<S: SequenceSymbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
    ) -> Result<Option<Similarity>> {
        self.similarity_within(a, b, threshold, &mut StepBudget::unlimited())
    }

    /// As [`similarity`](Self::similarity), but takes its steps from a budget.
    ///
    /// # Errors
    /// Also [`ErrorKind::TooCostly`](crate::ErrorKind::TooCostly) if the budget runs out.
    pub fn similarity_within<S: SequenceSymbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let whole = self.normalizing_length(a.len(), b.len());
        if whole == 0 {
            return Ok(None);
        }
        // Trimming and counting read every symbol.
        budget.take((a.len() + b.len()) as u64 / SYMBOLS_READ_IN_A_STEP)?;
        let least = threshold.least_part(whole);
        let part = match self {
            Self::Levenshtein => {
                let edits = edit::levenshtein_within(a, b, whole - least, budget)?;
                edits.map(|edits| whole - edits)
            }
            Self::Indel => {
                let edits = edit::indel_within(a, b, whole - least, budget)?;
                edits.map(|edits| whole - edits)
            }
            Self::Substring => {
                let least = least.div_ceil(2);
                substring::longest_of_at_least(a, b, least, budget)?.map(|length| 2 * length)
            }
        };
        Ok(part.map(|part| Similarity::from_ratio(part, whole)))
    }

    /// Returns the divisor of the similarity of sequences with these lengths.
    fn normalizing_length(self, a: usize, b: usize) -> usize {
        match self {
            Self::Levenshtein => a.max(b),
            Self::Indel | Self::Substring => a + b,
        }
    }

    /// Returns `false` only if the outlines prove that two sequences cannot reach the threshold.
    #[inline]
    pub(crate) fn may_reach_threshold(
        self,
        a: SequenceOutline,
        b: SequenceOutline,
        threshold: Threshold,
    ) -> bool {
        let (Some(in_a), Some(in_b)) = (a.symbol_count(), b.symbol_count()) else {
            return true;
        };
        let whole = self.normalizing_length(in_a, in_b);
        let least = match self {
            Self::Levenshtein => a.least_edits(b),
            Self::Indel | Self::Substring => a.least_alone(b),
        };
        whole == 0 || threshold.admits_ratio(whole - least.min(whole), whole)
    }
}

/// Returns the Jaccard index or containment of two sets, whichever the plan uses, if they match.
pub(crate) fn verify_sets(plan: &MatchPlan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    match plan.match_settings().measure {
        SimilarityMeasure::Containment => containment_if_reaching(plan, less, more),
        SimilarityMeasure::Jaccard
        | SimilarityMeasure::Cosine
        | SimilarityMeasure::Levenshtein
        | SimilarityMeasure::Indel
        | SimilarityMeasure::Substring
        | SimilarityMeasure::Sketch => jaccard_if_reaching(less, more, plan.threshold()),
    }
}

/// Returns the containment if it reaches the threshold, and the Jaccard index reaches the candidate
/// threshold if the plan has one. `less` must not be longer than `more`.
fn containment_if_reaching(plan: &MatchPlan, less: &[u64], more: &[u64]) -> Option<Similarity> {
    if less.is_empty() {
        return None;
    }
    let least = plan.threshold().least_part(less.len());
    let shared = jaccard::intersection_of_at_least(less, more, least)?;
    let union = less.len() + more.len() - shared;
    let near =
        !plan.has_candidate_threshold() || plan.candidate_threshold().admits_ratio(shared, union);
    near.then(|| Similarity::from_ratio(shared, less.len()))
}

/// Returns the Jaccard index if it reaches the threshold. `less` must not be longer than `more`.
fn jaccard_if_reaching(less: &[u64], more: &[u64], threshold: Threshold) -> Option<Similarity> {
    if more.is_empty() || !threshold.admits_ratio(less.len(), more.len()) {
        return None;
    }
    let both = less.len() + more.len();
    let shared = jaccard::intersection_of_at_least(less, more, threshold.least_shared(both))?;
    Some(Similarity::from_ratio(shared, both - shared))
}

/// Returns `true` if the Jaccard index of two sets reaches the candidate threshold. For measures that do not
/// compare sets.
pub(crate) fn are_near_sets(plan: &MatchPlan, a: &[u64], b: &[u64]) -> bool {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    jaccard_if_reaching(less, more, plan.candidate_threshold()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MatchMethod, MatchSettings};
    use crate::recipe::Recipe;

    /// Returns two lists that share `shared` features, and have `a` and `b` features of their own.
    fn lists(shared: u64, a: u64, b: u64) -> [Vec<u64>; 2] {
        [(0, a), (1 << 40, b)].map(|(from, own)| {
            let own = (1 << 20) + from..(1 << 20) + from + own;
            (0..shared).chain(own).collect()
        })
    }

    #[test]
    fn one_feature_decides_at_the_threshold() {
        let check = |measure, method, [a, b]: [Vec<u64>; 2]| {
            let threshold = Threshold::new(0.8).unwrap();
            let settings = MatchSettings {
                threshold,
                method,
                measure,
                ..MatchSettings::default()
            };
            let plan = MatchPlan::new(&Recipe::default(), settings).unwrap();
            let found = verify_sets(&plan, &a, &b).map(Similarity::get);
            assert_eq!(verify_sets(&plan, &b, &a).map(Similarity::get), found);
            found
        };
        for measure in [SimilarityMeasure::Jaccard, SimilarityMeasure::Sketch] {
            let jaccard = |shared, a, b| check(measure, MatchMethod::Join, lists(shared, a, b));
            assert_eq!(jaccard(79, 21, 0), None);
            assert_eq!(jaccard(79, 10, 11), None);
            assert_eq!(jaccard(80, 20, 0), Some(0.8));
            assert_eq!(jaccard(80, 10, 10), Some(0.8));
            assert_eq!(jaccard(81, 0, 19), Some(0.81));
            assert_eq!(jaccard(0, 5, 5), None);
        }
        let containment = |shared, a, b| {
            check(
                SimilarityMeasure::Containment,
                MatchMethod::Join,
                lists(shared, a, b),
            )
        };
        assert_eq!(containment(79, 21, 21), None);
        assert_eq!(containment(80, 20, 20), Some(0.8));
        assert_eq!(containment(81, 19, 19), Some(0.81));
        // The size of the larger set does not matter, unless candidates come from sketches: then a small
        // set within a large one is a candidate up to a Jaccard index of 0.8 / 1.2.
        assert_eq!(containment(80, 0, 41), Some(1.0));
        assert_eq!(containment(79, 21, 4000), None);
        assert_eq!(containment(80, 20, 4000), Some(0.8));
        for (more, expected) in [(40, Some(1.0)), (41, None)] {
            let lists = lists(80, 0, more);
            let found = check(SimilarityMeasure::Containment, MatchMethod::MinHash, lists);
            assert_eq!(found, expected);
        }
        // With fingerprints, the Hamming distance alone decides which pairs are candidates.
        let near = check(
            SimilarityMeasure::Containment,
            MatchMethod::SimHash,
            lists(80, 0, 4000),
        );
        assert_eq!(near, Some(1.0));
    }

    /// Returns two texts of `length` different symbols that share only their first `shared` symbols.
    fn sequences(length: usize, shared: usize) -> [Vec<u32>; 2] {
        let own = |from: u32| (0..shared as u32).chain(from..from + (length - shared) as u32);
        [own(10_000).collect(), own(20_000).collect()]
    }

    #[test]
    fn one_symbol_decides_at_the_threshold() {
        for of in [
            SequenceMeasure::Levenshtein,
            SequenceMeasure::Indel,
            SequenceMeasure::Substring,
        ] {
            for (hundredths, length) in [(80, 100), (80, 25), (75, 400), (29, 100), (100, 70)] {
                let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
                let least = hundredths as usize * length / 100;
                for shared in [least - 1, least, (least + 1).min(length)] {
                    let [a, b] = sequences(length, shared);
                    let expected =
                        (shared >= least).then(|| Similarity::from_ratio(shared, length));
                    for (a, b) in [(&a, &b), (&b, &a)] {
                        let found = of.similarity(a, b, threshold).unwrap();
                        assert_eq!(found, expected, "{of:?} {hundredths} {shared} of {length}");
                        let outlines = (SequenceOutline::new(a), SequenceOutline::new(b));
                        let may = of.may_reach_threshold(outlines.0, outlines.1, threshold);
                        assert!(may || expected.is_none());
                    }
                }
            }
        }
    }

    #[test]
    fn measures_equal_a_worked_example() {
        let [a, b] = [
            "你妈妈喊你回家吃饭哦，回家罗回家罗",
            "你妈妈叫你回家吃饭啦，回家罗回家罗",
        ]
        .map(|text| text.chars().collect::<Vec<_>>());
        let threshold = Threshold::new(0.01).unwrap();
        let of = |of: SequenceMeasure| of.similarity(&a, &b, threshold).unwrap().unwrap().get();
        assert_eq!(of(SequenceMeasure::Levenshtein), 15.0 / 17.0);
        assert_eq!(of(SequenceMeasure::Indel), 30.0 / 34.0);
        assert_eq!(of(SequenceMeasure::Substring), 14.0 / 34.0);
    }
}
