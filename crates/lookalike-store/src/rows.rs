//! Rows: the ordered log of everything that happened in a collection. All other state is derived from it.
//!
//! Rows are numbered from 1 without gaps. The number of a document's row is its sequence number. Rows are
//! stored in blocks, under the number of the first row, and each block has a checksum of that number and its
//! bytes.
//!
//! Compaction replaces dead rows by what other rows still need of them, without ids, texts, metas and hashes:
//! see [`PartitionRow::Erased`], [`PartitionRow::ErasedMove`] and [`PartitionRow::ErasedDuplicate`].
//!
//! ```text
//! block:  count: u32 │ length: u32, row │ length: u32, row │ … │ CRC-32: u32      (little-endian)
//! ```

use lookalike::similarity::Route;
use lookalike::stream::{DocumentSlot, Timestamp};

use crate::bytes::{ByteReader, put_string};

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
    /// Hash of its content.
    pub(crate) content: u64,
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
    /// Kept, with this index in its section.
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

/// Place of a record in the file of texts of its partition, in units of [`UNIT`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub(crate) at: u32,
    pub(crate) units: u32,
}

/// Unit of places, in bytes.
pub(crate) const UNIT: u64 = 8;

/// Largest number of rows in a window: tables keep only the lower half of each number.
pub(crate) const MOST_ROWS: u64 = 1 << 31;

impl RecordPlace {
    /// Returns the place after it, in units.
    pub(crate) fn end_unit(self) -> u64 {
        u64::from(self.at) + u64::from(self.units)
    }
}

const DOCUMENT: u8 = 1;
const MOVED: u8 = 2;
/// Deletion without a [`DeletionRecord`].
const DELETED: u8 = 3;
const REMOVED: u8 = 4;
const ERASED: u8 = 5;
const ERASED_MOVE: u8 = 6;
const ERASED_DUPLICATE: u8 = 7;

const KEPT: u8 = 1;
const DUPLICATE: u8 = 2;
const HAS_FINGERPRINT: u8 = 4;
const HAS_META: u8 = 8;
const IS_REFRESHED: u8 = 16;

/// Routes by their number in files.
const ROUTES: [Route; 6] = [
    Route::Exact,
    Route::Join,
    Route::MinHash,
    Route::SimHash,
    Route::Sentences,
    Route::BottomK,
];

fn route_number(route: Route) -> u8 {
    match route {
        Route::Exact => 0,
        Route::Join => 1,
        Route::MinHash => 2,
        Route::SimHash => 3,
        Route::Sentences => 4,
        Route::BottomK => 5,
    }
}

impl PartitionRow {
    pub(crate) fn encode_row(&self, into: &mut Vec<u8>) {
        match self {
            Self::Document(document) => {
                into.push(DOCUMENT);
                document.encode_document(into);
            }
            Self::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                into.push(MOVED);
                into.extend(from.to_le_bytes());
                encode_slot(*from_slot, into);
                into.extend(seq.to_le_bytes());
                into.extend(last.to_le_bytes());
                document.encode_document(into);
            }
            Self::Deleted {
                number,
                seq,
                slot,
                removal,
            } => {
                into.push(removal.map_or(DELETED, |_| REMOVED));
                into.extend(number.to_le_bytes());
                into.extend(seq.to_le_bytes());
                into.push(u8::from(slot.is_some()));
                slot.iter().for_each(|&slot| encode_slot(slot, into));
                if let Some(removal) = removal {
                    into.extend(removal.at.0.to_le_bytes());
                    into.extend(removal.bytes.to_le_bytes());
                }
            }
            Self::Erased { rows, kept } => {
                into.push(ERASED);
                into.extend(rows.to_le_bytes());
                into.extend(kept.to_le_bytes());
            }
            Self::ErasedMove {
                from,
                from_slot,
                seq,
            } => {
                into.push(ERASED_MOVE);
                into.extend(from.to_le_bytes());
                encode_slot(*from_slot, into);
                into.extend(seq.to_le_bytes());
            }
            Self::ErasedDuplicate {
                seq,
                slot,
                previous,
            } => {
                into.push(ERASED_DUPLICATE);
                into.extend(seq.to_le_bytes());
                encode_slot(*slot, into);
                into.extend(previous.to_le_bytes());
            }
        }
    }

    pub(crate) fn decode_row(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        let row = match reader.read_u8()? {
            DOCUMENT => Self::Document(RowDocument::decode_document(&mut reader)?),
            MOVED => Self::Moved {
                from: reader.read_u64()?,
                from_slot: decode_slot(&mut reader)?,
                seq: reader.read_u64()?,
                last: reader.read_u64()?,
                document: RowDocument::decode_document(&mut reader)?,
            },
            kind @ (DELETED | REMOVED) => Self::Deleted {
                number: reader.read_u64()?,
                seq: reader.read_u64()?,
                slot: match reader.read_u8()? {
                    0 => None,
                    _ => Some(decode_slot(&mut reader)?),
                },
                removal: match kind {
                    DELETED => None,
                    _ => Some(DeletionRecord {
                        at: Timestamp(reader.read_i64()?),
                        bytes: reader.read_u32()?,
                    }),
                },
            },
            ERASED => {
                let (rows, kept) = (reader.read_u64()?, reader.read_u32()?);
                // A larger count than a window can have was never written.
                if !(1..=MOST_ROWS).contains(&rows) || u64::from(kept) > rows {
                    return None;
                }
                Self::Erased { rows, kept }
            }
            ERASED_MOVE => Self::ErasedMove {
                from: reader.read_u64()?,
                from_slot: decode_slot(&mut reader)?,
                seq: reader.read_u64()?,
            },
            ERASED_DUPLICATE => Self::ErasedDuplicate {
                seq: reader.read_u64()?,
                slot: decode_slot(&mut reader)?,
                previous: reader.read_u64()?,
            },
            _ => return None,
        };
        reader.is_at_end().then_some(row)
    }

    /// Returns `true` if an encoded row may have several numbers.
    pub(crate) fn may_stand_for_several(encoded: &[u8]) -> bool {
        encoded.first() == Some(&ERASED)
    }

    /// Returns how many numbers the row has.
    pub(crate) fn number_count(&self) -> u64 {
        match self {
            Self::Erased { rows, .. } => *rows,
            _ => 1,
        }
    }

    /// Returns the document and its sequence number; `number` is that of the row.
    pub(crate) fn into_document(self, number: u64) -> Option<(RowDocument, u64)> {
        match self {
            Self::Document(document) => Some((document, number)),
            Self::Moved { document, seq, .. } => Some((document, seq)),
            Self::Deleted { .. }
            | Self::Erased { .. }
            | Self::ErasedMove { .. }
            | Self::ErasedDuplicate { .. } => None,
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
const BYTES_OF_A_ROW: usize = 80;

/// Approximate bytes of the row of a deletion.
pub(crate) const BYTES_OF_A_DELETION: u64 = 48;

impl RowDocument {
    /// Returns the approximate bytes of the row and the record on disk.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let meta = self.meta.as_ref().map_or(0, String::len);
        let of = match &self.verdict {
            RowVerdict::Kept { .. } => 0,
            RowVerdict::Duplicate { of, .. } => of.len(),
        };
        let row = BYTES_OF_A_ROW + self.id.len() + meta + of;
        row as u64 + u64::from(self.place.units) * UNIT
    }

    fn encode_document(&self, into: &mut Vec<u8>) {
        let kind = match &self.verdict {
            RowVerdict::Kept { .. } => KEPT,
            RowVerdict::Duplicate { .. } => DUPLICATE,
        };
        let fingerprint = u8::from(self.fingerprint.is_some()) * HAS_FINGERPRINT;
        let meta = u8::from(self.meta.is_some()) * HAS_META;
        let refreshed = u8::from(self.refreshed.is_some()) * IS_REFRESHED;
        into.push(kind | fingerprint | meta | refreshed);
        put_string(&self.id, into);
        into.extend(self.time.0.to_le_bytes());
        into.extend(self.content.to_le_bytes());
        into.extend(self.place.at.to_le_bytes());
        into.extend(self.place.units.to_le_bytes());
        if let Some(fingerprint) = self.fingerprint {
            into.extend(fingerprint.to_le_bytes());
        }
        if let Some(meta) = &self.meta {
            put_string(meta, into);
        }
        match &self.verdict {
            RowVerdict::Kept { index } => into.extend(index.to_le_bytes()),
            RowVerdict::Duplicate {
                of,
                seq,
                slot,
                similarity,
                route,
                previous,
            } => {
                put_string(of, into);
                into.extend(seq.to_le_bytes());
                encode_slot(*slot, into);
                into.extend(similarity.to_bits().to_le_bytes());
                into.push(route_number(*route));
                into.extend(previous.to_le_bytes());
            }
        }
        if let Some(refreshed) = self.refreshed {
            into.extend(refreshed.0.to_le_bytes());
        }
    }

    fn decode_document(reader: &mut ByteReader<'_>) -> Option<Self> {
        let flags = reader.read_u8()?;
        let known = KEPT | DUPLICATE | HAS_FINGERPRINT | HAS_META | IS_REFRESHED;
        if flags & !known != 0 {
            return None;
        }
        Some(Self {
            id: reader.read_string()?.to_owned(),
            time: Timestamp(reader.read_i64()?),
            content: reader.read_u64()?,
            place: RecordPlace {
                at: reader.read_u32()?,
                units: reader.read_u32()?,
            },
            fingerprint: if flags & HAS_FINGERPRINT != 0 {
                Some(reader.read_u128()?)
            } else {
                None
            },
            meta: if flags & HAS_META != 0 {
                Some(reader.read_string()?.to_owned())
            } else {
                None
            },
            verdict: match flags & (KEPT | DUPLICATE) {
                KEPT => RowVerdict::Kept {
                    index: reader.read_u32()?,
                },
                DUPLICATE => RowVerdict::Duplicate {
                    of: reader.read_string()?.to_owned(),
                    seq: reader.read_u64()?,
                    slot: decode_slot(reader)?,
                    similarity: f64::from_bits(reader.read_u64()?),
                    route: *ROUTES.get(usize::from(reader.read_u8()?))?,
                    previous: reader.read_u64()?,
                },
                _ => return None,
            },
            refreshed: if flags & IS_REFRESHED != 0 {
                Some(Timestamp(reader.read_i64()?))
            } else {
                None
            },
        })
    }
}

fn encode_slot(slot: DocumentSlot, into: &mut Vec<u8>) {
    into.extend(slot.partition.to_le_bytes());
    into.extend(slot.index.to_le_bytes());
}

fn decode_slot(reader: &mut ByteReader<'_>) -> Option<DocumentSlot> {
    Some(DocumentSlot {
        partition: reader.read_u64()?,
        index: reader.read_u32()?,
    })
}

/// Encoded rows.
#[derive(Debug, Default)]
pub(crate) struct EncodedRows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Positions of the rows with more than one number, and how many numbers each has.
    counts: Vec<(usize, u64)>,
}

impl EncodedRows {
    pub(crate) fn push_row(&mut self, row: &PartitionRow) {
        row.encode_row(&mut self.bytes);
        if row.number_count() != 1 {
            self.counts.push((self.ends.len(), row.number_count()));
        }
        self.ends.push(self.bytes.len() as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    fn row_bytes(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    pub(crate) fn decode_row_at(&self, at: usize) -> Option<PartitionRow> {
        PartitionRow::decode_row(self.row_bytes(at))
    }

    /// Returns the rows as blocks, each with the number of its first row; the first number is `first`.
    pub(crate) fn iter_blocks(&self, first: u64) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
        let (mut number, mut counts) = (first, self.counts.iter().peekable());
        (0..self.len()).step_by(ROWS_OF_A_BLOCK).map(move |start| {
            let end = (start + ROWS_OF_A_BLOCK).min(self.len());
            let rows = (start..end).map(|at| self.row_bytes(at));
            let block = (number, seal_block(number, rows));
            number = number.saturating_add((end - start) as u64);
            while let Some((_, count)) = counts.next_if(|&&(at, _)| at < end) {
                number = number.saturating_add(count - 1);
            }
            block
        })
    }
}

/// Rows of a block. A point look-up reads and verifies a whole block; 64 rows of short documents are about 6
/// kB.
const ROWS_OF_A_BLOCK: usize = 64;

fn seal_block<'a>(first: u64, rows: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut block = Vec::new();
    block.extend((rows.len() as u32).to_le_bytes());
    for row in rows {
        block.extend((row.len() as u32).to_le_bytes());
        block.extend(row);
    }
    block.extend(block_checksum(first, &block).to_le_bytes());
    block
}

fn block_checksum(first: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the encoded rows of a block, or a description of the damage.
pub(crate) fn open_block(first: u64, block: &[u8]) -> Result<Vec<&[u8]>, String> {
    let what = |what: &str| format!("the block of row {first} {what}");
    let (bytes, sum) = block
        .split_last_chunk::<4>()
        .ok_or_else(|| what("is too short"))?;
    if block_checksum(first, bytes) != u32::from_le_bytes(*sum) {
        return Err(what("does not have its checksum"));
    }
    let mut reader = ByteReader(bytes);
    let mut rows = || {
        let count = reader.read_u32()?;
        let rows = (0..count).map(|_| {
            let length = reader.read_u32()?;
            reader.take_bytes(length as usize)
        });
        let rows: Option<Vec<_>> = rows.collect();
        rows.filter(|_| reader.is_at_end())
    };
    rows().ok_or_else(|| what("is not well formed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slots() -> impl Strategy<Value = DocumentSlot> {
        (any::<u64>(), any::<u32>()).prop_map(|(section, index)| DocumentSlot {
            partition: section,
            index,
        })
    }

    fn verdicts() -> impl Strategy<Value = RowVerdict> {
        let duplicate = (
            ".{0,9}",
            any::<u64>(),
            slots(),
            0.0..1.0,
            0..6usize,
            any::<u64>(),
        );
        prop_oneof![
            any::<u32>().prop_map(|index| RowVerdict::Kept { index }),
            duplicate.prop_map(|(of, seq, slot, similarity, route, previous)| {
                let route = ROUTES[route];
                RowVerdict::Duplicate {
                    of,
                    seq,
                    slot,
                    similarity,
                    route,
                    previous,
                }
            }),
        ]
    }

    fn documents() -> impl Strategy<Value = RowDocument> {
        let said = (
            any::<Option<u128>>(),
            proptest::option::of(".{0,9}"),
            verdicts(),
        );
        let rest = (any::<i64>(), any::<u64>(), any::<u32>(), any::<u32>());
        let refreshed = any::<Option<i64>>();
        (".{1,9}", rest, said, refreshed).prop_map(
            |(id, rest, (fingerprint, meta, verdict), refreshed)| RowDocument {
                id,
                time: Timestamp(rest.0),
                content: rest.1,
                place: RecordPlace {
                    at: rest.2,
                    units: rest.3,
                },
                fingerprint,
                meta,
                verdict,
                refreshed: refreshed.map(Timestamp),
            },
        )
    }

    fn rows() -> impl Strategy<Value = PartitionRow> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
        prop_oneof![
            documents().prop_map(PartitionRow::Document),
            (documents(), slots(), numbers).prop_map(|(document, from_slot, numbers)| {
                PartitionRow::Moved {
                    document,
                    from: numbers.0,
                    from_slot,
                    seq: numbers.1,
                    last: numbers.2,
                }
            }),
            (
                any::<u64>(),
                any::<u64>(),
                proptest::option::of(slots()),
                any::<Option<(i64, u32)>>()
            )
                .prop_map(|(number, seq, slot, removal)| PartitionRow::Deleted {
                    number,
                    seq,
                    slot,
                    removal: removal.map(|(at, bytes)| DeletionRecord {
                        at: Timestamp(at),
                        bytes
                    }),
                }),
            (1u64..1 << 30, any::<u32>()).prop_map(|(rows, kept)| PartitionRow::Erased {
                rows,
                kept: kept % (rows as u32 + 1),
            }),
            (any::<u64>(), slots(), any::<u64>()).prop_map(|(from, from_slot, seq)| {
                PartitionRow::ErasedMove {
                    from,
                    from_slot,
                    seq,
                }
            }),
            (any::<u64>(), slots(), any::<u64>()).prop_map(|(seq, slot, previous)| {
                PartitionRow::ErasedDuplicate {
                    seq,
                    slot,
                    previous,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn rows_round_trip(rows in proptest::collection::vec(rows(), 1..150), first in 1u64..1 << 40) {
            let mut encoded = EncodedRows::default();
            rows.iter().for_each(|row| encoded.push_row(row));
            let mut decoded = Vec::new();
            for (number, block) in encoded.iter_blocks(first) {
                prop_assert_eq!(number, first.saturating_add(count_rows(&decoded)));
                prop_assert!(open_block(number ^ 1, &block).is_err());
                for row in open_block(number, &block).unwrap() {
                    decoded.push(PartitionRow::decode_row(row).unwrap());
                }
            }
            prop_assert_eq!(decoded, rows);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_a_row(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(row) = PartitionRow::decode_row(&bytes) {
                let mut again = Vec::new();
                row.encode_row(&mut again);
                prop_assert_eq!(PartitionRow::decode_row(&again).map(|it| format!("{it:?}")), Some(format!("{row:?}")));
            }
            let _ = open_block(1, &bytes);
            let _ = crate::records::StoredRecord::parse_record(&bytes);
        }
    }

    /// Existing files must stay readable, so these bytes never change.
    #[test]
    fn row_bytes_never_change() {
        let row = PartitionRow::Document(RowDocument {
            id: "a".to_owned(),
            time: Timestamp(2),
            content: 3,
            place: RecordPlace { at: 4, units: 5 },
            fingerprint: None,
            meta: Some("m".to_owned()),
            verdict: RowVerdict::Duplicate {
                of: "b".to_owned(),
                seq: 6,
                slot: DocumentSlot {
                    partition: 7,
                    index: 8,
                },
                similarity: 1.0,
                route: Route::MinHash,
                previous: 9,
            },
            refreshed: None,
        });
        let mut bytes = Vec::new();
        row.encode_row(&mut bytes);
        let expected = [
            "010a",
            "0100000061",
            "0200000000000000",
            "0300000000000000",
            "0400000005000000",
            "010000006d",
            "0100000062",
            "0600000000000000",
            "0700000000000000",
            "08000000",
            "000000000000f03f",
            "02",
            "0900000000000000",
        ];
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, expected.concat());
    }

    /// The same for the rows that deletion and compaction leave.
    #[test]
    fn deleted_row_bytes_never_change() {
        let slot = DocumentSlot {
            partition: 7,
            index: 8,
        };
        let removal = Some(DeletionRecord {
            at: Timestamp(3),
            bytes: 4,
        });
        let deleted = |removal| PartitionRow::Deleted {
            number: 1,
            seq: 2,
            slot: None,
            removal,
        };
        let number = |value: u64| format!("{value:02x}00000000000000");
        let place = format!("{}08000000", number(7));
        for (row, expected) in [
            (deleted(None), format!("03{}{}00", number(1), number(2))),
            (
                deleted(removal),
                format!("04{}{}00{}04000000", number(1), number(2), number(3)),
            ),
            (
                PartitionRow::Erased { rows: 9, kept: 5 },
                format!("05{}05000000", number(9)),
            ),
            (
                PartitionRow::ErasedMove {
                    from: 1,
                    from_slot: slot,
                    seq: 2,
                },
                format!("06{}{place}{}", number(1), number(2)),
            ),
            (
                PartitionRow::ErasedDuplicate {
                    seq: 1,
                    slot,
                    previous: 2,
                },
                format!("07{}{place}{}", number(1), number(2)),
            ),
        ] {
            let mut bytes = Vec::new();
            row.encode_row(&mut bytes);
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digits, expected);
            assert_eq!(PartitionRow::decode_row(&bytes), Some(row));
        }
    }
}
