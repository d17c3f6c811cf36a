//! Places of snapshots: directories, or an object store.
//!
//! An object store is a [`Disk`] whose files are written once, from beginning to end, and then read. A file
//! gets its name once it is complete. A snapshot is valid once it has its manifest, which is written last.

#[cfg(feature = "object-store")]
mod bucket;
#[cfg(not(feature = "object-store"))]
#[path = "no_bucket.rs"]
mod bucket;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use lookalike_store::{Disk, DiskFolder, MANIFEST_FILE, ReadFolder, is_collection_file};
use tokio::runtime::{Handle, Runtime};

use self::bucket::ObjectBucket;
use crate::error::{Error, Result, with_context};

/// Place of the snapshots.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "String")]
pub enum SnapshotPlace {
    /// A directory.
    Folder(PathBuf),
    /// URL of a prefix of an object store.
    Url(String),
}

impl From<String> for SnapshotPlace {
    fn from(text: String) -> Self {
        if text.contains("://") {
            Self::Url(text)
        } else {
            Self::Folder(text.into())
        }
    }
}

impl FromStr for SnapshotPlace {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}

impl fmt::Display for SnapshotPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(formatter),
            Self::Url(url) => formatter.write_str(url),
        }
    }
}

/// Reason why a snapshot could not be created.
#[derive(Debug)]
pub(crate) enum SnapshotRefusal {
    /// Something with this name exists or is being created.
    Exists,
    /// A disk operation or the object store failed.
    Failed(io::Error),
    /// The collection could not be copied.
    NotCopied(lookalike_store::Error),
}

impl From<io::Error> for SnapshotRefusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Creates snapshots.
pub(crate) struct SnapshotStore {
    below: SnapshotRoot,
    /// Collections and names of the snapshots that are being created.
    making: Mutex<BTreeSet<(String, String)>>,
}

enum SnapshotRoot {
    /// A directory.
    Folder(PathBuf),
    /// A prefix of an object store.
    Bucket(ObjectBucket),
}

impl SnapshotStore {
    /// Opens a place for snapshots.
    ///
    /// # Errors
    /// If the URL is not that of a known store, or the environment configures the store wrongly.
    pub(crate) fn open_place(place: &SnapshotPlace, runtime: Handle) -> Result<Self> {
        let below = match place {
            SnapshotPlace::Folder(path) => SnapshotRoot::Folder(path.clone()),
            SnapshotPlace::Url(url) => SnapshotRoot::Bucket(ObjectBucket::open_url(url, runtime)?),
        };
        Ok(Self {
            below,
            making: Mutex::default(),
        })
    }

    /// Creates a snapshot of a collection. `copy` copies the collection to an empty disk. The remains of an
    /// interrupted snapshot are removed now, or when another one of the same name is created; without a
    /// manifest they are not a snapshot.
    pub(crate) fn make_snapshot(
        &self,
        collection: &str,
        name: &str,
        copy: impl FnOnce(&dyn Disk) -> Result<(), lookalike_store::Error>,
    ) -> Result<(), SnapshotRefusal> {
        let _held = self.hold_name(collection, name)?;
        let disk = self.empty_disk(collection, name)?;
        let copied = copy(&*disk);
        drop(disk);
        if copied.is_err() {
            self.discard_partial(collection, name);
        }
        copied.map_err(SnapshotRefusal::NotCopied)
    }

    /// Reserves a name, so that nobody else creates a snapshot of that name meanwhile.
    fn hold_name(&self, collection: &str, name: &str) -> Result<HeldName<'_>, SnapshotRefusal> {
        let name = (collection.to_owned(), name.to_owned());
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match making.insert(name.clone()) {
            true => Ok(HeldName {
                making: &self.making,
                name,
            }),
            false => Err(SnapshotRefusal::Exists),
        }
    }

    fn empty_disk(&self, collection: &str, name: &str) -> Result<Box<dyn Disk>, SnapshotRefusal> {
        let disk: Box<dyn Disk> = match &self.below {
            SnapshotRoot::Folder(folder) => {
                let path = folder.join(collection).join(name);
                // Checked before the directory is opened, because somebody may be reading it or the disk may
                // be read-only.
                if path.join(MANIFEST_FILE).exists() {
                    return Err(SnapshotRefusal::Exists);
                }
                Box::new(DiskFolder::open(&path)?)
            }
            SnapshotRoot::Bucket(bucket) => {
                Box::new(bucket.below_prefix(collection).below_prefix(name))
            }
        };
        let names = disk.file_names()?;
        if names
            .iter()
            .any(|it| it == MANIFEST_FILE || !is_collection_file(it))
        {
            return Err(SnapshotRefusal::Exists);
        }
        for left in names {
            disk.remove_file(&left)?;
        }
        Ok(disk)
    }

    /// Removes the remains of a failed snapshot. Errors are ignored, because nothing depends on it.
    fn discard_partial(&self, collection: &str, name: &str) {
        match &self.below {
            SnapshotRoot::Folder(folder) => {
                let _ = std::fs::remove_dir_all(folder.join(collection).join(name));
            }
            SnapshotRoot::Bucket(bucket) => {
                let bucket = bucket.below_prefix(collection).below_prefix(name);
                for file in bucket.file_names().unwrap_or_default() {
                    let _ = bucket.remove_file(&file);
                }
            }
        }
    }
}

/// A reserved name of a snapshot.
struct HeldName<'a> {
    making: &'a Mutex<BTreeSet<(String, String)>>,
    name: (String, String),
}

impl Drop for HeldName<'_> {
    fn drop(&mut self) {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        making.remove(&self.name);
    }
}

/// Calls `read` with the disk of a snapshot.
///
/// # Errors
/// If there is no snapshot, and any error of `read`.
pub fn with_snapshot<T, E: From<Error>>(
    place: &SnapshotPlace,
    read: impl FnOnce(&dyn Disk) -> Result<T, E>,
) -> Result<T, E> {
    match place {
        SnapshotPlace::Folder(path) if !path.is_dir() => {
            Err(Error::new(format!("{place}: there is no such directory")).into())
        }
        SnapshotPlace::Folder(path) => {
            let folder =
                ReadFolder::open(path).map_err(with_context(format!("cannot open {place}")))?;
            read(&folder)
        }
        SnapshotPlace::Url(url) => {
            let runtime =
                Runtime::new().map_err(with_context("cannot start the threads for requests"))?;
            read(&ObjectBucket::open_url(url, runtime.handle().clone())?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two concurrent snapshots with one name, one is created. The remains of an interrupted one are
    /// replaced.
    #[test]
    fn one_of_two_snapshots_with_one_name_wins() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut places = vec![SnapshotPlace::Folder(folder.path().join("not/there"))];
        if cfg!(feature = "object-store") {
            places.push(SnapshotPlace::Url("memory:///snapshots".to_owned()));
        }
        for place in places {
            let snapshots = SnapshotStore::open_place(&place, runtime.handle().clone()).unwrap();
            let write = |disk: &dyn Disk, name: &str| {
                let file = disk.create_file(name).unwrap();
                file.write_at(b"x", 0).unwrap();
                file.sync().unwrap();
            };
            // Simulates a process that ended during the copy.
            write(&*snapshots.empty_disk("a", "b").unwrap(), "1.rows");
            let made = snapshots.make_snapshot("a", "b", |disk| {
                assert!(disk.file_names().unwrap().is_empty());
                write(disk, "2.rows");
                let again = snapshots.make_snapshot("a", "b", |_| panic!("two are made"));
                assert!(matches!(again, Err(SnapshotRefusal::Exists)), "{again:?}");
                snapshots.make_snapshot("a", "c", |_| Ok(())).unwrap();
                write(disk, MANIFEST_FILE);
                Ok(())
            });
            made.unwrap();
            let again = snapshots.make_snapshot("a", "b", |_| panic!("there is one"));
            assert!(matches!(again, Err(SnapshotRefusal::Exists)), "{again:?}");
            write(&*snapshots.empty_disk("a", "d").unwrap(), "thesis.txt");
            let other = snapshots.make_snapshot("a", "d", |_| panic!("there is something"));
            assert!(matches!(other, Err(SnapshotRefusal::Exists)), "{other:?}");
        }
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn urls_need_the_object_store_feature() {
        let runtime = Runtime::new().unwrap();
        let place = SnapshotPlace::Url("s3://bucket/prefix".to_owned());
        let refused = SnapshotStore::open_place(&place, runtime.handle().clone()).err();
        let message = refused.unwrap().to_string();
        assert!(message.starts_with("'s3://bucket/prefix'"), "{message}");
        assert!(message.ends_with("`--features object-store`"), "{message}");
    }
}
