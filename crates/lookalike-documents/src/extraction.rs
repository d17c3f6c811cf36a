//! Document files to texts: one reader for each kind, within limits.

use std::ops::Range;

use encoding_rs::{Encoding, UTF_8};

use crate::decoding::{
    InvalidText, bom_length, decode_file, guess_encoding, is_utf8_instead_of, utf16_by_mark,
};
use crate::file_kind::{DocumentKind, refuse_foreign_content, refuse_old_word};
use crate::pdf_process::PdfReader;
use crate::span_map::{SpanMap, SpanMapBuilder};
use crate::{docx, html, markdown};

/// Largest document in bytes, unless the options say otherwise: 1 GiB.
const MAX_DOCUMENT_BYTES: u32 = 1 << 30;

/// The text of a document file, and where each part of it stands in the file.
#[derive(Debug, Clone)]
pub struct ExtractedText {
    /// The text that is compared.
    pub text: String,
    /// The places of its parts in the file.
    pub origin: TextOrigin,
    /// `true` if the file begins with a byte order mark, which [`original_text`](Self::original_text) leaves out.
    pub has_byte_order_mark: bool,
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
    /// Creates a text that is a whole file or row.
    pub fn from_plain_text(text: String) -> Self {
        Self {
            text,
            origin: TextOrigin::Plain,
            has_byte_order_mark: false,
        }
    }

    /// Creates a text without positions in its file.
    pub fn without_positions(text: String) -> Self {
        Self {
            text,
            origin: TextOrigin::Extracted,
            has_byte_order_mark: false,
        }
    }

    /// Returns the number of bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let spans = match &self.origin {
            TextOrigin::Spans(spans) => spans.memory_bytes(),
            TextOrigin::Plain | TextOrigin::Extracted => 0,
        };
        self.text.len() + spans
    }

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

/// The reason why a PDF file has no text where nothing reads such files. It advises what a person with an essay can do, and
/// says nothing of building programs.
const NO_PDF: &str = "it is a PDF file, and this program reads none: save it as .docx, or copy its text into a .txt file";

/// The reason why there is no text where nobody wants it any more.
pub(crate) const NOT_WANTED: &str = "its reading was cancelled";

/// Options of reading documents.
#[derive(Debug, Clone)]
pub struct ExtractOptions {
    /// The encoding of text, Markdown and HTML. `.docx` and PDF have their own. A file that is surely UTF-8, or has the
    /// byte order mark of UTF-16, is read so.
    pub encoding: &'static Encoding,
    /// `true` if a file that is not valid in that encoding is read in the one that it looks like.
    pub guesses_encoding: bool,
    /// The treatment of malformed text.
    pub invalid_text: InvalidText,
    /// Largest accepted file, largest expanded text of a `.docx` file, and largest text of a PDF file, in bytes.
    pub max_bytes: u32,
    /// The reader of PDF files; `None` refuses them.
    pub pdf: Option<PdfReader>,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        Self {
            encoding: encoding_rs::UTF_8,
            guesses_encoding: false,
            invalid_text: InvalidText::default(),
            max_bytes: MAX_DOCUMENT_BYTES,
            pdf: None,
        }
    }
}

impl ExtractOptions {
    /// Returns the encoding in which a file is read.
    pub fn encoding_of(&self, bytes: &[u8]) -> &'static Encoding {
        if let Some(utf16) = utf16_by_mark(bytes) {
            utf16
        } else if self.guesses_encoding {
            guess_encoding(bytes).unwrap_or(self.encoding)
        } else if is_utf8_instead_of(bytes, self.encoding) {
            UTF_8
        } else {
            self.encoding
        }
    }

    /// Returns the name of the encoding in which a file of text is read, in lower case, if neither the options nor a byte
    /// order mark state it.
    pub fn guessed_encoding_of(&self, kind: DocumentKind, bytes: &[u8]) -> Option<String> {
        let is_text = !matches!(kind, DocumentKind::Docx | DocumentKind::Pdf);
        let encoding = self.encoding_of(bytes);
        let is_guessed = is_text && encoding != self.encoding && utf16_by_mark(bytes).is_none();
        is_guessed.then(|| encoding.name().to_ascii_lowercase())
    }
}

/// Returns the text of a document.
///
/// Time and memory are linear in the size of the file, for `.docx` in its expanded size.
///
/// # Errors
/// The reason why there is no text: a phrase without a full stop.
pub fn extract_text(
    kind: DocumentKind,
    bytes: &[u8],
    options: &ExtractOptions,
) -> Result<ExtractedText, String> {
    extract_text_while(kind, bytes, options, &|| true)
}

/// As [`extract_text`], but ends early once `is_wanted` returns `false`. It is asked before the work begins, and every
/// few milliseconds while a child process reads a PDF file, which is then killed.
///
/// # Errors
/// The reason why there is no text: a phrase without a full stop.
pub fn extract_text_while(
    kind: DocumentKind,
    bytes: &[u8],
    options: &ExtractOptions,
    is_wanted: &dyn Fn() -> bool,
) -> Result<ExtractedText, String> {
    if !is_wanted() {
        return Err(NOT_WANTED.to_owned());
    }
    let most = options.max_bytes;
    if bytes.len() > most as usize {
        return Err(format!(
            "the file has {} bytes, and the limit of a document is {most}",
            bytes.len()
        ));
    }
    match kind {
        DocumentKind::PlainText => {
            refuse_foreign_content(bytes)?;
            let encoding = options.encoding_of(bytes);
            let text = decode_file(bytes, encoding, options.invalid_text)?;
            Ok(ExtractedText {
                has_byte_order_mark: bom_length(bytes, encoding) > 0,
                ..ExtractedText::from_plain_text(text)
            })
        }
        DocumentKind::Markdown | DocumentKind::Html => strip_markup(kind, bytes, options),
        DocumentKind::Docx => {
            refuse_old_word(bytes)?;
            docx::read_docx(bytes, most as usize).map(ExtractedText::without_positions)
        }
        DocumentKind::Pdf => match &options.pdf {
            Some(reader) => reader
                .read_pdf_while(bytes, most, is_wanted)
                .map(ExtractedText::without_positions),
            None => Err(NO_PDF.to_owned()),
        },
    }
}

/// Returns about how many bytes of memory [`extract_text`] takes beside the file, its result included. It is an upper
/// bound but for the details of the allocator. A caller with a budget asks before it reads the file.
///
/// The tree of a Markdown document has nodes for each of its markers, so that a text of nothing but markers takes a
/// hundred times its length. All other kinds take a small multiple of their length or of `options.max_bytes`.
///
/// Cost: one look at each byte of Markdown and HTML.
pub fn estimate_memory(kind: DocumentKind, bytes: &[u8], options: &ExtractOptions) -> usize {
    let expanded = options.max_bytes as usize;
    match kind {
        DocumentKind::PlainText => 2 * bytes.len(),
        DocumentKind::Markdown => 3 * bytes.len() + markdown::estimate_tree_bytes(bytes),
        DocumentKind::Html => 3 * bytes.len() + html::estimate_span_bytes(bytes),
        // The part with the text in a list that grows, and the text.
        DocumentKind::Docx => 3 * expanded,
        DocumentKind::Pdf => 2 * expanded,
    }
}

fn strip_markup(
    kind: DocumentKind,
    bytes: &[u8],
    options: &ExtractOptions,
) -> Result<ExtractedText, String> {
    refuse_foreign_content(bytes)?;
    let encoding = options.encoding_of(bytes);
    let original = decode_file(bytes, encoding, options.invalid_text)?;
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
        has_byte_order_mark: bom_length(bytes, encoding) > 0,
    })
}
