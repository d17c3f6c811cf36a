//! The dedup run: removes near-duplicates.

pub(crate) mod copy_counts;
pub(crate) mod kept_members;
mod opening;
mod summary;
mod tables;
mod verdicts;
mod verdicts_so_far;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike::plan::MatchPlan;
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{
    OutputTarget, RowChange, StagedOutput, WriteOptions, commit_all, prepare_kept,
};

use self::copy_counts::CopyCounts;
use self::opening::{OpenedDedup, check_before_learning, memory_needs};
use self::summary::summarize_run;
use self::verdicts::DocumentVerdicts;
use self::verdicts_so_far::VerdictsSoFar;
use crate::decisions::DecisionSummary;
use crate::index::run_index::{RunIndex, RunIndexSettings};
use crate::run::commands::bad_row_outputs::BadRowOutputs;
use crate::run::commands::empty_inputs::refuse_empty_inputs;
use crate::run::commands::output_settings::DedupOutputs;
use crate::run::commands::repeated_text::{RepeatedPassages, SearchSurroundings};
use crate::run::commands::summary::DedupSummary;
use crate::run::execution::form_learning::{self, ResolvedForms};
use crate::run::execution::index_matches::{add_kept_documents, find_index_matches};
use crate::run::execution::out_of_core::resolving::RunVerdicts;
use crate::run::execution::person_decisions::{apply_decisions, count_ineffective_forms};
use crate::run::execution::run_directories::RunDirectories;
use crate::run::execution::run_stages::{LinkedRun, SketchedRun};
use crate::run::execution::work_directory::{LockedDirectory, WorkSettings};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::report::match_report::{MatchReportInputs, write_match_report};
use crate::run::report::summary_to_json;
use crate::run::settings::{FormLearning, RunInputs, RunSettings};

/// Removes near-duplicates. The earlier one of two matching documents in the total order is kept.
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
    run_in_directories(
        inputs,
        settings,
        outputs,
        RunDirectories::default(),
        progress,
    )
}

/// Removes near-duplicates as [`run_dedup`] does, with the same outputs. Intermediate results are kept in a directory,
/// so that a killed run can be continued.
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
    if settings.audit.is_some() {
        return Err(Error::usage_error(
            "--audit compares texts while they are read, which a resumed run does not do again: leave out \
             --audit or --work",
        ));
    }
    let work = LockedDirectory::lock_directory(work, inputs)?;
    let mut settings = work.settings_to_continue(settings)?;
    work.keep_objects(&mut settings.read, &[&inputs.documents, &inputs.against])?;
    let _uploads = work.record_uploads(&outputs.named_outputs())?;
    let directories = RunDirectories {
        work: Some(&work),
        index: None,
    };
    run_in_directories(inputs, &settings, outputs, directories, progress)
}

/// Removes near-duplicates as [`run_dedup`] does, where the documents of an index come before all others and count as
/// kept. The rows of the kept documents are written to the index before the outputs appear; the index names them
/// afterwards.
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
    let directories = RunDirectories {
        work: None,
        index: Some(index),
    };
    run_in_directories(inputs, settings, outputs, directories, progress)
}

fn run_in_directories(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &DedupOutputs,
    directories: RunDirectories<'_>,
    progress: &dyn ProgressListener,
) -> Result<DedupSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        let mut clock = StageClock::new();
        // Forms are learned without the index.
        let needs = memory_needs(settings, outputs, false);
        let check = || check_before_learning(inputs, settings, directories, outputs);
        let resolved =
            form_learning::resolve_forms(inputs, settings, directories, needs, &check, progress)?;
        if resolved.learned.is_some() {
            clock.end_stage("forms");
        }
        let settings = &resolved.settings;
        let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
        let plan_with_forms = plan.with_forms();
        let session = DedupSession {
            settings,
            resolved: &resolved,
            plan: &plan,
            plan_with_forms: &plan_with_forms,
            decisions: None,
            progress,
            clock,
        };
        session.dedup_inputs(inputs, outputs, directories)
    })
}

/// State that all stages of a dedup run share.
struct DedupSession<'a> {
    settings: &'a RunSettings,
    resolved: &'a ResolvedForms,
    plan: &'a MatchPlan,
    /// The plan that compares forms. It is used only if the run learns them.
    plan_with_forms: &'a MatchPlan,
    /// Decisions of a person, once they are applied.
    decisions: Option<DecisionSummary>,
    progress: &'a dyn ProgressListener,
    clock: StageClock,
}

impl<'a> DedupSession<'a> {
    fn dedup_inputs(
        mut self,
        paths: &RunInputs,
        outputs: &DedupOutputs,
        directories: RunDirectories<'_>,
    ) -> Result<DedupSummary> {
        let (settings, plan, progress) = (self.settings, self.plan, self.progress);
        let mut run = OpenedDedup::open(&self, paths, directories, outputs)?;
        let bad_rows = BadRowOutputs::create_output(run.outputs.rejected.as_ref())?;
        let reject = |inputs: &_, rows: &_| bad_rows.push_rows(inputs, rows);
        let storage = run.storage();
        let sketched = SketchedRun::read(&run.opened, settings, plan, storage, &reject, progress);
        let mut sketched = sketched?;
        if !run.outputs.allows_empty {
            let targets = run.outputs.named_outputs();
            let targets = targets.iter().map(|output| output.target);
            refuse_empty_inputs(&run.opened.documents, targets, settings.spelling)?;
        }
        sketched.corpus.report_repeated_ids(settings, progress)?;
        self.decisions = apply_decisions(&mut sketched.corpus, settings)?;
        self.clock.end_stage("read");
        let index_matches = self.match_index(run.index.as_ref(), &mut sketched)?;
        // In memory, this stage lasts until the buckets are built, inside `decide_documents`.
        progress.begin_stage(RunStage::Candidates, None);
        let mut linked = sketched.link(true)?;
        let learned = self.resolved.learned.as_ref();
        linked.removed_without_forms = learned.map(|learned| learned.removed.removed.clone());
        linked.has_own_forms = self.resolved.has_own_forms;
        self.learn_and_apply_forms(&mut linked)?;
        let (decided, copied) = self.decide_and_copy(&linked, &run, &index_matches)?;
        if let Some(work) = &run.work {
            // A run out of core stores no verdicts, so the stage ends here.
            work.finish_deciding()?;
        }
        let components = decided.components.as_deref();
        let members = run.outputs.members;
        let verdicts = DocumentVerdicts::new(&linked.corpus, &decided.outcome, components, members);
        let (mut summary, staged) =
            self.stage_outputs(&linked, &verdicts, &run, bad_rows, copied)?;
        if let Some(index) = &mut run.index {
            let is_kept = |document| verdicts.is_kept(document);
            let copies = CopyCounts::count(&verdicts);
            let counts = |document| copies.counts_of(document);
            add_kept_documents(&linked.corpus, index, settings, is_kept, &counts, progress)?;
        }
        commit_all(staged)?;
        summary.library = run.index.map(RunIndex::finish_run).transpose()?;
        if let Some(work) = &run.work {
            work.finish_run(&outputs.named_outputs())?;
        }
        self.clock.end_stage("write");
        if outputs.report.is_none() {
            summary.run.seconds = self.clock.total_seconds();
        }
        summary.stages = self.clock.stages;
        Ok(summary)
    }

    /// Learns the forms of the documents and applies them, if the settings say so.
    fn learn_and_apply_forms<'r>(&mut self, linked: &mut LinkedRun<'r>) -> Result<()>
    where
        'a: 'r,
    {
        if self.settings.form_learning == FormLearning::Always {
            let plan = self.plan_with_forms;
            form_learning::learn_and_apply_forms(linked, self.settings, plan, self.progress)?;
            self.clock.end_stage("forms");
        }
        Ok(())
    }

    /// Finds the matches of all documents in the index, if there is one.
    fn match_index(
        &mut self,
        index: Option<&RunIndex>,
        sketched: &mut SketchedRun<'_>,
    ) -> Result<Vec<DocumentRemoval>> {
        let Some(index) = index else {
            return Ok(Vec::new());
        };
        let matches = find_index_matches(&mut sketched.corpus, index, self.progress)?;
        self.clock.end_stage("library");
        Ok(matches)
    }

    /// Decides all documents. If verdicts are decided in row order, another thread copies kept rows meanwhile, and the copy
    /// is returned, still to be put in place. The copier asks [`VerdictsSoFar`] for every row, whose `OutputRows::is_kept`
    /// waits until the verdict is decided.
    fn decide_and_copy(
        &mut self,
        linked: &LinkedRun<'_>,
        run: &OpenedDedup,
        index_matches: &[DocumentRemoval],
    ) -> Result<(RunVerdicts, Option<StagedOutput>)> {
        let (corpus, progress) = (&linked.corpus, self.progress);
        let verdicts_so_far = VerdictsSoFar::new(corpus);
        let is_writing = AtomicBool::new(false);
        let copy = |output: &OutputTarget| {
            let options = WriteOptions {
                change: RowChange::Unchanged,
                threads: self.settings.threads,
            };
            let report_copied = |rows| {
                if is_writing.load(Ordering::Relaxed) {
                    progress.advance_stage(rows);
                }
            };
            let inputs = &run.opened.documents;
            prepare_kept(inputs, &verdicts_so_far, output, &options, &report_copied)
        };
        let total = corpus.len() as u64;
        let report_decided = |decided: usize, removals: &[DocumentRemoval]| {
            if decided == 0 {
                progress.begin_stage(RunStage::Decide, Some(total));
            }
            progress.advance_stage(decided as u64);
            verdicts_so_far.accept_removals(decided, removals);
        };
        std::thread::scope(|scope| {
            let output = self.output_to_copy_early(linked, &run.outputs);
            let copying = output.map(|output| scope.spawn(|| copy(output)));
            let end_of_verdicts = verdicts_so_far.end_on_drop();
            let wants_components = run.outputs.components;
            let decided = linked.decide_documents(
                run.work.as_ref(),
                index_matches,
                wants_components,
                &report_decided,
            )?;
            drop(end_of_verdicts);
            self.clock.end_stage("match");
            let copied = copying.map(|copying| {
                progress.begin_stage(RunStage::Write, Some(corpus.documents.len() as u64));
                is_writing.store(true, Ordering::Relaxed);
                copying
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Ok((decided, copied.transpose()?))
        })
    }

    /// Returns the output of kept rows if they can be copied while later verdicts are still open: `OutputRows::is_kept`
    /// then waits for each verdict in row order.
    fn output_to_copy_early<'o>(
        &self,
        linked: &LinkedRun<'_>,
        outputs: &'o DedupOutputs,
    ) -> Option<&'o OutputTarget> {
        let is_unchanged = !outputs.annotate
            && outputs.passages.is_none()
            && outputs.copy_fields.is_empty()
            && outputs.members.is_representative();
        let is_in_row_order =
            linked.decides_in_order() && linked.corpus.match_corpus().order.is_none();
        let output = outputs.kept.as_ref()?;
        let is_possible = is_unchanged && is_in_row_order && self.settings.threads > 1;
        (is_possible && output.appears_only_when_complete()).then_some(output)
    }

    /// Completes all outputs, which are then still to be put in place. `copied` has the kept rows if they were copied
    /// before.
    fn stage_outputs(
        &mut self,
        linked: &LinkedRun<'_>,
        verdicts: &DocumentVerdicts<'_>,
        run: &OpenedDedup,
        bad_rows: BadRowOutputs,
        copied: Option<StagedOutput>,
    ) -> Result<(DedupSummary, Vec<StagedOutput>)> {
        let (opened, outputs) = (&run.opened, &run.outputs);
        let (repeated, cut_table) = self.find_repeated_text(linked, verdicts, run)?;
        // Kept rows come last, because standard output and pipes cannot take them back.
        let mut staged = verdicts.write_tables(outputs, opened)?;
        staged.extend(cut_table);
        let (rejected, rejected_rows, bad_rows) = bad_rows.prepare_output()?;
        staged.extend(rejected_rows);
        let kept = match copied {
            Some(copied) => Some(copied),
            None => {
                let repeated = repeated.as_ref();
                verdicts.write_kept(opened, outputs, repeated, self.settings, self.progress)?
            }
        };
        let mut summary = summarize_run(linked, verdicts, rejected, run.index.is_some())?;
        let decisions = self.decisions;
        summary.decisions = decisions.map(|decisions| {
            let has_own_forms = linked.has_own_forms;
            count_ineffective_forms(decisions, &linked.corpus, self.settings, has_own_forms)
        });
        summary.passages = repeated.map(|repeated| repeated.summary);
        // The report shows the times so far. Without one the caller sets those of the whole run.
        summary.run.seconds = self.clock.total_seconds();
        summary.stages = self.clock.stages.clone();
        let report = outputs.report.as_ref().map(|output| {
            let inputs = MatchReportInputs {
                kind: "dedup",
                corpus: &linked.corpus,
                removals: verdicts.compared_removals(),
                removed_without_forms: linked.removed_without_forms.as_deref().unwrap_or_default(),
                settings: self.settings,
                plan: self.plan,
                bad_rows: &bad_rows,
                summary: summary_to_json(&summary),
                counted: None,
            };
            write_match_report(&inputs, output)
        });
        staged.extend(report.transpose()?);
        staged.extend(kept);
        Ok((summary, staged))
    }

    /// Finds the text of kept documents that stands in earlier ones, if it is wanted, and completes its table.
    fn find_repeated_text(
        &mut self,
        linked: &LinkedRun<'_>,
        verdicts: &DocumentVerdicts<'_>,
        run: &OpenedDedup,
    ) -> Result<(Option<RepeatedPassages>, Option<StagedOutput>)> {
        let Some(settings) = &run.outputs.passages else {
            return Ok((None, None));
        };
        let corpus = verdicts.corpus;
        let documents = corpus.input_documents();
        let kept: Vec<DocId> = documents
            .filter(|&document| verdicts.is_kept(document))
            .collect();
        let shares = run.repeated_text_shares(linked);
        let index = run.index.as_ref();
        let library = index.map(|index| index.open_passages(shares.library_bytes()));
        let library = library.transpose()?.flatten();
        let surroundings = SearchSurroundings {
            shares,
            library: library.as_ref(),
            work: run.work.as_ref(),
        };
        let (repeated, table) = RepeatedPassages::find_in_corpus(
            corpus,
            &kept,
            settings,
            self.settings,
            surroundings,
            run.outputs.cuts.as_ref(),
            self.progress,
        )?;
        self.clock.end_stage("passages");
        Ok((Some(repeated), table))
    }
}

/// Measures the stages of a run.
struct StageClock {
    started: Instant,
    stages: Vec<(&'static str, f64)>,
}

impl StageClock {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            stages: Vec::new(),
        }
    }

    fn end_stage(&mut self, name: &'static str) {
        let before: f64 = self.stages.iter().map(|(_, seconds)| seconds).sum();
        self.stages.push((name, self.total_seconds() - before));
    }

    fn total_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
