//! Making the state again from the rows: nothing is decided anew.
//!
//! Rows are read and decoded, those before them are made ready, and those before these are taken in: portion
//! by portion and one partition after another. Decoding and making ready are on all cores. The matcher takes
//! in on one thread, ids on another, and neither waits for the other.

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

/// Bytes of rows that are read before they are taken in together.
const TOGETHER: usize = 512 << 10;

/// Portions that wait for the next stage.
const READY: usize = 2;

/// Documents between asking for the memory of one and adding it.
const AHEAD: usize = 4;

/// Where sketches of the kept documents of a partition come from.
enum Source {
    /// There are none in this collection.
    Nowhere,
    File(Reading),
    /// The file is not right from here on, so they are made of texts and written.
    Texts(Sketches),
}

/// Rows that are ready to be taken in, each with its document if that was kept.
struct Portion {
    rows: Vec<Row>,
    kept: Vec<Option<Kept>>,
}

struct Kept {
    document: online::Prepared,
    keyed: Keyed,
    /// Whether it was made of the text.
    anew: bool,
}

/// Rows whose ids are ready to be taken in: the numbers and the hashes of those that have one.
struct Named {
    /// The number of the first row.
    first: u64,
    hashes: Vec<(u64, u64)>,
}

/// What is to be done next.
enum Step<T> {
    Begin(Arc<Partition>),
    Rows(T),
    End,
}

type Steps<T> = SyncSender<Step<T>>;

/// Nobody takes anything any more if something before has failed, and that says why.
fn send<T>(step: Step<T>, to: &Steps<T>) -> Result<()> {
    let sent = to.send(step);
    sent.map_err(|_| Error::damaged("rows", "what was read is not taken"))
}

/// Sends the rows of partitions, in portions.
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

/// Makes rows ready.
struct Kitchen<'a> {
    disk: &'a dyn Disk,
    seal: u32,
    with_sketches: bool,
    preparer: Preparer,
    /// As it was when rows were last taken in.
    keyer: &'a Mutex<Keyer>,
    /// Takes in ids.
    ids: SyncSender<Named>,
}

impl Kitchen<'_> {
    /// Hands on what comes, with its rows ready; returns the file of sketches of the last partition, if
    /// there is to be one.
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

    /// Prepares rows side by side: the hashes of their ids, and the documents that were kept.
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

/// The hashes of the ids of rows, and documents that were kept.
type Prepared = (Vec<Option<u64>>, Vec<Option<Kept>>);

/// How far rows were made ready.
struct At {
    partition: Arc<Partition>,
    source: Source,
    /// The number of the next row.
    next: u64,
}

fn current(keyer: &Mutex<Keyer>) -> Keyer {
    keyer.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The entries of all kept documents among rows.
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
    /// Takes in partitions with all their rows, in their order; returns the file of sketches of the last.
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
            // The one that takes says why: who sends to it finds only that nothing is taken any more.
            let panicked = |what: &str| Error::damaged("rows", format!("{what} them has panicked"));
            let (named, prepared, read) = (naming.join(), preparing.join(), reading.join());
            self.ids = named.map_err(|_| panicked("naming"))?;
            let sketches = prepared.unwrap_or_else(|_| Err(panicked("preparing")))?;
            read.unwrap_or_else(|_| Err(panicked("reading")))?;
            Ok(sketches)
        })
    }

    /// Checks that the file of texts of the newest partition is as long as rows say.
    fn check_texts(&self) -> Result<()> {
        let end = self.homes.back().map_or(0, |home| home.end);
        let newest = self.partitions.back();
        newest.map_or(Ok(()), |partition| partition.check_length(end))
    }

    /// Takes in rows that are ready, but for their ids.
    fn take_in(&mut self, portion: Portion, keyer: &Mutex<Keyer>) -> Result<()> {
        for (at, row) in portion.rows.iter().enumerate() {
            if let Some(Some(next)) = portion.kept.get(at + AHEAD) {
                self.matcher.prefetch(&next.document, &next.keyed);
            }
            self.replay(row, portion.kept[at].as_ref())?;
        }
        *keyer.lock().unwrap_or_else(PoisonError::into_inner) = self.matcher.keyer();
        // Giving back so many small pieces of memory takes as long as much of the rest.
        rayon::spawn(move || drop(portion));
        Ok(())
    }

    /// Takes in a partition whose rows follow.
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
            // Times of documents that were erased count for the clock.
            self.matcher.note(compacted.newest);
        }
        self.partitions.push_back(partition);
        Ok(())
    }

    /// Takes in the next row, but for the id; `kept` is the document again if it is one that was kept.
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
                // Rows of older versions do not say when: it was long ago.
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
                // One of an older partition is moved by the row that follows.
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

    /// All rows are there: what comes is written behind them.
    pub(crate) fn end_replay(&mut self) {
        self.open = self
            .homes
            .back()
            .map(|home| Batch::new(home.number, self.next, home.end, self.with_sketches));
    }

    /// Takes note of rows of which compaction left nothing.
    fn note_erased(&mut self, number: u64, rows: u64) {
        if let Some(home) = self.homes.back_mut() {
            home.gone.insert_all(number - home.first, rows);
            home.erased += rows;
        }
    }

    /// Leaves a place among the kept documents to one that is not there any more.
    fn skip_place(&mut self, number: u64) -> Result<()> {
        self.matcher.skip_place(number)?;
        if let Some(home) = self.homes.back_mut() {
            home.places.push(NOWHERE);
            home.last.push(number as u32);
        }
        Ok(())
    }
}

/// Takes in the ids of rows. All rows are at or behind `low`, or the first one that comes.
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

/// The document of a row.
fn document(row: &Row) -> Option<&rows::Document> {
    match row {
        Row::Document(document) | Row::Moved { document, .. } => Some(document),
        Row::Deleted { .. }
        | Row::Erased { .. }
        | Row::ErasedMove { .. }
        | Row::ErasedDuplicate { .. } => None,
    }
}

/// The document of a row if it was kept.
fn kept(row: &Row) -> Option<&rows::Document> {
    document(row).filter(|document| matches!(document.verdict, RowVerdict::Kept { .. }))
}

/// A kept document, as it was prepared: as it was written, or made of the text, and whether it was the
/// latter.
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
