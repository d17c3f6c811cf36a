//! The text of a PDF file with text. Pages that are images have none.
//!
//! The library panics on many damaged files. Its panics become reasons; they print nothing, because the panic
//! hook is told of them by a flag of the thread.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use pdf_extract::{Document, OutputError, PlainTextOutput, output_doc};

/// Stack of the thread that reads a file, because nested objects are read by recursion.
const STACK_BYTES: usize = 64 << 20;

/// Returns the text of a PDF file, or the reason why there is none.
pub(super) fn read_pdf(bytes: &[u8]) -> Result<String, String> {
    let read = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || catch_panics(|| read_pages(bytes)))
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

fn read_pages(bytes: &[u8]) -> Result<String, String> {
    let damaged = |cause: &dyn std::fmt::Display| format!("the PDF file is damaged: {cause}");
    let mut document = Document::load_mem(bytes).map_err(|cause| damaged(&cause))?;
    // Many files are encrypted with an empty password, so that only changes are forbidden.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("the PDF file is encrypted: save it without a password first".to_owned());
    }
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    output_doc(&document, &mut output).map_err(|cause: OutputError| damaged(&cause))?;
    Ok(text)
}

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

fn catch_panics<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_READING.get() {
                previous(panic);
            }
        }));
    });
    IS_READING.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(false);
    read.unwrap_or_else(|panic| Err(describe_panic(&*panic)))
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
