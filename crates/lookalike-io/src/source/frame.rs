//! Encoding of Parquet rows in the temporary file from which they are read again.
//!
//! ```text
//! bytes   content
//! 4       length of the id in bytes; 2^32 - 1: no id
//! 4       length of the text in bytes
//! 4       number of features; 2^32 - 1: no features
//! 4       length of all features in bytes
//! …       id, text and features as UTF-8, without separators
//! 12 × n  length (32 bits) and weight (double) of each feature
//! ```
//!
//! All numbers are little-endian.

use lookalike::byte_reader::ByteReader;

use super::features::{FeatureRange, RowFeatures};
use super::{InputRow, RowPlace};

const NO_FRAME: u32 = u32::MAX;

/// Appends the frame of a row. Returns `None` and appends nothing if the row is too long for a frame.
pub(super) fn encode_frame(
    id: Option<&str>,
    text: &str,
    features: Option<RowFeatures<'_>>,
    frame: &mut Vec<u8>,
) -> Option<()> {
    let length = |length: usize| {
        u32::try_from(length)
            .ok()
            .filter(|&length| length != NO_FRAME)
    };
    let features_bytes = features
        .iter()
        .flat_map(RowFeatures::iter_weighted)
        .map(|(text, _)| text.len())
        .sum();
    let head = [
        id.map_or(Some(NO_FRAME), |id| length(id.len()))?,
        length(text.len())?,
        features.map_or(Some(NO_FRAME), |features| length(features.len()))?,
        length(features_bytes)?,
    ];
    let start = frame.len();
    frame.extend(head.iter().flat_map(|number| number.to_le_bytes()));
    frame.extend_from_slice(id.unwrap_or_default().as_bytes());
    frame.extend_from_slice(text.as_bytes());
    for (text, _) in features.iter().flat_map(RowFeatures::iter_weighted) {
        frame.extend_from_slice(text.as_bytes());
    }
    for (text, weight) in features.iter().flat_map(RowFeatures::iter_weighted) {
        frame.extend_from_slice(&length(text.len())?.to_le_bytes());
        frame.extend_from_slice(&weight.to_le_bytes());
    }
    if length(frame.len() - start).is_none() {
        frame.truncate(start);
        return None;
    }
    Some(())
}

/// Decodes a frame. Returns `None` if the bytes are not a frame.
pub(super) fn decode_frame<'a>(
    frame: &'a [u8],
    entries: &'a mut Vec<FeatureRange>,
    place: RowPlace,
    number: u64,
) -> Option<InputRow<'a>> {
    let mut reader = ByteReader::new(frame);
    let (id_bytes, text_bytes) = (reader.read_u32()?, reader.read_u32()?);
    let (count, features_bytes) = (reader.read_u32()?, reader.read_u32()?);
    let id_end = if id_bytes == NO_FRAME {
        0
    } else {
        id_bytes as usize
    };
    let text_end = id_end + text_bytes as usize;
    let strings = reader.read_bytes(text_end + features_bytes as usize)?;
    let strings = simdutf8::basic::from_utf8(strings).ok()?;
    let features = match count {
        NO_FRAME => None,
        _ => Some(RowFeatures {
            text: strings,
            entries: decode_entries(reader, text_end, entries)?,
        }),
    };
    let id = (id_bytes != NO_FRAME).then(|| &strings[..id_end]);
    Some(InputRow {
        id,
        text: &strings[id_end..text_end],
        features,
        extra: &[],
        place,
        number,
        line: 0,
    })
}

fn decode_entries<'a>(
    mut reader: ByteReader<'_>,
    mut start: usize,
    entries: &'a mut Vec<FeatureRange>,
) -> Option<&'a [FeatureRange]> {
    entries.clear();
    while !reader.is_at_end() {
        let end = start + reader.read_u32()? as usize;
        let weight = reader.read_array().map(f64::from_le_bytes)?;
        entries.push(FeatureRange { start, end, weight });
        start = end;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let entries = [
            FeatureRange {
                start: 0,
                end: 3,
                weight: 1.0,
            },
            FeatureRange {
                start: 3,
                end: 4,
                weight: 0.25,
            },
        ];
        let features = RowFeatures {
            text: "中a",
            entries: &entries,
        };
        for id in [None, Some(""), Some("é1")] {
            for features in [None, Some(features)] {
                let mut bytes = Vec::new();
                encode_frame(id, "text\n", features, &mut bytes).unwrap();
                let mut room = Vec::new();
                let row = decode_frame(&bytes, &mut room, RowPlace::new(1, 2), 3).unwrap();
                assert_eq!((row.id, row.text, row.number), (id, "text\n", 3));
                let shown = |features: RowFeatures<'_>| {
                    features
                        .iter_weighted()
                        .map(|(text, weight)| (text.to_owned(), weight))
                        .collect::<Vec<_>>()
                };
                assert_eq!(row.features.map(shown), features.map(shown));
            }
        }
        assert!(decode_frame(b"short", &mut Vec::new(), RowPlace::new(0, 0), 0).is_none());
    }
}
