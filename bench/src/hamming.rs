//! Look-ups by Hamming distance in immutable indexes.
//!
//! Queries are stored fingerprints with up to k flipped bits. The answers are checked: every
//! planted fingerprint is found, and for a sample the results equal those of a scan.

use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::hamming::scan::{
    BlockInvertedIndex, ExpandedQueryIndex, StoredNeighbourhoodIndex, scan_within,
};
use lookalike::hamming::{
    BucketLayout, CodeSource, FingerprintCode, HammingPlan, HammingSegment, PlanRequest,
    SearchLimits, SegmentMatch,
};
use lookalike::sketch::SimHasher;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Distance, Recipe};
use memmap2::{Advice, MmapOptions};
use serde::Serialize;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

/// A result; values that were not measured are NaN.
#[derive(Serialize)]
struct Row {
    fingerprints: String,
    count: usize,
    bits: u32,
    distance: u32,
    plan: String,
    #[serde(serialize_with = "machine::rounded")]
    bytes_each: f64,
    #[serde(serialize_with = "machine::rounded")]
    build_seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    batched_microseconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    single_microseconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    matches_per_query: f64,
}

impl Row {
    fn plain(plan: String, count: usize, distance: u32, bytes: f64, seconds: f64) -> Self {
        Self {
            fingerprints: "uniform".to_owned(),
            count,
            bits: 64,
            distance,
            plan,
            bytes_each: bytes,
            build_seconds: f64::NAN,
            batched_microseconds: f64::NAN,
            single_microseconds: seconds * 1e6,
            matches_per_query: f64::NAN,
        }
    }
}

/// The measurements.
#[derive(clap::Args)]
pub struct Selection {
    /// A billion fingerprints, which takes 18 GB of memory, and nothing else.
    #[arg(long)]
    large: bool,
    /// Nothing but these fingerprints and queries, files of little-endian 64-bit words; every query is at
    /// most 3 bits from a fingerprint.
    #[arg(long, num_args = 2, value_names = ["FINGERPRINTS", "QUERIES"])]
    words: Option<Vec<PathBuf>>,
}

/// Measures the selection.
pub fn run(data: &Path, selection: &Selection) -> Result<()> {
    if let Some([codes, queries]) = selection.words.as_deref() {
        return given(&words(codes)?, &words(queries)?);
    }
    if selection.large {
        let mut rows = Vec::new();
        let request = request(1_000_000_000, 64, 3)?;
        let plan = fitting(&request, BucketLayout::Packed)?;
        measure(
            "uniform",
            &plan,
            &Uniform::<u64>::new(1_000_000_000, 64),
            1_000_000,
            &mut rows,
        )?;
        return machine::write("hamming_large", rows);
    }
    let mut rows = Vec::new();
    uniform::<u64>(50_000_000, 64, 3, BucketLayout::Lines, &mut rows)?;
    uniform::<u64>(50_000_000, 64, 3, BucketLayout::Packed, &mut rows)?;
    uniform::<u64>(50_000_000, 64, 6, BucketLayout::Lines, &mut rows)?;
    uniform::<u64>(50_000_000, 64, 6, BucketLayout::Packed, &mut rows)?;
    uniform::<u128>(50_000_000, 128, 7, BucketLayout::Lines, &mut rows)?;
    uniform::<u64>(10_000_000, 64, 3, BucketLayout::Lines, &mut rows)?;
    uniform::<u64>(1_000_000, 64, 3, BucketLayout::Lines, &mut rows)?;
    for name in REAL_CORPORA {
        let codes = real(data, name)?;
        let request = request(codes.len(), 64, 3)?;
        measure(
            name,
            &HammingPlan::choose_plan(&request)?,
            &codes[..],
            100_000,
            &mut rows,
        )?;
    }
    baselines(1_000_000, &mut rows)?;
    pairs_of_fingerprints(&mut rows);
    random_lines(1 << 30, &mut rows)?;
    machine::write("hamming", rows)
}

/// Measures the default plan, and the fastest plan of any size.
fn given(codes: &[u64], queries: &[u64]) -> Result<()> {
    let request = request(codes.len(), 64, 3)?;
    let fastest = HammingPlan::best_of(HammingPlan::all_plans(&request)?, request.count)
        .context("there are plans")?;
    let mut rows = Vec::new();
    for plan in [HammingPlan::choose_plan(&request)?, fastest] {
        rows.push(look_up("given", &plan, codes, queries)?);
    }
    machine::write("hamming_given", rows)
}

fn words(path: &Path) -> Result<Vec<u64>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let (words, rest) = bytes.as_chunks();
    ensure!(rest.is_empty(), "{} is not of 64-bit words", path.display());
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Runs the benchmark on few fingerprints, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    for layout in [BucketLayout::Lines, BucketLayout::Packed] {
        uniform::<u64>(20_000, 64, 3, layout, &mut rows)?;
        uniform::<u128>(20_000, 128, 7, layout, &mut rows)?;
    }
    baselines(5_000, &mut rows)?;
    pairs_of_fingerprints(&mut rows);
    random_lines(1 << 20, &mut rows)
}

/// Evenly distributed fingerprints that are computed when they are read.
struct Uniform<C> {
    count: usize,
    bits: u32,
    codes: std::marker::PhantomData<C>,
}

impl<C: FingerprintCode> Uniform<C> {
    fn new(count: usize, bits: u32) -> Self {
        Self {
            count,
            bits,
            codes: std::marker::PhantomData,
        }
    }

    fn code(&self, row: usize) -> C {
        let low = u128::from(mix(row as u64));
        let high = u128::from(mix(row as u64 ^ 0xabcd_0000_0000));
        C::narrow_from((high << 64 | low) & u128::MAX >> (128 - self.bits))
    }
}

impl<C: FingerprintCode> CodeSource<C> for Uniform<C> {
    fn code_count(&self) -> usize {
        self.count
    }

    fn read_codes(&self, from: usize, into: &mut [C]) -> io::Result<()> {
        for (row, code) in (from..).zip(into) {
            *code = self.code(row);
        }
        Ok(())
    }
}

/// Returns the number of the SplitMix64 generator at a position.
pub(crate) fn mix(at: u64) -> u64 {
    let mut value = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn request(count: usize, bits: u32, distance: u32) -> Result<PlanRequest> {
    Ok(PlanRequest {
        count: count as u64,
        bits,
        distance: Distance::new(distance, bits)?,
        memory: None,
    })
}

/// Returns the best plan of a layout within a number of bytes per fingerprint. The limit is lower
/// for packed layouts, and higher for large distances and widths.
fn fitting(request: &PlanRequest, layout: BucketLayout) -> Result<HammingPlan> {
    let count = request.count;
    let most = match (request.bits, request.distance.get(), layout) {
        (65.., ..) => 64.0,
        (_, 4.., _) => 32.0,
        (_, _, BucketLayout::Lines) => 24.0,
        (_, _, BucketLayout::Packed) => 17.0,
    };
    let plans = HammingPlan::all_plans(request)?.into_iter();
    let plans = plans.filter(|plan| plan.bucket_layout() == layout);
    let fits = |plan: &HammingPlan| plan.predict_cost(count).bytes <= most * count as f64;
    HammingPlan::best_of(plans.filter(fits), count)
        .map_or_else(|| Ok(HammingPlan::choose_plan(request)?), Ok)
}

fn uniform<C: FingerprintCode>(
    count: usize,
    bits: u32,
    distance: u32,
    layout: BucketLayout,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let plan = fitting(&request(count, bits, distance)?, layout)?;
    let made = Uniform::<C>::new(count, bits);
    let mut codes = vec![C::default(); count];
    made.read_codes(0, &mut codes)?;
    measure("uniform", &plan, &codes[..], 1_000_000.min(count), rows)
}

/// Measures with the queries of [`planted`].
fn measure<C: FingerprintCode>(
    name: &str,
    plan: &HammingPlan,
    codes: &(impl CodeSource<C> + ?Sized),
    queries: usize,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let planted = planted(
        codes,
        queries,
        plan.fingerprint_bits(),
        plan.distance().get(),
    )?;
    rows.push(look_up(name, plan, codes, &planted)?);
    Ok(())
}

/// Times queries, each of which is near a stored fingerprint.
fn look_up<C: FingerprintCode>(
    name: &str,
    plan: &HammingPlan,
    codes: &(impl CodeSource<C> + ?Sized),
    planted: &[C],
) -> Result<Row> {
    let count = codes.code_count();
    let distance = plan.distance();
    let mut started = Instant::now();
    let mut segment = HammingSegment::build_index(plan, codes)?;
    // Build again if that is quick, because memory that was never used before is slow.
    if count <= 100_000_000 {
        drop(segment);
        started = Instant::now();
        segment = HammingSegment::build_index(plan, codes)?;
    }
    let build_seconds = started.elapsed().as_secs_f64();
    let search = SearchLimits::within_distance(distance);
    let (mut batched, mut single) = (f64::INFINITY, f64::INFINITY);
    let mut matches = 0;
    for _ in 0..4 {
        let (mut answered, mut last) = (0, usize::MAX);
        matches = 0;
        let started = Instant::now();
        segment.search_queries(planted, &search, |query, found| {
            answered += usize::from(query != last);
            last = query;
            matches += 1;
            black_box(found);
        });
        batched = batched.min(started.elapsed().as_secs_f64() / planted.len() as f64);
        ensure!(
            answered == planted.len(),
            "{answered} of {} planted were found",
            planted.len()
        );
        let some = &planted[..planted.len() / 5];
        let started = Instant::now();
        for query in some {
            segment.search_queries(std::slice::from_ref(query), &search, |_, found| {
                black_box(found);
            });
        }
        single = single.min(started.elapsed().as_secs_f64() / some.len() as f64);
    }
    check_sample(&segment, codes, planted)?;
    let row = Row {
        fingerprints: name.to_owned(),
        count,
        bits: plan.fingerprint_bits(),
        distance: distance.get(),
        plan: plan.to_string(),
        bytes_each: segment.size_in_bytes() as f64 / count as f64,
        build_seconds,
        batched_microseconds: batched * 1e6,
        single_microseconds: single * 1e6,
        matches_per_query: matches as f64 / planted.len() as f64,
    };
    print(&row);
    Ok(row)
}

fn print(row: &Row) {
    println!(
        "{:8} {:>10} × {} bits, k = {}, {}: {:.1} B, built in {:.2} s, {:.3} µs batched, {:.3} µs alone, {:.1} matches",
        row.fingerprints,
        row.count,
        row.bits,
        row.distance,
        row.plan,
        row.bytes_each,
        row.build_seconds,
        row.batched_microseconds,
        row.single_microseconds,
        row.matches_per_query
    );
}

/// Returns stored fingerprints with 0 to k flipped bits.
fn planted<C: FingerprintCode>(
    codes: &(impl CodeSource<C> + ?Sized),
    queries: usize,
    bits: u32,
    distance: u32,
) -> io::Result<Vec<C>> {
    let one = |query: u64| {
        let mut code = [C::default()];
        codes.read_codes(
            (mix(query ^ 0x77) % codes.code_count() as u64) as usize,
            &mut code,
        )?;
        let mut flips = 0u128;
        let mut at = query << 8;
        while flips.count_ones() < query as u32 % (distance + 1) {
            at += 1;
            flips |= 1 << (mix(at) % u64::from(bits));
        }
        Ok(code[0].differing_bits(C::narrow_from(flips)))
    };
    (0..queries as u64).map(one).collect()
}

fn check_sample<C: FingerprintCode>(
    segment: &HammingSegment<C>,
    codes: &(impl CodeSource<C> + ?Sized),
    queries: &[C],
) -> Result<()> {
    let sample: Vec<C> = queries
        .iter()
        .copied()
        .step_by(queries.len() / 16 + 1)
        .collect();
    let distance = segment.plan().distance();
    let mut found = Vec::new();
    segment.search_queries(
        &sample,
        &SearchLimits::within_distance(distance),
        |query, one| found.push((query, one)),
    );
    let mut expected = Vec::new();
    let mut chunk = [C::default(); 1 << 12];
    for from in (0..codes.code_count()).step_by(chunk.len()) {
        let length = chunk.len().min(codes.code_count() - from);
        codes.read_codes(from, &mut chunk[..length])?;
        for (at, &query) in sample.iter().enumerate() {
            scan_within(&chunk[..length], query, distance, |row, distance| {
                let row = (from + row) as u32;
                expected.push((at, SegmentMatch { distance, row }));
            });
        }
    }
    found.sort_unstable();
    expected.sort_unstable();
    ensure!(found == expected, "the index differs from the scan");
    Ok(())
}

/// Returns the fingerprints of a real corpus under the default recipe.
fn real(data: &Path, name: &str) -> Result<Vec<u64>> {
    let folder = tempfile::tempdir()?;
    let corpus = Corpus::real(data, name, folder.path())?;
    let recipe = Recipe::built_in("default")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    let texts = corpus.texts()?;
    let prints = texts
        .iter()
        .filter_map(|text| hasher.fingerprint(&analyzer.analyze_text(text, &mut scratch)));
    Ok(prints.map(|print| print as u64).collect())
}

/// Measures the simple methods of textbooks and one plan on the same fingerprints.
fn baselines(count: usize, rows: &mut Vec<Row>) -> Result<()> {
    let distance = Distance::new(3, 64)?;
    let mut codes = vec![0; count];
    Uniform::<u64>::new(count, 64).read_codes(0, &mut codes)?;
    let queries = planted(&codes[..], 1000, 64, 3)?;
    let expected = |codes: &[u64], query| {
        let mut found = Vec::new();
        scan_within(codes, query, distance, |row, distance| {
            found.push((row as u32, distance))
        });
        found
    };
    let mut add =
        |name: &str, count, bytes: f64, search: &dyn Fn(u64) -> Vec<(u32, u32)>, codes: &[u64]| {
            let some = if name == "scan" || name == "neighbourhood asked" {
                50
            } else {
                1000
            };
            let started = Instant::now();
            let found: Vec<_> = queries[..some].iter().map(|&query| search(query)).collect();
            let seconds = started.elapsed().as_secs_f64() / some as f64;
            for (&query, found) in queries.iter().zip(found).take(20) {
                ensure!(
                    found == expected(codes, query),
                    "{name} differs from the scan"
                );
            }
            let row = Row::plain(name.to_owned(), count, 3, bytes, seconds);
            print(&row);
            rows.push(row);
            Ok(())
        };
    add("scan", count, 8.0, &|query| expected(&codes, query), &codes)?;
    let expanded = ExpandedQueryIndex::new(&codes, 64);
    let search = |query| expanded.search_within(query, distance);
    add("neighbourhood asked", count, f64::NAN, &search, &codes)?;
    let buckets = BlockInvertedIndex::new(&codes, 64, distance);
    add(
        "hash map of blocks",
        count,
        f64::NAN,
        &|query| buckets.search_near(query),
        &codes,
    )?;
    let few = &codes[..count.min(500)];
    let stored = StoredNeighbourhoodIndex::new(few, 64, distance)?;
    add(
        "neighbourhood stored",
        few.len(),
        f64::NAN,
        &|query| stored.search_near(query),
        few,
    )
}

/// Measures the distances of a million pairs.
fn pairs_of_fingerprints(rows: &mut Vec<Row>) {
    const MEASURED_PAIRS: usize = 1_000_000;
    let codes: Vec<u64> = (0..2 * MEASURED_PAIRS as u64).map(mix).collect();
    let (a, b) = codes.split_at(MEASURED_PAIRS);
    let mut best = f64::INFINITY;
    let mut distances = vec![0u8; MEASURED_PAIRS];
    for _ in 0..10 {
        let started = Instant::now();
        lookalike::hamming::pairwise_distances(a, b, &mut distances);
        best = best.min(started.elapsed().as_secs_f64());
    }
    let plain = |at: usize| (a[at] ^ b[at]).count_ones();
    assert!((0..MEASURED_PAIRS).all(|at| u32::from(distances[at]) == plain(at)));
    println!("distances of a million pairs: {:.2} ms", best * 1e3);
    let name = "distances of a million pairs, together";
    rows.push(Row::plain(name.to_owned(), MEASURED_PAIRS, 0, 8.0, best));
}

/// Measures the limit of the machine: random lines of 64 bytes from memory with large pages, read
/// one after another without waiting, so that one core has as many reads in progress as it can. A
/// look-up cannot take less than this for every line that it reads.
fn random_lines(bytes: usize, rows: &mut Vec<Row>) -> Result<()> {
    const MEASURED_READS: usize = 10_000_000;
    let mut memory = MmapOptions::new().len(bytes).map_anon()?;
    #[cfg(target_os = "linux")]
    memory.advise(Advice::HugePage)?;
    memory.fill(1);
    let lines = bytes / 64;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let started = Instant::now();
        let read = |at: usize| u64::from(memory[mix(at as u64) as usize % lines * 64]);
        ensure!((0..MEASURED_READS).map(read).sum::<u64>() == MEASURED_READS as u64);
        best = best.min(started.elapsed().as_secs_f64());
    }
    let name = format!(
        "random lines of {} MiB: {:.1} ns each",
        bytes >> 20,
        best / MEASURED_READS as f64 * 1e9
    );
    println!("{name}");
    rows.push(Row::plain(
        name,
        lines,
        0,
        64.0,
        best / MEASURED_READS as f64,
    ));
    Ok(())
}
