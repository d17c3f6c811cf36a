//! Index of fingerprints, searched within a Hamming distance.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lookalike::Distance;
use lookalike::hamming::Code;
use lookalike::hamming::live::{Live, Seq};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::{SettingError, refuse};
use crate::run::Signals;

/// Codes that are added, removed or searched between two checks for signals. A search with many
/// matches takes at most a second for so many.
const PORTION: usize = 128;

/// Matches of a search: the positions of queries, ids, and distances.
type Found<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
);

/// Fingerprints of at most 64 or at most 128 bits.
enum Codes {
    Narrow(Live<u64>),
    Wide(Live<u128>),
}

/// Ids of fingerprints by sequence number, and sequence numbers by id.
#[derive(Default)]
struct Ids {
    by_number: Vec<u64>,
    numbers: HashMap<u64, u64>,
}

/// An index of fingerprints that can be added and removed.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct HammingIndexBase {
    codes: Codes,
    bits: u32,
    distance: Distance,
    /// Id of the next code that is added without one.
    next: AtomicU64,
    ids: RwLock<Ids>,
}

impl HammingIndexBase {
    fn ids(&self) -> RwLockReadGuard<'_, Ids> {
        self.ids.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn ids_mut(&self) -> RwLockWriteGuard<'_, Ids> {
        self.ids.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds codes, or none of them after an error or an interrupt.
    fn add_all<C: Code>(&self, live: &Live<C>, codes: &[C], new: &[u64]) -> PyResult<()> {
        self.ids().check_new(new)?;
        let mut signals = Signals::new();
        for (portion, codes) in codes.chunks(PORTION).enumerate() {
            let (before, rest) = new.split_at(portion * PORTION);
            let handled = signals.handle();
            let mut ids = self.ids_mut();
            let added = handled.and_then(|()| ids.add(live, codes, &rest[..codes.len()]));
            if let Err(error) = added {
                ids.remove(live, before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_all<C: Code>(&self, live: &Live<C>, gone: &[u64]) -> PyResult<usize> {
        let mut signals = Signals::new();
        let mut removed = 0;
        for gone in gone.chunks(PORTION) {
            signals.handle()?;
            removed += self.ids_mut().remove(live, gone);
        }
        Ok(removed)
    }

    /// Returns positions of queries, ids and distances, sorted by query and then by the order of
    /// adding.
    fn find_all<C: Code>(
        &self,
        live: &Live<C>,
        codes: &[C],
        distance: Distance,
    ) -> PyResult<(Vec<u64>, Vec<u64>, Vec<u32>)> {
        // Check the distance even if there are no codes.
        live.search_many(&[], distance, |_, _, _| ())
            .map_err(refuse)?;
        let mut signals = Signals::new();
        let mut found: Vec<(usize, u64, u32)> = Vec::new();
        for (portion, codes) in codes.chunks(PORTION).enumerate() {
            signals.handle()?;
            let (first, before) = (portion * PORTION, found.len());
            live.search_many(codes, distance, |query, seq, distance| {
                found.push((first + query, seq.0, distance));
            })
            .map_err(refuse)?;
            found[before..].sort_unstable();
        }
        let ids = self.ids();
        let id = |number: u64| ids.by_number[number as usize];
        let queries = found.iter().map(|&(query, _, _)| query as u64).collect();
        let matches = found.iter().map(|&(_, number, _)| id(number)).collect();
        let distances = found.iter().map(|&(_, _, distance)| distance).collect();
        Ok((queries, matches, distances))
    }

    fn check_words(&self, words: usize) -> PyResult<()> {
        let wanted = match self.codes {
            Codes::Narrow(_) => 1,
            Codes::Wide(_) => 2,
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

fn narrow(codes: &PyReadonlyArray2<'_, u64>) -> Vec<u64> {
    codes.as_array().column(0).to_vec()
}

fn wide(codes: &PyReadonlyArray2<'_, u64>) -> Vec<u128> {
    let rows = codes.as_array();
    let rows = rows.rows().into_iter();
    rows.map(|row| u128::from(row[0]) | u128::from(row[1]) << 64)
        .collect()
}

#[pymethods]
impl HammingIndexBase {
    #[new]
    fn new(bits: u32, distance: u32) -> PyResult<Self> {
        let distance = Distance::new(distance, bits).map_err(refuse)?;
        let codes = if bits <= u64::BITS {
            Codes::Narrow(Live::new(bits, distance).map_err(refuse)?)
        } else {
            Codes::Wide(Live::new(bits, distance).map_err(refuse)?)
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
            Codes::Narrow(live) => {
                let codes = narrow(&codes);
                py.detach(|| self.add_all(live, &codes, &new))
            }
            Codes::Wide(live) => {
                let codes = wide(&codes);
                py.detach(|| self.add_all(live, &codes, &new))
            }
        }
    }

    /// Removes ids and returns how many of them existed.
    fn remove(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<usize> {
        let gone = ids.as_array().to_vec();
        py.detach(|| match &self.codes {
            Codes::Narrow(live) => self.remove_all(live, &gone),
            Codes::Wide(live) => self.remove_all(live, &gone),
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
    ) -> PyResult<Found<'py>> {
        self.check_words(codes.as_array().ncols())?;
        let distance = match distance {
            None => self.distance,
            Some(distance) => Distance::new(distance, self.bits).map_err(refuse)?,
        };
        let (queries, matches, distances) = match &self.codes {
            Codes::Narrow(live) => {
                let codes = narrow(&codes);
                self.check_bits(codes.iter().map(|&code| code.into()))?;
                py.detach(|| self.find_all(live, &codes, distance))?
            }
            Codes::Wide(live) => {
                let codes = wide(&codes);
                self.check_bits(codes.iter().copied())?;
                py.detach(|| self.find_all(live, &codes, distance))?
            }
        };
        Ok((
            queries.into_pyarray(py),
            matches.into_pyarray(py),
            distances.into_pyarray(py),
        ))
    }

    fn __contains__(&self, id: u64) -> bool {
        self.ids().numbers.contains_key(&id)
    }

    fn __len__(&self) -> usize {
        let live = match &self.codes {
            Codes::Narrow(live) => live.len(),
            Codes::Wide(live) => live.len(),
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

impl Ids {
    /// Returns an error if an id exists already or is repeated.
    fn check_new(&self, new: &[u64]) -> PyResult<()> {
        let mut seen = HashSet::with_capacity(new.len());
        let repeated = new.iter().find(|id| !seen.insert(**id));
        repeated.map_or(Ok(()), |&id| Err(known(id)))?;
        self.check_unknown(new)
    }

    fn check_unknown(&self, new: &[u64]) -> PyResult<()> {
        let there = new.iter().find(|id| self.numbers.contains_key(id));
        there.map_or(Ok(()), |&id| Err(known(id)))
    }

    /// Adds codes under distinct new ids.
    fn add<C: Code>(&mut self, live: &Live<C>, codes: &[C], new: &[u64]) -> PyResult<()> {
        self.check_unknown(new)?;
        let added = live.insert_many(codes, 0).map_err(refuse)?;
        for (number, &id) in added.zip(new) {
            self.by_number.push(id);
            self.numbers.insert(id, number);
        }
        Ok(())
    }

    /// Removes ids and returns how many of them existed.
    fn remove<C: Code>(&mut self, live: &Live<C>, gone: &[u64]) -> usize {
        let numbers = gone.iter().filter_map(|id| self.numbers.remove(id));
        numbers.filter(|&number| live.remove(Seq(number))).count()
    }
}

fn known(id: u64) -> PyErr {
    SettingError::new_err(format!(
        "the index already has the id {id}: ids of an index differ"
    ))
}
