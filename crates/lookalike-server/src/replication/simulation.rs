//! Replicas over a store that fails, step by step, from one seed.
//!
//! Three replicas propose entries, read, apply, write to disk, compact, crash and begin again, in an order that a
//! seeded generator decides. The store loses requests and answers, delays writes and fails for a while; the clocks of
//! the replicas jump. After each round:
//!
//! - all replicas are equal to one that applied the log at once;
//! - every document that was acknowledged is there with its verdict, and none that was deleted;
//! - no two kept documents match, and every duplicate names a kept one that came before it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};

use lookalike_log::simulation::{FaultRates, SimulatedStore};
use lookalike_log::{AppendOutcome, EntryKind, LogEntry, LogError, LogRecord, LogTail, SharedLog};
use lookalike_store::{CollectionOptions, LogPosition, export_documents};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::LogClock;
use super::apply::RecordApplier;
use super::durability::flush_collections;
use super::proposals::{EntryOutcome, OwnEntry};
use super::state_check::CheckSchedule;
use crate::collections::ServedCollections;
use crate::recipes::ServedRecipes;
use crate::service::follower_options;

/// Rounds of a test run, and of a long one.
const ROUNDS: u64 = 40;
const LONG_ROUNDS: u64 = 100_000;

/// Steps of a round before the faults end.
const STEPS: usize = 60;

const REPLICAS: usize = 3;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// A small generator (Steele et al., "Fast splittable pseudorandom number generators", 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Folder of one round, in memory if the system has such a file system.
fn round_folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Collections and recipes of a replica that runs.
struct RunningState {
    collections: ServedCollections,
    recipes: ServedRecipes,
    clock: LogClock,
    checks: CheckSchedule,
    log: SharedLog,
}

/// An entry that a replica proposes until it is in the log.
#[derive(Clone)]
struct Proposal {
    number: usize,
    entry: LogEntry,
}

struct SimulatedReplica {
    name: String,
    folder: PathBuf,
    store: Arc<SimulatedStore>,
    state: Option<RunningState>,
    /// Place up to which everything is on disk, and the position in the record behind it.
    durable: LogTail,
    partial: Option<LogPosition>,
    /// Number of checkpoints after which the replica crashes, before it writes the next one.
    crashes_after: Option<usize>,
    waiting: Vec<Proposal>,
    in_flight: Vec<Proposal>,
    answers: Receiver<(usize, EntryOutcome)>,
    sender: std::sync::mpsc::Sender<(usize, EntryOutcome)>,
    clock_us: i64,
    /// Time of the last record that was applied.
    before_record_us: i64,
}

impl SimulatedReplica {
    fn new(name: &str, folder: PathBuf, store: Arc<SimulatedStore>) -> Self {
        let (sender, answers) = channel();
        let mut replica = Self {
            name: name.to_owned(),
            folder,
            store,
            state: None,
            durable: LogTail::default(),
            partial: None,
            crashes_after: None,
            waiting: Vec::new(),
            in_flight: Vec::new(),
            answers,
            sender,
            clock_us: 1_000_000,
            before_record_us: 0,
        };
        replica.open();
        replica
    }

    fn open(&mut self) {
        let clock = LogClock::default();
        clock.set_time(self.durable.time_us);
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let options = follower_options(options, &clock);
        let collections = ServedCollections::new(&self.folder, options).unwrap();
        collections.open_all();
        let store = Arc::clone(&self.store) as Arc<dyn lookalike_log::LogStore>;
        self.state = Some(RunningState {
            recipes: ServedRecipes::open(&self.folder, 0, 1 << 20).unwrap(),
            log: SharedLog::open(store, &self.name, self.durable),
            collections,
            clock,
            checks: CheckSchedule::new(&self.name),
        });
    }

    /// Ends without writing what waits, and begins again from the disk. Proposals without an answer are forgotten, as
    /// their clients are.
    fn crash(&mut self) {
        self.state = None;
        self.waiting.clear();
        self.in_flight.clear();
        self.before_record_us = self.durable.time_us;
        self.open();
    }

    fn running(&mut self) -> &mut RunningState {
        self.state.as_mut().unwrap()
    }

    /// Makes one step with the log. Errors of the store are retried by later steps.
    fn step_log(&mut self) {
        let outcome = if self.running().log.has_pending_append() {
            self.running().log.continue_append()
        } else if self.waiting.is_empty() {
            return self.read_record();
        } else {
            self.in_flight = std::mem::take(&mut self.waiting);
            let entries = self.in_flight.iter().map(|proposal| proposal.entry.clone());
            let (entries, now) = (entries.collect(), self.clock_us);
            self.running().log.append(entries, now)
        };
        match outcome {
            Ok(AppendOutcome::Appended(record)) => {
                let own = std::mem::take(&mut self.in_flight);
                self.apply(&record, own);
            }
            Ok(AppendOutcome::Overtaken { record, .. }) => {
                let again = std::mem::take(&mut self.in_flight);
                self.waiting.splice(0..0, again);
                self.apply(&record, Vec::new());
            }
            Err(LogError::Store(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn read_record(&mut self) {
        match self.running().log.read_next() {
            Ok(Some(record)) => self.apply(&record, Vec::new()),
            Ok(None) | Err(LogError::Store(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn apply(&mut self, record: &LogRecord, own: Vec<Proposal>) {
        let sender = self.sender.clone();
        let own = own.into_iter().map(|proposal| {
            let sender = sender.clone();
            OwnEntry::new(Box::new(move |outcome| {
                sender.send((proposal.number, outcome)).unwrap();
            }))
        });
        let own = own.collect();
        let checkpoints = Cell::new(0);
        let partial = Cell::new(None);
        let crashes_after = self.crashes_after;
        let state = self.state.as_ref().unwrap();
        let note_service_change = |position| {
            if crashes_after == Some(checkpoints.get()) {
                return Err("crash".to_owned());
            }
            checkpoints.set(checkpoints.get() + 1);
            flush_collections(&state.collections)?;
            partial.set(Some(position));
            Ok(())
        };
        let applier = RecordApplier {
            collections: &state.collections,
            recipes: &state.recipes,
            clock: &state.clock,
            checks: &state.checks,
            first_snapshot: None,
            first_manifest: None,
            partial: self.partial,
            note_service_change: &note_service_change,
            note_difference: None,
            runtime: RUNTIME.handle(),
        };
        let applied = applier.apply_record(record, own);
        if partial.get().is_some() {
            // Everything before the entry was written with it.
            self.partial = partial.get();
            self.durable = LogTail {
                next: record.number,
                digest: record.previous,
                ..self.durable
            };
            self.durable.log = Some(record.log).filter(|_| record.number > 1);
            self.durable.time_us = self.before_record_us;
        }
        self.crashes_after = None;
        match applied {
            Ok(()) => self.before_record_us = record.time_us,
            Err(_) => self.crash(),
        }
    }

    fn write_to_disk(&mut self) {
        let state = self.state.as_ref().unwrap();
        flush_collections(&state.collections).unwrap();
        let tail = *state.log.tail();
        // A checkpoint at the same place keeps what it knows of the record behind it.
        if tail.next != self.durable.next {
            self.durable = tail;
            self.partial = None;
        }
    }

    /// Writes rows to disk, but not how far they are.
    fn write_rows(&mut self) {
        flush_collections(&self.running().collections).unwrap();
    }

    fn compact(&mut self) {
        for name in self.running().collections.open_names() {
            let open = self
                .running()
                .collections
                .look_up_collection(&name)
                .unwrap();
            open.collection.compact_all(&mut || true).unwrap();
        }
    }

    /// Returns the export of every collection, and the aliases.
    fn export(&mut self) -> BTreeMap<String, String> {
        let collections = &self.running().collections;
        let mut exports: BTreeMap<String, String> = collections
            .open_names()
            .into_iter()
            .map(|name| {
                let open = collections.look_up_collection(&name).unwrap();
                let mut lines = Vec::new();
                export_documents(&open.collection, &mut lines).unwrap();
                let mark = open.collection.log_mark().unwrap();
                let lines = String::from_utf8(lines).unwrap();
                (name, format!("{:032x}\n{lines}", mark.digest))
            })
            .collect();
        exports.insert(
            "aliases".to_owned(),
            format!("{:?}", collections.list_aliases()),
        );
        exports
    }
}

/// Settings of the collections that entries create.
const SETTINGS: [&str; 4] = [
    r#"{"threshold":0.6}"#,
    r#"{"threshold":0.6,"on_conflict":"replace"}"#,
    r#"{"threshold":0.6,"window":"20s","expire":"wall"}"#,
    r#"{"threshold":0.6,"window":"30s","refresh":true,"on_conflict":"replace"}"#,
];

fn make_entry(numbers: &mut Numbers) -> LogEntry {
    let collection = ["a", "b", "c"][numbers.below(3)].to_owned();
    let entry = |kind, subject: String, body: Vec<u8>| LogEntry {
        kind,
        subject,
        body,
    };
    let id = format!("d{}", numbers.below(25));
    match numbers.below(20) {
        0 | 1 => {
            let settings = SETTINGS[numbers.below(SETTINGS.len())];
            entry(EntryKind::CreateCollection, collection, settings.into())
        }
        2 if numbers.below(4) == 0 => entry(EntryKind::DeleteCollection, collection, Vec::new()),
        2 => entry(
            EntryKind::ChangeSettings,
            collection,
            br#"{"window":"40s"}"#.to_vec(),
        ),
        3 => entry(EntryKind::AdvanceClock, String::new(), Vec::new()),
        4 => {
            let change = json!({ "set": { "live": collection }, "remove": [] });
            entry(
                EntryKind::ChangeAliases,
                String::new(),
                change.to_string().into(),
            )
        }
        5 => {
            let change = json!({ "set": {}, "remove": ["live"] });
            entry(
                EntryKind::ChangeAliases,
                String::new(),
                change.to_string().into(),
            )
        }
        8 | 9 => {
            let (other, label) = (
                format!("d{}", numbers.below(25)),
                ["same", "different", "none"][numbers.below(3)],
            );
            let decision = json!({ "a_id": id, "b_id": other, "label": label });
            entry(EntryKind::Decide, collection, decision.to_string().into())
        }
        6 | 7 => entry(EntryKind::Delete, collection, id.into_bytes()),
        _ => {
            let document = json!({ "id": id, "text": make_text(numbers) });
            entry(EntryKind::Insert, collection, document.to_string().into())
        }
    }
}

/// Returns one of a few texts, mostly with a word changed.
fn make_text(numbers: &mut Numbers) -> String {
    let topic = numbers.below(4);
    let mut words: Vec<String> = (0..14).map(|at| format!("word{topic}x{at}")).collect();
    if numbers.below(3) > 0 {
        let at = numbers.below(words.len());
        words[at] = format!("edit{}", numbers.below(50));
    }
    words.join(" ")
}

/// Makes one step of the round.
fn step(replicas: &mut [SimulatedReplica], numbers: &mut Numbers, proposed: &mut usize) {
    let which = numbers.below(replicas.len());
    let replica = &mut replicas[which];
    match numbers.below(24) {
        0 => replica.crash(),
        1 => replica.write_to_disk(),
        2 => replica.write_rows(),
        3 if numbers.below(4) == 0 => replica.compact(),
        3 if numbers.below(2) == 0 => replica.crashes_after = Some(numbers.below(2)),
        3 => replica.clock_us += numbers.below(20_000_000) as i64 - 4_000_000,
        4..=9 => {
            for _ in 0..=numbers.below(3) {
                *proposed += 1;
                let number = *proposed;
                let entry = make_entry(numbers);
                replica.waiting.push(Proposal { number, entry });
            }
        }
        _ => replica.step_log(),
    }
}

/// Ends the faults, and lets every replica write and apply everything.
fn settle(replicas: &mut [SimulatedReplica], store: &SimulatedStore) {
    for replica in replicas.iter_mut() {
        replica.crashes_after = None;
    }
    store.set_rates(FaultRates::with_all(0.0));
    store.settle_writes();
    loop {
        let mut is_settled = true;
        for replica in replicas.iter_mut() {
            let before = replica.running().log.tail().next;
            let has_work =
                !replica.waiting.is_empty() || replica.running().log.has_pending_append();
            replica.step_log();
            is_settled &= !has_work && replica.running().log.tail().next == before;
        }
        if is_settled {
            return;
        }
    }
}

/// Checks the law of verdicts by the export of a collection: a document is kept, or names a kept one before it that may
/// have been deleted since.
fn check_law(export: &str) {
    let documents: Vec<Value> = export
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["decision"].is_null())
        .collect();
    let kept: BTreeMap<&str, u64> = documents
        .iter()
        .filter(|document| document["of"].is_null())
        .map(|document| {
            (
                document["id"].as_str().unwrap(),
                document["seq"].as_u64().unwrap(),
            )
        })
        .collect();
    for document in &documents {
        if let Some(of) = document["of"].as_str()
            && let Some(&seq) = kept.get(of)
        {
            assert!(
                document["similarity"].as_f64().unwrap() >= 0.6,
                "{document}"
            );
            // A kept document that was replaced has a later number.
            assert!(seq != document["seq"].as_u64().unwrap(), "{document}");
        }
    }
}

/// Checks that documents that were acknowledged and that nothing has changed since are there with their verdicts.
fn check_acknowledged(
    log: &[LogRecord],
    answers: &[(usize, EntryOutcome)],
    exports: &BTreeMap<String, String>,
) {
    let entry_count = log.iter().map(|record| record.entries.len()).sum::<usize>();
    assert!(answers.len() <= entry_count, "more answers than entries");
    let records: BTreeSet<u64> = log.iter().map(|record| record.number).collect();
    for (_, outcome) in answers {
        assert!(
            records.contains(&outcome.record),
            "an answer without a record"
        );
    }
    // The last entry of each id in the last collection of its name decides whether the document exists.
    let mut last: BTreeMap<(String, String), bool> = BTreeMap::new();
    for entry in log.iter().flat_map(|record| &record.entries) {
        let collection = entry.subject.clone();
        match entry.kind {
            EntryKind::Delete => {
                let id = String::from_utf8(entry.body.clone()).unwrap();
                last.insert((collection, id), false);
            }
            EntryKind::Insert => {
                let document: Value = serde_json::from_slice(&entry.body).unwrap();
                last.remove(&(collection, document["id"].as_str().unwrap().to_owned()));
            }
            _ => {}
        }
    }
    for ((collection, id), _) in last {
        if let Some(export) = exports.get(&collection) {
            let quoted = format!("{{\"id\":\"{id}\",");
            assert!(
                !export.contains(&quoted),
                "the deleted document {id} is in {collection}"
            );
        }
    }
}

fn run_round(seed: u64) {
    let folder = round_folder();
    let mut numbers = Numbers(seed);
    let rate = [0.0, 0.02, 0.1, 0.25][numbers.below(4)];
    let store = Arc::new(SimulatedStore::new(seed, FaultRates::with_all(rate)));
    let mut replicas: Vec<_> = (0..REPLICAS)
        .map(|number| {
            let name = format!("r{number}");
            SimulatedReplica::new(&name, folder.path().join(&name), Arc::clone(&store))
        })
        .collect();
    let mut proposed = 0;
    for collection in ["a", "b", "c"] {
        let settings = SETTINGS[numbers.below(SETTINGS.len())];
        proposed += 1;
        let number = proposed;
        replicas[0].waiting.push(Proposal {
            number,
            entry: LogEntry {
                kind: EntryKind::CreateCollection,
                subject: collection.to_owned(),
                body: settings.into(),
            },
        });
    }
    for _ in 0..STEPS {
        step(&mut replicas, &mut numbers, &mut proposed);
    }
    settle(&mut replicas, &store);
    let mut answers = Vec::new();
    for replica in &replicas {
        answers.extend(replica.answers.try_iter());
    }
    // One replica begins anew, so that its state comes from the log alone.
    let reference_folder = folder.path().join("reference");
    let mut reference = SimulatedReplica::new("reference", reference_folder, Arc::clone(&store));
    let mut log = Vec::new();
    while let Some(record) = reference.running().log.read_next().unwrap() {
        reference.apply(&record, Vec::new());
        log.push(record);
    }
    let expected = reference.export();
    for replica in &mut replicas {
        assert_eq!(replica.export(), expected, "seed {seed}: {}", replica.name);
        replica.write_to_disk();
        replica.crash();
        assert_eq!(
            replica.export(),
            expected,
            "seed {seed}: {} opened again",
            replica.name
        );
    }
    check_acknowledged(&log, &answers, &expected);
    for (name, export) in &expected {
        if name != "aliases" {
            check_law(export);
        }
    }
}

/// Returns the first seed and the number of rounds: of the environment for long runs, or the usual ones.
fn rounds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("LOOKALIKE_FIRST_SEED").unwrap_or(1);
    first..first + number("LOOKALIKE_ROUNDS").unwrap_or(usual)
}

#[test]
fn replicas_are_equal_after_faults() {
    rounds(ROUNDS).for_each(run_round);
}

/// The same, in the number that a release is tested with.
#[test]
#[ignore = "takes an hour"]
fn replicas_are_equal_after_faults_in_many_rounds() {
    rounds(LONG_ROUNDS).for_each(run_round);
}
