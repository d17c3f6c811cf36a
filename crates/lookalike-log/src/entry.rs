//! Entries of a record: one change of state each. The log carries their bodies and does not read them.

use std::fmt;

/// Largest size in bytes of the entries of one record, before compression. A reader refuses to decompress more, so that
/// a damaged or hostile object cannot take all memory.
pub const MAX_ENTRIES_BYTES: usize = 256 << 20;

/// Largest size in bytes of the subject of an entry.
pub const MAX_SUBJECT_BYTES: usize = u16::MAX as usize;

/// Bytes of an entry beside its subject and its body: kind 1, length of the subject 2, length of the body 4.
const FIXED_BYTES_PER_ENTRY: usize = 7;

/// Level of the compression of entries.
const ZSTD_LEVEL: i32 = 3;

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Kind of the change.
    pub kind: EntryKind,
    /// Name of the collection or recipe that changes; at most [`MAX_SUBJECT_BYTES`].
    pub subject: String,
    /// The change itself, in the service's own format.
    pub body: Vec<u8>,
}

impl LogEntry {
    /// Returns the size of the entry in a record, in bytes before compression. The sum over the entries of a record is
    /// at most [`MAX_ENTRIES_BYTES`].
    pub fn encoded_bytes(&self) -> usize {
        FIXED_BYTES_PER_ENTRY + self.subject.len() + self.body.len()
    }
}

/// Kind of an entry. Codes are part of the format and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EntryKind {
    /// Documents are checked and inserted.
    Insert = 1,
    /// Documents are deleted.
    Delete = 2,
    /// A collection is created.
    CreateCollection = 3,
    /// A collection is deleted.
    DeleteCollection = 4,
    /// Settings of a collection change.
    ChangeSettings = 5,
    /// Aliases of collections change.
    ChangeAliases = 6,
    /// A recipe is uploaded.
    PutRecipe = 7,
    /// A recipe is deleted.
    DeleteRecipe = 8,
    /// The clock of the replicas advances.
    AdvanceClock = 9,
    /// The replicas compare their states.
    CheckState = 10,
    /// The log begins with a snapshot, which is the subject.
    Begin = 11,
    /// A person decides about two texts.
    Decide = 12,
}

impl EntryKind {
    /// All kinds, by their codes.
    pub const ALL: [Self; 12] = [
        Self::Insert,
        Self::Delete,
        Self::CreateCollection,
        Self::DeleteCollection,
        Self::ChangeSettings,
        Self::ChangeAliases,
        Self::PutRecipe,
        Self::DeleteRecipe,
        Self::AdvanceClock,
        Self::CheckState,
        Self::Begin,
        Self::Decide,
    ];

    /// Returns the code of the kind in a record.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::CreateCollection => "create-collection",
            Self::DeleteCollection => "delete-collection",
            Self::ChangeSettings => "change-settings",
            Self::ChangeAliases => "change-aliases",
            Self::PutRecipe => "put-recipe",
            Self::DeleteRecipe => "delete-recipe",
            Self::AdvanceClock => "advance-clock",
            Self::CheckState => "check-state",
            Self::Begin => "begin",
            Self::Decide => "decide",
        })
    }
}

/// Entries of a record as they are stored.
pub(crate) struct PackedEntries {
    /// Size before compression.
    pub(crate) unpacked_bytes: u32,
    /// A zstd frame.
    pub(crate) packed: Vec<u8>,
}

/// Reason why the entries of a record cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnusableEntries {
    /// A kind that this program does not know.
    UnknownKind(u8),
    /// A contradiction, as a sentence.
    Malformed(String),
}

fn malformed(reason: impl Into<String>) -> UnusableEntries {
    UnusableEntries::Malformed(reason.into())
}

/// Compresses entries.
///
/// # Errors
/// A sentence, if they or a subject are too large.
pub(crate) fn pack_entries(entries: &[LogEntry]) -> Result<PackedEntries, String> {
    let unpacked = encode_entries(entries)?;
    let packed = zstd::bulk::compress(&unpacked, ZSTD_LEVEL)
        .map_err(|cause| format!("the entries of a record cannot be compressed: {cause}"))?;
    Ok(PackedEntries {
        // At most `MAX_ENTRIES_BYTES`.
        unpacked_bytes: unpacked.len() as u32,
        packed,
    })
}

fn encode_entries(entries: &[LogEntry]) -> Result<Vec<u8>, String> {
    let bytes: usize = entries.iter().map(LogEntry::encoded_bytes).sum();
    if bytes > MAX_ENTRIES_BYTES {
        return Err(format!(
            "the entries of a record have {bytes} bytes, and {MAX_ENTRIES_BYTES} is the limit: propose fewer at a time"
        ));
    }
    let mut unpacked = Vec::with_capacity(bytes);
    for entry in entries {
        let subject = u16::try_from(entry.subject.len()).map_err(|_| {
            let length = entry.subject.len();
            format!(
                "the subject of an entry has {length} bytes, and {MAX_SUBJECT_BYTES} is the limit"
            )
        })?;
        unpacked.push(entry.kind.code());
        unpacked.extend_from_slice(&subject.to_le_bytes());
        // At most `MAX_ENTRIES_BYTES`.
        unpacked.extend_from_slice(&(entry.body.len() as u32).to_le_bytes());
        unpacked.extend_from_slice(entry.subject.as_bytes());
        unpacked.extend_from_slice(&entry.body);
    }
    Ok(unpacked)
}

/// Decompresses `count` entries of `unpacked_bytes` bytes.
pub(crate) fn unpack_entries(
    packed: &[u8],
    count: u32,
    unpacked_bytes: u32,
) -> Result<Vec<LogEntry>, UnusableEntries> {
    let expected = unpacked_bytes as usize;
    if expected > MAX_ENTRIES_BYTES {
        return Err(malformed(format!(
            "they have {expected} bytes, and {MAX_ENTRIES_BYTES} is the limit"
        )));
    }
    let unpacked = zstd::bulk::decompress(packed, expected)
        .map_err(|cause| malformed(format!("they cannot be decompressed: {cause}")))?;
    if unpacked.len() != expected {
        let found = unpacked.len();
        return Err(malformed(format!(
            "they have {found} bytes instead of {expected}"
        )));
    }
    decode_entries(&unpacked, count)
}

fn decode_entries(mut rest: &[u8], count: u32) -> Result<Vec<LogEntry>, UnusableEntries> {
    let mut entries = Vec::new();
    for number in 1..=count {
        let entry = decode_entry(&mut rest)
            .ok_or_else(|| malformed(format!("entry {number} of {count} is cut")))?;
        entries.push(entry?);
    }
    if !rest.is_empty() {
        let bytes = rest.len();
        return Err(malformed(format!("{bytes} bytes follow the last entry")));
    }
    Ok(entries)
}

/// Decodes the first entry of `rest`; `None` if it is cut.
fn decode_entry(rest: &mut &[u8]) -> Option<Result<LogEntry, UnusableEntries>> {
    let code = rest.split_off_first()?;
    let subject_bytes = u16::from_le_bytes(*split_array(rest)?);
    let body_bytes = u32::from_le_bytes(*split_array(rest)?);
    let subject = rest.split_off(..usize::from(subject_bytes))?;
    let body = rest.split_off(..body_bytes as usize)?;
    let Some(kind) = EntryKind::from_code(*code) else {
        return Some(Err(UnusableEntries::UnknownKind(*code)));
    };
    let Ok(subject) = std::str::from_utf8(subject) else {
        return Some(Err(malformed("a subject is not UTF-8")));
    };
    Some(Ok(LogEntry {
        kind,
        subject: subject.to_owned(),
        body: body.to_vec(),
    }))
}

/// Splits the first `N` bytes off.
pub(crate) fn split_array<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(first)
}
