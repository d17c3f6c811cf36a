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

use lookalike::online::{self, Keyed, Keyer, Preparer, Time};
use lookalike::text::Scratch;
use rayon::prelude::*;

use super::{Batch, NOWHERE, State};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{Ids, id_hash};
use crate::partition::{FileNames, Partition};
use crate::rows::{self, Removal, Row, Verdict as RowVerdict, count_rows, numbered};
use crate::sketches::{Entries, Entry, Reading, Sketches};

/// Bytes of rows in a portion.
const TOGETHER: usize = 512 << 10;

/// Portions that may wait for the next stage.
const READY: usize = 2;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const AHEAD: usize = 4;

/// Where the sketches of a partition's kept documents come from.
enum Source {
    /// The collection has no sketches.
    Nowhere,
    File(Reading),
    /// The file is damaged from here on: sketches are computed from texts and written.
    Texts(Sketches),
}

/// Prepared rows, each with its document if that was kept.
struct Portion {
    rows: Vec<Row>,
    kept: Vec<Option<Kept>>,
}

struct Kept {
    document: online::Prepared,
    keyed: Keyed,
    /// `true` if it was prepared from its text.
    anew: bool,
}

/// Row numbers and id hashes of rows with an id.
struct Named {
    /// Number of the first row.
    first: u64,
    hashes: Vec<(u64, u64)>,
}

/// An item of the pipeline.
enum Step<T> {
    Begin(Arc<Partition>),
    Rows(T),
    End,
}

type Steps<T> = SyncSender<Step<T>>;

/// Sends a step to the next stage. If that has stopped, its own error says why.
fn send<T>(step: Step<T>, to: &Steps<T>) -> Result<()> {
    let sent = to.send(step);
    sent.map_err(|_| Error::damaged("rows", "what was read is not taken"))
}

/// Sends the rows of the partitions in portions.
fn read_partitions(
    disk: &dyn Disk,
    seal: u32,
    partitions: &[FileNames],
    to: &Steps<Vec<Row>>,
) -> Result<()> {
    for &names in partitions {
        let partition = Arc::new(Partition::open(disk, seal, names)?);
        send(Step::Begin(partition.clone()), to)?;
        read_rows(&partition, to)?;
        send(Step::End, to)?;
    }
    Ok(())
}

fn read_rows(partition: &Partition, to: &Steps<Vec<Row>>) -> Result<()> {
    let mut next = partition.about.first;
    let (mut blocks, mut bytes) = (Vec::new(), 0);
    let mut decode = |blocks: &[(u64, Vec<u8>)]| {
        let decoded: Vec<Vec<Row>> = blocks
            .par_iter()
            .map(|(first, block)| partition.decode_block(*first, block))
            .collect::<Result<_>>()?;
        for ((first, _), rows) in blocks.iter().zip(&decoded) {
            partition.check_next(*first, next)?;
            next = next.saturating_add(count_rows(rows));
        }
        send(Step::Rows(decoded.into_iter().flatten().collect()), to)
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
struct Kitchen<'a> {
    disk: &'a dyn Disk,
    seal: u32,
    with_sketches: bool,
    preparer: Preparer,
    /// Source of bucket keys, as it was when rows were last inserted.
    keyer: &'a Mutex<Keyer>,
    /// Destination of ids.
    ids: SyncSender<Named>,
}

impl Kitchen<'_> {
    /// Prepares all rows and passes them on. Returns the file of sketches of the last partition, if the
    /// collection has sketches.
    fn work(
        self,
        steps: Receiver<Step<Vec<Row>>>,
        to: &Steps<Portion>,
    ) -> Result<Option<Sketches>> {
        let mut at: Option<At> = None;
        let mut sketches = None;
        for step in steps {
            let step = match (step, &mut at) {
                (Step::Begin(partition), _) => {
                    let names = partition.about.names();
                    let source = match self.with_sketches {
                        true => Source::File(Reading::open(self.disk, self.seal, names)),
                        false => Source::Nowhere,
                    };
                    at = Some(At {
                        next: partition.about.first,
                        partition: partition.clone(),
                        source,
                    });
                    Step::Begin(partition)
                }
                (Step::Rows(rows), Some(at)) => Step::Rows(self.make_ready(at, rows)?),
                (Step::Rows(_) | Step::End, _) => {
                    let ended = at.take().map(|at| self.end(&at.partition, at.source));
                    sketches = ended.transpose()?.flatten();
                    Step::End
                }
            };
            send(step, to)?;
        }
        Ok(sketches)
    }

    fn end(&self, partition: &Partition, source: Source) -> Result<Option<Sketches>> {
        match source {
            Source::Nowhere => Ok(None),
            Source::Texts(sketches) => Ok(Some(sketches)),
            Source::File(reading) => {
                let names = partition.about.names();
                reading.end(self.disk, self.seal, names).map(Some)
            }
        }
    }

    fn make_ready(&self, at: &mut At, rows: Vec<Row>) -> Result<Portion> {
        let before = match &at.source {
            Source::File(reading) => Some(reading.clone()),
            _ => None,
        };
        let (hashes, kept) = self.prepare(at, &rows)?;
        let anew = |kept: &Option<Kept>| kept.as_ref().is_some_and(|kept| kept.anew);
        if let Some(before) = before.filter(|_| kept.iter().any(anew)) {
            let sketches = before.end(self.disk, self.seal, at.partition.about.names())?;
            at.source = Source::Texts(sketches);
        }
        if let Source::Texts(sketches) = &mut at.source {
            sketches.append(&entries(&self.preparer, &rows, &kept))?;
        }
        let first = at.next;
        at.next = first.saturating_add(count_rows(&rows));
        let hashes = numbered(first, &rows).zip(hashes);
        let hashes = hashes
            .filter_map(|((number, _), hash)| Some((number, hash?)))
            .collect();
        let named = self.ids.send(Named { first, hashes });
        named.map_err(|_| Error::damaged("rows", "their ids are not taken"))?;
        Ok(Portion { rows, kept })
    }

    /// Prepares rows in parallel: the hashes of their ids, and the documents that were kept.
    fn prepare(&self, at: &mut At, rows: &[Row]) -> Result<Prepared> {
        let entries: Vec<Option<Entry>> = rows
            .iter()
            .map(|row| match &mut at.source {
                Source::File(reading) if kept(row).is_some() => reading.next(),
                _ => None,
            })
            .collect();
        let keyer = current(self.keyer);
        let rows = rows.par_iter().zip(entries);
        let ready = rows.map_init(Scratch::default, |scratch, (row, entry)| {
            let hash = document(row).map(|document| id_hash(&document.id));
            let kept = kept(row).map(|document| {
                let written = entry.as_ref().and_then(|entry| entry.of(document.content));
                let again =
                    prepare_again(&self.preparer, &at.partition, document, written, scratch);
                again.map(|(document, anew)| Kept {
                    keyed: keyer.keyed(&document),
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
type Prepared = (Vec<Option<u64>>, Vec<Option<Kept>>);

/// Progress of the preparing stage in a partition.
struct At {
    partition: Arc<Partition>,
    source: Source,
    /// Number of the next row.
    next: u64,
}

fn current(keyer: &Mutex<Keyer>) -> Keyer {
    keyer.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the cache entries of the kept documents among some rows.
fn entries(preparer: &Preparer, rows: &[Row], prepared: &[Option<Kept>]) -> Entries {
    let mut entries = Entries::default();
    for (row, prepared) in rows.iter().zip(prepared) {
        if let (Some(document), Some(again)) = (kept(row), prepared) {
            entries.push(document.content, |into| {
                preparer.write(&again.document, into)
            });
        }
    }
    entries
}

impl State {
    /// Inserts all rows of the partitions, in order; returns the file of sketches of the last partition.
    pub(crate) fn replay_partitions(
        &mut self,
        disk: &dyn Disk,
        partitions: &[FileNames],
    ) -> Result<Option<Sketches>> {
        let seal = self.seal;
        let keyer = Mutex::new(self.matcher.keyer());
        let ids = std::mem::take(&mut self.ids);
        let low = self.homes.front().map(|home| home.first);
        std::thread::scope(|scope| {
            let (read, to_prepare) = sync_channel(READY);
            let (prepared, to_take_in) = sync_channel(READY);
            let (named, to_name) = sync_channel(READY);
            let kitchen = Kitchen {
                disk,
                seal,
                with_sketches: self.with_sketches,
                preparer: self.matcher.preparer().clone(),
                keyer: &keyer,
                ids: named,
            };
            let reading = scope.spawn(move || read_partitions(disk, seal, partitions, &read));
            let preparing = scope.spawn(move || kitchen.work(to_prepare, &prepared));
            let naming = scope.spawn(move || take_in_ids(ids, low, to_name));
            for step in to_take_in {
                match step {
                    Step::Begin(partition) => self.follow_with(partition)?,
                    Step::Rows(portion) => self.take_in(portion, &keyer)?,
                    Step::End => self.check_texts()?,
                }
            }
            // The stage that stopped has the reason; the stages that send to it only see that it stopped. So
            // the last stage is asked first.
            let panicked = |what: &str| Error::damaged("rows", format!("{what} them has panicked"));
            let (named, prepared, read) = (naming.join(), preparing.join(), reading.join());
            self.ids = named.map_err(|_| panicked("naming"))?;
            let sketches = prepared.unwrap_or_else(|_| Err(panicked("preparing")))?;
            read.unwrap_or_else(|_| Err(panicked("reading")))?;
            Ok(sketches)
        })
    }

    /// Checks that the file of texts of the newest partition is as long as its rows require.
    fn check_texts(&self) -> Result<()> {
        let end = self.homes.back().map_or(0, |home| home.end);
        let newest = self.partitions.back();
        newest.map_or(Ok(()), |partition| partition.check_length(end))
    }

    /// Inserts prepared rows, without their ids.
    fn take_in(&mut self, portion: Portion, keyer: &Mutex<Keyer>) -> Result<()> {
        for (at, row) in portion.rows.iter().enumerate() {
            if let Some(Some(next)) = portion.kept.get(at + AHEAD) {
                self.matcher.prefetch(&next.document, &next.keyed);
            }
            self.replay(row, portion.kept[at].as_ref())?;
        }
        *keyer.lock().unwrap_or_else(PoisonError::into_inner) = self.matcher.keyer();
        // Freeing so many small allocations takes a considerable time, so another thread does it.
        rayon::spawn(move || drop(portion));
        Ok(())
    }

    /// Adds a partition whose rows follow.
    fn follow_with(&mut self, partition: Arc<Partition>) -> Result<()> {
        let about = partition.about;
        let name = partition.name();
        if !self.homes.is_empty() && about.first != self.next {
            let what = format!("it begins with row {}, not {}", about.first, self.next);
            return Err(Error::damaged(&name, what));
        }
        self.next = about.first;
        self.matcher.begin_section(about.number, about.began)?;
        self.push_home(about.number, about.first);
        if let (Some(home), Some(compacted)) = (self.homes.back_mut(), about.compacted) {
            home.end = compacted.base;
            home.applied = compacted.applied;
            // The clock includes the times of erased documents.
            self.matcher.note(compacted.newest);
        }
        self.partitions.push_back(partition);
        Ok(())
    }

    /// Inserts the next row, without its id. `kept` is its prepared document, if that was kept.
    fn replay(&mut self, row: &Row, kept: Option<&Kept>) -> Result<()> {
        let number = self.next;
        self.next = number.saturating_add(row.count());
        match row {
            Row::Deleted {
                number: deleted,
                seq,
                slot,
                removal,
            } => {
                // Rows of earlier versions have no time, so the oldest possible one is assumed.
                let long_ago = Removal {
                    at: Time::BEGINNING,
                    bytes: 0,
                };
                self.note_deletion(*deleted, removal.unwrap_or(long_ago));
                self.moved.remove(seq);
                if let Some(slot) = slot {
                    self.matcher.remove(*slot);
                }
                Ok(())
            }
            Row::Erased { rows, kept } => {
                self.note_erased(number, *rows);
                (0..*kept).try_for_each(|_| self.skip_place(number))
            }
            Row::ErasedMove {
                from,
                from_slot,
                seq,
            } => {
                self.note_erased(number, 1);
                self.matcher.remove(*from_slot);
                self.note_move(*from, 0);
                self.moved.remove(seq);
                self.skip_place(number)
            }
            Row::ErasedDuplicate { slot, .. } => {
                self.note_erased(number, 1);
                self.put_last(*slot, number);
                Ok(())
            }
            Row::Document(document) => self.replay_document(document, number, kept, 0),
            Row::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                self.matcher.remove(*from_slot);
                self.note_move(*from, document.bytes_on_disk());
                self.moved.insert(*seq, number);
                self.replay_document(document, *seq, kept, *last)
            }
        }
    }

    fn replay_document(
        &mut self,
        document: &rows::Document,
        seq: u64,
        kept: Option<&Kept>,
        last: u64,
    ) -> Result<()> {
        if let Some(home) = self.homes.back_mut() {
            home.end = home.end.max(document.place.end());
            home.count_document(document.time);
        }
        match (&document.verdict, kept) {
            (RowVerdict::Duplicate { slot, .. }, _) => {
                self.matcher.note(document.time);
                self.put_last(*slot, seq);
                // A kept document of an older partition is moved by the row that follows.
                let newest = self.homes.back().map(|home| home.number);
                if self.refreshes() && newest == Some(slot.section) {
                    self.matcher.refresh(*slot, document.time);
                }
                Ok(())
            }
            (RowVerdict::Kept { index }, Some(kept)) => {
                let Kept {
                    document: online,
                    keyed,
                    ..
                } = kept;
                let slot = self.matcher.keep_with(online, keyed, seq, document.time)?;
                if slot.index != *index {
                    let what = format!("row {seq} is kept document {index}, not {}", slot.index);
                    return Err(Error::damaged("rows", what));
                }
                if let Some(refreshed) = document.refreshed {
                    self.matcher.refresh(slot, refreshed);
                }
                self.push_entry(document.place, seq, last);
                Ok(())
            }
            (RowVerdict::Kept { .. }, None) => {
                Err(Error::damaged("rows", "a kept text is missing"))
            }
        }
    }

    /// Ends the replay: new rows are written after the existing ones.
    pub(crate) fn end_replay(&mut self) {
        self.open = self
            .homes
            .back()
            .map(|home| Batch::new(home.number, self.next, home.end, self.with_sketches));
    }

    /// Counts rows of which compaction left nothing.
    fn note_erased(&mut self, number: u64, rows: u64) {
        if let Some(home) = self.homes.back_mut() {
            home.gone.insert_all(number - home.first, rows);
            home.erased += rows;
        }
    }

    /// Skips a place among the kept documents, because its document no longer exists.
    fn skip_place(&mut self, number: u64) -> Result<()> {
        self.matcher.skip_place(number)?;
        if let Some(home) = self.homes.back_mut() {
            home.places.push(NOWHERE);
            home.last.push(number as u32);
        }
        Ok(())
    }
}

/// Inserts the ids of rows. The oldest row is `low`, or the first one received.
fn take_in_ids(mut ids: Ids, mut low: Option<u64>, from: Receiver<Named>) -> Ids {
    for Named { first, hashes } in from {
        let low = *low.get_or_insert(first);
        for (at, &(number, hash)) in hashes.iter().enumerate() {
            if let Some(&(_, next)) = hashes.get(at + AHEAD) {
                ids.prefetch(next);
            }
            ids.insert(hash, number, low, |_| false);
        }
    }
    ids
}

/// Returns the document of a row.
fn document(row: &Row) -> Option<&rows::Document> {
    match row {
        Row::Document(document) | Row::Moved { document, .. } => Some(document),
        Row::Deleted { .. }
        | Row::Erased { .. }
        | Row::ErasedMove { .. }
        | Row::ErasedDuplicate { .. } => None,
    }
}

/// Returns the document of a row, if it was kept.
fn kept(row: &Row) -> Option<&rows::Document> {
    document(row).filter(|document| matches!(document.verdict, RowVerdict::Kept { .. }))
}

/// Prepares a kept document from its cached sketch, or else from its text; returns `true` in the second case.
fn prepare_again(
    preparer: &Preparer,
    partition: &Partition,
    document: &rows::Document,
    written: Option<&[u8]>,
    scratch: &mut Scratch,
) -> Result<(online::Prepared, bool)> {
    let again = written.and_then(|written| preparer.read(written));
    let anew = again.is_none();
    let again = match (again, document.fingerprint) {
        (Some(again), _) => again,
        (None, Some(fingerprint)) => preparer.fingerprint(fingerprint)?,
        (None, None) => partition.text(document.place.at, |text| preparer.text(text, scratch))?,
    };
    Ok((again, anew))
}
