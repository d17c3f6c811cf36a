//! The activity of the last ten minutes, so that a page about the service begins with its past.
//!
//! A thread reads the counters every five seconds and keeps the differences. Cost: 120 samples of about 160 bytes, and a
//! few microseconds for each.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::metrics::INSERT_TIME_CLASSES;
use crate::service::ServiceState;

/// Time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Samples that are kept: those of ten minutes.
pub(crate) const MAX_SAMPLES: usize = 120;

/// Counts since the start of the service, or of one sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ActivityCounts {
    /// Documents that were inserted and kept.
    pub(crate) kept: u64,
    /// Documents that were inserted as duplicates.
    pub(crate) duplicates: u64,
    /// Requests to insert by the class of their time.
    pub(crate) insert_times: [u64; INSERT_TIME_CLASSES],
}

impl ActivityCounts {
    /// Returns what was counted since `earlier`. The counts of a collection go with it, so a difference can be below 0; it
    /// is 0 then.
    fn since(&self, earlier: &Self) -> Self {
        let mut insert_times = self.insert_times;
        for (count, before) in insert_times.iter_mut().zip(&earlier.insert_times) {
            *count = count.saturating_sub(*before);
        }
        Self {
            kept: self.kept.saturating_sub(earlier.kept),
            duplicates: self.duplicates.saturating_sub(earlier.duplicates),
            insert_times,
        }
    }
}

/// Activity of the service in an interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActivitySample {
    /// End of the interval.
    pub(crate) time: SystemTime,
    /// Its length.
    pub(crate) length: Duration,
    /// Counts of the interval.
    pub(crate) counts: ActivityCounts,
}

/// The samples of the last ten minutes.
#[derive(Debug)]
pub(crate) struct ActivityHistory(Mutex<RecordedActivity>);

#[derive(Debug)]
struct RecordedActivity {
    /// Time and counts of the last reading; at first those of the start.
    last: (Instant, ActivityCounts),
    samples: VecDeque<ActivitySample>,
}

impl ActivityHistory {
    /// Creates the history of a service that starts at `now`, when all its counts are 0.
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new(RecordedActivity {
            last: (now, ActivityCounts::default()),
            samples: VecDeque::new(),
        }))
    }

    /// Returns the samples, the oldest first.
    pub(crate) fn list_samples(&self) -> Vec<ActivitySample> {
        self.lock().samples.iter().cloned().collect()
    }

    fn record_counts(&self, now: Instant, time: SystemTime, counts: ActivityCounts) {
        let mut recorded = self.lock();
        let (before, earlier) = &recorded.last;
        let sample = ActivitySample {
            time,
            length: now.duration_since(*before),
            counts: counts.since(earlier),
        };
        if recorded.samples.len() == MAX_SAMPLES {
            recorded.samples.pop_front();
        }
        recorded.samples.push_back(sample);
        recorded.last = (now, counts);
    }

    fn lock(&self) -> MutexGuard<'_, RecordedActivity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that records the activity until the service is dropped.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn start_thread(service: &Arc<ServiceState>) -> std::io::Result<()> {
    let service = Arc::downgrade(service);
    let thread = std::thread::Builder::new().name("lookalike-activity".to_owned());
    thread.spawn(move || record_activity(&service)).map(drop)
}

fn record_activity(service: &Weak<ServiceState>) {
    loop {
        std::thread::sleep(SAMPLE_INTERVAL);
        let Some(service) = service.upgrade() else {
            return;
        };
        let counts = count_activity(&service);
        let (now, time) = (Instant::now(), SystemTime::now());
        service.activity.record_counts(now, time, counts);
    }
}

fn count_activity(service: &ServiceState) -> ActivityCounts {
    let mut counts = ActivityCounts {
        insert_times: service.metrics.count_insert_times(),
        ..ActivityCounts::default()
    };
    for name in service.collections.open_names() {
        if let Ok(open) = service.collections.look_up_collection(&name) {
            counts.kept += open.counts.kept.load(Relaxed);
            counts.duplicates += open.counts.duplicate.load(Relaxed);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_the_differences_of_the_last_ten_minutes() {
        let begin = Instant::now();
        let history = ActivityHistory::new(begin);
        let record = |at: u32, kept: u64| {
            let mut insert_times = [0; INSERT_TIME_CLASSES];
            insert_times[2] = kept;
            let counts = ActivityCounts {
                kept,
                duplicates: 0,
                insert_times,
            };
            history.record_counts(begin + SAMPLE_INTERVAL * at, SystemTime::UNIX_EPOCH, counts);
        };
        assert!(history.list_samples().is_empty());
        record(1, 3);
        // The counts of a deleted collection are gone.
        record(3, 2);
        let samples = history.list_samples();
        let shown = samples.iter().map(|sample| {
            let counts = &sample.counts;
            (sample.length.as_secs(), counts.kept, counts.insert_times[2])
        });
        assert_eq!(shown.collect::<Vec<_>>(), [(5, 3, 3), (10, 0, 0)]);
        for at in 4..4 + MAX_SAMPLES as u32 {
            record(at, 4);
        }
        let samples = history.list_samples();
        assert_eq!(samples.len(), MAX_SAMPLES);
        assert!(
            samples
                .iter()
                .all(|sample| sample.length == SAMPLE_INTERVAL)
        );
    }
}
