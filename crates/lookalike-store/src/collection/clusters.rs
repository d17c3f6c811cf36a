//! Clusters: kept documents with their duplicates, page by page.

use std::ops::ControlFlow;

use lookalike::stream::DocumentSlot;

use super::Collection;
use super::listing::{PAGE_TURNS, ROW_STEPS, STEP_BYTES, TURN_STEPS};
use super::member_walk::{MemberWalk, WalkEnd};
use crate::document::{DocumentCluster, InsertAnswer, KnownDocument, shorten_id};
use crate::error::{Error, Result};

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
        let kept = self.find_in_window(&state, id)?;
        let Some(kept) = kept.filter(|kept| state.document_slot(kept).is_some()) else {
            return Ok(None);
        };
        let mut walk = MemberWalk::new(kept.seq, (self.options.clock)());
        if let Some(after) = after
            && !walk.skip_to(&state, after)?
        {
            let id = shorten_id(id);
            let what = format!("number {after} is not a member of the cluster '{id}'");
            return Err(Error::setting_error(what));
        }
        drop(state);
        self.read_cluster(&kept, &mut walk, most)
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
            steps: 0,
        };
        let mut page = ClusterPage::default();
        while page.clusters.len() < selection.count && search.steps < PAGE_STEPS {
            match search.search_turn(self)? {
                ClusterTurn::Found(kept) => {
                    let mut walk = MemberWalk::new(kept.seq, (self.options.clock)());
                    let cluster = self.read_cluster(&kept, &mut walk, selection.most_members)?;
                    search.steps += walk.steps();
                    page.clusters
                        .extend(cluster.filter(DocumentCluster::may_have_members));
                }
                ClusterTurn::Unfinished => {}
                ClusterTurn::Finished => return Ok(page),
            }
        }
        page.next = search.examined;
        Ok(page)
    }

    /// Returns the cluster of a kept document, with the next members of a walk. Returns `None` if the kept document is
    /// past the window or no longer exists.
    fn read_cluster(
        &self,
        kept: &KnownDocument,
        walk: &mut MemberWalk,
        most: usize,
    ) -> Result<Option<DocumentCluster>> {
        let mut page = MemberPage {
            most,
            members: Vec::new(),
            passed: 0,
            last: None,
        };
        let end = walk.visit_members(self, &mut |row, member| page.offer_member(row, member))?;
        let next = match end {
            WalkEnd::Complete => None,
            WalkEnd::Stopped => page.last,
            WalkEnd::ClusterGone => return Ok(None),
        };
        Ok(Some(DocumentCluster {
            kept: kept.to_answer(false),
            members: page.members,
            next,
        }))
    }
}

impl DocumentCluster {
    fn may_have_members(&self) -> bool {
        !self.members.is_empty() || self.next.is_some()
    }
}

/// Work of a page of clusters, in steps of [`TURN_STEPS`].
const PAGE_STEPS: u64 = PAGE_TURNS as u64 * TURN_STEPS;

/// Members of a cluster that are being collected.
struct MemberPage {
    /// Largest number of members of the page.
    most: usize,
    members: Vec<InsertAnswer>,
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
        match member {
            Some(_) if self.members.len() >= self.most => return ControlFlow::Break(()),
            Some(member) => self.members.push(member.to_answer(false)),
            None => self.passed += 1,
        }
        self.last = Some(row);
        ControlFlow::Continue(())
    }
}

/// A search for clusters, turn by turn.
struct ClusterSearch<'a> {
    selection: &'a ClusterSelection<'a>,
    /// Place of the last kept document that was examined.
    examined: Option<DocumentSlot>,
    /// Work so far, in steps of [`TURN_STEPS`].
    steps: u64,
}

/// What a turn of a search has come to.
enum ClusterTurn {
    /// A kept document that is accepted and may have members.
    Found(Box<KnownDocument>),
    Unfinished,
    Finished,
}

impl ClusterSearch<'_> {
    /// Examines the next kept documents under one lock, until one is found or the turn is over.
    fn search_turn(&mut self, collection: &Collection) -> Result<ClusterTurn> {
        let state = collection.read_state()?;
        let now = (collection.options.clock)();
        let end_of_turn = self.steps + TURN_STEPS;
        for slot in state.slots_after(self.examined) {
            if self.steps >= end_of_turn {
                return Ok(ClusterTurn::Unfinished);
            }
            self.examined = Some(slot);
            self.steps += 1;
            let Some(seq) = state.find_representative(slot) else {
                continue;
            };
            let known = state.find_by_row(state.row_of_document(seq))?;
            let meta = known
                .as_ref()
                .and_then(|known| known.document.meta.as_deref());
            self.steps += ROW_STEPS + meta.map_or(0, str::len) as u64 / STEP_BYTES;
            let known = known.filter(|known| {
                !state.is_past_window(known, now)
                    && (self.selection.accepts)(known.document.meta.as_deref())
            });
            if let Some(known) = known {
                return Ok(ClusterTurn::Found(Box::new(known)));
            }
        }
        Ok(ClusterTurn::Finished)
    }
}
