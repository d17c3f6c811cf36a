//! The second pass over a portion of the documents, which determines the role of each in the resolve
//! step.

use std::sync::Arc;

use super::{ComponentMembers, ShuffleDocument, ShuffleSetup, TextName};
use crate::error::Result;
use crate::sketch::DocumentSketches;
use crate::text::AnalysisScratch;
use crate::types::DocId;

/// The role of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentRole {
    /// The document is kept without being resolved: it has no link, or it is known and repeats a known text.
    KeptHere,
    /// The document is removed: it has the text of the document with this id, which comes first and is
    /// kept.
    Repeats(String),
    /// The document is sent to the task that resolves its component.
    Member {
        /// Component of the document.
        component: u64,
        /// Name of the text.
        name: TextName,
        /// Position of the document.
        position: Vec<u8>,
        /// `true` if the document is the first with this text, so that the text is sent too.
        first: bool,
        /// `true` if other documents have this text.
        repeated: bool,
    },
}

/// Determines the roles of documents.
pub struct RoleFinder {
    setup: Arc<ShuffleSetup>,
    members: Arc<ComponentMembers>,
    scratch: AnalysisScratch,
    sketches: DocumentSketches,
}

impl RoleFinder {
    /// Creates a finder with the members of the whole run.
    pub fn new(setup: Arc<ShuffleSetup>, members: Arc<ComponentMembers>) -> Self {
        Self {
            sketches: DocumentSketches::default(),
            scratch: AnalysisScratch::default(),
            setup,
            members,
        }
    }

    /// Returns the role of a document.
    ///
    /// # Errors
    /// Fails if a position among the members does not belong to this run.
    pub fn document_role(&mut self, document: &ShuffleDocument<'_>) -> Result<DocumentRole> {
        let Some(name) = self.text_name(document) else {
            return Ok(DocumentRole::KeptHere);
        };
        let component = self.members.component_of(name.text_node());
        let first = self.members.first_position(name);
        if component.is_none() && first.is_none() {
            return Ok(DocumentRole::KeptHere);
        }
        let position = self.document_position(document);
        let is_first = first.is_none_or(|first| first == position);
        if document.is_known && !is_first {
            // It is kept, and documents that match it name the first document with its text.
            return Ok(DocumentRole::KeptHere);
        }
        match (component, first) {
            (Some(component), _) => Ok(DocumentRole::Member {
                component: component.0,
                name,
                position,
                first: is_first,
                repeated: first.is_some(),
            }),
            (None, Some(first)) if !is_first => Ok(DocumentRole::Repeats(
                self.setup.id_at_position(first)?.to_owned(),
            )),
            (None, _) => Ok(DocumentRole::KeptHere),
        }
    }

    /// Returns the name of a document's text, or `None` for an empty text, which matches nothing.
    pub fn text_name(&mut self, document: &ShuffleDocument<'_>) -> Option<TextName> {
        let analysis = self.setup.analyze_text(document.text, &mut self.scratch);
        self.sketches.reset_to_name(&analysis, &self.setup.plan);
        self.setup
            .text_name(&self.sketches, DocId(0), document.partition)
    }

    /// Returns the position of a document.
    pub fn document_position(&self, document: &ShuffleDocument<'_>) -> Vec<u8> {
        self.setup.document_position(document)
    }
}
