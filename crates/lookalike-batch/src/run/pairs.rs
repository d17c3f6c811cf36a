//! The pairs run: finds all pairs of near-duplicates.

use std::time::Instant;

use lookalike::Threshold;
use lookalike::matching::{self, Pair};
use lookalike::plan::Plan;

use super::audit::Reported;
use super::corpus::{Opened, ReadCorpus};
use super::progress::{Progress, Stage};
use super::rejected::Rejected;
use super::settings::{PairsOutputs, RunInputs, Settings};
use super::summary::{Histogram, PairsSummary};
use crate::error::{ErrorKind, Result};
use crate::rule::{measure_name, method_name};
use crate::sink::{Cell, Column, TableWriter, check_output, commit_all};

/// Finds all pairs of near-duplicates and writes them ordered by the position of the earlier document,
/// then of the later one. With documents to compare against, each pair has one of these and one other
/// document. [`PairsOutputs::copies`] selects the pairs of equal texts.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn pairs(
    inputs: &RunInputs,
    settings: &Settings,
    outputs: &PairsOutputs,
    progress: &dyn Progress,
) -> Result<PairsSummary> {
    super::in_pool(settings.threads, || {
        run(inputs, settings, outputs, progress)
    })
}

fn run(
    paths: &RunInputs,
    settings: &Settings,
    outputs: &PairsOutputs,
    progress: &dyn Progress,
) -> Result<PairsSummary> {
    let started = Instant::now();
    let plan = Plan::new(&settings.recipe, settings.matching)?;
    let opened = Opened::new(paths, settings)?;
    for output in [Some(&outputs.pairs), outputs.rejected.as_ref()]
        .into_iter()
        .flatten()
    {
        check_output(output, &opened.inputs)?;
    }
    let rejected = Rejected::create(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, row: &_| rejected.push(inputs, row);
    let corpus = ReadCorpus::read(&opened, settings, &plan, &reject, progress)?;
    corpus.tell_repeated_ids(settings, progress)?;
    progress.begin(Stage::Candidates, None);
    let columns = [
        Column::Text("a"),
        Column::Text("b"),
        Column::Number("similarity"),
        Column::Text("a_source"),
        Column::Integer("a_row"),
        Column::Text("b_source"),
        Column::Integer("b_row"),
    ];
    let mut table = TableWriter::create(&outputs.pairs, &columns, Some(&opened.inputs))?;
    let mut written = 0;
    let mut reported = Reported::default();
    let mut histogram = Histogram::default();
    let total = corpus.len() as u64;
    let deciding = |done: usize| {
        if done == 0 {
            progress.begin(Stage::Decide, Some(total));
        }
        progress.advance(done as u64);
    };
    let write = |pair: Pair| {
        written += 1;
        reported.offer(pair.a, pair.b);
        histogram.take(pair.similarity);
        let (a, b) = (corpus.id(pair.a)?, corpus.id(pair.b)?);
        let [(a_source, a_row), (b_source, b_row)] =
            [pair.a, pair.b].map(|it| corpus.source_of(it));
        table.push(&[
            Cell::Text(&a),
            Cell::Text(&b),
            Cell::Number(pair.similarity.get()),
            Cell::Text(a_source),
            Cell::Integer(a_row),
            Cell::Text(b_source),
            Cell::Integer(b_row),
        ])
    };
    let equal = matching::find_pairs(&corpus.corpus(), outputs.copies, write, &deciding);
    let prepared = equal.and_then(|equal| Ok((equal, table.prepare()?)));
    let (rejected, bad_rows) = rejected.prepare()?;
    let (equal, table) = match prepared {
        Ok((equal, table)) => (equal, Some(table)),
        // The reader of the pairs has closed the pipe, but the rejected rows are still written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            commit_all(bad_rows)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    commit_all(table.into_iter().chain(bad_rows))?;
    let audit = corpus.audited(reported, None)?;
    Ok(PairsSummary {
        documents: corpus.documents.len() as u64,
        pairs: written,
        equal: equal as u64,
        repeated_ids: corpus.repeated_ids(),
        rejected,
        bytes: corpus.documents.bytes,
        histogram,
        audit,
        seconds: started.elapsed().as_secs_f64(),
        method: method_name(plan.settings().method),
        measure: measure_name(plan.settings().measure),
        candidates_from: plan.candidates_from().map(Threshold::get),
        threshold: plan.threshold().get(),
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.id().to_string(),
    })
}
