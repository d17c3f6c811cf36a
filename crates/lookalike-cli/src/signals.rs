//! Ends of the process other than the end of `main`: signals and panics.

use std::io;
use std::panic::PanicHookInfo;
use std::process;

use lookalike_io::sink;
use lookalike_system::InterruptionCode;

use crate::output::OutputPrinter;
use crate::progress;

/// Makes an interruption of the process, for example by Ctrl-C, remove incomplete outputs and end the process with the
/// exit code of the system.
///
/// # Errors
/// If the system refuses.
pub(crate) fn clean_up_when_interrupted() -> io::Result<()> {
    lookalike_system::clean_up_when_interrupted(|InterruptionCode(code)| {
        sink::abandon_all();
        progress::clear_progress_bar();
        process::exit(code);
    })
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
