//! Decisions of a person on two texts, and what becomes of the documents that they are about.

use lookalike::dedup::PairDecision;
use lookalike::stream::Timestamp;

use crate::document::InsertAnswer;
pub use crate::files::rows::NamedText;

/// Largest number of decisions of a collection.
pub const MOST_DECISIONS: usize = 100_000;

/// Documents that a decision may judge again, and the bytes of their texts and metadata. They are inserted under one lock,
/// so that a failure leaves all of them or none. In memory they take three times as much: their texts, records and
/// sketches.
pub const MOST_REJUDGED_DOCUMENTS: usize = 1_000;
pub(crate) const MOST_REJUDGED_BYTES: usize = 256 << 20;

/// Members of clusters whose texts a decision may read to find the documents that it is about, and the bytes of these
/// texts.
pub const MOST_READ_MEMBERS: usize = 100_000;
pub(crate) const MOST_READ_BYTES: usize = 1 << 30;

/// Work of a decision, as a multiple of the [largest work](crate::VerificationLimits::document_steps) of a document: some
/// 3 s. A shared log has no such limit, because the steps of a search are not the same on all replicas.
pub(crate) const DOCUMENTS_OF_WORK: u64 = 64;

/// Bytes of the searches of a decision that are kept until it is made. Further ones are made again.
pub(crate) const MOST_SEARCH_BYTES: usize = 256 << 20;

/// The two texts that a decision is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionSubject {
    /// Two texts, of which the collection may have no document.
    Texts([NamedText; 2]),
    /// The texts of two stored documents, by their ids.
    Documents([String; 2]),
}

/// A decision that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The texts.
    pub subject: DecisionSubject,
    /// The decision; `None` withdraws the one before.
    pub decision: Option<PairDecision>,
}

/// A decision that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDecision {
    /// Its number. Later decisions have larger ones, and a decision keeps its number.
    pub seq: u64,
    /// The two texts.
    pub texts: [NamedText; 2],
    /// The decision.
    pub decision: PairDecision,
    /// Wall clock at which it was made.
    pub at: Timestamp,
}

impl StoredDecision {
    /// Returns the request that makes the same decision.
    pub fn to_request(&self) -> DecisionRequest {
        DecisionRequest {
            subject: DecisionSubject::Texts(self.texts.clone()),
            decision: Some(self.decision),
        }
    }
}

/// A document that was judged again.
#[derive(Clone, Debug, PartialEq)]
pub struct RejudgedDocument {
    /// Its answer before.
    pub before: InsertAnswer,
    /// Its answer now, with a new sequence number.
    pub after: InsertAnswer,
}

/// The documents that a decision made be judged again, or the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RejudgedDocuments {
    /// The first documents, in the order of their new sequence numbers.
    pub first: Vec<RejudgedDocument>,
    /// Number of all.
    pub total: usize,
    /// Largest sequence number before that of the first one; 0 if there is none.
    before_first: u64,
}

impl RejudgedDocuments {
    pub(crate) fn new(all: Vec<RejudgedDocument>) -> Self {
        let first_seq = all.first().and_then(|rejudged| rejudged.after.seq);
        Self {
            total: all.len(),
            before_first: first_seq.unwrap_or(0).saturating_sub(1),
            first: all,
        }
    }

    /// Forgets all documents but the first `most`. Their number stays.
    pub fn keep_first(&mut self, most: usize) {
        self.first.truncate(most);
        self.first.shrink_to_fit();
    }

    /// Returns the sequence number after which a [list](crate::Collection::list_documents) continues with the documents
    /// that were forgotten; `None` if none was.
    pub fn continue_after(&self) -> Option<u64> {
        let last = self.first.last().and_then(|rejudged| rejudged.after.seq);
        (self.first.len() < self.total).then_some(last.unwrap_or(self.before_first))
    }
}

/// Effect of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionOutcome {
    /// The two texts.
    pub texts: [NamedText; 2],
    /// The decision; `None` if it was withdrawn.
    pub decision: Option<PairDecision>,
    /// Number of the decision; `None` if there is none on these texts now.
    pub seq: Option<u64>,
    /// `false` if the same was decided before.
    pub is_new: bool,
    /// The documents that were judged again.
    pub rejudged: RejudgedDocuments,
    /// Documents whose verdict stands although the decision is about it, because they are past the window.
    pub past_window: u64,
}

/// A page of decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionPage {
    /// Decisions by their numbers, ascending.
    pub decisions: Vec<StoredDecision>,
    /// The number after which the next page begins; `None` at the end.
    pub continue_after: Option<u64>,
    /// Number of all decisions of the collection.
    pub total: usize,
}
