//! Readers: files, directories, globs, objects of stores and standard input as one sequence of rows.
//!
//! [`InputSet`] opens all inputs once. It hands out *blocks* of whole rows, in input order, to any number
//! of threads ([`InputSet::next_block`]). A block holds about 1 MiB. Work that needs the input order
//! (reading, decompressing, dividing Parquet and Arrow files into portions, cutting at row ends, counting rows)
//! runs under one lock while a block is handed out. Work that needs no order (checking the encoding,
//! decoding Parquet and Arrow, parsing, unescaping) runs in [`InputSet::parse_block`] without the lock. Buffers are
//! pooled, so memory stays at a few blocks per thread, or at a few times the longest row if that is
//! more.
//!
//! # Rows
//!
//! * **JSONL**: each line holds one JSON object, in the syntax that `serde_json` accepts. If an object
//!   repeats a key, the last value counts. The path `a.b` reaches the field `b` of the object `a`, or of each object
//!   of the list `a`: their values are joined by line feeds. A field that is itself named `a.b` has priority. A text
//!   that is a list of strings is these strings, joined by line feeds.
//! * **JSON list**: each element of a list of objects is a row. A `.json` file that begins with `[` is
//!   read this way. A row keeps its bytes, except for line breaks between values and the white space
//!   after them.
//! * **CSV**: RFC 4180. A quoted field may contain delimiters, quotes and line ends. A quote that does
//!   not open a field is literal. A row ends at a line feed, with or without a carriage return before
//!   it.
//! * **TSV**: no quoting. Every tab separates fields, every line feed ends a row, and `"` is an
//!   ordinary character. Real streams of titles contain thousands of unpaired quotes, and an RFC 4180
//!   parser would swallow the rows between two of them.
//! * **Text**: one document per line, or one document per file.
//! * **Document files** ([`ReadOptions::document_files`]): one document per file, as in
//!   [`lookalike_documents`]. A file without text that can be read is one bad row, and its place is empty.
//! * **Parquet** and **Arrow** (IPC files and streams): string columns (plain, large, view or dictionary) and binary
//!   columns are text. A binary value that is not UTF-8 makes its row a bad row. The path `a.b` reaches into structs and
//!   lists of structs, as in JSON.
//!
//! An empty line, or a line with only a carriage return, is not a row. A byte order mark at the start
//! of an input is skipped. An input that begins with the byte order mark of UTF-16 is converted to UTF-8 while it is read,
//! unless another encoding is stated; kept rows of it are written in UTF-8. The last line is a row even if no line feed ends it.
//!
//! A row that cannot be used is reported as a [`BadRow`] with its place and the reason; it is never
//! skipped in silence. A row over the limit is such a row, and is skipped
//! without being in memory. A fault that makes the rest of an input unreadable (a truncated archive, a
//! missing column) is an [`Error`](crate::error::Error).
//!
//! Tables in memory are read as Parquet is: column by column, without copying their texts. See
//! [`MemoryTable`].
//!
//! # Reading a row again
//!
//! Each row has a [`RowPlace`], from which any thread can read it again with [`InputSet::reread_row`]
//! and [`InputSet::read_raw_row`]. An uncompressed regular file is read in place; if its size or
//! modification time has changed since it was opened, that is an error. Everything else (standard input,
//! pipes, compressed files, objects of stores, JSON lists, Parquet, Arrow) is copied to an unlinked temporary file during the
//! first reading, and so are the texts of `.docx` and PDF files, unless [`ReadOptions::again`] is `false`.

mod allowed_folders;
mod arrow_file;
mod arrow_portions;
mod bad_row_reason;
mod block;
mod block_reader;
mod byte_stream;
mod column_block;
mod column_json;
mod column_portions;
mod columnar;
mod convert;
mod delimited;
mod density;
mod document_block;
mod expand;
mod features;
mod field_census;
mod file;
mod format;
mod frame;
mod inputs;
mod json;
mod json_list;
mod line_block;
mod line_reader;
mod memory_table;
mod number_text;
mod parquet_file;
mod reread;
mod row_values;
mod table_block;
mod text_place;
mod utf16;
mod utf8;
mod whole_input;
mod whole_rows;

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_documents::PdfReader;
use lookalike_documents::decoding::InvalidText;

use crate::objects::{ObjectCopies, ObjectUrl};
use crate::source::expand::is_stdin;
pub use allowed_folders::AllowedFolders;
pub(crate) use arrow_file::ArrowFile;
pub use bad_row_reason::reason_pattern;
pub use block::{InputBlock, KnownBlock, ParseScratch};
pub(crate) use column_json::{JsonRows, check_types};
pub(crate) use column_portions::column_schema;
pub(crate) use columnar::PositionedFile;
pub(crate) use convert::plain_values;
pub use convert::{to_binary, to_large_strings};
pub(crate) use expand::is_named_json;
pub use expand::{CompressionKind, compression_by_extension, format_by_extension};
pub use features::RowFeatures;
pub use file::{InputFile, copy_standard_input};
pub use format::{FormatDescriptor, FormatOption, InputFormat};
pub use inputs::{GuessedEncoding, InputSet};
pub(crate) use json::FieldProbe;
pub(crate) use line_reader::trim_line_end;
pub use memory_table::MemoryTable;
pub use number_text::shortest_digits;
pub(crate) use parquet_file::{load_metadata, open_batches};
pub(crate) use text_place::{find_cell_text, find_json_text};
pub use utf8::first_malformed;
pub use whole_input::WholeInput;
pub use whole_rows::WholeRow;

/// Default of [`ReadOptions::block_bytes`]: 1 MiB. This is large enough that handing out a block costs
/// next to nothing, and small enough that the block stays in a core's second-level cache.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Default of [`ReadOptions::max_row_bytes`]: 1 GiB.
pub const MAX_ROW_BYTES: u32 = 1 << 30;

/// The origin of rows.
#[derive(Debug, Clone)]
pub enum RowSource {
    /// Files, directories, globs, URLs of objects, and `-` for standard input.
    Paths(Vec<PathBuf>),
    /// A table in memory.
    Table(MemoryTable),
}

impl RowSource {
    /// Returns `true` if no path is given.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Paths(paths) if paths.is_empty())
    }

    /// Returns `true` if standard input or a pipe is among the inputs, which can be opened only once.
    pub fn is_read_once(&self) -> bool {
        self.has_standard_input() || self.has_pipe()
    }

    /// Returns `true` if standard input is among the inputs.
    pub fn has_standard_input(&self) -> bool {
        matches!(self, Self::Paths(paths) if paths.iter().any(|path| is_stdin(path)))
    }

    /// Returns `true` if a pipe that has a name is among the inputs.
    pub fn has_pipe(&self) -> bool {
        let is_pipe = |path: &PathBuf| {
            let metadata = path.metadata();
            !is_stdin(path)
                && metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
        };
        matches!(self, Self::Paths(paths) if paths.iter().any(is_pipe))
    }

    /// Returns `true` if an input is an object of a store or a file of a server.
    pub fn has_objects(&self) -> bool {
        matches!(self, Self::Paths(paths) if paths.iter().any(|path| ObjectUrl::from_path(path).is_some()))
    }

    /// Returns `true` if the format of every input is known from its extension, or because it is a
    /// table.
    pub fn says_its_format(&self) -> bool {
        match self {
            Self::Paths(paths) => paths.iter().all(|path| match ObjectUrl::from_path(path) {
                Some(Ok(url)) => format_by_extension(Path::new(&url.to_string())).is_some(),
                _ => format_by_extension(path).is_some(),
            }),
            Self::Table(_) => true,
        }
    }
}

impl Default for RowSource {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

impl From<Vec<PathBuf>> for RowSource {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self::Paths(paths)
    }
}

/// Options of reading.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format of every input. `None` decides by the extension, after `.gz` or `.zst` is removed.
    pub format: Option<InputFormat>,
    /// The byte between two fields of CSV and TSV, an ASCII character; `None` is that of the format.
    pub delimiter: Option<u8>,
    /// `true` if CSV has a header row; otherwise the columns are named `1`, `2`, ….
    pub header: bool,
    /// The encoding of the text formats. UTF-16 and ISO-2022-JP are refused, but with UTF-8 an input that begins with the byte
    /// order mark of UTF-16 is read.
    pub encoding: &'static encoding_rs::Encoding,
    /// `true` if a document file that is not in that encoding is read in the one that it looks like; see
    /// [`InputSet::guessed_encodings`].
    pub guesses_encoding: bool,
    /// The treatment of malformed text.
    pub invalid_text: InvalidText,
    /// `true` if each plain text file is one document.
    pub document_per_file: bool,
    /// `true` if each file of plain text, by its extension, is one document, while other files keep their formats.
    pub text_documents: bool,
    /// Reading of document files by their extensions, one document per file: `.md`, `.html`, `.docx` and `.pdf`,
    /// and with `text_documents` also `.txt`. `None` knows no such files.
    pub document_files: Option<DocumentFileOptions>,
    /// The fields to read from each row.
    pub fields: WantedFields,
    /// Largest accepted row, in decompressed bytes.
    pub max_row_bytes: u32,
    /// Target size of a block in bytes, from 1. It has no influence on the rows.
    pub block_bytes: usize,
    /// The directory of temporary files; `None` is the system's.
    pub scratch: Option<PathBuf>,
    /// `true` if rows can be read again. Otherwise nothing is copied to temporary files, and rows can
    /// be read again only from tables in memory and from uncompressed regular files that are neither
    /// Parquet, Arrow nor JSON lists.
    pub again: bool,
    /// The content of standard input, if it was copied to be read several times; see [`copy_standard_input`].
    pub standard_input: Option<Arc<File>>,
    /// The copies of objects that outlive the process, if a later one is to go on where this one ends. Uncompressed
    /// lines of objects are then read again from there, and not from a temporary file.
    pub object_copies: Option<Arc<ObjectCopies>>,
    /// The folders outside of which no file is opened; `None` allows every file and object. A path outside is refused; a
    /// file of a directory that is a link to one outside is left out, as files of unknown formats are.
    pub allowed_folders: Option<AllowedFolders>,
}

impl ReadOptions {
    /// Decodes a row as it stands in its file, to be shown. Malformed characters become U+FFFD.
    pub fn decode_for_display<'a>(&self, row: &'a [u8]) -> Cow<'a, str> {
        self.encoding.decode_without_bom_handling(row).0
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            header: true,
            encoding: encoding_rs::UTF_8,
            guesses_encoding: false,
            invalid_text: InvalidText::default(),
            document_per_file: false,
            text_documents: false,
            document_files: None,
            fields: WantedFields::default(),
            max_row_bytes: MAX_ROW_BYTES,
            block_bytes: BLOCK_BYTES,
            scratch: None,
            again: true,
            standard_input: None,
            object_copies: None,
            allowed_folders: None,
        }
    }
}

/// Options of reading document files among other inputs.
#[derive(Debug, Clone, Default)]
pub struct DocumentFileOptions {
    /// The reader of PDF files; `None` makes each of them a bad row.
    pub pdf: Option<PdfReader>,
}

/// The fields to read from each row. Plain text has no fields: the row itself is the text.
#[derive(Debug, Clone)]
pub struct WantedFields {
    /// The fields that make up the text, joined by line feeds. In JSON, Parquet and Arrow, `a.b` reaches
    /// nested fields, also in each object of a list.
    pub text: Vec<String>,
    /// The origin of ids.
    pub id: IdField,
    /// A field that holds ready-made features; see [`RowFeatures`]. If it is set, the text may be missing
    /// and is then empty.
    pub features: Option<String>,
    /// `true` if a string in that field is refused, so that only lists and objects are features.
    pub lists_only: bool,
    /// Further fields to read as [`FieldValue`]s, returned in this order.
    pub extra: Vec<String>,
}

impl WantedFields {
    /// Wants no field by its name, for [`InputSet::parse_whole_rows`]. Inputs of CSV may then have different columns.
    pub fn whole_rows() -> Self {
        Self {
            text: Vec::new(),
            id: IdField::RowNumber,
            ..Self::default()
        }
    }

    /// Returns `true` if no field is wanted by its name.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.features.is_none()
            && self.extra.is_empty()
            && !matches!(self.id, IdField::Named(_))
    }
}

impl Default for WantedFields {
    fn default() -> Self {
        Self {
            text: vec!["text".to_owned()],
            id: IdField::default(),
            features: None,
            lists_only: false,
            extra: Vec::new(),
        }
    }
}

/// The origin of a row's id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum IdField {
    /// The field `id`, if the first row (or the header, or the schema) of the first input has one;
    /// every row must then have it. Otherwise the row number.
    #[default]
    Default,
    /// This field; a row without it is a bad row.
    Named(String),
    /// The row number.
    RowNumber,
}

/// The position of a row's bytes.
///
/// All inputs of a run share one address space, one after another, so places follow the input order.
/// Parquet and Arrow are the exception: their rows lie in the temporary file in the order in which their blocks were
/// parsed. The length includes the line end. The type takes 12 bytes with an alignment of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, packed(4))]
pub struct RowPlace {
    offset: u64,
    length: u32,
}

impl RowPlace {
    /// Creates a place of `length` bytes at `offset`.
    pub fn new(offset: u64, length: u32) -> Self {
        Self { offset, length }
    }

    /// Returns the number of bytes from the start of the address space.
    pub fn start_offset(self) -> u64 {
        self.offset
    }

    /// Returns the length of the row in bytes, its line end included.
    pub fn byte_length(self) -> u32 {
        self.length
    }

    /// Returns the offset just after the row.
    pub fn end_offset(self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// The single value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// The row has no such field.
    Missing,
    /// The field exists but has no value: JSON `null`, a null of a column, or NaN.
    Null,
    /// A number, or a date or timestamp of a column as seconds since 1970.
    Number {
        /// The nearest double; infinite if the number is beyond the largest, never NaN.
        value: f64,
        /// The digits as they are in the input; exact at any length.
        literal: &'a str,
    },
    /// A string, or any CSV cell.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
}

/// A usable row. It borrows from its block and from the scratch memory of the parser.
#[derive(Debug, Clone, Copy)]
pub struct InputRow<'a> {
    /// The id, or `None` if the row number is the id.
    pub id: Option<&'a str>,
    /// The text.
    pub text: &'a str,
    /// The features, if [`WantedFields::features`] is set.
    pub features: Option<RowFeatures<'a>>,
    /// The values of [`WantedFields::extra`], in that order. Empty when a row of Parquet or Arrow is read again.
    pub extra: &'a [FieldValue<'a>],
    /// The position of the row's bytes.
    pub place: RowPlace,
    /// The row number over all inputs, from 1, bad rows included; 0 when a row is read again.
    pub number: u64,
    /// The line on which the row starts, as in [`BadRow::line`]; 0 when a row is read again.
    pub line: u64,
}

/// A row that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The input's name as given.
    pub file: String,
    /// The line on which the row starts, from 1. For Parquet, Arrow and JSON lists it is the row number within
    /// the file; for one document per file it is 1.
    pub line: u64,
    /// The row number over all inputs, from 1.
    pub number: u64,
    /// A phrase without a full stop that says what is wrong with which field.
    pub reason: String,
    /// The position of the row's bytes. Its length is 0 for Parquet and Arrow, because their bad rows have
    /// no bytes of their own.
    pub place: RowPlace,
}

/// The result of parsing one row.
pub type RowResult<'a> = std::result::Result<InputRow<'a>, BadRow>;
