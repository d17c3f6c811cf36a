//! Word-by-word differences of two texts, for people.
//!
//! Words are those of Unicode text segmentation; in Chinese every character is a word. Text that only the
//! first has is in `[-…-]`, text that only the second has in `{+…+}`. Colours repeat that and add no meaning.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::output::{Printer, Tone, count, visible};

/// Longest time for finding the shortest difference. After it, a longer one is accepted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of words above which a common passage is shortened to its ends.
const LONG_PASSAGE: usize = 60;

/// Words left at each end of a shortened passage.
const CONTEXT: usize = 20;

/// Texts that have a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Both,
    Kept,
    Removed,
}

/// Consecutive words that have the same side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Passage<'a> {
    pub(crate) side: Side,
    #[serde(serialize_with = "concatenated")]
    pub(crate) words: Vec<&'a str>,
}

fn concatenated<S: serde::Serializer>(words: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words.concat())
}

/// Splits both texts into passages, in order.
pub(crate) fn passages<'a>(kept: &'a str, removed: &'a str) -> Vec<Passage<'a>> {
    let deadline = Instant::now() + PATIENCE;
    let diff = TextDiff::configure()
        .deadline(deadline)
        .diff_unicode_words(kept, removed);
    let (mut kept, mut removed) = (Cursor::new(kept), Cursor::new(removed));
    let mut passages: Vec<Passage<'a>> = Vec::new();
    for change in diff.iter_all_changes() {
        let length = change.value().len();
        let (side, word) = match change.tag() {
            ChangeTag::Equal => {
                removed.take(length);
                (Side::Both, kept.take(length))
            }
            ChangeTag::Delete => (Side::Kept, kept.take(length)),
            ChangeTag::Insert => (Side::Removed, removed.take(length)),
        };
        match passages.last_mut().filter(|passage| passage.side == side) {
            Some(passage) => passage.words.push(word),
            None => passages.push(Passage {
                side,
                words: vec![word],
            }),
        }
    }
    passages
}

/// Returns a text piece by piece; the pieces outlive the diff.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self(text)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }
}

/// Returns the passages as one text. `full` keeps long common passages unshortened.
pub(crate) fn marked(passages: &[Passage<'_>], full: bool, printer: &Printer) -> String {
    let mut text = String::new();
    for passage in passages {
        let piece = match passage.side {
            Side::Both if !full => shortened(&passage.words),
            _ => passage.words.concat(),
        };
        let piece = visible(&piece);
        match passage.side {
            Side::Both => text.push_str(&piece),
            Side::Kept => {
                text.push_str(&printer.in_output(Tone::Left, &format!("[-{piece}-]")));
            }
            Side::Removed => {
                text.push_str(&printer.in_output(Tone::Right, &format!("{{+{piece}+}}")));
            }
        }
    }
    text
}

fn shortened(words: &[&str]) -> String {
    let is_word = |word: &&&str| !word.trim().is_empty();
    let hidden = match words.len().checked_sub(2 * CONTEXT) {
        Some(_) if words.len() > LONG_PASSAGE => &words[CONTEXT..words.len() - CONTEXT],
        _ => return words.concat(),
    };
    let number = count(hidden.iter().filter(is_word).count() as u64);
    let (head, tail) = (&words[..CONTEXT], &words[words.len() - CONTEXT..]);
    format!(
        "{} … {number} words in common … {}",
        head.concat().trim_end(),
        tail.concat().trim_start()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kept: &str, removed: &str) -> String {
        let passages = passages(kept, removed);
        let side = |wanted: Side| {
            let on = passages
                .iter()
                .filter(|p| p.side == Side::Both || p.side == wanted);
            on.flat_map(|p| p.words.iter().copied()).collect::<String>()
        };
        assert_eq!(
            (&side(Side::Kept)[..], &side(Side::Removed)[..]),
            (kept, removed)
        );
        marked(&passages, false, &Printer::new(true))
    }

    #[test]
    fn differences_are_marked_word_by_word() {
        assert_eq!(
            shown("the old fox", "the new fox"),
            "the [-old-]{+new+} fox"
        );
        assert_eq!(
            shown("今天天气很好", "今天天气不好"),
            "今天天气[-很-]{+不+}好"
        );
        assert_eq!(shown("", "a"), "{+a+}");
        assert_eq!(shown("same", "same"), "same");
    }

    #[test]
    fn long_common_passages_are_shortened_and_differences_never() {
        let words: Vec<_> = (0..200).map(|n| format!("w{n}")).collect();
        let common = words.join(" ");
        let text = shown(&format!("{common} x"), &format!("{common} y"));
        assert!(
            text.contains("words in common") && text.contains("[-x-]{+y+}"),
            "{text}"
        );
        assert!(
            !text.contains("w100") && text.starts_with("w0 ") && text.contains("w199"),
            "{text}"
        );
        let whole = marked(&passages(&common, &common), true, &Printer::new(true));
        assert_eq!(whole, common);
        let different = shown(&common, "");
        assert!(different.contains("w100"), "{different}");
    }
}
