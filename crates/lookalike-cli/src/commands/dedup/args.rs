//! Arguments of `dedup`, and the settings of its run.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike_batch::run::{DedupOutputs, KeepOrder, RunInputs, RunSettings, parse_keep};

use crate::commands::shared::matching_runs::MatchingRunArgs;
use crate::commands::shared::outputs::{
    RejectedArgs, check_separate_outputs, check_standard_output, output_target,
};

/// Keep one document of each group of near-duplicates
///
/// Reads all inputs, finds the documents that are similar, and writes the rows that are kept, byte
/// for byte (Parquet: column for column). Of a similar pair never both are kept, and every removed
/// document has a kept one that it is similar to.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike dedup articles.jsonl.zst -o unique.jsonl.zst --removed removed.tsv
  lookalike dedup posts/ --text title,body --keep max:time --dry-run
  lookalike dedup today.csv --against yesterday.csv -o new.csv")]
pub(crate) struct DedupArgs {
    /// Reference documents: they come before all others, count as kept and are never written. Give them after
    /// IN, or before another option
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// File for the kept rows, compressed if its extension is .gz or .zst; or a directory that mirrors the
    /// inputs (DIR/); or - for standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Table of the removed documents with the evidence: id, kept, similarity, method, threshold, cluster,
    /// source, row, kept_source, kept_row (.tsv, .csv, .jsonl or .parquet). Rows count from 1 within their
    /// source
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) removed: Option<PathBuf>,

    /// Table of the documents in clusters: id, cluster, representative, similarity, kept, source, row (.tsv,
    /// .csv, .jsonl or .parquet). Documents without a near-duplicate are left out
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) clusters: Option<PathBuf>,

    /// Also find components, the sets of documents connected by chains of matching pairs: counts them and
    /// adds the column `component` to --clusters
    #[arg(long, help_heading = "Output")]
    pub(crate) components: bool,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Write all rows to OUT, with the added fields `cluster`, `duplicate_of` and `similarity`
    #[arg(long, help_heading = "Output")]
    pub(crate) annotate: bool,

    /// Write nothing; the summary shows how many documents would be kept and removed
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,

    /// Rule that selects the kept document of each group: first, last, longest (most characters), max:FIELD
    /// or min:FIELD (largest or smallest value). Strings are larger than numbers; missing, empty and NaN
    /// values come last in both. Ties go to the first document
    #[arg(
        long,
        value_name = "RULE",
        default_value = "first",
        value_parser = parse_keep,
        help_heading = "Matching"
    )]
    pub(crate) keep: KeepOrder,

    #[command(flatten)]
    pub(crate) run: MatchingRunArgs,
}

/// An output with its name in messages.
pub(super) type NamedOutput<'a> = (&'static str, &'a Path);

impl DedupArgs {
    /// Returns the outputs that are given.
    fn named_outputs(&self) -> Vec<NamedOutput<'_>> {
        let places = [
            ("kept rows", &self.output),
            ("removed", &self.removed),
            ("clusters", &self.clusters),
            ("rejected rows", &self.bad_rows.rejected),
        ];
        let given = places.into_iter();
        given
            .filter_map(|(name, place)| Some((name, place.as_deref()?)))
            .collect()
    }
}

/// Settings of a dedup run.
pub(super) struct DedupRun<'a> {
    pub(super) inputs: RunInputs,
    pub(super) settings: RunSettings,
    pub(super) outputs: DedupOutputs,
    /// Outputs named by options, with their descriptions, for the summary.
    pub(super) written: Vec<NamedOutput<'a>>,
}

impl<'a> DedupRun<'a> {
    pub(super) fn new(args: &'a DedupArgs) -> Result<Self> {
        let settings = args.run.to_settings(&args.keep)?;
        let named = args.named_outputs();
        check_outputs(args, &named)?;
        let written = if args.dry_run { Vec::new() } else { named };
        let outputs = DedupOutputs {
            kept: args.output.as_deref().map(output_target),
            annotate: args.annotate,
            removed: args.removed.as_deref().map(output_target),
            clusters: args.clusters.as_deref().map(output_target),
            components: args.components,
            rejected: args.bad_rows.target(),
        };
        let nothing = DedupOutputs {
            components: args.components,
            ..DedupOutputs::default()
        };
        let outputs = if args.dry_run { nothing } else { outputs };
        Ok(Self {
            inputs: args.run.run_inputs(&args.against),
            settings,
            outputs,
            written,
        })
    }
}

fn check_outputs(args: &DedupArgs, named: &[NamedOutput<'_>]) -> Result<()> {
    if named.is_empty() && !args.dry_run {
        bail!(
            "no output is given: give -o OUT for the kept rows, or --removed, --clusters or \
             --rejected, or --dry-run for the summary alone"
        );
    }
    if args.annotate && args.output.is_none() {
        bail!("--annotate adds fields to the rows of -o OUT, which is missing");
    }
    check_standard_output(named, args.run.running.json)?;
    check_separate_outputs(named, [&*args.run.matching.rule.recipe])
}
