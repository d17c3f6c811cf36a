//! How many documents a kept one stands for, and where these come from.
//!
//! A kept document stands for itself and for all removed documents that name it. So the copies of all kept documents
//! together are the documents of the run, without those that are removed for a document of `--against` or of an index.

use lookalike::DocId;
use lookalike_io::sink::{AddedField, AddedKind, AddedValue};

use super::verdicts::DocumentVerdicts;
use crate::index::counts::DocumentCounts;
use crate::run::commands::output_settings::CopyFields;

/// The numbers of copies, and the sources of kept documents.
pub(super) struct CopyCounts<'a> {
    verdicts: &'a DocumentVerdicts<'a>,
    /// For each document: the new documents that it stands for.
    copies: Vec<u32>,
    /// The kept document and the number of the source of each new document, sorted; empty if sources are not counted.
    sources: Vec<(DocId, u32)>,
}

impl<'a> CopyCounts<'a> {
    /// Counts the copies of all documents, and their sources if the documents have any.
    pub(super) fn count(verdicts: &'a DocumentVerdicts<'a>) -> Self {
        let corpus = verdicts.corpus;
        let mut copies = vec![0u32; corpus.len()];
        let mut sources = Vec::new();
        let values = &corpus.documents.sources;
        for (at, document) in verdicts.list_new_documents().enumerate() {
            let removal = verdicts.removal_of(document);
            let kept = removal.map_or(document, |removal| removal.kept.with);
            copies[kept.index()] += 1;
            sources.extend(values.value_of(at).map(|value| (kept, value)));
        }
        sources.sort_unstable();
        Self {
            verdicts,
            copies,
            sources,
        }
    }

    /// Returns the number of new documents that a document stands for, itself included if it is new.
    pub(super) fn copies_of(&self, document: DocId) -> u64 {
        u64::from(self.copies[document.index()])
    }

    /// Returns the sources of the documents that a document stands for, with the number of documents of each, the most
    /// frequent first, then in the order of their bytes.
    pub(super) fn sources_of(&self, document: DocId) -> Vec<(&'a str, u64)> {
        let values = &self.verdicts.corpus.documents.sources;
        let start = self.sources.partition_point(|&(kept, _)| kept < document);
        let own = self.sources[start..].iter();
        let own: Vec<u32> = own
            .take_while(|(kept, _)| *kept == document)
            .map(|&(_, value)| value)
            .collect();
        let counted = own.chunk_by(|a, b| a == b);
        let mut counted: Vec<(&str, u64)> = counted
            .map(|equal| (values.text_of(equal[0]), equal.len() as u64))
            .collect();
        sort_sources(&mut counted);
        counted
    }

    /// Returns the documents for which a document stands, as an index stores them.
    pub(super) fn counts_of(&self, document: DocId) -> DocumentCounts {
        let sources = self.sources_of(document).into_iter();
        DocumentCounts {
            copies: self.copies_of(document),
            sources: sources
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
        }
    }

    /// Returns the values of the fields of a row. A removed row stands for nothing, and its values are null.
    pub(super) fn added_values(&self, fields: &CopyFields, document: DocId) -> Vec<AddedValue> {
        let is_kept = self.verdicts.is_kept(document);
        let copies = self.copies_of(document);
        let copied = fields.copies.as_ref().map(|_| AddedValue::Integer(copies));
        let sources = fields.sources.as_ref().map(|field| {
            let sources = self.sources_of(document).into_iter();
            let names = sources.take(field.most).map(|(name, _)| name.to_owned());
            AddedValue::Texts(names.collect())
        });
        let weight = fields.weight.as_ref().map(|field| {
            let weight = field.rule.weight_of(copies.max(1));
            AddedValue::Number(weight)
        });
        let values = copied.into_iter().chain(sources).chain(weight);
        values
            .map(|value| if is_kept { value } else { AddedValue::Null })
            .collect()
    }
}

/// Sorts sources: the most frequent first, then in the order of their bytes.
pub(crate) fn sort_sources<T: AsRef<str>>(sources: &mut [(T, u64)]) {
    sources.sort_unstable_by(|(a, a_count), (b, b_count)| {
        let by_name = || a.as_ref().as_bytes().cmp(b.as_ref().as_bytes());
        b_count.cmp(a_count).then_with(by_name)
    });
}

impl CopyFields {
    /// Returns the fields in the order of their values.
    pub(super) fn added_fields(&self) -> impl Iterator<Item = AddedField> {
        let field = |name: &String, kind| AddedField {
            name: name.clone().into(),
            kind,
        };
        let copies = self
            .copies
            .iter()
            .map(move |name| field(name, AddedKind::Integer));
        let sources = self.sources.iter();
        let sources = sources.map(move |sources| field(&sources.name, AddedKind::Texts));
        let weight = self.weight.iter();
        let weight = weight.map(move |weight| field(&weight.name, AddedKind::Number));
        copies
            .chain(sources)
            .chain(weight)
            .collect::<Vec<_>>()
            .into_iter()
    }
}
