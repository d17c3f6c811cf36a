//! Memory that checks of documents keep until the documents are admitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all checks of a collection keep, about.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckMemory(Arc<AtomicUsize>);

/// Largest number of bytes with which another check may begin. Tests have small lists.
const MOST_BYTES: usize = if cfg!(test) { 4 << 10 } else { 32 << 20 };

impl CheckMemory {
    /// Returns `true` if a document may be checked before it is admitted.
    pub(super) fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= MOST_BYTES
    }

    /// Returns the bytes of a check, which has none yet.
    pub(super) fn count_check(&self) -> CheckBytes {
        CheckBytes {
            all: self.clone(),
            bytes: 0,
        }
    }
}

/// Bytes of one check; they are no longer counted when it is dropped.
#[derive(Debug)]
pub(super) struct CheckBytes {
    all: CheckMemory,
    bytes: usize,
}

impl CheckBytes {
    pub(super) fn set(&mut self, bytes: usize) {
        let all = &self.all.0;
        // A sum below zero wraps, and is right again after the addition.
        all.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Clone for CheckBytes {
    fn clone(&self) -> Self {
        let mut cloned = self.all.count_check();
        cloned.set(self.bytes);
        cloned
    }
}

impl Drop for CheckBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}
