//! `--memory` and `--explain-plan` of commands that add rows to an index.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike_batch::index::{BuildPlan, IndexReadOptions, RowContent};
use lookalike_batch::run::MemoryLimit;
use lookalike_options::units::parse_size;

use crate::CommandOutcome;
use crate::commands::shared::matching_runs::memory_limit;
use crate::commands::shared::memory_report::MemoryReport;
use crate::commands::shared::running::RunningArgs;
use crate::output::{OutputPrinter, format_bytes, format_count};

/// Options for the memory of a build.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct BuildMemoryArgs {
    /// Maximum memory of the process: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024). What does
    /// not fit goes to temporary files in the directory of the index, which is the same whatever the limit is
    ///
    /// Only ids stay in memory, some 40 bytes for each, because repeated ones are found there; --id-row does without.
    /// A limit that is too small is refused with the smallest one that would do; --explain-plan shows it. Default:
    /// four fifths of the available memory of the machine or of its control group for documents, and no limit for bare
    /// fingerprints, of which a billion of 64 bits take about as much as their index.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    /// Print the expected number of rows and the memory that they need, then stop
    #[arg(long)]
    pub(crate) explain_plan: bool,
}

impl BuildMemoryArgs {
    /// Returns the limit of a build of rows with this content.
    pub(super) fn limit(&self, content: &RowContent) -> Option<MemoryLimit> {
        match (self.memory, content) {
            (None, RowContent::Documents) => memory_limit(None),
            (None, _) => None,
            (set, _) => memory_limit(set),
        }
    }

    /// Prints the plan of a build or an addition, if it was asked for.
    pub(super) fn explain_plan(
        &self,
        inputs: &[PathBuf],
        reading: &IndexReadOptions,
        is_addition: bool,
        running: &RunningArgs,
    ) -> Result<Option<CommandOutcome>> {
        if !self.explain_plan {
            return Ok(None);
        }
        let printer = OutputPrinter::new(running.quiet);
        let limit = reading.memory.map(|limit| limit.bytes);
        let plan = BuildPlan::plan_build(inputs, reading, limit, is_addition)?;
        let text = if running.json {
            format!("{}\n", serde_json::to_string(&plan)?)
        } else {
            describe_plan(&plan, &printer)
        };
        printer.write_data(&text)?;
        Ok(Some(CommandOutcome::Done))
    }
}

/// Returns the plan for people.
fn describe_plan(plan: &BuildPlan, printer: &OutputPrinter) -> String {
    let rows = plan.documents.map_or_else(String::new, |rows| {
        format!("About {} rows\n\n", format_count(rows))
    });
    let Some(limit_bytes) = plan.limit_bytes else {
        return format!(
            "{rows}Memory without a limit; --memory {}M or more sets one\n",
            plan.smallest_limit_bytes.div_ceil(1_000_000)
        );
    };
    let kept = match plan.resident_bytes {
        0 => String::new(),
        bytes => format!("{} for ids stay in memory; ", format_bytes(bytes)),
    };
    let report = MemoryReport {
        limit_bytes,
        in_memory_bytes: None,
        plan: kept + "what does not fit goes to temporary files in the directory of the index",
        smallest_limit_bytes: plan.smallest_limit_bytes,
    };
    rows + &report.into_text(printer)
}
