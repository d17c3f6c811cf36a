//! The features, weights and sequences that documents are compared by, made again from the text on
//! demand.
//!
//! Features take more memory than text. So the first reading keeps only the features of short
//! documents, within a budget, and likewise characters or words where the measure compares sequences.
//! All others are made again from the text, and the most recent ones are cached up to a second budget.
//! Neither budget changes a result.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::judge::Compared;
use crate::error::{Error, Result};
use crate::sketches::Sketches;
use crate::types::DocId;
use crate::verify::Weighted;

/// A source that provides a document again, in the form in which it is compared.
pub trait Texts: Sync {
    /// Appends the distinct features of a document, ascending, by the recipe of the run.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()>;

    /// Appends the distinct features with their weights, ascending, as
    /// [`weighted_features`](crate::text::Analysis::weighted_features) does. Only
    /// [`Measure::Cosine`](crate::plan::Measure::Cosine) needs them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn weighted(&self, _document: DocId, _into: &mut Vec<Weighted>) -> Result<()> {
        Err(only_features("weights"))
    }

    /// Appends the normalised characters, as [`characters`](crate::text::Analysis::characters) returns
    /// them. Only measures of sequences need them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn characters(&self, _document: DocId, _into: &mut Vec<u32>) -> Result<()> {
        Err(only_features("characters"))
    }

    /// Appends the values of the tokens in the order of the text. Only measures of sequences need them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn words(&self, _document: DocId, _into: &mut Vec<u64>) -> Result<()> {
        Err(only_features("words"))
    }
}

fn only_features(what: &str) -> Error {
    Error::text(format!(
        "the measure compares {what}, and this source has only features: use the Jaccard index or \
         containment"
    ))
}

/// A cache of lists that were made recently, by document.
///
/// It is emptied when it is full. A list longer than a quarter of the budget is not cached.
pub(crate) struct Cache<K, T> {
    recent: Mutex<Recent<K, T>>,
    /// Largest number of items in all lists.
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

/// A list of features, weights, characters or words of one document: borrowed from the sketches, or
/// made again from the text.
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
    /// Returns an empty cache of up to `most` items.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            recent: Mutex::default(),
            most,
        }
    }

    /// Returns the number of items in all cached lists.
    pub(crate) fn held(&self) -> usize {
        self.recent().held
    }

    /// Returns the list of a document: `kept` if there is one, else the cached one, else the one that
    /// `make` fills.
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
        // A panic elsewhere leaves the map usable, because the insertion is the last step.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Provides the features, weights and sequences of all documents of a run, from sketches, cache or
/// text.
pub(super) struct Material<'a> {
    sketches: &'a Sketches,
    texts: &'a dyn Texts,
    features: Cache<DocId, u64>,
    weighted: Cache<DocId, Weighted>,
    characters: Cache<DocId, u32>,
    words: Cache<DocId, u64>,
}

impl<'a> Material<'a> {
    /// Returns a provider that caches up to `most` features, 8 bytes each, and as many bytes of each
    /// other kind that the measure needs.
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

    /// Returns a view of one document.
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

    /// Calls `visit` with the features of a document without caching them.
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

/// A view of one document in [`Material`].
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
