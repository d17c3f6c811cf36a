//! The inputs of a run that reads its rows twice, and where each document's row is.
//!
//! If the run has an index, its matching documents come first and have the first numbers. Those of `--against` follow.

use std::borrow::Cow;

use lookalike::DocId;
use lookalike_documents::ExtractedText;
use lookalike_io::error::Result;
use lookalike_io::source::{InputSet, ParseScratch};

use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::repeated_ids::read_id;

/// Documents of an index that match documents of the run. Their texts are not read.
#[derive(Debug, Default)]
pub(in crate::run) struct IndexedDocuments {
    /// The name of the index.
    pub(in crate::run) source: String,
    pub(in crate::run) documents: Vec<IndexedDocument>,
}

/// The rows of all documents of a run.
pub(in crate::run) struct CorpusRows<'a> {
    pub(in crate::run) opened: &'a OpenInputs,
    pub(in crate::run) indexed: IndexedDocuments,
    pub(in crate::run) against: ReadDocuments,
    pub(in crate::run) documents: ReadDocuments,
}

impl CorpusRows<'_> {
    /// Returns the name of a document's input and the row number within it, from 1.
    pub(in crate::run) fn source_and_row(&self, document: DocId) -> (&str, u64) {
        if let Some(indexed) = self.indexed.documents.get(document.index()) {
            return (&self.indexed.source, indexed.row_number);
        }
        let (inputs, documents, index) = self.locate_document(document);
        inputs.source_row(documents.place_of(index), documents.row_number(index))
    }

    /// Returns the number of documents that are known before the run: matching documents of the index, and documents
    /// of `--against`.
    pub(in crate::run) fn known_count(&self) -> usize {
        self.indexed.documents.len() + self.against.len()
    }

    /// Returns the number of all documents, including the known ones.
    pub(in crate::run) fn len(&self) -> usize {
        self.known_count() + self.documents.len()
    }

    /// Returns all documents but those of the index.
    pub(in crate::run) fn input_documents(&self) -> impl Iterator<Item = DocId> + Clone + use<> {
        (self.indexed.documents.len() as u32..self.len() as u32).map(DocId)
    }

    /// Returns the node number of a document in the graph of possible matches, which a run out of core builds. It follows
    /// from the row: rows of `--against` come first. Documents of the index have no node.
    pub(in crate::run) fn node_of(&self, document: DocId) -> u32 {
        let (_, documents, index) = self.locate_document(document);
        let first = if document.index() < self.known_count() {
            0
        } else {
            self.against.last_number()
        };
        (first + documents.row_number(index) - 1) as u32
    }

    /// Returns the number of nodes in the graph of possible matches.
    pub(in crate::run) fn node_count(&self) -> usize {
        (self.against.last_number() + self.documents.last_number()) as usize
    }

    /// Returns the document with a node number.
    pub(in crate::run) fn document_of_node(&self, node: u32) -> Option<DocId> {
        let number = u64::from(node) + 1;
        let index = match number.checked_sub(self.against.last_number()) {
            None | Some(0) => self.indexed.documents.len() + self.against.index_of_row(number)?,
            Some(number) => self.known_count() + self.documents.index_of_row(number)?,
        };
        Some(DocId(index as u32))
    }

    /// Reads the text of a document again. Returns `None` if its features were given instead.
    pub(in crate::run) fn reread_text(
        &self,
        document: DocId,
        parse: &mut ParseScratch,
    ) -> Result<Option<String>> {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.reread_row(documents.place_of(index), parse, |row| {
            row.features.is_none().then(|| row.text.to_owned())
        })
    }

    /// Reads a document again, with the places of its characters if it is a document file.
    pub(in crate::run) fn reread_document(
        &self,
        document: DocId,
        parse: &mut ParseScratch,
    ) -> Result<ExtractedText> {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.reread_document(documents.place_of(index), parse)
    }

    /// Returns the inputs and the documents to which a document belongs, and its index among these documents. The
    /// document must not be from the index, because documents of the index have no rows in inputs.
    pub(in crate::run) fn locate_document(
        &self,
        document: DocId,
    ) -> (&InputSet, &ReadDocuments, usize) {
        let position = document.index();
        if let Some(index) = position.checked_sub(self.known_count()) {
            return (&self.opened.documents, &self.documents, index);
        }
        let index = position
            .checked_sub(self.indexed.documents.len())
            .expect("documents of the index have no rows in inputs, so no caller asks for them");
        let against = self.opened.against.as_ref();
        let against =
            against.expect("known documents behind those of the index are from `--against`");
        (against, &self.against, index)
    }

    /// Returns the id of a document.
    pub(in crate::run) fn document_id(&self, document: DocId) -> Result<Cow<'_, str>> {
        if let Some(indexed) = self.indexed.documents.get(document.index()) {
            return Ok(Cow::Borrowed(&indexed.id));
        }
        let (inputs, documents, index) = self.locate_document(document);
        read_id(inputs, documents, index)
    }
}

/// Reference of the output tables to a document of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedDocument {
    pub(crate) id: String,
    /// Position among all rows of the index, from 0.
    pub(crate) position: u64,
    /// Row number in the index, from 1, not counting rows deleted from it.
    pub(crate) row_number: u64,
}
