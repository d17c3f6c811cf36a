//! A portion of the documents again: who of them has a part in what follows.

use std::sync::Arc;

use super::{Document, Members, Setup, TextName};
use crate::error::Result;
use crate::sketches::Sketches;
use crate::text::Scratch;
use crate::types::DocId;

/// What is to be done with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing: it is kept.
    Alone,
    /// It is removed: it has the text of this document, the first one, which is kept.
    Repeats(String),
    /// It goes to the walk through its component.
    Member {
        /// The component.
        component: u64,
        /// Its text.
        name: TextName,
        /// Its position.
        position: Vec<u8>,
        /// Whether it is the first with this text, so that the text goes along.
        first: bool,
        /// Whether other documents have this text.
        repeated: bool,
    },
}

/// Finds the documents with a part in components.
pub struct Collect {
    setup: Arc<Setup>,
    members: Arc<Members>,
    scratch: Scratch,
    sketches: Sketches,
}

impl Collect {
    /// With the members of the whole run.
    pub fn new(setup: Arc<Setup>, members: Arc<Members>) -> Self {
        Self {
            sketches: Sketches::default(),
            scratch: Scratch::default(),
            setup,
            members,
        }
    }

    /// What is to be done with a document.
    ///
    /// # Errors
    /// If the positions of the members are none of this run.
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
            // It is kept, and whatever matches it names the first.
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

    /// The name of a document's text; None if it matches nothing.
    pub fn name(&mut self, document: &Document<'_>) -> Option<TextName> {
        let analysis = self.setup.analyze(document.text, &mut self.scratch);
        self.sketches.name_only(&analysis);
        self.setup.name(&self.sketches, DocId(0), document.part)
    }

    /// The position of a document.
    pub fn position(&self, document: &Document<'_>) -> Vec<u8> {
        self.setup.position(document)
    }
}
