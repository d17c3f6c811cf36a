//! The process: limits, use of resources, signals, and how a child ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::current;

/// `true` if a process can start threads, which WebAssembly cannot.
pub const HAS_THREADS: bool = current::HAS_THREADS;

/// Resources of this process. A field is `None` if the system does not report it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessUse {
    /// Processor time, user and system.
    pub cpu_time: Option<Duration>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors, or handles on Windows.
    pub open_files: Option<u64>,
    /// Most file descriptors that can be open.
    pub max_open_files: Option<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
}

/// Returns the resources that this process uses.
pub fn read_process_use() -> ProcessUse {
    current::read_process_use()
}

/// Limits the memory and the processor time of this process for the rest of its life.
///
/// On Unix the memory is address space. On Windows it is memory that the system has promised, and the process is put into a
/// job, which ends with it.
///
/// # Errors
/// If the system refuses the limits.
pub fn limit_process(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    current::limit_process(memory_bytes, cpu_seconds)
}

/// End of a child process that did not exit by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessFailure {
    /// The limit of processor time ended it.
    CpuLimit,
    /// It stopped itself, for example because it has no stack left; a phrase says how: `ended by signal 6`.
    Aborted(String),
    /// Something else ended it, as the phrase says.
    Other(String),
}

/// Returns how a child process ended, or `None` if it exited by itself.
pub fn read_process_failure(status: ExitStatus) -> Option<ProcessFailure> {
    current::read_process_failure(status)
}

/// Makes files that this process creates from now on readable by their owner only. On Windows files have the rights of the
/// directory in which they are, and the call does nothing.
pub fn make_files_private() {
    current::make_files_private();
}

/// Returns the name of this machine.
pub fn machine_name() -> String {
    current::machine_name()
}

/// Exit code of a process that a person or the system has interrupted: 128 plus the number of the signal on Unix,
/// `0xC000013A` on Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptionCode(pub i32);

/// Calls `end_process` once the process is interrupted, in another thread. On Unix these are SIGINT, SIGTERM and SIGHUP,
/// except those that were ignored when the process started, for example under `nohup`. On Windows these are Ctrl-C,
/// Ctrl-Break, the end of the console's window, and the end of the session.
///
/// # Errors
/// If the system refuses.
pub fn clean_up_when_interrupted(
    end_process: impl Fn(InterruptionCode) + Send + Sync + 'static,
) -> io::Result<()> {
    current::clean_up_when_interrupted(Box::new(end_process))
}

#[cfg(feature = "service")]
mod service_requests {
    use std::io;

    use crate::current;

    /// Requests to stop the service: SIGTERM and SIGINT on Unix; Ctrl-C, Ctrl-Break, the end of the console's window and the
    /// end of the session on Windows.
    #[derive(Debug)]
    pub struct StopRequests(current::StopSignals);

    impl StopRequests {
        /// Begins to receive the requests, which then no longer end the process. It needs a runtime.
        ///
        /// # Errors
        /// If the system refuses.
        pub fn new() -> io::Result<Self> {
            current::StopSignals::new().map(Self)
        }

        /// Waits for the next request.
        pub async fn next_request(&mut self) {
            self.0.next_signal().await;
        }
    }

    /// Requests to read keys and certificates again: SIGHUP on Unix; none on Windows.
    #[derive(Debug)]
    pub struct ReloadRequests(current::ReloadSignals);

    impl ReloadRequests {
        /// Begins to receive the requests. It needs a runtime.
        ///
        /// # Errors
        /// If the system refuses.
        pub fn new() -> io::Result<Self> {
            current::ReloadSignals::new().map(Self)
        }

        /// Waits for the next request. Returns `false` if there can be none any more.
        pub async fn next_request(&mut self) -> bool {
            self.0.next_signal().await
        }
    }
}

#[cfg(feature = "service")]
pub use self::service_requests::{ReloadRequests, StopRequests};
