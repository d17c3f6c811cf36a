//! Comparison of two texts with every step, as shown to people and as JSON.

use lookalike::Recipe;
use lookalike::compare::{AnalysisSteps, Comparison, ComparisonFigure, FeatureVote};
use lookalike::recipe::CompatScheme;
use lookalike::sketch::{TieBreaker, count_reachable_blocks, java_block_values};
use lookalike::text::LongSentence;
use serde_json::{Value, json};

use crate::content_hash::ContentHash;
use crate::shared_passages::SharedPassages;
use crate::text_diff::diff_passages;

/// Number of features, heaviest first, whose votes are in the JSON. Votes follow from hash and weight, and
/// those of all features would make the JSON of a long text a hundred times as long as the text.
const MAX_LISTED_VOTES: usize = 1000;

/// A text and its origin.
pub struct ComparedSide {
    /// Where it was found.
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

    /// Returns the comparison with every step.
    pub fn to_json(&self) -> Value {
        let (matched, verdict) = (self.compared.verdict.matched, &self.compared.verdict);
        let figures: serde_json::Map<_, _> = self
            .compared
            .figures
            .iter()
            .map(|figure| (figure_key(figure.name), figure_as_json(figure)))
            .collect();
        let mut data = json!({
            "recipe": self.recipe.name,
            "recipe_id": self.recipe.recipe_id().to_string(),
            "a": self.side_as_json(&self.a, &self.compared.a),
            "b": self.side_as_json(&self.b, &self.compared.b),
            "distance": self.fingerprints().map(|(a, b)| (a ^ b).count_ones()),
            "blocks": self.fingerprints().map(|(a, b)| self.fingerprint_shape().blocks_as_json(a, b)),
            "figures": figures,
            "match": matched.is_some(),
            "method": matched.map(|(route, _)| route.name()),
            "similarity": verdict.similarity,
            "why": verdict.why,
            "differences": diff_passages(&self.a.text, &self.b.text),
            "shared": self.shared.to_json(),
        });
        if let Some([a, b]) = self.java_blocks() {
            data["sub_by_distance"] = json!({ "a": a.to_json(), "b": b.to_json() });
        }
        data
    }

    fn side_as_json(&self, side: &ComparedSide, steps: &AnalysisSteps) -> Value {
        let shape = self.fingerprint_shape();
        let with_votes = self.top.max(MAX_LISTED_VOTES);
        let feature = |(at, feature): (usize, &FeatureVote)| {
            let mut data = json!({
                "feature": feature.text,
                "count": feature.count,
                "weight": feature.weight,
                "hash": shape.format_hex(feature.hash),
            });
            if at < with_votes {
                data["votes"] = feature.signed_votes(shape.bits).into();
            }
            data
        };
        let tie = steps.tie.map(|tie| match tie {
            TieBreaker::Bit(bit) => json!({ "bit": u8::from(bit) }),
            TieBreaker::Feature(_) => steps.deciding_feature().map_or(
                Value::Null,
                |feature| json!({ "feature": feature.text, "hash": shape.format_hex(feature.hash) }),
            ),
        });
        json!({
            "place": side.place,
            "text": side.text,
            "content": ContentHash::from_text(&side.text).to_string(),
            "key": format!("{:032x}", steps.key),
            "state": steps.state.state_name(),
            "normalized": steps.normalized,
            "tokens": steps.tokens,
            "features": steps.features.iter().enumerate().map(feature).collect::<Vec<_>>(),
            "sums": steps.sums,
            "tie": tie,
            "bits": steps.fingerprint.map(|fingerprint| shape.bit_digits(fingerprint)),
            "fingerprint": steps.fingerprint.map(|fingerprint| shape.format_hex(fingerprint)),
            "signature": steps.signature,
            "smallest": steps.smallest,
            "sentences": steps.sentences.as_ref().map(|all| all.iter().map(sentence_to_json).collect::<Vec<_>>()),
        })
    }
}

fn figure_as_json(figure: &ComparisonFigure) -> Value {
    json!({ "value": figure.value, "kind": figure.kind.kind_name(), "detail": figure.detail })
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

fn sentence_to_json(sentence: &LongSentence) -> Value {
    json!({
        "text": sentence.text,
        "characters": sentence.characters,
        "hash": format!("{:016x}", sentence.hash),
    })
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
