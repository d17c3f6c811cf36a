//! The store against a model, and against disks that lose power, fail, fill up or change bits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod faults;
mod flips;
mod formats;
mod machine;
mod power;
mod support;
