//! Bits that change on the disk: they are noticed, or have no effect.

use std::sync::Arc;

use lookalike_oracle::effort::choose_effort;
use lookalike_store::{Collection, Disk, InsertAnswer, verify_collection};

use crate::disk::Simulated;
use crate::power::{Call, script};
use crate::support::{Hand, Random, prepare};

#[test]
fn flipped_bit_is_detected_or_harmless() {
    flip_bits(false, choose_effort(14, 120));
}

#[test]
fn flipped_bit_after_compaction_is_detected() {
    flip_bits(true, choose_effort(14, 120));
}

fn flip_bits(is_compacted: bool, flips: usize) {
    let script = script(21, 100, false);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    let mut asked = Vec::new();
    for call in 0..90 {
        script.call(&collection, &hand, call).unwrap();
        if let (_, Call::Insert(documents)) = &script.calls[call] {
            asked.extend(documents.clone());
        }
    }
    if is_compacted {
        assert!(collection.compact_all(&mut || true).unwrap() >= 1);
    }
    let got = |collection: &Collection, id: &str| collection.find_document(id);
    let query = |collection: &Collection, at: usize| {
        let prepared = prepare(collection, vec![asked[at].clone()]);
        collection.query_document(&prepared[0])
    };
    let expected: Vec<_> = asked
        .iter()
        .map(|it| got(&collection, &it.id).unwrap())
        .collect();
    let answers: Vec<InsertAnswer> = (0..asked.len())
        .map(|at| query(&collection, at).unwrap())
        .collect();
    drop(collection);
    let disk = disk.copy();
    let mut random = Random(5);
    let (mut noticed, mut by_verify) = (0, 0);
    for name in disk.file_names().unwrap() {
        let length = disk.length(&name);
        for flip in 0..flips {
            let damaged = disk.copy();
            // Half of the flips hit the region where most of the content is.
            let within = if flip % 2 == 0 {
                length
            } else {
                length.min(20_000)
            };
            let (at, bit) = (random.below(within), random.below(8) as u8);
            damaged.flip(&name, at, bit);
            let report = verify_collection(&damaged.copy());
            let clean = report.is_ok_and(|report| report.findings.is_empty());
            by_verify += usize::from(!clean);
            let Ok(collection) = Collection::open_existing(Arc::new(damaged), hand.options())
            else {
                noticed += 1;
                assert!(
                    !clean,
                    "verify finds nothing wrong with byte {at} of '{name}'"
                );
                continue;
            };
            for (document, expected) in asked.iter().zip(&expected) {
                match got(&collection, &document.id) {
                    Ok(stored) => assert_eq!(stored, *expected, "byte {at} of '{name}'"),
                    Err(_) => assert!(!clean, "byte {at} of '{name}'"),
                }
            }
            for (at, expected) in answers.iter().enumerate().step_by(7) {
                if let Ok(answer) = query(&collection, at) {
                    assert_eq!(answer, *expected);
                }
            }
        }
    }
    assert!(
        noticed > choose_effort(10, 100) && by_verify >= noticed,
        "{noticed} {by_verify}"
    );
}

/// Overwrites a file with zeros.
pub(crate) fn erase(disk: &Simulated, name: &str) {
    let zeros = vec![0; disk.length(name)];
    disk.open_file(name).unwrap().write_at(&zeros, 0).unwrap();
}

/// A collection opens from its sketches alone. Missing or damaged ones are computed from the texts, and
/// written again.
#[test]
fn sketches_are_read_or_recomputed() {
    let script = script(22, 60, false);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..60 {
        script.call(&collection, &hand, call).unwrap();
    }
    let expected = collection.collect_stats().unwrap();
    drop(collection);
    let files = |disk: &Simulated, end: &str| -> Vec<String> {
        let names = disk.file_names().unwrap().into_iter();
        names.filter(|name| name.ends_with(end)).collect()
    };
    let open = |disk: &Simulated| {
        let collection = Collection::open_existing(Arc::new(disk.clone()), hand.options())?;
        collection
            .collect_stats()
            .map(|stats| (stats.rows, stats.kept))
    };
    let expected = (expected.rows, expected.kept);
    let without_texts = |disk: &Simulated| {
        let disk = disk.copy();
        for name in files(&disk, ".texts") {
            erase(&disk, &name);
        }
        disk
    };
    assert_eq!(open(&without_texts(&disk)).unwrap(), expected);
    let names = files(&disk, ".sketches");
    assert!(names.len() >= 2, "{names:?}");
    for name in names {
        let length = disk.length(&name);
        let removed = disk.copy();
        removed.remove_file(&name).unwrap();
        let mut others = vec![removed];
        for at in [0, 30, length / 2, length - 1] {
            let damaged = disk.copy();
            damaged.flip(&name, at, 2);
            others.push(damaged);
            let cut = disk.copy();
            cut.open_file(&name).unwrap().set_len(at as u64).unwrap();
            others.push(cut);
        }
        for other in others {
            let report = verify_collection(&other.copy()).unwrap();
            assert!(report.findings.is_empty(), "{report:?}");
            assert_eq!(report.remade, std::slice::from_ref(&name));
            assert!(open(&without_texts(&other)).is_err());
            assert_eq!(open(&other).unwrap(), expected);
            assert_eq!(open(&without_texts(&other)).unwrap(), expected);
        }
    }
}
