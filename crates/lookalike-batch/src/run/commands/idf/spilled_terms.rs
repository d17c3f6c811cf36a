//! Counts and spellings of terms in temporary files, for a vocabulary that does not fit into the memory.
//!
//! ```text
//! counting   shards that are full → sorted runs of keys with counts        a part of `counts` for each shard
//!            spellings of a thread → sorted runs of keys with spellings    the same parts
//! adding     a shard at a time, on all threads: key → count, spelling
//! merging    with tables of earlier runs: rows sorted by term → sums       `by_term`
//! ordering   rows sorted by count, most frequent first, and then by term   `by_count`
//! ```
//!
//! The result does not depend on when counts were taken, because they are sums. A key with several spellings
//! gets the smallest one, as in memory.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lookalike::text::frequencies::{DocumentFrequencies, FrequencyTally};
use lookalike::text::weight::repeated_term_error;
use lookalike_io::error::{Error, Result, display_path};
use rayon::prelude::*;

use crate::memory::frequency_plan::FrequencyShares;
use crate::run::commands::idf::settings::IdfSettings;
use crate::run::commands::summary::SpilledData;
use crate::temporary::sorted_runs::{RunCollector, SortedRuns};

/// Ends a term in a key of `by_term`. No UTF-8 has this byte.
const TERM_END: u8 = 0xff;

/// Bytes behind [`TERM_END`]: the number of the table and the line of the term there.
const ORIGIN_BYTES: usize = 12;

/// Largest count of a term in memory, which files keep, too.
const MAX_TERM_COUNT: u64 = u32::MAX as u64;

/// Counts and spellings that do not fit into the memory.
pub(super) struct TermSpill<'a> {
    frequencies: &'a DocumentFrequencies,
    memory: FrequencyShares,
    counts: SortedRuns,
    /// The terms of tables of earlier runs, and later those of this one.
    by_term: SortedRuns,
    next_shard: AtomicUsize,
    has_spilled: AtomicBool,
}

/// All rows of a table in their order, in temporary files.
pub(super) struct SpilledRows {
    by_count: SortedRuns,
    memory: FrequencyShares,
    pub(super) rows: u64,
    pub(super) spilled: SpilledData,
}

impl<'a> TermSpill<'a> {
    /// Creates a spill without terms. Temporary files are created with the first terms, in `directory` or in the
    /// directory of the system.
    pub(super) fn new(
        frequencies: &'a DocumentFrequencies,
        memory: FrequencyShares,
        directory: Option<PathBuf>,
    ) -> Self {
        Self {
            frequencies,
            memory,
            counts: SortedRuns::with_parts(directory.clone(), DocumentFrequencies::SHARDS),
            by_term: SortedRuns::with_parts(directory, 1),
            next_shard: AtomicUsize::new(0),
            has_spilled: AtomicBool::new(false),
        }
    }

    /// Returns the counts in memory.
    pub(super) fn frequencies(&self) -> &'a DocumentFrequencies {
        self.frequencies
    }

    /// Writes counts and spellings until those in memory keep their limits.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn keep_limits(&self, tally: &mut FrequencyTally) -> Result<()> {
        while self.frequencies.table_bytes() > self.memory.table_bytes() {
            // In turn, so that the shard that was longest in memory goes first.
            let next = self.next_shard.fetch_add(1, Ordering::Relaxed);
            self.write_counts(next % DocumentFrequencies::SHARDS)?;
        }
        if tally.spelling_bytes() > self.memory.spelling_bytes() {
            self.write_spellings(tally)
        } else {
            Ok(())
        }
    }

    fn write_counts(&self, shard: usize) -> Result<()> {
        let counts = self.frequencies.take_counts(shard);
        if counts.is_empty() {
            return Ok(());
        }
        self.has_spilled.store(true, Ordering::Relaxed);
        let mut run = self.counts.begin_run(shard);
        for (key, count) in counts {
            run.push_record(&key.to_be_bytes(), count)?;
        }
        run.finish_run()
    }

    /// Writes the spellings of a tally.
    fn write_spellings(&self, tally: &mut FrequencyTally) -> Result<()> {
        let mut spellings = tally.take_spellings();
        if spellings.is_empty() {
            return Ok(());
        }
        self.has_spilled.store(true, Ordering::Relaxed);
        let shard = |key: u64| DocumentFrequencies::shard_of_key(key);
        spellings.sort_unstable_by(|(a, of_a), (b, of_b)| {
            (shard(*a), a, of_a).cmp(&(shard(*b), b, of_b))
        });
        let mut record = Vec::new();
        for of_shard in spellings.chunk_by(|(a, _), (b, _)| shard(*a) == shard(*b)) {
            let mut run = self.counts.begin_run(shard(of_shard[0].0));
            for (key, spelling) in of_shard {
                record.clear();
                record.extend(key.to_be_bytes());
                record.extend(spelling.as_bytes());
                run.push_record(&record, 0)?;
            }
            run.finish_run()?;
        }
        Ok(())
    }

    /// Returns `true` if something was written, or if the terms in memory cannot be ordered there.
    pub(super) fn needs_temporary_files(&self, tallies: &[FrequencyTally]) -> bool {
        if self.has_spilled.load(Ordering::Relaxed) || self.by_term.written_runs() > 0 {
            return true;
        }
        let spelled: u64 = tallies.iter().map(FrequencyTally::spelling_bytes).sum();
        let counted = self.frequencies.table_bytes() + spelled;
        let terms = self.frequencies.term_count();
        !self
            .memory
            .fits(terms, counted, !self.frequencies.has_packed_keys())
    }

    /// Adds the terms of the tables to merge. Returns the number of their documents.
    ///
    /// # Errors
    /// If a table cannot be read or was learned with another recipe, or if terms cannot be written.
    pub(super) fn add_tables(&self, settings: &IdfSettings) -> Result<u64> {
        let mut collector = RunCollector::new(0, self.memory.merged_alone_bytes());
        let mut documents = 0;
        let mut key = Vec::new();
        for (table, path) in (1..).zip(&settings.merge) {
            documents += super::read_table_lines(settings, path, |term, count, line| {
                put_term(&term, table, line, &mut key);
                collector.push_record(&self.by_term, &key, count)
            })?;
        }
        collector.write_run(&self.by_term)?;
        Ok(documents)
    }

    /// Writes everything that is in memory, and returns all rows in the order of the table.
    ///
    /// # Errors
    /// If temporary files cannot be read or written, or if a table to merge names a term twice.
    pub(super) fn order_rows(
        self,
        tallies: Vec<FrequencyTally>,
        settings: &IdfSettings,
    ) -> Result<SpilledRows> {
        for mut tally in tallies {
            self.write_spellings(&mut tally)?;
        }
        (0..DocumentFrequencies::SHARDS)
            .into_par_iter()
            .try_for_each(|shard| self.write_counts(shard))?;
        let by_count = SortedRuns::with_parts(settings.read.scratch.clone(), 1);
        let rows = if settings.merge.is_empty() {
            self.count_terms(settings.least_documents, &by_count)?
        } else {
            self.merge_tables(settings, &by_count)?
        };
        let bytes = self.counts.written_bytes() + self.by_term.written_bytes();
        let runs = [&self.counts, &self.by_term, &by_count].map(SortedRuns::written_runs);
        Ok(SpilledRows {
            spilled: SpilledData {
                bytes: bytes + by_count.written_bytes(),
                runs: runs.iter().sum(),
            },
            by_count,
            memory: self.memory,
            rows: rows.min(settings.top.map_or(u64::MAX, |top| top as u64)),
        })
    }

    /// Writes the rows of all terms with at least `least` documents. Returns their number.
    fn count_terms(&self, least: u64, by_count: &SortedRuns) -> Result<u64> {
        let rows = AtomicU64::new(0);
        self.visit_shards(by_count, |term, count, key, collector| {
            if count < least {
                return Ok(());
            }
            rows.fetch_add(1, Ordering::Relaxed);
            put_row(term, count, key);
            collector.push_record(by_count, key, 0)
        })?;
        Ok(rows.into_inner())
    }

    /// Writes the rows of all terms of this run and of the tables. Returns their number.
    fn merge_tables(&self, settings: &IdfSettings, by_count: &SortedRuns) -> Result<u64> {
        self.visit_shards(&self.by_term, |term, count, key, collector| {
            put_term(term, 0, 0, key);
            collector.push_record(&self.by_term, key, count)
        })?;
        let mut collector = RunCollector::new(0, self.memory.merged_alone_bytes());
        let (mut rows, mut key) = (0, Vec::new());
        let mut finish_term = |term: &[u8], count: u64| {
            if count < settings.least_documents || term.is_empty() {
                return Ok(());
            }
            rows += 1;
            put_row(to_text(term)?, count, &mut key);
            collector.push_record(by_count, &key, 0)
        };
        let mut current = TermSum::default();
        let buffers = self.memory.merged_alone_bytes();
        self.by_term.merge_part(0, buffers, |key, count| {
            let (term, origin) = key.split_at(key.len() - ORIGIN_BYTES);
            let term = &term[..term.len() - 1];
            let (table, line) = origin.split_at(4);
            if current.term != term {
                finish_term(&current.term, current.count)?;
                current.begin_term(term);
            } else if table == current.table && table != [0; 4] {
                return Err(self.refuse_repeated(settings, term, table, line));
            }
            current.table = [table[0], table[1], table[2], table[3]];
            current.count += count;
            Ok(())
        })?;
        finish_term(&current.term, current.count)?;
        collector.write_run(by_count)?;
        Ok(rows)
    }

    fn refuse_repeated(
        &self,
        settings: &IdfSettings,
        term: &[u8],
        table: &[u8],
        line: &[u8],
    ) -> Error {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let path = settings.merge.get(number(table) as usize - 1);
        let name = path.map_or_else(String::new, |path: &PathBuf| display_path(path));
        repeated_term_error(&name, number(line), &String::from_utf8_lossy(term)).into()
    }

    /// Adds up the counts of every term and calls `visit` with its spelling and count. Every thread has a buffer and a
    /// collector of records. The collected records are then written to `runs`.
    fn visit_shards(
        &self,
        runs: &SortedRuns,
        visit: impl Fn(&str, u64, &mut Vec<u8>, &mut RunCollector) -> Result<()> + Sync,
    ) -> Result<()> {
        let idle: Mutex<Vec<RunCollector>> = Mutex::default();
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        (0..DocumentFrequencies::SHARDS)
            .into_par_iter()
            .try_for_each(|shard| -> Result<()> {
                let free = lock().pop();
                let bytes = self.memory.collected_bytes();
                let mut collector = free.unwrap_or_else(|| RunCollector::new(0, bytes));
                let mut buffer = Vec::new();
                self.visit_shard(shard, |term, count| {
                    visit(term, count, &mut buffer, &mut collector)
                })?;
                lock().push(collector);
                Ok(())
            })?;
        let mut left = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        left.iter_mut()
            .try_for_each(|buffer| buffer.write_run(runs))
    }

    /// Adds up the counts of the terms of a shard.
    fn visit_shard(
        &self,
        shard: usize,
        mut visit: impl FnMut(&str, u64) -> Result<()>,
    ) -> Result<()> {
        let mut current = KeySum::default();
        let mut text = String::new();
        let mut finish_key = |current: &KeySum| {
            let count = current.count.min(MAX_TERM_COUNT);
            if count == 0 {
                return Ok(());
            }
            if self.frequencies.has_packed_keys() {
                text.clear();
                self.frequencies.unpack_key(current.key, &mut text);
                return visit(&text, count);
            }
            visit(to_text(&current.spelling)?, count)
        };
        let buffers = self.memory.merged_bytes();
        self.counts.merge_part(shard, buffers, |record, count| {
            let (key, spelling) = record.split_first_chunk().ok_or_else(damaged_file)?;
            let key = u64::from_be_bytes(*key);
            if key != current.key {
                finish_key(&current)?;
                current.begin_key(key);
            }
            current.count += count;
            if current.spelling.is_empty() {
                // The smallest comes first.
                current.spelling.extend_from_slice(spelling);
            }
            Ok(())
        })?;
        finish_key(&current)
    }
}

/// The count and the spelling of a key.
#[derive(Default)]
struct KeySum {
    key: u64,
    count: u64,
    spelling: Vec<u8>,
}

impl KeySum {
    fn begin_key(&mut self, key: u64) {
        (self.key, self.count) = (key, 0);
        self.spelling.clear();
    }
}

/// The count of a term in all tables.
#[derive(Default)]
struct TermSum {
    term: Vec<u8>,
    count: u64,
    /// The table that was last added.
    table: [u8; 4],
}

impl TermSum {
    fn begin_term(&mut self, term: &[u8]) {
        self.term.clear();
        self.term.extend_from_slice(term);
        self.count = 0;
    }
}

impl SpilledRows {
    /// Visits the rows in the order of the table, with their numbers of documents.
    ///
    /// # Errors
    /// If the temporary file cannot be read, and the errors of `visit`.
    pub(super) fn visit_rows(&self, mut visit: impl FnMut(&str, u64) -> Result<()>) -> Result<()> {
        let mut left = self.rows;
        let buffers = self.memory.merged_alone_bytes();
        self.by_count.merge_part(0, buffers, |key, _| {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let (count, term) = key.split_first_chunk().ok_or_else(damaged_file)?;
            visit(to_text(term)?, !u64::from_be_bytes(*count))
        })
    }
}

/// Replaces `key` by the key of a term in `by_term`: equal terms are neighbours, ordered by table and line.
fn put_term(term: &str, table: u32, line: u64, key: &mut Vec<u8>) {
    key.clear();
    key.extend(term.as_bytes());
    key.push(TERM_END);
    key.extend(table.to_be_bytes());
    key.extend(line.to_be_bytes());
}

/// Replaces `key` by the key of a row in `by_count`: frequent terms come first, and equally frequent ones by their
/// bytes.
fn put_row(term: &str, count: u64, key: &mut Vec<u8>) {
    key.clear();
    key.extend((!count).to_be_bytes());
    key.extend(term.as_bytes());
}

fn to_text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged_file())
}

fn damaged_file() -> Error {
    Error::input_error(
        "a temporary file of terms has other bytes than were written: check the disk of the directory in TMPDIR, and \
         run again",
    )
}
