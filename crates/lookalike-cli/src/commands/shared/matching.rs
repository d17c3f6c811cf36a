//! Options that decide whether two texts match.
//!
//! The choices are those of [`lookalike_options::match_options`]; the arguments add the help texts.

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lookalike::plan::{
    CandidateRule, EditUnit, MatchMethod, MatchPlan, MatchSettings, SimilarityMeasure,
};
use lookalike::{Recipe, Threshold};
use lookalike_options::match_options::{
    MatchOptions, OptionSpelling, check_unit, list_sequence_measures,
};

use super::inputs::{ReadingArgs, check_has_text};
use super::recipes::{RecipeChangeArgs, load_recipe};
use super::running::parse_limit;

/// Options that decide whether two texts match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchRuleArgs {
    /// Method that finds candidate pairs
    #[arg(long, value_name = "METHOD", value_parser = method_parser(), default_value = "auto")]
    pub(crate) method: MatchMethod,

    /// Minimum similarity of a match (≥), above 0 and at most 1
    ///
    /// Default: 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = parse_threshold,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: Option<Threshold>,

    /// Maximum number of bits in which the fingerprints of a candidate pair differ (≤), below the bits of the
    /// recipe's fingerprint (64 by default); for --method simhash
    ///
    /// Default: 3.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// Rule for candidate fingerprints; for --method simhash
    ///
    /// Default: distance.
    #[arg(long, value_name = "WHICH", value_parser = candidates_parser())]
    pub(crate) candidates: Option<CandidateRule>,

    /// Number of longest sentences that represent a document; for --method sentences
    ///
    /// Default: 3.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file
    ///
    /// Default: default; with --library, that of the library.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    /// Measure by which candidates are verified
    ///
    /// Candidates share features. Therefore pairs that are similar by edits, substrings or cosine are not
    /// compared if their Jaccard index is below a bound, which --explain-plan prints. By containment, every pair
    /// is found, whatever the lengths of its texts are, unless --method names minhash or another sketch.
    #[arg(long, value_name = "MEASURE", value_parser = measure_parser(), default_value = "jaccard")]
    pub(crate) verify: SimilarityMeasure,

    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit_parser(),
        help = unit_help("Unit of edits and lengths"),
        long_help = unit_long_help("Unit of edits and lengths")
    )]
    pub(crate) unit: Option<EditUnit>,
}

impl From<&MatchRuleArgs> for MatchOptions {
    fn from(rule: &MatchRuleArgs) -> Self {
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

/// Returns the parser of a method, which has a help text for each.
pub(crate) fn method_parser() -> impl TypedValueParser<Value = MatchMethod> {
    choice_parser(&MatchMethod::ALL, MatchMethod::name, |method| {
        method.descriptor().help
    })
}

/// Returns the parser of a measure.
pub(crate) fn measure_parser() -> impl TypedValueParser<Value = SimilarityMeasure> {
    choice_parser(
        &SimilarityMeasure::ALL,
        SimilarityMeasure::name,
        |measure| measure.descriptor().help,
    )
}

/// Returns the help of an option for the unit, which names the measures that have one.
pub(crate) fn unit_help(what: &str) -> String {
    format!("{what}; for --verify {}", list_sequence_measures())
}

/// Returns the long help of an option for the unit.
pub(crate) fn unit_long_help(what: &str) -> String {
    format!("{}\n\nDefault: characters.", unit_help(what))
}

/// Returns the parser of a unit of edits and lengths.
pub(crate) fn unit_parser() -> impl TypedValueParser<Value = EditUnit> {
    choice_parser(&EditUnit::ALL, EditUnit::name, |unit| match unit {
        EditUnit::Characters => "Characters of the normalised text",
        EditUnit::Words => {
            "Tokens of the recipe: words, and characters of scripts written without spaces"
        }
    })
}

/// Returns the parser of a rule for candidate fingerprints.
pub(crate) fn candidates_parser() -> impl TypedValueParser<Value = CandidateRule> {
    choice_parser(
        &CandidateRule::ALL,
        CandidateRule::name,
        |candidates| match candidates {
            CandidateRule::Distance => "Fingerprints within the distance",
            CandidateRule::Blocks => {
                "All fingerprints that share one of distance + 1 equal blocks of bits, at any distance: for \
             a check of the texts. An index must be built with --plan blocks"
            }
        },
    )
}

fn choice_parser<T: Copy + Send + Sync + 'static>(
    choices: &'static [T],
    name_of: fn(T) -> &'static str,
    help_of: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let choices = choices.iter().copied();
    let values = choices
        .clone()
        .map(move |one| PossibleValue::new(name_of(one)).help(help_of(one)));
    PossibleValuesParser::new(values).map(move |name| {
        let chosen = choices.clone().find(|&one| name_of(one) == name);
        chosen.expect("the parser accepts no other name")
    })
}

/// Returns the unit of edits. Refuses a unit that has no effect, and characters where there are none.
pub(crate) fn edit_unit(
    verify: SimilarityMeasure,
    unit: Option<EditUnit>,
    reading: &ReadingArgs,
) -> Result<EditUnit> {
    check_unit(verify, unit, OptionSpelling::Options)?;
    match unit {
        Some(EditUnit::Words) => Ok(EditUnit::Words),
        None | Some(EditUnit::Characters) => {
            if verify.sequence_measure().is_some() && reading.features.is_some() {
                bail!(
                    "--features has no characters to count: add --unit words, which counts every \
                     feature as a word"
                );
            }
            Ok(EditUnit::Characters)
        }
    }
}

/// Returns the recipe, the match options, and the plan that follows from both.
pub(crate) fn recipe_and_plan(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
) -> Result<(Recipe, MatchSettings, MatchPlan)> {
    settings_and_plan(rule, reading, None)
}

/// Returns the recipe, the match options, and the plan that follows from both. If the options name no recipe, it is
/// `library_recipe`, or the default if there is none.
pub(crate) fn settings_and_plan(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
    library_recipe: Option<Recipe>,
) -> Result<(Recipe, MatchSettings, MatchPlan)> {
    let chosen = MatchOptions::from(rule).to_settings(OptionSpelling::Options)?;
    edit_unit(rule.verify, rule.unit, reading)?;
    if rule.method.equal_key().is_some() {
        check_has_text(reading, &format!("--method {}", rule.method.name()))?;
    }
    let recipe = match (&rule.recipe, library_recipe) {
        (None, Some(library_recipe)) if rule.changes.set.is_empty() => library_recipe,
        (named, _) => load_recipe(named.as_deref().unwrap_or("default"), &rule.changes)?,
    };
    let plan = MatchPlan::new(&recipe, chosen)?;
    Ok((recipe, chosen, plan))
}

/// Parses `--threshold`.
pub(crate) fn parse_threshold(text: &str) -> Result<Threshold, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| "give a number above 0 and at most 1, such as 0.8".to_owned())?;
    Threshold::new(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::shared::running::parse_threads;

    #[test]
    fn thresholds_and_threads_have_ranges() {
        for text in ["0", "-1", "1.01", "NaN", "eighty"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
        assert!(parse_threshold("1").is_ok() && parse_threshold("0.000001").is_ok());
        assert!(parse_threads("0").is_err() && parse_threads("1025").is_err());
        assert_eq!(
            (parse_threads("1"), parse_threads("1024")),
            (Ok(1), Ok(1024))
        );
    }
}
