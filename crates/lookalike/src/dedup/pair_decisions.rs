//! Decisions of a person on pairs of documents, which overrule the match plan.
//!
//! The relation of matching is corrected, and nothing else: a pair that is decided as *same* matches with
//! similarity 1, whatever its texts are; a pair that is decided as *different* does not match; nor do two documents
//! that are decided as different from the same third one, unless their texts are equal: a person who marks 300 removals
//! beside one kept document as wrong wants all 300 back. Every other pair matches as the plan says. Partitions, windows and known documents restrict decided pairs as they restrict all
//! others. Verdicts follow from the corrected relation.
//!
//! A decision names contents, and several documents can have the same content. Therefore documents are put into
//! classes of equal content, and decisions stand between classes.
//!
//! Guarantee: every decided pair is compared, although it may share no bucket. Cost: a bit for each document, and
//! a look-up in a hash table for each candidate pair whose documents both have decisions.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::corpus::{EqualTextNodes, MatchCorpus};
use crate::candidates::buckets::DocumentRank;
use crate::content_hash::ContentHash;
use crate::text::TextState;
use crate::types::DocId;

/// A person's decision on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairDecision {
    /// The two texts are the same: they match.
    Same,
    /// The two texts are different: they do not match.
    Different,
}

/// A text that a decision names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecidedText {
    /// Hash of the text.
    pub content: ContentHash,
    /// Key of the text after normalisation.
    pub text_key: u128,
}

/// Decisions between classes of documents with equal content, and the relation that follows from them.
#[derive(Clone, Debug, Default)]
pub struct ClassDecisions {
    /// Decision between two classes, the smaller number first.
    decided: HashMap<(u32, u32), PairDecision>,
    /// Classes that are decided as the same as a class.
    same_as: HashMap<u32, BTreeSet<u32>>,
    /// Classes that are decided as different from a class.
    different_from: HashMap<u32, BTreeSet<u32>>,
}

impl ClassDecisions {
    /// Decides all pairs between two classes, in either order. A later decision replaces an earlier one, and `None`
    /// withdraws it.
    ///
    /// # Panics
    /// If both are the same class, because a content does not differ from itself.
    pub fn decide_classes(&mut self, a: u32, b: u32, decision: Option<PairDecision>) {
        assert_ne!(a, b, "a decision needs two contents");
        let pair = (a.min(b), a.max(b));
        match decision {
            Some(decision) => self.decided.insert(pair, decision),
            None => self.decided.remove(&pair),
        };
        for (class, other) in [(a, b), (b, a)] {
            let is_same = decision == Some(PairDecision::Same);
            set_member(&mut self.same_as, class, other, is_same);
            let is_different = decision == Some(PairDecision::Different);
            set_member(&mut self.different_from, class, other, is_different);
        }
    }

    /// Returns the decision on two classes, if there is one.
    pub fn decision_between(&self, a: u32, b: u32) -> Option<PairDecision> {
        self.decided.get(&(a.min(b), a.max(b))).copied()
    }

    /// Returns `true` if two classes are decided as different from the same third one.
    ///
    /// Cost: a look-up for each decision on the one that has fewer.
    pub fn have_common_difference(&self, a: u32, b: u32) -> bool {
        let different_from = |class: &u32| self.different_from.get(class);
        let (Some(a), Some(b)) = (different_from(&a), different_from(&b)) else {
            return false;
        };
        let (fewer, more) = if a.len() < b.len() { (a, b) } else { (b, a) };
        fewer.iter().any(|class| more.contains(class))
    }

    /// Returns what decisions say about two documents of these classes: `None` if the plan decides.
    pub fn relation_between(&self, a: u32, b: u32, have_equal_texts: bool) -> Option<PairDecision> {
        if a == b {
            return None;
        }
        self.decision_between(a, b).or_else(|| {
            let is_excluded = !have_equal_texts && self.have_common_difference(a, b);
            is_excluded.then_some(PairDecision::Different)
        })
    }

    /// Returns the classes that are decided as the same as one, or as different from it, ascending.
    pub fn partners_of(&self, class: u32, decision: PairDecision) -> impl Iterator<Item = u32> {
        let partners = match decision {
            PairDecision::Same => &self.same_as,
            PairDecision::Different => &self.different_from,
        };
        partners.get(&class).into_iter().flatten().copied()
    }

    /// Returns `true` if there is a decision on a class.
    pub fn has_decisions(&self, class: u32) -> bool {
        self.same_as.contains_key(&class) || self.different_from.contains_key(&class)
    }
}

/// Makes a class a member of the set of another one, or takes it out of that set. A set that is empty is removed.
fn set_member(sets: &mut HashMap<u32, BTreeSet<u32>>, class: u32, other: u32, is_member: bool) {
    if is_member {
        sets.entry(class).or_default().insert(other);
        return;
    }
    if let Entry::Occupied(mut entry) = sets.entry(class) {
        entry.get_mut().remove(&other);
        if entry.get().is_empty() {
            entry.remove();
        }
    }
}

/// Decisions on pairs of documents.
#[derive(Clone, Debug, Default)]
pub struct PairDecisions {
    /// One bit for each document: it has a class.
    has_class: Vec<u64>,
    class_of: HashMap<u32, u32>,
    classes: ClassDecisions,
}

impl PairDecisions {
    /// Puts a document into a class of equal content. A later class of the same document replaces an earlier one.
    pub fn set_class(&mut self, document: DocId, class: u32) {
        let word = document.index() / 64;
        if word >= self.has_class.len() {
            self.has_class.resize(word + 1, 0);
        }
        self.has_class[word] |= 1 << (document.index() % 64);
        self.class_of.insert(document.0, class);
    }

    /// Decides all pairs between two classes, in either order. A later decision replaces an earlier one.
    ///
    /// # Panics
    /// If both are the same class, because a content does not differ from itself.
    pub fn decide_classes(&mut self, a: u32, b: u32, decision: PairDecision) {
        self.classes.decide_classes(a, b, Some(decision));
    }

    fn classes_of(&self, a: DocId, b: DocId) -> Option<(u32, u32)> {
        let has_both = self.has_decisions(a) && self.has_decisions(b);
        has_both.then(|| (self.class_of[&a.0], self.class_of[&b.0]))
    }

    /// Returns the decision on a pair, if there is one.
    pub fn decision_between(&self, a: DocId, b: DocId) -> Option<PairDecision> {
        let (a, b) = self.classes_of(a, b)?;
        self.classes.decision_between(a, b)
    }

    /// Returns `true` if two documents are decided as different from the same third one.
    ///
    /// Cost: a look-up for each decision on the one that has fewer.
    pub fn have_common_difference(&self, a: DocId, b: DocId) -> bool {
        let classes = self.classes_of(a, b);
        classes.is_some_and(|(a, b)| self.classes.have_common_difference(a, b))
    }

    /// Returns `true` if a document is in a class, so that there may be decisions on it.
    pub fn has_decisions(&self, document: DocId) -> bool {
        let word = self.has_class.get(document.index() / 64);
        word.is_some_and(|word| word >> (document.index() % 64) & 1 == 1)
    }
}

/// The documents with which one is compared although they may share no bucket: those of a class decided as the
/// same, and those of the same text, which are nodes of their own if they have decisions.
#[derive(Default)]
pub(crate) struct DecidedPartners {
    lists: Vec<Vec<DocumentRank>>,
    /// For a node, by its first document: numbers of lists.
    of: HashMap<DocumentRank, Vec<u32>>,
}

impl DecidedPartners {
    pub(crate) fn new(corpus: &MatchCorpus<'_>, nodes: &EqualTextNodes) -> Self {
        let Some(decisions) = corpus.decisions else {
            return Self::default();
        };
        let mut partners = Self::default();
        partners.add_classes(corpus, decisions);
        partners.add_equal_texts(corpus, decisions, nodes);
        partners
    }

    fn add_classes(&mut self, corpus: &MatchCorpus<'_>, decisions: &PairDecisions) {
        let mut members: HashMap<u32, Vec<DocumentRank>> = HashMap::new();
        for rank in 0..corpus.len() as DocumentRank {
            let document = corpus.document_at(rank);
            if decisions.has_decisions(document) {
                let class = decisions.class_of[&document.0];
                members.entry(class).or_default().push(rank);
            }
        }
        for (&(a, b), &decision) in &decisions.classes.decided {
            let (Some(a), Some(b)) = (members.get(&a), members.get(&b)) else {
                continue;
            };
            if decision == PairDecision::Same {
                self.add_partners(a, b.clone());
                self.add_partners(b, a.clone());
            }
        }
    }

    /// Adds the nodes of a text that some documents with decisions have.
    fn add_equal_texts(
        &mut self,
        corpus: &MatchCorpus<'_>,
        decisions: &PairDecisions,
        nodes: &EqualTextNodes,
    ) {
        let text_of = |rank| corpus.sketches.text_key(corpus.document_at(rank));
        let ranks = 0..corpus.len() as DocumentRank;
        let mut by_text: HashMap<u128, Vec<DocumentRank>> = HashMap::new();
        for rank in ranks.clone() {
            let document = corpus.document_at(rank);
            let is_empty = corpus.sketches.text_state(document) == TextState::Empty;
            if decisions.has_decisions(document) && !is_empty {
                by_text.entry(text_of(rank)).or_default();
            }
        }
        for rank in ranks.filter(|&rank| nodes.is_first(rank)) {
            if let Some(members) = by_text.get_mut(&text_of(rank)) {
                members.push(rank);
            }
        }
        for members in by_text.into_values().filter(|members| members.len() > 1) {
            self.add_partners(&members.clone(), members);
        }
    }

    fn add_partners(&mut self, to: &[DocumentRank], list: Vec<DocumentRank>) {
        let number = self.lists.len() as u32;
        self.lists.push(list);
        for &rank in to {
            self.of.entry(rank).or_default().push(number);
        }
    }

    /// Returns the partners of a node, by its first document. Some may come several times.
    pub(crate) fn partners_of(&self, first: DocumentRank) -> impl Iterator<Item = DocumentRank> {
        let lists = self.of.get(&first).into_iter().flatten();
        lists.flat_map(|&list| self.lists[list as usize].iter().copied())
    }
}
