//! The kept rows of the inputs, byte for byte.
//!
//! Rows are copied in *chunks*: consecutive rows of one input that span about 1 MiB. A chunk is read in
//! one piece, the removed rows are cut out of it, and the rest is written in one piece. If the output
//! is a plain file and the rows are not annotated, the position of each chunk is known in advance, and
//! threads write chunks in parallel. Otherwise chunks are prepared in parallel and written in order.
//! Data is synced to disk during writing, so that little is left for the final sync.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::annotate::{self, Annotator};
use super::atomic::OutputDirectories;
use super::ordered::in_order;
use super::parquet::write_parquet;
use super::prepared::Prepared;
use super::stream::{OutputStream, Target, compression, refuse_inputs};
use super::table::{Cell, Column, TableWriter};
use super::{Output, RowSet, WriteOptions, Written};
use crate::error::{Error, Result, shown};
use crate::source::{
    Compression, Format, InputFile, Inputs, Place, format_by_extension, is_named_json,
};

/// Bytes of input that a chunk spans, unless a single row is longer.
const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes written between two syncs.
const SYNC_BYTES: u64 = 16 << 20;

/// Writes the numbers of the kept rows and their annotations to a table in memory.
fn write_numbers(
    rows: &dyn RowSet,
    output: &Output,
    options: &WriteOptions<'_>,
) -> Result<Prepared> {
    let mut columns = vec![Column::Integer("row")];
    if options.annotate.is_some() {
        columns.extend([
            Column::Text("cluster"),
            Column::Text("duplicate_of"),
            Column::Number("similarity"),
        ]);
    }
    let mut table = TableWriter::create(output, &columns, None)?;
    for index in (0..rows.len()).filter(|&index| rows.kept(index)) {
        let row = Cell::Integer(rows.number(index) - 1);
        match options
            .annotate
            .map(|annotate| annotate(index))
            .transpose()?
        {
            None => table.push(&[row])?,
            Some(added) => table.push(&[
                row,
                Cell::Text(&added.cluster),
                added.duplicate_of.as_deref().map_or(Cell::Null, Cell::Text),
                added.similarity.map_or(Cell::Null, Cell::Number),
            ])?,
        }
    }
    table.prepare()
}

/// Checks, before any row is read, that an output can take rows as they are in the inputs.
///
/// # Errors
///
/// If the inputs have several formats, or another one than the output. For a directory: if two inputs
/// would have the same name in it, or if an input has no name.
pub fn check_kept(inputs: &Inputs, output: &Output, annotates: bool) -> Result<()> {
    let files = inputs.files();
    match output {
        Output::Memory(_) => Ok(()),
        Output::Path(path) if is_directory(path) => {
            let mirrored = mirrored(inputs, path)?;
            files.chunks(1).zip(mirrored).try_for_each(|(file, path)| {
                refuse_inputs(&path, Some(inputs))?;
                check_files(file, &Output::Path(path), annotates)
            })
        }
        _ => check_files(files, output, annotates),
    }
}

/// Refuses rows that cannot be written unchanged to this output.
fn check_files(files: &[InputFile], output: &Output, annotates: bool) -> Result<()> {
    let Some(first) = files.first() else {
        return Ok(());
    };
    let format = first.format();
    let is_alike =
        |file: &InputFile| file.format() == format || file.format().is_json() && format.is_json();
    if let Some(other) = files.iter().find(|file| !is_alike(file)) {
        return Err(Error::usage(format!(
            "{} and {} have different formats and cannot go into one output, {}: give a directory \
             as output",
            first.name(),
            other.name(),
            output
        )));
    }
    if format == Format::TextFile && files.len() > 1 {
        return Err(Error::usage(format!(
            "a file per document can only be written to a directory, which {} is not",
            output
        )));
    }
    if format == Format::Memory {
        return Err(Error::usage(format!(
            "rows of {}, a table in memory, cannot be written to {} as they are",
            first.name(),
            output
        )));
    }
    let plain = matches!(format, Format::Text | Format::TextFile);
    if plain && annotates {
        return Err(Error::usage(format!(
            "{} is plain text, to which no fields can be added",
            first.name()
        )));
    }
    check_format(first.name(), format, output)
}

/// Writes the kept rows of the inputs, but does not put the outputs in place yet.
///
/// JSONL, CSV and text are written byte for byte, with two exceptions: a line feed is added to a last
/// row without one if another row follows, and blank lines and byte order marks are dropped. Elements
/// of JSON lists become lines, or one list if the output is named `.json`. Parquet keeps all columns
/// with their types, and the key-value metadata of the file.
///
/// If the output is a directory (an existing one, or a path with a trailing slash, which is then
/// created), each input has its own output in it, under its name or its path below the given directory.
/// One document per file can only be written to a directory. Lines for a plain file are written as far
/// as verdicts are known: see [`RowSet::kept`]. `progress` receives the number of rows of the set
/// passed so far, in irregular steps.
///
/// # Errors
///
/// If an output is one of the inputs or has another format; if inputs for one output have different
/// formats or Parquet schemas; if text is to be annotated, or a row already has a field of the
/// annotation; if an input has changed since it was read; or if a write fails.
pub fn prepare_kept(
    inputs: &Inputs,
    rows: &dyn RowSet,
    output: &Output,
    options: &WriteOptions<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Prepared> {
    if let Output::Memory(_) = output {
        return write_numbers(rows, output, options);
    }
    let passed = AtomicU64::new(0);
    let progress = |rows: u64| progress(passed.fetch_add(rows, Ordering::Relaxed) + rows);
    let job = Job {
        inputs,
        rows,
        options,
        progress: &progress,
    };
    let mut directories = OutputDirectories::default();
    let parts = match output {
        Output::Path(path) if is_directory(path) => job.mirror(path, &mut directories)?,
        _ => vec![job.part(output.clone(), 0..inputs.files().len())],
    };
    let annotates = options.annotate.is_some();
    for part in &parts {
        check_files(&inputs.files()[part.files.clone()], &part.output, annotates)?;
    }
    let mut written = Written::default();
    let (mut sealed, mut single) = (Vec::new(), None);
    for part in &parts {
        let (mut target, bytes) = job.write(part)?;
        written.rows += part.rows.clone().filter(|&row| rows.kept(row)).count() as u64;
        written.bytes += bytes;
        inputs.files()[part.files.clone()]
            .iter()
            .try_for_each(InputFile::check_unchanged)?;
        if parts.len() == 1 && target.is_regular() {
            target.sync()?;
            single = Some(target);
        } else {
            sealed.push(target.seal()?);
        }
    }
    Ok(Prepared {
        written,
        sealed,
        single,
        directories,
    })
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Returns the path of each input's output below a directory.
fn mirrored(inputs: &Inputs, directory: &Path) -> Result<Vec<PathBuf>> {
    let mut names = BTreeMap::new();
    let mut paths = Vec::new();
    for file in inputs.files() {
        if !file.is_regular() {
            return Err(Error::usage(format!(
                "{} has no file name under which it could be written to {}",
                file.name(),
                shown(directory)
            )));
        }
        let path = directory.join(file.below());
        if let Some(other) = names.insert(path.clone(), file.name()) {
            return Err(Error::usage(format!(
                "{other} and {} would both be written to {}",
                file.name(),
                shown(&path)
            )));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// One output with its inputs and rows.
pub(super) struct Part {
    pub(super) output: Output,
    /// Indices of the inputs.
    pub(super) files: Range<usize>,
    /// Indices of their rows.
    pub(super) rows: Range<usize>,
}

/// The arguments that all outputs of a call share.
pub(super) struct Job<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) rows: &'a dyn RowSet,
    pub(super) options: &'a WriteOptions<'a>,
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
}

/// Consecutive rows of one input.
struct Chunk {
    file: usize,
    rows: Range<usize>,
    /// Position in the output, if rows are not annotated.
    start: u64,
    /// `true` if the kept row before them lacks a line feed, so that one must be inserted.
    after_open: bool,
}

/// Divides the rows of an output into chunks and skips ranges without a kept row.
struct Chunks<'a> {
    job: &'a Job<'a>,
    rows: Range<usize>,
    /// Position of the next chunk.
    at: u64,
    /// `true` if the last kept row lacks a line feed.
    open: bool,
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        while !self.rows.is_empty() {
            let start = self.rows.start;
            let (end, bytes, last) = self.job.chunk_end(start, self.rows.end);
            self.rows.start = end;
            if let Some(last) = last {
                let file = self.job.inputs.index_of(last);
                let after_open = std::mem::replace(&mut self.open, self.job.is_open(file, last));
                let start_at = self.at + u64::from(after_open);
                self.at = start_at + bytes;
                return Some(Chunk {
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

impl Job<'_> {
    /// Selects the rows of some inputs by binary search, because rows are in input order.
    pub(super) fn part(&self, output: Output, files: Range<usize>) -> Part {
        let first_of = |file: usize| {
            let (mut low, mut high) = (0, self.rows.len());
            while low < high {
                let middle = low + (high - low) / 2;
                match self.inputs.index_of(self.rows.place(middle)) < file {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let rows = first_of(files.start)..first_of(files.end);
        Part {
            output,
            files,
            rows,
        }
    }

    /// Creates one output per input below a directory, and the directories that they need.
    fn mirror(&self, directory: &Path, made: &mut OutputDirectories) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        let files = self
            .inputs
            .files()
            .iter()
            .zip(mirrored(self.inputs, directory)?);
        for (index, (file, path)) in files.enumerate() {
            let part = self.part(Output::Path(path), index..index + 1);
            let document = file.format() == Format::TextFile;
            if !document || part.rows.clone().any(|row| self.rows.kept(row)) {
                parts.push(part);
            }
        }
        for part in &parts {
            if let Output::Path(path) = &part.output {
                made.create(path.parent().unwrap_or(directory))?;
            }
        }
        Ok(parts)
    }

    fn write(&self, part: &Part) -> Result<(Target, u64)> {
        let target = Target::open(&part.output, Some(self.inputs))?;
        let files = &self.inputs.files()[part.files.clone()];
        if files
            .first()
            .is_some_and(|file| file.format() == Format::Parquet)
        {
            return write_parquet(self, part, target);
        }
        let header = self.header(part)?;
        let chunks = self.chunks(part, header.len() as u64);
        let writes_list = writes_list(files, &part.output);
        let in_place = self.options.annotate.is_none()
            && !writes_list
            && compression(&part.output) == Compression::None
            && target.is_regular();
        if in_place {
            return self.write_in_place(part, target, &header, chunks);
        }
        let header = if writes_list { b"[".to_vec() } else { header };
        self.write_in_order(part, target, &header, &chunks.collect::<Vec<_>>())
    }

    /// Returns the header row of CSV with a line feed at its end.
    fn header(&self, part: &Part) -> Result<Vec<u8>> {
        let mut files = self.inputs.files()[part.files.clone()].iter();
        let with_header = files.find_map(|file| Some((file, file.header()?)));
        let Some((file, header)) = with_header else {
            return Ok(Vec::new());
        };
        let mut header = match self.options.annotate {
            Some(_) => annotate::header(self.inputs, file, header)?,
            None => header.to_vec(),
        };
        if !header.ends_with(b"\n") {
            header.push(b'\n');
        }
        Ok(header)
    }

    fn chunks<'b>(&'b self, part: &Part, start: u64) -> Chunks<'b> {
        Chunks {
            job: self,
            rows: part.rows.clone(),
            at: start,
            open: false,
        }
    }

    /// Returns the end of the chunk that starts at `first`, the number of its kept bytes, and the place
    /// of its last kept row.
    fn chunk_end(&self, first: usize, rows_end: usize) -> (usize, u64, Option<Place>) {
        let start = self.rows.place(first).offset();
        let file = self.inputs.index_of(self.rows.place(first));
        let file_end = match file + 1 < self.inputs.files().len() {
            true => self.inputs.base(file + 1),
            false => u64::MAX,
        };
        let (mut row, mut bytes, mut last) = (first, 0, None);
        while row < rows_end {
            let place = self.rows.place(row);
            let full = place.end() - start.min(place.offset()) > CHUNK_BYTES && row > first;
            if place.offset() >= file_end || full {
                break;
            }
            if self.rows.kept(row) {
                bytes += u64::from(place.length());
                last = Some(place);
            }
            row += 1;
        }
        (row, bytes, last)
    }

    /// Returns `true` if a row lacks a line feed.
    fn is_open(&self, file: usize, place: Place) -> bool {
        let end = place.end() - self.inputs.base(file);
        self.inputs.files()[file].open_end() == Some(end)
    }

    /// Prepares the bytes of a chunk.
    fn render(&self, chunk: &Chunk, room: &mut Room<'_>) -> Result<()> {
        let kept = |row: &usize| self.rows.kept(*row);
        let Some(first) = chunk.rows.clone().find(kept) else {
            room.out.clear();
            return Ok(());
        };
        let last = chunk.rows.clone().rev().find(kept).unwrap_or(first);
        let start = self.rows.place(first).offset();
        let length = (self.rows.place(last).end() - start) as usize;
        let data_start = start - self.inputs.base(chunk.file);
        room.out.resize(length, 0);
        self.inputs
            .read_data(chunk.file, data_start, &mut room.out)?;
        match &mut room.annotator {
            None => self.close_gaps(first..last + 1, start, &mut room.out),
            Some(annotator) => {
                std::mem::swap(&mut room.out, &mut room.read);
                room.out.clear();
                let file = &self.inputs.files()[chunk.file];
                for row in (first..last + 1).filter(kept) {
                    let place = self.rows.place(row);
                    let at = (place.offset() - start) as usize;
                    let bytes = &room.read[at..at + place.length() as usize];
                    annotator.row(file, self.rows.number(row), row, bytes, &mut room.out)?;
                }
            }
        }
        Ok(())
    }

    /// Moves the kept rows together. `bytes` begins at offset `start`.
    fn close_gaps(&self, rows: Range<usize>, start: u64, bytes: &mut Vec<u8>) {
        let mut filled = 0;
        let mut run = 0..0;
        for row in rows {
            if !self.rows.kept(row) {
                continue;
            }
            let place = self.rows.place(row);
            let at = (place.offset() - start) as usize;
            if at != run.end {
                filled = move_run(bytes, &run, filled);
                run.start = at;
            }
            run.end = at + place.length() as usize;
        }
        filled = move_run(bytes, &run, filled);
        bytes.truncate(filled);
    }

    fn room(&self) -> Room<'_> {
        let annotator = self
            .options
            .annotate
            .map(|annotate| Annotator::new(self.inputs, annotate));
        Room {
            out: Vec::new(),
            read: Vec::new(),
            annotator,
        }
    }

    /// Writes chunks in order.
    fn write_in_order(
        &self,
        part: &Part,
        target: Target,
        header: &[u8],
        chunks: &[Chunk],
    ) -> Result<(Target, u64)> {
        let mut stream = OutputStream::new(&part.output, target, self.options.threads)?;
        stream.put(header)?;
        let files = &self.inputs.files()[part.files.clone()];
        let mut list = writes_list(files, &part.output).then(ListElements::default);
        in_order(
            chunks.len(),
            self.options.threads,
            || self.room(),
            |index, room| self.render(&chunks[index], room).map(|()| index),
            |index, room| {
                (self.progress)(chunks[index].rows.len() as u64);
                if let Some(list) = &mut list {
                    return stream.put(list.join(&room.out));
                }
                if chunks[index].after_open {
                    stream.put(b"\n")?;
                }
                stream.put(&room.out)
            },
        )?;
        if list.is_some() {
            stream.put(b"\n]\n")?;
        }
        stream.finish()
    }

    /// Writes chunks in parallel, each at its position.
    fn write_in_place(
        &self,
        part: &Part,
        target: Target,
        header: &[u8],
        chunks: Chunks<'_>,
    ) -> Result<(Target, u64)> {
        let file = target.file();
        let failed = |cause: io::Error| Error::writing("write", &part.output, cause);
        file.write_all_at(header, 0).map_err(failed)?;
        let (chunks, failure) = (Mutex::new(chunks), AtomicBool::new(false));
        let next = || {
            let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            chunks.next().filter(|_| !failure.load(Ordering::Relaxed))
        };
        let syncer = Syncer::new(file, header.len() as u64);
        let threads = self.options.threads.min(part.rows.len().max(1));
        let copy = || -> Result<()> {
            let mut room = self.room();
            while let Some(chunk) = next() {
                self.render(&chunk, &mut room)?;
                if chunk.after_open {
                    file.write_all_at(b"\n", chunk.start - 1).map_err(failed)?;
                }
                file.write_all_at(&room.out, chunk.start).map_err(failed)?;
                syncer.written(room.out.len() as u64 + u64::from(chunk.after_open));
                if threads > 1 {
                    syncer.sync();
                }
                (self.progress)(chunk.rows.len() as u64);
            }
            Ok(())
        };
        let copy = || copy().inspect_err(|_| failure.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            // A single thread should not wait for the disk; with several threads, one of them may.
            let syncing = (threads == 1).then(|| scope.spawn(|| syncer.run()));
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(copy)).collect();
            let own = copy();
            let result = workers.into_iter().fold(own, |result, worker| {
                let other = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result.and(other)
            });
            syncing.iter().for_each(|syncing| syncer.stop(syncing));
            result
        })?;
        let bytes = syncer.total();
        Ok((target, bytes))
    }
}

/// Returns `true` if the rows are written as one JSON list, because all inputs are JSON lists and the
/// output is named `.json`.
fn writes_list(files: &[InputFile], output: &Output) -> bool {
    let is_named = matches!(output, Output::Path(path) if is_named_json(path));
    is_named && !files.is_empty() && files.iter().all(|file| file.format() == Format::Json)
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
    fn join(&mut self, rows: &[u8]) -> &[u8] {
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
fn move_run(bytes: &mut [u8], run: &Range<usize>, to: usize) -> usize {
    if run.start != to {
        bytes.copy_within(run.clone(), to);
    }
    to + run.len()
}

/// Chunk buffers of one thread.
struct Room<'a> {
    out: Vec<u8>,
    read: Vec<u8>,
    annotator: Option<Annotator<'a>>,
}

/// Syncs written data to disk while more is written. Errors are ignored, because the final sync reports
/// them again.
struct Syncer<'a> {
    file: &'a File,
    written: AtomicU64,
    /// Bytes written when the last sync began.
    synced: AtomicU64,
    stopped: AtomicBool,
}

impl<'a> Syncer<'a> {
    fn new(file: &'a File, written: u64) -> Self {
        Self {
            file,
            written: AtomicU64::new(written),
            synced: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    fn total(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Syncs if enough was written since the last sync. Returns `true` if it did.
    fn sync(&self) -> bool {
        let (synced, written) = (self.synced.load(Ordering::Relaxed), self.total());
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
    fn run(&self) {
        while !self.stopped.load(Ordering::Relaxed) {
            if !self.sync() {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        }
    }

    fn stop<T>(&self, syncing: &std::thread::ScopedJoinHandle<'_, T>) {
        self.stopped.store(true, Ordering::Relaxed);
        syncing.thread().unpark();
    }
}

/// Refuses an output whose extension stands for another format than that of the rows.
fn check_format(name: &str, format: Format, output: &Output) -> Result<()> {
    let Output::Path(path) = output else {
        return Ok(());
    };
    let promised = format_by_extension(path);
    let compressed = compression(output) != Compression::None;
    let same = match (format, promised) {
        // Rows in memory have no bytes that could be written unchanged.
        (Format::Memory, _) => false,
        (Format::Parquet, promised) => !compressed && promised.is_none_or(|it| it == format),
        (_, None) => true,
        (
            Format::Csv { delimiter, .. },
            Some(Format::Csv {
                delimiter: other, ..
            }),
        ) => delimiter == other,
        (Format::Text | Format::TextFile, Some(Format::Text)) => true,
        // Documents in files of their own keep the names of the files, whatever the extension.
        (Format::TextFile, _) => true,
        (format, Some(promised)) => format == promised || format.is_json() && promised.is_json(),
    };
    if same {
        return Ok(());
    }
    Err(Error::usage(format!(
        "kept rows are written as they are: {name} is {}, and {} would be {}",
        described(format),
        output,
        promised.map_or("compressed as a whole", described)
    )))
}

fn described(format: Format) -> &'static str {
    match format {
        Format::Jsonl => "JSONL",
        Format::Json => "a JSON list",
        Format::Csv {
            delimiter: b'\t', ..
        } => "TSV",
        Format::Csv { .. } => "CSV",
        Format::Parquet => "Parquet",
        Format::Text | Format::TextFile => "plain text",
        Format::Memory => "a table in memory",
    }
}
