//! Group commit under every interleaving of a few threads.

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};

use crate::group::GroupCommit;

/// A disk to which only one thread at a time may write.
struct Shared {
    group: GroupCommit,
    /// Last admitted row.
    admitted: Mutex<u64>,
    durable: AtomicU64,
    writing: AtomicBool,
    writes: AtomicU64,
    /// The write that fails.
    fails: u64,
}

impl Shared {
    fn new(fails: u64) -> Arc<Self> {
        Arc::new(Self {
            group: GroupCommit::new(0),
            admitted: Mutex::new(0),
            durable: AtomicU64::new(0),
            writing: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            fails,
        })
    }

    fn write(&self) -> Result<u64, String> {
        assert!(!self.writing.swap(true, Ordering::SeqCst), "two write");
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        assert!(write <= self.fails, "written after a failure");
        let admitted = *self.admitted.lock().unwrap();
        let failed = write == self.fails;
        if !failed {
            self.durable.store(admitted, Ordering::SeqCst);
            assert!(self.group.current_progress().durable <= admitted);
        }
        self.writing.store(false, Ordering::SeqCst);
        if failed {
            return Err("the disk is gone".to_owned());
        }
        Ok(admitted)
    }

    /// Admits a row and waits until it is durable.
    fn insert(&self) -> Result<(), String> {
        let row = {
            let mut admitted = self.admitted.lock().unwrap();
            *admitted += 1;
            *admitted
        };
        self.group.wait_for_row(row, || self.write())?;
        assert!(
            self.durable.load(Ordering::SeqCst) >= row,
            "acknowledged too early"
        );
        Ok(())
    }
}

/// A thread that calls `write_alone` writes alone, even if no row waits.
#[test]
fn write_alone_is_exclusive() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Shared::new(u64::MAX);
        let other = shared.clone();
        let other = loom::thread::spawn(move || other.insert());
        let taken = shared.group.write_alone(|| shared.write());
        assert!(taken.is_ok() && other.join().unwrap().is_ok());
        assert!(shared.writes.load(Ordering::SeqCst) >= 1);
    });
    let failing = || {
        let shared = Shared::new(0);
        assert!(shared.group.write_alone(|| shared.write()).is_err());
        assert!(shared.insert().is_err());
    };
    loom::model(failing);
}

fn in_every_order(fails: u64, check: fn(&[Result<(), String>])) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let shared = Shared::new(fails);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                loom::thread::spawn(move || shared.insert())
            })
            .collect();
        let mut answers = vec![shared.insert()];
        answers.extend(others.into_iter().map(|other| other.join().unwrap()));
        check(&answers);
    });
}

#[test]
fn acknowledged_rows_are_written_by_one_thread() {
    in_every_order(u64::MAX, |answers| {
        assert!(answers.iter().all(Result::is_ok))
    });
}

#[test]
fn failure_stops_writing_and_reaches_all() {
    in_every_order(0, |answers| assert!(answers.iter().all(Result::is_err)));
    in_every_order(1, |answers| assert!(answers.iter().any(Result::is_ok)));
}
