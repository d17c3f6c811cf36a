//! Progress of a run: a bar with rate and remaining time, and warnings about bad rows.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use lookalike_batch::run::{ProgressListener, RepeatedIds, RunStage};
use lookalike_io::source::BadRow;

use crate::allocator;
use crate::output::{OutputPrinter, escape_control, format_count, format_plural};

/// Time before the bar appears. A shorter run shows none.
const DELAY: Duration = Duration::from_secs(1);

/// Interval at which the bar is redrawn while nothing is reported.
const TICK: Duration = Duration::from_millis(250);

/// Number of bad rows shown on a terminal, where more would hide the rest. Further ones are only counted.
const SHOWN_ROWS: u64 = 10;

/// Number of bad rows written to a file or a pipe.
const LOGGED_ROWS: u64 = 1000;

/// The bar of the process, for code that ends the process.
static SHOWN_BAR: Mutex<Weak<ProgressBar>> = Mutex::new(Weak::new());

/// Removes the bar of the process, if there is one. Called by the signal handler.
pub(crate) fn clear_progress_bar() {
    let bar = SHOWN_BAR.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bar) = bar.upgrade() {
        bar.finish_and_clear();
    }
}

/// Reports the progress of a run on standard error.
pub(crate) struct ProgressReporter {
    printer: OutputPrinter,
    bar: Arc<ProgressBar>,
    /// `false` if the run stops at the first bad row, because that row is then the error of the run.
    tells_rows: bool,
    /// Largest number of bad rows that are reported.
    most_rows: u64,
    bad_rows: AtomicU64,
    /// Warnings held back until a row is usable. A run without any usable row is refused in one sentence,
    /// which a thousand warnings would hide.
    held: Mutex<Vec<String>>,
    has_usable: AtomicBool,
    /// Stops the thread that makes the bar appear when it is dropped.
    appearance: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl ProgressReporter {
    fn new(printer: OutputPrinter, strict: bool) -> Self {
        let bar = Arc::new(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::hidden(),
        ));
        *SHOWN_BAR.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&bar);
        let appearance = printer
            .shows_progress()
            .then(|| appear_later(Arc::clone(&bar)));
        Self {
            printer,
            bar,
            tells_rows: !strict,
            most_rows: match io::stderr().is_terminal() {
                true => SHOWN_ROWS,
                false => LOGGED_ROWS,
            },
            bad_rows: AtomicU64::new(0),
            held: Mutex::default(),
            has_usable: AtomicBool::new(false),
            appearance,
        }
    }

    /// Runs `work` with a reporter. `hint` says where bad rows are that were not shown.
    pub(crate) fn watch_run<T, E>(
        printer: OutputPrinter,
        strict: bool,
        hint: &str,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let reporter = Self::new(printer, strict);
        let result = work(&reporter);
        reporter.finish_progress(hint);
        result
    }

    /// Reports a bad row by its file and line.
    pub(crate) fn report_bad_line(&self, file: &str, line: u64, reason: &str) {
        let told = self.bad_rows.fetch_add(1, Ordering::Relaxed);
        if !self.tells_rows || told >= self.most_rows {
            return;
        }
        let line = format!("{file}:{line}: {reason}");
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if told >= SHOWN_ROWS && !self.has_usable.load(Ordering::Relaxed) {
            held.push(line);
            return;
        }
        self.bar
            .suspend(|| self.printer.print_warning(escape_control(&line)));
    }

    /// Removes the bar and reports how many bad rows were not shown.
    fn finish_progress(mut self, hint: &str) {
        self.take_bar_away();
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = self.bad_rows.load(Ordering::Relaxed);
        let rest = untold.saturating_sub(self.most_rows) + held.len() as u64;
        if rest > 0 {
            let rows = if rest == 1 { "bad row" } else { "bad rows" };
            self.printer
                .print_warning(format!("{} more {rows}{hint}", format_count(rest)));
        }
    }

    fn take_bar_away(&mut self) {
        if let Some((stop, waiting)) = self.appearance.take() {
            drop(stop);
            // The thread only waits and draws. If it panicked, there is no bar to remove.
            let _ = waiting.join();
        }
        self.bar.finish_and_clear();
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.take_bar_away();
    }
}

fn appear_later(bar: Arc<ProgressBar>) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        if stopped.recv_timeout(DELAY) == Err(mpsc::RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
    });
    (stop, waiting)
}

impl ProgressReporter {
    /// Warns of `units` that have the id of an earlier one. `identity` says how they are told apart.
    fn warn_of_repeats(&self, repeated: &RepeatedIds, units: (&str, &str), identity: &str) {
        let [first, next] = &repeated.places;
        let line = format!(
            "{} {} the id of an earlier {}, first '{}' in {first} and {next}: {identity}; \
             --id-row uses row numbers as ids, --strict refuses repeated ids",
            format_plural(repeated.documents, units.0, units.1),
            if repeated.documents == 1 {
                "has"
            } else {
                "have"
            },
            units.0,
            repeated.id
        );
        self.bar
            .suspend(|| self.printer.print_warning(escape_control(&line)));
    }
}

impl ProgressListener for ProgressReporter {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        if stage == RunStage::Candidates {
            allocator::release_free_memory();
        }
        let (message, style) = match (stage, total) {
            (RunStage::Read, Some(_)) => ("reading", BYTES),
            (RunStage::Read, None) => ("reading", BYTES_WITHOUT_END),
            (RunStage::Candidates, _) => ("finding candidates", UNMEASURED),
            (RunStage::Decide, Some(_)) => ("comparing", DOCUMENTS),
            (RunStage::Decide, None) => ("comparing", UNMEASURED),
            (RunStage::Passages, _) => ("finding repeated passages", DOCUMENTS),
            (RunStage::Measure, _) => ("measuring", SETTINGS),
            (RunStage::Open, _) => ("reading the index", UNMEASURED),
            (RunStage::Index, _) => ("indexing", UNMEASURED),
            (RunStage::Write, Some(_)) => ("writing", DOCUMENTS),
            (RunStage::Write, None) => ("writing", UNMEASURED),
        };
        let style = ProgressStyle::with_template(style).expect("the templates are well formed");
        let rate = |state: &ProgressState, text: &mut dyn Write| {
            // A bar that cannot be drawn must not stop the run.
            let _ = write!(text, "{}", HumanCount(state.per_sec() as u64));
        };
        self.bar
            .set_style(style.progress_chars("##-").with_key("rate", rate));
        self.bar.set_message(message);
        self.bar.reset();
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
    }

    fn advance_stage(&self, done: u64) {
        self.bar.set_position(done);
    }

    fn report_left_out(&self, files: &[PathBuf]) {
        let first = files.first().map(|file| file.display().to_string());
        let line = format!(
            "{} in directories {} skipped because the format is unknown, first {}: name such files \
             directly, or give --format for all",
            format_plural(files.len() as u64, "file", "files"),
            if files.len() == 1 { "is" } else { "are" },
            first.unwrap_or_default()
        );
        self.bar
            .suspend(|| self.printer.print_warning(escape_control(&line)));
    }

    fn rows_usable(&self) {
        if self.has_usable.load(Ordering::Relaxed) {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_usable.store(true, Ordering::Relaxed);
        for line in held.drain(..) {
            self.bar
                .suspend(|| self.printer.print_warning(escape_control(&line)));
        }
    }

    fn report_bad_row(&self, row: &BadRow) {
        self.report_bad_line(&row.file, row.line, &row.reason);
    }

    fn repeated_ids(&self, repeated: &RepeatedIds) {
        let identity = "tables distinguish them by source and row";
        self.warn_of_repeats(repeated, ("document", "documents"), identity);
    }

    fn repeated_index_ids(&self, repeated: &RepeatedIds) {
        let identity = "`index remove` removes all rows of an id";
        self.warn_of_repeats(repeated, ("row", "rows"), identity);
    }
}

const BYTES: &str = "{msg:18} [{bar:24}] {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}, \
                     {decimal_bytes_per_sec}, {eta} left";
const BYTES_WITHOUT_END: &str = "{msg:18} {spinner} {decimal_bytes}, {decimal_bytes_per_sec}";
const DOCUMENTS: &str = "{msg:18} [{bar:24}] {percent:>3} %  {human_pos} of {human_len} documents, \
                         {rate} a second, {eta} left";
const SETTINGS: &str = "{msg:18} [{bar:24}] {percent:>3} %  {human_pos} of {human_len} settings, \
                        {elapsed}";
const UNMEASURED: &str = "{msg:18} {spinner} {elapsed}";
