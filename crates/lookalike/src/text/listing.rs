//! The terms of one text in readable form.

use std::collections::HashMap;

use super::analyze::{AnalysisScratch, TextAnalyzer};
use super::shingle;
use crate::recipe::{TokenKind, WeightScheme};
use crate::text::weight::WEIGHT_STEPS;

/// A distinct feature of a text, with its spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTerm {
    /// Its tokens, separated by spaces; without spaces if the tokens are characters.
    pub text: String,
    /// Number of occurrences.
    pub count: u64,
    /// Weight in SimHash, in steps of 1/65,536.
    pub weight: i64,
    /// Part of speech of a single token, if the recipe can tell it.
    pub part: Option<String>,
}

impl ListedTerm {
    /// Returns the weight as a number with four decimal places, as tables and answers contain it.
    pub fn weight_in_digits(&self) -> f64 {
        (self.weight as f64 / WEIGHT_STEPS as f64 * 1e4).round() / 1e4
    }
}

/// Returns the spelling of a feature.
pub(crate) fn join_tokens<'t>(tokens: impl Iterator<Item = &'t str>, characters: bool) -> String {
    let mut term = String::new();
    for token in tokens {
        if !characters && !term.is_empty() {
            term.push(' ');
        }
        term.push_str(token);
    }
    term
}

impl TextAnalyzer {
    /// Returns the distinct features of a text that count in SimHash, heaviest first, and equally heavy ones
    /// in the order of their first occurrence. It is meant for people, because it builds strings of
    /// everything.
    pub fn list_terms(&self, text: &str, scratch: &mut AnalysisScratch) -> Vec<ListedTerm> {
        let recipe = self.recipe();
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        self.visit_terms(text, scratch, true, &mut |term| {
            texts.push((term.text.to_owned(), term.part.map(str::to_owned)));
            values.push(term.value);
        });
        let ngram = recipe.ngram as usize;
        let mut features = vec![0; (values.len() + 1).saturating_sub(ngram)];
        shingle::hash_shingles(ngram, &values, &mut features);
        let weights: Option<HashMap<u64, i64>> =
            (self.analyze_text(text, scratch).iter_weighted()).map(Iterator::collect);
        let mut places = HashMap::new();
        let mut listed: Vec<ListedTerm> = Vec::new();
        for (at, &feature) in features.iter().enumerate() {
            let place = *places.entry(feature).or_insert(listed.len());
            if place < listed.len() {
                listed[place].count += 1;
                continue;
            }
            let tokens = &texts[at..at + ngram];
            let characters = recipe.tokens == TokenKind::Characters;
            listed.push(ListedTerm {
                text: join_tokens(tokens.iter().map(|(text, _)| text.as_str()), characters),
                count: 1,
                // A feature without an entry does not vote; −1 marks it for removal.
                weight: weights
                    .as_ref()
                    .map_or(0, |all| all.get(&feature).copied().unwrap_or(-1)),
                part: tokens[0].1.clone().filter(|_| ngram == 1),
            });
        }
        if weights.is_none() {
            for term in &mut listed {
                let times = match recipe.simhash.weights {
                    WeightScheme::Binary => 1,
                    _ => term.count as i64,
                };
                term.weight = times * WEIGHT_STEPS;
            }
        }
        listed.retain(|term| term.weight >= 0);
        listed.sort_by_key(|term| std::cmp::Reverse(term.weight));
        listed
    }
}
