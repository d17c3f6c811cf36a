//! The command `lookalike`, for processes that consist of it.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command and returns its exit code. `arguments` begins with the name of the program.
///
/// It takes over the signals of the process and can end it, so the caller has nothing else to do.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| lookalike_cli::run_command_line(&arguments))
}
