//! The HTTP service: collections that check documents for near-duplicates and insert them, in one step.
//!
//! The only crate that serves requests asynchronously; `lookalike-io` also uses tokio, to read object stores. A few
//! threads read requests and write answers; they block for nothing but the query of a single short document. A thread
//! pool prepares the documents of large batches; others are prepared by the thread that admits them. Checking, inserting
//! and syncing run on threads that may block. [`run_service`] serves until a signal stops the process.
//!
//! # Guarantees
//!
//! - An insert is answered only after it is on disk.
//! - The documents of one request are inserted in their order. If one request was answered before another was
//!   sent, its documents come first.
//! - A document that is refused does not affect the others.
//! - After a failed write, a collection accepts no more writes.
//!
//! # Path of a document
//!
//! | module | step |
//! |---|---|
//! | `connections` | accept a connection and read the request head in time |
//! | `api::router`, `access` | find the call in the table and check the key |
//! | `api::body`, `api::stream` | decompress the body and cut it into lines |
//! | `api::documents` | queue a single document, answer a query, or begin a stream of lines |
//! | `json` | parse a line into a document |
//! | `collections` | prepare, check and insert it, in a batch with other waiting documents |
//! | `api::problem` | or report why it was refused |
//!
//! With a shared log, `replication` writes what changes the state to the log first, and applies the records of the log.
//!
//! A thread of its own, `collections::maintenance`, compacts partitions and expires documents, also while no
//! requests arrive.
//!
//! # Panics
//!
//! A panic of any thread ends the process, by the hook that the command sets (`apologise_for_panics` in `signals.rs` of
//! `lookalike-cli`). The crate relies on it where it says so: no other thread sees a change that a panic left half done, and
//! none waits for the result of a thread that panicked. A program that calls [`run_service`] without the command sets such a
//! hook first.

mod access;
mod activity;
mod api;
mod certificate_expiry;
mod certificate_handshake;
mod collections;
mod condition_log;
mod config;
mod connections;
mod document_passages;
mod error;
mod json;
mod limits;
mod metrics;
mod process_figures;
mod recipes;
mod reload;
mod replication;
mod service;
mod snapshots;
mod traces;

pub use access::AccessKeys;
pub use api::request_log::RequestLogSettings;
pub use config::{ClientLimits, ListeningCall, ServiceConfig};
pub use document_passages::{
    DocumentPassageSearch, DocumentPassages, FindDocumentPassages, PassageDocument,
    PassageSearchError,
};
pub use error::{Error, Result};
pub use json::settings::{FindRecipe, read_stored_settings, write_settings};
pub use replication::{
    COPIES_FOLDER as SHARED_LOG_COPIES, DifferingCheck, ReplicaSettings, RestorePoint, RestoredLog,
    UnusableSnapshot, check_log_exists, is_shared_log, open_log_store, restore_from_log,
    with_log_store,
};
pub use service::run_service;
pub use snapshots::schedule::SnapshotSchedule;
pub use snapshots::{SnapshotPlace, with_snapshot};
