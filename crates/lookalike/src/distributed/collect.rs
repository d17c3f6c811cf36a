//! The second pass over a portion of the documents, which determines the role of each in the resolve
//! step.

use std::sync::Arc;

use super::{Document, Members, Setup, TextName};
use crate::error::Result;
use crate::sketches::Sketches;
use crate::text::Scratch;
use crate::types::DocId;

/// The role of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The document is kept, because it has no link.
    Alone,
    /// The document is removed: it has the text of the document with this id, which comes first and is
    /// kept.
    Repeats(String),
    /// The document is sent to the thread that resolves its component.
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
pub struct Collect {
    setup: Arc<Setup>,
    members: Arc<Members>,
    scratch: Scratch,
    sketches: Sketches,
}

impl Collect {
    /// Returns a collector with the members of the whole run.
    pub fn new(setup: Arc<Setup>, members: Arc<Members>) -> Self {
        Self {
            sketches: Sketches::default(),
            scratch: Scratch::default(),
            setup,
            members,
        }
    }

    /// Returns the role of a document.
    ///
    /// # Errors
    /// Fails if a position among the members does not belong to this run.
    pub fn role(&mut self, document: &Document<'_>) -> Result<Role> {
        let Some(name) = self.name(document) else {
            return Ok(Role::Alone);
        };
        let component = self.members.component(name.node());
        let first = self.members.first(name);
        if component.is_none() && first.is_none() {
            return Ok(Role::Alone);
        }
        let position = self.position(document);
        let is_first = first.is_none_or(|first| first == position);
        if document.given && !is_first {
            // It is kept, and documents that match it name the first document with its text.
            return Ok(Role::Alone);
        }
        match (component, first) {
            (Some(component), _) => Ok(Role::Member {
                component: component.0,
                name,
                position,
                first: is_first,
                repeated: first.is_some(),
            }),
            (None, Some(first)) if !is_first => {
                Ok(Role::Repeats(self.setup.id_at(first)?.to_owned()))
            }
            (None, _) => Ok(Role::Alone),
        }
    }

    /// Returns the name of a document's text, or `None` for an empty text, which matches nothing.
    pub fn name(&mut self, document: &Document<'_>) -> Option<TextName> {
        let analysis = self.setup.analyze(document.text, &mut self.scratch);
        self.sketches.name_only(&analysis);
        self.setup.name(&self.sketches, DocId(0), document.part)
    }

    /// Returns the position of a document.
    pub fn position(&self, document: &Document<'_>) -> Vec<u8> {
        self.setup.position(document)
    }
}
