//! Predictions of `--explain-plan` beside the time, the memory and the temporary files that runs then take.
//!
//! The time is that of reading and deciding, as the prediction says. Memory is that of a run without a limit, temporary
//! files are those of a run with one, where the corpus does not fit into it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::bounded::{self, MeasuredRun};
use crate::corpora::Corpus;
use crate::{dedup, growth, machine};

/// Corpora with the limit in megabytes under which temporary files are measured, where there is one.
const FORECAST_CORPORA: [(&str, Option<u64>); 10] = [
    ("en_docs.jsonl", None),
    ("zh_docs.jsonl", None),
    ("zh_short.tsv", Some(280)),
    ("debian_descriptions.jsonl", None),
    ("zh_poems.jsonl", None),
    ("zh_laws.jsonl", None),
    ("bbc_news.jsonl", None),
    ("spdx_licences.jsonl", None),
    ("articles", Some(250)),
    ("titles", Some(700)),
];

#[derive(Serialize)]
struct Row {
    corpus: String,
    documents: u64,
    #[serde(serialize_with = "machine::rounded")]
    predicted_seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    predicted_megabytes: f64,
    #[serde(serialize_with = "machine::rounded")]
    peak_megabytes: f64,
    predicted_temporary_megabytes: u64,
    temporary_megabytes: u64,
}

/// Measures on two threads.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for (name, limit) in FORECAST_CORPORA {
        let corpus = write_corpus(name, data, folder.path())?;
        rows.push(measure(&corpus, limit)?);
        std::fs::remove_file(&corpus.path)?;
    }
    machine::write("forecast", rows)
}

/// Runs a short form on a generated corpus, as a test.
pub fn smoke() -> Result<()> {
    use lookalike_oracle::generate::{self, CorpusKind};
    let folder = tempfile::tempdir()?;
    let documents = generate::generate_corpus(CorpusKind::English, 500, 5);
    let row = measure(
        &Corpus::from_documents("made", &documents, folder.path())?,
        None,
    )?;
    ensure!(row.documents == 500, "{} documents", row.documents);
    ensure!(
        row.predicted_megabytes > 10.0,
        "{} MB",
        row.predicted_megabytes
    );
    Ok(())
}

/// Writes one of [`FORECAST_CORPORA`].
fn write_corpus(name: &str, data: &Path, folder: &Path) -> Result<Corpus> {
    let path = folder.join(name);
    match name {
        "articles" => {
            let original = Corpus::real(data, "en_docs.jsonl", folder)?;
            bounded::write_articles(&original.path, 6, &path)?;
            std::fs::remove_file(&original.path)?;
        }
        "titles" => growth::write_titles(4_000_000, &path, data)?,
        _ => return Corpus::real(data, name, folder),
    }
    let extension = if name == "titles" { "tsv" } else { "jsonl" };
    let named = path.with_extension(extension);
    std::fs::rename(&path, &named)?;
    Ok(Corpus {
        name: name.to_owned(),
        path: named,
    })
}

fn measure(corpus: &Corpus, limit: Option<u64>) -> Result<Row> {
    let free = predict(&corpus.path, None)?;
    let run = bounded::measure(&corpus.path, None, bounded::RunKind::Dedup)?;
    let mut row = Row {
        corpus: corpus.name.clone(),
        documents: run.documents,
        predicted_seconds: number(&free, "/forecast/seconds")?,
        seconds: run.deciding_seconds,
        predicted_megabytes: number(&free, "/memory_plan/expected_bytes")? / 1e6,
        peak_megabytes: run.peak_megabytes,
        predicted_temporary_megabytes: 0,
        temporary_megabytes: 0,
    };
    if limit.is_some() {
        let bounded_plan = predict(&corpus.path, limit)?;
        let MeasuredRun {
            temporary_megabytes,
            ..
        } = bounded::measure(&corpus.path, limit, bounded::RunKind::Dedup)?;
        let disk = number(&bounded_plan, "/memory_plan/disk_bytes")?;
        row.predicted_temporary_megabytes = (disk / 1e6) as u64;
        row.temporary_megabytes = temporary_megabytes;
    }
    println!(
        "{:20} {:9} documents: {:6.2} s predicted, {:6.2} taken; {:5.0} MB predicted, {:5.0} taken; {:5} MB of \
         temporary files predicted, {:5} taken",
        row.corpus,
        row.documents,
        row.predicted_seconds,
        row.seconds,
        row.predicted_megabytes,
        row.peak_megabytes,
        row.predicted_temporary_megabytes,
        row.temporary_megabytes
    );
    Ok(row)
}

/// Returns what `--explain-plan` says.
fn predict(input: &Path, limit: Option<u64>) -> Result<Value> {
    let limit = limit.map_or_else(|| "1000G".to_owned(), |limit| format!("{limit}M"));
    let mut command = Command::new(dedup::binary()?);
    command.arg("dedup").arg(input);
    command.args(["--explain-plan", "--json", "--quiet", "--threads", "2"]);
    let output = command.args(["--memory", &limit]).output()?;
    ensure!(output.status.success(), "no plan for {}", input.display());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(plan: &Value, place: &str) -> Result<f64> {
    let value = plan.pointer(place).and_then(Value::as_f64);
    value.with_context(|| format!("the plan has no {place}"))
}
