//! The text of document files: plain text, Markdown, HTML, `.docx` and PDF, one document per file.
//!
//! [`DocumentSet`] finds the files of directories, globs and paths, and reads them on many threads, in
//! order. [`extract_text`] does the same for bytes in memory. A position in the text leads back to the file
//! where the file is text itself ([`TextOrigin`]).
//!
//! A file that cannot be read is a [`BadRow`](crate::source::BadRow) with its reason, and the others are read.
//! Markup is removed for reading and reporting; the markup of recipes is another matter, and its result is part
//! of what a recipe means.
//!
//! ```
//! use lookalike_io::documents::{DocumentKind, ExtractOptions, extract_text};
//!
//! let html = b"<p>Fish &amp; <b>chips</b></p>";
//! let extracted = extract_text(DocumentKind::Html, html, &ExtractOptions::default()).unwrap();
//! assert_eq!(extracted.text, "Fish & chips\n");
//! let range = extracted.original_range(5..12).unwrap();
//! assert_eq!(&extracted.original_text()[range], "&amp; <b>chips");
//! ```

mod document_set;
mod docx;
mod file_kind;
mod html;
mod markdown;
#[cfg(feature = "pdf")]
mod pdf;
mod span_map;

use std::ops::Range;

use encoding_rs::Encoding;

pub use self::document_set::{DocumentResult, DocumentSet, ReadDocument};
pub use self::file_kind::DocumentKind;
pub use self::span_map::SpanMap;
use self::span_map::SpanMapBuilder;
use crate::source::{InvalidText, MAX_ROW_BYTES, decode_file};

/// The text of a document file, and where each part of it stands in the file.
#[derive(Debug, Clone)]
pub struct ExtractedText {
    /// The text that is compared.
    pub text: String,
    /// Where its parts stand in the file.
    pub origin: TextOrigin,
}

/// The relation of an extracted text to its file.
#[derive(Debug, Clone)]
pub enum TextOrigin {
    /// The text is the file itself, after decoding and without a byte order mark.
    Plain,
    /// The text is parts of the file.
    Spans(SpanMap),
    /// The file has no positions of characters (`.docx`, PDF): offsets count in the text.
    Extracted,
}

impl ExtractedText {
    /// Returns the byte range of [`original_text`](Self::original_text) that a byte range of the text comes from.
    /// It is `None` for files without positions. `range` consists of whole characters.
    pub fn original_range(&self, range: Range<usize>) -> Option<Range<usize>> {
        match &self.origin {
            TextOrigin::Plain => Some(range),
            TextOrigin::Spans(spans) => Some(spans.original_range(range)),
            TextOrigin::Extracted => None,
        }
    }

    /// Returns the text in which positions are reported: the decoded file, or the extracted text if the file
    /// has no positions.
    pub fn original_text(&self) -> &str {
        match &self.origin {
            TextOrigin::Spans(spans) => spans.original_text(),
            TextOrigin::Plain | TextOrigin::Extracted => &self.text,
        }
    }
}

/// Options of reading documents.
#[derive(Debug, Clone)]
pub struct ExtractOptions {
    /// The encoding of text, Markdown and HTML. `.docx` and PDF have their own.
    pub encoding: &'static Encoding,
    /// The treatment of malformed text.
    pub invalid_text: InvalidText,
    /// Largest accepted file, and largest expanded text of a `.docx` file, in bytes.
    pub max_bytes: u32,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        Self {
            encoding: encoding_rs::UTF_8,
            invalid_text: InvalidText::default(),
            max_bytes: MAX_ROW_BYTES,
        }
    }
}

/// Returns the text of a document.
///
/// Time and memory are linear in the size of the file, for `.docx` in its expanded size.
///
/// # Errors
/// The reason why there is no text, as [`BadRow::reason`](crate::source::BadRow::reason): a phrase without a
/// full stop.
pub fn extract_text(
    kind: DocumentKind,
    bytes: &[u8],
    options: &ExtractOptions,
) -> Result<ExtractedText, String> {
    let most = options.max_bytes;
    if bytes.len() > most as usize {
        return Err(format!(
            "the file has {} bytes, and the limit of a document is {most}",
            bytes.len()
        ));
    }
    match kind {
        DocumentKind::PlainText => {
            file_kind::refuse_foreign_content(bytes)?;
            decode_file(bytes, options.encoding, options.invalid_text).map(|text| ExtractedText {
                text,
                origin: TextOrigin::Plain,
            })
        }
        DocumentKind::Markdown | DocumentKind::Html => strip_markup(kind, bytes, options),
        DocumentKind::Docx => {
            file_kind::refuse_old_word(bytes)?;
            docx::read_docx(bytes, most as usize).map(without_positions)
        }
        DocumentKind::Pdf => read_pdf(bytes).map(without_positions),
    }
}

fn strip_markup(
    kind: DocumentKind,
    bytes: &[u8],
    options: &ExtractOptions,
) -> Result<ExtractedText, String> {
    file_kind::refuse_foreign_content(bytes)?;
    let original = decode_file(bytes, options.encoding, options.invalid_text)?;
    let mut builder = SpanMapBuilder::new(&original);
    match kind {
        DocumentKind::Markdown => markdown::append_markdown(&original, &mut builder),
        _ => html::append_html(&original, 0..original.len(), &mut builder),
    }
    let (text, segments) = builder
        .finish_text()
        .ok_or("its markup cuts characters apart")?;
    Ok(ExtractedText {
        text,
        origin: TextOrigin::Spans(segments.with_original(original)),
    })
}

fn without_positions(text: String) -> ExtractedText {
    ExtractedText {
        text,
        origin: TextOrigin::Extracted,
    }
}

#[cfg(feature = "pdf")]
fn read_pdf(bytes: &[u8]) -> Result<String, String> {
    pdf::read_pdf(bytes)
}

#[cfg(not(feature = "pdf"))]
fn read_pdf(_: &[u8]) -> Result<String, String> {
    Err(
        "it is a PDF file, which this build cannot read: extract its text first, for example with \
         `pdftotext`"
            .to_owned(),
    )
}
