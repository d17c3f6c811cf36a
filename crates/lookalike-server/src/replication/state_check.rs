//! Comparison of the states of replicas, and the clock of the log.
//!
//! After every [`CHECK_INTERVAL`] records, each replica remembers the digests of its collections. The writer of that
//! record puts its own into a later record, and every replica that has digests of the same place compares them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookalike_log::{EntryKind, LogRecord};
use serde::{Deserialize, Serialize};

use super::restoration::DifferingCheck;
use crate::collections::{CollectionStatus, ServedCollections};

/// Records between two places at which states are compared.
const CHECK_INTERVAL: u64 = 64;

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

/// Entries that this replica proposes by itself.
#[derive(Debug, Default)]
pub(super) struct CheckSchedule {
    state: Mutex<ScheduleState>,
}

#[derive(Debug, Default)]
struct ScheduleState {
    /// Digests of this replica that are to be proposed.
    due: Option<StateDigests>,
    remembered: VecDeque<StateDigests>,
    /// Time of the last advance of the clock, in microseconds since 1970.
    advanced_us: i64,
    /// Time between two advances of the clock; `None` if no window follows the wall clock.
    advance_interval: Option<Duration>,
}

impl CheckSchedule {
    /// Returns the entries that are due, and forgets them. `record_us` is the time of the last record.
    pub(super) fn take_due(&self, record_us: i64, now_us: i64) -> Vec<(EntryKind, Vec<u8>)> {
        let mut state = self.lock();
        let mut entries = Vec::new();
        if let Some(digests) = state.due.take() {
            // A map of strings always serialises.
            let body = serde_json::to_vec(&digests).unwrap_or_default();
            entries.push((EntryKind::CheckState, body));
        }
        let is_idle = has_passed(record_us, now_us, IDLE_INTERVAL);
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

    /// Notes that the clock has advanced, and how often it has to.
    pub(super) fn note_advance(&self, time_us: i64, collections: &ServedCollections) {
        let mut state = self.lock();
        state.advanced_us = state.advanced_us.max(time_us);
        state.advance_interval = advance_interval(collections);
    }

    /// Remembers the digests behind a record, if it is a place of comparison. `is_own` is `true` for the writer of the
    /// record, which proposes the comparison.
    ///
    /// # Errors
    /// If a collection cannot tell its digest.
    pub(super) fn note_record(
        &self,
        record: u64,
        is_own: bool,
        collections: &ServedCollections,
    ) -> Result<(), String> {
        if !record.is_multiple_of(CHECK_INTERVAL) {
            return Ok(());
        }
        let Some(digests) = collect_digests(record, collections)? else {
            return Ok(());
        };
        let mut state = self.lock();
        if is_own {
            state.due = Some(digests.clone());
        }
        state.remembered.push_back(digests);
        if state.remembered.len() > REMEMBERED_PLACES {
            state.remembered.pop_front();
        }
        Ok(())
    }

    /// Compares the digests of another replica with those of this one at the same place, if it has them.
    ///
    /// # Errors
    /// If they differ.
    pub(super) fn compare_state(&self, body: &[u8], writer: &str) -> Result<(), String> {
        let theirs: StateDigests = serde_json::from_slice(body).map_err(|error| {
            format!("the digests of the replica '{writer}' cannot be read: {error}")
        })?;
        let state = self.lock();
        let own = state
            .remembered
            .iter()
            .find(|own| own.record == theirs.record);
        match own {
            Some(own) if *own != theirs => Err(describe_difference(own, &theirs, writer)),
            _ => Ok(()),
        }
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
        let own = remembered.find(|own| own.record == theirs.record)?;
        let collections = differing_collections(own, &theirs);
        (*own != theirs).then(|| differing(theirs.record, collections))
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

fn differing_collections<'a>(own: &'a StateDigests, theirs: &'a StateDigests) -> Vec<&'a str> {
    let names = own.collections.keys().chain(theirs.collections.keys());
    let mut differing: Vec<_> = names
        .filter(|name| own.collections.get(*name) != theirs.collections.get(*name))
        .map(String::as_str)
        .collect();
    differing.sort_unstable();
    differing.dedup();
    differing
}

fn describe_difference(own: &StateDigests, theirs: &StateDigests, writer: &str) -> String {
    format!(
        "behind record {} of the log, this replica has another state of the collections {} than the replica \
         '{writer}': find out with `lookalike store verify` and `lookalike store log verify` which one is right, and \
         start the other one again with an empty directory",
        own.record,
        differing_collections(own, theirs).join(", ")
    )
}

#[cfg(test)]
mod tests {
    use lookalike_log::{LogId, RecordDigest};

    use super::*;

    fn digests(record: u64, news: &str) -> StateDigests {
        StateDigests {
            record,
            collections: [("news".to_owned(), news.to_owned())].into(),
        }
    }

    /// Digests of the same place are compared; those of other places say nothing.
    #[test]
    fn differing_states_are_noticed() {
        let schedule = CheckSchedule::default();
        schedule.lock().remembered.push_back(digests(64, "aa"));
        let compare = |theirs: &StateDigests| {
            schedule.compare_state(&serde_json::to_vec(theirs).unwrap(), "b")
        };
        assert!(compare(&digests(64, "aa")).is_ok() && compare(&digests(128, "bb")).is_ok());
        let difference = compare(&digests(64, "bb")).unwrap_err();
        assert!(difference.contains("record 64") && difference.contains("collections news"));
        assert!(schedule.compare_state(b"?", "b").is_err());
    }

    /// A restoration learns which collections differ, and is not ended by it.
    #[test]
    fn differences_are_described_for_a_restoration() {
        let schedule = CheckSchedule::default();
        schedule.lock().remembered.push_back(digests(64, "aa"));
        let record = LogRecord {
            number: 70,
            log: LogId(1),
            time_us: 0,
            writer: "b".to_owned(),
            nonce: 0,
            previous: RecordDigest::ZERO,
            digest: RecordDigest::ZERO,
            entries: Vec::new(),
        };
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
        let schedule = CheckSchedule::default();
        let second = 1_000_000;
        assert!(schedule.take_due(100 * second, 159 * second).is_empty());
        assert_eq!(schedule.take_due(100 * second, 160 * second).len(), 1);
        schedule.lock().advance_interval = Some(Duration::from_secs(5));
        assert!(schedule.take_due(160 * second, 164 * second).is_empty());
        assert_eq!(schedule.take_due(164 * second, 165 * second).len(), 1);
        assert!(schedule.take_due(164 * second, 165 * second).is_empty());
    }
}
