//! The documents of a search for repeated text: rows of a library, which come first, and the documents of the run.
//!
//! Rows of a library that share no gram with a document of the run share no passage with it. So only the others are
//! read, each once, whatever the number of documents that share grams with them.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::DocId;
use lookalike::passages::{SelectedGram, Winnower};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ParseScratch;

use super::tokenized_text::TokenizedText;
use crate::index::indexed_passages::{IndexedPassages, IndexedTextScratch};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::reading::corpus_rows::CorpusRows;
use crate::run::settings::RunSettings;

/// The documents of a search. Rows of the library have the first numbers, in their order; the number of each other
/// document is by the number of these rows larger than its [`DocId`].
pub(super) struct SearchedTexts<'a> {
    rows: &'a CorpusRows<'a>,
    partitions: &'a [u64],
    library: Option<SearchedLibrary<'a>>,
    tokenizer: SpanTokenizer,
}

/// The rows of a library that may share passages with documents of the run.
struct SearchedLibrary<'a> {
    library: &'a IndexedPassages,
    /// Their numbers in the library, ascending.
    sources: Vec<u32>,
    /// Their row numbers in tables, from 1.
    row_numbers: Vec<u32>,
}

/// Where a document of the search is.
enum SearchedPlace<'s> {
    Run(DocId),
    /// The rows of the library, and the index of the document among them.
    Library(&'s SearchedLibrary<'s>, usize),
}

/// Buffers of a thread that reads texts.
#[derive(Default)]
pub(super) struct TextScratch {
    parse: ParseScratch,
    library: IndexedTextScratch,
}

impl<'a> SearchedTexts<'a> {
    /// Creates the documents of a run, without a library.
    pub(super) fn new(corpus: &'a RunCorpus<'a>, run: &RunSettings) -> Self {
        Self {
            rows: corpus,
            partitions: corpus.partitions(),
            library: None,
            tokenizer: SpanTokenizer::new(&run.recipe),
        }
    }

    /// Puts rows of a library before the documents of the run.
    ///
    /// # Errors
    /// If there are too many documents then.
    pub(super) fn put_library_first(
        &mut self,
        library: &'a IndexedPassages,
        sources: Vec<u32>,
    ) -> Result<()> {
        let documents = sources.len() + self.rows.len();
        if documents >= u32::MAX as usize {
            return Err(Error::limit_error(format!(
                "{documents} documents, with the rows of the library that share text with them, are more than {} in \
                 which passages are found: divide the inputs",
                u32::MAX - 1
            )));
        }
        self.library = Some(SearchedLibrary {
            library,
            row_numbers: library.number_rows(&sources),
            sources,
        });
        Ok(())
    }

    /// Returns the documents of the run.
    pub(super) fn corpus_rows(&self) -> &'a CorpusRows<'a> {
        self.rows
    }

    /// Returns the number of rows of the library.
    pub(super) fn library_rows(&self) -> u32 {
        let library = self.library.as_ref();
        library.map_or(0, |library| library.sources.len() as u32)
    }

    /// Returns the number of a document of the run.
    pub(super) fn number_of(&self, document: DocId) -> u32 {
        self.library_rows() + document.0
    }

    /// Returns the number from which on documents are new: those before are known and never written.
    pub(super) fn first_new(&self) -> u32 {
        self.library_rows() + self.rows.known_count() as u32
    }

    fn locate(&self, number: u32) -> SearchedPlace<'_> {
        match &self.library {
            Some(library) if (number as usize) < library.sources.len() => {
                SearchedPlace::Library(library, number as usize)
            }
            _ => SearchedPlace::Run(DocId(number - self.library_rows())),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If it cannot be read, or if a row has features instead of a text.
    pub(super) fn read_text(&self, number: u32, scratch: &mut TextScratch) -> Result<String> {
        let document = match self.locate(number) {
            SearchedPlace::Run(document) => document,
            SearchedPlace::Library(rows, at) => {
                let library = &mut scratch.library;
                let text = rows.library.read_text(rows.sources[at], library)?;
                return Ok(text.to_owned());
            }
        };
        let text = self.rows.reread_text(document, &mut scratch.parse)?;
        text.ok_or_else(|| {
            let (source, row) = self.rows.source_and_row(document);
            Error::usage_error(format!(
                "row {row}, in {source}: passages are found in texts, and this row has features instead"
            ))
        })
    }

    /// Reads a text and its tokens.
    ///
    /// # Errors
    /// As [`read_text`](Self::read_text).
    pub(super) fn read_tokens(
        &self,
        number: u32,
        scratch: &mut TextScratch,
    ) -> Result<TokenizedText> {
        TokenizedText::new(self.read_text(number, scratch)?, &self.tokenizer)
    }

    /// Replaces `tokens` by those of a text, by which texts are compared.
    pub(super) fn tokenize_text(&self, text: &str, tokens: &mut SpannedTokens) -> Result<()> {
        Ok(self.tokenizer.tokenize_text(text, tokens)?)
    }

    /// Returns the value of `--within` of a document, as a hash. A run beside a library has no such values.
    pub(super) fn partition_of(&self, number: u32) -> u64 {
        match self.locate(number) {
            SearchedPlace::Run(document) => {
                let partition = self.partitions.get(document.index());
                partition.copied().unwrap_or(0)
            }
            SearchedPlace::Library(..) => 0,
        }
    }

    /// Returns the id of a document.
    pub(super) fn id_of(&self, number: u32) -> Result<String> {
        match self.locate(number) {
            SearchedPlace::Run(document) => self.rows.document_id(document).map(Cow::into_owned),
            SearchedPlace::Library(rows, at) => rows.library.read_id(rows.sources[at]),
        }
    }

    /// Returns the name of a document's input or library and the row number within it, from 1.
    pub(super) fn source_and_row(&self, number: u32) -> (&str, u64) {
        match self.locate(number) {
            SearchedPlace::Run(document) => self.rows.source_and_row(document),
            SearchedPlace::Library(rows, at) => {
                (rows.library.name(), u64::from(rows.row_numbers[at]))
            }
        }
    }
}

/// Finds the rows of a library that may share passages with documents.
pub(super) struct LibrarySearch<'a> {
    library: &'a IndexedPassages,
    /// One bit for each row of the library.
    sources: Vec<AtomicU64>,
    /// Grams that were looked up lately, at the slots of their hashes.
    looked_up: Vec<AtomicU64>,
}

/// Buffers of a thread that looks up grams.
#[derive(Default)]
pub(super) struct GramScratch {
    winnower: Option<Winnower>,
    grams: Vec<SelectedGram>,
    found: Vec<u32>,
}

impl<'a> LibrarySearch<'a> {
    /// Number of grams that are known as looked up, so that a gram of many documents and many rows is seldom looked up
    /// again. They take 2 MiB.
    const RECENT_GRAMS: usize = 1 << 18;

    pub(super) fn new(library: &'a IndexedPassages) -> Self {
        let atomics = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            library,
            sources: atomics(library.count_sources().div_ceil(64)),
            looked_up: atomics(Self::RECENT_GRAMS),
        }
    }

    /// Finds the rows that share a gram with a text.
    ///
    /// # Errors
    /// If the library cannot be read.
    pub(super) fn add_sources(&self, tokens: &[u64], scratch: &mut GramScratch) -> Result<()> {
        let winnower = scratch.winnower.get_or_insert_with(|| {
            let settings = self.library.passage_settings();
            Winnower::new(settings)
        });
        winnower.select_grams(tokens, &mut scratch.grams);
        for gram in &scratch.grams {
            let slot = &self.looked_up[gram.hash as usize % Self::RECENT_GRAMS];
            // A gram with the hash 0 finds its slot taken, so it is always looked up.
            if gram.hash != 0 && slot.load(Ordering::Relaxed) == gram.hash {
                continue;
            }
            let found = &mut scratch.found;
            self.library.find_sources_with_gram(gram.hash, found)?;
            for &source in &*found {
                let word = &self.sources[source as usize / 64];
                word.fetch_or(1 << (source % 64), Ordering::Relaxed);
            }
            slot.store(gram.hash, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the rows that were found, ascending.
    pub(super) fn into_sources(self) -> Vec<u32> {
        let words = (0u32..).zip(self.sources);
        let sources = words.flat_map(|(at, word)| {
            let word = word.into_inner();
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at * 64 + bit)
        });
        sources.collect()
    }
}
