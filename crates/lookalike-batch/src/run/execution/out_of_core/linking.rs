//! Finds the components of documents that may match: keys by parts, links within each part.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::DocId;
use lookalike::shuffle::{
    BlockGatherer, EqualTexts, GatheredLinks, LocalKeys, LocalLinks, ShuffleBlockKind,
};
use lookalike_io::error::{Error, Result};
use rayon::prelude::*;

use crate::ranked_set::RankedSet;
use crate::run::execution::out_of_core::spilled_reading::{FEATURES_PART, KEYS_PART, SpillFiles};
use crate::run::execution::out_of_core::{into_inner, lock};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::reading::reading_sink::ReadBuffers;
use crate::temporary::part_file::PartFile;

/// Number of parts with which the size of all keys is estimated.
const TRIED_PARTS: u32 = 16;

/// Number of blocks of each kind from which the size of all keys is estimated.
const TRIED_BLOCKS: usize = 16;

/// Largest number of parts.
const MOST_PARTS: u64 = 1024;

/// Number of documents of dense buckets that a thread reads again at once.
const DENSE_DOCUMENTS_AT_ONCE: usize = 512;

/// The component of every node, and the earliest node with the same text. For nodes see
/// [`node_of`](crate::run::reading::corpus_rows::CorpusRows::node_of).
pub(super) struct LinkedNodes {
    components: Vec<u32>,
    /// Nodes whose text an earlier one has; none if equal texts are not merged.
    repeats: RankedSet,
    /// For each of these the earliest node with its text.
    earliest: Vec<u32>,
}

impl LinkedNodes {
    /// Returns the number of nodes, which is also the number of possible components.
    pub(super) fn len(&self) -> usize {
        self.components.len()
    }

    /// Returns the component of a document.
    pub(super) fn component_of(&self, corpus: &RunCorpus<'_>, document: DocId) -> u32 {
        self.components[corpus.node_of(document) as usize]
    }

    /// Returns the earliest document with the text of another one, unless that is the earliest itself or equal texts
    /// are not merged.
    pub(super) fn earlier_equal(&self, corpus: &RunCorpus<'_>, document: DocId) -> Option<DocId> {
        let at = self.repeats.rank_of(corpus.node_of(document))?;
        corpus.document_of_node(self.earliest[at])
    }
}

/// Finds the components of all documents. Also returns the bytes that were written to temporary files.
///
/// # Errors
/// If temporary files or inputs cannot be read or written.
pub(super) fn link_documents(
    reading: &mut SpillFiles,
    corpus: &RunCorpus<'_>,
    merges_equal_texts: bool,
) -> Result<(LinkedNodes, u64)> {
    reading.finish_writing()?;
    reading.choose_keys()?;
    let linking = DocumentLinking::new(reading, corpus);
    let repeats = linking.link_equal_texts(merges_equal_texts)?;
    let dense_nodes = linking.link_keys(&reading.keys, &reading.blocks)?;
    linking.link_dense_documents(&dense_nodes)?;
    Ok(linking.into_nodes(repeats))
}

struct DocumentLinking<'a> {
    reading: &'a SpillFiles,
    corpus: &'a RunCorpus<'a>,
    links: Mutex<LocalLinks>,
    written: AtomicU64,
}

/// The nodes whose text an earlier one has, and for each the earliest one.
struct TextRepeats {
    repeats: RankedSet,
    earliest: Vec<u32>,
}

/// Dense buckets, whose documents are not linked yet after all parts were gathered.
struct UnlinkedBuckets {
    /// Nodes that need keys of their rarest features.
    dense_nodes: BTreeSet<u32>,
    /// The other buckets, divided into squares: every two portions of a bucket are compared as a part of their own.
    squares: PartFile,
}

impl<'a> DocumentLinking<'a> {
    fn new(reading: &'a SpillFiles, corpus: &'a RunCorpus<'a>) -> Self {
        Self {
            reading,
            corpus,
            links: Mutex::new(LocalLinks::with_documents(corpus.node_count())),
            written: AtomicU64::new(0),
        }
    }

    fn into_nodes(self, TextRepeats { repeats, earliest }: TextRepeats) -> (LinkedNodes, u64) {
        let nodes = LinkedNodes {
            components: into_inner(self.links).into_components(),
            repeats,
            earliest,
        };
        (nodes, self.written.into_inner())
    }

    fn create_file(&self, parts: u32) -> Result<PartFile> {
        let reading = self.reading;
        PartFile::create_file(
            reading.directory.as_deref(),
            parts,
            reading.shares.buffered_bytes,
        )
    }

    /// Links the documents of all keys. Returns the nodes that need keys of their rarest features.
    fn link_keys(&self, keys: &LocalKeys, blocks: &PartFile) -> Result<BTreeSet<u32>> {
        let parts = self.count_parts(keys, blocks)?;
        let divided = self.divide_blocks(keys, blocks, parts)?;
        let unlinked = self.gather_parts(&divided)?;
        drop(divided);
        self.gather_parts(&unlinked.squares)?;
        Ok(unlinked.dense_nodes)
    }

    /// Links documents of equal texts. If these are merged, returns the nodes whose text an earlier one has.
    fn link_equal_texts(&self, merges: bool) -> Result<TextRepeats> {
        let repeats = Mutex::new(Vec::new());
        let ranks = self.corpus.node_ranks();
        let rank = |node: u32| ranks.as_ref().map_or(node, |ranks| ranks[node as usize]);
        let texts = &self.reading.texts;
        let parts = (0..texts.part_count()).into_par_iter();
        parts.try_for_each(|part| {
            let mut equal = EqualTexts::with_bytes(texts.part_bytes(part));
            texts.visit_part(part, |names| Ok(equal.append_names(names)?))?;
            equal.sort_names(rank);
            let mut links = lock(&self.links);
            let mut repeats = lock(&repeats);
            equal.visit_repeats(|repeat, first| {
                links.add_link(repeat, first);
                if merges {
                    repeats.push((repeat, first));
                }
            });
            Ok::<_, Error>(())
        })?;
        let mut repeats = into_inner(repeats);
        repeats.par_sort_unstable();
        let numbers = repeats.iter().map(|&(repeat, _)| repeat);
        Ok(TextRepeats {
            repeats: RankedSet::from_numbers(self.corpus.node_count(), numbers),
            earliest: repeats.iter().map(|&(_, first)| first).collect(),
        })
    }

    /// Returns the number of parts in which keys fit into the memory.
    fn count_parts(&self, keys: &LocalKeys, blocks: &PartFile) -> Result<u32> {
        let mut bytes = 0.0;
        for kind in [KEYS_PART, FEATURES_PART] {
            let all = blocks.extent_count(kind);
            let step = all.div_ceil(TRIED_BLOCKS).max(1);
            let (mut read_bytes, mut divided_bytes) = (0, 0);
            for at in (0..all).step_by(step) {
                blocks.visit_extent(kind, at, |block| {
                    read_bytes += block.len();
                    let divided = keys.divide_keys(block, TRIED_PARTS)?;
                    divided_bytes += divided.iter().map(|part| part.block.len()).sum::<usize>();
                    Ok(())
                })?;
            }
            let share = divided_bytes as f64 / read_bytes.max(1) as f64;
            bytes += share * blocks.part_bytes(kind) as f64;
        }
        let parts = (bytes / self.reading.shares.part_bytes as f64).ceil() as u64;
        let fewest = rayon::current_num_threads() as u64;
        Ok(parts.clamp(fewest, MOST_PARTS.max(fewest)) as u32)
    }

    /// Divides keys and features among parts.
    fn divide_blocks(&self, keys: &LocalKeys, blocks: &PartFile, parts: u32) -> Result<PartFile> {
        let divided = self.create_file(parts)?;
        for kind in [KEYS_PART, FEATURES_PART] {
            let all = (0..blocks.extent_count(kind)).into_par_iter();
            all.try_for_each(|at| {
                blocks.visit_extent(kind, at, |block| {
                    let key_parts = keys.divide_keys(block, parts)?;
                    let mut key_parts = key_parts.iter();
                    key_parts.try_for_each(|part| divided.push_block(part.part, &part.block))
                })
            })?;
        }
        self.finish_file(&divided)?;
        Ok(divided)
    }

    fn finish_file(&self, file: &PartFile) -> Result<()> {
        file.finish_writing()?;
        self.written
            .fetch_add(file.written_bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// Links the documents of every part, as many parts at once as there are threads.
    fn gather_parts(&self, parts: &PartFile) -> Result<UnlinkedBuckets> {
        let squares = self.create_file(parts.part_count())?;
        let all_dense_nodes = Mutex::new(BTreeSet::new());
        let each = (0..parts.part_count()).into_par_iter();
        each.try_for_each(|part| {
            let mut gatherer = BlockGatherer::new(self.reading.setup.clone());
            parts.visit_part(part, |block| Ok(gatherer.add_block(block)?))?;
            let GatheredLinks {
                links,
                dense_nodes,
                split,
                ..
            } = gatherer.finish_gathering(parts.part_count());
            lock(&self.links).add_links(&links)?;
            lock(&all_dense_nodes).extend(dense_nodes.iter().map(|node| node.0 as u32));
            let mut split = split.iter();
            split.try_for_each(|part| squares.push_block(part.part, &part.block))
        })?;
        self.finish_file(&squares)?;
        Ok(UnlinkedBuckets {
            dense_nodes: into_inner(all_dense_nodes),
            squares,
        })
    }

    /// Links documents of dense buckets by their rarest features, which are made again from their texts.
    fn link_dense_documents(&self, dense_nodes: &BTreeSet<u32>) -> Result<()> {
        if dense_nodes.is_empty() {
            return Ok(());
        }
        let reading = self.reading;
        let keys = LocalKeys::new(reading.setup.clone(), dense_nodes.len(), 0, 0);
        let blocks = PartFile::with_single_blocks(reading.directory.as_deref(), 2)?;
        let nodes: Vec<u32> = dense_nodes.iter().copied().collect();
        let portions = nodes.par_chunks(DENSE_DOCUMENTS_AT_ONCE);
        portions.try_for_each(|nodes| self.scatter_dense(nodes, &keys, &blocks))?;
        self.finish_file(&blocks)?;
        // Keys are not chosen: combinations of sets of many features would be too many.
        self.link_keys(&keys, &blocks).map(drop)
    }

    /// Writes the features of some documents of dense buckets, which are read again.
    fn scatter_dense(&self, nodes: &[u32], keys: &LocalKeys, blocks: &PartFile) -> Result<()> {
        let mut scatterer = self.reading.new_scatterer();
        let sketcher = self.reading.setup.document_sketcher();
        let mut sketches = sketcher.new_sketches(0);
        let mut buffers = ReadBuffers::default();
        for &node in nodes {
            let document = self.corpus.document_of_node(node).ok_or_else(|| {
                Error::input_error(format!("no document has the number {node} of a link"))
            })?;
            let partition = self.corpus.partition_of(document);
            self.corpus
                .analyze_again(document, &mut buffers, |analysis| {
                    sketcher.add_document(analysis, &mut sketches);
                    let at = DocId(sketches.len() as u32 - 1);
                    scatterer.add_dense_document(node, partition, &sketches, at, analysis);
                })?;
        }
        for block in scatterer.take_blocks(keys) {
            debug_assert_eq!(block.kind, ShuffleBlockKind::Features);
            blocks.push_block(FEATURES_PART, &block.block)?;
        }
        Ok(())
    }
}
