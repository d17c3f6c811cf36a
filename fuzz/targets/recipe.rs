//! Fuzzes a recipe with TOML text.

#![no_main]

#[path = "../bodies/recipe.rs"]
mod recipe;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| recipe::check(bytes));
