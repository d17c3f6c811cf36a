//! Recall and precision of `pairs` against an oracle that works on strings: at every threshold, by
//! script and length of the texts, and by method.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::Threshold;
use lookalike::quality::evaluate::{LengthClass, ScriptClass, TextClass};
use lookalike_oracle::all_pairs;
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::labelled;
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    threshold: f64,
    documents: usize,
    true_pairs: usize,
    found: usize,
    recall: f64,
    precision: f64,
    /// Largest difference between a reported similarity and the oracle's.
    largest_error: f64,
}

/// Recall of the pairs whose shorter text is of one class, over all corpora.
#[derive(Serialize)]
struct ClassRow {
    script: &'static str,
    length: String,
    threshold: f64,
    true_pairs: usize,
    recall: f64,
}

/// Recall of a method for the true pairs at the default threshold.
#[derive(Serialize)]
struct MethodRow {
    corpus: String,
    method: &'static str,
    true_pairs: usize,
    recall: f64,
    seconds: f64,
}

#[derive(Default)]
struct Rows {
    corpora: Vec<Row>,
    /// True pairs and the found ones among them, by class and threshold.
    classes: BTreeMap<(ScriptClass, LengthClass, usize), [usize; 2]>,
    methods: Vec<MethodRow>,
}

/// Thresholds in ascending order.
const TRIED_THRESHOLDS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];

/// `auto`, the methods that it consists of, and those that it does not use.
const TRIED_METHODS: [&str; 5] = ["auto", "exact", "join", "minhash", "simhash"];

/// Tokens in a feature of the default recipe.
const DEFAULT_NGRAM: usize = 2;

/// Largest number of documents per corpus. The last ones are taken, because near-duplicates stand
/// near each other.
const MAX_DOCUMENTS: usize = 20_000;

/// Further corpora: siblings of one template, versions of one statute, short lines of verse.
const FURTHER_CORPORA: [&str; 4] = [
    "debian_descriptions",
    "zh_laws",
    "zh_poems",
    "plagiarism_answers",
];

/// Measures on real corpora.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Rows::default();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        rows.measure(&corpus.name, last(corpus.texts()?))?;
    }
    for name in FURTHER_CORPORA {
        rows.measure(name, last(labelled::texts(data, name)?))?;
    }
    machine::write("quality_classes", rows.by_class())?;
    machine::write("quality_methods", rows.methods)?;
    machine::write("quality", rows.corpora)
}

/// Runs the benchmark on generated corpora, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Rows::default();
    let kinds = [
        ("english", CorpusKind::English),
        ("chinese", CorpusKind::Chinese),
        ("short", CorpusKind::Short),
    ];
    for (name, kind) in kinds {
        let documents = generate::generate_corpus(kind, 1500, 3);
        rows.measure(name, documents.into_iter().map(|(_, text)| text).collect())?;
    }
    for row in &rows.corpora {
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

fn last(mut texts: Vec<String>) -> Vec<String> {
    texts.split_off(texts.len().saturating_sub(MAX_DOCUMENTS))
}

type Pair = (usize, usize);

impl Rows {
    fn measure(&mut self, corpus: &str, texts: Vec<String>) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let documents: Vec<_> = (0..)
            .map(|at: usize| at.to_string())
            .zip(texts.clone())
            .collect();
        let file = Corpus::from_documents(corpus, &documents, folder.path())?;
        let all = all_pairs(&texts, DEFAULT_NGRAM, TRIED_THRESHOLDS[0]);
        let truth = |threshold: f64| -> HashMap<Pair, f64> {
            let true_ones = all.iter().filter(|(_, _, exact)| *exact >= threshold);
            true_ones.map(|&(a, b, exact)| ((a, b), exact)).collect()
        };
        for (at, threshold) in TRIED_THRESHOLDS.into_iter().enumerate() {
            let found = found_pairs(&file.path, threshold, "auto")?;
            let truth = truth(threshold);
            self.count_classes(at, &texts, &truth, &found);
            self.corpora
                .push(row(corpus, threshold, texts.len(), &truth, &found));
        }
        let threshold = Threshold::DEFAULT.get();
        let truth = truth(threshold);
        for method in TRIED_METHODS {
            let started = Instant::now();
            let found = found_pairs(&file.path, threshold, method)?;
            let seconds = started.elapsed().as_secs_f64();
            let right = found.keys().filter(|pair| truth.contains_key(pair)).count();
            self.methods.push(MethodRow {
                corpus: corpus.to_owned(),
                method,
                true_pairs: truth.len(),
                recall: share(right, truth.len()),
                seconds,
            });
        }
        Ok(())
    }

    fn count_classes(
        &mut self,
        threshold: usize,
        texts: &[String],
        truth: &HashMap<Pair, f64>,
        found: &HashMap<Pair, f64>,
    ) {
        let classes: Vec<TextClass> = texts
            .iter()
            .map(|text| TextClass::classify_text(text))
            .collect();
        for pair in truth.keys() {
            let (a, b) = (classes[pair.0], classes[pair.1]);
            let shorter = if a.tokens <= b.tokens { a } else { b };
            let class = (shorter.script, shorter.length, threshold);
            let [all, right] = self.classes.entry(class).or_default();
            *all += 1;
            *right += usize::from(found.contains_key(pair));
        }
    }

    fn by_class(&self) -> Vec<ClassRow> {
        let mut rows = Vec::new();
        for (&(script, length, threshold), &[all, right]) in &self.classes {
            rows.push(ClassRow {
                script: script.name(),
                length: length.name(),
                threshold: TRIED_THRESHOLDS[threshold],
                true_pairs: all,
                recall: share(right, all),
            });
        }
        rows
    }
}

fn row(
    corpus: &str,
    threshold: f64,
    documents: usize,
    truth: &HashMap<Pair, f64>,
    found: &HashMap<Pair, f64>,
) -> Row {
    let right = found.keys().filter(|pair| truth.contains_key(pair)).count();
    let error = |(pair, similarity): (_, &f64)| {
        truth
            .get(pair)
            .map_or(0.0, |exact| (exact - similarity).abs())
    };
    let row = Row {
        corpus: corpus.to_owned(),
        threshold,
        documents,
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
    row
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

fn found_pairs(input: &Path, threshold: f64, method: &str) -> Result<HashMap<Pair, f64>> {
    let binary = std::env::current_exe()?.with_file_name("lookalike");
    let run = Command::new(binary)
        .arg("pairs")
        .arg(input)
        .args(["--all", "--quiet", "--forms", "off", "--method", method])
        .args(
            (method != "exact")
                .then(|| ["--threshold".to_owned(), threshold.to_string()])
                .into_iter()
                .flatten(),
        )
        .output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let table = String::from_utf8(run.stdout)?;
    let pair = |line: &str| -> Result<(Pair, f64)> {
        let mut cells = line.split('\t');
        let mut next = || cells.next().context("a row has three cells");
        Ok(((next()?.parse()?, next()?.parse()?), next()?.parse()?))
    };
    table.lines().skip(1).map(pair).collect()
}
