//! Insertion of documents: they are admitted in memory, and answered once they are on disk.
//!
//! | word | means |
//! |---|---|
//! | turn | the steps of work after which the lock is released, so that others have theirs |
//! | chunk | documents of one call that are checked together, and admitted under one lock if a turn is enough |
//! | check | the search for the match of a document, before it is admitted; it keeps its state between turns |
//! | unlocked work | a part of a check that needs long texts or many steps, and is done without a lock |
//! | headroom | free bytes of the disk that insertions leave |

use lookalike::stream::Timestamp;

use super::{Collection, check_room};
use crate::document::{InsertAnswer, PendingInsert};
use crate::error::{Error, ErrorKind, Result};
use crate::state::{DocumentCheck, PendingCheck};

/// Largest number of documents that are admitted under one lock. The lock is released earlier if their work exceeds a
/// turn.
const CHUNK_LENGTH: usize = 512;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const PREFETCH_DISTANCE: usize = 4;

/// Answered documents that may not be on disk yet; see [`Collection::admit_documents`].
#[derive(Debug)]
#[must_use = "nothing is acknowledged before it is durable"]
pub struct AdmittedDocuments {
    answers: Vec<Result<InsertAnswer>>,
    /// Number of the last row that must be on disk; 0 if none.
    last: u64,
    /// Error of this machine that ended the admission, if the collection follows a shared log.
    stopped: Option<Error>,
}

impl AdmittedDocuments {
    fn with_capacity(documents: usize) -> Self {
        Self {
            answers: Vec::with_capacity(documents),
            last: 0,
            stopped: None,
        }
    }

    /// Returns for how many documents there is an answer.
    pub fn count(&self) -> usize {
        self.answers.len()
    }
}

/// When the [work without the lock](PendingInsert::has_unlocked_work) is done that a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlockedWorkPolicy {
    /// In this call.
    DoAtOnce,
    /// In a later call: this one ends before the document.
    LeaveForLater,
}

/// Number of times that a document is overtaken by others before they wait for it; see
/// [`Collection::admit_checked`].
const MOST_TIMES_OVERTAKEN: u32 = 3;

impl Collection {
    /// Checks documents in the given order, inserts each, and returns the answers. The check and the
    /// insertion of a document are one step: of two matching documents in one call, the first is kept. When
    /// this returns, all that was answered is on disk.
    ///
    /// If a document with the same id and the same content exists, its earlier answer is returned again. A
    /// document older than the window is answered but not stored.
    ///
    /// # Errors
    /// For a single document: its id exists with other content, and the collection does not replace
    /// documents; or its verification exceeds the [limit](crate::VerificationLimits). For all documents: the
    /// disk has no room, or a write failed, now or earlier.
    pub fn insert_documents(&self, documents: &[PendingInsert]) -> Vec<Result<InsertAnswer>> {
        self.wait_until_durable(self.admit_documents(documents))
    }

    /// Does the first half of [`insert_documents`](Self::insert_documents): everything except the disk.
    /// [`wait_until_durable`](Self::wait_until_durable) returns the answers; another thread may call it
    /// while this one admits the next documents. An admitted document counts from now on, and may reach
    /// the disk even if nobody waits for it.
    pub fn admit_documents(&self, documents: &[PendingInsert]) -> AdmittedDocuments {
        let mut checks: Vec<PendingCheck> = documents.iter().map(|_| None).collect();
        self.admit_turns(
            documents,
            &mut checks,
            usize::MAX,
            UnlockedWorkPolicy::DoAtOnce,
        )
    }

    /// As [`admit_documents`](Self::admit_documents), for as many of the first documents as make a
    /// [turn](crate::VerificationLimits::turn_steps): all of them, unless they take much work to verify, and
    /// none if the first one takes more than a turn. The others keep the work that was done for them, so that a
    /// later turn goes on with it.
    pub fn admit_turn(&self, documents: &mut [PendingInsert]) -> AdmittedDocuments {
        self.admit_turn_with(documents, UnlockedWorkPolicy::DoAtOnce)
    }

    /// As [`admit_turn`](Self::admit_turn), which does [work without the lock](PendingInsert::has_unlocked_work) at
    /// once.
    pub fn admit_turn_with(
        &self,
        documents: &mut [PendingInsert],
        policy: UnlockedWorkPolicy,
    ) -> AdmittedDocuments {
        // Checks are changed while documents are only read, so they leave the documents for the turn. They are put back,
        // because a later turn continues the checks of those that were not admitted.
        let checks = documents.iter_mut().map(|document| document.check.take());
        let mut checks: Vec<PendingCheck> = checks.collect();
        let admitted = self.admit_turns(documents, &mut checks, 1, policy);
        for (document, check) in documents.iter_mut().zip(checks) {
            document.check = check;
        }
        admitted
    }

    /// Admits documents until `turns` turns have used up their steps.
    fn admit_turns(
        &self,
        documents: &[PendingInsert],
        checks: &mut [PendingCheck],
        turns: usize,
        policy: UnlockedWorkPolicy,
    ) -> AdmittedDocuments {
        let refused = |error: Error| AdmittedDocuments {
            answers: vec![Err(error); documents.len()],
            last: 0,
            stopped: None,
        };
        if let Err(error) = self.check_running() {
            return refused(error);
        }
        if let Err(error) = self.check_room_for(documents) {
            if documents.len() > 1 && error.kind() == ErrorKind::Full {
                return self.admit_singly(documents, checks, turns, policy);
            }
            return self.answer_with_earlier(documents, &error);
        }
        let mut admitted = AdmittedDocuments::with_capacity(documents.len());
        let mut turns_left = turns;
        let checks = checks.chunks_mut(CHUNK_LENGTH);
        for (chunk, checks) in documents.chunks(CHUNK_LENGTH).zip(checks) {
            match self.admit_chunk(chunk, checks, &mut admitted, &mut turns_left, policy) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return refused(error),
            }
        }
        admitted.answers.shrink_to_fit();
        admitted
    }

    /// Admits documents of a shared log, in their order, until one meets an error of this machine. Returns the answers
    /// before that, and the error.
    pub(super) fn admit_in_order(
        &self,
        documents: &[PendingInsert],
    ) -> (Vec<Result<InsertAnswer>>, Option<Error>) {
        let mut admitted = AdmittedDocuments::with_capacity(documents.len());
        let mut checks: Vec<PendingCheck> = documents.iter().map(|_| None).collect();
        let mut turns_left = usize::MAX;
        let policy = UnlockedWorkPolicy::DoAtOnce;
        let checks = checks.chunks_mut(CHUNK_LENGTH);
        for (chunk, checks) in documents.chunks(CHUNK_LENGTH).zip(checks) {
            match self.admit_chunk(chunk, checks, &mut admitted, &mut turns_left, policy) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    admitted.stopped = Some(error);
                    break;
                }
            }
        }
        (admitted.answers, admitted.stopped)
    }

    /// Answers documents that exist already and refuses all others.
    fn answer_with_earlier(
        &self,
        documents: &[PendingInsert],
        refusal: &Error,
    ) -> AdmittedDocuments {
        let (now, mut last) = ((self.options.clock)(), 0);
        let mut answer = |document: &PendingInsert| {
            let earlier = self.find_earlier_answer(document, now)?;
            let (answer, number) = earlier.ok_or_else(|| refusal.clone())?;
            last = last.max(number);
            Ok(answer)
        };
        let answers = documents.iter().map(&mut answer).collect();
        AdmittedDocuments {
            answers,
            last,
            stopped: None,
        }
    }

    /// Returns the earlier answer of a document that exists already, and the number of its row.
    fn find_earlier_answer(
        &self,
        document: &PendingInsert,
        now: Timestamp,
    ) -> Result<Option<(InsertAnswer, u64)>> {
        let mut check = self.read_state()?.begin_query(document, now, false);
        loop {
            let turn = &mut self.options.verification.begin_turn();
            let earlier = self
                .read_state()?
                .query_earlier_answer(document, now, &mut check, turn)?;
            if !check.has_unlocked_work() {
                return Ok(earlier);
            }
            check.do_unlocked_work(document);
        }
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
    /// the same time as readers and other callers of this function. Work on long texts, or of many steps, is done without
    /// the lock of the state, and for the first document alone. The lock is released whenever the work exceeds that of
    /// a turn. Returns `false` if the chunk is not finished, because no turns are left, or because work without the
    /// lock is left.
    ///
    /// A document that others have overtaken [`MOST_TIMES_OVERTAKEN`] times makes them wait until it is inserted,
    /// however many turns that takes, and so does one with more keys than a turn inserts. They wait without the lock of
    /// the state, so readers do not wait.
    fn admit_chunk(
        &self,
        chunk: &[PendingInsert],
        checks: &mut [PendingCheck],
        admitted: &mut AdmittedDocuments,
        turns_left: &mut usize,
        policy: UnlockedWorkPolicy,
    ) -> Result<bool> {
        let now = (self.options.clock)();
        let turn_steps = self.options.verification.turn_steps;
        let (mut rest, mut checks) = (chunk, checks);
        let mut exclusive_turn = None;
        while !rest.is_empty() {
            if makes_others_wait(&checks[0]) && exclusive_turn.is_none() {
                // One caller at a time, so that those who wait for it are not behind all that follow it.
                let sole_caller = self.inserting_alone.lock();
                exclusive_turn = Some((sole_caller, self.inserting.write()));
            }
            // While others wait, only the document that they wait for is checked.
            let length = if exclusive_turn.is_some() {
                1
            } else {
                rest.len()
            };
            let (documents, their_checks) = (&rest[..length], &mut checks[..length]);
            let state = self.read_state()?;
            let checked_count = state.check_ahead(documents, their_checks, now, turn_steps);
            drop(state);
            let has_work = checked_count == 0 && has_unlocked_work(&checks[0]);
            if has_work && policy == UnlockedWorkPolicy::LeaveForLater {
                return Ok(false);
            }
            let count = if checked_count == 0 {
                // Nothing is up to date: the turn ended, or the first document has unlocked work. An overtaken document
                // keeps `inserting`, because giving it up would let others overtake it again. One that only inserts in
                // turns gives it up, because its check can still take long.
                if has_work && !is_overtaken(&checks[0]) {
                    exclusive_turn = None;
                }
                do_unlocked_work(&rest[0], &mut checks[0]);
                0
            } else {
                let (is_alone, their_checks) =
                    (exclusive_turn.is_some(), &mut checks[..checked_count]);
                let _shared_turn = (!is_alone).then(|| self.inserting.read());
                self.admit_checked(
                    &rest[..checked_count],
                    their_checks,
                    is_alone,
                    now,
                    admitted,
                )?
            };
            (rest, checks) = (&rest[count..], &mut checks[count..]);
            if admitted.stopped.is_some() {
                return Ok(false);
            }
            if count > 0 {
                exclusive_turn = None;
            }
            // A document whose insertion turns out to take more than a turn goes on at once.
            let goes_on = exclusive_turn.is_some()
                || count == 0 && checked_count > 0 && checks.first().is_some_and(makes_others_wait);
            if !rest.is_empty() && !goes_on {
                *turns_left -= 1;
                if *turns_left == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Admits documents that were checked ahead under the exclusive lock, until the remaining work exceeds that of a
    /// turn. Returns how many it admitted. A document whose check is out of date by more than a turn, or by anything
    /// that needs a long text, is left: the check is brought up to date under the shared lock. If that happens again
    /// and again, because others insert meanwhile, the caller makes them wait. Then it `is_alone`, as a document must
    /// be whose insertion takes several turns.
    fn admit_checked(
        &self,
        documents: &[PendingInsert],
        checks: &mut [PendingCheck],
        is_alone: bool,
        now: Timestamp,
        admitted: &mut AdmittedDocuments,
    ) -> Result<usize> {
        if documents.is_empty() {
            return Ok(0);
        }
        let mut state = self.write_state()?;
        let mut turn = self.options.verification.begin_turn();
        let mut count = 0;
        for (at, document) in documents.iter().enumerate() {
            if let (Some(document), Some(Some(check))) = (
                documents.get(at + PREFETCH_DISTANCE),
                checks.get(at + PREFETCH_DISTANCE),
            ) {
                state.prefetch_document(document, check);
            }
            if !state.update_check(&mut checks[at], document, now, &mut turn) {
                if let (0, Some(check)) = (count, &mut checks[at]) {
                    check.overtaken += 1;
                }
                break;
            }
            let Some(check) = &mut checks[at] else {
                break;
            };
            let insertion_steps = document.insertion_steps(check);
            if insertion_steps > self.options.verification.turn_steps {
                check.inserts_in_turns |= count == 0;
                if !is_alone || !state.insert_ahead(document, check, &mut turn) {
                    break;
                }
            }
            turn.add_steps(insertion_steps);
            let answer = state.admit_at_position(document, check, now);
            if let Err(error) = &answer
                && self.options.follows_log
                && error.is_local()
            {
                admitted.stopped = Some(error.clone());
                break;
            }
            admitted.answers.push(answer);
            count += 1;
            if turn.is_over() {
                break;
            }
        }
        admitted.last = state.last_row();
        drop(state);
        checks[..count].fill(None);
        Ok(count)
    }

    /// Admits documents one after another, so that one for which the disk has no space does not make others be refused. Each
    /// takes a turn, so at most `turns` documents are admitted.
    fn admit_singly(
        &self,
        documents: &[PendingInsert],
        checks: &mut [PendingCheck],
        turns: usize,
        policy: UnlockedWorkPolicy,
    ) -> AdmittedDocuments {
        let mut admitted = AdmittedDocuments::with_capacity(documents.len());
        let documents = documents.iter().zip(checks);
        for (document, check) in documents.take(turns) {
            let check = std::slice::from_mut(check);
            let single = self.admit_turns(std::slice::from_ref(document), check, turns, policy);
            if single.answers.is_empty() {
                break;
            }
            admitted.answers.extend(single.answers);
            admitted.last = admitted.last.max(single.last);
        }
        admitted
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
}

fn has_unlocked_work(check: &PendingCheck) -> bool {
    check.as_ref().is_some_and(DocumentCheck::has_unlocked_work)
}

/// Returns `true` if other insertions wait until the document is inserted.
fn makes_others_wait(check: &PendingCheck) -> bool {
    let inserts_in_turns = check.as_ref().is_some_and(|check| check.inserts_in_turns);
    inserts_in_turns || is_overtaken(check)
}

/// Returns `true` if others have overtaken a document so often that they wait for it.
fn is_overtaken(check: &PendingCheck) -> bool {
    let check = check.as_ref();
    check.is_some_and(|check| check.overtaken >= MOST_TIMES_OVERTAKEN)
}

/// Does the work without the lock that ended the last turn of a check, if there is any: one comparison, or one analysis
/// of a text.
fn do_unlocked_work(document: &PendingInsert, check: &mut PendingCheck) {
    if let Some(check) = check {
        check.do_unlocked_work(document);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lookalike::plan::{MatchSettings, SimilarityMeasure};
    use lookalike::stream::SearchTurn;
    use lookalike::text::AnalysisScratch;

    use super::*;
    use crate::collection::{CollectionOptions, VerificationLimits};
    use crate::disk::DiskFolder;
    use crate::document::{DocumentContent, NewDocument, StoredVerdict};
    use crate::settings::CollectionSettings;

    fn collection(folder: &tempfile::TempDir, turn_steps: u64) -> Collection {
        collection_by(SimilarityMeasure::Levenshtein, folder, turn_steps)
    }

    fn collection_by(
        measure: SimilarityMeasure,
        folder: &tempfile::TempDir,
        turn_steps: u64,
    ) -> Collection {
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let settings = CollectionSettings {
            matching: MatchSettings {
                measure,
                ..MatchSettings::default()
            },
            ..CollectionSettings::default()
        };
        let options = CollectionOptions {
            headroom: 0,
            verification: VerificationLimits {
                document_steps: u64::MAX,
                turn_steps,
            },
            ..CollectionOptions::default()
        };
        Collection::create_empty(disk, &settings, options).unwrap()
    }

    /// Returns a document that shares most words with all others, and has many of its own.
    fn prepare(collection: &Collection, id: &str) -> PendingInsert {
        let words = (0..900).map(|at| match at % 5 {
            0 | 1 => format!("{id}{at} "),
            _ => format!("shared{at} "),
        });
        prepare_text(collection, id, words.collect())
    }

    fn prepare_text(collection: &Collection, id: &str, text: String) -> PendingInsert {
        let document = NewDocument {
            id: id.to_owned(),
            content: DocumentContent::Text(text),
            time: None,
            meta: None,
        };
        let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
        prepared.unwrap()
    }

    fn admit(collection: &Collection, id: &str) {
        let admitted = collection.admit_documents(&[prepare(collection, id)]);
        assert!(admitted.answers.iter().all(Result::is_ok));
    }

    /// A costly comparison that becomes due under the exclusive lock is left, and made without a lock.
    #[test]
    fn overtaken_check_leaves_the_exclusive_lock() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(&folder, 1 << 12);
        let documents = [prepare(&collection, "late")];
        let mut checks = vec![None];
        let now = (collection.options.clock)();
        let check_ahead = |checks: &mut [PendingCheck]| {
            let state = collection.read_state().unwrap();
            state.check_ahead(&documents, checks, now, 1 << 12)
        };
        assert_eq!(check_ahead(&mut checks), 1);
        let mut admitted = AdmittedDocuments {
            answers: Vec::new(),
            last: 0,
            stopped: None,
        };
        for (times, other) in ["one", "two"].into_iter().enumerate() {
            admit(&collection, other);
            let mut rounds = 0;
            loop {
                let now_admitted =
                    collection.admit_checked(&documents, &mut checks, false, now, &mut admitted);
                assert_eq!(now_admitted.unwrap(), 0);
                rounds += 1;
                let check = checks[0].as_ref().unwrap();
                assert_eq!(check.overtaken as usize, times + rounds);
                if check.has_unlocked_work() {
                    break;
                }
            }
            checks[0].as_mut().unwrap().overtaken = times as u32 + 1;
            do_unlocked_work(&documents[0], &mut checks[0]);
        }
        while check_ahead(&mut checks) == 0 {
            do_unlocked_work(&documents[0], &mut checks[0]);
        }
        let count = collection.admit_checked(&documents, &mut checks, false, now, &mut admitted);
        assert_eq!((count.unwrap(), admitted.count()), (1, 1));
    }

    /// However many documents need work without a lock, one at a time has it, and the others keep no texts for it.
    #[test]
    fn one_document_at_a_time_has_work_without_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(&folder, 1 << 14);
        admit(&collection, "one");
        let documents = ["a", "b", "c"].map(|id| prepare(&collection, id));
        let mut checks = vec![None, None, None];
        let now = (collection.options.clock)();
        for _ in 0..50 {
            let state = collection.read_state().unwrap();
            assert_eq!(state.check_ahead(&documents, &mut checks, now, 1 << 14), 0);
        }
        let has_work = checks.iter().map(|check| {
            let check = check.as_ref().expect("every check has begun");
            check.has_unlocked_work()
        });
        assert_eq!(has_work.collect::<Vec<_>>(), [true, false, false]);
        let answers = collection.insert_documents(&documents);
        assert!(answers.iter().all(Result::is_ok));
    }

    /// A document that others have overtaken too often is inserted in one call, and others wait for it.
    #[test]
    fn overtaken_document_is_inserted_before_others() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(&folder, 0);
        for id in ["a", "b", "c"] {
            admit(&collection, id);
        }
        let mut documents = vec![prepare(&collection, "patient")];
        for _ in 0..2 {
            assert_eq!(collection.admit_turn(&mut documents).count(), 0);
        }
        let check = documents[0].check.as_mut().unwrap();
        check.overtaken = MOST_TIMES_OVERTAKEN;
        // Readers of the lock are those who insert.
        let others = collection.inserting.read();
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| collection.admit_turn(&mut documents).count());
            while collection.inserting.try_read().is_some() {
                assert!(!patient.is_finished(), "it did not make others wait");
                std::thread::yield_now();
            }
            drop(others);
            assert_eq!(patient.join().unwrap(), 1);
        });
        assert!(collection.inserting.try_write().is_some());
    }

    /// The checks of a chunk end once they keep too many candidates in memory, and go on as documents are admitted.
    #[test]
    fn candidates_of_a_chunk_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection_by(SimilarityMeasure::Containment, &folder, u64::MAX);
        for at in 0..100 {
            admit(&collection, &format!("kept{at}-"));
        }
        let documents: Vec<PendingInsert> = (0..50)
            .map(|at| prepare(&collection, &format!("new{at}-")))
            .collect();
        let mut checks = vec![None; documents.len()];
        let now = (collection.options.clock)();
        let state = collection.read_state().unwrap();
        let checked_count = state.check_ahead(&documents, &mut checks, now, u64::MAX);
        assert!(
            (1..documents.len()).contains(&checked_count),
            "{checked_count}"
        );
        let begun = checks.iter().filter(|check| check.is_some()).count();
        // The candidates of one document are too many for another, but threads begin at the same time.
        let threads = std::thread::available_parallelism().unwrap().get();
        assert!(begun <= threads, "{begun}");
        // However much is kept, the first one is checked.
        checks.rotate_left(checked_count);
        let rest = &documents[checked_count..];
        let more = state.check_ahead(rest, &mut checks[..rest.len()], now, u64::MAX);
        assert!(more >= 1, "{more}");
        drop(state);
        let answers = collection.insert_documents(&documents);
        let is_kept = |answer: &Result<InsertAnswer>| {
            answer
                .as_ref()
                .is_ok_and(|answer| answer.verdict == StoredVerdict::Kept)
        };
        assert!(answers.iter().all(is_kept));
    }

    /// The ids of matches are read in turns, and the list is the same.
    #[test]
    fn matches_are_listed_in_turns() {
        const MATCHES: usize = 30;
        let folder = tempfile::tempdir().unwrap();
        let collection = collection_by(SimilarityMeasure::Containment, &folder, u64::MAX);
        let text = |words: std::ops::Range<usize>| -> String {
            words.map(|word| format!("word{word} ")).collect()
        };
        let prepare = |id: &str, text: String| prepare_text(&collection, id, text);
        for at in 0..MATCHES {
            let part = prepare(&at.to_string(), text(at * 20..at * 20 + 20));
            assert!(collection.insert_documents(&[part])[0].is_ok());
        }
        let whole = prepare("whole", text(0..20 * MATCHES));
        for limit in [7, 30, 100] {
            let at_once = collection.query_matches(&whole, limit, &|| true).unwrap();
            assert_eq!(at_once.1.len(), limit.min(MATCHES));
            let state = collection.read_state().unwrap();
            let now = (collection.options.clock)();
            let mut check = state.begin_query(&whole, now, true);
            let (mut turns, mut listed) = (0, None);
            while listed.is_none() {
                let mut turn = SearchTurn::new(1);
                let answer = state.answer_with_matches(&whole, now, limit, &mut check, &mut turn);
                listed = answer.unwrap();
                turns += 1;
            }
            let (answer, matches) = listed.unwrap();
            assert_eq!((answer.verdict, matches), (at_once.0.verdict, at_once.1));
            assert!(turns > limit.min(MATCHES), "{turns}");
            let cancelled = collection.query_matches(&whole, limit, &|| false);
            assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
        }
    }

    /// A document with many features is inserted in turns of the exclusive lock, while others wait and readers do not
    /// find it.
    #[test]
    fn document_with_many_features_is_inserted_in_turns() {
        const TURN: u64 = 1 << 15;
        let folder = tempfile::tempdir().unwrap();
        let collection = collection_by(SimilarityMeasure::Containment, &folder, TURN);
        let text = |from: usize, words: usize| -> String {
            (from..from + words)
                .map(|at| format!("word{at} "))
                .collect()
        };
        let prepare = |id: &str, text: String| prepare_text(&collection, id, text);
        admit(&collection, "other");
        let mut documents = vec![prepare("large", text(0, 20_000))];
        let part = prepare("part", text(5000, 200));
        let now = (collection.options.clock)();
        let (mut turns, mut admitted) = (
            0,
            AdmittedDocuments {
                answers: Vec::new(),
                last: 0,
                stopped: None,
            },
        );
        let mut checks = vec![None];
        while admitted.count() == 0 {
            let state = collection.read_state().unwrap();
            let mut query = state.begin_query(&part, now, false);
            let turn = &mut SearchTurn::unlimited();
            let answer = state.answer_query(&part, now, &mut query, turn).unwrap();
            assert_eq!(answer.unwrap().verdict, StoredVerdict::Kept, "turn {turns}");
            let checked_count = state.check_ahead(&documents, &mut checks, now, TURN);
            drop(state);
            if checked_count == 0 {
                do_unlocked_work(&documents[0], &mut checks[0]);
                continue;
            }
            // Nothing is inserted ahead before others wait.
            let is_alone = makes_others_wait(&checks[0]);
            let count =
                collection.admit_checked(&documents, &mut checks, is_alone, now, &mut admitted);
            turns += 1;
            assert_eq!(count.unwrap() == 0, makes_others_wait(&checks[0]));
        }
        assert!(turns > 10, "{turns}");
        let answer = collection.insert_documents(&[part]).remove(0).unwrap();
        assert!(matches!(answer.verdict, StoredVerdict::Duplicate(_)));
        // The same in one call.
        documents[0] = prepare("another", text(20_000, 20_000));
        let answer = collection.insert_documents(&documents).remove(0).unwrap();
        assert_eq!(answer.verdict, StoredVerdict::Kept);
        let part = prepare("another part", text(25_000, 200));
        let answer = collection.insert_documents(&[part]).remove(0).unwrap();
        assert!(matches!(answer.verdict, StoredVerdict::Duplicate(_)));
    }
}
