//! The outputs of a dedup run: kept rows, removed documents and clusters.

use std::borrow::Cow;

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike_io::error::Result;
use lookalike_io::sink::{
    AddedField, AddedFields, AddedKind, AddedValue, OutputRows, OutputTarget, RowChange,
    StagedOutput, TableCell, TableColumn, TableWriter, WriteOptions, prepare_kept,
};
use lookalike_io::source::RowPlace;
use rayon::prelude::*;

use super::copy_counts::CopyCounts;
use super::verdicts::DocumentVerdicts;
use crate::run::commands::output_settings::DedupOutputs;
use crate::run::commands::repeated_text::{RepeatedPassages, RepeatedTextAction};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::RunSettings;

/// The fields of `--annotate`.
const ANNOTATED_FIELDS: [AddedField; 3] = [
    AddedField {
        name: Cow::Borrowed("cluster"),
        kind: AddedKind::Text,
    },
    AddedField {
        name: Cow::Borrowed("duplicate_of"),
        kind: AddedKind::Text,
    },
    AddedField {
        name: Cow::Borrowed("similarity"),
        kind: AddedKind::Number,
    },
];

/// Number of removals of which the forms are found at a time.
const REMOVALS_AT_ONCE: usize = 8192;

/// The field of `--passages mark`.
const MARKED_FIELDS: [AddedField; 1] = [AddedField {
    name: Cow::Borrowed("passages"),
    kind: AddedKind::Text,
}];

impl DocumentVerdicts<'_> {
    /// Completes the tables of removed documents and clusters that are wanted.
    pub(super) fn write_tables(
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

    /// Writes kept rows.
    pub(super) fn write_kept(
        &self,
        opened: &OpenInputs,
        outputs: &DedupOutputs,
        repeated: Option<&RepeatedPassages>,
        settings: &RunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<Option<StagedOutput>> {
        let Some(output) = &outputs.kept else {
            return Ok(None);
        };
        progress.begin_stage(RunStage::Write, Some(self.corpus.documents.len() as u64));
        let document = |index: usize| DocId((self.corpus.known_count() + index) as u32);
        let action = outputs.passages.map(|passages| passages.action);
        let marks = repeated.filter(|_| action == Some(RepeatedTextAction::Mark));
        let copy_fields = &outputs.copy_fields;
        let copies = (!copy_fields.is_empty()).then(|| CopyCounts::count(self));
        let mut fields = Vec::new();
        fields.extend(marks.iter().flat_map(|_| MARKED_FIELDS));
        fields.extend(
            outputs
                .annotate
                .then_some(ANNOTATED_FIELDS)
                .into_iter()
                .flatten(),
        );
        fields.extend(copy_fields.added_fields());
        let values = |index: usize| {
            let document = document(index);
            let mut values = Vec::new();
            if let Some(repeated) = marks {
                values.push(repeated.marked_value(document)?);
            }
            if outputs.annotate {
                values.extend(self.annotation(document)?);
            }
            let copies = copies.as_ref();
            values.extend(
                copies
                    .map(|copies| copies.added_values(copy_fields, document))
                    .into_iter()
                    .flatten(),
            );
            Ok(values)
        };
        let added = AddedFields {
            fields: &fields,
            values: &values,
        };
        let left_out = |index: usize| match repeated {
            Some(repeated) => repeated.left_out(document(index)),
            None => Ok(None),
        };
        let options = WriteOptions {
            change: if action == Some(RepeatedTextAction::Remove) {
                RowChange::CutText(&left_out)
            } else if fields.is_empty() {
                RowChange::Unchanged
            } else {
                RowChange::AddFields(&added)
            },
            threads: settings.threads,
        };
        let rows = VerdictRows {
            verdicts: self,
            all: outputs.annotate,
        };
        let advance = |done| progress.advance_stage(done);
        let prepared = prepare_kept(&opened.documents, &rows, output, &options, &advance);
        StagedOutput::even_if_unread(prepared).map(Some)
    }

    fn write_removed(&self, output: &OutputTarget, opened: &OpenInputs) -> Result<StagedOutput> {
        let mut columns = vec![
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
        let compares_forms = self.corpus.plan.compares_forms();
        columns.extend(compares_forms.then_some(TableColumn::Text("form")));
        let threshold = self.corpus.plan.threshold().get();
        let mut table = TableWriter::create_table(output, &columns, Some(&opened.documents))?;
        let removals = self.list_new_documents();
        let removals: Vec<&DocumentRemoval> = removals
            .filter_map(|document| self.removal_of(document))
            .collect();
        for removals in removals.chunks(REMOVALS_AT_ONCE) {
            let forms = self.find_forms(removals)?;
            self.push_removals(removals, &forms, threshold, &mut table)?;
        }
        table.prepare_table()
    }

    /// Returns the name of the form of each removed document and its kept one; nothing if the run does not compare forms.
    fn find_forms(&self, removals: &[&DocumentRemoval]) -> Result<Vec<Option<&str>>> {
        if !self.corpus.plan.compares_forms() {
            return Ok(Vec::new());
        }
        let removals = removals.par_iter();
        let forms = removals.map(|removal| {
            let kept = removal.kept;
            self.corpus
                .find_common_form(removal.document, kept.with, kept.route)
        });
        forms.collect()
    }

    /// Adds the rows of removals to their table, with `forms` in the last column if the run compares forms.
    fn push_removals(
        &self,
        removals: &[&DocumentRemoval],
        forms: &[Option<&str>],
        threshold: f64,
        table: &mut TableWriter,
    ) -> Result<()> {
        for (at, removal) in removals.iter().enumerate() {
            let document = removal.document;
            let kept = self.corpus.document_id(removal.kept.with)?;
            let (source, row) = self.corpus.source_and_row(document);
            let (kept_source, kept_row) = self.corpus.source_and_row(removal.kept.with);
            let id = self.corpus.document_id(document)?;
            let representative = self.representative_of(document);
            let cluster = self.corpus.document_id(representative)?;
            let mut cells = vec![
                TableCell::Text(&id),
                TableCell::Text(&kept),
                TableCell::Number(removal.kept.similarity.get()),
                TableCell::Text(removal.kept.route.name()),
                TableCell::Number(threshold),
                TableCell::Text(&cluster),
                TableCell::Text(source),
                TableCell::Integer(row),
                TableCell::Text(kept_source),
                TableCell::Integer(kept_row),
            ];
            let form = forms.get(at);
            cells.extend(form.map(|form| form.map_or(TableCell::Null, TableCell::Text)));
            table.push_row(&cells)?;
        }
        Ok(())
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
        columns.extend(self.components.map(|_| TableColumn::Text("component")));
        let mut represents = vec![false; self.corpus.len()];
        for removal in &self.outcome.removals {
            represents[removal.kept.with.index()] = true;
        }
        // A document may be alone in its cluster but share a component with others.
        let mut connected = vec![0u32; self.components.map_or(0, <[DocId]>::len)];
        for component in self.components.into_iter().flatten() {
            connected[component.index()] += 1;
        }
        let is_connected = |document: DocId| {
            let component = self
                .components
                .map(|components| components[document.index()]);
            component.is_some_and(|component| connected[component.index()] > 1)
        };
        let mut table = TableWriter::create_table(output, &columns, Some(&opened.documents))?;
        for document in (0..self.corpus.len()).map(|at| DocId(at as u32)) {
            let removal = self.verdict_of(document);
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
                TableCell::Bool(self.is_kept(document)),
                TableCell::Text(source),
                TableCell::Integer(row),
            ];
            let component = match self.components {
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
        let document = DocId((self.verdicts.corpus.known_count() + index) as u32);
        self.all || self.verdicts.is_kept(document)
    }
}
