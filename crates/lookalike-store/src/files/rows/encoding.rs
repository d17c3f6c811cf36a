//! Rows as bytes, little-endian.

use lookalike::byte_reader::{ByteReader, put_string};
use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::similarity::Route;
use lookalike::stream::{DocumentSlot, Timestamp};

use super::{
    DecisionRow, DeletionRecord, MAX_WINDOW_ROWS, NamedText, PartitionRow, RecordPlace,
    RowDocument, RowVerdict,
};

// The kind of a row.
const DOCUMENT_TAG: u8 = 1;
const MOVED_TAG: u8 = 2;
/// A deletion without a [`DeletionRecord`].
const DELETED_TAG: u8 = 3;
/// A deletion with one.
const REMOVED_TAG: u8 = 4;
const ERASED_TAG: u8 = 5;
const ERASED_MOVE_TAG: u8 = 6;
const ERASED_DUPLICATE_TAG: u8 = 7;
const DECISION_TAG: u8 = 8;

// A decision on two texts.
const WITHDRAWN_TAG: u8 = 0;
const SAME_TAG: u8 = 1;
const DIFFERENT_TAG: u8 = 2;

// The verdict of a document, and the fields that it has.
const KEPT_TAG: u8 = 1;
const DUPLICATE_TAG: u8 = 2;
const HAS_FINGERPRINT: u8 = 4;
const HAS_META: u8 = 8;
const IS_REFRESHED: u8 = 16;

impl PartitionRow {
    pub(crate) fn encode_row(&self, into: &mut Vec<u8>) {
        match self {
            Self::Document(document) => {
                into.push(DOCUMENT_TAG);
                document.encode_document(into);
            }
            Self::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                into.push(MOVED_TAG);
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
                into.push(removal.map_or(DELETED_TAG, |_| REMOVED_TAG));
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
                into.push(ERASED_TAG);
                into.extend(rows.to_le_bytes());
                into.extend(kept.to_le_bytes());
            }
            Self::ErasedMove {
                from,
                from_slot,
                seq,
            } => {
                into.push(ERASED_MOVE_TAG);
                into.extend(from.to_le_bytes());
                encode_slot(*from_slot, into);
                into.extend(seq.to_le_bytes());
            }
            Self::ErasedDuplicate {
                seq,
                slot,
                previous,
            } => {
                into.push(ERASED_DUPLICATE_TAG);
                into.extend(seq.to_le_bytes());
                encode_slot(*slot, into);
                into.extend(previous.to_le_bytes());
            }
            Self::Decision(decision) => {
                into.push(DECISION_TAG);
                decision.encode_decision(into);
            }
        }
    }

    pub(crate) fn decode_row(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(bytes);
        let row = match reader.read_u8()? {
            DOCUMENT_TAG => Self::Document(RowDocument::decode_document(&mut reader)?),
            MOVED_TAG => Self::Moved {
                from: reader.read_u64()?,
                from_slot: decode_slot(&mut reader)?,
                seq: reader.read_u64()?,
                last: reader.read_u64()?,
                document: RowDocument::decode_document(&mut reader)?,
            },
            kind @ (DELETED_TAG | REMOVED_TAG) => Self::Deleted {
                number: reader.read_u64()?,
                seq: reader.read_u64()?,
                slot: match reader.read_u8()? {
                    0 => None,
                    _ => Some(decode_slot(&mut reader)?),
                },
                removal: match kind {
                    DELETED_TAG => None,
                    _ => Some(DeletionRecord {
                        at: Timestamp(reader.read_i64()?),
                        bytes: reader.read_u32()?,
                    }),
                },
            },
            ERASED_TAG => {
                let (rows, kept) = (reader.read_u64()?, reader.read_u32()?);
                // A larger count than a window can have was never written.
                if !(1..=MAX_WINDOW_ROWS).contains(&rows) || u64::from(kept) > rows {
                    return None;
                }
                Self::Erased { rows, kept }
            }
            ERASED_MOVE_TAG => Self::ErasedMove {
                from: reader.read_u64()?,
                from_slot: decode_slot(&mut reader)?,
                seq: reader.read_u64()?,
            },
            ERASED_DUPLICATE_TAG => Self::ErasedDuplicate {
                seq: reader.read_u64()?,
                slot: decode_slot(&mut reader)?,
                previous: reader.read_u64()?,
            },
            DECISION_TAG => Self::Decision(DecisionRow::decode_decision(&mut reader)?),
            _ => return None,
        };
        reader.is_at_end().then_some(row)
    }

    /// Returns `true` if an encoded row may have several numbers.
    pub(crate) fn may_stand_for_several(encoded: &[u8]) -> bool {
        encoded.first() == Some(&ERASED_TAG)
    }
}

impl RowDocument {
    fn encode_document(&self, into: &mut Vec<u8>) {
        let verdict = match &self.verdict {
            RowVerdict::Kept { .. } => KEPT_TAG,
            RowVerdict::Duplicate { .. } => DUPLICATE_TAG,
        };
        let fingerprint = u8::from(self.fingerprint.is_some()) * HAS_FINGERPRINT;
        let meta = u8::from(self.meta.is_some()) * HAS_META;
        let refreshed = u8::from(self.refreshed.is_some()) * IS_REFRESHED;
        into.push(verdict | fingerprint | meta | refreshed);
        put_string(&self.id, into);
        into.extend(self.time.0.to_le_bytes());
        into.extend(self.content_hash.to_le_bytes());
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
                into.push(route.file_number());
                into.extend(previous.to_le_bytes());
            }
        }
        if let Some(refreshed) = self.refreshed {
            into.extend(refreshed.0.to_le_bytes());
        }
    }

    fn decode_document(reader: &mut ByteReader<'_>) -> Option<Self> {
        let flags = reader.read_u8()?;
        let known_flags = KEPT_TAG | DUPLICATE_TAG | HAS_FINGERPRINT | HAS_META | IS_REFRESHED;
        if flags & !known_flags != 0 {
            return None;
        }
        Some(Self {
            id: reader.read_string()?.to_owned(),
            time: Timestamp(reader.read_i64()?),
            content_hash: reader.read_u64()?,
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
            verdict: match flags & (KEPT_TAG | DUPLICATE_TAG) {
                KEPT_TAG => RowVerdict::Kept {
                    index: reader.read_u32()?,
                },
                DUPLICATE_TAG => RowVerdict::Duplicate {
                    of: reader.read_string()?.to_owned(),
                    seq: reader.read_u64()?,
                    slot: decode_slot(reader)?,
                    similarity: f64::from_bits(reader.read_u64()?),
                    route: Route::from_file_number(reader.read_u8()?)?,
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

impl DecisionRow {
    fn encode_decision(&self, into: &mut Vec<u8>) {
        into.extend(self.seq.to_le_bytes());
        into.push(match self.decision {
            None => WITHDRAWN_TAG,
            Some(PairDecision::Same) => SAME_TAG,
            Some(PairDecision::Different) => DIFFERENT_TAG,
        });
        into.extend(self.at.0.to_le_bytes());
        for NamedText { text, id } in &self.texts {
            into.extend(text.content.as_bytes());
            into.extend(text.text_key.to_le_bytes());
            // No document has the empty id.
            put_string(id.as_deref().unwrap_or_default(), into);
        }
    }

    fn decode_decision(reader: &mut ByteReader<'_>) -> Option<Self> {
        let seq = reader.read_u64()?;
        let decision = match reader.read_u8()? {
            WITHDRAWN_TAG => None,
            SAME_TAG => Some(PairDecision::Same),
            DIFFERENT_TAG => Some(PairDecision::Different),
            _ => return None,
        };
        let at = Timestamp(reader.read_i64()?);
        let mut read_text = || {
            let content = [reader.read_u128()?, reader.read_u128()?].map(u128::to_le_bytes);
            let content = ContentHash::from_bytes(content.as_flattened().try_into().ok()?);
            let text_key = reader.read_u128()?;
            let id = reader.read_string()?;
            Some(NamedText {
                text: DecidedText { content, text_key },
                id: (!id.is_empty()).then(|| id.to_owned()),
            })
        };
        let texts = [read_text()?, read_text()?];
        (texts[0].text.content != texts[1].text.content).then_some(Self {
            seq,
            texts,
            decision,
            at,
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
