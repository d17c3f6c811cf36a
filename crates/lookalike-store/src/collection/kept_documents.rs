//! Kept documents by their sequence numbers, for an index that is kept outside of the store.
//!
//! Such an index reads new documents with [`Collection::list_documents`], and asks here which of its documents are
//! left.

use super::Collection;
use super::documents::open_document;
use crate::document::StoredDocument;
use crate::error::Result;
use crate::files::rows::RowVerdict;
use crate::state::CollectionState;

/// The kept documents at one moment, under a lock.
pub struct KeptDocuments<'a>(&'a CollectionState);

impl KeptDocuments<'_> {
    /// Returns the number of kept documents that new ones are compared with.
    pub fn count(&self) -> u64 {
        self.0.matcher.len()
    }

    /// Returns a sequence number that no document exceeds.
    pub fn last_seq(&self) -> u64 {
        self.0.last_row()
    }

    /// Returns `true` if the kept document with this sequence number has not been deleted, replaced or expired. One
    /// that is past a window by the wall clock, but has not expired yet, counts as live.
    pub fn is_live(&self, seq: u64) -> bool {
        !self.0.is_dead_document(seq)
    }
}

impl Collection {
    /// Calls `work` with the kept documents, under a lock. Writers wait meanwhile, so the work must take few
    /// milliseconds.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn visit_kept<T>(&self, work: impl FnOnce(&KeptDocuments<'_>) -> T) -> Result<T> {
        Ok(work(&KeptDocuments(&*self.read_state()?)))
    }

    /// Returns the kept document with a sequence number, if it exists. If the window follows the wall clock, a
    /// document that is past the window by now is not returned.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_kept(&self, seq: u64) -> Result<Option<StoredDocument>> {
        let state = self.read_state()?;
        if state.is_dead_document(seq) {
            return Ok(None);
        }
        let now = (self.options.clock)();
        let known = state.find_by_seq(seq)?.filter(|known| {
            matches!(known.document.verdict, RowVerdict::Kept { .. })
                && !state.is_past_window(known, now)
        });
        let Some(known) = known else {
            return Ok(None);
        };
        let opened = open_document(&state, known)?;
        drop(state);
        opened.into_stored().map(Some)
    }
}
