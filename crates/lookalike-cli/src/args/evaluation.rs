//! Arguments of the commands that measure against labels.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookalike::Threshold;
use lookalike::evaluate::Goal;

use super::{Candidates, Changes, InputFormat, Method, Reading, Unit, Verify};
use crate::settings;

/// Measure precision and recall on labelled texts, at every threshold
///
/// Reads pairs of texts with a label (fields a, b and label), or groups of texts that are similar,
/// and prints for every threshold, or every Hamming distance, what is found, found wrongly and
/// missed, with intervals. `lost` are similar pairs that the measure would find and whose candidates
/// do not meet. The row with the highest F1 is marked, and broken down by length (of the shorter
/// text), by script and, with --kind, by kind of edit. With --clusters, compares two tables of
/// clusters instead.
///
/// Labels are 1 or 0, true or false, yes or no, words such as duplicate or different, or grades with
/// --positive and --negative. A row that cannot be used stops the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike eval pairs.jsonl --method simhash --distance 10
  lookalike eval pairs.csv --method auto,minhash --verify jaccard,levenshtein --svg curves.svg
  lookalike eval pairs.csv --method simhash --candidates blocks --verify levenshtein
  lookalike eval pairs.tsv --label jaccard --positive 0.8 --negative 0.5 --corpus articles.jsonl
  lookalike eval edits.jsonl --texts versions --recipe words-3 --csv points.csv
  lookalike eval true.tsv --clusters clusters.tsv")]
pub(crate) struct EvalArgs {
    /// The labelled texts: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise). With --clusters, the table of true clusters: id, cluster
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: Labels,

    /// A field with the kind of edit between the two texts of a pair: figures are broken down by it
    #[arg(
        long,
        value_name = "FIELD",
        conflicts_with_all = ["groups", "texts"],
        help_heading = "Labels"
    )]
    pub(crate) kind: Option<String>,

    /// Compare this table of clusters with the true ones in LABELLED, both with the columns id and
    /// cluster, as `dedup --clusters` writes them: by pairs, by B-cubed and by equal sets. A document
    /// in one table only is alone in the other
    #[arg(
        long,
        value_name = "PREDICTED",
        conflicts_with_all = [
            "a", "b", "label", "kind", "positive", "negative", "contradictory", "corpus", "groups", "group", "texts",
            "method", "verify", "unit", "from", "distance", "candidates", "sentences", "recipe", "set",
            "csv", "svg", "text", "features", "id_row", "document_per_file"
        ],
        help_heading = "Clusters"
    )]
    pub(crate) clusters: Option<PathBuf>,

    /// With --clusters: how many documents there are in all. Those in neither table are alone in both;
    /// B-cubed counts them as right
    #[arg(
        long,
        value_name = "N",
        requires = "clusters",
        help_heading = "Clusters"
    )]
    pub(crate) documents: Option<u64>,

    #[command(flatten)]
    pub(crate) ways: Ways,

    #[command(flatten)]
    pub(crate) resampling: Resampling,

    /// Also write all points of the curves as a table (.csv; .tsv, .jsonl and .parquet as well)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Also draw the curves
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// How many threads work; the default is one for each core. Results do not depend on it
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,

    /// No progress and no time on standard error
    #[arg(short, long, help_heading = "Running")]
    pub(crate) quiet: bool,
}

/// Find the best setting for labelled texts, as a recipe
///
/// Reads labels as `eval` does and parts them into halves, so that texts that hang together stay
/// together. On one half, every n-gram of words, of characters and, for Chinese, of words cut by jieba
/// is tried with every measure, with fingerprints, with signatures and with the smallest hashes, at
/// its best threshold or distance; the features of the recipe with all weights that its table makes,
/// too. Of the settings that the best does not beat in 95 of 100 resamples, the first in the
/// order of preference is chosen: what everybody runs comes first, what costs more last. The half held
/// back says how good it is, beside the runner-up and the recipe as it was, with the price in speed
/// and memory, and with the share of the corpus that each removes: of --corpus or of the labelled
/// texts, of more than 10,000 documents or 32 MiB a sample. No threshold is chosen below the lowest
/// labelled pair, or below a wide range of similarities in which no pair is labelled as different; such
/// ranges are told. A goal of precision that a setting keeps at every threshold is not reached by it,
/// because the labels cannot judge it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike tune pairs.jsonl -o mine.toml
  lookalike tune pairs.csv -o mine.toml --goal 'precision>=0.99'
  lookalike tune pairs.csv --set simhash.weights=tfidf --set simhash.table=idf.tsv -o mine.toml
  lookalike tune edits.jsonl --texts versions --recipe characters-3 --json")]
pub(crate) struct TuneArgs {
    /// The labelled texts: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Where the recipe is put (.toml); without it, it is printed
    #[arg(short, long, value_name = "RECIPE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: Labels,

    /// What a setting is chosen by: f1, or precision>=P for the most recall at that precision
    #[arg(
        long,
        value_name = "GOAL",
        default_value = "f1",
        value_parser = settings::parse_goal,
        help_heading = "Matching"
    )]
    pub(crate) goal: Goal,

    /// The lowest threshold that is looked at
    ///
    /// The default is 0.05, and 0.3 for groups, where all pairs that reach it are looked for.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Matching"
    )]
    pub(crate) from: Option<Threshold>,

    /// The recipe to begin with, whose normalisation all have: a name (see `lookalike recipe`) or a
    /// TOML file. The recipe that is made names its files as they are seen from where it is put
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Matching"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) resampling: Resampling,

    /// Print one JSON object with all settings instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// How many threads work; the default is one for each core. Figures do not depend on it, speed
    /// aside
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,

    /// No progress and no time on standard error
    #[arg(short, long, help_heading = "Running")]
    pub(crate) quiet: bool,
}

/// What the labels are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Labels")]
pub(crate) struct Labels {
    /// The field with one text of a pair, or its id with --corpus
    #[arg(long, value_name = "FIELD", default_value = "a")]
    pub(crate) a: String,

    /// The field with the other one
    #[arg(long, value_name = "FIELD", default_value = "b")]
    pub(crate) b: String,

    /// The field with the label
    #[arg(long, value_name = "FIELD", default_value = "label")]
    pub(crate) label: String,

    /// Labels are grades, and a pair with at least this one is similar
    #[arg(
        long,
        value_name = "GRADE",
        requires = "negative",
        allow_negative_numbers = true
    )]
    pub(crate) positive: Option<f64>,

    /// Labels are grades, and a pair with at most this one is not similar; those between are left out
    #[arg(
        long,
        value_name = "GRADE",
        requires = "positive",
        allow_negative_numbers = true
    )]
    pub(crate) negative: Option<f64>,

    /// Pairs that are labelled in both ways are all reported and refused, left out (drop), or count with
    /// their first label (first)
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "refuse",
        hide_possible_values = true
    )]
    pub(crate) contradictory: ContradictoryPolicy,

    /// The texts that a and b name by their ids, or as SOURCE:ROW; --text and --id are about these.
    /// Stands after LABELLED, or before another option
    #[arg(long, value_name = "IN", num_args = 1..)]
    pub(crate) corpus: Vec<PathBuf>,

    /// The rows are texts with the name of a group: all pairs within a group are similar, all others
    /// are not
    #[arg(
        long,
        conflicts_with_all = ["a", "b", "label", "positive", "negative", "contradictory", "corpus"]
    )]
    pub(crate) groups: bool,

    /// The field with the name of the group
    ///
    /// The default is `group`.
    #[arg(long, value_name = "FIELD")]
    pub(crate) group: Option<String>,

    /// Each row has a group of texts, as a list in this field of JSONL or Parquet
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

/// What is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct Ways {
    /// How candidates are found; several, parted by commas, are measured one after the other
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub(crate) method: Vec<Method>,

    /// What similarity means; several, parted by commas, are measured with every method
    ///
    /// The default is jaccard, and none with --method simhash and sentences: every distance of
    /// fingerprints, or the sentences alone.
    #[arg(long, value_enum, value_name = "MEASURE", value_delimiter = ',')]
    pub(crate) verify: Vec<Verify>,

    /// With --verify levenshtein, indel or lcs: what edits and lengths are counted in
    ///
    /// The default is characters.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) unit: Option<Unit>,

    /// The lowest threshold that is looked at; the others follow in steps of 0.05
    ///
    /// The default is 0.05, and 0.3 for groups, where all pairs that reach it are looked for.
    #[arg(long, value_name = "T", value_parser = settings::parse_threshold)]
    pub(crate) from: Option<Threshold>,

    /// With --method simhash: every distance up to this is looked at; with a measure, candidates are
    /// those within it
    ///
    /// The default is 10, and 3 with a measure.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// With --method simhash and a measure: which fingerprints are candidates
    ///
    /// The default is distance.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) candidates: Option<Candidates>,

    /// With --method sentences: how many of its longest sentences stand for a document
    ///
    /// The default is 3.
    #[arg(long, value_name = "N", value_parser = settings::parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// How texts become features: a name (see `lookalike recipe`) or a TOML file; may be given many
    /// times
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: Vec<String>,

    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// How intervals are made.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Intervals")]
pub(crate) struct Resampling {
    /// How many resamples stand behind the intervals, which hold 95 of 100; 0 makes none
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000)
    )]
    pub(crate) resamples: u32,

    /// What chance draws from: the same number gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}
