//! Rows and blocks of rows, to bytes and back.

use lookalike::content_hash::ContentHash;
use lookalike::similarity::Route;
use proptest::prelude::*;

use super::blocks::{EncodedRows, open_block};
use super::*;

fn slots() -> impl Strategy<Value = DocumentSlot> {
    (any::<u64>(), any::<u32>()).prop_map(|(partition, index)| DocumentSlot { partition, index })
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
            let route = Route::ALL[route];
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

fn decisions() -> impl Strategy<Value = DecisionRow> {
    let text = || {
        let id = proptest::option::of(".{1,9}");
        (any::<[u8; 31]>(), any::<u128>(), id)
    };
    (any::<(u64, i64)>(), 0..3usize, text(), text()).prop_map(|((seq, at), label, a, b)| {
        let mut side = 0;
        let texts = [a, b].map(|(bytes, text_key, id)| {
            // Both texts differ.
            side += 1;
            let mut content = [side; 32];
            content[1..].copy_from_slice(&bytes);
            let content = ContentHash::from_bytes(content);
            let text = DecidedText { content, text_key };
            NamedText { text, id }
        });
        DecisionRow {
            seq,
            texts,
            decision: [
                None,
                Some(PairDecision::Same),
                Some(PairDecision::Different),
            ][label],
            at: Timestamp(at),
        }
    })
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
            content_hash: rest.1,
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
        decisions().prop_map(PartitionRow::Decision),
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

fn row_of(meta_bytes: usize) -> PartitionRow {
    PartitionRow::Document(RowDocument {
        id: "a".to_owned(),
        time: Timestamp(2),
        content_hash: 3,
        place: RecordPlace { at: 4, units: 5 },
        fingerprint: None,
        meta: Some("m".repeat(meta_bytes)),
        verdict: RowVerdict::Kept { index: 6 },
        refreshed: None,
    })
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
    fn blocks_are_bounded_in_bytes(lengths in proptest::collection::vec(0usize..90_000, 1..40)) {
        let mut encoded = EncodedRows::default();
        lengths.iter().for_each(|&length| encoded.push_row(&row_of(length)));
        let (mut next, most) = (7, 64 << 10);
        for (number, block) in encoded.iter_blocks(7) {
            let rows = open_block(number, &block).unwrap();
            let bytes: usize = rows.iter().map(|row| row.len()).sum();
            prop_assert_eq!(number, next);
            prop_assert!(!rows.is_empty() && (rows.len() == 1 || bytes <= most));
            for row in &rows {
                let length = lengths[(next - 7) as usize];
                prop_assert_eq!(PartitionRow::decode_row(row), Some(row_of(length)));
                next += 1;
            }
            // The row after the block would not fit.
            if let Some(&length) = lengths.get((next - 7) as usize) {
                let mut encoded = Vec::new();
                row_of(length).encode_row(&mut encoded);
                prop_assert!(rows.len() == 64 || bytes + encoded.len() > most);
            }
        }
        prop_assert_eq!(next - 7, lengths.len() as u64);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_a_row(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(row) = PartitionRow::decode_row(&bytes) {
            let mut again = Vec::new();
            row.encode_row(&mut again);
            prop_assert_eq!(PartitionRow::decode_row(&again).map(|row| format!("{row:?}")), Some(format!("{row:?}")));
        }
        let _ = open_block(1, &bytes);
        let _ = crate::files::records::StoredRecord::parse_record(&bytes);
    }
}

/// Existing files must stay readable, so these bytes never change.
#[test]
fn row_bytes_never_change() {
    let row = PartitionRow::Document(RowDocument {
        id: "a".to_owned(),
        time: Timestamp(2),
        content_hash: 3,
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

/// The bytes of rows that deletion and compaction leave never change either.
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
