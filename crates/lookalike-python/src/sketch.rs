//! Fingerprints and signatures of many texts at once.

use lookalike::Cpu;
use lookalike::sketch::{MinHasher, SimHasher, fingerprint_weighted_tokens};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use rayon::prelude::*;

use crate::recipe::Recipe;
use crate::run::{RunWatch, run_watched};
use crate::settings::thread_count;
use crate::texts::{TextColumn, TextInput};

/// Number of texts that a thread takes at a time.
const TEXTS_PER_PORTION: usize = 64;

/// Rows of numbers, and a flag per row that is `true` if the text is too short for a sketch.
type PyRows<'py, T> = (Bound<'py, PyArray2<T>>, Bound<'py, PyArray1<bool>>);

/// Computes `width` numbers of every text. `make` returns `false` if a text has none.
fn sketch_rows<T: Send + Default + Copy>(
    py: Python<'_>,
    texts: &TextColumn,
    analyzer: &TextAnalyzer,
    width: usize,
    threads: Option<usize>,
    make: impl Fn(&TextAnalysis<'_>, &mut [T]) -> bool + Sync,
) -> PyResult<(Vec<T>, Vec<bool>)> {
    let mut numbers = vec![T::default(); width * texts.len()];
    let mut missing = vec![true; texts.len()];
    let fill = |scratch: &mut AnalysisScratch,
                (portion, (numbers, missing)): TextPortion<'_, T>| {
        let rows = numbers.chunks_exact_mut(width).zip(missing);
        for (at, (row, missing)) in rows.enumerate() {
            if let Some(text) = texts.text_at(portion * TEXTS_PER_PORTION + at) {
                *missing = !make(&analyzer.analyze_text(text, scratch), row);
            }
        }
    };
    let is_small = is_small_input(texts);
    let threads = thread_count(threads.or(is_small.then_some(1)))?;
    if is_small {
        py.detach(|| {
            fill(
                &mut AnalysisScratch::default(),
                (0, (&mut numbers, &mut missing)),
            )
        });
        return Ok((numbers, missing));
    }
    let watch = RunWatch::default();
    run_watched(py, &watch, None, || {
        lookalike_batch::run::run_in_pool(threads, || {
            let portions = numbers.par_chunks_mut(width * TEXTS_PER_PORTION);
            let portions = portions
                .zip(missing.par_chunks_mut(TEXTS_PER_PORTION))
                .enumerate();
            portions.for_each_init(AnalysisScratch::default, |scratch, portion| {
                watch.stop_if_asked();
                fill(scratch, portion);
            });
            Ok(())
        })?;
        Ok((numbers, missing))
    })
}

/// Number of a batch of texts, and the slices for its rows.
type TextPortion<'a, T> = (usize, (&'a mut [T], &'a mut [bool]));

/// Returns `true` if the texts are few and short, so that they are done before threads have
/// started.
fn is_small_input(texts: &TextColumn) -> bool {
    const BYTES: usize = 1 << 14;
    texts.len() <= TEXTS_PER_PORTION
        && (0..texts.len())
            .filter_map(|at| texts.text_at(at))
            .map(str::len)
            .sum::<usize>()
            <= BYTES
}

fn to_py_arrays<T: numpy::Element>(
    py: Python<'_>,
    numbers: Vec<T>,
    missing: Vec<bool>,
    width: usize,
) -> PyResult<PyRows<'_, T>> {
    let count = missing.len();
    let numbers = numbers.into_pyarray(py).reshape([count, width])?;
    Ok((numbers, missing.into_pyarray(py)))
}

/// Returns SimHash fingerprints: one or two words per text, the lower word first.
#[pyfunction]
#[pyo3(signature = (texts, recipe, threads=None))]
pub(crate) fn simhash<'py>(
    py: Python<'py>,
    texts: TextInput,
    recipe: &Recipe,
    threads: Option<usize>,
) -> PyResult<PyRows<'py, u64>> {
    let texts = TextColumn::from_input(texts)?;
    let width = if recipe.0.simhash.bits > u64::BITS {
        2
    } else {
        1
    };
    let hasher = SimHasher::new(&recipe.0.simhash, Cpu::detect_best());
    let make = |analysis: &TextAnalysis<'_>, row: &mut [u64]| {
        let Some(fingerprint) = hasher.original_fingerprint(analysis) else {
            return false;
        };
        for (word, into) in row.iter_mut().enumerate() {
            *into = (fingerprint >> (64 * word)) as u64;
        }
        true
    };
    let (numbers, missing) =
        sketch_rows(py, &texts, recipe.recipe_analyzer(py), width, threads, make)?;
    to_py_arrays(py, numbers, missing, width)
}

/// Returns MinHash signatures: one row of slots per text.
#[pyfunction]
#[pyo3(signature = (texts, recipe, threads=None))]
pub(crate) fn minhash<'py>(
    py: Python<'py>,
    texts: TextInput,
    recipe: &Recipe,
    threads: Option<usize>,
) -> PyResult<PyRows<'py, u32>> {
    let texts = TextColumn::from_input(texts)?;
    let hasher = MinHasher::new(&recipe.0.minhash, Cpu::detect_best());
    let width = hasher.slot_count();
    let make =
        |analysis: &TextAnalysis<'_>, row: &mut [u32]| hasher.original_signature(analysis, row);
    let (numbers, missing) =
        sketch_rows(py, &texts, recipe.recipe_analyzer(py), width, threads, make)?;
    to_py_arrays(py, numbers, missing, width)
}

/// Returns the fingerprint of the package `simhash`, with MD5: of tokens, pairs of tokens and whole weights, or a
/// dictionary of them. Returns None for other tokens and weights, which Python code handles.
#[pyfunction]
pub(crate) fn simhash_of_tokens(tokens: &Bound<'_, PyAny>, bits: u32) -> PyResult<Option<u128>> {
    let mut list = TokenList::default();
    let is_plain = if let Ok(weighted) = tokens.cast::<PyDict>() {
        weighted
            .iter()
            .all(|(token, weight)| list.push_weighted(&token, &weight))
    } else if let Ok(tokens) = tokens.cast::<PyList>() {
        tokens.iter().all(|token| list.push_token(&token))
    } else {
        false
    };
    if !is_plain || !(8..=128).contains(&bits) {
        return Ok(None);
    }
    let TokenList {
        bytes,
        ends,
        weights,
        ..
    } = list;
    Ok(Some(fingerprint_weighted_tokens(
        &bytes, &ends, &weights, bits,
    )))
}

/// Tokens one after another, with the end and the weight of each.
struct TokenList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    weights: Vec<i64>,
    /// Weight of a token that comes without one: that of the token before it, as in `simhash`.
    weight: i64,
}

impl Default for TokenList {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            weights: Vec::new(),
            weight: 1,
        }
    }
}

impl TokenList {
    /// Largest weight. Sums of any number of weights then stay far below 2⁶³.
    const LARGEST_WEIGHT: i64 = 1 << 31;

    /// Adds a token, or a token with its weight. Returns `false` if it is neither.
    fn push_token(&mut self, token: &Bound<'_, PyAny>) -> bool {
        if let Ok(pair) = token.cast::<PyTuple>() {
            let pair = (pair.get_item(0), pair.get_item(1), pair.len());
            return matches!(&pair, (Ok(token), Ok(weight), 2) if self.push_weighted(token, weight));
        }
        let Ok(text) = token.cast::<PyString>() else {
            return false;
        };
        let Ok(text) = text.to_cow() else {
            return false;
        };
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
        self.weights.push(self.weight);
        true
    }

    fn push_weighted(&mut self, token: &Bound<'_, PyAny>, weight: &Bound<'_, PyAny>) -> bool {
        let whole = weight.is_exact_instance_of::<PyInt>();
        let weight = weight
            .extract::<i64>()
            .ok()
            .filter(|weight| weight.abs() <= Self::LARGEST_WEIGHT);
        let (true, Some(weight)) = (whole && token.is_instance_of::<PyString>(), weight) else {
            return false;
        };
        self.weight = weight;
        self.push_token(token)
    }
}
