//! Objects of a store in memory: every border between ranges, and versions that change.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::{FIRST_BYTES, PART_BYTES, StoredObject};
use crate::objects::client::wait_for;
use crate::objects::{ObjectCopies, ObjectFailure, RangeCopy, is_copy_file};
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

/// An object whose version was found by `meta`, as a process finds it whose copies are in `directory`.
fn kept_object(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    directory: &Path,
) -> Arc<StoredObject> {
    let copies = Arc::new(ObjectCopies::open_in(directory).unwrap());
    let mut object = StoredObject::from_listing("s3://b/a".to_owned(), store, meta);
    object.keep_parts(&copies);
    assert!(object.keeps_parts());
    Arc::new(object)
}

fn put_bytes(store: &Arc<dyn ObjectStore>, bytes: Vec<u8>) -> ObjectMeta {
    wait_for(store.put(&Key::from("a"), bytes.into())).unwrap();
    wait_for(store.head(&Key::from("a"))).unwrap()
}

fn read_all(object: &Arc<StoredObject>) -> Vec<u8> {
    let mut read = Vec::new();
    object.open_stream().read_to_end(&mut read).unwrap();
    read
}

#[test]
fn kept_parts_are_not_requested_by_a_later_process() {
    let store = memory_store();
    for length in [0, 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * PART_BYTES + 7] {
        let directory = tempfile::tempdir().unwrap();
        let expected = bytes_of(length, 0);
        let meta = put_bytes(&store, expected.clone());
        let first = kept_object(&store, &meta, directory.path());
        assert!(read_all(&first) == expected, "{length}");
        assert!(read_all(&first) == expected, "{length} in the same process");
        drop(first);
        let names = std::fs::read_dir(directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().all(|name| is_copy_file(&name)));
        // Nothing can be requested any more.
        wait_for(store.delete(&Key::from("a"))).unwrap();
        let later = kept_object(&store, &meta, directory.path());
        assert!(read_all(&later) == expected, "{length} in a later process");
        for start in [0, 1, length / 2, length.saturating_sub(1), length] {
            let start = start.min(length);
            let mut rest = Vec::new();
            later.open_stream_at(start).read_to_end(&mut rest).unwrap();
            assert!(rest == expected[start as usize..], "{length} from {start}");
        }
        let copy = RangeCopy::of_kept(&later);
        let mut room = vec![0; length as usize];
        copy.read_exact_at(&mut room, 0).unwrap();
        assert!(room == expected, "{length} at any offset");
        assert!(copy.read_exact_at(&mut [0], length).is_err());
    }
}

#[test]
fn only_parts_that_are_missing_are_requested() {
    let store = memory_store();
    let directory = tempfile::tempdir().unwrap();
    let length = 10 * PART_BYTES;
    let expected = bytes_of(length, 0);
    let meta = put_bytes(&store, expected.clone());
    let first = kept_object(&store, &meta, directory.path());
    // A process that is killed after the first bytes.
    first.open_stream().read_exact(&mut [0; 10]).unwrap();
    drop(first);
    wait_for(store.delete(&Key::from("a"))).unwrap();
    let later = kept_object(&store, &meta, directory.path());
    let mut stream = later.open_stream();
    let mut read = vec![0; FIRST_BYTES as usize];
    stream.read_exact(&mut read).unwrap();
    assert!(read == expected[..read.len()]);
    let failure = stream.read(&mut [0]).unwrap_err();
    let failure = ObjectFailure::from_io(&failure).unwrap();
    assert!(matches!(failure, ObjectFailure::Changed), "{failure}");
}

#[test]
fn damaged_copies_are_requested_again() {
    let store = memory_store();
    let directory = tempfile::tempdir().unwrap();
    let expected = bytes_of(3 * PART_BYTES, 0);
    let meta = put_bytes(&store, expected.clone());
    let place = |name: &str| directory.path().join(name);
    let read_later = || read_all(&kept_object(&store, &meta, directory.path()));
    assert!(read_later() == expected);
    let whole = std::fs::read(place("objects.copy")).unwrap();
    let entries = std::fs::read(place("objects.parts")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(place("objects.copy"), &flipped).unwrap();
    assert!(read_later() == expected, "a byte was flipped");
    let grown = std::fs::metadata(place("objects.copy")).unwrap().len();
    assert!(
        grown > whole.len() as u64 && grown < 2 * whole.len() as u64,
        "one part was requested again"
    );
    std::fs::write(place("objects.copy"), &whole[..whole.len() / 3]).unwrap();
    assert!(read_later() == expected, "the copy was cut");
    std::fs::write(place("objects.copy"), &whole).unwrap();
    std::fs::write(place("objects.parts"), &entries[..entries.len() - 3]).unwrap();
    assert!(read_later() == expected, "an entry was cut");
    std::fs::write(place("objects.parts"), vec![0xff; entries.len()]).unwrap();
    assert!(read_later() == expected, "entries are nonsense");
}

#[test]
fn another_version_is_not_read_from_copies() {
    let store = memory_store();
    let directory = tempfile::tempdir().unwrap();
    let before = put_bytes(&store, bytes_of(1000, 0));
    read_all(&kept_object(&store, &before, directory.path()));
    let changed = bytes_of(1000, 1);
    let now = put_bytes(&store, changed.clone());
    assert!(read_all(&kept_object(&store, &now, directory.path())) == changed);
    // The version that was found is the one that is read, also by the first request.
    let other = tempfile::tempdir().unwrap();
    let object = kept_object(&store, &before, other.path());
    let failure = object.open_stream().read(&mut [0]).unwrap_err();
    assert!(matches!(
        ObjectFailure::from_io(&failure),
        Some(ObjectFailure::Changed)
    ));
}

#[test]
fn objects_of_servers_without_ranges_are_transferred_once() {
    let store = memory_store();
    for length in [0, 1, FIRST_BYTES + 5, 2 * PART_BYTES + 1] {
        let directory = tempfile::tempdir().unwrap();
        let expected = bytes_of(length, 0);
        let meta = put_bytes(&store, expected.clone());
        let without_ranges = || {
            let copies = Arc::new(ObjectCopies::open_in(directory.path()).unwrap());
            let mut object = StoredObject::from_listing("https://h/a".to_owned(), &store, &meta);
            object.has_ranges = false;
            object.keep_parts(&copies);
            Arc::new(object)
        };
        assert!(read_all(&without_ranges()) == expected, "{length}");
        wait_for(store.delete(&Key::from("a"))).unwrap();
        assert!(read_all(&without_ranges()) == expected, "{length}");
    }
}

#[test]
fn objects_without_a_version_are_not_kept() {
    let store = memory_store();
    let directory = tempfile::tempdir().unwrap();
    let copies = Arc::new(ObjectCopies::open_in(directory.path()).unwrap());
    let mut meta = put_bytes(&store, bytes_of(10, 0));
    let keeps = |meta: &ObjectMeta| {
        let mut object = StoredObject::from_listing("https://h/a".to_owned(), &store, meta);
        object.keep_parts(&copies);
        (object.keeps_parts(), object.object_identity().cloned())
    };
    let (is_kept, identity) = keeps(&meta);
    let identity = identity.unwrap();
    assert!(is_kept && identity.e_tag.is_some());
    let modified = identity.modified.unwrap();
    assert!(
        modified.len() == 20 && modified.ends_with('Z'),
        "{modified}"
    );
    meta.e_tag = None;
    assert!(keeps(&meta).0);
    meta.last_modified = Default::default();
    assert_eq!(keeps(&meta), (false, None));
}
