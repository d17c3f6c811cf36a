//! TOML text as a recipe.

#![no_main]

#[path = "../bodies/recipe.rs"]
mod recipe;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| recipe::check(bytes));
