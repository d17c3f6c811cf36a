//! Edits of known kind planted into real corpora: how similar they leave a text, and how many of those
//! that stay above the threshold `pairs` finds.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::Threshold;
use serde::Serialize;

use crate::corpora::{Corpus, REAL};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    kind: String,
    copies: usize,
    /// Those whose exact similarity is at the default threshold or above.
    similar: usize,
    #[serde(serialize_with = "machine::rounded")]
    similar_share: f64,
    /// Of the similar ones, what is found.
    recall: f64,
}

/// Documents with edits, of every corpus.
const DOCUMENTS: &str = "2000";

/// Measures on the real corpora with default settings.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for name in REAL {
        let corpus = Corpus::real(data, name, folder.path())?;
        let (planted, labels) = (
            folder.path().join("planted.jsonl"),
            folder.path().join("labels.tsv"),
        );
        let plant = ["--id-row", "--documents", DOCUMENTS, "--quiet"];
        let mut command = lookalike("plant", &corpus.path)?;
        command.arg("-o").arg(&planted).arg("--labels").arg(&labels);
        done(command.args(plant))?;
        let pairs = folder.path().join("pairs.tsv");
        let mut command = lookalike("pairs", &planted)?;
        done(command.args(["--all", "--quiet", "-o"]).arg(&pairs))?;
        count(&corpus.name, &labels, &pairs, &mut rows)?;
    }
    machine::write("planted", rows)
}

fn lookalike(job: &str, input: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("lookalike"));
    command.arg(job).arg(input);
    Ok(command)
}

fn done(command: &mut Command) -> Result<()> {
    let run = command.output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(())
}

fn count(corpus: &str, labels: &Path, pairs: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let pairs = std::fs::read_to_string(pairs)?;
    let found: HashSet<(&str, &str)> = pairs
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut cells = line.split('\t');
            Some((cells.next()?, cells.next()?))
        })
        .collect();
    let labels = std::fs::read_to_string(labels)?;
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for line in labels.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [a, b, _, kind, _, edits, similarity] = cells[..] else {
            anyhow::bail!("a row of labels has seven cells: {line}");
        };
        if edits.is_empty() {
            continue;
        }
        let similarity: f64 = similarity.parse().context("a similarity")?;
        let [copies, similar, right] = kinds.entry(kind).or_default();
        *copies += 1;
        if similarity >= Threshold::DEFAULT.get() {
            *similar += 1;
            *right += usize::from(found.contains(&(a, b)) || found.contains(&(b, a)));
        }
    }
    for (kind, [copies, similar, right]) in kinds {
        let share = |part: usize, whole: usize| part as f64 / whole as f64;
        let row = Row {
            corpus: corpus.to_owned(),
            kind: kind.to_owned(),
            copies,
            similar,
            similar_share: share(similar, copies),
            recall: if similar == 0 {
                f64::NAN
            } else {
                share(right, similar)
            },
        };
        println!(
            "{corpus:9} {kind:20} {copies:5} copies, {similar:5} similar, recall {:.4}",
            row.recall
        );
        rows.push(row);
    }
    Ok(())
}
