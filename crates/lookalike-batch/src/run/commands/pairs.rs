//! The pairs run: finds all pairs of near-duplicates.

use std::time::Instant;

use lookalike::DocId;
use lookalike::dedup::MatchingPair;
use lookalike::plan::MatchPlan;
use lookalike_io::error::{ErrorKind, Result};
use lookalike_io::sink::{
    OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter, check_output, commit_all,
};

use crate::run::commands::bad_row_outputs::BadRowOutputs;
use crate::run::commands::run_outputs::PairsOutputs;
use crate::run::commands::summary::{PairsSummary, RunSummary};
use crate::run::execution::audit::report::ReportedPairs;
use crate::run::execution::form_learning;
use crate::run::execution::out_of_core::memory_plan::plan_spilling;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::{LinkedRun, RunStorage, SketchedRun};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_rows::OpenInputs;
use crate::run::report::band_sample::{PairSampler, SimilarityBand};
use crate::run::report::match_data::{MatchReportInputs, write_match_report};
use crate::run::report::pair_sample::PairSample;
use crate::run::report::similarity_histogram::SimilarityHistogram;
use crate::run::report::summary_to_json;
use crate::run::settings::{RunInputs, RunSettings};

/// Finds all pairs of near-duplicates and writes them ordered by the position of the earlier document,
/// then of the later one. With documents to compare against, each pair has one of these and one other
/// document. [`PairsOutputs::copies`] selects the pairs of equal texts.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn find_pairs(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<PairsSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        run_pairs(inputs, settings, outputs, progress)
    })
}

fn run_pairs(
    paths: &RunInputs,
    settings: &RunSettings,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<PairsSummary> {
    let started = Instant::now();
    let settings = &*form_learning::learn_forms_before_spilling(paths, settings)?;
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let plan_with_forms = plan.with_forms();
    let needs_all = settings.audit.map(|_| "audit");
    let spill = plan_spilling(paths, settings, needs_all, false)?;
    let opened = OpenInputs::new(paths, settings)?;
    check_outputs(&opened, outputs)?;
    let bad_rows = BadRowOutputs::create_output(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, rows: &_| bad_rows.push_rows(inputs, rows);
    let storage = RunStorage { work: None, spill };
    let sketched = SketchedRun::read(&opened, settings, &plan, storage, &reject, progress)?;
    sketched.corpus.report_repeated_ids(settings, progress)?;
    progress.begin_stage(RunStage::Candidates, None);
    let mut linked = sketched.link(false)?;
    if settings.learns_forms {
        form_learning::learn_and_apply_forms(&mut linked, &plan_with_forms, progress)?;
    }
    let found = list_pairs(&linked, outputs, progress);
    let (rejected, rejected_rows, bad_rows) = bad_rows.prepare_output()?;
    let found = match found {
        Ok(found) => found,
        // The reader of the pairs has closed the pipe, but the rejected rows are still written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            commit_all(rejected_rows)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let FoundPairs {
        table,
        reported,
        report_sample,
        ..
    } = found;
    let mut summary = PairsSummary {
        documents: linked.corpus.documents.len() as u64,
        pairs: found.count,
        equal_texts: found.equal_texts as u64,
        repeated_ids: linked.corpus.repeated_ids(),
        run: RunSummary {
            seconds: started.elapsed().as_secs_f64(),
            ..RunSummary::new(&linked.corpus, &plan, rejected)
        },
        histogram: found.histogram,
        sample: found.bands,
        forms: linked.form_summary(None),
        audit: linked.audit_report(reported, None)?,
        spilled: linked.spilled_summary(),
    };
    let report = outputs.report.as_ref().zip(report_sample);
    let report = report.map(|(output, sample)| {
        let (total, similarities, removals) = sample.into_parts();
        let inputs = MatchReportInputs {
            kind: "pairs",
            corpus: &linked.corpus,
            removals: &removals,
            settings,
            plan: &plan,
            bad_rows: &bad_rows,
            summary: summary_to_json(&summary),
            counted: Some((total, similarities)),
        };
        write_match_report(&inputs, output)
    });
    let outputs = table.into_iter().chain(rejected_rows);
    commit_all(outputs.chain(report.transpose()?))?;
    summary.run.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

fn check_outputs(opened: &OpenInputs, outputs: &PairsOutputs) -> Result<()> {
    let report = outputs.report.as_ref().map(|report| &report.target);
    let targets = [outputs.pairs.as_ref(), outputs.rejected.as_ref(), report];
    let mut targets = targets.into_iter().flatten();
    targets.try_for_each(|target| check_output(target, &opened.inputs))
}

/// The pairs of a run: their staged table, their counts and their samples.
struct FoundPairs {
    count: u64,
    /// Documents whose text equals that of an earlier one.
    equal_texts: usize,
    table: Option<StagedOutput>,
    histogram: SimilarityHistogram,
    /// Pairs of each band of similarity, if they are wanted.
    bands: Option<Vec<SimilarityBand>>,
    /// Pairs for the audit.
    reported: ReportedPairs,
    /// Pairs for the report, if it is wanted.
    report_sample: Option<PairSample>,
}

/// Finds all pairs, and writes, counts and samples them.
fn list_pairs(
    linked: &LinkedRun<'_>,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<FoundPairs> {
    let corpus = &linked.corpus;
    let create = |output| PairTable::create_table(output, corpus);
    let mut table = outputs.pairs.as_ref().map(create).transpose()?;
    let mut sampler = outputs.sample.map(PairSampler::new);
    let mut report_sample = outputs.report.as_ref().map(|_| PairSample::default());
    let mut reported = ReportedPairs::default();
    let mut histogram = SimilarityHistogram::default();
    let mut count = 0;
    let visit = |pair: MatchingPair| {
        count += 1;
        if let Some(sample) = &mut report_sample {
            sample.offer_pair(&pair);
        }
        reported.offer_pair(pair.a, pair.b);
        histogram.add_similarity(pair.similarity);
        if let Some(sampler) = &mut sampler {
            sampler.offer_pair(pair);
        }
        table
            .as_mut()
            .map_or(Ok(()), |table| table.push_pair(&pair))
    };
    let total = corpus.len() as u64;
    let report_decided = |decided: usize| {
        if decided == 0 {
            progress.begin_stage(RunStage::Decide, Some(total));
        }
        progress.advance_stage(decided as u64);
    };
    let equal_texts = linked.find_pairs(outputs.copies, visit, &report_decided)?;
    let table = table.map(PairTable::prepare_table).transpose()?;
    let threshold = corpus.plan.threshold().get();
    let describe = |sampler: PairSampler| sampler.describe_bands(&histogram, threshold, corpus);
    let bands = sampler.map(describe).transpose()?;
    Ok(FoundPairs {
        count,
        equal_texts,
        table,
        histogram,
        bands,
        reported,
        report_sample,
    })
}

/// The table of pairs.
struct PairTable<'a> {
    corpus: &'a RunCorpus<'a>,
    table: TableWriter,
    /// The first document of the last pair and its form. Pairs come in the order of their first documents.
    last_form: Option<(DocId, Option<&'a str>)>,
}

impl<'a> PairTable<'a> {
    const PAIR_COLUMNS: [TableColumn<'static>; 7] = [
        TableColumn::Text("a"),
        TableColumn::Text("b"),
        TableColumn::Number("similarity"),
        TableColumn::Text("a_source"),
        TableColumn::Integer("a_row"),
        TableColumn::Text("b_source"),
        TableColumn::Integer("b_row"),
    ];

    fn create_table(output: &OutputTarget, corpus: &'a RunCorpus<'a>) -> Result<Self> {
        let inputs = Some(&corpus.opened.inputs);
        let mut columns = Self::PAIR_COLUMNS.to_vec();
        if corpus.plan.compares_forms() {
            columns.push(TableColumn::Text("form"));
        }
        let table = TableWriter::create_table(output, &columns, inputs)?;
        Ok(Self {
            corpus,
            table,
            last_form: None,
        })
    }

    fn push_pair(&mut self, pair: &MatchingPair) -> Result<()> {
        let corpus = self.corpus;
        let (a, b) = (corpus.document_id(pair.a)?, corpus.document_id(pair.b)?);
        let (a_source, a_row) = corpus.source_and_row(pair.a);
        let (b_source, b_row) = corpus.source_and_row(pair.b);
        let mut cells = vec![
            TableCell::Text(&a),
            TableCell::Text(&b),
            TableCell::Number(pair.similarity.get()),
            TableCell::Text(a_source),
            TableCell::Integer(a_row),
            TableCell::Text(b_source),
            TableCell::Integer(b_row),
        ];
        if corpus.plan.compares_forms() {
            let form = self.find_form(pair.a)?;
            cells.push(form.map_or(TableCell::Null, TableCell::Text));
        }
        self.table.push_row(&cells)
    }

    /// Returns the form of the first document of the next pair, which the second one has, too.
    fn find_form(&mut self, document: DocId) -> Result<Option<&'a str>> {
        if let Some((last, form)) = self.last_form
            && last == document
        {
            return Ok(form);
        }
        let form = self.corpus.find_form_name(document)?;
        self.last_form = Some((document, form));
        Ok(form)
    }

    fn prepare_table(self) -> Result<StagedOutput> {
        self.table.prepare_table()
    }
}
