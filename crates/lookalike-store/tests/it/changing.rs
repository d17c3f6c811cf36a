//! Changes of settings: they take effect at once, and power failures leave the former settings or the new ones.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike_store::{
    Collection, CollectionSettings, Disk, ErrorKind, ExpiryClock, InsertAnswer, OnConflict,
    SettingsChange, SettingsRecord, StoredVerdict, read_settings, repair_collection,
    restore_collection, verify_collection,
};

use crate::disk::{Fault, Simulated};
use crate::support::{Hand, Random, S, document, prepare, settings};

fn width(seconds: u64) -> SettingsChange {
    SettingsChange {
        width: Some(Duration::from_secs(seconds)),
        ..SettingsChange::default()
    }
}

fn refresh(refresh: bool) -> SettingsChange {
    SettingsChange {
        refresh: Some(refresh),
        ..SettingsChange::default()
    }
}

fn create(settings: &CollectionSettings) -> (Simulated, Hand, Collection) {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, settings, hand.options()).unwrap();
    (disk, hand, collection)
}

fn reopen(disk: &Simulated, hand: &Hand) -> Collection {
    Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap()
}

fn insert(collection: &Collection, hand: &Hand, id: &str, text: &str, second: i64) -> InsertAnswer {
    hand.set(second * S);
    let documents = prepare(collection, vec![document(id, text, None)]);
    collection.insert_documents(&documents).remove(0).unwrap()
}

/// Returns the id of the match of a text at a time.
fn matched(collection: &Collection, hand: &Hand, text: &str, second: i64) -> Option<String> {
    hand.set(second * S);
    let documents = prepare(collection, vec![document("query", text, None)]);
    match collection.query_document(&documents[0]).unwrap().verdict {
        StoredVerdict::Kept => None,
        StoredVerdict::Duplicate(evidence) => Some(evidence.of),
    }
}

const TEXT: &str = "the keeper lights the lamp";

/// The border is inclusive (≤) before and after each change, and after the collection was opened again.
#[test]
fn width_changes_at_once() {
    let (disk, hand, collection) = create(&settings(Some((240, false))));
    insert(&collection, &hand, "a", TEXT, 1000);
    insert(&collection, &hand, "b", "some other words", 1060);
    let check = |collection: &Collection, width: i64| {
        for collection in [collection, &reopen(&disk, &hand)] {
            let at = |second| matched(collection, &hand, TEXT, second);
            assert_eq!(at(1000 + width).as_deref(), Some("a"), "{width}");
            assert_eq!(at(1001 + width), None, "{width}");
        }
    };
    check(&collection, 240);
    for seconds in [80, 600, 61, 3600] {
        let changed = collection.change_settings(&width(seconds)).unwrap();
        let window = changed.window.unwrap();
        assert_eq!(window.width(), Duration::from_secs(seconds));
        assert_eq!(window.skew(), Duration::from_secs(5));
        assert_eq!(*reopen(&disk, &hand).collection_settings(), *changed);
        check(&collection, seconds as i64);
    }
}

/// Documents that have left the disk stay gone: a partition past a narrower window is removed by the change itself.
#[test]
fn expired_documents_stay_gone() {
    let (disk, hand, collection) = create(&settings(Some((240, false))));
    insert(&collection, &hand, "a", TEXT, 1000);
    insert(&collection, &hand, "b", "some other words", 1060);
    insert(&collection, &hand, "c", "more words again", 1065);
    assert_eq!(collection.collect_stats().unwrap().partitions, 2);
    collection.change_settings(&width(30)).unwrap();
    assert_eq!(collection.collect_stats().unwrap().partitions, 1);
    collection.change_settings(&width(500)).unwrap();
    for collection in [&collection, &reopen(&disk, &hand)] {
        assert!(collection.find_document("a").unwrap().is_none());
        assert!(collection.find_document("b").unwrap().is_some());
        assert_eq!(matched(collection, &hand, TEXT, 1070), None);
    }
}

/// Two kept documents of similarity 1, the later one with the text of the query: under a wider window the
/// earlier one is the match, as the scan of all documents has it.
#[test]
fn wider_window_prefers_the_earliest_match() {
    let (disk, hand, collection) = create(&settings(Some((48, false))));
    let (one, same) = ("a b a b a", "a b a b a b a");
    assert_eq!(insert(&collection, &hand, "d", one, 1000).cluster_id(), "d");
    // This document keeps the partition of the first one from expiring.
    insert(&collection, &hand, "x", "some other words", 1001);
    let far = insert(&collection, &hand, "e", same, 1049);
    assert_eq!(far.verdict, StoredVerdict::Kept);
    collection.change_settings(&width(240)).unwrap();
    for collection in [&collection, &reopen(&disk, &hand)] {
        assert_eq!(matched(collection, &hand, same, 1050).as_deref(), Some("d"));
    }
}

/// Duplicates refresh only while the setting says so, and opening the collection again repeats exactly that,
/// also after compaction.
#[test]
fn refreshing_begins_and_ends_with_the_setting() {
    let (disk, hand, collection) = create(&settings(Some((240, false))));
    // All in one partition, which lasts 10 seconds.
    for (at, name) in ["k", "l", "m"].into_iter().enumerate() {
        let text = format!("{name} {TEXT} {name} {name}");
        insert(&collection, &hand, name, &text, 1000 + at as i64);
    }
    let again = |name: &str, second: i64| {
        let (id, text) = (
            format!("{name}{second}"),
            format!("{name} {TEXT} {name} {name}"),
        );
        let answer = insert(&collection, &hand, &id, &text, second);
        assert_eq!(answer.cluster_id(), name);
    };
    again("k", 1003);
    collection.change_settings(&refresh(true)).unwrap();
    again("l", 1004);
    collection.change_settings(&refresh(false)).unwrap();
    again("m", 1005);
    let check = |collection: &Collection| {
        for (name, starts) in [("k", 1000), ("l", 1004), ("m", 1002)] {
            let text = format!("{name} {TEXT} {name} {name}");
            let at = |second| matched(collection, &hand, &text, second);
            assert_eq!(at(starts + 240).as_deref(), Some(name));
            assert_eq!(at(starts + 241), None, "{name}");
        }
    };
    check(&collection);
    check(&reopen(&disk, &hand));
    hand.set(1006 * S);
    for id in ["k1003", "l1004", "m1005"] {
        assert!(collection.delete_document(id).unwrap());
    }
    assert_eq!(collection.compact_all(&mut || true).unwrap(), 1);
    check(&collection);
    check(&reopen(&disk, &hand));
}

/// Documents that left the window by the wall clock before their partition stay gone under a wider window, also
/// after the collection was opened again.
#[test]
fn late_documents_stay_gone() {
    let made = settings(Some((240, false)));
    let window = made.window.map(|window| window.with_wall_clock(true));
    let (disk, hand, collection) = create(&CollectionSettings { window, ..made });
    hand.set(1000 * S);
    let late = vec![
        document("late", TEXT, Some(800 * S)),
        document("new", "new words here", None),
    ];
    for answer in collection.insert_documents(&prepare(&collection, late)) {
        assert!(answer.unwrap().seq.is_some());
    }
    hand.set(1060 * S);
    // The maintenance is interrupted between dropping the document and erasing it.
    let mut calls = 0;
    let mut once = || {
        calls += 1;
        calls == 1
    };
    collection.run_maintenance(&mut once).unwrap();
    collection.change_settings(&width(3600)).unwrap();
    let is_there = collection.find_document("late").unwrap().is_some();
    assert!(!is_there, "it was dropped before the change");
    let again = reopen(&disk, &hand);
    assert_eq!(again.find_document("late").unwrap().is_some(), is_there);
    assert_eq!(
        matched(&again, &hand, TEXT, 1061),
        matched(&collection, &hand, TEXT, 1061)
    );
    let documents = SettingsChange {
        expire: Some(ExpiryClock::Documents),
        ..SettingsChange::default()
    };
    let changed = collection.change_settings(&documents).unwrap();
    assert!(!changed.window.unwrap().follows_wall_clock());
    let again = reopen(&disk, &hand);
    assert_eq!(again.find_document("late").unwrap().is_some(), is_there);
}

#[test]
fn conflicts_follow_the_setting() {
    let (disk, hand, collection) = create(&settings(None));
    insert(&collection, &hand, "a", TEXT, 1000);
    let replace = |on_conflict| SettingsChange {
        on_conflict: Some(on_conflict),
        ..SettingsChange::default()
    };
    let other = |text: &str| {
        let documents = prepare(&collection, vec![document("a", text, None)]);
        collection.insert_documents(&documents).remove(0)
    };
    assert_eq!(other("x y z").unwrap_err().kind(), ErrorKind::Conflict);
    collection
        .change_settings(&replace(OnConflict::Replace))
        .unwrap();
    assert_eq!(other("x y z").unwrap().seq, Some(3));
    let again = reopen(&disk, &hand);
    assert_eq!(again.collection_settings().on_conflict, OnConflict::Replace);
    collection
        .change_settings(&replace(OnConflict::Refuse))
        .unwrap();
    assert_eq!(other("other").unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn impossible_changes_are_refused() {
    let (disk, _, collection) = create(&settings(Some((240, false))));
    let manifest = |disk: &Simulated| disk.operations();
    let before = manifest(&disk);
    let skew = |seconds| SettingsChange {
        skew: Some(Duration::from_secs(seconds)),
        ..SettingsChange::default()
    };
    for (change, said) in [
        (width(0), "below a microsecond"),
        (width(u64::MAX), "above the limit"),
        (
            width(4),
            "`skew` would be 5s, longer than the `window` of 4s",
        ),
        (skew(241), "`skew` would be 241s"),
    ] {
        let refused = collection.change_settings(&change).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert!(collection.change_settings(&skew(240)).is_ok());
    assert!(manifest(&disk) > before);
    let (disk, _, forever) = create(&settings(None));
    let before = manifest(&disk);
    for change in [width(10), skew(1), refresh(true)] {
        let refused = forever.change_settings(&change).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Setting);
        assert!(
            refused.to_string().contains("without a window"),
            "{refused}"
        );
    }
    // A change that changes nothing writes nothing.
    forever.change_settings(&SettingsChange::default()).unwrap();
    assert_eq!(manifest(&disk), before);
    disk.set_free(100);
    let replace = SettingsChange {
        on_conflict: Some(OnConflict::Replace),
        ..SettingsChange::default()
    };
    let refused = forever.change_settings(&replace).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
}

/// Snapshots, `verify` and `repair` have the changed settings. A manifest with a flipped bit is damaged.
#[test]
fn copies_have_the_changed_settings() {
    let (disk, hand, collection) = create(&settings(Some((240, false))));
    insert(&collection, &hand, "a", TEXT, 1000);
    let changed = collection.change_settings(&width(600)).unwrap();
    insert(&collection, &hand, "b", TEXT, 1500);
    let (snapshot, restored, mended) = (Simulated::new(), Simulated::new(), Simulated::new());
    collection.copy_to_snapshot(&snapshot).unwrap();
    restore_collection(&snapshot, &restored, 0).unwrap();
    let (report, _) =
        repair_collection(&disk, None, Arc::new(mended.clone()), hand.options()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    for copy in [&disk, &snapshot, &restored, &mended] {
        assert_eq!(read_settings(copy).unwrap(), *changed);
        assert!(verify_collection(copy).unwrap().findings.is_empty());
        let again = reopen(copy, &hand);
        assert_eq!(matched(&again, &hand, TEXT, 1600).as_deref(), Some("a"));
    }
    // If the manifest is lost, the settings of the creation open the other files.
    let created = reopen(&disk, &hand).created_settings().unwrap();
    assert_eq!(*created, settings(Some((240, false))));
    let without = disk.copy();
    without.remove_file("manifest").unwrap();
    let repair = |settings: &CollectionSettings| {
        let new = Arc::new(Simulated::new());
        let settings = SettingsRecord::from(settings.clone());
        let repaired = repair_collection(&without, Some(&settings), new, hand.options());
        repaired.map(|(_, collection)| collection.collect_stats().unwrap().rows)
    };
    // The first document is past the window of the creation, under which they are inserted again.
    assert_eq!(repair(&created).unwrap(), 1);
    let refused = repair(&changed).unwrap_err().to_string();
    assert!(refused.contains("those of its creation"), "{refused}");
    for at in 0..disk.length("manifest") {
        let damaged = disk.copy();
        damaged.flip("manifest", at, (at % 8) as u8);
        assert!(read_settings(&damaged).is_err(), "byte {at}");
    }
}

/// Returns a collection with documents, one of which still waits for the disk.
fn filled() -> (Simulated, Hand, Collection) {
    let (disk, hand, collection) = create(&settings(Some((240, false))));
    insert(&collection, &hand, "a", TEXT, 1000);
    insert(&collection, &hand, "b", "some other words", 1060);
    let waiting = prepare(&collection, vec![document("c", "words that wait", None)]);
    let _ = collection.admit_documents(&waiting);
    (disk, hand, collection)
}

/// Whatever is left after a power failure has the former settings or the new ones, and accepts documents.
#[test]
fn power_failure_leaves_old_or_new_settings() {
    let (disk, hand, collection) = filled();
    let lost = Arc::new(Mutex::new(Vec::new()));
    let into = lost.clone();
    disk.set_hook(move |disk, operation| {
        let mut random = Random(operation);
        let ways = (0..4).map(|_| disk.after_power_loss(&mut random));
        into.lock().unwrap().extend(ways);
    });
    let before = collection.collection_settings();
    let after = collection.change_settings(&width(30)).unwrap();
    disk.set_hook(|_, _| ());
    let lost = std::mem::take(&mut *lost.lock().unwrap());
    let (mut old, mut new) = (0, 0);
    for lost in &lost {
        let again = reopen(lost, &hand);
        let found = again.collection_settings();
        assert!(found == before || found == after);
        old += usize::from(found == before);
        new += usize::from(found == after);
        // No document expires early.
        assert!(found == after || again.find_document("a").unwrap().is_some());
        insert(&again, &hand, "d", "the last words", 1061);
        assert!(again.find_document("b").unwrap().is_some());
    }
    assert!(old > 10 && new > 0, "{old} old, {new} new");
    let end = disk.after_power_loss(&mut Random(1));
    assert_eq!(reopen(&end, &hand).collection_settings(), after);
}

/// A disk that fails leaves the former settings, or stops the collection if it is unknown which are on disk.
#[test]
fn failed_change_leaves_old_settings_or_stops() {
    let (whole, _, collection) = filled();
    let begun = whole.operations();
    collection.change_settings(&width(30)).unwrap();
    let operations = whole.operations() - begun;
    let (mut refused, mut stopped) = (0, 0);
    for at in 1..=operations {
        let (disk, hand, collection) = filled();
        let before = collection.collection_settings();
        disk.fail(at, Fault::Error(io::ErrorKind::Other));
        let error = match collection.change_settings(&width(30)) {
            Ok(_) => continue,
            Err(error) => error,
        };
        let again = reopen(&disk, &hand);
        insert(&again, &hand, "e", "words after it", 1062);
        if error.kind() == ErrorKind::Stopped {
            stopped += 1;
            continue;
        }
        refused += 1;
        assert_eq!(error.kind(), ErrorKind::Disk);
        assert_eq!(collection.collection_settings(), before);
        assert_eq!(reopen(&disk, &hand).collection_settings(), before);
        insert(&collection, &hand, "e", "words after it", 1062);
        collection.change_settings(&width(30)).unwrap();
    }
    assert!(
        refused >= 3 && stopped >= 2,
        "{refused} refused, {stopped} stopped of {operations}"
    );
}

/// Documents are inserted while the settings change again and again; the collection has them all under the
/// windows of their time when it is opened again.
#[test]
fn settings_change_under_load() {
    let (disk, hand, collection) = create(&settings(Some((1000, false))));
    hand.set(1000 * S);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let collection = &collection;
            scope.spawn(move || {
                for at in 0..150 {
                    let id = format!("{writer}-{at}");
                    let one = prepare(
                        collection,
                        vec![document(&id, &format!("x{id} y z{id}"), None)],
                    );
                    collection.insert_documents(&one).remove(0).unwrap();
                }
            });
        }
        for at in 0..40 {
            let change = SettingsChange {
                refresh: Some(at % 2 == 0),
                ..width(1000 + at)
            };
            collection.change_settings(&change).unwrap();
        }
    });
    let again = reopen(&disk, &hand);
    assert_eq!(
        again.collection_settings(),
        collection.collection_settings()
    );
    assert_eq!(again.collect_stats().unwrap().rows, 300);
    assert!(verify_collection(&disk.copy()).unwrap().findings.is_empty());
    let latency = collection.sync_latency();
    assert!(latency.count >= 1 && latency.count <= 300 + 80);
    assert_eq!(latency.buckets.iter().sum::<u64>(), latency.count);
}
