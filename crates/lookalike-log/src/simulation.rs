//! Stores for tests: objects in memory, and a store that loses, delays and refuses requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{CreateOutcome, ListedObject, LogStore, StoreError};

/// A store in memory, without faults.
#[derive(Debug, Default)]
pub struct MemoryStore {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogStore for MemoryStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        Ok(create_object(&mut self.lock(), key, bytes))
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().get(key).cloned())
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.lock().insert(key.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        let objects = self.lock();
        Ok(list_objects(
            objects.iter().map(|(key, object)| (key, object.len())),
            prefix,
        ))
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.lock().remove(key);
        Ok(())
    }
}

fn create_object(
    objects: &mut BTreeMap<String, Vec<u8>>,
    key: &str,
    bytes: &[u8],
) -> CreateOutcome {
    if objects.contains_key(key) {
        return CreateOutcome::AlreadyExists;
    }
    objects.insert(key.to_owned(), bytes.to_owned());
    CreateOutcome::Created
}

fn list_objects<'objects>(
    objects: impl Iterator<Item = (&'objects String, usize)>,
    prefix: &str,
) -> Vec<ListedObject> {
    let listed = objects.filter(|(key, _)| key.starts_with(prefix));
    listed
        .map(|(key, bytes)| ListedObject {
            key: key.clone(),
            bytes: bytes as u64,
            modified_us: None,
        })
        .collect()
}

/// Probabilities of the faults of a [`SimulatedStore`], from 0 to 1 for each request, and their extent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultRates {
    /// A request takes effect, and its answer is lost.
    pub lost_answer: f64,
    /// A request is lost before it takes effect.
    pub lost_request: f64,
    /// A write has no answer and takes effect later, after 1 to `late_operations` more requests.
    pub late_write: f64,
    /// The store answers 500 or 503 and does nothing.
    pub server_error: f64,
    /// A list is as old as up to `late_operations` requests.
    pub stale_list: f64,
    /// An outage begins: the next requests, 1 to `outage_operations`, fail.
    pub outage: f64,
    /// Most requests by which a write or a list is late.
    pub late_operations: u64,
    /// Most requests that fail in an outage.
    pub outage_operations: u64,
}

impl FaultRates {
    /// No faults.
    pub const NONE: Self = Self {
        lost_answer: 0.0,
        lost_request: 0.0,
        late_write: 0.0,
        server_error: 0.0,
        stale_list: 0.0,
        outage: 0.0,
        late_operations: 0,
        outage_operations: 0,
    };

    /// All faults, each with the probability `rate`; outages with a tenth of it.
    pub fn with_all(rate: f64) -> Self {
        Self {
            lost_answer: rate,
            lost_request: rate,
            late_write: rate,
            server_error: rate,
            stale_list: rate,
            outage: rate / 10.0,
            late_operations: 40,
            outage_operations: 20,
        }
    }
}

/// Requests to a [`SimulatedStore`], those that failed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Calls of `create`.
    pub creates: u64,
    /// Calls of `read`.
    pub reads: u64,
    /// Calls of `replace`.
    pub replaces: u64,
    /// Calls of `list`.
    pub lists: u64,
    /// Calls of `remove`.
    pub removes: u64,
    /// Calls that returned an error.
    pub failed: u64,
}

/// A store in memory that fails as object stores do, by pseudo-random numbers of a seed: the same calls have the same
/// outcomes.
#[derive(Debug)]
pub struct SimulatedStore {
    state: Mutex<SimulationState>,
}

#[derive(Debug)]
struct SimulationState {
    objects: BTreeMap<String, Vec<u8>>,
    /// Number of the request that created or removed an object last, and the object's size before.
    changes: BTreeMap<String, LastChange>,
    late_writes: Vec<LateWrite>,
    rates: FaultRates,
    random: RandomNumbers,
    /// Requests so far.
    operation: u64,
    /// Request with which an outage ends.
    outage_end: u64,
    counts: OperationCounts,
}

#[derive(Debug)]
struct LastChange {
    operation: u64,
    bytes_before: Option<usize>,
}

/// A write without an answer.
#[derive(Debug)]
struct LateWrite {
    due: u64,
    key: String,
    change: ObjectChange,
}

#[derive(Clone, Debug)]
enum ObjectChange {
    Create(Vec<u8>),
    Replace(Vec<u8>),
    Remove,
}

/// Kind of a request.
#[derive(Clone, Copy)]
enum RequestKind {
    Create,
    Read,
    Replace,
    List,
    Remove,
}

/// Fate of a request that reaches the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestFate {
    Answered,
    LostAnswer,
    Late,
}

impl SimulatedStore {
    /// Creates an empty store.
    pub fn new(seed: u64, rates: FaultRates) -> Self {
        Self {
            state: Mutex::new(SimulationState {
                objects: BTreeMap::new(),
                changes: BTreeMap::new(),
                late_writes: Vec::new(),
                rates,
                random: RandomNumbers::new(seed),
                operation: 0,
                outage_end: 0,
                counts: OperationCounts::default(),
            }),
        }
    }

    /// Changes the probabilities of faults from now on.
    pub fn set_rates(&self, rates: FaultRates) {
        self.lock().rates = rates;
    }

    /// Begins an outage: the next requests fail.
    pub fn begin_outage(&self, operations: u64) {
        let mut state = self.lock();
        state.outage_end = state.operation + operations;
    }

    /// Lets all late writes take effect, and ends an outage.
    pub fn settle_writes(&self) {
        let mut state = self.lock();
        state.land_writes(u64::MAX);
        state.outage_end = 0;
    }

    /// Returns the requests so far, by kind.
    pub fn operation_counts(&self) -> OperationCounts {
        self.lock().counts
    }

    /// Returns the object of a key, without a request.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.lock().objects.get(key).cloned()
    }

    /// Puts an object in place, without a request.
    pub fn set_object(&self, key: &str, bytes: &[u8]) {
        let change = ObjectChange::Replace(bytes.to_owned());
        self.lock().apply_change(key, &change);
    }

    /// Removes an object, without a request.
    pub fn clear_object(&self, key: &str) {
        self.lock().apply_change(key, &ObjectChange::Remove);
    }

    fn lock(&self) -> MutexGuard<'_, SimulationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        kind: RequestKind,
        key: &str,
        change: ObjectChange,
    ) -> Result<CreateOutcome, StoreError> {
        let mut state = self.lock();
        let fate = state.begin_request(kind, key)?;
        if fate == RequestFate::Late {
            let due = state.operation + state.draw_lateness();
            let late = LateWrite {
                due,
                key: key.to_owned(),
                change,
            };
            state.late_writes.push(late);
            return Err(state.fail_request("no answer in time", key));
        }
        let outcome = state.apply_change(key, &change);
        match fate {
            RequestFate::LostAnswer => Err(state.fail_request("no answer in time", key)),
            _ => Ok(outcome),
        }
    }
}

impl LogStore for SimulatedStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        let change = ObjectChange::Create(bytes.to_owned());
        self.write(RequestKind::Create, key, change)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut state = self.lock();
        match state.begin_request(RequestKind::Read, key)? {
            RequestFate::Answered => Ok(state.objects.get(key).cloned()),
            _ => Err(state.fail_request("no answer in time", key)),
        }
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let change = ObjectChange::Replace(bytes.to_owned());
        self.write(RequestKind::Replace, key, change).map(|_| ())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        let mut state = self.lock();
        match state.begin_request(RequestKind::List, prefix)? {
            RequestFate::Answered => Ok(state.list_objects(prefix)),
            _ => Err(state.fail_request("no answer in time", prefix)),
        }
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.write(RequestKind::Remove, key, ObjectChange::Remove)
            .map(|_| ())
    }
}

impl SimulationState {
    /// Counts a request, and decides its fate.
    fn begin_request(&mut self, kind: RequestKind, key: &str) -> Result<RequestFate, StoreError> {
        self.operation += 1;
        self.count_request(kind);
        self.land_writes(self.operation);
        if self.operation <= self.outage_end {
            return Err(self.fail_request("503 Service Unavailable", key));
        }
        let rates = self.rates;
        if self.random.is_drawn(rates.outage) {
            self.outage_end = self.operation + 1 + self.random.below(rates.outage_operations);
        }
        if self.random.is_drawn(rates.server_error) {
            let answers = ["500 Internal Server Error", "503 Slow Down"];
            let answer = answers[self.random.below(2) as usize];
            return Err(self.fail_request(answer, key));
        }
        if self.random.is_drawn(rates.lost_request) {
            return Err(self.fail_request("no answer in time", key));
        }
        if self.random.is_drawn(rates.lost_answer) {
            return Ok(RequestFate::LostAnswer);
        }
        let is_write = !matches!(kind, RequestKind::Read | RequestKind::List);
        if is_write && self.random.is_drawn(rates.late_write) {
            return Ok(RequestFate::Late);
        }
        Ok(RequestFate::Answered)
    }

    fn count_request(&mut self, kind: RequestKind) {
        let count = match kind {
            RequestKind::Create => &mut self.counts.creates,
            RequestKind::Read => &mut self.counts.reads,
            RequestKind::Replace => &mut self.counts.replaces,
            RequestKind::List => &mut self.counts.lists,
            RequestKind::Remove => &mut self.counts.removes,
        };
        *count += 1;
    }

    fn fail_request(&mut self, answer: &str, key: &str) -> StoreError {
        self.counts.failed += 1;
        let operation = self.operation;
        StoreError::retryable(format!("request {operation} for object '{key}': {answer}"))
    }

    /// Returns by how many requests something is late.
    fn draw_lateness(&mut self) -> u64 {
        1 + self.random.below(self.rates.late_operations)
    }

    /// Lets the late writes take effect that are due before or with a request.
    fn land_writes(&mut self, operation: u64) {
        let late_writes = std::mem::take(&mut self.late_writes);
        for late in late_writes {
            if late.due <= operation {
                self.apply_change(&late.key, &late.change);
            } else {
                self.late_writes.push(late);
            }
        }
    }

    fn apply_change(&mut self, key: &str, change: &ObjectChange) -> CreateOutcome {
        let bytes_before = self.objects.get(key).map(Vec::len);
        let outcome = match change {
            ObjectChange::Create(bytes) => create_object(&mut self.objects, key, bytes),
            ObjectChange::Replace(bytes) => {
                self.objects.insert(key.to_owned(), bytes.clone());
                CreateOutcome::Created
            }
            ObjectChange::Remove => {
                self.objects.remove(key);
                CreateOutcome::Created
            }
        };
        let last = LastChange {
            operation: self.operation,
            bytes_before,
        };
        if outcome == CreateOutcome::Created {
            self.changes.insert(key.to_owned(), last);
        }
        outcome
    }

    /// Lists objects, perhaps as they were some requests ago. Only the last change of an object is hidden.
    fn list_objects(&mut self, prefix: &str) -> Vec<ListedObject> {
        let lateness = if self.random.is_drawn(self.rates.stale_list) {
            self.draw_lateness()
        } else {
            0
        };
        let seen = self.operation.saturating_sub(lateness);
        let mut sizes = BTreeMap::new();
        for (key, change) in &self.changes {
            let size = if change.operation > seen {
                change.bytes_before
            } else {
                self.objects.get(key).map(Vec::len)
            };
            sizes.extend(size.map(|size| (key, size)));
        }
        list_objects(sizes.into_iter(), prefix)
    }
}

/// Pseudo-random numbers of a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct RandomNumbers(u64);

impl RandomNumbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next_number() % end.max(1)
    }

    fn is_drawn(&mut self, probability: f64) -> bool {
        // 53 bits are a fraction without rounding.
        let fraction = (self.next_number() >> 11) as f64 / (1u64 << 53) as f64;
        fraction < probability
    }
}
