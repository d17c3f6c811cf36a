//! Replicas that follow one shared log derive the same state, whatever happens to each of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike::dedup::PairDecision;
use lookalike::stream::StreamWindow;
use lookalike_oracle::effort::choose_effort;
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, DecisionRequest, DecisionSubject, ErrorKind,
    ExpiryClock, InsertAnswer, LogMark, LogPosition, LoggedAdmission, NewDocument, OnConflict,
    SettingsChange, export_documents, restore_collection, verify_collection,
};

use crate::disk::Simulated;
use crate::support::{Hand, Random, S, document, prepare, settings, text};

/// An entry of a log.
#[derive(Clone, Debug)]
enum LogEntry {
    Insert(NewDocument),
    Delete(String),
    Change(SettingsChange),
    /// The texts of two documents are decided, or the decision is withdrawn.
    Decide([String; 2], Option<PairDecision>),
}

/// The answer to an entry.
#[derive(Clone, Debug, PartialEq)]
enum EntryAnswer {
    Inserted(Result<InsertAnswer, ErrorKind>),
    Deleted(bool),
    Changed(Box<Result<CollectionSettings, ErrorKind>>),
    /// The documents that were judged again; none if the decision was refused or known.
    Decided(Vec<InsertAnswer>),
}

/// An entry with its place, and the time of its record.
#[derive(Clone, Debug)]
struct PlacedEntry {
    position: LogPosition,
    time: i64,
    entry: LogEntry,
}

/// A log of one collection.
struct SharedLog {
    seed: u64,
    settings: CollectionSettings,
    entries: Vec<PlacedEntry>,
}

/// Position at which every collection here is created.
const CREATED: LogPosition = LogPosition {
    record: 1,
    entry: 0,
};

fn random_change(random: &mut Random) -> SettingsChange {
    let seconds = Duration::from_secs;
    let expire = [ExpiryClock::Documents, ExpiryClock::Wall][random.below(2)];
    let on_conflict = [OnConflict::Refuse, OnConflict::Replace][random.below(2)];
    SettingsChange {
        width: random
            .chance(60)
            .then(|| seconds([12, 24, 48, 96][random.below(4)])),
        skew: random
            .chance(30)
            .then(|| seconds([0, 5, 12][random.below(3)])),
        refresh: random.chance(50).then(|| random.chance(50)),
        expire: random.chance(50).then_some(expire),
        on_conflict: random.chance(50).then_some(on_conflict),
    }
}

/// Returns one of some texts, now and then an empty one.
fn random_text(random: &mut Random) -> String {
    match random.below(140) {
        0..12 => " ".to_owned(),
        seed => text(seed),
    }
}

fn random_entry(random: &mut Random, time: i64) -> LogEntry {
    let id = format!("d{}", random.below(40));
    match random.below(20) {
        0 | 1 => LogEntry::Delete(id),
        2 if random.chance(60) => LogEntry::Change(random_change(random)),
        3 | 4 => {
            let ids = [0, 1].map(|_| format!("d{}", random.below(40)));
            let different = Some(PairDecision::Different);
            let decision = [Some(PairDecision::Same), different, None][random.below(3)];
            LogEntry::Decide(ids, decision)
        }
        _ => {
            let lag = match random.below(10) {
                0 => random.below(120) as i64,
                1 | 2 => random.below(14) as i64,
                3 => -(random.below(8) as i64),
                _ => 0,
            };
            let stated = random.chance(70).then_some(time - lag * S);
            LogEntry::Insert(document(&id, &random_text(random), stated))
        }
    }
}

impl SharedLog {
    fn from_seed(seed: u64, count: usize) -> Self {
        let mut random = Random(seed);
        let by_wall = random.chance(50);
        let made = settings(Some(([12, 24, 48][random.below(3)], random.chance(60))));
        let on_conflict = [OnConflict::Refuse, OnConflict::Replace][random.below(2)];
        let settings = CollectionSettings {
            window: made.window.map(|window| window.with_wall_clock(by_wall)),
            on_conflict,
            ..made
        };
        let (mut time, mut position) = (1000 * S, CREATED);
        let entries = (0..count).map(|_| {
            if random.chance(30) {
                position = LogPosition {
                    record: position.record + 1 + random.below(3) as u64,
                    entry: 0,
                };
                time += match random.below(12) {
                    0 => random.below(60) as i64 * S,
                    1..6 => random.below(6) as i64 * S,
                    _ => random.below(3) as i64,
                };
            } else {
                position.entry += 1 + random.below(2) as u32;
            }
            let entry = random_entry(&mut random, time);
            PlacedEntry {
                position,
                time,
                entry,
            }
        });
        let entries = entries.collect();
        Self {
            seed,
            settings,
            entries,
        }
    }

    /// Returns the place of the first entry behind a position.
    fn index_behind(&self, position: LogPosition) -> usize {
        self.entries
            .partition_point(|placed| placed.position <= position)
    }
}

/// A collection that follows a log.
struct Replica<'a> {
    log: &'a SharedLog,
    disk: Simulated,
    hand: Hand,
    collection: Collection,
    /// Index of the next entry.
    next: usize,
    /// Time of the last record since the collection was opened.
    clock: i64,
    /// Answers to entries, the first time that each was applied.
    answers: Vec<Option<EntryAnswer>>,
}

fn log_options(hand: &Hand) -> CollectionOptions {
    let mut options = hand.options();
    options.follows_log = true;
    options.verification.document_steps = u64::MAX;
    options
}

impl<'a> Replica<'a> {
    fn create(log: &'a SharedLog) -> Self {
        let (disk, hand) = (Simulated::new(), Hand::default());
        let to = Arc::new(disk.clone());
        let collection =
            Collection::create_at(to, &log.settings, log_options(&hand), CREATED).unwrap();
        Self {
            log,
            disk,
            hand,
            collection,
            next: 0,
            clock: i64::MIN,
            answers: vec![None; log.entries.len()],
        }
    }

    /// Opens a collection, and continues behind its mark.
    fn open(log: &'a SharedLog, disk: Simulated, answers: Vec<Option<EntryAnswer>>) -> Self {
        let hand = Hand::default();
        let from = Arc::new(disk.clone());
        let collection = Collection::open_existing(from, log_options(&hand)).unwrap();
        assert_eq!(collection.created_at(), Some(CREATED));
        let next = log.index_behind(collection.log_mark().unwrap().position);
        Self {
            log,
            disk,
            hand,
            collection,
            next,
            clock: i64::MIN,
            answers,
        }
    }

    /// Opens the collection again as it is on another disk.
    fn reopen(self, disk: Simulated) -> Self {
        let Self { log, answers, .. } = self;
        drop(self.collection);
        Self::open(log, disk, answers)
    }

    /// Advances the clock to the next entry.
    fn reach_record(&mut self) {
        let time = self.log.entries[self.next].time;
        if time > self.clock {
            self.clock = time;
            self.hand.set(time);
            self.collection.expire_logged().unwrap();
        }
    }

    fn take_answer(&mut self, answer: EntryAnswer) {
        self.answers[self.next].get_or_insert(answer);
        self.next += 1;
    }

    /// Applies the next entries, at most `count`: several documents, or a single entry of another kind.
    fn apply_some(&mut self, count: usize) {
        self.reach_record();
        let following = &self.log.entries[self.next..];
        let inserts = following.iter().take(count).map_while(|placed| {
            let LogEntry::Insert(document) = &placed.entry else {
                return None;
            };
            (placed.time == self.clock).then(|| (placed.position, document.clone()))
        });
        let (positions, documents): (Vec<_>, Vec<_>) = inserts.unzip();
        if documents.is_empty() {
            return self.apply_single();
        }
        let mut prepared = prepare(&self.collection, documents);
        for (document, position) in prepared.iter_mut().zip(positions) {
            document.set_log_position(position);
        }
        let admission = self.collection.admit_logged(&mut prepared);
        assert!(admission.stopped.is_none(), "{:?}", admission.stopped);
        assert_eq!(admission.answers.len(), prepared.len());
        for answer in admission.answers {
            self.take_answer(EntryAnswer::Inserted(answer.map_err(|error| error.kind())));
        }
    }

    fn apply_single(&mut self) {
        let PlacedEntry {
            position, entry, ..
        } = &self.log.entries[self.next];
        let answer = match entry {
            LogEntry::Insert(_) => unreachable!("documents are applied together"),
            LogEntry::Delete(id) => {
                EntryAnswer::Deleted(self.collection.delete_logged(id, *position).unwrap())
            }
            LogEntry::Change(change) => {
                let changed = self.collection.change_settings_at(change, *position);
                EntryAnswer::Changed(Box::new(
                    changed
                        .map(|settings| CollectionSettings::clone(&settings))
                        .map_err(|error| error.kind()),
                ))
            }
            LogEntry::Decide(ids, decision) => {
                let request = DecisionRequest {
                    subject: DecisionSubject::Documents(ids.clone()),
                    decision: *decision,
                };
                let rejudged = match self.collection.decide_logged(&request, *position) {
                    Ok(outcome) => outcome.rejudged.first,
                    Err(error) if error.kind() == ErrorKind::Decision => Vec::new(),
                    Err(error) => panic!("{error}"),
                };
                EntryAnswer::Decided(rejudged.into_iter().map(|one| one.after).collect())
            }
        };
        self.take_answer(answer);
    }

    fn is_done(&self) -> bool {
        self.next == self.log.entries.len()
    }

    fn apply_rest(&mut self, count: usize) {
        while !self.is_done() {
            self.apply_some(count);
        }
    }

    /// Returns everything that must be the same for all replicas at the end of the log.
    fn final_state(&self) -> FinalState {
        self.hand.set(self.log.entries.last().unwrap().time);
        self.collection.flush().unwrap();
        assert_eq!(self.collection.pending_bytes(), 0);
        let mut exported = Vec::new();
        export_documents(&self.collection, &mut exported).unwrap();
        let stats = self.collection.collect_stats().unwrap();
        FinalState {
            mark: self.collection.log_mark().unwrap(),
            exported: String::from_utf8(exported).unwrap(),
            counts: [stats.rows, stats.kept, stats.partitions, stats.durable],
            changed_at: self.collection.settings_changed_at(),
        }
    }

    /// Checks that it has the mark of its place in the log. Returns the expected number of the last row.
    fn check_mark(&self, reference: &LogReference) -> u64 {
        let (expected, durable) = match self.next {
            0 => (LogMark::default(), 0),
            next => reference.after[next - 1],
        };
        let mark = self.collection.log_mark().unwrap();
        assert_eq!(
            mark, expected,
            "log {}, before entry {}",
            self.log.seed, self.next
        );
        durable
    }

    /// Checks that the rows on disk are those of its mark. The time of the next record may have expired a partition already,
    /// whose decisions are then in rows of their own.
    fn check_durable(&self, reference: &LogReference) {
        let expected = self.check_mark(reference);
        let durable = self.collection.collect_stats().unwrap().durable;
        let decisions = self.collection.list_decisions(0, 1, None).unwrap().total;
        let rows_of_next = reference.after.get(self.next).map_or(0, |(_, rows)| *rows);
        let most = rows_of_next.min(expected + decisions as u64).max(expected);
        assert!(
            (expected..=most).contains(&durable),
            "log {}, before entry {}: {durable} rows, not {expected} to {most}",
            self.log.seed,
            self.next,
        );
    }
}

#[derive(Debug, PartialEq)]
struct FinalState {
    mark: LogMark,
    exported: String,
    counts: [u64; 4],
    changed_at: Option<LogPosition>,
}

/// The answers and the state that follow from a log: it is applied entry by entry, with a commit after each.
struct LogReference {
    answers: Vec<Option<EntryAnswer>>,
    /// The mark and the number of the last row on disk, after each entry.
    after: Vec<(LogMark, u64)>,
    end: FinalState,
}

impl LogReference {
    fn from_log(log: &SharedLog) -> Self {
        let mut replica = Replica::create(log);
        let mut after = Vec::new();
        while !replica.is_done() {
            replica.apply_some(1);
            replica.collection.flush().unwrap();
            let durable = replica.collection.collect_stats().unwrap().durable;
            after.push((replica.collection.log_mark().unwrap(), durable));
        }
        Self {
            end: replica.final_state(),
            answers: replica.answers,
            after,
        }
    }

    /// Checks a replica at the end of the log. Entries that it did not apply, because it was restored behind them, have
    /// no answers.
    fn check(&self, replica: &Replica<'_>, what: &str) {
        for (at, (answer, expected)) in replica.answers.iter().zip(&self.answers).enumerate() {
            let entry = &replica.log.entries[at];
            assert!(
                answer.is_none() || answer == expected,
                "log {}, {what}, entry {at} {entry:?}: {answer:?}, not {expected:?}",
                replica.log.seed
            );
        }
        let seed = replica.log.seed;
        assert_eq!(replica.final_state(), self.end, "log {seed}, {what}");
        let report = verify_collection(&replica.disk.copy()).unwrap();
        assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
    }
}

/// Applies a log in random pieces, with random commits and compactions, and opens the collection again and again.
fn apply_in_pieces<'a>(
    log: &'a SharedLog,
    reference: &LogReference,
    random: &mut Random,
) -> Replica<'a> {
    let mut replica = Replica::create(log);
    while !replica.is_done() {
        replica.apply_some(1 + random.below(12));
        replica.check_mark(reference);
        if random.chance(20) {
            replica.collection.flush().unwrap();
        }
        if random.chance(6) {
            replica.collection.compact_all(&mut || true).unwrap();
        }
        if random.chance(10) {
            // Maintenance runs at any time, whatever record is applied.
            let ahead = random.below(100) as i64 * S;
            replica.hand.set(replica.clock.saturating_add(ahead));
            let report = replica.collection.run_maintenance(&mut || true).unwrap();
            assert_eq!(report.expired, 0);
            replica.hand.set(replica.clock);
        }
        if random.chance(8) {
            let disk = replica.disk.copy();
            replica = replica.reopen(disk);
            replica.check_durable(reference);
        }
    }
    replica
}

/// Applies a log while the power fails at random operations.
fn apply_with_power_losses<'a>(
    log: &'a SharedLog,
    reference: &LogReference,
    random: &mut Random,
) -> Replica<'a> {
    let mut replica = Replica::create(log);
    while !replica.is_done() {
        let (at, seed) = (
            replica.disk.operations() + 1 + random.below(400) as u64,
            random.next(),
        );
        let lost: Arc<Mutex<Option<Simulated>>> = Arc::default();
        let seen = Arc::clone(&lost);
        replica.disk.set_hook(move |disk, operation| {
            if operation == at {
                *seen.lock().unwrap() = Some(disk.after_power_loss(&mut Random(seed)));
            }
        });
        while !replica.is_done() && lost.lock().unwrap().is_none() {
            replica.apply_some(1 + random.below(6));
            replica.check_mark(reference);
            if random.chance(40) {
                replica.collection.flush().unwrap();
            }
            if random.chance(8) {
                replica.collection.compact_all(&mut || true).unwrap();
            }
        }
        replica.disk.set_hook(|_, _| ());
        let lost = lost.lock().unwrap().take();
        if let Some(disk) = lost {
            replica = replica.reopen(disk);
            replica.check_durable(reference);
        }
    }
    replica
}

/// Restores a replica from a snapshot of another one that is somewhere in the log.
fn restore_from<'a>(log: &'a SharedLog, random: &mut Random) -> Replica<'a> {
    let mut other = Replica::create(log);
    let until = random.below(log.entries.len());
    while other.next < until {
        other.apply_some(1 + random.below(5));
        if random.chance(10) {
            other.collection.compact_all(&mut || true).unwrap();
        }
    }
    if random.chance(50) {
        other.collection.flush().unwrap();
    }
    let (snapshot, disk) = (Simulated::new(), Simulated::new());
    other.collection.copy_to_snapshot(&snapshot).unwrap();
    restore_collection(&snapshot, &disk, 0).unwrap();
    let mut replica = Replica::open(log, disk, vec![None; log.entries.len()]);
    // Entries that the snapshot has, or that wrote no row, have answers only there.
    replica.answers[..other.next].clone_from_slice(&other.answers[..other.next]);
    replica.apply_rest(1 + random.below(9));
    replica
}

fn check_log(seed: u64) {
    let log = SharedLog::from_seed(seed, 120);
    let mut random = Random(seed ^ 0x5eed);
    let reference = LogReference::from_log(&log);
    let mut at_once = Replica::create(&log);
    at_once.apply_rest(usize::MAX);
    reference.check(&at_once, "at once");
    let pieces = apply_in_pieces(&log, &reference, &mut random);
    reference.check(&pieces, "in pieces");
    let restored = restore_from(&log, &mut random);
    reference.check(&restored, "restored");
    let after_losses = apply_with_power_losses(&log, &reference, &mut random);
    reference.check(&after_losses, "after power losses");
}

#[test]
fn replicas_derive_the_same_state() {
    for seed in 0..choose_effort(8, 80) {
        check_log(seed);
    }
}

#[test]
#[ignore = "takes many minutes"]
fn replicas_derive_the_same_state_thousands_of_times() {
    for seed in 1000..6000 {
        check_log(seed);
    }
}

fn position(record: u64, entry: u32) -> LogPosition {
    LogPosition { record, entry }
}

/// Admits documents at the entries of a record, in their order.
fn admit_record(
    collection: &Collection,
    record: u64,
    documents: Vec<NewDocument>,
) -> LoggedAdmission {
    let mut prepared = prepare(collection, documents);
    for (entry, document) in (0..).zip(&mut prepared) {
        document.set_log_position(position(record, entry));
    }
    collection.admit_logged(&mut prepared)
}

fn create_plain(disk: &Simulated, window: Option<(u64, bool)>, hand: &Hand) -> Collection {
    let to = Arc::new(disk.clone());
    Collection::create_at(to, &settings(window), log_options(hand), CREATED).unwrap()
}

/// Returns settings with a window of so many seconds by the clock of the log.
fn wall_settings(width: u64) -> CollectionSettings {
    let made = settings(Some((width, false)));
    CollectionSettings {
        window: made.window.map(|window| window.with_wall_clock(true)),
        ..made
    }
}

fn open_logged(disk: &Simulated, hand: &Hand) -> Collection {
    Collection::open_existing(Arc::new(disk.clone()), log_options(hand)).unwrap()
}

/// An entry that wrote no row, because its document was there, writes none when it is repeated after that document
/// has expired and its files are gone.
#[test]
fn repeated_entry_writes_no_row_although_its_document_has_expired() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let to = Arc::new(disk.clone());
    let collection =
        Collection::create_at(to, &wall_settings(24), log_options(&hand), CREATED).unwrap();
    let one = || vec![document("one", "alpha beta gamma", None)];
    hand.set(1000 * S);
    collection.expire_logged().unwrap();
    let first = admit_record(&collection, 2, one())
        .answers
        .remove(0)
        .unwrap();
    assert!(!first.again);
    assert!(collection.pending_bytes() > 0);
    let again = admit_record(&collection, 3, one())
        .answers
        .remove(0)
        .unwrap();
    assert!(again.again);
    hand.set(1100 * S);
    assert_eq!(collection.expire_logged().unwrap(), 1);
    collection.flush().unwrap();
    let mark = collection.log_mark().unwrap();
    assert_eq!(
        (mark.position, collection.pending_bytes()),
        (position(2, 0), 0)
    );
    let rows = |disk: &Simulated| {
        disk.contents()
            .keys()
            .filter(|name| name.ends_with(".rows"))
            .count()
    };
    assert_eq!(rows(&disk), 1);
    drop(collection);

    let collection = open_logged(&disk.copy(), &hand);
    hand.set(1000 * S);
    assert_eq!(collection.expire_logged().unwrap(), 0);
    let repeated = admit_record(&collection, 3, one())
        .answers
        .remove(0)
        .unwrap();
    assert_eq!(repeated.seq, None);
    assert_eq!(collection.log_mark().unwrap(), mark);
    hand.set(1100 * S);
    let new = admit_record(&collection, 4, one())
        .answers
        .remove(0)
        .unwrap();
    assert_eq!(new.seq, Some(2));
}

/// An expiry at which no partition begins writes the progress alone, so that a repeated entry writes no row then, too.
#[test]
fn expiry_alone_writes_the_progress() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let to = Arc::new(disk.clone());
    let made = wall_settings(240);
    let collection = Collection::create_at(to, &made, log_options(&hand), CREATED).unwrap();
    let one = || vec![document("one", "alpha beta gamma", None)];
    let admit_at = |seconds: i64, record, documents| {
        hand.set(seconds * S);
        collection.expire_logged().unwrap();
        let mut admission = admit_record(&collection, record, documents);
        collection.flush().unwrap();
        admission.answers.remove(0).unwrap()
    };
    admit_at(1000, 2, one());
    admit_at(1235, 3, vec![document("two", "some other words", None)]);
    assert!(admit_at(1236, 4, one()).again);
    let mark = collection.log_mark().unwrap();
    hand.set(1241 * S);
    assert_eq!(collection.expire_logged().unwrap(), 1);
    collection.flush().unwrap();
    assert_eq!(collection.log_mark().unwrap(), mark);
    assert!(!disk.contents().contains_key("0000000000000001.rows"));
    drop(collection);

    let collection = open_logged(&disk, &hand);
    hand.set(1236 * S);
    let repeated = admit_record(&collection, 4, one())
        .answers
        .remove(0)
        .unwrap();
    assert_eq!(repeated.seq, None);
    assert_eq!(collection.log_mark().unwrap(), mark);
}

/// The clock is where it was although the documents that set it have expired.
#[test]
fn clock_survives_the_documents_that_set_it() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let to = Arc::new(disk.clone());
    let collection =
        Collection::create_at(to, &wall_settings(24), log_options(&hand), CREATED).unwrap();
    hand.set(1000 * S);
    let _ = admit_record(&collection, 2, vec![document("one", "alpha beta", None)]);
    hand.set(1100 * S);
    collection.expire_logged().unwrap();
    let by_documents = SettingsChange {
        expire: Some(ExpiryClock::Documents),
        ..SettingsChange::default()
    };
    collection
        .change_settings_at(&by_documents, position(3, 0))
        .unwrap();
    let late = || vec![document("late", "gamma delta", Some(970 * S))];
    let copy = disk.copy();
    let expected = admit_record(&collection, 4, late())
        .answers
        .remove(0)
        .unwrap();
    assert_eq!(expected.seq, None);
    let collection = open_logged(&copy, &hand);
    let answer = admit_record(&collection, 4, late())
        .answers
        .remove(0)
        .unwrap();
    assert_eq!(answer, expected);
}

/// An error of this machine ends an admission before its document, which is admitted later. A refusal of every
/// replica is an answer.
#[test]
fn admission_ends_at_an_error_of_this_machine() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, None, &hand);
    let _ = admit_record(
        &collection,
        2,
        vec![document("one", "alpha beta gamma", None)],
    );
    collection.flush().unwrap();
    let record = || {
        vec![
            document("two", "some other words", None),
            document("one", "alpha beta gamma", None),
            document("one", "another text", None),
            document("three", "one more", None),
        ]
    };
    disk.refuse_reads(true);
    let admission = admit_record(&collection, 3, record());
    disk.refuse_reads(false);
    assert_eq!(admission.answers.len(), 1);
    assert_eq!(admission.stopped.unwrap().kind(), ErrorKind::Disk);
    assert_eq!(collection.log_mark().unwrap().position, position(3, 0));

    let collection = open_logged(&disk.copy(), &hand);
    let admission = admit_record(&collection, 3, record());
    assert!(admission.stopped.is_none());
    let kinds = admission.answers.iter().map(|answer| match answer {
        Ok(answer) => Ok((answer.seq, answer.again)),
        Err(error) => Err(error.kind()),
    });
    let expected = [
        Ok((Some(2), false)),
        Ok((Some(1), true)),
        Err(ErrorKind::Conflict),
        Ok((Some(3), false)),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(collection.log_mark().unwrap().position, position(3, 3));
}

/// The owner of a collection that follows a log waits for room, so a full disk refuses no document.
#[test]
fn full_disk_refuses_nothing_of_a_log() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, Some((24, false)), &hand);
    disk.set_free(0);
    let admission = admit_record(&collection, 2, vec![document("one", "alpha beta", None)]);
    assert!(admission.answers[0].is_ok());
    let change = SettingsChange {
        on_conflict: Some(OnConflict::Replace),
        ..SettingsChange::default()
    };
    assert!(
        collection
            .change_settings_at(&change, position(3, 0))
            .is_ok()
    );
    assert!(collection.delete_logged("one", position(3, 1)).unwrap());
}

/// A change of the settings is made once, however often its entry is applied.
#[test]
fn repeated_change_does_nothing() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, None, &hand);
    let change_to = |collection: &Collection, on_conflict, entry| {
        let change = SettingsChange {
            on_conflict: Some(on_conflict),
            ..SettingsChange::default()
        };
        let changed = collection.change_settings_at(&change, position(2, entry));
        changed.unwrap().on_conflict
    };
    assert_eq!(collection.settings_changed_at(), None);
    for (entry, on_conflict) in [(0, OnConflict::Replace), (1, OnConflict::Refuse)] {
        assert_eq!(change_to(&collection, on_conflict, entry), on_conflict);
        assert_eq!(collection.settings_changed_at(), Some(position(2, entry)));
    }
    let mark = collection.log_mark().unwrap();
    let collection = open_logged(&disk.copy(), &hand);
    assert_eq!(
        change_to(&collection, OnConflict::Replace, 0),
        OnConflict::Refuse
    );
    assert_eq!(collection.log_mark().unwrap(), mark);
    assert_eq!(collection.created_at(), Some(CREATED));
}

/// A collection that follows no log has no trace of one, and one that did keeps its mark.
#[test]
fn collection_without_a_log_is_as_before() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let to = Arc::new(disk.clone());
    let collection = Collection::create_empty(to, &settings(None), hand.options()).unwrap();
    let one = || document("one", "alpha beta", None);
    assert!(collection.insert_documents(&prepare(&collection, vec![one()]))[0].is_ok());
    assert_eq!(
        (collection.created_at(), collection.settings_changed_at()),
        (None, None)
    );
    assert_eq!(collection.log_mark().unwrap(), LogMark::default());
    let change = SettingsChange {
        on_conflict: Some(OnConflict::Replace),
        ..SettingsChange::default()
    };
    let refused = [
        admit_record(&collection, 2, vec![one()]).stopped,
        collection.delete_logged("one", position(2, 0)).err(),
        collection.change_settings_at(&change, position(2, 0)).err(),
        collection.expire_logged().err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap().kind(), ErrorKind::Setting);
    }
    collection.change_settings(&change).unwrap();
    let manifest = |disk: &Simulated| disk.contents().remove("manifest").unwrap();
    assert!(manifest(&disk).starts_with(b"lookalike-collection 3 "));
    assert!(
        disk.position("0000000000000001.rows", b"progress")
            .is_none()
    );

    let disk = Simulated::new();
    let collection = create_plain(&disk, None, &hand);
    let _ = admit_record(&collection, 2, vec![one()]);
    collection.flush().unwrap();
    let mark = collection.log_mark().unwrap();
    assert!(
        disk.position("0000000000000001.rows", b"progress")
            .is_some()
    );
    drop(collection);
    let from = Arc::new(disk.clone());
    let collection = Collection::open_existing(from, hand.options()).unwrap();
    collection.change_settings(&change).unwrap();
    assert_eq!(collection.log_mark().unwrap(), mark);
    assert!(manifest(&disk).starts_with(b"lookalike-collection 4 "));
    drop(collection);
    let collection = open_logged(&disk, &hand);
    assert_eq!(collection.log_mark().unwrap(), mark);
    assert_eq!(
        collection.collection_settings().on_conflict,
        OnConflict::Replace
    );
    assert_eq!(collection.created_at(), Some(CREATED));
}

/// A partition that has expired does not count any more, however far the removal of its files came.
#[test]
fn expired_partition_does_not_return() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, Some((24, false)), &hand);
    hand.set(1000 * S);
    let _ = admit_record(&collection, 2, vec![document("old", "alpha beta", None)]);
    collection.flush().unwrap();
    hand.set(1100 * S);
    let _ = admit_record(&collection, 3, vec![document("new", "gamma delta", None)]);
    let expected = collection.log_mark().unwrap();
    let states: Arc<Mutex<Vec<Simulated>>> = Arc::default();
    let seen = Arc::clone(&states);
    disk.set_hook(move |disk, _| seen.lock().unwrap().push(disk.copy()));
    collection.flush().unwrap();
    disk.set_hook(|_, _| ());
    let (mut complete, mut partly_removed) = (0, 0);
    for state in states.lock().unwrap().iter() {
        let has_old = state.contents().contains_key("0000000000000001.rows");
        let opened = open_logged(state, &hand);
        if opened.log_mark().unwrap() != expected {
            continue;
        }
        complete += 1;
        partly_removed += u32::from(has_old);
        assert!(!opened.delete_logged("old", position(4, 0)).unwrap());
        assert_eq!(opened.log_mark().unwrap(), expected);
        opened.flush().unwrap();
        assert!(!state.contents().contains_key("0000000000000001.rows"));
    }
    assert!(
        complete > partly_removed && partly_removed > 0,
        "{complete} {partly_removed}"
    );
}

/// A change of the window has its effect if it is on disk, however far the rest of it came.
#[test]
fn change_has_its_effect_at_every_operation() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, Some((96, false)), &hand);
    for (record, seconds) in [(2, 1000), (3, 1050)] {
        hand.set(seconds * S);
        let one = document(&format!("d{record}"), &text(record as usize * 8 + 4), None);
        let _ = admit_record(&collection, record, vec![one]);
    }
    collection.flush().unwrap();
    let states: Arc<Mutex<Vec<Simulated>>> = Arc::default();
    let seen = Arc::clone(&states);
    disk.set_hook(move |disk, _| seen.lock().unwrap().push(disk.copy()));
    let narrower = SettingsChange {
        width: Some(Duration::from_secs(24)),
        ..SettingsChange::default()
    };
    collection
        .change_settings_at(&narrower, position(4, 0))
        .unwrap();
    disk.set_hook(|_, _| ());
    let expected = collection.log_mark().unwrap();
    let mut found = [0, 0];
    for state in states.lock().unwrap().iter() {
        let opened = open_logged(state, &hand);
        let is_changed = opened.settings_changed_at().is_some();
        found[usize::from(is_changed)] += 1;
        assert_eq!(opened.log_mark().unwrap() == expected, is_changed);
        opened
            .change_settings_at(&narrower, position(4, 0))
            .unwrap();
        assert_eq!(opened.log_mark().unwrap(), expected);
        assert!(!opened.delete_logged("d2", position(4, 1)).unwrap());
        assert!(opened.delete_logged("d3", position(4, 2)).unwrap());
        assert_eq!(opened.collect_stats().unwrap().partitions, 1);
    }
    assert!(found.iter().all(|&count| count > 0), "{found:?}");
}

/// A partition that began between two changes of the window, without a row, began under the first one. So times ahead
/// of the clock are limited as they were.
#[test]
fn partition_begins_under_the_window_of_its_time() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let seconds = Duration::from_secs;
    let window = StreamWindow::new(seconds(60), seconds(60), false).unwrap();
    let ahead = CollectionSettings {
        window: Some(window.with_wall_clock(true)),
        ..settings(None)
    };
    let to = Arc::new(disk.clone());
    let collection = Collection::create_at(to, &ahead, log_options(&hand), CREATED).unwrap();
    hand.set(1000 * S);
    collection.expire_logged().unwrap();
    let _ = admit_record(
        &collection,
        2,
        vec![document("ahead", "alpha beta", Some(1060 * S))],
    );
    let change = |width, skew, record| {
        let change = SettingsChange {
            width: Some(seconds(width)),
            skew: Some(seconds(skew)),
            ..SettingsChange::default()
        };
        collection
            .change_settings_at(&change, position(record, 0))
            .unwrap();
    };
    change(60, 0, 3);
    hand.set(1010 * S);
    collection.expire_logged().unwrap();
    change(10, 0, 4);
    let reopened = open_logged(&disk.copy(), &hand);
    for (seconds, expired) in [(1035, 0), (1070, 0), (1071, 1)] {
        hand.set(seconds * S);
        for each in [&collection, &reopened] {
            assert_eq!(each.expire_logged().unwrap(), expired, "{seconds}");
        }
    }
}

/// An expiry that is repeated after a later entry has changed the window begins no partition.
#[test]
fn repeated_expiry_does_nothing() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let to = Arc::new(disk.clone());
    let made = wall_settings(240);
    let collection = Collection::create_at(to, &made, log_options(&hand), CREATED).unwrap();
    hand.set(1000 * S);
    let _ = admit_record(&collection, 2, vec![document("one", "alpha beta", None)]);
    hand.set(1005 * S);
    collection.expire_logged().unwrap();
    let narrower = SettingsChange {
        width: Some(Duration::from_secs(24)),
        ..SettingsChange::default()
    };
    collection
        .change_settings_at(&narrower, position(3, 0))
        .unwrap();
    let reopened = open_logged(&disk.copy(), &hand);
    for (seconds, partitions) in [(1005, 1), (1006, 2)] {
        hand.set(seconds * S);
        reopened.expire_logged().unwrap();
        assert_eq!(
            reopened.collect_stats().unwrap().partitions,
            partitions,
            "{seconds}"
        );
    }
}

/// A damaged place in the log is found, in the manifest and beside the rows.
#[test]
fn damaged_places_are_found() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = create_plain(&disk, None, &hand);
    let _ = admit_record(&collection, 2, vec![document("one", "alpha beta", None)]);
    collection.flush().unwrap();
    drop(collection);
    let open = |disk: &Simulated| {
        let opened = Collection::open_existing(Arc::new(disk.clone()), log_options(&hand));
        opened.map(drop).map_err(|error| error.kind())
    };
    let rows = "0000000000000001.rows";
    let file = &disk.contents()[rows];
    let key = b"progress";
    let places = file.windows(key.len()).enumerate();
    let places = places.filter(|(_, bytes)| *bytes == key).map(|(at, _)| at);
    let damaged = disk.copy();
    for at in places {
        // Behind the key are the version and the position.
        damaged.flip(rows, at + key.len() + 4, 0);
    }
    assert_eq!(open(&damaged), Err(ErrorKind::Damaged));
    assert!(!verify_collection(&damaged).unwrap().findings.is_empty());
    let damaged = disk.copy();
    let at = damaged.position("manifest", b"created_at").unwrap();
    damaged.flip("manifest", at, 0);
    assert_eq!(open(&damaged), Err(ErrorKind::Damaged));
    assert_eq!(open(&disk), Ok(()));
}
