//! The steps of a recipe for one text.

use std::collections::HashMap;

use crate::arch::Cpu;
use crate::recipe::{Recipe, WeightScheme};
use crate::sketch::{
    MinHasher, SimHasher, TieBreaker, count_weighted_votes, list_ballots, smallest_features,
    tie_breaker,
};
use crate::text::weight::WEIGHT_STEPS;
use crate::text::{LongSentence, TextAnalysis, TextAnalyzer, TextState, TextToken};

/// The results of all steps of a recipe for one text.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisSteps {
    /// Text state: whether the text yields features.
    pub state: TextState,
    /// Hash of the text, equal for texts that are equal after normalisation. Decisions of a person name a text by it.
    pub key: u128,
    /// Normalised text, with one space between two words. Under a scheme of another tool, the text of
    /// which that tool makes features.
    pub normalized: String,
    /// Tokens, in the order of the text.
    pub tokens: Vec<String>,
    /// Distinct features, the heaviest first, then in the order of the text.
    pub features: Vec<FeatureVote>,
    /// Sum of the votes for every bit of the fingerprint, the highest bit first.
    pub sums: Vec<f64>,
    /// Rule for bits whose sum is 0.
    pub tie: Option<TieBreaker>,
    /// SimHash fingerprint, if the text has one.
    pub fingerprint: Option<u128>,
    /// MinHash signature, if the text has one.
    pub signature: Option<Vec<u32>>,
    /// Smallest hashes of the features, ascending: as many as a signature has slots, or all.
    pub smallest: Vec<u64>,
    /// Sentences that represent the text, the longest first, under
    /// [`MatchMethod::Sentences`](crate::plan::MatchMethod::Sentences).
    pub sentences: Option<Vec<LongSentence>>,
}

/// A feature and its vote.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureVote {
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

impl FeatureVote {
    /// Returns the signed vote for every bit of a fingerprint, the highest bit first.
    pub fn signed_votes(&self, bits: u32) -> Vec<f64> {
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

impl AnalysisSteps {
    /// Returns the steps of a text. Its analysis must include the characters. `sentences` is the number
    /// of sentences that represent the text, if the plan compares them.
    pub(super) fn new(
        analyzer: &TextAnalyzer,
        text: &str,
        analysis: &TextAnalysis<'_>,
        sentences: Option<usize>,
    ) -> Self {
        let recipe = analyzer.recipe();
        let tokens = analyzer.list_tokens(text);
        let features = list_features(recipe, &tokens, analysis);
        let steps = |feature: &FeatureVote| (feature.weight * WEIGHT_STEPS as f64) as i64;
        let sums = count_weighted_votes(
            recipe.simhash.bits,
            features
                .iter()
                .map(|feature| (feature.hash, steps(feature))),
        );
        let minhash = MinHasher::new(&recipe.minhash, Cpu::detect_best());
        let mut signature = vec![0; minhash.slot_count()];
        let signed = minhash.original_signature(analysis, &mut signature);
        let mut smallest = Vec::new();
        smallest_features(analysis, minhash.slot_count(), &mut smallest);
        Self {
            state: analysis.state,
            key: analysis.key,
            normalized: normalized(analysis),
            tokens: tokens.iter().map(|token| token.text()).collect(),
            features,
            sums: sums
                .into_iter()
                .map(|sum| sum as f64 / WEIGHT_STEPS as f64)
                .collect(),
            tie: tie_breaker(analysis),
            fingerprint: SimHasher::new(&recipe.simhash, Cpu::detect_best())
                .original_fingerprint(analysis),
            signature: signed.then_some(signature),
            smallest,
            sentences: sentences.map(|count| analyzer.longest_sentences(text, count)),
        }
    }
}

impl AnalysisSteps {
    /// Returns the feature that decides bits whose sum is 0, if a feature does.
    pub fn deciding_feature(&self) -> Option<&FeatureVote> {
        let Some(TieBreaker::Feature(value)) = self.tie else {
            return None;
        };
        self.features.iter().find(|feature| feature.value == value)
    }
}

/// Returns the normalised characters, which the analysis must include.
fn normalized(analysis: &TextAnalysis<'_>) -> String {
    let points = analysis.characters().iter();
    points.filter_map(|&point| char::from_u32(point)).collect()
}

/// Returns consecutive tokens as text, with a space between two words.
pub(super) fn join_tokens(tokens: &[TextToken]) -> String {
    let mut text = String::new();
    let mut after_word = false;
    for token in tokens {
        let is_word = matches!(token, TextToken::Word(_));
        if after_word && is_word {
            text.push(' ');
        }
        text.push_str(&token.text());
        after_word = is_word;
    }
    text
}

/// Returns the distinct features of a text with their votes.
fn list_features(
    recipe: &Recipe,
    tokens: &[TextToken],
    analysis: &TextAnalysis<'_>,
) -> Vec<FeatureVote> {
    let ngram = if recipe.scheme.is_some() {
        1
    } else {
        recipe.ngram as usize
    };
    let width = u128::MAX >> (128 - recipe.simhash.bits);
    let mut values = Vec::new();
    analysis.visit_chunks(|some| values.extend_from_slice(some));
    let mut found: Vec<FeatureVote> = Vec::new();
    let mut places = HashMap::new();
    for ((&value, hash), tokens) in values
        .iter()
        .zip(list_ballots(analysis))
        .zip(tokens.windows(ngram))
    {
        let place = *places.entry(value).or_insert_with(|| {
            found.push(FeatureVote {
                text: join_tokens(tokens),
                value,
                hash: hash & width,
                count: 0,
                weight: 0.0,
            });
            found.len() - 1
        });
        found[place].count += 1;
    }
    assign_weights(recipe, analysis, &mut found, &places);
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found
}

fn assign_weights(
    recipe: &Recipe,
    analysis: &TextAnalysis<'_>,
    features: &mut [FeatureVote],
    places: &HashMap<u64, usize>,
) {
    let Some(weighted) = analysis.iter_weighted() else {
        for feature in features {
            feature.weight = match recipe.simhash.weights {
                WeightScheme::Binary => 1.0,
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
