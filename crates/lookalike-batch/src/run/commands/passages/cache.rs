//! A cache of values computed from documents, bounded by its bytes.

use std::collections::{HashMap, VecDeque};

use lookalike::DocId;

/// Values by document. The oldest value goes first, unless it was used again since it came in or was last spared.
#[derive(Debug)]
pub(in crate::run) struct DocumentCache<T> {
    max_bytes: usize,
    values: HashMap<DocId, CachedValue<T>>,
    /// Oldest first.
    queue: VecDeque<DocId>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedValue<T> {
    value: T,
    bytes: usize,
    was_used: bool,
}

impl<T: Clone> DocumentCache<T> {
    pub(in crate::run) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            values: HashMap::new(),
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(in crate::run) fn find_value(&mut self, document: DocId) -> Option<T> {
        let cached = self.values.get_mut(&document)?;
        cached.was_used = true;
        Some(cached.value.clone())
    }

    /// Adds a value that takes this many bytes, and removes others until all fit. A value that is larger than the
    /// cache is not added.
    pub(in crate::run) fn add_value(&mut self, document: DocId, value: T, bytes: usize) {
        if bytes > self.max_bytes || self.values.contains_key(&document) {
            return;
        }
        while self.bytes + bytes > self.max_bytes
            && let Some(oldest) = self.queue.pop_front()
        {
            self.drop_or_spare(oldest);
        }
        let was_used = false;
        let cached = CachedValue {
            value,
            bytes,
            was_used,
        };
        self.bytes += bytes;
        self.values.insert(document, cached);
        self.queue.push_back(document);
    }

    fn drop_or_spare(&mut self, document: DocId) {
        let Some(cached) = self.values.get_mut(&document) else {
            return;
        };
        if std::mem::take(&mut cached.was_used) {
            self.queue.push_back(document);
        } else {
            self.bytes -= cached.bytes;
            self.values.remove(&document);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_stays_within_its_bytes() {
        let mut cache = DocumentCache::new(10);
        for document in 0..100 {
            cache.add_value(DocId(document), document, 3);
            assert!(cache.bytes <= 10 && cache.values.len() == cache.queue.len());
            assert_eq!(cache.find_value(DocId(document)), Some(document));
        }
        cache.add_value(DocId(200), 200, 11);
        assert_eq!(cache.find_value(DocId(200)), None);
    }

    #[test]
    fn value_in_use_stays() {
        let mut cache = DocumentCache::new(4);
        cache.add_value(DocId(0), (), 1);
        for document in 1..50 {
            cache.add_value(DocId(document), (), 1);
            assert_eq!(cache.find_value(DocId(0)), Some(()));
        }
        assert_eq!(cache.find_value(DocId(1)), None);
    }
}
