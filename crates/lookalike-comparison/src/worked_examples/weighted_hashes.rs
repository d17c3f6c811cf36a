//! SimHash by hand: the hashes and weights of features are given, and every step to the fingerprint is
//! shown.
//!
//! A document is a list of features, `TOKEN=BITS:WEIGHT`, separated by white space. For example,
//! `CSDN=100101:4 博客=101011:5` has the fingerprint 101011, the worked example of many articles. The hashes
//! have as many bits as they have digits, from 1 to 128. A bit is 1 if the sum of its votes is above 0, as
//! Charikar (2002) defines it.

use std::collections::HashMap;

use lookalike::compare::FeatureVote;
use lookalike::sketch::count_weighted_votes;
use lookalike::text::weight::{MOST_WEIGHT, WEIGHT_STEPS};
use lookalike_options::shown_text::shorten_text;
use serde_json::{Value, json};

use crate::comparison::FingerprintShape;

/// Largest number of features of a document.
pub const MOST_FEATURES: usize = 1000;

/// Characters of a malformed feature that a message shows at most.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// A document whose features have given hashes and weights, with every step to its fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedHashes {
    /// Number of bits of every hash and of the fingerprint.
    pub bits: u32,
    /// Features with their votes, in the order in which they are given.
    pub features: Vec<FeatureVote>,
    /// Sum of the votes for every bit, the highest bit first.
    pub sums: Vec<f64>,
    /// Fingerprint: 1 where the sum is above 0.
    pub fingerprint: u128,
}

impl WeightedHashes {
    /// Parses a document and computes its fingerprint.
    ///
    /// # Errors
    ///
    /// If the document has no feature or more than [`MOST_FEATURES`], if a feature is malformed or given
    /// twice, if hashes differ in their number of bits, or if a weight is not a number from 0 to
    /// [`MOST_WEIGHT`].
    pub fn parse_document(text: &str) -> Result<Self, String> {
        let mut features: Vec<FeatureVote> = Vec::new();
        let mut places = HashMap::new();
        let mut common_bits = None;
        for given in text.split_whitespace() {
            let (token, digits, weight) = split_feature(given)?;
            let bits = digits.len() as u32;
            let (first, expected) = *common_bits.get_or_insert((token, bits));
            if bits != expected {
                return Err(format!(
                    "the hash of '{}' has {bits} bits, and that of '{}' has {expected}: give every \
                     hash with the same number of bits",
                    shorten_text(token, MAX_SHOWN_CHARACTERS),
                    shorten_text(first, MAX_SHOWN_CHARACTERS)
                ));
            }
            if features.len() == MOST_FEATURES {
                return Err(format!(
                    "the document has more than {MOST_FEATURES} features: give at most as many"
                ));
            }
            if places.insert(token, features.len()).is_some() {
                return Err(format!(
                    "the feature '{}' is given twice: add its weights and give it once",
                    shorten_text(token, MAX_SHOWN_CHARACTERS)
                ));
            }
            features.push(feature_vote(
                token,
                parse_bits(token, digits)?,
                parse_weight(token, weight)?,
            ));
        }
        let (_, bits) = common_bits.ok_or(
            "the document has no feature: give at least one as TOKEN=BITS:WEIGHT, for example \
             CSDN=100101:4",
        )?;
        Ok(Self::from_features(bits, features))
    }

    fn from_features(bits: u32, features: Vec<FeatureVote>) -> Self {
        let steps = |vote: &FeatureVote| (vote.weight * WEIGHT_STEPS as f64).round() as i64;
        let votes = features.iter().map(|vote| (vote.hash, steps(vote)));
        let sums = count_weighted_votes(bits, votes);
        let push_bit = |value: u128, sum: &i64| value << 1 | u128::from(*sum > 0);
        Self {
            bits,
            fingerprint: sums.iter().fold(0, push_bit),
            sums: sums
                .into_iter()
                .map(|sum| sum as f64 / WEIGHT_STEPS as f64)
                .collect(),
            features,
        }
    }

    /// Checks that two documents can be compared: their hashes have the same number of bits, and a token
    /// that both have has one hash.
    ///
    /// # Errors
    ///
    /// If they cannot. The message names both values.
    pub fn check_comparable(&self, other: &Self) -> Result<(), String> {
        if self.bits != other.bits {
            return Err(format!(
                "the hashes of A have {} bits and those of B {}: give both the same number",
                self.bits, other.bits
            ));
        }
        let own: HashMap<&str, u128> = self
            .features
            .iter()
            .map(|feature| (&*feature.text, feature.hash))
            .collect();
        let shape = self.shape();
        for feature in &other.features {
            if let Some(&hash) = own
                .get(&*feature.text)
                .filter(|&&hash| hash != feature.hash)
            {
                return Err(format!(
                    "the hash of '{}' is {} in A and {} in B: a feature has one hash",
                    shorten_text(&feature.text, MAX_SHOWN_CHARACTERS),
                    shape.bit_digits(hash),
                    shape.bit_digits(feature.hash)
                ));
            }
        }
        Ok(())
    }

    /// Returns the document with every step.
    pub fn to_json(&self) -> Value {
        let shape = self.shape();
        let feature = |vote: &FeatureVote| {
            json!({
                "feature": vote.text,
                "hash": shape.bit_digits(vote.hash),
                "weight": vote.weight,
                "votes": vote.signed_votes(self.bits),
            })
        };
        json!({
            "features": self.features.iter().map(feature).collect::<Vec<_>>(),
            "sums": self.sums,
            "bits": shape.bit_digits(self.fingerprint),
            "fingerprint": shape.format_hex(self.fingerprint),
        })
    }

    fn shape(&self) -> FingerprintShape {
        FingerprintShape {
            bits: self.bits,
            distance: 0,
        }
    }
}

/// Splits `TOKEN=BITS:WEIGHT` into its parts. The token may contain `=` and `:`. Signs of full width separate the parts, too.
fn split_feature(given: &str) -> Result<(&str, &str, &str), String> {
    given
        .rsplit_once([':', '：'])
        .and_then(|(front, weight)| {
            let (token, digits) = front.rsplit_once(['=', '＝'])?;
            (!token.is_empty()).then_some((token, digits, weight))
        })
        .ok_or_else(|| {
            format!(
                "the feature '{}' is not of the form TOKEN=BITS:WEIGHT: give, for example, \
                 CSDN=100101:4",
                shorten_text(given, MAX_SHOWN_CHARACTERS)
            )
        })
}

fn parse_bits(token: &str, digits: &str) -> Result<u128, String> {
    let is_binary = digits.bytes().all(|digit| matches!(digit, b'0' | b'1'));
    if !is_binary || digits.is_empty() || digits.len() > 128 {
        return Err(format!(
            "the hash '{}' of '{}' is not 1 to 128 binary digits",
            shorten_text(digits, MAX_SHOWN_CHARACTERS),
            shorten_text(token, MAX_SHOWN_CHARACTERS)
        ));
    }
    Ok(u128::from_str_radix(digits, 2).expect("at most 128 binary digits"))
}

fn parse_weight(token: &str, weight: &str) -> Result<f64, String> {
    let number = weight.parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=MOST_WEIGHT).contains(number));
    number.ok_or_else(|| {
        format!(
            "the weight '{}' of '{}' is not a number from 0 to {MOST_WEIGHT}",
            shorten_text(weight, MAX_SHOWN_CHARACTERS),
            shorten_text(token, MAX_SHOWN_CHARACTERS)
        )
    })
}

fn feature_vote(token: &str, hash: u128, weight: f64) -> FeatureVote {
    FeatureVote {
        text: token.to_owned(),
        value: hash as u64,
        hash,
        count: 1,
        weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_examples_have_their_sums_and_bits() {
        let blog = WeightedHashes::parse_document("CSDN=100101:4 博客=101011:5").unwrap();
        let typed = WeightedHashes::parse_document("CSDN＝100101：4 博客=101011：5").unwrap();
        assert_eq!(typed.fingerprint, blog.fingerprint);
        assert_eq!(
            blog.features[0].signed_votes(6),
            [4., -4., -4., 4., -4., 4.]
        );
        assert_eq!(blog.features[1].signed_votes(6), [5., -5., 5., -5., 5., 5.]);
        assert_eq!(blog.sums, [9., -9., 1., -1., 1., 9.]);
        assert_eq!((blog.bits, blog.fingerprint), (6, 0b101011));
        let eight = WeightedHashes::parse_document("a=10011100:5 b=01110101:4").unwrap();
        assert_eq!(eight.sums, [1., -1., -1., 9., 1., 9., -9., -1.]);
        assert_eq!(eight.fingerprint, 0b10011100);
    }

    #[test]
    fn bits_are_one_only_above_zero() {
        let tied = WeightedHashes::parse_document("a=10:0.5 b=01:0.5").unwrap();
        assert_eq!((&tied.sums[..], tied.fingerprint), (&[0., 0.][..], 0));
        let wide = format!("x={}:1", "1".repeat(128));
        assert_eq!(
            WeightedHashes::parse_document(&wide).unwrap().fingerprint,
            u128::MAX
        );
        let token = WeightedHashes::parse_document("a=b:c=1:2").unwrap();
        assert_eq!(token.features[0].text, "a=b:c");
    }

    #[test]
    fn malformed_documents_name_the_value() {
        let many: String = (0..=MOST_FEATURES)
            .map(|at| format!("t{at}=1:1 "))
            .collect();
        let long = format!("x={}:1", "0".repeat(129));
        for (text, message) in [
            ("", "no feature"),
            ("CSDN", "'CSDN' is not of the form"),
            ("=101:4", "'=101:4'"),
            ("CSDN=102:4", "'102' of 'CSDN'"),
            ("CSDN=:4", "'' of 'CSDN'"),
            ("CSDN=101:x", "the weight 'x' of 'CSDN'"),
            ("CSDN=101:-1", "'-1'"),
            ("CSDN=101:NaN", "'NaN'"),
            ("CSDN=101:1000001", "from 0 to 1000000"),
            ("a=101:1 b=1010:1", "'b' has 4 bits, and that of 'a' has 3"),
            ("a=101:1 a=101:2", "'a' is given twice"),
            (&many, "more than 1000 features"),
            (&long, "1 to 128 binary digits"),
        ] {
            let error = WeightedHashes::parse_document(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn contradicting_documents_are_not_comparable() {
        let parse = |text| WeightedHashes::parse_document(text).unwrap();
        let a = parse("x=101:1 y=110:2");
        assert_eq!(a.check_comparable(&parse("y=110:5")), Ok(()));
        let other = a.check_comparable(&parse("y=111:2")).unwrap_err();
        assert!(other.contains("'y' is 110 in A and 111 in B"), "{other}");
        let wide = a.check_comparable(&parse("y=1101:2")).unwrap_err();
        assert!(wide.contains("3 bits and those of B 4"), "{wide}");
    }
}
