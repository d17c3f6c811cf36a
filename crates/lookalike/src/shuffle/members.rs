//! The documents with a link by component, and the texts that several documents have.

use super::blocks::damaged_block;
use super::{RepeatedText, TextName, TextNode};
use crate::byte_reader::ByteReader;
use crate::candidates::UnionFind;
use crate::error::Result;

/// The members of components and the repeated texts of a run, which every portion must know.
///
/// Memory: 16 bytes for every text with a link, and about 24 and a position for every repeated text. A
/// run with more of them than one machine can hold joins tables instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentMembers {
    /// Pairs of a node and its component, sorted by node.
    components: Vec<(TextNode, TextNode)>,
    repeats: Vec<RepeatedText>,
}

impl ComponentMembers {
    /// Computes the components from links. A component is named by its smallest node.
    pub fn new(links: &[(TextNode, TextNode)], mut repeats: Vec<RepeatedText>) -> Self {
        repeats.sort_unstable();
        repeats.dedup_by(|later, earlier| later.name == earlier.name);
        let mut nodes: Vec<TextNode> = links.iter().flat_map(|&(a, b)| [a, b]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let rank = |node: TextNode| nodes.partition_point(|&other| other < node) as u32;
        let mut union = UnionFind::with_members(nodes.len());
        links
            .iter()
            .for_each(|&(a, b)| union.union_sets(rank(a), rank(b)));
        let component = |at: usize| nodes[union.find_root(at as u32) as usize];
        let components = (0..nodes.len()).map(component).collect::<Vec<_>>();
        Self {
            components: nodes.into_iter().zip(components).collect(),
            repeats,
        }
    }

    /// Returns the component of a text that has a link.
    pub fn component_of(&self, node: TextNode) -> Option<TextNode> {
        let at = self
            .components
            .binary_search_by_key(&node, |component| component.0);
        at.ok().map(|at| self.components[at].1)
    }

    /// Returns the position of the first document with a text, if several have it.
    pub fn first_position(&self, name: TextName) -> Option<&[u8]> {
        let at = self
            .repeats
            .binary_search_by_key(&name, |repeat| repeat.name);
        at.ok().map(|at| self.repeats[at].first.as_slice())
    }

    /// Returns the texts that several documents have.
    pub fn into_repeats(self) -> Vec<RepeatedText> {
        self.repeats
    }

    /// Returns every text with a link, and its component.
    pub fn components(&self) -> &[(TextNode, TextNode)] {
        &self.components
    }

    /// Returns the members as bytes for [`decode_members`](Self::decode_members).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut into = Vec::with_capacity(16 * self.components.len() + 64 * self.repeats.len());
        into.extend((self.components.len() as u64).to_le_bytes());
        into.extend((self.repeats.len() as u64).to_le_bytes());
        for (node, component) in &self.components {
            into.extend(node.0.to_le_bytes());
            into.extend(component.0.to_le_bytes());
        }
        for RepeatedText { name, first } in &self.repeats {
            into.extend(name.0.to_le_bytes());
            into.extend((first.len() as u32).to_le_bytes());
            into.extend_from_slice(first);
        }
        into
    }

    /// Reads members that were written by [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Fails if the bytes are cut off or damaged.
    pub fn decode_members(bytes: &[u8]) -> Result<Self> {
        Self::parse_members(&mut ByteReader::new(bytes)).ok_or_else(damaged_block)
    }

    fn parse_members(reader: &mut ByteReader<'_>) -> Option<Self> {
        let components = reader.read_u64()? as usize;
        let repeats = reader.read_u64()? as usize;
        let pair = |bytes: [u8; 16]| {
            let pair = u128::from_le_bytes(bytes);
            (TextNode(pair as u64), TextNode((pair >> 64) as u64))
        };
        let components = reader.read_list(components, pair)?;
        let repeat = |_| {
            Some(RepeatedText {
                name: TextName(reader.read_u128()?),
                first: reader.read_sized_bytes()?.to_vec(),
            })
        };
        let repeats = (0..repeats).map(repeat).collect::<Option<Vec<_>>>()?;
        reader.is_at_end().then_some(Self {
            components,
            repeats,
        })
    }
}
