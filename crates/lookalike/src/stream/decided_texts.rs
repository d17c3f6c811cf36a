//! Decisions of a person on texts of a stream. They correct the relation of matching, as those of a batch do
//! ([`ClassDecisions`]).
//!
//! A decision names contents. So the content of a document is hashed, but only if there is a decision on a text that is
//! equal to it after normalisation: all other documents cost one look-up in a hash table, which is empty without
//! decisions.
//!
//! Kept documents with such a text are listed by the key of the text. By the list a document finds those that are decided
//! as the same as its own content, although it may share no bucket with them.
//!
//! Cost of a decision: a look-up of a bucket for each of its two texts. Where equal texts are found by their fingerprints,
//! it is a scan of the text keys of all kept documents. Cost of a document with a decided text: the hashes of its text and
//! of those of its candidates that have a decided text, too; those of kept documents are remembered.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::pair_inputs::StreamTexts;
use super::precheck::PrecheckResult;
use super::search_turn::SearchTurn;
use super::{DocumentSlot, KeptMatch, SketchedDocument, StreamMatcher, Timestamp, better_match};
use crate::candidates::equal_text_key;
use crate::content_hash::ContentHash;
use crate::dedup::{ClassDecisions, DecidedText, PairDecision};
use crate::error::Result;
use crate::similarity::Route;
use crate::types::Similarity;

/// Location of a kept document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLocation {
    /// Its location.
    pub slot: DocumentSlot,
    /// Its place in the total order.
    pub order: u64,
    /// Start of its window.
    pub time: Timestamp,
}

/// A decision on two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextDecision {
    /// One text.
    pub a: DecidedText,
    /// The other text.
    pub b: DecidedText,
    /// The decision; `None` withdraws an earlier one.
    pub decision: Option<PairDecision>,
}

/// The decisions of a matcher as they are after further ones that are not made yet. A search
/// [under it](StreamMatcher::begin_previewed_listing) finds what it would find once they are made, and goes on after that.
/// It holds for the kept documents of the moment at which it was made, without those that are removed later. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct DecisionPreview(pub(super) Arc<DecidedTexts>);

impl DecisionPreview {
    /// Returns what the decisions will say about documents with these contents and text keys: `None` if the plan decides.
    pub fn decided_relation(&self, a: DecidedText, b: DecidedText) -> Option<PairDecision> {
        self.0.relation_of(a, b)
    }
}

/// Decisions on texts, and the kept documents with such a text.
#[derive(Debug, Default)]
pub(super) struct DecidedTexts {
    pairs: ClassDecisions,
    class_of: HashMap<ContentHash, u32>,
    /// The texts by their classes. A class whose decisions are withdrawn keeps its place, and is not used again.
    texts: Vec<DecidedText>,
    /// Classes with decisions, by the keys of their texts.
    classes_by_key: HashMap<u128, Vec<u32>>,
    /// Numbers of kept documents with these keys. Expired ones stay until their partition is dropped.
    kept_by_key: HashMap<u128, Vec<u64>>,
    /// Number of changes of the decisions.
    version: u64,
    /// Classes of kept documents whose text was hashed.
    hashed_classes: Mutex<HashMap<u64, Option<u32>>>,
}

impl DecidedTexts {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the same decisions, with classes that have the same numbers.
    fn copy_tables(&self) -> Self {
        Self {
            pairs: self.pairs.clone(),
            class_of: self.class_of.clone(),
            texts: self.texts.clone(),
            classes_by_key: self.classes_by_key.clone(),
            kept_by_key: self.kept_by_key.clone(),
            version: self.version,
            hashed_classes: Mutex::default(),
        }
    }

    /// Makes decisions. Returns the keys of texts that had no decision before.
    fn decide(&mut self, decisions: &[TextDecision]) -> HashSet<u128> {
        let mut new_keys = HashSet::new();
        for &TextDecision { a, b, decision } in decisions {
            let classes = [a, b].map(|text| self.add_class(text));
            let [a, b] = classes;
            self.pairs.decide_classes(a, b, decision);
            for class in classes {
                new_keys.extend(self.list_class(class));
            }
        }
        self.version += 1;
        let hashed = self.hashed_classes.get_mut();
        hashed.unwrap_or_else(PoisonError::into_inner).clear();
        new_keys
    }

    fn relation_of(&self, a: DecidedText, b: DecidedText) -> Option<PairDecision> {
        let class_of = |text: DecidedText| self.class_of.get(&text.content).copied();
        let (a_class, b_class) = (class_of(a)?, class_of(b)?);
        let have_equal_texts = a.text_key == b.text_key;
        self.pairs
            .relation_between(a_class, b_class, have_equal_texts)
    }

    /// Returns `true` if there is a decision on a text with this key.
    pub(super) fn has_text(&self, text_key: u128) -> bool {
        self.classes_by_key.contains_key(&text_key)
    }

    /// Returns the class of a text, if there is a decision on it.
    fn class_of_text(&self, text_key: u128, text: &str) -> Option<u32> {
        if !self.has_text(text_key) {
            return None;
        }
        self.class_of.get(&ContentHash::from_text(text)).copied()
    }

    /// Returns the class of a content, which is a new one if it has none.
    fn add_class(&mut self, text: DecidedText) -> u32 {
        let next = self.texts.len() as u32;
        match self.class_of.entry(text.content) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                entry.insert(next);
                self.texts.push(text);
                next
            }
        }
    }

    /// Lists a class under the key of its text if there are decisions on it. Returns that key if it is new.
    fn list_class(&mut self, class: u32) -> Option<u128> {
        let DecidedText {
            content,
            text_key: key,
        } = self.texts[class as usize];
        let has_decisions = self.pairs.has_decisions(class);
        if !has_decisions {
            // The next decision on the content begins a class of its own, as after a restart.
            self.class_of.remove(&content);
        }
        match self.classes_by_key.entry(key) {
            Entry::Vacant(entry) => {
                if has_decisions {
                    entry.insert(vec![class]);
                    return Some(key);
                }
            }
            Entry::Occupied(mut entry) => {
                let classes = entry.get_mut();
                classes.retain(|&other| other != class);
                if has_decisions {
                    classes.push(class);
                }
                if classes.is_empty() {
                    entry.remove();
                    self.kept_by_key.remove(&key);
                }
            }
        }
        None
    }

    /// Lists a kept document if there is a decision on a text with its key.
    pub(super) fn note_kept(&mut self, text_key: u128, number: u64) {
        if self.has_text(text_key) {
            self.kept_by_key.entry(text_key).or_default().push(number);
        }
    }

    /// Forgets a kept document that is removed.
    pub(super) fn forget_kept(&mut self, text_key: u128, number: u64) {
        if let Some(numbers) = self.kept_by_key.get_mut(&text_key) {
            numbers.retain(|&other| other != number);
            let hashed = self.hashed_classes.get_mut();
            hashed
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&number);
        }
    }

    /// Forgets kept documents that are dead.
    pub(super) fn forget_dead(&mut self, is_dead: impl Fn(u64) -> bool) {
        self.kept_by_key.retain(|_, numbers| {
            numbers.retain(|&number| !is_dead(number));
            !numbers.is_empty()
        });
        let hashed = self.hashed_classes.get_mut();
        let hashed = hashed.unwrap_or_else(PoisonError::into_inner);
        hashed.retain(|&number, _| !is_dead(number));
    }

    /// Returns bytes of memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        /// Of a text with a decision, in all tables.
        const BYTES_PER_TEXT: usize = 256;
        (self.texts.len() * BYTES_PER_TEXT) as u64
    }
}

impl StreamMatcher {
    /// Decides about pairs of texts, each in place of an earlier decision on them. Documents are checked by the corrected
    /// relation from now on. Verdicts on documents that are kept already are the caller's business.
    ///
    /// # Panics
    /// If both texts of a decision are the same.
    pub fn decide_texts(&mut self, decisions: &[TextDecision]) {
        let new_keys = self.decided.decide(decisions);
        for (key, number) in self.find_kept_numbers(&new_keys) {
            self.decided.note_kept(key, number);
        }
    }

    /// Returns the decisions as they are after [these](Self::decide_texts), and changes nothing.
    ///
    /// Cost: a copy of all decisions, beside that of making them.
    ///
    /// # Panics
    /// As [`decide_texts`](Self::decide_texts).
    pub fn preview_decisions(&self, decisions: &[TextDecision]) -> DecisionPreview {
        let mut decided = self.decided.copy_tables();
        let new_keys = decided.decide(decisions);
        for (key, number) in self.find_kept_numbers(&new_keys) {
            decided.note_kept(key, number);
        }
        DecisionPreview(Arc::new(decided))
    }

    /// Takes over what the searches under a preview have learnt about the texts of kept documents. The decisions must have
    /// been made a moment ago, from those of the preview's own moment.
    pub fn adopt_hashed_texts(&mut self, preview: &DecisionPreview) {
        debug_assert_eq!(self.decided.version, preview.0.version);
        let hashed = preview.0.hashed_classes.lock();
        let hashed = hashed.unwrap_or_else(PoisonError::into_inner).clone();
        *self
            .decided
            .hashed_classes
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner) = hashed;
    }

    /// Makes the decisions of a preview in a matcher that has no documents yet.
    pub fn adopt_decisions(&mut self, preview: &DecisionPreview) {
        self.decided = preview.0.copy_tables();
        self.decided.kept_by_key.clear();
    }

    /// Returns what decisions say about documents with these contents and text keys: `None` if the plan decides.
    pub fn decided_relation(&self, a: DecidedText, b: DecidedText) -> Option<PairDecision> {
        self.decided.relation_of(a, b)
    }

    /// Returns the text with a content, if there is a decision on it.
    pub fn decided_text(&self, content: ContentHash) -> Option<DecidedText> {
        let class = self.decided.class_of.get(&content)?;
        Some(self.decided.texts[*class as usize])
    }

    /// Returns the texts that are decided as the same as one, or as different from it.
    pub fn decided_partners(
        &self,
        of: ContentHash,
        decision: PairDecision,
    ) -> impl Iterator<Item = DecidedText> {
        let class = self.decided.class_of.get(&of);
        let partners = class.map(|&class| self.decided.pairs.partners_of(class, decision));
        let texts = &self.decided.texts;
        let partners = partners.into_iter().flatten();
        partners.map(|class| texts[class as usize])
    }

    /// Returns the kept documents whose text has this key after normalisation, in the order of their insertion. Some can
    /// be past the window.
    ///
    /// Cost: a look-up of a bucket, or where equal texts are found by their fingerprints and no decision is about
    /// them, a scan of all text keys.
    pub fn find_kept_texts(&self, text_key: u128) -> Vec<KeptLocation> {
        let numbers = match self.decided.kept_by_key.get(&text_key) {
            Some(numbers) => numbers.clone(),
            None if self.decided.has_text(text_key) => Vec::new(),
            None => {
                let found = self.find_kept_numbers(&HashSet::from([text_key]));
                found.into_iter().map(|(_, number)| number).collect()
            }
        };
        let live = numbers
            .into_iter()
            .filter(|&number| !self.partitions.is_dead(number));
        live.map(|number| {
            let (partition, at) = self.partitions.locate_number(number);
            KeptLocation {
                slot: partition.slot_at(at),
                order: partition.order_at(at),
                time: partition.time_at(at),
            }
        })
        .collect()
    }

    /// Returns the numbers of kept documents whose text has one of these keys, ascending for each key.
    fn find_kept_numbers(&self, text_keys: &HashSet<u128>) -> Vec<(u128, u64)> {
        let (low, next) = (
            self.partitions.lowest_number(),
            self.partitions.next_number(),
        );
        let mut found = Vec::new();
        let mut offer = |number: u64| {
            let (partition, at) = self.partitions.locate_number(number);
            let key = partition.text_key_at(at);
            if !partition.is_removed(at) && text_keys.contains(&key) {
                found.push((key, number));
            }
        };
        if text_keys.is_empty() {
            return found;
        }
        if self.codes.is_some() {
            (low..next).for_each(offer);
        } else {
            for &key in text_keys {
                self.buckets
                    .visit_bucket(equal_text_key(key), low, |number, _, _| {
                        if number < next {
                            offer(number);
                        }
                    });
            }
        }
        // A bucket can have a document twice, and keys can share one.
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Begins a check anew if decisions have changed since it began, and finds the class of its document.
    pub(super) fn follow_decisions(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
    ) {
        let preview = precheck.preview.clone();
        let decided = self.decided_of(preview.as_ref());
        let version = decided.version();
        if precheck.decisions == Some(version) {
            return;
        }
        if precheck.decisions.is_some() {
            *precheck = PrecheckResult {
                lists_all: precheck.lists_all,
                known: std::mem::take(&mut precheck.known),
                preview: preview.clone(),
                ..self.begin_precheck(&precheck.arrival)
            };
        }
        precheck.decisions = Some(version);
        let text = document.text();
        precheck.class = text.and_then(|text| decided.class_of_text(document.text_key(), text));
    }

    /// Returns the decisions by which a check compares: those of its preview, if it has one.
    fn decided_of<'a>(&'a self, preview: Option<&'a DecisionPreview>) -> &'a DecidedTexts {
        preview.map_or(&self.decided, |preview| &*preview.0)
    }

    /// Returns `true` if the plan does not decide about a candidate of a check.
    pub(super) fn is_candidate_decided(
        &self,
        precheck: &PrecheckResult,
        document: &SketchedDocument,
        number: u64,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let Some(class) = precheck.class else {
            return Ok(false);
        };
        let decided = self.decided_of(precheck.preview.as_ref());
        let Some(other) = self.class_of_kept(decided, number, texts, turn)? else {
            return Ok(false);
        };
        let (partition, at) = self.partitions.locate_number(number);
        let have_equal_texts = partition.text_key_at(at) == document.text_key();
        let pairs = &decided.pairs;
        let relation = pairs.relation_between(class, other, have_equal_texts);
        Ok(relation.is_some())
    }

    /// Returns the class of a kept document, if there is a decision on its text.
    fn class_of_kept(
        &self,
        decided: &DecidedTexts,
        number: u64,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<Option<u32>> {
        let (partition, at) = self.partitions.locate_number(number);
        let key = partition.text_key_at(at);
        if !decided.has_text(key) {
            return Ok(None);
        }
        let hashed = || {
            let hashed = decided.hashed_classes.lock();
            hashed.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(&class) = hashed().get(&number) {
            return Ok(class);
        }
        let mut class = None;
        texts.visit_text(partition.slot_at(at), &mut |text| {
            turn.add_text_bytes(text.len());
            class = decided.class_of_text(key, text);
        })?;
        hashed().insert(number, class);
        Ok(class)
    }

    /// Adds the kept documents that are decided as the same as the document of a check, which is otherwise complete.
    pub(super) fn find_decided_matches(
        &self,
        precheck: &mut PrecheckResult,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<()> {
        precheck.decided_matches.clear();
        let Some(class) = precheck.class else {
            return Ok(());
        };
        let preview = precheck.preview.clone();
        let decided = self.decided_of(preview.as_ref());
        let low = self.partitions.lowest_number();
        for other in decided.pairs.partners_of(class, PairDecision::Same) {
            let key = decided.texts[other as usize].text_key;
            let kept = decided.kept_by_key.get(&key).into_iter().flatten();
            for &number in kept.filter(|&&number| number >= low) {
                if !self.is_visible(number, precheck)
                    || self.class_of_kept(decided, number, texts, turn)? != Some(other)
                {
                    continue;
                }
                let (partition, at) = self.partitions.locate_number(number);
                let found = KeptMatch {
                    slot: partition.slot_at(at),
                    order: partition.order_at(at),
                    similarity: Similarity::ONE,
                    route: Route::Decision,
                };
                precheck.decided_matches.push(found);
                precheck.found = better_match(precheck.found, Some(found));
            }
        }
        Ok(())
    }
}
