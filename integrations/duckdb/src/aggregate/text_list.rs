//! Texts in blocks of memory that several lists share.
//!
//! A full block is never changed, so that a list is appended to another one, and passed to a run in another order, without a
//! copy of its full blocks. A block has at least [`BLOCK_BYTES`] bytes or one text, except for the last one of a list.

use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, ScalarBuffer};

/// Bytes from which a block is full.
const BLOCK_BYTES: usize = 1 << 20;

/// Largest number of bytes of a text: the largest place in a block that Arrow has.
const LARGEST_TEXT: usize = i32::MAX as usize;

/// Place of a text.
#[derive(Clone, Copy, Debug)]
struct TextPlace {
    block: u32,
    offset: u32,
    length: u32,
}

/// Texts in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct TextList {
    full: Vec<Buffer>,
    /// The block behind the full ones, to which texts are still added.
    open: Vec<u8>,
    places: Vec<TextPlace>,
}

impl TextList {
    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of bytes of all texts.
    pub(super) fn byte_count(&self) -> usize {
        self.full.iter().map(Buffer::len).sum::<usize>() + self.open.len()
    }

    /// Appends a text.
    ///
    /// # Errors
    /// If it is longer than [`LARGEST_TEXT`].
    pub(super) fn push_text(&mut self, text: &str) -> Result<(), String> {
        if text.len() > LARGEST_TEXT {
            return Err(format!(
                "a text has {} bytes, and the limit is {LARGEST_TEXT}: leave it out or divide it",
                text.len()
            ));
        }
        if self.open.len() + text.len() > BLOCK_BYTES {
            self.close_block();
        }
        self.places.push(TextPlace {
            block: self.full.len() as u32,
            offset: self.open.len() as u32,
            length: text.len() as u32,
        });
        self.open.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Makes the open block a full one, if it has texts.
    fn close_block(&mut self) {
        if !self.open.is_empty() {
            let mut block = std::mem::take(&mut self.open);
            block.shrink_to_fit();
            self.full.push(Buffer::from_vec(block));
        }
    }

    /// Appends the texts of another list, which stays as it is. Only its open block is copied.
    pub(super) fn append_texts(&mut self, other: &Self) {
        self.close_block();
        let first_block = self.full.len() as u32;
        self.full.extend(other.full.iter().cloned());
        self.open.extend_from_slice(&other.open);
        self.places
            .extend(other.places.iter().map(|place| TextPlace {
                block: place.block + first_block,
                ..*place
            }));
    }

    fn bytes_at(&self, place: TextPlace) -> &[u8] {
        let block = self.full.get(place.block as usize);
        let block = block.map_or(&*self.open, Buffer::as_slice);
        &block[place.offset as usize..][..place.length as usize]
    }

    /// Returns the text at a place of the list.
    pub(super) fn text_at(&self, at: usize) -> &str {
        let bytes = self.bytes_at(self.places[at]);
        std::str::from_utf8(bytes).expect("the bytes are those of a text that was added")
    }

    /// Returns the texts in another order, as a column. Only the open block is copied.
    pub(super) fn to_column(&self, order: &[u32]) -> Result<StringViewArray, String> {
        let views = order.iter().map(|&at| {
            let place = self.places[at as usize];
            make_view(self.bytes_at(place), place.block, place.offset)
        });
        let mut blocks = self.full.clone();
        blocks.push(Buffer::from_slice_ref(&self.open));
        let views: ScalarBuffer<u128> = views.collect();
        StringViewArray::try_new(views, Arc::from(blocks), None).map_err(|error| error.to_string())
    }
}
