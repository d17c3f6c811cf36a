//! Repair: missing and damaged objects are written again from a replica's own copies.
//!
//! A copy is used only where it fits the chain on both sides. Neighbouring objects that are damaged are repaired
//! together or not at all, except that a log whose beginning has no copies is repaired from the first copy on. Where two
//! whole records do not follow one another, one of them was replaced: the copies tell which, and all objects beside the
//! break that differ from their copies are taken as damaged. Records that are missing at the end are restored, because the
//! replica has read or written them.
//!
//! At the end of the log nothing tells which of two whole records is right. If the copies end with other records than the
//! log, both sides are named, and nothing is written. [`RepairOptions::replaces_end`] decides for the copies; the records
//! that they replace are kept as other objects.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::copies::RecordCopies;
use crate::error::LogError;
use crate::keys::{describe_record, record_key, replaced_key};
use crate::maintenance::walk::{LogWalk, read_first_number};
use crate::record::{LogId, LogRecord, LogTail, RecordDigest};
use crate::store::{CreateOutcome, LogStore, StoreError};

/// Options of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Puts the copies in place of other whole records at the end of the log, if the copies reach as far as the log.
    pub replaces_end: bool,
}

/// Report of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Objects that were looked at.
    pub objects: u64,
    /// Numbers of the records that were written again, in their order.
    pub repaired: Vec<u64>,
    /// Numbers of whole records that were replaced by copies, in their order. They are below `replaced/` now.
    pub replaced: Vec<u64>,
    /// Records that could not be repaired, in their order.
    pub unrepaired: Vec<UnrepairedRecords>,
}

/// Records, one after another, that could not be repaired for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnrepairedRecords {
    /// Number of the first of them.
    pub number: u64,
    /// Number of the last of them.
    pub last: u64,
    /// Sentence that says why.
    pub reason: String,
}

impl UnrepairedRecords {
    fn new(numbers: &RangeInclusive<u64>, reason: String) -> Self {
        Self {
            number: *numbers.start(),
            last: *numbers.end(),
            reason,
        }
    }

    /// Returns the number of records.
    pub fn count(&self) -> u64 {
        self.last - self.number + 1
    }
}

/// Repairs a log from copies, while no replica runs.
///
/// Reads every object and, where the log is damaged or ends, copies. Needs about 100 bytes of memory for each record.
///
/// # Errors
/// If all copies are of another log, a request fails, the copies cannot be read, or a newer program wrote a record. What
/// was written until then stays, and the repair can be repeated.
pub fn repair_log(
    store: &dyn LogStore,
    copies: &dyn RecordCopies,
    options: RepairOptions,
) -> Result<RepairReport, StoreError> {
    let mut survey = LogSurvey::read(store)?;
    let mut report = RepairReport {
        objects: survey.places.len() as u64,
        ..RepairReport::default()
    };
    let last_copy = survey.find_last_copy(copies)?;
    survey.mark_replaced_records(copies)?;
    survey.mark_cut_records(last_copy);
    report.unrepaired = survey.unexplained_breaks();
    if let Some(fork) = survey.take_fork(copies, last_copy)? {
        survey.settle_fork(store, copies, &fork, options, &mut report)?;
    }
    for run in survey.damaged_runs() {
        survey.repair_run(store, copies, &run, &mut report)?;
    }
    report.repaired.sort_unstable();
    report.unrepaired.sort_by_key(|records| records.number);
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

/// The end of a log, where its records and those of the copies are different and both whole.
struct EndFork {
    /// Number of the first record that is another one.
    first: u64,
    /// Number of the last object of the log.
    last_object: u64,
    /// Number of the last copy.
    last_copy: u64,
}

/// Objects of copies, one after another.
type CopiedObjects = Vec<Vec<u8>>;

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
    let record = describe_record(number);
    StoreError::permanent(format!("the copy of {record} cannot be read: {cause}"))
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

    /// Returns the log to which most of the whole records belong; `None` if there is no whole record.
    fn find_log(&self) -> Option<LogId> {
        let mut counts = BTreeMap::<LogId, u64>::new();
        for links in self.places.values().filter_map(|place| place.links) {
            *counts.entry(links.log).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(log, _)| log)
    }

    /// Returns the number of the last copy that may be of this log; 0 if there is none. A directory that has followed two
    /// logs may have later copies of the other one, which are left out.
    ///
    /// Reads as many copies as there are of another log.
    fn find_last_copy(&self, copies: &dyn RecordCopies) -> Result<u64, StoreError> {
        let last = copies.last_number();
        let last = last.map_err(|cause| {
            StoreError::permanent(format!("the copies cannot be listed: {cause}"))
        })?;
        let (Some(last), Some(log)) = (last, self.find_log()) else {
            return Ok(last.unwrap_or_default());
        };
        let mut foreign = None;
        for number in (1..=last).rev() {
            match read_record_copy(copies, number)? {
                // A copy that is not whole is one of the others'.
                Some((record, _)) if record.log == log => {
                    return Ok(if foreign.is_none() { last } else { number });
                }
                Some((record, _)) => foreign = Some(record.log),
                None => {}
            }
        }
        match foreign {
            Some(foreign) => Err(StoreError::permanent(format!(
                "the copies are of log {foreign}, and the records to be repaired are of log {log}: name the data \
                 directory of a replica that has followed this log, or the URL of the other log"
            ))),
            None => Ok(last),
        }
    }

    /// Returns the number of the last object, or the one before the first.
    fn last_object(&self) -> u64 {
        let last = self.places.keys().next_back();
        last.copied().unwrap_or(self.first - 1)
    }

    /// Marks the numbers after the last object of which there may be copies.
    fn mark_cut_records(&mut self, last_copy: u64) {
        for number in self.last_object() + 1..=last_copy {
            self.places.insert(
                number,
                SurveyedPlace {
                    is_damaged: true,
                    ..SurveyedPlace::default()
                },
            );
        }
    }

    /// Finds the place from which on the copies have other whole records than the log, up to the end of both. Marks no
    /// record of it as damaged any more.
    fn take_fork(
        &mut self,
        copies: &dyn RecordCopies,
        last_copy: u64,
    ) -> Result<Option<EndFork>, StoreError> {
        let existing = self.places.iter().rev().find(|(_, place)| place.exists);
        let last_object = existing.map_or(self.first - 1, |(number, _)| *number);
        let mut first = None;
        for number in (self.first..=last_copy).rev() {
            let place = self.places.get(&number);
            // A damaged record is of neither side.
            let whole = place.filter(|place| !place.is_damaged);
            let Some(links) = whole.and_then(|place| place.links) else {
                continue;
            };
            let copy = read_record_copy(copies, number)?;
            if copy.is_none_or(|(record, _)| record.digest == links.digest) {
                break;
            }
            first = Some(number);
        }
        let Some(first) = first else {
            return Ok(None);
        };
        for place in self.places.range_mut(first..).map(|(_, place)| place) {
            place.is_damaged = false;
        }
        Ok(Some(EndFork {
            first,
            last_object,
            last_copy,
        }))
    }

    /// Replaces the records of a fork by the copies if that is wanted and loses no record, or reports why not.
    fn settle_fork(
        &mut self,
        store: &dyn LogStore,
        copies: &dyn RecordCopies,
        fork: &EndFork,
        options: RepairOptions,
        report: &mut RepairReport,
    ) -> Result<(), StoreError> {
        let numbers = fork.first..=fork.last_object.max(fork.last_copy);
        let refusal = match self.find_replacing_copies(copies, fork, options)? {
            Ok(objects) => {
                report.replaced = keep_replaced(store, fork)?;
                self.write_objects(store, fork.first, &objects)?.err()
            }
            Err(reason) => Some(reason),
        };
        match refusal {
            None => report.repaired.extend(numbers),
            Some(reason) => {
                let unrepaired = UnrepairedRecords::new(&numbers, reason);
                report.unrepaired.push(unrepaired);
            }
        }
        Ok(())
    }

    /// Returns the copies that replace the records of a fork, or the reason why they do not.
    fn find_replacing_copies(
        &self,
        copies: &dyn RecordCopies,
        fork: &EndFork,
        options: RepairOptions,
    ) -> Result<Result<CopiedObjects, String>, StoreError> {
        let first = describe_record(fork.first);
        if fork.last_object > fork.last_copy {
            let last = describe_record(fork.last_object);
            return Ok(Err(format!(
                "the log and the copies have different records from {first} on, and the log goes on to {last}, of which \
                 there is no copy: it stays as it is; if it is the right one, start the replica of these copies with an \
                 empty directory"
            )));
        }
        if !options.replaces_end {
            return Ok(Err(format!(
                "the log and the copies have different records from {first} on, which are whole on both sides, so \
                 nothing is overwritten: compare them with the copies of other replicas, and repeat the repair with \
                 --replace if these copies are right"
            )));
        }
        let numbers = fork.first..=fork.last_copy;
        let place = self.place_before(fork.first, None);
        Ok(read_chain(copies, &numbers, place)?.map(|(objects, _)| objects))
    }

    /// Returns the records that do not follow the record before although no copy differs from either.
    fn unexplained_breaks(&self) -> Vec<UnrepairedRecords> {
        let is_damaged = |number: u64| {
            self.places
                .get(&number)
                .is_some_and(|place| place.is_damaged)
        };
        let breaks = self.breaks.iter().copied();
        breaks
            .filter(|number| !is_damaged(*number) && !is_damaged(number - 1))
            .map(|number| {
                let reason =
                    "it does not follow the record before it, and no copy differs from either";
                UnrepairedRecords::new(&(number..=number), reason.to_owned())
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

    /// Repairs a run of damaged objects, or reports why not.
    fn repair_run(
        &mut self,
        store: &dyn LogStore,
        copies: &dyn RecordCopies,
        run: &RangeInclusive<u64>,
        report: &mut RepairReport,
    ) -> Result<(), StoreError> {
        let first_copy = self.find_first_copy(copies, run)?;
        if first_copy > *run.start() {
            let uncopied = *run.start()..=first_copy - 1;
            let reason = "there are no copies of the beginning: try those of another replica";
            let unrepaired = UnrepairedRecords::new(&uncopied, reason.to_owned());
            report.unrepaired.push(unrepaired);
        }
        let run = first_copy..=*run.end();
        let written = match self.find_fitting_copies(copies, &run)? {
            Ok(objects) => self.write_objects(store, first_copy, &objects)?,
            Err(reason) => Err(reason),
        };
        match written {
            Ok(()) => report.repaired.extend(run),
            Err(reason) => report.unrepaired.push(UnrepairedRecords::new(&run, reason)),
        }
        Ok(())
    }

    /// Returns the number of the first record of a run that can be written again. It is that of the run, unless the run
    /// begins the log: then it is that of the first copy.
    fn find_first_copy(
        &self,
        copies: &dyn RecordCopies,
        run: &RangeInclusive<u64>,
    ) -> Result<u64, StoreError> {
        if *run.start() == self.first {
            for number in run.clone() {
                if read_record_copy(copies, number)?.is_some() {
                    return Ok(number);
                }
            }
        }
        Ok(*run.start())
    }

    /// Returns the copies for a run of damaged objects, or the reason why they cannot be used.
    fn find_fitting_copies(
        &self,
        copies: &dyn RecordCopies,
        run: &RangeInclusive<u64>,
    ) -> Result<Result<CopiedObjects, String>, StoreError> {
        let after = self.links(run.end() + 1);
        let start = self.links(*run.start());
        if after.is_none() && start.is_some_and(|links| self.follows_neighbour(*run.start(), links))
        {
            let reason = "the record in the store is whole, follows the one before and is at the end, so it is not \
                          overwritten: compare it with the copies of other replicas";
            return Ok(Err(reason.to_owned()));
        }
        let place = self.place_before(*run.start(), after);
        let read = read_chain(copies, run, place)?;
        Ok(match (read, after) {
            (Ok((_, place)), Some(after)) if !follows_place(&place, after) => Err(format!(
                "{} in the store does not follow the copies",
                describe_record(run.end() + 1)
            )),
            (read, _) => read.map(|(objects, _)| objects),
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

/// Copies the records of a fork to other objects, and returns their numbers.
fn keep_replaced(store: &dyn LogStore, fork: &EndFork) -> Result<Vec<u64>, StoreError> {
    let mut replaced = Vec::new();
    for number in fork.first..=fork.last_object {
        let Some(object) = store.read(&record_key(number))? else {
            continue;
        };
        let digest = RecordDigest::compute(&object).to_string();
        store.replace(&replaced_key(number, &digest), &object)?;
        replaced.push(number);
    }
    Ok(replaced)
}

/// Reads copies that follow one another and the place before them, if that is known. Returns them with the place after
/// the last one, or the reason why they cannot be used.
fn read_chain(
    copies: &dyn RecordCopies,
    numbers: &RangeInclusive<u64>,
    mut place: Option<LogTail>,
) -> Result<Result<(CopiedObjects, LogTail), String>, StoreError> {
    let mut objects = Vec::new();
    for number in numbers.clone() {
        let Some((record, object)) = read_record_copy(copies, number)? else {
            let record = describe_record(number);
            return Ok(Err(format!("there is no whole copy of {record}")));
        };
        let fits = match &place {
            Some(place) => record.check_place(place),
            None => Ok(()),
        };
        if let Err(LogError::Damaged(damage)) = fits {
            let (record, kind) = (describe_record(number), damage.kind);
            return Ok(Err(format!("the copy of {record} does not fit: {kind}")));
        }
        place = Some(record.tail());
        objects.push(object);
    }
    Ok(Ok((objects, place.unwrap_or_default())))
}

/// Returns `true` if a record of these links may stand at a place.
fn follows_place(place: &LogTail, links: RecordLinks) -> bool {
    place.log == Some(links.log) && place.digest == links.previous && place.time_us <= links.time_us
}
