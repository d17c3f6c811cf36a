//! The kinds of document files, and what other files are.

use std::path::Path;

use crate::decoding::is_utf16;
use crate::foreign_files::{foreign_content, foreign_extension};

/// The kind of a document file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Plain text.
    PlainText,
    /// CommonMark with tables, strikethrough, footnotes, task lists and front matter.
    Markdown,
    /// HTML.
    Html,
    /// Office Open XML, as word processors write it.
    Docx,
    /// PDF with text.
    Pdf,
}

/// Extensions that are documents, for messages.
const KNOWN_EXTENSIONS: &str = ".txt, .md, .html, .docx and .pdf";

/// First bytes of files that are no text.
const FILE_SIGNATURES: [(&[u8], &str); 10] = [
    (b"%PDF-", "a PDF file"),
    (b"{\\rtf", "an RTF document: save it as .docx or .txt first"),
    (
        OLE_SIGNATURE,
        "an old Office document: save it as .docx or .txt first",
    ),
    (b"\x89PNG\r\n\x1A\n", "an image"),
    (b"\xFF\xD8\xFF", "an image"),
    (b"GIF87a", "an image"),
    (b"GIF89a", "an image"),
    (b"\x1F\x8B", "a compressed file"),
    (b"\x28\xB5\x2F\xFD", "a compressed file"),
    (b"PAR1", "a Parquet file, which holds rows"),
];

const OLE_SIGNATURE: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// Bytes at the start of a text in which a zero byte shows that it is none.
const TEXT_START: usize = 8192;

impl DocumentKind {
    /// Names of all kinds.
    pub const NAMES: [&str; 5] = ["text", "markdown", "html", "docx", "pdf"];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the kind by the extension of a path, after `.gz` or `.zst` is removed, or what else the file is:
    /// a phrase without a full stop.
    ///
    /// # Errors
    /// If the extension stands for another kind of file or is unknown.
    pub fn from_path(path: &Path) -> Result<Self, String> {
        let extension = path.extension().and_then(|name| name.to_str());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        match extension.as_str() {
            "txt" | "text" => Ok(Self::PlainText),
            "md" | "markdown" | "mkd" | "mdown" => Ok(Self::Markdown),
            "html" | "htm" | "xhtml" => Ok(Self::Html),
            "docx" | "docm" => Ok(Self::Docx),
            "pdf" => Ok(Self::Pdf),
            "gz" | "gzip" | "zst" | "zstd" => {
                Self::from_path(Path::new(path.file_stem().unwrap_or_default()))
            }
            other => Err(describe_other(path, other)),
        }
    }
}

/// Returns why a document of a format that is not known here cannot be read. Returns `None` for other files.
pub fn describe_other_document(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "doc" | "odt" | "rtf" | "wps" => Some(
            "it is a word processor document of another format: save it as .docx or .txt first",
        ),
        "epub" | "djvu" | "ps" => Some(
            "it is a document with pages of another format: save it as .html, .pdf or .txt first",
        ),
        _ => None,
    }
}

fn describe_other(path: &Path, extension: &str) -> String {
    if let Some(what) = describe_other_document(path) {
        return what.to_owned();
    }
    let what = match extension {
        "jsonl" | "ndjson" | "json" | "csv" | "tsv" | "parquet" => {
            "it holds rows, and not one document: give it as an input of its own"
        }
        "png" | "jpg" | "jpeg" | "gif" | "tif" | "tiff" | "webp" | "bmp" | "svg" => {
            "it is an image, which has no text that can be read"
        }
        _ => match foreign_extension(path) {
            Some(what) => return format!("it is {what}"),
            None => {
                return format!(
                    "its kind is unknown by its extension; known are {KNOWN_EXTENSIONS}"
                );
            }
        },
    };
    what.to_owned()
}

/// Refuses bytes that are no text, by what they are.
pub(crate) fn refuse_foreign_content(bytes: &[u8]) -> Result<(), String> {
    let known = FILE_SIGNATURES
        .iter()
        .find(|(start, _)| bytes.starts_with(start));
    if let Some(what) = known.map(|(_, what)| *what).or(foreign_content(bytes)) {
        return Err(format!("its content is {what}"));
    }
    let start = &bytes[..bytes.len().min(TEXT_START)];
    match start.iter().position(|&byte| byte == 0) {
        Some(at) if !is_utf16(bytes, encoding_rs::UTF_8) => Err(format!(
            "it is not a text file: its byte {} is zero",
            at + 1
        )),
        _ => Ok(()),
    }
}

/// Refuses the container that both `.doc` files and `.docx` files with a password have.
pub(crate) fn refuse_old_word(bytes: &[u8]) -> Result<(), String> {
    if bytes.starts_with(OLE_SIGNATURE) {
        Err(
            "it is encrypted or an old .doc file: save it as .docx without a password \
                     first"
                .to_owned(),
        )
    } else {
        Ok(())
    }
}
