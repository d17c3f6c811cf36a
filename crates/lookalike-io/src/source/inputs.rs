//! All inputs of a run as one sequence of rows in one address space.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lookalike_documents::decoding::{InvalidText, RowDecoding, bom_length, check_encoding};

use super::arrow_file::ArrowFile;
use super::block::{BlockBody, DocumentFiles, InputBlock, KnownBlock, LineBlock, ParseScratch};
use super::block_reader::ReadProgress;
use super::columnar::PORTION_BLOCKS;
use super::expand::{ExpandedInputs, find_inputs};
use super::field_census::FieldCensus;
use super::file::{InputFile, InputStorage, READ_AHEAD, RangeSpool};
use super::line_reader::ReadBuffer;
use super::memory_table::{MemoryTable, OpenTable};
use super::row_values::FieldPlan;
use super::whole_rows;
use super::{
    BadRow, IdField, InputFormat, ReadOptions, RowPlace, RowResult, RowSource, WantedFields, json,
};
use crate::error::{Error, Result};
use crate::spool::SpoolFile;

/// Address space reserved for an input whose offsets are not those of its file: 4 TiB.
const STREAM_ROOM: u64 = 1 << 42;

/// Address space reserved for a compressed or piped input that is one document: 8 GiB.
const TEXT_FILE_ROOM: u64 = 1 << 33;

/// Largest number of files that stay open for reading rows again.
const OPEN_FILES: usize = 128;

/// Largest number of buffers in the pool.
const POOLED_BUFFERS: usize = 16;

/// The opened inputs of a run. All methods may be called from several threads at once.
pub struct InputSet {
    pub(super) files: Vec<InputFile>,
    left_out: Vec<PathBuf>,
    /// Start of each input in the address space.
    pub(super) bases: Vec<u64>,
    pub(super) options: ReadOptions,
    pub(super) decoding: RowDecoding,
    /// Copies of streams, each in one piece.
    pub(super) streams: Option<SpoolFile>,
    /// Copies of single rows, and of documents from streams.
    pub(super) records: Option<SpoolFile>,
    /// The table that is read, if rows come from memory.
    pub(super) table: Option<OpenTable>,
    pub(super) layout: OnceLock<RowLayout>,
    /// The layout of files that are one document each. They have no fields, so they do not decide whether rows
    /// of other inputs have ids.
    documents: OnceLock<RowLayout>,
    pub(super) census: FieldCensus,
    /// Documents whose encoding was guessed.
    pub(super) guessed: Mutex<Vec<GuessedEncoding>>,
    reading: Mutex<ReadProgress>,
    pool: Mutex<Vec<ReadBuffer>>,
}

/// Documents that were read in an encoding by their bytes, because no option states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuessedEncoding {
    /// Name of the encoding, as `--encoding` takes it.
    pub encoding: String,
    /// Number of documents.
    pub files: u64,
    /// The first names, in their order, up to twenty.
    pub first: Vec<String>,
}

/// Documents of a guessed encoding that are named.
const SHOWN_GUESSED_FILES: usize = 20;

/// The wanted fields, once the field of the ids is known.
pub(super) struct RowLayout {
    pub(super) plan: FieldPlan,
    pub(super) paths: json::FieldPaths,
    /// Index of each field of the plan in the census, if the census counts it.
    pub(super) census_indices: Vec<Option<usize>>,
}

impl RowLayout {
    pub(super) fn new(fields: &WantedFields, id: Option<&str>, census: &FieldCensus) -> Self {
        let plan = FieldPlan::new(fields, id);
        let paths = json::FieldPaths::new(&plan);
        let census_indices = census.census_indices(&plan);
        Self {
            plan,
            paths,
            census_indices,
        }
    }
}

impl InputSet {
    /// Finds and opens the inputs: files, directories, globs, URLs of objects, and `-` for standard input.
    ///
    /// `s3://`, `gs://` and `az://` stand for an object, for a prefix as for a directory, or for a glob;
    /// `https://` stands for one file of a server.
    ///
    /// A directory stands for all files of known formats in it and below it, sorted by name, except for
    /// names that begin with `.` or `_`. Standard input is read as JSONL unless [`ReadOptions::format`]
    /// is set.
    ///
    /// # Errors
    ///
    /// If an input does not exist or cannot be read, if its format is unknown, if a temporary file
    /// cannot be created, or if the options contradict the inputs; also a URL, in a build without the Cargo
    /// feature `object-store`.
    pub fn open_paths(paths: &[PathBuf], options: &ReadOptions) -> Result<Self> {
        check_encoding(options.encoding).map_err(Error::usage_error)?;
        if options.document_per_file && options.format.is_some_and(|format| !format.is_plain_text())
        {
            return Err(Error::usage_error(
                "only plain text can be a file per document",
            ));
        }
        let ExpandedInputs { found, left_out } = find_inputs(paths, options)?;
        let scratch = options.scratch.as_deref();
        let ranges = RangeSpool::new(scratch);
        let to_recognise = found
            .iter()
            .map(|found| found.object_to_recognise().cloned());
        let to_recognise: Vec<_> = to_recognise.collect();
        let files = found
            .into_iter()
            .enumerate()
            .map(|(index, found)| {
                let keep_open = index < OPEN_FILES;
                let next = to_recognise[index + 1..].iter().take(READ_AHEAD);
                next.flatten().for_each(|object| object.read_ahead());
                InputFile::new(found, keep_open, options, &ranges)
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
                .then(|| {
                    if options.again {
                        SpoolFile::create_file(options.scratch.as_deref())
                    } else {
                        Ok(SpoolFile::forgetting())
                    }
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
            documents: OnceLock::new(),
            census: FieldCensus::new(&options.fields),
            guessed: Mutex::default(),
            reading: Mutex::new(ReadProgress::new()),
            pool: Mutex::new(Vec::new()),
        })
    }

    /// Returns the files in the given directories that are not read because their format is unknown.
    /// Names that begin with `.` or `_` are not data and are not listed.
    pub fn skipped_files(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Returns the documents that were read so far in an encoding that was guessed, by the name of the encoding. UTF-8 is no
    /// guess.
    pub fn guessed_encodings(&self) -> Vec<GuessedEncoding> {
        let mut guessed = self.lock_guessed().clone();
        guessed.sort_by(|a, b| a.encoding.cmp(&b.encoding));
        guessed
    }

    /// Counts a document whose encoding was guessed.
    pub(super) fn count_guessed(&self, encoding: &'static encoding_rs::Encoding, file: &str) {
        let encoding = encoding.name().to_ascii_lowercase();
        let mut guessed = self.lock_guessed();
        match guessed.iter_mut().find(|known| known.encoding == encoding) {
            Some(known) => {
                known.files += 1;
                let at = known.first.partition_point(|name| &**name < file);
                if at < SHOWN_GUESSED_FILES {
                    known.first.insert(at, file.to_owned());
                    known.first.truncate(SHOWN_GUESSED_FILES);
                }
            }
            None => guessed.push(GuessedEncoding {
                encoding,
                files: 1,
                first: vec![file.to_owned()],
            }),
        }
    }

    fn lock_guessed(&self) -> MutexGuard<'_, Vec<GuessedEncoding>> {
        self.guessed.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Returns the bytes of memory that the largest record batches of Arrow files take while rows are read, beside the
    /// blocks of every input: two at a time, because a batch is decoded while the last rows of another are parsed. 0
    /// without such files, and for batches that are no larger than the blocks. Objects are not looked at.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn decoding_bytes(&self) -> Result<u64> {
        let counts =
            |file: &&InputFile| file.input_format() == InputFormat::Arrow && file.is_local_file();
        let mut largest = 0;
        for file in self.files.iter().filter(counts) {
            largest = largest.max(ArrowFile::open_input(file)?.largest_batch_bytes());
        }
        let of_blocks = PORTION_BLOCKS * self.options.block_bytes as u64;
        Ok(if largest > of_blocks { 2 * largest } else { 0 })
    }

    /// Returns the size on disk of all inputs together, in bytes, or `None` if one is not a regular
    /// file. A table in memory counts the bytes of its texts.
    pub fn total_bytes(&self) -> Option<u64> {
        self.files.iter().map(InputFile::size_on_disk).sum()
    }

    /// Returns the number of rows that have been read so far, bad ones too.
    pub fn row_count(&self) -> u64 {
        self.lock_reading().row_count()
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

    /// Returns the offset of the first row of a block in the address space of all inputs, if it
    /// [is known](InputBlock::has_fixed_places) before the block is parsed.
    pub fn first_place(&self, block: &InputBlock) -> Option<u64> {
        match &block.body {
            BlockBody::Lines(lines) => Some(self.bases[lines.file] + lines.offset),
            BlockBody::Documents(_) | BlockBody::Packed(_) | BlockBody::Memory(_) => None,
        }
    }

    /// Returns the field of the ids, once the first rows have shown whether there is one.
    pub fn id_field(&self) -> IdField {
        match &self.options.fields.id {
            IdField::Default => match self.layout.get().and_then(|layout| layout.plan.id_name()) {
                Some(name) => IdField::Named(name.to_owned()),
                None => IdField::RowNumber,
            },
            given => given.clone(),
        }
    }

    /// Returns the start of an input in the address space.
    pub(crate) fn base_offset(&self, file: usize) -> u64 {
        self.bases[file]
    }

    pub(super) fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    /// Returns the directory of temporary files; `None` is the system's.
    pub(crate) fn scratch_directory(&self) -> Option<&Path> {
        self.options.scratch.as_deref()
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

    /// Refuses inputs if one of the wanted fields is in no row. Call it after the last row.
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

    /// Returns for each wanted field whether a row has had it so far, for a later run that does not parse these
    /// rows again; an empty list if no row could show it, for example if every file is a document.
    pub fn seen_fields(&self) -> Vec<bool> {
        self.census.seen_fields()
    }

    /// Records rows that are not parsed, because an earlier run over the same inputs has parsed them, with its
    /// [`seen_fields`](Self::seen_fields).
    pub fn add_stored_rows(&self, row_count: u64, fields_seen: &[bool]) {
        self.census.add_stored_rows(row_count, fields_seen);
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

    /// Calls `visit` with each of the given rows of one Parquet or Arrow file, complete with all columns, as a
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
        whole_rows::visit_whole_rows(file, rows, visit)
    }

    pub(super) fn layout_if_known(&self) -> Option<&RowLayout> {
        self.layout.get()
    }

    pub(super) fn set_layout(&self, layout: RowLayout) -> &RowLayout {
        self.layout.get_or_init(|| layout)
    }

    /// Returns the next rows, or `None` at the end. After an error, which one thread receives, all others
    /// get `None`.
    ///
    /// # Errors
    ///
    /// If the rest of an input is unreadable: see the [module](super).
    pub fn next_block(&self) -> Result<Option<InputBlock>> {
        self.next_block_unless_known(&|_| Ok(None))
    }

    /// Returns the next block as [`next_block`](Self::next_block) does. Where `find_known` finds the block by its
    /// position among all blocks, as an earlier run over the same inputs has noted it, and the input is an uncompressed
    /// file or an object that is read like one, it is not read: it has its place and its number of rows, and must not be
    /// parsed.
    ///
    /// # Errors
    ///
    /// As [`next_block`](Self::next_block), and those of `find_known`.
    pub fn next_block_unless_known(
        &self,
        find_known: &dyn Fn(u64) -> Result<Option<KnownBlock>>,
    ) -> Result<Option<InputBlock>> {
        let mut block = self.lock_reading().next_block(self, find_known)?;
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

    fn lock_reading(&self) -> MutexGuard<'_, ReadProgress> {
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
            BlockBody::Memory(held) => self.parse_table_block(held, None, scratch, visit),
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
            BlockBody::Memory(held) => self.parse_table_block(held, Some(wanted), scratch, visit),
        }
    }

    pub(super) fn row_layout(&self) -> &RowLayout {
        // Without a decision about ids no row was valid, so the layout is not used.
        self.layout
            .get_or_init(|| RowLayout::new(&self.options.fields, None, &self.census))
    }

    pub(super) fn document_layout(&self) -> &RowLayout {
        self.documents
            .get_or_init(|| RowLayout::new(&self.options.fields, None, &self.census))
    }

    /// Returns `true` if names of files are the ids of some documents, while rows of other inputs have ids of their
    /// own or none.
    pub fn mixes_files_and_rows(&self) -> bool {
        let is_document = |file: &InputFile| file.input_format() == InputFormat::TextFile;
        self.options.fields.id == IdField::Default
            && self.files.iter().any(is_document)
            && !self.files.iter().all(is_document)
    }

    /// Decodes the bytes of a row, without its line end, to text.
    pub(crate) fn decode_row<'a>(
        &self,
        bytes: &'a [u8],
        room: &'a mut String,
    ) -> std::result::Result<&'a str, String> {
        self.decoding.decode_row(bytes, room)
    }

    /// Returns a row of JSON as it is parsed, if it is changed before: half surrogate pairs are replaced.
    pub(crate) fn mend_json(&self, row: &str) -> Option<String> {
        match self.options.invalid_text {
            InvalidText::Reject => None,
            InvalidText::Lossy => json::mend_surrogates(row),
        }
    }

    /// Divides the bytes of a file into its byte order mark, if it has one, and the text.
    pub(crate) fn split_mark<'b>(&self, bytes: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        bytes.split_at(bom_length(bytes, self.options.encoding))
    }

    /// Returns the name of the field with the text, the first if there are several.
    pub(crate) fn first_text_field(&self) -> &str {
        self.options
            .fields
            .text
            .first()
            .map_or("text", String::as_str)
    }

    /// Returns the encoding of the text formats.
    pub(crate) fn text_encoding(&self) -> &'static encoding_rs::Encoding {
        self.options.encoding
    }

    /// Verifies that no regular file among the inputs has changed since it was opened.
    ///
    /// # Errors
    ///
    /// If the size, the modification time or the identity of a file has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(InputFile::check_unchanged)
    }
}

/// Returns `true` if `wanted`, which ascends, contains the number, or if every row is wanted.
pub(super) fn is_wanted(wanted: Option<&[u64]>, number: u64) -> bool {
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
                InputStorage::Stream if file.input_format() == InputFormat::TextFile => {
                    TEXT_FILE_ROOM
                }
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

/// Refuses inputs of plain text if an id, features or a further field is wanted. Their text is the row itself.
fn check_fields(files: &[InputFile], fields: &WantedFields) -> Result<()> {
    let plain = |file: &&InputFile| file.input_format().is_plain_text();
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
            "the field `{wanted}` cannot be read from {}, which is {}",
            file.display_name(),
            if file.is_document_file() {
                "a document without fields"
            } else {
                "plain text"
            }
        ))),
    }
}
