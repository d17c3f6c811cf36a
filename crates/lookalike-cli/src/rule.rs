//! Which texts match, as it is asked for by options of a command or by fields of a request.
//!
//! Both doors have the same choices under the same names and refuse the same contradictions; only the
//! spelling in messages differs.

use anyhow::{Result, bail};
use clap::ValueEnum;
use lookalike::Threshold;
use lookalike::plan::{self, Measure};

use crate::args::{Candidates, Method, Rule, Unit, Verify};

/// What was asked for; the rest is as usual.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) method: Option<Method>,
    pub(crate) threshold: Option<Threshold>,
    pub(crate) distance: Option<u32>,
    pub(crate) candidates: Option<Candidates>,
    pub(crate) sentences: Option<usize>,
    pub(crate) measure: Option<Verify>,
    pub(crate) unit: Option<Unit>,
}

/// How messages spell what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `--method simhash`
    Options,
    /// `"method": "simhash"`
    Fields,
}

impl Spelling {
    fn name(self, option: &str) -> String {
        match (self, option) {
            (Self::Options, "measure") => "--verify".to_owned(),
            (Self::Options, _) => format!("--{option}"),
            (Self::Fields, _) => format!("\"{option}\""),
        }
    }

    /// A choice by its name, or a number.
    fn with(self, option: &str, value: &str) -> String {
        let name = self.name(option);
        match self {
            Self::Options => format!("{name} {value}"),
            Self::Fields if value.parse::<u64>().is_ok() => format!("{name}: {value}"),
            Self::Fields => format!("{name}: \"{value}\""),
        }
    }
}

impl From<&Rule> for Asked {
    fn from(rule: &Rule) -> Self {
        Self {
            method: Some(rule.method),
            threshold: rule.threshold,
            distance: rule.distance,
            candidates: rule.candidates,
            sentences: rule.sentences,
            measure: Some(rule.verify),
            unit: rule.unit,
        }
    }
}

impl Asked {
    /// The settings that were asked for.
    ///
    /// # Errors
    /// If something contradicts the method or would have no effect.
    pub(crate) fn settings(&self, spelling: Spelling) -> Result<plan::Settings> {
        self.check(spelling)?;
        let defaults = plan::Settings::default();
        Ok(plan::Settings {
            method: method_of(self.method()),
            threshold: self.threshold.unwrap_or(defaults.threshold),
            distance: self.distance.unwrap_or(defaults.distance),
            measure: measure_of(self.measure()),
            unit: match self.unit {
                Some(Unit::Words) => plan::Unit::Words,
                None | Some(Unit::Characters) => plan::Unit::Characters,
            },
            candidates: match self.candidates {
                None | Some(Candidates::Distance) => plan::Candidates::Distance,
                Some(Candidates::Blocks) => plan::Candidates::Blocks,
            },
            sentences: self.sentences.unwrap_or(defaults.sentences),
        })
    }

    /// What would have to be asked for to get these settings.
    pub(crate) fn of(settings: &plan::Settings) -> Self {
        let find = |wanted| {
            let methods = Method::value_variants().iter().copied();
            methods.into_iter().find(|&it| method_of(it) == wanted)
        };
        let measures = Verify::value_variants().iter().copied();
        let measure = measures
            .into_iter()
            .find(|&it| measure_of(it) == settings.measure);
        let method = find(settings.method).unwrap_or(Method::Auto);
        let is = |one| method == one;
        let checked = measure != Some(Verify::None);
        let decided_by_sketch = !checked && (is(Method::Simhash) || is(Method::Sentences));
        let counts_edits = measure.is_some_and(counts_edits);
        Self {
            method: Some(method),
            threshold: (!is(Method::Exact) && !decided_by_sketch).then_some(settings.threshold),
            distance: is(Method::Simhash).then_some(settings.distance),
            candidates: is(Method::Simhash).then_some(match settings.candidates {
                plan::Candidates::Distance => Candidates::Distance,
                plan::Candidates::Blocks => Candidates::Blocks,
            }),
            sentences: is(Method::Sentences).then_some(settings.sentences),
            measure,
            unit: counts_edits.then_some(match settings.unit {
                plan::Unit::Characters => Unit::Characters,
                plan::Unit::Words => Unit::Words,
            }),
        }
    }

    fn method(&self) -> Method {
        self.method.unwrap_or(Method::Auto)
    }

    fn measure(&self) -> Verify {
        self.measure.unwrap_or(Verify::Jaccard)
    }

    /// Refuses what the method has no use for.
    fn check(&self, spelling: Spelling) -> Result<()> {
        let (method, measure) = (self.method(), self.measure());
        let name = |option| spelling.name(option);
        let with = |option, value| spelling.with(option, value);
        let (simhash, unchecked) = (method == Method::Simhash, measure == Verify::None);
        if self.candidates.is_some() && !simhash {
            bail!(
                "{} is for fingerprints: add {}, or leave it out",
                name("candidates"),
                with("method", "simhash")
            );
        }
        if self.candidates == Some(Candidates::Blocks) && unchecked {
            bail!(
                "{} takes fingerprints however far they are, and {} would have all of them match: \
                 give a measure, such as {}",
                with("candidates", "blocks"),
                with("measure", "none"),
                with("measure", "levenshtein")
            );
        }
        if let Some(sentences) = self.sentences
            && method != Method::Sentences
        {
            bail!(
                "{} is for {}: give both or neither",
                with("sentences", &sentences.to_string()),
                with("method", "sentences")
            );
        }
        if method == Method::Sentences && unchecked && self.threshold.is_some() {
            bail!(
                "{threshold} has no effect with {} {}, where the sentences alone decide: leave \
                 {threshold} out",
                with("method", "sentences"),
                with("measure", "none"),
                threshold = name("threshold")
            );
        }
        if let Some(distance) = self.distance
            && !simhash
        {
            bail!(
                "{} is for fingerprints: add {}, or give a similarity with {}",
                with("distance", &distance.to_string()),
                with("method", "simhash"),
                name("threshold")
            );
        }
        let useless = [
            ("threshold", self.threshold.is_some()),
            ("measure", measure != Verify::Jaccard),
        ];
        for (option, given) in useless {
            if method == Method::Exact && given {
                bail!(
                    "{} has no effect with {}, which takes equal texts only: leave one of them out",
                    name(option),
                    with("method", "exact")
                );
            }
        }
        if simhash && unchecked && self.threshold.is_some() {
            bail!(
                "{threshold} has no effect with {} {}, where {} alone decides: leave {threshold} \
                 out",
                with("method", "simhash"),
                with("measure", "none"),
                name("distance"),
                threshold = name("threshold")
            );
        }
        check_unit(measure, self.unit, spelling)
    }
}

/// Refuses a unit where nothing is counted in it.
pub(crate) fn check_unit(measure: Verify, unit: Option<Unit>, spelling: Spelling) -> Result<()> {
    if unit.is_none() || counts_edits(measure) {
        return Ok(());
    }
    bail!(
        "{} is for {}, indel and lcs, which count characters or words: leave it out, or take one of \
         these",
        spelling.name("unit"),
        spelling.with("measure", "levenshtein")
    )
}

fn counts_edits(measure: Verify) -> bool {
    matches!(measure, Verify::Levenshtein | Verify::Indel | Verify::Lcs)
}

fn method_of(method: Method) -> plan::Method {
    match method {
        Method::Auto => plan::Method::Auto,
        Method::Minhash => plan::Method::MinHash,
        Method::Simhash => plan::Method::SimHash,
        Method::Exact => plan::Method::Exact,
        Method::Join => plan::Method::Join,
        Method::Sentences => plan::Method::Sentences,
        Method::Bottomk => plan::Method::BottomK,
    }
}

fn measure_of(measure: Verify) -> Measure {
    match measure {
        Verify::Jaccard => Measure::Jaccard,
        Verify::Containment => Measure::Containment,
        Verify::Cosine => Measure::Cosine,
        Verify::Levenshtein => Measure::Levenshtein,
        Verify::Indel => Measure::Indel,
        Verify::Lcs => Measure::Substring,
        Verify::None => Measure::Sketch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(method: Method, measure: Verify) -> Asked {
        Asked {
            method: Some(method),
            measure: Some(measure),
            ..Asked::default()
        }
    }

    #[test]
    fn what_is_told_of_settings_asks_for_them() {
        for &method in Method::value_variants() {
            for &measure in Verify::value_variants() {
                let Ok(settings) = some(method, measure).settings(Spelling::Fields) else {
                    continue;
                };
                let told = Asked::of(&settings);
                assert_eq!(told.settings(Spelling::Fields).unwrap(), settings);
            }
        }
    }

    #[test]
    fn refusals_are_spelled_as_the_question_was() {
        let asked = Asked {
            distance: Some(3),
            ..Asked::default()
        };
        for (spelling, said) in [
            (
                Spelling::Options,
                "--distance 3 is for fingerprints: add --method simhash",
            ),
            (
                Spelling::Fields,
                "\"distance\": 3 is for fingerprints: add \"method\": \"simhash\"",
            ),
        ] {
            let error = asked.settings(spelling).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let exact = some(Method::Exact, Verify::Cosine).settings(Spelling::Options);
        assert!(
            exact
                .unwrap_err()
                .to_string()
                .starts_with("--verify has no effect")
        );
    }
}
