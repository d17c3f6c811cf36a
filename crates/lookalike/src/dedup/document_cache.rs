//! The features, weights and sequences that documents are compared by, made again from the text on
//! demand.
//!
//! Features take more memory than text. So the first reading keeps only the features of short
//! documents, within a budget, and likewise characters or words where the measure compares sequences.
//! All others are made again from the text, and the most recent ones are cached up to a second budget.
//! Neither budget changes a result.

use crate::error::{Error, Result};
use crate::plan::MatchPlan;
use crate::similarity::{DocumentList, DocumentListCache, PairInputs, WeightedFeature};
use crate::sketch::DocumentSketches;
use crate::text::TextAnalysis;
use crate::types::DocId;

/// A source that provides a document again, in the form in which it is compared.
pub trait DocumentSource: Sync {
    /// Appends the distinct features of a document, ascending, by the recipe of the run.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()>;

    /// Appends the distinct features with their weights, ascending, as
    /// [`weighted_features`](crate::text::TextAnalysis::weighted_features) does. Only
    /// [`SimilarityMeasure::Cosine`](crate::plan::SimilarityMeasure::Cosine) needs them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn append_weighted_features(
        &self,
        _document: DocId,
        _into: &mut Vec<WeightedFeature>,
    ) -> Result<()> {
        Err(only_features("weights"))
    }

    /// Appends the normalised characters, as [`characters`](crate::text::TextAnalysis::characters)
    /// returns them. Only measures of sequences need them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn append_characters(&self, _document: DocId, _into: &mut Vec<u32>) -> Result<()> {
        Err(only_features("characters"))
    }

    /// Appends the values of the tokens in the order of the text. Only measures of sequences need them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn append_words(&self, _document: DocId, _into: &mut Vec<u64>) -> Result<()> {
        Err(only_features("words"))
    }

    /// Appends the tokens by which titles and numbers are compared. Only recipes with forms need them.
    ///
    /// # Errors
    /// Fails if the text is no longer available, or if this source provides features alone.
    fn append_marked_tokens(&self, _document: DocId, _into: &mut Vec<u64>) -> Result<()> {
        Err(only_features("texts"))
    }
}

/// A source of texts that can be analysed again. It provides everything by which a measure compares, so it is a
/// [`DocumentSource`] too.
pub trait TextReanalysis: Sync {
    /// Calls `visit` once, with the analysis of a document.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()>;
}

impl<T: TextReanalysis> DocumentSource for T {
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.reanalyze_text(document, &mut |analysis| analysis.append_features(into))
    }

    fn append_weighted_features(
        &self,
        document: DocId,
        into: &mut Vec<WeightedFeature>,
    ) -> Result<()> {
        self.reanalyze_text(document, &mut |analysis| analysis.weighted_features(into))
    }

    fn append_characters(&self, document: DocId, into: &mut Vec<u32>) -> Result<()> {
        self.reanalyze_text(document, &mut |analysis| {
            into.extend_from_slice(analysis.characters());
        })
    }

    fn append_words(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.reanalyze_text(document, &mut |analysis| {
            into.extend_from_slice(analysis.token_values());
        })
    }

    fn append_marked_tokens(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.reanalyze_text(document, &mut |analysis| {
            analysis.append_marked_tokens(into)
        })
    }
}

fn only_features(what: &str) -> Error {
    Error::text_error(format!(
        "the measure compares {what}, and this source has only features: use the Jaccard index or \
         containment"
    ))
}

/// Provides the features, weights and sequences of all documents of a run, from sketches, cache or
/// text.
pub(crate) struct BatchInputs<'a> {
    sketches: &'a DocumentSketches,
    texts: &'a dyn DocumentSource,
    features: DocumentListCache<DocId, u64>,
    weighted: DocumentListCache<DocId, WeightedFeature>,
    characters: DocumentListCache<DocId, u32>,
    words: DocumentListCache<DocId, u64>,
    marked: DocumentListCache<DocId, u64>,
}

impl<'a> BatchInputs<'a> {
    /// Returns a provider for documents that a plan compares. It caches up to `most` features, 8 bytes each, and as many
    /// bytes of each other kind that the measure needs; with forms, features and marked tokens share the `most`.
    pub(crate) fn new(
        sketches: &'a DocumentSketches,
        texts: &'a dyn DocumentSource,
        plan: &MatchPlan,
        most: usize,
    ) -> Self {
        let most = if plan.compares_forms() {
            most / 2
        } else {
            most
        };
        Self {
            sketches,
            texts,
            features: DocumentListCache::new(most),
            weighted: DocumentListCache::new(most / 2),
            characters: DocumentListCache::new(2 * most),
            words: DocumentListCache::new(most),
            marked: DocumentListCache::new(most),
        }
    }

    /// Returns a view of one document.
    pub(crate) fn inputs_of(&self, document: DocId) -> OfDocument<'_, 'a> {
        let inputs = self;
        OfDocument { inputs, document }
    }

    pub(crate) fn document_features(&self, document: DocId) -> Result<DocumentList<'a, u64>> {
        let kept = self.sketches.kept_features(document);
        let make = |into: &mut Vec<u64>| self.texts.append_features(document, into);
        self.features.get_or_make(document, kept, make)
    }

    pub(crate) fn weighted_features(
        &self,
        document: DocId,
    ) -> Result<DocumentList<'a, WeightedFeature>> {
        let make =
            |into: &mut Vec<WeightedFeature>| self.texts.append_weighted_features(document, into);
        self.weighted.get_or_make(document, None, make)
    }

    pub(crate) fn document_characters(&self, document: DocId) -> Result<DocumentList<'a, u32>> {
        let kept = self.sketches.characters(document);
        let make = |into: &mut Vec<u32>| self.texts.append_characters(document, into);
        self.characters.get_or_make(document, kept, make)
    }

    pub(crate) fn document_words(&self, document: DocId) -> Result<DocumentList<'a, u64>> {
        let kept = self.sketches.kept_words(document);
        let make = |into: &mut Vec<u64>| self.texts.append_words(document, into);
        self.words.get_or_make(document, kept, make)
    }

    pub(crate) fn form_values(&self, document: DocId) -> DocumentList<'a, u64> {
        DocumentList::Kept(self.sketches.form_values(document).unwrap_or_default())
    }

    pub(crate) fn marked_tokens(&self, document: DocId) -> Result<DocumentList<'a, u64>> {
        let make = |into: &mut Vec<u64>| self.texts.append_marked_tokens(document, into);
        self.marked.get_or_make(document, None, make)
    }

    /// Calls `visit` with the features of a document without caching them.
    pub(crate) fn features_once(
        &self,
        document: DocId,
        buffer: &mut Vec<u64>,
        visit: impl FnOnce(&[u64]),
    ) -> Result<()> {
        if let Some(features) = self.sketches.kept_features(document) {
            visit(features);
        } else {
            buffer.clear();
            self.texts.append_features(document, buffer)?;
            visit(buffer);
        }
        Ok(())
    }
}

/// A view of one document in [`BatchInputs`].
pub(crate) struct OfDocument<'m, 'a> {
    inputs: &'m BatchInputs<'a>,
    document: DocId,
}

impl PairInputs for OfDocument<'_, '_> {
    fn distinct_features(&self) -> Result<DocumentList<'_, u64>> {
        self.inputs.document_features(self.document)
    }

    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>> {
        self.inputs.weighted_features(self.document)
    }

    fn code_points(&self) -> Result<DocumentList<'_, u32>> {
        self.inputs.document_characters(self.document)
    }

    fn token_values(&self) -> Result<DocumentList<'_, u64>> {
        self.inputs.document_words(self.document)
    }

    fn form_values(&self) -> Result<DocumentList<'_, u64>> {
        Ok(self.inputs.form_values(self.document))
    }

    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>> {
        self.inputs.marked_tokens(self.document)
    }
}
