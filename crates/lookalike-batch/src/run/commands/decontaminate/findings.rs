//! Candidates and the weights of the whole corpus → findings.

use std::collections::HashMap;
use std::ops::Range;

use lookalike::contamination::{
    ContaminationIndex, EvidenceWeights, FoundParts, ItemEvidence, ItemPart,
};
use lookalike_io::error::Result;

use super::candidate_spool::{CandidateDocument, LocatedCandidate};
use super::search::SearchedCorpus;

/// Documents in which a question may stand alone before it is boilerplate: so many, or one of so many documents if that
/// is more.
const MAX_DOCUMENTS: u64 = 20;
const MAX_DOCUMENTS_DIVISOR: u64 = 1000;

/// An item that stands in a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ItemFinding {
    pub(super) item: u32,
    pub(super) part: ItemPart,
    pub(super) found: FoundParts,
    pub(super) score: f64,
    pub(super) bits: f64,
    /// Characters of the document.
    pub(super) characters: Range<u64>,
    /// Tokens of the question, or of the answer.
    pub(super) part_tokens: Range<u32>,
    /// Bytes of the document that are cut with the item, and with its sentences.
    pub(super) passage: Range<u64>,
    pub(super) sentences: Range<u64>,
}

/// A document with findings, the best one first.
#[derive(Debug)]
pub(super) struct ContaminatedDocument {
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) text_bytes: u64,
    pub(super) findings: Vec<ItemFinding>,
}

/// The findings of a corpus.
pub(super) struct CorpusFindings {
    pub(super) documents: Vec<ContaminatedDocument>,
    /// Questions that stand in too many documents, with the number of these, most frequent first: the number of the
    /// first item that has the question.
    pub(super) boilerplate: Vec<(u32, u64)>,
    /// Candidates that are no findings for this reason.
    pub(super) boilerplate_candidates: u64,
}

/// Decides which candidates are findings.
///
/// # Errors
/// If the temporary file of candidates cannot be read.
pub(super) fn decide_findings(
    corpus: &SearchedCorpus,
    index: &ContaminationIndex,
) -> Result<CorpusFindings> {
    let weights = EvidenceWeights::new(index, &corpus.terms);
    let limit = MAX_DOCUMENTS.max(corpus.rows.len() as u64 / MAX_DOCUMENTS_DIVISOR);
    let mut judged: Vec<(CandidateDocument, Vec<Option<ItemEvidence>>)> = Vec::new();
    // Documents in which a question stands without anything else of its item, by the number of the question.
    let mut alone: HashMap<u32, u64> = HashMap::new();
    corpus.candidates.visit_documents(index, |document| {
        let evidence = document.candidates.iter();
        let evidence = evidence.map(|located| located.candidate.weigh_evidence(index, &weights));
        let evidence: Vec<Option<ItemEvidence>> = evidence.collect();
        let mut questions: Vec<u32> = document
            .candidates
            .iter()
            .zip(&evidence)
            .filter(|(_, evidence)| evidence.as_ref().is_some_and(is_question_alone))
            .filter_map(|(located, _)| index.question_number(located.candidate.item))
            .collect();
        questions.sort_unstable();
        questions.dedup();
        for question in questions {
            *alone.entry(question).or_default() += 1;
        }
        if evidence.iter().any(Option::is_some) {
            judged.push((document, evidence));
        }
        Ok(())
    })?;
    alone.retain(|_, documents| *documents > limit);
    let mut boilerplate_candidates = 0;
    let mut first_items: HashMap<u32, u32> = HashMap::new();
    let mut documents = Vec::new();
    for (document, evidence) in judged {
        let CandidateDocument {
            index: number,
            id,
            text_bytes,
            candidates,
        } = document;
        let mut findings = Vec::new();
        for (located, evidence) in candidates.into_iter().zip(evidence) {
            let Some(evidence) = evidence else { continue };
            let question = index.question_number(located.candidate.item);
            let question = question.filter(|question| alone.contains_key(question));
            if let Some(question) = question.filter(|_| is_question_alone(&evidence)) {
                boilerplate_candidates += 1;
                let item = located.candidate.item;
                let first = first_items.entry(question).or_insert(item);
                *first = item.min(*first);
                continue;
            }
            findings.push(ItemFinding::new(located, evidence));
        }
        findings.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            let by_bits = b.bits.total_cmp(&a.bits);
            by_score
                .then(by_bits)
                .then((a.item, a.part).cmp(&(b.item, b.part)))
        });
        // A question counts, and not its answer beside it.
        let mut items = std::collections::HashSet::new();
        findings.retain(|finding| items.insert(finding.item));
        if !findings.is_empty() {
            documents.push(ContaminatedDocument {
                index: number,
                id,
                text_bytes,
                findings,
            });
        }
    }
    let boilerplate = first_items
        .into_iter()
        .map(|(question, item)| (item, alone[&question]));
    let mut boilerplate: Vec<(u32, u64)> = boilerplate.collect();
    boilerplate.sort_unstable_by_key(|&(item, documents)| (std::cmp::Reverse(documents), item));
    Ok(CorpusFindings {
        documents,
        boilerplate,
        boilerplate_candidates,
    })
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
