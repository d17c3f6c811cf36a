//! Durable collections of documents that are deduplicated one after another.
//!
//! A [`Collection`] decides for every document whether it is new or a duplicate, by the rules of
//! [`lookalike::stream`], and inserts it in the same step. It returns the answer only after the document is
//! on disk, so that every answer survives a power failure. The window slides by dropping whole partitions.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use lookalike::text::AnalysisScratch;
//! use lookalike_store::{Collection, DocumentContent, NewDocument, DiskFolder, CollectionOptions, CollectionSettings};
//!
//! let folder = tempfile::tempdir()?;
//! let disk = Arc::new(DiskFolder::open(folder.path())?);
//! let collection = Collection::create_empty(disk, &CollectionSettings::default(), CollectionOptions::default())?;
//!
//! let mut scratch = AnalysisScratch::default();
//! let mut documents = Vec::new();
//! for (id, text) in [("a", "老船长解开了缆绳"), ("b", "別的事"), ("c", "老船長解開了纜繩！")] {
//!     let document = NewDocument {
//!         id: id.to_owned(),
//!         content: DocumentContent::Text(text.to_owned()),
//!         time: None,
//!         meta: None,
//!     };
//!     documents.push(collection.prepare_document(document, &mut scratch)?);
//! }
//! let answers: Result<Vec<_>, _> = collection.insert_documents(&documents).into_iter().collect();
//! let clusters: Vec<_> = answers?.iter().map(|answer| answer.cluster_id().to_owned()).collect();
//! assert_eq!(clusters, ["a", "b", "a"]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files on disk
//!
//! | file | content |
//! |---|---|
//! | `manifest` | the settings at the creation, and their changes |
//! | `recipe` | the files that the recipe names, if it names any |
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
//! A batch contains every document that is waiting at that moment. It costs one sync of the texts and
//! one commit of two syncs. [`Collection::prepare_document`] does most of the work and runs on any
//! thread. Most of the checking runs in advance on all cores; the rest of it, and the insertion, run on
//! one thread at a time. While one batch is written, the next one can be
//! [admitted](Collection::admit_documents). A document takes about 100 bytes of memory with the default
//! settings and short texts, and 60 bytes with SimHash.
//!
//! # Decisions
//!
//! [`Collection::decide`] lets a person overrule the match plan for two texts. The documents for which the law of
//! verdicts does not hold any more are judged again, and it holds for all later ones.
//!
//! # Replicas
//!
//! With [`CollectionOptions::follows_log`], a collection applies the entries of a shared log, and any other collection
//! that applies them derives the same rows. [`Collection::log_mark`] says how far it has come, also after a power
//! failure, and has a digest by which replicas are compared.
//!
//! # Limits
//!
//! A collection has no thread of its own. Its owner calls [`Collection::run_maintenance`] regularly,
//! which compacts partitions with many deleted or replaced documents and, if the window follows the wall
//! clock, expires documents. If the window does not follow the wall clock, a late document leaves the
//! disk with the partition in which it arrived. A deleted document keeps about 50 bytes of memory until
//! its partition expires.

mod collection;
mod decision;
mod disk;
mod document;
mod error;
mod fair_lock;
mod files;
mod group_commit;
mod maintenance;
mod offline;
mod parallel_map;
mod recipes;
mod settings;
mod snapshot;
mod state;
mod sync_latency;
/// The synchronisation primitives that threads use; a test substitutes others.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}
mod transfer;
mod writer;

pub use collection::{
    AdmittedDocuments, ClusterPage, ClusterSelection, Collection, CollectionOptions,
    CollectionStats, DocumentLookup, DocumentPage, DocumentSelection, KeptDocuments,
    LoggedAdmission, UnlockedWorkPolicy, VerificationLimits, WallClock,
};
pub use decision::{
    DecisionOutcome, DecisionPage, DecisionRequest, DecisionSubject, MOST_DECISIONS,
    MOST_READ_MEMBERS, MOST_REJUDGED_DOCUMENTS, NamedText, RejudgedDocument, RejudgedDocuments,
    StoredDecision,
};
pub use disk::{Disk, DiskFile, DiskFolder, ReadFolder, make_directory};
pub use document::{
    ClusterPreference, DocumentCluster, DocumentContent, DuplicateEvidence, InsertAnswer,
    LONGEST_ID, LONGEST_META, LONGEST_TEXT, ListedDocument, NewDocument, PendingInsert,
    PendingQuery, PreferredDocument, StoredDocument, StoredVerdict,
};
pub use error::{Error, ErrorKind, Result};
pub use files::file_names::{
    MANIFEST_FILE, is_collection_file, is_creation_file, is_data_file, remove_creation_files,
};
pub use files::log_progress::{LogMark, LogPosition};
pub use maintenance::{MaintenancePace, MaintenanceReport};
pub use offline::{VerifyReport, read_recipe, read_settings, repair_collection, verify_collection};
pub use recipes::{RecipeArchive, StoredRecipe, StoredRecipeFile};
pub use settings::{
    CollectionContent, CollectionSettings, ExpiryClock, OnConflict, SettingsChange, SettingsRecord,
};
pub use snapshot::restore_collection;
pub use state::CompactionTrigger;
pub use sync_latency::{SYNC_BOUNDS_SECONDS, SyncLatency};
pub use transfer::{
    DocumentExport, ImportCounts, RejectDocument, export_documents, import_documents,
};
