//! The shuffle on one machine whose memory is smaller than the corpus.
//!
//! Documents have numbers, their sketches are there already, and blocks are kept in files instead of being sent:
//!
//! ```text
//! LocalScatterer   documents → keys and features
//! LocalKeys        counts them; then drops keys of one document, chooses keys of rare features, divides them
//! BlockGatherer    the keys of a part → links
//! EqualTexts       the names of texts of a part → documents whose text an earlier one has
//! LocalLinks       links → components
//! ```
//!
//! Each component is then resolved like a small corpus of its own.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::block_division::{refuse_no_parts, send_by_part};
use super::blocks::{self, DenseKeyAction, ShuffleContent, ShuffleFeatures, ShuffleKeys};
use super::feature_order::features_of;
use super::key_collector::{AnalysedDocument, FeatureKind, KeyCollector};
use super::prefilter::PrefilterLayout;
use super::scatter::{ShuffleBlock, ShuffleBlockKind};
use super::{ShuffleSetup, TextName, TextNode, part_of_hash};
use crate::candidates::{
    FeatureCounters, KEY_SAMPLE, KeyBuffer, KeyChoice, KeyPrices, PrefixTable, RarestFeatures,
    RarestSource, SeenTwiceFilter, UnionFind,
};
use crate::dedup::BatchSizes;
use crate::error::{Error, Result};
use crate::hash::mix_bits;
use crate::sketch::DocumentSketches;
use crate::text::{TextAnalysis, TextState};
use crate::types::DocId;

/// Collects the keys and features of numbered documents.
///
/// Memory: the size of the blocks, so they should be [taken](Self::take_blocks) when they have some megabytes.
pub struct LocalScatterer {
    setup: Arc<ShuffleSetup>,
    collector: KeyCollector,
    texts: EqualTexts,
    seen: HashSet<TextName>,
}

impl LocalScatterer {
    /// Returns a step without documents.
    pub fn new(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            collector: KeyCollector::new(setup.clone()),
            texts: EqualTexts::default(),
            seen: HashSet::new(),
            setup,
        }
    }

    /// Adds a document: its number in the run, its partition if documents match only within one, its sketches with
    /// its place among them, and its analysis.
    pub fn add_document(
        &mut self,
        number: u32,
        partition: u64,
        sketches: &DocumentSketches,
        at: DocId,
        analysis: &TextAnalysis<'_>,
    ) {
        let Some(name) = self.setup.text_name(sketches, at, partition) else {
            return;
        };
        self.texts.push_name(name, number);
        if self.seen.insert(name) {
            self.collector.add_keys(&AnalysedDocument {
                node: TextNode(number.into()),
                partition,
                sketches,
                at,
                analysis,
            });
        }
    }

    /// Adds the features of a document that was in a dense bucket.
    pub fn add_dense_document(
        &mut self,
        number: u32,
        partition: u64,
        sketches: &DocumentSketches,
        at: DocId,
        analysis: &TextAnalysis<'_>,
    ) {
        if sketches.text_state(at) == TextState::Fingerprintable {
            let document = AnalysedDocument {
                node: TextNode(number.into()),
                partition,
                sketches,
                at,
                analysis,
            };
            self.collector
                .add_features(&document, FeatureKind::OfDenseBuckets);
        }
    }

    /// Takes the blocks that are ready, and counts what is in them. More documents may follow.
    pub fn take_blocks(&mut self, counts: &LocalKeys) -> Vec<ShuffleBlock> {
        let fresh = Self::new(self.setup.clone());
        let mut taken = std::mem::replace(self, fresh);
        self.texts = taken.texts;
        counts.record_keys(taken.collector.keys());
        taken
            .collector
            .features()
            .for_each(|features| counts.count_features(features));
        taken.collector.take_blocks()
    }

    /// Takes the names of the texts of all documents since the last call.
    pub fn take_texts(&mut self) -> EqualTexts {
        std::mem::take(&mut self.texts)
    }
}

/// The names of texts, each with the number of its document. Memory: 20 bytes each.
#[derive(Clone, Debug, Default)]
pub struct EqualTexts {
    records: Vec<TextNameRecord>,
}

/// A name (16 bytes, the highest first) and a number (4 bytes).
type TextNameRecord = [u8; TEXT_BYTES];

/// Bytes of a name with its number.
const TEXT_BYTES: usize = 20;

fn name_of(record: &TextNameRecord) -> u128 {
    u128::from_be_bytes(std::array::from_fn(|at| record[at]))
}

fn number_of(record: &TextNameRecord) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|at| record[16 + at]))
}

impl EqualTexts {
    /// Returns an empty list with room for names of `bytes` bytes, as they are [divided](Self::divide_names).
    pub fn with_bytes(bytes: u64) -> Self {
        Self {
            records: Vec::with_capacity(bytes as usize / TEXT_BYTES),
        }
    }

    fn push_name(&mut self, name: TextName, number: u32) {
        let mut record = [0; TEXT_BYTES];
        record[..16].copy_from_slice(&name.0.to_be_bytes());
        record[16..].copy_from_slice(&number.to_le_bytes());
        self.records.push(record);
    }

    /// Appends names that were [divided](Self::divide_names).
    ///
    /// # Errors
    /// If the bytes are truncated.
    pub fn append_names(&mut self, bytes: &[u8]) -> Result<()> {
        let (records, rest) = bytes.as_chunks::<TEXT_BYTES>();
        if !rest.is_empty() {
            return Err(blocks::damaged_block());
        }
        self.records.extend_from_slice(records);
        Ok(())
    }

    /// Divides the names among `parts` parts, so that equal ones come together. Parts without names are empty.
    pub fn divide_names(&self, parts: u32) -> Vec<Vec<u8>> {
        let mut to = vec![Vec::new(); parts as usize];
        for record in &self.records {
            let node = TextName(name_of(record)).text_node();
            let part = part_of_hash(mix_bits(node.0), parts);
            to[part as usize].extend_from_slice(record);
        }
        to
    }

    /// Sorts documents by their texts and, within a text, by `rank`.
    pub fn sort_names(&mut self, rank: impl Fn(u32) -> u32) {
        self.records
            .sort_unstable_by_key(|record| (name_of(record), rank(number_of(record))));
    }

    /// Calls `visit` with the number of every document whose text an earlier one has, and with that of the
    /// earliest one, once the names are [sorted](Self::sort_names).
    pub fn visit_repeats(&self, mut visit: impl FnMut(u32, u32)) {
        for equal in self.records.chunk_by(|a, b| name_of(a) == name_of(b)) {
            let first = number_of(&equal[0]);
            equal[1..]
                .iter()
                .for_each(|record| visit(number_of(record), first));
        }
    }
}

/// Blocks of features that can be read several times.
pub trait FeatureBlocks: Sync {
    /// Number of blocks.
    fn block_count(&self) -> usize;

    /// Reads a block, from 0.
    ///
    /// # Errors
    /// If the block cannot be read.
    fn read_block(&self, at: usize) -> Result<Vec<u8>>;
}

/// The keys of all documents: which of them several documents have, and how frequent features are.
///
/// Memory: 2 bytes for every expected key within the limit, and 4 to 32 MiB.
pub struct LocalKeys {
    setup: Arc<ShuffleSetup>,
    shared: SeenTwiceFilter,
    frequencies: FeatureCounters,
    prefixes: PrefixTable,
    prices: KeyPrices<'static>,
    /// Number of documents whose features are counted.
    documents: AtomicUsize,
    choice: Option<KeyChoice>,
}

impl LocalKeys {
    /// Returns counters for about as many documents and keys of sketches. The counters of keys take at most
    /// `filter_bytes`, or 4 KiB; smaller ones drop fewer keys.
    pub fn new(
        setup: Arc<ShuffleSetup>,
        documents: usize,
        keys: usize,
        filter_bytes: usize,
    ) -> Self {
        let counters = documents.saturating_mul(64).next_power_of_two();
        let counters = counters.clamp(1 << 12, 1 << 23);
        let within = (filter_bytes / 2).max(1 << 11);
        let batch_sizes = BatchSizes::default();
        Self {
            shared: SeenTwiceFilter::new(keys.clamp(1 << 11, within)),
            frequencies: FeatureCounters::from_counts(vec![0; counters]),
            prefixes: PrefixTable::new(setup.plan.overlap_bound()),
            prices: KeyPrices {
                crowded: batch_sizes.crowded_keys,
                key: batch_sizes.key_cost,
            },
            documents: AtomicUsize::new(0),
            choice: None,
            setup,
        }
    }

    /// Returns the counters with other prices.
    #[cfg(test)]
    pub(super) fn with_prices(self, prices: KeyPrices<'static>) -> Self {
        Self { prices, ..self }
    }

    fn record_keys(&self, keys: &ShuffleKeys) {
        let entries = keys.entries.iter();
        entries.for_each(|entry| self.shared.record_key(entry.key));
    }

    fn count_features(&self, features: &ShuffleFeatures) {
        let documents = features.nodes.len();
        self.documents.fetch_add(documents, Ordering::Relaxed);
        features.visit_documents(|_, set| self.frequencies.count_features(set));
    }

    /// Counts a block that was made before, as [`LocalScatterer::take_blocks`] does.
    ///
    /// # Errors
    /// If the block is damaged or no block of keys or features.
    pub fn count_block(&self, block: &[u8]) -> Result<()> {
        match blocks::decode_block(&self.setup, block)? {
            ShuffleContent::Keys(keys) => self.record_keys(&keys),
            ShuffleContent::Features(features) => self.count_features(&features),
            _ => return Err(no_keys()),
        }
        Ok(())
    }

    /// Chooses the keys of rare features, once all features are counted.
    ///
    /// # Errors
    /// If a block cannot be read.
    pub fn choose_keys(&mut self, blocks: &dyn FeatureBlocks) -> Result<()> {
        let source = BlockDocuments { keys: self, blocks };
        // Candidates for containment are counted by the single features that they share.
        let combines = self
            .setup
            .plan
            .overlap_bound()
            .least_containment()
            .is_none();
        let choice = if combines {
            KeyChoice::of_combinations(&source, self.prices)?
        } else {
            KeyChoice::of_single_features(&source)?
        };
        self.choice = Some(choice);
        Ok(())
    }

    /// Returns the keys of a block that several documents may have, divided among `parts` parts. Features become
    /// keys as [chosen](Self::choose_keys), or else single ones do.
    ///
    /// # Errors
    /// If the block is damaged or no block of keys or features, or if there are no parts.
    pub fn divide_keys(&self, block: &[u8], parts: u32) -> Result<Vec<ShuffleBlock>> {
        refuse_no_parts(parts)?;
        match blocks::decode_block(&self.setup, block)? {
            ShuffleContent::Keys(keys) => Ok(self.divide_shared_keys(&keys, parts)),
            ShuffleContent::Features(features) => Ok(self.divide_features(&features, parts)),
            _ => Err(no_keys()),
        }
    }

    fn divide_shared_keys(&self, keys: &ShuffleKeys, parts: u32) -> Vec<ShuffleBlock> {
        let mut to = NewParts::new(
            &self.setup,
            keys.prefilters.layout(),
            keys.dense_action,
            parts,
        );
        let mut of_document = Vec::new();
        // The keys of a document are adjacent.
        for entries in keys.entries.chunk_by(|a, b| a.at == b.at) {
            let shared = entries.iter();
            let shared = shared.filter(|entry| self.shared.may_be_shared(entry.key));
            of_document.clear();
            of_document.extend(shared.map(|entry| (entry.key, entry.side)));
            let at = entries[0].at as usize;
            to.add_document(&mut of_document, |to, keys_of_part| {
                to.push_document(keys.nodes[at], &keys.prefilters, at, keys_of_part);
            });
        }
        to.encode_blocks()
    }

    fn divide_features(&self, features: &ShuffleFeatures, parts: u32) -> Vec<ShuffleBlock> {
        let layout = features.prefilters.layout();
        let mut to = NewParts::new(&self.setup, layout, DenseKeyAction::Split, parts);
        let (mut keys, mut buffer) = (Vec::new(), KeyBuffer::default());
        let mut rarest = RarestFeatures::default();
        features.visit_documents(|document, set| {
            keys.clear();
            self.select_rarest(set, self.further_features(), &mut rarest);
            match &self.choice {
                Some(choice) => choice.visit_keys(
                    &rarest,
                    &mut buffer,
                    |_| true,
                    |key| {
                        keys.push((key.key, key.side));
                    },
                ),
                None => keys.extend(rarest.bucket_keys()),
            }
            let partition = features.partitions.get(document).copied().unwrap_or(0);
            keys.iter_mut()
                .for_each(|(key, _)| *key = self.setup.partitioned_key(*key, partition));
            to.add_document(&mut keys, |to, keys_of_part| {
                let node = features.nodes[document];
                to.push_document(node, &features.prefilters, document, keys_of_part);
            });
        });
        to.encode_blocks()
    }

    fn further_features(&self) -> usize {
        self.choice.as_ref().map_or(0, KeyChoice::further_features)
    }

    fn select_rarest(&self, set: &[u64], further: usize, rarest: &mut RarestFeatures) {
        let (prefixes, least) = self.prefixes.prefixes_of_one_hit(set.len());
        rarest.select(set, &self.frequencies, prefixes, least, further);
    }
}

fn no_keys() -> Error {
    Error::setting_error("a block holds texts or ids: give blocks of keys or features")
}

/// Keys that are being divided among parts.
struct NewParts {
    parts: Vec<ShuffleKeys>,
}

impl NewParts {
    fn new(
        setup: &ShuffleSetup,
        layout: PrefilterLayout,
        action: DenseKeyAction,
        parts: u32,
    ) -> Self {
        let empty = |_| ShuffleKeys::new(setup, layout, action);
        Self {
            parts: (0..parts).map(empty).collect(),
        }
    }

    fn add_document(
        &mut self,
        keys: &mut [(u64, crate::candidates::BucketSide)],
        add: impl FnMut(&mut ShuffleKeys, &[(u64, crate::candidates::BucketSide)]),
    ) {
        send_by_part(keys, &mut self.parts, add);
    }

    fn encode_blocks(self) -> Vec<ShuffleBlock> {
        let filled = (0..).zip(self.parts);
        let filled = filled.filter(|(_, keys)| !keys.nodes.is_empty());
        filled
            .map(|(part, keys)| ShuffleBlock {
                kind: ShuffleBlockKind::Part,
                part,
                block: keys.encode_block(),
            })
            .collect()
    }
}

/// The documents of blocks of features.
struct BlockDocuments<'a> {
    keys: &'a LocalKeys,
    blocks: &'a dyn FeatureBlocks,
}

/// Number of blocks from which documents are sampled.
const SAMPLED_BLOCKS: usize = 32;

impl BlockDocuments<'_> {
    fn read_features(&self, at: usize) -> Result<ShuffleFeatures> {
        features_of(&self.keys.setup, &self.blocks.read_block(at)?)
    }
}

impl RarestSource for BlockDocuments<'_> {
    fn document_count(&self) -> usize {
        self.keys.documents.load(Ordering::Relaxed)
    }

    fn sample_documents(&self, further: usize) -> Result<Vec<RarestFeatures>> {
        let blocks = self.blocks.block_count();
        let step = blocks.div_ceil(SAMPLED_BLOCKS).max(1);
        let of_block = KEY_SAMPLE.div_ceil(blocks.div_ceil(step).max(1));
        let mut sample = Vec::new();
        for at in (0..blocks).step_by(step) {
            let features = self.read_features(at)?;
            let every = features.nodes.len().div_ceil(of_block).max(1);
            features.visit_documents(|document, set| {
                if document.is_multiple_of(every) {
                    let mut rarest = RarestFeatures::default();
                    self.keys.select_rarest(set, further, &mut rarest);
                    sample.push(rarest);
                }
            });
        }
        Ok(sample)
    }

    fn visit_all<S: Default>(
        &self,
        further: usize,
        visit: impl Fn(&mut S, &RarestFeatures) + Sync,
    ) -> Result<()> {
        let blocks = (0..self.blocks.block_count()).into_par_iter();
        blocks.try_for_each(|at| {
            let (mut state, mut rarest) = (S::default(), RarestFeatures::default());
            self.read_features(at)?.visit_documents(|_, set| {
                self.keys.select_rarest(set, further, &mut rarest);
                visit(&mut state, &rarest);
            });
            Ok(())
        })
    }
}

/// The links between numbered documents. Memory: 4 bytes for every document.
pub struct LocalLinks {
    union: UnionFind,
}

impl LocalLinks {
    /// Returns documents without links. Panics if there are 2³² or more.
    pub fn with_documents(documents: usize) -> Self {
        Self {
            union: UnionFind::with_members(documents),
        }
    }

    /// Adds a link between two documents. Panics if there are not so many.
    pub fn add_link(&mut self, a: u32, b: u32) {
        self.union.union_sets(a, b);
    }

    /// Adds links that a [`BlockGatherer`](super::BlockGatherer) has found.
    ///
    /// # Errors
    /// If a node is no number of a document.
    pub fn add_links(&mut self, links: &[(TextNode, TextNode)]) -> Result<()> {
        let documents = self.union.member_count() as u64;
        for (a, b) in links {
            if a.0.max(b.0) >= documents {
                return Err(Error::setting_error(format!(
                    "a link to document {} of {documents}: give links of the same run",
                    a.0.max(b.0)
                )));
            }
            self.union.union_sets(a.0 as u32, b.0 as u32);
        }
        Ok(())
    }

    /// Returns the component of every document, which is the number of its first document.
    pub fn into_components(self) -> Vec<u32> {
        self.union.into_roots()
    }
}
