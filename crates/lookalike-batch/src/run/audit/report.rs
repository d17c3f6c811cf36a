//! What the audit of a run says.

use std::collections::BTreeMap;

use lookalike::audit::{Estimate, PARTNERS, similarity};
use lookalike::matching::{Texts, route_between};
use lookalike::plan::{Measure, Plan};
use lookalike::{DocId, Similarity};
use rayon::prelude::*;
use serde::Serialize;

use super::super::corpus::ReadCorpus;
use super::super::lengths::{self, class_of};
use super::planted::Copies;
use super::{Audit, OF_INPUTS};
use crate::error::Result;
use crate::source::ParseScratch;

/// What an audit says of a run.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// Documents drawn.
    pub drawn: u64,
    /// Documents that were to be drawn, or all if there are fewer. More than were drawn where the
    /// number of rows could only be guessed.
    pub wanted: u64,
    /// What drew them.
    pub seed: u64,
    /// Only pairs with at least this Jaccard index count; null where the threshold alone decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_jaccard: Option<f64>,
    /// Pairs of a drawn document and a later one at or above the threshold, equal texts left out;
    /// of one document at most 16 are looked at.
    pub pairs: u64,
    /// Of the later documents similar to a document, the share that the method finds, on the mean
    /// over documents that have any.
    pub recall: Share,
    /// Recall by the length of the drawn document, precision by that of the one read first of a pair;
    /// classes without cases are left out.
    pub by_length: Vec<ByLength>,
    /// Of the later documents similar to a document, the share with which it stays in the output;
    /// only of runs that remove documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Share>,
    /// Of the reported pairs, or of the removed documents with the kept one they name, the share that
    /// is at or above the threshold.
    pub precision: Share,
    /// Edited copies of drawn documents, put through the same plan; only where there are texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<Planted>,
    /// Bytes of memory that the sample took, about.
    pub memory: u64,
}

/// A share with its 95 % interval (Wilson).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Share {
    /// The estimate; null without cases.
    pub share: Option<f64>,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Independent cases: documents that have a similar one, reported pairs, copies.
    pub cases: u64,
}

impl From<Estimate> for Share {
    fn from(estimate: Estimate) -> Self {
        Self {
            share: (estimate.cases > 0).then_some(estimate.share),
            low: estimate.low,
            high: estimate.high,
            cases: estimate.cases,
        }
    }
}

/// Recall and precision by length.
#[derive(Debug, Clone, Serialize)]
pub struct ByLength {
    /// The length in tokens, such as `16-50`.
    pub length: &'static str,
    /// The recall of documents of this length.
    pub recall: Share,
    /// The precision of what is reported of them.
    pub precision: Share,
}

/// What became of planted edits.
#[derive(Debug, Clone, Serialize)]
pub struct Planted {
    /// Edited copies.
    pub copies: u64,
    /// Of the copies at or above the threshold, the share that the method finds.
    pub recall: Share,
    /// The same for every kind and strength of edit.
    pub by_edit: Vec<ByEdit>,
}

/// What became of one kind of edit.
#[derive(Debug, Clone, Serialize)]
pub struct ByEdit {
    /// Name of the kind.
    pub kind: &'static str,
    /// The share of what is changed, if the kind knows strengths.
    pub strength: Option<f64>,
    /// Edited copies.
    pub copies: u64,
    /// Of the copies at or above the threshold, the share that the method finds.
    pub recall: Share,
}

/// So many reported pairs are compared again.
const REPORTED: usize = 200;

/// Of so many bytes of input one is edited, within the bounds below: planting costs ten times what
/// reading does.
const PLANTED_SHARE: u64 = 256;
const PLANTED_BYTES: std::ops::RangeInclusive<u64> = 1 << 18..=1 << 23;

/// Some of the pairs that a run has reported: those with the smallest numbers.
#[derive(Debug, Default)]
pub(in super::super) struct Reported {
    pairs: std::collections::BinaryHeap<(u64, u32, u32)>,
}

impl Reported {
    pub(in super::super) fn offer(&mut self, a: DocId, b: DocId) {
        let mut name = [0; 8];
        name[..4].copy_from_slice(&a.0.to_le_bytes());
        name[4..].copy_from_slice(&b.0.to_le_bytes());
        self.pairs.push((lookalike::value_hash(&name), a.0, b.0));
        if self.pairs.len() > REPORTED {
            self.pairs.pop();
        }
    }

    fn precision(self, corpus: &ReadCorpus<'_>) -> Result<(Mean, BTreeMap<&'static str, Mean>)> {
        let judged = self
            .pairs
            .into_sorted_vec()
            .into_par_iter()
            .map(|(_, a, b)| {
                let mut tokens = Vec::new();
                corpus.words(DocId(a.min(b)), &mut tokens)?;
                let right = matches(corpus, DocId(a), DocId(b))?;
                Ok((class_of(tokens.len()), u64::from(right)))
            });
        let judged: Vec<(&str, u64)> = judged.collect::<Result<_>>()?;
        let (mut all, mut by_length) = (Mean::default(), BTreeMap::<_, Mean>::new());
        for (length, right) in judged {
            all.take(right, 1);
            by_length.entry(length).or_default().take(right, 1);
        }
        Ok((all, by_length))
    }
}

/// Whether two documents are similar enough, by the exact measure.
fn matches(corpus: &ReadCorpus<'_>, a: DocId, b: DocId) -> Result<bool> {
    if corpus.sketches.key(a) == corpus.sketches.key(b) {
        return Ok(true);
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    corpus.features(a, &mut one)?;
    corpus.features(b, &mut other)?;
    Ok(similarity(corpus.plan, &one, &other).is_some())
}

/// Means over documents of the share of their similar documents for which something is so.
#[derive(Default, Clone, Copy)]
struct Mean {
    sum: f64,
    cases: u64,
}

impl Mean {
    fn take(&mut self, part: u64, whole: u64) {
        self.sum += part as f64 / whole as f64;
        self.cases += 1;
    }

    fn share(self) -> Share {
        Estimate::new(self.sum, self.cases).into()
    }
}

impl Audit {
    /// What is to be said of a run: `kept` tells of runs that remove documents which remain.
    pub(in super::super) fn report(
        &self,
        corpus: &ReadCorpus<'_>,
        reported: Reported,
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<AuditReport> {
        let rows = self.drawing.in_order();
        let found = self.recall(corpus, &rows, kept)?;
        let (precision, right) = reported.precision(corpus)?;
        let classes = lengths::names().filter_map(|length| {
            let of = |means: &BTreeMap<_, Mean>| means.get(length).copied().unwrap_or_default();
            let (recall, precision) = (of(&found.by_length), of(&right));
            (recall.cases + precision.cases > 0).then(|| ByLength {
                length,
                recall: recall.share(),
                precision: precision.share(),
            })
        });
        Ok(AuditReport {
            drawn: rows.len() as u64,
            wanted: self.drawing.wanted().min(corpus.len() as u64),
            least_jaccard: least_jaccard(corpus.plan),
            seed: self.settings.seed,
            pairs: found.pairs,
            recall: found.recall.share(),
            by_length: classes.collect(),
            left: kept.map(|_| found.left.share()),
            precision: precision.share(),
            planted: self.planted(corpus, &rows)?,
            memory: self.drawing.with_sample(|sample| sample.bytes()) as u64,
        })
    }

    fn recall(
        &self,
        corpus: &ReadCorpus<'_>,
        rows: &[u64],
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<Found> {
        let view = corpus.corpus();
        let mut all = Found::default();
        for &row in rows {
            let Some(document) = document_of(corpus, row) else {
                continue;
            };
            let (partners, length) = self
                .drawing
                .with_sample(|sample| (sample.partners(row), sample.length(row)));
            let (mut pairs, mut found, mut left) = (0, 0, 0);
            for partner in partners {
                let Some(other) = document_of(corpus, partner.row) else {
                    continue;
                };
                let counts = view.may_pair(document, other)
                    && (kept.is_some() || is_listed(corpus, document, other));
                if !counts || !similar_enough(corpus, partner.similarity) {
                    continue;
                }
                pairs += 1;
                found += u64::from(route_between(&view, document, other)?.is_some());
                left += u64::from(kept.is_some_and(|kept| kept(document) && kept(other)));
            }
            if pairs > 0 {
                debug_assert!(pairs as usize <= PARTNERS);
                all.pairs += pairs;
                all.recall.take(found, pairs);
                all.left.take(left, pairs);
                let of_length = all.by_length.entry(class_of(length)).or_default();
                of_length.take(found, pairs);
            }
        }
        Ok(all)
    }

    /// Copies of all drawn documents if their number was asked for, else of as many as their bytes
    /// allow.
    fn planted(&self, corpus: &ReadCorpus<'_>, rows: &[u64]) -> Result<Option<Planted>> {
        let most = match self.settings.documents {
            Some(_) => u64::MAX,
            None => (corpus.documents.bytes / PLANTED_SHARE)
                .clamp(*PLANTED_BYTES.start(), *PLANTED_BYTES.end()),
        };
        let mut parse = ParseScratch::default();
        let mut texts = Vec::new();
        let mut bytes = 0;
        for &row in rows {
            let Some(document) = document_of(corpus, row) else {
                continue;
            };
            let Some(text) = corpus.text(document, &mut parse)? else {
                return Ok(None);
            };
            bytes += text.len() as u64;
            if bytes > most && !texts.is_empty() {
                break;
            }
            texts.push((corpus.id(document)?.into_owned(), text));
        }
        let copies = Copies::plant(corpus, self.settings.seed, &texts);
        copies.report().map(Some)
    }
}

#[derive(Default)]
struct Found {
    pairs: u64,
    recall: Mean,
    left: Mean,
    by_length: BTreeMap<&'static str, Mean>,
}

/// Containment is looked for among documents with a Jaccard index from here on.
fn least_jaccard(plan: &Plan) -> Option<f64> {
    let is_containment = plan.settings().measure == Measure::Containment;
    is_containment.then(|| plan.candidate_threshold().get())
}

fn similar_enough(corpus: &ReadCorpus<'_>, similarity: Similarity) -> bool {
    corpus.plan.threshold().admits_similarity(similarity)
}

/// Whether a run that lists pairs lists those of two such documents: where some are given as known,
/// of one of these and another.
fn is_listed(corpus: &ReadCorpus<'_>, a: DocId, b: DocId) -> bool {
    let is_given = |document: DocId| document.index() < corpus.given();
    corpus.given() == 0 || is_given(a) != is_given(b)
}

/// The document of a row, if it became one.
fn document_of(corpus: &ReadCorpus<'_>, row: u64) -> Option<DocId> {
    match row.checked_sub(OF_INPUTS) {
        Some(number) => corpus.document_of_row(number),
        None => corpus.given_of_row(row),
    }
}
