//! Durable collections of documents that are deduplicated one after another.
//!
//! A [`Collection`] decides for every document whether it is new or a duplicate, by the rules of
//! [`lookalike::online`], and inserts it in the same step. It returns the answer only after the document is
//! on disk, so that every answer survives a power failure. The window slides by dropping whole partitions.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use lookalike::text::Scratch;
//! use lookalike_store::{Collection, Content, Document, Folder, Options, Settings};
//!
//! let folder = tempfile::tempdir()?;
//! let disk = Arc::new(Folder::open(folder.path())?);
//! let collection = Collection::create(disk, &Settings::default(), Options::default())?;
//!
//! let mut scratch = Scratch::default();
//! let mut documents = Vec::new();
//! for (id, text) in [("a", "老船长解开了缆绳"), ("b", "別的事"), ("c", "老船長解開了纜繩！")] {
//!     let document = Document {
//!         id: id.to_owned(),
//!         content: Content::Text(text.to_owned()),
//!         time: None,
//!         meta: None,
//!     };
//!     documents.push(collection.prepare(document, &mut scratch)?);
//! }
//! let answers: Result<Vec<_>, _> = collection.insert(&documents).into_iter().collect();
//! let clusters: Vec<_> = answers?.iter().map(|it| it.cluster().to_owned()).collect();
//! assert_eq!(clusters, ["a", "b", "a"]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files on disk
//!
//! | file | content |
//! |---|---|
//! | `manifest` | the settings, written once |
//! | `partitions` | the list of partitions that must exist, so that a lost one is noticed |
//! | `….rows` | the rows of a partition, in order, in a redb database; the only source of truth |
//! | `….texts` | ids and texts of its documents, append-only; valid where a committed row refers to them |
//! | `….sketches` | a cache of the sketches of its kept documents |
//!
//! Everything in memory is derived from the rows, and is rebuilt from them when a collection is opened.
//! Compaction writes the live rows and records to new files, `NNNN-GGGGGGGG.rows` and so on, and names these
//! in `partitions`. Everything stored carries a checksum. All access goes through [`Disk`], so that tests can
//! inject faults.
//!
//! # Cost
//!
//! A batch contains every document that is waiting at that moment. It costs one sync of the texts and one
//! commit of two syncs. [`Collection::prepare`] does most of the work and runs on any thread. Most of the
//! checking runs in advance on all cores; the rest of it, and the insertion, run on one thread at a time.
//! While one batch is written, the next one can be [admitted](Collection::admit). A document takes about 100
//! bytes of memory with the default settings and short texts, and 60 bytes with SimHash.
//!
//! # Limits
//!
//! A collection has no thread of its own. Its owner calls [`Collection::maintain`] regularly, which compacts
//! partitions with many deleted or replaced documents and, if the window follows the wall clock, expires
//! documents. If the window does not follow the wall clock, a late document leaves the disk with the
//! partition in which it arrived. A deleted document keeps about 50 bytes of memory until its partition
//! expires.

mod bytes;
mod collection;
mod compact;
mod copying;
mod disk;
mod document;
mod error;
mod fair_lock;
mod group;
mod ids;
mod inventory;
mod leaves;
mod maintain;
mod overlaid;
mod partition;
mod records;
mod rows;
mod settings;
mod share;
mod sketches;
mod state;
/// The synchronisation primitives that threads use; a test substitutes others.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}
mod writer;

pub use collection::{
    Admitted, Clock, ClusterPage, Collection, Options, Stats, VerificationLimits,
};
pub use compact::{MaintenancePace, Upkeep};
pub use disk::{Disk, DiskFile, Folder, ReadFolder, make_directory};
pub use document::{
    Answer, Cluster, Content, Document, Evidence, LONGEST_ID, LONGEST_META, LONGEST_TEXT, Prepared,
    Stored, Verdict,
};
pub use error::{Error, ErrorKind, Result};
pub use maintain::{
    Imported, Reject, Report, export, import, read_settings, repair, restore, verify,
};
pub use partition::is_guarded;
pub use settings::{Expire, Holds, OnConflict, Settings};
pub use state::CompactionTrigger;
