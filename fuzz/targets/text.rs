//! Fuzzes the analysis of any text under every kind of recipe.

#![no_main]

#[path = "../bodies/text.rs"]
mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| text::check(bytes));
