//! Snapshots of a collection that stays in use.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use lookalike_store::{
    Collection, CollectionSettings, Disk, DiskFile, ErrorKind, restore_collection,
    verify_collection,
};

use crate::disk::{Fault, Simulated};
use crate::power::{Script, replacing_script, script};
use crate::support::{Hand, document, prepare, settings};

/// Returns after how many calls a copy was made. The copy must be complete, and answer the next calls as the
/// collection did.
fn calls_in(copy: &Simulated, script: &Script, calls: std::ops::RangeInclusive<usize>) -> usize {
    let report = verify_collection(&copy.copy()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    let options = Hand::default().options();
    let collection = Collection::open_existing(Arc::new(copy.copy()), options).unwrap();
    let durable = collection.collect_stats().unwrap().durable;
    let found = calls.clone().find(|&calls| script.lasts[calls] == durable);
    let found = found.unwrap_or_else(|| panic!("{durable} rows, and not those of {calls:?} calls"));
    if let Err(wrong) = script.check(&copy.copy(), found) {
        panic!("{wrong}");
    }
    found
}

#[test]
fn snapshot_is_a_prefix_of_inserts() {
    let script = replacing_script(41, 200, true);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    // Runs until some partitions are complete and are copied while new documents arrive.
    for call in 0..100 {
        script.call(&collection, &hand, call).unwrap();
    }
    let answered = Arc::new(AtomicUsize::new(100));
    let (allow, allowed) = mpsc::channel();
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        let (of_writer, collection) = (answered.clone(), &collection);
        let (script, hand) = (&script, &hand);
        scope.spawn(move || {
            for call in 100..script.calls.len() {
                // Makes as many calls as the copy allows, and the rest when it is done.
                let _ = allowed.recv();
                script.call(collection, hand, call).unwrap();
                of_writer.store(call + 1, Ordering::SeqCst);
            }
        });
        while answered.load(Ordering::SeqCst) < script.calls.len() && copies.len() < 20 {
            let copy = Simulated::new();
            let before = answered.load(Ordering::SeqCst);
            let (allow, of_copy) = (allow.clone(), answered.clone());
            // Delays the copy, so that documents arrive during it.
            copy.set_hook(move |_, operation| {
                let _ = allow.send(());
                let begun = Instant::now();
                while operation == 1
                    && of_copy.load(Ordering::SeqCst) == before
                    && begun.elapsed() < Duration::from_secs(10)
                {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(1));
            });
            collection.copy_to_snapshot(&copy).unwrap();
            copy.set_hook(|_, _| ());
            copies.push((copy, before, answered.load(Ordering::SeqCst)));
        }
        drop(allow);
    });
    let mut in_between = 0;
    for (copy, before, after) in &copies {
        let last = (after + 1).min(script.calls.len());
        let found = calls_in(copy, &script, *before..=last);
        in_between += usize::from(*before < found && found < script.calls.len());
    }
    assert!(in_between > 1, "{in_between} of {}", copies.len());
}

/// All partitions that existed when copying began have expired when it ends.
#[test]
fn expiry_during_a_snapshot_leaves_no_gap() {
    let script = Arc::new(script(42, 200, false));
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = Arc::new(script.create(&disk, &hand));
    for call in 0..100 {
        script.call(&collection, &hand, call).unwrap();
    }
    assert!(collection.collect_stats().unwrap().partitions >= 3);
    let copy = Simulated::new();
    let of_copy = (collection.clone(), script.clone());
    copy.set_hook(move |_, operation| {
        let (collection, script) = &of_copy;
        if operation == 1 {
            for call in 100..script.calls.len() - 3 {
                script.call(collection, &hand, call).unwrap();
            }
        }
    });
    collection.copy_to_snapshot(&copy).unwrap();
    copy.set_hook(|_, _| ());
    let calls = script.calls.len() - 3;
    assert_eq!(calls_in(&copy, &script, calls..=calls), calls);
    let rows = |disk: &Simulated| -> Vec<String> {
        let names = disk.file_names().unwrap().into_iter();
        names.filter(|name| name.ends_with(".rows")).collect()
    };
    assert_eq!(rows(&copy), rows(&disk));
}

/// Documents that are admitted but not yet on disk are not in a copy, and documents that they expire are.
#[test]
fn snapshot_equals_the_disk() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let settings = settings(Some((24, false)));
    let new = Arc::new(disk.clone());
    let collection = Collection::create_empty(new, &settings, hand.options()).unwrap();
    let at = |seconds: i64, id: &str| {
        hand.set(seconds * crate::support::S);
        prepare(&collection, vec![document(id, "one two three", None)])
    };
    for (seconds, id) in [(1000, "a"), (1010, "b")] {
        assert!(
            collection
                .insert_documents(&at(seconds, id))
                .remove(0)
                .is_ok()
        );
    }
    let admitted = collection.admit_documents(&at(5000, "c"));
    let copy = Simulated::new();
    collection.copy_to_snapshot(&copy).unwrap();
    assert!(collection.wait_until_durable(admitted).remove(0).is_ok());
    hand.set(1010 * crate::support::S);
    let copied = Collection::open_existing(Arc::new(copy), hand.options()).unwrap();
    assert_eq!(copied.collect_stats().unwrap().durable, 2);
    let is_there = ["a", "b", "c"].map(|id| copied.find_document(id).unwrap().is_some());
    assert_eq!(is_there, [true, true, false]);
}

/// Creates a collection without a window, with some documents and a headroom.
fn with_headroom(disk: &Simulated, headroom: u64) -> Arc<Collection> {
    let mut options = Hand::default().options();
    options.headroom = headroom;
    let new = Arc::new(disk.clone());
    let collection =
        Collection::create_empty(new, &CollectionSettings::default(), options).unwrap();
    let documents = (0..200).map(|at| document(&format!("id-{at}"), &format!("x{at}"), None));
    let documents = prepare(&collection, documents.collect());
    assert!(
        collection
            .insert_documents(&documents)
            .iter()
            .all(Result::is_ok)
    );
    Arc::new(collection)
}

const HEADROOM: u64 = 1 << 20;

/// Returns the bytes of all files of a collection except those that are written last.
fn bytes_of(disk: &Simulated) -> u64 {
    let names = disk.file_names().unwrap().into_iter();
    let names = names.filter(|name| name.starts_with('0'));
    names.map(|name| disk.length(&name) as u64).sum()
}

#[test]
fn snapshot_keeps_the_disk_headroom() {
    let disk = Simulated::new();
    let collection = with_headroom(&disk, HEADROOM);
    let copy = Simulated::new();
    copy.set_free(HEADROOM + bytes_of(&disk) - 1);
    let refused = collection.copy_to_snapshot(&copy).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    assert_eq!(copy.operations(), 0);
    copy.set_free(HEADROOM + bytes_of(&disk));
    collection.copy_to_snapshot(&copy).unwrap();
    assert!(verify_collection(&copy.copy()).unwrap().findings.is_empty());
    let new = Simulated::new();
    new.set_free(bytes_of(&disk) - 1);
    let refused = restore_collection(&copy, &new, 0).unwrap_err();
    assert_eq!((refused.kind(), new.operations()), (ErrorKind::Full, 0));
}

/// Others use up the free space during a copy. Those that wait for the copy write only after its files are
/// removed.
#[test]
fn failed_snapshot_is_removed_before_writes() {
    let whole = Simulated::new();
    with_headroom(&Simulated::new(), 0)
        .copy_to_snapshot(&whole)
        .unwrap();
    let mut refused_at = Vec::new();
    for full_at in 1..=whole.operations() {
        let disk = Simulated::new();
        let collection = with_headroom(&disk, HEADROOM);
        let copy = Simulated::new();
        let (writing, written) = mpsc::channel();
        let of_copy = collection.clone();
        copy.set_hook(move |copy, operation| {
            if operation != full_at {
                return;
            }
            copy.set_free(HEADROOM - 1);
            let (collection, written) = (of_copy.clone(), writing.clone());
            std::thread::spawn(move || {
                let documents = prepare(&collection, vec![document("last", "last", None)]);
                let answer = collection.insert_documents(&documents).remove(0);
                let _ = written.send(answer.map(drop));
            });
            std::thread::sleep(Duration::from_millis(20));
        });
        let (of_copy, seen) = (copy.clone(), Arc::new(AtomicUsize::new(0)));
        let of_writer = seen.clone();
        disk.set_hook(move |_, _| {
            let names = of_copy.file_names().unwrap();
            of_writer.fetch_max(names.len(), Ordering::SeqCst);
        });
        let copied = collection.copy_to_snapshot(&copy);
        let answer = written.recv_timeout(Duration::from_secs(10)).unwrap();
        answer.unwrap();
        copy.set_hook(|_, _| ());
        disk.set_hook(|_, _| ());
        let Err(refused) = copied else { continue };
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
        assert!(copy.file_names().unwrap().is_empty());
        refused_at.push(full_at);
        // Writes before this point run at the same time as the copy.
        if full_at > BESIDE {
            assert_eq!(seen.load(Ordering::SeqCst), 0, "at {full_at}");
        }
    }
    assert!(refused_at.iter().any(|&at| at > BESIDE), "{refused_at:?}");
}

/// Whatever operation finds the disk full, also while the list of partitions and the manifest are written, nothing is
/// left of the copy.
#[test]
fn snapshot_on_a_full_disk_leaves_no_file() {
    let collection = with_headroom(&Simulated::new(), 0);
    let whole = Simulated::new();
    collection.copy_to_snapshot(&whole).unwrap();
    for operation in 1..=whole.operations() {
        let copy = Simulated::new();
        copy.fail(operation, Fault::Error(io::ErrorKind::StorageFull));
        let refused = collection.copy_to_snapshot(&copy).unwrap_err();
        let left = copy.file_names().unwrap();
        assert!(
            left.is_empty(),
            "operation {operation}, {refused}: {left:?}"
        );
    }
}

/// Copies a collection while other threads insert a document before each of the first operations of the copy.
/// Returns how many of them had to wait for it.
fn copied_while_others_write(collection: &Arc<Collection>, copy: &Simulated) -> usize {
    let (waited, of_copy) = (Arc::new(AtomicUsize::new(0)), collection.clone());
    let of_hook = waited.clone();
    copy.set_hook(move |_, operation| {
        if operation > BESIDE {
            return;
        }
        let (collection, (done, written)) = (of_copy.clone(), mpsc::channel());
        std::thread::spawn(move || {
            let text = format!("new at {operation}");
            let documents = prepare(&collection, vec![document(&text, &text, None)]);
            let _ = done.send(collection.insert_documents(&documents).remove(0).unwrap());
        });
        let written = written.recv_timeout(Duration::from_secs(10));
        of_hook.fetch_add(usize::from(written.is_err()), Ordering::SeqCst);
    });
    collection.copy_to_snapshot(copy).unwrap();
    copy.set_hook(|_, _| ());
    waited.load(Ordering::SeqCst)
}

/// Operations before writers must wait: the files of texts and sketches are created and written to their
/// ends.
const BESIDE: u64 = 4;

/// Without a window there is one partition. Inserts do not wait while its texts are copied.
#[test]
fn texts_are_copied_while_others_write() {
    let collection = with_headroom(&Simulated::new(), 0);
    let copy = Simulated::new();
    assert_eq!(copied_while_others_write(&collection, &copy), 0);
    let report = verify_collection(&copy.copy()).unwrap();
    let wrong = [report.findings, report.remade].concat();
    assert!(wrong.is_empty(), "{wrong:?}");
    let copied =
        Collection::open_existing(Arc::new(copy.copy()), Hand::default().options()).unwrap();
    for id in ["id-199", "new at 1", "new at 2", "new at 3", "new at 4"] {
        assert!(copied.find_document(id).unwrap().is_some(), "{id}");
    }
}

/// Bytes that a power failure left after the valid texts and sketches are overwritten while a copy is made.
#[test]
fn snapshot_ignores_bytes_after_valid_rows() {
    let disk = Simulated::new();
    drop(with_headroom(&disk, 0));
    for ending in [".texts", ".sketches"] {
        let mut names = disk.file_names().unwrap().into_iter();
        let name = names.find(|name| name.ends_with(ending)).unwrap();
        let file = disk.open_file(&name).unwrap();
        file.write_at(&[7; 4096], file.len().unwrap()).unwrap();
    }
    let options = Hand::default().options();
    let collection = Arc::new(Collection::open_existing(Arc::new(disk), options).unwrap());
    let copy = Simulated::new();
    assert_eq!(copied_while_others_write(&collection, &copy), 0);
    let report = verify_collection(&copy).unwrap();
    let wrong = [report.findings, report.remade].concat();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A disk that records changes of names.
#[derive(Debug)]
struct Noted {
    disk: Simulated,
    changes: Mutex<Vec<String>>,
}

impl Noted {
    fn note(&self, change: &str) {
        self.changes.lock().unwrap().push(change.to_owned());
    }
}

impl Disk for Noted {
    fn create_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.note("create");
        self.disk.create_file(name)
    }

    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open_file(name)
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        self.disk.file_names()
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        self.note(&format!("{from} to {to}"));
        self.disk.rename_file(from, to)
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.disk.remove_file(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.note("sync");
        self.disk.sync_names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

/// Not every file system keeps the order of name changes, and a manifest marks a copy as complete.
#[test]
fn restore_writes_the_manifest_last() {
    let (disk, copy) = (Simulated::new(), Simulated::new());
    with_headroom(&disk, 0).copy_to_snapshot(&copy).unwrap();
    let noted = Noted {
        disk: Simulated::new(),
        changes: Mutex::default(),
    };
    restore_collection(&copy, &noted, 0).unwrap();
    let changes = noted.changes.into_inner().unwrap();
    let last: Vec<_> = changes.iter().rev().take(4).rev().collect();
    assert_eq!(last, ["create", "sync", "manifest.new to manifest", "sync"]);
}
