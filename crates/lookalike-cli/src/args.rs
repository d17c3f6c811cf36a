//! The command line as typed: every command, option, default and help text.
//!
//! Help, man page, completions and `docs/reference.md` are all made from these definitions. What
//! the options mean together is decided in [`crate::settings`].

mod evaluation;
mod serve;
mod store;

use std::path::PathBuf;

use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use lookalike::Threshold;
use lookalike::plan::SENTENCES;
use lookalike::plant::Edit;
use lookalike_batch::recipes::SEGMENTING;
use lookalike_batch::run::Keep;

use crate::settings;

pub(crate) use evaluation::{ContradictoryPolicy, EvalArgs, Labels, Resampling, TuneArgs, Ways};
pub(crate) use serve::{LogFormat, LogLevel, Period, ServeArgs, Size};
pub(crate) use store::{
    StoreArgs, StoreCommand, StoreExportArgs, StoreImportArgs, StoreRepairArgs, StoreRestoreArgs,
    StoreTelling, StoreVerifyArgs,
};

const ABOUT: &str = "Finds near-duplicates in piles of text";

const LONG_ABOUT: &str = "\
Finds near-duplicates in piles of text: JSONL, CSV, TSV, Parquet and plain text, also compressed \
with gzip or zstd, in Chinese and English alike.

Two documents match if their similarity is at least the threshold: by default the share of pairs \
of neighbouring words that they have in common (the Jaccard index), after differences of case, \
width, punctuation, spacing and traditional or simplified characters have been taken away.";

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
output early is no failure. NO_COLOR turns colours off.";

/// Leaves `--features` out of the help of commands that work on texts: they refuse it, with the reason.
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
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
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
        /// The shell
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
    pub(crate) sources: Sources,

    /// Documents that come before all others and count as kept whatever they resemble; they are
    /// never written. Stands after IN, or before another option
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// The kept rows: a file whose extension says how it is compressed (.gz, .zst), a directory
    /// that mirrors the inputs (DIR/), or - for standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// A table of the removed documents with the evidence: id, kept, similarity, method,
    /// threshold, cluster, source, row, kept_source, kept_row (.tsv, .csv, .jsonl or .parquet); rows
    /// count from 1 within their source
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) removed: Option<PathBuf>,

    /// A table of the documents in clusters: id, cluster, representative, similarity, kept, source,
    /// row (.tsv, .csv, .jsonl or .parquet); documents that are alone are left out
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) clusters: Option<PathBuf>,

    /// Also find components: all documents connected by similar pairs. They are counted, and
    /// --clusters gets the column `component`
    #[arg(long, help_heading = "Output")]
    pub(crate) components: bool,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// Write all rows to OUT, with the added fields `cluster`, `duplicate_of` and `similarity`
    #[arg(long, help_heading = "Output")]
    pub(crate) annotate: bool,

    /// Do everything but write: the summary tells what would be kept and removed
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,

    /// Which document of a group is kept: first, last, longest (most characters), max:FIELD or
    /// min:FIELD (largest or smallest value; numbers come before strings, and what is missing, empty
    /// or NaN comes last). Ties go to the first
    #[arg(
        long,
        value_name = "RULE",
        default_value = "first",
        value_parser = settings::parse_keep,
        help_heading = "Matching"
    )]
    pub(crate) keep: Keep,

    #[command(flatten)]
    pub(crate) matching: Matching,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
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
    pub(crate) sources: Sources,

    /// Documents to compare IN with: all pairs of one of these (a) and one of IN (b) are listed, and
    /// no others. Stands after IN, or before another option
    #[arg(
        long,
        value_name = "IN",
        num_args = 1..,
        help_heading = "Input"
    )]
    pub(crate) against: Vec<PathBuf>,

    /// The table of pairs (.tsv, .csv, .jsonl or .parquet, also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// List every combination of equal texts, with each other and with what is similar; with --against
    /// that is so in any case, unless --distinct is given
    #[arg(long, help_heading = "Output", conflicts_with = "distinct")]
    pub(crate) all: bool,

    /// Leave copies out: pairs are of different texts, and name the earliest document of each
    #[arg(long, help_heading = "Output")]
    pub(crate) distinct: bool,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) matching: Matching,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Say why a document was removed
///
/// Looks a document up in the table that `dedup --removed` wrote, finds it and the document that
/// was kept instead in the inputs, computes their similarity again, and shows both texts with their
/// differences marked: [-only in the kept text-] and {+only in the removed text+}.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike explain removed.tsv 1234 articles.jsonl
  lookalike explain removed.parquet post-7 today.csv --against yesterday.csv --json")]
pub(crate) struct ExplainArgs {
    /// The table of removed documents, as `dedup --removed` wrote it (.tsv, .csv, .jsonl or
    /// .parquet, also .gz and .zst)
    #[arg(value_name = "REMOVED")]
    pub(crate) removed: PathBuf,

    /// The id of the document, or SOURCE:ROW as the table has them, for an id that several documents
    /// have
    #[arg(value_name = "ID")]
    pub(crate) document: String,

    /// The inputs of the dedup run: files, directories, globs
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The inputs that the dedup run had as --against
    #[arg(long, value_name = "IN", num_args = 1.., help_heading = "Input")]
    pub(crate) against: Vec<PathBuf>,

    /// The recipe of the dedup run: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Matching"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    /// What similarity meant in the dedup run
    ///
    /// The default is jaccard or none, whichever the record fits.
    #[arg(long, value_enum, value_name = "MEASURE", help_heading = "Matching")]
    pub(crate) verify: Option<Verify>,

    /// With --verify levenshtein, indel or lcs: what edits were counted in in the dedup run
    ///
    /// The default is characters.
    #[arg(long, value_enum, value_name = "UNIT", help_heading = "Matching")]
    pub(crate) unit: Option<Unit>,

    /// How many of its longest sentences stood for a document in a dedup run with --method sentences
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
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// How many threads read; the default is one for each core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,
}

/// Make a labelled corpus from one's own documents, with edits planted in it
///
/// Writes all documents and edited copies of some, and a table of labelled pairs: a copy and its
/// original; documents that resembled one another already, found by an exact join; and as negatives
/// the pairs just below the threshold and a sample of less similar ones, over the whole range of
/// similarity. Prints how similar each kind and strength of edit has left the
/// texts. The same inputs and seed give the same files, whatever the number of threads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv
  lookalike plant posts/ --text title,body -o planted.parquet --labels labels.csv --documents 200
  lookalike plant articles.jsonl -o planted.jsonl --labels labels.tsv --edits typos,delete-words:5%")]
pub(crate) struct PlantArgs {
    /// What to read: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// All documents and the edited copies: id, text (.jsonl, .csv or .parquet). The id of a copy is
    /// that of its document, marks (#) as no id has them, and a number
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// The labelled pairs: a, b, label (1 or 0), kind, strength, edits, similarity (.tsv, .csv,
    /// .jsonl or .parquet)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) labels: PathBuf,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// How many documents are drawn to be edited; all if there are fewer
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = settings::parse_limit,
        help_heading = "Planting"
    )]
    pub(crate) documents: usize,

    /// How many copies each of them has, with one edit each; fewer if no more edits apply
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Planting")]
    pub(crate) copies: usize,

    /// How many copies each has with two edits, and as many with three
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Planting")]
    pub(crate) combined: usize,

    /// The edits to choose from: kinds (typos) or kinds at a strength (typos:2%), parted by commas
    ///
    /// The default is all: truncate-head, truncate-tail (10, 30 and 50 %), boilerplate-before,
    /// boilerplate-after, shuffle-paragraphs, shuffle-sentences, delete-sentences, insert-sentences,
    /// replace-sentences, delete-words, insert-words, replace-words (1, 5, 10 and 20 %),
    /// traditional, simplified, full-width, half-width, punctuation, spacing, zero-width, nfc, nfd,
    /// upper-case, lower-case, typos (0.5, 1, 2 and 5 %), html, markdown, changed-number.
    #[arg(
        long,
        value_name = "EDIT",
        value_delimiter = ',',
        value_parser = settings::parse_edits,
        help_heading = "Planting"
    )]
    pub(crate) edits: Vec<Vec<Edit>>,

    /// What draws documents, edits and pairs
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        help_heading = "Planting"
    )]
    pub(crate) seed: u64,

    /// From this similarity on (≥), documents are labelled as near-duplicates of one another
    ///
    /// The default is 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Planting"
    )]
    pub(crate) threshold: Option<Threshold>,

    /// From this similarity on (≥), all pairs below the threshold are labelled as negatives; of less
    /// similar ones, a sample over the whole range
    ///
    /// The sample has as many pairs of every twentieth of similarity as there are, about five for every
    /// drawn document together: siblings, which share a topic or a template, and unrelated ones. Pairs of
    /// which one text is contained in the other have no label, because it may be a copy of a part. The
    /// default is three quarters of the threshold.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Planting"
    )]
    pub(crate) near: Option<Threshold>,

    /// The most pairs of each kind that are not planted (natural, near misses, and siblings with
    /// unrelated ones); of more, so many are drawn
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = settings::parse_limit,
        help_heading = "Planting"
    )]
    pub(crate) pairs: usize,

    /// How texts become features: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Planting"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Show two texts through every step, and every similarity
///
/// Prints what the recipe makes of both texts: the normalised text, the tokens, the heaviest features
/// with their hashes and signed votes, the sums, the bits, where the fingerprints differ, the
/// estimates of MinHash, every similarity, and whether the texts match and why.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike compare --literal 'the cat sat on the mat' 'the cat sat on a mat'
  lookalike compare essay.txt source.txt --html essay.html
  lookalike compare posts.jsonl#17 posts.jsonl#24 --verify levenshtein --json
  lookalike compare --fingerprints --digits binary 10101 00110")]
pub(crate) struct CompareArgs {
    /// The first text: a file with one document, or FILE#ID or FILE:ROW for a document of a file
    #[arg(value_name = "A")]
    pub(crate) a: String,

    /// The second text
    #[arg(value_name = "B", allow_hyphen_values = true)]
    pub(crate) b: String,

    /// A and B are the texts themselves
    #[arg(long, help_heading = "Input")]
    pub(crate) literal: bool,

    /// A and B are fingerprints: shows how far and in which blocks of bits they differ
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

    /// How the fingerprints are written
    ///
    /// The default is hex. They have as many bits as the longer one has digits for, or 64 or 128 in
    /// decimal digits.
    #[arg(
        long,
        value_enum,
        value_name = "DIGITS",
        requires = "fingerprints",
        help_heading = "Input"
    )]
    pub(crate) digits: Option<Notation>,

    /// How many of the heaviest features are shown with their votes
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Output")]
    pub(crate) top: usize,

    /// Print one JSON object instead of text, with all features, the thousand heaviest with their votes
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Also write a page to look at in a browser
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rule: Rule,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// How many threads read; the default is one for each core
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
/// Writes a table with the columns id and fingerprint, in the order of the input. A fingerprint is
/// as many bits as the recipe says (64), written as hexadecimal digits; a signature is a list of
/// numbers, that of sentences 64 bits in hexadecimal digits. A text with too little in it for either
/// has `-`, except with the recipes of other tools, which give a value to every text. Ids are passed
/// on as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike fingerprint articles.jsonl > fingerprints.tsv
  lookalike fingerprint posts.csv --text title,body --digits decimal -o fingerprints.parquet
  lookalike fingerprint articles.jsonl --method minhash -o signatures.jsonl.zst
  lookalike fingerprint articles.jsonl --recipe 1e0ng --digits decimal
  lookalike fingerprint tokens.jsonl --recipe datasketch-affine32 --features tokens")]
pub(crate) struct FingerprintArgs {
    /// What to read: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The table (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst); without it,
    /// TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// How a fingerprint is written
    ///
    /// The default is hex.
    #[arg(long, value_enum, value_name = "DIGITS", help_heading = "Output")]
    pub(crate) digits: Option<Notation>,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// What is made of a text
    ///
    /// The default is simhash, and minhash with the recipes of datasketch.
    #[arg(long, value_enum, value_name = "METHOD", help_heading = "Fingerprints")]
    pub(crate) method: Option<SketchMethod>,

    /// With --method sentences: how many of its longest sentences stand for a document
    ///
    /// The default is 3.
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        help_heading = "Fingerprints"
    )]
    pub(crate) sentences: Option<usize>,

    /// How texts become features, and how many bits or slots are made of them: a name (see
    /// `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Fingerprints"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Print the tokens of every document, or its terms with their weights
///
/// Writes a table with the columns id and tokens, the tokens in the order of the text, parted by
/// spaces, as they are after normalisation. With --weights it is a row for each distinct term of a
/// document that counts in its SimHash: id, term, count, weight and part (of speech, for words cut
/// by jieba), the heaviest first.
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
    /// What to read: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    #[arg(value_name = "IN", required_unless_present = "literal")]
    pub(crate) inputs: Vec<PathBuf>,

    /// A text given here instead of inputs; may be given many times, ids are then numbers
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with_all = ["inputs", "rejected"],
        help_heading = "Input"
    )]
    pub(crate) literal: Vec<String>,

    /// The table (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst); without it,
    /// TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// A row for each distinct term with its count, weight and part of speech
    #[arg(long, help_heading = "Output")]
    pub(crate) weights: bool,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// How texts become tokens: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = SEGMENTING,
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Learn from documents how rare terms are: a table of weights
///
/// Writes a table with the columns term, documents and idf, the most frequent terms first: in how
/// many documents a term occurs, and ln((1 + documents) / (1 + documents with it)) + 1, where
/// documents without any term do not count. A term is a feature of the recipe, such as a word, or
/// three characters. The table is for recipes with the same terms: --set simhash.weights=tfidf
/// --set simhash.table=TABLE. Memory is the vocabulary: some tens of bytes for each distinct term.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike idf articles.jsonl --recipe jieba -o idf.tsv --min-documents 2
  lookalike idf today.jsonl --recipe jieba -o new.tsv --merge idf.tsv
  lookalike fingerprint articles.jsonl --recipe jieba --set simhash.weights=tfidf \\
    --set simhash.table=idf.tsv --set simhash.top=20")]
pub(crate) struct IdfArgs {
    /// What to read: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    #[arg(value_name = "IN", required_unless_present = "merge")]
    pub(crate) inputs: Vec<PathBuf>,

    /// The table (.tsv); without it, standard output
    #[arg(short, long, value_name = "TABLE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Leave out terms that occur in fewer documents, from 1
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Output"
    )]
    pub(crate) min_documents: u64,

    /// Keep only so many terms, the most frequent; of equally frequent ones the first by their bytes
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        help_heading = "Output"
    )]
    pub(crate) top: Option<usize>,

    /// Add the counts of tables that were learned under the same recipe. What they have left out is
    /// not counted. Stands after IN, or before another option
    #[arg(long, value_name = "TABLE", num_args = 1.., help_heading = "Input")]
    pub(crate) merge: Vec<PathBuf>,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// How texts become terms: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = SEGMENTING,
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Make and keep a library of fingerprints, to be searched
///
/// A library is a directory of fingerprints, prepared so that `lookalike search` finds every one
/// within a Hamming distance, and of features and signatures, by which it finds every document that is
/// similar enough. It carries its recipe, and only what has the same one is compared
/// with it. Changes are complete and on disk or have not happened; one process changes a library at
/// a time, any number may search it meanwhile.
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

/// What is to be done with a library.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    Build(Box<IndexBuildArgs>),
    Add(Box<IndexAddArgs>),
    Remove(IndexRemoveArgs),
    Info(IndexInfoArgs),
    Verify(IndexVerifyArgs),
    Plan(IndexPlanArgs),
}

/// Make a library of documents or fingerprints
///
/// Documents get fingerprints under a recipe; bare fingerprints are taken as they are. A document
/// with too little in it for a fingerprint matches only what is equal; an empty one is left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index build news.lib articles.jsonl --texts
  lookalike index build pages.lib fingerprints.tsv --fingerprints --distance 3
  lookalike index build wide.lib codes.parquet --fingerprint code --bits 128 --distance 7")]
pub(crate) struct IndexBuildArgs {
    /// The directory to make
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// What to read: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// How texts become features and fingerprints: a name (see `lookalike recipe`) or a TOML file;
    /// with bare fingerprints, the recipe that they are known to have
    ///
    /// The default for documents is default.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Library")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: Changes,

    /// The largest distance that can be searched for (≤), in bits, at most 16
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Library")]
    pub(crate) distance: u32,

    /// Bits of a bare fingerprint, 8 to 128; those of documents are the recipe's
    ///
    /// The default is 64.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(8..=128),
        help_heading = "Library"
    )]
    pub(crate) bits: Option<u32>,

    /// How fingerprints are found: auto, blocks (distance + 1 equal blocks), 4x16, permuted (sorted
    /// tables for choices of blocks) or scan, or a plan as "index plan" shows it, such as
    /// "22,21,21; 1,0,0"; all find the same
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Library"
    )]
    pub(crate) plan: String,

    /// The most memory that the indexes may take: bytes, or with the unit K, M, G (of 1000) or Ki,
    /// Mi, Gi (of 1024)
    ///
    /// The default is three times the fingerprints themselves, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = settings::parse_size,
        help_heading = "Library"
    )]
    pub(crate) memory: Option<u64>,

    /// Store the texts too, compressed, so that a search can compare their characters or words
    #[arg(long, help_heading = "Library")]
    pub(crate) texts: bool,

    /// Store nothing but fingerprints: the library is smaller and answers with distances only
    ///
    /// By default a library of documents also stores their features and MinHash signatures, from which
    /// `search --threshold` finds all matches at any threshold from 0.5.
    #[arg(long, help_heading = "Library")]
    pub(crate) distance_only: bool,

    /// Replace a library that is there already
    #[arg(long, help_heading = "Library")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) bare: Bare,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Add documents or fingerprints to a library
///
/// The recipe is the library's. Ids that are there already are refused, and then nothing is added.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index add news.lib today.jsonl")]
pub(crate) struct IndexAddArgs {
    /// The library
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// What to read: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) bare: Bare,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Remove documents or fingerprints from a library
///
/// They are not found any more. Their room on disk, and their texts, are given back when more than
/// half of a segment is removed, or when it is merged with what is added. Ids that the library does
/// not have are told, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index remove news.lib a-17 a-18
  lookalike index remove news.lib --ids gone.txt")]
pub(crate) struct IndexRemoveArgs {
    /// The library
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// The ids; where rows are numbered, the numbers
    #[arg(value_name = "ID", required_unless_present = "ids")]
    pub(crate) id: Vec<String>,

    /// A file with an id on each line, or - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) ids: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: Telling,
}

/// Say what a library is
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index info news.lib --json")]
pub(crate) struct IndexInfoArgs {
    /// The library
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Check a library: all its files against their checksums, and fingerprints against stored texts
///
/// Every file is read. Where texts are stored, the fingerprints of about 1,000 of them are made
/// again and compared.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike index verify news.lib")]
pub(crate) struct IndexVerifyArgs {
    /// The library
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    #[command(flatten)]
    pub(crate) telling: Telling,
}

/// Show how fingerprints would be found, and what a search would cost
///
/// Costs are predicted for evenly distributed fingerprints and a search with many queries on one
/// thread; real fingerprints are skewed, so a prediction is a floor.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index plan --count 50M --distance 3 --memory 1Gi
  lookalike index plan --count 50M --plan \"22,21,21; 1,0,0\"
  lookalike index plan --count 50M --live")]
pub(crate) struct IndexPlanArgs {
    /// How many fingerprints: a number, or with the unit K, M or G
    #[arg(long, value_name = "N", value_parser = settings::parse_count, help_heading = "Library")]
    pub(crate) count: u64,

    /// Bits of a fingerprint, 8 to 128
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(8..=128),
        help_heading = "Library"
    )]
    pub(crate) bits: u32,

    /// The largest distance that can be searched for (≤), in bits, at most 16
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Library")]
    pub(crate) distance: u32,

    /// The most memory that the index may take: bytes, or with the unit K, M, G (of 1000) or Ki, Mi,
    /// Gi (of 1024)
    ///
    /// The default is three times the fingerprints themselves, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = settings::parse_size,
        help_heading = "Library"
    )]
    pub(crate) memory: Option<u64>,

    /// The plan to show first: auto, blocks, 4x16, permuted or scan, or a plan as it is shown, such as
    /// "22,21,21; 1,0,0"
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Library"
    )]
    pub(crate) plan: String,

    /// Show the index of a window that changes while it is searched, as the service has one: it is cut
    /// in one way only
    #[arg(long, conflicts_with = "plan", help_heading = "Library")]
    pub(crate) live: bool,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Find everything in a library that is near a document or fingerprint
///
/// Writes a table with the columns query, match and distance, ordered by query, then by distance,
/// then by row of the library. Queries are documents, or bare fingerprints with --fingerprints. With
/// --verify or --threshold the matches are those that `pairs` has at that threshold, and the last column
/// is similarity, the highest first. A document with too little in it for a fingerprint matches only what is equal, at distance 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike search news.lib incoming.jsonl > matches.tsv
  lookalike search news.lib incoming.jsonl --threshold 0.8 --nearest 1 -o matches.parquet
  lookalike search pages.lib - --fingerprints < fingerprints.tsv")]
pub(crate) struct SearchArgs {
    /// The library
    #[arg(value_name = "LIB")]
    pub(crate) library: PathBuf,

    /// The queries: files, directories, globs, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The table of matches (.tsv, .csv, .jsonl or .parquet, the first three also .gz and .zst);
    /// without it, TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Rows that could not be used, byte for byte; of Parquet, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,

    /// The most bits that differ (≤), at most what the library was built for
    ///
    /// The default is what it was built for. With --threshold or --verify, only what is within this
    /// distance is compared; without it, all matches are found.
    #[arg(long, value_name = "K", help_heading = "Matching")]
    pub(crate) distance: Option<u32>,

    /// List only the nearest matches of a query, so many; ties go to the earlier rows
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        help_heading = "Matching"
    )]
    pub(crate) nearest: Option<usize>,

    /// List only the match of a query that was added first
    #[arg(long, conflicts_with_all = ["nearest", "limit"], help_heading = "Matching")]
    pub(crate) first: bool,

    /// List at most so many matches of a query, the nearest; a fourth column, truncated, is true where a
    /// query has more, and the summary says how many have
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        conflicts_with = "nearest",
        help_heading = "Matching"
    )]
    pub(crate) limit: Option<usize>,

    /// What is compared with a query
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t = Candidates::Distance,
        help_heading = "Matching"
    )]
    pub(crate) candidates: Candidates,

    /// Find all that are similar enough by this measure, as `pairs` finds them
    ///
    /// The default is distances; with --threshold, jaccard. For levenshtein, indel and lcs the library
    /// must store the texts.
    #[arg(long, value_enum, value_name = "MEASURE", help_heading = "Matching")]
    pub(crate) verify: Option<Verify>,

    /// With --verify levenshtein, indel or lcs: what edits and lengths are counted in
    ///
    /// The default is characters.
    #[arg(long, value_enum, value_name = "UNIT", help_heading = "Matching")]
    pub(crate) unit: Option<Unit>,

    /// Find all that are at least so similar (≥), above 0 and at most 1
    ///
    /// The default with --verify is 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        help_heading = "Matching"
    )]
    pub(crate) threshold: Option<Threshold>,

    /// The recipe that the queries have: a name (see `lookalike recipe`) or a TOML file; another one
    /// than the library's is refused
    ///
    /// The default is the library's.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Matching")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) bare: Bare,

    #[command(flatten)]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) running: Running,
}

/// Which fingerprints are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Candidates {
    /// Fingerprints within the distance
    Distance,
    /// All fingerprints that share one of distance + 1 equal blocks of bits, however far they are:
    /// for a check of the texts. A library must be built with --plan blocks
    Blocks,
}

/// Fingerprints instead of documents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Bare {
    /// The rows are fingerprints: lines with one each, or with an id, a tab and one (a first line
    /// `fingerprint`, or `id`, tab, `fingerprint`, is a header, which counts where rows are
    /// numbered); in JSONL, CSV and Parquet, the field `fingerprint`
    #[arg(long)]
    pub(crate) fingerprints: bool,

    /// The rows are fingerprints, in this field of JSONL, CSV, TSV or Parquet; numbers of JSON and
    /// Parquet are decimal
    #[arg(long, value_name = "FIELD", conflicts_with = "fingerprints")]
    pub(crate) fingerprint: Option<String>,

    /// How the fingerprints are written
    ///
    /// The default is hex.
    #[arg(long, value_enum, value_name = "DIGITS")]
    pub(crate) digits: Option<Notation>,
}

/// What a command tells.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct Telling {
    /// How many threads work; the default is one for each core. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = settings::parse_threads)]
    pub(crate) threads: Option<usize>,

    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// No summary on standard error: errors and warnings only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What is made of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SketchMethod {
    /// A SimHash fingerprint: similar texts differ in few bits
    Simhash,
    /// A MinHash signature: the share of equal numbers estimates the Jaccard index
    Minhash,
    /// The smallest hashes of the features, as many as the recipe has slots
    Bottomk,
    /// A name of the longest sentences
    Sentences,
}

/// How fingerprints are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Notation {
    /// Hexadecimal digits, one for four bits
    Hex,
    /// A whole number
    Decimal,
    /// A digit for every bit
    Binary,
}

/// Print a recipe: everything that decides how texts compare
///
/// Without an argument, lists the recipes that are built in. The TOML that is printed for one can
/// be changed and given to --recipe. Two recipes with different ids never compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike recipe words-3 > mine.toml
  lookalike dedup articles.jsonl -o unique.jsonl --recipe mine.toml")]
pub(crate) struct RecipeArgs {
    /// The name of a recipe, or a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,

    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// Fields of the recipe that are other than it says.
#[derive(Debug, Clone, Args)]
pub(crate) struct Changes {
    /// Change a field of the recipe, named as in its TOML, such as ngram=3, simhash.weights=tfidf
    /// or filter.stopwords=zh; lists and numbers as in TOML, files as seen from here. May be given
    /// many times
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Recipe")]
    pub(crate) set: Vec<String>,
}

/// What is read.
#[derive(Debug, Args)]
pub(crate) struct Sources {
    /// What to read: files, directories, globs, or - for standard input (taken for JSONL unless
    /// --format says otherwise)
    ///
    /// Known by their extensions are .jsonl, .ndjson, .json, .csv, .tsv, .tab, .parquet, .pq, .txt and
    /// .text, all but Parquet also with .gz or .zst. In directories other files are left out and told,
    /// hidden ones and those that begin with an underscore are not data.
    #[arg(value_name = "IN", required_unless_present = "explain_plan")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// Which texts match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct Rule {
    /// How candidates for a match are found
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Method::Auto)]
    pub(crate) method: Method,

    /// The least similarity that matches (≥), above 0 and at most 1
    ///
    /// The default is 0.75.
    #[arg(
        long,
        value_name = "T",
        value_parser = settings::parse_threshold,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: Option<Threshold>,

    /// With --method simhash: the most bits by which fingerprints of a candidate pair differ (≤),
    /// below the bits of the recipe's fingerprint (64)
    ///
    /// The default is 3.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// With --method simhash: which fingerprints are candidates
    ///
    /// The default is distance.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) candidates: Option<Candidates>,

    /// With --method sentences: how many of its longest sentences stand for a document
    ///
    /// The default is 3.
    #[arg(long, value_name = "N", value_parser = settings::parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// How texts become features: a name (see `lookalike recipe`) or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: Changes,

    /// What similarity means, and how candidates are checked
    ///
    /// Candidates share features: pairs that are similar by edits, substrings, cosine or containment
    /// and share fewer than a Jaccard index from which --explain-plan says that they are looked for
    /// are not compared.
    #[arg(long, value_enum, value_name = "MEASURE", default_value_t = Verify::Jaccard)]
    pub(crate) verify: Verify,

    /// With --verify levenshtein, indel or lcs: what edits and lengths are counted in
    ///
    /// The default is characters.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) unit: Option<Unit>,
}

/// What matches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct Matching {
    #[command(flatten)]
    pub(crate) rule: Rule,

    /// Match only documents with equal values of this field
    ///
    /// Rows where the field is missing or null are compared with one another. Values are equal as ids
    /// are: 1, 1.0 and "1" are one value, "1.0" is another.
    #[arg(long, value_name = "FIELD")]
    pub(crate) within: Option<String>,

    /// Match only documents that are at most so far apart in time: a number with the unit s, m, h,
    /// d or w, such as 90s, 15m, 36h, 2d, 1w; needs --time
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = settings::parse_duration,
        allow_hyphen_values = true,
        requires = "time"
    )]
    pub(crate) window: Option<f64>,

    /// The field with the time for --window: seconds since 1970 or an ISO 8601 date or date and
    /// time
    #[arg(long, value_name = "FIELD", requires = "window")]
    pub(crate) time: Option<String>,

    /// Show how candidates are found, the predicted recall and the memory a document takes; given
    /// inputs, predict from a sample of their rows (of at most a gigabyte) how many pairs will be
    /// compared, how many of these are false candidates, and memory and time of the run; then stop
    #[arg(long)]
    pub(crate) explain_plan: bool,
}

/// How candidates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Short documents by an exact join, all others by MinHash
    Auto,
    /// MinHash bands for all documents
    Minhash,
    /// SimHash fingerprints that differ in few bits
    Simhash,
    /// Only texts that are equal after normalisation
    Exact,
    /// An exact join of all documents, by all threads: finds every pair that shares enough features
    /// for the measure (--explain-plan says how many); slow for long texts
    Join,
    /// Documents whose longest sentences are the same
    Sentences,
    /// Bottom-k: documents that share one of the smallest hashes of their features
    Bottomk,
}

/// What similarity means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// Shared features by all features of both
    Jaccard,
    /// Shared features by the features of the smaller document
    Containment,
    /// The cosine of the features, weighted by how often they occur or by weights that were given
    Cosine,
    /// 1 − (insertions, deletions and substitutions) ÷ length of the longer text
    Levenshtein,
    /// 1 − (insertions and deletions) ÷ length of both texts
    Indel,
    /// Twice the length of the longest common substring ÷ length of both texts
    Lcs,
    /// No check: equal parts of the sketches (MinHash), 1 − distance/bits (SimHash), the estimate of
    /// the smallest hashes (bottomk), 1 for the same longest sentences
    None,
}

/// What edits and lengths are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Characters of the normalised text
    Characters,
    /// Tokens of the recipe: words, and characters of scripts written without spaces
    Words,
}

/// What inputs are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputFormat {
    /// The format of the inputs, whatever their extensions say
    #[arg(long, alias = "input-format", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
}

/// How inputs are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Reading {
    /// CSV and TSV without a header row: columns have the names 1, 2, …
    #[arg(long)]
    pub(crate) no_header: bool,

    /// The encoding of text formats, such as gb18030, big5 or shift_jis
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

    /// Plain text: one document a file, not one a line
    #[arg(long)]
    pub(crate) document_per_file: bool,

    /// The field with the text; several are joined by a line feed; a.b reaches into b of a
    ///
    /// The default is `text`. Plain text needs none. `dedup` and `pairs` refuse one of several that no
    /// document has.
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) text: Vec<String>,

    /// The field with the id of a document
    ///
    /// The default is `id` if the first row has it, else the number of the row: from 1 over all inputs,
    /// bad rows counted and empty lines, which are no rows, not. A number counts by its shortest digits,
    /// a string by its characters: 1, 1.0 and "1" are one id, "1.0" is another.
    #[arg(long, value_name = "FIELD", conflicts_with = "id_row")]
    pub(crate) id: Option<String>,

    /// Take the number of the row for the id, also where ids repeat
    #[arg(long)]
    pub(crate) id_row: bool,

    /// A field that holds the features already: a list of strings, or words parted by spaces
    ///
    /// With weights: an object of numbers, {"cat": 2, "mat": 1}, or a list with pairs,
    /// [["cat", 2], "mat"].
    #[arg(long, value_name = "FIELD")]
    pub(crate) features: Option<String>,

    /// The longest row accepted: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1Gi",
        value_parser = settings::parse_row_size
    )]
    pub(crate) max_row: u32,

    /// Where temporary files go: compressed input, standard input and Parquet take up their size
    /// there; the default is the system's directory for them
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
}

/// A format of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object a line
    Jsonl,
    /// A JSON list of objects, as .json files that begin with [ are taken for
    Json,
    /// Comma-separated values with quoting
    Csv,
    /// Tab-separated values without quoting
    Tsv,
    /// Apache Parquet
    Parquet,
    /// Plain text, a document a line
    Text,
}

/// Whether a run is to say what it has missed.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct AuditArgs {
    /// Estimate what the run misses: N documents are drawn and compared exactly with all that are read
    /// after them, and edited copies of some are put through the same plan. The summary gives recall
    /// and precision with their 95 % intervals
    ///
    /// Without a number about one in eighty is drawn, from 500 to 1,000; 1,000 where the size of the
    /// input is not known. The more are drawn, the narrower the intervals, and the longer the run takes.
    /// Of a compressed input fewer may be drawn, which is told, since it cannot be looked into before it
    /// is read.
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

    /// What draws the documents of the audit
    ///
    /// The default is 1.
    #[arg(long, value_name = "NUMBER", requires = "audit")]
    pub(crate) audit_seed: Option<u64>,
}

/// How a run goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct Running {
    /// Stop at the first bad row; `dedup` and `pairs` refuse repeated ids, which they only count
    /// otherwise
    #[arg(long)]
    pub(crate) strict: bool,

    /// How many threads work; the default is one for each core. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = settings::parse_threads)]
    pub(crate) threads: Option<usize>,

    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// No progress and no summary on standard error: errors and bad rows only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
