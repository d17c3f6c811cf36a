//! The places that are cut out of a document with an item.
//!
//! An item is found from its first to its last token. Around it stand marks that would make no sense without it: its
//! question mark, quotes, emphasis, a closing tag. They are cut along. What belongs to the text around stays, for
//! example the tag that closes a paragraph which began before.

use std::ops::Range;

use crate::text::{last_certain_start, split_sentences};

/// Marks that belong together, as opening and closing ones.
const BRACKETS: [(&str, &str); 14] = [
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("（", "）"),
    ("【", "】"),
    ("《", "》"),
    ("〈", "〉"),
    ("「", "」"),
    ("『", "』"),
    ("“", "”"),
    ("‘", "’"),
    ("«", "»"),
];

/// Brackets that are cut if they enclose an item and nothing else. Others may be the argument of a command or a link.
const ENCLOSING: [(&str, &str); 14] = [
    ("(", ")"),
    ("（", "）"),
    ("【", "】"),
    ("《", "》"),
    ("〈", "〉"),
    ("「", "」"),
    ("『", "』"),
    ("“", "”"),
    ("‘", "’"),
    ("«", "»"),
    ("**", "**"),
    ("*", "*"),
    ("\"", "\""),
    ("$", "$"),
];

/// Returns a range of bytes with the marks that belong to its text: those that end its sentence, those that close what
/// it opens, and those that enclose it and nothing else.
///
/// ```
/// use lookalike::contamination::extend_to_marks;
///
/// let marked = |text, range| &text[extend_to_marks(text, range)];
/// assert_eq!(marked("Why is it so?) Because.", 0..12), "Why is it so?");
/// assert_eq!(marked("Why (is it so?) Because.", 0..13), "Why (is it so?)");
/// assert_eq!(marked("<p>Why <b>so</b>?</p>", 3..12), "Why <b>so</b>?");
/// assert_eq!(marked("They ask: \"Why?\" Because.", 11..14), "\"Why?\"");
/// ```
pub fn extend_to_marks(text: &str, range: Range<usize>) -> Range<usize> {
    let mut extended = range;
    loop {
        let (within, behind) = (&text[extended.clone()], &text[extended.end..]);
        if let Some(length) = mark_length(within, behind) {
            extended.end += length;
            continue;
        }
        let before = &text[..extended.start];
        let encloses =
            |(open, close): &&(&str, &str)| before.ends_with(open) && behind.starts_with(close);
        let Some((open, close)) = ENCLOSING.iter().find(encloses) else {
            return extended;
        };
        extended = extended.start - open.len()..extended.end + close.len();
    }
}

/// Returns the length of the mark behind a text if it belongs to the text.
fn mark_length(within: &str, behind: &str) -> Option<usize> {
    let point = behind.chars().next()?;
    if is_sentence_mark(point) {
        return Some(point.len_utf8());
    }
    let is_open =
        |open: &str, close: &str| within.matches(open).count() > within.matches(close).count();
    if let Some((open, close)) = BRACKETS.iter().find(|(_, close)| behind.starts_with(close)) {
        return is_open(open, close).then_some(close.len());
    }
    if let Some(name) = behind.strip_prefix("</") {
        let length = name.find('>')?;
        let name = &name[..length];
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_closed = is_name && is_open(&format!("<{name}"), &format!("</{name}"));
        return is_closed.then_some(length + 3);
    }
    if !matches!(point, '*' | '_' | '`' | '$' | '"') {
        return None;
    }
    // Marks that look alike at both ends: the text opens with those that it has an odd number of.
    let run = behind.len() - behind.trim_start_matches(point).len();
    let runs = within.split(point).filter(|part| !part.is_empty()).count();
    let begins = usize::from(within.starts_with(point));
    let ends = usize::from(within.ends_with(point));
    let runs = (runs + begins + ends).saturating_sub(1);
    (runs % 2 == 1).then_some(run)
}

fn is_sentence_mark(point: char) -> bool {
    "?!.,;:%…。，、；：！？｡．".contains(point)
}

/// Returns a range of bytes with the rest of the sentences in which it begins and ends.
///
/// ```
/// use lookalike::contamination::extend_to_sentences;
///
/// let text = "One. Two is here. Three. Four.";
/// assert_eq!(&text[extend_to_sentences(text, 9..20)], "Two is here. Three.");
/// ```
pub fn extend_to_sentences(text: &str, range: Range<usize>) -> Range<usize> {
    // A sentence that ends before the last word of the range changes nothing.
    let last_word = text[..range.end].rfind(char::is_alphanumeric);
    let first = range.start.min(last_word.unwrap_or(0));
    extend_from(text, range, last_certain_start(text, first))
}

/// Extends a range of bytes by the sentences from `start` on, which is the start of one.
fn extend_from(text: &str, range: Range<usize>, mut start: usize) -> Range<usize> {
    let mut extended = range.clone();
    for sentence in split_sentences(&text[start..]) {
        let end = start + sentence.len();
        if start <= range.start && range.start < end {
            // Closing quotes and white space before a sentence belong to the one before.
            let closed = if start == 0 {
                sentence
            } else {
                sentence.trim_start_matches(is_closing)
            };
            extended.start = end - closed.trim_start().len();
        }
        let has_words = |text: &str| text.contains(char::is_alphanumeric);
        if start < range.end && (range.end <= end || !has_words(&text[end..range.end])) {
            extended.end = end;
            break;
        }
        start = end;
    }
    let sentences = extended.start.min(range.start)..extended.end.max(range.end);
    extend_to_marks(text, sentences)
}

fn is_closing(point: char) -> bool {
    "\"')]）】》〉」』”’»".contains(point)
}

/// Returns a range of bytes with the blanks behind it, if there are others before it, and with its line end, if it
/// is a whole line.
///
/// ```
/// use lookalike::contamination::extend_to_blanks;
///
/// let blanks = |text, range| &text[extend_to_blanks(text, range)];
/// assert_eq!(blanks("One. Two. Three.", 5..9), "Two. ");
/// assert_eq!(blanks("One.\nTwo.\nThree.", 5..9), "Two.\n");
/// assert_eq!(blanks("One:Two. Three.", 4..8), "Two.");
/// ```
pub fn extend_to_blanks(text: &str, range: Range<usize>) -> Range<usize> {
    let (before, behind) = (&text[..range.start], &text[range.end..]);
    if text[range.clone()].ends_with(is_line_end) {
        return range;
    }
    if !before.is_empty() && !before.ends_with(char::is_whitespace) {
        return range;
    }
    let is_blank = |point: char| point.is_whitespace() && !is_line_end(point);
    let mut rest = behind.trim_start_matches(is_blank);
    if before.is_empty() || before.ends_with(is_line_end) {
        let line_end = rest
            .strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix(is_line_end));
        rest = line_end.unwrap_or(rest);
    }
    range.start..text.len() - rest.len()
}

fn is_line_end(point: char) -> bool {
    matches!(point, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_ranges_cover_the_range() {
        let text = "  一。二「三四」。 (Five) \"six\".\n</p>Seven **$8$**";
        for start in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            for end in (start + 1..=text.len()).filter(|&at| text.is_char_boundary(at)) {
                for extend in [extend_to_marks, extend_to_sentences, extend_to_blanks] {
                    let extended = extend(text, start..end);
                    assert!(extended.start <= start && extended.end >= end);
                    assert!(
                        text.is_char_boundary(extended.start)
                            && text.is_char_boundary(extended.end)
                    );
                }
            }
        }
    }

    #[test]
    fn earlier_sentences_change_nothing() {
        for text in [
            "  一。二「三四」。 (Five) \"six\".\n</p>Seven **$8$**",
            "One. Two; e.g. so!?\r\n- \"Ho.\" (He goes.) — \n\n?! A. B. C!",
        ] {
            let places = 0..=text.len();
            let places: Vec<usize> = places.filter(|&at| text.is_char_boundary(at)).collect();
            for (at, &start) in places.iter().enumerate() {
                for &end in &places[at..] {
                    let extended = extend_to_sentences(text, start..end);
                    assert_eq!(extended, extend_from(text, start..end, 0), "{start}..{end}");
                }
            }
        }
    }

    #[test]
    fn marks_belong_to_what_they_close() {
        for (text, found, expected) in [
            ("「why」？", "why", "「why」？"),
            ("（see: why）", "why", "why"),
            ("say “why?” and", "why", "“why?”"),
            ("take $a$ and $b$.", "a$ and $b", "$a$ and $b$."),
            ("take $a$ and $b$.", "take $a$ and $b", "take $a$ and $b$."),
            ("\\(a\\) is \\(b\\).", "a\\) is \\(b", "a\\) is \\(b"),
            ("is \\(b\\)?", "is \\(b", "is \\(b\\)?"),
            ("\\textbf{why?} so", "why", "why?"),
            ("**why?** so", "why", "**why?**"),
            ("**why** is **it**?", "is **it", "is **it**?"),
            ("[why?](x)", "why", "why?"),
            ("<p>why?</p><p>so", "why", "why?"),
            ("why <b>so</b> then", "why <b>so", "why <b>so</b>"),
            ("why?「so」", "why", "why?"),
            ("why? | so |", "why", "why?"),
        ] {
            let start = text.find(found).expect("the text has it");
            let extended = extend_to_marks(text, start..start + found.len());
            assert_eq!(&text[extended], expected, "{text}");
        }
    }

    #[test]
    fn sentences_end_before_the_next_ones() {
        for (text, found, expected) in [
            ("一。二三四。五", "三", "二三四。"),
            (
                "She asks: \"Why?\" He goes.",
                "\"Why?\"",
                "She asks: \"Why?\"",
            ),
            (
                "他问：「为何？」「不知。」走了。",
                "「为何？」",
                "他问：「为何？」",
            ),
            ("<p>Why?</p><p>So.</p>", "Why?", "<p>Why?</p>"),
            ("So. **Why?** He goes.", "**Why?**", "**Why?**"),
            ("\"So.\" Why? He goes.", "Why?", "Why?"),
            ("So.\nWhy\nHe goes.", "Why", "Why"),
        ] {
            let start = text.find(found).expect("the text has it");
            let extended = extend_to_sentences(text, start..start + found.len());
            assert_eq!(text[extended].trim_end(), expected, "{text}");
        }
    }
}
