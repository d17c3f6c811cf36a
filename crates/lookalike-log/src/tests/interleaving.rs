//! Three replicas over one store that fails in every way, interleaved request by request by a seeded generator.
//!
//! Whatever happens, all replicas see the same records, an acknowledged entry is in the log once, and no entry is in it
//! twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;

use super::*;
use crate::maintenance::verify_log;
use crate::simulation::{FaultRates, RandomNumbers, SimulatedStore};
use crate::store::{CreateOutcome, ListedObject};

const REPLICAS: usize = 3;

/// A store that lets other replicas go on before each request of one.
#[derive(Debug)]
struct InterruptedStore {
    store: Arc<SimulatedStore>,
    /// `None` until the run is complete, and while other replicas go on.
    interruption: Mutex<Option<Interruption>>,
}

#[derive(Debug)]
struct Interruption {
    run: Weak<InterleavedRun>,
    random: RandomNumbers,
}

impl InterruptedStore {
    fn interrupt(&self) {
        let taken = self.interruption.lock().unwrap().take();
        let Some(mut interruption) = taken else {
            return;
        };
        if let Some(run) = interruption.run.upgrade() {
            while interruption.random.below(3) == 0 {
                run.step_any_replica(&mut interruption.random);
            }
        }
        *self.interruption.lock().unwrap() = Some(interruption);
    }
}

impl LogStore for InterruptedStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        self.interrupt();
        self.store.create(key, bytes)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.interrupt();
        self.store.read(key)
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

#[derive(Debug)]
struct InterleavedRun {
    replicas: Vec<Mutex<SimulatedReplica>>,
}

#[derive(Debug)]
struct SimulatedReplica {
    name: String,
    store: Arc<dyn LogStore>,
    log: SharedLog,
    applied: Vec<LogRecord>,
    /// Records that a restart finds again.
    saved: usize,
    proposals: VecDeque<LogEntry>,
    /// Number of the next entry.
    next_entry: u64,
    acknowledged: Vec<String>,
    restarts: u64,
    overtaken: u64,
}

impl SimulatedReplica {
    fn new(name: String, store: Arc<dyn LogStore>) -> Self {
        Self {
            log: SharedLog::open(Arc::clone(&store), &name, LogTail::default()),
            name,
            store,
            applied: Vec::new(),
            saved: 0,
            proposals: VecDeque::new(),
            next_entry: 0,
            acknowledged: Vec::new(),
            restarts: 0,
            overtaken: 0,
        }
    }

    fn step(&mut self, random: &mut RandomNumbers) {
        match random.below(100) {
            0..3 => self.restart(),
            3..8 => self.saved = self.applied.len(),
            _ if self.log.has_pending_append() => self.settle(SharedLog::continue_append),
            8..60 => self.read(),
            _ => {
                self.propose(random);
                let entries = self.proposals.drain(..).collect();
                // Clocks jump.
                let now_us = random.below(1_000_000) as i64;
                self.settle(|log| log.append(entries, now_us));
            }
        }
    }

    /// Begins again with what was saved. Entries whose outcome is unknown are neither acknowledged nor proposed again.
    fn restart(&mut self) {
        self.restarts += 1;
        self.applied.truncate(self.saved);
        let tail = self
            .applied
            .last()
            .map_or_else(LogTail::default, LogRecord::tail);
        self.log = SharedLog::open(Arc::clone(&self.store), &self.name, tail);
        self.proposals.clear();
    }

    fn propose(&mut self, random: &mut RandomNumbers) {
        for _ in 0..random.below(4) {
            let name = format!("{}-{}", self.name, self.next_entry);
            self.next_entry += 1;
            self.proposals.push_back(insertion(&name));
        }
    }

    fn read(&mut self) {
        match self.log.read_next() {
            Ok(Some(record)) => self.apply(record),
            Ok(None) => {}
            Err(error) => assert!(error.is_retryable(), "{}: {error}", self.name),
        }
    }

    fn settle(
        &mut self,
        request: impl FnOnce(&mut SharedLog) -> Result<AppendOutcome, crate::LogError>,
    ) {
        match request(&mut self.log) {
            Ok(AppendOutcome::Appended(record)) => {
                let names = record.entries.iter().map(entry_name);
                self.acknowledged.extend(names);
                self.apply(record);
            }
            Ok(AppendOutcome::Overtaken { record, entries }) => {
                self.overtaken += 1;
                self.proposals.extend(entries);
                self.apply(record);
            }
            Err(error) => assert!(error.is_retryable(), "{}: {error}", self.name),
        }
    }

    fn apply(&mut self, record: LogRecord) {
        assert_eq!(
            record.number,
            self.applied.len() as u64 + 1,
            "{}",
            self.name
        );
        assert_eq!(self.log.tail(), &record.tail());
        self.applied.push(record);
    }
}

fn entry_name(entry: &LogEntry) -> String {
    String::from_utf8(entry.body.clone()).unwrap()
}

impl InterleavedRun {
    /// Lets one replica go on, unless that one is being interrupted.
    fn step_any_replica(&self, random: &mut RandomNumbers) {
        let replica = &self.replicas[random.below(REPLICAS as u64) as usize];
        if let Ok(mut replica) = replica.try_lock() {
            replica.step(random);
        }
    }
}

/// Figures of a run, so that a test can tell that something happened.
#[derive(Debug, Default)]
struct RunFigures {
    records: u64,
    acknowledged: u64,
    restarts: u64,
    overtaken: u64,
    failed_requests: u64,
}

fn run_replicas(seed: u64, rounds: u64) -> RunFigures {
    let store = Arc::new(SimulatedStore::new(seed, FaultRates::with_all(0.03)));
    let interrupted = Arc::new(InterruptedStore {
        store: Arc::clone(&store),
        interruption: Mutex::new(None),
    });
    let replicas = (0..REPLICAS).map(|number| {
        let shared = Arc::clone(&interrupted) as Arc<dyn LogStore>;
        Mutex::new(SimulatedReplica::new(format!("r{number}"), shared))
    });
    let run = Arc::new(InterleavedRun {
        replicas: replicas.collect(),
    });
    *interrupted.interruption.lock().unwrap() = Some(Interruption {
        run: Arc::downgrade(&run),
        random: RandomNumbers::new(seed ^ 1),
    });
    let mut random = RandomNumbers::new(seed ^ 2);
    for _ in 0..rounds {
        run.step_any_replica(&mut random);
    }
    *interrupted.interruption.lock().unwrap() = None;
    store.set_rates(FaultRates::NONE);
    store.settle_writes();
    check_replicas(&store, &run)
}

/// Lets every replica read to the end of the log, and compares what they have read.
fn check_replicas(store: &Arc<SimulatedStore>, run: &InterleavedRun) -> RunFigures {
    let failed_requests = store.operation_counts().failed;
    let mut replicas: Vec<_> = run
        .replicas
        .iter()
        .map(|replica| replica.lock().unwrap())
        .collect();
    for replica in &mut replicas {
        while replica.log.has_pending_append() {
            replica.settle(SharedLog::continue_append);
        }
    }
    let shared = Arc::clone(store) as Arc<dyn LogStore>;
    let records = read_all(&mut SharedLog::open(shared, "reader", LogTail::default())).unwrap();
    let mut places = BTreeMap::<String, u64>::new();
    for record in &records {
        for name in record.entries.iter().map(entry_name) {
            let earlier = places.insert(name.clone(), record.number);
            assert_eq!(earlier, None, "{name} is also in record {}", record.number);
        }
    }
    let mut figures = RunFigures {
        records: records.len() as u64,
        failed_requests,
        ..RunFigures::default()
    };
    for replica in &mut replicas {
        let rest = read_all(&mut replica.log).unwrap();
        replica.applied.extend(rest);
        assert!(
            replica.applied == records,
            "{} has read another log",
            replica.name
        );
        for name in &replica.acknowledged {
            assert!(
                places.contains_key(name),
                "{name} was acknowledged and is lost"
            );
        }
        figures.acknowledged += replica.acknowledged.len() as u64;
        figures.restarts += replica.restarts;
        figures.overtaken += replica.overtaken;
    }
    let report = verify_log(&**store, 1).unwrap();
    assert_eq!(
        (report.damages, report.records),
        (Vec::new(), figures.records)
    );
    figures
}

fn run_seeds(seeds: std::ops::Range<u64>, rounds: u64) {
    for seed in seeds {
        let figures = run_replicas(seed, rounds);
        let RunFigures {
            records,
            acknowledged,
            restarts,
            overtaken,
            failed_requests,
        } = figures;
        let least = rounds / 100;
        let happened = [records, acknowledged, restarts, overtaken, failed_requests];
        assert!(
            happened.iter().all(|count| *count > least),
            "seed {seed}: {figures:?}"
        );
    }
}

#[test]
fn replicas_agree_over_a_store_that_fails() {
    run_seeds(0..10, 600);
}

#[test]
#[ignore = "takes minutes"]
fn replicas_agree_over_a_store_that_fails_for_many_seeds() {
    run_seeds(1000..1200, 2000);
}

/// Threads of one process, whose requests overlap in an order of the operating system's.
#[test]
fn threads_agree() {
    let store = Arc::new(MemoryStore::new());
    let records: Vec<Vec<LogRecord>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..REPLICAS)
            .map(|number| {
                let mut log = open_log(&store, &format!("r{number}"), LogTail::default());
                scope.spawn(move || {
                    let mut applied = Vec::new();
                    let mut appended = 0;
                    while appended < 50 {
                        let entries = vec![insertion(&format!("{number}-{appended}"))];
                        let (record, is_own) = match log.append(entries, 0).unwrap() {
                            AppendOutcome::Appended(record) => (record, 1),
                            AppendOutcome::Overtaken { record, .. } => (record, 0),
                        };
                        appended += is_own;
                        applied.push(record);
                    }
                    applied
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let all = read_all(&mut open_log(&store, "reader", LogTail::default())).unwrap();
    assert_eq!(all.len(), 50 * REPLICAS);
    for applied in records {
        assert!(all.starts_with(&applied));
    }
}
