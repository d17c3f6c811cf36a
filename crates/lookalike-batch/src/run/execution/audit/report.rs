//! The report of an audit.

use std::collections::BTreeMap;

use lookalike::dedup::{DocumentRemoval, DocumentSource, route_between};
use lookalike::plan::MatchPlan;
use lookalike::quality::audit::similarity;
use lookalike::similarity::Route;
use lookalike::{DocId, Similarity, Threshold};
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;
use rayon::prelude::*;
use serde::Serialize;

use crate::run::execution::audit::RunAudit;
use crate::run::execution::audit::contents::{AuditedContents, compare_contents};
use crate::run::execution::audit::drawing::FIRST_ROW_OF_INPUTS;
use crate::run::execution::audit::planted::{EditedCopies, PlantedReport};
use crate::run::execution::audit::tallies::{
    ByLength, EstimatedShare, FoundPairs, PairPrecision, RECHECKED_PAIRS, SimilarCounts,
    SmallestNumbers, list_by_length,
};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::settings::AuditSettings;

/// The result of an audit.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// Sampled documents.
    pub sampled: u64,
    /// Documents that were to be sampled, or all documents if there are fewer. It exceeds `sampled` if
    /// the number of rows was overestimated.
    pub requested: u64,
    /// Seed of the sample.
    pub seed: u64,
    /// Smallest Jaccard index of a pair that counts; `None` if only the threshold decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_jaccard: Option<f64>,
    /// Pairs of a sampled document and a later one at or above the threshold, without pairs of equal
    /// texts. At most 16 per sampled document count.
    pub pairs: u64,
    /// Recall: the share of the later documents similar to a document that the method finds, averaged
    /// over sampled documents that have any.
    pub recall: EstimatedShare,
    /// Recall by the length of the sampled document, and precision by the length of the pair's
    /// first-read document. Classes without cases are left out.
    pub by_length: Vec<ByLength>,
    /// The share of the later documents similar to a document that remains in the output together with
    /// it. Only for runs that remove documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_together: Option<EstimatedShare>,
    /// Precision: the share of reported pairs at or above the threshold; in a dedup run, of pairs of a
    /// removed and a kept document.
    pub precision: EstimatedShare,
    /// The sampled removals whose contents differ from the kept documents. Only for runs that remove documents, with texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<AuditedContents>,
    /// Edited copies of sampled documents, checked with the same match plan, without forms; `None` without texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedReport>,
    /// Approximate bytes of memory of the sample.
    pub memory_bytes: u64,
}

/// One byte in this many is in an edited document, within the bounds below, because planting takes ten
/// times as long as reading.
const PLANTED_SHARE: u64 = 256;
const PLANTED_BYTES: std::ops::RangeInclusive<u64> = 1 << 18..=1 << 23;

/// A random sample of the pairs that a run has reported: those with the smallest hashes.
#[derive(Debug)]
pub(in crate::run) struct ReportedPairs {
    pairs: SmallestNumbers<(u32, u32)>,
    /// The kept documents of sampled removals, each with all documents of another text that were removed because of it.
    groups: Vec<Vec<DocId>>,
}

impl Default for ReportedPairs {
    fn default() -> Self {
        Self {
            pairs: SmallestNumbers::new(RECHECKED_PAIRS),
            groups: Vec::new(),
        }
    }
}

impl ReportedPairs {
    /// Returns a sample of the pairs of a removed and a kept document that a run has found by similarity.
    pub(in crate::run) fn from_removals(removals: &[DocumentRemoval]) -> Self {
        let mut sample = Self::default();
        let by_similarity = removals
            .iter()
            .filter(|removal| removal.kept.route != Route::Decision);
        for removal in by_similarity.clone() {
            sample.offer_pair(removal.document, removal.kept.with);
        }
        let kept = sample.pairs.iter().map(|&(_, kept)| DocId(kept));
        let kept = kept.map(|kept| (kept, vec![kept]));
        let mut groups: BTreeMap<DocId, Vec<DocId>> = kept.collect();
        for removal in by_similarity.filter(|removal| removal.kept.route != Route::Exact) {
            if let Some(group) = groups.get_mut(&removal.kept.with) {
                group.push(removal.document);
            }
        }
        sample.groups = groups.into_values().collect();
        sample
    }

    pub(in crate::run) fn offer_pair(&mut self, a: DocId, b: DocId) {
        let mut name = [0; 8];
        name[..4].copy_from_slice(&a.0.to_le_bytes());
        name[4..].copy_from_slice(&b.0.to_le_bytes());
        self.pairs.offer(lookalike::value_hash(&name), (a.0, b.0));
    }

    /// Returns the sampled pairs, in the order of their hashes, and the groups of their kept documents.
    fn into_parts(self) -> (Vec<(u32, u32)>, Vec<Vec<DocId>>) {
        let pairs = self.pairs.into_ascending().into_iter();
        (pairs.map(|(_, pair)| pair).collect(), self.groups)
    }
}

/// Measures which share of reported pairs match exactly.
fn measure_precision(corpus: &RunCorpus<'_>, pairs: &[(u32, u32)]) -> Result<PairPrecision> {
    let judged = pairs.par_iter().map(|&(a, b)| {
        let mut tokens = Vec::new();
        corpus.append_words(DocId(a.min(b)), &mut tokens)?;
        Ok((tokens.len(), matches_exactly(corpus, DocId(a), DocId(b))?))
    });
    let judged: Vec<(usize, bool)> = judged.collect::<Result<_>>()?;
    let mut precision = PairPrecision::default();
    for (tokens, right) in judged {
        precision.add_pair(tokens, right);
    }
    Ok(precision)
}

/// Compares the contents of pairs of a removed and a kept document whose texts are not equal.
fn compare_removals(
    corpus: &RunCorpus<'_>,
    pairs: &[(u32, u32)],
    groups: &[Vec<DocId>],
) -> Result<Option<AuditedContents>> {
    let pairs = pairs
        .iter()
        .map(|&(removed, kept)| (DocId(removed), DocId(kept)));
    let is_unequal = |&(removed, kept): &(DocId, DocId)| {
        corpus.sketches.text_key(removed) != corpus.sketches.text_key(kept)
    };
    let pairs: Vec<(DocId, DocId)> = pairs.filter(is_unequal).collect();
    compare_contents(corpus, &pairs, groups)
}

/// Returns `true` if two documents match by the exact measure, and by their forms if the run compares them.
fn matches_exactly(corpus: &RunCorpus<'_>, a: DocId, b: DocId) -> Result<bool> {
    if corpus.sketches.text_key(a) == corpus.sketches.text_key(b) {
        return Ok(true);
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    corpus.append_features(a, &mut one)?;
    corpus.append_features(b, &mut other)?;
    if similarity(corpus.plan, &one, &other).is_none() {
        return Ok(false);
    }
    Ok(!have_other_contents(corpus, a, b)?)
}

/// Returns `true` if the run compares forms, and two similar documents differ in what forms, titles or numbers say.
fn have_other_contents(corpus: &RunCorpus<'_>, a: DocId, b: DocId) -> Result<bool> {
    if !corpus.plan.compares_forms() {
        return Ok(false);
    }
    let ((a, _), (b, _)) = (corpus.read_contents(a)?, corpus.read_contents(b)?);
    Ok(a.name_difference(&b).is_some())
}

impl RunAudit {
    /// Builds the report. For runs that remove documents, `kept` returns which of them remain.
    pub(in crate::run) fn report_run(
        &self,
        corpus: &RunCorpus<'_>,
        reported: ReportedPairs,
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<AuditReport> {
        let rows = self.drawing.drawn_in_order();
        let found = self.measure_recall(corpus, &rows, kept)?;
        let (reported, groups) = reported.into_parts();
        let precision = measure_precision(corpus, &reported)?;
        let contents = match kept {
            Some(_) => compare_removals(corpus, &reported, &groups)?,
            None => None,
        };
        Ok(AuditReport {
            sampled: rows.len() as u64,
            requested: self.drawing.requested_count().min(corpus.len() as u64),
            least_jaccard: least_jaccard(corpus.plan),
            seed: self.settings.seed,
            pairs: found.pairs,
            recall: found.recall.to_share(),
            by_length: list_by_length(&found, &precision),
            left_together: kept.map(|_| found.left_together.to_share()),
            precision: precision.all.to_share(),
            contents,
            planted: self.report_planted(corpus, &rows)?,
            memory_bytes: self.drawing.with_sample(|sample| sample.memory_bytes()) as u64,
        })
    }

    fn measure_recall(
        &self,
        corpus: &RunCorpus<'_>,
        rows: &[u64],
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<FoundPairs> {
        let view = corpus.match_corpus();
        let mut all = FoundPairs::default();
        for &row in rows {
            let Some(document) = document_of(corpus, row) else {
                continue;
            };
            let (partners, length) = self
                .drawing
                .with_sample(|sample| (sample.partners_of(row), sample.token_count(row)));
            let mut similar = SimilarCounts::default();
            for partner in partners {
                let Some(other) = document_of(corpus, partner.row) else {
                    continue;
                };
                let counts = view.can_pair(document, other)
                    && !corpus.is_decided_pair(document, other)
                    && (kept.is_some() || is_listed_pair(corpus, document, other));
                if !counts
                    || !similar_enough(corpus, partner.similarity)
                    || have_other_contents(corpus, document, other)?
                {
                    continue;
                }
                let left_together = kept.is_some_and(|kept| kept(document) && kept(other));
                similar.add_pair(
                    route_between(&view, document, other)?.is_some(),
                    left_together,
                );
            }
            all.add_document(length, similar);
        }
        Ok(all)
    }

    /// Plants edits in all sampled documents if their number was requested, otherwise in as many as the
    /// limit of bytes allows.
    fn report_planted(
        &self,
        corpus: &RunCorpus<'_>,
        rows: &[u64],
    ) -> Result<Option<PlantedReport>> {
        let most = most_planted_bytes(self.settings, corpus.documents.bytes);
        let mut parse = ParseScratch::default();
        let mut texts = Vec::new();
        let mut bytes = 0;
        for &row in rows {
            let Some(document) = document_of(corpus, row) else {
                continue;
            };
            let Some(text) = corpus.reread_text(document, &mut parse)? else {
                return Ok(None);
            };
            bytes += text.len() as u64;
            if bytes > most && !texts.is_empty() {
                break;
            }
            texts.push((corpus.document_id(document)?.into_owned(), text));
        }
        // An edit may change the value of a slot, so copies are found by their similarity alone.
        let plan = corpus.plan.without_forms();
        let recipe = corpus.run_recipe().clone().without_forms();
        let copies = EditedCopies::plant_copies(&plan, &recipe, self.settings.seed, &texts);
        copies.report_recall().map(Some)
    }
}

/// Returns in how many of the `bytes` of text edits are planted at most. The first sampled document is edited at any
/// length.
pub(super) fn most_planted_bytes(settings: AuditSettings, bytes: u64) -> u64 {
    match settings.documents {
        Some(_) => u64::MAX,
        None => (bytes / PLANTED_SHARE).clamp(*PLANTED_BYTES.start(), *PLANTED_BYTES.end()),
    }
}

/// Returns the smallest Jaccard index at which candidates are found, if another measure decides among them.
pub(super) fn least_jaccard(plan: &MatchPlan) -> Option<f64> {
    plan.separate_candidate_threshold().map(Threshold::get)
}

fn similar_enough(corpus: &RunCorpus<'_>, similarity: Similarity) -> bool {
    corpus.plan.threshold().admits_similarity(similarity)
}

/// Returns `true` if a pairs run lists a pair of these documents. With `--against`, one of the two must
/// be from there.
fn is_listed_pair(corpus: &RunCorpus<'_>, a: DocId, b: DocId) -> bool {
    let is_known = |document: DocId| document.index() < corpus.known_count();
    corpus.known_count() == 0 || is_known(a) != is_known(b)
}

/// Returns the document of a row, or `None` if the row was not used.
fn document_of(corpus: &RunCorpus<'_>, row: u64) -> Option<DocId> {
    match row.checked_sub(FIRST_ROW_OF_INPUTS) {
        Some(number) => corpus.document_of_row(number),
        None => corpus.against_document(row),
    }
}
