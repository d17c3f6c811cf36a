//! Index of fingerprints, searched within a Hamming distance.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lookalike::Distance;
use lookalike::hamming::FingerprintCode;
use lookalike::hamming::live::{LiveIndex, SequenceNumber};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::{SettingError, engine_error_to_py};
use crate::run::PythonSignals;

/// Codes that are added, removed or searched between two checks for signals. A search with many
/// matches takes at most a second for so many.
const CODES_BETWEEN_CHECKS: usize = 128;

/// Matches of a search: the positions of queries, ids, and distances.
type FoundArrays<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
);

/// Fingerprints of at most 64 or at most 128 bits.
enum LiveCodes {
    Narrow(LiveIndex<u64>),
    Wide(LiveIndex<u128>),
}

/// Ids of fingerprints by sequence number, and sequence numbers by id.
#[derive(Default)]
struct CodeIds {
    by_number: Vec<u64>,
    numbers: HashMap<u64, u64>,
    /// Words of every fingerprint by sequence number: one word, or two with the lower one first.
    words: Vec<u64>,
}

/// The codes and the ids of an index.
type IndexedCodes<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray1<u64>>);

/// An index of fingerprints that can be added and removed.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct HammingIndexBase {
    codes: LiveCodes,
    bits: u32,
    distance: Distance,
    /// Id of the next code that is added without one.
    next: AtomicU64,
    ids: RwLock<CodeIds>,
}

impl HammingIndexBase {
    fn read_ids(&self) -> RwLockReadGuard<'_, CodeIds> {
        self.ids.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_ids(&self) -> RwLockWriteGuard<'_, CodeIds> {
        self.ids.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds codes, or none of them after an error or an interrupt.
    fn add_all_codes<C: FingerprintCode>(
        &self,
        live: &LiveIndex<C>,
        codes: &[C],
        new: &[u64],
    ) -> PyResult<()> {
        self.read_ids().check_new_ids(new)?;
        let mut signals = PythonSignals::new();
        for (portion, codes) in codes.chunks(CODES_BETWEEN_CHECKS).enumerate() {
            let (before, rest) = new.split_at(portion * CODES_BETWEEN_CHECKS);
            let handled = signals.handle_signals();
            let mut ids = self.write_ids();
            let added = handled.and_then(|()| ids.add_codes(live, codes, &rest[..codes.len()]));
            if let Err(error) = added {
                ids.remove_ids(live, before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_all<C: FingerprintCode>(&self, live: &LiveIndex<C>, gone: &[u64]) -> PyResult<usize> {
        let mut signals = PythonSignals::new();
        let mut removed = 0;
        for gone in gone.chunks(CODES_BETWEEN_CHECKS) {
            signals.handle_signals()?;
            removed += self.write_ids().remove_ids(live, gone);
        }
        Ok(removed)
    }

    /// Returns positions of queries, ids and distances, sorted by query and then by the order of
    /// adding.
    fn find_all_queries<C: FingerprintCode>(
        &self,
        live: &LiveIndex<C>,
        codes: &[C],
        distance: Distance,
    ) -> PyResult<(Vec<u64>, Vec<u64>, Vec<u32>)> {
        // Check the distance even if there are no codes.
        live.search_many(&[], distance, |_, _, _| ())
            .map_err(engine_error_to_py)?;
        let mut signals = PythonSignals::new();
        let mut found: Vec<(usize, u64, u32)> = Vec::new();
        for (portion, codes) in codes.chunks(CODES_BETWEEN_CHECKS).enumerate() {
            signals.handle_signals()?;
            let (first, before) = (portion * CODES_BETWEEN_CHECKS, found.len());
            live.search_many(codes, distance, |query, seq, distance| {
                found.push((first + query, seq.0, distance));
            })
            .map_err(engine_error_to_py)?;
            found[before..].sort_unstable();
        }
        let ids = self.read_ids();
        let id = |number: u64| ids.by_number[number as usize];
        let queries = found.iter().map(|&(query, _, _)| query as u64).collect();
        let matches = found.iter().map(|&(_, number, _)| id(number)).collect();
        let distances = found.iter().map(|&(_, _, distance)| distance).collect();
        Ok((queries, matches, distances))
    }

    fn check_words(&self, words: usize) -> PyResult<()> {
        let wanted = match self.codes {
            LiveCodes::Narrow(_) => 1,
            LiveCodes::Wide(_) => 2,
        };
        if words == wanted {
            return Ok(());
        }
        Err(SettingError::new_err(format!(
            "the codes have {words} words of 64 bits where an index of {} bits has {wanted}",
            self.bits
        )))
    }

    /// Returns an error if a query has more bits than the index.
    fn check_bits(&self, mut codes: impl Iterator<Item = u128>) -> PyResult<()> {
        let too_wide = |code: &u128| code.checked_shr(self.bits).is_some_and(|rest| rest > 0);
        match codes.find(too_wide) {
            None => Ok(()),
            Some(code) => Err(SettingError::new_err(format!(
                "the fingerprint {code:#x} has more than {} bits",
                self.bits
            ))),
        }
    }
}

fn narrow_codes(codes: &PyReadonlyArray2<'_, u64>) -> Vec<u64> {
    codes.as_array().column(0).to_vec()
}

fn wide_codes(codes: &PyReadonlyArray2<'_, u64>) -> Vec<u128> {
    let rows = codes.as_array();
    let rows = rows.rows().into_iter();
    rows.map(|row| u128::from(row[0]) | u128::from(row[1]) << 64)
        .collect()
}

#[pymethods]
impl HammingIndexBase {
    #[new]
    fn new(bits: u32, distance: u32) -> PyResult<Self> {
        let distance = Distance::new(distance, bits).map_err(engine_error_to_py)?;
        let codes = if bits <= u64::BITS {
            LiveCodes::Narrow(LiveIndex::new(bits, distance).map_err(engine_error_to_py)?)
        } else {
            LiveCodes::Wide(LiveIndex::new(bits, distance).map_err(engine_error_to_py)?)
        };
        Ok(Self {
            codes,
            bits,
            distance,
            next: AtomicU64::new(0),
            ids: RwLock::default(),
        })
    }

    /// Reserves consecutive ids and returns the first.
    fn take_ids(&self, count: u64) -> u64 {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// Adds codes, each a row of words, under new ids.
    fn add(
        &self,
        py: Python<'_>,
        codes: PyReadonlyArray2<'_, u64>,
        ids: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        self.check_words(codes.as_array().ncols())?;
        let new: Vec<u64> = ids.as_array().to_vec();
        if new.len() != codes.as_array().nrows() {
            return Err(SettingError::new_err(format!(
                "there are {} codes and {} ids",
                codes.as_array().nrows(),
                new.len()
            )));
        }
        match &self.codes {
            LiveCodes::Narrow(live) => {
                let codes = narrow_codes(&codes);
                py.detach(|| self.add_all_codes(live, &codes, &new))
            }
            LiveCodes::Wide(live) => {
                let codes = wide_codes(&codes);
                py.detach(|| self.add_all_codes(live, &codes, &new))
            }
        }
    }

    /// Removes ids and returns how many of them existed.
    fn remove(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<usize> {
        let gone = ids.as_array().to_vec();
        py.detach(|| match &self.codes {
            LiveCodes::Narrow(live) => self.remove_all(live, &gone),
            LiveCodes::Wide(live) => self.remove_all(live, &gone),
        })
    }

    /// Finds everything within a distance of each query. Returns positions of queries, ids and
    /// distances, sorted by query and then by the order of adding.
    #[pyo3(signature = (codes, distance=None))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        codes: PyReadonlyArray2<'py, u64>,
        distance: Option<u32>,
    ) -> PyResult<FoundArrays<'py>> {
        self.check_words(codes.as_array().ncols())?;
        let distance = match distance {
            None => self.distance,
            Some(distance) => Distance::new(distance, self.bits).map_err(engine_error_to_py)?,
        };
        let (queries, matches, distances) = match &self.codes {
            LiveCodes::Narrow(live) => {
                let codes = narrow_codes(&codes);
                self.check_bits(codes.iter().map(|&code| code.into()))?;
                py.detach(|| self.find_all_queries(live, &codes, distance))?
            }
            LiveCodes::Wide(live) => {
                let codes = wide_codes(&codes);
                self.check_bits(codes.iter().copied())?;
                py.detach(|| self.find_all_queries(live, &codes, distance))?
            }
        };
        Ok((
            queries.into_pyarray(py),
            matches.into_pyarray(py),
            distances.into_pyarray(py),
        ))
    }

    /// Returns the codes as rows of words, and their ids, in the order of adding.
    fn codes<'py>(&self, py: Python<'py>) -> PyResult<IndexedCodes<'py>> {
        let width = match self.codes {
            LiveCodes::Narrow(_) => 1,
            LiveCodes::Wide(_) => 2,
        };
        let (words, ids) = self.read_ids().list_codes(width);
        let words = words.into_pyarray(py).reshape([ids.len(), width])?;
        Ok((words, ids.into_pyarray(py)))
    }

    fn __contains__(&self, id: u64) -> bool {
        self.read_ids().numbers.contains_key(&id)
    }

    fn __len__(&self) -> usize {
        let live = match &self.codes {
            LiveCodes::Narrow(live) => live.len(),
            LiveCodes::Wide(live) => live.len(),
        };
        live as usize
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[getter]
    fn distance(&self) -> u32 {
        self.distance.get()
    }
}

impl CodeIds {
    /// Returns an error if an id exists already or is repeated.
    fn check_new_ids(&self, new: &[u64]) -> PyResult<()> {
        let mut seen = HashSet::with_capacity(new.len());
        let repeated = new.iter().find(|id| !seen.insert(**id));
        repeated.map_or(Ok(()), |&id| Err(known_id_error(id)))?;
        self.check_unknown(new)
    }

    fn check_unknown(&self, new: &[u64]) -> PyResult<()> {
        let there = new.iter().find(|id| self.numbers.contains_key(id));
        there.map_or(Ok(()), |&id| Err(known_id_error(id)))
    }

    /// Adds codes under distinct new ids.
    fn add_codes<C: FingerprintCode>(
        &mut self,
        live: &LiveIndex<C>,
        codes: &[C],
        new: &[u64],
    ) -> PyResult<()> {
        self.check_unknown(new)?;
        let added = live.insert_many(codes, 0).map_err(engine_error_to_py)?;
        for ((number, &id), code) in added.zip(new).zip(codes) {
            self.by_number.push(id);
            self.numbers.insert(id, number);
            let wide = code.widen();
            self.words.push(wide as u64);
            if C::BITS > u64::BITS {
                self.words.push((wide >> u64::BITS) as u64);
            }
        }
        Ok(())
    }

    /// Returns the words and the ids of all codes, in the order of adding.
    fn list_codes(&self, width: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut words, mut ids) = (Vec::new(), Vec::new());
        let entries = (0u64..).zip(&self.by_number);
        for ((number, &id), code) in entries.zip(self.words.chunks_exact(width)) {
            if self.numbers.get(&id) == Some(&number) {
                words.extend_from_slice(code);
                ids.push(id);
            }
        }
        (words, ids)
    }

    /// Removes ids and returns how many of them existed.
    fn remove_ids<C: FingerprintCode>(&mut self, live: &LiveIndex<C>, gone: &[u64]) -> usize {
        let numbers = gone.iter().filter_map(|id| self.numbers.remove(id));
        numbers
            .filter(|&number| live.remove_code(SequenceNumber(number)))
            .count()
    }
}

fn known_id_error(id: u64) -> PyErr {
    SettingError::new_err(format!(
        "the index already has the id {id}: ids of an index differ"
    ))
}
