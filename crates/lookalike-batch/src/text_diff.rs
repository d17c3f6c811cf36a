//! Word-by-word differences of two texts.
//!
//! Words are those of Unicode text segmentation; in Chinese every character is a word.

use std::time::{Duration, Instant};

use lookalike::Result;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffTag, DiffableStr, TextDiff, capture_diff_slices_deadline};

/// Longest time for finding the shortest difference. After it, a longer one is accepted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Texts that have a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PassageSide {
    /// Both texts.
    Both,
    /// The first text only.
    Kept,
    /// The second text only.
    Removed,
}

/// Consecutive words that have the same side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffPassage<'a> {
    /// Texts that have these words.
    pub side: PassageSide,
    /// The words, with the blanks and signs between them.
    #[serde(serialize_with = "concatenated")]
    pub words: Vec<&'a str>,
}

fn concatenated<S: serde::Serializer>(words: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words.concat())
}

/// Splits both texts into passages, in order.
pub fn diff_passages<'a>(kept: &'a str, removed: &'a str) -> Vec<DiffPassage<'a>> {
    let deadline = Instant::now() + PATIENCE;
    let diff = TextDiff::configure()
        .deadline(deadline)
        .diff_unicode_words(kept, removed);
    let (mut kept, mut removed) = (TextCursor::new(kept), TextCursor::new(removed));
    let mut passages: Vec<DiffPassage<'a>> = Vec::new();
    for change in diff.iter_all_changes() {
        let length = change.value().len();
        let (side, word) = match change.tag() {
            ChangeTag::Equal => {
                removed.take_front(length);
                (PassageSide::Both, kept.take_front(length))
            }
            ChangeTag::Delete => (PassageSide::Kept, kept.take_front(length)),
            ChangeTag::Insert => (PassageSide::Removed, removed.take_front(length)),
        };
        match passages.last_mut().filter(|passage| passage.side == side) {
            Some(passage) => passage.words.push(word),
            None => passages.push(DiffPassage {
                side,
                words: vec![word],
            }),
        }
    }
    passages
}

/// Splits both texts into passages, in order. Words that are equal after normalisation are common; they are given as
/// the second text has them. Signs and blanks between words do not differ.
///
/// # Errors
/// If a text has 4 GiB or more.
pub fn diff_normalized<'a>(
    kept: &'a str,
    removed: &'a str,
    tokenizer: &SpanTokenizer,
) -> Result<Vec<DiffPassage<'a>>> {
    let kept = KeyedWords::new(kept, tokenizer)?;
    let removed = KeyedWords::new(removed, tokenizer)?;
    let deadline = Instant::now() + PATIENCE;
    let steps =
        capture_diff_slices_deadline(Algorithm::Myers, &kept.keys, &removed.keys, Some(deadline));
    let mut passages = Vec::new();
    for step in steps {
        let (kept, removed) = (
            &kept.words[step.old_range()],
            &removed.words[step.new_range()],
        );
        let sides: &[(PassageSide, &[&'a str])] = match step.tag() {
            DiffTag::Equal => &[(PassageSide::Both, removed)],
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                &[(PassageSide::Kept, kept), (PassageSide::Removed, removed)]
            }
        };
        let given = sides.iter().filter(|(_, words)| !words.is_empty());
        passages.extend(given.map(|&(side, words)| DiffPassage {
            side,
            words: words.to_vec(),
        }));
    }
    Ok(passages)
}

/// The words of a text, each with a key that equal words share after normalisation.
struct KeyedWords<'a> {
    words: Vec<&'a str>,
    /// 0 for signs and blanks.
    keys: Vec<u64>,
}

impl<'a> KeyedWords<'a> {
    fn new(text: &'a str, tokenizer: &SpanTokenizer) -> Result<Self> {
        let mut tokens = SpannedTokens::default();
        tokenizer.tokenize_text(text, &mut tokens)?;
        let words = text.tokenize_unicode_words();
        let (mut end, mut at) = (0, 0);
        let keys = words.iter().map(|word| {
            end += word.len();
            let first = at;
            while at < tokens.len() && tokens.byte_range(at..at + 1).start < end {
                at += 1;
            }
            let values = tokens.values()[first..at].iter();
            values.fold(0, |key: u64, value| {
                key.rotate_left(5).wrapping_mul(31) ^ value
            })
        });
        Ok(Self {
            keys: keys.collect(),
            words,
        })
    }
}

/// Returns a text piece by piece; the pieces outlive the diff.
struct TextCursor<'a>(&'a str);

impl<'a> TextCursor<'a> {
    fn new(text: &'a str) -> Self {
        Self(text)
    }

    fn take_front(&mut self, length: usize) -> &'a str {
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }
}

#[cfg(test)]
mod tests {
    use lookalike::Recipe;

    use super::*;

    #[test]
    fn words_that_normalise_to_the_same_do_not_differ() {
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        let shown = |kept: &str, removed: &str| -> String {
            let passages = diff_normalized(kept, removed, &tokenizer).unwrap();
            let mark = |it: &DiffPassage<'_>| match it.side {
                PassageSide::Both => it.words.concat(),
                PassageSide::Kept => format!("[-{}-]", it.words.concat()),
                PassageSide::Removed => format!("{{+{}+}}", it.words.concat()),
            };
            passages.iter().map(mark).collect()
        };
        for (kept, removed, expected) in [
            ("Ａ boat, at SEVEN", "a Boat; at seven", "a Boat; at seven"),
            ("把纜繩解開了", "把缆绳拉开了", "把缆绳[-解-]{+拉+}开了"),
            ("one two", "one two three", "one two{+ three+}"),
            ("one two", "", "[-one two-]"),
            ("", "", ""),
        ] {
            assert_eq!(shown(kept, removed), expected);
        }
    }
}
