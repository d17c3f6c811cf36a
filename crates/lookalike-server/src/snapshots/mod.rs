//! Places of snapshots: directories, or an object store.
//!
//! An object store is a [`Disk`] whose files are written once, from beginning to end, and then read. A file
//! gets its name once it is complete. A snapshot is valid once it has its manifest, which is written last.

#[cfg(feature = "object-store")]
mod bucket;
#[cfg(not(feature = "object-store"))]
#[path = "no_bucket.rs"]
mod bucket;
pub(crate) mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use lookalike_store::{
    Disk, DiskFolder, MANIFEST_FILE, ReadFolder, is_collection_file, remove_creation_files,
};
use tokio::runtime::{Handle, Runtime};

use self::bucket::ObjectBucket;
use crate::collections::check_name;
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

/// Reason why a snapshot could not be created, deleted or restored.
#[derive(Debug)]
pub(crate) enum SnapshotRefusal {
    /// Something with this name exists.
    Exists,
    /// The snapshot is being created, deleted or restored.
    InUse,
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

/// The snapshots of a service.
pub(crate) struct SnapshotStore {
    below: SnapshotRoot,
    /// Collections and names of the snapshots that are being created, deleted or restored.
    held: Mutex<BTreeSet<(String, String)>>,
    /// Time of the newest snapshot of each collection, as far as is known.
    newest: Mutex<BTreeMap<String, SystemTime>>,
    /// The same of the scheduled snapshots; `None` for a collection that has none.
    scheduled: Mutex<BTreeMap<String, Option<SystemTime>>>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotInfo {
    pub(crate) collection: String,
    pub(crate) name: String,
    /// Size of its files.
    pub(crate) bytes: u64,
    /// Time at which it was complete.
    pub(crate) time: SystemTime,
}

enum SnapshotRoot {
    /// A directory.
    Folder(PathBuf),
    /// A prefix of an object store.
    Bucket(ObjectBucket),
}

impl SnapshotRoot {
    /// Returns the names of the folders in a folder; none if it does not exist.
    fn folder_names(&self, path: &[&str]) -> io::Result<Vec<String>> {
        match self {
            Self::Folder(folder) => {
                list_folders(&path.iter().fold(folder.clone(), |at, it| at.join(it)))
            }
            Self::Bucket(bucket) => below_path(bucket, path).folder_names(),
        }
    }

    /// Returns the size of the files in a folder, and the time of its manifest, if it has one.
    fn describe_files(&self, path: &[&str]) -> io::Result<(u64, Option<SystemTime>)> {
        match self {
            Self::Folder(folder) => {
                describe_folder(&path.iter().fold(folder.clone(), |at, it| at.join(it)))
            }
            Self::Bucket(bucket) => below_path(bucket, path).describe_objects(MANIFEST_FILE),
        }
    }
}

fn below_path(bucket: &ObjectBucket, path: &[&str]) -> ObjectBucket {
    path.iter()
        .fold(bucket.clone(), |at, it| at.below_prefix(it))
}

fn list_folders(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

fn describe_folder(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    let manifest = match fs::metadata(path.join(MANIFEST_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, None)),
        manifest => manifest?,
    };
    match folder_bytes(path) {
        // It is being deleted.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((0, None)),
        bytes => Ok((bytes?, Some(manifest.modified()?))),
    }
}

fn folder_bytes(path: &Path) -> io::Result<u64> {
    fs::read_dir(path)?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum()
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
            held: Mutex::default(),
            newest: Mutex::default(),
            scheduled: Mutex::default(),
        })
    }

    /// Returns the complete snapshots, by collection and name; those of one collection if it is given.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub(crate) fn list_snapshots(&self, only: Option<&str>) -> io::Result<Vec<SnapshotInfo>> {
        let mut found = Vec::new();
        let collections = match only {
            Some(only) => vec![only.to_owned()],
            None => self.below.folder_names(&[])?,
        };
        for collection in collections {
            for name in self.below.folder_names(&[&collection])? {
                found.extend(self.describe_snapshot(&collection, &name)?);
            }
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        for snapshot in &found {
            let known = newest
                .entry(snapshot.collection.clone())
                .or_insert(snapshot.time);
            *known = snapshot.time.max(*known);
        }
        found.sort_by(|a, b| (&a.collection, &a.name).cmp(&(&b.collection, &b.name)));
        Ok(found)
    }

    /// Returns the time of the newest snapshot of each collection, as far as it was listed or created.
    pub(crate) fn newest_times(&self) -> BTreeMap<String, SystemTime> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone()
    }

    /// Returns the time of the newest scheduled snapshot of a collection, if it has one. `find` finds it at
    /// the first call.
    pub(crate) fn newest_scheduled<E>(
        &self,
        collection: &str,
        find: impl FnOnce() -> Result<Option<SystemTime>, E>,
    ) -> Result<Option<SystemTime>, E> {
        let scheduled = || {
            self.scheduled
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(&known) = scheduled().get(collection) {
            return Ok(known);
        }
        let found = find()?;
        scheduled().insert(collection.to_owned(), found);
        Ok(found)
    }

    /// Records a scheduled snapshot.
    pub(crate) fn set_newest_scheduled(&self, collection: &str, time: SystemTime) {
        let mut scheduled = self
            .scheduled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        scheduled.insert(collection.to_owned(), Some(time));
    }

    /// Returns a snapshot, if it is complete.
    fn describe_snapshot(&self, collection: &str, name: &str) -> io::Result<Option<SnapshotInfo>> {
        if !is_folder_name(collection) || check_name(name).is_err() {
            return Ok(None);
        }
        let (bytes, time) = self.below.describe_files(&[collection, name])?;
        Ok(time.map(|time| SnapshotInfo {
            collection: collection.to_owned(),
            name: name.to_owned(),
            bytes,
            time,
        }))
    }

    /// Removes a snapshot, or the remains of an interrupted one; returns `false` if there is neither. Files that
    /// are not those of a snapshot stay.
    ///
    /// # Errors
    /// If it is being created or restored, or a file cannot be removed.
    pub(crate) fn delete_snapshot(
        &self,
        collection: &str,
        name: &str,
    ) -> Result<bool, SnapshotRefusal> {
        let _held = self.hold_name(collection, name)?;
        let is_there = self.remove_files(collection, name)?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.remove(collection);
        drop(newest);
        // Listing finds the newest of the others.
        self.list_snapshots(Some(collection))?;
        Ok(is_there)
    }

    /// Removes the files of a snapshot, and its directory if nothing else is in it; returns `false` if there
    /// are none. Without its manifest, which is removed first, it is not a snapshot any more, should the rest
    /// be interrupted.
    fn remove_files(&self, collection: &str, name: &str) -> io::Result<bool> {
        let remove = |disk: &dyn Disk| {
            let mut names = disk.file_names()?;
            names.retain(|name| is_collection_file(name));
            names.sort_by_key(|name| name != MANIFEST_FILE);
            for name in &names {
                disk.remove_file(name)?;
                if name == MANIFEST_FILE {
                    disk.sync_names()?;
                }
            }
            io::Result::Ok(!names.is_empty())
        };
        match &self.below {
            SnapshotRoot::Folder(folder) => {
                let path = folder.join(collection).join(name);
                if !path.is_dir() {
                    return Ok(false);
                }
                let disk = DiskFolder::open(&path)?;
                let is_there = remove(&disk)?;
                drop(disk);
                // Only the lock file is left. A directory with other files stays.
                remove_creation_files(&path)?;
                let _ = fs::remove_dir(&path);
                let _ = fs::remove_dir(folder.join(collection));
                Ok(is_there)
            }
            SnapshotRoot::Bucket(bucket) => {
                remove(&bucket.below_prefix(collection).below_prefix(name))
            }
        }
    }

    /// Returns the names of the folders in a collection's folder, of incomplete snapshots too.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub(crate) fn list_names(&self, collection: &str) -> io::Result<Vec<String>> {
        self.below.folder_names(&[collection])
    }

    /// Calls `read` with the disk of a snapshot, which is not deleted meanwhile. Returns `None` if there is no
    /// snapshot of this name.
    ///
    /// # Errors
    /// If it is being created, deleted or restored by another call, or cannot be read.
    pub(crate) fn read_snapshot<T>(
        &self,
        collection: &str,
        name: &str,
        read: impl FnOnce(&dyn Disk) -> T,
    ) -> Result<Option<T>, SnapshotRefusal> {
        let _held = self.hold_name(collection, name)?;
        if self.describe_snapshot(collection, name)?.is_none() {
            return Ok(None);
        }
        Ok(Some(match &self.below {
            SnapshotRoot::Folder(folder) => {
                read(&ReadFolder::open(&folder.join(collection).join(name))?)
            }
            SnapshotRoot::Bucket(bucket) => {
                read(&bucket.below_prefix(collection).below_prefix(name))
            }
        }))
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
        match copied {
            Ok(()) => {
                let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
                newest.insert(collection.to_owned(), SystemTime::now());
            }
            Err(_) => self.discard_partial(collection, name),
        }
        copied.map_err(SnapshotRefusal::NotCopied)
    }

    /// Reserves a name, so that nobody else creates, deletes or restores the snapshot meanwhile.
    fn hold_name(&self, collection: &str, name: &str) -> Result<HeldName<'_>, SnapshotRefusal> {
        let name = (collection.to_owned(), name.to_owned());
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.insert(name.clone()) {
            Ok(HeldName {
                held: &self.held,
                name,
            })
        } else {
            Err(SnapshotRefusal::InUse)
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
            .any(|name| name == MANIFEST_FILE || !is_collection_file(name))
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
        let _ = self.remove_files(collection, name);
    }
}

/// A reserved name of a snapshot.
struct HeldName<'a> {
    held: &'a Mutex<BTreeSet<(String, String)>>,
    name: (String, String),
}

impl Drop for HeldName<'_> {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(&self.name);
    }
}

/// Calls `read` with the disk of a snapshot.
///
/// # Errors
/// If the directory does not exist or cannot be opened, or the URL is invalid, and any error of `read`.
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

/// Longest name of a folder with snapshots.
const LONGEST_FOLDER_NAME: usize = 128;

/// Returns `true` for the name of a folder with snapshots of a collection, and of one with a snapshot of a shared log:
/// the number of a record and the name of a replica, which is longer than the name of a collection can be.
fn is_folder_name(name: &str) -> bool {
    let (first, rest) = name.split_at_checked(1).unwrap_or_default();
    check_name(first).is_ok()
        && name.len() <= LONGEST_FOLDER_NAME
        && rest
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot of a shared log by a replica with the longest name is found; what leads out of the folder is none.
    #[test]
    fn folders_of_snapshots_have_long_names() {
        let longest = format!("{:016x}-{}", 7, "a".repeat(lookalike_log::MAX_REPLICA_NAME));
        assert!(is_folder_name(&longest) && is_folder_name("news"));
        for name in ["", "..", "a/b", "-a", "A", &"a".repeat(129)] {
            assert!(!is_folder_name(name), "{name}");
        }
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = SnapshotPlace::Folder(folder.path().to_owned());
        let snapshots = SnapshotStore::open_place(&place, runtime.handle().clone()).unwrap();
        let made = snapshots.make_snapshot(&longest, "news", |disk| {
            let file = disk.create_file(MANIFEST_FILE).unwrap();
            file.write_at(b"x", 0).unwrap();
            Ok(())
        });
        made.unwrap();
        let read = snapshots.read_snapshot(&longest, "news", |disk| disk.file_names());
        assert!(read.unwrap().is_some());
    }

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
                assert!(matches!(again, Err(SnapshotRefusal::InUse)), "{again:?}");
                let deleted = snapshots.delete_snapshot("a", "b");
                assert!(
                    matches!(deleted, Err(SnapshotRefusal::InUse)),
                    "{deleted:?}"
                );
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
