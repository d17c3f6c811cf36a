//! An open collection.
//!
//! | module | calls of [`Collection`] |
//! |---|---|
//! | [`insertion`] | insert, admit, wait until durable |
//! | [`documents`] | query, find, delete |
//! | [`listing`] | list documents |
//! | [`kept_documents`] | kept documents by their sequence numbers |
//! | [`clusters`], [`preference`] | clusters |
//! | [`decisions`] | decisions of a person on two texts |
//! | [`settings_change`] | changes of the settings |
//! | [`shared_log`] | the same at places of a shared log |
//! | [`snapshot`](crate::snapshot) | copies |
//! | [`maintenance`](crate::maintenance) | expiry and compaction |
//!
//! # Locks
//!
//! They are taken in this order: settings, maintenance, writing in the [group commit](crate::group_commit), inserting,
//! writer, state, manifest.

mod clusters;
mod decisions;
mod documents;
mod insertion;
mod kept_documents;
mod listing;
mod member_walk;
mod options;
mod preference;
mod settings_change;
mod shared_log;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lookalike::stream::DocumentPreparer;
use lookalike::text::AnalysisScratch;
use parking_lot::{RwLock, RwLockReadGuard};

pub use self::clusters::{ClusterPage, ClusterSelection};
pub use self::documents::DocumentLookup;
pub(crate) use self::documents::open_document;
pub use self::insertion::{AdmittedDocuments, UnlockedWorkPolicy};
pub use self::kept_documents::KeptDocuments;
pub(crate) use self::listing::DocumentWalk;
pub use self::listing::{DocumentPage, DocumentSelection};
pub use self::options::{CollectionOptions, VerificationLimits, WallClock};
pub use self::shared_log::LoggedAdmission;
use crate::disk::{Disk, check_free_bytes};
use crate::document::{NewDocument, PendingInsert, PendingQuery};
use crate::error::{Error, ErrorKind, Result};
use crate::fair_lock::{FairLock, WriteGuard};
use crate::files::file_names::{FileNames, MANIFEST_FILE, is_data_file};
use crate::files::inventory::{DiskInventory, list_files};
use crate::files::log_progress::{LogPosition, LogProgress};
use crate::files::manifest::CollectionManifest;
use crate::files::partition::PartitionFiles;
use crate::files::partition_list::PartitionList;
use crate::files::partition_set::PartitionSet;
use crate::group_commit::GroupCommit;
use crate::recipes::{recipe_bytes, remove_stray_recipe};
use crate::settings::CollectionSettings;
use crate::state::{CollectionState, PendingWork};
use crate::sync_latency::{SyncLatency, SyncTimer};
use crate::writer::StoreWriter;

/// A durable collection of documents that are checked and inserted one after another; see the [crate](crate).
///
/// ```
/// use std::sync::Arc;
///
/// use lookalike::text::AnalysisScratch;
/// use lookalike_store::{Collection, DocumentContent, NewDocument, DiskFolder, CollectionOptions, CollectionSettings, StoredVerdict};
///
/// # let folder = tempfile::tempdir()?;
/// let disk = Arc::new(DiskFolder::open(folder.path())?);
/// let collection = Collection::create_empty(disk.clone(), &CollectionSettings::default(), CollectionOptions::default())?;
/// let (id, content) = ("a".to_owned(), DocumentContent::Text("A lamp burns by the harbour.".to_owned()));
/// let document = NewDocument { id, content, time: None, meta: None };
/// let document = collection.prepare_document(document, &mut AnalysisScratch::default())?;
/// for answer in collection.insert_documents(&[document]) {
///     assert_eq!(answer?.verdict, StoredVerdict::Kept);
/// }
/// drop(collection);
///
/// // The answer came after the document was on disk, so it is there when the collection is opened again.
/// let collection = Collection::open_existing(disk, CollectionOptions::default())?;
/// assert!(collection.find_document("a")?.is_some());
/// assert!(collection.delete_document("a")? && collection.find_document("a")?.is_none());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Collection {
    /// Replaced as a whole when settings change, under the locks of the writer and the state.
    manifest: RwLock<Arc<CollectionManifest>>,
    pub(crate) options: CollectionOptions,
    pub(crate) disk: Arc<dyn Disk>,
    preparer: DocumentPreparer,
    state: FairLock<CollectionState>,
    /// Locked before the state by those who insert: shared, or exclusively by a document that others have overtaken
    /// too often, or that has more keys than a turn inserts.
    inserting: RwLock<()>,
    /// Locked before `inserting` is locked exclusively.
    inserting_alone: parking_lot::Mutex<()>,
    /// Locked while a batch is written, and while a snapshot copies the end of the newest partition.
    writer: Mutex<StoreWriter>,
    pub(crate) group: GroupCommit,
    /// Locked while partitions are compacted or copied. Contains the partition files that are still to be
    /// removed.
    pub(crate) maintenance: Mutex<Vec<FileNames>>,
    /// Locked while settings change.
    changing_settings: Mutex<()>,
    syncs: SyncTimer,
}

impl fmt::Debug for Collection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Collection");
        shown.field("disk", &self.disk).finish_non_exhaustive()
    }
}

/// Approximate bytes of the files of a new collection.
const NEW_COLLECTION_BYTES: u64 = 4 << 10;

/// Largest size, in bytes, of the row of a deletion.
const DELETION_ROW_BYTES: u64 = 64;

/// Statistics of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionStats {
    /// Live documents.
    pub rows: u64,
    /// Dead rows on disk: those of deleted, replaced or moved documents, and the rows of their deletions.
    /// Compaction removes them.
    pub dead_rows: u64,
    /// Kept documents that new documents are compared with.
    pub kept: u64,
    /// Number of partitions.
    pub partitions: u64,
    /// Number of the last row on disk.
    pub durable: u64,
    /// Bytes of memory by component.
    pub memory: Vec<(&'static str, u64)>,
    /// Why the collection accepts no more writes, if it does not.
    pub stopped: Option<String>,
}

impl Collection {
    /// Creates a collection on an empty disk.
    ///
    /// # Errors
    /// If the settings are invalid, the disk contains a collection already, a disk operation fails, or the
    /// disk is nearly full.
    pub fn create_empty(
        disk: Arc<dyn Disk>,
        settings: &CollectionSettings,
        options: CollectionOptions,
    ) -> Result<Self> {
        Self::create_with(disk, settings, options, None)
    }

    /// Creates a collection as [`create_empty`](Self::create_empty) does, at a place of a shared log, which it
    /// remembers.
    ///
    /// # Errors
    /// As for [`create_empty`](Self::create_empty), except that the headroom is not asked for if the collection
    /// [follows the log](CollectionOptions::follows_log): the owner waits for room.
    pub fn create_at(
        disk: Arc<dyn Disk>,
        settings: &CollectionSettings,
        options: CollectionOptions,
        created: LogPosition,
    ) -> Result<Self> {
        Self::create_with(disk, settings, options, Some(created))
    }

    fn create_with(
        disk: Arc<dyn Disk>,
        settings: &CollectionSettings,
        options: CollectionOptions,
        created_at: Option<LogPosition>,
    ) -> Result<Self> {
        settings.match_plan()?;
        let names = list_files(&*disk)?;
        if names.iter().any(|name| name == MANIFEST_FILE) {
            return Err(Error::setting_error(
                "the directory already has a collection",
            ));
        }
        if let Some(name) = names.iter().find(|name| is_data_file(name)) {
            return Err(Error::setting_error(format!(
                "there are files of a collection whose manifest is missing: '{name}'"
            )));
        }
        let manifest = CollectionManifest::new(settings)?.with_creation(created_at);
        let bytes = NEW_COLLECTION_BYTES + recipe_bytes(&settings.recipe);
        // Other replicas may have room, and a refusal by this machine alone would make it differ from them.
        if !options.follows_log {
            check_room(&*disk, options.headroom, bytes)?;
        }
        remove_stray_recipe(&*disk, &names)?;
        // The manifest is written last: without it there is no collection.
        PartitionList::from_range(None, None).write_list(&*disk, manifest.seal)?;
        manifest.write_file(&*disk)?;
        Self::open_existing(disk, options)
    }

    /// Opens a collection and reads all of its rows, on all threads of the pool.
    ///
    /// # Errors
    /// If a file is missing or damaged, or a disk operation fails.
    pub fn open_existing(disk: Arc<dyn Disk>, options: CollectionOptions) -> Result<Self> {
        let manifest = CollectionManifest::read_file(&*disk)?;
        let seal = manifest.seal;
        let settings = manifest.settings.clone();
        let mut state = CollectionState::with_windows(settings, &manifest.windows, seal)?;
        let names = find_partitions(&*disk, &manifest)?;
        let sketches = state.replay_partitions(&*disk, &names)?;
        state.end_replay();
        // The writer has partitions that expire here, because it removes their files.
        let partitions = state.partitions_on_disk().clone();
        if options.follows_log {
            let progress = newest_progress(state.partitions_on_disk())?;
            state.follow_log(progress, manifest.logged_change);
        }
        let limit = options.verification.document_steps;
        state.matcher.set_step_limit(limit);
        if !manifest.lists_partitions {
            // An older version wrote no list of partitions. From now on a lost partition is noticed here too.
            partitions.write_list(&*disk, seal)?;
            manifest.write_file(&*disk)?;
        }
        let durable = state.last_row();
        let texts = state.texts_end();
        Ok(Self {
            manifest: RwLock::new(Arc::new(manifest)),
            options,
            preparer: state.matcher.document_preparer().clone(),
            writer: Mutex::new(StoreWriter::new(
                disk.clone(),
                seal,
                partitions,
                texts,
                sketches,
            )),
            disk,
            state: FairLock::new(state),
            inserting: RwLock::default(),
            inserting_alone: parking_lot::Mutex::default(),
            group: GroupCommit::new(durable),
            maintenance: Mutex::default(),
            changing_settings: Mutex::default(),
            syncs: SyncTimer::default(),
        })
    }

    /// Returns the settings.
    pub fn collection_settings(&self) -> Arc<CollectionSettings> {
        Arc::clone(&self.manifest.read().settings)
    }

    /// Returns the settings with which the collection was created, if they have been changed. Other files of the
    /// collection refer to them, so [`repair_collection`](crate::repair_collection) needs them if the manifest
    /// is lost.
    pub fn created_settings(&self) -> Option<Arc<CollectionSettings>> {
        self.manifest.read().created.clone()
    }

    /// Returns the times of the commits since the collection was opened.
    pub fn sync_latency(&self) -> SyncLatency {
        self.syncs.current_latency()
    }

    /// Returns the number of the last row in memory, which may not be on disk yet; 0 if there is none.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn last_admitted_row(&self) -> Result<u64> {
        Ok(self.read_state()?.last_row())
    }

    pub(crate) fn current_manifest(&self) -> Arc<CollectionManifest> {
        Arc::clone(&self.manifest.read())
    }

    /// Prepares a document for its check. This is nearly all of the work, and it runs on any thread.
    ///
    /// # Errors
    /// If the collection does not accept the document: an id, text or meta that is too long, an empty id, a
    /// text where the collection holds fingerprints, or a fingerprint where it holds texts.
    pub fn prepare_document(
        &self,
        document: NewDocument,
        scratch: &mut AnalysisScratch,
    ) -> Result<PendingInsert> {
        PendingInsert::new(
            document,
            self.manifest.read().settings.holds,
            &self.preparer,
            scratch,
        )
    }

    /// Prepares a document to be queried, as [`prepare_document`](Self::prepare_document) does for an insert.
    ///
    /// # Errors
    /// As for [`prepare_document`](Self::prepare_document).
    pub fn prepare_query(
        &self,
        document: NewDocument<Option<String>>,
        scratch: &mut AnalysisScratch,
    ) -> Result<PendingQuery> {
        let holds = self.manifest.read().settings.holds;
        PendingInsert::new(document, holds, &self.preparer, scratch).map(PendingQuery)
    }

    /// Returns statistics of the collection.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn collect_stats(&self) -> Result<CollectionStats> {
        let state = self.read_state()?;
        let progress = self.group.current_progress();
        let (rows, dead_rows) = state.count_rows();
        Ok(CollectionStats {
            rows,
            dead_rows,
            kept: state.matcher.len(),
            partitions: state.partition_count(),
            durable: progress.durable,
            memory: state.memory_by_part(),
            stopped: progress.failed,
        })
    }

    /// Locks compaction and copying, which exclude each other.
    pub(crate) fn lock_maintenance(&self) -> MutexGuard<'_, Vec<FileNames>> {
        // A panic leaves file names in the list; they are removed later.
        self.maintenance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, StoreWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read_state(&self) -> Result<RwLockReadGuard<'_, CollectionState>> {
        self.state.read().ok_or_else(thread_panicked)
    }

    pub(crate) fn write_state(&self) -> Result<WriteGuard<'_, CollectionState>> {
        self.state.write().ok_or_else(thread_panicked)
    }

    pub(crate) fn check_running(&self) -> Result<()> {
        match self.group.current_progress().failed {
            None => Ok(()),
            Some(why) => Err(stopped_error(&why)),
        }
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        check_room(&*self.disk, self.options.headroom, bytes)
    }

    /// Returns the reason why inserts are refused, if the disk is nearly full.
    ///
    /// # Errors
    /// If the disk cannot report its free space.
    pub fn disk_full_error(&self) -> Result<Option<Error>> {
        match self.check_room(DELETION_ROW_BYTES) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Full => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Repeats the last read that the disk refused in each partition. Returns the error of one that fails
    /// again, or `None`.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn retry_refused_reads(&self) -> Result<Option<Error>> {
        let partitions = self.read_state()?.partitions_on_disk().clone();
        let mut retried = partitions
            .iter()
            .map(|partition| partition.retry_failed_read());
        Ok(retried.find_map(|error| error))
    }

    /// Waits until a row is on disk. The first waiting thread writes for all others.
    pub(crate) fn wait_for_row(&self, last: u64) -> Result<()> {
        let write = || self.commit_pending().map_err(|error| error.to_string());
        self.group
            .wait_for_row(last, write)
            .map_err(|why| stopped_error(&why))
    }

    /// Writes everything that is waiting; returns the number of the last row on disk.
    pub(crate) fn commit_pending(&self) -> Result<u64> {
        let mut writer = self.writer.lock().map_err(|_| thread_panicked())?;
        let work = self.write_state()?.take_pending_work()?;
        let begun = self.commit_work(&mut writer, &work)?;
        self.write_state()?.mark_written(&work, begun);
        Ok(work.last)
    }

    /// Writes work to disk, and counts the time that it takes.
    fn commit_work(
        &self,
        writer: &mut StoreWriter,
        work: &PendingWork,
    ) -> Result<Vec<Arc<PartitionFiles>>> {
        let started = Instant::now();
        let begun = writer.write_work(work)?;
        if !work.batches.is_empty() {
            self.syncs.observe_commit(started.elapsed());
        }
        Ok(begun)
    }
}

/// Bytes of disk that are wanted for a byte that is written, because the database adds an amount of the same order.
const ROOM_FOR_BYTE: u64 = 4;

/// Checks that writing `bytes` leaves the headroom.
fn check_room(disk: &dyn Disk, headroom: u64, bytes: u64) -> Result<()> {
    let room = bytes.saturating_mul(ROOM_FOR_BYTE);
    check_free_bytes(disk, headroom.saturating_add(room))
}

fn thread_panicked() -> Error {
    stopped_error("a thread has panicked")
}

pub(crate) fn stopped_error(why: &str) -> Error {
    Error::new(
        ErrorKind::Stopped,
        format!("the collection accepts no more writes until it is opened again: {why}"),
    )
}

/// Returns the progress in a shared log of the newest partition that has one.
fn newest_progress(partitions: &PartitionSet) -> Result<Option<LogProgress>> {
    for partition in partitions.iter().rev() {
        let progress = partition.read_log_progress()?;
        if progress.is_some() {
            return Ok(progress);
        }
    }
    Ok(None)
}

/// Returns all partitions in the order of their numbers, if none is missing. Removes partitions whose
/// creation or removal was interrupted.
fn find_partitions(disk: &dyn Disk, manifest: &CollectionManifest) -> Result<Vec<FileNames>> {
    let inventory = DiskInventory::compare_with_disk(disk, manifest)?;
    if let Some(finding) = inventory.findings.first() {
        return Err(finding.clone());
    }
    inventory.remove_leftovers(disk)?;
    Ok(inventory.partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskFolder;
    use crate::document::DocumentContent;

    /// Content hashes can be made to collide, so equal hashes do not mean equal contents.
    #[test]
    fn equal_hashes_do_not_make_contents_equal() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection =
            Collection::create_empty(disk, &CollectionSettings::default(), options).unwrap();
        let prepare = |text: &str, meta: Option<&str>| {
            let document = NewDocument {
                id: "one".to_owned(),
                content: DocumentContent::Text(text.to_owned()),
                time: None,
                meta: meta.map(str::to_owned),
            };
            let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
            PendingInsert {
                content_hash: 7,
                ..prepared.unwrap()
            }
        };
        let insert = |document| collection.insert_documents(&[document]).remove(0);
        assert!(!insert(prepare("some text", None)).unwrap().again);
        assert!(insert(prepare("some text", None)).unwrap().again);
        for other in [prepare("other text", None), prepare("some text", Some("m"))] {
            assert_eq!(insert(other).unwrap_err().kind(), ErrorKind::Conflict);
        }
    }
}
