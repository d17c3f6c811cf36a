//! The ids of a run's documents.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::ColumnReservation;
use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{IdField, InputSet};
use rayon::prelude::*;

use super::documents::ReadDocuments;
use super::documents::block_codec::{put_count, read_count};
use super::settings::RunSettings;

/// Longest id in bytes that is kept in memory. Longer ids are read again when they are needed.
const HELD: usize = 64;

/// The ids of documents in reading order; empty if row numbers are the ids. Each takes its bytes and 1.1 more.
#[derive(Debug, Default)]
pub(super) struct DocumentIds {
    /// The ids that are kept, one after another.
    bytes: Vec<u8>,
    /// The length of each id, or [`TOO_LONG`] if it is not kept.
    lengths: Vec<u8>,
    /// The start in `bytes` of every [`PORTION`]th id.
    starts: Vec<u64>,
    /// The index and the hash of every id that is not kept.
    long: Vec<(u32, u64)>,
}

const TOO_LONG: u8 = u8::MAX;

/// Number of ids with one start.
const PORTION: usize = 64;

impl DocumentIds {
    pub(super) fn push_id(&mut self, id: &str) {
        if id.len() > HELD {
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
        if self.lengths.len().is_multiple_of(PORTION) {
            self.starts.push(start as u64);
        }
        self.lengths.push(length);
    }

    /// Number of ids.
    fn len(&self) -> usize {
        self.lengths.len()
    }

    fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.lengths.len() + 8 * self.starts.len() + 16 * self.long.len()
    }

    pub(super) fn reserve_ids(&mut self, reserve: ColumnReservation) {
        reserve.extend_column(&mut self.bytes);
        reserve.extend_column(&mut self.lengths);
    }

    pub(super) fn append_ids(&mut self, other: &Self) {
        let base = self.lengths.len() as u32;
        self.long
            .extend(other.long.iter().map(|&(index, hash)| (base + index, hash)));
        let mut start = self.bytes.len();
        for &length in &other.lengths {
            self.push_length(length, start);
            start += held_length(length);
        }
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Appends the ids: their number (8), the length of each (1), the number of all bytes (8), the bytes, the number of
    /// ids that are not kept (8), and of each the index (4) and the hash (8).
    pub(super) fn encode_ids(&self, into: &mut Vec<u8>) {
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
    pub(super) fn decode_ids(reader: &mut ByteReader<'_>) -> Option<Self> {
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
                _ if length as usize > HELD => return None,
                _ => {}
            }
            if !text.is_char_boundary(start) {
                return None;
            }
            ids.push_length(length, start);
            start += held_length(length);
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
    pub(super) fn fits_documents(&self, documents: usize) -> bool {
        self.is_empty() || self.len() == documents
    }

    /// Returns the id of a document if it is in memory.
    fn held_id(&self, index: usize) -> Option<&str> {
        let length = *self.lengths.get(index)?;
        if length == TOO_LONG {
            return None;
        }
        let first = index / PORTION * PORTION;
        let before = self.lengths[first..index].iter();
        let before: usize = before.map(|&length| held_length(length)).sum();
        let start = self.starts[index / PORTION] as usize + before;
        let bytes = &self.bytes[start..start + length as usize];
        Some(std::str::from_utf8(bytes).expect("ids were pushed as strings"))
    }

    /// Calls `visit` with the index and the hash of the ids of a portion, in order.
    fn visit_portion(&self, portion: usize, visit: &mut dyn FnMut(usize, u64)) {
        let first = portion * PORTION;
        let end = (first + PORTION).min(self.len());
        let mut start = self.starts[portion] as usize;
        let long = self
            .long
            .partition_point(|(index, _)| (*index as usize) < first);
        let mut long = self.long[long..].iter();
        for (index, &length) in (first..end).zip(&self.lengths[first..end]) {
            let end = start + held_length(length);
            let hash = match length {
                TOO_LONG => long.next().map_or(0, |&(_, hash)| hash),
                _ => lookalike::value_hash(&self.bytes[start..end]),
            };
            visit(index, hash);
            start = end;
        }
    }

    /// Calls `visit` with the index and the hash of every id, in order.
    fn visit_hashes(&self, mut visit: impl FnMut(usize, u64)) {
        (0..self.starts.len()).for_each(|portion| self.visit_portion(portion, &mut visit));
    }
}

/// Returns the number of bytes of an id that are kept.
fn held_length(length: u8) -> usize {
    match length {
        TOO_LONG => 0,
        length => length.into(),
    }
}

/// Returns how many documents have the id of a known document; if neither have ids, the same number.
pub(super) fn count_shared_ids(known: &ReadDocuments, documents: &ReadDocuments) -> u64 {
    let (ids, others) = (&known.ids, &documents.ids);
    let shared = match (ids.is_empty(), others.is_empty()) {
        (true, true) => {
            let numbers = 0..documents.len();
            let has = |&at: &usize| known.index_of_row(documents.row_number(at)).is_some();
            numbers.filter(has).count()
        }
        (false, false) => {
            let mut hashes = Vec::with_capacity(ids.len());
            ids.visit_hashes(|_, hash| hashes.push(hash));
            hashes.sort_unstable();
            let mut shared = 0;
            others.visit_hashes(|_, hash| {
                shared += usize::from(hashes.binary_search(&hash).is_ok());
            });
            shared
        }
        _ => 0,
    };
    shared as u64
}

/// Returns the indices of equal hashes, grouped by hash. There are `count` hashes in `portions` portions.
/// `visit_portion` calls what it is given with the index and the hash of each in a portion; all threads call it, twice
/// for every portion.
///
/// Two bit tables find the hashes that may be repeated, so that only these must be sorted.
pub(crate) fn equal_hash_groups(
    (count, portions): (usize, usize),
    visit_portion: impl Fn(usize, &mut dyn FnMut(usize, u64)) + Sync,
) -> Vec<Vec<usize>> {
    let seen = BitTable::new(count);
    let repeated = BitTable::new(count);
    let portions = (0..portions).into_par_iter().with_min_len(PORTIONS_AT_ONCE);
    portions.clone().for_each(|portion| {
        visit_portion(portion, &mut |_, hash| {
            if seen.insert_hash(hash) {
                repeated.insert_hash(hash);
            }
        });
    });
    drop(seen);
    let found = portions.fold(Vec::new, |mut found: Vec<(u64, usize)>, portion| {
        visit_portion(portion, &mut |index, hash| {
            if repeated.contains_hash(hash) {
                found.push((hash, index));
            }
        });
        found
    });
    let mut found = found.reduce(Vec::new, |mut all, mut more| {
        all.append(&mut more);
        all
    });
    found.par_sort_unstable();
    let same_hash = found
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|group| group.len() > 1);
    same_hash
        .map(|group| group.iter().map(|&(_, index)| index).collect())
        .collect()
}

/// Fewest portions that a thread visits at once.
const PORTIONS_AT_ONCE: usize = 256;

/// A set of hashes in 16 to 32 bits per hash. It may falsely contain hashes that were never inserted. All threads may
/// insert at once.
pub(crate) struct BitTable {
    words: Vec<AtomicU64>,
}

impl BitTable {
    pub(crate) fn new(hashes: usize) -> Self {
        let words = (hashes / 4).next_power_of_two();
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    fn bit_position(&self, hash: u64) -> (usize, u64) {
        (
            (hash >> 6) as usize & (self.words.len() - 1),
            1 << (hash % 64),
        )
    }

    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        let (word, bit) = self.bit_position(hash);
        self.words[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Inserts a hash. Returns `true` if the set already contained it.
    pub(crate) fn insert_hash(&self, hash: u64) -> bool {
        let (word, bit) = self.bit_position(hash);
        self.words[word].fetch_or(bit, Ordering::Relaxed) & bit != 0
    }
}

/// Returns the id of a document: from memory, from the row number, or read again from the row.
pub(super) fn read_id<'a>(
    inputs: &InputSet,
    documents: &'a ReadDocuments,
    index: usize,
) -> Result<Cow<'a, str>> {
    if documents.ids.is_empty() {
        return Ok(Cow::Owned(documents.row_number(index).to_string()));
    }
    if let Some(id) = documents.ids.held_id(index) {
        return Ok(Cow::Borrowed(id));
    }
    let mut scratch = lookalike_io::source::ParseScratch::default();
    let place = documents.place_of(index);
    inputs.reread_row(place, &mut scratch, |row| {
        Cow::Owned(row.id.unwrap_or_default().to_owned())
    })
}

/// Ids that several documents have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedIds {
    /// Documents that have the id of an earlier document of the same inputs.
    pub documents: u64,
    /// The first repeated id.
    pub id: String,
    /// The first two occurrences of this id, as text for messages, for example `source:row`.
    pub places: [String; 2],
}

impl RepeatedIds {
    /// Adds the repeats of two sets of inputs.
    pub(super) fn add_counts(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                documents: one.documents + other.documents,
                ..one
            }),
            (one, other) => one.or(other),
        }
    }

    /// Returns the error that refuses repeated ids.
    pub(super) fn refuse_repeats(&self, settings: &RunSettings) -> Error {
        let field = match &settings.read.fields.id {
            IdField::Named(name) => name,
            IdField::Default | IdField::RowNumber => "id",
        };
        let [first, next] = &self.places;
        Error::input_error(format!(
            "the id '{}' (field '{field}') is in {first} and {next}, but ids must differ: name \
             another field with {}, or number the rows with {}",
            self.id,
            settings.spelling.spell_choice("id", "FIELD"),
            settings.spelling.row_numbers()
        ))
    }
}

/// Finds ids that occur more than once in one set of inputs.
pub(super) fn find_repeats(
    inputs: &InputSet,
    documents: &ReadDocuments,
) -> Result<Option<RepeatedIds>> {
    let mut repeats = 0;
    // The first document that repeats an id, and the earlier document with that id.
    let mut first: Option<(usize, usize)> = None;
    let ids = &documents.ids;
    let visit_portion =
        |portion: usize, visit: &mut dyn FnMut(usize, u64)| ids.visit_portion(portion, visit);
    for group in equal_hash_groups((ids.len(), ids.starts.len()), visit_portion) {
        // Different ids may have the same hash.
        let mut known: Vec<(Cow<'_, str>, usize)> = Vec::new();
        for later in group {
            let id = read_id(inputs, documents, later)?;
            let Some(&(_, earlier)) = known.iter().find(|(other, _)| *other == id) else {
                known.push((id, later));
                continue;
            };
            repeats += 1;
            if first.is_none_or(|(before, _)| later < before) {
                first = Some((later, earlier));
            }
        }
    }
    let Some((later, earlier)) = first else {
        return Ok(None);
    };
    let place = |index: usize| {
        let (source, row) =
            inputs.source_row(documents.place_of(index), documents.row_number(index));
        format!("{source}:{row}")
    };
    Ok(Some(RepeatedIds {
        documents: repeats,
        id: read_id(inputs, documents, later)?.into_owned(),
        places: [earlier, later].map(place),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of all lengths around the limits, some not of ASCII.
    fn made_ids() -> Vec<String> {
        (0..1000)
            .map(|at| match at % 7 {
                0 => "x".repeat(HELD + at % 3 - 1),
                1 => String::new(),
                2 => "é".repeat(at % 33),
                _ => format!("id-{at}"),
            })
            .collect()
    }

    #[test]
    fn ids_are_read_as_they_were_pushed() {
        let made = made_ids();
        let (mut ids, mut part) = (DocumentIds::default(), DocumentIds::default());
        for (at, id) in made.iter().enumerate() {
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
            assert_eq!(ids.len(), made.len());
            for (at, id) in made.iter().enumerate() {
                let held = Some(id.as_str()).filter(|id| id.len() <= HELD);
                assert_eq!(ids.held_id(at), held, "{at}");
            }
            let mut hashes = Vec::new();
            ids.visit_hashes(|at, hash| hashes.push((at, hash)));
            let expected = made.iter().enumerate();
            let expected = expected.map(|(at, id)| (at, lookalike::value_hash(id.as_bytes())));
            assert!(expected.eq(hashes));
        }
        for length in 0..bytes.len() {
            assert!(DocumentIds::decode_ids(&mut ByteReader::new(&bytes[..length])).is_none());
        }
    }
}
