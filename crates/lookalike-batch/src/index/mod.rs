//! An index: a directory of fingerprints and documents, searchable by Hamming distance and by
//! similarity.
//!
//! ```text
//! manifest                  recipe, limits, segments and their files; replaced by renaming
//! lock                      held by the only writer
//! 00000001.table            a file that the recipe names
//! 00000002.codes            Hamming index of a segment's fingerprints (see lookalike::hamming)
//! 00000002.ids              ids, unless rows are numbered
//! 00000002.texts            texts, compressed, if they are stored
//! 00000002.unfingerprinted  hashes of the texts that have no fingerprint
//! 00000002.records          documents in the form in which thresholds and measures compare them
//! 00000002.signatures       signatures of the long documents among the records
//! 00000002.postings         rows of the records by bucket key
//! 00000002.grams            rows of each gram, if passages can be found
//! 00000003.tombstones       tombstones of a segment
//! ```
//!
//! Files are numbered in the order in which they are written. All files of a segment but its tombstones have the same
//! number.
//!
//! A segment is a set of files that never change. Adding rows writes a new segment and merges it with
//! the segments before it that are at most twice as large. So there are few segments, and each row is
//! written only a few times. Removing rows writes tombstones; the rows themselves disappear when their
//! segment is rewritten, at the latest by compaction. A run that removes near-duplicates can add what it keeps; see
//! `run_index`.
//!
//! Guarantees:
//! * All files are complete and on disk before the [manifest](IndexManifest) names them. After a crash of
//!   the process or the machine the index is as it was before the change or as it is after it. The next
//!   writer removes what an interrupted writer has left.
//! * There is one writer at a time; others are refused. Writers never block readers, and a reader sees
//!   the index either before or after a change.
//! * All data are verified against a checksum before they are used.
//!
//! Cost: opening reads and verifies the Hamming indexes; ids and texts are read when they are needed.
//! Adding and removing read all ids once.
//!
//! A text that is too short for a fingerprint, or has only symbols (see
//! [`TextState`](lookalike::text::TextState)), is a row like any other and matches texts that are equal to it.
//! An empty text is left out and counted.
//!
//! An index has no notion of time; time windows are a feature of the service.
//!
//! | module | has |
//! |---|---|
//! | `build`, `remove`, `compact` | the changes of an index |
//! | `search`, `export`, `inspect`, `stored_document` | the uses that leave it as it is: search, export of fingerprints, description, verification, a single document |
//! | `run_index`, `indexed_passages` | an index beside a run that removes near-duplicates, or that searches for passages |
//! | `directory`, `manifest`, `segments` | the directory and its lock, the list of files, and the files of each segment |
//! | `row_fingerprints`, `number_files`, `row_batches`, `row_numbers`, `repeated_ids` | new rows: their fingerprints, binary inputs, the way to the files, those without ids, ids that occur again |
//! | `memory_measuring`, `build_space`, `spill_buffer` | the memory of a build: planned, shared out, and the temporary files beyond it |
//! | `match_finder`, `containment` | search with a match plan; its candidates by containment |
//! | `ids`, `texts`, `unfingerprinted`, `records`, `postings`, `grams`, `tombstones` | one kind of file each |
//! | `row_set` | a set of rows, for example of removed ones |
//! | `paged` | the pages of these files, which are verified on first use |

mod build;
mod build_space;
mod compact;
mod containment;
mod counted_rows;
pub(crate) mod counts;
mod directory;
mod export;
mod grams;
mod ids;
pub(crate) mod indexed_passages;
mod inspect;
pub(crate) mod manifest;
mod match_finder;
mod memory_measuring;
mod number_files;
mod paged;
mod postings;
mod records;
mod remove;
mod repeated_ids;
mod row_batches;
mod row_fingerprints;
mod row_numbers;
mod row_set;
pub(crate) mod run_index;
mod search;
mod segments;
mod spill_buffer;
mod stored_document;
mod texts;
mod tombstones;
mod unfingerprinted;

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_io::source::ReadOptions;
use lookalike_options::fingerprint_notation::FingerprintNotation;
use serde::Serialize;

use crate::memory::MemoryLimit;

pub use crate::memory::build_plan::BuildPlan;
pub use build::{add_to_index, build_index};
pub use compact::{CompactSummary, compact_index};
pub use counted_rows::{CountsSummary, write_counts};
pub use export::{ExportedFingerprints, export_fingerprints};
pub use inspect::{
    IndexInfo, SegmentInfo, VerifySummary, index_info, index_recipe, min_passage_words,
    verify_index,
};
pub use manifest::IndexManifest;
pub use remove::{RemoveSummary, remove_from_index};
pub use run_index::{RunIndexSettings, RunIndexSummary};
pub use search::{
    ListedMatches, SearchCandidates, SearchSettings, SearchSummary, TextCheck, search_index,
};
pub use stored_document::{StoredDocument, find_stored_document};

/// The content of an input's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowContent {
    /// Documents. Their fingerprints are made with the recipe of the index.
    Documents,
    /// Lines with a fingerprint, preceded by an id and a tab if rows have ids. If the fingerprint of
    /// the first line is the word `fingerprint`, that line is a header.
    Lines(FingerprintNotation),
    /// Rows with a fingerprint in a field. A JSON or Parquet number is always read as decimal.
    Field(FingerprintNotation, String),
    /// Little-endian integers of 64 bits: one-dimensional arrays of NumPy (`.npy`), and files of nothing else
    /// (`.u64`). Their rows have no ids, and only builds and additions read them.
    Numbers,
}

/// Options of reading rows.
#[derive(Debug, Clone)]
pub struct IndexReadOptions {
    /// The content of the rows.
    pub content: RowContent,
    /// Options of reading the inputs.
    pub read: ReadOptions,
    /// `true` to stop at the first bad row.
    pub strict: bool,
    /// Number of threads, from 1.
    pub threads: usize,
    /// Largest memory of the process while it builds or adds, in bytes. Temporary files in
    /// the directory of the index take the rest. The index does not depend on the limit. Searches do not use it.
    pub memory: Option<MemoryLimit>,
}

/// Settings of a new index.
#[derive(Debug, Clone)]
pub struct BuildSettings {
    /// The recipe of the fingerprints; required for documents.
    pub recipe: Option<Recipe>,
    /// Bits of a fingerprint; must be those of the recipe, if there is one.
    pub bits: u32,
    /// Largest distance that a search can ask for.
    pub distance: u32,
    /// The name of a Hamming plan, as [`HammingPlan::from_name`](lookalike::hamming::HammingPlan::from_name) defines it.
    pub plan: String,
    /// Largest size of all Hamming indexes together, in bytes.
    pub index_memory: Option<u64>,
    /// `true` if the texts are stored.
    pub texts: bool,
    /// `true` if the index is searched only by distances. Records for thresholds and measures are then
    /// not stored. Bare fingerprints never have such records.
    pub distance_only: bool,
    /// Shortest length of a passage, if passages of the texts can be found. Needs `texts`.
    pub passages: Option<PassageSettings>,
    /// `true` if an existing index is replaced.
    pub replace: bool,
}

/// The result of building an index or adding to it.
#[derive(Debug, Clone, Serialize)]
pub struct AddSummary {
    /// Rows added.
    pub added: u64,
    /// Added rows without a fingerprint, which match only equal texts.
    pub unfingerprinted: u64,
    /// Rows with the id of an earlier row or of a row that was in the index before.
    pub repeated_ids: u64,
    /// Rows left out because their text is empty or no fingerprint is given.
    pub empty: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Bytes that were written to temporary files, because they did not fit into the memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub spilled_bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// The index after the change.
    pub index: IndexInfo,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Calls a function that is generic over the integer type of a fingerprint.
macro_rules! by_width {
    ($bits:expr, $function:ident($($argument:expr),* $(,)?)) => {
        if $bits <= 64 {
            $function::<u64>($($argument),*)
        } else {
            $function::<u128>($($argument),*)
        }
    };
}
use by_width;
