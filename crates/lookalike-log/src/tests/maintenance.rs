//! Status, pruning, repair, marks and copies.

use super::*;
use crate::copies::FolderCopies;
use crate::error::{DamageKind, LogError};
use crate::keys::record_key;
use crate::maintenance::{
    ContradictionKind, KEPT_RECORDS, RepairOptions, RepairReport, WriterRecords, find_lost_end,
    has_log, log_status, prune_log, read_first_number, repair_log, verify_log,
};
use crate::marks::{
    ReplicaMark, create_instance_name, read_mark, read_marks, remove_mark, write_mark,
};
use crate::simulation::{FaultRates, SimulatedStore};
use crate::store::{CreateOutcome, ListedObject};

fn mark(name: &str, applied: u64) -> ReplicaMark {
    ReplicaMark {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        format: 1,
        applied,
        time_us: 77,
        log: Some(LogId(5)),
        ..ReplicaMark::default()
    }
}

/// Repairs without replacing whole records at the end.
fn repair(store: &MemoryStore, copies: &dyn RecordCopies) -> RepairReport {
    repair_log(store, copies, RepairOptions::default()).unwrap()
}

/// Writes the manifest of a snapshot with its places.
fn write_manifest(store: &MemoryStore, name: &str, tail: &LogTail, end: &LogTail) {
    let manifest = serde_json::json!({ "format": 1, "name": name, "tail": tail, "end": end });
    let key = format!("snapshots/{name}/manifest.json");
    store
        .replace(&key, manifest.to_string().as_bytes())
        .unwrap();
}

/// Records that a replica has applied, or that a snapshot has, and that the log has no more are lost.
#[test]
fn lost_end_is_found_by_marks_and_snapshots() {
    let store = Arc::new(MemoryStore::new());
    let find = || find_lost_end(&*store).unwrap();
    assert_eq!(find(), None);
    let tails: Vec<LogTail> = write_log(&store, 5).iter().map(LogRecord::tail).collect();
    let known = tails[0].log;
    let write = |name: &str, applied: u64, log: Option<LogId>| {
        write_mark(
            &*store,
            &ReplicaMark {
                log,
                ..mark(name, applied)
            },
        )
        .unwrap();
    };
    write("a", 5, known);
    write("b", 3, known);
    // A mark of another log says nothing about this one.
    write("c", 9, Some(LogId(77)));
    assert_eq!(find(), None);
    store.remove(&record_key(5)).unwrap();
    let lost = find().unwrap();
    assert_eq!((lost.witness.name.as_str(), lost.witness.number), ("a", 5));
    assert_eq!(lost.kind, ContradictionKind::LostRecords { last: 4 });
    remove_mark(&*store, "a").unwrap();
    assert_eq!(find(), None);
    write_manifest(&store, "s", &tails[1], &tails[4]);
    assert_eq!(find().unwrap().witness.name, "s");
    // A log that is lost as a whole has no record that names it.
    for number in 1..=4 {
        store.remove(&record_key(number)).unwrap();
    }
    assert_eq!(
        find().unwrap().kind,
        ContradictionKind::LostRecords { last: 0 }
    );
}

/// A record that has taken the number of one that a replica has applied is found, unless a repair has put it there.
#[test]
fn other_record_at_the_end_is_found_by_its_digest() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 5);
    let object = store.read(&record_key(5)).unwrap().unwrap();
    let right = RecordDigest::compute(&object);
    assert_eq!(right, records[4].digest);
    let write = |name: &str, applied: u64, log: Option<LogId>, digest: RecordDigest| {
        let digest = Some(digest);
        let known = mark(name, applied);
        write_mark(
            &*store,
            &ReplicaMark {
                log,
                digest,
                ..known
            },
        )
        .unwrap();
    };
    let (known, other) = (Some(records[4].log), RecordDigest([7; 32]));
    write("a", 5, known, right);
    let find = || find_lost_end(&*store).unwrap();
    assert_eq!(find(), None);
    // Both marks are at the newest number that the log has, and one of another log says nothing.
    write("b", 5, known, other);
    write("c", 5, Some(LogId(77)), other);
    write("d", 4, known, other);
    let found = find().unwrap();
    assert_eq!(
        (found.witness.name.as_str(), found.witness.number),
        ("b", 5)
    );
    assert_eq!(found.kind, ContradictionKind::OtherRecord { found: right });
    // A damaged object is found by whoever reads the log.
    store.replace(&record_key(5), b"damaged").unwrap();
    assert_eq!(find(), None);
    store.replace(&record_key(5), &object).unwrap();
    let kept = format!("replaced/{:016x}-{}", 5, &other.to_string()[..16]);
    store.replace(&kept, b"kept").unwrap();
    assert_eq!(find(), None);
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
    assert_eq!(read_mark(&store, "c"), Ok(None));
    assert_eq!(read_mark(&store, "b").unwrap().unwrap().version, "9");
}

/// A mark says that its replica runs for half a minute, unless the replica has stopped.
#[test]
fn marks_tell_how_long_ago_a_replica_ran() {
    let second = 1_000_000;
    let mark = ReplicaMark {
        time_us: 100 * second,
        ..mark("a", 3)
    };
    for (now, age, runs) in [(99, 0, true), (129, 29, true), (130, 30, false)] {
        let now_us = now * second;
        assert_eq!(mark.age_seconds(now_us), age, "{now}");
        assert_eq!(mark.is_running(now_us), runs, "{now}");
    }
    let stopped = ReplicaMark {
        stopped: Some("the disk failed".to_owned()),
        ..mark
    };
    assert!(!stopped.is_running(100 * second));
    let names = [(); 2].map(|()| create_instance_name().unwrap());
    assert_ne!(names[0], names[1]);
    assert_eq!(names[0].len(), 32);
}

/// Marks, snapshots, prunings and records each show that there is a log; objects of checks do not.
#[test]
fn any_object_of_a_log_shows_that_there_is_one() {
    for (key, is_log) in [
        ("checks/a", false),
        ("claims/1", false),
        ("pruned", true),
        ("replicas/a", true),
        ("snapshots/a/news/rows", true),
        ("log/0000000000000001", true),
        ("log/0000000000000009", true),
    ] {
        let store = MemoryStore::new();
        assert_eq!(has_log(&store), Ok(false));
        store.replace(key, br#"{"before":5}"#).unwrap();
        assert_eq!(has_log(&store), Ok(is_log), "{key}");
    }
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
    for (key, bytes) in [
        ("1/news/rows", 3),
        ("1/manifest.json", 4),
        ("2/news/rows", 5),
    ] {
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
    let snapshots: Vec<_> = status
        .snapshots
        .iter()
        .map(|listed| (&*listed.name, listed.objects, listed.bytes, listed.complete))
        .collect();
    assert_eq!(snapshots, [("1", 2, 7, true), ("2", 1, 5, false)]);
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
        let number = applied as u64 + 1;
        let pruned = LogError::damaged(number, DamageKind::Pruned { before: 11 });
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
        let pruned = LogError::damaged(next, DamageKind::Pruned { before: first });
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
    let pruned = LogError::damaged(2, DamageKind::Pruned { before: 6 });
    let error = log.continue_append().unwrap_err();
    assert_eq!(error, pruned);
    assert!(
        error.to_string().contains("with an empty data directory"),
        "{error}"
    );
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
    assert!(!report.is_whole());
    let counts: Vec<_> = report.count_kinds().into_iter().collect();
    assert_eq!(counts, [("missing", 1)]);
}

/// Replicas and snapshots know records at which the log does not end any more, or has others.
#[test]
fn verification_compares_the_end_with_marks_and_snapshots() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 10);
    let mark_of = |name: &str, record: &LogRecord| ReplicaMark {
        log: Some(record.log),
        digest: Some(record.digest),
        ..mark(name, record.number)
    };
    write_mark(&*store, &mark_of("a", &records[9])).unwrap();
    write_mark(&*store, &mark_of("b", &records[3])).unwrap();
    // A mark of an older program has no digest.
    let older = ReplicaMark {
        digest: None,
        ..mark_of("older", &records[8])
    };
    write_mark(&*store, &older).unwrap();
    write_mark(&*store, &mark("empty", 0)).unwrap();
    write_manifest(&store, "s", &records[6].tail(), &records[8].tail());
    write_manifest(
        &store,
        "beginning",
        &LogTail::default(),
        &LogTail::default(),
    );
    assert!(verify_log(&*store, 1).unwrap().is_whole());
    // Another record has the number of the last one, and that of the end of the snapshot.
    set_object(&store, 9, &forge_record(Some(&records[7]), |_| ()));
    remove_object(&store, 10);
    let report = verify_log(&*store, 1).unwrap();
    let found: Vec<_> = report
        .contradictions
        .iter()
        .map(|found| {
            (
                found.kind.name(),
                &*found.witness.name,
                found.witness.number,
            )
        })
        .collect();
    assert_eq!(found, [("other_record", "s", 9), ("lost_records", "a", 10)]);
    assert_eq!((report.damages.len(), report.is_whole()), (0, false));
    let lost = report.contradictions[1].to_string();
    let expected = "the log ends with record 9 (object 'log/0000000000000009'), but the replica 'a' has applied record \
                    10 (object 'log/000000000000000a'): records are lost";
    assert_eq!(lost, expected);
    let json = serde_json::to_value(&report).unwrap();
    let other = &json["contradictions"][0];
    assert_eq!(
        (&other["witness"], &other["number"]),
        (&"snapshot".into(), &9.into())
    );
    // A verification that begins behind the end says nothing about it.
    assert!(verify_log(&*store, 50).unwrap().is_whole());
    for number in 1..=9 {
        remove_object(&store, number);
    }
    let report = verify_log(&*store, 1).unwrap();
    assert_eq!(report.count_kinds()["lost_records"], 5);
    // Another log has begun.
    write_log(&store, 20);
    let report = verify_log(&*store, 1).unwrap();
    assert_eq!(report.count_kinds()["other_log"], 5);
    assert_eq!(report.count_kinds().len(), 1);
    let reason = report.contradictions[0].to_string();
    assert!(reason.contains("another one than before"), "{reason}");
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
    let report = repair(&store, &copies);
    assert_eq!(report.repaired, [3, 10]);
    let unrepaired: Vec<_> = report
        .unrepaired
        .iter()
        .map(|records| (records.number, records.last))
        .collect();
    assert_eq!(unrepaired, [(5, 6), (8, 8)]);
    assert_eq!(report.unrepaired[0].count(), 2);
    let reasons: Vec<_> = report
        .unrepaired
        .iter()
        .map(|record| &*record.reason)
        .collect();
    assert_eq!(
        reasons,
        [
            "there is no whole copy of record 5 (object 'log/0000000000000005')",
            "record 9 (object 'log/0000000000000009') in the store does not follow the copies"
        ]
    );
    assert!(store.read(&crate::record_key(6)).unwrap().is_none());
    assert_eq!(RecordDigest::compute(&object(&store, 3)), records[2].digest);
}

/// Returns the copies of all records of a log.
fn copy_log(store: &MemoryStore, numbers: impl Iterator<Item = u64>) -> MemoryCopies {
    let copies = MemoryCopies::default();
    for number in numbers {
        copies.write_copy(number, &object(store, number)).unwrap();
    }
    copies
}

/// The last records were lost, and another replica has written others with their numbers. Only a person can tell which
/// are right, and the replaced ones are kept.
#[test]
fn repair_replaces_the_end_of_a_log_only_if_it_is_told_to() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 10);
    let copies = copy_log(&store, 1..=10);
    for number in 8..=10 {
        remove_object(&store, number);
    }
    let mut other = open_log(&store, "other", records[6].tail());
    append(&mut other, vec![insertion("other")], 2000);
    let forked = object(&store, 8);
    let report = repair(&store, &copies);
    assert_eq!((report.repaired.len(), report.replaced.len()), (0, 0));
    let unrepaired = &report.unrepaired[0];
    assert_eq!(
        (report.unrepaired.len(), unrepaired.number, unrepaired.last),
        (1, 8, 10)
    );
    assert!(
        unrepaired.reason.contains("--replace"),
        "{}",
        unrepaired.reason
    );
    assert_eq!(object(&store, 8), forked);
    let replacing = RepairOptions { replaces_end: true };
    // A chain of copies that is not whole replaces nothing.
    let torn = copy_log(&store, 1..=7);
    torn.write_copy(8, &copies.read_copy(8).unwrap().unwrap())
        .unwrap();
    torn.write_copy(10, &copies.read_copy(10).unwrap().unwrap())
        .unwrap();
    let report = repair_log(&*store, &torn, replacing).unwrap();
    assert!(report.replaced.is_empty() && object(&store, 8) == forked);
    assert!(
        report.unrepaired[0]
            .reason
            .contains("no whole copy of record 9")
    );
    let report = repair_log(&*store, &copies, replacing).unwrap();
    assert_eq!(
        (&*report.repaired, &*report.replaced),
        (&[8, 9, 10][..], &[8][..])
    );
    assert!(report.unrepaired.is_empty());
    let kept = store.list("replaced/").unwrap();
    assert_eq!(kept.len(), 1);
    assert!(
        kept[0].key.starts_with("replaced/0000000000000008-"),
        "{}",
        kept[0].key
    );
    assert_eq!(store.read(&kept[0].key).unwrap(), Some(forked));
    let report = verify_log(&*store, 1).unwrap();
    assert_eq!((report.records, report.is_whole()), (10, true));
}

/// A log that went on after another record stays, because replacing would lose records.
#[test]
fn repair_does_not_shorten_a_log() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 5);
    let copies = copy_log(&store, 1..=5);
    remove_object(&store, 5);
    let mut other = open_log(&store, "other", records[3].tail());
    append(&mut other, vec![insertion("other")], 2000);
    append(&mut other, vec![insertion("more")], 2000);
    let before = (object(&store, 5), object(&store, 6));
    let report = repair_log(&*store, &copies, RepairOptions { replaces_end: true }).unwrap();
    assert_eq!(
        (report.unrepaired[0].number, report.unrepaired[0].last),
        (5, 6)
    );
    assert!(report.unrepaired[0].reason.contains("goes on to record 6"));
    assert_eq!((object(&store, 5), object(&store, 6)), before);
    assert!(store.list("replaced/").unwrap().is_empty());
}

/// Copies of another log are refused at once; those that a directory has of an earlier log are left out.
#[test]
fn copies_of_another_log_are_refused() {
    let (store, foreign) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let records = write_log(&store, 20);
    let others = write_log(&foreign, 30);
    let error = repair_log(
        &*store,
        &copy_log(&foreign, 1..=30),
        RepairOptions::default(),
    );
    let error = error.unwrap_err();
    for log in [records[0].log, others[0].log] {
        assert!(error.message.contains(&log.to_string()), "{error}");
    }
    let mixed = copy_log(&foreign, 1..=30);
    for number in 1..=20 {
        mixed.write_copy(number, &object(&store, number)).unwrap();
    }
    remove_object(&store, 20);
    let report = repair(&store, &mixed);
    assert_eq!((&*report.repaired, report.unrepaired.len()), (&[20][..], 0));
}

/// All objects are gone, and the copies begin where the log had been pruned.
#[test]
fn emptied_store_is_repaired_as_far_as_there_are_copies() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 9);
    let copies = copy_log(&store, 4..=9);
    let mut log = open_log(&store, "a", records[8].tail());
    assert_eq!(log.read_next(), Ok(None));
    for number in 1..=9 {
        remove_object(&store, number);
    }
    // The record is written, because its neighbours are read at the same time, and it is not acknowledged.
    let error = log.append(vec![insertion("lost")], 3000).unwrap_err();
    assert_eq!(error, LogError::damaged(9, DamageKind::Lost));
    assert!(!log.has_pending_append());
    let message = error.to_string();
    assert!(
        message.contains("the shared log has lost records"),
        "{message}"
    );
    assert!(
        message.contains("lookalike store log repair URL --from DIR"),
        "{message}"
    );
    let report = repair(&store, &copies);
    assert_eq!(report.repaired, [4, 5, 6, 7, 8, 9]);
    assert_eq!(
        (report.unrepaired[0].number, report.unrepaired[0].last),
        (1, 3)
    );
    let mut log = open_log(&store, "a", records[8].tail());
    assert_eq!(read_all(&mut log).unwrap().len(), 1);
    append(&mut log, vec![insertion("again")], 4000);
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
    let error = repair_log(&*store, &copies, RepairOptions::default()).unwrap_err();
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
    assert_eq!(repair(&store, &*copies).repaired, [2, 6]);
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

/// Copies of another log are removed when a log begins, and those of the same log stay, even if the last one is damaged.
#[test]
fn copies_of_another_log_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let copies = Arc::new(FolderCopies::open(folder.path()).unwrap());
    let store = Arc::new(MemoryStore::new());
    let mut log = open_log(&store, "a", LogTail::default()).with_copies(Arc::clone(&copies) as _);
    let records: Vec<_> = (0..3)
        .map(|at| append(&mut log, Vec::new(), 1000 + at))
        .collect();
    copies.write_copy(4, b"cut").unwrap();
    assert_eq!(copies.remove_foreign(Some(records[0].log)).unwrap(), 0);
    assert_eq!(copies.last_number().unwrap(), Some(4));
    let other = LogId(records[0].log.0 ^ 1);
    assert_eq!(copies.remove_foreign(Some(other)).unwrap(), 4);
    assert_eq!(copies.last_number().unwrap(), None);
    copies.write_copy(1, b"x").unwrap();
    assert_eq!(copies.remove_foreign(None).unwrap(), 1);
}

/// The folder of copies is listed only when there is something to remove.
#[test]
fn copies_are_removed_once_for_each_number() {
    let folder = tempfile::tempdir().unwrap();
    let copies = FolderCopies::open(folder.path()).unwrap();
    copies.write_copy(5, b"x").unwrap();
    copies.remove_before(6).unwrap();
    copies.write_copy(5, b"x").unwrap();
    copies.remove_before(6).unwrap();
    assert_eq!(copies.last_number().unwrap(), Some(5));
    copies.remove_before(7).unwrap();
    assert_eq!(copies.last_number().unwrap(), None);
}

/// A store in which another pruning sets the number back after this one has read it.
#[derive(Debug)]
struct RacingStore(MemoryStore);

impl LogStore for RacingStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        self.0.create(key, bytes)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(key)
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.0.replace(key, bytes)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.0.list(prefix)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.0.replace("pruned", br#"{"before":2}"#)?;
        self.0.remove(key)
    }
}

/// Two prunings at once leave the larger number.
#[test]
fn smaller_number_of_another_pruning_does_not_stay() {
    let memory = Arc::new(MemoryStore::new());
    write_log(&memory, KEPT_RECORDS + 20);
    let store = RacingStore(Arc::into_inner(memory).unwrap());
    assert_eq!(prune_log(&store, 11).unwrap().removed, 10);
    assert_eq!(read_first_number(&store), Ok(11));
}
