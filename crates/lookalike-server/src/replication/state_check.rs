//! Comparison of the states of replicas, and the clock of the log.
//!
//! After every [`CHECK_INTERVAL`] records, each replica remembers the digests of its collections. The writer of that
//! record puts its own into a later record, and every replica that has digests of the same place compares them and
//! answers with its own. So all see which state most replicas have, and one that is alone with its own stops. Without a
//! majority within [`UNDECIDED_RECORDS`], as of two replicas, all that differ stop, because nobody knows which one is right.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookalike_log::{EntryKind, LogRecord};
use serde::{Deserialize, Serialize};

use super::restoration::DifferingCheck;
use crate::collections::{CollectionStatus, ServedCollections};

/// Records between two places at which states are compared.
const CHECK_INTERVAL: u64 = 64;

/// Records, and time by their clock, within which a majority must show.
const UNDECIDED_RECORDS: u64 = CHECK_INTERVAL;
const UNDECIDED_TIME: Duration = Duration::from_secs(30);

/// Places whose digests are remembered.
const REMEMBERED_PLACES: usize = 64;

/// Longest time between two records, so that a replica that hears nothing knows that nothing happened.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// Shortest time between two advances of the clock.
const SHORTEST_ADVANCE: Duration = Duration::from_secs(1);

/// Part of a window after which the clock of the log advances, if documents expire by it.
const ADVANCES_PER_WINDOW: u32 = 48;

/// Digests of all collections behind a record, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StateDigests {
    record: u64,
    collections: BTreeMap<String, String>,
}

/// Digests of this replica at a place of the log, and the other replicas whose digests of it are known.
#[derive(Debug)]
struct RememberedPlace {
    own: StateDigests,
    agreeing: BTreeSet<String>,
    differing: BTreeSet<String>,
    /// `true` once this replica proposes its own digests.
    is_proposed: bool,
    /// Number and time of the record since which as many replicas differ as agree.
    undecided_since: Option<(u64, i64)>,
}

impl RememberedPlace {
    fn new(own: StateDigests, is_proposed: bool) -> Self {
        Self {
            own,
            agreeing: BTreeSet::new(),
            differing: BTreeSet::new(),
            is_proposed,
            undecided_since: None,
        }
    }

    /// Decides by majority whether this replica may go on, as of a record.
    ///
    /// # Errors
    /// If more replicas differ than agree, or as many for too long.
    fn decide(&mut self, record: u64, time_us: i64) -> Result<(), String> {
        // This replica agrees with itself.
        let agreeing = self.agreeing.len() + 1;
        match self.differing.len().cmp(&agreeing) {
            Ordering::Less => self.undecided_since = None,
            Ordering::Greater => return Err(self.describe_decision("more replicas differ")),
            Ordering::Equal => {
                let (since, since_us) = *self.undecided_since.get_or_insert((record, time_us));
                if record - since >= UNDECIDED_RECORDS
                    && has_passed(since_us, time_us, UNDECIDED_TIME)
                {
                    return Err(self.describe_decision("no other replica says which one is right"));
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if no majority has the state of this replica.
    fn is_disputed(&self) -> bool {
        // This replica agrees with itself.
        self.differing.len() > self.agreeing.len()
    }

    fn describe_decision(&self, reason: &str) -> String {
        let differing: Vec<_> = self.differing.iter().map(String::as_str).collect();
        format!(
            "behind record {} of the log, this replica has another state than {}, and {reason}: keep its data directory \
             for a report, and start it again with an empty one; if all replicas have stopped, find the right one with \
             `lookalike store verify`, and start the others with empty directories",
            self.own.record,
            differing.join(", ")
        )
    }
}

/// A place of comparison at which other replicas had the state of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfirmedPlace {
    /// Number of the record behind which the states were compared.
    pub(crate) record: u64,
    /// Digests of the collections, in hexadecimal digits.
    collections: BTreeMap<String, String>,
    /// Names of the other replicas.
    replicas: BTreeSet<String>,
}

/// Entries that this replica proposes by itself.
#[derive(Debug)]
pub(super) struct CheckSchedule {
    /// Name of this replica.
    replica: String,
    state: Mutex<ScheduleState>,
}

#[derive(Debug, Default)]
struct ScheduleState {
    /// Digests of this replica that are to be proposed.
    due: Vec<StateDigests>,
    /// Digests with which this replica confirms those of another one. Only the newest ones are of use.
    due_answer: Option<StateDigests>,
    remembered: VecDeque<RememberedPlace>,
    /// Time of the last advance of the clock, in microseconds since 1970.
    advanced_us: i64,
    /// Time between two advances of the clock; `None` if no window follows the wall clock.
    advance_interval: Option<Duration>,
}

impl CheckSchedule {
    /// Returns the schedule of the replica of a name.
    pub(super) fn new(replica: &str) -> Self {
        Self {
            replica: replica.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Returns the entries that are due, and forgets them. `record_us` is the time of the last record.
    pub(super) fn take_due(&self, record_us: i64, now_us: i64) -> Vec<(EntryKind, Vec<u8>)> {
        let mut state = self.lock();
        let mut entries = Vec::new();
        let answer = state.due_answer.take();
        for digests in state.due.drain(..).chain(answer) {
            // A map of strings always serialises.
            let body = serde_json::to_vec(&digests).unwrap_or_default();
            entries.push((EntryKind::CheckState, body));
        }
        let is_idle = has_passed(record_us.max(state.advanced_us), now_us, IDLE_INTERVAL);
        let is_due = state
            .advance_interval
            .is_some_and(|interval| has_passed(state.advanced_us, now_us, interval));
        if is_idle || is_due {
            // The record takes a moment, and is not proposed a second time meanwhile.
            state.advanced_us = now_us;
            if is_due || record_us != 0 {
                entries.push((EntryKind::AdvanceClock, Vec::new()));
            }
        }
        entries
    }

    /// Notes that the clock has advanced to `time_us`.
    pub(super) fn note_advance(&self, time_us: i64) {
        let mut state = self.lock();
        state.advanced_us = state.advanced_us.max(time_us);
    }

    /// Computes anew how often the clock has to advance. Follows each change of the collections or of their settings.
    pub(super) fn update_interval(&self, collections: &ServedCollections) {
        self.lock().advance_interval = advance_interval(collections);
    }

    /// Remembers the digests behind a record, if it is a place of comparison. `is_own` is `true` for the writer of the
    /// record, which proposes the comparison.
    ///
    /// # Errors
    /// If a collection cannot tell its digest, or this replica has had another state than others for too long.
    pub(super) fn note_record(
        &self,
        record: &LogRecord,
        is_own: bool,
        collections: &ServedCollections,
    ) -> Result<(), String> {
        let (number, time_us) = (record.number, record.time_us);
        let mut undecided = self.lock();
        let places = undecided.remembered.iter_mut();
        let mut places = places.filter(|place| place.undecided_since.is_some());
        places.try_for_each(|place| place.decide(number, time_us))?;
        drop(undecided);
        if !number.is_multiple_of(CHECK_INTERVAL) {
            return Ok(());
        }
        let Some(digests) = collect_digests(number, collections)? else {
            return Ok(());
        };
        let mut state = self.lock();
        if is_own {
            state.due.push(digests.clone());
        }
        let place = RememberedPlace::new(digests, is_own);
        state.remembered.push_back(place);
        if state.remembered.len() > REMEMBERED_PLACES {
            let mut places = state.remembered.iter();
            let decided = places.position(|place| place.undecided_since.is_none());
            // An undecided one stays until it is decided.
            state.remembered.remove(decided.unwrap_or(0));
        }
        Ok(())
    }

    /// Compares the digests that a record has of another replica with those of this one at the same place, if it has
    /// them.
    ///
    /// # Errors
    /// If this replica has another state than most.
    pub(super) fn compare_state(&self, body: &[u8], record: &LogRecord) -> Result<(), String> {
        let writer = &record.writer;
        if *writer == self.replica {
            return Ok(());
        }
        let theirs: StateDigests = match serde_json::from_slice(body) {
            Ok(theirs) => theirs,
            Err(error) => {
                // It says nothing about this replica.
                tracing::error!(record = record.number, writer, %error, "unreadable digests of a replica");
                return Ok(());
            }
        };
        let mut state = self.lock();
        let state = &mut *state;
        let mut places = state.remembered.iter_mut();
        let Some(place) = places.find(|place| place.own.record == theirs.record) else {
            return Ok(());
        };
        if place.own == theirs {
            place.agreeing.insert(writer.clone());
            // Without an answer the writer would not learn that its state is confirmed.
            if !std::mem::replace(&mut place.is_proposed, true) {
                state.due_answer = Some(place.own.clone());
            }
        } else {
            let collections = differing_collections(&place.own, &theirs).join(", ");
            let behind = theirs.record;
            tracing::error!(
                behind,
                writer,
                collections,
                "a replica has another state than this one"
            );
            place.differing.insert(writer.clone());
            if !std::mem::replace(&mut place.is_proposed, true) {
                state.due.push(place.own.clone());
            }
        }
        place.decide(record.number, record.time_us)
    }

    /// Returns how the digests in an entry of a record differ from those that are remembered of the same place; `None` if
    /// they are equal or none are remembered. Digests that cannot be read differ, and name no collection.
    pub(super) fn find_difference(
        &self,
        body: &[u8],
        record: &LogRecord,
    ) -> Option<DifferingCheck> {
        let differing = |record_number, collections: Vec<&str>| DifferingCheck {
            record: record_number,
            writer: record.writer.clone(),
            collections: collections.into_iter().map(str::to_owned).collect(),
        };
        let Ok(theirs) = serde_json::from_slice::<StateDigests>(body) else {
            return Some(differing(record.number, Vec::new()));
        };
        let state = self.lock();
        let mut remembered = state.remembered.iter();
        let own = &remembered
            .find(|place| place.own.record == theirs.record)?
            .own;
        let collections = differing_collections(own, &theirs);
        (*own != theirs).then(|| differing(theirs.record, collections))
    }

    /// Returns the last place at which another replica had the state of this one; `None` if there is none, or if states
    /// are disputed.
    pub(super) fn confirmed_place(&self) -> Option<ConfirmedPlace> {
        let state = self.lock();
        let places = &state.remembered;
        if places.iter().any(RememberedPlace::is_disputed) {
            return None;
        }
        let mut newest_first = places.iter().rev();
        let place = newest_first.find(|place| !place.agreeing.is_empty())?;
        Some(ConfirmedPlace {
            record: place.own.record,
            collections: place.own.collections.clone(),
            replicas: place.agreeing.clone(),
        })
    }

    /// Returns the number of the last record behind which another replica had the state of this one, without a dispute; 0
    /// if none is known.
    pub(super) fn agreed_record(&self) -> u64 {
        let state = self.lock();
        let is_agreed =
            |place: &&RememberedPlace| !place.agreeing.is_empty() && !place.is_disputed();
        let agreed = state.remembered.iter().filter(is_agreed);
        agreed.map(|place| place.own.record).max().unwrap_or(0)
    }

    /// Returns `true` if at some place no fewer replicas have another state than have that of this one.
    pub(super) fn is_disputed(&self) -> bool {
        let state = self.lock();
        state.remembered.iter().any(RememberedPlace::is_disputed)
    }

    fn lock(&self) -> MutexGuard<'_, ScheduleState> {
        // A panic leaves at most one comparison out.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_passed(since_us: i64, now_us: i64, interval: Duration) -> bool {
    now_us.saturating_sub(since_us) >= interval.as_micros() as i64
}

/// Returns the shortest time between two advances that a collection needs.
fn advance_interval(collections: &ServedCollections) -> Option<Duration> {
    let states = collections.list_states();
    let windows = states.iter().filter_map(|(_, state)| match state {
        CollectionStatus::Open(open) => open.collection.collection_settings().window,
        _ => None,
    });
    let by_wall_clock = windows.filter(|window| window.follows_wall_clock());
    let shortest = by_wall_clock.map(|window| window.width()).min()?;
    Some((shortest / ADVANCES_PER_WINDOW).clamp(SHORTEST_ADVANCE, IDLE_INTERVAL))
}

/// Returns the digests of all collections; `None` if one of them is ahead of the record, as those of a snapshot may be.
fn collect_digests(
    record: u64,
    collections: &ServedCollections,
) -> Result<Option<StateDigests>, String> {
    let mut digests = BTreeMap::new();
    for (name, state) in collections.list_states() {
        // A collection that is missing here alone says nothing about the states of others.
        let CollectionStatus::Open(open) = state else {
            return Ok(None);
        };
        let mark = open.collection.log_mark();
        let mark = mark.map_err(|error| format!("the collection '{name}': {error}"))?;
        if mark.position.record > record {
            return Ok(None);
        }
        digests.insert(name, format!("{:032x}", mark.digest));
    }
    Ok(Some(StateDigests {
        record,
        collections: digests,
    }))
}

/// Returns the names of the collections with differing digests.
fn differing_collections<'a>(own: &'a StateDigests, theirs: &'a StateDigests) -> Vec<&'a str> {
    let names = own.collections.keys().chain(theirs.collections.keys());
    let differing: BTreeSet<_> = names
        .filter(|name| own.collections.get(*name) != theirs.collections.get(*name))
        .map(String::as_str)
        .collect();
    Vec::from_iter(differing)
}

#[cfg(test)]
mod tests {
    use lookalike_log::{LogId, RecordDigest};
    use lookalike_store::CollectionOptions;

    use super::*;

    fn digests(record: u64, news: &str) -> StateDigests {
        StateDigests {
            record,
            collections: [("news".to_owned(), news.to_owned())].into(),
        }
    }

    fn check_record(number: u64, writer: &str) -> LogRecord {
        LogRecord {
            number,
            log: LogId(1),
            time_us: number as i64 * 1_000_000,
            nonce: 0,
            previous: RecordDigest::ZERO,
            writer: writer.to_owned(),
            entries: Vec::new(),
            digest: RecordDigest::ZERO,
        }
    }

    /// Replica `name` with a state behind record 64.
    fn replica(name: &str, news: &str) -> CheckSchedule {
        let schedule = CheckSchedule::new(name);
        let place = RememberedPlace::new(digests(64, news), false);
        schedule.lock().remembered.push_back(place);
        schedule
    }

    fn compare(own: &CheckSchedule, number: u64, writer: &str, news: &str) -> Result<(), String> {
        let body = serde_json::to_vec(&digests(64, news)).unwrap();
        own.compare_state(&body, &check_record(number, writer))
    }

    fn is_check_due(schedule: &CheckSchedule) -> bool {
        schedule.take_due(1, 1).len() == 1
    }

    /// A replica that is alone with its state stops, whichever of three writes first; the two others go on.
    #[test]
    fn minority_stops() {
        let (first, second, wrong) = (replica("a", "aa"), replica("b", "aa"), replica("c", "cc"));
        // The wrong one writes first, and both others answer.
        assert_eq!(compare(&wrong, 70, "c", "cc"), Ok(()));
        for own in [&first, &second] {
            assert_eq!(compare(own, 70, "c", "cc"), Ok(()));
            assert!(is_check_due(own) && !is_check_due(own));
        }
        for (own, number, writer) in [
            (&first, 71, "a"),
            (&second, 71, "a"),
            (&first, 72, "b"),
            (&second, 72, "b"),
        ] {
            assert_eq!(compare(own, number, writer, "aa"), Ok(()));
        }
        assert_eq!(compare(&wrong, 71, "a", "aa"), Ok(()));
        let stopped = compare(&wrong, 72, "b", "aa").unwrap_err();
        assert!(
            stopped.contains("record 64") && stopped.contains("a, b"),
            "{stopped}"
        );
        // The two go on for good.
        let collections = no_collections();
        for own in [&first, &second] {
            let later = check_record(1000, "a");
            assert_eq!(own.note_record(&later, false, &collections), Ok(()));
        }
    }

    /// A place is confirmed once another replica has the same state, which both learn, and not while others differ.
    #[test]
    fn place_is_confirmed_by_others() {
        let (first, second) = (replica("a", "aa"), replica("b", "aa"));
        assert_eq!(first.confirmed_place(), None);
        assert_eq!(compare(&second, 70, "a", "aa"), Ok(()));
        // The answer is given once.
        assert!(is_check_due(&second) && !is_check_due(&second));
        assert_eq!(compare(&first, 71, "b", "aa"), Ok(()));
        let place = first.confirmed_place().unwrap();
        assert_eq!((place.record, first.agreed_record()), (64, 64));
        assert!(place.replicas.iter().eq(["b"]));
        assert!(!first.is_disputed());
        for (number, writer) in [(72, "c"), (73, "d")] {
            assert_eq!(compare(&first, number, writer, "cc"), Ok(()));
        }
        assert!(first.is_disputed());
        assert_eq!((first.confirmed_place(), first.agreed_record()), (None, 0));
    }

    /// Of two replicas that differ both stop, but only after the time in which a third one would have answered.
    #[test]
    fn replicas_without_a_majority_stop() {
        let own = replica("a", "aa");
        let collections = no_collections();
        assert_eq!(compare(&own, 70, "b", "bb"), Ok(()));
        let note = |number| own.note_record(&check_record(number, "b"), false, &collections);
        assert_eq!(note(70 + UNDECIDED_RECORDS - 1), Ok(()));
        let stopped = note(70 + UNDECIDED_RECORDS).unwrap_err();
        assert!(stopped.contains("another state than b"), "{stopped}");
    }

    /// Digests of other places, of this replica itself, and unreadable ones say nothing.
    #[test]
    fn only_states_of_one_place_are_compared() {
        let own = replica("a", "aa");
        assert_eq!(compare(&own, 70, "a", "bb"), Ok(()));
        assert!(!is_check_due(&own));
        assert_eq!(compare(&own, 70, "b", "aa"), Ok(()));
        assert!(is_check_due(&own));
        let other = serde_json::to_vec(&digests(128, "bb")).unwrap();
        let record = check_record(130, "b");
        assert_eq!(own.compare_state(&other, &record), Ok(()));
        assert_eq!(own.compare_state(b"?", &record), Ok(()));
        assert!(!is_check_due(&own));
        assert_eq!(
            differing_collections(&digests(64, "aa"), &digests(64, "bb")),
            ["news"]
        );
    }

    fn no_collections() -> ServedCollections {
        let folder = tempfile::tempdir().unwrap();
        ServedCollections::new(folder.path(), CollectionOptions::default()).unwrap()
    }

    /// A restoration learns which collections differ, and is not ended by it.
    #[test]
    fn differences_are_described_for_a_restoration() {
        let (schedule, record) = (replica("a", "aa"), check_record(70, "b"));
        let find = |body: &[u8]| schedule.find_difference(body, &record);
        let body = |theirs: &StateDigests| serde_json::to_vec(theirs).unwrap();
        assert_eq!(find(&body(&digests(64, "aa"))), None);
        assert_eq!(find(&body(&digests(128, "bb"))), None);
        let differing = |record, collections: &[&str]| DifferingCheck {
            record,
            writer: "b".to_owned(),
            collections: collections.iter().map(|name| (*name).to_owned()).collect(),
        };
        let found = find(&body(&digests(64, "bb")));
        assert_eq!(found, Some(differing(64, &["news"])));
        assert_eq!(find(b"?"), Some(differing(70, &[])));
    }

    /// The clock advances when no record came for a minute, and by the window if that follows the wall clock.
    #[test]
    fn clock_advances_when_due() {
        let schedule = CheckSchedule::new("a");
        let second = 1_000_000;
        assert!(schedule.take_due(100 * second, 159 * second).is_empty());
        assert_eq!(schedule.take_due(100 * second, 160 * second).len(), 1);
        schedule.lock().advance_interval = Some(Duration::from_secs(5));
        assert!(schedule.take_due(160 * second, 164 * second).is_empty());
        assert_eq!(schedule.take_due(164 * second, 165 * second).len(), 1);
        assert!(schedule.take_due(164 * second, 165 * second).is_empty());
    }
}
