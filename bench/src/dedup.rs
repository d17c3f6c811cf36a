//! The whole command, from input file to synced output file.
//!
//! The answer is checked: every input format and number of threads keeps the same documents. The
//! threshold is that of the pipelines it is compared with; the default threshold is measured as
//! well.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lookalike::Threshold;
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    format: &'static str,
    threshold: f64,
    threads: u32,
    documents: u64,
    kept: u64,
    removed: u64,
    /// Megabytes of the uncompressed rows.
    megabytes: f64,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    megabytes_per_second: f64,
    #[serde(serialize_with = "machine::rounded")]
    million_documents_per_second: f64,
}

/// Peak memory of some runs.
#[derive(Serialize)]
struct Peak {
    corpus: String,
    format: &'static str,
    documents: u64,
    #[serde(serialize_with = "machine::rounded")]
    peak_megabytes: f64,
    /// Memory that a run may take: 256 MB, plus 300 bytes per document of up to 100 characters and
    /// 1,000 bytes per longer document, plus 12 times the longest text.
    #[serde(serialize_with = "machine::rounded")]
    bound_megabytes: f64,
}

/// Threshold of the pipelines of the comparison.
const PIPELINE_THRESHOLD: f64 = 0.8;

/// Measures on the real corpora.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        measure(&corpus, &[1, 2], 5, &mut rows)?;
    }
    let template = generate::generate_template(100_000, 100, 7, 0.3);
    let corpus = Corpus::from_documents("template", &template, folder.path())?;
    measure(&corpus, &[2], 2, &mut rows)?;
    machine::write("dedup", rows)
}

/// Measures the memory of runs over the real corpora.
pub fn memory(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut peaks = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        watch(&corpus, 5, &mut peaks)?;
    }
    for (name, documents, words, changed) in [
        ("template", 100_000, 100, 0.3),
        ("long template", 20_000, 1100, 0.1),
    ] {
        let template = generate::generate_template(documents, words, 7, changed);
        let corpus = Corpus::from_documents(name, &template, folder.path())?;
        watch(&corpus, 2, &mut peaks)?;
    }
    machine::write("memory", peaks)
}

/// Runs the benchmark on generated corpora, as a test.
pub fn smoke() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut rows, mut peaks) = (Vec::new(), Vec::new());
    for (name, kind) in [
        ("english", CorpusKind::English),
        ("chinese", CorpusKind::Chinese),
    ] {
        let corpus = Corpus::from_documents(
            name,
            &generate::generate_corpus(kind, 2000, 1),
            folder.path(),
        )?;
        measure(&corpus, &[1, 2], 1, &mut rows)?;
        watch(&corpus, 1, &mut peaks)?;
    }
    for row in rows {
        ensure!(row.removed > 0, "nothing was removed from {}", row.corpus);
    }
    for peak in peaks {
        let within = peak.peak_megabytes <= peak.bound_megabytes;
        ensure!(within, "{} took {} MB", peak.corpus, peak.peak_megabytes);
    }
    Ok(())
}

/// Measures the peak memory of some runs on two threads, by format.
fn watch(corpus: &Corpus, rounds: u32, peaks: &mut Vec<Peak>) -> Result<()> {
    let bound_megabytes = bound(&corpus.texts()?);
    for (format, path) in formats(corpus)? {
        let run = best(&path, 2, Threshold::DEFAULT.get(), rounds)?;
        println!(
            "{:10} {format:9} {:5.0} of {bound_megabytes:5.0} MB",
            corpus.name, run.peak_megabytes
        );
        peaks.push(Peak {
            corpus: corpus.name.clone(),
            format,
            documents: run.documents,
            peak_megabytes: run.peak_megabytes,
            bound_megabytes,
        });
    }
    Ok(())
}

fn formats(corpus: &Corpus) -> Result<[(&'static str, PathBuf); 3]> {
    Ok([
        ("as it is", corpus.path.clone()),
        ("parquet", corpus.parquet()?),
        ("zstd", corpus.zstd()?),
    ])
}

fn measure(corpus: &Corpus, threads: &[u32], rounds: u32, rows: &mut Vec<Row>) -> Result<()> {
    let megabytes = std::fs::metadata(&corpus.path)?.len() as f64 / 1e6;
    let many = *threads.last().context("some number of threads")?;
    let by_default = (
        "as it is",
        corpus.path.clone(),
        Threshold::DEFAULT.get(),
        many,
    );
    let mut settings = vec![by_default];
    for (format, path) in formats(corpus)? {
        let settings_of = |&threads: &u32| (format, path.clone(), PIPELINE_THRESHOLD, threads);
        settings.extend(threads.iter().map(settings_of));
    }
    let mut expected = HashMap::new();
    for (format, path, threshold, threads) in settings {
        let run = best(&path, threads, threshold, rounds)?;
        let agreed = *expected.entry(threshold.to_bits()).or_insert(run.kept) == run.kept;
        ensure!(
            agreed,
            "{} keeps {} documents as {format}",
            corpus.name,
            run.kept
        );
        let row = Row {
            corpus: corpus.name.clone(),
            format,
            threshold,
            threads,
            documents: run.documents,
            kept: run.kept,
            removed: run.documents - run.kept,
            megabytes,
            seconds: run.seconds,
            megabytes_per_second: megabytes / run.seconds,
            million_documents_per_second: run.documents as f64 / 1e6 / run.seconds,
        };
        println!(
            "{:10} {format:9} at {threshold:4} {threads} threads {:7.3} s {:6.0} MB/s {:6.2} M documents/s, \
                 kept {} of {}",
            row.corpus,
            row.seconds,
            row.megabytes_per_second,
            row.million_documents_per_second,
            row.kept,
            row.documents
        );
        rows.push(row);
    }
    Ok(())
}

fn bound(texts: &[String]) -> f64 {
    let each = |text: &String| {
        if text.chars().count() <= 100 {
            300
        } else {
            1000
        }
    };
    let all: usize = texts.iter().map(each).sum();
    let longest = texts.iter().map(String::len).max().unwrap_or_default();
    (256_000_000 + all + 12 * longest) as f64 / 1e6
}

/// A run of the command.
pub struct Run {
    /// Elapsed seconds.
    pub seconds: f64,
    /// Documents read.
    pub documents: u64,
    /// Documents kept.
    pub kept: u64,
    peak_megabytes: f64,
}

/// Returns the fastest of some runs after one to warm up, with the highest peak memory of all.
pub fn best(input: &Path, threads: u32, threshold: f64, rounds: u32) -> Result<Run> {
    best_by("auto", input, threads, threshold, rounds)
}

/// Returns the same as [`best`], for a given method.
pub fn best_by(
    method: &str,
    input: &Path,
    threads: u32,
    threshold: f64,
    rounds: u32,
) -> Result<Run> {
    let mut best = once(method, input, threads, threshold)?;
    for _ in 0..rounds {
        let run = once(method, input, threads, threshold)?;
        let peak_megabytes = best.peak_megabytes.max(run.peak_megabytes);
        if run.seconds < best.seconds {
            best = run;
        }
        best.peak_megabytes = peak_megabytes;
    }
    Ok(best)
}

fn once(method: &str, input: &Path, threads: u32, threshold: f64) -> Result<Run> {
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    let output = input.with_file_name(format!("out-{name}"));
    let _ = std::fs::remove_file(&output);
    let started = Instant::now();
    let mut child = Command::new(binary()?)
        .arg("dedup")
        .arg(input)
        .arg("-o")
        .arg(&output)
        .args(["--json", "--quiet", "--threads", &threads.to_string()])
        .args(["--threshold", &threshold.to_string(), "--method", method])
        .args(["--forms", "off"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut peak_megabytes = 0.0f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_megabytes = peak_megabytes.max(resident(child.id()));
        std::thread::sleep(Duration::from_millis(1));
    };
    let seconds = started.elapsed().as_secs_f64();
    ensure!(status.success(), "dedup of {name} failed");
    let report: serde_json::Value = serde_json::from_reader(child.stdout.context("no output")?)?;
    let count = |field: &str| {
        report[field]
            .as_u64()
            .with_context(|| format!("no {field}"))
    };
    Ok(Run {
        seconds,
        documents: count("documents")?,
        kept: count("kept")?,
        peak_megabytes,
    })
}

/// Returns the peak memory of a process so far, in MB.
pub fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    let kib = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0 / 1e6
}

/// Returns the path of the `lookalike` binary beside this program.
pub fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("lookalike");
    if !path.exists() {
        bail!(
            "{} is missing: run `cargo build --release` first",
            path.display()
        );
    }
    Ok(path)
}
