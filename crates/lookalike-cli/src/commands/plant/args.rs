//! Arguments of `plant`, and the settings of its run.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Threshold;
use lookalike::plan::MatchSettings;
use lookalike::quality::plant::PlantedEdit;
use lookalike_batch::run::{
    ItemFields, PlantContaminationInputs, PlantContaminationOutputs, PlantContaminationSettings,
    PlantOutputs, PlantSettings,
};

use crate::commands::shared::inputs::{ReadingArgs, check_has_text, read_options};
use crate::commands::shared::matching::parse_threshold;
use crate::commands::shared::outputs::{
    RejectedArgs, check_separate_outputs, is_standard, output_target,
};
use crate::commands::shared::recipes::{RecipeChangeArgs, load_recipe};
use crate::commands::shared::running::{RunningArgs, parse_limit, thread_count};

/// Make a labelled corpus from your own documents by planting edits
///
/// Writes all documents, edited copies of some of them, and a table of labelled pairs. The pairs are
/// copies with their originals; near-duplicates that were in the inputs already, found by an exact join;
/// and, as negatives, all pairs just below the threshold and a sample of less similar ones, over the
/// whole range of similarity. Prints the similarity that each kind and strength of edit leaves. The same
/// inputs and seed give the same files for any number of threads.
///
/// With --contamination, plants items of benchmarks instead, in every form that `decontaminate` is to find, and texts that
/// only look like them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv
  lookalike plant posts/ --text title,body -o planted.parquet --labels labels.csv --documents 200
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv --edits typos,delete-words:5%
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv --forms 100
  lookalike plant articles.jsonl --contamination evals/ -o planted.jsonl --labels truth.tsv \\
    --indexed items.jsonl
  lookalike decontaminate planted.jsonl --benchmarks items.jsonl --findings findings.tsv
  lookalike eval findings.tsv --contamination truth.tsv")]
pub(crate) struct PlantArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Planted corpus: all documents and the edited copies, as id and text (.jsonl, .csv, .parquet or .arrow). The id
    /// of a copy is the id of its document, more # signs than any id has in a row, and a number
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Labelled pairs: a, b, label (1 or 0), kind, strength, edits, similarity (.tsv, .csv, .jsonl,
    /// .parquet or .arrow). With --contamination, the planted documents: document, host, benchmark, item, form, label (1
    /// for an item, 0 for a decoy), words (of the question)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) labels: PathBuf,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) contamination: ContaminationArgs,

    #[command(flatten)]
    pub(crate) planting: PlantingArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Options for planting items of benchmarks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Contamination")]
pub(crate) struct ContaminationArgs {
    /// Benchmarks of which items are planted: files, directories and globs, read as `decontaminate` reads them. Give them
    /// after IN, or before another option
    ///
    /// Half of the items, chosen by seed and question, are indexed: each sampled document gets one of them and is written
    /// once for each form: verbatim, wrapped, short-lines, table-cells, other-case, other-punctuation, latex, markdown, html,
    /// other-script, other-choices, replaced-words. Decoys are shared-phrases, same-topic, same-formulae and same-beginning,
    /// made from the item, and same-series, an item of the other half. Of long documents the first 4000 characters are used.
    #[arg(
        long,
        value_name = "DIR|FILE",
        num_args = 1..,
        requires = "indexed",
        conflicts_with_all = [
            "copies", "combined", "forms", "filled", "edits", "threshold", "near", "pairs", "recipe", "set", "features"
        ]
    )]
    pub(crate) contamination: Vec<PathBuf>,

    /// Indexed items as one benchmark (.jsonl): what `decontaminate --benchmarks` is to search for; for --contamination
    #[arg(long, value_name = "FILE", requires = "contamination")]
    pub(crate) indexed: Option<PathBuf>,

    /// Fields of the benchmarks, as for `decontaminate --fields`; for --contamination
    #[arg(long, value_name = "NAME=FIELD,…", requires = "contamination")]
    pub(crate) fields: Option<ItemFields>,
}

/// Default of the number of filled forms of a document.
const FILLED_FORMS: usize = 12;

/// Options for the planted edits and the labelled pairs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planting")]
pub(crate) struct PlantingArgs {
    /// Number of documents that are sampled and edited; all of them if there are fewer
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = parse_limit
    )]
    pub(crate) documents: usize,

    /// Number of copies with one edit for each sampled document; fewer if fewer edits apply
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) copies: usize,

    /// Number of copies with two edits for each sampled document, and the number with three
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) combined: usize,

    /// Number of sampled documents of which filled forms are made, too: texts with other values at one to six places,
    /// labelled as different, and repeats of some of them, labelled as the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) forms: usize,

    /// Number of filled forms of each of these documents; one in four is repeated, under a header or before a footer; for
    /// --forms
    ///
    /// Default: 12.
    #[arg(long, value_name = "N", value_parser = parse_limit, requires = "forms")]
    pub(crate) filled: Option<usize>,

    /// Edits to choose from: kinds (typos) or kinds with a strength (typos:2%), separated by commas
    ///
    /// Default: all, which are truncate-head, truncate-tail (10, 30 and 50 %), boilerplate-before,
    /// boilerplate-after, shuffle-paragraphs, shuffle-sentences, delete-sentences, insert-sentences,
    /// replace-sentences, delete-words, insert-words, replace-words (1, 5, 10 and 20 %), traditional,
    /// simplified, full-width, half-width, punctuation, spacing, zero-width, nfc, nfd, upper-case,
    /// lower-case, typos (0.5, 1, 2 and 5 %), html, markdown, changed-number.
    #[arg(
        long,
        value_name = "EDIT",
        value_delimiter = ',',
        value_parser = parse_edits
    )]
    pub(crate) edits: Vec<Vec<PlantedEdit>>,

    /// Seed of the random choice of documents, edits and pairs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Similarity from which (≥) documents of the inputs are labelled as near-duplicates of one another
    ///
    /// Default: 0.75.
    #[arg(long, value_name = "T", value_parser = parse_threshold)]
    pub(crate) threshold: Option<Threshold>,

    /// Similarity from which (≥) all pairs below the threshold are labelled as negatives; of less similar
    /// ones, a sample over the whole range
    ///
    /// The sample has as many pairs of every twentieth of similarity as there are, about five for every
    /// drawn document together: siblings, which share a topic or a template, and unrelated ones. Pairs of
    /// which one text is contained in the other have no label, because it may be a copy of a part.
    /// Default: three quarters of the threshold.
    #[arg(long, value_name = "T", value_parser = parse_threshold)]
    pub(crate) near: Option<Threshold>,

    /// Maximum number of pairs of each kind that are not planted (natural, near misses, and siblings with
    /// unrelated ones); if there are more, a random sample of this size
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = parse_limit
    )]
    pub(crate) pairs: usize,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,
}

/// Settings of a planting run.
pub(super) struct PlantRun {
    pub(super) settings: PlantSettings,
    pub(super) outputs: PlantOutputs,
}

impl PlantRun {
    pub(super) fn new(args: &PlantArgs) -> Result<Self> {
        check_outputs(args)?;
        check_has_text(&args.reading, "lookalike plant")?;
        let planting = &args.planting;
        let threshold = planting
            .threshold
            .unwrap_or(MatchSettings::default().threshold);
        let near = match planting.near {
            Some(near) => near,
            None => Threshold::new(0.75 * threshold.get())?,
        };
        let mut edits: Vec<_> = planting.edits.iter().flatten().copied().collect();
        edits.sort_unstable();
        edits.dedup();
        if edits.is_empty() {
            edits = PlantedEdit::all_edits();
        }
        Ok(Self {
            settings: PlantSettings {
                recipe: load_recipe(&planting.recipe, &planting.changes)?,
                threshold,
                near,
                documents: planting.documents,
                copies: planting.copies,
                combined: planting.combined,
                form_documents: planting.forms,
                filled_forms: planting.filled.unwrap_or(FILLED_FORMS),
                edits,
                pairs: planting.pairs,
                seed: planting.seed,
                read: read_options(&args.reading)?,
                threads: thread_count(args.running.threads),
                strict: args.running.strict,
            },
            outputs: PlantOutputs {
                corpus: output_target(&args.output),
                labels: output_target(&args.labels),
                rejected: args.bad_rows.target(),
            },
        })
    }
}

/// Settings of a run that plants items of benchmarks.
pub(super) struct PlantContaminationRun {
    pub(super) inputs: PlantContaminationInputs,
    pub(super) settings: PlantContaminationSettings,
    pub(super) outputs: PlantContaminationOutputs,
}

impl PlantContaminationRun {
    /// Returns the run of `--contamination`, or `None` without it.
    pub(super) fn new(args: &PlantArgs) -> Result<Option<Self>> {
        let contamination = &args.contamination;
        let Some(indexed) = &contamination.indexed else {
            return Ok(None);
        };
        check_outputs(args)?;
        Ok(Some(Self {
            inputs: PlantContaminationInputs {
                documents: args.inputs.clone(),
                benchmarks: contamination.contamination.clone(),
                fields: contamination.fields.clone(),
            },
            settings: PlantContaminationSettings {
                documents: args.planting.documents,
                seed: args.planting.seed,
                read: read_options(&args.reading)?,
                threads: thread_count(args.running.threads),
                strict: args.running.strict,
            },
            outputs: PlantContaminationOutputs {
                corpus: output_target(&args.output),
                labels: output_target(&args.labels),
                indexed: output_target(indexed),
                rejected: args.bad_rows.target(),
            },
        }))
    }
}

impl PlantArgs {
    /// Returns the outputs with their names in messages.
    pub(super) fn named_outputs(&self) -> Vec<(&'static str, &Path)> {
        let mut named = vec![("the corpus", &*self.output), ("the labels", &*self.labels)];
        let indexed = self.contamination.indexed.as_deref();
        named.extend(indexed.map(|path| ("the indexed items", path)));
        named.extend(
            self.bad_rows
                .rejected
                .as_deref()
                .map(|path| ("rejected rows", path)),
        );
        named
    }
}

/// Checks the outputs. Standard output receives the table of effects, so nothing else may go there; with
/// `--contamination`, nothing but JSON goes there.
fn check_outputs(args: &PlantArgs) -> Result<()> {
    let named = args.named_outputs();
    if let Some((what, _)) = named.iter().find(|(_, place)| is_standard(place)) {
        if args.contamination.indexed.is_some() {
            bail!(
                "{what} cannot go to standard output, because several files belong together: give a file"
            );
        }
        bail!("{what} cannot go to standard output, because it receives the table of effects");
    }
    check_separate_outputs(&named, [&*args.planting.recipe])
}

/// Parses `--edits`.
pub(crate) fn parse_edits(text: &str) -> Result<Vec<PlantedEdit>> {
    Ok(PlantedEdit::parse_edits(text)?)
}
