//! The preferred document of a cluster.

use std::ops::ControlFlow;

use super::Collection;
use super::member_walk::{MemberWalk, WalkEnd};
use crate::document::{ClusterPreference, KnownDocument, PreferredDocument};
use crate::error::Result;

impl Collection {
    /// Returns the document that a preference puts first in the cluster whose representative has the given
    /// id, the earliest of equally preferred ones. It compares the representative and the newest duplicates, up
    /// to the limits of the preference. Returns `None` if there is no such cluster. Verdicts do not depend on
    /// it.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_preferred(
        &self,
        id: &str,
        preference: &ClusterPreference<'_>,
    ) -> Result<Option<PreferredDocument>> {
        let state = self.read_state()?;
        let Some(kept) = self.find_in_window(&state, id)? else {
            return Ok(None);
        };
        let Some(mut walk) = MemberWalk::begin(&state, &kept, (self.options.clock)()) else {
            return Ok(None);
        };
        drop(state);
        let mut best = PreferenceSearch::new(kept);
        let end = walk.visit_members(self, &mut |_, member| {
            if best.is_exhausted(preference) {
                return ControlFlow::Break(());
            }
            match member {
                Some(member) => best.offer_member(member, preference),
                None => best.passed += 1,
            }
            ControlFlow::Continue(())
        })?;
        Ok((end != WalkEnd::ClusterGone).then(|| best.finish_search(end == WalkEnd::Complete)))
    }
}

/// A search for the preferred document of a cluster.
struct PreferenceSearch {
    best: KnownDocument,
    considered: usize,
    /// Duplicates that are deleted or past the window.
    passed: usize,
    bytes: usize,
}

impl PreferenceSearch {
    /// Begins with the representative.
    fn new(kept: KnownDocument) -> Self {
        Self {
            bytes: kept.document.meta.as_ref().map_or(0, String::len),
            best: kept,
            considered: 1,
            passed: 0,
        }
    }

    /// Returns `true` if no further document may be compared.
    fn is_exhausted(&self, preference: &ClusterPreference<'_>) -> bool {
        self.considered > preference.most_members
            || self.passed > preference.most_members
            || self.bytes > preference.most_bytes
    }

    /// Compares a duplicate with the best document so far. Of equally preferred ones the earlier wins.
    fn offer_member(&mut self, member: KnownDocument, preference: &ClusterPreference<'_>) {
        let meta = member.document.meta.as_deref();
        self.considered += 1;
        self.bytes += meta.map_or(0, str::len);
        let by_meta = (preference.compare)(meta, self.best.document.meta.as_deref());
        if by_meta.then(member.seq.cmp(&self.best.seq)).is_lt() {
            self.best = member;
        }
    }

    fn finish_search(self, is_complete: bool) -> PreferredDocument {
        PreferredDocument {
            answer: self.best.to_answer(false),
            meta: self.best.document.meta,
            considered: self.considered,
            considered_bytes: self.bytes,
            is_complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use lookalike::text::AnalysisScratch;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::disk::DiskFolder;
    use crate::document::{DocumentContent, NewDocument};
    use crate::settings::CollectionSettings;

    /// The earliest of equally preferred documents wins, and limits leave out the oldest duplicates.
    #[test]
    fn preferred_documents_are_bounded_and_stable() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection =
            Collection::create_empty(disk, &CollectionSettings::default(), options).unwrap();
        for (id, meta) in [
            ("a", Some("2")),
            ("b", Some("9")),
            ("c", Some("5")),
            ("d", Some("5")),
            ("e", None),
        ] {
            let document = NewDocument {
                id: id.to_owned(),
                content: DocumentContent::Text("one and the same text".to_owned()),
                time: None,
                meta: meta.map(str::to_owned),
            };
            let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
            collection
                .insert_documents(&[prepared.unwrap()])
                .remove(0)
                .unwrap();
        }
        let find = |most_members, most_bytes| {
            let preference = ClusterPreference {
                compare: &|a, b| b.cmp(&a),
                most_members,
                most_bytes,
            };
            let found = collection
                .find_preferred("a", &preference)
                .unwrap()
                .unwrap();
            (found.answer.id, found.considered, found.is_complete)
        };
        assert_eq!(find(100, 100), ("b".to_owned(), 5, true));
        assert_eq!(find(4, 100), ("b".to_owned(), 5, true));
        // The newest first: e, d, c.
        assert_eq!(find(3, 100), ("c".to_owned(), 4, false));
        assert_eq!(find(2, 100), ("d".to_owned(), 3, false));
        assert_eq!(find(0, 100), ("a".to_owned(), 1, false));
        assert_eq!(find(100, 1), ("d".to_owned(), 3, false));
        assert_eq!(find(100, 0), ("a".to_owned(), 1, false));
        let none = ClusterPreference {
            compare: &|_, _| Ordering::Equal,
            most_members: 9,
            most_bytes: 9,
        };
        assert_eq!(
            collection
                .find_preferred("a", &none)
                .unwrap()
                .unwrap()
                .answer
                .id,
            "a"
        );
        for id in ["b", "missing"] {
            assert_eq!(collection.find_preferred(id, &none).unwrap(), None);
        }
    }
}
