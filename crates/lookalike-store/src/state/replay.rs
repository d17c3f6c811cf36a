//! Rebuilds the state of a collection from its rows. No decision is made again.
//!
//! Rows pass through three stages in portions, one partition after another. All stages run at the same time:
//!
//! ```text
//! read and decode (all cores) ──> prepare (all cores) ──> matcher (one thread)
//!                                         └─────────────> ids (one thread)
//! ```

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::stream::{self, DocumentKeys, DocumentPreparer, KeyExtractor, Timestamp};
use lookalike::text::AnalysisScratch;
use rayon::prelude::*;

use super::{CollectionState, NOWHERE, PendingRows};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::file_names::FileNames;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{self, DeletionRecord, PartitionRow, RowVerdict, count_rows, number_rows};
use crate::files::sketches::{SketchEntries, SketchEntry, SketchFile, SketchFileReader};
use crate::ids::{IdTable, hash_id};

/// Bytes of rows in a portion.
const TOGETHER: usize = 512 << 10;

/// Portions that may wait for the next stage.
const READY: usize = 2;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const AHEAD: usize = 4;

/// Where the sketches of a partition's kept documents come from.
enum SketchSource {
    /// The collection has no sketches.
    Nowhere,
    File(SketchFileReader),
    /// The file is damaged from here on: sketches are computed from texts and written.
    Texts(SketchFile),
}

/// Prepared rows, each with its document if that was kept.
struct ReadyRows {
    rows: Vec<PartitionRow>,
    kept: Vec<Option<KeptDocument>>,
}

struct KeptDocument {
    document: stream::SketchedDocument,
    document_keys: DocumentKeys,
    /// `true` if it was prepared from its text.
    anew: bool,
}

/// Row numbers and id hashes of rows with an id.
struct ReadyIds {
    /// Number of the first row.
    first: u64,
    hashes: Vec<(u64, u64)>,
}

/// An item of the pipeline.
enum ReplayStep<T> {
    Begin(Arc<PartitionFiles>),
    Rows(T),
    End,
}

type StepSender<T> = SyncSender<ReplayStep<T>>;

/// Sends a step to the next stage. If that has stopped, its own error says why.
fn send_step<T>(step: ReplayStep<T>, to: &StepSender<T>) -> Result<()> {
    let sent = to.send(step);
    sent.map_err(|_| Error::damaged_file("rows", "what was read is not taken"))
}

/// Sends the rows of the partitions in portions.
fn read_partitions(
    disk: &dyn Disk,
    seal: u32,
    partitions: &[FileNames],
    to: &StepSender<Vec<PartitionRow>>,
) -> Result<()> {
    for &names in partitions {
        let partition = Arc::new(PartitionFiles::open_files(disk, seal, names)?);
        send_step(ReplayStep::Begin(partition.clone()), to)?;
        read_rows(&partition, to)?;
        send_step(ReplayStep::End, to)?;
    }
    Ok(())
}

fn read_rows(partition: &PartitionFiles, to: &StepSender<Vec<PartitionRow>>) -> Result<()> {
    let mut next = partition.about.first;
    let (mut blocks, mut bytes) = (Vec::new(), 0);
    let mut decode = |blocks: &[(u64, Vec<u8>)]| {
        let decoded: Vec<Vec<PartitionRow>> = blocks
            .par_iter()
            .map(|(first, block)| partition.decode_block(*first, block))
            .collect::<Result<_>>()?;
        for ((first, _), rows) in blocks.iter().zip(&decoded) {
            partition.check_next(*first, next)?;
            next = next.saturating_add(count_rows(rows));
        }
        send_step(
            ReplayStep::Rows(decoded.into_iter().flatten().collect()),
            to,
        )
    };
    partition.for_each_raw_block(|first, block| {
        bytes += block.len();
        blocks.push((first, block));
        if bytes >= TOGETHER {
            bytes = 0;
            return decode(&std::mem::take(&mut blocks));
        }
        Ok(())
    })?;
    decode(&blocks)
}

/// The preparing stage.
struct RowPreparer<'a> {
    disk: &'a dyn Disk,
    seal: u32,
    with_sketches: bool,
    preparer: DocumentPreparer,
    /// Source of bucket keys, as it was when rows were last inserted.
    extractor: &'a Mutex<KeyExtractor>,
    /// Destination of ids.
    ids: SyncSender<ReadyIds>,
}

impl RowPreparer<'_> {
    /// Prepares all rows and passes them on. Returns the file of sketches of the last partition, if the
    /// collection has sketches.
    fn prepare_steps(
        self,
        steps: Receiver<ReplayStep<Vec<PartitionRow>>>,
        to: &StepSender<ReadyRows>,
    ) -> Result<Option<SketchFile>> {
        let mut at: Option<PreparePosition> = None;
        let mut sketches = None;
        for step in steps {
            let step = match (step, &mut at) {
                (ReplayStep::Begin(partition), _) => {
                    let names = partition.about.file_names();
                    let source = match self.with_sketches {
                        true => SketchSource::File(SketchFileReader::open_file(
                            self.disk, self.seal, names,
                        )),
                        false => SketchSource::Nowhere,
                    };
                    at = Some(PreparePosition {
                        next: partition.about.first,
                        partition: partition.clone(),
                        source,
                    });
                    ReplayStep::Begin(partition)
                }
                (ReplayStep::Rows(rows), Some(at)) => ReplayStep::Rows(self.make_ready(at, rows)?),
                (ReplayStep::Rows(_) | ReplayStep::End, _) => {
                    let ended = at
                        .take()
                        .map(|at| self.end_partition(&at.partition, at.source));
                    sketches = ended.transpose()?.flatten();
                    ReplayStep::End
                }
            };
            send_step(step, to)?;
        }
        Ok(sketches)
    }

    fn end_partition(
        &self,
        partition: &PartitionFiles,
        source: SketchSource,
    ) -> Result<Option<SketchFile>> {
        match source {
            SketchSource::Nowhere => Ok(None),
            SketchSource::Texts(sketches) => Ok(Some(sketches)),
            SketchSource::File(reading) => {
                let names = partition.about.file_names();
                reading.into_writer(self.disk, self.seal, names).map(Some)
            }
        }
    }

    fn make_ready(&self, at: &mut PreparePosition, rows: Vec<PartitionRow>) -> Result<ReadyRows> {
        let before = match &at.source {
            SketchSource::File(reading) => Some(reading.clone()),
            _ => None,
        };
        let (hashes, kept) = self.prepare_rows(at, &rows)?;
        let anew = |kept: &Option<KeptDocument>| kept.as_ref().is_some_and(|kept| kept.anew);
        if let Some(before) = before.filter(|_| kept.iter().any(anew)) {
            let sketches =
                before.into_writer(self.disk, self.seal, at.partition.about.file_names())?;
            at.source = SketchSource::Texts(sketches);
        }
        if let SketchSource::Texts(sketches) = &mut at.source {
            sketches.append_entries(&sketch_entries(&self.preparer, &rows, &kept))?;
        }
        let first = at.next;
        at.next = first.saturating_add(count_rows(&rows));
        let hashes = number_rows(first, &rows).zip(hashes);
        let hashes = hashes
            .filter_map(|((number, _), hash)| Some((number, hash?)))
            .collect();
        let named = self.ids.send(ReadyIds { first, hashes });
        named.map_err(|_| Error::damaged_file("rows", "their ids are not taken"))?;
        Ok(ReadyRows { rows, kept })
    }

    /// Prepares rows in parallel: the hashes of their ids, and the documents that were kept.
    fn prepare_rows(
        &self,
        at: &mut PreparePosition,
        rows: &[PartitionRow],
    ) -> Result<PreparedRows> {
        let entries: Vec<Option<SketchEntry>> = rows
            .iter()
            .map(|row| match &mut at.source {
                SketchSource::File(reading) if kept_document(row).is_some() => reading.next_entry(),
                _ => None,
            })
            .collect();
        let extractor = current_extractor(self.extractor);
        let rows = rows.par_iter().zip(entries);
        let ready = rows.map_init(AnalysisScratch::default, |scratch, (row, entry)| {
            let hash = row_document(row).map(|document| hash_id(&document.id));
            let kept = kept_document(row).map(|document| {
                let written = entry
                    .as_ref()
                    .and_then(|entry| entry.sketches_for(document.content));
                let again =
                    reprepare_text(&self.preparer, &at.partition, document, written, scratch);
                again.map(|(document, anew)| KeptDocument {
                    document_keys: extractor.extract_keys(&document),
                    document,
                    anew,
                })
            });
            Ok((hash, kept.transpose()?))
        });
        ready.collect()
    }
}

/// Hashes of the ids of rows, and prepared kept documents.
type PreparedRows = (Vec<Option<u64>>, Vec<Option<KeptDocument>>);

/// Progress of the preparing stage in a partition.
struct PreparePosition {
    partition: Arc<PartitionFiles>,
    source: SketchSource,
    /// Number of the next row.
    next: u64,
}

fn current_extractor(extractor: &Mutex<KeyExtractor>) -> KeyExtractor {
    extractor
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Returns the cache entries of the kept documents among some rows.
fn sketch_entries(
    preparer: &DocumentPreparer,
    rows: &[PartitionRow],
    prepared: &[Option<KeptDocument>],
) -> SketchEntries {
    let mut entries = SketchEntries::default();
    for (row, prepared) in rows.iter().zip(prepared) {
        if let (Some(document), Some(again)) = (kept_document(row), prepared) {
            entries.push_entry(document.content, |into| {
                preparer.encode_document(&again.document, into)
            });
        }
    }
    entries
}

impl CollectionState {
    /// Inserts all rows of the partitions, in order; returns the file of sketches of the last partition.
    pub(crate) fn replay_partitions(
        &mut self,
        disk: &dyn Disk,
        partitions: &[FileNames],
    ) -> Result<Option<SketchFile>> {
        let seal = self.seal;
        let extractor = Mutex::new(self.matcher.key_extractor());
        let ids = std::mem::take(&mut self.ids);
        let low = self
            .partition_states
            .front()
            .map(|partition_state| partition_state.first);
        std::thread::scope(|scope| {
            let (read, to_prepare) = sync_channel(READY);
            let (prepared, to_take_in) = sync_channel(READY);
            let (named, to_name) = sync_channel(READY);
            let kitchen = RowPreparer {
                disk,
                seal,
                with_sketches: self.with_sketches,
                preparer: self.matcher.document_preparer().clone(),
                extractor: &extractor,
                ids: named,
            };
            let reading = scope.spawn(move || read_partitions(disk, seal, partitions, &read));
            let preparing = scope.spawn(move || kitchen.prepare_steps(to_prepare, &prepared));
            let naming = scope.spawn(move || take_in_ids(ids, low, to_name));
            for step in to_take_in {
                match step {
                    ReplayStep::Begin(partition) => self.follow_with(partition)?,
                    ReplayStep::Rows(portion) => self.replay_rows(portion, &extractor)?,
                    ReplayStep::End => self.check_texts()?,
                }
            }
            // The stage that stopped has the reason; the stages that send to it only see that it stopped. So
            // the last stage is asked first.
            let panicked =
                |what: &str| Error::damaged_file("rows", format!("{what} them has panicked"));
            let (named, prepared, read) = (naming.join(), preparing.join(), reading.join());
            self.ids = named.map_err(|_| panicked("naming"))?;
            let sketches = prepared.unwrap_or_else(|_| Err(panicked("preparing")))?;
            read.unwrap_or_else(|_| Err(panicked("reading")))?;
            Ok(sketches)
        })
    }

    /// Checks that the file of texts of the newest partition is as long as its rows require.
    fn check_texts(&self) -> Result<()> {
        let end = self
            .partition_states
            .back()
            .map_or(0, |partition_state| partition_state.end);
        let newest = self.partitions.back();
        newest.map_or(Ok(()), |partition| partition.check_length(end))
    }

    /// Inserts prepared rows, without their ids.
    fn replay_rows(&mut self, portion: ReadyRows, extractor: &Mutex<KeyExtractor>) -> Result<()> {
        for (at, row) in portion.rows.iter().enumerate() {
            if let Some(Some(next)) = portion.kept.get(at + AHEAD) {
                self.matcher
                    .prefetch_for_insert(&next.document, &next.document_keys);
            }
            self.replay_row(row, portion.kept[at].as_ref())?;
        }
        *extractor.lock().unwrap_or_else(PoisonError::into_inner) = self.matcher.key_extractor();
        // Freeing so many small allocations takes a considerable time, so another thread does it.
        rayon::spawn(move || drop(portion));
        Ok(())
    }

    /// Adds a partition whose rows follow.
    fn follow_with(&mut self, partition: Arc<PartitionFiles>) -> Result<()> {
        let about = partition.about;
        let name = partition.rows_name();
        if !self.partition_states.is_empty() && about.first != self.next {
            let what = format!("it begins with row {}, not {}", about.first, self.next);
            return Err(Error::damaged_file(&name, what));
        }
        self.next = about.first;
        self.matcher.begin_partition(about.number, about.began)?;
        self.push_partition(about.number, about.first);
        if let (Some(partition_state), Some(compacted)) =
            (self.partition_states.back_mut(), about.compacted)
        {
            partition_state.end = compacted.base;
            partition_state.applied = compacted.applied;
            // The clock includes the times of erased documents.
            self.matcher.note_time(compacted.newest);
        }
        self.partitions.push_back(partition);
        Ok(())
    }

    /// Inserts the next row, without its id. `kept` is its prepared document, if that was kept.
    fn replay_row(&mut self, row: &PartitionRow, kept: Option<&KeptDocument>) -> Result<()> {
        let number = self.next;
        self.next = number.saturating_add(row.number_count());
        match row {
            PartitionRow::Deleted {
                number: deleted,
                seq,
                slot,
                removal,
            } => {
                // Rows of earlier versions have no time, so the oldest possible one is assumed.
                let long_ago = DeletionRecord {
                    at: Timestamp::BEGINNING,
                    bytes: 0,
                };
                self.note_deletion(*deleted, removal.unwrap_or(long_ago));
                self.moved.remove(seq);
                if let Some(slot) = slot {
                    self.matcher.remove_document(*slot);
                }
                Ok(())
            }
            PartitionRow::Erased { rows, kept } => {
                self.note_erased(number, *rows);
                (0..*kept).try_for_each(|_| self.skip_place(number))
            }
            PartitionRow::ErasedMove {
                from,
                from_slot,
                seq,
            } => {
                self.note_erased(number, 1);
                self.matcher.remove_document(*from_slot);
                self.note_moved_document(*from, 0);
                self.moved.remove(seq);
                self.skip_place(number)
            }
            PartitionRow::ErasedDuplicate { slot, .. } => {
                self.note_erased(number, 1);
                self.put_last_repeat(*slot, number);
                Ok(())
            }
            PartitionRow::Document(document) => self.replay_document(document, number, kept, 0),
            PartitionRow::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                self.matcher.remove_document(*from_slot);
                self.note_moved_document(*from, document.bytes_on_disk());
                self.moved.insert(*seq, number);
                self.replay_document(document, *seq, kept, *last)
            }
        }
    }

    fn replay_document(
        &mut self,
        document: &rows::RowDocument,
        seq: u64,
        kept: Option<&KeptDocument>,
        last: u64,
    ) -> Result<()> {
        if let Some(partition_state) = self.partition_states.back_mut() {
            partition_state.end = partition_state.end.max(document.place.end_unit());
            partition_state.count_document(document.time);
        }
        match (&document.verdict, kept) {
            (RowVerdict::Duplicate { slot, .. }, _) => {
                self.matcher.note_time(document.time);
                self.put_last_repeat(*slot, seq);
                // A kept document of an older partition is moved by the row that follows.
                let newest = self
                    .partition_states
                    .back()
                    .map(|partition_state| partition_state.number);
                if self.is_refreshing() && newest == Some(slot.partition) {
                    self.matcher.refresh_document(*slot, document.time);
                }
                Ok(())
            }
            (RowVerdict::Kept { index }, Some(kept)) => {
                let KeptDocument {
                    document: online,
                    document_keys,
                    ..
                } = kept;
                let slot =
                    self.matcher
                        .keep_with_keys(online, document_keys, seq, document.time)?;
                if slot.index != *index {
                    let what = format!("row {seq} is kept document {index}, not {}", slot.index);
                    return Err(Error::damaged_file("rows", what));
                }
                if let Some(refreshed) = document.refreshed {
                    self.matcher.refresh_document(slot, refreshed);
                }
                self.push_entry(document.place, seq, last);
                Ok(())
            }
            (RowVerdict::Kept { .. }, None) => {
                Err(Error::damaged_file("rows", "a kept text is missing"))
            }
        }
    }

    /// Ends the replay: new rows are written after the existing ones.
    pub(crate) fn end_replay(&mut self) {
        self.open = self.partition_states.back().map(|partition_state| {
            PendingRows::new(
                partition_state.number,
                self.next,
                partition_state.end,
                self.with_sketches,
            )
        });
    }

    /// Counts rows of which compaction left nothing.
    fn note_erased(&mut self, number: u64, rows: u64) {
        if let Some(partition_state) = self.partition_states.back_mut() {
            partition_state
                .gone
                .insert_all(number - partition_state.first, rows);
            partition_state.erased += rows;
        }
    }

    /// Skips a place among the kept documents, because its document no longer exists.
    fn skip_place(&mut self, number: u64) -> Result<()> {
        self.matcher.skip_place(number)?;
        if let Some(partition_state) = self.partition_states.back_mut() {
            partition_state.places.push(NOWHERE);
            partition_state.last.push(number as u32);
        }
        Ok(())
    }
}

/// Inserts the ids of rows. The oldest row is `low`, or the first one received.
fn take_in_ids(mut ids: IdTable, mut low: Option<u64>, from: Receiver<ReadyIds>) -> IdTable {
    for ReadyIds { first, hashes } in from {
        let low = *low.get_or_insert(first);
        for (at, &(number, hash)) in hashes.iter().enumerate() {
            if let Some(&(_, next)) = hashes.get(at + AHEAD) {
                ids.prefetch_id(next);
            }
            ids.insert_id(hash, number, low, |_| false);
        }
    }
    ids
}

/// Returns the document of a row.
fn row_document(row: &PartitionRow) -> Option<&rows::RowDocument> {
    match row {
        PartitionRow::Document(document) | PartitionRow::Moved { document, .. } => Some(document),
        PartitionRow::Deleted { .. }
        | PartitionRow::Erased { .. }
        | PartitionRow::ErasedMove { .. }
        | PartitionRow::ErasedDuplicate { .. } => None,
    }
}

/// Returns the document of a row, if it was kept.
fn kept_document(row: &PartitionRow) -> Option<&rows::RowDocument> {
    row_document(row).filter(|document| matches!(document.verdict, RowVerdict::Kept { .. }))
}

/// Prepares a kept document from its cached sketch, or else from its text; returns `true` in the second case.
fn reprepare_text(
    preparer: &DocumentPreparer,
    partition: &PartitionFiles,
    document: &rows::RowDocument,
    written: Option<&[u8]>,
    scratch: &mut AnalysisScratch,
) -> Result<(stream::SketchedDocument, bool)> {
    let again = written.and_then(|written| preparer.decode_document(written));
    let anew = again.is_none();
    let again = match (again, document.fingerprint) {
        (Some(again), _) => again,
        (None, Some(fingerprint)) => preparer.fingerprint(fingerprint)?,
        (None, None) => partition.visit_text(document.place.at, |text| {
            preparer.prepare_text(text, scratch)
        })?,
    };
    Ok((again, anew))
}
