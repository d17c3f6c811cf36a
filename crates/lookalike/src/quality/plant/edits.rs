//! The work of each kind of edit on a text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use super::random::SplitMix64;
use super::stock::TextStock;
use super::structure::{TextUnit, paragraph_ranges, sentence_ranges, split_units};
use super::{EditKind, PlantedEdit};
use crate::text::unicode::compose::{normalize_nfc, normalize_nfd};
use crate::text::unicode::{self, CharacterClass, character_class};

/// The edited text, perhaps unchanged; None if the text lacks what the edit is about, or the stock
/// what it takes.
pub(super) fn apply_edit(
    edit: PlantedEdit,
    text: &str,
    stock: &TextStock,
    random: &mut SplitMix64,
) -> Option<String> {
    let mut context = EditContext {
        edit,
        text,
        stock,
        random,
    };
    match edit.kind {
        EditKind::TruncateHead | EditKind::TruncateTail => context.truncate_text(),
        EditKind::BoilerplateBefore | EditKind::BoilerplateAfter => context.add_boilerplate(),
        EditKind::ShuffleParagraphs => context.shuffle_parts(paragraph_ranges(text)),
        EditKind::ShuffleSentences => context.shuffle_parts(sentence_ranges(text)),
        EditKind::DeleteSentences | EditKind::InsertSentences | EditKind::ReplaceSentences => {
            context.with_other_sentences()
        }
        EditKind::DeleteWords | EditKind::InsertWords | EditKind::ReplaceWords => {
            context.with_other_words()
        }
        EditKind::Traditional => Some(by_character(text, traditional)),
        EditKind::Simplified => Some(by_character(text, |point| {
            unicode::simplified(point).unwrap_or(point)
        })),
        EditKind::FullWidth => Some(by_character(text, full_width)),
        EditKind::HalfWidth => Some(by_character(text, half_width)),
        EditKind::Punctuation => Some(context.with_other_marks()),
        EditKind::Spacing => Some(context.with_other_spaces()),
        EditKind::ZeroWidth => context.with_zero_width(),
        EditKind::Nfc => Some(normalized(text, normalize_nfc)),
        EditKind::Nfd => Some(normalized(text, normalize_nfd)),
        EditKind::UpperCase => Some(text.to_uppercase()),
        EditKind::LowerCase => Some(text.to_lowercase()),
        EditKind::Typos => context.add_typos(),
        EditKind::Html => Some(render_html(text)),
        EditKind::Markdown => Some(context.render_markdown()),
        EditKind::ChangedNumber => context.with_another_number(),
    }
}

struct EditContext<'a> {
    edit: PlantedEdit,
    text: &'a str,
    stock: &'a TextStock,
    random: &'a mut SplitMix64,
}

impl EditContext<'_> {
    fn truncate_text(&self) -> Option<String> {
        let length = self.text.chars().count();
        let cut = self.edit.changed_count(length);
        let at = |character| {
            let place = self.text.char_indices().nth(character);
            place.map_or(self.text.len(), |(at, _)| at)
        };
        let rest = match self.edit.kind {
            EditKind::TruncateHead => &self.text[at(cut)..],
            _ => &self.text[..at(length - cut)],
        };
        (cut > 0).then(|| rest.to_owned())
    }

    fn add_boilerplate(&mut self) -> Option<String> {
        let passage = self.stock.choose_passage(self.text, self.random)?;
        Some(match self.edit.kind {
            EditKind::BoilerplateBefore => format!("{passage}\n{}", self.text),
            _ => format!("{}\n{passage}", self.text),
        })
    }

    /// The text with its parts in another order; what stands between them stays.
    fn shuffle_parts(&mut self, ranges: Vec<Range<usize>>) -> Option<String> {
        if ranges.len() < 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..ranges.len()).collect();
        self.random.shuffle_list(&mut order);
        if order.is_sorted() {
            order.rotate_left(1);
        }
        let mut moved = order
            .into_iter()
            .map(|from| &self.text[ranges[from].clone()]);
        Some(replace_ranges(self.text, &ranges, |_, _| {
            Cow::Borrowed(moved.next().unwrap_or_default())
        }))
    }

    fn with_other_sentences(&mut self) -> Option<String> {
        let ranges = sentence_ranges(self.text);
        let places = self.choose_places(ranges.len())?;
        let chosen: Vec<_> = places.iter().map(|&at| ranges[at].clone()).collect();
        let mut others = Vec::new();
        if self.edit.kind != EditKind::DeleteSentences {
            for _ in &chosen {
                others.push(self.stock.choose_sentence(self.text, self.random)?);
            }
        }
        let kind = self.edit.kind;
        Some(replace_ranges(
            self.text,
            &chosen,
            |at, sentence| match kind {
                EditKind::DeleteSentences => Cow::Borrowed(""),
                EditKind::InsertSentences => Cow::Owned(format!("{sentence} {}", others[at])),
                _ => Cow::Borrowed(others[at]),
            },
        ))
    }

    fn with_other_words(&mut self) -> Option<String> {
        let units = split_units(self.text);
        let places = self.choose_places(units.len())?;
        let chosen: Vec<_> = places.iter().map(|&at| units[at].clone()).collect();
        let ranges: Vec<_> = chosen.iter().map(|unit| self.with_space(unit)).collect();
        let mut others = Vec::new();
        if self.edit.kind != EditKind::DeleteWords {
            for unit in &chosen {
                others.push(self.other_word(unit)?);
            }
        }
        let kind = self.edit.kind;
        Some(replace_ranges(self.text, &ranges, |at, unit| match kind {
            EditKind::DeleteWords => Cow::Borrowed(""),
            EditKind::InsertWords if chosen[at].is_word => {
                Cow::Owned(format!("{unit} {}", others[at]))
            }
            EditKind::InsertWords => Cow::Owned(format!("{unit}{}", others[at])),
            _ => Cow::Borrowed(&others[at]),
        }))
    }

    /// The places of as many of `count` parts as the strength means; None if that is none of them.
    fn choose_places(&mut self, count: usize) -> Option<Vec<usize>> {
        let places = self
            .random
            .choose_places(self.edit.changed_count(count), count);
        (!places.is_empty()).then_some(places)
    }

    /// A word goes together with the space behind it when it is deleted.
    fn with_space(&self, unit: &TextUnit) -> Range<usize> {
        let Range { start, end } = unit.range;
        let goes = self.edit.kind == EditKind::DeleteWords && unit.is_word;
        let space = goes && self.text[end..].starts_with(' ');
        start..end + usize::from(space)
    }

    fn other_word(&mut self, unit: &TextUnit) -> Option<String> {
        let piece = &self.text[unit.range.clone()];
        if unit.is_word {
            let word = self.stock.choose_word(piece, self.random);
            return word.map(str::to_owned);
        }
        let other = self.stock.choose_character(piece, self.random);
        other.map(String::from)
    }

    fn with_other_marks(&mut self) -> String {
        let other = |mark| {
            if self.random.next_below(2) == 0 {
                mark
            } else {
                other_mark(mark)
            }
        };
        self.text.chars().map(other).collect()
    }

    fn with_other_spaces(&mut self) -> String {
        let points: Vec<char> = self.text.chars().collect();
        let mut spaced = String::with_capacity(self.text.len() + self.text.len() / 8);
        for (at, &point) in points.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| points[before]);
            let after = points.get(at + 1).copied();
            if point == ' ' && is_border(before, after) {
                continue;
            }
            if before.is_some() && is_border(before, Some(point)) {
                spaced.push(' ');
            }
            spaced.push(point);
            if point == ' ' && self.random.next_below(4) == 0 {
                spaced.push(' ');
            }
        }
        spaced
    }

    fn with_zero_width(&mut self) -> Option<String> {
        const INVISIBLE_CHARACTERS: [char; 4] = ['\u{200b}', '\u{200d}', '\u{feff}', '\u{ad}'];
        let letters = find_letters(self.text);
        let count = (letters.len() / 20).max(1);
        let places = self.random.choose_places(count, letters.len());
        let ranges: Vec<_> = places.iter().map(|&at| letters[at].clone()).collect();
        let put = replace_ranges(self.text, &ranges, |_, letter| {
            let invisible =
                INVISIBLE_CHARACTERS[self.random.next_below(INVISIBLE_CHARACTERS.len())];
            Cow::Owned(format!("{letter}{invisible}"))
        });
        (!ranges.is_empty()).then_some(put)
    }

    fn add_typos(&mut self) -> Option<String> {
        let letters = find_letters(self.text);
        let places = self.choose_places(letters.len())?;
        let ranges: Vec<_> = places.iter().map(|&at| letters[at].clone()).collect();
        let mut typed = String::with_capacity(self.text.len() + ranges.len());
        let mut done = 0;
        for Range { start, end } in ranges {
            // The letter before was swapped with this one.
            if start < done {
                continue;
            }
            typed.push_str(&self.text[done..start]);
            done = self.mistype_letter(start..end, &mut typed);
        }
        typed.push_str(&self.text[done..]);
        Some(typed)
    }

    /// Appends a letter mistyped; returns where the text goes on.
    fn mistype_letter(&mut self, range: Range<usize>, typed: &mut String) -> usize {
        let (letter, rest) = (&self.text[range.clone()], &self.text[range.end..]);
        let next = rest.chars().next().filter(|&next| is_letter(next));
        match (self.random.next_below(4), next) {
            (0, Some(next)) => {
                typed.push(next);
                typed.push_str(letter);
                return range.end + next.len_utf8();
            }
            (0 | 1, _) => {}
            (2, _) => typed.push_str(&letter.repeat(2)),
            _ => typed.push_str(&self.wrong_letter(letter)),
        }
        range.end
    }

    fn wrong_letter(&mut self, letter: &str) -> String {
        let first = letter.chars().next().unwrap_or_default();
        let alphabet = match first {
            'a'..='z' => b'a',
            'A'..='Z' => b'A',
            '0'..='9' => return another_digit(first, false, self.random).into(),
            _ => {
                let other = self.stock.choose_character(letter, self.random);
                return other.map(String::from).unwrap_or_default();
            }
        };
        let at = (first as u8 - alphabet + 1 + self.random.next_below(25) as u8) % 26;
        char::from(alphabet + at).into()
    }

    fn render_markdown(&mut self) -> String {
        let mut written = String::with_capacity(self.text.len() * 9 / 8);
        for (at, range) in paragraph_ranges(self.text).into_iter().enumerate() {
            let paragraph = &self.text[range];
            if at == 0 && paragraph.chars().nth(80).is_none() {
                let _ = write!(written, "# {paragraph}\n\n");
                continue;
            }
            let words: Vec<_> = split_units(paragraph)
                .into_iter()
                .map(|unit| unit.range)
                .collect();
            let few = self
                .random
                .choose_places(words.len().div_ceil(20), words.len());
            let few: Vec<_> = few.into_iter().map(|at| words[at].clone()).collect();
            let emphasised =
                replace_ranges(paragraph, &few, |_, word| Cow::Owned(format!("**{word}**")));
            let _ = write!(written, "{emphasised}\n\n");
        }
        written
    }

    fn with_another_number(&mut self) -> Option<String> {
        let places: Vec<_> = self.text.char_indices().collect();
        let is_digit = |at: usize| {
            places
                .get(at)
                .is_some_and(|&(_, point)| parse_digit(point).is_some())
        };
        let starts: Vec<usize> = (0..places.len())
            .filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1)))
            .collect();
        let &start = self.random.choose_one(&starts)?;
        let length = (start..).take_while(|&at| is_digit(at)).count();
        let changed = start + self.random.next_below(length);
        let (at, point) = places[changed];
        let leads = length > 1 && changed == start;
        let other = another_digit(point, leads, self.random);
        let behind = &self.text[at + point.len_utf8()..];
        Some(format!("{}{other}{behind}", &self.text[..at]))
    }
}

/// The text with some ranges, ascending and apart, replaced.
fn replace_ranges<'t>(
    text: &'t str,
    ranges: &[Range<usize>],
    mut by: impl FnMut(usize, &'t str) -> Cow<'t, str>,
) -> String {
    let mut written = String::with_capacity(text.len());
    let mut done = 0;
    for (at, range) in ranges.iter().enumerate() {
        written.push_str(&text[done..range.start]);
        written.push_str(&by(at, &text[range.clone()]));
        done = range.end;
    }
    written.push_str(&text[done..]);
    written
}

fn by_character(text: &str, other: impl Fn(char) -> char) -> String {
    text.chars().map(other).collect()
}

fn normalized(text: &str, form: impl Fn(&mut Vec<char>)) -> String {
    let mut points = text.chars().collect();
    form(&mut points);
    points.into_iter().collect()
}

fn is_letter(point: char) -> bool {
    matches!(
        character_class(point),
        CharacterClass::Word | CharacterClass::Character
    )
}

/// The places of the letters, digits and marks of a text.
fn find_letters(text: &str) -> Vec<Range<usize>> {
    let points = text.char_indices();
    points
        .filter(|&(_, point)| is_letter(point))
        .map(|(at, point)| at..at + point.len_utf8())
        .collect()
}

/// Whether one side is a word and the other a character of a script written without spaces.
fn is_border(before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    matches!(
        (character_class(before), character_class(after)),
        (CharacterClass::Word, CharacterClass::Character)
            | (CharacterClass::Character, CharacterClass::Word)
    )
}

/// The traditional form of a simplified character.
fn traditional(point: char) -> char {
    static LOOKALIKE_FORMS: LazyLock<BTreeMap<char, char>> = LazyLock::new(|| {
        let mut forms = BTreeMap::new();
        for (traditional, simplified) in unicode::traditional_forms() {
            forms.entry(simplified).or_insert(traditional);
        }
        forms
    });
    LOOKALIKE_FORMS.get(&point).copied().unwrap_or(point)
}

/// Distance of full-width forms behind those of ASCII.
const FULL_WIDTH_OFFSET: u32 = 0xfee0;

fn full_width(point: char) -> char {
    match point {
        ' ' => '\u{3000}',
        '!'..='~' => char::from_u32(u32::from(point) + FULL_WIDTH_OFFSET).unwrap_or(point),
        _ => point,
    }
}

fn half_width(point: char) -> char {
    match point {
        '\u{3000}' => ' ',
        '！'..='～' => char::from_u32(u32::from(point) - FULL_WIDTH_OFFSET).unwrap_or(point),
        _ => point,
    }
}

/// Another mark for a mark; anything else as it is.
fn other_mark(mark: char) -> char {
    match mark {
        ',' => ';',
        ';' => ',',
        '.' => '!',
        '!' => '.',
        '?' => '!',
        ':' => ';',
        '"' => '“',
        '“' | '”' | '「' | '」' => '"',
        '\'' | '’' | '‘' => '`',
        '(' => '[',
        ')' => ']',
        '，' => '、',
        '、' => '，',
        '。' => '！',
        '！' | '？' => '。',
        '：' => '；',
        '；' => '，',
        '（' => '【',
        '）' => '】',
        '-' => '–',
        '–' | '—' => '-',
        _ => mark,
    }
}

/// The value of a digit and the digit 0 of its kind.
fn parse_digit(point: char) -> Option<(u32, char)> {
    match point {
        '0'..='9' => Some((u32::from(point) - u32::from('0'), '0')),
        '０'..='９' => Some((u32::from(point) - u32::from('０'), '０')),
        _ => None,
    }
}

/// Another digit; if it leads a number, not 0.
fn another_digit(point: char, leads: bool, random: &mut SplitMix64) -> char {
    let Some((value, zero)) = parse_digit(point) else {
        return point;
    };
    let least = u32::from(leads);
    let others: Vec<u32> = (least..10).filter(|&other| other != value).collect();
    let other = others[random.next_below(others.len())];
    char::from_u32(u32::from(zero) + other).unwrap_or(point)
}

fn render_html(text: &str) -> String {
    let mut page = String::with_capacity(text.len() * 9 / 8);
    page.push_str("<!DOCTYPE html>\n<html>\n<body>\n");
    for range in paragraph_ranges(text) {
        page.push_str("<p>");
        for point in text[range].chars() {
            match point {
                '&' => page.push_str("&amp;"),
                '<' => page.push_str("&lt;"),
                '>' => page.push_str("&gt;"),
                '"' => page.push_str("&quot;"),
                _ => page.push(point),
            }
        }
        page.push_str("</p>\n");
    }
    page.push_str("</body>\n</html>\n");
    page
}
