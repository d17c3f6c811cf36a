//! Rows: the ordered log of everything that happened in a collection. All other state is derived from it.
//!
//! Rows are numbered from 1 without gaps. The sequence number of a document is the number of the row that inserted it; a
//! kept document that is [moved](PartitionRow::Moved) to a later row keeps it. Rows are stored in blocks, under the
//! number of the first row, and each block has a checksum of that number and its bytes.
//!
//! Compaction replaces dead rows by what other rows still need of them, without ids, texts, metas and hashes:
//! see [`PartitionRow::Erased`], [`PartitionRow::ErasedMove`] and [`PartitionRow::ErasedDuplicate`].

mod blocks;
mod encoding;
#[cfg(test)]
mod tests;

use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::similarity::Route;
use lookalike::stream::{DocumentSlot, Timestamp};

pub(crate) use self::blocks::{EncodedRows, open_block};

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartitionRow {
    /// A document was inserted.
    Document(RowDocument),
    /// A kept document was refreshed by a duplicate in a later partition, and moved there. It keeps its
    /// sequence number.
    Moved {
        document: RowDocument,
        /// Number of its previous row.
        from: u64,
        from_slot: DocumentSlot,
        seq: u64,
        /// Number of its last duplicate; 0 if it has none.
        last: u64,
    },
    /// A document was deleted.
    Deleted {
        /// Number of its row.
        number: u64,
        seq: u64,
        /// Its slot, if it was kept.
        slot: Option<DocumentSlot>,
        /// Time of the deletion and bytes freed by it; rows of earlier versions do not have it.
        removal: Option<DeletionRecord>,
    },
    /// Consecutive rows of which compaction left nothing.
    Erased {
        rows: u64,
        /// Kept documents among them; each of these has an index.
        kept: u32,
    },
    /// A dead move whose previous row is still on disk.
    ErasedMove {
        from: u64,
        from_slot: DocumentSlot,
        seq: u64,
    },
    /// A dead duplicate that another row, or the kept document, names as the previous one of the cluster.
    ErasedDuplicate {
        /// Sequence number of the kept document.
        seq: u64,
        slot: DocumentSlot,
        /// Number of the previous duplicate of the same document; 0 if there is none.
        previous: u64,
    },
    /// A person decided about two texts, or a decision was moved to a later partition.
    Decision(DecisionRow),
}

/// A text of a decision, and the id by which a person knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedText {
    /// The text.
    pub text: DecidedText,
    /// Id of a document that had the text. It does not decide anything.
    pub id: Option<String>,
}

/// A decision of a person on two texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DecisionRow {
    /// Number of the row that made the decision. It keeps that number in later partitions.
    pub(crate) seq: u64,
    /// The two texts.
    pub(crate) texts: [NamedText; 2],
    /// The decision; `None` withdraws the one before.
    pub(crate) decision: Option<PairDecision>,
    /// Wall clock of the decision.
    pub(crate) at: Timestamp,
}

/// Time and size of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeletionRecord {
    /// Wall clock.
    pub(crate) at: Timestamp,
    /// Approximate bytes of the row and the record.
    pub(crate) bytes: u32,
}

/// A document that was inserted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowDocument {
    pub(crate) id: String,
    pub(crate) time: Timestamp,
    /// Hash of its content and metadata.
    pub(crate) content_hash: u64,
    /// Place of its record.
    pub(crate) place: RecordPlace,
    /// Its fingerprint, if the collection holds fingerprints.
    pub(crate) fingerprint: Option<u128>,
    pub(crate) meta: Option<String>,
    pub(crate) verdict: RowVerdict,
    /// Start of its window, if that is the time of an erased duplicate.
    pub(crate) refreshed: Option<Timestamp>,
}

/// Verdict on a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowVerdict {
    /// Kept, with this index in its partition.
    Kept { index: u32 },
    /// A duplicate of a kept document.
    Duplicate {
        of: String,
        seq: u64,
        slot: DocumentSlot,
        similarity: f64,
        route: Route,
        /// Number of the previous duplicate of the same document; 0 if there is none.
        previous: u64,
    },
}

/// Place of a record in the file of texts of its partition, in units of [`PLACE_UNIT_BYTES`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub(crate) at: u32,
    pub(crate) units: u32,
}

/// Unit of places, in bytes.
pub(crate) const PLACE_UNIT_BYTES: u64 = 8;

/// Largest number of rows in a window: tables keep only the lower half of each number.
pub(crate) const MAX_WINDOW_ROWS: u64 = 1 << 31;

impl RecordPlace {
    /// Returns the place after it, in units.
    pub(crate) fn end_unit(self) -> u64 {
        u64::from(self.at) + u64::from(self.units)
    }
}

impl PartitionRow {
    /// Returns how many numbers the row has.
    pub(crate) fn number_count(&self) -> u64 {
        match self {
            Self::Erased { rows, .. } => *rows,
            _ => 1,
        }
    }

    /// Returns the document that was inserted or moved, if the row has one.
    pub(crate) fn as_document(&self) -> Option<&RowDocument> {
        match self {
            Self::Document(document) | Self::Moved { document, .. } => Some(document),
            Self::Deleted { .. }
            | Self::Erased { .. }
            | Self::ErasedMove { .. }
            | Self::ErasedDuplicate { .. }
            | Self::Decision(_) => None,
        }
    }

    /// Returns the document, if the row has one that was kept.
    pub(crate) fn as_kept_document(&self) -> Option<&RowDocument> {
        self.as_document().filter(|document| document.is_kept())
    }

    /// Returns the document and its sequence number; `number` is that of the row.
    pub(crate) fn into_document(self, number: u64) -> Option<(RowDocument, u64)> {
        match self {
            Self::Document(document) => Some((document, number)),
            Self::Moved { document, seq, .. } => Some((document, seq)),
            Self::Deleted { .. }
            | Self::Erased { .. }
            | Self::ErasedMove { .. }
            | Self::ErasedDuplicate { .. }
            | Self::Decision(_) => None,
        }
    }
}

/// Pairs rows with their numbers, which start at `first`.
pub(crate) fn number_rows(
    first: u64,
    rows: &[PartitionRow],
) -> impl Iterator<Item = (u64, &PartitionRow)> {
    rows.iter().scan(first, |next, row| {
        let number = *next;
        *next = number.saturating_add(row.number_count());
        Some((number, row))
    })
}

/// Returns how many numbers rows have in total.
pub(crate) fn count_rows(rows: &[PartitionRow]) -> u64 {
    rows.iter().fold(0, |count: u64, row| {
        count.saturating_add(row.number_count())
    })
}

/// Approximate bytes of a row without its strings.
const ROW_BYTES: usize = 80;

/// Approximate bytes of the row of a deletion.
pub(crate) const DELETION_BYTES: u64 = 48;

impl RowDocument {
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.verdict, RowVerdict::Kept { .. })
    }

    /// Returns the approximate bytes of the row and the record on disk.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let meta = self.meta.as_ref().map_or(0, String::len);
        let of = match &self.verdict {
            RowVerdict::Kept { .. } => 0,
            RowVerdict::Duplicate { of, .. } => of.len(),
        };
        let row = ROW_BYTES + self.id.len() + meta + of;
        row as u64 + u64::from(self.place.units) * PLACE_UNIT_BYTES
    }
}
