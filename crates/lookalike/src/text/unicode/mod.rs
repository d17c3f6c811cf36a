//! Unicode properties of single characters, and the tokeniser's classes, frozen.
//!
//! The tables are generated from pinned data of one version of Unicode, [`UNICODE_VERSION`]. They change only
//! with the tokeniser's version, because fingerprints depend on them. A code point that this version does not
//! assign is a separator and maps to itself. Every look-up is a binary search without allocation. `charmap`
//! combines these tables to one table per recipe.
//!
//! # Classes
//!
//! [`character_class`] expects a character *after* normalisation. The first row that fits decides.
//!
//! | class | characters |
//! |---|---|
//! | ignorable | Default_Ignorable_Code_Point: zero-width characters and joiners, soft hyphen, variation selectors, byte order mark, Hangul fillers |
//! | space | White_Space; control characters |
//! | word | decimal digits (Nd) of every script |
//! | character | letters, marks and other numbers of scripts written without spaces; radicals of Han and Yi |
//! | word | all other letters, marks and numbers (L, M, N) |
//! | separator | all else: punctuation with `_`, symbols, emoji, private use, unassigned |
//!
//! These scripts are written without spaces:
//!
//! - The scripts in whose text Unicode's line breaking finds breaks between letters without a space, because
//!   most of their letters have Line_Break ID, CJ, SA, AK or AS: Han, Hiragana, Katakana, Bopomofo, Yi,
//!   Nushu, Tangut, Jurchen, Seal; Thai, Lao, Khmer, Myanmar, Tai Le, New Tai Lue, Tai Tham, Tai Viet, Ahom;
//!   Balinese, Batak, Brahmi, Cham, Dives Akuru, Grantha, Gurung Khema, Javanese, Kawi, Makasar,
//!   Tulu-Tigalari. Bopomofo is included because it spells Chinese sounds, syllable by syllable, between Han
//!   characters. Hangul also breaks anywhere, but is not included because Korean has spaces.
//! - The ancient scripts of word and syllable signs: Egyptian and Anatolian hieroglyphs, cuneiform and
//!   proto-cuneiform.
//!
//! Tibetan is not included, because a mark between its syllables (tsheg, a separator) makes each syllable a
//! word.
//!
//! A character that several scripts share (Script Common or Inherited) belongs to a script without spaces if
//! all of its Script_Extensions are such scripts. For example, ー and 〱 and the kana voicing marks do, and
//! `◌́` does not. 々 and 〇 are Han.
//!
//! A *mark* of a script without spaces (Thai vowels and tones, Myanmar medials, kana voicing that did not
//! compose) is a token of its own like the letters, so that the class depends on one code point alone and
//! n-grams contain the marks in order. All other marks continue the word before them, or start one.
//!
//! # Limits
//!
//! There is no segmentation by dictionary, no grapheme clusters and no language: a code point has one class.

pub(crate) mod compose;
mod generated;
mod variants;

pub(crate) use compose::is_composing;
pub use generated::UNICODE_VERSION;
pub(crate) use variants::{common_variant, variant_forms};

use generated::{CLASSES, COMPATIBILITY, FOLD, POOL, SIMPLIFIED};

/// The class of a code point in the tokeniser; the rules are in the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CharacterClass {
    /// Removed: its neighbours become neighbours of each other.
    Ignorable,
    /// White space or a control character.
    Space,
    /// Neither letter nor mark nor number.
    Separator,
    /// Part of a word.
    Word,
    /// A token of its own.
    Character,
}

/// Returns the class of a code point.
pub(crate) fn character_class(c: char) -> CharacterClass {
    match ASCII.get(c as usize) {
        Some(&class) => class,
        None => listed_class(c as u32),
    }
}

const fn listed_class(point: u32) -> CharacterClass {
    let (mut from, mut to) = (0, CLASSES.len());
    while from + 1 < to {
        let middle = (from + to) / 2;
        if CLASSES[middle].0 <= point {
            from = middle;
        } else {
            to = middle;
        }
    }
    CLASSES[from].1
}

/// Classes of ASCII, which is most text.
static ASCII: [CharacterClass; 128] = {
    let mut classes = [CharacterClass::Separator; 128];
    let mut point = 0;
    while point < 128 {
        classes[point] = listed_class(point as u32);
        point += 1;
    }
    classes
};

/// Returns all characters, in runs of one class.
pub(crate) fn character_classes()
-> impl Iterator<Item = (impl Iterator<Item = char>, CharacterClass)> {
    let ends = CLASSES[1..].iter().map(|&(first, _)| first);
    CLASSES
        .iter()
        .zip(ends.chain([0x11_0000]))
        .map(|(&(first, class), end)| ((first..end).filter_map(char::from_u32), class))
}

/// Calls `visit` with every character that a step of normalisation may change, alone or because of its
/// neighbours, possibly more than once. All other characters stay unchanged under every recipe.
pub(crate) fn visit_changing(visit: impl FnMut(char)) {
    let ignorable = character_classes().filter(|(_, class)| *class == CharacterClass::Ignorable);
    let mapped = COMPATIBILITY.iter().chain(&FOLD);
    (ignorable.flat_map(|(points, _)| points))
        .chain(compose::composing_characters())
        .chain(mapped.filter_map(|&(from, ..)| char::from_u32(from)))
        .chain(SIMPLIFIED.iter().map(|&(from, _)| from))
        .chain(variant_forms().map(|(from, _)| from))
        .for_each(visit);
}

/// Returns NFKC of the character alone, or `None` if it is the character itself; at most 18 characters.
pub(crate) fn compatibility(c: char) -> Option<&'static [char]> {
    pooled_expansion(&COMPATIBILITY, c)
}

/// Returns the full case folding (C and F) of the character, or `None` if it is the character itself; at most
/// 3 characters.
///
/// Folding may leave the normalisation form, for example `ǰ` becomes `j` and a caron.
pub(crate) fn fold_case(c: char) -> Option<&'static [char]> {
    pooled_expansion(&FOLD, c)
}

/// Returns the simplified form of a traditional Chinese character, or `None` if it is the same.
///
/// The mapping is character by character, with OpenCC's first choice and without phrases. The result is never
/// simplified further, and both sides are NFKC.
pub(crate) fn simplified(c: char) -> Option<char> {
    let at = SIMPLIFIED
        .binary_search_by_key(&c, |&(from, _)| from)
        .ok()?;
    Some(SIMPLIFIED[at].1)
}

/// Returns every traditional character with its simplified form, ascending by the former.
pub(crate) fn traditional_forms() -> impl Iterator<Item = (char, char)> {
    SIMPLIFIED.iter().copied()
}

/// Returns the characters that a table maps `c` to; its rows hold positions and lengths in [`POOL`].
fn pooled_expansion(table: &[(u32, u16, u8)], c: char) -> Option<&'static [char]> {
    let at = table
        .binary_search_by_key(&u32::from(c), |&(from, _, _)| from)
        .ok()?;
    let (_, start, length) = table[at];
    Some(&POOL[usize::from(start)..][..usize::from(length)])
}

#[cfg(test)]
mod tests;
