//! The search for the runs of documents that stand in earlier ones.
//!
//! ```text
//! 1. count     runs of all documents, and the grams that find rows of a library
//! 2. count     runs of these rows
//! 3. collect   places of the runs that were counted more than once
//! 4. resolve   equal hashes → each place with the first one
//! ```
//!
//! The first two steps count exactly how many places the third one collects. If they fit into the memory, they are sorted
//! there. Otherwise they are divided by their hashes among the parts of a temporary file. The first places of a part are
//! found in a table of a fixed size; a part whose runs do not fit into it is divided once more. The repeats go to sorted
//! runs in another file. Guarantee: both ways find the same repeats in the same order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lookalike::DocId;
use lookalike::passages::{
    FirstPlaces, PassageSettings, RepeatedRun, RepeatedRuns, RunCounter, RunList, RunPlace,
};
use lookalike::text::SpannedTokens;
use lookalike_io::error::Result;
use rayon::prelude::*;

use super::searched_texts::{GramScratch, LibrarySearch, SearchedTexts, TextScratch};
use crate::index::indexed_passages::IndexedPassages;
use crate::memory::repeated_text_plan::RepeatedTextShares;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::progress::ProgressListener;
use crate::run::settings::RunSettings;
use crate::temporary::part_file::PartFile;
use crate::temporary::sorted_runs::{RunCollector, SortedRuns};

/// Documents that a thread reads before it reports progress.
const DOCUMENTS_PER_REPORT: usize = 64;

/// Binary digits of a hash by which a part is divided once more.
const DIVIDED_DIGITS: u32 = 4;

/// The documents of a run in which repeated text is searched.
#[derive(Clone, Copy)]
pub(super) struct SearchedRun<'a> {
    pub(super) corpus: &'a RunCorpus<'a>,
    /// Kept and known documents that have texts, ascending.
    pub(super) kept: &'a [DocId],
    pub(super) settings: PassageSettings,
    pub(super) run: &'a RunSettings,
    pub(super) library: Option<&'a IndexedPassages>,
    pub(super) shares: RepeatedTextShares,
    pub(super) progress: &'a dyn ProgressListener,
}

/// Repeated runs of documents.
pub(super) enum FoundRuns {
    Memory(RepeatedRuns),
    /// The first part of a file, with the place of a run as its key.
    File(SortedRuns),
}

/// The data that went to temporary files.
#[derive(Default)]
pub(super) struct SpilledBytes(AtomicU64);

impl SpilledBytes {
    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Buffers of a thread that reads texts and finds their runs.
#[derive(Default)]
pub(super) struct RunScratch {
    pub(super) texts: TextScratch,
    pub(super) tokens: SpannedTokens,
    grams: GramScratch,
    runs: Option<RunList>,
}

impl RunScratch {
    /// Reads the tokens and the runs of a document. Returns its text.
    pub(super) fn read_runs(
        &mut self,
        texts: &SearchedTexts<'_>,
        number: u32,
        settings: PassageSettings,
    ) -> Result<String> {
        let text = texts.read_text(number, &mut self.texts)?;
        texts.tokenize_text(&text, &mut self.tokens)?;
        let runs = self.runs.get_or_insert_with(|| RunList::new(settings));
        runs.fill_runs(self.tokens.values(), texts.partition_of(number));
        Ok(text)
    }

    /// Returns the runs of the document that was read last.
    ///
    /// # Panics
    /// If none was read.
    pub(super) fn runs(&self) -> &RunList {
        let runs = self.runs.as_ref();
        runs.expect("runs are asked for after a document was read")
    }
}

/// The search for repeated runs.
pub(super) struct RunSearch<'a> {
    pub(super) of: SearchedRun<'a>,
    pub(super) texts: SearchedTexts<'a>,
    pub(super) spilled: SpilledBytes,
    done: AtomicU64,
}

impl<'a> RunSearch<'a> {
    /// Begins a search in the documents of a run. Rows of a library are not yet among them.
    pub(super) fn new(of: SearchedRun<'a>) -> Self {
        Self {
            of,
            texts: SearchedTexts::new(of.corpus, of.run),
            spilled: SpilledBytes::default(),
            done: AtomicU64::new(0),
        }
    }

    /// Puts rows of the library before the documents of the run.
    fn put_library_first(&mut self, sources: Vec<u32>) -> Result<()> {
        let library = self.of.library;
        library.map_or(Ok(()), |library| {
            self.texts.put_library_first(library, sources)
        })
    }

    /// Finds the runs of new documents that stand in earlier ones.
    ///
    /// # Errors
    /// If a text or the library cannot be read, or if temporary files fail.
    pub(super) fn find_runs(&mut self) -> Result<FoundRuns> {
        let (counter, places) = self.count_all_runs()?;
        if self.of.shares.fits(places) {
            self.find_in_memory(&counter).map(FoundRuns::Memory)
        } else {
            self.find_in_files(counter, places).map(FoundRuns::File)
        }
    }

    /// Counts the runs of all documents. Returns the counter, and how many places are to be collected.
    fn count_all_runs(&mut self) -> Result<(RunCounter, u64)> {
        let rows = self.texts.corpus_rows();
        let bytes = rows.documents.bytes + rows.against.bytes;
        let (slots, most_bytes) = self.of.shares.counter_size(bytes);
        let counter = RunCounter::with_limit(slots, most_bytes);
        let places = AtomicU64::new(0);
        let count = |scratch: &RunScratch| {
            let collected = counter.count_runs(scratch.runs());
            places.fetch_add(collected, Ordering::Relaxed);
        };
        let library = self.of.library.map(LibrarySearch::new);
        self.visit_documents(&self.run_numbers(), |_, scratch| {
            count(scratch);
            match &library {
                None => Ok(()),
                Some(library) => library.add_sources(scratch.tokens.values(), &mut scratch.grams),
            }
        })?;
        let sources = library.map(LibrarySearch::into_sources).unwrap_or_default();
        self.put_library_first(sources)?;
        self.visit_documents(&self.library_numbers(), |_, scratch| {
            count(scratch);
            Ok(())
        })?;
        Ok((counter, places.into_inner()))
    }

    /// Returns the numbers of the documents of the run.
    fn run_numbers(&self) -> Vec<u32> {
        let kept = self.of.kept.iter();
        kept.map(|&document| self.texts.number_of(document))
            .collect()
    }

    fn library_numbers(&self) -> Vec<u32> {
        (0..self.texts.library_rows()).collect()
    }

    /// Reads documents on all threads and calls `visit` with the runs of each.
    fn visit_documents(
        &self,
        numbers: &[u32],
        visit: impl Fn(u32, &mut RunScratch) -> Result<()> + Sync,
    ) -> Result<()> {
        self.visit_batches(numbers, |batch, scratch| {
            for &number in batch {
                scratch.read_runs(&self.texts, number, self.of.settings)?;
                visit(number, scratch)?;
            }
            Ok(())
        })
    }

    /// Calls `visit` with batches of documents on all threads, and reports the progress of those of the run.
    fn visit_batches(
        &self,
        numbers: &[u32],
        visit: impl Fn(&[u32], &mut RunScratch) -> Result<()> + Sync,
    ) -> Result<()> {
        let first = self.texts.library_rows();
        let batches = numbers.par_chunks(DOCUMENTS_PER_REPORT);
        batches.try_for_each_init(RunScratch::default, |scratch, batch| {
            visit(batch, scratch)?;
            let of_run = batch.iter().filter(|&&number| number >= first).count() as u64;
            let done = self.done.fetch_add(of_run, Ordering::Relaxed) + of_run;
            self.of.progress.advance_stage(done);
            Ok(())
        })
    }

    /// Calls `store` with the places of the runs that were counted more than once, batch by batch.
    fn collect_places(
        &self,
        counter: &RunCounter,
        store: impl Fn(&mut Vec<RunPlace>) -> Result<()> + Sync,
    ) -> Result<()> {
        let numbers = [self.library_numbers(), self.run_numbers()].concat();
        self.visit_batches(&numbers, |batch, scratch| {
            let mut places = Vec::new();
            for &number in batch {
                scratch.read_runs(&self.texts, number, self.of.settings)?;
                counter.collect_repeated(scratch.runs(), number, &mut places);
            }
            store(&mut places)
        })
    }

    fn find_in_memory(&self, counter: &RunCounter) -> Result<RepeatedRuns> {
        let all = Mutex::new(Vec::new());
        self.collect_places(counter, |places| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(places);
            Ok(())
        })?;
        let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(RepeatedRuns::from_places(all))
    }

    fn find_in_files(&self, counter: RunCounter, places: u64) -> Result<SortedRuns> {
        let shares = self.of.shares;
        let directory = self.of.corpus.temporary_directory();
        let digits = shares.part_digits(places);
        let parts = DividedPlaces::create_file(self, 0, digits, shares.buffered_bytes())?;
        self.collect_places(&counter, |places| parts.push_places(places))?;
        drop(counter);
        parts.file.finish_writing()?;
        let found = SortedRuns::with_parts(directory.map(std::path::Path::to_path_buf), 1);
        let all_parts = (0..parts.file.part_count()).into_par_iter();
        all_parts.try_for_each_init(
            || RunCollector::new(0, shares.sorted_bytes()),
            |collector, part| parts.resolve_part(part, collector, &found),
        )?;
        self.spilled
            .add(parts.file.written_bytes() + found.written_bytes());
        Ok(found)
    }
}

/// Places of runs, divided by some binary digits of their hashes.
struct DividedPlaces<'a> {
    search: &'a RunSearch<'a>,
    file: PartFile,
    /// Number of the first digits, which all places of this file have in common.
    common_digits: u32,
    /// Number of the digits behind them that say to which part a place belongs.
    digits: u32,
}

impl<'a> DividedPlaces<'a> {
    fn create_file(
        search: &'a RunSearch<'a>,
        common_digits: u32,
        digits: u32,
        buffered_bytes: u64,
    ) -> Result<Self> {
        let directory = search.of.corpus.temporary_directory();
        Ok(Self {
            search,
            file: PartFile::create_file(directory, 1 << digits, buffered_bytes)?,
            common_digits,
            digits,
        })
    }

    fn part_of(&self, place: RunPlace) -> usize {
        let rest = place.hash() << self.common_digits;
        rest.checked_shr(u64::BITS - self.digits).unwrap_or(0) as usize
    }

    /// Writes places, which may have any order.
    fn push_places(&self, places: &[RunPlace]) -> Result<()> {
        let mut blocks = vec![Vec::new(); 1 << self.digits];
        for &place in places {
            blocks[self.part_of(place)].extend(place.to_bytes());
        }
        let mut filled = (0u32..).zip(&blocks).filter(|(_, block)| !block.is_empty());
        filled.try_for_each(|(part, block)| self.file.push_block(part, block))
    }

    /// Collects the repeats among the places of a part and writes them as a sorted run.
    fn resolve_part(
        &self,
        part: u32,
        collector: &mut RunCollector,
        found: &SortedRuns,
    ) -> Result<()> {
        let places = self.file.part_bytes(part) / RunPlace::BYTES as u64;
        let table_bytes = self.search.of.shares.table_bytes();
        let mut first = FirstPlaces::with_limit(places, table_bytes);
        for at in 0..self.file.extent_count(part) {
            let mut has_room = true;
            self.file.visit_extent(part, at, |block| {
                has_room &= RunPlace::read_places(block).all(|place| first.add_place(place));
                Ok(())
            })?;
            if !has_room {
                drop(first);
                return self.divide_part(part, collector, found);
            }
        }
        let first_new = self.search.texts.first_new();
        self.file.visit_part(part, |block| {
            let repeats = RunPlace::read_places(block).filter_map(|place| first.find_repeat(place));
            repeats
                .filter(|repeat| repeat.document() >= first_new)
                .try_for_each(|repeat| {
                    let (place, earlier) = repeat.to_numbers();
                    collector.push_record(found, &place.to_be_bytes(), earlier)
                })
        })?;
        collector.write_run(found)
    }

    /// Divides a part whose runs do not fit into a table by further digits, and resolves its parts. This comes to an end
    /// because a table has room for the places of one hash, however many they are.
    fn divide_part(
        &self,
        part: u32,
        collector: &mut RunCollector,
        found: &SortedRuns,
    ) -> Result<()> {
        let common_digits = self.common_digits + self.digits;
        let digits = DIVIDED_DIGITS.min(u64::BITS - common_digits);
        let buffered = self.search.of.shares.buffered_bytes() / self.search.of.run.threads as u64;
        let parts = Self::create_file(self.search, common_digits, digits, buffered)?;
        self.file.visit_part(part, |block| {
            let places: Vec<RunPlace> = RunPlace::read_places(block).collect();
            parts.push_places(&places)
        })?;
        parts.file.finish_writing()?;
        let mut all_parts = 0..parts.file.part_count();
        let resolved = all_parts.try_for_each(|part| parts.resolve_part(part, collector, found));
        self.search.spilled.add(parts.file.written_bytes());
        resolved
    }
}

impl FoundRuns {
    /// Calls `visit` with the repeated runs of some documents at a time, at least `runs_at_once` unless they are the last
    /// ones, ascending. All runs of a document come at once.
    ///
    /// # Errors
    /// If the file cannot be read or written, and the errors of `visit`.
    pub(super) fn visit_runs(
        self,
        shares: RepeatedTextShares,
        mut visit: impl FnMut(&[RepeatedRun]) -> Result<()>,
    ) -> Result<()> {
        let runs_at_once = shares.runs_at_once();
        match self {
            Self::Memory(runs) => {
                let mut rest = runs.as_slice();
                while !rest.is_empty() {
                    let (runs, later) = rest.split_at(end_of_documents(rest, runs_at_once));
                    visit(runs)?;
                    rest = later;
                }
                Ok(())
            }
            Self::File(sorted) => {
                let mut pending: Vec<RepeatedRun> = Vec::new();
                sorted.merge_part(0, shares.merged_bytes(), |place, first| {
                    let place = place.first_chunk().copied().map_or(0, u64::from_be_bytes);
                    let run = RepeatedRun::from_numbers(place, first);
                    let is_next = |last: &RepeatedRun| last.document() != run.document();
                    if pending.len() >= runs_at_once && pending.last().is_some_and(is_next) {
                        visit(&pending)?;
                        pending.clear();
                    }
                    pending.push(run);
                    Ok(())
                })?;
                if pending.is_empty() {
                    Ok(())
                } else {
                    visit(&pending)
                }
            }
        }
    }
}

/// Returns the end of the document of the run at `at`, or of all runs if there are fewer.
fn end_of_documents(runs: &[RepeatedRun], at: usize) -> usize {
    match at.checked_sub(1).and_then(|last| runs.get(last)) {
        None => runs.len(),
        Some(last) => runs.partition_point(|run| run.document() <= last.document()),
    }
}
