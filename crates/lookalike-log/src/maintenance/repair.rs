//! Repair: missing and damaged objects are written again from a replica's own copies.
//!
//! A copy is used only where it fits the chain on both sides. Neighbouring objects that are damaged are repaired
//! together or not at all. Where two whole records do not follow one another, one of them was replaced: the copies tell
//! which, and all objects beside the break that differ from their copies are taken as damaged. At the end of the log,
//! where nothing follows, a whole record that follows the one before is never overwritten; records that are missing there are restored, because the
//! replica has read or written them.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::copies::RecordCopies;
use crate::error::LogError;
use crate::keys::record_key;
use crate::maintenance::walk::{LogWalk, read_first_number};
use crate::record::{LogId, LogRecord, LogTail, RecordDigest};
use crate::store::{CreateOutcome, LogStore, StoreError};

/// Report of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Objects that were looked at.
    pub objects: u64,
    /// Numbers of the records that were written again, in their order.
    pub repaired: Vec<u64>,
    /// Records that could not be repaired, in their order.
    pub unrepaired: Vec<UnrepairedRecord>,
}

/// A record that could not be repaired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnrepairedRecord {
    /// Number of the record.
    pub number: u64,
    /// Sentence that says why.
    pub reason: String,
}

/// Repairs a log from copies, while no replica runs.
///
/// Reads every object and, where the log is damaged or ends, copies. Needs about 100 bytes of memory for each record.
///
/// # Errors
/// If a request fails, the copies cannot be read, or a newer program wrote a record. What was written until then stays, and the repair can be repeated.
pub fn repair_log(
    store: &dyn LogStore,
    copies: &dyn RecordCopies,
) -> Result<RepairReport, StoreError> {
    let mut survey = LogSurvey::read(store)?;
    let mut report = RepairReport {
        objects: survey.places.len() as u64,
        ..RepairReport::default()
    };
    survey.mark_replaced_records(copies)?;
    survey.mark_cut_records(copies)?;
    report.unrepaired = survey.unexplained_breaks();
    for run in survey.damaged_runs() {
        let fitting = survey.find_fitting_copies(copies, &run)?;
        let written = match fitting {
            Ok(objects) => survey.write_objects(store, *run.start(), &objects)?,
            Err(reason) => Err(reason),
        };
        match written {
            Ok(()) => report.repaired.extend(run),
            Err(reason) => report.unrepaired.extend(run.map(|number| UnrepairedRecord {
                number,
                reason: reason.clone(),
            })),
        }
    }
    report.unrepaired.sort_by_key(|record| record.number);
    Ok(report)
}

/// Fields of a record that link it to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordLinks {
    log: LogId,
    time_us: i64,
    previous: RecordDigest,
    digest: RecordDigest,
}

/// Content of the place at a number of the log.
#[derive(Debug, Default)]
struct SurveyedPlace {
    /// `None` if the object is missing or no whole record of its number.
    links: Option<RecordLinks>,
    exists: bool,
    /// `true` if the object shall be written again.
    is_damaged: bool,
}

/// All objects of a log.
struct LogSurvey {
    first: u64,
    places: BTreeMap<u64, SurveyedPlace>,
    /// Numbers whose record does not follow the record before it.
    breaks: Vec<u64>,
}

impl RecordLinks {
    fn of_record(record: &LogRecord) -> Self {
        Self {
            log: record.log,
            time_us: record.time_us,
            previous: record.previous,
            digest: record.digest,
        }
    }
}

fn copy_error(number: u64, cause: &io::Error) -> StoreError {
    StoreError::permanent(format!(
        "the copy of record {number} cannot be read: {cause}"
    ))
}

/// Reads the links of an object that is a whole record.
///
/// # Errors
/// If a newer program wrote the object: it may not be replaced by this one.
fn read_links(number: u64, object: Option<&[u8]>) -> Result<Option<RecordLinks>, StoreError> {
    match object.map(|object| LogRecord::decode(number, object)) {
        Some(Ok(record)) => Ok(Some(RecordLinks::of_record(&record))),
        Some(Err(newer @ LogError::NewerVersion { .. })) => {
            Err(StoreError::permanent(newer.to_string()))
        }
        Some(Err(_)) | None => Ok(None),
    }
}

/// Reads a copy that is a whole record.
fn read_record_copy(
    copies: &dyn RecordCopies,
    number: u64,
) -> Result<Option<(LogRecord, Vec<u8>)>, StoreError> {
    let copy = copies.read_copy(number);
    let copy = copy.map_err(|cause| copy_error(number, &cause))?;
    Ok(copy.and_then(|object| {
        let record = LogRecord::decode(number, &object).ok()?;
        Some((record, object))
    }))
}

impl LogSurvey {
    fn read(store: &dyn LogStore) -> Result<Self, StoreError> {
        let first = read_first_number(store)?;
        let mut survey = Self {
            first,
            places: BTreeMap::new(),
            breaks: Vec::new(),
        };
        let mut walk = LogWalk::new(store, first)?;
        while let Some(walked) = walk.next_object()? {
            let (number, object) = (walked.number, walked.object.as_deref());
            let links = read_links(number, object)?;
            if links.is_some_and(|links| !survey.follows_neighbour(number, links)) {
                survey.breaks.push(number);
            }
            survey.places.insert(
                number,
                SurveyedPlace {
                    links,
                    exists: object.is_some(),
                    is_damaged: links.is_none(),
                },
            );
        }
        Ok(survey)
    }

    /// Returns `true` if a record follows the one before it, or if that is not known.
    fn follows_neighbour(&self, number: u64, links: RecordLinks) -> bool {
        let place = self.place_before(number, Some(links));
        place.is_none_or(|place| follows_place(&place, links))
    }

    /// Marks the objects on both sides of each break that differ from their copies.
    fn mark_replaced_records(&mut self, copies: &dyn RecordCopies) -> Result<(), StoreError> {
        for number in self.breaks.clone() {
            let mut before = number;
            while before > self.first && self.mark_if_replaced(copies, before - 1)? {
                before -= 1;
            }
            let mut after = number;
            while self.mark_if_replaced(copies, after)? {
                after += 1;
            }
        }
        Ok(())
    }

    /// Marks an object that is a whole record and differs from its copy. Returns `false` if it is not such an object, or
    /// already marked.
    fn mark_if_replaced(
        &mut self,
        copies: &dyn RecordCopies,
        number: u64,
    ) -> Result<bool, StoreError> {
        let Some(place) = self.places.get_mut(&number) else {
            return Ok(false);
        };
        let Some(links) = place.links.filter(|_| !place.is_damaged) else {
            return Ok(false);
        };
        let copy = read_record_copy(copies, number)?;
        place.is_damaged = copy.is_some_and(|(record, _)| record.digest != links.digest);
        Ok(place.is_damaged)
    }

    /// Marks the numbers after the last object of which there are copies.
    fn mark_cut_records(&mut self, copies: &dyn RecordCopies) -> Result<(), StoreError> {
        let last_copy = copies.last_number();
        let last_copy = last_copy.map_err(|cause| {
            StoreError::permanent(format!("the copies cannot be listed: {cause}"))
        })?;
        let end = self
            .places
            .keys()
            .next_back()
            .map_or(self.first, |last| last + 1);
        for number in end..=last_copy.unwrap_or_default() {
            self.places.insert(
                number,
                SurveyedPlace {
                    is_damaged: true,
                    ..SurveyedPlace::default()
                },
            );
        }
        Ok(())
    }

    /// Returns the records that do not follow the record before although no copy differs from either.
    fn unexplained_breaks(&self) -> Vec<UnrepairedRecord> {
        let is_damaged = |number: u64| {
            self.places
                .get(&number)
                .is_some_and(|place| place.is_damaged)
        };
        let breaks = self.breaks.iter().copied();
        breaks
            .filter(|number| !is_damaged(*number) && !is_damaged(number - 1))
            .map(|number| UnrepairedRecord {
                number,
                reason: "it does not follow the record before it, and no copy differs from either"
                    .to_owned(),
            })
            .collect()
    }

    /// Returns the longest ranges of damaged objects.
    fn damaged_runs(&self) -> Vec<RangeInclusive<u64>> {
        let mut runs = Vec::<RangeInclusive<u64>>::new();
        for number in self.damaged_numbers() {
            match runs.last_mut() {
                Some(run) if *run.end() + 1 == number => *run = *run.start()..=number,
                _ => runs.push(number..=number),
            }
        }
        runs
    }

    fn damaged_numbers(&self) -> impl Iterator<Item = u64> {
        let damaged = self.places.iter().filter(|(_, place)| place.is_damaged);
        damaged.map(|(number, _)| *number)
    }

    fn links(&self, number: u64) -> Option<RecordLinks> {
        self.places.get(&number).and_then(|place| place.links)
    }

    /// Returns the copies for a run of damaged objects, or the reason why they cannot be used.
    fn find_fitting_copies(
        &self,
        copies: &dyn RecordCopies,
        run: &RangeInclusive<u64>,
    ) -> Result<Result<Vec<Vec<u8>>, String>, StoreError> {
        let after = self.links(run.end() + 1);
        let start = self.links(*run.start());
        if after.is_none() && start.is_some_and(|links| self.follows_neighbour(*run.start(), links))
        {
            let reason = "the record in the store is whole, follows the one before and is at the end, so it is not \
                          overwritten: compare it with the copies of other replicas";
            return Ok(Err(reason.to_owned()));
        }
        let mut place = self.place_before(*run.start(), after);
        let mut objects = Vec::new();
        for number in run.clone() {
            let Some((record, object)) = read_record_copy(copies, number)? else {
                return Ok(Err(format!("there is no whole copy of record {number}")));
            };
            let fits = match &place {
                Some(place) => record.check_place(place),
                None => Ok(()),
            };
            if let Err(LogError::Damaged(damage)) = fits {
                let kind = damage.kind;
                return Ok(Err(format!(
                    "the copy of record {number} does not fit: {kind}"
                )));
            }
            place = Some(record.tail());
            objects.push(object);
        }
        Ok(match (place, after) {
            (Some(place), Some(after)) if !follows_place(&place, after) => {
                let next = run.end() + 1;
                Err(format!(
                    "record {next} in the store does not follow the copies"
                ))
            }
            _ => Ok(objects),
        })
    }

    /// Returns the place of the record `number`, as far as its neighbours are known; `None` if neither is.
    fn place_before(&self, number: u64, after: Option<RecordLinks>) -> Option<LogTail> {
        let beginning = LogTail {
            log: after.map(|after| after.log),
            ..LogTail::default()
        };
        if number == 1 {
            return Some(beginning);
        }
        let before = self.links(number - 1)?;
        Some(LogTail {
            log: Some(before.log),
            next: number,
            digest: before.digest,
            time_us: before.time_us,
        })
    }

    /// Writes copies in place of objects, from the number `first` on. Returns the reason if an object has come to exist.
    fn write_objects(
        &mut self,
        store: &dyn LogStore,
        first: u64,
        objects: &[Vec<u8>],
    ) -> Result<Result<(), String>, StoreError> {
        for (number, object) in (first..).zip(objects) {
            let key = record_key(number);
            if self.places.get(&number).is_some_and(|place| place.exists) {
                store.replace(&key, object)?;
            } else if store.create(&key, object)? == CreateOutcome::AlreadyExists
                && store.read(&key)?.as_ref() != Some(object)
            {
                return Ok(Err(format!(
                    "object '{key}' was created meanwhile: stop all replicas and repeat the repair"
                )));
            }
        }
        Ok(Ok(()))
    }
}

/// Returns `true` if a record of these links may stand at a place.
fn follows_place(place: &LogTail, links: RecordLinks) -> bool {
    place.log == Some(links.log) && place.digest == links.previous && place.time_us <= links.time_us
}
