//! The decontaminate run: takes documents with items of benchmarks out of a corpus.
//!
//! ```text
//! benchmarks ──> items ──> index
//!                            │
//! corpus ──> first reading ──┴──> candidates (spooled), counts of tokens
//!                                      │
//!                            weights ──┴──> findings ──> tables
//!                                              │
//! corpus ──> second reading ───────────────────┴──> rows that stay, report
//! ```
//!
//! A candidate is decided after the whole corpus is read, because its weight depends on how rare its words are there.
//! The result depends neither on the number of threads nor on the order of the documents.
//!
//! With a directory for intermediate results, each block of the first reading is stored once it is searched, so that a
//! killed run goes on behind the last stored block.
//!
//! Memory: the index of the items, some four bytes for each row of the corpus, and the findings. Candidates go to a temporary
//! file from 64 MiB on, or from a smaller share of a limit.

pub(crate) mod candidate_spool;
mod evaluation;
pub(crate) mod findings;
mod memory_measuring;
mod report_data;
pub(crate) mod search;
mod settings;
mod stored_search;
pub(crate) mod writing;

use std::path::PathBuf;
use std::time::Instant;

use lookalike::contamination::{ContaminationIndex, ItemTexts};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{
    StagedOutput, check_beside, check_kept, check_output, check_table, commit_all,
};
use lookalike_io::source::{InputSet, ReadOptions, RowSource};
use lookalike_options::match_options::OptionSpelling;
use lookalike_options::shown_text::shorten_text;

pub use self::evaluation::{
    ContaminationEvaluation, ContaminationFiles, DecoyFindings, FormRecall, evaluate_contamination,
};
pub use self::settings::{
    BenchmarkContamination, BoilerplateQuestion, ContaminationCut, DecontaminateInputs,
    DecontaminateOutputs, DecontaminateSettings, DecontaminateSummary,
};

use self::candidate_spool::CandidateSpool;
use self::findings::{ContaminatedDocument, CorpusFindings, LoneQuestion, decide_findings};
use self::report_data::{ReportInputs, write_report};
use self::search::{SearchedCorpus, search_corpus};
use self::stored_search::StoredSearch;
use self::writing::{CorpusCuts, FoundItems, write_findings};
use crate::memory::contamination_plan::ContaminationShares;
use crate::run::commands::empty_inputs::refuse_empty_inputs;
use crate::run::execution::work_directory::{LockedDirectory, WorkDirectory, describe_reading};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::benchmarks::{BenchmarkSet, OpenBenchmarks};
use crate::run::reading::rejected_rows::{OpenedRows, RejectedRows};
use crate::run::settings::RunInputs;

/// Questions that are named in a summary as boilerplate.
const NAMED_BOILERPLATE: usize = 10;

/// Characters of such a question.
const SHOWN_CHARACTERS: usize = 200;

/// Takes the documents with items of benchmarks out of a corpus, or only the text of these items.
///
/// # Errors
/// If something cannot be read or written, if no benchmark has an item, or if the settings contradict each other. The
/// outputs are then unchanged.
pub fn run_decontaminate(
    inputs: &DecontaminateInputs,
    settings: &DecontaminateSettings,
    outputs: &DecontaminateOutputs,
    progress: &dyn ProgressListener,
) -> Result<DecontaminateSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        decontaminate_corpus(inputs, settings, outputs, progress)
    })
}

fn decontaminate_corpus(
    inputs: &DecontaminateInputs,
    settings: &DecontaminateSettings,
    outputs: &DecontaminateOutputs,
    progress: &dyn ProgressListener,
) -> Result<DecontaminateSummary> {
    let started = Instant::now();
    check_cut_fields(settings.cut, &settings.read.fields.text, settings.spelling)?;
    check_standard_input(inputs)?;
    let locked = settings.work.as_ref().map(|work| {
        let inputs = RunInputs {
            documents: inputs.documents.clone(),
            ..RunInputs::default()
        };
        LockedDirectory::lock_directory(work, &inputs)
    });
    let locked = locked.transpose()?;
    let mut settings = settings.clone();
    if let Some(locked) = &locked {
        let benchmarks = RowSource::from(inputs.benchmarks.clone());
        locked.keep_objects(&mut settings.read, &[&inputs.documents, &benchmarks])?;
    }
    let settings = &settings;
    let named = outputs.named_outputs(settings.cut);
    let uploads = locked.as_ref().map(|locked| locked.record_uploads(&named));
    // The uploads are recorded until the end of the run.
    let _uploads = uploads.transpose()?;
    let opened = open_corpus(inputs, settings, outputs, progress)?;
    let benchmarks = OpenBenchmarks::open_paths(&inputs.benchmarks, &settings.read)?;
    for files in benchmarks.inputs() {
        check_beside_benchmarks(outputs, &opened.inputs, files)?;
    }
    progress.begin_stage(RunStage::Index, None);
    let benchmarks = benchmarks.read_items(inputs.fields.as_ref(), settings.spelling)?;
    if !benchmarks.skipped_files.is_empty() {
        let skipped = benchmarks.skipped_files.iter().map(PathBuf::from);
        progress.report_left_out(&skipped.collect::<Vec<_>>());
    }
    let index = build_index(&benchmarks)?;
    let memory =
        ContaminationShares::for_run(inputs, &opened.inputs, &benchmarks, &index, settings)?;
    let locked = locked.as_ref();
    let work = locked.map(|locked| open_work(locked, settings, &opened, &benchmarks));
    let work = work.transpose()?;
    let all_outputs = outputs;
    let mut outputs = outputs.clone();
    if let Some(work) = &work {
        let named = outputs.named_outputs(settings.cut);
        work.remove_interrupted_outputs(&named);
        if work.has_written(&named) {
            outputs = DecontaminateOutputs::default();
        }
    }
    let stored = work.as_ref().map(StoredSearch::new);
    let spool = CandidateSpool::new(memory.candidate_bytes(), settings.read.scratch.clone());
    let corpus = search_corpus(&opened, &index, stored.as_ref(), spool, memory)?;
    if !outputs.allows_empty {
        refuse_empty_inputs(&opened.inputs, outputs.targets(), settings.spelling)?;
    }
    if let Some(work) = &work {
        work.finish_reading(corpus.rows.len() as u64)?;
    }
    let findings = decide_findings(&corpus, &index, memory)?;
    if let Some(work) = &work {
        work.finish_deciding()?;
    }
    let decided = DecidedRun::new(&benchmarks, &index, &corpus, &findings, settings.cut);
    let mut summary = decided.summarize_run();
    summary.rejected = opened.rejected_count();
    // The report shows the time so far.
    summary.seconds = started.elapsed().as_secs_f64();
    let staged = decided.stage_outputs(&opened, settings, &outputs, &summary)?;
    let (_, rejected_rows) = opened.into_rejected().prepare_output()?;
    commit_all(rejected_rows.into_iter().chain(staged))?;
    if let Some(work) = &work {
        work.finish_run(&all_outputs.named_outputs(settings.cut))?;
    }
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

/// Refuses to cut parts from a text that has several fields.
///
/// # Errors
/// If `cut` is a part of documents, and `fields` are more than one.
pub fn check_cut_fields(
    cut: ContaminationCut,
    fields: &[String],
    spelling: OptionSpelling,
) -> Result<()> {
    if cut == ContaminationCut::Document || fields.len() <= 1 {
        return Ok(());
    }
    Err(Error::usage_error(format!(
        "parts are cut from one field, and the text has {}: `{}`; name one, or leave out whole documents with \
         {}",
        fields.len(),
        fields.join("`, `"),
        spelling.spell_choice("cut", "document")
    )))
}

/// Refuses standard input as corpus and as benchmark.
fn check_standard_input(inputs: &DecontaminateInputs) -> Result<()> {
    let benchmarks = RowSource::from(inputs.benchmarks.clone());
    if inputs.documents.has_standard_input() && benchmarks.has_standard_input() {
        return Err(Error::usage_error(
            "standard input cannot be the corpus and a benchmark: name a file for one of them",
        ));
    }
    Ok(())
}

fn open_corpus<'a>(
    inputs: &DecontaminateInputs,
    settings: &DecontaminateSettings,
    outputs: &DecontaminateOutputs,
    progress: &'a dyn ProgressListener,
) -> Result<OpenedRows<'a>> {
    let options = ReadOptions {
        again: outputs.kept.is_some() || outputs.rejected.is_some() || outputs.report.is_some(),
        ..settings.read.clone()
    };
    let opened = InputSet::open_source(&inputs.documents, &options)?;
    for table in [&outputs.findings, &outputs.items].into_iter().flatten() {
        check_table(table)?;
    }
    check_outputs(outputs, &opened)?;
    if let Some(output) = &outputs.kept {
        check_kept(&opened, output, false)?;
    }
    let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
    Ok(OpenedRows::new(opened, rejected, settings.strict, progress))
}

/// Refuses outputs that would overwrite an input.
fn check_outputs(outputs: &DecontaminateOutputs, inputs: &InputSet) -> Result<()> {
    let mut targets = outputs.targets();
    targets.try_for_each(|output| check_output(output, inputs))
}

/// Refuses outputs that would overwrite a benchmark, also those of a directory that mirrors the corpus.
fn check_beside_benchmarks(
    outputs: &DecontaminateOutputs,
    inputs: &InputSet,
    benchmarks: &InputSet,
) -> Result<()> {
    let mut targets = outputs.targets();
    targets.try_for_each(|output| check_beside(inputs, output, benchmarks))
}

/// Opens the run in a directory. The benchmarks are among its settings, by a hash of all of their items.
fn open_work(
    locked: &LockedDirectory,
    settings: &DecontaminateSettings,
    opened: &OpenedRows<'_>,
    benchmarks: &BenchmarkSet,
) -> Result<WorkDirectory> {
    let names = benchmarks
        .benchmarks
        .iter()
        .map(|benchmark| &benchmark.name);
    let items = format!("{:?} {:?}", names.collect::<Vec<_>>(), benchmarks.items);
    let items = format!(
        "{} items ({:016x})",
        benchmarks.items.len(),
        lookalike::value_hash(items.as_bytes())
    );
    let named = [
        ("command", "decontaminate".to_owned()),
        ("benchmarks", items),
    ];
    let named = named.map(|(name, value)| (name.to_owned(), value));
    let described = named.into_iter().chain(describe_reading(&settings.read));
    WorkDirectory::open_described(locked, described.collect(), &opened.inputs, None, None)
}

/// Builds the index of the items of benchmarks.
///
/// # Errors
/// If there are too many items.
pub(crate) fn build_index(benchmarks: &BenchmarkSet) -> Result<ContaminationIndex> {
    let items = benchmarks.items.iter().map(|item| ItemTexts {
        question: &item.question,
        choices: &item.choices,
        answer: &item.answer,
        passage: &item.passage,
    });
    Ok(ContaminationIndex::build(items)?)
}

/// A run whose findings are known, before its outputs are written.
struct DecidedRun<'a> {
    benchmarks: &'a BenchmarkSet,
    index: &'a ContaminationIndex,
    corpus: &'a SearchedCorpus,
    findings: &'a CorpusFindings,
    found: FoundItems,
    cuts: CorpusCuts,
}

impl<'a> DecidedRun<'a> {
    fn new(
        benchmarks: &'a BenchmarkSet,
        index: &'a ContaminationIndex,
        corpus: &'a SearchedCorpus,
        findings: &'a CorpusFindings,
        cut: ContaminationCut,
    ) -> Self {
        Self {
            benchmarks,
            index,
            corpus,
            findings,
            found: FoundItems::of_documents(&findings.documents),
            cuts: CorpusCuts::new(&findings.documents, cut),
        }
    }

    /// Completes the outputs, which are then still to be put in place.
    fn stage_outputs(
        &self,
        opened: &OpenedRows<'_>,
        settings: &DecontaminateSettings,
        outputs: &DecontaminateOutputs,
        summary: &DecontaminateSummary,
    ) -> Result<Vec<StagedOutput>> {
        let (inputs, rows) = (&opened.inputs, &self.corpus.rows);
        let mut staged = Vec::new();
        if let Some(output) = &outputs.findings {
            let documents = &self.findings.documents;
            let table = write_findings(documents, rows, self.benchmarks, inputs, output);
            staged.push(StagedOutput::even_if_unread(table)?);
        }
        if let Some(output) = &outputs.items {
            let table = self.found.write_table(self.benchmarks, inputs, output);
            staged.push(StagedOutput::even_if_unread(table)?);
        }
        if let Some(output) = &outputs.report {
            let run = ReportInputs {
                benchmarks: self.benchmarks,
                rows,
                inputs,
                findings: self.findings,
                found: &self.found,
            };
            staged.push(write_report(&run, summary, output)?);
        }
        // Kept rows come last, because standard output and pipes cannot take them back.
        if let Some(output) = &outputs.kept {
            let (cuts, threads) = (&self.cuts, settings.threads);
            staged.push(cuts.write_rows(rows, inputs, output, threads, opened.progress)?);
        }
        Ok(staged)
    }

    fn summarize_run(&self) -> DecontaminateSummary {
        let (benchmarks, findings) = (self.benchmarks, self.findings);
        let documents = self.corpus.rows.len() as u64;
        let removed = self.cuts.removed.len() as u64;
        let items = 0..benchmarks.items.len() as u32;
        let short = items.filter(|&item| !self.index.is_findable(item));
        let all = findings.documents.iter();
        DecontaminateSummary {
            documents,
            kept: documents - removed,
            removed,
            cut: self.cuts.cut_count(),
            findings: all.map(|document| document.findings.len() as u64).sum(),
            items: benchmarks.items.len() as u64,
            items_found: self.found.len(),
            short_items: short.count() as u64,
            boilerplate: findings.boilerplate.candidate_count(),
            boilerplate_questions: name_boilerplate(benchmarks, findings),
            benchmarks: summarize_benchmarks(benchmarks, &findings.documents, &self.found),
            rejected: 0,
            bytes: self.corpus.bytes,
            index_bytes: self.index.memory_bytes() as u64,
            seconds: 0.0,
        }
    }
}

fn name_boilerplate(
    benchmarks: &BenchmarkSet,
    findings: &CorpusFindings,
) -> Vec<BoilerplateQuestion> {
    let questions = findings.boilerplate.most_frequent_first();
    let named = questions.iter().take(NAMED_BOILERPLATE);
    named
        .filter_map(|question| describe_boilerplate(benchmarks, question))
        .collect()
}

/// Returns a question as a summary names it; `None` if there is no such item.
pub(crate) fn describe_boilerplate(
    benchmarks: &BenchmarkSet,
    question: &LoneQuestion,
) -> Option<BoilerplateQuestion> {
    let item = benchmarks.items.get(question.first_item as usize)?;
    Some(BoilerplateQuestion {
        benchmark: benchmarks.benchmarks[item.benchmark as usize].name.clone(),
        item: item.id.clone(),
        question: shorten_text(&item.question, SHOWN_CHARACTERS),
        documents: question.documents,
    })
}

fn summarize_benchmarks(
    benchmarks: &BenchmarkSet,
    documents: &[ContaminatedDocument],
    found: &FoundItems,
) -> Vec<BenchmarkContamination> {
    let mut with_items = vec![0; benchmarks.benchmarks.len()];
    for document in documents {
        let findings = document.findings.iter();
        let of_items = findings.map(|finding| benchmarks.items[finding.item as usize].benchmark);
        let mut of_items: Vec<u32> = of_items.collect();
        of_items.sort_unstable();
        of_items.dedup();
        of_items
            .iter()
            .for_each(|&benchmark| with_items[benchmark as usize] += 1);
    }
    let counts = found.count_by_benchmark(benchmarks);
    let all = benchmarks.benchmarks.iter().enumerate();
    let summaries = all.map(|(number, info)| {
        let [found, found_both] = counts.get(&(number as u32)).copied().unwrap_or_default();
        BenchmarkContamination {
            name: info.name.clone(),
            presets: info.presets.clone(),
            items: info.items,
            rejected: info.rejected,
            rejected_rows: info.rejected_rows.clone(),
            found,
            found_both,
            documents: with_items[number],
        }
    });
    summaries.collect()
}
