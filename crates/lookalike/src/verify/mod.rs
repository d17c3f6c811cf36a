//! How similar two texts are, exactly.
//!
//! On sets of features: the Jaccard index and containment (`jaccard`). On features with weights: the
//! cosine and Euclidean distance (`cosine`). On sequences of characters or words: Levenshtein and
//! Indel distance (`edit`) and the longest common substring (`substring`). All are symmetric and the
//! same on every machine; a threshold is compared with the very number that is reported.
//!
//! | measure | similarity |
//! |---|---|
//! | Levenshtein | 1 − distance ÷ the length of the longer text |
//! | Indel | 1 − distance ÷ the sum of both lengths |
//! | longest common substring | 2 · its length ÷ the sum of both lengths |
//!
//! The last one is that of Indel for a single common run, and never above it: twice what is common
//! by the length of both. Divided by the shorter length instead, it would say 1 of every text that
//! stands in another.

mod cosine;
mod edit;
mod jaccard;
mod substring;

pub use cosine::{Weighted, cosine, euclidean};
pub use edit::{MOST_STEPS, Symbol, indel, levenshtein};
pub use jaccard::{containment, intersection, jaccard};
pub use substring::{MOST_SYMBOLS, longest as longest_common_substring};

pub(crate) use edit::{Outline, StepBudget};

use crate::error::Result;
use crate::plan::{Measure, Plan};
use crate::types::{Similarity, Threshold};

/// A similarity of two sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfSequences {
    /// 1 − Levenshtein distance ÷ the length of the longer sequence.
    Levenshtein,
    /// 1 − Indel distance ÷ the sum of both lengths.
    Indel,
    /// 2 · length of the longest common substring ÷ the sum of both lengths.
    Substring,
}

impl OfSequences {
    /// The similarity of two sequences if it reaches a threshold; of two empty ones 0.
    ///
    /// # Errors
    /// If the sequences are so long and the threshold so low that it takes more than [`MOST_STEPS`].
    pub fn similarity<S: Symbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
    ) -> Result<Option<Similarity>> {
        self.similarity_within(a, b, threshold, &mut StepBudget::default())
    }

    /// The same within a budget of steps.
    pub(crate) fn similarity_within<S: Symbol>(
        self,
        a: &[S],
        b: &[S],
        threshold: Threshold,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let whole = self.whole(a.len(), b.len());
        if whole == 0 {
            return Ok(None);
        }
        let least = threshold.least_part(whole);
        let part = match self {
            Self::Levenshtein => {
                edit::levenshtein_within(a, b, whole - least, budget)?.map(|edits| whole - edits)
            }
            Self::Indel => {
                edit::indel_within(a, b, whole - least, budget)?.map(|edits| whole - edits)
            }
            Self::Substring => substring::longest_of_at_least(a, b, least.div_ceil(2), budget)?
                .map(|length| 2 * length),
        };
        Ok(part.map(|part| Similarity::ratio(part, whole)))
    }

    /// What is divided by.
    fn whole(self, a: usize, b: usize) -> usize {
        match self {
            Self::Levenshtein => a.max(b),
            Self::Indel | Self::Substring => a + b,
        }
    }

    /// Whether two sequences of these outlines may be as similar as this; true if that cannot be told.
    #[inline]
    pub(crate) fn may_reach(self, a: Outline, b: Outline, threshold: Threshold) -> bool {
        let (Some(in_a), Some(in_b)) = (a.length(), b.length()) else {
            return true;
        };
        let whole = self.whole(in_a, in_b);
        let least = match self {
            Self::Levenshtein => a.least_edits(b),
            Self::Indel | Self::Substring => a.least_alone(b),
        };
        whole == 0 || threshold.admits(whole - least.min(whole), whole)
    }
}

/// The similarity of two sets if it passes the check of the plan, where that is one of sets.
pub(crate) fn check(plan: &Plan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let threshold = plan.threshold();
    if plan.settings().measure == Measure::Containment {
        let shared = intersection(a, b);
        let union = a.len() + b.len() - shared;
        let near = !plan.finds_by_features() || plan.candidate_threshold().admits(shared, union);
        let passes = near && threshold.admits(shared, less.len());
        return passes.then(|| Similarity::ratio(shared, less.len()));
    }
    reaching(less, more, threshold)
}

/// The Jaccard index if it is at least the threshold; the first list is not the longer one.
fn reaching(less: &[u64], more: &[u64], threshold: Threshold) -> Option<Similarity> {
    if more.is_empty() || !threshold.admits(less.len(), more.len()) {
        return None;
    }
    let both = less.len() + more.len();
    let shared = jaccard::intersection_of_at_least(less, more, threshold.least_shared(both))?;
    Some(Similarity::ratio(shared, both - shared))
}

/// Whether two sets are near enough to be candidates of a measure that is not one of sets.
pub(crate) fn near(plan: &Plan, a: &[u64], b: &[u64]) -> bool {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    reaching(less, more, plan.candidate_threshold()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Method, Settings};
    use crate::recipe::Recipe;

    /// Two lists that share `shared` features, with `a` and `b` of their own.
    fn lists(shared: u64, a: u64, b: u64) -> [Vec<u64>; 2] {
        [(0, a), (1 << 40, b)].map(|(from, own)| {
            let own = (1 << 20) + from..(1 << 20) + from + own;
            (0..shared).chain(own).collect()
        })
    }

    #[test]
    fn around_the_threshold_one_feature_decides() {
        let check = |measure, method, [a, b]: [Vec<u64>; 2]| {
            let threshold = Threshold::new(0.8).unwrap();
            let settings = Settings {
                threshold,
                method,
                measure,
                ..Settings::default()
            };
            let plan = Plan::new(&Recipe::default(), settings).unwrap();
            let found = check(&plan, &a, &b).map(Similarity::get);
            assert_eq!(check(&plan, &b, &a).map(Similarity::get), found);
            found
        };
        for measure in [Measure::Jaccard, Measure::Sketch] {
            let jaccard = |shared, a, b| check(measure, Method::Join, lists(shared, a, b));
            assert_eq!(jaccard(79, 21, 0), None);
            assert_eq!(jaccard(79, 10, 11), None);
            assert_eq!(jaccard(80, 20, 0), Some(0.8));
            assert_eq!(jaccard(80, 10, 10), Some(0.8));
            assert_eq!(jaccard(81, 0, 19), Some(0.81));
            assert_eq!(jaccard(0, 5, 5), None);
        }
        let containment =
            |shared, a, b| check(Measure::Containment, Method::Join, lists(shared, a, b));
        assert_eq!(containment(79, 21, 21), None);
        assert_eq!(containment(80, 20, 20), Some(0.8));
        assert_eq!(containment(81, 19, 19), Some(0.81));
        // A small set within a large one is near enough up to a Jaccard index of 0.8 / 1.2.
        assert_eq!(containment(80, 0, 40), Some(1.0));
        assert_eq!(containment(80, 0, 41), None);
        // Fingerprints have said already what is near.
        let near = check(Measure::Containment, Method::SimHash, lists(80, 0, 4000));
        assert_eq!(near, Some(1.0));
    }

    /// A text of `length` different symbols, the first `shared` of which the other one has too.
    fn sequences(length: usize, shared: usize) -> [Vec<u32>; 2] {
        let own = |from: u32| (0..shared as u32).chain(from..from + (length - shared) as u32);
        [own(10_000).collect(), own(20_000).collect()]
    }

    #[test]
    fn around_the_threshold_one_symbol_decides() {
        for of in [
            OfSequences::Levenshtein,
            OfSequences::Indel,
            OfSequences::Substring,
        ] {
            for (hundredths, length) in [(80, 100), (80, 25), (75, 400), (29, 100), (100, 70)] {
                let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
                let least = hundredths as usize * length / 100;
                for shared in [least - 1, least, (least + 1).min(length)] {
                    let [a, b] = sequences(length, shared);
                    let expected = (shared >= least).then(|| Similarity::ratio(shared, length));
                    for (a, b) in [(&a, &b), (&b, &a)] {
                        let found = of.similarity(a, b, threshold).unwrap();
                        assert_eq!(found, expected, "{of:?} {hundredths} {shared} of {length}");
                        let outlines = (Outline::new(a), Outline::new(b));
                        let may = of.may_reach(outlines.0, outlines.1, threshold);
                        assert!(may || expected.is_none());
                    }
                }
            }
        }
    }

    #[test]
    fn the_two_sentences() {
        let [a, b] = [
            "你妈妈喊你回家吃饭哦，回家罗回家罗",
            "你妈妈叫你回家吃饭啦，回家罗回家罗",
        ]
        .map(|text| text.chars().collect::<Vec<_>>());
        let threshold = Threshold::new(0.01).unwrap();
        let of = |of: OfSequences| of.similarity(&a, &b, threshold).unwrap().unwrap().get();
        assert_eq!(of(OfSequences::Levenshtein), 15.0 / 17.0);
        assert_eq!(of(OfSequences::Indel), 30.0 / 34.0);
        assert_eq!(of(OfSequences::Substring), 14.0 / 34.0);
    }
}
