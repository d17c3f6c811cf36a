//! A column with a list of numbers for each document, one list after another.

use super::ColumnReservation;
use crate::byte_reader::ByteReader;

/// The lists of all documents; empty if the plan needs none.
#[derive(Clone, Debug, Default)]
pub(super) struct ListColumn {
    items: Vec<u64>,
    /// End of each document's list in `items`.
    ends: Vec<usize>,
}

impl ListColumn {
    pub(super) fn push_list(&mut self, append: impl FnOnce(&mut Vec<u64>)) {
        append(&mut self.items);
        self.ends.push(self.items.len());
    }

    /// Returns the list of a document, or `None` if the column is empty.
    pub(super) fn list(&self, document: usize) -> Option<&[u64]> {
        let end = *self.ends.get(document)?;
        let before = document.checked_sub(1);
        let start = before.map_or(0, |before| self.ends[before]);
        Some(&self.items[start..end])
    }

    pub(super) fn append_column(&mut self, other: &Self) {
        let before = self.items.len();
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.items.extend_from_slice(&other.items);
    }

    /// Appends the list that a document has in another column, if that has lists.
    pub(super) fn append_list(&mut self, other: &Self, document: usize) {
        if let Some(list) = other.list(document) {
            self.push_list(|items| items.extend_from_slice(list));
        }
    }

    pub(super) fn reserve(&mut self, reservation: ColumnReservation) {
        reservation.extend_column(&mut self.items);
        reservation.extend_column(&mut self.ends);
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.items.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        8 * (self.items.len() + self.ends.len())
    }

    /// Appends the length of each list, 4 bytes each, and then all lists, 8 bytes a number.
    pub(super) fn encode_column(&self, into: &mut Vec<u8>) {
        let starts = std::iter::once(&0).chain(&self.ends);
        for (end, start) in self.ends.iter().zip(starts) {
            into.extend(((end - start) as u32).to_le_bytes());
        }
        into.extend(self.items.iter().flat_map(|item| item.to_le_bytes()));
    }

    /// Reads the lists of `documents` that [`encode_column`](Self::encode_column) has written. Returns `None` if the
    /// bytes do not fit.
    pub(super) fn decode_column(reader: &mut ByteReader<'_>, documents: usize) -> Option<Self> {
        let mut ends = Vec::with_capacity(documents);
        let mut end = 0_usize;
        for length in reader.read_list(documents, u32::from_le_bytes)? {
            end = end.checked_add(length as usize)?;
            ends.push(end);
        }
        let items = reader.read_list(end, u64::from_le_bytes)?;
        Some(Self { items, ends })
    }
}
