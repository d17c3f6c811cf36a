//! Settings of a run that learns document frequencies.

use std::path::PathBuf;

use lookalike::Recipe;
use lookalike_io::source::ReadOptions;

use crate::memory::MemoryLimit;

/// Settings of a run that learns document frequencies.
#[derive(Debug, Clone)]
pub struct IdfSettings {
    /// Determines how texts become terms.
    pub recipe: Recipe,
    /// Smallest number of documents of a term in the table, from 1.
    pub least_documents: u64,
    /// Largest number of terms in the table; the most frequent ones are kept.
    pub top: Option<usize>,
    /// Tables of the same recipe whose counts are added.
    pub merge: Vec<PathBuf>,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
    /// Limit on the memory of the process; `None` keeps everything in memory. The result does not depend on it.
    pub memory: Option<MemoryLimit>,
}
