//! The first step: sketches a portion of the documents and makes their bucket keys.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks;
use super::key_collector::{AnalysedDocument, FeatureKind, KeyCollector};
use super::{ShuffleDocument, ShuffleSetup, TextName};
use crate::sketch::DocumentSketches;
use crate::text::{AnalysisScratch, TextAnalysis, TextState};
use crate::types::DocId;

/// The kind of a shuffle block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleBlockKind {
    /// Keys, texts or ids, to be spread over parts. Each part is received by one
    /// [`BlockGatherer`](super::BlockGatherer).
    Part,
    /// Features that become keys once their frequencies are known, for [`FeatureOrder`](super::FeatureOrder).
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

impl ShuffleBlock {
    /// Returns a block that is still to be spread over parts.
    pub(super) fn of_parts(block: Vec<u8>) -> Self {
        Self {
            kind: ShuffleBlockKind::Part,
            part: 0,
            block,
        }
    }
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
    collector: KeyCollector,
    pending: PendingNames,
    /// Nodes of the only documents to process, of which only features are collected.
    only: Option<Arc<Vec<u64>>>,
}

/// Texts and ids that have not been taken yet.
#[derive(Default)]
struct PendingNames {
    texts: HashMap<TextName, (u32, Vec<u8>)>,
    ids: Vec<String>,
    /// Texts of dense buckets whose features are collected.
    dense_nodes: HashSet<TextName>,
    bytes: usize,
}

impl DocumentScatterer {
    /// Returns a step without documents.
    pub fn new(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            sketches: setup.sketcher.new_sketches(1 << 20),
            scratch: AnalysisScratch::default(),
            collector: KeyCollector::new(setup.clone()),
            pending: PendingNames::default(),
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
        self.collector.pending_bytes() + self.pending.bytes
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
        let partition = document.partition;
        let at = DocId(self.sketches.len() as u32 - 1);
        let name = self.setup.text_name(&self.sketches, at, partition);
        let sketched = |name: TextName| AnalysedDocument {
            node: name.text_node(),
            partition,
            sketches: &self.sketches,
            at,
            analysis,
        };
        if let Some(only) = &self.only {
            let is_wanted = |name: &TextName| only.binary_search(&name.text_node().0).is_ok();
            let is_rich = self.sketches.text_state(at) == TextState::Fingerprintable;
            if let Some(name) = name.filter(|name| is_rich && is_wanted(name))
                && self.pending.dense_nodes.insert(name)
            {
                self.collector
                    .add_features(&sketched(name), FeatureKind::OfDenseBuckets);
            }
            return;
        }
        self.pending.push_id(&self.setup.mark_known_id(document));
        let Some(name) = name else { return };
        let position = self.setup.document_position(document);
        if self.pending.push_text(name, position) {
            self.collector.add_keys(&sketched(name));
        }
    }

    /// Takes the blocks that are ready. More documents may follow.
    pub fn take_blocks(&mut self) -> Vec<ShuffleBlock> {
        let mut blocks = std::mem::take(&mut self.pending).into_blocks();
        blocks.extend(self.collector.take_blocks());
        blocks
    }
}

impl PendingNames {
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

    fn into_blocks(self) -> Vec<ShuffleBlock> {
        let mut blocks = Vec::new();
        if !self.ids.is_empty() {
            let ids = self.ids.iter().map(String::as_str);
            blocks.push(ShuffleBlock::of_parts(blocks::encode_ids(ids)));
        }
        if !self.texts.is_empty() {
            let texts = self.texts.iter();
            let records = texts.map(|(name, (documents, first))| (*name, *documents, &first[..]));
            blocks.push(ShuffleBlock::of_parts(blocks::write_texts(records)));
        }
        blocks
    }
}
