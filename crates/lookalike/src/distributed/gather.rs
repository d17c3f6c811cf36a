//! The second step: links documents of one part that share a bucket key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks::{self, Block, Crowd, Keyed, Keys, TextRecord};
use super::glance::Sight;
use super::scatter::{Parcel, ParcelKind};
use super::{Node, Setup, TextName, part_of};
use crate::error::{Error, Result};
use crate::hash::mix;
use crate::matching::{Side, Union};

/// The findings of one or several parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Pairs of texts that may match. All texts that match are connected by such pairs.
    pub links: Vec<(Node, Node)>,
    /// Texts that several documents have.
    pub repeats: Vec<Repeat>,
    /// Ids that several documents have.
    pub repeated_ids: Vec<String>,
    /// Ids that several documents given as known have.
    pub repeated_given_ids: Vec<String>,
    /// Nodes of dense buckets, which need keys of their rarest features; see
    /// [`Scatter::crowded`](super::Scatter::crowded).
    pub crowded: Vec<Node>,
    /// Keys of dense buckets that are compared in squares: blocks for another [`Gather`], by part.
    pub split: Vec<Parcel>,
}

/// A text that several documents have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repeat {
    /// Name of the text.
    pub name: TextName,
    /// Position of the first document with the text.
    pub first: Vec<u8>,
}

/// Gathers the blocks of one or several parts. Memory: about twice the size of the blocks.
pub struct Gather {
    setup: Arc<Setup>,
    keys: Vec<Keys>,
    texts: HashMap<TextName, (u64, Vec<u8>)>,
    ids: HashSet<String>,
    found: Gathered,
    limits: Limits,
}

/// Limits above which a bucket counts as dense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Members of a bucket that may be linked by their sketches. Members of larger buckets get keys of
    /// their rarest features, so that sketches which hardly differ connect no more documents than this.
    pub(super) members: usize,
    /// Comparisons that a bucket may take for each member.
    pub(super) comparisons: usize,
    /// Members in a portion of a bucket that is compared in squares.
    pub(super) portion: usize,
}

impl Gather {
    /// Returns a gatherer without blocks.
    pub fn new(setup: Arc<Setup>) -> Self {
        Self {
            setup,
            keys: Vec::new(),
            texts: HashMap::new(),
            ids: HashSet::new(),
            found: Gathered::default(),
            limits: Limits {
                members: 4096,
                comparisons: 512,
                portion: 4096,
            },
        }
    }

    /// Returns the gatherer with other limits.
    #[cfg(test)]
    pub(super) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// Fails if the block is damaged or a block of features.
    pub fn add(&mut self, block: &[u8]) -> Result<()> {
        match blocks::read(&self.setup, block)? {
            Block::Keys(keys) => {
                let alike = |of: &&mut Keys| {
                    of.crowd == keys.crowd && of.glances.layout() == keys.glances.layout()
                };
                match self.keys.iter_mut().find(alike) {
                    Some(all) => all.append(&keys),
                    None => self.keys.push(keys),
                }
            }
            Block::Texts(texts) => texts.into_iter().for_each(|text| self.add_text(text)),
            Block::Ids(ids) => {
                for id in ids {
                    if let Some(marked) = self.ids.replace(id) {
                        let (id, given) = self.setup.unmarked_id(&marked);
                        let repeated = match given {
                            true => &mut self.found.repeated_given_ids,
                            false => &mut self.found.repeated_ids,
                        };
                        repeated.push(id.to_owned());
                    }
                }
            }
            Block::Features(_) => {
                return Err(Error::setting(
                    "a block of features has no part number: make bucket keys from it first",
                ));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: TextRecord) {
        let documents = u64::from(text.documents);
        let of = self.texts.entry(text.name);
        let (count, first) = of.or_insert_with(|| (0, text.first.clone()));
        *count += documents;
        if text.first < *first {
            *first = text.first;
        }
    }

    /// Returns the findings. Squares are divided among `parts` parts, at least 1.
    pub fn finish(mut self, parts: u32) -> Gathered {
        let mut nodes: Vec<Node> = Vec::new();
        self.keys.iter().for_each(|keys| nodes.extend(&keys.nodes));
        nodes.sort_unstable();
        nodes.dedup();
        let mut linking = Linking {
            union: Union::of(nodes.len()),
            nodes,
            sight: Sight::new(&self.setup),
            limits: self.limits,
            links: Vec::new(),
        };
        let mut crowded = HashSet::new();
        for keys in &mut self.keys {
            let mut squares = Squares::new(&self.setup, keys, parts.max(1), self.limits.portion);
            linking.link_all(keys, |keys, members| match keys.crowd {
                Crowd::Refine => {
                    crowded.extend(members.iter().map(|member| keys.nodes[member.at as usize]));
                }
                _ => squares.add(keys, members),
            });
            self.found.split.extend(squares.finish());
        }
        self.found.links = linking.links;
        self.found.crowded = crowded.into_iter().collect();
        self.found.crowded.sort_unstable();
        let repeats = self.texts.into_iter().filter(|(_, (count, _))| *count > 1);
        self.found
            .repeats
            .extend(repeats.map(|(name, (_, first))| Repeat { name, first }));
        self.found.repeats.sort_unstable();
        for ids in [
            &mut self.found.repeated_ids,
            &mut self.found.repeated_given_ids,
        ] {
            ids.sort_unstable();
            ids.dedup();
        }
        self.found
    }
}

/// A member of a bucket. Members on the full side come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    key: u64,
    side: Side,
    /// Rank of the node.
    node: u32,
    /// Place in the block.
    at: u32,
}

struct Linking<'s> {
    nodes: Vec<Node>,
    union: Union,
    sight: Sight<'s>,
    limits: Limits,
    links: Vec<(Node, Node)>,
}

impl Linking<'_> {
    /// Links the members of every bucket. Calls `too_large` with dense buckets.
    fn link_all(&mut self, keys: &Keys, mut too_large: impl FnMut(&Keys, &[Member])) {
        let rank_of: Vec<u32> = keys
            .nodes
            .iter()
            .map(|node| self.nodes.partition_point(|other| other < node) as u32)
            .collect();
        let mut members: Vec<Member> = keys
            .entries
            .iter()
            .map(|&Keyed { key, side, at }| Member {
                key,
                side,
                node: rank_of[at as usize],
                at,
            })
            .collect();
        members.sort_unstable();
        members.dedup_by_key(|member| (member.key, member.node));
        for group in members.chunk_by(|a, b| a.key == b.key) {
            let meets = group.len() > 1 && group[0].side == Side::Full;
            if meets && !self.link(keys, group) {
                too_large(keys, group);
            }
        }
    }

    /// Links the members of a bucket so that all that may match are connected. Returns `false` if this
    /// would take too many comparisons; links made until then remain.
    fn link(&mut self, keys: &Keys, group: &[Member]) -> bool {
        let mut left = match keys.crowd {
            Crowd::Whole => usize::MAX,
            Crowd::Refine if group.len() > self.limits.members => return false,
            _ => self.limits.comparisons * group.len(),
        };
        // The connected sets so far, each with those of its earlier members that later ones can be
        // compared with.
        let mut sets: Vec<(u32, Vec<u32>)> = Vec::new();
        for member in group {
            let root = self.union.root(member.node);
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
                    left == 0 || self.sight.may_match(&keys.glances, a, b)
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
                self.union.join(sets[at].0, sets[own].0);
                let (_, joined) = sets.swap_remove(at);
                if own == sets.len() {
                    own = at;
                }
                sets[own].1.extend(joined);
            }
            sets[own].0 = self.union.root(member.node);
            if member.side == Side::Full {
                sets[own].1.push(member.at);
            } else if sets[own].1.is_empty() {
                sets.swap_remove(own);
            }
        }
        true
    }
}

/// Dense buckets divided into portions. Every two portions meet under a key of their own.
struct Squares {
    parts: u32,
    portion: usize,
    to: Vec<Keys>,
}

impl Squares {
    fn new(setup: &Setup, keys: &Keys, parts: u32, portion: usize) -> Self {
        let layout = keys.glances.layout();
        let to = |_| Keys::new(setup, layout, Crowd::Whole);
        Self {
            parts,
            portion,
            to: (0..parts).map(to).collect(),
        }
    }

    fn add(&mut self, keys: &Keys, members: &[Member]) {
        let portions: Vec<_> = members.chunks(self.portion).collect();
        for (one, first) in portions.iter().enumerate() {
            if first[0].side == Side::Probing {
                // All later portions are on the probing side too, whose members do not meet each other.
                break;
            }
            for (other, second) in portions.iter().enumerate().skip(one) {
                let square = mix((one as u64) << 32 | other as u64);
                let key = mix(first[0].key ^ square);
                let to = &mut self.to[part_of(key, self.parts) as usize];
                let second = second.iter().filter(|_| one != other);
                for member in first.iter().chain(second) {
                    let node = keys.nodes[member.at as usize];
                    to.push(
                        node,
                        &keys.glances,
                        member.at as usize,
                        &[(key, member.side)],
                    );
                }
            }
        }
    }

    fn finish(self) -> impl Iterator<Item = Parcel> {
        let filled = (0..)
            .zip(self.to)
            .filter(|(_, keys)| !keys.nodes.is_empty());
        filled.map(|(part, keys)| Parcel {
            kind: ParcelKind::Part,
            part,
            block: keys.write(),
        })
    }
}
