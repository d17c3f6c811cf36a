//! Ends of the process other than the end of `main`: signals and panics.

use std::io;
use std::panic::PanicHookInfo;
use std::process;

use lookalike_io::sink;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::OutputPrinter;
use crate::progress;

/// Exit codes for signals start here, by the convention of shells.
const SIGNAL_EXIT: i32 = 128;

/// Makes SIGINT, SIGTERM and SIGHUP remove incomplete outputs and end the process with 128 plus the signal
/// number. Signals that were ignored when the process started, for example under `nohup`, stay ignored.
///
/// # Errors
/// If the system refuses the handlers.
pub(crate) fn clean_up_when_interrupted() -> io::Result<()> {
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(
        wanted
            .into_iter()
            .filter(|signal| ignored >> (signal - 1) & 1 == 0),
    )?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                sink::abandon_all();
                progress::clear_progress_bar();
                process::exit(SIGNAL_EXIT + signal);
            }
        })?;
    Ok(())
}

/// Returns the signals that this process ignores, one bit each; 0 on a system that does not tell.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Makes a panic in any thread remove incomplete outputs, ask for a report in a sentence, and end the process
/// with 2. Panics that are caught, of libraries that read damaged files, do not come here (`lookalike::catch_panics`).
pub(crate) fn apologise_for_panics() {
    std::panic::set_hook(Box::new(|panic| {
        sink::abandon_all();
        let hint = "Please report it with the command that you ran. No incomplete output was \
                    written under its name.";
        OutputPrinter::new(false).print_failure(apology_message(panic), Some(hint));
        process::exit(2);
    }));
}

fn apology_message(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let what = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = what.unwrap_or("no message");
    let place = panic
        .location()
        .map_or_else(String::new, |place| format!(" at {place}"));
    format!("this is a mistake in the program, not in your data: {what}{place}")
}
