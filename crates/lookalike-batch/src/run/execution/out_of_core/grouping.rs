//! Components of documents that may match, and their groups.

use lookalike::DocId;
use lookalike_io::error::Result;
use serde::Serialize;

use crate::memory::run_plan::RunShares;
use crate::run::execution::out_of_core::component_groups::ComponentGroups;
use crate::run::execution::out_of_core::linking::{self, LinkedNodes};
use crate::run::execution::out_of_core::spilled_reading::SpillFiles;
use crate::run::execution::run_corpus::RunCorpus;

/// The documents of a run out of core: their components, equal texts and groups.
pub(in crate::run) struct DocumentGrouping {
    reading: SpillFiles,
    nodes: LinkedNodes,
    groups: ComponentGroups,
    written_bytes: u64,
}

impl DocumentGrouping {
    /// Links and groups documents. If `merges_equal_texts` is set, only the earliest document of each text is in a
    /// group, because all documents of a text match the same others.
    ///
    /// # Errors
    /// If temporary files or inputs cannot be read or written, or if a component does not fit into the memory.
    pub(in crate::run) fn group_documents(
        mut reading: SpillFiles,
        corpus: &RunCorpus<'_>,
        merges_equal_texts: bool,
    ) -> Result<Self> {
        let (nodes, linked_bytes) =
            linking::link_documents(&mut reading, corpus, merges_equal_texts)?;
        let written_bytes = linked_bytes + reading.written_bytes() + corpus.spilled_id_bytes();
        reading.release_blocks()?;
        let accepts = |document| nodes.earlier_equal(corpus, document).is_none();
        let groups = ComponentGroups::divide_documents(&reading, corpus, &nodes, &accepts)?;
        Ok(Self {
            written_bytes: written_bytes + groups.written_bytes(),
            reading,
            nodes,
            groups,
        })
    }

    /// Returns groups of the documents that `accepts` accepts.
    ///
    /// # Errors
    /// As [`group_documents`](Self::group_documents).
    pub(super) fn regroup_documents(
        &self,
        corpus: &RunCorpus<'_>,
        accepts: &dyn Fn(DocId) -> bool,
    ) -> Result<ComponentGroups> {
        ComponentGroups::divide_documents(&self.reading, corpus, &self.nodes, accepts)
    }

    /// Returns the components and equal texts.
    pub(super) fn nodes(&self) -> &LinkedNodes {
        &self.nodes
    }

    /// Returns the groups.
    pub(super) fn groups(&self) -> &ComponentGroups {
        &self.groups
    }

    /// Returns the shares of the memory beside the rows.
    pub(in crate::run) fn run_shares(&self) -> RunShares {
        self.reading.shares
    }

    /// Returns how much of the run went to temporary files.
    pub(in crate::run) fn summarize_spilled(&self) -> SpilledSummary {
        SpilledSummary {
            bytes: self.written_bytes,
            groups: self.groups.group_count() as u64,
            grouped: self.groups.member_count(),
        }
    }
}

/// The data of a run that went to temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpilledSummary {
    /// Bytes of ids, sketches and keys that were written to temporary files.
    pub bytes: u64,
    /// Groups of documents that were decided one after another.
    pub groups: u64,
    /// Documents in groups. No other document may match the rest.
    pub grouped: u64,
}
