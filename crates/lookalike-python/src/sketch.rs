//! Fingerprints and signatures of many texts at once.

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

/// Number of texts that a thread takes at a time.
const PORTION: usize = 64;

/// Rows of numbers, and a flag per row that is `true` if the text is too short for a sketch.
type Rows<'py, T> = (Bound<'py, PyArray2<T>>, Bound<'py, PyArray1<bool>>);

/// Computes `width` numbers of every text. `make` returns `false` if a text has none.
fn rows<T: Send + Default + Copy>(
    py: Python<'_>,
    texts: &Texts,
    analyzer: &Analyzer,
    (width, threads): (usize, usize),
    make: impl Fn(&Analysis<'_>, &mut [T]) -> bool + Sync,
) -> PyResult<(Vec<T>, Vec<bool>)> {
    let mut numbers = vec![T::default(); width * texts.len()];
    let mut missing = vec![true; texts.len()];
    let fill = |scratch: &mut Scratch, (portion, (numbers, missing)): Portion<'_, T>| {
        let rows = numbers.chunks_exact_mut(width).zip(missing);
        for (at, (row, missing)) in rows.enumerate() {
            if let Some(text) = texts.get(portion * PORTION + at) {
                *missing = !make(&analyzer.analyze(text, scratch), row);
            }
        }
    };
    if is_little(texts) {
        py.detach(|| fill(&mut Scratch::default(), (0, (&mut numbers, &mut missing))));
        return Ok((numbers, missing));
    }
    let watch = Watch::default();
    watched(py, &watch, None, || {
        lookalike_batch::run::in_pool(threads, || {
            let portions = numbers.par_chunks_mut(width * PORTION);
            let portions = portions.zip(missing.par_chunks_mut(PORTION)).enumerate();
            portions.for_each_init(Scratch::default, |scratch, portion| {
                watch.stop_if_asked();
                fill(scratch, portion);
            });
            Ok(())
        })?;
        Ok((numbers, missing))
    })
}

/// Number of a batch of texts, and the slices for its rows.
type Portion<'a, T> = (usize, (&'a mut [T], &'a mut [bool]));

/// Returns `true` if the texts are few and short, so that they are done before threads have
/// started.
fn is_little(texts: &Texts) -> bool {
    const BYTES: usize = 1 << 14;
    texts.len() <= PORTION
        && (0..texts.len())
            .filter_map(|at| texts.get(at))
            .map(str::len)
            .sum::<usize>()
            <= BYTES
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

/// Returns SimHash fingerprints: one or two words per text, the lower word first.
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
    let made = rows(py, &texts, recipe.analyzer(), size, make)?;
    as_arrays(py, made, width)
}

/// Returns MinHash signatures: one row of slots per text.
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
    let made = rows(py, &texts, recipe.analyzer(), size, make)?;
    as_arrays(py, made, hasher.slots())
}
