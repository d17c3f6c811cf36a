//! Status, pruning, repair, marks and copies.

use super::*;
use crate::copies::FolderCopies;
use crate::error::LogError;
use crate::keys::record_key;
use crate::maintenance::{
    KEPT_RECORDS, ListedSnapshot, WriterRecords, log_status, prune_log, repair_log, verify_log,
};
use crate::marks::{ReplicaMark, read_marks, remove_mark, write_mark};
use crate::simulation::{FaultRates, SimulatedStore};

fn mark(name: &str, applied: u64) -> ReplicaMark {
    ReplicaMark {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        format: 1,
        applied,
        time_us: 77,
        log: Some(LogId(5)),
    }
}

#[test]
fn marks_are_read_by_name() {
    let store = MemoryStore::new();
    assert_eq!(read_marks(&store), Ok(Vec::new()));
    let marks = [mark("a", 3), mark("b", 4)];
    for mark in [&marks[1], &mark("a", 1), &marks[0]] {
        write_mark(&store, mark).unwrap();
    }
    assert_eq!(read_marks(&store).unwrap(), marks);
    assert!(write_mark(&store, &mark("../a", 1)).is_err());
    // Fields of newer programs are ignored, and a log may be absent.
    let newer = br#"{"name":"b","version":"9","format":4,"applied":0,"time_us":1,"more":[]}"#;
    store.replace("replicas/b", newer).unwrap();
    assert_eq!(read_marks(&store).unwrap()[1].log, None);
    remove_mark(&store, "a").unwrap();
    assert_eq!(read_marks(&store).unwrap().len(), 1);
    store.replace("replicas/c", b"{").unwrap();
    let error = read_marks(&store).unwrap_err();
    assert!(error.message.contains("'replicas/c'"), "{error}");
}

#[test]
fn status_counts_records_writers_and_lags() {
    let store = Arc::new(MemoryStore::new());
    assert_eq!(log_status(&*store).unwrap().last, None);
    let records = write_log(&store, 30);
    let mut other = open_log(&store, "other", records[29].tail());
    let last = append(&mut other, Vec::new(), 5000);
    set_object(&store, 7, b"damaged");
    for (name, applied) in [("a", 31), ("b", 20)] {
        write_mark(&*store, &mark(name, applied)).unwrap();
    }
    for (key, bytes) in [("news/1/rows", 3), ("news/1/texts", 4), ("news/2/rows", 5)] {
        let bytes = vec![0; bytes];
        store.replace(&format!("snapshots/{key}"), &bytes).unwrap();
    }
    let status = log_status(&*store).unwrap();
    assert_eq!(
        (status.first, status.last, status.records),
        (Some(1), Some(31), 31)
    );
    assert_eq!(
        (status.log, status.last_time_us),
        (Some(last.log), Some(5000))
    );
    assert_eq!((status.pruned_before, status.unreadable), (1, 1));
    let bytes: usize = (1..=31).map(|number| object(&store, number).len()).sum();
    assert_eq!(status.bytes, bytes as u64);
    let writers = [("other", 1), ("writer", 29)].map(|(writer, records)| WriterRecords {
        writer: writer.to_owned(),
        format: 1,
        records,
    });
    assert_eq!(status.writers, writers);
    let lags: Vec<_> = status.replicas.iter().map(|replica| replica.lag).collect();
    assert_eq!(lags, [0, 11]);
    let snapshots = [("news/1", 2, 7), ("news/2", 1, 5)];
    let snapshots = snapshots.map(|(name, objects, bytes)| ListedSnapshot {
        name: name.to_owned(),
        objects,
        bytes,
    });
    assert_eq!(status.snapshots, snapshots);
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(json["replicas"][1]["name"], "b");
    assert_eq!(json["replicas"][1]["lag"], 11);
}

#[test]
fn pruning_keeps_the_tail_and_stops_replicas_that_need_more() {
    let store = Arc::new(MemoryStore::new());
    let count = KEPT_RECORDS + 10;
    let records = write_log(&store, count);
    let error = prune_log(&*store, 12).unwrap_err();
    assert!(
        error.message.contains("11 is the largest number"),
        "{error}"
    );
    assert_eq!(prune_log(&*store, 1).unwrap().removed, 0);
    assert!(store.read("pruned").unwrap().is_none());
    let report = prune_log(&*store, 11).unwrap();
    assert_eq!(
        (report.removed, report.before, report.last),
        (10, 11, count)
    );
    // A smaller number removes nothing and brings nothing back.
    let again = prune_log(&*store, 5).unwrap();
    assert_eq!((again.removed, again.before), (0, 11));
    // A replica that has applied what was removed goes on.
    let mut log = open_log(&store, "reader", records[9].tail());
    assert_eq!(read_all(&mut log).unwrap().len() as u64, KEPT_RECORDS);
    append(&mut log, Vec::new(), 0);
    // One that has not must be restored, whether it reads or writes.
    for applied in [0, 1, 9] {
        let tail = match applied {
            0 => LogTail::default(),
            _ => records[applied - 1].tail(),
        };
        let next = applied as u64 + 1;
        let pruned = LogError::Pruned { next, first: 11 };
        let mut log = open_log(&store, "reader", tail);
        assert_eq!(log.read_next().unwrap_err(), pruned, "{applied}");
        let mut log = open_log(&store, "reader", tail);
        let refused = log.append(vec![insertion("more")], 0);
        assert_eq!(refused.unwrap_err(), pruned, "{applied}");
    }
    let report = verify_log(&*store, 1).unwrap();
    assert_eq!((report.first, report.records), (11, KEPT_RECORDS + 1));
    assert!(report.damages.is_empty());
    let report = verify_log(&*store, count).unwrap();
    assert_eq!(
        (report.first, report.last, report.records),
        (count, count + 1, 2)
    );
    assert_eq!(log_status(&*store).unwrap().pruned_before, 11);
}

/// A replica that stood still while others wrote and pruned the log does not begin it anew at its place, where the number
/// is free again: not at once, not after a restart, and neither does one that finds what the first one wrote there.
#[test]
fn pruned_place_is_not_written_again() {
    for applied in [0, 3] {
        let store = Arc::new(MemoryStore::new());
        let records = write_log(&store, applied);
        let tail = records
            .last()
            .map_or_else(LogTail::default, LogRecord::tail);
        let [mut waiting, mut other] = ["waiting", "other"].map(|name| {
            let mut log = open_log(&store, name, tail);
            assert_eq!(log.read_next(), Ok(None));
            log
        });
        let mut writer = open_log(&store, "writer", tail);
        for _ in 0..KEPT_RECORDS + 5 {
            append(&mut writer, vec![insertion("a")], 0);
        }
        let first = applied + 5;
        prune_log(&*store, first).unwrap();
        let next = applied + 1;
        let pruned = LogError::Pruned { next, first };
        let refused = waiting.append(vec![insertion("b")], 0).unwrap_err();
        assert_eq!(refused, pruned);
        // It noticed too late, so that the number has a record.
        assert!(store.read(&record_key(next)).unwrap().is_some());
        let mut again = open_log(&store, "waiting", tail);
        assert_eq!(again.read_next().unwrap_err(), pruned);
        let mut again = open_log(&store, "waiting", tail);
        let refused = again.append(vec![insertion("b")], 0).unwrap_err();
        assert_eq!(refused, pruned);
        other.forget_answer();
        assert_eq!(other.read_next().unwrap_err(), pruned);
        assert!(verify_log(&*store, 1).unwrap().damages.is_empty());
    }
}

/// A replica that could not reach the store looks for what was removed meanwhile before it writes.
#[test]
fn outage_does_not_hide_a_pruning() {
    let store = Arc::new(SimulatedStore::new(1, FaultRates::with_all(0.0)));
    let open = |name: &str, tail| SharedLog::open(Arc::clone(&store) as _, name, tail);
    let mut writer = open("writer", LogTail::default());
    append(&mut writer, vec![insertion("a")], 0);
    let mut log = open("a", *writer.tail());
    assert_eq!(log.read_next(), Ok(None));
    store.begin_outage(1);
    let failed = log.append(vec![insertion("b")], 0).unwrap_err();
    assert!(failed.is_retryable(), "{failed}");
    for _ in 0..KEPT_RECORDS + 5 {
        append(&mut writer, vec![insertion("c")], 0);
    }
    prune_log(&*store, 6).unwrap();
    let pruned = LogError::Pruned { next: 2, first: 6 };
    assert_eq!(log.continue_append().unwrap_err(), pruned);
    assert!(store.object(&record_key(2)).is_none());
}

#[test]
fn verification_lists_every_damage() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 100);
    remove_object(&store, 3);
    remove_object(&store, 4);
    set_object(&store, 40, b"LAlg");
    set_object(&store, 70, &forge_record(Some(&records[68]), |_| ()));
    remove_object(&store, 99);
    let report = verify_log(&*store, 1).unwrap();
    let numbers: Vec<_> = report.damages.iter().map(|damage| damage.number).collect();
    assert_eq!(numbers, [3, 4, 40, 71, 99]);
    let kinds: Vec<_> = report
        .damages
        .iter()
        .map(|damage| damage.kind.name())
        .collect();
    let expected = ["missing", "missing", "truncated", "broken_chain", "missing"];
    assert_eq!(kinds, expected);
    assert_eq!((report.first, report.last, report.records), (1, 100, 95));
    assert_eq!(report.first_unreadable(), Some(3));
    assert_eq!(report.log, Some(records[0].log));
    let report = verify_log(&*store, 72).unwrap();
    assert_eq!(report.first_unreadable(), Some(99));
}

/// A run of damaged objects is repaired together or not at all, and never by a copy that does not fit.
#[test]
fn repair_uses_only_copies_that_fit() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 10);
    let copies = MemoryCopies::default();
    for number in [3, 4, 6, 10] {
        copies.write_copy(number, &object(&store, number)).unwrap();
    }
    // Of 5 there is no copy, and the copy of 8 is of another history.
    copies
        .write_copy(8, &forge_record(Some(&records[6]), |_| ()))
        .unwrap();
    for number in [3, 5, 6, 8, 10] {
        remove_object(&store, number);
    }
    let report = repair_log(&*store, &copies).unwrap();
    assert_eq!(report.repaired, [3, 10]);
    let unrepaired: Vec<_> = report
        .unrepaired
        .iter()
        .map(|record| record.number)
        .collect();
    assert_eq!(unrepaired, [5, 6, 8]);
    let reasons: Vec<_> = report
        .unrepaired
        .iter()
        .map(|record| &*record.reason)
        .collect();
    assert_eq!(reasons[0], "there is no whole copy of record 5");
    assert_eq!(
        reasons[2],
        "record 9 in the store does not follow the copies"
    );
    assert!(store.read(&crate::record_key(6)).unwrap().is_none());
    assert_eq!(RecordDigest::compute(&object(&store, 3)), records[2].digest);
}

#[test]
fn repair_leaves_records_of_newer_programs() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 2);
    let copies = MemoryCopies::default();
    copies.write_copy(2, &object(&store, 2)).unwrap();
    let mut newer = forge_record(Some(&records[0]), |_| ());
    newer[4] = 2;
    let content = newer.len() - 32;
    let checksum = RecordDigest::compute(&newer[..content]);
    newer.truncate(content);
    newer.extend_from_slice(&checksum.0);
    set_object(&store, 2, &newer);
    let error = repair_log(&*store, &copies).unwrap_err();
    assert!(error.message.contains("format version 2"), "{error}");
    assert_eq!(object(&store, 2), newer);
    let report = verify_log(&*store, 1).unwrap();
    assert_eq!(
        (report.newer.len(), report.first_unreadable()),
        (1, Some(2))
    );
}

#[test]
fn copies_of_what_a_replica_reads_and_writes_repair_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copies");
    let copies = Arc::new(FolderCopies::open(&path).unwrap());
    assert_eq!(copies.last_number().unwrap(), None);
    let store = Arc::new(MemoryStore::new());
    write_log(&store, 5);
    let shared = Arc::clone(&copies) as Arc<dyn RecordCopies>;
    let mut log = open_log(&store, "reader", LogTail::default()).with_copies(shared);
    read_all(&mut log).unwrap();
    append(&mut log, Vec::new(), 0);
    assert_eq!(copies.last_number().unwrap(), Some(6));
    let last = object(&store, 6);
    for number in [2, 6] {
        remove_object(&store, number);
    }
    assert_eq!(repair_log(&*store, &*copies).unwrap().repaired, [2, 6]);
    assert_eq!(object(&store, 6), last);
    copies.remove_before(6).unwrap();
    assert_eq!(copies.read_copy(5).unwrap(), None);
    assert_eq!(copies.read_copy(6).unwrap(), Some(last));
    std::fs::write(path.join("0000000000000007.incomplete"), b"x").unwrap();
    let reopened = FolderCopies::open(&path).unwrap();
    assert_eq!(reopened.last_number().unwrap(), Some(6));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    // A copy that cannot be written is reported, and the log goes on.
    drop(folder);
    append(&mut log, Vec::new(), 0);
    assert!(log.take_copy_error().is_some());
    assert!(log.take_copy_error().is_none());
}
