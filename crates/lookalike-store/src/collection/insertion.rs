//! Insertion of documents: they are admitted in memory, and answered once they are on disk.

use lookalike::stream::{SearchTurn, Timestamp};

use super::{Collection, check_room, thread_panicked};
use crate::document::{InsertAnswer, PendingInsert};
use crate::error::{Error, ErrorKind, Result};
use crate::state::PendingCheck;

/// Largest number of documents that are admitted under one lock; their work can end it earlier.
const PORTION_LENGTH: usize = 512;

/// Distance, in documents, between the prefetch of a document's memory and its insertion.
const PREFETCH_DISTANCE: usize = 4;

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

/// Largest number of turns that a document whose check is out of date again and again may take at once.
const LONGEST_OVERTAKEN_TURN: u64 = 64;

impl Collection {
    /// Checks documents in the given order, inserts each, and returns the answers. The check and the
    /// insertion of a document are one step: of two matching documents in one call, the first is kept. When
    /// this returns, all that was answered is on disk.
    ///
    /// If a document with the same id and the same content exists, its first answer is returned again. A
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
    /// the disk even if it is never settled.
    pub fn admit_documents(&self, documents: &[PendingInsert]) -> AdmittedDocuments {
        let mut checks: Vec<PendingCheck> = documents.iter().map(|_| None).collect();
        self.admit_turns(documents, &mut checks, usize::MAX)
    }

    /// As [`admit_documents`](Self::admit_documents), for as many of the first documents as make a
    /// [turn](crate::VerificationLimits::turn_steps): all of them, unless they take much work to verify, and
    /// none if the first one takes more than a turn. The others keep the work that was done for them, so that a
    /// later turn goes on with it.
    pub fn admit_turn(&self, documents: &mut [PendingInsert]) -> AdmittedDocuments {
        let taken = documents.iter_mut().map(|document| document.check.take());
        let mut checks: Vec<PendingCheck> = taken.collect();
        let admitted = self.admit_turns(documents, &mut checks, 1);
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
    ) -> AdmittedDocuments {
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
        let checks = checks.chunks_mut(PORTION_LENGTH);
        for (portion, checks) in documents.chunks(PORTION_LENGTH).zip(checks) {
            match self.admit_portion(portion, checks, &mut admitted, &mut turns_left) {
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
        checks: &mut [PendingCheck],
        admitted: &mut AdmittedDocuments,
        turns_left: &mut usize,
    ) -> Result<bool> {
        let now = (self.options.clock)();
        let turn_steps = self.options.verification.turn_steps;
        let (mut rest, mut checks) = (portion, checks);
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

    /// Admits prechecked documents under the exclusive lock, until the remaining work exceeds that of a turn.
    /// Returns how many it admitted. A document whose check is out of date by more than a turn is left: the
    /// check is brought up to date under the shared lock. The next time it may take twice as long here, up to
    /// [`LONGEST_OVERTAKEN_TURN`] turns, so that others who insert cannot keep it waiting for ever.
    fn admit_checked(
        &self,
        documents: &[PendingInsert],
        checks: &mut [PendingCheck],
        now: Timestamp,
        admitted: &mut AdmittedDocuments,
    ) -> Result<usize> {
        if documents.is_empty() {
            return Ok(0);
        }
        let mut state = self.write_state()?;
        let overtaken = times_overtaken(&checks[0]).min(LONGEST_OVERTAKEN_TURN.ilog2());
        let turn_steps = self.options.verification.turn_steps;
        let mut turn = SearchTurn::new(turn_steps.saturating_mul(1 << overtaken));
        let mut count = 0;
        for (at, document) in documents.iter().enumerate() {
            if let (Some(document), Some(Some(check))) = (
                documents.get(at + PREFETCH_DISTANCE),
                checks.get(at + PREFETCH_DISTANCE),
            ) {
                state.prefetch_document(document, check);
            }
            if !state.update_check(&mut checks[at], document, now, &mut turn) {
                if let (0, Some(Ok(check))) = (count, &mut checks[at]) {
                    check.overtaken += 1;
                }
                break;
            }
            let check = checks[at].take().unwrap_or_else(|| Err(thread_panicked()));
            turn.add_steps(document.insertion_steps(&check));
            admitted
                .answers
                .push(state.admit_document(document, check, now));
            count += 1;
            if turn.is_over() {
                break;
            }
        }
        admitted.last = state.last_row();
        Ok(count)
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

/// Returns how many times a check was left because it was out of date.
fn times_overtaken(check: &PendingCheck) -> u32 {
    match check {
        Some(Ok(check)) => check.overtaken,
        _ => 0,
    }
}
