//! A disk that refuses, fills up, or writes half.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use lookalike_store::{Collection, Disk, DiskFile, ErrorKind, Folder, Settings, verify};

use crate::disk::{Fault, Simulated};
use crate::power::script;
use crate::support::{Hand, Random, document, prepare, text};

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

/// Deletions are written as well.
#[test]
fn nothing_is_deleted_on_a_disk_that_is_nearly_full() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let mut options = hand.options();
    options.headroom = 1 << 20;
    let new = Arc::new(disk.clone());
    let collection = Collection::create(new, &Settings::default(), options).unwrap();
    let documents = prepare(&collection, vec![document("a", "one two three", None)]);
    assert!(collection.insert(&documents).remove(0).is_ok());
    disk.set_free(1 << 20);
    let before = disk.operations();
    assert_eq!(collection.delete("a").unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(disk.operations(), before);
    assert!(collection.get("a").unwrap().is_some());
    disk.set_free(1 << 30);
    assert!(collection.delete("a").unwrap());
}

/// A manifest that is lost is not replaced by that of another collection.
#[test]
fn files_without_a_manifest_are_not_written_over() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let create =
        || Collection::create(Arc::new(disk.clone()), &Settings::default(), hand.options());
    let collection = create().unwrap();
    let documents = prepare(&collection, vec![document("a", "one two three", None)]);
    assert!(collection.insert(&documents).remove(0).is_ok());
    drop(collection);
    disk.remove("manifest").unwrap();
    let refused = create().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Setting);
    assert!(
        refused.to_string().contains("manifest is missing"),
        "{refused}"
    );
    assert!(!disk.names().unwrap().iter().any(|name| name == "manifest"));
}

/// A directory that never says that it is nearly full.
#[derive(Debug)]
struct Boundless(Folder);

impl Disk for Boundless {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.sync_names()
    }

    fn free(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// A file system in memory of some bytes, as long as this lives.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        run(
            "mount",
            &["-t", "tmpfs", "-o", &size, "tmpfs"],
            folder.path(),
        );
        Self(folder)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[], self.0.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).status();
    assert!(status.unwrap().success(), "'{program}' refuses");
}

/// A disk that is really full: what was acknowledged is there once there is room again.
#[test]
#[ignore = "mounts a file system, for which it must be root"]
fn a_full_disk_loses_nothing() {
    for megabytes in 3..9 {
        let mounted = Mounted::new(megabytes << 20);
        let path = mounted.0.path();
        let (settings, hand) = (Settings::default(), Hand::default());
        let disk = Arc::new(Boundless(Folder::open(path).unwrap()));
        let collection = Collection::create(disk, &settings, hand.options()).unwrap();
        let mut acknowledged = Vec::new();
        let refused = (0..).find_map(|call| {
            let documents = (0..20).map(|at| {
                let id = format!("{call}-{at}");
                document(&id, &text(call * 20 + at).repeat(9), None)
            });
            let documents: Vec<_> = documents.collect();
            let prepared = prepare(&collection, documents.clone());
            let answers = collection.insert(&prepared).into_iter();
            match answers.collect::<Result<Vec<_>, _>>() {
                Ok(_) => acknowledged.extend(documents),
                Err(error) => return Some(error),
            }
            None
        });
        let refused = refused.unwrap();
        assert_eq!(refused.kind(), ErrorKind::Stopped, "{refused}");
        assert!(refused.to_string().contains("No space left"), "{refused}");
        assert!(acknowledged.len() > 100, "{}", acknowledged.len());
        drop(collection);
        let size = format!("remount,size={}", (megabytes + 20) << 20);
        run("mount", &["-o", &size], path);
        let report = verify(&Folder::open(path).unwrap()).unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
        let disk = Arc::new(Folder::open(path).unwrap());
        let collection = Collection::open(disk, hand.options()).unwrap();
        for document in &acknowledged {
            let stored = collection.get(&document.id).unwrap().unwrap();
            assert_eq!(stored.content, document.content);
        }
        let more = prepare(&collection, vec![document("more", "room again", None)]);
        assert!(collection.insert(&more).remove(0).is_ok());
    }
}
