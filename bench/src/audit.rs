//! Audits against the truth: the share of intervals that contain it, and the cost of an audit.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;
use serde_json::Value;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    method: &'static str,
    documents: u64,
    drawn: u64,
    /// Results of a hundred audits, if they were made.
    #[serde(flatten)]
    held: Option<Held>,
    /// Seconds of `dedup`, as the fastest of some runs.
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    audited_seconds: f64,
    /// Share of elapsed time that the audit adds.
    share: f64,
}

#[derive(Serialize)]
struct Held {
    /// Mean number of drawn documents that have a similar one.
    #[serde(serialize_with = "machine::rounded")]
    cases: f64,
    /// Recall, by the exact join and the pairs that the method lists.
    recall: f64,
    audits: u32,
    /// Number of audits whose interval contains the recall.
    held: u32,
}

const AUDITS_PER_METHOD: u32 = 100;

/// Methods of `pairs`, including one that misses many pairs.
const AUDITED_METHODS: [(&str, &[&str]); 2] = [
    ("auto", &[]),
    (
        "simhash, distance 3",
        &["--method", "simhash", "--distance", "3"],
    ),
];

/// Runs a hundred audits of both corpora of long documents with every method.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    // Short documents are joined exactly, so no pairs of them can be missed.
    for name in &REAL_CORPORA[..2] {
        let corpus = Corpus::real(data, name, folder.path())?;
        measure(&corpus, AUDITS_PER_METHOD, &mut rows)?;
        std::fs::remove_file(&corpus.path)?;
    }
    let titles = Corpus::real(data, REAL_CORPORA[2], folder.path())?;
    let (method, options) = AUDITED_METHODS[0];
    rows.push(cost(&titles, method, options)?);
    let many = many_alphabets(data, folder.path())?;
    rows.push(cost(&many, method, options)?);
    machine::write("audit", rows)
}

/// Number of times that the English documents are repeated. Every repetition has other letters, so
/// that its words are different but equally long, numerous and frequent.
const ALPHABET_COUNT: u64 = 7;

/// Writes a corpus of more than a gigabyte, which serves only to measure the cost of an audit.
fn many_alphabets(data: &Path, folder: &Path) -> Result<Corpus> {
    let texts = Corpus::real(data, REAL_CORPORA[0], folder)?.texts()?;
    let path = folder.join("alphabets.jsonl");
    let mut file = std::io::BufWriter::new(File::create(&path)?);
    for alphabet in 0..ALPHABET_COUNT {
        let other = |c: char| match c {
            // Multiplying by a number that is prime to 26 permutes the letters.
            'a'..='z' => {
                let letter = (c as u64 - 97) * (2 * alphabet + 1 + 2 * (alphabet / 6)) % 26;
                (97 + letter as u8) as char
            }
            other => other,
        };
        for (number, text) in texts.iter().enumerate() {
            let text: String = text.to_lowercase().chars().map(other).collect();
            let id = format!("{alphabet}-{number}");
            writeln!(file, "{}", serde_json::json!({ "id": id, "text": text }))?;
        }
    }
    file.flush()?;
    Ok(Corpus {
        name: format!("en_docs in {ALPHABET_COUNT} alphabets"),
        path,
    })
}

/// Runs ten audits of a generated corpus, as a test.
pub fn smoke() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let documents = generate::generate_corpus(CorpusKind::English, 1500, 3);
    let mut rows = Vec::new();
    measure(
        &Corpus::from_documents("english", &documents, folder.path())?,
        10,
        &mut rows,
    )?;
    for row in rows {
        let held = row.held.context("audits were made")?.held;
        ensure!(held >= 8, "{held} of 10 audits of {} hold", row.method);
    }
    Ok(())
}

fn measure(corpus: &Corpus, audits: u32, rows: &mut Vec<Row>) -> Result<()> {
    let equal = listed(corpus, &["--method", "exact"])?;
    let all = listed(corpus, &["--method", "join"])?;
    let similar: Vec<_> = all.difference(&equal).copied().collect();
    for (method, options) in AUDITED_METHODS {
        let found = listed(corpus, options)?;
        let recall = mean_recall(&similar, &found);
        let (mut held, mut cases) = (0, 0.0);
        for seed in 1..=audits {
            let seed = seed.to_string();
            let audit = [options, &["--audit", "--audit-seed", seed.as_str()]].concat();
            let audited = summary(corpus, &audit)?;
            let estimate = &audited["audit"]["recall"];
            let number = |name: &str| estimate[name].as_f64().context("an estimate has numbers");
            held += u32::from(number("low")? <= recall && recall <= number("high")?);
            cases += number("cases")? / f64::from(audits);
        }
        println!("{method:20} recall {recall:.5}, held by {held} of {audits}");
        rows.push(Row {
            held: Some(Held {
                cases,
                recall,
                audits,
                held,
            }),
            ..cost(corpus, method, options)?
        });
    }
    Ok(())
}

/// Measures the time that an audit adds to `dedup`: the fastest of some runs of each, in turn.
fn cost(corpus: &Corpus, method: &'static str, options: &[&str]) -> Result<Row> {
    let audit = [options, &["--audit"]].concat();
    let (mut seconds, mut audited_seconds) = (f64::INFINITY, f64::INFINITY);
    let mut last = Value::Null;
    let run_seconds =
        |summary: &Value| summary["seconds"].as_f64().context("a summary has seconds");
    for _ in 0..TIMED_RUNS {
        seconds = run_seconds(&dedup(corpus, options)?)?.min(seconds);
        last = dedup(corpus, &audit)?;
        audited_seconds = run_seconds(&last)?.min(audited_seconds);
    }
    let count = |value: &Value| value.as_u64().context("a summary has counts");
    let row = Row {
        corpus: corpus.name.clone(),
        method,
        documents: count(&last["documents"])?,
        drawn: count(&last["audit"]["sampled"])?,
        held: None,
        seconds,
        audited_seconds,
        share: (100.0 * (audited_seconds / seconds - 1.0)).round() / 100.0,
    };
    println!(
        "{:24} {:20} {:.2} s, {:.2} s audited: {:+.2}",
        row.corpus, row.method, row.seconds, row.audited_seconds, row.share
    );
    Ok(row)
}

/// Returns the mean over documents of the share of their later similar documents that is found.
fn mean_recall(similar: &[(u32, u32)], found: &HashSet<(u32, u32)>) -> f64 {
    let mut of: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for pair in similar {
        let (part, whole) = of.entry(pair.0).or_default();
        *part += u32::from(found.contains(pair));
        *whole += 1;
    }
    let shares = of
        .values()
        .map(|&(part, whole)| f64::from(part) / f64::from(whole));
    shares.sum::<f64>() / of.len().max(1) as f64
}

/// Number of timed runs.
const TIMED_RUNS: u32 = 5;

fn dedup(corpus: &Corpus, options: &[&str]) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let kept = corpus.path.file_name().unwrap_or_default();
    let kept = folder.path().join(kept);
    let kept = kept.to_str().context("a temporary path is no text")?;
    let options = [options, &["--json", "-o", kept]].concat();
    Ok(serde_json::from_slice(&ran("dedup", corpus, &options)?)?)
}

fn ran(command: &str, corpus: &Corpus, options: &[&str]) -> Result<Vec<u8>> {
    let binary = std::env::current_exe()?.with_file_name("lookalike");
    let run = Command::new(binary)
        .args([command, "--quiet", "--id-row", "--forms", "off"])
        .arg(&corpus.path)
        .args(options)
        .output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(run.stdout)
}

fn listed(corpus: &Corpus, options: &[&str]) -> Result<HashSet<(u32, u32)>> {
    let table = String::from_utf8(ran("pairs", corpus, &[options, &["--all"]].concat())?)?;
    let pair = |line: &str| -> Result<(u32, u32)> {
        let mut cells = line.split('\t');
        let mut next = || cells.next().context("a row has three cells");
        Ok((next()?.parse()?, next()?.parse()?))
    };
    table.lines().skip(1).map(pair).collect()
}

fn summary(corpus: &Corpus, options: &[&str]) -> Result<Value> {
    let options = [options, &["--json", "-o", "/dev/null"]].concat();
    Ok(serde_json::from_slice(&ran("pairs", corpus, &options)?)?)
}
