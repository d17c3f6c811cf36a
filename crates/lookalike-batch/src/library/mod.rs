//! A library: fingerprints in a directory, to be searched within a Hamming distance, and documents
//! to be searched by a threshold of similarity.
//!
//! What belongs to it is said by its [manifest](Manifest): its recipe, how far it can be asked, and
//! its segments. A segment is some files that never change: an index of fingerprints (of
//! [`lookalike::hamming`]), ids, texts if they are wanted, the rows that are gone, and of documents
//! records, postings and signatures, from which the candidates of any match plan follow. Adding makes a
//! new segment and merges it with those before that are not more than twice as large, so there are
//! few and every row is written a few times; removing marks rows, which are dropped when their
//! segment is written again.
//!
//! **What it guarantees.** Files are complete and on disk before the manifest names them, and the
//! manifest is replaced by renaming: a process that ends, or a machine that stops, leaves the library
//! as it was before or as it is after. What an interrupted writer leaves is removed by the next.
//! There is one writer at a time, others are refused; readers are never in its way and see one state
//! or the next. Everything read is checked against a checksum first.
//!
//! **What it costs.** Opening reads and checks the indexes, and of ids and texts only what is asked
//! for. Adding and removing look through all ids once.
//!
//! A document too poor for a fingerprint (see [`State`](lookalike::text::State)) is a row like any
//! other and matches what is equal to it; an empty one is left out and counted.
//!
//! **What it does not do.** It has no clock: a window of time is for the service.

mod add;
mod directory;
mod ids;
mod inspect;
mod manifest;
mod matches;
mod numbers;
mod paged;
mod poor;
mod postings;
mod records;
mod remove;
mod removed;
mod rows;
mod search;
mod segments;
mod texts;

use lookalike::Recipe;
use serde::Serialize;

use crate::digits::Digits;
use crate::source::ReadOptions;

pub use add::{add, build};
pub use inspect::{Info, SegmentInfo, Verified, info, verify};
pub use manifest::Manifest;
pub use remove::{RemoveSummary, remove};
pub use search::{Candidates, Check, SearchSettings, SearchSummary, Which, search};

/// What the rows of an input are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entries {
    /// Documents, whose fingerprints are made under the recipe of the library.
    Documents,
    /// Lines with a fingerprint, and before it an id and a tab if rows have ids. A first line whose
    /// fingerprint is `fingerprint` is a header.
    Lines(Digits),
    /// Rows with a fingerprint in a field. A number of JSON or Parquet is decimal in any case.
    Field(Digits, String),
}

/// How rows are read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// What the rows are.
    pub entries: Entries,
    /// How inputs are read.
    pub options: ReadOptions,
    /// Stop at the first bad row.
    pub strict: bool,
    /// How many threads work, from 1.
    pub threads: usize,
}

/// What a new library is to be.
#[derive(Debug, Clone)]
pub struct BuildSettings {
    /// The recipe of the fingerprints; needed for documents.
    pub recipe: Option<Recipe>,
    /// Bits of a fingerprint; those of the recipe if there is one.
    pub bits: u32,
    /// The largest distance that can be asked for.
    pub distance: u32,
    /// The name of a plan, as [`Plan::named`](lookalike::hamming::Plan::named) knows it.
    pub plan: String,
    /// The most bytes that the indexes may take together.
    pub memory: Option<u64>,
    /// Whether the texts are stored.
    pub texts: bool,
    /// `true` if the library is to be searched by distances only: nothing is stored by which thresholds
    /// and measures could be searched. Bare fingerprints have nothing of the kind.
    pub distance_only: bool,
    /// Whether a library that is there already is replaced.
    pub replace: bool,
}

/// What building or adding has done.
#[derive(Debug, Clone, Serialize)]
pub struct AddSummary {
    /// Rows added.
    pub added: u64,
    /// Those of them that are too poor for a fingerprint: they match what is equal.
    pub poor: u64,
    /// Documents without any text, and rows without a fingerprint, left out.
    pub without: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input as they were read (decompressed).
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// What the library is now.
    pub library: Info,
}

/// Calls a function that is generic over the number of a fingerprint.
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
