//! Options for reading the inputs.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args};
use lookalike_documents::decoding::InvalidText;
use lookalike_documents::{PdfLimits, PdfReader};
use lookalike_io::source::{DocumentFileOptions, IdField, InputFormat, ReadOptions, WantedFields};
use lookalike_options::units::parse_size;
use lookalike_system::quote_for_shell;

/// Largest size of a row, in bytes, unless an option says otherwise: the default of `--max-row`.
const USUAL_MAX_ROW: u32 = 1 << 30;

/// Options for reading the inputs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ReadingArgs {
    /// Format of the inputs; overrides their extensions
    #[arg(long, alias = "input-format", value_parser = format_parser(), value_name = "FORMAT")]
    pub(crate) format: Option<InputFormat>,

    /// Read CSV and TSV without a header row; columns have the names 1, 2, …
    #[arg(long)]
    pub(crate) no_header: bool,

    /// Character between two fields of CSV and TSV, such as ';' or '|'; tab stands for the tab character
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub(crate) delimiter: Option<u8>,

    /// Encoding of text formats, such as gb18030, big5 or shift_jis
    ///
    /// Default: utf-8. A file that begins with the byte order mark of UTF-16 is read, too, and its kept rows are written in
    /// UTF-8. `passages` and `compare` read a document that is not valid UTF-8 in the encoding that it looks like, and
    /// `passages` says so in its summary. A document that is surely UTF-8 is read so, whatever is given.
    #[arg(long, value_name = "LABEL", value_parser = parse_encoding)]
    pub(crate) encoding: Option<&'static encoding_rs::Encoding>,

    /// Read malformed text with a replacement character instead of rejecting the row
    #[arg(long)]
    pub(crate) lossy: bool,

    /// Read each plain text file as one document, not each line
    #[arg(long)]
    pub(crate) document_per_file: bool,

    /// Field with the text; several are joined by a line feed; a.b is the field b of the object a, or of each object of the
    /// list a
    ///
    /// Default: `text`. Plain text needs none. Values of a list are joined by line feeds, for example those of
    /// messages.content. With several fields, `dedup` and `pairs` refuse a field that
    /// no document has.
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) text: Vec<String>,

    /// Field with the id of a document
    ///
    /// Default: `id` if the first row has it, else the row number, counted from 1 over all inputs. Bad rows
    /// are counted; empty lines are not rows. Ids are compared as text, numbers
    /// written with the fewest digits: 1, 1.0 and "1" are one id, "1.0" is another.
    #[arg(long, value_name = "FIELD", conflicts_with = "id_row")]
    pub(crate) id: Option<String>,

    /// Use the row number as the id, for example if ids repeat
    #[arg(long)]
    pub(crate) id_row: bool,

    /// Field with ready-made features: a list of strings, or words separated by spaces
    ///
    /// With weights: an object of numbers, {"cat": 2, "mat": 1}, or a list with pairs, [["cat", 2], "mat"].
    #[arg(long, value_name = "FIELD")]
    pub(crate) features: Option<String>,

    /// Maximum size of a row, a larger one is a bad row: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1Gi",
        value_parser = parse_row_size
    )]
    pub(crate) max_row: u32,

    /// Directory for temporary files; compressed input, standard input, objects, Parquet and Arrow are copied there.
    /// Default: the system's directory for temporary files
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
}

/// Returns the parser of a format.
fn format_parser() -> impl TypedValueParser<Value = InputFormat> {
    let named = InputFormat::ALL
        .into_iter()
        .filter_map(|format| Some((format, format.descriptor().option?)));
    let values = named
        .clone()
        .map(|(_, option)| PossibleValue::new(option.name).help(option.help));
    PossibleValuesParser::new(values).map(move |name| {
        let chosen = named.clone().find(|(_, option)| option.name == name);
        chosen.expect("the parser accepts no other name").0
    })
}

/// Hides `--features` in the help of commands that work on texts. These refuse the option and say why.
pub(crate) fn without_features(features: Arg) -> Arg {
    features.hide(true)
}

/// Returns how inputs are read.
pub(crate) fn read_options(reading: &ReadingArgs) -> Result<ReadOptions> {
    let format = reading.format;
    if reading.no_header && !matches!(format, None | Some(InputFormat::Csv { .. })) {
        bail!("--no-header is for CSV and TSV only");
    }
    if reading.delimiter.is_some() && !matches!(format, None | Some(InputFormat::Csv { .. })) {
        bail!("--delimiter is for CSV and TSV only");
    }
    let defaults = ReadOptions::default();
    let id = match &reading.id {
        Some(field) => IdField::Named(field.clone()),
        None if reading.id_row => IdField::RowNumber,
        None => IdField::Default,
    };
    let text = match &reading.text[..] {
        [] => defaults.fields.text,
        fields => fields.iter().map(|field| field.trim().to_owned()).collect(),
    };
    if text.iter().any(String::is_empty) {
        bail!("--text names an empty field: give names separated by commas, such as title,body");
    }
    Ok(ReadOptions {
        format,
        delimiter: reading.delimiter,
        header: !reading.no_header,
        encoding: reading.encoding.unwrap_or(encoding_rs::UTF_8),
        guesses_encoding: reading.encoding.is_none(),
        invalid_text: if reading.lossy {
            InvalidText::Lossy
        } else {
            InvalidText::Reject
        },
        document_per_file: reading.document_per_file,
        fields: WantedFields {
            text,
            id,
            features: reading.features.clone(),
            ..WantedFields::default()
        },
        max_row_bytes: reading.max_row,
        scratch: reading.scratch.clone(),
        ..defaults
    })
}

/// Returns the options by which rows and their texts are read, as words of a shell. Options with their usual values, and
/// those that change nothing of what is read, are left out.
pub(crate) fn reading_words(reading: &ReadingArgs) -> Vec<String> {
    let format = reading.format.and_then(|format| format.descriptor().option);
    let delimiter = reading.delimiter.map(|byte| match byte {
        b'\t' => "tab".to_owned(),
        byte => char::from(byte).to_string(),
    });
    let max_row = (reading.max_row != USUAL_MAX_ROW).then(|| reading.max_row.to_string());
    let values = [
        ("--format", format.map(|option| option.name.to_owned())),
        ("--delimiter", delimiter),
        (
            "--encoding",
            reading.encoding.map(|encoding| encoding.name().to_owned()),
        ),
        (
            "--text",
            (!reading.text.is_empty()).then(|| reading.text.join(",")),
        ),
        ("--id", reading.id.clone()),
        ("--features", reading.features.clone()),
        ("--max-row", max_row),
    ];
    let switches = [
        ("--id-row", reading.id_row),
        ("--no-header", reading.no_header),
        ("--lossy", reading.lossy),
        ("--document-per-file", reading.document_per_file),
    ];
    let mut words = Vec::new();
    for (option, value) in values {
        if let Some(value) = value {
            words.extend([option.to_owned(), quote_for_shell(&value)]);
        }
    }
    let given = switches.iter().filter(|(_, is_given)| *is_given);
    words.extend(given.map(|(option, _)| (*option).to_owned()));
    words
}

/// Returns how document files are read: each PDF file in a new process of this program.
pub(crate) fn document_file_options() -> DocumentFileOptions {
    DocumentFileOptions {
        pdf: pdf_reader(PdfLimits::default()),
    }
}

/// Returns the reader of PDF files: this program itself. It is `None` in a program that reads no PDF files.
#[cfg(feature = "pdf")]
pub(crate) fn pdf_reader(limits: PdfLimits) -> Option<PdfReader> {
    use crate::commands::read_pdf;

    // A program whose path is unknown cannot start itself, and each PDF file is then a bad row.
    let program = std::env::current_exe().unwrap_or_default();
    Some(PdfReader::new(program, read_pdf::NAME, limits))
}

#[cfg(not(feature = "pdf"))]
pub(crate) fn pdf_reader(_: PdfLimits) -> Option<PdfReader> {
    None
}

pub(crate) fn check_has_text(reading: &ReadingArgs, option: &str) -> Result<()> {
    if reading.features.is_some() {
        bail!("{option} needs texts, and --features has no texts: leave one of them out");
    }
    Ok(())
}

/// Refuses ready-made features for a command that makes them itself.
pub(crate) fn refuse_features(reading: &ReadingArgs) -> Result<()> {
    match &reading.features {
        None => Ok(()),
        Some(field) => bail!(
            "--features {field} has ready-made features, and this command computes them from \
             texts: leave it out"
        ),
    }
}

/// Parses `--max-row`, in bytes.
fn parse_row_size(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text)
        .ok()
        .and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        "give a size from 1 byte to less than 4 GiB, such as 500000, 100M or 1Gi".to_owned()
    })
}

/// Parses `--delimiter`.
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" || text == "\\t" => Ok(b'\t'),
        [b'"' | b'\n' | b'\r'] => {
            Err("quotes and line ends have a meaning of their own".to_owned())
        }
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("give one ASCII character, or tab".to_owned()),
    }
}

/// Parses `--encoding`.
fn parse_encoding(label: &str) -> Result<&'static encoding_rs::Encoding, String> {
    encoding_rs::Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        "no encoding has this label: give one of the Encoding Standard, such as utf-8, gb18030, \
         big5, shift_jis, euc-kr or windows-1252"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_one_character() {
        for (text, byte) in [
            (";", b';'),
            ("|", b'|'),
            ("tab", b'\t'),
            ("\\t", b'\t'),
            ("\t", b'\t'),
        ] {
            assert_eq!(parse_delimiter(text), Ok(byte), "{text}");
        }
        for text in ["", ";;", "，", "\"", "\n"] {
            assert!(parse_delimiter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn row_sizes_fit_into_32_bits() {
        let cases = [
            ("1", 1),
            ("64K", 64_000),
            ("1Ki", 1024),
            ("1MiB", 1 << 20),
            ("2GB", 2_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_row_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_row_size("4294967295"), Ok(u32::MAX));
        for text in [
            "",
            "0",
            "4Gi",
            "5G",
            "-1",
            "1.5M",
            "1X",
            "M",
            "99999999999999999999",
        ] {
            assert!(parse_row_size(text).is_err(), "{text}");
        }
    }
}
