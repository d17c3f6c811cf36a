//! Writing: outputs that appear under their name only when they are complete.

mod annotate;
mod atomic;
mod bytes;
mod kept;
mod ordered;
mod parquet;
mod prepared;
mod stream;
mod table;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::Result;

pub(crate) use atomic::ProvisionalDirectory;
pub use atomic::{AtomicFile, abandon_all};
pub use bytes::{ByteWriter, check_output};
pub use kept::{check_kept, prepare_kept};
pub use prepared::{Prepared, commit_all};
pub(crate) use table::tsv_value;
pub use table::{Cell, Column, TableRows, TableWriter, check_table};

/// Where an output goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Output {
    /// A file, whose extension decides format and compression; for kept rows also a directory (one
    /// that exists, or a path with a trailing slash), which mirrors the inputs.
    Path(PathBuf),
    /// Standard output, uncompressed.
    Stdout,
    /// A table in memory. Kept rows are there by `row`, their number from 0, with what is added to
    /// them.
    Memory(Collected),
}

/// The batches of a table that is written to memory, for all who hold it.
#[derive(Debug, Clone, Default)]
pub struct Collected(Arc<Mutex<Option<Held>>>);

/// The columns of a table and its batches.
type Held = (SchemaRef, Vec<RecordBatch>);

impl Collected {
    /// Takes the columns and the batches out; none if no table was begun.
    pub fn take(&self) -> Option<Held> {
        self.held().take()
    }

    fn begin(&self, schema: &SchemaRef) {
        *self.held() = Some((Arc::clone(schema), Vec::new()));
    }

    fn extend(&self, batches: Vec<RecordBatch>) {
        if let Some((_, all)) = &mut *self.held() {
            all.extend(batches);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two are equal if they are one.
impl PartialEq for Collected {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Collected {}

impl Hash for Collected {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Output {
    /// Whether this is a file that appears when it is complete: no device and no pipe, which would
    /// have to take back what was written too early.
    pub(crate) fn appears_complete(&self) -> bool {
        match self {
            Self::Path(path) => {
                std::fs::metadata(path).map_or(true, |it| it.is_file() || it.is_dir())
            }
            Self::Stdout | Self::Memory(_) => false,
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Stdout => f.write_str("standard output"),
            Self::Memory(_) => f.write_str("a table in memory"),
        }
    }
}

/// The rows of a run, in input order.
pub trait RowSet: Sync {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the row at `index` is, as parsing gave it.
    fn place(&self, index: usize) -> crate::source::Place;

    /// The number of the row over all inputs, as parsing gave it.
    fn number(&self, index: usize) -> u64;

    /// Whether the row is to be written. May wait until that is known: rows are asked for from the
    /// first to the last, but for some that are known already.
    fn kept(&self, index: usize) -> bool;
}

/// What is added to a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// The value of the field `cluster`.
    pub cluster: String,
    /// The value of `duplicate_of`; `None` is null, or an empty cell.
    pub duplicate_of: Option<String>,
    /// The value of `similarity`; `None` is null, or an empty cell.
    pub similarity: Option<f64>,
}

/// How kept rows are written.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// Adds fields to each row that is written, by the row's index in the [`RowSet`].
    pub annotate: Option<&'a (dyn Fn(usize) -> Result<Annotation> + Sync)>,
    /// How many threads may work, from 1.
    pub threads: usize,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes, compressed if the output is.
    pub bytes: u64,
}
