//! The times of records, which are the clock of all replicas.
//!
//! A record is never earlier than the one before, so a machine with a clock that is ahead would move the clock of the log
//! for good, and documents would expire too early. A replica therefore does not start with such a clock
//! ([`check_machine_clock`](lookalike_log::check_machine_clock)), and one whose clock jumps later moves that of the log at
//! twice the speed of time at most, and says so in its log: an hour for an hour. Nothing bounds a replica that writes the
//! first record after all have been away, because the time that has passed is unknown then.

use std::time::{Duration, Instant};

/// Difference between the clocks of two machines that is not worth a word.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Difference from which the log of the service warns.
const WARNED_LEAD: Duration = Duration::from_secs(60);

/// Interval between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Longest time that can be made up for at once.
const MAX_STEP: Duration = Duration::from_secs(60);

/// Decides the times of the records of this replica.
#[derive(Debug, Default)]
pub(super) struct RecordTime {
    /// Time of the log at a moment, since when it goes on at the speed of time. `None` before the first record that was seen
    /// as it came.
    reference: Option<(i64, Instant)>,
    /// Time by which the log may go faster now, and when that was known.
    allowance: Duration,
    allowed_at: Option<Instant>,
    warned_at: Option<Instant>,
}

impl RecordTime {
    /// Notes the time of a record that came just now, in microseconds since 1970.
    pub(super) fn note_record(&mut self, time_us: i64, now: Instant) {
        let is_later = self.time_at(now).is_none_or(|known_us| time_us > known_us);
        if is_later {
            self.reference = Some((time_us, now));
        }
    }

    /// Returns the time of the log now.
    fn time_at(&self, now: Instant) -> Option<i64> {
        let (time_us, since) = self.reference?;
        let passed = now.saturating_duration_since(since);
        Some(time_us.saturating_add(passed.as_micros() as i64))
    }

    /// Returns the time for a record that is written now, by the time of this machine.
    pub(super) fn next_time(&mut self, machine_us: i64, now: Instant) -> i64 {
        let passed = self
            .allowed_at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.allowance = (self.allowance + passed).min(MAX_STEP);
        self.allowed_at = Some(now);
        let Some(log_us) = self.time_at(now) else {
            return machine_us;
        };
        let lead = Duration::from_micros(machine_us.saturating_sub(log_us).max(0) as u64);
        if lead <= TOLERANCE {
            return machine_us;
        }
        let step = lead.min(self.allowance);
        self.allowance -= step;
        let time_us = log_us.saturating_add(step.as_micros() as i64);
        self.reference = Some((time_us, now));
        self.warn_of_lead(lead - step, now);
        time_us
    }

    fn warn_of_lead(&mut self, lead: Duration, now: Instant) {
        let is_told = self
            .warned_at
            .is_some_and(|at| now.saturating_duration_since(at) < WARNING_INTERVAL);
        if lead >= WARNED_LEAD && !is_told {
            self.warned_at = Some(now);
            let seconds = lead.as_secs();
            tracing::warn!(
                seconds,
                "the clock of this machine is ahead of that of the log, which follows it slowly: set the clocks of all \
                 machines by a time server (NTP)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A clock that is ahead moves the log at twice the speed of time, however many records it writes.
    #[test]
    fn wrong_clock_moves_the_log_slowly() {
        let begin = Instant::now();
        let mut time = RecordTime::default();
        time.note_record(1000 * SECOND, begin);
        let lead = 3600 * SECOND;
        let mut last = 0;
        for millisecond in 0..=600_000u64 {
            let now = begin + Duration::from_millis(millisecond);
            let machine_us = 1000 * SECOND + millisecond as i64 * 1000 + lead;
            last = time.next_time(machine_us, now);
            time.note_record(last, now);
        }
        assert_eq!(last, (1000 + 1200) * SECOND);
    }

    /// A right clock decides alone: at the first record, beside slow ones, and after a pause of all.
    #[test]
    fn right_clock_is_that_of_the_log() {
        let begin = Instant::now();
        let mut time = RecordTime::default();
        assert_eq!(time.next_time(5 * SECOND, begin), 5 * SECOND);
        time.note_record(5 * SECOND, begin);
        let later = begin + seconds(100);
        assert_eq!(time.next_time(106 * SECOND, later), 106 * SECOND);
        // Another one is slow: the log keeps its own time by itself.
        assert_eq!(time.next_time(90 * SECOND, later), 90 * SECOND);
        // An hour of difference is made up for in an hour, in steps of a minute at most.
        time.note_record(106 * SECOND, later);
        let much_later = later + seconds(3600);
        let machine_us = (106 + 3600 + 3600) * SECOND;
        assert_eq!(
            time.next_time(machine_us, much_later),
            (106 + 3660) * SECOND
        );
    }
}
