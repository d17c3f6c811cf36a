//! Reading: files, directories, globs and standard input as one sequence of rows.
//!
//! Inputs are opened once as an [`Inputs`], which hands out *blocks* of whole rows in input order
//! ([`Inputs::next_block`]) to any number of threads. A block is about a mebibyte. What must happen
//! in order (reading, decompressing, decoding Parquet pages, cutting at row ends, counting rows)
//! happens under one lock as a block is handed out; what can happen in any order (checking the
//! encoding, parsing, unescaping) happens in [`Inputs::parse`], outside of it. Buffers are pooled:
//! memory is a few blocks a thread, or a few times the longest row where that is more.
//!
//! # Rows
//!
//! * **JSONL**: a line that holds one JSON object. Accepted is what `serde_json` accepts. Of equal
//!   keys in an object the last wins. A path `a.b` reaches the field `b` of the object `a`, and
//!   also a field whose own name is `a.b`.
//! * **JSON list**: a list of objects; each element is a row. `.json` files that begin with `[` are read
//!   so. A row keeps its bytes but for line breaks between values and the white space behind them.
//! * **CSV**: RFC 4180; a field may hold quoted delimiters, quotes and line ends. A quote that does
//!   not open its field is literal. Rows end at a line feed, with or without a carriage return.
//! * **TSV**: no quoting at all: every tab divides, every line feed ends, a `"` is a `"`. Real
//!   streams of titles hold single quotes by the thousand, and a parser that took them for RFC 4180
//!   would swallow the rows between two of them.
//! * **Text**: a line a document, or a file a document.
//! * **Parquet**: strings (also large, view and dictionary) as text, and binary columns, where a value that
//!   is not UTF-8 makes a bad row; `a.b` reaches into structs.
//!
//! A line without a byte in it (or with a carriage return only) is not a row. A byte order mark at
//! the start of an input is skipped. A last line without a line feed is a row like any other.
//!
//! A row that cannot be used is a [`BadRow`] with place and reason, never skipped in silence. What
//! leaves the rest of an input without meaning (a truncated archive, a missing column, a row over
//! the limit) is an [`Error`](crate::error::Error).
//!
//! Tables in memory are read as Parquet is, column by column and without a copy of their texts: see
//! [`Table`].
//!
//! # Reading a row again
//!
//! Each row has a [`Place`], and [`Inputs::reread`] and [`Inputs::raw`] read it again from any
//! thread. An uncompressed regular file is read in place; if its size or time of change differ from
//! when it was opened, that is an error. Everything else (standard input, pipes, compressed files,
//! Parquet) is copied to an unlinked temporary file while it is read first, unless
//! [`ReadOptions::again`] says that no row will be asked for.

mod block;
mod columnar;
mod content;
mod convert;
mod decode;
mod delimited;
mod density;
mod expand;
mod features;
mod file;
mod frame;
mod inputs;
mod json;
mod lines;
mod list;
mod memory;
mod numbers;
mod parquet_rows;
mod presence;
mod reading;
mod stream;
mod utf8;
mod values;

use std::path::PathBuf;

pub use block::{Block, ParseScratch};
pub(crate) use columnar::PositionedFile;
pub use convert::{to_binary, to_large_strings};
pub(crate) use expand::{
    Compression, compression_by_extension, format_by_extension, is_named_json,
};
pub use features::Features;
pub use file::InputFile;
pub use inputs::Inputs;
pub(crate) use json::FieldProbe;
pub(crate) use lines::trim_line_end;
pub use memory::Table;
pub use numbers::shortest_digits;
pub use utf8::first_malformed;

/// What a block holds unless [`ReadOptions::block_bytes`] says otherwise: enough to make the cost
/// of handing it out vanish, little enough to stay in a core's second-level cache.
pub const BLOCK_BYTES: usize = 1 << 20;

/// The longest row accepted unless [`ReadOptions::max_row_bytes`] says otherwise: 1 GiB.
pub const MAX_ROW_BYTES: u32 = 1 << 30;

/// How the bytes of an input are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// One JSON list of objects.
    Json,
    /// Fields between delimiters, under a header.
    Csv {
        /// The byte between two fields: an ASCII character.
        delimiter: u8,
        /// Whether fields may be quoted as in RFC 4180; otherwise a quote is literal.
        quoting: bool,
    },
    /// Apache Parquet.
    Parquet,
    /// Plain text, a line per document.
    Text,
    /// Plain text, a file per document.
    TextFile,
    /// Rows in memory; no file has this format.
    Memory,
}

/// Where rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// Files, directories, globs, `-`.
    Paths(Vec<PathBuf>),
    /// A table in memory.
    Table(Table),
}

impl Source {
    /// Whether there is nothing to read from.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Paths(paths) if paths.is_empty())
    }

    /// Whether it is known of everything what format it has, by itself.
    pub(crate) fn says_its_format(&self) -> bool {
        match self {
            Self::Paths(paths) => paths.iter().all(|path| format_by_extension(path).is_some()),
            Self::Table(_) => true,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

impl From<Vec<PathBuf>> for Source {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self::Paths(paths)
    }
}

impl Format {
    /// `true` if rows are JSON objects.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Jsonl | Self::Json)
    }

    /// Comma-separated values with quoting.
    pub const CSV: Self = Self::Csv {
        delimiter: b',',
        quoting: true,
    };
    /// Tab-separated values without quoting.
    pub const TSV: Self = Self::Csv {
        delimiter: b'\t',
        quoting: false,
    };
}

/// What becomes of text that is not valid in its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InvalidText {
    /// The row is a bad row.
    #[default]
    Reject,
    /// Each malformed sequence is read as U+FFFD, and so is a lone surrogate in a JSON escape.
    Lossy,
}

/// How inputs are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format of every input; `None` decides by extension, `.gz` and `.zst` stripped.
    pub format: Option<Format>,
    /// Whether CSV has a header row; without one the columns are named `1`, `2`, ….
    pub header: bool,
    /// The encoding of text formats. UTF-16 and ISO-2022-JP are refused.
    pub encoding: &'static encoding_rs::Encoding,
    /// What becomes of malformed text.
    pub invalid_text: InvalidText,
    /// Whether plain text is a file per document.
    pub document_per_file: bool,
    /// The fields wanted of each row.
    pub fields: Fields,
    /// The longest row accepted, in bytes as stored (decompressed).
    pub max_row_bytes: u32,
    /// The bytes that a block aims at; any value from 1 gives the same rows.
    pub block_bytes: usize,
    /// Where temporary files go; `None` is the system's place for them.
    pub scratch: Option<PathBuf>,
    /// Whether rows can be read again. Without it nothing is copied to temporary files, and only
    /// rows of uncompressed regular files other than Parquet can.
    pub again: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            header: true,
            encoding: encoding_rs::UTF_8,
            invalid_text: InvalidText::default(),
            document_per_file: false,
            fields: Fields::default(),
            max_row_bytes: MAX_ROW_BYTES,
            block_bytes: BLOCK_BYTES,
            scratch: None,
            again: true,
        }
    }
}

/// The fields wanted of each row. Plain text has none: there the row itself is the text.
#[derive(Debug, Clone)]
pub struct Fields {
    /// The fields that make up the text, joined by a line feed. In JSONL and Parquet `a.b` reaches
    /// nested fields.
    pub text: Vec<String>,
    /// Where ids come from.
    pub id: IdField,
    /// A field that holds the text as features already; see [`Features`]. Where it is given, the
    /// text may be missing and is then empty.
    pub features: Option<String>,
    /// Whether a string in that field is refused, so that lists and objects alone are features.
    pub lists_only: bool,
    /// Further fields wanted as [`Scalar`]s, given back in this order.
    pub extra: Vec<String>,
}

impl Default for Fields {
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

/// Where the id of a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum IdField {
    /// The field `id` if the first row (or the header, or the schema) of the first input has one,
    /// and then every row must have it; else the row number.
    #[default]
    Default,
    /// This field; a row without it is a bad row.
    Named(String),
    /// The number of the row.
    RowNumber,
}

/// Where a row's bytes are.
///
/// All inputs of a run lie one after another in one address space, so places are in input order,
/// except for Parquet, whose rows lie in the temporary file in the order in which blocks were
/// parsed. The length includes the line end. 12 bytes, with an alignment of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, packed(4))]
pub struct Place {
    offset: u64,
    length: u32,
}

impl Place {
    /// A place of `length` bytes at `offset`.
    pub fn new(offset: u64, length: u32) -> Self {
        Self { offset, length }
    }

    /// Bytes from the start of the address space.
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Bytes of the row with its line end.
    pub fn length(self) -> u32 {
        self.length
    }

    /// The offset just after the row.
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// A single value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// The row has no such field.
    Missing,
    /// The field is there and empty of value: JSON `null`, a Parquet null or NaN.
    Null,
    /// A number, or a Parquet date or timestamp as seconds since 1970.
    Number {
        /// The nearest double; infinite beyond the largest, never NaN.
        value: f64,
        /// The digits as the input has them, exact however many they are.
        literal: &'a str,
    },
    /// A string; every CSV cell is one.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
}

/// A row that can be used. It borrows from its block and from the scratch space of the parser.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The id, or `None` where the row number is the id.
    pub id: Option<&'a str>,
    /// The text.
    pub text: &'a str,
    /// The features, where [`Fields::features`] asks for them.
    pub features: Option<Features<'a>>,
    /// The values of [`Fields::extra`], in that order. Empty when a Parquet row is read again.
    pub extra: &'a [Scalar<'a>],
    /// Where the row is.
    pub place: Place,
    /// The number of the row over all inputs, from 1, bad rows counted; 0 when a row is read again.
    pub number: u64,
    /// The line on which it starts, as [`BadRow::line`]; 0 when a row is read again.
    pub line: u64,
}

/// A row that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The input's name as given.
    pub file: String,
    /// The line on which the row starts, from 1; for Parquet and JSON lists the row in the file; for a
    /// file per document 1.
    pub line: u64,
    /// The number of the row over all inputs, from 1.
    pub number: u64,
    /// A phrase without a full stop: what is wrong with which field.
    pub reason: String,
    /// Where the row is. Of length 0 for Parquet, whose bad rows have no bytes of their own.
    pub place: Place,
}

/// What parsing makes of a row.
pub type RowResult<'a> = std::result::Result<Row<'a>, BadRow>;
