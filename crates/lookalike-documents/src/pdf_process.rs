//! PDF files, read in processes of their own.
//!
//! The library that reads PDF files bounds neither time nor memory nor stack, and a file of a few hundred bytes
//! can exhaust each. So every file is read by a child process, whose address space and processor time the
//! system limits, and which is killed after a limit of time. A child that ends this way becomes a reason
//! that names the limit, as every other file that cannot be read.
//!
//! Protocol: the child has the file on standard input, and as its last three arguments the bytes of address space,
//! the seconds of processor time and the largest text in bytes. It ends with 0 after the text, or with 1 after
//! the reason why there is none, on standard output. `read_pdf_input` is its work.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lookalike_system::{ProcessFailure, read_process_failure};

use crate::extraction::NOT_WANTED;

/// Stack of the thread that reads a PDF file, because nested objects are read by recursion.
pub(crate) const PDF_STACK_BYTES: usize = 64 << 20;

/// Bytes of a child's messages that are read.
const MESSAGE_BYTES: usize = 64 << 10;

/// Longest time between two looks at a child that runs.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// Parts of the messages of the standard library and the command when memory cannot be allocated.
const LACK_OF_MEMORY: [&str; 2] = ["memory allocation", "out of memory"];

/// The advice about a PDF file that cannot be read here.
const PDF_ADVICE: &str = "extract its text first, for example with `pdftotext`";

/// Beginnings of the names of variables that may hold keys: those of the service and of object stores.
const SECRET_NAMES: [&str; 5] = ["LOOKALIKE_", "AWS_", "GOOGLE_", "AZURE_", "HF_"];

fn is_secret_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    SECRET_NAMES
        .iter()
        .any(|start| name.starts_with(start.as_bytes()))
}

/// Limits for reading one PDF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PdfLimits {
    /// Address space in bytes.
    pub memory_bytes: u64,
    /// Processor time in seconds.
    pub cpu_seconds: u64,
    /// Time from start to end in seconds.
    pub wall_seconds: u64,
}

impl Default for PdfLimits {
    /// 2 GiB, 60 seconds of processor time, 120 seconds in all.
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            cpu_seconds: 60,
            wall_seconds: 120,
        }
    }
}

/// A program that reads PDF files, and its limits.
#[derive(Debug, Clone)]
pub struct PdfReader {
    program: PathBuf,
    argument: OsString,
    limits: PdfLimits,
}

impl PdfReader {
    /// Creates a reader that starts `program` with `argument` and three numbers for each file: the bytes of address space,
    /// the seconds of processor time, and the bytes of the largest text.
    pub fn new(program: PathBuf, argument: impl Into<OsString>, limits: PdfLimits) -> Self {
        Self {
            program,
            argument: argument.into(),
            limits,
        }
    }

    /// Returns the text of a PDF file.
    ///
    /// # Errors
    /// The reason why there is no text: a phrase without a full stop.
    pub fn read_pdf(&self, bytes: &[u8], max_bytes: u32) -> Result<String, String> {
        self.read_pdf_while(bytes, max_bytes, &|| true)
    }

    /// As [`read_pdf`](Self::read_pdf), but kills the child once `is_wanted` returns `false`.
    ///
    /// # Errors
    /// The reason why there is no text: a phrase without a full stop.
    pub(crate) fn read_pdf_while(
        &self,
        bytes: &[u8],
        max_bytes: u32,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<String, String> {
        let mut child = self
            .start_child(max_bytes)
            .map_err(|cause| format!("the reader of PDF files cannot be started: {cause}"))?;
        let deadline = Instant::now() + Duration::from_secs(self.limits.wall_seconds);
        let (input, output, messages) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (ended, output, messages) = thread::scope(|scope| {
            scope.spawn(move || {
                // A child that ends early does not read all of its input; its status says why.
                input.map(|mut input| input.write_all(bytes))
            });
            let output = scope.spawn(move || read_at_most(output, max_bytes as usize + 1));
            let messages = scope.spawn(move || read_at_most(messages, MESSAGE_BYTES));
            let ended = wait_for_end(&mut child, deadline, is_wanted);
            let joined = |it: thread::ScopedJoinHandle<'_, Vec<u8>>| it.join().unwrap_or_default();
            (ended, joined(output), joined(messages))
        });
        match ended.map_err(|cause| format!("the reader of PDF files is lost: {cause}"))? {
            ChildEnd::Exited(status) => self.interpret_end(status, output, &messages),
            ChildEnd::TooLate => {
                Err(self.describe_limit(&format!("{} s", self.limits.wall_seconds)))
            }
            ChildEnd::NotWanted => Err(NOT_WANTED.to_owned()),
        }
    }

    fn start_child(&self, max_bytes: u32) -> std::io::Result<Child> {
        let PdfLimits {
            memory_bytes,
            cpu_seconds,
            ..
        } = self.limits;
        let mut command = Command::new(&self.program);
        // A file that misleads its reader finds no keys in the environment.
        for (name, _) in env::vars_os().filter(|(name, _)| is_secret_name(name)) {
            command.env_remove(name);
        }
        command
            .arg(&self.argument)
            .args([memory_bytes, cpu_seconds, max_bytes.into()].map(|limit| limit.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    fn interpret_end(
        &self,
        status: ExitStatus,
        output: Vec<u8>,
        messages: &[u8],
    ) -> Result<String, String> {
        let messages = String::from_utf8_lossy(messages);
        match (status.code(), read_process_failure(status)) {
            (Some(0), _) => String::from_utf8(output).map_err(|_| "its text is no text".to_owned()),
            (Some(1), _) => Err(String::from_utf8_lossy(&output).into_owned()),
            (_, Some(ProcessFailure::CpuLimit)) => {
                Err(self
                    .describe_limit(&format!("{} s of processor time", self.limits.cpu_seconds)))
            }
            _ if LACK_OF_MEMORY
                .iter()
                .any(|phrase| messages.contains(phrase)) =>
            {
                Err(self
                    .describe_limit(&format!("{} MiB of memory", self.limits.memory_bytes >> 20)))
            }
            (_, Some(ProcessFailure::Aborted(_))) if messages.contains("overflowed its stack") => {
                Err(format!(
                    "its parts are nested too deeply, which takes more than {} MiB of stack, the limit for a PDF \
                 file: {PDF_ADVICE}",
                    PDF_STACK_BYTES >> 20
                ))
            }
            (_, failure) => Err(format!(
                "the reader of PDF files failed ({}): {PDF_ADVICE}",
                match failure {
                    Some(
                        ProcessFailure::Aborted(description) | ProcessFailure::Other(description),
                    ) => description,
                    _ => messages.lines().next().unwrap_or("no message").to_owned(),
                }
            )),
        }
    }

    fn describe_limit(&self, limit: &str) -> String {
        format!("reading it takes more than {limit}, the limit for a PDF file: {PDF_ADVICE}")
    }
}

/// The end of a child process.
enum ChildEnd {
    Exited(ExitStatus),
    /// Killed at the deadline.
    TooLate,
    /// Killed because nobody wants the text any more.
    NotWanted,
}

/// Waits for the end of a child, which is killed after the deadline, and once it is not wanted any more.
fn wait_for_end(
    child: &mut Child,
    deadline: Instant,
    is_wanted: &dyn Fn() -> bool,
) -> std::io::Result<ChildEnd> {
    let mut wait = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ChildEnd::Exited(status));
        }
        let is_late = Instant::now() >= deadline;
        if is_late || !is_wanted() {
            child.kill()?;
            child.wait()?;
            return Ok(if is_late {
                ChildEnd::TooLate
            } else {
                ChildEnd::NotWanted
            });
        }
        thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Reads a pipe to its end or until it has passed a limit. Closing it then ends the child that writes.
fn read_at_most(pipe: Option<impl Read>, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // A pipe that breaks has ended; the status of the child says why.
        let _ = pipe.take(most as u64).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn variables_that_may_hold_keys_are_secret() {
        let is_secret = |name: &str| is_secret_name(OsStr::new(name));
        assert!(is_secret("LOOKALIKE_ADMIN_KEY") && is_secret("AWS_SECRET_ACCESS_KEY"));
        assert!(!is_secret("PATH") && !is_secret("MY_LOOKALIKE_DIR") && !is_secret(""));
    }

    /// A child that would sleep for a day is killed once nobody wants its text.
    #[test]
    fn unwanted_child_is_killed() {
        let limits = PdfLimits {
            wall_seconds: 10,
            ..PdfLimits::default()
        };
        let asleep = PdfReader::new("sleep".into(), "86400", limits);
        let asked = AtomicUsize::new(0);
        let is_wanted = || asked.fetch_add(1, Ordering::Relaxed) < 3;
        let reason = asleep.read_pdf_while(b"%PDF", 1000, &is_wanted);
        assert_eq!(reason, Err(NOT_WANTED.to_owned()));
        assert_eq!(asked.into_inner(), 4);
    }
}
