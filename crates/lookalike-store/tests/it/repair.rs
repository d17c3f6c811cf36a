//! Repair: saving the readable documents of a damaged collection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lookalike_store::{
    Collection, CollectionContent, CollectionSettings, Disk, DocumentContent, OnConflict,
    SettingsChange, SettingsRecord, export_documents, repair_collection, verify_collection,
};

use crate::disk::Simulated;
use crate::power::{Call, script};
use crate::support::{Hand, Random, S, document, prepare, settings};

fn contents(collection: &Collection) -> Vec<serde_json::Value> {
    let mut lines = Vec::new();
    export_documents(collection, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let value = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(value).collect()
}

/// Creates a collection without a window, so that nothing is late when it is inserted again. Also returns its
/// content and everything ever inserted.
fn filled() -> (
    Simulated,
    Hand,
    Vec<serde_json::Value>,
    BTreeSet<(String, String)>,
) {
    let mut script = script(31, 120, false);
    script.settings.window = None;
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..120 {
        script.call(&collection, &hand, call).unwrap();
    }
    let contents = contents(&collection);
    drop(collection);
    let calls = script.calls.into_iter();
    let documents = calls.flat_map(|(_, call)| match call {
        Call::Insert(documents) => documents,
        Call::Delete(_) => Vec::new(),
    });
    let inserted = documents.map(|document| match document.content {
        DocumentContent::Text(text) => (document.id, text),
        DocumentContent::Fingerprint(_) => unreachable!("the script has texts"),
    });
    (disk.copy(), hand, contents, inserted.collect())
}

fn said(document: &serde_json::Value) -> (String, String) {
    let said = |name: &str| document[name].as_str().unwrap().to_owned();
    (said("id"), said("text"))
}

fn repaired(disk: &Simulated, hand: &Hand) -> (Vec<String>, Vec<serde_json::Value>) {
    let new = Simulated::new();
    let (report, collection) =
        repair_collection(disk, None, Arc::new(new.clone()), hand.options()).unwrap();
    let contents = contents(&collection);
    drop(collection);
    let after = verify_collection(&new.copy()).unwrap();
    assert!(after.findings.is_empty(), "{after:?}");
    assert_eq!(after.documents, contents.len() as u64);
    let again = Collection::open_existing(Arc::new(new.copy()), hand.options()).unwrap();
    assert_eq!(self::contents(&again), contents);
    (report.findings, contents)
}

#[test]
fn repair_loses_no_intact_document() {
    let (disk, hand, before, _) = filled();
    let (findings, after) = repaired(&disk, &hand);
    assert!(findings.is_empty(), "{findings:?}");
    let (before, after) = (before.iter().map(said), after.iter().map(said));
    assert!(before.eq(after));
}

/// Given settings replace a lost manifest, if they are the right ones.
#[test]
fn settings_replace_a_lost_manifest() {
    let (disk, hand, before, _) = filled();
    let made_with = lookalike_store::read_settings(&disk.copy()).unwrap();
    let repair_with = |disk: &Simulated, settings: Option<&CollectionSettings>| {
        let new = Arc::new(Simulated::new());
        let repaired = repair_collection(
            disk,
            settings.cloned().map(SettingsRecord::from).as_ref(),
            new.clone(),
            hand.options(),
        );
        repaired.map_err(|error| (error.to_string(), new.file_names().unwrap()))
    };
    for damage in [false, true] {
        let disk = disk.copy();
        if damage {
            disk.flip("manifest", 40, 2)
        } else {
            disk.remove_file("manifest").unwrap()
        }
        let (without, _) = repair_with(&disk, None).unwrap_err();
        assert!(without.contains("manifest"), "{without}");
        let (report, collection) = repair_with(&disk, Some(&made_with)).unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
        let after = contents(&collection);
        assert!(before.iter().map(said).eq(after.iter().map(said)));
        let others = CollectionSettings {
            on_conflict: OnConflict::Replace,
            ..made_with.clone()
        };
        assert_ne!(others, made_with);
        let (refused, names) = repair_with(&disk, Some(&others)).unwrap_err();
        assert!(refused.contains("no partition"), "{refused}");
        assert!(names.is_empty(), "{names:?}");
    }
}

/// Returns the name of the database of the only partition.
/// The settings of the creation find the files of a collection whose window was widened, and its repair has the wider
/// window with all of its documents.
#[test]
fn changed_settings_replace_a_lost_manifest() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    hand.set(1_000 * S);
    let created = settings(Some((40, false)));
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &created, hand.options()).unwrap();
    let widened = SettingsChange {
        width: Some(Duration::from_secs(400)),
        ..SettingsChange::default()
    };
    collection.change_settings(&widened).unwrap();
    for at in 0..20 {
        hand.set(hand.get() + 10 * S);
        let text = format!("text number {at} of this window");
        let prepared = prepare(&collection, vec![document(&at.to_string(), &text, None)]);
        assert!(collection.insert_documents(&prepared)[0].is_ok());
    }
    let before = contents(&collection);
    let last = CollectionSettings::clone(&collection.collection_settings());
    drop(collection);
    let disk = disk.copy();
    disk.remove_file("manifest").unwrap();
    let repair_with = |settings: CollectionSettings, created: Option<&CollectionSettings>| {
        let record = SettingsRecord {
            settings,
            created: created.cloned(),
        };
        let new = Arc::new(Simulated::new());
        let repaired = repair_collection(&disk, Some(&record), new, hand.options());
        repaired.map_err(|error| error.to_string())
    };
    let (report, collection) = repair_with(last.clone(), Some(&created)).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(*collection.collection_settings(), last);
    assert_eq!(before.len(), 20);
    let after = contents(&collection);
    assert!(before.iter().map(said).eq(after.iter().map(said)));
    // Those of the creation alone have the narrow window, and those in force alone find no file.
    let (_, narrow) = repair_with(created.clone(), None).unwrap();
    assert!(contents(&narrow).len() < 10);
    let refused = repair_with(last.clone(), None).unwrap_err();
    assert!(refused.contains("no partition belongs"), "{refused}");
    for (wrong, what) in [
        (settings(None), "window"),
        (
            CollectionSettings {
                holds: CollectionContent::Fingerprints,
                ..last.clone()
            },
            "content",
        ),
    ] {
        let refused = repair_with(wrong, Some(&created)).unwrap_err();
        assert!(refused.contains(what), "{refused}");
    }
}

fn database(disk: &Simulated) -> String {
    let mut names = disk.file_names().unwrap().into_iter();
    names.find(|name| name.ends_with(".rows")).unwrap()
}

/// Only the rows of the damaged block are lost.
#[test]
fn blocks_after_a_damaged_one_are_recovered() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, &settings(None), hand.options()).unwrap();
    let documents = (0..300).map(|at| document(&format!("id-{at:03}"), &format!("x{at}"), None));
    let documents = prepare(&collection, documents.collect());
    assert!(
        collection
            .insert_documents(&documents)
            .iter()
            .all(Result::is_ok)
    );
    drop(collection);
    let disk = disk.copy();
    let name = database(&disk);
    let at = disk.position(&name, b"id-070").unwrap();
    disk.flip(&name, at, 3);
    let report = verify_collection(&disk.copy()).unwrap();
    assert_eq!((report.rows, report.findings.len()), (236, 1), "{report:?}");
    let (findings, after) = repaired(&disk, &hand);
    assert!(findings[0].contains("row 65"), "{findings:?}");
    let ids: Vec<_> = after.iter().map(|it| said(it).0).collect();
    let expected = (0..300).filter(|at| !(64..128).contains(at));
    let expected: Vec<_> = expected.map(|at| format!("id-{at:03}")).collect();
    assert_eq!(ids, expected);
}

/// If the row of a deletion is lost, the later document with the same id is saved.
#[test]
fn repair_keeps_the_later_of_equal_ids() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, &settings(None), hand.options()).unwrap();
    let insert = |id: &str, text: &str| {
        let documents = prepare(&collection, vec![document(id, text, None)]);
        collection.insert_documents(&documents).remove(0).unwrap();
    };
    insert("one", "the first text");
    // The beginning of the row, which has a block of its own.
    let mut deletion = vec![4];
    deletion.extend(1u64.to_le_bytes());
    deletion.extend(1u64.to_le_bytes());
    assert!(collection.delete_document("one").unwrap());
    insert("one", "something else");
    insert("two", "what follows");
    drop(collection);
    let disk = disk.copy();
    let name = database(&disk);
    let mut damaged = 0;
    while let Some(at) = disk.position(&name, &deletion) {
        disk.flip(&name, at + 1, 5);
        damaged += 1;
    }
    assert!(damaged > 0);
    let (findings, after) = repaired(&disk, &hand);
    let after: Vec<_> = after.iter().map(said).collect();
    let expected = [("one", "something else"), ("two", "what follows")];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(after, expected);
    assert!(
        findings
            .iter()
            .any(|finding| finding.contains("'one' is repeated")),
        "{findings:?}"
    );
}

/// Any text or row is damaged: all others are saved, and the loss is named.
#[test]
fn readable_documents_are_recovered_rest_named() {
    let (disk, hand, before, inserted) = filled();
    let mut random = Random(9);
    let mut lost_some = 0;
    for end in [".texts", ".rows", ".sketches"] {
        let name = disk.file_names().unwrap();
        let name = name.iter().find(|name| name.ends_with(end)).unwrap();
        for _ in 0..25 {
            let damaged = disk.copy();
            damaged.flip(name, random.below(disk.length(name)), 3);
            let new = Simulated::new();
            let Ok((report, collection)) =
                repair_collection(&damaged.copy(), None, Arc::new(new), hand.options())
            else {
                panic!("'{name}' cannot be repaired");
            };
            drop(collection);
            let (_, after) = repaired(&damaged, &hand);
            // If the row of a deletion is lost, so is the deletion.
            for document in &after {
                assert!(
                    inserted.contains(&said(document)),
                    "{document} was never there"
                );
            }
            if after.len() < before.len() {
                lost_some += 1;
                assert!(!report.findings.is_empty(), "something was lost in silence");
            }
            if end == ".texts" {
                assert!(
                    after.len() + 1 >= before.len(),
                    "{} of {}",
                    after.len(),
                    before.len()
                );
            }
            if end == ".sketches" {
                assert!(report.findings.is_empty() && after.len() == before.len());
            }
        }
    }
    assert!(lost_some > 10, "{lost_some}");
}

/// A document that was moved by a duplicate precedes it again, wherever it is read from.
#[test]
fn repair_keeps_verdicts_of_refreshed_documents() {
    let settings = settings(Some((240, true)));
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings, hand.options()).unwrap();
    let insert = |id: &str, text: &str, seconds: i64| {
        hand.set(seconds * S);
        let documents = prepare(&collection, vec![document(id, text, Some(seconds * S))]);
        collection.insert_documents(&documents).remove(0).unwrap()
    };
    let hot = "one two three four five six";
    // This row keeps the hot document from being in the first row.
    insert("other", "nothing of the kind is said here", 1000);
    insert("hot", hot, 1001);
    for (number, second) in [(1, 1020), (2, 1021), (3, 1100), (4, 1200), (5, 1230)] {
        let repeat = insert(
            &format!("repeat {number}"),
            &format!("{hot} {number}"),
            second,
        );
        assert_eq!(repeat.cluster_id(), "hot");
        insert(
            &format!("other {number}"),
            &format!("{number} of some others"),
            second,
        );
    }
    insert("deleted", "ever so many words of another kind", 1230);
    insert(
        "repeat of deleted",
        "ever so many words of another kind!",
        1231,
    );
    collection.delete_document("deleted").unwrap();
    let verdicts = |lines: Vec<serde_json::Value>| -> Vec<_> {
        let verdict = |line: &serde_json::Value| {
            let of = line["of"].as_str().filter(|&of| of != "deleted");
            (line["id"].to_string(), of.map(str::to_owned))
        };
        lines.iter().map(verdict).collect()
    };
    // Before the partition of the hot document's first row has expired, and after it.
    for second in [1232, 1300] {
        insert(
            &format!("last at {second}"),
            &format!("{second} {second} {second}"),
            second,
        );
        let has_gone = collection.find_document("other").unwrap().is_none();
        assert_eq!(has_gone, second == 1300);
        let before = contents(&collection);
        let order = before.iter().map(|line| line["seq"].as_u64());
        assert!(order.is_sorted());
        let lines: String = before.iter().map(|line| format!("{line}\n")).collect();
        let new =
            || Collection::create_empty(Arc::new(Simulated::new()), &settings, hand.options());
        let imported = new().unwrap();
        let mut reject = |_, error: &lookalike_store::Error| Err(error.clone());
        lookalike_store::import_documents(&imported, &mut lines.as_bytes(), &mut reject).unwrap();
        let repaired = repair_collection(
            &disk.copy(),
            None,
            Arc::new(Simulated::new()),
            hand.options(),
        );
        let (report, repaired) = repaired.unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
        let expected = verdicts(before);
        assert_eq!(verdicts(contents(&imported)), expected);
        assert_eq!(verdicts(contents(&repaired)), expected);
    }
}
