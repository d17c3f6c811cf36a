//! The stages of a run between its settings and its outputs.
//!
//! ```text
//! read, sketch            link                  decide
//! SketchedRun::read ────> SketchedRun::link ──> LinkedRun::decide_documents, find_pairs
//! ```
//!
//! Every run passes through these stages. One that is out of core keeps sketches and keys in temporary files: its
//! `link` joins documents that may match into components, and it decides the components in groups that fit into the
//! memory. Any other run keeps all sketches in memory, and its `link` groups nothing. Guarantee: both give the same
//! results, byte for byte.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookalike::dedup::{self, CopyPairs, DedupOutcome, DocumentRemoval, MatchCorpus, MatchingPair};
use lookalike::plan::MatchPlan;
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches};
use lookalike_io::error::Result;
use serde::Serialize;

use crate::memory::run_plan::RunShares;
use crate::run::execution::audit::RunAudit;
use crate::run::execution::audit::reading::AuditBackend;
use crate::run::execution::audit::report::{AuditReport, ReportedPairs};
use crate::run::execution::disk_backend::DiskBackend;
use crate::run::execution::out_of_core::grouping::{DocumentGrouping, SpilledSummary};
use crate::run::execution::out_of_core::resolving::{
    RunVerdicts, decide_groups, find_pairs_of_groups,
};
use crate::run::execution::out_of_core::spilled_reading::{SpillFiles, shuffle_setup};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::verdict_steps::VerdictSteps;
use crate::run::progress::ProgressListener;
use crate::run::reading::corpus_reader::{RejectRows, SketchedInputs, read_inputs};
use crate::run::reading::documents::{ReadDocuments, TextStateCounts, count_state};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::reading_sink::{MemoryBackend, ReadingBackend};
use crate::run::settings::RunSettings;

/// The storage of a run's intermediate results.
#[derive(Clone, Copy, Default)]
pub(in crate::run) struct RunStorage<'a> {
    /// The directory of the run, if it can be interrupted.
    pub(in crate::run) work: Option<&'a WorkDirectory>,
    /// The shares of the memory, if sketches and keys go to temporary files.
    pub(in crate::run) spill: Option<RunShares>,
}

/// A run whose documents are read and sketched.
pub(in crate::run) struct SketchedRun<'a> {
    pub(in crate::run) corpus: RunCorpus<'a>,
    /// The temporary files of sketches and keys, if the run is out of core.
    spilled: Option<SpillFiles>,
    audit: Option<RunAudit>,
    text_states: TextStateCounts,
    /// Documents of a form in the temporary files.
    documents_of_forms: u64,
}

impl<'a> SketchedRun<'a> {
    /// Reads and sketches all inputs. Documents that the directory of the run holds are not sketched again, and it
    /// takes the others. `reject` receives all bad rows in order.
    ///
    /// # Errors
    /// As [`read_inputs`], and if temporary files or the directory cannot be written.
    pub(in crate::run) fn read(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        storage: RunStorage<'_>,
        reject: &RejectRows<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let audit = open_audit(opened, settings, plan)?;
        let mut spilled = open_spilled(settings, storage)?;
        let inputs = {
            let backend = choose_backend(opened, settings, plan, storage, &audit, &spilled);
            read_inputs(opened, settings, plan, &*backend, reject, progress)?
        };
        let text_states = match &spilled {
            Some(spilled) => spilled.text_states(),
            None => count_text_states(&inputs.sketches, inputs.against.len()),
        };
        if let Some(spilled) = &mut spilled {
            note_row_bytes(spilled, &inputs);
        }
        let has_sketches = spilled.is_none();
        let corpus = RunCorpus::from_inputs(opened, settings, plan, inputs, has_sketches);
        if let Some(work) = storage.work {
            work.finish_reading(corpus.len() as u64)?;
        }
        Ok(Self {
            corpus,
            documents_of_forms: spilled.as_ref().map_or(0, SpillFiles::documents_of_forms),
            spilled,
            audit,
            text_states,
        })
    }

    /// Links documents that may match, if the run is out of core. In memory nothing is searched yet: candidates are found
    /// while deciding. `merges_equal_texts` says whether documents of equal
    /// texts get equal verdicts, as far as the settings allow it.
    ///
    /// # Errors
    /// If temporary files or inputs cannot be read or written, or if a component does not fit into the memory.
    pub(in crate::run) fn link(self, merges_equal_texts: bool) -> Result<LinkedRun<'a>> {
        let merges = merges_equal_texts && self.corpus.can_merge_equal_texts();
        let group = |reading| DocumentGrouping::group_documents(reading, &self.corpus, merges);
        let grouping = self.spilled.map(group).transpose()?;
        Ok(LinkedRun {
            corpus: self.corpus,
            spilled: grouping.as_ref().map(DocumentGrouping::summarize_spilled),
            shares: grouping.as_ref().map(DocumentGrouping::run_shares),
            grouping: Mutex::new(grouping),
            audit: self.audit,
            text_states: self.text_states,
            documents_of_forms: self.documents_of_forms,
            removed_without_forms: None,
            has_own_forms: false,
        })
    }
}

fn open_audit(
    opened: &OpenInputs,
    settings: &RunSettings,
    plan: &MatchPlan,
) -> Result<Option<RunAudit>> {
    let audit = RunAudit::from_settings(settings, plan)?;
    if let Some(audit) = &audit
        && let Some(rows) = opened.expected_rows()?
    {
        audit.audit_drawing().expect_rows(rows);
    }
    Ok(audit)
}

fn open_spilled(settings: &RunSettings, storage: RunStorage<'_>) -> Result<Option<SpillFiles>> {
    let Some(shares) = storage.spill else {
        return Ok(None);
    };
    let directory = settings.temporary.clone();
    SpillFiles::begin_reading(shuffle_setup(settings)?, shares, directory).map(Some)
}

/// Returns the backend of a reading. An audited run keeps everything in memory, because other settings refuse an audit.
fn choose_backend<'r>(
    opened: &OpenInputs,
    settings: &RunSettings,
    plan: &MatchPlan,
    storage: RunStorage<'r>,
    audit: &'r Option<RunAudit>,
    spilled: &'r Option<SpillFiles>,
) -> Box<dyn ReadingBackend + 'r> {
    if let Some(audit) = audit {
        let input_bytes = opened.size_on_disk();
        return Box::new(AuditBackend { audit, input_bytes });
    }
    if storage.work.is_none() && spilled.is_none() {
        return Box::new(MemoryBackend);
    }
    Box::new(DiskBackend {
        work: storage.work,
        spilled: spilled.as_ref(),
        sketcher: DocumentSketcher::new(&settings.recipe, plan, Cpu::detect_best()),
    })
}

/// Tells the temporary files how much memory the rows take.
fn note_row_bytes(spilled: &mut SpillFiles, inputs: &SketchedInputs) {
    let SketchedInputs {
        against, documents, ..
    } = inputs;
    let of_rows = |rows: &ReadDocuments| rows.memory_bytes() + rows.value_bytes();
    let bytes = of_rows(against) + of_rows(documents);
    spilled.note_rows(against.len() + documents.len(), bytes);
}

/// Counts the text states of documents behind the known ones.
fn count_text_states(sketches: &DocumentSketches, known: usize) -> TextStateCounts {
    let mut states = TextStateCounts::default();
    for at in known..sketches.len() {
        count_state(&mut states, sketches.text_state(DocId(at as u32)));
    }
    states
}

/// A run whose documents are linked, so that they can be decided.
pub(in crate::run) struct LinkedRun<'a> {
    pub(in crate::run) corpus: RunCorpus<'a>,
    /// The documents that may match, in groups, if the run is out of core. Deciding takes them, because verdicts need
    /// their memory.
    grouping: Mutex<Option<DocumentGrouping>>,
    spilled: Option<SpilledSummary>,
    shares: Option<RunShares>,
    audit: Option<RunAudit>,
    text_states: TextStateCounts,
    documents_of_forms: u64,
    /// Documents that would be removed by their similarity alone, if the run has learned forms itself.
    pub(in crate::run) removed_without_forms: Option<Vec<DocId>>,
    /// `true` if the forms of the run are those of its own documents.
    pub(in crate::run) has_own_forms: bool,
}

impl<'a> LinkedRun<'a> {
    /// Returns `true` if documents are decided in their total order, and not in groups.
    pub(in crate::run) fn decides_in_order(&self) -> bool {
        self.spilled.is_none()
    }

    /// Decides all documents, and finds the components of matching pairs if they are wanted. `index_matches` are those
    /// in an index; see [`dedup::follow_verdicts_beside_index`]. Verdicts that the directory of the run holds are not
    /// decided again, and it takes the others; a run out of core decides all, once. Calls `report` with the number of decided
    /// documents and, if documents are decided in their order, with the new removals.
    ///
    /// # Errors
    /// If temporary files, inputs or the directory cannot be read or written.
    pub(in crate::run) fn decide_documents(
        &self,
        work: Option<&WorkDirectory>,
        index_matches: &[DocumentRemoval],
        wants_components: bool,
        report: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
    ) -> Result<RunVerdicts> {
        if let Some(grouping) = self.lock_grouping().take() {
            let report = |decided: usize| report(decided, &[]);
            let corpus = &self.corpus;
            return decide_groups(corpus, grouping, index_matches, wants_components, &report);
        }
        let corpus = self.corpus.match_corpus();
        let outcome = match work {
            None => dedup::follow_verdicts_beside_index(&corpus, index_matches, report)?,
            Some(work) => continue_verdicts(&corpus, work, report)?,
        };
        let components = if wants_components {
            Some(dedup::find_components(&corpus, &outcome)?)
        } else {
            None
        };
        Ok(RunVerdicts {
            outcome,
            components,
        })
    }

    /// Calls `visit` with all matching pairs in the order of the earlier and then of the later document. Returns how
    /// many documents have the text of an earlier one, if their pairs are left out; see [`dedup::find_pairs`].
    ///
    /// # Errors
    /// If temporary files or inputs cannot be read or written, and the errors of `visit`.
    pub(in crate::run) fn find_pairs(
        &self,
        copies: CopyPairs,
        visit: impl FnMut(MatchingPair) -> Result<()>,
        report: &(dyn Fn(usize) + Sync),
    ) -> Result<usize> {
        match &*self.lock_grouping() {
            Some(grouping) => find_pairs_of_groups(&self.corpus, grouping, copies, visit, report),
            None => dedup::find_pairs(&self.corpus.match_corpus(), copies, visit, report),
        }
    }

    fn lock_grouping(&self) -> MutexGuard<'_, Option<DocumentGrouping>> {
        self.grouping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the shares of the memory beside the rows, if the run is out of core.
    pub(in crate::run) fn run_shares(&self) -> Option<RunShares> {
        self.shares
    }

    /// Returns how much of the run went to temporary files, if its memory is limited.
    pub(in crate::run) fn spilled_summary(&self) -> Option<SpilledSummary> {
        self.spilled
    }

    /// Returns the text states of the new documents, which the run decides about.
    pub(in crate::run) fn text_states(&self) -> TextStateCounts {
        self.text_states
    }

    /// Returns the part that forms take in the run, if documents are compared by forms. For runs that remove documents,
    /// `is_kept` says which of them remain.
    pub(in crate::run) fn form_summary(
        &self,
        is_kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Option<FormUse> {
        let corpus = &self.corpus;
        if !corpus.plan.compares_forms() {
            return None;
        }
        let documents = (corpus.known_count()..corpus.len()).map(|at| DocId(at as u32));
        let has_form = |document: &DocId| corpus.sketches.form_id(*document).is_some();
        let in_memory = documents.filter(has_form).count() as u64;
        let removed = self.removed_without_forms.as_ref();
        let kept_apart = removed.zip(is_kept).map(|(removed, is_kept)| {
            let kept = removed.iter().filter(|&&document| is_kept(document));
            kept.count() as u64
        });
        Some(FormUse {
            forms: corpus.form_count(),
            documents: in_memory + self.documents_of_forms,
            kept_apart,
        })
    }

    /// Returns the report of the audit, if there is one. For runs that remove documents, `kept` returns which of them
    /// remain.
    pub(in crate::run) fn audit_report(
        &self,
        reported: ReportedPairs,
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<Option<AuditReport>> {
        let audit = self.audit.as_ref();
        let report = |audit: &RunAudit| audit.report_run(&self.corpus, reported, kept);
        audit.map(report).transpose()
    }
}

/// The part that forms took in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FormUse {
    /// Forms in the table.
    pub forms: u64,
    /// Documents of a form. A run that learns forms in memory looks for the forms of those alone that may match another
    /// document.
    pub documents: u64,
    /// Kept documents that would be removed by their similarity alone: they say something else. `None` if the run did
    /// not learn the forms itself, so that it has not decided without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_apart: Option<u64>,
}

/// Decides the documents that have no verdict in the directory of the run, and stores the new verdicts there.
fn continue_verdicts(
    corpus: &MatchCorpus<'_>,
    work: &WorkDirectory,
    report: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    let (mut steps, prefix) = VerdictSteps::read_prefix(work, corpus.sketches.len())?;
    let mut stored = Ok(());
    let outcome = dedup::continue_verdicts(corpus, prefix, |decided, removals| {
        report(decided, removals);
        stored = steps.accept_removals(decided, removals);
        match stored {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    stored?;
    steps.finish_steps()?;
    Ok(outcome)
}
