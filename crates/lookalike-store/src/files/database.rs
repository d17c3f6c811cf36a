//! The database of a partition: redb on a file of the [disk](crate::disk::Disk). Panics of redb become
//! errors.

use std::io;
use std::sync::Arc;

use lookalike::catch_panics;
use redb::{Builder, Database, StorageBackend};

use crate::disk::DiskFile;
use crate::error::{Error, Result};

/// Size of a database's page cache in bytes.
pub(crate) const PAGE_CACHE_BYTES: usize = 1 << 20;

pub(super) fn open_or_create_database(
    name: &str,
    file: &Arc<dyn DiskFile>,
) -> Result<GuardedDatabase> {
    let backend = FileBackend(file.clone());
    guard_database(name, || {
        let database = Builder::new()
            .set_cache_size(PAGE_CACHE_BYTES)
            .create_with_backend(backend)?;
        Ok(GuardedDatabase(Some(database)))
    })
}

/// A database that is closed under [`guard_database`]. Every use of it needs the guard, too.
#[derive(Debug)]
pub(super) struct GuardedDatabase(Option<Database>);

impl GuardedDatabase {
    pub(super) fn database(&self) -> Result<&Database, redb::Error> {
        let closed = || redb::Error::Corrupted("it is closed".to_owned());
        self.0.as_ref().ok_or_else(closed)
    }
}

impl Drop for GuardedDatabase {
    fn drop(&mut self) {
        let database = self.0.take();
        // A failure is ignored: every commit is on disk.
        let _ = guard_database("", || {
            drop(database);
            Ok(())
        });
    }
}

/// Runs an operation on a database. redb can panic on a damaged file, and the panic becomes an error. So `work` must not
/// change state of ours, which a panic could leave half changed. `name` is that of the file, for messages.
pub(super) fn guard_database<T>(
    name: &str,
    work: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T> {
    match catch_panics(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(redb::Error::Io(error))) => {
            Err(Error::disk_error("cannot read or write", name, &error))
        }
        // After one error of the disk the database refuses everything until it is opened again.
        Ok(Err(redb::Error::PreviousIo)) => {
            let error = io::Error::other("the disk has refused before");
            Err(Error::disk_error("cannot read or write", name, &error))
        }
        Ok(Err(error)) => Err(Error::damaged_file(name, error)),
        Err(_) => Err(Error::damaged_file(
            name,
            "its pages contradict one another",
        )),
    }
}

/// A file as the storage backend of redb.
#[derive(Debug)]
struct FileBackend(Arc<dyn DiskFile>);

impl StorageBackend for FileBackend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
}
