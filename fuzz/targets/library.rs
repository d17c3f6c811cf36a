//! Fuzzes the files of an index with any bytes.

#![no_main]

#[path = "../bodies/library.rs"]
mod library;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| library::check(bytes));
