//! How far a collection has followed a shared log, as it is written beside the rows.
//!
//! ```text
//! 4        8       4      16      8       4      8           8       8       4
//! version  record  entry  digest  record  entry  expired_at  newest  oldest  CRC-32
//!          └ last row's ┘         └ next entry ┘
//! ```
//!
//! It is in the same transaction as the rows that it describes, so that after a power failure both are there or
//! neither is. The newest partition has the valid one: a partition that begins gets a copy at once, so expiry of
//! the older ones never loses it.
//!
//! It also has facts that opening a collection cannot derive from its rows: entries that wrote no row, partitions that
//! have expired and whose files may still be there, and the clock, whose document may be gone. So a replica that
//! was opened again decides as one that never stopped.

use lookalike::byte_reader::{ByteReader, put_string};
use lookalike::dedup::PairDecision;
use lookalike::stream::Timestamp;
use lookalike::value_digest;
use serde::{Deserialize, Serialize};

use super::rows::{PartitionRow, RowDocument, RowVerdict};
use crate::settings::{CollectionSettings, ExpiryClock, OnConflict};

/// Place of an entry in a shared log.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct LogPosition {
    /// Number of the record.
    pub record: u64,
    /// Number of the entry within its record.
    pub entry: u32,
}

impl LogPosition {
    /// Returns the position after this one.
    pub(crate) fn next_position(self) -> Self {
        Self {
            entry: self.entry.saturating_add(1),
            ..self
        }
    }
}

/// How far a collection has followed a shared log.
///
/// Two collections that applied the same entries have the same mark, whatever their batches, compactions and
/// restarts were. So different digests at one position show that two replicas have diverged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    /// Position of the last entry that wrote a row or changed the settings.
    pub position: LogPosition,
    /// Digest of everything that rows and changes of settings have decided so far. It is 0 before the first.
    pub digest: u128,
}

/// The mark of a collection, and what else a replica must know to go on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogProgress {
    pub(crate) mark: LogMark,
    /// Entries before this position were applied, whether they wrote a row or not.
    pub(crate) next: LogPosition,
    /// Clock up to which partitions have begun and expired without a document.
    pub(crate) expired_at: Timestamp,
    /// Newest time of a stored document, which is the clock of the window.
    pub(crate) newest: Timestamp,
    /// Number of the oldest partition that has not expired.
    pub(crate) oldest: u64,
}

/// A change of the settings at a place of a shared log. The manifest has the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedChange {
    /// Mark of the collection after the change.
    pub(crate) mark: LogMark,
    /// Clock of the change, at which partitions past the new window have expired.
    pub(crate) clock: Timestamp,
    /// See [`LogProgress::expired_at`].
    pub(crate) expired_at: Timestamp,
}

/// Version of the encoding.
const PROGRESS_VERSION: u32 = 1;

/// Kind of event that a digest covers, as the first byte after the digest before.
#[derive(Clone, Copy)]
enum DigestedStep {
    Document = 1,
    Deletion = 2,
    Move = 3,
    Settings = 4,
    Decision = 5,
}

impl Default for LogProgress {
    fn default() -> Self {
        Self {
            mark: LogMark::default(),
            next: LogPosition::default(),
            expired_at: Timestamp::BEGINNING,
            newest: Timestamp::BEGINNING,
            oldest: 0,
        }
    }
}

impl LogProgress {
    pub(super) fn encode_progress(&self) -> Vec<u8> {
        let mut bytes = PROGRESS_VERSION.to_le_bytes().to_vec();
        put_position(self.mark.position, &mut bytes);
        bytes.extend(self.mark.digest.to_le_bytes());
        put_position(self.next, &mut bytes);
        bytes.extend(self.expired_at.0.to_le_bytes());
        bytes.extend(self.newest.0.to_le_bytes());
        bytes.extend(self.oldest.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode_progress(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        let mut reader = ByteReader::new(body);
        let is_intact = crc32fast::hash(body) == u32::from_le_bytes(*sum);
        if !is_intact || reader.read_u32()? != PROGRESS_VERSION {
            return None;
        }
        let position = read_position(&mut reader)?;
        let digest = reader.read_u128()?;
        let progress = Self {
            mark: LogMark { position, digest },
            next: read_position(&mut reader)?,
            expired_at: Timestamp(reader.read_i64()?),
            newest: Timestamp(reader.read_i64()?),
            oldest: reader.read_u64()?,
        };
        reader.is_at_end().then_some(progress)
    }

    /// Adds what a new row decided to the digest. `number` is that of the row. Places and slots do not count,
    /// because compaction may change them.
    pub(crate) fn digest_row(&mut self, number: u64, row: &PartitionRow) {
        match row {
            PartitionRow::Document(document) => {
                self.digest_step(DigestedStep::Document, |bytes| {
                    put_document(number, document, bytes);
                });
            }
            PartitionRow::Deleted { seq, .. } => {
                self.digest_step(DigestedStep::Deletion, |bytes| {
                    bytes.extend(seq.to_le_bytes());
                });
            }
            PartitionRow::Moved { document, seq, .. } => {
                self.digest_step(DigestedStep::Move, |bytes| {
                    bytes.extend(seq.to_le_bytes());
                    bytes.extend(number.to_le_bytes());
                    bytes.extend(document.time.0.to_le_bytes());
                });
            }
            // A decision that moves to a later partition has been counted.
            PartitionRow::Decision(decision) if decision.seq != number => {}
            PartitionRow::Decision(decision) => {
                self.digest_step(DigestedStep::Decision, |bytes| {
                    bytes.extend(number.to_le_bytes());
                    for named in &decision.texts {
                        bytes.extend(named.text.content.as_bytes());
                    }
                    bytes.push(match decision.decision {
                        None => 0,
                        Some(PairDecision::Same) => 1,
                        Some(PairDecision::Different) => 2,
                    });
                });
            }
            // Only compaction writes these.
            PartitionRow::Erased { .. }
            | PartitionRow::ErasedMove { .. }
            | PartitionRow::ErasedDuplicate { .. } => {}
        }
    }

    /// Adds a change of the settings to the digest.
    pub(crate) fn digest_settings(&mut self, settings: &CollectionSettings) {
        self.digest_step(DigestedStep::Settings, |bytes| {
            bytes.push(u8::from(settings.on_conflict == OnConflict::Replace));
            if let Some(window) = &settings.window {
                bytes.extend(window.width().as_micros().to_le_bytes());
                bytes.extend(window.skew().as_micros().to_le_bytes());
                let follows_wall = ExpiryClock::from_window(window) == ExpiryClock::Wall;
                bytes.extend([window.is_refreshing(), follows_wall].map(u8::from));
            }
        });
    }

    fn digest_step(&mut self, step: DigestedStep, put_decision: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.mark.digest.to_le_bytes().to_vec();
        bytes.push(step as u8);
        put_decision(&mut bytes);
        self.mark.digest = value_digest(&bytes);
    }
}

fn put_document(seq: u64, document: &RowDocument, bytes: &mut Vec<u8>) {
    bytes.extend(seq.to_le_bytes());
    put_string(&document.id, bytes);
    bytes.extend(document.time.0.to_le_bytes());
    if let RowVerdict::Duplicate {
        of,
        seq,
        similarity,
        ..
    } = &document.verdict
    {
        put_string(of, bytes);
        bytes.extend(seq.to_le_bytes());
        bytes.extend(similarity.to_bits().to_le_bytes());
    }
}

fn put_position(position: LogPosition, bytes: &mut Vec<u8>) {
    bytes.extend(position.record.to_le_bytes());
    bytes.extend(position.entry.to_le_bytes());
}

fn read_position(reader: &mut ByteReader<'_>) -> Option<LogPosition> {
    Some(LogPosition {
        record: reader.read_u64()?,
        entry: reader.read_u32()?,
    })
}

#[cfg(test)]
mod tests {
    use lookalike::content_hash::ContentHash;
    use lookalike::dedup::DecidedText;
    use lookalike::similarity::Route;
    use lookalike::stream::DocumentSlot;

    use super::*;
    use crate::files::rows::{DecisionRow, NamedText, RecordPlace};

    fn progress() -> LogProgress {
        LogProgress {
            mark: LogMark {
                position: LogPosition {
                    record: 7,
                    entry: 1,
                },
                digest: 1 << 100,
            },
            next: LogPosition {
                record: 7,
                entry: 2,
            },
            expired_at: Timestamp(-3),
            newest: Timestamp(9),
            oldest: 4,
        }
    }

    #[test]
    fn progress_round_trips_and_detects_damage() {
        let bytes = progress().encode_progress();
        assert_eq!(bytes.len(), 4 + 12 + 16 + 12 + 8 + 8 + 8 + 4);
        assert_eq!(LogProgress::decode_progress(&bytes), Some(progress()));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert_eq!(LogProgress::decode_progress(&flipped), None, "{at}");
            assert_eq!(LogProgress::decode_progress(&bytes[..at]), None, "{at}");
        }
    }

    /// Replicas of different versions compare their digests, so these never change.
    #[test]
    fn digest_is_frozen() {
        let document = |verdict| RowDocument {
            id: "a".to_owned(),
            time: Timestamp(5),
            content_hash: 1,
            place: RecordPlace { at: 0, units: 1 },
            fingerprint: None,
            meta: None,
            verdict,
            refreshed: None,
        };
        let slot = DocumentSlot {
            partition: 1,
            index: 0,
        };
        let duplicate = document(RowVerdict::Duplicate {
            of: "b".to_owned(),
            seq: 7,
            slot,
            similarity: 0.75,
            route: Route::Join,
            previous: 0,
        });
        let kept = document(RowVerdict::Kept { index: 0 });
        let rows = [
            PartitionRow::Document(kept.clone()),
            PartitionRow::Document(duplicate),
            PartitionRow::Deleted {
                number: 1,
                seq: 1,
                slot: None,
                removal: None,
            },
            PartitionRow::Moved {
                document: kept,
                from: 1,
                from_slot: slot,
                seq: 1,
                last: 0,
            },
        ];
        let mut progress = LogProgress::default();
        for (number, row) in (1..).zip(&rows) {
            progress.digest_row(number, row);
        }
        progress.digest_settings(&CollectionSettings::default());
        assert_eq!(
            progress.mark.digest,
            0x56ba_0b47_89da_cf04_7662_5213_442a_13ee
        );
    }

    /// A decision counts once, and not again when it moves to a later partition.
    #[test]
    fn digest_covers_a_decision_once() {
        let row = |decision| {
            let texts = ["x", "y"].map(|text| NamedText {
                text: DecidedText {
                    content: ContentHash::from_text(text),
                    text_key: 0,
                },
                id: None,
            });
            PartitionRow::Decision(DecisionRow {
                seq: 5,
                texts,
                decision,
                at: Timestamp(1),
            })
        };
        let digest = |number, decision| {
            let mut progress = progress();
            progress.digest_row(number, &row(decision));
            progress.mark.digest
        };
        let same = Some(PairDecision::Same);
        assert_eq!(digest(6, same), progress().mark.digest);
        let digests =
            [None, same, Some(PairDecision::Different)].map(|decision| digest(5, decision));
        assert!(
            digests
                .iter()
                .all(|&digest| digest != progress().mark.digest)
        );
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    }

    /// The digest depends on each decision and on their order, and not on what compaction leaves.
    #[test]
    fn digest_covers_decisions_in_their_order() {
        let deleted = |seq| PartitionRow::Deleted {
            number: seq,
            seq,
            slot: None,
            removal: None,
        };
        let digest = |rows: &[PartitionRow]| {
            let mut progress = progress();
            for row in rows {
                progress.digest_row(1, row);
            }
            progress.mark.digest
        };
        let erased = PartitionRow::Erased { rows: 3, kept: 0 };
        assert_eq!(digest(&[deleted(1), erased]), digest(&[deleted(1)]));
        let others = [
            digest(&[]),
            digest(&[deleted(1)]),
            digest(&[deleted(2)]),
            digest(&[deleted(1), deleted(2)]),
            digest(&[deleted(2), deleted(1)]),
        ];
        for (at, one) in others.iter().enumerate() {
            assert!(!others[at + 1..].contains(one), "{at}");
        }
    }
}
