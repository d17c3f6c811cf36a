//! Making the state again from the rows: nothing is decided anew.

use std::sync::Arc;

use lookalike::online::{self, Preparer};
use lookalike::text::Scratch;
use rayon::prelude::*;

use super::{Batch, State};
use crate::error::{Error, Result};
use crate::partition::Partition;
use crate::rows::{self, Row, Rows, UNIT, Verdict as RowVerdict};

/// Rows whose documents are prepared together.
const TOGETHER: usize = 8192;

impl State {
    /// Takes in the next partition with all its rows.
    pub(crate) fn replay_partition(&mut self, partition: &Arc<Partition>) -> Result<()> {
        self.follow_with(partition.clone())?;
        let mut rows = Vec::new();
        partition.for_each_block(|block| {
            rows.append(&mut block?);
            if rows.len() >= TOGETHER {
                self.replay_rows(partition, std::mem::take(&mut rows))?;
            }
            Ok(())
        })?;
        self.replay_rows(partition, rows)
    }

    /// Takes in rows, of which the kept documents are prepared side by side.
    fn replay_rows(&mut self, partition: &Partition, rows: Vec<Row>) -> Result<()> {
        let preparer = self.matcher.preparer();
        let prepared: Vec<Option<online::Prepared>> = rows
            .par_iter()
            .map_init(Scratch::default, |scratch, row| match row {
                Row::Document(document) | Row::Moved { document, .. } => {
                    prepare_again(partition, preparer, document, scratch)
                }
                Row::Deleted { .. } => Ok(None),
            })
            .collect::<Result<_>>()?;
        let mut rows = rows.into_iter().zip(prepared);
        rows.try_for_each(|(row, prepared)| self.replay(row, prepared.as_ref()))
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

    /// Takes in the next row; `prepared` is the document again if it is one that was kept.
    fn replay(&mut self, row: Row, prepared: Option<&online::Prepared>) -> Result<()> {
        let number = self.next;
        self.next += 1;
        match row {
            Row::Deleted { number, seq, slot } => {
                self.gone.insert(number);
                self.moved.remove(&seq);
                if let Some(slot) = slot {
                    self.matcher.remove(slot);
                }
                return Ok(());
            }
            Row::Document(document) => {
                self.replay_document(&document, number, prepared, 0)?;
                self.name(lookalike::value_hash(document.id.as_bytes()), number);
            }
            Row::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                self.matcher.remove(from_slot);
                self.gone.insert(from);
                self.moved.insert(seq, number);
                self.replay_document(&document, seq, prepared, last)?;
                self.name(lookalike::value_hash(document.id.as_bytes()), number);
            }
        }
        Ok(())
    }

    fn replay_document(
        &mut self,
        document: &rows::Document,
        seq: u64,
        prepared: Option<&online::Prepared>,
        last: u64,
    ) -> Result<()> {
        if let Some(home) = self.homes.back_mut() {
            home.end = home.end.max(document.place.end() / UNIT);
        }
        match (&document.verdict, prepared) {
            (RowVerdict::Duplicate { slot, .. }, _) => {
                self.matcher.note(document.time);
                self.set_last(*slot, seq);
                if self
                    .settings
                    .window
                    .is_some_and(|window| window.refreshes())
                {
                    self.matcher.refresh(*slot, document.time);
                }
                Ok(())
            }
            (RowVerdict::Kept { index }, Some(prepared)) => {
                let slot = self.matcher.keep(prepared, seq, document.time)?;
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
        self.open = self.homes.back().map(|home| Batch {
            partition: home.number,
            begins: None,
            first: self.next,
            rows: Rows::default(),
            texts_at: home.end * UNIT,
            texts: Vec::new(),
        });
    }
}

/// A kept document, as it was prepared.
fn prepare_again(
    partition: &Partition,
    preparer: &Preparer,
    document: &rows::Document,
    scratch: &mut Scratch,
) -> Result<Option<online::Prepared>> {
    if !matches!(document.verdict, RowVerdict::Kept { .. }) {
        return Ok(None);
    }
    if let Some(fingerprint) = document.fingerprint {
        return Ok(Some(preparer.fingerprint(fingerprint)?));
    }
    let prepared = partition.text(document.place.at, |text| preparer.text(text, scratch))?;
    Ok(Some(prepared))
}
