//! Options that decide whether two texts match.
//!
//! The choices are those of [`lookalike_batch::match_options`]; the arguments add the help texts.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike::plan::{self, MatchPlan, SimilarityMeasure};
use lookalike::verify::SequenceMeasure;
use lookalike::{Recipe, Threshold};
use lookalike_batch::match_options::{MatchOptions, OptionSpelling, check_unit};

use super::inputs::{ReadingArgs, check_has_text};
use super::recipes::{RecipeChangeArgs, load_recipe};
use super::running::parse_limit;

/// Options that decide whether two texts match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchRuleArgs {
    /// Method that finds candidate pairs
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = MethodArg::Auto)]
    pub(crate) method: MethodArg,

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
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) candidates: Option<CandidatesArg>,

    /// Number of longest sentences that represent a document; for --method sentences
    ///
    /// Default: 3.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    /// Measure of similarity by which candidates are verified
    ///
    /// Candidates share features. Therefore pairs that are similar by edits, substrings, cosine or
    /// containment are not compared if their Jaccard index is below a bound, which --explain-plan prints.
    #[arg(long, value_enum, value_name = "MEASURE", default_value_t = MeasureArg::Jaccard)]
    pub(crate) verify: MeasureArg,

    /// Unit of edits and lengths; for --verify levenshtein, indel and lcs
    ///
    /// Default: characters.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) unit: Option<UnitArg>,
}

/// Method that finds candidate pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// Exact join for short documents, MinHash for all others
    Auto,
    /// MinHash bands for all documents
    Minhash,
    /// SimHash fingerprints that differ in few bits
    Simhash,
    /// Equality of the texts after normalisation
    Exact,
    /// Exact join of all documents, on all threads: finds every pair that shares enough features for the
    /// measure (--explain-plan prints how many); slow for long texts
    Join,
    /// Equality of the longest sentences
    Sentences,
    /// Bottom-k sketches that share one of the smallest feature hashes
    Bottomk,
}

/// Measure of similarity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasureArg {
    /// Shared features ÷ all features of both
    Jaccard,
    /// Shared features ÷ features of the smaller document
    Containment,
    /// Cosine of the features, weighted by frequency or by given weights
    Cosine,
    /// 1 − (insertions, deletions and substitutions) ÷ length of the longer text
    Levenshtein,
    /// 1 − (insertions and deletions) ÷ length of both texts
    Indel,
    /// Twice the length of the longest common substring ÷ length of both texts
    Lcs,
    /// No verification: similarity is the share of equal slots (MinHash), 1 − distance/bits (SimHash), the
    /// estimate of the smallest hashes (bottomk), or 1 for the same longest sentences
    None,
}

/// Unit of edits and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitArg {
    /// Characters of the normalised text
    Characters,
    /// Tokens of the recipe: words, and characters of scripts written without spaces
    Words,
}

/// Rule for candidate fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CandidatesArg {
    /// Fingerprints within the distance
    Distance,
    /// All fingerprints that share one of distance + 1 equal blocks of bits, at any distance: for a check of
    /// the texts. An index must be built with --plan blocks
    Blocks,
}

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

/// Returns the similarity of sequences that an option names, if it names one.
pub(crate) fn of_sequences(verify: MeasureArg) -> Option<SequenceMeasure> {
    match verify {
        MeasureArg::Levenshtein => Some(SequenceMeasure::Levenshtein),
        MeasureArg::Indel => Some(SequenceMeasure::Indel),
        MeasureArg::Lcs => Some(SequenceMeasure::Substring),
        MeasureArg::Jaccard | MeasureArg::Containment | MeasureArg::Cosine | MeasureArg::None => {
            None
        }
    }
}

/// Returns the unit of edits. Refuses a unit that has no effect, and characters where there are none.
pub(crate) fn edit_unit(
    verify: MeasureArg,
    unit: Option<UnitArg>,
    reading: &ReadingArgs,
) -> Result<plan::EditUnit> {
    check_unit(verify.into(), unit.map(Into::into), OptionSpelling::Options)?;
    match unit {
        Some(UnitArg::Words) => Ok(plan::EditUnit::Words),
        None | Some(UnitArg::Characters) => {
            if of_sequences(verify).is_some() && reading.features.is_some() {
                bail!(
                    "--features has no characters to count: add --unit words, which counts every \
                     feature as a word"
                );
            }
            Ok(plan::EditUnit::Characters)
        }
    }
}

/// Returns the recipe, the match options, and the plan that follows from both.
pub(crate) fn recipe_and_plan(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
) -> Result<(Recipe, plan::MatchSettings, MatchPlan)> {
    let (recipe, chosen) = chosen_options(rule, reading)?;
    let plan = MatchPlan::new(&recipe, chosen)?;
    Ok((recipe, chosen, plan))
}

/// Returns the recipe and the match options.
fn chosen_options(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
) -> Result<(Recipe, plan::MatchSettings)> {
    let chosen = MatchOptions::from(rule).to_settings(OptionSpelling::Options)?;
    edit_unit(rule.verify, rule.unit, reading)?;
    if rule.method == MethodArg::Sentences {
        check_has_text(reading, "--method sentences")?;
    }
    Ok((load_recipe(&rule.recipe, &rule.changes)?, chosen))
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
    use clap::ValueEnum;
    use lookalike_batch::match_options::{
        CANDIDATES, MEASURES, METHODS, UNITS, candidates_name, measure_name, method_name, unit_name,
    };

    use super::*;
    use crate::commands::shared::running::parse_threads;

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
