//! Witnesses of the end of a log.
//!
//! Records by themselves do not tell that the last of them are lost, or that others have taken their numbers. The marks of
//! replicas and the manifests of snapshots do: each names a record, its digest and its log.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::keys::{REPLICA_PREFIX, SNAPSHOT_PREFIX, describe_record, record_key, replaced_key};
use crate::maintenance::snapshots::{SnapshotExtent, read_snapshot_extents};
use crate::maintenance::walk::{list_records, read_first_number};
use crate::marks::{ReplicaMark, read_marks};
use crate::record::{LogId, LogRecord, LogTail, RecordDigest};
use crate::store::{LogStore, StoreError};

/// Kind of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WitnessKind {
    /// The mark of a replica.
    Replica,
    /// The manifest of a snapshot.
    Snapshot,
}

/// A record that a replica has applied, or that is in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogWitness {
    /// Kind of the witness.
    pub kind: WitnessKind,
    /// Name of the replica or snapshot.
    pub name: String,
    /// Log that the witness knows, if it says so.
    pub log: Option<LogId>,
    /// Number of the record.
    pub number: u64,
    /// Digest of the record; `None` in marks of older programs.
    pub digest: Option<RecordDigest>,
}

/// A contradiction between a log and a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContradictionKind {
    /// The log ends before the record of the witness.
    LostRecords {
        /// Number of the last record; 0 if there is none.
        last: u64,
    },
    /// The record of this number is another one than that of the witness.
    OtherRecord {
        /// Digest of the record in the log.
        found: RecordDigest,
    },
    /// The witness knows another log.
    OtherLog {
        /// Log of the records.
        found: LogId,
    },
}

/// A contradiction between a log and a witness. Its text is a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessContradiction {
    /// The witness.
    pub witness: LogWitness,
    /// The contradiction.
    pub kind: ContradictionKind,
}

impl LogWitness {
    /// Returns what a place after a record says; `None` at the beginning of the log.
    fn at_place(kind: WitnessKind, name: &str, tail: &LogTail) -> Option<Self> {
        let number = tail.next.checked_sub(1).filter(|number| *number > 0)?;
        Some(Self {
            kind,
            name: name.to_owned(),
            log: tail.log,
            number,
            digest: Some(tail.digest),
        })
    }

    /// Returns what a mark says; `None` before the first record.
    fn of_mark(mark: ReplicaMark) -> Option<Self> {
        (mark.applied > 0).then_some(Self {
            kind: WitnessKind::Replica,
            name: mark.name,
            log: mark.log,
            number: mark.applied,
            digest: mark.digest,
        })
    }

    /// Returns what a snapshot says of its places.
    fn of_snapshot(extent: &SnapshotExtent) -> Vec<Self> {
        let mut tails = vec![extent.tail];
        tails.extend((extent.end != extent.tail).then_some(extent.end));
        let places = tails.iter();
        let witnesses =
            places.filter_map(|tail| Self::at_place(WitnessKind::Snapshot, &extent.name, tail));
        witnesses.collect()
    }

    fn contradicted_by(&self, kind: ContradictionKind) -> WitnessContradiction {
        WitnessContradiction {
            witness: self.clone(),
            kind,
        }
    }
}

/// Reads all witnesses. They must be read before the log, because it grows meanwhile.
pub(super) fn read_witnesses(store: &dyn LogStore) -> Result<Vec<LogWitness>, StoreError> {
    let mut witnesses = Vec::new();
    witnesses.extend(
        read_marks(store)?
            .into_iter()
            .filter_map(LogWitness::of_mark),
    );
    for extent in read_snapshot_extents(store)? {
        witnesses.extend(LogWitness::of_snapshot(&extent));
    }
    Ok(witnesses)
}

/// Finds out whether the end of a log is lost: a replica has applied a record behind the last one, or a snapshot has it, or
/// the newest record that both have is another one. Takes a request for each mark and snapshot. Those of another log are left
/// out, and so are objects that are not marks or manifests and marks of older programs, which name no log: a log must not be
/// refused because of them. A record that a repair has replaced says nothing either.
///
/// # Errors
/// If a request fails.
pub fn find_lost_end(store: &dyn LogStore) -> Result<Option<WitnessContradiction>, StoreError> {
    let mut witnesses = read_readable_witnesses(store)?;
    witnesses.sort_by_key(|witness| Reverse(witness.number));
    let mut missing = Vec::new();
    let mut newest = None;
    for (at, witness) in witnesses.iter().enumerate() {
        if let Some(object) = store.read(&record_key(witness.number))? {
            newest = Some((at, object));
            break;
        }
        missing.push(witness);
    }
    if let Some(lost) = find_lost_record(store, missing)? {
        return Ok(Some(lost));
    }
    let Some((at, object)) = newest else {
        return Ok(None);
    };
    let same_number = witnesses[at..].chunk_by(|one, other| one.number == other.number);
    let same_number = same_number.into_iter().next().unwrap_or_default();
    find_other_record(store, same_number, &object)
}

/// Returns a contradiction with one of the witnesses, whose objects are missing, unless they are pruned or of another log.
fn find_lost_record(
    store: &dyn LogStore,
    missing: Vec<&LogWitness>,
) -> Result<Option<WitnessContradiction>, StoreError> {
    if missing.is_empty() {
        return Ok(None);
    }
    let last = list_records(store)?
        .last()
        .map_or(0, |record| record.number);
    let object = store.read(&record_key(last))?;
    let record = object.and_then(|object| LogRecord::decode(last, &object).ok());
    let log = record.map(|record| record.log);
    let before = read_first_number(store)?;
    let lost = missing.into_iter().find(|witness| {
        let is_same_log = witness
            .log
            .is_some_and(|known| log.is_none_or(|log| log == known));
        is_same_log && witness.number > last && witness.number >= before
    });
    Ok(lost.map(|witness| witness.contradicted_by(ContradictionKind::LostRecords { last })))
}

/// Returns a contradiction between the object of a record and witnesses of its number. A damaged object is none.
fn find_other_record(
    store: &dyn LogStore,
    witnesses: &[LogWitness],
    object: &[u8],
) -> Result<Option<WitnessContradiction>, StoreError> {
    let number = witnesses.first().map_or(0, |witness| witness.number);
    let Ok(record) = LogRecord::decode(number, object) else {
        return Ok(None);
    };
    for witness in witnesses
        .iter()
        .filter(|known| known.log == Some(record.log))
    {
        let Some(known) = witness.digest.filter(|known| *known != record.digest) else {
            continue;
        };
        if store
            .read(&replaced_key(number, &known.to_string()))?
            .is_none()
        {
            let found = record.digest;
            let kind = ContradictionKind::OtherRecord { found };
            return Ok(Some(witness.contradicted_by(kind)));
        }
    }
    Ok(None)
}

/// Reads the witnesses that can be read.
fn read_readable_witnesses(store: &dyn LogStore) -> Result<Vec<LogWitness>, StoreError> {
    let mut witnesses = Vec::new();
    for object in store.list(REPLICA_PREFIX)? {
        let content = store.read(&object.key)?.unwrap_or_default();
        let mark = serde_json::from_slice::<ReplicaMark>(&content);
        witnesses.extend(mark.ok().and_then(LogWitness::of_mark));
    }
    // A damaged manifest makes the list of all snapshots fail.
    match read_snapshot_extents(store) {
        Ok(extents) => witnesses.extend(extents.iter().flat_map(LogWitness::of_snapshot)),
        Err(error) if error.is_retryable => return Err(error),
        Err(_) => {}
    }
    Ok(witnesses)
}

/// Witnesses beside a walk over the records.
pub(super) struct WitnessCheck {
    by_number: BTreeMap<u64, Vec<LogWitness>>,
    contradictions: Vec<WitnessContradiction>,
}

impl WitnessCheck {
    pub(super) fn new(witnesses: Vec<LogWitness>) -> Self {
        let mut by_number = BTreeMap::<u64, Vec<LogWitness>>::new();
        for witness in witnesses {
            by_number.entry(witness.number).or_default().push(witness);
        }
        Self {
            by_number,
            contradictions: Vec::new(),
        }
    }

    /// Compares a record that is whole with the witnesses of its number.
    pub(super) fn note_record(&mut self, number: u64, log: LogId, found: RecordDigest) {
        for witness in self.by_number.get(&number).into_iter().flatten() {
            let is_same_log = witness.log.is_none_or(|expected| expected == log);
            if is_same_log && witness.digest.is_some_and(|digest| digest != found) {
                let kind = ContradictionKind::OtherRecord { found };
                self.contradictions.push(witness.contradicted_by(kind));
            }
        }
    }

    /// Returns the contradictions with a log whose last record is `last`; 0 if there is none.
    pub(super) fn finish(mut self, log: Option<LogId>, last: u64) -> Vec<WitnessContradiction> {
        for witness in self.by_number.values().flatten() {
            let other_log = log.filter(|log| witness.log.is_some_and(|known| known != *log));
            let kind = match other_log {
                Some(found) => ContradictionKind::OtherLog { found },
                None if witness.number > last => ContradictionKind::LostRecords { last },
                None => continue,
            };
            self.contradictions.push(witness.contradicted_by(kind));
        }
        self.contradictions
    }
}

impl ContradictionKind {
    /// Returns the name of the kind in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LostRecords { .. } => "lost_records",
            Self::OtherRecord { .. } => "other_record",
            Self::OtherLog { .. } => "other_log",
        }
    }
}

impl LogWitness {
    /// Returns the prefix of the keys of its objects, or the key of its only one.
    pub fn key(&self) -> String {
        match self.kind {
            WitnessKind::Replica => format!("{REPLICA_PREFIX}{}", self.name),
            WitnessKind::Snapshot => format!("{SNAPSHOT_PREFIX}{}/", self.name),
        }
    }
}

/// A contradiction is `number`, `key` (of the record), `witness`, `name`, `kind` and, as a sentence, `reason`.
impl Serialize for WitnessContradiction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("WitnessContradiction", 6)?;
        fields.serialize_field("number", &self.witness.number)?;
        fields.serialize_field("key", &record_key(self.witness.number))?;
        fields.serialize_field("witness", &self.witness.kind)?;
        fields.serialize_field("name", &self.witness.name)?;
        fields.serialize_field("kind", self.kind.name())?;
        fields.serialize_field("reason", &self.to_string())?;
        fields.end()
    }
}

impl fmt::Display for WitnessContradiction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogWitness {
            kind, name, number, ..
        } = &self.witness;
        let record = describe_record(*number);
        let (subject, knows) = match kind {
            WitnessKind::Replica => (format!("the replica '{name}'"), "has applied"),
            WitnessKind::Snapshot => (format!("the snapshot '{name}'"), "contains"),
        };
        match self.kind {
            ContradictionKind::LostRecords { last: 0 } => write!(
                formatter,
                "the log has no records, but {subject} {knows} {record}: records are lost"
            ),
            ContradictionKind::LostRecords { last } => write!(
                formatter,
                "the log ends with {}, but {subject} {knows} {record}: records are lost",
                describe_record(last)
            ),
            ContradictionKind::OtherRecord { found } => write!(
                formatter,
                "{record} is another one than {subject} {knows}: its digest is {found}"
            ),
            ContradictionKind::OtherLog { found } => write!(
                formatter,
                "{subject} belongs to another log, and this is log {found}: the log is another one than before; if \
                 nobody needs '{}' any more, remove it",
                self.witness.key()
            ),
        }
    }
}
