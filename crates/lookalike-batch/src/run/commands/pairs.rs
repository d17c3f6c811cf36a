//! The pairs run: finds all pairs of near-duplicates.

use std::time::Instant;

use lookalike::Threshold;
use lookalike::dedup::{self, MatchingPair};
use lookalike::plan::MatchPlan;
use lookalike_io::error::{ErrorKind, Result};
use lookalike_io::sink::{TableCell, TableColumn, TableWriter, check_output, commit_all};

use crate::run::commands::run_outputs::PairsOutputs;
use crate::run::commands::summary::PairsSummary;
use crate::run::execution::audit::report::ReportedPairs;
use crate::run::execution::out_of_core;
use crate::run::execution::read_corpus::{ReadCorpus, RunObservers};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_rows::OpenInputs;
use crate::run::reading::rejected_rows::RejectedRows;
use crate::run::report::bad_rows::BadRowTally;
use crate::run::report::band_sample::PairSampler;
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
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let spill =
        out_of_core::plan_spilling(paths, settings, settings.audit.map(|_| "audit"), false)?;
    let opened = OpenInputs::new(paths, settings)?;
    let report = outputs.report.as_ref().map(|it| &it.target);
    for output in [outputs.pairs.as_ref(), outputs.rejected.as_ref(), report]
        .into_iter()
        .flatten()
    {
        check_output(output, &opened.inputs)?;
    }
    let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
    let bad_rows = BadRowTally::default();
    let reject = |inputs: &_, rows: &_| {
        bad_rows.add_rows(rows);
        rejected.push_rows(inputs, rows)
    };
    let mut reported_sample = outputs.report.as_ref().map(|_| PairSample::default());
    let observers = RunObservers {
        reject: &reject,
        work: None,
        spill,
    };
    let mut corpus = ReadCorpus::read_for_run(&opened, settings, &plan, observers, progress)?;
    corpus.tell_repeated_ids(settings, progress)?;
    progress.begin_stage(RunStage::Candidates, None);
    corpus.group_documents(false)?;
    let corpus = corpus;
    let columns = [
        TableColumn::Text("a"),
        TableColumn::Text("b"),
        TableColumn::Number("similarity"),
        TableColumn::Text("a_source"),
        TableColumn::Integer("a_row"),
        TableColumn::Text("b_source"),
        TableColumn::Integer("b_row"),
    ];
    let create = |place| TableWriter::create_table(place, &columns, Some(&opened.inputs));
    let mut table = outputs.pairs.as_ref().map(create).transpose()?;
    let mut sampler = outputs.sample.map(PairSampler::new);
    let mut written = 0;
    let mut reported = ReportedPairs::default();
    let mut histogram = SimilarityHistogram::default();
    let total = corpus.len() as u64;
    let deciding = |done: usize| {
        if done == 0 {
            progress.begin_stage(RunStage::Decide, Some(total));
        }
        progress.advance_stage(done as u64);
    };
    let write = |pair: MatchingPair| {
        written += 1;
        if let Some(sample) = &mut reported_sample {
            sample.offer_pair(&pair);
        }
        reported.offer_pair(pair.a, pair.b);
        histogram.add_similarity(pair.similarity);
        if let Some(sampler) = &mut sampler {
            sampler.offer_pair(pair);
        }
        let Some(table) = &mut table else {
            return Ok(());
        };
        let (a, b) = (corpus.document_id(pair.a)?, corpus.document_id(pair.b)?);
        let [(a_source, a_row), (b_source, b_row)] =
            [pair.a, pair.b].map(|it| corpus.source_and_row(it));
        table.push_row(&[
            TableCell::Text(&a),
            TableCell::Text(&b),
            TableCell::Number(pair.similarity.get()),
            TableCell::Text(a_source),
            TableCell::Integer(a_row),
            TableCell::Text(b_source),
            TableCell::Integer(b_row),
        ])
    };
    let copies = outputs.copies;
    let equal = match corpus.grouping() {
        Some(grouping) => {
            out_of_core::find_pairs_of_groups(&corpus, grouping, copies, write, &deciding)
        }
        None => dedup::find_pairs(&corpus.match_corpus(), copies, write, &deciding),
    };
    let prepare = |equal| {
        let table = table.map(TableWriter::prepare_table).transpose()?;
        let describe = |sampler: PairSampler| {
            sampler.describe_bands(&histogram, plan.threshold().get(), &corpus)
        };
        Ok((equal, table, sampler.map(describe).transpose()?))
    };
    let prepared = equal.and_then(prepare);
    let (rejected, rejected_rows) = rejected.prepare_output()?;
    let (equal, table, sample) = match prepared {
        Ok(prepared) => prepared,
        // The reader of the pairs has closed the pipe, but the rejected rows are still written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            commit_all(rejected_rows)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let audit = corpus.audit_report(reported, None)?;
    let mut summary = PairsSummary {
        documents: corpus.documents.len() as u64,
        pairs: written,
        equal_texts: equal as u64,
        repeated_ids: corpus.repeated_ids(),
        rejected,
        bytes: corpus.documents.bytes,
        histogram,
        sample,
        audit,
        spilled: corpus.spilled_summary(),
        seconds: started.elapsed().as_secs_f64(),
        method: plan.match_settings().method.name(),
        measure: plan.match_settings().measure.name(),
        candidate_threshold: plan.separate_candidate_threshold().map(Threshold::get),
        threshold: plan.threshold().get(),
        recipe: settings.recipe.name.clone(),
        recipe_id: corpus.recipe_id().to_string(),
    };
    let report = outputs.report.as_ref().zip(reported_sample);
    let report = report.map(|(wanted, sample)| {
        let (total, similarities, removals) = sample.into_parts();
        let inputs = MatchReportInputs {
            kind: "pairs",
            corpus: &corpus,
            removals: &removals,
            settings,
            plan: &plan,
            bad_rows: &bad_rows,
            summary: summary_to_json(&summary),
            counted: Some((total, similarities)),
        };
        write_match_report(&inputs, wanted)
    });
    let outputs = table.into_iter().chain(rejected_rows);
    commit_all(outputs.chain(report.transpose()?))?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}
