//! A MinHash that agrees with that of `datasketch` bit for bit.
//!
//! Values given to `update` are kept until the result is read, because hashing many messages side
//! by side takes a fraction of the time of hashing one after another.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use lookalike::sketch::{MessageHasher, PermutedFunctions, PermutedScheme};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple, PyType};

use crate::error::engine_error_to_py;
use crate::function_cache::FunctionCache;

/// Largest number of functions of a MinHash.
const MOST_FUNCTIONS: usize = 1 << 20;

/// Number of messages from which a list is hashed in batches, each without the interpreter.
const BATCHED_MESSAGES: usize = 4096;

/// Bytes of messages that are signed together in bulk, and those that are worth a thread.
const BULK_BYTES: usize = 8 << 20;
const THREAD_BYTES: usize = 256 << 10;

/// Limits on the messages that wait to be hashed: their number, and their bytes.
const MOST_PENDING: usize = 1024;
const PENDING_BYTES: usize = 64 << 10;

/// The slots of a signature.
#[derive(Clone, PartialEq)]
pub(crate) enum SlotValues {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl SlotValues {
    fn empty_slots(scheme: PermutedScheme, count: usize) -> Self {
        match scheme {
            PermutedScheme::Affine32 => Self::Narrow(vec![u32::MAX; count]),
            PermutedScheme::Affine64 | PermutedScheme::Legacy => {
                Self::Wide(vec![empty_slot_value(scheme); count])
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(slots) => slots.len(),
            Self::Wide(slots) => slots.len(),
        }
    }

    fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Self::Narrow(slots) => slots.iter().flat_map(|slot| slot.to_le_bytes()).collect(),
            Self::Wide(slots) => slots.iter().flat_map(|slot| slot.to_le_bytes()).collect(),
        }
    }

    /// Returns `None` if the bytes are no whole number of slots.
    fn from_le_bytes(scheme: PermutedScheme, bytes: &[u8]) -> Option<Self> {
        match scheme {
            PermutedScheme::Affine32 => {
                let (slots, rest) = bytes.as_chunks::<4>();
                let slots = slots.iter().map(|&slot| u32::from_le_bytes(slot));
                rest.is_empty().then(|| Self::Narrow(slots.collect()))
            }
            PermutedScheme::Affine64 | PermutedScheme::Legacy => {
                let (slots, rest) = bytes.as_chunks::<8>();
                let slots = slots.iter().map(|&slot| u64::from_le_bytes(slot));
                rest.is_empty().then(|| Self::Wide(slots.collect()))
            }
        }
    }

    fn count_equal(&self, other: &Self) -> usize {
        let count = |equal: &mut dyn Iterator<Item = bool>| equal.filter(|&equal| equal).count();
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => lookalike::sketch::equal_slots(a, b),
            (Self::Wide(a), Self::Wide(b)) => count(&mut a.iter().zip(b).map(|(a, b)| a == b)),
            _ => 0,
        }
    }

    fn lower_to(&mut self, other: &Self) {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => lower_each(a, b),
            (Self::Wide(a), Self::Wide(b)) => lower_each(a, b),
            _ => {}
        }
    }

    pub(crate) fn to_array<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Narrow(slots) => PyArray1::from_slice(py, slots).into_any(),
            Self::Wide(slots) => PyArray1::from_slice(py, slots).into_any(),
        }
    }
}

fn lower_each<T: Copy + Ord>(a: &mut [T], b: &[T]) {
    for (a, &b) in a.iter_mut().zip(b) {
        *a = (*a).min(b);
    }
}

/// Returns the value of a slot before anything is added.
fn empty_slot_value(scheme: PermutedScheme) -> u64 {
    match scheme {
        PermutedScheme::Affine32 | PermutedScheme::Legacy => u32::MAX.into(),
        PermutedScheme::Affine64 => u64::MAX,
    }
}

fn scheme_name(scheme: PermutedScheme) -> &'static str {
    match scheme {
        PermutedScheme::Affine32 => "affine32",
        PermutedScheme::Affine64 => "affine64",
        PermutedScheme::Legacy => "legacy",
    }
}

fn scheme_from_name(name: &str) -> PyResult<PermutedScheme> {
    match name {
        "affine32" => Ok(PermutedScheme::Affine32),
        "affine64" => Ok(PermutedScheme::Affine64),
        "legacy" => Ok(PermutedScheme::Legacy),
        _ => Err(PyValueError::new_err(format!(
            "scheme must be one of affine32, affine64, legacy, got '{name}'"
        ))),
    }
}

/// Returns the functions of a scheme, a number of slots and a seed. Drawn functions are cached.
fn cached_functions(scheme: PermutedScheme, slots: usize, seed: u32) -> Arc<PermutedFunctions> {
    static KNOWN: LazyLock<FunctionCache<(PermutedScheme, usize, u32), PermutedFunctions>> =
        LazyLock::new(FunctionCache::new);
    KNOWN.find_or_draw((scheme, slots, seed), || {
        PermutedFunctions::draw_functions(scheme, slots, seed)
    })
}

/// Hashers that no thread uses, with the hashes of messages that they have seen. A process that forks may take the lock
/// along and never release it, so nothing waits for it.
static IDLE_HASHERS: Mutex<Vec<MessageHasher>> = Mutex::new(Vec::new());

/// Largest number of idle hashers. Each has 1 MiB of hashes.
const MOST_IDLE: usize = 16;

/// Calls `visit` with a hasher, the one that was used last if possible.
fn with_hasher<T>(visit: impl FnOnce(&mut MessageHasher) -> T) -> T {
    let idle = IDLE_HASHERS.try_lock().ok().and_then(|mut idle| idle.pop());
    let mut hasher = idle.unwrap_or_default();
    let visited = visit(&mut hasher);
    if let Ok(mut idle) = IDLE_HASHERS.try_lock()
        && idle.len() < MOST_IDLE
    {
        idle.push(hasher);
    }
    visited
}

/// The slots, and the values that are not in them yet.
#[derive(Clone)]
struct SignatureState {
    slots: SlotValues,
    /// Messages that are not hashed yet, one after another; `ends` has the end of each.
    messages: Vec<u8>,
    ends: Vec<usize>,
    /// Hashes that are not in the slots yet, from `hashfunc` or, for the legacy scheme, from
    /// messages.
    hashes: Vec<u64>,
}

impl SignatureState {
    fn new(slots: SlotValues) -> Self {
        Self {
            slots,
            messages: Vec::new(),
            ends: Vec::new(),
            hashes: Vec::new(),
        }
    }

    fn push_message(&mut self, functions: &PermutedFunctions, message: &[u8]) {
        self.messages.extend_from_slice(message);
        self.ends.push(self.messages.len());
        if self.ends.len() >= MOST_PENDING || self.messages.len() >= PENDING_BYTES {
            self.apply_pending(functions);
        }
    }

    fn push_pending_hash(&mut self, functions: &PermutedFunctions, hash: u64) {
        self.hashes.push(hash);
        if self.hashes.len() >= MOST_PENDING {
            self.apply_pending(functions);
        }
    }

    /// Hashes messages that follow one another; `ends` has the end of each.
    fn hash_messages(&mut self, functions: &PermutedFunctions, messages: &[u8], ends: &[usize]) {
        with_hasher(|hasher| {
            self.add_message_hashes(functions, hasher.hash_messages(messages, ends));
        });
    }

    fn add_message_hashes(&mut self, functions: &PermutedFunctions, hashes: &[u64]) {
        if functions.scheme() == PermutedScheme::Legacy {
            let lower = |&hash: &u64| u64::from(hash as u32);
            self.hashes.extend(hashes.iter().map(lower));
        } else {
            add_hashes(functions, hashes, &mut self.slots);
        }
    }

    /// Puts all pending values into the slots.
    fn apply_pending(&mut self, functions: &PermutedFunctions) {
        if !self.ends.is_empty() {
            let mut messages = std::mem::take(&mut self.messages);
            let mut ends = std::mem::take(&mut self.ends);
            self.hash_messages(functions, &messages, &ends);
            messages.clear();
            ends.clear();
            (self.messages, self.ends) = (messages, ends);
        }
        if !self.hashes.is_empty() {
            add_hashes(functions, &self.hashes, &mut self.slots);
            self.hashes.clear();
        }
    }

    /// Puts all pending values into the slots, frees the buffers, and returns the slots.
    fn finished_slots(&mut self, functions: &PermutedFunctions) -> &mut SlotValues {
        if !self.ends.is_empty() || !self.hashes.is_empty() {
            self.apply_pending(functions);
            self.messages = Vec::new();
            self.ends = Vec::new();
            self.hashes = Vec::new();
        }
        &mut self.slots
    }
}

/// Lists of messages, one after another.
#[derive(Default)]
struct MessageLists {
    messages: Vec<u8>,
    /// End of each message.
    ends: Vec<usize>,
    /// Number of messages up to the end of each list.
    lists: Vec<usize>,
}

impl MessageLists {
    fn push_list(&mut self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut push = |value: &Bound<'_, PyAny>| -> PyResult<()> {
            match value.cast::<PyBytes>() {
                Ok(bytes) => self.messages.extend_from_slice(bytes.as_bytes()),
                Err(_) => self
                    .messages
                    .extend_from_slice(buffer_bytes(value)?.as_bytes()),
            }
            self.ends.push(self.messages.len());
            Ok(())
        };
        match values.cast::<PyList>() {
            Ok(list) => list.iter().try_for_each(|value| push(&value))?,
            Err(_) => values.try_iter()?.try_for_each(|value| push(&value?))?,
        }
        self.lists.push(self.ends.len());
        Ok(())
    }

    /// Returns the slots of every list. Threads live only for the call, because a process that forks loses the threads
    /// of a pool.
    fn sign_all(&self, functions: &PermutedFunctions) -> Vec<SlotValues> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (self.messages.len() / THREAD_BYTES).clamp(1, cores);
        let share = self.lists.len().div_ceil(threads).max(1);
        if threads == 1 {
            return self.sign_range(functions, 0, self.lists.len());
        }
        std::thread::scope(|scope| {
            let starts = (0..self.lists.len()).step_by(share);
            let workers: Vec<_> = starts
                .map(|start| {
                    let end = (start + share).min(self.lists.len());
                    scope.spawn(move || self.sign_range(functions, start, end))
                })
                .collect();
            let joined = workers.into_iter().map(|worker| worker.join());
            joined
                .flat_map(|slots| slots.expect("hashing does not panic"))
                .collect()
        })
    }

    /// Returns the slots of some lists.
    fn sign_range(
        &self,
        functions: &PermutedFunctions,
        start: usize,
        end: usize,
    ) -> Vec<SlotValues> {
        let mut slots = Vec::with_capacity(end - start);
        let mut first = start;
        while first < end {
            let before = first.checked_sub(1).map_or(0, |at| self.lists[at]);
            let full = self.lists[first..end]
                .partition_point(|&messages| messages < before + MOST_PENDING);
            let last = (first + full + 1).min(end);
            slots.extend(self.sign_portion(functions, first, last));
            first = last;
        }
        slots
    }

    /// Returns the slots of some lists. Their messages are hashed together, because lists are often shorter than the
    /// number of messages that are hashed side by side. A portion of some thousand messages stays in the cache.
    fn sign_portion(
        &self,
        functions: &PermutedFunctions,
        start: usize,
        end: usize,
    ) -> Vec<SlotValues> {
        let bound = |at: usize| at.checked_sub(1).map_or(0, |at| self.lists[at]);
        let first = bound(start);
        let byte = first.checked_sub(1).map_or(0, |at| self.ends[at]);
        let ends = self.ends[first..bound(end)].iter().map(|end| end - byte);
        let ends: Vec<usize> = ends.collect();
        let until = byte + ends.last().copied().unwrap_or(0);
        with_hasher(|hasher| {
            let hashes = hasher.hash_messages(&self.messages[byte..until], &ends);
            let lists = start..end;
            let sign = |list: usize| {
                let mut state = SignatureState::new(SlotValues::empty_slots(
                    functions.scheme(),
                    functions.slot_count(),
                ));
                state.add_message_hashes(
                    functions,
                    &hashes[bound(list) - first..bound(list + 1) - first],
                );
                state.apply_pending(functions);
                state.slots
            };
            lists.map(sign).collect()
        })
    }
}

fn add_hashes(functions: &PermutedFunctions, hashes: &[u64], slots: &mut SlotValues) {
    match slots {
        SlotValues::Narrow(slots) => {
            let narrow: Vec<u32> = hashes.iter().map(|&hash| hash as u32).collect();
            functions.lower_narrow(&narrow, slots);
        }
        SlotValues::Wide(slots) => functions.lower_wide(hashes, slots),
    }
}

/// A MinHash with the parameters, methods and values of `datasketch`.
///
/// Parameters
/// ----------
/// num_perm : number of functions; ignored if ``hashvalues`` are given.
/// seed : seed of the functions, from 0 to 2**32 - 1.
/// gpu_mode : only "disable", because there is no GPU code here.
/// hashfunc : function from a value of ``update`` to an integer; SHA-1 by default.
/// hashvalues, permutations : state of another MinHash, whose ``scheme`` must also be given.
/// scheme : "affine32" (the default), "affine64" or "legacy", which datasketch had before 2.0.
///
/// >>> from lookalike.compat.datasketch import MinHash
/// >>> a, b = MinHash(), MinHash()
/// >>> for word in "the ferry leaves at seven".split(): a.update(word.encode())
/// >>> for word in "the ferry leaves at eight".split(): b.update(word.encode())
/// >>> a.jaccard(b)
/// 0.7265625
#[pyclass(
    frozen,
    subclass,
    module = "lookalike.compat.datasketch",
    name = "MinHash"
)]
pub(crate) struct MinHash {
    functions: Arc<PermutedFunctions>,
    /// `true` if the functions were given and not drawn.
    given: bool,
    seed: i64,
    hashfunc: Option<Py<PyAny>>,
    /// Never held while Python code may run, because that could switch to another thread that waits
    /// for it.
    state: Mutex<SignatureState>,
}

impl MinHash {
    fn lock_state(&self) -> MutexGuard<'_, SignatureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slots with everything that was added.
    pub(crate) fn slot_values(&self) -> SlotValues {
        self.lock_state().finished_slots(&self.functions).clone()
    }

    /// Calls `visit` with the slots with everything that was added.
    pub(crate) fn with_slots<R>(&self, visit: impl FnOnce(&SlotValues) -> R) -> R {
        visit(self.lock_state().finished_slots(&self.functions))
    }

    pub(crate) fn scheme_name(&self) -> &'static str {
        scheme_name(self.functions.scheme())
    }

    fn copy_with_slots(&self, py: Python<'_>, slots: SlotValues) -> Self {
        Self {
            functions: Arc::clone(&self.functions),
            given: self.given,
            seed: self.seed,
            hashfunc: self
                .hashfunc
                .as_ref()
                .map(|hashfunc| hashfunc.clone_ref(py)),
            state: Mutex::new(SignatureState::new(slots)),
        }
    }

    fn check_alike(&self, other: &Self, what: &str) -> PyResult<()> {
        let differs = if self.functions.scheme() != other.functions.scheme() {
            "different permutation schemes"
        } else if self.seed != other.seed {
            "different seeds"
        } else if self.functions.slot_count() != other.functions.slot_count() {
            "different numbers of permutation functions"
        } else {
            return Ok(());
        };
        Err(PyValueError::new_err(format!(
            "Cannot {what} MinHash with {differs}"
        )))
    }

    fn add_value(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(hashfunc) = &self.hashfunc {
            let hash = hashfunc.bind(value.py()).call1((value,))?;
            let hash = self.check_hash(&hash)?;
            self.lock_state().push_pending_hash(&self.functions, hash);
            return Ok(());
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            self.lock_state()
                .push_message(&self.functions, bytes.as_bytes());
            return Ok(());
        }
        let bytes = buffer_bytes(value)?;
        self.lock_state()
            .push_message(&self.functions, bytes.as_bytes());
        Ok(())
    }

    /// Adds messages. Unlocks the state for values that are not bytes, because Python code may run
    /// then.
    fn add_messages(&self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let mut state = self.lock_state();
        for value in list {
            if let Ok(bytes) = value.cast::<PyBytes>() {
                state.push_message(&self.functions, bytes.as_bytes());
                continue;
            }
            drop(state);
            self.add_value(&value)?;
            state = self.lock_state();
        }
        Ok(())
    }

    /// Adds the messages of a long list: copies them batch by batch and hashes each batch without
    /// the interpreter.
    fn add_long_list(&self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let py = list.py();
        let (mut messages, mut ends) = (Vec::new(), Vec::new());
        let hash = |messages: &mut Vec<u8>, ends: &mut Vec<usize>| {
            py.detach(|| {
                let mut state = self.lock_state();
                state.hash_messages(&self.functions, messages, ends);
                state.apply_pending(&self.functions);
            });
            messages.clear();
            ends.clear();
            py.check_signals()
        };
        for value in list {
            let Ok(bytes) = value.cast::<PyBytes>() else {
                self.add_value(&value)?;
                continue;
            };
            messages.extend_from_slice(bytes.as_bytes());
            ends.push(messages.len());
            if ends.len() >= BATCHED_MESSAGES || messages.len() >= PENDING_BYTES {
                hash(&mut messages, &mut ends)?;
            }
        }
        hash(&mut messages, &mut ends)
    }

    /// Appends one MinHash for each list of messages to `made`. Batches of lists are hashed on all cores, without the
    /// interpreter.
    fn sign_lists(&self, lists: &Bound<'_, PyAny>, made: &Bound<'_, PyList>) -> PyResult<()> {
        let py = lists.py();
        let mut batch = MessageLists::default();
        for values in lists.try_iter()? {
            batch.push_list(&values?)?;
            if batch.messages.len() >= BULK_BYTES {
                self.sign_batch(py, &mut batch, made)?;
            }
        }
        self.sign_batch(py, &mut batch, made)
    }

    fn sign_batch(
        &self,
        py: Python<'_>,
        batch: &mut MessageLists,
        made: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        py.check_signals()?;
        let slots = py.detach(|| batch.sign_all(&self.functions));
        for slots in slots {
            made.append(self.copy_with_slots(py, slots).into_pyobject(py)?)?;
        }
        *batch = MessageLists::default();
        Ok(())
    }

    fn check_hash(&self, hash: &Bound<'_, PyAny>) -> PyResult<u64> {
        let scheme = self.functions.scheme();
        let fits = hash.extract::<u64>().ok().filter(|&hash| match scheme {
            PermutedScheme::Affine32 => hash <= u32::MAX.into(),
            PermutedScheme::Affine64 | PermutedScheme::Legacy => true,
        });
        fits.ok_or_else(|| {
            PyValueError::new_err(format!(
                "hashfunc returned {hash}, a value out of range for scheme '{}': use a hash \
                 function of its width, or scheme='affine64' for 64-bit hash values",
                scheme_name(scheme)
            ))
        })
    }
}

/// Returns a MinHash of this package; a weighted one is converted. For one of another package, the error says how to
/// convert it.
pub(crate) fn minhash_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, MinHash>> {
    if let Ok(minhash) = value.cast::<MinHash>() {
        return Ok(minhash.clone());
    }
    if let Some(convert) = value.getattr_opt("_as_minhash")? {
        return Ok(convert.call0()?.cast_into()?);
    }
    let name = value.get_type().fully_qualified_name()?;
    let others = value.hasattr("hashvalues")? && value.hasattr("scheme")?;
    let advice = if others {
        ": make one of it, MinHash(hashvalues=m.hashvalues, seed=m.seed, scheme=m.scheme)"
    } else {
        ""
    };
    let refusal = format!("{name} is not a lookalike.compat.datasketch.MinHash{advice}");
    Err(PyTypeError::new_err(refusal))
}

/// Returns the bytes of an object with a buffer.
fn buffer_bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "Strings must be encoded before hashing",
        ));
    }
    let view = PyMemoryView::from(value)?;
    Ok(view.call_method0("tobytes")?.cast_into()?)
}

#[pymethods]
impl MinHash {
    #[new]
    #[pyo3(signature = (
        num_perm=128, seed=1, gpu_mode="disable", hashfunc=None, hashobj=None, hashvalues=None,
        permutations=None, scheme=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "those of datasketch")]
    fn new(
        num_perm: i64,
        seed: i64,
        gpu_mode: &str,
        hashfunc: Option<Py<PyAny>>,
        hashobj: Option<Bound<'_, PyAny>>,
        hashvalues: Option<Bound<'_, PyAny>>,
        permutations: Option<Bound<'_, PyAny>>,
        scheme: Option<&str>,
    ) -> PyResult<Self> {
        check_modes(gpu_mode, hashobj.as_ref(), hashfunc.as_ref())?;
        let scheme = match scheme {
            Some(scheme) => scheme_from_name(scheme)?,
            None if hashvalues.is_some() || permutations.is_some() => {
                return Err(PyValueError::new_err(
                    "scheme must be specified explicitly when initializing from existing hash \
                     values or permutations: pass the scheme of the MinHash they came from, or \
                     scheme='legacy' for values created by datasketch before 2.0.0",
                ));
            }
            None => PermutedScheme::Affine32,
        };
        let given = hashvalues
            .map(|values| read_slots(scheme, &values))
            .transpose()?;
        let count = match &given {
            Some(slots) => slots.len(),
            None => usize::try_from(num_perm).unwrap_or(0),
        };
        if count == 0 {
            return Err(PyValueError::new_err("num_perm must be positive"));
        }
        if count > MOST_FUNCTIONS {
            return Err(PyValueError::new_err(format!(
                "num_perm is {count}: give at most {MOST_FUNCTIONS}"
            )));
        }
        let functions = match &permutations {
            Some(given) => Arc::new(read_functions(scheme, given)?),
            None => {
                let seed = u32::try_from(seed).map_err(|_| {
                    PyValueError::new_err(format!("seed is {seed}: give one from 0 to 2**32 - 1"))
                })?;
                cached_functions(scheme, count, seed)
            }
        };
        if functions.slot_count() != count {
            return Err(PyValueError::new_err(
                "Numbers of hash values and permutations mismatch",
            ));
        }
        Ok(Self {
            functions,
            given: permutations.is_some(),
            seed,
            hashfunc,
            state: Mutex::new(SignatureState::new(
                given.unwrap_or_else(|| SlotValues::empty_slots(scheme, count)),
            )),
        })
    }

    /// Adds a value: bytes, or what ``hashfunc`` takes.
    fn update(&self, b: &Bound<'_, PyAny>) -> PyResult<()> {
        self.add_value(b)
    }

    /// Adds many values.
    fn update_batch(&self, b: &Bound<'_, PyAny>) -> PyResult<()> {
        let list = b.cast::<PyList>().ok().filter(|_| self.hashfunc.is_none());
        if let Some(list) = list {
            return if list.len() < BATCHED_MESSAGES {
                self.add_messages(list)
            } else {
                self.add_long_list(list)
            };
        }
        b.try_iter()?.try_for_each(|value| self.add_value(&value?))
    }

    /// Estimates the Jaccard index of the values that were added to both.
    fn jaccard(&self, other: &Bound<'_, PyAny>) -> PyResult<f64> {
        let other = minhash_of(other)?;
        let other = other.get();
        self.check_alike(other, "compute Jaccard given")?;
        let slots = other.slot_values();
        let equal = self.with_slots(|own| own.count_equal(&slots));
        Ok(equal as f64 / slots.len() as f64)
    }

    /// Estimates the number of distinct values that were added.
    fn count(&self) -> f64 {
        let most = empty_slot_value(self.functions.scheme()) as f64;
        self.with_slots(|slots| {
            let sum: f64 = match slots {
                SlotValues::Narrow(slots) => slots.iter().map(|&slot| f64::from(slot) / most).sum(),
                SlotValues::Wide(slots) => slots.iter().map(|&slot| slot as f64 / most).sum(),
            };
            slots.len() as f64 / sum - 1.0
        })
    }

    /// Adds all values that were added to the other.
    fn merge(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let other = minhash_of(other)?;
        let other = other.get();
        self.check_alike(other, "merge")?;
        let slots = other.slot_values();
        self.lock_state()
            .finished_slots(&self.functions)
            .lower_to(&slots);
        Ok(())
    }

    /// Returns a copy of the hash values.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.slot_values().to_array(py)
    }

    /// Returns True if nothing was added.
    fn is_empty(&self) -> bool {
        let empty = SlotValues::empty_slots(self.functions.scheme(), self.functions.slot_count());
        self.with_slots(|slots| *slots == empty)
    }

    /// Removes everything that was added.
    fn clear(&self) {
        let empty = SlotValues::empty_slots(self.functions.scheme(), self.functions.slot_count());
        *self.lock_state() = SignatureState::new(empty);
    }

    /// Returns another MinHash with the same state.
    fn copy(&self, py: Python<'_>) -> Self {
        self.copy_with_slots(py, self.slot_values())
    }

    fn __len__(&self) -> usize {
        self.functions.slot_count()
    }

    fn __eq__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else {
            return false;
        };
        let same_type = this.get_type().is(other.get_type());
        let (own, other) = (this.get(), other.get());
        same_type
            && own.functions.scheme() == other.functions.scheme()
            && own.seed == other.seed
            && own.slot_values() == other.slot_values()
    }

    fn __repr__(&self) -> String {
        format!(
            "<MinHash {} num_perm={} seed={}>",
            self.scheme_name(),
            self.functions.slot_count(),
            self.seed
        )
    }

    /// The hash values as a read-only array. Assign another array to change them.
    #[getter]
    fn hashvalues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.digest(py);
        array.getattr("flags")?.setattr("writeable", false)?;
        Ok(array)
    }

    #[setter]
    fn set_hashvalues(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let slots = read_slots(self.functions.scheme(), values)?;
        if slots.len() != self.functions.slot_count() {
            return Err(PyValueError::new_err(
                "Numbers of hash values and permutations mismatch",
            ));
        }
        *self.lock_state() = SignatureState::new(slots);
        Ok(())
    }

    /// The factors and the summands of the functions, in two rows.
    #[getter]
    fn permutations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = [self.functions.factors(), self.functions.summands()].concat();
        let shape = [2, self.functions.slot_count()];
        Ok(match self.functions.scheme() {
            PermutedScheme::Affine32 => {
                let narrow: Vec<u32> = numbers.into_iter().map(|number| number as u32).collect();
                narrow.into_pyarray(py).reshape(shape)?.into_any()
            }
            PermutedScheme::Affine64 | PermutedScheme::Legacy => {
                numbers.into_pyarray(py).reshape(shape)?.into_any()
            }
        })
    }

    #[getter]
    fn num_perm(&self) -> usize {
        self.functions.slot_count()
    }

    #[getter]
    fn seed(&self) -> i64 {
        self.seed
    }

    #[getter]
    fn scheme(&self) -> &'static str {
        self.scheme_name()
    }

    /// The function from a value to an integer, by default one of SHA-1.
    #[getter]
    fn hashfunc(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.hashfunc {
            Some(hashfunc) => Ok(hashfunc.clone_ref(py)),
            None => {
                let name = match self.functions.scheme() {
                    PermutedScheme::Affine64 => "sha1_hash64",
                    PermutedScheme::Affine32 | PermutedScheme::Legacy => "sha1_hash32",
                };
                Ok(py.import("lookalike._hashfunc")?.getattr(name)?.unbind())
            }
        }
    }

    /// Returns the union of two or more.
    #[classmethod]
    #[pyo3(signature = (*mhs))]
    fn union(class: &Bound<'_, PyType>, mhs: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let all: Vec<_> = mhs
            .iter()
            .map(|one| minhash_of(&one))
            .collect::<PyResult<_>>()?;
        let [first, rest @ ..] = &all[..] else {
            return Err(PyValueError::new_err("Cannot union less than 2 MinHash"));
        };
        if rest.is_empty() {
            return Err(PyValueError::new_err("Cannot union less than 2 MinHash"));
        }
        let mut slots = first.get().slot_values();
        for one in rest {
            first.get().check_alike(one.get(), "union")?;
            slots.lower_to(&one.get().slot_values());
        }
        Ok(first.get().copy_with_slots(class.py(), slots))
    }

    /// Returns one MinHash for each list of values.
    #[classmethod]
    #[pyo3(signature = (b, **minhash_kwargs))]
    fn bulk<'py>(
        class: &Bound<'py, PyType>,
        b: &Bound<'py, PyAny>,
        minhash_kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let empty = class.call((), minhash_kwargs)?;
        let made = PyList::empty(class.py());
        if let Ok(plain) = empty.cast_exact::<Self>()
            && plain.get().hashfunc.is_none()
        {
            plain.get().sign_lists(b, &made)?;
            return Ok(made);
        }
        for values in b.try_iter()? {
            class.py().check_signals()?;
            let one = empty.call_method0("copy")?;
            one.call_method1("update_batch", (values?,))?;
            made.append(one)?;
        }
        Ok(made)
    }

    /// Yields one MinHash for each list of values.
    #[classmethod]
    #[pyo3(signature = (b, **minhash_kwargs))]
    fn generator<'py>(
        class: &Bound<'py, PyType>,
        b: &Bound<'py, PyAny>,
        minhash_kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let empty = class.call((), minhash_kwargs)?;
        let module = class.py().import("lookalike._hashfunc")?;
        module.getattr("each")?.call1((empty, b))
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>, Bound<'py, PyAny>)> {
        let (py, own) = (this.py(), this.get());
        if this.as_any().cast_exact::<Self>().is_ok() && !own.given && own.hashfunc.is_none() {
            static RESTORE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let restore = RESTORE
                .import(py, "lookalike._engine", "restore_minhash")?
                .clone();
            let state = own.with_slots(|slots| PyBytes::new(py, &slots.to_le_bytes()));
            let state = (state, own.seed, own.scheme()).into_pyobject(py)?;
            return Ok((restore, state, py.None().into_bound(py)));
        }
        let permutations = own.given.then(|| own.permutations(py)).transpose()?;
        let hashfunc = own
            .hashfunc
            .as_ref()
            .map(|hashfunc| hashfunc.bind(py).clone());
        let state = (
            own.num_perm(),
            own.seed,
            "disable",
            hashfunc,
            py.None(),
            own.digest(py),
            permutations,
            own.scheme(),
        );
        let attributes = this.as_any().getattr_opt("__dict__")?;
        let attributes = attributes.unwrap_or_else(|| py.None().into_bound(py));
        let class = this.get_type().into_any();
        Ok((class, state.into_pyobject(py)?, attributes))
    }
}

/// Returns the MinHash that a pickle describes: the slots as little-endian bytes, the seed and the scheme.
#[pyfunction]
pub(crate) fn restore_minhash(slots: &[u8], seed: i64, scheme: &str) -> PyResult<MinHash> {
    let scheme = scheme_from_name(scheme)?;
    let damaged = || PyValueError::new_err("the pickle of a MinHash is damaged");
    let slots = SlotValues::from_le_bytes(scheme, slots)
        .filter(|slots| (1..=MOST_FUNCTIONS).contains(&slots.len()))
        .ok_or_else(damaged)?;
    let drawn = u32::try_from(seed).map_err(|_| damaged())?;
    Ok(MinHash {
        functions: cached_functions(scheme, slots.len(), drawn),
        given: false,
        seed,
        hashfunc: None,
        state: Mutex::new(SignatureState::new(slots)),
    })
}

fn check_modes(
    gpu_mode: &str,
    hashobj: Option<&Bound<'_, PyAny>>,
    hashfunc: Option<&Py<PyAny>>,
) -> PyResult<()> {
    match gpu_mode {
        "disable" | "detect" => {}
        "always" => {
            return Err(PyRuntimeError::new_err(
                "GPU mode 'always' requested, but there is no GPU code here",
            ));
        }
        _ => {
            return Err(PyValueError::new_err(format!(
                "gpu_mode is '{gpu_mode}', which is not one of disable, detect, always"
            )));
        }
    }
    if hashobj.is_some() {
        return Err(PyValueError::new_err(
            "hashobj has had no effect since datasketch 1.4: use hashfunc instead",
        ));
    }
    let callable = |hashfunc: &Py<PyAny>| Python::attach(|py| hashfunc.bind(py).is_callable());
    if hashfunc.is_some_and(|hashfunc| !callable(hashfunc)) {
        return Err(PyValueError::new_err("The hashfunc must be a callable."));
    }
    Ok(())
}

/// Reads an array of whole numbers, none of which exceeds the largest slot of the scheme.
fn read_slots(scheme: PermutedScheme, values: &Bound<'_, PyAny>) -> PyResult<SlotValues> {
    if scheme == PermutedScheme::Affine32
        && let Ok(narrow) = values.extract::<PyReadonlyArray1<'_, u32>>()
    {
        return Ok(SlotValues::Narrow(narrow.as_array().to_vec()));
    }
    let wide = to_wide_array(values, 1)?;
    let wide: PyReadonlyArray1<'_, u64> = wide.extract()?;
    let wide = wide.as_array();
    let widest = wide.iter().copied().max().unwrap_or(0);
    if scheme != PermutedScheme::Legacy && widest > empty_slot_value(scheme) {
        return Err(PyValueError::new_err(format!(
            "hash values out of range for scheme '{}': {widest}",
            scheme_name(scheme)
        )));
    }
    Ok(match scheme {
        PermutedScheme::Affine32 => {
            SlotValues::Narrow(wide.iter().map(|&slot| slot as u32).collect())
        }
        PermutedScheme::Affine64 | PermutedScheme::Legacy => SlotValues::Wide(wide.to_vec()),
    })
}

fn read_functions(
    scheme: PermutedScheme,
    values: &Bound<'_, PyAny>,
) -> PyResult<PermutedFunctions> {
    let wide = to_wide_array(values, 2)?;
    let wide: PyReadonlyArray2<'_, u64> = wide.extract()?;
    let rows = wide.as_array();
    if rows.nrows() != 2 {
        return Err(PyValueError::new_err(
            "permutations are two rows: factors and summands",
        ));
    }
    PermutedFunctions::new(scheme, rows.row(0).to_vec(), rows.row(1).to_vec())
        .map_err(engine_error_to_py)
}

/// Converts whole numbers from 0 on to an array of 64-bit integers.
fn to_wide_array<'py>(
    values: &Bound<'py, PyAny>,
    dimensions: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let module = values.py().import("lookalike._hashfunc")?;
    module.getattr("as_wide")?.call1((values, dimensions))
}
