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

use super::glance::{Glances, Layout};
use super::{Node, Setup, TextName};
use crate::error::{Error, Result};
use crate::matching::Side;
use crate::sketches::Reader;

/// The treatment of a key that too many different documents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowd {
    /// Its documents get keys of their rarest features.
    Refine,
    /// It is divided into squares of portions.
    Split,
    /// It is compared at any cost, because it is such a square.
    Whole,
}

impl Crowd {
    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Refine, Self::Split, Self::Whole];
        all.into_iter().find(|crowd| *crowd as u8 == number)
    }
}

/// Bucket keys of documents.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) crowd: Crowd,
    pub(super) nodes: Vec<Node>,
    pub(super) glances: Glances,
    pub(super) entries: Vec<Keyed>,
}

/// A bucket key of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed {
    pub(super) key: u64,
    pub(super) side: Side,
    /// Place of the document in its block.
    pub(super) at: u32,
}

impl Keyed {
    /// Returns a key under which a document is a candidate for all others with the key.
    pub(super) fn full(key: u64, at: u32) -> Self {
        let side = Side::Full;
        Self { key, side, at }
    }

    /// Returns the place, with the side in the highest bit.
    fn sided_place(&self) -> u32 {
        self.at
            | if self.side == Side::Probing {
                PROBING
            } else {
                0
            }
    }

    fn with_sided_place(key: u64, place: u32) -> Self {
        let probing = place & PROBING != 0;
        Self {
            key,
            side: if probing { Side::Probing } else { Side::Full },
            at: place & !PROBING,
        }
    }
}

/// Bit of a place that marks the probing side. A block has fewer documents than this.
const PROBING: u32 = 1 << 31;

/// Sets of features.
#[derive(Clone, Debug)]
pub(super) struct Features {
    pub(super) nodes: Vec<Node>,
    /// Partitions of the documents; empty if documents match across partitions.
    pub(super) parts: Vec<u64>,
    pub(super) glances: Glances,
    pub(super) ends: Vec<u32>,
    pub(super) features: Vec<u64>,
}

/// The content of a block.
pub(super) enum Block {
    Keys(Keys),
    Features(Features),
    Texts(Vec<TextRecord>),
    Ids(Vec<String>),
}

/// A text, the number of documents of a portion that have it, and the position of the first of them.
pub(super) struct TextRecord {
    pub(super) name: TextName,
    pub(super) documents: u32,
    pub(super) first: Vec<u8>,
}

const KEYS: u8 = 0;
const FEATURES: u8 = 1;
const TEXTS: u8 = 2;
const IDS: u8 = 3;

pub(super) fn damaged() -> Error {
    Error::setting(
        "a block is truncated or damaged: give blocks that an earlier step of this run made",
    )
}

impl Keys {
    pub(super) fn new(setup: &Setup, layout: Layout, crowd: Crowd) -> Self {
        Self {
            crowd,
            nodes: Vec::new(),
            glances: Glances::new(layout, setup),
            entries: Vec::new(),
        }
    }

    /// Appends a document with its keys. Its prefilter data is at index `at` of `glances`, which must
    /// have the same layout.
    pub(super) fn push(&mut self, node: Node, glances: &Glances, at: usize, keys: &[(u64, Side)]) {
        let place = self.nodes.len() as u32;
        self.nodes.push(node);
        self.glances.copy(glances, at);
        let entry = |&(key, side): &(u64, Side)| Keyed {
            key,
            side,
            at: place,
        };
        self.entries.extend(keys.iter().map(entry));
    }

    /// Appends the documents and keys of another block.
    pub(super) fn append(&mut self, other: &Self) {
        let base = self.nodes.len() as u32;
        for at in 0..other.nodes.len() {
            self.glances.copy(&other.glances, at);
        }
        self.nodes.extend_from_slice(&other.nodes);
        let entries = other.entries.iter();
        self.entries.extend(entries.map(|entry| Keyed {
            at: base + entry.at,
            ..*entry
        }));
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let layout = self.glances.layout().number();
        let mut into = vec![KEYS, layout, self.crowd as u8];
        put_length(self.nodes.len(), &mut into);
        put_length(self.entries.len(), &mut into);
        put_nodes(&self.nodes, &mut into);
        self.glances.write(&mut into);
        for entry in &self.entries {
            into.extend(entry.key.to_le_bytes());
        }
        for entry in &self.entries {
            into.extend(entry.sided_place().to_le_bytes());
        }
        into
    }
}

impl Features {
    pub(super) fn new(setup: &Setup, layout: Layout) -> Self {
        Self {
            nodes: Vec::new(),
            parts: Vec::new(),
            glances: Glances::new(layout, setup),
            ends: Vec::new(),
            features: Vec::new(),
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut into = vec![FEATURES, self.glances.layout().number()];
        put_length(self.nodes.len(), &mut into);
        put_length(self.features.len(), &mut into);
        put_nodes(&self.nodes, &mut into);
        let parts = self.parts.iter();
        parts.for_each(|part| into.extend(part.to_le_bytes()));
        self.glances.write(&mut into);
        self.ends
            .iter()
            .for_each(|end| into.extend(end.to_le_bytes()));
        let features = self.features.iter();
        features.for_each(|feature| into.extend(feature.to_le_bytes()));
        into
    }

    /// Calls `visit` with the place and the features of every document.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, &[u64])) {
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
    let mut into = vec![TEXTS];
    put_length(texts.len(), &mut into);
    for (name, documents, first) in texts {
        into.extend(name.0.to_le_bytes());
        into.extend(documents.to_le_bytes());
        put_bytes(first, &mut into);
    }
    into
}

pub(super) fn write_ids<'t>(ids: impl ExactSizeIterator<Item = &'t str>) -> Vec<u8> {
    let mut into = vec![IDS];
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

fn put_nodes(nodes: &[Node], into: &mut Vec<u8>) {
    nodes
        .iter()
        .for_each(|node| into.extend(node.0.to_le_bytes()));
}

/// Reads a block.
pub(super) fn read(setup: &Setup, bytes: &[u8]) -> Result<Block> {
    let mut reader = Reader(bytes);
    let block = read_block(setup, &mut reader).ok_or_else(damaged)?;
    if reader.0.is_empty() {
        Ok(block)
    } else {
        Err(damaged())
    }
}

fn read_block(setup: &Setup, reader: &mut Reader<'_>) -> Option<Block> {
    match byte(reader)? {
        KEYS => read_keys(setup, reader).map(Block::Keys),
        FEATURES => read_features(setup, reader).map(Block::Features),
        TEXTS => {
            let count = length(reader)?;
            let text = |_| {
                Some(TextRecord {
                    name: TextName(u128::from_le_bytes(reader.array()?)),
                    documents: u32::from_le_bytes(reader.array()?),
                    first: string(reader)?,
                })
            };
            (0..count)
                .map(text)
                .collect::<Option<_>>()
                .map(Block::Texts)
        }
        IDS => {
            let count = length(reader)?;
            let id = |_| String::from_utf8(string(reader)?).ok();
            (0..count).map(id).collect::<Option<_>>().map(Block::Ids)
        }
        _ => None,
    }
}

fn read_keys(setup: &Setup, reader: &mut Reader<'_>) -> Option<Keys> {
    let layout = Layout::from_number(byte(reader)?)?;
    let crowd = Crowd::from_number(byte(reader)?)?;
    let (documents, entries) = (length(reader)?, length(reader)?);
    let mut keys = Keys::new(setup, layout, crowd);
    keys.nodes = reader.list(documents, |bytes| Node(u64::from_le_bytes(bytes)))?;
    keys.glances.read(reader, documents)?;
    let of_entries = reader.list(entries, u64::from_le_bytes)?;
    let places = reader.list(entries, u32::from_le_bytes)?;
    let entries = of_entries.into_iter().zip(places);
    keys.entries = entries
        .map(|(key, place)| Keyed::with_sided_place(key, place))
        .collect();
    let inside = |entry: &Keyed| (entry.at as usize) < documents;
    keys.entries.iter().all(inside).then_some(keys)
}

fn read_features(setup: &Setup, reader: &mut Reader<'_>) -> Option<Features> {
    let layout = Layout::from_number(byte(reader)?)?;
    let (documents, count) = (length(reader)?, length(reader)?);
    let mut features = Features::new(setup, layout);
    features.nodes = reader.list(documents, |bytes| Node(u64::from_le_bytes(bytes)))?;
    let parted = if setup.bounds.within { documents } else { 0 };
    features.parts = reader.list(parted, u64::from_le_bytes)?;
    features.glances.read(reader, documents)?;
    features.ends = reader.list(documents, u32::from_le_bytes)?;
    features.features = reader.list(count, u64::from_le_bytes)?;
    let ascending = features.ends.is_sorted();
    let last = features.ends.last().map_or(0, |&end| end as usize);
    (ascending && last == count).then_some(features)
}

fn byte(reader: &mut Reader<'_>) -> Option<u8> {
    let [byte] = reader.array()?;
    Some(byte)
}

fn length(reader: &mut Reader<'_>) -> Option<usize> {
    Some(u32::from_le_bytes(reader.array()?) as usize)
}

fn string(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let length = length(reader)?;
    let (string, rest) = reader.0.split_at_checked(length)?;
    reader.0 = rest;
    Some(string.to_vec())
}
