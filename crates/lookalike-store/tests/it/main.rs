//! The store against a model, and against disks that lose power, fail, fill up or change bits.

mod disk;
mod faults;
mod flips;
mod formats;
mod machine;
mod power;
mod support;
