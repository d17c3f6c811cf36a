//! `lookalike fingerprint`.

mod by_hand;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike::Recipe;
use lookalike::plan::{MatchMethod, SENTENCES};
use lookalike_batch::run::{self, FingerprintSettings, FingerprintSummary};
use lookalike_options::sketch_kind::SketchKind;

use super::shared::fingerprints::{NotationArg, notation_from_arg};
use super::shared::inputs::{ReadingArgs, check_has_text, read_options};
use super::shared::outputs::{RejectedArgs, TableOutputs};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::running::{RowsRun, RunningArgs, parse_limit, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::CommandOutcome;
use crate::language::messages;
use crate::output::format_count;

/// Options about inputs, which documents on the command line do not have.
const OTHER_OPTIONS: [&str; 20] = [
    "inputs",
    "output",
    "digits",
    "rejected",
    "method",
    "sentences",
    "recipe",
    "set",
    "format",
    "no_header",
    "encoding",
    "lossy",
    "document_per_file",
    "text",
    "features",
    "id",
    "id_row",
    "max_row",
    "strict",
    "threads",
];

/// Print one fingerprint or signature for every document
///
/// Writes a table with the columns id and fingerprint, in the order of the input. A fingerprint has the
/// number of bits that the recipe sets (64 by default) and is written in hexadecimal digits. A signature is a
/// list of numbers; the signature of sentences is 64 bits in hexadecimal digits. A text that is too short for
/// either gets `-`, except with the recipes of other tools, which give every text a value. Ids are copied
/// unchanged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike fingerprint articles.jsonl > fingerprints.tsv
  lookalike fingerprint posts.csv --text title,body --digits decimal -o fingerprints.parquet
  lookalike fingerprint articles.jsonl --method minhash -o signatures.jsonl.zst
  lookalike fingerprint articles.jsonl --recipe 1e0ng --digits decimal
  lookalike fingerprint tokens.jsonl --recipe datasketch-affine32 --features tokens
  lookalike fingerprint --hashes 'CSDN=100101:4 blog=101011:5'
  lookalike fingerprint --shingles 'S1=a d' --shingles 'S2=b d e' --permutation 'b e a d'")]
pub(crate) struct FingerprintArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required_unless_present_any = ["hashes", "shingles"])]
    pub(crate) inputs: Vec<PathBuf>,

    /// Show SimHash by hand instead of reading inputs: one document as features with hashes and weights,
    /// TOKEN=BITS:WEIGHT, separated by spaces; may be repeated
    ///
    /// Prints the votes, their sums and the fingerprint, with --json as one JSON object. The hashes of a
    /// document have 1 to 128 binary digits, all the same number. A bit of the fingerprint is 1 if the sum of
    /// its votes is above 0, else 0.
    #[arg(
        long,
        value_name = "DOCUMENT",
        conflicts_with_all = OTHER_OPTIONS,
        help_heading = "By hand"
    )]
    pub(crate) hashes: Vec<String>,

    /// Show MinHash by hand instead of reading inputs: one document as NAME=SHINGLE SHINGLE …; may be repeated
    ///
    /// Prints, for every --permutation, the table of shingles and documents with the minimum of every
    /// document, and for every pair of documents the share of equal minima beside the Jaccard index; with
    /// --json as one JSON object.
    #[arg(
        long,
        value_name = "DOCUMENT",
        requires = "permutation",
        conflicts_with_all = OTHER_OPTIONS,
        conflicts_with = "hashes",
        help_heading = "By hand"
    )]
    pub(crate) shingles: Vec<String>,

    /// Order of all shingles of --shingles, separated by spaces: one permutation; may be repeated
    #[arg(
        long,
        value_name = "ORDER",
        requires = "shingles",
        help_heading = "By hand"
    )]
    pub(crate) permutation: Vec<String>,

    /// Table to write (.tsv, .csv, .jsonl, .parquet or .arrow, the first three also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Notation of a fingerprint
    ///
    /// Default: hex.
    #[arg(long, value_enum, value_name = "DIGITS", help_heading = "Output")]
    pub(crate) digits: Option<NotationArg>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Kind of sketch
    ///
    /// Default: simhash; minhash with the recipes of datasketch.
    #[arg(long, value_enum, value_name = "METHOD", help_heading = "Fingerprints")]
    pub(crate) method: Option<SketchMethod>,

    /// Number of longest sentences that represent a document; for --method sentences
    ///
    /// Default: 3.
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        help_heading = "Fingerprints"
    )]
    pub(crate) sentences: Option<usize>,

    /// Recipe that turns texts into features and sets the number of bits or slots: a name (see `lookalike
    /// recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Fingerprints"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Kind of sketch that is made of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SketchMethod {
    /// A SimHash fingerprint: similar texts differ in few bits
    Simhash,
    /// A MinHash signature: the share of equal numbers estimates the Jaccard index
    Minhash,
    /// A bottom-k sketch: the smallest hashes of the features, as many as the recipe has slots
    Bottomk,
    /// A 64-bit hash of the longest sentences
    Sentences,
}

impl SketchMethod {
    /// Returns the default sketch of a recipe.
    pub(crate) fn default_for(recipe: &Recipe) -> Self {
        match SketchKind::default_method(recipe) {
            MatchMethod::MinHash => Self::Minhash,
            _ => Self::Simhash,
        }
    }
}

pub(crate) fn run_fingerprint(args: &FingerprintArgs) -> Result<CommandOutcome> {
    if !args.hashes.is_empty() {
        return by_hand::show_weighted_hashes(&args.hashes, args.running.json);
    }
    if !args.shingles.is_empty() {
        return by_hand::show_permutations(&args.shingles, &args.permutation, args.running.json);
    }
    let recipe = Some(&*args.recipe);
    let outputs = TableOutputs::new(
        "the table",
        args.output.as_deref(),
        &args.bad_rows,
        args.running.json,
        recipe,
    )?;
    let settings = fingerprint_settings(args)?;
    let run = RowsRun::with_table(&args.running, &outputs);
    let TableOutputs { table, rejected } = &outputs;
    let done = run.watch_work(|reporter| {
        run::fingerprint(&args.inputs, &settings, table, rejected.as_ref(), reporter)
    })?;
    run.finish_run(&done, done.rejected, || describe_fingerprints(&done, args))
}

fn fingerprint_settings(args: &FingerprintArgs) -> Result<FingerprintSettings> {
    let recipe = load_recipe(&args.recipe, &args.changes)?;
    let sketch = sketch_kind(args, &recipe)?;
    Ok(FingerprintSettings {
        recipe,
        sketch,
        read: read_options(&args.reading)?,
        threads: thread_count(args.running.threads),
        strict: args.running.strict,
    })
}

/// Returns the kind of sketch. Refuses options of other kinds.
fn sketch_kind(args: &FingerprintArgs, recipe: &Recipe) -> Result<SketchKind> {
    let method = args
        .method
        .unwrap_or_else(|| SketchMethod::default_for(recipe));
    let sketch = match (method, args.digits) {
        (SketchMethod::Simhash, notation) => SketchKind::SimHash(notation_from_arg(notation)),
        (method, Some(_)) => bail!(
            "--digits is for SimHash fingerprints; --method {method}, here {how}, has only one \
                 notation: leave one of them out",
            method = match method {
                SketchMethod::Bottomk => "bottomk",
                SketchMethod::Sentences => "sentences",
                _ => "minhash",
            },
            how = if args.method.is_some() {
                "given"
            } else {
                "the default of the recipe"
            }
        ),
        (SketchMethod::Minhash, None) => SketchKind::MinHash,
        (SketchMethod::Bottomk, None) => SketchKind::BottomK,
        (SketchMethod::Sentences, None) => {
            check_has_text(&args.reading, "--method sentences")?;
            SketchKind::Sentences(args.sentences.unwrap_or(SENTENCES))
        }
    };
    if let Some(sentences) = args.sentences
        && args.method != Some(SketchMethod::Sentences)
    {
        bail!("--sentences {sentences} is for --method sentences: give both or neither");
    }
    Ok(sketch)
}

/// Returns the summary for people.
fn describe_fingerprints(done: &FingerprintSummary, args: &FingerprintArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    if done.unfingerprinted > 0 {
        let without = messages::without_fingerprint(&format_count(done.unfingerprinted));
        text.add_line(&messages::texts_too_short(), without);
    }
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let size = done.size;
    let sketch = match done.method {
        "simhash" => messages::simhash_sketch(size),
        "bottomk" => messages::bottomk_sketch(size),
        "sentences" => messages::sentence_sketch(size),
        _ => messages::minhash_sketch(size),
    };
    let recipe = format_recipe(&done.recipe, &done.recipe_id);
    text.add_line(&messages::sketch(), messages::by_recipe(&sketch, &recipe));
    text.add_output(args.output.as_deref());
    text.into_text()
}
