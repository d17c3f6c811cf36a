//! All that the store asks of a disk, so that tests can take one away, fill it or make it lie.
//!
//! A collection has a flat directory of files. What is written is durable once the file was
//! [synced](DiskFile::sync), and a name once the [names were](Disk::sync_names); until then any part of it
//! may be there after a loss of power, or none.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        std::fs::create_dir_all(path)?;
        let mut options = OpenOptions::new();
        let lock = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))?;
        lock.try_lock().map_err(|error| {
            let path = path.display();
            io::Error::other(format!("another process has '{path}' open: {error}"))
        })?;
        if let Some(parent) = path.parent().filter(|parent| parent.is_dir()) {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self {
            directory: File::open(path)?,
            path: path.to_owned(),
            _lock: lock,
        })
    }
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
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            // What is not UTF-8 is not ours.
            names.extend(name.into_string().ok().filter(|name| name != LOCK));
        }
        Ok(names)
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
