//! Learns forms from the documents that a run would remove, and applies them to the run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use lookalike::dedup::DocumentSource;
use lookalike::dedup::{self, DocumentRemoval};
use lookalike::forms::{FormCorpus, FormLearner, FormTable};
use lookalike::plan::{MatchMethod, MatchPlan};
use lookalike::similarity::Route;
use lookalike::{DocId, Recipe};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::source::{ParseScratch, copy_standard_input};
use rayon::prelude::*;

use crate::index::index_recipe;
use crate::index::run_index::is_index;
use crate::memory::run_plan::RunShares;
use crate::run::execution::memory_measuring::{RunMemoryNeeds, plan_spilling};
use crate::run::execution::person_decisions::{apply_decisions, correct_forms};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_directories::{PlannedDirectories, RunDirectories};
use crate::run::execution::run_stages::{LinkedRun, RunStorage, SketchedRun};
use crate::run::execution::work_directory::{
    BegunRun, InputMoment, LearnedStep, LockedDirectory, RemovedWithoutForms, WorkDirectory,
};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_reader::RejectRows;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::{FormLearning, RunInputs, RunSettings};

/// Name of a table of forms that a run has learned itself, in its recipe.
pub(in crate::run) const LEARNED_FORMS: &str = "learned-forms.toml";

/// The settings of a run whose forms are known, or are learned by it in memory.
pub(in crate::run) struct ResolvedForms {
    /// The settings. They say [`FormLearning::Always`] if the run in memory learns the forms itself, else
    /// [`FormLearning::Never`].
    pub(in crate::run) settings: RunSettings,
    /// The forms, if they were learned in a pass of their own.
    pub(in crate::run) learned: Option<LearnedStep>,
    /// The inputs when this process learned them.
    learned_from: Option<InputMoment>,
    /// `true` if the forms are those of the inputs of the run.
    pub(in crate::run) has_own_forms: bool,
}

/// The origin of the forms of a run.
enum FormOrigin {
    /// The recipe has them, or the run compares by none.
    Recipe,
    /// The index beside the run has them.
    Index(Box<Recipe>),
    /// The run has learned them before it was interrupted.
    BegunRun(LearnedStep),
    /// The run learns them in memory.
    MemoryPass,
    /// The run learns them in a pass of its own, before it reads for its outputs.
    SeparatePass,
}

/// Decides whether a run learns forms, and learns them if it needs a pass of its own for this: out of core, if it can be
/// interrupted, or if it makes an index. The recipe that is returned then has the table. Such a pass can take as long as the
/// run, so `check_run` reports before it the errors that need no reading.
///
/// # Errors
/// As [`learn_from_inputs`]; if the settings demand forms where there can be none; and if inputs that are read twice can
/// be read only once.
pub(in crate::run) fn resolve_forms(
    paths: &RunInputs,
    settings: &RunSettings,
    directories: RunDirectories<'_>,
    needs: RunMemoryNeeds,
    check_run: &dyn Fn() -> Result<()>,
    progress: &dyn ProgressListener,
) -> Result<ResolvedForms> {
    let origin = find_origin(paths, settings, directories, needs)?;
    if let (FormOrigin::Recipe, Some(work)) = (&origin, directories.work) {
        work.refuse_unlearned()?;
    }
    let mut resolved = ResolvedForms {
        settings: RunSettings {
            form_learning: FormLearning::Never,
            ..settings.clone()
        },
        learned: None,
        learned_from: None,
        has_own_forms: true,
    };
    match origin {
        FormOrigin::Recipe => resolved.has_own_forms = false,
        FormOrigin::Index(recipe) => {
            resolved.settings.recipe = *recipe;
            resolved.has_own_forms = false;
        }
        FormOrigin::BegunRun(learned) => resolved.add_forms(learned)?,
        FormOrigin::MemoryPass => resolved.settings.form_learning = FormLearning::Always,
        FormOrigin::SeparatePass => {
            check_run()?;
            refuse_pipes(paths, settings)?;
            resolved.copy_standard_input(paths)?;
            let work = directories.work;
            let opened = OpenInputs::new(paths, &resolved.settings)?;
            resolved.learned_from = Some(InputMoment::of_inputs(&opened));
            let settings = &resolved.settings;
            let spill = plan_spilling(paths, settings, needs)?;
            let learned = learn_in_separate_pass(&opened, settings, work, spill, progress)?;
            resolved.add_forms(LearnedStep {
                table: learned.table,
                removed: learned.removed_without_forms,
            })?;
        }
    }
    Ok(resolved)
}

impl ResolvedForms {
    /// Refuses inputs that have changed since this process learned their forms.
    pub(in crate::run) fn check_unchanged(&self, opened: &OpenInputs) -> Result<()> {
        let learned_from = self.learned_from.as_ref();
        match learned_from.and_then(|before| before.find_change(&InputMoment::of_inputs(opened))) {
            Some(change) => Err(Error::input_error(format!(
                "the inputs have changed while the run learned their forms: {change}; run it again"
            ))),
            None => Ok(()),
        }
    }

    fn add_forms(&mut self, learned: LearnedStep) -> Result<()> {
        let recipe = self.settings.recipe.clone();
        self.settings.recipe = recipe.with_forms(LEARNED_FORMS, &learned.table)?;
        self.learned = Some(learned);
        Ok(())
    }

    /// Copies standard input to a temporary file, so that it can be read twice.
    fn copy_standard_input(&mut self, paths: &RunInputs) -> Result<()> {
        if paths.documents.has_standard_input() || paths.against.has_standard_input() {
            let copy = copy_standard_input(self.settings.temporary.as_deref())?;
            self.settings.read.standard_input = Some(copy);
        }
        Ok(())
    }
}

/// Returns the origin of a run's forms. A run beside an index that exists has the forms of the index, and a run that is
/// continued those with which it was begun.
fn find_origin(
    paths: &RunInputs,
    settings: &RunSettings,
    directories: RunDirectories<'_>,
    needs: RunMemoryNeeds,
) -> Result<FormOrigin> {
    if settings.form_learning == FormLearning::Never {
        return Ok(FormOrigin::Recipe);
    }
    if let Some(index) = directories.index
        && is_index(&index.path)?
    {
        return use_forms_of_index(settings, &index.path);
    }
    if settings.form_learning == FormLearning::Always {
        with_empty_table(&settings.recipe)?;
    } else if !may_learn(settings) {
        return Ok(FormOrigin::Recipe);
    }
    let begun = directories.work.map(LockedDirectory::begun_run);
    if let Some(begun) = begun.transpose()?.flatten() {
        return use_begun_forms(settings, begun);
    }
    let has_directory = directories.work.is_some() || directories.index.is_some();
    if has_directory || plan_spilling(paths, settings, needs)?.is_some() {
        Ok(FormOrigin::SeparatePass)
    } else {
        Ok(FormOrigin::MemoryPass)
    }
}

/// The way in which a run learns forms.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) enum FormLearningPass {
    /// From the documents in memory, after they are decided without forms and before they are decided with them.
    InMemory,
    /// In a pass of its own before.
    Separate,
}

impl FormLearningPass {
    /// Returns the way in which a new run will learn forms; `None` if it learns none.
    ///
    /// # Errors
    /// If the run would not fit into its memory.
    pub(in crate::run) fn of_run(
        paths: &RunInputs,
        settings: &RunSettings,
        directories: PlannedDirectories<'_>,
    ) -> Result<Option<Self>> {
        let learns = match settings.form_learning {
            FormLearning::Never => false,
            FormLearning::Always => true,
            FormLearning::WherePossible => may_learn(settings),
        };
        if !learns || directories.index.map_or(Ok(false), is_index)? {
            return Ok(None);
        }
        let has_directory = directories.has_work || directories.index.is_some();
        let is_separate =
            has_directory || plan_spilling(paths, settings, RunMemoryNeeds::default())?.is_some();
        Ok(Some(if is_separate {
            Self::Separate
        } else {
            Self::InMemory
        }))
    }
}

/// Returns `true` if a run that is to learn forms where possible can learn them.
fn may_learn(settings: &RunSettings) -> bool {
    // Equal texts alone show no forms.
    let compares_texts = settings.matching.method != MatchMethod::Exact;
    let has_texts = settings.read.fields.features.is_none();
    compares_texts
        && has_texts
        && settings.recipe.forms.is_none()
        && can_have_forms(&settings.recipe)
}

/// Refuses inputs that cannot be read twice.
fn refuse_pipes(paths: &RunInputs, settings: &RunSettings) -> Result<()> {
    if !paths.documents.has_pipe() && !paths.against.has_pipe() {
        return Ok(());
    }
    let forms = settings.spelling.spell_option("forms");
    Err(Error::usage_error(format!(
        "this run reads its inputs twice, the first time to learn forms, and a named pipe can be read only once: \
         give a file or standard input, or a table with {forms}, or the value off for {forms}"
    )))
}

/// Learns forms in a run of its own, which can be continued if the directory `work` is given. `spill` says how the work
/// is divided if the run is out of core.
fn learn_in_separate_pass(
    opened: &OpenInputs,
    settings: &RunSettings,
    work: Option<&LockedDirectory>,
    spill: Option<RunShares>,
    progress: &dyn ProgressListener,
) -> Result<LearnedForms> {
    let ignore = |_: &_, _: &_| Ok(());
    let progress = StagesOnly(progress);
    let work = work.map(|work| {
        let directory = work.begin_learning()?;
        WorkDirectory::open_run(&directory, settings, opened, spill.is_some(), None)
    });
    let work = work.transpose()?;
    let storage = RunStorage {
        work: work.as_ref(),
        spill,
    };
    learn_from_inputs(opened, settings, storage, &ignore, &progress)
}

/// Returns the forms of an index if its recipe differs from that of the run in forms alone; otherwise those of the recipe of
/// the run.
fn use_forms_of_index(settings: &RunSettings, index: &Path) -> Result<FormOrigin> {
    if settings.form_learning == FormLearning::Always {
        return Err(Error::usage_error(format!(
            "the library {} keeps the forms that it was made with: leave {} out, or begin a new library",
            display_path(index),
            settings.spelling.spell_option("forms")
        )));
    }
    let recipe_of_index = index_recipe(index)?.filter(|recipe| {
        let without = recipe.clone().without_forms();
        settings.recipe.forms.is_none() && without.recipe_id() == settings.recipe.recipe_id()
    });
    let of_index = recipe_of_index.map(|recipe| FormOrigin::Index(Box::new(recipe)));
    Ok(of_index.unwrap_or(FormOrigin::Recipe))
}

/// Returns the forms of a run that is continued, if it was begun with forms.
fn use_begun_forms(settings: &RunSettings, begun: BegunRun) -> Result<FormOrigin> {
    match begun.learned {
        Some(learned) => Ok(FormOrigin::BegunRun(learned)),
        None if settings.form_learning == FormLearning::Always => Err(Error::usage_error(format!(
            "the run in {} was begun without forms, and cannot be continued with them: leave {} out, or name another \
             directory",
            begun.directory,
            settings.spelling.spell_option("forms")
        ))),
        None => Ok(FormOrigin::Recipe),
    }
}

/// Returns the forms of a recipe that a run has learned itself.
pub(in crate::run) fn learned_forms(recipe: &Recipe) -> Option<FormTable> {
    let is_learned = recipe.forms.as_deref() == Some(LEARNED_FORMS);
    recipe.form_table().filter(|_| is_learned)
}

/// Returns the recipe that summaries and decisions name: that of a run, without the forms that it has learned itself. With
/// further documents it would learn other forms.
pub(in crate::run) fn recipe_as_given(recipe: &Recipe) -> Cow<'_, Recipe> {
    if learned_forms(recipe).is_some() {
        Cow::Owned(recipe.clone().without_forms())
    } else {
        Cow::Borrowed(recipe)
    }
}

/// Reports the stages of a run that learns forms, and nothing else, because the main run reads the same inputs and reports
/// their bad rows.
struct StagesOnly<'a>(&'a dyn ProgressListener);

impl ProgressListener for StagesOnly<'_> {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        self.0.begin_stage(stage, total);
    }

    fn advance_stage(&self, done: u64) {
        self.0.advance_stage(done);
    }
}

/// Returns `true` if a recipe can have forms.
pub(in crate::run) fn can_have_forms(recipe: &Recipe) -> bool {
    with_empty_table(recipe).is_ok()
}

fn with_empty_table(recipe: &Recipe) -> lookalike::Result<Recipe> {
    let recipe = recipe.clone().without_forms();
    recipe.with_forms(LEARNED_FORMS, &FormTable::default())
}

/// The forms of inputs.
pub(in crate::run) struct LearnedForms {
    pub(in crate::run) table: FormTable,
    removed_without_forms: RemovedWithoutForms,
    /// Number of documents of the inputs.
    pub(in crate::run) documents: u64,
    /// Bytes of the inputs, after decompression.
    pub(in crate::run) bytes: u64,
}

/// Learns forms from the documents that a dedup run with these settings would remove.
///
/// # Errors
/// As those of reading and deciding, and the errors of `reject`.
pub(in crate::run) fn learn_from_inputs(
    opened: &OpenInputs,
    settings: &RunSettings,
    storage: RunStorage<'_>,
    reject: &RejectRows<'_>,
    progress: &dyn ProgressListener,
) -> Result<LearnedForms> {
    with_empty_table(&settings.recipe)?;
    // Only the main run is audited and counts sources.
    let settings = &RunSettings {
        audit: None,
        sources: None,
        ..settings.clone()
    };
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let mut sketched = SketchedRun::read(opened, settings, &plan, storage, reject, progress)?;
    apply_decisions(&mut sketched.corpus, settings)?;
    progress.begin_stage(RunStage::Candidates, None);
    let linked = sketched.link(true)?;
    let report = report_decided(&linked, progress);
    let removals = linked.decide_documents(storage.work, &[], false, &report)?;
    let removals = removals.outcome.removals;
    Ok(LearnedForms {
        table: learn_from_removals(&linked.corpus, &removals, settings)?,
        removed_without_forms: RemovedWithoutForms {
            removed: list_removed(&removals),
            documents: linked.corpus.len() as u64,
        },
        documents: linked.corpus.documents.len() as u64,
        bytes: linked.corpus.documents.bytes,
    })
}

/// Learns the forms of a run in memory and applies them to it. `plan` is the plan of the run with forms.
///
/// # Errors
/// If inputs cannot be read again, or if the recipe has the scheme of another tool.
pub(in crate::run) fn learn_and_apply_forms<'a>(
    linked: &mut LinkedRun<'a>,
    settings: &RunSettings,
    plan: &'a MatchPlan,
    progress: &dyn ProgressListener,
) -> Result<()> {
    let report = report_decided(linked, progress);
    let found = dedup::find_verdicts_and_candidates(&linked.corpus.match_corpus(), &report)?;
    let table = learn_from_removals(&linked.corpus, &found.outcome.removals, settings)?;
    drop(report);
    linked.removed_without_forms = Some(list_removed(&found.outcome.removals));
    linked.corpus.use_forms(&table, plan, found.has_candidates)
}

/// Returns what tells `progress` how many documents are decided by their similarity alone.
fn report_decided(
    linked: &LinkedRun<'_>,
    progress: &dyn ProgressListener,
) -> impl Fn(usize, &[DocumentRemoval]) + Sync {
    let total = linked.corpus.len() as u64;
    move |decided, _| {
        if decided == 0 {
            progress.begin_stage(RunStage::Forms, Some(total));
        }
        progress.advance_stage(decided as u64);
    }
}

fn list_removed(removals: &[DocumentRemoval]) -> Vec<DocId> {
    removals.iter().map(|removal| removal.document).collect()
}

/// Learns from each kept document with those that are removed because of it, and corrects the table by the decisions of a
/// person. The table depends on these, the documents and their order, and not on the number of threads or the memory.
fn learn_from_removals(
    corpus: &RunCorpus<'_>,
    removals: &[DocumentRemoval],
    settings: &RunSettings,
) -> Result<FormTable> {
    let groups = groups_without_form(corpus, group_removals(removals))?;
    let learner = FormLearner::new(corpus.run_recipe());
    let table = learner.learn_table(corpus, &groups)?;
    Ok(correct_forms(&learner, table, settings))
}

impl FormCorpus for RunCorpus<'_> {
    type Document = DocId;
    type Scratch = ParseScratch;
    type Error = Error;

    fn read_text(&self, document: DocId, scratch: &mut ParseScratch) -> Result<Option<String>> {
        self.reread_text(document, scratch)
    }

    fn append_features(
        &self,
        document: DocId,
        _: &mut ParseScratch,
        into: &mut Vec<u64>,
    ) -> Result<()> {
        Ok(DocumentSource::append_features(self, document, into)?)
    }
}

/// Returns each kept document with those that are removed because of it and have another text, the kept one first.
pub(in crate::run) fn group_removals(removals: &[DocumentRemoval]) -> Vec<Vec<DocId>> {
    let mut groups: BTreeMap<DocId, Vec<DocId>> = BTreeMap::new();
    for removal in removals {
        if !matches!(removal.kept.route, Route::Exact | Route::Decision) {
            let kept = removal.kept.with;
            let group = groups.entry(kept).or_insert_with(|| vec![kept]);
            group.push(removal.document);
        }
    }
    groups.into_values().collect()
}

/// Leaves out groups whose kept document is of a form of the recipe: the others repeat it.
pub(in crate::run) fn groups_without_form(
    corpus: &RunCorpus<'_>,
    groups: Vec<Vec<DocId>>,
) -> Result<Vec<Vec<DocId>>> {
    if corpus.form_count() == 0 {
        return Ok(groups);
    }
    let has_form = groups
        .par_iter()
        .map(|group| Ok(corpus.find_form_name(group[0])?.is_some()));
    let has_form = has_form.collect::<Result<Vec<bool>>>()?;
    let groups = groups.into_iter().zip(has_form);
    Ok(groups
        .filter_map(|(group, has_form)| (!has_form).then_some(group))
        .collect())
}
