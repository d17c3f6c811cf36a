//! Evaluations as a self-contained HTML page.

use std::path::{Path, PathBuf};

use anyhow::Result;
use lookalike_batch::run::EvaluateSummary;
use lookalike_batch::run::report::render_report;
use lookalike_io::sink::ByteWriter;
use serde::Serialize;

use super::setting_name;
use crate::commands::shared::outputs::{output_target, page_language};

/// The data of the page.
#[derive(Serialize)]
struct EvaluationData<'a> {
    /// As `--json` prints it.
    evaluation: &'a EvaluateSummary,
    /// Name of each setting.
    names: Vec<String>,
    inputs: Vec<String>,
}

/// Writes the page. The file gets its name once it is complete.
pub(super) fn write_report(done: &EvaluateSummary, inputs: &[PathBuf], place: &Path) -> Result<()> {
    let data = EvaluationData {
        evaluation: done,
        names: done.settings.iter().map(setting_name).collect(),
        inputs: inputs
            .iter()
            .map(|input| input.display().to_string())
            .collect(),
    };
    let page = render_report("eval", page_language(), data);
    let mut writer = ByteWriter::create_output(&output_target(place))?;
    writer.write_bytes(page.as_bytes())?;
    writer.finish_output()?;
    Ok(())
}
