//! Texts of files, compared with what a reader sees of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod extraction;
#[cfg(unix)]
mod pdf_process;
