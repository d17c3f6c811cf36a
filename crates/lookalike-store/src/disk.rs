//! All that the store asks of a disk, so that tests can take one away, fill it or make it lie.
//!
//! A collection has a flat directory of files. What is written is durable once the file was
//! [synced](DiskFile::sync), and a name once the [names were](Disk::sync_names); until then any part of it
//! may be there after a loss of power, or none.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::overlaid::Overlaid;

/// A directory of files.
pub trait Disk: Debug + Send + Sync {
    /// Makes an empty file, in place of one with the name if there is one.
    ///
    /// # Errors
    /// Those of the disk, here and below.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// If it is not there, and those of the disk.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// The names of all files, in any order.
    ///
    /// # Errors
    /// Those of the disk.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Gives a file another name, in place of one with that name if there is one.
    ///
    /// # Errors
    /// Those of the disk.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the disk.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync_names(&self) -> io::Result<()>;

    /// Bytes that can still be written.
    ///
    /// # Errors
    /// Those of the disk.
    fn free(&self) -> io::Result<u64>;
}

/// A file.
pub trait DiskFile: Debug + Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// Those of the disk.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// Those of the disk.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts it, or makes it longer by zeros.
    ///
    /// # Errors
    /// Those of the disk.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reads bytes, as many as there are up to the end of the file, and says how many.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// Those of the disk. Any part of the bytes may have been written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes its bytes and its length durable.
    ///
    /// # Errors
    /// Those of the disk. Then nothing is known of what is durable, and another call would not tell.
    fn sync(&self) -> io::Result<()>;
}

impl dyn DiskFile {
    /// Reads bytes that must be there.
    pub(crate) fn read_exact(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(bytes, offset)? == bytes.len() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} bytes at {offset} are not there", bytes.len()),
        ))
    }
}

/// A directory of the operating system, which this process has for itself.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The directory, to be synced.
    directory: File,
    /// Held until this is dropped.
    _lock: File,
}

/// The name of the file that is locked.
const LOCK: &str = "lock";

impl Folder {
    /// Opens a directory, which is made if it is not there.
    ///
    /// # Errors
    /// If another process has it open, and those of the disk.
    pub fn open(path: &Path) -> io::Result<Self> {
        make_directory(path)?;
        let mut options = OpenOptions::new();
        let lock = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))?;
        lock.try_lock().map_err(|error| is_open(path, &error))?;
        Ok(Self {
            directory: File::open(path)?,
            path: path.to_owned(),
            _lock: lock,
        })
    }
}

fn is_open(path: &Path, error: &TryLockError) -> io::Error {
    let path = path.display();
    io::Error::other(format!("another process has '{path}' open: {error}"))
}

/// Makes a directory unless it is there, and those above it that are not. Each is durable in the one above
/// it before another is made in it.
///
/// # Errors
/// Those of the disk.
pub fn make_directory(path: &Path) -> io::Result<()> {
    make_and_sync(path, &mut |parent| File::open(parent)?.sync_all())
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
        // Whoever made the directory may have been allowed more.
        Err(error) if !made && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// The names of the files in a directory but for that of the lock.
fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let name = entry?.file_name();
        // What is not UTF-8 is not ours.
        names.extend(name.into_string().ok().filter(|name| name != LOCK));
    }
    Ok(names)
}

impl Disk for Folder {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.path.join(name))?;
        Ok(Arc::new(Real(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(self.path.join(name))?;
        Ok(Arc::new(Real(file)))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn free(&self) -> io::Result<u64> {
        let status = rustix::fs::fstatvfs(&self.directory)?;
        Ok(status.f_bavail * status.f_frsize)
    }
}

#[derive(Debug)]
struct Real(File);

/// A directory that is read and not written, so that it can be on a disk which refuses writes: no lock is
/// made in it, and what is written to its files stays in memory.
#[derive(Debug)]
pub struct ReadFolder {
    path: PathBuf,
    /// Held until this is dropped, if there is one: nobody opens the directory as a [`Folder`] meanwhile.
    _lock: Option<File>,
}

impl ReadFolder {
    /// Opens a directory that is there.
    ///
    /// # Errors
    /// If another process has it open to write, and those of the disk.
    pub fn open(path: &Path) -> io::Result<Self> {
        let lock = match File::open(path.join(LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            lock => Some(lock?),
        };
        if let Some(lock) = &lock {
            lock.try_lock_shared()
                .map_err(|error| is_open(path, &error))?;
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
    fn create(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(read_only())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = Real(File::open(self.path.join(name))?);
        Ok(Arc::new(Overlaid::new(Arc::new(file))?))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(read_only())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(0)
    }
}

impl DiskFile for Real {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            match self.0.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
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

    /// A name without a directory before it is of the present one.
    #[test]
    fn the_present_directory_is_above_a_name() {
        let mut synced = Vec::new();
        let made = make_and_sync(Path::new("src"), &mut |parent| {
            synced.push(parent.to_owned());
            Ok(())
        });
        made.unwrap();
        assert_eq!(synced, [Path::new(".")]);
    }

    #[test]
    fn a_directory_that_is_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "what is there").unwrap();
        let disk = ReadFolder::open(folder.path()).unwrap();
        assert!(disk.create("new").is_err() && disk.remove("file").is_err());
        let file = disk.open("file").unwrap();
        file.write_at(b"WHAT", 0).unwrap();
        file.sync().unwrap();
        let mut read = [0; 4];
        file.read_exact(&mut read, 0).unwrap();
        assert_eq!(&read, b"WHAT");
        assert_eq!(disk.names().unwrap(), ["file"]);
        assert!(!folder.path().join(LOCK).exists());
        let there = std::fs::read(folder.path().join("file")).unwrap();
        assert_eq!(there, b"what is there");
        let writing = Folder::open(folder.path()).unwrap();
        assert!(ReadFolder::open(folder.path()).is_err());
        drop(writing);
        let _reading = ReadFolder::open(folder.path()).unwrap();
        assert!(ReadFolder::open(folder.path()).is_ok());
        assert!(Folder::open(folder.path()).is_err());
    }
}
