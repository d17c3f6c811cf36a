//! The memory of a run in `--explain-plan`: its limit, what it would take, and whether it goes to temporary files.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::running::RunningArgs;
use crate::CommandOutcome;
use crate::output::{OutputPrinter, TextTone, format_bytes};

/// The memory of a run, as it is shown.
pub(crate) struct MemoryReport {
    pub(crate) limit_bytes: u64,
    /// Expected bytes of a run that keeps everything in memory, if they are known.
    pub(crate) in_memory_bytes: Option<u64>,
    /// The data that goes to temporary files, as a phrase.
    pub(crate) plan: String,
    pub(crate) smallest_limit_bytes: u64,
}

impl MemoryReport {
    /// Returns the lines of the report.
    pub(crate) fn into_text(self, printer: &OutputPrinter) -> String {
        let heading = format!("Memory, with a limit of {}", format_bytes(self.limit_bytes));
        let mut text = format!(
            "{}\n",
            printer.paint_for_output(TextTone::Heading, &heading)
        );
        let mut line = |label: &str, value: &str| {
            let _ = writeln!(text, "  {label:<8} {value}");
        };
        if let Some(bytes) = self.in_memory_bytes {
            let all = format!(
                "about {} if everything stays in memory",
                format_bytes(bytes)
            );
            line("all", &all);
        }
        line("plan", &self.plan);
        let least = self.smallest_limit_bytes.div_ceil(1_000_000);
        line("least", &format!("--memory {least}M"));
        text
    }
}

/// Prints a plan for machines, or as `describe` returns it for people.
///
/// # Errors
/// If the plan cannot be written.
pub(crate) fn print_plan<P: Serialize>(
    plan: &P,
    running: &RunningArgs,
    describe: impl FnOnce(&P, &OutputPrinter) -> String,
) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(running.quiet);
    let text = if running.json {
        format!("{}\n", serde_json::to_string(plan)?)
    } else {
        describe(plan, &printer)
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}
