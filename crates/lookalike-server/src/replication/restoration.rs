//! Restores the state that a shared log had at a moment.

use std::path::Path;
use std::sync::Arc;

use lookalike_log::{LogRecord, LogStore, LogTail, SharedLog};
use lookalike_store::CollectionOptions;
use tokio::runtime::Runtime;

use super::LogClock;
use super::apply::RecordApplier;
use super::durability::{flush_collections, is_disk_behind};
use super::log_snapshots::LogSnapshots;
use super::log_store::open_log_store;
use super::state_check::CheckSchedule;
use crate::collections::{ServedCollections, has_collections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::ServedRecipes;
use crate::service::follower_options;

/// Bytes of the cache of recipes while a state is restored.
const RECIPE_BYTES: usize = 256 << 20;

/// Moment whose state is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// Behind the last record.
    Latest,
    /// Behind the record of this number.
    Record(u64),
    /// Behind the last record that is not later than this time, in microseconds since 1970.
    Time(i64),
}

impl RestorePoint {
    /// Returns `true` if a place behind a record, with the time of that record, is not behind the moment.
    fn includes(self, record: u64, time_us: i64) -> bool {
        match self {
            Self::Latest => true,
            Self::Record(last) => record <= last,
            Self::Time(last_us) => time_us <= last_us,
        }
    }
}

/// A restored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredLog {
    /// Number of the last record whose effect is in it.
    pub record: u64,
    /// Time of that record, in microseconds since 1970.
    pub time_us: i64,
    /// Names of the collections.
    pub collections: Vec<String>,
}

/// Restores the state that a log had at a moment to an empty data directory, from the newest snapshot before it and the
/// records behind that. A service can then be started with the directory, without the log or as the beginning of a new
/// one.
///
/// # Errors
/// If the directory has collections, the log does not reach back or forth to the moment, the log is damaged, or the
/// store or the disk fails.
pub fn restore_from_log(url: &str, directory: &Path, point: RestorePoint) -> Result<RestoredLog> {
    let runtime = Runtime::new().map_err(with_context("cannot start the threads for requests"))?;
    let at = || with_context(format!("the directory {}", directory.display()));
    lookalike_store::make_directory(directory).map_err(at())?;
    if has_collections(directory).map_err(at())? {
        bail!(
            "{} has collections: name a new directory",
            directory.display()
        );
    }
    let store = open_log_store(url, runtime.handle())?;
    let snapshots = LogSnapshots::open(url, Arc::clone(&store), runtime.handle())?;
    let listed = snapshots.list_snapshots()?;
    let usable = listed
        .iter()
        .rev()
        .find(|snapshot| point.includes(snapshot.end.next.saturating_sub(1), snapshot.end.time_us));
    let mut tail = LogTail::default();
    if let Some(snapshot) = usable {
        snapshots.restore_small_parts(snapshot, directory)?;
        tail = snapshot.tail;
    }
    let clock = LogClock::default();
    clock.set_time(tail.time_us);
    let options = follower_options(CollectionOptions::default(), &clock);
    let headroom = options.headroom;
    let collections = ServedCollections::new(directory, options)?;
    if let Some(snapshot) = usable {
        let restored = snapshots.restore_collections(snapshot, &collections, headroom);
        restored.map_err(|problem| Error::new(problem.detail))?;
    }
    let recipes = ServedRecipes::open(directory, headroom, RECIPE_BYTES)?;
    let applier = RecordApplier {
        collections: &collections,
        recipes: &recipes,
        clock: &clock,
        checks: &CheckSchedule::new("restore"),
        first_snapshot: usable.map(|snapshot| snapshot.name.clone()),
        partial: None,
        // A restoration that is interrupted is begun again.
        note_service_change: &|_| Ok(()),
        runtime: runtime.handle(),
    };
    let end = apply_until(store, tail, point, &applier)?;
    flush_collections(&collections).map_err(Error::new)?;
    Ok(RestoredLog {
        record: end.next.saturating_sub(1),
        time_us: end.time_us,
        collections: collections.open_names(),
    })
}

/// Applies records up to a moment; returns the place behind the last one.
fn apply_until(
    store: Arc<dyn LogStore>,
    tail: LogTail,
    point: RestorePoint,
    applier: &RecordApplier<'_>,
) -> Result<LogTail> {
    let is_later = |record: &LogRecord| !point.includes(record.number, record.time_us);
    let mut end = tail;
    let mut log = SharedLog::open(store, "restore", tail);
    loop {
        let record = log.read_next().map_err(with_context("the shared log"))?;
        let Some(record) = record else {
            return match point {
                RestorePoint::Record(last) if last >= end.next => bail!(
                    "the shared log ends with record {}, and record {last} was asked for",
                    end.next.saturating_sub(1)
                ),
                _ => Ok(end),
            };
        };
        if is_later(&record) {
            return Ok(end);
        }
        applier
            .apply_record(&record, Vec::new())
            .map_err(Error::new)?;
        end = *log.tail();
        if is_disk_behind(applier.collections) {
            flush_collections(applier.collections).map_err(Error::new)?;
        }
    }
}
