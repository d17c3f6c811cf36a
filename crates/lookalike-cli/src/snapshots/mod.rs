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

use anyhow::{Result, bail};
use lookalike_store::{Disk, Folder, ReadFolder};
use tokio::runtime::{Handle, Runtime};

use self::bucket::Bucket;
use crate::output::about;
use crate::serve::is_own;

/// Place of the snapshots.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "String")]
pub(crate) enum Place {
    /// A directory.
    Folder(PathBuf),
    /// URL of a prefix of an object store.
    Url(String),
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        if text.contains("://") {
            Self::Url(text)
        } else {
            Self::Folder(text.into())
        }
    }
}

impl FromStr for Place {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(formatter),
            Self::Url(url) => formatter.write_str(url),
        }
    }
}

/// Reason why a snapshot could not be created.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Something with this name exists or is being created.
    Exists,
    /// A disk operation or the object store failed.
    Failed(io::Error),
    /// The collection could not be copied.
    NotCopied(lookalike_store::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Creates snapshots.
pub(crate) struct Snapshots {
    below: Below,
    /// Collections and names of the snapshots that are being created.
    making: Mutex<BTreeSet<(String, String)>>,
}

enum Below {
    /// A directory.
    Folder(PathBuf),
    /// A prefix of an object store.
    Bucket(Bucket),
}

/// Name of the file without which a directory is not a snapshot.
const MANIFEST: &str = "manifest";

impl Snapshots {
    /// Opens a place for snapshots.
    ///
    /// # Errors
    /// If the URL is not that of a known store, or the environment configures the store wrongly.
    pub(crate) fn open(place: &Place, runtime: Handle) -> Result<Self> {
        let below = match place {
            Place::Folder(path) => Below::Folder(path.clone()),
            Place::Url(url) => Below::Bucket(Bucket::open(url, runtime)?),
        };
        Ok(Self {
            below,
            making: Mutex::default(),
        })
    }

    /// Creates a snapshot of a collection. `copy` copies the collection to an empty disk. The remains of an
    /// interrupted snapshot are removed now, or when another one of the same name is created; without a
    /// manifest they are not a snapshot.
    pub(crate) fn make(
        &self,
        collection: &str,
        name: &str,
        copy: impl FnOnce(&dyn Disk) -> Result<(), lookalike_store::Error>,
    ) -> Result<(), Refusal> {
        let _held = self.hold(collection, name)?;
        let disk = self.empty_disk(collection, name)?;
        let copied = copy(&*disk);
        drop(disk);
        if copied.is_err() {
            self.discard(collection, name);
        }
        copied.map_err(Refusal::NotCopied)
    }

    /// Reserves a name, so that nobody else creates a snapshot of that name meanwhile.
    fn hold(&self, collection: &str, name: &str) -> Result<Held<'_>, Refusal> {
        let name = (collection.to_owned(), name.to_owned());
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match making.insert(name.clone()) {
            true => Ok(Held {
                making: &self.making,
                name,
            }),
            false => Err(Refusal::Exists),
        }
    }

    fn empty_disk(&self, collection: &str, name: &str) -> Result<Box<dyn Disk>, Refusal> {
        let disk: Box<dyn Disk> = match &self.below {
            Below::Folder(folder) => {
                let path = folder.join(collection).join(name);
                // Checked before the directory is opened, because somebody may be reading it or the disk may
                // be read-only.
                if path.join(MANIFEST).exists() {
                    return Err(Refusal::Exists);
                }
                Box::new(Folder::open(&path)?)
            }
            Below::Bucket(bucket) => Box::new(bucket.below(collection).below(name)),
        };
        let names = disk.names()?;
        if names.iter().any(|it| it == MANIFEST || !is_own(it)) {
            return Err(Refusal::Exists);
        }
        for left in names {
            disk.remove(&left)?;
        }
        Ok(disk)
    }

    /// Removes the remains of a failed snapshot. Errors are ignored, because nothing depends on it.
    fn discard(&self, collection: &str, name: &str) {
        match &self.below {
            Below::Folder(folder) => {
                let _ = std::fs::remove_dir_all(folder.join(collection).join(name));
            }
            Below::Bucket(bucket) => {
                let bucket = bucket.below(collection).below(name);
                for file in bucket.names().unwrap_or_default() {
                    let _ = bucket.remove(&file);
                }
            }
        }
    }
}

/// A reserved name of a snapshot.
struct Held<'a> {
    making: &'a Mutex<BTreeSet<(String, String)>>,
    name: (String, String),
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        making.remove(&self.name);
    }
}

/// Calls `read` with the disk of a snapshot.
///
/// # Errors
/// If there is no snapshot, and any error of `read`.
pub(crate) fn with_snapshot<T>(
    place: &Place,
    read: impl FnOnce(&dyn Disk) -> Result<T>,
) -> Result<T> {
    match place {
        Place::Folder(path) if !path.is_dir() => bail!("{place}: there is no such directory"),
        Place::Folder(path) => {
            let folder = ReadFolder::open(path).map_err(about(format!("cannot open {place}")))?;
            read(&folder)
        }
        Place::Url(url) => {
            let runtime = Runtime::new().map_err(about("cannot start the threads for requests"))?;
            read(&Bucket::open(url, runtime.handle().clone())?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two concurrent snapshots with one name, one is created. The remains of an interrupted one are
    /// replaced.
    #[test]
    fn of_snapshots_with_one_name_one_is_made() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut places = vec![Place::Folder(folder.path().join("not/there"))];
        if cfg!(feature = "object-store") {
            places.push(Place::Url("memory:///snapshots".to_owned()));
        }
        for place in places {
            let snapshots = Snapshots::open(&place, runtime.handle().clone()).unwrap();
            let write = |disk: &dyn Disk, name: &str| {
                let file = disk.create(name).unwrap();
                file.write_at(b"x", 0).unwrap();
                file.sync().unwrap();
            };
            // Simulates a process that ended during the copy.
            write(&*snapshots.empty_disk("a", "b").unwrap(), "1.rows");
            let made = snapshots.make("a", "b", |disk| {
                assert!(disk.names().unwrap().is_empty());
                write(disk, "2.rows");
                let again = snapshots.make("a", "b", |_| panic!("two are made"));
                assert!(matches!(again, Err(Refusal::Exists)), "{again:?}");
                snapshots.make("a", "c", |_| Ok(())).unwrap();
                write(disk, MANIFEST);
                Ok(())
            });
            made.unwrap();
            let again = snapshots.make("a", "b", |_| panic!("there is one"));
            assert!(matches!(again, Err(Refusal::Exists)), "{again:?}");
            write(&*snapshots.empty_disk("a", "d").unwrap(), "thesis.txt");
            let other = snapshots.make("a", "d", |_| panic!("there is something"));
            assert!(matches!(other, Err(Refusal::Exists)), "{other:?}");
        }
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn a_program_without_object_stores_refuses_urls() {
        let runtime = Runtime::new().unwrap();
        let place = Place::Url("s3://bucket/prefix".to_owned());
        let refused = Snapshots::open(&place, runtime.handle().clone()).err();
        let message = refused.unwrap().to_string();
        assert!(message.starts_with("'s3://bucket/prefix'"), "{message}");
        assert!(message.ends_with("`--features object-store`"), "{message}");
    }
}
