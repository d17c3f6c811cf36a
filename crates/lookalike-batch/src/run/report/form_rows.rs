//! The forms in a report: those of the run, and possible ones among its removals, with documents and their values.
//!
//! A *possible* form is that of removals which are similar to one kept document and differ at places inside it. Copies of
//! an article can have such places, too, so a person decides.

use std::collections::{HashMap, HashSet};

use lookalike::compare::FilledForm;
use lookalike::dedup::DocumentRemoval;
use lookalike::forms::{Form, FormLearner, FormTable};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{DocId, Recipe};
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use serde::Serialize;

use crate::run::execution::form_learning::{can_have_forms, group_removals, groups_without_form};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::report::budgets::{
    FORM_BYTES, FORM_DOCUMENTS_READ, LISTED_FORM_DOCUMENTS, LISTED_FORMS, POSSIBLE_FORMS,
    VALUE_CHARACTERS, count_json_bytes, shorten_name,
};
use crate::run::report::removal_rows::{SourceNames, draw_number};
use crate::run::report::shown_texts::ShownTexts;

/// Name of the table of possible forms, in a recipe that no other run sees.
const POSSIBLE_TABLE: &str = "possible-forms.toml";

/// Forms as columns: those of the run, the one of most documents first, and then the possible ones.
#[derive(Debug, Default, Serialize)]
pub(super) struct FormColumns {
    /// Forms in the table of the run, listed or not.
    total: usize,
    name: Vec<String>,
    /// `true` if the run did not compare by the form.
    possible: Vec<bool>,
    /// Documents of the form; of a form that the run did not look up in all documents, those of which it was learned.
    documents: Vec<u64>,
    /// Removed documents among them, if they are known.
    removed: Vec<Option<u64>>,
    /// The parts of the frame.
    frame: Vec<Vec<String>>,
    /// Numbers of the texts of two documents, for decisions; −1 if they are not shown.
    a: Vec<i64>,
    b: Vec<i64>,
}

/// Documents of the listed forms, as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct FormDocumentColumns {
    /// Row of the form.
    form: Vec<usize>,
    id: Vec<String>,
    source: Vec<usize>,
    row: Vec<u64>,
    removed: Vec<bool>,
    /// The value of each slot, or its beginning.
    values: Vec<Vec<String>>,
}

/// A form with documents that may fill it, in input order.
struct FormCandidate {
    form: Form,
    documents: Vec<DocId>,
    document_count: u64,
    removed_count: Option<u64>,
}

/// The origin of the forms of a report.
pub(super) struct FormSource<'a, 'c> {
    pub(super) corpus: &'a RunCorpus<'c>,
    pub(super) removals: &'a [DocumentRemoval],
    /// Documents that would be removed by their similarity alone, if the run has learned forms itself.
    pub(super) removed_without_forms: &'a [DocId],
}

impl<'c> FormSource<'_, 'c> {
    /// Collects the forms of a report. `wants_possible` adds possible forms. The texts of two documents of each form are
    /// shown, as far as their budget allows.
    ///
    /// # Errors
    /// If a document cannot be read again.
    pub(super) fn collect_forms(
        &self,
        wants_possible: bool,
        texts: &mut ShownTexts<'c>,
        sources: &mut SourceNames,
    ) -> Result<ListedForms> {
        let recipe = self.corpus.run_recipe();
        let removed = self.removals.iter().map(|removal| removal.document);
        let mut lister = FormLister {
            corpus: self.corpus,
            removed: removed.collect(),
            texts,
            sources,
            listed: ListedForms::default(),
            bytes: 0,
        };
        if let Some(table) = recipe.form_table() {
            lister.listed.forms.total = table.forms().len();
            let forms = self.forms_of_run(&table, &lister.removed)?;
            lister.push_forms(recipe, &table, &forms, false)?;
        }
        if wants_possible && can_have_forms(recipe) {
            let forms = self.possible_forms()?;
            let table = FormTable::from_forms(forms.iter().map(|one| one.form.clone()).collect());
            let recipe = recipe.clone().without_forms();
            let recipe = recipe.with_forms(POSSIBLE_TABLE, &table)?;
            lister.push_forms(&recipe, &table, &forms, true)?;
        }
        Ok(lister.listed)
    }

    /// Returns the forms of the run that documents have, the one of most documents first.
    fn forms_of_run(
        &self,
        table: &FormTable,
        removed: &HashSet<DocId>,
    ) -> Result<Vec<FormCandidate>> {
        let knows_all = self.corpus.knows_forms();
        let mut of_forms: HashMap<String, Vec<DocId>> = HashMap::new();
        for document in self.documents_to_look_up(knows_all) {
            if let Some(name) = self.corpus.find_form_name(document)? {
                of_forms.entry(name.to_owned()).or_default().push(document);
            }
        }
        let forms = table.forms().iter().filter_map(|form| {
            let documents = of_forms.remove(&form.name)?;
            let is_removed = |document: &&DocId| removed.contains(document);
            Some(FormCandidate {
                form: form.clone(),
                document_count: if knows_all {
                    documents.len() as u64
                } else {
                    form.documents
                },
                removed_count: knows_all
                    .then(|| documents.iter().filter(is_removed).count() as u64),
                documents,
            })
        });
        let mut forms: Vec<FormCandidate> = forms.collect();
        forms.sort_by_key(|one| std::cmp::Reverse(one.document_count));
        forms.truncate(LISTED_FORMS);
        Ok(forms)
    }

    /// Returns the documents whose forms are looked up, in input order: all if that costs no reading, else some of those
    /// that are similar to another one.
    fn documents_to_look_up(&self, knows_all: bool) -> Vec<DocId> {
        if knows_all {
            return (0..self.corpus.len() as u32).map(DocId).collect();
        }
        let matched = self.removals.iter();
        let matched = matched.flat_map(|removal| [removal.document, removal.kept.with]);
        let similar: HashSet<DocId> = matched
            .chain(self.removed_without_forms.iter().copied())
            .collect();
        let mut similar: Vec<DocId> = similar.into_iter().collect();
        similar.sort_unstable_by_key(|&document| (draw_number(document), document));
        similar.truncate(FORM_DOCUMENTS_READ);
        similar.sort_unstable();
        similar
    }

    /// Returns possible forms of the largest groups of removals, the largest first.
    fn possible_forms(&self) -> Result<Vec<FormCandidate>> {
        let mut groups = group_removals(self.removals);
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        groups.truncate(POSSIBLE_FORMS);
        let groups = groups_without_form(self.corpus, groups)?;
        let learner = FormLearner::of_possible_forms(self.corpus.run_recipe());
        let forms = learner.learn_each_group(self.corpus, &groups)?;
        let mut names = HashSet::new();
        let forms = forms.into_iter().zip(groups);
        let forms = forms.filter_map(|(form, mut documents)| {
            let form = form.filter(|form| names.insert(form.name.clone()))?;
            let document_count = documents.len() as u64;
            documents.sort_unstable();
            Some(FormCandidate {
                form,
                document_count,
                removed_count: Some(document_count - 1),
                documents,
            })
        });
        Ok(forms.collect())
    }
}

/// The forms of a report with their documents.
#[derive(Debug, Default)]
pub(super) struct ListedForms {
    pub(super) forms: FormColumns,
    pub(super) documents: FormDocumentColumns,
}

/// Lists forms within a budget of bytes.
struct FormLister<'a, 'c> {
    corpus: &'a RunCorpus<'c>,
    removed: HashSet<DocId>,
    texts: &'a mut ShownTexts<'c>,
    sources: &'a mut SourceNames,
    listed: ListedForms,
    bytes: usize,
}

/// The values of a document that is listed with its form.
struct FilledDocument {
    document: DocId,
    values: Vec<String>,
}

impl FormLister<'_, '_> {
    /// Lists forms of a table, and some documents of each. `recipe` has the table.
    fn push_forms(
        &mut self,
        recipe: &Recipe,
        table: &FormTable,
        forms: &[FormCandidate],
        is_possible: bool,
    ) -> Result<()> {
        let analyzer = TextAnalyzer::new(recipe);
        for candidate in forms {
            if self.bytes > FORM_BYTES {
                break;
            }
            let filled = self.read_documents(&analyzer, table, candidate)?;
            // A possible form whose documents are not recognised by it would have no effect.
            if !is_possible || filled.len() > 1 {
                self.push_form(candidate, is_possible, &filled)?;
            }
        }
        Ok(())
    }

    /// Reads the values of the first documents of a form.
    fn read_documents(
        &self,
        analyzer: &TextAnalyzer,
        table: &FormTable,
        candidate: &FormCandidate,
    ) -> Result<Vec<FilledDocument>> {
        let (mut parse, mut scratch) = (ParseScratch::default(), AnalysisScratch::default());
        let mut filled_documents = Vec::new();
        for &document in candidate.documents.iter().take(LISTED_FORM_DOCUMENTS) {
            let Some(text) = self.corpus.reread_text(document, &mut parse)? else {
                continue;
            };
            let filled = FilledForm::find_form(analyzer, &text, &mut scratch);
            let is_of_form =
                |filled: &FilledForm| table.forms()[filled.form_position()] == candidate.form;
            if let Some(filled) = filled.filter(is_of_form) {
                filled_documents.push(FilledDocument {
                    document,
                    values: filled.values().map(shorten_value).collect(),
                });
            }
        }
        Ok(filled_documents)
    }

    fn push_form(
        &mut self,
        candidate: &FormCandidate,
        is_possible: bool,
        filled: &[FilledDocument],
    ) -> Result<()> {
        let examples = self.show_examples(filled)?;
        let form = self
            .listed
            .forms
            .push_form(candidate, is_possible, examples);
        let frame = candidate.form.frame.iter();
        self.bytes += frame.map(|part| count_json_bytes(part)).sum::<usize>() + 80;
        for FilledDocument { document, values } in filled {
            let id = shorten_name(&self.corpus.document_id(*document)?);
            let (source, row) = self.corpus.source_and_row(*document);
            let texts = std::iter::once(&id).chain(values);
            self.bytes += texts.map(|text| count_json_bytes(text)).sum::<usize>() + 30;
            let documents = &mut self.listed.documents;
            documents.form.push(form);
            documents.id.push(id);
            documents.source.push(self.sources.number_source(source));
            documents.row.push(row);
            documents.removed.push(self.removed.contains(document));
            documents.values.push(values.clone());
        }
        Ok(())
    }

    /// Shows the texts of two documents with different values, and returns their numbers.
    fn show_examples(&mut self, filled: &[FilledDocument]) -> Result<Option<(usize, usize)>> {
        let Some((first, others)) = filled.split_first() else {
            return Ok(None);
        };
        let Some(other) = others.iter().find(|other| other.values != first.values) else {
            return Ok(None);
        };
        if self
            .texts
            .show_pair(first.document, other.document)?
            .is_none()
        {
            return Ok(None);
        }
        let number = |document| self.texts.number_of(document);
        Ok(number(first.document).zip(number(other.document)))
    }
}

impl FormColumns {
    /// Adds a form, and returns its row.
    fn push_form(
        &mut self,
        candidate: &FormCandidate,
        is_possible: bool,
        examples: Option<(usize, usize)>,
    ) -> usize {
        let number = |text: Option<usize>| text.map_or(-1, |number| number as i64);
        self.name.push(candidate.form.name.clone());
        self.possible.push(is_possible);
        self.documents.push(candidate.document_count);
        self.removed.push(candidate.removed_count);
        self.frame.push(candidate.form.frame.clone());
        self.a.push(number(examples.map(|(a, _)| a)));
        self.b.push(number(examples.map(|(_, b)| b)));
        self.name.len() - 1
    }
}

/// Returns the value, or its beginning and an ellipsis.
fn shorten_value(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
