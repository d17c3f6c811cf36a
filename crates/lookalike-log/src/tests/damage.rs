//! One test for each kind of damage, as a replica meets it.

use sha2::{Digest, Sha256};

use super::*;
use crate::error::{DamageKind, LogDamage, LogError, NewerFeature};
use crate::simulation::RandomNumbers;

/// Reads the second of three records after `change` has damaged it, and returns the error.
fn read_damaged(change: impl FnOnce(&[LogRecord], Vec<u8>) -> Vec<u8>) -> LogError {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 3);
    let damaged = change(&records, object(&store, 2));
    set_object(&store, 2, &damaged);
    let mut log = open_log(&store, "reader", LogTail::default());
    assert_eq!(log.read_next().unwrap().as_ref(), Some(&records[0]));
    let error = log.read_next().unwrap_err();
    // The log refuses to go on, even if the object is whole again.
    assert_eq!(log.read_next().unwrap_err(), error);
    assert_eq!(log.append(vec![insertion("more")], 0).unwrap_err(), error);
    assert!(!log.has_pending_append() && !error.is_retryable());
    assert_eq!(log.tail(), &records[0].tail());
    let message = error.to_string();
    assert!(message.contains("'log/0000000000000002'"), "{message}");
    error
}

fn damage_kind(error: LogError) -> DamageKind {
    let message = error.to_string();
    match error {
        LogError::Damaged(LogDamage { number: 2, kind }) => {
            assert!(
                message.contains("lookalike store log verify URL"),
                "{message}"
            );
            kind
        }
        other => panic!("{other}"),
    }
}

/// Puts the checksum of its content at the end of an object.
fn seal_object(object: &mut Vec<u8>) {
    let content = object.len() - 32;
    let checksum = Sha256::digest(&object[..content]);
    object.truncate(content);
    object.extend_from_slice(&checksum);
}

#[test]
fn truncated_objects_are_told_from_changed_ones() {
    let least = 4 + 4 + 16 + 8 + 8 + 16 + 32 + 2 + 4 + 4 + 4 + 32;
    for length in [0, 1, 3, 4, 50, least - 1] {
        let kind = damage_kind(read_damaged(|_, object| object[..length].to_vec()));
        let (bytes, expected) = (length as u64, least as u64);
        assert_eq!(kind, DamageKind::Truncated { bytes, expected });
    }
    let mut whole = 0;
    let kind = damage_kind(read_damaged(|_, object| {
        whole = object.len() as u64;
        object[..object.len() - 1].to_vec()
    }));
    let bytes = whole - 1;
    assert_eq!(
        kind,
        DamageKind::Truncated {
            bytes,
            expected: whole
        }
    );
    assert!(kind.to_string().contains("truncated to"), "{kind}");
}

#[test]
fn every_changed_bit_is_noticed() {
    let bits = {
        let store = Arc::new(MemoryStore::new());
        write_log(&store, 2);
        object(&store, 2).len() * 8
    };
    // The size varies by a few bytes, because the digest before and the nonce do not.
    for bit in (0..bits).step_by(13) {
        let kind = damage_kind(read_damaged(|_, mut object| {
            let at = bit / 8 % object.len();
            object[at] ^= 1 << (bit % 8);
            object
        }));
        let expected = match kind {
            DamageKind::NotARecord => bit < 32,
            // A larger size of writer or entries looks as if something were cut.
            DamageKind::Checksum | DamageKind::Truncated { .. } => bit >= 32,
            other => panic!("bit {bit}: {other}"),
        };
        assert!(expected, "bit {bit}");
    }
}

#[test]
fn appended_bytes_are_damage() {
    let kind = damage_kind(read_damaged(|_, object| [&object[..], b"x"].concat()));
    assert_eq!(kind, DamageKind::Checksum);
}

#[test]
fn other_files_are_no_records() {
    let kind = damage_kind(read_damaged(|_, _| b"{\"message\":\"Not Found\"}".to_vec()));
    assert_eq!(kind, DamageKind::NotARecord);
}

#[test]
fn copies_of_other_numbers_are_noticed() {
    let kind = damage_kind(read_damaged(|records, _| {
        forge_record(Some(&records[0]), |header| header.number = 3)
    }));
    assert_eq!(kind, DamageKind::WrongNumber { found: 3 });
}

#[test]
fn records_of_other_logs_are_noticed() {
    let mut log = None;
    let kind = damage_kind(read_damaged(|records, _| {
        log = Some(records[0].log);
        forge_record(Some(&records[0]), |header| header.log = LogId(1))
    }));
    let expected = log.unwrap();
    let found = LogId(1);
    assert_eq!(kind, DamageKind::ForeignLog { found, expected });
    assert!(kind.to_string().contains(&"0".repeat(31)), "{kind}");
}

#[test]
fn records_that_follow_another_one_are_noticed() {
    let mut expected = None;
    let kind = damage_kind(read_damaged(|records, _| {
        expected = Some(records[0].digest);
        forge_record(Some(&records[0]), |header| header.previous.0[5] ^= 1)
    }));
    let expected = expected.unwrap();
    let mut found = expected;
    found.0[5] ^= 1;
    assert_eq!(kind, DamageKind::BrokenChain { found, expected });
}

#[test]
fn records_that_go_back_in_time_are_noticed() {
    let kind = damage_kind(read_damaged(|records, _| {
        forge_record(Some(&records[0]), |header| header.time_us = 999)
    }));
    let (found, previous) = (999, 1000);
    assert_eq!(kind, DamageKind::TimeGoesBack { found, previous });
    // The same time is no damage, although the record was forged.
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 1);
    set_object(&store, 2, &forge_record(Some(&records[0]), |_| ()));
    let mut log = open_log(&store, "reader", LogTail::default());
    assert_eq!(read_all(&mut log).unwrap().len(), 2);
}

#[test]
fn sizes_and_counts_that_contradict_the_entries_are_noticed() {
    // Places of the fields behind the header of 88 bytes and the name `forger`.
    let (count, unpacked, packed) = (96, 100, 104);
    for (place, value) in [
        (count, 0u32),
        (count, 2),
        (unpacked, 0),
        (unpacked, 16),
        (unpacked, 18),
        (unpacked, 1 << 20),
        (unpacked, u32::MAX),
        (packed, 1),
        (packed, u32::MAX),
    ] {
        let kind = damage_kind(read_damaged(|records, _| {
            let mut object = forge_record(Some(&records[0]), |_| ());
            object[place..place + 4].copy_from_slice(&value.to_le_bytes());
            seal_object(&mut object);
            object
        }));
        let is_malformed = matches!(kind, DamageKind::MalformedEntries { .. });
        assert!(is_malformed, "{place} {value}: {kind}");
    }
    let kind = damage_kind(read_damaged(|records, _| {
        let mut object = forge_record(Some(&records[0]), |_| ());
        object[100..104].copy_from_slice(&u32::MAX.to_le_bytes());
        seal_object(&mut object);
        object
    }));
    assert!(
        kind.to_string().contains("268435456 is the limit"),
        "{kind}"
    );
}

/// Any bytes with the right checksum are a record of the expected number, damage or a newer version.
#[test]
fn sealed_changes_are_read_without_a_panic() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 1);
    let sealed = forge_record(Some(&records[0]), |_| ());
    let mut random = RandomNumbers::new(3);
    let mut accepted = 0;
    for case in 0..20_000 {
        let mut object = sealed.clone();
        for _ in 0..=random.below(3) {
            let content = object.len() as u64 - 32;
            // Fields have places from 4 on; sizes are behind the writer.
            let place = 4 + random.below(content - 4) as usize;
            match random.below(6) {
                0 => drop(object.remove(place)),
                1 => object.insert(place, random.below(256) as u8),
                _ => object[place] = random.below(256) as u8,
            }
        }
        seal_object(&mut object);
        match LogRecord::decode(2, &object) {
            Ok(record) => {
                accepted += 1;
                assert_eq!(record.number, 2, "case {case}");
                assert_eq!(record.digest, RecordDigest::compute(&object));
            }
            Err(LogError::Store(error)) => panic!("case {case}: {error}"),
            Err(LogError::Damaged(_) | LogError::NewerVersion { .. }) => {}
        }
    }
    // Times, nonces, digests and names have no rule of their own.
    assert!((1000..19_000).contains(&accepted), "{accepted}");
}

#[test]
fn newer_records_ask_for_an_upgrade() {
    let error = read_damaged(|records, _| {
        let mut object = forge_record(Some(&records[0]), |_| ());
        object[4..8].copy_from_slice(&2u32.to_le_bytes());
        seal_object(&mut object);
        object
    });
    let feature = NewerFeature::Format(2);
    assert_eq!(error, LogError::NewerVersion { number: 2, feature });
    assert!(
        error.to_string().ends_with("upgrade this replica"),
        "{error}"
    );
    let error = read_damaged(|records, _| {
        let mut object = forge_record(Some(&records[0]), |_| ());
        let mut unpacked = vec![u8::MAX];
        unpacked.extend_from_slice(&[1, 0, 0, 0, 0, 0, b'a']);
        let frame = zstd::bulk::compress(&unpacked, 1).unwrap();
        object.truncate(96);
        object.extend_from_slice(&1u32.to_le_bytes());
        object.extend_from_slice(&8u32.to_le_bytes());
        object.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        object.extend_from_slice(&frame);
        object.extend_from_slice(&[0; 32]);
        seal_object(&mut object);
        object
    });
    let feature = NewerFeature::EntryKind(u8::MAX);
    assert_eq!(error, LogError::NewerVersion { number: 2, feature });
    assert!(error.to_string().contains("kind 255"), "{error}");
}

#[test]
fn missing_records_are_noticed_while_others_follow() {
    let store = Arc::new(MemoryStore::new());
    write_log(&store, 20);
    remove_object(&store, 5);
    let mut log = open_log(&store, "reader", LogTail::default());
    // The records before the gap are read.
    for number in 1..=4 {
        assert_eq!(log.read_next().unwrap().unwrap().number, number);
    }
    let error = log.read_next().unwrap_err();
    assert_eq!(error, LogError::damaged(5, DamageKind::Missing));
    // The place is before the missing record: polling looks beyond it from time to time.
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 3);
    remove_object(&store, 2);
    let mut log = open_log(&store, "reader", records[0].tail());
    let error = (0..100).find_map(|_| log.read_next().err()).unwrap();
    assert_eq!(error, LogError::damaged(2, DamageKind::Missing));
}

#[test]
fn appending_into_a_gap_is_not_acknowledged() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 3);
    remove_object(&store, 2);
    let mut log = open_log(&store, "writer-2", records[0].tail());
    let error = log.append(vec![insertion("gap")], 0).unwrap_err();
    let LogError::Damaged(LogDamage { number: 3, kind }) = error else {
        panic!("{error}");
    };
    assert!(matches!(kind, DamageKind::BrokenChain { .. }), "{kind}");
    assert!(!log.has_pending_append());
}

#[test]
fn cut_logs_are_noticed_by_replicas_that_have_read_them() {
    for removed in [2, 3] {
        let store = Arc::new(MemoryStore::new());
        let records = write_log(&store, 3);
        for number in removed..=3 {
            remove_object(&store, number);
        }
        let missing = LogError::damaged(3, DamageKind::Lost);
        let mut log = open_log(&store, "reader", records[2].tail());
        assert_eq!(log.read_next().unwrap_err(), missing);
        let mut log = open_log(&store, "writer-2", records[2].tail());
        assert_eq!(log.append(vec![insertion("cut")], 0).unwrap_err(), missing);
        // Nothing was written after the cut.
        assert!(store.read("log/0000000000000004").unwrap().is_none());
    }
}

/// A replica at the end of the log notices that the last record was replaced, while it polls and when it appends.
#[test]
fn replaced_last_records_are_noticed() {
    let store = Arc::new(MemoryStore::new());
    let mut polling = open_log(&store, "polling", LogTail::default());
    let mut writing = open_log(&store, "writing", LogTail::default());
    write_log(&store, 2);
    let records = read_all(&mut polling).unwrap();
    read_all(&mut writing).unwrap();
    let forged = forge_record(Some(&records[0]), |_| ());
    set_object(&store, 2, &forged);
    let (found, expected) = (RecordDigest::compute(&forged), records[1].digest);
    let replaced = LogError::damaged(2, DamageKind::Replaced { found, expected });
    let mut opened = open_log(&store, "opened", records[1].tail());
    assert_eq!(opened.read_next().unwrap_err(), replaced);
    let noticed = (0..100).find_map(|_| polling.read_next().err());
    assert_eq!(noticed, Some(replaced.clone()));
    assert_eq!(
        writing.append(vec![insertion("a")], 0).unwrap_err(),
        replaced
    );
}

/// Another log has taken the place of the one that a replica follows, and is shorter, as long or longer.
#[test]
fn other_log_below_the_url_is_named_as_that() {
    let records = write_log(&Arc::new(MemoryStore::new()), 5);
    for length in [1, 5, 6, 9] {
        let store = Arc::new(MemoryStore::new());
        let others = write_log(&store, length);
        let tail = records[4].tail();
        for appends in [false, true] {
            let mut log = open_log(&clone_store(&store).unwrap(), "reader", tail);
            let refused = if appends {
                log.append(vec![insertion("more")], 0).map(|_| ())
            } else {
                log.read_next().map(|_| ())
            };
            let error = refused.unwrap_err();
            let LogError::Damaged(LogDamage { kind, .. }) = &error else {
                panic!("{error}");
            };
            let (found, expected) = (others[0].log, records[0].log);
            assert_eq!(kind, &DamageKind::ForeignLog { found, expected });
            assert!(
                error
                    .to_string()
                    .starts_with("the log is another one than before")
            );
        }
    }
}

#[test]
fn damage_in_json_has_its_number_its_kind_and_a_reason() {
    let damage = LogDamage {
        number: 18,
        kind: DamageKind::Missing,
    };
    let json = serde_json::to_value(&damage).unwrap();
    assert_eq!(json["number"], 18);
    assert_eq!(json["key"], "log/0000000000000012");
    assert_eq!(json["kind"], "missing");
    assert!(
        json["reason"]
            .as_str()
            .unwrap()
            .starts_with("it is missing")
    );
}
