//! Rebuilds the state of a collection from its rows. No decision is made again.
//!
//! Rows pass through three stages in portions, one partition after another. All stages run at the same time:
//!
//! ```text
//! read and decode (all cores) ──> prepare (all cores) ──> matcher (one thread)
//!                                         └─────────────> ids (one thread)
//! ```
//!
//! A stage that fails stops; the others notice that nobody takes or sends rows any more, and stop as well.

mod apply;
mod prepare;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use lookalike::stream::{DocumentKeys, KeyExtractor, SketchedDocument};
use rayon::prelude::*;

use self::prepare::RowPreparer;
use super::CollectionState;
use super::id_table::IdTable;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::file_names::FileNames;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{PartitionRow, count_rows};
use crate::files::sketches::SketchFile;

/// Bytes of rows in a portion.
const PORTION_BYTES: usize = 512 << 10;

/// Portions that may wait for the next stage.
const WAITING_PORTIONS: usize = 2;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const PREFETCH_DISTANCE: usize = 4;

/// Prepared rows, each with its document if that was kept.
struct ReadyRows {
    rows: Vec<PartitionRow>,
    kept: Vec<Option<KeptDocument>>,
}

struct KeptDocument {
    document: SketchedDocument,
    document_keys: DocumentKeys,
    /// `true` if it was prepared from its text, because its cached sketch is damaged or missing.
    is_from_text: bool,
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
        if bytes >= PORTION_BYTES {
            bytes = 0;
            return decode(&std::mem::take(&mut blocks));
        }
        Ok(())
    })?;
    decode(&blocks)
}

impl CollectionState {
    /// Inserts all rows of the partitions, in order; returns the file of sketches of the last partition.
    pub(crate) fn replay_partitions(
        &mut self,
        disk: &dyn Disk,
        partitions: &[FileNames],
    ) -> Result<Option<SketchFile>> {
        let seal = self.rows.seal();
        let extractor = Mutex::new(self.matcher.key_extractor());
        let ids = self.index.take_ids();
        std::thread::scope(|scope| {
            let (read, to_prepare) = sync_channel(WAITING_PORTIONS);
            let (prepared, to_apply) = sync_channel(WAITING_PORTIONS);
            let (named, to_index) = sync_channel(WAITING_PORTIONS);
            let preparer = RowPreparer {
                disk,
                seal,
                has_sketches: self.has_sketches(),
                preparer: self.matcher.document_preparer().clone(),
                extractor: &extractor,
                ids: named,
            };
            let reading = scope.spawn(move || read_partitions(disk, seal, partitions, &read));
            let preparing = scope.spawn(move || preparer.prepare_steps(to_prepare, &prepared));
            let indexing = scope.spawn(move || index_ids(ids, to_index));
            self.apply_steps(to_apply, &extractor)?;
            // The stage that stopped has the reason; the stages that send to it only see that it stopped. So
            // the last stage is asked first.
            let panicked =
                |what: &str| Error::damaged_file("rows", format!("{what} them has panicked"));
            let (indexed, prepared, read) = (indexing.join(), preparing.join(), reading.join());
            self.index.put_ids(indexed.map_err(|_| panicked("naming"))?);
            let sketches = prepared.unwrap_or_else(|_| Err(panicked("preparing")))?;
            read.unwrap_or_else(|_| Err(panicked("reading")))?;
            Ok(sketches)
        })
    }

    fn apply_steps(
        &mut self,
        steps: Receiver<ReplayStep<ReadyRows>>,
        extractor: &Mutex<KeyExtractor>,
    ) -> Result<()> {
        for step in steps {
            match step {
                ReplayStep::Begin(partition) => self.follow_with(partition)?,
                ReplayStep::Rows(portion) => self.replay_rows(portion, extractor)?,
                ReplayStep::End => self.check_texts()?,
            }
        }
        Ok(())
    }
}

/// Inserts the ids of rows. The first row that is received is the oldest.
fn index_ids(mut ids: IdTable, from: Receiver<ReadyIds>) -> IdTable {
    let mut oldest = None;
    for ReadyIds { first, hashes } in from {
        let oldest = *oldest.get_or_insert(first);
        for (at, &(number, hash)) in hashes.iter().enumerate() {
            if let Some(&(_, next)) = hashes.get(at + PREFETCH_DISTANCE) {
                ids.prefetch_id(next);
            }
            ids.insert_id(hash, number, oldest, |_| false);
        }
    }
    ids
}
