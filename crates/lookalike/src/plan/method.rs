//! The methods of finding candidates, each with one descriptor.
//!
//! Plans, sketches, evaluations, reports and the lists of the command, the service and Python ask the descriptor. A
//! new method that combines the exact join and the sketches in another way is a variant and a descriptor here. So is
//! one whose candidates have equal keys: its descriptor has the function that makes the key.

use super::describe_choices;
use crate::similarity::Route;
use crate::text::TextAnalysis;

/// The method of finding candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMethod {
    /// The exact join for short documents, and MinHash for all others.
    #[default]
    Auto,
    /// MinHash bands for all documents.
    MinHash,
    /// SimHash fingerprints within a Hamming distance.
    SimHash,
    /// Only texts that are equal after normalisation.
    Exact,
    /// The exact join for all documents.
    Join,
    /// The same longest sentences.
    Sentences,
    /// The smallest hashes of the features: one of the very smallest in common.
    BottomK,
}

/// Everything that the parts of the engine and the programs around it ask about a method.
///
/// ```
/// use lookalike::plan::{JoinedDocuments, MatchMethod, MethodSketch};
///
/// let method = MatchMethod::Auto.descriptor();
/// assert_eq!(method.name, "auto");
/// assert_eq!(method.joined, JoinedDocuments::Short);
/// assert!(matches!(method.sketch, MethodSketch::Signature));
/// ```
#[derive(Debug)]
pub struct MethodDescriptor {
    /// Name in options, requests, calls, files and reports.
    pub name: &'static str,
    /// Explanation in the help of the command.
    pub help: &'static str,
    /// Documents that take part in the exact join.
    pub joined: JoinedDocuments,
    /// Sketch by which the other documents become candidates.
    pub sketch: MethodSketch,
}

/// The documents that take part in the exact join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinedDocuments {
    /// None.
    Nothing,
    /// Short documents, and those that can match one.
    Short,
    /// All documents.
    All,
}

/// The sketch by which documents become candidates.
#[derive(Clone, Copy, Debug)]
pub enum MethodSketch {
    /// None, because the exact join or equal texts are all that the method looks for.
    Nothing,
    /// The MinHash signature: a band of slots in common.
    Signature,
    /// The SimHash fingerprint: within the Hamming distance.
    Fingerprint,
    /// A key of the text: the same one.
    EqualKey(EqualKeySketch),
    /// The bottom-k sketch: one of the smallest hashes in common.
    Smallest,
}

/// A key of 64 bits that candidates have in common.
#[derive(Clone, Copy, Debug)]
pub struct EqualKeySketch {
    /// Makes the key of a text, or `None` if the text has none.
    pub key_of: fn(&TextAnalysis<'_>) -> Option<u64>,
    /// Noun, in the plural, for what has the same key.
    pub noun: &'static str,
    /// The same in fewer words.
    pub short_noun: &'static str,
    /// Phrase for the equality, without an article.
    pub equality: &'static str,
    /// Route of pairs that have the same key.
    pub route: Route,
    /// `true` if the key is that of the longest sentences, whose number is an option.
    pub takes_sentences: bool,
}

describe_choices! {
    MatchMethod, MethodDescriptor, 7,
    Auto => MethodDescriptor {
        name: "auto",
        help: "Exact join for short documents, MinHash for all others",
        joined: JoinedDocuments::Short,
        sketch: MethodSketch::Signature,
    },
    MinHash => MethodDescriptor {
        name: "minhash",
        help: "MinHash bands for all documents",
        joined: JoinedDocuments::Nothing,
        sketch: MethodSketch::Signature,
    },
    SimHash => MethodDescriptor {
        name: "simhash",
        help: "SimHash fingerprints that differ in few bits",
        joined: JoinedDocuments::Nothing,
        sketch: MethodSketch::Fingerprint,
    },
    Exact => MethodDescriptor {
        name: "exact",
        help: "Equality of the texts after normalisation",
        joined: JoinedDocuments::Nothing,
        sketch: MethodSketch::Nothing,
    },
    Join => MethodDescriptor {
        name: "join",
        help: "Exact join of all documents, on all threads: finds every pair that shares enough features \
               for the measure (--explain-plan prints how many); slow for long texts",
        joined: JoinedDocuments::All,
        sketch: MethodSketch::Nothing,
    },
    Sentences => MethodDescriptor {
        name: "sentences",
        help: "Equality of the longest sentences",
        joined: JoinedDocuments::Nothing,
        sketch: MethodSketch::EqualKey(EqualKeySketch {
            key_of: |analysis| analysis.sentence_signature(),
            noun: "longest sentences",
            short_noun: "sentences",
            equality: "same longest sentences",
            route: Route::Sentences,
            takes_sentences: true,
        }),
    },
    BottomK => MethodDescriptor {
        name: "bottomk",
        help: "Bottom-k sketches that share one of the smallest feature hashes",
        joined: JoinedDocuments::Nothing,
        sketch: MethodSketch::Smallest,
    },
}

impl MatchMethod {
    /// Returns `true` if candidates are fingerprints within a Hamming distance, which is an option then.
    pub fn takes_distance(self) -> bool {
        matches!(self.descriptor().sketch, MethodSketch::Fingerprint)
    }

    /// Returns `true` if candidates have the same longest sentences, whose number is an option then.
    pub fn takes_sentences(self) -> bool {
        self.equal_key().is_some_and(|key| key.takes_sentences)
    }

    /// Returns the key that candidates have in common, if the method compares one.
    pub fn equal_key(self) -> Option<EqualKeySketch> {
        match self.descriptor().sketch {
            MethodSketch::EqualKey(key) => Some(key),
            MethodSketch::Nothing
            | MethodSketch::Signature
            | MethodSketch::Fingerprint
            | MethodSketch::Smallest => None,
        }
    }

    /// Returns `true` if only equal texts match, so that there is nothing to verify.
    pub fn finds_equal_texts_alone(self) -> bool {
        let described = self.descriptor();
        described.joined == JoinedDocuments::Nothing
            && matches!(described.sketch, MethodSketch::Nothing)
    }

    /// Returns `true` if candidates share features, so that they have a least Jaccard index.
    pub fn finds_shared_features(self) -> bool {
        let described = self.descriptor();
        described.joined != JoinedDocuments::Nothing
            || matches!(
                described.sketch,
                MethodSketch::Signature | MethodSketch::Smallest
            )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Options and files name a method, so no two share a name.
    #[test]
    fn names_are_distinct() {
        let names: BTreeSet<_> = MatchMethod::ALL.map(MatchMethod::name).into();
        assert_eq!(names.len(), MatchMethod::ALL.len());
    }

    #[test]
    fn every_method_finds_something() {
        for method in MatchMethod::ALL {
            let kinds = [
                method.finds_equal_texts_alone(),
                method.finds_shared_features(),
                method.takes_distance(),
                method.equal_key().is_some(),
            ];
            let count = kinds.into_iter().filter(|&is_kind| is_kind).count();
            assert_eq!(count, 1, "{}", method.name());
        }
    }
}
