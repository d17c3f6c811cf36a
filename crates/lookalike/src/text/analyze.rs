//! A text as its recipe sees it.

use std::borrow::Cow;
use std::sync::Arc;

use super::charmap::{AsciiCase, CharMap};
use super::normalize::{self, Token};
use super::sort::sort_distinct;
use super::tokenize::{Buffers, Tokenize};
use super::{characters, markup, sentences, shingle};
use crate::arch::Cpu;
use crate::hash;
use crate::recipe::{Markup, Recipe, Tokens};

/// How much a text offers for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At least one feature: it has fingerprints.
    Rich,
    /// Tokens, but fewer than an n-gram needs: it matches only what has the same tokens.
    Poor,
    /// No tokens, but some text: it matches only what has the same trimmed raw text.
    Blank,
    /// Nothing but white space: it matches nothing.
    Empty,
}

/// Buffers for [`Analyzer::analyze`], used again from text to text.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    characters: Vec<char>,
    weights: Vec<i64>,
    symbols: Vec<u32>,
}

/// Turns texts into tokens under one recipe. Cheap to share between threads.
#[derive(Clone, Debug)]
pub struct Analyzer {
    recipe: Arc<Recipe>,
    map: Arc<CharMap>,
    ascii: Option<AsciiCase>,
    cpu: Cpu,
    extras: Extras,
}

/// What an analysis holds besides tokens, if it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The normalised characters.
    pub characters: bool,
    /// A signature of so many of the longest sentences.
    pub sentences: Option<usize>,
}

/// The tokens of a text and what follows from them.
#[derive(Clone, Copy, Debug)]
pub struct Analysis<'a> {
    /// How much the text offers.
    pub state: State,
    /// Names the text: equal for texts that are equal after normalisation. Of 128 bits about 64
    /// protect against chance.
    pub key: u128,
    tokens: &'a [u64],
    /// The weight of every token, where the tokens are features that came with weights.
    weights: Option<&'a [i64]>,
    ngram: usize,
    characters: &'a [u32],
    sentences: Option<u64>,
}

/// Weights are taken in steps of 1/65,536, so that their sums are exact.
const WEIGHT_STEPS: f64 = 65_536.0;

/// Texts with the same key in different domains are not the same.
const TOKEN_DOMAIN: u64 = 1;
const RAW_DOMAIN: u64 = 2;

impl Analyzer {
    /// An analyzer with the fastest instructions of this CPU.
    pub fn new(recipe: &Recipe) -> Self {
        Self::with_cpu(recipe, Cpu::best())
    }

    /// An analyzer with chosen instructions; the results are the same.
    pub fn with_cpu(recipe: &Recipe, cpu: Cpu) -> Self {
        let map = CharMap::new(recipe);
        let ascii = if recipe.tokens == Tokens::Words {
            map.plain_ascii()
        } else {
            None
        };
        Self {
            recipe: Arc::new(recipe.clone()),
            map: Arc::new(map),
            ascii,
            cpu,
            extras: Extras::default(),
        }
    }

    /// The same analyzer, whose analyses of texts hold more than tokens.
    pub fn with_extras(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }

    /// The same analyzer, its tables shared, with chosen instructions.
    #[cfg(test)]
    pub(super) fn on(&self, cpu: Cpu) -> Self {
        Self {
            cpu,
            ..self.clone()
        }
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The instructions in use.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Tokens, state and key of a text.
    ///
    /// Cost: about a nanosecond a byte for text whose characters do not depend on one another, some
    /// tens of nanoseconds a byte otherwise.
    pub fn analyze<'a>(&self, text: &str, scratch: &'a mut Scratch) -> Analysis<'a> {
        let plain = self.without_markup(text);
        let Scratch {
            buffers,
            characters,
            symbols,
            ..
        } = scratch;
        buffers.trim();
        let tokenize = Tokenize {
            map: &self.map,
            ascii: self.ascii,
            text: &plain,
            buffers,
        };
        if !self.cpu.run(tokenize) {
            buffers.tokens.clear();
            normalize::characters(&self.recipe, &plain, characters);
            normalize::tokens(&self.recipe, characters, |token| {
                buffers.tokens.push(token.value());
            });
        }
        symbols.clear();
        if self.extras.characters {
            characters::append(&self.recipe, &self.map, &plain, symbols);
        }
        let named = |count| sentences::signature(&self.recipe, &self.map, &plain, count);
        Analysis {
            characters: symbols,
            sentences: self.extras.sentences.and_then(named),
            ..self.analysis(text, &buffers.tokens)
        }
    }

    /// The same for text that somebody else has cut into features: every string is one feature,
    /// whatever the n-gram of the recipe. Weights count in SimHash alone; they are rounded to
    /// steps of 1/65,536.
    pub fn analyze_features<'a, 'f>(
        &self,
        features: impl IntoIterator<Item = (&'f str, f64)>,
        scratch: &'a mut Scratch,
    ) -> Analysis<'a> {
        let Scratch {
            buffers: Buffers { tokens, .. },
            weights,
            ..
        } = scratch;
        tokens.clear();
        weights.clear();
        for (feature, weight) in features {
            tokens.push(hash::word(feature.as_bytes()));
            weights.push((weight * WEIGHT_STEPS).round() as i64);
        }
        let weighted = weights.iter().any(|&weight| weight != WEIGHT_STEPS as i64);
        let analysis = self.analysis("", tokens);
        let state = if tokens.is_empty() {
            State::Empty
        } else {
            State::Rich
        };
        Analysis {
            state,
            ngram: 1,
            weights: weighted.then_some(weights),
            ..analysis
        }
    }

    /// The tokens as text, by the definition.
    pub fn tokens(&self, text: &str) -> Vec<Token> {
        let mut characters = Vec::new();
        let mut tokens = Vec::new();
        normalize::characters(&self.recipe, &self.without_markup(text), &mut characters);
        normalize::tokens(&self.recipe, &characters, |token| tokens.push(token));
        tokens
    }

    fn without_markup<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.recipe.markup {
            Markup::None => Cow::Borrowed(text),
            Markup::Markdown => Cow::Owned(markup::from_markdown(text)),
            Markup::Html => Cow::Owned(markup::from_html(text)),
        }
    }

    fn analysis<'a>(&self, text: &str, tokens: &'a [u64]) -> Analysis<'a> {
        let ngram = self.recipe.ngram as usize;
        let raw = text.trim();
        let (state, key) = if tokens.is_empty() && raw.is_empty() {
            (State::Empty, 0)
        } else if tokens.is_empty() {
            (State::Blank, hash::bytes(RAW_DOMAIN, raw.as_bytes()))
        } else {
            let state = if tokens.len() < ngram {
                State::Poor
            } else {
                State::Rich
            };
            (state, hash::sequence(TOKEN_DOMAIN, tokens))
        };
        Analysis {
            state,
            key,
            tokens,
            weights: None,
            ngram,
            characters: &[],
            sentences: None,
        }
    }
}

impl Analysis<'_> {
    /// The value of every token, in the order of the text.
    pub fn tokens(&self) -> &[u64] {
        self.tokens
    }

    /// The normalised characters as code points, if the analyzer was asked for them: those of the
    /// tokens, with one space between two words. Empty where features were given.
    pub fn characters(&self) -> &[u32] {
        self.characters
    }

    /// The signature of the longest sentences, if the analyzer was asked for it and there is one.
    pub fn sentences(&self) -> Option<u64> {
        self.sentences
    }

    /// Appends the distinct features with their weights, ascending by feature: the sum of the weights
    /// that were given, in steps of 1/65,536, or else the number of occurrences.
    pub fn weighted_features(&self, into: &mut Vec<(u64, i64)>) {
        let start = into.len();
        match self.weighted() {
            Some(weighted) => into.extend(weighted),
            None => self.chunks(|features| into.extend(features.iter().map(|&it| (it, 1)))),
        }
        into[start..].sort_unstable_by_key(|&(feature, _)| feature);
        let mut kept = start;
        for at in start..into.len() {
            let (feature, weight) = into[at];
            if kept > start && into[kept - 1].0 == feature {
                into[kept - 1].1 += weight;
            } else {
                into[kept] = (feature, weight);
                kept += 1;
            }
        }
        into.truncate(kept);
    }

    /// The number of features, each counted as often as it occurs; 0 unless the text is rich.
    pub fn feature_count(&self) -> usize {
        (self.tokens.len() + 1).saturating_sub(self.ngram)
    }

    /// The features with their weights, if they came with some.
    pub(crate) fn weighted(&self) -> Option<impl Iterator<Item = (u64, i64)>> {
        let weights = self.weights?;
        let mut features = vec![0; self.tokens.len()];
        shingle::shingle(1, self.tokens, &mut features);
        Some(features.into_iter().zip(weights.iter().copied()))
    }

    /// Appends the distinct features in ascending order.
    pub fn features(&self, into: &mut Vec<u64>) {
        let start = into.len();
        into.resize(start + self.feature_count(), 0);
        shingle::shingle(self.ngram, self.tokens, &mut into[start..]);
        sort_distinct(into, start);
    }

    /// Whether there are more than `limit` distinct features. Cost: proportional to the limit, or
    /// to the text if it has fewer.
    pub(crate) fn has_more_features_than(&self, limit: usize) -> bool {
        if self.feature_count() <= limit {
            return false;
        }
        if self.surely_has_more_features_than(limit) {
            return true;
        }
        let mut table = vec![0; (4 * limit + 4).next_power_of_two()];
        let mask = table.len() - 1;
        let mut distinct = 0;
        self.chunks_while(limit + limit / 4 + 8, |features| {
            for &feature in features {
                let feature = feature.max(1);
                let mut at = feature as usize & mask;
                while table[at] != 0 && table[at] != feature {
                    at = (at + 1) & mask;
                }
                distinct += usize::from(table[at] == 0);
                table[at] = feature;
                if distinct > limit {
                    return false;
                }
            }
            true
        });
        distinct > limit
    }

    /// Whether so many of the first features have different hashes of a few bits that there must be
    /// more than `limit`: true of nearly every text that is long beside the limit.
    fn surely_has_more_features_than(&self, limit: usize) -> bool {
        let mut bits = [0u64; 16];
        let mut distinct = 0;
        self.chunks_while(2 * limit, |features| {
            for &feature in features {
                bits[(feature >> 60) as usize] |= 1 << (feature >> 54 & 63);
            }
            distinct = bits.iter().map(|bits| bits.count_ones() as usize).sum();
            false
        });
        distinct > limit
    }

    /// Calls back with the features in the order of the text, a buffer at a time.
    #[inline(always)]
    pub(crate) fn chunks(&self, mut visit: impl FnMut(&[u64])) {
        self.chunks_while(CHUNK, |features| {
            visit(features);
            true
        });
    }

    #[inline(always)]
    fn chunks_while(&self, most: usize, mut visit: impl FnMut(&[u64]) -> bool) {
        let mut buffer = [0; CHUNK];
        let count = self.feature_count();
        let mut at = 0;
        while at < count {
            let length = most.min(CHUNK).min(count - at);
            let tokens = &self.tokens[at..at + length + self.ngram - 1];
            shingle::shingle(self.ngram, tokens, &mut buffer[..length]);
            if !visit(&buffer[..length]) {
                return;
            }
            at += length;
        }
    }
}

/// Features that are made at a time: they stay in the first-level cache.
pub(crate) const CHUNK: usize = 1024;
