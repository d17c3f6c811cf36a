//! The live index: a window that slides while it is searched.
//!
//! The answers are checked: every query finds the fingerprint that it was made from at the right
//! distance, and for some queries all matches are compared with those of a scan over the window.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lookalike::hamming::live::{LiveIndex, SequenceNumber};
use lookalike::sketch::SimHasher;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Distance, Recipe};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::corpora::Corpus;
use crate::machine;

#[derive(Serialize)]
struct Row {
    what: String,
    fingerprints: u64,
    #[serde(serialize_with = "machine::rounded")]
    figure: f64,
    unit: &'static str,
}

/// Slots of a window.
const WINDOW_SLOTS: u64 = 50;

/// Number of fingerprints that are inserted at a time.
const INSERTED_AT_ONCE: u64 = 128;

/// Fingerprints inserted per second while the other thread searches.
const INSERTS_PER_SECOND: f64 = 1e6;

/// Measures with 50 million fingerprints in the window.
pub fn run() -> Result<()> {
    let mut rows = Vec::new();
    window(50_000_000, 2_000_000, &mut rows)?;
    machine::write("live", rows)
}

/// Measures look-ups of the fingerprints of real texts, which are not evenly distributed.
pub fn texts(data: &Path) -> Result<()> {
    let mut rows = Vec::new();
    let folder = tempfile::tempdir()?;
    for name in ["en_docs.jsonl", "zh_short.tsv"] {
        let corpus = Corpus::real(data, name, folder.path())?;
        skewed(&corpus.name, &fingerprints(&corpus.texts()?)?, &mut rows)?;
    }
    machine::write("live_texts", rows)
}

/// Runs the benchmark on few fingerprints, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    window(100_000, 20_000, &mut rows)?;
    let repeated: Vec<u64> = (0..30_000)
        .map(|at| code(at % 20_000 / (at % 3 + 1)))
        .collect();
    skewed("made", &repeated, &mut rows)
}

fn report(rows: &mut Vec<Row>, what: &str, fingerprints: u64, figure: f64, unit: &'static str) {
    println!("{what:60} {fingerprints:9} {figure:10.3} {unit}");
    rows.push(Row {
        what: what.to_owned(),
        fingerprints,
        figure,
        unit,
    });
}

/// Returns the fingerprint of a sequence number.
fn code(seq: u64) -> u64 {
    mix(seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns the distance of all searches: 3 of 64 bits.
fn distance() -> Result<Distance> {
    Ok(Distance::new(3, 64)?)
}

/// Returns the CPU time of this thread.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Times of inserting batches one after another.
#[derive(Default)]
struct Inserted {
    total: Duration,
    longest: Duration,
    longest_work: Duration,
    longest_expiry: Duration,
}

/// Inserts the fingerprints of a range of numbers, and expires those that are older than the
/// window.
fn insert(live: &LiveIndex<u64>, from: u64, to: u64, window: u64) -> Result<Inserted> {
    let mut inserted = Inserted::default();
    let mut codes = Vec::new();
    let mut seq = from;
    while seq < to {
        codes.clear();
        // A batch lies within one slot, because all of it is inserted under that slot.
        let slot = seq * WINDOW_SLOTS / window;
        let end = (seq + INSERTED_AT_ONCE)
            .min((slot + 1) * window / WINDOW_SLOTS)
            .min(to);
        codes.extend((seq..end).map(code));
        let (start, worked_before) = (Instant::now(), worked());
        if let Some(oldest) = slot.checked_sub(WINDOW_SLOTS - 1) {
            live.expire_before(oldest);
        }
        inserted.longest_expiry = inserted.longest_expiry.max(start.elapsed());
        live.insert_many(&codes, slot)?;
        let duration = start.elapsed();
        inserted.longest = inserted.longest.max(duration);
        inserted.longest_work = inserted.longest_work.max(worked() - worked_before);
        inserted.total += duration;
        seq = end;
    }
    Ok(inserted)
}

/// Returns queries near the fingerprints of a range of numbers: the numbers, and the fingerprints
/// with up to three flipped bits.
fn queries(count: u64, from: u64, to: u64) -> (Vec<u64>, Vec<u64>) {
    let made = (0..count).map(|query| {
        let seq = from + mix(query ^ from) % (to - from);
        let mut random = mix(seq);
        let mut flips = 0u64;
        while u64::from(flips.count_ones()) < query % 4 {
            flips |= 1 << (random % 64);
            random = mix(random);
        }
        (seq, code(seq) ^ flips)
    });
    made.unzip()
}

/// Searches for all queries, batched and one at a time, and returns microseconds per query. Checks
/// that each finds the fingerprint that it was made from, and nothing too far away.
fn search(live: &LiveIndex<u64>, from: u64, to: u64, count: u64) -> Result<(f64, f64)> {
    let (seqs, queries) = queries(count, from, to);
    let mut found = 0;
    let mut wrong = 0;
    let mut check = |query: usize, SequenceNumber(seq), differing| {
        found += u64::from(seq == seqs[query]);
        wrong += u64::from((code(seq) ^ queries[query]).count_ones() != differing || differing > 3);
    };
    let started = Instant::now();
    live.search_many(&queries, distance()?, &mut check)?;
    let batched = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    let started = Instant::now();
    for (query, &code) in queries.iter().enumerate() {
        live.search_within(code, distance()?, |seq, differing| {
            check(query, seq, differing)
        })?;
    }
    let single = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    ensure!(
        found == 2 * count && wrong == 0,
        "{found} of {} were found, {wrong} wrongly",
        2 * count
    );
    Ok((batched, single))
}

/// Returns the better of two measurements.
fn best_search(live: &LiveIndex<u64>, from: u64, to: u64, count: u64) -> Result<(f64, f64)> {
    let (first, second) = (
        search(live, from, to, count)?,
        search(live, from, to, count)?,
    );
    Ok((first.0.min(second.0), first.1.min(second.1)))
}

/// Checks that some queries find exactly what a scan finds.
fn compare_with_scan(live: &LiveIndex<u64>, from: u64, to: u64) -> Result<()> {
    let (_, queries) = queries(10, from, to);
    let mut expected = Vec::new();
    for seq in from..to {
        for (at, query) in queries.iter().enumerate() {
            let differing = (code(seq) ^ query).count_ones();
            if differing <= 3 {
                expected.push((at, SequenceNumber(seq), differing));
            }
        }
    }
    let mut found = Vec::new();
    live.search_many(&queries, distance()?, |at, seq, differing| {
        found.push((at, seq, differing));
    })?;
    expected.sort_unstable();
    found.sort_unstable();
    ensure!(found == expected, "the scan finds something else");
    Ok(())
}

fn window(window: u64, lookups: u64, rows: &mut Vec<Row>) -> Result<()> {
    let live = LiveIndex::new(64, distance()?)?;
    let per_fingerprint = |live: &LiveIndex<u64>| live.memory_bytes() as f64 / live.len() as f64;
    let millions = |inserted: &Inserted| window as f64 / 1e6 / inserted.total.as_secs_f64();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;

    let filled = insert(&live, 0, window, window)?;
    report(
        rows,
        "insert, growing from nothing",
        window,
        millions(&filled),
        "M/s",
    );
    report(
        rows,
        "longest insertion of 128 meanwhile, on the clock",
        window,
        milliseconds(filled.longest),
        "ms",
    );
    report(
        rows,
        "longest insertion of 128 meanwhile, time worked",
        window,
        milliseconds(filled.longest_work),
        "ms",
    );
    report(
        rows,
        "memory after growing",
        window,
        per_fingerprint(&live),
        "B each",
    );
    compare_with_scan(&live, 0, window)?;

    let end = 3 * window;
    let mut bytes = 0f64;
    let mut slid = Inserted::default();
    for begin in [window, 2 * window] {
        slid = insert(&live, begin, begin + window, window)?;
        bytes = bytes.max(per_fingerprint(&live));
    }
    ensure!(live.len() == window, "{} are live", live.len());
    report(
        rows,
        "insert, window sliding",
        window,
        millions(&slid),
        "M/s",
    );
    report(
        rows,
        "longest expiry of a slot",
        window,
        milliseconds(slid.longest_expiry),
        "ms",
    );
    report(rows, "memory, window sliding", window, bytes, "B each");
    compare_with_scan(&live, end - window, end)?;

    let (batched, single) = best_search(&live, end - window, end, lookups)?;
    report(rows, "look-up, batched", window, batched, "µs");
    report(rows, "look-up, one at a time", window, single, "µs");

    let stop = AtomicBool::new(false);
    let (searched, rate) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| keep_inserting(&live, end, window, &stop));
        // Nothing expires in the meantime.
        let searched = best_search(&live, end - window, end, lookups);
        stop.store(true, Ordering::Relaxed);
        (searched, writer.join())
    });
    let (batched, single) = searched?;
    let rate = rate.map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    report(rows, "inserted by the other thread", window, rate, "M/s");
    report(rows, "look-up meanwhile, batched", window, batched, "µs");
    report(
        rows,
        "look-up meanwhile, one at a time",
        window,
        single,
        "µs",
    );
    Ok(())
}

/// Inserts a million per second until it is stopped, and returns the millions per second reached.
fn keep_inserting(live: &LiveIndex<u64>, from: u64, window: u64, stop: &AtomicBool) -> Result<f64> {
    let started = Instant::now();
    let mut done = 0;
    let mut codes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        codes.clear();
        codes.extend((from + done..from + done + 1000).map(code));
        live.insert_many(&codes, (from + done) * WINDOW_SLOTS / window)?;
        done += 1000;
        let due = Duration::from_secs_f64(done as f64 / INSERTS_PER_SECOND);
        std::thread::sleep(due.saturating_sub(started.elapsed()));
    }
    Ok(done as f64 / 1e6 / started.elapsed().as_secs_f64())
}

/// Returns the 64-bit SimHash fingerprints of texts by the default recipe, without texts that have
/// none.
fn fingerprints(texts: &[String]) -> Result<Vec<u64>> {
    let recipe = Recipe::built_in("default")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    let made = texts.iter().filter_map(|text| {
        let analysis = analyzer.analyze_text(text, &mut scratch);
        hasher.fingerprint(&analysis).map(|made| made as u64)
    });
    Ok(made.collect())
}

/// Measures the given fingerprints and as many uniform ones. Times each of some queries, which must
/// take at most 20 times the uniform median plus 50 ns per match.
fn skewed(name: &str, codes: &[u64], rows: &mut Vec<Row>) -> Result<()> {
    let count = codes.len() as u64;
    let uniform: Vec<u64> = (0..count).map(code).collect();
    let mut times = timed(&uniform)?;
    times.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let median = times[times.len() / 2].0;
    let times = timed(codes)?;
    let within = times
        .iter()
        .filter(|(time, matches)| *time <= 20.0 * median + 0.05 * *matches as f64)
        .count();
    let mean = times.iter().map(|(time, _)| time).sum::<f64>() / times.len() as f64;
    let matches = times.iter().map(|(_, matches)| matches).sum::<u64>() as f64;
    let label = |what: &str| format!("{what} ({name})");
    report(
        rows,
        &label("look-up, uniform, median"),
        count,
        median,
        "µs",
    );
    report(rows, &label("look-up, mean"), count, mean, "µs");
    report(
        rows,
        &label("matches, mean"),
        count,
        matches / times.len() as f64,
        "",
    );
    report(
        rows,
        &label("look-ups within 20 medians and 50 ns a match"),
        count,
        100.0 * within as f64 / times.len() as f64,
        "%",
    );
    Ok(())
}

/// Number of queries that are timed one by one.
const TIMED_QUERIES: u64 = 50_000;

/// Number of passes over these queries. A look-up that is slow by itself is slow in every pass,
/// while one that the system interrupted is not.
const TIMED_PASSES: usize = 3;

/// Returns the microseconds, as the lowest of all passes, and the matches of look-ups of some
/// stored fingerprints.
fn timed(codes: &[u64]) -> Result<Vec<(f64, u64)>> {
    let live = LiveIndex::new(64, distance()?)?;
    live.insert_many(codes, 0)?;
    let mut times = vec![(f64::INFINITY, 0); TIMED_QUERIES as usize];
    for _ in 0..TIMED_PASSES {
        for (round, least) in (0..TIMED_QUERIES).zip(&mut times) {
            let query = codes[(mix(round) % codes.len() as u64) as usize];
            let mut matches = 0;
            let started = Instant::now();
            live.search_within(query, distance()?, |_, _| matches += 1)?;
            *least = (least.0.min(started.elapsed().as_secs_f64() * 1e6), matches);
        }
    }
    for (round, &(_, matches)) in (0..TIMED_QUERIES).zip(&times).step_by(5000) {
        let query = codes[(mix(round) % codes.len() as u64) as usize];
        let near = |code: &&u64| (**code ^ query).count_ones() <= 3;
        let expected = codes.iter().filter(near).count() as u64;
        ensure!(
            matches == expected,
            "{matches} matches instead of {expected}"
        );
    }
    Ok(times)
}
