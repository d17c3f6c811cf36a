//! Features, similarity, and the texts that have too few tokens for features.

use std::collections::BTreeSet;

use crate::text::split_tokens;

/// A text in the form in which it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OracleDocument {
    /// The set of token n-grams of a text that has features.
    Fingerprintable(BTreeSet<Vec<String>>),
    /// The tokens of a text that has fewer than an n-gram needs; it is compared as a whole.
    TooShort(Vec<String>),
    /// The trimmed raw text of a text without tokens.
    SymbolsOnly(String),
    /// An empty text or only white space, which matches nothing.
    Empty,
}

impl OracleDocument {
    /// Analyses a text under the default recipe with n-grams of `n` tokens.
    pub fn new(text: &str, n: usize) -> Self {
        let tokens = split_tokens(text);
        if tokens.len() >= n {
            Self::Fingerprintable(token_windows(&tokens, n))
        } else if !tokens.is_empty() {
            Self::TooShort(tokens)
        } else if !text.trim().is_empty() {
            Self::SymbolsOnly(text.trim().to_owned())
        } else {
            Self::Empty
        }
    }

    /// Returns the shared features ÷ those of the smaller text; for texts without features, 1 if they are equal
    /// and 0 if not.
    pub fn containment(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Fingerprintable(a), Self::Fingerprintable(b)) if a.len() <= b.len() => {
                containment(a, b)
            }
            (Self::Fingerprintable(a), Self::Fingerprintable(b)) => containment(b, a),
            _ => self.similarity(other),
        }
    }

    /// Returns the Jaccard index; for texts without features, 1 if they are equal and 0 if not.
    pub fn similarity(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Fingerprintable(a), Self::Fingerprintable(b)) => jaccard_index(a, b),
            (Self::Empty, Self::Empty) => 0.0,
            (a, b) => f64::from(u8::from(a == b)),
        }
    }
}

/// Returns the set of token n-grams of a text under the default recipe; empty for fewer than `n`
/// tokens.
pub fn token_ngrams(text: &str, n: usize) -> BTreeSet<Vec<String>> {
    token_windows(&split_tokens(text), n)
}

fn token_windows(tokens: &[String], n: usize) -> BTreeSet<Vec<String>> {
    tokens.windows(n).map(<[String]>::to_vec).collect()
}

/// Returns |A ∩ B| ÷ |A ∪ B|; 0 for two empty sets, because they give no evidence of a match.
pub fn jaccard_index<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    let shared = a.intersection(b).count();
    rounded_quotient(shared, a.len() + b.len() - shared)
}

/// Returns |A ∩ B| ÷ |A|, the share of `a` that is found in `b`; 0 for an empty `a`.
pub fn containment<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    rounded_quotient(a.intersection(b).count(), a.len())
}

/// Returns the quotient, rounded once. For example, 4 of 5 gives exactly the `f64` written as 0.8.
pub(crate) fn rounded_quotient(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f64 {
        OracleDocument::new(a, 3).similarity(&OracleDocument::new(b, 3))
    }

    #[test]
    fn similarity_by_state() {
        assert_eq!(similarity("a b c d", "a b c d e"), 2.0 / 3.0);
        assert_eq!(similarity("a b c d", "A-B-C-D!"), 1.0);
        assert_eq!(similarity("two words", "Two  words."), 1.0);
        assert_eq!(similarity("two words", "two other"), 0.0);
        assert_eq!(similarity("two words", "two words more"), 0.0);
        assert_eq!(similarity("!!!", " !!!\n"), 1.0);
        assert_eq!(similarity("!!!", "???"), 0.0);
        assert_eq!(similarity("", ""), 0.0);
        assert_eq!(similarity(" ", "\u{3000}"), 0.0);
        assert_eq!(similarity("", "!!!"), 0.0);
    }

    #[test]
    fn containment_is_of_the_smaller_text() {
        let of =
            |a: &str, b: &str| OracleDocument::new(a, 1).containment(&OracleDocument::new(b, 1));
        assert_eq!(of("a b c", "x a y b z c"), 1.0);
        assert_eq!(of("x a y b z c", "a b q"), 2.0 / 3.0);
        assert_eq!(of("", ""), 0.0);
        assert_eq!(of("!!", "!!"), 1.0);
    }

    #[test]
    fn decimal_thresholds_are_compared_exactly() {
        for whole in 1..=200usize {
            for part in 0..=whole {
                let percent = 100 * part / whole;
                if 100 * part == percent * whole {
                    let written: f64 = format!("{}.{percent:02}", percent / 100)
                        .replace("1.100", "1.00")
                        .parse()
                        .expect("a number");
                    assert_eq!(rounded_quotient(part, whole), written, "{part} of {whole}");
                }
            }
        }
    }

    #[test]
    fn containment_is_of_the_first_document() {
        let (a, b) = (token_ngrams("a b c", 1), token_ngrams("a b c d e f", 1));
        assert_eq!(containment(&a, &b), 1.0);
        assert_eq!(containment(&b, &a), 0.5);
        assert_eq!(containment(&token_ngrams("", 1), &a), 0.0);
    }
}
