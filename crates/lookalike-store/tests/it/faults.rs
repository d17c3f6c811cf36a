//! A disk that refuses, fills up, or writes half.

use std::io;

use lookalike_store::ErrorKind;

use crate::disk::{Fault, Simulated};
use crate::power::script;
use crate::support::{Hand, Random, document, prepare};

/// Whatever fails, once: nothing is acknowledged from then on, though the disk works again, and all
/// that was before is there afterwards.
#[test]
fn after_a_failure_nothing_is_acknowledged_and_nothing_is_lost() {
    let script = script(11, 70, true);
    let faults = [
        Fault::Error(io::ErrorKind::Other),
        Fault::Error(io::ErrorKind::StorageFull),
        Fault::Short,
    ];
    let mut stopped_at = 0;
    for (at, fault) in (1..400).step_by(7).zip(faults.into_iter().cycle()) {
        let (disk, hand) = (Simulated::new(), Hand::default());
        let collection = script.create(&disk, &hand);
        disk.fail(at, fault);
        let mut acknowledged = 0;
        let mut stopped = false;
        for call in 0..script.calls.len() {
            match script.call(&collection, &hand, call) {
                Ok(_) => {
                    assert!(!stopped, "call {call} is answered after a failure at {at}");
                    acknowledged = call + 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Stopped, "{error}");
                    stopped = true;
                }
            }
        }
        if stopped {
            stopped_at += 1;
            let stats = collection.stats().unwrap();
            assert!(stats.stopped.is_some());
            assert!(collection.get("0-0").is_ok());
        }
        let lost = disk.after_power_loss(&mut Random(at));
        drop(collection);
        for disk in [disk.copy(), lost] {
            if let Err(wrong) = script.check(&disk, acknowledged) {
                panic!("{fault:?} at {at}: {wrong}");
            }
        }
    }
    assert!(stopped_at > 20, "{stopped_at}");
}

#[test]
fn a_disk_that_is_nearly_full_is_not_written_to() {
    let script = script(12, 10, false);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let mut options = hand.options();
    options.headroom = 1 << 20;
    let collection = lookalike_store::Collection::create(
        std::sync::Arc::new(disk.clone()),
        &script.settings,
        options,
    )
    .unwrap();
    let documents = prepare(&collection, vec![document("a", "one two three", None)]);
    disk.set_free((1 << 20) + 100);
    let before = disk.operations();
    let refused = collection.insert(&documents).remove(0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(refused.to_string().contains("1048676"), "{refused}");
    assert_eq!(disk.operations(), before);
    assert!(collection.get("a").unwrap().is_none());
    disk.set_free(1 << 30);
    assert!(collection.insert(&documents).remove(0).is_ok());
}
