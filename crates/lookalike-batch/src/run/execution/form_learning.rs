//! Learns forms from the documents that a run would remove, and applies them to the run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lookalike::dedup::DocumentSource;
use lookalike::dedup::{self, DocumentRemoval};
use lookalike::forms::{FormCorpus, FormLearner, FormTable};
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike::{DocId, Recipe};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;

use crate::run::execution::memory_plan::plan_spilling;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::{LinkedRun, RunStorage, SketchedRun};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_reader::RejectRows;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::{RunInputs, RunSettings};

/// Name of a table of forms that a run has learned itself, in its recipe.
pub(in crate::run) const LEARNED_FORMS: &str = "learned-forms.toml";

/// Learns forms in a run of its own if the run is out of core. The settings that are returned have the table in their
/// recipe and learn no forms. A run in memory learns the forms itself, so its settings stay as they are.
///
/// # Errors
/// As [`learn_from_inputs`], and if a run out of core reads standard input, which can be read only once.
pub(in crate::run) fn learn_forms_before_spilling<'s>(
    paths: &RunInputs,
    settings: &'s RunSettings,
    progress: &dyn ProgressListener,
) -> Result<Cow<'s, RunSettings>> {
    if settings.learns_forms {
        refuse_schemes(settings)?;
    }
    if !settings.learns_forms || plan_spilling(paths, settings, None, false)?.is_none() {
        return Ok(Cow::Borrowed(settings));
    }
    if paths.documents.is_read_once() || paths.against.is_read_once() {
        return Err(Error::usage_error(
            "a run in limited memory reads its inputs twice to learn forms, and standard input and pipes can be read \
             only once: give a file",
        ));
    }
    let opened = OpenInputs::new(paths, settings)?;
    let ignore = |_: &_, _: &_| Ok(());
    let progress = StageProgress(progress);
    let (table, _) = learn_from_inputs(paths, &opened, settings, &ignore, &progress)?;
    let mut settled = settings.clone();
    settled.learns_forms = false;
    settled.recipe = settled.recipe.with_forms(LEARNED_FORMS, &table)?;
    Ok(Cow::Owned(settled))
}

/// Reports the stages of a run that learns forms, and nothing else, because the run behind it reads the same inputs and
/// reports their bad rows.
struct StageProgress<'a>(&'a dyn ProgressListener);

impl ProgressListener for StageProgress<'_> {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        self.0.begin_stage(stage, total);
    }

    fn advance_stage(&self, done: u64) {
        self.0.advance_stage(done);
    }
}

/// Refuses to learn forms for a recipe that cannot have any.
fn refuse_schemes(settings: &RunSettings) -> Result<()> {
    with_empty_table(&settings.recipe)?;
    Ok(())
}

/// Returns `true` if a recipe can have forms.
pub(in crate::run) fn can_have_forms(recipe: &Recipe) -> bool {
    with_empty_table(recipe).is_ok()
}

fn with_empty_table(recipe: &Recipe) -> lookalike::Result<Recipe> {
    let recipe = recipe.clone().without_forms();
    recipe.with_forms(LEARNED_FORMS, &FormTable::default())
}

/// Size of the inputs of which forms were learned.
pub(in crate::run) struct LearnedInputs {
    pub(in crate::run) documents: u64,
    pub(in crate::run) bytes: u64,
}

/// Learns forms from the documents that a dedup run with these settings would remove. `opened` are the inputs of
/// `paths`.
///
/// # Errors
/// As those of reading and deciding, and the errors of `reject`.
pub(in crate::run) fn learn_from_inputs(
    paths: &RunInputs,
    opened: &OpenInputs,
    settings: &RunSettings,
    reject: &RejectRows<'_>,
    progress: &dyn ProgressListener,
) -> Result<(FormTable, LearnedInputs)> {
    refuse_schemes(settings)?;
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let spill = plan_spilling(paths, settings, None, false)?;
    let storage = RunStorage { work: None, spill };
    let sketched = SketchedRun::read(opened, settings, &plan, storage, reject, progress)?;
    progress.begin_stage(RunStage::Candidates, None);
    let linked = sketched.link(true)?;
    let inputs = LearnedInputs {
        documents: linked.corpus.documents.len() as u64,
        bytes: linked.corpus.documents.bytes,
    };
    Ok((learn_forms(&linked, progress)?, inputs))
}

/// Learns the forms of a run in memory and applies them to it. `plan` is the plan of the run with forms.
///
/// # Errors
/// If inputs cannot be read again, or if the recipe has the scheme of another tool.
pub(in crate::run) fn learn_and_apply_forms<'a>(
    linked: &mut LinkedRun<'a>,
    plan: &'a MatchPlan,
    progress: &dyn ProgressListener,
) -> Result<()> {
    let total = linked.corpus.len() as u64;
    let report = |decided: usize, _: &[DocumentRemoval]| {
        if decided == 0 {
            progress.begin_stage(RunStage::Forms, Some(total));
        }
        progress.advance_stage(decided as u64);
    };
    let found = dedup::find_verdicts_and_candidates(&linked.corpus.match_corpus(), &report)?;
    let table = learn_from_removals(&linked.corpus, &found.outcome.removals)?;
    let removals = found.outcome.removals.iter();
    linked.removed_without_forms = Some(removals.map(|removal| removal.document).collect());
    linked.corpus.use_forms(&table, plan, found.has_candidates)
}

/// Decides the documents of a run by their similarity alone, and returns the forms of those that would be removed.
///
/// The table depends on the documents and their order, and not on the number of threads or the memory.
///
/// # Errors
/// If inputs or temporary files cannot be read.
fn learn_forms(linked: &LinkedRun<'_>, progress: &dyn ProgressListener) -> Result<FormTable> {
    let corpus = &linked.corpus;
    let total = corpus.len() as u64;
    let report = |decided: usize, _: &[DocumentRemoval]| {
        if decided == 0 {
            progress.begin_stage(RunStage::Forms, Some(total));
        }
        progress.advance_stage(decided as u64);
    };
    let decided = linked.decide_documents(None, &[], false, &report)?;
    learn_from_removals(corpus, &decided.outcome.removals)
}

/// Learns from each kept document with those that are removed because of it.
fn learn_from_removals(corpus: &RunCorpus<'_>, removals: &[DocumentRemoval]) -> Result<FormTable> {
    let groups = groups_without_form(corpus, group_removals(removals))?;
    FormLearner::new(corpus.run_recipe()).learn_table(corpus, &groups)
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
fn group_removals(removals: &[DocumentRemoval]) -> Vec<Vec<DocId>> {
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
fn groups_without_form(corpus: &RunCorpus<'_>, groups: Vec<Vec<DocId>>) -> Result<Vec<Vec<DocId>>> {
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
