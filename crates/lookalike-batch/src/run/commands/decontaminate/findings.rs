//! Candidates and the weights of the whole corpus → findings.
//!
//! A document is *judged* by the weights alone. A question that makes too many judged documents findings without anything
//! else of its item is boilerplate. Both are one document after another, so a run on many machines decides in the same
//! way: [`judge_document`](JudgedDocument::judge_document), then sums of [`LoneQuestions`], then
//! [`into_findings`](JudgedDocument::into_findings).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use lookalike::contamination::{
    ContaminationIndex, EvidenceWeights, FoundParts, ItemEvidence, ItemPart,
};
use lookalike_io::error::Result;

use super::candidate_spool::{CandidateDocument, LocatedCandidate};
use super::search::SearchedCorpus;
use crate::memory::contamination_plan::ContaminationShares;

/// Documents in which a question may stand alone before it is boilerplate: so many, or one of so many documents if that
/// is more.
const MAX_DOCUMENTS: u64 = 20;
const MAX_DOCUMENTS_DIVISOR: u64 = 1000;

/// An item that stands in a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ItemFinding {
    pub(crate) item: u32,
    pub(crate) part: ItemPart,
    pub(crate) found: FoundParts,
    pub(crate) score: f64,
    pub(super) bits: f64,
    /// Characters of the document.
    pub(crate) characters: Range<u64>,
    /// Tokens of the question, or of the answer.
    pub(crate) part_tokens: Range<u32>,
    /// Bytes of the document that are cut with the item, and with its sentences.
    pub(super) passage: Range<u64>,
    pub(super) sentences: Range<u64>,
}

/// A document with findings, the best one first.
#[derive(Debug)]
pub(crate) struct ContaminatedDocument {
    pub(super) index: u64,
    pub(crate) id: String,
    pub(super) text_bytes: u64,
    pub(crate) findings: Vec<ItemFinding>,
}

/// The findings of a corpus.
pub(super) struct CorpusFindings {
    pub(super) documents: Vec<ContaminatedDocument>,
    pub(super) boilerplate: BoilerplateQuestions,
}

/// A document whose candidates are weighed.
pub(crate) struct JudgedDocument {
    document: CandidateDocument,
    /// The evidence of each candidate; `None` if it is too little for a finding.
    evidence: Vec<Option<ItemEvidence>>,
}

/// Documents in which a question stands without anything else of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoneQuestion {
    /// Number of the documents.
    pub documents: u64,
    /// Number of the candidates: of each item that has the question.
    pub candidates: u64,
    /// Number of the first item that has the question and is a candidate.
    pub first_item: u32,
}

/// The questions that stand alone in some document, by their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoneQuestions(BTreeMap<u32, LoneQuestion>);

/// The questions that stand alone in too many documents, by their numbers.
#[derive(Debug, Clone)]
pub(super) struct BoilerplateQuestions(BTreeMap<u32, LoneQuestion>);

/// Returns the number of documents, of `documents`, in which a question may stand alone.
pub fn boilerplate_question_limit(documents: u64) -> u64 {
    MAX_DOCUMENTS.max(documents / MAX_DOCUMENTS_DIVISOR)
}

/// Decides which candidates are findings.
///
/// # Errors
/// If the temporary file of candidates cannot be read, and if the findings are too many for the memory.
pub(super) fn decide_findings(
    corpus: &SearchedCorpus,
    index: &ContaminationIndex,
    memory: ContaminationShares,
) -> Result<CorpusFindings> {
    let weights = EvidenceWeights::new(index, &corpus.terms);
    let (mut judged, mut bytes) = (Vec::new(), 0);
    let mut lone = LoneQuestions::default();
    corpus.candidates.visit_documents(index, |document| {
        if let Some(document) = JudgedDocument::judge_document(document, index, &weights) {
            lone.count_document(&document, index);
            bytes += document.memory_bytes();
            judged.push(document);
            memory.check_findings(judged.len(), bytes)?;
        }
        Ok(())
    })?;
    let boilerplate = lone.into_boilerplate(corpus.rows.len() as u64);
    let documents = judged
        .into_iter()
        .filter_map(|document| {
            document.into_findings(index, |question| boilerplate.has_question(question))
        })
        .collect();
    Ok(CorpusFindings {
        documents,
        boilerplate,
    })
}

impl JudgedDocument {
    /// Weighs the candidates of a document; `None` if none has enough evidence.
    pub(crate) fn judge_document(
        document: CandidateDocument,
        index: &ContaminationIndex,
        weights: &EvidenceWeights,
    ) -> Option<Self> {
        let candidates = document.candidates.iter();
        let evidence: Vec<Option<ItemEvidence>> = candidates
            .map(|located| located.candidate.weigh_evidence(index, weights))
            .collect();
        let has_evidence = evidence.iter().any(Option::is_some);
        has_evidence.then_some(Self { document, evidence })
    }

    /// Returns the bytes of memory.
    fn memory_bytes(&self) -> usize {
        let candidates = self.document.candidates.iter();
        let candidates = candidates.map(LocatedCandidate::memory_bytes);
        size_of::<Self>()
            + self.document.id.len()
            + candidates.sum::<usize>()
            + size_of_val(&*self.evidence)
    }

    /// Returns the item and the question of each candidate that nothing but the question makes a finding.
    fn lone_questions(&self, index: &ContaminationIndex) -> impl Iterator<Item = (u32, u32)> {
        let candidates = self.document.candidates.iter().zip(&self.evidence);
        candidates
            .filter(|(_, evidence)| evidence.as_ref().is_some_and(is_question_alone))
            .filter_map(|(located, _)| {
                let item = located.candidate.item;
                Some((item, index.question_number(item)?))
            })
    }

    /// Returns the findings, given which questions are boilerplate; `None` if there are none.
    pub(crate) fn into_findings(
        self,
        index: &ContaminationIndex,
        is_boilerplate: impl Fn(u32) -> bool,
    ) -> Option<ContaminatedDocument> {
        let CandidateDocument {
            index: number,
            id,
            text_bytes,
            candidates,
        } = self.document;
        let has_boilerplate = |item: u32| index.question_number(item).is_some_and(&is_boilerplate);
        let mut findings: Vec<ItemFinding> = candidates
            .into_iter()
            .zip(self.evidence)
            .filter_map(|(located, evidence)| Some((located, evidence?)))
            .filter(|(located, evidence)| {
                !(is_question_alone(evidence) && has_boilerplate(located.candidate.item))
            })
            .map(|(located, evidence)| ItemFinding::new(located, evidence))
            .collect();
        findings.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            let by_bits = b.bits.total_cmp(&a.bits);
            by_score
                .then(by_bits)
                .then((a.item, a.part).cmp(&(b.item, b.part)))
        });
        // A question counts, and not its answer beside it.
        let mut items = HashSet::new();
        findings.retain(|finding| items.insert(finding.item));
        (!findings.is_empty()).then_some(ContaminatedDocument {
            index: number,
            id,
            text_bytes,
            findings,
        })
    }
}

impl LoneQuestions {
    /// Counts the questions that stand alone in a document.
    pub(crate) fn count_document(&mut self, document: &JudgedDocument, index: &ContaminationIndex) {
        let mut questions = HashSet::new();
        for (item, question) in document.lone_questions(index) {
            let is_first = questions.insert(question);
            let lone = self.0.entry(question).or_insert(LoneQuestion {
                documents: 0,
                candidates: 0,
                first_item: item,
            });
            lone.documents += u64::from(is_first);
            lone.candidates += 1;
            lone.first_item = lone.first_item.min(item);
        }
    }

    /// Returns the questions by their numbers.
    pub(crate) fn into_counts(self) -> Vec<(u32, LoneQuestion)> {
        self.0.into_iter().collect()
    }

    /// Returns the questions that stand alone in too many of so many documents.
    fn into_boilerplate(mut self, documents: u64) -> BoilerplateQuestions {
        let limit = boilerplate_question_limit(documents);
        self.0.retain(|_, question| question.documents > limit);
        BoilerplateQuestions(self.0)
    }
}

impl BoilerplateQuestions {
    fn has_question(&self, question: u32) -> bool {
        self.0.contains_key(&question)
    }

    /// Returns the number of candidates that are no findings for this reason.
    pub(super) fn candidate_count(&self) -> u64 {
        self.0.values().map(|question| question.candidates).sum()
    }

    /// Returns the questions, most frequent first.
    pub(super) fn most_frequent_first(&self) -> Vec<LoneQuestion> {
        let mut questions: Vec<LoneQuestion> = self.0.values().copied().collect();
        questions
            .sort_unstable_by_key(|question| (Reverse(question.documents), question.first_item));
        questions
    }
}

/// Returns `true` if nothing but the question makes it a finding.
fn is_question_alone(evidence: &ItemEvidence) -> bool {
    evidence.found == FoundParts::Question && !evidence.is_enough_together
}

impl ItemFinding {
    fn new(located: LocatedCandidate, evidence: ItemEvidence) -> Self {
        Self {
            item: located.candidate.item,
            part: located.candidate.part,
            found: evidence.found,
            score: evidence.score,
            bits: evidence.bits,
            characters: located.characters,
            part_tokens: located.candidate.part_tokens,
            passage: located.passage,
            sentences: located.sentences,
        }
    }
}
