//! Unix systems.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::ClockId;
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGXCPU};
use signal_hook::iterator::Signals;

use crate::files::{DiskSpace, FileNumber};
pub(crate) use crate::linux::{
    available_memory, create_unnamed, ignored_signals, link_unnamed, open_files, resident_bytes,
    thread_count, total_memory,
};
use crate::process::{InterruptionCode, ProcessFailure, ProcessUse};
use crate::shell::ShellSyntax;

/// Exit codes for signals start here, by the convention of shells.
const SIGNAL_EXIT: i32 = 128;

/// Permissions of a new file, of which the mask of the process takes some away.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    FileExt::read_at(file, bytes, offset)
}

pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    FileExt::read_exact_at(file, bytes, offset)
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    FileExt::write_all_at(file, bytes, offset)
}

/// A directory, open so that its names can be looked up in it and synced.
#[derive(Debug)]
pub(crate) struct OpenDirectory(File);

impl OpenDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::CREATE | OFlags::TRUNC)
    }

    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::empty())
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | flags;
        Ok(File::from(openat(&self.0, name, flags, NEW_FILE_MODE)?))
    }

    pub(crate) fn read_entries(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let status = rustix::fs::fstatvfs(&self.0)?;
        Ok(status.f_bavail * status.f_frsize)
    }
}

pub(crate) const RENAMES_OPEN_DIRECTORIES: bool = true;

pub(crate) const NAMES_IGNORE_CASE: bool = false;

pub(crate) const SHELL_SYNTAX: ShellSyntax = ShellSyntax::Posix;

pub(crate) const HAS_THREADS: bool = true;

pub(crate) fn read_disk_space(directory: &Path) -> Option<DiskSpace> {
    let status = rustix::fs::statvfs(directory).ok()?;
    Some(DiskSpace {
        size: status.f_blocks * status.f_frsize,
        free: status.f_bavail * status.f_frsize,
    })
}

pub(crate) fn file_number(_path: &Path, metadata: &Metadata) -> Option<FileNumber> {
    Some(FileNumber {
        device: metadata.dev(),
        file: metadata.ino(),
    })
}

pub(crate) fn time_of_change(metadata: &Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

pub(crate) fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

pub(crate) fn is_device(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.file_type().is_char_device())
}

pub(crate) fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

pub(crate) fn create_symlink(original: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(original, link)
}

pub(crate) fn read_process_use() -> ProcessUse {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    ProcessUse {
        cpu_time: Some(Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)),
        resident_bytes: resident_bytes(),
        open_files: open_files(),
        max_open_files: rustix::process::getrlimit(Resource::Nofile).current,
        threads: thread_count(),
    }
}

pub(crate) fn limit_process(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    let limit = |current: u64, maximum: u64| Rlimit {
        current: Some(current),
        maximum: Some(maximum),
    };
    // A process that a limit ends leaves no image of its memory.
    setrlimit(Resource::Core, limit(0, 0))?;
    setrlimit(Resource::As, limit(memory_bytes, memory_bytes))?;
    // At the maximum the system kills the process without a signal that tells the limit.
    setrlimit(Resource::Cpu, limit(cpu_seconds, cpu_seconds + 1))?;
    Ok(())
}

pub(crate) fn read_process_failure(status: ExitStatus) -> Option<ProcessFailure> {
    let signal = status.signal()?;
    let description = format!("ended by signal {signal}");
    Some(match signal {
        SIGXCPU => ProcessFailure::CpuLimit,
        SIGABRT => ProcessFailure::Aborted(description),
        _ => ProcessFailure::Other(description),
    })
}

pub(crate) fn make_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

pub(crate) fn machine_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

pub(crate) fn clean_up_when_interrupted(
    end_process: Box<dyn Fn(InterruptionCode) + Send + Sync>,
) -> io::Result<()> {
    let ignored = ignored_signals();
    let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 != 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(wanted.into_iter().filter(|signal| !is_ignored(*signal)))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                end_process(InterruptionCode(SIGNAL_EXIT + signal));
            }
        })?;
    Ok(())
}

#[cfg(feature = "service")]
mod service_signals {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    #[derive(Debug)]
    pub(crate) struct StopSignals {
        terminate: Signal,
        interrupt: Signal,
    }

    impl StopSignals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            })
        }

        pub(crate) async fn next_signal(&mut self) {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        }
    }

    #[derive(Debug)]
    pub(crate) struct ReloadSignals(Signal);

    impl ReloadSignals {
        pub(crate) fn new() -> io::Result<Self> {
            signal(SignalKind::hangup()).map(Self)
        }

        pub(crate) async fn next_signal(&mut self) -> bool {
            self.0.recv().await.is_some()
        }
    }
}

#[cfg(feature = "service")]
pub(crate) use self::service_signals::{ReloadSignals, StopSignals};

/// A terminal of Unix takes bytes.
pub(crate) fn is_output_console() -> bool {
    false
}

pub(crate) fn is_input_console() -> bool {
    false
}

pub(crate) fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

pub(crate) fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Terminals of Unix show colours.
pub(crate) fn prepare_console() {}

pub(crate) fn has_own_console() -> bool {
    false
}

pub(crate) fn data_directory_of_user() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?);
    if cfg!(target_os = "macos") {
        return Some(home.join("Library/Application Support"));
    }
    let stated = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let stated = stated.filter(|directory| directory.is_absolute());
    Some(stated.unwrap_or_else(|| home.join(".local/share")))
}

pub(crate) fn locale_of_user() -> Option<String> {
    None
}

pub(crate) fn open_in_browser(address: &str) -> io::Result<()> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut child = Command::new(opener)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The program ends at once, and is removed from the table of processes.
    std::thread::spawn(move || child.wait());
    Ok(())
}
