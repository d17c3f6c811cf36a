//! The steps of a recipe for one text.

use std::collections::HashMap;

use crate::arch::Cpu;
use crate::recipe::{Recipe, Weights};
use crate::sketch::{MinHasher, SimHasher, Tie, ballots, smallest_features, tie, vote};
use crate::text::{Analysis, Analyzer, Sentence, State, Token};
use crate::weight::WEIGHT_STEPS;

/// The results of all steps of a recipe for one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Text state: whether the text yields features.
    pub state: State,
    /// Normalised text, with one space between two words. Under a scheme of another tool, the text of
    /// which that tool makes features.
    pub normalized: String,
    /// Tokens, in the order of the text.
    pub tokens: Vec<String>,
    /// Distinct features, the heaviest first, then in the order of the text.
    pub features: Vec<Feature>,
    /// Sum of the votes for every bit of the fingerprint, the highest bit first.
    pub sums: Vec<f64>,
    /// Rule for bits whose sum is 0.
    pub tie: Option<Tie>,
    /// SimHash fingerprint, if the text has one.
    pub fingerprint: Option<u128>,
    /// MinHash signature, if the text has one.
    pub signature: Option<Vec<u32>>,
    /// Smallest hashes of the features, ascending: as many as a signature has slots, or all.
    pub smallest: Vec<u64>,
    /// Sentences that represent the text, the longest first, under
    /// [`Method::Sentences`](crate::plan::Method::Sentences).
    pub sentences: Option<Vec<Sentence>>,
}

/// A feature and its vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Tokens of the feature as they are spelled.
    pub text: String,
    /// Hash that represents the feature in sets of features.
    pub value: u64,
    /// Hash that votes, in the lowest bits of the fingerprint's width.
    pub hash: u128,
    /// Number of occurrences.
    pub count: usize,
    /// Weight of the vote. It is added where the hash has a 1, and subtracted where it has a 0. It is 0
    /// if the recipe lets only heavier features vote.
    pub weight: f64,
}

impl Feature {
    /// Returns the signed vote for every bit of a fingerprint, the highest bit first.
    pub fn votes(&self, bits: u32) -> Vec<f64> {
        let vote = |bit: u32| {
            if self.hash >> bit & 1 == 1 {
                self.weight
            } else {
                -self.weight
            }
        };
        (0..bits).rev().map(vote).collect()
    }
}

impl Steps {
    /// Returns the steps of a text. Its analysis must include the characters. `sentences` is the number
    /// of sentences that represent the text, if the plan compares them.
    pub(super) fn new(
        analyzer: &Analyzer,
        text: &str,
        analysis: &Analysis<'_>,
        sentences: Option<usize>,
    ) -> Self {
        let recipe = analyzer.recipe();
        let tokens = analyzer.tokens(text);
        let features = features(recipe, &tokens, analysis);
        let steps = |feature: &Feature| (feature.weight * WEIGHT_STEPS as f64) as i64;
        let sums = vote(
            recipe.simhash.bits,
            features
                .iter()
                .map(|feature| (feature.hash, steps(feature))),
        );
        let minhash = MinHasher::new(&recipe.minhash, Cpu::best());
        let mut signature = vec![0; minhash.slots()];
        let signed = minhash.original(analysis, &mut signature);
        let mut smallest = Vec::new();
        smallest_features(analysis, minhash.slots(), &mut smallest);
        Self {
            state: analysis.state,
            normalized: normalized(analysis),
            tokens: tokens.iter().map(|token| token.text()).collect(),
            features,
            sums: sums
                .into_iter()
                .map(|sum| sum as f64 / WEIGHT_STEPS as f64)
                .collect(),
            tie: tie(analysis),
            fingerprint: SimHasher::new(&recipe.simhash, Cpu::best()).original(analysis),
            signature: signed.then_some(signature),
            smallest,
            sentences: sentences.map(|count| analyzer.longest_sentences(text, count)),
        }
    }
}

impl Steps {
    /// Returns the feature that decides bits whose sum is 0, if a feature does.
    pub fn deciding_feature(&self) -> Option<&Feature> {
        let Some(Tie::Feature(value)) = self.tie else {
            return None;
        };
        self.features.iter().find(|feature| feature.value == value)
    }
}

/// Returns the normalised characters, which the analysis must include.
fn normalized(analysis: &Analysis<'_>) -> String {
    let points = analysis.characters().iter();
    points.filter_map(|&point| char::from_u32(point)).collect()
}

/// Returns consecutive tokens as text, with a space between two words.
fn spelled(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut after_word = false;
    for token in tokens {
        let is_word = matches!(token, Token::Word(_));
        if after_word && is_word {
            text.push(' ');
        }
        text.push_str(&token.text());
        after_word = is_word;
    }
    text
}

/// Returns the distinct features of a text with their votes.
fn features(recipe: &Recipe, tokens: &[Token], analysis: &Analysis<'_>) -> Vec<Feature> {
    let ngram = if recipe.scheme.is_some() {
        1
    } else {
        recipe.ngram as usize
    };
    let width = u128::MAX >> (128 - recipe.simhash.bits);
    let mut values = Vec::new();
    analysis.chunks(|some| values.extend_from_slice(some));
    let mut found: Vec<Feature> = Vec::new();
    let mut places = HashMap::new();
    for ((&value, hash), tokens) in values
        .iter()
        .zip(ballots(analysis))
        .zip(tokens.windows(ngram))
    {
        let place = *places.entry(value).or_insert_with(|| {
            found.push(Feature {
                text: spelled(tokens),
                value,
                hash: hash & width,
                count: 0,
                weight: 0.0,
            });
            found.len() - 1
        });
        found[place].count += 1;
    }
    weigh(recipe, analysis, &mut found, &places);
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found
}

fn weigh(
    recipe: &Recipe,
    analysis: &Analysis<'_>,
    features: &mut [Feature],
    places: &HashMap<u64, usize>,
) {
    let Some(weighted) = analysis.weighted() else {
        for feature in features {
            feature.weight = match recipe.simhash.weights {
                Weights::Binary => 1.0,
                _ => feature.count as f64,
            };
        }
        return;
    };
    for (value, weight) in weighted {
        if let Some(&place) = places.get(&value) {
            features[place].weight += weight as f64 / WEIGHT_STEPS as f64;
        }
    }
}
