//! Groups of whole components that fit into the memory, and the documents of a group.

use lookalike::dedup::{DocumentRemoval, MatchCorpus, TextReanalysis, TimeWindow};
use lookalike::text::TextAnalysis;
use lookalike::{DocId, DocumentSketcher, DocumentSketches};
use lookalike_io::error::{Error, Result};

use crate::memory::run_plan::RunShares;
use crate::run::execution::out_of_core::linking::LinkedNodes;
use crate::run::execution::out_of_core::spilled_reading::SpillFiles;
use crate::run::execution::run_corpus::RunCorpus;
use crate::temporary::part_file::PartFile;

/// The group of each document that may match another, and the sketches of all groups.
pub(in crate::run) struct ComponentGroups {
    /// By document; [`UNMATCHED_GROUP`] if no other document may match it.
    group_of: Vec<u32>,
    /// Number of documents of each group.
    sizes: Vec<u32>,
    sketches: PartFile,
    sketcher: DocumentSketcher,
    feature_budget: usize,
}

/// The group of documents that nothing may match.
const UNMATCHED_GROUP: u32 = u32::MAX;

impl ComponentGroups {
    /// Divides the documents that `takes_document` accepts into groups, and their sketches with them.
    ///
    /// # Errors
    /// If a component is too large for the memory, or if temporary files cannot be read or written.
    pub(in crate::run) fn divide_documents(
        reading: &SpillFiles,
        corpus: &RunCorpus<'_>,
        nodes: &LinkedNodes,
        takes_document: &dyn Fn(DocId) -> bool,
    ) -> Result<Self> {
        let documents = corpus.len();
        let per_document = (reading.sketches.written_bytes() + reading.released)
            .div_ceil(documents.max(1) as u64)
            + BYTES_BESIDE_SKETCHES;
        let grouped = corpus
            .input_documents()
            .filter(|&document| takes_document(document));
        let component = |document| nodes.component_of(corpus, document);
        let (group_of, sizes) = GroupAssignment {
            shares: &reading.shares,
            per_document,
            component: &component,
        }
        .assign_groups(documents, nodes.len(), grouped)?;
        let sketcher = reading.setup.document_sketcher().clone();
        let groups = Self {
            sketches: PartFile::create_file(
                reading.directory.as_deref(),
                sizes.len() as u32,
                reading.shares.buffered_bytes,
            )?,
            feature_budget: reading.shares.held_features,
            group_of,
            sizes,
            sketcher,
        };
        let first = documents - corpus.input_documents().count();
        groups.divide_sketches(&reading.sketches, first)?;
        Ok(groups)
    }

    /// Divides the sketches of all documents from number `first` on.
    fn divide_sketches(&self, all: &PartFile, mut first: usize) -> Result<()> {
        let mut pieces: Vec<DocumentSketches> = Vec::new();
        all.visit_part(0, |block| {
            let sketches = decode_sketches(&self.sketcher, block, usize::MAX >> 8)?;
            pieces.clear();
            pieces.resize_with(self.sizes.len(), || {
                self.sketcher.new_sketches(usize::MAX >> 8)
            });
            let groups = &self.group_of[first..first + sketches.len()];
            for (at, &group) in groups.iter().enumerate() {
                if group != UNMATCHED_GROUP {
                    pieces[group as usize].append_document(&sketches, DocId(at as u32));
                }
            }
            first += sketches.len();
            for (group, piece) in (0..).zip(&pieces) {
                if !piece.is_empty() {
                    self.sketches
                        .push_block(group, &encode_sketches(&self.sketcher, piece))?;
                }
            }
            Ok(())
        })?;
        self.sketches.finish_writing()
    }

    /// Number of groups.
    pub(in crate::run) fn group_count(&self) -> usize {
        self.sizes.len()
    }

    /// Number of documents that another one may match.
    pub(in crate::run) fn member_count(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).sum()
    }

    /// Returns all bytes that were written to the file of the groups.
    pub(in crate::run) fn written_bytes(&self) -> u64 {
        self.sketches.written_bytes()
    }

    /// Returns `true` if no other document may match a document.
    pub(in crate::run) fn is_alone(&self, document: DocId) -> bool {
        self.group_of[document.index()] == UNMATCHED_GROUP
    }

    /// Loads the documents of a group, from 0. First come the documents of an index that match one of them by
    /// `index_matches`, the matches of all documents, sorted by document.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(in crate::run) fn load_group<'a>(
        &self,
        group: usize,
        corpus: &'a RunCorpus<'a>,
        ranks: Option<&[u32]>,
        index_matches: &[DocumentRemoval],
    ) -> Result<GroupCorpus<'a>> {
        let of_group = index_matches.iter();
        let index_matches: Vec<DocumentRemoval> = of_group
            .filter(|found| self.group_of[found.document.index()] == group as u32)
            .copied()
            .collect();
        let mut members: Vec<DocId> = index_matches.iter().map(|found| found.kept.with).collect();
        members.sort_unstable();
        members.dedup();
        let mut sketches = self.sketcher.new_sketches(self.feature_budget);
        corpus.add_empty_sketches(&self.sketcher, members.len(), &mut sketches);
        self.sketches.visit_part(group as u32, |block| {
            let piece = decode_sketches(&self.sketcher, block, usize::MAX >> 8)?;
            sketches.append_sketches(&piece);
            Ok(())
        })?;
        let documents = (0..).map(DocId).zip(&self.group_of);
        let of_group = documents.filter(|&(_, &of)| of == group as u32);
        members.extend(of_group.map(|(document, _)| document));
        if members.len() != sketches.len() {
            return Err(damaged_sketches());
        }
        Ok(GroupCorpus::new(
            corpus,
            members,
            sketches,
            index_matches,
            ranks,
        ))
    }
}

/// Bytes of memory for a document of a group beside its sketches and keys.
const BYTES_BESIDE_SKETCHES: u64 = 64;

/// Mark of a component that has a group.
const ASSIGNED_MARK: u32 = 1 << 31;

/// The group of components with a single document.
const NO_GROUP: u32 = ASSIGNED_MARK - 1;

struct GroupAssignment<'a> {
    shares: &'a RunShares,
    per_document: u64,
    component: &'a dyn Fn(DocId) -> u32,
}

impl GroupAssignment<'_> {
    /// Returns the group of each of `documents` documents, and the number of documents of each group. Only those in
    /// `grouped` are in groups. There are `components` numbers of components.
    fn assign_groups(
        &self,
        documents: usize,
        components: usize,
        grouped: impl Iterator<Item = DocId> + Clone,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        // The number of documents of a component, and once its first document was met, the mark and its group.
        let mut members = vec![0u32; components];
        for document in grouped.clone() {
            let count = &mut members[(self.component)(document) as usize];
            *count = (*count + 1).min(ASSIGNED_MARK - 1);
        }
        let target_documents = (self.shares.group_bytes / self.per_document).max(1);
        let most = (self.shares.largest_group_bytes / self.per_document).min(u64::from(NO_GROUP));
        let mut of_groups: Vec<u32> = Vec::new();
        let mut group_of = vec![UNMATCHED_GROUP; documents];
        for document in grouped {
            let member = &mut members[(self.component)(document) as usize];
            if *member & ASSIGNED_MARK == 0 {
                let count = *member;
                if u64::from(count) > most {
                    return Err(self.shares.refuse_component(count, self.per_document));
                }
                *member = ASSIGNED_MARK | NO_GROUP;
                if count > 1 {
                    let has_room =
                        |&size: &u32| u64::from(size) + u64::from(count) <= target_documents;
                    match of_groups.last_mut().filter(|size| has_room(size)) {
                        Some(size) => *size += count,
                        None => of_groups.push(count),
                    }
                    *member = ASSIGNED_MARK | (of_groups.len() as u32 - 1);
                }
            }
            group_of[document.index()] = match *member & !ASSIGNED_MARK {
                NO_GROUP => UNMATCHED_GROUP,
                group => group,
            };
        }
        Ok((group_of, of_groups))
    }
}

fn encode_sketches(sketcher: &DocumentSketcher, sketches: &DocumentSketches) -> Vec<u8> {
    let mut bytes = (sketches.len() as u32).to_le_bytes().to_vec();
    sketcher.encode_columns(sketches, true, &mut bytes);
    bytes
}

fn decode_sketches(
    sketcher: &DocumentSketcher,
    block: &[u8],
    feature_budget: usize,
) -> Result<DocumentSketches> {
    let mut reader = lookalike::byte_reader::ByteReader::new(block);
    let sketches = reader.read_u32().and_then(|documents| {
        let sketches = sketcher.decode_columns(&mut reader, feature_budget)?;
        let is_whole = sketches.len() == documents as usize && reader.is_at_end();
        is_whole.then_some(sketches)
    });
    sketches.ok_or_else(damaged_sketches)
}

fn damaged_sketches() -> Error {
    Error::input_error(
        "the temporary file of sketches does not hold what was written to it: check the disk, and \
         run again",
    )
}

/// The documents of a group, numbered from 0 in reading order.
pub(in crate::run) struct GroupCorpus<'a> {
    corpus: &'a RunCorpus<'a>,
    members: Vec<DocId>,
    sketches: DocumentSketches,
    order: Option<Vec<DocId>>,
    times: Vec<f64>,
    partitions: Vec<u64>,
    known: usize,
    index_matches: Vec<DocumentRemoval>,
}

impl<'a> GroupCorpus<'a> {
    fn new(
        corpus: &'a RunCorpus<'a>,
        members: Vec<DocId>,
        sketches: DocumentSketches,
        mut index_matches: Vec<DocumentRemoval>,
        ranks: Option<&[u32]>,
    ) -> Self {
        let local =
            |document: DocId| DocId(members.partition_point(|&member| member < document) as u32);
        for found in &mut index_matches {
            found.document = local(found.document);
            found.kept.with = local(found.kept.with);
        }
        let all = corpus.match_corpus();
        let of = |column: &[u64]| {
            members
                .iter()
                .map(|member| column[member.index()])
                .collect()
        };
        let times = all.window.map_or(&[][..], |window| window.times);
        let times = times
            .is_empty()
            .then(Vec::new)
            .unwrap_or_else(|| members.iter().map(|member| times[member.index()]).collect());
        let order = ranks.map(|ranks| {
            let mut order: Vec<DocId> = (0..members.len() as u32).map(DocId).collect();
            order.sort_unstable_by_key(|local| ranks[members[local.index()].index()]);
            order
        });
        Self {
            known: members.partition_point(|member| member.index() < all.known_prefix),
            partitions: all.partitions.map_or_else(Vec::new, of),
            times,
            order,
            index_matches,
            corpus,
            members,
            sketches,
        }
    }

    /// Returns the group as the engine takes it.
    pub(in crate::run) fn match_corpus(&self) -> MatchCorpus<'_> {
        let all = self.corpus.match_corpus();
        MatchCorpus {
            plan: all.plan,
            sketches: &self.sketches,
            texts: self,
            order: self.order.as_deref(),
            partitions: (!self.partitions.is_empty()).then_some(&self.partitions),
            window: all.window.map(|window| TimeWindow {
                times: &self.times,
                ..window
            }),
            known_prefix: self.known,
            decisions: None,
        }
    }

    /// Returns the matches of the group's documents in an index, sorted by document.
    pub(in crate::run) fn index_matches(&self) -> &[DocumentRemoval] {
        &self.index_matches
    }

    /// Number of documents.
    pub(in crate::run) fn len(&self) -> usize {
        self.members.len()
    }

    /// Number of documents of an index and of `--against`.
    pub(in crate::run) fn known_count(&self) -> usize {
        self.known
    }

    /// Returns the number that a document of the group has in the run.
    pub(in crate::run) fn document_in_run(&self, local: DocId) -> DocId {
        self.members[local.index()]
    }
}

impl TextReanalysis for GroupCorpus<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> lookalike::Result<()> {
        let key = self.sketches.text_key(document);
        self.corpus
            .reanalyze(self.document_in_run(document), Some(key), visit)
            .map_err(lookalike::Error::text_error)
    }
}
