//! The operations that a shared log needs of an object store, as a trait, so that another kind of store can follow and
//! tests can inject faults.

use std::fmt;
use std::time::{Duration, SystemTime};

/// Prefix of the keys of objects that check a store.
const CHECK_PREFIX: &str = "checks/";

/// Objects of a shared log. Keys are relative, with `/` between their parts.
///
/// [`LogStore::read`] must return an object that a completed [`LogStore::create`] created: all correctness rests on
/// these two.
pub trait LogStore: Send + Sync + fmt::Debug {
    /// Creates an object, only if it does not exist.
    ///
    /// # Errors
    /// If the store cannot be reached or refuses the request. The outcome is unknown then: the object may exist, or
    /// may come to exist later.
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError>;

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// If the store cannot be reached or refuses the request.
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Creates an object, and at the same time reads the objects before and after it. There is none before if `previous`
    /// is `None`.
    ///
    /// The default makes the three requests one after another.
    ///
    /// # Errors
    /// As [`LogStore::create`]; also if another object cannot be read.
    fn create_between(
        &self,
        key: &str,
        bytes: &[u8],
        previous: Option<&str>,
        next: &str,
    ) -> Result<CreatedBetween, StoreError> {
        let outcome = self.create(key, bytes)?;
        let previous = match previous {
            Some(previous) => self.read(previous)?,
            None => None,
        };
        let next = self.read(next)?;
        Ok(CreatedBetween {
            outcome,
            previous,
            next,
        })
    }

    /// Reads several objects, in the order of their keys in `keys`. They need not be from one moment.
    ///
    /// The default reads one after another.
    ///
    /// # Errors
    /// As [`LogStore::read`].
    fn read_several(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        keys.iter().map(|key| self.read(key)).collect()
    }

    /// Writes an object, which replaces an existing one. Records are written so only by repair.
    ///
    /// # Errors
    /// As [`LogStore::create`].
    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Returns the objects whose keys begin with `prefix`, sorted by key. `prefix` ends with `/`. A list may be older
    /// than the last change, so no correctness rests on it.
    ///
    /// # Errors
    /// As [`LogStore::read`].
    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError>;

    /// Returns the time at which the store says that an object was written; `None` if the object does not exist or the
    /// store has no clock, which is the default.
    ///
    /// # Errors
    /// As [`LogStore::read`].
    fn written_at(&self, _key: &str) -> Result<Option<SystemTime>, StoreError> {
        Ok(None)
    }

    /// Removes an object. An object that does not exist is no error.
    ///
    /// # Errors
    /// As [`LogStore::create`].
    fn remove(&self, key: &str) -> Result<(), StoreError>;
}

/// Outcome of [`LogStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The object was created by this call.
    Created,
    /// The object existed, perhaps because an earlier attempt of the same caller had created it.
    AlreadyExists,
}

/// Outcome of [`LogStore::create_between`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedBetween {
    /// Outcome of the creation.
    pub outcome: CreateOutcome,
    /// The object before, if it exists.
    pub previous: Option<Vec<u8>>,
    /// The object after, if it exists.
    pub next: Option<Vec<u8>>,
}

/// An object of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Key of the object.
    pub key: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change, in microseconds since 1970 by the clock of the store; `None` if the store has none.
    pub modified_us: Option<i64>,
}

/// A failed request to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Sentence that names the object and the reason.
    pub message: String,
    /// `true` if the same request may succeed later without a change of settings: the store was throttled, gave no
    /// answer in time or answered with a server error.
    pub is_retryable: bool,
}

impl StoreError {
    /// Returns the error of a request that may succeed later.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_retryable: true,
        }
    }

    /// Returns the error of a request that fails until somebody changes something.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_retryable: false,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

/// Largest lead of the clock of a machine before that of the store.
const MAX_CLOCK_LEAD: Duration = Duration::from_secs(300);

/// Checks that the clock of this machine is not ahead of that of the store: the records of a replica would move the clock
/// of all replicas for good.
///
/// Writes and removes one object below `checks/`.
///
/// # Errors
/// With a permanent error if it is more than five minutes ahead; also if a request fails.
pub fn check_machine_clock(store: &dyn LogStore, replica: &str) -> Result<(), StoreError> {
    let key = format!("{CHECK_PREFIX}{replica}-clock-{:032x}", random_number()?);
    let machine = SystemTime::now();
    store.replace(&key, b"clock")?;
    let written = store.written_at(&key)?;
    store.remove(&key)?;
    let lead = written.and_then(|written| machine.duration_since(written).ok());
    match lead.filter(|lead| *lead > MAX_CLOCK_LEAD) {
        None => Ok(()),
        Some(lead) => Err(StoreError::permanent(format!(
            "the clock of this machine is {} s ahead of that of the store, and {} s is the limit: set it by a time server \
             (NTP)",
            lead.as_secs(),
            MAX_CLOCK_LEAD.as_secs()
        ))),
    }
}

/// Checks that a store creates an object only if it does not exist, and keeps the first one. A store that ignores the
/// condition would lose records.
///
/// Writes and removes one object below `checks/`.
///
/// # Errors
/// With a permanent error if the store overwrites objects; also if a request fails.
pub fn check_exclusive_creation(store: &dyn LogStore, replica: &str) -> Result<(), StoreError> {
    // Two processes of one name, started at once, would meet under one key.
    let key = format!("{CHECK_PREFIX}{replica}-{:032x}", random_number()?);
    store.create(&key, b"first")?;
    let second = store.create(&key, b"second")?;
    let kept = store.read(&key)?;
    store.remove(&key)?;
    if second == CreateOutcome::AlreadyExists && kept.as_deref() == Some(b"first") {
        return Ok(());
    }
    Err(StoreError::permanent(format!(
        "the store has overwritten object '{key}', which existed: a shared log needs a store that creates objects only \
         if they do not exist (the header 'If-None-Match: *' of S3)"
    )))
}

/// Returns 128 random bits of the operating system.
pub(crate) fn random_number() -> Result<u128, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|cause| {
        StoreError::permanent(format!(
            "the operating system has no random numbers: {cause}"
        ))
    })?;
    Ok(u128::from_le_bytes(bytes))
}
