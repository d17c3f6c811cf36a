//! Making the state again from the rows: nothing is decided anew.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use lookalike::online::{self, Keyed, Matcher};
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
const TOGETHER: usize = 2 << 20;

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

/// A row that is ready to be taken in.
struct Ready {
    /// The hash of the id of its document.
    id_hash: Option<u64>,
    kept: Option<Kept>,
}

struct Kept {
    document: online::Prepared,
    keyed: Keyed,
    /// Whether it was made of the text.
    anew: bool,
}

impl State {
    /// Takes in the next partition with all its rows; returns the file of its sketches.
    pub(crate) fn replay_partition(
        &mut self,
        disk: &dyn Disk,
        partition: &Arc<Partition>,
    ) -> Result<Option<Sketches>> {
        self.follow_with(partition.clone())?;
        let (seal, number) = (self.seal, partition.about.number);
        let mut source = if self.with_sketches {
            Source::File(Reading::open(disk, seal, number))
        } else {
            Source::Nowhere
        };
        std::thread::scope(|scope| {
            let (sender, portions) = sync_channel(1);
            let first = self.next;
            let reading = scope.spawn(move || read_rows(partition, first, &sender));
            for rows in portions {
                self.replay_rows(disk, partition, rows, &mut source)?;
            }
            let panicked = |_| Err(Error::damaged(&partition.name(), "reading it has panicked"));
            reading.join().unwrap_or_else(panicked)
        })?;
        self.check_texts(partition)?;
        match source {
            Source::Nowhere => Ok(None),
            Source::File(reading) => reading.end(disk, seal, number).map(Some),
            Source::Texts(sketches) => Ok(Some(sketches)),
        }
    }

    /// Checks that the file of texts is as long as rows say.
    fn check_texts(&self, partition: &Partition) -> Result<()> {
        let end = self.homes.back().map_or(0, |home| home.end * UNIT);
        partition.check_length(end)
    }

    fn replay_rows(
        &mut self,
        disk: &dyn Disk,
        partition: &Partition,
        rows: Vec<Row>,
        source: &mut Source,
    ) -> Result<()> {
        let before = match source {
            Source::File(reading) => Some(reading.clone()),
            _ => None,
        };
        let ready = self.make_ready(partition, &rows, source)?;
        if let Some(before) = before.filter(|_| ready.iter().any(Ready::is_anew)) {
            let (seal, number) = (self.seal, partition.about.number);
            *source = Source::Texts(before.end(disk, seal, number)?);
        }
        if let Source::Texts(sketches) = source {
            sketches.append(&self.entries(&rows, &ready))?;
        }
        self.take_in(&rows, &ready)?;
        // Giving back so many small pieces of memory takes as long as much of the rest.
        rayon::spawn(move || drop((rows, ready)));
        Ok(())
    }

    /// Makes rows ready side by side.
    fn make_ready(
        &self,
        partition: &Partition,
        rows: &[Row],
        source: &mut Source,
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
                let content = document.content;
                let written = entry.as_ref().and_then(|entry| entry.of(content));
                prepare_again(&self.matcher, partition, document, written, scratch)
            });
            Ok(Ready {
                id_hash: document(row).map(id_hash),
                kept: kept.transpose()?,
            })
        })
        .collect()
    }

    /// The entries of all kept documents among rows.
    fn entries(&self, rows: &[Row], ready: &[Ready]) -> Entries {
        let mut entries = Entries::default();
        for (row, ready) in rows.iter().zip(ready) {
            if let (Some(document), Some(kept)) = (kept(row), &ready.kept) {
                let preparer = self.matcher.preparer();
                entries.push(document.content, |into| {
                    preparer.write(&kept.document, into)
                });
            }
        }
        entries
    }

    /// Takes in rows that are ready: ids on one thread, all else on another.
    fn take_in(&mut self, rows: &[Row], ready: &[Ready]) -> Result<()> {
        let (first, low) = (self.next, self.low());
        let mut ids = std::mem::take(&mut self.ids);
        let (taken, ()) = rayon::join(
            || {
                rows.iter()
                    .zip(ready)
                    .enumerate()
                    .try_for_each(|(at, (row, it))| {
                        if let Some(next) = ready.get(at + AHEAD).and_then(|it| it.kept.as_ref()) {
                            self.matcher.prefetch(&next.keyed);
                        }
                        self.replay(row, it.kept.as_ref())
                    })
            },
            || {
                for (number, ready) in (first..).zip(ready) {
                    if let Some(id_hash) = ready.id_hash {
                        ids.insert(id_hash, number, low, |_| false);
                    }
                }
            },
        );
        self.ids = ids;
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
    fn replay(&mut self, row: &Row, kept: Option<&Kept>) -> Result<()> {
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
        kept: Option<&Kept>,
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

/// Sends the rows of a partition, of which the first has a number, in portions.
fn read_rows(partition: &Partition, first: u64, to: &SyncSender<Vec<Row>>) -> Result<()> {
    let mut next = first;
    let (mut blocks, mut bytes) = (Vec::new(), 0);
    let mut send = |blocks: &[(u64, Vec<u8>)]| {
        let decoded: Vec<Vec<Row>> = blocks
            .par_iter()
            .map(|(first, block)| partition.decode_block(*first, block))
            .collect::<Result<_>>()?;
        for ((first, _), rows) in blocks.iter().zip(&decoded) {
            partition.check_next(*first, next)?;
            next += rows.len() as u64;
        }
        // Nobody takes them any more if a portion before has failed, and that says why.
        to.send(decoded.into_iter().flatten().collect())
            .map_err(|_| Error::damaged(&partition.name(), "its rows are not taken"))
    };
    partition.for_each_raw_block(|first, block| {
        bytes += block.len();
        blocks.push((first, block));
        if bytes >= TOGETHER {
            bytes = 0;
            return send(&std::mem::take(&mut blocks));
        }
        Ok(())
    })?;
    send(&blocks)
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
    matcher: &Matcher,
    partition: &Partition,
    document: &rows::Document,
    written: Option<&[u8]>,
    scratch: &mut Scratch,
) -> Result<Kept> {
    let preparer = matcher.preparer();
    let again = written.and_then(|written| preparer.read(written));
    let anew = again.is_none();
    let again = match (again, document.fingerprint) {
        (Some(again), _) => again,
        (None, Some(fingerprint)) => preparer.fingerprint(fingerprint)?,
        (None, None) => partition.text(document.place.at, |text| preparer.text(text, scratch))?,
    };
    Ok(Kept {
        keyed: matcher.keyed(&again),
        document: again,
        anew,
    })
}
