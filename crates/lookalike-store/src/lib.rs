//! Collections of documents that are checked and inserted one after another, and survive a loss of
//! power.
//!
//! A [`Collection`] answers for every document, new or a repeat, by the rule of
//! [`lookalike::online`], and takes it in with the same step. An answer is given when it is on disk. The
//! window slides by dropping whole partitions.
//!
//! # An example
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
//! # What is on disk
//!
//! | file | what |
//! |---|---|
//! | `manifest` | the settings, written once |
//! | `partitions` | which partitions must be there, so that one that is lost is noticed |
//! | `….rows` | a partition: what happened, in order, in a redb database. The truth |
//! | `….texts` | ids and texts of its documents, appended; what a committed row refers to counts |
//! | `….sketches` | a cache of what its kept documents are compared by |
//!
//! Everything in memory follows from the rows and is made again from them when a collection is opened.
//! Compaction writes the rows and records that count to new files, `NNNN-GGGGGGGG.rows` and so on, and names
//! these in `partitions`. All values carry checksums. All access goes through [`Disk`], so that tests can break it.
//!
//! # What it costs
//!
//! One sync of the texts and a commit of two syncs, for all documents that wait at that moment.
//! [`Collection::prepare`] is most of the work and runs on any thread. Checking is done ahead on all cores;
//! what is left of it, and inserting, is done by one at a time. While some documents are written, the
//! next can be [admitted](Collection::admit). A document takes about 100 bytes of memory with the default
//! settings and short texts, 60 with SimHash.
//!
//! # What it does not do
//!
//! It has no thread of its own: whoever runs a collection calls [`Collection::maintain`] now and then, which
//! compacts partitions with much that was deleted or replaced, and lets time pass where the window follows
//! the wall clock. Where it does not, a document that arrives late leaves the disk with the partition of its
//! arrival. Deleted
//! documents keep some 50 bytes of memory each until their partition expires.

mod bytes;
mod collection;
mod compact;
mod copying;
mod disk;
mod document;
mod error;
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
/// What threads wait for one another with; a test takes others in their place.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}
mod writer;

pub use collection::{Admitted, Clock, ClusterPage, Collection, Options, Stats};
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
