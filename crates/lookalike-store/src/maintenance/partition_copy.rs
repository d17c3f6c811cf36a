//! A compaction in progress: reads the old partition, and writes its live rows and records to the new one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lookalike::stream::DocumentSlot;

use super::compacted_rows::CompactedRows;
use super::compaction::PIECE;
use super::record_copier::RecordCopier;
use super::row_survey::RowSurvey;
use super::sketch_copier::SketchCopier;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::partition::PartitionFiles;
use crate::files::partition_header::{CompactionState, PartitionHeader};
use crate::files::rows::{EncodedRows, PartitionRow, RowDocument, RowVerdict};
use crate::files::sketches::SketchFile;
use crate::state::{ChunkedVec, CompactionStart, NO_PLACE};

/// Bytes of rows that are read for a piece.
const ROWS_READ: usize = PIECE / 4;

/// Bytes of rows and sketches that are committed together.
const ROWS_COMMITTED: usize = PIECE / 2;

/// A compaction in progress; see the [module](self).
pub(super) struct PartitionCopy<'a> {
    begun: &'a CompactionStart,
    survey: RowSurvey,
    blocks: BlockReader,
    to: Arc<PartitionFiles>,
    /// Number of the next row that is read.
    next_row: u64,
    rows: CompactedRows,
    records: RecordCopier,
    /// `None` if the collection has no sketches.
    sketches: Option<SketchCopier>,
    /// New places of the records of kept documents.
    places: ChunkedVec<u32>,
    /// Dead duplicates, with the number of the closest earlier row of their cluster that is live or in an
    /// earlier partition.
    members_before: HashMap<u64, u64>,
    /// `true` if the list of partitions may name the new files.
    pub(super) is_listed: bool,
}

/// The number of the next row, and the place of the next record.
#[derive(Clone, Copy)]
pub(super) struct CopyPosition {
    pub(super) next_row: u64,
    pub(super) end_place: u64,
}

impl<'a> PartitionCopy<'a> {
    pub(super) fn create_copy(
        disk: &dyn Disk,
        begun: &'a CompactionStart,
        survey: RowSurvey,
        from: Arc<PartitionFiles>,
        has_sketches: bool,
    ) -> Result<Self> {
        let before = from.about;
        let base = begun.texts_end.checked_sub(survey.live_units);
        let base = base
            .filter(|&base| base >= before.first_place())
            .ok_or_else(|| {
                let what = format!("its rows refer to {} units of texts", survey.live_units);
                Error::damaged_file(&from.rows_name(), what)
            })?;
        let about = PartitionHeader {
            compacted: Some(CompactionState {
                generation: before.file_names().next_generation().generation,
                base,
                applied: begun.applied,
                newest: survey.newest_time,
            }),
            ..before
        };
        let to = Arc::new(PartitionFiles::create_files(disk, about, None)?);
        Ok(Self {
            begun,
            survey,
            next_row: begun.first_row,
            rows: CompactedRows::new(Arc::clone(&to)),
            records: RecordCopier::new(Arc::clone(&from), Arc::clone(&to), base),
            sketches: has_sketches.then(|| SketchCopier::new(disk, before, about)),
            places: ChunkedVec::default(),
            members_before: HashMap::new(),
            blocks: BlockReader::new(from),
            to,
            is_listed: false,
        })
    }

    /// Returns the old partition.
    pub(super) fn old_partition(&self) -> &Arc<PartitionFiles> {
        &self.blocks.from
    }

    /// Returns the new partition.
    pub(super) fn new_partition(&self) -> &Arc<PartitionFiles> {
        &self.to
    }

    /// Returns how far it is.
    pub(super) fn position(&self) -> CopyPosition {
        CopyPosition {
            next_row: self.next_row,
            end_place: self.records.end_place(),
        }
    }

    /// Returns the number of erased rows.
    pub(super) fn erased_count(&self) -> u64 {
        self.rows.erased_count()
    }

    /// Returns the new places of the records of kept documents.
    pub(super) fn take_places(&mut self) -> ChunkedVec<u32> {
        std::mem::take(&mut self.places)
    }

    /// Returns the new cache of sketches, if it is complete.
    pub(super) fn take_sketches(&mut self) -> Option<SketchFile> {
        self.sketches.as_mut().and_then(SketchCopier::take_file)
    }

    /// Copies a piece of the rows up to the one with a number; returns `true` if there may be more.
    pub(super) fn copy_some_rows(&mut self, last: u64) -> Result<bool> {
        let mut read = 0;
        while read < ROWS_READ && self.records.waiting_bytes() < PIECE as u64 {
            let Some((first, block)) = self.blocks.next_block(last)? else {
                break;
            };
            read += block.len();
            let from = Arc::clone(self.old_partition());
            from.check_next(first, self.next_row)?;
            for row in from.decode_block(first, &block)? {
                self.copy_row(row)?;
            }
        }
        let goes_on = read > 0 || self.records.waiting_bytes() > 0;
        self.records.copy_piece()?;
        let sketch_bytes = self
            .sketches
            .as_ref()
            .map_or(0, SketchCopier::waiting_bytes);
        if self.rows.waiting_bytes() + sketch_bytes >= ROWS_COMMITTED {
            self.write_sketches();
            self.rows.write_rows(self.next_row)?;
        }
        Ok(goes_on)
    }

    /// Writes everything that was copied, durably.
    pub(super) fn sync_files(&mut self) -> Result<()> {
        self.records.copy_rest()?;
        self.write_sketches();
        self.rows.write_rest(self.next_row)
    }

    /// Copies the progress in a shared log, if there is any, durably. Nobody else writes meanwhile, and all rows are
    /// copied.
    pub(super) fn copy_log_progress(&self) -> Result<()> {
        let Some(progress) = self.old_partition().read_log_progress()? else {
            return Ok(());
        };
        let no_rows = EncodedRows::default();
        self.to
            .commit_rows(&no_rows, self.next_row, Some(&progress))
    }

    fn write_sketches(&mut self) {
        if let Some(sketches) = &mut self.sketches {
            sketches.write_entries();
        }
    }

    fn copy_row(&mut self, row: PartitionRow) -> Result<()> {
        let (number, count) = (self.next_row, row.number_count());
        let kept_hash = row.as_kept_document().map(|document| document.content_hash);
        let row = if number < self.begun.applied {
            self.compact_row(number, row)
        } else {
            self.copy_new_row(row)?
        };
        let is_live = row.as_document().is_some();
        if let (Some(content_hash), Some(sketches)) = (kept_hash, &mut self.sketches) {
            sketches.copy_entry(content_hash, is_live);
        }
        self.next_row = number.saturating_add(count);
        self.rows.push_row(row);
        Ok(())
    }

    /// Copies a row that was added since compaction began. Its record keeps its place.
    fn copy_new_row(&mut self, row: PartitionRow) -> Result<PartitionRow> {
        self.check_survey()?;
        if let Some(document) = row.as_document() {
            let (place, end) = (self.records.end_place(), document.place.end_unit());
            if end > place {
                self.records.push_records(place, end - place);
            }
            if document.is_kept() {
                self.places.push(document.place.at);
            }
        }
        Ok(row)
    }

    /// Checks that the rows from before compaction began are those that were surveyed.
    pub(super) fn check_survey(&self) -> Result<()> {
        let end = self.records.end_place();
        if end >= self.begun.texts_end {
            return Ok(());
        }
        let what = format!("its records end at {end}, not {}", self.begun.texts_end);
        Err(Error::damaged_file(&self.old_partition().rows_name(), what))
    }

    /// Returns the compacted form of a row that was there before compaction began. Erases a dead row; copies
    /// the record of a live document.
    fn compact_row(&mut self, number: u64, row: PartitionRow) -> PartitionRow {
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
            // A decision is short, and holds until it is moved to a later partition.
            PartitionRow::Deleted { .. } | PartitionRow::Decision(_) => row,
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

    fn erase_document(&mut self, number: u64, document: RowDocument) -> PartitionRow {
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
        self.members_before.insert(number, previous);
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
        let before = self.members_before.get(&previous);
        before.copied().unwrap_or(previous)
    }

    fn skip_places(&mut self, count: u32) {
        (0..count).for_each(|_| self.places.push(NO_PLACE));
    }

    fn copy_document(&mut self, mut document: RowDocument) -> RowDocument {
        let (from, units) = (document.place.at, document.place.units);
        document.place.at = self.records.end_place() as u32;
        self.records.push_records(from.into(), units.into());
        match &mut document.verdict {
            RowVerdict::Kept { index } => {
                let refreshed = self.survey.refresh_times.get(index).copied();
                let refreshed = refreshed.filter(|&time| time > document.time);
                document.refreshed = document.refreshed.max(refreshed);
                self.places.push(document.place.at);
            }
            RowVerdict::Duplicate { previous, .. } => *previous = self.member_before(*previous),
        }
        document
    }
}

/// Reads the blocks of a partition in order, while others may follow.
struct BlockReader {
    from: Arc<PartitionFiles>,
    /// Blocks from this row on are still to be read.
    next_row: u64,
    /// Blocks that were read and not taken.
    blocks: VecDeque<(u64, Vec<u8>)>,
}

impl BlockReader {
    fn new(from: Arc<PartitionFiles>) -> Self {
        Self {
            from,
            next_row: 0,
            blocks: VecDeque::new(),
        }
    }

    /// Takes the next block of rows, with the number of the first, unless it begins behind the row `last`.
    fn next_block(&mut self, last: u64) -> Result<Option<(u64, Vec<u8>)>> {
        if self.blocks.is_empty() {
            self.blocks = self.from.blocks_from(self.next_row, ROWS_READ)?.into();
            if let Some((newest, _)) = self.blocks.back() {
                self.next_row = newest + 1;
            }
        }
        // Later blocks wait, because rows have all of their sketches only once their commit is known to be on
        // disk.
        let is_due = self.blocks.front().is_some_and(|(first, _)| *first <= last);
        Ok(if is_due {
            self.blocks.pop_front()
        } else {
            None
        })
    }
}
