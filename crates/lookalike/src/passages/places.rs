//! Places of passages as a reader counts them: whole visible characters, numbers of characters, lines.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

/// Returns the smallest range of whole visible characters (extended grapheme clusters of Unicode) that contains a
/// range of bytes. Cost: that of looking at the characters around both ends.
///
/// ```
/// use lookalike::passages::to_visible_characters;
///
/// // The vowel sign belongs to the consonant before it.
/// let text = "กี่ค";
/// assert_eq!(to_visible_characters(text, 3..6), 0..9);
/// ```
///
/// # Panics
/// If the range is not within the text, or begins or ends inside a code point.
pub fn to_visible_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let start = find_boundary(text, range.start, |cursor| cursor.prev_boundary(text, 0));
    let end = find_boundary(text, range.end, |cursor| cursor.next_boundary(text, 0));
    start..end
}

/// Returns `at` if it is a boundary, and otherwise the one that `next` finds from there.
fn find_boundary(
    text: &str,
    at: usize,
    next: impl FnOnce(&mut GraphemeCursor) -> Result<Option<usize>, GraphemeIncomplete>,
) -> usize {
    assert!(text.is_char_boundary(at), "{at} is inside a code point");
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let whole = "the whole text is given";
    if cursor.is_boundary(text, 0).expect(whole) {
        at
    } else {
        next(&mut cursor).expect(whole).unwrap_or(at)
    }
}

/// Bytes between two entries of a [`PlaceIndex`].
const STEP_BYTES: usize = 4096;

/// Numbers of characters and lines before every 4 KiB of a text, so that many places of a long text are counted
/// in linear time.
///
/// ```
/// use lookalike::passages::PlaceIndex;
///
/// let text = "船\n到岸。";
/// let places = PlaceIndex::new(text);
/// assert_eq!(places.count_characters(text, 7), 3);
/// assert_eq!(places.line_number(text, 7), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlaceIndex {
    /// `true` if every character is one byte.
    is_ascii: bool,
    /// Characters and line feeds before each multiple of [`STEP_BYTES`].
    counts: Vec<(usize, usize)>,
}

impl PlaceIndex {
    /// Creates the index of a text. Cost: below one nanosecond per byte.
    pub fn new(text: &str) -> Self {
        let mut total = (0, 0);
        let steps = text.as_bytes().chunks(STEP_BYTES);
        let counts = steps.map(|step| {
            let before = total;
            total = (
                total.0 + count_starts(step),
                total.1 + count_line_feeds(step),
            );
            before
        });
        Self {
            is_ascii: text.is_ascii(),
            counts: counts.collect(),
        }
    }

    /// Returns the number of characters (code points) before a byte.
    pub fn count_characters(&self, text: &str, byte: usize) -> usize {
        if self.is_ascii {
            return byte;
        }
        let (before, rest) = self.entry_before(text, byte);
        before.0 + count_starts(rest)
    }

    /// Returns the number of the line, from 1, that contains a byte. Lines end with a line feed.
    pub fn line_number(&self, text: &str, byte: usize) -> usize {
        let (before, rest) = self.entry_before(text, byte);
        1 + before.1 + count_line_feeds(rest)
    }

    /// Returns the counts of the last entry before a byte, and the bytes between both.
    fn entry_before<'t>(&self, text: &'t str, byte: usize) -> ((usize, usize), &'t [u8]) {
        let entry = (byte / STEP_BYTES).min(self.counts.len().saturating_sub(1));
        let before = self.counts.get(entry).copied().unwrap_or_default();
        (before, &text.as_bytes()[entry * STEP_BYTES..byte])
    }
}

fn count_starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte as i8 >= -0x40).count()
}

fn count_line_feeds(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_equal_a_plain_count(parts in proptest::collection::vec("[a船é\n🏝]{0,9}", 0..5), repeat in 1usize..800) {
            let text = parts.concat().repeat(repeat);
            let places = PlaceIndex::new(&text);
            let bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for at in bytes.step_by(1 + text.len() / 50) {
                prop_assert_eq!(places.count_characters(&text, at), text[..at].chars().count());
                prop_assert_eq!(places.line_number(&text, at), 1 + text[..at].matches('\n').count());
            }
        }
    }

    #[test]
    fn ranges_are_whole_visible_characters() {
        for (text, range, expected) in [
            ("boat", 1..3, 1..3),
            ("e\u{301}a", 0..1, 0..3),
            ("a\r\nb", 0..2, 0..3),
            ("👩\u{200d}🌾x", 4..7, 0..11),
            ("葛\u{e0101}x", 0..3, 0..7),
            ("", 0..0, 0..0),
        ] {
            assert_eq!(to_visible_characters(text, range), expected, "{text:?}");
        }
    }
}
