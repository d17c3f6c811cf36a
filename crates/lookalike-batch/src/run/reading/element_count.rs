//! Numbers of elements in the bytes of a step.

use lookalike::byte_reader::ByteReader;

/// Appends a number of elements.
pub(in crate::run) fn put_count(count: usize, into: &mut Vec<u8>) {
    into.extend((count as u64).to_le_bytes());
}

/// Reads a number of elements.
pub(in crate::run) fn read_count(reader: &mut ByteReader<'_>) -> Option<usize> {
    usize::try_from(reader.read_u64()?).ok()
}
