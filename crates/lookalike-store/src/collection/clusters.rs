//! Clusters: kept documents with their duplicates, page by page.
//!
//! Each duplicate names the one before it in its row, and the kept document names the last one in memory. A
//! list is therefore read backwards, newest first.

use lookalike::stream::{DocumentSlot, Timestamp};

use super::Collection;
use crate::document::{DocumentCluster, KnownDocument, shorten_id};
use crate::error::{Error, Result};
use crate::files::rows::{PartitionRow, RowVerdict};
use crate::state::CollectionState;

/// Kept documents that are searched for clusters under one lock, before writers get a turn: a few
/// milliseconds.
const SLOTS_IN_A_TURN: usize = 1 << 16;

/// A page of clusters, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterPage {
    /// The clusters of this page.
    pub clusters: Vec<DocumentCluster>,
    /// Place of the last kept document that was searched, to be passed as `after`.
    pub next: Option<DocumentSlot>,
}

impl Collection {
    /// Returns the cluster whose representative has the given id, with up to `most` of its members, newest
    /// first. `after` is the sequence number of the last member of the previous page. Returns `None` if there
    /// is no such document, or it is not a kept one.
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

    /// Returns up to `count` clusters that have a member besides the representative, with up to `most`
    /// members each. The search continues after `after`, which is the [`next`](ClusterPage::next) of the
    /// previous page.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn list_clusters(
        &self,
        after: Option<DocumentSlot>,
        count: usize,
        most: usize,
    ) -> Result<ClusterPage> {
        let (mut page, mut searched) = (ClusterPage::default(), after);
        while page.clusters.len() < count {
            // The lock is released between two portions, so that writers get a turn.
            let state = self.read_state()?;
            let reader = self.cluster_reader(&state, most);
            let mut slots = state.slots_after(searched).take(SLOTS_IN_A_TURN).peekable();
            if slots.peek().is_none() {
                break;
            }
            for slot in slots {
                searched = Some(slot);
                let Some(seq) = state.find_representative(slot) else {
                    continue;
                };
                page.next = searched;
                let cluster = reader.read_cluster_of(seq)?;
                let cluster = cluster.filter(|it| !it.members.is_empty());
                page.clusters.extend(cluster);
                if page.clusters.len() == count {
                    break;
                }
            }
        }
        Ok(page)
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
        }
    }
}

/// Reads clusters as they are at one moment. Leaves out documents that are past the window, if the window
/// follows the wall clock.
pub(super) struct ClusterReader<'a> {
    state: &'a CollectionState,
    now: Timestamp,
    /// Largest number of members that are returned.
    most: usize,
}

impl ClusterReader<'_> {
    /// Returns the cluster of the kept document with a sequence number.
    fn read_cluster_of(&self, seq: u64) -> Result<Option<DocumentCluster>> {
        let known = self.state.find_by_row(self.state.row_of_document(seq))?;
        let cluster = known.map(|known| self.read_cluster(&known, None));
        Ok(cluster.transpose()?.flatten())
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
        let mut members = Vec::new();
        let mut next = from.unwrap_or_else(|| self.state.last_duplicate(slot));
        while self.is_in_window(next) && members.len() <= self.most {
            let Some((previous, found)) = self.read_member(next)? else {
                break;
            };
            let found = found.filter(|member| !self.is_past_window(member));
            members.extend(found.map(|member| member.to_answer(false)));
            next = previous;
        }
        let more = members.len() > self.most;
        members.truncate(self.most);
        Ok(Some(DocumentCluster {
            kept: kept.to_answer(false),
            members,
            more,
        }))
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
        if let PartitionRow::ErasedDuplicate { previous, .. } = row {
            return Ok(Some((previous, None)));
        }
        let Some((document, seq)) = row.into_document(number) else {
            return Ok(None);
        };
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
