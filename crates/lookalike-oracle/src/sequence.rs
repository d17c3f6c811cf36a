//! Similarity measures of sequences and of counted features.

use std::collections::BTreeMap;

use crate::document::rounded_quotient;
use crate::text::split_tokens;

/// Returns the characters that are compared: those of the tokens, with a space between two words.
pub fn characters(text: &str) -> Vec<char> {
    let mut joined = String::new();
    let mut before: Option<String> = None;
    for token in split_tokens(text) {
        let is_word = |token: &str| !is_single_character(token);
        if before.as_deref().is_some_and(is_word) && is_word(&token) {
            joined.push(' ');
        }
        joined.push_str(&token);
        before = Some(token);
    }
    joined.chars().collect()
}

/// Returns `true` if a token is a character of a script that is written without spaces.
fn is_single_character(token: &str) -> bool {
    // Two such characters are two tokens, while two letters are one.
    split_tokens(&token.repeat(2)).len() == 2
}

/// Returns 1 − Levenshtein distance ÷ the longer length.
pub fn levenshtein<T: PartialEq>(a: &[T], b: &[T]) -> f64 {
    let longer = a.len().max(b.len());
    rounded_quotient(longer - edit_distance(a, b, 1), longer)
}

/// Returns 1 − Indel distance ÷ the sum of both lengths.
pub fn indel_similarity<T: PartialEq>(a: &[T], b: &[T]) -> f64 {
    let both = a.len() + b.len();
    rounded_quotient(both - edit_distance(a, b, 2), both)
}

/// Returns 2 · length of the longest common substring ÷ the sum of both lengths.
pub fn common_substring<T: PartialEq>(a: &[T], b: &[T]) -> f64 {
    let mut longest = 0;
    let mut ending = vec![0; b.len() + 1];
    for x in a {
        for j in (0..b.len()).rev() {
            ending[j + 1] = if *x == b[j] { ending[j] + 1 } else { 0 };
            longest = longest.max(ending[j + 1]);
        }
    }
    rounded_quotient(2 * longest, a.len() + b.len())
}

/// Returns the cosine of the counts of token n-grams of two texts.
pub fn cosine_similarity(a: &str, b: &str, n: usize) -> f64 {
    let counts = |text: &str| {
        let mut counts: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for window in split_tokens(text).windows(n) {
            *counts.entry(window.to_vec()).or_default() += 1.0;
        }
        counts
    };
    let (a, b) = (counts(a), counts(b));
    let dot: f64 = a
        .iter()
        .map(|(feature, x)| x * b.get(feature).unwrap_or(&0.0))
        .sum();
    let square = |counts: &BTreeMap<Vec<String>, f64>| counts.values().map(|x| x * x).sum::<f64>();
    let norms = (square(&a) * square(&b)).sqrt();
    if norms == 0.0 { 0.0 } else { dot / norms }
}

/// Computes the textbook's table row by row; a substitution costs 1 or 2.
fn edit_distance<T: PartialEq>(a: &[T], b: &[T], substitution: usize) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + if x == y { 0 } else { substitution };
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_measures_equal_worked_examples() {
        let [a, b] = [
            "你妈妈喊你回家吃饭哦，回家罗回家罗",
            "你妈妈叫你回家吃饭啦，回家罗回家罗",
        ];
        let (in_a, in_b) = (characters(a), characters(b));
        assert_eq!(in_a.len(), 16);
        assert_eq!(levenshtein(&in_a, &in_b), 14.0 / 16.0);
        assert_eq!(indel_similarity(&in_a, &in_b), 28.0 / 32.0);
        assert_eq!(common_substring(&in_a, &in_b), 12.0 / 32.0);
        assert_eq!(cosine_similarity("a b", "a c", 1), 0.5);
        let text: String = characters("The cat, 猫 sat").into_iter().collect();
        assert_eq!(text, "the cat猫sat");
    }
}
