//! Copies of a collection that goes on meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lookalike_store::{Collection, Disk, verify};

use crate::disk::Simulated;
use crate::power::{Script, replacing_script, script};
use crate::support::{Hand, document, prepare, settings};

/// After how many calls, of some, a copy was made. It must be whole, and answer what comes next as the
/// collection did.
fn calls_in(copy: &Simulated, script: &Script, calls: std::ops::RangeInclusive<usize>) -> usize {
    let report = verify(&copy.copy()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    let options = Hand::default().options();
    let collection = Collection::open(Arc::new(copy.copy()), options).unwrap();
    let durable = collection.stats().unwrap().durable;
    let found = calls.clone().find(|&calls| script.lasts[calls] == durable);
    let found = found.unwrap_or_else(|| panic!("{durable} rows, and not those of {calls:?} calls"));
    if let Err(wrong) = script.check(&copy.copy(), found) {
        panic!("{wrong}");
    }
    found
}

#[test]
fn a_copy_is_all_up_to_one_moment() {
    let script = replacing_script(41, 200, true);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    // Until there are partitions that are not written any more, and so are copied beside what comes.
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
                // As many as copies allow, and the rest when there are no more.
                let _ = allowed.recv();
                script.call(collection, hand, call).unwrap();
                of_writer.store(call + 1, Ordering::SeqCst);
            }
        });
        while answered.load(Ordering::SeqCst) < script.calls.len() && copies.len() < 20 {
            let copy = Simulated::new();
            let before = answered.load(Ordering::SeqCst);
            let (allow, of_copy) = (allow.clone(), answered.clone());
            // Copying takes long enough that documents come meanwhile.
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
            collection.snapshot(&copy).unwrap();
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

/// All partitions that were there when copying began have expired when it ends.
#[test]
fn what_expires_while_it_is_copied_leaves_no_gap() {
    let script = Arc::new(script(42, 200, false));
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = Arc::new(script.create(&disk, &hand));
    for call in 0..100 {
        script.call(&collection, &hand, call).unwrap();
    }
    assert!(collection.stats().unwrap().partitions >= 3);
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
    collection.snapshot(&copy).unwrap();
    copy.set_hook(|_, _| ());
    let calls = script.calls.len() - 3;
    assert_eq!(calls_in(&copy, &script, calls..=calls), calls);
    let rows = |disk: &Simulated| -> Vec<String> {
        let names = disk.names().unwrap().into_iter();
        names.filter(|name| name.ends_with(".rows")).collect()
    };
    assert_eq!(rows(&copy), rows(&disk));
}

/// What is admitted and not yet on disk is not in a copy, and neither is what it drops missing there.
#[test]
fn a_copy_is_what_is_on_disk() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let settings = settings(Some((24, false)));
    let new = Arc::new(disk.clone());
    let collection = Collection::create(new, &settings, hand.options()).unwrap();
    let at = |seconds: i64, id: &str| {
        hand.set(seconds * crate::support::S);
        prepare(&collection, vec![document(id, "one two three", None)])
    };
    for (seconds, id) in [(1000, "a"), (1010, "b")] {
        assert!(collection.insert(&at(seconds, id)).remove(0).is_ok());
    }
    let admitted = collection.admit(&at(5000, "c"));
    let copy = Simulated::new();
    collection.snapshot(&copy).unwrap();
    assert!(collection.settle(admitted).remove(0).is_ok());
    hand.set(1010 * crate::support::S);
    let copied = Collection::open(Arc::new(copy), hand.options()).unwrap();
    assert_eq!(copied.stats().unwrap().durable, 2);
    let is_there = ["a", "b", "c"].map(|id| copied.get(id).unwrap().is_some());
    assert_eq!(is_there, [true, true, false]);
}
