//! MinHashes with the values of the package `rensa` 0.5, and the tables of its LSH.
//!
//! Both classes hash a token by [`hash_token`] and take all seeds from Xoshiro256++ ([`SeedSequence`]). They differ in
//! the function that gives a slot its value:
//!
//! | class | a slot is the least of |
//! |---|---|
//! | `RMinHash` | in each of three rounds, the ranks of the tokens that the round sends to the slot; if it is still empty, the ranks of all tokens by a function of its own |
//! | `CMinHash` | `mix(mix(hash + σ) + π − slot − 1)` of all tokens, modulo 2⁶⁴ |
//!
//! A value of `RMinHash` begins with the number of its round, two bits, so that the value of an earlier round is less
//! than each of a later one. For that reason the values do not depend on how tokens are divided into updates.
//!
//! ```text
//!  31 30 29                             0
//! +-----+--------------------------------+
//! |round| rank of the token in the round |     round 3: by the slot's own function
//! +-----+--------------------------------+
//! ```
//!
//! Cost of a token: `RMinHash` up to three mixes, and one more for each slot that stays empty; `CMinHash` one for each
//! slot.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyType};

use crate::error::LimitError;
use crate::lsh::{BandTables, IdentityHash};

/// Bits of a value that are its round, and rounds before the slots' own functions.
const ROUND_BITS: u32 = 2;
const RANK_BITS: u32 = 32 - ROUND_BITS;
const ROUNDS: u32 = (1 << ROUND_BITS) - 1;

/// Least value of a slot that no round filled.
const UNFILLED: u32 = ROUNDS << RANK_BITS;

/// Constants that make the seeds of the rounds and of the slots' own functions differ.
const FIRST_ROUND: u64 = 0x6a09_e667_f3bc_c909;
const ROUND_STEP: u64 = 0x3c6e_f372_fe94_f82b;
const OWN_FUNCTIONS: u64 = 0xbb67_ae85_84ca_a73b;

/// Largest number of slots.
const MOST_SLOTS: usize = 1 << 20;

/// The generator Xoshiro256++ of Blackman and Vigna, with a state from SplitMix64.
struct SeedSequence([u64; 4]);

impl SeedSequence {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(GOLDEN_RATIO);
            mix_bits(state)
        }))
    }

    fn next_number(&mut self) -> u64 {
        let Self([a, b, c, d]) = self;
        let number = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        number
    }
}

/// 2⁶⁴ divided by the golden ratio.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64.
fn mix_bits(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the number that SplitMix64 gives after a state.
fn mix_next(state: u64) -> u64 {
    mix_bits(state.wrapping_add(GOLDEN_RATIO))
}

/// Returns the hash of a token: that of `FxHasher` of `rustc-hash` 2, on 64 bits.
fn hash_token(token: &[u8]) -> u64 {
    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
    compress_token(token).wrapping_mul(FACTOR).rotate_left(26)
}

fn compress_token(token: &[u8]) -> u64 {
    const AGAINST_ZERO: u64 = 0xa409_3822_299f_31d0;
    let (mut a, mut b): (u64, u64) = (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
    let multiply = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let word = |at: usize| u64::from_le_bytes(*token[at..].first_chunk().expect("8 bytes follow"));
    let half = |at: usize| u32::from_le_bytes(*token[at..].first_chunk().expect("4 bytes follow"));
    match token.len() {
        0 => {}
        length @ 1..4 => {
            a ^= u64::from(token[0]);
            b ^= (u64::from(token[length - 1]) << 8) | u64::from(token[length / 2]);
        }
        length @ 4..8 => {
            a ^= u64::from(half(0));
            b ^= u64::from(half(length - 4));
        }
        length @ 8..=16 => {
            a ^= word(0);
            b ^= word(length - 8);
        }
        length => {
            for at in (0..length - 16).step_by(16) {
                let mixed = multiply(a ^ word(at), AGAINST_ZERO ^ word(at + 8));
                (a, b) = (b, mixed);
            }
            a ^= word(length - 16);
            b ^= word(length - 8);
        }
    }
    multiply(a, b) ^ token.len() as u64
}

/// Factor and summand of a slot's own function.
type AffineFunction = (u64, u64);

/// The functions from the hash of a token to the values of slots.
enum SlotFunctions {
    Bucketed(Vec<AffineFunction>),
    Circulant { sigma: u64, pi: u64 },
}

impl SlotFunctions {
    fn new(is_circulant: bool, slots: usize, seed: u64) -> Self {
        let mut seeds = SeedSequence::new(seed);
        if is_circulant {
            return Self::Circulant {
                sigma: seeds.next_number(),
                pi: seeds.next_number(),
            };
        }
        let draw = |_| (seeds.next_number() | 1, seeds.next_number());
        Self::Bucketed((0..slots).map(draw).collect())
    }

    /// Lowers the slots to the values of tokens.
    fn add_hashes(&self, hashes: &[u64], slots: &mut [u64]) {
        match self {
            Self::Bucketed(functions) => add_by_rounds(functions, hashes, slots),
            Self::Circulant { sigma, pi } => {
                for &hash in hashes {
                    let first = mix_bits(hash.wrapping_add(*sigma)).wrapping_add(*pi);
                    for (slot, shift) in slots.iter_mut().zip(1u64..) {
                        *slot = (*slot).min(mix_bits(first.wrapping_sub(shift)));
                    }
                }
            }
        }
    }
}

/// Adds tokens to the slots of `RMinHash`, whose values have 32 bits.
fn add_by_rounds(functions: &[AffineFunction], hashes: &[u64], slots: &mut [u64]) {
    let Some(&(factor, summand)) = functions.first() else {
        return;
    };
    let buckets = BucketChoice::new(functions.len());
    for round in 0..ROUNDS {
        let seed = summand ^ FIRST_ROUND ^ u64::from(round).wrapping_mul(ROUND_STEP);
        for &hash in hashes {
            let mixed = mix_next(hash ^ seed);
            let value = u64::from(round << RANK_BITS) | (mixed >> (32 + ROUND_BITS));
            let slot = &mut slots[buckets.choose_bucket(mixed)];
            *slot = (*slot).min(value);
        }
        let next = u64::from((round + 1) << RANK_BITS);
        if slots.iter().all(|&slot| slot < next) {
            return;
        }
    }
    let mixed: Vec<u64> = hashes
        .iter()
        .map(|hash| mix_next(hash ^ factor ^ OWN_FUNCTIONS))
        .collect();
    for (slot, &(factor, summand)) in slots.iter_mut().zip(functions) {
        if *slot < u64::from(UNFILLED) {
            continue;
        }
        let ranks = mixed
            .iter()
            .map(|hash| hash.wrapping_mul(factor).wrapping_add(summand));
        if let Some(least) = ranks.min() {
            *slot = (*slot).min(u64::from(UNFILLED) | (least >> (32 + ROUND_BITS)));
        }
    }
}

/// Chooses the slot of a token without a bias, by Lemire's multiplication and rejection.
struct BucketChoice {
    count: u32,
    /// Products whose lower half is less are rejected.
    threshold: u32,
}

impl BucketChoice {
    /// Takes a number of slots from 1 to [`MOST_SLOTS`].
    fn new(count: usize) -> Self {
        let count = count as u32;
        Self {
            count,
            threshold: count.wrapping_neg() % count,
        }
    }

    fn choose_bucket(&self, mut mixed: u64) -> usize {
        loop {
            let product = u64::from(mixed as u32) * u64::from(self.count);
            if product as u32 >= self.threshold {
                return (product >> 32) as usize;
            }
            mixed = mix_next(mixed);
        }
    }
}

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
        return Ok(hash_token(text.to_cow()?.as_bytes()));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(hash_token(bytes.as_bytes()));
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
    Ok(hash_token(bytes.as_bytes()))
}

fn collect_hashes(items: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let mut hashes = Vec::new();
    visit_hashes(items, |hash| hashes.push(hash))?;
    Ok(hashes)
}

/// The engine of `RMinHash` and `CMinHash`.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct TokenMinHash {
    seed: u64,
    is_circulant: bool,
    functions: Arc<SlotFunctions>,
    /// Never held while Python code may run.
    slots: Mutex<Vec<u64>>,
}

impl TokenMinHash {
    fn lock_slots(&self) -> MutexGuard<'_, Vec<u64>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of a slot of which every other one is less.
    fn empty_value(is_circulant: bool) -> u64 {
        if is_circulant {
            u64::MAX
        } else {
            u32::MAX.into()
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
        Ok(Self {
            seed,
            is_circulant,
            functions: Arc::new(SlotFunctions::new(is_circulant, num_perm, seed)),
            slots: Mutex::new(vec![Self::empty_value(is_circulant); num_perm]),
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
        self.functions.add_hashes(&hashes, &mut self.lock_slots());
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
        let shift = if self.is_circulant { 32 } else { 0 };
        self.lock_slots().iter().map(|slot| slot >> shift).collect()
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
        if slots.len() != self.slots || minhash.is_circulant {
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
