//! Any bytes as the files of a library.

#![no_main]

#[path = "../bodies/library.rs"]
mod library;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| library::check(bytes));
