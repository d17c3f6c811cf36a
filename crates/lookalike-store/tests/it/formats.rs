//! Files of every version of the format stay readable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_store::{Collection, Disk, export, verify};

use crate::disk::Simulated;
use crate::power::script;
use crate::support::Hand;

/// Calls that the stored collection was made by: partitions, an expiry, moves, deletions.
const CALLS: usize = 110;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/compat/collection-1")
}

/// What a collection holds, as text.
fn contents(collection: &Collection) -> String {
    let mut lines = Vec::new();
    export(collection, &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn a_collection_of_version_1_opens() {
    let disk = Simulated::new();
    let mut expected = None;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let packed = std::fs::read(&path).unwrap();
        let bytes = zstd::stream::decode_all(&packed[..]).unwrap();
        if name == "contents.jsonl" {
            expected = Some(String::from_utf8(bytes).unwrap());
            continue;
        }
        disk.create(&name).unwrap().write_at(&bytes, 0).unwrap();
    }
    let report = verify(&disk.copy()).unwrap();
    assert!(
        report.findings.is_empty() && report.partitions >= 3,
        "{report:?}"
    );
    let hand = Hand::default();
    let collection = Collection::open(Arc::new(disk), hand.options()).unwrap();
    assert_eq!(Some(contents(&collection)), expected);
    let script = script(1, CALLS + 20, true);
    for call in CALLS..CALLS + 20 {
        let answers = script.call(&collection, &hand, call).unwrap();
        assert_eq!(answers, script.answers(call));
    }
}

#[test]
#[ignore = "writes the files of the present version"]
fn write_a_collection_of_the_present_version() {
    let script = script(1, CALLS, true);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..CALLS {
        script.call(&collection, &hand, call).unwrap();
    }
    std::fs::create_dir_all(folder()).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let packed = zstd::stream::encode_all(bytes, 19).unwrap();
        std::fs::write(folder().join(format!("{name}.zst")), packed).unwrap();
    };
    write("contents.jsonl", contents(&collection).as_bytes());
    drop(collection);
    for name in disk.names().unwrap() {
        let mut bytes = vec![0; disk.length(&name)];
        let read = disk.open(&name).unwrap().read_at(&mut bytes, 0).unwrap();
        assert_eq!(read, bytes.len());
        write(&name, &bytes);
    }
}
