//! The forms in a report: those of the run, and possible ones among its removals, with documents and their values.
//!
//! A *possible* form is learned from removals that are similar to one kept document and differ at the same places inside it.
//! Copies of an article can look so, so a person decides.

use std::collections::{HashMap, HashSet};

use lookalike::compare::FilledForm;
use lookalike::content_hash::ContentHash;
use lookalike::dedup::DocumentRemoval;
use lookalike::forms::{Form, FormLearner, FormTable};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{DocId, Recipe};
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use lookalike_options::shown_text::shorten_text;
use rayon::prelude::*;
use serde::Serialize;

use crate::run::execution::form_learning::{can_have_forms, group_removals, groups_without_form};
use crate::run::execution::person_decisions::rejected_forms;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::report::budgets::{
    FORM_BYTES, FORM_DOCUMENTS_READ, LISTED_DOCUMENTS_PER_FORM, LISTED_FORMS, POSSIBLE_FORM_BYTES,
    POSSIBLE_FORM_GROUPS, VALUE_CHARACTERS, count_json_bytes, shorten_name,
};
use crate::run::report::removal_rows::{SourceNames, draw_number};
use crate::run::settings::RunSettings;

/// Name of the table of possible forms, in a recipe that no other run sees.
const POSSIBLE_TABLE: &str = "possible-forms.toml";

/// Number of the largest groups of removals that are checked for a form of the run. Of those without one,
/// [`POSSIBLE_FORM_GROUPS`] are searched.
const EXAMINED_GROUPS: usize = 4 * POSSIBLE_FORM_GROUPS;

/// Bytes of a form apart from texts, names and ids: numbers, and the hashes and keys of two examples.
const FORM_FIXED_BYTES: usize = 450;

/// Least number of documents of a listed form. One with fewer could keep no two documents apart.
const LEAST_LISTED_DOCUMENTS: usize = 2;

/// Forms as columns: those of the run, the one of most documents first, and then the possible ones, the one whose values
/// differ most first.
#[derive(Debug, Default, Serialize)]
pub(super) struct FormColumns {
    /// Forms in the table of the run, listed or not.
    total: usize,
    name: Vec<String>,
    /// `true` if the run did not compare by the form.
    possible: Vec<bool>,
    /// Documents counted for the form. For a form of the run: those whose form was looked up, which out of core is a
    /// sample of the matched ones. For a possible form: all of the cluster.
    documents: Vec<u64>,
    /// Removed documents among them; `None` in a report of pairs.
    removed: Vec<Option<u64>>,
    /// The parts of the frame.
    frame: Vec<Vec<String>>,
    /// Two documents whose texts differ after normalisation, if possible with different values. A decision names the
    /// form by them. `None` if all texts read are equal.
    examples: Vec<Option<[ExampleText; 2]>>,
}

/// A text as a decision names it.
#[derive(Debug, Clone, Serialize)]
struct ExampleText {
    id: String,
    /// [`ContentHash`] of the unchanged text.
    #[serde(rename = "content")]
    content_hash: String,
    /// Text key after normalisation, as 32 hexadecimal digits.
    key: String,
}

/// Documents of the listed forms, as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct FormDocumentColumns {
    /// Index of the form in [`FormColumns`].
    form: Vec<usize>,
    id: Vec<String>,
    source: Vec<usize>,
    row: Vec<u64>,
    removed: Vec<bool>,
    /// The value of each slot, or its beginning.
    values: Vec<Vec<String>>,
}

/// The forms of a report with their documents.
#[derive(Debug, Default)]
pub(super) struct ListedForms {
    pub(super) forms: FormColumns,
    pub(super) documents: FormDocumentColumns,
}

/// A form of the run or a possible one, with its documents.
struct FormEntry {
    form: Form,
    documents: FormTally,
}

/// Documents of a form.
#[derive(Default)]
struct FormTally {
    count: u64,
    removed: u64,
    /// The first documents, in input order.
    first: Vec<DocId>,
}

impl FormTally {
    fn count_document(&mut self, document: DocId, is_removed: bool) {
        self.count += 1;
        self.removed += u64::from(is_removed);
        if self.first.len() < LISTED_DOCUMENTS_PER_FORM {
            self.first.push(document);
        }
    }
}

/// Collects the forms of a report.
pub(super) struct FormCollector<'a, 'c> {
    pub(super) corpus: &'a RunCorpus<'c>,
    pub(super) settings: &'a RunSettings,
    pub(super) removals: &'a [DocumentRemoval],
    /// Documents that would be removed by their similarity alone, if the run has learned forms itself.
    pub(super) removed_without_forms: &'a [DocId],
    /// `true` if the run removes documents, and `false` if it lists pairs.
    pub(super) removes_documents: bool,
}

impl FormCollector<'_, '_> {
    /// Collects the forms of the run, and possible ones if it removes documents.
    ///
    /// # Errors
    /// If a document cannot be read again.
    pub(super) fn collect_forms(&self, sources: &mut SourceNames) -> Result<ListedForms> {
        let recipe = self.corpus.run_recipe();
        let removed = self.removals.iter().map(|removal| removal.document);
        let mut lister = FormLister {
            corpus: self.corpus,
            removed: removed.filter(|_| self.removes_documents).collect(),
            removes_documents: self.removes_documents,
            sources,
            listed: ListedForms::default(),
        };
        if let Some(table) = recipe.form_table() {
            lister.listed.forms.total = table.forms().len();
            let forms = self.count_documents_by_form(&table, &lister.removed)?;
            let forms = lister.read_forms(recipe, &table, &forms)?;
            lister.list_forms(&forms, FORM_BYTES);
        }
        if self.removes_documents && can_have_forms(recipe) {
            let forms = self.possible_forms()?;
            let table =
                FormTable::from_forms(forms.iter().map(|entry| entry.form.clone()).collect());
            let recipe = recipe.clone().without_forms();
            let recipe = recipe.with_forms(POSSIBLE_TABLE, &table)?;
            let start = lister.listed.forms.name.len();
            let mut forms = lister.read_forms(&recipe, &table, &forms)?;
            forms.sort_by_cached_key(|form| std::cmp::Reverse(form.distinct_permille()));
            lister.list_forms(&forms, POSSIBLE_FORM_BYTES);
            lister.listed.forms.possible[start..].fill(true);
        }
        Ok(lister.listed)
    }

    /// Returns the [`LISTED_FORMS`] forms of the run with the most documents, largest first.
    fn count_documents_by_form(
        &self,
        table: &FormTable,
        removed: &HashSet<DocId>,
    ) -> Result<Vec<FormEntry>> {
        let mut documents_by_form: HashMap<&str, FormTally> = HashMap::new();
        for (document, name) in self.look_up_forms()? {
            let tally = documents_by_form.entry(name).or_default();
            tally.count_document(document, removed.contains(&document));
        }
        let forms = table.forms().iter().filter_map(|form| {
            Some(FormEntry {
                form: form.clone(),
                documents: documents_by_form.remove(&*form.name)?,
            })
        });
        let mut forms: Vec<FormEntry> = forms.collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.documents.count));
        forms.truncate(LISTED_FORMS);
        Ok(forms)
    }

    /// Returns documents with the names of their forms, in input order. If forms are in memory, all documents that have
    /// one. Otherwise a sample of at most [`FORM_DOCUMENTS_READ`] matched documents, which are read again.
    fn look_up_forms(&self) -> Result<Vec<(DocId, &str)>> {
        let corpus = self.corpus;
        if corpus.holds_forms() {
            let documents = (corpus.known_count() as u32..corpus.len() as u32).map(DocId);
            let with_form =
                documents.filter_map(|document| Some((document, corpus.held_form_name(document)?)));
            return Ok(with_form.collect());
        }
        let matched = self.removals.iter();
        let matched = matched.flat_map(|removal| [removal.document, removal.kept.with]);
        let similar: HashSet<DocId> = matched
            .chain(self.removed_without_forms.iter().copied())
            .filter(|document| document.index() >= corpus.known_count())
            .collect();
        let mut similar: Vec<DocId> = similar.into_iter().collect();
        similar.sort_unstable_by_key(|&document| (draw_number(document), document));
        similar.truncate(FORM_DOCUMENTS_READ);
        similar.sort_unstable();
        let found = similar.par_iter().map(|&document| {
            let name = corpus.find_form_name(document)?;
            Ok(name.map(|name| (document, name)))
        });
        let found = found.collect::<Result<Vec<Option<(DocId, &str)>>>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns possible forms of the largest groups of removals, the largest group first. Of groups with equal frames,
    /// only the largest is listed. Those that a person has decided to be copies are left out.
    fn possible_forms(&self) -> Result<Vec<FormEntry>> {
        let mut groups = group_removals(self.removals);
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        groups.truncate(EXAMINED_GROUPS);
        let mut groups = groups_without_form(self.corpus, groups)?;
        groups.truncate(POSSIBLE_FORM_GROUPS);
        let learner = FormLearner::for_possible_forms(self.corpus.run_recipe());
        let forms = learner.learn_each_group(self.corpus, &groups)?;
        let mut clusters = self.tally_clusters(&groups);
        let rejected = rejected_forms(&learner, self.settings);
        let mut known: HashSet<Vec<String>> = HashSet::new();
        let mut accept_form =
            |form: &Form| known.insert(form.frame.clone()) && !rejected.has_form(&learner, form);
        let forms = forms.into_iter().zip(&groups);
        let forms = forms.filter_map(|(form, group)| {
            Some(FormEntry {
                form: form.filter(|form| accept_form(form))?,
                documents: clusters.remove(&group[0])?,
            })
        });
        Ok(forms.collect())
    }

    /// Returns the counts of each group's whole cluster by its kept document, equal texts included.
    fn tally_clusters(&self, groups: &[Vec<DocId>]) -> HashMap<DocId, FormTally> {
        let mut members: HashMap<DocId, Vec<DocId>> = groups
            .iter()
            .map(|group| (group[0], vec![group[0]]))
            .collect();
        for removal in self.removals {
            if let Some(members) = members.get_mut(&removal.kept.with) {
                members.push(removal.document);
            }
        }
        let tally = |(kept, mut members): (DocId, Vec<DocId>)| {
            members.sort_unstable();
            let mut tally = FormTally::default();
            for member in members {
                tally.count_document(member, member != kept);
            }
            (kept, tally)
        };
        members.into_iter().map(tally).collect()
    }
}

/// Lists forms within a budget of bytes.
struct FormLister<'a, 'c> {
    corpus: &'a RunCorpus<'c>,
    removed: HashSet<DocId>,
    removes_documents: bool,
    sources: &'a mut SourceNames,
    listed: ListedForms,
}

/// A document that is listed with its form.
struct FilledDocument {
    document: DocId,
    id: String,
    values: Vec<String>,
    /// Hash of the whole values.
    values_hash: u64,
    example: ExampleText,
}

/// A form with the documents that are read of it.
struct FormWithDocuments<'f> {
    entry: &'f FormEntry,
    documents: Vec<FilledDocument>,
}

impl FormWithDocuments<'_> {
    /// Returns about how many bytes the form and its first documents take in the JSON of a page, and not fewer.
    fn count_bytes(&self, documents: usize) -> usize {
        let frame = self.entry.form.frame.iter();
        let frame = frame.map(|part| count_json_bytes(part));
        let documents = &self.documents[..documents];
        let examples = choose_examples(documents).into_iter().flatten();
        let examples = examples.map(|example| count_json_bytes(&example.id));
        let documents = documents.iter().map(|filled| {
            let texts = std::iter::once(&filled.id).chain(&filled.values);
            30 + texts.map(|text| count_json_bytes(text)).sum::<usize>()
        });
        let of_name = count_json_bytes(&self.entry.form.name);
        FORM_FIXED_BYTES
            + of_name
            + frame.sum::<usize>()
            + examples.sum::<usize>()
            + documents.sum::<usize>()
    }

    /// Returns, per thousand of the documents read, how many have values that no other of them has. Copies of a text
    /// have few.
    fn distinct_permille(&self) -> usize {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for filled in &self.documents {
            *counts.entry(filled.values_hash).or_default() += 1;
        }
        let single = counts.values().filter(|&&count| count == 1).count();
        1000 * single / self.documents.len().max(1)
    }
}

impl FormLister<'_, '_> {
    /// Reads the first documents of each of `forms`. `recipe` must contain `table`. Documents of another form are left
    /// out.
    fn read_forms<'f>(
        &self,
        recipe: &Recipe,
        table: &FormTable,
        forms: &'f [FormEntry],
    ) -> Result<Vec<FormWithDocuments<'f>>> {
        let analyzer = TextAnalyzer::new(recipe);
        let forms = forms.iter().map(|entry| {
            Ok(FormWithDocuments {
                entry,
                documents: self.read_documents(&analyzer, table, entry)?,
            })
        });
        forms.collect()
    }

    /// Lists forms, and some documents of each. Each form may use an equal share of the remaining `budget` in bytes. A
    /// form is left out if it has fewer than two documents, or if two exceed the whole rest.
    fn list_forms(&mut self, forms: &[FormWithDocuments<'_>], mut budget: usize) {
        for (at, form) in forms.iter().enumerate() {
            let share = budget / (forms.len() - at);
            let mut listed = form.documents.len();
            while listed > LEAST_LISTED_DOCUMENTS && form.count_bytes(listed) > share {
                listed -= 1;
            }
            let bytes = form.count_bytes(listed);
            if listed < LEAST_LISTED_DOCUMENTS || bytes > budget {
                continue;
            }
            budget -= bytes;
            self.push_form(form.entry, &form.documents[..listed]);
        }
    }

    /// Reads the values of the first documents of a form.
    fn read_documents(
        &self,
        analyzer: &TextAnalyzer,
        table: &FormTable,
        entry: &FormEntry,
    ) -> Result<Vec<FilledDocument>> {
        let (mut parse, mut scratch) = (ParseScratch::default(), AnalysisScratch::default());
        let mut filled_documents = Vec::new();
        for &document in &entry.documents.first {
            let Some(text) = self.corpus.reread_text(document, &mut parse)? else {
                continue;
            };
            let filled = FilledForm::find_form(analyzer, &text, &mut scratch);
            let is_of_form =
                |filled: &FilledForm| table.forms()[filled.form_position()] == entry.form;
            let Some(filled) = filled.filter(is_of_form) else {
                continue;
            };
            let id = shorten_name(&self.corpus.document_id(document)?);
            filled_documents.push(FilledDocument {
                document,
                values_hash: hash_values(&filled),
                values: filled
                    .values()
                    .map(|value| shorten_text(value, VALUE_CHARACTERS))
                    .collect(),
                example: ExampleText {
                    id: id.clone(),
                    content_hash: ContentHash::from_text(&text).to_string(),
                    key: format!("{:032x}", self.corpus.key_of_text(&text)),
                },
                id,
            });
        }
        Ok(filled_documents)
    }

    fn push_form(&mut self, entry: &FormEntry, filled: &[FilledDocument]) {
        let forms = &mut self.listed.forms;
        let row = forms.name.len();
        let documents = &entry.documents;
        forms.name.push(entry.form.name.clone());
        forms.possible.push(false);
        forms.documents.push(documents.count);
        forms
            .removed
            .push(self.removes_documents.then_some(documents.removed));
        forms.frame.push(entry.form.frame.clone());
        let examples = choose_examples(filled);
        forms
            .examples
            .push(examples.map(|pair| pair.map(ExampleText::clone)));
        let columns = &mut self.listed.documents;
        for FilledDocument {
            document,
            id,
            values,
            ..
        } in filled
        {
            let (source, row_of_source) = self.corpus.source_and_row(*document);
            columns.form.push(row);
            columns.id.push(id.clone());
            columns.source.push(self.sources.number_source(source));
            columns.row.push(row_of_source);
            columns.removed.push(self.removed.contains(document));
            columns.values.push(values.clone());
        }
    }
}

fn hash_values(filled: &FilledForm) -> u64 {
    let values: Vec<&str> = filled.values().collect();
    lookalike::value_hash(values.join("\0").as_bytes())
}

/// Returns two documents whose texts differ after normalisation, with other values if there are some.
fn choose_examples(filled: &[FilledDocument]) -> Option<[&ExampleText; 2]> {
    let (first, others) = filled.split_first()?;
    let other_texts = || {
        let others = others.iter();
        others.filter(|other| other.example.key != first.example.key)
    };
    let with_values = other_texts().find(|other| other.values_hash != first.values_hash);
    let other = with_values.or_else(|| other_texts().next())?;
    Some([&first.example, &other.example])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are counted with the documents and with the examples, so a form with long ids stays in its budget.
    #[test]
    fn counted_bytes_of_a_form_are_enough_for_its_json() {
        for (id_length, frame) in [(1, "a"), (200, "\"price\" of "), (200, "")] {
            let id = "\"".repeat(id_length);
            let filled: Vec<FilledDocument> = (0..3)
                .map(|document| FilledDocument {
                    document: DocId(document),
                    id: id.clone(),
                    values: vec!["\n7".repeat(id_length)],
                    values_hash: document.into(),
                    example: ExampleText {
                        id: id.clone(),
                        content_hash: ContentHash::from_text(&id).to_string(),
                        key: format!("{document:032x}"),
                    },
                })
                .collect();
            let form = Form {
                name: "form-1".to_owned(),
                documents: 3,
                frame: vec![frame.to_owned(), String::new()],
                values: Vec::new(),
            };
            let forms = FormColumns {
                total: 1,
                name: vec![form.name.clone()],
                possible: vec![false],
                documents: vec![3],
                removed: vec![Some(2)],
                frame: vec![form.frame.clone()],
                examples: vec![choose_examples(&filled).map(|pair| pair.map(ExampleText::clone))],
            };
            let documents = FormDocumentColumns {
                form: vec![0; 3],
                id: filled.iter().map(|filled| filled.id.clone()).collect(),
                source: vec![0; 3],
                row: vec![1, 2, 3],
                removed: vec![false, true, true],
                values: filled.iter().map(|filled| filled.values.clone()).collect(),
            };
            let bytes = serde_json::to_string(&forms).unwrap().len()
                + serde_json::to_string(&documents).unwrap().len();
            let entry = FormEntry {
                form,
                documents: FormTally::default(),
            };
            let listed = FormWithDocuments {
                entry: &entry,
                documents: filled,
            };
            let counted = listed.count_bytes(3);
            assert!(counted >= bytes, "{counted} of {bytes}");
            assert!(counted < bytes + 400, "{counted} of {bytes}");
        }
    }
}
