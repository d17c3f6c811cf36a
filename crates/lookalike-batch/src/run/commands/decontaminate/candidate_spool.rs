//! The candidates of all documents, until the whole corpus is read: in memory, and in a temporary file from a number of
//! bytes on.

use std::path::PathBuf;

use lookalike::byte_reader::{ByteReader, put_string};
use lookalike::contamination::{ContaminationIndex, ItemCandidate};
use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

/// A document with candidates.
#[derive(Debug, PartialEq)]
pub(crate) struct CandidateDocument {
    /// Its number among the usable rows, from 0; within its block until the block is accepted.
    pub(crate) index: u64,
    pub(crate) id: String,
    /// Length of its text in bytes.
    pub(crate) text_bytes: u64,
    pub(crate) candidates: Vec<LocatedCandidate>,
}

/// A candidate, and its places in the text.
#[derive(Debug, PartialEq)]
pub(crate) struct LocatedCandidate {
    pub(super) candidate: ItemCandidate,
    /// Characters of the part that was found.
    pub(super) characters: std::ops::Range<u64>,
    /// Bytes that are cut with the item, and with its sentences.
    pub(super) passage: std::ops::Range<u64>,
    pub(super) sentences: std::ops::Range<u64>,
}

impl LocatedCandidate {
    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<ItemCandidate>() + self.candidate.memory_bytes()
    }
}

impl CandidateDocument {
    /// Appends the document as bytes, with their number in front.
    pub(crate) fn append_bytes(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend([0; 4]);
        bytes.extend(self.index.to_le_bytes());
        bytes.extend(self.text_bytes.to_le_bytes());
        put_string(&self.id, bytes);
        bytes.extend((self.candidates.len() as u32).to_le_bytes());
        for located in &self.candidates {
            located.candidate.append_bytes(bytes);
            for range in [&located.characters, &located.passage, &located.sentences] {
                bytes.extend(range.start.to_le_bytes());
                bytes.extend(range.end.to_le_bytes());
            }
        }
        let length = (bytes.len() - start - 4) as u32;
        bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8], index: &ContaminationIndex) -> Option<Self> {
        let mut reader = ByteReader::new(bytes);
        let number = reader.read_u64()?;
        let text_bytes = reader.read_u64()?;
        let id = reader.read_string()?.to_owned();
        let count = reader.read_u32()?;
        let candidates = (0..count).map(|_| {
            let candidate = ItemCandidate::from_bytes(&mut reader, index)?;
            let mut range = || Some(reader.read_u64()?..reader.read_u64()?);
            Some(LocatedCandidate {
                candidate,
                characters: range()?,
                passage: range()?,
                sentences: range()?,
            })
        });
        let candidates = candidates.collect::<Option<Vec<_>>>()?;
        reader.is_at_end().then_some(Self {
            index: number,
            id,
            text_bytes,
            candidates,
        })
    }
}

/// Candidates in the order in which they are added.
pub(super) struct CandidateSpool {
    pending: Vec<u8>,
    /// The file, and the length of each chunk in it.
    file: Option<SpoolFile>,
    chunks: Vec<usize>,
    /// Bytes that stay in memory, and that are read again at a time.
    chunk_bytes: usize,
    directory: Option<PathBuf>,
}

impl CandidateSpool {
    /// Creates an empty spool that keeps up to `chunk_bytes` in memory, unless a block has more. Its file, if it needs one,
    /// is made in `directory`.
    pub(super) fn new(chunk_bytes: usize, directory: Option<PathBuf>) -> Self {
        Self {
            pending: Vec::new(),
            file: None,
            chunks: Vec::new(),
            chunk_bytes,
            directory,
        }
    }

    /// Adds the documents of a block, appended to bytes. `rows_before` is the number of usable rows before the block.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub(super) fn push_documents(&mut self, documents: &[u8], rows_before: u64) -> Result<()> {
        if self.pending.len() + documents.len() > self.chunk_bytes && !self.pending.is_empty() {
            let file = match &mut self.file {
                Some(file) => file,
                missing => missing.insert(SpoolFile::create_file(self.directory.as_deref())?),
            };
            file.append_bytes(&self.pending)?;
            self.chunks.push(self.pending.len());
            self.pending.clear();
        }
        let from = self.pending.len();
        self.pending.extend_from_slice(documents);
        add_to_indices(&mut self.pending[from..], rows_before);
        Ok(())
    }

    /// Calls `visit` with every document, in order.
    ///
    /// # Errors
    /// If the temporary file cannot be read, and the errors of `visit`.
    pub(super) fn visit_documents(
        &self,
        index: &ContaminationIndex,
        mut visit: impl FnMut(CandidateDocument) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        let mut chunk = Vec::new();
        for &length in &self.chunks {
            chunk.resize(length, 0);
            if let Some(file) = &self.file {
                file.read_exact_at(&mut chunk, start).map_err(|cause| {
                    Error::read_error("read", "the temporary file of candidates", cause)
                })?;
            }
            start += length as u64;
            visit_encoded(&chunk, index, &mut visit)?;
        }
        visit_encoded(&self.pending, index, &mut visit)
    }
}

/// Adds a number to the index of each document. Behind its length, the index comes first.
fn add_to_indices(mut documents: &mut [u8], rows_before: u64) {
    while let Some((length, rest)) = documents.split_first_chunk_mut::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if let Some(index) = rest.first_chunk_mut::<8>() {
            *index = (u64::from_le_bytes(*index) + rows_before).to_le_bytes();
        }
        documents = rest.get_mut(length..).unwrap_or_default();
    }
}

/// Calls `visit` with every document in bytes to which documents were appended, in order.
///
/// # Errors
/// If the bytes are damaged, and the errors of `visit`.
pub(crate) fn visit_encoded(
    encoded: &[u8],
    index: &ContaminationIndex,
    visit: &mut impl FnMut(CandidateDocument) -> Result<()>,
) -> Result<()> {
    let mut reader = ByteReader::new(encoded);
    while !reader.is_at_end() {
        let length = reader.read_u32().map(|length| length as usize);
        let document = length
            .and_then(|length| reader.read_bytes(length))
            .and_then(|bytes| CandidateDocument::from_bytes(bytes, index));
        let document = document.ok_or_else(|| {
            Error::input_error("the candidates of documents are damaged: run again")
        })?;
        visit(document)?;
    }
    Ok(())
}
