//! Decisions of a person on two texts.
//!
//! The documents that a decision can be about are found, read, prepared and compared first, in turns of the shared lock,
//! while nobody inserts: queries go on, and inserts wait. Then the decision is made and they are judged again under the
//! exclusive lock, by comparisons that are made already. Queries wait for that, some tens of microseconds for each of these
//! documents.
//!
//! Cost: a look-up for each text, the members of the clusters of these texts, which are read to know their contents, and
//! two searches for each document that is judged again. All of it is bounded, and a decision beyond a bound is refused
//! before it has changed anything.

mod advance_search;

use std::ops::ControlFlow;

use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::stream::{TextDecision, Timestamp};
use lookalike::text::AnalysisScratch;

use super::Collection;
use super::documents::open_content;
use super::member_walk::{MemberWalk, WalkEnd};
use crate::decision::{
    DecisionOutcome, DecisionPage, DecisionRequest, DecisionSubject, MOST_READ_BYTES,
    MOST_READ_MEMBERS, MOST_REJUDGED_BYTES, MOST_REJUDGED_DOCUMENTS, NamedText, RejudgedDocuments,
    StoredDecision,
};
use crate::document::{
    DocumentContent, KnownDocument, LONGEST_ID, NewDocument, PendingInsert, hash_id, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::files::log_progress::LogPosition;
use crate::settings::CollectionContent;
use crate::state::{
    ChangedRelations, CollectionState, DecisionPlan, PlannedCluster, PlannedDocument,
};

/// Largest size, in bytes, of the row of a decision.
const DECISION_ROW_BYTES: u64 = 256 + 2 * LONGEST_ID as u64;

/// Rows of members that are read under one lock.
const ROWS_PER_LOCK: usize = 64;

fn decision_error(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Decision, what)
}

impl Collection {
    /// Decides about two texts, and judges the documents again for which that changes something; returns once all is on
    /// disk.
    ///
    /// From now on the relation of matching is the one that decisions correct, as in a batch: *same* is a match with
    /// similarity 1, *different* is none, and neither do two texts match that are decided as different from the same third
    /// one, unless they are equal or a decision says otherwise. A document that is judged again gets a new sequence number,
    /// as if it were deleted and inserted again with the time that it has.
    ///
    /// # Errors
    /// [`ErrorKind::Decision`] if the collection holds fingerprints, the texts are the same, there is no such document,
    /// there are too many decisions, or too many documents would be judged again. Otherwise as for an insert.
    pub fn decide(&self, request: &DecisionRequest) -> Result<DecisionOutcome> {
        self.check_running()?;
        self.check_room(DECISION_ROW_BYTES)?;
        let (outcome, last) = self.decide_at(request, None)?;
        self.wait_for_row(last)?;
        Ok(outcome)
    }

    /// Decides at a place of the shared log, as [`decide`](Self::decide) does, without waiting for the disk.
    ///
    /// # Errors
    /// As for [`decide`](Self::decide), and if the collection follows no log.
    pub fn decide_logged(
        &self,
        request: &DecisionRequest,
        position: LogPosition,
    ) -> Result<DecisionOutcome> {
        self.check_follows_log()?;
        self.check_running()?;
        self.decide_at(request, Some(position))
            .map(|(outcome, _)| outcome)
    }

    /// Returns the bytes of disk that a decision can want now, about, as its documents are written again.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn most_decision_room(&self) -> Result<u64> {
        let records = self.read_state()?.record_bytes();
        let documents = records.min(MOST_REJUDGED_BYTES as u64);
        Ok((DECISION_ROW_BYTES + documents) * super::ROOM_FOR_BYTE)
    }

    /// Returns a page of decisions, in the order in which they were made. With `id`, those on the text of the document
    /// with that id.
    ///
    /// # Errors
    /// If there is no document with the id, or a file is damaged.
    pub fn list_decisions(
        &self,
        after: u64,
        count: usize,
        id: Option<&str>,
    ) -> Result<DecisionPage> {
        let content = id.map(|id| self.content_of_id(id)).transpose()?;
        let state = self.read_state()?;
        let total = state.decisions().len();
        let is_about =
            |text: &NamedText| content.is_none_or(|content| text.text.content == content);
        let mut found = state
            .decisions()
            .decisions_after(after)
            .filter(|decision| decision.texts.iter().any(is_about));
        let decisions: Vec<_> = found.by_ref().take(count).cloned().collect();
        let last = decisions.last().map(|decision| decision.seq);
        Ok(DecisionPage {
            continue_after: found.next().and(last),
            decisions,
            total,
        })
    }

    /// Returns the decision on two contents, in either order, if there is one.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn find_decision(&self, a: ContentHash, b: ContentHash) -> Result<Option<StoredDecision>> {
        let state = self.read_state()?;
        Ok(state.decisions().find_pair(a, b).cloned())
    }

    fn content_of_id(&self, id: &str) -> Result<ContentHash> {
        let text = self.text_of_id(id)?;
        Ok(ContentHash::from_text(&text))
    }

    fn text_of_id(&self, id: &str) -> Result<String> {
        let stored = self.find_document(id)?;
        let stored = stored
            .ok_or_else(|| decision_error(format!("there is no document '{}'", shorten_id(id))))?;
        match stored.content {
            DocumentContent::Text(text) => Ok(text),
            DocumentContent::Fingerprint(_) => Err(no_texts()),
        }
    }

    /// Makes a decision while nobody inserts. Returns the number of the last row, too.
    fn decide_at(
        &self,
        request: &DecisionRequest,
        position: Option<LogPosition>,
    ) -> Result<(DecisionOutcome, u64)> {
        if self.manifest.read().settings.holds == CollectionContent::Fingerprints {
            return Err(no_texts());
        }
        let _sole_caller = self.inserting_alone.lock();
        let _inserting = self.inserting.write();
        let now = (self.options.clock)();
        let applied = self.decide_alone(request, position, now);
        // A refusal that follows from the log is an answer of the entry as well. Judged again after a restart, by a later
        // state, the decision could be applied.
        if let (Err(error), Some(position)) = (&applied, position)
            && !error.is_local()
        {
            let mut state = self.write_state()?;
            let last_row = state.last_row();
            state.note_refusal(position, last_row);
        }
        applied
    }

    /// Makes a decision. The caller holds the locks of insertions.
    fn decide_alone(
        &self,
        request: &DecisionRequest,
        position: Option<LogPosition>,
        now: Timestamp,
    ) -> Result<(DecisionOutcome, u64)> {
        let recovered = position.filter(|&position| {
            let state = self.read_state();
            state.is_ok_and(|state| state.is_recovered(position))
        });
        let texts = self.resolve_subject(&request.subject)?;
        if recovered.is_some() {
            let outcome = DecisionOutcome {
                texts,
                decision: request.decision,
                seq: None,
                is_new: false,
                rejudged: RejudgedDocuments::default(),
                past_window: 0,
            };
            return Ok((outcome, 0));
        }
        if request.decision.is_some() {
            refuse_empty_texts(&texts)?;
        }
        let plan = DecisionPlanner::new(self, now).plan_decision(texts, request.decision)?;
        if position.is_none() {
            self.check_room(DECISION_ROW_BYTES + plan.written_bytes())?;
        }
        let mut state = self.write_state()?;
        let last_row = state.last_row();
        let outcome = state.apply_decision(plan, now)?;
        if let Some(position) = position {
            state.note_entry(position, last_row);
        }
        Ok((outcome, state.last_row()))
    }

    /// Returns the texts of a decision.
    fn resolve_subject(&self, subject: &DecisionSubject) -> Result<[NamedText; 2]> {
        let texts = match subject {
            DecisionSubject::Texts(texts) => texts.clone(),
            DecisionSubject::Documents([a, b]) => [self.named_text(a)?, self.named_text(b)?],
        };
        if texts[0].text.content == texts[1].text.content {
            return Err(decision_error(
                "both texts are the same, byte for byte: a decision is about two texts",
            ));
        }
        let state = self.read_state()?;
        for NamedText { text, .. } in &texts {
            let known = state.matcher.decided_text(text.content);
            if known.is_some_and(|known| known.text_key != text.text_key) {
                return Err(decision_error(format!(
                    "the key of the text '{}' is not that of an earlier decision on it: one of the two was not made under \
                     the recipe of the collection, so withdraw the earlier one or correct this one",
                    text.content
                )));
            }
        }
        drop(state);
        let is_long = |text: &NamedText| text.id.as_ref().is_some_and(|id| id.len() > LONGEST_ID);
        if texts.iter().any(is_long) {
            return Err(decision_error(format!(
                "an id of the decision has more than {LONGEST_ID} bytes, the limit"
            )));
        }
        Ok(texts)
    }

    fn named_text(&self, id: &str) -> Result<NamedText> {
        let text = self.text_of_id(id)?;
        let content = ContentHash::from_text(&text);
        let sketched = self
            .preparer
            .prepare_text(text, &mut AnalysisScratch::default());
        let text_key = sketched.text_key();
        Ok(NamedText {
            text: DecidedText { content, text_key },
            id: Some(id.to_owned()),
        })
    }
}

/// Key of a text of nothing but white space, as a document and a line of a file have it.
const EMPTY_TEXT_KEY: u128 = 0;

/// Refuses a decision on a text that matches nothing, whatever is decided about it.
fn refuse_empty_texts(texts: &[NamedText; 2]) -> Result<()> {
    let is_empty = |named: &&NamedText| named.text.text_key == EMPTY_TEXT_KEY;
    let Some(named) = texts.iter().find(is_empty) else {
        return Ok(());
    };
    let of = match &named.id {
        Some(id) => format!("the text of the document '{}'", shorten_id(id)),
        None => format!("the text '{}'", named.text.content),
    };
    Err(decision_error(format!(
        "{of} is empty: a document without a word or a sign matches nothing, so there is nothing to decide about it"
    )))
}

fn no_texts() -> Error {
    decision_error("the collection holds fingerprints, and a decision is about texts")
}

/// Finds and prepares the documents that a decision may judge again.
struct DecisionPlanner<'a> {
    collection: &'a Collection,
    now: Timestamp,
    scratch: AnalysisScratch,
    documents: usize,
    bytes: usize,
    /// Members of clusters whose texts were read, and the bytes of these texts.
    read_members: usize,
    read_bytes: usize,
}

impl<'a> DecisionPlanner<'a> {
    fn new(collection: &'a Collection, now: Timestamp) -> Self {
        Self {
            collection,
            now,
            scratch: AnalysisScratch::default(),
            documents: 0,
            bytes: 0,
            read_members: 0,
            read_bytes: 0,
        }
    }

    fn plan_decision(
        mut self,
        texts: [NamedText; 2],
        decision: Option<PairDecision>,
    ) -> Result<DecisionPlan> {
        let [a, b] = [texts[0].text, texts[1].text];
        let (pairs, decided) = {
            let state = self.collection.read_state()?;
            let pairs = state.pairs_of_decision([a, b], decision);
            let decided = state.preview_decision(TextDecision { a, b, decision }, &pairs);
            (pairs, decided)
        };
        let clusters = self.find_clusters(&pairs, &decided.changed)?;
        let mut plan = DecisionPlan {
            texts,
            decision,
            decided,
            clusters,
        };
        self.collection.search_in_advance(&mut plan, self.now)?;
        Ok(plan)
    }

    /// Returns the kept documents with a text of these pairs, each with the duplicates that can leave it.
    fn find_clusters(
        &mut self,
        pairs: &[[DecidedText; 2]],
        changed: &ChangedRelations,
    ) -> Result<Vec<PlannedCluster>> {
        let mut kept = Vec::new();
        for text in CollectionState::distinct_texts(pairs) {
            kept.extend(self.find_kept(text)?);
        }
        kept.sort_unstable_by_key(|document: &PlannedDocument| document.known.seq);
        let mut clusters = Vec::with_capacity(kept.len());
        for (at, kept) in kept.into_iter().enumerate() {
            let content = kept.text.content;
            // The first one is kept in any case, so only the others can lose all their duplicates.
            let can_leave = at > 0 && changed.may_join(content);
            if can_leave {
                self.count_document()?;
            }
            let is_wanted =
                |member: ContentHash| can_leave || changed.may_separate(content, member);
            let members = self.find_members(&kept.known, &is_wanted)?;
            clusters.push(PlannedCluster { kept, members });
        }
        Ok(clusters)
    }

    /// Returns the kept documents with a text, unless they are past the window.
    fn find_kept(&mut self, text: DecidedText) -> Result<Vec<PlannedDocument>> {
        let state = self.collection.read_state()?;
        let locations = state.matcher.find_kept_texts(text.text_key);
        let mut known = Vec::with_capacity(locations.len());
        for location in locations {
            let found = state.find_by_seq(location.order)?;
            known.extend(found.filter(|known| !state.is_past_any_window(known, self.now)));
        }
        drop(state);
        let mut kept = Vec::new();
        for document in known {
            let is_wanted = |content: ContentHash| content == text.content;
            kept.extend(self.prepare_wanted(&document, &is_wanted)?);
        }
        Ok(kept)
    }

    /// Returns the duplicates of a kept document that are wanted.
    fn find_members(
        &mut self,
        kept: &KnownDocument,
        is_wanted: &dyn Fn(ContentHash) -> bool,
    ) -> Result<Vec<PlannedDocument>> {
        let rows = self.list_member_rows(kept)?;
        let mut members = Vec::new();
        for portion in rows.chunks(ROWS_PER_LOCK) {
            let known: Vec<KnownDocument> = {
                let state = self.collection.read_state()?;
                let live = portion.iter().filter(|&&row| !state.is_dead_row(row));
                let known = live.map(|&row| state.find_by_row(row));
                known.filter_map(Result::transpose).collect::<Result<_>>()?
            };
            self.count_members(known.len())?;
            for member in known {
                if let Some(member) = self.prepare_wanted(&member, is_wanted)? {
                    self.count_document()?;
                    members.push(member);
                }
            }
        }
        Ok(members)
    }

    /// Returns the numbers of the rows of the duplicates of a kept document.
    fn list_member_rows(&self, kept: &KnownDocument) -> Result<Vec<u64>> {
        loop {
            let walk = MemberWalk::begin(&*self.collection.read_state()?, kept, self.now);
            let Some(mut walk) = walk else {
                return Ok(Vec::new());
            };
            let mut rows = Vec::new();
            let end = walk.visit_members(self.collection, &mut |row, member| {
                rows.extend(member.map(|_| row));
                if rows.len() > MOST_READ_MEMBERS {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            match end {
                WalkEnd::Complete | WalkEnd::Stopped => return Ok(rows),
                WalkEnd::ClusterGone => return Ok(Vec::new()),
                // A compaction has erased its place meanwhile.
                WalkEnd::PlaceLost => {}
            }
        }
    }

    /// Prepares a document for its second judgement, if its text is wanted.
    fn prepare_wanted(
        &mut self,
        known: &KnownDocument,
        is_wanted: &dyn Fn(ContentHash) -> bool,
    ) -> Result<Option<PlannedDocument>> {
        let (known, content, time) = {
            let state = self.collection.read_state()?;
            // Its record may have moved, or the document may be gone.
            if state.is_dead_row(known.number) {
                return Ok(None);
            }
            let Some(known) = state.find_by_row(known.number)? else {
                return Ok(None);
            };
            let time = state.window_start(&known);
            let content = open_content(&state, &known)?;
            (known, content, time)
        };
        let DocumentContent::Text(text) = content.into_content()? else {
            return Ok(None);
        };
        self.count_read_bytes(text.len())?;
        let content = ContentHash::from_text(&text);
        if !is_wanted(content) {
            return Ok(None);
        }
        let document = NewDocument {
            id: known.document.id.clone(),
            content: DocumentContent::Text(text),
            time: Some(time),
            meta: known.document.meta.clone(),
        };
        let preparer = &self.collection.preparer;
        let scratch = &mut self.scratch;
        let prepared = PendingInsert::new(document, CollectionContent::Texts, preparer, scratch)?;
        let text_key = prepared.sketched.text_key();
        let text = DecidedText { content, text_key };
        debug_assert_eq!(prepared.id_hash, hash_id(&known.document.id));
        self.count_bytes(&prepared)?;
        Ok(Some(PlannedDocument {
            known,
            prepared,
            text,
            check: None,
            comparisons: Vec::new(),
        }))
    }

    fn count_members(&mut self, members: usize) -> Result<()> {
        self.read_members += members;
        if self.read_members <= MOST_READ_MEMBERS {
            return Ok(());
        }
        Err(decision_error(format!(
            "the clusters of the two texts have {} documents or more, and a decision reads at most {MOST_READ_MEMBERS}, the \
             limit: delete documents of these clusters first",
            self.read_members
        )))
    }

    fn count_read_bytes(&mut self, bytes: usize) -> Result<()> {
        self.read_bytes += bytes;
        if self.read_bytes <= MOST_READ_BYTES {
            return Ok(());
        }
        Err(decision_error(format!(
            "the clusters of the two texts have {} bytes of texts or more, and a decision reads at most {MOST_READ_BYTES}, \
             the limit: delete documents of these clusters first",
            self.read_bytes
        )))
    }

    /// Counts a document that may be judged again.
    fn count_document(&mut self) -> Result<()> {
        self.documents += 1;
        if self.documents <= MOST_REJUDGED_DOCUMENTS {
            return Ok(());
        }
        let documents = format!("{} documents or more", self.documents);
        Err(too_large(&documents, MOST_REJUDGED_DOCUMENTS))
    }

    fn count_bytes(&mut self, prepared: &PendingInsert) -> Result<()> {
        self.bytes += prepared.content_bytes();
        if self.bytes <= MOST_REJUDGED_BYTES {
            return Ok(());
        }
        let bytes = format!("{} bytes of texts and metadata or more", self.bytes);
        Err(too_large(&bytes, MOST_REJUDGED_BYTES))
    }
}

fn too_large(value: &str, limit: usize) -> Error {
    decision_error(format!(
        "the decision may judge {value} again, and {limit} is the limit: delete documents of the clusters that it is about \
         first"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lookalike::plan::{MatchSettings, SimilarityMeasure};

    use super::*;
    use crate::collection::{CollectionOptions, VerificationLimits};
    use crate::disk::DiskFolder;
    use crate::document::{InsertAnswer, StoredVerdict};
    use crate::settings::CollectionSettings;

    fn open_collection(folder: &tempfile::TempDir, measure: SimilarityMeasure) -> Collection {
        let verification = VerificationLimits::default();
        open_limited(folder, measure, verification)
    }

    fn open_limited(
        folder: &tempfile::TempDir,
        measure: SimilarityMeasure,
        verification: VerificationLimits,
    ) -> Collection {
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let settings = CollectionSettings {
            matching: MatchSettings {
                measure,
                threshold: lookalike::Threshold::new(match measure {
                    SimilarityMeasure::Levenshtein => 0.9,
                    _ => 0.75,
                })
                .unwrap(),
                ..MatchSettings::default()
            },
            ..CollectionSettings::default()
        };
        let options = CollectionOptions {
            headroom: 0,
            verification,
            ..CollectionOptions::default()
        };
        Collection::create_empty(disk, &settings, options).unwrap()
    }

    fn insert(collection: &Collection, id: &str, text: &str, meta: Option<&str>) -> InsertAnswer {
        let document = NewDocument {
            id: id.to_owned(),
            content: DocumentContent::Text(text.to_owned()),
            time: None,
            meta: meta.map(str::to_owned),
        };
        let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
        let mut answers = collection.insert_documents(&[prepared.unwrap()]);
        answers.remove(0).unwrap()
    }

    /// Returns a text of 40 words, of which a variant from 1 on has three of its own, each at other places.
    fn variant_text(variant: usize) -> String {
        let own = ["", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"][variant];
        let words = (0..40).map(|at| {
            if variant > 0 && at / 3 == variant {
                format!("qqqqq{own} ")
            } else {
                format!("word{at} ")
            }
        });
        words.collect()
    }

    /// Inserts a kept document, another one, and duplicates of that one, most of which do not match each other.
    fn insert_clusters(collection: &Collection) {
        let other: String = (0..40).map(|at| format!("lamp{at} ")).collect();
        assert_eq!(
            insert(collection, "first", &other, None).cluster_id(),
            "first"
        );
        insert(collection, "second", &variant_text(0), None);
        for variant in 1..12 {
            let id = format!("copy{variant}");
            let answer = insert(collection, &id, &variant_text(variant), None);
            assert_eq!(answer.cluster_id(), "second", "{id}");
        }
    }

    fn same() -> DecisionRequest {
        DecisionRequest {
            subject: DecisionSubject::Documents(["first".to_owned(), "second".to_owned()]),
            decision: Some(PairDecision::Same),
        }
    }

    fn plan_same(collection: &Collection) -> DecisionPlan {
        let request = same();
        let texts = collection.resolve_subject(&request.subject).unwrap();
        let now = (collection.options.clock)();
        let planner = DecisionPlanner::new(collection, now);
        planner.plan_decision(texts, request.decision).unwrap()
    }

    fn apply_plan(collection: &Collection, plan: DecisionPlan) -> DecisionOutcome {
        let now = (collection.options.clock)();
        let mut state = collection.write_state().unwrap();
        state.apply_decision(plan, now).unwrap()
    }

    fn steps_taken(collection: &Collection) -> u64 {
        collection.read_state().unwrap().matcher.steps_taken()
    }

    /// Under the exclusive lock no texts are compared: neither with documents that stay, nor with those that are kept again.
    #[test]
    fn documents_are_compared_before_a_decision_is_made() {
        for measure in [SimilarityMeasure::Jaccard, SimilarityMeasure::Levenshtein] {
            let folder = tempfile::tempdir().unwrap();
            let collection = open_collection(&folder, measure);
            insert_clusters(&collection);
            let before_plan = steps_taken(&collection);
            let plan = plan_same(&collection);
            let before = steps_taken(&collection);
            assert!(before > before_plan, "{measure:?}");
            let outcome = apply_plan(&collection, plan);
            assert_eq!(outcome.rejudged.total, 12);
            let is_kept = |one: &&crate::RejudgedDocument| one.after.verdict == StoredVerdict::Kept;
            let kept = outcome.rejudged.first.iter().filter(is_kept).count();
            assert!(kept > 1, "{measure:?}: {kept}");
            assert_eq!(steps_taken(&collection), before, "{measure:?}");
        }
    }

    /// A document that is deleted between the search and the decision is the match of none.
    #[test]
    fn verdicts_follow_from_the_state_at_the_decision() {
        let folder = tempfile::tempdir().unwrap();
        let collection = open_collection(&folder, SimilarityMeasure::Jaccard);
        insert_clusters(&collection);
        let plan = plan_same(&collection);
        assert!(collection.delete_document("first").unwrap());
        assert!(collection.delete_document("copy1").unwrap());
        let outcome = apply_plan(&collection, plan);
        // Nothing matches the second document any more, so it and its duplicates stay.
        assert_eq!(outcome.rejudged.total, 0);
        let second = collection.find_document("second").unwrap().unwrap();
        assert_eq!(second.answer.verdict, StoredVerdict::Kept);
    }

    /// A decision beyond the bound of work is refused, and nothing has changed. On a replica it is applied.
    #[test]
    fn costly_decision_is_refused() {
        let verification = VerificationLimits {
            document_steps: 8,
            ..VerificationLimits::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let collection = open_limited(&folder, SimilarityMeasure::Jaccard, verification);
        insert_clusters(&collection);
        let last = collection.last_admitted_row().unwrap();
        let refused = collection.decide(&same()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooCostly);
        assert!(
            refused
                .to_string()
                .contains("512 steps of 64 cells, the limit"),
            "{refused}"
        );
        assert_eq!(collection.last_admitted_row().unwrap(), last);
        assert_eq!(collection.list_decisions(0, 9, None).unwrap().total, 0);
    }

    /// Comparisons of a decision are bounded together, and not each document by the bound of one.
    #[test]
    fn documents_of_a_decision_share_its_steps() {
        let folder = tempfile::tempdir().unwrap();
        let unlimited = open_collection(&folder, SimilarityMeasure::Levenshtein);
        insert_clusters(&unlimited);
        // Eleven duplicates were compared, each with one document.
        let document_steps = steps_taken(&unlimited) / 11 * 2;
        let verification = VerificationLimits {
            document_steps,
            ..VerificationLimits::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let collection = open_limited(&folder, SimilarityMeasure::Levenshtein, verification);
        insert_clusters(&collection);
        let outcome = collection.decide(&same()).unwrap();
        assert_eq!(outcome.rejudged.total, 12);
        assert!(steps_taken(&collection) > 3 * document_steps);
    }

    /// Documents that stay where they are do not count, however many there are.
    #[test]
    fn duplicates_that_stay_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let collection = open_collection(&folder, SimilarityMeasure::Jaccard);
        insert(&collection, "other", "lamp lamp table lamp chair", None);
        insert(&collection, "second", &variant_text(0), None);
        insert(&collection, "near", &variant_text(1), None);
        let copies = (0..=MOST_REJUDGED_DOCUMENTS).map(|copy| NewDocument {
            id: format!("copy{copy}"),
            content: DocumentContent::Text(variant_text(0)),
            time: None,
            meta: None,
        });
        let prepared = copies.map(|copy| {
            let prepared = collection.prepare_document(copy, &mut AnalysisScratch::default());
            prepared.unwrap()
        });
        let prepared: Vec<_> = prepared.collect();
        let answers = collection.insert_documents(&prepared);
        assert!(answers.into_iter().all(|answer| answer.is_ok()));
        let mut request = DecisionRequest {
            subject: DecisionSubject::Documents(["second".to_owned(), "near".to_owned()]),
            decision: Some(PairDecision::Different),
        };
        let outcome = collection.decide(&request).unwrap();
        assert_eq!(outcome.rejudged.total, 1);
        let again = collection.decide(&request).unwrap();
        assert!(!again.is_new);
        // Joined again, only the document itself leaves.
        request.decision = None;
        assert_eq!(collection.decide(&request).unwrap().rejudged.total, 1);
        assert!(!collection.decide(&request).unwrap().is_new);
        // They would all leave with the document that they are duplicates of.
        let documents = ["other".to_owned(), "second".to_owned()];
        request.subject = DecisionSubject::Documents(documents);
        request.decision = Some(PairDecision::Same);
        let refused = collection.decide(&request).unwrap_err();
        assert!(refused.to_string().contains("1001 documents"), "{refused}");
    }

    /// Members whose texts are read, documents and their bytes with the metadata are bounded, each by name.
    #[test]
    fn plan_of_a_decision_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let collection = open_collection(&folder, SimilarityMeasure::Jaccard);
        insert(
            &collection,
            "a",
            "one two three four five",
            Some("\"0123456789\""),
        );
        let mut planner = DecisionPlanner::new(&collection, Timestamp(0));
        let known = {
            let state = collection.read_state().unwrap();
            state.find_by_id("a", hash_id("a")).unwrap().unwrap()
        };
        let prepared = planner.prepare_wanted(&known, &|_| true).unwrap().unwrap();
        assert_eq!(planner.bytes, "one two three four five".len() + 12);
        planner.bytes = MOST_REJUDGED_BYTES;
        let refused = planner.count_bytes(&prepared.prepared).unwrap_err();
        assert!(
            refused.to_string().contains("bytes of texts and metadata"),
            "{refused}"
        );
        planner.bytes = 0;
        planner.documents = MOST_REJUDGED_DOCUMENTS;
        let refused = planner.count_document().unwrap_err();
        assert!(refused.to_string().contains("1001 documents"), "{refused}");
        assert_eq!(planner.read_bytes, "one two three four five".len());
        planner.read_bytes = MOST_READ_BYTES;
        assert!(planner.count_read_bytes(0).is_ok());
        let refused = planner.count_read_bytes(1).unwrap_err();
        assert!(
            refused.to_string().contains("1073741825 bytes of texts"),
            "{refused}"
        );
        assert!(planner.count_members(MOST_READ_MEMBERS).is_ok());
        let refused = planner.count_members(1).unwrap_err();
        assert!(
            refused.to_string().contains("100001 documents"),
            "{refused}"
        );
        assert_eq!(refused.kind(), ErrorKind::Decision);
    }
}
