//! Chinese word segmentation by jieba: a dictionary of word frequencies, the most probable path through its
//! matches, and a hidden Markov model for words that are not in the dictionary.
//!
//! The work is done by the crate `jieba-rs`, which is pinned with its embedded dictionary because both
//! determine fingerprints. This module passes runs of normalised text to it, many at a time, so that a
//! document needs few calls, and it implements jieba's modes. The dictionary is loaded once for all threads,
//! when the first recipe needs it: about 100 ms and 20 MB. A user's dictionary copies it, once for
//! all segmenters that have the same words. WebAssembly modules do not contain it, because it is larger than the rest of
//! them: the caller provides it there (`provide_dictionary`).
//!
//! Cost: that of `jieba-rs`, some tens of MB/s. Joining the runs copies the text.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use jieba_rs::{Jieba, Token};

use super::layout::{PieceKind, TextLayout, is_ideograph};
use super::terms::term_value;
#[cfg(any(target_family = "wasm", test))]
use crate::error::{Error, ErrorKind, Result};
use crate::hash;
use crate::recipe::{SegmentationMode, UserWord};

/// Cuts runs of text into words.
#[derive(Clone, Debug)]
pub(super) struct WordSegmenter {
    jieba: Arc<Jieba>,
    mode: SegmentationMode,
    hmm: bool,
    /// Words that only the full mode needs; empty in other modes.
    mixed: Arc<MixedWords>,
}

/// Separator between two runs. Neither it nor [`TOKEN_PLACEHOLDER`] occurs in a run.
const RUN_SEPARATOR: char = '\u{2}';

/// Placeholder of a piece that is already a token.
const TOKEN_PLACEHOLDER: char = '\u{1}';

/// Bytes after which the collected runs are cut. The result then still fits into the cache.
const BATCH_BYTES: usize = 3 << 10;

/// Words of the embedded dictionary with letters or digits, as far as normalised text can contain them.
const MIXED_WORDS: [&str; 3] = ["1号店", "4s店", "江南style"];

/// The dictionary of all segmenters.
static COMMON_DICTIONARY: OnceLock<Arc<Jieba>> = OnceLock::new();

/// Returns the embedded dictionary.
#[cfg(not(target_family = "wasm"))]
fn embedded_dictionary() -> &'static Arc<Jieba> {
    COMMON_DICTIONARY.get_or_init(|| Arc::new(Jieba::new()))
}

/// Returns the provided dictionary.
#[cfg(target_family = "wasm")]
fn embedded_dictionary() -> &'static Arc<Jieba> {
    COMMON_DICTIONARY
        .get()
        .expect("a caller provides the dictionary before it uses a recipe with words of jieba")
}

/// CRC-32 of the file `dict.txt` of the pinned `jieba-rs`.
#[cfg(any(target_family = "wasm", test))]
const DICTIONARY_CHECKSUM: u32 = 0xddc1_0645;

/// Provides jieba's dictionary, the file `dict.txt` of the pinned `jieba-rs`, to a module that does not contain it. It
/// comes before the first recipe whose tokens are words of jieba ([`Recipe::segmentation_mode`]).
///
/// # Errors
/// [`ErrorKind::File`] if these are not the bytes of that file, because every other dictionary gives other fingerprints
/// under the same name.
///
/// [`Recipe::segmentation_mode`]: crate::Recipe::segmentation_mode
#[cfg(any(target_family = "wasm", test))]
pub fn provide_dictionary(bytes: &[u8]) -> Result<()> {
    let refusal = |cause: String| {
        Error::new(
            ErrorKind::File,
            format!(
                "the dictionary of jieba cannot be used: {cause}. Take `dict.txt` of jieba-rs 0.11.0."
            ),
        )
    };
    let checksum = crc32fast::hash(bytes);
    if checksum != DICTIONARY_CHECKSUM {
        return Err(refusal(format!(
            "its CRC-32 is {checksum:08x}, and that of the right one is {DICTIONARY_CHECKSUM:08x}"
        )));
    }
    let dictionary = Jieba::with_dict(&mut &*bytes).map_err(|cause| refusal(cause.to_string()))?;
    // A second call has the same bytes.
    let _ = COMMON_DICTIONARY.set(Arc::new(dictionary));
    Ok(())
}

/// Hash domain of lists of words.
const WORDS_DOMAIN: u64 = 6;

/// A dictionary with a user's words, as long as a segmenter has it, and the hash of these words.
type ExtendedDictionary = (u128, Weak<Jieba>);

/// Returns the embedded dictionary with a user's words.
///
/// Segmenters with the same words share it, because each takes tens of megabytes and, with many words, seconds.
/// One is built at a time.
fn extend_dictionary(words: &[UserWord]) -> Arc<Jieba> {
    static EXTENDED_DICTIONARIES: Mutex<Vec<ExtendedDictionary>> = Mutex::new(Vec::new());
    if words.is_empty() {
        return embedded_dictionary().clone();
    }
    let key = hash_words(words);
    // Entries are added whole, so a poisoned lock is still consistent.
    let mut extended = EXTENDED_DICTIONARIES
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    extended.retain(|(_, jieba)| jieba.strong_count() > 0);
    let known = extended.iter().find(|(known, _)| *known == key);
    if let Some(jieba) = known.and_then(|(_, jieba)| jieba.upgrade()) {
        return jieba;
    }
    let mut own = Jieba::clone(embedded_dictionary());
    for word in words {
        own.add_word(&word.word, word.frequency, word.part.as_deref());
    }
    let own = Arc::new(own);
    extended.push((key, Arc::downgrade(&own)));
    own
}

fn hash_words(words: &[UserWord]) -> u128 {
    let mut bytes = Vec::new();
    for word in words {
        for field in [&*word.word, word.part.as_deref().unwrap_or_default()] {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
        let frequency = word
            .frequency
            .map_or(u64::MAX, |frequency| frequency as u64);
        bytes.extend_from_slice(&frequency.to_le_bytes());
    }
    hash::hash_bytes(WORDS_DOMAIN, &bytes)
}

impl WordSegmenter {
    /// Creates a segmenter with the embedded dictionary and a user's words.
    pub(super) fn new(mode: SegmentationMode, hmm: bool, words: &[UserWord]) -> Self {
        let jieba = extend_dictionary(words);
        let mixed = match mode {
            SegmentationMode::Full => MixedWords::new(
                MIXED_WORDS
                    .into_iter()
                    .chain(words.iter().map(|word| &*word.word)),
            ),
            SegmentationMode::Precise | SegmentationMode::Search => MixedWords::default(),
        };
        Self {
            jieba,
            mode,
            hmm,
            mixed: Arc::new(mixed),
        }
    }

    /// Calls `visit` with every token of a layout, in the order of the text. With `tags` it includes parts of
    /// speech, in the precise mode only.
    pub(super) fn visit_tokens<'l>(
        &self,
        layout: &'l TextLayout,
        batch: &mut String,
        tags: bool,
        mut visit: impl FnMut(&str, u64, Option<&str>),
    ) {
        batch.clear();
        let mut aside: Vec<(&'l str, PieceKind)> = Vec::new();
        for (piece, kind) in layout.pieces() {
            if kind == PieceKind::Run {
                batch.push_str(piece);
                batch.push(RUN_SEPARATOR);
            } else {
                batch.push(TOKEN_PLACEHOLDER);
                aside.push((piece, kind));
            }
            if batch.len() >= BATCH_BYTES {
                self.cut_batch(batch, &aside, tags, &mut visit);
                batch.clear();
                aside.clear();
            }
        }
        self.cut_batch(batch, &aside, tags, &mut visit);
    }

    fn cut_batch(
        &self,
        batch: &mut String,
        aside: &[(&str, PieceKind)],
        tags: bool,
        visit: &mut impl FnMut(&str, u64, Option<&str>),
    ) {
        let length = batch.len();
        batch.extend([RUN_SEPARATOR; hash::WORD_PADDING]);
        let (batch, padded) = (&batch[..length], batch.as_bytes());
        let mut aside = aside.iter();
        let mut token = |word: &str, at: usize, part: Option<&str>| match padded[at] {
            0x2 => {}
            0x1 => {
                let &(piece, kind) = aside.next().expect("every mark stands for a piece");
                visit(
                    piece,
                    term_value(piece, kind),
                    tags.then(|| part_of_word(piece)),
                );
            }
            _ if word.len() <= 4 => visit(word, term_value(word, kind_of_word(word)), part),
            _ => visit(word, hash::hash_word_in(padded, at, word.len()), part),
        };
        match self.mode {
            SegmentationMode::Precise if tags => {
                for tag in self.jieba.tag(batch, self.hmm) {
                    token(tag.word, tag.byte_start, Some(tag.tag));
                }
            }
            SegmentationMode::Precise => {
                for cut in self.jieba.cut(batch, self.hmm) {
                    token(cut.word, cut.byte_start, None);
                }
            }
            SegmentationMode::Search => {
                for cut in self.jieba.cut_for_search(batch, self.hmm) {
                    token(cut.word, cut.byte_start, None);
                }
            }
            SegmentationMode::Full => {
                let words = self.jieba.cut_all(batch);
                cut_full_mode(&words, &self.mixed, batch, &mut |word, at| {
                    token(word, at, None);
                });
            }
        }
    }
}

/// Words with letters or digits. The full mode of `jieba-rs` does not find them, because it separates
/// ideographs from all other characters.
#[derive(Debug, Default)]
struct MixedWords {
    words: HashSet<Box<str>>,
    /// Lengths of the words in bytes, ascending, by their first character.
    lengths: BTreeMap<char, BTreeSet<usize>>,
}

impl MixedWords {
    /// Collects those of `words` that contain letters or digits.
    fn new<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        let mut mixed = Self::default();
        for word in words.filter(|word| word.bytes().any(|byte| byte.is_ascii_alphanumeric())) {
            let first = word.chars().next().into_iter();
            first.for_each(|first| {
                mixed.lengths.entry(first).or_default().insert(word.len());
            });
            mixed.words.insert(word.into());
        }
        mixed
    }

    /// Returns the lengths in bytes of the words with which a text begins, ascending. Cost: one look-up for
    /// each length of a word with this first character.
    fn prefix_lengths(&self, text: &str) -> impl Iterator<Item = usize> {
        let first = text.chars().next();
        let lengths = first.and_then(|first| self.lengths.get(&first));
        let is_word = |length: &usize| {
            text.get(..*length)
                .is_some_and(|text| self.words.contains(text))
        };
        lengths.into_iter().flatten().copied().filter(is_word)
    }
}

/// Calls `visit` with every word of the dictionary, as jieba's full mode does. From each position it visits
/// the words of more than one character. A position that is not inside an earlier word and has at most one
/// word yields that word, or else its single character. Letters and digits that are in no word are joined to
/// one word.
fn cut_full_mode(
    words: &[Token<'_>],
    mixed: &MixedWords,
    batch: &str,
    visit: &mut impl FnMut(&str, usize),
) {
    let mut words = words.iter().peekable();
    let (mut at, mut end) = (0, 0);
    // Ends of the words that start here.
    let mut here: Vec<usize> = Vec::new();
    // The current run of letters and digits that are in no word.
    let mut foreign = 0..0;
    let end_foreign = |foreign: &mut Range<usize>, visit: &mut dyn FnMut(&str, usize)| {
        if foreign.start < foreign.end {
            visit(&batch[foreign.clone()], foreign.start);
        }
        *foreign = 0..0;
    };
    while let Some(point) = batch[at..].chars().next() {
        let after = at + point.len_utf8();
        let is_foreign = point.is_ascii_alphanumeric();
        if !is_foreign {
            end_foreign(&mut foreign, visit);
        }
        here.clear();
        while let Some(word) = words.next_if(|word| word.byte_start <= at) {
            // Outside ideographs, a word of `jieba-rs` is a whole stretch, even if it is not in the
            // dictionary.
            if is_ideograph(point) {
                here.push(word.byte_end);
            }
        }
        here.extend(mixed.prefix_lengths(&batch[at..]).map(|length| at + length));
        here.sort_unstable();
        match here[..] {
            [] | [_] if at >= end => {
                end = here.first().copied().unwrap_or(after);
                if !is_foreign {
                    visit(&batch[at..end], at);
                } else {
                    if foreign.end != at {
                        end_foreign(&mut foreign, visit);
                        foreign.start = at;
                    }
                    foreign.end = end;
                }
            }
            _ => {
                for &longer in here.iter().filter(|&&longer| longer > after) {
                    visit(&batch[at..longer], at);
                    end = longer;
                }
            }
        }
        at = after;
    }
    end_foreign(&mut foreign, visit);
}

/// Returns the kind of a word: a single ideograph is a character, as with
/// [`TokenKind::Words`](crate::recipe::TokenKind::Words).
pub(super) fn kind_of_word(word: &str) -> PieceKind {
    let mut points = word.chars();
    match (points.next(), points.next()) {
        (Some(point), None) if is_ideograph(point) => PieceKind::Character,
        _ => PieceKind::Word,
    }
}

/// Returns the part of speech of a token that jieba does not tag, in jieba's terms: numbers, foreign words,
/// and everything else.
fn part_of_word(word: &str) -> &'static str {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        "m"
    } else if word.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        "eng"
    } else {
        "x"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_word(word: &str, frequency: Option<usize>) -> UserWord {
        UserWord {
            word: word.to_owned(),
            frequency,
            part: None,
        }
    }

    #[test]
    fn segmenters_with_the_same_words_share_a_dictionary() {
        let make = |mode, words: &[UserWord]| WordSegmenter::new(mode, true, words).jieba;
        let words = [user_word("青溪", Some(7)), user_word("渡船", None)];
        let one = make(SegmentationMode::Precise, &words);
        assert!(Arc::ptr_eq(&one, &make(SegmentationMode::Search, &words)));
        for other in [
            vec![user_word("青溪", Some(8)), user_word("渡船", None)],
            vec![user_word("青溪", Some(7))],
            Vec::new(),
        ] {
            assert!(!Arc::ptr_eq(&one, &make(SegmentationMode::Precise, &other)));
        }
        let weak = Arc::downgrade(&one);
        drop(one);
        assert!(weak.upgrade().is_none());
    }
}
