//! Chinese text segmented into words by jieba: on one core, compared with jieba-rs alone, and
//! document frequencies on two cores.
//!
//! The answer is checked: SimHash is the vote over the weighted features, at most twenty of them,
//! and frequencies are the same with one thread and with two.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use jieba_rs::Jieba;
use lookalike::sketch::{SimHasher, count_weighted_votes};
use lookalike::text::frequencies::{DocumentFrequencies, LearnedFrequencies};
use lookalike::text::weight::FrequencyTableHeader;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Recipe};
use lookalike_oracle::generate::{self, CorpusKind};
use rayon::prelude::*;
use serde::Serialize;

use crate::corpora::Corpus;
use crate::machine;

#[derive(Serialize)]
struct Row {
    work: &'static str,
    recipe: String,
    threads: usize,
    #[serde(serialize_with = "machine::rounded")]
    megabytes_per_second: f64,
    /// Number of tokens, fingerprints or features.
    made: u64,
}

/// Measures on the real corpus.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let corpus = Corpus::real(data, "zh_docs.jsonl", folder.path())?;
    machine::write("chinese", measure(&corpus.texts()?, 2)?)
}

/// Runs the benchmark on little text, as a test.
pub fn smoke() -> Result<()> {
    let corpus = generate::generate_corpus(CorpusKind::Chinese, 300, 3);
    let texts: Vec<_> = corpus.into_iter().map(|(_, text)| text).collect();
    measure(&texts, 1).map(drop)
}

fn measure(texts: &[String], rounds: u32) -> Result<Vec<Row>> {
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut rows = Vec::new();
    let mut record = |work, recipe: &str, threads, (seconds, made): (f64, u64)| {
        let row = Row {
            work,
            recipe: recipe.to_owned(),
            threads,
            megabytes_per_second: bytes as f64 / 1e6 / seconds,
            made,
        };
        println!(
            "{work:28} {recipe:12} {threads} threads {:6.1} MB/s, {made} made",
            row.megabytes_per_second
        );
        rows.push(row);
    };
    let jieba = Jieba::new();
    let alone = best(rounds, || {
        let cut = |text: &String| jieba.cut(text, true).len() as u64;
        texts.iter().map(cut).sum()
    });
    record("jieba-rs alone", "", 1, alone);
    let recipe = Recipe::built_in("jieba")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let plain = best(rounds, || fingerprints(&analyzer, texts).0);
    record("SimHash", &recipe.name, 1, plain);
    let weighted = weighted(&recipe, texts)?;
    check(&weighted, texts)?;
    let analyzer = TextAnalyzer::new(&weighted);
    let heaviest = best(rounds, || fingerprints(&analyzer, texts).0);
    record("TF-IDF, top 20, SimHash", &recipe.name, 1, heaviest);
    for name in ["jieba", "characters-2", "characters-3"] {
        let mut recipe = Recipe::built_in(if name == "jieba" {
            name
        } else {
            "characters-3"
        })?;
        if name == "characters-2" {
            (recipe.ngram, recipe.name) = (2, name.into());
        }
        let one = frequencies(&recipe, texts, 1)?;
        let two = best(rounds, || {
            frequencies(&recipe, texts, 2).map_or(0, |learned| learned.len() as u64)
        });
        ensure!(
            one == frequencies(&recipe, texts, 2)?,
            "{name} depends on threads"
        );
        record("document frequencies", name, 2, two);
    }
    Ok(rows)
}

/// Returns the best time of some rounds after one to warm up, and the result of the work.
fn best(rounds: u32, mut work: impl FnMut() -> u64) -> (f64, u64) {
    let mut best = f64::INFINITY;
    let mut made = 0;
    for _ in 0..=rounds {
        let started = Instant::now();
        made = work();
        best = best.min(started.elapsed().as_secs_f64());
    }
    (best, made)
}

/// Returns the number of texts with fingerprints, and a checksum of the fingerprints.
fn fingerprints(analyzer: &TextAnalyzer, texts: &[String]) -> (u64, u64) {
    let hasher = SimHasher::new(&analyzer.recipe().simhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    let made = texts
        .iter()
        .filter_map(|text| hasher.fingerprint(&analyzer.analyze_text(text, &mut scratch)));
    made.fold((0, 0), |(count, sum), made| {
        (count + 1, sum.rotate_left(1) ^ made as u64)
    })
}

/// Returns the recipe with TF-IDF weights learned from the texts and only the twenty heaviest
/// words.
fn weighted(recipe: &Recipe, texts: &[String]) -> Result<Recipe> {
    let learned = frequencies(recipe, texts, 2)?;
    let head = FrequencyTableHeader::new(recipe, learned.documents, learned.len());
    let mut table = head.to_text();
    head.append_rows(&learned, 0..learned.len(), &mut table);
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("idf.tsv"), table)?;
    let mut weighted = recipe.clone();
    weighted.simhash.weights = lookalike::recipe::WeightScheme::Tfidf;
    weighted.simhash.table = Some("idf.tsv".into());
    weighted.simhash.top = Some(20);
    Ok(Recipe::read_in_directory(
        &weighted.to_toml(),
        folder.path(),
    )?)
}

fn check(recipe: &Recipe, texts: &[String]) -> Result<()> {
    let analyzer = TextAnalyzer::new(recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    for text in texts.iter().take(500) {
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let Some(weighted) = analysis.iter_weighted() else {
            continue;
        };
        let weighted: Vec<_> = weighted
            .map(|(hash, weight)| (u128::from(hash), weight))
            .collect();
        ensure!(weighted.len() <= 20, "{} features vote", weighted.len());
        let Some(made) = hasher.fingerprint(&analysis) else {
            continue;
        };
        for (at, counter) in count_weighted_votes(64, weighted).into_iter().enumerate() {
            let bit = made >> (63 - at) & 1 == 1;
            ensure!(
                counter == 0 || bit == (counter > 0),
                "bit {at} of a fingerprint is wrong"
            );
        }
    }
    Ok(())
}

fn frequencies(recipe: &Recipe, texts: &[String], threads: usize) -> Result<LearnedFrequencies> {
    let analyzer = TextAnalyzer::new(recipe);
    let counts = DocumentFrequencies::new(recipe);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    Ok(pool.install(|| {
        texts
            .par_chunks(texts.len().div_ceil(threads))
            .for_each(|texts| {
                let (mut tally, mut scratch) = (counts.new_tally(), AnalysisScratch::default());
                for text in texts {
                    counts.count_document(&analyzer, text, &mut scratch, &mut tally);
                }
                counts.merge_tally(tally);
            });
        counts.finish_counting(0, std::collections::HashMap::new(), 1, None)
    }))
}
