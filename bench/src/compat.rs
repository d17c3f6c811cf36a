//! Speed from text to other tools' fingerprints on one core.
//!
//! The answer is checked: every instruction set gives the fingerprints of the scalar one, which
//! tests compare with those of the tools. `bench/compare/compat.py` compares with the tools on the
//! same texts.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use lookalike::recipe::CompatScheme;
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Recipe};
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;

use crate::corpora::{Corpus, REAL_CORPORA};
use crate::machine;

#[derive(Serialize)]
struct Row {
    corpus: String,
    recipe: &'static str,
    instructions: &'static str,
    #[serde(serialize_with = "machine::rounded")]
    megabytes_per_second: f64,
    #[serde(serialize_with = "machine::rounded")]
    thousand_documents_per_second: f64,
}

impl Row {
    fn faster(one: Self, other: Self) -> Self {
        if one.megabytes_per_second >= other.megabytes_per_second {
            one
        } else {
            other
        }
    }
}

/// Number of passes over all measurements, so that a slow moment of the machine affects only one
/// pass.
const MEASURED_PASSES: usize = 10;

/// Approximate size of a sample, for which every n-th document is taken. It is large enough for a
/// steady result, and small enough for the other tools, which get the same documents.
const SAMPLE_BYTES: usize = 12_000_000;

fn total(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

/// Measures on the real corpora.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut samples = Vec::new();
    for name in REAL_CORPORA {
        let corpus = Corpus::real(data, name, folder.path())?;
        let texts = corpus.texts()?;
        let step = total(&texts).div_ceil(SAMPLE_BYTES);
        let sample: Vec<String> = texts.into_iter().step_by(step).collect();
        samples.push((corpus.name, sample));
    }
    let mut best: Vec<Row> = Vec::new();
    for _ in 0..MEASURED_PASSES {
        let mut rows = Vec::new();
        for (name, sample) in &samples {
            measure(name, sample, 1, &mut rows)?;
        }
        best = if best.is_empty() {
            rows
        } else {
            best.into_iter()
                .zip(rows)
                .map(|(one, other)| Row::faster(one, other))
                .collect()
        };
    }
    machine::write("compat", best)
}

/// Runs the benchmark on little text, as a test.
pub fn smoke() -> Result<()> {
    let mut rows = Vec::new();
    for (name, kind) in [
        ("english", CorpusKind::English),
        ("chinese", CorpusKind::Chinese),
    ] {
        let texts: Vec<_> = generate::generate_corpus(kind, 100, 1)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        measure(name, &texts, 1, &mut rows)?;
    }
    ensure!(!rows.is_empty(), "nothing was measured");
    Ok(())
}

fn measure(corpus: &str, texts: &[String], rounds: u32, rows: &mut Vec<Row>) -> Result<()> {
    let bytes = total(texts);
    for scheme in CompatScheme::BUILT_IN {
        let recipe = Recipe::built_in(scheme.name())?;
        let mut expected = None;
        for cpu in Cpu::detect_all() {
            let (seconds, checksum) = timed(&recipe, cpu, texts, rounds);
            let agreed = *expected.get_or_insert(checksum) == checksum;
            ensure!(
                agreed,
                "{} of {corpus} differs with {}",
                recipe.name,
                cpu.name()
            );
            let row = Row {
                corpus: corpus.to_owned(),
                recipe: scheme.name(),
                instructions: cpu.name(),
                megabytes_per_second: bytes as f64 / 1e6 / seconds,
                thousand_documents_per_second: texts.len() as f64 / 1e3 / seconds,
            };
            println!(
                "{corpus:10} {:20} {:7} {:7.1} MB/s {:9.1} thousand documents/s",
                row.recipe,
                row.instructions,
                row.megabytes_per_second,
                row.thousand_documents_per_second
            );
            rows.push(row);
        }
    }
    Ok(())
}

/// Returns the best time of some rounds over all texts, and a checksum of the results.
fn timed(recipe: &Recipe, cpu: Cpu, texts: &[String], rounds: u32) -> (f64, u64) {
    let analyzer = TextAnalyzer::with_cpu(recipe, cpu);
    let simhash = SimHasher::new(&recipe.simhash, cpu);
    let minhash = MinHasher::new(&recipe.minhash, cpu);
    let signs = recipe
        .scheme
        .is_some_and(|scheme| scheme.minhash_family().is_some());
    let mut signature = vec![0; minhash.slot_count()];
    let mut scratch = AnalysisScratch::default();
    let mut best = f64::INFINITY;
    let mut checksum = 0u64;
    for _ in 0..=rounds {
        let started = Instant::now();
        checksum = 0;
        for text in texts {
            let analysis = analyzer.analyze_text(text, &mut scratch);
            let made = if signs {
                minhash.original_signature(&analysis, &mut signature);
                let slots = signature.iter().map(|&slot| u64::from(slot));
                slots.fold(0, |sum: u64, slot| sum.rotate_left(5) ^ slot)
            } else {
                simhash.original_fingerprint(&analysis).unwrap_or_default() as u64
            };
            checksum = checksum.rotate_left(1).wrapping_add(made);
        }
        best = best.min(started.elapsed().as_secs_f64());
    }
    (best, checksum)
}
