//! Shuffle deduplication: finds near-duplicates among documents that are spread over many machines.
//!
//! A batch sorts the bucket keys of all documents and goes through their total order. Many machines do
//! the same in four steps. Each step processes one portion of the documents or keys, and the steps
//! exchange blocks of bytes.
//!
//! 1. [`DocumentScatterer`] sketches the documents of a portion. Every bucket key is sent, with a few bytes of
//!    its document's sketch, to the part that receives all equal keys (`shuffle`). Features of short
//!    documents stay where they are until their frequencies are known ([`FeatureOrder`]). Then the
//!    rarest ones become keys too.
//! 2. [`BlockGatherer`] receives all blocks of a part. It links documents that share a key and that their
//!    sketches do not rule out: not every pair, but enough pairs that all matching documents are
//!    connected. Equal texts are one [`TextNode`].
//! 3. [`ComponentMembers`] holds the documents with a link, by connected component, and the texts that several
//!    documents have. No document matches one of another component. [`RoleFinder`] finds the members in a
//!    portion.
//! 4. [`ComponentResolver`] receives the texts of whole components and resolves them with
//!    [`find_verdicts`](crate::dedup::find_verdicts), so every reported pair was compared.
//!
//! Guarantee: the result is that of one machine, whatever the number and the size of the portions.
//! Documents that match are always in the same component of links. Links divide the work and decide
//! nothing.
//!
//! [`SampleAudit`] estimates afterwards how many matches a run misses, by two more readings of the documents.
//!
//! **Dense buckets.** A member of a large bucket is compared with already connected sets only until one
//! member of the set is found that it may match. So documents of one template cost about one comparison
//! each where they are similar. Where they are not, comparing stops at 512 comparisons a member.
//! With MinHash and bottom-k, unless the measure is `none`, documents that shared such a key then get keys of
//! their rarest features, as on one machine. Other large buckets are compared in squares of portions, each
//! square in a part of its own.
//!
//! **Cost.** A long document sends about 70 bytes of sketch to each part in which it has a key, and 12
//! bytes for each key. A short one sends 20 bytes to each part, and 12 for each key. By containment, every document
//! sends 140 bytes to each part, and 12 for each feature that others have too. Texts of documents with a link are sent
//! once. One thread resolves a component. It holds the texts, unless they exceed its memory and go to a [`TextSpill`].

mod block_division;
mod blocks;
mod component_texts;
mod document;
mod document_roles;
mod feature_order;
mod gather;
mod key_collector;
mod local;
mod members;
mod position;
mod prefilter;
mod resolve;
mod sample_audit;
mod scatter;

use std::sync::Arc;

use crate::arch::Cpu;
use crate::candidates::equal_text_key;
use crate::error::Result;
use crate::hash::mix_bits;
use crate::plan::{MatchPlan, MatchSettings, SimilarityMeasure};
use crate::recipe::Recipe;
use crate::sketch::{DocumentSketcher, DocumentSketches};
use crate::text::{TextAnalyzer, TextState};
use crate::types::DocId;

pub use block_division::divide_block;
pub use component_texts::{CreateTextSpill, TextSpill};
pub use document::{MatchBounds, ShuffleDocument, pack_features};
pub use document_roles::{DocumentRole, RoleFinder};
pub use feature_order::FeatureOrder;
pub use gather::{BlockGatherer, GatheredLinks, RepeatedText};
pub use local::{EqualTexts, FeatureBlocks, LocalKeys, LocalLinks, LocalScatterer};
pub use members::ComponentMembers;
pub use position::{DocumentOrder, OrderValue};
pub use resolve::{ComponentDocument, ComponentResolver, ResolvedPair, ShuffleRemoval};
pub use sample_audit::{
    DocumentSampler, ExactComparison, SampleAudit, SampledDocument, SampledPartner,
};
pub use scatter::{DocumentScatterer, ShuffleBlock, ShuffleBlockKind};

/// The setup that all steps of a run share.
#[derive(Debug)]
pub struct ShuffleSetup {
    plan: MatchPlan,
    first: DocumentOrder,
    bounds: MatchBounds,
    analyzer: TextAnalyzer,
    sketcher: DocumentSketcher,
}

impl ShuffleSetup {
    /// Returns the setup for a recipe, settings, an order of documents, and bounds between them.
    ///
    /// # Errors
    /// Fails if there is no match plan for them; see [`MatchPlan::new`].
    pub fn new(
        recipe: &Recipe,
        settings: MatchSettings,
        first: DocumentOrder,
        bounds: MatchBounds,
    ) -> Result<Arc<Self>> {
        let plan = MatchPlan::new(recipe, settings)?;
        let sketcher = DocumentSketcher::new(recipe, &plan, Cpu::detect_best());
        Ok(Arc::new(Self {
            plan,
            first,
            bounds,
            analyzer: TextAnalyzer::new(recipe).with_extras(sketcher.required_extras()),
            sketcher,
        }))
    }

    /// Returns the match plan.
    pub fn match_plan(&self) -> &MatchPlan {
        &self.plan
    }

    /// Returns the sketcher.
    pub fn document_sketcher(&self) -> &DocumentSketcher {
        &self.sketcher
    }

    /// Returns the order of documents.
    pub fn document_order(&self) -> DocumentOrder {
        self.first
    }

    /// Returns `true` if documents of a dense bucket get keys of their rarest features. They can,
    /// because candidates have features in common unless the measure relies on sketches alone.
    fn refines_dense_keys(&self) -> bool {
        let plan = &self.plan;
        let by_sketch = plan.band_plan().is_some() || plan.bottom_k_plan().is_some();
        by_sketch && plan.match_settings().measure != SimilarityMeasure::Sketch
    }

    /// Returns the name of a document's text, or `None` for an empty text, which matches nothing.
    fn text_name(
        &self,
        sketches: &DocumentSketches,
        document: DocId,
        partition: u64,
    ) -> Option<TextName> {
        if sketches.text_state(document) == TextState::Empty {
            return None;
        }
        // The name includes the key that candidates have in common. Equal texts can differ in the signature of
        // their sentences, because punctuation decides where sentences end and is not in the tokens.
        let equal_key = sketches.equal_key(document).unwrap_or(0);
        let name = sketches.text_key(document) ^ u128::from(equal_key);
        let of_partition = if self.bounds.within {
            mix_bits(partition)
        } else {
            0
        };
        Some(TextName(name ^ (u128::from(of_partition) << 64)))
    }

    /// Returns a key that only documents of the same partition share.
    fn partitioned_key(&self, key: u64, partition: u64) -> u64 {
        if self.bounds.within {
            mix_bits(key ^ partition)
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
    pub fn text_node(self) -> TextNode {
        TextNode(mix_bits(equal_text_key(self.0)))
    }
}

/// A text in the graph of links. If two texts have the same node by chance, which is very unlikely,
/// their components are one. That costs time and changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextNode(pub u64);

/// Returns the part, of `parts`, to which a hash belongs.
fn part_of_hash(hash: u64, parts: u32) -> u32 {
    ((u128::from(hash) * u128::from(parts)) >> 64) as u32
}

#[cfg(test)]
mod tests;
