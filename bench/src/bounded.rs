//! Corpora beyond the memory: time, peak memory and temporary files of `dedup` with and without a limit.
//!
//! Articles are copies of `en_docs` in which the last letter of a third of the words is another one, in each copy
//! of other words. So copies do not resemble each other, and each has the duplicates of the original. Titles are
//! those of `growth`. Repeated passages are cut out of articles too.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;

use crate::corpora::Corpus;
use crate::hamming::mix;
use crate::{dedup, growth, machine};

/// Sizes of the corpora. 10 GB of articles take 15 GB of disk, 16 million titles 9 GB, 100 million 55 GB; 4 GB of articles
/// whose passages are cut 14 GB.
#[derive(Args)]
pub struct BoundedOptions {
    /// Copies of `en_docs`, each with the limit in megabytes.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_values = ["6:250", "56:1000"])]
    articles: Vec<(u64, u64)>,
    /// Millions of titles, each with the limit in megabytes.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_values = ["4:700", "16:2000"])]
    titles: Vec<(u64, u64)>,
    /// Copies of `en_docs` whose repeated passages are cut, each with the limit in megabytes.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_values = ["6:250", "24:600"])]
    passages: Vec<(u64, u64)>,
    /// Measure nothing but runs that cut repeated passages.
    #[arg(long)]
    only_passages: bool,
    /// Do not run without a limit.
    #[arg(long)]
    only_bounded: bool,
}

fn parse_size(text: &str) -> Result<(u64, u64)> {
    let (size, limit) = text.split_once(':').context("give SIZE:MEGABYTES")?;
    Ok((size.parse()?, limit.parse()?))
}

#[derive(Serialize)]
struct Row {
    corpus: &'static str,
    documents: u64,
    #[serde(serialize_with = "machine::rounded")]
    gigabytes: f64,
    /// `none` if everything stays in memory.
    limit_megabytes: String,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    /// Part of the speed without a limit.
    #[serde(serialize_with = "machine::rounded")]
    speed: f64,
    peak_megabytes: u64,
    temporary_megabytes: u64,
    groups: u64,
    /// Passages that were cut.
    passages: u64,
}

/// Measures on two threads.
pub fn run(options: &BoundedOptions, data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let original = Corpus::real(data, "en_docs.jsonl", folder.path())?;
    let mut rows = Vec::new();
    for &(copies, limit) in &options.passages {
        let path = folder.path().join("articles.jsonl");
        write_articles(&original.path, copies, &path)?;
        measure_both(
            "articles",
            &path,
            limit,
            RunKind::CutPassages,
            options,
            &mut rows,
        )?;
        std::fs::remove_file(path)?;
    }
    machine::write("bounded_passages", rows)?;
    if options.only_passages {
        return Ok(());
    }
    let mut rows = Vec::new();
    for &(copies, limit) in &options.articles {
        let path = folder.path().join("articles.jsonl");
        write_articles(&original.path, copies, &path)?;
        measure_both("articles", &path, limit, RunKind::Dedup, options, &mut rows)?;
        std::fs::remove_file(path)?;
    }
    for &(millions, limit) in &options.titles {
        let path = folder.path().join("titles.tsv");
        growth::write_titles(millions * 1_000_000, &path, data)?;
        measure_both("titles", &path, limit, RunKind::Dedup, options, &mut rows)?;
        std::fs::remove_file(path)?;
    }
    machine::write("bounded", rows)
}

/// Runs a short form on generated articles, as a test.
pub fn smoke() -> Result<()> {
    use lookalike_oracle::generate::{self, CorpusKind};
    let folder = tempfile::tempdir()?;
    let documents = generate::generate_corpus(CorpusKind::English, 500, 5);
    let original = Corpus::from_documents("made", &documents, folder.path())?;
    let path = folder.path().join("articles.jsonl");
    write_articles(&original.path, 3, &path)?;
    let whole = measure(&path, None, RunKind::Dedup)?;
    ensure!(whole.documents == 1500, "{} documents", whole.documents);
    ensure!(
        (100..1490).contains(&whole.kept),
        "{} of {} articles were kept",
        whole.kept,
        whole.documents
    );
    let bounded = measure(&path, Some(400), RunKind::Dedup)?;
    ensure!(bounded.kept == whole.kept, "the results differ");
    let [whole, bounded] =
        [None, Some(400)].map(|limit| measure(&path, limit, RunKind::CutPassages));
    let passages = whole?.passages;
    ensure!(passages > 0, "no passage was cut");
    ensure!(bounded?.passages == passages, "the cuts differ");
    Ok(())
}

/// The kind of a measured run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    Dedup,
    /// The same, with repeated passages cut out of what is kept.
    CutPassages,
}

fn measure_both(
    corpus: &'static str,
    input: &Path,
    limit: u64,
    kind: RunKind,
    options: &BoundedOptions,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let limits = [None, Some(limit)];
    let mut in_memory = None;
    for limit in limits.into_iter().skip(usize::from(options.only_bounded)) {
        let measured = measure(input, limit, kind)?;
        let numbers = [measured.removed, measured.passages];
        let whole = in_memory.get_or_insert((measured.seconds, numbers));
        ensure!(whole.1 == numbers, "{corpus}: the results differ");
        let row = Row {
            corpus,
            documents: measured.documents,
            gigabytes: std::fs::metadata(input)?.len() as f64 / 1e9,
            limit_megabytes: limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()),
            speed: whole.0 / measured.seconds,
            seconds: measured.seconds,
            peak_megabytes: measured.peak_megabytes as u64,
            temporary_megabytes: measured.temporary_megabytes,
            groups: measured.groups,
            passages: measured.passages,
        };
        println!(
            "{corpus} {:10} documents, limit {:>5}: {:7.1} s ({:.2}) {:6} MB, {:6} MB of temporary files",
            row.documents,
            row.limit_megabytes,
            row.seconds,
            row.speed,
            row.peak_megabytes,
            row.temporary_megabytes
        );
        rows.push(row);
    }
    Ok(())
}

/// A run of `dedup` as it was seen from outside, and what it says of itself.
pub struct MeasuredRun {
    pub documents: u64,
    kept: u64,
    removed: u64,
    seconds: f64,
    /// Seconds of reading and deciding.
    pub deciding_seconds: f64,
    pub peak_megabytes: f64,
    pub temporary_megabytes: u64,
    groups: u64,
    passages: u64,
}

/// Runs `dedup` on two threads, under a limit in megabytes if there is one.
pub fn measure(input: &Path, limit: Option<u64>, kind: RunKind) -> Result<MeasuredRun> {
    let report: PathBuf = input.with_file_name("report.json");
    let removed = input.with_file_name("removed.tsv");
    let begun = std::time::Instant::now();
    let mut command = Command::new(dedup::binary()?);
    command
        .arg("dedup")
        .arg(input)
        .arg("--removed")
        .arg(&removed);
    command.args(["--json", "--quiet", "--threads", "2", "--forms", "off"]);
    if kind == RunKind::CutPassages {
        let cuts = input.with_file_name("cuts.jsonl");
        command.args(["--passages", "remove", "--cuts"]).arg(cuts);
    }
    if let Some(limit) = limit {
        command.args(["--memory", &format!("{limit}M")]);
        command.env("TMPDIR", input.parent().context("no directory")?);
    }
    let mut child = command
        .stdout(Stdio::from(File::create(&report)?))
        .spawn()?;
    let mut peak_megabytes = 0.0f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_megabytes = peak_megabytes.max(dedup::resident(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let seconds = begun.elapsed().as_secs_f64();
    if !status.success() {
        bail!("dedup failed");
    }
    let report: serde_json::Value = serde_json::from_reader(File::open(&report)?)?;
    let count = |field: &str| {
        report[field]
            .as_u64()
            .with_context(|| format!("no {field}"))
    };
    let of_passages = |field: &str| report["passages"][field].as_u64().unwrap_or(0);
    let of_spilled = |field: &str| report["spilled"][field].as_u64().unwrap_or(0);
    Ok(MeasuredRun {
        documents: count("documents")?,
        kept: count("kept")?,
        removed: count("removed")?,
        seconds,
        deciding_seconds: seconds_of_stages(&report, &["read", "match"]),
        peak_megabytes,
        temporary_megabytes: (of_spilled("bytes") + of_passages("spilled_bytes")) / 1_000_000,
        groups: of_spilled("groups"),
        passages: of_passages("passages"),
    })
}

fn seconds_of_stages(report: &serde_json::Value, wanted: &[&str]) -> f64 {
    let stages = report["stages"].as_array().into_iter().flatten();
    let wanted = stages.filter(|stage| wanted.iter().any(|name| stage[0] == *name));
    wanted.filter_map(|stage| stage[1].as_f64()).sum()
}

/// Writes copies of a corpus, of which only the first is unchanged.
pub fn write_articles(original: &Path, copies: u64, path: &Path) -> Result<()> {
    let mut rows = Vec::new();
    File::open(original)?.read_to_end(&mut rows)?;
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for copy in 0..copies {
        let mut changed = rows.clone();
        if copy > 0 {
            change_words(&mut changed, copy);
        }
        file.write_all(&changed)?;
    }
    // Sync now, because the system would otherwise write it while a benchmark uses the disk.
    file.into_inner()?.sync_all()?;
    Ok(())
}

/// Replaces the last letter of a third of the words of three letters and more. Names of fields and escapes stay as
/// they are.
fn change_words(rows: &mut [u8], copy: u64) {
    let mut at = 0;
    while at < rows.len() {
        if !rows[at].is_ascii_alphabetic() {
            at += 1;
            continue;
        }
        let start = at;
        let mut hash = copy;
        while at < rows.len() && rows[at].is_ascii_alphabetic() {
            hash = mix(hash ^ u64::from(rows[at]));
            at += 1;
        }
        let before = start.checked_sub(1).map(|before| rows[before]);
        let is_text = !matches!(before, Some(b'"' | b'\\'));
        if is_text && at - start >= 3 && hash.is_multiple_of(3) {
            rows[at - 1] = b'a' + ((hash >> 8) % 26) as u8;
        }
    }
}
