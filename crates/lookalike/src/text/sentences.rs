//! The longest sentences of a text, and their signature.
//!
//! A sentence ends
//!
//! - behind `。！？!?；;…` and `｡`, and at the end of a line;
//! - behind a full stop (`.` or `．`) that follows a character of a script written without spaces;
//! - behind any other full stop that precedes white space, a closing quotation mark or bracket, or the end of
//!   the text, unless it follows a single letter, as in initials and "e.g.".
//!
//! Decimal points and the dots of addresses therefore end no sentence. A sentence is measured and compared by
//! its normalised characters. One without normalised characters does not count, and a repeated one counts
//! once. The longest come first, and among sentences of equal length the one with the smallest hash, so that
//! the order of the sentences in a text does not matter. If a text has fewer sentences than requested, all of
//! them make the signature.
//!
//! Cost: that of normalising the text once more.

use std::cmp::Reverse;

use super::characters;
use super::charmap::CharMap;
use super::unicode::{self, CharacterClass};
use crate::hash;
use crate::recipe::Recipe;

const SENTENCE_DOMAIN: u64 = 3;
const SIGNATURE_DOMAIN: u64 = 4;

/// One of the longest sentences of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongSentence {
    /// The sentence as in the text, without surrounding white space.
    pub text: String,
    /// Number of its normalised characters, at least 1.
    pub characters: usize,
    /// Hash of its normalised characters.
    pub hash: u64,
}

/// Length, hash and text of a sentence, in the order of comparison.
type SentenceEntry<'t> = (Reverse<usize>, u64, &'t str);

/// Returns the signature of the `count` longest sentences of a text, or `None` if it has no sentences.
pub(super) fn sentence_signature(
    recipe: &Recipe,
    map: &CharMap,
    text: &str,
    count: usize,
) -> Option<u64> {
    let longest = find_longest(recipe, map, text, count);
    let hashes: Vec<u64> = longest.into_iter().map(|(_, hash, _)| hash).collect();
    (!hashes.is_empty()).then(|| hash::hash_sequence(SIGNATURE_DOMAIN, &hashes) as u64)
}

/// Returns the sentences from which [`sentence_signature`] is computed, in their order.
pub(super) fn longest_sentences(
    recipe: &Recipe,
    map: &CharMap,
    text: &str,
    count: usize,
) -> Vec<LongSentence> {
    let longest = find_longest(recipe, map, text, count);
    let sentence = |(Reverse(characters), hash, text): SentenceEntry<'_>| LongSentence {
        text: text.trim().to_owned(),
        characters,
        hash,
    };
    longest.into_iter().map(sentence).collect()
}

fn find_longest<'t>(
    recipe: &Recipe,
    map: &CharMap,
    text: &'t str,
    count: usize,
) -> Vec<SentenceEntry<'t>> {
    let mut longest: Vec<SentenceEntry<'t>> = Vec::new();
    let mut symbols = Vec::new();
    for sentence in split_sentences(text) {
        symbols.clear();
        characters::append_characters(recipe, map, sentence, &mut symbols);
        let short = longest.len() == count && symbols.len() < longest[count - 1].0.0;
        if symbols.is_empty() || short {
            continue;
        }
        let hash = hash::hash_sequence(SENTENCE_DOMAIN, &symbols) as u64;
        let length = Reverse(symbols.len());
        let place =
            longest.binary_search_by_key(&(length, hash), |&(length, hash, _)| (length, hash));
        if let Err(at) = place {
            longest.insert(at, (length, hash, sentence));
            longest.truncate(count);
        }
    }
    longest
}

/// Returns the sentences of a text in order, each with the characters that end it.
pub(crate) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) = rest.split_at(sentence_end(rest));
        rest = after;
        Some(sentence)
    })
}

/// Returns the end of the first sentence of a text.
fn sentence_end(text: &str) -> usize {
    // The two characters before this one.
    let (mut before, mut last) = (None, None);
    for (at, point) in text.char_indices() {
        let after = at + point.len_utf8();
        let ends = match point {
            '.' | '．' => is_sentence_stop(before, last, text[after..].chars().next()),
            _ => always_ends_sentence(point),
        };
        if ends {
            return after;
        }
        (before, last) = (last, Some(point));
    }
    text.len()
}

/// Returns the last place up to `byte` where a sentence begins whatever stands around it: behind a character that
/// always ends one, or the start of the text. The sentences from there on are those of the whole text.
///
/// Cost: that of reading back to this place.
pub(crate) fn last_certain_start(text: &str, byte: usize) -> usize {
    let points = text[..byte].char_indices();
    let last = points.rev().find(|&(_, point)| always_ends_sentence(point));
    last.map_or(0, |(at, point)| at + point.len_utf8())
}

fn always_ends_sentence(point: char) -> bool {
    matches!(
        point,
        '。' | '！'
            | '？'
            | '!'
            | '?'
            | '；'
            | ';'
            | '…'
            | '｡'
            | '\n'
            | '\r'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

/// Returns `true` if a full stop between these characters ends a sentence.
fn is_sentence_stop(before: Option<char>, last: Option<char>, next: Option<char>) -> bool {
    let is = |point: Option<char>, class| {
        point.is_some_and(|point| unicode::character_class(point) == class)
    };
    if is(last, CharacterClass::Character) {
        return true;
    }
    let closing = |point: char| {
        matches!(
            point,
            '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』'
        )
    };
    let open_end = next.is_none_or(|point| point.is_whitespace() || closing(point));
    let single_letter = last.is_some_and(char::is_alphabetic) && !is(before, CharacterClass::Word);
    open_end && !single_letter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{AnalysisExtras, AnalysisScratch, TextAnalyzer};

    #[test]
    fn sentences_end_by_the_rules() {
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
            assert_eq!(
                split_sentences(text).collect::<Vec<_>>(),
                expected,
                "{text}"
            );
            assert_eq!(split_sentences(text).collect::<String>(), text);
        }
    }

    #[test]
    fn sentences_from_a_certain_start_are_those_of_the_text() {
        let text = "One. Two e.g. so; no! \"Ho.\" 一。二．三…\r\nA. B. C.\nlast";
        let mut starts = vec![0];
        for sentence in split_sentences(text) {
            starts.push(starts[starts.len() - 1] + sentence.len());
        }
        let mut certain = Vec::new();
        for byte in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
            let start = last_certain_start(text, byte);
            let from = starts.iter().position(|&place| place == start).unwrap();
            let later: Vec<&str> = split_sentences(&text[start..]).collect();
            let all: Vec<&str> = split_sentences(text).skip(from).collect();
            assert_eq!(later, all, "{byte}");
            assert!(start <= byte);
            certain.push(start);
        }
        certain.dedup();
        assert_eq!(certain.len(), 8);
    }

    fn signed(text: &str, count: usize) -> Option<u64> {
        let extras = AnalysisExtras {
            characters: false,
            sentences: Some(count),
        };
        let analyzer = TextAnalyzer::new(&Recipe::default()).with_extras(extras);
        analyzer
            .analyze_text(text, &mut AnalysisScratch::default())
            .sentence_signature()
    }

    #[test]
    fn only_longest_sentences_count() {
        let text = "Short one. This is the longest sentence of them all. A middling sentence here. \
                    And one more that is quite long.";
        let of = |other: &str, count| signed(text, count) == signed(other, count);
        // Other short sentences, another order, case and punctuation, and a repetition.
        let other = "AND ONE MORE, that is quite long! This is the longest sentence of them all. \
                     This is the longest sentence of them all. A middling sentence (here). Tiny.";
        assert!(of(other, 1) && of(other, 2) && of(other, 3) && !of(other, 4));
        let changed = text.replace("middling", "mediocre");
        assert!(of(&changed, 2) && !of(&changed, 3));
        assert_ne!(signed(text, 1), signed(text, 2));
        // If fewer sentences exist than requested, all of them count.
        assert_eq!(signed("One sentence.", 3), signed("one sentence", 5));
        assert_eq!(
            signed("One sentence.", 3),
            signed("One sentence. One sentence!", 1)
        );
        for nothing in ["", " ", "!!! ... 。。"] {
            assert_eq!(signed(nothing, 3), None);
        }
        let analyzer = TextAnalyzer::new(&Recipe::default());
        let longest = analyzer.longest_sentences(text, 2);
        assert_eq!(longest[0].text, "This is the longest sentence of them all.");
        assert_eq!(longest[0].characters, 40);
        assert_eq!(longest[1].text, "And one more that is quite long.");
        assert_eq!(longest, analyzer.longest_sentences(text, 4)[..2]);
        // Among sentences of equal length the same one is taken in any order.
        assert_eq!(
            signed("abc def. ghi jkl. mno pqr.", 2),
            signed("mno pqr! abc def; ghi jkl.", 2)
        );
    }
}
