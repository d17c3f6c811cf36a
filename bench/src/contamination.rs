//! Items of benchmarks planted into generated documents in every form, and decoys: what `decontaminate` finds of them.
//!
//! Half of the items are searched for and planted, and the other half are decoys. The commands make the corpus, search it and
//! score the findings, as users do. Real corpora and benchmarks are measured by `bench/compare/contamination.py`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike_oracle::generate::{self, CorpusKind};
use serde_json::{Value, json};

use crate::corpora::Corpus;
use crate::dedup::binary;

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
        let scored = plant_and_search(&corpus, &benchmark)?;
        let share = |field: &str| {
            let value = scored[field].as_f64();
            value.with_context(|| format!("{name}: a summary has no number `{field}`"))
        };
        let [precision, recall] = [share("precision")?, share("recall")?];
        println!("{name}: precision {precision:.3}, recall {recall:.3}");
        ensure!(precision >= 0.95, "{name}: precision {precision}");
        ensure!(recall >= 0.9, "{name}: recall {recall}");
        let planted = scored["planted"].as_u64();
        ensure!(planted > Some(100), "{name}: {planted:?} planted");
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

/// Plants items, searches for them and scores the findings. Returns the summary of the scores.
fn plant_and_search(corpus: &Corpus, benchmarks: &Path) -> Result<Value> {
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
    command.args(["--documents", "100", "--id-row"]);
    run_for_summary(&mut command)?;
    let mut command = lookalike("decontaminate", &planted)?;
    command.arg("--benchmarks").arg(&items);
    command.arg("--findings").arg(&findings);
    run_for_summary(&mut command)?;
    let mut command = lookalike("eval", &findings)?;
    command.arg("--contamination").arg(&truth);
    run_for_summary(&mut command)
}

fn lookalike(job: &str, input: &Path) -> Result<Command> {
    let mut command = Command::new(binary()?);
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
