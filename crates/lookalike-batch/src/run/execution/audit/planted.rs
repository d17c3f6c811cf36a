//! Planted edits: edited copies of sampled documents, checked with the match plan of the run.

use std::collections::BTreeMap;

use lookalike::dedup::{DocumentSource, MatchCorpus, route_between};
use lookalike::plan::MatchPlan;
use lookalike::quality::audit::{WilsonEstimate, similarity};
use lookalike::quality::plant::{EditPlanter, PlantedEdit, TextStock};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches, Recipe, Similarity};
use lookalike_io::error::Result;
use rayon::prelude::*;

use serde::Serialize;

use crate::run::execution::audit::tallies::EstimatedShare;

/// One edited copy of each sampled document to which an edit applies.
pub(super) struct EditedCopies<'a> {
    plan: &'a MatchPlan,
    sketches: DocumentSketches,
    /// Features of the originals and copies in turn: original, copy, next original, and so on.
    features: Vec<Vec<u64>>,
    edits: Vec<PlantedEdit>,
}

/// An original and its copy, as they are compared.
struct OriginalAndCopy {
    edit: PlantedEdit,
    sketches: DocumentSketches,
    features: [Vec<u64>; 2],
}

impl<'a> EditedCopies<'a> {
    /// Edits documents, each given by its id and text. Documents to which no edit applies are left out.
    pub(super) fn plant_copies(
        plan: &'a MatchPlan,
        recipe: &Recipe,
        seed: u64,
        texts: &[(String, String)],
    ) -> Self {
        let sketcher = DocumentSketcher::new(recipe, plan, Cpu::detect_best());
        let analyzer = TextAnalyzer::new(recipe).with_extras(sketcher.required_extras());
        let planter = EditPlanter::new(
            seed,
            TextStock::new(texts.iter().map(|(_, text)| &text[..])),
        );
        let pairs: Vec<Option<OriginalAndCopy>> = texts
            .par_iter()
            .map_init(AnalysisScratch::default, |scratch, (id, text)| {
                let order = planter.order_edits(id, &PlantedEdit::all_edits());
                let planted =
                    |&edit: &PlantedEdit| Some((edit, planter.plant_edits(id, text, &[edit])?));
                let (edit, edited) = order.iter().find_map(planted)?;
                let mut sketches = sketcher.new_sketches(0);
                let features = [text, &edited].map(|text| {
                    let analysis = analyzer.analyze_text(text, scratch);
                    sketcher.add_document(&analysis, &mut sketches);
                    let mut features = Vec::new();
                    analysis.append_features(&mut features);
                    features
                });
                Some(OriginalAndCopy {
                    edit,
                    sketches,
                    features,
                })
            })
            .collect();
        let mut copies = Self {
            plan,
            sketches: sketcher.new_sketches(0),
            features: Vec::new(),
            edits: Vec::new(),
        };
        for pair in pairs.into_iter().flatten() {
            copies.sketches.append_sketches(&pair.sketches);
            copies.features.extend(pair.features);
            copies.edits.push(pair.edit);
        }
        copies
    }

    /// Reports which of the copies at or above the threshold the match plan finds.
    pub(super) fn report_recall(&self) -> Result<PlantedReport> {
        let corpus = MatchCorpus::new(self.plan, &self.sketches, self);
        let mut kinds: BTreeMap<PlantedEdit, CopyTally> = BTreeMap::new();
        let mut all = CopyTally::default();
        for (at, &edit) in self.edits.iter().enumerate() {
            let (a, b) = (DocId(2 * at as u32), DocId(2 * at as u32 + 1));
            let similarity = self.similarity(a, b);
            let outcome = if similarity.is_none() {
                CopyOutcome::BelowThreshold
            } else if route_between(&corpus, a, b)?.is_some() {
                CopyOutcome::Found
            } else {
                CopyOutcome::Missed
            };
            kinds.entry(edit).or_default().count_copy(outcome);
            all.count_copy(outcome);
        }
        let by_edit = kinds.into_iter().map(|(edit, tally)| ByEdit {
            kind: edit.edit_kind().name(),
            strength: edit.edit_strength(),
            copies: tally.copies,
            recall: tally.recall(),
        });
        Ok(PlantedReport {
            copies: all.copies,
            recall: all.recall(),
            by_edit: by_edit.collect(),
        })
    }

    /// Returns the similarity of an original and its copy if it reaches the threshold.
    fn similarity(&self, a: DocId, b: DocId) -> Option<Similarity> {
        if self.sketches.text_key(a) == self.sketches.text_key(b) {
            return Some(Similarity::ONE);
        }
        let [a, b] = [a, b].map(|document| &self.features[document.index()]);
        similarity(self.plan, a, b)
    }
}

impl DocumentSource for EditedCopies<'_> {
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> lookalike::Result<()> {
        into.extend_from_slice(&self.features[document.index()]);
        Ok(())
    }
}

/// The result of the comparison of a copy with its original.
#[derive(Clone, Copy, PartialEq)]
enum CopyOutcome {
    BelowThreshold,
    Missed,
    Found,
}

#[derive(Default)]
struct CopyTally {
    copies: u64,
    /// Copies at or above the threshold.
    similar: u64,
    found: u64,
}

impl CopyTally {
    fn count_copy(&mut self, outcome: CopyOutcome) {
        self.copies += 1;
        self.similar += u64::from(outcome != CopyOutcome::BelowThreshold);
        self.found += u64::from(outcome == CopyOutcome::Found);
    }

    fn recall(&self) -> EstimatedShare {
        EstimatedShare::from(WilsonEstimate::new(self.found as f64, self.similar))
    }
}

/// Recall of planted edits.
#[derive(Debug, Clone, Serialize)]
pub struct PlantedReport {
    /// Edited copies.
    pub copies: u64,
    /// The share that the method finds of the copies at or above the threshold.
    pub recall: EstimatedShare,
    /// The figures for each kind and strength of edit.
    pub by_edit: Vec<ByEdit>,
}

/// Recall of one kind of edit.
#[derive(Debug, Clone, Serialize)]
pub struct ByEdit {
    /// Name of the kind.
    pub kind: &'static str,
    /// The changed share of the text, if the kind has strengths.
    pub strength: Option<f64>,
    /// Edited copies.
    pub copies: u64,
    /// The share that the method finds of the copies at or above the threshold.
    pub recall: EstimatedShare,
}
