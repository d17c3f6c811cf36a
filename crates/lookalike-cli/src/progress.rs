//! Progress of a run, and warnings about bad rows.
//!
//! On a terminal, a bar shows rate and remaining time. Elsewhere, for example in the log of a job, a line says the
//! same every 30 seconds. Where no thread can be started, for example in a page, the thread that works reports lines that
//! replace one another.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use lookalike_batch::run::{ProgressListener, RepeatedIds, RunStage};
use lookalike_io::source::BadRow;
use lookalike_system::HAS_THREADS;

use crate::bad_row_groups::BadRowGroups;
use crate::free_memory;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control, format_bytes, format_count, format_duration};

/// Time before the bar appears. A shorter run shows none.
const BAR_DELAY: Duration = Duration::from_secs(1);

/// Interval at which the bar is redrawn while nothing is reported.
const TICK_INTERVAL: Duration = Duration::from_millis(250);

/// Interval of the lines where standard error is no terminal. A shorter run has none.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// Interval of lines that replace one another.
const REPLACED_LINE_INTERVAL: Duration = Duration::from_millis(200);

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
    bad_rows: Mutex<BadRowGroups>,
    stage: Arc<ShownStage>,
    /// Stops the thread that makes the bar appear or prints lines when it is dropped.
    appearance: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl ProgressReporter {
    fn new(printer: OutputPrinter, strict: bool) -> Self {
        let bar = Arc::new(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::hidden(),
        ));
        *SHOWN_BAR.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&bar);
        let stage = Arc::new(ShownStage::default());
        let appearance = if !HAS_THREADS {
            None
        } else if printer.shows_progress() {
            Some(appear_later(Arc::clone(&bar)))
        } else if printer.is_quiet() {
            None
        } else {
            Some(print_lines(printer, Arc::clone(&stage)))
        };
        Self {
            stage,
            printer,
            bar,
            tells_rows: !strict,
            bad_rows: Mutex::default(),
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

    /// Reports a bad row by its file and line, if it is one of the first with its reason.
    pub(crate) fn report_bad_line(&self, file: &str, line: u64, reason: &str) {
        if !self.tells_rows {
            return;
        }
        let mut groups = self.bad_rows.lock().unwrap_or_else(PoisonError::into_inner);
        if groups.count_row(reason) {
            self.warn(&format!("{file}:{line}: {}", translate_phrase(reason)));
        }
    }

    /// Removes the bar and reports, for each reason, how many bad rows were not shown.
    fn finish_progress(mut self, hint: &str) {
        self.remove_bar();
        let groups = self.bad_rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unshown = groups.unshown_groups().peekable();
        while let Some((rows, reason)) = unshown.next() {
            let count = NounCount(rows, CountedNoun::MoreBadRow);
            let reason = reason.map_or_else(messages::other_reasons, |reason| {
                translate_phrase(reason).into_owned()
            });
            // One hint behind the last line holds for all of them.
            let hint = if unshown.peek().is_none() { hint } else { "" };
            let line = messages::more_bad_rows(count, &reason, hint);
            self.printer.print_warning(escape_control(&line));
        }
    }

    fn remove_bar(&mut self) {
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
        self.remove_bar();
    }
}

fn appear_later(bar: Arc<ProgressBar>) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        if stopped.recv_timeout(BAR_DELAY) == Err(mpsc::RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK_INTERVAL);
        }
    });
    (stop, waiting)
}

/// Prints a line of progress at every [`LINE_INTERVAL`].
fn print_lines(
    printer: OutputPrinter,
    stage: Arc<ShownStage>,
) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        while stopped.recv_timeout(LINE_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
            if let Some(line) = stage.describe_progress() {
                printer.print_note(&format!("{line}\n"));
            }
        }
    });
    (stop, waiting)
}

/// Work of the current stage, for the lines of progress.
#[derive(Default)]
struct ShownStage {
    begun: Mutex<Option<BegunStage>>,
    /// Time of the last line that replaces another.
    reported: Mutex<Option<Instant>>,
    /// Work done since the stage began, in its unit.
    done: AtomicU64,
}

struct BegunStage {
    stage: RunStage,
    total: Option<u64>,
    at: Instant,
}

impl ShownStage {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        self.done.store(0, Ordering::Relaxed);
        *begun = Some(BegunStage {
            stage,
            total,
            at: Instant::now(),
        });
    }

    /// Returns the line of the current stage, if one has begun.
    fn describe_progress(&self) -> Option<String> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.as_ref()?;
        let seconds = begun.at.elapsed().as_secs_f64();
        let done = self.done.load(Ordering::Relaxed);
        Some(format_progress(begun.stage, done, begun.total, seconds))
    }
}

/// Formats the work of a stage that has run for some seconds: done, and in all if that is known.
fn format_progress(stage: RunStage, done: u64, total: Option<u64>, seconds: f64) -> String {
    let name = &stage_name(stage);
    let is_bytes = stage == RunStage::Read;
    if done == 0 || (total.is_none() && !is_bytes) {
        return messages::stage_since(name, &format_duration(seconds));
    }
    let amount = |amount: u64| {
        if is_bytes {
            format_bytes(amount)
        } else {
            format_count(amount)
        }
    };
    let per_second = done as f64 / seconds.max(1e-3);
    let rate = match stage {
        RunStage::Read => messages::rate_of_bytes(format_args!("{:.1}", per_second / 1e6)),
        RunStage::Measure => String::new(),
        _ => messages::rate_of_documents(format_count(per_second as u64)),
    };
    let so_far = amount(done);
    let Some(total) = total else {
        return messages::stage_without_end(name, &so_far, &rate);
    };
    let of_total = match stage {
        RunStage::Read => messages::bytes_done,
        RunStage::Measure => messages::settings_done,
        _ => messages::documents_done,
    };
    let share = 100.0 * done as f64 / total.max(1) as f64;
    let left = total.saturating_sub(done) as f64 / per_second;
    messages::stage_with_end(
        name,
        &of_total(&so_far, &amount(total)),
        format_args!("{share:.0}"),
        &rate,
        &format_duration(left),
    )
}

fn stage_name(stage: RunStage) -> String {
    match stage {
        RunStage::Read => messages::reading(),
        RunStage::Library => messages::searching_library(),
        RunStage::Candidates => messages::finding_candidates(),
        RunStage::Forms => messages::learning_forms(),
        RunStage::Decide => messages::comparing(),
        RunStage::Passages => messages::finding_passages(),
        RunStage::Measure => messages::measuring(),
        RunStage::Open => messages::opening_index(),
        RunStage::Index => messages::indexing(),
        RunStage::Write => messages::writing(),
    }
}

/// Returns the template of a stage's bar.
fn bar_template(stage: RunStage, is_measured: bool) -> &'static str {
    match (stage, is_measured) {
        (RunStage::Read, true) => BYTES_TEMPLATE,
        (RunStage::Read, false) => BYTES_WITHOUT_END,
        (RunStage::Passages | RunStage::Library, _)
        | (RunStage::Forms | RunStage::Decide | RunStage::Write, true) => DOCUMENTS_TEMPLATE,
        (RunStage::Measure, _) => SETTINGS_TEMPLATE,
        _ => UNMEASURED_TEMPLATE,
    }
}

impl ProgressReporter {
    /// Prints a line that the next one replaces, if no thread prints lines and the last one is old enough.
    fn replace_line(&self) {
        if HAS_THREADS || self.printer.is_quiet() {
            return;
        }
        let reported = &self.stage.reported;
        let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.is_some_and(|at| at.elapsed() < REPLACED_LINE_INTERVAL) {
            return;
        }
        *reported = Some(Instant::now());
        if let Some(line) = self.stage.describe_progress() {
            self.printer.print_note(&format!("{line}\r"));
        }
    }

    /// Prints a warning above the bar.
    fn warn(&self, line: &str) {
        self.bar
            .suspend(|| self.printer.print_warning(escape_control(line)));
    }
}

impl ProgressListener for ProgressReporter {
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        if stage == RunStage::Candidates {
            free_memory::release_now();
        }
        self.stage.begin_stage(stage, total);
        let style = bar_template(stage, total.is_some());
        let style = ProgressStyle::with_template(style).expect("the templates are well formed");
        let rate = |state: &ProgressState, text: &mut dyn Write| {
            // A bar that cannot be drawn must not stop the run.
            let _ = write!(text, "{}", HumanCount(state.per_sec() as u64));
        };
        self.bar
            .set_style(style.progress_chars("##-").with_key("rate", rate));
        self.bar.set_message(stage_name(stage));
        self.bar.reset();
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.replace_line();
    }

    fn advance_stage(&self, done: u64) {
        self.bar.set_position(done);
        self.stage.done.store(done, Ordering::Relaxed);
        self.replace_line();
    }

    fn report_left_out(&self, files: &[PathBuf]) {
        let count = NounCount(files.len() as u64, CountedNoun::SkippedFile);
        self.warn(&messages::skipped_files(count, &name_first(files)));
    }

    fn report_bad_row(&self, row: &BadRow) {
        self.report_bad_line(&row.file, row.line, &row.reason);
    }

    fn repeated_ids(&self, repeated: &RepeatedIds) {
        let [first, next] = &repeated.places;
        let count = NounCount(repeated.documents, CountedNoun::DocumentWithId);
        self.warn(&messages::repeated_document_ids(
            count,
            &repeated.id,
            first,
            next,
        ));
    }

    fn repeated_index_ids(&self, repeated: &RepeatedIds) {
        let [first, next] = &repeated.places;
        let (first, next) = (translate_phrase(first), translate_phrase(next));
        let count = NounCount(repeated.documents, CountedNoun::RowWithId);
        self.warn(&messages::repeated_row_ids(
            count,
            &repeated.id,
            &first,
            &next,
        ));
    }
}

const BYTES_TEMPLATE: &str = "{msg:18} [{bar:24}] {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}, \
                     {decimal_bytes_per_sec}, {eta} left";
const BYTES_WITHOUT_END: &str = "{msg:18} {spinner} {decimal_bytes}, {decimal_bytes_per_sec}";
const DOCUMENTS_TEMPLATE: &str = "{msg:18} [{bar:24}] {percent:>3} %  {human_pos} of {human_len} documents, \
                         {rate} a second, {eta} left";
const SETTINGS_TEMPLATE: &str = "{msg:18} [{bar:24}] {percent:>3} %  {human_pos} of {human_len} settings, \
                        {elapsed}";
const UNMEASURED_TEMPLATE: &str = "{msg:18} {spinner} {elapsed}";

/// Names the first three files.
fn name_first(files: &[PathBuf]) -> String {
    let first = files.iter().take(3).map(|file| file.display().to_string());
    let names: Vec<_> = first.collect();
    let rest = if files.len() > names.len() {
        ", …"
    } else {
        ""
    };
    names.join(", ") + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_a_stage_is() {
        let line = |stage, done, total, seconds| format_progress(stage, done, total, seconds);
        let gigabytes = Some(5_000_000_000);
        for (line, expected) in [
            (
                line(RunStage::Read, 1_200_000_000, gigabytes, 30.0),
                "reading: 1.2 GB of 5.0 GB (24 %), 40.0 MB/s, 95.0 s left",
            ),
            (
                line(RunStage::Read, 0, gigabytes, 30.0),
                "reading for 30.0 s",
            ),
            (
                line(RunStage::Read, 90_000_000, None, 30.0),
                "reading: 90.0 MB, 3.0 MB/s",
            ),
            (
                line(RunStage::Decide, 12_000, Some(48_000), 10.0),
                "comparing: 12,000 of 48,000 documents (25 %), 1,200 a second, 30.0 s left",
            ),
            (
                line(RunStage::Candidates, 0, None, 130.0),
                "finding candidates for 2 min",
            ),
            (
                line(RunStage::Measure, 3, Some(4), 60.0),
                "measuring: 3 of 4 settings (75 %), 20.0 s left",
            ),
        ] {
            assert_eq!(line, expected);
        }
    }
}
