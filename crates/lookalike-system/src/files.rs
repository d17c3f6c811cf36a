//! Files and directories: positions, identities, durable names.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::current;

/// Reading and writing at an offset, by several threads at a time.
///
/// On Windows and without a system these calls move the position of the file. Code that uses them therefore neither reads nor writes at the
/// position of the same file afterwards.
pub trait PositionedAccess {
    /// Reads up to the end of the buffer or of the file. Returns the number of bytes, which is 0 at the end only.
    ///
    /// # Errors
    /// If the system reports one.
    fn read_bytes_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the whole buffer.
    ///
    /// # Errors
    /// If the file ends before, or the system reports an error.
    fn read_exact_bytes_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// If the system reports one. Any part of the bytes may have been written then.
    fn write_all_bytes_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl PositionedAccess for File {
    fn read_bytes_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        current::read_at(self, bytes, offset)
    }

    fn read_exact_bytes_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        current::read_exact_at(self, bytes, offset)
    }

    fn write_all_bytes_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        current::write_all_at(self, bytes, offset)
    }
}

/// An open directory.
///
/// On Unix names are looked up in the open directory and not at its path: a directory that is renamed keeps its files, and
/// another one can take its path. On Windows names are looked up at the path, and a directory in which a file is open cannot
/// be renamed.
#[derive(Debug)]
pub struct Directory(current::OpenDirectory);

impl Directory {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// If it does not exist, or the system reports an error.
    pub fn open(path: &Path) -> io::Result<Self> {
        current::OpenDirectory::open(path).map(Self)
    }

    /// Creates an empty file to read and write, which replaces the content of an existing one of the same name.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        self.0.create_file(name)
    }

    /// Opens an existing file to read and write.
    ///
    /// # Errors
    /// If the file does not exist, or the system reports an error.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        self.0.open_file(name)
    }

    /// Returns the names of all files and directories in it, in any order.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn read_entries(&self) -> io::Result<Vec<OsString>> {
        self.0.read_entries()
    }

    /// Renames a file within the directory, which replaces one of the new name, as [`replace_file`] does.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    /// Makes the names in the directory durable. Windows has no such call: there a name is durable once the file system has
    /// written its journal, which takes some seconds at most.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    /// Returns the bytes that can still be written.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }

    /// Opens a directory and makes the names in it durable, as [`sync`](Self::sync) does.
    ///
    /// # Errors
    /// If it does not exist, or the system reports an error.
    pub fn sync_path(path: &Path) -> io::Result<()> {
        Self::open(path)?.sync()
    }
}

/// `true` if a directory can be renamed while a file in it is open, which Windows refuses.
pub const RENAMES_OPEN_DIRECTORIES: bool = current::RENAMES_OPEN_DIRECTORIES;

/// `true` if shells of the system find `ESSAY.TXT` by `*.txt`, as those of Windows do.
pub const NAMES_IGNORE_CASE: bool = current::NAMES_IGNORE_CASE;

/// Size of a disk in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// All bytes.
    pub size: u64,
    /// Bytes that can still be written.
    pub free: u64,
}

/// Returns the size of the disk with a directory, if the system reports it.
pub fn read_disk_space(directory: &Path) -> Option<DiskSpace> {
    current::read_disk_space(directory)
}

/// The number by which a system knows a file, whatever its paths are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileNumber {
    pub(crate) device: u64,
    pub(crate) file: u64,
}

impl FileNumber {
    /// Returns the number of the file at `path`, whose metadata are `metadata`. `None` if the system does not report it, which
    /// happens on Windows alone: it has to open the file.
    pub fn of_file(path: &Path, metadata: &Metadata) -> Option<Self> {
        current::file_number(path, metadata)
    }
}

/// The properties by which a file that was changed or replaced is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    /// The number of the file.
    pub number: Option<FileNumber>,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change: seconds since 1970 and nanoseconds.
    pub changed: (i64, i64),
}

impl FileVersion {
    /// Returns the version of the file at `path`, whose metadata are `metadata`.
    pub fn of_file(path: &Path, metadata: &Metadata) -> Self {
        Self {
            number: FileNumber::of_file(path, metadata),
            bytes: metadata.len(),
            changed: current::time_of_change(metadata),
        }
    }
}

/// Returns the absolute path of an existing file or directory, without links, `.` and `..`.
///
/// On Windows the path has the form that users know, such as `C:\essays`, and begins with `\\?\` only if the system
/// would otherwise take it for another one, for example because a name ends in a full stop.
///
/// # Errors
/// If the path does not exist, or the system reports an error.
pub fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    current::resolve_path(path)
}

/// Returns `true` if the path is that of a device, for example of a terminal, to which several outputs can be written.
pub fn is_device(path: &Path) -> bool {
    current::is_device(path)
}

/// Creates a file without a name in `directory`, which [`link_unnamed`] can give one later. `None` if the file system or the
/// system has no such files.
pub fn create_unnamed(directory: &Path) -> Option<File> {
    current::create_unnamed(directory)
}

/// Gives a file of [`create_unnamed`] a name.
///
/// # Errors
/// If the name exists, or the system reports an error.
pub fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    current::link_unnamed(file, path)
}

/// Renames a file or a directory. A file replaces one of the new name, also one that is open.
///
/// On Windows another program may have the file open for a moment, for example one that looks for viruses, so that the call
/// tries again for 2 seconds.
///
/// # Errors
/// If the system reports one.
pub fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    current::replace_file(from, to)
}

/// Creates a symbolic link at `link` to `original`. On Windows that takes a right that most users do not have.
///
/// # Errors
/// If the system reports one.
pub fn create_symlink(original: &Path, link: &Path) -> io::Result<()> {
    current::create_symlink(original, link)
}
