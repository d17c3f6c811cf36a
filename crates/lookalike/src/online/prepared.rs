//! Documents ready to be checked.

use super::ALONE;
use crate::arch::Cpu;
use crate::error::{Error, Result};
use crate::plan::{Measure, Plan};
use crate::recipe::Recipe;
use crate::sketches::{Brief, Sketcher, Sketches};
use crate::text::{Analysis, Analyzer, Scratch, State};

/// Analyses and sketches documents: nearly all of the work, on any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Preparer {
    analyzer: Analyzer,
    sketcher: Sketcher,
    plan: Plan,
}

/// A document with all that is known of it without looking at others.
#[derive(Clone, Debug)]
pub struct Prepared {
    sketches: Box<Sketches>,
    text: Option<String>,
}

/// Enough for the features or characters of any document that is kept whole.
const ALL_FEATURES: usize = 1 << 31;

impl Preparer {
    /// For documents under a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &Plan) -> Self {
        let sketcher = Sketcher::new(recipe, plan, Cpu::best());
        Self {
            analyzer: Analyzer::new(recipe).with_extras(sketcher.extras()),
            sketcher,
            plan: *plan,
        }
    }

    /// A document of this text.
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

    /// A document of which only its SimHash is known.
    ///
    /// # Errors
    /// If it has more bits than the recipe's, or the plan compares anything but fingerprints.
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

    /// Whether documents can be [written](Self::write): all but those whose sequences are compared.
    pub fn can_write(&self) -> bool {
        self.sketcher.can_write()
    }

    /// Appends what [`read`](Self::read) makes the document of again: 17 bytes, 8 for each feature of a
    /// short document, 4 for each slot of a long one's signature.
    pub fn write(&self, document: &Prepared, into: &mut Vec<u8>) {
        self.sketcher.write(&document.sketches, into);
    }

    /// A document that was written under the same recipe and plan, without its text: it can be
    /// [kept](super::Matcher::keep). None if these bytes are none.
    pub fn read(&self, bytes: &[u8]) -> Option<Prepared> {
        let sketches = self.sketcher.read(bytes, ALL_FEATURES)?;
        Some(Prepared {
            sketches: Box::new(sketches),
            text: None,
        })
    }

    /// Where the sketches of a section go: features are made again from texts.
    pub(super) fn for_section(&self) -> Sketches {
        self.sketcher.sketches(0)
    }

    /// Calls back with the analysis of a text.
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
    /// The text, unless only a fingerprint is known.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// How much the document offers.
    pub fn state(&self) -> State {
        self.sketches.state(ALONE)
    }

    /// Names the text after normalisation.
    pub fn key(&self) -> u128 {
        self.sketches.key(ALONE)
    }

    /// The SimHash, if the plan asks for it and there is one.
    pub fn code(&self) -> Option<u128> {
        self.sketches.fingerprint(ALONE)
    }

    pub(super) fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    /// What decides most pairs, if features do.
    pub(super) fn brief(&self) -> Option<Brief> {
        self.sketches.brief_of(ALONE)
    }

    /// The distinct features, if the document takes part in the exact join.
    pub(super) fn joined_features(&self) -> Option<&[u64]> {
        self.sketches.features(ALONE)
    }
}
