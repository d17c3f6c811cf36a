//! Match options as a user gives them: as options of a command, fields of a request or arguments of a
//! call.
//!
//! All three have the same choices under the same names and refuse the same contradictions. Only the
//! spelling in messages differs.

use lookalike::Threshold;
use lookalike::plan::{self, Candidates, Measure, Method, Unit};

use crate::error::{Error, Result};

/// Match options; `None` means the default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The method by which candidates are found.
    pub method: Option<Method>,
    /// Smallest similarity of a match.
    pub threshold: Option<Threshold>,
    /// Largest Hamming distance between the fingerprints of candidates.
    pub distance: Option<u32>,
    /// The way to select candidates among fingerprints.
    pub candidates: Option<Candidates>,
    /// Number of longest sentences that stand for a document.
    pub sentences: Option<usize>,
    /// The measure of similarity.
    pub measure: Option<Measure>,
    /// The unit in which edits are counted.
    pub unit: Option<Unit>,
}

/// All methods.
pub const METHODS: [Method; 7] = [
    Method::Auto,
    Method::MinHash,
    Method::SimHash,
    Method::Exact,
    Method::Join,
    Method::Sentences,
    Method::BottomK,
];

/// All measures.
pub const MEASURES: [Measure; 7] = [
    Measure::Jaccard,
    Measure::Containment,
    Measure::Cosine,
    Measure::Levenshtein,
    Measure::Indel,
    Measure::Substring,
    Measure::Sketch,
];

/// All units.
pub const UNITS: [Unit; 2] = [Unit::Characters, Unit::Words];

/// All ways to select candidates among fingerprints.
pub const CANDIDATES: [Candidates; 2] = [Candidates::Distance, Candidates::Blocks];

/// Returns the name of a method in options, requests, calls and reports.
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::Auto => "auto",
        Method::MinHash => "minhash",
        Method::SimHash => "simhash",
        Method::Exact => "exact",
        Method::Join => "join",
        Method::Sentences => "sentences",
        Method::BottomK => "bottomk",
    }
}

/// Returns the name of a measure in options, requests, calls and reports.
pub fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Jaccard => "jaccard",
        Measure::Containment => "containment",
        Measure::Cosine => "cosine",
        Measure::Levenshtein => "levenshtein",
        Measure::Indel => "indel",
        Measure::Substring => "lcs",
        Measure::Sketch => "none",
    }
}

/// Returns the name of a unit in options, requests and calls.
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Characters => "characters",
        Unit::Words => "words",
    }
}

/// Returns the name of a way to select candidates in options, requests and calls.
pub fn candidates_name(candidates: Candidates) -> &'static str {
    match candidates {
        Candidates::Distance => "distance",
        Candidates::Blocks => "blocks",
    }
}

/// Returns the choice that has this name.
///
/// # Errors
/// If no choice has this name; the message lists all names.
pub fn choose<T: Copy>(
    what: &str,
    name: &str,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T> {
    let chosen = choices.iter().copied().find(|&one| name_of(one) == name);
    chosen.ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|&one| name_of(one)).collect();
        Error::usage(format!(
            "{what} is '{name}', which is not one of {}",
            names.join(", ")
        ))
    })
}

/// Returns a usage error with a formatted message from the calling function.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err(Error::usage(format!($($text)*)))
    };
}

/// The spelling of options in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// `--method simhash`
    #[default]
    Options,
    /// `"method": "simhash"`
    Fields,
    /// `method="simhash"`
    Arguments,
}

impl Spelling {
    pub(crate) fn name(self, option: &str) -> String {
        match (self, option) {
            (Self::Options, "measure") => "--verify".to_owned(),
            (Self::Options, _) => format!("--{option}"),
            (Self::Fields, _) => format!("\"{option}\""),
            (Self::Arguments, "measure") => "verify".to_owned(),
            (Self::Arguments, _) => option.to_owned(),
        }
    }

    /// Spells an option with its value, which is a name or a number.
    pub(crate) fn with(self, option: &str, value: &str) -> String {
        let name = self.name(option);
        match self {
            Self::Options => format!("{name} {value}"),
            Self::Fields if value.parse::<u64>().is_ok() => format!("{name}: {value}"),
            Self::Fields => format!("{name}: \"{value}\""),
            Self::Arguments if value.parse::<u64>().is_ok() => format!("{name}={value}"),
            Self::Arguments => format!("{name}=\"{value}\""),
        }
    }

    /// Spells the option that makes row numbers the ids.
    pub(crate) fn row_numbers(self) -> &'static str {
        match self {
            Self::Options => "--id-row",
            Self::Fields | Self::Arguments => "id=False",
        }
    }

    /// Spells a change of a recipe.
    pub(crate) fn change(self, change: &str) -> String {
        match self {
            Self::Options => format!("--set {change}"),
            Self::Fields | Self::Arguments => change.to_owned(),
        }
    }
}

impl Asked {
    /// Converts the options into settings.
    ///
    /// # Errors
    /// If an option contradicts the method or would have no effect.
    pub fn settings(&self, spelling: Spelling) -> Result<plan::Settings> {
        self.check(spelling)?;
        let defaults = plan::Settings::default();
        Ok(plan::Settings {
            method: self.method(),
            threshold: self.threshold.unwrap_or(defaults.threshold),
            distance: self.distance.unwrap_or(defaults.distance),
            measure: self.measure(),
            unit: self.unit.unwrap_or_default(),
            candidates: self.candidates.unwrap_or_default(),
            sentences: self.sentences.unwrap_or(defaults.sentences),
        })
    }

    /// Returns the options that result in these settings.
    #[must_use]
    pub fn of(settings: &plan::Settings) -> Self {
        let plan::Settings {
            method, measure, ..
        } = *settings;
        let is = |one| method == one;
        let checked = measure != Measure::Sketch;
        let decided_by_sketch = !checked && (is(Method::SimHash) || is(Method::Sentences));
        Self {
            method: Some(method),
            threshold: (!is(Method::Exact) && !decided_by_sketch).then_some(settings.threshold),
            distance: is(Method::SimHash).then_some(settings.distance),
            candidates: is(Method::SimHash).then_some(settings.candidates),
            sentences: is(Method::Sentences).then_some(settings.sentences),
            measure: Some(measure),
            unit: counts_edits(measure).then_some(settings.unit),
        }
    }

    fn method(&self) -> Method {
        self.method.unwrap_or_default()
    }

    fn measure(&self) -> Measure {
        self.measure.unwrap_or_default()
    }

    /// Refuses options that have no effect with this method.
    fn check(&self, spelling: Spelling) -> Result<()> {
        let (method, measure) = (self.method(), self.measure());
        let name = |option| spelling.name(option);
        let with = |option, value| spelling.with(option, value);
        let (simhash, unchecked) = (method == Method::SimHash, measure == Measure::Sketch);
        if self.candidates.is_some() && !simhash {
            refuse!(
                "{} is for fingerprints: add {}, or leave it out",
                name("candidates"),
                with("method", "simhash")
            );
        }
        if self.candidates == Some(Candidates::Blocks) && unchecked {
            refuse!(
                "{} selects fingerprints at any distance, and with {} all of them would match: \
                 give a measure, such as {}",
                with("candidates", "blocks"),
                with("measure", "none"),
                with("measure", "levenshtein")
            );
        }
        if let Some(sentences) = self.sentences
            && method != Method::Sentences
        {
            refuse!(
                "{} is for {}: give both or neither",
                with("sentences", &sentences.to_string()),
                with("method", "sentences")
            );
        }
        if method == Method::Sentences && unchecked && self.threshold.is_some() {
            refuse!(
                "{threshold} has no effect with {} {}, where only the sentences decide: leave \
                 {threshold} out",
                with("method", "sentences"),
                with("measure", "none"),
                threshold = name("threshold")
            );
        }
        if let Some(distance) = self.distance
            && !simhash
        {
            refuse!(
                "{} is for fingerprints: add {}, or give a similarity with {}",
                with("distance", &distance.to_string()),
                with("method", "simhash"),
                name("threshold")
            );
        }
        let useless = [
            ("threshold", self.threshold.is_some()),
            ("measure", measure != Measure::Jaccard),
        ];
        for (option, given) in useless {
            if method == Method::Exact && given {
                refuse!(
                    "{} has no effect with {}, which finds only equal texts: leave one of them out",
                    name(option),
                    with("method", "exact")
                );
            }
        }
        if simhash && unchecked && self.threshold.is_some() {
            refuse!(
                "{threshold} has no effect with {} {}, where only {} decides: leave {threshold} \
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

/// Refuses a unit if the measure does not count in units.
pub fn check_unit(measure: Measure, unit: Option<Unit>, spelling: Spelling) -> Result<()> {
    if unit.is_none() || counts_edits(measure) {
        return Ok(());
    }
    refuse!(
        "{} is for {}, indel and lcs, which count characters or words: leave it out, or use one of \
         these",
        spelling.name("unit"),
        spelling.with("measure", "levenshtein")
    );
}

fn counts_edits(measure: Measure) -> bool {
    matches!(
        measure,
        Measure::Levenshtein | Measure::Indel | Measure::Substring
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(method: Method, measure: Measure) -> Asked {
        Asked {
            method: Some(method),
            measure: Some(measure),
            ..Asked::default()
        }
    }

    #[test]
    fn what_is_told_of_settings_asks_for_them() {
        for method in METHODS {
            for measure in MEASURES {
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
            (
                Spelling::Arguments,
                "distance=3 is for fingerprints: add method=\"simhash\"",
            ),
        ] {
            let error = asked.settings(spelling).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let exact = some(Method::Exact, Measure::Cosine).settings(Spelling::Options);
        assert!(
            exact
                .unwrap_err()
                .to_string()
                .starts_with("--verify has no effect")
        );
    }
}
