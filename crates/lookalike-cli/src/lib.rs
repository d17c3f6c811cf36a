//! The `lookalike` command: near-duplicate text from the command line.
//!
//! It is a library so that the Python package runs the same command. The program itself, `main.rs`, adds the memory
//! allocator.
//!
//! [`run_command_line`] parses, runs and turns the result into an exit code: 0 done, 1 done but bad rows were skipped, 2
//! refused or failed. A reader that closes standard output early is success. [`run_page_command_line`] does the same with
//! the few commands of the page in the browser.

// Messages and helpers of the service are not used without it.
#![cfg_attr(not(feature = "service"), allow(dead_code))]

mod bad_row_groups;
mod commands;
mod free_memory;
mod language;
mod output;
mod progress;
mod signals;
mod text_diff;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use lookalike_io::ErrorKind;
use lookalike_system::quote_for_shell;

use commands::{Command, CommandSet, PageCommand, TypedLine, chinese_help};
pub use free_memory::{FreeMemoryHooks, set_free_memory_hooks};
use language::engine_phrases::translate_error;
use language::{MessageLanguage, messages};
use output::OutputPrinter;
#[cfg(feature = "service")]
use {commands::serve_desktop, language::read_locale_variable};

/// Result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandOutcome {
    Done,
    RowsSkipped,
}

impl CommandOutcome {
    /// Returns the outcome of a run that skipped this many rows.
    fn from_rejected(rejected: u64) -> Self {
        if rejected > 0 {
            Self::RowsSkipped
        } else {
            Self::Done
        }
    }
}

/// Runs the command with the arguments of a process, the first of which is the program, and returns the exit code.
///
/// The process must consist of this call: signals and panics are handled for all threads, and both can end it.
pub fn run_command_line(arguments: &[OsString]) -> u8 {
    lookalike_system::prepare_console();
    signals::apologise_for_panics();
    #[cfg(feature = "service")]
    // A double click gives neither arguments nor a console that somebody uses.
    if arguments.len() <= 1 && lookalike_system::has_own_console() {
        return run_desktop();
    }
    run_typed_line::<Command>(arguments)
}

/// Runs `dedup` or `passages` with the arguments of a process, the first of which is the program, and returns the exit code:
/// for the page in the browser, whose module has no other command.
///
/// The process must consist of this call, as for [`run_command_line`].
pub fn run_page_command_line(arguments: &[OsString]) -> u8 {
    signals::apologise_for_panics();
    run_typed_line::<PageCommand>(arguments)
}

/// Parses and runs a command of this set.
fn run_typed_line<C: CommandSet>(arguments: &[OsString]) -> u8 {
    let line = match TypedLine::<C>::parse_arguments(arguments) {
        Ok(line) => line,
        Err(refusal) => return explain_usage(&refusal),
    };
    let prepared = if line.command.handles_interruptions() {
        Ok(())
    } else {
        signals::clean_up_when_interrupted()
    };
    let result = prepared
        .map_err(Into::into)
        .and_then(|()| line.command.run_command());
    match result {
        Ok(CommandOutcome::Done) => 0,
        Ok(CommandOutcome::RowsSkipped) => 1,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            print_error(&error);
            2
        }
    }
}

/// Prints why a command failed, in the language of this process.
fn print_error(error: &anyhow::Error) {
    let text = error.to_string();
    let hint = error_hint(error);
    OutputPrinter::new(false).print_failure(translate_error(&text), hint.as_deref());
}

/// Serves the console of the service to the browser of a person who has no terminal. After a failure the window stays open,
/// because it would end with the process.
#[cfg(feature = "service")]
fn run_desktop() -> u8 {
    MessageLanguage::from_environment(read_locale_variable).apply();
    match serve_desktop() {
        Ok(()) => 0,
        Err(error) => {
            print_error(&error);
            wait_for_reader();
            2
        }
    }
}

/// Waits until a person has read the window of the program, which ends with the process.
fn wait_for_reader() {
    OutputPrinter::new(false).print_note(&format!("{}\n", messages::press_enter()));
    // The answer says nothing, and a closed input is one, too.
    let _ = io::stdin().read_line(&mut String::new());
}

/// Prints help, the version, or the mistake in the arguments.
fn explain_usage(refusal: &clap::Error) -> u8 {
    if let Some(hint) = suggest_command(refusal) {
        explain_path(&hint);
        return 2;
    }
    if refusal.use_stderr() {
        let text = refusal.to_string();
        match text.strip_prefix("error: ") {
            // All failures have the same prefix.
            Some(text) => {
                let text = text.trim_end();
                let text = match MessageLanguage::current() {
                    MessageLanguage::English => Cow::Borrowed(text),
                    MessageLanguage::Chinese => Cow::Owned(chinese_help::translate_refusal(text)),
                };
                OutputPrinter::new(false).print_failure(text, None);
            }
            // A missing command is answered with help.
            None => drop(print_help(refusal)),
        }
        return 2;
    }
    match print_help(refusal) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => 2,
        _ => 0,
    }
}

/// Prints what was probably meant by a path in place of a command. Files that are dropped on the icon of the program come so,
/// too, and the person who did it sees the window only as long as the program runs.
fn explain_path(hint: &str) {
    let printer = OutputPrinter::new(false);
    if lookalike_system::has_own_console() {
        printer.print_failure(hint, Some(&messages::drop_on_the_page()));
        wait_for_reader();
    } else {
        printer.print_failure(hint, None);
    }
}

/// Prints help or the version in the language of this process.
fn print_help(help: &clap::Error) -> io::Result<()> {
    if MessageLanguage::current() == MessageLanguage::English {
        return help.print();
    }
    let printer = OutputPrinter::new(false);
    let rendered = help.render();
    let text = if printer.paints_output() {
        rendered.ansi().to_string()
    } else {
        rendered.to_string()
    };
    let text = chinese_help::translate_rendered(&text);
    if help.use_stderr() {
        printer.print_note(&text);
        return Ok(());
    }
    printer.write_data(&text)
}

/// Returns what was probably meant by a file or folder in place of a command.
fn suggest_command(refusal: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(given)) = refusal.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let path = Path::new(given);
    let quoted = quote_for_shell(given);
    if path.is_dir() {
        return Some(messages::folder_is_no_command(given, &quoted));
    }
    path.is_file()
        .then(|| messages::file_is_no_command(given, &quoted))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let by_kind = error
        .downcast_ref::<lookalike_io::Error>()
        .map(lookalike_io::Error::kind);
    let by_cause = error.downcast_ref::<io::Error>().map(io::Error::kind);
    by_kind == Some(ErrorKind::BrokenPipe) || by_cause == Some(io::ErrorKind::BrokenPipe)
}

/// Returns a hint what to do next about an error, if its message does not contain one.
fn error_hint(error: &anyhow::Error) -> Option<String> {
    let error = error.downcast_ref::<lookalike_io::Error>()?;
    match error.kind() {
        ErrorKind::BadRow => Some(messages::correct_the_row()),
        ErrorKind::Output => Some(messages::nothing_incomplete()),
        _ => None,
    }
}
