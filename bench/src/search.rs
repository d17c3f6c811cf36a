//! Look-ups from the command line in an index of bare fingerprints, which is built, verified and
//! searched.
//!
//! Queries are stored fingerprints with up to 3 flipped bits. Each must find the fingerprint that
//! it was made from at the right distance, and both numbers of threads must find the same matches.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::dedup::binary;
use crate::machine;

#[derive(Serialize)]
struct Row {
    what: &'static str,
    fingerprints: u64,
    queries: u64,
    threads: u32,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    /// Seconds of these until the index was open and checked.
    #[serde(serialize_with = "machine::rounded")]
    opening_seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    microseconds_each: f64,
}

/// Measures a million queries against 50 million fingerprints.
pub fn run() -> Result<()> {
    machine::write("search", measure(50_000_000, 1_000_000)?)
}

/// Runs the benchmark on few fingerprints, as a test.
pub fn smoke() -> Result<()> {
    measure(20_000, 2_000).map(drop)
}

/// Returns the fingerprint of a number (SplitMix64).
fn fingerprint(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the stored fingerprint that a query is made from, its flipped bits, and their number.
fn query(at: u64, count: u64) -> (u64, u64, u32) {
    let stored = fingerprint(!at) % count;
    let flips = (0..at % 4).map(|flip| 1u64 << (fingerprint(at << 8 | flip) % 64));
    let mask = flips.fold(0, |mask, bit| mask | bit);
    (stored, mask, mask.count_ones())
}

fn measure(count: u64, queries: u64) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let (codes, asked) = (
        folder.path().join("codes.tsv"),
        folder.path().join("asked.tsv"),
    );
    let library = folder.path().join("codes.lib");
    write_lines(&codes, (0..count).map(fingerprint))?;
    let of = |at| {
        let (stored, mask, _) = query(at, count);
        fingerprint(stored) ^ mask
    };
    write_lines(&asked, (0..queries).map(of))?;
    let started = Instant::now();
    let built = command(
        &["index", "build", "--fingerprints", "--json"],
        &[&library, &codes],
    )?;
    ensure!(built["added"] == count, "{built}");
    let mut rows = vec![Row {
        what: "build",
        fingerprints: count,
        queries: 0,
        threads: 2,
        seconds: started.elapsed().as_secs_f64(),
        opening_seconds: 0.0,
        microseconds_each: started.elapsed().as_secs_f64() * 1e6 / count as f64,
    }];
    let mut first = None;
    for threads in [1, 2] {
        let found = folder.path().join(format!("found-{threads}.tsv"));
        let threads_given = threads.to_string();
        let mut fastest: Option<(f64, Value)> = None;
        for _ in 0..3 {
            let options = [
                "search",
                "--fingerprints",
                "--json",
                "--threads",
                &threads_given,
            ];
            let started = Instant::now();
            let places = [library.as_path(), &asked, Path::new("-o"), &found];
            let said = command(&options, &places)?;
            let seconds = started.elapsed().as_secs_f64();
            if fastest.as_ref().is_none_or(|(best, _)| seconds < *best) {
                fastest = Some((seconds, said));
            }
        }
        let (seconds, said) = fastest.context("there are rounds")?;
        let text = std::fs::read_to_string(&found)?;
        check(&text, count, queries)?;
        ensure!(
            *first.get_or_insert_with(|| text.clone()) == text,
            "threads change the matches"
        );
        rows.push(Row {
            what: "search",
            fingerprints: count,
            queries,
            threads,
            seconds,
            opening_seconds: said["opening_seconds"]
                .as_f64()
                .context("no time of opening")?,
            microseconds_each: seconds * 1e6 / queries as f64,
        });
    }
    for row in &rows {
        println!(
            "{} on {} threads: {:.2} s, of it opening {:.2} s",
            row.what, row.threads, row.seconds, row.opening_seconds
        );
    }
    Ok(rows)
}

/// Checks that every query found the fingerprint that it was made from.
fn check(table: &str, count: u64, queries: u64) -> Result<()> {
    let mut seen = vec![false; queries as usize];
    for line in table.lines().skip(1) {
        let mut cells = line.split('\t').map(str::parse::<u64>);
        let mut next = || {
            cells
                .next()
                .context("a cell is missing")?
                .context("no number")
        };
        let (asked, matched, distance) = (next()? - 1, next()? - 1, next()?);
        let (stored, _, flipped) = query(asked, count);
        if matched == stored {
            ensure!(distance == u64::from(flipped), "{line}");
            seen[asked as usize] = true;
        }
    }
    let missed = seen.iter().filter(|&&seen| !seen).count();
    ensure!(
        missed == 0,
        "{missed} queries did not find what they were made of"
    );
    Ok(())
}

fn write_lines(path: &Path, codes: impl Iterator<Item = u64>) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for code in codes {
        writeln!(file, "{code:016x}")?;
    }
    Ok(file.flush()?)
}

/// Runs the command and parses its output.
fn command(options: &[&str], places: &[&Path]) -> Result<Value> {
    let output = Command::new(binary()?)
        .args(options)
        .args(places)
        .output()?;
    ensure!(
        output.status.success(),
        "{options:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
