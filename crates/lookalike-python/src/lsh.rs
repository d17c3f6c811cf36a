//! LSH tables: they find the signatures that share a band with a query.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookalike::plan::MatchPlan;
use lookalike::sketch::equal_slots;
use lookalike::value_hash;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::error::{LimitError, SettingError, engine_error_to_py};
use crate::minhash::{MinHash, SlotValues, minhash_of};
use crate::recipe::Recipe;
use crate::run::PythonSignals;
use crate::settings::RuleSettings;

/// Signatures that are added or removed between two checks for signals.
const SIGNATURES_BETWEEN_CHECKS: usize = 128;

/// Signatures that wait for the tables at most.
const MOST_PENDING: usize = 1 << 14;

/// Number of signatures below which memory is not released.
const FEW_SIGNATURES: usize = 1024;

/// A hasher that passes on numbers that are hashes already.
#[derive(Default)]
pub(crate) struct IdentityHash(u64);

impl Hasher for IdentityHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = value_hash(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write_u32(&mut self, number: u32) {
        // Multiply, because a `HashMap` takes its control bits from the upper bits of a hash.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The numbers of the signatures that have a band, in the order of insertion. Most buckets have one, so that a bucket of
/// one takes no memory of its own.
enum BandBucket {
    One(u32),
    #[expect(clippy::box_collection, reason = "a bucket of one stays at 16 bytes")]
    Several(Box<Vec<u32>>),
}

impl BandBucket {
    fn numbers(&self) -> &[u32] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Several(numbers) => numbers,
        }
    }

    fn numbers_mut(&mut self) -> &mut [u32] {
        match self {
            Self::One(number) => std::slice::from_mut(number),
            Self::Several(numbers) => numbers,
        }
    }

    fn push_number(&mut self, number: u32) {
        match self {
            Self::One(first) => *self = Self::Several(Box::new(vec![*first, number])),
            Self::Several(numbers) => numbers.push(number),
        }
    }

    /// Removes the latest entry of a number. Returns `true` if nothing is left.
    fn remove_number(&mut self, number: u32) -> bool {
        match self {
            Self::One(only) => *only == number,
            Self::Several(numbers) => {
                // Search from the end, because the latest insertions are there.
                if let Some(at) = numbers.iter().rposition(|&other| other == number) {
                    numbers.remove(at);
                }
                numbers.is_empty()
            }
        }
    }
}

/// Map from the hash of a band to the signatures that have it.
type BandTable = HashMap<u64, BandBucket, BuildHasherDefault<IdentityHash>>;

/// The numbers that a query has found: one bit for each number up to the largest.
#[derive(Default)]
struct FoundNumbers(Vec<u64>);

impl FoundNumbers {
    /// Adds a number. Returns `false` if it was there.
    fn insert_number(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Removes all numbers, given each of them.
    fn clear_numbers(&mut self, numbers: &[u32]) {
        for &number in numbers {
            self.0[number as usize / 64] = 0;
        }
    }
}

/// One table per band.
#[derive(Default)]
pub(crate) struct BandTables {
    rows: usize,
    tables: Vec<BandTable>,
    /// Empty between two queries. It takes an eighth of a byte for each number up to the largest.
    found: FoundNumbers,
}

impl BandTables {
    pub(crate) fn new(bands: usize, rows: usize) -> Self {
        Self {
            rows,
            tables: (0..bands).map(|_| BandTable::default()).collect(),
            found: FoundNumbers::default(),
        }
    }

    /// Returns the hash of each band.
    pub(crate) fn band_hashes<'s, T: Copy + Into<u64>>(
        &self,
        slots: &'s [T],
    ) -> impl Iterator<Item = u64> + use<'s, T> {
        let bands = slots.chunks_exact(self.rows).take(self.tables.len());
        bands.map(hash_band)
    }

    fn hashes_of_slots(&self, slots: &SlotValues) -> Vec<u64> {
        let mut hashes = Vec::with_capacity(self.tables.len());
        self.append_hashes(slots, &mut hashes);
        hashes
    }

    fn append_hashes(&self, slots: &SlotValues, hashes: &mut Vec<u64>) {
        match slots {
            SlotValues::Narrow(slots) => hashes.extend(self.band_hashes(slots)),
            SlotValues::Wide(slots) => hashes.extend(self.band_hashes(slots)),
        }
    }

    pub(crate) fn insert_number(&mut self, hashes: &[u64], number: u32) {
        for (table, &hash) in self.tables.iter_mut().zip(hashes) {
            insert_into_table(table, hash, number);
        }
    }

    /// Adds numbers whose hashes follow one another. It fills one table after another, so that the table stays in the
    /// cache of the processor.
    fn insert_numbers(&mut self, hashes: &[u64], numbers: &[u32]) {
        let bands = self.tables.len();
        for (band, table) in self.tables.iter_mut().enumerate() {
            table.reserve(numbers.len());
            let hashes = hashes[band..].iter().step_by(bands);
            for (&hash, &number) in hashes.zip(numbers) {
                insert_into_table(table, hash, number);
            }
        }
    }

    pub(crate) fn remove_number(&mut self, hashes: &[u64], number: u32) {
        for (table, hash) in self.tables.iter_mut().zip(hashes) {
            let bucket = table.get_mut(hash);
            if bucket.is_some_and(|bucket| bucket.remove_number(number)) {
                table.remove(hash);
            }
            if table.len() < table.capacity() / 8 {
                table.shrink_to_fit();
            }
        }
    }

    /// Replaces every number by the element of `renumbered` at its position.
    fn renumber_all(&mut self, renumbered: &[u32]) {
        let numbers = self.tables.iter_mut().flat_map(HashMap::values_mut);
        for number in numbers.flat_map(BandBucket::numbers_mut) {
            *number = renumbered[*number as usize];
        }
    }

    /// Returns the numbers in the buckets of these hashes, each once, in the order of the bands.
    pub(crate) fn collect_numbers(&mut self, hashes: &[u64]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for (table, hash) in self.tables.iter().zip(hashes) {
            let bucket = table.get(hash).map_or(&[][..], BandBucket::numbers);
            numbers.extend(
                bucket
                    .iter()
                    .filter(|&&number| self.found.insert_number(number)),
            );
        }
        self.found.clear_numbers(&numbers);
        numbers
    }

    /// Returns the numbers that share one of the first `bands` bands, each once, ascending.
    fn query_bands(&mut self, hashes: &[u64], bands: usize) -> Vec<u32> {
        let mut numbers = self.collect_numbers(&hashes[..bands.min(hashes.len())]);
        numbers.sort_unstable();
        numbers
    }
}

fn insert_into_table(table: &mut BandTable, hash: u64, number: u32) {
    match table.entry(hash) {
        Entry::Occupied(mut bucket) => bucket.get_mut().push_number(number),
        Entry::Vacant(place) => {
            place.insert(BandBucket::One(number));
        }
    }
}

/// Returns the hash of the slots of a band. The tables are in memory only, so that it may change with a version.
fn hash_band<T: Copy + Into<u64>>(band: &[T]) -> u64 {
    // Two sums, because each multiplication waits for the one before.
    const FACTORS: [u64; 3] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
    ];
    let fold = |number: u64, factor: u64| {
        let product = u128::from(number) * u128::from(factor);
        product as u64 ^ (product >> 64) as u64
    };
    let [mut even, mut odd] = [band.len() as u64, !0];
    let (pairs, rest) = band.as_chunks::<2>();
    for &[first, second] in pairs {
        even = fold(even ^ first.into(), FACTORS[0]);
        odd = fold(odd ^ second.into(), FACTORS[1]);
    }
    for &last in rest {
        even = fold(even ^ last.into(), FACTORS[0]);
    }
    fold(even ^ odd.rotate_left(32), FACTORS[2])
}

fn checked_number(count: usize) -> PyResult<u32> {
    u32::try_from(count)
        .ok()
        .filter(|&number| number < u32::MAX)
        .ok_or_else(|| LimitError::new_err(format!("an index holds at most {} keys", u32::MAX)))
}

/// The tables of `MinHashLSH`: keys of any kind, each with its MinHash.
///
/// Threads can insert and remove at the same time, even under the same key. The insertion that
/// Python's dictionary of keys accepts first wins; no query finds an entry before that.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct LshTables {
    /// Never held while Python code may run, because that could switch to another thread that waits
    /// for it.
    inner: Mutex<KeyedSignatures>,
}

struct KeyedSignatures {
    /// Number of hash values of a MinHash; 0 before `prepare`.
    length: usize,
    tables: BandTables,
    /// Map from a key to its number.
    numbers: Py<PyDict>,
    /// Entries by number. Numbers ascend in the order of insertion and are never reused.
    entries: HashMap<u32, KeyEntry, BuildHasherDefault<IdentityHash>>,
    next: u32,
    /// Entries that are not in the tables yet. The next query adds all of them, because that takes a fraction of the
    /// time of adding one after another.
    pending: Vec<u32>,
    scheme: Option<&'static str>,
}

/// The signatures under a key.
struct KeyEntry {
    key: Py<PyAny>,
    slots: SlotValues,
    /// Signatures that were inserted later under the same key, without a check for duplicates.
    more: Vec<SlotValues>,
    /// `true` if `numbers` maps the key to this number.
    claimed: bool,
}

impl KeyEntry {
    fn signatures(&self) -> impl Iterator<Item = &SlotValues> {
        std::iter::once(&self.slots).chain(&self.more)
    }
}

impl KeyedSignatures {
    fn new(py: Python<'_>, length: usize, tables: BandTables) -> Self {
        Self {
            length,
            tables,
            numbers: PyDict::new(py).unbind(),
            entries: HashMap::default(),
            next: 0,
            pending: Vec::new(),
            scheme: None,
        }
    }

    /// Adds the pending entries to the tables.
    fn apply_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let mut hashes = Vec::with_capacity(pending.len() * self.tables.tables.len());
        for number in &pending {
            self.tables
                .append_hashes(&self.entries[number].slots, &mut hashes);
        }
        self.tables.insert_numbers(&hashes, &pending);
    }

    /// Removes an entry, and its bands from the tables.
    fn withdraw_entry(&mut self, number: u32) -> Option<KeyEntry> {
        if self.pending.last() == Some(&number) {
            self.pending.pop();
            return self.entries.remove(&number);
        }
        self.apply_pending();
        let entry = self.entries.remove(&number)?;
        if self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to_fit();
        }
        for slots in entry.signatures() {
            let hashes = self.tables.hashes_of_slots(slots);
            self.tables.remove_number(&hashes, number);
        }
        Some(entry)
    }

    /// Adds a signature to an entry unless the entry has it already.
    fn add_to_entry(&mut self, number: u32, slots: &SlotValues) {
        self.apply_pending();
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        if entry.signatures().all(|known| known != slots) {
            entry.more.push(slots.clone());
            let hashes = self.tables.hashes_of_slots(slots);
            self.tables.insert_number(&hashes, number);
        }
    }

    /// Returns an error if a MinHash cannot be compared with those of the index.
    fn check_comparable(&self, minhash: &MinHash) -> PyResult<()> {
        let (length, scheme) = (minhash.with_slots(SlotValues::len), minhash.scheme_name());
        if self.length == 0 {
            return Err(PyValueError::new_err(
                "the index has no bands yet: a class made of MinHashLSH calls super().__init__()",
            ));
        }
        if length != self.length {
            return Err(PyValueError::new_err(format!(
                "Expecting minhash with length {}, got {length}",
                self.length
            )));
        }
        match self.scheme {
            Some(known) if known != scheme => Err(PyValueError::new_err(format!(
                "MinHash scheme '{scheme}' does not match scheme '{known}' of the MinHash \
                 previously given to this index"
            ))),
            _ => Ok(()),
        }
    }

    fn claimed_entry(&self, number: u32) -> Option<&KeyEntry> {
        let entry = self.entries.get(&number);
        entry.filter(|entry| entry.claimed)
    }

    /// Returns all entries that queries can find, in the order of insertion.
    fn all_claimed(&self) -> impl Iterator<Item = &KeyEntry> {
        let mut numbers: Vec<u32> = self.entries.keys().copied().collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| self.claimed_entry(number))
    }
}

impl LshTables {
    fn lock_inner(&self) -> MutexGuard<'_, KeyedSignatures> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bands, of rows, and the signatures of each of the chosen keys or of
    /// all keys.
    fn signatures(&self, chosen: Option<&HashSet<u32>>) -> (usize, usize, Vec<Vec<SlotValues>>) {
        let inner = self.lock_inner();
        let wanted = |number: &&u32| chosen.is_none_or(|chosen| chosen.contains(number));
        let numbers = inner.entries.keys().filter(wanted);
        let signatures = numbers.filter_map(|&number| {
            let entry = inner.claimed_entry(number)?;
            Some(entry.signatures().cloned().collect())
        });
        let signatures = signatures.collect();
        (inner.tables.tables.len(), inner.tables.rows, signatures)
    }

    /// Creates an entry that no query finds yet.
    fn enter_key(&self, key: &Bound<'_, PyAny>, minhash: &MinHash) -> PyResult<u32> {
        let mut inner = self.lock_inner();
        inner.check_comparable(minhash)?;
        let slots = minhash.slot_values();
        let number = inner.next;
        inner.next = number.checked_add(1).ok_or_else(|| {
            LimitError::new_err(format!("an index takes at most {} keys in", u32::MAX))
        })?;
        inner.scheme = Some(minhash.scheme_name());
        let entry = KeyEntry {
            key: key.clone().unbind(),
            slots,
            more: Vec::new(),
            claimed: false,
        };
        inner.entries.insert(number, entry);
        inner.pending.push(number);
        if inner.pending.len() >= MOST_PENDING {
            inner.apply_pending();
        }
        Ok(number)
    }

    /// Returns the number of a key, which becomes `number` if the key has none.
    fn claim_key(&self, key: &Bound<'_, PyAny>, number: u32) -> PyResult<u32> {
        let py = key.py();
        let numbers = self.lock_inner().numbers.clone_ref(py);
        let setdefault = intern!(py, "setdefault");
        numbers
            .bind(py)
            .call_method1(setdefault, (key, number))?
            .extract()
    }

    /// Makes an entry visible to queries, unless its key has been removed in the meantime.
    fn confirm_entry(&self, number: u32) {
        if let Some(entry) = self.lock_inner().entries.get_mut(&number) {
            entry.claimed = true;
        }
    }

    /// Moves the signature of an entry to the entry `first`, which has the key. Returns `false` if
    /// that entry has been removed in the meantime.
    fn join_entries(&self, number: u32, first: u32) -> bool {
        let mut inner = self.lock_inner();
        if !inner.entries.contains_key(&first) {
            return false;
        }
        let moved = inner.withdraw_entry(number);
        if let Some(entry) = &moved {
            inner.add_to_entry(first, &entry.slots);
        }
        drop(inner);
        true
    }

    fn number_of_key(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let numbers = self.lock_inner().numbers.clone_ref(key.py());
        let number = numbers.bind(key.py()).get_item(key)?;
        number.map(|number| number.extract()).transpose()
    }
}

#[pymethods]
impl LshTables {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        py: Python<'_>,
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> Self {
        Self {
            inner: Mutex::new(KeyedSignatures::new(py, 0, BandTables::default())),
        }
    }

    /// Creates tables for MinHashes of a length and drops the content of the index.
    fn prepare(&self, py: Python<'_>, length: usize, bands: usize, rows: usize) {
        let fresh = KeyedSignatures::new(py, length, BandTables::new(bands, rows));
        let before = std::mem::replace(&mut *self.lock_inner(), fresh);
        drop(before);
    }

    /// Adds a MinHash under a new key. Without check_duplication a key can have several.
    #[pyo3(signature = (key, minhash, check_duplication=true))]
    fn insert(
        &self,
        key: &Bound<'_, PyAny>,
        minhash: &Bound<'_, PyAny>,
        check_duplication: bool,
    ) -> PyResult<()> {
        let minhash = minhash_of(minhash)?;
        let minhash = minhash.get();
        let exists = || PyValueError::new_err("The given key already exists");
        let number = self.enter_key(key, minhash)?;
        loop {
            match self.claim_key(key, number) {
                Ok(first) if first == number => {
                    self.confirm_entry(number);
                    return Ok(());
                }
                Ok(first) if !check_duplication => {
                    if self.join_entries(number, first) {
                        return Ok(());
                    }
                }
                other => {
                    let withdrawn = self.lock_inner().withdraw_entry(number);
                    drop(withdrawn);
                    return other.and(Err(exists()));
                }
            }
        }
    }

    /// Returns the keys whose MinHash shares a band with this one, each once, in the order of
    /// insertion.
    #[pyo3(signature = (minhash, bands=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        minhash: &Bound<'py, PyAny>,
        bands: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let minhash = minhash_of(minhash)?;
        let minhash = minhash.get();
        let mut inner = self.lock_inner();
        inner.check_comparable(minhash)?;
        inner.apply_pending();
        let hashes = minhash.with_slots(|slots| inner.tables.hashes_of_slots(slots));
        let found = inner
            .tables
            .query_bands(&hashes, bands.unwrap_or(usize::MAX));
        let entries = found
            .iter()
            .filter_map(|&number| inner.claimed_entry(number));
        let keys: Vec<_> = entries.map(|entry| entry.key.clone_ref(py)).collect();
        drop(inner);
        PyList::new(py, keys)
    }

    /// Removes a key.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let numbers = self.lock_inner().numbers.clone_ref(py);
        let popped = numbers
            .bind(py)
            .call_method1(intern!(py, "pop"), (key, py.None()))?;
        let Some(number) = popped.extract::<Option<u32>>()? else {
            return Err(PyValueError::new_err("The given key does not exist"));
        };
        let withdrawn = self.lock_inner().withdraw_entry(number);
        drop(withdrawn);
        Ok(())
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.number_of_key(key)?.is_some())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock_inner().numbers.bind(py).len()
    }

    /// Returns True if the index is empty.
    fn is_empty(&self, py: Python<'_>) -> bool {
        self.__len__(py) == 0
    }

    /// Returns for each band the number of keys in each bucket, by the bytes of the band. Counts
    /// only the given keys, if there are any.
    #[pyo3(signature = (keys=None))]
    fn counts<'py>(
        &self,
        py: Python<'py>,
        keys: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let chosen = match keys {
            None => None,
            Some(keys) => {
                let mut numbers = HashSet::new();
                for key in keys.try_iter()? {
                    let key = key?;
                    let missing = || PyKeyError::new_err(key.clone().unbind());
                    numbers.insert(self.number_of_key(&key)?.ok_or_else(missing)?);
                }
                Some(numbers)
            }
        };
        let (bands, rows, signatures) = self.signatures(chosen.as_ref());
        let counts: Vec<_> = (0..bands).map(|_| PyDict::new(py)).collect();
        for (at, counts) in counts.iter().enumerate() {
            for slots in &signatures {
                let band = |slots| band_bytes(slots, at, rows);
                let distinct: HashSet<_> = slots.iter().map(band).collect();
                for band in distinct {
                    let band = PyBytes::new(py, &band);
                    let before = counts.get_item(&band)?;
                    let before = before.map_or(Ok(0u64), |before| before.extract())?;
                    counts.set_item(band, before + 1)?;
                }
            }
        }
        Ok(counts)
    }

    /// Returns the keys in the order of insertion.
    fn all_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let keys: Vec<_> = {
            let inner = self.lock_inner();
            let entries = inner.all_claimed();
            entries.map(|entry| entry.key.clone_ref(py)).collect()
        };
        PyList::new(py, keys)
    }

    /// Returns the keys with the hash values of each, in the order of insertion.
    fn entries<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let inner = self.lock_inner();
        let entries = inner.all_claimed().flat_map(|entry| {
            let key = entry.key.bind(py);
            entry.signatures().map(|slots| (key.clone(), slots.clone()))
        });
        let entries: Vec<_> = entries.collect();
        drop(inner);
        let as_arrays = |(key, slots): (_, SlotValues)| (key, slots.to_array(py));
        Ok(entries.into_iter().map(as_arrays).collect())
    }

    /// The scheme of the inserted MinHashes.
    #[getter]
    fn scheme(&self) -> Option<&'static str> {
        self.lock_inner().scheme
    }
}

/// Returns the slots of a band as big-endian bytes.
fn band_bytes(slots: &SlotValues, band: usize, rows: usize) -> Vec<u8> {
    let range = band * rows..(band + 1) * rows;
    match slots {
        SlotValues::Narrow(slots) => slots[range]
            .iter()
            .flat_map(|slot| slot.to_be_bytes())
            .collect(),
        SlotValues::Wide(slots) => slots[range]
            .iter()
            .flat_map(|slot| slot.to_be_bytes())
            .collect(),
    }
}

/// Matches of a search: the positions of queries, ids, and shares of equal slots.
type FoundSlots<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<f64>>,
);

/// The signatures and the ids of an index.
type IndexedSignatures<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>);

/// An index of MinHash signatures by their bands.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct LshIndexBase {
    bands: usize,
    rows: usize,
    slots: usize,
    /// Id of the next signature that is added without one.
    next: AtomicU64,
    inner: Mutex<SignatureRows>,
}

struct SignatureRows {
    slots: usize,
    tables: BandTables,
    ids: Vec<u64>,
    /// Signatures one after another.
    signatures: Vec<u32>,
    /// Position of every id that was not removed.
    places: HashMap<u64, u32>,
}

impl SignatureRows {
    fn signature_row(&self, place: u32) -> &[u32] {
        &self.signatures[place as usize * self.slots..][..self.slots]
    }

    /// Releases the memory of removed signatures once they are more than half of all.
    fn compact_rows(&mut self) {
        if self.ids.len() < FEW_SIGNATURES || self.places.len() >= self.ids.len() / 2 {
            return;
        }
        let mut places: Vec<u32> = self.places.values().copied().collect();
        places.sort_unstable();
        let mut ids = Vec::with_capacity(places.len());
        let mut signatures = Vec::with_capacity(places.len() * self.slots);
        let mut renumbered = vec![u32::MAX; self.ids.len()];
        for (new, &place) in (0..).zip(&places) {
            let id = self.ids[place as usize];
            signatures.extend_from_slice(self.signature_row(place));
            ids.push(id);
            self.places.insert(id, new);
            renumbered[place as usize] = new;
        }
        (self.ids, self.signatures) = (ids, signatures);
        self.places.shrink_to_fit();
        self.tables.renumber_all(&renumbered);
    }

    fn check_unknown(&self, ids: &[u64]) -> PyResult<()> {
        let there = ids.iter().find(|id| self.places.contains_key(id));
        there.map_or(Ok(()), |&id| Err(known_id_error(id)))
    }

    /// Adds signatures under distinct new ids.
    fn add_signatures(&mut self, rows: &[&[u32]], ids: &[u64]) -> PyResult<()> {
        self.check_unknown(ids)?;
        checked_number(self.ids.len() + ids.len())?;
        for (row, &id) in rows.iter().zip(ids) {
            let place = self.ids.len() as u32;
            let hashes: Vec<u64> = self.tables.band_hashes(row).collect();
            self.tables.insert_number(&hashes, place);
            self.ids.push(id);
            self.signatures.extend_from_slice(row);
            self.places.insert(id, place);
        }
        Ok(())
    }

    /// Removes ids, the last first, and returns how many of them existed.
    fn remove_ids(&mut self, ids: &[u64]) -> usize {
        let places = ids.iter().rev().filter_map(|id| self.places.remove(id));
        let places: Vec<u32> = places.collect();
        for &place in &places {
            let hashes: Vec<u64> = self.tables.band_hashes(self.signature_row(place)).collect();
            self.tables.remove_number(&hashes, place);
        }
        self.compact_rows();
        places.len()
    }
}

fn known_id_error(id: u64) -> PyErr {
    SettingError::new_err(format!("the index already has the id {id}"))
}

impl LshIndexBase {
    fn lock_inner(&self) -> MutexGuard<'_, SignatureRows> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds signatures, or none of them after an error or an interrupt.
    fn add_all_signatures(&self, rows: &[&[u32]], ids: &[u64]) -> PyResult<()> {
        let mut fresh = HashSet::with_capacity(ids.len());
        let repeated = ids.iter().find(|id| !fresh.insert(**id));
        repeated.map_or(Ok(()), |&id| Err(known_id_error(id)))?;
        self.lock_inner().check_unknown(ids)?;
        let mut signals = PythonSignals::new();
        for (portion, rows) in rows.chunks(SIGNATURES_BETWEEN_CHECKS).enumerate() {
            let (before, rest) = ids.split_at(portion * SIGNATURES_BETWEEN_CHECKS);
            let handled = signals.handle_signals();
            let mut inner = self.lock_inner();
            let added = handled.and_then(|()| inner.add_signatures(rows, &rest[..rows.len()]));
            if let Err(error) = added {
                inner.remove_ids(before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn signature_rows<'a>(
        &self,
        signatures: &'a PyReadonlyArray2<'_, u32>,
    ) -> PyResult<Vec<&'a [u32]>> {
        let all = signatures.as_slice().map_err(|_| {
            SettingError::new_err(
                "the signatures are not contiguous: give numpy.ascontiguousarray of them",
            )
        })?;
        let width = signatures.as_array().ncols();
        if width != self.slots {
            return Err(SettingError::new_err(format!(
                "the signatures have {width} slots where the index has {}",
                self.slots
            )));
        }
        Ok(all.chunks_exact(width).collect())
    }
}

#[pymethods]
impl LshIndexBase {
    #[new]
    fn new(recipe: &Recipe, rule: RuleSettings, bands: Option<(usize, usize)>) -> PyResult<Self> {
        let slots = recipe.0.minhash.slots as usize;
        let (bands, rows) = match bands {
            Some((bands, rows)) => {
                let used = bands.checked_mul(rows);
                if used.is_none_or(|used| used == 0 || used > slots) {
                    return Err(SettingError::new_err(format!(
                        "{bands} bands of {rows} rows do not fit {slots} slots"
                    )));
                }
                (bands, rows)
            }
            None => {
                let plan = MatchPlan::new(&recipe.0, rule.match_settings()?)
                    .map_err(engine_error_to_py)?;
                let bands = plan.band_plan().ok_or_else(|| {
                    SettingError::new_err("the method has no bands: leave it out, or use minhash")
                })?;
                (bands.bands, bands.rows)
            }
        };
        Ok(Self {
            bands,
            rows,
            slots,
            next: AtomicU64::new(0),
            inner: Mutex::new(SignatureRows {
                slots,
                tables: BandTables::new(bands, rows),
                ids: Vec::new(),
                signatures: Vec::new(),
                places: HashMap::new(),
            }),
        })
    }

    /// Reserves consecutive ids and returns the first.
    fn take_ids(&self, count: u64) -> u64 {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// Adds signatures under new ids.
    fn add(
        &self,
        py: Python<'_>,
        signatures: PyReadonlyArray2<'_, u32>,
        ids: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let rows = self.signature_rows(&signatures)?;
        let ids: Vec<u64> = ids.as_array().to_vec();
        if ids.len() != rows.len() {
            return Err(SettingError::new_err(format!(
                "there are {} signatures and {} ids",
                rows.len(),
                ids.len()
            )));
        }
        py.detach(|| self.add_all_signatures(&rows, &ids))
    }

    /// Removes ids and returns how many of them existed.
    fn remove(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<usize> {
        let gone = ids.as_array().to_vec();
        py.detach(|| {
            let mut signals = PythonSignals::new();
            let mut removed = 0;
            for gone in gone.chunks(SIGNATURES_BETWEEN_CHECKS) {
                signals.handle_signals()?;
                removed += self.lock_inner().remove_ids(gone);
            }
            Ok(removed)
        })
    }

    /// Finds signatures that share a band with a query and at least the share `least` of all slots.
    fn search<'py>(
        &self,
        py: Python<'py>,
        signatures: PyReadonlyArray2<'py, u32>,
        least: f64,
    ) -> PyResult<FoundSlots<'py>> {
        let rows = self.signature_rows(&signatures)?;
        let (mut queries, mut ids, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        py.detach(|| {
            let mut signals = PythonSignals::new();
            for (query, row) in (0u64..).zip(rows) {
                signals.handle_signals()?;
                let mut inner = self.lock_inner();
                let hashes: Vec<u64> = inner.tables.band_hashes(row).collect();
                for place in inner.tables.query_bands(&hashes, usize::MAX) {
                    let share =
                        equal_slots(row, inner.signature_row(place)) as f64 / self.slots as f64;
                    if share >= least {
                        queries.push(query);
                        ids.push(inner.ids[place as usize]);
                        shares.push(share);
                    }
                }
            }
            PyResult::Ok(())
        })?;
        Ok((
            queries.into_pyarray(py),
            ids.into_pyarray(py),
            shares.into_pyarray(py),
        ))
    }

    /// Returns the signatures and their ids, in the order of adding.
    fn signatures<'py>(&self, py: Python<'py>) -> PyResult<IndexedSignatures<'py>> {
        let (mut slots, mut ids) = (Vec::new(), Vec::new());
        {
            let inner = self.lock_inner();
            for (place, &id) in (0u32..).zip(&inner.ids) {
                if inner.places.get(&id) == Some(&place) {
                    slots.extend_from_slice(inner.signature_row(place));
                    ids.push(id);
                }
            }
        }
        let slots = slots.into_pyarray(py).reshape([ids.len(), self.slots])?;
        Ok((slots, ids.into_pyarray(py)))
    }

    fn __len__(&self) -> usize {
        self.lock_inner().places.len()
    }

    fn __contains__(&self, id: u64) -> bool {
        self.lock_inner().places.contains_key(&id)
    }

    #[getter]
    fn bands(&self) -> usize {
        self.bands
    }

    #[getter]
    fn rows(&self) -> usize {
        self.rows
    }

    #[getter]
    fn slots(&self) -> usize {
        self.slots
    }
}
