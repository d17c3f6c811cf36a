//! Conversions of match options from the arguments of a command.
//!
//! The choices are those of [`lookalike_batch::match_options`]; the arguments add the help texts.

use lookalike::plan::{self, SimilarityMeasure};
use lookalike_batch::match_options::MatchOptions;

use crate::args::{CandidatesArg, MatchRuleArgs, MeasureArg, MethodArg, UnitArg};

impl From<&MatchRuleArgs> for MatchOptions {
    fn from(rule: &MatchRuleArgs) -> Self {
        Self {
            method: Some(rule.method.into()),
            threshold: rule.threshold,
            distance: rule.distance,
            candidates: rule.candidates.map(Into::into),
            sentences: rule.sentences,
            measure: Some(rule.verify.into()),
            unit: rule.unit.map(Into::into),
        }
    }
}

impl From<MethodArg> for plan::MatchMethod {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Auto => Self::Auto,
            MethodArg::Minhash => Self::MinHash,
            MethodArg::Simhash => Self::SimHash,
            MethodArg::Exact => Self::Exact,
            MethodArg::Join => Self::Join,
            MethodArg::Sentences => Self::Sentences,
            MethodArg::Bottomk => Self::BottomK,
        }
    }
}

impl From<MeasureArg> for SimilarityMeasure {
    fn from(verify: MeasureArg) -> Self {
        match verify {
            MeasureArg::Jaccard => Self::Jaccard,
            MeasureArg::Containment => Self::Containment,
            MeasureArg::Cosine => Self::Cosine,
            MeasureArg::Levenshtein => Self::Levenshtein,
            MeasureArg::Indel => Self::Indel,
            MeasureArg::Lcs => Self::Substring,
            MeasureArg::None => Self::Sketch,
        }
    }
}

impl From<UnitArg> for plan::EditUnit {
    fn from(unit: UnitArg) -> Self {
        match unit {
            UnitArg::Characters => Self::Characters,
            UnitArg::Words => Self::Words,
        }
    }
}

impl From<CandidatesArg> for plan::CandidateRule {
    fn from(candidates: CandidatesArg) -> Self {
        match candidates {
            CandidatesArg::Distance => Self::Distance,
            CandidatesArg::Blocks => Self::Blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use lookalike_batch::match_options::{
        CANDIDATES, MEASURES, METHODS, UNITS, candidates_name, measure_name, method_name, unit_name,
    };

    use super::*;

    fn check<C: ValueEnum, T: From<C>>(all: &[T], name: fn(T) -> &'static str) {
        assert_eq!(C::value_variants().len(), all.len());
        for choice in C::value_variants() {
            let named = choice.to_possible_value().unwrap();
            assert_eq!(named.get_name(), name(choice.clone().into()));
        }
    }

    #[test]
    fn options_have_the_names_of_every_door() {
        check::<MethodArg, _>(&METHODS, method_name);
        check::<MeasureArg, _>(&MEASURES, measure_name);
        check::<UnitArg, _>(&UNITS, unit_name);
        check::<CandidatesArg, _>(&CANDIDATES, candidates_name);
    }
}
