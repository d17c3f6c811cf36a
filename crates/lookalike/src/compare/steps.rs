//! One text, step by step.

use std::collections::HashMap;

use crate::arch::Cpu;
use crate::recipe::{Recipe, Weights};
use crate::sketch::{MinHasher, SimHasher, Tie, ballots, smallest_features, tie, vote};
use crate::text::{Analysis, Analyzer, Sentence, State, Token};
use crate::weight::WEIGHT_STEPS;

/// What a recipe makes of a text, one step after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// How much the text offers.
    pub state: State,
    /// The normalised text, with one space between two words; under another tool's scheme what that
    /// makes features of.
    pub normalized: String,
    /// The tokens, in the order of the text.
    pub tokens: Vec<String>,
    /// The distinct features, the heaviest first, then in the order of the text.
    pub features: Vec<Feature>,
    /// For every bit of the fingerprint, the highest first, the sum of the votes.
    pub sums: Vec<f64>,
    /// What the bits are where a sum is 0.
    pub tie: Option<Tie>,
    /// The SimHash fingerprint, if the text has one.
    pub fingerprint: Option<u128>,
    /// The MinHash signature, if the text has one.
    pub signature: Option<Vec<u32>>,
    /// The smallest hashes of its features, ascending: as many as a signature has slots, or all.
    pub smallest: Vec<u64>,
    /// The sentences that stand for the text, the longest first, under
    /// [`Method::Sentences`](crate::plan::Method::Sentences).
    pub sentences: Option<Vec<Sentence>>,
}

/// A feature and its vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Its tokens as they are spelled.
    pub text: String,
    /// What stands for it in sets of features.
    pub value: u64,
    /// The hash that votes, in the lowest bits of the fingerprint's width.
    pub hash: u128,
    /// How often it occurs.
    pub count: usize,
    /// The weight of its vote: it is added where the hash has a 1, and taken away where it has a 0.
    /// 0 if the recipe lets only heavier features vote.
    pub weight: f64,
}

impl Feature {
    /// The signed vote for every bit of a fingerprint, the highest first.
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
    /// The steps of a text whose analysis, with its characters, is `analysis`; `sentences` are to
    /// stand for it, if any are.
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
    /// The feature that decides where a sum is 0, if it is one.
    pub fn deciding_feature(&self) -> Option<&Feature> {
        let Some(Tie::Feature(value)) = self.tie else {
            return None;
        };
        self.features.iter().find(|feature| feature.value == value)
    }
}

/// The normalised characters, which the analysis must have been asked for.
fn normalized(analysis: &Analysis<'_>) -> String {
    let points = analysis.characters().iter();
    points.filter_map(|&point| char::from_u32(point)).collect()
}

/// Tokens in a row, with a space between two words.
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

/// The distinct features of a text with their votes.
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
