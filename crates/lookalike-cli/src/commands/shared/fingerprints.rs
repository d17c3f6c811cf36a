//! Fingerprints as a user gives them: their notation, and rows of them instead of documents.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike_batch::index::{IndexReadOptions, RowContent};
use lookalike_options::fingerprint_notation::FingerprintNotation;

use super::inputs::{ReadingArgs, read_options};
use super::running::{RunningArgs, thread_count};

/// Notation of fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotationArg {
    /// Hexadecimal digits, one for each four bits
    Hex,
    /// A decimal number
    Decimal,
    /// Binary digits, one for each bit
    Binary,
}

/// Returns the notation of fingerprints: hexadecimal unless another is given.
pub(crate) fn notation_from_arg(notation: Option<NotationArg>) -> FingerprintNotation {
    match notation {
        None | Some(NotationArg::Hex) => FingerprintNotation::Hex,
        Some(NotationArg::Decimal) => FingerprintNotation::Decimal,
        Some(NotationArg::Binary) => FingerprintNotation::Binary,
    }
}

/// Fingerprints instead of documents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct BareFingerprintArgs {
    /// Read the rows as fingerprints. In plain text, each line has one fingerprint, or an id, a tab and one
    /// fingerprint. A first line `fingerprint`, or `id`, tab, `fingerprint`, is a header, which counts where
    /// rows are numbered. In JSONL, CSV, Parquet and Arrow, the field is `fingerprint`. Files .npy (one-dimensional arrays
    /// of NumPy) and .u64 hold little-endian integers of 64 bits, and their rows are numbered
    #[arg(long)]
    pub(crate) fingerprints: bool,

    /// Read the rows as fingerprints in this field of JSONL, CSV, TSV, Parquet or Arrow; numbers of JSON and columns
    /// are decimal
    #[arg(long, value_name = "FIELD", conflicts_with = "fingerprints")]
    pub(crate) fingerprint: Option<String>,

    /// Notation of the fingerprints
    ///
    /// Default: hex.
    #[arg(long, value_enum, value_name = "DIGITS")]
    pub(crate) digits: Option<NotationArg>,
}

pub(crate) fn reads_bare_fingerprints(bare: &BareFingerprintArgs) -> bool {
    bare.fingerprints || bare.fingerprint.is_some()
}

/// Returns how rows of an index, or queries, are read.
pub(crate) fn index_read_options(
    inputs: &[PathBuf],
    bare: &BareFingerprintArgs,
    reading: &ReadingArgs,
    running: &RunningArgs,
) -> Result<IndexReadOptions> {
    let read = read_options(reading)?;
    let content = if reads_bare_fingerprints(bare) {
        check_bare(reading)?;
        let (digits, field) = (notation_from_arg(bare.digits), bare.fingerprint.as_deref());
        RowContent::bare_fingerprints(digits, field, inputs, read.format)
    } else if bare.digits.is_some() {
        bail!("--digits is for bare fingerprints: add --fingerprints or --fingerprint FIELD");
    } else {
        RowContent::Documents
    };
    if content == RowContent::Numbers && bare.digits.is_some() {
        bail!("--digits is the notation of text, and .npy and .u64 files are binary: leave it out");
    }
    if matches!(content, RowContent::Lines(_)) && (reading.no_header || reading.document_per_file) {
        bail!(
            "lines of fingerprints are recognised with or without a header: leave --no-header and \
             --document-per-file out, or name the column with --fingerprint"
        );
    }
    Ok(IndexReadOptions {
        content,
        read,
        strict: running.strict,
        threads: thread_count(running.threads),
        memory: None,
    })
}

/// Refuses options about texts if there are none.
fn check_bare(reading: &ReadingArgs) -> Result<()> {
    let texts = [
        ("--text", !reading.text.is_empty()),
        ("--features", reading.features.is_some()),
    ];
    match texts.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => bail!(
            "{option} is for documents, and the rows are bare fingerprints: leave one of them out"
        ),
    }
}

/// Returns the option that names the fingerprints or texts of rows.
pub(crate) fn field_option(content: &RowContent) -> &'static str {
    match content {
        RowContent::Documents => "--text FIELD",
        RowContent::Lines(_) | RowContent::Numbers => "--digits",
        RowContent::Field(..) => "--fingerprint FIELD",
    }
}
