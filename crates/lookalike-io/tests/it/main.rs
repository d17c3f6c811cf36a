//! Reading and writing files, compared with readers that share no code with the crate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrow;
mod conversion;
mod documents;
mod memory;
mod reading;
mod support;
mod tables;
mod writing;
