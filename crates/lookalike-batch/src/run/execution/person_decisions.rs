//! The documents that the decisions of a person are about.

use std::collections::{HashMap, HashSet};

use lookalike::DocId;
use lookalike::content_hash::ContentHash;
use lookalike::dedup::{PairDecision, PairDecisions};
use lookalike::forms::{Form, FormLearner, FormTable, RejectedForms};
use lookalike::text::TextState;
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;

use crate::decisions::{ContentDecision, DecisionSummary};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::settings::RunSettings;

/// Finds the documents of decided texts and sets the decisions of the corpus. Documents whose text has the key of a
/// decided one are read again. Returns `None` if there are no decisions.
///
/// # Errors
/// If a document cannot be read again, or if documents are lists of features and have no texts.
pub(in crate::run) fn apply_decisions(
    corpus: &mut RunCorpus<'_>,
    settings: &RunSettings,
) -> Result<Option<DecisionSummary>> {
    if settings.decisions.is_empty() {
        return Ok(None);
    }
    // The keys of texts do not depend on forms, and those that a run learns depend on its documents.
    let without_forms = settings.recipe.clone().without_forms();
    let recipes = [&settings.recipe, &without_forms].map(|recipe| recipe.recipe_id().to_string());
    let is_own = |decision: &&ContentDecision| recipes.contains(&decision.recipe);
    let decisions: Vec<&ContentDecision> = settings.decisions.iter().filter(is_own).collect();
    let mut summary = DecisionSummary {
        of_other_recipes: (settings.decisions.len() - decisions.len()) as u64,
        ..DecisionSummary::default()
    };
    let documents = find_documents(corpus, &decisions)?;
    let mut pairs = PairDecisions::default();
    let mut classes: HashMap<ContentHash, u32> = HashMap::new();
    for (class, (content, members)) in (0..).zip(&documents) {
        classes.insert(*content, class);
        members
            .iter()
            .for_each(|&member| pairs.set_class(member, class));
    }
    let mut counted = HashSet::new();
    for one in decisions {
        summary.forms += u64::from(one.form.is_some());
        let (a, b) = (one.a.content, one.b.content);
        if !counted.insert((a.min(b), a.max(b))) {
            continue;
        }
        match one.decision {
            PairDecision::Same => summary.same += 1,
            PairDecision::Different => summary.different += 1,
        }
        let class_of = |content| Some((*classes.get(content)?, documents.get(content)?));
        let both = class_of(&one.a.content).zip(class_of(&one.b.content));
        let Some(((a, members_of_a), (b, members_of_b))) = both else {
            summary.without_pair += 1;
            continue;
        };
        pairs.decide_classes(a, b, one.decision);
        let view = corpus.match_corpus();
        let can_pair = |&a: &DocId| members_of_b.iter().any(|&b| view.can_pair(a, b));
        summary.without_pair += u64::from(!members_of_a.iter().any(can_pair));
    }
    corpus.set_decisions(pairs);
    Ok(Some(summary))
}

/// Returns a table as the decisions about its forms correct it.
pub(in crate::run) fn correct_forms(
    learner: &FormLearner,
    table: FormTable,
    settings: &RunSettings,
) -> FormTable {
    let decided = |decision| list_decided_forms(settings, decision).cloned();
    let added: Vec<Form> = decided(PairDecision::Different).collect();
    learner.correct_table(table, &added, decided(PairDecision::Same).collect())
}

/// Returns the forms that a person has decided to be those of copies.
pub(in crate::run) fn rejected_forms(
    learner: &FormLearner,
    settings: &RunSettings,
) -> RejectedForms {
    let rejected = list_decided_forms(settings, PairDecision::Same);
    RejectedForms::new(learner, rejected.cloned().collect())
}

/// Returns the forms of the decisions that a run with these settings applies.
fn list_decided_forms(
    settings: &RunSettings,
    decision: PairDecision,
) -> impl Iterator<Item = &Form> {
    let recipe = settings.recipe.clone().without_forms();
    let recipe = recipe.recipe_id().to_string();
    let decisions = settings.decisions.iter();
    decisions
        .filter(move |one| one.decision == decision && one.recipe == recipe)
        .filter_map(|one| one.form.as_ref())
}

/// Counts the decisions about forms that had no effect on a run. `has_own_forms` says that it learned its forms itself.
pub(in crate::run) fn count_ineffective_forms(
    summary: DecisionSummary,
    corpus: &RunCorpus<'_>,
    settings: &RunSettings,
    has_own_forms: bool,
) -> DecisionSummary {
    if !has_own_forms {
        return DecisionSummary {
            forms_not_applied: summary.forms,
            ..summary
        };
    }
    if !corpus.holds_forms() {
        return summary;
    }
    let documents = (0..corpus.len() as u32).map(DocId);
    let names: HashSet<&str> = documents
        .filter_map(|document| corpus.held_form_name(document))
        .collect();
    let added = list_decided_forms(settings, PairDecision::Different);
    let without_documents = added.filter(|form| !names.contains(&*form.name));
    DecisionSummary {
        forms_without_documents: without_documents.count() as u64,
        ..summary
    }
}

/// Returns the documents of each decided content.
fn find_documents(
    corpus: &RunCorpus<'_>,
    decisions: &[&ContentDecision],
) -> Result<HashMap<ContentHash, Vec<DocId>>> {
    let texts = || {
        decisions
            .iter()
            .flat_map(|decision| [decision.a, decision.b])
    };
    let keys: HashSet<u128> = texts().map(|text| text.text_key).collect();
    let contents: HashSet<ContentHash> = texts().map(|text| text.content).collect();
    let found: Vec<(ContentHash, DocId)> = (0..corpus.len() as u32)
        .into_par_iter()
        .map(DocId)
        .filter(|&document| {
            keys.contains(&corpus.sketches.text_key(document))
                && corpus.sketches.text_state(document) != TextState::Empty
        })
        .map_init(ParseScratch::default, |parse, document| {
            let text = corpus.reread_text(document, parse)?.ok_or_else(|| {
                Error::usage_error(
                    "decisions name texts, but the documents are lists of features: leave out the \
                     decisions, or read texts",
                )
            })?;
            Ok((ContentHash::from_text(&text), document))
        })
        .collect::<Result<_>>()?;
    let mut documents: HashMap<ContentHash, Vec<DocId>> = HashMap::new();
    for (content, document) in found
        .into_iter()
        .filter(|(content, _)| contents.contains(content))
    {
        documents.entry(content).or_default().push(document);
    }
    Ok(documents)
}
