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
mod sequence_measure;
mod set_measure;
mod substring;

pub use budget::StepBudget;
pub use cosine::{WeightedFeature, cosine_similarity, euclidean_distance};
pub use document_comparer::{
    ComparedDocument, DocumentComparer, DocumentRecorder, MOST_INDEXED, visit_feature_keys,
    visit_record_keys,
};
pub use edit::{MOST_STEPS, SequenceSymbol, indel_distance, levenshtein_distance};
pub use jaccard::{containment_index, intersection, jaccard_index};
pub use sequence_measure::SequenceMeasure;
pub use set_measure::SetMeasure;
pub use substring::{MOST_SYMBOLS, longest_common_substring};

pub use pair_predicate::{DocumentMatch, Route};

pub(crate) use document_lists::{DocumentList, DocumentListCache};
pub(crate) use edit::SequenceOutline;
pub(crate) use overlap_bound::OverlapBound;
pub(crate) use pair_predicate::{PairInputs, PairPredicate, SketchRef};
pub(crate) use sequence_measure::{SymbolNoun, format_count};
pub(crate) use set_measure::SetCheck;

use crate::plan::MatchPlan;
use crate::types::Similarity;

/// Returns the similarity of two sets of features by the measure of a plan, if they match. Measures that do not
/// compare sets take the Jaccard index in its place.
pub(crate) fn verify_sets(plan: &MatchPlan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    let measure = plan.match_settings().measure.set_measure();
    SetCheck::new(plan, measure.unwrap_or(SetMeasure::Jaccard)).verify_sets(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MatchMethod, MatchSettings, SimilarityMeasure};
    use crate::recipe::Recipe;
    use crate::types::Threshold;

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
