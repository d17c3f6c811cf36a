//! Reading and appending, request by request.

use std::time::{Duration, SystemTime};

use super::*;
use crate::error::LogError;
use crate::simulation::{FaultRates, SimulatedStore};
use crate::store::{CreateOutcome, ListedObject, check_exclusive_creation, check_machine_clock};

#[test]
fn replicas_read_what_others_append() {
    let store = Arc::new(MemoryStore::new());
    let mut first = open_log(&store, "first", LogTail::default());
    let mut second = open_log(&store, "second", LogTail::default());
    assert_eq!(second.read_next(), Ok(None));
    let entries: Vec<_> = EntryKind::ALL
        .iter()
        .map(|kind| entry(*kind, "新闻", &kind.to_string().repeat(100)))
        .collect();
    let one = append(&mut first, entries.clone(), 5);
    assert_eq!((one.number, one.time_us, &*one.writer), (1, 5, "first"));
    assert_eq!(one.previous, RecordDigest::ZERO);
    // A clock that goes back does not take the log back.
    let two = append(&mut first, Vec::new(), 3);
    assert_eq!((two.number, two.time_us), (2, 5));
    assert_eq!((two.previous, two.log), (one.digest, one.log));
    let proposed = vec![insertion("late")];
    let outcome = second.append(proposed.clone(), 9).unwrap();
    let record = one.clone();
    let entries = proposed.clone();
    assert_eq!(outcome, AppendOutcome::Overtaken { record, entries });
    assert_eq!(second.read_next().unwrap(), Some(two.clone()));
    assert_eq!(second.tail(), &two.tail());
    let three = append(&mut second, proposed, 9);
    assert_eq!(read_all(&mut first).unwrap(), std::slice::from_ref(&three));
    let mut reader = open_log(&store, "reader", LogTail::default());
    assert_eq!(read_all(&mut reader).unwrap(), [one, two, three]);
}

/// A tail that was written as JSON and read again is the same place.
#[test]
fn places_are_kept_as_json() {
    let store = Arc::new(MemoryStore::new());
    let records = write_log(&store, 2);
    for tail in [LogTail::default(), records[1].tail()] {
        let json = serde_json::to_string(&tail).unwrap();
        assert_eq!(serde_json::from_str::<LogTail>(&json).unwrap(), tail);
    }
    let json = serde_json::to_value(records[1].tail()).unwrap();
    assert_eq!(json["next"], 3);
    assert_eq!(json["digest"], records[1].digest.to_string());
    for digest in ["", "0", &"0".repeat(63), &"G".repeat(64), &"é".repeat(32)] {
        let json = format!(r#"{{"log":null,"next":1,"digest":"{digest}","time_us":0}}"#);
        assert!(serde_json::from_str::<LogTail>(&json).is_err(), "{digest}");
    }
}

#[test]
fn own_record_is_known_after_a_lost_answer() {
    let lost = FaultRates {
        lost_answer: 1.0,
        ..FaultRates::NONE
    };
    let store = Arc::new(SimulatedStore::new(1, FaultRates::NONE));
    let shared = Arc::clone(&store) as Arc<dyn LogStore>;
    let mut log = SharedLog::open(Arc::clone(&shared), "writer", LogTail::default());
    append(&mut log, vec![insertion("one")], 0);
    store.set_rates(lost);
    let error = log.append(vec![insertion("two")], 0).unwrap_err();
    assert!(error.is_retryable() && log.has_pending_append(), "{error}");
    let object = store.object("log/0000000000000002");
    assert!(object.is_some());
    assert!(log.continue_append().unwrap_err().is_retryable());
    store.set_rates(FaultRates::NONE);
    let AppendOutcome::Appended(record) = log.continue_append().unwrap() else {
        panic!("overtaken by itself");
    };
    assert_eq!((record.number, log.has_pending_append()), (2, false));
    assert_eq!(store.object("log/0000000000000002"), object);
    let mut reader = SharedLog::open(shared, "reader", LogTail::default());
    assert_eq!(read_all(&mut reader).unwrap().len(), 2);
}

/// A write that has no answer may take effect after another replica's: the log waits until it knows.
#[test]
fn late_write_does_not_replace_a_record() {
    let late = FaultRates {
        late_write: 1.0,
        late_operations: 1,
        ..FaultRates::NONE
    };
    let store = Arc::new(SimulatedStore::new(1, late));
    let shared = Arc::clone(&store) as Arc<dyn LogStore>;
    let mut slow = SharedLog::open(Arc::clone(&shared), "slow", LogTail::default());
    assert!(slow.append(vec![insertion("slow")], 0).is_err());
    assert!(slow.has_pending_append());
    // The write lands with the next request, before that of the other replica.
    store.set_rates(FaultRates::NONE);
    let mut quick = SharedLog::open(Arc::clone(&shared), "quick", LogTail::default());
    let outcome = quick.append(vec![insertion("quick")], 0).unwrap();
    assert!(
        matches!(outcome, AppendOutcome::Overtaken { .. }),
        "{outcome:?}"
    );
    let outcome = slow.continue_append().unwrap();
    assert!(matches!(outcome, AppendOutcome::Appended(_)), "{outcome:?}");
}

#[test]
#[should_panic(expected = "continue_append must be called first")]
fn appending_beside_an_unknown_outcome_is_refused() {
    let store = Arc::new(SimulatedStore::new(1, FaultRates::NONE));
    store.begin_outage(100);
    let mut log = SharedLog::open(store, "writer", LogTail::default());
    assert!(log.append(Vec::new(), 0).is_err());
    let _ = log.append(Vec::new(), 0);
}

#[test]
fn entries_that_are_too_large_are_refused_before_anything_is_written() {
    let store = Arc::new(MemoryStore::new());
    let mut log = open_log(&store, "writer", LogTail::default());
    let long = entry(EntryKind::Insert, &"s".repeat(65_536), "");
    let error = log.append(vec![long], 0).unwrap_err();
    assert!(
        error.to_string().contains("65536 bytes, and 65535"),
        "{error}"
    );
    assert!(!log.has_pending_append() && !error.is_retryable());
    append(&mut log, vec![insertion("short")], 0);
    let longest = entry(EntryKind::Insert, &"s".repeat(65_535), "");
    assert_eq!(longest.encoded_bytes(), 65_542);
    append(&mut log, vec![longest], 0);
}

/// A store that counts the objects of each reading.
#[derive(Debug)]
struct CountingStore {
    store: Arc<MemoryStore>,
    readings: Mutex<Vec<usize>>,
}

impl CountingStore {
    fn count(&self, objects: usize) {
        self.readings.lock().unwrap().push(objects);
    }
}

impl LogStore for CountingStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        self.store.create(key, bytes)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.count(1);
        self.store.read(key)
    }

    fn read_several(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.count(keys.len());
        self.store.read_several(keys)
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.replace(key, bytes)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.store.list(prefix)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.store.remove(key)
    }
}

#[test]
fn reading_asks_for_twice_as_many_objects_while_there_are_more() {
    let store = Arc::new(MemoryStore::new());
    write_log(&store, 100);
    let counting = Arc::new(CountingStore {
        store,
        readings: Mutex::default(),
    });
    let shared = Arc::clone(&counting) as Arc<dyn LogStore>;
    let mut log = SharedLog::open(shared, "reader", LogTail::default());
    assert_eq!(read_all(&mut log).unwrap().len(), 100);
    // The second request asks which records were removed.
    assert_eq!(
        *counting.readings.lock().unwrap(),
        [1, 1, 2, 4, 8, 16, 32, 32, 32, 1]
    );
    // An append that is overtaken by what was read ahead makes no request.
    let shared = Arc::clone(&counting) as Arc<dyn LogStore>;
    let mut log = SharedLog::open(shared, "reader", LogTail::default());
    log.read_next().unwrap();
    log.read_next().unwrap();
    counting.readings.lock().unwrap().clear();
    let outcome = log.append(vec![insertion("more")], 0).unwrap();
    let AppendOutcome::Overtaken { record, entries } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((record.number, entries.len()), (3, 1));
    assert!(counting.readings.lock().unwrap().is_empty());
}

/// A store that ignores the condition of a creation, and whose clock is seven minutes behind.
#[derive(Debug, Default)]
struct OverwritingStore(MemoryStore);

impl LogStore for OverwritingStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        self.0.replace(key, bytes)?;
        Ok(CreateOutcome::Created)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(key)
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.0.replace(key, bytes)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.0.list(prefix)
    }

    fn written_at(&self, key: &str) -> Result<Option<SystemTime>, StoreError> {
        let time = SystemTime::now() - Duration::from_millis(420_900);
        Ok(self.0.read(key)?.map(|_| time))
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.0.remove(key)
    }
}

#[test]
fn stores_that_overwrite_are_refused() {
    let store = MemoryStore::new();
    check_exclusive_creation(&store, "a").unwrap();
    assert!(store.list("").unwrap().is_empty());
    let store = OverwritingStore::default();
    let error = check_exclusive_creation(&store, "a").unwrap_err();
    assert!(
        error.message.contains("'checks/a-") && !error.is_retryable,
        "{error}"
    );
    assert!(store.list("").unwrap().is_empty());
}

#[test]
fn machines_with_a_clock_ahead_of_the_store_are_refused() {
    check_machine_clock(&MemoryStore::new(), "a").unwrap();
    let store = OverwritingStore::default();
    let error = check_machine_clock(&store, "a").unwrap_err();
    assert!(error.message.contains("420 s ahead"), "{error}");
    assert!(!error.is_retryable && store.list("").unwrap().is_empty());
}

/// The simulated store fails in the same way for the same seed.
#[test]
fn simulated_stores_repeat_their_faults() {
    let run = |seed| {
        let store = SimulatedStore::new(seed, FaultRates::with_all(0.1));
        let outcomes: Vec<String> = (0..500)
            .map(|at| {
                let key = format!("a/{}", at % 50);
                let created = store.create(&key, b"x");
                let listed = store.list("a/").map(|objects| objects.len());
                format!("{created:?} {listed:?}")
            })
            .collect();
        (outcomes, store.operation_counts())
    };
    let (outcomes, counts) = run(1);
    assert_eq!(run(1), (outcomes.clone(), counts));
    assert_ne!(run(2).0, outcomes);
    assert_eq!((counts.creates, counts.lists), (500, 500));
    assert!(counts.failed > 100, "{counts:?}");
}

#[test]
fn replica_names_are_those_of_collections() {
    let longest = "a".repeat(64);
    for name in ["a", "0", "eu-1_b", &longest] {
        assert_eq!(crate::check_replica_name(name), Ok(()));
    }
    let longer = "a".repeat(65);
    for name in ["", "-a", "_a", "A", "a/b", "é", "a.b", &longer] {
        let error: LogError = crate::check_replica_name(name).unwrap_err().into();
        assert!(error.to_string().contains("1 to 64"), "{name}: {error}");
    }
}

#[test]
fn keys_name_their_numbers() {
    for number in [1, 255, u64::MAX] {
        let key = crate::record_key(number);
        assert_eq!(crate::parse_record_key(&key), Some(number));
    }
    assert_eq!(crate::record_key(255), "log/00000000000000ff");
    for key in [
        "log/0000000000000000",
        "log/ff",
        "log/00000000000000FF",
        "log/+0000000000000ff",
        "a/00000000000000ff",
    ] {
        assert_eq!(crate::parse_record_key(key), None, "{key}");
    }
}
