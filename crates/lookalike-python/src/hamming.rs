//! Fingerprints within a distance.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use lookalike::Distance;
use lookalike::hamming::live::{Live, Seq};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::{SettingError, refuse};

/// What a search finds: the positions of queries, ids, and distances.
type Found<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
);

/// Fingerprints of up to 64 or 128 bits.
enum Codes {
    Narrow(Live<u64>),
    Wide(Live<u128>),
}

/// The ids of fingerprints, by the order in which they were added, and the other way round.
#[derive(Default)]
struct Ids {
    by_number: Vec<u64>,
    numbers: HashMap<u64, u64>,
}

/// Fingerprints that come and go.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct HammingIndexBase {
    codes: Codes,
    bits: u32,
    distance: Distance,
    /// The id of the next code that is added without one.
    next: AtomicU64,
    ids: RwLock<Ids>,
}

impl HammingIndexBase {
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

    /// Refuses queries of more bits than the index has.
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

    /// Takes so many ids that follow one another; returns the first.
    fn take_ids(&self, count: u64) -> u64 {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// Adds codes, a row of words each, under ids that are not there yet.
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
        let (low, high) = match self.codes {
            Codes::Narrow(_) => (narrow(&codes), Vec::new()),
            Codes::Wide(_) => (Vec::new(), wide(&codes)),
        };
        py.detach(|| {
            let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
            ids.check_new(&new)?;
            let added = match &self.codes {
                Codes::Narrow(live) => live.insert_many(&low, 0),
                Codes::Wide(live) => live.insert_many(&high, 0),
            };
            let added = added.map_err(refuse)?;
            for (number, id) in added.zip(new) {
                ids.by_number.push(id);
                ids.numbers.insert(id, number);
            }
            Ok(())
        })
    }

    /// Removes ids; returns how many were there.
    fn remove(&self, gone: PyReadonlyArray1<'_, u64>) -> usize {
        let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
        let mut removed = 0;
        for id in gone.as_array() {
            if let Some(number) = ids.numbers.remove(id) {
                removed += usize::from(match &self.codes {
                    Codes::Narrow(live) => live.remove(Seq(number)),
                    Codes::Wide(live) => live.remove(Seq(number)),
                });
            }
        }
        removed
    }

    /// Finds all within a distance of each query: the positions of queries, ids and distances, by
    /// query and then by the order of adding.
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
        let mut found: Vec<(usize, u64, u32)> = Vec::new();
        let mut take = |query, seq: Seq, distance| found.push((query, seq.0, distance));
        match &self.codes {
            Codes::Narrow(live) => {
                let codes = narrow(&codes);
                self.check_bits(codes.iter().map(|&code| code.into()))?;
                py.detach(|| live.search_many(&codes, distance, &mut take))
            }
            Codes::Wide(live) => {
                let codes = wide(&codes);
                self.check_bits(codes.iter().copied())?;
                py.detach(|| live.search_many(&codes, distance, &mut take))
            }
        }
        .map_err(refuse)?;
        found.sort_unstable();
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        let query = |&(query, _, _): &(usize, u64, u32)| query as u64;
        let id = |&(_, number, _): &(usize, u64, u32)| ids.by_number[number as usize];
        let queries: Vec<u64> = found.iter().map(query).collect();
        let matches: Vec<u64> = found.iter().map(id).collect();
        drop(ids);
        let distances: Vec<u32> = found.iter().map(|&(_, _, distance)| distance).collect();
        Ok((
            queries.into_pyarray(py),
            matches.into_pyarray(py),
            distances.into_pyarray(py),
        ))
    }

    fn __contains__(&self, id: u64) -> bool {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        ids.numbers.contains_key(&id)
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
    /// Refuses ids that are there already, or twice among the new ones.
    fn check_new(&self, new: &[u64]) -> PyResult<()> {
        let mut seen = HashSet::with_capacity(new.len());
        let known = |id: &&u64| self.numbers.contains_key(id) || !seen.insert(**id);
        match new.iter().find(known) {
            None => Ok(()),
            Some(id) => Err(SettingError::new_err(format!(
                "the id {id} is there already: ids of an index differ"
            ))),
        }
    }
}
