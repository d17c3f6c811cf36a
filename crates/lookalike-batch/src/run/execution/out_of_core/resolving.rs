//! Resolves groups of components: verdicts, components of matching pairs, and all pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lookalike::dedup::{self, CopyPairs, DedupOutcome, DocumentRemoval, MatchingPair};
use lookalike::similarity::{DocumentMatch, Route};
use lookalike::{DocId, Similarity};
use lookalike_io::error::{Error, Result};

use crate::run::execution::out_of_core::component_groups::ComponentGroups;
use crate::run::execution::out_of_core::grouping::DocumentGrouping;
use crate::run::execution::run_corpus::RunCorpus;
use crate::temporary::part_file::PartFile;

/// The verdicts of all documents.
pub(in crate::run) struct RunVerdicts {
    pub(in crate::run) outcome: DedupOutcome,
    /// The component of matching pairs of every document, if components are wanted.
    pub(in crate::run) components: Option<Vec<DocId>>,
}

/// Decides all documents. `index_matches` are those in an index; see [`dedup::follow_verdicts_beside_index`]. Returns all
/// verdicts, and the component of matching pairs of every document if these are wanted. Calls `report` with the number of documents that have been decided.
///
/// # Errors
/// If temporary files or inputs cannot be read or written.
pub(in crate::run) fn decide_groups(
    corpus: &RunCorpus<'_>,
    grouping: DocumentGrouping,
    index_matches: &[DocumentRemoval],
    wants_components: bool,
    report: &(dyn Fn(usize) + Sync),
) -> Result<RunVerdicts> {
    let mut deciding = GroupVerdicts {
        corpus,
        index_matches,
        ranks: corpus.document_ranks(),
        removals: RemovalFile::create_file(corpus)?,
        components: wants_components.then(|| (0..corpus.len() as u32).map(DocId).collect()),
        decided: corpus.len() - grouping.groups().member_count() as usize,
        report,
    };
    report(0);
    deciding.decide_documents(grouping.groups(), |_| true)?;
    deciding.remove_documents_matching_index(&grouping)?;
    deciding.decide_repeats(&grouping)?;
    report(corpus.len());
    let GroupVerdicts {
        removals,
        components,
        ..
    } = deciding;
    // Removals take the memory that components and groups had.
    drop(grouping);
    let mut removals = removals.read_removals()?;
    corpus.sort_removals(&mut removals);
    Ok(RunVerdicts {
        outcome: DedupOutcome { removals },
        components,
    })
}

/// The verdicts of the groups so far.
struct GroupVerdicts<'a> {
    corpus: &'a RunCorpus<'a>,
    index_matches: &'a [DocumentRemoval],
    ranks: Option<Vec<u32>>,
    removals: RemovalFile,
    components: Option<Vec<DocId>>,
    decided: usize,
    report: &'a (dyn Fn(usize) + Sync),
}

impl GroupVerdicts<'_> {
    /// Decides groups, and keeps the verdicts of the documents that `is_wanted` accepts.
    fn decide_documents(
        &mut self,
        groups: &ComponentGroups,
        is_wanted: impl Fn(DocId) -> bool,
    ) -> Result<()> {
        for number in 0..groups.group_count() {
            let ranks = self.ranks.as_deref();
            let group = groups.load_group(number, self.corpus, ranks, self.index_matches)?;
            let local = group.match_corpus();
            let before = self.decided;
            // Documents of the second round count twice.
            let most = self.corpus.len();
            let report =
                |done: usize, _: &[DocumentRemoval]| (self.report)((before + done).min(most));
            let outcome =
                dedup::follow_verdicts_beside_index(&local, group.index_matches(), &report)?;
            self.decided += group.len();
            if let Some(components) = &mut self.components {
                let of_group = dedup::find_components(&local, &outcome)?;
                for (at, component) in (0..).map(DocId).zip(of_group) {
                    let document = group.document_in_run(at);
                    components[document.index()] = group.document_in_run(component);
                }
            }
            let removals = outcome.removals.into_iter().map(|mut removal| {
                removal.document = group.document_in_run(removal.document);
                removal.kept.with = group.document_in_run(removal.kept.with);
                removal
            });
            let mut wanted = removals.filter(|removal| is_wanted(removal.document));
            wanted.try_for_each(|removal| self.removals.push_removal(removal))?;
        }
        Ok(())
    }

    /// Removes the documents of the index's matches that are in no group.
    fn remove_documents_matching_index(&mut self, grouping: &DocumentGrouping) -> Result<()> {
        let (groups, nodes) = (grouping.groups(), grouping.nodes());
        let mut alone = self.index_matches.iter().filter(|found| {
            let is_first = nodes.earlier_equal(self.corpus, found.document).is_none();
            is_first && groups.is_alone(found.document)
        });
        alone.try_for_each(|&removal| self.removals.push_removal(removal))
    }

    /// Decides documents whose text an earlier one has. They are removed for the earliest one if it is kept. Else
    /// they are decided with their whole component, because a later kept document may be more similar.
    fn decide_repeats(&mut self, grouping: &DocumentGrouping) -> Result<()> {
        let (corpus, nodes) = (self.corpus, grouping.nodes());
        let mut is_removed = vec![false; corpus.len()];
        self.removals.visit_removals(|removal| {
            is_removed[removal.document.index()] = true;
        })?;
        let mut is_open = vec![false; nodes.len()];
        let mut opened = false;
        for document in (corpus.known_count()..corpus.len()).map(|at| DocId(at as u32)) {
            let Some(earliest) = nodes.earlier_equal(corpus, document) else {
                continue;
            };
            let component = nodes.component_of(corpus, document);
            if is_removed[earliest.index()] {
                is_open[component as usize] = true;
                opened = true;
            } else {
                let kept = DocumentMatch {
                    with: earliest,
                    similarity: Similarity::ONE,
                    route: Route::Exact,
                };
                let removal = DocumentRemoval { document, kept };
                self.removals.push_removal(removal)?;
            }
        }
        let is_repeat = |document| nodes.earlier_equal(corpus, document).is_some();
        if opened {
            let takes = |document| {
                let earliest = nodes.earlier_equal(corpus, document);
                is_open[nodes.component_of(corpus, document) as usize]
                    && earliest.is_none_or(|earliest| is_removed[earliest.index()])
            };
            let groups = grouping.regroup_documents(corpus, &takes)?;
            self.decide_documents(&groups, is_repeat)?;
        }
        if let Some(components) = &mut self.components {
            for document in corpus.input_documents() {
                if let Some(earliest) = nodes.earlier_equal(corpus, document) {
                    components[document.index()] = components[earliest.index()];
                }
            }
        }
        Ok(())
    }
}

/// Removals in a temporary file, so that memory is free for groups while they are decided.
struct RemovalFile {
    file: PartFile,
    pending: Vec<u8>,
    count: usize,
}

impl RemovalFile {
    fn create_file(corpus: &RunCorpus<'_>) -> Result<Self> {
        Ok(Self {
            file: PartFile::with_single_blocks(corpus.temporary_directory(), 1)?,
            pending: Vec::new(),
            count: 0,
        })
    }

    fn push_removal(&mut self, DocumentRemoval { document, kept }: DocumentRemoval) -> Result<()> {
        let documents = (document.0, kept.with.0);
        let pair = StoredPair::new(documents, kept.similarity, kept.route);
        self.pending.extend(pair.0);
        self.count += 1;
        if self.pending.len() < PAIRS_AT_ONCE * PAIR_BYTES {
            return Ok(());
        }
        self.write_pending()
    }

    fn write_pending(&mut self) -> Result<()> {
        self.file.push_block(0, &self.pending)?;
        self.pending.clear();
        Ok(())
    }

    fn visit_removals(&mut self, mut visit: impl FnMut(DocumentRemoval)) -> Result<()> {
        self.write_pending()?;
        self.file.visit_part(0, |block| {
            let (pairs, _) = block.as_chunks();
            for &pair in pairs {
                let pair = StoredPair(pair).to_pair(DocId).ok_or_else(damaged_pairs)?;
                visit(DocumentRemoval {
                    document: pair.a,
                    kept: DocumentMatch {
                        with: pair.b,
                        similarity: pair.similarity,
                        route: pair.route,
                    },
                });
            }
            Ok(())
        })
    }

    fn read_removals(mut self) -> Result<Vec<DocumentRemoval>> {
        let mut removals = Vec::with_capacity(self.count);
        self.visit_removals(|removal| removals.push(removal))?;
        Ok(removals)
    }
}

/// Bytes of a pair in a temporary file: the ranks (or, of a removal, the numbers) of both documents, their similarity and the route.
const PAIR_BYTES: usize = 17;

/// Bytes of pairs of all groups that wait to be written.
const BUFFERED_PAIRS: u64 = 4 << 20;

/// Number of pairs that are written or read at once.
const PAIRS_AT_ONCE: usize = 4096;

/// Finds all matching pairs of all groups, and calls `visit` with them in the order of a run in memory. Returns how
/// many documents have the text of an earlier one, if their pairs are left out; see [`dedup::find_pairs`].
///
/// # Errors
/// If temporary files or inputs cannot be read or written, and the errors of `visit`.
pub(in crate::run) fn find_pairs_of_groups(
    corpus: &RunCorpus<'_>,
    grouping: &DocumentGrouping,
    copies: CopyPairs,
    mut visit: impl FnMut(MatchingPair) -> Result<()>,
    report: &(dyn Fn(usize) + Sync),
) -> Result<usize> {
    let groups = grouping.groups();
    let ranks = corpus.document_ranks();
    let rank_of = |document: DocId| match &ranks {
        Some(ranks) => ranks[document.index()],
        None => document.0,
    };
    let file = PartFile::create_file(
        corpus.temporary_directory(),
        groups.group_count() as u32,
        BUFFERED_PAIRS,
    )?;
    let mut equal = 0;
    let mut decided = corpus.len() - groups.member_count() as usize;
    report(0);
    for number in 0..groups.group_count() {
        let group = groups.load_group(number, corpus, ranks.as_deref(), &[])?;
        // Pairs of a run with known documents have one of them each.
        let is_listed = corpus.known_count() == 0 || group.known_count() > 0;
        if !is_listed && copies != CopyPairs::None {
            decided += group.len();
            continue;
        }
        let mut pending = Vec::new();
        let write = |pair: MatchingPair| {
            if !is_listed {
                return Ok(());
            }
            let [a, b] = [pair.a, pair.b].map(|document| rank_of(group.document_in_run(document)));
            pending.extend(StoredPair::new((a, b), pair.similarity, pair.route).0);
            if pending.len() < PAIRS_AT_ONCE * PAIR_BYTES {
                return Ok(());
            }
            file.push_block(number as u32, &std::mem::take(&mut pending))
        };
        equal += dedup::find_pairs(&group.match_corpus(), copies, write, &|done| {
            report(decided + done);
        })?;
        file.push_block(number as u32, &pending)?;
        decided += group.len();
    }
    file.finish_writing()?;
    let order = ranks
        .is_some()
        .then(|| corpus.match_corpus().order)
        .flatten();
    let document = |rank: u32| order.map_or(DocId(rank), |order| order[rank as usize]);
    PairMerge::new(&file)?.visit_pairs(|stored| {
        let pair = stored.to_pair(document).ok_or_else(damaged_pairs)?;
        visit(pair)
    })?;
    Ok(equal)
}

fn damaged_pairs() -> Error {
    Error::input_error(
        "the temporary file of pairs does not hold what was written to it: check the disk, and run again",
    )
}

/// A pair as it is in the temporary file.
struct StoredPair([u8; PAIR_BYTES]);

impl StoredPair {
    fn new(ranks: (u32, u32), similarity: Similarity, route: Route) -> Self {
        let mut bytes = [0; PAIR_BYTES];
        bytes[..4].copy_from_slice(&ranks.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&ranks.1.to_le_bytes());
        bytes[8..16].copy_from_slice(&similarity.get().to_le_bytes());
        bytes[16] = route.file_number();
        Self(bytes)
    }

    fn ranks(&self) -> (u32, u32) {
        let rank = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| self.0[at + byte]));
        (rank(0), rank(4))
    }

    fn to_pair(&self, document: impl Fn(u32) -> DocId) -> Option<MatchingPair> {
        let (a, b) = self.ranks();
        let similarity = f64::from_le_bytes(std::array::from_fn(|byte| self.0[8 + byte]));
        Some(MatchingPair {
            a: document(a),
            b: document(b),
            similarity: Similarity::from_stored(similarity)?,
            route: Route::from_file_number(self.0[16])?,
        })
    }
}

/// The pairs of all groups, merged by their ranks. Memory: one write of each group.
struct PairMerge<'a> {
    file: &'a PartFile,
    groups: Vec<GroupPairs>,
}

/// The pairs of a group that are in memory.
#[derive(Default)]
struct GroupPairs {
    /// Number of writes that were read.
    read: usize,
    bytes: Vec<u8>,
    at: usize,
}

impl<'a> PairMerge<'a> {
    fn new(file: &'a PartFile) -> Result<Self> {
        let mut merge = Self {
            file,
            groups: (0..file.part_count())
                .map(|_| GroupPairs::default())
                .collect(),
        };
        for group in 0..merge.groups.len() {
            merge.load_pairs(group)?;
        }
        Ok(merge)
    }

    /// Reads the next pairs of a group that has none in memory.
    fn load_pairs(&mut self, number: usize) -> Result<()> {
        let group = &mut self.groups[number];
        let extents = self.file.extent_count(number as u32);
        while group.at == group.bytes.len() && group.read < extents {
            group.bytes.clear();
            group.at = 0;
            let bytes = &mut group.bytes;
            self.file.visit_extent(number as u32, group.read, |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })?;
            group.read += 1;
        }
        Ok(())
    }

    fn next_pair(&self, group: usize) -> Option<StoredPair> {
        let GroupPairs { bytes, at, .. } = &self.groups[group];
        bytes[*at..].first_chunk().map(|pair| StoredPair(*pair))
    }

    fn visit_pairs(mut self, mut visit: impl FnMut(&StoredPair) -> Result<()>) -> Result<()> {
        let next = |merge: &Self, group: usize| {
            let pair = merge.next_pair(group)?;
            Some(Reverse((pair.ranks(), group)))
        };
        let groups = 0..self.groups.len();
        let mut heap: BinaryHeap<_> = groups.filter_map(|group| next(&self, group)).collect();
        while let Some(Reverse((_, group))) = heap.pop() {
            let pair = self.next_pair(group).ok_or_else(damaged_pairs)?;
            visit(&pair)?;
            self.groups[group].at += PAIR_BYTES;
            self.load_pairs(group)?;
            heap.extend(next(&self, group));
        }
        Ok(())
    }
}
