//! When a record is written, and when the next one is looked for.
//!
//! Object stores charge for each request, so records are written at a bounded rate on average, by all replicas
//! together; each replica counts the records of all. A lone change is written at once, because the rate leaves
//! bursts. A record that is full does not wait.
//!
//! Two replicas that write the same record conflict: one of them has written in vain. A replica that has something to
//! write therefore lets those go first that come before it in a rotation of the recent writers, and looks for their
//! record before it writes its own, because a look costs a twelfth of a write. The rate allows the next record to all of
//! them at about the same time, so the turns are counted from that time on. A replica that is new in the rotation comes
//! last in it, and first at every few records, so that writers that always have something to write leave room for it. The
//! rotation only saves conflicts: correctness does not depend on it.
//!
//! Replicas see a record at different times, and those that see it late would begin their turns late, every time. A
//! replica therefore estimates when a record came: its clock minus the time in the record is least for those that it saw at
//! once, whatever the difference of the clocks, and what the others have more than that they were seen late.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Records that may be written at once after a pause.
const BURST: f64 = 8.0;

/// Number of records whose writers take part in the rotation.
const ROTATION_RECORDS: usize = 12;

/// Longest time that a record of the store counts as.
const LONGEST_WRITE: Duration = Duration::from_secs(1);

/// Records from one that a new writer may write first to the next one: while records come at the rate, and while they come
/// full, one right after another.
const RECORDS_PER_NEW_WRITER: (u64, u64) = (4, 64);

/// Time of records, in microseconds, in which one of those that are not full leaves room for a new writer: all others wait
/// for a turn there, and a high rate would make that a wait of every fourth change.
const NEW_WRITER_INTERVAL_US: i64 = 500_000;

/// Time by which replicas may differ about the beginning of a turn, because each sees a record at its own time.
const LARGEST_LATENESS: Duration = Duration::from_millis(15);

/// Longest time for which a replica lets others write first.
const LONGEST_TURN: Duration = Duration::from_millis(250);

/// A record that exists, of any replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenRecord<'a> {
    pub(super) number: u64,
    pub(super) writer: &'a str,
    pub(super) is_full: bool,
    /// Time in the record, in microseconds; the same for all replicas.
    pub(super) time_us: i64,
    /// Time by which the clock of this machine is ahead of the time in the record, in microseconds.
    pub(super) delay_us: i64,
}

/// A record that takes part in the rotation.
#[derive(Debug)]
struct RecentRecord {
    writer: String,
    delay_us: i64,
}

/// Decides when the next record may be written.
#[derive(Debug)]
pub(super) struct WritePace {
    records_per_second: f64,
    /// Records that may be written now.
    tokens: f64,
    filled: Instant,
    replica: String,
    recent_records: VecDeque<RecentRecord>,
    /// `true` if a writer that is new in the rotation may write the next record first.
    next_is_for_new: bool,
    /// Number of the interval of time in which room was left for a new writer last.
    last_new_writer: i64,
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
            recent_records: VecDeque::new(),
            next_is_for_new: false,
            last_new_writer: i64::MIN,
            write_time: Duration::from_millis(5),
            last_record: now,
        }
    }

    /// Counts a record of any replica. A full one costs nothing of the rate, because lone changes of others would wait as
    /// long as full ones come.
    pub(super) fn count_record(&mut self, record: SeenRecord, now: Instant) {
        let lateness = self.estimate_lateness(&record);
        let came = now.checked_sub(lateness).unwrap_or(now);
        self.last_record = self.last_record.max(came);
        self.fill_tokens(self.last_record);
        if !record.is_full {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
        self.recent_records.push_back(RecentRecord {
            writer: record.writer.to_owned(),
            delay_us: record.delay_us,
        });
        if self.recent_records.len() > ROTATION_RECORDS {
            self.recent_records.pop_front();
        }
        self.next_is_for_new = self.leaves_room_for_new_writer(&record);
    }

    /// Returns `true` if a new writer may write first after a record. It follows from the records alone, because replicas
    /// that differed about it would write at the same time.
    fn leaves_room_for_new_writer(&mut self, record: &SeenRecord) -> bool {
        let (at_rate, if_full) = RECORDS_PER_NEW_WRITER;
        if record.is_full {
            return (record.number + 1).is_multiple_of(if_full);
        }
        let interval = record.time_us.div_euclid(NEW_WRITER_INTERVAL_US);
        let leaves_room =
            (record.number + 1).is_multiple_of(at_rate) && interval != self.last_new_writer;
        if leaves_room {
            self.last_new_writer = interval;
        }
        leaves_room
    }

    /// Returns how long a record has been there, by the delays of those before it of the same writer.
    fn estimate_lateness(&self, record: &SeenRecord) -> Duration {
        let of_writer = self.recent_records.iter();
        let of_writer = of_writer.filter(|recent| recent.writer == record.writer);
        let least = of_writer.map(|recent| recent.delay_us).min();
        let lateness_us = least.map_or(0, |least| record.delay_us.saturating_sub(least));
        Duration::from_micros(lateness_us.max(0) as u64).min(LONGEST_TURN)
    }

    /// Counts the time that the store took for a record of this replica.
    pub(super) fn observe_write(&mut self, time: Duration) {
        self.write_time = (self.write_time * 7 + time.min(LONGEST_WRITE)) / 8;
    }

    /// Computes the tokens at a time, which may be before the last one.
    fn fill_tokens(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled);
        let back = self.filled.saturating_duration_since(now);
        let seconds = passed.as_secs_f64() - back.as_secs_f64();
        self.tokens = (self.tokens + seconds * self.records_per_second).min(BURST);
        self.filled = now;
    }

    /// Returns the time from which a record may be written; a full one only waits for its turn.
    pub(super) fn next_write(&mut self, is_full: bool, now: Instant) -> Instant {
        self.fill_tokens(now);
        let is_allowed_for_long = self.tokens >= BURST;
        let begin = if is_full || is_allowed_for_long {
            self.last_record
        } else {
            self.last_record.max(self.allowed_from(now))
        };
        begin + self.turn_delay()
    }

    /// Returns the time from which the rate allows the next record. It is about the same for all replicas, in the past too.
    fn allowed_from(&self, now: Instant) -> Instant {
        let missing = (1.0 - self.tokens) / self.records_per_second;
        let time = Duration::from_secs_f64(missing.abs());
        if missing > 0.0 {
            now + time
        } else {
            now.checked_sub(time).unwrap_or(now)
        }
    }

    /// Returns `true` if another replica comes before this one in the rotation, and may be writing now.
    pub(super) fn follows_others(&self, now: Instant) -> bool {
        let interval = Duration::from_secs_f64(1.0 / self.records_per_second);
        let writes_follow = now < self.last_record + interval * 2 + LONGEST_TURN;
        writes_follow && self.count_writers_before() > 0
    }

    /// Returns how long this replica lets those write first that come before it in the rotation.
    fn turn_delay(&self) -> Duration {
        let turn = self.write_time * 2 + LARGEST_LATENESS;
        (turn * self.count_writers_before() as u32).min(LONGEST_TURN)
    }

    /// Returns the number of writers that come before this replica in the rotation.
    fn count_writers_before(&self) -> usize {
        let writers = self.recent_records.iter().map(|record| &record.writer);
        let mut writers: Vec<_> = writers.collect();
        let Some(last) = writers.last().copied() else {
            return 0;
        };
        writers.sort_unstable();
        writers.dedup();
        let place_of = |name: &String| writers.iter().position(|writer| *writer == name);
        match (place_of(&self.replica), place_of(last)) {
            (Some(own), Some(last)) => {
                let before = (own + writers.len() - last - 1) % writers.len();
                before + usize::from(self.next_is_for_new)
            }
            _ if self.next_is_for_new => 0,
            _ => writers.len(),
        }
    }
}

/// Shortest and longest wait between two looks for the next record.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Decides when to look for the next record: about when it is due. Most records cost one look that finds nothing.
#[derive(Debug)]
pub(super) struct PollPace {
    last_seen: Instant,
    /// Time between two records, a moving average.
    interval: Duration,
    /// Looks since the last record, which found nothing.
    empty_looks: u32,
}

impl PollPace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last_seen: now,
            interval: POLL_BOUNDS.1,
            empty_looks: 0,
        }
    }

    /// Notes that a record was seen, and returns when to look for the next one. `is_own` says that this replica has just
    /// written it.
    pub(super) fn note_record(&mut self, is_own: bool, now: Instant) -> Instant {
        let is_newest = is_own || self.empty_looks > 0;
        let mut since = now.saturating_duration_since(self.last_seen);
        if !is_newest {
            // The record may have been there for some time. Without this, looks would come ever later after the records.
            since = since * 7 / 8;
        }
        self.interval = (self.interval * 3 + since.min(POLL_BOUNDS.1 * 4)) / 4;
        self.last_seen = now;
        self.empty_looks = 0;
        // Another record may be there already, unless this one was not there at the look before.
        if is_newest { self.next_due(now) } else { now }
    }

    /// Returns when to look again, after a look that found nothing.
    pub(super) fn next_look(&mut self, now: Instant) -> Instant {
        let due = self.next_due(now);
        if self.empty_looks == 0 && due > now + POLL_BOUNDS.0 {
            self.empty_looks = 1;
            return due;
        }
        self.empty_looks = self.empty_looks.saturating_add(1);
        // Ever more rarely once the record is overdue.
        let step = (self.interval / 8).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1);
        let step = step * (1 << (self.empty_looks / 8).min(6));
        now + step.min(POLL_BOUNDS.1)
    }

    fn next_due(&self, now: Instant) -> Instant {
        let due = self.last_seen + self.interval;
        due.clamp(now + POLL_BOUNDS.0, now + POLL_BOUNDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, writer: &str, is_full: bool) -> SeenRecord<'_> {
        SeenRecord {
            number,
            writer,
            is_full,
            time_us: number as i64 * 250_000,
            delay_us: 0,
        }
    }

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
            pace.count_record(record(written, "a", false), now);
            written += 1;
        }
        assert!((400..=410).contains(&written), "{written}");
        assert!(pace.next_write(false, now) > now);
        // A full one waits for the turn of a new writer at most.
        assert!(pace.next_write(true, now) <= now + Duration::from_millis(25));
        // After many full records, a lone change waits for one interval at most.
        (0..1000).for_each(|number| pace.count_record(record(number, "a", true), now));
        assert!(pace.next_write(false, now) <= now + seconds(0.26));
        // Full records of another replica do not keep it waiting either.
        let mut other = WritePace::new("b", 4, begin);
        (0..1000).for_each(|number| other.count_record(record(number, "a", true), now));
        assert!(other.next_write(false, now) <= now + Duration::from_millis(25));
    }

    /// Of replicas that write by turns, each waits for those before it in the rotation; one alone waits for nobody.
    #[test]
    fn writers_take_turns() {
        let now = Instant::now();
        let delays = |last: &str| {
            ["a", "b", "c", "new"].map(|replica| {
                let mut pace = WritePace::new(replica, 1000, now);
                for (number, writer) in ["a", "b", "c", last].into_iter().enumerate() {
                    pace.count_record(record(number as u64 + 1, writer, false), now);
                }
                pace.turn_delay()
            })
        };
        let turns = |counts: [u32; 4]| counts.map(|count| Duration::from_millis(25) * count);
        assert_eq!(delays("a"), turns([2, 0, 1, 3]));
        assert_eq!(delays("c"), turns([0, 1, 2, 3]));
        let mut alone = WritePace::new("a", 1000, now);
        alone.count_record(record(0, "a", false), now);
        assert_eq!(alone.turn_delay(), Duration::ZERO);
        assert!(!alone.follows_others(now));
        alone.count_record(record(0, "b", false), now);
        assert_eq!(alone.turn_delay(), Duration::ZERO);
        alone.count_record(record(0, "a", false), now);
        assert!(alone.turn_delay() > Duration::ZERO);
        // Nobody is waited for on a log that rests.
        assert!(alone.follows_others(now));
        assert!(!alone.follows_others(now + seconds(1.0)));
        // A writer that has been silent for long drops out.
        (0..ROTATION_RECORDS).for_each(|_| alone.count_record(record(0, "a", false), now));
        assert_eq!(alone.turn_delay(), Duration::ZERO);
    }

    /// A replica that is new in the rotation waits for all others, and goes first at every few records.
    #[test]
    fn new_writers_go_first_at_times() {
        let now = Instant::now();
        let delays = |number: u64, is_full: bool| {
            ["a", "new"].map(|replica| {
                let mut pace = WritePace::new(replica, 1000, now);
                pace.count_record(record(number, "a", is_full), now);
                pace.turn_delay() / 25
            })
        };
        let turn = Duration::from_millis(1);
        assert_eq!(delays(2, false), [Duration::ZERO, turn]);
        assert_eq!(delays(3, false), [turn, Duration::ZERO]);
        assert_eq!(delays(3, true), [Duration::ZERO, turn]);
        assert_eq!(delays(63, true), [turn, Duration::ZERO]);
    }

    /// A replica that writes many records a second, alone, waits for a new writer at few of them.
    #[test]
    fn new_writers_hold_up_few_records_of_a_high_rate() {
        let begin = Instant::now();
        let mut pace = WritePace::new("a", 1000, begin);
        let mut now = begin;
        let mut waits = 0;
        for number in 0..1000 {
            let write = pace.next_write(false, now).max(now);
            waits += usize::from(write > now + Duration::from_millis(5));
            now = write + Duration::from_millis(2);
            let time_us = (now - begin).as_micros() as i64;
            pace.count_record(
                SeenRecord {
                    time_us,
                    ..record(number, "a", false)
                },
                now,
            );
        }
        let seconds = (now - begin).as_secs_f64();
        assert!(waits >= 1, "{waits}");
        assert!(
            waits as f64 <= seconds * 4.0 + 1.0,
            "{waits} in {seconds} s"
        );
    }

    /// Replicas that are held up by the rate alone still write one after another, and all of them do.
    #[test]
    fn turns_begin_when_the_rate_allows_a_record() {
        let names = ["a", "b", "c"];
        let begin = Instant::now();
        let mut paces = names.map(|replica| WritePace::new(replica, 4, begin));
        let (mut now, mut written) = (begin, [0; 3]);
        for number in 1..=100 {
            let times = paces.each_mut().map(|pace| pace.next_write(false, now));
            // Of replicas that may write at the same time, the first one wins, as it may always be the fastest.
            let writer = (0..3).min_by_key(|replica| times[*replica].max(now));
            let writer = writer.unwrap();
            let write = times[writer].max(now);
            written[writer] += 1;
            if number > 40 {
                let others = (0..3).filter(|replica| *replica != writer);
                for other in others {
                    assert!(
                        times[other] >= write + Duration::from_millis(10),
                        "{number}: {times:?}"
                    );
                }
                assert!(write - now <= seconds(0.28), "{number}");
            }
            // The others see the record later, some of them much later, with clocks that differ.
            for (place, pace) in paces.iter_mut().enumerate() {
                let delay = 5 + (number * 7 + place as u64 * 11) % 13 * 9;
                let clock_us = 1_000_000 * (place as i64 - writer as i64);
                let seen = SeenRecord {
                    delay_us: clock_us + 1_000 * delay as i64,
                    ..record(number, names[writer], false)
                };
                pace.count_record(seen, write + Duration::from_millis(delay));
            }
            now = write + Duration::from_millis(130);
        }
        assert!(written.iter().all(|count| *count >= 25), "{written:?}");
        let rate = 100.0 / (now - begin).as_secs_f64();
        assert!((3.9..4.5).contains(&rate), "{rate}");
    }

    /// An outage of the store does not slow down those that come after it.
    #[test]
    fn outage_is_forgotten() {
        let now = Instant::now();
        let mut pace = WritePace::new("a", 4, now);
        pace.observe_write(seconds(600.0));
        pace.count_record(record(1, "b", true), now);
        pace.count_record(record(2, "a", true), now);
        assert!(pace.next_write(true, now) <= now + LONGEST_TURN);
    }

    /// Records at a steady rate cost few looks each, and are seen soon; without records a look comes every second.
    #[test]
    fn looks_follow_the_records() {
        let begin = Instant::now();
        let mut pace = PollPace::new(begin);
        let interval = Duration::from_millis(250);
        let (mut now, mut looks, mut seen, mut longest) = (begin, 0, 0, Duration::ZERO);
        while seen < 1000 {
            looks += 1;
            let due = begin + interval * (seen + 1);
            if now < due {
                now = pace.next_look(now);
                continue;
            }
            if seen > 20 {
                longest = longest.max(now - due);
            }
            seen += 1;
            now = pace.note_record(false, now);
        }
        assert!(looks <= 2300, "{looks}");
        assert!(longest <= interval / 4, "{longest:?}");
        let begin = now;
        (0..200).for_each(|_| now = pace.next_look(now));
        let before = now;
        now = pace.next_look(now);
        assert_eq!(now - before, POLL_BOUNDS.1);
        assert!(now - begin > Duration::from_secs(60));
    }

    /// A replica that is behind reads on at once, and one that has just written does not look at once.
    #[test]
    fn records_that_wait_are_read_at_once() {
        let begin = Instant::now();
        let mut pace = PollPace::new(begin);
        let now = begin + seconds(5.0);
        assert_eq!(pace.note_record(false, now), now);
        assert_eq!(pace.note_record(false, now), now);
        assert!(pace.note_record(true, now) > now);
        pace.next_look(now);
        assert!(pace.note_record(false, now) > now);
        assert_eq!(pace.note_record(false, now), now);
    }
}
