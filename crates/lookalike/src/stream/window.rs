//! The time window: which times are within reach of each other, and the clock that lets documents
//! expire.

use std::time::Duration;

use crate::error::{Error, Result};

/// A time in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// A time before every other.
    pub const BEGINNING: Self = Self(i64::MIN);

    fn saturating_add(self, microseconds: i64) -> Self {
        Self(self.0.saturating_add(microseconds))
    }

    fn saturating_sub(self, microseconds: i64) -> Self {
        Self(self.0.saturating_sub(microseconds))
    }
}

/// The time window: how far apart in time two documents may be, and how the clock follows their times.
///
/// The clock is the newest time of a stored document, but never later than the wall clock plus the
/// skew. The time of an arriving document is limited in the same way. So a document with a time in the
/// future neither expires all others nor stays for ever.
///
/// With [`with_wall_clock`](Self::with_wall_clock), the clock is never behind the wall clock either, so
/// time passes while no document arrives.
///
/// ```
/// use std::time::Duration;
///
/// use lookalike::stream::{Timestamp, StreamWindow};
///
/// let window = StreamWindow::new(Duration::from_secs(3600), Duration::ZERO, false)?;
/// // A document can match for exactly one hour, and not a microsecond longer.
/// assert!(!window.has_passed(Timestamp(0), Timestamp(3_600_000_000)));
/// assert!(window.has_passed(Timestamp(0), Timestamp(3_600_000_001)));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    width: i64,
    skew: i64,
    refresh: bool,
    wall: bool,
}

/// The time of an arriving document, as the window interprets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalTime {
    /// Time of the document.
    pub time: Timestamp,
    /// Clock, which takes this document into account.
    pub clock: Timestamp,
    /// `true` if the document is older than the window. It can be checked but must not be stored.
    pub late: bool,
}

/// Number of partitions in a window.
const PARTITIONS_PER_WINDOW: i64 = 24;

impl StreamWindow {
    /// Returns a window in which documents can match if their times differ by at most `width` (≤).
    /// `skew` is the time by which documents may be ahead of the wall clock. With `refresh`, the window
    /// of a kept document runs from its last duplicate instead of its own time.
    ///
    /// # Errors
    /// Fails if the width is below a microsecond, or if width or skew exceed some 290,000 years.
    pub fn new(width: Duration, skew: Duration, refresh: bool) -> Result<Self> {
        let microseconds = |name: &str, duration: Duration| {
            i64::try_from(duration.as_micros()).map_err(|_| {
                Error::setting_error(format!(
                    "the {name} of {} s is above the limit of {} s",
                    duration.as_secs(),
                    i64::MAX / 1_000_000
                ))
            })
        };
        let (width, skew) = (microseconds("window", width)?, microseconds("skew", skew)?);
        if width == 0 {
            return Err(Error::setting_error(
                "the window is below a microsecond: leave it out to keep all documents",
            ));
        }
        Ok(Self {
            width,
            skew,
            refresh,
            wall: false,
        })
    }

    /// Returns the window with a clock that also follows the wall clock, or with one that does not.
    #[must_use]
    pub fn with_wall_clock(self, follows: bool) -> Self {
        Self {
            wall: follows,
            ..self
        }
    }

    /// Returns `true` if the clock also follows the wall clock.
    pub fn follows_wall_clock(&self) -> bool {
        self.wall
    }

    /// Returns the largest difference of times at which documents can match.
    pub fn width(&self) -> Duration {
        Duration::from_micros(self.width.unsigned_abs())
    }

    /// Returns the time by which documents may be ahead of the wall clock.
    pub fn skew(&self) -> Duration {
        Duration::from_micros(self.skew.unsigned_abs())
    }

    /// Returns `true` if the window of a kept document runs from its last duplicate.
    pub fn is_refreshing(&self) -> bool {
        self.refresh
    }

    pub(super) fn resolve_arrival(
        &self,
        stated: Timestamp,
        now: Timestamp,
        newest: Timestamp,
    ) -> ArrivalTime {
        let latest = now.saturating_add(self.skew);
        let time = stated.min(latest);
        let least = if self.wall { now } else { Timestamp::BEGINNING };
        let clock = newest.max(time).max(least).min(latest);
        ArrivalTime {
            time,
            clock,
            late: self.has_passed(time, clock),
        }
    }

    /// Returns `true` if a time is past the window.
    pub fn has_passed(&self, time: Timestamp, clock: Timestamp) -> bool {
        time < clock.saturating_sub(self.width)
    }

    /// Returns the latest time that is still within the window's width of this clock.
    pub(super) fn latest_reached(&self, clock: Timestamp) -> Timestamp {
        clock.saturating_add(self.width)
    }

    /// Returns `true` if a kept document of this time can match one that arrives.
    pub(super) fn reaches_time(&self, time: Timestamp, arrival: &ArrivalTime) -> bool {
        let apart = time.0.abs_diff(arrival.time.0);
        apart <= self.width.unsigned_abs() && !self.has_passed(time, arrival.clock)
    }

    /// Returns `true` if a partition that began at `began` has lasted long enough. Uses the absolute
    /// difference, because the clock may have been set back.
    pub(super) fn is_partition_over(&self, began: Timestamp, clock: Timestamp) -> bool {
        clock.0.abs_diff(began.0) >= (self.width / PARTITIONS_PER_WINDOW).max(1).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(width: u64, skew: u64) -> StreamWindow {
        let seconds = Duration::from_secs;
        StreamWindow::new(seconds(width), seconds(skew), false).unwrap()
    }

    const S: i64 = 1_000_000;

    #[test]
    fn window_border_is_inclusive_to_the_microsecond() {
        let window = window(10, 0);
        let arrival =
            window.resolve_arrival(Timestamp(100 * S), Timestamp(100 * S), Timestamp::BEGINNING);
        assert!(!arrival.late);
        for (time, reached) in [
            (90 * S - 1, false),
            (90 * S, true),
            (90 * S + 1, true),
            (110 * S, true),
            (110 * S + 1, false),
        ] {
            assert_eq!(
                window.reaches_time(Timestamp(time), &arrival),
                reached,
                "{time}"
            );
        }
        let late = |time| {
            window
                .resolve_arrival(Timestamp(time), Timestamp(100 * S), Timestamp(100 * S))
                .late
        };
        assert!(late(90 * S - 1) && !late(90 * S) && !late(90 * S + 1));
    }

    #[test]
    fn future_times_are_capped_at_clock_plus_skew() {
        let window = window(10, 3);
        let arrival = |stated, now, newest| {
            window.resolve_arrival(Timestamp(stated), Timestamp(now), Timestamp(newest))
        };
        for (stated, time) in [
            (103 * S, 103 * S),
            (103 * S + 1, 103 * S),
            (i64::MAX, 103 * S),
        ] {
            let arrival = arrival(stated, 100 * S, 0);
            assert_eq!((arrival.time.0, arrival.clock.0), (time, time));
        }
        // The clock follows a wall clock that was set back.
        let back = arrival(50 * S, 50 * S, 100 * S);
        assert_eq!(
            (back.time.0, back.clock.0, back.late),
            (50 * S, 53 * S, false)
        );
    }

    /// Time passes while no document arrives, and a document that states an old time is late.
    #[test]
    fn clock_follows_the_wall_clock_on_request() {
        let by_documents = window(10, 3);
        let by_wall = by_documents.with_wall_clock(true);
        let clock = |window: StreamWindow| {
            let arrival =
                window.resolve_arrival(Timestamp(95 * S), Timestamp(110 * S), Timestamp(100 * S));
            (arrival.clock.0, arrival.late)
        };
        assert_eq!(clock(by_documents), (100 * S, false));
        assert_eq!(clock(by_wall), (110 * S, true));
        // Documents may still be ahead of the wall clock by the skew.
        let precheck =
            by_wall.resolve_arrival(Timestamp(112 * S), Timestamp(110 * S), Timestamp(100 * S));
        assert_eq!(precheck.clock, Timestamp(112 * S));
        assert!(by_wall.follows_wall_clock() && !by_documents.follows_wall_clock());
    }

    #[test]
    fn invalid_windows_are_refused() {
        let new = |width| StreamWindow::new(width, Duration::ZERO, false);
        assert!(new(Duration::ZERO).is_err() && new(Duration::from_nanos(999)).is_err());
        assert!(new(Duration::from_micros(1)).is_ok());
        assert!(new(Duration::MAX).is_err());
        assert!(StreamWindow::new(Duration::from_secs(1), Duration::MAX, false).is_err());
    }
}
