//! Background maintenance of collections: compaction, and expiry by the wall clock.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lookalike_store::MaintenancePace;

use crate::collections::open_collection::OpenCollection;
use crate::condition_log::ConditionLog;
use crate::service::ServiceState;

/// Interval between checks whether work is due.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the thread that maintains collections until the service is dropped.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn start_thread(service: &Arc<ServiceState>) -> std::io::Result<()> {
    let service = Arc::downgrade(service);
    let thread = std::thread::Builder::new().name("lookalike-upkeep".to_owned());
    thread.spawn(move || run_maintenance(&service)).map(drop)
}

fn run_maintenance(service: &Weak<ServiceState>) {
    let mut refused_collections = ConditionLog::default();
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        let Some(service) = service.upgrade() else {
            return;
        };
        let names = service.collections.open_names();
        refused_collections.retain_subjects(&names);
        for name in names {
            // One collection at a time, because a deletion waits for what uses the collection.
            if let Ok(open) = service.collections.find_open_collection(&name) {
                let refused = maintain_collection(&open);
                log_result(&mut refused_collections, &name, refused.as_deref());
            }
        }
    }
}

/// Logs that a collection cannot be maintained: when that begins, rarely while it lasts, and when it ends.
fn log_result(log: &mut ConditionLog, collection: &str, refused: Option<&str>) {
    let Some(error) = refused else {
        if let Some(attempts) = log.end_condition(collection) {
            tracing::info!(collection, attempts, "can be compacted again");
        }
        return;
    };
    if let Some(attempts) = log.count_failure(collection, error, Instant::now()) {
        tracing::warn!(collection, error, attempts, "cannot be compacted");
    }
}

/// Does the maintenance that is due for a collection; returns the reason if it failed.
fn maintain_collection(open: &OpenCollection) -> Option<String> {
    if open.is_stopped() {
        return None;
    }
    let started = Instant::now();
    let mut pace = MaintenancePace::new();
    let mut go_on = || {
        pace.rest();
        open.check_not_deleting().is_ok()
    };
    match open.collection.run_maintenance(&mut go_on) {
        Ok(upkeep) => {
            let (compacted, expired) = (upkeep.compacted, upkeep.expired);
            if compacted > 0 || expired > 0 {
                let seconds = started.elapsed().as_secs_f64();
                tracing::info!(
                    collection = open.name,
                    compacted,
                    expired,
                    seconds,
                    "tidied"
                );
            }
            None
        }
        Err(error) => Some(open.to_problem(error).detail),
    }
}
