//! Fuzzes a Parquet or Arrow file with changed and with any bytes.

#![no_main]

#[path = "../bodies/columns.rs"]
mod columns;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| columns::check(bytes));
