//! `lookalike search`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Threshold;
use lookalike::plan::{CandidateRule, EditUnit, MatchSettings, SimilarityMeasure};
use lookalike_batch::index::{
    self, ListedMatches, RowContent, SearchCandidates, SearchSettings, SearchSummary, TextCheck,
};
use lookalike_options::match_options::list_sequence_measures;

use super::shared::fingerprints::{BareFingerprintArgs, field_option, index_read_options};
use super::shared::inputs::ReadingArgs;
use super::shared::matching::{
    candidates_parser, edit_unit, measure_parser, parse_threshold, unit_help, unit_long_help,
    unit_parser,
};
use super::shared::outputs::{RejectedArgs, TableOutputs};
use super::shared::recipes::{RecipeChangeArgs, load_recipe, refuse_changes};
use super::shared::running::{RowsRun, RunningArgs, parse_limit};
use super::shared::summary::{SummaryText, describe_measure, format_optional_recipe};
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{format_count, format_duration};

/// Number of queries from which the time per query is meaningful.
const MANY_QUERIES: u64 = 10_000;

/// Help of `--verify`.
const VERIFY_HELP: &str =
    "Measure: finds all documents that are similar enough by it, as `pairs` finds them";

/// Find all entries of an index that are near a document or fingerprint
///
/// Writes a table with the columns query, match and distance, ordered by query, then by distance, then by row
/// of the index. Queries are documents, or bare fingerprints with --fingerprints. With --verify or
/// --threshold, the matches are those that `pairs` finds at that threshold, and the last column is
/// similarity, the highest first. A document that is too short for a fingerprint matches only equal texts, at
/// distance 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike search news.lib incoming.jsonl > matches.tsv
  lookalike search news.lib incoming.jsonl --threshold 0.8 --nearest 1 -o matches.parquet
  lookalike search pages.lib - --fingerprints < fingerprints.tsv")]
pub(crate) struct SearchArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Queries: files, directories, globs, URLs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table of matches (.tsv, .csv, .jsonl, .parquet or .arrow, the first three also .gz and .zst); without it, TSV
    /// on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) matching: SearchMatchArgs,

    #[command(flatten)]
    pub(crate) bare: BareFingerprintArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Options that decide which entries match, and how many of them are listed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct SearchMatchArgs {
    /// Maximum number of differing bits (≤), at most that of the index
    ///
    /// Default: the distance that the index was built for. With --threshold or --verify, only documents
    /// within this distance are compared; without --distance, all matches are found.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// Number of nearest matches listed for each query; ties go to the earlier rows
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) nearest: Option<usize>,

    /// List only the match that was added first, for each query
    #[arg(long, conflicts_with_all = ["nearest", "limit"])]
    pub(crate) first: bool,

    /// Maximum number of matches listed for each query, the nearest first. Adds a fourth column, truncated,
    /// which is true for a query with more matches; the summary counts these queries
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        conflicts_with = "nearest"
    )]
    pub(crate) limit: Option<usize>,

    /// Fingerprints that are compared with a query
    #[arg(
        long,
        value_name = "WHICH",
        value_parser = candidates_parser(),
        default_value = "distance"
    )]
    pub(crate) candidates: CandidateRule,

    #[arg(
        long,
        value_name = "MEASURE",
        value_parser = measure_parser(),
        help = VERIFY_HELP,
        long_help = format!(
            "{VERIFY_HELP}\n\nDefault: distances; jaccard with --threshold. For {} the index must store the texts.",
            list_sequence_measures()
        )
    )]
    pub(crate) verify: Option<SimilarityMeasure>,

    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit_parser(),
        help = unit_help("Unit of edits and lengths"),
        long_help = unit_long_help("Unit of edits and lengths")
    )]
    pub(crate) unit: Option<EditUnit>,

    /// Minimum similarity of a match (≥), above 0 and at most 1
    ///
    /// Default with --verify: 0.75.
    #[arg(long, value_name = "T", value_parser = parse_threshold)]
    pub(crate) threshold: Option<Threshold>,

    /// Recipe of the queries: a name (see `lookalike recipe`) or a TOML file; a recipe other than that of the
    /// index is refused
    ///
    /// Default: the recipe of the index.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,
}

pub(crate) fn run_search(args: &SearchArgs) -> Result<CommandOutcome> {
    let recipe = args.matching.recipe.as_deref();
    let outputs = TableOutputs::new(
        "the table",
        args.output.as_deref(),
        &args.bad_rows,
        args.running.json,
        recipe,
    )?;
    let settings = search_settings(&args.matching, &args.reading)?;
    let reading = index_read_options(&args.inputs, &args.bare, &args.reading, &args.running)?;
    let run = RowsRun::with_table(&args.running, &outputs);
    let done = run.watch_work(|reporter| {
        index::search_index(
            &args.library,
            &args.inputs,
            &settings,
            &reading,
            &outputs.table,
            outputs.rejected.as_ref(),
            reporter,
        )
    })?;
    run.finish_run(&done, done.rejected, || {
        describe_search(&done, args, &reading.content)
    })
}

fn search_settings(args: &SearchMatchArgs, reading: &ReadingArgs) -> Result<SearchSettings> {
    let check = text_check(args, reading)?;
    if let (Some(distance), CandidateRule::Blocks) = (args.distance, args.candidates) {
        bail!(
            "--distance {distance} has no effect with --candidates blocks, which selects all \
             fingerprints that share a block: leave one of them out"
        );
    }
    let recipe = match &args.recipe {
        Some(name) => Some(load_recipe(name, &args.changes)?),
        None => {
            refuse_changes(&args.changes)?;
            None
        }
    };
    // If a distance is given, it chooses the candidates, as with `pairs --method simhash`.
    let compares = check.as_ref().is_some_and(TextCheck::compares_texts);
    let by_plan = compares && args.distance.is_none();
    Ok(SearchSettings {
        distance: args.distance,
        which: match (args.nearest, args.first) {
            (Some(count), _) => ListedMatches::Nearest(count),
            (None, true) => ListedMatches::First,
            (None, false) => ListedMatches::All,
        },
        limit: args.limit,
        candidates: match args.candidates {
            CandidateRule::Distance if by_plan => SearchCandidates::Plan,
            CandidateRule::Distance => SearchCandidates::Distance,
            CandidateRule::Blocks => SearchCandidates::Blocks,
        },
        check,
        recipe,
    })
}

/// Returns how the texts of candidates are compared, if they are.
fn text_check(args: &SearchMatchArgs, reading: &ReadingArgs) -> Result<Option<TextCheck>> {
    let default = MatchSettings::default().threshold;
    let threshold = args.threshold.unwrap_or(default);
    let measure = args.verify.unwrap_or_default();
    let unit = edit_unit(measure, args.unit, reading)?;
    if args.verify.is_none() && args.threshold.is_none() {
        return Ok(None);
    }
    if measure == SimilarityMeasure::Sketch && args.threshold.is_some() {
        bail!(
            "--threshold has no effect with --verify none, where --distance alone decides: leave \
             --threshold out"
        );
    }
    Ok(Some(TextCheck {
        measure,
        unit,
        threshold,
    }))
}

/// Returns the summary for people.
fn describe_search(done: &SearchSummary, args: &SearchArgs, content: &RowContent) -> String {
    let mut text = SummaryText::default();
    text.add_text(describe_speed(done));
    let queries = NounCount(done.queries, CountedNoun::Query);
    let (matches, matched) = (format_count(done.matches), format_count(done.matched));
    let found = messages::matches_of(&matches, &matched, queries);
    text.add_line(&messages::matches(), found);
    if done.truncated > 0 {
        let queries = NounCount(done.truncated, CountedNoun::Query);
        let listed = args.matching.limit.unwrap_or_default();
        text.add_line(
            &messages::truncated(),
            messages::more_than_listed(queries, listed),
        );
    }
    text.add_unfingerprinted(done.unfingerprinted);
    text.add_empty_rows(done.empty, messages::empty_match_nothing);
    text.add_rejected(done.rejected, done.queries, field_option(content));
    let recipe = format_optional_recipe(done.recipe.as_deref(), done.recipe_id.as_deref());
    let candidates = translate_phrase(&done.candidates);
    let by = match (done.measure, done.threshold) {
        (Some(measure), Some(threshold)) => {
            messages::measured_candidates(describe_measure(measure).trim(), threshold, &candidates)
        }
        _ => candidates.to_string(),
    };
    text.add_line(&messages::matched_by(), messages::by_recipe(&by, &recipe));
    text.add_output(args.output.as_deref());
    text.into_text()
}

fn describe_speed(done: &SearchSummary) -> String {
    let mut text = messages::queried_in(
        NounCount(done.queries, CountedNoun::Query),
        &format_duration(done.seconds),
        NounCount(done.fingerprints, CountedNoun::Row),
    );
    if done.queries >= MANY_QUERIES {
        let each = (done.seconds - done.opening_seconds) * 1e6 / done.queries as f64;
        let opening = format_duration(done.opening_seconds);
        text.push_str(&messages::time_of_queries(
            &opening,
            format_args!("{each:.2}"),
        ));
    }
    text
}
