//! The second step: links documents of one part that share a bucket key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks::{self, DenseKeyAction, ShuffleContent, ShuffleKey, ShuffleKeys, TextRecord};
use super::prefilter::PairPrefilter;
use super::scatter::{ShuffleBlock, ShuffleBlockKind};
use super::{ShuffleSetup, TextName, TextNode, part_of_hash};
use crate::candidates::BucketSide;
use crate::candidates::UnionFind;
use crate::error::{Error, Result};
use crate::hash::mix_bits;

/// The findings of one or several parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatheredLinks {
    /// Pairs of texts that may match. All texts that match are connected by such pairs.
    pub links: Vec<(TextNode, TextNode)>,
    /// Texts that several documents have.
    pub repeats: Vec<RepeatedText>,
    /// Ids that several documents have.
    pub repeated_ids: Vec<String>,
    /// Ids that several known documents have.
    pub repeated_known_ids: Vec<String>,
    /// Nodes of dense buckets, which need keys of their rarest features; see
    /// [`DocumentScatterer::for_dense_nodes`](super::DocumentScatterer::for_dense_nodes).
    pub dense_nodes: Vec<TextNode>,
    /// Keys of dense buckets that are compared in squares: blocks for another [`BlockGatherer`], by part.
    pub split: Vec<ShuffleBlock>,
}

/// A text that several documents have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedText {
    /// Name of the text.
    pub name: TextName,
    /// Position of the first document with the text.
    pub first: Vec<u8>,
}

/// Gathers the blocks of one or several parts. Memory: about twice the size of the blocks.
pub struct BlockGatherer {
    setup: Arc<ShuffleSetup>,
    keys: Vec<ShuffleKeys>,
    texts: HashMap<TextName, (u64, Vec<u8>)>,
    ids: HashSet<String>,
    found: GatheredLinks,
    limits: BucketLimits,
}

/// Limits above which a bucket counts as dense.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketLimits {
    /// Members of a bucket that may be linked by their sketches. Members of larger buckets get keys of
    /// their rarest features, so that sketches which hardly differ connect no more documents than this.
    pub(super) members: usize,
    /// Comparisons that a bucket may take for each member.
    pub(super) comparisons: usize,
    /// Members in a portion of a bucket that is compared in squares.
    pub(super) portion: usize,
}

impl BlockGatherer {
    /// Returns a gatherer without blocks.
    pub fn new(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            setup,
            keys: Vec::new(),
            texts: HashMap::new(),
            ids: HashSet::new(),
            found: GatheredLinks::default(),
            limits: BucketLimits {
                members: 4096,
                comparisons: 512,
                portion: 4096,
            },
        }
    }

    /// Returns the gatherer with other limits.
    #[cfg(test)]
    pub(super) fn with_limits(self, limits: BucketLimits) -> Self {
        Self { limits, ..self }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// Fails if the block is damaged or a block of features.
    pub fn add_block(&mut self, block: &[u8]) -> Result<()> {
        match blocks::decode_block(&self.setup, block)? {
            ShuffleContent::Keys(keys) => {
                let alike = |of: &&mut ShuffleKeys| {
                    of.dense_action == keys.dense_action
                        && of.prefilters.layout() == keys.prefilters.layout()
                };
                match self.keys.iter_mut().find(alike) {
                    Some(all) => all.append_block(&keys),
                    None => self.keys.push(keys),
                }
            }
            ShuffleContent::Texts(texts) => texts
                .into_iter()
                .for_each(|text| self.add_text_record(text)),
            ShuffleContent::Ids(ids) => {
                for id in ids {
                    if let Some(marked) = self.ids.replace(id) {
                        let (id, is_known) = self.setup.unmarked_id(&marked);
                        let repeated = if is_known {
                            &mut self.found.repeated_known_ids
                        } else {
                            &mut self.found.repeated_ids
                        };
                        repeated.push(id.to_owned());
                    }
                }
            }
            ShuffleContent::Features(_) => {
                return Err(Error::setting_error(
                    "a block of features has no part number: make bucket keys from it first",
                ));
            }
        }
        Ok(())
    }

    fn add_text_record(&mut self, text: TextRecord) {
        let documents = u64::from(text.documents);
        let of = self.texts.entry(text.name);
        let (count, first) = of.or_insert_with(|| (0, text.first.clone()));
        *count += documents;
        if text.first < *first {
            *first = text.first;
        }
    }

    /// Returns the findings. Squares are divided among `parts` parts, at least 1.
    pub fn finish_gathering(mut self, parts: u32) -> GatheredLinks {
        let mut nodes: Vec<TextNode> = Vec::new();
        self.keys.iter().for_each(|keys| nodes.extend(&keys.nodes));
        nodes.sort_unstable();
        nodes.dedup();
        let mut linking = BucketLinker {
            union: UnionFind::with_members(nodes.len()),
            nodes,
            pair_prefilter: PairPrefilter::new(&self.setup),
            limits: self.limits,
            links: Vec::new(),
        };
        let mut dense_nodes = HashSet::new();
        for keys in &mut self.keys {
            let mut squares =
                BucketSquares::new(&self.setup, keys, parts.max(1), self.limits.portion);
            linking.link_buckets(keys, |keys, members| match keys.dense_action {
                DenseKeyAction::Refine => {
                    dense_nodes.extend(members.iter().map(|member| keys.nodes[member.at as usize]));
                }
                _ => squares.add_bucket(keys, members),
            });
            self.found.split.extend(squares.finish_squares());
        }
        self.found.links = linking.links;
        self.found.dense_nodes = dense_nodes.into_iter().collect();
        self.found.dense_nodes.sort_unstable();
        let repeats = self.texts.into_iter().filter(|(_, (count, _))| *count > 1);
        self.found
            .repeats
            .extend(repeats.map(|(name, (_, first))| RepeatedText { name, first }));
        self.found.repeats.sort_unstable();
        for ids in [
            &mut self.found.repeated_ids,
            &mut self.found.repeated_known_ids,
        ] {
            ids.sort_unstable();
            ids.dedup();
        }
        self.found
    }
}

/// A member of a bucket. Members on the full side come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BucketMember {
    key: u64,
    side: BucketSide,
    /// Rank of the node.
    node: u32,
    /// Place in the block.
    at: u32,
}

struct BucketLinker<'s> {
    nodes: Vec<TextNode>,
    union: UnionFind,
    pair_prefilter: PairPrefilter<'s>,
    limits: BucketLimits,
    links: Vec<(TextNode, TextNode)>,
}

impl BucketLinker<'_> {
    /// Links the members of every bucket. Calls `too_large` with dense buckets.
    fn link_buckets(
        &mut self,
        keys: &ShuffleKeys,
        mut too_large: impl FnMut(&ShuffleKeys, &[BucketMember]),
    ) {
        let rank_of: Vec<u32> = keys
            .nodes
            .iter()
            .map(|node| self.nodes.partition_point(|other| other < node) as u32)
            .collect();
        let mut members: Vec<BucketMember> = keys
            .entries
            .iter()
            .map(|&ShuffleKey { key, side, at }| BucketMember {
                key,
                side,
                node: rank_of[at as usize],
                at,
            })
            .collect();
        members.sort_unstable();
        members.dedup_by_key(|member| (member.key, member.node));
        for group in members.chunk_by(|a, b| a.key == b.key) {
            let meets = group.len() > 1 && group[0].side == BucketSide::Indexing;
            if meets && !self.link_bucket(keys, group) {
                too_large(keys, group);
            }
        }
    }

    /// Links the members of a bucket so that all that may match are connected. Returns `false` if this
    /// would take too many comparisons; links made until then remain.
    fn link_bucket(&mut self, keys: &ShuffleKeys, group: &[BucketMember]) -> bool {
        let mut left = match keys.dense_action {
            DenseKeyAction::Whole => usize::MAX,
            DenseKeyAction::Refine if group.len() > self.limits.members => return false,
            _ => self.limits.comparisons * group.len(),
        };
        // The connected sets so far, each with those of its earlier members that later ones can be
        // compared with.
        let mut sets: Vec<(u32, Vec<u32>)> = Vec::new();
        for member in group {
            let root = self.union.find_root(member.node);
            let own = sets.iter().position(|&(of, _)| of == root);
            let mut own = own.unwrap_or_else(|| {
                sets.push((root, Vec::new()));
                sets.len() - 1
            });
            let mut at = 0;
            while at < sets.len() {
                if at == own {
                    at += 1;
                    continue;
                }
                let near = |&&other: &&u32| {
                    left = left.saturating_sub(1);
                    let (a, b) = (member.at as usize, other as usize);
                    left == 0 || self.pair_prefilter.may_match(&keys.prefilters, a, b)
                };
                let found = sets[at].1.iter().find(near).copied();
                if left == 0 {
                    return false;
                }
                let Some(other) = found else {
                    at += 1;
                    continue;
                };
                let link = [member.at, other].map(|at| keys.nodes[at as usize]);
                self.links
                    .push((link[0].min(link[1]), link[0].max(link[1])));
                self.union.union_sets(sets[at].0, sets[own].0);
                let (_, mut joined) = sets.swap_remove(at);
                if own == sets.len() {
                    own = at;
                }
                // The smaller set moves: else every member of a large set would copy all those before it.
                let members = &mut sets[own].1;
                if members.len() < joined.len() {
                    std::mem::swap(members, &mut joined);
                }
                members.extend(joined);
            }
            sets[own].0 = self.union.find_root(member.node);
            if member.side == BucketSide::Indexing {
                sets[own].1.push(member.at);
            } else if sets[own].1.is_empty() {
                sets.swap_remove(own);
            }
        }
        true
    }
}

/// Dense buckets divided into portions. Every two portions meet under a key of their own.
struct BucketSquares {
    parts: u32,
    portion: usize,
    to: Vec<ShuffleKeys>,
}

impl BucketSquares {
    fn new(setup: &ShuffleSetup, keys: &ShuffleKeys, parts: u32, portion: usize) -> Self {
        let layout = keys.prefilters.layout();
        let to = |_| ShuffleKeys::new(setup, layout, DenseKeyAction::Whole);
        Self {
            parts,
            portion,
            to: (0..parts).map(to).collect(),
        }
    }

    fn add_bucket(&mut self, keys: &ShuffleKeys, members: &[BucketMember]) {
        let portions: Vec<_> = members.chunks(self.portion).collect();
        for (one, first) in portions.iter().enumerate() {
            if first[0].side == BucketSide::Probing {
                // All later portions are on the probing side too, whose members do not meet each other.
                break;
            }
            for (other, second) in portions.iter().enumerate().skip(one) {
                let square = mix_bits((one as u64) << 32 | other as u64);
                let key = mix_bits(first[0].key ^ square);
                let to = &mut self.to[part_of_hash(key, self.parts) as usize];
                let second = second.iter().filter(|_| one != other);
                for member in first.iter().chain(second) {
                    let node = keys.nodes[member.at as usize];
                    to.push_document(
                        node,
                        &keys.prefilters,
                        member.at as usize,
                        &[(key, member.side)],
                    );
                }
            }
        }
    }

    fn finish_squares(self) -> impl Iterator<Item = ShuffleBlock> {
        let filled = (0..)
            .zip(self.to)
            .filter(|(_, keys)| !keys.nodes.is_empty());
        filled.map(|(part, keys)| ShuffleBlock {
            kind: ShuffleBlockKind::Part,
            part,
            block: keys.encode_block(),
        })
    }
}
