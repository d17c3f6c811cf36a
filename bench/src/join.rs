//! All pairs of fingerprints within a Hamming distance, compared with a scan of all pairs.
//!
//! The answer is checked. Every planted pair is found, and sampled fingerprints have as many neighbours
//! as a scan finds. Every number of threads gives the same pairs. So does the full scan where it is
//! timed.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use lookalike::hamming::FingerprintCode;
use lookalike::hamming::join::{
    DistinctCodes, EqualRows, NearPair, near_values, near_values_across, visit_near_rows,
};
use lookalike::hamming::scan::scan_within;
use lookalike::sketch::SimHasher;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Distance, Recipe};
use rayon::prelude::*;
use serde::Serialize;

use crate::corpora::Corpus;
use crate::machine;

#[derive(Serialize)]
struct Row {
    fingerprints: String,
    bits: u32,
    distance: u32,
    way: &'static str,
    threads: usize,
    rows: usize,
    /// Distinct fingerprints.
    values: usize,
    /// Pairs of distinct fingerprints within the distance.
    pairs: u64,
    /// Seconds until equal fingerprints are collapsed.
    #[serde(serialize_with = "machine::rounded")]
    sorting_seconds: f64,
    /// Seconds in total.
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
}

/// Measures on generated fingerprints and on those of real corpora.
pub fn run(data: &Path) -> Result<()> {
    let mut rows = Vec::new();
    for (length, distance) in [
        (100_000, 3),
        (1_000_000, 3),
        (1_000_000, 6),
        (50_000_000, 3),
    ] {
        let made = Made::<u64>::new(length, distance);
        made.measure(length <= 100_000, &mut rows)?;
    }
    Made::<u128>::new(10_000_000, 7).measure(false, &mut rows)?;
    let folder = tempfile::tempdir()?;
    for name in ["en_docs.jsonl", "zh_short.tsv"] {
        let corpus = Corpus::real(data, name, folder.path())?;
        let codes = fingerprints(&corpus.texts()?)?;
        for distance in [3, 6] {
            let join = Join {
                name: &corpus.name,
                codes: &codes,
                distance,
            };
            join.measure(codes.len() <= 100_000, &mut rows)?;
        }
    }
    machine::write("join", rows)
}

/// Runs the benchmark on few fingerprints, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    for distance in [0, 3, 7] {
        Made::<u64>::new(5000, distance).measure(true, &mut rows)?;
        Made::<u128>::new(5000, distance).measure(true, &mut rows)?;
    }
    let planted = rows.iter().all(|row| row.pairs > 0 || row.distance == 0);
    ensure!(planted, "some found nothing");
    Ok(())
}

fn fingerprints(texts: &[String]) -> Result<Vec<u64>> {
    let recipe = Recipe::built_in("default")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let found: Vec<Option<u128>> = texts
        .par_iter()
        .map_init(AnalysisScratch::default, |scratch, text| {
            hasher.fingerprint(&analyzer.analyze_text(text, scratch))
        })
        .collect();
    Ok(found
        .into_iter()
        .flatten()
        .map(|fingerprint| fingerprint as u64)
        .collect())
}

/// Uniform fingerprints; the last hundredth is made from the first ones by up to k flips.
struct Made<C> {
    codes: Vec<C>,
    planted: usize,
    distance: u32,
}

impl<C: FingerprintCode> Made<C> {
    fn new(length: usize, distance: u32) -> Self {
        let planted = length / 100;
        let code = |row: usize| match row.checked_sub(length - planted) {
            None => uniform::<C>(row),
            Some(of) => flipped(uniform(of), mix(row as u64), distance),
        };
        Self {
            codes: (0..length).into_par_iter().map(code).collect(),
            planted,
            distance,
        }
    }

    fn measure(&self, scanned: bool, rows: &mut Vec<Row>) -> Result<()> {
        let join = Join {
            name: "uniform",
            codes: &self.codes,
            distance: self.distance,
        };
        join.measure(scanned, rows)?;
        join.measure_across(rows)?;
        self.all_planted_are_found()
    }

    fn all_planted_are_found(&self) -> Result<()> {
        let distinct = DistinctCodes::new(&self.codes, C::BITS)?;
        let apart = (self.codes.len() - self.planted) as u32;
        let is_planted = |a: u32, b: u32| a.abs_diff(b) == apart;
        let equal = distinct.repeated_rows();
        let equal = equal.filter(|rows| is_planted(rows[0], rows[1])).count();
        let found = AtomicU64::new(equal as u64);
        let _ = near_values(
            &distinct,
            distance::<C>(self.distance)?,
            &|near: &[NearPair]| {
                let row = |value| distinct.rows_of_value(value)[0];
                let planted = near
                    .iter()
                    .filter(|near| is_planted(row(near.a), row(near.b)));
                found.fetch_add(planted.count() as u64, Ordering::Relaxed);
                ControlFlow::Continue(())
            },
        )?;
        let (found, planted) = (found.into_inner(), self.planted);
        ensure!(
            found == planted as u64,
            "{found} of {planted} planted pairs were found"
        );
        Ok(())
    }
}

fn distance<C: FingerprintCode>(distance: u32) -> Result<Distance> {
    Ok(Distance::new(distance, C::BITS)?)
}

fn uniform<C: FingerprintCode>(row: usize) -> C {
    let row = row as u64;
    C::narrow_from(u128::from(mix(!row)) << 64 | u128::from(mix(row)))
}

fn flipped<C: FingerprintCode>(code: C, seed: u64, most: u32) -> C {
    let mut bits = 0u128;
    let mut at = seed;
    while bits.count_ones() < (seed % u64::from(most + 1)) as u32 {
        at = mix(at);
        bits |= 1 << (at % u64::from(C::BITS));
    }
    code.differing_bits(C::narrow_from(bits))
}

/// The finaliser of SplitMix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

struct Join<'a, C> {
    name: &'a str,
    codes: &'a [C],
    distance: u32,
}

/// The result of a join, independent of its order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Answer {
    pairs: u64,
    checksum: u64,
}

impl Answer {
    fn take(&mut self, a: u64, b: u64, distance: u32) {
        self.pairs += 1;
        let pair = mix(a.min(b)) ^ mix(a.max(b)).rotate_left(1);
        self.checksum = self.checksum.wrapping_add(mix(pair ^ u64::from(distance)));
    }
}

struct Timed {
    answer: Answer,
    sorting: f64,
    seconds: f64,
}

impl<C: FingerprintCode> Join<'_, C> {
    fn measure(&self, scanned: bool, rows: &mut Vec<Row>) -> Result<()> {
        let distinct = DistinctCodes::new(self.codes, C::BITS)?;
        self.agrees_with_samples(&distinct)?;
        let mut expected = None;
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?;
            let mut best: Option<Timed> = None;
            for _ in 0..4 {
                let timed = pool.install(|| self.join())?;
                let agreed = *expected.get_or_insert(timed.answer) == timed.answer;
                ensure!(
                    agreed,
                    "{threads} threads find {:?} of {}",
                    timed.answer,
                    self.name
                );
                if best
                    .as_ref()
                    .is_none_or(|best| timed.seconds < best.seconds)
                {
                    best = Some(timed);
                }
            }
            if let Some(best) = best {
                self.row("join", threads, distinct.len(), &best, rows);
            }
        }
        if scanned {
            let timed = self.scan(&distinct);
            ensure!(
                expected == Some(timed.answer),
                "a scan finds {:?}",
                timed.answer
            );
            self.row("scan", 1, distinct.len(), &timed, rows);
        }
        Ok(())
    }

    /// Measures the last tenth, which has the copies, against the others. Together with the pairs
    /// within each part, its pairs are all pairs.
    fn measure_across(&self, rows: &mut Vec<Row>) -> Result<()> {
        let (others, last) = self.codes.split_at(self.codes.len() / 10 * 9);
        let within = [self.codes, others, last].map(|codes| self.pairs_of_rows(codes));
        let [all, in_others, in_last] = within;
        let expected = all? - in_others? - in_last?;
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?;
            let (timed, values) = pool.install(|| self.across(others, last))?;
            let found = timed.answer.pairs;
            ensure!(found == expected, "{found} pairs across, not {expected}");
            self.row("across", threads, values, &timed, rows);
        }
        Ok(())
    }

    fn pairs_of_rows(&self, codes: &[C]) -> Result<u64> {
        let pairs = AtomicU64::new(0);
        let distance = distance::<C>(self.distance)?;
        let _ = visit_near_rows(
            codes,
            C::BITS,
            distance,
            EqualRows::Expanded,
            &|near: &[NearPair]| {
                pairs.fetch_add(near.len() as u64, Ordering::Relaxed);
                ControlFlow::Continue(())
            },
        )?;
        Ok(pairs.into_inner())
    }

    /// Returns the pairs of rows across, and the number of values of both lists.
    fn across(&self, left: &[C], right: &[C]) -> Result<(Timed, usize)> {
        let started = Instant::now();
        let left = DistinctCodes::new(left, C::BITS)?;
        let right = DistinctCodes::new(right, C::BITS)?;
        let sorting = started.elapsed().as_secs_f64();
        let pairs = AtomicU64::new(0);
        let distance = distance::<C>(self.distance)?;
        let _ = near_values_across(&left, &right, distance, &|near: &[NearPair]| {
            let rows = |near: &NearPair| {
                left.rows_of_value(near.a).len() * right.rows_of_value(near.b).len()
            };
            let of_rows: usize = near.iter().map(rows).sum();
            pairs.fetch_add(of_rows as u64, Ordering::Relaxed);
            ControlFlow::Continue(())
        })?;
        let timed = Timed {
            answer: Answer {
                pairs: pairs.into_inner(),
                checksum: 0,
            },
            sorting,
            seconds: started.elapsed().as_secs_f64(),
        };
        Ok((timed, left.len() + right.len()))
    }

    fn row(
        &self,
        way: &'static str,
        threads: usize,
        values: usize,
        timed: &Timed,
        rows: &mut Vec<Row>,
    ) {
        let row = Row {
            fingerprints: self.name.to_owned(),
            bits: C::BITS,
            distance: self.distance,
            way,
            threads,
            rows: self.codes.len(),
            values,
            pairs: timed.answer.pairs,
            sorting_seconds: timed.sorting,
            seconds: timed.seconds,
        };
        println!(
            "{:9} {:3} bits, distance {}, {way}, {threads} threads: {:8} rows, {:8} values, {:8} \
             pairs, {:.3} s, of which sorting {:.3} s",
            row.fingerprints,
            row.bits,
            row.distance,
            row.rows,
            row.values,
            row.pairs,
            row.seconds,
            row.sorting_seconds
        );
        rows.push(row);
    }

    fn join(&self) -> Result<Timed> {
        let started = Instant::now();
        let distinct = DistinctCodes::new(self.codes, C::BITS)?;
        let sorting = started.elapsed().as_secs_f64();
        let (pairs, checksum) = (AtomicU64::new(0), AtomicU64::new(0));
        let _ = near_values(
            &distinct,
            distance::<C>(self.distance)?,
            &|near: &[NearPair]| {
                let mut answer = Answer::default();
                for near in near {
                    answer.take(near.a.into(), near.b.into(), near.distance);
                }
                pairs.fetch_add(answer.pairs, Ordering::Relaxed);
                checksum.fetch_add(answer.checksum, Ordering::Relaxed);
                ControlFlow::Continue(())
            },
        )?;
        Ok(Timed {
            answer: Answer {
                pairs: pairs.into_inner(),
                checksum: checksum.into_inner(),
            },
            sorting,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// Compares all pairs of values.
    fn scan(&self, distinct: &DistinctCodes<C>) -> Timed {
        let started = Instant::now();
        let mut answer = Answer::default();
        let codes = distinct.codes();
        for (a, &code) in codes.iter().enumerate() {
            for (b, other) in codes.iter().enumerate().skip(a + 1) {
                let differing = code.hamming_distance(*other);
                if differing <= self.distance {
                    answer.take(a as u64, b as u64, differing);
                }
            }
        }
        Timed {
            answer,
            sorting: 0.0,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// Checks that sampled values have as many neighbours as a scan finds.
    fn agrees_with_samples(&self, distinct: &DistinctCodes<C>) -> Result<()> {
        const SAMPLED_VALUES: usize = 64;
        let limit = distance::<C>(self.distance)?;
        let step = distinct.len().div_ceil(SAMPLED_VALUES).max(1);
        let counts: Vec<AtomicU32> = (0..SAMPLED_VALUES).map(|_| AtomicU32::new(0)).collect();
        let wrong = AtomicU64::new(0);
        let codes = distinct.codes();
        let _ = near_values(distinct, limit, &|near: &[NearPair]| {
            for &NearPair { a, b, distance } in near {
                let differing = codes[a as usize].hamming_distance(codes[b as usize]);
                let right = a < b && differing == distance && differing <= self.distance;
                wrong.fetch_add(u64::from(!right), Ordering::Relaxed);
                for value in [a as usize, b as usize] {
                    if value % step == 0 {
                        counts[value / step].fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        ensure!(wrong.into_inner() == 0, "pairs of {} are wrong", self.name);
        let values: HashSet<C> = codes.iter().copied().step_by(step).collect();
        ensure!(
            values.len() == codes.len().div_ceil(step),
            "values are not distinct"
        );
        for (value, count) in codes.iter().step_by(step).zip(counts) {
            let mut expected = 0;
            scan_within(codes, *value, limit, |_, _| expected += 1);
            let found = count.into_inner() + 1;
            ensure!(
                found == expected,
                "{value:x?} has {expected} near, not {found}"
            );
        }
        Ok(())
    }
}
