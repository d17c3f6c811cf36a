//! The documents of a batch, and which of them may match whatever their texts are.

use std::collections::HashMap;

use super::corpus_buckets;
use super::document_cache::DocumentSource;
use super::pair_decisions::PairDecisions;
use super::pairs::CopyPairs;
use crate::candidates::buckets::DocumentRank;
use crate::forms;
use crate::hash::mix_bits;
use crate::plan::MatchPlan;
use crate::sketch::DocumentSketches;
use crate::types::DocId;

/// The documents of a run, their total order, and the restrictions on which of them may match.
#[derive(Clone, Copy)]
pub struct MatchCorpus<'a> {
    /// Match plan: how candidates are found and checked.
    pub plan: &'a MatchPlan,
    /// Sketches of every document.
    pub sketches: &'a DocumentSketches,
    /// Source that provides features, weights and sequences again.
    pub texts: &'a dyn DocumentSource,
    /// The documents in their total order; `None` if that is the order read.
    pub order: Option<&'a [DocId]>,
    /// Partition of every document, in the order read. Documents match only within a partition.
    pub partitions: Option<&'a [u64]>,
    /// Time window. Documents match only if their times differ by no more than its width.
    pub window: Option<TimeWindow<'a>>,
    /// Number of documents at the start of the order that are kept whatever they match.
    pub known_prefix: usize,
    /// Decisions of a person, which overrule the plan in verdicts and components.
    pub decisions: Option<&'a PairDecisions>,
}

/// A limit on how far apart in time two documents may be.
#[derive(Clone, Copy, Debug)]
pub struct TimeWindow<'a> {
    /// Times of all documents, in the order read.
    pub times: &'a [f64],
    /// Largest difference of two times at which documents may match, in the unit of `times`.
    pub width: f64,
}

impl<'a> MatchCorpus<'a> {
    /// Takes documents in the order read, without restrictions.
    pub fn new(
        plan: &'a MatchPlan,
        sketches: &'a DocumentSketches,
        texts: &'a dyn DocumentSource,
    ) -> Self {
        Self {
            plan,
            sketches,
            texts,
            order: None,
            partitions: None,
            window: None,
            known_prefix: 0,
            decisions: None,
        }
    }

    /// Returns `true` if two documents may match, whatever their texts are: they are of one partition
    /// and within the window, and not both are known.
    pub fn can_pair(&self, a: DocId, b: DocId) -> bool {
        let both_known = a.index().max(b.index()) < self.known_prefix;
        !both_known && self.within_reach(a, b)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.map_or(self.sketches.len(), <[_]>::len)
    }

    pub(crate) fn document_at(&self, rank: DocumentRank) -> DocId {
        self.order.map_or(DocId(rank), |order| order[rank as usize])
    }

    /// Returns `true` if the partition and the window allow a match of two documents.
    pub(crate) fn can_meet(&self, a: DocumentRank, b: DocumentRank) -> bool {
        self.within_reach(self.document_at(a), self.document_at(b))
    }

    fn within_reach(&self, a: DocId, b: DocId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.partitions
            .is_none_or(|partitions| partitions[a] == partitions[b])
            && self
                .window
                .is_none_or(|TimeWindow { times, width }| (times[a] - times[b]).abs() <= width)
    }

    /// Returns `true` if the order is that of the times of a window, so that all documents within reach
    /// of one are neighbours in the order.
    fn goes_by_time(&self) -> bool {
        let time =
            |times: &[f64], rank: usize| times[self.document_at(rank as DocumentRank).index()];
        let in_order = |TimeWindow { times, .. }: TimeWindow<'_>| {
            (1..self.len()).all(|rank| time(times, rank - 1) <= time(times, rank))
        };
        self.window.is_some_and(in_order)
    }

    /// Returns the partition of a document, or 0 if there are no partitions.
    pub(crate) fn partition_of(&self, rank: DocumentRank) -> u64 {
        self.partitions
            .map_or(0, |partitions| partitions[self.document_at(rank).index()])
    }

    /// Calls `visit` with the keys that stand for a key of a document: only documents of the same partition share them,
    /// and of documents of one form only those of which some slots agree.
    pub(crate) fn visit_corpus_keys(
        &self,
        key: u64,
        rank: DocumentRank,
        mut visit: impl FnMut(u64),
    ) {
        let key = self.partitioned_key(key, rank);
        match self.sketches.form_values(self.document_at(rank)) {
            None | Some([]) => visit(key),
            Some(values) => forms::visit_form_keys(values, |form| visit(mix_bits(key ^ form))),
        }
    }

    /// Returns a key that only documents of the same partition share.
    pub(crate) fn partitioned_key(&self, key: u64, rank: DocumentRank) -> u64 {
        match self.partitions {
            None => key,
            Some(partitions) => mix_bits(key ^ partitions[self.document_at(rank).index()]),
        }
    }
}

/// Documents that are equal after normalisation, as one node each.
pub(crate) struct EqualTextNodes {
    /// For each rank, the rank of the first document with the same text. With a window, every document
    /// is a node of its own, because equal texts may be out of each other's reach.
    first: Vec<DocumentRank>,
    together: bool,
}

impl EqualTextNodes {
    fn new(corpus: &MatchCorpus<'_>) -> Self {
        let mut nodes = Self::all_separate(corpus);
        if corpus.window.is_none() {
            nodes.together = true;
            nodes.merge_equal_texts(corpus);
        }
        nodes
    }

    /// Makes one node of the documents of each text. Documents with decisions stay nodes of their own, because
    /// they may match others than the documents of the same text do.
    fn merge_equal_texts(&mut self, corpus: &MatchCorpus<'_>) {
        let is_separate = |rank: DocumentRank| {
            let document = corpus.document_at(rank);
            corpus
                .decisions
                .is_some_and(|decisions| decisions.has_decisions(document))
        };
        // The first undecided document of a text whose earliest document has decisions.
        let mut first_undecided = HashMap::new();
        corpus_buckets::equal_texts(corpus, |rank, earliest| {
            if is_separate(rank) {
                return;
            }
            self.first[rank as usize] = if is_separate(earliest) {
                *first_undecided.entry(earliest).or_insert(rank)
            } else {
                earliest
            };
        });
    }

    /// Returns the nodes for a search for all pairs.
    pub(crate) fn for_pairs(corpus: &MatchCorpus<'_>, copies: CopyPairs) -> Self {
        if copies == CopyPairs::All || corpus.known_prefix > 0 {
            Self::all_separate(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns the nodes for verdicts and components. Documents with equal texts are one node only if
    /// they match the same others. With sentences they may not, because punctuation decides where
    /// sentences end and equal texts may differ in it.
    pub(crate) fn by_matches(corpus: &MatchCorpus<'_>) -> Self {
        if corpus.plan.equal_key().is_some() {
            Self::all_separate(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns every document as a node of its own.
    fn all_separate(corpus: &MatchCorpus<'_>) -> Self {
        Self {
            first: (0..corpus.len() as DocumentRank).collect(),
            together: false,
        }
    }

    /// Returns `true` if equal documents are one node.
    pub(crate) fn merges_equal_texts(&self) -> bool {
        self.together
    }

    pub(crate) fn first_equal(&self, rank: DocumentRank) -> DocumentRank {
        self.first[rank as usize]
    }

    pub(crate) fn is_first(&self, rank: DocumentRank) -> bool {
        self.first_equal(rank) == rank
    }
}

/// The window, where the order is that of time, so that documents out of reach can be cut off.
pub(super) struct WindowReach<'a> {
    pub(super) window: Option<(&'a MatchCorpus<'a>, TimeWindow<'a>)>,
}

impl<'a> WindowReach<'a> {
    pub(super) fn from_corpus(corpus: &'a MatchCorpus<'a>) -> Self {
        let window = corpus.window.filter(|_| corpus.goes_by_time());
        Self {
            window: window.map(|window| (corpus, window)),
        }
    }

    /// Cuts off, at both ends of ascending ranks, the documents that are too far from `rank` in time.
    pub(super) fn limit_to_window<'m>(
        &self,
        rank: DocumentRank,
        others: &'m [DocumentRank],
    ) -> &'m [DocumentRank] {
        let Some((corpus, TimeWindow { times, width })) = self.window else {
            return others;
        };
        let time = |rank: DocumentRank| times[corpus.document_at(rank).index()];
        let at = time(rank);
        let start = others.partition_point(|&other| at - time(other) > width);
        let others = &others[start..];
        &others[..others.partition_point(|&other| time(other) - at <= width)]
    }
}
