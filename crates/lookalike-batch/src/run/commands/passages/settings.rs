//! Settings and summary of a passages run.

use std::path::PathBuf;
use std::sync::Arc;

use lookalike::passages::{PassageBudget, PassageSettings};
use lookalike_comparison::shared_passages::source_token_bytes;
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::RowSource;
use lookalike_options::boilerplate_limit::BoilerplateLimit;
use serde::Serialize;

use crate::index::indexed_passages::IndexedPassages;
use crate::run::commands::summary::SpilledData;
use crate::run::report::ReportOutput;
use crate::run::settings::RunSettings;

/// The unit of positions in the table of passages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Characters (code points).
    #[default]
    Characters,
    /// Bytes of UTF-8, into which other encodings are converted.
    Bytes,
}

impl OffsetUnit {
    /// All units.
    pub const ALL: [Self; 2] = [Self::Characters, Self::Bytes];

    /// Returns the name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Characters => "characters",
            Self::Bytes => "bytes",
        }
    }
}

/// The order of the table of passages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassageOrder {
    /// Order of documents, then of sources, then of positions.
    #[default]
    Position,
    /// The longest passages first.
    Longest,
    /// First the documents that have most text of one source.
    Copied,
}

impl PassageOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Position, Self::Longest, Self::Copied];

    /// Returns the name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Position => "position",
            Self::Longest => "longest",
            Self::Copied => "copied",
        }
    }
}

/// Characters of a text that a summary shows.
pub const SHOWN_PASSAGE_CHARACTERS: usize = 2000;

/// Settings of a passages run.
#[derive(Debug, Clone)]
pub struct PassageRunSettings {
    /// The rows that are read, and the limits of the run. Of its recipe only the normalisation has an effect: it
    /// determines which tokens are equal. Its `within` and `window` are those of a document and its source.
    pub reading: RunSettings,
    /// Shortest length of a passage.
    pub passages: PassageSettings,
    /// In how many documents a gram may be.
    pub max_documents: BoilerplateLimit,
    /// Texts that all documents were given, which are no part of any passage.
    pub base: RowSource,
    /// An index on disk whose texts are the possible sources, instead of other documents.
    pub index: Option<PathBuf>,
    /// The unit of positions. Those in a document file are of the file, or of the extracted text of `.docx` and PDF.
    pub offsets: OffsetUnit,
    /// The order of the table.
    pub order: PassageOrder,
    /// Number of passages and of pairs of documents that the summary describes.
    pub described: usize,
    /// Most characters of the common text that the summary has: [`SHOWN_PASSAGE_CHARACTERS`] where people read it, and all where a
    /// client leaves the text out of the next search.
    pub common_characters: usize,
    /// Limits on the work; `None` allows any.
    pub limits: Option<PassageRunLimits>,
}

/// Limits on the work of a run, which a service sets for its clients.
#[derive(Debug, Clone)]
pub struct PassageRunLimits {
    /// The steps of all threads, and the bytes of memory that a thread may use for a document and its source.
    pub budget: Arc<PassageBudget>,
    /// Bytes of memory of all rows that the run returns.
    pub max_row_bytes: usize,
    /// `true` if a run beyond the limits ends with what it has found, and `false` if it fails.
    pub allows_partial: bool,
}

impl PassageRunSettings {
    /// Returns how many tokens a text may have within the limits of the run.
    pub(super) fn max_tokens(&self) -> usize {
        let limits = self.limits.as_ref();
        limits.map_or(usize::MAX, |limits| {
            limits.budget.max_bytes() / source_token_bytes(self.passages)
        })
    }

    /// Returns the settings for an index: its recipe, and passages that are at least as long as it can find.
    pub(super) fn with_index(&self, index: Option<&IndexedPassages>) -> Result<Self> {
        let Some(index) = index else {
            return Ok(self.clone());
        };
        if self.passages.finds_reworded() {
            return Err(Error::usage_error(
                "an index of passages knows runs of words only, and no reworded passages: give the sources themselves, \
                 or leave the reworded ones out"
                    .to_owned(),
            ));
        }
        let (indexed_words, min_words) = (
            index.passage_settings().min_words(),
            self.passages.min_words(),
        );
        if min_words < indexed_words {
            return Err(Error::usage_error(format!(
                "the index finds passages of at least {indexed_words} words, not of {min_words}: build it for \
                 shorter ones"
            )));
        }
        let mut settings = self.clone();
        settings.reading.recipe = index.recipe().clone();
        Ok(settings)
    }
}

/// Outputs of a passages run.
#[derive(Debug, Clone)]
pub struct PassageOutputs {
    /// A table of passages: `document, source, start, end, source_start, source_end, length, similarity, kind`;
    /// `None` writes none.
    pub passages: Option<OutputTarget>,
    /// The rejected rows, byte for byte. A document file that cannot be read is a line of JSON with its reason.
    pub rejected: Option<OutputTarget>,
    /// A directory for the texts of `.docx` and PDF files, in which positions count.
    pub extracted: Option<PathBuf>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
}

/// The result of a passages run.
#[derive(Debug, Clone, Serialize)]
pub struct PassagesSummary {
    /// Documents that were searched for passages.
    pub documents: u64,
    /// Documents of `--against`.
    pub against: u64,
    /// Passages found.
    pub passages: u64,
    /// Pairs of a document and a source with at least one passage.
    pub pairs: u64,
    /// Documents with at least one passage.
    pub copying: u64,
    /// `true` if it is known which of two documents is the source: by times, or because sources were given. Otherwise it is
    /// the one that was read first, which says nothing.
    pub directed: bool,
    /// Documents that share a passage with another one: `copying` if the direction is known, otherwise with the sources.
    pub sharing: u64,
    /// Words and single characters of the documents that lie in passages.
    pub copied_tokens: u64,
    /// Words and single characters among these that lie in reworded passages alone.
    pub reworded_tokens: u64,
    /// Words and single characters of the documents.
    pub tokens: u64,
    /// Grams that are in too many documents.
    pub boilerplate: BoilerplateSummary,
    /// Text that all documents were given (`--base`), and was left out.
    pub base: BaseSummary,
    /// The longest text that more than half of all documents have, and at least three; often it is one that all were
    /// given.
    pub common: Option<CommonPassage>,
    /// The longest passages, longest first.
    pub longest: Vec<DescribedPassage>,
    /// The pairs of a document and a source that share most text, first the one that shares most.
    pub most_copied: Vec<CopiedPair>,
    /// Documents that have the id of an earlier one.
    pub repeated_ids: u64,
    /// Rows that could not be used, and files that could not be read.
    pub rejected: u64,
    /// Document files among them.
    pub unreadable_files: u64,
    /// Files of given directories that were not read, because their kind is none that is read.
    pub skipped_files: u64,
    /// The first of both, at most 100, each with its reason.
    pub unreadable: Vec<UnreadableFile>,
    /// Documents that were read in an encoding that their bytes look like, because no option states it.
    pub guessed_encodings: Vec<GuessedFiles>,
    /// Texts of `.docx` and PDF files that were written.
    pub extracted_texts: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Bytes of memory of the index.
    pub index_bytes: u64,
    /// The data of the run that went to temporary files, if the index did not fit into the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<SpilledData>,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Smallest number of words of a passage.
    pub min_words: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// A document file that could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct UnreadableFile {
    /// Its name.
    pub file: String,
    /// A phrase that says why.
    pub reason: String,
}

/// Documents that were read in one encoding that was guessed.
#[derive(Debug, Clone, Serialize)]
pub struct GuessedFiles {
    /// Name of the encoding, as `--encoding` takes it.
    pub encoding: String,
    /// Number of documents.
    pub files: u64,
    /// Name of the first one.
    pub first: String,
    /// Names of the first ones, up to twenty of the documents and of the sources.
    pub names: Vec<String>,
}

/// Grams that led to no passage because too many documents have them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BoilerplateSummary {
    /// Largest number of documents that may share a gram; `None` without a limit.
    pub max_documents: Option<u32>,
    /// Distinct grams in more documents.
    pub grams: u64,
    /// Searched documents with at least one such gram.
    pub documents: u64,
    /// The most frequent grams.
    pub examples: Vec<BoilerplateExample>,
}

/// Text that was left out because all documents were given it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BaseSummary {
    /// Base texts.
    pub texts: u64,
    /// Searched documents that have something of them.
    pub documents: u64,
    /// Words and single characters of the documents that stand in a base text.
    pub tokens: u64,
    /// Unit of the tokens: `words`, or `characters` if most of the base text is of a script without spaces.
    #[serde(skip)]
    pub unit: &'static str,
    /// Base texts of which nothing is left out, because they are shorter than five words (ten characters).
    #[serde(skip_serializing_if = "is_zero")]
    pub short_texts: u64,
    /// The names of the first of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A text that more than half of all documents have.
#[derive(Debug, Clone, Serialize)]
pub struct CommonPassage {
    /// Its text in one of them, at most as many characters of it as the settings say.
    pub text: String,
    /// Its length in characters.
    pub characters: usize,
    /// Number of documents that have it.
    pub documents: u64,
}

/// A gram that is in too many documents.
#[derive(Debug, Clone, Serialize)]
pub struct BoilerplateExample {
    /// Its text in the first of these documents.
    pub text: String,
    /// Number of documents that have it.
    pub documents: u32,
}

/// A passage with its texts.
#[derive(Debug, Clone, Serialize)]
pub struct DescribedPassage {
    /// Id of the document.
    pub document: String,
    /// Id of the source.
    pub source: String,
    /// First line of the passage in the document, from 1.
    pub line: usize,
    /// First line of the passage in the source, from 1.
    pub source_line: usize,
    /// Words and single characters of the document's part.
    pub length: usize,
    /// Unit of the length: `words`, or `characters` if most of them are characters of a script without spaces.
    pub unit: &'static str,
    /// Share of equal tokens of both parts.
    pub similarity: f64,
    /// `verbatim`, `edited` or `reordered`.
    pub kind: &'static str,
    /// The document's part, at most 2,000 characters of it.
    pub text: String,
    /// The source's part, at most 2,000 characters of it.
    pub source_text: String,
}

/// A document and a source with passages in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopiedPair {
    /// Id of the document.
    pub document: String,
    /// Id of the source.
    pub source: String,
    /// Number of passages.
    pub passages: u64,
    /// Words and single characters of the document that lie in passages.
    pub copied: usize,
    /// Words and single characters among these that lie in reworded passages alone.
    pub reworded: usize,
    /// Unit of the lengths: `words`, or `characters` if most of them are characters of a script without spaces.
    pub unit: &'static str,
    /// Share of the document's words and characters.
    pub share: f64,
    /// Share of the source's words and characters that lie in passages.
    pub source_share: f64,
    /// Length of the longest passage.
    pub longest: usize,
}
