//! The `lookalike` command: near-duplicate text from the command line.
//!
//! `main` parses, runs and turns the result into an exit code: 0 done, 1 done but bad rows were skipped, 2
//! refused or failed. A reader that closes standard output early is success.

mod args;
mod commands;
mod comparison;
mod diff;
mod memory;
mod output;
mod plan;
mod progress;
mod reference;
mod rule;
mod serve;
mod settings;
mod signals;
mod snapshots;
mod summary;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lookalike_batch::ErrorKind;

use args::{Cli, Command};
use output::Printer;

/// Result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    RowsSkipped,
}

impl Outcome {
    /// Returns the outcome of a run that skipped this many rows.
    fn of(rejected: u64) -> Self {
        if rejected > 0 {
            Self::RowsSkipped
        } else {
            Self::Done
        }
    }
}

fn main() -> ExitCode {
    memory::give_back_soon();
    signals::apologise_for_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return explain_usage(&refusal),
    };
    // A service handles signals itself and shuts down in order.
    let prepared = match &cli.command {
        Command::Serve(_) => Ok(()),
        _ => signals::clean_up_when_interrupted(),
    };
    let result = prepared.map_err(Into::into).and_then(|()| run(&cli));
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::RowsSkipped) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            Printer::new(false).fail(&error, hint(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome> {
    match &cli.command {
        Command::Dedup(args) => commands::dedup::run(args),
        Command::Pairs(args) => commands::pairs::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Fingerprint(args) => commands::fingerprint::run(args),
        Command::Segment(args) => commands::segment::run(args),
        Command::Idf(args) => commands::idf::run(args),
        Command::Plant(args) => commands::plant::run(args),
        Command::Index(args) => commands::index::run(args),
        Command::Search(args) => commands::search::run(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Tune(args) => commands::tune::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Store(args) => commands::store::run(args),
        Command::Recipe(args) => commands::recipe::run(args),
        Command::Completions { shell } => commands::generate::completions(*shell),
        Command::Man => commands::generate::manual(),
        Command::Reference => commands::generate::reference(),
    }
}

/// Prints help, the version, or the mistake in the arguments.
fn explain_usage(refusal: &clap::Error) -> ExitCode {
    if refusal.use_stderr() {
        let text = refusal.to_string();
        match text.strip_prefix("error: ") {
            // All failures have the same prefix.
            Some(text) => Printer::new(false).fail(text.trim_end(), None),
            // A missing command is answered with help.
            None => drop(refusal.print()),
        }
        return ExitCode::from(2);
    }
    match refusal.print() {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let by_kind = error
        .downcast_ref::<lookalike_batch::Error>()
        .map(lookalike_batch::Error::kind);
    let by_cause = error.downcast_ref::<io::Error>().map(io::Error::kind);
    by_kind == Some(ErrorKind::BrokenPipe) || by_cause == Some(io::ErrorKind::BrokenPipe)
}

/// Returns a hint what to do next about an error, if its message does not contain one.
fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let error = error.downcast_ref::<lookalike_batch::Error>()?;
    match error.kind() {
        ErrorKind::BadRow => {
            Some("Correct the row, or leave out --strict: bad rows are then skipped and reported.")
        }
        ErrorKind::Output => Some("No incomplete output was written under its name."),
        _ => None,
    }
}
