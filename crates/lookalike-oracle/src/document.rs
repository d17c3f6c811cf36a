//! Features, similarity, and what becomes of texts that have too few.

use std::collections::BTreeSet;

use crate::text::tokens;

/// A text as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// It has features: the set of its token n-grams.
    Rich(BTreeSet<Vec<String>>),
    /// It has fewer tokens than an n-gram needs, and is compared as a whole.
    Poor(Vec<String>),
    /// It has no tokens: its trimmed raw text.
    Blank(String),
    /// It is empty or white space, and matches nothing.
    Empty,
}

impl Document {
    /// The text under the default recipe with n-grams of `n` tokens.
    pub fn new(text: &str, n: usize) -> Self {
        let tokens = tokens(text);
        if tokens.len() >= n {
            Self::Rich(windows(&tokens, n))
        } else if !tokens.is_empty() {
            Self::Poor(tokens)
        } else if !text.trim().is_empty() {
            Self::Blank(text.trim().to_owned())
        } else {
            Self::Empty
        }
    }

    /// The Jaccard index; between texts without features 1 if they are equal and 0 if not.
    pub fn similarity(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Rich(a), Self::Rich(b)) => jaccard(a, b),
            (Self::Empty, Self::Empty) => 0.0,
            (a, b) => f64::from(u8::from(a == b)),
        }
    }
}

/// The set of the text's token n-grams under the default recipe: empty for fewer than `n` tokens.
pub fn features(text: &str, n: usize) -> BTreeSet<Vec<String>> {
    windows(&tokens(text), n)
}

fn windows(tokens: &[String], n: usize) -> BTreeSet<Vec<String>> {
    tokens.windows(n).map(<[String]>::to_vec).collect()
}

/// |A ∩ B| ÷ |A ∪ B|; of two empty sets 0, since nothing speaks for a match.
pub fn jaccard<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    let shared = a.intersection(b).count();
    share(shared, a.len() + b.len() - shared)
}

/// |A ∩ B| ÷ |A|: how much of `a` is found in `b`; of an empty `a` 0.
pub fn containment<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    share(a.intersection(b).count(), a.len())
}

/// The quotient, rounded once: 4 of 5 is the number that is written 0.8.
pub(crate) fn share(part: usize, whole: usize) -> f64 {
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
        Document::new(a, 3).similarity(&Document::new(b, 3))
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
    fn thresholds_written_in_decimals_are_met_exactly() {
        for whole in 1..=200usize {
            for part in 0..=whole {
                let percent = 100 * part / whole;
                if 100 * part == percent * whole {
                    let written: f64 = format!("{}.{percent:02}", percent / 100)
                        .replace("1.100", "1.00")
                        .parse()
                        .expect("a number");
                    assert_eq!(share(part, whole), written, "{part} of {whole}");
                }
            }
        }
    }

    #[test]
    fn containment_is_of_the_first() {
        let (a, b) = (features("a b c", 1), features("a b c d e f", 1));
        assert_eq!(containment(&a, &b), 1.0);
        assert_eq!(containment(&b, &a), 0.5);
        assert_eq!(containment(&features("", 1), &a), 0.0);
    }
}
