//! The ids of a run's documents.

use std::borrow::Cow;
use std::path::Path;

use lookalike::ColumnReservation;
use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

use crate::run::reading::element_count::{put_count, read_count};

/// Longest id in bytes that is kept in memory. Longer ids are read again when they are needed.
const MAX_KEPT_ID_BYTES: usize = 64;

/// The ids of documents in reading order; empty if row numbers are the ids. In memory each takes its bytes and 1.1 more,
/// in a temporary file .13 bytes of memory.
#[derive(Debug, Default)]
pub(in crate::run) struct DocumentIds {
    /// The first ids, if they are in a file. The others follow them.
    spilled: Option<SpilledIds>,
    /// The ids that are kept, one after another.
    bytes: Vec<u8>,
    /// The length of each id, or [`TOO_LONG`] if it is not kept.
    lengths: Vec<u8>,
    /// The start in `bytes` of every [`IDS_PER_START`]th id.
    starts: Vec<u64>,
    /// The index among those in memory and the hash of every id that is not kept.
    long: Vec<(u32, u64)>,
}

/// Ids in a temporary file, by groups of [`IDS_PER_START`]. A group has the length of each id (1 byte), the hash (8) of
/// each that is not kept, and the others.
#[derive(Debug)]
struct SpilledIds {
    file: SpoolFile,
    /// The start of each group.
    groups: Vec<u64>,
}

/// Number of ids in memory from which they are written to the file.
const IDS_PER_WRITE: usize = 64 * IDS_PER_START;

const TOO_LONG: u8 = u8::MAX;

/// Number of ids with one start.
const IDS_PER_START: usize = 64;

impl DocumentIds {
    /// Creates an empty list whose ids go to a temporary file in `directory`, or in that of the system.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(in crate::run) fn in_file(directory: Option<&Path>) -> Result<Self> {
        Ok(Self {
            spilled: Some(SpilledIds {
                file: SpoolFile::create_file(directory)?,
                groups: Vec::new(),
            }),
            ..Self::default()
        })
    }

    /// Adds an id, which stays in memory until others are appended.
    pub(in crate::run) fn push_id(&mut self, id: &str) {
        if id.len() > MAX_KEPT_ID_BYTES {
            let hash = lookalike::value_hash(id.as_bytes());
            self.long.push((self.lengths.len() as u32, hash));
            self.push_length(TOO_LONG, self.bytes.len());
        } else {
            self.push_length(id.len() as u8, self.bytes.len());
            self.bytes.extend_from_slice(id.as_bytes());
        }
    }

    /// Adds the length of an id that starts at `start`.
    fn push_length(&mut self, length: u8, start: usize) {
        if self.lengths.len().is_multiple_of(IDS_PER_START) {
            self.starts.push(start as u64);
        }
        self.lengths.push(length);
    }

    /// Number of ids.
    pub(in crate::run) fn len(&self) -> usize {
        self.spilled_count() + self.lengths.len()
    }

    pub(in crate::run) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn spilled_count(&self) -> usize {
        let spilled = self.spilled.as_ref();
        spilled.map_or(0, |spilled| spilled.groups.len() * IDS_PER_START)
    }

    /// Returns the bytes in the temporary file.
    pub(in crate::run) fn spilled_bytes(&self) -> u64 {
        let spilled = self.spilled.as_ref();
        spilled.map_or(0, |spilled| spilled.file.end_offset())
    }

    /// Returns the bytes of memory.
    pub(in crate::run) fn memory_bytes(&self) -> usize {
        let spilled = self.spilled.as_ref();
        let groups = spilled.map_or(0, |spilled| spilled.groups.len());
        self.bytes.len()
            + self.lengths.len()
            + 8 * (self.starts.len() + groups)
            + 16 * self.long.len()
    }

    pub(in crate::run) fn reserve_ids(&mut self, reserve: ColumnReservation) {
        if self.spilled.is_some() {
            return;
        }
        reserve.extend_column(&mut self.bytes);
        reserve.extend_column(&mut self.lengths);
    }

    /// Adds the ids of `other`, which are in memory.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub(in crate::run) fn append_ids(&mut self, other: &Self) -> Result<()> {
        debug_assert!(other.spilled.is_none());
        let base = self.lengths.len() as u32;
        self.long
            .extend(other.long.iter().map(|&(index, hash)| (base + index, hash)));
        let mut start = self.bytes.len();
        for &length in &other.lengths {
            self.push_length(length, start);
            start += kept_length(length);
        }
        self.bytes.extend_from_slice(&other.bytes);
        if self.lengths.len() >= IDS_PER_WRITE {
            self.spill_groups()?;
        }
        Ok(())
    }

    /// Writes all full groups to the temporary file, if there is one.
    fn spill_groups(&mut self) -> Result<()> {
        let Some(spilled) = &mut self.spilled else {
            return Ok(());
        };
        let groups = self.lengths.len() / IDS_PER_START;
        let mut long = self.long.iter().peekable();
        let (mut written, mut starts) = (Vec::new(), Vec::new());
        for group in 0..groups {
            starts.push(written.len() as u64);
            let first = group * IDS_PER_START;
            written.extend_from_slice(&self.lengths[first..first + IDS_PER_START]);
            let is_before = |index: u32| (index as usize) < first + IDS_PER_START;
            while let Some((_, hash)) = long.next_if(|(index, _)| is_before(*index)) {
                written.extend(hash.to_le_bytes());
            }
            let start = self.starts[group] as usize;
            let end = self.starts.get(group + 1).copied();
            let end = end.map_or(self.bytes.len(), |end| end as usize);
            written.extend_from_slice(&self.bytes[start..end]);
        }
        let base = spilled.file.append_bytes(&written)?;
        spilled
            .groups
            .extend(starts.iter().map(|start| base + start));
        // Fewer than a group remain.
        let (count, long) = (groups * IDS_PER_START, long.copied().collect::<Vec<_>>());
        let start = self.starts.get(groups).copied();
        self.bytes
            .drain(..start.map_or(self.bytes.len(), |start| start as usize));
        self.lengths.drain(..count);
        self.starts = self.starts.get(groups).map(|_| 0).into_iter().collect();
        let left = long.into_iter();
        self.long = left
            .map(|(index, hash)| (index - count as u32, hash))
            .collect();
        Ok(())
    }

    /// Appends the ids: their number (8), the length of each (1), the number of all bytes (8), the bytes, the number of
    /// ids that are not kept (8), and of each the index (4) and the hash (8).
    pub(in crate::run) fn encode_ids(&self, into: &mut Vec<u8>) {
        debug_assert!(self.spilled.is_none());
        put_count(self.lengths.len(), into);
        into.extend_from_slice(&self.lengths);
        put_count(self.bytes.len(), into);
        into.extend_from_slice(&self.bytes);
        put_count(self.long.len(), into);
        for (index, hash) in &self.long {
            into.extend(index.to_le_bytes());
            into.extend(hash.to_le_bytes());
        }
    }

    /// Reads what [`encode_ids`](Self::encode_ids) has written. Returns `None` if the bytes are no ids.
    pub(in crate::run) fn decode_ids(reader: &mut ByteReader<'_>) -> Option<Self> {
        let mut ids = Self::default();
        let count = read_count(reader)?;
        let lengths = reader.read_bytes(count)?;
        let length = read_count(reader)?;
        let bytes = reader.read_bytes(length)?;
        let text = std::str::from_utf8(bytes).ok()?;
        let (mut start, mut long) = (0, Vec::new());
        for (index, &length) in (0u32..).zip(lengths) {
            match length {
                TOO_LONG => long.push(index),
                _ if length as usize > MAX_KEPT_ID_BYTES => return None,
                _ => {}
            }
            if !text.is_char_boundary(start) {
                return None;
            }
            ids.push_length(length, start);
            start += kept_length(length);
        }
        let count = read_count(reader)?;
        for _ in 0..count {
            ids.long.push((reader.read_u32()?, reader.read_u64()?));
        }
        let are_named = ids.long.iter().map(|(index, _)| *index).eq(long);
        ids.bytes = bytes.to_vec();
        (are_named && start == bytes.len()).then_some(ids)
    }

    /// Returns `true` if there are ids for all of these documents, or for none.
    pub(in crate::run) fn fits_documents(&self, documents: usize) -> bool {
        self.is_empty() || self.len() == documents
    }

    /// Returns the id of a document unless it is too long to be kept.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(in crate::run) fn kept_id(&self, index: usize) -> Result<Option<Cow<'_, str>>> {
        if let Some(spilled) = &self.spilled
            && index < self.spilled_count()
        {
            let group = spilled.read_group(index / IDS_PER_START)?;
            let id = group.kept_id(index % IDS_PER_START);
            return Ok(id.map(|id| Cow::Owned(id.to_owned())));
        }
        let index = index - self.spilled_count();
        let group = self.lengths.get(index).map(|_| index / IDS_PER_START);
        let id = group.and_then(|group| self.group_in_memory(group).kept_id(index % IDS_PER_START));
        Ok(id.map(Cow::Borrowed))
    }

    /// Returns a group of the ids in memory.
    fn group_in_memory(&self, group: usize) -> IdGroup<'_> {
        let first = group * IDS_PER_START;
        let end = (first + IDS_PER_START).min(self.lengths.len());
        let long = self
            .long
            .partition_point(|(index, _)| (*index as usize) < first);
        IdGroup {
            lengths: &self.lengths[first..end],
            bytes: &self.bytes[self.starts[group] as usize..],
            hashes: LongHashes::InMemory(&self.long[long..]),
        }
    }

    /// Number of portions for [`visit_portion`](Self::visit_portion).
    pub(in crate::run) fn portion_count(&self) -> usize {
        self.len().div_ceil(IDS_PER_START)
    }

    /// Calls `visit` with the index and the hash of the ids of a portion, in order.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(in crate::run) fn visit_portion(
        &self,
        portion: usize,
        visit: &mut dyn FnMut(usize, u64),
    ) -> Result<()> {
        let first = portion * IDS_PER_START;
        let in_file = self.spilled_count() / IDS_PER_START;
        match &self.spilled {
            Some(spilled) if portion < in_file => {
                spilled.read_group(portion)?.visit_hashes(first, visit);
            }
            _ => {
                let group = self.group_in_memory(portion - in_file);
                group.visit_hashes(first, visit);
            }
        }
        Ok(())
    }

    /// Calls `visit` with the index and the hash of every id, in order.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(in crate::run) fn visit_hashes(&self, mut visit: impl FnMut(usize, u64)) -> Result<()> {
        let mut portions = 0..self.portion_count();
        portions.try_for_each(|portion| self.visit_portion(portion, &mut visit))
    }
}

impl SpilledIds {
    fn read_group(&self, group: usize) -> Result<ReadGroup> {
        let start = self.groups[group];
        let end = self.groups.get(group + 1).copied();
        let end = end.unwrap_or_else(|| self.file.end_offset());
        let mut bytes = vec![0; (end - start) as usize];
        let read = self.file.read_exact_at(&mut bytes, start);
        read.map_err(|cause| {
            Error::read_error(
                "read",
                format_args!("byte {start} of the temporary file of ids"),
                cause,
            )
        })?;
        Ok(ReadGroup(bytes))
    }
}

/// The bytes of a group in the temporary file.
struct ReadGroup(Vec<u8>);

impl ReadGroup {
    fn group(&self) -> IdGroup<'_> {
        let (lengths, rest) = self.0.split_at(IDS_PER_START);
        let long = lengths.iter().filter(|&&length| length == TOO_LONG).count();
        let (hashes, bytes) = rest.split_at(size_of::<u64>() * long);
        IdGroup {
            lengths,
            bytes,
            hashes: LongHashes::InFile(hashes),
        }
    }

    fn kept_id(&self, at: usize) -> Option<&str> {
        self.group().kept_id(at)
    }

    fn visit_hashes(&self, first: usize, visit: &mut dyn FnMut(usize, u64)) {
        self.group().visit_hashes(first, visit);
    }
}

/// The ids of a group.
struct IdGroup<'a> {
    lengths: &'a [u8],
    /// The ids that are kept. Those of other groups may follow.
    bytes: &'a [u8],
    hashes: LongHashes<'a>,
}

/// The hashes of the ids that are not kept, in order. Those of other groups may follow.
#[derive(Clone, Copy)]
enum LongHashes<'a> {
    InMemory(&'a [(u32, u64)]),
    InFile(&'a [u8]),
}

impl LongHashes<'_> {
    fn hash_at(self, at: usize) -> u64 {
        match self {
            Self::InMemory(hashes) => hashes.get(at).map_or(0, |&(_, hash)| hash),
            Self::InFile(hashes) => {
                let (hashes, _) = hashes.as_chunks();
                hashes.get(at).map_or(0, |&hash| u64::from_le_bytes(hash))
            }
        }
    }
}

impl<'a> IdGroup<'a> {
    fn kept_id(&self, at: usize) -> Option<&'a str> {
        let length = self.lengths[at];
        if length == TOO_LONG {
            return None;
        }
        let before = self.lengths[..at].iter();
        let start: usize = before.map(|&length| kept_length(length)).sum();
        let bytes = &self.bytes[start..start + length as usize];
        Some(std::str::from_utf8(bytes).expect("ids were pushed as strings"))
    }

    /// Calls `visit` with the index and the hash of every id. `first` is the index of the first one.
    fn visit_hashes(&self, first: usize, visit: &mut dyn FnMut(usize, u64)) {
        let (mut start, mut long) = (0, 0);
        for (index, &length) in (first..).zip(self.lengths) {
            let end = start + kept_length(length);
            let hash = if length == TOO_LONG {
                long += 1;
                self.hashes.hash_at(long - 1)
            } else {
                lookalike::value_hash(&self.bytes[start..end])
            };
            visit(index, hash);
            start = end;
        }
    }
}

/// Returns the number of bytes of an id that are kept.
fn kept_length(length: u8) -> usize {
    match length {
        TOO_LONG => 0,
        length => length.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of all lengths around the limits, some not of ASCII.
    fn made_ids() -> Vec<String> {
        (0..10_000)
            .map(|at| match at % 7 {
                0 => "x".repeat(MAX_KEPT_ID_BYTES + at % 3 - 1),
                1 => String::new(),
                2 => "é".repeat(at % 33),
                _ => format!("id-{at}"),
            })
            .collect()
    }

    #[test]
    fn ids_are_read_as_they_were_pushed() {
        let given_ids = made_ids();
        let (mut ids, mut part) = (DocumentIds::default(), DocumentIds::default());
        let mut spilled = DocumentIds::in_file(None).unwrap();
        for (at, id) in given_ids.iter().enumerate() {
            part.push_id(id);
            if at % 37 == 0 {
                let part = std::mem::take(&mut part);
                ids.append_ids(&part).unwrap();
                spilled.append_ids(&part).unwrap();
            }
        }
        ids.append_ids(&part).unwrap();
        spilled.append_ids(&part).unwrap();
        let mut bytes = Vec::new();
        ids.encode_ids(&mut bytes);
        let mut reader = ByteReader::new(&bytes);
        let decoded = DocumentIds::decode_ids(&mut reader).unwrap();
        assert!(reader.is_at_end());
        // All but the ids since the last write, of which fewer than two groups are left of a write.
        assert!(spilled.spilled_count() >= given_ids.len() - IDS_PER_WRITE);
        assert!(spilled.memory_bytes() < ids.memory_bytes() / 2);
        for ids in [&ids, &decoded, &spilled] {
            assert_eq!(ids.len(), given_ids.len());
            for (at, id) in given_ids.iter().enumerate() {
                let kept_id = Some(id.as_str()).filter(|id| id.len() <= MAX_KEPT_ID_BYTES);
                assert_eq!(ids.kept_id(at).unwrap().as_deref(), kept_id, "{at}");
            }
            let mut hashes = Vec::new();
            let visited = ids.visit_hashes(|at, hash| hashes.push((at, hash)));
            visited.unwrap();
            let expected = given_ids.iter().enumerate();
            let expected = expected.map(|(at, id)| (at, lookalike::value_hash(id.as_bytes())));
            assert!(expected.eq(hashes));
        }
        for length in (0..bytes.len()).step_by(101) {
            assert!(DocumentIds::decode_ids(&mut ByteReader::new(&bytes[..length])).is_none());
        }
    }
}
