//! Speed from text to sketches on one core.
//!
//! The answer is checked: every instruction set gives the fingerprints of the scalar one.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use lookalike::recipe::{MinHashFamily, MinHashRecipe};
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, Recipe};
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    recipe: String,
    sketch: &'static str,
    instructions: &'static str,
    #[serde(serialize_with = "machine::rounded")]
    megabytes_per_second: f64,
    #[serde(serialize_with = "machine::rounded")]
    million_documents_per_second: f64,
}

/// Measures on the real corpora.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        let texts = corpus.texts()?;
        let recipes: &[&str] = match corpus.name.as_str() {
            "en_docs" => &["words-1", "default-1", "words-3"],
            "zh_docs" => &["default-1", "characters-3"],
            _ => &["default-1"],
        };
        for recipe in recipes {
            measure(&corpus.name, recipe, &texts, 3, &mut rows)?;
        }
    }
    machine::write("sketch", rows)
}

/// Runs the benchmark on little text, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    for (name, kind) in [
        ("english", CorpusKind::English),
        ("chinese", CorpusKind::Chinese),
    ] {
        let texts: Vec<_> = generate::generate_corpus(kind, 200, 1)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        measure(name, "default-1", &texts, 1, &mut rows)?;
    }
    ensure!(!rows.is_empty(), "nothing was measured");
    Ok(())
}

fn measure(
    corpus: &str,
    recipe: &str,
    texts: &[String],
    rounds: u32,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let recipe = Recipe::built_in(recipe)?;
    for sketch in [
        "tokens",
        "simhash-64",
        "fast-similarity-128",
        "affine-32-128",
    ] {
        let mut expected = None;
        for cpu in Cpu::detect_all() {
            let (seconds, checksum) = timed(&recipe, cpu, sketch, texts, rounds);
            let agreed = *expected.get_or_insert(checksum) == checksum;
            ensure!(agreed, "{sketch} of {corpus} differs with {}", cpu.name());
            let bytes: usize = texts.iter().map(String::len).sum();
            let row = Row {
                corpus: corpus.to_owned(),
                recipe: recipe.name.clone(),
                sketch,
                instructions: cpu.name(),
                megabytes_per_second: bytes as f64 / 1e6 / seconds,
                million_documents_per_second: texts.len() as f64 / 1e6 / seconds,
            };
            println!(
                "{corpus:10} {:12} {sketch:20} {:7} {:6.0} MB/s {:7.2} M documents/s",
                row.recipe,
                row.instructions,
                row.megabytes_per_second,
                row.million_documents_per_second
            );
            rows.push(row);
        }
    }
    Ok(())
}

/// Returns the best time of some rounds over all texts, and a checksum of the results.
fn timed(recipe: &Recipe, cpu: Cpu, sketch: &str, texts: &[String], rounds: u32) -> (f64, u64) {
    let analyzer = TextAnalyzer::with_cpu(recipe, cpu);
    let simhash = SimHasher::new(&recipe.simhash, cpu);
    let family = |family| {
        MinHasher::new(
            &MinHashRecipe {
                family,
                ..recipe.minhash
            },
            cpu,
        )
    };
    let fast = family(MinHashFamily::FastSimilarity);
    let affine = family(MinHashFamily::Affine32);
    let mut signature = vec![0; recipe.minhash.slots as usize];
    let mut make = |analysis: &TextAnalysis<'_>| -> u64 {
        let minhash = match sketch {
            "tokens" => return analysis.key as u64,
            "simhash-64" => return simhash.fingerprint(analysis).unwrap_or_default() as u64,
            "fast-similarity-128" => &fast,
            _ => &affine,
        };
        minhash.write_signature(analysis, &mut signature);
        signature
            .iter()
            .fold(0, |sum, &slot| sum.rotate_left(5) ^ u64::from(slot))
    };
    let mut scratch = AnalysisScratch::default();
    let mut best = f64::INFINITY;
    let mut checksum = 0u64;
    for _ in 0..=rounds {
        let started = Instant::now();
        checksum = 0;
        for text in texts {
            let made = make(&analyzer.analyze_text(text, &mut scratch));
            checksum = checksum.rotate_left(1).wrapping_add(made);
        }
        best = best.min(started.elapsed().as_secs_f64());
    }
    (best, checksum)
}
