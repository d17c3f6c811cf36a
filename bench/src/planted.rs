//! Edits of known kind planted into real corpora: how similar they leave a text, and how many of those
//! that stay above the threshold `pairs` finds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::Threshold;
use lookalike::evaluate::{LengthClass, TextClass};
use serde::{Deserialize, Serialize};

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

/// All kinds of edits together, of texts of one length.
#[derive(Serialize)]
struct LengthRow {
    corpus: String,
    length: String,
    /// Kinds of edits that leave a copy similar.
    kinds: usize,
    similar: usize,
    /// Of the kind that is found worst.
    lowest_recall: f64,
}

/// Documents with edits, of every corpus.
const DOCUMENTS: &str = "2000";

/// Measures on the real corpora with default settings.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
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
        let files = [&planted, &labels, &pairs].map(PathBuf::as_path);
        count(&corpus.name, files, &mut rows, &mut lengths)?;
    }
    machine::write("planted", rows)?;
    machine::write("planted_lengths", lengths)
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

/// Copies, those that are similar, and of these what is found.
type Counts = [usize; 3];

fn count(
    corpus: &str,
    [planted, labels, pairs]: [&Path; 3],
    rows: &mut Vec<Row>,
    lengths: &mut Vec<LengthRow>,
) -> Result<()> {
    let classes = classes(planted)?;
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
    let mut kinds: BTreeMap<&str, BTreeMap<LengthClass, Counts>> = BTreeMap::new();
    for line in labels.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [a, b, _, kind, _, edits, similarity] = cells[..] else {
            anyhow::bail!("a row of labels has seven cells: {line}");
        };
        if edits.is_empty() {
            continue;
        }
        let similarity: f64 = similarity.parse().context("a similarity")?;
        // A copy stands behind the document that it was made of.
        let class = classes.get(b).with_context(|| format!("no text '{b}'"))?;
        let of_kind = kinds.entry(kind).or_default();
        let [copies, similar, right] = of_kind.entry(*class).or_default();
        *copies += 1;
        if similarity >= Threshold::DEFAULT.get() {
            *similar += 1;
            *right += usize::from(found.contains(&(a, b)) || found.contains(&(b, a)));
        }
    }
    let corpus = corpus.to_owned();
    for (kind, of_kind) in &kinds {
        let [copies, similar, right] = sum(of_kind.values());
        let recall = share(right, similar);
        println!("{corpus:9} {kind:20} {copies:5} copies, {similar:5} similar, recall {recall:.4}");
        rows.push(Row {
            corpus: corpus.clone(),
            kind: (*kind).to_owned(),
            copies,
            similar,
            similar_share: share(similar, copies),
            recall,
        });
    }
    let every: BTreeSet<LengthClass> = kinds.values().flat_map(BTreeMap::keys).copied().collect();
    for class in every {
        let of_class = kinds.values().filter_map(|of_kind| of_kind.get(&class));
        let recalls = of_class.clone().filter(|counts| counts[1] > 0);
        let recalls = recalls.map(|&[_, similar, right]| share(right, similar));
        let row = LengthRow {
            corpus: corpus.clone(),
            length: class.name(),
            kinds: recalls.clone().count(),
            similar: sum(of_class)[1],
            lowest_recall: recalls.fold(f64::NAN, f64::min),
        };
        if row.kinds == 0 {
            continue;
        }
        println!(
            "{corpus:9} {:20} {:5} similar of {} kinds, lowest recall {:.4}",
            row.length, row.similar, row.kinds, row.lowest_recall
        );
        lengths.push(row);
    }
    Ok(())
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return f64::NAN;
    }
    part as f64 / whole as f64
}

fn sum<'a>(counts: impl Iterator<Item = &'a Counts>) -> Counts {
    counts.fold([0; 3], |sum, counts| {
        [0, 1, 2].map(|at| sum[at] + counts[at])
    })
}

/// How long the text of every row is.
fn classes(planted: &Path) -> Result<HashMap<String, LengthClass>> {
    #[derive(Deserialize)]
    struct Planted {
        id: String,
        text: String,
    }
    let lines = std::fs::read_to_string(planted)?;
    let classes = lines.lines().map(|line| {
        let Planted { id, text } = serde_json::from_str(line)?;
        Ok((id, TextClass::of(&text).length))
    });
    classes.collect()
}
