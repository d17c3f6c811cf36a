//! Near-duplicate runs over files, in bounded memory: deduplication, pairs, indexes, fingerprints and
//! evaluation.

mod digits;
pub mod error;
pub mod library;
pub mod recipes;
pub mod rule;
pub mod run;
pub mod sink;
pub mod source;
mod spool;

pub use digits::{Digits, NO_FINGERPRINT};
pub use error::{Error, ErrorKind, Result};
