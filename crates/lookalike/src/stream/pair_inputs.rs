//! The features, weights and sequences that documents are compared by: those of the new document from
//! its text at hand, those of kept documents made again from their texts.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::candidate_verifier::CandidateDocument;
use super::partitions::DocumentSlot;
use super::sketched_document::{DocumentPreparer, SketchedDocument};
use crate::error::{Error, ErrorKind, Result};
use crate::similarity::{DocumentList, DocumentListCache, PairInputs, SketchRef, WeightedFeature};
use crate::text::{AnalysisScratch, TextAnalysis};

/// A source of the texts of kept documents.
pub trait StreamTexts {
    /// Calls `visit` with the text of a kept document, exactly as it was when it was prepared.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()>;

    /// Calls `visit` as [`visit_text`](Self::visit_text) does if the text has at most `most_bytes` bytes, and
    /// returns `false` otherwise. A source that has to read or decompress texts overrides this, so that it does
    /// neither with a longer one.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn visit_short_text(
        &self,
        slot: DocumentSlot,
        most_bytes: usize,
        visit: &mut dyn FnMut(&str),
    ) -> Result<bool> {
        let mut is_short = true;
        self.visit_text(slot, &mut |text| {
            is_short = text.len() <= most_bytes;
            if is_short {
                visit(text);
            }
        })?;
        Ok(is_short)
    }
}

/// The texts that a comparison may analyse, and those that it has analysed.
#[derive(Debug)]
pub(super) struct AnalysisLimit {
    most_text_bytes: usize,
    bytes: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl AnalysisLimit {
    /// Allows texts of up to `most_text_bytes` bytes each.
    pub(super) fn new(most_text_bytes: usize) -> Self {
        Self {
            most_text_bytes,
            bytes: Cell::new(0),
            is_exceeded: Cell::new(false),
        }
    }

    /// Returns the bytes of the analysed texts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Returns `true` if the comparison has failed because a text is too long.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    fn count_text(&self, text: &str) {
        self.bytes.set(self.bytes.get().saturating_add(text.len()));
    }

    fn refuse_text(&self) -> Error {
        self.is_exceeded.set(true);
        let what = format!(
            "a text has more than {} bytes, the limit for a unit of a turn",
            self.most_text_bytes
        );
        Error::new(ErrorKind::TooCostly, what)
    }
}

/// The features, weights and sequences of the document of a check. Each is made once, when a comparison first needs
/// it, and kept over all turns.
#[derive(Debug, Default)]
pub(super) struct ArrivingLists {
    features: OnceLock<Vec<u64>>,
    weighted: OnceLock<Vec<WeightedFeature>>,
    characters: OnceLock<Vec<u32>>,
    words: OnceLock<Vec<u64>>,
    forms: OnceLock<Vec<u64>>,
    marked: OnceLock<Vec<u64>>,
}

/// The document of a check, with what it is compared by.
#[derive(Clone, Copy)]
pub(super) struct ArrivingDocument<'a> {
    pub(super) document: &'a SketchedDocument,
    pub(super) lists: &'a ArrivingLists,
}

/// Features of kept documents that are cached once they are made, 8 bytes each. Weights, characters and
/// words have as many bytes each where the measure needs them.
const MOST_CACHED_FEATURES: usize = 2 << 20;

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
            features: DocumentListCache::new(MOST_CACHED_FEATURES),
            weighted: DocumentListCache::new(MOST_CACHED_FEATURES / 2),
            characters: DocumentListCache::new(2 * MOST_CACHED_FEATURES),
            words: DocumentListCache::new(MOST_CACHED_FEATURES),
            forms: DocumentListCache::new(MOST_CACHED_FEATURES),
            marked: DocumentListCache::new(MOST_CACHED_FEATURES),
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
        arriving: ArrivingDocument<'a>,
        limit: &'a AnalysisLimit,
    ) -> NewDocumentInputs<'a> {
        NewDocumentInputs {
            inputs: self,
            document: arriving.document,
            lists: arriving.lists,
            limit,
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
    lists: &'a ArrivingLists,
    limit: &'a AnalysisLimit,
}

impl<'a> NewDocumentInputs<'a> {
    pub(super) fn sketch_ref(&self) -> SketchRef<'_> {
        self.document.sketch_ref()
    }

    /// Returns the inputs of a candidate, for the same comparison.
    pub(super) fn inputs_of_kept(
        &self,
        candidate: &CandidateDocument,
        key: u128,
        texts: &'a dyn StreamTexts,
    ) -> KeptDocumentInputs<'a> {
        KeptDocumentInputs {
            inputs: self.inputs,
            candidate: *candidate,
            key,
            texts,
            limit: self.limit,
        }
    }

    fn make_list<'s, T>(
        &'s self,
        cell: &'s OnceLock<Vec<T>>,
        make: impl FnOnce(&TextAnalysis<'_>, &mut Vec<T>),
    ) -> Result<DocumentList<'s, T>> {
        // A document without a text is compared by its fingerprint alone.
        let text = self.document.text().unwrap_or_default();
        if cell.get().is_none() && text.len() > self.limit.most_text_bytes {
            return Err(self.limit.refuse_text());
        }
        let list = cell.get_or_init(|| {
            let mut list = Vec::new();
            self.limit.count_text(text);
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
            None => self.make_list(&self.lists.features, |analysis, list| {
                analysis.append_features(list)
            }),
        }
    }

    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>> {
        self.make_list(&self.lists.weighted, |analysis, list| {
            analysis.weighted_features(list);
        })
    }

    fn code_points(&self) -> Result<DocumentList<'_, u32>> {
        self.make_list(&self.lists.characters, |analysis, list| {
            list.extend_from_slice(analysis.characters());
        })
    }

    fn token_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.lists.words, |analysis, list| {
            list.extend_from_slice(analysis.token_values());
        })
    }

    fn form_values(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.lists.forms, |analysis, list| {
            analysis.append_form_values(list);
        })
    }

    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>> {
        self.make_list(&self.lists.marked, |analysis, list| {
            analysis.append_marked_tokens(list);
        })
    }
}

/// The features, weights and sequences of a kept document.
pub(super) struct KeptDocumentInputs<'a> {
    inputs: &'a StreamInputs,
    candidate: CandidateDocument,
    key: u128,
    texts: &'a dyn StreamTexts,
    limit: &'a AnalysisLimit,
}

impl KeptDocumentInputs<'_> {
    fn make_list<T: Clone>(
        &self,
        cache: &DocumentListCache<u64, T>,
        make: impl Fn(&TextAnalysis<'_>, &mut Vec<T>),
    ) -> Result<DocumentList<'_, T>> {
        let CandidateDocument {
            number,
            slot,
            order,
            ..
        } = self.candidate;
        cache.get_or_make(number, None, |list| {
            let mut key = None;
            let mut visit = |text: &str| {
                self.limit.count_text(text);
                key = Some(self.inputs.analyze_text(text, |analysis| {
                    make(analysis, list);
                    analysis.key
                }));
            };
            let most_bytes = self.limit.most_text_bytes;
            if !self.texts.visit_short_text(slot, most_bytes, &mut visit)? {
                return Err(self.limit.refuse_text());
            }
            if key == Some(self.key) {
                return Ok(());
            }
            Err(Error::text_error(format!(
                "the text of document {order} is not the kept text"
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
