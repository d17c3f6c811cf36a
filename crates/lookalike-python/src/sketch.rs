//! Fingerprints and signatures of texts, all at once.

use lookalike::Cpu;
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{Analysis, Analyzer, Scratch};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::recipe::Recipe;
use crate::run::{Watch, watched};
use crate::settings::threads;
use crate::table::Stream;
use crate::texts::Texts;

/// Texts that a thread takes at a time.
const PORTION: usize = 64;

/// Rows of numbers, and which of them are of no use because their text has too little in it.
type Rows<'py, T> = (Bound<'py, PyArray2<T>>, Bound<'py, PyArray1<bool>>);

/// Makes so many numbers of every text. `make` returns whether the text has any.
fn rows<T: Send + Default + Copy>(
    py: Python<'_>,
    texts: &Texts,
    analyzer: &Analyzer,
    (width, threads): (usize, usize),
    make: impl Fn(&Analysis<'_>, &mut [T]) -> bool + Sync,
) -> PyResult<(Vec<T>, Vec<bool>)> {
    let watch = Watch::default();
    watched(py, &watch, None, || {
        let mut numbers = vec![T::default(); width * texts.len()];
        let mut missing = vec![true; texts.len()];
        lookalike_batch::run::in_pool(threads, || {
            let portions = numbers.par_chunks_mut(width * PORTION);
            let portions = portions.zip(missing.par_chunks_mut(PORTION)).enumerate();
            portions.for_each_init(
                Scratch::default,
                |scratch, (portion, (numbers, missing))| {
                    watch.stop_if_asked();
                    let rows = numbers.chunks_exact_mut(width).zip(missing);
                    for (at, (row, missing)) in rows.enumerate() {
                        if let Some(text) = texts.get(portion * PORTION + at) {
                            *missing = !make(&analyzer.analyze(text, scratch), row);
                        }
                    }
                },
            );
            Ok(())
        })?;
        Ok((numbers, missing))
    })
}

fn as_arrays<T: numpy::Element>(
    py: Python<'_>,
    (numbers, missing): (Vec<T>, Vec<bool>),
    width: usize,
) -> PyResult<Rows<'_, T>> {
    let count = missing.len();
    let numbers = numbers.into_pyarray(py).reshape([count, width])?;
    Ok((numbers, missing.into_pyarray(py)))
}

/// SimHash fingerprints: a row of one or two words for each text, the lower one first.
#[pyfunction]
#[pyo3(signature = (texts, recipe, threads=None))]
pub(crate) fn simhash<'py>(
    py: Python<'py>,
    texts: Stream,
    recipe: &Recipe,
    threads: Option<usize>,
) -> PyResult<Rows<'py, u64>> {
    let texts = Texts::new(texts)?;
    let width = if recipe.0.simhash.bits > u64::BITS {
        2
    } else {
        1
    };
    let hasher = SimHasher::new(&recipe.0.simhash, Cpu::best());
    let make = |analysis: &Analysis<'_>, row: &mut [u64]| {
        let Some(fingerprint) = hasher.original(analysis) else {
            return false;
        };
        for (word, into) in row.iter_mut().enumerate() {
            *into = (fingerprint >> (64 * word)) as u64;
        }
        true
    };
    let size = (width, self::threads(threads)?);
    let made = rows(py, &texts, &Analyzer::new(&recipe.0), size, make)?;
    as_arrays(py, made, width)
}

/// MinHash signatures: a row of slots for each text.
#[pyfunction]
#[pyo3(signature = (texts, recipe, threads=None))]
pub(crate) fn minhash<'py>(
    py: Python<'py>,
    texts: Stream,
    recipe: &Recipe,
    threads: Option<usize>,
) -> PyResult<Rows<'py, u32>> {
    let texts = Texts::new(texts)?;
    let hasher = MinHasher::new(&recipe.0.minhash, Cpu::best());
    let size = (hasher.slots(), self::threads(threads)?);
    let make = |analysis: &Analysis<'_>, row: &mut [u32]| hasher.original(analysis, row);
    let made = rows(py, &texts, &Analyzer::new(&recipe.0), size, make)?;
    as_arrays(py, made, hasher.slots())
}
