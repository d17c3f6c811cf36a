//! The grams of possible sources: of documents that were read, in memory or in a temporary file, or of an index on
//! disk.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lookalike::passages::{
    BoilerplateGram, PassageCandidate, PassageIndex, RareTermIndex, SelectedGram,
    find_reworded_candidates,
};
use lookalike_io::error::Result;

use crate::index::indexed_passages::IndexedPassages;
use crate::run::commands::passages::gram_file::GramFile;

/// Finds the sources that may share a passage with a text. Sources are numbered from 0.
pub(super) enum GramIndex {
    /// Grams of documents that were read. Its limit was set when it was built.
    Memory(PassageIndex),
    /// Grams of documents that were read, in a temporary file because they do not fit into the memory.
    File(GramFile),
    /// Grams of an index on disk.
    Disk(Box<DiskGrams>),
}

/// An index on disk, and the boilerplate that searches have found in it so far.
pub(super) struct DiskGrams {
    pub(super) passages: IndexedPassages,
    max_documents: Option<u32>,
    boilerplate: Mutex<BTreeMap<u64, BoilerplateGram>>,
}

impl DiskGrams {
    pub(super) fn new(passages: IndexedPassages, max_documents: Option<u32>) -> Self {
        Self {
            passages,
            max_documents,
            boilerplate: Mutex::default(),
        }
    }

    /// Appends the sources that have a gram. Returns `false` if there are too many, so that it is boilerplate.
    fn find_gram(&self, hash: u64, found: &mut Vec<u32>) -> Result<bool> {
        let mut sources = Vec::new();
        self.passages.find_sources_with_gram(hash, &mut sources)?;
        let documents = sources.len() as u32;
        if self.max_documents.is_some_and(|most| documents > most) {
            let gram = BoilerplateGram {
                hash,
                documents,
                first: sources[0],
            };
            let mut boilerplate = self
                .boilerplate
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            boilerplate.insert(hash, gram);
            return Ok(false);
        }
        found.append(&mut sources);
        Ok(true)
    }
}

impl GramIndex {
    /// Replaces `candidates` by the sources that share selected grams with a text, ascending, and returns the
    /// number of selected grams that are boilerplate.
    pub(super) fn find_candidates(
        &self,
        selected: &[SelectedGram],
        candidates: &mut Vec<PassageCandidate>,
    ) -> Result<usize> {
        let (mut found, mut boilerplate) = (Vec::new(), 0);
        match self {
            Self::Memory(index) => return Ok(index.find_candidates(selected, candidates)),
            Self::File(file) => {
                for gram in selected {
                    let before = found.len();
                    file.find_gram(gram.hash, &mut found)?;
                    let is_boilerplate = before == found.len() && file.is_boilerplate(gram.hash);
                    boilerplate += usize::from(is_boilerplate);
                }
            }
            Self::Disk(disk) => {
                for gram in selected {
                    boilerplate += usize::from(!disk.find_gram(gram.hash, &mut found)?);
                }
            }
        }
        *candidates = PassageCandidate::count_documents(found);
        Ok(boilerplate)
    }

    /// Returns the boilerplate: all of it in memory, or the part that searches have found in an index on disk.
    pub(super) fn boilerplate_grams(&self) -> Vec<BoilerplateGram> {
        match self {
            Self::Memory(index) => index.boilerplate_grams().to_vec(),
            Self::File(file) => file.boilerplate.clone(),
            Self::Disk(disk) => {
                let boilerplate = disk
                    .boilerplate
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                boilerplate.values().copied().collect()
            }
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(index) => index.memory_bytes(),
            Self::File(file) => file.memory_bytes(),
            Self::Disk(_) => 0,
        }
    }
}

/// The rare terms of the parts of possible sources, by which reworded passages are found.
pub(super) enum RareTerms {
    Memory(RareTermIndex),
    File {
        terms: GramFile,
        /// Number of parts up to the end of each document.
        ends: Vec<u32>,
    },
}

impl RareTerms {
    /// Returns the documents that may have a reworded passage of a text, ascending.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(super) fn find_candidates(&self, tokens: &[u64]) -> Result<Vec<u32>> {
        match self {
            Self::Memory(index) => Ok(index.find_candidates(tokens)),
            Self::File { terms, ends } => {
                find_reworded_candidates(ends, tokens, |term, parts| terms.find_gram(term, parts))
            }
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(index) => index.memory_bytes(),
            Self::File { terms, ends } => terms.memory_bytes() + 4 * ends.len(),
        }
    }
}
