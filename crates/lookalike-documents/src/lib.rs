//! The text of document files: plain text, Markdown, HTML, `.docx` and PDF, one document per file.
//!
//! [`extract_text`] takes the bytes of a file. A position in the text leads back to the file where the file is text itself
//! ([`TextOrigin`]). A file that cannot be read has a reason: a phrase without a full stop, which names the fault and what
//! to do about it.
//!
//! ```
//! use lookalike_documents::{DocumentKind, ExtractOptions, extract_text};
//!
//! let html = b"<p>Fish &amp; <b>chips</b></p>";
//! let extracted = extract_text(DocumentKind::Html, html, &ExtractOptions::default())?;
//! assert_eq!(extracted.text, "Fish & chips\n");
//! let range = extracted.original_range(5..12).unwrap();
//! assert_eq!(&extracted.original_text()[range], "&amp; <b>chips");
//! # Ok::<_, String>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `extraction` | [`extract_text`], its options, and the memory that it takes |
//! | `file_kind` | the kinds of document files |
//! | `html`, `markdown`, `docx`, `pdf` | one reader for each kind |
//! | `pdf_process` | PDF files, read by child processes with limits ([`PdfReader`]) |
//! | `span_map` | where each part of a text stands in the file |
//! | [`decoding`] | bytes to text: byte order marks, UTF-8 and other encodings, of a file or of a row |
//! | [`foreign_files`] | files that cannot be read, described for messages |
//!
//! Markup is removed for reading and reporting. The markup of recipes is another matter, and its result is part of what a
//! recipe means.

pub mod decoding;
mod docx;
mod extraction;
mod file_kind;
pub mod foreign_files;
mod html;
mod markdown;
#[cfg(feature = "pdf")]
mod pdf;
mod pdf_process;
mod span_map;

pub use extraction::{
    ExtractOptions, ExtractedText, TextOrigin, estimate_memory, extract_text, extract_text_while,
};
pub use file_kind::{DocumentKind, describe_other_document};
#[cfg(feature = "pdf")]
pub use pdf::{extract_pdf_text, read_pdf_input};
pub use pdf_process::{PdfLimits, PdfReader};
pub use span_map::SpanMap;
