//! Tests of whole logs.

mod corruption;
mod damage;
mod interleaving;
mod maintenance;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::copies::RecordCopies;
use crate::entry::{EntryKind, LogEntry};
use crate::record::{LogId, LogRecord, LogTail, RecordDigest, RecordHeader, encode_record};
use crate::shared_log::{AppendOutcome, SharedLog};
use crate::simulation::MemoryStore;
use crate::store::{LogStore, StoreError};

fn entry(kind: EntryKind, subject: &str, body: &str) -> LogEntry {
    LogEntry {
        kind,
        subject: subject.to_owned(),
        body: body.as_bytes().to_owned(),
    }
}

fn insertion(body: &str) -> LogEntry {
    entry(EntryKind::Insert, "news", body)
}

fn open_log(store: &Arc<MemoryStore>, replica: &str, tail: LogTail) -> SharedLog {
    SharedLog::open(Arc::clone(store) as Arc<dyn LogStore>, replica, tail)
}

/// Appends a record that nobody overtakes.
fn append(log: &mut SharedLog, entries: Vec<LogEntry>, now_us: i64) -> LogRecord {
    match log.append(entries, now_us).unwrap() {
        AppendOutcome::Appended(record) => record,
        AppendOutcome::Overtaken { record, .. } => panic!("overtaken by {}", record.writer),
    }
}

/// Writes a log of `count` records with one writer and returns them.
fn write_log(store: &Arc<MemoryStore>, count: u64) -> Vec<LogRecord> {
    let mut log = open_log(store, "writer", LogTail::default());
    (1..=count)
        .map(|number| append(&mut log, vec![insertion(&format!("text {number}"))], 1000))
        .collect()
}

fn object(store: &MemoryStore, number: u64) -> Vec<u8> {
    store.read(&crate::record_key(number)).unwrap().unwrap()
}

fn set_object(store: &MemoryStore, number: u64, object: &[u8]) {
    store.replace(&crate::record_key(number), object).unwrap();
}

fn remove_object(store: &MemoryStore, number: u64) {
    store.remove(&crate::record_key(number)).unwrap();
}

/// Encodes a record after `previous`, with the changes of `change`.
fn forge_record(previous: Option<&LogRecord>, change: impl FnOnce(&mut RecordHeader)) -> Vec<u8> {
    let mut header = RecordHeader {
        number: previous.map_or(1, |previous| previous.number + 1),
        log: previous.map_or(LogId(7), |previous| previous.log),
        time_us: previous.map_or(0, |previous| previous.time_us),
        nonce: 9,
        previous: previous.map_or(RecordDigest::ZERO, |previous| previous.digest),
        writer: "forger".to_owned(),
    };
    change(&mut header);
    encode_record(&header, &[insertion("forged")]).unwrap()
}

/// Copies in memory.
#[derive(Debug, Default)]
struct MemoryCopies(Mutex<BTreeMap<u64, Vec<u8>>>);

impl RecordCopies for MemoryCopies {
    fn read_copy(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(&number).cloned())
    }

    fn write_copy(&self, number: u64, object: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(number, object.to_owned());
        Ok(())
    }

    fn last_number(&self) -> io::Result<Option<u64>> {
        Ok(self.0.lock().unwrap().keys().next_back().copied())
    }

    fn remove_before(&self, number: u64) -> io::Result<()> {
        self.0.lock().unwrap().retain(|copy, _| *copy >= number);
        Ok(())
    }
}

/// Reads a log to its end.
fn read_all(log: &mut SharedLog) -> Result<Vec<LogRecord>, crate::LogError> {
    let mut records = Vec::new();
    while let Some(record) = log.read_next()? {
        records.push(record);
    }
    Ok(records)
}

/// Copies all objects of a store.
fn clone_store(store: &MemoryStore) -> Result<Arc<MemoryStore>, StoreError> {
    let clone = MemoryStore::new();
    for listed in store.list("")? {
        let object = store.read(&listed.key)?.unwrap_or_default();
        clone.replace(&listed.key, &object)?;
    }
    Ok(Arc::new(clone))
}
