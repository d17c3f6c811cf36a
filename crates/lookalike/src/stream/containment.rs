//! Candidates of the exact join by containment; see
//! [`ContainmentFilter`](crate::candidates::ContainmentFilter).
//!
//! A kept document is inserted under all of its features, with a separate key for those outside of its prefix. A new
//! document finds the kept ones whose prefix it shares, and by its own prefix those that contain it.
//!
//! Cost: 23 bytes of memory for each feature of a kept document. A look-up reads the documents that have a feature of
//! the new one in their prefix, and those that have a feature of its prefix at all.

use super::rarity::ProbeKey;
use super::{SketchedDocument, StreamMatcher};
use crate::candidates::{ContainmentFilter, PrefixHits};

impl StreamMatcher {
    /// Returns the documents from number `since` on that share enough prefix features with one, ascending.
    pub(super) fn find_containments(
        &self,
        filter: ContainmentFilter,
        document: &SketchedDocument,
        probed: &[ProbeKey],
        since: u64,
    ) -> Vec<u64> {
        let keys: Vec<ProbeKey> = probed
            .iter()
            .filter(|probed| self.recent.may_contain(probed.key, since))
            .copied()
            .collect();
        let from = self
            .prefilters
            .query_from(self.prefilters.prefilter_of(document.set_summary()));
        let mut found: Vec<(u64, PrefixHits)> = Vec::new();
        self.buckets.visit_buckets(
            &keys,
            |probed| probed.key,
            since,
            |probed, number, prefilter, side| {
                if probed.finds_side(side) && !from.rules_out_match(prefilter) {
                    found.push((number, probed.hit_on_side(side)));
                }
            },
        );
        found.sort_unstable_by_key(|&(number, _)| number);
        let of_documents = found.chunk_by(|one, other| one.0 == other.0);
        let enough = of_documents.filter(|hits| self.may_contain(filter, document, hits));
        enough.map(|hits| hits[0].0).collect()
    }

    /// Returns `false` if the prefix features that a kept document shares with a new one are too few, and their
    /// texts differ.
    fn may_contain(
        &self,
        filter: ContainmentFilter,
        document: &SketchedDocument,
        hits: &[(u64, PrefixHits)],
    ) -> bool {
        let (section, at) = self.partitions.locate_number(hits[0].0);
        if section.text_key_at(at) == document.text_key() {
            return true;
        }
        let mut sum = PrefixHits::default();
        hits.iter().for_each(|&(_, hit)| sum.add_hits(hit));
        let sizes = (document.set_summary(), section.sketch_at(at).set_size());
        match sizes {
            (Some(own), Some(other)) => filter.may_match(sum, own.size as usize, other),
            _ => false,
        }
    }
}
