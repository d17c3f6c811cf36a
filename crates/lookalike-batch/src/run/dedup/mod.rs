//! The dedup run: removes near-duplicates.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use lookalike::dedup::{self, DedupOutcome};
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike::{DocId, RecipeId, Threshold};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{
    AddedField, AddedFields, AddedValue, OutputRows, OutputTarget, RowChange, StagedOutput,
    TableCell, TableColumn, TableWriter, WriteOptions, check_kept, check_output, check_table,
    commit_all, prepare_kept,
};
use lookalike_io::source::RowPlace;

use crate::index::{RunIndex, RunIndexMemory, RunIndexSettings};
use crate::run::audit::{AuditReport, ReportedPairs};
use crate::run::corpus_rows::OpenInputs;
use crate::run::index_matches::{add_kept_documents, find_index_matches};
use crate::run::out_of_core::{self, SpillSizes};
use crate::run::person_decisions::apply_decisions;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::read_corpus::{ReadCorpus, RunObservers};
use crate::run::rejected::RejectedRows;
use crate::run::repeated_text::{self, RepeatedText, RepeatedTextAction};
use crate::run::report::{BadRowTally, MatchReportInputs, summary_to_json, write_match_report};
use crate::run::settings::{DedupOutputs, RunInputs, RunSettings};
use crate::run::summary::{ByRoute, DedupSummary, LargeCluster, SuspicionKind, SuspiciousCluster};
use crate::run::work_directory::{self, VerdictSteps, WorkDirectory, WorkSettings};

/// Removes near-duplicates. Of two documents that match, the earlier one in the total order is kept.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn run_dedup(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &DedupOutputs,
    progress: &dyn ProgressListener,
) -> Result<DedupSummary> {
    crate::run::run_in_pool(settings.threads, || {
        DedupSession::start_run(settings)?.dedup_inputs(inputs, outputs, progress)
    })
}

/// Removes near-duplicates as [`run_dedup`] does, with the same outputs, and keeps what is computed in a directory,
/// so that a run that was killed is continued.
///
/// # Errors
/// As [`run_dedup`], and if the directory holds something else than a run with the same inputs and settings. The
/// directory stays, and the run can be resumed after most errors, for example of a full disk.
pub fn run_resumable_dedup(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &DedupOutputs,
    work: &WorkSettings,
    progress: &dyn ProgressListener,
) -> Result<DedupSummary> {
    crate::run::run_in_pool(settings.threads, || {
        let mut session = DedupSession::start_run(settings)?;
        session.work = Some(work);
        session.dedup_inputs(inputs, outputs, progress)
    })
}

/// Removes near-duplicates as [`run_dedup`] does, where the documents of an index come before all others and count as
/// kept. The index receives the kept documents after the outputs have appeared.
///
/// # Errors
/// As [`run_dedup`], and if the index does not support the settings or cannot be changed. The index is then unchanged.
pub fn run_dedup_beside_index(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &DedupOutputs,
    index: &RunIndexSettings,
    progress: &dyn ProgressListener,
) -> Result<DedupSummary> {
    crate::run::run_in_pool(settings.threads, || {
        let mut session = DedupSession::start_run(settings)?;
        session.index = Some(index);
        session.dedup_inputs(inputs, outputs, progress)
    })
}

struct DedupSession<'a> {
    settings: &'a RunSettings,
    work: Option<&'a WorkSettings>,
    index: Option<&'a RunIndexSettings>,
    plan: MatchPlan,
    started: Instant,
    stages: Vec<(&'static str, f64)>,
}

impl<'a> DedupSession<'a> {
    fn start_run(settings: &'a RunSettings) -> Result<Self> {
        let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
        Ok(Self {
            settings,
            work: None,
            index: None,
            plan,
            started: Instant::now(),
            stages: Vec::new(),
        })
    }

    fn stage_done(&mut self, name: &'static str) {
        let before: f64 = self.stages.iter().map(|(_, seconds)| seconds).sum();
        self.stages
            .push((name, self.started.elapsed().as_secs_f64() - before));
    }

    fn dedup_inputs(
        mut self,
        paths: &RunInputs,
        outputs: &DedupOutputs,
        progress: &dyn ProgressListener,
    ) -> Result<DedupSummary> {
        let audited = self.settings.audit.map(|_| "audit");
        let decided = (!self.settings.decisions.is_empty()).then_some("decisions");
        let needs_all = audited.or(outputs.passages.map(|_| "passages")).or(decided);
        let has_index = self.index.is_some();
        let mut spill = out_of_core::plan_spilling(paths, self.settings, needs_all, has_index)?;
        let opened = OpenInputs::new(paths, self.settings)?;
        check_outputs(&opened, outputs)?;
        if outputs.passages.is_some() {
            repeated_text::check_settings(self.settings)?;
        }
        let mut index = self.open_index(outputs, &mut spill, progress)?;
        let work = self.open_work(&opened, spill.is_some())?;
        let work = work.as_ref();
        let without_outputs = DedupOutputs {
            components: outputs.components,
            passages: outputs.passages,
            ..DedupOutputs::default()
        };
        let is_written = work.is_some_and(|work| work.has_written(outputs));
        if let Some(work) = work {
            work.remove_interrupted_outputs(outputs);
        }
        let wanted = outputs;
        let outputs = if is_written {
            &without_outputs
        } else {
            outputs
        };
        let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
        let plan = self.plan;
        let bad_rows = BadRowTally::default();
        let reject = |inputs: &_, rows: &_| {
            bad_rows.add_rows(rows);
            rejected.push_rows(inputs, rows)
        };
        let observers = RunObservers {
            reject: &reject,
            work,
            spill,
        };
        let mut corpus =
            ReadCorpus::read_for_run(&opened, self.settings, &plan, observers, progress)?;
        corpus.tell_repeated_ids(self.settings, progress)?;
        let decisions = apply_decisions(&mut corpus, self.settings)?;
        self.stage_done("read");
        let mut known_matches = Vec::new();
        if let Some(index) = &index {
            known_matches = find_index_matches(&mut corpus, index, progress)?;
            self.stage_done("library");
        }
        progress.begin_stage(RunStage::Candidates, None);
        corpus.group_documents(true)?;
        let corpus = corpus;
        let total = corpus.len() as u64;
        let deciding = |done: usize| {
            if done == 0 {
                progress.begin_stage(RunStage::Decide, Some(total));
            }
            progress.advance_stage(done as u64);
        };
        // If verdicts are decided in row order, rows are copied while later verdicts are still open.
        let early = outputs.kept.as_ref().filter(|output| {
            let is_unchanged = !outputs.annotate && outputs.passages.is_none();
            let in_order = corpus.match_corpus().order.is_none() && is_unchanged;
            let is_decided_in_order = in_order && corpus.grouping().is_none();
            is_decided_in_order && self.settings.threads > 1 && output.appears_complete()
        });
        let verdicts_so_far = VerdictsSoFar::new(&corpus);
        let writing = AtomicBool::new(false);
        let copied = |rows| {
            if writing.load(Ordering::Relaxed) {
                progress.advance_stage(rows);
            }
        };
        let copy = |output: &OutputTarget| {
            let options = WriteOptions {
                change: RowChange::Unchanged,
                threads: self.settings.threads,
            };
            prepare_kept(&opened.inputs, &verdicts_so_far, output, &options, &copied)
        };
        let (outcome, components, prepared) = if let Some(grouping) = corpus.grouping() {
            let wanted = (&known_matches[..], outputs.components);
            let (outcome, components) =
                out_of_core::decide_groups(&corpus, grouping, wanted, &deciding)?;
            self.stage_done("match");
            (outcome, components, None)
        } else {
            std::thread::scope(|scope| -> Result<_> {
                let copying = early.map(|output| scope.spawn(|| copy(output)));
                let ending = verdicts_so_far.end_on_drop();
                let before = (work, &known_matches[..]);
                let outcome = decide_documents(&corpus, before, &|decided, removals| {
                    deciding(decided);
                    verdicts_so_far.take_removals(decided, removals);
                })?;
                drop(ending);
                let components = if outputs.components {
                    Some(dedup::find_components(&corpus.match_corpus(), &outcome)?)
                } else {
                    None
                };
                self.stage_done("match");
                let prepared = copying.map(|copying| {
                    progress.begin_stage(RunStage::Write, Some(corpus.documents.len() as u64));
                    writing.store(true, Ordering::Relaxed);
                    copying
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                Ok((outcome, components, prepared.transpose()?))
            })?
        };
        let decided = DecidedRun {
            corpus: &corpus,
            opened: &opened,
            outcome: &outcome,
            components,
            prepared,
            bad_rows: &bad_rows,
        };
        let (mut summary, staged) = self.stage_results(decided, rejected, outputs, progress)?;
        summary.decisions = decisions;
        if let Some(index) = &mut index {
            let verdicts = DocumentVerdicts::new(&corpus, &outcome, None);
            let is_kept = |document| verdicts.removal_of(document).is_none();
            add_kept_documents(&corpus, index, self.settings, is_kept, progress)?;
        }
        commit_all(staged)?;
        summary.library = index.map(RunIndex::finish_run).transpose()?;
        if let Some(work) = work {
            work.finish_run(work_directory::list_outputs(wanted).unwrap_or_default())?;
        }
        Ok(self.finish_summary(summary))
    }

    /// Completes all outputs, which are then still to be put in place.
    fn stage_results(
        &mut self,
        decided: DecidedRun<'_>,
        rejected: RejectedRows,
        outputs: &DedupOutputs,
        progress: &dyn ProgressListener,
    ) -> Result<(DedupSummary, Vec<StagedOutput>)> {
        let DecidedRun {
            corpus,
            opened,
            outcome,
            components,
            prepared,
            bad_rows,
        } = decided;
        let verdicts = DocumentVerdicts::new(corpus, outcome, components);
        let (repeated, cut_table) =
            verdicts.find_repeated_text(outputs, opened, self.settings, progress)?;
        if repeated.is_some() {
            self.stage_done("passages");
        }
        // Kept rows come last, because standard output and pipes cannot take them back.
        let mut staged = verdicts.write_tables(outputs, opened)?;
        staged.extend(cut_table);
        let (rejected, rejected_rows) = rejected.prepare_output()?;
        staged.extend(rejected_rows);
        let kept = match prepared {
            Some(kept) => Some(kept),
            None => {
                verdicts.write_kept(opened, outputs, repeated.as_ref(), self.settings, progress)?
            }
        };
        let mut summary = self.make_summary(corpus, outcome, &verdicts, rejected)?;
        summary.passages = repeated.map(|it| it.summary);
        let report = outputs.report.as_ref().map(|wanted| {
            let inputs = MatchReportInputs {
                kind: "dedup",
                corpus,
                removals: &outcome.removals,
                settings: self.settings,
                plan: &self.plan,
                bad_rows,
                summary: summary_to_json(&summary),
                counted: None,
            };
            write_match_report(&inputs, wanted)
        });
        staged.extend(report.transpose()?);
        staged.extend(kept);
        Ok((summary, staged))
    }

    fn finish_summary(mut self, mut summary: DedupSummary) -> DedupSummary {
        self.stage_done("write");
        summary.seconds = self.started.elapsed().as_secs_f64();
        summary.stages = self.stages;
        summary
    }

    /// Opens the index of the run, if it has one, and takes its memory from a run out of core.
    fn open_index(
        &self,
        outputs: &DedupOutputs,
        spill: &mut Option<SpillSizes>,
        progress: &dyn ProgressListener,
    ) -> Result<Option<RunIndex>> {
        let Some(index) = self.index else {
            return Ok(None);
        };
        check_index_options(self.settings, outputs)?;
        progress.begin_stage(RunStage::Open, None);
        let temporary = &self.settings.temporary;
        let memory = spill.map(|sizes| RunIndexMemory {
            bytes: sizes.index_bytes(),
            directory: temporary.clone().unwrap_or_else(std::env::temp_dir),
        });
        let index = RunIndex::open(index, self.settings, &self.plan, memory)?;
        if let Some(sizes) = spill {
            *sizes = sizes.beside_index(index.row_bytes(self.settings.threads))?;
        }
        list_outputs(outputs).try_for_each(|output| index.check_output(output))?;
        Ok(Some(index))
    }

    /// Opens the directory of the run, if it has one.
    fn open_work(&self, opened: &OpenInputs, out_of_core: bool) -> Result<Option<WorkDirectory>> {
        let Some(work) = self.work else {
            return Ok(None);
        };
        if self.settings.audit.is_some() {
            return Err(Error::usage_error(
                "--audit compares texts while they are read, which a resumed run does not do again: leave out \
                 --audit or --work",
            ));
        }
        WorkDirectory::open_run(work, (self.settings, out_of_core), opened).map(Some)
    }

    fn make_summary(
        &self,
        corpus: &ReadCorpus<'_>,
        outcome: &DedupOutcome,
        verdicts: &DocumentVerdicts<'_>,
        rejected: u64,
    ) -> Result<DedupSummary> {
        let documents = corpus.documents.len() as u64;
        let audit = verdicts.audit_report()?;
        let removed = outcome.removals.len() as u64;
        let id: RecipeId = corpus.recipe_id();
        let clusters = verdicts.list_clusters();
        Ok(DedupSummary {
            documents,
            against: corpus.against.len() as u64,
            library: None,
            repeated_ids: corpus.repeated_ids(),
            shared_ids: corpus.shared_ids(),
            mixed_values: corpus.documents.mixed_values(),
            kept: documents - removed,
            removed,
            clusters: clusters.len() as u64,
            components: verdicts.component_count(),
            rejected,
            bytes: corpus.documents.bytes,
            method: self.plan.match_settings().method.name(),
            measure: self.plan.match_settings().measure.name(),
            candidate_threshold: self.plan.separate_candidate_threshold().map(Threshold::get),
            threshold: self.plan.threshold().get(),
            recipe: self.settings.recipe.name.clone(),
            recipe_id: id.to_string(),
            by_route: count_by_route(outcome),
            states: corpus.text_states(),
            largest: largest_clusters(corpus, &clusters)?,
            suspicious: suspicious(corpus, &clusters, verdicts)?,
            histogram: similarities(outcome).collect(),
            audit,
            decisions: None,
            passages: None,
            spilled: corpus.spilled_summary(),
            seconds: self.started.elapsed().as_secs_f64(),
            stages: self.stages.clone(),
        })
    }
}

/// A run whose verdicts are decided.
struct DecidedRun<'r> {
    corpus: &'r ReadCorpus<'r>,
    opened: &'r OpenInputs,
    outcome: &'r DedupOutcome,
    components: Option<Vec<DocId>>,
    /// The kept rows, if they were written meanwhile.
    prepared: Option<StagedOutput>,
    bad_rows: &'r BadRowTally,
}

/// Decides all documents that have no verdict in the directory of the run, and stores the new verdicts there. Calls
/// `told` with all of them, as [`dedup::continue_verdicts`] does.
fn decide_documents(
    corpus: &ReadCorpus<'_>,
    (work, known_matches): (Option<&WorkDirectory>, &[dedup::DocumentRemoval]),
    told: &(dyn Fn(usize, &[dedup::DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    let Some(work) = work else {
        let corpus = corpus.match_corpus();
        return Ok(dedup::follow_verdicts_beside_index(
            &corpus,
            known_matches,
            told,
        )?);
    };
    let (mut steps, prefix) = VerdictSteps::read_prefix(work, corpus.len())?;
    let mut stored = Ok(());
    let outcome = dedup::continue_verdicts(&corpus.match_corpus(), prefix, |decided, removals| {
        told(decided, removals);
        stored = steps.take_removals(decided, removals);
        match stored {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    stored?;
    steps.finish_steps()?;
    Ok(outcome)
}

fn check_outputs(opened: &OpenInputs, outputs: &DedupOutputs) -> Result<()> {
    if let Some(output) = &outputs.kept {
        let marks = outputs
            .passages
            .is_some_and(|it| it.action == RepeatedTextAction::Mark);
        check_kept(&opened.inputs, output, outputs.annotate || marks)?;
    }
    let tables = [&outputs.removed, &outputs.clusters, &outputs.cuts];
    for table in tables.into_iter().flatten() {
        check_table(table)?;
    }
    for output in list_outputs(outputs) {
        check_output(output, &opened.inputs)?;
        if let Some(against) = &opened.against {
            check_output(output, against)?;
        }
    }
    Ok(())
}

/// Returns the outputs that are wanted.
fn list_outputs(outputs: &DedupOutputs) -> impl Iterator<Item = &OutputTarget> {
    let all = [
        &outputs.kept,
        &outputs.removed,
        &outputs.clusters,
        &outputs.cuts,
        &outputs.rejected,
    ];
    let report = outputs.report.as_ref().map(|it| &it.target);
    all.into_iter().flatten().chain(report)
}

/// Refuses what an index has no texts or pairs for.
fn check_index_options(settings: &RunSettings, outputs: &DedupOutputs) -> Result<()> {
    let refuse = |option: &str, reason: &str| {
        Err(Error::usage_error(format!(
            "{option} cannot be combined with --library, {reason}: leave {option} out, or give the documents \
             themselves with --against"
        )))
    };
    if settings.audit.is_some() {
        return refuse(
            "--audit",
            "because the audit compares a sample with all documents, and those of a library are not read",
        );
    }
    if outputs.components {
        return refuse(
            "--components",
            "because only the best match of a document is taken from the library, and components connect all",
        );
    }
    if outputs.report.is_some() {
        return refuse(
            "--report",
            "because the report shows texts, and those of a library are not read",
        );
    }
    if !settings.decisions.is_empty() {
        return refuse(
            "--decisions",
            "because decisions are about texts, and those of a library are not read",
        );
    }
    if outputs.passages.is_some() {
        return refuse(
            "--passages",
            "because repeated text is searched in the texts of all earlier documents, which are not read",
        );
    }
    Ok(())
}

/// The verdicts of all documents, by document.
struct DocumentVerdicts<'a> {
    corpus: &'a ReadCorpus<'a>,
    outcome: &'a DedupOutcome,
    /// Index of each document's removal in the outcome, or [`KEPT`].
    removal: Vec<u32>,
    components: Option<Vec<DocId>>,
    threshold: f64,
}

const KEPT: u32 = u32::MAX;

/// The cluster of documents for which nothing was removed.
const NO_CLUSTER: u32 = u32::MAX;

/// The fields of `--annotate`.
const ANNOTATIONS: [AddedField; 3] = [
    AddedField {
        name: "cluster",
        is_number: false,
    },
    AddedField {
        name: "duplicate_of",
        is_number: false,
    },
    AddedField {
        name: "similarity",
        is_number: true,
    },
];

/// The field of `--passages mark`.
const MARKS: [AddedField; 1] = [AddedField {
    name: "passages",
    is_number: false,
}];

/// A kept document and the documents that were removed for it.
#[derive(Clone, Copy)]
struct VerdictCluster {
    kept: DocId,
    removed: u64,
    least: f64,
}

impl<'a> DocumentVerdicts<'a> {
    fn new(
        corpus: &'a ReadCorpus<'a>,
        outcome: &'a DedupOutcome,
        components: Option<Vec<DocId>>,
    ) -> Self {
        let mut removal = vec![KEPT; corpus.len()];
        for (at, removed) in outcome.removals.iter().enumerate() {
            removal[removed.document.index()] = at as u32;
        }
        let threshold = corpus.plan.threshold().get();
        Self {
            corpus,
            outcome,
            removal,
            components,
            threshold,
        }
    }

    fn removal_of(&self, document: DocId) -> Option<&dedup::DocumentRemoval> {
        match self.removal[document.index()] {
            KEPT => None,
            at => Some(&self.outcome.removals[at as usize]),
        }
    }

    /// Returns the documents of the inputs, without the known ones, in reading order.
    fn judged_documents(&self) -> impl Iterator<Item = DocId> + '_ {
        (self.corpus.known_count()..self.corpus.len()).map(|at| DocId(at as u32))
    }

    /// Returns the clusters by size, largest first, then in reading order.
    fn list_clusters(&self) -> Vec<VerdictCluster> {
        let mut at_kept = vec![NO_CLUSTER; self.corpus.len()];
        let mut clusters: Vec<VerdictCluster> = Vec::new();
        for removal in &self.outcome.removals {
            let kept = removal.kept.with;
            let at = &mut at_kept[kept.index()];
            if *at == NO_CLUSTER {
                *at = clusters.len() as u32;
                clusters.push(VerdictCluster {
                    kept,
                    removed: 0,
                    least: 1.0,
                });
            }
            let cluster = &mut clusters[*at as usize];
            cluster.removed += 1;
            cluster.least = cluster.least.min(removal.kept.similarity.get());
        }
        clusters.sort_unstable_by_key(|cluster| (std::cmp::Reverse(cluster.removed), cluster.kept));
        clusters
    }

    /// Returns the report of the audit on these verdicts, if there is one.
    fn audit_report(&self) -> Result<Option<AuditReport>> {
        let mut reported = ReportedPairs::default();
        let measured = |it: &&dedup::DocumentRemoval| it.kept.route != Route::Decision;
        for removal in self.outcome.removals.iter().filter(measured) {
            reported.offer_pair(removal.document, removal.kept.with);
        }
        let kept = |document| self.removal_of(document).is_none();
        self.corpus.audit_report(reported, Some(&kept))
    }

    fn component_count(&self) -> Option<u64> {
        let components = self.components.as_ref()?;
        let others = components
            .iter()
            .enumerate()
            .filter(|(at, first)| first.index() != *at);
        let mut firsts: Vec<_> = others.map(|(_, first)| *first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Some(firsts.len() as u64)
    }

    fn write_tables(
        &self,
        outputs: &DedupOutputs,
        opened: &OpenInputs,
    ) -> Result<Vec<StagedOutput>> {
        let removed = outputs.removed.as_ref();
        let removed =
            removed.map(|output| StagedOutput::even_if_unread(self.write_removed(output, opened)));
        let removed = removed.transpose()?;
        let clusters = outputs.clusters.as_ref();
        let clusters = clusters
            .map(|output| StagedOutput::even_if_unread(self.write_clusters(output, opened)));
        Ok(removed.into_iter().chain(clusters.transpose()?).collect())
    }

    /// Finds the text of kept documents that stands in earlier ones, if it is wanted.
    fn find_repeated_text(
        &self,
        outputs: &DedupOutputs,
        opened: &OpenInputs,
        settings: &RunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<(Option<RepeatedText>, Option<StagedOutput>)> {
        let Some(wanted) = &outputs.passages else {
            return Ok((None, None));
        };
        let documents = (0..self.corpus.len() as u32).map(DocId);
        let kept: Vec<DocId> = documents
            .filter(|it| self.removal_of(*it).is_none())
            .collect();
        let table = outputs.cuts.as_ref().map(|output| (output, opened));
        let (repeated, table) =
            RepeatedText::find_in_corpus(self.corpus, &kept, (wanted, settings), table, progress)?;
        Ok((Some(repeated), table))
    }

    /// Writes kept rows.
    fn write_kept(
        &self,
        opened: &OpenInputs,
        outputs: &DedupOutputs,
        repeated: Option<&RepeatedText>,
        settings: &RunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<Option<StagedOutput>> {
        let Some(output) = &outputs.kept else {
            return Ok(None);
        };
        progress.begin_stage(RunStage::Write, Some(self.corpus.documents.len() as u64));
        let document = |index: usize| DocId((self.corpus.known_count() + index) as u32);
        let annotation = |index: usize| self.annotation(document(index));
        let annotations = AddedFields {
            fields: &ANNOTATIONS,
            values: &annotation,
        };
        let mark = |index: usize| {
            Ok(repeated
                .map(|it| it.marked_value(document(index)))
                .into_iter()
                .collect())
        };
        let marks = AddedFields {
            fields: &MARKS,
            values: &mark,
        };
        let left_out = |index: usize| repeated.and_then(|it| it.left_out(document(index)));
        let options = WriteOptions {
            change: match outputs.passages.map(|it| it.action) {
                Some(RepeatedTextAction::Mark) => RowChange::AddFields(&marks),
                Some(RepeatedTextAction::Remove) => RowChange::CutText(&left_out),
                None if outputs.annotate => RowChange::AddFields(&annotations),
                None => RowChange::Unchanged,
            },
            threads: settings.threads,
        };
        let rows = VerdictRows {
            verdicts: self,
            all: outputs.annotate,
        };
        let advance = |done| progress.advance_stage(done);
        let prepared = prepare_kept(&opened.inputs, &rows, output, &options, &advance);
        StagedOutput::even_if_unread(prepared).map(Some)
    }

    fn write_removed(&self, output: &OutputTarget, opened: &OpenInputs) -> Result<StagedOutput> {
        let columns = [
            TableColumn::Text("id"),
            TableColumn::Text("kept"),
            TableColumn::Number("similarity"),
            TableColumn::Text("method"),
            TableColumn::Number("threshold"),
            TableColumn::Text("cluster"),
            TableColumn::Text("source"),
            TableColumn::Integer("row"),
            TableColumn::Text("kept_source"),
            TableColumn::Integer("kept_row"),
        ];
        let mut table = TableWriter::create_table(output, &columns, Some(&opened.inputs))?;
        for document in self.judged_documents() {
            let Some(removal) = self.removal_of(document) else {
                continue;
            };
            let kept = self.corpus.document_id(removal.kept.with)?;
            let (source, row) = self.corpus.source_and_row(document);
            let (kept_source, kept_row) = self.corpus.source_and_row(removal.kept.with);
            table.push_row(&[
                TableCell::Text(&self.corpus.document_id(document)?),
                TableCell::Text(&kept),
                TableCell::Number(removal.kept.similarity.get()),
                TableCell::Text(removal.kept.route.name()),
                TableCell::Number(self.threshold),
                TableCell::Text(&kept),
                TableCell::Text(source),
                TableCell::Integer(row),
                TableCell::Text(kept_source),
                TableCell::Integer(kept_row),
            ])?;
        }
        table.prepare_table()
    }

    fn write_clusters(&self, output: &OutputTarget, opened: &OpenInputs) -> Result<StagedOutput> {
        let mut columns = vec![
            TableColumn::Text("id"),
            TableColumn::Text("cluster"),
            TableColumn::Text("representative"),
            TableColumn::Number("similarity"),
            TableColumn::Bool("kept"),
            TableColumn::Text("source"),
            TableColumn::Integer("row"),
        ];
        columns.extend(
            self.components
                .as_ref()
                .map(|_| TableColumn::Text("component")),
        );
        let mut represents = vec![false; self.corpus.len()];
        for removal in &self.outcome.removals {
            represents[removal.kept.with.index()] = true;
        }
        // A document may be alone in its cluster but share a component with others.
        let mut connected = vec![0u32; self.components.as_ref().map_or(0, Vec::len)];
        for component in self.components.iter().flatten() {
            connected[component.index()] += 1;
        }
        let is_connected = |document: DocId| {
            let component = self.components.as_ref().map(|it| it[document.index()]);
            component.is_some_and(|component| connected[component.index()] > 1)
        };
        let mut table = TableWriter::create_table(output, &columns, Some(&opened.inputs))?;
        for document in (0..self.corpus.len()).map(|at| DocId(at as u32)) {
            let removal = self.removal_of(document);
            if removal.is_none() && !represents[document.index()] && !is_connected(document) {
                continue;
            }
            let kept = removal.map_or(document, |removal| removal.kept.with);
            let similarity = removal.map_or(1.0, |removal| removal.kept.similarity.get());
            let (id, cluster) = (
                self.corpus.document_id(document)?,
                self.corpus.document_id(kept)?,
            );
            let (source, row) = self.corpus.source_and_row(document);
            let mut cells = vec![
                TableCell::Text(&id),
                TableCell::Text(&cluster),
                TableCell::Text(&cluster),
                TableCell::Number(similarity),
                TableCell::Bool(removal.is_none()),
                TableCell::Text(source),
                TableCell::Integer(row),
            ];
            let component = match &self.components {
                Some(components) => Some(self.corpus.document_id(components[document.index()])?),
                None => None,
            };
            cells.extend(component.as_deref().map(TableCell::Text));
            table.push_row(&cells)?;
        }
        table.prepare_table()
    }

    /// Returns the values of `cluster`, `duplicate_of` and `similarity`.
    fn annotation(&self, document: DocId) -> Result<Vec<AddedValue>> {
        let removal = self.removal_of(document);
        let kept = removal.map_or(document, |removal| removal.kept.with);
        let cluster = AddedValue::Text(self.corpus.document_id(kept)?.into_owned());
        Ok(match removal {
            Some(removal) => {
                let similarity = AddedValue::Number(removal.kept.similarity.get());
                vec![cluster.clone(), cluster, similarity]
            }
            None => vec![cluster, AddedValue::Null, AddedValue::Null],
        })
    }
}

/// The rows of the inputs with the verdicts decided so far. Asking for a later verdict blocks until it
/// is decided.
struct VerdictsSoFar<'a> {
    corpus: &'a ReadCorpus<'a>,
    removed: Vec<AtomicBool>,
    /// Number of documents with a verdict.
    decided: AtomicUsize,
    /// The lock for waiting until `decided` grows.
    waiting: Mutex<()>,
    grown: Condvar,
}

impl<'a> VerdictsSoFar<'a> {
    fn new(corpus: &'a ReadCorpus<'a>) -> Self {
        Self {
            corpus,
            removed: (0..corpus.len()).map(|_| AtomicBool::new(false)).collect(),
            decided: AtomicUsize::new(0),
            waiting: Mutex::new(()),
            grown: Condvar::new(),
        }
    }

    fn take_removals(&self, decided: usize, removals: &[dedup::DocumentRemoval]) {
        for removal in removals {
            self.removed[removal.document.index()].store(true, Ordering::Relaxed);
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.decided.store(decided, Ordering::Release);
        drop(waiting);
        self.grown.notify_all();
    }

    /// Returns a guard that ends all waiting when it is dropped, because no more verdicts follow.
    fn end_on_drop(&self) -> impl Drop + '_ {
        struct EndOnDrop<'a>(&'a VerdictsSoFar<'a>);
        impl Drop for EndOnDrop<'_> {
            fn drop(&mut self) {
                self.0.take_removals(usize::MAX, &[]);
            }
        }
        EndOnDrop(self)
    }
}

impl OutputRows for VerdictsSoFar<'_> {
    fn len(&self) -> usize {
        self.corpus.documents.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.corpus.documents.place_of(index)
    }

    fn row_number(&self, index: usize) -> u64 {
        self.corpus.documents.row_number(index)
    }

    fn is_kept(&self, index: usize) -> bool {
        let document = self.corpus.known_count() + index;
        let undecided = || self.decided.load(Ordering::Acquire) <= document;
        if undecided() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            while undecided() {
                waiting = self
                    .grown
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        !self.removed[document].load(Ordering::Relaxed)
    }
}

/// The rows of the inputs with their final verdicts.
struct VerdictRows<'a> {
    verdicts: &'a DocumentVerdicts<'a>,
    all: bool,
}

impl OutputRows for VerdictRows<'_> {
    fn len(&self) -> usize {
        self.verdicts.corpus.documents.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.verdicts.corpus.documents.place_of(index)
    }

    fn row_number(&self, index: usize) -> u64 {
        self.verdicts.corpus.documents.row_number(index)
    }

    fn is_kept(&self, index: usize) -> bool {
        self.all || self.verdicts.removal[self.verdicts.corpus.known_count() + index] == KEPT
    }
}

fn count_by_route(outcome: &DedupOutcome) -> ByRoute {
    let mut counts = ByRoute::default();
    for removal in &outcome.removals {
        counts.count_removal(removal.kept.route);
    }
    counts
}

/// Largest number of clusters that a summary names.
const LARGEST: usize = 10;

fn largest_clusters(
    corpus: &ReadCorpus<'_>,
    clusters: &[VerdictCluster],
) -> Result<Vec<LargeCluster>> {
    let named = clusters.iter().take(LARGEST).map(|cluster| {
        Ok(LargeCluster {
            cluster: corpus.document_id(cluster.kept)?.into_owned(),
            documents: cluster.removed + 1,
            least_similarity: cluster.least,
        })
    });
    named.collect()
}

/// Fewest removed documents of a cluster that is reported as suspicious. They must also be more than 2
/// % of all documents.
const GIANT: u64 = 100;

fn suspicious(
    corpus: &ReadCorpus<'_>,
    clusters: &[VerdictCluster],
    verdicts: &DocumentVerdicts<'_>,
) -> Result<Vec<SuspiciousCluster>> {
    let documents = corpus.documents.len() as u64;
    let giant =
        |cluster: &&VerdictCluster| cluster.removed >= GIANT && 50 * cluster.removed > documents;
    let mut found = Vec::new();
    for cluster in clusters.iter().filter(giant).take(LARGEST) {
        found.push(SuspiciousCluster {
            cluster: corpus.document_id(cluster.kept)?.into_owned(),
            kind: SuspicionKind::Giant,
            count: cluster.removed + 1,
            reason: format!(
                "giant: {} of {documents} documents; most of their text may be a template or \
                 boilerplate",
                cluster.removed + 1
            ),
        });
    }
    for (component, chained) in verdicts.stretched_components().into_iter().take(LARGEST) {
        found.push(SuspiciousCluster {
            cluster: corpus.document_id(component)?.into_owned(),
            kind: SuspicionKind::Stretched,
            count: chained,
            reason: format!(
                "stretched: its component connects {chained} clusters by chains of matches, and \
                 their representatives are below the threshold with one another"
            ),
        });
    }
    Ok(found)
}

/// Smallest number of kept documents in a component that is reported as stretched.
const STRETCHED: u64 = 4;

impl DocumentVerdicts<'_> {
    /// Returns components that connect many kept documents, largest first.
    fn stretched_components(&self) -> Vec<(DocId, u64)> {
        let Some(components) = &self.components else {
            return Vec::new();
        };
        let mut kept = vec![0u64; components.len()];
        for (at, component) in components.iter().enumerate() {
            if self.removal[at] == KEPT {
                kept[component.index()] += 1;
            }
        }
        let many = |(_, count): &(DocId, u64)| *count >= STRETCHED;
        let mut found: Vec<_> = (0u32..).map(DocId).zip(kept).filter(many).collect();
        found.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        found
    }
}

fn similarities(outcome: &DedupOutcome) -> impl Iterator<Item = lookalike::Similarity> {
    let removals = outcome.removals.iter();
    removals.map(|removal| removal.kept.similarity)
}
