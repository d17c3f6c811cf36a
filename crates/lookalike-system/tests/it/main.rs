//! Tests of the calls of the operating system.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
mod processes;
mod room;
