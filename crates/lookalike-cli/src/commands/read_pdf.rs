//! The hidden command that reads one PDF file within limits, for a run of this program that has the file.

use std::io;

use anyhow::Result;
use clap::Args;
use lookalike_documents::read_pdf_input;

use crate::CommandOutcome;
use crate::output::OutputPrinter;

/// Name of the command.
pub(crate) const NAME: &str = "read-pdf";

/// Print the text of a PDF file from standard input, or why it has none
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ReadPdfArgs {
    /// Bytes of address space
    memory: u64,
    /// Seconds of processor time
    seconds: u64,
    /// Bytes of the largest text
    max_bytes: u32,
}

/// Reads the file. The outcome tells a text from a reason.
pub(crate) fn run_read_pdf(args: &ReadPdfArgs) -> Result<CommandOutcome> {
    let input = io::stdin().lock();
    let printer = OutputPrinter::new(false);
    match read_pdf_input(input, args.memory, args.seconds, args.max_bytes) {
        Ok(text) => {
            printer.write_data(&text)?;
            Ok(CommandOutcome::Done)
        }
        Err(reason) => {
            printer.write_data(&reason)?;
            Ok(CommandOutcome::RowsSkipped)
        }
    }
}
