//! The features, weights and sequences that documents are compared by: those of the new document from
//! its text at hand, those of kept documents made again from their texts.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

use super::Candidate;
use super::prepared::{Prepared, Preparer};
use super::sections::Slot;
use crate::error::{Error, Result};
use crate::matching::{Cache, Compared, List};
use crate::text::{Analysis, Scratch};
use crate::verify::Weighted;

/// A source of the texts of kept documents.
pub trait Texts {
    /// Calls `visit` with the text of a kept document, exactly as it was when it was prepared.
    ///
    /// # Errors
    /// Fails if the text is no longer available.
    fn text(&self, slot: Slot, visit: &mut dyn FnMut(&str)) -> Result<()>;
}

/// Features of kept documents that are cached once they are made, 8 bytes each. Weights, characters and
/// words have as many bytes each where the measure needs them.
const REMEMBERED: usize = 2 << 20;

/// Makes features, weights and sequences of documents, and caches recent ones.
pub(super) struct Material {
    preparer: Preparer,
    features: Cache<u64, u64>,
    weighted: Cache<u64, Weighted>,
    characters: Cache<u64, u32>,
    words: Cache<u64, u64>,
    scratch: Mutex<Vec<Scratch>>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Material").finish_non_exhaustive()
    }
}

impl Material {
    pub(super) fn new(preparer: Preparer) -> Self {
        Self {
            preparer,
            features: Cache::new(REMEMBERED),
            weighted: Cache::new(REMEMBERED / 2),
            characters: Cache::new(2 * REMEMBERED),
            words: Cache::new(REMEMBERED),
            scratch: Mutex::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let lists = 8 * (self.features.held() + self.words.held());
        (lists + 4 * self.characters.held() + 16 * self.weighted.held()) as u64
    }

    pub(super) fn of_new<'a>(&'a self, document: &'a Prepared) -> OfNew<'a> {
        OfNew {
            material: self,
            document,
            features: OnceCell::new(),
            weighted: OnceCell::new(),
            characters: OnceCell::new(),
            words: OnceCell::new(),
        }
    }

    pub(super) fn of_kept<'a>(
        &'a self,
        candidate: &Candidate,
        key: u128,
        texts: &'a dyn Texts,
    ) -> OfKept<'a> {
        OfKept {
            material: self,
            number: candidate.number,
            slot: candidate.slot,
            order: candidate.order,
            key,
            texts,
        }
    }

    fn analyze<T>(&self, text: &str, visit: impl FnOnce(&Analysis<'_>) -> T) -> T {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let made = self.preparer.analyze(text, &mut scratch, visit);
        pool().push(scratch);
        made
    }
}

/// The features, weights and sequences of the arriving document.
pub(super) struct OfNew<'a> {
    material: &'a Material,
    document: &'a Prepared,
    features: OnceCell<Vec<u64>>,
    weighted: OnceCell<Vec<Weighted>>,
    characters: OnceCell<Vec<u32>>,
    words: OnceCell<Vec<u64>>,
}

impl OfNew<'_> {
    fn made<'s, T>(
        &'s self,
        cell: &'s OnceCell<Vec<T>>,
        make: impl FnOnce(&Analysis<'_>, &mut Vec<T>),
    ) -> Result<List<'s, T>> {
        let list = cell.get_or_init(|| {
            let mut list = Vec::new();
            // A document without a text is compared by its fingerprint alone.
            let text = self.document.text().unwrap_or_default();
            self.material
                .analyze(text, |analysis| make(analysis, &mut list));
            list
        });
        Ok(List::Kept(list))
    }
}

impl Compared for OfNew<'_> {
    fn features(&self) -> Result<List<'_, u64>> {
        match self.document.joined_features() {
            Some(features) => Ok(List::Kept(features)),
            None => self.made(&self.features, |analysis, list| analysis.features(list)),
        }
    }

    fn weighted(&self) -> Result<List<'_, Weighted>> {
        self.made(&self.weighted, |analysis, list| {
            analysis.weighted_features(list);
        })
    }

    fn characters(&self) -> Result<List<'_, u32>> {
        self.made(&self.characters, |analysis, list| {
            list.extend_from_slice(analysis.characters());
        })
    }

    fn words(&self) -> Result<List<'_, u64>> {
        self.made(&self.words, |analysis, list| {
            list.extend_from_slice(analysis.tokens());
        })
    }
}

/// The features, weights and sequences of a kept document.
pub(super) struct OfKept<'a> {
    material: &'a Material,
    number: u64,
    slot: Slot,
    order: u64,
    key: u128,
    texts: &'a dyn Texts,
}

impl OfKept<'_> {
    fn made<T: Clone>(
        &self,
        cache: &Cache<u64, T>,
        make: impl Fn(&Analysis<'_>, &mut Vec<T>),
    ) -> Result<List<'_, T>> {
        cache.get(self.number, None, |list| {
            let mut key = None;
            self.texts.text(self.slot, &mut |text| {
                key = Some(self.material.analyze(text, |analysis| {
                    make(analysis, list);
                    analysis.key
                }));
            })?;
            if key == Some(self.key) {
                return Ok(());
            }
            Err(Error::text(format!(
                "the text of document {} is not the kept text",
                self.order
            )))
        })
    }
}

impl Compared for OfKept<'_> {
    fn features(&self) -> Result<List<'_, u64>> {
        self.made(&self.material.features, |analysis, list| {
            analysis.features(list);
        })
    }

    fn weighted(&self) -> Result<List<'_, Weighted>> {
        self.made(&self.material.weighted, |analysis, list| {
            analysis.weighted_features(list);
        })
    }

    fn characters(&self) -> Result<List<'_, u32>> {
        self.made(&self.material.characters, |analysis, list| {
            list.extend_from_slice(analysis.characters());
        })
    }

    fn words(&self) -> Result<List<'_, u64>> {
        self.made(&self.material.words, |analysis, list| {
            list.extend_from_slice(analysis.tokens());
        })
    }
}
