//! The kind of sketch that is printed of a text.

use lookalike::Recipe;
use lookalike::plan::MatchMethod;

use crate::fingerprint_notation::FingerprintNotation;

/// The kind of sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SketchKind {
    /// A SimHash fingerprint, written in digits.
    SimHash(FingerprintNotation),
    /// A MinHash signature: a list of numbers.
    MinHash,
    /// A bottom-k sketch: the smallest feature hashes, as many as the recipe has slots.
    BottomK,
    /// A 64-bit key of this many longest sentences, in hexadecimal digits.
    Sentences(usize),
}

impl SketchKind {
    /// The methods that make a sketch of a text.
    pub const METHODS: [MatchMethod; 4] = [
        MatchMethod::SimHash,
        MatchMethod::MinHash,
        MatchMethod::BottomK,
        MatchMethod::Sentences,
    ];

    /// Returns the method of a recipe's default sketch.
    pub fn default_method(recipe: &Recipe) -> MatchMethod {
        match recipe.scheme.and_then(|scheme| scheme.minhash_family()) {
            Some(_) => MatchMethod::MinHash,
            None => MatchMethod::SimHash,
        }
    }
}
