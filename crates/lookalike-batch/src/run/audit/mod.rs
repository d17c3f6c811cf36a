//! The audit: an estimate of what a run misses and gets wrong, from documents sampled while it reads.
//!
//! Every document has a number that follows from the seed and its row; those with the smallest numbers
//! are sampled. The sampled rows of a block are added to the sample before any document of that block
//! or of a later one is compared. Therefore every document is compared with all sampled documents
//! before it, however the threads run, and the report depends only on inputs and settings.

mod drawing;
mod planted;
mod report;

pub(super) use report::Reported;
pub use report::{AuditReport, ByEdit, ByLength, Planted, Share};

use lookalike::audit::{Counter, Sample};
use lookalike::plan::{Measure, Method, Plan};
use lookalike::text::Analysis;

use self::drawing::Drawing;
use super::settings::{AuditSettings, Settings};
use crate::error::{Error, Result};
use crate::rule::Spelling;

/// Offset of the row numbers of the inputs. Rows of `--against` have the offset 0.
const OF_INPUTS: u64 = 1 << 40;

/// The audit of a run.
pub(super) struct Audit {
    settings: AuditSettings,
    drawing: Drawing,
}

impl Audit {
    /// Creates the audit of a run, if the settings ask for one.
    pub(super) fn of(settings: &Settings, plan: &Plan) -> Result<Option<Self>> {
        let Some(audit) = settings.audit else {
            return Ok(None);
        };
        check(plan, settings.spelling)?;
        let sample =
            Sample::new(plan, plan.threshold()).ok_or_else(|| of_texts(plan, settings.spelling))?;
        Ok(Some(Self {
            settings: audit,
            drawing: Drawing::new(sample, audit),
        }))
    }

    /// Creates the counter with which a thread compares documents.
    pub(super) fn counter(&self) -> Counter {
        self.drawing.with_sample(Sample::counter)
    }

    /// Compares the document that the counter has seen with all sampled documents before it.
    pub(super) fn compare(&self, number: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        self.drawing.compare(number, analysis, counter);
    }

    /// Returns the drawing, which samples documents from blocks.
    pub(super) fn drawing(&self) -> &Drawing {
        &self.drawing
    }
}

/// Refuses plans that have no exact similarity to compare with.
fn check(plan: &Plan, spelling: Spelling) -> Result<()> {
    let settings = plan.settings();
    let why = match (settings.method, settings.measure) {
        (Method::Exact, _) => format!(
            "with {} there is nothing to estimate, because all equal texts are found",
            spelling.with("method", "exact")
        ),
        (Method::SimHash | Method::Sentences, Measure::Sketch) => format!(
            "without verification there is no similarity to compare with: leave {} out",
            spelling.with("measure", "none")
        ),
        (Method::SimHash | Method::Sentences, Measure::Containment) => {
            "with this method, candidates by containment have no minimum Jaccard index, so a \
             sample cannot be compared with all documents: use another method"
                .to_owned()
        }
        _ => return Ok(()),
    };
    let audit = spelling.name("audit");
    Err(Error::usage(format!("{audit} is not possible here: {why}")))
}

fn of_texts(plan: &Plan, spelling: Spelling) -> Error {
    Error::usage(format!(
        "{} compares sets of features, and {} compares texts: use jaccard or containment",
        spelling.name("audit"),
        spelling.with("measure", super::measure_name(plan.settings().measure))
    ))
}
