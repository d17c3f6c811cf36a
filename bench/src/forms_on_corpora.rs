//! Forms on real corpora: what becomes of labelled pairs and of revisions of pages, and what learning costs.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::growth::child_seconds;
use crate::{dedup, labelled, machine};

/// Pairs of texts by their positions, the earlier one first.
type TextPairs = HashSet<(usize, usize)>;

/// The settings of `--forms` that are compared.
const CHOICES: [&str; 2] = ["off", "learn"];

/// Runs of which the fastest counts.
const RUNS: usize = 5;

/// A labelled set without and with forms.
#[derive(Serialize)]
struct LabelledRow {
    set: &'static str,
    positive: usize,
    negative: usize,
    #[serde(serialize_with = "machine::rounded")]
    recall_off: f64,
    #[serde(serialize_with = "machine::rounded")]
    recall_learn: f64,
    #[serde(serialize_with = "machine::rounded")]
    precision_off: f64,
    #[serde(serialize_with = "machine::rounded")]
    precision_learn: f64,
}

/// The similar pairs of a set of revisions without or with forms.
#[derive(Serialize)]
struct RevisionRow {
    set: &'static str,
    forms: &'static str,
    of_one_page: usize,
    of_two_pages: usize,
}

/// Time and removals of a run without or with forms.
#[derive(Serialize)]
struct CostRow {
    corpus: String,
    forms: &'static str,
    removed: u64,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    #[serde(serialize_with = "machine::rounded")]
    processor_seconds: f64,
}

/// Measures all corpora.
pub fn run(data: &Path) -> Result<()> {
    let mut labelled_rows = Vec::new();
    for set in labelled::sets(data)? {
        labelled_rows.push(measure_set(&set)?);
    }
    machine::write("forms_labelled", labelled_rows)?;
    let mut revisions = Vec::new();
    for name in ["en_doc_versions", "zh_doc_versions"] {
        let (texts, pages) = labelled::pages_of_versions(data, name)?;
        for (forms, pairs) in find_in_both_ways(&texts)? {
            let of_one = |pair: &&(usize, usize)| pages[pair.0] == pages[pair.1];
            let of_one_page = pairs.iter().filter(of_one).count();
            revisions.push(RevisionRow {
                set: name,
                forms,
                of_one_page,
                of_two_pages: pairs.len() - of_one_page,
            });
        }
    }
    machine::write("forms_revisions", revisions)?;
    let folder = tempfile::tempdir()?;
    let mut costs = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        for forms in CHOICES {
            costs.push(measure_cost(&corpus, forms)?);
        }
    }
    machine::write("forms_cost", costs)
}

fn measure_set(set: &labelled::Set) -> Result<LabelledRow> {
    let [off, learn] = find_in_both_ways(&set.texts)?.map(|(_, pairs)| count_found(set, &pairs));
    let positive = set.pairs.iter().filter(|pair| pair.positive).count();
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    Ok(LabelledRow {
        set: set.name,
        positive,
        negative: set.pairs.len() - positive,
        recall_off: share(off.0, positive),
        recall_learn: share(learn.0, positive),
        precision_off: share(off.0, off.0 + off.1),
        precision_learn: share(learn.0, learn.0 + learn.1),
    })
}

/// Counts the positive and the negative pairs of a set that are found.
fn count_found(set: &labelled::Set, found: &TextPairs) -> (usize, usize) {
    let mut counts = (0, 0);
    for pair in &set.pairs {
        let (a, b) = pair.texts;
        let is_found = found.contains(&(a.min(b), a.max(b)));
        counts.0 += usize::from(is_found && pair.positive);
        counts.1 += usize::from(is_found && !pair.positive);
    }
    counts
}

/// Returns the similar pairs of texts without and with forms, the earlier text of each first.
fn find_in_both_ways(texts: &[String]) -> Result<[(&'static str, TextPairs); 2]> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("texts.jsonl");
    let mut lines = String::new();
    for (id, text) in texts.iter().enumerate() {
        writeln!(lines, "{}", json!({ "id": id, "text": text }))?;
    }
    std::fs::write(&input, lines)?;
    let [off, learn] = CHOICES.map(|forms| find_pairs(&input, forms));
    Ok([(CHOICES[0], off?), (CHOICES[1], learn?)])
}

fn find_pairs(input: &Path, forms: &str) -> Result<TextPairs> {
    let output = Command::new(dedup::binary()?)
        .arg("pairs")
        .arg(input)
        .args(["--all", "--forms", forms, "--quiet"])
        .output()?;
    ensure!(output.status.success(), "pairs --forms {forms} failed");
    let table = String::from_utf8(output.stdout)?;
    let pairs = table.lines().skip(1).map(|line| {
        let mut cells = line.split('\t');
        let mut next = || cells.next().context("a row has two ids");
        let (a, b): (usize, usize) = (next()?.parse()?, next()?.parse()?);
        Ok((a.min(b), a.max(b)))
    });
    pairs.collect()
}

fn measure_cost(corpus: &Corpus, forms: &'static str) -> Result<CostRow> {
    let mut best: Option<CostRow> = None;
    for _ in 0..RUNS {
        let (before, begun) = (child_seconds()?, Instant::now());
        let output = Command::new(dedup::binary()?)
            .arg("dedup")
            .arg(&corpus.path)
            .args(["--dry-run", "--json", "--quiet", "--threads", "2"])
            .args(["--forms", forms])
            .output()?;
        ensure!(output.status.success(), "dedup --forms {forms} failed");
        let (seconds, processor_seconds) =
            (begun.elapsed().as_secs_f64(), child_seconds()? - before);
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        if best.as_ref().is_none_or(|best| seconds < best.seconds) {
            best = Some(CostRow {
                corpus: corpus.name.clone(),
                forms,
                removed: summary["removed"].as_u64().context("a summary")?,
                seconds,
                processor_seconds,
            });
        }
    }
    best.context("a run")
}
