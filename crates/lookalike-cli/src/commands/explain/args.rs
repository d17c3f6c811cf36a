//! Arguments of `explain`.

use std::path::PathBuf;

use clap::Args;
use lookalike::plan::{EditUnit, SENTENCES, SimilarityMeasure};

use crate::commands::shared::inputs::ReadingArgs;
use crate::commands::shared::matching::{measure_parser, unit_help, unit_long_help, unit_parser};
use crate::commands::shared::recipes::{FormTableArgs, RecipeChangeArgs};
use crate::commands::shared::running::{parse_limit, parse_threads};

/// Explain why a document was removed
///
/// Looks the document up in the table that `dedup --removed` wrote and finds it and its representative (the
/// document that was kept instead) in the inputs. Then computes their similarity again and shows both texts
/// with their differences marked: [-only in the kept text-] and {+only in the removed text+}.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike explain removed.tsv 1234 articles.jsonl
  lookalike explain removed.parquet post-7 today.csv --against yesterday.csv --json")]
pub(crate) struct ExplainArgs {
    /// Table of removed documents that `dedup --removed` wrote (.tsv, .csv, .jsonl, .parquet or .arrow, also .gz and
    /// .zst)
    #[arg(value_name = "REMOVED")]
    pub(crate) removed: PathBuf,

    /// Id of the document; or SOURCE:ROW as in the table, if several documents have the id
    #[arg(value_name = "ID")]
    pub(crate) document: String,

    /// Inputs of the dedup run: files, directories, globs, URLs
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Inputs that the dedup run had as --against
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// Library that the dedup run had as --library, if it is not where the table says
    ///
    /// Texts come from it if it stores them. If it does not, give the file from which the kept document came with
    /// --against.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    pub(crate) library: Option<PathBuf>,

    /// Decisions of a person that the dedup run had as --decisions; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Matching")]
    pub(crate) decisions: Vec<PathBuf>,

    /// Recipe of the dedup run: a name (see `lookalike recipe`) or a TOML file
    ///
    /// Default: default; with --library, that of the library.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Matching")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) forms: FormTableArgs,

    /// Measure of the dedup run
    ///
    /// Default: jaccard or none, depending on which fits the record.
    #[arg(long, value_name = "MEASURE", value_parser = measure_parser(), help_heading = "Matching")]
    pub(crate) verify: Option<SimilarityMeasure>,

    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit_parser(),
        help_heading = "Matching",
        help = unit_help("Unit of edits and lengths in the dedup run"),
        long_help = unit_long_help("Unit of edits and lengths in the dedup run")
    )]
    pub(crate) unit: Option<EditUnit>,

    /// Number of longest sentences that represented a document in the dedup run; for --method sentences
    #[arg(
        long,
        value_name = "N",
        default_value_t = SENTENCES,
        value_parser = parse_limit,
        help_heading = "Matching"
    )]
    pub(crate) sentences: usize,

    /// Print the whole texts, also long passages that both have in common
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of reader threads. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,
}
