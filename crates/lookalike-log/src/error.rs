//! Errors of a shared log: a store that does not answer, a damaged log, and records of a newer program.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::keys::{describe_record, record_key};
use crate::record::{FORMAT_VERSION, LogId, RecordDigest};
use crate::store::StoreError;

/// An error of a shared log. Its text names the object and the value, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// A request failed. If an append was under way, its outcome may be unknown
    /// ([`has_pending_append`](crate::SharedLog::has_pending_append)).
    Store(StoreError),
    /// The log was damaged, cut or rewritten: nothing more may be applied or acknowledged.
    Damaged(LogDamage),
    /// A record was written by a newer program: this replica must be upgraded.
    NewerVersion {
        /// Number of the record.
        number: u64,
        /// Feature of the record that this program does not know.
        feature: NewerFeature,
    },
}

/// Feature of a record that this program does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewerFeature {
    /// A version of the record format.
    Format(u32),
    /// A code of an entry's kind.
    EntryKind(u8),
}

/// Damage of one object of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Number that the key of the object names.
    pub number: u64,
    /// Kind of the damage.
    pub kind: DamageKind,
}

/// Kind of a damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The object ends before its record does.
    Truncated {
        /// Size of the object in bytes.
        bytes: u64,
        /// Size in bytes that the record states, or the smallest size of a record.
        expected: u64,
    },
    /// The object is no record at all: it does not begin like one.
    NotARecord,
    /// The bytes of the object differ from its checksum.
    Checksum,
    /// The object is a record with another number, for example a copy of an earlier one.
    WrongNumber {
        /// Number that the record states.
        found: u64,
    },
    /// The object is a record of another log.
    ForeignLog {
        /// Log that the record states.
        found: LogId,
        /// Log that is read.
        expected: LogId,
    },
    /// The record does not follow the record before it: one of the two was replaced.
    BrokenChain {
        /// Digest of the record before, as this record states it.
        found: RecordDigest,
        /// Digest of the record before, as it was read.
        expected: RecordDigest,
    },
    /// The object is a record, but another one than this replica has read or written.
    Replaced {
        /// Digest of the object.
        found: RecordDigest,
        /// Digest of the record that the replica knows.
        expected: RecordDigest,
    },
    /// The object does not exist, but the log went beyond it.
    Missing,
    /// The object does not exist any more, although this replica has read or written it.
    Lost,
    /// The object was removed by a pruning before this replica had read what follows it.
    Pruned {
        /// Number of the first record that must exist.
        before: u64,
    },
    /// The time of the record is before that of the record before it.
    TimeGoesBack {
        /// Time of the record, in microseconds since 1970.
        found: i64,
        /// Time of the record before, in microseconds since 1970.
        previous: i64,
    },
    /// The record is complete, but its contents contradict the format.
    MalformedEntries {
        /// Sentence that names the contradiction.
        reason: String,
    },
}

impl LogError {
    /// Returns `true` if the same call may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable)
    }

    /// Returns `true` if nothing more may be read or appended.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Store(_))
    }

    pub(crate) fn damaged(number: u64, kind: DamageKind) -> Self {
        Self::Damaged(LogDamage { number, kind })
    }
}

impl DamageKind {
    /// Returns the name of the kind in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::NotARecord => "not_a_record",
            Self::Checksum => "checksum",
            Self::WrongNumber { .. } => "wrong_number",
            Self::ForeignLog { .. } => "foreign_log",
            Self::BrokenChain { .. } => "broken_chain",
            Self::Replaced { .. } => "replaced",
            Self::Missing => "missing",
            Self::Lost => "lost",
            Self::Pruned { .. } => "pruned",
            Self::TimeGoesBack { .. } => "time_goes_back",
            Self::MalformedEntries { .. } => "malformed_entries",
        }
    }
}

/// A damage is `number`, `key`, `kind` and, as a sentence, `reason`.
impl Serialize for LogDamage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LogDamage", 4)?;
        fields.serialize_field("number", &self.number)?;
        fields.serialize_field("key", &record_key(self.number))?;
        fields.serialize_field("kind", self.kind.name())?;
        fields.serialize_field("reason", &self.kind.to_string())?;
        fields.end()
    }
}

/// A feature is the sentence that names it.
impl Serialize for NewerFeature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<StoreError> for LogError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(formatter),
            Self::Damaged(damage) => damage.fmt(formatter),
            Self::NewerVersion { number, feature } => {
                let record = describe_record(*number);
                write!(formatter, "{record} has {feature}: upgrade this replica")
            }
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Damaged(_) | Self::NewerVersion { .. } => None,
        }
    }
}

impl fmt::Display for NewerFeature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(version) => write!(
                formatter,
                "format version {version}, and {FORMAT_VERSION} is the newest that this program reads"
            ),
            Self::EntryKind(code) => write!(
                formatter,
                "an entry of kind {code}, which this program does not know"
            ),
        }
    }
}

/// The text of a damage says what to do: it is that of a replica that stops.
impl fmt::Display for LogDamage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (record, kind) = (describe_record(self.number), &self.kind);
        match kind {
            DamageKind::ForeignLog { .. } => write!(
                formatter,
                "the log is another one than before: {record}: {kind}; correct the URL, or start with an empty data \
                 directory; if only some objects are of another log, 'lookalike store log verify URL' lists them"
            ),
            DamageKind::Pruned { .. } => write!(
                formatter,
                "the shared log does not reach back to this replica: {record}: {kind}; start this replica with an empty \
                 data directory"
            ),
            DamageKind::Lost => write!(
                formatter,
                "the shared log has lost records: {record}: {kind}; run 'lookalike store log verify URL' with the URL of \
                 the log, stop all replicas, and write the records back from the data directory of the replica that has \
                 applied most, with 'lookalike store log repair URL --from DIR'"
            ),
            _ => write!(
                formatter,
                "the shared log is damaged at {record}: {kind}; run 'lookalike store log verify URL' with the URL of the \
                 log, and repair it from the copies of a replica with 'lookalike store log repair'"
            ),
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes, expected } => write!(
                formatter,
                "it is truncated to {bytes} bytes, and its record has at least {expected}"
            ),
            Self::NotARecord => {
                formatter.write_str("it is not a record: it does not begin with 'LAlg'")
            }
            Self::Checksum => formatter.write_str("its bytes differ from its checksum"),
            Self::WrongNumber { found } => {
                write!(formatter, "it is the record number {found}, which belongs elsewhere")
            }
            Self::ForeignLog { found, expected } => {
                write!(formatter, "it belongs to log {found}, and the log that is followed is {expected}")
            }
            Self::BrokenChain { found, expected } => write!(
                formatter,
                "it follows a record with digest {found}, and the record before it has digest {expected}, so one of \
                 the two was replaced"
            ),
            Self::Replaced { found, expected } => write!(
                formatter,
                "its digest is {found}, and this replica has read it with digest {expected}, so it was replaced"
            ),
            Self::Missing => formatter.write_str("it is missing, and later records exist"),
            Self::Lost => formatter.write_str(
                "it is missing, although this replica has read or written it: the store has lost it, and perhaps records \
                 before it",
            ),
            Self::Pruned { before } => write!(
                formatter,
                "it was removed before this replica had read what follows it: the first record is {before} now"
            ),
            Self::TimeGoesBack { found, previous } => write!(
                formatter,
                "its time is {found} µs since 1970, and the record before it has {previous}"
            ),
            Self::MalformedEntries { reason } => {
                write!(formatter, "its entries are malformed: {reason}")
            }
        }
    }
}
