//! Inputs and outputs of runs over files, in bounded memory.
//!
//! [`InputSet`](source::InputSet) reads files, directories, globs, objects of stores, standard input and
//! tables in memory as one sequence of rows, in blocks that any number of threads parse. The sinks write kept rows and
//! tables; an output appears under its name only when it is complete.
//!
//! | module | holds |
//! |---|---|
//! | `objects` | objects of stores (`s3://`, `gs://`, `az://`) and of servers (`https://`) |
//! | [`source`] | inputs → blocks → rows, one parser per format |
//! | [`sink`] | kept rows, tables, outputs that appear complete |
//! | [`stream_file`] | the file of a stream that was in memory |
//! | [`ordered_results`] | work on many threads, results in order |
//! | [`error`] | the error type, which runs over files share |
//!
//! This crate knows no runs and no matches. It uses the engine only for byte search, for the limit of
//! feature weights, and to pass on its errors. Document files (`.txt`, `.md`, `.html`, `.docx`, `.pdf`) become texts by
//! [`lookalike_documents`].

pub mod error;
mod left_out_names;
mod objects;
pub mod ordered_results;
pub mod sink;
pub mod source;
pub mod spool;
pub mod stream_file;

pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "object-store")]
pub use objects::install_cryptography;
pub use objects::{
    ObjectCopies, ObjectIdentity, count_copied_bytes, is_copy_file, is_url, remove_copies,
};
