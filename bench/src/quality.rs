//! Recall and precision of `pairs` against an oracle that works on strings.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike_oracle::all_pairs;
use lookalike_oracle::generate::{self, Kind};
use serde::Serialize;

use crate::corpora::{Corpus, REAL};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    recipe: &'static str,
    threshold: f64,
    documents: usize,
    true_pairs: usize,
    found: usize,
    recall: f64,
    precision: f64,
    /// The largest difference between a reported similarity and the oracle's.
    largest_error: f64,
}

/// From low to high.
const THRESHOLDS: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Tokens in a feature of the default recipe.
const NGRAM: usize = 2;

/// Measures on 20,000 documents of every real corpus.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for name in REAL {
        let corpus = Corpus::real(data, name, folder.path())?;
        measure(&corpus.name, sample(corpus.texts()?, 20_000), &mut rows)?;
    }
    machine::write("quality", rows)
}

/// The same on made corpora, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    let kinds = [
        ("english", Kind::English),
        ("chinese", Kind::Chinese),
        ("short", Kind::Short),
    ];
    for (name, kind) in kinds {
        let documents = generate::corpus(kind, 1500, 3);
        measure(
            name,
            documents.into_iter().map(|(_, text)| text).collect(),
            &mut rows,
        )?;
    }
    for row in rows {
        ensure!(
            row.precision == 1.0,
            "precision of {} is {}",
            row.corpus,
            row.precision
        );
        ensure!(
            row.recall >= 0.99,
            "recall of {} is {}",
            row.corpus,
            row.recall
        );
        ensure!(row.true_pairs > 0, "{} has no pairs to find", row.corpus);
    }
    Ok(())
}

/// The last documents, which follow one another: near-duplicates stand near each other.
fn sample(mut texts: Vec<String>, most: usize) -> Vec<String> {
    texts.split_off(texts.len().saturating_sub(most))
}

fn measure(corpus: &str, texts: Vec<String>, rows: &mut Vec<Row>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let documents: Vec<_> = (0..)
        .map(|at: usize| at.to_string())
        .zip(texts.clone())
        .collect();
    let file = Corpus::made(corpus, &documents, folder.path())?;
    let all = all_pairs(&texts, NGRAM, THRESHOLDS[0]);
    for threshold in THRESHOLDS {
        let found = found_pairs(&file.path, threshold)?;
        let truth: HashMap<_, _> = all
            .iter()
            .filter(|(_, _, exact)| *exact >= threshold)
            .map(|&(a, b, exact)| ((a, b), exact))
            .collect();
        let right = found.keys().filter(|pair| truth.contains_key(pair)).count();
        let error = |(pair, similarity): (_, &f64)| {
            truth
                .get(pair)
                .map_or(0.0, |exact| (exact - similarity).abs())
        };
        let share = |part: usize, whole: usize| {
            if whole == 0 {
                1.0
            } else {
                part as f64 / whole as f64
            }
        };
        let row = Row {
            corpus: corpus.to_owned(),
            recipe: "default-1",
            threshold,
            documents: texts.len(),
            true_pairs: truth.len(),
            found: found.len(),
            recall: share(right, truth.len()),
            precision: share(right, found.len()),
            largest_error: found.iter().map(error).fold(0.0, f64::max),
        };
        println!(
            "{corpus:10} at {threshold}: recall {:.5} precision {:.5} of {} pairs, error {:e}",
            row.recall, row.precision, row.true_pairs, row.largest_error
        );
        rows.push(row);
    }
    Ok(())
}

fn found_pairs(input: &Path, threshold: f64) -> Result<HashMap<(usize, usize), f64>> {
    let binary = std::env::current_exe()?.with_file_name("lookalike");
    let run = Command::new(binary)
        .arg("pairs")
        .arg(input)
        .args(["--all", "--quiet", "--threshold", &threshold.to_string()])
        .output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let table = String::from_utf8(run.stdout)?;
    let pair = |line: &str| -> Result<((usize, usize), f64)> {
        let mut cells = line.split('\t');
        let mut next = || cells.next().context("a row has three cells");
        Ok(((next()?.parse()?, next()?.parse()?), next()?.parse()?))
    };
    table.lines().skip(1).map(pair).collect()
}
