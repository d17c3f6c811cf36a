//! All inputs of a run as one sequence of rows in one address space.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;

use super::block::{
    BlockBody, DocumentFiles, InputBlock, LineBlock, ParquetBlock, ParseScratch, TableBlock,
};
use super::block_reader::ReadProgress;
use super::columnar::{self, NumberedBatch};
use super::decode::{RowDecoding, bom_length, check_encoding};
use super::expand::{ExpandedInputs, find_inputs};
use super::field_census::FieldCensus;
use super::file::{InputFile, InputStorage};
use super::line_reader::{ReadBuffer, RowEnds, trim_line_end};
use super::memory::{MemoryTable, OpenTable};
use super::parquet_rows;
use super::row_values::{FieldPlan, ParsedRow, RowPosition, RowValues, with_extra};
use super::{
    BadRow, IdField, InputFormat, InputRow, ReadOptions, RowPlace, RowResult, RowSource,
    WantedFields, frame, json,
};
use crate::error::{Error, Result};
use crate::spool::SpoolFile;

/// Address space reserved for an input of unknown size: 4 TiB.
const STREAM_ROOM: u64 = 1 << 42;

/// Largest number of files that stay open for reading rows again.
const OPEN_FILES: usize = 128;

/// Largest number of buffers in the pool.
const POOLED_BUFFERS: usize = 16;

/// The opened inputs of a run. All methods may be called from several threads at once.
pub struct InputSet {
    files: Vec<InputFile>,
    left_out: Vec<PathBuf>,
    /// Start of each input in the address space.
    bases: Vec<u64>,
    options: ReadOptions,
    decoding: RowDecoding,
    streams: Option<SpoolFile>,
    records: Option<SpoolFile>,
    /// The table that is read, if rows come from memory.
    table: Option<OpenTable>,
    layout: OnceLock<RowLayout>,
    census: FieldCensus,
    reading: Mutex<ReadProgress>,
    pool: Mutex<Vec<ReadBuffer>>,
}

/// The wanted fields, once the field of the ids is known.
pub(super) struct RowLayout {
    pub(super) plan: FieldPlan,
    paths: json::FieldPaths,
    /// Index of each field of the plan in the census, if it counts there.
    places: Vec<Option<usize>>,
}

impl RowLayout {
    pub(super) fn new(fields: &WantedFields, id: Option<&str>, census: &FieldCensus) -> Self {
        let plan = FieldPlan::new(fields, id);
        let paths = json::FieldPaths::new(&plan);
        let places = census.wanted_places(&plan);
        Self {
            plan,
            paths,
            places,
        }
    }
}

impl InputSet {
    /// Finds and opens the inputs: files, directories, globs, and `-` for standard input.
    ///
    /// A directory stands for all files of known formats in it and below it, sorted by name, except for
    /// names that begin with `.` or `_`. Standard input is read as JSONL unless [`ReadOptions::format`]
    /// is set.
    ///
    /// # Errors
    ///
    /// If an input does not exist or cannot be read, if its format is unknown, if a temporary file
    /// cannot be created, or if the options contradict the inputs.
    pub fn open_paths(paths: &[PathBuf], options: &ReadOptions) -> Result<Self> {
        check_encoding(options.encoding)?;
        if options.document_per_file
            && !matches!(
                options.format,
                None | Some(InputFormat::Text | InputFormat::TextFile)
            )
        {
            return Err(Error::usage_error(
                "only plain text can be a file per document",
            ));
        }
        let ExpandedInputs { found, left_out } = find_inputs(paths, options)?;
        let files = found
            .into_iter()
            .enumerate()
            .map(|(index, found)| {
                InputFile::new(found, index < OPEN_FILES, options.scratch.as_deref())
            })
            .collect::<Result<Vec<_>>>()?;
        check_fields(&files, &options.fields)?;
        let bases = assign_bases(&files)?;
        let stored = |storage, per_file| {
            let needs = |file: &InputFile| {
                file.storage() == storage
                    && (file.input_format() == InputFormat::TextFile) == per_file
            };
            files.iter().any(needs)
        };
        let spool = |wanted: bool| {
            wanted
                .then(|| match options.again {
                    true => SpoolFile::create_file(options.scratch.as_deref()),
                    false => Ok(SpoolFile::forgetting()),
                })
                .transpose()
        };
        let streams = spool(stored(InputStorage::Stream, false))?;
        let records =
            spool(stored(InputStorage::Records, false) || stored(InputStorage::Stream, true))?;
        Ok(Self {
            files,
            left_out,
            bases,
            options: options.clone(),
            decoding: RowDecoding {
                encoding: options.encoding,
                invalid_text: options.invalid_text,
            },
            streams,
            records,
            table: None,
            layout: OnceLock::new(),
            census: FieldCensus::new(&options.fields),
            reading: Mutex::new(ReadProgress::new()),
            pool: Mutex::new(Vec::new()),
        })
    }

    /// Returns the files in the given directories that are not read because their format is unknown.
    /// Names that begin with `.` or `_` are not data and are not listed.
    pub fn skipped_files(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Opens the inputs of a [`RowSource`].
    ///
    /// # Errors
    ///
    /// The errors of [`open_paths`](Self::open_paths), and a table without the wanted columns.
    pub fn open_source(source: &RowSource, options: &ReadOptions) -> Result<Self> {
        match source {
            RowSource::Paths(paths) => Self::open_paths(paths, options),
            RowSource::Table(table) => Self::from_table(table, options),
        }
    }

    /// Opens a table in memory.
    fn from_table(table: &MemoryTable, options: &ReadOptions) -> Result<Self> {
        let mut inputs = Self::open_paths(&[], options)?;
        let fields = table.table_schema().fields();
        inputs.decide_layout(|| Ok(Some(fields.find("id").is_some())))?;
        let open = OpenTable::new(table, &inputs.row_layout().plan)?;
        inputs.census.mark_complete();
        inputs.files = vec![InputFile::in_memory(
            table.display_name(),
            open.total_bytes(),
        )];
        inputs.bases = vec![0];
        inputs.table = Some(open);
        Ok(inputs)
    }

    /// Returns the table that is read, if rows come from memory.
    pub(super) fn open_table(&self) -> Option<&OpenTable> {
        self.table.as_ref()
    }

    /// Returns the inputs in the order in which they are read.
    pub fn input_files(&self) -> &[InputFile] {
        &self.files
    }

    /// Returns the size on disk of all inputs together, in bytes, or `None` if one is not a regular
    /// file.
    pub fn total_bytes(&self) -> Option<u64> {
        self.files.iter().map(InputFile::size_on_disk).sum()
    }

    /// Returns the input that contains a row.
    pub fn input_of(&self, place: RowPlace) -> &InputFile {
        &self.files[self.input_index(place)]
    }

    /// Returns the name of the input that contains a row, and the row's number within it, from 1.
    /// `number` is the row's number over all inputs.
    pub fn source_row(&self, place: RowPlace, number: u64) -> (&str, u64) {
        let file = self.input_of(place);
        (
            file.display_name(),
            number - file.first_number().unwrap_or(1) + 1,
        )
    }

    /// Returns the index in [`input_files`](Self::input_files) of the input that contains a row.
    pub(crate) fn input_index(&self, place: RowPlace) -> usize {
        self.bases
            .partition_point(|&base| base <= place.start_offset())
            .saturating_sub(1)
    }

    /// Returns the start of an input in the address space.
    pub(crate) fn base_offset(&self, file: usize) -> u64 {
        self.bases[file]
    }

    pub(super) fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    pub(super) fn row_decoding(&self) -> &RowDecoding {
        &self.decoding
    }

    pub(super) fn stream_spool(&self) -> Option<&SpoolFile> {
        self.streams.as_ref()
    }

    pub(super) fn field_census(&self) -> &FieldCensus {
        &self.census
    }

    /// Refuses inputs in which no row at all has one of the wanted fields. Call it after the last row.
    /// Inputs without rows, and rows that are not objects, do not count.
    ///
    /// # Errors
    ///
    /// If no row has a wanted field. The message names that field, the fields that do exist, and the
    /// one that was probably meant.
    pub fn refuse_absent_fields(&self) -> Result<()> {
        let Some(absent) = self.census.first_absent() else {
            return Ok(());
        };
        let role = match absent.role {
            role @ ("text" | "features") => format!(", named as the {role}"),
            "an id" => ", named as the id".to_owned(),
            _ => String::new(),
        };
        Err(Error::usage_error(format!(
            "none of the {} rows of {} has the field `{}`{role}: {}",
            absent.rows,
            self.describe_names(),
            absent.name,
            self.census.describe_fields(&absent.name, absent.role)
        )))
    }

    /// Explains why a row was refused, if the reason is a field that no row has had so far.
    pub fn refuse_field_of(&self, reason: &str) -> Result<()> {
        match self.census.first_absent() {
            Some(absent) if reason == format!("the field `{}` is missing", absent.name) => {
                self.refuse_absent_fields()
            }
            _ => Ok(()),
        }
    }

    /// Describes the fields of JSON rows, with the one that was probably meant. Returns `None` without
    /// JSON inputs.
    pub fn describe_fields(&self, wanted: &str) -> Option<String> {
        let reads_json = self.files.iter().any(|file| file.input_format().is_json());
        reads_json.then(|| self.census.describe_fields(wanted, ""))
    }

    /// Returns the names of all inputs, shortened if there are more than three.
    fn describe_names(&self) -> String {
        let names: Vec<_> = self.files.iter().map(InputFile::display_name).collect();
        match names[..] {
            [first, .., last] if names.len() > 3 => {
                format!("{first} … {last} ({} files)", names.len())
            }
            _ => names.join(", "),
        }
    }

    /// Calls `visit` with each of the given rows of one Parquet file, complete with all columns, as a
    /// JSON object.
    ///
    /// # Errors
    ///
    /// If the file cannot be read again, and the first error that `visit` returns.
    pub fn visit_whole_rows(
        &self,
        rows: &[BadRow],
        visit: &mut dyn FnMut(&BadRow, &str) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let file = self.input_of(first.place);
        parquet_rows::visit_whole_rows(file, rows, visit)
    }

    pub(super) fn layout_if_known(&self) -> Option<&RowLayout> {
        self.layout.get()
    }

    pub(super) fn set_layout(&self, layout: RowLayout) -> &RowLayout {
        self.layout.get_or_init(|| layout)
    }

    /// Returns the next rows, or `None` at the end and after an error, which only one of the threads
    /// receives.
    ///
    /// # Errors
    ///
    /// If the rest of an input is unreadable: see the [module](super).
    pub fn next_block(&self) -> Result<Option<InputBlock>> {
        let mut block = self.lock_reading().next_block(self)?;
        if let Some(InputBlock {
            body: BlockBody::Documents(documents),
            ..
        }) = &mut block
        {
            self.load_documents(documents)
                .inspect_err(|_| self.lock_reading().stop_after_failure())?;
        }
        Ok(block)
    }

    fn lock_reading(&self) -> std::sync::MutexGuard<'_, ReadProgress> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a buffer from the pool, or creates one.
    pub(super) fn take_buffer(&self) -> ReadBuffer {
        self.pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }

    /// Returns a buffer to the pool, unless a long row has made it large.
    pub(super) fn return_buffer(&self, buffer: ReadBuffer) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED_BUFFERS && buffer.capacity_bytes() / 2 <= self.options.block_bytes {
            pool.push(buffer);
        }
    }

    /// Returns the memory of a block to the pool. A block that is not returned is simply freed.
    pub fn recycle_block(&self, block: InputBlock) {
        match block.body {
            BlockBody::Lines(LineBlock { buffer, .. })
            | BlockBody::Documents(DocumentFiles { buffer, .. }) => {
                self.return_buffer(buffer);
            }
            BlockBody::Packed(_) | BlockBody::Memory(_) => {}
        }
    }

    /// Reads the files of a block of documents.
    fn load_documents(&self, documents: &mut DocumentFiles) -> Result<()> {
        documents.buffer = self.take_buffer();
        documents.buffer.clear();
        let most = self.options.max_row_bytes as usize;
        for index in 0..documents.ends.len() {
            let file = &self.files[documents.file + index];
            let start = documents.buffer.filled_bytes().len();
            let mut stream = file.open_stream()?;
            let mut goal = usize::try_from(file.size_on_disk().unwrap_or(0))
                .unwrap_or(most)
                .min(most)
                + 1;
            while !documents
                .buffer
                .read_until_goal(start + goal, &mut stream, None)?
            {
                if goal > most {
                    let name = file.display_name();
                    return Err(Error::limit_error(format!(
                        "{name} is longer than {most} bytes"
                    )));
                }
                goal = (goal * 2).min(most + 1);
            }
            let end = documents.buffer.filled_bytes().len();
            if let (InputStorage::Stream, Some(spool)) = (file.storage(), &self.records) {
                file.set_spooled_at(
                    spool.append_bytes(&documents.buffer.filled_bytes()[start..end])?,
                );
            }
            file.check_unchanged()?;
            documents.ends[index] = end;
        }
        Ok(())
    }

    /// Parses a block and calls `visit` for each of its rows, good or bad, in order.
    ///
    /// # Errors
    ///
    /// The first error that `visit` returns, after which `visit` is not called again; also a row over
    /// the limit, and a temporary file that cannot be written.
    pub fn parse_block(
        &self,
        block: &InputBlock,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        match &block.body {
            BlockBody::Lines(lines) => self.parse_lines(lines, None, scratch, visit),
            BlockBody::Documents(documents) => {
                self.parse_documents(documents, None, scratch, visit)
            }
            BlockBody::Packed(packed) => self.parse_packed(packed, scratch, visit),
            BlockBody::Memory(held) => self.parse_held(held, None, scratch, visit),
        }
    }

    /// Parses the rows of a block that have the `wanted` numbers, in ascending order, before the block
    /// itself is parsed. Rows of Parquet have no place yet. Cost: finding the ends of all rows up to
    /// the last wanted one, and parsing the wanted rows.
    ///
    /// # Errors
    ///
    /// The first error that `visit` returns, and a row over the limit.
    pub fn parse_some(
        &self,
        block: &InputBlock,
        wanted: &[u64],
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        match &block.body {
            BlockBody::Lines(lines) => self.parse_lines(lines, Some(wanted), scratch, visit),
            BlockBody::Documents(documents) => {
                self.parse_documents(documents, Some(wanted), scratch, visit)
            }
            BlockBody::Packed(packed) => self.parse_some_packed(packed, wanted, scratch, visit),
            BlockBody::Memory(held) => self.parse_held(held, Some(wanted), scratch, visit),
        }
    }

    fn row_layout(&self) -> &RowLayout {
        // If no row has decided about ids, then no row is valid, and any layout will do.
        self.layout
            .get_or_init(|| RowLayout::new(&self.options.fields, None, &self.census))
    }

    fn parse_lines(
        &self,
        lines: &LineBlock,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[lines.file];
        let layout = self.provisional_layout(file);
        let layout = layout.as_ref().unwrap_or_else(|| self.row_layout());
        let bytes = &lines.buffer.filled_bytes()[lines.start..];
        let base = self.bases[lines.file] + lines.offset;
        // For a few rows, checking the encoding of each is cheaper than checking the whole block.
        let whole = match wanted {
            None => self.decoding.decode_whole(bytes),
            Some(_) => None,
        };
        let last = wanted.map(|wanted| wanted.last().copied().unwrap_or(0));
        let ends = file.row_ends();
        let (mut line, mut number, mut start) = (lines.line, lines.number, 0);
        while start < bytes.len() && last.is_none_or(|last| number <= last) {
            let end = ends.find_row_end(bytes, start);
            let content = trim_line_end(&bytes[start..end]);
            if !content.is_empty() && is_wanted(wanted, number) {
                let place = RowPlace::new(base + start as u64, self.row_length(file, start, end)?);
                let position = RowPosition {
                    file: file.display_name(),
                    line,
                    number,
                    place,
                };
                let decoded = match whole {
                    Some(text) => Ok(&text[start..start + content.len()]),
                    None => self.decoding.decode_row(content, &mut scratch.decoded),
                };
                let parsed = decoded.and_then(|row| {
                    self.parse_row(file, layout, row, &mut scratch.values, &mut scratch.cells)
                });
                match parsed {
                    Ok(row) => row.visit_row(&layout.plan, position, &mut *visit)?,
                    Err(reason) => visit(Err(position.bad_row_for(reason)))?,
                }
            }
            number += u64::from(!content.is_empty());
            line += match ends {
                RowEnds::LineFeed => 1,
                RowEnds::OutsideQuotes(_) => {
                    memchr::memchr_iter(b'\n', &bytes[start..end]).count() as u64
                }
            };
            start = end;
        }
        Ok(())
    }

    fn row_length(&self, file: &InputFile, start: usize, end: usize) -> Result<u32> {
        let most = self.options.max_row_bytes;
        u32::try_from(end - start)
            .ok()
            .filter(|&length| length <= most)
            .ok_or_else(|| {
                Error::limit_error(format!(
                    "a row of {} has {} bytes, more than the limit of {most}",
                    file.display_name(),
                    end - start
                ))
            })
    }

    /// Returns a layout without ids if the input is JSON and no row so far was a valid object.
    fn provisional_layout(&self, file: &InputFile) -> Option<RowLayout> {
        let undecided = self.layout.get().is_none() && file.input_format().is_json();
        undecided.then(|| RowLayout::new(&self.options.fields, None, &self.census))
    }

    fn parse_row<'a>(
        &self,
        file: &'a InputFile,
        layout: &RowLayout,
        row: &'a str,
        values: &'a mut RowValues,
        cells: &mut super::delimited::CellReader,
    ) -> std::result::Result<ParsedRow<'a>, String> {
        let plan = &layout.plan;
        let invalid_text = self.options.invalid_text;
        match (file.input_format(), file.columns.get()) {
            (InputFormat::Jsonl | InputFormat::Json, _) => {
                json::parse_row(row, plan, &layout.paths, invalid_text, values)?;
                self.census.observe_row(&layout.places, values);
            }
            (InputFormat::Csv { .. }, Some(columns)) => {
                columns.parse_row(row, plan, cells, values)?
            }
            (InputFormat::TextFile, _) => {
                let id = (self.options.fields.id == IdField::Default).then(|| file.display_name());
                return Ok(ParsedRow::from_plain_text(id, row, values));
            }
            _ => return Ok(ParsedRow::from_plain_text(None, row, values)),
        }
        values.parsed_row(plan, row, invalid_text)
    }

    fn parse_documents(
        &self,
        documents: &DocumentFiles,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for (index, &end) in documents.ends.iter().enumerate() {
            let file = &self.files[documents.file + index];
            let place = RowPlace::new(
                self.bases[documents.file + index],
                self.row_length(file, start, end)?,
            );
            let number = documents.number + index as u64;
            let position = RowPosition {
                file: file.display_name(),
                line: 1,
                number,
                place,
            };
            let bytes = &documents.buffer.filled_bytes()[start..end];
            start = end;
            if is_wanted(wanted, number) {
                self.visit_document(file, bytes, position, scratch, &mut *visit)?;
            }
        }
        Ok(())
    }

    fn visit_document<R>(
        &self,
        file: &InputFile,
        bytes: &[u8],
        position: RowPosition<'_>,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        let layout = self.row_layout();
        let bytes = &bytes[bom_length(bytes, self.options.encoding)..];
        let parsed = self
            .decoding
            .decode_row(bytes, &mut scratch.decoded)
            .and_then(|text| {
                self.parse_row(file, layout, text, &mut scratch.values, &mut scratch.cells)
            });
        match parsed {
            Ok(row) => row.visit_row(&layout.plan, position, visit),
            Err(reason) => visit(Err(position.bad_row_for(reason))),
        }
    }

    fn parse_held(
        &self,
        held: &TableBlock,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let plan = &self.row_layout().plan;
        let columns = table.visit_columns(held.rows.clone(), plan, self.options.invalid_text)?;
        for (at, row) in held.rows.clone().enumerate() {
            if is_wanted(wanted, row + 1) {
                self.visit_held(&columns, (at, row), scratch, &mut *visit)??;
            }
        }
        Ok(())
    }

    /// Calls `visit` with a row in memory, given by its index in `columns` and its index in
    /// the table.
    fn visit_held<R>(
        &self,
        columns: &columnar::WantedColumns,
        (at, row): (usize, u64),
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> Result<R> {
        let (file, plan) = (&self.files[0], &self.row_layout().plan);
        let mut position = RowPosition {
            file: file.display_name(),
            line: row + 1,
            number: row + 1,
            place: RowPlace::new(row, 0),
        };
        let values = &mut scratch.values;
        let read = columns.parse_around_text(at, plan, values);
        let parsed =
            read.and_then(|whole| values.parsed_row(plan, whole, self.options.invalid_text));
        match parsed {
            Ok(parsed) => {
                let length = self.row_length(file, 0, parsed.row_text().len())?;
                position.place = RowPlace::new(row, length);
                Ok(parsed.visit_row(plan, position, visit))
            }
            Err(reason) => Ok(visit(Err(position.bad_row_for(reason)))),
        }
    }

    fn parse_packed(
        &self,
        packed: &ParquetBlock,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        packed.portion.visit_batches(file.display_name(), |batch| {
            self.parse_batch(packed, &batch, scratch, &mut *visit)
        })?;
        file.check_unchanged()
    }

    fn parse_batch(
        &self,
        packed: &ParquetBlock,
        (rows, first): &NumberedBatch,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        let plan = &self.row_layout().plan;
        let broken = |reason: String| columnar::unreadable(file.display_name(), &reason);
        let framed = self.frame_batch(rows, plan, scratch).map_err(broken)?;
        let spool = self
            .records
            .as_ref()
            .ok_or_else(|| broken("it is not spooled".to_owned()))?;
        let base = self.bases[packed.file] + spool.append_bytes(&scratch.frames)?;
        let invalid_text = self.options.invalid_text;
        let extra =
            columnar::WantedColumns::new(rows, plan, invalid_text, |slot| plan.is_extra_slot(slot));
        let extra = extra.map_err(broken)?;
        for (row, outcome) in framed.into_iter().enumerate() {
            let (start, end) = *outcome.as_ref().unwrap_or(&(0, 0));
            let place = RowPlace::new(base + start as u64, self.row_length(file, start, end)?);
            let number = packed.number + first + row as u64;
            let line = first + row as u64 + 1;
            let position = RowPosition {
                file: file.display_name(),
                line,
                number,
                place,
            };
            let frame = &scratch.frames[start..end];
            let values = &mut scratch.values;
            let entries = &mut scratch.entries;
            let read = outcome.and_then(|_| {
                extra.parse_row(row, plan, values)?;
                frame::decode_frame(frame, entries, place, number)
                    .ok_or_else(|| "it is damaged".into())
            });
            match read {
                Err(reason) => visit(Err(position.bad_row_for(reason)))?,
                Ok(row) => with_extra(values, plan, "", |extra| {
                    visit(
                        extra
                            .map(|extra| InputRow { extra, line, ..row })
                            .map_err(|why| position.bad_row_for(why)),
                    )
                })?,
            }
        }
        Ok(())
    }

    fn parse_some_packed(
        &self,
        packed: &ParquetBlock,
        wanted: &[u64],
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        let plan = &self.row_layout().plan;
        let broken = |reason: String| columnar::unreadable(file.display_name(), &reason);
        packed
            .portion
            .visit_batches(file.display_name(), |(rows, first)| {
                let start = packed.number + first;
                let place_of = |number: u64| wanted.partition_point(|&other| other < number);
                let here = &wanted[place_of(start)..place_of(start + rows.num_rows() as u64)];
                if here.is_empty() {
                    return Ok(());
                }
                let invalid_text = self.options.invalid_text;
                let columns = columnar::WantedColumns::new(&rows, plan, invalid_text, |_| true);
                let columns = columns.map_err(broken)?;
                let values = &mut scratch.values;
                for &number in here {
                    let position = RowPosition {
                        file: file.display_name(),
                        line: number - packed.number + 1,
                        number,
                        place: RowPlace::new(self.bases[packed.file], 0),
                    };
                    let read = columns.parse_row((number - start) as usize, plan, values);
                    match read.and_then(|()| values.parsed_row(plan, "", self.options.invalid_text))
                    {
                        Ok(row) => row.visit_row(plan, position, &mut *visit)?,
                        Err(reason) => visit(Err(position.bad_row_for(reason)))?,
                    }
                }
                Ok(())
            })
    }

    /// Appends the rows of a batch to the scratch memory as frames. Returns the range of each frame, or
    /// the reason why its row is bad.
    #[expect(
        clippy::type_complexity,
        reason = "one outcome per row, and one for the batch"
    )]
    fn frame_batch(
        &self,
        rows: &RecordBatch,
        plan: &FieldPlan,
        scratch: &mut ParseScratch,
    ) -> std::result::Result<Vec<std::result::Result<(usize, usize), String>>, String> {
        let invalid_text = self.options.invalid_text;
        let columns =
            columnar::WantedColumns::new(rows, plan, invalid_text, |slot| plan.is_kept_slot(slot))?;
        let (frames, values) = (&mut scratch.frames, &mut scratch.values);
        frames.clear();
        let mut frame = |row| {
            let start = frames.len();
            columns.parse_row(row, plan, values)?;
            let parsed = values.parsed_row(plan, "", self.options.invalid_text)?;
            parsed
                .encode_frame(frames)
                .ok_or_else(|| "the row is longer than 4 GiB".to_owned())?;
            Ok((start, frames.len()))
        };
        Ok((0..rows.num_rows()).map(&mut frame).collect())
    }

    /// Reads one row again and parses it.
    ///
    /// # Errors
    ///
    /// If the row cannot be read again, or if it has become a bad row because its file has changed.
    pub fn reread_row<R>(
        &self,
        place: RowPlace,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(&InputRow<'_>) -> R,
    ) -> Result<R> {
        let file = self.input_of(place);
        if let Some(table) = &self.table {
            let row = place.start_offset();
            let columns = table.visit_columns(
                row..row + 1,
                &self.row_layout().plan,
                self.options.invalid_text,
            )?;
            return self.visit_held(&columns, (0, row), scratch, |row| match row {
                Ok(row) => Ok(visit(&row)),
                Err(bad) => Err(Error::input_error(format!("{}: {}", bad.file, bad.reason))),
            })?;
        }
        let mut bytes = std::mem::take(&mut scratch.bytes);
        let read = self.read_place(place, &mut bytes);
        let result = read.and_then(|()| self.reparse_row(file, place, &bytes, scratch, visit));
        scratch.bytes = bytes;
        result
    }

    fn reparse_row<R>(
        &self,
        file: &InputFile,
        place: RowPlace,
        bytes: &[u8],
        scratch: &mut ParseScratch,
        visit: impl FnOnce(&InputRow<'_>) -> R,
    ) -> Result<R> {
        let changed = |reason: &str| {
            Error::input_error(format!(
                "{} was changed while it was being read: {reason}",
                file.display_name()
            ))
        };
        let position = RowPosition {
            file: file.display_name(),
            line: 0,
            number: 0,
            place,
        };
        let visit = |row: RowResult<'_>| match row {
            Ok(row) => Ok(visit(&row)),
            Err(bad) => Err(changed(&bad.reason)),
        };
        if file.input_format() == InputFormat::Parquet {
            let row = frame::decode_frame(bytes, &mut scratch.entries, place, 0);
            return visit(
                row.ok_or_else(|| position.bad_row_for("its copy is damaged".to_owned())),
            );
        }
        if file.input_format() == InputFormat::TextFile {
            return self.visit_document(file, bytes, position, scratch, visit);
        }
        let layout = self.row_layout();
        let parsed = self
            .decoding
            .decode_row(trim_line_end(bytes), &mut scratch.decoded)
            .and_then(|row| {
                self.parse_row(file, layout, row, &mut scratch.values, &mut scratch.cells)
            });
        match parsed {
            Ok(row) => row.visit_row(&layout.plan, position, visit),
            Err(reason) => Err(changed(&reason)),
        }
    }

    /// Reads the bytes of one row again into `bytes`, with the line end if there is one. For Parquet
    /// and tables in memory the bytes are the id and the text as one line of JSON.
    ///
    /// # Errors
    ///
    /// If the row cannot be read again.
    pub fn read_raw_row(&self, place: RowPlace, bytes: &mut Vec<u8>) -> Result<()> {
        if self.table.is_some() {
            return self.reread_row(place, &mut ParseScratch::default(), |row| {
                *bytes = as_json_line(row);
            });
        }
        self.read_place(place, bytes)?;
        let file = self.input_of(place);
        if file.input_format() != InputFormat::Parquet {
            return Ok(());
        }
        let mut entries = Vec::new();
        let row = frame::decode_frame(bytes, &mut entries, place, 0);
        let row = row.ok_or_else(|| Error::input_error("the copy of a row is damaged"))?;
        *bytes = as_json_line(&row);
        Ok(())
    }

    fn read_place(&self, place: RowPlace, bytes: &mut Vec<u8>) -> Result<()> {
        let index = self.input_index(place);
        bytes.resize(place.byte_length() as usize, 0);
        self.read_data(index, place.start_offset() - self.bases[index], bytes)
    }

    /// Fills `bytes` from the data of an input, from offset `start`.
    pub(crate) fn read_data(&self, file: usize, start: u64, bytes: &mut [u8]) -> Result<()> {
        let file = &self.files[file];
        let records =
            file.storage() == InputStorage::Records || file.input_format() == InputFormat::TextFile;
        let spool = if records {
            &self.records
        } else {
            &self.streams
        };
        file.read_data_at(bytes, start, spool.as_ref())
    }

    /// Decodes the bytes of a row, without its line end, to text.
    pub(crate) fn decode_row<'a>(
        &self,
        bytes: &'a [u8],
        room: &'a mut String,
    ) -> std::result::Result<&'a str, String> {
        self.decoding.decode_row(bytes, room)
    }

    /// Returns the encoding of the text formats.
    pub(crate) fn text_encoding(&self) -> &'static encoding_rs::Encoding {
        self.options.encoding
    }

    /// Verifies that no input has changed since it was opened.
    ///
    /// # Errors
    ///
    /// If the size, the modification time or the identity of a file has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(InputFile::check_unchanged)
    }
}

/// Returns the id and the text of a row as one line of JSON.
fn as_json_line(row: &InputRow<'_>) -> Vec<u8> {
    let json = serde_json::json!({ "id": row.id, "text": row.text });
    format!("{json}\n").into_bytes()
}

/// Returns `true` if `wanted`, which ascends, contains the number, or if every row is wanted.
fn is_wanted(wanted: Option<&[u64]>, number: u64) -> bool {
    wanted.is_none_or(|wanted| wanted.binary_search(&number).is_ok())
}

/// Returns the start of each input in the address space.
fn assign_bases(files: &[InputFile]) -> Result<Vec<u64>> {
    let mut end = 0u64;
    files
        .iter()
        .map(|file| {
            let room = match file.storage() {
                // The extra byte keeps an empty file from sharing its start with the next one.
                InputStorage::InPlace => file.size_on_disk().unwrap_or(0) + 1,
                InputStorage::Stream if file.input_format() == InputFormat::TextFile => 1 << 33,
                InputStorage::Stream | InputStorage::Records | InputStorage::Columns => STREAM_ROOM,
            };
            let base = end;
            end = end.checked_add(room).ok_or_else(|| {
                Error::limit_error(format!(
                    "the inputs up to {} do not fit into one address space of 2^64 bytes",
                    file.display_name()
                ))
            })?;
            Ok(base)
        })
        .collect()
}

/// Refuses inputs of plain text if a field is wanted.
fn check_fields(files: &[InputFile], fields: &WantedFields) -> Result<()> {
    let plain = |file: &&InputFile| {
        matches!(
            file.input_format(),
            InputFormat::Text | InputFormat::TextFile
        )
    };
    let Some(file) = files.iter().find(plain) else {
        return Ok(());
    };
    let id = match &fields.id {
        IdField::Named(name) => Some(name),
        _ => None,
    };
    let wanted = id.or(fields.features.as_ref()).or(fields.extra.first());
    match wanted {
        None => Ok(()),
        Some(wanted) => Err(Error::usage_error(format!(
            "the field `{wanted}` cannot be read from {}, which is plain text",
            file.display_name()
        ))),
    }
}
