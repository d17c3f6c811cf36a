//! Runs over files and tables, and the checks of the fuzz targets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocks;
mod bounded_index;
mod bounded_passages;
mod frequencies;
mod fuzzed;
mod memory;
mod out_of_core;
mod repeated_passages;
