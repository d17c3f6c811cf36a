//! Finding near-duplicates where the documents lie on many machines.
//!
//! One machine sorts the keys of all documents and walks through their total order. Many machines do
//! the same in four steps, each of which looks at one portion of the documents, and exchange blocks of
//! bytes in between. The result is that of one machine, whatever the number and the size of the
//! portions.
//!
//! 1. [`Scatter`] sketches the documents of a portion. Every key goes, with a few bytes of its
//!    document's sketch, to the part that gets all equal keys ([`spread`]). Features of short documents
//!    stay where they are until their frequencies are known ([`FeatureOrder`]); then the rarest are
//!    keys too.
//! 2. [`Gather`] has all blocks of a part. Documents that share a key, and that their sketches do not
//!    rule out, are *linked*: not every two of them, but so that what matches is connected. Equal
//!    texts are one [`Node`].
//! 3. [`Members`] are the documents with a link, by connected component, and the texts that several
//!    documents have. No document matches one of another component. [`Collect`] finds them in a
//!    portion.
//! 4. [`Settle`] has the texts of whole components. It is the walk of one machine
//!    ([`find_verdicts`](crate::matching::find_verdicts)): every pair it reports was compared.
//!
//! Links are a superset of what matches and divide the work; they decide nothing.
//!
//! **Hot keys.** Members of a large group are linked through the first of each set that is connected
//! already, so documents of one template cost one comparison each where they are similar. Where they
//! are not, comparing ends at 512 comparisons a member: those that met by their sketch meet again
//! by their rarest features, as on one machine, and those that met by rare features are
//! compared in squares of portions, each in another part.
//!
//! **Cost.** Of a long document some 70 bytes of sketch and 8 of every key travel to each part that it
//! has a key in, of a short one 20 bytes with every key; the texts of documents with a link
//! travel once. A component is settled by one thread that holds its texts.

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

/// What all steps of a run have in common.
#[derive(Debug)]
pub struct Setup {
    plan: Plan,
    first: First,
    bounds: Bounds,
    analyzer: Analyzer,
    sketcher: Sketcher,
}

impl Setup {
    /// For a recipe, settings, the order in which documents count and what keeps them apart.
    ///
    /// # Errors
    /// If there is no plan for them; see [`Plan::new`].
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

    /// How candidates are found and checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The order in which documents count.
    pub fn first(&self) -> First {
        self.first
    }

    /// Whether documents with a hot key meet again by their rarest features: candidates of a plan
    /// with a measure have features in common.
    fn refines(&self) -> bool {
        let plan = &self.plan;
        let by_sketch = plan.bands().is_some() || plan.smallest().is_some();
        by_sketch && plan.settings().measure != Measure::Sketch
    }

    /// The name of a document's text; None if it matches nothing.
    fn name(&self, sketches: &Sketches, document: DocId, part: u64) -> Option<TextName> {
        if sketches.state(document) == State::Empty {
            return None;
        }
        // What punctuation makes of sentences is not in the tokens.
        let sentences = sketches.sentences(document).unwrap_or(0);
        let name = sketches.key(document) ^ u128::from(sentences);
        let of_part = if self.bounds.within { mix(part) } else { 0 };
        Some(TextName(name ^ (u128::from(of_part) << 64)))
    }

    /// A key that only documents of the same part share.
    fn parted(&self, key: u64, part: u64) -> u64 {
        if self.bounds.within {
            mix(key ^ part)
        } else {
            key
        }
    }
}

/// Documents whose texts have one name match the same others, and one another. Equal texts of
/// different parts have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextName(pub u128);

impl TextName {
    /// What stands for the text in links.
    pub fn node(self) -> Node {
        Node(mix(text_key(self.0)))
    }
}

/// A text in a graph of links. Where two texts have one node, which chance will hardly bring about,
/// their components are one: this costs time and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u64);

/// The part, of so many, that a hash leads to.
fn part_of(hash: u64, parts: u32) -> u32 {
    ((u128::from(hash) * u128::from(parts)) >> 64) as u32
}

#[cfg(test)]
mod tests;
