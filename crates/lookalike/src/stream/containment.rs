//! Candidates of the exact join by containment; see
//! [`ContainmentFilter`](crate::candidates::ContainmentFilter).
//!
//! A kept document is inserted under all of its features, with a separate key for those outside of its prefix. A new
//! document finds the kept ones whose prefix it shares, and by its own prefix those that contain it.
//!
//! Cost: 23 bytes of memory for each feature of a kept document. A look-up reads the documents that have a feature of
//! the new one in their prefix, and those that have a feature of its prefix at all.

use super::{SketchedDocument, StreamMatcher};
use crate::candidates::{ContainmentFilter, PrefixHits};

impl StreamMatcher {
    /// Returns `false` if the prefix features that a kept document shares with a new one are too few, and their
    /// texts differ.
    pub(super) fn may_contain(
        &self,
        filter: ContainmentFilter,
        document: &SketchedDocument,
        number: u64,
        hits: PrefixHits,
    ) -> bool {
        let (partition, at) = self.partitions.locate_number(number);
        if partition.text_key_at(at) == document.text_key() {
            return true;
        }
        let sizes = (document.set_summary(), partition.sketch_at(at).set_size());
        match sizes {
            (Some(own), Some(other)) => filter.may_match(hits, own.size as usize, other),
            _ => false,
        }
    }
}
