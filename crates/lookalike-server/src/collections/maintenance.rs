//! Background maintenance of collections: compaction, expiry by the wall clock, and the removal of deleted ones.

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
        (service.config.release_unused_memory)();
        service.collections.remove_deleted();
        let names = service.collections.open_names();
        refused_collections.retain_subjects(&names);
        for name in names {
            // Each is opened only for its own maintenance, because a deletion waits until nobody holds the collection.
            if let Ok(open) = service.collections.look_up_collection(&name) {
                maintain_and_log(&mut refused_collections, &open);
            }
        }
    }
}

/// Does the maintenance that is due for a collection, and logs a failure as [`log_result`] says.
fn maintain_and_log(log: &mut ConditionLog, open: &OpenCollection) {
    // A collection that has stopped accepts no writes, and its last failure lasts.
    if open.is_stopped() {
        return;
    }
    let refused = maintain_collection(open);
    log_result(log, &open.name, refused.as_deref());
}

/// Logs that a collection cannot be maintained: when that begins, rarely while it lasts, and when it ends.
fn log_result(log: &mut ConditionLog, collection: &str, refused: Option<&str>) {
    let Some(error) = refused else {
        if let Some(attempts) = log.end_condition(collection) {
            tracing::info!(collection, attempts, "maintenance works again");
        }
        return;
    };
    if let Some(attempts) = log.count_failure(collection, error, Instant::now()) {
        tracing::warn!(collection, error, attempts, "maintenance fails");
    }
}

/// Does the maintenance that is due for a collection; returns the reason if it failed.
fn maintain_collection(open: &OpenCollection) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write};
    use std::path::Path;
    use std::sync::Mutex;

    use lookalike::text::AnalysisScratch;
    use lookalike_store::{
        Collection, CollectionOptions, CollectionSettings, CompactionTrigger, DiskFolder,
    };
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::subscriber::with_default;
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Collects the lines of the log: the fields of each event in their order.
    #[derive(Clone, Default)]
    struct LogLines(Arc<Mutex<Vec<String>>>);

    struct LogLine(String);

    impl Visit for LogLine {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0, "{field}={value:?} ").unwrap();
        }
    }

    impl Subscriber for LogLines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut line = LogLine(format!("{} ", event.metadata().level()));
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// Opens a collection whose deleted documents are compacted at once if the disk has so many bytes more.
    fn open_collection(folder: &Path, headroom: u64) -> OpenCollection {
        let options = CollectionOptions {
            headroom,
            compaction: CompactionTrigger {
                dead_share: 0.0,
                least_dead_bytes: 0,
                longest_wait: Duration::ZERO,
            },
            ..CollectionOptions::default()
        };
        let disk = Arc::new(DiskFolder::open(folder).unwrap());
        let collection = if folder.join(lookalike_store::MANIFEST_FILE).exists() {
            Collection::open_existing(disk, options)
        } else {
            Collection::create_empty(disk, &CollectionSettings::default(), options)
        };
        OpenCollection::new("news", collection.unwrap())
    }

    /// A disk without room for a compaction is logged once while the thread tries it every second, and so is its end.
    #[test]
    fn failure_is_logged_once_while_it_lasts() {
        let folder = tempfile::tempdir().unwrap();
        let open = open_collection(folder.path(), 0);
        let documents = ["a", "b"].map(|id| {
            let sent = format!("{{\"id\":\"{id}\",\"text\":\"The boat of {id} left at dawn.\"}}");
            open.prepare_document(sent.as_bytes(), &mut AnalysisScratch::default())
        });
        let admitted = open.admit_while(documents.into(), &mut || Ok(()));
        assert!(open.wait_for_turns(admitted).iter().all(Result::is_ok));
        assert!(open.collection.delete_document("a").unwrap());
        drop(open);

        let (lines, mut log) = (LogLines::default(), ConditionLog::default());
        with_default(lines.clone(), || {
            let full = open_collection(folder.path(), u64::MAX);
            for _ in 0..3 {
                maintain_and_log(&mut log, &full);
            }
            drop(full);
            let open = open_collection(folder.path(), 0);
            for _ in 0..2 {
                maintain_and_log(&mut log, &open);
            }
        });
        let lines = lines.0.lock().unwrap();
        let is_about_maintenance = |line: &&String| line.contains("maintenance ");
        let [refused, again] = lines
            .iter()
            .filter(is_about_maintenance)
            .collect::<Vec<_>>()[..]
        else {
            panic!("{lines:?}");
        };
        assert!(refused.starts_with("WARN ") && refused.contains("maintenance fails"));
        assert!(refused.contains("collection=\"news\"") && refused.contains("attempts=1 "));
        assert!(again.starts_with("INFO ") && again.contains("maintenance works again"));
        assert!(again.contains("attempts=3 "), "{again}");
    }
}
