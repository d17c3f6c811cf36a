//! The functions of MinHashes, drawn once for each seed.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Functions by what they were drawn from.
pub(crate) struct FunctionCache<K, F>(Mutex<HashMap<K, Arc<F>>>);

/// Number of entries from which unused ones are dropped before a new one is drawn.
const MOST_ENTRIES: usize = 64;

impl<K: Eq + Hash, F> FunctionCache<K, F> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the functions of a key, which are drawn if they are not there.
    pub(crate) fn find_or_draw(&self, key: K, draw: impl FnOnce() -> F) -> Arc<F> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_ENTRIES && !known.contains_key(&key) {
            known.retain(|_, functions| Arc::strong_count(functions) > 1);
        }
        let functions = known.entry(key).or_insert_with(|| Arc::new(draw()));
        Arc::clone(functions)
    }
}
