//! Fuzzes an input file with any bytes.

#![no_main]

#[path = "../bodies/rows.rs"]
mod rows;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rows::check(bytes));
