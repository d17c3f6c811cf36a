//! Collects the bucket keys of sketched documents, and the features that become keys later.

use std::sync::Arc;

use super::blocks::{DenseKeyAction, ShuffleFeatures, ShuffleKey, ShuffleKeys};
use super::prefilter::PrefilterLayout;
use super::scatter::{ShuffleBlock, ShuffleBlockKind};
use super::{ShuffleSetup, TextNode};
use crate::candidates::{SketchKeys, equal_text_key};
use crate::hash::mix_bits;
use crate::similarity::SketchRef;
use crate::sketch::DocumentSketches;
use crate::text::{TextAnalysis, TextState};
use crate::types::DocId;

/// A document with its sketches and its analysis.
pub(super) struct AnalysedDocument<'a> {
    pub(super) node: TextNode,
    /// Partition, if documents match only within one.
    pub(super) partition: u64,
    pub(super) sketches: &'a DocumentSketches,
    /// Number of the document in `sketches`.
    pub(super) at: DocId,
    pub(super) analysis: &'a TextAnalysis<'a>,
}

/// The purpose of collected features, which is also their index in [`KeyCollector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeatureKind {
    OfDenseBuckets,
    OfExactJoin,
}

/// Bucket keys and features that have not been taken yet.
pub(super) struct KeyCollector {
    setup: Arc<ShuffleSetup>,
    keys: ShuffleKeys,
    features: [ShuffleFeatures; 2],
    bytes: usize,
    buffer: Vec<u64>,
}

/// Constant that separates the keys of equal texts from those of sentences.
const EQUAL_TEXT_MIX: u64 = 0x2545_f491_4f6c_dd1d;

impl KeyCollector {
    pub(super) fn new(setup: Arc<ShuffleSetup>) -> Self {
        let dense_action = if setup.refines_dense_keys() {
            DenseKeyAction::Refine
        } else {
            DenseKeyAction::Split
        };
        let layout = PrefilterLayout::of_sketches(&setup);
        Self {
            keys: ShuffleKeys::new(&setup, layout, dense_action),
            features: [layout, PrefilterLayout::of_features(&setup)]
                .map(|layout| ShuffleFeatures::new(&setup, layout)),
            bytes: 0,
            buffer: Vec::new(),
            setup,
        }
    }

    /// Returns the approximate number of bytes that can be taken.
    pub(super) fn pending_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the keys of a document, and its features if it takes part in the exact join.
    pub(super) fn add_keys(&mut self, document: &AnalysedDocument<'_>) {
        self.add_sketch_keys(document);
        let AnalysedDocument { sketches, at, .. } = *document;
        let is_rich = sketches.text_state(at) == TextState::Fingerprintable;
        let is_joined = self.setup.plan.join_plan().is_some_and(|join| {
            let size = sketches.set_summary(at).size as usize;
            is_rich && size > 0 && size <= join.max_partner_features
        });
        if is_joined {
            self.add_features(document, FeatureKind::OfExactJoin);
        }
    }

    fn add_sketch_keys(&mut self, document: &AnalysedDocument<'_>) {
        let AnalysedDocument { sketches, at, .. } = *document;
        let (setup, keys) = (&self.setup, &mut self.buffer);
        keys.clear();
        let has_equal_key = setup.plan.equal_key().is_some();
        if has_equal_key {
            let text = equal_text_key(sketches.text_key(at));
            keys.push(mix_bits(text ^ EQUAL_TEXT_MIX));
        }
        let sketch = SketchRef {
            sketches,
            document: at,
        };
        SketchKeys::new(&setup.plan).visit_keys(sketch, |key| {
            keys.push(if has_equal_key { mix_bits(key) } else { key });
        });
        if keys.is_empty() {
            return;
        }
        keys.iter_mut()
            .for_each(|key| *key = setup.partitioned_key(*key, document.partition));
        let to = &mut self.keys;
        to.nodes.push(document.node);
        to.prefilters.push_document(sketches, at, &[]);
        let place = to.nodes.len() as u32 - 1;
        to.entries.extend(
            keys.iter()
                .map(|&key| ShuffleKey::on_indexing_side(key, place)),
        );
        self.bytes += 84 + 12 * keys.len();
    }

    /// Adds the features of a document.
    pub(super) fn add_features(&mut self, document: &AnalysedDocument<'_>, kind: FeatureKind) {
        let AnalysedDocument { sketches, at, .. } = *document;
        let features = &mut self.features[kind as usize];
        let start = features.features.len();
        match sketches.kept_features(at) {
            Some(kept) => features.features.extend_from_slice(kept),
            None => document.analysis.append_features(&mut features.features),
        }
        features.nodes.push(document.node);
        let has_partitions = self.setup.bounds.within;
        features
            .partitions
            .extend(has_partitions.then_some(document.partition));
        let added = &features.features[start..];
        features.prefilters.push_document(sketches, at, added);
        self.bytes += 8 * added.len() + 84;
        features.ends.push(features.features.len() as u32);
    }

    /// Returns the keys of sketches that have not been taken.
    pub(super) fn keys(&self) -> &ShuffleKeys {
        &self.keys
    }

    /// Returns the features that have not been taken, of each kind.
    pub(super) fn features(&self) -> impl Iterator<Item = &ShuffleFeatures> {
        self.features.iter()
    }

    /// Takes the blocks that are ready: keys, then features.
    pub(super) fn take_blocks(&mut self) -> Vec<ShuffleBlock> {
        let fresh = Self::new(self.setup.clone());
        let taken = std::mem::replace(self, fresh);
        let keys = Some(&taken.keys).filter(|keys| !keys.nodes.is_empty());
        let keys = keys.map(|keys| ShuffleBlock::of_parts(keys.encode_block()));
        let features = taken.features.iter();
        let features = features.filter(|features| !features.nodes.is_empty());
        let features = features.map(|features| ShuffleBlock {
            kind: ShuffleBlockKind::Features,
            part: 0,
            block: features.encode_block(),
        });
        keys.into_iter().chain(features).collect()
    }
}
