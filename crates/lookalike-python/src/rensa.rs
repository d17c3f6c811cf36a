//! The classes of the package `rensa` 0.5, with its values ([`RensaFunctions`]), and the tables of its LSH.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use lookalike::sketch::{RensaFunctions, RensaScheme, hash_rensa_token};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyType};

use crate::error::LimitError;
use crate::function_cache::FunctionCache;
use crate::lsh::{BandTables, IdentityHash};

/// Largest number of slots.
const MOST_SLOTS: usize = 1 << 20;

/// Calls `visit` with the hash of each token: of each string or bytes of an iterable, or of bytes alone.
fn visit_hashes(items: &Bound<'_, PyAny>, mut visit: impl FnMut(u64)) -> PyResult<()> {
    let mut push = |item: &Bound<'_, PyAny>| hash_item(item).map(&mut visit);
    if let Ok(list) = items.cast::<PyList>() {
        return list.iter().try_for_each(|item| push(&item));
    }
    if !items.is_instance_of::<PyString>() && PyMemoryView::from(items).is_ok() {
        return push(items);
    }
    items.try_iter()?.try_for_each(|item| push(&item?))
}

fn hash_item(item: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(hash_rensa_token(text.to_cow()?.as_bytes()));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(hash_rensa_token(bytes.as_bytes()));
    }
    let refused = |_| {
        let kind = item
            .get_type()
            .name()
            .map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "a token is of the type {kind}: each item must be a string or bytes"
        ))
    };
    let view = PyMemoryView::from(item).map_err(refused)?;
    if !view.getattr("c_contiguous")?.is_truthy()? {
        return Err(PyTypeError::new_err(
            "a token is a buffer with gaps: give it C-contiguous, as bytes(token) is",
        ));
    }
    let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok(hash_rensa_token(bytes.as_bytes()))
}

fn collect_hashes(items: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let count = items.cast::<PyList>().map_or(0, |list| list.len());
    let mut hashes = Vec::with_capacity(count);
    visit_hashes(items, |hash| hashes.push(hash))?;
    Ok(hashes)
}

static KNOWN_FUNCTIONS: LazyLock<FunctionCache<(RensaScheme, usize, u64), RensaFunctions>> =
    LazyLock::new(FunctionCache::new);

/// The engine of `RMinHash` and `CMinHash`.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct TokenMinHash {
    seed: u64,
    scheme: RensaScheme,
    functions: Arc<RensaFunctions>,
    /// Never held while Python code may run.
    slots: Mutex<Vec<u64>>,
}

impl TokenMinHash {
    fn lock_slots(&self) -> MutexGuard<'_, Vec<u64>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the digests of rows, one after the other, as little-endian numbers of 32 bits. `read_row` adds the hashes of a
    /// row to an empty list. The own slots are left alone.
    fn digest_rows<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        read_row: impl Fn(&Bound<'py, PyAny>, &mut Vec<u64>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut slots = vec![self.scheme.empty_value(); self.lock_slots().len()];
        let (mut hashes, mut digests) = (Vec::new(), Vec::new());
        for row in rows.try_iter()? {
            rows.py().check_signals()?;
            hashes.clear();
            read_row(&row?, &mut hashes)?;
            slots.fill(self.scheme.empty_value());
            self.functions.lower_slots(&hashes, &mut slots);
            let numbers = slots.iter().map(|slot| slot >> self.digest_shift());
            digests.extend(numbers.flat_map(|number| (number as u32).to_le_bytes()));
        }
        Ok(PyBytes::new(rows.py(), &digests))
    }

    /// Bits of a slot that its digest leaves out.
    fn digest_shift(&self) -> u32 {
        match self.scheme {
            RensaScheme::Bucketed => 0,
            RensaScheme::Circulant => 32,
        }
    }

    fn check_comparable(&self, other: &Self) -> PyResult<()> {
        // One after the other, because both can be the same.
        let slots = self.lock_slots().len();
        let others = other.lock_slots().len();
        if slots != others {
            return Err(PyValueError::new_err(format!(
                "num_perm mismatch: left is {slots}, right is {others}"
            )));
        }
        if self.seed != other.seed {
            return Err(PyValueError::new_err(format!(
                "seed mismatch: left is {}, right is {}",
                self.seed, other.seed
            )));
        }
        Ok(())
    }
}

#[pymethods]
impl TokenMinHash {
    #[new]
    fn new(num_perm: usize, seed: u64, is_circulant: bool) -> PyResult<Self> {
        if num_perm == 0 {
            return Err(PyValueError::new_err("num_perm must be greater than 0"));
        }
        if num_perm > MOST_SLOTS {
            return Err(PyValueError::new_err(format!(
                "num_perm is {num_perm}: give at most {MOST_SLOTS}"
            )));
        }
        let scheme = if is_circulant {
            RensaScheme::Circulant
        } else {
            RensaScheme::Bucketed
        };
        Ok(Self {
            seed,
            scheme,
            functions: KNOWN_FUNCTIONS.find_or_draw((scheme, num_perm, seed), || {
                RensaFunctions::draw_functions(scheme, num_perm, seed)
            }),
            slots: Mutex::new(vec![scheme.empty_value(); num_perm]),
        })
    }

    /// Adds tokens: an iterable of strings or bytes, or bytes, which are one token.
    fn update(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let hashes = collect_hashes(items)?;
        self.add_token_hashes(hashes);
        Ok(())
    }

    /// Adds tokens by their hashes, as `hash_token_sets` returns them.
    fn add_token_hashes(&self, hashes: Vec<u64>) {
        self.functions.lower_slots(&hashes, &mut self.lock_slots());
    }

    /// Returns the share of equal slots, an estimate of the Jaccard index.
    fn jaccard(&self, other: &Self) -> PyResult<f64> {
        self.check_comparable(other)?;
        let others = other.lock_slots().clone();
        let own = self.lock_slots();
        let equal = own.iter().zip(&others).filter(|(a, b)| a == b).count();
        Ok(equal as f64 / others.len() as f64)
    }

    /// Returns the slots as whole numbers of 32 bits.
    fn digest(&self) -> Vec<u64> {
        let shift = self.digest_shift();
        self.lock_slots().iter().map(|slot| slot >> shift).collect()
    }

    /// Returns the digests of lists of tokens, one after the other, as little-endian numbers of 32 bits. The own slots are
    /// left alone.
    fn digest_token_sets<'py>(
        &self,
        token_sets: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.digest_rows(token_sets, |tokens, hashes| {
            visit_hashes(tokens, |hash| hashes.push(hash))
        })
    }

    /// Returns the digests of lists of hashes of tokens as `digest_token_sets` does.
    fn digest_hash_sets<'py>(
        &self,
        hash_sets: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.digest_rows(hash_sets, |row, hashes| {
            hashes.extend(row.extract::<Vec<u64>>()?);
            Ok(())
        })
    }

    /// Returns the slots with all their bits.
    fn slot_values(&self) -> Vec<u64> {
        self.lock_slots().clone()
    }

    /// Replaces the slots by those of a pickle.
    fn set_slot_values(&self, values: Vec<u64>) -> PyResult<()> {
        let mut slots = self.lock_slots();
        if values.len() != slots.len() {
            return Err(PyValueError::new_err("the pickle of a MinHash is damaged"));
        }
        *slots = values;
        Ok(())
    }

    #[getter]
    fn num_perm(&self) -> usize {
        self.lock_slots().len()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns one MinHash for each list of tokens.
    #[classmethod]
    fn from_token_sets<'py>(
        class: &Bound<'py, PyType>,
        token_sets: &Bound<'py, PyAny>,
        num_perm: usize,
        seed: u64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut made = Vec::new();
        for tokens in token_sets.try_iter()? {
            let one = class.call1((num_perm, seed))?;
            one.cast::<Self>()?.get().update(&tokens?)?;
            made.push(one);
        }
        Ok(made)
    }
}

/// Returns the hashes of the tokens of each list.
#[pyfunction]
pub(crate) fn hash_token_sets(token_sets: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u64>>> {
    let mut rows = Vec::new();
    for tokens in token_sets.try_iter()? {
        rows.push(collect_hashes(&tokens?)?);
    }
    Ok(rows)
}

/// The tables of `RMinHashLSH`: whole numbers as keys, each with one signature.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct NumberLsh {
    slots: usize,
    inner: Mutex<NumberTables>,
}

struct NumberTables {
    tables: BandTables,
    /// Number in the tables of each key. Numbers ascend in the order of insertion.
    numbers: HashMap<u64, u32>,
    entries: HashMap<u32, NumberEntry, BuildHasherDefault<IdentityHash>>,
    next: u32,
}

/// A key and the hashes of its bands.
struct NumberEntry {
    key: u64,
    bands: Box<[u64]>,
}

impl NumberTables {
    fn remove_key(&mut self, key: u64) -> bool {
        let Some(number) = self.numbers.remove(&key) else {
            return false;
        };
        if let Some(entry) = self.entries.remove(&number) {
            self.tables.remove_number(&entry.bands, number);
        }
        true
    }

    fn insert_bands(&mut self, key: u64, bands: Box<[u64]>) -> PyResult<()> {
        self.remove_key(key);
        let number = self.next;
        self.next = number.checked_add(1).ok_or_else(|| {
            LimitError::new_err(format!("an index takes at most {} keys in", u32::MAX))
        })?;
        self.tables.insert_number(&bands, number);
        self.numbers.insert(key, number);
        self.entries.insert(number, NumberEntry { key, bands });
        Ok(())
    }

    /// Returns the keys that share a band, each once, in the order of the bands.
    fn find_keys(&mut self, bands: &[u64]) -> Vec<u64> {
        let numbers = self.tables.collect_numbers(bands);
        numbers
            .iter()
            .map(|number| self.entries[number].key)
            .collect()
    }
}

impl NumberLsh {
    fn lock_inner(&self) -> MutexGuard<'_, NumberTables> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash_bands(&self, minhash: &TokenMinHash) -> PyResult<Box<[u64]>> {
        let slots = minhash.slot_values();
        if slots.len() != self.slots || minhash.scheme != RensaScheme::Bucketed {
            return Err(PyValueError::new_err(format!(
                "MinHash has {} permutations but LSH expects {} of RMinHash",
                slots.len(),
                self.slots
            )));
        }
        Ok(self.lock_inner().tables.band_hashes(&slots).collect())
    }
}

#[pymethods]
impl NumberLsh {
    /// Creates tables. The caller has checked that the bands divide the slots.
    #[new]
    fn new(slots: usize, bands: usize) -> Self {
        Self {
            slots,
            inner: Mutex::new(NumberTables {
                tables: BandTables::new(bands, slots / bands.max(1)),
                numbers: HashMap::new(),
                entries: HashMap::default(),
                next: 0,
            }),
        }
    }

    /// Adds a MinHash under a key. It replaces the one that the key has.
    fn insert(&self, key: u64, minhash: &TokenMinHash) -> PyResult<()> {
        let bands = self.hash_bands(minhash)?;
        self.lock_inner().insert_bands(key, bands)
    }

    /// Removes a key, and returns True if it existed.
    fn remove(&self, key: u64) -> bool {
        self.lock_inner().remove_key(key)
    }

    /// Returns the keys that share a band with a MinHash, each once, in the order of the bands.
    fn query(&self, minhash: &TokenMinHash) -> PyResult<Vec<u64>> {
        let bands = self.hash_bands(minhash)?;
        Ok(self.lock_inner().find_keys(&bands))
    }

    fn __len__(&self) -> usize {
        self.lock_inner().numbers.len()
    }

    /// Returns the keys in the order of insertion, with the hashes of their bands.
    fn entries(&self) -> Vec<(u64, Vec<u64>)> {
        let inner = self.lock_inner();
        let mut entries: Vec<_> = inner.entries.iter().collect();
        entries.sort_unstable_by_key(|(number, _)| **number);
        entries
            .into_iter()
            .map(|(_, entry)| (entry.key, entry.bands.to_vec()))
            .collect()
    }

    /// Adds what `entries` returned.
    fn restore(&self, entries: Vec<(u64, Vec<u64>)>) -> PyResult<()> {
        let mut inner = self.lock_inner();
        entries
            .into_iter()
            .try_for_each(|(key, bands)| inner.insert_bands(key, bands.into()))
    }
}
