//! The part of reading that needs the input order and runs under one lock: choosing the next input,
//! finding the ends of rows, counting rows, and interpreting headers.

use super::block::{Block, Body, Documents, Held, Lines, Packed};
use super::columnar::{Portions, PositionedFile, has_column, unreadable};
use super::content::foreign_content;
use super::decode::{bom_length, is_utf16};
use super::delimited::Columns;
use super::file::Storage;
use super::inputs::{Inputs, Layout};
use super::json;
use super::lines::{Buffer, Count, CutSizes, LineReader, RowEnds, count, trim_line_end};
use super::{Format, IdField};
use crate::error::{Error, Result};

/// Bytes from which an input's content is recognised.
const PEEKED: usize = 64;

/// Largest number of documents in a block, with one document per file.
const MAX_DOCUMENTS: usize = 256;

/// The progress of reading.
pub(super) struct Reading {
    /// Index of the current or next input.
    file: usize,
    open: Option<Open>,
    /// Bytes on disk of the open input that are already attributed to blocks.
    charged: u64,
    ordinal: u64,
    /// Rows handed out.
    rows: u64,
    /// The first input with columns; all others must have the same names.
    first_columns: Option<usize>,
    /// `true` if reading has ended with an error.
    failed: bool,
}

enum Open {
    Lines(OpenLines),
    Portions(Portions),
    /// Rows of a table in memory that have been handed out.
    Table(u64),
}

struct OpenLines {
    reader: LineReader,
    /// Lines read so far.
    lines: u64,
    /// `true` before the first row.
    at_start: bool,
}

impl Reading {
    pub(super) fn new() -> Self {
        Self {
            file: 0,
            open: None,
            charged: 0,
            ordinal: 0,
            rows: 0,
            first_columns: None,
            failed: false,
        }
    }

    /// Returns the next block. After an error it returns `None`, because one caller has received the
    /// error.
    pub(super) fn next(&mut self, inputs: &Inputs) -> Result<Option<Block>> {
        if self.failed {
            return Ok(None);
        }
        let next = self.advance(inputs);
        self.failed = next.is_err();
        next
    }

    /// Ends reading because a block could not be filled.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    fn advance(&mut self, inputs: &Inputs) -> Result<Option<Block>> {
        while let Some(file) = inputs.files().get(self.file) {
            if file.format() == Format::TextFile {
                return Ok(Some(self.documents(inputs)));
            }
            let open = match self.open.take() {
                Some(open) => open,
                None => self.open_file(inputs)?,
            };
            file.first_number.get_or_init(|| self.rows + 1);
            if let Some((body, position)) = self.read(inputs, open)? {
                return Ok(Some(self.block(body, position)));
            }
            file.check_unchanged()?;
            self.file += 1;
            self.charged = 0;
        }
        Ok(None)
    }

    fn block(&mut self, body: Body, position: u64) -> Block {
        let block = Block {
            ordinal: self.ordinal,
            bytes_on_disk: position.saturating_sub(self.charged),
            body,
        };
        self.ordinal += 1;
        self.charged = self.charged.max(position);
        block
    }

    fn open_file(&mut self, inputs: &Inputs) -> Result<Open> {
        let file = &inputs.files()[self.file];
        if file.format() == Format::Memory {
            return Ok(Open::Table(0));
        }
        if file.format() == Format::Parquet {
            return self.open_parquet(inputs).map(Open::Portions);
        }
        let spool = inputs
            .stream_spool()
            .filter(|_| file.storage() == Storage::Stream);
        if let Some(spool) = spool {
            file.set_spooled_at(spool.end());
        }
        let options = inputs.options();
        let sizes = CutSizes {
            block_bytes: options.block_bytes,
            max_row_bytes: options.max_row_bytes,
        };
        let mut reader = LineReader::new(file.stream()?, spool.is_some(), file.row_ends(), sizes);
        let name = file.name();
        if file.format() == Format::Json && options.encoding != encoding_rs::UTF_8 {
            return Err(Error::usage(format!(
                "{name} is a JSON list, which is read in UTF-8 only: convert it first, for example with \
                 `iconv -f {} -t utf-8`",
                options.encoding.name()
            )));
        }
        let start = reader.peek(PEEKED, spool)?;
        if is_utf16(start, options.encoding) {
            return Err(Error::input(format!(
                "{name} looks like UTF-16, which --encoding cannot read row by row: convert it to UTF-8 \
                 first, for example with `iconv -f utf-16 -t utf-8`"
            )));
        }
        if let Some(what) = foreign_content(start) {
            return Err(Error::input(format!("{name} is {what}")));
        }
        let bom = bom_length(start, options.encoding);
        reader.skip(bom);
        if file.format() == Format::Text {
            inputs.lay_out(|| Ok(Some(false)))?;
            inputs.census().complete();
        }
        Ok(Open::Lines(OpenLines {
            reader,
            lines: 0,
            at_start: true,
        }))
    }

    fn open_parquet(&mut self, inputs: &Inputs) -> Result<Portions> {
        let file = &inputs.files()[self.file];
        let handle = PositionedFile::new(file.reopen()?)
            .map_err(|cause| Error::reading("open", file.name(), cause))?;
        let layout = inputs.lay_out(|| {
            has_column(&handle, "id")
                .map(Some)
                .map_err(|error| unreadable(file.name(), &error.to_string()).with_source(error))
        })?;
        // With a schema, `lay_out` always returns a layout.
        let layout = layout.ok_or_else(|| unreadable(file.name(), "it has no schema"))?;
        let block_bytes = inputs.options().block_bytes;
        let portions = Portions::open(file.name(), handle, &layout.plan, block_bytes)?;
        inputs.census().complete();
        Ok(portions)
    }

    /// Returns the next rows of the open input, and the position on disk after them.
    fn read(&mut self, inputs: &Inputs, open: Open) -> Result<Option<(Body, u64)>> {
        match open {
            Open::Lines(lines) => self.read_lines(inputs, lines),
            Open::Portions(portions) => Ok(self.hand_out(portions)),
            Open::Table(passed) => Ok(self.hold_out(inputs, passed)),
        }
    }

    /// Returns the next rows of a table in memory.
    fn hold_out(&mut self, inputs: &Inputs, passed: u64) -> Option<(Body, u64)> {
        let table = inputs.table()?;
        let (rows, position) = table.block(passed, inputs.options().block_bytes)?;
        self.rows = rows.end;
        self.open = Some(Open::Table(rows.end));
        Some((Body::Memory(Held { rows }), position))
    }

    /// Returns the next portion of a Parquet file. It is decoded without the lock.
    fn hand_out(&mut self, mut portions: Portions) -> Option<(Body, u64)> {
        let before = self.rows - portions.passed();
        let portion = portions.next()?;
        self.rows += portion.rows();
        let position = portions.position();
        self.open = Some(Open::Portions(portions));
        let packed = Packed {
            file: self.file,
            portion,
            number: before + 1,
        };
        Some((Body::Packed(packed), position))
    }

    fn read_lines(&mut self, inputs: &Inputs, mut open: OpenLines) -> Result<Option<(Body, u64)>> {
        let file = &inputs.files()[self.file];
        let mut buffer = inputs.buffer();
        loop {
            let offset = open
                .reader
                .next_rows(file.name(), &mut buffer, inputs.stream_spool())?;
            let Some(offset) = offset else {
                inputs.put_back(buffer);
                return Ok(None);
            };
            let bytes = buffer.filled();
            if bytes.last() != Some(&b'\n') {
                file.open_end.get_or_init(|| offset + bytes.len() as u64);
            }
            let start = self.first_row(inputs, bytes, &mut open)?;
            let Count { lines, rows } = count(&bytes[start..], file.row_ends());
            let (line, number) = (open.lines + 1, self.rows + 1);
            open.lines += lines;
            if rows == 0 {
                continue;
            }
            self.rows += rows;
            let position = open.reader.position();
            self.open = Some(Open::Lines(open));
            let (file, offset) = (self.file, offset + start as u64);
            let lines = Lines {
                file,
                buffer,
                start,
                offset,
                line,
                number,
                rows,
            };
            return Ok(Some((Body::Lines(lines), position)));
        }
    }

    /// Interprets the first row of an input. Returns the offset in `bytes` at which the data begin.
    fn first_row(&mut self, inputs: &Inputs, bytes: &[u8], open: &mut OpenLines) -> Result<usize> {
        let file = &inputs.files()[self.file];
        let ends = file.row_ends();
        match file.format() {
            Format::Jsonl | Format::Json => {
                if open.at_start {
                    open.at_start = false;
                    sample_fields(inputs, bytes);
                }
                inputs.lay_out(|| Ok(json_has_id(inputs, bytes)))?;
                Ok(0)
            }
            Format::Csv { delimiter, quoting } if open.at_start => {
                let Some((start, end)) = first_filled(bytes, ends) else {
                    return Ok(0);
                };
                open.at_start = false;
                let row = &bytes[start..end];
                self.take_columns(inputs, row, delimiter, quoting)?;
                if !inputs.options().header {
                    return Ok(0);
                }
                file.header.get_or_init(|| row.to_vec());
                open.lines += memchr::memchr_iter(b'\n', &bytes[..end]).count() as u64;
                Ok(end)
            }
            _ => Ok(0),
        }
    }

    /// Reads the names of the columns from the first row of a CSV input and compares them with those of
    /// the inputs before it.
    fn take_columns(
        &mut self,
        inputs: &Inputs,
        row: &[u8],
        delimiter: u8,
        quoting: bool,
    ) -> Result<()> {
        let file = &inputs.files()[self.file];
        let name = file.name();
        let mut room = String::new();
        let row = inputs
            .decoding()
            .row(trim_line_end(row), &mut room)
            .map_err(|reason| Error::input(format!("the first row of {name}: {reason}")))?;
        let mut columns = match inputs.options().header {
            true => Columns::from_header(row, delimiter, quoting),
            false => Columns::numbered(row, delimiter, quoting),
        };
        let first = *self.first_columns.get_or_insert(self.file);
        if let Some(known) = inputs.files()[first]
            .columns()
            .filter(|known| *known != columns.names)
        {
            return Err(Error::input(format!(
                "{name} has the columns `{}` where {} has `{}`",
                columns.names.join("`, `"),
                inputs.files()[first].name(),
                known.join("`, `")
            )));
        }
        let has_id = inputs.options().header && columns.names.iter().any(|name| name == "id");
        if let Some(layout) = inputs.lay_out(|| Ok(Some(has_id)))? {
            columns
                .choose(&layout.plan)
                .map_err(|reason| Error::input(format!("{name}: {reason}")))?;
            inputs.census().complete();
        }
        file.columns.get_or_init(|| columns);
        Ok(())
    }

    /// Returns a block of files that are one document each. They are read without the lock.
    fn documents(&mut self, inputs: &Inputs) -> Block {
        let (mut count, mut bytes) = (0, 0);
        for file in &inputs.files()[self.file..] {
            let block_bytes = inputs.options().block_bytes as u64;
            let whole = file.format() == Format::TextFile && count < MAX_DOCUMENTS;
            if count > 0 && (!whole || bytes + file.bytes().unwrap_or(block_bytes) > block_bytes) {
                break;
            }
            bytes += file.bytes().unwrap_or(0);
            file.first_number
                .get_or_init(|| self.rows + 1 + count as u64);
            count += 1;
        }
        let documents = Documents {
            file: self.file,
            buffer: Buffer::default(),
            ends: vec![0; count],
            number: self.rows + 1,
        };
        self.file += count;
        self.rows += count as u64;
        let block = self.block(Body::Documents(documents), bytes);
        self.charged = 0;
        block
    }
}

/// Returns the first row that is not blank.
fn first_filled(bytes: &[u8], ends: RowEnds) -> Option<(usize, usize)> {
    let mut start = 0;
    while start < bytes.len() {
        let end = ends.row_end(bytes, start);
        if !trim_line_end(&bytes[start..end]).is_empty() {
            return Some((start, end));
        }
        start = end;
    }
    None
}

/// Records the field names of the first rows.
fn sample_fields(inputs: &Inputs, bytes: &[u8]) {
    let rows = bytes.split(|&byte| byte == b'\n').filter_map(|row| {
        let mut room = String::new();
        let row = inputs.decoding().row(trim_line_end(row), &mut room).ok()?;
        Some(row.to_owned())
    });
    inputs.census().sample_rows(rows);
}

/// Returns whether the first valid row has a field `id`, or `None` if no row is valid.
fn json_has_id(inputs: &Inputs, bytes: &[u8]) -> Option<bool> {
    let mut room = String::new();
    bytes.split(|&byte| byte == b'\n').find_map(|row| {
        let row = inputs.decoding().row(trim_line_end(row), &mut room).ok()?;
        json::has_field(row, "id")
    })
}

impl Inputs {
    /// Returns the layout. The first input that shows if there is a field `id` decides it.
    pub(super) fn lay_out(
        &self,
        has_id: impl FnOnce() -> Result<Option<bool>>,
    ) -> Result<Option<&Layout>> {
        if let Some(layout) = self.layout_if_known() {
            return Ok(Some(layout));
        }
        let fields = &self.options().fields;
        let id = match &fields.id {
            IdField::Named(name) => Some(name.as_str()),
            IdField::RowNumber => None,
            IdField::Default => match has_id()? {
                Some(true) => Some("id"),
                Some(false) => None,
                None => return Ok(None),
            },
        };
        Ok(Some(self.set_layout(Layout::new(
            fields,
            id,
            self.census(),
        ))))
    }
}
