//! Compaction: deleted content leaves the disk, and nothing else changes.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, CompactionTrigger, Disk, ExpiryClock,
    InsertAnswer, MaintenancePace, NewDocument, OnConflict, export_documents, read_settings,
    verify_collection,
};

use crate::disk::Simulated;
use crate::formats::{FIRST, stored};
use crate::power::{Script, replacing_script};
use crate::support::{Hand, Random, S, document, page_of_clusters, prepare, settings};

const DAY: i64 = 24 * 60 * 60 * S;

/// Returns `true` if a file of the disk contains these bytes.
fn has(disk: &Simulated, bytes: &str) -> bool {
    let names = disk.file_names().unwrap();
    let mut files = names.iter();
    files.any(|name| disk.position(name, bytes.as_bytes()).is_some())
}

fn bytes_of(disk: &Simulated) -> usize {
    let names = disk.file_names().unwrap();
    names.iter().map(|name| disk.length(name)).sum()
}

fn insert(collection: &Collection, document: NewDocument) -> InsertAnswer {
    let prepared = prepare(collection, vec![document]);
    collection.insert_documents(&prepared).remove(0).unwrap()
}

fn with_meta(id: &str, text: &str, meta: &str) -> NewDocument {
    NewDocument {
        meta: Some(meta.to_owned()),
        ..document(id, text, None)
    }
}

/// Returns everything that a collection reveals, except its size on disk.
fn contents(collection: &Collection) -> String {
    let mut lines = Vec::new();
    export_documents(collection, &mut lines).unwrap();
    let page = page_of_clusters(collection, None, usize::MAX, usize::MAX);
    let clusters: Vec<_> = page
        .clusters
        .iter()
        .map(|cluster| (&cluster.kept, &cluster.members))
        .collect();
    format!("{}\n{clusters:#?}", String::from_utf8(lines).unwrap())
}

/// Ids, texts and metas of deleted or replaced documents are readable on disk until compaction, which is due
/// after a day, and in no file after it. Live documents stay.
#[test]
fn deleted_documents_are_erased_from_disk() {
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..settings(None)
    };
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings, hand.options()).unwrap();
    let kept = with_meta("stays", "staying words of somebody", "\"staying meta\"");
    let first = insert(&collection, kept.clone());
    insert(
        &collection,
        with_meta("gone-id", "secret words of another", "\"secret meta\""),
    );
    insert(
        &collection,
        with_meta("gone-again", "secret words of another", "\"repeated meta\""),
    );
    insert(
        &collection,
        with_meta("new", "former words altogether", "\"former meta\""),
    );
    insert(
        &collection,
        with_meta("new", "latter words altogether", "\"latter meta\""),
    );
    assert!(
        collection.delete_document("gone-id").unwrap()
            && collection.delete_document("gone-again").unwrap()
    );
    let stats = collection.collect_stats().unwrap();
    assert_eq!((stats.rows, stats.dead_rows), (2, 6));
    let gone = [
        "gone-id",
        "gone-again",
        "secret words",
        "secret meta",
        "repeated meta",
        "former words",
        "former meta",
    ];
    assert!(gone.iter().all(|it| has(&disk, it)));
    hand.set(DAY - S);
    let upkeep = collection.run_maintenance(&mut || true).unwrap();
    assert_eq!(upkeep.compacted, 0);
    hand.set(DAY);
    let before = contents(&collection);
    let upkeep = collection.run_maintenance(&mut || true).unwrap();
    assert_eq!(upkeep.compacted, 1);
    assert_eq!(
        collection.run_maintenance(&mut || true).unwrap().compacted,
        0
    );
    for it in gone {
        assert!(!has(&disk, it), "{it}");
    }
    for it in [
        "stays",
        "staying words",
        "staying meta",
        "latter words",
        "latter meta",
    ] {
        assert!(has(&disk, it), "{it}");
    }
    let check = |collection: &Collection| {
        let stats = collection.collect_stats().unwrap();
        assert_eq!((stats.rows, stats.dead_rows, stats.kept), (2, 0, 2));
        assert_eq!(contents(collection), before);
        let again = insert(collection, kept.clone());
        assert_eq!(
            again,
            InsertAnswer {
                again: true,
                ..first.clone()
            }
        );
        assert!(collection.find_document("gone-id").unwrap().is_none());
    };
    check(&collection);
    let report = verify_collection(&disk.copy()).unwrap();
    assert!(
        report.findings.is_empty() && report.remade.is_empty(),
        "{report:?}"
    );
    drop(collection);
    let opened = disk.copy();
    let collection = Collection::open_existing(Arc::new(opened.clone()), hand.options()).unwrap();
    check(&collection);
    // Numbering continues.
    let next = insert(&collection, document("next", "something of its own", None));
    assert_eq!(next.seq, Some(9));
    assert_eq!(
        insert(
            &collection,
            document("near", "secret words of another", None)
        )
        .cluster_id(),
        "near"
    );
}

/// Replacing a few ids again and again takes at most twice the space of doing it once.
#[test]
fn replacing_does_not_grow_the_disk() {
    const IDS: usize = 400;
    let (disk, hand) = (Simulated::new(), Hand::default());
    let options = CollectionOptions {
        compaction: CompactionTrigger {
            least_dead_bytes: 64 << 10,
            ..CompactionTrigger::default()
        },
        ..hand.options()
    };
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..settings(None)
    };
    let collection = Collection::create_empty(Arc::new(disk.clone()), &settings, options).unwrap();
    let (mut once, mut compacted) = (0, 0);
    for round in 0..30 {
        let text = |id: usize| format!("w{id}r{round} ").repeat(3) + &"x".repeat(id % 90 + 80);
        let documents = (0..IDS).map(|id| document(&format!("id-{id}"), &text(id), None));
        let answers = collection.insert_documents(&prepare(&collection, documents.collect()));
        assert!(answers.iter().all(Result::is_ok));
        if round == 0 {
            once = bytes_of(&disk);
        }
        compacted += collection.run_maintenance(&mut || true).unwrap().compacted;
        let now = bytes_of(&disk);
        assert!(
            now <= 2 * once,
            "{now} bytes in round {round}, {once} in the first"
        );
    }
    assert!(compacted > 5, "{compacted}");
    let stats = collection.collect_stats().unwrap();
    assert_eq!(stats.rows, IDS as u64);
    let now = contents(&collection);
    drop(collection);
    let collection = Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap();
    assert_eq!(contents(&collection), now);
}

/// Makes the calls of a script, and compacts everything after some of them while the next ones run.
pub(crate) fn run_compacting(
    script: &Script,
    collection: &Collection,
    hand: &Hand,
    every: usize,
    mut answered: impl FnMut(usize, Vec<InsertAnswer>),
) -> u64 {
    let next = Cell::new(0);
    let mut call = || {
        let at = next.get();
        if at < script.calls.len() {
            next.set(at + 1);
            let answers = script.call(collection, hand, at).unwrap();
            answered(at, answers);
        }
        true
    };
    let mut compacted = 0;
    while next.get() < script.calls.len() {
        call();
        if next.get().is_multiple_of(every) {
            compacted += collection.compact_all(&mut call).unwrap();
        }
    }
    compacted
}

/// Answers, sequence numbers, clusters and exports equal those of a collection that is never compacted, also
/// after it is opened again.
#[test]
fn compaction_changes_no_answer() {
    for (seed, refresh) in [(61, false), (62, true), (63, true), (64, false)] {
        let script = replacing_script(seed, 150, refresh);
        let (plain, hand) = (Simulated::new(), Hand::default());
        let other = script.create(&plain, &hand);
        let compacted_disk = Simulated::new();
        let collection = script.create(&compacted_disk, &hand);
        let compacted = run_compacting(&script, &collection, &hand, 9, |call, answers| {
            assert_eq!(answers, script.answers(call), "call {call} of {seed}");
        });
        assert!(compacted > 12, "{compacted}");
        for call in 0..script.calls.len() {
            script.call(&other, &hand, call).unwrap();
        }
        let expected = contents(&other);
        assert_eq!(contents(&collection), expected, "{seed}");
        let opened = |disk: &Simulated| {
            let collection = Collection::open_existing(Arc::new(disk.copy()), hand.options());
            let collection = collection.unwrap();
            let (rows, kept) = (
                collection.collect_stats().unwrap().rows,
                collection.collect_stats().unwrap().kept,
            );
            (contents(&collection), rows, kept)
        };
        assert_eq!(opened(&compacted_disk), opened(&plain));
        assert_eq!(opened(&compacted_disk).0, expected);
        let report = verify_collection(&compacted_disk.copy()).unwrap();
        assert!(
            report.findings.is_empty() && report.remade.is_empty(),
            "{report:?}"
        );
        // A second compaction leaves only live rows.
        collection.compact_all(&mut || true).unwrap();
        assert_eq!(contents(&collection), expected);
    }
}

/// Members of a cluster are listed page by page while some of them are erased.
#[test]
fn clusters_keep_their_order() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings(None), hand.options()).unwrap();
    for at in 0..9 {
        insert(
            &collection,
            document(&at.to_string(), "one two three four", None),
        );
    }
    let ids = |collection: &Collection| -> Vec<String> {
        let cluster = collection.find_cluster("0", None, 99).unwrap().unwrap();
        cluster
            .members
            .into_iter()
            .map(|member| member.id)
            .collect()
    };
    for (deleted, left) in [
        (vec!["8", "3", "4"], vec!["7", "6", "5", "2", "1"]),
        (vec!["7", "1"], vec!["6", "5", "2"]),
        (vec!["6", "5", "2"], vec![]),
    ] {
        for id in deleted {
            assert!(collection.delete_document(id).unwrap());
        }
        assert_eq!(ids(&collection), left);
        assert_eq!(collection.compact_all(&mut || true).unwrap(), 1);
        assert_eq!(ids(&collection), left);
        let opened = Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap();
        assert_eq!(ids(&opened), left);
    }
    insert(&collection, document("9", "one two three four", None));
    insert(&collection, document("10", "one two three four", None));
    assert_eq!(ids(&collection), ["10", "9"]);
    let opened = Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap();
    assert_eq!(ids(&opened), ["10", "9"]);
    let behind = |after: u64| -> Vec<String> {
        let cluster = opened.find_cluster("0", Some(after), 9).unwrap().unwrap();
        cluster
            .members
            .into_iter()
            .map(|member| member.id)
            .collect()
    };
    // A page may begin after a member that no longer exists.
    let last = opened.collect_stats().unwrap().durable;
    assert_eq!(behind(last), ["9"]);
    assert!(behind(4).is_empty() && behind(last - 1).is_empty());
}

/// Deletions of earlier versions have no time, so their partitions are due at once.
#[test]
fn deletions_of_older_versions_are_erased() {
    let (disk, held) = stored(FIRST);
    let hand = Hand::default();
    let collection = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap();
    assert!(collection.collect_stats().unwrap().dead_rows > 0);
    assert!(collection.run_maintenance(&mut || true).unwrap().compacted > 0);
    let mut lines = Vec::new();
    export_documents(&collection, &mut lines).unwrap();
    assert_eq!(String::from_utf8(lines).unwrap(), held);
    drop(collection);
    let report = verify_collection(&disk.copy()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    let collection = Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap();
    assert_eq!(
        collection.run_maintenance(&mut || true).unwrap().compacted,
        0
    );
    let mut lines = Vec::new();
    export_documents(&collection, &mut lines).unwrap();
    assert_eq!(String::from_utf8(lines).unwrap(), held);
}

/// However long texts are, little is written between two rests, and little waits to be synced then:
/// commits of others wait for that.
#[test]
fn compaction_is_done_in_small_pieces() {
    const PIECE: usize = 512 << 10;
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings(None), hand.options()).unwrap();
    let mut random = Random(71);
    let text = |_| {
        let words = (0..900).map(|_| format!("{:x} ", random.next() >> 32));
        words.collect::<String>()
    };
    let texts: Vec<String> = (0..1200).map(text).collect();
    for some in texts.chunks(100) {
        let documents = some.iter().map(|text| document(&text[..20], text, None));
        let answers = collection.insert_documents(&prepare(&collection, documents.collect()));
        assert!(answers.iter().all(Result::is_ok));
    }
    assert!(collection.delete_document(&texts[0][..20]).unwrap());
    let bytes = bytes_of(&disk);
    assert!(bytes > 8 * PIECE, "{bytes}");
    let (unsynced_before, mut written_before) = (disk.unsynced(), disk.written());
    let mut rests = 0;
    let mut go_on = || {
        let (written, unsynced) = (disk.written(), disk.unsynced());
        let piece = written - std::mem::replace(&mut written_before, written);
        // Records, the rows and sketches of as many documents, and at first an empty database.
        assert!(piece <= 4 * PIECE, "{piece} bytes");
        let waiting = unsynced.saturating_sub(unsynced_before);
        assert!(waiting <= 2 * PIECE, "{waiting} bytes");
        rests += 1;
        true
    };
    assert_eq!(collection.compact_all(&mut go_on).unwrap(), 1);
    let last = disk.written() - written_before;
    assert!(last <= 3 * PIECE, "{last} bytes in the end");
    assert!(rests > 8, "{rests}");
}

/// An abandoned compaction leaves no files, and a later call completes it.
#[test]
fn compaction_can_be_cancelled() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings(None), hand.options()).unwrap();
    insert(&collection, document("a", "words that go away", None));
    insert(&collection, document("b", "other words that stay", None));
    assert!(collection.delete_document("a").unwrap());
    let names = disk.file_names().unwrap();
    for steps in 0..2 {
        let mut left = steps;
        let mut go_on = || {
            left -= 1;
            left >= 0
        };
        assert_eq!(collection.compact_all(&mut go_on).unwrap(), 0, "{steps}");
        assert_eq!(disk.file_names().unwrap(), names);
        assert!(has(&disk, "words that go away"));
    }
    assert_eq!(collection.compact_all(&mut || true).unwrap(), 1);
    assert!(!has(&disk, "words that go away") && has(&disk, "words that stay"));
    assert_eq!(disk.file_names().unwrap().len(), names.len());
}

/// A snapshot made after compaction is complete, and so is a restored one.
#[test]
fn compacted_collection_can_be_copied() {
    let script = replacing_script(65, 120, true);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    run_compacting(&script, &collection, &hand, 11, |_, _| ());
    let (copy, restored) = (Simulated::new(), Simulated::new());
    collection.copy_to_snapshot(&copy).unwrap();
    lookalike_store::restore_collection(&copy, &restored, 0).unwrap();
    for disk in [copy, restored] {
        assert!(verify_collection(&disk.copy()).unwrap().findings.is_empty());
        let copied = Collection::open_existing(Arc::new(disk), hand.options()).unwrap();
        assert_eq!(contents(&copied), contents(&collection));
    }
}

pub(crate) fn by_wall(width: u64) -> CollectionSettings {
    let made = settings(Some((width, false)));
    CollectionSettings {
        window: made.window.map(|window| window.with_wall_clock(true)),
        ..made
    }
}

/// Time passes without writes: a document exists until the end of its window, and leaves the disk a 24th of
/// the window later.
#[test]
fn documents_expire_by_the_clock_without_writes() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    hand.set(1000 * S);
    let (wall, plain) = (by_wall(240), settings(Some((240, false))));
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &wall, hand.options()).unwrap();
    let documents_disk = Simulated::new();
    let by_documents =
        Collection::create_empty(Arc::new(documents_disk.clone()), &plain, hand.options()).unwrap();
    for collection in [&collection, &by_documents] {
        insert(collection, document("a", "words that go away", None));
    }
    for seconds in 1001..=1240 {
        hand.set(seconds * S);
        collection.run_maintenance(&mut || true).unwrap();
        assert!(
            collection.find_document("a").unwrap().is_some(),
            "{seconds}"
        );
    }
    hand.set(1240 * S + 1);
    assert!(collection.find_document("a").unwrap().is_none());
    assert!(collection.find_cluster("a", None, 9).unwrap().is_none());
    assert!(has(&disk, "words that go away"));
    hand.set(1250 * S);
    assert_eq!(collection.run_maintenance(&mut || true).unwrap().expired, 1);
    assert!(!has(&disk, "words that go away"));
    let stats = collection.collect_stats().unwrap();
    assert_eq!((stats.rows, stats.kept, stats.partitions), (0, 0, 1));
    assert_eq!(
        collection.run_maintenance(&mut || true).unwrap(),
        lookalike_store::MaintenanceReport::default()
    );
    // A document with an old time is late by the wall clock, whatever came before. By the clock of documents
    // it is not.
    let late = document("b", "words of long ago", Some(1009 * S));
    assert_eq!(insert(&collection, late.clone()).seq, None);
    assert_eq!(insert(&by_documents, late).seq, Some(2));
    by_documents.run_maintenance(&mut || true).unwrap();
    assert!(by_documents.find_document("a").unwrap().is_some());
    // The same holds after the collection is opened again.
    drop(collection);
    let collection = Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap();
    assert_eq!(
        insert(&collection, document("c", "words of today", None)).seq,
        Some(2)
    );
    hand.set(1491 * S);
    assert!(collection.find_document("c").unwrap().is_none());
    assert!(!collection.delete_document("c").unwrap());
}

/// A document that arrived late, but within the window, leaves the disk a 24th of the window after it has
/// left the window, and not together with those that arrived at the same time.
#[test]
fn late_documents_expire_by_the_wall_clock() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    hand.set(1000 * S);
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &by_wall(240), hand.options()).unwrap();
    insert(&collection, document("fresh", "words of today", None));
    let late = document("late", "some news of long ago", Some(800 * S));
    assert_eq!(insert(&collection, late).seq, Some(2));
    insert(
        &collection,
        document("repeat", "some news of long ago", None),
    );
    for seconds in 1001..=1040 {
        hand.set(seconds * S);
        assert_eq!(
            collection.run_maintenance(&mut || true).unwrap().compacted,
            0
        );
        assert!(
            collection.find_document("late").unwrap().is_some(),
            "{seconds}"
        );
    }
    hand.set(1050 * S);
    assert!(collection.find_document("late").unwrap().is_none());
    assert!(has(&disk, "latesome"));
    let partitions = collection.collect_stats().unwrap().partitions;
    assert_eq!(
        collection.run_maintenance(&mut || true).unwrap().compacted,
        1
    );
    assert_eq!(
        collection.run_maintenance(&mut || true).unwrap().compacted,
        0
    );
    assert_eq!(collection.collect_stats().unwrap().partitions, partitions);
    // The duplicate has the same text and still exists.
    assert!(!has(&disk, "latesome") && has(&disk, "repeatsome"));
    let check = |collection: &Collection| {
        let there = ["fresh", "late", "repeat"].map(|id| collection.find_document(id).unwrap());
        assert_eq!(there.each_ref().map(Option::is_some), [true, false, true]);
        assert!(there[2].as_ref().unwrap().of_is_gone);
        assert_eq!(collection.collect_stats().unwrap().rows, 2);
    };
    check(&collection);
    drop(collection);
    check(&Collection::open_existing(Arc::new(disk.copy()), hand.options()).unwrap());
}

/// The manifest contains the setting unless it is the default.
#[test]
fn clock_is_stored_in_the_manifest() {
    for (settings, expire) in [
        (by_wall(240), ExpiryClock::Wall),
        (settings(Some((240, false))), ExpiryClock::Documents),
    ] {
        let disk = Simulated::new();
        let options = Hand::default().options();
        drop(Collection::create_empty(Arc::new(disk.clone()), &settings, options).unwrap());
        assert_eq!(read_settings(&disk).unwrap(), settings);
        assert_eq!(ExpiryClock::from_window(&settings.window.unwrap()), expire);
        assert_eq!(has(&disk, "expire"), expire == ExpiryClock::Wall);
    }
}

/// Neither readers nor writers wait for compaction. Prints the longest wait on a real disk.
#[test]
#[ignore = "measures for some seconds"]
fn compaction_blocks_no_call() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    const IDS: usize = 8000;
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(lookalike_store::DiskFolder::open(folder.path()).unwrap());
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..CollectionSettings::default()
    };
    let collection =
        Collection::create_empty(disk, &settings, CollectionOptions::default()).unwrap();
    let text = |id: usize, round: usize| format!("word{id} in{round} ").repeat(120);
    let bytes = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let (mut once, mut most, mut longest_read, mut inserts) = (0, 0, Duration::ZERO, Vec::new());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let upkeep = scope.spawn(|| {
            let mut compacted = 0;
            while !done.load(Ordering::Relaxed) {
                let mut pace = MaintenancePace::new();
                let mut go_on = || {
                    pace.rest();
                    true
                };
                compacted += collection.run_maintenance(&mut go_on).unwrap().compacted;
                std::thread::sleep(Duration::from_millis(200));
            }
            compacted
        });
        let reader = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                collection.find_document("id-7").unwrap();
                longest = longest.max(begun.elapsed());
                std::thread::sleep(Duration::from_micros(200));
            }
            longest
        });
        for round in 0..12 {
            for ids in (0..IDS).collect::<Vec<_>>().chunks(100) {
                let documents = ids
                    .iter()
                    .map(|&id| document(&format!("id-{id}"), &text(id, round), None));
                let prepared = prepare(&collection, documents.collect());
                let begun = Instant::now();
                assert!(
                    collection
                        .insert_documents(&prepared)
                        .iter()
                        .all(Result::is_ok)
                );
                inserts.push(begun.elapsed());
            }
            if round == 0 {
                once = bytes();
            }
            most = most.max(bytes());
        }
        done.store(true, Ordering::Relaxed);
        println!("{} compactions", upkeep.join().unwrap());
        longest_read = reader.join().unwrap();
    });
    inserts.sort_unstable();
    let at = |share: f64| inserts[((inserts.len() - 1) as f64 * share) as usize];
    println!(
        "once {once} bytes, at most {most}, in the end {}; inserts of 100: median {:?}, p99 {:?}, most {:?}; longest read {longest_read:?}",
        bytes(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    assert!(longest_read < Duration::from_millis(50), "{longest_read:?}");
}
