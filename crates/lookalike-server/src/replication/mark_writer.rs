//! Writes the mark of a replica beside the log, by a thread of its own.
//!
//! Two processes under one name replace each other's marks. Each of them finds the other's where its own should be, says so
//! in its log, and notes it in its mark.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use lookalike_log::{
    FORMAT_VERSION, LogStore, LogTail, RecordCopies as _, ReplicaMark, StoreError,
    create_instance_name, read_first_number, read_mark, write_mark,
};

use super::beginning::ReplicaParts;
use super::machine_time_us;

/// Time between two marks of a replica beside the log, while it applies records and while it does not.
const MARK_INTERVAL: Duration = Duration::from_secs(15);
const IDLE_MARK_INTERVAL: Duration = Duration::from_secs(3600);

/// Time between the first two marks that differ. It doubles from one to the next, because people look soon after a start.
const FIRST_MARK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two checks whether a mark is due.
const MARK_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Reason in the last mark of a replica whose service was ended.
const END_OF_SERVICE: &str = "the service was ended";

/// Name of a process whose marks have no name, because its program is older.
const UNKNOWN_INSTANCE: &str = "unknown";

/// The writer of the marks of this process.
#[derive(Debug)]
pub(super) struct MarkWriter {
    replica: String,
    instance: String,
    /// `true` once this process has written a mark: whatever stands in its place then was written later.
    has_written: AtomicBool,
    /// `true` while another process writes under the same name.
    is_shared: AtomicBool,
}

impl MarkWriter {
    /// Creates a writer with a random name of this process.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub(super) fn new(replica: &str) -> Result<Self, StoreError> {
        Ok(Self {
            replica: replica.to_owned(),
            instance: create_instance_name()?,
            has_written: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
        })
    }

    /// Writes the mark of a replica that has applied the records before `tail`. `stopped` is the reason why it stopped.
    ///
    /// # Errors
    /// If a request fails.
    pub(super) fn write(
        &self,
        store: &dyn LogStore,
        tail: &LogTail,
        stopped: Option<String>,
    ) -> Result<(), StoreError> {
        let earlier = read_mark(store, &self.replica)?;
        let other_instance = self.find_other_instance(earlier.as_ref());
        self.report_other(other_instance.as_deref());
        let applied = tail.next.saturating_sub(1);
        if stopped.is_some() && is_ahead(earlier.as_ref(), tail) {
            // It tells that the records that this replica has applied before are lost.
            return Ok(());
        }
        let mark = ReplicaMark {
            name: self.replica.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: FORMAT_VERSION,
            applied,
            time_us: machine_time_us(),
            log: tail.log,
            digest: (applied > 0).then_some(tail.digest),
            stopped,
            instance: Some(self.instance.clone()),
            other_instance,
        };
        write_mark(store, &mark)?;
        self.has_written.store(true, Relaxed);
        Ok(())
    }

    /// Returns the process that has replaced the mark of this one.
    fn find_other_instance(&self, earlier: Option<&ReplicaMark>) -> Option<String> {
        let earlier = earlier.filter(|_| self.has_written.load(Relaxed))?;
        let instance = earlier.instance.clone();
        let instance = instance.unwrap_or_else(|| UNKNOWN_INSTANCE.to_owned());
        (instance != self.instance).then_some(instance)
    }

    fn report_other(&self, other_instance: Option<&str>) {
        let was_shared = self.is_shared.swap(other_instance.is_some(), Relaxed);
        if let Some(other) = other_instance
            && !was_shared
        {
            tracing::warn!(
                replica = self.replica,
                other,
                "another process writes under the name of this replica: give each replica a name of its own (--replica)"
            );
        }
    }
}

/// Returns `true` if the mark of an earlier process of the replica, of the same log, is ahead of a place.
fn is_ahead(earlier: Option<&ReplicaMark>, tail: &LogTail) -> bool {
    earlier.is_some_and(|mark| {
        mark.log.is_some()
            && tail.log.is_none_or(|log| mark.log == Some(log))
            && mark.applied >= tail.next
    })
}

impl ReplicaParts {
    /// Writes marks until the replica stops. They have a thread of their own, because a store that gives no answer must
    /// not delay what is written to disk.
    pub(super) fn write_marks(&self, end_of_writing: &Receiver<()>) {
        let mut marked = None::<(Option<u64>, Instant)>;
        let mut interval = FIRST_MARK_INTERVAL;
        while !self.replica.has_ended() {
            std::thread::sleep(MARK_CHECK_INTERVAL);
            let applied = self.durable.durable_tail().next.saturating_sub(1);
            let is_due = marked.is_none_or(|(record, time)| {
                let idle = (record == Some(applied)).then_some(IDLE_MARK_INTERVAL);
                time.elapsed() >= idle.unwrap_or(interval)
            });
            if is_due {
                let is_first = marked.is_none();
                let is_written = self.write_mark(None);
                // After a failure the next try comes soon, also if nothing is applied meanwhile.
                let record = is_written.then_some(applied);
                marked = Some((record, Instant::now()));
                if !is_first {
                    interval = (interval * 2).min(MARK_INTERVAL);
                }
                self.prune_copies();
            }
        }
        // The last mark has what the last checkpoint has.
        let _ = end_of_writing.recv();
        let reason = self.replica.progress.stop_reason();
        self.write_mark(reason.or_else(|| Some(END_OF_SERVICE.to_owned())));
        self.replica.progress.note_last_mark();
    }

    /// Writes the mark of this replica; returns `false` if that failed. `stopped` is the reason why the replica stopped.
    fn write_mark(&self, stopped: Option<String>) -> bool {
        let tail = self.durable.durable_tail();
        let written = self.marks.write(&*self.store, &tail, stopped);
        if let Err(error) = &written {
            tracing::debug!(%error, "the mark of the replica cannot be written");
        }
        written.is_ok()
    }

    /// Removes the copies of records that have been removed from the log.
    fn prune_copies(&self) {
        let Ok(first) = read_first_number(&*self.store) else {
            return;
        };
        if let Err(error) = self.copies.remove_before(first) {
            tracing::warn!(%error, "old copies of records cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use lookalike_log::simulation::MemoryStore;

    use super::*;

    fn mark(store: &MemoryStore) -> ReplicaMark {
        read_mark(store, "a").unwrap().unwrap()
    }

    /// A process notices another one of its name by the mark that stands in place of its own, and not before.
    #[test]
    fn two_processes_of_one_name_notice_each_other() {
        let store = MemoryStore::new();
        let [first, second] = [(); 2].map(|()| MarkWriter::new("a").unwrap());
        let tail = LogTail::default();
        first.write(&store, &tail, None).unwrap();
        assert_eq!(
            (mark(&store).digest, mark(&store).other_instance),
            (None, None)
        );
        // A process that follows another one finds its last mark.
        second.write(&store, &tail, None).unwrap();
        second.write(&store, &tail, None).unwrap();
        assert_eq!(mark(&store).other_instance, None);
        first.write(&store, &tail, None).unwrap();
        assert_eq!(mark(&store).other_instance, Some(second.instance.clone()));
        second.write(&store, &tail, None).unwrap();
        assert_eq!(mark(&store).other_instance, Some(first.instance.clone()));
        // The first one has ended.
        let tail = LogTail { next: 8, ..tail };
        second
            .write(&store, &tail, Some("the disk failed".to_owned()))
            .unwrap();
        let last = mark(&store);
        assert_eq!((last.other_instance, last.applied), (None, 7));
        assert_eq!(last.digest, Some(tail.digest));
        assert_eq!(last.stopped.as_deref(), Some("the disk failed"));
        // Marks of older programs have no instance.
        let older = ReplicaMark {
            instance: None,
            ..mark(&store)
        };
        write_mark(&store, &older).unwrap();
        second.write(&store, &tail, None).unwrap();
        assert_eq!(
            mark(&store).other_instance.as_deref(),
            Some(UNKNOWN_INSTANCE)
        );
    }
}
