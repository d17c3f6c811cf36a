//! A corpus with known contamination: items of benchmarks are planted into documents, in every form in which they stand in
//! real ones, and decoys beside them.
//!
//! ```text
//! benchmarks ──> items ──> indexed half ──> benchmark file (the items to search for)
//!                    │          ├─────────> documents with an item, label 1
//!                    │          └─────────> decoys: texts that have much in common with an item, label 0
//!                    └───> held-out half ─> decoys: other items of the same series, label 0
//! ```
//!
//! Each drawn document has an item of its own. It is written once for each form and each kind of decoy, behind all
//! documents of the corpus.
//!
//! Guarantees: the outputs depend on inputs, seed and number of documents alone, not on the number of threads. An item is
//! planted at most once in each form, so that its question does not become boilerplate.
//!
//! Cost: two readings of the corpus. Memory: 28 bytes and the id for each document, and the items.

mod corpus;
mod halves;
mod settings;

use std::path::Path;
use std::time::Instant;

use lookalike::contamination::ItemTexts;
use lookalike::quality::plant::{EditPlanter, ItemDecoy, ItemForm, TextStock};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{
    OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter, check_output, commit_all,
};
use lookalike_io::source::{InputFormat, InputSet, ReadOptions, format_by_extension};
use lookalike_options::match_options::OptionSpelling;
use rayon::prelude::*;

pub use self::settings::{
    PlantContaminationInputs, PlantContaminationOutputs, PlantContaminationSettings,
    PlantContaminationSummary, PlantedFormCount,
};

use self::corpus::PlantedInto;
use self::halves::{HalfItem, ItemHalves, draw_items, item_name};
use crate::run::commands::plant::{
    COPY_MARK, DOCUMENTS_AT_ONCE, STOCK_DOCUMENTS, check_corpus_output,
};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::benchmarks::{
    BenchmarkItem, BenchmarkSet, read_benchmarks, write_item_rows,
};
use crate::run::reading::rejected_rows::{OpenedRows, RejectedRows};
use crate::run::settings::RunSettings;

/// Characters of a document in which something is planted: the first ones. Longer documents would make the planted corpus
/// many times as large as the original one.
const HOST_CHARACTERS: usize = 4000;

/// Number of documents that are planted at a time.
const HOSTS_AT_ONCE: usize = 64;

/// Writes a corpus of all documents and of documents with planted items, a table of the planted ones, and the items that
/// are to be searched for.
///
/// # Errors
/// If something cannot be read or written, or if the benchmarks have too few questions. The outputs are then unchanged.
pub fn run_plant_contamination(
    inputs: &PlantContaminationInputs,
    settings: &PlantContaminationSettings,
    outputs: &PlantContaminationOutputs,
    progress: &dyn ProgressListener,
) -> Result<PlantContaminationSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        plant_items(inputs, settings, outputs, progress)
    })
}

fn plant_items(
    inputs: &PlantContaminationInputs,
    settings: &PlantContaminationSettings,
    outputs: &PlantContaminationOutputs,
    progress: &dyn ProgressListener,
) -> Result<PlantContaminationSummary> {
    let started = Instant::now();
    check_corpus_output(&outputs.corpus)?;
    check_items_output(&outputs.indexed)?;
    let opened = open_corpus(inputs, settings, outputs, progress)?;
    let run = RunSettings {
        read: settings.read.clone(),
        ..RunSettings::default()
    };
    let empty = EditPlanter::new(settings.seed, TextStock::default());
    let corpus = PlantedInto::read(&opened, &run, &empty)?;
    progress.begin_stage(RunStage::Index, None);
    let benchmarks = read_benchmarks(
        &inputs.benchmarks,
        inputs.fields.as_ref(),
        &settings.read,
        OptionSpelling::Options,
    )?;
    refuse_benchmark_files(&benchmarks, outputs)?;
    let halves = ItemHalves::new(&benchmarks, &empty)?;
    let stock: Vec<usize> = corpus
        .ranked
        .iter()
        .copied()
        .take(STOCK_DOCUMENTS)
        .collect();
    let stock = corpus.read_texts(&stock)?;
    let stock = TextStock::new(stock.iter().map(String::as_str));
    let planting = ItemPlanting {
        planter: EditPlanter::new(settings.seed, stock),
        mark: COPY_MARK.to_string().repeat(corpus.longest_run + 1),
        corpus: &corpus,
        benchmarks: &benchmarks,
    };
    let hosts = planting.draw_hosts(&halves, settings.documents);
    let (counts, mut staged) = planting.write_corpus(&hosts, outputs, &opened.inputs, progress)?;
    let indexed = halves.indexed.iter();
    let indexed = indexed.map(|item| &benchmarks.items[item.index]);
    staged.push(write_item_rows(&benchmarks, indexed, &outputs.indexed)?);
    let mut summary = PlantContaminationSummary {
        documents: corpus.len() as u64,
        sampled: hosts.len() as u64,
        items: benchmarks.items.len() as u64,
        indexed: halves.indexed.len() as u64,
        held_out: halves.held_out.len() as u64,
        unused_items: halves.unused,
        planted: counts.count_labelled(1),
        decoys: counts.count_labelled(0),
        forms: counts.0,
        rejected: 0,
        bytes: corpus.bytes(),
        seconds: 0.0,
        mark: planting.mark.clone(),
        seed: settings.seed,
    };
    let (rejected, rejected_rows) = opened.into_rejected().prepare_output()?;
    commit_all(rejected_rows.into_iter().chain(staged))?;
    summary.rejected = rejected;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

/// Refuses a file whose extension does not say that it is JSONL, because it would be read as something else.
fn check_items_output(output: &OutputTarget) -> Result<()> {
    let OutputTarget::Path(path) = output else {
        return Err(Error::usage_error(
            "indexed items cannot go to standard output: give a file (.jsonl)",
        ));
    };
    if format_by_extension(path) == Some(InputFormat::Jsonl) {
        return Ok(());
    }
    Err(Error::usage_error(format!(
        "indexed items are written as JSONL: give {} the extension .jsonl",
        display_path(Path::new(path))
    )))
}

fn open_corpus<'a>(
    inputs: &PlantContaminationInputs,
    settings: &PlantContaminationSettings,
    outputs: &PlantContaminationOutputs,
    progress: &'a dyn ProgressListener,
) -> Result<OpenedRows<'a>> {
    let options = ReadOptions {
        again: true,
        ..settings.read.clone()
    };
    let opened = InputSet::open_source(&inputs.documents.clone().into(), &options)?;
    for output in outputs.targets() {
        check_output(output, &opened)?;
    }
    let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
    Ok(OpenedRows::new(opened, rejected, settings.strict, progress))
}

/// Refuses to overwrite a file of the benchmarks.
fn refuse_benchmark_files(
    benchmarks: &BenchmarkSet,
    outputs: &PlantContaminationOutputs,
) -> Result<()> {
    let sources = benchmarks.benchmarks.iter().flat_map(|info| &info.sources);
    let sources: Vec<_> = sources
        .filter_map(|source| Path::new(source).canonicalize().ok())
        .collect();
    for output in outputs.targets() {
        if let OutputTarget::Path(path) = output
            && let Ok(path) = path.canonicalize()
            && sources.contains(&path)
        {
            return Err(Error::usage_error(format!(
                "{} is a file of the benchmarks, which would be overwritten: name another file",
                display_path(&path)
            )));
        }
    }
    Ok(())
}

impl PlantContaminationOutputs {
    fn targets(&self) -> impl Iterator<Item = &OutputTarget> {
        let named = [&self.corpus, &self.labels, &self.indexed];
        named.into_iter().chain(&self.rejected)
    }
}

/// Name of the decoys that are held-out items.
const SAME_SERIES: &str = "same-series";

/// The content of a planted document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedForm {
    Item(ItemForm),
    Decoy(ItemDecoy),
    /// A held-out item.
    SameSeries,
}

impl PlantedForm {
    /// Returns all forms, in the order in which they are planted.
    fn list_all() -> Vec<Self> {
        let items = ItemForm::ALL.into_iter().map(Self::Item);
        let decoys = ItemDecoy::ALL.into_iter().map(Self::Decoy);
        items.chain(decoys).chain([Self::SameSeries]).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Item(form) => form.name(),
            Self::Decoy(decoy) => decoy.name(),
            Self::SameSeries => SAME_SERIES,
        }
    }

    fn label(self) -> u64 {
        u64::from(matches!(self, Self::Item(_)))
    }
}

/// Returns the names of all forms of items and then of all kinds of decoys, in the order of reports.
pub(in crate::run) fn list_form_names() -> Vec<&'static str> {
    let all = PlantedForm::list_all().into_iter();
    all.map(PlantedForm::name).collect()
}

/// Returns `true` for the kind of decoys that are held-out items.
pub(in crate::run) fn is_held_out_form(name: &str) -> bool {
    name == SAME_SERIES
}

/// The planted documents of each form.
struct FormCounts(Vec<PlantedFormCount>);

impl FormCounts {
    fn new() -> Self {
        let all = PlantedForm::list_all().into_iter();
        let counts = all.map(|form| PlantedFormCount {
            form: form.name(),
            label: form.label(),
            planted: 0,
            not_applicable: 0,
        });
        Self(counts.collect())
    }

    fn count_labelled(&self, label: u64) -> u64 {
        let labelled = self.0.iter().filter(|count| count.label == label);
        labelled.map(|count| count.planted).sum()
    }
}

/// A document in which texts are planted, and its items.
#[derive(Debug, Clone, Copy)]
struct HostDocument {
    document: usize,
    item: HalfItem,
    /// `None` if there are fewer held-out items than documents.
    held_out: Option<HalfItem>,
}

/// The texts of a document with something planted, in the order of the forms; `None` where a form is not applicable.
struct PlantedHost {
    id: String,
    texts: Vec<Option<String>>,
}

/// Plants items into documents.
struct ItemPlanting<'a> {
    planter: EditPlanter,
    mark: String,
    corpus: &'a PlantedInto<'a>,
    benchmarks: &'a BenchmarkSet,
}

impl ItemPlanting<'_> {
    /// Draws documents and their items, in the order of the documents.
    fn draw_hosts(&self, halves: &ItemHalves, limit: usize) -> Vec<HostDocument> {
        let draw = |half: &[HalfItem]| draw_items(half, self.benchmarks, &self.planter, limit);
        let (items, held_out) = (draw(&halves.indexed), draw(&halves.held_out));
        let ranked = &self.corpus.ranked;
        let mut documents = ranked[..items.len().min(ranked.len())].to_vec();
        documents.sort_unstable();
        let hosts = documents.into_iter().zip(items).enumerate();
        hosts
            .map(|(at, (document, item))| HostDocument {
                document,
                item,
                held_out: held_out.get(at).copied(),
            })
            .collect()
    }

    fn write_corpus(
        &self,
        hosts: &[HostDocument],
        outputs: &PlantContaminationOutputs,
        inputs: &InputSet,
        progress: &dyn ProgressListener,
    ) -> Result<(FormCounts, Vec<StagedOutput>)> {
        let total = self.corpus.len() + hosts.len();
        progress.begin_stage(RunStage::Write, Some(total as u64));
        let columns = [TableColumn::Text("id"), TableColumn::Text("text")];
        let mut corpus = TableWriter::create_table(&outputs.corpus, &columns, Some(inputs))?;
        let mut labels = create_labels(&outputs.labels, inputs)?;
        let all: Vec<usize> = (0..self.corpus.len()).collect();
        let mut written = 0;
        for documents in all.chunks(DOCUMENTS_AT_ONCE) {
            for (&document, text) in documents.iter().zip(self.corpus.read_texts(documents)?) {
                let id = self.corpus.document_id(document)?;
                corpus.push_row(&[TableCell::Text(&id), TableCell::Text(&text)])?;
            }
            written += documents.len() as u64;
            progress.advance_stage(written);
        }
        let mut counts = FormCounts::new();
        for hosts in hosts.chunks(HOSTS_AT_ONCE) {
            for (host, planted) in hosts.iter().zip(self.plant_hosts(hosts)?) {
                self.push_planted(host, &planted, &mut corpus, &mut labels, &mut counts)?;
            }
            written += hosts.len() as u64;
            progress.advance_stage(written);
        }
        let staged = vec![corpus.prepare_table()?, labels.prepare_table()?];
        Ok((counts, staged))
    }

    fn push_planted(
        &self,
        host: &HostDocument,
        planted: &PlantedHost,
        corpus: &mut TableWriter,
        labels: &mut TableWriter,
        counts: &mut FormCounts,
    ) -> Result<()> {
        let mut number = 0;
        let forms = PlantedForm::list_all().into_iter();
        for ((form, text), count) in forms.zip(&planted.texts).zip(&mut counts.0) {
            let planted_item = match form {
                PlantedForm::SameSeries => host.held_out,
                PlantedForm::Item(_) | PlantedForm::Decoy(_) => Some(host.item),
            };
            let Some(half_item) = planted_item else {
                continue;
            };
            let Some(text) = text else {
                count.not_applicable += 1;
                continue;
            };
            count.planted += 1;
            number += 1;
            let id = format!("{}{}{number}", planted.id, self.mark);
            let item = &self.benchmarks.items[half_item.index];
            corpus.push_row(&[TableCell::Text(&id), TableCell::Text(text)])?;
            labels.push_row(&[
                TableCell::Text(&id),
                TableCell::Text(&planted.id),
                TableCell::Text(&self.benchmarks.benchmarks[item.benchmark as usize].name),
                TableCell::Text(&item.id),
                TableCell::Text(form.name()),
                TableCell::Integer(form.label()),
                TableCell::Integer(half_item.words),
            ])?;
        }
        Ok(())
    }

    fn plant_hosts(&self, hosts: &[HostDocument]) -> Result<Vec<PlantedHost>> {
        let documents: Vec<usize> = hosts.iter().map(|host| host.document).collect();
        let texts = self.corpus.read_texts(&documents)?;
        let plant = |(host, text): (&HostDocument, &String)| self.plant_host(host, text);
        hosts.par_iter().zip(&texts).map(plant).collect()
    }

    fn plant_host(&self, host: &HostDocument, text: &str) -> Result<PlantedHost> {
        let end = text.char_indices().nth(HOST_CHARACTERS);
        let text = &text[..end.map_or(text.len(), |(end, _)| end)];
        let item = &self.benchmarks.items[host.item.index];
        let name = item_name(self.benchmarks, item);
        let forms = PlantedForm::list_all().into_iter();
        let texts = forms.map(|form| match form {
            PlantedForm::Item(form) => self.planter.plant_item(&name, text, texts_of(item), form),
            PlantedForm::Decoy(decoy) => {
                self.planter.plant_decoy(&name, text, texts_of(item), decoy)
            }
            PlantedForm::SameSeries => {
                let item = &self.benchmarks.items[host.held_out?.index];
                let name = item_name(self.benchmarks, item);
                Some(self.planter.insert_text(&name, text, &render_plainly(item)))
            }
        });
        Ok(PlantedHost {
            texts: texts.collect(),
            id: self.corpus.document_id(host.document)?,
        })
    }
}

fn texts_of(item: &BenchmarkItem) -> ItemTexts<'_> {
    ItemTexts {
        question: &item.question,
        choices: &item.choices,
        answer: &item.answer,
        passage: &item.passage,
    }
}

/// Returns the question and the answer of an item.
fn render_plainly(item: &BenchmarkItem) -> String {
    if item.answer.is_empty() {
        return item.question.clone();
    }
    format!("{}\nAnswer: {}", item.question, item.answer)
}

fn create_labels(output: &OutputTarget, inputs: &InputSet) -> Result<TableWriter> {
    let columns = [
        TableColumn::Text("document"),
        TableColumn::Text("host"),
        TableColumn::Text("benchmark"),
        TableColumn::Text("item"),
        TableColumn::Text("form"),
        TableColumn::Integer("label"),
        TableColumn::Integer("words"),
    ];
    TableWriter::create_table(output, &columns, Some(inputs))
}
