//! Comparison of two texts with every step, as shown to people and as JSON.

use std::collections::BTreeMap;

use lookalike::Recipe;
use lookalike::compare::{AnalysisSteps, Comparison, ComparisonFigure, FeatureVote};
use lookalike::plan::MatchSettings;
use lookalike::recipe::CompatScheme;
use lookalike::sketch::{TieBreaker, count_reachable_blocks, java_block_values};
use lookalike::text::{LongSentence, SpanTokenizer};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::shared_passages::{SharedPassage, SharedPassages};
use crate::text_diff::{align_texts, diff_passages};
use lookalike::content_hash::ContentHash;

/// Place of a text that was given itself, and not read from anywhere.
pub const GIVEN_TEXT: &str = "as given";

/// Number of features, heaviest first, whose votes are in the JSON. Votes follow from hash and weight, and
/// those of all features would make the JSON of a long text a hundred times as long as the text.
const MAX_LISTED_VOTES: usize = 1000;

/// A text and its origin.
pub struct ComparedSide {
    /// The place where it was found.
    pub place: String,
    /// The text.
    pub text: String,
}

/// Format of fingerprints.
#[derive(Clone, Copy)]
pub struct FingerprintShape {
    /// Number of bits.
    pub bits: u32,
    /// Number of bits that may differ.
    pub distance: u32,
}

impl FingerprintShape {
    /// Creates the format of fingerprints that match if at most `distance` bits differ. Without a distance it is the usual
    /// one, as far as so few bits allow it.
    ///
    /// # Errors
    /// If the distance is not less than the number of bits. The reason is a phrase that follows the name of the option.
    pub fn with_distance(bits: u32, distance: Option<u32>) -> Result<Self, String> {
        let usual = MatchSettings::default()
            .distance
            .min(bits.saturating_sub(1));
        let distance = distance.unwrap_or(usual);
        if distance >= bits {
            return Err(format!(
                "is {distance}: give less than the {bits} bits of the fingerprints"
            ));
        }
        Ok(Self { bits, distance })
    }

    /// Returns two fingerprints block by block, with their distance and the verdict. `sides` is how each came about.
    pub fn verdict_as_json(self, a: u128, b: u128, sides: [Value; 2]) -> Value {
        let distance = (a ^ b).count_ones();
        let [side_a, side_b] = sides;
        json!({
            "a": side_a,
            "b": side_b,
            "distance": distance,
            "blocks": self.blocks_as_json(a, b),
            "match": distance <= self.distance,
        })
    }

    /// Returns a fingerprint in hexadecimal digits.
    pub fn format_hex(self, fingerprint: u128) -> String {
        format!(
            "{fingerprint:0width$x}",
            width = self.bits.div_ceil(4) as usize
        )
    }

    /// Returns the bits of a fingerprint, highest first.
    pub fn bit_digits(self, fingerprint: u128) -> String {
        format!("{fingerprint:0width$b}", width = self.bits as usize)
    }

    /// Returns the ranges of the blocks of bits, highest first. There is one more block than bits that may
    /// differ, so that fingerprints within the distance agree in at least one.
    pub fn bit_blocks(self) -> Vec<std::ops::Range<usize>> {
        let bits = self.bits as usize;
        let count = (self.distance as usize + 1).min(bits);
        let edge = |at: usize| at * bits / count;
        (0..count).map(|at| edge(at)..edge(at + 1)).collect()
    }

    /// Returns the blocks of bits of two fingerprints, with their distances.
    pub fn blocks_as_json(self, a: u128, b: u128) -> Value {
        let (in_a, in_b) = (self.bit_digits(a), self.bit_digits(b));
        let block = |bits: std::ops::Range<usize>| {
            let (a, b) = (&in_a[bits.clone()], &in_b[bits]);
            json!({ "a": a, "b": b, "distance": count_differing(a, b) })
        };
        Value::Array(self.bit_blocks().into_iter().map(block).collect())
    }
}

/// Values of the blocks of a fingerprint as the Java class's `subByDistance` lists them.
pub struct JavaBlocks {
    /// Value of every block, the lowest block first.
    pub values: Vec<u128>,
    /// Number of values, from the first on, that the class itself lists. It stops behind the highest 1.
    pub reachable: usize,
}

impl JavaBlocks {
    /// Returns the values as strings of decimal digits, because numbers of JSON are often read with 53 bits.
    fn to_json(&self) -> Value {
        let values: Vec<_> = self.values.iter().map(u128::to_string).collect();
        json!({ "values": values, "listed_by_class": self.reachable })
    }
}

/// Everything that is shown of a comparison.
pub struct ComparisonCase<'a> {
    /// The recipe of both.
    pub recipe: &'a Recipe,
    /// The first text.
    pub a: ComparedSide,
    /// The second text.
    pub b: ComparedSide,
    /// The comparison.
    pub compared: Comparison,
    /// The passages that the second text shares with the first.
    pub shared: SharedPassages,
    /// Number of features shown.
    pub top: usize,
    /// Number of bits that may differ.
    pub distance: u32,
}

impl ComparisonCase<'_> {
    /// Returns the format of the fingerprints.
    pub fn fingerprint_shape(&self) -> FingerprintShape {
        FingerprintShape {
            bits: self.recipe.simhash.bits,
            distance: self.distance,
        }
    }

    /// Returns both sides with their letters and steps.
    pub fn labelled_sides(&self) -> [(&'static str, &ComparedSide, &AnalysisSteps); 2] {
        [
            ("A", &self.a, &self.compared.a),
            ("B", &self.b, &self.compared.b),
        ]
    }

    /// Returns both fingerprints, if both texts have one.
    pub fn fingerprints(&self) -> Option<(u128, u128)> {
        Some((self.compared.a.fingerprint?, self.compared.b.fingerprint?))
    }

    /// Returns the values of the blocks of both fingerprints that the Java class's `subByDistance` lists. They
    /// exist for the recipe `java-classic`, if both texts have a fingerprint.
    pub fn java_blocks(&self) -> Option<[JavaBlocks; 2]> {
        if self.recipe.scheme != Some(CompatScheme::JavaClassic) {
            return None;
        }
        let (a, b) = self.fingerprints()?;
        let shape = self.fingerprint_shape();
        Some([a, b].map(|fingerprint| JavaBlocks {
            values: java_block_values(fingerprint, shape.bits, shape.distance),
            reachable: count_reachable_blocks(fingerprint, shape.bits, shape.distance),
        }))
    }

    /// Returns the rule by which sums become bits, in words.
    pub fn rule_of_sums(&self) -> &'static str {
        match self.compared.a.tie.or(self.compared.b.tie) {
            Some(TieBreaker::Bit(true)) => "0 and above gives 1",
            Some(TieBreaker::Bit(false)) => "above 0 gives 1",
            Some(TieBreaker::Feature(_)) | None => "above 0 gives 1, 0 is a tie",
        }
    }

    /// Returns the comparison with every step as a tree of JSON, which takes several times the memory of its text. An
    /// answer is serialised instead, to the same text.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and numbers serialise")
    }

    fn side_json<'a>(&'a self, side: &'a ComparedSide, steps: &'a AnalysisSteps) -> SideJson<'a> {
        let shape = self.fingerprint_shape();
        let sentences = steps.sentences.as_ref();
        SideJson {
            bits: steps
                .fingerprint
                .map(|fingerprint| shape.bit_digits(fingerprint)),
            content: ContentHash::from_text(&side.text).to_string(),
            features: VotedFeatures {
                features: &steps.features,
                shape,
                with_votes: self.top.max(MAX_LISTED_VOTES),
            },
            fingerprint: steps
                .fingerprint
                .map(|fingerprint| shape.format_hex(fingerprint)),
            key: format!("{:032x}", steps.key),
            normalized: &steps.normalized,
            place: &side.place,
            sentences: sentences.map(|all| all.iter().map(SentenceJson::from).collect()),
            signature: steps.signature.as_deref(),
            smallest: &steps.smallest,
            state: steps.state.state_name(),
            sums: &steps.sums,
            text: &side.text,
            tie: TieJson::from_steps(steps, shape),
            tokens: &steps.tokens,
        }
    }
}

/// Writes the comparison with every step. Fields are in alphabetical order, as in the tree of
/// [`to_json`](ComparisonCase::to_json). The features and their votes, which are most of it, are made one by one.
impl Serialize for ComparisonCase<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (matched, verdict) = (self.compared.verdict.matched, &self.compared.verdict);
        let figures = self.compared.figures.iter();
        let figures: BTreeMap<_, _> = figures
            .map(|figure| (figure_key(figure.name), FigureJson::from(figure)))
            .collect();
        let both = self.fingerprints();
        let blocks = both.map(|(a, b)| self.fingerprint_shape().blocks_as_json(a, b));
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("a", &self.side_json(&self.a, &self.compared.a))?;
        // Only texts of 4 GiB or more cannot be aligned.
        let aligned = align_texts(&self.a.text, &self.b.text, &SpanTokenizer::new(self.recipe));
        fields.serialize_entry("aligned", &aligned.ok())?;
        fields.serialize_entry("b", &self.side_json(&self.b, &self.compared.b))?;
        fields.serialize_entry("blocks", &blocks)?;
        fields.serialize_entry("differences", &diff_passages(&self.a.text, &self.b.text))?;
        fields.serialize_entry("distance", &both.map(|(a, b)| (a ^ b).count_ones()))?;
        fields.serialize_entry("figures", &figures)?;
        fields.serialize_entry("match", &matched.is_some())?;
        fields.serialize_entry("method", &matched.map(|(route, _)| route.name()))?;
        fields.serialize_entry("recipe", &self.recipe.name)?;
        fields.serialize_entry("recipe_id", &self.recipe.recipe_id().to_string())?;
        fields.serialize_entry("shared", &SharedJson::from(&self.shared))?;
        fields.serialize_entry("similarity", &verdict.similarity)?;
        if let Some([a, b]) = self.java_blocks() {
            let both = json!({ "a": a.to_json(), "b": b.to_json() });
            fields.serialize_entry("sub_by_distance", &both)?;
        }
        fields.serialize_entry("why", &verdict.why)?;
        fields.end()
    }
}

/// A text and its steps as they are serialised, with fields in alphabetical order.
#[derive(Serialize)]
struct SideJson<'a> {
    bits: Option<String>,
    content: String,
    features: VotedFeatures<'a>,
    fingerprint: Option<String>,
    key: String,
    normalized: &'a str,
    place: &'a str,
    sentences: Option<Vec<SentenceJson<'a>>>,
    signature: Option<&'a [u32]>,
    smallest: &'a [u64],
    state: &'static str,
    sums: &'a [f64],
    text: &'a str,
    tie: Option<TieJson<'a>>,
    tokens: &'a [String],
}

/// The features of a text. Each is serialised with its votes before those of the next one are made.
struct VotedFeatures<'a> {
    features: &'a [FeatureVote],
    shape: FingerprintShape,
    /// Number of features, from the first on, whose votes are listed.
    with_votes: usize,
}

impl Serialize for VotedFeatures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let features = self.features.iter().enumerate();
        serializer.collect_seq(features.map(|(at, feature)| FeatureJson {
            count: feature.count,
            feature: &feature.text,
            hash: self.shape.format_hex(feature.hash),
            votes: (at < self.with_votes).then(|| feature.signed_votes(self.shape.bits)),
            weight: feature.weight,
        }))
    }
}

#[derive(Serialize)]
struct FeatureJson<'a> {
    count: usize,
    feature: &'a str,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    votes: Option<Vec<f64>>,
    weight: f64,
}

/// The rule for bits whose sum is 0: a bit, or the feature that decides.
#[derive(Serialize)]
#[serde(untagged)]
enum TieJson<'a> {
    Bit { bit: u8 },
    Feature { feature: &'a str, hash: String },
}

impl<'a> TieJson<'a> {
    fn from_steps(steps: &'a AnalysisSteps, shape: FingerprintShape) -> Option<Self> {
        match steps.tie? {
            TieBreaker::Bit(bit) => Some(Self::Bit { bit: bit.into() }),
            TieBreaker::Feature(_) => steps.deciding_feature().map(|feature| Self::Feature {
                feature: &feature.text,
                hash: shape.format_hex(feature.hash),
            }),
        }
    }
}

#[derive(Serialize)]
struct SentenceJson<'a> {
    characters: usize,
    hash: String,
    text: &'a str,
}

impl<'a> From<&'a LongSentence> for SentenceJson<'a> {
    fn from(sentence: &'a LongSentence) -> Self {
        Self {
            characters: sentence.characters,
            hash: format!("{:016x}", sentence.hash),
            text: &sentence.text,
        }
    }
}

#[derive(Serialize)]
struct FigureJson<'a> {
    detail: &'a str,
    kind: &'static str,
    value: Option<f64>,
}

impl<'a> From<&'a ComparisonFigure> for FigureJson<'a> {
    fn from(figure: &'a ComparisonFigure) -> Self {
        Self {
            detail: &figure.detail,
            kind: figure.kind.kind_name(),
            value: figure.value,
        }
    }
}

/// Shared passages, with the fields of each in alphabetical order.
#[derive(Serialize)]
struct SharedJson<'a> {
    passages: PassageList<'a>,
    share_of_a: f64,
    share_of_b: f64,
}

impl<'a> From<&'a SharedPassages> for SharedJson<'a> {
    fn from(shared: &'a SharedPassages) -> Self {
        Self {
            passages: PassageList(&shared.passages),
            share_of_a: shared.share_of_a,
            share_of_b: shared.share_of_b,
        }
    }
}

struct PassageList<'a>(&'a [SharedPassage]);

impl Serialize for PassageList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A tree sorts its fields; one passage at a time is little of one.
        let sorted = |passage| serde_json::to_value(passage).expect("numbers and names serialise");
        serializer.collect_seq(self.0.iter().map(sorted))
    }
}

/// Returns the name of a figure as a JSON field: lower-case letters, digits and underscores.
fn figure_key(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .map(str::to_ascii_lowercase)
        .collect::<Vec<_>>()
        .join("_")
}

/// Returns the number of positions in which two strings of digits differ.
pub fn count_differing(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).filter(|(a, b)| a != b).count()
}

/// Formats a weight or a sum without trailing zeros.
pub fn format_number(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use lookalike::passages::PassageSettings;
    use lookalike::plan::SimilarityMeasure;

    use super::*;

    /// Reads a source of the pages.
    fn read_page_source(file: &str) -> String {
        let path = format!("{}/../../console/src/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns the strings of a list in a source of the pages, which begins with `const NAME = [`.
    fn read_page_list(file: &str, name: &str) -> Vec<String> {
        let source = read_page_source(file);
        let (_, list) = source
            .split_once(&format!("const {name} = ["))
            .unwrap_or_else(|| panic!("{file} has no list `{name}`"));
        let (list, _) = list.split_once(']').expect("the list ends");
        let quoted = list.split('"').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    }

    /// The pages offer every measure that compares texts, show its figures in their order and name all of it.
    #[test]
    fn pages_know_every_measure() {
        let verified = SimilarityMeasure::ALL.into_iter();
        let verified = verified.filter(|&measure| measure != SimilarityMeasure::Sketch);
        let verified: Vec<SimilarityMeasure> = verified.collect();
        let names: Vec<&str> = verified.iter().map(|measure| measure.name()).collect();
        for file in ["web/compare.tsx", "console/create-collection.tsx"] {
            assert_eq!(read_page_list(file, "measures"), names, "{file}");
        }
        let figure_names = verified.iter();
        let figure_names = figure_names.flat_map(|measure| measure.descriptor().figure_names);
        let figures: Vec<String> = figure_names.map(figure_key).collect();
        let order = read_page_list("compare/page.tsx", "figureOrder");
        for figure in &figures {
            assert!(order.contains(figure), "`figureOrder` lacks {figure}");
        }
        let names = names.iter();
        let keys =
            names.flat_map(|name| [format!("measure.{name}"), format!("measure.about.{name}")]);
        let figures = figures.iter().map(|figure| format!("figure.{figure}"));
        let keys: Vec<String> = keys.chain(figures).collect();
        for file in ["language/en.ts", "language/zh.ts"] {
            let texts = read_page_source(file);
            for key in &keys {
                assert!(texts.contains(&format!("\"{key}\": ")), "{file}: {key}");
            }
        }
    }

    /// The text that is written is that of the sorted tree, so an answer does not depend on how it is made.
    #[test]
    fn comparison_is_written_as_its_tree() {
        let long =
            "The boat left the harbour at dawn, and nobody on the quay saw it go. ".repeat(3);
        let pairs = [
            ("The boat left at dawn.", "The boat left at noon."),
            (&*long, &*format!("{long} Later it came back.")),
            ("", "…"),
            ("渡轮在黎明时分离开了码头。", "渡轮在中午时分离开了码头。"),
        ];
        for recipe in ["default", "jieba", "java-classic"] {
            let recipe = Recipe::built_in(recipe).unwrap();
            for (a, b) in pairs {
                let settings = MatchSettings::default();
                let side = |place: &str, text: &str| ComparedSide {
                    place: place.to_owned(),
                    text: text.to_owned(),
                };
                let passages = PassageSettings::default();
                let case = ComparisonCase {
                    recipe: &recipe,
                    a: side("a", a),
                    b: side("b", b),
                    compared: Comparison::new(&recipe, settings, a, b).unwrap(),
                    shared: SharedPassages::find_all(&recipe, [a, b], passages).unwrap(),
                    top: 20,
                    distance: settings.distance,
                };
                let written = serde_json::to_string(&case).unwrap();
                assert_eq!(written, case.to_json().to_string());
            }
        }
    }

    #[test]
    fn distance_is_below_the_number_of_bits() {
        let distance =
            |bits, given| FingerprintShape::with_distance(bits, given).map(|shape| shape.distance);
        assert_eq!(distance(64, None), Ok(MatchSettings::default().distance));
        assert_eq!(distance(2, None), Ok(1));
        assert_eq!(distance(6, Some(5)), Ok(5));
        let refusal = distance(6, Some(6)).unwrap_err();
        assert_eq!(
            refusal,
            "is 6: give less than the 6 bits of the fingerprints"
        );
    }

    #[test]
    fn verdict_counts_differing_bits() {
        for (b, matches) in [(0b0001, true), (0b0011, false)] {
            let shape = FingerprintShape::with_distance(4, Some(1)).unwrap();
            let verdict = shape.verdict_as_json(0, b, [json!("first"), json!("second")]);
            assert_eq!(verdict["match"], matches);
            assert_eq!(verdict["distance"], b.count_ones());
            assert_eq!(verdict["b"], "second");
            assert_eq!(verdict["blocks"][1]["distance"], b.count_ones());
        }
    }
}
