//! Conversions of match options from the arguments of a command.
//!
//! The choices are those of [`lookalike_batch::rule`]; the arguments add the help texts.

use lookalike::plan::{self, Measure};
use lookalike_batch::rule::Asked;

use crate::args::{Candidates, Method, Rule, Unit, Verify};

impl From<&Rule> for Asked {
    fn from(rule: &Rule) -> Self {
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

impl From<Method> for plan::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Auto => Self::Auto,
            Method::Minhash => Self::MinHash,
            Method::Simhash => Self::SimHash,
            Method::Exact => Self::Exact,
            Method::Join => Self::Join,
            Method::Sentences => Self::Sentences,
            Method::Bottomk => Self::BottomK,
        }
    }
}

impl From<Verify> for Measure {
    fn from(verify: Verify) -> Self {
        match verify {
            Verify::Jaccard => Self::Jaccard,
            Verify::Containment => Self::Containment,
            Verify::Cosine => Self::Cosine,
            Verify::Levenshtein => Self::Levenshtein,
            Verify::Indel => Self::Indel,
            Verify::Lcs => Self::Substring,
            Verify::None => Self::Sketch,
        }
    }
}

impl From<Unit> for plan::Unit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Characters => Self::Characters,
            Unit::Words => Self::Words,
        }
    }
}

impl From<Candidates> for plan::Candidates {
    fn from(candidates: Candidates) -> Self {
        match candidates {
            Candidates::Distance => Self::Distance,
            Candidates::Blocks => Self::Blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use lookalike_batch::rule::{
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
        check::<Method, _>(&METHODS, method_name);
        check::<Verify, _>(&MEASURES, measure_name);
        check::<Unit, _>(&UNITS, unit_name);
        check::<Candidates, _>(&CANDIDATES, candidates_name);
    }
}
