//! What documents are compared by, made again from the text when it is wanted.
//!
//! Features take more room than text, so only those of short documents are kept from the first
//! reading, within a budget; likewise characters or words where sequences are compared. All others
//! are made from the text again, and those made last are remembered up to a second budget. Neither
//! changes any result.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::judge::Compared;
use crate::error::{Error, Result};
use crate::sketches::Sketches;
use crate::types::DocId;
use crate::verify::Weighted;

/// Gives a document again, as it is compared.
pub trait Texts: Sync {
    /// Appends the distinct features of a document, ascending, by the recipe of the run.
    ///
    /// # Errors
    /// If the text cannot be had any more.
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()>;

    /// Appends the distinct features with their weights, ascending, as
    /// [`weighted_features`](crate::text::Analysis::weighted_features) does. Asked for by
    /// [`Measure::Cosine`](crate::plan::Measure::Cosine) alone.
    ///
    /// # Errors
    /// If the text cannot be had any more, or nothing but features is given.
    fn weighted(&self, _document: DocId, _into: &mut Vec<Weighted>) -> Result<()> {
        Err(only_features("weights"))
    }

    /// Appends the normalised characters, as
    /// [`characters`](crate::text::Analysis::characters) has them. Asked for by measures of sequences
    /// alone.
    ///
    /// # Errors
    /// If the text cannot be had any more, or nothing but features is given.
    fn characters(&self, _document: DocId, _into: &mut Vec<u32>) -> Result<()> {
        Err(only_features("characters"))
    }

    /// Appends the values of the tokens in the order of the text. Asked for by measures of sequences
    /// alone.
    ///
    /// # Errors
    /// If the text cannot be had any more, or nothing but features is given.
    fn words(&self, _document: DocId, _into: &mut Vec<u64>) -> Result<()> {
        Err(only_features("words"))
    }
}

fn only_features(what: &str) -> Error {
    Error::text(format!(
        "the measure compares {what}, and this source of texts gives features alone: take the \
         Jaccard index or containment"
    ))
}

/// What was made of documents last, by what names a document.
pub(crate) struct Cache<K, T> {
    recent: Mutex<Recent<K, T>>,
    /// Items that are remembered at the most.
    most: usize,
}

struct Recent<K, T> {
    lists: HashMap<K, Arc<Vec<T>>>,
    held: usize,
}

impl<K, T> Default for Recent<K, T> {
    fn default() -> Self {
        Self {
            lists: HashMap::new(),
            held: 0,
        }
    }
}

/// A list of a document.
pub(crate) enum List<'a, T> {
    Kept(&'a [T]),
    Made(Arc<Vec<T>>),
}

impl<T> std::ops::Deref for List<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Kept(list) => list,
            Self::Made(list) => list,
        }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Cache<K, T> {
    /// Remembers up to `most` items.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            recent: Mutex::default(),
            most,
        }
    }

    /// How many items are remembered.
    pub(crate) fn held(&self) -> usize {
        self.recent().held
    }

    /// The list of a document: as it was kept, as it is remembered, or made by `make`.
    pub(crate) fn get<'a>(
        &self,
        document: K,
        kept: Option<&'a [T]>,
        make: impl FnOnce(&mut Vec<T>) -> Result<()>,
    ) -> Result<List<'a, T>> {
        if let Some(list) = kept {
            return Ok(List::Kept(list));
        }
        if let Some(list) = self.recent().lists.get(&document) {
            return Ok(List::Made(list.clone()));
        }
        let mut list = Vec::new();
        make(&mut list)?;
        list.shrink_to_fit();
        let list = Arc::new(list);
        self.remember(document, &list);
        Ok(List::Made(list))
    }

    fn remember(&self, document: K, list: &Arc<Vec<T>>) {
        if list.len() > self.most / 4 {
            return;
        }
        let mut recent = self.recent();
        if recent.held + list.len() > self.most {
            *recent = Recent::default();
        }
        recent.held += list.len();
        recent.lists.insert(document, list.clone());
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent<K, T>> {
        // A panic elsewhere leaves the map usable: an insertion is its last step.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks up what documents are compared by.
pub(super) struct Material<'a> {
    sketches: &'a Sketches,
    texts: &'a dyn Texts,
    features: Cache<DocId, u64>,
    weighted: Cache<DocId, Weighted>,
    characters: Cache<DocId, u32>,
    words: Cache<DocId, u64>,
}

impl<'a> Material<'a> {
    /// Up to `most` features are remembered, 8 bytes each, and as many bytes of each other kind that
    /// is asked for.
    pub(super) fn new(sketches: &'a Sketches, texts: &'a dyn Texts, most: usize) -> Self {
        Self {
            sketches,
            texts,
            features: Cache::new(most),
            weighted: Cache::new(most / 2),
            characters: Cache::new(2 * most),
            words: Cache::new(most),
        }
    }

    /// What one document is compared by.
    pub(super) fn of(&self, document: DocId) -> OfDocument<'_, 'a> {
        let material = self;
        OfDocument { material, document }
    }

    pub(super) fn features(&self, document: DocId) -> Result<List<'a, u64>> {
        let kept = self.sketches.features(document);
        let make = |into: &mut Vec<u64>| self.texts.features(document, into);
        self.features.get(document, kept, make)
    }

    pub(super) fn weighted(&self, document: DocId) -> Result<List<'a, Weighted>> {
        let make = |into: &mut Vec<Weighted>| self.texts.weighted(document, into);
        self.weighted.get(document, None, make)
    }

    pub(super) fn characters(&self, document: DocId) -> Result<List<'a, u32>> {
        let kept = self.sketches.characters(document);
        let make = |into: &mut Vec<u32>| self.texts.characters(document, into);
        self.characters.get(document, kept, make)
    }

    pub(super) fn words(&self, document: DocId) -> Result<List<'a, u64>> {
        let kept = self.sketches.words(document);
        let make = |into: &mut Vec<u64>| self.texts.words(document, into);
        self.words.get(document, kept, make)
    }

    /// Calls back with the features of a document without remembering them.
    pub(super) fn features_once(
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
}

/// What one document is compared by.
pub(super) struct OfDocument<'m, 'a> {
    material: &'m Material<'a>,
    document: DocId,
}

impl Compared for OfDocument<'_, '_> {
    fn features(&self) -> Result<List<'_, u64>> {
        self.material.features(self.document)
    }

    fn weighted(&self) -> Result<List<'_, Weighted>> {
        self.material.weighted(self.document)
    }

    fn characters(&self) -> Result<List<'_, u32>> {
        self.material.characters(self.document)
    }

    fn words(&self) -> Result<List<'_, u64>> {
        self.material.words(self.document)
    }
}
