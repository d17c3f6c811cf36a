//! Missing files: they are noticed and named, and no other file is removed because of them.

use std::sync::Arc;

use lookalike_store::{Collection, Disk, ErrorKind, repair_collection, verify_collection};

use crate::disk::Simulated;
use crate::flips::erase;
use crate::formats::{FIRST, stored};
use crate::power::script;
use crate::support::{Hand, document, prepare, settings};

/// Creates a collection of at least three partitions, and its clock.
fn filled() -> (Simulated, Hand) {
    let script = script(51, 110, false);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..110 {
        script.call(&collection, &hand, call).unwrap();
    }
    drop(collection);
    let disk = disk.copy();
    assert!(files(&disk, ".rows").len() >= 3);
    (disk, hand)
}

fn files(disk: &Simulated, end: &str) -> Vec<String> {
    let names = disk.file_names().unwrap().into_iter();
    names.filter(|name| name.ends_with(end)).collect()
}

/// Checks that every reader of the collection names the missing file, and that all other files stay.
fn assert_is_noticed(disk: &Simulated, hand: &Hand, gone: &str) {
    let left = disk.file_names().unwrap();
    let report = verify_collection(disk).unwrap();
    let names_it = |it: &String| it.contains(gone);
    assert!(report.findings.iter().any(names_it), "{gone}: {report:?}");
    let new = Arc::new(Simulated::new());
    let (report, _) = repair_collection(disk, None, new, hand.options()).unwrap();
    assert!(report.findings.iter().any(names_it), "{gone}: {report:?}");
    let refused = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged, "{gone}: {refused}");
    assert_eq!(disk.file_names().unwrap(), left, "without {gone}");
}

#[test]
fn lost_rows_are_detected_at_any_place() {
    let (disk, hand) = filled();
    for gone in files(&disk, ".rows") {
        let lost = disk.copy();
        lost.remove_file(&gone).unwrap();
        assert_is_noticed(&lost, &hand, &gone);
        // The loss is noticed without the texts and sketches too.
        for end in [".texts", ".sketches"] {
            lost.remove_file(&gone.replace(".rows", end)).unwrap();
        }
        assert_is_noticed(&lost, &hand, &gone);
    }
    let lost = disk.copy();
    for gone in files(&disk, ".rows") {
        lost.remove_file(&gone).unwrap();
    }
    assert_is_noticed(&lost, &hand, "is missing");
}

#[test]
fn lost_texts_and_inventory_are_detected() {
    let (disk, hand) = filled();
    for gone in files(&disk, ".texts")
        .into_iter()
        .chain(["partitions".to_owned()])
    {
        let lost = disk.copy();
        lost.remove_file(&gone).unwrap();
        let report = verify_collection(&lost).unwrap();
        assert!(!report.findings.is_empty(), "{gone}");
        assert!(Collection::open_existing(Arc::new(lost), hand.options()).is_err());
    }
}

/// Opening needs texts because the sketches are missing, and a text cannot be read. The file is named,
/// wherever it is among the others that are read at the same time.
#[test]
fn damaged_text_needed_to_open_is_named() {
    let (disk, hand) = filled();
    for name in files(&disk, ".sketches") {
        disk.remove_file(&name).unwrap();
    }
    for name in files(&disk, ".texts") {
        let damaged = disk.copy();
        erase(&damaged, &name);
        let refused = Collection::open_existing(Arc::new(damaged), hand.options()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged);
        assert!(refused.to_string().contains(&name), "{name}: {refused}");
    }
}

/// With an outdated list, newer partitions are not mistaken for interrupted creations.
#[test]
fn rows_newer_than_inventory_are_kept() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, &settings(None), hand.options()).unwrap();
    let before = disk.copy();
    let documents = prepare(&collection, vec![document("a", "one two three", None)]);
    assert!(collection.insert_documents(&documents).remove(0).is_ok());
    drop(collection);
    let disk = disk.copy();
    let mut list = vec![0; before.length("partitions")];
    let old = before.open_file("partitions").unwrap();
    old.read_at(&mut list, 0).unwrap();
    disk.open_file("partitions")
        .unwrap()
        .write_at(&list, 0)
        .unwrap();
    assert_is_noticed(&disk, &hand, "0000000000000001.rows");
    let new = Arc::new(Simulated::new());
    let (_, saved) = repair_collection(&disk, None, new, hand.options()).unwrap();
    assert!(saved.find_document("a").unwrap().is_some());
}

/// A collection without a list gets one when it is opened.
#[test]
fn version_1_gets_an_inventory_when_opened() {
    let (disk, _) = stored(FIRST);
    let hand = Hand::default();
    let rows = files(&disk, ".rows");
    for gone in [&rows[0], &rows[rows.len() - 1]] {
        let lost = disk.copy();
        lost.remove_file(gone).unwrap();
        assert_is_noticed(&lost, &hand, gone);
    }
    drop(Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap());
    for gone in rows {
        let lost = disk.copy();
        lost.remove_file(&gone).unwrap();
        lost.remove_file(&gone.replace(".rows", ".texts")).unwrap();
        assert_is_noticed(&lost, &hand, &gone);
    }
}

/// An unreadable text of a near match is reported as damage by every call.
#[test]
fn damaged_text_fails_comparisons_with_it() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, &settings(None), hand.options()).unwrap();
    let one = |id: &str, text: &str| prepare(&collection, vec![document(id, text, None)]).remove(0);
    let text = "one two three four five six seven";
    assert!(
        collection
            .insert_documents(&[one("a", text)])
            .remove(0)
            .is_ok()
    );
    let near = one("b", "one two three four five six eight");
    assert_eq!(collection.query_document(&near).unwrap().cluster_id(), "a");
    drop(collection);
    let disk = disk.copy();
    erase(&disk, &files(&disk, ".texts")[0]);
    let collection = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap();
    let same = prepare(&collection, vec![document("a", text, None)]);
    for refused in [
        collection.query_document(&near),
        collection.insert_documents(&[near]).remove(0),
        collection.query_document(&same[0]),
        collection.insert_documents(&same).remove(0),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
    }
    drop(collection);
    let texts = &files(&disk, ".texts")[0];
    let length = disk.length(texts) as u64;
    disk.open_file(texts).unwrap().set_len(length - 8).unwrap();
    let refused = Collection::open_existing(Arc::new(disk), hand.options()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged);
    assert!(
        refused.to_string().contains("its rows refer to"),
        "{refused}"
    );
}
