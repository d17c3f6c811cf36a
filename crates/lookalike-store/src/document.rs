//! Documents as they come in, and answers.

use lookalike::matching::Route;
use lookalike::online::{self, Preparer, Time};
use lookalike::text::Scratch;
use lookalike::value_hash;

use crate::error::{Error, Result};
use crate::ids::id_hash;
use crate::records;
use crate::rows::{self, Verdict as RowVerdict};
use crate::settings::Holds;

/// The most bytes of an id.
pub const LONGEST_ID: usize = 512;

/// The most bytes of a text: 64 MiB.
pub const LONGEST_TEXT: usize = 64 << 20;

/// The most bytes of what is remembered with a document.
pub const LONGEST_META: usize = 64 << 10;

/// A document that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Names the document; 1 to [`LONGEST_ID`] bytes.
    pub id: String,
    /// What it says.
    pub content: Content,
    /// Its time; that of its arrival if it has none.
    pub time: Option<Time>,
    /// Anything, to be given back with the document; part of its content.
    pub meta: Option<String>,
}

/// What a document says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text of up to [`LONGEST_TEXT`] bytes.
    Text(String),
    /// Nothing but the fingerprint of a text.
    Fingerprint(u128),
}

/// A document that is ready to be checked; see [`Collection::prepare`](crate::Collection::prepare).
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

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Bytes that it takes until it is on disk, about.
    pub fn bytes(&self) -> usize {
        let text = self.online.text().map_or(0, str::len);
        let meta = self.meta.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.id.len() + meta + text + self.record.len()
    }
}

/// As much of an id as a message shows.
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

/// What became of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Its place in the order of the collection; none if it was not stored.
    pub seq: Option<u64>,
    /// Its time as it counts.
    pub time: Time,
    /// Whether this is the answer that the same document got before.
    pub again: bool,
}

impl Answer {
    /// The id of its cluster: that of the kept document.
    pub fn cluster(&self) -> &str {
        match &self.verdict {
            Verdict::Kept => &self.id,
            Verdict::Duplicate(evidence) => &evidence.of,
        }
    }
}

/// Whether a document is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing kept before it, in the window, matches it.
    Kept,
    /// It repeats a kept document.
    Duplicate(Evidence),
}

/// The kept document that one repeats: the most similar one, of equals the earliest.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Its id.
    pub of: String,
    /// Its place in the order.
    pub seq: u64,
    /// How similar it is, above 0 and at most 1.
    pub similarity: f64,
    /// How it was found.
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

/// A document as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What became of it.
    pub answer: Answer,
    /// What it says.
    pub content: Content,
    /// What was to be remembered with it.
    pub meta: Option<String>,
    /// Whether the kept document that it repeats is gone: deleted, replaced or past the window.
    pub of_is_gone: bool,
}

/// A row of a document, and where it was found.
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

/// A kept document with those that repeat it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The kept document.
    pub kept: Answer,
    /// Those that repeat it, the newest first, as many as were asked for.
    pub members: Vec<Answer>,
    /// Whether there are more.
    pub more: bool,
}
