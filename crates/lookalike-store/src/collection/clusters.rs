//! Clusters: kept documents with their duplicates, page by page.
//!
//! Each duplicate names the one before it in its row, and the kept document names the last one in memory. A
//! list is therefore read backwards, newest first.

use std::cell::Cell;

use lookalike::stream::{DocumentSlot, Timestamp};

use super::Collection;
use super::listing::{PAGE_TURNS, ROW_STEPS, STEP_BYTES, TURN_STEPS};
use crate::document::{DocumentCluster, InsertAnswer, KnownDocument, shorten_id};
use crate::error::{Error, Result};
use crate::files::rows::{PartitionRow, RowVerdict};
use crate::state::CollectionState;

/// Deleted and expired members that are passed over in one cluster, so that a cluster of which almost all members
/// were deleted does not keep writers waiting.
const MOST_PASSED_MEMBERS: usize = 1 << 10;

/// Clusters that a page shall list.
pub struct ClusterSelection<'a> {
    /// Largest number of clusters of the page, at least 1.
    pub count: usize,
    /// Largest number of members that are listed for each cluster.
    pub most_members: usize,
    /// Returns `true` for a cluster that is listed, by the metadata of its representative.
    pub accepts: &'a dyn Fn(Option<&str>) -> bool,
}

/// A page of clusters, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterPage {
    /// The clusters of this page.
    pub clusters: Vec<DocumentCluster>,
    /// Place of the last kept document that was examined, to be passed as `after`; `None` at the end of the
    /// collection.
    pub next: Option<DocumentSlot>,
}

impl Collection {
    /// Returns the cluster whose representative has the given id, with up to `most` of its members, newest
    /// first. `after` is the [`next`](DocumentCluster::next) of the previous page, or the sequence number of any
    /// member. Returns `None` if there is no such document, or it is not a kept one.
    ///
    /// # Errors
    /// If `after` is not a member, or a file is damaged.
    pub fn find_cluster(
        &self,
        id: &str,
        after: Option<u64>,
        most: usize,
    ) -> Result<Option<DocumentCluster>> {
        let state = self.read_state()?;
        let Some(known) = self.find_in_window(&state, id)? else {
            return Ok(None);
        };
        let reader = self.cluster_reader(&state, most);
        let Some(after) = after else {
            return reader.read_cluster(&known, None);
        };
        let next = reader.row_before_member(&known, after)?.ok_or_else(|| {
            let what = format!(
                "number {after} is not a member of the cluster '{}'",
                shorten_id(id)
            );
            Error::setting_error(what)
        })?;
        reader.read_cluster(&known, Some(next))
    }

    /// Returns the clusters that a selection accepts and that have a member besides the representative. The search
    /// continues after `after`, which is the [`next`](ClusterPage::next) of the previous page. A page ends early if
    /// many documents were examined: it can be short, even empty, and still have a `next`.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn list_clusters(
        &self,
        after: Option<DocumentSlot>,
        selection: &ClusterSelection<'_>,
    ) -> Result<ClusterPage> {
        let mut search = ClusterSearch {
            selection,
            examined: after,
            clusters: Vec::new(),
        };
        let mut goes_on = true;
        for _ in 0..PAGE_TURNS {
            goes_on = search.search_turn(self)?;
            if !goes_on || search.is_full() {
                break;
            }
        }
        Ok(ClusterPage {
            clusters: search.clusters,
            next: search.examined.filter(|_| goes_on),
        })
    }

    pub(super) fn cluster_reader<'a>(
        &self,
        state: &'a CollectionState,
        most: usize,
    ) -> ClusterReader<'a> {
        ClusterReader {
            state,
            now: (self.options.clock)(),
            most,
            steps: Cell::new(0),
        }
    }
}

/// A page of clusters that is being filled.
struct ClusterSearch<'a> {
    selection: &'a ClusterSelection<'a>,
    /// Place of the last kept document that was examined.
    examined: Option<DocumentSlot>,
    clusters: Vec<DocumentCluster>,
}

impl ClusterSearch<'_> {
    fn is_full(&self) -> bool {
        self.clusters.len() >= self.selection.count
    }

    /// Examines the next kept documents under one lock, until the turn is over or the page is full. Returns `false`
    /// at the end of the collection.
    fn search_turn(&mut self, collection: &Collection) -> Result<bool> {
        let state = collection.read_state()?;
        let reader = collection.cluster_reader(&state, self.selection.most_members);
        for slot in state.slots_after(self.examined) {
            if self.is_full() || reader.steps.get() >= TURN_STEPS {
                return Ok(true);
            }
            self.examined = Some(slot);
            reader.count_steps(1);
            if let Some(seq) = state.find_representative(slot) {
                let cluster = reader.read_accepted(seq, self.selection.accepts)?;
                self.clusters.extend(cluster);
            }
        }
        Ok(false)
    }
}

/// Reads clusters as they are at one moment. Leaves out documents that are past the window, if the window
/// follows the wall clock.
pub(super) struct ClusterReader<'a> {
    state: &'a CollectionState,
    now: Timestamp,
    /// Largest number of members that are returned.
    most: usize,
    /// Work so far, in steps of [`TURN_STEPS`].
    steps: Cell<u64>,
}

impl ClusterReader<'_> {
    /// Returns the cluster of the kept document with a sequence number, if its metadata is accepted and it may have
    /// members.
    fn read_accepted(
        &self,
        seq: u64,
        accepts: &dyn Fn(Option<&str>) -> bool,
    ) -> Result<Option<DocumentCluster>> {
        let known = self.state.find_by_row(self.state.row_of_document(seq))?;
        self.count_row(known.as_ref());
        let Some(known) = known.filter(|known| accepts(known.document.meta.as_deref())) else {
            return Ok(None);
        };
        let cluster = self.read_cluster(&known, None)?;
        Ok(cluster.filter(|cluster| !cluster.members.is_empty() || cluster.next.is_some()))
    }

    /// Returns the cluster of a kept document, with its members from row `from` backwards, or from the newest
    /// one.
    fn read_cluster(
        &self,
        kept: &KnownDocument,
        from: Option<u64>,
    ) -> Result<Option<DocumentCluster>> {
        let slot = self.state.document_slot(kept);
        let Some(slot) = slot.filter(|_| !self.is_past_window(kept)) else {
            return Ok(None);
        };
        let first = from.unwrap_or_else(|| self.state.last_duplicate(slot));
        let (members, next) = self.read_members(first)?;
        Ok(Some(DocumentCluster {
            kept: kept.to_answer(false),
            members,
            next,
        }))
    }

    /// Returns the members from row `first` backwards, and the number after which the list continues, if it does. It
    /// may continue although it has fewer members than were asked for, if many were deleted.
    fn read_members(&self, first: u64) -> Result<(Vec<InsertAnswer>, Option<u64>)> {
        let (mut members, mut passed, mut next, mut last) = (Vec::new(), 0, first, None);
        while self.is_in_window(next) {
            if passed >= MOST_PASSED_MEMBERS {
                return Ok((members, last));
            }
            let Some((previous, found)) = self.read_member(next)? else {
                break;
            };
            match found.filter(|member| !self.is_past_window(member)) {
                // There is one more than asked for.
                Some(_) if members.len() >= self.most => return Ok((members, last)),
                Some(member) => members.push(member.to_answer(false)),
                None => passed += 1,
            }
            last = Some(next);
            next = previous;
        }
        Ok((members, None))
    }

    fn count_steps(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    /// Counts the steps of a row that was read.
    fn count_row(&self, known: Option<&KnownDocument>) {
        let meta = known.and_then(|known| known.document.meta.as_ref());
        let meta_bytes = meta.map_or(0, String::len) as u64;
        self.count_steps(ROW_STEPS + meta_bytes / STEP_BYTES);
    }

    /// Returns `true` if the window follows the wall clock and a document is past it.
    pub(super) fn is_past_window(&self, known: &KnownDocument) -> bool {
        self.state.is_past_window(known, self.now)
    }

    /// Returns `true` for the number of a row that exists; 0 stands for none.
    pub(super) fn is_in_window(&self, number: u64) -> bool {
        number != 0 && number >= self.state.first_live_row()
    }

    /// Returns the number of the cluster member before the member `number`, or 0; `None` if that row is not a
    /// member. The sequence number of a duplicate is the number of its row, because only kept documents are
    /// moved to a later row. A member that has left the window is the end of the list.
    fn row_before_member(&self, kept: &KnownDocument, number: u64) -> Result<Option<u64>> {
        if number < self.state.first_live_row() {
            return Ok(Some(0));
        }
        if number > self.state.last_row() {
            return Ok(None);
        }
        Ok(match self.state.read_row(number)? {
            PartitionRow::Document(document) => match document.verdict {
                RowVerdict::Duplicate { seq, previous, .. } if seq == kept.seq => Some(previous),
                _ => None,
            },
            PartitionRow::ErasedDuplicate { seq, previous, .. } if seq == kept.seq => {
                Some(previous)
            }
            // The erased row may have been a member: the list continues with the newest member before it.
            PartitionRow::Erased { .. } => Some(self.newest_member_before(kept, number)?),
            _ => None,
        })
    }

    /// Returns the number of the newest member of a cluster before a row, or 0.
    fn newest_member_before(&self, kept: &KnownDocument, number: u64) -> Result<u64> {
        let slot = self.state.document_slot(kept);
        let mut next = slot.map_or(0, |slot| self.state.last_duplicate(slot));
        while next > number && self.is_in_window(next) {
            next = self.read_member(next)?.map_or(0, |(previous, _)| previous);
        }
        Ok(next)
    }

    /// Reads a cluster member from a row. Returns the number of the previous member, and the member itself
    /// unless its document is dead. Returns `None` at the end of the list.
    pub(super) fn read_member(&self, number: u64) -> Result<Option<(u64, Option<KnownDocument>)>> {
        let row = self.state.read_row(number)?;
        self.count_steps(ROW_STEPS);
        if let PartitionRow::ErasedDuplicate { previous, .. } = row {
            return Ok(Some((previous, None)));
        }
        let Some((document, seq)) = row.into_document(number) else {
            return Ok(None);
        };
        let meta_bytes = document.meta.as_ref().map_or(0, String::len) as u64;
        self.count_steps(meta_bytes / STEP_BYTES);
        let RowVerdict::Duplicate { previous, .. } = document.verdict else {
            return Ok(None);
        };
        let member = KnownDocument {
            number,
            seq,
            document,
        };
        let is_live = !self.state.is_dead_row(number);
        Ok(Some((previous, is_live.then_some(member))))
    }
}
