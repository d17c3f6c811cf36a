//! The ids of a run's documents.

use lookalike::ColumnReservation;
use lookalike::byte_reader::ByteReader;

use crate::run::reading::element_count::{put_count, read_count};

/// Longest id in bytes that is kept in memory. Longer ids are read again when they are needed.
const MAX_KEPT_ID_BYTES: usize = 64;

/// The ids of documents in reading order; empty if row numbers are the ids. Each takes its bytes and 1.1 more.
#[derive(Debug, Default)]
pub(in crate::run) struct DocumentIds {
    /// The ids that are kept, one after another.
    bytes: Vec<u8>,
    /// The length of each id, or [`TOO_LONG`] if it is not kept.
    lengths: Vec<u8>,
    /// The start in `bytes` of every [`IDS_PER_START`]th id.
    pub(in crate::run) starts: Vec<u64>,
    /// The index and the hash of every id that is not kept.
    long: Vec<(u32, u64)>,
}

const TOO_LONG: u8 = u8::MAX;

/// Number of ids with one start.
const IDS_PER_START: usize = 64;

impl DocumentIds {
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
        self.lengths.len()
    }

    pub(in crate::run) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the bytes of memory.
    pub(in crate::run) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.lengths.len() + 8 * self.starts.len() + 16 * self.long.len()
    }

    pub(in crate::run) fn reserve_ids(&mut self, reserve: ColumnReservation) {
        reserve.extend_column(&mut self.bytes);
        reserve.extend_column(&mut self.lengths);
    }

    pub(in crate::run) fn append_ids(&mut self, other: &Self) {
        let base = self.lengths.len() as u32;
        self.long
            .extend(other.long.iter().map(|&(index, hash)| (base + index, hash)));
        let mut start = self.bytes.len();
        for &length in &other.lengths {
            self.push_length(length, start);
            start += kept_length(length);
        }
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Appends the ids: their number (8), the length of each (1), the number of all bytes (8), the bytes, the number of
    /// ids that are not kept (8), and of each the index (4) and the hash (8).
    pub(in crate::run) fn encode_ids(&self, into: &mut Vec<u8>) {
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

    /// Returns the id of a document if it is in memory.
    pub(in crate::run) fn kept_id(&self, index: usize) -> Option<&str> {
        let length = *self.lengths.get(index)?;
        if length == TOO_LONG {
            return None;
        }
        let first = index / IDS_PER_START * IDS_PER_START;
        let before = self.lengths[first..index].iter();
        let before: usize = before.map(|&length| kept_length(length)).sum();
        let start = self.starts[index / IDS_PER_START] as usize + before;
        let bytes = &self.bytes[start..start + length as usize];
        Some(std::str::from_utf8(bytes).expect("ids were pushed as strings"))
    }

    /// Calls `visit` with the index and the hash of the ids of a portion, in order.
    pub(in crate::run) fn visit_portion(&self, portion: usize, visit: &mut dyn FnMut(usize, u64)) {
        let first = portion * IDS_PER_START;
        let end = (first + IDS_PER_START).min(self.len());
        let mut start = self.starts[portion] as usize;
        let long = self
            .long
            .partition_point(|(index, _)| (*index as usize) < first);
        let mut long = self.long[long..].iter();
        for (index, &length) in (first..end).zip(&self.lengths[first..end]) {
            let end = start + kept_length(length);
            let hash = match length {
                TOO_LONG => long.next().map_or(0, |&(_, hash)| hash),
                _ => lookalike::value_hash(&self.bytes[start..end]),
            };
            visit(index, hash);
            start = end;
        }
    }

    /// Calls `visit` with the index and the hash of every id, in order.
    pub(in crate::run) fn visit_hashes(&self, mut visit: impl FnMut(usize, u64)) {
        (0..self.starts.len()).for_each(|portion| self.visit_portion(portion, &mut visit));
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
        (0..1000)
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
        for (at, id) in given_ids.iter().enumerate() {
            part.push_id(id);
            if at % 37 == 0 {
                ids.append_ids(&std::mem::take(&mut part));
            }
        }
        ids.append_ids(&part);
        let mut bytes = Vec::new();
        ids.encode_ids(&mut bytes);
        let mut reader = ByteReader::new(&bytes);
        let decoded = DocumentIds::decode_ids(&mut reader).unwrap();
        assert!(reader.is_at_end());
        for ids in [&ids, &decoded] {
            assert_eq!(ids.len(), given_ids.len());
            for (at, id) in given_ids.iter().enumerate() {
                let kept_id = Some(id.as_str()).filter(|id| id.len() <= MAX_KEPT_ID_BYTES);
                assert_eq!(ids.kept_id(at), kept_id, "{at}");
            }
            let mut hashes = Vec::new();
            ids.visit_hashes(|at, hash| hashes.push((at, hash)));
            let expected = given_ids.iter().enumerate();
            let expected = expected.map(|(at, id)| (at, lookalike::value_hash(id.as_bytes())));
            assert!(expected.eq(hashes));
        }
        for length in 0..bytes.len() {
            assert!(DocumentIds::decode_ids(&mut ByteReader::new(&bytes[..length])).is_none());
        }
    }
}
