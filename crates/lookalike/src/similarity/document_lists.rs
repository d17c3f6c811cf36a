//! Lists of features, weights, characters or words of documents, and a cache of those that were made again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;

/// A list of features, weights, characters or words of one document: borrowed from the sketches, or
/// made again from the text.
pub(crate) enum DocumentList<'a, T> {
    Kept(&'a [T]),
    Made(Arc<Vec<T>>),
}

impl<T> std::ops::Deref for DocumentList<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Kept(list) => list,
            Self::Made(list) => list,
        }
    }
}

/// A cache of lists that were made recently, by document.
///
/// It is emptied when it is full. A list longer than a quarter of the budget is not cached.
pub(crate) struct DocumentListCache<K, T> {
    recent: Mutex<RecentLists<K, T>>,
    /// Largest number of items in all lists.
    most: usize,
}

struct RecentLists<K, T> {
    lists: HashMap<K, Arc<Vec<T>>>,
    held: usize,
}

impl<K, T> Default for RecentLists<K, T> {
    fn default() -> Self {
        Self {
            lists: HashMap::new(),
            held: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> DocumentListCache<K, T> {
    /// Returns an empty cache of up to `most` items.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            recent: Mutex::default(),
            most,
        }
    }

    /// Returns the number of items in all cached lists.
    pub(crate) fn count_items(&self) -> usize {
        self.lock_recent().held
    }

    /// Returns the list of a document: `kept` if there is one, else the cached one, else the one that
    /// `make` fills.
    pub(crate) fn get_or_make<'a>(
        &self,
        document: K,
        kept: Option<&'a [T]>,
        make: impl FnOnce(&mut Vec<T>) -> Result<()>,
    ) -> Result<DocumentList<'a, T>> {
        if let Some(list) = kept {
            return Ok(DocumentList::Kept(list));
        }
        if let Some(list) = self.lock_recent().lists.get(&document) {
            return Ok(DocumentList::Made(list.clone()));
        }
        let mut list = Vec::new();
        make(&mut list)?;
        list.shrink_to_fit();
        let list = Arc::new(list);
        self.remember_list(document, &list);
        Ok(DocumentList::Made(list))
    }

    fn remember_list(&self, document: K, list: &Arc<Vec<T>>) {
        if list.len() > self.most / 4 {
            return;
        }
        let mut recent = self.lock_recent();
        if recent.held + list.len() > self.most {
            *recent = RecentLists::default();
        }
        recent.held += list.len();
        recent.lists.insert(document, list.clone());
    }

    fn lock_recent(&self) -> std::sync::MutexGuard<'_, RecentLists<K, T>> {
        // A panic elsewhere leaves the map usable, because the insertion is the last step.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
