//! Fuzzes the places of characters in Markdown and HTML.

#![no_main]

#[path = "../bodies/documents.rs"]
mod documents;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| documents::check(bytes));
