//! Damaged logs in great number: no replica accepts a record that was not written, verification names the damage, and
//! the copies of a replica repair it.

use super::*;
use crate::error::LogError;
use crate::maintenance::{RepairOptions, repair_log, verify_log};
use crate::simulation::RandomNumbers;

const RECORDS: u64 = 40;

/// Objects from which damaged logs are made.
struct LogMaterial {
    store: Arc<MemoryStore>,
    records: Vec<LogRecord>,
    copies: MemoryCopies,
    /// A log of the same size with another identity.
    foreign: Arc<MemoryStore>,
}

impl LogMaterial {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let mut logs: Vec<_> = ["a", "b", "c"]
            .map(|name| open_log(&store, name, LogTail::default()))
            .into();
        let copies = Arc::new(MemoryCopies::default());
        let mut records = Vec::new();
        let mut random = RandomNumbers::new(7);
        while (records.len() as u64) < RECORDS {
            let log = &mut logs[random.below(3) as usize];
            read_all(log).unwrap();
            let entries: Vec<_> = (0..random.below(4))
                .map(|_| insertion(&"x".repeat(random.below(300) as usize)))
                .collect();
            records.push(append(log, entries, random.below(1000) as i64));
        }
        for number in 1..=RECORDS {
            copies.write_copy(number, &object(&store, number)).unwrap();
        }
        let foreign = Arc::new(MemoryStore::new());
        write_log(&foreign, RECORDS + 1);
        Self {
            store,
            records,
            copies: Arc::into_inner(copies).unwrap(),
            foreign,
        }
    }

    fn record(&self, number: u64) -> &LogRecord {
        &self.records[number as usize - 1]
    }

    /// Encodes another record that follows the one before `number`.
    fn fork_record(&self, number: u64) -> Vec<u8> {
        let previous = number.checked_sub(1).filter(|number| *number > 0);
        let previous = previous.map(|previous| self.record(previous));
        let log = self.record(1).log;
        forge_record(previous, |header| header.log = log)
    }
}

/// How a log is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogChange {
    FlipBit,
    CutObject,
    ExtendObject,
    SwapObjects,
    RemoveObject,
    CutLog,
    ReplaceByForeign,
    ReplayOther,
    ForkRecord,
    AddForeign,
    AddReplay,
}

const CHANGES: [LogChange; 11] = [
    LogChange::FlipBit,
    LogChange::CutObject,
    LogChange::ExtendObject,
    LogChange::SwapObjects,
    LogChange::RemoveObject,
    LogChange::CutLog,
    LogChange::ReplaceByForeign,
    LogChange::ReplayOther,
    LogChange::ForkRecord,
    LogChange::AddForeign,
    LogChange::AddReplay,
];

/// A damaged log, and the smallest number at which it differs.
struct DamagedLog {
    store: Arc<MemoryStore>,
    change: LogChange,
    first: u64,
}

fn damage_log(material: &LogMaterial, change: LogChange, random: &mut RandomNumbers) -> DamagedLog {
    let store = clone_store(&material.store).unwrap();
    let at = 1 + random.below(RECORDS);
    let other = 1 + (at + random.below(RECORDS - 1)) % RECORDS;
    assert_ne!(at, other);
    let mut bytes = object(&store, at);
    let mut first = at;
    match change {
        LogChange::FlipBit => {
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            set_object(&store, at, &bytes);
        }
        LogChange::CutObject => {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
            set_object(&store, at, &bytes);
        }
        LogChange::ExtendObject => {
            bytes.extend((0..=random.below(40)).map(|byte| byte as u8));
            set_object(&store, at, &bytes);
        }
        LogChange::SwapObjects => {
            set_object(&store, at, &object(&material.store, other));
            set_object(&store, other, &bytes);
            first = at.min(other);
        }
        LogChange::RemoveObject => remove_object(&store, at),
        LogChange::CutLog => (at..=RECORDS).for_each(|number| remove_object(&store, number)),
        LogChange::ReplaceByForeign => set_object(&store, at, &object(&material.foreign, at)),
        LogChange::ReplayOther => set_object(&store, at, &object(&material.store, other)),
        LogChange::ForkRecord => set_object(&store, at, &material.fork_record(at)),
        LogChange::AddForeign => {
            first = RECORDS + 1;
            set_object(&store, first, &object(&material.foreign, first));
        }
        LogChange::AddReplay => {
            first = RECORDS + 1;
            set_object(&store, first, &bytes);
        }
    }
    DamagedLog {
        store,
        change,
        first,
    }
}

impl DamagedLog {
    fn is_cut_at_the_end(&self) -> bool {
        let is_removed = self.change == LogChange::RemoveObject && self.first == RECORDS;
        self.change == LogChange::CutLog || is_removed
    }

    fn fits_record_before(&self) -> bool {
        let is_other_beginning = self.change == LogChange::ReplaceByForeign && self.first == 1;
        self.change == LogChange::ForkRecord || is_other_beginning
    }

    /// Returns `true` if what is left is a log without a contradiction, so that only a replica that has read more can
    /// tell.
    fn is_consistent(&self) -> bool {
        let is_forked_last = self.fits_record_before() && self.first == RECORDS;
        self.is_cut_at_the_end() || is_forked_last
    }

    fn describe(&self) -> String {
        format!("{:?} at {}", self.change, self.first)
    }

    /// Reads from a place to the end or the damage. No record may be accepted that was not written.
    fn check_reader(&self, material: &LogMaterial, tail: LogTail) {
        let started = tail.next;
        let mut log = open_log(&self.store, "reader", tail);
        let failure = loop {
            let place = log.tail().next;
            match log.read_next() {
                // A whole record that fits the one before is told from the other by the one after, or by those that have
                // read the other.
                Ok(Some(_)) if self.fits_record_before() && place == self.first => {}
                Ok(Some(record)) => {
                    assert_eq!(&record, material.record(place), "{}", self.describe());
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let damage_is_ahead = self.first >= started;
        if damage_is_ahead && !self.is_consistent() {
            self.check_refusal(&mut log, failure);
        }
    }

    /// A replica at the damage must not go on, even if it has not noticed it by reading.
    fn check_refusal(&self, log: &mut SharedLog, failure: Option<LogError>) {
        if let Some(failure) = failure {
            assert!(matches!(failure, LogError::Damaged(_)), "{failure}");
            return;
        }
        assert!(log.tail().next <= self.first, "{}", self.describe());
        match log.append(vec![insertion("more")], 0) {
            Err(LogError::Damaged(_)) => {}
            other => panic!("{}: {other:?}", self.describe()),
        }
    }

    /// A replica that has read the whole log notices that its end was changed.
    fn check_replica_at_end(&self, material: &LogMaterial) {
        let end = material.record(RECORDS).tail();
        let last = crate::record_key(RECORDS);
        let is_changed = self.store.read(&last) != material.store.read(&last);
        if !is_changed && self.first <= RECORDS {
            return;
        }
        for appends in [false, true] {
            let store = clone_store(&self.store).unwrap();
            let mut log = open_log(&store, "reader", end);
            let refused = if appends {
                log.append(vec![insertion("more")], 0).map(|_| ())
            } else {
                log.read_next().map(|_| ())
            };
            let is_damaged = matches!(refused, Err(LogError::Damaged(_)));
            assert!(is_damaged, "{}: {refused:?}", self.describe());
        }
    }

    fn check_maintenance(&self, material: &LogMaterial) {
        let report = verify_log(&*self.store, 1).unwrap();
        assert_eq!(
            report.first_unreadable().is_none(),
            self.is_consistent(),
            "{}: {report:?}",
            self.describe()
        );
        if let Some(first) = report.first_unreadable() {
            // A fork is noticed at the record after it.
            let is_near = first == self.first || first == self.first + 1;
            assert!(is_near, "{}: {report:?}", self.describe());
        }
        let options = RepairOptions::default();
        let repair = repair_log(&*self.store, &material.copies, options).unwrap();
        let is_whole = self.store.list("log/") == material.store.list("log/")
            && (1..=RECORDS)
                .all(|number| object(&self.store, number) == object(&material.store, number));
        let can_be_repaired =
            self.first <= RECORDS && (!self.is_consistent() || self.is_cut_at_the_end());
        assert_eq!(is_whole, can_be_repaired, "{}: {repair:?}", self.describe());
        let reports_rest = !repair.unrepaired.is_empty();
        assert!(is_whole || reports_rest, "{}: {repair:?}", self.describe());
        if is_whole {
            assert_eq!(repair.unrepaired, [], "{}", self.describe());
            assert_eq!(
                repair.repaired.first(),
                Some(&self.first),
                "{}",
                self.describe()
            );
        }
    }
}

fn damage_logs(cases: u64) {
    let material = LogMaterial::new();
    let mut random = RandomNumbers::new(1);
    for case in 0..cases {
        let change = CHANGES[(case % CHANGES.len() as u64) as usize];
        let damaged = damage_log(&material, change, &mut random);
        damaged.check_replica_at_end(&material);
        let place = random.below(RECORDS);
        let inside = if place == 0 {
            LogTail::default()
        } else {
            material.record(place).tail()
        };
        for tail in [LogTail::default(), inside] {
            let store = clone_store(&damaged.store).unwrap();
            let reread = DamagedLog { store, ..damaged };
            reread.check_reader(&material, tail);
        }
        damaged.check_maintenance(&material);
    }
}

#[test]
fn damaged_logs_are_not_accepted() {
    damage_logs(550);
}

#[test]
#[ignore = "takes minutes"]
fn damaged_logs_are_not_accepted_in_ten_thousand_cases() {
    damage_logs(10_000);
}
