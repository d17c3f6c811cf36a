//! The command line: every command, option, default and help text.
//!
//! Help, manual page, completions and `docs/reference.md` are generated from these definitions. The
//! combinations of options are validated in [`crate::settings`].

mod evaluation;
mod serve;
mod store;

use std::path::PathBuf;

use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use lookalike::Threshold;
use lookalike::plan::SENTENCES;
use lookalike::plant::PlantedEdit;
use lookalike_batch::recipes::SEGMENTING;
use lookalike_batch::run::KeepOrder;

use crate::settings;

pub(crate) use evaluation::{
    ContradictoryPolicy, EvalArgs, EvaluatedMethodArgs, LabelArgs, ResamplingArgs, TuneArgs,
};
pub(crate) use serve::{ByteSize, LogFormat, LogLevel, PeriodArg, ServeArgs};
pub(crate) use store::{
    StoreArgs, StoreCommand, StoreExportArgs, StoreImportArgs, StoreRepairArgs, StoreRestoreArgs,
    StoreTelling, StoreVerifyArgs,
};

const ABOUT: &str = "Finds near-duplicates in collections of text";

const LONG_ABOUT: &str = "\
Finds near-duplicates in collections of text, in Chinese and English alike. Reads JSONL, CSV, TSV, \
Parquet and plain text, also compressed with gzip or zstd.

Two documents match if their similarity is at least the threshold. By default, similarity is the \
Jaccard index of their pairs of neighbouring words, after normalisation has removed differences of \
case, width, punctuation, spacing and traditional or simplified characters.";

const EXAMPLE: &str = "\
Example:
  lookalike dedup articles.jsonl -o unique.jsonl --removed removed.tsv
  lookalike explain removed.tsv 1234 articles.jsonl";

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, but rows were skipped as bad
  2  refused or failed

Standard output is data; messages and progress go to standard error. A reader that closes standard \
output early is not a failure. NO_COLOR turns colours off.";

/// Hides `--features` in the help of commands that work on texts. These refuse the option and say why.
fn without_features(features: Arg) -> Arg {
    features.hide(true)
}

/// Everything that can be typed.
#[derive(Debug, Parser)]
#[command(
    name = "lookalike",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLE,
    after_long_help = format!("{EXAMPLE}\n\n{EXIT_CODES}"),
    max_term_width = 100,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dedup(Box<DedupArgs>),
    Pairs(Box<PairsArgs>),
    Explain(Box<ExplainArgs>),
    Compare(Box<CompareArgs>),
    Fingerprint(Box<FingerprintArgs>),
    Segment(Box<SegmentArgs>),
    Idf(Box<IdfArgs>),
    Plant(Box<PlantArgs>),
    Index(IndexArgs),
    Search(Box<SearchArgs>),
    Eval(Box<EvalArgs>),
    Tune(Box<TuneArgs>),
    Serve(Box<ServeArgs>),
    Store(StoreArgs),
    Recipe(RecipeArgs),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// Shell that reads the script
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

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
    #[command(flatten)]
    pub(crate) sources: InputArgs,

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

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Write all rows to OUT, with the added fields `cluster`, `duplicate_of` and `similarity`
    #[arg(long, help_heading = "Output")]
    pub(crate) annotate: bool,

    /// Write nothing; the summary shows how many documents would be kept and removed
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,

    /// Rule that selects the kept document of each group: first, last, longest (most characters), max:FIELD
    /// or min:FIELD (largest or smallest value). Numbers come before strings; missing, empty and NaN values
    /// come last. Ties go to the first document
    #[arg(
        long,
        value_name = "RULE",
        default_value = "first",
        value_parser = settings::parse_keep,
        help_heading = "Matching"
    )]
    pub(crate) keep: KeepOrder,

    #[command(flatten)]
    pub(crate) matching: MatchingArgs,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// List every pair of near-duplicates with its similarity
///
/// Writes a table with the columns a, b, similarity, a_source, a_row, b_source and b_row, sorted by
/// position, a before b; rows count from 1 within their source. Of equal texts, each copy is paired
/// with the earliest within reach of --window and --within, with similarity 1, and further pairs name
/// the earliest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike pairs articles.jsonl --threshold 0.9 > pairs.tsv
  lookalike pairs titles.txt -o pairs.parquet --all
  lookalike pairs essays/ --against sources/ --document-per-file")]
pub(crate) struct PairsArgs {
    #[command(flatten)]
    pub(crate) sources: InputArgs,

    /// Reference documents: lists only pairs of one of these (a) and one of IN (b). Give them after IN, or
    /// before another option
    #[arg(
        long,
        value_name = "IN",
        num_args = 1..,
        help_heading = "Input"
    )]
    pub(crate) against: Vec<PathBuf>,

    /// Table of pairs (.tsv, .csv, .jsonl or .parquet, also .gz and .zst); without it, TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// List every combination of equal texts, both with each other and with similar texts. --against implies
    /// it unless --distinct is given
    #[arg(long, help_heading = "Output", conflicts_with = "distinct")]
    pub(crate) all: bool,

    /// Leave equal texts out: every pair has two different texts and names the earliest document of each
    #[arg(long, help_heading = "Output")]
    pub(crate) distinct: bool,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) matching: MatchingArgs,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

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
    /// Table of removed documents that `dedup --removed` wrote (.tsv, .csv, .jsonl or .parquet, also .gz and
    /// .zst)
    #[arg(value_name = "REMOVED")]
    pub(crate) removed: PathBuf,

    /// Id of the document; or SOURCE:ROW as in the table, if several documents have the id
    #[arg(value_name = "ID")]
    pub(crate) document: String,

    /// Inputs of the dedup run: files, directories, globs
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Inputs that the dedup run had as --against
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// Recipe of the dedup run: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Matching"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    /// Measure of the dedup run
    ///
    /// Default: jaccard or none, depending on which fits the record.
    #[arg(long, value_enum, value_name = "MEASURE", help_heading = "Matching")]
    pub(crate) verify: Option<MeasureArg>,

    /// Unit of edits and lengths in the dedup run; for --verify levenshtein, indel and lcs
    ///
    /// Default: characters.
    #[arg(long, value_enum, value_name = "UNIT", help_heading = "Matching")]
    pub(crate) unit: Option<UnitArg>,

    /// Number of longest sentences that represented a document in the dedup run; for --method sentences
    #[arg(
        long,
        value_name = "N",
        default_value_t = SENTENCES,
        value_parser = settings::parse_limit,
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
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of reader threads. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,
}

/// Make a labelled corpus from your own documents by planting edits
///
/// Writes all documents, edited copies of some of them, and a table of labelled pairs. The pairs are
/// copies with their originals; near-duplicates that were in the inputs already, found by an exact join;
/// and, as negatives, all pairs just below the threshold and a sample of less similar ones, over the
/// whole range of similarity. Prints the similarity that each kind and strength of edit leaves. The same
/// inputs and seed give the same files for any number of threads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv
  lookalike plant posts/ --text title,body -o planted.parquet --labels labels.csv --documents 200
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv --edits typos,delete-words:5%")]
pub(crate) struct PlantArgs {
    /// Inputs: files, directories, globs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Planted corpus: all documents and the edited copies, as id and text (.jsonl, .csv or .parquet). The id
    /// of a copy is the id of its document, more # signs than any id has in a row, and a number
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Labelled pairs: a, b, label (1 or 0), kind, strength, edits, similarity (.tsv, .csv, .jsonl or
    /// .parquet)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) labels: PathBuf,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Number of documents that are sampled and edited; all of them if there are fewer
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = settings::parse_limit,
        help_heading = "Planting"
    )]
    pub(crate) documents: usize,

    /// Number of copies with one edit for each sampled document; fewer if fewer edits apply
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Planting")]
    pub(crate) copies: usize,

    /// Number of copies with two edits for each sampled document, and the number with three
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Planting")]
    pub(crate) combined: usize,

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
        value_parser = settings::parse_edits,
        help_heading = "Planting"
    )]
    pub(crate) edits: Vec<Vec<PlantedEdit>>,

    /// Seed of the random choice of documents, edits and pairs
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        help_heading = "Planting"
    )]
    pub(crate) seed: u64,

    /// Similarity from which (≥) documents of the inputs are labelled as near-duplicates of one another
    ///
    /// Default: 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Planting"
    )]
    pub(crate) threshold: Option<Threshold>,

    /// Similarity from which (≥) all pairs below the threshold are labelled as negatives; of less similar
    /// ones, a sample over the whole range
    ///
    /// The sample has as many pairs of every twentieth of similarity as there are, about five for every
    /// drawn document together: siblings, which share a topic or a template, and unrelated ones. Pairs of
    /// which one text is contained in the other have no label, because it may be a copy of a part.
    /// Default: three quarters of the threshold.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Planting"
    )]
    pub(crate) near: Option<Threshold>,

    /// Maximum number of pairs of each kind that are not planted (natural, near misses, and siblings with
    /// unrelated ones); if there are more, a random sample of this size
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = settings::parse_limit,
        help_heading = "Planting"
    )]
    pub(crate) pairs: usize,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Planting"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Compare two texts and show every step and every similarity
///
/// Prints the normalised texts, the tokens, the heaviest features with their hashes and signed votes, the
/// sums, the bits, the positions in which the fingerprints differ, the estimates of MinHash, every
/// similarity, and the verdict with its reason.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike compare --literal 'the cat sat on the mat' 'the cat sat on a mat'
  lookalike compare essay.txt source.txt --html essay.html
  lookalike compare posts.jsonl#17 posts.jsonl#24 --verify levenshtein --json
  lookalike compare --fingerprints --digits binary 10101 00110")]
pub(crate) struct CompareArgs {
    /// First text: a file with one document, or FILE#ID or FILE:ROW for a document of a file
    #[arg(value_name = "A")]
    pub(crate) a: String,

    /// Second text, given in the same way
    #[arg(value_name = "B", allow_hyphen_values = true)]
    pub(crate) b: String,

    /// Take A and B as the texts themselves
    #[arg(long, help_heading = "Input")]
    pub(crate) literal: bool,

    /// Take A and B as fingerprints; shows their distance and the blocks of bits in which they differ
    #[arg(
        long,
        help_heading = "Input",
        conflicts_with_all = [
            "literal", "html", "top", "method", "threshold", "candidates", "sentences", "recipe", "set",
            "verify", "unit", "format", "no_header", "encoding", "lossy", "document_per_file", "text",
            "id", "id_row", "max_row", "scratch", "threads"
        ]
    )]
    pub(crate) fingerprints: bool,

    /// Notation of the fingerprints
    ///
    /// Default: hex. The width follows from the digits of the longer fingerprint; in decimal it is 64 or 128
    /// bits.
    #[arg(
        long,
        value_enum,
        value_name = "DIGITS",
        requires = "fingerprints",
        help_heading = "Input"
    )]
    pub(crate) digits: Option<NotationArg>,

    /// Number of heaviest features that are shown with their votes
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Output")]
    pub(crate) top: usize,

    /// Print one JSON object instead of text, with all features and the votes of the 1,000 heaviest
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Also write an HTML page with the comparison
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rule: MatchRuleArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of reader threads. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,
}

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
  lookalike fingerprint tokens.jsonl --recipe datasketch-affine32 --features tokens")]
pub(crate) struct FingerprintArgs {
    /// Inputs: files, directories, globs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table to write (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Notation of a fingerprint
    ///
    /// Default: hex.
    #[arg(long, value_enum, value_name = "DIGITS", help_heading = "Output")]
    pub(crate) digits: Option<NotationArg>,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

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
        value_parser = settings::parse_limit,
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
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Print the tokens of every document, or its terms with their weights
///
/// Writes a table with the columns id and tokens: the normalised tokens in the order of the text, separated
/// by spaces. With --weights, writes one row for each distinct term that counts in the SimHash of a document:
/// id, term, count, weight and part (of speech, for words cut by jieba), the heaviest term first.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike segment --literal 我来到北京清华大学
  lookalike segment --literal 我来到北京清华大学 --recipe jieba-full
  lookalike segment articles.jsonl --set segment.user=words.txt
  lookalike segment articles.jsonl --weights --set simhash.weights=tfidf --set simhash.table=idf.tsv
  lookalike segment articles.jsonl --set filter.parts=content --set filter.stopwords=zh")]
pub(crate) struct SegmentArgs {
    /// Inputs: files, directories, globs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required_unless_present = "literal")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Text to segment instead of inputs; may be repeated, and the ids are then numbers
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with_all = ["inputs", "rejected"],
        help_heading = "Input"
    )]
    pub(crate) literal: Vec<String>,

    /// Table to write (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Write one row for each distinct term with its count, weight and part of speech
    #[arg(long, help_heading = "Output")]
    pub(crate) weights: bool,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Recipe that turns texts into tokens: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = SEGMENTING,
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Learn a table of term weights (document frequencies) from documents
///
/// Writes a table with the columns term, documents and idf, the most frequent terms first. `documents` is the
/// number of documents that contain the term; `idf` is ln((1 + all documents) / (1 + documents with the
/// term)) + 1. Documents without any term do not count. A term is a feature of the recipe, for example a word
/// or three characters. The table is for recipes with the same terms: --set simhash.weights=tfidf --set
/// simhash.table=TABLE. Memory grows with the vocabulary: some tens of bytes for each distinct term.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike idf articles.jsonl --recipe jieba -o idf.tsv --min-documents 2
  lookalike idf today.jsonl --recipe jieba -o new.tsv --merge idf.tsv
  lookalike fingerprint articles.jsonl --recipe jieba --set simhash.weights=tfidf \\
    --set simhash.table=idf.tsv --set simhash.top=20")]
pub(crate) struct IdfArgs {
    /// Inputs: files, directories, globs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required_unless_present = "merge")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table to write (.tsv); without it, standard output
    #[arg(short, long, value_name = "TABLE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Minimum number of documents that contain a term; rarer terms are left out
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Output"
    )]
    pub(crate) min_documents: u64,

    /// Maximum number of terms: keeps the most frequent ones; of equally frequent terms, the first in byte
    /// order
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        help_heading = "Output"
    )]
    pub(crate) top: Option<usize>,

    /// Tables learned under the same recipe, whose counts are added. Terms that they left out are not
    /// counted. Give them after IN, or before another option
    #[arg(long, value_name = "TABLE", num_args = 1.., help_heading = "Input")]
    pub(crate) merge: Vec<PathBuf>,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Recipe that turns texts into terms: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = SEGMENTING,
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

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
    Info(IndexInfoArgs),
    Verify(IndexVerifyArgs),
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

    /// Inputs: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

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
    /// choices of blocks) or scan; or a plan as "index plan" shows it, such as "22,21,21; 1,0,0". All plans
    /// find the same fingerprints
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Index"
    )]
    pub(crate) plan: String,

    /// Maximum memory of the search tables: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)
    ///
    /// Default: three times the size of the fingerprints, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = settings::parse_size,
        help_heading = "Index"
    )]
    pub(crate) memory: Option<u64>,

    /// Also store the texts, compressed, so that a search can compare their characters or words
    #[arg(long, help_heading = "Index")]
    pub(crate) texts: bool,

    /// Store only fingerprints: the index is smaller and answers with distances only
    ///
    /// Without this option, an index of documents also stores their features and MinHash signatures, from
    /// which `search --threshold` finds all matches at any threshold from 0.5.
    #[arg(long, help_heading = "Index")]
    pub(crate) distance_only: bool,

    /// Replace an existing index
    #[arg(long, help_heading = "Index")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) bare: BareFingerprintArgs,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Add documents or fingerprints to an index
///
/// The recipe is that of the index. An id that the index already has is refused, and then nothing is added.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index add news.lib today.jsonl")]
pub(crate) struct IndexAddArgs {
    /// Index directory
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Inputs: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) bare: BareFingerprintArgs,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Remove documents or fingerprints from an index
///
/// Removed documents are not found any more. Their space on disk is freed when more than half of a segment is
/// removed, or when the segment is merged with added documents. Ids that are not in the index are reported,
/// and the exit code is then 1.
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
    pub(crate) telling: ReportingArgs,
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
    pub(crate) telling: ReportingArgs,
}

/// Show the plans for a search and their cost
///
/// Predicts the cost for evenly distributed fingerprints and a search with many queries on one thread. Real
/// fingerprints are skewed, so a prediction is a lower bound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index plan --count 50M --distance 3 --memory 1Gi
  lookalike index plan --count 50M --plan \"22,21,21; 1,0,0\"
  lookalike index plan --count 50M --live")]
pub(crate) struct IndexPlanArgs {
    /// Number of fingerprints, also with the unit K, M or G
    #[arg(long, value_name = "N", value_parser = settings::parse_count, help_heading = "Index")]
    pub(crate) count: u64,

    /// Bits of a fingerprint, 8 to 128
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(8..=128),
        help_heading = "Index"
    )]
    pub(crate) bits: u32,

    /// Largest distance that can be searched (≤), in bits, at most 16
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Index")]
    pub(crate) distance: u32,

    /// Maximum memory of the search tables: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)
    ///
    /// Default: three times the size of the fingerprints, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = settings::parse_size,
        help_heading = "Index"
    )]
    pub(crate) memory: Option<u64>,

    /// Plan to show first: auto, blocks, 4x16, permuted or scan, or a plan as it is shown, such as "22,21,21;
    /// 1,0,0"
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Index"
    )]
    pub(crate) plan: String,

    /// Show the plan of a live index, which the service uses for a window that changes while it is searched;
    /// it has one plan only
    #[arg(long, conflicts_with = "plan", help_heading = "Index")]
    pub(crate) live: bool,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

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

    /// Queries: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table of matches (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst); without it, TSV
    /// on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// File for the rejected rows, byte for byte; for Parquet input, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Maximum number of differing bits (≤), at most that of the index
    ///
    /// Default: the distance that the index was built for. With --threshold or --verify, only documents
    /// within this distance are compared; without --distance, all matches are found.
    #[arg(long, value_name = "K", help_heading = "Matching")]
    pub(crate) distance: Option<u32>,

    /// Number of nearest matches listed for each query; ties go to the earlier rows
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        help_heading = "Matching"
    )]
    pub(crate) nearest: Option<usize>,

    /// List only the match that was added first, for each query
    #[arg(long, conflicts_with_all = ["nearest", "limit"], help_heading = "Matching")]
    pub(crate) first: bool,

    /// Maximum number of matches listed for each query, the nearest first. Adds a fourth column, truncated,
    /// which is true for a query with more matches; the summary counts these queries
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        conflicts_with = "nearest",
        help_heading = "Matching"
    )]
    pub(crate) limit: Option<usize>,

    /// Fingerprints that are compared with a query
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t = CandidatesArg::Distance,
        help_heading = "Matching"
    )]
    pub(crate) candidates: CandidatesArg,

    /// Measure: finds all documents that are similar enough by it, as `pairs` finds them
    ///
    /// Default: distances; jaccard with --threshold. For levenshtein, indel and lcs the index must store the
    /// texts.
    #[arg(long, value_enum, value_name = "MEASURE", help_heading = "Matching")]
    pub(crate) verify: Option<MeasureArg>,

    /// Unit of edits and lengths; for --verify levenshtein, indel and lcs
    ///
    /// Default: characters.
    #[arg(long, value_enum, value_name = "UNIT", help_heading = "Matching")]
    pub(crate) unit: Option<UnitArg>,

    /// Minimum similarity of a match (≥), above 0 and at most 1
    ///
    /// Default with --verify: 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Matching"
    )]
    pub(crate) threshold: Option<Threshold>,

    /// Recipe of the queries: a name (see `lookalike recipe`) or a TOML file; a recipe other than that of the
    /// index is refused
    ///
    /// Default: the recipe of the index.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Matching")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) bare: BareFingerprintArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormatArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
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

/// Fingerprints instead of documents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct BareFingerprintArgs {
    /// Read the rows as fingerprints. In plain text, each line has one fingerprint, or an id, a tab and one
    /// fingerprint. A first line `fingerprint`, or `id`, tab, `fingerprint`, is a header, which counts where
    /// rows are numbered. In JSONL, CSV and Parquet, the field is `fingerprint`
    #[arg(long)]
    pub(crate) fingerprints: bool,

    /// Read the rows as fingerprints in this field of JSONL, CSV, TSV or Parquet; numbers of JSON and Parquet
    /// are decimal
    #[arg(long, value_name = "FIELD", conflicts_with = "fingerprints")]
    pub(crate) fingerprint: Option<String>,

    /// Notation of the fingerprints
    ///
    /// Default: hex.
    #[arg(long, value_enum, value_name = "DIGITS")]
    pub(crate) digits: Option<NotationArg>,
}

/// Options for threads and output of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ReportingArgs {
    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(long, value_name = "N", value_parser = settings::parse_threads)]
    pub(crate) threads: Option<usize>,

    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only errors and warnings on standard error, no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
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

/// Notation of fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotationArg {
    /// Hexadecimal digits, one for each four bits
    Hex,
    /// A decimal number
    Decimal,
    /// Binary digits, one for each bit
    Binary,
}

/// Print a recipe: everything that determines how texts compare
///
/// Without an argument, lists the built-in recipes. The printed TOML can be changed and given to --recipe.
/// Recipes with different ids never compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike recipe words-3 > mine.toml
  lookalike dedup articles.jsonl -o unique.jsonl --recipe mine.toml")]
pub(crate) struct RecipeArgs {
    /// Name of a recipe, or a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,
}

/// Fields of the recipe that are other than it says.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecipeChangeArgs {
    /// Change a field of the recipe, named as in its TOML, such as ngram=3, simhash.weights=tfidf or
    /// filter.stopwords=zh. Lists and numbers are written as in TOML; file paths are relative to the current
    /// directory. May be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Recipe")]
    pub(crate) set: Vec<String>,
}

/// Inputs of a run.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Inputs: files, directories, globs, or - for standard input (read as JSONL unless --format is given)
    ///
    /// Known extensions are .jsonl, .ndjson, .json, .csv, .tsv, .tab, .parquet, .pq, .txt and .text, all but
    /// Parquet also with .gz or .zst. In directories, files with other extensions are skipped and reported;
    /// hidden files and those that begin with an underscore are skipped.
    #[arg(value_name = "IN", required_unless_present = "explain_plan")]
    pub(crate) inputs: Vec<PathBuf>,
}

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
        value_parser = settings::parse_threshold,
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
    #[arg(long, value_name = "N", value_parser = settings::parse_limit)]
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

/// Options that decide which documents of a run match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchingArgs {
    #[command(flatten)]
    pub(crate) rule: MatchRuleArgs,

    /// Match only documents with equal values of this field
    ///
    /// Rows in which the field is missing or null are compared with one another. Values are equal as ids are:
    /// 1, 1.0 and "1" are one value, "1.0" is another.
    #[arg(long, value_name = "FIELD")]
    pub(crate) within: Option<String>,

    /// Maximum time between two documents that match: a number with the unit s, m, h, d or w, such as 90s,
    /// 15m, 36h, 2d, 1w; needs --time
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = settings::parse_duration,
        allow_hyphen_values = true,
        requires = "time"
    )]
    pub(crate) window: Option<f64>,

    /// Field with the time for --window: seconds since 1970 or an ISO 8601 date or date and time
    #[arg(long, value_name = "FIELD", requires = "window")]
    pub(crate) time: Option<String>,

    /// Print the match plan, the predicted recall and the memory for each document, then stop. Given inputs,
    /// also predicts the number of compared pairs, the number of false candidates among them, and the memory
    /// and time of the run, from a sample of the rows (of at most a gigabyte)
    #[arg(long)]
    pub(crate) explain_plan: bool,
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

/// Format of the inputs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputFormatArgs {
    /// Format of the inputs; overrides their extensions
    #[arg(long, alias = "input-format", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<FormatArg>,
}

/// Options for reading the inputs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ReadingArgs {
    /// Read CSV and TSV without a header row; columns have the names 1, 2, …
    #[arg(long)]
    pub(crate) no_header: bool,

    /// Encoding of text formats, such as gb18030, big5 or shift_jis
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "utf-8",
        value_parser = settings::parse_encoding
    )]
    pub(crate) encoding: &'static encoding_rs::Encoding,

    /// Read malformed text with a replacement character instead of rejecting the row
    #[arg(long)]
    pub(crate) lossy: bool,

    /// Read each plain text file as one document, not each line
    #[arg(long)]
    pub(crate) document_per_file: bool,

    /// Field with the text; several are joined by a line feed; a.b reaches into b of a
    ///
    /// Default: `text`. Plain text needs none. With several fields, `dedup` and `pairs` refuse a field that
    /// no document has.
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) text: Vec<String>,

    /// Field with the id of a document
    ///
    /// Default: `id` if the first row has it, else the row number, counted from 1 over all inputs. Bad rows
    /// are counted; empty lines are not rows. Two ids are equal if their text is equal, where a number has
    /// its shortest digits: 1, 1.0 and "1" are one id, "1.0" is another.
    #[arg(long, value_name = "FIELD", conflicts_with = "id_row")]
    pub(crate) id: Option<String>,

    /// Use the row number as the id, for example if ids repeat
    #[arg(long)]
    pub(crate) id_row: bool,

    /// Field with ready-made features: a list of strings, or words separated by spaces
    ///
    /// With weights: an object of numbers, {"cat": 2, "mat": 1}, or a list with pairs, [["cat", 2], "mat"].
    #[arg(long, value_name = "FIELD")]
    pub(crate) features: Option<String>,

    /// Maximum size of a row: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1Gi",
        value_parser = settings::parse_row_size
    )]
    pub(crate) max_row: u32,

    /// Directory for temporary files; compressed input, standard input and Parquet take up their size there.
    /// Default: the system's directory for temporary files
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
}

/// A format of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// One JSON object per line
    Jsonl,
    /// JSON list of objects, as in .json files that begin with [
    Json,
    /// Comma-separated values with quoting
    Csv,
    /// Tab-separated values without quoting
    Tsv,
    /// Apache Parquet
    Parquet,
    /// Plain text, one document per line
    Text,
}

/// Options of the audit of a run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct AuditArgs {
    /// Estimate the recall and precision of the run, with 95 % intervals: compares N sampled documents
    /// exactly with all documents read after them, and puts edited copies of some through the same plan
    ///
    /// Without a number, samples about one document in 80, from 500 to 1,000, or 1,000 if the size of the
    /// input is unknown. More documents give narrower intervals and a longer run. May sample fewer on
    /// compressed input, because its content is not known before it is read; the report says so.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        value_parser = settings::parse_limit
    )]
    #[expect(
        clippy::option_option,
        reason = "not asked for, asked for, asked for with a number"
    )]
    pub(crate) audit: Option<Option<usize>>,

    /// Seed of the audit's sample
    ///
    /// Default: 1.
    #[arg(long, value_name = "NUMBER", requires = "audit")]
    pub(crate) audit_seed: Option<u64>,
}

/// Options for running a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct RunningArgs {
    /// Stop at the first bad row. `dedup` and `pairs` also refuse repeated ids, which they otherwise only
    /// count
    #[arg(long)]
    pub(crate) strict: bool,

    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(long, value_name = "N", value_parser = settings::parse_threads)]
    pub(crate) threads: Option<usize>,

    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only errors and bad rows on standard error, no progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
