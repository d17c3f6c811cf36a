//! Documents as they are inserted, and the answers to them.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::LazyLock;

use lookalike::similarity::Route;
use lookalike::stream::{self, DocumentPreparer, Timestamp};
use lookalike::text::AnalysisScratch;
use lookalike::value_hash;

use crate::error::{Error, Result};
use crate::files::log_progress::LogPosition;
use crate::files::records;
use crate::files::rows::{self, RowVerdict};
use crate::settings::CollectionContent;
use crate::state::{DocumentCheck, PendingCheck};

/// Largest id, in bytes.
pub const LONGEST_ID: usize = 512;

/// Largest text, in bytes: 64 MiB.
pub const LONGEST_TEXT: usize = 64 << 20;

/// Largest metadata of a document, in bytes.
pub const LONGEST_META: usize = 64 << 10;

/// Bytes that are copied in a step of a check.
pub(crate) const BYTES_OF_STEP: u64 = 16;

/// A document to be inserted, or to be queried: then its id is an `Option`, because a query needs none.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDocument<Id = String> {
    /// Name of the document; 1 to [`LONGEST_ID`] bytes.
    pub id: Id,
    /// Content that is compared.
    pub content: DocumentContent,
    /// Time of the document; without one, the time of its arrival.
    pub time: Option<Timestamp>,
    /// Arbitrary metadata, returned with the document. It is part of the content.
    pub meta: Option<String>,
}

/// Content of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentContent {
    /// A text of up to [`LONGEST_TEXT`] bytes.
    Text(String),
    /// Only the fingerprint of a text.
    Fingerprint(u128),
}

/// A document prepared for its check; see
/// [`Collection::prepare_document`](crate::Collection::prepare_document).
#[derive(Clone, Debug)]
pub struct PendingInsert {
    pub(crate) id: String,
    pub(crate) id_hash: u64,
    pub(crate) time: Option<Timestamp>,
    pub(crate) meta: Option<String>,
    /// Hash of content and metadata.
    pub(crate) content_hash: u64,
    pub(crate) fingerprint: Option<u128>,
    pub(crate) sketched: stream::SketchedDocument,
    /// The record of its text, encoded.
    pub(crate) record: Vec<u8>,
    /// State of its check, if the check waits for another [turn](crate::Collection::admit_turn).
    pub(crate) check: PendingCheck,
    /// Its place in a shared log, if its collection follows one.
    pub(crate) log_position: Option<LogPosition>,
}

impl PendingInsert {
    /// Returns `true` if the check goes on with work on long texts, or on very many features, which takes up to a
    /// second and is done without the lock.
    pub fn has_unlocked_work(&self) -> bool {
        self.check
            .as_ref()
            .is_some_and(|check| check.has_unlocked_work())
    }

    /// Returns the steps that storing the document takes about, beyond those of its check.
    pub(crate) fn insertion_steps(&self, check: &DocumentCheck) -> u64 {
        let meta = self.meta.as_ref().map_or(0, String::len);
        let bytes = (self.record.len() + meta) as u64 + self.sketched.memory_bytes();
        check.insertion_steps() + bytes / BYTES_OF_STEP
    }

    pub(crate) fn new(
        document: NewDocument<impl Into<Option<String>>>,
        holds: CollectionContent,
        preparer: &DocumentPreparer,
        scratch: &mut AnalysisScratch,
    ) -> Result<Self> {
        let NewDocument {
            id,
            content,
            time,
            meta,
        } = document;
        let id: Option<String> = id.into();
        let shown = match &id {
            Some(id) => format!("'{}'", shorten_id(id)),
            None => "(without an id)".to_owned(),
        };
        let id_bytes = id.as_ref().map_or(1, String::len);
        check_length("id", &shown, id_bytes, 1, LONGEST_ID)?;
        // Only a query has the empty id. No document has it, so looking it up finds nothing.
        let id = id.unwrap_or_default();
        let meta_bytes = meta.as_ref().map_or(0, String::len);
        check_length("meta of", &shown, meta_bytes, 0, LONGEST_META)?;
        let (sketched, hash_without_meta, fingerprint) = match (content, holds) {
            (DocumentContent::Text(text), CollectionContent::Texts) => {
                check_length("text of", &shown, text.len(), 0, LONGEST_TEXT)?;
                let hash_without_meta = value_hash(text.as_bytes());
                let sketched = preparer.prepare_text(text, scratch);
                (sketched, hash_without_meta, None)
            }
            (DocumentContent::Fingerprint(code), CollectionContent::Fingerprints) => {
                let hash_without_meta = value_hash(&code.to_le_bytes());
                (preparer.fingerprint(code)?, hash_without_meta, Some(code))
            }
            (_, CollectionContent::Texts) => {
                let what = format!("document {shown} has no text");
                return Err(Error::document_error(what));
            }
            (_, CollectionContent::Fingerprints) => {
                let what = format!("document {shown} has no fingerprint");
                return Err(Error::document_error(what));
            }
        };
        let meta_hash = meta.as_ref().map(|meta| value_hash(meta.as_bytes()));
        let hashes = [hash_without_meta, meta_hash.unwrap_or(0)].map(u64::to_le_bytes);
        Ok(Self {
            record: records::encode_record(&id, sketched.text().unwrap_or_default()),
            check: None,
            log_position: None,
            id_hash: hash_id(&id),
            content_hash: value_hash(hashes.as_flattened()),
            id,
            time,
            meta,
            fingerprint,
            sketched,
        })
    }

    /// Sets its place in a shared log. Every document of a log has another one, and they ascend.
    pub fn set_log_position(&mut self, position: LogPosition) {
        self.log_position = Some(position);
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the bytes of its text and its metadata.
    pub(crate) fn content_bytes(&self) -> usize {
        let text = self.sketched.text().map_or(0, str::len);
        text + self.meta.as_ref().map_or(0, String::len)
    }

    /// Returns the approximate bytes that the document occupies until it is on disk.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.id.len() + self.content_bytes() + self.record.len()
    }
}

/// A document that is compared with those of a collection and never inserted, as
/// [`Collection::prepare_query`](crate::Collection::prepare_query) returns it.
#[derive(Clone, Debug)]
pub struct PendingQuery(pub(crate) PendingInsert);

impl PendingQuery {
    /// Returns the id, if the query has one.
    pub fn id(&self) -> Option<&str> {
        stated_id(&self.0.id)
    }
}

impl Deref for PendingQuery {
    type Target = PendingInsert;

    fn deref(&self) -> &PendingInsert {
        &self.0
    }
}

/// Returns the id, or `None` if it is that of a query without one.
fn stated_id(id: &str) -> Option<&str> {
    (!id.is_empty()).then_some(id)
}

/// Returns the hash of an id. It is keyed with a secret of the process, so that nobody can choose ids with
/// colliding hashes, and it is never written to disk.
pub(crate) fn hash_id(id: &str) -> u64 {
    static ID_HASH_SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    ID_HASH_SECRET.hash_one(id)
}

/// Returns as much of an id as a message shows.
pub(crate) fn shorten_id(id: &str) -> String {
    let mut shown: String = id.chars().take(60).collect();
    if shown.len() < id.len() {
        shown.push('…');
    }
    shown
}

fn check_length(what: &str, shown: &str, bytes: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    Err(Error::document_error(format!(
        "the {what} {shown} has {bytes} bytes: it must have {least} to {most}"
    )))
}

/// The answer to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertAnswer {
    /// Id of the document; empty for a query without one.
    pub id: String,
    /// The verdict.
    pub verdict: StoredVerdict,
    /// Sequence number; `None` if the document was not stored.
    pub seq: Option<u64>,
    /// Effective time of the document.
    pub time: Timestamp,
    /// `true` if the same document was answered before and this is that answer.
    pub again: bool,
}

impl InsertAnswer {
    /// Returns the id of the document, or `None` for a query without one.
    pub fn stated_id(&self) -> Option<&str> {
        stated_id(&self.id)
    }

    /// Returns the id of its cluster, or `None` for a query without an id that matches nothing.
    pub fn stated_cluster_id(&self) -> Option<&str> {
        stated_id(self.cluster_id())
    }

    /// Returns the id of its cluster, which is that of the representative.
    pub fn cluster_id(&self) -> &str {
        match &self.verdict {
            StoredVerdict::Kept => &self.id,
            StoredVerdict::Duplicate(evidence) => &evidence.of,
        }
    }
}

/// Verdict on a document.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredVerdict {
    /// No kept document in the window matches it.
    Kept,
    /// It is a duplicate of a kept document.
    Duplicate(DuplicateEvidence),
}

/// A kept document that a document matches. In a verdict it is the most similar one, and the earliest of equally similar
/// ones.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateEvidence {
    /// Id of the kept document.
    pub of: String,
    /// Sequence number of the kept document.
    pub seq: u64,
    /// Similarity, above 0 and at most 1.
    pub similarity: f64,
    /// Route by which the match was found.
    pub route: Route,
}

impl From<&RowVerdict> for StoredVerdict {
    fn from(verdict: &RowVerdict) -> Self {
        match verdict {
            RowVerdict::Kept { .. } => Self::Kept,
            RowVerdict::Duplicate {
                of,
                seq,
                similarity,
                route,
                ..
            } => Self::Duplicate(DuplicateEvidence {
                of: of.clone(),
                seq: *seq,
                similarity: *similarity,
                route: *route,
            }),
        }
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDocument {
    /// The answer to it.
    pub answer: InsertAnswer,
    /// Its content.
    pub content: DocumentContent,
    /// Its metadata.
    pub meta: Option<String>,
    /// `true` if the kept document that it duplicates no longer exists: deleted, replaced or past the window.
    pub of_is_gone: bool,
}

/// A stored document in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDocument {
    /// The answer to it.
    pub answer: InsertAnswer,
    /// Its content; `None` for a text that was not requested.
    pub content: Option<DocumentContent>,
    /// Its metadata.
    pub meta: Option<String>,
    /// `true` if the kept document that it duplicates no longer exists: deleted, replaced or past the window.
    pub of_is_gone: bool,
}

/// A document found in a row.
#[derive(Clone, Debug)]
pub(crate) struct KnownDocument {
    /// Number of the row.
    pub(crate) number: u64,
    /// Sequence number, which stays when the document moves to another row.
    pub(crate) seq: u64,
    pub(crate) document: rows::RowDocument,
}

impl KnownDocument {
    pub(crate) fn to_answer(&self, again: bool) -> InsertAnswer {
        InsertAnswer {
            id: self.document.id.clone(),
            verdict: StoredVerdict::from(&self.document.verdict),
            seq: Some(self.seq),
            time: self.document.time,
            again,
        }
    }
}

/// A kept document and its duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentCluster {
    /// The representative.
    pub kept: InsertAnswer,
    /// Its duplicates, newest first, up to the requested number. There can be fewer, even none, although others
    /// follow, if many were deleted.
    pub members: Vec<InsertAnswer>,
    /// Sequence number of the last member that was examined, to be passed as `after`; `None` if there are no more.
    pub continue_after: Option<u64>,
}

/// A preference among the documents of a cluster, and how much of the cluster is read for it.
pub struct ClusterPreference<'a> {
    /// Compares the metadata of two documents: `Less` if the first document is preferred.
    pub compare: &'a dyn Fn(Option<&str>, Option<&str>) -> Ordering,
    /// Largest number of duplicates that are compared with the representative, the newest ones. Besides, at most
    /// this many deleted duplicates are skipped.
    pub most_members: usize,
    /// Largest number of bytes of the metadata that is compared.
    pub most_bytes: usize,
}

/// The preferred document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PreferredDocument {
    /// The answer to it.
    pub answer: InsertAnswer,
    /// Its metadata.
    pub meta: Option<String>,
    /// Number of documents that were compared, the representative included.
    pub considered: usize,
    /// Bytes of the metadata that was compared.
    pub considered_bytes: usize,
    /// `true` if these are all documents of the cluster.
    pub is_complete: bool,
}
