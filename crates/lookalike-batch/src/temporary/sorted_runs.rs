//! Records that are sorted outside of the memory: sorted runs in an unlinked temporary file, which are merged.
//!
//! ```text
//! record   length of the key, key, value      numbers of 7 bits a byte, lowest first
//! run      records, ascending by the bytes of their keys
//! part     runs that are merged with one another
//! ```
//!
//! Several threads write runs at the same time. Merging reads every run of a part through a buffer of its own. If a
//! part has more runs than buffers fit into the memory, groups of them are first merged into longer runs. Nothing
//! remains on the disk however the process ends, because the file has no name.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

/// Bytes of a run that are written at once.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Fewest and most bytes of a run that are read at once.
const READ_BUFFER_RANGE: (usize, usize) = (4 << 10, 256 << 10);

/// Bytes of memory of a collected record beside its key.
const ENTRY_BYTES: usize = size_of::<RecordEntry>();

/// Sorted runs by parts. The file is created when the first run is written.
pub(crate) struct SortedRuns {
    directory: Option<PathBuf>,
    file: OnceLock<SpoolFile>,
    /// Number of runs that were written, with those that were merged since.
    written_runs: AtomicU64,
    parts: Vec<Mutex<Vec<SortedRun>>>,
}

/// The places of the bytes of a run in the file, ascending.
#[derive(Debug, Clone, Default)]
struct SortedRun {
    /// Start and length.
    extents: Vec<(u64, u64)>,
}

impl SortedRun {
    fn push_extent(&mut self, start: u64, length: u64) {
        match self.extents.last_mut() {
            Some((from, bytes)) if *from + *bytes == start => *bytes += length,
            _ => self.extents.push((start, length)),
        }
    }
}

impl SortedRuns {
    /// Creates parts without runs. Their file is in `directory`, or in the system's directory for temporary files.
    pub(crate) fn with_parts(directory: Option<PathBuf>, parts: usize) -> Self {
        Self {
            directory,
            file: OnceLock::new(),
            written_runs: AtomicU64::new(0),
            parts: (0..parts).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the directory of the file; `None` for that of the system.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn open_file(&self) -> Result<&SpoolFile> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = SpoolFile::create_file(self.directory.as_deref())?;
        // If two threads create a file at the same time, one of the files is dropped.
        Ok(self.file.get_or_init(|| file))
    }

    fn lock_part(&self, part: usize) -> MutexGuard<'_, Vec<SortedRun>> {
        // A panic in another thread ends the whole run.
        self.parts[part]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all bytes that were written.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.file.get().map_or(0, SpoolFile::end_offset)
    }

    /// Returns the number of all runs that were written.
    pub(crate) fn written_runs(&self) -> u64 {
        self.written_runs.load(AtomicOrdering::Relaxed)
    }

    /// Begins a run of a part.
    pub(crate) fn begin_run(&self, part: usize) -> RunWriter<'_> {
        RunWriter {
            runs: self,
            part,
            run: SortedRun::default(),
            pending: Vec::new(),
        }
    }

    /// Visits all records of a part, ascending by their keys; those with equal keys in any order. Buffers take about
    /// `buffer_bytes` of memory, but at least two buffers of 4 KiB.
    ///
    /// # Errors
    /// If the file cannot be read or written, and the errors of `visit`.
    pub(crate) fn merge_part(
        &self,
        part: usize,
        buffer_bytes: usize,
        visit: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let (least, most) = READ_BUFFER_RANGE;
        let most_runs = (buffer_bytes / least).max(2);
        while self.lock_part(part).len() > most_runs {
            self.merge_first_runs(part, most_runs)?;
        }
        let runs = self.lock_part(part).clone();
        let of_run = (buffer_bytes / runs.len().max(1)).clamp(least, most);
        self.merge_runs(&runs, of_run, visit)
    }

    /// Replaces the oldest runs of a part by one run.
    fn merge_first_runs(&self, part: usize, count: usize) -> Result<()> {
        let oldest: Vec<SortedRun> = self.lock_part(part).drain(..count).collect();
        let mut merged = self.begin_run(part);
        self.merge_runs(&oldest, READ_BUFFER_RANGE.0, |key, value| {
            merged.push_record(key, value)
        })?;
        merged.finish_run()
    }

    fn merge_runs(
        &self,
        runs: &[SortedRun],
        buffer_bytes: usize,
        mut visit: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let mut readers = Vec::with_capacity(runs.len());
        for run in runs {
            let mut reader = RunReader::new(self.open_file()?, run, buffer_bytes);
            if reader.read_next()? {
                readers.push(reader);
            }
        }
        let mut heap: Vec<usize> = (0..readers.len()).collect();
        for at in (0..heap.len()).rev() {
            sift_down(&mut heap, at, &readers);
        }
        while let Some(&first) = heap.first() {
            visit(readers[first].key(), readers[first].value)?;
            if !readers[first].read_next()? {
                heap.swap_remove(0);
            }
            sift_down(&mut heap, 0, &readers);
        }
        Ok(())
    }
}

/// Moves an entry of a heap of readers down until no reader below it has a smaller key.
fn sift_down(heap: &mut [usize], mut at: usize, readers: &[RunReader<'_>]) {
    let precedes = |a: usize, b: usize| readers[a].compare_keys(&readers[b]) == Ordering::Less;
    loop {
        let mut least = at;
        for child in [2 * at + 1, 2 * at + 2] {
            if child < heap.len() && precedes(heap[child], heap[least]) {
                least = child;
            }
        }
        if least == at {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}

/// Writes a run, whose records come in ascending order.
pub(crate) struct RunWriter<'a> {
    runs: &'a SortedRuns,
    part: usize,
    run: SortedRun,
    pending: Vec<u8>,
}

impl RunWriter<'_> {
    /// Appends a record.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn push_record(&mut self, key: &[u8], value: u64) -> Result<()> {
        put_number(key.len() as u64, &mut self.pending);
        self.pending.extend_from_slice(key);
        put_number(value, &mut self.pending);
        if self.pending.len() < WRITE_BUFFER_BYTES {
            Ok(())
        } else {
            self.write_pending()
        }
    }

    fn write_pending(&mut self) -> Result<()> {
        let start = self.runs.open_file()?.append_bytes(&self.pending)?;
        self.run.push_extent(start, self.pending.len() as u64);
        self.pending.clear();
        Ok(())
    }

    /// Completes the run, which then takes part in merging. A run without records is left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish_run(mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.write_pending()?;
        }
        if !self.run.extents.is_empty() {
            let written = &self.runs.written_runs;
            written.fetch_add(1, AtomicOrdering::Relaxed);
            self.runs.lock_part(self.part).push(self.run);
        }
        Ok(())
    }
}

/// Reads a run record by record.
struct RunReader<'a> {
    file: &'a SpoolFile,
    /// The extents that are not yet read, the next one last.
    unread_extents: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    /// End of the current record in the buffer.
    at: usize,
    /// Place of the key of the current record.
    key: (usize, usize),
    /// First 8 bytes of the key, by which most keys are compared.
    prefix: u64,
    value: u64,
}

impl<'a> RunReader<'a> {
    fn new(file: &'a SpoolFile, run: &SortedRun, buffer_bytes: usize) -> Self {
        Self {
            file,
            unread_extents: run.extents.iter().rev().copied().collect(),
            buffer: Vec::new(),
            buffer_bytes,
            at: 0,
            key: (0, 0),
            prefix: 0,
            value: 0,
        }
    }

    fn key(&self) -> &[u8] {
        &self.buffer[self.key.0..self.key.1]
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        let by_prefix = self.prefix.cmp(&other.prefix);
        by_prefix.then_with(|| self.key().cmp(other.key()))
    }

    /// Goes to the next record. Returns `false` at the end of the run.
    fn read_next(&mut self) -> Result<bool> {
        loop {
            if let Some((start, length)) = read_number(&self.buffer, self.at) {
                let end = start + length as usize;
                if let Some((next, value)) = read_number(&self.buffer, end) {
                    (self.key, self.value, self.at) = ((start, end), value, next);
                    self.prefix = key_prefix(self.key());
                    return Ok(true);
                }
            }
            if !self.fill_buffer()? {
                return Ok(false);
            }
        }
    }

    /// Reads more bytes behind those that belong to no complete record. Returns `false` if there are none.
    fn fill_buffer(&mut self) -> Result<bool> {
        let Some((start, length)) = self.unread_extents.pop() else {
            return Ok(false);
        };
        self.buffer.drain(..self.at);
        self.at = 0;
        let read_length = length.min(self.buffer_bytes as u64);
        if read_length < length {
            self.unread_extents
                .push((start + read_length, length - read_length));
        }
        let from = self.buffer.len();
        self.buffer.resize(from + read_length as usize, 0);
        let read = self.file.read_exact_at(&mut self.buffer[from..], start);
        read.map_err(|cause| {
            let place = format_args!("byte {start} of the temporary file");
            Error::read_error("read", place, cause)
        })?;
        Ok(true)
    }
}

/// Returns the first 8 bytes of a key, as a number that orders as they do. Missing bytes are 0.
fn key_prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number at `at`. Returns the place behind it and the number; `None` if the bytes end before.
fn read_number(bytes: &[u8], mut at: usize) -> Option<(usize, u64)> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((at, number));
        }
    }
    None
}

/// Reserves capacity for `more` elements. The capacity grows by a quarter and does not double, because unused capacity
/// counts against the limit too.
fn grow_slowly<T>(elements: &mut Vec<T>, more: usize) {
    if elements.capacity() - elements.len() < more {
        elements.reserve_exact(more.max(elements.len() / 4).max(64));
    }
}

/// Collects records in a fixed number of bytes and writes them as sorted runs of a part.
pub(crate) struct RunCollector {
    part: usize,
    max_bytes: usize,
    entries: Vec<RecordEntry>,
    keys: Vec<u8>,
}

#[derive(Clone, Copy)]
struct RecordEntry {
    prefix: u64,
    value: u64,
    start: u32,
    length: u32,
}

impl RunCollector {
    /// Creates an empty collector that takes about `max_bytes` of memory, at least 4 KiB and at most 2 GiB.
    pub(crate) fn new(part: usize, max_bytes: usize) -> Self {
        Self {
            part,
            max_bytes: max_bytes.clamp(READ_BUFFER_RANGE.0, u32::MAX as usize / 2),
            entries: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Adds a record. Writes a run first if there is no room for it.
    ///
    /// # Errors
    /// If a run cannot be written.
    pub(crate) fn push_record(&mut self, runs: &SortedRuns, key: &[u8], value: u64) -> Result<()> {
        let used = ENTRY_BYTES * self.entries.len() + self.keys.len();
        if used + ENTRY_BYTES + key.len() > self.max_bytes && !self.entries.is_empty() {
            self.write_run(runs)?;
        }
        grow_slowly(&mut self.entries, 1);
        grow_slowly(&mut self.keys, key.len());
        self.entries.push(RecordEntry {
            prefix: key_prefix(key),
            value,
            start: self.keys.len() as u32,
            length: key.len() as u32,
        });
        self.keys.extend_from_slice(key);
        Ok(())
    }

    /// Writes all records as a run, after which the collector is empty.
    ///
    /// # Errors
    /// If the run cannot be written.
    pub(crate) fn write_run(&mut self, runs: &SortedRuns) -> Result<()> {
        let keys = &self.keys;
        let key = |entry: &RecordEntry| &keys[entry.start as usize..][..entry.length as usize];
        self.entries.sort_unstable_by(|a, b| {
            let by_prefix = a.prefix.cmp(&b.prefix);
            by_prefix.then_with(|| key(a).cmp(key(b)))
        });
        let mut writer = runs.begin_run(self.part);
        for entry in &self.entries {
            writer.push_record(key(entry), entry.value)?;
        }
        self.entries.clear();
        self.keys.clear();
        writer.finish_run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(at: u64) -> u64 {
        lookalike::value_hash(&at.to_le_bytes())
    }

    /// Keys of all lengths, some of them equal, and some the beginnings of others.
    fn record(at: u64) -> (Vec<u8>, u64) {
        let number = hash(at) % 3000;
        let length = match number {
            0 => 0,
            1 => 300_000,
            _ => hash(number) % 40,
        };
        let byte = |place: u64| (hash(number % 7) >> (place % 5)) as u8;
        ((0..length).map(byte).collect(), hash(at) >> (at % 60))
    }

    fn merged(runs: &SortedRuns, part: usize, buffer_bytes: usize) -> Vec<(Vec<u8>, u64)> {
        let mut all = Vec::new();
        let visit = |key: &[u8], value| {
            all.push((key.to_vec(), value));
            Ok(())
        };
        runs.merge_part(part, buffer_bytes, visit).unwrap();
        assert!(all.is_sorted_by_key(|(key, _)| key.clone()));
        all.sort();
        all
    }

    #[test]
    fn merged_runs_are_all_records_in_order() {
        let count = 20_000;
        let mut expected: Vec<_> = (0..count).map(record).collect();
        expected.sort();
        for (max_bytes, buffer_bytes) in
            [(1 << 30, 1 << 20), (1 << 20, 0), (4000, 20_000), (4000, 0)]
        {
            let runs = SortedRuns::with_parts(None, 3);
            let mut collector = RunCollector::new(1, max_bytes);
            for at in 0..count {
                let (key, value) = record(at);
                collector.push_record(&runs, &key, value).unwrap();
            }
            collector.write_run(&runs).unwrap();
            let before = runs.written_runs();
            assert!(
                before >= if max_bytes == 4000 { 100 } else { 1 },
                "{before}"
            );
            assert!(merged(&runs, 1, buffer_bytes) == expected, "{max_bytes}");
            if buffer_bytes == 0 {
                assert!(runs.lock_part(1).len() <= 2);
            }
            assert!(merged(&runs, 0, buffer_bytes).is_empty());
        }
    }

    #[test]
    fn threads_write_runs_at_the_same_time() {
        let runs = SortedRuns::with_parts(None, 2);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let runs = &runs;
                scope.spawn(move || {
                    let mut collector = RunCollector::new(thread % 2, 10_000);
                    for at in (thread as u64..8000).step_by(4) {
                        collector
                            .push_record(runs, &hash(at).to_be_bytes(), at)
                            .unwrap();
                    }
                    collector.write_run(runs).unwrap();
                });
            }
        });
        for part in 0..2 {
            let numbers = (0..8000).filter(|at| at % 2 == part);
            let mut expected: Vec<_> = numbers
                .map(|at| (hash(at).to_be_bytes().to_vec(), at))
                .collect();
            expected.sort();
            assert!(merged(&runs, part as usize, 1 << 20) == expected);
        }
    }
}
