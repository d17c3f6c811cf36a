//! Outputs, which appear under their name only when they are complete.

mod annotate;
mod arrow_rows;
mod arrow_writer;
mod atomic;
mod byte_writer;
mod column_rows;
mod conversion;
mod cut_text;
mod extracted_texts;
mod json_columns;
mod json_lines;
mod json_rows;
mod json_types;
mod json_value;
mod kept_rows;
mod output_journal;
mod output_stream;
mod parquet_rows;
mod parquet_writer;
mod recorded_uploads;
mod staged_output;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::Result;

pub use atomic::ProvisionalDirectory;
pub use atomic::{AtomicFile, abandon_all, parent_directory, sync_parent};
pub use byte_writer::{ByteWriter, check_output};
pub use cut_text::LeftOutText;
pub use extracted_texts::ExtractedTextWriter;
pub use kept_rows::{EmptiedOutput, check_beside, check_kept, find_emptied, prepare_kept};
pub use recorded_uploads::{RecordedUploads, find_written_object, is_record_file};
pub use staged_output::{StagedOutput, commit_all};
pub use table::escape_tsv;
pub use table::{TableCell, TableColumn, TableRows, TableWriter, check_table};

/// The destination of an output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OutputTarget {
    /// A file or the URL of an object (`s3://`, `gs://`, `az://`), whose extension decides the format and
    /// compression. For kept rows it may also be a directory, either an existing one or a path or URL with a
    /// trailing slash, which then mirrors the inputs.
    Path(PathBuf),
    /// Standard output, uncompressed.
    Stdout,
    /// A table in memory. Kept rows appear in it as their number `row`, from 0, with the added fields.
    Memory(CollectedTable),
}

/// The batches of a table that is written to memory. Clones share the same table.
#[derive(Debug, Clone, Default)]
pub struct CollectedTable(Arc<Mutex<Option<HeldBatches>>>);

/// The columns of a table and its batches.
type HeldBatches = (SchemaRef, Vec<RecordBatch>);

impl CollectedTable {
    /// Takes the schema and the batches out; `None` if no table was started.
    pub fn take_batches(&self) -> Option<HeldBatches> {
        self.lock_batches().take()
    }

    fn begin_table(&self, schema: &SchemaRef) {
        *self.lock_batches() = Some((Arc::clone(schema), Vec::new()));
    }

    fn extend_batches(&self, batches: Vec<RecordBatch>) {
        if let Some((_, all)) = &mut *self.lock_batches() {
            all.extend(batches);
        }
    }

    fn lock_batches(&self) -> MutexGuard<'_, Option<HeldBatches>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two values are equal if they share the same table.
impl PartialEq for CollectedTable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CollectedTable {}

impl Hash for CollectedTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl OutputTarget {
    /// Returns `true` if the output is a file that appears only when it is complete. A device or a pipe
    /// does not: bytes once written to it cannot be withdrawn.
    pub fn appears_only_when_complete(&self) -> bool {
        match self {
            Self::Path(path) => std::fs::metadata(path)
                .map_or(true, |metadata| metadata.is_file() || metadata.is_dir()),
            Self::Stdout | Self::Memory(_) => false,
        }
    }
}

impl fmt::Display for OutputTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Stdout => f.write_str("standard output"),
            Self::Memory(_) => f.write_str("a table in memory"),
        }
    }
}

/// The rows of a run, in input order.
pub trait OutputRows: Sync {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns `true` if there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the place of the row at `index`, as the parser gave it.
    fn place_of(&self, index: usize) -> crate::source::RowPlace;

    /// Returns the number of the row over all inputs, as the parser gave it.
    fn row_number(&self, index: usize) -> u64;

    /// Returns `true` if the row is to be written. May block until the verdict is known. Callers ask in
    /// ascending order, except for rows whose verdict is already known.
    fn is_kept(&self, index: usize) -> bool;
}

/// A value of an added field.
#[derive(Debug, Clone, PartialEq)]
pub enum AddedValue {
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// An integer.
    Integer(u64),
    /// A list of strings; its JSON in formats that have no lists.
    Texts(Vec<String>),
    /// A JSON value: a value in JSON, a string elsewhere.
    Json(String),
    /// Null, or an empty cell.
    Null,
}

/// The name and the type of an added field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedField {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its type in tables with types.
    pub kind: AddedKind,
}

/// The type of an added field in tables with types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedKind {
    /// A string.
    Text,
    /// A double.
    Number,
    /// An integer of 64 bits.
    Integer,
    /// A list of strings.
    Texts,
}

/// Fields that are added to every row.
pub struct AddedFields<'a> {
    /// The fields, in their order.
    pub fields: &'a [AddedField],
    /// Returns a value for each field, by the row's index in the [`OutputRows`].
    pub values: &'a (dyn Fn(usize) -> Result<Vec<AddedValue>> + Sync),
}

impl AddedFields<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }
}

/// The changes that are made to rows when they are written.
#[derive(Clone, Copy, Default)]
pub enum RowChange<'a> {
    /// Rows stay as they are.
    #[default]
    Unchanged,
    /// Fields are added to every row.
    AddFields(&'a AddedFields<'a>),
    /// Parts of the text are left out, by the row's index in the [`OutputRows`]; `None` leaves a row as it is.
    /// The text must be a single field. An error ends the writing.
    CutText(&'a (dyn Fn(usize) -> Result<Option<LeftOutText>> + Sync)),
}

impl<'a> RowChange<'a> {
    fn added_fields(self) -> Option<&'a AddedFields<'a>> {
        match self {
            Self::AddFields(fields) => Some(fields),
            Self::Unchanged | Self::CutText(_) => None,
        }
    }

    fn is_unchanged(self) -> bool {
        matches!(self, Self::Unchanged)
    }
}

/// Options of writing kept rows.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// The changes of rows.
    pub change: RowChange<'a>,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// The amount of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenOutput {
    /// Rows written.
    pub rows: u64,
    /// Bytes written, after compression.
    pub bytes: u64,
}
