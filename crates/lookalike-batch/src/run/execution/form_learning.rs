//! Learns forms from the documents that a run would remove, and applies them to the run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lookalike::dedup::DocumentRemoval;
use lookalike::forms::{Form, FormLearner, FormTable, LEAST_TEXTS, MOST_SAMPLED_TEXTS};
use lookalike::plan::MatchPlan;
use lookalike::{DocId, Similarity};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;

use crate::run::execution::out_of_core::memory_plan::plan_spilling;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::{LinkedRun, RunStorage, SketchedRun};
use crate::run::progress::{ProgressListener, RunStage, SilentProgress};
use crate::run::reading::corpus_reader::RejectRows;
use crate::run::reading::corpus_rows::OpenInputs;
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
    let (table, _) = learn_from_inputs(paths, &opened, settings, &ignore, &SilentProgress)?;
    let mut settled = settings.clone();
    settled.learns_forms = false;
    settled.recipe = settled.recipe.with_forms(LEARNED_FORMS, &table)?;
    Ok(Cow::Owned(settled))
}

/// Refuses to learn forms for a recipe that cannot have any.
fn refuse_schemes(settings: &RunSettings) -> Result<()> {
    let recipe = settings.recipe.clone();
    recipe.with_forms(LEARNED_FORMS, &FormTable::default())?;
    Ok(())
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

/// Decides the documents of a run by their similarity alone, and returns the forms of those that would be removed.
///
/// The table depends on the documents and their order, and not on the number of threads or the memory.
///
/// # Errors
/// If inputs or temporary files cannot be read.
pub(in crate::run) fn learn_forms(
    linked: &LinkedRun<'_>,
    progress: &dyn ProgressListener,
) -> Result<FormTable> {
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
    let learner = FormLearner::new(corpus.run_recipe());
    let groups: Vec<(DocId, Vec<DocId>)> = group_removals(removals).into_iter().collect();
    let forms = groups
        .par_iter()
        .filter(|(_, members)| members.len() + 1 >= LEAST_TEXTS)
        .map_init(ParseScratch::default, |parse, (kept, members)| {
            learn_from_group(corpus, &learner, *kept, members, parse)
        })
        .collect::<Result<Vec<Option<Form>>>>()?;
    Ok(learner.make_table(forms.into_iter().flatten().collect()))
}

/// Returns the removed documents that are less than fully similar, grouped by the document that is kept instead.
fn group_removals(removals: &[DocumentRemoval]) -> BTreeMap<DocId, Vec<DocId>> {
    let mut groups: BTreeMap<DocId, Vec<DocId>> = BTreeMap::new();
    for removal in removals {
        if removal.kept.similarity < Similarity::ONE {
            groups
                .entry(removal.kept.with)
                .or_default()
                .push(removal.document);
        }
    }
    groups
}

fn learn_from_group(
    corpus: &RunCorpus<'_>,
    learner: &FormLearner,
    kept: DocId,
    members: &[DocId],
    parse: &mut ParseScratch,
) -> Result<Option<Form>> {
    let sampled = std::iter::once(kept).chain(sample_evenly(members, MOST_SAMPLED_TEXTS - 1));
    let mut texts = Vec::new();
    for document in sampled {
        texts.extend(corpus.reread_text(document, parse)?);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let documents = members.len() as u64 + 1;
    Ok(learner.learn_form(&texts, documents)?)
}

/// Returns at most `most` documents, at equal distances.
fn sample_evenly(documents: &[DocId], most: usize) -> impl Iterator<Item = DocId> {
    let count = documents.len().min(most);
    (0..count).map(move |at| documents[at * documents.len() / count])
}
