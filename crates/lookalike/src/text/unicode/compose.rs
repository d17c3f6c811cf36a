//! Canonical composition (NFC) by Unicode Standard Annex #15.
//!
//! [`normalize_nfc`] is exact for any input and allocates one buffer of the length of the text. Its time
//! is linear in the text, and n·log n in a run of n combining marks, which is sorted stably. A million
//! marks on one letter are therefore no attack. Stretches in which nothing composes are copied.

use std::ops::Deref;

use super::compatibility;
use super::generated::{COMBINING, COMPOSING, COMPOSITIONS, DECOMPOSITION};
use super::pooled_expansion;

/// No character below this one has a combining class or composes with what precedes it.
const FIRST_COMPOSING: char = '\u{300}';

/// No character below this one decomposes canonically.
const FIRST_DECOMPOSING: char = '\u{c0}';

/// Returns the Canonical_Combining_Class, which is 0 for starters.
pub(crate) fn combining_class(c: char) -> u8 {
    if c < FIRST_COMPOSING {
        return 0;
    }
    find_row(&COMBINING, c, |&(first, last, _)| (first, last)).map_or(0, |&(_, _, class)| class)
}

/// Returns `true` if a character can affect characters before it under NFC or NFKC:
///
/// - it has a combining class other than 0;
/// - or it composes with a character before it (Quick_Check = Maybe; Hangul vowels and trailing consonants
///   included);
/// - or its decomposition, canonical or by compatibility, starts with such a character (halfwidth voicing
///   marks and jamo).
///
/// Text without such characters can be normalised character by character.
pub(crate) fn is_composing(c: char) -> bool {
    c >= FIRST_COMPOSING && find_row(&COMPOSING, c, |&run| run).is_some()
}

/// Returns all characters for which [`is_composing`] is `true`.
pub(super) fn composing_characters() -> impl Iterator<Item = char> {
    let runs = COMPOSING.iter();
    runs.flat_map(|&(first, last)| (first..=last).filter_map(char::from_u32))
}

/// Returns the primary composite of two characters, Hangul included.
pub(crate) fn compose_pair(first: char, second: char) -> Option<char> {
    let key = (u32::from(first), u32::from(second));
    match COMPOSITIONS.binary_search_by_key(&key, |&(first, second, _)| (first, second)) {
        Ok(at) => Some(COMPOSITIONS[at].2),
        Err(_) => hangul::compose_pair(key.0, key.1),
    }
}

/// Returns the full canonical decomposition (NFD) of the character, or `None` if it is the character itself.
pub(crate) fn decompose_character(c: char) -> Option<CanonicalDecomposition> {
    if c < FIRST_DECOMPOSING {
        return None;
    }
    match pooled_expansion(&DECOMPOSITION, c) {
        Some(characters) => Some(CanonicalDecomposition::new(characters)),
        None => hangul::decompose_character(u32::from(c)),
    }
}

/// At most four characters, which can be read as a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CanonicalDecomposition {
    characters: [char; 4],
    length: usize,
}

impl CanonicalDecomposition {
    fn new(from: &[char]) -> Self {
        let mut characters = ['\0'; 4];
        characters[..from.len()].copy_from_slice(from);
        Self {
            characters,
            length: from.len(),
        }
    }
}

impl Deref for CanonicalDecomposition {
    type Target = [char];

    fn deref(&self) -> &[char] {
        &self.characters[..self.length]
    }
}

/// Converts a text to Normalization Form C.
///
/// If each character was replaced by its [`compatibility`] form before, the result is NFKC.
pub(crate) fn normalize_nfc(text: &mut Vec<char>) {
    let Some(first) = text.iter().position(|&c| is_unsettled(c)) else {
        return;
    };
    let start = first.saturating_sub(1);
    let mut result = Vec::with_capacity(text.len());
    result.extend_from_slice(&text[..start]);
    let mut rest = &text[start..];
    while let [settled, after @ ..] = rest {
        let length = after.iter().take_while(|&&c| is_unsettled(c)).count();
        if length == 0 && !is_unsettled(*settled) {
            result.push(*settled);
        } else {
            normalize_onto(&mut result, &rest[..=length]);
        }
        rest = &after[length..];
    }
    *text = result;
}

/// Converts a text to Normalization Form D.
pub(crate) fn normalize_nfd(text: &mut Vec<char>) {
    let mut result = Vec::with_capacity(text.len());
    decompose_onto(&mut result, text);
    *text = result;
}

/// Returns `true` if NFC may change the character, or a character before it because of it.
/// [`normalize_nfc`] normalises each run of such characters together with at most one other character
/// before it.
fn is_unsettled(c: char) -> bool {
    // The table of NFKC is used because NFKC changes every character that NFC changes.
    is_composing(c) || compatibility(c).is_some()
}

/// Appends NFC of a stretch with which nothing around it composes.
fn normalize_onto(result: &mut Vec<char>, stretch: &[char]) {
    let start = result.len();
    decompose_onto(result, stretch);
    let length = compose_in_place(&mut result[start..]);
    result.truncate(start + length);
}

/// Appends NFD of a stretch.
fn decompose_onto(result: &mut Vec<char>, stretch: &[char]) {
    let start = result.len();
    for &c in stretch {
        match decompose_character(c) {
            Some(characters) => result.extend_from_slice(&characters),
            None => result.push(c),
        }
    }
    order_marks(&mut result[start..]);
}

/// Sorts each run of characters with a combining class by that class, and keeps the order of equal ones.
fn order_marks(characters: &mut [char]) {
    for run in characters.chunk_by_mut(|_, &next| combining_class(next) != 0) {
        // A starter may be the first of the run; its class 0 keeps it there.
        if !run.is_sorted_by_key(|&c| combining_class(c)) {
            run.sort_by_cached_key(|&c| combining_class(c));
        }
    }
}

/// Composes characters in canonical order. Returns the number of remaining characters, which are at the
/// front.
fn compose_in_place(characters: &mut [char]) -> usize {
    let mut length = 0;
    let mut starter = None;
    // Class of the last character kept, if it follows the starter.
    let mut between = None;
    for at in 0..characters.len() {
        let c = characters[at];
        let class = combining_class(c);
        let reachable = starter.filter(|_| between.is_none_or(|between| between < class));
        let composite = reachable.and_then(|starter: usize| compose_pair(characters[starter], c));
        if let (Some(starter), Some(composite)) = (reachable, composite) {
            characters[starter] = composite;
            continue;
        }
        characters[length] = c;
        (starter, between) = if class == 0 {
            (Some(length), None)
        } else {
            (starter, Some(class))
        };
        length += 1;
    }
    length
}

/// Returns the row whose run of code points contains `c`.
fn find_row<Row>(rows: &[Row], c: char, run: impl Fn(&Row) -> (u32, u32)) -> Option<&Row> {
    let c = u32::from(c);
    let row = rows.get(rows.partition_point(|row| run(row).1 < c))?;
    (run(row).0 <= c).then_some(row)
}

/// Hangul syllables, which Unicode arranges by leading consonant, vowel and trailing consonant (section 3.12
/// of the standard).
mod hangul {
    use super::CanonicalDecomposition;

    const FIRST_SYLLABLE: u32 = 0xac00;
    const FIRST_LEADING: u32 = 0x1100;
    const FIRST_VOWEL: u32 = 0x1161;
    /// One before the first trailing consonant, because index 0 means none.
    const BEFORE_TRAILING: u32 = 0x11a7;
    const LEADING_COUNT: u32 = 19;
    const VOWEL_COUNT: u32 = 21;
    const TRAILING_COUNT: u32 = 28;
    const SYLLABLE_COUNT: u32 = LEADING_COUNT * VOWEL_COUNT * TRAILING_COUNT;

    pub(super) fn compose_pair(first: u32, second: u32) -> Option<char> {
        let leading = first.wrapping_sub(FIRST_LEADING);
        let vowel = second.wrapping_sub(FIRST_VOWEL);
        let syllable = first.wrapping_sub(FIRST_SYLLABLE);
        let trailing = second.wrapping_sub(BEFORE_TRAILING);
        if leading < LEADING_COUNT && vowel < VOWEL_COUNT {
            return char::from_u32(
                FIRST_SYLLABLE + (leading * VOWEL_COUNT + vowel) * TRAILING_COUNT,
            );
        }
        let open = syllable < SYLLABLE_COUNT && syllable.is_multiple_of(TRAILING_COUNT);
        if open && (1..TRAILING_COUNT).contains(&trailing) {
            return char::from_u32(first + trailing);
        }
        None
    }

    pub(super) fn decompose_character(c: u32) -> Option<CanonicalDecomposition> {
        let syllable = c.wrapping_sub(FIRST_SYLLABLE);
        if syllable >= SYLLABLE_COUNT {
            return None;
        }
        let jamo = |first, index| char::from_u32(first + index).expect("jamo are characters");
        let leading = jamo(FIRST_LEADING, syllable / (VOWEL_COUNT * TRAILING_COUNT));
        let vowel = jamo(FIRST_VOWEL, syllable / TRAILING_COUNT % VOWEL_COUNT);
        let trailing = syllable % TRAILING_COUNT;
        Some(if trailing == 0 {
            CanonicalDecomposition::new(&[leading, vowel])
        } else {
            CanonicalDecomposition::new(&[leading, vowel, jamo(BEFORE_TRAILING, trailing)])
        })
    }
}
