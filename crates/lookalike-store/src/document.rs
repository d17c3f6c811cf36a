//! Documents as they are inserted, and the answers to them.

use lookalike::matching::Route;
use lookalike::online::{self, Preparer, Time};
use lookalike::text::Scratch;
use lookalike::value_hash;

use crate::error::{Error, Result};
use crate::ids::id_hash;
use crate::records;
use crate::rows::{self, Verdict as RowVerdict};
use crate::settings::Holds;

/// Largest id, in bytes.
pub const LONGEST_ID: usize = 512;

/// Largest text, in bytes: 64 MiB.
pub const LONGEST_TEXT: usize = 64 << 20;

/// Largest metadata of a document, in bytes.
pub const LONGEST_META: usize = 64 << 10;

/// A document to be inserted or queried.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Name of the document; 1 to [`LONGEST_ID`] bytes.
    pub id: String,
    /// Content that is compared.
    pub content: Content,
    /// Time of the document; without one, the time of its arrival.
    pub time: Option<Time>,
    /// Arbitrary metadata, returned with the document. It is part of the content.
    pub meta: Option<String>,
}

/// Content of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text of up to [`LONGEST_TEXT`] bytes.
    Text(String),
    /// Only the fingerprint of a text.
    Fingerprint(u128),
}

/// A document prepared for its check; see [`Collection::prepare`](crate::Collection::prepare).
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) id: String,
    pub(crate) id_hash: u64,
    pub(crate) time: Option<Time>,
    pub(crate) meta: Option<String>,
    pub(crate) content: u64,
    pub(crate) fingerprint: Option<u128>,
    pub(crate) online: online::Prepared,
    pub(crate) record: Vec<u8>,
}

impl Prepared {
    pub(crate) fn new(
        document: Document,
        holds: Holds,
        preparer: &Preparer,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let Document {
            id,
            content,
            time,
            meta,
        } = document;
        check_length("id", &id, id.len(), 1, LONGEST_ID)?;
        let meta_bytes = meta.as_ref().map_or(0, String::len);
        check_length("meta of", &id, meta_bytes, 0, LONGEST_META)?;
        let (online, said, fingerprint) = match (content, holds) {
            (Content::Text(text), Holds::Texts) => {
                check_length("text of", &id, text.len(), 0, LONGEST_TEXT)?;
                let said = value_hash(text.as_bytes());
                (preparer.text(text, scratch), said, None)
            }
            (Content::Fingerprint(code), Holds::Fingerprints) => {
                let said = value_hash(&code.to_le_bytes());
                (preparer.fingerprint(code)?, said, Some(code))
            }
            (_, Holds::Texts) => {
                let what = format!("document '{}' has no text", shown(&id));
                return Err(Error::document(what));
            }
            (_, Holds::Fingerprints) => {
                let what = format!("document '{}' has no fingerprint", shown(&id));
                return Err(Error::document(what));
            }
        };
        let of_meta = meta.as_ref().map(|meta| value_hash(meta.as_bytes()));
        let content = [said, of_meta.unwrap_or(0)].map(u64::to_le_bytes);
        Ok(Self {
            record: records::encode(&id, online.text().unwrap_or_default()),
            id_hash: id_hash(&id),
            content: value_hash(content.as_flattened()),
            id,
            time,
            meta,
            fingerprint,
            online,
        })
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the approximate bytes that the document occupies until it is on disk.
    pub fn bytes(&self) -> usize {
        let text = self.online.text().map_or(0, str::len);
        let meta = self.meta.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.id.len() + meta + text + self.record.len()
    }
}

/// Returns as much of an id as a message shows.
pub(crate) fn shown(id: &str) -> String {
    let mut shown: String = id.chars().take(60).collect();
    if shown.len() < id.len() {
        shown.push('…');
    }
    shown
}

fn check_length(what: &str, id: &str, bytes: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    Err(Error::document(format!(
        "the {what} '{}' has {bytes} bytes: it must have {least} to {most}",
        shown(id)
    )))
}

/// The answer to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Id of the document.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Sequence number; `None` if the document was not stored.
    pub seq: Option<u64>,
    /// Effective time of the document.
    pub time: Time,
    /// `true` if the same document was answered before and this is that answer.
    pub again: bool,
}

impl Answer {
    /// Returns the id of its cluster, which is that of the representative.
    pub fn cluster(&self) -> &str {
        match &self.verdict {
            Verdict::Kept => &self.id,
            Verdict::Duplicate(evidence) => &evidence.of,
        }
    }
}

/// Verdict on a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No kept document in the window matches it.
    Kept,
    /// It is a duplicate of a kept document.
    Duplicate(Evidence),
}

/// The kept document that a duplicate matches: the most similar one, and the earliest of equally similar
/// ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Id of the kept document.
    pub of: String,
    /// Sequence number of the kept document.
    pub seq: u64,
    /// Similarity, above 0 and at most 1.
    pub similarity: f64,
    /// Route by which the match was found.
    pub route: Route,
}

impl From<&RowVerdict> for Verdict {
    fn from(verdict: &RowVerdict) -> Self {
        match verdict {
            RowVerdict::Kept { .. } => Self::Kept,
            RowVerdict::Duplicate {
                of,
                seq,
                similarity,
                route,
                ..
            } => Self::Duplicate(Evidence {
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
pub struct Stored {
    /// The answer to it.
    pub answer: Answer,
    /// Its content.
    pub content: Content,
    /// Its metadata.
    pub meta: Option<String>,
    /// `true` if the kept document that it duplicates no longer exists: deleted, replaced or past the window.
    pub of_is_gone: bool,
}

/// A document found in a row.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) number: u64,
    pub(crate) seq: u64,
    pub(crate) document: rows::Document,
}

impl Known {
    pub(crate) fn answer(&self, again: bool) -> Answer {
        Answer {
            id: self.document.id.clone(),
            verdict: Verdict::from(&self.document.verdict),
            seq: Some(self.seq),
            time: self.document.time,
            again,
        }
    }
}

/// A kept document and its duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The representative.
    pub kept: Answer,
    /// Its duplicates, newest first, up to the requested number.
    pub members: Vec<Answer>,
    /// `true` if there are more.
    pub more: bool,
}
