//! The passages run: finds which documents share passages, and where.
//!
//! ```text
//! read → tokens → winnowed grams → index          first reading, in blocks
//! document → candidates → read both → passages     second reading, document by document
//! ```
//!
//! The index holds the grams of the documents of `--against`, or of all documents without them. A document is
//! searched for passages of earlier documents, or of the documents of `--against`.
//!
//! A document is a row, or a file of text, Markdown, HTML, `.docx` or PDF. Positions are those of the file.
//!
//! Text of `--base`, which all documents were given, is no part of any passage (see
//! [`BaseText`](lookalike::passages::BaseText)).
//!
//! Memory: the index (see [`PassageIndex`](lookalike::passages::PassageIndex)), for reworded passages the rare terms
//! (see [`RareTermIndex`](lookalike::passages::RareTermIndex)), some 30 bytes and the id of each
//! document, 256 MiB of texts, and 64 MiB of prepared sources per thread. With a limit of memory, an index that does not
//! fit goes to a temporary file (see `gram_file`), with the same result.

mod base_texts;
pub(in crate::run) mod cache;
mod common_text;
mod corpus;
mod evaluation;
mod gram_file;
mod gram_index;
mod memory_measuring;
mod report_data;
mod search;
pub(crate) mod settings;
mod texts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lookalike::DocId;
use lookalike::passages::Winnower;
use lookalike::text::SpannedTokens;
use lookalike_comparison::passage_table::PassageTableRow;
use lookalike_io::error::{Error, Result};
use lookalike_io::ordered_results::OrderedResults;
use lookalike_io::sink::{
    ExtractedTextWriter, TableCell, TableColumn, TableWriter, check_output, commit_all,
};
use lookalike_io::source::ParseScratch;
use lookalike_options::shown_text::shorten_text;

pub use evaluation::{PassageEvaluation, PassageFiles, evaluate_passages};
pub use settings::{
    BaseSummary, BoilerplateExample, BoilerplateSummary, CommonPassage, CopiedPair,
    DescribedPassage, GuessedFiles, OffsetUnit, PassageOrder, PassageOutputs, PassageRunLimits,
    PassageRunSettings, PassagesSummary, SHOWN_PASSAGE_CHARACTERS,
};
pub use texts::{TextDocument, TextPassages, find_passages_of_texts};

use crate::index::indexed_passages::IndexedPassages;
use crate::memory::passage_plan::PassageShares;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::rejected_rows::RejectedRows;
use crate::run::report::{stage_report_file, summary_to_json};
use crate::run::settings::RunInputs;
use base_texts::{RunBase, read_base};
use common_text::SourcePlaces;
use corpus::{CorpusInputs, PassageCorpus};
use report_data::PassageReport;
use search::{DocumentFindings, DocumentSearcher, PassageRow};

/// Consecutive documents that one thread searches.
const BATCH_DOCUMENTS: usize = 16;

/// Batches per thread that may wait for earlier ones.
const WAITING_BATCHES_PER_THREAD: u64 = 64;

/// Most frequent boilerplate that a summary shows.
const BOILERPLATE_EXAMPLES: usize = 3;

/// Finds the passages that documents share with earlier ones, or with those of `--against`, and writes them as a
/// table: by document and position, unless another order is set.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are then
/// unchanged.
pub fn find_passages(
    inputs: &RunInputs,
    settings: &PassageRunSettings,
    outputs: &PassageOutputs,
    progress: &dyn ProgressListener,
) -> Result<PassagesSummary> {
    crate::threads::run_in_pool(settings.reading.threads, || {
        let returned = ReturnedResults::default();
        let finished = run_passages(inputs, settings, outputs, returned, progress)?;
        Ok(finished.summary)
    })
}

/// The results that a run returns in memory, beside its summary.
#[derive(Debug, Clone, Copy, Default)]
struct ReturnedResults {
    /// `true` for the rows of the table.
    rows: bool,
    /// The report as a page, and the language in which it opens.
    page: Option<Option<&'static str>>,
}

/// The result of a run.
struct FinishedRun {
    summary: PassagesSummary,
    rows: Vec<PassageTableRow>,
    page: Option<String>,
    is_complete: bool,
}

fn run_passages(
    paths: &RunInputs,
    settings: &PassageRunSettings,
    outputs: &PassageOutputs,
    returned: ReturnedResults,
    progress: &dyn ProgressListener,
) -> Result<FinishedRun> {
    let started = Instant::now();
    base_texts::check_standard_input(paths, settings)?;
    let disk = settings.index.as_deref().map(IndexedPassages::open_index);
    let mut disk = disk.transpose()?;
    let settings = &settings.with_index(disk.as_ref())?;
    let base = read_base(settings, settings.reading.memory)?;
    let base_bytes = base.as_ref().map_or(0, RunBase::memory_bytes);
    let memory = PassageShares::for_run(paths, settings, base_bytes)?;
    if let Some(disk) = &mut disk {
        disk.keep_within(memory.index_bytes());
    }
    let reading = &settings.reading;
    let opened = OpenInputs::new(paths, reading)?;
    let report = outputs.report.as_ref().map(|report| &report.target);
    let tables = outputs.passages.iter().chain(&outputs.rejected);
    for output in tables.chain(report) {
        check_output(output, &opened.documents)?;
    }
    let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, rows: &_| rejected.push_rows(inputs, rows);
    let beside = CorpusInputs {
        opened: &opened,
        base,
        disk,
    };
    let corpus = PassageCorpus::read_all(beside, settings, reading, memory, &reject, progress)?;
    match &corpus.repeated_ids {
        Some(repeated) if reading.strict => return Err(repeated.repeats_error(reading)),
        Some(repeated) => progress.repeated_ids(repeated),
        None => {}
    }
    let texts = outputs.extracted.as_deref();
    let texts = texts
        .map(|directory| corpus.write_extracted_texts(directory))
        .transpose()?;
    let extracted_texts = texts.as_ref().map_or(0, ExtractedTextWriter::text_count);
    let writer = PassageWriter::new(&corpus, outputs, returned, &opened)?;
    let mut writer = writer.search_all(settings, progress)?;
    let found = std::mem::take(&mut writer.found);
    let report = writer.report.take();
    let rows = std::mem::take(&mut writer.rows);
    let is_complete = writer.is_complete;
    let table = writer.table.map(TableWriter::prepare_table).transpose()?;
    let (rejected, bad_rows) = rejected.prepare_output()?;
    let texts = texts.map(ExtractedTextWriter::prepare_texts);
    let mut summary = found.into_summary(&corpus, settings, rejected, extracted_texts)?;
    summary.seconds = started.elapsed().as_secs_f64();
    let summary_data = summary_to_json(&summary);
    let written = outputs.report.as_ref().map(|report| &*report.written);
    let data = report.map(|report| {
        report.collect_data(
            &corpus,
            summary_data,
            summary.pairs,
            written.unwrap_or_default(),
        )
    });
    let data = data.transpose()?;
    let page = returned.page.zip(data.as_ref());
    let page = page.map(|(language, data)| data.render_page(language));
    let report = outputs.report.as_ref().zip(data);
    let report = report.map(|(output, data)| stage_report_file("passages", output, data));
    let files = table.into_iter().chain(bad_rows).chain(texts);
    commit_all(files.chain(report.transpose()?))?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(FinishedRun {
        summary,
        rows,
        page,
        is_complete,
    })
}

/// Counts of a run, and the first passages and pairs of its rankings, each with its place among all.
#[derive(Default)]
struct FoundPassages {
    passages: u64,
    pairs: u64,
    copying: u64,
    sharing: SharingDocuments,
    copied_tokens: u64,
    reworded_tokens: u64,
    tokens: u64,
    with_boilerplate: u64,
    given_tokens: u64,
    with_given: u64,
    places: SourcePlaces,
    longest: Vec<(u64, DescribedPassage)>,
    most_copied: Vec<(u64, CopiedPair)>,
}

/// The documents that share a passage, as the document or as the source of a pair: a bit for each document.
#[derive(Default)]
struct SharingDocuments(Vec<u64>);

impl SharingDocuments {
    fn insert(&mut self, document: DocId) {
        let word = document.index() / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (document.index() % 64);
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl FoundPassages {
    /// Returns the summary of a run that has taken no time yet.
    fn into_summary(
        self,
        corpus: &PassageCorpus<'_>,
        settings: &PassageRunSettings,
        rejected: u64,
        extracted_texts: u64,
    ) -> Result<PassagesSummary> {
        let repeated_ids = corpus.repeated_ids.as_ref();
        let longest = self.longest.into_iter().map(|(_, passage)| passage);
        let most_copied = self.most_copied.into_iter().map(|(_, pair)| pair);
        let common = self.places.find_common(corpus, settings)?;
        let base = corpus.base.as_ref();
        Ok(PassagesSummary {
            base: BaseSummary {
                texts: base.map_or(0, |base| base.text.text_count()),
                documents: self.with_given,
                tokens: self.given_tokens,
                unit: base.map_or("words", |base| base.unit),
                short_texts: base.map_or(0, |base| base.short_texts),
                short_names: base.map_or_else(Vec::new, |base| base.short_names.clone()),
            },
            common,
            documents: corpus.rows.documents.len() as u64,
            against: corpus.count_others() as u64,
            passages: self.passages,
            pairs: self.pairs,
            copying: self.copying,
            directed: corpus.is_directed(settings),
            sharing: if corpus.is_directed(settings) {
                self.copying
            } else {
                self.sharing.count()
            },
            copied_tokens: self.copied_tokens,
            reworded_tokens: self.reworded_tokens,
            tokens: self.tokens,
            boilerplate: BoilerplateSummary {
                max_documents: corpus.max_documents,
                grams: corpus.index.boilerplate_grams().len() as u64,
                documents: self.with_boilerplate,
                examples: describe_boilerplate(corpus)?,
            },
            longest: longest.collect(),
            most_copied: most_copied.collect(),
            repeated_ids: repeated_ids.map_or(0, |repeated_ids| repeated_ids.documents),
            rejected,
            unreadable_files: corpus.unreadable.files,
            skipped_files: corpus.unreadable.skipped,
            unreadable: corpus.unreadable.first.clone(),
            guessed_encodings: corpus.list_guessed(),
            extracted_texts,
            bytes: corpus.rows.documents.bytes + corpus.rows.against.bytes,
            index_bytes: corpus.index_bytes() as u64,
            spilled: corpus.spilled_data(),
            seconds: 0.0,
            min_words: settings.passages.min_words(),
            recipe: settings.reading.recipe.name.clone(),
            recipe_id: settings.reading.recipe.recipe_id().to_string(),
        })
    }
}

struct PassageWriter<'a> {
    corpus: &'a PassageCorpus<'a>,
    table: Option<TableWriter>,
    /// Rows that wait for the end of the search, if they are ranked, and their bytes.
    ranked: Vec<PassageRow>,
    ranked_bytes: usize,
    /// Rows for the caller, if it wants them.
    rows: Vec<PassageTableRow>,
    row_bytes: usize,
    wants_rows: bool,
    /// `false` once the limits of the run have ended the search.
    is_complete: bool,
    /// The data of the report, if one is wanted.
    report: Option<PassageReport>,
    found: FoundPassages,
}

const PASSAGE_COLUMNS: [TableColumn<'static>; 9] = [
    TableColumn::Text("document"),
    TableColumn::Text("source"),
    TableColumn::Integer("start"),
    TableColumn::Integer("end"),
    TableColumn::Integer("source_start"),
    TableColumn::Integer("source_end"),
    TableColumn::Integer("length"),
    TableColumn::Number("similarity"),
    TableColumn::Text("kind"),
];

impl<'a> PassageWriter<'a> {
    fn new(
        corpus: &'a PassageCorpus<'a>,
        outputs: &PassageOutputs,
        returned: ReturnedResults,
        opened: &OpenInputs,
    ) -> Result<Self> {
        let table = outputs.passages.as_ref();
        let table = table.map(|target| {
            TableWriter::create_table(target, &PASSAGE_COLUMNS, Some(&opened.documents))
        });
        Ok(Self {
            corpus,
            table: table.transpose()?,
            ranked: Vec::new(),
            ranked_bytes: 0,
            rows: Vec::new(),
            row_bytes: 0,
            wants_rows: returned.rows,
            is_complete: true,
            report: (outputs.report.is_some() || returned.page.is_some())
                .then(PassageReport::default),
            found: FoundPassages::default(),
        })
    }

    /// Searches all documents on all threads, and writes their passages in order.
    fn search_all(
        mut self,
        settings: &PassageRunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let corpus = self.corpus;
        let documents: Vec<u32> = corpus.searched_documents().collect();
        progress.begin_stage(RunStage::Decide, Some(documents.len() as u64));
        let min_described = AtomicUsize::new(0);
        let next_batch = AtomicUsize::new(0);
        let mut done = 0;
        let receive = |findings: Vec<DocumentFindings>| {
            done += findings.len() as u64;
            progress.advance_stage(done);
            let mut findings = findings.into_iter();
            findings.try_for_each(|document| self.add_findings(document, settings, &min_described))
        };
        let waiting = WAITING_BATCHES_PER_THREAD * rayon::current_num_threads() as u64;
        let ordered = OrderedResults::new(receive, waiting);
        rayon::broadcast(|_| {
            ordered.run_worker(|| {
                let mut searcher = DocumentSearcher::new(corpus, settings, &min_described);
                while !ordered.is_stopped() {
                    let at = next_batch.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = documents.chunks(BATCH_DOCUMENTS).nth(at) else {
                        break;
                    };
                    let findings = batch
                        .iter()
                        .map(|&document| searcher.search_document(DocId(document)));
                    ordered.finish_result(at as u64, findings.collect::<Result<_>>()?)?;
                }
                Ok(())
            });
        });
        ordered.into_receiver().map(drop)?;
        rank_rows(&mut self.ranked, settings.order);
        for row in std::mem::take(&mut self.ranked) {
            self.write_row(&row)?;
        }
        Ok(self)
    }

    fn add_findings(
        &mut self,
        findings: DocumentFindings,
        settings: &PassageRunSettings,
        min_described: &AtomicUsize,
    ) -> Result<()> {
        // The result ends at the place at which the search ended: later findings are left out.
        if !self.is_complete {
            return Ok(());
        }
        self.is_complete = findings.is_complete;
        if let Some(report) = &mut self.report {
            report.add_findings(&findings);
        }
        let found = &mut self.found;
        let base = found.passages;
        for (row, described) in findings.described {
            let place = (base + row as u64, described);
            insert_ranked(&mut found.longest, place, settings.described, |passage| {
                passage.length
            });
        }
        for (at, pair) in findings.pairs.iter().enumerate() {
            let place = (found.pairs + at as u64, pair.clone());
            insert_ranked(&mut found.most_copied, place, settings.described, |pair| {
                pair.copied
            });
        }
        if found.longest.len() == settings.described {
            let least = found
                .longest
                .last()
                .map_or(usize::MAX, |longest| longest.1.length);
            min_described.store(least, Ordering::Relaxed);
        }
        found.passages += findings.rows.len() as u64;
        found.pairs += findings.pairs.len() as u64;
        found.copying += u64::from(!findings.rows.is_empty());
        if !self.corpus.is_directed(settings) {
            for row in &findings.rows {
                found.sharing.insert(row.document);
                found.sharing.insert(row.source);
            }
        }
        found.copied_tokens += findings.copied as u64;
        found.reworded_tokens += findings.reworded as u64;
        found.tokens += findings.tokens as u64;
        found.with_boilerplate += u64::from(findings.has_boilerplate);
        found.given_tokens += findings.given as u64;
        found.with_given += u64::from(findings.given > 0);
        found.places.add_rows(&findings.rows);
        match settings.order {
            PassageOrder::Position => {
                (findings.rows.iter()).try_for_each(|row| self.write_row(row))?;
                self.check_row_bytes(settings)
            }
            PassageOrder::Longest | PassageOrder::Copied => {
                self.ranked_bytes += findings
                    .rows
                    .iter()
                    .map(PassageRow::memory_bytes)
                    .sum::<usize>();
                self.ranked.extend(findings.rows);
                let memory = self.corpus.memory;
                memory.check_ranked(self.ranked.len(), self.ranked_bytes)
            }
        }
    }

    /// Ends the search if its rows take more memory than the limits of the run allow.
    fn check_row_bytes(&mut self, settings: &PassageRunSettings) -> Result<()> {
        let Some(limits) = &settings.limits else {
            return Ok(());
        };
        let most = limits.max_row_bytes;
        if self.row_bytes <= most {
            return Ok(());
        }
        if limits.allows_partial {
            self.is_complete = false;
            limits.budget.cancel();
            return Ok(());
        }
        Err(Error::limit_error(format!(
            "the passages take more than {most} bytes of memory, the limit of a request: send fewer or shorter documents, \
             or a longer minimum length"
        )))
    }

    fn write_row(&mut self, row: &PassageRow) -> Result<()> {
        if self.wants_rows {
            let row = row.to_table_row();
            self.row_bytes += row.memory_bytes();
            self.rows.push(row);
        }
        let Some(table) = &mut self.table else {
            return Ok(());
        };
        let [document, source] = &row.ids;
        let number = |value: usize| TableCell::Integer(value as u64);
        table.push_row(&[
            TableCell::Text(document),
            TableCell::Text(source),
            number(row.place.start),
            number(row.place.end),
            number(row.source_place.start),
            number(row.source_place.end),
            number(row.length),
            TableCell::Number(row.similarity),
            TableCell::Text(row.kind),
        ])
    }
}

/// Inserts an entry into a ranking, largest first and earliest first of equal ones, and keeps the first `most`.
fn insert_ranked<T>(
    ranking: &mut Vec<(u64, T)>,
    entry: (u64, T),
    most: usize,
    size: impl Fn(&T) -> usize,
) {
    let key = |ranked: &(u64, T)| (std::cmp::Reverse(size(&ranked.1)), ranked.0);
    let at = ranking.partition_point(|ranked| key(ranked) < key(&entry));
    ranking.insert(at, entry);
    ranking.truncate(most);
}

/// Sorts rows by an order; rows of equal rank stay in the order of their positions.
fn rank_rows(rows: &mut [PassageRow], order: PassageOrder) {
    match order {
        PassageOrder::Position => {}
        PassageOrder::Longest => rows.sort_by_key(|row| std::cmp::Reverse(row.length)),
        PassageOrder::Copied => {
            rows.sort_by_key(|row| (std::cmp::Reverse(row.copied), row.document, row.source));
        }
    }
}

/// Characters of a boilerplate gram that a summary shows.
const EXAMPLE_CHARACTERS: usize = 60;

/// Returns the text of a gram on one line, without long runs of signs between its words.
fn shorten_example(text: &str) -> String {
    let mut words = text.split_whitespace();
    let shown: Vec<&str> = words
        .by_ref()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .collect();
    shorten_text(&shown.join(" "), EXAMPLE_CHARACTERS)
}

/// Returns the text of the most frequent boilerplate grams.
fn describe_boilerplate(corpus: &PassageCorpus<'_>) -> Result<Vec<BoilerplateExample>> {
    let mut grams = corpus.index.boilerplate_grams();
    grams.sort_by_key(|gram| (std::cmp::Reverse(gram.documents), gram.first, gram.hash));
    grams.truncate(BOILERPLATE_EXAMPLES);
    let (mut parse, mut tokens) = (ParseScratch::default(), SpannedTokens::default());
    let (mut winnower, mut selected) = (Winnower::new(corpus.indexed), Vec::new());
    let mut examples = Vec::new();
    for gram in grams {
        let source = corpus.indexed_source(gram.first);
        let reread = corpus.reread_source(source, &mut parse, &mut tokens)?;
        winnower.select_grams(tokens.values(), &mut selected);
        let place = selected.iter().find(|place| place.hash == gram.hash);
        examples.extend(place.map(|place| BoilerplateExample {
            text: shorten_example(
                &reread.text()[tokens.byte_range(place.start as usize..place.end as usize)],
            ),
            documents: gram.documents,
        }));
    }
    Ok(examples)
}
