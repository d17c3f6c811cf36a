//! Shuffle deduplication: finds near-duplicates among documents that are spread over many machines.
//!
//! A batch sorts the bucket keys of all documents and goes through their total order. Many machines do
//! the same in four steps. Each step processes one portion of the documents or keys, and the steps
//! exchange blocks of bytes.
//!
//! 1. [`Scatter`] sketches the documents of a portion. Every bucket key is sent, with a few bytes of
//!    its document's sketch, to the part that receives all equal keys ([`spread`]). Features of short
//!    documents stay where they are until their frequencies are known ([`FeatureOrder`]). Then the
//!    rarest ones become keys too.
//! 2. [`Gather`] receives all blocks of a part. It links documents that share a key and that their
//!    sketches do not rule out: not every pair, but enough pairs that all matching documents are
//!    connected. Equal texts are one [`Node`].
//! 3. [`Members`] holds the documents with a link, by connected component, and the texts that several
//!    documents have. No document matches one of another component. [`Collect`] finds the members in a
//!    portion.
//! 4. [`Settle`] receives the texts of whole components and resolves them with
//!    [`find_verdicts`](crate::matching::find_verdicts), so every reported pair was compared.
//!
//! Guarantee: the result is that of one machine, whatever the number and the size of the portions.
//! Documents that match are always in the same component of links. Links divide the work and decide
//! nothing.
//!
//! **Dense buckets.** A member of a large bucket is compared with already connected sets only until one
//! member of the set is found that it may match. So documents of one template cost about one comparison
//! each where they are similar. Where they are not, comparing stops at 512 comparisons a member.
//! Documents that shared a key of their sketches then get keys of their rarest features, as on one
//! machine. Buckets of rare features are compared in squares of portions, each square in a part of its
//! own.
//!
//! **Cost.** A long document sends about 70 bytes of sketch to each part in which it has a key, and 8
//! bytes for each key. A short one sends 20 bytes with each key. Texts of documents with a link are
//! sent once. One thread resolves a component and holds its texts.

mod blocks;
mod collect;
mod document;
mod gather;
mod glance;
mod members;
mod position;
mod scatter;
mod settle;
mod spread;

use std::sync::Arc;

use crate::arch::Cpu;
use crate::error::Result;
use crate::hash::mix;
use crate::matching::text_key;
use crate::plan::{Measure, Plan, Settings};
use crate::recipe::Recipe;
use crate::sketches::{Sketcher, Sketches};
use crate::text::{Analyzer, State};
use crate::types::DocId;

pub use collect::{Collect, Role};
pub use document::{Bounds, Document, pack_features};
pub use gather::{Gather, Gathered, Repeat};
pub use members::Members;
pub use position::{First, Value};
pub use scatter::{FeatureOrder, Parcel, ParcelKind, Scatter};
pub use settle::{Incoming, Removed, Settle, SettledPair};
pub use spread::spread;

/// The setup that all steps of a run share.
#[derive(Debug)]
pub struct Setup {
    plan: Plan,
    first: First,
    bounds: Bounds,
    analyzer: Analyzer,
    sketcher: Sketcher,
}

impl Setup {
    /// Returns the setup for a recipe, settings, an order of documents, and bounds between them.
    ///
    /// # Errors
    /// Fails if there is no match plan for them; see [`Plan::new`].
    pub fn new(
        recipe: &Recipe,
        settings: Settings,
        first: First,
        bounds: Bounds,
    ) -> Result<Arc<Self>> {
        let plan = Plan::new(recipe, settings)?;
        let sketcher = Sketcher::new(recipe, &plan, Cpu::best());
        Ok(Arc::new(Self {
            plan,
            first,
            bounds,
            analyzer: Analyzer::new(recipe).with_extras(sketcher.extras()),
            sketcher,
        }))
    }

    /// Returns the match plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the order of documents.
    pub fn first(&self) -> First {
        self.first
    }

    /// Returns `true` if documents of a dense bucket get keys of their rarest features. They can,
    /// because candidates have features in common unless the measure relies on sketches alone.
    fn refines(&self) -> bool {
        let plan = &self.plan;
        let by_sketch = plan.bands().is_some() || plan.smallest().is_some();
        by_sketch && plan.settings().measure != Measure::Sketch
    }

    /// Returns the name of a document's text, or `None` for an empty text, which matches nothing.
    fn name(&self, sketches: &Sketches, document: DocId, part: u64) -> Option<TextName> {
        if sketches.state(document) == State::Empty {
            return None;
        }
        // With sentences the name includes their signature, because punctuation decides where sentences
        // end and is not in the tokens.
        let sentences = sketches.sentences(document).unwrap_or(0);
        let name = sketches.key(document) ^ u128::from(sentences);
        let of_part = if self.bounds.within { mix(part) } else { 0 };
        Some(TextName(name ^ (u128::from(of_part) << 64)))
    }

    /// Returns a key that only documents of the same partition share.
    fn parted(&self, key: u64, part: u64) -> u64 {
        if self.bounds.within {
            mix(key ^ part)
        } else {
            key
        }
    }
}

/// The name of a text. Documents whose texts have the same name match the same others, and each other.
/// Equal texts of different partitions have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextName(pub u128);

impl TextName {
    /// Returns the node that represents the text in links.
    pub fn node(self) -> Node {
        Node(mix(text_key(self.0)))
    }
}

/// A text in the graph of links. If two texts have the same node by chance, which is very unlikely,
/// their components are one. That costs time and changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u64);

/// Returns the part, of `parts`, to which a hash belongs.
fn part_of(hash: u64, parts: u32) -> u32 {
    ((u128::from(hash) * u128::from(parts)) >> 64) as u32
}

#[cfg(test)]
mod tests;
