//! Documents that are analysed and sketched, ready to be checked.

use super::ALONE;
use crate::arch::Cpu;
use crate::error::{Error, Result};
use crate::plan::{Measure, Plan};
use crate::recipe::Recipe;
use crate::sketches::{Brief, Sketcher, Sketches};
use crate::text::{Analysis, Analyzer, Scratch, State};

/// Analyses and sketches documents. This is nearly all of the work, and it runs on any thread. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Preparer {
    analyzer: Analyzer,
    sketcher: Sketcher,
    plan: Plan,
}

/// A document with its text and sketches.
#[derive(Clone, Debug)]
pub struct Prepared {
    sketches: Box<Sketches>,
    text: Option<String>,
}

/// Feature budget that suffices for all features, characters or words of any document.
const ALL_FEATURES: usize = 1 << 31;

impl Preparer {
    /// Returns a preparer for documents of a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &Plan) -> Self {
        let sketcher = Sketcher::new(recipe, plan, Cpu::best());
        Self {
            analyzer: Analyzer::new(recipe).with_extras(sketcher.extras()),
            sketcher,
            plan: *plan,
        }
    }

    /// Prepares a document from its text.
    pub fn text(&self, text: impl Into<String>, scratch: &mut Scratch) -> Prepared {
        let text = text.into();
        let mut sketches = self.sketcher.sketches(ALL_FEATURES);
        let analysis = self.analyzer.analyze(&text, scratch);
        self.sketcher.add(&analysis, &mut sketches);
        Prepared {
            sketches: Box::new(sketches),
            text: Some(text),
        }
    }

    /// Prepares a document of which only the SimHash fingerprint is known.
    ///
    /// # Errors
    /// Fails if the fingerprint has more bits than the recipe's, or if the plan compares anything but
    /// fingerprints.
    pub fn fingerprint(&self, fingerprint: u128) -> Result<Prepared> {
        if self.plan.distance().is_none() || self.plan.settings().measure != Measure::Sketch {
            return Err(Error::setting(format!(
                "the fingerprint {fingerprint:#x} comes without its text, so it can only be compared \
                 with the method 'simhash' and no measure"
            )));
        }
        let bits = self.plan.bits();
        if u128::BITS - fingerprint.leading_zeros() > bits {
            return Err(Error::setting(format!(
                "the fingerprint {fingerprint:#x} has more than {bits} bits"
            )));
        }
        let mut sketches = self.sketcher.sketches(0);
        sketches.push_fingerprint(fingerprint);
        Ok(Prepared {
            sketches: Box::new(sketches),
            text: None,
        })
    }

    /// Returns `true` if documents can be [written](Self::write): the plan compares no sequences.
    pub fn can_write(&self) -> bool {
        self.sketcher.can_write()
    }

    /// Appends a document in the form that [`read`](Self::read) reads. For `auto` these are 22 bytes, 8
    /// for each feature of a document in the exact join, and 4 for each slot of a signature.
    pub fn write(&self, document: &Prepared, into: &mut Vec<u8>) {
        self.sketcher.write(&document.sketches, into);
    }

    /// Reads a document that was written under the same recipe and plan. It has no text, so it can only
    /// be [kept](super::Matcher::keep). Returns `None` if the bytes do not fit the plan.
    pub fn read(&self, bytes: &[u8]) -> Option<Prepared> {
        let sketches = self.sketcher.read(bytes, ALL_FEATURES)?;
        Some(Prepared {
            sketches: Box::new(sketches),
            text: None,
        })
    }

    /// Returns an empty store for the sketches of a section. It keeps no features, because these are
    /// made again from texts.
    pub(super) fn for_section(&self) -> Sketches {
        self.sketcher.sketches(0)
    }

    /// Calls `visit` with the analysis of a text.
    pub(super) fn analyze<T>(
        &self,
        text: &str,
        scratch: &mut Scratch,
        visit: impl FnOnce(&Analysis<'_>) -> T,
    ) -> T {
        visit(&self.analyzer.analyze(text, scratch))
    }
}

impl Prepared {
    /// Returns the text, unless only a fingerprint is known.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the text state of the document.
    pub fn state(&self) -> State {
        self.sketches.state(ALONE)
    }

    /// Returns the key of the text after normalisation. Equal texts have equal keys.
    pub fn key(&self) -> u128 {
        self.sketches.key(ALONE)
    }

    /// Returns the SimHash fingerprint, if the plan needs it and the document has one.
    pub fn code(&self) -> Option<u128> {
        self.sketches.fingerprint(ALONE)
    }

    pub(super) fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    /// Returns the set summary of the features, if the plan has an exact join.
    pub(super) fn brief(&self) -> Option<Brief> {
        self.sketches.brief_of(ALONE)
    }

    /// Returns the distinct features, if the document takes part in the exact join.
    pub(super) fn joined_features(&self) -> Option<&[u64]> {
        self.sketches.features(ALONE)
    }
}
