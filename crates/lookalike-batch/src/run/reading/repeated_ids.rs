//! Ids that several documents have.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_io::error::{Error, Result};
use lookalike_io::source::{IdField, InputSet};
use rayon::prelude::*;

use crate::run::progress::RepeatedIds;
use crate::run::reading::documents::ReadDocuments;
use crate::run::settings::RunSettings;

/// Returns how many documents have the id of a known document; if neither have ids, the same number.
///
/// # Errors
/// If a temporary file of ids cannot be read.
pub(in crate::run) fn count_shared_ids(
    known: &ReadDocuments,
    documents: &ReadDocuments,
) -> Result<u64> {
    let (ids, others) = (&known.ids, &documents.ids);
    let shared = match (ids.is_empty(), others.is_empty()) {
        (true, true) => {
            let numbers = 0..documents.len();
            let has = |&at: &usize| known.index_of_row(documents.row_number(at)).is_some();
            numbers.filter(has).count()
        }
        (false, false) => {
            let mut hashes = Vec::with_capacity(ids.len());
            ids.visit_hashes(|_, hash| hashes.push(hash))?;
            hashes.sort_unstable();
            let mut shared = 0;
            others.visit_hashes(|_, hash| {
                shared += usize::from(hashes.binary_search(&hash).is_ok());
            })?;
            shared
        }
        _ => 0,
    };
    Ok(shared as u64)
}

/// Returns the indices of equal hashes, grouped by hash. There are `count` hashes in `portions` portions.
/// `visit_portion` calls its argument with the index and the hash of each in a portion. All threads call it, and each
/// portion is visited twice.
///
/// Two bit tables find the hashes that may be repeated, so that only these must be sorted.
///
/// # Errors
/// Those of `visit_portion`.
pub(crate) fn equal_hash_groups(
    count: usize,
    portions: usize,
    visit_portion: impl Fn(usize, &mut dyn FnMut(usize, u64)) -> Result<()> + Sync,
) -> Result<Vec<Vec<usize>>> {
    let seen = BitTable::new(count);
    let repeated = BitTable::new(count);
    let portions = (0..portions).into_par_iter().with_min_len(PORTIONS_AT_ONCE);
    portions.clone().try_for_each(|portion| {
        visit_portion(portion, &mut |_, hash| {
            if seen.insert_hash(hash) {
                repeated.insert_hash(hash);
            }
        })
    })?;
    drop(seen);
    let found = portions.try_fold(Vec::new, |mut found: Vec<(u64, usize)>, portion| {
        visit_portion(portion, &mut |index, hash| {
            if repeated.contains_hash(hash) {
                found.push((hash, index));
            }
        })?;
        Ok::<_, Error>(found)
    });
    let mut found = found.try_reduce(Vec::new, |mut all, mut more| {
        all.append(&mut more);
        Ok(all)
    })?;
    found.par_sort_unstable();
    let same_hash = found
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|group| group.len() > 1);
    let groups = same_hash.map(|group| group.iter().map(|&(_, index)| index).collect());
    Ok(groups.collect())
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
pub(in crate::run) fn read_id<'a>(
    inputs: &InputSet,
    documents: &'a ReadDocuments,
    index: usize,
) -> Result<Cow<'a, str>> {
    if documents.ids.is_empty() {
        return Ok(Cow::Owned(documents.row_number(index).to_string()));
    }
    if let Some(id) = documents.ids.kept_id(index)? {
        return Ok(id);
    }
    let mut scratch = lookalike_io::source::ParseScratch::default();
    let place = documents.place_of(index);
    inputs.reread_row(place, &mut scratch, |row| {
        Cow::Owned(row.id.unwrap_or_default().to_owned())
    })
}

impl RepeatedIds {
    /// Adds the repeats of two sets of inputs.
    pub(in crate::run) fn add_counts(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                documents: one.documents + other.documents,
                ..one
            }),
            (one, other) => one.or(other),
        }
    }

    /// Returns the error that refuses repeated ids.
    pub(in crate::run) fn repeats_error(&self, settings: &RunSettings) -> Error {
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
pub(in crate::run) fn find_repeats(
    inputs: &InputSet,
    documents: &ReadDocuments,
) -> Result<Option<RepeatedIds>> {
    let mut repeats = 0;
    // The first document that repeats an id, and the earlier document with that id.
    let mut first: Option<(usize, usize)> = None;
    let ids = &documents.ids;
    let visit_portion =
        |portion: usize, visit: &mut dyn FnMut(usize, u64)| ids.visit_portion(portion, visit);
    for group in equal_hash_groups(ids.len(), ids.portion_count(), visit_portion)? {
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
