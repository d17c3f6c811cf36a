//! The ids of a run's documents.

use std::borrow::Cow;

use lookalike::ColumnReservation;
use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{IdField, InputSet};

use super::documents::ReadDocuments;
use super::documents::block_codec::{put_count, read_count};
use super::settings::RunSettings;

/// Longest id in bytes that is kept in memory. Longer ids are read again when they are needed.
const HELD: usize = 64;

/// The ids of documents in reading order; empty if row numbers are the ids.
#[derive(Debug, Default)]
pub(super) struct DocumentIds {
    bytes: Vec<u8>,
    /// The end of each id in `bytes`; for an id that is not kept, the previous end with the flag
    /// [`TOO_LONG`].
    ends: Vec<u64>,
    hashes: Vec<u64>,
}

const TOO_LONG: u64 = 1 << 63;

impl DocumentIds {
    pub(super) fn push_id(&mut self, id: &str) {
        let too_long = if id.len() > HELD { TOO_LONG } else { 0 };
        if too_long == 0 {
            self.bytes.extend_from_slice(id.as_bytes());
        }
        self.ends.push(self.bytes.len() as u64 | too_long);
        self.hashes.push(lookalike::value_hash(id.as_bytes()));
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + 8 * (self.ends.len() + self.hashes.len())
    }

    pub(super) fn reserve_ids(&mut self, reserve: ColumnReservation) {
        reserve.extend_column(&mut self.bytes);
        reserve.extend_column(&mut self.ends);
        reserve.extend_column(&mut self.hashes);
    }

    pub(super) fn append_ids(&mut self, other: &Self) {
        let base = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + base));
        self.hashes.extend_from_slice(&other.hashes);
    }

    /// Appends the ids: the number of documents that have one, the end of each, and all bytes.
    pub(super) fn encode_ids(&self, into: &mut Vec<u8>) {
        put_count(self.ends.len(), into);
        let numbers = self.ends.iter().chain(&self.hashes);
        numbers.for_each(|number| into.extend(number.to_le_bytes()));
        put_count(self.bytes.len(), into);
        into.extend_from_slice(&self.bytes);
    }

    /// Reads what [`encode_ids`](Self::encode_ids) has written. Returns `None` if the bytes are no ids.
    pub(super) fn decode_ids(reader: &mut ByteReader<'_>) -> Option<Self> {
        let count = read_count(reader)?;
        let ends = reader.read_list(count, u64::from_le_bytes)?;
        let hashes = reader.read_list(count, u64::from_le_bytes)?;
        let length = read_count(reader)?;
        let bytes = reader.read_bytes(length)?.to_vec();
        let text = std::str::from_utf8(&bytes).ok()?;
        let places = ends.iter().map(|end| (end & !TOO_LONG) as usize);
        let is_valid = places.clone().is_sorted()
            && places.clone().all(|end| text.is_char_boundary(end))
            && places.clone().next_back().unwrap_or(0) == length;
        is_valid.then_some(Self {
            bytes,
            ends,
            hashes,
        })
    }

    /// Returns `true` if there are ids for all of these documents, or for none.
    pub(super) fn fits_documents(&self, documents: usize) -> bool {
        self.ends.is_empty() || self.ends.len() == documents
    }

    /// Returns the id of a document if it is in memory.
    fn held_id(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        if end & TOO_LONG != 0 {
            return None;
        }
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] & !TOO_LONG);
        let bytes = &self.bytes[start as usize..end as usize];
        Some(std::str::from_utf8(bytes).expect("ids were pushed as strings"))
    }
}

/// Returns how many documents have the id of a known document; if neither have ids, the same number.
pub(super) fn count_shared_ids(known: &ReadDocuments, documents: &ReadDocuments) -> u64 {
    let (ids, others) = (&known.ids.hashes, &documents.ids.hashes);
    let shared = match (ids.is_empty(), others.is_empty()) {
        (true, true) => {
            let numbers = 0..documents.len();
            let has = |&at: &usize| known.index_of_row(documents.row_number(at)).is_some();
            numbers.filter(has).count()
        }
        (false, false) => {
            let mut ids = ids.clone();
            ids.sort_unstable();
            let has = |hash: &&u64| ids.binary_search(hash).is_ok();
            others.iter().filter(has).count()
        }
        _ => 0,
    };
    shared as u64
}

/// Returns the indices of equal hashes, grouped by hash.
///
/// Two bit tables find the hashes that may be repeated, so that only these must be sorted.
pub(crate) fn equal_hash_groups(hashes: &[u64]) -> Vec<Vec<usize>> {
    let mut seen = BitTable::new(hashes.len());
    let mut repeated = BitTable::new(hashes.len());
    for &hash in hashes {
        if seen.insert_hash(hash) {
            repeated.insert_hash(hash);
        }
    }
    let may_repeat = |(index, &hash)| repeated.contains_hash(hash).then_some((hash, index));
    let mut found: Vec<(u64, usize)> = hashes.iter().enumerate().filter_map(may_repeat).collect();
    found.sort_unstable();
    let same_hash = found
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|group| group.len() > 1);
    same_hash
        .map(|group| group.iter().map(|&(_, index)| index).collect())
        .collect()
}

/// A set of hashes in 16 to 32 bits per hash. It may falsely contain hashes that were never inserted.
pub(crate) struct BitTable {
    words: Vec<u64>,
}

impl BitTable {
    pub(crate) fn new(hashes: usize) -> Self {
        Self {
            words: vec![0; (hashes / 4).next_power_of_two()],
        }
    }

    fn bit_position(&self, hash: u64) -> (usize, u64) {
        (
            (hash >> 6) as usize & (self.words.len() - 1),
            1 << (hash % 64),
        )
    }

    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        let (word, bit) = self.bit_position(hash);
        self.words[word] & bit != 0
    }

    /// Inserts a hash. Returns `true` if the set already contained it.
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        let (word, bit) = self.bit_position(hash);
        let before = self.words[word] & bit != 0;
        self.words[word] |= bit;
        before
    }
}

/// Returns the id of a document: from memory, from the row number, or read again from the row.
pub(super) fn read_id<'a>(
    inputs: &InputSet,
    documents: &'a ReadDocuments,
    index: usize,
) -> Result<Cow<'a, str>> {
    if documents.ids.ends.is_empty() {
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
    for group in equal_hash_groups(&documents.ids.hashes) {
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
