//! Arguments of the commands that evaluate against labels.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookalike::Threshold;
use lookalike::evaluate::TuningGoal;

use super::{
    CandidatesArg, InputFormatArgs, MeasureArg, MethodArg, ReadingArgs, RecipeChangeArgs, UnitArg,
};
use crate::settings;

/// Measure precision and recall on labelled texts, at every threshold
///
/// Reads pairs of texts with a label (fields a, b and label), or groups of similar texts. For every threshold
/// or Hamming distance, prints the numbers of found, wrongly found and missed pairs, with intervals. `lost`
/// counts similar pairs that reach the threshold but are not candidates. The row with the highest F1 is
/// marked and broken down by length (of the shorter text), by script and, with --kind, by kind of edit. With
/// --clusters, compares two tables of clusters instead.
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
    /// Labelled texts: files, directories, globs, or - for standard input (read as JSONL unless --format is
    /// given). With --clusters, the table of true clusters: id, cluster
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: LabelArgs,

    /// Field with the kind of edit between the two texts of a pair; figures are broken down by it
    #[arg(
        long,
        value_name = "FIELD",
        conflicts_with_all = ["groups", "texts"],
        help_heading = "Labels"
    )]
    pub(crate) kind: Option<String>,

    /// Table of predicted clusters, compared with the true ones in LABELLED. Both have the columns id and
    /// cluster, as `dedup --clusters` writes them. Compares by pairs, by B-cubed and by equal sets. A
    /// document that is in one table only counts as a cluster of its own in the other
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

    /// Number of all documents; for --clusters. A document that is in neither table is a cluster of its own
    /// in both, which B-cubed counts as correct
    #[arg(
        long,
        value_name = "N",
        requires = "clusters",
        help_heading = "Clusters"
    )]
    pub(crate) documents: Option<u64>,

    #[command(flatten)]
    pub(crate) ways: EvaluatedMethodArgs,

    #[command(flatten)]
    pub(crate) resampling: ResamplingArgs,

    /// Also write all points of the curves as a table (.csv; .tsv, .jsonl and .parquet as well)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Also draw the curves as SVG
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,

    /// Print no progress and no time on standard error
    #[arg(short, long, help_heading = "Running")]
    pub(crate) quiet: bool,
}

/// Find the best settings for labelled texts, as a recipe
///
/// Reads labels as `eval` does and splits them into two halves, so that connected texts stay in one half. On
/// the first half, tries every n-gram of words, of characters and, for Chinese, of words cut by jieba, with
/// every measure, with fingerprints, with signatures and with the smallest hashes, each at its best threshold
/// or distance. Also tries the features of the recipe with every weight that its table allows.
/// Among the settings that the best one does not beat in 95 of 100 resamples, chooses the first in the order
/// of preference: common settings come first, costly ones last. The other half, which is held back, measures
/// the chosen setting beside the runner-up and the recipe as it was, with the price in speed and
/// memory and with the share of the corpus that each removes: of --corpus or of the labelled texts, of more
/// than 10,000 documents or 32 MiB a sample.
///
/// No threshold is chosen below the lowest labelled pair, or below a wide range of similarities in which no
/// pair is labelled as different; such ranges are reported. A goal of precision that a setting keeps at every
/// threshold does not count as reached, because the labels cannot judge it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike tune pairs.jsonl -o mine.toml
  lookalike tune pairs.csv -o mine.toml --goal 'precision>=0.99'
  lookalike tune pairs.csv --set simhash.weights=tfidf --set simhash.table=idf.tsv -o mine.toml
  lookalike tune edits.jsonl --texts versions --recipe characters-3 --json")]
pub(crate) struct TuneArgs {
    /// Labelled texts: files, directories, globs, or - for standard input (read as JSONL unless --format is
    /// given)
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// File for the recipe (.toml); without it, standard output
    #[arg(short, long, value_name = "RECIPE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: LabelArgs,

    /// Goal of the choice: f1, or precision>=P for the highest recall at that precision
    #[arg(
        long,
        value_name = "GOAL",
        default_value = "f1",
        value_parser = settings::parse_goal,
        help_heading = "Matching"
    )]
    pub(crate) goal: TuningGoal,

    /// Lowest threshold that is tried
    ///
    /// Default: 0.05; 0.3 for groups, because all pairs that reach it are searched for.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Matching"
    )]
    pub(crate) from: Option<Threshold>,

    /// Recipe to start from, whose normalisation all settings share: a name (see `lookalike recipe`) or a
    /// TOML file. File paths in the resulting recipe are relative to the directory of that recipe
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Matching"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) resampling: ResamplingArgs,

    /// Print one JSON object with all settings instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of worker threads; figures other than speeds do not depend on it. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,

    /// Print no progress and no time on standard error
    #[arg(short, long, help_heading = "Running")]
    pub(crate) quiet: bool,
}

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

    /// Field of JSONL or Parquet with a list of texts: each row is a group
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

/// Options that select the measured settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct EvaluatedMethodArgs {
    /// Method that finds candidate pairs; several, separated by commas, are measured one after the other
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub(crate) method: Vec<MethodArg>,

    /// Measure of similarity; several, separated by commas, are measured with every method
    ///
    /// Default: jaccard; none with --method simhash and sentences, which means every distance of
    /// fingerprints, or the sentences alone.
    #[arg(long, value_enum, value_name = "MEASURE", value_delimiter = ',')]
    pub(crate) verify: Vec<MeasureArg>,

    /// Unit of edits and lengths; for --verify levenshtein, indel and lcs
    ///
    /// Default: characters.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) unit: Option<UnitArg>,

    /// Lowest threshold that is evaluated; the others follow in steps of 0.05
    ///
    /// Default: 0.05; 0.3 for groups, because all pairs that reach it are searched for.
    #[arg(long, value_name = "T", value_parser = settings::parse_threshold)]
    pub(crate) from: Option<Threshold>,

    /// Largest distance that is evaluated, after every smaller one; with a measure, the distance within which
    /// candidates are found; for --method simhash
    ///
    /// Default: 10; 3 with a measure.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// Rule for candidate fingerprints; for --method simhash with a measure
    ///
    /// Default: distance.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) candidates: Option<CandidatesArg>,

    /// Number of longest sentences that represent a document; for --method sentences
    ///
    /// Default: 3.
    #[arg(long, value_name = "N", value_parser = settings::parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file; may be repeated
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: Vec<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,
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
