//! The bucket keys under which a document is inserted, and those under which it looks for others.
//!
//! They are the keys of a batch. Only those of the exact join depend on earlier documents; see
//! [`rarity`](super::rarity).

use super::prepared::Prepared;
use super::rarity::{Asked, Newest, Rarity};
use super::sections::Sections;
use crate::matching::{Side, band_key, block_key, smallest_key, text_key};
use crate::plan::{Blocks, Plan};
use crate::text::State;

/// Makes the bucket keys under which documents are inserted, on any thread. It has the order of
/// features of one moment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Keyer {
    plan: Plan,
    /// `true` if fingerprints, equal ones included, are found by an index of their own.
    codes: bool,
    /// Blocks of bits, for fingerprints within a distance that have no such index.
    blocks: Option<Blocks>,
    /// Order of features that selects the rare ones, if the plan has an exact join.
    newest: Option<Newest>,
    /// Number of orders of features before this one.
    generation: u64,
}

/// The bucket keys of a document, made on any thread for
/// [`Matcher::keep_with`](super::Matcher::keep_with).
#[derive(Clone, Debug)]
pub struct Keyed {
    pub(super) keys: Vec<(u64, Side)>,
    pub(super) generation: u64,
}

impl Keyer {
    /// Makes the bucket keys of a document. This takes most of the time when a document is inserted
    /// unchecked.
    pub fn keyed(&self, document: &Prepared) -> Keyed {
        Keyed {
            keys: self.to_add(document),
            generation: self.generation,
        }
    }

    /// Returns the key of a document's text, unless equal texts are found by their fingerprints.
    fn of_text(&self, document: &Prepared) -> Option<u64> {
        let by_code = self.codes && document.code().is_some();
        (document.state() != State::Empty && !by_code).then(|| text_key(document.key()))
    }

    fn to_add(&self, document: &Prepared) -> Vec<(u64, Side)> {
        let of_sketches = self.of_sketches(document).into_iter();
        let mut keys: Vec<_> = of_sketches.map(|key| (key, Side::Full)).collect();
        if let (Some(newest), Some(features)) = (&self.newest, document.joined_features()) {
            newest.keys_to_add(features, &mut keys);
        }
        keys
    }

    fn of_sketches(&self, document: &Prepared) -> Vec<u64> {
        let mut keys: Vec<u64> = self.of_text(document).into_iter().collect();
        let sketched = document.sketched();
        if let (Some(bands), Some(signature)) = (self.plan.bands(), sketched.signature()) {
            keys.extend((0..bands.bands).map(|band| band_key(bands, band, signature)));
        }
        if let (Some(blocks), Some(code)) = (self.blocks, document.code()) {
            let masks = blocks.masks().enumerate();
            keys.extend(masks.map(|(block, mask)| block_key(block, code & mask)));
        }
        if let (Some(_), Some(sentences)) = (self.plan.sentences(), sketched.sentences()) {
            keys.push(sentences);
        }
        if let (Some(smallest), Some(hashes)) = (self.plan.smallest(), sketched.smallest()) {
            let meeting = hashes.iter().take(smallest.meeting);
            keys.extend(meeting.map(|&hash| smallest_key(hash)));
        }
        keys
    }
}

/// Makes bucket keys for a plan, and learns which features are rare.
#[derive(Debug)]
pub(super) struct Keys {
    keyer: Keyer,
    rarity: Option<Rarity>,
}

impl Keys {
    pub(super) fn new(plan: &Plan, codes: bool) -> Self {
        let blocks = plan.distance().filter(|_| !codes).map(|distance| Blocks {
            count: distance.get() + 1,
            bits: plan.bits(),
        });
        let rarity = plan.join().map(|_| Rarity::new(plan.candidate_threshold()));
        let keyer = Keyer {
            plan: *plan,
            codes,
            blocks,
            newest: rarity.as_ref().map(Rarity::newest),
            generation: 0,
        };
        Self { keyer, rarity }
    }

    /// Returns the key of a document's text, unless equal texts are found by their fingerprints.
    pub(super) fn of_text(&self, document: &Prepared) -> Option<u64> {
        self.keyer.of_text(document)
    }

    /// Returns the keys under which a document looks for others.
    pub(super) fn to_ask(&self, document: &Prepared) -> Vec<Asked> {
        let of_sketches = self.keyer.of_sketches(document).into_iter();
        let mut keys: Vec<_> = of_sketches.map(Asked::full).collect();
        if let (Some(rarity), Some(features)) = (&self.rarity, document.joined_features()) {
            rarity.keys_to_ask(features, &mut keys);
        }
        keys
    }

    /// Returns the keys under which a document is inserted, and its side under each.
    pub(super) fn to_add(&self, document: &Prepared) -> Vec<(u64, Side)> {
        self.keyer.to_add(document)
    }

    /// Returns the maker of insertion keys. It is valid until the next [generation](Self::generation).
    pub(super) fn keyer(&self) -> &Keyer {
        &self.keyer
    }

    /// Returns a number that increases whenever insertion keys change.
    pub(super) fn generation(&self) -> u64 {
        self.keyer.generation
    }

    /// Prefetches the memory that [learning](Self::learn) from a document needs.
    pub(super) fn prefetch(&self, document: &Prepared) {
        if let (Some(rarity), Some(features)) = (&self.rarity, document.joined_features()) {
            rarity.prefetch(features);
        }
    }

    /// Counts the features of a document that was inserted with this number. Returns `true` if later
    /// documents are inserted under other keys.
    pub(super) fn learn(&mut self, document: &Prepared, number: u64, sections: &Sections) -> bool {
        let (Some(rarity), Some(features)) = (&mut self.rarity, document.joined_features()) else {
            return false;
        };
        let low = sections.low();
        let over = rarity.learn(features, number, low, sections.next() - low);
        if over {
            self.keyer.newest = Some(rarity.newest());
            self.keyer.generation += 1;
        }
        over
    }

    /// Forgets orders of features that only documents before `low` were inserted under.
    pub(super) fn forget_before(&mut self, low: u64) {
        if let Some(rarity) = &mut self.rarity {
            rarity.forget_before(low);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rarity.as_ref().map_or(0, Rarity::bytes)
    }
}
