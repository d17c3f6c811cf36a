//! The bucket keys under which a document is inserted, and those under which it looks for others.
//!
//! They are the keys of a batch. Only those of the exact join depend on earlier documents; see
//! [`rarity`](super::rarity).

use super::partitions::TimePartitions;
use super::rarity::{NewestOrder, ProbeKey, RarityOrders};
use super::sketched_document::SketchedDocument;
use crate::candidates::{BucketSide, SketchKeys, equal_text_key};
use crate::plan::MatchPlan;
use crate::text::TextState;

/// Makes the bucket keys under which documents are inserted, on any thread. It has the order of
/// features of one moment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyExtractor {
    /// `true` if fingerprints, equal ones included, are found by an index of their own.
    codes: bool,
    /// Keys of the sketches, except of fingerprints that have such an index.
    sketch_keys: SketchKeys,
    /// Order of features that selects the rare ones, if the plan has an exact join.
    newest: Option<NewestOrder>,
    /// Number of orders of features before this one.
    generation: u64,
}

/// The bucket keys of a document, made on any thread for
/// [`StreamMatcher::keep_with_keys`](super::StreamMatcher::keep_with_keys).
#[derive(Clone, Debug)]
pub struct DocumentKeys {
    pub(super) keys: Vec<(u64, BucketSide)>,
    pub(super) generation: u64,
}

/// Steps of inserting a document under a key, which costs one or two cache misses.
pub(super) const STEPS_OF_ADDED_KEY: u64 = 24;

impl DocumentKeys {
    /// Returns the steps that the insertion of the document takes about.
    pub fn insertion_steps(&self) -> u64 {
        self.keys.len() as u64 * STEPS_OF_ADDED_KEY
    }
}

impl KeyExtractor {
    /// Makes the bucket keys of a document. This takes most of the time when a document is inserted
    /// unchecked.
    pub fn extract_keys(&self, document: &SketchedDocument) -> DocumentKeys {
        DocumentKeys {
            keys: self.insertion_keys(document),
            generation: self.generation,
        }
    }

    /// Returns the key of a document's text, unless equal texts are found by their fingerprints.
    fn text_key(&self, document: &SketchedDocument) -> Option<u64> {
        let by_code = self.codes && document.fingerprint().is_some();
        (document.text_state() != TextState::Empty && !by_code)
            .then(|| equal_text_key(document.text_key()))
    }

    fn insertion_keys(&self, document: &SketchedDocument) -> Vec<(u64, BucketSide)> {
        let of_sketches = self.sketch_keys(document).into_iter();
        let mut keys: Vec<_> = of_sketches.map(|key| (key, BucketSide::Indexing)).collect();
        if let (Some(newest), Some(features)) = (&self.newest, document.joined_features()) {
            newest.keys_to_add(features, &mut keys);
        }
        keys
    }

    fn sketch_keys(&self, document: &SketchedDocument) -> Vec<u64> {
        let mut keys: Vec<u64> = self.text_key(document).into_iter().collect();
        let sketched = document.sketch_ref();
        self.sketch_keys.visit_keys(sketched, |key| keys.push(key));
        keys
    }
}

/// Makes bucket keys for a plan, and learns which features are rare.
#[derive(Debug)]
pub(super) struct StreamKeys {
    extractor: KeyExtractor,
    rarity: Option<RarityOrders>,
}

impl StreamKeys {
    pub(super) fn new(plan: &MatchPlan, codes: bool) -> Self {
        let rarity = plan
            .join_plan()
            .map(|_| RarityOrders::new(plan.overlap_bound()));
        let extractor = KeyExtractor {
            codes,
            sketch_keys: if codes {
                SketchKeys::Nothing
            } else {
                SketchKeys::new(plan)
            },
            newest: rarity.as_ref().map(RarityOrders::newest_order),
            generation: 0,
        };
        Self { extractor, rarity }
    }

    /// Returns the key of a document's text, unless equal texts are found by their fingerprints.
    pub(super) fn text_key(&self, document: &SketchedDocument) -> Option<u64> {
        self.extractor.text_key(document)
    }

    /// Returns the keys under which a document looks for others.
    pub(super) fn probe_keys(&self, document: &SketchedDocument) -> Vec<ProbeKey> {
        let of_sketches = self.extractor.sketch_keys(document).into_iter();
        let mut keys: Vec<_> = of_sketches.map(ProbeKey::on_indexing_side).collect();
        if let (Some(rarity), Some(features)) = (&self.rarity, document.joined_features()) {
            rarity.keys_to_ask(features, &mut keys);
        }
        keys
    }

    /// Returns the keys under which a document is inserted, and its side under each.
    pub(super) fn insertion_keys(&self, document: &SketchedDocument) -> Vec<(u64, BucketSide)> {
        self.extractor.insertion_keys(document)
    }

    /// Returns the maker of insertion keys. It is valid until the next [generation](Self::generation).
    pub(super) fn key_extractor(&self) -> &KeyExtractor {
        &self.extractor
    }

    /// Returns a number that increases whenever insertion keys change.
    pub(super) fn generation(&self) -> u64 {
        self.extractor.generation
    }

    /// Prefetches the memory that [learning](Self::learn_features) from a document needs.
    pub(super) fn prefetch_counters(&self, document: &SketchedDocument) {
        if let (Some(rarity), Some(features)) = (&self.rarity, document.joined_features()) {
            rarity.prefetch_counters(features);
        }
    }

    /// Counts the features of a document that was inserted with this number. Returns `true` if later
    /// documents are inserted under other keys.
    pub(super) fn learn_features(
        &mut self,
        document: &SketchedDocument,
        number: u64,
        partitions: &TimePartitions,
    ) -> bool {
        let (Some(rarity), Some(features)) = (&mut self.rarity, document.joined_features()) else {
            return false;
        };
        let low = partitions.lowest_number();
        let over = rarity.learn_features(features, number, low, partitions.next_number() - low);
        if over {
            self.extractor.newest = Some(rarity.newest_order());
            self.extractor.generation += 1;
        }
        over
    }

    /// Forgets orders of features that only documents before `low` were inserted under.
    pub(super) fn forget_before(&mut self, low: u64) {
        if let Some(rarity) = &mut self.rarity {
            rarity.forget_before(low);
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.rarity.as_ref().map_or(0, RarityOrders::memory_bytes)
    }
}
