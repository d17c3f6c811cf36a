//! Targets without a system of their own, for example WebAssembly in a browser: files and directories are those of the
//! standard library, known by their paths. Nothing else is known, and every other call is unsupported.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::UNIX_EPOCH;

use crate::files::{DiskSpace, FileNumber};
use crate::process::{InterruptionCode, ProcessFailure, ProcessUse};
use crate::shell::ShellSyntax;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) const HAS_THREADS: bool = false;

// Nothing moves the position between two calls of a program with one thread.

pub(crate) fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    file.read(bytes)
}

pub(crate) fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

pub(crate) fn write_all_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// A directory, which is known by its path.
#[derive(Debug)]
pub(crate) struct OpenDirectory(PathBuf);

impl OpenDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let options = OpenOptions::new().create(true).truncate(true).to_owned();
        self.open_with(options, name)
    }

    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.open_with(OpenOptions::new(), name)
    }

    fn open_with(&self, mut options: OpenOptions, name: &str) -> io::Result<File> {
        options.read(true).write(true).open(self.0.join(name))
    }

    pub(crate) fn read_entries(&self) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        replace_file(&self.0.join(from), &self.0.join(to))
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }

    /// Names are not durable: they end with the program.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        unsupported()
    }
}

pub(crate) const RENAMES_OPEN_DIRECTORIES: bool = true;

pub(crate) const NAMES_IGNORE_CASE: bool = false;

pub(crate) const SHELL_SYNTAX: ShellSyntax = ShellSyntax::Posix;

pub(crate) fn read_disk_space(_directory: &Path) -> Option<DiskSpace> {
    None
}

pub(crate) fn file_number(_path: &Path, _metadata: &Metadata) -> Option<FileNumber> {
    None
}

pub(crate) fn time_of_change(metadata: &Metadata) -> (i64, i64) {
    let changed = metadata.modified().ok();
    let since = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    since.map_or((0, 0), |since| {
        (since.as_secs() as i64, since.subsec_nanos().into())
    })
}

pub(crate) fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::metadata(path)?;
    std::path::absolute(path)
}

pub(crate) fn is_device(_path: &Path) -> bool {
    false
}

pub(crate) fn create_unnamed(_directory: &Path) -> Option<File> {
    None
}

pub(crate) fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

pub(crate) fn create_symlink(_original: &Path, _link: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn total_memory() -> Option<u64> {
    None
}

pub(crate) fn available_memory() -> Option<u64> {
    None
}

pub(crate) fn read_process_use() -> ProcessUse {
    ProcessUse {
        cpu_time: None,
        resident_bytes: None,
        open_files: None,
        max_open_files: None,
        threads: None,
    }
}

pub(crate) fn limit_process(_memory_bytes: u64, _cpu_seconds: u64) -> io::Result<()> {
    unsupported()
}

pub(crate) fn read_process_failure(_status: ExitStatus) -> Option<ProcessFailure> {
    None
}

pub(crate) fn make_files_private() {}

pub(crate) fn machine_name() -> String {
    String::new()
}

/// Nothing interrupts such a program.
pub(crate) fn clean_up_when_interrupted(
    _end_process: Box<dyn Fn(InterruptionCode) + Send + Sync>,
) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "service")]
mod service_signals {
    use std::future::pending;
    use std::io;

    #[derive(Debug)]
    pub(crate) struct StopSignals;

    impl StopSignals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn next_signal(&mut self) {
            pending().await
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
    true
}

pub(crate) fn is_input_console() -> bool {
    true
}

pub(crate) fn standard_output() -> io::Result<File> {
    unsupported()
}

pub(crate) fn standard_input() -> io::Result<File> {
    unsupported()
}

pub(crate) fn prepare_console() {}

pub(crate) fn has_own_console() -> bool {
    false
}

pub(crate) fn data_directory_of_user() -> Option<PathBuf> {
    None
}

pub(crate) fn locale_of_user() -> Option<String> {
    None
}

pub(crate) fn open_in_browser(_address: &str) -> io::Result<()> {
    unsupported()
}
