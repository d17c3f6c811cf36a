//! The fingerprints of other tools equal those that the tools themselves make; see `testdata/compat`,
//! which includes their generator.

use lookalike::recipe::{CompatScheme, MinHashFamily};
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, Recipe};
use md5::Digest;
use serde_json::Value;

fn recorded() -> Vec<Value> {
    let here = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(here.join("../../testdata/compat/vectors.jsonl"))
        .expect("the vectors are in the repository");
    file.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

fn family(recipe: &Recipe) -> Option<MinHashFamily> {
    recipe.scheme.and_then(CompatScheme::minhash_family)
}

/// A column of the vectors, and the recipe that makes it.
struct Column {
    name: String,
    analyzer: TextAnalyzer,
}

impl Column {
    /// Creates a column from its name: that of the scheme, then for SimHash the bits if they are not
    /// 64, for MinHash the seed, and the slots if they are not 128.
    fn new(name: &str, cpu: Cpu) -> Self {
        let scheme = Recipe::NAMES
            .into_iter()
            .filter(|scheme| name.starts_with(scheme))
            .max_by_key(|scheme| scheme.len())
            .expect("a column is named after a recipe");
        let mut recipe = Recipe::built_in(scheme).expect("it is built in");
        let numbers: Vec<u32> = name[scheme.len()..]
            .split('-')
            .filter_map(|number| number.parse().ok())
            .collect();
        match (family(&recipe), &numbers[..]) {
            (_, []) => {}
            (None, [bits]) => recipe.simhash.bits = *bits,
            (Some(_), [seed, slots @ ..]) => {
                recipe.minhash.seed = Some(*seed);
                recipe.minhash.slots = slots.first().copied().unwrap_or(128);
            }
            _ => panic!("no column {name}"),
        }
        Self {
            name: name.to_owned(),
            analyzer: TextAnalyzer::with_cpu(
                &recipe.validate().expect("the column is possible"),
                cpu,
            ),
        }
    }

    fn expect(&self, analysis: &TextAnalysis<'_>, line: &Value) {
        let Self { name, analyzer } = self;
        let (recipe, cpu) = (analyzer.recipe(), analyzer.cpu());
        let expected = &line[name];
        let context = || format!("{name} by {} of {line}", cpu.name());
        if family(recipe).is_none() {
            let hasher = SimHasher::new(&recipe.simhash, cpu);
            let made = hasher
                .original_fingerprint(analysis)
                .expect("tools print something for every text");
            let width = recipe.simhash.bits as usize / 4;
            assert_eq!(*expected, format!("{made:0width$x}"), "{}", context());
            return;
        }
        let hasher = MinHasher::new(&recipe.minhash, cpu);
        let mut signature = vec![0; hasher.slot_count()];
        assert!(hasher.original_signature(analysis, &mut signature));
        let made = if expected.is_array() {
            Value::from(signature)
        } else {
            let bytes: Vec<u8> = signature
                .iter()
                .flat_map(|slot| slot.to_le_bytes())
                .collect();
            let digest = md5::Md5::digest(&bytes);
            let half = digest[..8].iter().map(|byte| format!("{byte:02x}"));
            Value::from(half.collect::<String>())
        };
        assert_eq!(*expected, made, "{}", context());
    }
}

/// Returns all columns of the lines.
fn columns<'l>(lines: impl Iterator<Item = &'l Value>, cpu: Cpu) -> Vec<Column> {
    let mut names: Vec<&String> = lines
        .flat_map(|line| line.as_object().expect("a line is an object").keys())
        .filter(|name| !["text", "features", "weights"].contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| Column::new(name, cpu))
        .collect()
}

#[test]
fn texts_have_the_fingerprints_of_the_tools() {
    let lines = recorded();
    let texts = || lines.iter().filter(|line| line["text"].is_string());
    assert!(texts().count() >= 1000);
    for cpu in Cpu::detect_all() {
        let columns = columns(texts(), cpu);
        assert_eq!(columns.len(), 16);
        let mut scratch = AnalysisScratch::default();
        for line in texts() {
            let text = line["text"].as_str().unwrap();
            for column in columns
                .iter()
                .filter(|column| !line[&column.name].is_null())
            {
                column.expect(&column.analyzer.analyze_text(text, &mut scratch), line);
            }
        }
    }
}

#[test]
fn features_have_the_fingerprints_of_the_tools() {
    let lines = recorded();
    let lists = || lines.iter().filter(|line| line["features"].is_array());
    let array = |line: &Value, field: &str| line[field].as_array().unwrap().clone();
    for cpu in Cpu::detect_all() {
        let mut scratch = AnalysisScratch::default();
        for column in columns(lists(), cpu) {
            for line in lists() {
                let features = array(line, "features");
                let weights = array(line, "weights").into_iter().map(|weight| {
                    if column.name.ends_with("weighted") {
                        weight.as_f64().unwrap()
                    } else {
                        1.0
                    }
                });
                let features = features.iter().map(|feature| feature.as_str().unwrap());
                let analysis = column
                    .analyzer
                    .analyze_features(features.zip(weights), &mut scratch);
                column.expect(&analysis, line);
            }
        }
    }
}

#[test]
fn features_cut_from_a_text_are_hashed() {
    let lines = recorded();
    let mut scratch = AnalysisScratch::default();
    for name in Recipe::NAMES {
        let recipe = Recipe::built_in(name).unwrap();
        if recipe.scheme.is_none() {
            continue;
        }
        let analyzer = TextAnalyzer::new(&recipe);
        for text in lines.iter().filter_map(|line| line["text"].as_str()) {
            let expected: Vec<u64> = analyzer
                .analyze_text(text, &mut scratch)
                .token_values()
                .to_vec();
            let features: Vec<String> = analyzer
                .list_tokens(text)
                .into_iter()
                .map(|token| match token {
                    lookalike::text::TextToken::Word(word) => word,
                    lookalike::text::TextToken::Character(_) => panic!("features are strings"),
                })
                .collect();
            let features = features.iter().map(|feature| (feature.as_str(), 1.0));
            let analysis = analyzer.analyze_features(features, &mut scratch);
            assert_eq!(analysis.token_values(), expected, "{name} {text:?}");
        }
    }
}
