//! Log of conditions that last, such as a full disk that a thread meets every second.
//!
//! A condition is logged when it begins, then rarely while it lasts, and when it ends. Errors that differ in their
//! numbers only are the same condition, because many name the bytes that are free at the moment.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time after which a condition that lasts is logged again.
const REMINDER_INTERVAL: Duration = Duration::from_secs(3600);

/// Time after which another error of the same subject is logged.
const CHANGE_INTERVAL: Duration = Duration::from_secs(60);

/// The conditions that last, by their subjects, for example collections.
#[derive(Debug, Default)]
pub(crate) struct ConditionLog(BTreeMap<String, LastingCondition>);

#[derive(Debug)]
struct LastingCondition {
    /// The error without its digits.
    error: String,
    logged: Instant,
    failures: u64,
}

impl ConditionLog {
    /// Counts a failure. Returns the failures since the condition began if this one is to be logged.
    pub(crate) fn count_failure(
        &mut self,
        subject: &str,
        error: &str,
        now: Instant,
    ) -> Option<u64> {
        let error = error.replace(|sign: char| sign.is_ascii_digit(), "");
        let Some(known) = self.0.get_mut(subject) else {
            let condition = LastingCondition {
                error,
                logged: now,
                failures: 1,
            };
            self.0.insert(subject.to_owned(), condition);
            return Some(1);
        };
        known.failures += 1;
        let interval = if known.error == error {
            REMINDER_INTERVAL
        } else {
            CHANGE_INTERVAL
        };
        if now.duration_since(known.logged) < interval {
            return None;
        }
        known.error = error;
        known.logged = now;
        Some(known.failures)
    }

    /// Ends the condition of a subject. Returns the failures since it began, if there was one.
    pub(crate) fn end_condition(&mut self, subject: &str) -> Option<u64> {
        self.0.remove(subject).map(|condition| condition.failures)
    }

    /// Forgets the subjects that exist no more.
    pub(crate) fn retain_subjects(&mut self, subjects: &[String]) {
        self.0.retain(|subject, _| subjects.contains(subject));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_condition_is_logged_at_its_ends_and_rarely() {
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        let full = |free: u64| format!("the disk has {free} bytes left");
        let mut log = ConditionLog::default();
        let mut logged = Vec::new();
        for at in 0..=7200 {
            let now = begin + second * at;
            logged.extend(log.count_failure("a", &full(1000 + u64::from(at)), now));
        }
        assert_eq!(logged, [1, 3601, 7201]);
        assert_eq!(log.end_condition("a"), Some(7201));
        assert_eq!(log.end_condition("a"), None);
        assert_eq!(log.count_failure("a", &full(1), begin), Some(1));
        assert_eq!(log.count_failure("b", &full(1), begin), Some(1));
    }

    /// Errors that alternate are logged once a minute and not every time.
    #[test]
    fn another_error_is_logged_after_a_minute() {
        let begin = Instant::now();
        let mut log = ConditionLog::default();
        let errors = ["the disk is full", "a file is damaged"];
        let logged = (0..=120).filter_map(|at| {
            let now = begin + Duration::from_secs(at);
            log.count_failure("a", errors[at as usize % 2], now)
        });
        // The error after 60 and 120 s is that which was logged before, and the next one is the other.
        assert_eq!(logged.collect::<Vec<_>>(), [1, 62]);
        log.retain_subjects(&["b".to_owned()]);
        assert_eq!(log.end_condition("a"), None);
    }
}
