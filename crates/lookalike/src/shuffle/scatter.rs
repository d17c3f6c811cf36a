//! The first step: sketches a portion of the documents and makes their bucket keys.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks::{
    self, DenseKeyAction, ShuffleContent, ShuffleFeatures, ShuffleKey, ShuffleKeys,
};
use super::partitioning::{refuse_no_parts, send_by_part};
use super::prefilter::PrefilterLayout;
use super::{ShuffleDocument, ShuffleSetup, TextName};
use crate::candidates::{
    FeatureCounters, PrefixLengths, RarestFeatures, SketchKeys, equal_text_key,
};
use crate::error::{Error, Result};
use crate::hash::mix_bits;
use crate::similarity::SketchRef;
use crate::sketch::DocumentSketches;
use crate::text::{AnalysisScratch, TextAnalysis, TextState};
use crate::types::DocId;

/// The kind of a shuffle block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleBlockKind {
    /// Keys, texts or ids, to be spread over parts. Each part is received by one
    /// [`BlockGatherer`](super::BlockGatherer).
    Part,
    /// Features that become keys once their frequencies are known, for [`FeatureOrder`].
    Features,
}

/// A shuffle block and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleBlock {
    /// Kind of the block.
    pub kind: ShuffleBlockKind,
    /// Part, from 0. It is 0 for blocks that have not been spread yet.
    pub part: u32,
    /// Bytes of the block.
    pub block: Vec<u8>,
}

/// Number of documents after which the store of sketches is replaced by an empty one.
const AT_ONCE: usize = 1024;

/// Sketches documents and collects their keys.
///
/// Memory: the size of the blocks, so they should be [taken](Self::take_blocks) when they have some tens of
/// megabytes. A document whose text already came in the same blocks adds no keys.
pub struct DocumentScatterer {
    setup: Arc<ShuffleSetup>,
    scratch: AnalysisScratch,
    sketches: DocumentSketches,
    buffer: Vec<u64>,
    shuffle_blocks: PendingBlocks,
    /// Nodes of the only documents to process, of which only features are collected.
    only: Option<Arc<Vec<u64>>>,
}

/// Keys, features, texts and ids that have not been taken yet.
struct PendingBlocks {
    keys: ShuffleKeys,
    features: Vec<ShuffleFeatures>,
    texts: HashMap<TextName, (u32, Vec<u8>)>,
    ids: Vec<String>,
    /// Texts of dense buckets whose features are collected.
    dense_nodes: HashSet<TextName>,
    bytes: usize,
}

impl PendingBlocks {
    fn new(setup: &ShuffleSetup) -> Self {
        let dense_action = if setup.refines_dense_keys() {
            DenseKeyAction::Refine
        } else {
            DenseKeyAction::Split
        };
        let layout = PrefilterLayout::of_sketches(setup);
        Self {
            keys: ShuffleKeys::new(setup, layout, dense_action),
            features: [layout, PrefilterLayout::of_features(setup)]
                .map(|layout| ShuffleFeatures::new(setup, layout))
                .into(),
            texts: HashMap::new(),
            ids: Vec::new(),
            dense_nodes: HashSet::new(),
            bytes: 0,
        }
    }

    fn into_blocks(self) -> Vec<ShuffleBlock> {
        let mut blocks = Vec::new();
        if !self.keys.nodes.is_empty() {
            blocks.push(self.keys.encode_block());
        }
        if !self.ids.is_empty() {
            let ids = self.ids.iter().map(String::as_str);
            blocks.push(blocks::encode_ids(ids));
        }
        if !self.texts.is_empty() {
            let texts = self.texts.iter();
            let records = texts.map(|(name, (documents, first))| (*name, *documents, &first[..]));
            blocks.push(blocks::write_texts(records));
        }
        let shuffle_block = |kind, block| ShuffleBlock {
            kind,
            part: 0,
            block,
        };
        let features = self.features.iter().filter(|it| !it.nodes.is_empty());
        let features = features
            .map(|features| shuffle_block(ShuffleBlockKind::Features, features.encode_block()));
        let blocks = blocks.into_iter();
        blocks
            .map(|block| shuffle_block(ShuffleBlockKind::Part, block))
            .chain(features)
            .collect()
    }
}

impl DocumentScatterer {
    /// Returns a step without documents.
    pub fn new(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            sketches: setup.sketcher.new_sketches(1 << 20),
            scratch: AnalysisScratch::default(),
            buffer: Vec::new(),
            shuffle_blocks: PendingBlocks::new(&setup),
            only: None,
            setup,
        }
    }

    /// Returns a step that collects only the features of documents with these nodes, which were in
    /// dense buckets.
    pub fn for_dense_nodes(setup: Arc<ShuffleSetup>, mut nodes: Vec<u64>) -> Self {
        nodes.sort_unstable();
        Self {
            only: Some(Arc::new(nodes)),
            ..Self::new(setup)
        }
    }

    /// Returns the approximate number of bytes that can be taken.
    pub fn pending_bytes(&self) -> usize {
        self.shuffle_blocks.bytes
    }

    /// Adds a document.
    pub fn add_document(&mut self, document: &ShuffleDocument<'_>) {
        if self.sketches.len() >= AT_ONCE {
            self.sketches = self.setup.sketcher.new_sketches(1 << 20);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let setup = self.setup.clone();
        self.add_analysis(document, &setup.analyze_text(document.text, &mut scratch));
        self.scratch = scratch;
    }

    fn add_analysis(&mut self, document: &ShuffleDocument<'_>, analysis: &TextAnalysis<'_>) {
        self.setup
            .sketcher
            .add_document(analysis, &mut self.sketches);
        let part = document.part;
        let at = DocId(self.sketches.len() as u32 - 1);
        let name = self.setup.text_name(&self.sketches, at, part);
        let rich = self.sketches.text_state(at) == TextState::Fingerprintable;
        if let Some(only) = &self.only {
            let wanted = name.filter(|name| only.binary_search(&name.text_node().0).is_ok());
            if let Some(name) =
                wanted.filter(|&name| rich && self.shuffle_blocks.dense_nodes.insert(name))
            {
                self.add_features((name, part), analysis, at, 0);
            }
            return;
        }
        self.shuffle_blocks
            .push_id(&self.setup.mark_known_id(document));
        let Some(name) = name else { return };
        if !self
            .shuffle_blocks
            .push_text(name, self.setup.document_position(document))
        {
            return;
        }
        self.add_document_keys((name, part), at);
        let joined = self.setup.plan.join_plan().is_some_and(|join| {
            let size = self.sketches.set_summary(at).size as usize;
            rich && size > 0 && size <= join.max_partner_features
        });
        if joined {
            self.add_features((name, part), analysis, at, 1);
        }
    }

    /// Adds the features of a document: at index 0 those of dense buckets, at index 1 those of the
    /// exact join.
    fn add_features(
        &mut self,
        (name, part): (TextName, u64),
        analysis: &TextAnalysis<'_>,
        document: DocId,
        at: usize,
    ) {
        let features = &mut self.shuffle_blocks.features[at];
        let start = features.features.len();
        match self.sketches.kept_features(document) {
            Some(kept) => features.features.extend_from_slice(kept),
            None => analysis.append_features(&mut features.features),
        }
        features.nodes.push(name.text_node());
        features
            .parts
            .extend(self.setup.bounds.within.then_some(part));
        let added = &features.features[start..];
        let prefilters = &mut features.prefilters;
        prefilters.push_document(&self.sketches, document, added);
        self.shuffle_blocks.bytes += 8 * added.len() + 84;
        features.ends.push(features.features.len() as u32);
    }

    fn add_document_keys(&mut self, (name, part): (TextName, u64), document: DocId) {
        let Self {
            setup,
            sketches,
            buffer: keys,
            shuffle_blocks,
            ..
        } = self;
        keys.clear();
        let by_sentences = setup.plan.sentence_count().is_some();
        if by_sentences {
            let text = equal_text_key(sketches.text_key(document));
            keys.push(mix_bits(text ^ TEXTS));
        }
        SketchKeys::new(&setup.plan).visit_keys(SketchRef { sketches, document }, |key| {
            keys.push(if by_sentences { mix_bits(key) } else { key });
        });
        if keys.is_empty() {
            return;
        }
        keys.iter_mut()
            .for_each(|key| *key = setup.partitioned_key(*key, part));
        let to = &mut shuffle_blocks.keys;
        to.nodes.push(name.text_node());
        to.prefilters.push_document(sketches, document, &[]);
        let at = to.nodes.len() as u32 - 1;
        to.entries.extend(
            keys.iter()
                .map(|&key| ShuffleKey::on_indexing_side(key, at)),
        );
        shuffle_blocks.bytes += 84 + 12 * keys.len();
    }

    /// Takes the blocks that are ready. More documents may follow.
    pub fn take_blocks(&mut self) -> Vec<ShuffleBlock> {
        let fresh = PendingBlocks::new(&self.setup);
        std::mem::replace(&mut self.shuffle_blocks, fresh).into_blocks()
    }
}

/// Constant that separates the keys of equal texts from those of sentences.
const TEXTS: u64 = 0x2545_f491_4f6c_dd1d;

impl PendingBlocks {
    fn push_id(&mut self, id: &str) {
        self.ids.push(id.to_owned());
        self.bytes += id.len() + 4;
    }

    /// Counts a text. Returns `true` if it is the first of its name.
    fn push_text(&mut self, name: TextName, position: Vec<u8>) -> bool {
        match self.texts.entry(name) {
            Entry::Vacant(entry) => {
                self.bytes += position.len() + 24;
                entry.insert((1, position));
                true
            }
            Entry::Occupied(mut entry) => {
                let (documents, first) = entry.get_mut();
                *documents += 1;
                if position < *first {
                    *first = position;
                }
                false
            }
        }
    }
}

/// The frequencies of features over all portions, which select the rarest ones as keys.
///
/// Every feature of a set could be a key, but those of its prefix are enough (see `candidates::PrefixLengths`).
/// A table loses no pair if it counts no feature less often than it occurs. So it must contain every portion: one
/// that lacks a portion, for example the empty default, loses pairs. Memory: 4 MiB.
pub struct FeatureOrder {
    frequencies: FeatureCounters,
}

const COUNTERS: usize = 1 << 20;

impl Default for FeatureOrder {
    fn default() -> Self {
        let frequencies = FeatureCounters::from_counts(vec![0; COUNTERS]);
        Self { frequencies }
    }
}

impl FeatureOrder {
    /// Reads a table that was written by [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Fails if the number of bytes is not that of a table.
    pub fn decode_order(bytes: &[u8]) -> Result<Self> {
        let (counts, rest) = bytes.as_chunks::<4>();
        if counts.len() != COUNTERS || !rest.is_empty() {
            return Err(Error::setting_error(format!(
                "a table of frequencies has {} bytes, not {}",
                4 * COUNTERS,
                bytes.len()
            )));
        }
        let counts = counts.iter().map(|count| u32::from_le_bytes(*count));
        Ok(Self {
            frequencies: FeatureCounters::from_counts(counts.collect()),
        })
    }

    /// Returns all counts as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.frequencies
            .iter_counts()
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    /// Counts the features of a block.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features.
    pub fn count_features(&self, setup: &ShuffleSetup, block: &[u8]) -> Result<()> {
        let features = features_of(setup, block)?;
        features.visit_documents(|_, features| self.frequencies.count_features(features));
        Ok(())
    }

    /// Returns a table with the counts of another one added.
    #[must_use]
    pub fn merge_counts(self, other: &Self) -> Self {
        let pairs = self
            .frequencies
            .iter_counts()
            .zip(other.frequencies.iter_counts());
        let sums = pairs.map(|(one, other)| one.saturating_add(other));
        let frequencies = FeatureCounters::from_counts(sums.collect());
        Self { frequencies }
    }

    /// Returns the rarest features of a block's documents as keys, in shuffle blocks for `parts` parts.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features, or if there are no parts.
    pub fn rarest_keys(
        &self,
        setup: &ShuffleSetup,
        block: &[u8],
        parts: u32,
    ) -> Result<Vec<ShuffleBlock>> {
        refuse_no_parts(parts)?;
        let features = features_of(setup, block)?;
        let layout = features.prefilters.layout();
        let mut to: Vec<_> = (0..parts)
            .map(|_| ShuffleKeys::new(setup, layout, DenseKeyAction::Split))
            .collect();
        let bound = setup.plan.overlap_bound();
        let (mut rarest, mut keys) = (RarestFeatures::default(), Vec::new());
        features.visit_documents(|document, set| {
            let prefixes = PrefixLengths::with_one_hit(set.len().max(1), bound);
            rarest.select(set, &self.frequencies, prefixes, 1, 0);
            keys.clear();
            let part = features.parts.get(document).copied().unwrap_or(0);
            let parted = |(key, side)| (setup.partitioned_key(key, part), side);
            keys.extend(rarest.bucket_keys().map(parted));
            send_by_part(&mut keys, &mut to, |to, keys| {
                to.push_document(
                    features.nodes[document],
                    &features.prefilters,
                    document,
                    keys,
                );
            });
        });
        let shuffle_blocks = (0..).zip(to).filter(|(_, keys)| !keys.nodes.is_empty());
        Ok(shuffle_blocks
            .map(|(part, keys)| ShuffleBlock {
                kind: ShuffleBlockKind::Part,
                part,
                block: keys.encode_block(),
            })
            .collect())
    }
}

fn features_of(setup: &ShuffleSetup, block: &[u8]) -> Result<ShuffleFeatures> {
    match blocks::decode_block(setup, block)? {
        ShuffleContent::Features(features) => Ok(features),
        _ => Err(Error::setting_error(
            "a block holds no features: frequencies are counted from blocks of features only",
        )),
    }
}
