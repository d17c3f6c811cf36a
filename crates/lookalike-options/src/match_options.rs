//! Match options as a user gives them: as options of a command, fields of a request or arguments of a
//! call.
//!
//! Commands, requests and calls have the same choices and refuse the same contradictions. The measure is named `verify` in the
//! command and in Python, and `measure` in requests.

use lookalike::Threshold;
use lookalike::plan::{self, CandidateRule, EditUnit, MatchMethod, SimilarityMeasure};

use crate::option_error::{OptionError, OptionErrorKind};

/// Match options; `None` means the default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchOptions {
    /// The method by which candidates are found.
    pub method: Option<MatchMethod>,
    /// Smallest similarity of a match.
    pub threshold: Option<Threshold>,
    /// Largest Hamming distance between the fingerprints of candidates; with [`CandidateRule::Blocks`] the number of blocks
    /// minus one.
    pub distance: Option<u32>,
    /// The way to select candidates among fingerprints.
    pub candidates: Option<CandidateRule>,
    /// Number of its longest sentences that stand for a document.
    pub sentences: Option<usize>,
    /// The measure of similarity.
    pub measure: Option<SimilarityMeasure>,
    /// The unit in which edits are counted.
    pub unit: Option<EditUnit>,
}

/// Match options whose choices are names, as calls of other languages pass them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedMatchOptions {
    /// Name of the method.
    pub method: Option<String>,
    /// Smallest similarity of a match.
    pub threshold: Option<f64>,
    /// Largest Hamming distance.
    pub distance: Option<u32>,
    /// Name of the way to select candidates among fingerprints.
    pub candidates: Option<String>,
    /// Number of longest sentences.
    pub sentences: Option<usize>,
    /// Name of the measure.
    pub verify: Option<String>,
    /// Name of the unit in which edits are counted.
    pub unit: Option<String>,
}

impl NamedMatchOptions {
    /// Returns the options after checking that their names exist.
    ///
    /// # Errors
    /// If a name is unknown, or the threshold is not a similarity.
    pub fn to_options(&self) -> Result<MatchOptions, OptionError> {
        let Self {
            method,
            candidates,
            verify,
            unit,
            ..
        } = self;
        let threshold = self.threshold.map(Threshold::new).transpose();
        let threshold = threshold
            .map_err(|error| OptionError::new(OptionErrorKind::OutOfRange, error.to_string()))?;
        Ok(MatchOptions {
            method: choose_optional("method", method, &MatchMethod::ALL, MatchMethod::name)?,
            threshold,
            distance: self.distance,
            candidates: choose_optional(
                "candidates",
                candidates,
                &CandidateRule::ALL,
                CandidateRule::name,
            )?,
            sentences: self.sentences,
            measure: choose_optional(
                "verify",
                verify,
                &SimilarityMeasure::ALL,
                SimilarityMeasure::name,
            )?,
            unit: choose_optional("unit", unit, &EditUnit::ALL, EditUnit::name)?,
        })
    }
}

fn choose_optional<T: Copy>(
    what: &str,
    name: &Option<String>,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<Option<T>, OptionError> {
    name.as_deref()
        .map(|name| choose_by_name(what, name, choices, name_of))
        .transpose()
}

/// Returns the choice that has this name.
///
/// # Errors
/// If no choice has this name; the message lists all names.
pub fn choose_by_name<T: Copy>(
    what: &str,
    name: &str,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, OptionError> {
    let chosen = choices.iter().copied().find(|&one| name_of(one) == name);
    chosen.ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|&one| name_of(one)).collect();
        let message = format!(
            "{what} is '{name}', which is not one of {}",
            names.join(", ")
        );
        OptionError::new(OptionErrorKind::UnknownName, message)
    })
}

/// Makes the calling function return a contradiction with a formatted message.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err(OptionError::new(OptionErrorKind::Contradiction, format!($($text)*)))
    };
}

/// The spelling of options in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OptionSpelling {
    /// `--method simhash`
    #[default]
    Options,
    /// `"method": "simhash"`
    Fields,
    /// `method="simhash"`
    Arguments,
}

impl OptionSpelling {
    /// Spells the name of an option.
    pub fn spell_option(self, option: &str) -> String {
        match (self, option) {
            (Self::Options, "measure") => "--verify".to_owned(),
            (Self::Options, _) => format!("--{option}"),
            (Self::Fields, _) => format!("\"{option}\""),
            (Self::Arguments, "measure") => "verify".to_owned(),
            (Self::Arguments, _) => option.replace('-', "_"),
        }
    }

    /// Spells an option with its value, which is a name or a number.
    pub fn spell_choice(self, option: &str, value: &str) -> String {
        let name = self.spell_option(option);
        match self {
            Self::Options => format!("{name} {value}"),
            Self::Fields if value.parse::<u64>().is_ok() => format!("{name}: {value}"),
            Self::Fields => format!("{name}: \"{value}\""),
            Self::Arguments if value.parse::<u64>().is_ok() => format!("{name}={value}"),
            Self::Arguments => format!("{name}=\"{value}\""),
        }
    }

    /// Spells the option that makes row numbers the ids.
    pub fn row_numbers(self) -> &'static str {
        match self {
            Self::Options => "--id-row",
            Self::Fields | Self::Arguments => "id=False",
        }
    }

    /// Spells a change of a recipe.
    pub fn spell_change(self, change: &str) -> String {
        match self {
            Self::Options => format!("--set {change}"),
            Self::Fields | Self::Arguments => change.to_owned(),
        }
    }
}

impl MatchOptions {
    /// Converts the options into settings.
    ///
    /// # Errors
    /// If an option contradicts the method or would have no effect.
    pub fn to_settings(
        &self,
        spelling: OptionSpelling,
    ) -> Result<plan::MatchSettings, OptionError> {
        self.check_options(spelling)?;
        let defaults = plan::MatchSettings::default();
        Ok(plan::MatchSettings {
            method: self.match_method(),
            threshold: self.threshold.unwrap_or(defaults.threshold),
            distance: self.distance.unwrap_or(defaults.distance),
            measure: self.similarity_measure(),
            unit: self.unit.unwrap_or_default(),
            candidates: self.candidates.unwrap_or_default(),
            sentences: self.sentences.unwrap_or(defaults.sentences),
        })
    }

    /// Returns the options that result in these settings.
    #[must_use]
    pub fn from_settings(settings: &plan::MatchSettings) -> Self {
        let plan::MatchSettings {
            method, measure, ..
        } = *settings;
        Self {
            method: Some(method),
            threshold: has_threshold(method, measure).then_some(settings.threshold),
            distance: method.takes_distance().then_some(settings.distance),
            candidates: method.takes_distance().then_some(settings.candidates),
            sentences: method.takes_sentences().then_some(settings.sentences),
            measure: Some(measure),
            unit: measure
                .sequence_measure()
                .is_some()
                .then_some(settings.unit),
        }
    }

    fn match_method(&self) -> MatchMethod {
        self.method.unwrap_or_default()
    }

    fn similarity_measure(&self) -> SimilarityMeasure {
        self.measure.unwrap_or_default()
    }

    /// Refuses options that have no effect with this method or contradict each other.
    fn check_options(&self, spelling: OptionSpelling) -> Result<(), OptionError> {
        let (method, measure) = (self.match_method(), self.similarity_measure());
        let name = |option| spelling.spell_option(option);
        let with = |option, value| spelling.spell_choice(option, value);
        let (is_simhash, is_unverified) = (
            method.takes_distance(),
            measure == SimilarityMeasure::Sketch,
        );
        if self.candidates.is_some() && !is_simhash {
            refuse!(
                "{} is for fingerprints: add {}, or leave it out",
                name("candidates"),
                with("method", "simhash")
            );
        }
        if self.candidates == Some(CandidateRule::Blocks) && is_unverified {
            refuse!(
                "{} selects fingerprints at any distance, and with {} all of them would match: \
                 give a measure, such as {}",
                with("candidates", "blocks"),
                with("measure", "none"),
                with("measure", "levenshtein")
            );
        }
        if let Some(sentences) = self.sentences
            && !method.takes_sentences()
        {
            refuse!(
                "{} is for {}: give both or neither",
                with("sentences", &sentences.to_string()),
                with("method", "sentences")
            );
        }
        if let Some(key) = method.equal_key()
            && is_unverified
            && self.threshold.is_some()
        {
            refuse!(
                "{threshold} has no effect with {} {}, where only the {} decide: leave \
                 {threshold} out",
                with("method", method.name()),
                with("measure", "none"),
                key.short_noun,
                threshold = name("threshold")
            );
        }
        if let Some(distance) = self.distance
            && !is_simhash
        {
            refuse!(
                "{} is for fingerprints: add {}, or give a similarity with {}",
                with("distance", &distance.to_string()),
                with("method", "simhash"),
                name("threshold")
            );
        }
        let ineffective = [
            ("threshold", self.threshold.is_some()),
            ("measure", measure != SimilarityMeasure::default()),
        ];
        for (option, is_set) in ineffective {
            if method.finds_equal_texts_alone() && is_set {
                refuse!(
                    "{} has no effect with {}, which finds only equal texts: leave one of them out",
                    name(option),
                    with("method", "exact")
                );
            }
        }
        if is_simhash && is_unverified && self.threshold.is_some() {
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

/// Returns `true` if a threshold has an effect. It has none where only equal texts match, and none without verification
/// where the distance of fingerprints or an equal key decides.
pub fn has_threshold(method: MatchMethod, measure: SimilarityMeasure) -> bool {
    let is_verified = measure != SimilarityMeasure::Sketch;
    !method.finds_equal_texts_alone() && (is_verified || method.finds_shared_features())
}

/// Refuses a unit if the measure does not count in units.
pub fn check_unit(
    measure: SimilarityMeasure,
    unit: Option<EditUnit>,
    spelling: OptionSpelling,
) -> Result<(), OptionError> {
    if unit.is_none() || measure.sequence_measure().is_some() {
        return Ok(());
    }
    let names = sequence_measure_names();
    let first = names.first().copied().unwrap_or_default();
    refuse!(
        "{} is for {}, which count characters or words: leave it out, or use one of these",
        spelling.spell_option("unit"),
        join_with_and(&names).replacen(first, &spelling.spell_choice("measure", first), 1)
    );
}

/// Returns the names of the measures that count characters or words, as a list in a sentence.
pub fn list_sequence_measures() -> String {
    join_with_and(&sequence_measure_names())
}

fn sequence_measure_names() -> Vec<&'static str> {
    let all = SimilarityMeasure::ALL.into_iter();
    all.filter(|measure| measure.sequence_measure().is_some())
        .map(SimilarityMeasure::name)
        .collect()
}

fn join_with_and(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(method: MatchMethod, measure: SimilarityMeasure) -> MatchOptions {
        MatchOptions {
            method: Some(method),
            measure: Some(measure),
            ..MatchOptions::default()
        }
    }

    #[test]
    fn options_from_settings_give_same_settings() {
        for method in MatchMethod::ALL {
            for measure in SimilarityMeasure::ALL {
                let Ok(settings) = some(method, measure).to_settings(OptionSpelling::Fields) else {
                    continue;
                };
                let options = MatchOptions::from_settings(&settings);
                assert_eq!(
                    options.to_settings(OptionSpelling::Fields).unwrap(),
                    settings
                );
            }
        }
    }

    #[test]
    fn refusals_use_the_spelling_of_the_caller() {
        let options = MatchOptions {
            distance: Some(3),
            ..MatchOptions::default()
        };
        for (spelling, message) in [
            (
                OptionSpelling::Options,
                "--distance 3 is for fingerprints: add --method simhash",
            ),
            (
                OptionSpelling::Fields,
                "\"distance\": 3 is for fingerprints: add \"method\": \"simhash\"",
            ),
            (
                OptionSpelling::Arguments,
                "distance=3 is for fingerprints: add method=\"simhash\"",
            ),
        ] {
            let error = options.to_settings(spelling).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let exact = some(MatchMethod::Exact, SimilarityMeasure::Cosine)
            .to_settings(OptionSpelling::Options);
        assert!(
            exact
                .unwrap_err()
                .to_string()
                .starts_with("--verify has no effect")
        );
    }
}
