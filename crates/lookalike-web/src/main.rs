//! The program of the page: one call on standard input, its answer on standard output.
//!
//! ```text
//!  standard input:   one line of JSON, the call; then bytes that belong to it, or nothing
//!  standard output:  the answer, or nothing
//!  standard error:   the reason of a refusal, a sentence
//!  exit code:        0 after an answer, 2 after a refusal
//! ```
//!
//! It is compiled for `wasm32-wasip1`. A page starts a new instance for every call, so that the memory of one is free
//! before the next one, and a call that fails leaves nothing behind. It opens no files and no connections.

mod calls;
mod side_by_side;
mod sketch_steps;

use std::io::{self, Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
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
