//! Edits of known kind and strength planted into real corpora: the similarity that they leave, and
//! the share of copies above the threshold that `pairs` finds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::Threshold;
use lookalike::quality::evaluate::{LengthClass, TextClass};
use lookalike::quality::plant::{EditPlanter, PlantedEdit, TextStock};
use lookalike_oracle::generate::{self, CorpusKind};
use serde::{Deserialize, Serialize};

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    kind: String,
    /// Share of the text that is edited, if the kind has strengths.
    strength: String,
    copies: usize,
    /// Median of the copies' exact similarities with their originals.
    #[serde(serialize_with = "machine::rounded")]
    median: f64,
    /// Copies whose exact similarity is at least the default threshold.
    similar: usize,
    #[serde(serialize_with = "machine::rounded")]
    similar_share: f64,
    /// Share of the similar copies that is found.
    recall: f64,
}

/// Results of all kinds of edits on texts of one length.
#[derive(Serialize)]
struct LengthRow {
    corpus: String,
    length: String,
    /// Kinds of edits that leave a copy similar.
    kinds: usize,
    similar: usize,
    /// Recall of the kind that is found worst.
    lowest_recall: f64,
}

/// Number of edited documents per corpus.
const EDITED_DOCUMENTS: &str = "2000";

/// Measures on the real corpora with default settings. Texts wrapped in HTML are also read as HTML,
/// and forms of Unicode are planted in the documents that have any.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
    let mut accented = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        accented.extend(with_accents(&corpus)?);
        let all = ["--documents", EDITED_DOCUMENTS];
        measure(&corpus, &all, &[], &mut rows, Some(&mut lengths))?;
        let read = Corpus {
            name: format!("{} as HTML", corpus.name),
            path: corpus.path,
        };
        let html = ["--documents", EDITED_DOCUMENTS, "--edits", "html"];
        measure(&read, &html, &["--set", "markup=html"], &mut rows, None)?;
    }
    let corpus = Corpus::from_documents("with accents", &accented, folder.path())?;
    measure(&corpus, &["--edits", "nfc,nfd"], &[], &mut rows, None)?;
    machine::write("planted", rows)?;
    machine::write("planted_lengths", lengths)
}

/// Runs the benchmark on a generated corpus, as a test.
pub fn smoke() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
    let documents = generate::generate_corpus(CorpusKind::English, 300, 1);
    let corpus = Corpus::from_documents("english", &documents, folder.path())?;
    measure(
        &corpus,
        &["--documents", "100"],
        &[],
        &mut rows,
        Some(&mut lengths),
    )?;
    ensure!(!lengths.is_empty(), "no lengths");
    for row in &rows {
        ensure!(
            (0.0..=1.0).contains(&row.median),
            "{}: {}",
            row.kind,
            row.median
        );
        let missed = row.similar > 0 && row.recall < 1.0;
        ensure!(
            !missed,
            "{} {}: recall {}",
            row.kind,
            row.strength,
            row.recall
        );
    }
    let of = |kind: &str| {
        rows.iter()
            .find(|row| row.kind == kind)
            .map(|row| row.median)
    };
    ensure!(
        of("zero-width") == Some(1.0),
        "zero-width characters are not cancelled"
    );
    Ok(())
}

/// Returns the documents with accented letters, every second one with the accents decomposed.
fn with_accents(corpus: &Corpus) -> Result<Vec<(String, String)>> {
    let [nfd] = PlantedEdit::parse_edits("nfd")?[..] else {
        anyhow::bail!("nfd is one edit");
    };
    let planter = EditPlanter::new(1, TextStock::default());
    let texts = corpus.texts()?.into_iter().enumerate();
    let accented = texts.filter_map(|(at, text)| {
        let apart = planter.plant_edits("", &text, &[nfd])?;
        Some((format!("{} {at}", corpus.name), [text, apart]))
    });
    let taken = accented.enumerate();
    Ok(taken
        .map(|(at, (id, forms))| (id, forms[at % 2].clone()))
        .collect())
}

/// Plants edits, finds pairs and counts them.
fn measure(
    corpus: &Corpus,
    plant: &[&str],
    reading: &[&str],
    rows: &mut Vec<Row>,
    lengths: Option<&mut Vec<LengthRow>>,
) -> Result<()> {
    let folder = corpus.path.parent().context("a corpus lies in a folder")?;
    let files = ["planted.jsonl", "labels.tsv", "pairs.tsv"].map(|name| folder.join(name));
    let [planted, labels, pairs] = &files;
    let mut command = lookalike("plant", &corpus.path)?;
    command.arg("-o").arg(planted).arg("--labels").arg(labels);
    command
        .args(["--id-row", "--quiet"])
        .args(plant)
        .args(reading);
    done(&mut command)?;
    let mut command = lookalike("pairs", planted)?;
    command
        .args(["--all", "--quiet", "--forms", "off", "-o"])
        .arg(pairs)
        .args(reading);
    done(&mut command)?;
    let files = [planted, labels, pairs].map(PathBuf::as_path);
    count(&corpus.name, files, rows, lengths)
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

/// Numbers of copies, of similar copies, and of those that are found.
type Counts = [usize; 3];

/// Copies with an edit of one kind and strength.
#[derive(Default)]
struct Edited {
    similarities: Vec<f64>,
    counts: Counts,
}

impl Edited {
    fn add(&mut self, similarity: f64, is_found: bool) {
        self.similarities.push(similarity);
        add(&mut self.counts, similarity, is_found);
    }

    fn median(&mut self) -> f64 {
        self.similarities.sort_by(f64::total_cmp);
        let middle = self.similarities.len() / 2;
        self.similarities.get(middle).copied().unwrap_or(f64::NAN)
    }
}

fn add([copies, similar, right]: &mut Counts, similarity: f64, is_found: bool) {
    *copies += 1;
    if similarity >= Threshold::DEFAULT.get() {
        *similar += 1;
        *right += usize::from(is_found);
    }
}

fn count(
    corpus: &str,
    [planted, labels, pairs]: [&Path; 3],
    rows: &mut Vec<Row>,
    lengths: Option<&mut Vec<LengthRow>>,
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
    let mut edits: BTreeMap<(&str, &str), Edited> = BTreeMap::new();
    let mut by_length: BTreeMap<LengthClass, BTreeMap<&str, Counts>> = BTreeMap::new();
    for line in labels.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [a, b, _, kind, strength, made, similarity] = cells[..] else {
            anyhow::bail!("a row of labels has seven cells: {line}");
        };
        if made.is_empty() {
            continue;
        }
        let similarity: f64 = similarity.parse().context("a similarity")?;
        let is_found = found.contains(&(a, b)) || found.contains(&(b, a));
        edits
            .entry((kind, strength))
            .or_default()
            .add(similarity, is_found);
        // A copy follows the document that it was made from, so it is the second of the pair.
        let class = classes.get(b).with_context(|| format!("no text '{b}'"))?;
        let kinds = by_length.entry(*class).or_default();
        add(kinds.entry(kind).or_default(), similarity, is_found);
    }
    for ((kind, strength), mut edited) in edits {
        let [copies, similar, right] = edited.counts;
        let row = Row {
            corpus: corpus.to_owned(),
            kind: kind.to_owned(),
            strength: percent(strength)?,
            copies,
            median: edited.median(),
            similar,
            similar_share: share(similar, copies),
            recall: share(right, similar),
        };
        println!(
            "{corpus:18} {kind:20} {:6} {copies:5} copies, median {:.3}, {similar:5} similar, recall {:.4}",
            row.strength, row.median, row.recall
        );
        rows.push(row);
    }
    let Some(lengths) = lengths else {
        return Ok(());
    };
    for (class, kinds) in by_length {
        let recalls = kinds.values().filter(|counts| counts[1] > 0);
        let recalls = recalls.map(|&[_, similar, right]| share(right, similar));
        let row = LengthRow {
            corpus: corpus.to_owned(),
            length: class.name(),
            kinds: recalls.clone().count(),
            similar: kinds.values().map(|counts| counts[1]).sum(),
            lowest_recall: recalls.fold(f64::NAN, f64::min),
        };
        if row.kinds == 0 {
            continue;
        }
        println!(
            "{corpus:18} {:20} {:5} similar of {} kinds, lowest recall {:.4}",
            row.length, row.similar, row.kinds, row.lowest_recall
        );
        lengths.push(row);
    }
    Ok(())
}

/// Formats a share as a percentage; an empty string stays empty.
fn percent(share: &str) -> Result<String> {
    if share.is_empty() {
        return Ok(String::new());
    }
    let share: f64 = share.parse().context("a strength")?;
    Ok(format!("{} %", (share * 1000.0).round() / 10.0))
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return f64::NAN;
    }
    part as f64 / whole as f64
}

/// Returns the length class of every text.
fn classes(planted: &Path) -> Result<HashMap<String, LengthClass>> {
    #[derive(Deserialize)]
    struct Planted {
        id: String,
        text: String,
    }
    let lines = std::fs::read_to_string(planted)?;
    let classes = lines.lines().map(|line| {
        let Planted { id, text } = serde_json::from_str(line)?;
        Ok((id, TextClass::classify_text(&text).length))
    });
    classes.collect()
}
