//! Arguments of `index`, and the settings of an index.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use lookalike_batch::index::{BuildSettings, IndexReadOptions};
use lookalike_options::units::parse_size;

use super::memory::BuildMemoryArgs;
use super::plan::IndexPlanArgs;
use crate::CommandOutcome;
use crate::commands::shared::fingerprints::{
    BareFingerprintArgs, index_read_options, reads_bare_fingerprints,
};
use crate::commands::shared::inputs::ReadingArgs;
use crate::commands::shared::outputs::{RejectedArgs, check_standard_output};
use crate::commands::shared::recipes::{RecipeChangeArgs, load_recipe, refuse_changes};
use crate::commands::shared::running::{ReportingArgs, RunningArgs, SummaryArgs};

/// Build and maintain an index of fingerprints for searching
///
/// An index is a directory. It holds fingerprints, in which `lookalike search` finds every one within a
/// Hamming distance, and features and signatures, by which it finds every document that is similar enough. An
/// index stores its recipe and refuses fingerprints of another one. A change is complete and on disk, or has
/// not happened. One process at a time changes an index; any number may search it meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index build news.lib articles.jsonl --texts
  lookalike index add news.lib today.jsonl
  lookalike search news.lib incoming.jsonl > matches.tsv")]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    pub(crate) command: IndexCommand,
}

/// Commands on an index.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    Build(Box<IndexBuildArgs>),
    Add(Box<IndexAddArgs>),
    Remove(IndexRemoveArgs),
    Compact(IndexCompactArgs),
    Info(IndexInfoArgs),
    Verify(IndexVerifyArgs),
    Counts(IndexCountsArgs),
    Plan(IndexPlanArgs),
}

/// Build an index of documents or fingerprints
///
/// Documents get fingerprints under a recipe; bare fingerprints are stored as they are. A document that is
/// too short for a fingerprint matches only equal texts; an empty document is left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index build news.lib articles.jsonl --texts
  lookalike index build pages.lib fingerprints.tsv --fingerprints --distance 3
  lookalike index build wide.lib codes.parquet --fingerprint code --bits 128 --distance 7")]
pub(crate) struct IndexBuildArgs {
    /// Directory to create
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Recipe that turns texts into features and fingerprints: a name (see `lookalike recipe`) or a TOML
    /// file. For bare fingerprints, the recipe that made them
    ///
    /// Default for documents: default.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Index")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    /// Largest distance that can be searched (≤), in bits, at most 16
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Index")]
    pub(crate) distance: u32,

    /// Bits of a bare fingerprint, 8 to 128; for documents, the recipe sets them
    ///
    /// Default: 64.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(8..=128),
        help_heading = "Index"
    )]
    pub(crate) bits: Option<u32>,

    /// Plan for the search: auto, blocks (distance + 1 equal blocks), 4x16, permuted (sorted tables for
    /// choices of blocks), neighbourhoods (all near values are stored too, for at most 10,000 fingerprints) or
    /// scan; or a plan as "index plan" shows it, such as "22,21,21; 1,0,0". All plans find the same
    /// fingerprints
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Index"
    )]
    pub(crate) plan: String,

    /// Maximum size of the finished index, in memory and on disk: bytes, or with the unit K, M, G (of 1000) or
    /// Ki, Mi, Gi (of 1024)
    ///
    /// Default: three times the size of the fingerprints, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        help_heading = "Index"
    )]
    pub(crate) index_memory: Option<u64>,

    /// Also store the texts, compressed, so that a search can compare their characters or words
    #[arg(long, help_heading = "Index")]
    pub(crate) texts: bool,

    /// Store only fingerprints: the index is smaller and answers with distances only
    ///
    /// Without this option, an index of documents also stores their features and MinHash signatures, from
    /// which `search --threshold` finds all matches at any threshold from 0.2.
    #[arg(long, help_heading = "Index")]
    pub(crate) distance_only: bool,

    /// Replace an existing index
    #[arg(long, help_heading = "Index")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) rows: IndexRowsArgs,
}

/// Add documents or fingerprints to an index
///
/// The recipe is that of the index. Rows with an id that the index already has are added, counted and reported;
/// --strict refuses them, and then nothing is added.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index add news.lib today.jsonl")]
pub(crate) struct IndexAddArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    #[command(flatten)]
    pub(crate) rows: IndexRowsArgs,
}

/// Rows that become entries of an index.
#[derive(Debug, Args)]
pub(crate) struct IndexRowsArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) bare: BareFingerprintArgs,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) memory: BuildMemoryArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

impl IndexRowsArgs {
    /// Returns how the rows are read. Checks the outputs first.
    pub(super) fn read_options(&self) -> Result<IndexReadOptions> {
        let rejected = self.bad_rows.rejected.as_deref();
        let named = rejected.map(|place| ("rejected rows", place));
        check_standard_output(named.as_slice(), self.running.json)?;
        let reading = index_read_options(&self.inputs, &self.bare, &self.reading, &self.running)?;
        Ok(IndexReadOptions {
            memory: self.memory.limit(&reading.content),
            ..reading
        })
    }

    /// Prints the plan of the memory, if it was asked for.
    pub(super) fn explain_plan(
        &self,
        reading: &IndexReadOptions,
        is_addition: bool,
    ) -> Result<Option<CommandOutcome>> {
        self.memory
            .explain_plan(&self.inputs, reading, is_addition, &self.running)
    }
}

/// Remove documents or fingerprints from an index
///
/// Removed documents are not found any more. Their space on disk is freed when more than half of a segment is
/// removed, when the segment is merged with added documents, or by `lookalike index compact`. Ids that are not in
/// the index are reported, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index remove news.lib a-17 a-18
  lookalike index remove news.lib --ids gone.txt")]
pub(crate) struct IndexRemoveArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Ids to remove; row numbers if the rows are numbered
    #[arg(value_name = "ID", required_unless_present = "ids")]
    pub(crate) id: Vec<String>,

    /// File with one id per line, or - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) ids: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reporting: ReportingArgs,
}

/// Write an index anew as one segment, without the removed documents
///
/// What was removed leaves the disk, and searches read one segment. The old files stay until the new ones are complete,
/// so the disk needs room for both.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index compact news.lib")]
pub(crate) struct IndexCompactArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    #[command(flatten)]
    pub(crate) reporting: ReportingArgs,
}

/// Show the contents and settings of an index
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index info news.lib --json")]
pub(crate) struct IndexInfoArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Check an index: all files against their checksums, and fingerprints against stored texts
///
/// Reads every file. Where texts are stored, computes the fingerprints of about 1,000 of them again and
/// compares them.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index verify news.lib")]
pub(crate) struct IndexVerifyArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    #[command(flatten)]
    pub(crate) reporting: ReportingArgs,
}

/// Write how many documents each row of a library stands for
///
/// A document that `lookalike dedup --library` has kept stands for itself and for all documents that this run and later
/// ones removed because of it. So outputs that were written before get counts of what came after them. The table has the
/// columns id, copies and, if runs had --sources, sources: a JSON list, the most frequent first. Counts of rows that were
/// added by an earlier version or by `index add` begin with the first run after that.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index counts seen.lib -o counts.tsv")]
pub(crate) struct IndexCountsArgs {
    /// Library directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// File for the table (.tsv, .csv, .jsonl, .parquet or .arrow); - for standard output
    #[arg(
        short,
        long,
        value_name = "TABLE",
        default_value = "-",
        help_heading = "Output"
    )]
    pub(crate) output: PathBuf,

    /// Largest number of sources of a row
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "Output"
    )]
    pub(crate) most_sources: u32,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Returns the settings of a new index.
pub(super) fn build_settings(args: &IndexBuildArgs) -> Result<BuildSettings> {
    let bare = reads_bare_fingerprints(&args.rows.bare);
    let recipe = match (&args.recipe, bare) {
        (Some(name), _) => Some(load_recipe(name, &args.changes)?),
        (None, true) => {
            refuse_changes(&args.changes)?;
            None
        }
        (None, false) => Some(load_recipe("default", &args.changes)?),
    };
    if let (Some(recipe), Some(bits)) = (&recipe, args.bits)
        && recipe.simhash.bits != bits
    {
        bail!(
            "--bits {bits} contradicts the recipe {}, whose fingerprints have {} bits: give a \
             recipe with simhash.bits = {bits} (`lookalike recipe {} > mine.toml`)",
            recipe.name,
            recipe.simhash.bits,
            recipe.name
        );
    }
    let bits = recipe.as_ref().map(|recipe| recipe.simhash.bits);
    Ok(BuildSettings {
        bits: bits.or(args.bits).unwrap_or(64),
        recipe,
        distance: args.distance,
        plan: args.plan.clone(),
        index_memory: args.index_memory,
        texts: args.texts,
        distance_only: args.distance_only,
        passages: None,
        replace: args.force,
    })
}
