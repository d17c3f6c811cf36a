//! The features, weights and sequences that documents are compared by: those of the new document from
//! its text at hand, those of kept documents made again from their texts.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

use super::CandidateDocument;
use super::partitions::DocumentSlot;
use super::sketched_document::{DocumentPreparer, SketchedDocument};
use crate::error::{Error, Result};
use crate::similarity::{DocumentList, DocumentListCache, PairInputs, SketchRef, WeightedFeature};
use crate::text::{AnalysisScratch, TextAnalysis};

/// A source of the texts of kept documents.
pub trait StreamTexts {
    /// Calls `visit` with the text of a kept document, exactly as it was when it was prepared.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()>;
}

/// Features of kept documents that are cached once they are made, 8 bytes each. Weights, characters and
/// words have as many bytes each where the measure needs them.
const REMEMBERED: usize = 2 << 20;

/// Makes features, weights and sequences of documents, and caches recent ones.
pub(super) struct StreamInputs {
    preparer: DocumentPreparer,
    features: DocumentListCache<u64, u64>,
    weighted: DocumentListCache<u64, WeightedFeature>,
    characters: DocumentListCache<u64, u32>,
    words: DocumentListCache<u64, u64>,
    forms: DocumentListCache<u64, u64>,
    marked: DocumentListCache<u64, u64>,
    scratch: Mutex<Vec<AnalysisScratch>>,
}

impl std::fmt::Debug for StreamInputs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamInputs")
            .finish_non_exhaustive()
    }
}

impl StreamInputs {
    pub(super) fn new(preparer: DocumentPreparer) -> Self {
        Self {
            preparer,
            features: DocumentListCache::new(REMEMBERED),
            weighted: DocumentListCache::new(REMEMBERED / 2),
            characters: DocumentListCache::new(2 * REMEMBERED),
            words: DocumentListCache::new(REMEMBERED),
            forms: DocumentListCache::new(REMEMBERED),
            marked: DocumentListCache::new(REMEMBERED),
            scratch: Mutex::default(),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let lists = [&self.features, &self.words, &self.forms, &self.marked];
        let lists = 8 * lists
            .map(DocumentListCache::count_items)
            .iter()
            .sum::<usize>();
        (lists + 4 * self.characters.count_items() + 16 * self.weighted.count_items()) as u64
    }

    pub(super) fn inputs_of_new<'a>(
        &'a self,
        document: &'a SketchedDocument,
    ) -> NewDocumentInputs<'a> {
        NewDocumentInputs {
            inputs: self,
            document,
            features: OnceCell::new(),
            weighted: OnceCell::new(),
            characters: OnceCell::new(),
            words: OnceCell::new(),
            forms: OnceCell::new(),
            marked: OnceCell::new(),
        }
    }

    pub(super) fn inputs_of_kept<'a>(
        &'a self,
        candidate: &CandidateDocument,
        key: u128,
        texts: &'a dyn StreamTexts,
    ) -> KeptDocumentInputs<'a> {
        KeptDocumentInputs {
            inputs: self,
            number: candidate.number,
            slot: candidate.slot,
            order: candidate.order,
            key,
            texts,
        }
    }

    fn analyze_text<T>(&self, text: &str, visit: impl FnOnce(&TextAnalysis<'_>) -> T) -> T {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let made = self.preparer.analyze_text(text, &mut scratch, visit);
        pool().push(scratch);
        made
    }
}

/// The features, weights and sequences of the arriving document.
pub(super) struct NewDocumentInputs<'a> {
    inputs: &'a StreamInputs,
    document: &'a SketchedDocument,
    features: OnceCell<Vec<u64>>,
    weighted: OnceCell<Vec<WeightedFeature>>,
    characters: OnceCell<Vec<u32>>,
    words: OnceCell<Vec<u64>>,
    forms: OnceCell<Vec<u64>>,
    marked: OnceCell<Vec<u64>>,
}

impl NewDocumentInputs<'_> {
    pub(super) fn sketch_ref(&self) -> SketchRef<'_> {
        self.document.sketch_ref()
    }

    fn make_list<'s, T>(
        &'s self,
        cell: &'s OnceCell<Vec<T>>,
        make: impl FnOnce(&TextAnalysis<'_>, &mut Vec<T>),
    ) -> Result<DocumentList<'s, T>> {
        let list = cell.get_or_init(|| {
            let mut list = Vec::new();
            // A document without a text is compared by its fingerprint alone.
            let text = self.document.text().unwrap_or_default();
            self.inputs
                .analyze_text(text, |analysis| make(analysis, &mut list));
            list
        });
        Ok(DocumentList::Kept(list))
    }
}

impl PairInputs for NewDocumentInputs<'_> {
    fn distinct_features(&self) -> Result<DocumentList<'_, u64>> {
        match self.document.joined_features() {
            Some(features) => Ok(DocumentList::Kept(features)),
            None => self.make_list(&self.features, |analysis, list| {
                analysis.append_features(list)
            }),
        }
    }

    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>> {
        self.make_list(&self.weighted, |analysis, list| {
            analysis.weighted_features(list);
        })
    }

    fn code_points(&self) -> Result<DocumentList<'_, u32>> {
        self.make_list(&self.characters, |analysis, list| {
            list.extend_from_slice(analysis.characters());
        })
    }

    fn token_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.words, |analysis, list| {
            list.extend_from_slice(analysis.token_values());
        })
    }

    fn form_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.forms, |analysis, list| {
            analysis.append_form_values(list);
        })
    }

    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.marked, |analysis, list| {
            analysis.append_marked_tokens(list);
        })
    }
}

/// The features, weights and sequences of a kept document.
pub(super) struct KeptDocumentInputs<'a> {
    inputs: &'a StreamInputs,
    number: u64,
    slot: DocumentSlot,
    order: u64,
    key: u128,
    texts: &'a dyn StreamTexts,
}

impl KeptDocumentInputs<'_> {
    fn make_list<T: Clone>(
        &self,
        cache: &DocumentListCache<u64, T>,
        make: impl Fn(&TextAnalysis<'_>, &mut Vec<T>),
    ) -> Result<DocumentList<'_, T>> {
        cache.get_or_make(self.number, None, |list| {
            let mut key = None;
            self.texts.visit_text(self.slot, &mut |text| {
                key = Some(self.inputs.analyze_text(text, |analysis| {
                    make(analysis, list);
                    analysis.key
                }));
            })?;
            if key == Some(self.key) {
                return Ok(());
            }
            Err(Error::text_error(format!(
                "the text of document {} is not the kept text",
                self.order
            )))
        })
    }
}

impl PairInputs for KeptDocumentInputs<'_> {
    fn distinct_features(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.inputs.features, |analysis, list| {
            analysis.append_features(list);
        })
    }

    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>> {
        self.make_list(&self.inputs.weighted, |analysis, list| {
            analysis.weighted_features(list);
        })
    }

    fn code_points(&self) -> Result<DocumentList<'_, u32>> {
        self.make_list(&self.inputs.characters, |analysis, list| {
            list.extend_from_slice(analysis.characters());
        })
    }

    fn token_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.inputs.words, |analysis, list| {
            list.extend_from_slice(analysis.token_values());
        })
    }

    fn form_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.inputs.forms, |analysis, list| {
            analysis.append_form_values(list);
        })
    }

    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.inputs.marked, |analysis, list| {
            analysis.append_marked_tokens(list);
        })
    }
}
