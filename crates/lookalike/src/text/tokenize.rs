//! The fast path: from text to token values in one pass.
//!
//! ASCII is read in blocks of 64 bytes. The block is copied in lower case, a bit mask marks the bytes that
//! belong to words, and the edges of the mask are the ends of the words. All other text is decoded character
//! by character and looked up in the table of the recipe. Words are copied in normalised form into one buffer
//! and hashed there, many at a time.
//!
//! Texts in which a character depends on its neighbours are left to the definition in `normalize`.

use super::charmap::{AsciiRules, AsciiTokens, CharMap, CharMapEntry};
use crate::arch::{Arch, BLOCK, Kernel};
use crate::hash;

/// Buffers that are reused from text to text.
#[derive(Debug, Default)]
pub(super) struct TokenBuffers {
    /// Normalised bytes of words, with meaningless bytes between them.
    words: Vec<u8>,
    /// Start and end of each word in `words`, alternating.
    edges: Vec<u32>,
    /// Token values.
    pub(super) tokens: Vec<u64>,
}

/// Number of edges after which words are hashed.
const EDGES_PER_BATCH: usize = 4096;

/// Bytes that must be free behind the words before a write: a block, and the bytes that the hash may read.
const FREE_BYTES: usize = BLOCK + hash::WORD_PADDING;

/// Number of consecutive ASCII bytes after which reading character by character ends.
const ASCII_STRETCH: usize = 8;

impl TokenBuffers {
    /// Frees buffers that grew for an unusually long text.
    pub(super) fn trim_buffers(&mut self) {
        const KEPT_CAPACITY: usize = 1 << 20;
        if self.words.capacity() > KEPT_CAPACITY {
            self.words = Vec::new();
        }
        if self.tokens.capacity() > KEPT_CAPACITY {
            self.tokens = Vec::new();
        }
    }
}

/// Fills `buffers.tokens` with the token values of `text`. The output is `false` if the text has to be
/// composed as a whole.
pub(super) struct TokenizeKernel<'a> {
    pub(super) map: &'a CharMap,
    pub(super) ascii: Option<AsciiRules>,
    pub(super) text: &'a str,
    pub(super) buffers: &'a mut TokenBuffers,
}

impl Kernel for TokenizeKernel<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) -> bool {
        let Self {
            map,
            ascii,
            text,
            buffers,
        } = self;
        buffers.tokens.clear();
        buffers.tokens.reserve(text.len() / 2 + 16);
        buffers
            .words
            .resize((text.len() + FREE_BYTES).max(buffers.words.len()), 0);
        buffers.edges.resize(EDGES_PER_BATCH + 4 * BLOCK, 0);
        let mut run = TokenizerRun {
            arch,
            map,
            ascii,
            words: &mut buffers.words,
            end: 0,
            edges: &mut buffers.edges,
            edge_count: 0,
            open: false,
            space_due: false,
            tokens: &mut buffers.tokens,
        };
        let complete = match ascii {
            Some(AsciiRules {
                folds,
                tokens: AsciiTokens::Words,
            }) if folds => run.read_blocks::<true>(text),
            Some(AsciiRules {
                tokens: AsciiTokens::Words,
                ..
            }) => run.read_blocks::<false>(text),
            _ => run
                .characters(text.as_bytes(), 0, text.len(), false)
                .is_some(),
        };
        if complete {
            run.close_word();
            run.hash_ended_words();
        }
        complete
    }
}

struct TokenizerRun<'a, A> {
    arch: A,
    map: &'a CharMap,
    ascii: Option<AsciiRules>,
    words: &'a mut Vec<u8>,
    /// End of the bytes written to `words`.
    end: usize,
    edges: &'a mut Vec<u32>,
    edge_count: usize,
    /// `true` if the last edge is the start of a word whose end has not been seen.
    open: bool,
    space_due: bool,
    tokens: &'a mut Vec<u64>,
}

impl<A: Arch> TokenizerRun<'_, A> {
    /// Reads the whole text. Returns `false` if it has to be composed as a whole.
    #[inline(always)]
    fn read_blocks<const FOLD: bool>(&mut self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let ascii = match rest.first_chunk::<BLOCK>() {
                Some(block) => self.read_block::<FOLD>(block, BLOCK),
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    self.read_block::<FOLD>(&block, rest.len())
                }
            };
            at += ascii;
            if at < bytes.len() && bytes[at] >= 0x80 {
                match self.characters(bytes, at, bytes.len(), true) {
                    Some(end) => at = end,
                    None => return false,
                }
            }
        }
        true
    }

    /// Reads the ASCII bytes at the start of a block of `length` bytes, and returns their number.
    #[inline(always)]
    fn read_block<const FOLD: bool>(&mut self, block: &[u8; BLOCK], length: usize) -> usize {
        self.reserve_word_bytes();
        let copy = self.words[self.end..].first_chunk_mut::<BLOCK>();
        let copy = copy.expect("room was made");
        let masks = self.arch.ascii_block::<FOLD>(block, copy);
        let ascii = (masks.non_ascii.trailing_zeros() as usize).min(length);
        if ascii == 0 {
            return 0;
        }
        let valid = u64::MAX >> (BLOCK - ascii);
        let word = masks.word & valid;
        let edges = (word ^ (word << 1 | u64::from(self.open))) & valid;
        let room = self.edges[self.edge_count..].first_chunk_mut::<BLOCK>();
        let room = room.expect("the edges are flushed before they run out of room");
        self.edge_count += self.arch.positions(edges, self.end as u32, room);
        self.open = word >> (ascii - 1) & 1 == 1;
        self.end += ascii;
        if self.edge_count >= EDGES_PER_BATCH {
            self.hash_ended_words();
        }
        ascii
    }

    /// Reads characters from `at` to `end`, or with `until_ascii` up to the next run of ASCII. Returns the
    /// position at which it stopped, or `None` if the text has to be composed as a whole.
    #[inline(always)]
    fn characters(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        end: usize,
        until_ascii: bool,
    ) -> Option<usize> {
        while at < end {
            if !until_ascii && self.edge_count == 0 && bytes[at] < 0x80 {
                at += self.narrow_characters(&bytes[at..end]);
                if at == end {
                    break;
                }
            }
            let (point, length) = decode_character(bytes, at);
            if point < 0x80 && until_ascii && is_ascii_stretch(bytes, at) {
                break;
            }
            at += length;
            if point > 0xffff {
                if !self.push_supplementary(point) {
                    return None;
                }
                continue;
            }
            let entry = self.map.basic_entry(point);
            if entry.entry_kind() == CharMapEntry::CHARACTER
                && self.edge_count == 0
                && !self.space_due
            {
                self.tokens.push(u64::from(entry.entry_value()));
                at += self.wide_characters(&bytes[at..]);
            } else if !self.apply_entry(entry) {
                return None;
            }
        }
        Some(at)
    }

    /// Reads three-byte characters at the start of `bytes` that are tokens of their own, together with
    /// separators and ignored characters between them, which have the same effect here. Most of a Chinese
    /// text is of this kind. Returns the number of bytes read.
    #[inline(always)]
    fn wide_characters(&mut self, bytes: &[u8]) -> usize {
        const SINGLE_CLASSES: u32 =
            1 << CharMapEntry::CHARACTER | 1 << CharMapEntry::BREAK | 1 << CharMapEntry::IGNORE;
        const AT_ONCE: usize = 16;
        let entries = self.map.basic_entries();
        let mut at = 0;
        for characters in bytes.as_chunks::<3>().0.chunks(AT_ONCE) {
            let start = self.tokens.len();
            self.tokens.resize(start + AT_ONCE, 0);
            let tokens = self.tokens[start..].first_chunk_mut::<AT_ONCE>();
            let tokens = tokens.expect("the room was just made");
            let (mut read, mut written) = (0, 0);
            for &[first, second, third] in characters {
                let point = (usize::from(first) & 0x0f) << 12
                    | (usize::from(second) & 0x3f) << 6
                    | usize::from(third) & 0x3f;
                let entry = entries[point];
                if first & 0xf0 != 0xe0 || SINGLE_CLASSES >> entry.entry_kind() & 1 == 0 {
                    break;
                }
                // The next token overwrites the entry of a character that is not a token.
                tokens[written % AT_ONCE] = u64::from(entry.entry_value());
                written += usize::from(entry.entry_kind() == CharMapEntry::CHARACTER);
                read += 1;
            }
            self.tokens.truncate(start + written);
            at += 3 * read;
            if read < characters.len() {
                break;
            }
        }
        at
    }

    /// Reads ASCII characters at the start of `bytes` that are tokens of their own, white space, separators
    /// or ignored. Returns the number of bytes read.
    #[inline(always)]
    fn narrow_characters(&mut self, bytes: &[u8]) -> usize {
        if let Some(AsciiRules {
            folds,
            tokens: AsciiTokens::Characters { spaces },
        }) = self.ascii
        {
            return if folds {
                self.narrow_blocks::<true>(bytes, spaces)
            } else {
                self.narrow_blocks::<false>(bytes, spaces)
            };
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if !byte.is_ascii() {
                return at;
            }
            let entry = self.map.basic_entry(u32::from(byte));
            match entry.entry_kind() {
                CharMapEntry::CHARACTER => {
                    if std::mem::take(&mut self.space_due) {
                        self.tokens.push(u64::from(b' '));
                    }
                    self.tokens.push(u64::from(entry.entry_value()));
                }
                CharMapEntry::SPACE => self.space_due = !self.tokens.is_empty(),
                CharMapEntry::BREAK | CharMapEntry::IGNORE => {}
                _ => return at,
            }
        }
        bytes.len()
    }

    /// Does the same a block at a time, for recipes in which only letters and digits are tokens.
    #[inline(always)]
    fn narrow_blocks<const FOLD: bool>(&mut self, bytes: &[u8], spaces: bool) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let read = match rest.first_chunk::<BLOCK>() {
                Some(block) => self.narrow_block::<FOLD>(block, BLOCK, spaces),
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    self.narrow_block::<FOLD>(&block, rest.len(), spaces)
                }
            };
            at += read;
            if read < BLOCK {
                break;
            }
        }
        at
    }

    /// Reads the ASCII bytes at the start of a block of `length` bytes, and returns their number.
    #[inline(always)]
    fn narrow_block<const FOLD: bool>(
        &mut self,
        block: &[u8; BLOCK],
        length: usize,
        spaces: bool,
    ) -> usize {
        /// Number of letters that are written at a time, even if fewer remain.
        const AT_ONCE: usize = 8;
        let mut copy = [0; BLOCK + AT_ONCE];
        let head = copy.first_chunk_mut::<BLOCK>().expect("it is longer");
        let masks = self.arch.ascii_block::<FOLD>(block, head);
        let ascii = (masks.non_ascii.trailing_zeros() as usize).min(length);
        if ascii == 0 {
            return 0;
        }
        let valid = u64::MAX >> (BLOCK - ascii);
        let mut word = masks.word & valid;
        let space = if spaces { masks.space & valid } else { 0 };
        let start = self.tokens.len();
        // White space anywhere between two words carries a bit to the start of the second word.
        let carried = (!word & valid).wrapping_add(space);
        let mut due = carried.wrapping_add(u64::from(self.space_due)) & word & !(word << 1);
        if start == 0 {
            due &= !(word & word.wrapping_neg());
        }
        // The bits behind the last word.
        let behind = if word == 0 {
            valid
        } else {
            valid & !(u64::MAX >> word.leading_zeros())
        };
        let still_due = word == 0 && self.space_due;
        self.tokens.resize(start + 2 * BLOCK + AT_ONCE, 0);
        let tokens = &mut self.tokens[start..];
        let mut count = 0;
        while word != 0 {
            let from = word.trailing_zeros() as usize;
            let run = (!(word >> from)).trailing_zeros() as usize;
            tokens[count] = u64::from(b' ');
            count += (due >> from & 1) as usize;
            for done in (0..run).step_by(AT_ONCE) {
                let letters = copy[from + done..].first_chunk::<AT_ONCE>();
                let letters = letters.expect("the copy is longer than the block");
                let tokens = tokens[count + done..].first_chunk_mut::<AT_ONCE>();
                let tokens = tokens.expect("room was made");
                *tokens = letters.map(u64::from);
            }
            count += run;
            word &= u64::MAX.checked_shl((from + run) as u32).unwrap_or(0);
        }
        self.tokens.truncate(start + count);
        self.space_due = (still_due || space & behind != 0) && !self.tokens.is_empty();
        ascii
    }

    /// Processes an entry. Returns `false` if the text has to be composed as a whole.
    #[inline(always)]
    fn apply_entry(&mut self, entry: CharMapEntry) -> bool {
        match entry.entry_kind() {
            CharMapEntry::WORD => self.push_word_character(entry.entry_value()),
            CharMapEntry::BREAK => self.close_word(),
            CharMapEntry::CHARACTER => self.push_character(entry.entry_value()),
            CharMapEntry::IGNORE => {}
            CharMapEntry::SPACE => self.space_due = !self.tokens.is_empty(),
            CharMapEntry::EXPAND => self.expand_entry(entry),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn push_character(&mut self, point: u32) {
        self.close_word();
        if self.edge_count > 0 {
            self.hash_ended_words();
        }
        if std::mem::take(&mut self.space_due) {
            self.tokens.push(u64::from(b' '));
        }
        self.tokens.push(u64::from(point));
    }

    /// Ensures that words can be written. Their buffer may have to grow beyond the length of the text,
    /// because normalisation can replace a character by a longer one or by several.
    #[inline(always)]
    fn reserve_word_bytes(&mut self) {
        if self.words.len() - self.end < FREE_BYTES {
            self.grow_words();
        }
    }

    #[cold]
    fn grow_words(&mut self) {
        self.words.resize(self.words.len() * 3 / 2 + FREE_BYTES, 0);
    }

    #[inline(always)]
    fn push_word_character(&mut self, point: u32) {
        self.reserve_word_bytes();
        if !self.open {
            self.push_edge();
            self.open = true;
        }
        if point < 0x80 {
            self.words[self.end] = point as u8;
            self.end += 1;
        } else {
            let point = char::from_u32(point).expect("the table holds characters only");
            self.end += point.encode_utf8(&mut self.words[self.end..]).len();
        }
    }

    /// Ends the open word, if there is one.
    #[inline(always)]
    fn close_word(&mut self) {
        if self.open {
            self.push_edge();
            self.open = false;
        }
    }

    #[inline(always)]
    fn push_edge(&mut self) {
        if self.edge_count >= EDGES_PER_BATCH {
            self.hash_ended_words();
        }
        self.edges[self.edge_count] = self.end as u32;
        self.edge_count += 1;
    }

    /// Hashes the words that have ended.
    #[inline(always)]
    fn hash_ended_words(&mut self) {
        let (pairs, open) = self.edges[..self.edge_count].as_chunks::<2>();
        let count = self.tokens.len();
        self.tokens.resize(count + pairs.len(), 0);
        for (token, &[start, end]) in self.tokens[count..].iter_mut().zip(pairs) {
            *token = hash::hash_word_in(self.words, start as usize, (end - start) as usize);
        }
        let open = open.first().copied();
        self.edge_count = usize::from(open.is_some());
        if let Some(start) = open {
            self.edges[0] = start;
        }
    }

    #[cold]
    fn expand_entry(&mut self, entry: CharMapEntry) {
        let map = self.map;
        let expansion = map.expansion_at(entry.entry_value());
        for &entry in expansion {
            self.apply_entry(entry);
        }
    }

    #[cold]
    fn push_supplementary(&mut self, point: u32) -> bool {
        let point = char::from_u32(point).expect("valid UTF-8 holds characters only");
        let map = self.map;
        let mut complete = true;
        map.visit_supplementary(point, |entry| complete &= self.apply_entry(entry));
        complete
    }
}

#[inline(always)]
fn is_ascii_stretch(bytes: &[u8], at: usize) -> bool {
    match bytes[at..].first_chunk::<ASCII_STRETCH>() {
        Some(chunk) => u64::from_le_bytes(*chunk) & HIGH_BITS == 0,
        None => bytes[at..].is_ascii(),
    }
}

const HIGH_BITS: u64 = u64::from_le_bytes([0x80; ASCII_STRETCH]);

/// Decodes the character at `at` in valid UTF-8, and returns it with its length.
#[inline(always)]
fn decode_character(bytes: &[u8], at: usize) -> (u32, usize) {
    let first = u32::from(bytes[at]);
    let tail = |offset: usize| u32::from(bytes[at + offset]) & 0x3f;
    match first {
        0xe0..=0xef => ((first & 0x0f) << 12 | tail(1) << 6 | tail(2), 3),
        0..=0x7f => (first, 1),
        0x80..=0xdf => ((first & 0x1f) << 6 | tail(1), 2),
        _ => (
            (first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
            4,
        ),
    }
}
