//! The kept rows of the inputs, byte for byte.
//!
//! Rows are copied in *chunks*: consecutive rows of one input that span about 1 MiB. A chunk is read in
//! one piece, the removed rows are cut out of it, and the rest is written in one piece. If the output
//! is a plain file and the rows are not changed, the position of each chunk is known in advance, and
//! threads write chunks in parallel. Otherwise chunks are prepared in parallel and written in order.
//! Data is synced to disk during writing, so that little is left for the final sync.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_schema::SchemaRef;
use lookalike_system::PositionedAccess;

use super::annotate::{self, RowAnnotator, texts_to_json};
use super::atomic::{OutputDirectories, check_upload};
use super::byte_writer::check_output;
use super::conversion::{RowWriting, check_conversion, choose_writing, write_columns};
use super::cut_text::{LeftOutText, TextCutter};
use super::output_stream::{OpenOutput, OutputStream, compression, refuse_inputs};
use super::staged_output::StagedOutput;
use super::table::{TableCell, TableColumn, TableWriter};
use super::{
    AddedKind, AddedValue, OutputRows, OutputTarget, RowChange, WriteOptions, WrittenOutput,
};
use crate::error::{Error, Result, display_path};
use crate::objects::{ObjectSearch, ObjectUrl, find_objects, is_url};
use crate::ordered_results::work_in_order;
use crate::source::{CompressionKind, InputFile, InputFormat, InputSet, RowPlace, is_named_json};
use lookalike_system::HAS_THREADS;

/// Bytes of input that a chunk spans, unless a single row is longer.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes written between two syncs.
const SYNC_BYTES: u64 = 16 << 20;

/// Column of the parts that are left out of a text, in a table in memory.
const LEFT_OUT_COLUMN: &str = "left_out";

/// Writes the numbers of the kept rows and their changes to a table in memory.
fn write_numbers(
    rows: &dyn OutputRows,
    output: &OutputTarget,
    options: &WriteOptions<'_>,
) -> Result<StagedOutput> {
    let mut columns = vec![TableColumn::Integer("row")];
    let added = options.change.added_fields();
    let fields = added.iter().flat_map(|fields| fields.fields);
    columns.extend(fields.map(|field| match field.kind {
        AddedKind::Number => TableColumn::Number(&field.name),
        AddedKind::Integer => TableColumn::Integer(&field.name),
        AddedKind::Text | AddedKind::Texts => TableColumn::Text(&field.name),
    }));
    let left_out = match options.change {
        RowChange::CutText(left_out) => Some(left_out),
        _ => None,
    };
    columns.extend(left_out.map(|_| TableColumn::LongNumbers(LEFT_OUT_COLUMN)));
    let mut table = TableWriter::create_table(output, &columns, None)?;
    for index in (0..rows.len()).filter(|&index| rows.is_kept(index)) {
        let mut values = added.map_or(Ok(Vec::new()), |added| (added.values)(index))?;
        for value in &mut values {
            if let AddedValue::Texts(texts) = value {
                *value = AddedValue::Json(texts_to_json(texts));
            }
        }
        let mut cells = vec![TableCell::Integer(rows.row_number(index) - 1)];
        cells.extend(values.iter().map(|value| match value {
            AddedValue::Text(text) | AddedValue::Json(text) => TableCell::Text(text),
            AddedValue::Number(number) => TableCell::Number(*number),
            AddedValue::Integer(number) => TableCell::Integer(*number),
            AddedValue::Texts(_) | AddedValue::Null => TableCell::Null,
        }));
        let parts = left_out.map(|left_out| left_out(index)).transpose()?;
        let ranges = parts.map(|parts| parts.map(|parts| range_numbers(&parts)));
        cells.extend(ranges.iter().map(|ranges| match ranges {
            Some(ranges) => TableCell::LongNumbers(ranges),
            None => TableCell::Null,
        }));
        table.push_row(&cells)?;
    }
    table.prepare_table()
}

/// Returns the start and the end of each part that is left out, in bytes.
fn range_numbers(left_out: &LeftOutText) -> Vec<u64> {
    let ranges = left_out.ranges.iter();
    ranges
        .flat_map(|range| [range.start as u64, range.end as u64])
        .collect()
}

/// Checks, before any row is read, that an output can take the rows of the inputs.
///
/// # Errors
///
/// If the inputs have several formats, or one that is not converted to that of the output, or a column that the
/// output has no type for. For a directory: if two inputs
/// would have the same name in it, or if an input has no name.
pub fn check_kept(inputs: &InputSet, output: &OutputTarget, annotates: bool) -> Result<()> {
    let files = inputs.input_files();
    match output {
        OutputTarget::Memory(_) => Ok(()),
        OutputTarget::Path(path) if is_directory(path) => {
            let mirrored = mirrored_paths(inputs, path)?;
            if let Some(url) = mirrored.first().and_then(|path| ObjectUrl::from_path(path)) {
                check_upload(&url?)?;
            }
            files.chunks(1).zip(mirrored).try_for_each(|(file, path)| {
                refuse_inputs(&path, Some(inputs))?;
                check_files(file, &OutputTarget::Path(path), annotates)
            })
        }
        _ => check_files(files, output, annotates),
    }
}

/// Checks an output of the rows of `inputs` beside other files that a run reads, for example benchmarks.
///
/// # Errors
/// If the output, or a file of the directory that mirrors the inputs, would overwrite one of `others`; and as
/// [`check_output`].
pub fn check_beside(inputs: &InputSet, output: &OutputTarget, others: &InputSet) -> Result<()> {
    check_output(output, others)?;
    let replaced = mirrored_files(inputs, output)?;
    replaced
        .iter()
        .try_for_each(|path| refuse_inputs(path, Some(others)))
}

/// An output with content that would be replaced by one without rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptiedOutput {
    /// Its file, or its URL.
    pub path: PathBuf,
    /// Name of the input without rows that it is made from; `None` if it is made from several.
    pub input: Option<String>,
}

/// Returns the first output with content that would be replaced because inputs have no row: the output of all inputs, or
/// below a directory that of one input. Call it after all rows have been read.
///
/// # Errors
/// If the output is a directory, and two inputs would have the same name in it, or one has no name.
pub fn find_emptied(inputs: &InputSet, output: &OutputTarget) -> Result<Option<EmptiedOutput>> {
    let files = inputs.input_files();
    let parts: Vec<&[InputFile]> = match output {
        OutputTarget::Path(path) if is_directory(path) => files.chunks(1).collect(),
        _ => vec![files],
    };
    // Numbers of rows count from 1 over all inputs, so an input without rows begins where the next one does.
    let mut end = inputs.row_count() + 1;
    let mut emptied = None;
    for (part, path) in parts.iter().zip(mirrored_files(inputs, output)?).rev() {
        let first = part.first().and_then(InputFile::first_number);
        let start = first.unwrap_or(end);
        if start == end && has_content(&path) {
            let input = match part {
                [file] => Some(file.display_name().to_owned()),
                _ => None,
            };
            emptied = Some(EmptiedOutput { path, input });
        }
        end = start;
    }
    Ok(emptied)
}

/// Returns `true` if a file or an object exists and is not empty. Devices and pipes have no content that can be replaced.
fn has_content(path: &Path) -> bool {
    match ObjectUrl::from_path(path) {
        Some(url) => {
            let found = url.and_then(|url| find_objects(&url));
            matches!(found, Ok(ObjectSearch::Single(object)) if object.byte_length() != Some(0))
        }
        None => {
            let metadata = path.metadata();
            metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
        }
    }
}

/// Returns the files that an output of the rows of `inputs` becomes: one, or one for each input below a directory.
fn mirrored_files(inputs: &InputSet, output: &OutputTarget) -> Result<Vec<PathBuf>> {
    match output {
        OutputTarget::Path(path) if is_directory(path) => mirrored_paths(inputs, path),
        OutputTarget::Path(path) => Ok(vec![path.clone()]),
        OutputTarget::Stdout | OutputTarget::Memory(_) => Ok(Vec::new()),
    }
}

/// Refuses rows that can be written to this output neither unchanged nor converted.
fn check_files(files: &[InputFile], output: &OutputTarget, annotates: bool) -> Result<()> {
    let Some(first) = files.first() else {
        return Ok(());
    };
    let format = first.input_format();
    let is_alike = |file: &InputFile| {
        file.input_format() == format || file.input_format().is_json() && format.is_json()
    };
    if let Some(other) = files.iter().find(|file| !is_alike(file)) {
        return Err(Error::usage_error(format!(
            "{} and {} have different formats and cannot go into one output, {}: give a directory \
             as output",
            first.display_name(),
            other.display_name(),
            output
        )));
    }
    if format == InputFormat::TextFile && files.len() > 1 {
        return Err(Error::usage_error(format!(
            "a file per document can only be written to a directory, which {} is not",
            output
        )));
    }
    if format == InputFormat::Memory {
        return Err(Error::usage_error(format!(
            "rows of {}, a table in memory, cannot be written to {} as they are",
            first.display_name(),
            output
        )));
    }
    if format.is_plain_text() && annotates {
        return Err(Error::usage_error(format!(
            "{} is plain text, to which no fields can be added",
            first.display_name()
        )));
    }
    let writing = choose_writing(first.display_name(), format, output)?;
    check_conversion(files, writing, output)
}

/// Refuses inputs with different columns for one output.
pub(super) fn refuse_other_columns(
    first: &InputFile,
    columns: &SchemaRef,
    other: &InputFile,
    other_columns: &SchemaRef,
    output: &OutputTarget,
) -> Result<()> {
    if columns.fields() == other_columns.fields() {
        return Ok(());
    }
    Err(Error::input_error(format!(
        "{} and {} have different columns and cannot go into one output, {output}",
        first.display_name(),
        other.display_name()
    )))
}

/// Writes the kept rows of the inputs, but does not put the outputs in place yet.
///
/// JSONL, CSV and text are written byte for byte, with two exceptions: a line feed is added to a last
/// row without one if another row follows, and blank lines and byte order marks are dropped. Elements
/// of JSON lists become lines, or one list if the output is named `.json`. Parquet and Arrow keep all columns
/// with their types, and the metadata of the file.
///
/// JSONL, Parquet and Arrow are converted into each other if the name of the output says so. The types of the fields
/// of JSONL are found in a pass of its own over the kept rows.
///
/// If the output is a directory (an existing one, or a path with a trailing slash, which is then
/// created), each input has its own output in it, under its name or its path below the given directory.
/// One document per file can only be written to a directory. A table in memory gets the numbers of the rows from 0 in the
/// column `row`, added fields in columns of their names, and in the column `left_out` the start and the end of each part
/// that is left out of a text, in bytes. Lines for a plain file are written as far
/// as verdicts are known: see [`OutputRows::is_kept`]. `progress` receives the number of rows of the set
/// passed so far, in irregular steps.
///
/// # Errors
///
/// If an output is one of the inputs or has a format that rows are not converted to; if inputs for one output
/// have different formats or columns; if the values of a field have no common type; if text is to be annotated, or a row already has a field of the
/// annotation; if an input has changed since it was read; or if a write fails.
pub fn prepare_kept(
    inputs: &InputSet,
    rows: &dyn OutputRows,
    output: &OutputTarget,
    options: &WriteOptions<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<StagedOutput> {
    if let OutputTarget::Memory(_) = output {
        return write_numbers(rows, output, options);
    }
    let passed = AtomicU64::new(0);
    let progress = |rows: u64| progress(passed.fetch_add(rows, Ordering::Relaxed) + rows);
    let job = WriteJob {
        inputs,
        rows,
        options,
        progress: &progress,
    };
    let mut directories = OutputDirectories::default();
    let parts = match output {
        OutputTarget::Path(path) if is_directory(path) => {
            job.mirror_parts(path, &mut directories)?
        }
        _ => vec![job.part_of_inputs(output.clone(), 0..inputs.input_files().len())],
    };
    let annotates = options.change.added_fields().is_some();
    for part in &parts {
        check_files(
            &inputs.input_files()[part.files.clone()],
            &part.output,
            annotates,
        )?;
    }
    let mut written = WrittenOutput::default();
    let (mut sealed, mut single) = (Vec::new(), None);
    for part in &parts {
        let (mut target, bytes) = job.write_part(part)?;
        written.rows += part.rows.clone().filter(|&row| rows.is_kept(row)).count() as u64;
        written.bytes += bytes;
        inputs.input_files()[part.files.clone()]
            .iter()
            .try_for_each(InputFile::check_unchanged)?;
        if parts.len() == 1 && target.is_regular() {
            target.sync_output()?;
            single = Some(target);
        } else {
            sealed.push(target.seal_output()?);
        }
    }
    Ok(StagedOutput {
        written,
        sealed,
        single,
        directories,
    })
}

/// Returns `true` for a directory and for a path with `/` at its end, also that of an object store.
pub(super) fn is_directory(path: &Path) -> bool {
    let ends_as_directory = path.to_string_lossy().ends_with(std::path::is_separator);
    path.is_dir() || ends_as_directory
}

/// Returns the path of each input's output below a directory.
fn mirrored_paths(inputs: &InputSet, directory: &Path) -> Result<Vec<PathBuf>> {
    let mut names = BTreeMap::new();
    let mut paths = Vec::new();
    for file in inputs.input_files() {
        if !file.has_file_name() {
            return Err(Error::usage_error(format!(
                "{} has no file name under which it could be written to {}",
                file.display_name(),
                display_path(directory)
            )));
        }
        let path = directory.join(file.path_below());
        if let Some(other) = names.insert(path.clone(), file.display_name()) {
            return Err(Error::usage_error(format!(
                "{other} and {} would both be written to {}",
                file.display_name(),
                display_path(&path)
            )));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// One output with its inputs and rows.
pub(super) struct OutputPart {
    pub(super) output: OutputTarget,
    /// Indices of the inputs.
    pub(super) files: Range<usize>,
    /// Indices of their rows.
    pub(super) rows: Range<usize>,
}

/// The arguments that all outputs of a call share.
pub(super) struct WriteJob<'a> {
    pub(super) inputs: &'a InputSet,
    pub(super) rows: &'a dyn OutputRows,
    pub(super) options: &'a WriteOptions<'a>,
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
}

/// Consecutive rows of one input.
pub(super) struct RowChunk {
    pub(super) file: usize,
    pub(super) rows: Range<usize>,
    /// Position in the output, if rows are not changed.
    start: u64,
    /// `true` if the kept row before them lacks a line feed, so that one must be inserted.
    after_open: bool,
}

/// Divides the rows of an output into chunks and skips ranges without a kept row.
pub(super) struct RowChunks<'a> {
    job: &'a WriteJob<'a>,
    rows: Range<usize>,
    /// Position of the next chunk.
    at: u64,
    /// `true` if the last kept row lacks a line feed.
    open: bool,
}

impl Iterator for RowChunks<'_> {
    type Item = RowChunk;

    fn next(&mut self) -> Option<RowChunk> {
        while !self.rows.is_empty() {
            let start = self.rows.start;
            let (end, bytes, last) = self.job.chunk_end(start, self.rows.end);
            self.rows.start = end;
            if let Some(last) = last {
                let file = self.job.inputs.input_index(last);
                let after_open =
                    std::mem::replace(&mut self.open, self.job.is_unterminated(file, last));
                let start_at = self.at + u64::from(after_open);
                self.at = start_at + bytes;
                return Some(RowChunk {
                    file,
                    rows: start..end,
                    start: start_at,
                    after_open,
                });
            }
        }
        None
    }
}

impl WriteJob<'_> {
    /// Selects the rows of some inputs by binary search, because rows are in input order.
    pub(super) fn part_of_inputs(&self, output: OutputTarget, files: Range<usize>) -> OutputPart {
        let first_of = |file: usize| {
            let (mut low, mut high) = (0, self.rows.len());
            while low < high {
                let middle = low + (high - low) / 2;
                if self.inputs.input_index(self.rows.place_of(middle)) < file {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            low
        };
        let rows = first_of(files.start)..first_of(files.end);
        OutputPart {
            output,
            files,
            rows,
        }
    }

    /// Creates one output per input below a directory, and the directories that they need.
    fn mirror_parts(
        &self,
        directory: &Path,
        made: &mut OutputDirectories,
    ) -> Result<Vec<OutputPart>> {
        let mut parts = Vec::new();
        let files = self
            .inputs
            .input_files()
            .iter()
            .zip(mirrored_paths(self.inputs, directory)?);
        for (index, (file, path)) in files.enumerate() {
            let part = self.part_of_inputs(OutputTarget::Path(path), index..index + 1);
            let document = file.input_format() == InputFormat::TextFile;
            if !document || part.rows.clone().any(|row| self.rows.is_kept(row)) {
                parts.push(part);
            }
        }
        for part in &parts {
            if let OutputTarget::Path(path) = &part.output
                && !is_url(path)
            {
                made.create_with_parents(path.parent().unwrap_or(directory))?;
            }
        }
        if directory.is_dir() {
            made.begin_journal(directory)?;
        }
        Ok(parts)
    }

    fn write_part(&self, part: &OutputPart) -> Result<(OpenOutput, u64)> {
        let target = OpenOutput::open_target(&part.output, Some(self.inputs))?;
        let files = &self.inputs.input_files()[part.files.clone()];
        if let Some(first) = files.first()
            && let RowWriting::Columns(format) =
                choose_writing(first.display_name(), first.input_format(), &part.output)?
        {
            return write_columns(self, part, target, format);
        }
        let header = self.header_row(part)?;
        let chunks = self.divide_part(part, header.len() as u64);
        let writes_list = writes_list(files, &part.output);
        let in_place = self.options.change.is_unchanged()
            && !writes_list
            && compression(&part.output) == CompressionKind::None
            && target.is_regular();
        if in_place {
            return self.write_in_place(part, target, &header, chunks);
        }
        let header = if writes_list { b"[".to_vec() } else { header };
        self.write_in_order(part, target, &header, &chunks.collect::<Vec<_>>())
    }

    /// Returns the header row of CSV with a line feed at its end.
    fn header_row(&self, part: &OutputPart) -> Result<Vec<u8>> {
        let mut files = self.inputs.input_files()[part.files.clone()].iter();
        let with_header = files.find_map(|file| Some((file, file.header_row()?)));
        let Some((file, header)) = with_header else {
            return Ok(Vec::new());
        };
        let mut header = match self.options.change.added_fields() {
            Some(fields) => annotate::annotated_header(self.inputs, file, header, fields)?,
            None => header.to_vec(),
        };
        if !header.ends_with(b"\n") {
            header.push(b'\n');
        }
        Ok(header)
    }

    pub(super) fn divide_part<'b>(&'b self, part: &OutputPart, start: u64) -> RowChunks<'b> {
        RowChunks {
            job: self,
            rows: part.rows.clone(),
            at: start,
            open: false,
        }
    }

    /// Returns the end of the chunk that starts at `first`, the number of its kept bytes, and the place
    /// of its last kept row.
    fn chunk_end(&self, first: usize, rows_end: usize) -> (usize, u64, Option<RowPlace>) {
        let start = self.rows.place_of(first).start_offset();
        let file = self.inputs.input_index(self.rows.place_of(first));
        let file_end = if file + 1 < self.inputs.input_files().len() {
            self.inputs.base_offset(file + 1)
        } else {
            u64::MAX
        };
        let (mut row, mut bytes, mut last) = (first, 0, None);
        while row < rows_end {
            let place = self.rows.place_of(row);
            let full =
                place.end_offset() - start.min(place.start_offset()) > CHUNK_BYTES && row > first;
            if place.start_offset() >= file_end || full {
                break;
            }
            if self.rows.is_kept(row) {
                bytes += u64::from(place.byte_length());
                last = Some(place);
            }
            row += 1;
        }
        (row, bytes, last)
    }

    /// Returns `true` if a row lacks a line feed.
    fn is_unterminated(&self, file: usize, place: RowPlace) -> bool {
        let end = place.end_offset() - self.inputs.base_offset(file);
        self.inputs.input_files()[file].unterminated_end() == Some(end)
    }

    /// Prepares the bytes of a chunk.
    fn render_chunk(&self, chunk: &RowChunk, room: &mut ChunkBuffers<'_>) -> Result<()> {
        if room.changer.is_none() {
            return self.read_kept_rows(chunk, &mut room.out);
        }
        let (rows, start) = self.read_span(chunk, &mut room.read)?;
        room.out.clear();
        for row in rows.filter(|&row| self.rows.is_kept(row)) {
            self.change_row(chunk.file, row, start, room)?;
        }
        Ok(())
    }

    /// Reads the kept rows of a chunk, one directly after another.
    pub(super) fn read_kept_rows(&self, chunk: &RowChunk, out: &mut Vec<u8>) -> Result<()> {
        let (rows, start) = self.read_span(chunk, out)?;
        self.close_gaps(rows, start, out);
        Ok(())
    }

    /// Reads the bytes from the first to the last kept row of a chunk. Returns these rows and the offset of the first
    /// one.
    fn read_span(&self, chunk: &RowChunk, bytes: &mut Vec<u8>) -> Result<(Range<usize>, u64)> {
        let kept = |row: &usize| self.rows.is_kept(*row);
        let Some(first) = chunk.rows.clone().find(kept) else {
            bytes.clear();
            return Ok((0..0, 0));
        };
        let last = chunk.rows.clone().rev().find(kept).unwrap_or(first);
        let start = self.rows.place_of(first).start_offset();
        let length = (self.rows.place_of(last).end_offset() - start) as usize;
        let data_start = start - self.inputs.base_offset(chunk.file);
        bytes.resize(length, 0);
        self.inputs.read_data(chunk.file, data_start, bytes)?;
        Ok((first..last + 1, start))
    }

    /// Appends a row as it is changed. The bytes that were read begin at offset `start`.
    fn change_row(
        &self,
        file: usize,
        row: usize,
        start: u64,
        room: &mut ChunkBuffers<'_>,
    ) -> Result<()> {
        let place = self.rows.place_of(row);
        let at = (place.start_offset() - start) as usize;
        let bytes = &room.read[at..at + place.byte_length() as usize];
        let file = &self.inputs.input_files()[file];
        let number = self.rows.row_number(row);
        match &mut room.changer {
            Some(RowChanger::Annotator(annotator)) => {
                annotator.annotate_row(file, number, row, bytes, &mut room.out)
            }
            Some(RowChanger::Cutter(cutter, left_out)) => match left_out(row)? {
                Some(left_out) => cutter.cut_row(file, number, &left_out, bytes, &mut room.out),
                None => {
                    room.out.extend_from_slice(bytes);
                    Ok(())
                }
            },
            None => Ok(()),
        }
    }

    /// Moves the kept rows together. `bytes` begins at offset `start`.
    fn close_gaps(&self, rows: Range<usize>, start: u64, bytes: &mut Vec<u8>) {
        let mut filled = 0;
        let mut run = 0..0;
        for row in rows {
            if !self.rows.is_kept(row) {
                continue;
            }
            let place = self.rows.place_of(row);
            let at = (place.start_offset() - start) as usize;
            if at != run.end {
                filled = move_bytes(bytes, &run, filled);
                run.start = at;
            }
            run.end = at + place.byte_length() as usize;
        }
        filled = move_bytes(bytes, &run, filled);
        bytes.truncate(filled);
    }

    fn new_buffers(&self) -> ChunkBuffers<'_> {
        let changer = match self.options.change {
            RowChange::Unchanged => None,
            RowChange::AddFields(fields) => Some(RowChanger::Annotator(Box::new(
                RowAnnotator::new(self.inputs, fields),
            ))),
            RowChange::CutText(left_out) => {
                Some(RowChanger::Cutter(TextCutter::new(self.inputs), left_out))
            }
        };
        ChunkBuffers {
            out: Vec::new(),
            read: Vec::new(),
            changer,
        }
    }

    /// Writes chunks in order.
    fn write_in_order(
        &self,
        part: &OutputPart,
        target: OpenOutput,
        header: &[u8],
        chunks: &[RowChunk],
    ) -> Result<(OpenOutput, u64)> {
        let mut stream = OutputStream::new(&part.output, target, self.options.threads)?;
        stream.write_bytes(header)?;
        let files = &self.inputs.input_files()[part.files.clone()];
        let mut list = writes_list(files, &part.output).then(ListElements::default);
        work_in_order(
            chunks.len(),
            self.options.threads,
            || self.new_buffers(),
            |index, room| self.render_chunk(&chunks[index], room).map(|()| index),
            |index, room| {
                (self.progress)(chunks[index].rows.len() as u64);
                if let Some(list) = &mut list {
                    return stream.write_bytes(list.join_rows(&room.out));
                }
                if chunks[index].after_open {
                    stream.write_bytes(b"\n")?;
                }
                stream.write_bytes(&room.out)
            },
        )?;
        if list.is_some() {
            stream.write_bytes(b"\n]\n")?;
        }
        stream.finish_stream()
    }

    /// Writes chunks in parallel, each at its position.
    fn write_in_place(
        &self,
        part: &OutputPart,
        target: OpenOutput,
        header: &[u8],
        chunks: RowChunks<'_>,
    ) -> Result<(OpenOutput, u64)> {
        let failed = |cause: io::Error| Error::write_error("write", &part.output, cause);
        let Some(file) = target.as_file() else {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        };
        file.write_all_bytes_at(header, 0).map_err(failed)?;
        let (chunks, failure) = (Mutex::new(chunks), AtomicBool::new(false));
        let next = || {
            let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            chunks.next().filter(|_| !failure.load(Ordering::Relaxed))
        };
        let syncer = BackgroundSync::new(file, header.len() as u64);
        let threads = self.options.threads.min(part.rows.len().max(1));
        let copy = || -> Result<()> {
            let mut room = self.new_buffers();
            while let Some(chunk) = next() {
                self.render_chunk(&chunk, &mut room)?;
                if chunk.after_open {
                    file.write_all_bytes_at(b"\n", chunk.start - 1)
                        .map_err(failed)?;
                }
                file.write_all_bytes_at(&room.out, chunk.start)
                    .map_err(failed)?;
                syncer.add_written(room.out.len() as u64 + u64::from(chunk.after_open));
                if threads > 1 {
                    syncer.sync_if_due();
                }
                (self.progress)(chunk.rows.len() as u64);
            }
            Ok(())
        };
        let copy = || copy().inspect_err(|_| failure.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            // A single thread should not wait for the disk; with several threads, one of them may.
            let syncing =
                (threads == 1 && HAS_THREADS).then(|| scope.spawn(|| syncer.run_until_stopped()));
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(copy)).collect();
            let own = copy();
            let result = workers.into_iter().fold(own, |result, worker| {
                let other = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result.and(other)
            });
            syncing
                .iter()
                .for_each(|syncing| syncer.stop_thread(syncing));
            result
        })?;
        let bytes = syncer.total_written();
        Ok((target, bytes))
    }
}

/// Returns `true` if the rows are written as one JSON list, because all inputs are JSON lists and the
/// output is named `.json`.
fn writes_list(files: &[InputFile], output: &OutputTarget) -> bool {
    let is_named = matches!(output, OutputTarget::Path(path) if is_named_json(path));
    is_named
        && !files.is_empty()
        && files
            .iter()
            .all(|file| file.input_format() == InputFormat::Json)
}

/// Joins rows, one per line, into the elements of a list.
#[derive(Default)]
struct ListElements {
    joined: Vec<u8>,
    has_some: bool,
}

impl ListElements {
    /// Returns the rows, each preceded by a line feed, and by a comma unless it is the first of the
    /// list.
    fn join_rows(&mut self, rows: &[u8]) -> &[u8] {
        self.joined.clear();
        for row in rows
            .split(|&byte| byte == b'\n')
            .filter(|row| !row.is_empty())
        {
            let between: &[u8] = if self.has_some { b",\n" } else { b"\n" };
            self.joined.extend_from_slice(between);
            self.joined.extend_from_slice(row);
            self.has_some = true;
        }
        &self.joined
    }
}

/// Moves the bytes of `run` to `to` and returns their new end.
fn move_bytes(bytes: &mut [u8], run: &Range<usize>, to: usize) -> usize {
    if run.start != to {
        bytes.copy_within(run.clone(), to);
    }
    to + run.len()
}

/// Chunk buffers of one thread.
struct ChunkBuffers<'a> {
    out: Vec<u8>,
    read: Vec<u8>,
    changer: Option<RowChanger<'a>>,
}

/// Changes rows on one thread.
enum RowChanger<'a> {
    Annotator(Box<RowAnnotator<'a>>),
    Cutter(
        TextCutter<'a>,
        &'a (dyn Fn(usize) -> Result<Option<LeftOutText>> + Sync),
    ),
}

/// Syncs written data to disk while more is written. Errors are ignored, because the final sync reports
/// them again.
struct BackgroundSync<'a> {
    file: &'a File,
    written: AtomicU64,
    /// Bytes written when the last sync began.
    synced: AtomicU64,
    stopped: AtomicBool,
}

impl<'a> BackgroundSync<'a> {
    fn new(file: &'a File, written: u64) -> Self {
        Self {
            file,
            written: AtomicU64::new(written),
            synced: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    fn total_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Syncs if enough was written since the last sync. Returns `true` if it did.
    fn sync_if_due(&self) -> bool {
        let (synced, written) = (self.synced.load(Ordering::Relaxed), self.total_written());
        let due = written - synced.min(written) >= SYNC_BYTES;
        let order = Ordering::Relaxed;
        let due = due
            && self
                .synced
                .compare_exchange(synced, written, order, order)
                .is_ok();
        due && self.file.sync_data().is_ok()
    }

    /// Syncs repeatedly, on a thread of its own.
    fn run_until_stopped(&self) {
        while !self.stopped.load(Ordering::Relaxed) {
            if !self.sync_if_due() {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        }
    }

    fn stop_thread<T>(&self, syncing: &std::thread::ScopedJoinHandle<'_, T>) {
        self.stopped.store(true, Ordering::Relaxed);
        syncing.thread().unpark();
    }
}
