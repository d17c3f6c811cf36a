//! Grams of possible sources in a temporary file, for an index that does not fit into the memory.
//!
//! ```text
//! reading      grams in the order of the documents → sorted runs       GramCollector
//! merging      all grams, ascending → those that can find a source     GramFile::merge_grams
//! searching    a gram → filter → one block of the file                 GramFile::find_gram
//! ```
//!
//! The file has the hash and the document of each posting (8 and 4 bytes, little-endian), ascending, in blocks of
//! [`POSTINGS_PER_BLOCK`] postings. In memory are the first hash of each block, a filter of all hashes, and the
//! boilerplate. If the documents are their own sources, a gram of only one document finds no source, so it is left
//! out.
//!
//! Cost: a look-up that passes the filter reads one block, which is usually in the cache of the system.

use std::path::PathBuf;

use lookalike::passages::BoilerplateGram;
use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

use crate::memory::passage_plan::PassageShares;
use crate::run::reading::repeated_ids::BitTable;
use crate::temporary::sorted_runs::SortedRuns;

/// Postings of a block.
const POSTINGS_PER_BLOCK: u64 = 512;

/// Bytes of a posting.
const POSTING_BYTES: usize = 12;

/// Bytes of postings that are written at once.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Grams of one hash that are collected although they may be boilerplate or of a single document.
const MAX_COLLECTED_GRAMS: usize = 64 << 10;

/// Collects grams with their documents: in memory, and beyond its part of the memory in sorted runs.
pub(super) struct GramCollector {
    grams: Vec<(u64, u32)>,
    runs: SortedRuns,
    most: usize,
    written: u64,
}

/// All grams of the sources.
pub(super) enum CollectedGrams {
    Memory(Vec<(u64, u32)>),
    File(GramFile),
}

/// Which grams an index has.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexedGrams {
    /// Largest number of documents that have a gram; `None` for no limit.
    pub(super) max_documents: Option<u32>,
    /// `true` if all sources are searched themselves, and nothing else is.
    pub(super) are_searched: bool,
    /// Number of indexes among which the memory is divided.
    pub(super) kinds: u64,
}

impl GramCollector {
    /// Creates a collector of one of `kinds` kinds of grams. Temporary files are in `directory`, or in the directory of
    /// the system.
    pub(super) fn new(memory: PassageShares, kinds: u64, directory: Option<PathBuf>) -> Self {
        Self {
            grams: Vec::new(),
            runs: SortedRuns::with_parts(directory, 1),
            most: memory.collected_grams(kinds),
            written: 0,
        }
    }

    /// Returns the number of all grams.
    pub(super) fn len(&self) -> usize {
        self.grams.len() + self.written as usize
    }

    /// Returns `true` if some grams are in a temporary file.
    pub(super) fn is_spilled(&self) -> bool {
        self.written > 0
    }

    /// Adds grams.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn extend(&mut self, grams: impl IntoIterator<Item = (u64, u32)>) -> Result<()> {
        for gram in grams {
            if self.grams.len() >= self.most {
                self.write_run()?;
            }
            if self.grams.len() == self.grams.capacity() {
                // The capacity grows by a quarter at most, because unused capacity counts against the limit too.
                let more = (self.grams.len() / 4).max(1024);
                self.grams.reserve_exact(more);
            }
            self.grams.push(gram);
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        use rayon::slice::ParallelSliceMut;
        self.grams.par_sort_unstable();
        let mut run = self.runs.begin_run(0);
        for (hash, document) in &self.grams {
            let mut key = [0; POSTING_BYTES];
            key[..8].copy_from_slice(&hash.to_be_bytes());
            key[8..].copy_from_slice(&document.to_be_bytes());
            run.push_record(&key, 0)?;
        }
        self.written += self.grams.len() as u64;
        self.grams.clear();
        run.finish_run()
    }

    /// Returns all grams: in memory if they fit there.
    ///
    /// # Errors
    /// If the temporary files cannot be read or written.
    pub(super) fn finish(
        mut self,
        memory: PassageShares,
        indexed: IndexedGrams,
    ) -> Result<CollectedGrams> {
        if !self.is_spilled() && memory.fits(self.grams.len(), indexed.kinds) {
            return Ok(CollectedGrams::Memory(self.grams));
        }
        self.write_run()?;
        self.grams = Vec::new();
        GramFile::merge_grams(&self.runs, self.written, memory, indexed).map(CollectedGrams::File)
    }
}

/// Grams of the sources in a temporary file.
pub(super) struct GramFile {
    file: SpoolFile,
    /// First hash of each block.
    directory: Vec<u64>,
    filter: BitTable,
    /// Ascending by hash.
    pub(super) boilerplate: Vec<BoilerplateGram>,
    postings: u64,
    /// Bytes that were written to temporary files, and sorted runs in them.
    pub(super) spilled: [u64; 2],
}

impl GramFile {
    fn merge_grams(
        runs: &SortedRuns,
        grams: u64,
        memory: PassageShares,
        indexed: IndexedGrams,
    ) -> Result<Self> {
        // Hashes of one document only are no more than half of all where they are left out.
        let hashes = grams / if indexed.are_searched { 2 } else { 1 };
        let filtered = (hashes as usize).min(memory.filter_bytes(indexed.kinds) / 4);
        let mut writer = GramWriter {
            file: Self {
                file: SpoolFile::create_file(runs.directory())?,
                directory: Vec::new(),
                filter: BitTable::new(filtered.max(4)),
                boilerplate: Vec::new(),
                postings: 0,
                spilled: [0; 2],
            },
            indexed,
            hash: 0,
            documents: Vec::new(),
            count: 0,
            first: 0,
            pending: Vec::with_capacity(WRITE_BUFFER_BYTES + POSTING_BYTES),
        };
        runs.merge_part(0, memory.merged_bytes(), |key, _| {
            let (hash, document) = key.split_first_chunk().ok_or_else(damaged_file)?;
            let document = document.first_chunk().ok_or_else(damaged_file)?;
            writer.add_posting(u64::from_be_bytes(*hash), u32::from_be_bytes(*document))
        })?;
        writer.finish_gram()?;
        writer.write_pending()?;
        let mut file = writer.file;
        let bytes = runs.written_bytes() + file.file.end_offset();
        file.spilled = [bytes, runs.written_runs()];
        Ok(file)
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let boilerplate = self.boilerplate.len() * size_of::<BoilerplateGram>();
        8 * self.directory.len() + self.filter.memory_bytes() + boilerplate
    }

    /// Returns `true` if a gram is in more documents than the limit.
    pub(super) fn is_boilerplate(&self, hash: u64) -> bool {
        self.boilerplate
            .binary_search_by_key(&hash, |gram| gram.hash)
            .is_ok()
    }

    /// Appends the documents that have a gram, ascending; none of boilerplate.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn find_gram(&self, hash: u64, found: &mut Vec<u32>) -> Result<()> {
        if !self.filter.contains_hash(hash) {
            return Ok(());
        }
        // The first postings of a hash may be the last ones of the block before.
        let first = self
            .directory
            .partition_point(|&first_hash| first_hash < hash);
        let mut block = [0; POSTINGS_PER_BLOCK as usize * POSTING_BYTES];
        for at in first.saturating_sub(1) as u64..self.directory.len() as u64 {
            if self.directory[at as usize] > hash {
                break;
            }
            let count = POSTINGS_PER_BLOCK.min(self.postings - at * POSTINGS_PER_BLOCK) as usize;
            let bytes = &mut block[..count * POSTING_BYTES];
            let start = at * POSTINGS_PER_BLOCK * POSTING_BYTES as u64;
            let read = self.file.read_exact_at(bytes, start);
            read.map_err(|cause| {
                let place = format_args!("byte {start} of the temporary file of grams");
                Error::read_error("read", place, cause)
            })?;
            let hash_at = |at: usize| read_hash(&bytes[at * POSTING_BYTES..]);
            let (mut low, mut high) = (0, count);
            while low < high {
                let middle = (low + high) / 2;
                if hash_at(middle) < hash {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let equal = (low..count).take_while(|&at| hash_at(at) == hash);
            found.extend(equal.map(|at| read_document(&bytes[at * POSTING_BYTES..])));
        }
        Ok(())
    }
}

fn read_hash(posting: &[u8]) -> u64 {
    posting
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn read_document(posting: &[u8]) -> u32 {
    let document = posting[8..].first_chunk();
    document.map_or(0, |document| u32::from_le_bytes(*document))
}

/// Writes the postings of grams that can find a source.
struct GramWriter {
    file: GramFile,
    indexed: IndexedGrams,
    /// The gram at hand, and those of its documents that are not yet written.
    hash: u64,
    documents: Vec<u32>,
    /// Number of its documents, and the first one.
    count: u64,
    first: u32,
    pending: Vec<u8>,
}

impl GramWriter {
    fn add_posting(&mut self, hash: u64, document: u32) -> Result<()> {
        if hash != self.hash || self.count == 0 {
            self.finish_gram()?;
            (self.hash, self.first, self.count) = (hash, document, 0);
        }
        self.count += 1;
        match self.indexed.max_documents {
            Some(most) if self.count > u64::from(most) => {
                self.documents.clear();
                return Ok(());
            }
            _ => self.documents.push(document),
        }
        if self.indexed.max_documents.is_none() && self.documents.len() >= MAX_COLLECTED_GRAMS {
            self.write_documents()
        } else {
            Ok(())
        }
    }

    fn finish_gram(&mut self) -> Result<()> {
        let most = self.indexed.max_documents.map_or(u64::MAX, u64::from);
        if self.count > most {
            self.file.boilerplate.push(BoilerplateGram {
                hash: self.hash,
                documents: self.count as u32,
                first: self.first,
            });
        } else if self.count > u64::from(self.indexed.are_searched) {
            self.write_documents()?;
        }
        self.documents.clear();
        self.count = 0;
        Ok(())
    }

    fn write_documents(&mut self) -> Result<()> {
        if !self.documents.is_empty() {
            self.file.filter.insert_hash(self.hash);
        }
        for document in std::mem::take(&mut self.documents) {
            if self.file.postings.is_multiple_of(POSTINGS_PER_BLOCK) {
                self.file.directory.push(self.hash);
            }
            self.file.postings += 1;
            self.pending.extend(self.hash.to_le_bytes());
            self.pending.extend(document.to_le_bytes());
            if self.pending.len() >= WRITE_BUFFER_BYTES {
                self.write_pending()?;
            }
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<()> {
        self.file.file.append_bytes(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

fn damaged_file() -> Error {
    Error::input_error(
        "a temporary file of grams has other bytes than were written: check the disk of the directory in TMPDIR, and \
         run again",
    )
}
