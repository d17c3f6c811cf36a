//! The first reading of a partition that is compacted: facts that its copy needs before it reaches the rows
//! that show them.

use std::collections::HashMap;

use lookalike::stream::{DocumentSlot, Timestamp};

use super::compaction::PIECE;
use crate::collection::Collection;
use crate::error::Result;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{PartitionRow, RowDocument, RowVerdict, number_rows};
use crate::files::window_history::WindowHistory;
use crate::state::CompactionStart;

/// Clusters that are looked up under one lock, while writers wait.
const CLUSTERS_PER_LOCK: usize = 4096;

/// The last row in a partition that is a duplicate of one kept document.
#[derive(Clone, Copy)]
struct ClusterTail {
    number: u64,
    /// Slot of the kept document.
    slot: DocumentSlot,
}

/// Facts about the rows of a partition that were there before its compaction began.
pub(super) struct RowSurvey {
    /// Total size of the live records, in units.
    pub(super) live_units: u64,
    /// Newest time of a document, erased ones included.
    pub(super) newest_time: Timestamp,
    /// Newest times of erased duplicates that refreshed, by the index of their kept document in this partition.
    pub(super) refresh_times: HashMap<u32, Timestamp>,
    /// Windows under which the rows were written.
    windows: WindowHistory,
    /// Clusters whose last row in this partition is dead, by the sequence number of the representative. That
    /// row is kept in short form, because later rows name it as their predecessor.
    tails: HashMap<u64, ClusterTail>,
}

impl RowSurvey {
    fn new(from: &PartitionFiles, windows: WindowHistory) -> Self {
        let compacted = from.about.compacted;
        Self {
            live_units: 0,
            newest_time: compacted.map_or(Timestamp::BEGINNING, |compacted| compacted.newest),
            refresh_times: HashMap::new(),
            windows,
            tails: HashMap::new(),
        }
    }

    fn note_row(&mut self, begun: &CompactionStart, number: u64, row: &PartitionRow) {
        match row {
            PartitionRow::Document(document) | PartitionRow::Moved { document, .. } => {
                self.note_document(begun, number, document);
            }
            PartitionRow::ErasedDuplicate { seq, slot, .. } => {
                self.note_duplicate(*seq, *slot, number, true);
            }
            PartitionRow::Deleted { .. }
            | PartitionRow::Erased { .. }
            | PartitionRow::ErasedMove { .. }
            | PartitionRow::Decision(_) => {}
        }
    }

    fn note_document(&mut self, begun: &CompactionStart, number: u64, document: &RowDocument) {
        let is_dead = begun.is_dead_row(number);
        self.newest_time = self.newest_time.max(document.time);
        if !is_dead {
            self.live_units += u64::from(document.place.units);
        }
        let RowVerdict::Duplicate { seq, slot, .. } = document.verdict else {
            return;
        };
        self.note_duplicate(seq, slot, number, is_dead);
        let is_refreshing = self.windows.is_refreshing_at(number);
        if is_dead && is_refreshing && slot.partition == begun.number {
            let refreshed = self.refresh_times.entry(slot.index);
            let refreshed = refreshed.or_insert(document.time);
            *refreshed = document.time.max(*refreshed);
        }
    }

    fn note_duplicate(&mut self, seq: u64, slot: DocumentSlot, number: u64, is_dead: bool) {
        if is_dead {
            self.tails.insert(seq, ClusterTail { number, slot })
        } else {
            self.tails.remove(&seq)
        };
    }

    /// Returns `true` if a dead row is the last one in this partition of a cluster that still exists.
    pub(super) fn is_cluster_tail(&self, seq: u64, number: u64) -> bool {
        let tail = self.tails.get(&seq);
        tail.is_some_and(|tail| tail.number == number)
    }
}

impl Collection {
    /// Surveys the rows of a partition; returns `None` if abandoned.
    pub(super) fn survey_rows(
        &self,
        begun: &CompactionStart,
        from: &PartitionFiles,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<RowSurvey>> {
        let windows = self.current_manifest().windows.clone();
        let mut survey = RowSurvey::new(from, windows);
        let mut next_block = 0;
        loop {
            let blocks = from.blocks_from(next_block, PIECE)?;
            for (first, block) in &blocks {
                let rows = from.decode_block(*first, block)?;
                for (number, row) in number_rows(*first, &rows) {
                    if number < begun.applied {
                        survey.note_row(begun, number, row);
                    }
                }
                next_block = first + 1;
            }
            if blocks.is_empty() || next_block > begun.applied {
                break;
            }
            if !go_on() {
                return Ok(None);
            }
        }
        self.drop_gone_clusters(&mut survey)?;
        Ok(Some(survey))
    }

    /// Drops the clusters whose representative is gone, because nobody asks for its duplicates.
    fn drop_gone_clusters(&self, survey: &mut RowSurvey) -> Result<()> {
        let tails: Vec<_> = survey.tails.drain().collect();
        for portion in tails.chunks(CLUSTERS_PER_LOCK) {
            let state = self.read_state()?;
            let of_live = portion
                .iter()
                .filter(|(seq, tail)| state.is_still_kept(*seq, tail.slot));
            survey.tails.extend(of_live.copied());
        }
        Ok(())
    }
}
