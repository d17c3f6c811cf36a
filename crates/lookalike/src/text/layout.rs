//! Normalised text as strings: the pieces that are tokens already, and the runs that jieba has to cut.
//!
//! The fast path in `tokenize` computes values and drops the strings. This module keeps them for everything
//! that needs the spelling of tokens: segmentation, filters, tables of terms. It reads character by character
//! with the same table, at some hundreds of MB/s. Texts in which a character depends on its neighbours go
//! through the definition.
//!
//! For jieba, ideographs and the ASCII words that touch them form one *run*, because its dictionary has words
//! such as `4s店`. Everything else is as with the tokens `words`: a word of a script with spaces, or a
//! character that is a token of its own. Punctuation and white space end a run, so no word reaches across
//! them.

use super::charmap::{CharMap, CharMapEntry};
use super::normalize::{self, CharacterRole};
use crate::recipe::{Recipe, TokenKind};

/// The kind of a piece of normalised text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// A word.
    Word,
    /// A character that is a token of its own.
    Character,
    /// Ideographs and the ASCII words among them, for jieba to cut.
    Run,
}

/// Normalised text in pieces.
#[derive(Debug, Default)]
pub(super) struct TextLayout {
    text: String,
    /// Start and end of every piece in `text`, and its kind.
    pieces: Vec<(usize, usize, PieceKind)>,
    /// Start of the open run.
    run: Option<usize>,
    /// `true` if the open run contains an ideograph.
    run_is_chinese: bool,
    /// Start of the open word.
    word: Option<usize>,
    word_is_ascii: bool,
    space_due: bool,
    joins: bool,
}

/// Returns `true` for an ideograph of the blocks that jieba knows and cuts. All others are tokens of their
/// own.
pub(super) fn is_ideograph(point: char) -> bool {
    matches!(
        point,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2ebef}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

/// Returns the length in bytes of the leading ideographs of the main block that the table leaves unchanged.
#[inline]
fn count_settled_bytes(map: &CharMap, text: &str) -> usize {
    let stays = |&&[first, second, third]: &&[u8; 3]| {
        let point = (u32::from(first) & 0x0f) << 12
            | (u32::from(second) & 0x3f) << 6
            | u32::from(third) & 0x3f;
        let entry = map.basic_entry(point);
        matches!(first, 0xe4..=0xe9)
            && (0x4e00..=0x9fff).contains(&point)
            && entry.entry_kind() == CharMapEntry::CHARACTER
            && entry.entry_value() == point
    };
    3 * text
        .as_bytes()
        .as_chunks::<3>()
        .0
        .iter()
        .take_while(stays)
        .count()
}

impl TextLayout {
    /// Fills the layout with a text without markup.
    pub(super) fn lay_out_text(&mut self, recipe: &Recipe, map: &CharMap, text: &str) {
        self.clear_pieces(recipe);
        if !self.all_mapped(map, text) {
            self.clear_pieces(recipe);
            let mut characters = Vec::new();
            normalize::characters(recipe, text, &mut characters);
            for point in characters {
                self.apply_role(normalize::character_role(recipe, point), point);
            }
        }
        self.close_pieces();
    }

    /// Returns the pieces in the order of the text.
    pub(super) fn pieces(&self) -> impl ExactSizeIterator<Item = (&str, PieceKind)> {
        let piece =
            |&(start, end, kind): &(usize, usize, PieceKind)| (&self.text[start..end], kind);
        self.pieces.iter().map(piece)
    }

    fn clear_pieces(&mut self, recipe: &Recipe) {
        const KEPT_CAPACITY: usize = 1 << 20;
        if self.text.capacity() > KEPT_CAPACITY {
            *self = Self::default();
        }
        self.text.clear();
        self.pieces.clear();
        (self.run, self.word, self.space_due) = (None, None, false);
        self.run_is_chinese = false;
        self.joins = recipe.tokens == TokenKind::Jieba;
    }

    /// Adds a text with the table of its recipe. Returns `false` if it has to be composed as a whole.
    fn all_mapped(&mut self, map: &CharMap, text: &str) -> bool {
        let mut rest = text;
        loop {
            if self.joins {
                let (stretch, behind) = rest.split_at(count_settled_bytes(map, rest));
                self.ideographs(stretch);
                rest = behind;
            }
            let mut points = rest.chars();
            match points.next() {
                None => return true,
                Some(point) if !self.push_mapped(map, point) => return false,
                Some(_) => rest = points.as_str(),
            }
        }
    }

    /// Adds ideographs that stay unchanged.
    fn ideographs(&mut self, stretch: &str) {
        if !stretch.is_empty() {
            self.close_word();
            self.run.get_or_insert(self.text.len());
            self.run_is_chinese = true;
            self.text.push_str(stretch);
        }
    }

    /// Adds a character with the table of its recipe. Returns `false` if the text has to be composed as a
    /// whole.
    #[inline]
    fn push_mapped(&mut self, map: &CharMap, point: char) -> bool {
        if point as u32 > 0xffff {
            let mut complete = true;
            map.visit_supplementary(point, |entry| complete &= self.apply_entry(map, entry));
            return complete;
        }
        self.apply_entry(map, map.basic_entry(point as u32))
    }

    #[inline]
    fn apply_entry(&mut self, map: &CharMap, entry: CharMapEntry) -> bool {
        let value =
            || char::from_u32(entry.entry_value()).expect("the table holds characters only");
        match entry.entry_kind() {
            CharMapEntry::WORD => self.apply_role(CharacterRole::Word, value()),
            CharMapEntry::CHARACTER => self.apply_role(CharacterRole::Character, value()),
            CharMapEntry::BREAK => self.close_pieces(),
            CharMapEntry::IGNORE => {}
            CharMapEntry::SPACE => self.apply_role(CharacterRole::Space, ' '),
            CharMapEntry::EXPAND => return self.expand_entry(map, entry),
            _ => return false,
        }
        true
    }

    /// Adds an expansion. This is not inlined, so that [`apply_entry`](Self::apply_entry), which calls
    /// it, can be.
    #[inline(never)]
    fn expand_entry(&mut self, map: &CharMap, entry: CharMapEntry) -> bool {
        let mut all = map.expansion_at(entry.entry_value()).iter();
        all.all(|&entry| self.apply_entry(map, entry))
    }

    #[inline]
    fn apply_role(&mut self, role: CharacterRole, point: char) {
        match role {
            CharacterRole::Word => self.push_word_character(point),
            CharacterRole::Character => self.push_character(point),
            CharacterRole::Space => self.space_due = !self.pieces.is_empty(),
            CharacterRole::Break => self.close_pieces(),
            CharacterRole::Ignore => {}
        }
    }

    #[inline]
    fn push_word_character(&mut self, point: char) {
        if self.word.is_none() {
            self.word = Some(self.text.len());
            self.word_is_ascii = true;
        }
        self.word_is_ascii &= point.is_ascii();
        self.text.push(point);
    }

    #[inline]
    fn push_character(&mut self, point: char) {
        self.close_word();
        if self.joins && is_ideograph(point) {
            self.run.get_or_insert(self.text.len());
            self.run_is_chinese = true;
            self.text.push(point);
            return;
        }
        self.close_word_run(self.text.len());
        if std::mem::take(&mut self.space_due) {
            self.push_single(' ');
        }
        self.push_single(point);
    }

    fn push_single(&mut self, point: char) {
        let start = self.text.len();
        self.text.push(point);
        self.pieces
            .push((start, self.text.len(), PieceKind::Character));
    }

    #[inline]
    fn close_pieces(&mut self) {
        self.close_word();
        self.close_word_run(self.text.len());
    }

    #[inline]
    fn close_word(&mut self) {
        let Some(start) = self.word.take() else {
            return;
        };
        if self.joins && self.word_is_ascii {
            self.run.get_or_insert(start);
        } else {
            self.close_word_run(start);
            self.pieces.push((start, self.text.len(), PieceKind::Word));
        }
    }

    /// Ends the open run at `end`. A run without an ideograph is a single word, because everything that
    /// separates two words also ends the run.
    #[inline]
    fn close_word_run(&mut self, end: usize) {
        if let Some(start) = self.run.take() {
            let kind = if std::mem::take(&mut self.run_is_chinese) {
                PieceKind::Run
            } else {
                PieceKind::Word
            };
            self.pieces.push((start, end, kind));
        }
    }
}
