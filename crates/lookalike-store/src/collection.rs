//! A collection that is open.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use lookalike::online::{Preparer, Slot, Time};
use lookalike::text::Scratch;

use crate::copying::{CopiedPartition, Copier, Ends, bytes_of, check_free};
use crate::disk::Disk;
use crate::document::{Answer, Cluster, Content, Document, Known, Prepared, Stored, shown};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::ids::id_hash;
use crate::inventory::{Inventory, Listed, names};
use crate::partition::{self, FileNames, Partition, is_of_partition};
use crate::rows::{Row, Verdict as RowVerdict};
use crate::settings::{MANIFEST, Manifest, Settings};
use crate::state::{CompactionTrigger, State};
use crate::writer::Writer;

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// How a collection is run; none of it changes an answer, but for the clock.
#[derive(Clone)]
pub struct Options {
    /// What time it is.
    pub clock: Clock,
    /// Nothing is taken that would leave less than this on the disk, in bytes, but for documents that
    /// let a partition go: they may have half of it.
    pub headroom: u64,
    /// When partitions are compacted by [`Collection::maintain`].
    pub compaction: CompactionTrigger,
}

impl Default for Options {
    /// The wall clock, 256 MiB, and the trigger as it is without being set.
    fn default() -> Self {
        Self {
            clock: Arc::new(wall_clock),
            headroom: 256 << 20,
            compaction: CompactionTrigger::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Options");
        shown
            .field("headroom", &self.headroom)
            .field("compaction", &self.compaction)
            .finish_non_exhaustive()
    }
}

fn wall_clock() -> Time {
    let microseconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Time(microseconds)
}

/// Documents that are checked and inserted one after another; see the [crate](crate).
pub struct Collection {
    pub(crate) manifest: Manifest,
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    preparer: Preparer,
    state: RwLock<State>,
    /// Held by whoever writes, and while the end of a snapshot is taken.
    writer: Mutex<Writer>,
    pub(crate) group: Group,
    /// Held while partitions are compacted or copied; files of partitions that are still to be removed.
    pub(crate) upkeep: Mutex<Vec<FileNames>>,
}

impl fmt::Debug for Collection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Collection");
        shown.field("disk", &self.disk).finish_non_exhaustive()
    }
}

/// Documents that are answered before readers have their turn.
const PORTION: usize = 512;

/// Documents between asking for the memory of one and taking it in.
const SOON: usize = 4;

/// Kept documents that are looked at for clusters before writers have their turn: a few milliseconds.
const SLOTS: usize = 1 << 16;

/// Bytes of the files of a new collection, about.
const FILES_OF_A_COLLECTION: u64 = 4 << 10;

/// Bytes of the row of a deletion, at the most.
const ROW_OF_A_DELETION: u64 = 64;

/// Documents that were answered for and are not yet known to be on disk; see [`Collection::admit`].
#[derive(Debug)]
#[must_use = "nothing is acknowledged before it is settled"]
pub struct Admitted {
    answers: Vec<Result<Answer>>,
    /// The number of the last row that must be on disk.
    last: u64,
}

/// What a collection has and takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Documents that are there.
    pub rows: u64,
    /// Rows on the disk that do not count: of documents that were deleted, replaced or moved, and of their
    /// deletions. Compaction removes them.
    pub dead_rows: u64,
    /// Kept documents that are remembered.
    pub kept: u64,
    /// Partitions.
    pub partitions: u64,
    /// The number of the last row on disk.
    pub durable: u64,
    /// Bytes of memory by part.
    pub memory: Vec<(&'static str, u64)>,
    /// Why nothing is taken any more, if so.
    pub stopped: Option<String>,
}

impl Collection {
    /// Makes a collection on an empty disk.
    ///
    /// # Errors
    /// If the settings cannot be, there is a collection already, or the disk refuses or is nearly full.
    pub fn create(disk: Arc<dyn Disk>, settings: &Settings, options: Options) -> Result<Self> {
        settings.plan()?;
        let names = names(&*disk)?;
        if names.iter().any(|name| name == MANIFEST) {
            return Err(Error::setting("there is a collection already"));
        }
        if let Some(name) = names.iter().find(|name| is_of_partition(name)) {
            return Err(Error::setting(format!(
                "there are files of a collection whose manifest is missing: '{name}'"
            )));
        }
        let manifest = Manifest::new(settings)?;
        check_room(&*disk, options.headroom, FILES_OF_A_COLLECTION)?;
        // The manifest comes last: without it there is no collection.
        Listed::between(None, None).write(&*disk, manifest.seal)?;
        manifest.write(&*disk)?;
        Self::open(disk, options)
    }

    /// Opens a collection: reads all that is in it, on all threads of the pool.
    ///
    /// # Errors
    /// If a file is missing or is not what was written, or the disk refuses.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let manifest = Manifest::read(&*disk)?;
        let seal = manifest.seal;
        let mut state = State::new(manifest.settings.clone(), seal)?;
        let named = whole_partitions(&*disk, &manifest)?;
        let sketches = state.replay_partitions(&*disk, &named)?;
        state.end_replay();
        let partitions: VecDeque<_> = state.partitions().cloned().collect();
        if !manifest.lists_partitions {
            // From now on what is lost is noticed here too.
            Listed::of(&partitions).write(&*disk, seal)?;
            manifest.write(&*disk)?;
        }
        let durable = state.last();
        let texts = state.homes.back().map_or(0, |home| home.end);
        Ok(Self {
            manifest,
            options,
            preparer: state.matcher.preparer().clone(),
            writer: Mutex::new(Writer::new(disk.clone(), seal, partitions, texts, sketches)),
            disk,
            state: RwLock::new(state),
            group: Group::new(durable),
            upkeep: Mutex::default(),
        })
    }

    /// What the collection is.
    pub fn settings(&self) -> &Settings {
        &self.manifest.settings
    }

    /// Makes a document ready to be checked: nearly all of the work, on any thread.
    ///
    /// # Errors
    /// If the document is not one that the collection takes: an id, a text or a meta of too many bytes,
    /// an empty id, a text where fingerprints are held, or the reverse.
    pub fn prepare(&self, document: Document, scratch: &mut Scratch) -> Result<Prepared> {
        Prepared::new(document, self.settings().holds, &self.preparer, scratch)
    }

    /// Answers for documents in their order and takes them in, each together with its check: of two
    /// that match, sent at the same moment, the first in the order is kept. What was answered is on
    /// disk.
    ///
    /// The same content under the same id again gets the first answer. A document older than the
    /// window is answered and not stored.
    ///
    /// # Errors
    /// For each document apart: other content under a known id, unless it replaces; for all: no
    /// room on the disk, or a write that failed, now or before.
    pub fn insert(&self, documents: &[Prepared]) -> Vec<Result<Answer>> {
        self.settle(self.admit(documents))
    }

    /// The first half of [`insert`](Self::insert): everything but the disk. The answers are handed out
    /// by [`settle`](Self::settle), which another thread may call while this one admits what comes
    /// next. What is admitted counts from now on, and may be on disk whether it is settled or not.
    pub fn admit(&self, documents: &[Prepared]) -> Admitted {
        let refused = |error: Error| Admitted {
            answers: vec![Err(error); documents.len()],
            last: 0,
        };
        if let Err(error) = self.check_running() {
            return refused(error);
        }
        if let Err(error) = self.check_room_for(documents) {
            return self.answer_again(documents, &error);
        }
        let mut admitted = Admitted {
            answers: Vec::with_capacity(documents.len()),
            last: 0,
        };
        for portion in documents.chunks(PORTION) {
            if let Err(error) = self.admit_portion(portion, &mut admitted) {
                return refused(error);
            }
        }
        admitted
    }

    /// Answers for those that are there already, and refuses all others.
    fn answer_again(&self, documents: &[Prepared], refusal: &Error) -> Admitted {
        let (now, mut last) = ((self.options.clock)(), 0);
        let mut answer = |document: &Prepared| {
            let again = self.state()?.again(document, now)?;
            let (answer, number) = again.ok_or_else(|| refusal.clone())?;
            last = last.max(number);
            Ok(answer)
        };
        let answers = documents.iter().map(&mut answer).collect();
        Admitted { answers, last }
    }

    /// The second half of [`insert`](Self::insert): hands the answers out once they are on disk.
    pub fn settle(&self, admitted: Admitted) -> Vec<Result<Answer>> {
        match self.wait_for(admitted.last) {
            Ok(()) => admitted.answers,
            Err(error) => vec![Err(error); admitted.answers.len()],
        }
    }

    /// Answers for a portion in memory. Most of the checking is done beside readers and others that do
    /// the same.
    fn admit_portion(&self, portion: &[Prepared], admitted: &mut Admitted) -> Result<()> {
        let now = (self.options.clock)();
        let looked = self.state()?.look_ahead(portion, now);
        let mut state = self.state_mut()?;
        let mut looked = looked.into_iter();
        for (at, document) in portion.iter().enumerate() {
            let soon = (portion.get(at + SOON), looked.as_slice().get(SOON));
            if let (Some(document), Some(looked)) = soon {
                state.prefetch(document, looked);
            }
            let looked = looked.next().unwrap_or_else(|| Err(panicked()));
            admitted.answers.push(state.admit(document, looked, now));
        }
        admitted.last = state.last();
        Ok(())
    }

    /// Answers for a document as [`insert`](Self::insert) would and does not take it in: what is there
    /// under its id with the same content has its first answer, and what it would replace is not
    /// compared with.
    ///
    /// # Errors
    /// If the text of a candidate cannot be read, or the id has other content and nothing is replaced.
    pub fn query(&self, document: &Prepared) -> Result<Answer> {
        self.state()?.answer(document, (self.options.clock)())
    }

    /// The document with an id, if there is one; where the window follows the wall clock, one that is past it
    /// by now is none.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn get(&self, id: &str) -> Result<Option<Stored>> {
        let state = self.state()?;
        let Some(known) = self.find_now(&state, id)? else {
            return Ok(None);
        };
        stored(&state, &known).map(Some)
    }

    /// Deletes the document with an id: it matches nothing any more. What was answered with it stands.
    /// Returns whether it was there. What it says is gone from the disk with the next compaction of its
    /// partition; see [`maintain`](Self::maintain).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn delete(&self, id: &str) -> Result<bool> {
        self.check_running()
            .and_then(|()| self.check_room(ROW_OF_A_DELETION))?;
        let (found, last) = {
            let mut state = self.state_mut()?;
            let (known, now) = (find(&state, id)?, (self.options.clock)());
            // A document that has left the window by the wall clock is not found, but is deleted from
            // the disk all the same.
            let found = known
                .as_ref()
                .is_some_and(|known| !state.has_passed_by(known, now));
            if let Some(known) = &known {
                state.delete(known, now);
            }
            (found, state.last())
        };
        self.wait_for(last)?;
        Ok(found)
    }

    /// The cluster whose kept document has an id, with up to `most` of its members, the newest first; `after`
    /// is the sequence number of the member that came last before. None if there is no such document, or
    /// it is not a kept one.
    ///
    /// # Errors
    /// If `after` is no member, or a file is damaged.
    pub fn cluster(&self, id: &str, after: Option<u64>, most: usize) -> Result<Option<Cluster>> {
        let state = self.state()?;
        let Some(known) = self.find_now(&state, id)? else {
            return Ok(None);
        };
        let Some(after) = after else {
            return self.cluster_of(&state, &known, None, most);
        };
        // What has left the window is the end.
        let mut next = 0;
        if after >= state.low() {
            next = previous_member(&state, &known, after)?.ok_or_else(|| {
                let what = format!("number {after} is no member of the cluster '{}'", shown(id));
                Error::setting(what)
            })?;
        }
        self.cluster_of(&state, &known, Some(next), most)
    }

    /// Up to `count` clusters with a member besides the kept document, of documents behind the place
    /// `after`, by [`slot`](ClusterPage::next), with up to `most` members each.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn clusters(&self, after: Option<Slot>, count: usize, most: usize) -> Result<ClusterPage> {
        let (mut page, mut looked_at) = (ClusterPage::default(), after);
        while page.clusters.len() < count {
            // Whoever writes has a turn between two portions.
            let state = self.state()?;
            let mut slots = state.slots_after(looked_at).take(SLOTS).peekable();
            if slots.peek().is_none() {
                break;
            }
            for slot in slots {
                looked_at = Some(slot);
                let Some(seq) = state.repeated(slot) else {
                    continue;
                };
                page.next = looked_at;
                let known = state.known(state.number_of(seq))?;
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

    /// What the collection has and takes.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn stats(&self) -> Result<Stats> {
        let state = self.state()?;
        let progress = self.group.progress();
        let (rows, dead_rows) = state.count_rows();
        Ok(Stats {
            rows,
            dead_rows,
            kept: state.matcher.len(),
            partitions: state.homes.len() as u64,
            durable: progress.durable,
            memory: state.memory(),
            stopped: progress.failed,
        })
    }

    /// Copies the collection, as it is on disk at one moment, to an empty disk, while it goes on. The
    /// manifest comes last: without it a copy is none. The other disk keeps the headroom too.
    ///
    /// Writing waits while the rows of the newest partition are copied, and what has come to its texts
    /// since the copy of these began.
    ///
    /// # Errors
    /// If one of the disks refuses. If there is no room, what has been copied is removed before others
    /// write, who may want the same room.
    pub fn snapshot(&self, to: &dyn Disk) -> Result<()> {
        let _files = self.upkeep();
        let mut copier = Copier::new(to, self.options.headroom);
        let (begun, ends) = {
            let writer = self.writer();
            (writer.partitions().clone(), writer.ends())
        };
        let named: Vec<_> = begun.iter().map(|it| it.about.names()).collect();
        let newest = self.copy_ahead(&mut copier, begun, ends);
        let newest = newest.inspect_err(|error| copier.make_room_after(error))?;
        let (copied, listed) = self.copy_rest(&mut copier, newest)?;
        copied.iter().try_for_each(CopiedPartition::sync)?;
        // What has expired meanwhile may not be all that did.
        for expired in named.into_iter().filter(|it| it.number < listed.first) {
            partition::remove(to, expired)?;
        }
        listed.write(to, self.manifest.seal)?;
        self.manifest.write(to)
    }

    /// Copies partitions as far as they will not change: all of them, but the newest up to its ends, which
    /// is returned.
    fn copy_ahead(
        &self,
        copier: &mut Copier<'_>,
        mut partitions: VecDeque<Arc<Partition>>,
        ends: Ends,
    ) -> Result<Option<CopiedPartition>> {
        for partition in &partitions {
            copier.expect(bytes_of(partition, &*self.disk)?)?;
        }
        let newest = partitions.pop_back();
        for partition in partitions {
            let mut copy = CopiedPartition::begin(copier, &*self.disk, partition)?;
            copy.copy_rest(copier)?;
            copy.sync()?;
        }
        let Some(newest) = newest else {
            return Ok(None);
        };
        let mut copy = CopiedPartition::begin(copier, &*self.disk, newest)?;
        copy.copy_up_to(copier, ends)?;
        Ok(Some(copy))
    }

    /// Copies the rest of what was the newest partition and those that began meanwhile, while nobody
    /// writes; says also which partitions there are at that moment.
    fn copy_rest(
        &self,
        copier: &mut Copier<'_>,
        newest: Option<CopiedPartition>,
    ) -> Result<(Vec<CopiedPartition>, Listed)> {
        let writer = self.writer();
        self.check_running()?;
        let last = newest.as_ref().map_or(0, |newest| newest.names().number);
        let begun = writer.partitions().iter();
        let begun = begun.filter(|it| it.about.number > last).cloned();
        let mut copied = Vec::from_iter(newest);
        let copy = || {
            for partition in begun {
                copied.push(CopiedPartition::begin(copier, &*self.disk, partition)?);
            }
            copied.iter_mut().try_for_each(|it| it.copy_rest(copier))
        };
        if let Err(error) = copy() {
            // Files that are open keep their room.
            drop(copied);
            copier.make_room_after(&error);
            return Err(error);
        }
        Ok((copied, Listed::of(writer.partitions())))
    }

    /// The document with an id, unless it is past the window by the wall clock where that counts.
    fn find_now(&self, state: &State, id: &str) -> Result<Option<Known>> {
        let now = (self.options.clock)();
        let known = find(state, id)?;
        Ok(known.filter(|known| !state.has_passed_by(known, now)))
    }

    /// The cluster of a kept document, with members from a number on, or from the newest on. What is past the
    /// window by the wall clock, where that counts, is left out.
    fn cluster_of(
        &self,
        state: &State,
        known: &Known,
        from: Option<u64>,
        most: usize,
    ) -> Result<Option<Cluster>> {
        let now = (self.options.clock)();
        let Some(slot) = state
            .slot_of(known)
            .filter(|_| !state.has_passed_by(known, now))
        else {
            return Ok(None);
        };
        let mut members = Vec::new();
        let mut next = from.unwrap_or_else(|| state.last_of(slot));
        while next >= state.low() && next != 0 && members.len() <= most {
            let Some((previous, found)) = member(state, next)? else {
                break;
            };
            let found = found.filter(|member| !state.has_passed_by(member, now));
            members.extend(found.map(|member| member.answer(false)));
            next = previous;
        }
        let more = members.len() > most;
        members.truncate(most);
        Ok(Some(Cluster {
            kept: known.answer(false),
            members,
            more,
        }))
    }

    /// Held while partitions are compacted or copied.
    pub(crate) fn upkeep(&self) -> MutexGuard<'_, Vec<FileNames>> {
        // Names that are left in it are removed later.
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> Result<RwLockReadGuard<'_, State>> {
        self.state.read().map_err(|_| panicked())
    }

    pub(crate) fn state_mut(&self) -> Result<RwLockWriteGuard<'_, State>> {
        self.state.write().map_err(|_| panicked())
    }

    pub(crate) fn check_running(&self) -> Result<()> {
        match self.group.progress().failed {
            None => Ok(()),
            Some(why) => Err(stopped(&why)),
        }
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        check_room(&*self.disk, self.options.headroom, bytes)
    }

    /// Whether there is room for documents. Those that let a partition go may have half of the headroom
    /// for it: a disk that is full of what is past the window would otherwise stay so.
    fn check_room_for(&self, documents: &[Prepared]) -> Result<()> {
        let bytes = documents.iter().map(|document| document.bytes() as u64);
        let bytes = bytes.sum();
        let refused = match self.check_room(bytes) {
            Err(error) if error.kind() == ErrorKind::Full => error,
            checked => return checked,
        };
        if self.state()?.lets_go(documents, (self.options.clock)()) {
            return check_room(&*self.disk, self.options.headroom / 2, bytes);
        }
        Err(refused)
    }

    /// Why nothing is taken while the disk is nearly full, if it is.
    ///
    /// # Errors
    /// If the disk does not say how full it is.
    pub fn full(&self) -> Result<Option<Error>> {
        match self.check_room(ROW_OF_A_DELETION) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Full => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Why a read fails that the disk has refused before: it is made again now. `None` if no read was refused,
    /// or those that were succeed again. Of each partition the last refused read is remembered.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn failing_read(&self) -> Result<Option<Error>> {
        let partitions: Vec<_> = self.state()?.partitions().cloned().collect();
        let mut retried = partitions.iter().map(|it| it.retry_failed_read());
        Ok(retried.find_map(|error| error))
    }

    /// Waits until a row is on disk, or writes it: whoever comes first writes for all.
    pub(crate) fn wait_for(&self, last: u64) -> Result<()> {
        let write = || self.write().map_err(|error| error.to_string());
        self.group
            .wait_for(last, write)
            .map_err(|why| stopped(&why))
    }

    /// Writes all that waits; returns the number of the last row that is on disk.
    pub(crate) fn write(&self) -> Result<u64> {
        let mut writer = self.writer.lock().map_err(|_| panicked())?;
        let work = self.state_mut()?.take_work();
        let begun = writer.work(&work)?;
        self.state_mut()?.written(&work, begun);
        Ok(work.last)
    }
}

/// Some clusters, and where to go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterPage {
    /// The clusters.
    pub clusters: Vec<Cluster>,
    /// The place of the last one that was looked at.
    pub next: Option<Slot>,
}

/// Whether so many bytes leave the headroom; what a database adds is of the same order.
fn check_room(disk: &dyn Disk, headroom: u64, bytes: u64) -> Result<()> {
    check_free(disk, headroom.saturating_add(bytes.saturating_mul(4)))
}

fn panicked() -> Error {
    stopped("a thread has panicked")
}

pub(crate) fn stopped(why: &str) -> Error {
    Error::new(
        ErrorKind::Stopped,
        format!("nothing is taken any more until the collection is opened again: {why}"),
    )
}

fn find(state: &State, id: &str) -> Result<Option<Known>> {
    state.find(id, id_hash(id))
}

pub(crate) fn stored(state: &State, known: &Known) -> Result<Stored> {
    let of_is_gone = match known.document.verdict {
        RowVerdict::Kept { .. } => false,
        RowVerdict::Duplicate { seq, slot, .. } => !state.is_there(seq, slot),
    };
    let content = match known.document.fingerprint {
        Some(fingerprint) => Content::Fingerprint(fingerprint),
        None => Content::Text(state.text_of(known)?),
    };
    Ok(Stored {
        answer: known.answer(false),
        content,
        meta: known.document.meta.clone(),
        of_is_gone,
    })
}

/// The member of a cluster before one with a number, or 0; none if that is no member.
fn previous_member(state: &State, kept: &Known, number: u64) -> Result<Option<u64>> {
    if number > state.last() {
        return Ok(None);
    }
    Ok(match state.row(number)? {
        Row::Document(document) => match document.verdict {
            RowVerdict::Duplicate { seq, previous, .. } if seq == kept.seq => Some(previous),
            _ => None,
        },
        Row::ErasedDuplicate { seq, previous, .. } if seq == kept.seq => Some(previous),
        // It may have been a member: the next one is the newest that came before it.
        Row::Erased { .. } => Some(newest_member_before(state, kept, number)?),
        _ => None,
    })
}

/// The newest member of a cluster before a row, or 0.
fn newest_member_before(state: &State, kept: &Known, number: u64) -> Result<u64> {
    let mut next = state.slot_of(kept).map_or(0, |slot| state.last_of(slot));
    while next > number && next >= state.low() {
        next = member(state, next)?.map_or(0, |(previous, _)| previous);
    }
    Ok(next)
}

/// Reads a cluster member from a row: returns the number of the member before, and the member itself
/// unless its document is erased. Returns `None` where the list ends.
fn member(state: &State, number: u64) -> Result<Option<(u64, Option<Known>)>> {
    let row = state.row(number)?;
    if let Row::ErasedDuplicate { previous, .. } = row {
        return Ok(Some((previous, None)));
    }
    let Some((document, seq)) = row.document(number) else {
        return Ok(None);
    };
    let RowVerdict::Duplicate { previous, .. } = document.verdict else {
        return Ok(None);
    };
    let member = Known {
        number,
        seq,
        document,
    };
    let is_there = !state.is_gone(number);
    Ok(Some((previous, is_there.then_some(member))))
}

/// All partitions in the order of their numbers, if none is missing. What was begun or removed and not
/// brought to its end goes then.
fn whole_partitions(disk: &dyn Disk, manifest: &Manifest) -> Result<Vec<FileNames>> {
    let inventory = Inventory::take(disk, manifest)?;
    if let Some(finding) = inventory.findings.first() {
        return Err(finding.clone());
    }
    inventory.tidy(disk)?;
    Ok(inventory.partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;

    /// Hashes of contents can be made to agree.
    #[test]
    fn contents_of_equal_hash_are_not_equal() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Folder::open(folder.path()).unwrap());
        let options = Options {
            headroom: 0,
            ..Options::default()
        };
        let collection = Collection::create(disk, &Settings::default(), options).unwrap();
        let prepare = |text: &str, meta: Option<&str>| {
            let document = Document {
                id: "one".to_owned(),
                content: Content::Text(text.to_owned()),
                time: None,
                meta: meta.map(str::to_owned),
            };
            let prepared = collection.prepare(document, &mut Scratch::default());
            let content = 7;
            Prepared {
                content,
                ..prepared.unwrap()
            }
        };
        let insert = |document| collection.insert(&[document]).remove(0);
        assert!(!insert(prepare("some text", None)).unwrap().again);
        assert!(insert(prepare("some text", None)).unwrap().again);
        for other in [prepare("other text", None), prepare("some text", Some("m"))] {
            assert_eq!(insert(other).unwrap_err().kind(), ErrorKind::Conflict);
        }
    }
}
