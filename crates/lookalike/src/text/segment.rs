//! Chinese words by jieba: a dictionary of word frequencies, the most probable path through its
//! matches, and a hidden Markov model for what the dictionary does not have.
//!
//! The work is that of the `jieba-rs` crate, pinned with its embedded dictionary: both are part of
//! what a recipe means. This module feeds it runs of normalised text, many at a time, so that a
//! document costs few calls, and brings back the modes as jieba defines them. The dictionary is
//! loaded once for all threads, when the first recipe asks for it: some 100 ms and 20 MB; a user's
//! dictionary copies it.
//!
//! Cost: what jieba-rs costs, some tens of MB/s; putting runs together is a copy of the text.

use std::sync::{Arc, OnceLock};

use jieba_rs::Jieba;

use super::layout::{Kind, Layout, is_ideograph};
use super::terms::value;
use crate::hash;
use crate::recipe::{Mode, UserWord};

/// Cuts runs into words.
#[derive(Clone, Debug)]
pub(super) struct Segmenter {
    jieba: Arc<Jieba>,
    mode: Mode,
    hmm: bool,
}

/// Stands between two runs. It and [`ASIDE`] are in no run.
const BETWEEN: char = '\u{2}';

/// Stands for a piece that is a token already.
const ASIDE: char = '\u{1}';

/// Runs are cut when so many bytes have come together: the result stays in the cache.
const BATCH: usize = 3 << 10;

/// The embedded dictionary.
fn embedded() -> &'static Arc<Jieba> {
    static EMBEDDED: OnceLock<Arc<Jieba>> = OnceLock::new();
    EMBEDDED.get_or_init(|| Arc::new(Jieba::new()))
}

impl Segmenter {
    /// A segmenter with the embedded dictionary and the words of a user.
    pub(super) fn new(mode: Mode, hmm: bool, words: &[UserWord]) -> Self {
        let mut jieba = embedded().clone();
        if !words.is_empty() {
            let own = Arc::make_mut(&mut jieba);
            for word in words {
                own.add_word(&word.word, word.frequency, word.part.as_deref());
            }
        }
        Self { jieba, mode, hmm }
    }

    /// Calls back with every token of a layout, in the order of the text, and with its part of
    /// speech if `tags` asks for it (in the precise mode).
    pub(super) fn tokens<'l>(
        &self,
        layout: &'l Layout,
        batch: &mut String,
        tags: bool,
        mut visit: impl FnMut(&str, u64, Option<&str>),
    ) {
        batch.clear();
        let mut aside: Vec<(&'l str, Kind)> = Vec::new();
        for (piece, kind) in layout.pieces() {
            if kind == Kind::Run {
                batch.push_str(piece);
                batch.push(BETWEEN);
            } else {
                batch.push(ASIDE);
                aside.push((piece, kind));
            }
            if batch.len() >= BATCH {
                self.cut(batch, &aside, tags, &mut visit);
                batch.clear();
                aside.clear();
            }
        }
        self.cut(batch, &aside, tags, &mut visit);
    }

    fn cut(
        &self,
        batch: &mut String,
        aside: &[(&str, Kind)],
        tags: bool,
        visit: &mut impl FnMut(&str, u64, Option<&str>),
    ) {
        let length = batch.len();
        batch.extend([BETWEEN; hash::WORD_PADDING]);
        let (batch, padded) = (&batch[..length], batch.as_bytes());
        let mut aside = aside.iter();
        let mut token = |word: &str, at: usize, part: Option<&str>| match padded[at] {
            0x2 => {}
            0x1 => {
                let &(piece, kind) = aside.next().expect("every mark stands for a piece");
                visit(piece, value(piece, kind), tags.then(|| part_of_word(piece)));
            }
            _ if word.len() <= 4 => visit(word, value(word, kind_of(word)), part),
            _ => visit(word, hash::word_in(padded, at, word.len()), part),
        };
        match self.mode {
            Mode::Precise if tags => {
                for tag in self.jieba.tag(batch, self.hmm) {
                    token(tag.word, tag.byte_start, Some(tag.tag));
                }
            }
            Mode::Precise => {
                for cut in self.jieba.cut(batch, self.hmm) {
                    token(cut.word, cut.byte_start, None);
                }
            }
            Mode::Search => {
                for cut in self.jieba.cut_for_search(batch, self.hmm) {
                    token(cut.word, cut.byte_start, None);
                }
            }
            Mode::Full => full(&self.jieba, batch, &mut |word, at| token(word, at, None)),
        }
    }
}

/// Every word of the dictionary, as jieba's full mode has it: from every character on the longer
/// words; a single character, or the only word there is, only behind the word before.
fn full(jieba: &Jieba, batch: &str, visit: &mut impl FnMut(&str, usize)) {
    let words = jieba.cut_all(batch);
    let (mut next, mut at, mut end) = (0, 0, 0);
    while let Some(point) = batch[at..].chars().next() {
        let from = next;
        while words.get(next).is_some_and(|word| word.byte_start == at) {
            next += 1;
        }
        let here = &words[from..next];
        if !is_ideograph(point) {
            // Outside ideographs the whole stretch is one token.
            let stretch = here
                .first()
                .map_or(point.len_utf8(), |word| word.word.len());
            visit(&batch[at..at + stretch], at);
            at += stretch;
            continue;
        }
        let after = at + point.len_utf8();
        match here {
            [] | [_] if at >= end => {
                end = here.first().map_or(after, |word| word.byte_end);
                visit(&batch[at..end], at);
            }
            _ => {
                for word in here.iter().filter(|word| word.byte_end > after) {
                    visit(word.word, at);
                    end = word.byte_end;
                }
            }
        }
        at = after;
    }
}

/// A single ideograph is a character, as it is for `words`.
pub(super) fn kind_of(word: &str) -> Kind {
    let mut points = word.chars();
    match (points.next(), points.next()) {
        (Some(point), None) if is_ideograph(point) => Kind::Character,
        _ => Kind::Word,
    }
}

/// The part of speech of what jieba is not asked about, in its terms: numbers, foreign words, and
/// all else.
fn part_of_word(word: &str) -> &'static str {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        "m"
    } else if word.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        "eng"
    } else {
        "x"
    }
}
