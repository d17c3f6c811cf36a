//! The places that are cut out of a document with an item.

use std::ops::Range;

use crate::text::split_sentences;

/// Returns a range of bytes with the marks that follow it directly, for example the question mark of a question.
///
/// ```
/// use lookalike::contamination::extend_to_marks;
///
/// assert_eq!(extend_to_marks("Why is it so?) Because.", 0..12), 0..14);
/// ```
pub fn extend_to_marks(text: &str, range: Range<usize>) -> Range<usize> {
    let is_mark = |point: &char| !point.is_alphanumeric() && !point.is_whitespace();
    let marks = text[range.end..].chars().take_while(is_mark);
    range.start..range.end + marks.map(char::len_utf8).sum::<usize>()
}

/// Returns a range of bytes with the rest of the sentences in which it begins and ends.
///
/// ```
/// use lookalike::contamination::extend_to_sentences;
///
/// let text = "One. Two is here. Three. Four.";
/// assert_eq!(&text[extend_to_sentences(text, 9..20)], "Two is here. Three. ");
/// ```
pub fn extend_to_sentences(text: &str, range: Range<usize>) -> Range<usize> {
    let (mut start, mut extended) = (0, range.clone());
    for sentence in split_sentences(text) {
        let end = start + sentence.len();
        if start <= range.start && range.start < end {
            // White space before a sentence belongs to the one before.
            extended.start = end - sentence.trim_start().len();
        }
        if start < range.end && range.end <= end {
            extended.end = end;
            break;
        }
        start = end;
    }
    extended.start.min(range.start)..extended.end.max(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_cover_the_range() {
        let text = "  一。二三四。 Five six.\nSeven";
        for start in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            for end in (start + 1..=text.len()).filter(|&at| text.is_char_boundary(at)) {
                let extended = extend_to_sentences(text, start..end);
                assert!(extended.start <= start && extended.end >= end);
                assert!(
                    text.is_char_boundary(extended.start) && text.is_char_boundary(extended.end)
                );
            }
        }
        assert_eq!(&text[extend_to_sentences(text, 8..11)], "二三四。");
    }
}
