//! Documents that are analysed and sketched, ready to be checked.

use super::ONLY_DOCUMENT;
use crate::arch::Cpu;
use crate::error::{Error, Result};
use crate::plan::{MatchPlan, SimilarityMeasure};
use crate::recipe::Recipe;
use crate::sketch::{DocumentSketcher, DocumentSketches, SetSummary};
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};

/// Analyses and sketches documents. This is nearly all of the work, and it runs on any thread. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct DocumentPreparer {
    analyzer: TextAnalyzer,
    sketcher: DocumentSketcher,
    plan: MatchPlan,
}

/// A document with its text and sketches.
#[derive(Clone, Debug)]
pub struct SketchedDocument {
    sketches: Box<DocumentSketches>,
    text: Option<String>,
}

/// Feature budget that suffices for all features, characters or words of any document.
const ALL_FEATURES: usize = 1 << 31;

impl DocumentPreparer {
    /// Returns a preparer for documents of a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &MatchPlan) -> Self {
        let sketcher = DocumentSketcher::new(recipe, plan, Cpu::detect_best());
        Self {
            analyzer: TextAnalyzer::new(recipe).with_extras(sketcher.required_extras()),
            sketcher,
            plan: *plan,
        }
    }

    /// Prepares a document from its text.
    pub fn prepare_text(
        &self,
        text: impl Into<String>,
        scratch: &mut AnalysisScratch,
    ) -> SketchedDocument {
        let text = text.into();
        let mut sketches = self.sketcher.new_sketches(ALL_FEATURES);
        let analysis = self.analyzer.analyze_text(&text, scratch);
        self.sketcher.add_document(&analysis, &mut sketches);
        SketchedDocument {
            sketches: Box::new(sketches),
            text: Some(text),
        }
    }

    /// Prepares a document of which only the SimHash fingerprint is known.
    ///
    /// # Errors
    /// Fails if the fingerprint has more bits than the recipe's, or if the plan compares anything but
    /// fingerprints.
    pub fn fingerprint(&self, fingerprint: u128) -> Result<SketchedDocument> {
        if self.plan.distance().is_none()
            || self.plan.match_settings().measure != SimilarityMeasure::Sketch
        {
            return Err(Error::setting_error(format!(
                "the fingerprint {fingerprint:#x} comes without its text, so it can only be compared \
                 with the method 'simhash' and no measure"
            )));
        }
        let bits = self.plan.fingerprint_bits();
        if u128::BITS - fingerprint.leading_zeros() > bits {
            return Err(Error::setting_error(format!(
                "the fingerprint {fingerprint:#x} has more than {bits} bits"
            )));
        }
        let mut sketches = self.sketcher.new_sketches(0);
        sketches.push_fingerprint(fingerprint);
        Ok(SketchedDocument {
            sketches: Box::new(sketches),
            text: None,
        })
    }

    /// Returns `true` if documents can be [written](Self::encode_document): the plan compares no sequences.
    pub fn can_encode(&self) -> bool {
        self.sketcher.can_encode()
    }

    /// Appends a document in the form that [`decode_document`](Self::decode_document) reads. For `auto`
    /// these are 22 bytes, 8 for each feature of a document in the exact join, and 4 for each slot of a
    /// signature.
    pub fn encode_document(&self, document: &SketchedDocument, into: &mut Vec<u8>) {
        self.sketcher.encode_sketches(&document.sketches, into);
    }

    /// Reads a document that was written under the same recipe and plan. It has no text, so it can only
    /// be [kept](super::StreamMatcher::keep_document). Returns `None` if the bytes do not fit the plan.
    pub fn decode_document(&self, bytes: &[u8]) -> Option<SketchedDocument> {
        let sketches = self.sketcher.decode_sketches(bytes, ALL_FEATURES)?;
        Some(SketchedDocument {
            sketches: Box::new(sketches),
            text: None,
        })
    }

    /// Returns an empty store for the sketches of a partition. It keeps no features, because these are
    /// made again from texts.
    pub(super) fn for_partition(&self) -> DocumentSketches {
        self.sketcher.new_sketches(0)
    }

    /// Calls `visit` with the analysis of a text.
    pub(super) fn analyze_text<T>(
        &self,
        text: &str,
        scratch: &mut AnalysisScratch,
        visit: impl FnOnce(&TextAnalysis<'_>) -> T,
    ) -> T {
        visit(&self.analyzer.analyze_text(text, scratch))
    }
}

impl SketchedDocument {
    /// Returns the text, unless only a fingerprint is known.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the text state of the document.
    pub fn text_state(&self) -> TextState {
        self.sketches.text_state(ONLY_DOCUMENT)
    }

    /// Returns the key of the text after normalisation. Equal texts have equal keys.
    pub fn text_key(&self) -> u128 {
        self.sketches.text_key(ONLY_DOCUMENT)
    }

    /// Returns the SimHash fingerprint, if the plan needs it and the document has one.
    pub fn fingerprint(&self) -> Option<u128> {
        self.sketches.fingerprint(ONLY_DOCUMENT)
    }

    pub(super) fn sketches(&self) -> &DocumentSketches {
        &self.sketches
    }

    /// Returns the set summary of the features, if the plan has an exact join.
    pub(super) fn set_summary(&self) -> Option<SetSummary> {
        self.sketches.optional_summary(ONLY_DOCUMENT)
    }

    /// Returns the bytes of memory of the sketches, features included.
    pub fn memory_bytes(&self) -> u64 {
        self.sketches.memory_bytes()
    }

    /// Returns the distinct features, if the document takes part in the exact join.
    pub(super) fn joined_features(&self) -> Option<&[u64]> {
        self.sketches.kept_features(ONLY_DOCUMENT)
    }
}
