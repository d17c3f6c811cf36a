//! When a record is written, and when the next one is looked for.
//!
//! Object stores charge for each request, so records are written at a bounded rate on average, by all replicas
//! together; each replica counts the records of all. A lone change is written at once, because the rate leaves
//! bursts. A record that is full does not wait.
//!
//! Two replicas that write the same record conflict: one of them has written in vain. A replica that has something to
//! write therefore lets those go first that come before it in a rotation of the recent writers. The rotation only
//! saves conflicts: correctness does not depend on it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Records that may be written at once after a pause.
const BURST: f64 = 8.0;

/// Number of records whose writers take part in the rotation.
const ROTATION_RECORDS: usize = 12;

/// Longest time that a record of the store counts as.
const LONGEST_WRITE: Duration = Duration::from_secs(1);

/// Longest time for which a replica lets others write first.
const LONGEST_TURN: Duration = Duration::from_millis(250);

/// Decides when the next record may be written.
#[derive(Debug)]
pub(super) struct WritePace {
    records_per_second: f64,
    /// Records that may be written now.
    tokens: f64,
    filled: Instant,
    replica: String,
    recent_writers: VecDeque<String>,
    /// Time that the store takes for a record, a moving average.
    write_time: Duration,
    last_record: Instant,
}

impl WritePace {
    pub(super) fn new(replica: &str, records_per_second: u32, now: Instant) -> Self {
        Self {
            records_per_second: f64::from(records_per_second.max(1)),
            tokens: BURST,
            filled: now,
            replica: replica.to_owned(),
            recent_writers: VecDeque::new(),
            write_time: Duration::from_millis(5),
            last_record: now,
        }
    }

    /// Counts a record of any replica. A full one costs nothing of the rate, because lone changes of others would wait as
    /// long as full ones come.
    pub(super) fn count_record(&mut self, writer: &str, is_full: bool, now: Instant) {
        self.fill_tokens(now);
        if !is_full {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
        self.last_record = now;
        self.recent_writers.push_back(writer.to_owned());
        if self.recent_writers.len() > ROTATION_RECORDS {
            self.recent_writers.pop_front();
        }
    }

    /// Counts the time that the store took for a record of this replica.
    pub(super) fn observe_write(&mut self, time: Duration) {
        self.write_time = (self.write_time * 7 + time.min(LONGEST_WRITE)) / 8;
    }

    fn fill_tokens(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * self.records_per_second).min(BURST);
        self.filled = now;
    }

    /// Returns the time from which a record may be written; a full one only waits for its turn.
    pub(super) fn next_write(&mut self, is_full: bool, now: Instant) -> Instant {
        self.fill_tokens(now);
        let missing = 1.0 - self.tokens;
        let turn = self.last_record + self.turn_delay();
        if is_full || missing <= 0.0 {
            return turn;
        }
        turn.max(now + Duration::from_secs_f64(missing / self.records_per_second))
    }

    /// Returns how long this replica lets those write first that come before it in the rotation.
    fn turn_delay(&self) -> Duration {
        let mut writers: Vec<_> = self.recent_writers.iter().collect();
        let Some(last) = writers.last().copied() else {
            return Duration::ZERO;
        };
        let last = last.clone();
        writers.push(&self.replica);
        writers.sort_unstable();
        writers.dedup();
        if writers.len() == 1 {
            return Duration::ZERO;
        }
        let place_of = |name: &String| writers.iter().position(|writer| *writer == name);
        let (own, last) = (place_of(&self.replica), place_of(&last));
        let (own, last) = (own.unwrap_or(0), last.unwrap_or(0));
        let behind = (own + writers.len() - last - 1) % writers.len();
        (self.write_time * 3 / 2 * behind as u32).min(LONGEST_TURN)
    }
}

/// Shortest and longest wait between two looks for the next record.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Decides when to look for the next record: soon after one has been seen, and about when the next one is due.
#[derive(Debug)]
pub(super) struct PollPace {
    last_seen: Instant,
    /// Time between two records, a moving average.
    interval: Duration,
    looks: u32,
}

impl PollPace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last_seen: now,
            interval: POLL_BOUNDS.1,
            looks: 0,
        }
    }

    /// Notes that a record was seen.
    pub(super) fn note_record(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.last_seen);
        self.interval = (self.interval * 3 + since.min(POLL_BOUNDS.1 * 4)) / 4;
        self.last_seen = now;
        self.looks = 0;
    }

    /// Returns when to look again, after a look that found nothing.
    pub(super) fn next_look(&mut self, now: Instant) -> Instant {
        self.looks = self.looks.saturating_add(1);
        // The first look comes shortly before the next record is due, the others at an eighth of the interval, and
        // ever more rarely once the record is overdue.
        let first = self.last_seen + self.interval * 7 / 8;
        let step = (self.interval / 8).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1);
        let step = step * (1 << (self.looks / 8).min(6));
        let next = if self.looks == 1 { first } else { now + step };
        next.clamp(now + POLL_BOUNDS.0, now + POLL_BOUNDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A lone change is written at once; many are written at the rate; a full record does not wait.
    #[test]
    fn records_are_written_at_the_rate_on_average() {
        let begin = Instant::now();
        let mut pace = WritePace::new("a", 4, begin);
        let (mut now, end, mut written) = (begin, begin + seconds(100.0), 0);
        assert_eq!(pace.next_write(false, now), begin);
        while now < end {
            now = pace.next_write(false, now).max(now);
            pace.count_record("a", false, now);
            written += 1;
        }
        assert!((400..=410).contains(&written), "{written}");
        assert!(pace.next_write(false, now) > now);
        assert!(pace.next_write(true, now) <= now);
        // After many full records, a lone change waits for one interval at most.
        (0..1000).for_each(|_| pace.count_record("a", true, now));
        assert!(pace.next_write(false, now) <= now + seconds(0.26));
        // Full records of another replica do not keep it waiting either.
        let mut other = WritePace::new("b", 4, begin);
        (0..1000).for_each(|_| other.count_record("a", true, now));
        assert!(other.next_write(false, now) <= now + other.write_time * 2);
    }

    /// Of replicas that write by turns, each waits for those before it in the rotation; one alone waits for nobody.
    #[test]
    fn writers_take_turns() {
        let now = Instant::now();
        let delays = |last: &str| {
            ["a", "b", "c"].map(|replica| {
                let mut pace = WritePace::new(replica, 1000, now);
                for writer in ["a", "b", "c", last] {
                    pace.count_record(writer, false, now);
                }
                pace.turn_delay() / 15
            })
        };
        let [first, second, third] = [0, 1, 2].map(|turns| Duration::from_micros(500) * turns);
        assert_eq!(delays("a"), [third, first, second]);
        assert_eq!(delays("c"), [first, second, third]);
        let mut alone = WritePace::new("a", 1000, now);
        alone.count_record("a", false, now);
        assert_eq!(alone.turn_delay(), Duration::ZERO);
        // A writer that has been silent for long drops out.
        alone.count_record("b", false, now);
        assert!(alone.turn_delay() == Duration::ZERO);
        alone.count_record("a", false, now);
        assert!(alone.turn_delay() > Duration::ZERO);
        (0..ROTATION_RECORDS).for_each(|_| alone.count_record("a", false, now));
        assert_eq!(alone.turn_delay(), Duration::ZERO);
    }

    /// An outage of the store does not slow down those that come after it.
    #[test]
    fn outage_is_forgotten() {
        let now = Instant::now();
        let mut pace = WritePace::new("a", 4, now);
        pace.observe_write(seconds(600.0));
        pace.count_record("b", true, now);
        pace.count_record("a", true, now);
        assert!(pace.next_write(true, now) <= now + LONGEST_TURN);
    }

    /// Records at a steady rate cost few looks each; without records a look comes every second.
    #[test]
    fn looks_follow_the_records() {
        let mut now = Instant::now();
        let mut pace = PollPace::new(now);
        let mut looks = 0;
        let records = 100;
        for _ in 0..records {
            let due = now + Duration::from_millis(250);
            loop {
                looks += 1;
                if now >= due {
                    pace.note_record(now);
                    break;
                }
                now = pace.next_look(now);
            }
        }
        assert!(looks <= 4 * records, "{looks}");
        let begin = now;
        (0..200).for_each(|_| now = pace.next_look(now));
        let before = now;
        now = pace.next_look(now);
        assert_eq!(now - before, POLL_BOUNDS.1);
        assert!(now - begin > Duration::from_secs(60));
    }
}
