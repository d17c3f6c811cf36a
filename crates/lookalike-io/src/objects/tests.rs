//! Objects of a store in memory: every border between ranges, and versions that change.

use std::io::Read;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};

use super::{FIRST_BYTES, PART_BYTES, StoredObject};
use crate::objects::client::wait_for;
use crate::objects::{ObjectFailure, RangeCopy};
use crate::spool::SpoolFile;

fn bytes_of(length: u64, seed: u64) -> Vec<u8> {
    (0..length)
        .map(|at| ((at * 31 + at / 251 + seed) % 251) as u8)
        .collect()
}

fn store_object(store: &Arc<dyn ObjectStore>, bytes: Vec<u8>) -> Arc<StoredObject> {
    let key = Key::from("a");
    wait_for(store.put(&key, bytes.into())).unwrap();
    let meta = wait_for(store.head(&key)).unwrap();
    Arc::new(StoredObject::from_listing(
        "s3://b/a".to_owned(),
        store,
        &meta,
    ))
}

fn memory_store() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

#[test]
fn objects_of_every_length_are_read_as_they_are() {
    let store = memory_store();
    let borders = [
        0,
        FIRST_BYTES,
        FIRST_BYTES + PART_BYTES,
        FIRST_BYTES + 6 * PART_BYTES,
    ];
    for length in borders
        .iter()
        .flat_map(|&at: &u64| at.saturating_sub(1)..=at + 1)
    {
        let expected = bytes_of(length, 0);
        let object = store_object(&store, expected.clone());
        let mut read = Vec::new();
        object.open_stream().read_to_end(&mut read).unwrap();
        assert!(read == expected, "{length} bytes in order");
        let mut buffer = [0; 3];
        let count = object.open_stream().read(&mut buffer).unwrap();
        assert_eq!(count as u64, length.min(3));
    }
}

#[test]
fn parts_are_read_at_every_offset() {
    let store = memory_store();
    for length in [
        0,
        1,
        PART_BYTES - 1,
        PART_BYTES,
        PART_BYTES + 1,
        2 * PART_BYTES + 7,
    ] {
        let expected = bytes_of(length, 0);
        let object = store_object(&store, expected.clone());
        let spool = Arc::new(SpoolFile::create_file(None).unwrap());
        let copy = RangeCopy::new(&object, Arc::clone(&spool));
        assert_eq!(copy.byte_length(), length);
        let starts = [
            0,
            1,
            PART_BYTES - 2,
            PART_BYTES - 1,
            PART_BYTES,
            PART_BYTES + 1,
            length,
        ];
        for start in starts.into_iter().rev() {
            let mut room = vec![0; 5];
            let count = copy.read_at(&mut room, start).unwrap();
            let part_end = length.min((start / PART_BYTES + 1) * PART_BYTES);
            assert_eq!(
                count as u64,
                part_end.saturating_sub(start).min(5),
                "{start}"
            );
            let at = start.min(length) as usize;
            assert_eq!(room[..count], expected[at..at + count]);
        }
        assert!(spool.end_offset() <= length, "no part is read twice");
    }
}

#[test]
fn another_version_is_a_failure() {
    let store = memory_store();
    let length = FIRST_BYTES + 8 * PART_BYTES;
    for changed in [
        bytes_of(length, 1),
        bytes_of(length - 1, 0),
        bytes_of(length + 1, 0),
    ] {
        let object = store_object(&store, bytes_of(length, 0));
        let mut stream = object.open_stream();
        stream.read_exact(&mut [0; 100]).unwrap();
        wait_for(store.put(&Key::from("a"), changed.into())).unwrap();
        let failure = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_err();
        let failure = ObjectFailure::from_io(&failure).cloned().unwrap();
        let message = failure.into_error("s3://b/a").to_string();
        assert_eq!(message, "s3://b/a was changed while it was being read");
    }
    let object = store_object(&store, bytes_of(length, 0));
    wait_for(object.fetch_range(0..5)).unwrap();
    wait_for(store.delete(&Key::from("a"))).unwrap();
    let failure = wait_for(object.fetch_range(5..9)).unwrap_err();
    assert!(matches!(failure, ObjectFailure::Changed), "{failure}");
}

#[test]
fn an_object_that_never_was_is_missing() {
    let store = memory_store();
    let object = store_object(&store, bytes_of(5, 0));
    wait_for(store.delete(&Key::from("a"))).unwrap();
    let failure = wait_for(object.fetch_range(0..5)).unwrap_err();
    assert_eq!(failure.to_string(), "there is no such object");
}
