//! A walk over the objects of a log in the order of their numbers, with the places where one is missing.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::keys::{PRUNED_KEY, RECORD_PREFIX, parse_record_key, record_key};
use crate::store::{LogStore, StoreError};

/// Objects that are read at a time.
pub(super) const OBJECTS_PER_READ: u64 = 32;

/// Content of the object that says which records may have been removed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PrunedRecords {
    /// Records before this number may have been removed.
    pub(super) before: u64,
}

/// A record in the list of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedRecord {
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// Reads the number of the first record that must exist: 1, or the one before which the log was pruned. One request.
///
/// # Errors
/// If the request fails, or the object that says so is malformed.
pub fn read_first_number(store: &dyn LogStore) -> Result<u64, StoreError> {
    let Some(object) = store.read(PRUNED_KEY)? else {
        return Ok(1);
    };
    let pruned: PrunedRecords = serde_json::from_slice(&object).map_err(|cause| {
        StoreError::permanent(format!(
            "object '{PRUNED_KEY}' does not say before which record the log was pruned ({cause}): write it as \
             {{\"before\":N}}, with the number of the first record that exists"
        ))
    })?;
    Ok(pruned.before.max(1))
}

/// Lists the records of a log, by their numbers. The list may be older than the last change.
pub(super) fn list_records(store: &dyn LogStore) -> Result<Vec<ListedRecord>, StoreError> {
    let listed = store.list(RECORD_PREFIX)?;
    let records = listed.into_iter().filter_map(|object| {
        let number = parse_record_key(&object.key)?;
        let bytes = object.bytes;
        Some(ListedRecord { number, bytes })
    });
    Ok(records.collect())
}

/// A walk from one number to the end of the log.
pub(super) struct LogWalk<'store> {
    store: &'store dyn LogStore,
    /// Number of the next object that is read.
    next: u64,
    /// Largest number of a list.
    listed_last: u64,
    read: VecDeque<WalkedObject>,
    is_at_end: bool,
}

/// One place of a walk.
pub(super) struct WalkedObject {
    pub(super) number: u64,
    /// `None` if the object is missing.
    pub(super) object: Option<Vec<u8>>,
}

impl<'store> LogWalk<'store> {
    pub(super) fn new(store: &'store dyn LogStore, first: u64) -> Result<Self, StoreError> {
        let listed = list_records(store)?;
        Ok(Self {
            store,
            next: first,
            listed_last: listed.last().map_or(0, |record| record.number),
            read: VecDeque::new(),
            is_at_end: false,
        })
    }

    /// Returns the next place; `None` after the last object.
    pub(super) fn next_object(&mut self) -> Result<Option<WalkedObject>, StoreError> {
        if self.read.is_empty() && !self.is_at_end {
            self.read_objects()?;
        }
        Ok(self.read.pop_front())
    }

    fn read_objects(&mut self) -> Result<(), StoreError> {
        let numbers = self.next..self.next.saturating_add(OBJECTS_PER_READ);
        let keys: Vec<String> = numbers.clone().map(record_key).collect();
        let objects = self.store.read_several(&keys)?;
        for (number, object) in numbers.zip(objects) {
            // Objects that are read at the same time need not be from one moment: beyond the list a record that is not
            // there is the end, even if a later one is there.
            if object.is_none() && number > self.listed_last {
                self.is_at_end = true;
                break;
            }
            self.read.push_back(WalkedObject { number, object });
            self.next = number.saturating_add(1);
        }
        Ok(())
    }
}
