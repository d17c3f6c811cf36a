//! Power failures at any operation, and again while the collection is opened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lookalike::stream::Timestamp;
use lookalike_oracle::effort::choose_effort;
use lookalike_store::{
    Collection, CollectionSettings, Disk, DocumentContent, InsertAnswer, NewDocument, OnConflict,
    StoredVerdict,
};

use crate::compaction::run_compacting;
use crate::disk::Simulated;
use crate::support::{Hand, Random, S, document, prepare, settings, text};

/// One call to a collection.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Insert(Vec<NewDocument>),
    Delete(String),
}

/// Calls with their times, and their answers without a power failure.
pub(crate) struct Script {
    pub(crate) settings: CollectionSettings,
    pub(crate) calls: Vec<(i64, Call)>,
    answers: Vec<Vec<InsertAnswer>>,
    /// Number of the last row after each call.
    pub(crate) lasts: Vec<u64>,
}

pub(crate) const WIDTH: i64 = 24;

/// Creates calls whose times jump, so that partitions begin and expire.
pub(crate) fn script(seed: u64, count: usize, refresh: bool) -> Script {
    script_of(seed, count, refresh, OnConflict::Refuse)
}

/// Creates calls of which some insert a document under an existing id and replace it.
pub(crate) fn replacing_script(seed: u64, count: usize, refresh: bool) -> Script {
    script_of(seed, count, refresh, OnConflict::Replace)
}

fn script_of(seed: u64, count: usize, refresh: bool, on_conflict: OnConflict) -> Script {
    let mut random = Random(seed);
    let mut calls = Vec::new();
    for call in 0..count {
        let time = (1000 + 9 * (call as i64 / 30)) * S + call as i64;
        if call > 5 && random.chance(7) {
            let back = random.below(12);
            calls.push((
                time,
                Call::Delete(format!("{}-0", call.saturating_sub(back))),
            ));
            continue;
        }
        let documents = (0..1 + random.below(4)).map(|at| {
            let text = text(random.below(220));
            let replaces = on_conflict == OnConflict::Replace && call > 5 && random.chance(25);
            let of = if replaces {
                call - 1 - random.below(5)
            } else {
                call
            };
            document(&format!("{of}-{at}"), &text, Some(time))
        });
        calls.push((time, Call::Insert(documents.collect())));
    }
    let mut script = Script {
        settings: CollectionSettings {
            on_conflict,
            ..settings(Some((WIDTH as u64, refresh)))
        },
        calls,
        answers: Vec::new(),
        lasts: vec![0],
    };
    let hand = Hand::default();
    let collection = script.create(&Simulated::new(), &hand);
    for call in 0..count {
        let answers = script.call(&collection, &hand, call).unwrap();
        script.answers.push(answers);
        script
            .lasts
            .push(collection.collect_stats().unwrap().durable);
    }
    script
}

impl Script {
    pub(crate) fn create(&self, disk: &Simulated, hand: &Hand) -> Collection {
        Collection::create_empty(Arc::new(disk.clone()), &self.settings, hand.options()).unwrap()
    }

    /// Makes a call, which must succeed.
    pub(crate) fn call(
        &self,
        collection: &Collection,
        hand: &Hand,
        call: usize,
    ) -> Result<Vec<InsertAnswer>, lookalike_store::Error> {
        let (time, call) = &self.calls[call];
        hand.set(*time);
        match call {
            Call::Insert(documents) => {
                let prepared = prepare(collection, documents.clone());
                collection.insert_documents(&prepared).into_iter().collect()
            }
            Call::Delete(id) => collection.delete_document(id).map(|_| Vec::new()),
        }
    }

    /// Returns the answers to a call without a power failure.
    pub(crate) fn answers(&self, call: usize) -> &[InsertAnswer] {
        &self.answers[call]
    }

    /// Returns the expected state of every document after this many calls.
    pub(crate) fn expected(
        &self,
        calls: usize,
    ) -> BTreeMap<&str, Option<(&InsertAnswer, &NewDocument)>> {
        let mut expected = BTreeMap::new();
        for (call, (_, what)) in self.calls[..calls].iter().enumerate() {
            match what {
                Call::Insert(documents) => {
                    for (answer, document) in self.answers[call].iter().zip(documents) {
                        expected.insert(&*document.id, Some((answer, document)));
                    }
                }
                Call::Delete(id) => drop(expected.insert(id, None)),
            }
        }
        expected
    }

    /// Returns the starts of the documents' windows after this many calls.
    fn times(&self, calls: usize, refresh: bool) -> BTreeMap<&str, i64> {
        let mut times: BTreeMap<&str, i64> = BTreeMap::new();
        for answer in self.answers[..calls].iter().flatten() {
            let time = answer.time.0;
            if let StoredVerdict::Duplicate(evidence) = &answer.verdict
                && let Some(kept) = times.get_mut(&*evidence.of).filter(|_| refresh)
            {
                *kept = time.max(*kept);
            }
            times.insert(&answer.id, time);
        }
        times
    }

    /// Opens a disk after `acknowledged` calls were answered. These and at most one more must be there, each
    /// completely, and the next calls must be answered as without a power failure.
    pub(crate) fn check(&self, disk: &Simulated, acknowledged: usize) -> Result<(), String> {
        let hand = Hand::default();
        hand.set(self.calls[acknowledged.min(self.calls.len() - 1)].0);
        let collection = Collection::open_existing(Arc::new(disk.clone()), hand.options())
            .map_err(|error| format!("after {acknowledged} calls: {error}"))?;
        let durable = collection
            .collect_stats()
            .map_err(|error| error.to_string())?
            .durable;
        let calls = (acknowledged..=acknowledged + 1)
            .find(|&calls| self.lasts.get(calls) == Some(&durable))
            .ok_or_else(|| format!("{durable} rows after {acknowledged} calls"))?;
        self.check_documents(&collection, calls, &[])?;
        self.check_later(&collection, calls)?;
        for call in calls..(calls + 3).min(self.calls.len()) {
            let answers = self
                .call(&collection, &hand, call)
                .map_err(|error| format!("call {call}: {error}"))?;
            if !self.alike(&answers, &self.answers[call]) {
                return Err(format!(
                    "call {call}: {answers:?}, not {:?}",
                    self.answers[call]
                ));
            }
        }
        Ok(())
    }

    /// Compares answers, except that a verdict may still name a document which was deleted after it.
    fn alike(&self, answers: &[InsertAnswer], expected: &[InsertAnswer]) -> bool {
        let plain = |answers: &[InsertAnswer]| -> Vec<InsertAnswer> {
            let plain = answers.iter().cloned();
            plain
                .map(|answer| InsertAnswer {
                    again: false,
                    ..answer
                })
                .collect()
        };
        plain(answers) == plain(expected)
    }

    /// Checks that the documents of this many calls exist, except those that may have been replaced.
    pub(crate) fn check_documents(
        &self,
        collection: &Collection,
        calls: usize,
        replaced: &[&str],
    ) -> Result<(), String> {
        // Part of the next call may be there.
        let next = calls.saturating_sub(usize::from(replaced.is_empty()));
        let newest = self.calls[next.min(self.calls.len() - 1)].0;
        let refresh = self
            .settings
            .window
            .is_some_and(|window| window.is_refreshing());
        let times = self.times(calls, refresh);
        for (id, expected) in self.expected(calls) {
            if replaced.contains(&id) {
                continue;
            }
            let stored = collection
                .find_document(id)
                .map_err(|error| error.to_string())?;
            let right = match (&stored, expected) {
                (None, None) => true,
                (Some(_), None) => false,
                (None, Some(_)) => times[id] < newest - WIDTH * S,
                (Some(stored), Some((answer, document))) => {
                    let time = if refresh {
                        stored.answer.time
                    } else {
                        answer.time
                    };
                    let answer = InsertAnswer {
                        time,
                        again: false,
                        ..answer.clone()
                    };
                    stored.answer == answer && stored.content == document.content
                }
            };
            if !right {
                return Err(format!(
                    "after {calls} calls '{id}' is {stored:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that no document of later calls exists.
    fn check_later(&self, collection: &Collection, calls: usize) -> Result<(), String> {
        let before = self.expected(calls);
        for (_, later) in &self.calls[calls..] {
            if let Call::Insert(documents) = later
                && let Some(document) = documents.first()
                && !before.contains_key(&*document.id)
                && collection
                    .find_document(&document.id)
                    .map_err(|error| error.to_string())?
                    .is_some()
            {
                return Err(format!("'{}' is there after {calls} calls", document.id));
            }
        }
        Ok(())
    }
}

/// Result of many power failures.
#[derive(Default)]
struct Losses {
    count: AtomicU64,
    /// Partitions compacted meanwhile.
    compacted: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl Losses {
    fn check(&self, script: &Script, disk: &Simulated, acknowledged: usize) {
        self.count.fetch_add(1, Ordering::SeqCst);
        // An interrupted operation is not damage, and verifying removes nothing.
        let report =
            lookalike_store::verify_collection(&disk.copy()).map_err(|error| error.to_string());
        let whole = report.and_then(|report| {
            if report.findings.is_empty() {
                Ok(())
            } else {
                Err(format!("after {acknowledged} calls: {report:?}"))
            }
        });
        if let Err(wrong) = whole.and_then(|()| script.check(disk, acknowledged)) {
            self.wrong.lock().unwrap().push(wrong);
        }
    }
}

/// Runs a script on a disk that loses power at some operations, and half of the time again while the
/// collection is opened.
fn lose_power(script: Script, seed: u64, percent: usize, lies: bool) -> Arc<Losses> {
    let script = Arc::new(script);
    let losses = Arc::new(Losses::default());
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    if lies {
        disk.lie();
    }
    let hook = {
        let (script, losses) = (script.clone(), losses.clone());
        let acknowledged = acknowledged.clone();
        move |disk: &Simulated, operation: u64| {
            let mut random = Random(seed << 32 | operation);
            if !random.chance(percent) {
                return;
            }
            let acknowledged = acknowledged.load(Ordering::SeqCst);
            let lost = disk.after_power_loss(&mut random);
            if random.chance(50) {
                let (script, losses) = (script.clone(), losses.clone());
                let (at, seed) = (1 + random.below(8) as u64, random.next());
                lost.set_hook(move |disk, operation| {
                    if operation == at {
                        let again = disk.after_power_loss(&mut Random(seed));
                        losses.check(&script, &again, acknowledged);
                    }
                });
            }
            losses.check(&script, &lost, acknowledged);
        }
    };
    disk.set_hook(hook);
    let compacted = run_compacting(&script, &collection, &hand, 23, |call, _| {
        acknowledged.store(call + 1, Ordering::SeqCst);
    });
    losses.compacted.store(compacted, Ordering::SeqCst);
    losses
}

fn survive(seeds: std::ops::Range<u64>, percent: usize) -> u64 {
    let mut count = 0;
    for seed in seeds {
        let script = replacing_script(seed, 200, seed % 2 == 1);
        assert_script_has_partitions(&script);
        assert_script_replaces(&script);
        let losses = lose_power(script, seed, percent, false);
        let wrong = losses.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} wrong; {}", wrong.len(), wrong[0]);
        assert!(losses.compacted.load(Ordering::SeqCst) > 8);
        count += losses.count.load(Ordering::SeqCst);
    }
    count
}

/// Checks that a script has at least three partitions at a time, and some that expire.
fn assert_script_has_partitions(script: &Script) {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    let mut most = 0;
    for call in 0..script.calls.len() {
        script.call(&collection, &hand, call).unwrap();
        most = most.max(collection.collect_stats().unwrap().partitions);
    }
    let names = disk.file_names().unwrap();
    let oldest = names.iter().filter(|name| name.ends_with(".rows")).min();
    let expired = oldest.is_some_and(|name| *name > format!("{:016x}.rows", 1));
    assert!(most >= 3 && expired, "{most} {oldest:?}");
    assert_eq!(
        Timestamp(hand.get()),
        Timestamp(script.calls.last().unwrap().0)
    );
}

/// Checks that a script replaces documents, with at least one deletion and one insertion in one call.
fn assert_script_replaces(script: &Script) {
    let mut rows = script.lasts.windows(2).zip(&script.answers);
    let replaced = rows.by_ref().filter(|(lasts, answers)| {
        let fresh = answers.iter().filter(|answer| !answer.again).count() as u64;
        fresh > 0 && lasts[1] - lasts[0] > fresh
    });
    assert!(replaced.count() > 10);
}

#[test]
fn power_loss_keeps_acknowledged_rows_whole() {
    let count = survive(0..2, choose_effort(8, 45));
    assert!(count >= choose_effort(300, 2000), "{count} losses");
}

/// The long version.
#[test]
#[ignore = "takes minutes, and half an hour if it is not optimised"]
fn fifty_thousand_power_losses_lose_nothing() {
    let (count, seeds) = (AtomicU64::new(0), AtomicU64::new(100));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while count.load(Ordering::SeqCst) < 50_000 {
                    let seed = seeds.fetch_add(1, Ordering::SeqCst);
                    let before = count.fetch_add(survive(seed..seed + 1, 60), Ordering::SeqCst);
                    println!("run {seed}, behind {before} losses");
                }
            });
        }
    });
    let (count, runs) = (count.into_inner(), seeds.into_inner() - 100);
    println!("{count} losses of power over {runs} runs");
}

/// Power failures simulated at each operation of creating a collection.
const WAYS: usize = 4;

/// Returns the disk after power failures at every operation of `work`, and after it.
fn losses_during<T>(disk: &Simulated, seed: u64, work: impl FnOnce() -> T) -> (T, Vec<Simulated>) {
    let lost = Arc::new(Mutex::new(Vec::new()));
    let into = lost.clone();
    let lose = move |disk: &Simulated, operation: u64| {
        let mut random = Random(seed << 32 | operation);
        let ways = (0..WAYS).map(|_| disk.after_power_loss(&mut random));
        into.lock().unwrap().extend(ways);
    };
    disk.set_hook(lose.clone());
    let done = work();
    disk.set_hook(|_, _| ());
    let mut lost = std::mem::take(&mut *lost.lock().unwrap());
    let mut random = Random(seed);
    lost.extend((0..WAYS).map(|_| disk.after_power_loss(&mut random)));
    (done, lost)
}

/// Creates a collection, or opens the existing one, which must be empty.
pub(crate) fn make_or_open(disk: &Simulated) -> Result<Collection, String> {
    let (disk, options) = (Arc::new(disk.clone()), Hand::default().options());
    let names = disk.file_names().unwrap();
    let made = if names.iter().any(|name| name == "manifest") {
        Collection::open_existing(disk, options)
    } else {
        Collection::create_empty(disk, &settings(None), options)
    };
    let collection = made.map_err(|error| error.to_string())?;
    match collection.collect_stats().unwrap().rows {
        0 => Ok(collection),
        rows => Err(format!("{rows} rows")),
    }
}

/// Creates a collection with power failures at every operation, then does the same on each of the resulting
/// disks, to a depth of `deep`. Returns the number of failures, and what was wrong.
fn lose_power_while_made(disk: &Simulated, deep: usize, seed: u64) -> (usize, Vec<String>) {
    let (made, lost) = losses_during(disk, seed, || make_or_open(disk).map(drop));
    let mut wrong: Vec<String> = made.err().into_iter().collect();
    // The last ones were taken after the last operation: the collection exists there.
    for lost in &lost[lost.len() - WAYS..] {
        if !lost
            .file_names()
            .unwrap()
            .iter()
            .any(|name| name == "manifest")
        {
            wrong.push("what was made is lost".to_owned());
        }
    }
    let mut count = lost.len();
    let step = if deep > 0 { choose_effort(4, 1) } else { 1 };
    for (at, lost) in lost.iter().enumerate().step_by(step) {
        if deep > 0 {
            let (more, also) = lose_power_while_made(lost, deep - 1, seed * 1000 + at as u64);
            count += more;
            wrong.extend(also);
            continue;
        }
        let inserted = make_or_open(lost).map(|collection| {
            let documents = prepare(&collection, vec![document("a", "one two three", None)]);
            collection.insert_documents(&documents).remove(0).unwrap();
        });
        wrong.extend(inserted.err());
    }
    (count, wrong)
}

/// After each failure there is no collection, and it can be created, or an empty one.
#[test]
fn interrupted_creation_leaves_none_or_empty() {
    let (count, wrong) = lose_power_while_made(&Simulated::new(), 1, 1);
    assert!(count > choose_effort(120, 500), "{count}");
    assert!(wrong.is_empty(), "{} wrong; {}", wrong.len(), wrong[0]);
    let liar = Simulated::new();
    liar.lie();
    let (_, wrong) = lose_power_while_made(&liar, 0, 1);
    assert!(!wrong.is_empty());
}

#[test]
fn disk_without_working_sync_is_detected() {
    let losses = lose_power(script(7, 40, false), 7, 30, true);
    let (count, wrong) = (
        losses.count.load(Ordering::SeqCst),
        losses.wrong.lock().unwrap(),
    );
    assert!(wrong.len() as u64 > count / 4, "{} of {count}", wrong.len());
}

#[test]
fn contents_round_trip() {
    let script = script(3, 60, false);
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = script.create(&disk, &hand);
    for call in 0..60 {
        script.call(&collection, &hand, call).unwrap();
    }
    let report = lookalike_store::verify_collection(&disk.copy()).unwrap();
    assert!(
        report.findings.is_empty() && report.remade.is_empty() && report.documents > 60,
        "{report:?}"
    );
    let mut lines = Vec::new();
    let exported = lookalike_store::export_documents(&collection, &mut lines).unwrap();
    let other = script.create(&Simulated::new(), &hand);
    let mut all_or_none = |_, error: &lookalike_store::Error| Err(error.clone());
    let mut import =
        || lookalike_store::import_documents(&other, &mut &lines[..], &mut all_or_none);
    let imported = import().unwrap();
    assert_eq!((exported, imported.again), (imported.new, 0));
    assert_eq!(import().unwrap().again, exported);
    let snapshot = Simulated::new();
    collection.copy_to_snapshot(&snapshot).unwrap();
    script.check(&snapshot, 60).unwrap();
    for (id, expected) in script.expected(60) {
        let again = other
            .find_document(id)
            .unwrap()
            .map(|stored| stored.content);
        let expected = expected.map(|(_, document)| document.content.clone());
        assert!(again == expected || again.is_none(), "{id}");
        assert!(again.is_none_or(|content| matches!(content, DocumentContent::Text(_))));
    }
}
