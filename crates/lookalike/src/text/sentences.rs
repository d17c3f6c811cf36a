//! The longest sentences of a text, as one number.
//!
//! A sentence ends
//!
//! - behind `。！？!?；;…` and `｡`, and at the end of a line;
//! - behind a full stop (`.` or `．`) that stands behind a character of a script written without
//!   spaces; or before white space, a closing quotation mark or bracket, or the end, unless a single
//!   letter stands before it, as in initials and "e.g.".
//!
//! Decimal points and the dots of addresses thus end nothing. A sentence is measured and compared by
//! its normalised characters; one that has none does not count, and one that is repeated counts once.
//! The longest come first, and of those of one length the one whose hash is smallest, so that the
//! order of sentences in a text does not matter. A text with fewer than asked for is named by all it
//! has.
//!
//! Cost: that of normalising the text once more.

use super::characters;
use super::charmap::CharMap;
use super::unicode::{self, Class};
use crate::hash;
use crate::recipe::Recipe;

const SENTENCE_DOMAIN: u64 = 3;
const SIGNATURE_DOMAIN: u64 = 4;

/// Names a text by its `count` longest sentences; None if it has none.
pub(super) fn signature(recipe: &Recipe, map: &CharMap, text: &str, count: usize) -> Option<u64> {
    let mut longest: Vec<(std::cmp::Reverse<usize>, u64)> = Vec::new();
    let (mut symbols, mut values) = (Vec::new(), Vec::new());
    for sentence in sentences(text) {
        symbols.clear();
        characters::append(recipe, map, sentence, &mut symbols);
        let short = longest.len() == count && symbols.len() < longest[count - 1].0.0;
        if symbols.is_empty() || short {
            continue;
        }
        values.clear();
        values.extend(symbols.iter().map(|&symbol| u64::from(symbol)));
        let name = hash::sequence(SENTENCE_DOMAIN, &values) as u64;
        let entry = (std::cmp::Reverse(symbols.len()), name);
        if let Err(at) = longest.binary_search(&entry) {
            longest.insert(at, entry);
            longest.truncate(count);
        }
    }
    let names: Vec<u64> = longest.into_iter().map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| hash::sequence(SIGNATURE_DOMAIN, &names) as u64)
}

/// The sentences of a text, one after another, with what ends them.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) = rest.split_at(end(rest));
        rest = after;
        Some(sentence)
    })
}

/// Where the first sentence of a text ends.
fn end(text: &str) -> usize {
    // The two characters before this one.
    let (mut before, mut last) = (None, None);
    for (at, point) in text.char_indices() {
        let after = at + point.len_utf8();
        let ends = match point {
            '。' | '！' | '？' | '!' | '?' | '；' | ';' | '…' | '｡' => true,
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => true,
            '.' | '．' => stops(before, last, text[after..].chars().next()),
            _ => false,
        };
        if ends {
            return after;
        }
        (before, last) = (last, Some(point));
    }
    text.len()
}

/// Whether a full stop between these characters ends a sentence.
fn stops(before: Option<char>, last: Option<char>, next: Option<char>) -> bool {
    let is = |point: Option<char>, class| point.is_some_and(|point| unicode::class(point) == class);
    if is(last, Class::Character) {
        return true;
    }
    let closing = |point: char| {
        matches!(
            point,
            '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』'
        )
    };
    let open_end = next.is_none_or(|point| point.is_whitespace() || closing(point));
    let single_letter = last.is_some_and(char::is_alphabetic) && !is(before, Class::Word);
    open_end && !single_letter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Analyzer, Extras, Scratch};

    #[test]
    fn sentences_end_where_the_rules_say() {
        for (text, expected) in [
            ("", &[][..]),
            ("没有标点", &["没有标点"]),
            (
                "第一句。第二句！第三句？第四句；第五句",
                &["第一句。", "第二句！", "第三句？", "第四句；", "第五句"],
            ),
            ("你好.世界", &["你好.", "世界"]),
            (
                "One. Two! Three? Four; five",
                &["One.", " Two!", " Three?", " Four;", " five"],
            ),
            (
                "It cost 3.50 at example.com.",
                &["It cost 3.50 at example.com."],
            ),
            (
                "By J. R. Smith, e.g. today. The end",
                &["By J. R. Smith, e.g. today.", " The end"],
            ),
            (
                "He said \"no.\" Then left.",
                &["He said \"no.", "\" Then left."],
            ),
            ("a line\nanother\r\n", &["a line\n", "another\r", "\n"]),
        ] {
            assert_eq!(sentences(text).collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(sentences(text).collect::<String>(), text);
        }
    }

    fn signed(text: &str, count: usize) -> Option<u64> {
        let extras = Extras {
            characters: false,
            sentences: Some(count),
        };
        let analyzer = Analyzer::new(&Recipe::default()).with_extras(extras);
        analyzer.analyze(text, &mut Scratch::default()).sentences()
    }

    #[test]
    fn the_longest_sentences_alone_count() {
        let text = "Short one. This is the longest sentence of them all. A middling sentence here. \
                    And one more that is quite long.";
        let of = |other: &str, count| signed(text, count) == signed(other, count);
        // Other short ones, another order, case, punctuation, repetition.
        let other = "AND ONE MORE, that is quite long! This is the longest sentence of them all. \
                     This is the longest sentence of them all. A middling sentence (here). Tiny.";
        assert!(of(other, 1) && of(other, 2) && of(other, 3) && !of(other, 4));
        let changed = text.replace("middling", "mediocre");
        assert!(of(&changed, 2) && !of(&changed, 3));
        assert_ne!(signed(text, 1), signed(text, 2));
        // Fewer than are asked for: all there are.
        assert_eq!(signed("One sentence.", 3), signed("one sentence", 5));
        assert_eq!(
            signed("One sentence.", 3),
            signed("One sentence. One sentence!", 1)
        );
        for nothing in ["", " ", "!!! ... 。。"] {
            assert_eq!(signed(nothing, 3), None);
        }
        // Of one length, the same one is taken wherever it stands.
        assert_eq!(
            signed("abc def. ghi jkl. mno pqr.", 2),
            signed("mno pqr! abc def; ghi jkl.", 2)
        );
    }
}
