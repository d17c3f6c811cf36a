//! The text of a PDF file with text. Pages that are images have none.
//!
//! This is the work of the child processes of [`PdfReader`](crate::PdfReader), which bound it. The library
//! panics on many damaged files. Its panics become reasons.

use std::any::Any;
use std::fmt;
use std::io::Read;

use lookalike::catch_panics;
use lookalike_system::limit_process;
use pdf_extract::{ConvertToFmt, Document, PlainTextOutput, output_doc};

use crate::pdf_process::PDF_STACK_BYTES;

/// Limits the memory and the processor time of this process for the rest of its life, reads a PDF file from
/// `input`, and returns its text. It is the work of a process that a [`PdfReader`](crate::PdfReader) starts.
///
/// # Errors
/// The reason why there is no text: a phrase without a full stop.
pub fn read_pdf_input(
    mut input: impl Read,
    memory_bytes: u64,
    cpu_seconds: u64,
    max_bytes: u32,
) -> Result<String, String> {
    limit_process(memory_bytes, cpu_seconds)
        .map_err(|cause| format!("the limits for PDF files cannot be set: {cause}"))?;
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .map_err(|cause| format!("it cannot be read: {cause}"))?;
    extract_pdf_text(&bytes, max_bytes)
}

/// Returns the text of a PDF file, at most `max_bytes` of it, or the reason why there is none. Neither time nor
/// memory is bounded: use a [`PdfReader`](crate::PdfReader) for files of unknown origin.
///
/// # Errors
/// The reason: a phrase without a full stop.
pub fn extract_pdf_text(bytes: &[u8], max_bytes: u32) -> Result<String, String> {
    let read = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("PDF".to_owned())
            .stack_size(PDF_STACK_BYTES)
            .spawn_scoped(scope, || {
                catch_panics(|| read_pages(bytes, max_bytes as usize))
                    .unwrap_or_else(|panic| Err(describe_panic(&*panic)))
            })
            .map(|thread| thread.join())
    });
    let text = read
        .map_err(|cause| format!("no thread can be started to read it: {cause}"))?
        .map_err(|panic| describe_panic(&*panic))??;
    if text.chars().any(|character| !character.is_whitespace()) {
        return Ok(text);
    }
    Err("it is a PDF file without text, as scanned pages are: recognise its text first".to_owned())
}

fn read_pages(bytes: &[u8], max_bytes: usize) -> Result<String, String> {
    let damaged = |cause: &dyn fmt::Display| format!("the PDF file is damaged: {cause}");
    let mut document = Document::load_mem(bytes).map_err(|cause| damaged(&cause))?;
    // Many files are encrypted with an empty password, so that only changes are forbidden.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("the PDF file is encrypted: save it without a password first".to_owned());
    }
    let mut text = BoundedText {
        text: String::new(),
        max_bytes,
        is_full: false,
    };
    let written = output_doc(&document, &mut PlainTextOutput::new(&mut text));
    if text.is_full {
        return Err(format!(
            "its text has more than {max_bytes} bytes, the limit of a document"
        ));
    }
    written.map_err(|cause| damaged(&cause))?;
    Ok(text.text)
}

/// A text that refuses to grow beyond a limit.
struct BoundedText {
    text: String,
    max_bytes: usize,
    is_full: bool,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > self.max_bytes {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

impl<'a> ConvertToFmt for &'a mut BoundedText {
    type Writer = &'a mut BoundedText;

    fn convert(self) -> Self::Writer {
        self
    }
}

fn describe_panic(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("of an unknown kind");
    let line = message.lines().next().unwrap_or_default();
    format!("the PDF file is damaged or has a feature that cannot be read ({line})")
}
