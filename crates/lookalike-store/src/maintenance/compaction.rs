//! Compaction: writes the live rows of a partition to new files, which replace the old ones.
//!
//! Ids, texts and metas of deleted or replaced documents stay on disk until the compaction of their
//! partition, and not longer.
//!
//! # Procedure
//!
//! 1. The state notes which rows are dead, and everything that led to this is awaited on disk.
//! 2. The rows of the partition are read once (`row_survey.rs`), because their copy needs facts that only
//!    later rows show.
//! 3. They are read again (`partition_copy.rs`). Live rows and their records are written to new files and
//!    synced; of dead rows only their number remains and, rarely, what other rows need of them. Rows that
//!    arrived after the first step are copied as they are, in rounds, until few are left.
//! 4. While no other thread writes, so that documents wait as for any commit, the rest is copied and synced,
//!    the list of partitions names the new files, and these replace the old ones in memory. Readers wait for
//!    that last change alone, which exchanges two lists.
//! 5. The old files are removed.
//!
//! Steps 2 and 3 are done in pieces of at most 512 KiB, between which the caller says whether to go on
//! and may rest ([`MaintenancePace`](super::MaintenancePace)). No more than a piece waits to be written to
//! the disk, because commits of others wait for what the system writes before them. Nearly all is synced
//! before step 4, which costs about what a commit costs.
//!
//! # What does not change
//!
//! The numbers of rows, and with them sequence numbers; the places of kept documents by index; verdicts,
//! answers and the order of cluster members; the clock. Records move, but records that are written meanwhile
//! keep their places, because the compacted records end exactly where those begin. The place of the first
//! record is therefore stored with the file (`first_place`).
//!
//! ```text
//! old  [ live | dead | live | dead ][ written meanwhile ]
//! new                [ live | live ][ written meanwhile ]
//!                    ^              ^
//!                    base           end
//! ```
//!
//! # Power failure
//!
//! The list of partitions decides. Files that it does not name are removed when the collection is opened. A
//! failure before the list is written leaves everything as it was. A failure while it is written stops the
//! collection, because the content of the disk is then unknown.

use std::sync::Arc;

use super::partition_copy::PartitionCopy;
use crate::collection::{Collection, stopped_error};
use crate::disk::check_free_bytes;
use crate::error::Result;
use crate::files::file_names::FileNames;
use crate::files::partition::PartitionFiles;
use crate::files::rows::PLACE_UNIT_BYTES;
use crate::state::{ChunkedVec, CompactionStart};

/// Bytes that are read or written before the caller is asked again whether to go on.
pub(super) const PIECE: usize = 512 << 10;

/// Rows that may be left for the last step, in which others wait for the disk.
const LAST_ROWS: u64 = 1024;

/// Bytes of their texts.
const LAST_BYTES: u64 = 512 << 10;

/// Largest number of passes over newly added rows before the last step.
const CATCH_UP_ROUNDS: usize = 8;

/// Pieces that are copied without a rest in the rounds after the first.
const PIECES_WITHOUT_REST: usize = 16;

impl Collection {
    /// Compacts a partition; returns `true` if it was compacted, `false` if it was abandoned.
    pub(super) fn compact_one(
        &self,
        number: u64,
        leftovers: &mut Vec<FileNames>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let begun = self.write_state()?.begin_compaction(number);
        let Some(begun) = begun else {
            return Ok(false);
        };
        let compacted = self.compact_begun(&begun, leftovers, go_on);
        if !matches!(compacted, Ok(true)) {
            self.write_state()?.give_up_compaction(&begun);
        }
        if compacted? {
            self.remove_leftovers(leftovers)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn compact_begun(
        &self,
        begun: &CompactionStart,
        leftovers: &mut Vec<FileNames>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        self.wait_for_row(begun.applied - 1)?;
        let (from, has_sketches) = {
            let state = self.read_state()?;
            (state.partition_on_disk(begun.number), state.has_sketches())
        };
        let Some(from) = from else {
            return Ok(false);
        };
        let Some(survey) = self.survey_rows(begun, &from, go_on)? else {
            return Ok(false);
        };
        let needed = survey.live_units * PLACE_UNIT_BYTES + from.bytes_of_rows()?;
        check_free_bytes(
            &*self.disk,
            (self.options.headroom / 2).saturating_add(needed),
        )?;
        let names = from.about.file_names();
        let made = names.next_generation();
        let copy = PartitionCopy::create_copy(&*self.disk, begun, survey, from, has_sketches);
        let copied = copy.and_then(|mut copy| self.copy_and_replace(&mut copy, go_on));
        if matches!(copied, Ok(true)) {
            leftovers.push(names);
        } else if self.group.current_progress().failed.is_none() {
            // No list names these files. If they cannot be removed now, they are removed later.
            leftovers.push(made);
            let _ = self.remove_leftovers(leftovers);
        } else {
            // It is unknown which files the list names, so none may be removed.
            leftovers.clear();
        }
        copied
    }

    fn copy_and_replace(
        &self,
        copy: &mut PartitionCopy<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        for round in 0..CATCH_UP_ROUNDS {
            let before = copy.position();
            let durable = self.group.current_progress().durable;
            for piece in 1_usize.. {
                if !copy.copy_some_rows(durable)? {
                    break;
                }
                // While it catches up, it would have more to do after each rest.
                let rests = round == 0 || piece.is_multiple_of(PIECES_WITHOUT_REST);
                if rests && !go_on() {
                    return Ok(false);
                }
            }
            copy.sync_files()?;
            let after = copy.position();
            let bytes = (after.end_place - before.end_place) * PLACE_UNIT_BYTES;
            if after.next_row - before.next_row < LAST_ROWS && bytes < LAST_BYTES {
                break;
            }
        }
        let mut replaced = Ok(None);
        let write = || {
            let durable = self.group.current_progress().durable;
            replaced = self.replace_partition(copy);
            match &replaced {
                Err(error) if copy.is_listed => Err(error.to_string()),
                _ => Ok(durable),
            }
        };
        let turned = self
            .group
            .write_alone(write)
            .map_err(|why| stopped_error(&why));
        // The old lists and pages are freed here, where no other thread waits.
        let before = replaced?;
        turned?;
        Ok(before.is_some())
    }

    /// Copies the rest and replaces the old files by the new ones, while nobody else writes. Returns the
    /// replaced partition, or `None` if the partition no longer exists.
    fn replace_partition(&self, copy: &mut PartitionCopy<'_>) -> Result<Option<ReplacedPartition>> {
        let mut writer = self.lock_writer();
        if !writer.has_partition(copy.old_partition()) {
            return Ok(None);
        }
        while copy.copy_some_rows(u64::MAX)? {}
        copy.sync_files()?;
        copy.check_survey()?;
        copy.copy_log_progress()?;
        copy.is_listed = true;
        let sketches = copy.take_sketches();
        writer.replace_partition(copy.new_partition(), sketches)?;
        let (to, places) = (Arc::clone(copy.new_partition()), copy.take_places());
        let mut state = self.write_state()?;
        let before = state.end_compaction(to, places, copy.erased_count());
        Ok(Some(before))
    }
}

/// A replaced partition and the places of its kept documents, if the partition was in memory.
type ReplacedPartition = Option<(Arc<PartitionFiles>, ChunkedVec<u32>)>;
