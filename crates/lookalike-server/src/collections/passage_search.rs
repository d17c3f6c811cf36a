//! Passages that a text shares with the kept documents of a collection.
//!
//! The index of a collection is made at the first search, from the stored texts, and is in memory only. It follows the
//! collection: each search first reads the documents that were inserted since the last one, and removed documents are
//! left out when a gram is looked up. Inserts do no work for it.
//!
//! Bounds: a search reads at most one page of new documents (16 MiB) by itself. If more wait, a thread reads them page
//! by page, and searches are refused until it is done. The indexes of all collections together have at most
//! [`passage_memory`](crate::config::ClientLimits::passage_memory) bytes. A search compares at most
//! [`MAX_EXAMINED`] candidates.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lookalike::Recipe;
use lookalike::passages::{
    BaseText, LivePassageIndex, PassageBudget, PassageSettings, SelectedGram, Winnower,
};
use lookalike::stream::StreamWindow;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_comparison::shared_passages::{SharedPassages, SourceComparer, read_base_texts};
use lookalike_documents::ExtractedText;
use lookalike_options::boilerplate_limit::BoilerplateLimit;
use lookalike_store::{
    CollectionContent, DocumentContent, DocumentSelection, ListedDocument, StoredVerdict,
};

use serde::Serialize;

use crate::api::answer_text::AnswerText;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::text_work::TextAllowance;
use crate::api::texts::{passage_problem, work_bytes};
use crate::collections::open_collection::OpenCollection;
use crate::service::ServiceState;

/// Candidates that a search compares with the text; those that share most grams with it come first.
pub(crate) const MAX_EXAMINED: usize = 1000;

/// Bytes of sources after which a search compares no more of them.
const MAX_EXAMINED_BYTES: usize = 64 << 20;

/// Documents that are read at a time.
const PAGE_DOCUMENTS: usize = 16 << 10;

/// Grams that are looked up, and documents that have them, under one lock of the collection, but for those of the last
/// gram.
const CHECKED_AT_A_TIME: usize = 1024;

/// Steps of looking a gram up, and of checking the life of a document that has it.
const STEPS_PER_LOOK_UP: u64 = 16;

/// Documents below which removed ones are not purged.
const MIN_PURGED: usize = 1024;

/// The search for passages in one collection.
#[derive(Default)]
pub(crate) struct PassageSearch {
    index: RwLock<PassageSourceIndex>,
    /// Locked while documents are added or purged.
    updating: Mutex<()>,
    /// `true` while a thread adds documents.
    is_building: AtomicBool,
    /// Bytes of memory of the index.
    bytes: AtomicU64,
    /// Why the last thread ended before all documents were added.
    failed: Mutex<Option<ApiProblem>>,
}

#[derive(Default)]
struct PassageSourceIndex {
    postings: LivePassageIndex,
    /// Sequence number of each document, ascending.
    seqs: Vec<u64>,
    /// Last sequence number that was examined.
    after: u64,
    /// Window under which documents were read. A wider one brings documents back.
    window: Option<StreamWindow>,
}

impl PassageSourceIndex {
    fn memory_bytes(&self) -> u64 {
        (self.postings.memory_bytes() + 8 * self.seqs.capacity()) as u64
    }
}

/// A search for the kept documents from which a text has passages.
pub(crate) struct SourceSearch {
    pub(crate) text: ExtractedText,
    /// Shortest length of a passage.
    pub(crate) settings: PassageSettings,
    /// Texts that all documents were given, which are no part of any passage.
    pub(crate) base: Vec<String>,
    /// Largest number of sources in the answer.
    pub(crate) limit: usize,
    /// `true` if a search beyond its budget ends with what it has found, and `false` if it fails.
    pub(crate) allows_partial: bool,
}

/// The kept documents of a collection from which a text has passages.
pub(crate) struct FoundSources {
    /// Documents that share a gram with the text.
    pub(crate) candidates: usize,
    /// Candidates that were compared with it.
    pub(crate) examined: usize,
    /// Number of those that share a passage with it.
    pub(crate) found: usize,
    /// `false` if the budget of the request ended the search before all candidates were compared.
    pub(crate) is_complete: bool,
    /// The sources of the answer as JSON, first those of which the text has most.
    pub(crate) sources: Vec<AnswerText>,
}

/// A kept document that shares a passage with a text, as it is answered.
#[derive(Serialize)]
struct PassageSourceJson<'a> {
    id: &'a str,
    /// A kept document is the representative of its cluster.
    cluster: &'a str,
    seq: u64,
    /// Words and characters of the text that lie in passages.
    copied: usize,
    /// Words and characters of the longest passage.
    longest: usize,
    /// The source is the first text.
    #[serde(flatten)]
    shared: &'a SharedPassages,
}

/// The sources of an answer as JSON, in their order: most copied words, longest passage, earliest document. Only as
/// many as the answer has are kept.
struct RankedSources {
    limit: usize,
    sources: BTreeMap<SourceRank, AnswerText>,
}

/// Place of a source in an answer: copied words and longest passage, both reversed, and sequence number.
type SourceRank = (Reverse<usize>, Reverse<usize>, u64);

impl RankedSources {
    /// Adds a source, unless better ones fill the answer.
    fn add_source(
        &mut self,
        id: &str,
        seq: u64,
        shared: &SharedPassages,
        allowance: &TextAllowance,
    ) -> Result<(), ApiProblem> {
        let lengths = shared.passages.iter().map(|passage| passage.length);
        let longest = lengths.max().unwrap_or(0);
        let rank = (Reverse(shared.copied), Reverse(longest), seq);
        let is_full = self.sources.len() == self.limit;
        let last = self.sources.last_key_value();
        if is_full && last.is_none_or(|(last, _)| *last < rank) {
            return Ok(());
        }
        let mut text = allowance.new_part();
        text.write_json(&PassageSourceJson {
            id,
            cluster: id,
            seq,
            copied: shared.copied,
            longest,
            shared,
        })?;
        text.close_part();
        // A source that finds no room leaves those that have it.
        if is_full {
            self.sources.pop_last();
        }
        self.sources.insert(rank, text);
        Ok(())
    }
}

/// Progress of an index after one page.
#[derive(PartialEq)]
enum PageProgress {
    Complete,
    MoreWait,
}

impl PassageSearch {
    /// Returns the bytes of memory of the index.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Finds what a text has from the kept documents. The passages have at least the length that `settings` say.
    ///
    /// # Errors
    /// If the collection holds no texts, its index is not complete yet or takes too much memory, a file is damaged, or
    /// the search takes more memory or work than it may.
    pub(crate) fn find_sources(
        &self,
        service: &Arc<ServiceState>,
        open: &Arc<OpenCollection>,
        search: &SourceSearch,
        allowance: &mut TextAllowance,
    ) -> Result<FoundSources, ApiProblem> {
        let collection = open.collection.collection_settings();
        if collection.holds != CollectionContent::Texts {
            let detail = format!(
                "the collection '{}' holds fingerprints without texts, in which no passages can be found: search a \
                 collection that holds texts",
                open.name
            );
            return Err(ApiProblem::new(ProblemCode::BadSettings, detail));
        }
        self.catch_up(service, open)?;
        let mut found = FoundSources {
            candidates: 0,
            examined: 0,
            found: 0,
            is_complete: true,
            sources: Vec::new(),
        };
        let mut ranked = RankedSources {
            limit: search.limit,
            sources: BTreeMap::new(),
        };
        let compared = self.compare_candidates(open, search, allowance, &mut found, &mut ranked);
        match compared {
            Err(problem) if search.allows_partial && problem.code == ProblemCode::TooCostly => {
                found.is_complete = false;
            }
            other => other?,
        }
        found.sources = ranked.sources.into_values().collect();
        Ok(found)
    }

    /// Compares the text with its candidates, until all are examined or a limit is reached.
    fn compare_candidates(
        &self,
        open: &OpenCollection,
        search: &SourceSearch,
        allowance: &mut TextAllowance,
        found: &mut FoundSources,
        ranked: &mut RankedSources,
    ) -> Result<(), ApiProblem> {
        let base_bytes: usize = search.base.iter().map(String::len).sum();
        let text_bytes = search.text.text.len() + base_bytes;
        // A count for each document, and lists of candidates.
        let counts = (size_of::<u32>() + size_of::<u64>()) * self.document_count();
        let held_bytes = text_bytes + counts;
        allowance.hold_memory(held_bytes, work_bytes(search.settings, text_bytes))?;
        let tokenizer = SpanTokenizer::new(&open.collection.collection_settings().recipe);
        let budget = Arc::clone(&allowance.budget);
        let base = read_base_texts(
            &tokenizer,
            search.settings,
            &search.base,
            budget.max_bytes(),
        )
        .map_err(passage_problem)?;
        let (text, settings) = (&search.text, search.settings);
        let mut comparer =
            SourceComparer::new_within(&tokenizer, text, settings, Some(&base), budget)
                .map_err(passage_problem)?;
        let tokens = comparer.document_tokens();
        let candidates = self.find_candidates(open, tokens, &base, &allowance.budget)?;
        found.candidates = candidates.len();
        let mut bytes = 0;
        for &seq in candidates.iter().take(MAX_EXAMINED) {
            if bytes >= MAX_EXAMINED_BYTES {
                break;
            }
            let source = open.collection.find_kept(seq);
            let source = source.map_err(|error| open.to_problem(error))?;
            found.examined += 1;
            let Some(source) = source else {
                continue;
            };
            let meta_bytes = source.meta.as_ref().map_or(0, String::len);
            let DocumentContent::Text(text) = source.content else {
                continue;
            };
            bytes += text.len();
            let both = text_bytes + text.len();
            let held_bytes = counts + both + meta_bytes;
            allowance.hold_memory(held_bytes, work_bytes(search.settings, both))?;
            let shared = comparer
                .find_passages(&ExtractedText::from_plain_text(text))
                .map_err(passage_problem)?;
            if !shared.passages.is_empty() {
                found.found += 1;
                ranked.add_source(&source.answer.id, seq, &shared, allowance)?;
            }
        }
        Ok(())
    }

    /// Returns the sequence numbers of the kept documents that share grams with a text, first those that share most.
    ///
    /// # Errors
    /// If the index is not complete yet or takes too much memory, a file is damaged, or the search takes more memory or work
    /// than it may.
    pub(crate) fn rank_candidates(
        &self,
        service: &Arc<ServiceState>,
        open: &Arc<OpenCollection>,
        text: &str,
        allowance: &mut TextAllowance,
    ) -> Result<Vec<u64>, ApiProblem> {
        self.catch_up(service, open)?;
        // A count for each document, and lists of candidates.
        let counts = (size_of::<u32>() + size_of::<u64>()) * self.document_count();
        let work = work_bytes(PassageSettings::default(), text.len());
        allowance.hold_memory(text.len() + counts, work)?;
        let tokenizer = SpanTokenizer::new(&open.collection.collection_settings().recipe);
        let mut tokens = SpannedTokens::default();
        let read = tokenizer.tokenize_text(text, &mut tokens);
        read.map_err(|error| ApiProblem::new(ProblemCode::TooLarge, error.to_string()))?;
        let base = BaseText::new(PassageSettings::default());
        self.find_candidates(open, &tokens, &base, &allowance.budget)
    }

    /// Returns the live documents that share grams with a text, first those that share most.
    fn find_candidates(
        &self,
        open: &OpenCollection,
        tokens: &SpannedTokens,
        base: &BaseText,
        budget: &PassageBudget,
    ) -> Result<Vec<u64>, ApiProblem> {
        let mut selected: Vec<SelectedGram> = Vec::new();
        Winnower::new(PassageSettings::default()).select_grams(tokens.values(), &mut selected);
        selected.retain(|gram| !base.has_gram(gram.hash));
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        // Grams that each document shares with the text, by its number.
        let mut shared = vec![0u32; index.seqs.len()];
        let mut documents = Vec::new();
        let mut rest = &selected[..];
        while !rest.is_empty() {
            let (mut grams, mut looked_up) = (0, 0);
            let visited = open.collection.visit_kept(|kept| {
                let limit = BoilerplateLimit::Usual.max_documents(kept.count() as usize);
                let is_live = |document: u32| kept.is_live(index.seqs[document as usize]);
                for gram in rest {
                    if grams + looked_up >= CHECKED_AT_A_TIME {
                        break;
                    }
                    grams += 1;
                    documents.clear();
                    let is_boilerplate =
                        index
                            .postings
                            .find_documents(gram.hash, limit, is_live, &mut documents);
                    looked_up += if is_boilerplate {
                        limit.unwrap_or(u32::MAX) as usize
                    } else {
                        documents.len()
                    };
                    for &document in &documents {
                        shared[document as usize] += 1;
                    }
                }
            });
            visited.map_err(|error| open.to_problem(error))?;
            let steps = STEPS_PER_LOOK_UP * (grams + looked_up) as u64;
            budget.take_steps(steps).map_err(passage_problem)?;
            rest = &rest[grams..];
        }
        let numbers = (0..index.seqs.len()).filter(|&document| shared[document] > 0);
        let mut candidates: Vec<usize> = numbers.collect();
        candidates.sort_by_key(|&document| (Reverse(shared[document]), document));
        let seqs = candidates.iter().map(|&document| index.seqs[document]);
        Ok(seqs.collect())
    }

    /// Adds the documents that were inserted since the last search. If there are many, a thread adds them.
    fn catch_up(
        &self,
        service: &Arc<ServiceState>,
        open: &Arc<OpenCollection>,
    ) -> Result<(), ApiProblem> {
        if self.is_building.load(Ordering::Acquire) {
            return Err(self.not_ready(open));
        }
        if let Some(problem) = lock(&self.failed).take() {
            return Err(problem);
        }
        if self.add_page(service, open)? == PageProgress::Complete {
            return Ok(());
        }
        if !self.is_building.swap(true, Ordering::AcqRel) {
            let (service, open) = (Arc::clone(service), Arc::clone(open));
            std::thread::spawn(move || {
                let _ended = EndOfBuilding(&open.passages.is_building);
                open.passages.add_rest(&service, &open);
            });
        }
        Err(self.not_ready(open))
    }

    /// Returns the number of documents in the index, removed ones included.
    fn document_count(&self) -> usize {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.seqs.len()
    }

    fn not_ready(&self, open: &OpenCollection) -> ApiProblem {
        let indexed = self.document_count();
        let detail = format!(
            "the passages of the collection '{}' are being indexed, {indexed} documents so far: try again later",
            open.name
        );
        ApiProblem::new(ProblemCode::PassagesNotReady, detail)
    }

    /// Adds all documents, page by page. Ends early if the collection is being deleted, or at an error, which the
    /// next search gets.
    fn add_rest(&self, service: &Arc<ServiceState>, open: &Arc<OpenCollection>) {
        let ended = loop {
            if open.check_not_deleting().is_err() {
                break Ok(());
            }
            match self.add_page(service, open) {
                Ok(PageProgress::MoreWait) => {}
                ended => break ended.map(drop),
            }
        };
        *lock(&self.failed) = ended.err();
    }

    /// Adds one page of documents, and purges removed ones if they are more than the others.
    fn add_page(
        &self,
        service: &ServiceState,
        open: &OpenCollection,
    ) -> Result<PageProgress, ApiProblem> {
        let _updating = lock(&self.updating);
        let settings = open.collection.collection_settings();
        let after = self.begin_page(settings.window);
        let is_kept = |verdict: &StoredVerdict| matches!(verdict, StoredVerdict::Kept);
        let selection = DocumentSelection {
            count: PAGE_DOCUMENTS,
            has_texts: true,
            accepts: &|answer, _| is_kept(&answer.verdict),
        };
        let last = open.collection.visit_kept(|kept| kept.last_seq());
        let last = last.map_err(|error| open.to_problem(error))?;
        let page = open.collection.list_documents(after, &selection);
        let page = page.map_err(|error| open.to_problem(error))?;
        let first = self
            .index
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .seqs
            .len();
        let (pairs, seqs) = select_postings(&settings.recipe, &page.documents, first as u32)?;
        self.check_memory(service, open, pairs.len() + seqs.len())?;
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.after = page
            .continue_after
            .unwrap_or(last.max(seqs.last().copied().unwrap_or(0)));
        index.seqs.extend(seqs);
        index.postings.append_postings(pairs);
        self.bytes.store(index.memory_bytes(), Ordering::Relaxed);
        drop(index);
        match page.continue_after {
            Some(_) => Ok(PageProgress::MoreWait),
            None => self.purge_removed(open).map(|()| PageProgress::Complete),
        }
    }

    /// Returns the sequence number after which documents are added. Empties the index if the window has changed.
    fn begin_page(&self, window: Option<StreamWindow>) -> u64 {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.window != window {
            *index = PassageSourceIndex {
                window,
                ..PassageSourceIndex::default()
            };
        }
        index.after
    }

    /// Checks that the indexes of all collections stay within their memory with more postings, of 8 bytes each.
    fn check_memory(
        &self,
        service: &ServiceState,
        open: &OpenCollection,
        more: usize,
    ) -> Result<(), ApiProblem> {
        let limit = service.config.limits.passage_memory;
        let used: u64 = service.collections.passage_bytes();
        if used + 8 * more as u64 <= limit {
            return Ok(());
        }
        let detail = format!(
            "the indexes of passages would take more than {limit} bytes of memory with that of the collection '{}': \
             start the service with a larger --passage-memory",
            open.name
        );
        Err(ApiProblem::new(ProblemCode::PassageMemory, detail))
    }

    /// Removes the postings of removed documents if these are more than the others.
    fn purge_removed(&self, open: &OpenCollection) -> Result<(), ApiProblem> {
        let live = open.collection.visit_kept(|kept| kept.count());
        let live = live.map_err(|error| open.to_problem(error))? as usize;
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        if index.seqs.len() < MIN_PURGED || index.seqs.len() <= 2 * live {
            return Ok(());
        }
        let seqs = index.seqs.clone();
        drop(index);
        let (mut new_numbers, mut kept_seqs) = (Vec::with_capacity(seqs.len()), Vec::new());
        for portion in seqs.chunks(CHECKED_AT_A_TIME) {
            let visited = open.collection.visit_kept(|kept| {
                for &seq in portion {
                    let number = kept.is_live(seq).then_some(kept_seqs.len() as u32);
                    kept_seqs.extend(number.map(|_| seq));
                    new_numbers.push(number);
                }
            });
            visited.map_err(|error| open.to_problem(error))?;
        }
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.postings.renumber_documents(&new_numbers);
        index.seqs = kept_seqs;
        self.bytes.store(index.memory_bytes(), Ordering::Relaxed);
        Ok(())
    }
}

/// Says that no thread adds documents any more, also if the thread has panicked.
struct EndOfBuilding<'a>(&'a AtomicBool);

impl Drop for EndOfBuilding<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Postings of documents, and the sequence numbers of these.
type NewPostings = (Vec<(u64, u32)>, Vec<u64>);

/// Returns the selected grams of documents, which get numbers from `first` on.
fn select_postings(
    recipe: &Recipe,
    documents: &[ListedDocument],
    first: u32,
) -> Result<NewPostings, ApiProblem> {
    let tokenizer = SpanTokenizer::new(recipe);
    let mut winnower = Winnower::new(PassageSettings::default());
    let (mut tokens, mut selected) = (SpannedTokens::default(), Vec::new());
    let (mut pairs, mut seqs) = (Vec::new(), Vec::new());
    for document in documents {
        let (Some(DocumentContent::Text(text)), Some(seq)) =
            (&document.content, document.answer.seq)
        else {
            continue;
        };
        let number = first + seqs.len() as u32;
        tokenizer
            .tokenize_text(text, &mut tokens)
            .map_err(|error| ApiProblem::new(ProblemCode::TooLarge, error.to_string()))?;
        winnower.select_grams(tokens.values(), &mut selected);
        pairs.extend(selected.iter().map(|gram| (gram.hash, number)));
        seqs.push(seq);
    }
    Ok((pairs, seqs))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use lookalike_comparison::shared_passages::SharedPassages;

    use super::*;

    /// A source that has no room ends the search, and the best sources before it stay.
    #[test]
    fn source_without_room_leaves_the_others() {
        let allowance = TextAllowance::new_alone(10 << 20);
        let mut ranked = RankedSources {
            limit: 3,
            sources: BTreeMap::new(),
        };
        let mut add = |copied, allowance: &TextAllowance| {
            let shared = SharedPassages {
                copied,
                ..SharedPassages::default()
            };
            ranked.add_source(&format!("id-{copied}"), 1, &shared, allowance)?;
            Ok::<_, ApiProblem>(ranked.sources.keys().map(|rank| rank.0.0).collect())
        };
        for (copied, expected) in [
            (1, vec![1]),
            (5, vec![5, 1]),
            (3, vec![5, 3, 1]),
            (4, vec![5, 4, 3]),
            (2, vec![5, 4, 3]),
        ] {
            let kept: Vec<usize> = add(copied, &allowance).unwrap();
            assert_eq!(kept, expected);
        }
        let taken = allowance.take_all_but(2000);
        assert_eq!(add(6, &allowance).unwrap_err().code, ProblemCode::TooCostly);
        drop(taken);
        assert_eq!(add(6, &allowance).unwrap(), [6, 5, 4]);
    }
}
