//! The results of the engine for the texts in `testdata/golden`: one line of JSON per text and recipe.

use std::path::PathBuf;

use lookalike::recipe::{MinHashFamily, MinHashRecipe, SimHashRecipe, WeightScheme};
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Cpu, Recipe};
use serde::{Deserialize, Serialize};

/// The built-in recipes, without those of other tools' schemes, whose vectors are in `testdata/compat`.
pub(crate) const RECIPES: [&str; 8] = [
    "default-1",
    "words-1",
    "words-3",
    "words-5",
    "characters-3",
    "jieba",
    "jieba-full",
    "jieba-search",
];

#[derive(Deserialize)]
struct Text {
    id: String,
    text: String,
}

/// The fields in the order of the file. Numbers of 64 bits and more, and signatures, are hexadecimal; a
/// signature has eight digits for every slot.
#[derive(Serialize)]
struct Vector<'a> {
    text: &'a str,
    recipe: &'a str,
    recipe_id: String,
    state: &'static str,
    /// Number of tokens.
    tokens: usize,
    /// Number of distinct features.
    features: usize,
    key: String,
    simhash_64: Option<String>,
    simhash_128: Option<String>,
    fast_similarity: Option<String>,
    affine_32: Option<String>,
}

/// Returns the path of a file beside the texts.
pub(crate) fn path(name: &str) -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.join("../../testdata/golden").join(name)
}

/// Computes all lines with the instruction set of `cpu`.
pub(crate) fn lines(cpu: Cpu) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let texts = std::fs::read_to_string(path("texts.jsonl"))?;
    let texts: Vec<Text> = texts
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let mut lines = Vec::new();
    for name in RECIPES {
        let analyzer = TextAnalyzer::with_cpu(&Recipe::built_in(name)?, cpu);
        for text in &texts {
            lines.push(serde_json::to_string(&vector(&analyzer, text))?);
        }
    }
    Ok(lines)
}

fn vector<'a>(analyzer: &'a TextAnalyzer, text: &'a Text) -> Vector<'a> {
    let recipe = analyzer.recipe();
    let mut scratch = AnalysisScratch::default();
    let analysis = analyzer.analyze_text(&text.text, &mut scratch);
    let mut features = Vec::new();
    analysis.append_features(&mut features);
    Vector {
        text: &text.id,
        recipe: &recipe.name,
        recipe_id: recipe.recipe_id().to_string(),
        state: match analysis.state {
            TextState::Fingerprintable => "rich",
            TextState::TooShort => "poor",
            TextState::SymbolsOnly => "blank",
            TextState::Empty => "empty",
        },
        tokens: analyzer.list_tokens(&text.text).len(),
        features: features.len(),
        key: format!("{:032x}", analysis.key),
        simhash_64: simhash(&analysis, 64, analyzer.cpu()),
        simhash_128: simhash(&analysis, 128, analyzer.cpu()),
        fast_similarity: minhash(&analysis, MinHashFamily::FastSimilarity, analyzer.cpu()),
        affine_32: minhash(&analysis, MinHashFamily::Affine32, analyzer.cpu()),
    }
}

fn simhash(analysis: &TextAnalysis<'_>, bits: u32, cpu: Cpu) -> Option<String> {
    let weights = WeightScheme::Frequency;
    let fingerprint = SimHasher::new(
        &SimHashRecipe {
            bits,
            weights,
            ..SimHashRecipe::default()
        },
        cpu,
    )
    .fingerprint(analysis)?;
    Some(format!("{fingerprint:0width$x}", width = bits as usize / 4))
}

fn minhash(analysis: &TextAnalysis<'_>, family: MinHashFamily, cpu: Cpu) -> Option<String> {
    let hasher = MinHasher::new(
        &MinHashRecipe {
            family,
            slots: 128,
            seed: None,
        },
        cpu,
    );
    let mut signature = vec![0; hasher.slot_count()];
    let signed = hasher.write_signature(analysis, &mut signature);
    signed.then(|| signature.iter().map(|slot| format!("{slot:08x}")).collect())
}
