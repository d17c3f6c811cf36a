//! Files of every version of the format stay readable.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lookalike::text::AnalysisScratch;
use lookalike_store::{
    Collection, CollectionSettings, Disk, InsertAnswer, OnConflict, SettingsChange, StoredVerdict,
    export_documents, verify_collection,
};

use crate::disk::Simulated;
use crate::fingerprints::{bare, codes, fingerprint};
use crate::flips::erase;
use crate::power::script;
use crate::support::{Hand, S, document, prepare, settings, text};

/// Calls that created the stored collections of texts, with partitions, an expiry, moves and deletions.
const CALLS: usize = 110;

/// Documents of the stored collection of fingerprints.
const CODES: usize = 300;

/// A collection of the first format, which has no sketches.
pub(crate) const FIRST: &str = "collection-1";

/// The same collection with sketches.
const WITH_SKETCHES: &str = "collection-1-sketches";

/// The same collection with a list of its partitions.
const SECOND: &str = "collection-2";

/// The same collection after compaction.
const COMPACTED: &str = "collection-2-compacted";

/// A collection whose settings were changed twice.
const CHANGED: &str = "collection-3";

/// Documents of that collection, with a change of the settings after each third of them.
const CHANGED_DOCUMENTS: usize = 90;

/// Collections of fingerprints, some of which were replaced and one deleted.
const FINGERPRINTS: [&str; 2] = ["collection-1-fingerprints", "collection-2-fingerprints"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/compat")
        .join(name)
}

/// Returns the content of a collection as text.
fn contents(collection: &Collection) -> String {
    let mut lines = Vec::new();
    export_documents(collection, &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

/// Sorts the lines of an export by sequence number, because earlier versions wrote them in the order of rows.
fn in_order(lines: &str) -> String {
    let number = |line: &str| -> u64 {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["seq"].as_u64().unwrap()
    };
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    lines.sort_by_key(|line| number(line));
    lines.concat()
}

/// Returns the files of a stored collection, and its content.
pub(crate) fn stored(name: &str) -> (Simulated, String) {
    let disk = Simulated::new();
    let mut held = None;
    for entry in std::fs::read_dir(folder(name)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let packed = std::fs::read(&path).unwrap();
        let bytes = zstd::stream::decode_all(&packed[..]).unwrap();
        if name == "contents.jsonl" {
            held = Some(in_order(&String::from_utf8(bytes).unwrap()));
            continue;
        }
        disk.create_file(&name)
            .unwrap()
            .write_at(&bytes, 0)
            .unwrap();
    }
    let report = verify_collection(&disk.copy()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    (disk, held.unwrap())
}

fn open(disk: &Simulated) -> Collection {
    Collection::open_existing(Arc::new(disk.clone()), Hand::default().options()).unwrap()
}

fn files(disk: &Simulated, end: &str) -> Vec<String> {
    let names = disk.file_names().unwrap().into_iter();
    names.filter(|name| name.ends_with(end)).collect()
}

#[test]
fn text_collections_of_every_version_open() {
    for (name, has_sketches) in [
        (FIRST, false),
        (WITH_SKETCHES, true),
        (SECOND, true),
        (COMPACTED, true),
    ] {
        let (disk, held) = stored(name);
        assert!(files(&disk, ".rows").len() >= 3);
        assert_eq!(files(&disk, ".sketches").is_empty(), !has_sketches);
        let collection = open(&disk);
        assert_eq!(contents(&collection), held);
        let (script, hand) = (script(1, CALLS + 20, true), Hand::default());
        drop(collection);
        let collection = Collection::open_existing(Arc::new(disk), hand.options()).unwrap();
        for call in CALLS..CALLS + 20 {
            let answers = script.call(&collection, &hand, call).unwrap();
            assert_eq!(answers, script.answers(call));
        }
    }
}

/// Creates the stored collection whose settings were changed again: its window becomes wider and refreshes, and then
/// documents are replaced under a narrower one.
fn of_changed_settings(disk: &Simulated, hand: &Hand) -> Collection {
    hand.set(1_000 * S);
    let (disk, created) = (Arc::new(disk.clone()), settings(Some((120, false))));
    let collection = Collection::create_empty(disk, &created, hand.options()).unwrap();
    let width = |seconds| Some(Duration::from_secs(seconds));
    let widened = SettingsChange {
        width: width(400),
        refresh: Some(true),
        ..SettingsChange::default()
    };
    let replacing = SettingsChange {
        width: width(200),
        on_conflict: Some(OnConflict::Replace),
        ..SettingsChange::default()
    };
    for at in 0..CHANGED_DOCUMENTS {
        if at == CHANGED_DOCUMENTS / 3 {
            collection.change_settings(&widened).unwrap();
        } else if at == 2 * CHANGED_DOCUMENTS / 3 {
            collection.change_settings(&replacing).unwrap();
        }
        insert_text(&collection, hand, at);
    }
    collection
}

/// Inserts a document 4 seconds after the one before; from the last change on, every fifth replaces another.
fn insert_text(collection: &Collection, hand: &Hand, at: usize) -> InsertAnswer {
    hand.set((1_000 + 4 * at as i64) * S);
    let is_replacing = at.is_multiple_of(5) && at > 2 * CHANGED_DOCUMENTS / 3;
    let id = if is_replacing { at - 7 } else { at };
    let one = document(&format!("d{id}"), &text(7 * at % 60), None);
    let prepared = prepare(collection, vec![one]);
    collection.insert_documents(&prepared).remove(0).unwrap()
}

/// A collection opens with the settings that were in force, and goes on as one whose settings are changed now.
#[test]
fn collection_with_changed_settings_opens() {
    let (disk, held) = stored(CHANGED);
    let manifest = disk.open_file("manifest").unwrap();
    let mut head = [0; 22];
    assert_eq!(manifest.read_at(&mut head, 0).unwrap(), head.len());
    assert_eq!(&head, b"lookalike-collection 3");
    let (new, hand) = (Simulated::new(), Hand::default());
    let anew = of_changed_settings(&new, &hand);
    let collection = Collection::open_existing(Arc::new(disk), hand.options()).unwrap();
    assert_eq!(contents(&collection), held);
    assert_eq!(contents(&anew), held);
    assert_eq!(collection.collection_settings(), anew.collection_settings());
    let created = collection.created_settings().unwrap();
    assert_eq!(*created, settings(Some((120, false))));
    let mut duplicates = 0;
    for at in CHANGED_DOCUMENTS..CHANGED_DOCUMENTS + 40 {
        let answer = insert_text(&collection, &hand, at);
        assert_eq!(answer, insert_text(&anew, &hand, at));
        duplicates += usize::from(answer.verdict != StoredVerdict::Kept);
    }
    assert!(duplicates > 5, "{duplicates}");
    assert_eq!(contents(&collection), contents(&anew));
}

/// The texts are erased, so the sketches must be read and cannot be computed again.
#[test]
fn sketches_of_version_1_are_read() {
    let (disk, _) = stored(WITH_SKETCHES);
    let expected = open(&disk.copy()).collect_stats().unwrap();
    for name in files(&disk, ".texts") {
        erase(&disk, &name);
    }
    let stats = open(&disk).collect_stats().unwrap();
    assert_eq!((stats.rows, stats.kept), (expected.rows, expected.kept));
}

#[test]
fn fingerprint_collections_of_all_versions_open() {
    for name in FINGERPRINTS {
        let (disk, held) = stored(name);
        let collection = open(&disk);
        assert_eq!(contents(&collection), held);
        let anew = of_fingerprints(&Simulated::new());
        assert_eq!(contents(&anew), held);
        for (at, &code) in codes(CODES + 100).iter().enumerate().skip(CODES) {
            assert_eq!(insert(&collection, at, code), insert(&anew, at, code));
        }
    }
}

/// From the second version on, a list says which partitions exist.
#[test]
fn lost_partition_of_version_2_is_detected() {
    let (disk, _) = stored(SECOND);
    let newest = files(&disk, ".rows").into_iter().max().unwrap();
    let stem = newest.strip_suffix(".rows").unwrap();
    for end in ["rows", "texts", "sketches"] {
        disk.remove_file(&format!("{stem}.{end}")).unwrap();
    }
    let findings = verify_collection(&disk).unwrap().findings;
    assert!(
        findings.iter().any(|finding| finding.contains(&newest)),
        "{findings:?}"
    );
}

fn insert(collection: &Collection, id: usize, code: u64) -> InsertAnswer {
    let prepared =
        collection.prepare_document(fingerprint(id, code), &mut AnalysisScratch::default());
    collection
        .insert_documents(&[prepared.unwrap()])
        .remove(0)
        .unwrap()
}

/// Creates the stored collection of fingerprints again.
fn of_fingerprints(disk: &Simulated) -> Collection {
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..bare(3)
    };
    let options = Hand::default().options();
    let collection = Collection::create_empty(Arc::new(disk.clone()), &settings, options).unwrap();
    for (at, &code) in codes(CODES).iter().enumerate() {
        insert(&collection, at, code);
        if at % 40 == 39 {
            insert(&collection, at - 20, !code);
        }
    }
    assert!(collection.delete_document("7").unwrap());
    collection
}

/// Packs a collection and its content. Never overwrites an existing file.
fn write(name: &str, disk: &Simulated, collection: Collection) {
    if folder(name).exists() {
        return;
    }
    std::fs::create_dir(folder(name)).unwrap();
    let write = |file: &str, bytes: &[u8]| {
        let packed = zstd::stream::encode_all(bytes, 19).unwrap();
        std::fs::write(folder(name).join(format!("{file}.zst")), packed).unwrap();
    };
    write("contents.jsonl", contents(&collection).as_bytes());
    drop(collection);
    for name in disk.file_names().unwrap() {
        let mut bytes = vec![0; disk.length(&name)];
        let read = disk
            .open_file(&name)
            .unwrap()
            .read_at(&mut bytes, 0)
            .unwrap();
        assert_eq!(read, bytes.len());
        write(&name, &bytes);
    }
}

#[test]
#[ignore = "writes the files of the present version"]
fn write_collections_of_the_current_version() {
    let script = script(1, CALLS, true);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..CALLS {
        script.call(&collection, &hand, call).unwrap();
    }
    write(SECOND, &disk, collection);
    let collection = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap();
    assert!(collection.compact_all(&mut || true).unwrap() >= 3);
    write(COMPACTED, &disk, collection);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = of_changed_settings(&disk, &hand);
    write(CHANGED, &disk, collection);
    let disk = Simulated::new();
    let collection = of_fingerprints(&disk);
    write(FINGERPRINTS[1], &disk, collection);
}
