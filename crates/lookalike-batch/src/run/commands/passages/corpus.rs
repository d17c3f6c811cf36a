//! The documents of a passages run: their rows and the index of their grams.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::DocId;
use lookalike::passages::{
    BaseText, PartTerms, PassageIndex, PassageSettings, RareTermIndex, SelectedGram, Winnower,
};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_documents::ExtractedText;
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::ExtractedTextWriter;
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet, ParseScratch};

use crate::index::indexed_passages::{IndexedPassages, IndexedSource};
use crate::memory::passage_plan::PassageShares;
use crate::run::commands::passages::base_texts::RunBase;
use crate::run::commands::passages::cache::DocumentCache;
use crate::run::commands::passages::gram_file::{CollectedGrams, GramCollector, IndexedGrams};
use crate::run::commands::passages::gram_index::{DiskGrams, GramIndex, RareTerms};
use crate::run::commands::passages::settings::{GuessedFiles, PassageRunSettings, UnreadableFile};
use crate::run::commands::summary::SpilledData;
use crate::run::progress::{ProgressListener, RepeatedIds, RunStage};
use crate::run::reading::corpus_reader::RejectRows;
use crate::run::reading::corpus_rows::{CorpusRows, IndexedDocuments};
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::rejected_rows::{RowTally, tell_bad_rows};
use crate::run::reading::repeated_ids::find_repeats;
use crate::run::reading::row_analysis::make_bad_row;
use crate::run::settings::RunSettings;

/// Unreadable files that a summary lists.
const MOST_UNREADABLE: usize = 100;

/// Document files that could not be read, and files of directories whose kind is not read: their numbers, and the first of
/// them.
#[derive(Debug, Default)]
pub(super) struct UnreadableFiles {
    pub(super) files: u64,
    pub(super) skipped: u64,
    pub(super) first: Vec<UnreadableFile>,
}

impl UnreadableFiles {
    fn add_skipped(&mut self, files: &[PathBuf]) {
        self.skipped += files.len() as u64;
        for file in files {
            self.name_file(display_path(file), NOT_READ.to_owned());
        }
    }

    fn name_file(&mut self, file: String, reason: String) {
        if self.first.len() < MOST_UNREADABLE {
            self.first.push(UnreadableFile { file, reason });
        }
    }
}

/// The reason why a file of a directory is skipped.
const NOT_READ: &str = "files of this kind are not read: save it as .docx, .html or .txt";

/// Open inputs of a run, its base texts, and its index on disk if it has one.
pub(super) struct CorpusInputs<'a> {
    pub(super) opened: &'a OpenInputs,
    pub(super) base: Option<RunBase>,
    pub(super) disk: Option<IndexedPassages>,
}

impl PassageCorpus<'_> {
    /// Returns the texts that all documents were given, if there are any.
    pub(super) fn base_text(&self) -> Option<&BaseText> {
        self.base.as_ref().map(|base| &base.text)
    }
}

/// All documents of a run after the first reading.
pub(super) struct PassageCorpus<'a> {
    pub(super) rows: CorpusRows<'a>,
    pub(super) index: GramIndex,
    /// Rare terms of the sources, if reworded passages are found.
    pub(super) rare_terms: Option<RareTerms>,
    /// Shortest length of a passage that the index finds.
    pub(super) indexed: PassageSettings,
    pub(super) max_documents: Option<u32>,
    /// Texts that all documents were given.
    pub(super) base: Option<RunBase>,
    pub(super) tokenizer: Arc<SpanTokenizer>,
    /// Largest number of tokens of a text.
    max_tokens: usize,
    pub(super) repeated_ids: Option<RepeatedIds>,
    /// Document files that have no text or cannot be read.
    pub(super) unreadable: UnreadableFiles,
    pub(super) memory: PassageShares,
    window: f64,
    /// Texts that were read again, by the number of the source.
    texts: Mutex<DocumentCache<Arc<RereadText>>>,
}

impl<'a> PassageCorpus<'a> {
    /// Reads all inputs. `reject` receives all bad rows in order.
    pub(super) fn read_all(
        inputs: CorpusInputs<'a>,
        settings: &PassageRunSettings,
        reading: &RunSettings,
        memory: PassageShares,
        reject: &RejectRows<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let CorpusInputs { opened, base, disk } = inputs;
        let tokenizer = Arc::new(SpanTokenizer::new(&settings.reading.recipe));
        let reader = PassageReader {
            settings,
            reading,
            base: base.as_ref().map(|base| &base.text),
            tokenizer: Arc::clone(&tokenizer),
            reject,
            memory,
            unreadable: Mutex::default(),
        };
        let mut keys = CorpusKeys::new(memory, settings);
        let mut against = ReadDocuments::default();
        let mut repeated_ids = None;
        if let Some(inputs) = &opened.against {
            reader.read_inputs(
                inputs,
                &opened.against_fields,
                &mut against,
                Some(&mut keys),
                progress,
            )?;
            repeated_ids = find_repeats(inputs, &against)?;
        }
        let mut documents = ReadDocuments::default();
        let is_indexed = opened.against.is_none() && disk.is_none();
        let own = is_indexed.then_some(&mut keys);
        reader.read_inputs(
            &opened.documents,
            &opened.document_fields,
            &mut documents,
            own,
            progress,
        )?;
        let repeated = find_repeats(&opened.documents, &documents)?;
        documents.check_fields(&opened.documents, &opened.document_fields, reading)?;
        opened.documents.refuse_absent_fields()?;
        progress.begin_stage(RunStage::Index, None);
        let sources = match (&disk, &opened.against) {
            (Some(disk), _) => disk.count_live_sources(),
            (None, Some(_)) => against.len(),
            (None, None) => documents.len(),
        };
        let max_documents = settings.max_documents.max_documents(sources);
        let (grams, rare_terms) = keys.build_indexes(memory, max_documents, is_indexed)?;
        let unreadable = reader.unreadable.into_inner();
        let mut unreadable = unreadable.unwrap_or_else(PoisonError::into_inner);
        for inputs in opened.against.iter().chain([&opened.documents]) {
            unreadable.add_skipped(inputs.skipped_files());
        }
        Ok(Self {
            max_tokens: settings.max_tokens(),
            rows: CorpusRows {
                opened,
                indexed: IndexedDocuments::default(),
                against,
                documents,
            },
            indexed: disk
                .as_ref()
                .map_or(settings.passages, IndexedPassages::passage_settings),
            index: match disk {
                Some(disk) => GramIndex::Disk(Box::new(DiskGrams::new(disk, max_documents))),
                None => grams,
            },
            rare_terms,
            max_documents,
            base,
            tokenizer,
            repeated_ids: RepeatedIds::add_counts(repeated, repeated_ids),
            unreadable,
            window: (settings.reading.window.as_ref())
                .map_or(f64::INFINITY, |window| window.seconds),
            texts: Mutex::new(DocumentCache::new(memory.text_bytes())),
            memory,
        })
    }

    /// Returns the bytes of memory of all that sources are found by.
    pub(super) fn index_bytes(&self) -> usize {
        let terms = self.rare_terms.as_ref();
        self.index.memory_bytes() + terms.map_or(0, RareTerms::memory_bytes)
    }

    /// Returns how much of the run went to temporary files.
    pub(super) fn spilled_data(&self) -> Option<SpilledData> {
        let grams = match &self.index {
            GramIndex::File(file) => Some(file.spilled),
            GramIndex::Memory(_) | GramIndex::Disk(_) => None,
        };
        let terms = match &self.rare_terms {
            Some(RareTerms::File { terms, .. }) => Some(terms.spilled),
            Some(RareTerms::Memory(_)) | None => None,
        };
        let all = grams.into_iter().chain(terms);
        let [bytes, runs] = all.reduce(|a, b| [a[0] + b[0], a[1] + b[1]])?;
        Some(SpilledData { bytes, runs })
    }

    /// Returns the documents that are searched for passages.
    pub(super) fn searched_documents(&self) -> std::ops::Range<u32> {
        self.rows.known_count() as u32..self.rows.len() as u32
    }

    /// Returns the number of possible sources besides the documents that are searched.
    pub(super) fn count_others(&self) -> usize {
        match &self.index {
            GramIndex::Memory(_) | GramIndex::File(_) => self.rows.known_count(),
            GramIndex::Disk(disk) => disk.passages.count_live_sources(),
        }
    }

    /// Returns the documents that were read in an encoding that was guessed.
    pub(super) fn list_guessed(&self) -> Vec<GuessedFiles> {
        let opened = &self.rows.opened;
        let inputs = opened.against.iter().chain([&opened.documents]);
        let mut all: Vec<GuessedFiles> = Vec::new();
        for guessed in inputs.flat_map(InputSet::guessed_encodings) {
            match all
                .iter_mut()
                .find(|known| known.encoding == guessed.encoding)
            {
                Some(known) => {
                    known.files += guessed.files;
                    known.names.extend(guessed.first);
                }
                None => all.push(GuessedFiles {
                    encoding: guessed.encoding,
                    files: guessed.files,
                    first: guessed.first.first().cloned().unwrap_or_default(),
                    names: guessed.first,
                }),
            }
        }
        all
    }

    /// Returns `true` if it is known which of two documents is the source: times say so, or sources were given.
    pub(super) fn is_directed(&self, settings: &PassageRunSettings) -> bool {
        let has_sources = self.rows.opened.against.is_some() || settings.index.is_some();
        has_sources || settings.reading.window.is_some()
    }

    /// Returns the source with this number in the index.
    pub(super) fn indexed_source(&self, number: u32) -> DocId {
        // The index has either the documents of `--against`, which come first, or all documents, or the rows of an
        // index on disk, which are no documents of this run.
        DocId(number)
    }

    /// Returns `true` if a document may be the source of another one.
    pub(super) fn may_copy(&self, document: DocId, source: DocId) -> bool {
        if matches!(self.index, GramIndex::Disk(_)) {
            return true;
        }
        let partition = |document| self.value_of(document, |documents| &documents.partitions);
        let time = |document| self.value_of(document, |documents| &documents.times);
        let precedes = match (time(source), time(document)) {
            _ if self.rows.opened.against.is_some() => source.index() < self.rows.known_count(),
            (Some(of_source), Some(of_document)) => of_source
                .total_cmp(&of_document)
                .then(source.cmp(&document))
                .is_lt(),
            _ => source < document,
        };
        let is_near = match (time(source), time(document)) {
            (Some(a), Some(b)) => (a - b).abs() <= self.window,
            _ => true,
        };
        precedes && is_near && partition(source) == partition(document)
    }

    fn value_of<T: Copy>(
        &self,
        document: DocId,
        values: impl Fn(&ReadDocuments) -> &Vec<T>,
    ) -> Option<T> {
        let (_, documents, index) = self.rows.locate_document(document);
        values(documents).get(index).copied()
    }

    /// Returns the text of a document, which is read again, and replaces `tokens` by its tokens.
    pub(super) fn reread_document(
        &self,
        document: DocId,
        parse: &mut ParseScratch,
        tokens: &mut SpannedTokens,
    ) -> Result<Arc<RereadText>> {
        let mut read = || -> Result<RereadText> {
            Ok(RereadText {
                extracted: self.rows.reread_document(document, parse)?,
                id: self.rows.document_id(document)?.into(),
            })
        };
        let reread = match &self.index {
            GramIndex::Memory(_) | GramIndex::File(_) => self.find_or_read(document, read)?,
            // The documents are no sources, and each is read once.
            GramIndex::Disk(_) => Arc::new(read()?),
        };
        self.tokenize(reread.text(), tokens)?;
        Ok(reread)
    }

    /// Replaces `tokens` by those of a text, as far as the limits of the run leave memory for them.
    fn tokenize(&self, text: &str, tokens: &mut SpannedTokens) -> Result<()> {
        let read = self
            .tokenizer
            .tokenize_text_within(text, self.max_tokens, tokens);
        Ok(read?)
    }

    /// Returns the text of a source, which is read again, and replaces `tokens` by its tokens.
    pub(super) fn reread_source(
        &self,
        source: DocId,
        parse: &mut ParseScratch,
        tokens: &mut SpannedTokens,
    ) -> Result<Arc<RereadText>> {
        let GramIndex::Disk(disk) = &self.index else {
            return self.reread_document(source, parse, tokens);
        };
        let reread = self.find_or_read(source, || {
            let IndexedSource { id, text } = disk.passages.read_source(source.0)?;
            Ok(RereadText {
                id: id.into(),
                extracted: ExtractedText::from_plain_text(text),
            })
        })?;
        self.tokenize(reread.text(), tokens)?;
        Ok(reread)
    }

    /// Returns a text of the cache, or reads it and adds it.
    fn find_or_read(
        &self,
        source: DocId,
        read: impl FnOnce() -> Result<RereadText>,
    ) -> Result<Arc<RereadText>> {
        let texts = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts().find_value(source);
        if let Some(known) = known {
            return Ok(known);
        }
        let reread = Arc::new(read()?);
        let bytes = reread.extracted.memory_bytes() + reread.id.len();
        texts().add_value(source, Arc::clone(&reread), bytes);
        Ok(reread)
    }

    /// Writes the texts of documents without positions in their files below a directory, each under the document's
    /// id.
    pub(super) fn write_extracted_texts(&self, directory: &Path) -> Result<ExtractedTextWriter> {
        let mut writer = ExtractedTextWriter::new(directory);
        let mut parse = ParseScratch::default();
        for document in (0..self.rows.len() as u32).map(DocId) {
            let (inputs, documents, index) = self.rows.locate_document(document);
            if inputs.input_of(documents.place_of(index)).is_extracted() {
                let extracted = self.rows.reread_document(document, &mut parse)?;
                writer.write_text(&self.rows.document_id(document)?, &extracted.text)?;
            }
        }
        Ok(writer)
    }
}

/// A document that was read again. Its id is kept, because a long id is read from the row each time.
#[derive(Debug)]
pub(super) struct RereadText {
    pub(super) id: Arc<str>,
    pub(super) extracted: ExtractedText,
}

impl RereadText {
    /// Returns the text that is compared.
    pub(super) fn text(&self) -> &str {
        &self.extracted.text
    }
}

struct PassageReader<'a> {
    settings: &'a PassageRunSettings,
    reading: &'a RunSettings,
    base: Option<&'a BaseText>,
    tokenizer: Arc<SpanTokenizer>,
    reject: &'a RejectRows<'a>,
    memory: PassageShares,
    /// Bad document files so far.
    unreadable: Mutex<UnreadableFiles>,
}

/// The selected grams and the terms of all possible sources.
struct CorpusKeys {
    grams: GramCollector,
    /// Terms with the parts of documents that have them; `None` unless reworded passages are found.
    terms: Option<GramCollector>,
    /// Number of parts up to the end of each document.
    ends: Vec<u32>,
}

/// The selected grams and the terms of the possible sources of a block.
#[derive(Default)]
struct SourceKeys {
    /// Every selected gram with the number of its document.
    grams: Vec<(u64, u32)>,
    /// Empty unless reworded passages are found.
    terms: PartTerms,
}

/// The documents of a block of rows, and their keys, with numbers in the block.
#[derive(Default)]
struct BlockSources {
    documents: ReadDocuments,
    keys: SourceKeys,
}

#[derive(Default)]
struct BlockWorker {
    tokens: SpannedTokens,
    winnower: Winnower,
    selected: Vec<SelectedGram>,
    /// `true` if a row without an id has its number as the id, because files have their names as ids.
    numbers_rows: bool,
}

impl PassageReader<'_> {
    /// Appends the documents of inputs, and their keys to `keys` if they are wanted.
    fn read_inputs(
        &self,
        inputs: &InputSet,
        extra: &ExtraFields,
        documents: &mut ReadDocuments,
        mut keys: Option<&mut CorpusKeys>,
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        let mut tally = RowTally::default();
        let is_indexed = keys.is_some();
        parse_blocks_in_order(
            inputs,
            progress,
            |block, parse, worker, _| {
                self.read_block(inputs, block, parse, extra, worker, is_indexed)
            },
            |mut sources: BlockSources| {
                tally.add_rows(sources.documents.len() as u64, &sources.documents.bad);
                self.count_unreadable_files(inputs, &sources.documents.bad);
                tell_bad_rows(
                    &sources.documents.bad,
                    progress,
                    self.reading.strict,
                    |rows| (self.reject)(inputs, rows),
                )?;
                if let Some(keys) = &mut keys {
                    keys.append_keys(&mut sources.keys, documents.len())?;
                }
                documents.append_documents(&mut sources.documents)?;
                let count = documents.len();
                self.memory.check_rows(count, documents.memory_bytes())?;
                check_count(count)
            },
        )?;
        tally.refuse_useless(inputs)
    }

    fn count_unreadable_files(&self, inputs: &InputSet, bad: &[BadRow]) {
        let of_files = bad
            .iter()
            .filter(|row| inputs.input_of(row.place).is_document_file());
        let mut unreadable = self
            .unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for row in of_files {
            unreadable.files += 1;
            unreadable.name_file(row.file.clone(), row.reason.clone());
        }
    }

    fn read_block(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        parse: &mut ParseScratch,
        extra: &ExtraFields,
        worker: &mut BlockWorker,
        is_indexed: bool,
    ) -> Result<BlockSources> {
        worker.winnower = Winnower::new(self.settings.passages);
        worker.numbers_rows = inputs.mixes_files_and_rows();
        let mut sources = BlockSources::default();
        inputs.parse_block(block, parse, &mut |row| {
            match row {
                Ok(row) => self.read_row(inputs, &row, extra, worker, is_indexed, &mut sources)?,
                Err(bad) => sources.push_bad(bad),
            }
            Ok(())
        })?;
        Ok(sources)
    }

    fn read_row(
        &self,
        inputs: &InputSet,
        row: &InputRow<'_>,
        extra: &ExtraFields,
        worker: &mut BlockWorker,
        is_indexed: bool,
        sources: &mut BlockSources,
    ) -> Result<()> {
        let number = sources.documents.len() as u32;
        let row_number = (worker.numbers_rows && row.id.is_none()).then(|| row.number.to_string());
        let row = &InputRow {
            id: row.id.or(row_number.as_deref()),
            ..*row
        };
        if let Err(reason) = sources.documents.push_row(row, extra) {
            sources.push_bad(make_bad_row(inputs, row, reason));
            return Ok(());
        }
        sources.documents.bytes += u64::from(row.place.byte_length());
        if is_indexed {
            let most = self.settings.max_tokens();
            (self.tokenizer).tokenize_text_within(row.text, most, &mut worker.tokens)?;
            let tokens = worker.tokens.values();
            worker.winnower.select_grams(tokens, &mut worker.selected);
            let grams = worker.selected.iter().map(|gram| gram.hash);
            let grams = grams.filter(|&hash| self.base.is_none_or(|base| !base.has_gram(hash)));
            sources.keys.grams.extend(grams.map(|hash| (hash, number)));
            if self.settings.passages.finds_reworded() {
                let masked = self.base.map(|base| base.mask_source(tokens));
                sources
                    .keys
                    .terms
                    .push_text(masked.as_deref().unwrap_or(tokens));
            }
        }
        Ok(())
    }
}

impl BlockSources {
    fn push_bad(&mut self, bad: BadRow) {
        self.documents.bytes += u64::from(bad.place.byte_length());
        self.documents.bad.push(bad);
    }
}

impl CorpusKeys {
    fn new(memory: PassageShares, settings: &PassageRunSettings) -> Self {
        let finds_reworded = settings.passages.finds_reworded();
        let kinds = 1 + u64::from(finds_reworded);
        let collector = || GramCollector::new(memory, kinds, settings.reading.read.scratch.clone());
        Self {
            grams: collector(),
            terms: finds_reworded.then(collector),
            ends: Vec::new(),
        }
    }

    /// Appends the keys of a block whose first document has the number `base`.
    fn append_keys(&mut self, block: &mut SourceKeys, base: usize) -> Result<()> {
        let most = PassageIndex::MAX_POSTINGS;
        if !self.grams.is_spilled() && self.grams.len() + block.grams.len() > most {
            return Err(Error::limit_error(format!(
                "an index of passages in memory holds at most {most} grams, which is some 110 GB of text: set a limit \
                 of memory, or split the inputs"
            )));
        }
        let numbered = block.grams.drain(..);
        self.grams
            .extend(numbered.map(|(hash, number)| (hash, number + base as u32)))?;
        let Some(terms) = &mut self.terms else {
            return Ok(());
        };
        if !terms.is_spilled() && terms.len() + block.terms.term_count() > most {
            return Err(Error::limit_error(format!(
                "reworded passages are found in at most {most} different words of all parts of the sources in memory: \
                 set a limit of memory, or split the inputs"
            )));
        }
        let first_part = self.ends.last().copied().unwrap_or(0);
        let (of_block, ends) = block.terms.take_terms(first_part);
        self.ends.extend(ends);
        terms.extend(of_block)
    }

    /// Builds the indexes, in memory or in temporary files.
    fn build_indexes(
        self,
        memory: PassageShares,
        max_documents: Option<u32>,
        are_searched: bool,
    ) -> Result<(GramIndex, Option<RareTerms>)> {
        let kinds = 1 + u64::from(self.terms.is_some());
        let indexed = IndexedGrams {
            max_documents,
            are_searched,
            kinds,
        };
        let grams = match self.grams.finish(memory, indexed)? {
            CollectedGrams::Memory(grams) => {
                GramIndex::Memory(PassageIndex::from_pairs(grams, max_documents))
            }
            CollectedGrams::File(file) => GramIndex::File(file),
        };
        let Some(terms) = self.terms else {
            return Ok((grams, None));
        };
        let ends = self.ends;
        let indexed = IndexedGrams {
            max_documents: Some(RareTermIndex::max_parts(&ends)),
            ..indexed
        };
        let terms = match terms.finish(memory, indexed)? {
            CollectedGrams::Memory(terms) => {
                RareTerms::Memory(RareTermIndex::from_pairs(terms, ends))
            }
            CollectedGrams::File(terms) => RareTerms::File { terms, ends },
        };
        Ok((grams, Some(terms)))
    }
}

fn check_count(documents: usize) -> Result<()> {
    if documents < DocId::LIMIT {
        return Ok(());
    }
    let limit = DocId::LIMIT;
    Err(Error::limit_error(format!(
        "a run holds at most {limit} documents"
    )))
}
