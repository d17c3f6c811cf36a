//! A text with its tokens, and the places of these in characters.

use std::ops::Range;

use lookalike::passages::{CopiedPiece, PlaceIndex, TextCut};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::Result;

/// A text with its tokens.
pub(crate) struct TokenizedText {
    text: String,
    tokens: SpannedTokens,
    places: PlaceIndex,
}

impl TokenizedText {
    /// Finds the tokens of a text.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub(crate) fn new(text: String, tokenizer: &SpanTokenizer) -> Result<Self> {
        let mut tokens = SpannedTokens::default();
        tokenizer.tokenize_text(&text, &mut tokens)?;
        Ok(Self {
            places: PlaceIndex::new(&text),
            text,
            tokens,
        })
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns about the bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.text.len() + 16 * self.tokens.len() + 200
    }

    /// Returns the tokens of a range; `None` if the text has fewer.
    pub(crate) fn tokens_in(&self, range: &Range<u32>) -> Option<&[u64]> {
        self.tokens.values().get(to_usize(range))
    }

    /// Returns the characters from the first token of a range to its last. The text must have these tokens.
    pub(crate) fn characters_of(&self, range: &Range<u32>) -> Range<u64> {
        self.characters_in(&self.tokens.byte_range(to_usize(range)))
    }

    /// Returns the characters of a range of bytes.
    pub(crate) fn characters_in(&self, bytes: &Range<usize>) -> Range<u64> {
        let count = |byte| self.places.count_characters(&self.text, byte) as u64;
        count(bytes.start)..count(bytes.end)
    }

    /// Returns the bytes of a piece of a cut of this text. Pieces lie side by side: each ends where the next one begins.
    pub(crate) fn bytes_of_piece(&self, cut: &TextCut, at: usize) -> Range<usize> {
        let first_byte =
            |piece: &CopiedPiece| self.tokens.byte_range(to_usize(&piece.tokens)).start;
        let start = match at {
            0 => cut.bytes.start,
            _ => first_byte(&cut.pieces[at]),
        };
        start..cut.pieces.get(at + 1).map_or(cut.bytes.end, first_byte)
    }
}

fn to_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
