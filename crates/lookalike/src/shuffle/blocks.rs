//! Blocks of bytes that the steps exchange.
//!
//! ```text
//! keys      0 | layout (1) | on dense bucket (1) | documents (4) | keys (4)
//!             | nodes (8 each) | prefilter data | keys (8 each) | side and place (4 each)
//! features  1 | layout (1) | documents (4) | features (4)
//!             | nodes (8 each) | partitions (8 each, or none) | prefilter data | ends (4 each)
//!             | features (8 each)
//! texts     2 | texts (4) | per text: name (16), documents (4), length (4), first position
//! ids       3 | ids (4) | per id: length (4), bytes
//! ```
//!
//! All integers are little-endian. A block lives no longer than its run, so the format may change
//! between versions.

use super::prefilter::{PrefilterColumn, PrefilterLayout};
use super::{ShuffleSetup, TextName, TextNode};
use crate::byte_reader::ByteReader;
use crate::candidates::BucketSide;
use crate::error::{Error, Result};

/// The treatment of a key that too many different documents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DenseKeyAction {
    /// Its documents get keys of their rarest features.
    Refine,
    /// It is divided into squares of portions.
    Split,
    /// It is compared at any cost, because it is such a square.
    Whole,
}

impl DenseKeyAction {
    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Refine, Self::Split, Self::Whole];
        all.into_iter()
            .find(|dense_action| *dense_action as u8 == number)
    }
}

/// Bucket keys of documents.
#[derive(Clone, Debug)]
pub(super) struct ShuffleKeys {
    pub(super) dense_action: DenseKeyAction,
    pub(super) nodes: Vec<TextNode>,
    pub(super) prefilters: PrefilterColumn,
    pub(super) entries: Vec<ShuffleKey>,
}

/// A bucket key of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShuffleKey {
    pub(super) key: u64,
    pub(super) side: BucketSide,
    /// Place of the document in its block.
    pub(super) at: u32,
}

impl ShuffleKey {
    /// Returns a key under which a document is a candidate for all others with the key.
    pub(super) fn on_indexing_side(key: u64, at: u32) -> Self {
        let side = BucketSide::Indexing;
        Self { key, side, at }
    }

    /// Returns the place, with the side in the highest bit.
    fn sided_place(&self) -> u32 {
        self.at
            | if self.side == BucketSide::Probing {
                PROBING_BIT
            } else {
                0
            }
    }

    fn with_sided_place(key: u64, place: u32) -> Self {
        let probing = place & PROBING_BIT != 0;
        Self {
            key,
            side: if probing {
                BucketSide::Probing
            } else {
                BucketSide::Indexing
            },
            at: place & !PROBING_BIT,
        }
    }
}

/// Bit of a place that marks the probing side. A block has fewer documents than this.
const PROBING_BIT: u32 = 1 << 31;

/// Sets of features.
#[derive(Clone, Debug)]
pub(super) struct ShuffleFeatures {
    pub(super) nodes: Vec<TextNode>,
    /// Partitions of the documents; empty if documents match across partitions.
    pub(super) partitions: Vec<u64>,
    pub(super) prefilters: PrefilterColumn,
    pub(super) ends: Vec<u32>,
    pub(super) features: Vec<u64>,
}

/// The content of a block.
pub(super) enum ShuffleContent {
    Keys(ShuffleKeys),
    Features(ShuffleFeatures),
    Texts(Vec<TextRecord>),
    Ids(Vec<String>),
}

/// A text, the number of documents of a portion that have it, and the position of the first of them.
pub(super) struct TextRecord {
    pub(super) name: TextName,
    pub(super) documents: u32,
    pub(super) first: Vec<u8>,
}

const KEYS_TAG: u8 = 0;
const FEATURES_TAG: u8 = 1;
const TEXTS_TAG: u8 = 2;
const IDS_TAG: u8 = 3;

pub(super) fn damaged_block() -> Error {
    Error::setting_error(
        "a block is truncated or damaged: give blocks that an earlier step of this run made",
    )
}

impl ShuffleKeys {
    pub(super) fn new(
        setup: &ShuffleSetup,
        layout: PrefilterLayout,
        dense_action: DenseKeyAction,
    ) -> Self {
        Self {
            dense_action,
            nodes: Vec::new(),
            prefilters: PrefilterColumn::new(layout, setup),
            entries: Vec::new(),
        }
    }

    /// Appends a document with its keys. Its prefilter data is at index `at` of `prefilters`, which must
    /// have the same layout.
    pub(super) fn push_document(
        &mut self,
        node: TextNode,
        prefilters: &PrefilterColumn,
        at: usize,
        keys: &[(u64, BucketSide)],
    ) {
        let place = self.nodes.len() as u32;
        self.nodes.push(node);
        self.prefilters.copy_entry(prefilters, at);
        let entry = |&(key, side): &(u64, BucketSide)| ShuffleKey {
            key,
            side,
            at: place,
        };
        self.entries.extend(keys.iter().map(entry));
    }

    /// Appends the documents and keys of another block.
    pub(super) fn append_block(&mut self, other: &Self) {
        let base = self.nodes.len() as u32;
        for at in 0..other.nodes.len() {
            self.prefilters.copy_entry(&other.prefilters, at);
        }
        self.nodes.extend_from_slice(&other.nodes);
        let entries = other.entries.iter();
        self.entries.extend(entries.map(|entry| ShuffleKey {
            at: base + entry.at,
            ..*entry
        }));
    }

    pub(super) fn encode_block(&self) -> Vec<u8> {
        let layout = self.prefilters.layout().layout_number();
        let mut into = vec![KEYS_TAG, layout, self.dense_action as u8];
        put_length(self.nodes.len(), &mut into);
        put_length(self.entries.len(), &mut into);
        put_nodes(&self.nodes, &mut into);
        self.prefilters.encode_column(&mut into);
        for entry in &self.entries {
            into.extend(entry.key.to_le_bytes());
        }
        for entry in &self.entries {
            into.extend(entry.sided_place().to_le_bytes());
        }
        into
    }
}

impl ShuffleFeatures {
    pub(super) fn new(setup: &ShuffleSetup, layout: PrefilterLayout) -> Self {
        Self {
            nodes: Vec::new(),
            partitions: Vec::new(),
            prefilters: PrefilterColumn::new(layout, setup),
            ends: Vec::new(),
            features: Vec::new(),
        }
    }

    pub(super) fn encode_block(&self) -> Vec<u8> {
        let mut into = vec![FEATURES_TAG, self.prefilters.layout().layout_number()];
        put_length(self.nodes.len(), &mut into);
        put_length(self.features.len(), &mut into);
        put_nodes(&self.nodes, &mut into);
        let partitions = self.partitions.iter();
        partitions.for_each(|partition| into.extend(partition.to_le_bytes()));
        self.prefilters.encode_column(&mut into);
        self.ends
            .iter()
            .for_each(|end| into.extend(end.to_le_bytes()));
        let features = self.features.iter();
        features.for_each(|feature| into.extend(feature.to_le_bytes()));
        into
    }

    /// Calls `visit` with the place and the features of every document.
    pub(super) fn visit_documents(&self, mut visit: impl FnMut(usize, &[u64])) {
        let mut start = 0;
        for (at, &end) in self.ends.iter().enumerate() {
            visit(at, &self.features[start..end as usize]);
            start = end as usize;
        }
    }
}

pub(super) fn write_texts<'t>(
    texts: impl ExactSizeIterator<Item = (TextName, u32, &'t [u8])>,
) -> Vec<u8> {
    let mut into = vec![TEXTS_TAG];
    put_length(texts.len(), &mut into);
    for (name, documents, first) in texts {
        into.extend(name.0.to_le_bytes());
        into.extend(documents.to_le_bytes());
        put_bytes(first, &mut into);
    }
    into
}

pub(super) fn encode_ids<'t>(ids: impl ExactSizeIterator<Item = &'t str>) -> Vec<u8> {
    let mut into = vec![IDS_TAG];
    put_length(ids.len(), &mut into);
    ids.for_each(|id| put_bytes(id.as_bytes(), &mut into));
    into
}

fn put_length(length: usize, into: &mut Vec<u8>) {
    into.extend((length as u32).to_le_bytes());
}

fn put_bytes(bytes: &[u8], into: &mut Vec<u8>) {
    put_length(bytes.len(), into);
    into.extend_from_slice(bytes);
}

fn put_nodes(nodes: &[TextNode], into: &mut Vec<u8>) {
    nodes
        .iter()
        .for_each(|node| into.extend(node.0.to_le_bytes()));
}

/// Reads a block.
pub(super) fn decode_block(setup: &ShuffleSetup, bytes: &[u8]) -> Result<ShuffleContent> {
    let mut reader = ByteReader::new(bytes);
    let block = read_block(setup, &mut reader).ok_or_else(damaged_block)?;
    if reader.is_at_end() {
        Ok(block)
    } else {
        Err(damaged_block())
    }
}

fn read_block(setup: &ShuffleSetup, reader: &mut ByteReader<'_>) -> Option<ShuffleContent> {
    match reader.read_u8()? {
        KEYS_TAG => decode_keys(setup, reader).map(ShuffleContent::Keys),
        FEATURES_TAG => read_features(setup, reader).map(ShuffleContent::Features),
        TEXTS_TAG => {
            let count = read_length(reader)?;
            let text = |_| {
                Some(TextRecord {
                    name: TextName(reader.read_u128()?),
                    documents: reader.read_u32()?,
                    first: reader.read_sized_bytes()?.to_vec(),
                })
            };
            (0..count)
                .map(text)
                .collect::<Option<_>>()
                .map(ShuffleContent::Texts)
        }
        IDS_TAG => {
            let count = read_length(reader)?;
            let id = |_| reader.read_string().map(str::to_owned);
            (0..count)
                .map(id)
                .collect::<Option<_>>()
                .map(ShuffleContent::Ids)
        }
        _ => None,
    }
}

fn decode_keys(setup: &ShuffleSetup, reader: &mut ByteReader<'_>) -> Option<ShuffleKeys> {
    let layout = PrefilterLayout::from_number(reader.read_u8()?)?;
    let dense_action = DenseKeyAction::from_number(reader.read_u8()?)?;
    let (documents, entries) = (read_length(reader)?, read_length(reader)?);
    let mut keys = ShuffleKeys::new(setup, layout, dense_action);
    keys.nodes = reader.read_list(documents, |bytes| TextNode(u64::from_le_bytes(bytes)))?;
    keys.prefilters.decode_column(reader, documents)?;
    let of_entries = reader.read_list(entries, u64::from_le_bytes)?;
    let places = reader.read_list(entries, u32::from_le_bytes)?;
    let entries = of_entries.into_iter().zip(places);
    keys.entries = entries
        .map(|(key, place)| ShuffleKey::with_sided_place(key, place))
        .collect();
    let inside = |entry: &ShuffleKey| (entry.at as usize) < documents;
    keys.entries.iter().all(inside).then_some(keys)
}

fn read_features(setup: &ShuffleSetup, reader: &mut ByteReader<'_>) -> Option<ShuffleFeatures> {
    let layout = PrefilterLayout::from_number(reader.read_u8()?)?;
    let (documents, count) = (read_length(reader)?, read_length(reader)?);
    let mut features = ShuffleFeatures::new(setup, layout);
    features.nodes = reader.read_list(documents, |bytes| TextNode(u64::from_le_bytes(bytes)))?;
    let partitioned = if setup.bounds.within { documents } else { 0 };
    features.partitions = reader.read_list(partitioned, u64::from_le_bytes)?;
    features.prefilters.decode_column(reader, documents)?;
    features.ends = reader.read_list(documents, u32::from_le_bytes)?;
    features.features = reader.read_list(count, u64::from_le_bytes)?;
    let ascending = features.ends.is_sorted();
    let last = features.ends.last().map_or(0, |&end| end as usize);
    (ascending && last == count).then_some(features)
}

fn read_length(reader: &mut ByteReader<'_>) -> Option<usize> {
    Some(reader.read_u32()? as usize)
}
