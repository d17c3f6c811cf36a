//! Files in, files out, against readers that share nothing with the crate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocks;
mod fuzzed;
mod memory;
mod reading;
mod support;
mod tables;
mod writing;
