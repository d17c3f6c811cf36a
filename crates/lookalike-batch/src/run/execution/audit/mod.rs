//! The audit: an estimate of what a run misses and gets wrong, from documents sampled while it reads.
//!
//! Every document has a number that follows from the seed and its row; those with the smallest numbers
//! are sampled. The sampled rows of a block are added to the sample before any document of that block
//! or of a later one is compared. Therefore every document is compared with all sampled documents
//! before it, however the threads run, and the report depends only on inputs and settings.

mod contents;
pub(in crate::run) mod drawing;
mod planted;
pub(in crate::run) mod reading;
pub(in crate::run) mod report;
mod shuffle;
mod tallies;

pub use contents::{AuditedContents, DifferentRemoval};
pub use planted::{ByEdit, PlantedReport};
pub use report::AuditReport;
pub use shuffle::{
    AuditFindings, CountedDocuments, PartnerFinding, RemovedSample, RemovedTexts, SampleDraw,
    check_shuffle_audit,
};
pub use tallies::{ByLength, EstimatedShare};

use lookalike::plan::{MatchMethod, MatchPlan, SimilarityMeasure};
use lookalike::quality::audit::{DrawnSample, SampleComparer};
use lookalike::text::TextAnalysis;
use lookalike_io::error::{Error, Result};
use lookalike_options::match_options::OptionSpelling;

use crate::run::execution::audit::drawing::AuditDrawing;
use crate::run::settings::{AuditSettings, RunSettings};

/// The audit of a run.
pub(in crate::run) struct RunAudit {
    settings: AuditSettings,
    drawing: AuditDrawing,
}

impl RunAudit {
    /// Creates the audit of a run, if the settings ask for one.
    pub(in crate::run) fn from_settings(
        settings: &RunSettings,
        plan: &MatchPlan,
    ) -> Result<Option<Self>> {
        let Some(audit) = settings.audit else {
            return Ok(None);
        };
        let sample = open_sample(plan, settings.spelling)?;
        Ok(Some(Self {
            settings: audit,
            drawing: AuditDrawing::new(sample, audit),
        }))
    }

    /// Creates the counter with which a thread compares documents.
    pub(in crate::run) fn new_comparer(&self) -> SampleComparer {
        self.drawing.with_sample(DrawnSample::new_comparer)
    }

    /// Compares the document that the counter has seen with all sampled documents before it.
    pub(in crate::run) fn compare_with_drawn(
        &self,
        number: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
    ) {
        self.drawing.compare_with_drawn(number, analysis, counter);
    }

    /// Returns the drawing, which samples documents from blocks.
    pub(in crate::run) fn audit_drawing(&self) -> &AuditDrawing {
        &self.drawing
    }
}

/// Returns the empty sample of a plan, or refuses a plan that cannot be audited.
fn open_sample(plan: &MatchPlan, spelling: OptionSpelling) -> Result<DrawnSample> {
    check_auditable(plan, spelling)?;
    DrawnSample::new(plan, plan.threshold()).ok_or_else(|| compares_texts_error(plan, spelling))
}

/// Refuses plans that have no exact similarity to compare with.
fn check_auditable(plan: &MatchPlan, spelling: OptionSpelling) -> Result<()> {
    let settings = plan.match_settings();
    let is_unverified = settings.measure == SimilarityMeasure::Sketch;
    let of_sets = settings.measure.set_measure();
    let why = if settings.method == MatchMethod::Exact {
        format!(
            "with {} there is nothing to estimate, because all equal texts are found",
            spelling.spell_choice("method", settings.method.name())
        )
    } else if plan.joins_by_containment() {
        format!(
            "with {} there is nothing to estimate, because every pair is found, whatever the lengths \
             of its texts are",
            spelling.spell_choice("measure", settings.measure.name())
        )
    } else if plan.has_candidate_threshold() {
        return Ok(());
    } else if is_unverified {
        format!(
            "without verification there is no similarity to compare with: leave {} out",
            spelling.spell_choice("measure", settings.measure.name())
        )
    } else if of_sets.is_some_and(|measure| !measure.bounds_jaccard()) {
        format!(
            "with this method, candidates by {} have no minimum Jaccard index, so a sample cannot be \
             compared with all documents: use another method",
            settings.measure.name()
        )
    } else {
        return Ok(());
    };
    let audit = spelling.spell_option("audit");
    Err(Error::usage_error(format!(
        "{audit} is not possible here: {why}"
    )))
}

fn compares_texts_error(plan: &MatchPlan, spelling: OptionSpelling) -> Error {
    let verified = SimilarityMeasure::ALL
        .into_iter()
        .filter(|&measure| measure != SimilarityMeasure::Sketch);
    let auditable: Vec<_> = verified
        .filter(|measure| measure.set_measure().is_some())
        .map(SimilarityMeasure::name)
        .collect();
    Error::usage_error(format!(
        "{} compares sets of features, and {} compares texts: use {}",
        spelling.spell_option("audit"),
        spelling.spell_choice("measure", plan.match_settings().measure.name()),
        auditable.join(" or ")
    ))
}
