//! Clusters: kept documents with their duplicates, page by page.

use std::ops::ControlFlow;

use lookalike::stream::{DocumentSlot, Timestamp};

use super::Collection;
use super::listing::{
    BYTES_OF_WALK_STEP, LOCKS_PER_PAGE, PAGE_BYTES, STEPS_PER_LOCK, WALK_STEPS_OF_ROW,
};
use super::member_walk::{MemberWalk, WalkEnd};
use crate::document::{DocumentCluster, InsertAnswer, KnownDocument, shorten_id};
use crate::error::{Error, Result};
use crate::state::CollectionState;

/// Deleted and expired members that are passed over in one cluster, so that a page of a cluster of which almost all
/// members were deleted ends.
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
    pub continue_after: Option<DocumentSlot>,
}

impl Collection {
    /// Returns the cluster whose representative has the given id, with up to `most` of its members, newest first.
    /// `after` is the [`continue_after`](DocumentCluster::continue_after) of the previous page, or the sequence number
    /// of any member. A page ends early after 16 MiB, or if many members were deleted. Returns `None` if there is no
    /// such document, or it is not a kept one.
    ///
    /// # Errors
    /// If `after` is not a member, or was one that is erased and has very many newer ones, or a file is damaged.
    pub fn find_cluster(
        &self,
        id: &str,
        after: Option<u64>,
        most: usize,
    ) -> Result<Option<DocumentCluster>> {
        let state = self.read_state()?;
        let Some(kept) = self.find_in_window(&state, id)? else {
            return Ok(None);
        };
        let Some(mut cluster) = ClusterBuilder::begin(&state, kept, most, (self.options.clock)())
        else {
            return Ok(None);
        };
        if let Some(after) = after
            && !cluster.walk.resume_after(&state, after)?
        {
            let id = shorten_id(id);
            let what = format!("number {after} is not a member of the cluster '{id}'");
            return Err(Error::setting_error(what));
        }
        drop(state);
        let end = cluster.read_rest(self)?;
        if end == WalkEnd::PlaceLost && cluster.members.last.is_none() {
            let id = shorten_id(id);
            let what = format!(
                "the member before which the page of the cluster '{id}' begins is erased, and very many are newer: \
                 begin with the first page again"
            );
            return Err(Error::setting_error(what));
        }
        Ok(cluster.finish(end))
    }

    /// Returns the clusters that a selection accepts and that have a member besides the representative. The search
    /// continues after `after`, which is the [`continue_after`](ClusterPage::continue_after) of the previous page. A
    /// page ends early if many documents were examined: it can be short, even empty, and still have a `continue_after`.
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
            steps: 0,
            bytes: 0,
            clusters: Vec::new(),
        };
        let mut goes_on = true;
        while goes_on && !search.is_full() {
            goes_on = search.search_under_lock(self)?;
        }
        Ok(ClusterPage {
            clusters: search.clusters,
            continue_after: search.examined.filter(|_| goes_on),
        })
    }
}

/// A cluster whose members are being read.
struct ClusterBuilder {
    kept: KnownDocument,
    walk: MemberWalk,
    members: MemberPage,
}

impl ClusterBuilder {
    /// Begins with the newest member. Returns `None` if the document is not a kept one.
    fn begin(
        state: &CollectionState,
        kept: KnownDocument,
        most: usize,
        now: Timestamp,
    ) -> Option<Self> {
        Some(Self {
            walk: MemberWalk::begin(state, &kept, now)?,
            kept,
            members: MemberPage {
                most,
                members: Vec::new(),
                bytes: 0,
                passed: 0,
                last: None,
            },
        })
    }

    /// Reads members under a lock, until `most_steps` are used up. Returns `None` if more may follow.
    fn read_under_lock(
        &mut self,
        state: &CollectionState,
        most_steps: u64,
    ) -> Result<Option<WalkEnd>> {
        let (walk, members) = (&mut self.walk, &mut self.members);
        walk.visit_under_lock(state, most_steps, &mut |row, member| {
            members.offer_member(row, member)
        })
    }

    /// Reads all further members, and releases the lock every few milliseconds.
    fn read_rest(&mut self, collection: &Collection) -> Result<WalkEnd> {
        let (walk, members) = (&mut self.walk, &mut self.members);
        walk.visit_members(collection, &mut |row, member| {
            members.offer_member(row, member)
        })
    }

    /// Returns the cluster; `None` if it no longer exists.
    fn finish(self, end: WalkEnd) -> Option<DocumentCluster> {
        let continue_after = match end {
            WalkEnd::Complete => None,
            WalkEnd::Stopped | WalkEnd::PlaceLost => self.members.last,
            WalkEnd::ClusterGone => return None,
        };
        Some(DocumentCluster {
            kept: self.kept.to_answer(false),
            members: self.members.members,
            continue_after,
        })
    }
}

/// Members of a cluster that are being collected.
struct MemberPage {
    /// Largest number of members of the page.
    most: usize,
    members: Vec<InsertAnswer>,
    /// Bytes of the members with their ids.
    bytes: usize,
    /// Members that are deleted or past the window.
    passed: usize,
    /// Row of the last member that was examined.
    last: Option<u64>,
}

impl MemberPage {
    /// Adds a member. Breaks if the page has all that it may have, and there is one more.
    fn offer_member(&mut self, row: u64, member: Option<KnownDocument>) -> ControlFlow<()> {
        if self.passed >= MOST_PASSED_MEMBERS {
            return ControlFlow::Break(());
        }
        let is_full = self.members.len() >= self.most || self.bytes >= PAGE_BYTES;
        match member {
            Some(_) if is_full => return ControlFlow::Break(()),
            Some(member) => {
                let member = member.to_answer(false);
                let ids = member.id.len() + member.cluster_id().len();
                self.bytes += size_of::<InsertAnswer>() + ids;
                self.members.push(member);
            }
            None => self.passed += 1,
        }
        self.last = Some(row);
        ControlFlow::Continue(())
    }
}

/// Work of a page of clusters, in steps of [`STEPS_PER_LOCK`].
const PAGE_STEPS: u64 = LOCKS_PER_PAGE as u64 * STEPS_PER_LOCK;

/// A page of clusters that is being filled.
struct ClusterSearch<'a> {
    selection: &'a ClusterSelection<'a>,
    /// Place of the last kept document that was examined.
    examined: Option<DocumentSlot>,
    /// Work so far, in steps of [`STEPS_PER_LOCK`].
    steps: u64,
    /// Bytes of the clusters.
    bytes: usize,
    clusters: Vec<DocumentCluster>,
}

impl ClusterSearch<'_> {
    fn is_full(&self) -> bool {
        let has_all = self.clusters.len() >= self.selection.count;
        has_all || self.bytes >= PAGE_BYTES || self.steps >= PAGE_STEPS
    }

    /// Examines the next kept documents, under one lock until its steps are used up or the page is full. Returns
    /// `false` at the end of the collection.
    fn search_under_lock(&mut self, collection: &Collection) -> Result<bool> {
        let state = collection.read_state()?;
        let now = (collection.options.clock)();
        let end_steps = self.steps + STEPS_PER_LOCK;
        let mut unfinished = None;
        for slot in state.slots_after(self.examined) {
            if self.is_full() || self.steps >= end_steps {
                return Ok(true);
            }
            self.examined = Some(slot);
            self.steps += 1;
            let Some(mut cluster) = self.find_accepted(&state, slot, now)? else {
                continue;
            };
            let left = end_steps.saturating_sub(self.steps);
            let Some(end) = cluster.read_under_lock(&state, left)? else {
                unfinished = Some(cluster);
                break;
            };
            self.add_cluster(cluster, end);
        }
        drop(state);
        let Some(mut cluster) = unfinished else {
            return Ok(false);
        };
        let end = cluster.read_rest(collection)?;
        self.add_cluster(cluster, end);
        Ok(true)
    }

    /// Returns the cluster of the kept document in a slot, if its metadata is accepted and it may have members.
    fn find_accepted(
        &mut self,
        state: &CollectionState,
        slot: DocumentSlot,
        now: Timestamp,
    ) -> Result<Option<ClusterBuilder>> {
        let Some(seq) = state.find_representative(slot) else {
            return Ok(None);
        };
        let known = state.find_by_row(state.row_of_document(seq))?;
        let meta = known
            .as_ref()
            .and_then(|known| known.document.meta.as_deref());
        self.steps += WALK_STEPS_OF_ROW + meta.map_or(0, str::len) as u64 / BYTES_OF_WALK_STEP;
        let known = known.filter(|known| {
            !state.is_past_window(known, now)
                && (self.selection.accepts)(known.document.meta.as_deref())
        });
        let most = self.selection.most_members;
        Ok(known.and_then(|known| ClusterBuilder::begin(state, known, most, now)))
    }

    /// Adds a cluster that has members or may have some on its next page.
    fn add_cluster(&mut self, cluster: ClusterBuilder, end: WalkEnd) {
        self.steps += cluster.walk.steps();
        self.bytes += cluster.members.bytes;
        let cluster = cluster.finish(end);
        let has_members = |cluster: &DocumentCluster| {
            !cluster.members.is_empty() || cluster.continue_after.is_some()
        };
        self.clusters.extend(cluster.filter(has_members));
    }
}
