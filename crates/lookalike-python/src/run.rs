//! Runs without the interpreter lock that handle Ctrl-C.
//!
//! A run works in its own thread. The calling thread wakes every [`PULSE`], lets Python handle its
//! signals and reports progress. When a signal handler raises, the run stops at its next report of
//! progress by unwinding, which also cleans up unfinished work. Work that is done batch by batch in
//! the calling thread uses [`PythonSignals`] between batches.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lookalike::dedup::CopyPairs;
use lookalike_batch::run::{
    DedupOutputs, PairsOutputs, ProgressListener, RunInputs, RunStage, run_in_caller,
};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::{BadRow, RowSource};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OutputError, run_error_to_py};
use crate::settings::{CopyOptions, RunOptions, thread_count};
use crate::table::{PyTableStream, give_rows, give_table, take_sized_table};

/// Interval between handling signals and reporting progress.
const PULSE: Duration = Duration::from_millis(50);

/// Bytes of inputs up to which a run takes less than some milliseconds, so that nobody interrupts it.
const SMALL_BYTES: usize = 1 << 14;

/// Panic payload that unwinds a run when it must stop.
struct RunStopped;

/// State of a run, shared with the thread that watches it.
#[derive(Default)]
pub(crate) struct RunWatch {
    stage: AtomicUsize,
    total: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    bad: Mutex<Vec<BadRow>>,
}

impl RunWatch {
    /// Unwinds if the run must stop.
    pub(crate) fn stop_if_asked(&self) {
        if self.stop.load(Ordering::Relaxed) && !std::thread::panicking() {
            resume_unwind(Box::new(RunStopped));
        }
    }

    /// Returns the rows that could not be used: their number, from 0, and the reason.
    pub(crate) fn bad_row_list(&self) -> Vec<(u64, String)> {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        let told = bad.iter().map(|row| (row.number - 1, row.reason.clone()));
        told.collect()
    }

    /// Returns the stage, the work done in it, and its total, which is 0 if it is unknown.
    fn current_progress(&self) -> (&'static str, u64, u64) {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let stage = RunStage::ALL[self.stage.load(Ordering::Relaxed)].name();
        (stage, load(&self.done), load(&self.total))
    }
}

impl ProgressListener for RunWatch {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        self.stop_if_asked();
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.stage.store(stage as usize, Ordering::Relaxed);
    }

    fn advance_stage(&self, done: u64) {
        self.stop_if_asked();
        self.done.store(done, Ordering::Relaxed);
    }

    fn report_bad_row(&self, row: &BadRow) {
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.push(row.clone());
    }
}

/// Does work without the interpreter, and calls `told` with the result of
/// [`RunWatch::current_progress`].
///
/// # Errors
/// Returns the errors of the work, and what a signal handler or `told` raised.
pub(crate) fn run_watched<T: Send>(
    py: Python<'_>,
    watch: &RunWatch,
    told: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> lookalike_io::Result<T> + Send,
) -> PyResult<T> {
    let told = told.map(|told| told.clone().unbind());
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, ends) = channel::<()>();
            let worker = scope.spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(work));
                drop(done);
                result
            });
            let mut raised = None;
            while ends.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
                let beat = Python::attach(|py| {
                    py.check_signals()?;
                    told.as_ref().map_or(Ok(()), |told| {
                        told.call1(py, watch.current_progress()).map(drop)
                    })
                });
                if let Err(error) = beat {
                    watch.stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
            let result = worker.join().and_then(|result| result);
            match (raised, result) {
                (Some(error), _) => Err(error),
                (None, Ok(result)) => result.map_err(run_error_to_py),
                (None, Err(panic)) => Err(OutputError::new_err(panic_text(&*panic))),
            }
        })
    })
}

/// Does work on inputs of so many bytes: as [`run_watched`], or in the calling thread if it ends before anybody could
/// interrupt it. Starting the thread of a watched run would take longer than such work.
///
/// # Errors
/// As [`run_watched`].
pub(crate) fn run_by_size<T: Send>(
    py: Python<'_>,
    bytes: usize,
    watch: &RunWatch,
    told: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> lookalike_io::Result<T> + Send,
) -> PyResult<T> {
    if bytes > SMALL_BYTES || told.is_some() {
        return run_watched(py, watch, told, work);
    }
    match py.detach(|| catch_unwind(AssertUnwindSafe(|| run_in_caller(work)))) {
        Ok(result) => result.map_err(run_error_to_py),
        Err(panic) => Err(OutputError::new_err(panic_text(&*panic))),
    }
}

/// Returns the threads for inputs of so many bytes: the given ones, one for small inputs, or one per core.
///
/// # Errors
/// As [`thread_count`].
pub(crate) fn threads_by_size(given: Option<usize>, bytes: usize) -> PyResult<usize> {
    thread_count(given.or((bytes <= SMALL_BYTES).then_some(1)))
}

/// Does work that cannot be stopped, in its own thread. After an interrupt the thread runs to its
/// end and its result is dropped.
///
/// # Errors
/// Returns what a signal handler raised, or an [`OutputError`] if the work panicked.
pub(crate) fn abandonable<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, ends) = channel();
    let worker = std::thread::spawn(move || done.send(work()));
    py.detach(move || {
        loop {
            match ends.recv_timeout(PULSE) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = worker.join().err();
                    let told = panic.map_or_else(String::new, |panic| panic_text(&*panic));
                    return Err(OutputError::new_err(told));
                }
            }
        }
    })
}

/// Handles signals for work that releases the interpreter but stays in the calling thread.
pub(crate) struct PythonSignals {
    handled: Instant,
}

impl PythonSignals {
    pub(crate) fn new() -> Self {
        Self {
            handled: Instant::now(),
        }
    }

    /// Lets Python handle its signals, at most every [`PULSE`]. The caller must not hold a lock,
    /// because the thread that has the interpreter may wait for that lock.
    ///
    /// # Errors
    /// Returns what a signal handler raised.
    pub(crate) fn handle_signals(&mut self) -> PyResult<()> {
        if self.handled.elapsed() < PULSE {
            return Ok(());
        }
        self.handled = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "the run was interrupted: {}",
        text.unwrap_or("no reason was given")
    )
}

/// Returns the inputs of a run, `data` and the documents that precede them, and the bytes of both.
pub(crate) fn run_inputs(
    table: PyTableStream,
    against: Option<PyTableStream>,
) -> PyResult<(RunInputs, usize)> {
    let against = against
        .map(|against| take_sized_table(against, "against"))
        .transpose()?;
    let (table, bytes) = take_sized_table(table, "data")?;
    let (against, more) = against.unzip();
    let inputs = RunInputs {
        documents: RowSource::Table(table),
        against: against.map_or_else(RowSource::default, RowSource::Table),
    };
    Ok((inputs, bytes + more.unwrap_or(0)))
}

/// Removes the near-duplicates of a table.
#[pyfunction]
#[pyo3(signature = (table, against, options, components, copies, progress))]
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    table: PyTableStream,
    against: Option<PyTableStream>,
    options: RunOptions,
    components: bool,
    copies: CopyOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let given = options.given_threads();
    let mut settings = options.run_settings(py)?;
    settings.sources = copies.source_field().map(str::to_owned);
    let (inputs, bytes) = run_inputs(table, against)?;
    settings.threads = threads_by_size(given, bytes)?;
    let [kept, removed, clusters] = [(); 3].map(|()| CollectedTable::default());
    let memory = |collected: &CollectedTable| Some(OutputTarget::Memory(collected.clone()));
    let outputs = DedupOutputs {
        kept: memory(&kept),
        removed: memory(&removed),
        clusters: memory(&clusters),
        components,
        members: copies.kept_members(),
        copy_fields: copies.copy_fields()?,
        ..DedupOutputs::default()
    };
    let watch = RunWatch::default();
    let summary = run_by_size(py, bytes, &watch, progress.as_ref(), || {
        lookalike_batch::run::run_dedup(&inputs, &settings, &outputs, &watch)
    })?;
    let result = PyDict::new(py);
    if outputs.copy_fields.is_empty() {
        result.set_item("kept", give_rows(py, &kept))?;
    } else {
        result.set_item("added", give_table(py, &kept)?)?;
    }
    result.set_item("removed", give_table(py, &removed)?)?;
    result.set_item("clusters", give_table(py, &clusters)?)?;
    result.set_item("rejected", watch.bad_row_list())?;
    result.set_item("summary", summary_to_json(&summary)?)?;
    Ok(result)
}

/// Finds the near-duplicate pairs of a table.
#[pyfunction]
#[pyo3(signature = (table, against, options, copies, apart, progress))]
pub(crate) fn pairs<'py>(
    py: Python<'py>,
    table: PyTableStream,
    against: Option<PyTableStream>,
    options: RunOptions,
    copies: &str,
    apart: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let given = options.given_threads();
    let mut settings = options.run_settings(py)?;
    let (inputs, bytes) = run_inputs(table, against)?;
    settings.threads = threads_by_size(given, bytes)?;
    let copies = match copies {
        "all" => CopyPairs::All,
        "none" => CopyPairs::None,
        _ => CopyPairs::WithEarliest,
    };
    let pairs = CollectedTable::default();
    let outputs = PairsOutputs {
        pairs: Some(OutputTarget::Memory(pairs.clone())),
        sample: None,
        copies,
        apart,
        rejected: None,
        report: None,
    };
    let watch = RunWatch::default();
    let summary = run_by_size(py, bytes, &watch, progress.as_ref(), || {
        lookalike_batch::run::find_pairs(&inputs, &settings, &outputs, &watch)
    })?;
    let result = PyDict::new(py);
    result.set_item("pairs", give_table(py, &pairs)?)?;
    result.set_item("rejected", watch.bad_row_list())?;
    result.set_item("summary", summary_to_json(&summary)?)?;
    Ok(result)
}

/// Learns forms from a table and writes them to a file. Returns the JSON of the command line.
#[pyfunction]
#[pyo3(signature = (table, options, path, progress))]
pub(crate) fn learn_forms(
    py: Python<'_>,
    table: PyTableStream,
    options: RunOptions,
    path: PathBuf,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let given = options.given_threads();
    let mut settings = options.run_settings(py)?;
    let (inputs, bytes) = run_inputs(table, None)?;
    settings.threads = threads_by_size(given, bytes)?;
    let (output, watch) = (OutputTarget::Path(path), RunWatch::default());
    let summary = run_by_size(py, bytes, &watch, progress.as_ref(), || {
        lookalike_batch::run::write_form_table(&inputs, &settings, &output, None, &watch)
    })?;
    summary_to_json(&summary)
}

/// Returns the summary of a run as JSON.
pub(crate) fn summary_to_json(summary: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(summary).map_err(|error| OutputError::new_err(error.to_string()))
}
