//! The windows that a collection has had. Opening a collection repeats what its rows did under the window that
//! was in force when they were written, so that the result is the same as before.

use std::time::Duration;

use lookalike::stream::StreamWindow;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::settings::ExpiryClock;

/// Largest number of changes of the window in a manifest.
pub(crate) const MAX_WINDOW_CHANGES: usize = 256;

/// A window as it is written in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenWindow {
    width_us: u64,
    skew_us: u64,
    refresh: bool,
    /// Omitted if it is the default, so that manifests of earlier versions stay the same.
    #[serde(default, skip_serializing_if = "ExpiryClock::is_documents")]
    expire: ExpiryClock,
}

impl From<&StreamWindow> for WrittenWindow {
    fn from(window: &StreamWindow) -> Self {
        let microseconds = |duration: Duration| duration.as_micros() as u64;
        Self {
            width_us: microseconds(window.width()),
            skew_us: microseconds(window.skew()),
            refresh: window.is_refreshing(),
            expire: ExpiryClock::from_window(window),
        }
    }
}

impl WrittenWindow {
    pub(super) fn to_window(&self) -> Result<StreamWindow> {
        let (width, skew) = (self.width_us, self.skew_us);
        let duration = Duration::from_micros;
        let window = StreamWindow::new(duration(width), duration(skew), self.refresh)?;
        Ok(window.with_wall_clock(self.expire == ExpiryClock::Wall))
    }
}

/// A window, and the number of the first row under it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowChange {
    pub(crate) from_row: u64,
    pub(crate) window: StreamWindow,
    /// Number of the newest partition at the change, 0 if there was none; only if the collection follows a shared log.
    /// There a partition can begin between two rows, before or after the change.
    pub(crate) partition: Option<u64>,
}

impl WindowChange {
    /// Returns `true` if a row and a partition that begins with it come after the change.
    pub(crate) fn is_before(&self, row: u64, partition: u64) -> bool {
        self.from_row <= row && self.partition.is_none_or(|newest| newest < partition)
    }

    fn place(&self) -> (u64, Option<u64>) {
        (self.from_row, self.partition)
    }
}

/// A change of the window as it is written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenChange {
    from_row: u64,
    window: WrittenWindow,
    /// Omitted if the collection follows no shared log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<u64>,
}

/// The window with which a collection was created, and its changes in the order of their rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowHistory {
    created: Option<StreamWindow>,
    changes: Vec<WindowChange>,
}

impl WindowHistory {
    /// Returns the history of a window that was never changed.
    pub(crate) fn new(created: Option<StreamWindow>) -> Self {
        let changes = Vec::new();
        Self { created, changes }
    }

    /// Returns the window with which the collection was created.
    pub(crate) fn created_window(&self) -> Option<StreamWindow> {
        self.created
    }

    /// Returns the window that is in force.
    pub(crate) fn current_window(&self) -> Option<StreamWindow> {
        let last = self.changes.last().map(|change| change.window);
        last.or(self.created)
    }

    /// Returns the changes in the order of their rows.
    pub(crate) fn changes(&self) -> &[WindowChange] {
        &self.changes
    }

    /// Returns `true` if a duplicate in this row refreshed its kept document.
    pub(crate) fn is_refreshing_at(&self, row: u64) -> bool {
        let begun = self
            .changes
            .partition_point(|change| change.from_row <= row);
        let changed = begun.checked_sub(1).map(|at| self.changes[at].window);
        let window = changed.or(self.created);
        window.is_some_and(|window| window.is_refreshing())
    }

    /// Returns `true` if any window in force from this row on, the current one included, refreshes.
    pub(crate) fn is_refreshing_since(&self, row: u64) -> bool {
        let later = self.changes.iter().filter(|change| change.from_row > row);
        self.is_refreshing_at(row)
            || later
                .into_iter()
                .any(|change| change.window.is_refreshing())
    }

    /// Returns the history with another window from row `change.from_row` on. Windows under which no row from
    /// `first_live_row` on was written are left out.
    ///
    /// # Errors
    /// If there are too many changes.
    pub(crate) fn with_change(&self, change: WindowChange, first_live_row: u64) -> Result<Self> {
        let mut changes = self.changes.clone();
        changes.retain(|earlier| earlier.place() < change.place());
        changes.push(change);
        let passed = changes.partition_point(|change| change.from_row <= first_live_row);
        changes.drain(..passed.saturating_sub(1));
        if changes.len() > MAX_WINDOW_CHANGES {
            return Err(Error::setting_error(format!(
                "the window has been changed {MAX_WINDOW_CHANGES} times while the oldest documents of the \
                 collection were there, which is the limit: change it again when they have expired"
            )));
        }
        let created = self.created;
        Ok(Self { created, changes })
    }

    pub(super) fn to_written(&self) -> Vec<WrittenChange> {
        let written = |change: &WindowChange| WrittenChange {
            from_row: change.from_row,
            window: WrittenWindow::from(&change.window),
            partition: change.partition,
        };
        self.changes.iter().map(written).collect()
    }

    /// Reads the changes of a window.
    ///
    /// # Errors
    /// If a window is invalid, there was none at first, or the rows do not ascend.
    pub(super) fn from_written(
        created: Option<StreamWindow>,
        written: &[WrittenChange],
    ) -> Result<Self> {
        let place = |change: &WrittenChange| (change.from_row, change.partition);
        let is_ascending = written.is_sorted_by(|one, other| place(one) < place(other));
        if !is_ascending || (created.is_none() && !written.is_empty()) {
            let what = "the changes of its window are not in order, or it was created without one";
            return Err(Error::setting_error(what));
        }
        let read = |change: &WrittenChange| {
            Ok(WindowChange {
                from_row: change.from_row,
                window: change.window.to_window()?,
                partition: change.partition,
            })
        };
        let changes = written.iter().map(read).collect::<Result<_>>()?;
        Ok(Self { created, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from_row: u64, seconds: u64, refresh: bool) -> WindowChange {
        let width = Duration::from_secs(seconds);
        let window = StreamWindow::new(width, Duration::ZERO, refresh).unwrap();
        WindowChange {
            from_row,
            window,
            partition: None,
        }
    }

    fn rows(history: &WindowHistory) -> Vec<u64> {
        history
            .changes()
            .iter()
            .map(|change| change.from_row)
            .collect()
    }

    #[test]
    fn windows_hold_from_their_row_on() {
        let history = WindowHistory::new(Some(change(0, 10, false).window));
        let history = history.with_change(change(5, 10, true), 1).unwrap();
        let history = history.with_change(change(9, 20, false), 1).unwrap();
        let refreshing = [1, 4, 5, 8, 9, 10].map(|row| history.is_refreshing_at(row));
        assert_eq!(refreshing, [false, false, true, true, false, false]);
        let since = [1, 8, 9].map(|row| history.is_refreshing_since(row));
        assert_eq!(since, [true, true, false]);
        assert_eq!(history.current_window(), Some(change(0, 20, false).window));
    }

    /// A window of rows that have all expired is left out, and one that no row was written under is replaced.
    #[test]
    fn windows_without_rows_are_left_out() {
        let history = WindowHistory::new(Some(change(0, 10, false).window));
        let history = history.with_change(change(5, 11, false), 1).unwrap();
        let replaced = history.with_change(change(5, 12, false), 1).unwrap();
        assert_eq!(replaced.changes(), [change(5, 12, false)]);
        let history = history.with_change(change(9, 13, false), 8).unwrap();
        assert_eq!(rows(&history), [5, 9]);
        let history = history.with_change(change(12, 14, false), 9).unwrap();
        assert_eq!(rows(&history), [9, 12]);
    }

    #[test]
    fn changes_are_limited() {
        let mut history = WindowHistory::new(Some(change(0, 10, false).window));
        for row in 2..2 + MAX_WINDOW_CHANGES as u64 {
            history = history.with_change(change(row, row, false), 1).unwrap();
        }
        let row = 2 + MAX_WINDOW_CHANGES as u64;
        let refused = history.with_change(change(row, 1, false), 1).unwrap_err();
        assert!(refused.to_string().contains("256 times"), "{refused}");
        assert!(history.with_change(change(row, 1, false), 3).is_ok());
    }
}
