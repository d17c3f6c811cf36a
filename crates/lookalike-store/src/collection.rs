//! An open collection.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use lookalike::stream::{DocumentPreparer, DocumentSlot, Timestamp};
use lookalike::text::AnalysisScratch;
use parking_lot::RwLockReadGuard;

use crate::disk::Disk;
use crate::document::{
    ClusterPreference, DocumentCluster, DocumentContent, InsertAnswer, KnownDocument, NewDocument,
    PendingInsert, PreferredDocument, StoredDocument, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::fair_lock::{FairLock, WriteGuard};
use crate::group_commit::GroupCommit;
use crate::ids::hash_id;
use crate::inventory::{DiskInventory, PartitionList, list_files};
use crate::partition::{self, FileNames, PartitionFiles, is_of_partition};
use crate::rows::{PartitionRow, RowVerdict};
use crate::settings::{CollectionManifest, CollectionSettings, MANIFEST};
use crate::snapshot_copy::{CopiedPartition, FileCopier, FileEnds, check_free, partition_bytes};
use crate::state::{CollectionState, CompactionTrigger, PrecheckedDocument};
use crate::writer::StoreWriter;

/// Returns the current time.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Run-time options of a collection. Only the clock can change an answer.
#[derive(Clone)]
pub struct CollectionOptions {
    /// Source of the current time.
    pub clock: WallClock,
    /// Bytes that must remain free on the disk. Inserts that would leave less are refused. Documents whose
    /// insertion expires a partition may use half of this reserve.
    pub headroom: u64,
    /// Conditions under which [`Collection::run_maintenance`] compacts a partition.
    pub compaction: CompactionTrigger,
    /// Limits of verification, for a document and for a turn.
    pub verification: VerificationLimits,
}

/// Limits of verification, in steps of 64 cells of an edit distance, a few nanoseconds each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationLimits {
    /// The most steps of a document, where documents are compared as sequences. One that takes more is
    /// refused with [`ErrorKind::TooCostly`]. So is one that matches nothing and takes more than half of
    /// them, because later ones like it, which are compared with it too, must still get their verdicts.
    pub document_steps: u64,
    /// Steps after which readers and other writers have their turn.
    pub turn_steps: u64,
}

impl Default for VerificationLimits {
    /// 2^24 steps, some 50 ms, and 2^21, some 6 ms.
    fn default() -> Self {
        Self {
            document_steps: 1 << 24,
            turn_steps: 1 << 21,
        }
    }
}

impl Default for CollectionOptions {
    /// Returns the wall clock, 256 MiB of headroom and the default compaction trigger.
    fn default() -> Self {
        Self {
            clock: Arc::new(wall_clock),
            headroom: 256 << 20,
            compaction: CompactionTrigger::default(),
            verification: VerificationLimits::default(),
        }
    }
}

impl fmt::Debug for CollectionOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("CollectionOptions");
        shown
            .field("headroom", &self.headroom)
            .field("compaction", &self.compaction)
            .field("verification", &self.verification)
            .finish_non_exhaustive()
    }
}

fn wall_clock() -> Timestamp {
    let microseconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Timestamp(microseconds)
}

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
    pub(crate) manifest: CollectionManifest,
    pub(crate) options: CollectionOptions,
    pub(crate) disk: Arc<dyn Disk>,
    preparer: DocumentPreparer,
    state: FairLock<CollectionState>,
    /// Locked while a batch is written, and while a snapshot copies the end of the newest partition.
    writer: Mutex<StoreWriter>,
    pub(crate) group: GroupCommit,
    /// Locked while partitions are compacted or copied. Contains the partition files that are still to be
    /// removed.
    pub(crate) maintenance: Mutex<Vec<FileNames>>,
}

impl fmt::Debug for Collection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Collection");
        shown.field("disk", &self.disk).finish_non_exhaustive()
    }
}

/// Largest number of documents that are admitted under one lock; their work can end it earlier.
const PORTION: usize = 512;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const SOON: usize = 4;

/// Kept documents that are searched for clusters under one lock, before writers get a turn: a few
/// milliseconds.
const SLOTS: usize = 1 << 16;

/// Approximate bytes of the files of a new collection.
const FILES_OF_A_COLLECTION: u64 = 4 << 10;

/// Largest size, in bytes, of the row of a deletion.
const ROW_OF_A_DELETION: u64 = 64;

/// Answered documents that may not be on disk yet; see [`Collection::admit_documents`].
#[derive(Debug)]
#[must_use = "nothing is acknowledged before it is settled"]
pub struct AdmittedDocuments {
    answers: Vec<Result<InsertAnswer>>,
    /// Number of the last row that must be on disk.
    last: u64,
}

impl AdmittedDocuments {
    /// Returns for how many documents there is an answer.
    pub fn count(&self) -> usize {
        self.answers.len()
    }
}

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
        settings.match_plan()?;
        let names = list_files(&*disk)?;
        if names.iter().any(|name| name == MANIFEST) {
            return Err(Error::setting_error(
                "the directory already has a collection",
            ));
        }
        if let Some(name) = names.iter().find(|name| is_of_partition(name)) {
            return Err(Error::setting_error(format!(
                "there are files of a collection whose manifest is missing: '{name}'"
            )));
        }
        let manifest = CollectionManifest::new(settings)?;
        check_room(&*disk, options.headroom, FILES_OF_A_COLLECTION)?;
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
        let mut state = CollectionState::new(manifest.settings.clone(), seal)?;
        let named = whole_partitions(&*disk, &manifest)?;
        let sketches = state.replay_partitions(&*disk, &named)?;
        state.end_replay();
        let limit = options.verification.document_steps;
        state.matcher.set_step_limit(limit);
        let partitions: VecDeque<_> = state.partitions().cloned().collect();
        if !manifest.lists_partitions {
            // An older version wrote no list of partitions. From now on a lost partition is noticed here too.
            PartitionList::from_partitions(&partitions).write_list(&*disk, seal)?;
            manifest.write_file(&*disk)?;
        }
        let durable = state.last_row();
        let texts = state
            .partition_states
            .back()
            .map_or(0, |partition_state| partition_state.end);
        Ok(Self {
            manifest,
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
            group: GroupCommit::new(durable),
            maintenance: Mutex::default(),
        })
    }

    /// Returns the settings with which the collection was created.
    pub fn collection_settings(&self) -> &CollectionSettings {
        &self.manifest.settings
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
            self.collection_settings().holds,
            &self.preparer,
            scratch,
        )
    }

    /// Checks documents in the given order, inserts each, and returns the answers. The check and the
    /// insertion of a document are one step: of two matching documents in one call, the first is kept. When
    /// this returns, all that was answered is on disk.
    ///
    /// If a document with the same id and the same content exists, its first answer is returned again. A
    /// document older than the window is answered but not stored.
    ///
    /// # Errors
    /// For a single document: its id exists with other content, and the collection does not replace
    /// documents; or its verification exceeds the [limit](VerificationLimits). For all documents: the
    /// disk has no room, or a write failed, now or earlier.
    pub fn insert_documents(&self, documents: &[PendingInsert]) -> Vec<Result<InsertAnswer>> {
        self.wait_until_durable(self.admit_documents(documents))
    }

    /// Does the first half of [`insert_documents`](Self::insert_documents): everything except the disk.
    /// [`wait_until_durable`](Self::wait_until_durable) returns the answers; another thread may call it
    /// while this one admits the next documents. An admitted document counts from now on, and may reach
    /// the disk even if it is never settled.
    pub fn admit_documents(&self, documents: &[PendingInsert]) -> AdmittedDocuments {
        self.admit_turns(documents, usize::MAX)
    }

    /// As [`admit_documents`](Self::admit_documents), for as many of the first documents as make a
    /// [turn](VerificationLimits::turn_steps): all of them, unless they take much work to verify.
    pub fn admit_turn(&self, documents: &[PendingInsert]) -> AdmittedDocuments {
        self.admit_turns(documents, 1)
    }

    /// Admits documents until `turns` turns have used up their steps.
    fn admit_turns(&self, documents: &[PendingInsert], turns: usize) -> AdmittedDocuments {
        let refused = |error: Error| AdmittedDocuments {
            answers: vec![Err(error); documents.len()],
            last: 0,
        };
        if let Err(error) = self.check_running() {
            return refused(error);
        }
        if let Err(error) = self.check_room_for(documents) {
            return self.answer_repeated(documents, &error);
        }
        let mut admitted = AdmittedDocuments {
            answers: Vec::with_capacity(documents.len()),
            last: 0,
        };
        let mut turns_left = turns;
        for portion in documents.chunks(PORTION) {
            match self.admit_portion(portion, &mut admitted, &mut turns_left) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return refused(error),
            }
        }
        admitted
    }

    /// Answers documents that exist already and refuses all others.
    fn answer_repeated(&self, documents: &[PendingInsert], refusal: &Error) -> AdmittedDocuments {
        let (now, mut last) = ((self.options.clock)(), 0);
        let mut answer = |document: &PendingInsert| {
            let again = self.read_state()?.repeated_answer(document, now)?;
            let (answer, number) = again.ok_or_else(|| refusal.clone())?;
            last = last.max(number);
            Ok(answer)
        };
        let answers = documents.iter().map(&mut answer).collect();
        AdmittedDocuments { answers, last }
    }

    /// Does the second half of [`insert_documents`](Self::insert_documents): returns the answers once
    /// the documents are on disk.
    pub fn wait_until_durable(&self, admitted: AdmittedDocuments) -> Vec<Result<InsertAnswer>> {
        match self.wait_for_row(admitted.last) {
            Ok(()) => admitted.answers,
            Err(error) => vec![Err(error); admitted.answers.len()],
        }
    }

    /// Checks and inserts some documents in memory. Most of the checking runs under the shared lock, at
    /// the same time as readers and other callers of this function. The lock is released whenever the
    /// work exceeds that of a turn. Returns `false` if the portion is not finished, because no turns are
    /// left.
    fn admit_portion(
        &self,
        portion: &[PendingInsert],
        admitted: &mut AdmittedDocuments,
        turns_left: &mut usize,
    ) -> Result<bool> {
        let now = (self.options.clock)();
        let turn_steps = self.options.verification.turn_steps;
        let mut checks: Vec<_> = portion.iter().map(|_| None).collect();
        let (mut rest, mut checks) = (portion, checks.as_mut_slice());
        while !rest.is_empty() {
            let checked = self.read_state()?.precheck(rest, checks, now, turn_steps);
            let (documents, their_checks) = (&rest[..checked], &mut checks[..checked]);
            let count = self.admit_checked(documents, their_checks, now, admitted)?;
            (rest, checks) = (&rest[count..], &mut checks[count..]);
            if !rest.is_empty() {
                *turns_left -= 1;
                if *turns_left == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Admits prechecked documents under the exclusive lock, until the remaining verification has taken more
    /// steps than a turn. Returns how many it admitted: at least one.
    fn admit_checked(
        &self,
        documents: &[PendingInsert],
        checks: &mut [Option<Result<PrecheckedDocument>>],
        now: Timestamp,
        admitted: &mut AdmittedDocuments,
    ) -> Result<usize> {
        let mut state = self.write_state()?;
        let most =
            (state.matcher.steps_taken()).saturating_add(self.options.verification.turn_steps);
        let mut count = 0;
        for (at, document) in documents.iter().enumerate() {
            if let (Some(document), Some(Some(check))) =
                (documents.get(at + SOON), checks.get(at + SOON))
            {
                state.prefetch_document(document, check);
            }
            let check = checks[at].take().unwrap_or_else(|| Err(thread_panicked()));
            admitted
                .answers
                .push(state.admit_document(document, check, now));
            count += 1;
            if state.matcher.steps_taken() > most {
                break;
            }
        }
        admitted.last = state.last_row();
        Ok(count)
    }

    /// Answers a document as [`insert_documents`](Self::insert_documents) would, but does not insert it.
    /// A document that exists with the same content gets its first answer. A document with other content
    /// is not compared with the one that it would replace.
    ///
    /// # Errors
    /// If the text of a candidate cannot be read, or the id exists with other content and the collection does
    /// not replace documents.
    pub fn query_document(&self, document: &PendingInsert) -> Result<InsertAnswer> {
        self.read_state()?
            .answer_query(document, (self.options.clock)())
    }

    /// Returns the document with the given id, if there is one. If the window follows the wall clock, a
    /// document that is past the window by now is not returned.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_document(&self, id: &str) -> Result<Option<StoredDocument>> {
        let state = self.read_state()?;
        let Some(known) = self.find_in_window(&state, id)? else {
            return Ok(None);
        };
        stored_document(&state, &known).map(Some)
    }

    /// Deletes the document with the given id, so that it matches nothing any more. Answers that named it
    /// stay as they are. Returns `true` if the document existed. Its content leaves the disk with the next
    /// compaction of its partition; see [`run_maintenance`](Self::run_maintenance).
    ///
    /// # Errors
    /// If a file is damaged, the disk has no room, or a write failed, now or earlier.
    pub fn delete_document(&self, id: &str) -> Result<bool> {
        self.check_running()
            .and_then(|()| self.check_room(ROW_OF_A_DELETION))?;
        let (found, last) = {
            let mut state = self.write_state()?;
            let (known, now) = (find_by_id(&state, id)?, (self.options.clock)());
            // A document that is past the window by the wall clock counts as not found, but is still deleted
            // from the disk.
            let found = known
                .as_ref()
                .is_some_and(|known| !state.is_past_window(known, now));
            if let Some(known) = &known {
                state.delete_document(known, now);
            }
            (found, state.last_row())
        };
        self.wait_for_row(last)?;
        Ok(found)
    }

    /// Returns the cluster whose representative has the given id, with up to `most` of its members, newest
    /// first. `after` is the sequence number of the last member of the previous page. Returns `None` if there
    /// is no such document, or it is not a kept one.
    ///
    /// # Errors
    /// If `after` is not a member, or a file is damaged.
    pub fn find_cluster(
        &self,
        id: &str,
        after: Option<u64>,
        most: usize,
    ) -> Result<Option<DocumentCluster>> {
        let state = self.read_state()?;
        let Some(known) = self.find_in_window(&state, id)? else {
            return Ok(None);
        };
        let Some(after) = after else {
            return self.cluster_of(&state, &known, None, most);
        };
        // The sequence number of a duplicate is the number of its row, because only kept documents are moved to
        // a later row. A member that has left the window is the end of the list.
        let mut next = 0;
        if after >= state.first_live_row() {
            next = previous_member(&state, &known, after)?.ok_or_else(|| {
                let what = format!(
                    "number {after} is not a member of the cluster '{}'",
                    shorten_id(id)
                );
                Error::setting_error(what)
            })?;
        }
        self.cluster_of(&state, &known, Some(next), most)
    }

    /// Returns up to `count` clusters that have a member besides the representative, with up to `most`
    /// members each. The search continues after `after`, which is the [`next`](ClusterPage::next) of the
    /// previous page.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn list_clusters(
        &self,
        after: Option<DocumentSlot>,
        count: usize,
        most: usize,
    ) -> Result<ClusterPage> {
        let (mut page, mut looked_at) = (ClusterPage::default(), after);
        while page.clusters.len() < count {
            // The lock is released between two portions, so that writers get a turn.
            let state = self.read_state()?;
            let mut slots = state.slots_after(looked_at).take(SLOTS).peekable();
            if slots.peek().is_none() {
                break;
            }
            for slot in slots {
                looked_at = Some(slot);
                let Some(seq) = state.last_repeat(slot) else {
                    continue;
                };
                page.next = looked_at;
                let known = state.find_by_number(state.row_of_document(seq))?;
                let found = known
                    .map(|known| self.cluster_of(&state, &known, None, most))
                    .transpose()?;
                let members = found.flatten().filter(|it| !it.members.is_empty());
                page.clusters.extend(members);
                if page.clusters.len() == count {
                    break;
                }
            }
        }
        Ok(page)
    }

    /// Returns the document that a preference puts first in the cluster whose representative has the given
    /// id, the earliest of equally preferred ones. It compares the representative and the newest duplicates, up
    /// to the limits of the preference. Returns `None` if there is no such cluster. Verdicts do not depend on
    /// it.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_preferred(
        &self,
        id: &str,
        preference: &ClusterPreference<'_>,
    ) -> Result<Option<PreferredDocument>> {
        let state = self.read_state()?;
        let now = (self.options.clock)();
        let known = self.find_in_window(&state, id)?;
        let Some((known, slot)) =
            known.and_then(|known| state.document_slot(&known).map(|slot| (known, slot)))
        else {
            return Ok(None);
        };
        let mut best = PreferenceSearch::new(known);
        let mut next = state.last_repeat_of(slot);
        while next >= state.first_live_row() && next != 0 {
            if best.is_exhausted(preference) {
                return Ok(Some(best.finish_search(false)));
            }
            let Some((previous, found)) = read_member(&state, next)? else {
                break;
            };
            if let Some(member) = found.filter(|member| !state.is_past_window(member, now)) {
                best.offer_member(member, preference);
            }
            next = previous;
        }
        Ok(Some(best.finish_search(true)))
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
            partitions: state.partition_states.len() as u64,
            durable: progress.durable,
            memory: state.memory_by_part(),
            stopped: progress.failed,
        })
    }

    /// Copies the collection, as it is on disk at one moment, to an empty disk while the collection stays in
    /// use. The manifest is written last: a copy without it is incomplete and is not a collection. The
    /// headroom applies to the other disk too.
    ///
    /// Writers wait only while the rows of the newest partition are copied, and the texts that were added to
    /// it since its copy began.
    ///
    /// # Errors
    /// If an operation on either disk fails. If the other disk has no room, the copied files are removed
    /// before writers go on, because these may need the same room.
    pub fn copy_to_snapshot(&self, to: &dyn Disk) -> Result<()> {
        let _files = self.lock_maintenance();
        let mut copier = FileCopier::new(to, self.options.headroom);
        let (begun, ends) = {
            let writer = self.lock_writer();
            (writer.partitions().clone(), writer.newest_file_ends())
        };
        let named: Vec<_> = begun.iter().map(|it| it.about.file_names()).collect();
        let newest = self.copy_without_lock(&mut copier, begun, ends);
        let newest = newest.inspect_err(|error| copier.make_room_after(error))?;
        let (copied, listed) = self.copy_rest(&mut copier, newest)?;
        copied.iter().try_for_each(CopiedPartition::sync_files)?;
        // More partitions than those that expired meanwhile may have to be removed.
        for expired in named.into_iter().filter(|it| it.number < listed.first) {
            partition::remove_partition_files(to, expired)?;
        }
        listed.write_list(to, self.manifest.seal)?;
        self.manifest.write_file(to)
    }

    /// Copies partitions as far as they will not change: the older ones completely, and the newest one up to
    /// the given ends of its files. Returns the unfinished copy of the newest one.
    fn copy_without_lock(
        &self,
        copier: &mut FileCopier<'_>,
        mut partitions: VecDeque<Arc<PartitionFiles>>,
        ends: FileEnds,
    ) -> Result<Option<CopiedPartition>> {
        for partition in &partitions {
            copier.reserve_bytes(partition_bytes(partition, &*self.disk)?)?;
        }
        let newest = partitions.pop_back();
        for partition in partitions {
            let mut copy = CopiedPartition::begin_copy(copier, &*self.disk, partition)?;
            copy.copy_rest(copier)?;
            copy.sync_files()?;
        }
        let Some(newest) = newest else {
            return Ok(None);
        };
        let mut copy = CopiedPartition::begin_copy(copier, &*self.disk, newest)?;
        copy.copy_up_to(copier, ends)?;
        Ok(Some(copy))
    }

    /// Copies the rest of the partition that was the newest, and the partitions that began meanwhile, while
    /// nobody writes. Also returns the list of partitions at that moment.
    fn copy_rest(
        &self,
        copier: &mut FileCopier<'_>,
        newest: Option<CopiedPartition>,
    ) -> Result<(Vec<CopiedPartition>, PartitionList)> {
        let writer = self.lock_writer();
        self.check_running()?;
        let last = newest
            .as_ref()
            .map_or(0, |newest| newest.file_names().number);
        let begun = writer.partitions().iter();
        let begun = begun.filter(|it| it.about.number > last).cloned();
        let mut copied = Vec::from_iter(newest);
        let copy = || {
            for partition in begun {
                copied.push(CopiedPartition::begin_copy(copier, &*self.disk, partition)?);
            }
            copied.iter_mut().try_for_each(|it| it.copy_rest(copier))
        };
        if let Err(error) = copy() {
            // Open files keep their room, so they are closed before they are removed.
            drop(copied);
            copier.make_room_after(&error);
            return Err(error);
        }
        Ok((copied, PartitionList::from_partitions(writer.partitions())))
    }

    /// Returns the document with the given id, unless the window follows the wall clock and has passed it.
    fn find_in_window(&self, state: &CollectionState, id: &str) -> Result<Option<KnownDocument>> {
        let now = (self.options.clock)();
        let known = find_by_id(state, id)?;
        Ok(known.filter(|known| !state.is_past_window(known, now)))
    }

    /// Returns the cluster of a kept document, with its members from row `from` backwards, or from the newest
    /// one. Leaves out documents that are past the window, if the window follows the wall clock.
    fn cluster_of(
        &self,
        state: &CollectionState,
        known: &KnownDocument,
        from: Option<u64>,
        most: usize,
    ) -> Result<Option<DocumentCluster>> {
        let now = (self.options.clock)();
        let Some(slot) = state
            .document_slot(known)
            .filter(|_| !state.is_past_window(known, now))
        else {
            return Ok(None);
        };
        let mut members = Vec::new();
        let mut next = from.unwrap_or_else(|| state.last_repeat_of(slot));
        while next >= state.first_live_row() && next != 0 && members.len() <= most {
            let Some((previous, found)) = read_member(state, next)? else {
                break;
            };
            let found = found.filter(|member| !state.is_past_window(member, now));
            members.extend(found.map(|member| member.to_answer(false)));
            next = previous;
        }
        let more = members.len() > most;
        members.truncate(most);
        Ok(Some(DocumentCluster {
            kept: known.to_answer(false),
            members,
            more,
        }))
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

    /// Checks that there is room for documents. Documents that expire a partition may use half of the
    /// headroom, because a disk full of expired data could otherwise never be freed.
    fn check_room_for(&self, documents: &[PendingInsert]) -> Result<()> {
        let bytes = documents
            .iter()
            .map(|document| document.memory_bytes() as u64);
        let bytes = bytes.sum();
        let refused = match self.check_room(bytes) {
            Err(error) if error.kind() == ErrorKind::Full => error,
            checked => return checked,
        };
        if self
            .read_state()?
            .expires_partition(documents, (self.options.clock)())
        {
            return check_room(&*self.disk, self.options.headroom / 2, bytes);
        }
        Err(refused)
    }

    /// Returns the reason why inserts are refused, if the disk is nearly full.
    ///
    /// # Errors
    /// If the disk cannot report its free space.
    pub fn disk_full_error(&self) -> Result<Option<Error>> {
        match self.check_room(ROW_OF_A_DELETION) {
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
        let partitions: Vec<_> = self.read_state()?.partitions().cloned().collect();
        let mut retried = partitions.iter().map(|it| it.retry_failed_read());
        Ok(retried.find_map(|error| error))
    }

    /// Waits until a row is on disk. The first waiting thread writes for all others.
    pub(crate) fn wait_for_row(&self, last: u64) -> Result<()> {
        let write = || self.write_pending().map_err(|error| error.to_string());
        self.group
            .wait_for_row(last, write)
            .map_err(|why| stopped_error(&why))
    }

    /// Writes everything that is waiting; returns the number of the last row on disk.
    pub(crate) fn write_pending(&self) -> Result<u64> {
        let mut writer = self.writer.lock().map_err(|_| thread_panicked())?;
        let work = self.write_state()?.take_pending_work();
        let begun = writer.write_pending(&work)?;
        self.write_state()?.mark_written(&work, begun);
        Ok(work.last)
    }
}

/// A search for the preferred document of a cluster.
struct PreferenceSearch {
    best: KnownDocument,
    considered: usize,
    bytes: usize,
}

impl PreferenceSearch {
    /// Begins with the representative.
    fn new(kept: KnownDocument) -> Self {
        Self {
            bytes: kept.document.meta.as_ref().map_or(0, String::len),
            best: kept,
            considered: 1,
        }
    }

    /// Returns `true` if no further document may be compared.
    fn is_exhausted(&self, preference: &ClusterPreference<'_>) -> bool {
        self.considered > preference.most_members || self.bytes > preference.most_bytes
    }

    /// Compares a duplicate with the best document so far. Of equally preferred ones the earlier wins.
    fn offer_member(&mut self, member: KnownDocument, preference: &ClusterPreference<'_>) {
        let meta = member.document.meta.as_deref();
        self.considered += 1;
        self.bytes += meta.map_or(0, str::len);
        let by_meta = (preference.compare)(meta, self.best.document.meta.as_deref());
        if by_meta.then(member.seq.cmp(&self.best.seq)).is_lt() {
            self.best = member;
        }
    }

    fn finish_search(self, is_complete: bool) -> PreferredDocument {
        PreferredDocument {
            answer: self.best.to_answer(false),
            meta: self.best.document.meta,
            considered: self.considered,
            considered_bytes: self.bytes,
            is_complete,
        }
    }
}

/// A page of clusters, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterPage {
    /// The clusters of this page.
    pub clusters: Vec<DocumentCluster>,
    /// Place of the last kept document that was searched, to be passed as `after`.
    pub next: Option<DocumentSlot>,
}

/// Checks that writing `bytes` leaves the headroom. Four times as much is required, because the
/// database adds an amount of the same order.
fn check_room(disk: &dyn Disk, headroom: u64, bytes: u64) -> Result<()> {
    check_free(disk, headroom.saturating_add(bytes.saturating_mul(4)))
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

fn find_by_id(state: &CollectionState, id: &str) -> Result<Option<KnownDocument>> {
    state.find_by_id(id, hash_id(id))
}

pub(crate) fn stored_document(
    state: &CollectionState,
    known: &KnownDocument,
) -> Result<StoredDocument> {
    let of_is_gone = match known.document.verdict {
        RowVerdict::Kept { .. } => false,
        RowVerdict::Duplicate { seq, slot, .. } => !state.is_still_kept(seq, slot),
    };
    let content = match known.document.fingerprint {
        Some(fingerprint) => DocumentContent::Fingerprint(fingerprint),
        None => DocumentContent::Text(state.document_text(known)?),
    };
    Ok(StoredDocument {
        answer: known.to_answer(false),
        content,
        meta: known.document.meta.clone(),
        of_is_gone,
    })
}

/// Returns the number of the cluster member before row `number`, or 0; `None` if that row is not a member.
fn previous_member(
    state: &CollectionState,
    kept: &KnownDocument,
    number: u64,
) -> Result<Option<u64>> {
    if number > state.last_row() {
        return Ok(None);
    }
    Ok(match state.read_row(number)? {
        PartitionRow::Document(document) => match document.verdict {
            RowVerdict::Duplicate { seq, previous, .. } if seq == kept.seq => Some(previous),
            _ => None,
        },
        PartitionRow::ErasedDuplicate { seq, previous, .. } if seq == kept.seq => Some(previous),
        // The erased row may have been a member: the list continues with the newest member before it.
        PartitionRow::Erased { .. } => Some(newest_member_before(state, kept, number)?),
        _ => None,
    })
}

/// Returns the number of the newest member of a cluster before a row, or 0.
fn newest_member_before(state: &CollectionState, kept: &KnownDocument, number: u64) -> Result<u64> {
    let mut next = state
        .document_slot(kept)
        .map_or(0, |slot| state.last_repeat_of(slot));
    while next > number && next >= state.first_live_row() {
        next = read_member(state, next)?.map_or(0, |(previous, _)| previous);
    }
    Ok(next)
}

/// Reads a cluster member from a row. Returns the number of the previous member, and the member itself unless
/// its document is gone. Returns `None` at the end of the list.
fn read_member(
    state: &CollectionState,
    number: u64,
) -> Result<Option<(u64, Option<KnownDocument>)>> {
    let row = state.read_row(number)?;
    if let PartitionRow::ErasedDuplicate { previous, .. } = row {
        return Ok(Some((previous, None)));
    }
    let Some((document, seq)) = row.into_document(number) else {
        return Ok(None);
    };
    let RowVerdict::Duplicate { previous, .. } = document.verdict else {
        return Ok(None);
    };
    let member = KnownDocument {
        number,
        seq,
        document,
    };
    let is_there = !state.is_row_gone(number);
    Ok(Some((previous, is_there.then_some(member))))
}

/// Returns all partitions in the order of their numbers, if none is missing. Removes partitions whose
/// creation or removal was interrupted.
fn whole_partitions(disk: &dyn Disk, manifest: &CollectionManifest) -> Result<Vec<FileNames>> {
    let inventory = DiskInventory::take_inventory(disk, manifest)?;
    if let Some(finding) = inventory.findings.first() {
        return Err(finding.clone());
    }
    inventory.remove_leftovers(disk)?;
    Ok(inventory.partitions)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::disk::DiskFolder;

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
            let content = 7;
            PendingInsert {
                content,
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

    /// The earliest of equally preferred documents wins, and limits leave out the oldest duplicates.
    #[test]
    fn preferred_documents_are_bounded_and_stable() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection =
            Collection::create_empty(disk, &CollectionSettings::default(), options).unwrap();
        for (id, meta) in [
            ("a", Some("2")),
            ("b", Some("9")),
            ("c", Some("5")),
            ("d", Some("5")),
            ("e", None),
        ] {
            let document = NewDocument {
                id: id.to_owned(),
                content: DocumentContent::Text("one and the same text".to_owned()),
                time: None,
                meta: meta.map(str::to_owned),
            };
            let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
            collection
                .insert_documents(&[prepared.unwrap()])
                .remove(0)
                .unwrap();
        }
        let find = |most_members, most_bytes| {
            let preference = ClusterPreference {
                compare: &|a, b| b.cmp(&a),
                most_members,
                most_bytes,
            };
            let found = collection
                .find_preferred("a", &preference)
                .unwrap()
                .unwrap();
            (found.answer.id, found.considered, found.is_complete)
        };
        assert_eq!(find(100, 100), ("b".to_owned(), 5, true));
        assert_eq!(find(4, 100), ("b".to_owned(), 5, true));
        // The newest first: e, d, c.
        assert_eq!(find(3, 100), ("c".to_owned(), 4, false));
        assert_eq!(find(2, 100), ("d".to_owned(), 3, false));
        assert_eq!(find(0, 100), ("a".to_owned(), 1, false));
        assert_eq!(find(100, 1), ("d".to_owned(), 3, false));
        assert_eq!(find(100, 0), ("a".to_owned(), 1, false));
        let none = ClusterPreference {
            compare: &|_, _| Ordering::Equal,
            most_members: 9,
            most_bytes: 9,
        };
        assert_eq!(
            collection
                .find_preferred("a", &none)
                .unwrap()
                .unwrap()
                .answer
                .id,
            "a"
        );
        for id in ["b", "missing"] {
            assert_eq!(collection.find_preferred(id, &none).unwrap(), None);
        }
    }
}
