//! Arguments of `compare`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::shared::fingerprints::NotationArg;
use crate::commands::shared::inputs::{ReadingArgs, without_features};
use crate::commands::shared::matching::MatchRuleArgs;
use crate::commands::shared::recipes::FormTableArgs;
use crate::commands::shared::running::parse_threads;

/// Options about texts, which neither fingerprints nor hashes of features have.
const TEXT_OPTIONS: [&str; 24] = [
    "literal",
    "html",
    "top",
    "reworded",
    "method",
    "threshold",
    "candidates",
    "sentences",
    "recipe",
    "set",
    "forms",
    "verify",
    "unit",
    "format",
    "no_header",
    "encoding",
    "lossy",
    "document_per_file",
    "text",
    "id",
    "id_row",
    "max_row",
    "scratch",
    "threads",
];

/// Compare two texts and show every step and every similarity
///
/// Prints the normalised texts, the tokens, the heaviest features with their hashes and signed votes, the
/// sums, the bits, the positions in which the fingerprints differ, the estimates of MinHash, every
/// similarity, and the verdict with its reason. Markdown and HTML files are compared without their markup, and places
/// of passages are those of the file.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike compare --literal 'the cat sat on the mat' 'the cat sat on a mat'
  lookalike compare essay.docx source.html --html page.html
  lookalike compare posts.jsonl#17 posts.jsonl#24 --verify levenshtein --json
  lookalike compare --fingerprints --digits binary 10101 00110
  lookalike compare --hashes 'CSDN=100101:4 blog=101011:5' 'CSDN=100101:4 blog=101011:3'")]
pub(crate) struct CompareArgs {
    /// First text: a file with one document (plain text, Markdown, HTML, .docx, PDF, or one row), or FILE#ID or
    /// FILE:ROW for a document of a file
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
        conflicts_with_all = TEXT_OPTIONS
    )]
    pub(crate) fingerprints: bool,

    /// Take A and B as features with hashes and weights, TOKEN=BITS:WEIGHT, separated by spaces; shows the
    /// votes, their sums, the fingerprints and their distance
    ///
    /// The hashes have 1 to 128 binary digits, all the same number. A bit of the fingerprint is 1 if the sum
    /// of its votes is above 0, else 0. Without --distance it is 3, or one less than the bits if these are fewer
    /// than 4. Where the blocks cannot be equally wide, their widths differ by 1, for example 1, 2, 1 and 2 for 6
    /// bits.
    #[arg(
        long,
        help_heading = "Input",
        conflicts_with_all = TEXT_OPTIONS,
        conflicts_with = "fingerprints"
    )]
    pub(crate) hashes: bool,

    /// Notation of the fingerprints
    ///
    /// Default: hex. The width follows from the digits of the longer fingerprint; in decimal it is 64 or 128
    /// bits. Without --distance it is 3, or one less than the bits if these are fewer than 4. Where the blocks cannot
    /// be equally wide, their widths differ by 1, for example 1, 2, 1 and 2 for 6 bits.
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

    /// Also find reworded passages: many of the same rarer words close together, in whatever order, but few runs of
    /// equal words
    #[arg(long, help_heading = "Output")]
    pub(crate) reworded: bool,

    /// Print one JSON object instead of text, with all features and the votes of the 1,000 heaviest
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Also write an HTML page with the comparison
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rule: MatchRuleArgs,

    #[command(flatten)]
    pub(crate) forms: FormTableArgs,

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
