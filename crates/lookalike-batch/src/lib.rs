//! Files in, files out: near-duplicate runs in bounded memory.

pub mod error;
pub mod run;
pub mod sink;
pub mod source;
mod spool;

pub use error::{Error, ErrorKind, Result};
