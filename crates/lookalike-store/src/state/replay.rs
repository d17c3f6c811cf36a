//! Making the state again from the rows: nothing is decided anew.
//!
//! Rows are read and decoded, those before them are made ready, and those before these are taken in: portion
//! by portion and one partition after another, each on all cores. Only what the matcher takes in, and ids
//! beside it, are for one thread each.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use lookalike::online::{self, Keyed, Preparer};
use lookalike::text::Scratch;
use rayon::prelude::*;

use super::{Batch, State};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::id_hash;
use crate::partition::Partition;
use crate::rows::{self, Row, UNIT, Verdict as RowVerdict};
use crate::sketches::{Entries, Entry, Reading, Sketches};

/// Bytes of rows that are read before they are taken in together.
const TOGETHER: usize = 256 << 10;

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

/// Rows that are ready to be taken in.
struct Portion {
    rows: Vec<Row>,
    ready: Vec<Ready>,
}

struct Ready {
    /// The hash of the id of its document.
    id_hash: Option<u64>,
    kept: Option<Kept>,
}

struct Kept {
    document: online::Prepared,
    /// Whether it was made of the text.
    anew: bool,
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

/// Sends the rows of the partitions with these numbers, in portions.
fn read_partitions(
    disk: &dyn Disk,
    seal: u32,
    numbers: &[u64],
    to: &Steps<Vec<Row>>,
) -> Result<()> {
    for &number in numbers {
        let partition = Arc::new(Partition::open(disk, seal, number)?);
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
            next += rows.len() as u64;
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
}

impl Kitchen<'_> {
    /// Hands on what comes, with its rows ready; returns the file of sketches of the last partition, if
    /// there is to be one.
    fn work(
        &self,
        steps: Receiver<Step<Vec<Row>>>,
        to: &Steps<Portion>,
    ) -> Result<Option<Sketches>> {
        let mut at: Option<(Arc<Partition>, Source)> = None;
        let mut sketches = None;
        for step in steps {
            let step = match (step, &mut at) {
                (Step::Begin(partition), _) => {
                    let number = partition.about.number;
                    let source = match self.with_sketches {
                        true => Source::File(Reading::open(self.disk, self.seal, number)),
                        false => Source::Nowhere,
                    };
                    at = Some((partition.clone(), source));
                    Step::Begin(partition)
                }
                (Step::Rows(rows), Some((partition, source))) => {
                    let ready = self.make_ready(partition, source, &rows)?;
                    Step::Rows(Portion { rows, ready })
                }
                (Step::Rows(_) | Step::End, _) => {
                    let ended = at
                        .take()
                        .map(|(partition, source)| self.end(&partition, source));
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
                let number = partition.about.number;
                reading.end(self.disk, self.seal, number).map(Some)
            }
        }
    }

    fn make_ready(
        &self,
        partition: &Partition,
        source: &mut Source,
        rows: &[Row],
    ) -> Result<Vec<Ready>> {
        let before = match source {
            Source::File(reading) => Some(reading.clone()),
            _ => None,
        };
        let ready = self.prepare(partition, source, rows)?;
        if let Some(before) = before.filter(|_| ready.iter().any(Ready::is_anew)) {
            let sketches = before.end(self.disk, self.seal, partition.about.number)?;
            *source = Source::Texts(sketches);
        }
        if let Source::Texts(sketches) = source {
            sketches.append(&entries(&self.preparer, rows, &ready))?;
        }
        Ok(ready)
    }

    /// Prepares the kept documents among rows, side by side.
    fn prepare(
        &self,
        partition: &Partition,
        source: &mut Source,
        rows: &[Row],
    ) -> Result<Vec<Ready>> {
        let entries: Vec<Option<Entry>> = rows
            .iter()
            .map(|row| match source {
                Source::File(reading) if kept(row).is_some() => reading.next(),
                _ => None,
            })
            .collect();
        let rows = rows.par_iter().zip(entries);
        rows.map_init(Scratch::default, |scratch, (row, entry)| {
            let id_hash = |document: &rows::Document| id_hash(&document.id);
            let kept = kept(row).map(|document| {
                let written = entry.as_ref().and_then(|entry| entry.of(document.content));
                prepare_again(&self.preparer, partition, document, written, scratch)
            });
            Ok(Ready {
                id_hash: document(row).map(id_hash),
                kept: kept.transpose()?,
            })
        })
        .collect()
    }
}

/// The entries of all kept documents among rows.
fn entries(preparer: &Preparer, rows: &[Row], ready: &[Ready]) -> Entries {
    let mut entries = Entries::default();
    for (row, ready) in rows.iter().zip(ready) {
        if let (Some(document), Some(again)) = (kept(row), &ready.kept) {
            entries.push(document.content, |into| {
                preparer.write(&again.document, into)
            });
        }
    }
    entries
}

impl State {
    /// Takes in partitions with all their rows, in the order of these numbers; returns the file of sketches
    /// of the last.
    pub(crate) fn replay_partitions(
        &mut self,
        disk: &dyn Disk,
        numbers: &[u64],
    ) -> Result<Option<Sketches>> {
        let kitchen = Kitchen {
            disk,
            seal: self.seal,
            with_sketches: self.with_sketches,
            preparer: self.matcher.preparer().clone(),
        };
        let seal = self.seal;
        std::thread::scope(|scope| {
            let (read, to_prepare) = sync_channel(READY);
            let (prepared, to_take_in) = sync_channel(READY);
            let reading = scope.spawn(move || read_partitions(disk, seal, numbers, &read));
            let preparing = scope.spawn(move || kitchen.work(to_prepare, &prepared));
            for step in to_take_in {
                match step {
                    Step::Begin(partition) => self.follow_with(partition)?,
                    Step::Rows(portion) => self.take_in(portion)?,
                    Step::End => self.check_texts()?,
                }
            }
            // What failed first says why.
            let panicked = |_| Err(Error::damaged("rows", "reading them has panicked"));
            let prepared = preparing.join();
            reading.join().unwrap_or_else(panicked)?;
            let panicked = |_| Err(Error::damaged("rows", "preparing them has panicked"));
            prepared.unwrap_or_else(panicked)
        })
    }

    /// Checks that the file of texts of the newest partition is as long as rows say.
    fn check_texts(&self) -> Result<()> {
        let end = self.homes.back().map_or(0, |home| home.end * UNIT);
        let newest = self.partitions.back();
        newest.map_or(Ok(()), |partition| partition.check_length(end))
    }

    /// Takes in rows that are ready: ids on one thread, all else on another.
    fn take_in(&mut self, portion: Portion) -> Result<()> {
        let Portion { rows, ready } = portion;
        let matcher = &self.matcher;
        let keyed = |ready: &Ready| Some(matcher.keyed(&ready.kept.as_ref()?.document));
        let keyed: Vec<Option<Keyed>> = ready.par_iter().map(keyed).collect();
        let (first, low) = (self.next, self.low());
        let mut ids = std::mem::take(&mut self.ids);
        // In place: it is what takes longest, and must not wait for what the pool does meanwhile.
        let taken = rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                for (number, at) in (first..).zip(0..ready.len()) {
                    if let Some(next) = ready.get(at + AHEAD).and_then(|it| it.id_hash) {
                        ids.prefetch(next);
                    }
                    if let Some(id_hash) = ready[at].id_hash {
                        ids.insert(id_hash, number, low, |_| false);
                    }
                }
            });
            for (at, row) in rows.iter().enumerate() {
                if let Some(Some(next)) = keyed.get(at + AHEAD) {
                    self.matcher.prefetch(next);
                }
                let kept = ready[at].kept.as_ref().map(|kept| &kept.document);
                self.replay(row, kept.zip(keyed[at].as_ref()))?;
            }
            Ok(())
        });
        self.ids = ids;
        // Giving back so many small pieces of memory takes as long as much of the rest.
        rayon::spawn(move || drop((rows, ready, keyed)));
        taken
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
        self.partitions.push_back(partition);
        Ok(())
    }

    /// Takes in the next row, but for the id; `kept` is the document again if it is one that was kept.
    fn replay(&mut self, row: &Row, kept: Option<(&online::Prepared, &Keyed)>) -> Result<()> {
        let number = self.next;
        self.next += 1;
        match row {
            Row::Deleted { number, seq, slot } => {
                self.gone.insert(*number);
                self.moved.remove(seq);
                if let Some(slot) = slot {
                    self.matcher.remove(*slot);
                }
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
                self.gone.insert(*from);
                self.moved.insert(*seq, number);
                self.replay_document(document, *seq, kept, *last)
            }
        }
    }

    fn replay_document(
        &mut self,
        document: &rows::Document,
        seq: u64,
        kept: Option<(&online::Prepared, &Keyed)>,
        last: u64,
    ) -> Result<()> {
        if let Some(home) = self.homes.back_mut() {
            home.end = home.end.max(document.place.end() / UNIT);
        }
        match (&document.verdict, kept) {
            (RowVerdict::Duplicate { slot, .. }, _) => {
                self.matcher.note(document.time);
                self.set_last(*slot, seq);
                // One of an older partition is moved by the row that follows.
                let newest = self.homes.back().map(|home| home.number);
                if self.refreshes() && newest == Some(slot.section) {
                    self.matcher.refresh(*slot, document.time);
                }
                Ok(())
            }
            (RowVerdict::Kept { index }, Some((online, keyed))) => {
                let slot = self.matcher.keep_with(online, keyed, seq, document.time)?;
                if slot.index != *index {
                    let what = format!("row {seq} is kept document {index}, not {}", slot.index);
                    return Err(Error::damaged("rows", what));
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
        let low = self.low();
        self.gone.retain(|&number| number >= low);
        self.open = self.homes.back().map(|home| {
            let texts_at = home.end * UNIT;
            Batch::new(home.number, self.next, texts_at, self.with_sketches)
        });
    }
}

impl Ready {
    fn is_anew(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.anew)
    }
}

/// The document of a row.
fn document(row: &Row) -> Option<&rows::Document> {
    match row {
        Row::Document(document) | Row::Moved { document, .. } => Some(document),
        Row::Deleted { .. } => None,
    }
}

/// The document of a row if it was kept.
fn kept(row: &Row) -> Option<&rows::Document> {
    document(row).filter(|document| matches!(document.verdict, RowVerdict::Kept { .. }))
}

/// A kept document, as it was prepared: as it was written, or made of the text.
fn prepare_again(
    preparer: &Preparer,
    partition: &Partition,
    document: &rows::Document,
    written: Option<&[u8]>,
    scratch: &mut Scratch,
) -> Result<Kept> {
    let again = written.and_then(|written| preparer.read(written));
    let anew = again.is_none();
    let again = match (again, document.fingerprint) {
        (Some(again), _) => again,
        (None, Some(fingerprint)) => preparer.fingerprint(fingerprint)?,
        (None, None) => partition.text(document.place.at, |text| preparer.text(text, scratch))?,
    };
    Ok(Kept {
        document: again,
        anew,
    })
}
