//! The part of reading that needs the input order and runs under one lock: choosing the next input,
//! finding the ends of rows, counting rows, and interpreting headers.

use lookalike_documents::decoding::{bom_length, is_utf16};
use lookalike_documents::foreign_files::foreign_content;

use super::block::{
    BlockBody, ColumnBlock, DocumentFiles, InputBlock, KnownBlock, LineBlock, TableBlock,
};
use super::column_portions::{ColumnPortions, OpenColumnarInput};
use super::delimited::DelimitedColumns;
use super::file::{InputFile, InputStorage, READ_AHEAD};
use super::inputs::{InputSet, RowLayout};
use super::json;
use super::line_reader::{
    CutSizes, LineCount, LineReader, OversizedRow, ReadBuffer, RowEnds, RowsRead, count_rows,
    trim_line_end,
};
use super::{IdField, InputFormat};
use crate::error::{Error, Result};

/// Bytes from which an input's content is recognised.
const PEEKED_BYTES: usize = 64;

/// Largest number of documents in a block, with one document per file.
const MAX_DOCUMENTS: usize = 256;

/// Finds a block by its position among all blocks, if an earlier run has read it.
pub(super) type FindKnown<'a> = dyn Fn(u64) -> Result<Option<KnownBlock>> + 'a;

/// The progress of reading.
pub(super) struct ReadProgress {
    /// Index of the current or next input.
    file: usize,
    open: Option<OpenInput>,
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

enum OpenInput {
    Lines(OpenLines),
    Portions(ColumnPortions),
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

impl ReadProgress {
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

    /// Returns the number of rows in the blocks so far.
    pub(super) fn row_count(&self) -> u64 {
        self.rows
    }

    /// Returns the next block. After an error it returns `None`, because one caller has received the
    /// error.
    pub(super) fn next_block(
        &mut self,
        inputs: &InputSet,
        find_known: &FindKnown<'_>,
    ) -> Result<Option<InputBlock>> {
        if self.failed {
            return Ok(None);
        }
        let next = match self.skip_known(inputs, find_known) {
            Ok(None) => self.read_block(inputs),
            skipped => skipped,
        };
        self.failed = next.is_err();
        next
    }

    /// Returns the next block without reading it, if it is known and its input is read in place. The first block of an
    /// input, which shows its fields, and the last one are read all the same.
    fn skip_known(
        &mut self,
        inputs: &InputSet,
        find_known: &FindKnown<'_>,
    ) -> Result<Option<InputBlock>> {
        let Some(OpenInput::Lines(open)) = &mut self.open else {
            return Ok(None);
        };
        let file = &inputs.input_files()[self.file];
        if open.at_start || file.storage() != InputStorage::InPlace {
            return Ok(None);
        }
        let Some(known) = find_known(self.ordinal)? else {
            return Ok(None);
        };
        let end = known.offset.saturating_add(known.length);
        let is_within = file.size_on_disk().is_some_and(|size| end < size);
        let is_next = known.line > open.lines;
        if !is_within || !is_next || !open.reader.skip_known(known.offset, end)? {
            return Ok(None);
        }
        open.lines = known.line - 1 + known.lines;
        let number = self.rows + 1;
        self.rows += known.rows;
        let lines = LineBlock {
            file: self.file,
            buffer: ReadBuffer::default(),
            start: 0,
            offset: known.offset,
            line: known.line,
            number,
            rows: known.rows,
            lines: known.lines,
            length: known.length,
            is_oversized: false,
        };
        let position = self.charged + known.bytes_on_disk;
        Ok(Some(self.make_block(BlockBody::Lines(lines), position)))
    }

    /// Ends reading because a block could not be filled.
    pub(super) fn stop_after_failure(&mut self) {
        self.failed = true;
    }

    fn read_block(&mut self, inputs: &InputSet) -> Result<Option<InputBlock>> {
        while let Some(file) = inputs.input_files().get(self.file) {
            if file.input_format() == InputFormat::TextFile {
                return Ok(Some(self.next_documents(inputs)));
            }
            let open = match self.open.take() {
                Some(open) => open,
                None => self.open_next_input(inputs)?,
            };
            file.first_number.get_or_init(|| self.rows + 1);
            if let Some((body, position)) = self.read_open_input(inputs, open)? {
                return Ok(Some(self.make_block(body, position)));
            }
            file.check_unchanged()?;
            self.file += 1;
            self.charged = 0;
        }
        Ok(None)
    }

    fn make_block(&mut self, body: BlockBody, position: u64) -> InputBlock {
        let block = InputBlock {
            ordinal: self.ordinal,
            bytes_on_disk: position.saturating_sub(self.charged),
            body,
        };
        self.ordinal += 1;
        self.charged = self.charged.max(position);
        block
    }

    fn open_next_input(&mut self, inputs: &InputSet) -> Result<OpenInput> {
        let file = &inputs.input_files()[self.file];
        if file.input_format() == InputFormat::Memory {
            return Ok(OpenInput::Table(0));
        }
        let next = inputs.input_files()[self.file + 1..].iter();
        next.take(READ_AHEAD).for_each(InputFile::read_ahead);
        if file.input_format().is_columnar() {
            return self.open_columns(inputs).map(OpenInput::Portions);
        }
        let spool = inputs
            .stream_spool()
            .filter(|_| file.storage() == InputStorage::Stream);
        if let Some(spool) = spool {
            file.set_spooled_at(spool.end_offset());
        }
        let options = inputs.read_options();
        let sizes = CutSizes {
            block_bytes: options.block_bytes,
            max_row_bytes: options.max_row_bytes,
        };
        let name = file.display_name();
        let stream = file.open_stream()?;
        if let Some(encoding) = stream.converted_encoding() {
            inputs.count_guessed(encoding, name);
        }
        let mut reader = LineReader::new(stream, spool.is_some(), file.row_ends(), sizes);
        if file.input_format() == InputFormat::Json && options.encoding != encoding_rs::UTF_8 {
            return Err(Error::usage_error(format!(
                "{name} is a JSON list, which is read in UTF-8 only: convert it first, for example with \
                 `iconv -f {} -t utf-8`",
                options.encoding.name()
            )));
        }
        let start = reader.peek_start(PEEKED_BYTES, spool)?;
        if is_utf16(start, options.encoding) {
            return Err(Error::input_error(format!(
                "{name} looks like UTF-16 or UTF-32 without the byte order mark of UTF-16: convert it to UTF-8 \
                 first, for example with `iconv -f utf-16le -t utf-8`"
            )));
        }
        if let Some(what) = foreign_content(start) {
            return Err(Error::input_error(format!("{name} is {what}")));
        }
        let bom = bom_length(start, options.encoding);
        reader.skip_start(bom);
        if file.input_format() == InputFormat::Text {
            inputs.decide_layout(|| Ok(Some(false)))?;
            inputs.field_census().mark_complete();
        }
        Ok(OpenInput::Lines(OpenLines {
            reader,
            lines: 0,
            at_start: true,
        }))
    }

    fn open_columns(&mut self, inputs: &InputSet) -> Result<ColumnPortions> {
        let file = &inputs.input_files()[self.file];
        let opened = OpenColumnarInput::open_input(file)?;
        let layout = inputs.decide_layout(|| opened.has_column(file, "id").map(Some))?;
        // With a schema, `decide_layout` always returns a layout.
        let layout = layout.ok_or_else(|| file.unreadable_columns("it has no schema"))?;
        let block_bytes = inputs.read_options().block_bytes;
        let portions = opened.into_portions(file, &layout.plan, block_bytes)?;
        inputs.field_census().mark_complete();
        Ok(portions)
    }

    /// Returns the next rows of the open input, and the position on disk after them.
    fn read_open_input(
        &mut self,
        inputs: &InputSet,
        open: OpenInput,
    ) -> Result<Option<(BlockBody, u64)>> {
        match open {
            OpenInput::Lines(lines) => self.read_lines(inputs, lines),
            OpenInput::Portions(portions) => Ok(self.next_portion(portions)),
            OpenInput::Table(passed) => Ok(self.next_table_rows(inputs, passed)),
        }
    }

    /// Returns the next rows of a table in memory.
    fn next_table_rows(&mut self, inputs: &InputSet, passed: u64) -> Option<(BlockBody, u64)> {
        let table = inputs.open_table()?;
        let (rows, position) = table.next_block(passed, inputs.read_options().block_bytes)?;
        self.rows = rows.end;
        self.open = Some(OpenInput::Table(rows.end));
        Some((BlockBody::Memory(TableBlock { rows }), position))
    }

    /// Returns the next portion of Parquet or Arrow. It is decoded without the lock.
    fn next_portion(&mut self, mut portions: ColumnPortions) -> Option<(BlockBody, u64)> {
        let before = self.rows - portions.passed_rows();
        let portion = portions.next()?;
        self.rows += portion.row_count();
        let position = portions.passed_bytes();
        self.open = Some(OpenInput::Portions(portions));
        let packed = ColumnBlock {
            file: self.file,
            portion,
            number: before + 1,
        };
        Some((BlockBody::Packed(packed), position))
    }

    fn read_lines(
        &mut self,
        inputs: &InputSet,
        mut open: OpenLines,
    ) -> Result<Option<(BlockBody, u64)>> {
        let file = &inputs.input_files()[self.file];
        let mut buffer = inputs.take_buffer();
        loop {
            let read = open
                .reader
                .read_next_rows(&mut buffer, inputs.stream_spool())?;
            let offset = match read {
                Some(RowsRead::Rows { offset }) => offset,
                Some(RowsRead::Oversized(row)) => {
                    return self.oversized_block(inputs, open, buffer, row).map(Some);
                }
                None => {
                    inputs.return_buffer(buffer);
                    return Ok(None);
                }
            };
            let bytes = buffer.filled_bytes();
            if bytes.last() != Some(&b'\n') {
                file.open_end.get_or_init(|| offset + bytes.len() as u64);
            }
            let start = self.read_first_row(inputs, bytes, &mut open)?;
            let LineCount { lines, rows } = count_rows(&bytes[start..], file.row_ends());
            let (line, number) = (open.lines + 1, self.rows + 1);
            open.lines += lines;
            if rows == 0 {
                continue;
            }
            self.rows += rows;
            let position = open.reader.source_position();
            self.open = Some(OpenInput::Lines(open));
            let (file, offset) = (self.file, offset + start as u64);
            let lines = LineBlock {
                file,
                length: (buffer.filled_bytes().len() - start) as u64,
                buffer,
                start,
                offset,
                line,
                number,
                rows,
                lines,
                is_oversized: false,
            };
            return Ok(Some((BlockBody::Lines(lines), position)));
        }
    }

    /// Returns the block of a row that is longer than the limit and was skipped.
    fn oversized_block(
        &mut self,
        inputs: &InputSet,
        mut open: OpenLines,
        buffer: ReadBuffer,
        row: OversizedRow,
    ) -> Result<(BlockBody, u64)> {
        let file = &inputs.input_files()[self.file];
        let is_header = open.at_start && inputs.read_options().header;
        if matches!(file.input_format(), InputFormat::Csv { .. }) && is_header {
            let reason = inputs.oversized_reason(file, row.length);
            let name = file.display_name();
            return Err(Error::limit_error(format!("{name}:1: {reason}")));
        }
        if row.is_unterminated {
            file.open_end.get_or_init(|| row.offset + row.length);
        }
        let lines = LineBlock {
            file: self.file,
            buffer,
            start: 0,
            offset: row.offset,
            line: open.lines + 1,
            number: self.rows + 1,
            rows: 1,
            lines: row.lines,
            length: row.length,
            is_oversized: true,
        };
        open.lines += row.lines;
        self.rows += 1;
        let position = open.reader.source_position();
        self.open = Some(OpenInput::Lines(open));
        Ok((BlockBody::Lines(lines), position))
    }

    /// Interprets the first row of an input. Returns the offset in `bytes` at which the data begin.
    fn read_first_row(
        &mut self,
        inputs: &InputSet,
        bytes: &[u8],
        open: &mut OpenLines,
    ) -> Result<usize> {
        let file = &inputs.input_files()[self.file];
        let ends = file.row_ends();
        match file.input_format() {
            InputFormat::Jsonl | InputFormat::Json => {
                if open.at_start {
                    open.at_start = false;
                    sample_fields(inputs, bytes);
                }
                inputs.decide_layout(|| Ok(json_has_id(inputs, bytes)))?;
                Ok(0)
            }
            InputFormat::Csv { delimiter, quoting } if open.at_start => {
                let Some((start, end)) = first_filled(bytes, ends) else {
                    return Ok(0);
                };
                open.at_start = false;
                let row = &bytes[start..end];
                self.read_column_names(inputs, row, delimiter, quoting)?;
                if !inputs.read_options().header {
                    return Ok(0);
                }
                file.header.get_or_init(|| row.to_vec());
                open.lines += memchr::memchr_iter(b'\n', &bytes[..end]).count() as u64;
                Ok(end)
            }
            // The first row of the other formats is a row as all others.
            _ => Ok(0),
        }
    }

    /// Reads the names of the columns from the first row of a CSV input and compares them with those of
    /// the inputs before it.
    fn read_column_names(
        &mut self,
        inputs: &InputSet,
        row: &[u8],
        delimiter: u8,
        quoting: bool,
    ) -> Result<()> {
        let file = &inputs.input_files()[self.file];
        let name = file.display_name();
        let mut room = String::new();
        let row = inputs
            .row_decoding()
            .decode_row(trim_line_end(row), &mut room)
            .map_err(|reason| Error::input_error(format!("the first row of {name}: {reason}")))?;
        let mut columns = if inputs.read_options().header {
            DelimitedColumns::from_header(row, delimiter, quoting)
        } else {
            DelimitedColumns::number_columns(row, delimiter, quoting)
        };
        let first = *self.first_columns.get_or_insert(self.file);
        if let Some(known) = inputs.input_files()[first]
            .column_names()
            .filter(|known| *known != columns.names && !inputs.read_options().fields.is_empty())
        {
            return Err(Error::input_error(format!(
                "{name} has the columns `{}` where {} has `{}`",
                columns.names.join("`, `"),
                inputs.input_files()[first].display_name(),
                known.join("`, `")
            )));
        }
        let has_id = inputs.read_options().header && columns.names.iter().any(|name| name == "id");
        if let Some(layout) = inputs.decide_layout(|| Ok(Some(has_id)))? {
            columns
                .choose_columns(&layout.plan)
                .map_err(|reason| Error::input_error(format!("{name}: {reason}")))?;
            inputs.field_census().mark_complete();
        }
        file.columns.get_or_init(|| columns);
        Ok(())
    }

    /// Returns a block of files that are one document each. They are read without the lock.
    fn next_documents(&mut self, inputs: &InputSet) -> InputBlock {
        let (mut count, mut bytes) = (0, 0);
        for file in &inputs.input_files()[self.file..] {
            let block_bytes = inputs.read_options().block_bytes as u64;
            let whole = file.input_format() == InputFormat::TextFile && count < MAX_DOCUMENTS;
            if count > 0
                && (!whole || bytes + file.size_on_disk().unwrap_or(block_bytes) > block_bytes)
            {
                break;
            }
            bytes += file.size_on_disk().unwrap_or(0);
            file.first_number
                .get_or_init(|| self.rows + 1 + count as u64);
            count += 1;
        }
        let documents = DocumentFiles {
            file: self.file,
            buffer: ReadBuffer::default(),
            ends: vec![0; count],
            failures: vec![None; count],
            number: self.rows + 1,
        };
        self.file += count;
        self.rows += count as u64;
        let block = self.make_block(BlockBody::Documents(documents), bytes);
        self.charged = 0;
        block
    }
}

/// Returns the first row that is not blank.
fn first_filled(bytes: &[u8], ends: RowEnds) -> Option<(usize, usize)> {
    let mut start = 0;
    while start < bytes.len() {
        let end = ends.find_row_end(bytes, start);
        if !trim_line_end(&bytes[start..end]).is_empty() {
            return Some((start, end));
        }
        start = end;
    }
    None
}

/// Records the field names of the first rows.
fn sample_fields(inputs: &InputSet, bytes: &[u8]) {
    let rows = bytes.split(|&byte| byte == b'\n').filter_map(|row| {
        let mut room = String::new();
        let row = inputs
            .row_decoding()
            .decode_row(trim_line_end(row), &mut room)
            .ok()?;
        Some(row.to_owned())
    });
    inputs.field_census().sample_rows(rows);
}

/// Returns whether the first valid row has a field `id`, or `None` if no row is valid.
fn json_has_id(inputs: &InputSet, bytes: &[u8]) -> Option<bool> {
    let mut room = String::new();
    bytes.split(|&byte| byte == b'\n').find_map(|row| {
        let row = inputs
            .row_decoding()
            .decode_row(trim_line_end(row), &mut room)
            .ok()?;
        json::has_field(row, "id")
    })
}

impl InputSet {
    /// Returns the layout. The first input that shows if there is a field `id` decides it.
    pub(super) fn decide_layout(
        &self,
        has_id: impl FnOnce() -> Result<Option<bool>>,
    ) -> Result<Option<&RowLayout>> {
        if let Some(layout) = self.layout_if_known() {
            return Ok(Some(layout));
        }
        let fields = &self.read_options().fields;
        let id = match &fields.id {
            IdField::Named(name) => Some(name.as_str()),
            IdField::RowNumber => None,
            IdField::Default => match has_id()? {
                Some(true) => Some("id"),
                Some(false) => None,
                None => return Ok(None),
            },
        };
        Ok(Some(self.set_layout(RowLayout::new(
            fields,
            id,
            self.field_census(),
        ))))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::ReadOptions;
    use super::*;

    fn open(paths: &[PathBuf]) -> InputSet {
        let options = ReadOptions {
            block_bytes: 200,
            ..ReadOptions::default()
        };
        InputSet::open_paths(paths, &options).unwrap()
    }

    /// What a block says of itself, and whether its rows were read.
    fn describe(inputs: &InputSet, block: &InputBlock) -> (String, bool) {
        let BlockBody::Lines(lines) = &block.body else {
            panic!("a block of lines")
        };
        let shown = format!(
            "{} {:?} {:?} {:?}",
            block.ordinal(),
            block.row_numbers(),
            inputs.first_place(block),
            block.known_block()
        );
        (shown, !lines.buffer.filled_bytes().is_empty())
    }

    #[test]
    fn known_blocks_are_where_they_were_without_being_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let rows = (0..200).map(|at| format!("{{\"id\":{at},\"text\":\"text {at}\"}}\n"));
        let mut rows: Vec<String> = rows.collect();
        rows.insert(50, "\n".repeat(700));
        std::fs::write(path("a.jsonl"), format!("\u{feff}{}", rows.concat())).unwrap();
        std::fs::write(path("b.jsonl"), rows.concat().trim_end()).unwrap();
        let cells = (0..100).map(|at| format!("{at},\"a\nquoted text {at}\"\r\n"));
        let table = format!("id,text\n{}", cells.collect::<String>());
        std::fs::write(path("c.csv"), table).unwrap();
        for name in ["a.jsonl", "b.jsonl", "c.csv"] {
            let paths = [path(name), path(name)];
            let inputs = open(&paths);
            let mut expected = Vec::new();
            while let Some(block) = inputs.next_block().unwrap() {
                let (shown, is_read) = describe(&inputs, &block);
                assert!(is_read);
                expected.push((shown, block.known_block()));
            }
            let inputs = open(&paths);
            // Every seventh block is not known.
            let find = |ordinal: u64| {
                let known = expected
                    .get(ordinal as usize)
                    .and_then(|expected| expected.1);
                Ok(known.filter(|_| !ordinal.is_multiple_of(7)))
            };
            let (mut read, mut blocks) = (0, 0);
            while let Some(block) = inputs.next_block_unless_known(&find).unwrap() {
                let (shown, is_read) = describe(&inputs, &block);
                let known = expected[blocks].1.unwrap();
                // What is read ahead makes the bytes of a block that is read after skipped ones others.
                let plain = |text: &str| text.split(", bytes_on_disk").next().map(str::to_owned);
                assert_eq!(plain(&shown), plain(&expected[blocks].0), "{name}");
                assert!(is_read || block.bytes_on_disk() == known.bytes_on_disk);
                read += u32::from(is_read);
                blocks += 1;
            }
            assert_eq!(blocks, expected.len(), "{name}");
            assert!(
                (blocks as u32 / 7..blocks as u32 / 3).contains(&read),
                "{name} {read}"
            );
        }
    }
}
