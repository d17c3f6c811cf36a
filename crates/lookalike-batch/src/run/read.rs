//! The first reading: all threads convert rows to sketches; the results are in input order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lookalike::audit::Counter;
use lookalike::text::{Analysis, Analyzer, Scratch};
use lookalike::{Sketcher, Sketches};

use super::audit::Audit;
use super::documents::{Documents, Extra};
use super::forecast::Sampling;
use super::progress::{Progress, begin_reading};
use super::rejected::{RowTally, tell_bad_rows};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::source::{BadRow, Block, Inputs, ParseScratch, Place, Row};

/// Everything needed to convert a row to a sketch.
pub(super) struct Reader<'a> {
    pub(super) settings: &'a Settings,
    pub(super) analyzer: Analyzer,
    pub(super) sketcher: Sketcher,
    pub(super) extra: Extra,
    /// Receives all bad rows in order.
    pub(super) reject: &'a Reject<'a>,
    /// The audit of the run, with the size on disk of all inputs in bytes, if it is known.
    pub(super) audit: Option<(&'a Audit, Option<u64>)>,
    /// The selection of rows if not all are read. Bad rows are then only counted.
    pub(super) sampling: Option<&'a Sampling>,
}

/// Receives the bad rows of a block.
pub(super) type Reject<'a> = dyn Fn(&Inputs, &[BadRow]) -> Result<()> + Sync + 'a;

/// The buffers of one thread.
#[derive(Default)]
struct Worker {
    parse: ParseScratch,
    scratch: Scratch,
    /// The counter of the audit, if there is one.
    counter: Option<Counter>,
}

/// Number of features of short documents kept from the first reading; they take 96 MiB.
const FEATURES_HELD: usize = 12 << 20;

/// Analyses a row by its features if they are given, otherwise by its text.
pub(crate) fn analyze<'s>(
    analyzer: &Analyzer,
    row: &Row<'_>,
    scratch: &'s mut Scratch,
) -> Analysis<'s> {
    match &row.features {
        Some(features) => analyzer.analyze_features(features.iter(), scratch),
        None => analyzer.analyze(row.text, scratch),
    }
}

/// The results so far; those of consecutive blocks are joined.
struct Joined {
    documents: Documents,
    next: u64,
    waiting: BTreeMap<u64, Documents>,
    bytes_on_disk: u64,
    tally: RowTally,
    failure: Option<Error>,
}

impl Reader<'_> {
    /// Creates an empty store of sketches.
    pub(super) fn sketches(&self) -> Sketches {
        self.sketcher.sketches(FEATURES_HELD)
    }

    /// Reads all inputs and appends their documents to `documents`.
    pub(super) fn read(
        &self,
        inputs: &Inputs,
        documents: Documents,
        progress: &dyn Progress,
    ) -> Result<Documents> {
        begin_reading(progress, inputs);
        let joined = Mutex::new(Joined {
            documents,
            next: 0,
            waiting: BTreeMap::new(),
            bytes_on_disk: 0,
            tally: RowTally::default(),
            failure: None,
        });
        rayon::broadcast(|_| {
            if let Err(error) = self.work(inputs, &joined, progress) {
                lock(&joined).failure.get_or_insert(error);
            }
        });
        let joined = joined.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = joined.failure {
            return Err(error);
        }
        if self.sampling.is_none() {
            joined.tally.refuse_useless(inputs)?;
        }
        Ok(joined.documents)
    }

    fn work(&self, inputs: &Inputs, joined: &Mutex<Joined>, progress: &dyn Progress) -> Result<()> {
        let mut worker = Worker {
            counter: self.audit.map(|(audit, _)| audit.counter()),
            ..Worker::default()
        };
        let is_enough = || self.sampling.is_some_and(Sampling::is_enough);
        while lock(joined).failure.is_none() && !is_enough() {
            let Some(block) = inputs.next_block()? else {
                break;
            };
            if let Some(sampling) = self.sampling {
                sampling.begin(&block);
            }
            if let Some((audit, bytes)) = self.audit {
                let buffers = (&mut worker.parse, &mut worker.scratch);
                let inputs = (inputs, bytes);
                audit
                    .drawing()
                    .draw(inputs, &block, &self.analyzer, buffers)?;
            }
            let part = self.part(inputs, &block, &mut worker)?;
            let (ordinal, bytes_on_disk) = (block.ordinal(), block.bytes_on_disk());
            inputs.recycle(block);
            let mut joined = lock(joined);
            joined.bytes_on_disk += bytes_on_disk;
            joined.waiting.insert(ordinal, part);
            self.join(inputs, &mut joined, progress)?;
            progress.advance(joined.bytes_on_disk);
        }
        Ok(())
    }

    fn join(&self, inputs: &Inputs, joined: &mut Joined, progress: &dyn Progress) -> Result<()> {
        while let Some(mut part) = joined.waiting.remove(&joined.next) {
            joined.next += 1;
            if part.len() > 0 {
                progress.rows_usable();
            }
            joined.tally.add(part.len() as u64, &part.bad);
            tell_bad_rows(&part.bad, progress, self.settings.strict, |rows| {
                (self.reject)(inputs, rows)
            })?;
            joined.documents.append(&mut part);
            let limit = lookalike::DocId::LIMIT;
            if joined.documents.len() >= limit {
                return Err(Error::limit(format!(
                    "a run holds at most {limit} documents"
                )));
            }
        }
        Ok(())
    }

    fn part(&self, inputs: &Inputs, block: &Block, worker: &mut Worker) -> Result<Documents> {
        let Worker {
            parse,
            scratch,
            counter,
        } = worker;
        let base = self.audit.map_or(0, |(audit, _)| audit.drawing().base());
        let mut part = Documents::with_sketches(self.sketches());
        inputs.parse(block, parse, &mut |row| {
            if let Some(sampling) = self.sampling {
                let Ok(row) = row else {
                    sampling.add_bad();
                    return Ok(());
                };
                if sampling.takes(row.number) {
                    let begun = Instant::now();
                    match part.push(&row, &self.extra) {
                        Ok(()) => self
                            .sketcher
                            .add(&analyze(&self.analyzer, &row, scratch), &mut part.sketches),
                        Err(_) => sampling.add_bad(),
                    }
                    sampling.add_sketching(begun.elapsed());
                }
                return Ok(());
            }
            let bad = match row {
                Ok(row) => {
                    part.bytes += u64::from(row.place.length());
                    match part.push(&row, &self.extra) {
                        Ok(()) => {
                            let analysis = analyze(&self.analyzer, &row, scratch);
                            let (Some((audit, _)), Some(counter)) = (self.audit, &mut *counter)
                            else {
                                self.sketcher.add(&analysis, &mut part.sketches);
                                return Ok(());
                            };
                            counter.begin(&analysis);
                            let sketches = &mut part.sketches;
                            let see = &mut |features: &[u64]| counter.see(features);
                            self.sketcher.add_seen(&analysis, sketches, see);
                            audit.compare(base + row.number, &analysis, counter);
                            return Ok(());
                        }
                        Err(reason) => bad_row(inputs, &row, reason),
                    }
                }
                Err(bad) => {
                    part.bytes += u64::from(bad.place.length());
                    bad
                }
            };
            part.bad.push(bad);
            Ok(())
        })?;
        Ok(part)
    }
}

/// Creates the report of a valid row that this run cannot use.
pub(crate) fn bad_row(inputs: &Inputs, row: &Row<'_>, reason: String) -> BadRow {
    BadRow {
        file: inputs.file_of(row.place).name().to_owned(),
        line: row.line,
        number: row.number,
        reason,
        place: row.place,
    }
}

/// Returns the name of the input and the line of a row, given its place and its number.
pub(super) fn position(inputs: &Inputs, place: Place, number: u64) -> (&str, u64) {
    let file = inputs.file_of(place);
    let header = u64::from(file.header().is_some());
    let line = number - file.first_number().unwrap_or(1) + 1 + header;
    (file.name(), line)
}

fn lock(joined: &Mutex<Joined>) -> std::sync::MutexGuard<'_, Joined> {
    // A panic in another worker propagates at the end of the broadcast anyway.
    joined.lock().unwrap_or_else(PoisonError::into_inner)
}
