//! The measures of similarity, each with one descriptor.
//!
//! Plans, verification, comparisons, reports and the options of the command and the service ask the descriptor, so
//! that the engine needs a variant and a descriptor here, and a formula: in [`SetMeasure`] for sets of features, a
//! function of two weighted lists, or in [`SequenceMeasure`] for sequences. Lists outside of Rust (types of Python,
//! pages) and translations name measures too; tests compare them with [`SimilarityMeasure::ALL`].

use super::describe_choices;
use crate::error::Result;
use crate::similarity::{SequenceMeasure, SetMeasure, WeightedFeature, cosine_similarity};
use crate::types::{Similarity, Threshold};

/// The similarity measure by which candidates are verified. In the formulas, t is the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimilarityMeasure {
    /// |A ∩ B| / |A ∪ B| on the sets of features.
    #[default]
    Jaccard,
    /// |A ∩ B| / min(|A|, |B|). The methods `auto` and `join` find every pair at the threshold, whatever
    /// the sizes are. `minhash` and `bottomk` find pairs whose Jaccard index is at least t/(2−t), which two sets
    /// of equal size have when one contains the share t of the other.
    Containment,
    /// The cosine of the weighted features, for pairs whose Jaccard index is at least t/(2−t). A weight
    /// is the number of occurrences unless weights are given.
    Cosine,
    /// 1 − Levenshtein distance ÷ length of the longer text, for pairs whose Jaccard index is at least
    /// what that many edits leave of the features.
    Levenshtein,
    /// 1 − Indel distance ÷ sum of both lengths, for pairs as with Levenshtein.
    Indel,
    /// 2 · length of the longest common substring ÷ sum of both lengths, for pairs whose Jaccard index
    /// is at least t/(2−t).
    Substring,
    /// The sketches alone: the share of equal slots, 1 − distance/bits, the estimate from the smallest
    /// hashes, or 1 for equal sentences. Documents of the exact join are still compared exactly.
    Sketch,
}

/// Everything that the parts of the engine and the programs around it ask about a measure.
///
/// ```
/// use lookalike::plan::SimilarityMeasure;
///
/// let measure = SimilarityMeasure::Substring.descriptor();
/// assert_eq!(measure.name, "lcs");
/// assert_eq!(measure.figure_names[1], "longest common substring by words");
/// ```
#[derive(Debug)]
pub struct MeasureDescriptor {
    /// Name in options, requests, calls, files and reports.
    pub name: &'static str,
    /// Explanation in the help of the command.
    pub help: &'static str,
    /// Formula in the report of a plan.
    pub formula: &'static str,
    /// Noun for a value of the measure.
    pub noun: &'static str,
    /// Names of the figures that a comparison of two texts shows: of characters, and of words. Measures of
    /// features have the same name twice.
    pub figure_names: [&'static str; 2],
    /// Inputs of the comparison, and the function that compares them.
    pub inputs: ComparedInputs,
    /// Least Jaccard index of a match.
    pub least_jaccard: LeastJaccard,
}

/// Inputs of a comparison, and the function that compares them.
#[derive(Clone, Copy, Debug)]
pub enum ComparedInputs {
    /// The sets of features.
    Sets(SetMeasure),
    /// The features with their weights.
    Weights(WeightMeasure),
    /// The sequences of characters or words.
    Sequences(SequenceMeasure),
}

/// A function of two lists of distinct features with their weights, ascending by feature.
pub type WeightMeasure = fn(&[WeightedFeature], &[WeightedFeature]) -> Similarity;

/// The least Jaccard index that two matching documents have, as far as candidates are searched for.
#[derive(Clone, Copy, Debug)]
pub enum LeastJaccard {
    /// The threshold, because the measure is the Jaccard index or an estimate of it.
    Threshold,
    /// The Jaccard index of two sets of equal size that share the part t of each: t/(2−t).
    EqualSizes,
    /// The Jaccard index that is left after as many edits as the threshold allows. The function returns how many
    /// features one edit changes at most, by the length n of the n-grams.
    AfterEdits(fn(u32) -> u32),
}

/// Lowest Jaccard index down to which candidates of a measure of sequences are searched for.
pub const LOWEST_CANDIDATE_THRESHOLD: f64 = 0.2;

describe_choices! {
    SimilarityMeasure, MeasureDescriptor, 7,
    Jaccard => MeasureDescriptor {
        name: "jaccard",
        help: "Shared features ÷ all features of both",
        formula: "Jaccard index of the sets of features",
        noun: "Jaccard index",
        figure_names: ["Jaccard", "Jaccard"],
        inputs: ComparedInputs::Sets(SetMeasure::Jaccard),
        least_jaccard: LeastJaccard::Threshold,
    },
    Containment => MeasureDescriptor {
        name: "containment",
        help: "Shared features ÷ features of the smaller document",
        formula: "shared features / features of the smaller document",
        noun: "containment",
        figure_names: ["containment", "containment"],
        inputs: ComparedInputs::Sets(SetMeasure::Containment),
        least_jaccard: LeastJaccard::EqualSizes,
    },
    Cosine => MeasureDescriptor {
        name: "cosine",
        help: "Cosine of the features, weighted by frequency or by given weights",
        formula: "cosine of the weighted features",
        noun: "cosine",
        figure_names: ["cosine of weights", "cosine of weights"],
        inputs: ComparedInputs::Weights(cosine_similarity),
        least_jaccard: LeastJaccard::EqualSizes,
    },
    Levenshtein => MeasureDescriptor {
        name: "levenshtein",
        help: "1 − (insertions, deletions and substitutions) ÷ length of the longer text",
        formula: "1 - edits / length of the longer text",
        noun: "Levenshtein similarity",
        figure_names: ["Levenshtein", "Levenshtein by words"],
        inputs: ComparedInputs::Sequences(SequenceMeasure::Levenshtein),
        least_jaccard: LeastJaccard::AfterEdits(|ngram| ngram),
    },
    Indel => MeasureDescriptor {
        name: "indel",
        help: "1 − (insertions and deletions) ÷ length of both texts",
        formula: "1 - (insertions + deletions) / length of both texts",
        noun: "Indel similarity",
        figure_names: ["Indel", "Indel by words"],
        inputs: ComparedInputs::Sequences(SequenceMeasure::Indel),
        least_jaccard: LeastJaccard::AfterEdits(|ngram| 2 * ngram - 1),
    },
    Substring => MeasureDescriptor {
        name: "lcs",
        help: "Twice the length of the longest common substring ÷ length of both texts",
        formula: "2 x longest common substring / length of both texts",
        noun: "share of the longest common substring",
        figure_names: [
            "longest common substring",
            "longest common substring by words",
        ],
        inputs: ComparedInputs::Sequences(SequenceMeasure::Substring),
        least_jaccard: LeastJaccard::EqualSizes,
    },
    Sketch => MeasureDescriptor {
        name: "none",
        help: "No verification: similarity is the share of equal slots (MinHash), 1 − distance/bits (SimHash), the \
               estimate of the smallest hashes (bottomk), or 1 for the same longest sentences",
        formula: "Jaccard index of the sets of features",
        noun: "Jaccard index",
        figure_names: ["Jaccard", "Jaccard"],
        // Documents of the exact join have no sketch. They are compared by their sets.
        inputs: ComparedInputs::Sets(SetMeasure::Jaccard),
        least_jaccard: LeastJaccard::Threshold,
    },
}

impl SimilarityMeasure {
    /// Returns the measure of sets of features, if the measure compares these. Without verification, sets are
    /// compared where documents have no sketch.
    pub fn set_measure(self) -> Option<SetMeasure> {
        match self.descriptor().inputs {
            ComparedInputs::Sets(measure) => Some(measure),
            ComparedInputs::Weights(_) | ComparedInputs::Sequences(_) => None,
        }
    }

    /// Returns the similarity of weighted features, if the measure compares these.
    pub fn weight_measure(self) -> Option<WeightMeasure> {
        match self.descriptor().inputs {
            ComparedInputs::Weights(measure) => Some(measure),
            ComparedInputs::Sets(_) | ComparedInputs::Sequences(_) => None,
        }
    }

    /// Returns the similarity of sequences, if the measure compares characters or words. Returns `None` if it
    /// compares features or sketches.
    pub fn sequence_measure(self) -> Option<SequenceMeasure> {
        match self.descriptor().inputs {
            ComparedInputs::Sequences(measure) => Some(measure),
            ComparedInputs::Sets(_) | ComparedInputs::Weights(_) => None,
        }
    }

    /// Returns `true` if the measure is an edit distance, which takes time in proportion to the product of
    /// both lengths.
    pub fn counts_edits(self) -> bool {
        self.sequence_measure()
            .is_some_and(SequenceMeasure::counts_edits)
    }
}

impl LeastJaccard {
    /// Returns the least Jaccard index of a match at a threshold, for n-grams of a length.
    ///
    /// An edit of one character (or token) changes at most n features, by Levenshtein distance. So if two texts of
    /// equal length have a Levenshtein similarity of 1 − x, they have a Jaccard index of at least (1 − n·x)/(1 +
    /// n·x). With Indel, 2n − 1 takes the place of n, because an insertion in one place and a deletion in
    /// another cost as much as one substitution.
    pub(crate) fn at_threshold(self, threshold: Threshold, ngram: u32) -> Result<Threshold> {
        let similarity = threshold.get();
        let least = match self {
            Self::Threshold => return Ok(threshold),
            Self::EqualSizes => similarity / (2.0 - similarity),
            Self::AfterEdits(features_of_edit) => {
                let changed = f64::from(features_of_edit(ngram)) * (1.0 - similarity);
                let remaining = (1.0 - changed) / (1.0 + changed);
                remaining.max(LOWEST_CANDIDATE_THRESHOLD).min(similarity)
            }
        };
        // Lowered by more than all rounding errors, because for example 80 of 120 must reach the bound of
        // 0.8.
        Threshold::new(least * (1.0 - 8.0 * f64::EPSILON))
    }

    /// Returns `true` if the least Jaccard index is the threshold itself.
    pub(crate) fn is_threshold(self) -> bool {
        matches!(self, Self::Threshold)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Options, files and figures name a measure, so no two share a name.
    #[test]
    fn names_are_distinct() {
        let names: BTreeSet<_> = SimilarityMeasure::ALL.map(SimilarityMeasure::name).into();
        assert_eq!(names.len(), SimilarityMeasure::ALL.len());
        let verified = SimilarityMeasure::ALL
            .into_iter()
            .filter(|&measure| measure != SimilarityMeasure::Sketch);
        let mut figures = BTreeSet::new();
        for measure in verified {
            let [of_characters, of_words] = measure.descriptor().figure_names;
            assert!(figures.insert(of_characters), "{of_characters}");
            let has_unit = measure.sequence_measure().is_some();
            assert_eq!(has_unit, figures.insert(of_words), "{of_words}");
        }
    }
}
