//! Items of benchmarks planted into corpora in every form, and decoys: what `decontaminate` finds of them, and how fast.
//!
//! Half of the items are searched for and planted, and the other half are decoys: items of the same series. The commands
//! make the corpus, search it and score the findings, as users do.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::corpora::Corpus;
use crate::machine;

/// Options of the benchmark: corpora, and benchmarks of which items are planted.
#[derive(Args)]
pub struct ContaminationOptions {
    /// Files and directories of benchmarks; each is measured by itself.
    #[arg(long, required = true, num_args = 1..)]
    benchmarks: Vec<PathBuf>,
    /// Corpora into which items are planted.
    #[arg(long, num_args = 1.., default_values = ["en_docs.jsonl", "zh_docs.jsonl"])]
    corpus: Vec<String>,
    /// Documents into which items are planted.
    #[arg(long, default_value_t = 1000)]
    documents: usize,
}

/// The documents of one form or of one kind of decoy, and how many have a finding.
#[derive(Serialize)]
struct FormRow {
    corpus: String,
    benchmarks: String,
    kind: String,
    /// `true` if a finding in these documents is wrong.
    is_decoy: bool,
    planted: u64,
    found: u64,
    #[serde(serialize_with = "machine::rounded")]
    share: f64,
    /// Items whose question has fewer than 13 words and single characters.
    short: Option<u64>,
    short_share: Option<f64>,
}

/// One run over a corpus with planted items.
#[derive(Serialize)]
struct RunRow {
    corpus: String,
    benchmarks: String,
    /// Items that are searched for.
    items: u64,
    /// Planted documents.
    planted: u64,
    #[serde(serialize_with = "machine::rounded")]
    precision: f64,
    #[serde(serialize_with = "machine::rounded")]
    recall: f64,
    /// Findings in documents that were not planted.
    in_other_documents: u64,
    #[serde(serialize_with = "machine::rounded")]
    megabytes: f64,
    #[serde(serialize_with = "machine::rounded")]
    megabytes_per_second: f64,
    index_bytes: u64,
}

/// Measures on real corpora.
pub fn run(data: &Path, options: &ContaminationOptions) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut forms, mut runs) = (Vec::new(), Vec::new());
    for name in &options.corpus {
        let corpus = Corpus::real(data, name, folder.path())?;
        for benchmarks in &options.benchmarks {
            let documents = options.documents.to_string();
            runs.push(measure(&corpus, benchmarks, &documents, &mut forms)?);
        }
    }
    machine::write("contamination", forms)?;
    machine::write("contamination_runs", runs)
}

/// Runs the benchmark on generated documents and items, as a test.
pub fn smoke() -> Result<()> {
    for (kind, name) in [
        (CorpusKind::English, "english"),
        (CorpusKind::Chinese, "chinese"),
    ] {
        let folder = tempfile::tempdir()?;
        let documents = generate::generate_corpus(kind, 200, 1);
        let corpus = Corpus::from_documents(name, &documents, folder.path())?;
        let benchmark = folder.path().join(format!("{name}_items.jsonl"));
        write_items(kind, &benchmark)?;
        let mut forms = Vec::new();
        let run = measure(&corpus, &benchmark, "100", &mut forms)?;
        ensure!(run.precision >= 0.95, "{name}: precision {}", run.precision);
        ensure!(run.recall >= 0.9, "{name}: recall {}", run.recall);
        let verbatim = forms.iter().find(|row| row.kind == "verbatim");
        let verbatim = verbatim.context("no item was planted verbatim")?;
        ensure!(verbatim.planted > 10, "{} planted", verbatim.planted);
    }
    Ok(())
}

/// Writes items whose questions and answers are parts of generated texts, each of a seed of its own, so that no two
/// items have a text in common.
fn write_items(kind: CorpusKind, path: &Path) -> Result<()> {
    let mut lines = String::new();
    for seed in 2..122 {
        let text = generate::generate_corpus(kind, 1, seed).remove(0).1;
        // Words, and in Chinese characters.
        let parts: Vec<String> = match kind {
            CorpusKind::English => text.split(' ').map(|word| format!("{word} ")).collect(),
            CorpusKind::Chinese | CorpusKind::Short => text.chars().map(String::from).collect(),
        };
        let length = 14 + seed as usize % 12;
        let (Some(question), Some(answer)) = (parts.get(..length), parts.get(length..length + 5))
        else {
            continue;
        };
        let item = json!({ "question": question.concat(), "answer": answer.concat() });
        lines.push_str(&format!("{item}\n"));
    }
    std::fs::write(path, lines)?;
    Ok(())
}

/// Plants items, searches for them and scores the findings.
fn measure(
    corpus: &Corpus,
    benchmarks: &Path,
    documents: &str,
    forms: &mut Vec<FormRow>,
) -> Result<RunRow> {
    let folder = corpus.path.parent().context("a corpus lies in a folder")?;
    let files = [
        "contaminated.jsonl",
        "truth.tsv",
        "items.jsonl",
        "findings.tsv",
    ];
    let [planted, truth, items, findings] = files.map(|name| folder.join(name));
    let mut command = lookalike("plant", &corpus.path)?;
    command.arg("--contamination").arg(benchmarks);
    command.arg("-o").arg(&planted).arg("--labels").arg(&truth);
    command.arg("--indexed").arg(&items);
    command.args(["--documents", documents, "--id-row"]);
    run_for_summary(&mut command)?;
    let mut command = lookalike("decontaminate", &planted)?;
    command.arg("--benchmarks").arg(&items);
    command.arg("--findings").arg(&findings);
    let searched = run_for_summary(&mut command)?;
    let mut command = lookalike("eval", &findings)?;
    command.arg("--contamination").arg(&truth);
    let scored = run_for_summary(&mut command)?;
    let names = [&corpus.name, &display_name(benchmarks)].map(String::clone);
    let first = forms.len();
    for form in list(&scored, "forms")? {
        forms.push(form_row(&names, form, false)?);
    }
    for kind in list(&scored, "decoy_kinds")? {
        forms.push(form_row(&names, kind, true)?);
    }
    let [corpus, benchmarks] = names;
    let bytes = number(&searched, "bytes")?;
    let run = RunRow {
        items: count(&searched, "items")?,
        planted: count(&scored, "planted")? + count(&scored, "decoys")?,
        precision: number(&scored, "precision")?,
        recall: number(&scored, "recall")?,
        in_other_documents: count(&scored, "in_other_documents")?,
        megabytes: bytes / 1e6,
        megabytes_per_second: bytes / 1e6 / number(&searched, "seconds")?,
        index_bytes: count(&searched, "index_bytes")?,
        corpus,
        benchmarks,
    };
    println!(
        "{} {}: {} items, precision {:.4}, recall {:.4}, {} findings in other documents; {:.0} MB, {:.1} MB/s, index {:.1} MB",
        run.corpus,
        run.benchmarks,
        run.items,
        run.precision,
        run.recall,
        run.in_other_documents,
        run.megabytes,
        run.megabytes_per_second,
        run.index_bytes as f64 / 1e6
    );
    for row in &forms[first..] {
        let short = row.short_share.map_or_else(String::new, |share| {
            format!(", short {:5} {share:.3}", row.short.unwrap_or_default())
        });
        println!(
            "  {:20} {:6} {:6} {:.3}{short}",
            row.kind, row.planted, row.found, row.share
        );
    }
    Ok(run)
}

fn form_row([corpus, benchmarks]: &[String; 2], scored: &Value, is_decoy: bool) -> Result<FormRow> {
    let [found, share] = if is_decoy {
        ["wrong", "share"]
    } else {
        ["found", "recall"]
    };
    let round = |share: f64| (share * 1000.0).round() / 1000.0;
    Ok(FormRow {
        corpus: corpus.clone(),
        benchmarks: benchmarks.clone(),
        kind: scored["form"]
            .as_str()
            .context("a form has a name")?
            .to_owned(),
        is_decoy,
        planted: count(scored, "planted")?,
        found: count(scored, found)?,
        share: number(scored, share)?,
        short: scored["short"].as_u64(),
        short_share: scored["short_recall"].as_f64().map(round),
    })
}

/// Returns the last part of a path.
fn display_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn count(summary: &Value, field: &str) -> Result<u64> {
    let value = summary[field].as_u64();
    value.with_context(|| format!("a summary has no count `{field}`"))
}

fn number(summary: &Value, field: &str) -> Result<f64> {
    let value = summary[field].as_f64();
    value.with_context(|| format!("a summary has no number `{field}`"))
}

fn list<'a>(summary: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    let value = summary[field].as_array();
    value.with_context(|| format!("a summary has no list `{field}`"))
}

fn lookalike(job: &str, input: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("lookalike"));
    command.arg(job).arg(input);
    Ok(command)
}

/// Runs a command with `--json`, and returns its summary.
fn run_for_summary(command: &mut Command) -> Result<Value> {
    let run = command.args(["--json", "--quiet"]).output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(serde_json::from_slice(&run.stdout)?)
}
