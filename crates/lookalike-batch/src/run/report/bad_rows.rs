//! Counts of bad rows by reason.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lookalike_io::source::{BadRow, reason_pattern};
use serde::Serialize;

use crate::run::report::budgets::shorten_name;

/// Largest number of reasons counted separately. All further ones share one entry, which comes in addition.
const MAX_REASONS: usize = 100;

/// Places that are named for each reason.
const PLACES_PER_REASON: usize = 3;

/// Counts bad rows by reason. Reasons that differ only in values are one; see [`reason_pattern`].
#[derive(Default)]
pub(in crate::run) struct BadRowTally {
    reasons: Mutex<HashMap<String, BadRowReason>>,
}

/// A reason for which rows are bad.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct BadRowReason {
    /// Reason of the first such row; empty for the shared entry of further reasons.
    reason: String,
    rows: u64,
    /// The first of the rows, as `FILE:LINE`.
    places: Vec<String>,
}

impl BadRowTally {
    pub(in crate::run) fn add_rows(&self, rows: &[BadRow]) {
        if rows.is_empty() {
            return;
        }
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let mut pattern = reason_pattern(&row.reason).into_owned();
            if reasons.len() >= MAX_REASONS && !reasons.contains_key(&pattern) {
                pattern = String::new();
            }
            let is_other = pattern.is_empty();
            let counted = reasons.entry(pattern).or_insert_with(|| BadRowReason {
                reason: if is_other {
                    String::new()
                } else {
                    shorten_name(&row.reason)
                },
                ..BadRowReason::default()
            });
            counted.rows += 1;
            if counted.places.len() < PLACES_PER_REASON {
                let place = format!("{}:{}", row.file, row.line);
                counted.places.push(shorten_name(&place));
            }
        }
    }

    /// Returns the reasons, the most frequent first.
    pub(super) fn list_reasons(&self) -> Vec<BadRowReason> {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons: Vec<_> = reasons.values().cloned().collect();
        reasons.sort_by(|a, b| (b.rows, &a.reason).cmp(&(a.rows, &b.reason)));
        reasons
    }
}
