//! The operations that the store needs of a disk, as traits, so that tests can inject faults, fill the disk
//! or cut the power.
//!
//! A collection is a flat directory of files. Content is durable once its file was [synced](DiskFile::sync),
//! and a name once the [names were synced](Disk::sync_names). After a power failure, any part of what was not
//! synced may be there.

mod overlay_file;

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_system::{Directory, PositionedAccess};

use self::overlay_file::OverlayFile;
use crate::error::{Error, ErrorKind, Result};

/// A directory of files.
pub trait Disk: Debug + Send + Sync {
    /// Creates an empty file, which replaces an existing one of the same name.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn create_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// If the file does not exist, or the disk operation fails.
    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Returns the names of all files, in any order.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn file_names(&self) -> io::Result<Vec<String>>;

    /// Renames a file, which replaces an existing one of the new name.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn rename_file(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn remove_file(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn sync_names(&self) -> io::Result<()>;

    /// Returns the bytes that can still be written.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// A file.
pub trait DiskFile: Debug + Send + Sync {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn len(&self) -> io::Result<u64>;

    /// Returns `true` if the file has no bytes.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Truncates the file, or extends it by zeros.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reads up to the end of the buffer or of the file; returns the number of bytes read.
    ///
    /// # Errors
    /// If the disk operation fails.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// If the disk operation fails. Any part of the bytes may have been written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    ///
    /// # Errors
    /// If the disk operation fails. It is then unknown what is durable, and another call would not tell.
    fn sync(&self) -> io::Result<()>;
}

impl dyn DiskFile {
    /// Fills the whole buffer.
    pub(crate) fn read_exact(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(bytes, offset)? == bytes.len() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} bytes at {offset} are missing", bytes.len()),
        ))
    }
}

/// Checks that a disk has `needed` bytes free.
///
/// # Errors
/// [`ErrorKind::Full`] if it has fewer.
pub(crate) fn check_free_bytes(disk: &dyn Disk, needed: u64) -> Result<()> {
    let free = disk.free_bytes();
    let free =
        free.map_err(|error| Error::disk_error("cannot read the free space of", "disk", &error))?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Full,
        format!(
            "the disk has {free} bytes left, and {needed} are wanted for this and as a reserve"
        ),
    ))
}

/// A directory of the operating system, locked by this process.
///
/// On Unix names are looked up in the open directory and not at its path. A directory that is renamed, because its collection
/// is deleted while somebody still reads it, keeps its files, and another one can take its path. Windows refuses to rename it
/// meanwhile.
#[derive(Debug)]
pub struct DiskFolder {
    directory: Directory,
    /// Held until this is dropped.
    _lock: File,
}

/// Name of the file that the process locks which has the directory open.
pub(crate) const LOCK_FILE: &str = "lock";

impl DiskFolder {
    /// Opens a directory, and creates it if necessary.
    ///
    /// # Errors
    /// If another process has it open, or a disk operation fails.
    pub fn open(path: &Path) -> io::Result<Self> {
        make_directory(path)?;
        let mut options = OpenOptions::new();
        let lock = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))?;
        lock.try_lock()
            .map_err(|error| already_open(path, &error))?;
        Ok(Self {
            directory: Directory::open(path)?,
            _lock: lock,
        })
    }
}

fn already_open(path: &Path, error: &TryLockError) -> io::Error {
    let path = path.display();
    io::Error::other(format!("another process has '{path}' open: {error}"))
}

/// Creates a directory and its missing parents. Each is durable in its parent before another is created in
/// it.
///
/// # Errors
/// If a disk operation fails.
pub fn make_directory(path: &Path) -> io::Result<()> {
    make_and_sync(path, &mut |parent| Directory::sync_path(parent))
}

fn make_and_sync(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match path.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    if !parent.is_dir() {
        make_and_sync(parent, sync)?;
    }
    let made = match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => false,
        made => made.map(|()| true)?,
    };
    match sync(parent) {
        // The process that created the directory may have had more rights.
        Err(error) if !made && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Returns the names of the store's files among those in a directory, except the lock file.
fn own_names(names: Vec<OsString>) -> Vec<String> {
    let names = names.into_iter();
    // A name that is not UTF-8 is not ours.
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name != LOCK_FILE).collect()
}

impl Disk for DiskFolder {
    fn create_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OsFile(self.directory.create_file(name)?)))
    }

    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OsFile(self.directory.open_file(name)?)))
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        Ok(own_names(self.directory.read_entries()?))
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.directory.free_bytes()
    }
}

#[derive(Debug)]
struct OsFile(File);

/// A directory that is only read, so that it can be on a read-only disk. No lock file is created, and writes
/// to its files stay in memory.
#[derive(Debug)]
pub struct ReadFolder {
    path: PathBuf,
    /// Held until this is dropped, if the lock file exists: meanwhile nobody can open the directory as a
    /// [`DiskFolder`].
    _lock: Option<File>,
}

impl ReadFolder {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// If another process has it open for writing, or a disk operation fails.
    pub fn open(path: &Path) -> io::Result<Self> {
        let lock = match File::open(path.join(LOCK_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            lock => Some(lock?),
        };
        if let Some(lock) = &lock {
            lock.try_lock_shared()
                .map_err(|error| already_open(path, &error))?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }
}

fn read_only() -> io::Error {
    io::ErrorKind::ReadOnlyFilesystem.into()
}

impl Disk for ReadFolder {
    fn create_file(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(read_only())
    }

    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OsFile(File::open(self.path.join(name))?);
        Ok(Arc::new(OverlayFile::new(Arc::new(file))?))
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        Ok(own_names(Directory::open(&self.path)?.read_entries()?))
    }

    fn rename_file(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(read_only())
    }

    fn remove_file(&self, _name: &str) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

impl DiskFile for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            let next = offset + read as u64;
            match self.0.read_bytes_at(&mut bytes[read..], next) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_bytes_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_synced_into_those_above_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let synced = |below: &str| {
            let mut synced = Vec::new();
            make_and_sync(&path.join(below), &mut |parent| {
                let at = parent.strip_prefix(path).unwrap().to_owned();
                synced.push(at.into_os_string().into_string().unwrap());
                Ok(())
            })
            .unwrap();
            assert!(path.join(below).is_dir());
            synced
        };
        assert_eq!(synced("a"), [""]);
        assert_eq!(synced("a/b/c"), ["a", "a/b"]);
        assert_eq!(synced("a/b/c"), ["a/b"]);
        assert_eq!(synced("d/e/f"), ["", "d", "d/e"]);
        std::fs::write(path.join("file"), "").unwrap();
        assert!(make_directory(&path.join("file")).is_err());
        assert!(make_directory(&path.join("file/below")).is_err());
    }

    /// A plain name is in the current directory.
    #[test]
    fn parent_of_a_bare_name_is_current_directory() {
        let mut synced = Vec::new();
        let made = make_and_sync(Path::new("src"), &mut |parent| {
            synced.push(parent.to_owned());
            Ok(())
        });
        made.unwrap();
        assert_eq!(synced, [Path::new(".")]);
    }

    /// A directory that is renamed keeps its files, and another one at its path has its own.
    #[test]
    fn renamed_directory_keeps_its_files() {
        if !lookalike_system::RENAMES_OPEN_DIRECTORIES {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("a"), folder.path().join("moved"));
        let write = |disk: &DiskFolder, name: &str| {
            let file = disk.create_file(name).unwrap();
            file.write_at(name.as_bytes(), 0).unwrap();
        };
        let first = DiskFolder::open(&path).unwrap();
        write(&first, "before");
        std::fs::rename(&path, &moved).unwrap();
        let second = DiskFolder::open(&path).unwrap();
        write(&first, "after");
        write(&second, "other");
        first.rename_file("before", "renamed").unwrap();
        let names_of = |disk: &DiskFolder| {
            let mut names = disk.file_names().unwrap();
            names.sort_unstable();
            names
        };
        assert_eq!(names_of(&first), ["after", "renamed"]);
        assert_eq!(names_of(&second), ["other"]);
        assert_eq!(std::fs::read(moved.join("after")).unwrap(), b"after");
        let mut content = [0; 6];
        let file = first.open_file("renamed").unwrap();
        file.read_exact(&mut content, 0).unwrap();
        assert_eq!(&content, b"before");
        first.remove_file("after").unwrap();
        assert!(!moved.join("after").exists());
        let missing = first.open_file("other").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn directory_opened_to_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "what is there").unwrap();
        let disk = ReadFolder::open(folder.path()).unwrap();
        assert!(disk.create_file("new").is_err() && disk.remove_file("file").is_err());
        let file = disk.open_file("file").unwrap();
        file.write_at(b"WHAT", 0).unwrap();
        file.sync().unwrap();
        let mut read = [0; 4];
        file.read_exact(&mut read, 0).unwrap();
        assert_eq!(&read, b"WHAT");
        assert_eq!(disk.file_names().unwrap(), ["file"]);
        assert!(!folder.path().join(LOCK_FILE).exists());
        let there = std::fs::read(folder.path().join("file")).unwrap();
        assert_eq!(there, b"what is there");
        let writing = DiskFolder::open(folder.path()).unwrap();
        assert!(ReadFolder::open(folder.path()).is_err());
        drop(writing);
        let _reading = ReadFolder::open(folder.path()).unwrap();
        assert!(ReadFolder::open(folder.path()).is_ok());
        assert!(DiskFolder::open(folder.path()).is_err());
    }
}
