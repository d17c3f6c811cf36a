//! The program of the page: one call, or one run of the command over files.
//!
//! Without arguments it answers one call of the page:
//!
//! ```text
//!  standard input:   one line of JSON, the call; then bytes that belong to it, or nothing
//!  standard output:  the answer, or nothing
//!  standard error:   the reason of a refusal, a sentence
//!  exit code:        0 after an answer, 2 after a refusal
//! ```
//!
//! With arguments it is the command `lookalike`, with `dedup` and `passages` alone, over files that the page gives it. Standard
//! input then has jieba's dictionary, or nothing.
//!
//! It is compiled for `wasm32-wasip1`. A page starts a new instance for every call and every run, so that the memory of one is
//! free before the next one, and one that fails leaves nothing behind. It opens no connections.

mod calls;
mod side_by_side;
mod sketch_steps;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() > 1 {
        run_command(&arguments)
    } else {
        answer_standard_input()
    }
}

/// Runs the command with these arguments, the first of which is the program.
fn run_command(arguments: &[OsString]) -> ExitCode {
    let mut dictionary = Vec::new();
    let read = io::stdin().read_to_end(&mut dictionary);
    let provided = match read {
        Ok(0) => Ok(()),
        Ok(_) => side_by_side::provide_dictionary(&dictionary),
        Err(cause) => Err(format!("the dictionary cannot be read: {cause}")),
    };
    drop(dictionary);
    match provided {
        Ok(()) => ExitCode::from(lookalike_cli::run_page_command_line(arguments)),
        Err(refusal) => fail(&refusal),
    }
}

fn answer_standard_input() -> ExitCode {
    let mut input = Vec::new();
    let answered = io::stdin()
        .read_to_end(&mut input)
        .map_err(|cause| format!("the call cannot be read: {cause}"))
        .and_then(|_| calls::answer_call(&input));
    match answered.map(|answer| write_answer(&answer)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(cause)) => fail(&format!("the answer cannot be written: {cause}")),
        Err(refusal) => fail(&refusal),
    }
}

fn write_answer(answer: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(answer.as_bytes())?;
    output.flush()
}

fn fail(refusal: &str) -> ExitCode {
    // There is no other place to report that standard error fails.
    let _ = io::stderr().write_all(refusal.as_bytes());
    ExitCode::from(2)
}
