//! Tokens with their places in the original text.
//!
//! The tokens are those of a recipe with the same normalisation and the tokens `words`: words of scripts with
//! spaces, and single characters of all others. Each has a range of bytes of the text as it was given, which
//! never begins or ends inside a combining sequence that normalisation composes, and includes ignored
//! characters that follow directly, for example variation selectors.
//!
//! ASCII is read in blocks of 64 bytes, as in `tokenize`; the copy in lower case has the same positions as the
//! text, so the edges of a word are its place. Everything else is read character by character. A character that
//! depends on its neighbours is composed with the one before it and with those after it that do so too, which
//! gives the same characters as composing the whole text, because a composition never reaches across a
//! character that depends on nothing.
//!
//! Cost: less than one nanosecond per byte of ASCII, some nanoseconds per other character, and 16 bytes of memory
//! per token.

use std::ops::Range;

use super::charmap::{AsciiRules, AsciiTokens, CharMap, CharMapEntry};
use super::normalize::{self, CharacterRole};
use crate::Cpu;
use crate::arch::{Arch, BLOCK, Kernel};
use crate::error::{Error, ErrorKind, Result};
use crate::hash;
use crate::recipe::{NormalizationStep, Recipe, TokenKind};

/// Tokens of a text and their places, reused from text to text.
#[derive(Clone, Debug, Default)]
pub struct SpannedTokens {
    /// Value of every token: the code point of a character, or the hash of a word.
    values: Vec<u64>,
    /// First byte of every token in the text.
    starts: Vec<u32>,
    /// End of every token in the text.
    ends: Vec<u32>,
}

impl SpannedTokens {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value of every token, in the order of the text.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the bytes of the text from the first to the last of some tokens. An empty range of tokens has an
    /// empty range of bytes.
    pub fn byte_range(&self, tokens: Range<usize>) -> Range<usize> {
        if tokens.is_empty() {
            let at = self.starts.get(tokens.start).or(self.ends.last());
            let at = at.map_or(0, |&at| at as usize);
            at..at
        } else {
            self.starts[tokens.start] as usize..self.ends[tokens.end - 1] as usize
        }
    }

    /// Returns the number of tokens before a byte of the text; `None` if the byte is within a token.
    pub fn count_until(&self, byte: usize) -> Option<usize> {
        let count = self.starts.partition_point(|&it| (it as usize) < byte);
        let is_between = count == 0 || self.ends[count - 1] as usize <= byte;
        is_between.then_some(count)
    }

    /// Removes the tokens that begin within one of these ranges of bytes, which ascend and do not overlap.
    pub(crate) fn remove_within(&mut self, ranges: &[Range<usize>]) {
        let Some(first) = ranges.first() else {
            return;
        };
        let first_removed = self
            .starts
            .partition_point(|&start| (start as usize) < first.start);
        let mut ranges = ranges.iter().peekable();
        let mut to = first_removed;
        for from in first_removed..self.len() {
            let start = self.starts[from] as usize;
            while ranges.next_if(|range| range.end <= start).is_some() {}
            if ranges.peek().is_some_and(|range| range.contains(&start)) {
                continue;
            }
            self.values[to] = self.values[from];
            self.starts[to] = self.starts[from];
            self.ends[to] = self.ends[from];
            to += 1;
        }
        self.values.truncate(to);
        self.starts.truncate(to);
        self.ends.truncate(to);
    }

    /// Removes all tokens and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.starts.clear();
        self.ends.clear();
    }

    fn push(&mut self, value: u64, place: Range<usize>) {
        self.values.push(value);
        self.starts.push(place.start as u32);
        self.ends.push(place.end as u32);
    }
}

/// Cuts texts into tokens with places, by the normalisation of one recipe.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::text::{SpanTokenizer, SpannedTokens};
///
/// let tokenizer = SpanTokenizer::new(&Recipe::default());
/// let mut tokens = SpannedTokens::default();
/// let text = "Ａ boat,\u{301} and 船。";
/// tokenizer.tokenize_text(text, &mut tokens)?;
/// let words: Vec<_> = (0..tokens.len()).map(|at| &text[tokens.byte_range(at..at + 1)]).collect();
/// assert_eq!(words, ["Ａ", "boat", ",\u{301}", "and", "船"]);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpanTokenizer {
    recipe: Recipe,
    map: std::sync::Arc<CharMap>,
    /// `true` if ASCII letters and digits are words and nothing else in ASCII is; then blocks can be read.
    reads_blocks: bool,
    folds: bool,
    cpu: Cpu,
}

impl SpanTokenizer {
    /// Creates a tokenizer with the normalisation of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self::with_cpu(recipe, Cpu::detect_best())
    }

    /// Creates a tokenizer that uses the given instructions. The tokens are the same.
    pub fn with_cpu(recipe: &Recipe, cpu: Cpu) -> Self {
        let recipe = Recipe {
            normalize: recipe.normalize.clone(),
            tokens: TokenKind::Words,
            ..Recipe::default()
        };
        let map = CharMap::shared_map(&recipe);
        let words = map
            .ascii_rules()
            .filter(|recipe| recipe.tokens == AsciiTokens::Words);
        Self {
            recipe,
            map,
            reads_blocks: words.is_some(),
            folds: words.is_some_and(|AsciiRules { folds, .. }| folds),
            cpu,
        }
    }

    /// Replaces `tokens` by those of a text.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the text has 4 GiB or more.
    pub fn tokenize_text(&self, text: &str, tokens: &mut SpannedTokens) -> Result<()> {
        self.tokenize_text_within(text, usize::MAX, tokens)
    }

    /// Replaces `tokens` by those of a text, as [`tokenize_text`](Self::tokenize_text) does, if they are at most
    /// `max_tokens`. It stops soon after more of them were read.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the text has 4 GiB or more; [`ErrorKind::TooCostly`] if it has more tokens. There are
    /// no tokens then.
    pub fn tokenize_text_within(
        &self,
        text: &str,
        max_tokens: usize,
        tokens: &mut SpannedTokens,
    ) -> Result<()> {
        if text.len() >= u32::MAX as usize - BLOCK {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "a text of {} bytes is too long: passages are found in texts below 4 GiB",
                    text.len()
                ),
            ));
        }
        tokens.clear();
        self.cpu.run(SpanKernel {
            tokenizer: self,
            text,
            max_tokens,
            tokens,
        });
        if tokens.len() <= max_tokens {
            return Ok(());
        }
        tokens.clear();
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "a text of {} bytes has more than {max_tokens} words and single characters, the limit for the memory \
                 of a search for passages: send a shorter text",
                text.len()
            ),
        ))
    }
}

struct SpanKernel<'a> {
    tokenizer: &'a SpanTokenizer,
    text: &'a str,
    max_tokens: usize,
    tokens: &'a mut SpannedTokens,
}

impl Kernel for SpanKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let composes_first = self.tokenizer.recipe.has_step(NormalizationStep::Nfkc)
            && !self.text.is_ascii()
            && self.text.chars().any(normalize::has_iota_subscript);
        let mut run = SpanRun {
            arch,
            tokenizer: self.tokenizer,
            text: self.text,
            max_tokens: self.max_tokens,
            tokens: self.tokens,
            word: Vec::new(),
            place: None,
            composes_first,
        };
        if !self.tokenizer.reads_blocks {
            run.read_characters(0, false);
        } else if self.tokenizer.folds {
            run.read_blocks::<true>();
        } else {
            run.read_blocks::<false>();
        }
    }
}

struct SpanRun<'a, A> {
    arch: A,
    tokenizer: &'a SpanTokenizer,
    text: &'a str,
    /// Number of tokens beyond which reading stops.
    max_tokens: usize,
    tokens: &'a mut SpannedTokens,
    /// Normalised bytes of the open word.
    word: Vec<u8>,
    /// Place of the open word; `None` if no word is open.
    place: Option<Range<usize>>,
    /// `true` if clusters are composed before their characters are replaced.
    composes_first: bool,
}

/// Bytes of text that are read in blocks before their words are hashed. They stay in the first-level cache.
const STRETCH_BYTES: usize = 1024;

/// No character below this one composes with another, and of these only the soft hyphen is ignored.
const FIRST_NEIGHBOUR: char = '\u{ad}';

/// Number of consecutive ASCII bytes after which reading character by character ends.
const ASCII_STRETCH: usize = 8;

impl<A: Arch> SpanRun<'_, A> {
    #[inline(always)]
    fn read_blocks<const FOLD: bool>(&mut self) {
        let mut copy = [0; STRETCH_BYTES + BLOCK + hash::WORD_PADDING];
        let mut edges = [0; STRETCH_BYTES + BLOCK];
        let mut at = 0;
        while at < self.text.len() && !self.has_too_many() {
            at = self.read_stretch::<FOLD>(at, &mut copy, &mut edges);
        }
    }

    fn has_too_many(&self) -> bool {
        self.tokens.len() > self.max_tokens
    }

    /// Reads ASCII from `start` on, up to a stretch, and the other characters behind it if there are any.
    /// Returns where it stopped.
    #[inline(always)]
    fn read_stretch<const FOLD: bool>(
        &mut self,
        start: usize,
        copy: &mut [u8; STRETCH_BYTES + BLOCK + hash::WORD_PADDING],
        edges: &mut [u32; STRETCH_BYTES + BLOCK],
    ) -> usize {
        let bytes = self.text.as_bytes();
        let (mut at, mut count, mut open) = (start, 0, false);
        while at < bytes.len() && at - start < STRETCH_BYTES {
            let rest = &bytes[at..];
            let into = copy[at - start..].first_chunk_mut::<BLOCK>();
            let into = into.expect("the copy is longer than a stretch by a block");
            let (masks, length) = match rest.first_chunk::<BLOCK>() {
                Some(block) => (self.arch.ascii_block::<FOLD>(block, into), BLOCK),
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    (self.arch.ascii_block::<FOLD>(&block, into), rest.len())
                }
            };
            let ascii = (masks.non_ascii.trailing_zeros() as usize).min(length);
            if ascii == 0 {
                break;
            }
            let valid = u64::MAX >> (BLOCK - ascii);
            let word = masks.word & valid;
            let changes = (word ^ (word << 1 | u64::from(open))) & valid;
            let room = edges[count..].first_chunk_mut::<BLOCK>();
            let room = room.expect("a stretch has at most one edge for each byte");
            count += self.arch.positions(changes, (at - start) as u32, room);
            open = word >> (ascii - 1) & 1 == 1;
            at += ascii;
            if ascii < length {
                break;
            }
        }
        let ends_text = at == bytes.len();
        let before_other = !ends_text && bytes[at] >= 0x80;
        let (pairs, rest) = edges[..count].as_chunks::<2>();
        self.push_words(start, copy, pairs);
        match rest {
            [] if before_other => {
                // A mark belongs to the character before it, even if that is no letter.
                let composes = at > start && self.find_cluster_end(at) > at;
                self.read_characters(at - usize::from(composes), true)
            }
            [] => at,
            &[word] if ends_text => {
                self.push_words(start, copy, &[[word, (at - start) as u32]]);
                at
            }
            &[word] if before_other || word == 0 => {
                self.read_characters(start + word as usize, true)
            }
            // The next stretch begins with the word.
            &[word] => start + word as usize,
            _ => unreachable!("a remainder of pairs has at most one entry"),
        }
    }

    #[inline(always)]
    fn push_words(&mut self, start: usize, copy: &[u8], words: &[[u32; 2]]) {
        let count = self.tokens.len();
        let SpannedTokens {
            values,
            starts,
            ends,
        } = &mut *self.tokens;
        values.resize(count + words.len(), 0);
        starts.resize(count + words.len(), 0);
        ends.resize(count + words.len(), 0);
        let places = starts[count..].iter_mut().zip(&mut ends[count..]);
        for ((value, (first, end)), &[from, to]) in
            values[count..].iter_mut().zip(places).zip(words)
        {
            *value = hash::hash_word_in(copy, from as usize, (to - from) as usize);
            *first = from + start as u32;
            *end = to + start as u32;
        }
    }

    /// Reads characters from `at` on. With `until_ascii` it stops before the next run of ASCII at which no word
    /// is open. Returns where it stopped; no word is open then.
    fn read_characters(&mut self, mut at: usize, until_ascii: bool) -> usize {
        let first = at;
        while !self.has_too_many()
            && let Some(point) = self.text[at..].chars().next()
        {
            if until_ascii
                && self.place.is_none()
                && at > first
                && is_ascii_stretch(self.text.as_bytes(), at)
            {
                return at;
            }
            if self.place.is_none() {
                let end = self.read_wide_characters(at);
                if end > at {
                    at = end;
                    continue;
                }
            }
            let after = at + point.len_utf8();
            // Ignored characters were read ahead from the character before them.
            let end = if self.has_entry(point, CharMapEntry::IGNORE) {
                after
            } else {
                self.find_cluster_end(after)
            };
            if end > after || self.composes(point) {
                self.read_cluster(at..end);
            } else {
                self.visit_entries(point, |run, entry| run.apply_entry(entry, at..after));
            }
            at = end;
        }
        self.close_word();
        at
    }

    /// Reads three-byte characters that are tokens of their own or separators, as most of a Chinese text is. Returns
    /// where it stopped: before the first other character and the one before that, which may depend on it.
    #[inline]
    fn read_wide_characters(&mut self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let map = &*self.tokenizer.map;
        let wide_entry = |at: usize| {
            let &[first, second, third] = bytes.get(at..)?.first_chunk::<3>()?;
            let point = (u32::from(first) & 0x0f) << 12
                | (u32::from(second) & 0x3f) << 6
                | u32::from(third) & 0x3f;
            let entry = map.basic_entry(point);
            let is_single = matches!(
                entry.entry_kind(),
                CharMapEntry::CHARACTER | CharMapEntry::BREAK
            );
            (first & 0xf0 == 0xe0 && is_single).then_some(entry)
        };
        let mut entry = wide_entry(at);
        while let Some(this) = entry {
            let next = wide_entry(at + 3);
            if next.is_none() || self.has_too_many() {
                break;
            }
            if this.entry_kind() == CharMapEntry::CHARACTER {
                self.tokens.push(u64::from(this.entry_value()), at..at + 3);
            }
            at += 3;
            entry = next;
        }
        at
    }

    /// Returns the end of the cluster whose first character ends at `end`: behind the last composing character
    /// of those that follow, with only ignored characters between them.
    #[inline]
    fn find_cluster_end(&self, after: usize) -> usize {
        let mut end = after;
        for (at, point) in self.text[after..].char_indices() {
            if self.composes(point) {
                end = after + at + point.len_utf8();
            } else if !self.has_entry(point, CharMapEntry::IGNORE) {
                break;
            }
        }
        end
    }

    #[inline]
    fn composes(&self, point: char) -> bool {
        self.has_entry(point, CharMapEntry::COMPOSE)
    }

    /// Returns `true` if an entry of a character has this kind.
    #[inline]
    fn has_entry(&self, point: char, kind: u32) -> bool {
        if point < FIRST_NEIGHBOUR {
            return false;
        }
        let map = &*self.tokenizer.map;
        if point as u32 <= 0xffff {
            return map.basic_entry(point as u32).entry_kind() == kind;
        }
        let mut has = false;
        map.visit_supplementary(point, |entry| has |= entry.entry_kind() == kind);
        has
    }

    #[inline]
    fn visit_entries(&mut self, point: char, mut visit: impl FnMut(&mut Self, CharMapEntry)) {
        let map = &*self.tokenizer.map;
        if point as u32 > 0xffff {
            return map.visit_supplementary(point, |entry| visit(self, entry));
        }
        let entry = map.basic_entry(point as u32);
        if entry.entry_kind() == CharMapEntry::EXPAND {
            let expansion = map.expansion_at(entry.entry_value());
            expansion.iter().for_each(|&entry| visit(self, entry));
        } else {
            visit(self, entry);
        }
    }

    #[inline]
    fn apply_entry(&mut self, entry: CharMapEntry, place: Range<usize>) {
        let value = entry.entry_value();
        match entry.entry_kind() {
            CharMapEntry::WORD => {
                let point = char::from_u32(value).expect("the table holds characters only");
                self.apply_role(CharacterRole::Word, point, place);
            }
            CharMapEntry::CHARACTER => {
                self.close_word();
                self.tokens.push(u64::from(value), place);
            }
            CharMapEntry::IGNORE => self.extend_last(place),
            _ => self.close_word(),
        }
    }

    fn apply_role(&mut self, role: CharacterRole, point: char, place: Range<usize>) {
        match role {
            CharacterRole::Word => {
                let mut buffer = [0; 4];
                self.word.extend(point.encode_utf8(&mut buffer).as_bytes());
                match &mut self.place {
                    Some(word) => word.end = place.end,
                    None => self.place = Some(place),
                }
            }
            CharacterRole::Character => {
                self.close_word();
                self.tokens.push(u64::from(u32::from(point)), place);
            }
            CharacterRole::Ignore => self.extend_last(place),
            CharacterRole::Break | CharacterRole::Space => self.close_word(),
        }
    }

    /// Adds an ignored character to the token directly before it.
    fn extend_last(&mut self, place: Range<usize>) {
        if let Some(word) = &mut self.place {
            if word.end == place.start {
                word.end = place.end;
            }
        } else if let Some(end) = self.tokens.ends.last_mut()
            && *end as usize == place.start
        {
            *end = place.end as u32;
        }
    }

    fn close_word(&mut self) {
        if let Some(place) = self.place.take() {
            self.tokens.push(hash::hash_word(&self.word), place);
            self.word.clear();
        }
    }

    /// Reads characters that are composed together.
    #[cold]
    fn read_cluster(&mut self, place: Range<usize>) {
        let recipe = &self.tokenizer.recipe;
        let mut characters = Vec::new();
        let cluster = &self.text[place.clone()];
        normalize::compose_characters(recipe, cluster, self.composes_first, &mut characters);
        for point in characters {
            let role = normalize::character_role(recipe, point);
            self.apply_role(role, point, place.clone());
        }
    }
}

#[inline(always)]
fn is_ascii_stretch(bytes: &[u8], at: usize) -> bool {
    match bytes[at..].first_chunk::<ASCII_STRETCH>() {
        Some(chunk) => chunk.is_ascii(),
        None => bytes[at..].is_ascii(),
    }
}
