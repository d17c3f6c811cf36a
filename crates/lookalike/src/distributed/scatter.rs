//! The first step: sketches a portion of the documents and makes their bucket keys.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks::{self, Block, Crowd, Features, Keyed, Keys};
use super::glance::Layout;
use super::spread::{refuse_no_parts, send};
use super::{Document, Setup, TextName};
use crate::error::{Error, Result};
use crate::hash::mix;
use crate::matching::{Frequencies, Rarest, band_key, block_key, smallest_key, text_key};
use crate::sketches::Sketches;
use crate::text::{Analysis, Scratch, State};
use crate::types::DocId;

/// The kind of a shuffle block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParcelKind {
    /// Keys, texts or ids, to be [spread](super::spread) over parts. Each part is received by one
    /// [`Gather`](super::Gather).
    Part,
    /// Features that become keys once their frequencies are known, for [`FeatureOrder`].
    Features,
}

/// A shuffle block and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Kind of the block.
    pub kind: ParcelKind,
    /// Part, from 0. It is 0 for blocks that have not been spread yet.
    pub part: u32,
    /// Bytes of the block.
    pub block: Vec<u8>,
}

/// Number of documents after which the store of sketches is replaced by an empty one.
const AT_ONCE: usize = 1024;

/// Sketches documents and collects their keys.
///
/// Memory: the size of the blocks, so they should be [taken](Self::take) when they have some tens of
/// megabytes. A document whose text already came in the same blocks adds no keys.
pub struct Scatter {
    setup: Arc<Setup>,
    scratch: Scratch,
    sketches: Sketches,
    buffer: Vec<u64>,
    parcels: Parcels,
    /// Nodes of the only documents to process, of which only features are collected.
    only: Option<Arc<Vec<u64>>>,
}

/// Keys, features, texts and ids that have not been taken yet.
struct Parcels {
    keys: Keys,
    features: Vec<Features>,
    texts: HashMap<TextName, (u32, Vec<u8>)>,
    ids: Vec<String>,
    /// Texts of dense buckets whose features are collected.
    crowded: HashSet<TextName>,
    bytes: usize,
}

impl Parcels {
    fn new(setup: &Setup) -> Self {
        let crowd = if setup.refines() {
            Crowd::Refine
        } else {
            Crowd::Split
        };
        let layout = Layout::of_sketches(setup);
        Self {
            keys: Keys::new(setup, layout, crowd),
            features: [layout, Layout::Brief]
                .map(|layout| Features::new(setup, layout))
                .into(),
            texts: HashMap::new(),
            ids: Vec::new(),
            crowded: HashSet::new(),
            bytes: 0,
        }
    }

    fn take(self) -> Vec<Parcel> {
        let mut blocks = Vec::new();
        if !self.keys.nodes.is_empty() {
            blocks.push(self.keys.write());
        }
        if !self.ids.is_empty() {
            let ids = self.ids.iter().map(String::as_str);
            blocks.push(blocks::write_ids(ids));
        }
        if !self.texts.is_empty() {
            let texts = self.texts.iter();
            let records = texts.map(|(name, (documents, first))| (*name, *documents, &first[..]));
            blocks.push(blocks::write_texts(records));
        }
        let parcel = |kind, block| Parcel {
            kind,
            part: 0,
            block,
        };
        let features = self.features.iter().filter(|it| !it.nodes.is_empty());
        let features = features.map(|features| parcel(ParcelKind::Features, features.write()));
        let blocks = blocks.into_iter();
        blocks
            .map(|block| parcel(ParcelKind::Part, block))
            .chain(features)
            .collect()
    }
}

impl Scatter {
    /// Returns a step without documents.
    pub fn new(setup: Arc<Setup>) -> Self {
        Self {
            sketches: setup.sketcher.sketches(1 << 20),
            scratch: Scratch::default(),
            buffer: Vec::new(),
            parcels: Parcels::new(&setup),
            only: None,
            setup,
        }
    }

    /// Returns a step that collects only the features of documents with these nodes, which were in
    /// dense buckets.
    pub fn crowded(setup: Arc<Setup>, mut nodes: Vec<u64>) -> Self {
        nodes.sort_unstable();
        Self {
            only: Some(Arc::new(nodes)),
            ..Self::new(setup)
        }
    }

    /// Returns the approximate number of bytes that can be taken.
    pub fn bytes(&self) -> usize {
        self.parcels.bytes
    }

    /// Adds a document.
    pub fn add(&mut self, document: &Document<'_>) {
        if self.sketches.len() >= AT_ONCE {
            self.sketches = self.setup.sketcher.sketches(1 << 20);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let setup = self.setup.clone();
        self.add_analysis(document, &setup.analyze(document.text, &mut scratch));
        self.scratch = scratch;
    }

    fn add_analysis(&mut self, document: &Document<'_>, analysis: &Analysis<'_>) {
        self.setup.sketcher.add(analysis, &mut self.sketches);
        let part = document.part;
        let at = DocId(self.sketches.len() as u32 - 1);
        let name = self.setup.name(&self.sketches, at, part);
        let rich = self.sketches.state(at) == State::Rich;
        if let Some(only) = &self.only {
            let wanted = name.filter(|name| only.binary_search(&name.node().0).is_ok());
            if let Some(name) = wanted.filter(|&name| rich && self.parcels.crowded.insert(name)) {
                self.add_features((name, part), analysis, at, 0);
            }
            return;
        }
        self.parcels.add_id(&self.setup.marked_id(document));
        let Some(name) = name else { return };
        if !self.parcels.add_text(name, self.setup.position(document)) {
            return;
        }
        self.add_keys((name, part), at, rich);
        let joined = self.setup.plan.join().is_some_and(|join| {
            let size = self.sketches.brief(at).size as usize;
            rich && size > 0 && size <= join.reach
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
        analysis: &Analysis<'_>,
        document: DocId,
        at: usize,
    ) {
        let features = &mut self.parcels.features[at];
        let start = features.features.len();
        match self.sketches.features(document) {
            Some(kept) => features.features.extend_from_slice(kept),
            None => analysis.features(&mut features.features),
        }
        features.nodes.push(name.node());
        features
            .parts
            .extend(self.setup.bounds.within.then_some(part));
        features.glances.push(&self.sketches, document);
        features.ends.push(features.features.len() as u32);
        self.parcels.bytes += 8 * (features.features.len() - start) + 84;
    }

    fn add_keys(&mut self, (name, part): (TextName, u64), document: DocId, rich: bool) {
        let Self {
            setup,
            sketches,
            buffer: keys,
            parcels,
            ..
        } = self;
        keys.clear();
        let plan = &setup.plan;
        if plan.sentences().is_some() {
            keys.push(mix(text_key(sketches.key(document)) ^ TEXTS));
            keys.extend(sketches.sentences(document).map(mix));
        }
        if let (Some(bands), Some(signature)) = (plan.bands(), sketches.signature(document)) {
            keys.extend((0..bands.bands).map(|band| band_key(bands, band, signature)));
        }
        if let (Some(smallest), Some(hashes)) = (plan.smallest(), sketches.smallest(document)) {
            let meeting = hashes.iter().take(smallest.meeting);
            keys.extend(meeting.map(|&hash| smallest_key(hash)));
        }
        if let (Some(distance), true) = (plan.distance(), rich) {
            let fingerprint = sketches.fingerprint(document).unwrap_or(0);
            let blocks = plan.blocks().unwrap_or(crate::plan::Blocks {
                count: distance.get() + 1,
                bits: plan.bits(),
            });
            let masks = blocks.masks().enumerate();
            keys.extend(masks.map(|(at, mask)| block_key(at, fingerprint & mask)));
        }
        if keys.is_empty() {
            return;
        }
        keys.iter_mut()
            .for_each(|key| *key = setup.parted(*key, part));
        let to = &mut parcels.keys;
        to.nodes.push(name.node());
        to.glances.push(sketches, document);
        let at = to.nodes.len() as u32 - 1;
        to.entries
            .extend(keys.iter().map(|&key| Keyed::full(key, at)));
        parcels.bytes += 84 + 12 * keys.len();
    }

    /// Takes the blocks that are ready. More documents may follow.
    pub fn take(&mut self) -> Vec<Parcel> {
        let fresh = Parcels::new(&self.setup);
        std::mem::replace(&mut self.parcels, fresh).take()
    }
}

/// Constant that separates the keys of equal texts from those of sentences.
const TEXTS: u64 = 0x2545_f491_4f6c_dd1d;

impl Parcels {
    fn add_id(&mut self, id: &str) {
        self.ids.push(id.to_owned());
        self.bytes += id.len() + 4;
    }

    /// Counts a text. Returns `true` if it is the first of its name.
    fn add_text(&mut self, name: TextName, position: Vec<u8>) -> bool {
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
/// Every feature of a set could be a key, but the rarest are enough (see the prefix filter of
/// [`matching`](crate::matching)). Any table gives the same pairs. Memory: 4 MiB.
pub struct FeatureOrder {
    frequencies: Frequencies,
}

const COUNTERS: usize = 1 << 20;

impl Default for FeatureOrder {
    fn default() -> Self {
        let frequencies = Frequencies::of(vec![0; COUNTERS]);
        Self { frequencies }
    }
}

impl FeatureOrder {
    /// Reads a table that was written by [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Fails if the number of bytes is not that of a table.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let (counts, rest) = bytes.as_chunks::<4>();
        if counts.len() != COUNTERS || !rest.is_empty() {
            return Err(Error::setting(format!(
                "a table of frequencies has {} bytes, not {}",
                4 * COUNTERS,
                bytes.len()
            )));
        }
        let counts = counts.iter().map(|count| u32::from_le_bytes(*count));
        Ok(Self {
            frequencies: Frequencies::of(counts.collect()),
        })
    }

    /// Returns all counts as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.frequencies
            .counts()
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    /// Counts the features of a block.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features.
    pub fn count(&self, setup: &Setup, block: &[u8]) -> Result<()> {
        let features = features_of(setup, block)?;
        features.each(|_, features| self.frequencies.add(features));
        Ok(())
    }

    /// Returns a table with the counts of another one added.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let pairs = self.frequencies.counts().zip(other.frequencies.counts());
        let sums = pairs.map(|(one, other)| one.saturating_add(other));
        let frequencies = Frequencies::of(sums.collect());
        Self { frequencies }
    }

    /// Returns the rarest features of a block's documents as keys, in shuffle blocks for `parts` parts.
    ///
    /// # Errors
    /// Fails if the block is damaged or not one of features, or if there are no parts.
    pub fn keys(&self, setup: &Setup, block: &[u8], parts: u32) -> Result<Vec<Parcel>> {
        refuse_no_parts(parts)?;
        let features = features_of(setup, block)?;
        let layout = features.glances.layout();
        let mut to: Vec<_> = (0..parts)
            .map(|_| Keys::new(setup, layout, Crowd::Split))
            .collect();
        let threshold = setup.plan.candidate_threshold();
        let (mut rarest, mut keys) = (Rarest::default(), Vec::new());
        features.each(|document, set| {
            self.frequencies.rarest(set, threshold, &mut rarest);
            keys.clear();
            let part = features.parts.get(document).copied().unwrap_or(0);
            let parted = |(key, side)| (setup.parted(key, part), side);
            keys.extend(rarest.keys().map(parted));
            send(&mut keys, &mut to, |to, keys| {
                to.push(features.nodes[document], &features.glances, document, keys);
            });
        });
        let parcels = (0..).zip(to).filter(|(_, keys)| !keys.nodes.is_empty());
        Ok(parcels
            .map(|(part, keys)| Parcel {
                kind: ParcelKind::Part,
                part,
                block: keys.write(),
            })
            .collect())
    }
}

fn features_of(setup: &Setup, block: &[u8]) -> Result<Features> {
    match blocks::read(setup, block)? {
        Block::Features(features) => Ok(features),
        _ => Err(Error::setting(
            "a block holds no features: frequencies are counted from blocks of features only",
        )),
    }
}
