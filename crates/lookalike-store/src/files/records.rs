//! Records in the file of texts: id and text of a document, compressed if that makes it shorter.
//!
//! ```text
//! offset   size
//!  0        4    bytes that follow the head
//!  4        4    bytes of the text; the highest bit is set if the text is compressed
//!  8        4    CRC-32 of both numbers and of the bytes that follow
//! 12        …    id with its length, text, zeros up to a multiple of 8 bytes
//! ```

use std::cell::RefCell;

use lookalike::byte_reader::{ByteReader, put_string};

use super::rows::PLACE_UNIT_BYTES;

const HEAD_BYTES: usize = 12;
const COMPRESSED_FLAG: u32 = 1 << 31;

/// Shortest text, in bytes, that is compressed.
const LEAST_COMPRESSED: usize = 256;

/// Compression level of zstd. It is low, because inserts wait for the compression.
const COMPRESSION_LEVEL: i32 = 1;

/// Bytes of the first read of a record: enough for most short documents.
pub(crate) const FIRST_READ: usize = 256;

thread_local! {
    static THREAD_COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// Returns the record of a document.
pub(crate) fn encode_record(id: &str, text: &str) -> Vec<u8> {
    let packed = compressed(text);
    let flag = if packed.is_some() { COMPRESSED_FLAG } else { 0 };
    let mut record = vec![0; HEAD_BYTES];
    put_string(id, &mut record);
    record.extend(packed.as_deref().unwrap_or(text.as_bytes()));
    let length = (record.len() - HEAD_BYTES) as u32;
    record[..4].copy_from_slice(&length.to_le_bytes());
    record[4..8].copy_from_slice(&(text.len() as u32 | flag).to_le_bytes());
    let sum = record_checksum(&record);
    record[8..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
    record.resize(record.len().next_multiple_of(PLACE_UNIT_BYTES as usize), 0);
    record
}

/// Returns the compressed text, if it is shorter.
fn compressed(text: &str) -> Option<Vec<u8>> {
    if text.len() < LEAST_COMPRESSED {
        return None;
    }
    THREAD_COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        let packed = compressor.as_mut()?.compress(text.as_bytes()).ok()?;
        (packed.len() < text.len()).then_some(packed)
    })
}

fn record_checksum(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&record[..8]);
    hasher.update(&record[HEAD_BYTES..]);
    hasher.finalize()
}

/// Returns the length of a record without its padding, from its first bytes.
pub(crate) fn record_length(start: &[u8]) -> Option<usize> {
    let length = ByteReader::new(start).read_u32()?;
    Some(HEAD_BYTES + length as usize)
}

/// Returns the length of the text of a record, from its first bytes.
pub(crate) fn text_length(start: &[u8]) -> Option<usize> {
    let mut reader = ByteReader::new(start);
    reader.read_u32()?;
    Some((reader.read_u32()? & !COMPRESSED_FLAG) as usize)
}

/// A record that was read and verified.
pub(crate) struct StoredRecord<'a> {
    /// The record without its padding.
    bytes: &'a [u8],
    pub(crate) id: &'a str,
    text: &'a [u8],
    /// Length of the text in bytes.
    whole: usize,
    compressed: bool,
}

impl<'a> StoredRecord<'a> {
    /// Parses a record; returns `None` if it is damaged.
    pub(crate) fn parse_record(record: &'a [u8]) -> Option<Self> {
        let record = record.get(..record_length(record)?)?;
        let mut reader = ByteReader::new(record);
        let (_, whole, sum) = (reader.read_u32()?, reader.read_u32()?, reader.read_u32()?);
        if record_checksum(record) != sum {
            return None;
        }
        Some(Self {
            bytes: record,
            id: reader.read_string()?,
            text: reader.rest(),
            whole: (whole & !COMPRESSED_FLAG) as usize,
            compressed: whole & COMPRESSED_FLAG != 0,
        })
    }

    /// Returns a copy of the record, as [`encode_record`] returns it.
    pub(crate) fn to_padded_bytes(&self) -> Vec<u8> {
        let mut record = self.bytes.to_vec();
        record.resize(record.len().next_multiple_of(PLACE_UNIT_BYTES as usize), 0);
        record
    }

    /// Calls `visit` with the text; returns `None` if it is damaged.
    pub(crate) fn visit_text<T>(&self, visit: impl FnOnce(&str) -> T) -> Option<T> {
        if !self.compressed {
            return Some(visit(std::str::from_utf8(self.text).ok()?));
        }
        let text = zstd::bulk::decompress(self.text, self.whole).ok()?;
        let text = String::from_utf8(text).ok()?;
        (text.len() == self.whole).then(|| visit(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_detect_damage() {
        for text in [
            "",
            "短い",
            &"compress me ".repeat(100),
            &"x".repeat(LEAST_COMPRESSED),
        ] {
            let record = encode_record("an id", text);
            assert_eq!(record.len() % PLACE_UNIT_BYTES as usize, 0);
            let read = StoredRecord::parse_record(&record).unwrap();
            assert_eq!(read.id, "an id");
            assert_eq!(read.visit_text(str::to_owned).as_deref(), Some(text));
            assert_eq!(read.to_padded_bytes(), record);
            assert_eq!(text_length(&record), Some(text.len()));
            let filled = record.len() - record_length(&record).unwrap();
            for at in 0..record.len() - filled {
                let mut flipped = record.clone();
                flipped[at] ^= 1 << (at % 8);
                assert!(
                    StoredRecord::parse_record(&flipped).is_none(),
                    "{at} of {}",
                    record.len()
                );
            }
            for cut in 0..record.len() - filled {
                assert!(StoredRecord::parse_record(&record[..cut]).is_none());
            }
        }
    }
}
