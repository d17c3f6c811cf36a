//! Text of kept documents that stands in an earlier one: marked, or left out of the output.
//!
//! ```text
//! count runs → collect repeated runs → choose cuts → verify and describe → write
//! ```
//!
//! Each step reads the texts that it needs again. A cut is made only after its tokens were compared with the tokens of
//! the place that stays.
//!
//! Memory: see [`lookalike::passages::RunCounter`]; and 256 MiB of texts, and some hundred bytes for each cut.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::DocId;
use lookalike::passages::{
    CopiedPiece, CutList, PassageSettings, PlaceIndex, RepeatedRuns, RunCounter, RunList, RunPlace,
    TextCut, choose_cuts,
};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{
    AddedValue, LeftOutText, OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter,
};
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;
use serde::Serialize;

use crate::run::commands::passages::cache::DocumentCache;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_rows::CorpusRows;
use crate::run::settings::RunSettings;

/// Documents that a thread reads before it reports progress.
const DOCUMENTS_PER_REPORT: usize = 64;

/// Documents with cuts that are described before their rows are written.
const DESCRIBED_AT_ONCE: usize = 1024;

/// Bytes of sources that are kept for all threads.
const SOURCE_BYTES: usize = 256 << 20;

/// Slots of the counter for each byte of the documents.
const SLOTS_PER_BYTE: f64 = 0.75;

/// The use of text that stands in an earlier document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RepeatedTextAction {
    /// A field `passages` says where it is; the text stays.
    Mark,
    /// It is left out.
    Remove,
}

/// Settings of the search for repeated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedTextSettings {
    /// Its use.
    pub action: RepeatedTextAction,
    /// Its shortest length.
    pub passages: PassageSettings,
}

/// Counts of the repeated text of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RepeatedTextSummary {
    /// Its use.
    pub action: RepeatedTextAction,
    /// Fewest words of a passage; characters of scripts without spaces count half.
    pub min_words: u32,
    /// Kept documents with repeated text.
    pub documents: u64,
    /// Passages: parts of one document that stand in one earlier document.
    pub passages: u64,
    /// Words, and characters of scripts without spaces, in all passages.
    pub tokens: u64,
    /// Documents of which nothing stays.
    pub emptied: u64,
}

/// Checks that the repeated text of a run can be found and written.
///
/// # Errors
/// If the text has several fields, or if documents are compared within a time window.
pub(in crate::run) fn check_settings(settings: &RunSettings) -> Result<()> {
    let text = &settings.read.fields.text;
    if text.len() > 1 {
        return Err(Error::usage_error(format!(
            "passages are cut from one field, and the text has {}: `{}`; name one",
            text.len(),
            text.join("`, `")
        )));
    }
    if settings.window.is_some() {
        return Err(Error::usage_error(
            "passages are searched in all earlier documents: they cannot be combined with a time window",
        ));
    }
    Ok(())
}

/// The text of a run's documents that stands in earlier ones.
pub(in crate::run) struct RepeatedPassages {
    /// By document.
    found: HashMap<u32, FoundCuts>,
    pub(in crate::run) summary: RepeatedTextSummary,
}

/// The cuts of a document as they are written.
enum FoundCuts {
    Marked(String),
    LeftOut(LeftOutText),
}

impl RepeatedPassages {
    /// Finds the text of kept documents that stands in earlier ones, and writes the table of cuts.
    pub(in crate::run) fn find_in_corpus(
        corpus: &RunCorpus<'_>,
        kept: &[DocId],
        settings: &RepeatedTextSettings,
        run: &RunSettings,
        cuts: Option<&OutputTarget>,
        progress: &dyn ProgressListener,
    ) -> Result<(Self, Option<StagedOutput>)> {
        progress.begin_stage(RunStage::Passages, Some(2 * kept.len() as u64));
        let rows: &CorpusRows<'_> = corpus;
        let search = RepeatSearch {
            rows,
            partitions: corpus.partitions(),
            kept,
            settings: settings.passages,
            tokenizer: SpanTokenizer::new(&run.recipe),
            sources: Mutex::new(DocumentCache::new(SOURCE_BYTES)),
            progress,
            done: AtomicU64::new(0),
        };
        let repeated = search.find_runs()?;
        let list = search.choose_all_cuts(&repeated)?;
        drop(repeated);
        let table = cuts.map(|output| CutTable::create_table(output, rows));
        let mut table = table.transpose()?;
        let mut found = Self::new(settings);
        for documents in list.documents().chunks(DESCRIBED_AT_ONCE) {
            for described in search.describe_documents(documents, &list)? {
                if let Some(table) = &mut table {
                    table.write_cuts(&described)?;
                }
                found.add_document(described);
            }
        }
        let table = table.map(CutTable::prepare_table).transpose()?;
        Ok((found, table))
    }

    fn new(settings: &RepeatedTextSettings) -> Self {
        Self {
            found: HashMap::new(),
            summary: RepeatedTextSummary {
                action: settings.action,
                min_words: settings.passages.min_words(),
                documents: 0,
                passages: 0,
                tokens: 0,
                emptied: 0,
            },
        }
    }

    fn add_document(&mut self, described: DescribedCuts) {
        self.summary.documents += 1;
        self.summary.passages += described.pieces.len() as u64;
        self.summary.tokens += described
            .pieces
            .iter()
            .map(|piece| piece.length)
            .sum::<u64>();
        self.summary.emptied += u64::from(described.is_emptied);
        let cuts = match self.summary.action {
            RepeatedTextAction::Mark => FoundCuts::Marked(described.to_json()),
            RepeatedTextAction::Remove => FoundCuts::LeftOut(described.left_out),
        };
        self.found.insert(described.document.0, cuts);
    }

    /// Returns the parts of a document's text that are left out; `None` if there are none.
    pub(in crate::run) fn left_out(&self, document: DocId) -> Option<LeftOutText> {
        match self.found.get(&document.0) {
            Some(FoundCuts::LeftOut(left_out)) => Some(left_out.clone()),
            Some(FoundCuts::Marked(_)) | None => None,
        }
    }

    /// Returns the value of the field `passages`.
    pub(in crate::run) fn marked_value(&self, document: DocId) -> AddedValue {
        AddedValue::Json(match self.found.get(&document.0) {
            Some(FoundCuts::Marked(json)) => json.clone(),
            Some(FoundCuts::LeftOut(_)) | None => "[]".to_owned(),
        })
    }
}

struct RepeatSearch<'a> {
    rows: &'a CorpusRows<'a>,
    partitions: &'a [u64],
    /// Ascending.
    kept: &'a [DocId],
    settings: PassageSettings,
    tokenizer: SpanTokenizer,
    sources: Mutex<DocumentCache<Arc<SourceText>>>,
    progress: &'a dyn ProgressListener,
    done: AtomicU64,
}

/// Buffers of a thread that reads texts.
#[derive(Default)]
struct SearchScratch {
    parse: ParseScratch,
    tokens: SpannedTokens,
    runs: Option<RunList>,
}

/// A document that others copy.
struct SourceText {
    id: String,
    tokens: SpannedTokens,
    places: PlaceIndex,
    text: String,
}

impl RepeatSearch<'_> {
    /// Finds the runs that stand in earlier documents.
    fn find_runs(&self) -> Result<RepeatedRuns> {
        let bytes = self.rows.documents.bytes + self.rows.against.bytes;
        let counter = RunCounter::new((bytes as f64 * SLOTS_PER_BYTE) as u64);
        self.visit_runs(|_, runs| counter.count_runs(runs))?;
        let places = Mutex::new(Vec::new());
        self.visit_runs(|document, runs| {
            let mut own: Vec<RunPlace> = Vec::new();
            counter.collect_repeated(runs, document.0, &mut own);
            let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
            places.append(&mut own);
        })?;
        drop(counter);
        let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(RepeatedRuns::from_places(places))
    }

    /// Calls `visit` with the runs of every kept document, on all threads.
    fn visit_runs(&self, visit: impl Fn(DocId, &RunList) + Sync) -> Result<()> {
        let batches = self.kept.par_chunks(DOCUMENTS_PER_REPORT);
        batches.try_for_each_init(SearchScratch::default, |scratch, batch| {
            for &document in batch {
                self.read_runs(document, scratch)?;
                visit(document, scratch.runs(self.settings));
            }
            let batch = batch.len() as u64;
            let done = self.done.fetch_add(batch, Ordering::Relaxed) + batch;
            self.progress.advance_stage(done);
            Ok(())
        })
    }

    /// Reads a text again, its tokens and its runs.
    fn read_runs(&self, document: DocId, scratch: &mut SearchScratch) -> Result<String> {
        let text = self.read_text(document, &mut scratch.parse)?;
        self.tokenizer.tokenize_text(&text, &mut scratch.tokens)?;
        let partition = self.partition_of(document);
        let mut runs = scratch
            .runs
            .take()
            .unwrap_or_else(|| RunList::new(self.settings));
        runs.fill_runs(scratch.tokens.values(), partition);
        scratch.runs = Some(runs);
        Ok(text)
    }

    fn read_text(&self, document: DocId, parse: &mut ParseScratch) -> Result<String> {
        let text = self.rows.reread_text(document, parse)?;
        text.ok_or_else(|| {
            let (source, row) = self.rows.source_and_row(document);
            Error::usage_error(format!(
                "row {row}, in {source}: passages are found in texts, and this row has features instead"
            ))
        })
    }

    /// Returns the value of `--within` of a document, as a hash.
    fn partition_of(&self, document: DocId) -> u64 {
        self.partitions.get(document.index()).copied().unwrap_or(0)
    }

    /// Chooses the cuts of the documents to write.
    fn choose_all_cuts(&self, repeated: &RepeatedRuns) -> Result<CutList> {
        let known = self.rows.known_count();
        let with_repeats = self
            .kept
            .par_iter()
            .filter(|document| document.index() >= known && repeated.has_document(document.0));
        let chosen = with_repeats.map_init(SearchScratch::default, |scratch, &document| {
            let text = self.read_runs(document, scratch)?;
            let pieces = repeated.find_pieces(document.0, scratch.runs(self.settings));
            Ok((
                document.0,
                choose_cuts(&text, &scratch.tokens, &pieces, self.settings),
            ))
        });
        let mut list = CutList::default();
        for (document, cuts) in chosen.collect::<Result<Vec<_>>>()? {
            list.add_cuts(document, cuts);
        }
        Ok(list)
    }

    /// Describes the cuts of documents. Leaves out documents of which no cut remains.
    fn describe_documents(&self, documents: &[u32], list: &CutList) -> Result<Vec<DescribedCuts>> {
        let described = documents
            .par_iter()
            .map_init(SearchScratch::default, |scratch, &document| {
                self.describe_cuts(DocId(document), list, scratch)
            });
        let mut described = described.collect::<Result<Vec<_>>>()?;
        described.retain(|document| !document.pieces.is_empty());
        Ok(described)
    }

    /// Describes the cuts of a document whose tokens are equal to those that stay.
    fn describe_cuts(
        &self,
        document: DocId,
        list: &CutList,
        scratch: &mut SearchScratch,
    ) -> Result<DescribedCuts> {
        let text = self.read_text(document, &mut scratch.parse)?;
        let mut tokens = std::mem::take(&mut scratch.tokens);
        self.tokenizer.tokenize_text(&text, &mut tokens)?;
        let copied = CopiedText {
            places: PlaceIndex::new(&text),
            text,
            tokens,
        };
        let mut described = DescribedCuts {
            document,
            pieces: Vec::new(),
            left_out: LeftOutText::default(),
            is_emptied: false,
        };
        for cut in list.cuts_of(document.0) {
            let mut pieces = Vec::new();
            for (at, piece) in cut.pieces.iter().enumerate() {
                let source = self.read_source(DocId(piece.document), &mut scratch.parse)?;
                let is_equal = copied.is_equal(piece, &source)
                    && self.partition_of(document) == self.partition_of(DocId(piece.document));
                pieces.extend(is_equal.then(|| copied.describe_piece(cut, at, &source)));
            }
            if pieces.len() == cut.pieces.len() {
                described.pieces.extend(pieces);
                described.left_out.ranges.push(cut.bytes.clone());
            }
        }
        described.left_out.length = copied.text.len();
        let rest = described.left_out.cut_text(&copied.text);
        described.is_emptied = rest.is_ok_and(|rest| rest.trim().is_empty());
        scratch.tokens = copied.tokens;
        Ok(described)
    }

    fn read_source(&self, document: DocId, parse: &mut ParseScratch) -> Result<Arc<SourceText>> {
        let sources = || self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources().find_value(document) {
            return Ok(known);
        }
        let text = self.read_text(document, parse)?;
        let mut tokens = SpannedTokens::default();
        self.tokenizer.tokenize_text(&text, &mut tokens)?;
        let bytes = text.len() + 16 * tokens.len() + 200;
        let source = Arc::new(SourceText {
            id: self.rows.document_id(document)?.into_owned(),
            places: PlaceIndex::new(&text),
            tokens,
            text,
        });
        sources().add_value(document, Arc::clone(&source), bytes);
        Ok(source)
    }
}

impl SearchScratch {
    fn runs(&mut self, settings: PassageSettings) -> &RunList {
        self.runs.get_or_insert_with(|| RunList::new(settings))
    }
}

/// A document whose cuts are described.
struct CopiedText {
    text: String,
    tokens: SpannedTokens,
    places: PlaceIndex,
}

impl CopiedText {
    /// Returns `true` if a piece has the tokens that it should have in its source.
    fn is_equal(&self, piece: &CopiedPiece, source: &SourceText) -> bool {
        let own = self.tokens.values().get(to_usize(&piece.tokens));
        let other = source.tokens.values().get(to_usize(&piece.source_tokens()));
        own.is_some() && own == other
    }

    /// Describes a piece of a cut. Pieces lie side by side: each ends where the next one begins.
    fn describe_piece(&self, cut: &TextCut, at: usize, source: &SourceText) -> DescribedPiece {
        let piece = &cut.pieces[at];
        let first_byte =
            |piece: &CopiedPiece| self.tokens.byte_range(to_usize(&piece.tokens)).start;
        let start = match at {
            0 => cut.bytes.start,
            _ => first_byte(piece),
        };
        let end = cut.pieces.get(at + 1).map_or(cut.bytes.end, first_byte);
        let first = source.tokens.byte_range(to_usize(&piece.source_tokens()));
        let count = |byte| self.places.count_characters(&self.text, byte) as u64;
        let count_first = |byte| source.places.count_characters(&source.text, byte) as u64;
        DescribedPiece {
            place: count(start)..count(end),
            first: DocId(piece.document),
            first_id: source.id.clone(),
            first_place: count_first(first.start)..count_first(first.end),
            length: u64::from(piece.tokens.end - piece.tokens.start),
            text: self.text[start..end].to_owned(),
        }
    }
}

fn to_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The cuts of a document for the outputs.
struct DescribedCuts {
    document: DocId,
    pieces: Vec<DescribedPiece>,
    left_out: LeftOutText,
    is_emptied: bool,
}

struct DescribedPiece {
    /// Characters of the document.
    place: Range<u64>,
    first: DocId,
    first_id: String,
    /// Characters of the first occurrence.
    first_place: Range<u64>,
    /// Words, and characters of scripts without spaces.
    length: u64,
    text: String,
}

impl DescribedCuts {
    /// Returns the value of the field `passages`.
    fn to_json(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| {
            serde_json::json!({
                "start": piece.place.start,
                "end": piece.place.end,
                "first": piece.first_id,
                "first_start": piece.first_place.start,
                "first_end": piece.first_place.end,
            })
        });
        serde_json::Value::Array(pieces.collect()).to_string()
    }
}

/// The table of cuts.
struct CutTable<'a> {
    rows: &'a CorpusRows<'a>,
    table: TableWriter,
}

impl<'a> CutTable<'a> {
    fn create_table(output: &OutputTarget, rows: &'a CorpusRows<'a>) -> Result<Self> {
        let columns = [
            TableColumn::Text("id"),
            TableColumn::Text("first"),
            TableColumn::Integer("start"),
            TableColumn::Integer("end"),
            TableColumn::Integer("first_start"),
            TableColumn::Integer("first_end"),
            TableColumn::Integer("length"),
            TableColumn::Text("source"),
            TableColumn::Integer("row"),
            TableColumn::Text("first_source"),
            TableColumn::Integer("first_row"),
            TableColumn::Text("text"),
        ];
        let table = TableWriter::create_table(output, &columns, Some(&rows.opened.documents))?;
        Ok(Self { rows, table })
    }

    fn write_cuts(&mut self, described: &DescribedCuts) -> Result<()> {
        let id = self.rows.document_id(described.document)?;
        let (source, row) = self.rows.source_and_row(described.document);
        for piece in &described.pieces {
            let (first_source, first_row) = self.rows.source_and_row(piece.first);
            self.table.push_row(&[
                TableCell::Text(&id),
                TableCell::Text(&piece.first_id),
                TableCell::Integer(piece.place.start),
                TableCell::Integer(piece.place.end),
                TableCell::Integer(piece.first_place.start),
                TableCell::Integer(piece.first_place.end),
                TableCell::Integer(piece.length),
                TableCell::Text(source),
                TableCell::Integer(row),
                TableCell::Text(first_source),
                TableCell::Integer(first_row),
                TableCell::Text(&piece.text),
            ])?;
        }
        Ok(())
    }

    fn prepare_table(self) -> Result<StagedOutput> {
        self.table.prepare_table()
    }
}
