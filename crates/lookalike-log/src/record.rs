//! Records of a shared log and their layout.
//!
//! All numbers are little-endian. `LAlg`, the format version after it and the checksum at the end keep their places in
//! every later version, so that a newer record is told from a damaged one.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | `LAlg` |
//! | 4 | format version, 1 |
//! | 16 | log id: random, chosen by the writer of record 1, the same in every record |
//! | 8 | number of the record, from 1 |
//! | 8 | time in microseconds since 1970, never before that of the record before |
//! | 16 | nonce: random, by which a writer knows its own record |
//! | 32 | SHA-256 of the whole object of the record before; zeros in record 1 |
//! | 2, n | name of the writer: length, UTF-8 |
//! | 4 | number of entries |
//! | 4 | bytes of the entries before compression, at most 256 MiB |
//! | 4, n | entries: length, zstd frame |
//! | 32 | SHA-256 of everything before it |
//!
//! An entry is its kind (1), the length of its subject (2), the length of its body (4), subject and body.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::{
    LogEntry, MAX_ENTRIES_BYTES, UnusableEntries, pack_entries, split_array, unpack_entries,
};
use crate::error::{DamageKind, LogError, NewerFeature};
use crate::store::StoreError;

/// Newest version of the record format that this program reads, and the one that it writes.
pub const FORMAT_VERSION: u32 = 1;

/// Largest size of the object of a record: that of its entries, and room for the header, the writer and a frame of bytes
/// that do not become smaller.
pub const MAX_RECORD_BYTES: usize = MAX_ENTRIES_BYTES + (4 << 20);

const RECORD_MAGIC: [u8; 4] = *b"LAlg";

/// Bytes of magic, version, log, number, time, nonce and digest.
const HEADER_BYTES: usize = 4 + 4 + 16 + 8 + 8 + 16 + 32;

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 32;

/// Bytes of a record with an empty writer and an empty frame.
const LEAST_RECORD_BYTES: usize = HEADER_BYTES + 2 + 4 + 4 + 4 + CHECKSUM_BYTES;

/// Returns the format version of an object that begins like a record.
pub(crate) fn object_version(object: &[u8]) -> Option<u32> {
    let mut rest = object.strip_prefix(&RECORD_MAGIC)?;
    split_array(&mut rest).map(|version| u32::from_le_bytes(*version))
}

/// Identity of a log, 128 random bits. It is written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogId(pub u128);

/// SHA-256 of the whole object of a record. It is written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordDigest(pub [u8; 32]);

/// A record that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the record, from 1.
    pub number: u64,
    /// Log of the record.
    pub log: LogId,
    /// Time in microseconds since 1970, at least that of the record before.
    pub time_us: i64,
    /// Name of the replica that wrote the record.
    pub writer: String,
    /// Random number of the writer.
    pub nonce: u128,
    /// Digest of the record before; zeros for record 1.
    pub previous: RecordDigest,
    /// Digest of this record.
    pub digest: RecordDigest,
    /// Entries in their order.
    pub entries: Vec<LogEntry>,
}

/// Place after the last record that was read. The beginning of a log is the default: number 1, zero digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogTail {
    /// Log that is read; `None` before its first record.
    pub log: Option<LogId>,
    /// Number of the next record.
    pub next: u64,
    /// Digest of the last record.
    pub digest: RecordDigest,
    /// Time of the last record, in microseconds since 1970.
    pub time_us: i64,
}

/// Header of a record: all but its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) number: u64,
    pub(crate) log: LogId,
    pub(crate) time_us: i64,
    pub(crate) nonce: u128,
    pub(crate) previous: RecordDigest,
    pub(crate) writer: String,
}

impl RecordDigest {
    /// Digest before the first record.
    pub const ZERO: Self = Self([0; 32]);

    /// Returns the digest of an object.
    pub fn compute(object: &[u8]) -> Self {
        Self(Sha256::digest(object).into())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl fmt::Display for RecordDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl From<LogId> for String {
    fn from(log: LogId) -> Self {
        log.to_string()
    }
}

impl From<RecordDigest> for String {
    fn from(digest: RecordDigest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for LogId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let id = u128::from_str_radix(&text, 16).map(Self).ok();
        id.filter(|id| id.to_string() == text)
            .ok_or_else(|| format!("'{text}' is not the id of a log: it has 32 hexadecimal digits"))
    }
}

impl TryFrom<String> for RecordDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut digest = Self::ZERO;
        for (byte, at) in digest.0.iter_mut().zip((0..).step_by(2)) {
            let digits = text.get(at..at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        if digest.to_string() == text {
            return Ok(digest);
        }
        Err(format!(
            "'{text}' is not the digest of a record: it has 64 hexadecimal digits"
        ))
    }
}

impl Default for LogTail {
    fn default() -> Self {
        Self {
            log: None,
            next: 1,
            digest: RecordDigest::ZERO,
            time_us: 0,
        }
    }
}

impl LogRecord {
    /// Returns the place after this record.
    pub fn tail(&self) -> LogTail {
        LogTail {
            log: Some(self.log),
            next: self.number + 1,
            digest: self.digest,
            time_us: self.time_us,
        }
    }

    /// Decodes an object and checks it by itself, not its place in a log.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if the object is not the complete record `number`, [`LogError::NewerVersion`] if a newer
    /// program wrote it.
    pub fn decode(number: u64, object: &[u8]) -> Result<Self, LogError> {
        let damaged = |kind| LogError::damaged(number, kind);
        check_object(object).map_err(damaged)?;
        let version = object_version(object).expect("a complete record has a version");
        if version > FORMAT_VERSION {
            let feature = NewerFeature::Format(version);
            return Err(LogError::NewerVersion { number, feature });
        }
        let malformed = |reason: &str| {
            damaged(DamageKind::MalformedEntries {
                reason: reason.to_owned(),
            })
        };
        if version == 0 {
            return Err(malformed("the format version is 0"));
        }
        let body = &object[8..object.len() - CHECKSUM_BYTES];
        let (header, mut rest) =
            decode_header(body).ok_or_else(|| malformed("the header is cut or not UTF-8"))?;
        if header.number != number {
            let found = header.number;
            return Err(damaged(DamageKind::WrongNumber { found }));
        }
        let sizes = decode_sizes(&mut rest).ok_or_else(|| malformed("the header is cut"))?;
        if rest.len() != sizes.packed_bytes as usize {
            return Err(malformed("the size of the frame contradicts the object's"));
        }
        let entries = unpack_entries(rest, sizes.entries, sizes.unpacked_bytes);
        let entries = entries.map_err(|reason| match reason {
            UnusableEntries::Malformed(reason) => malformed(&reason),
            UnusableEntries::UnknownKind(code) => LogError::NewerVersion {
                number,
                feature: NewerFeature::EntryKind(code),
            },
        })?;
        Ok(header.with_entries(entries, RecordDigest::compute(object)))
    }

    /// Decodes the object at the place `tail`, and checks that it follows the records before.
    ///
    /// # Errors
    /// As [`LogRecord::decode`]; also if the record is of another log, does not follow the record before or is older
    /// than that.
    pub fn decode_after(tail: &LogTail, object: &[u8]) -> Result<Self, LogError> {
        let record = Self::decode(tail.next, object)?;
        record.check_place(tail)?;
        Ok(record)
    }

    /// Checks that the record follows the records before the place `tail`.
    pub(crate) fn check_place(&self, tail: &LogTail) -> Result<(), LogError> {
        match find_chain_damage(tail, self) {
            Some(kind) => Err(LogError::damaged(tail.next, kind)),
            None => Ok(()),
        }
    }
}

/// Returns the reason why a record does not belong at the place `tail`.
fn find_chain_damage(tail: &LogTail, record: &LogRecord) -> Option<DamageKind> {
    if let Some(expected) = tail.log.filter(|log| *log != record.log) {
        let found = record.log;
        return Some(DamageKind::ForeignLog { found, expected });
    }
    if record.previous != tail.digest {
        let (found, expected) = (record.previous, tail.digest);
        return Some(DamageKind::BrokenChain { found, expected });
    }
    if record.time_us < tail.time_us {
        let (found, previous) = (record.time_us, tail.time_us);
        return Some(DamageKind::TimeGoesBack { found, previous });
    }
    None
}

impl RecordHeader {
    pub(crate) fn with_entries(self, entries: Vec<LogEntry>, digest: RecordDigest) -> LogRecord {
        LogRecord {
            number: self.number,
            log: self.log,
            time_us: self.time_us,
            writer: self.writer,
            nonce: self.nonce,
            previous: self.previous,
            digest,
            entries,
        }
    }
}

/// Encodes a record.
///
/// # Errors
/// [`LogError::Store`] with a permanent error, if the entries are too large.
pub(crate) fn encode_record(
    header: &RecordHeader,
    entries: &[LogEntry],
) -> Result<Vec<u8>, LogError> {
    let refused = |reason: String| LogError::Store(StoreError::permanent(reason));
    let packed = pack_entries(entries).map_err(refused)?;
    let writer = u16::try_from(header.writer.len())
        .map_err(|_| refused("the name of the writer is longer than 65,535 bytes".to_owned()))?;
    let mut object =
        Vec::with_capacity(LEAST_RECORD_BYTES + header.writer.len() + packed.packed.len());
    object.extend_from_slice(&RECORD_MAGIC);
    object.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    object.extend_from_slice(&header.log.0.to_le_bytes());
    object.extend_from_slice(&header.number.to_le_bytes());
    object.extend_from_slice(&header.time_us.to_le_bytes());
    object.extend_from_slice(&header.nonce.to_le_bytes());
    object.extend_from_slice(&header.previous.0);
    object.extend_from_slice(&writer.to_le_bytes());
    object.extend_from_slice(header.writer.as_bytes());
    // An entry has at least 7 of at most `MAX_ENTRIES_BYTES`.
    object.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    object.extend_from_slice(&packed.unpacked_bytes.to_le_bytes());
    // A frame is hardly larger than its content.
    object.extend_from_slice(&(packed.packed.len() as u32).to_le_bytes());
    object.extend_from_slice(&packed.packed);
    let checksum = Sha256::digest(&object);
    object.extend_from_slice(&checksum);
    Ok(object)
}

/// Checks that an object is a complete record with the right checksum, of any version.
fn check_object(object: &[u8]) -> Result<(), DamageKind> {
    let begins = object
        .iter()
        .zip(&RECORD_MAGIC)
        .all(|(found, expected)| found == expected);
    if !begins {
        return Err(DamageKind::NotARecord);
    }
    let bytes = object.len() as u64;
    if object.len() < LEAST_RECORD_BYTES {
        let expected = LEAST_RECORD_BYTES as u64;
        return Err(DamageKind::Truncated { bytes, expected });
    }
    let (content, checksum) = object.split_at(object.len() - CHECKSUM_BYTES);
    if Sha256::digest(content).as_slice() == checksum {
        return Ok(());
    }
    match expected_bytes(object).filter(|expected| *expected > bytes) {
        Some(expected) => Err(DamageKind::Truncated { bytes, expected }),
        None => Err(DamageKind::Checksum),
    }
}

/// Returns the size of a record as its header states it; `None` if the header of version 1 is not whole.
fn expected_bytes(object: &[u8]) -> Option<u64> {
    if object[4..8] != FORMAT_VERSION.to_le_bytes() {
        return None;
    }
    let (header, mut rest) = decode_header(&object[8..])?;
    let sizes = decode_sizes(&mut rest)?;
    let fixed = LEAST_RECORD_BYTES + header.writer.len();
    Some(fixed as u64 + u64::from(sizes.packed_bytes))
}

/// Decodes the header, from the log id to the writer. Returns the bytes after it too.
fn decode_header(mut rest: &[u8]) -> Option<(RecordHeader, &[u8])> {
    let log = LogId(u128::from_le_bytes(*split_array(&mut rest)?));
    let number = u64::from_le_bytes(*split_array(&mut rest)?);
    let time_us = i64::from_le_bytes(*split_array(&mut rest)?);
    let nonce = u128::from_le_bytes(*split_array(&mut rest)?);
    let previous = RecordDigest(*split_array(&mut rest)?);
    let writer_bytes = u16::from_le_bytes(*split_array(&mut rest)?);
    let writer = rest.split_off(..usize::from(writer_bytes))?;
    let header = RecordHeader {
        number,
        log,
        time_us,
        nonce,
        previous,
        writer: std::str::from_utf8(writer).ok()?.to_owned(),
    };
    Some((header, rest))
}

/// Sizes of the entries of a record.
struct EntrySizes {
    entries: u32,
    unpacked_bytes: u32,
    packed_bytes: u32,
}

fn decode_sizes(rest: &mut &[u8]) -> Option<EntrySizes> {
    Some(EntrySizes {
        entries: u32::from_le_bytes(*split_array(rest)?),
        unpacked_bytes: u32::from_le_bytes(*split_array(rest)?),
        packed_bytes: u32::from_le_bytes(*split_array(rest)?),
    })
}
