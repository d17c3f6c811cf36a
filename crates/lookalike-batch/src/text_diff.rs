//! Word-by-word differences of two texts.
//!
//! Words are those of Unicode text segmentation; in Chinese every character is a word.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

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
