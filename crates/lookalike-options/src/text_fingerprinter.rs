//! The sketch of a text, as tables and answers contain it: a fingerprint in digits, a signature, or a list of hashes.

use lookalike::sketch::{MinHasher, SimHasher, smallest_features};
use lookalike::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Cpu, Recipe};
use serde::Serialize;

use crate::fingerprint_notation::FingerprintNotation;
use crate::sketch_kind::SketchKind;

/// Computes the fingerprints of single texts.
pub struct TextFingerprinter {
    analyzer: TextAnalyzer,
    hasher: SketchHasher,
}

/// A fingerprint or other sketch, as tables contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SketchValue {
    /// The digits of a fingerprint or of a key of sentences.
    Digits(String),
    /// A MinHash signature.
    Signature(Vec<u32>),
    /// The smallest hashes.
    Hashes(Vec<u64>),
}

impl TextFingerprinter {
    /// Creates a fingerprinter for a recipe.
    pub fn new(recipe: &Recipe, sketch: SketchKind) -> Self {
        let analyzer = TextAnalyzer::new(recipe).with_extras(AnalysisExtras {
            characters: false,
            sentences: match sketch {
                SketchKind::Sentences(count) => Some(count),
                _ => None,
            },
        });
        let hasher = SketchHasher::new(recipe, sketch);
        Self { analyzer, hasher }
    }

    /// Returns the fingerprint of a text, or `None` if the text has none, for example because it is too
    /// short.
    pub fn fingerprint(&self, text: &str, scratch: &mut AnalysisScratch) -> Option<SketchValue> {
        let analysis = self.analyzer.analyze_text(text, scratch);
        let mut buffers = SketchBuffers::default();
        if !self.hasher.fill_buffer(&analysis, &mut buffers) {
            return None;
        }
        Some(match self.hasher {
            SketchHasher::SimHash(..) | SketchHasher::Sentences(_) => {
                SketchValue::Digits(buffers.digits)
            }
            SketchHasher::MinHash(_) => SketchValue::Signature(buffers.signature),
            SketchHasher::BottomK(_) => SketchValue::Hashes(buffers.hashes),
        })
    }

    /// Returns the analyzer of texts.
    pub fn text_analyzer(&self) -> &TextAnalyzer {
        &self.analyzer
    }

    /// Computes the fingerprint of an analysed text into the buffer for its kind. Returns `true` if it has one.
    pub fn fill_buffer(&self, analysis: &TextAnalysis<'_>, buffers: &mut SketchBuffers) -> bool {
        self.hasher.fill_buffer(analysis, buffers)
    }

    /// Returns the name of the method.
    pub fn method_name(&self) -> &'static str {
        self.hasher.name()
    }

    /// Returns the bits of a fingerprint, the slots of a signature, or the number of hashes or sentences.
    pub fn sketch_size(&self) -> u32 {
        self.hasher.sketch_size()
    }
}

/// Buffers for the sketch of one text after another, each for a kind of sketch.
#[derive(Debug, Default)]
pub struct SketchBuffers {
    /// The digits of a fingerprint or of a key of sentences.
    pub digits: String,
    /// A MinHash signature.
    pub signature: Vec<u32>,
    /// The smallest hashes.
    pub hashes: Vec<u64>,
}

enum SketchHasher {
    SimHash(SimHasher, u32, FingerprintNotation),
    MinHash(MinHasher),
    BottomK(usize),
    Sentences(usize),
}

impl SketchHasher {
    fn new(recipe: &Recipe, sketch: SketchKind) -> Self {
        let cpu = Cpu::detect_best();
        match sketch {
            SketchKind::SimHash(digits) => {
                let hasher = SimHasher::new(&recipe.simhash, cpu);
                Self::SimHash(hasher, recipe.simhash.bits, digits)
            }
            SketchKind::MinHash => Self::MinHash(MinHasher::new(&recipe.minhash, cpu)),
            SketchKind::BottomK => Self::BottomK(recipe.minhash.slots as usize),
            SketchKind::Sentences(count) => Self::Sentences(count),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::SimHash(..) => "simhash",
            Self::MinHash(_) => "minhash",
            Self::BottomK(_) => "bottomk",
            Self::Sentences(_) => "sentences",
        }
    }

    fn sketch_size(&self) -> u32 {
        match self {
            Self::SimHash(_, bits, _) => *bits,
            Self::MinHash(hasher) => hasher.slot_count() as u32,
            Self::BottomK(count) | Self::Sentences(count) => *count as u32,
        }
    }

    /// Computes the fingerprint of a document into the buffer for its kind. Returns `true` if it has
    /// one.
    fn fill_buffer(&self, analysis: &TextAnalysis<'_>, buffers: &mut SketchBuffers) -> bool {
        let SketchBuffers {
            digits,
            signature,
            hashes,
        } = buffers;
        digits.clear();
        hashes.clear();
        let rich = analysis.state == TextState::Fingerprintable;
        match self {
            Self::SimHash(hasher, bits, notation) => {
                let fingerprint = hasher.original_fingerprint(analysis);
                if let Some(fingerprint) = fingerprint {
                    notation.append_fingerprint(fingerprint, *bits, digits);
                }
                fingerprint.is_some()
            }
            Self::MinHash(hasher) => {
                signature.resize(hasher.slot_count(), 0);
                hasher.original_signature(analysis, signature)
            }
            Self::BottomK(kept) => {
                if rich {
                    smallest_features(analysis, *kept, hashes);
                }
                rich
            }
            Self::Sentences(_) => {
                let name = analysis.sentence_signature().filter(|_| rich);
                if let Some(name) = name {
                    FingerprintNotation::Hex.append_fingerprint(name.into(), u64::BITS, digits);
                }
                name.is_some()
            }
        }
    }
}
