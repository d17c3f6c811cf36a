//! Compaction: writes the live rows of a partition to new files, which replace the old ones.
//!
//! Ids, texts and metas of deleted or replaced documents stay on disk until the compaction of their
//! partition, and not longer.
//!
//! # Procedure
//!
//! 1. It is noted which rows do not count, and waited until all that led to this is on disk.
//! 2. The rows of the partition are read once, for what the second reading needs to know.
//! 3. They are read again. Rows and records that count are written to new files and synced; of other rows a note
//!    is left of how many they were, and rarely what rows elsewhere need of them. Rows that came after the first
//!    step are copied as they are, as long as many have come meanwhile.
//! 4. With the right to write, in which documents wait for the disk as for any commit, the rest is copied and
//!    synced, the list of partitions names the new files, and the new ones take their place in memory. Readers
//!    wait for that last step alone, which exchanges two lists.
//! 5. The files before are removed.
//!
//! Steps 2 and 3 are done in pieces of at most 512 KiB, between which the caller says whether to go on
//! and may rest ([`MaintenancePace`]). No more than a piece waits to be written to the disk, because
//! commits of others wait for what the system writes before them. Nearly all is synced before step 4,
//! which costs about what a commit costs.
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

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use lookalike::stream::{DocumentSlot, Timestamp};

use crate::collection::{Collection, stopped_error};
use crate::disk::{Disk, check_free_bytes};
use crate::document::KnownDocument;
use crate::error::{Error, Result};
use crate::files::file_names::{FileNames, INCOMPLETE};
use crate::files::partition::PartitionFiles;
use crate::files::partition_header::{CompactionState, PartitionHeader};
use crate::files::rows::{self, EncodedRows, PartitionRow, RowVerdict, UNIT, number_rows};
use crate::files::sketches::{SketchEntries, SketchFile, SketchFileReader};
use crate::state::{ChunkedVec, CompactionStart, NOWHERE};

/// Bytes that are read or written between two questions whether to go on.
const PIECE: usize = 512 << 10;

/// Bytes of rows that are read for a piece, and that are committed together.
const ROWS_READ: usize = PIECE / 4;
const ROWS_COMMITTED: usize = PIECE / 2;

/// Bytes of texts or sketches that may wait to be written to the disk, so that commits of others do not
/// wait for many.
const UNSYNCED: u64 = PIECE as u64;

/// Rows that may be left for the last step, in which others wait for the disk.
const LEFT: u64 = 1024;

/// Bytes of their texts.
const BYTES_LEFT: u64 = 512 << 10;

/// Rows whose clusters are looked up while writers wait.
const CLUSTERS: usize = 4096;

/// Largest number of passes over newly added rows before the last step.
const ROUNDS: usize = 8;

/// Pieces that are copied without a rest while it is caught up.
const STEPS_WITHOUT_REST: usize = 16;

/// Rests between pieces of the work of [`Collection::run_maintenance`], so that the work takes a quarter
/// of the time and others have the disk and the processors for the rest.
#[derive(Debug)]
pub struct MaintenancePace {
    worked_since: Instant,
}

/// Length of a rest as a multiple of the work before it, and the longest rest.
const REST: u32 = 3;
const LONGEST_REST: Duration = Duration::from_millis(300);

impl MaintenancePace {
    /// Work begins now.
    #[expect(clippy::new_without_default, reason = "it notes the time")]
    pub fn new() -> Self {
        Self {
            worked_since: Instant::now(),
        }
    }

    /// Rests after a piece of work.
    pub fn rest(&mut self) {
        let worked = self.worked_since.elapsed();
        std::thread::sleep((REST * worked).min(LONGEST_REST));
        self.worked_since = Instant::now();
    }
}

/// Work done by a call of [`Collection::run_maintenance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Partitions that were compacted.
    pub compacted: u64,
    /// Partitions that left the window by the wall clock.
    pub expired: u64,
}

impl Collection {
    /// Compacts every partition that is due by [`CompactionTrigger`](crate::CompactionTrigger) and, if the
    /// window follows the wall clock, expires what has left it. Call this about once a second; it is cheap
    /// when nothing is due. Documents are answered and inserted meanwhile.
    ///
    /// `go_on` is called between small pieces of work and returns whether to continue. It may sleep, to leave
    /// more of the disk to others. An abandoned compaction starts from its beginning at the next call.
    /// Nothing is compacted while the collection is being copied, or while another thread compacts.
    ///
    /// # Errors
    /// If a file is damaged, the disk has no room for the compacted files, or a disk operation fails. Then
    /// everything is as it was, with one exception: if the list of partitions could not be written, the
    /// collection accepts no more writes.
    pub fn run_maintenance(&self, go_on: &mut dyn FnMut() -> bool) -> Result<MaintenanceReport> {
        self.check_running()?;
        let mut maintenance = MaintenanceReport {
            expired: self.expire_by_clock()?,
            ..MaintenanceReport::default()
        };
        let Some(mut left_over) = self.try_lock_maintenance() else {
            return Ok(maintenance);
        };
        self.remove_left_over(&mut left_over)?;
        self.drop_late_documents(go_on)?;
        let (now, trigger) = ((self.options.clock)(), &self.options.compaction);
        let (mut from, mut refused) = (0, None);
        loop {
            let due = self
                .read_state()?
                .partition_to_compact(from, trigger, now)?;
            let Some(number) = due else { break };
            // A partition that cannot be compacted does not keep others from being compacted.
            match self.compact_one(number, &mut left_over, go_on) {
                Ok(compacted) => maintenance.compacted += u64::from(compacted),
                Err(error) => refused = refused.or(Some(error)),
            }
            from = number + 1;
        }
        refused.map_or(Ok(maintenance), Err)
    }

    /// Compacts every partition that has dead rows on disk, due or not. Returns the number of partitions
    /// compacted.
    ///
    /// # Errors
    /// As for [`run_maintenance`](Self::run_maintenance).
    pub fn compact_all(&self, go_on: &mut dyn FnMut() -> bool) -> Result<u64> {
        self.check_running()?;
        let mut left_over = self.lock_maintenance();
        self.remove_left_over(&mut left_over)?;
        let mut compacted = 0;
        let with_dead = self.read_state()?.partitions_with_dead();
        for number in with_dead {
            compacted += u64::from(self.compact_one(number, &mut left_over, go_on)?);
        }
        Ok(compacted)
    }

    /// Locks compaction and copying, unless another thread holds the lock.
    fn try_lock_maintenance(&self) -> Option<MutexGuard<'_, Vec<FileNames>>> {
        match self.maintenance.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Expires partitions that have left the window, if it follows the wall clock.
    fn expire_by_clock(&self) -> Result<u64> {
        let now = (self.options.clock)();
        if !self.read_state()?.can_expire(now) {
            return Ok(0);
        }
        let expired = self.write_state()?.expire_partitions(now)?;
        let write = || self.write_pending().map_err(|error| error.to_string());
        self.group
            .take_turn(write)
            .map_err(|why| stopped_error(&why))?;
        Ok(expired)
    }

    /// Drops documents that have left the window by the wall clock long before the rest of their partition,
    /// so that the partition becomes due for compaction.
    fn drop_late_documents(&self, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        loop {
            let number = self.read_state()?.late_partition((self.options.clock)());
            let Some(number) = number else { return Ok(()) };
            let (times, last) = {
                let mut state = self.write_state()?;
                (state.take_times(number), state.last_row())
            };
            let Some(times) = times else { return Ok(()) };
            let on_disk = self.wait_for_row(last);
            let dropped = on_disk.and_then(|()| self.drop_late_of(number, go_on));
            if !matches!(dropped, Ok(true)) {
                self.write_state()?.note_times(number, times);
                return dropped.map(drop);
            }
        }
    }

    /// Returns `true` if the whole partition was examined.
    fn drop_late_of(&self, number: u64, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        let partition = self.read_state()?.partition_on_disk(number);
        let Some(partition) = partition else {
            return Ok(false);
        };
        let mut next_block = 0;
        loop {
            let blocks = partition.blocks_from(next_block, PIECE / 4)?;
            for (first, block) in &blocks {
                let mut rows = partition.decode_block(*first, block)?;
                let numbers: Vec<_> = number_rows(*first, &rows)
                    .map(|(number, _)| number)
                    .collect();
                let now = (self.options.clock)();
                let mut state = self.write_state()?;
                for (row_number, row) in numbers.into_iter().zip(rows.drain(..)) {
                    let Some((document, seq)) = row.into_document(row_number) else {
                        continue;
                    };
                    let known = KnownDocument {
                        number: row_number,
                        seq,
                        document,
                    };
                    if state.is_past_window(&known, now) {
                        state.drop_expired(&known);
                    } else if !state.is_dead_row(row_number) {
                        let time = state.window_start(&known);
                        state.note_times(number, (time, time));
                    }
                }
                next_block = first + 1;
            }
            if blocks.is_empty() {
                return Ok(true);
            }
            if !go_on() {
                return Ok(false);
            }
        }
    }

    fn remove_left_over(&self, left_over: &mut Vec<FileNames>) -> Result<()> {
        while let Some(&names) = left_over.last() {
            remove_unlisted_files(&*self.disk, names)?;
            left_over.pop();
        }
        Ok(())
    }

    /// Compacts a partition; returns `true` if it was compacted, `false` if it was abandoned.
    fn compact_one(
        &self,
        number: u64,
        left_over: &mut Vec<FileNames>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let begun = self.write_state()?.begin_compaction(number);
        let Some(begun) = begun else {
            return Ok(false);
        };
        let compacted = self.compact_begun(&begun, left_over, go_on);
        if !matches!(compacted, Ok(true)) {
            self.write_state()?.give_up_compaction(&begun);
        }
        if compacted? {
            self.remove_left_over(left_over)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn compact_begun(
        &self,
        begun: &CompactionStart,
        left_over: &mut Vec<FileNames>,
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
        let needed = survey.units * UNIT + from.bytes_of_rows()?;
        check_free_bytes(
            &*self.disk,
            (self.options.headroom / 2).saturating_add(needed),
        )?;
        let names = from.about.file_names();
        let made = names.next_generation();
        let copy = PartitionCopy::create_copy(&*self.disk, begun, survey, from, has_sketches);
        let copied = copy.and_then(|mut copy| self.copy_and_replace(&mut copy, go_on));
        if matches!(copied, Ok(true)) {
            left_over.push(names);
        } else if self.group.current_progress().failed.is_none() {
            // No list names these files. If they cannot be removed now, they are removed later.
            left_over.push(made);
            let _ = self.remove_left_over(left_over);
        } else {
            // It is unknown which files the list names, so none may be removed.
            left_over.clear();
        }
        copied
    }

    fn copy_and_replace(
        &self,
        copy: &mut PartitionCopy<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        for round in 0..ROUNDS {
            let before = (copy.next, copy.place);
            let durable = self.group.current_progress().durable;
            for step in 1_usize.. {
                if !copy.copy_some_rows(durable)? {
                    break;
                }
                // While it catches up, it would have more to do after each rest.
                let rests = round == 0 || step.is_multiple_of(STEPS_WITHOUT_REST);
                if rests && !go_on() {
                    return Ok(false);
                }
            }
            copy.sync_files()?;
            let units = copy.place - before.1;
            if copy.next - before.0 < LEFT && units * UNIT < BYTES_LEFT {
                break;
            }
        }
        let mut replaced = Ok(None);
        let turn = || {
            let durable = self.group.current_progress().durable;
            replaced = self.replace_partition(copy);
            match &replaced {
                Err(error) if copy.is_listed => Err(error.to_string()),
                _ => Ok(durable),
            }
        };
        let turned = self
            .group
            .take_turn(turn)
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
        if !writer.has_partition(&copy.from) {
            return Ok(None);
        }
        while copy.copy_some_rows(u64::MAX)? {}
        copy.sync_files()?;
        copy.check_survey()?;
        copy.is_listed = true;
        writer.replace_partition(&copy.to, copy.sketches.take())?;
        let places = std::mem::take(&mut copy.places);
        let to = Arc::clone(&copy.to);
        let before = self.write_state()?.end_compaction(to, places, copy.erased);
        Ok(Some(before))
    }

    /// Reads the rows of a partition and collects what must be known before they are copied; `None` if
    /// abandoned.
    fn survey_rows(
        &self,
        begun: &CompactionStart,
        from: &PartitionFiles,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<RowSurvey>> {
        let mut survey = RowSurvey {
            units: 0,
            newest: from
                .about
                .compacted
                .map_or(Timestamp::BEGINNING, |it| it.newest),
            tails: HashMap::new(),
            refreshed: HashMap::new(),
        };
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
        // If the representative is gone, nobody asks for its duplicates.
        let tails: Vec<_> = survey.tails.drain().collect();
        for some in tails.chunks(CLUSTERS) {
            let state = self.read_state()?;
            let of_live = some
                .iter()
                .filter(|(seq, tail)| state.is_still_kept(*seq, tail.slot));
            survey.tails.extend(of_live.copied());
        }
        Ok(Some(survey))
    }
}

/// A replaced partition and the places of its kept documents, if the partition was in memory.
type ReplacedPartition = Option<(Arc<PartitionFiles>, ChunkedVec<u32>)>;

/// Removes partition files that no list names.
fn remove_unlisted_files(disk: &dyn Disk, names: FileNames) -> Result<()> {
    let begun = format!("{}{INCOMPLETE}", names.rows_file());
    for name in [
        names.rows_file(),
        begun,
        names.texts_file(),
        names.sketches_file(),
    ] {
        match disk.remove_file(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => {
                removed.map_err(|error| Error::disk_error("cannot remove", &name, &error))?
            }
        }
    }
    let synced = disk.sync_names();
    synced.map_err(|error| Error::disk_error("cannot remove", &names.rows_file(), &error))
}

/// The last row in a partition that is a duplicate of one kept document.
#[derive(Clone, Copy)]
struct ClusterTail {
    number: u64,
    slot: DocumentSlot,
}

/// Facts about the rows of a partition, collected before the rows are copied.
struct RowSurvey {
    /// Total size of the live records, in units.
    units: u64,
    /// Newest time of a document, erased ones included.
    newest: Timestamp,
    /// Clusters whose last row in this partition is dead, by the sequence number of the representative. That
    /// row is kept in short form, because later rows name it as their predecessor.
    tails: HashMap<u64, ClusterTail>,
    /// Newest times of erased duplicates, by the index of their kept document in this partition.
    refreshed: HashMap<u32, Timestamp>,
}

impl RowSurvey {
    fn note_row(&mut self, begun: &CompactionStart, number: u64, row: &PartitionRow) {
        match row {
            PartitionRow::Document(document) | PartitionRow::Moved { document, .. } => {
                let is_dead = begun.is_dead_row(number);
                self.newest = self.newest.max(document.time);
                if !is_dead {
                    self.units += u64::from(document.place.units);
                }
                let RowVerdict::Duplicate { seq, slot, .. } = &document.verdict else {
                    return;
                };
                self.look_at_repeat(
                    *seq,
                    ClusterTail {
                        number,
                        slot: *slot,
                    },
                    is_dead,
                );
                if is_dead && slot.partition == begun.number {
                    let refreshed = self.refreshed.entry(slot.index).or_insert(document.time);
                    *refreshed = document.time.max(*refreshed);
                }
            }
            PartitionRow::ErasedDuplicate { seq, slot, .. } => {
                self.look_at_repeat(
                    *seq,
                    ClusterTail {
                        number,
                        slot: *slot,
                    },
                    true,
                );
            }
            PartitionRow::Deleted { .. }
            | PartitionRow::Erased { .. }
            | PartitionRow::ErasedMove { .. } => {}
        }
    }

    fn look_at_repeat(&mut self, seq: u64, tail: ClusterTail, is_dead: bool) {
        match is_dead {
            true => self.tails.insert(seq, tail),
            false => self.tails.remove(&seq),
        };
    }

    fn is_cluster_tail(&self, seq: u64, number: u64) -> bool {
        self.tails
            .get(&seq)
            .is_some_and(|tail| tail.number == number)
    }
}

/// A compaction in progress: reads the old partition and writes the new one.
struct PartitionCopy<'a> {
    begun: &'a CompactionStart,
    survey: RowSurvey,
    from: Arc<PartitionFiles>,
    to: Arc<PartitionFiles>,
    /// Blocks of rows from this one on are still to be read, and those that were read and not taken.
    next_block: u64,
    blocks: VecDeque<(u64, Vec<u8>)>,
    /// The number of the next row.
    next: u64,
    /// Rows not yet written, and the run of erased rows after them (rows, and kept documents among them).
    rows: EncodedRows,
    run: (u64, u32),
    /// Number of the first row that is not yet written.
    first: u64,
    /// Place after the last record, in units.
    place: u64,
    /// Records that are not written yet, by their place before and their units, and where they go.
    records: VecDeque<(u64, u64)>,
    records_at: u64,
    /// Bytes of the records not yet copied, and bytes copied but not synced.
    waiting: u64,
    unsynced: u64,
    places: ChunkedVec<u32>,
    /// Dead duplicates, with the number of the closest earlier row of their cluster that is live or in an
    /// earlier partition.
    before: HashMap<u64, u64>,
    /// Rows of which nothing remains, or only what other rows need.
    erased: u64,
    reading: Option<SketchFileReader>,
    sketches: Option<SketchFile>,
    entries: SketchEntries,
    /// `true` if the list of partitions may name the new files.
    is_listed: bool,
}

impl<'a> PartitionCopy<'a> {
    fn create_copy(
        disk: &dyn Disk,
        begun: &'a CompactionStart,
        survey: RowSurvey,
        from: Arc<PartitionFiles>,
        has_sketches: bool,
    ) -> Result<Self> {
        let before = from.about;
        let base = begun.texts_end.checked_sub(survey.units);
        let base = base
            .filter(|&base| base >= before.first_place())
            .ok_or_else(|| {
                let what = format!("its rows refer to {} units of texts", survey.units);
                Error::damaged_file(&from.rows_name(), what)
            })?;
        let about = PartitionHeader {
            compacted: Some(CompactionState {
                generation: before.file_names().next_generation().generation,
                base,
                applied: begun.applied,
                newest: survey.newest,
            }),
            ..before
        };
        let to = Arc::new(PartitionFiles::create_files(disk, about)?);
        let reading = has_sketches
            .then(|| SketchFileReader::open_file(disk, before.seal, before.file_names()));
        let sketches = || SketchFile::create_file(disk, about.seal, about.file_names()).ok();
        Ok(Self {
            begun,
            survey,
            from,
            to,
            next_block: 0,
            blocks: VecDeque::new(),
            next: begun.first_row,
            rows: EncodedRows::default(),
            run: (0, 0),
            first: begun.first_row,
            place: base,
            records: VecDeque::new(),
            records_at: base,
            waiting: 0,
            unsynced: 0,
            places: ChunkedVec::default(),
            before: HashMap::new(),
            erased: 0,
            sketches: has_sketches.then(sketches).flatten(),
            reading,
            entries: SketchEntries::default(),
            is_listed: false,
        })
    }

    /// Copies a piece of the rows up to the one with a number; returns whether there may be more.
    fn copy_some_rows(&mut self, last: u64) -> Result<bool> {
        let mut read = 0;
        while read < ROWS_READ && self.waiting < PIECE as u64 {
            let Some((first, block)) = self.next_block(last)? else {
                break;
            };
            read += block.len();
            self.from.check_next(first, self.next)?;
            for row in self.from.decode_block(first, &block)? {
                self.take_row(row)?;
            }
        }
        let goes_on = read > 0 || self.waiting > 0;
        self.write_records()?;
        if self.rows.byte_count() + self.entries.byte_count() >= ROWS_COMMITTED {
            self.write_rows()?;
        }
        Ok(goes_on)
    }

    /// Takes the next block of rows, unless it begins behind the row with a number.
    fn next_block(&mut self, last: u64) -> Result<Option<(u64, Vec<u8>)>> {
        if self.blocks.is_empty() {
            self.blocks = self.from.blocks_from(self.next_block, ROWS_READ)?.into();
            if let Some((newest, _)) = self.blocks.back() {
                self.next_block = newest + 1;
            }
        }
        // Later blocks wait, because rows have all of their sketches only once their commit is known to be on
        // disk.
        let is_due = self.blocks.front().is_some_and(|(first, _)| *first <= last);
        Ok(match is_due {
            true => self.blocks.pop_front(),
            false => None,
        })
    }

    fn take_row(&mut self, row: PartitionRow) -> Result<()> {
        let (number, count) = (self.next, row.number_count());
        let is_kept = match &row {
            PartitionRow::Document(document) | PartitionRow::Moved { document, .. } => {
                match document.verdict {
                    RowVerdict::Kept { .. } => Some(document.content),
                    RowVerdict::Duplicate { .. } => None,
                }
            }
            _ => None,
        };
        let row = match number < self.begun.applied {
            true => self.without_dead(number, row),
            false => self.take_as_it_is(row)?,
        };
        let counts = matches!(row, PartitionRow::Document(_) | PartitionRow::Moved { .. });
        if let Some(content) = is_kept {
            self.copy_sketches(content, counts);
        }
        self.next = number.saturating_add(count);
        self.push_row(row);
        Ok(())
    }

    fn push_row(&mut self, row: PartitionRow) {
        match row {
            PartitionRow::Erased { rows, kept } => {
                self.erased += rows;
                self.run.0 += rows;
                self.run.1 += kept;
                return;
            }
            PartitionRow::ErasedMove { .. } | PartitionRow::ErasedDuplicate { .. } => {
                self.erased += 1
            }
            PartitionRow::Document(_)
            | PartitionRow::Moved { .. }
            | PartitionRow::Deleted { .. } => {}
        }
        self.end_erased_run();
        self.rows.push_row(&row);
    }

    fn end_erased_run(&mut self) {
        let (rows, kept) = std::mem::take(&mut self.run);
        if rows > 0 {
            self.rows.push_row(&PartitionRow::Erased { rows, kept });
        }
    }

    /// Returns the compacted form of a row that was there before compaction began. Erases a dead row; copies
    /// the record of a live document.
    fn without_dead(&mut self, number: u64, row: PartitionRow) -> PartitionRow {
        let is_dead = self.begun.is_dead_row(number);
        match row {
            PartitionRow::Document(document) if is_dead => self.erase_document(number, document),
            PartitionRow::Document(document) => {
                PartitionRow::Document(self.copy_document(document))
            }
            PartitionRow::Moved {
                from,
                from_slot,
                seq,
                ..
            } if is_dead => self.erase_move(number, from, from_slot, seq),
            PartitionRow::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => PartitionRow::Moved {
                last: self.member_before(last),
                document: self.copy_document(document),
                from,
                from_slot,
                seq,
            },
            PartitionRow::Deleted { number: of, .. } if !self.begun.is_needed_row(number, of) => {
                PartitionRow::Erased { rows: 1, kept: 0 }
            }
            PartitionRow::Deleted { .. } => row,
            PartitionRow::Erased { kept, .. } => {
                self.skip_places(kept);
                row
            }
            PartitionRow::ErasedMove {
                from,
                from_slot,
                seq,
            } => self.erase_move(number, from, from_slot, seq),
            PartitionRow::ErasedDuplicate {
                seq,
                slot,
                previous,
            } => self.erase_duplicate(number, seq, slot, previous),
        }
    }

    fn erase_document(&mut self, number: u64, document: rows::RowDocument) -> PartitionRow {
        match document.verdict {
            RowVerdict::Kept { .. } => {
                self.skip_places(1);
                PartitionRow::Erased { rows: 1, kept: 1 }
            }
            RowVerdict::Duplicate {
                seq,
                slot,
                previous,
                ..
            } => self.erase_duplicate(number, seq, slot, previous),
        }
    }

    fn erase_duplicate(
        &mut self,
        number: u64,
        seq: u64,
        slot: DocumentSlot,
        previous: u64,
    ) -> PartitionRow {
        let previous = self.member_before(previous);
        self.before.insert(number, previous);
        if !self.survey.is_cluster_tail(seq, number) {
            return PartitionRow::Erased { rows: 1, kept: 0 };
        }
        PartitionRow::ErasedDuplicate {
            seq,
            slot,
            previous,
        }
    }

    fn erase_move(
        &mut self,
        number: u64,
        from: u64,
        from_slot: DocumentSlot,
        seq: u64,
    ) -> PartitionRow {
        self.skip_places(1);
        if !self.begun.is_needed_row(number, from) {
            return PartitionRow::Erased { rows: 1, kept: 1 };
        }
        PartitionRow::ErasedMove {
            from,
            from_slot,
            seq,
        }
    }

    /// Returns the closest earlier row of a cluster that is live or in an earlier partition.
    fn member_before(&self, previous: u64) -> u64 {
        self.before.get(&previous).copied().unwrap_or(previous)
    }

    fn skip_places(&mut self, count: u32) {
        (0..count).for_each(|_| self.places.push(NOWHERE));
    }

    fn copy_document(&mut self, mut document: rows::RowDocument) -> rows::RowDocument {
        let (from, units) = (document.place.at, document.place.units);
        document.place.at = self.place as u32;
        self.copy_records(from.into(), units.into());
        match &mut document.verdict {
            RowVerdict::Kept { index } => {
                let refreshed = self.survey.refreshed.get(index).copied();
                let refreshed = refreshed.filter(|&time| time > document.time);
                document.refreshed = document.refreshed.max(refreshed);
                self.places.push(document.place.at);
            }
            RowVerdict::Duplicate { previous, .. } => {
                *previous = self.before.get(previous).copied().unwrap_or(*previous);
            }
        }
        document
    }

    /// Copies a row that was added since compaction began. Its record keeps its place.
    fn take_as_it_is(&mut self, row: PartitionRow) -> Result<PartitionRow> {
        self.check_survey()?;
        if let PartitionRow::Document(document) | PartitionRow::Moved { document, .. } = &row {
            let end = document.place.end_unit();
            if end > self.place {
                self.copy_records(self.place, end - self.place);
            }
            if matches!(document.verdict, RowVerdict::Kept { .. }) {
                self.places.push(document.place.at);
            }
        }
        Ok(row)
    }

    /// Checks that the rows from before compaction began are those that were surveyed.
    fn check_survey(&self) -> Result<()> {
        if self.place >= self.begun.texts_end {
            return Ok(());
        }
        let what = format!(
            "its records end at {}, not {}",
            self.place, self.begun.texts_end
        );
        Err(Error::damaged_file(&self.from.rows_name(), what))
    }

    fn copy_records(&mut self, from: u64, units: u64) {
        match self.records.back_mut() {
            Some((start, length)) if *start + *length == from => *length += units,
            _ => self.records.push_back((from, units)),
        }
        self.place += units;
        self.waiting += units * UNIT;
    }

    fn copy_sketches(&mut self, content: u64, counts: bool) {
        let entry = self.reading.as_mut().and_then(SketchFileReader::next_entry);
        if self.sketches.is_none() || !counts {
            return;
        }
        match entry.as_ref().and_then(|entry| entry.sketches_for(content)) {
            Some(bytes) => self.entries.push_entry(content, |into| into.extend(bytes)),
            // A damaged cache is abandoned here and rebuilt when the collection is opened.
            None => self.sketches = None,
        }
    }

    /// Writes the rows that were taken.
    fn write_rows(&mut self) -> Result<()> {
        let entries = std::mem::take(&mut self.entries);
        self.sketches
            .take_if(|sketches| sketches.append_and_sync(&entries, UNSYNCED).is_err());
        if self.rows.len() > 0 {
            self.to.commit_rows(&self.rows, self.first)?;
            self.rows = EncodedRows::default();
        }
        // The open run of erased rows may still grow, so it is not written yet.
        self.first = self.next - self.run.0;
        Ok(())
    }

    /// Writes a piece of the records of rows that were taken.
    fn write_records(&mut self) -> Result<()> {
        let refused =
            |error: io::Error| Error::disk_error("cannot copy", &self.from.rows_name(), &error);
        let mut bytes = vec![0; PIECE.min(self.waiting as usize)];
        let mut filled = 0;
        while filled < bytes.len()
            && let Some((from, units)) = self.records.front_mut()
        {
            let count = ((*units * UNIT) as usize).min(bytes.len() - filled);
            let into = &mut bytes[filled..filled + count];
            let at = self.from.record_offset(*from)?;
            self.from.texts_file.read_exact(into, at).map_err(refused)?;
            filled += count;
            let copied = count as u64 / UNIT;
            (*from, *units) = (*from + copied, *units - copied);
            if *units == 0 {
                self.records.pop_front();
            }
        }
        if filled == 0 {
            return Ok(());
        }
        let to = self.to.record_offset(self.records_at)?;
        self.to
            .texts_file
            .write_at(&bytes[..filled], to)
            .map_err(refused)?;
        self.records_at += filled as u64 / UNIT;
        self.waiting -= filled as u64;
        self.unsynced += filled as u64;
        if self.unsynced >= UNSYNCED {
            self.sync_records()?;
        }
        Ok(())
    }

    fn sync_records(&mut self) -> Result<()> {
        if std::mem::take(&mut self.unsynced) == 0 {
            return Ok(());
        }
        let synced = self.to.texts_file.sync();
        synced.map_err(|error| Error::disk_error("cannot sync", &self.to.rows_name(), &error))
    }

    /// Writes all that was taken and makes it durable.
    fn sync_files(&mut self) -> Result<()> {
        while self.waiting > 0 {
            self.write_records()?;
        }
        self.sync_records()?;
        self.end_erased_run();
        self.write_rows()
    }
}
