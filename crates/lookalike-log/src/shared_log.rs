//! A reader and writer of a shared log, at one place of it.
//!
//! Guarantees, as long as the store keeps what [`LogStore`] promises:
//!
//! - All replicas that read the log see the same records in the same order.
//! - An append that was reported as [`AppendOutcome::Appended`] stays in the log, once.
//! - A record is returned only if it follows all records before it, unchanged.
//!
//! A request without an answer may take effect later. The log therefore never moves on from number n until a record n
//! exists: an append whose outcome is unknown is repeated with the same bytes, and its nonce tells whether the record
//! that is found is its own.
//!
//! Cost: an append is one request for the record and, at the same time, two that read its neighbours. A record that is
//! read is one request. After an opening, an error and a pause, two more requests check the record before the place, and
//! that none after it has been removed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::copies::RecordCopies;
use crate::entry::LogEntry;
use crate::error::{DamageKind, LogError};
use crate::keys::record_key;
use crate::maintenance::read_first_number;
use crate::record::{LogId, LogRecord, LogTail, RecordDigest, RecordHeader, encode_record};
use crate::store::{CreateOutcome, LogStore, StoreError, random_number};

/// Most objects that are read at a time.
const MAX_READ_AHEAD: u64 = 32;

/// Bytes of one reading after which the next one reads fewer objects, so that large records do not fill the memory.
const READ_AHEAD_BYTES: usize = 32 << 20;

/// Empty readings after which one looks at the records around its place, so that a log that was cut or rewritten is
/// noticed without an append.
const EMPTY_READS_PER_CHECK: u32 = 16;

/// Time without an answer of the store after which the log may have moved on, and been pruned, beyond the tail.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A shared log at one place of it.
///
/// After any error but [`LogError::Store`] it refuses to go on: every later call returns the same error.
#[derive(Debug)]
pub struct SharedLog {
    store: Arc<dyn LogStore>,
    replica: String,
    tail: LogTail,
    copies: Option<Arc<dyn RecordCopies>>,
    /// Error of the last copy that could not be written.
    copy_error: Option<std::io::Error>,
    /// Objects after the tail that were read and not yet verified.
    read_ahead: VecDeque<Vec<u8>>,
    /// Objects that the next reading asks for.
    read_width: u64,
    /// Readings that found nothing, since the last one that did.
    empty_reads: u32,
    /// `true` while the store is known to hold the record before the tail, and all that follow it.
    is_tail_confirmed: bool,
    /// Moment of the last answer of the store. The second clock goes on while the machine sleeps.
    answered: Option<(Instant, SystemTime)>,
    pending: Option<PendingAppend>,
    /// Error after which the log refuses to go on.
    failure: Option<LogError>,
}

/// An append whose record has not been found in the log yet.
#[derive(Debug)]
struct PendingAppend {
    record: LogRecord,
    object: Vec<u8>,
}

/// Outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The entries are in the log, as this record.
    Appended(LogRecord),
    /// Another replica's record has the number.
    Overtaken {
        /// Record of the other replica, which must be applied first.
        record: LogRecord,
        /// Entries that were not appended, to be proposed again.
        entries: Vec<LogEntry>,
    },
}

impl SharedLog {
    /// Opens a log at the place that a replica has reached. Makes no request.
    ///
    /// `replica` is the name under which this replica writes.
    pub fn open(store: Arc<dyn LogStore>, replica: &str, tail: LogTail) -> Self {
        Self {
            store,
            replica: replica.to_owned(),
            tail,
            copies: None,
            copy_error: None,
            read_ahead: VecDeque::new(),
            read_width: 1,
            empty_reads: 0,
            is_tail_confirmed: false,
            answered: None,
            pending: None,
            failure: None,
        }
    }

    /// Keeps a copy of every record that is read or appended from now on.
    ///
    /// A copy that cannot be written does not stop the log; [`SharedLog::take_copy_error`] reports it.
    #[must_use]
    pub fn with_copies(self, copies: Arc<dyn RecordCopies>) -> Self {
        Self {
            copies: Some(copies),
            ..self
        }
    }

    /// Returns the place after the last record that was read or appended.
    pub fn tail(&self) -> &LogTail {
        &self.tail
    }

    /// Returns `true` if the outcome of an append is unknown. Only [`SharedLog::continue_append`] may follow then.
    pub fn has_pending_append(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the error of the last copy that could not be written since the last call.
    pub fn take_copy_error(&mut self) -> Option<std::io::Error> {
        self.copy_error.take()
    }

    /// Reads the next record; `None` if it does not exist yet.
    ///
    /// Reads several objects at a time while there are many: twice as many after each reading, up to 32.
    ///
    /// # Errors
    /// [`LogError::Store`] if a request fails; the same call may follow. Other errors are final.
    ///
    /// # Panics
    /// If the outcome of an append is unknown.
    pub fn read_next(&mut self) -> Result<Option<LogRecord>, LogError> {
        self.check_idle()?;
        if self.read_ahead.is_empty() {
            self.doubt_tail_after_pause();
            let read = self.fill_read_ahead();
            self.note_result(read)?;
        }
        match self.read_ahead.pop_front() {
            Some(object) => self.accept_object(&object).map(Some),
            None => Ok(None),
        }
    }

    /// Proposes entries as the next record. Its time is `now_us`, in microseconds since 1970, or that of the record before
    /// if that is later.
    ///
    /// The entries together have at most [`MAX_ENTRIES_BYTES`](crate::MAX_ENTRIES_BYTES).
    ///
    /// # Errors
    /// [`LogError::Store`] if a request fails. The outcome is unknown then and
    /// [`has_pending_append`](Self::has_pending_append) is `true`: only [`SharedLog::continue_append`] may follow.
    /// If it is `false`, nothing was sent: the entries are too large, or the system has no random numbers. Other errors are
    /// final, and nothing may be acknowledged.
    ///
    /// # Panics
    /// If the outcome of an earlier append is unknown.
    pub fn append(
        &mut self,
        entries: Vec<LogEntry>,
        now_us: i64,
    ) -> Result<AppendOutcome, LogError> {
        self.check_idle()?;
        if let Some(object) = self.read_ahead.pop_front() {
            let record = self.accept_object(&object)?;
            return Ok(AppendOutcome::Overtaken { record, entries });
        }
        self.pending = Some(self.prepare_append(entries, now_us)?);
        self.continue_append()
    }

    /// Repeats the append whose outcome is unknown.
    ///
    /// # Errors
    /// As [`SharedLog::append`].
    ///
    /// # Panics
    /// If there is no such append.
    pub fn continue_append(&mut self) -> Result<AppendOutcome, LogError> {
        self.check_failure()?;
        let pending = self.pending.take().expect("an append is pending");
        let number = pending.record.number;
        self.doubt_tail_after_pause();
        let settled = self.settle_append(&pending);
        let settled = match settled {
            Err(LogError::Store(error)) => {
                self.pending = Some(pending);
                self.is_tail_confirmed = false;
                return Err(LogError::Store(error));
            }
            settled => self.note_result(settled)?,
        };
        debug_assert_eq!(number, self.tail.next);
        match settled {
            None => {
                self.move_beyond(&pending.record, &pending.object);
                Ok(AppendOutcome::Appended(pending.record))
            }
            Some(OtherRecord { record, object }) => {
                self.move_beyond(&record, &object);
                let entries = pending.record.entries;
                Ok(AppendOutcome::Overtaken { record, entries })
            }
        }
    }

    /// Makes the next call act as after a long pause.
    #[cfg(test)]
    pub(crate) fn forget_answer(&mut self) {
        self.answered = None;
    }

    fn check_failure(&self) -> Result<(), LogError> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn check_idle(&self) -> Result<(), LogError> {
        self.check_failure()?;
        assert!(
            self.pending.is_none(),
            "the outcome of an append is unknown: continue_append must be called first"
        );
        Ok(())
    }

    /// Notes the result of requests: the time of an answer, or an error, after which the tail is confirmed anew. After a final
    /// error the log refuses to go on.
    fn note_result<T>(&mut self, result: Result<T, LogError>) -> Result<T, LogError> {
        match &result {
            Ok(_) => self.answered = Some((Instant::now(), SystemTime::now())),
            Err(_) => self.is_tail_confirmed = false,
        }
        if let Some(failure) = result.as_ref().err().filter(|error| error.is_final()) {
            self.failure = Some(failure.clone());
            self.read_ahead.clear();
        }
        result
    }

    /// Confirms the tail anew if the store has not answered for a while: this process may have been suspended, while others
    /// wrote on and removed the records that it has not read.
    fn doubt_tail_after_pause(&mut self) {
        let is_recent = self.answered.is_some_and(|(instant, time)| {
            let elapsed = time.elapsed().unwrap_or(Duration::MAX);
            instant.elapsed() < LONGEST_PAUSE && elapsed < LONGEST_PAUSE
        });
        self.is_tail_confirmed &= is_recent;
    }

    fn prepare_append(
        &self,
        entries: Vec<LogEntry>,
        now_us: i64,
    ) -> Result<PendingAppend, LogError> {
        let header = RecordHeader {
            number: self.tail.next,
            log: match self.tail.log {
                Some(log) => log,
                None => LogId(random_number()?),
            },
            time_us: now_us.max(self.tail.time_us),
            nonce: random_number()?,
            previous: self.tail.digest,
            writer: self.replica.clone(),
        };
        let object = encode_record(&header, &entries)?;
        let digest = RecordDigest::compute(&object);
        let record = header.with_entries(entries, digest);
        Ok(PendingAppend { record, object })
    }

    /// Verifies the object at the tail, and moves beyond it.
    fn accept_object(&mut self, object: &[u8]) -> Result<LogRecord, LogError> {
        let record = LogRecord::decode_after(&self.tail, object);
        let record = self.note_result(record)?;
        self.move_beyond(&record, object);
        Ok(record)
    }

    fn move_beyond(&mut self, record: &LogRecord, object: &[u8]) {
        self.tail = record.tail();
        self.is_tail_confirmed = true;
        if let Some(copies) = &self.copies {
            let written = copies.write_copy(record.number, object);
            self.copy_error = written.err().or(self.copy_error.take());
        }
    }
}

/// Reading.
impl SharedLog {
    fn fill_read_ahead(&mut self) -> Result<(), LogError> {
        let checks_neighbours =
            self.empty_reads % EMPTY_READS_PER_CHECK == EMPTY_READS_PER_CHECK - 1;
        let width = self.read_width.max(u64::from(checks_neighbours) + 1);
        let numbers = self.tail.next..self.tail.next + width;
        let keys: Vec<String> = numbers.map(record_key).collect();
        let objects = match keys.as_slice() {
            [key] => vec![self.store.read(key)?],
            keys => self.store.read_several(keys)?,
        };
        let found = objects.iter().take_while(|object| object.is_some()).count();
        let has_gap = objects[found..].iter().any(Option::is_some);
        // The records before a gap come first. The next reading begins at the gap, and has the same width.
        if has_gap && found == 0 {
            self.check_missing_record(self.tail.next)?;
        }
        self.is_tail_confirmed &= found > 0 || !checks_neighbours;
        self.confirm_tail()?;
        if found == 0 {
            self.empty_reads = self.empty_reads.wrapping_add(1);
        } else {
            self.empty_reads = 0;
        }
        self.read_ahead = objects.into_iter().map_while(|object| object).collect();
        if !has_gap {
            self.choose_read_width(found as u64 == width);
        }
        Ok(())
    }

    fn choose_read_width(&mut self, is_full: bool) {
        let bytes: usize = self.read_ahead.iter().map(Vec::len).sum();
        self.read_width = if !is_full {
            1
        } else if bytes > READ_AHEAD_BYTES {
            (self.read_width / 2).max(1)
        } else {
            (self.read_width * 2).min(MAX_READ_AHEAD)
        };
    }

    /// Checks a record that was not there although a later one was. Objects that are read at the same time need not be
    /// from one moment, so it is read again: a later record exists only after it.
    fn check_missing_record(&self, number: u64) -> Result<(), LogError> {
        match self.store.read(&record_key(number))? {
            Some(_) => Ok(()),
            None => match read_first_number(&*self.store)? {
                before if before > number => {
                    Err(LogError::damaged(number, DamageKind::Pruned { before }))
                }
                _ => Err(LogError::damaged(number, DamageKind::Missing)),
            },
        }
    }

    /// Checks that the store holds the record before the tail, unchanged, and that no record after the tail has been
    /// removed, unless that is known. A replica that goes on at a place that was pruned would fork the log: the number there
    /// is free again.
    fn confirm_tail(&mut self) -> Result<(), LogError> {
        if self.is_tail_confirmed {
            return Ok(());
        }
        let first = self.check_unpruned()?;
        // The record before the first one that must exist may have been removed.
        if let Some(number) = self.last_number().filter(|number| *number >= first) {
            let object = self.store.read(&record_key(number))?;
            self.check_last_object(number, object.as_deref())?;
        }
        self.is_tail_confirmed = true;
        Ok(())
    }

    /// Checks that an object is the record before the tail.
    fn check_last_object(&self, number: u64, object: Option<&[u8]>) -> Result<(), LogError> {
        let Some(object) = object else {
            return Err(self.explain_missing_record(number)?);
        };
        let (found, expected) = (RecordDigest::compute(object), self.tail.digest);
        if found == expected {
            return Ok(());
        }
        // An object that is damaged by itself, or of another log, is described as that.
        let record = LogRecord::decode(number, object)?;
        self.check_log(&record)?;
        Err(LogError::damaged(
            number,
            DamageKind::Replaced { found, expected },
        ))
    }

    /// Returns the reason why the record before the tail does not exist: another log has taken the place of this one, a
    /// pruning has removed the record, or the store has lost it.
    fn explain_missing_record(&self, number: u64) -> Result<LogError, LogError> {
        let first = read_first_number(&*self.store)?;
        if let Some(object) = self.store.read(&record_key(first))?
            && let Ok(record) = LogRecord::decode(first, &object)
        {
            self.check_log(&record)?;
        }
        let kind = if first > number {
            DamageKind::Pruned { before: first }
        } else {
            DamageKind::Lost
        };
        Ok(LogError::damaged(number, kind))
    }

    /// Checks that a record is one of the log that this replica follows.
    fn check_log(&self, record: &LogRecord) -> Result<(), LogError> {
        match self.tail.log.filter(|log| *log != record.log) {
            None => Ok(()),
            Some(expected) => {
                let found = record.log;
                let kind = DamageKind::ForeignLog { found, expected };
                Err(LogError::damaged(record.number, kind))
            }
        }
    }

    /// Returns the number of the last record that was read; `None` at the beginning.
    fn last_number(&self) -> Option<u64> {
        self.tail.next.checked_sub(1).filter(|number| *number > 0)
    }

    /// Checks that the next record, which may not exist yet, has not been removed; returns the number of the first one that
    /// must exist.
    fn check_unpruned(&self) -> Result<u64, LogError> {
        let first = read_first_number(&*self.store)?;
        if self.tail.next < first {
            return Err(LogError::damaged(
                self.tail.next,
                DamageKind::Pruned { before: first },
            ));
        }
        Ok(first)
    }
}

/// The record of another replica that has the number of an append.
struct OtherRecord {
    record: LogRecord,
    object: Vec<u8>,
}

/// Appending.
impl SharedLog {
    /// Finds out which record has the number of an append; `None` if it is that of the append.
    fn settle_append(&mut self, pending: &PendingAppend) -> Result<Option<OtherRecord>, LogError> {
        self.confirm_tail()?;
        let number = pending.record.number;
        let key = record_key(number);
        let previous = self.last_number().map(record_key);
        let next = record_key(number + 1);
        let created =
            self.store
                .create_between(&key, &pending.object, previous.as_deref(), &next)?;
        if created.outcome == CreateOutcome::AlreadyExists {
            let object = self.read_existing(&key)?;
            let record = LogRecord::decode_after(&self.tail, &object)?;
            if record.nonce != pending.record.nonce {
                self.read_ahead.extend(created.next);
                return Ok(Some(OtherRecord { record, object }));
            }
        }
        match self.last_number() {
            Some(last) => {
                if created.previous.is_none() {
                    self.check_unpruned()?;
                }
                self.check_last_object(last, created.previous.as_deref())?;
            }
            // No record precedes the first one, so the number of the first that must exist is not needed.
            None => {
                self.check_unpruned()?;
            }
        }
        if let Some(object) = &created.next {
            LogRecord::decode_after(&pending.record.tail(), object)?;
        }
        Ok(None)
    }

    /// Reads an object that exists, as the answer to its creation said.
    ///
    /// Some stores give the same answer while another creation is under way. The outcome is still unknown then.
    fn read_existing(&self, key: &str) -> Result<Vec<u8>, LogError> {
        let object = self.store.read(key)?;
        object.ok_or_else(|| {
            LogError::Store(StoreError::retryable(format!(
                "object '{key}' could not be created because it exists or is being created, and it cannot be read yet"
            )))
        })
    }
}
