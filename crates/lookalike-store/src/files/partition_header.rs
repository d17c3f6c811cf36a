//! The description of a partition, which is in its database.

use lookalike::byte_reader::ByteReader;
use lookalike::stream::Timestamp;

use super::file_names::FileNames;

/// Version of a partition that was never compacted.
pub(super) const UNCOMPACTED_VERSION: u32 = 1;

/// Version of a compacted partition.
pub(super) const COMPACTED_VERSION: u32 = 2;

/// Description of a partition, fixed when its files are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartitionHeader {
    /// Checksum of the manifest of its collection.
    pub(crate) seal: u32,
    /// Ascends with time.
    pub(crate) number: u64,
    /// Number of its first row.
    pub(crate) first: u64,
    /// Clock at its beginning.
    pub(crate) began: Timestamp,
    /// Result of its last compaction.
    pub(crate) compacted: Option<CompactionState>,
}

/// State of a compacted partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactionState {
    /// Number of compactions so far.
    pub(crate) generation: u32,
    /// Place of the first record in the file, in units. It lets records written during the compaction keep
    /// their places.
    pub(crate) base: u64,
    /// Deletions and moves before this row were taken into account.
    pub(crate) applied: u64,
    /// Newest time of a document of the partition, erased ones included.
    pub(crate) newest: Timestamp,
}

impl PartitionHeader {
    pub(super) fn encode_header(self) -> Vec<u8> {
        let version = self
            .compacted
            .map_or(UNCOMPACTED_VERSION, |_| COMPACTED_VERSION);
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend(self.seal.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.began.0.to_le_bytes());
        if let Some(compacted) = self.compacted {
            bytes.extend(compacted.generation.to_le_bytes());
            bytes.extend(compacted.base.to_le_bytes());
            bytes.extend(compacted.applied.to_le_bytes());
            bytes.extend(compacted.newest.0.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode_header(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        let mut reader = ByteReader::new(body);
        let right = crc32fast::hash(body) == u32::from_le_bytes(*sum);
        let version = reader.read_u32()?;
        if !right || !matches!(version, UNCOMPACTED_VERSION | COMPACTED_VERSION) {
            return None;
        }
        Some(Self {
            seal: reader.read_u32()?,
            number: reader.read_u64()?,
            first: reader.read_u64()?,
            began: Timestamp(reader.read_i64()?),
            compacted: match version {
                UNCOMPACTED_VERSION => None,
                _ => Some(CompactionState {
                    generation: reader.read_u32()?,
                    base: reader.read_u64()?,
                    applied: reader.read_u64()?,
                    newest: Timestamp(reader.read_i64()?),
                }),
            },
        })
    }

    pub(crate) fn file_names(&self) -> FileNames {
        FileNames {
            number: self.number,
            generation: self.compacted.map_or(0, |compacted| compacted.generation),
        }
    }

    /// Returns the place of the first record, in units.
    pub(crate) fn first_place(&self) -> u64 {
        self.compacted.map_or(0, |compacted| compacted.base)
    }
}
