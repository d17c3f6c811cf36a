//! The opening of a dedup run: opens its inputs, outputs and storage, and checks that they fit together.

use lookalike::plan::MatchPlan;
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::{check_beside, check_kept, check_output, check_table};

use super::DedupSession;
use crate::index::run_index::{RunIndex, RunIndexMemory, RunIndexSettings, check_new_index};
use crate::memory::repeated_text_plan::RepeatedTextShares;
use crate::memory::run_plan::{RunParts, RunShares};
use crate::run::commands::dedup::kept_members::KeptMembers;
use crate::run::commands::output_settings::DedupOutputs;
use crate::run::commands::repeated_text::{self, RepeatedTextAction, RepeatedTextSettings};
use crate::run::execution::memory_measuring::{RunMemory, RunMemoryNeeds, plan_memory};
use crate::run::execution::run_directories::RunDirectories;
use crate::run::execution::run_stages::{LinkedRun, RunStorage};
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::progress::RunStage;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::{FormLearning, RunInputs, RunSettings};

/// An opened dedup run. Its outputs are checked, and nothing is written yet.
pub(super) struct OpenedDedup {
    pub(super) opened: OpenInputs,
    pub(super) index: Option<RunIndex>,
    pub(super) work: Option<WorkDirectory>,
    memory: RunMemory,
    /// The outputs that are still to be written.
    pub(super) outputs: DedupOutputs,
}

impl OpenedDedup {
    /// Opens the inputs, the index and the directory of a run.
    ///
    /// # Errors
    /// If something cannot be opened, or if settings, directories and outputs contradict each other.
    pub(super) fn open(
        session: &DedupSession<'_>,
        paths: &RunInputs,
        directories: RunDirectories<'_>,
        outputs: &DedupOutputs,
    ) -> Result<Self> {
        let (settings, plan, progress) = (session.settings, session.plan, session.progress);
        let needs = memory_needs(settings, outputs, directories.index.is_some());
        let mut memory = plan_memory(paths, settings, needs)?;
        if memory.spill.is_some() && settings.form_learning == FormLearning::Always {
            return Err(Error::input_error(
                "the inputs have grown since the run began, and do not fit into memory any more: run it again",
            ));
        }
        check_members_and_fields(settings, outputs)?;
        let opened = OpenInputs::new(paths, settings)?;
        session.resolved.check_unchanged(&opened)?;
        check_outputs(&opened, outputs)?;
        if outputs.passages.is_some() {
            repeated_text::check_settings(settings)?;
        }
        let index = match directories.index {
            Some(index) => {
                check_index_options(settings, outputs)?;
                progress.begin_stage(RunStage::Open, None);
                Some(open_index(
                    index,
                    settings,
                    plan,
                    outputs,
                    &mut memory.spill,
                )?)
            }
            None => None,
        };
        let work = match directories.work {
            Some(work) => {
                let is_out_of_core = memory.spill.is_some();
                let learned = session.resolved.learned.as_ref();
                let work =
                    WorkDirectory::open_run(work, settings, &opened, is_out_of_core, learned);
                Some(work?)
            }
            None => None,
        };
        let mut outputs = outputs.clone();
        if let Some(work) = &work {
            work.remove_interrupted_outputs(&outputs.named_outputs());
            if work.has_written(&outputs.named_outputs()) {
                outputs = outputs.without_files();
            }
        }
        Ok(Self {
            opened,
            index,
            work,
            memory,
            outputs,
        })
    }

    /// Returns the storage of intermediate results.
    pub(super) fn storage(&self) -> RunStorage<'_> {
        RunStorage {
            work: self.work.as_ref(),
            spill: self.memory.spill,
        }
    }

    /// Returns the shares of the memory of the search for repeated text in a run whose documents are linked.
    pub(super) fn repeated_text_shares(&self, linked: &LinkedRun<'_>) -> RepeatedTextShares {
        let shares = linked.run_shares();
        shares.map_or(self.memory.passages, |shares| shares.repeated_text_shares())
    }
}

/// Checks what can be checked before forms are learned in a pass of their own.
///
/// # Errors
/// If settings, directories and outputs contradict each other, or if an output is an input.
pub(super) fn check_before_learning(
    paths: &RunInputs,
    settings: &RunSettings,
    directories: RunDirectories<'_>,
    outputs: &DedupOutputs,
) -> Result<()> {
    check_members_and_fields(settings, outputs)?;
    if let Some(index) = directories.index {
        check_index_options(settings, outputs)?;
        check_new_index(&index.path, settings)?;
    }
    if paths.documents.is_read_once() || paths.against.is_read_once() {
        return Ok(());
    }
    let needs = memory_needs(settings, outputs, directories.index.is_some());
    plan_memory(paths, settings, needs)?;
    check_outputs(&OpenInputs::new(paths, settings)?, outputs)
}

/// Returns the needs of a run that decide whether it can go out of core.
pub(super) fn memory_needs(
    settings: &RunSettings,
    outputs: &DedupOutputs,
    has_index: bool,
) -> RunMemoryNeeds {
    RunMemoryNeeds {
        needs_all: option_that_needs_all(settings),
        parts: RunParts {
            has_index,
            has_passages: outputs.passages.is_some(),
        },
    }
}

/// Returns the first option for which all documents must be in memory.
fn option_that_needs_all(settings: &RunSettings) -> Option<&'static str> {
    if settings.audit.is_some() {
        Some("audit")
    } else if !settings.decisions.is_empty() {
        Some("decisions")
    } else {
        None
    }
}

/// Opens an index, and takes its memory from a run out of core.
fn open_index(
    index: &RunIndexSettings,
    settings: &RunSettings,
    plan: &MatchPlan,
    outputs: &DedupOutputs,
    spill: &mut Option<RunShares>,
) -> Result<RunIndex> {
    let directory = || {
        settings
            .temporary
            .clone()
            .unwrap_or_else(std::env::temp_dir)
    };
    let memory = spill.map(|shares| RunIndexMemory {
        bytes: shares.index_bytes(),
        directory: directory(),
    });
    let passages = outputs.passages.map(|passages| passages.passages);
    let index = RunIndex::open(index, settings, plan, passages, memory)?;
    if let Some(shares) = spill {
        *shares = shares.beside_index(index.row_bytes(settings.threads))?;
    }
    for output in outputs.named_outputs() {
        index.check_output(output.target)?;
    }
    Ok(index)
}

fn check_outputs(opened: &OpenInputs, outputs: &DedupOutputs) -> Result<()> {
    if let Some(output) = &outputs.kept {
        let marks = outputs
            .passages
            .is_some_and(|passages| passages.action == RepeatedTextAction::Mark);
        let adds_fields = outputs.annotate || marks || !outputs.copy_fields.is_empty();
        check_kept(&opened.documents, output, adds_fields)?;
    }
    let tables = [&outputs.removed, &outputs.clusters, &outputs.cuts];
    for table in tables.into_iter().flatten() {
        check_table(table)?;
    }
    for output in outputs.named_outputs() {
        let output = output.target;
        check_output(output, &opened.documents)?;
        if let Some(against) = &opened.against {
            check_beside(&opened.documents, output, against)?;
        }
    }
    Ok(())
}

/// Refuses rules about the members of clusters, and added fields, that contradict other outputs.
fn check_members_and_fields(settings: &RunSettings, outputs: &DedupOutputs) -> Result<()> {
    let spell = |option: &str| settings.spelling.spell_option(option);
    let several = match outputs.members {
        members if members.is_representative() => None,
        KeptMembers::DropClusters(_) => Some("drop-all"),
        _ => Some("keep-count"),
    };
    if let Some(option) = several.filter(|_| outputs.annotate) {
        return Err(Error::usage_error(format!(
            "{} selects the rows that are written, and {} writes all of them: leave one of them out",
            spell(option),
            spell("annotate")
        )));
    }
    if several == Some("keep-count") && outputs.passages.is_some() {
        return Err(Error::usage_error(format!(
            "{} keeps near-duplicates, and {} would find nearly all of their text repeated: leave one of them out",
            spell("keep-count"),
            spell("passages")
        )));
    }
    let fields = &outputs.copy_fields;
    let cuts = |passages: RepeatedTextSettings| passages.action == RepeatedTextAction::Remove;
    if !fields.is_empty() && outputs.passages.is_some_and(cuts) {
        return Err(Error::usage_error(format!(
            "the fields of copies cannot be added while passages are removed: run twice, first with {} and the other \
             fields, and then with {} on the rows of that run",
            spell("copies"),
            spell("passages")
        )));
    }
    if fields.sources.is_some() && settings.sources.is_none() {
        return Err(Error::usage_error(
            "the sources of kept documents need a field with the source of each document",
        ));
    }
    let others: &[&str] = if outputs.annotate {
        &["cluster", "duplicate_of", "similarity"]
    } else if outputs.passages.is_some() {
        &["passages"]
    } else {
        &[]
    };
    match fields.repeated_name(others) {
        Some(name) => Err(Error::usage_error(format!(
            "two added fields would have the name `{name}`: give one of them another name"
        ))),
        None => Ok(()),
    }
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
    match outputs.members {
        members if members.is_representative() => {}
        KeptMembers::DropClusters(_) => {
            return refuse(
                "--drop-all",
                "because a document that an earlier run has written cannot be taken back when a copy of it comes",
            );
        }
        _ => {
            return refuse(
                "--keep-count",
                "because a library keeps one document of each cluster, and later runs would keep as many again",
            );
        }
    }
    Ok(())
}
