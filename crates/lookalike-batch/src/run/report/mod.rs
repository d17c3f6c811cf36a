//! The report of a run: one HTML file that holds its data, its pictures and the page that shows them.
//!
//! ```text
//! verdicts ── counted exactly ──────────────> totals ──┐
//!    │                                                 ├─> JSON ──> page.rs ──> one file, at most 20 MB
//!    └─ chosen by fixed rules, within budgets > rows ──┘
//! ```
//!
//! Totals, histograms and sizes of clusters count every document. Rows and texts have budgets in bytes
//! (`budgets`), because a browser must open the file in seconds whatever the corpus is. Hashes of
//! document numbers choose what is left out, so the same run shows the same rows and texts. The format is described in
//! `docs/format.md`; [`FORMAT_VERSION`] grows when a field changes its meaning.
//!
//! The page is `pages/report.html`, which is built from `console/` and checked in. It opens no connection: its policy (CSP) forbids all.

pub(in crate::run) mod bad_rows;
pub(crate) mod band_sample;
pub(in crate::run) mod budgets;
mod form_rows;
pub(in crate::run) mod match_report;
mod page;
pub(in crate::run) mod pair_sample;
mod plan_data;
mod removal_rows;
mod shown_texts;
pub(crate) mod similarity_histogram;

use lookalike_io::error::Result;
use lookalike_io::sink::{ByteWriter, OutputTarget, StagedOutput};
use serde::Serialize;
use serde_json::Value;

pub use self::shown_texts::encode_runs;

/// Version of the data in the file.
pub const FORMAT_VERSION: u32 = 1;

/// Returns a page with data of this kind. `language` is that in which it opens; `None` leaves it to the browser.
pub fn render_report(
    kind: &'static str,
    language: Option<&'static str>,
    data: impl Serialize,
) -> String {
    ReportData::new(kind, language, data).render_page()
}

/// Writes a page with data of this kind. The file has its final content and a temporary name until the result is
/// published.
pub(super) fn stage_report_file(
    kind: &'static str,
    output: &ReportOutput,
    data: impl Serialize,
) -> Result<StagedOutput> {
    ReportData::new(kind, output.language, data).stage_file(&output.target)
}

/// Returns the summary of a run as JSON.
pub(super) fn summary_to_json(summary: &impl Serialize) -> Value {
    serde_json::to_value(summary).expect("a summary has only fields that JSON can hold")
}

/// Returns the hundredth in which a similarity lies.
pub(in crate::run) fn hundredth_of(similarity: f64) -> usize {
    // A small part more, so that 0.29 · 100 is 29.
    (similarity * 100.0 + 1e-9) as usize
}

/// A wanted report, and what only the caller knows about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOutput {
    /// The file.
    pub target: OutputTarget,
    /// Language in which the page opens: `en` or `zh`. `None` leaves it to the browser.
    pub language: Option<&'static str>,
    /// Other outputs of the run: role and path.
    pub written: Vec<(String, String)>,
    /// Command that explains a removal, with `ID` in place of the id.
    pub explain_command: Option<String>,
}

/// The data of a report, with the head that all kinds share.
#[derive(Debug, Serialize)]
pub(super) struct ReportData<T> {
    format: &'static str,
    #[serde(rename = "version")]
    format_version: u32,
    /// Tells the page what to show, for example `dedup` or `passages`.
    kind: &'static str,
    #[serde(rename = "program")]
    program_version: &'static str,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    #[serde(flatten)]
    data: T,
}

impl<T: Serialize> ReportData<T> {
    pub(super) fn new(kind: &'static str, language: Option<&'static str>, data: T) -> Self {
        let now = jiff::Timestamp::now();
        Self {
            format: "lookalike-report",
            format_version: FORMAT_VERSION,
            kind,
            program_version: env!("CARGO_PKG_VERSION"),
            created: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            language,
            data,
        }
    }

    /// Returns the page with the data in it.
    fn render_page(&self) -> String {
        page::render_page(self)
    }

    /// Writes the page with the data. The file has its final content and a temporary name until the result is
    /// published.
    pub(super) fn stage_file(&self, target: &OutputTarget) -> Result<StagedOutput> {
        let mut output = ByteWriter::create_output(target)?;
        output.write_bytes(self.render_page().as_bytes())?;
        output.prepare_output()
    }
}
