//! Walks through the duplicates of a kept document, from the newest backwards.
//!
//! The row of each duplicate holds the row number of the next older one. The row number of the newest one is in memory,
//! with the kept document.
//!
//! A *deleted* member still has its row, which can be read until compaction. An *erased* member has none: compaction has
//! dropped its row, and left at most the number of the next older one ([`PartitionRow::ErasedDuplicate`]).

use std::ops::ControlFlow;

use lookalike::stream::Timestamp;

use super::Collection;
use super::listing::{BYTES_OF_WALK_STEP, STEPS_PER_LOCK, WALK_STEPS_OF_ROW};
use crate::document::KnownDocument;
use crate::error::Result;
use crate::files::rows::{PartitionRow, RowVerdict};
use crate::state::CollectionState;

/// A walk through the members of a cluster, the newest first. It releases the lock every few milliseconds. Meanwhile
/// members may be added, deleted and erased, and the kept document may be moved or deleted.
pub(super) struct MemberWalk {
    /// Sequence number of the kept document.
    kept: u64,
    now: Timestamp,
    /// Row of the last visited member; `u64::MAX` before the first one. Members come in descending row order, so the
    /// next one has a smaller row.
    last_visited: u64,
    next: NextMember,
    /// Members that were passed over to find the last visited one again.
    skipped: usize,
    /// Row that was erased when the walk came to it.
    erased: Option<u64>,
    /// Work so far, in steps of [`STEPS_PER_LOCK`].
    steps: u64,
}

/// The member with which a walk continues.
#[derive(Clone, Copy, Debug)]
enum NextMember {
    /// The newest one, whose row is looked up again.
    Newest,
    /// The one in this row, unless it is erased meanwhile.
    Row(u64),
    /// There is none.
    End,
}

impl NextMember {
    /// Returns the member in a row as rows and the kept document name it: 0 stands for none.
    fn from_row_number(row: u64) -> Self {
        if row == 0 { Self::End } else { Self::Row(row) }
    }
}

/// Closure that receives a member and the number of its row. `None` stands for a member that is deleted, or past the
/// window by the wall clock. The walk stops if the closure returns `Break`.
type VisitMember<'a> = dyn FnMut(u64, Option<KnownDocument>) -> ControlFlow<()> + 'a;

/// The end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEnd {
    /// All members were visited.
    Complete,
    /// The visitor stopped it.
    Stopped,
    /// The last visited row was erased, and finding it again would pass over more than [`MOST_SKIPPED_MEMBERS`] members.
    PlaceLost,
    /// The kept document no longer exists.
    ClusterGone,
}

/// Largest number of members that are passed over to find the last visited one again. Tests have small clusters.
const MOST_SKIPPED_MEMBERS: usize = if cfg!(test) { 64 } else { 1 << 16 };

impl MemberWalk {
    /// Begins with the newest member of the cluster of a document. Returns `None` if it is not a kept one.
    pub(super) fn begin(
        state: &CollectionState,
        kept: &KnownDocument,
        now: Timestamp,
    ) -> Option<Self> {
        let slot = state.document_slot(kept)?;
        Some(Self {
            kept: kept.seq,
            now,
            last_visited: u64::MAX,
            next: NextMember::from_row_number(state.last_duplicate(slot)),
            skipped: 0,
            erased: None,
            steps: 0,
        })
    }

    /// Continues with the member before `row`, the next older one. Returns `false` if that row is not a member. The
    /// sequence number of a duplicate is the number of its row, because only kept documents are moved to a later row.
    pub(super) fn resume_after(&mut self, state: &CollectionState, row: u64) -> Result<bool> {
        if row < state.first_live_row() {
            // A member that has left the window is the end of the list.
            self.next = NextMember::End;
            return Ok(true);
        }
        if row > state.last_row() {
            return Ok(false);
        }
        self.last_visited = row;
        self.next = match state.read_row(row)? {
            PartitionRow::Document(document) => match document.verdict {
                RowVerdict::Duplicate { seq, previous, .. } if seq == self.kept => {
                    NextMember::from_row_number(previous)
                }
                _ => return Ok(false),
            },
            PartitionRow::ErasedDuplicate { seq, previous, .. } if seq == self.kept => {
                NextMember::from_row_number(previous)
            }
            // The erased row may have been a member: the walk passes over those that are newer.
            PartitionRow::Erased { .. } => NextMember::Newest,
            _ => return Ok(false),
        };
        Ok(true)
    }

    /// Returns the work so far, in steps of [`STEPS_PER_LOCK`].
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Visits members until the visitor breaks. The lock is released every few milliseconds.
    pub(super) fn visit_members(
        &mut self,
        collection: &Collection,
        visit: &mut VisitMember<'_>,
    ) -> Result<WalkEnd> {
        loop {
            let state = collection.read_state()?;
            if let Some(end) = self.visit_under_lock(&state, STEPS_PER_LOCK, visit)? {
                return Ok(end);
            }
        }
    }

    /// Visits the next members, until `most_steps` are used up. Returns `None` if more may follow.
    pub(super) fn visit_under_lock(
        &mut self,
        state: &CollectionState,
        most_steps: u64,
        visit: &mut VisitMember<'_>,
    ) -> Result<Option<WalkEnd>> {
        let end_steps = self.steps + most_steps;
        while self.steps < end_steps {
            let row = match self.next {
                NextMember::Row(row) => row,
                NextMember::Newest => {
                    let Some(newest) = self.newest_member(state)? else {
                        return Ok(Some(WalkEnd::ClusterGone));
                    };
                    self.next = newest;
                    continue;
                }
                NextMember::End => return Ok(Some(WalkEnd::Complete)),
            };
            // The list ends at a member that has left the window. It also ends if the re-read list leads back to the row
            // found erased, because that row is no longer a member.
            if row < state.first_live_row() || self.erased == Some(row) {
                return Ok(Some(WalkEnd::Complete));
            }
            let Some((previous, member)) = self.read_member(state, row)? else {
                // It was erased while the lock was released. The list is read again from the newest member, and visited
                // members are passed over.
                (self.next, self.erased) = (NextMember::Newest, Some(row));
                continue;
            };
            self.next = NextMember::from_row_number(previous);
            if row >= self.last_visited {
                self.skipped += 1;
                if self.skipped > MOST_SKIPPED_MEMBERS {
                    return Ok(Some(WalkEnd::PlaceLost));
                }
                continue;
            }
            self.last_visited = row;
            let member = member.filter(|member| !state.is_past_window(member, self.now));
            if visit(row, member).is_break() {
                return Ok(Some(WalkEnd::Stopped));
            }
        }
        Ok(None)
    }

    /// Returns the newest member; `None` if the kept document no longer exists.
    fn newest_member(&mut self, state: &CollectionState) -> Result<Option<NextMember>> {
        self.steps += WALK_STEPS_OF_ROW;
        // The row of a document that has left the window cannot be read.
        if state.is_dead_document(self.kept) {
            return Ok(None);
        }
        let kept = state.find_by_seq(self.kept)?;
        let slot = kept.and_then(|kept| state.document_slot(&kept));
        Ok(slot.map(|slot| NextMember::from_row_number(state.last_duplicate(slot))))
    }

    /// Reads a member from a row. Returns the row of the next older member, 0 if there is none, and the member itself
    /// unless it is deleted or erased. Returns `None` if the row is not a member.
    fn read_member(
        &mut self,
        state: &CollectionState,
        row: u64,
    ) -> Result<Option<(u64, Option<KnownDocument>)>> {
        self.steps += WALK_STEPS_OF_ROW;
        let read = state.read_row(row)?;
        if let PartitionRow::ErasedDuplicate { previous, .. } = read {
            return Ok(Some((previous, None)));
        }
        let Some((document, seq)) = read.into_document(row) else {
            return Ok(None);
        };
        let meta_bytes = document.meta.as_ref().map_or(0, String::len) as u64;
        self.steps += meta_bytes / BYTES_OF_WALK_STEP;
        let RowVerdict::Duplicate { previous, .. } = document.verdict else {
            return Ok(None);
        };
        let member = KnownDocument {
            number: row,
            seq,
            document,
        };
        let is_live = !state.is_dead_row(row);
        Ok(Some((previous, is_live.then_some(member))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lookalike::stream::StreamWindow;
    use lookalike::text::AnalysisScratch;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::disk::DiskFolder;
    use crate::document::{DocumentContent, NewDocument};
    use crate::settings::CollectionSettings;

    const MEMBERS: u64 = 20;

    /// Returns a collection with a kept document and [`MEMBERS`] duplicates.
    fn collection(folder: &tempfile::TempDir) -> Collection {
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection =
            Collection::create_empty(disk, &CollectionSettings::default(), options).unwrap();
        for id in 0..=MEMBERS {
            insert(&collection, id);
        }
        collection
    }

    fn insert(collection: &Collection, id: u64) {
        let document = NewDocument {
            id: id.to_string(),
            content: DocumentContent::Text("one and the same text".to_owned()),
            time: None,
            meta: None,
        };
        let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
        let answers = collection.insert_documents(&[prepared.unwrap()]);
        assert!(answers[0].is_ok());
    }

    fn begin(collection: &Collection) -> MemberWalk {
        let state = collection.read_state().unwrap();
        let kept = state.find_by_seq(1).unwrap().unwrap();
        MemberWalk::begin(&state, &kept, Timestamp(0)).unwrap()
    }

    /// Visits two rows under each lock, and calls `meanwhile` before the lock with that number. Returns the ids of the
    /// members and the end.
    fn walk(
        collection: &Collection,
        at_lock: usize,
        meanwhile: impl FnOnce(),
    ) -> (Vec<u64>, WalkEnd) {
        let mut walk = begin(collection);
        let mut ids = Vec::new();
        let (mut meanwhile, mut locks) = (Some(meanwhile), 0);
        loop {
            if locks == at_lock
                && let Some(meanwhile) = meanwhile.take()
            {
                meanwhile();
            }
            locks += 1;
            let mut visit = |_, member: Option<KnownDocument>| {
                ids.extend(member.map(|member| member.document.id.parse::<u64>().unwrap()));
                ControlFlow::Continue(())
            };
            let state = collection.read_state().unwrap();
            let end = walk
                .visit_under_lock(&state, 2 * WALK_STEPS_OF_ROW, &mut visit)
                .unwrap();
            if let Some(end) = end {
                return (ids, end);
            }
        }
    }

    /// Whatever is inserted, deleted and erased between two locks, each member that stays is visited once.
    #[test]
    fn members_that_stay_are_visited_once() {
        for at_lock in 0..MEMBERS as usize {
            for deleted in [
                vec![],
                vec![3],
                (5..=15).collect(),
                (1..=20).collect(),
                vec![20, 1],
            ] {
                let folder = tempfile::tempdir().unwrap();
                let collection = collection(&folder);
                let (ids, end) = walk(&collection, at_lock, || {
                    insert(&collection, MEMBERS + 1);
                    for id in &deleted {
                        assert!(collection.delete_document(&id.to_string()).unwrap());
                    }
                    collection.compact_all(&mut || true).unwrap();
                });
                assert_eq!(end, WalkEnd::Complete);
                assert!(ids.is_sorted_by(|one, other| one > other), "{ids:?}");
                let staying = (1..=MEMBERS).rev().filter(|id| !deleted.contains(id));
                let visited = ids.iter().copied();
                let visited: Vec<u64> = visited
                    .filter(|id| *id <= MEMBERS && !deleted.contains(id))
                    .collect();
                assert_eq!(visited, staying.collect::<Vec<u64>>(), "lock {at_lock}");
            }
        }
    }

    /// A walk that has come far does not begin again: its place is lost if it is erased.
    #[test]
    fn place_behind_very_many_members_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(&folder);
        for id in MEMBERS + 1..=100 {
            insert(&collection, id);
        }
        let delete_rest = || {
            for id in 1..=MEMBERS {
                assert!(collection.delete_document(&id.to_string()).unwrap());
            }
            collection.compact_all(&mut || true).unwrap();
        };
        // Two members are visited under a lock.
        let (ids, end) = walk(&collection, 40, delete_rest);
        assert_eq!(end, WalkEnd::PlaceLost);
        assert_eq!(ids, (MEMBERS + 1..=100).rev().collect::<Vec<u64>>());
    }

    /// A cluster that leaves the window during the walk ends, and nothing counts as damaged.
    #[test]
    fn cluster_that_expires_ends() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let (length, lateness) = (Duration::from_secs(24), Duration::from_secs(1));
        let settings = CollectionSettings {
            window: Some(StreamWindow::new(length, lateness, false).unwrap()),
            ..CollectionSettings::default()
        };
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection = Collection::create_empty(disk, &settings, options).unwrap();
        let insert = |id: &str, text: &str, seconds: i64| {
            let document = NewDocument {
                id: id.to_owned(),
                content: DocumentContent::Text(text.to_owned()),
                time: Some(Timestamp(seconds * 1_000_000)),
                meta: None,
            };
            let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
            let answers = collection.insert_documents(&[prepared.unwrap()]);
            assert!(answers[0].is_ok());
        };
        insert("kept", "one and the same text", 100);
        insert("member", "one and the same text", 101);
        let mut walk = begin(&collection);
        let mut from_newest = begin(&collection);
        from_newest.next = NextMember::Newest;
        insert("later", "another text of much later", 1000);
        let mut visit = |_, _: Option<KnownDocument>| ControlFlow::Continue(());
        let end = walk.visit_members(&collection, &mut visit).unwrap();
        assert_eq!(end, WalkEnd::Complete);
        let end = from_newest.visit_members(&collection, &mut visit).unwrap();
        assert_eq!(end, WalkEnd::ClusterGone);
    }

    /// A cluster whose kept document is deleted and erased during the walk is not taken for a whole one.
    #[test]
    fn deleted_cluster_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(&folder);
        let (_, end) = walk(&collection, 3, || {
            for id in 0..=MEMBERS {
                assert!(collection.delete_document(&id.to_string()).unwrap());
            }
            collection.compact_all(&mut || true).unwrap();
        });
        assert_eq!(end, WalkEnd::ClusterGone);
    }
}
