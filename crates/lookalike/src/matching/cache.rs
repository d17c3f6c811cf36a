//! Features of documents, made again from the text when they are wanted.
//!
//! Features take more room than text, so only those of short documents are kept from the first
//! reading, within a budget. All others are made from the text again, and those made last are
//! remembered up to a second budget. Neither changes any result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::sketches::Sketches;
use crate::types::DocId;

/// Gives the features of a document again.
pub trait Texts: Sync {
    /// Appends the distinct features of a document, ascending, by the recipe of the run.
    ///
    /// # Errors
    /// If the text cannot be had any more.
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()>;
}

/// Looks up features.
pub(super) struct FeatureCache<'a> {
    sketches: &'a Sketches,
    texts: &'a dyn Texts,
    recent: Mutex<Recent>,
    /// Features that are remembered at the most.
    most: usize,
}

#[derive(Default)]
struct Recent {
    features: HashMap<DocId, Arc<[u64]>>,
    held: usize,
}

/// The features of a document.
pub(super) enum Features<'a> {
    Kept(&'a [u64]),
    Made(Arc<[u64]>),
}

impl std::ops::Deref for Features<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Kept(features) => features,
            Self::Made(features) => features,
        }
    }
}

impl<'a> FeatureCache<'a> {
    pub(super) fn new(sketches: &'a Sketches, texts: &'a dyn Texts, most: usize) -> Self {
        Self {
            sketches,
            texts,
            recent: Mutex::default(),
            most,
        }
    }

    pub(super) fn get(&self, document: DocId) -> Result<Features<'a>> {
        if let Some(features) = self.sketches.features(document) {
            return Ok(Features::Kept(features));
        }
        if let Some(features) = self.recent().features.get(&document) {
            return Ok(Features::Made(features.clone()));
        }
        let mut features = Vec::new();
        self.texts.features(document, &mut features)?;
        let features: Arc<[u64]> = features.into();
        self.remember(document, &features);
        Ok(Features::Made(features))
    }

    /// Calls back with the features of a document without remembering them.
    pub(super) fn once(
        &self,
        document: DocId,
        buffer: &mut Vec<u64>,
        visit: impl FnOnce(&[u64]),
    ) -> Result<()> {
        if let Some(features) = self.sketches.features(document) {
            visit(features);
        } else {
            buffer.clear();
            self.texts.features(document, buffer)?;
            visit(buffer);
        }
        Ok(())
    }

    fn remember(&self, document: DocId, features: &Arc<[u64]>) {
        if features.len() > self.most / 4 {
            return;
        }
        let mut recent = self.recent();
        if recent.held + features.len() > self.most {
            *recent = Recent::default();
        }
        recent.held += features.len();
        recent.features.insert(document, features.clone());
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        // A panic elsewhere leaves the map usable: an insertion is its last step.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
