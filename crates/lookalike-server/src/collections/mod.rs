//! The collections of a service: one directory each, below a directory that only one process has open.
//!
//! The name of a collection is the name of its directory, so names use a small alphabet. A directory that has
//! neither a manifest nor rows nor texts is an incompletely created collection; it is ignored. Deleting a
//! collection first renames its directory in one step, and then removes its files. Files that do not belong
//! to a collection are never removed.
//!
//! Without a shared log, a deletion waits until nobody uses the collection before it renames. With one, it renames at
//! once, because every replica applies the deletion, and a slow reader must stop none of them. Those who still use the
//! collection go on with the renamed directory, whose files are removed behind them. Windows renames no directory in which
//! a file is open, so that a replica there waits for its readers.

mod aliases;
#[cfg(test)]
pub(crate) mod costly_collection;
mod insert_queue;
pub(crate) mod maintenance;
pub(crate) mod nearest_document;
pub(crate) mod open_collection;
pub(crate) mod passage_search;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, Disk, DiskFolder, LogPosition,
    MANIFEST_FILE, SettingsChange, is_collection_file, is_creation_file, is_data_file,
    make_directory, verify_collection,
};
use lookalike_system::{Directory, RENAMES_OPEN_DIRECTORIES, read_disk_space, replace_file};

use self::aliases::CollectionAliases;
pub(crate) use self::aliases::{AliasMap, MAX_ALIASES, has_aliases, write_aliases};
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::collections::open_collection::OpenCollection;
use crate::error::{Result, bail, with_context};
use crate::json::settings::difference;

/// Longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 64;

/// Name of the file that the process locks which has the directory open.
const LOCK_FILE: &str = "lock";

/// Name prefix of the directories of deleted collections.
const DELETED_PREFIX: &str = ".deleted-";

/// Name prefix of the directories of collections that are being restored.
const RESTORING_PREFIX: &str = ".restoring-";

/// Interval between checks whether a collection that is to be deleted is still in use.
const DELETION_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// All collections of a service.
pub(crate) struct ServedCollections {
    directory: PathBuf,
    options: CollectionOptions,
    states: RwLock<BTreeMap<String, CollectionStatus>>,
    /// Deleted collections whose files are still there.
    deleted: Mutex<Vec<DeletedCollection>>,
    aliases: CollectionAliases,
    /// Locked while a collection is created, or begins to be deleted, and while aliases change.
    changing: Mutex<()>,
    /// Lock file, held until this is dropped.
    _lock: File,
}

/// A deleted collection whose directory has been renamed.
struct DeletedCollection {
    directory: PathBuf,
    /// The collection, which requests may still use; `None` if it could not be opened.
    open: Option<Arc<OpenCollection>>,
}

/// Changes of aliases that are made in one step.
pub(crate) struct AliasChanges {
    /// Collections by the alias that each gets.
    pub(crate) set: AliasMap,
    /// Aliases that are removed.
    pub(crate) remove: Vec<String>,
}

/// State of a collection.
#[derive(Clone)]
pub(crate) enum CollectionStatus {
    /// Being opened.
    Opening,
    /// In use.
    Open(Arc<OpenCollection>),
    /// Cannot be opened, for this reason.
    Failed(String),
    /// Being deleted.
    Deleting,
}

/// A data directory that this process alone may change, until this is dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    directory: PathBuf,
    file: File,
}

impl DirectoryLock {
    /// Locks a directory, and creates it if necessary.
    ///
    /// # Errors
    /// If another process has the directory open, or a disk operation fails.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let at = describe_data(directory);
        make_directory(directory).map_err(with_context(&at))?;
        // Not truncated, because Windows refuses that for a file that another process has locked.
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join(LOCK_FILE))
            .map_err(with_context(&at))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                directory: directory.to_owned(),
                file,
            }),
            Err(TryLockError::WouldBlock) => bail!("{at}: another process has it open"),
            Err(TryLockError::Error(error)) => bail!("{at}: it cannot be locked: {error}"),
        }
    }
}

fn describe_data(directory: &Path) -> String {
    format!("the directory of --data, {}", directory.display())
}

impl ServedCollections {
    /// Locks a directory, and creates it if necessary. [`open_all`](Self::open_all) then opens its
    /// collections.
    ///
    /// # Errors
    /// If another process has the directory open, or a disk operation fails.
    pub(crate) fn new(directory: &Path, options: CollectionOptions) -> Result<Self> {
        Self::with_lock(DirectoryLock::acquire(directory)?, options)
    }

    /// Finds the collections of a directory that is locked. [`open_all`](Self::open_all) then opens them.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn with_lock(lock: DirectoryLock, options: CollectionOptions) -> Result<Self> {
        let DirectoryLock {
            directory,
            file: lock,
        } = lock;
        let at = describe_data(&directory);
        let mut states = BTreeMap::new();
        for entry in fs::read_dir(&directory).map_err(with_context(&at))? {
            let entry = entry.map_err(with_context(&at))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.starts_with(DELETED_PREFIX) || name.starts_with(RESTORING_PREFIX) {
                remove_leftovers(&entry.path());
            } else if check_name(&name).is_ok()
                && let Some(state) = CollectionStatus::from_directory(&entry.path())
            {
                states.insert(name, state);
            }
        }
        Ok(Self {
            options,
            states: RwLock::new(states),
            deleted: Mutex::default(),
            aliases: CollectionAliases::open(&directory)?,
            directory,
            changing: Mutex::new(()),
            _lock: lock,
        })
    }

    /// Opens all collections one after another, each on all threads of the pool. A collection that cannot be
    /// opened does not keep the others from being opened.
    pub(crate) fn open_all(&self) {
        for (name, state) in self.list_states() {
            if let CollectionStatus::Failed(error) = state {
                tracing::error!(collection = name, error, "cannot be opened");
                continue;
            }
            let started = std::time::Instant::now();
            let opened = self.open_folder(&name).and_then(|folder| {
                Collection::open_existing(Arc::new(folder), self.options.clone())
                    .map_err(ApiProblem::from)
            });
            let state = match opened {
                Ok(collection) => {
                    let seconds = started.elapsed().as_secs_f64();
                    tracing::info!(collection = name, seconds, "opened");
                    CollectionStatus::Open(Arc::new(OpenCollection::new(&name, collection)))
                }
                Err(problem) => {
                    tracing::error!(
                        collection = name,
                        error = problem.detail,
                        "cannot be opened"
                    );
                    CollectionStatus::Failed(problem.detail)
                }
            };
            self.write_states().insert(name, state);
        }
    }

    /// Returns the names and states of all collections.
    pub(crate) fn list_states(&self) -> Vec<(String, CollectionStatus)> {
        let states = self.read_states();
        states
            .iter()
            .map(|(name, state)| (name.clone(), state.clone()))
            .collect()
    }

    /// Returns the names of the open collections whose recipe is named `recipe`, and the identities of these recipes.
    pub(crate) fn open_users_of_recipe(&self, recipe: &str) -> Vec<(String, String)> {
        let states = self.read_states();
        let users = states.iter().filter_map(|(name, state)| match state {
            CollectionStatus::Open(open) => {
                let used = &open.collection.collection_settings().recipe;
                let is_used = used.name == recipe;
                is_used.then(|| (name.clone(), used.recipe_id().to_string()))
            }
            _ => None,
        });
        users.collect()
    }

    /// Returns the names of the collections whose recipe is named `recipe`, and the identities of these recipes. A
    /// collection that cannot be opened does not count, because it has its own copy of its recipe.
    ///
    /// # Errors
    /// If the recipe of a collection is not known yet, because the collection is still being opened.
    pub(crate) fn users_of_recipe(
        &self,
        recipe: &str,
    ) -> Result<Vec<(String, String)>, ApiProblem> {
        let states = self.read_states();
        let is_opening = |state: &CollectionStatus| matches!(state, CollectionStatus::Opening);
        if let Some((name, _)) = states.iter().find(|(_, state)| is_opening(state)) {
            return Err(ApiProblem::new(
                ProblemCode::NotReady,
                format!("the collection '{name}', which may use the recipe, is still being opened"),
            ));
        }
        drop(states);
        Ok(self.open_users_of_recipe(recipe))
    }

    /// Returns the name of a collection: the one that an alias stands for, or the given one.
    pub(crate) fn resolve_name(&self, name: &str) -> String {
        self.aliases
            .find_collection(name)
            .unwrap_or_else(|| name.to_owned())
    }

    /// Returns `true` if a collection or an alias has this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.read_states().contains_key(name) || self.aliases.find_collection(name).is_some()
    }

    /// Returns all aliases.
    pub(crate) fn list_aliases(&self) -> AliasMap {
        self.aliases.list_aliases()
    }

    /// Changes aliases in one step, and returns all of them. Every request sees either none or all of the
    /// changes. Requests that have begun end with the collection that they began with.
    ///
    /// # Errors
    /// If an alias is not a valid name or is that of a collection, a collection does not exist, an alias that
    /// is to be removed does not exist or is also set, there are too many aliases, or a disk operation fails.
    pub(crate) fn change_aliases(&self, changes: AliasChanges) -> Result<AliasMap, ApiProblem> {
        let _changing = self.lock_changes();
        let mut aliases = self.aliases.list_aliases();
        for alias in &changes.remove {
            if changes.set.contains_key(alias) {
                let detail = format!(
                    "the alias '{}' is both set and removed",
                    shorten_text(alias)
                );
                return Err(ApiProblem::new(ProblemCode::BadName, detail));
            }
            if aliases.remove(alias).is_none() {
                let detail = format!(
                    "there is no alias '{}': GET /v1/aliases lists them",
                    shorten_text(alias)
                );
                return Err(ApiProblem::new(ProblemCode::NoAlias, detail));
            }
        }
        for (alias, collection) in changes.set {
            self.check_alias(&alias, &collection)?;
            aliases.insert(alias, collection);
        }
        if aliases.len() > MAX_ALIASES {
            let detail = format!(
                "there would be {} aliases, and the limit is {MAX_ALIASES}: remove some first",
                aliases.len()
            );
            return Err(ApiProblem::new(ProblemCode::BadName, detail));
        }
        self.aliases
            .replace_aliases(aliases.clone())
            .map_err(|error| {
                ApiProblem::new(
                    ProblemCode::Disk,
                    format!("the aliases cannot be written: {error}"),
                )
            })?;
        tracing::info!(?aliases, "aliases changed");
        Ok(aliases)
    }

    /// Replaces all aliases by those of a snapshot whose collections are open. They are on disk when this returns.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn replace_aliases(&self, aliases: AliasMap) -> Result<(), ApiProblem> {
        let _changing = self.lock_changes();
        self.aliases.replace_aliases(aliases).map_err(|error| {
            let detail = format!("the aliases cannot be written: {error}");
            ApiProblem::new(ProblemCode::Disk, detail)
        })
    }

    fn check_alias(&self, alias: &str, collection: &str) -> Result<(), ApiProblem> {
        check_name(alias)?;
        let states = self.read_states();
        if states.contains_key(alias) {
            let detail = format!("'{alias}' is a collection: an alias needs another name");
            return Err(ApiProblem::new(ProblemCode::CollectionConflict, detail));
        }
        match states.get(collection) {
            // A collection that is being restored may still fail to become one.
            Some(state @ (CollectionStatus::Deleting | CollectionStatus::Opening)) => {
                Err(state.status_problem(collection))
            }
            Some(_) => Ok(()),
            None => {
                let detail = format!("there is no collection '{}'", shorten_text(collection));
                Err(ApiProblem::new(ProblemCode::NoCollection, detail))
            }
        }
    }

    /// Checks that a name is not an alias, because calls that create, change or delete a collection need its own name.
    fn refuse_alias(&self, name: &str) -> Result<(), ApiProblem> {
        let Some(collection) = self.aliases.find_collection(name) else {
            return Ok(());
        };
        let detail = format!(
            "'{name}' is an alias of the collection '{collection}': use the name of a collection, or \
             remove the alias first"
        );
        Err(ApiProblem::new(ProblemCode::CollectionConflict, detail))
    }

    /// Returns the names of the open collections.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let states = self.read_states();
        let open = states
            .iter()
            .filter(|(_, state)| matches!(state, CollectionStatus::Open(_)));
        open.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the bytes of memory of all indexes of passages.
    pub(crate) fn passage_bytes(&self) -> u64 {
        let states = self.read_states();
        let bytes = states.values().map(|state| match state {
            CollectionStatus::Open(open) => open.passages.memory_bytes(),
            _ => 0,
        });
        bytes.sum()
    }

    /// Returns an open collection by its own name.
    ///
    /// # Errors
    /// If there is none with this name, or it is not open.
    pub(crate) fn look_up_collection(&self, name: &str) -> Result<Arc<OpenCollection>, ApiProblem> {
        match self.read_states().get(name) {
            Some(CollectionStatus::Open(open)) => Ok(Arc::clone(open)),
            Some(other) => Err(other.status_problem(name)),
            None => {
                check_name(name)?;
                Err(ApiProblem::new(
                    ProblemCode::NoCollection,
                    format!("there is no collection '{name}'"),
                ))
            }
        }
    }

    /// Creates a collection, unless it exists with the same settings. Also returns `true` if it was created.
    ///
    /// # Errors
    /// If it exists with other settings, the name is invalid, or a disk operation fails.
    pub(crate) fn create_collection(
        &self,
        name: &str,
        settings: &CollectionSettings,
    ) -> Result<(Arc<OpenCollection>, bool), ApiProblem> {
        self.create_collection_at(name, settings, None)
    }

    /// Creates a collection, as [`create_collection`](Self::create_collection) does, at a position of a shared log.
    ///
    /// # Errors
    /// As for [`create_collection`](Self::create_collection). With a position, files of others in its directory are a
    /// problem of this disk, because other replicas do not have them.
    pub(crate) fn create_collection_at(
        &self,
        name: &str,
        settings: &CollectionSettings,
        position: Option<LogPosition>,
    ) -> Result<(Arc<OpenCollection>, bool), ApiProblem> {
        check_name(name)?;
        let _changing = self.lock_changes();
        self.refuse_alias(name)?;
        match self.read_states().get(name) {
            None => {}
            Some(CollectionStatus::Open(open))
                if *open.collection.collection_settings() == *settings =>
            {
                return Ok((Arc::clone(open), false));
            }
            Some(CollectionStatus::Open(open)) => {
                let difference = difference(&open.collection.collection_settings(), settings);
                let detail =
                    format!("the collection '{name}' exists with other settings: {difference}");
                return Err(ApiProblem::new(ProblemCode::CollectionConflict, detail));
            }
            Some(other) => return Err(other.status_problem(name)),
        }
        self.check_unused(name).map_err(|problem| match position {
            None => problem,
            // Other replicas do not have these files.
            Some(_) => ApiProblem::new(ProblemCode::Disk, problem.detail),
        })?;
        let disk = Arc::new(self.open_folder(name)?);
        let options = self.options.clone();
        let made = match position {
            Some(position) => Collection::create_at(disk, settings, options, position),
            None => Collection::create_empty(disk, settings, options),
        };
        let collection = made.map_err(|error| {
            // The remaining files are not a collection and would only prevent another attempt.
            let _ = remove_own(&self.directory.join(name));
            ApiProblem::from(error)
        })?;
        let open = Arc::new(OpenCollection::new(name, collection));
        self.write_states()
            .insert(name.to_owned(), CollectionStatus::Open(Arc::clone(&open)));
        tracing::info!(collection = name, "made");
        Ok((open, true))
    }

    /// Changes settings of a collection; returns the collection.
    ///
    /// # Errors
    /// If there is no open collection with this name, the name is an alias, a setting cannot be changed as asked,
    /// or a disk operation fails.
    pub(crate) fn change_settings(
        &self,
        name: &str,
        change: &SettingsChange,
    ) -> Result<Arc<OpenCollection>, ApiProblem> {
        self.change_settings_by(name, change, |collection| {
            collection.change_settings(change)
        })
    }

    /// Changes settings, as [`change_settings`](Self::change_settings) does, at a position of a shared log.
    ///
    /// # Errors
    /// As for [`change_settings`](Self::change_settings).
    pub(crate) fn change_settings_at(
        &self,
        name: &str,
        change: &SettingsChange,
        position: LogPosition,
    ) -> Result<Arc<OpenCollection>, ApiProblem> {
        self.change_settings_by(name, change, |collection| {
            collection.change_settings_at(change, position)
        })
    }

    fn change_settings_by(
        &self,
        name: &str,
        change: &SettingsChange,
        change_settings: impl FnOnce(&Collection) -> lookalike_store::Result<Arc<CollectionSettings>>,
    ) -> Result<Arc<OpenCollection>, ApiProblem> {
        self.refuse_alias(name)?;
        let open = self.look_up_collection(name)?;
        let changed = change_settings(&open.collection);
        changed.map_err(|error| open.to_problem(error))?;
        tracing::info!(collection = name, ?change, "settings changed");
        Ok(open)
    }

    /// Forgets the positions of a shared log that the collections have followed.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn forget_log(&self) -> Result<(), ApiProblem> {
        for (_, state) in self.list_states() {
            if let CollectionStatus::Open(open) = state {
                let forgotten = open.collection.forget_log();
                forgotten.map_err(|error| open.to_problem(error))?;
            }
        }
        Ok(())
    }

    /// Returns the name of a collection that is not open, if there is one.
    pub(crate) fn first_not_open(&self) -> Option<String> {
        let is_open = |state: &CollectionStatus| matches!(state, CollectionStatus::Open(_));
        let states = self.list_states().into_iter();
        let mut others = states.filter(|(_, state)| !is_open(state));
        others.next().map(|(name, _)| name)
    }

    /// Returns why a disk has no room for more documents, if that is so.
    pub(crate) fn disk_full_reason(&self) -> Option<String> {
        self.read_states().values().find_map(|state| match state {
            CollectionStatus::Open(open) => {
                let full = open.collection.disk_full_error().ok().flatten();
                full.map(|error| error.to_string())
            }
            _ => None,
        })
    }

    /// Returns why the disk of the directory has no room for `bytes` beside the headroom, if that is so.
    pub(crate) fn lack_of_room(&self, bytes: u64) -> Option<String> {
        let free = read_disk_space(&self.directory)?.free;
        let needed = self.options.headroom.saturating_add(bytes);
        (free < needed).then(|| {
            format!(
                "the disk has {free} bytes left, and {needed} are wanted for this and as a reserve"
            )
        })
    }

    /// Creates a collection from a copy. `copy` copies it to an empty disk. The copy is verified before it
    /// becomes a collection, and an interrupted one is removed when the service starts again.
    ///
    /// # Errors
    /// If there is a collection or an alias of this name, any error of `copy`, the copy is damaged, or a disk
    /// operation fails.
    pub(crate) fn restore_collection(
        &self,
        name: &str,
        copy: impl FnOnce(&dyn Disk) -> Result<(), ApiProblem>,
    ) -> Result<Arc<OpenCollection>, ApiProblem> {
        self.reserve_name(name)?;
        let reservation = NameReservation {
            collections: self,
            name,
        };
        let restored = self.copy_and_open(name, copy);
        std::mem::forget(reservation);
        let mut states = self.write_states();
        match restored {
            Ok(collection) => {
                let open = Arc::new(OpenCollection::new(name, collection));
                states.insert(name.to_owned(), CollectionStatus::Open(Arc::clone(&open)));
                tracing::info!(collection = name, "restored");
                Ok(open)
            }
            Err(problem) => {
                // If the copy is complete but cannot be opened, its directory stays.
                if self.directory.join(name).join(MANIFEST_FILE).exists() {
                    let failed = CollectionStatus::Failed(problem.detail.clone());
                    states.insert(name.to_owned(), failed)
                } else {
                    states.remove(name)
                };
                Err(problem)
            }
        }
    }

    /// Reserves the name of a new collection.
    fn reserve_name(&self, name: &str) -> Result<(), ApiProblem> {
        check_name(name)?;
        let _changing = self.lock_changes();
        self.refuse_alias(name)?;
        match self.read_states().get(name) {
            None => {}
            Some(CollectionStatus::Open(_)) => {
                let detail = format!(
                    "the collection '{name}' exists: restore under another name, or delete it first"
                );
                return Err(ApiProblem::new(ProblemCode::CollectionConflict, detail));
            }
            Some(other) => return Err(other.status_problem(name)),
        }
        self.check_unused(name)?;
        self.write_states()
            .insert(name.to_owned(), CollectionStatus::Opening);
        Ok(())
    }

    fn copy_and_open(
        &self,
        name: &str,
        copy: impl FnOnce(&dyn Disk) -> Result<(), ApiProblem>,
    ) -> Result<Collection, ApiProblem> {
        let unfinished = self.directory.join(format!("{RESTORING_PREFIX}{name}"));
        let failed = |error: &io::Error| unusable_directory(name, error);
        if unfinished.exists() {
            remove_own(&unfinished).map_err(|error| failed(&error))?;
        }
        let copied = || {
            let disk = DiskFolder::open(&unfinished).map_err(|error| failed(&error))?;
            copy(&disk)?;
            let report = verify_collection(&disk)?;
            match report.findings.first() {
                None => Ok(()),
                Some(finding) => {
                    let detail = format!("the snapshot is damaged: {finding}");
                    Err(ApiProblem::new(ProblemCode::Damaged, detail))
                }
            }
        };
        let renamed = copied().and_then(|()| {
            let target = self.directory.join(name);
            // The remains of an interrupted creation are in the way.
            if target.exists() {
                remove_own(&target).map_err(|error| failed(&error))?;
            }
            replace_file(&unfinished, &target).map_err(|error| failed(&error))?;
            Directory::sync_path(&self.directory).map_err(|error| failed(&error))
        });
        if renamed.is_err() {
            let _ = remove_own(&unfinished);
        }
        renamed?;
        let disk = Arc::new(self.open_folder(name)?);
        Ok(Collection::open_existing(disk, self.options.clone())?)
    }

    /// Deletes a collection with everything in it, once no request uses it any more.
    ///
    /// # Errors
    /// If there is none with this name, or a disk operation fails.
    pub(crate) fn delete_collection(&self, name: &str) -> Result<(), ApiProblem> {
        // Other collections can be created and deleted during the wait.
        if let Some(open) = self.begin_to_delete(name)? {
            wait_until_unused(open);
        }
        let removed = self.remove_directory(name);
        let mut states = self.write_states();
        match removed {
            Ok(()) => states.remove(name),
            Err(error) => {
                let detail = format!("the collection '{name}' cannot be deleted: {error}");
                states.insert(name.to_owned(), CollectionStatus::Failed(detail.clone()));
                return Err(ApiProblem::new(ProblemCode::Disk, detail));
            }
        };
        tracing::info!(collection = name, "deleted");
        Ok(())
    }

    /// Deletes a collection at once, without waiting for those who use it, except on Windows: a collection of the same name can be created
    /// when this returns, and after a crash the deleted one does not come back. [`remove_deleted`](Self::remove_deleted)
    /// removes its files later.
    ///
    /// Files in its directory that are not its own do not prevent it, because other replicas do not have them. They stay
    /// in the renamed directory.
    ///
    /// # Errors
    /// If there is none with this name, it has an alias, or a disk operation fails.
    pub(crate) fn delete_at_once(&self, name: &str) -> Result<(), ApiProblem> {
        let _changing = self.lock_changes();
        let mut open = self.check_deletable(name)?;
        if !RENAMES_OPEN_DIRECTORIES && let Some(open) = open.take() {
            self.close_collection(name, open);
        }
        let directory = self.hide_directory(name).map_err(|error| {
            let detail = format!("the collection '{name}' cannot be deleted: {error}");
            ApiProblem::new(ProblemCode::Disk, detail)
        })?;
        self.write_states().remove(name);
        if let Some(open) = &open {
            open.begin_closing();
        }
        self.lock_deleted()
            .push(DeletedCollection { directory, open });
        tracing::info!(collection = name, "deleted");
        Ok(())
    }

    /// Removes the files of deleted collections that nobody uses any more.
    pub(crate) fn remove_deleted(&self) {
        let deleted = std::mem::take(&mut *self.lock_deleted());
        let (used, unused) = deleted
            .into_iter()
            .partition::<Vec<_>, _>(DeletedCollection::is_used);
        self.lock_deleted().extend(used);
        for deleted in unused {
            remove_leftovers(&deleted.directory);
        }
    }

    /// Gives the directory of a collection a name that no collection has; returns the new path. The new name is on disk
    /// when this returns.
    fn hide_directory(&self, name: &str) -> io::Result<PathBuf> {
        let numbers = 0_u64..;
        let paths = numbers.map(|number| {
            // A name has no full stop, so it differs from those of other deletions.
            self.directory
                .join(format!("{DELETED_PREFIX}{name}.{number}"))
        });
        let mut unused = paths.filter(|path| !path.exists());
        let hidden = unused
            .next()
            .ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))?;
        replace_file(&self.directory.join(name), &hidden)?;
        Directory::sync_path(&self.directory)?;
        Ok(hidden)
    }

    /// Hides the collection from further requests; returns it if it was open.
    fn begin_to_delete(&self, name: &str) -> Result<Option<Arc<OpenCollection>>, ApiProblem> {
        let _changing = self.lock_changes();
        let open = self.check_deletable(name)?;
        self.check_only_own_files(name)?;
        self.write_states()
            .insert(name.to_owned(), CollectionStatus::Deleting);
        if let Some(open) = &open {
            open.begin_closing();
        }
        Ok(open)
    }

    /// Hides a collection from further requests, and waits until those that use it have ended.
    fn close_collection(&self, name: &str, open: Arc<OpenCollection>) {
        self.write_states()
            .insert(name.to_owned(), CollectionStatus::Deleting);
        open.begin_closing();
        wait_until_unused(open);
    }

    /// Checks that a collection exists and has no alias; returns it if it is open.
    fn check_deletable(&self, name: &str) -> Result<Option<Arc<OpenCollection>>, ApiProblem> {
        self.refuse_alias(name)?;
        if let Some(alias) = self.aliases.find_alias(name) {
            let detail = format!(
                "the collection '{name}' has the alias '{alias}': switch or remove the alias first"
            );
            return Err(ApiProblem::new(ProblemCode::CollectionConflict, detail));
        }
        let known = self.read_states().get(name).cloned();
        match known {
            Some(CollectionStatus::Open(open)) => Ok(Some(open)),
            Some(CollectionStatus::Failed(_)) => Ok(None),
            Some(other) => Err(other.status_problem(name)),
            None => self.look_up_collection(name).map(|_| None),
        }
    }

    fn remove_directory(&self, name: &str) -> io::Result<()> {
        let deleted = self.directory.join(format!("{DELETED_PREFIX}{name}"));
        match replace_file(&self.directory.join(name), &deleted) {
            // An earlier attempt failed after this step.
            Err(error) if error.kind() == io::ErrorKind::NotFound && deleted.exists() => {}
            renamed => renamed?,
        }
        Directory::sync_path(&self.directory)?;
        remove_own(&deleted)
    }

    /// Checks that a directory for a new collection contains nothing but the remains of an interrupted
    /// creation.
    ///
    /// # Errors
    /// If it contains other files.
    fn check_unused(&self, name: &str) -> Result<(), ApiProblem> {
        self.check_files(
            name,
            is_creation_file,
            "exists already: move it away, or use another name",
        )
    }

    /// Checks that the directory of a collection contains nothing but its own files.
    ///
    /// # Errors
    /// If it contains other files.
    fn check_only_own_files(&self, name: &str) -> Result<(), ApiProblem> {
        self.check_files(
            name,
            is_collection_file,
            "is not a file of a collection: move it away first",
        )
    }

    fn check_files(
        &self,
        name: &str,
        expected: impl Fn(&str) -> bool,
        what: &str,
    ) -> Result<(), ApiProblem> {
        let path = self.directory.join(name);
        let files = match list_files(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            files => files.map_err(|error| unusable_directory(name, &error))?,
        };
        match files.iter().find(|file| !expected(file)) {
            None => Ok(()),
            Some(file) => {
                let detail = format!("the directory of the collection '{name}': '{file}' {what}");
                Err(ApiProblem::new(ProblemCode::CollectionConflict, detail))
            }
        }
    }

    fn open_folder(&self, name: &str) -> Result<DiskFolder, ApiProblem> {
        DiskFolder::open(&self.directory.join(name))
            .map_err(|error| unusable_directory(name, &error))
    }

    fn read_states(&self) -> RwLockReadGuard<'_, BTreeMap<String, CollectionStatus>> {
        // Every change is one insertion or removal, so a poisoned lock is still consistent.
        self.states.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_states(&self) -> RwLockWriteGuard<'_, BTreeMap<String, CollectionStatus>> {
        self.states.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_deleted(&self) -> MutexGuard<'_, Vec<DeletedCollection>> {
        // Every change is complete before the lock is released.
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServedCollections {
    fn drop(&mut self) {
        // A restoration has no maintenance that would do it.
        self.remove_deleted();
    }
}

impl DeletedCollection {
    /// Returns `true` while a request, a snapshot or maintenance uses the collection. None can begin to, because nobody
    /// finds it by its name.
    fn is_used(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| Arc::strong_count(open) > 1)
    }
}

/// Returns `true` if a data directory that is not open has collections.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn has_collections(directory: &Path) -> io::Result<bool> {
    Ok(!collection_directories(directory)?.is_empty())
}

/// Removes the collections of a data directory that is not open, and the rest of those that were being restored.
///
/// # Errors
/// If a disk operation fails.
pub(crate) fn remove_collections(directory: &Path) -> io::Result<()> {
    collection_directories(directory)?
        .iter()
        .try_for_each(|collection| remove_own(collection))
}

/// Returns the directories of collections, complete or not.
fn collection_directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if CollectionStatus::from_directory(&path).is_some() {
            found.push(path);
        }
    }
    Ok(found)
}

/// A name that is reserved for a collection that is being restored. If the restoration panics, the name is released,
/// because the collection would otherwise stay in the state of being opened.
struct NameReservation<'a> {
    collections: &'a ServedCollections,
    name: &'a str,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        let directory = self.collections.directory.join(self.name);
        let state = CollectionStatus::after_panic(&directory);
        let mut states = self.collections.write_states();
        match state {
            Some(state) => states.insert(self.name.to_owned(), state),
            None => states.remove(self.name),
        };
    }
}

fn unusable_directory(name: &str, error: &io::Error) -> ApiProblem {
    let detail = format!("the directory of the collection '{name}': {error}");
    ApiProblem::new(ProblemCode::Disk, detail)
}

/// Returns the names in a directory.
fn list_files(directory: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Removes a directory that a deletion or an interrupted restoration has left. It stays if that fails, because
/// it keeps no collection from being served.
fn remove_leftovers(directory: &Path) {
    if let Err(error) = remove_own(directory) {
        let directory = directory.display().to_string();
        tracing::warn!(directory, %error, "cannot be removed: remove it by hand");
    }
}

/// Removes the files of a collection, and the directory if it is empty then.
fn remove_own(directory: &Path) -> io::Result<()> {
    for file in list_files(directory)?
        .iter()
        .filter(|file| is_collection_file(file))
    {
        fs::remove_file(directory.join(file))?;
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let directory = directory.display().to_string();
            tracing::warn!(
                directory,
                "has files that do not belong to a collection: they stay"
            );
            Ok(())
        }
        removed => removed,
    }
}

impl CollectionStatus {
    /// Returns the initial state of a directory, or `None` if it is not a collection. A directory that cannot
    /// be read may be one, so it counts as failed.
    fn from_directory(path: &Path) -> Option<Self> {
        let files = match list_files(path) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return None,
            Err(error) => {
                let path = path.display();
                return Some(Self::Failed(format!("{path} cannot be read: {error}")));
            }
        };
        if files.iter().any(|file| file == MANIFEST_FILE) {
            return Some(Self::Opening);
        }
        let held = files.iter().find(|file| is_data_file(file))?;
        let path = path.display();
        Some(Self::Failed(format!(
            "{path} has '{held}' but no '{MANIFEST_FILE}': restore that file, run `lookalike store \
             repair --settings`, or move the directory away"
        )))
    }

    /// Returns the state of a directory whose restoration panicked, or `None` if it is not a collection.
    fn after_panic(path: &Path) -> Option<Self> {
        // Only a complete copy gets this name.
        let state = Self::from_directory(path).filter(|_| path.exists())?;
        Some(match state {
            Self::Opening => Self::Failed(
                "the service failed while it was opened: start the service again".to_owned(),
            ),
            other => other,
        })
    }

    /// Returns the problem of a request for a collection in this state.
    fn status_problem(&self, name: &str) -> ApiProblem {
        match self {
            Self::Opening => ApiProblem::new(
                ProblemCode::NotReady,
                format!("the collection '{name}' is still being opened"),
            ),
            Self::Open(_) | Self::Deleting => ApiProblem::new(
                ProblemCode::Deleting,
                format!("the collection '{name}' is being deleted"),
            ),
            Self::Failed(why) => ApiProblem::new(
                ProblemCode::Stopped,
                format!("the collection '{name}' could not be opened: {why}"),
            ),
        }
    }

    /// Returns the name of the state for programs.
    pub(crate) fn status_name(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open(open) => open.condition_name(),
            Self::Failed(_) => "failed",
            Self::Deleting => "deleting",
        }
    }
}

/// Waits until nothing uses the collection. Requests and maintenance end with their next portion, a snapshot
/// ends when it is complete.
fn wait_until_unused(mut open: Arc<OpenCollection>) {
    loop {
        match Arc::try_unwrap(open) {
            Ok(_) => return,
            Err(used) => open = used,
        }
        std::thread::sleep(DELETION_CHECK_INTERVAL);
    }
}

/// Checks a name: 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter or digit.
pub(crate) fn check_name(name: &str) -> Result<(), ApiProblem> {
    let of_alphabet =
        |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
    let begins = name
        .bytes()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric());
    if name == LOCK_FILE {
        let detail =
            format!("'{LOCK_FILE}' is not a valid name, because a file of the service has it");
        return Err(ApiProblem::new(ProblemCode::BadName, detail));
    }
    if begins && name.len() <= LONGEST_NAME && name.bytes().all(of_alphabet) {
        return Ok(());
    }
    let shown: String = name.chars().take(LONGEST_NAME).collect();
    Err(ApiProblem::new(
        ProblemCode::BadName,
        format!(
            "'{shown}' is not a valid name: a name has 1 to {LONGEST_NAME} of the letters a to z, \
             digits, - and _, and begins with a letter or digit"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_names_use_a_small_alphabet() {
        let longest = "a".repeat(LONGEST_NAME);
        for name in ["a", "0", "news-2024_x", &longest] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(LONGEST_NAME + 1);
        for name in [
            "", ".", "..", LOCK_FILE, "a/b", "../a", "A", "-a", "_a", "lock\0", "a.b", "é", &longer,
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    fn insert_text(open: &OpenCollection, id: &str, text: &str) {
        let sent = serde_json::json!({ "id": id, "text": text }).to_string();
        let scratch = &mut lookalike::text::AnalysisScratch::default();
        let prepared = vec![open.prepare_document(sent.as_bytes(), scratch)];
        let admitted = open.admit_while(prepared, &mut || Ok(()));
        assert!(open.wait_for_turns(admitted).iter().all(Result::is_ok));
    }

    fn exported(open: &OpenCollection) -> String {
        let mut lines = Vec::new();
        lookalike_store::export_documents(&open.collection, &mut lines).unwrap();
        String::from_utf8(lines).unwrap()
    }

    /// A collection that is deleted at once is gone for everyone, also after a crash. Those who use it go on with it, and
    /// another one of its name has nothing of it.
    #[test]
    fn deletion_at_once_does_not_wait_for_readers() {
        if !RENAMES_OPEN_DIRECTORIES {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collections = ServedCollections::new(folder.path(), options.clone()).unwrap();
        let settings = CollectionSettings::default();
        let create = || collections.create_collection("a", &settings).unwrap().0;
        let used = create();
        insert_text(&used, "first", "The ferry leaves at seven in the morning.");
        // Files of others do not prevent it, because other replicas do not have them.
        fs::write(folder.path().join("a/notes.txt"), "mine").unwrap();
        collections.delete_at_once("a").unwrap();
        let gone = collections.look_up_collection("a").err().unwrap();
        assert_eq!(gone.code, ProblemCode::NoCollection);
        assert_eq!(
            used.check_not_deleting().unwrap_err().code,
            ProblemCode::Deleting
        );
        let second = create();
        insert_text(&second, "second", "A bridge across the river was closed.");
        insert_text(
            &used,
            "third",
            "Somebody still writes to the old collection.",
        );
        assert!(exported(&used).contains("first") && exported(&used).contains("third"));
        assert!(!exported(&second).contains("first") && exported(&second).contains("second"));
        // A second deletion of the same name has a directory of its own.
        drop(second);
        collections.delete_at_once("a").unwrap();
        let hidden = || {
            let names = list_files(folder.path()).unwrap();
            names
                .into_iter()
                .filter(|name| name.starts_with(DELETED_PREFIX))
                .count()
        };
        assert_eq!(hidden(), 2);
        // The files of the one that is used stay.
        collections.remove_deleted();
        assert_eq!(hidden(), 1);
        assert!(exported(&used).contains("first"));
        std::mem::forget(used);
        drop(collections);
        assert_eq!(hidden(), 1);
        let again = ServedCollections::new(folder.path(), options).unwrap();
        assert!(again.list_states().is_empty());
        // A file that is not that of a collection is never removed.
        let kept = folder.path().join(".deleted-a.0/notes.txt");
        assert_eq!(fs::read(kept).unwrap(), b"mine");
    }

    /// On every system, although only some wait before a deletion.
    #[test]
    fn collection_is_closed_after_its_last_reader() {
        let folder = tempfile::tempdir().unwrap();
        let collections =
            ServedCollections::new(folder.path(), CollectionOptions::default()).unwrap();
        let settings = CollectionSettings::default();
        let open = collections.create_collection("a", &settings).unwrap().0;
        let used = Arc::clone(&open);
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| collections.close_collection("a", open));
            while used.check_not_deleting().is_ok() {
                std::thread::yield_now();
            }
            assert!(!closing.is_finished());
            drop(used);
        });
        let gone = collections.look_up_collection("a").err().unwrap();
        assert_eq!(gone.code, ProblemCode::Deleting);
        // Nothing is open any more.
        assert!(DiskFolder::open(&folder.path().join("a")).is_ok());
    }

    /// A panic while a collection is restored gives its name free, and a complete copy is not opened for ever.
    #[test]
    fn panic_frees_the_name_of_a_restoration() {
        let folder = tempfile::tempdir().unwrap();
        let collections =
            ServedCollections::new(folder.path(), CollectionOptions::default()).unwrap();
        let panics = std::panic::AssertUnwindSafe(|| {
            collections.restore_collection("a", |_| panic!("the copy panics"))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(collections.list_states().is_empty());
        let settings = CollectionSettings::default();
        assert!(collections.create_collection("a", &settings).unwrap().1);
        // The panic of an opening finds the complete collection in its place.
        let (created, opening) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&opening).unwrap();
        fs::copy(created.join(MANIFEST_FILE), opening.join(MANIFEST_FILE)).unwrap();
        let state = CollectionStatus::after_panic(&opening);
        assert!(matches!(state, Some(CollectionStatus::Failed(why)) if why.contains("start")));
    }

    /// A directory that cannot be read may be a collection; a file cannot.
    #[test]
    fn unreadable_directory_is_a_failed_collection() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        // A symbolic link to itself cannot be read, not even by root.
        lookalike_system::create_symlink(Path::new("circle"), &path("circle")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        fs::write(path("file"), "").unwrap();
        let of = |name: &str| CollectionStatus::from_directory(&path(name));
        assert!(of("empty").is_none() && of("file").is_none());
        let Some(CollectionStatus::Failed(why)) = of("circle") else {
            panic!("it is overlooked");
        };
        assert!(why.contains("circle cannot be read"), "{why}");
    }
}
