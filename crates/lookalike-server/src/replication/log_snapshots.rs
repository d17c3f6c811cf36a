//! Snapshots beside the log, from which new replicas start and states of the past are restored.
//!
//! | key | object |
//! |---|---|
//! | `snapshots/NAME/manifest.json` | the place in the log, the collections and the aliases; written last |
//! | `snapshots/NAME/COLLECTION/…` | the files of a collection |
//! | `snapshots/NAME/.recipes/…` | the files of the uploaded recipes |
//! | `snapshots/NAME/confirmed.json` | the replicas that had the same state later; absent until then |
//!
//! The name begins with the number of the first record that is not in the snapshot. A collection may be ahead of it,
//! because it is copied while records are applied; it knows its own position.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_log::{
    CreateOutcome, LogStore, LogTail, RecordDigest, SNAPSHOT_MANIFEST, SNAPSHOT_PREFIX, StoreError,
};
use lookalike_store::{Disk, DiskFolder, restore_collection};
use lookalike_system::Directory;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::state_check::ConfirmedPlace;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::collections::{AliasMap, ServedCollections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::RECIPES_DIRECTORY;
use crate::snapshots::{SnapshotPlace, SnapshotRefusal, SnapshotStore};

/// Name of the file that a process locks which has a directory open.
const LOCK_FILE: &str = "lock";

/// Name of the object that says which replicas had the same state as a snapshot.
const CONFIRMATION_NAME: &str = "confirmed.json";

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
    /// Comparison of states on which the snapshot rests; `None` in manifests of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checked: Option<StateComparison>,
    /// SHA-256 of the object of the manifest.
    #[serde(skip)]
    pub(crate) manifest: Option<RecordDigest>,
    /// `true` if another replica had the same state behind a record that is not before `end`.
    #[serde(skip)]
    is_confirmed: bool,
}

/// Comparison of the states of replicas before a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateComparison {
    /// No other replica was active, so nobody could confirm the state.
    Alone,
    /// Others had the same state at this place.
    Confirmed(ConfirmedPlace),
}

impl LogSnapshot {
    /// Returns `true` if the snapshot is the beginning of a log: no record is in it.
    pub(crate) fn is_beginning(&self) -> bool {
        self.tail.next == LogTail::default().next
    }

    /// Returns `true` if another replica had the same state, or none was active that could have had another one.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_confirmed || self.checked == Some(StateComparison::Alone)
    }

    /// Returns `true` if nobody has confirmed the snapshot of this replica and its state is at most that behind
    /// `record`.
    pub(crate) fn awaits_confirmation(&self, replica: &str, record: u64) -> bool {
        self.replica == replica && !self.is_confirmed && self.end.next <= record + 1
    }

    /// Returns `true` if the snapshot is of this replica and nobody has confirmed it, neither by itself nor by the state
    /// behind `record`, which others had, too.
    pub(crate) fn is_unconfirmed_of(&self, replica: &str, record: u64) -> bool {
        let has_later = self.end.next > record + 1;
        self.replica == replica && !self.is_confirmed && !self.is_beginning() && has_later
    }
}

/// Returns the snapshot, of some that are sorted by their places, from which a replica begins: the newest one whose state
/// is trusted, or the newest one.
pub(crate) fn choose_snapshot(sorted: &[LogSnapshot]) -> Option<&LogSnapshot> {
    let mut newest_first = sorted.iter().rev();
    newest_first
        .find(|snapshot| snapshot.is_trusted())
        .or_else(|| sorted.last())
}

/// State of the service at one place of the log, except its collections.
pub(crate) struct ServiceParts {
    pub(crate) tail: LogTail,
    pub(crate) collections: Vec<String>,
    pub(crate) aliases: AliasMap,
    /// Names and contents of the files of the recipes.
    pub(crate) recipe_files: Vec<(String, Vec<u8>)>,
    pub(crate) checked: StateComparison,
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
        let path = url.strip_prefix("file://");
        // The host of a URL is this machine, or is left out.
        let place = match path.map(|path| path.strip_prefix("localhost").unwrap_or(path)) {
            Some(path) => SnapshotPlace::Folder(Path::new(path).join("snapshots")),
            None => SnapshotPlace::Url(format!("{}/snapshots", url.trim_end_matches('/'))),
        };
        let copies = SnapshotStore::open_place(&place, runtime.clone())?;
        Ok(Self { store, copies })
    }

    /// Returns the complete snapshots, the oldest first. One whose manifest cannot be read is left out with a warning,
    /// because others are as good.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn list_snapshots(&self) -> Result<Vec<LogSnapshot>, StoreError> {
        let listed = self.store.list(SNAPSHOT_PREFIX)?;
        let keys: BTreeSet<_> = listed.into_iter().map(|object| object.key).collect();
        let mut found = Vec::new();
        for key in &keys {
            let Some(name) = parse_manifest_key(key) else {
                continue;
            };
            // It may have been removed meanwhile.
            let Some(bytes) = self.store.read(key)? else {
                continue;
            };
            match parse_manifest(key, &bytes) {
                Ok(snapshot) => found.push(LogSnapshot {
                    is_confirmed: keys.contains(&confirmation_key(name)),
                    ..snapshot
                }),
                Err(error) => tracing::warn!(%error, "a snapshot is not used"),
            }
        }
        found.sort_by_key(|snapshot| (snapshot.tail.next, snapshot.tail.time_us));
        Ok(found)
    }

    /// Notes that other replicas had the same state as a snapshot, at a place behind it.
    ///
    /// # Errors
    /// If the store refuses the request.
    pub(crate) fn confirm_snapshot(
        &self,
        name: &str,
        place: &ConfirmedPlace,
    ) -> Result<(), StoreError> {
        // Strings and numbers always serialise.
        let body = serde_json::to_vec(place).unwrap_or_default();
        self.store.replace(&confirmation_key(name), &body)
    }

    /// Writes a snapshot of a state. `applied` returns the place up to which records are applied now.
    ///
    /// A collection is copied to the folder `scratch` first, and from there to the store, because writers wait while the
    /// end of its newest partition is copied, and a store can be slow.
    ///
    /// `is_permitted` is asked before the manifest makes the snapshot complete.
    ///
    /// # Errors
    /// If a collection cannot be copied, the snapshot is not permitted any more, or the store refuses a request.
    pub(crate) fn write_snapshot(
        &self,
        replica: &str,
        parts: ServiceParts,
        collections: &ServedCollections,
        scratch: &Path,
        applied: &dyn Fn() -> LogTail,
        is_permitted: &dyn Fn() -> bool,
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
        if !is_permitted() {
            let detail = "another replica has another state: no snapshot is made until it is known which one is right";
            return Err(ApiProblem::new(ProblemCode::LogUnavailable, detail));
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
            checked: Some(parts.checked),
            manifest: None,
            is_confirmed: false,
        };
        let manifest = self.write_manifest(&snapshot).map_err(store_problem)?;
        Ok(LogSnapshot {
            manifest: Some(manifest),
            ..snapshot
        })
    }

    /// Writes the manifest, and returns its digest. That of an earlier attempt stays.
    fn write_manifest(&self, snapshot: &LogSnapshot) -> Result<RecordDigest, StoreError> {
        // Strings and numbers always serialise.
        let body = serde_json::to_vec(snapshot).unwrap_or_default();
        let key = manifest_key(&snapshot.name);
        match self.store.create(&key, &body)? {
            CreateOutcome::Created => Ok(RecordDigest::compute(&body)),
            CreateOutcome::AlreadyExists => {
                let earlier = self.store.read(&key)?;
                Ok(RecordDigest::compute(&earlier.unwrap_or_default()))
            }
        }
    }

    /// Removes the rest of interrupted snapshots of a replica, except the one that it makes again. It makes one at a time,
    /// so none of the others goes on.
    ///
    /// # Errors
    /// If the store refuses a request.
    pub(crate) fn remove_rests(&self, replica: &str, kept: &str) -> Result<(), StoreError> {
        let listed = self.store.list(SNAPSHOT_PREFIX)?;
        let keys: BTreeSet<_> = listed.into_iter().map(|object| object.key).collect();
        let is_rest = |key: &&String| {
            parse_snapshot_name(key).is_some_and(|name| {
                name != kept && is_name_of(name, replica) && !keys.contains(&manifest_key(name))
            })
        };
        let mut rests = keys.iter().filter(is_rest);
        rests.try_for_each(|key| self.store.remove(key))
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
    pub(crate) fn remove_snapshot(&self, name: &str) -> Result<(), StoreError> {
        self.store.remove(&manifest_key(name))?;
        let prefix = format!("{SNAPSHOT_PREFIX}{name}/");
        for object in self.store.list(&prefix)? {
            self.store.remove(&object.key)?;
        }
        Ok(())
    }

    /// Copies the files of the recipes to a data directory, in place of those that are there. They are on disk when this
    /// returns. The aliases are removed; [`restore_collections`](Self::restore_collections) sets those of the snapshot.
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
        fs::create_dir_all(&recipes).map_err(refused)?;
        remove_recipe_files(&recipes).map_err(refused)?;
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
            write_synced(&recipes.join(file), &content).map_err(refused)?;
        }
        Directory::sync_path(&recipes).map_err(refused)?;
        crate::collections::write_aliases(directory, &AliasMap::new())
            .map_err(with_context("the aliases cannot be written"))
    }

    /// Copies the collections of a snapshot to the directory of open collections, opens them, and sets the aliases.
    /// Collections that are there already stay: they are of an earlier attempt with the same snapshot.
    ///
    /// # Errors
    /// If the store or the disk fails, or the snapshot is damaged.
    pub(crate) fn restore_collections(
        &self,
        snapshot: &LogSnapshot,
        collections: &ServedCollections,
        headroom: u64,
    ) -> Result<(), ApiProblem> {
        let complete = collections.open_names();
        let missing = snapshot.collections.iter();
        for collection in missing.filter(|collection| !complete.contains(collection)) {
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
        collections.replace_aliases(snapshot.aliases.clone())
    }
}

/// Removes all files of recipes. The lock of the directory stays, because it may be held.
fn remove_recipe_files(recipes: &Path) -> io::Result<()> {
    for entry in fs::read_dir(recipes)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != LOCK_FILE {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
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

pub(crate) fn snapshot_name(replica: &str, tail: &LogTail) -> String {
    format!("{:016x}-{replica}", tail.next)
}

/// Returns `true` if a name is that of a snapshot of this replica.
fn is_name_of(name: &str, replica: &str) -> bool {
    let place = name.strip_suffix(replica);
    place.is_some_and(|place| place.len() == 17 && place.ends_with('-'))
}

/// Returns the name of the snapshot to which an object belongs.
fn parse_snapshot_name(key: &str) -> Option<&str> {
    let path = key.strip_prefix(SNAPSHOT_PREFIX)?;
    path.split_once('/').map(|(name, _)| name)
}

/// Returns the name of the snapshot of a manifest; `None` if the key is that of another object.
fn parse_manifest_key(key: &str) -> Option<&str> {
    parse_snapshot_name(key).filter(|name| manifest_key(name) == key)
}

fn manifest_key(name: &str) -> String {
    format!("{SNAPSHOT_PREFIX}{name}/{SNAPSHOT_MANIFEST}")
}

fn confirmation_key(name: &str) -> String {
    format!("{SNAPSHOT_PREFIX}{name}/{CONFIRMATION_NAME}")
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
    Ok(LogSnapshot {
        manifest: Some(RecordDigest::compute(bytes)),
        ..snapshot
    })
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

#[cfg(test)]
pub(super) mod tests {
    use lookalike_log::simulation::MemoryStore;

    use super::*;

    /// A snapshot of a replica before the record `next`.
    pub(in super::super) fn snapshot(next: u64, replica: &str, is_confirmed: bool) -> LogSnapshot {
        let tail = LogTail {
            next,
            ..LogTail::default()
        };
        LogSnapshot {
            format: MANIFEST_FORMAT,
            name: snapshot_name(replica, &tail),
            replica: replica.to_owned(),
            tail,
            end: tail,
            collections: Vec::new(),
            recipe_files: Vec::new(),
            aliases: AliasMap::new(),
            checked: None,
            manifest: None,
            is_confirmed,
        }
    }

    /// The snapshots of a log in memory; their collections would be in a folder.
    pub(in super::super) fn open_snapshots(store: &Arc<MemoryStore>) -> LogSnapshots {
        static RUNTIME: std::sync::LazyLock<tokio::runtime::Runtime> =
            std::sync::LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
        let place = SnapshotPlace::Folder("unused".into());
        LogSnapshots {
            store: Arc::clone(store) as _,
            copies: SnapshotStore::open_place(&place, RUNTIME.handle().clone()).unwrap(),
        }
    }

    /// Writes the manifest of a snapshot; returns the snapshot as it is listed.
    pub(in super::super) fn write_snapshot(
        snapshots: &LogSnapshots,
        snapshot: LogSnapshot,
    ) -> LogSnapshot {
        let manifest = snapshots.write_manifest(&snapshot).unwrap();
        LogSnapshot {
            manifest: Some(manifest),
            ..snapshot
        }
    }

    fn names(snapshots: &LogSnapshots) -> Vec<String> {
        let listed = snapshots.list_snapshots().unwrap();
        listed.into_iter().map(|snapshot| snapshot.name).collect()
    }

    /// An unreadable manifest does not keep the other snapshots from being used.
    #[test]
    fn unreadable_manifest_is_left_out() {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let good = write_snapshot(&snapshots, snapshot(5, "a", false));
        for (name, manifest) in [
            ("0000000000000006-a", &b"{"[..]),
            ("0000000000000007-a", br#"{"format":9}"#),
        ] {
            store.replace(&manifest_key(name), manifest).unwrap();
        }
        // A manifest of a collection is none of a snapshot.
        store
            .replace("snapshots/x/news/manifest.json", b"{}")
            .unwrap();
        assert_eq!(snapshots.list_snapshots().unwrap(), [good]);
    }

    /// The newest snapshot that another replica has confirmed, or that was made without others, is that of a beginning.
    #[test]
    fn confirmed_snapshot_is_preferred() {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let choose = || {
            let listed = snapshots.list_snapshots().unwrap();
            choose_snapshot(&listed).map(|snapshot| snapshot.name.clone())
        };
        assert_eq!(choose(), None);
        for next in [65, 129, 193] {
            write_snapshot(&snapshots, snapshot(next, "c", false));
        }
        assert_eq!(choose().unwrap(), "00000000000000c1-c");
        let place: ConfirmedPlace =
            serde_json::from_str(r#"{"record":128,"collections":{},"replicas":["b"]}"#).unwrap();
        snapshots
            .confirm_snapshot("0000000000000041-c", &place)
            .unwrap();
        assert_eq!(choose().unwrap(), "0000000000000041-c");
        let alone = LogSnapshot {
            checked: Some(StateComparison::Alone),
            ..snapshot(160, "a", false)
        };
        write_snapshot(&snapshots, alone);
        assert_eq!(choose().unwrap(), "00000000000000a0-a");
        let listed = snapshots.list_snapshots().unwrap();
        let count_unconfirmed = |record| {
            let mut unconfirmed = listed.clone();
            unconfirmed.retain(|snapshot| snapshot.is_unconfirmed_of("c", record));
            unconfirmed.len()
        };
        assert_eq!([0, 127, 128, 192].map(count_unconfirmed), [2, 2, 1, 0]);
        // A place confirms the snapshots whose end is not behind it.
        let awaiting: Vec<_> = listed
            .iter()
            .map(|snapshot| snapshot.awaits_confirmation("c", 128))
            .collect();
        assert_eq!(awaiting, [false, true, false, false]);
    }

    /// The rest of interrupted snapshots of a replica is removed, and nothing else.
    #[test]
    fn rests_of_one_replica_are_removed() {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let complete = write_snapshot(&snapshots, snapshot(5, "a", false));
        let keys = [
            format!("snapshots/{}/news/rows", complete.name),
            "snapshots/0000000000000004-a/news/rows".to_owned(),
            "snapshots/0000000000000006-a/news/rows".to_owned(),
            "snapshots/0000000000000004-b-a/news/rows".to_owned(),
            "snapshots/0000000000000004-b/news/rows".to_owned(),
        ];
        for key in &keys {
            store.replace(key, b"x").unwrap();
        }
        snapshots.remove_rests("a", "0000000000000006-a").unwrap();
        let left: Vec<_> = keys
            .iter()
            .map(|key| store.read(key).unwrap().is_some())
            .collect();
        assert_eq!(left, [true, false, true, true, true]);
        assert_eq!(names(&snapshots), [complete.name]);
    }

    /// Both forms of the URL of a directory name one place.
    #[test]
    fn host_of_a_directory_is_no_part_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let made = snapshot(5, "a", false);
        for host in ["", "localhost"] {
            let url = format!("file://{host}{}", folder.path().display());
            let snapshots =
                LogSnapshots::open(&url, Arc::clone(&store) as _, runtime.handle()).unwrap();
            let name = format!("news{host}");
            let copied = snapshots
                .copies
                .make_snapshot(&made.name, &name, |_| Ok(()));
            copied.unwrap();
        }
        let copies = folder.path().join("snapshots").join(&made.name);
        for name in ["news", "newslocalhost"] {
            assert!(copies.join(name).is_dir(), "{name}");
        }
    }
}
