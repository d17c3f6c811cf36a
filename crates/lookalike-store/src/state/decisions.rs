//! Decisions of a person: the table of those that hold, and the second judgement of the documents that they are about.
//!
//! # The law
//!
//! A document is kept if and only if no kept document before it matches it. A decision corrects the relation of matching.
//! So the documents for which the law would not hold any more are judged again: each leaves the collection and is
//! inserted again, with the time that it has, behind all others. These are
//!
//! - duplicates whose pair with the kept document that they name has another relation now;
//! - kept documents that an earlier kept one matches now;
//! - the duplicates that name one of these, because it is not kept any more.
//!
//! They are inserted in the order that they had. All others keep their verdicts: no kept document before them was added,
//! and none that they name has gone.
//!
//! # Two steps
//!
//! Under the shared lock, the documents are searched *in advance*: they are searched for matches by the decisions as they will
//! be ([`DecisionPreview`]), in turns, and nothing changes. Under the exclusive lock, the decision is made, and these searches
//! are brought up to date. They remember what they have compared, so little is left, and whatever was deleted or has expired
//! between the two steps is taken into account: the verdicts follow from the state under the exclusive lock alone.
//!
//! # On disk
//!
//! A decision is a row. The rows of the documents follow it in the same batch, so that a failure leaves all or nothing of
//! it. When a partition expires, the decisions in it are written again to the newest one, because a decision does not
//! expire.

use std::collections::{BTreeMap, HashMap, HashSet};

use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::stream::{
    DecisionPreview, KnownComparison, SearchTurn, StreamMatcher, TextDecision, Timestamp,
};

use super::CollectionState;
use super::verdicts::DocumentCheck;
use crate::decision::{
    DecisionOutcome, MOST_DECISIONS, NamedText, RejudgedDocument, RejudgedDocuments, StoredDecision,
};
use crate::document::{InsertAnswer, KnownDocument, PendingInsert, StoredVerdict};
use crate::error::{Error, ErrorKind, Result};
use crate::files::rows::{DecisionRow, PLACE_UNIT_BYTES, PartitionRow};

/// A pair of contents, the smaller one first.
type ContentPair = (ContentHash, ContentHash);

fn pair_of(a: ContentHash, b: ContentHash) -> ContentPair {
    (a.min(b), a.max(b))
}

/// A decision and the row that has it now.
#[derive(Debug)]
struct HeldDecision {
    row: u64,
    decision: StoredDecision,
}

/// The decisions that hold.
#[derive(Debug, Default)]
pub(crate) struct DecisionTable {
    by_seq: BTreeMap<u64, HeldDecision>,
    seq_of: HashMap<ContentPair, u64>,
}

impl DecisionTable {
    /// Applies a row with its number. It replaces the decision on the same texts.
    pub(crate) fn apply_row(&mut self, number: u64, row: &DecisionRow) {
        let [a, b] = &row.texts;
        let pair = pair_of(a.text.content, b.text.content);
        if let Some(seq) = self.seq_of.remove(&pair) {
            self.by_seq.remove(&seq);
        }
        if let Some(decision) = row.decision {
            let decision = StoredDecision {
                seq: row.seq,
                texts: row.texts.clone(),
                decision,
                at: row.at,
            };
            self.seq_of.insert(pair, row.seq);
            let held = HeldDecision {
                row: number,
                decision,
            };
            self.by_seq.insert(row.seq, held);
        }
    }

    /// Returns the decision on two contents, in either order.
    pub(crate) fn find_pair(&self, a: ContentHash, b: ContentHash) -> Option<&StoredDecision> {
        let held = self.by_seq.get(self.seq_of.get(&pair_of(a, b))?);
        held.map(|held| &held.decision)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_seq.len()
    }

    /// Returns the decisions after a number, ascending.
    pub(crate) fn decisions_after(&self, seq: u64) -> impl Iterator<Item = &StoredDecision> {
        let held = self.by_seq.range(seq.saturating_add(1)..);
        held.map(|(_, held)| &held.decision)
    }

    /// Returns the rows of decisions in rows before `first_row`, to be written again.
    fn rows_before(&self, first_row: u64) -> Vec<DecisionRow> {
        let held = self.by_seq.values().filter(|held| held.row < first_row);
        held.map(|HeldDecision { decision, .. }| DecisionRow {
            seq: decision.seq,
            texts: decision.texts.clone(),
            decision: Some(decision.decision),
            at: decision.at,
        })
        .collect()
    }
}

/// A document that may be judged again, prepared as it was inserted.
#[derive(Debug)]
pub(crate) struct PlannedDocument {
    pub(crate) known: KnownDocument,
    pub(crate) prepared: PendingInsert,
    /// Its text.
    pub(crate) text: DecidedText,
    /// The search for its matches, if it was searched in advance.
    pub(crate) check: Option<DocumentCheck>,
    /// Results of its comparisons with other documents that are judged again, by their sequence numbers before.
    pub(crate) comparisons: Vec<(u64, KnownComparison)>,
}

impl PlannedDocument {
    /// Returns the sequence number that it has until it is judged again.
    pub(crate) fn seq(&self) -> u64 {
        self.known.seq
    }

    /// Returns the memory of its search in advance, in bytes.
    pub(crate) fn search_bytes(&self) -> usize {
        let check = self.check.as_ref();
        let of_check = check.map_or(0, |check| check.search.memory_bytes());
        of_check + size_of_val(&*self.comparisons)
    }
}

/// A kept document with a text that a decision is about.
#[derive(Debug)]
pub(crate) struct PlannedCluster {
    pub(crate) kept: PlannedDocument,
    /// Its duplicates: all, or only those with a text that the decision is about.
    pub(crate) members: Vec<PlannedDocument>,
}

/// The decisions as they will be after another one.
#[derive(Debug)]
pub(crate) struct PreviewedDecision {
    pub(crate) preview: DecisionPreview,
    /// Relations that it changes.
    pub(crate) changed: ChangedRelations,
}

/// A decision whose documents were found in advance.
#[derive(Debug)]
pub(crate) struct DecisionPlan {
    pub(crate) texts: [NamedText; 2],
    pub(crate) decision: Option<PairDecision>,
    pub(crate) decided: PreviewedDecision,
    /// Clusters of kept documents with one of these texts, by their sequence numbers.
    pub(crate) clusters: Vec<PlannedCluster>,
}

/// The kept documents of a plan so far that stay kept.
#[derive(Debug, Default)]
pub(crate) struct StayingDocuments(HashMap<ContentHash, Vec<u64>>);

impl StayingDocuments {
    pub(crate) fn push(&mut self, document: &PlannedDocument) {
        let same_content = self.0.entry(document.text.content).or_default();
        same_content.push(document.seq());
    }

    /// Returns the sequence numbers of those that a later one can match now, and could not before.
    pub(crate) fn list_new_matches(
        &self,
        changed: &ChangedRelations,
        later: DecidedText,
    ) -> HashSet<u64> {
        let joined = changed.joined.get(&later.content).into_iter().flatten();
        let can_match = joined.filter_map(|content| self.0.get(content));
        can_match.flatten().copied().collect()
    }
}

impl DecisionPlan {
    fn documents(&self) -> impl Iterator<Item = &PlannedDocument> {
        let clusters = self.clusters.iter();
        clusters.flat_map(|cluster| std::iter::once(&cluster.kept).chain(&cluster.members))
    }

    /// Returns the units of the records of all documents.
    fn record_units(&self) -> u64 {
        let records = self.documents().map(|document| &document.prepared.record);
        let bytes: usize = records.map(|record| record.len()).sum();
        bytes as u64 / PLACE_UNIT_BYTES
    }

    /// Returns the bytes, about, that are written if all documents are judged again.
    pub(crate) fn written_bytes(&self) -> u64 {
        let documents = self.documents();
        let bytes = documents.map(|document| document.prepared.memory_bytes() as u64);
        bytes.sum()
    }
}

/// Relations of pairs of contents that a decision changes.
#[derive(Debug)]
pub(crate) struct ChangedRelations {
    by_pair: HashMap<ContentPair, Option<PairDecision>>,
    /// Contents that can match a content now, by that content.
    joined: HashMap<ContentHash, Vec<ContentHash>>,
}

impl ChangedRelations {
    fn new(
        pairs: &[[DecidedText; 2]],
        before: impl Fn(DecidedText, DecidedText) -> Option<PairDecision>,
        after: impl Fn(DecidedText, DecidedText) -> Option<PairDecision>,
    ) -> Self {
        let changed = pairs.iter().filter_map(|&[a, b]| {
            let relation = after(a, b);
            (before(a, b) != relation).then_some((pair_of(a.content, b.content), relation))
        });
        let by_pair: HashMap<_, _> = changed.collect();
        let mut joined: HashMap<_, Vec<_>> = HashMap::new();
        for (&(a, b), &relation) in &by_pair {
            if relation != Some(PairDecision::Different) {
                joined.entry(a).or_default().push(b);
                joined.entry(b).or_default().push(a);
            }
        }
        Self { by_pair, joined }
    }

    /// Returns `true` if the relation has changed, unless the texts still match for certain.
    pub(crate) fn may_separate(&self, a: ContentHash, b: ContentHash) -> bool {
        let relation = self.by_pair.get(&pair_of(a, b));
        relation.is_some_and(|&relation| relation != Some(PairDecision::Same))
    }
}

impl ChangedRelations {
    /// Returns `true` if there is a content that can match this one now, and could not before.
    pub(crate) fn may_join(&self, content: ContentHash) -> bool {
        self.joined.contains_key(&content)
    }
}

impl DecisionRow {
    fn to_decision(&self) -> TextDecision {
        let [a, b] = &self.texts;
        TextDecision {
            a: a.text,
            b: b.text,
            decision: self.decision,
        }
    }
}

impl CollectionState {
    /// Returns the decisions that hold.
    pub(crate) fn decisions(&self) -> &DecisionTable {
        &self.decisions
    }

    /// Returns the pairs of texts whose relation a decision can change: its own, and those with texts that are decided as
    /// different from one of the two. None if the decision holds already.
    pub(crate) fn pairs_of_decision(
        &self,
        texts: [DecidedText; 2],
        decision: Option<PairDecision>,
    ) -> Vec<[DecidedText; 2]> {
        let [a, b] = texts;
        let before = self.decisions.find_pair(a.content, b.content);
        let before = before.map(|before| before.decision);
        if before == decision {
            return Vec::new();
        }
        let mut pairs = vec![texts];
        let different = Some(PairDecision::Different);
        if before != different && decision != different {
            return pairs;
        }
        for (one, other) in [(a, b), (b, a)] {
            let partners = self
                .matcher
                .decided_partners(other.content, PairDecision::Different);
            let partners = partners.filter(|partner| partner.content != one.content);
            pairs.extend(partners.map(|partner| [one, partner]));
        }
        pairs
    }

    /// Makes a decision, and judges the documents again for which the law does not hold any more. `now` is the wall clock.
    ///
    /// # Errors
    /// If there are too many decisions, or the window is full: then nothing has changed. After any other error, the
    /// collection writes nothing any more.
    pub(crate) fn apply_decision(
        &mut self,
        plan: DecisionPlan,
        now: Timestamp,
    ) -> Result<DecisionOutcome> {
        let [a, b] = [&plan.texts[0], &plan.texts[1]].map(|named| named.text);
        let before = self.decisions.find_pair(a.content, b.content);
        if before.map(|before| before.decision) == plan.decision {
            return Ok(DecisionOutcome {
                seq: before.map(|before| before.seq),
                texts: plan.texts,
                decision: plan.decision,
                is_new: false,
                rejudged: RejudgedDocuments::default(),
                past_window: 0,
            });
        }
        if before.is_none() && self.decisions.len() >= MOST_DECISIONS {
            let what = format!(
                "the collection has {MOST_DECISIONS} decisions, the limit: withdraw some that are not needed any more"
            );
            return Err(Error::new(ErrorKind::Decision, what));
        }
        self.make_room_for_rows(plan.record_units(), now)?;
        let steps = self.matcher.step_limit();
        // The documents were within the limit when they were inserted. Refused now, they would be lost.
        self.matcher.set_step_limit(u64::MAX);
        let applied = self.decide_and_rejudge(plan, now);
        self.matcher.set_step_limit(steps);
        if let Err(error) = &applied {
            self.broken = Some(format!("a decision was applied in part: {error}"));
        }
        applied
    }

    fn decide_and_rejudge(
        &mut self,
        plan: DecisionPlan,
        now: Timestamp,
    ) -> Result<DecisionOutcome> {
        let DecisionPlan {
            texts,
            decision,
            decided: PreviewedDecision { preview, changed },
            clusters,
        } = plan;
        let seq = self.rows.partitions.next_row();
        let row = DecisionRow {
            seq,
            texts: texts.clone(),
            decision,
            at: now,
        };
        self.change_relation(&row);
        self.matcher.adopt_hashed_texts(&preview);
        let mut past_window = 0;
        let mut leaving = Vec::new();
        let mut staying = StayingDocuments::default();
        for PlannedCluster { mut kept, members } in clusters {
            if self.is_dead_row(kept.known.number) {
                continue;
            }
            let can_match = staying.list_new_matches(&changed, kept.text);
            let is_demoted = !can_match.is_empty()
                && !self.is_late(&kept.prepared, now)
                && self.matches_any(&mut kept, &can_match, now)?;
            let content = kept.text.content;
            let separated = members
                .into_iter()
                .filter(|member| is_demoted || changed.may_separate(content, member.text.content));
            let mut documents: Vec<PlannedDocument> = separated.collect();
            if is_demoted {
                documents.push(kept);
            } else {
                staying.push(&kept);
            }
            for document in documents {
                if self.is_dead_row(document.known.number) {
                    continue;
                }
                if self.is_late(&document.prepared, now) {
                    past_window += 1;
                    continue;
                }
                self.delete_document(&document.known, now);
                leaving.push(document);
            }
        }
        leaving.sort_unstable_by_key(PlannedDocument::seq);
        Ok(DecisionOutcome {
            texts,
            decision,
            seq: decision.map(|_| seq),
            is_new: true,
            rejudged: self.judge_all_again(leaving, now)?,
            past_window,
        })
    }

    /// Inserts documents that have left the collection a moment ago, in their order.
    fn judge_all_again(
        &mut self,
        leaving: Vec<PlannedDocument>,
        now: Timestamp,
    ) -> Result<RejudgedDocuments> {
        let mut rejudged = Vec::with_capacity(leaving.len());
        let mut new_seqs = HashMap::new();
        for mut document in leaving {
            let check = self.resume_check(&mut document, &new_seqs, now);
            let after = self.judge_again(&document.prepared, check, now)?;
            if let (StoredVerdict::Kept, Some(seq)) = (&after.verdict, after.seq) {
                new_seqs.insert(document.seq(), seq);
            }
            rejudged.push(RejudgedDocument {
                before: document.known.to_answer(false),
                after,
            });
        }
        Ok(RejudgedDocuments::new(rejudged))
    }

    /// Returns the search that was made in advance for a document, or a new one. `new_seqs` are the sequence numbers of the
    /// documents that were kept again, by those before.
    fn resume_check(
        &self,
        document: &mut PlannedDocument,
        new_seqs: &HashMap<u64, u64>,
        now: Timestamp,
    ) -> DocumentCheck {
        let Some(mut check) = document.check.take() else {
            let arrival = self.matcher.resolve_arrival(document.prepared.time, now);
            let search = self.matcher.begin_precheck(&arrival);
            return DocumentCheck::new(search, &self.check_memory);
        };
        check.search.end_preview();
        check.search.find_best_only();
        for (seq, known) in document.comparisons.drain(..) {
            if let Some(&order) = new_seqs.get(&seq) {
                check.search.note_comparison(order, known);
            }
        }
        check
    }

    /// Returns the decisions as they will be after another one, which can change the relation of these
    /// [pairs](Self::pairs_of_decision).
    pub(crate) fn preview_decision(
        &self,
        decision: TextDecision,
        pairs: &[[DecidedText; 2]],
    ) -> PreviewedDecision {
        let preview = self.matcher.preview_decisions(&[decision]);
        let before = |a, b| self.matcher.decided_relation(a, b);
        let after = |a, b| preview.decided_relation(a, b);
        let changed = ChangedRelations::new(pairs, before, after);
        PreviewedDecision { preview, changed }
    }

    /// Returns a search for all matches of a document by decisions that are not made yet, whose comparisons may take
    /// `step_limit` steps. A kept document does not find itself.
    pub(crate) fn begin_advance_search(
        &self,
        document: &PlannedDocument,
        preview: &DecisionPreview,
        step_limit: u64,
        now: Timestamp,
    ) -> DocumentCheck {
        let arrival = self.matcher.resolve_arrival(document.prepared.time, now);
        let search = self
            .matcher
            .begin_previewed_listing(&arrival, preview, step_limit);
        DocumentCheck::new(search, &self.check_memory)
    }

    /// Continues a search that was [begun](Self::begin_advance_search). Returns `true` if it is complete.
    pub(crate) fn continue_advance_search(
        &self,
        check: &mut DocumentCheck,
        document: &PlannedDocument,
        now: Timestamp,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let arrival = self.matcher.resolve_arrival(document.prepared.time, now);
        let own = self.document_slot(&document.known);
        self.continue_search(check, &document.prepared, &arrival, own, turn)
    }

    /// Returns an empty matcher of the same documents, whose decisions are those of a preview. It has no window, so that
    /// all of its documents are compared.
    pub(crate) fn empty_matcher_under(&self, preview: &DecisionPreview) -> Result<StreamMatcher> {
        let plan = self.settings.match_plan()?;
        let mut matcher = StreamMatcher::new(&self.settings.recipe, &plan, None)?;
        matcher.adopt_decisions(preview);
        matcher.begin_partition(0, Timestamp(0))?;
        Ok(matcher)
    }

    /// Writes a decision and corrects the relation.
    fn change_relation(&mut self, row: &DecisionRow) {
        self.append_decision(row);
        self.matcher.decide_texts(&[row.to_decision()]);
    }

    fn append_decision(&mut self, row: &DecisionRow) {
        let number = self.rows.partitions.next_row();
        self.rows.append_row(&PartitionRow::Decision(row.clone()));
        self.note_decision(number, row);
    }

    /// Notes the decision in a row, without its effect on the matcher.
    pub(super) fn note_decision(&mut self, number: u64, row: &DecisionRow) {
        self.rows.partitions.count_decision();
        self.decisions.apply_row(number, row);
    }

    /// Gives the matcher the decisions of all rows that were replayed.
    pub(super) fn restore_decisions(&mut self) {
        let decisions = self.decisions.decisions_after(0);
        let decisions: Vec<_> = decisions
            .map(|stored| TextDecision {
                a: stored.texts[0].text,
                b: stored.texts[1].text,
                decision: Some(stored.decision),
            })
            .collect();
        self.matcher.decide_texts(&decisions);
    }

    /// Writes the decisions of expired partitions to the newest one.
    pub(super) fn carry_decisions(&mut self) {
        let rows = self.decisions.rows_before(self.first_live_row());
        rows.iter().for_each(|row| self.append_decision(row));
    }

    /// Returns `true` if a kept document matches one of others, which are named by their sequence numbers.
    fn matches_any(
        &self,
        kept: &mut PlannedDocument,
        others: &HashSet<u64>,
        now: Timestamp,
    ) -> Result<bool> {
        let arrival = self.matcher.resolve_arrival(kept.prepared.time, now);
        let mut check = kept.check.take().unwrap_or_else(|| {
            DocumentCheck::new(self.matcher.begin_listing(&arrival), &self.check_memory)
        });
        check.search.end_preview();
        let turn = &mut SearchTurn::unlimited();
        self.continue_advance_search(&mut check, kept, now, turn)?;
        let is_match = check.matches_any(others);
        kept.check = Some(check);
        Ok(is_match)
    }

    pub(crate) fn is_late(&self, prepared: &PendingInsert, now: Timestamp) -> bool {
        self.matcher.resolve_arrival(prepared.time, now).late
    }

    /// Inserts a document that has left the collection a moment ago.
    fn judge_again(
        &mut self,
        prepared: &PendingInsert,
        mut check: DocumentCheck,
        now: Timestamp,
    ) -> Result<InsertAnswer> {
        let arrival = self.matcher.resolve_arrival(prepared.time, now);
        self.update_verdict_without(None, &mut check, prepared, &arrival)?;
        self.store_document(prepared, arrival.time, &check)
    }

    /// Returns the texts of decisions, each once.
    pub(crate) fn distinct_texts(pairs: &[[DecidedText; 2]]) -> Vec<DecidedText> {
        let mut seen = HashSet::new();
        let texts = pairs.iter().flatten().copied();
        texts.filter(|text| seen.insert(text.content)).collect()
    }
}
