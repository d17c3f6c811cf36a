//! Snapshots beside the log, from which new replicas start and states of the past are restored.
//!
//! | key | object |
//! |---|---|
//! | `snapshots/NAME/manifest.json` | the place in the log, the collections and the aliases; written last |
//! | `snapshots/NAME/COLLECTION/…` | the files of a collection |
//! | `snapshots/NAME/.recipes/…` | the files of the uploaded recipes |
//!
//! The name begins with the number of the first record that is not in the snapshot. A collection may be ahead of it,
//! because it is copied while records are applied; it knows its own position.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_log::{
    CreateOutcome, LogStore, LogTail, SNAPSHOT_MANIFEST, SNAPSHOT_PREFIX, StoreError,
};
use lookalike_store::{Disk, DiskFolder, restore_collection};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::collections::{AliasMap, ServedCollections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::RECIPES_DIRECTORY;
use crate::snapshots::{SnapshotPlace, SnapshotRefusal, SnapshotStore};

/// Name of the file that a process locks which has a directory open.
const LOCK_FILE: &str = "lock";

/// Version of the manifest.
const MANIFEST_FORMAT: u32 = 1;

/// Manifest of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogSnapshot {
    format: u32,
    pub(crate) name: String,
    /// Name of the replica that made it.
    pub(crate) replica: String,
    /// Place in the log: records from there on are not in the snapshot.
    pub(crate) tail: LogTail,
    /// Place up to which its collections may have applied records, because they are copied while others come.
    pub(crate) end: LogTail,
    pub(crate) collections: Vec<String>,
    recipe_files: Vec<String>,
    pub(crate) aliases: AliasMap,
}

/// State of the service at one place of the log, except its collections.
pub(crate) struct ServiceParts {
    pub(crate) tail: LogTail,
    pub(crate) collections: Vec<String>,
    pub(crate) aliases: AliasMap,
    /// Names and contents of the files of the recipes.
    pub(crate) recipe_files: Vec<(String, Vec<u8>)>,
}

/// The place of the snapshots of a log.
pub(crate) struct LogSnapshots {
    store: Arc<dyn LogStore>,
    copies: SnapshotStore,
}

impl LogSnapshots {
    /// Opens the snapshots of the log at a URL.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub(crate) fn open(url: &str, store: Arc<dyn LogStore>, runtime: &Handle) -> Result<Self> {
        if url.starts_with("file://") && url.contains('%') {
            bail!(
                "the shared log '{url}': a directory is given without percent-encoding, so its path has no '%'"
            );
        }
        let place = match url.strip_prefix("file://") {
            Some(path) => SnapshotPlace::Folder(Path::new(path).join("snapshots")),
            None => SnapshotPlace::Url(format!("{}/snapshots", url.trim_end_matches('/'))),
        };
        let copies = SnapshotStore::open_place(&place, runtime.clone())?;
        Ok(Self { store, copies })
    }

    /// Returns the complete snapshots, the oldest first.
    ///
    /// # Errors
    /// If the store cannot be read, or a manifest is malformed.
    pub(crate) fn list_snapshots(&self) -> Result<Vec<LogSnapshot>> {
        let listed = self.store.list(SNAPSHOT_PREFIX).map_err(unreadable)?;
        let suffix = format!("/{SNAPSHOT_MANIFEST}");
        let keys = listed.into_iter().map(|object| object.key);
        let mut found = Vec::new();
        for key in keys.filter(|key| key.ends_with(&suffix)) {
            // It may have been removed meanwhile.
            if let Some(bytes) = self.store.read(&key).map_err(unreadable)? {
                found.push(parse_manifest(&key, &bytes)?);
            }
        }
        found.sort_by_key(|snapshot| (snapshot.tail.next, snapshot.tail.time_us));
        Ok(found)
    }

    /// Writes a snapshot of a state. `applied` returns the place up to which records are applied now.
    ///
    /// A collection is copied to the folder `scratch` first, and from there to the store, because writers wait while the
    /// end of its newest partition is copied, and a store can be slow.
    ///
    /// # Errors
    /// If a collection cannot be copied, or the store refuses a request.
    pub(crate) fn write_snapshot(
        &self,
        replica: &str,
        parts: ServiceParts,
        collections: &ServedCollections,
        scratch: &Path,
        applied: &dyn Fn() -> LogTail,
    ) -> Result<LogSnapshot, ApiProblem> {
        let name = snapshot_name(replica, &parts.tail);
        let mut copied = Vec::new();
        for collection in parts.collections {
            let scratch = ScratchFolder::create(scratch)?;
            copy_if_unchanged(&collection, &parts.tail, collections, &scratch)?;
            let made = self.copies.make_snapshot(&name, &collection, |disk| {
                restore_collection(&scratch.disk, disk, 0)
            });
            match made {
                // An interrupted attempt of this replica has copied it.
                Ok(()) | Err(SnapshotRefusal::Exists) => copied.push(collection),
                Err(refusal) => return Err(copy_problem(&collection, &refusal)),
            }
        }
        let mut recipe_files = Vec::new();
        for (file, content) in parts.recipe_files {
            let key = format!("{SNAPSHOT_PREFIX}{name}/{RECIPES_DIRECTORY}/{file}");
            self.store.replace(&key, &content).map_err(store_problem)?;
            recipe_files.push(file);
        }
        let snapshot = LogSnapshot {
            format: MANIFEST_FORMAT,
            name,
            replica: replica.to_owned(),
            tail: parts.tail,
            end: applied(),
            collections: copied,
            recipe_files,
            aliases: parts.aliases,
        };
        self.write_manifest(&snapshot).map_err(store_problem)?;
        Ok(snapshot)
    }

    fn write_manifest(&self, snapshot: &LogSnapshot) -> Result<(), StoreError> {
        // Strings and numbers always serialise.
        let body = serde_json::to_vec(snapshot).unwrap_or_default();
        let key = manifest_key(&snapshot.name);
        match self.store.create(&key, &body)? {
            CreateOutcome::Created | CreateOutcome::AlreadyExists => Ok(()),
        }
    }

    /// Removes the rest of an attempt to make the snapshot at a place.
    ///
    /// # Errors
    /// If the store refuses a request.
    pub(crate) fn remove_rest(&self, replica: &str, tail: &LogTail) -> Result<(), StoreError> {
        let prefix = format!("{SNAPSHOT_PREFIX}{}/", snapshot_name(replica, tail));
        for object in self.store.list(&prefix)? {
            self.store.remove(&object.key)?;
        }
        Ok(())
    }

    /// Removes a snapshot; its manifest first, so that nobody begins to read it.
    ///
    /// # Errors
    /// If the store refuses a request.
    pub(crate) fn remove_snapshot(&self, snapshot: &LogSnapshot) -> Result<(), StoreError> {
        self.store.remove(&manifest_key(&snapshot.name))?;
        let prefix = format!("{SNAPSHOT_PREFIX}{}/", snapshot.name);
        for object in self.store.list(&prefix)? {
            self.store.remove(&object.key)?;
        }
        Ok(())
    }

    /// Copies the files of the recipes and the aliases to an empty data directory that is not open.
    ///
    /// # Errors
    /// If the store or the disk fails.
    pub(crate) fn restore_small_parts(
        &self,
        snapshot: &LogSnapshot,
        directory: &Path,
    ) -> Result<()> {
        let recipes = directory.join(RECIPES_DIRECTORY);
        let refused = |error: io::Error| Error::new(format!("{}: {error}", recipes.display()));
        match fs::remove_dir_all(&recipes) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => fs::create_dir_all(&recipes).map_err(refused)?,
        }
        for file in &snapshot.recipe_files {
            let key = format!(
                "{SNAPSHOT_PREFIX}{}/{RECIPES_DIRECTORY}/{file}",
                snapshot.name
            );
            let Some(content) = self.store.read(&key).map_err(unreadable)? else {
                bail!(
                    "the snapshot '{}' is incomplete: '{key}' is missing",
                    snapshot.name
                );
            };
            fs::write(recipes.join(file), content).map_err(refused)?;
        }
        crate::collections::write_aliases(directory, &snapshot.aliases)
            .map_err(with_context("the aliases cannot be written"))
    }

    /// Copies the collections of a snapshot to the directory of open collections, and opens them.
    ///
    /// # Errors
    /// If the store or the disk fails, or the snapshot is damaged.
    pub(crate) fn restore_collections(
        &self,
        snapshot: &LogSnapshot,
        collections: &ServedCollections,
        headroom: u64,
    ) -> Result<(), ApiProblem> {
        for collection in &snapshot.collections {
            let copy = |to: &dyn Disk| {
                let read = self
                    .copies
                    .read_snapshot(&snapshot.name, collection, |from| {
                        restore_collection(from, to, headroom)
                    });
                let read = read.map_err(|refusal| copy_problem(collection, &refusal))?;
                let copied = read.ok_or_else(|| {
                    let detail = format!(
                        "the snapshot '{}' is incomplete: the collection '{collection}' is missing",
                        snapshot.name
                    );
                    ApiProblem::new(ProblemCode::Damaged, detail)
                })?;
                copied.map_err(ApiProblem::from)
            };
            collections.restore_collection(collection, copy)?;
        }
        Ok(())
    }
}

/// Copies a collection as it was at a place of the log, or later. The collection is not kept during the transfer to the
/// store, because the files of a deleted one stay while it is used.
///
/// # Errors
/// If it has been deleted, or created again, since that place: a snapshot without it would differ from the others' states.
fn copy_if_unchanged(
    name: &str,
    tail: &LogTail,
    collections: &ServedCollections,
    scratch: &ScratchFolder,
) -> Result<(), ApiProblem> {
    let changed = || {
        let detail = format!(
            "the collection '{name}' was deleted while the snapshot was made, which is made again later"
        );
        ApiProblem::new(ProblemCode::LogUnavailable, detail)
    };
    let open = collections
        .look_up_collection(name)
        .map_err(|_| changed())?;
    let created = open.collection.created_at();
    if created.is_some_and(|created| created.record >= tail.next) {
        return Err(changed());
    }
    let copied = open.collection.copy_to_snapshot(&scratch.disk);
    copied.map_err(|error| open.to_problem(error))
}

/// A folder for the copy of one collection, which is removed in the end.
struct ScratchFolder {
    path: PathBuf,
    disk: DiskFolder,
}

impl ScratchFolder {
    fn create(path: &Path) -> Result<Self, ApiProblem> {
        let failed = |error: io::Error| {
            let detail = format!("the folder {}: {error}", path.display());
            ApiProblem::new(ProblemCode::Disk, detail)
        };
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        Ok(Self {
            path: path.to_owned(),
            disk: DiskFolder::open(path).map_err(failed)?,
        })
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // The next one removes what stays.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn snapshot_name(replica: &str, tail: &LogTail) -> String {
    format!("{:016x}-{replica}", tail.next)
}

fn manifest_key(name: &str) -> String {
    format!("{SNAPSHOT_PREFIX}{name}/{SNAPSHOT_MANIFEST}")
}

fn parse_manifest(key: &str, bytes: &[u8]) -> Result<LogSnapshot> {
    let snapshot: LogSnapshot =
        serde_json::from_slice(bytes).map_err(with_context(format!("the snapshot '{key}'")))?;
    if snapshot.format > MANIFEST_FORMAT {
        bail!(
            "the snapshot '{key}' has the format {}, and this program reads up to {MANIFEST_FORMAT}: upgrade it",
            snapshot.format
        );
    }
    Ok(snapshot)
}

fn unreadable(error: StoreError) -> Error {
    Error::new(format!("the snapshots of the shared log: {error}"))
}

fn store_problem(error: StoreError) -> ApiProblem {
    let detail = format!("the snapshot cannot be written: {error}");
    ApiProblem::new(ProblemCode::LogUnavailable, detail)
}

fn copy_problem(collection: &str, refusal: &SnapshotRefusal) -> ApiProblem {
    let detail = format!("the copy of the collection '{collection}' failed: {refusal:?}");
    ApiProblem::new(ProblemCode::LogUnavailable, detail)
}

/// Reads the files of the recipes of a data directory.
///
/// # Errors
/// If the disk fails.
pub(crate) fn read_recipe_files(directory: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory.join(RECIPES_DIRECTORY))? {
        let entry = entry?;
        if entry.file_type()?.is_file()
            && let Ok(name) = entry.file_name().into_string()
            && name != LOCK_FILE
        {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort_unstable();
    Ok(files)
}
