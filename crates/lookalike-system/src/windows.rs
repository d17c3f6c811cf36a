//! Windows. Calls that the standard library does not have are in [`calls`].

#[allow(unsafe_code)]
mod calls;

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsHandle;
use std::path::{Component, Path, PathBuf, Prefix};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use self::calls::StandardStream;
use crate::files::{DiskSpace, FileNumber};
use crate::process::{InterruptionCode, ProcessFailure, ProcessUse};
use crate::shell::ShellSyntax;

/// Longest time for which a file is renamed again while another program has it open.
const LONGEST_RENAME: Duration = Duration::from_secs(2);

/// Exit code of a process that Ctrl-C ends.
const CONTROL_C_EXIT: u32 = 0xC000_013A;

/// Exit codes of a process that its job ends for its processor time: `ERROR_NOT_ENOUGH_QUOTA`, `STATUS_QUOTA_EXCEEDED`.
const CPU_LIMIT_EXITS: [u32; 2] = [1816, 0xC000_0044];

/// Exit code of a process without stack: `STATUS_STACK_OVERFLOW`.
const STACK_OVERFLOW_EXIT: u32 = 0xC000_00FD;

/// Exit code of a process that aborted: `STATUS_STACK_BUFFER_OVERRUN`, which `abort` uses.
const ABORT_EXIT: u32 = 0xC000_0409;

/// Codes from here on are errors of the system and not of the program.
const FIRST_SYSTEM_ERROR: u32 = 0xC000_0000;

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// A directory. It is known by its path, because an open handle would keep others from renaming it.
#[derive(Debug)]
pub(crate) struct OpenDirectory(PathBuf);

impl OpenDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(path.to_path_buf()))
    }

    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        options.open(self.0.join(name))
    }

    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).open(self.0.join(name))
    }

    pub(crate) fn read_entries(&self) -> io::Result<Vec<OsString>> {
        let entries = std::fs::read_dir(&self.0)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        replace_file(&self.0.join(from), &self.0.join(to))
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }

    /// Does nothing. NTFS writes changes of names to its journal in their order, and no call waits for that.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        calls::read_disk_space(&self.0).map(|space| space.free)
    }
}

pub(crate) const RENAMES_OPEN_DIRECTORIES: bool = false;

pub(crate) const NAMES_IGNORE_CASE: bool = true;

pub(crate) const SHELL_SYNTAX: ShellSyntax = ShellSyntax::Windows;

pub(crate) const HAS_THREADS: bool = true;

pub(crate) fn read_disk_space(directory: &Path) -> Option<DiskSpace> {
    calls::read_disk_space(directory).ok()
}

pub(crate) fn file_number(path: &Path, _metadata: &Metadata) -> Option<FileNumber> {
    // Asking for no right at all succeeds also while another process has the file open.
    let file = OpenOptions::new().access_mode(0).open(path).ok()?;
    calls::read_file_number(&file)
}

pub(crate) fn time_of_change(metadata: &Metadata) -> (i64, i64) {
    let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
    match changed.duration_since(UNIX_EPOCH) {
        Ok(after) => (after.as_secs() as i64, after.subsec_nanos().into()),
        Err(before) => {
            let before = before.duration();
            (
                -(before.as_secs() as i64),
                -i64::from(before.subsec_nanos()),
            )
        }
    }
}

pub(crate) fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let resolved = path.canonicalize()?;
    let plain = without_verbatim_prefix(&resolved);
    Ok(plain.unwrap_or(resolved))
}

/// Returns a path that begins with `\\?\` without these characters, if it means the same.
fn without_verbatim_prefix(path: &Path) -> Option<PathBuf> {
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else {
        return None;
    };
    let mut plain = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => PathBuf::from(format!("{}:\\", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            let mut root = OsString::from(r"\\");
            root.push(server);
            root.push(r"\");
            root.push(share);
            root.push(r"\");
            PathBuf::from(root)
        }
        _ => return None,
    };
    plain.extend(components.filter(|part| matches!(part, Component::Normal(_))));
    // The system would remove full stops and spaces at the end of a name, and open devices.
    let is_unchanged = std::path::absolute(&plain).is_ok_and(|read| read == plain);
    is_unchanged.then_some(plain)
}

/// Names that stand for devices in every directory. `COM1` and the like are devices too; nobody writes tables to them.
const DEVICE_NAMES: [&str; 5] = ["NUL", "CON", "CONOUT$", "CONIN$", r"\\.\NUL"];

pub(crate) fn is_device(path: &Path) -> bool {
    DEVICE_NAMES
        .iter()
        .any(|name| path.as_os_str().eq_ignore_ascii_case(name))
}

pub(crate) fn create_unnamed(_directory: &Path) -> Option<File> {
    None
}

pub(crate) fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    let end = Instant::now() + LONGEST_RENAME;
    let mut wait = Duration::from_millis(1);
    loop {
        match std::fs::rename(from, to) {
            Err(cause) if calls::is_in_use(&cause) && Instant::now() < end => {
                sleep(wait);
                wait = (wait * 2).min(Duration::from_millis(100));
            }
            renamed => return renamed,
        }
    }
}

pub(crate) fn create_symlink(original: &Path, link: &Path) -> io::Result<()> {
    if original.is_dir() {
        std::os::windows::fs::symlink_dir(original, link)
    } else {
        std::os::windows::fs::symlink_file(original, link)
    }
}

pub(crate) fn total_memory() -> Option<u64> {
    calls::read_memory().map(|memory| memory.total)
}

pub(crate) fn available_memory() -> Option<u64> {
    calls::read_memory().map(|memory| memory.available)
}

pub(crate) fn read_process_use() -> ProcessUse {
    ProcessUse {
        cpu_time: calls::read_cpu_time(),
        resident_bytes: calls::read_resident_bytes(),
        open_files: calls::count_handles(),
        max_open_files: None,
        threads: None,
    }
}

pub(crate) fn limit_process(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    calls::limit_process(memory_bytes, cpu_seconds)
}

pub(crate) fn read_process_failure(status: ExitStatus) -> Option<ProcessFailure> {
    let code = status.code()? as u32;
    let description = format!("ended by error {code:#X}");
    match code {
        _ if CPU_LIMIT_EXITS.contains(&code) => Some(ProcessFailure::CpuLimit),
        STACK_OVERFLOW_EXIT | ABORT_EXIT => Some(ProcessFailure::Aborted(description)),
        FIRST_SYSTEM_ERROR.. => Some(ProcessFailure::Other(description)),
        _ => None,
    }
}

/// Files have the rights of their directory. That of a profile is closed to other users.
pub(crate) fn make_files_private() {}

pub(crate) fn machine_name() -> String {
    let name = std::env::var_os("COMPUTERNAME").unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub(crate) fn clean_up_when_interrupted(
    end_process: Box<dyn Fn(InterruptionCode) + Send + Sync>,
) -> io::Result<()> {
    calls::handle_interruption(Box::new(move || {
        end_process(InterruptionCode(CONTROL_C_EXIT as i32));
    }))
}

#[cfg(feature = "service")]
mod service_signals {
    use std::future::pending;
    use std::io;

    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
    };

    #[derive(Debug)]
    pub(crate) struct StopSignals {
        control_c: CtrlC,
        control_break: CtrlBreak,
        close: CtrlClose,
        shutdown: CtrlShutdown,
    }

    impl StopSignals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self {
                control_c: ctrl_c()?,
                control_break: ctrl_break()?,
                close: ctrl_close()?,
                shutdown: ctrl_shutdown()?,
            })
        }

        pub(crate) async fn next_signal(&mut self) {
            tokio::select! {
                _ = self.control_c.recv() => {}
                _ = self.control_break.recv() => {}
                _ = self.close.recv() => {}
                _ = self.shutdown.recv() => {}
            }
        }
    }

    #[derive(Debug)]
    pub(crate) struct ReloadSignals;

    impl ReloadSignals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn next_signal(&mut self) -> bool {
            pending().await
        }
    }
}

#[cfg(feature = "service")]
pub(crate) use self::service_signals::{ReloadSignals, StopSignals};

pub(crate) fn is_output_console() -> bool {
    use std::io::IsTerminal as _;
    io::stdout().is_terminal()
}

pub(crate) fn is_input_console() -> bool {
    use std::io::IsTerminal as _;
    io::stdin().is_terminal()
}

pub(crate) fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

pub(crate) fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

pub(crate) fn prepare_console() {
    calls::show_colours(StandardStream::Output);
    calls::show_colours(StandardStream::Error);
}

pub(crate) fn has_own_console() -> bool {
    calls::count_console_processes() == 1
}

pub(crate) fn data_directory_of_user() -> Option<PathBuf> {
    let directory = PathBuf::from(std::env::var_os("LOCALAPPDATA")?);
    directory.is_absolute().then_some(directory)
}

pub(crate) fn locale_of_user() -> Option<String> {
    calls::read_locale()
}

pub(crate) fn open_in_browser(address: &str) -> io::Result<()> {
    // This program takes the address as it is. `start` is a command of `cmd`, for which some characters are its own.
    Command::new("rundll32.exe")
        .arg("url.dll,FileProtocolHandler")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}
