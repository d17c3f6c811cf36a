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
    pub(super) ahead: InsertedAhead,
}

/// The keys and features that were inserted before their document; see
/// [`StreamMatcher::insert_ahead`](super::StreamMatcher::insert_ahead).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InsertedAhead {
    /// Number that the document has if it is the next one that is kept.
    pub(super) number: u64,
    /// Number of keys, from the first one on.
    pub(super) keys: usize,
    /// Number of counted features, from the first one on.
    pub(super) features: usize,
}

/// The bucket keys under which a document looks for others and is inserted; see
/// [`PrecheckResult::set_keys`](super::PrecheckResult::set_keys).
#[derive(Clone, Debug)]
pub struct SearchKeys {
    pub(super) probed: Vec<ProbeKey>,
    pub(super) added: DocumentKeys,
}

/// Steps of inserting a document under a key: one or two cache misses, and a share of the growth of its shard.
pub(super) const STEPS_OF_ADDED_KEY: u64 = 40;

/// Steps of making the keys of a feature, and of sorting them by rarity.
const STEPS_OF_FEATURE: u64 = 24;

impl DocumentKeys {
    /// Returns their memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.keys)
    }

    /// Returns the keys and features that were inserted ahead for a document of this number.
    pub(super) fn inserted_ahead(&self, number: u64) -> InsertedAhead {
        if self.ahead.number == number {
            return self.ahead;
        }
        InsertedAhead {
            number,
            ..InsertedAhead::default()
        }
    }

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
            ahead: InsertedAhead::default(),
        }
    }

    /// Makes all bucket keys of a check, if the newest order of features is the only one. It is by containment, where
    /// all features of a document are keys. By other measures only documents with few features have keys by rarity.
    pub fn extract_search_keys(&self, document: &SketchedDocument) -> SearchKeys {
        let of_sketches = self.sketch_keys(document).into_iter();
        let mut probed: Vec<_> = of_sketches.map(ProbeKey::on_indexing_side).collect();
        if let (Some(newest), Some(features)) = (&self.newest, document.joined_features()) {
            newest.keys_to_ask(features, &mut probed);
        }
        SearchKeys {
            probed,
            added: self.extract_keys(document),
        }
    }

    /// Returns the steps that making the keys of a document takes about, if the newest order of features is the only
    /// one, and 0 otherwise.
    fn extraction_steps(&self, document: &SketchedDocument) -> u64 {
        let is_only_order = self.newest.as_ref().is_some_and(NewestOrder::is_only_order);
        let features = document.joined_features().filter(|_| is_only_order);
        features.map_or(0, <[u64]>::len) as u64 * STEPS_OF_FEATURE
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

    /// Returns the steps that making the keys of a document takes about, if that needs no access to the matcher.
    pub(super) fn extraction_steps(&self, document: &SketchedDocument) -> u64 {
        self.extractor.extraction_steps(document)
    }

    /// Returns the maker of insertion keys. It is valid until the next [generation](Self::generation).
    pub(super) fn key_extractor(&self) -> &KeyExtractor {
        &self.extractor
    }

    /// Returns a number that increases whenever insertion keys change.
    pub(super) fn generation(&self) -> u64 {
        self.extractor.generation
    }

    /// Prefetches the memory that [learning](Self::learn_features) from the first features of a document needs.
    pub(super) fn prefetch_counters(&self, document: &SketchedDocument, limit: usize) {
        if let (Some(rarity), Some(features)) = (&self.rarity, document.joined_features()) {
            rarity.prefetch_counters(&features[..limit.min(features.len())]);
        }
    }

    /// Counts features of a document: those after the first `counted`, and at most as many as `limit`. Returns how many
    /// of the document are counted then.
    ///
    /// If the document is not inserted after all, its features count as more frequent than they are.
    pub(super) fn count_features(
        &mut self,
        document: &SketchedDocument,
        counted: usize,
        limit: usize,
    ) -> usize {
        let (Some(rarity), Some(features)) = (&mut self.rarity, document.joined_features()) else {
            return counted;
        };
        let left = &features[counted..];
        let left = &left[..limit.min(left.len())];
        rarity.count_features(left);
        counted + left.len()
    }

    /// Counts a document that was inserted with this number, and those features that are not
    /// [counted](Self::count_features) yet. Returns `true` if later documents are inserted under other keys.
    pub(super) fn learn_features(
        &mut self,
        document: &SketchedDocument,
        counted: usize,
        number: u64,
        partitions: &TimePartitions,
    ) -> bool {
        self.count_features(document, counted, usize::MAX);
        let (Some(rarity), Some(_)) = (&mut self.rarity, document.joined_features()) else {
            return false;
        };
        let low = partitions.lowest_number();
        let over = rarity.count_document(number, low, partitions.next_number() - low);
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
