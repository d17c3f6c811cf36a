//! Labelled texts, from which `eval` and `tune` measure.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike::Threshold;
use lookalike::quality::evaluate::BootstrapOptions;
use lookalike_batch::run::{
    ContradictoryLabels, GradeThresholds, GroupTexts, LabelledInputs, LabelledRows, PairFields,
    lowest_threshold,
};
use lookalike_options::match_options::OptionSpelling;

use super::inputs::{ReadingArgs, read_options};

/// Options that describe the labels.
#[derive(Debug, Args)]
#[command(next_help_heading = "Labels")]
pub(crate) struct LabelArgs {
    /// Field with the first text of a pair, or its id with --corpus
    #[arg(long, value_name = "FIELD", default_value = "a")]
    pub(crate) a: String,

    /// Field with the second text of a pair
    #[arg(long, value_name = "FIELD", default_value = "b")]
    pub(crate) b: String,

    /// Field with the label
    #[arg(long, value_name = "FIELD", default_value = "label")]
    pub(crate) label: String,

    /// Minimum grade of a similar pair; labels are then grades
    #[arg(
        long,
        value_name = "GRADE",
        requires = "negative",
        allow_negative_numbers = true
    )]
    pub(crate) positive: Option<f64>,

    /// Maximum grade of a pair that is not similar; pairs between the two grades are left out
    #[arg(
        long,
        value_name = "GRADE",
        requires = "positive",
        allow_negative_numbers = true
    )]
    pub(crate) negative: Option<f64>,

    /// Treatment of pairs that have both labels: refuse (report all of them and stop), drop (leave them out)
    /// or first (count the first label)
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "refuse",
        hide_possible_values = true
    )]
    pub(crate) contradictory: ContradictoryPolicy,

    /// Texts that a and b name by id or as SOURCE:ROW; --text and --id apply to these. Give them after
    /// LABELLED, or before another option
    #[arg(long, value_name = "IN", num_args = 1..)]
    pub(crate) corpus: Vec<PathBuf>,

    /// Read the rows as texts with the name of a group: all pairs within a group are similar, all others are
    /// not
    #[arg(
        long,
        conflicts_with_all = ["a", "b", "label", "positive", "negative", "contradictory", "corpus"]
    )]
    pub(crate) groups: bool,

    /// Field with the name of the group
    ///
    /// Default: `group`.
    #[arg(long, value_name = "FIELD")]
    pub(crate) group: Option<String>,

    /// Field of JSONL, Parquet or Arrow with a list of texts: each row is a group
    #[arg(
        long,
        value_name = "FIELD",
        conflicts_with_all = [
            "a", "b", "label", "groups", "positive", "negative", "contradictory", "corpus", "text"
        ]
    )]
    pub(crate) texts: Option<String>,
}

/// Treatment of pairs that are labelled in both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContradictoryPolicy {
    /// Report all of them and stop
    Refuse,
    /// Leave the pairs out
    Drop,
    /// Count the first label
    First,
}

/// Options of the confidence intervals.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Intervals")]
pub(crate) struct ResamplingArgs {
    /// Number of resamples for the 95 % intervals; 0 prints no intervals
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000)
    )]
    pub(crate) resamples: u32,

    /// Seed of the resamples; the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Returns the labelled inputs and the meaning of their rows.
pub(crate) fn labelled_inputs(
    paths: &[PathBuf],
    labels: &LabelArgs,
    reading: &ReadingArgs,
) -> Result<LabelledInputs> {
    if let Some(field) = &reading.features {
        bail!(
            "--features {field} is not for labelled texts, because features are computed from \
             the texts: leave it out"
        );
    }
    let in_groups = labels.groups || labels.texts.is_some();
    if let (Some(field), false) = (&labels.group, in_groups) {
        bail!("--group {field} is for groups: add --groups, or give --texts FIELD");
    }
    if labels.corpus.is_empty() && (reading.id.is_some() || reading.id_row) {
        bail!(
            "--id and --id-row are for --corpus, whose texts the pairs name by id: add --corpus, \
             or leave them out"
        );
    }
    if !in_groups && labels.corpus.is_empty() && !reading.text.is_empty() {
        bail!("--text is for groups and for --corpus: the texts of pairs are in --a and --b");
    }
    let rows = if in_groups {
        LabelledRows::Groups {
            group: labels.group.clone().unwrap_or_else(|| "group".to_owned()),
            texts: match &labels.texts {
                Some(field) => GroupTexts::InList(field.clone()),
                None => GroupTexts::InRows,
            },
        }
    } else {
        LabelledRows::Pairs(PairFields {
            a: labels.a.clone(),
            b: labels.b.clone(),
            label: labels.label.clone(),
            kind: None,
            grades: grade_thresholds(labels)?,
            corpus: labels.corpus.clone().into(),
            contradictory: match labels.contradictory {
                ContradictoryPolicy::Refuse => ContradictoryLabels::Refuse,
                ContradictoryPolicy::Drop => ContradictoryLabels::Drop,
                ContradictoryPolicy::First => ContradictoryLabels::First,
            },
            spelling: OptionSpelling::Options,
        })
    };
    Ok(LabelledInputs {
        source: paths.to_vec().into(),
        rows,
        read: read_options(reading)?,
        outputs: Vec::new(),
    })
}

fn grade_thresholds(labels: &LabelArgs) -> Result<Option<GradeThresholds>> {
    let (Some(positive), Some(negative)) = (labels.positive, labels.negative) else {
        return Ok(None);
    };
    if let Some(grade) = [positive, negative]
        .into_iter()
        .find(|threshold| !threshold.is_finite())
    {
        bail!("{grade} is not a grade for --positive or --negative: give a number");
    }
    if negative >= positive {
        bail!(
            "--negative {negative} must be below --positive {positive}: a pair cannot be similar and \
             not similar"
        );
    }
    Ok(Some(GradeThresholds { positive, negative }))
}

/// Returns the lowest threshold: as given, or the default for pairs or groups.
pub(crate) fn lowest_threshold_or_default(
    given: Option<Threshold>,
    inputs: &LabelledInputs,
) -> Result<Threshold> {
    match given {
        Some(lowest) => Ok(lowest),
        None => Ok(lowest_threshold(&inputs.rows)?),
    }
}

pub(crate) fn bootstrap_options(resampling: ResamplingArgs) -> BootstrapOptions {
    BootstrapOptions {
        resamples: resampling.resamples,
        seed: resampling.seed,
        ..BootstrapOptions::default()
    }
}
