//! Decides from two similar texts alone whether they say different things.
//!
//! Copies of a text differ at their edges, by added or removed passages, and at scattered places. Texts of one kind,
//! such as the pages of two functions of one interface, differ in what they are about. The two texts are aligned.
//! Headers, footers and cut passages are what copying does, so little else counts:
//!
//! * *Title:* a word of one title is replaced by another, and both are codes (with a digit, an underscore or inner capital
//!   letters, for example `glRectd`), or the same replacement recurs inside the common part. The title is the first line,
//!   if it is short. So another headline of one article makes no difference, nor does the name of a paper in its footer.
//! * *Added code:* one title has a code that is not merely a number, where the other has nothing, and the code is added
//!   inside the common part, too, for example `xor` and `xor_eq`. So a year that is added to a product makes no difference.
//! * *Numbers:* at least [`LEAST_NUMBERS`] different numbers inside the common part are replaced by different numbers, and
//!   they are at least half of its numbers. So one corrected figure in an article makes no difference.
//!
//! Guarantee: the result depends on the two texts alone, not on their order. It does not find every difference: texts
//! without a title that differ in names are filled forms, for which a table is learned.
//!
//! Cost: some nanoseconds per token, and an alignment (some 50 ns per token) if words of the titles or numbers differ.
//! Only the first [`MOST_COMPARED_BYTES`] of a text are compared.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::alignment::{EqualRun, align_tokens};
use crate::text::{SpanTokenizer, SpannedTokens};

/// Bytes at the beginning of a text that are compared.
const MOST_COMPARED_BYTES: usize = 256 << 10;

/// Largest number of tokens of a title. A longer first line is a paragraph.
const MOST_TITLE_TOKENS: usize = 40;

/// Least number of different numbers that are replaced.
const LEAST_NUMBERS: usize = 2;

/// Least number of further places at which the replacement of a single character recurs. A replaced word recurs at one.
const LEAST_CHARACTER_PLACES: usize = 2;

/// Mark of a token of which at least half are digits.
const NUMBER_MARK: u64 = 1;

/// Mark of a token that is a code rather than a word.
const CODE_MARK: u64 = 2;

const MARKS: u64 = NUMBER_MARK | CODE_MARK;

/// Largest token that is a single character: its code point above the marks. Greater ones are hashes of words.
const LARGEST_CHARACTER: u64 = (char::MAX as u64) << 2;

/// A difference that keeps two texts apart, with the tokens of its first replacement in each text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentDifference {
    /// The titles are about different things.
    Title([Range<usize>; 2]),
    /// Most numbers inside the common part differ.
    Numbers([Range<usize>; 2]),
}

/// Returns the beginning of a text that is compared.
pub(crate) fn compared_part(text: &str) -> &str {
    let mut end = text.len().min(MOST_COMPARED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends the marked tokens of a text, by which it is compared: first the number of tokens of its title, then its tokens.
/// Each token has its marks in the two lowest bits.
pub(crate) fn append_marked_tokens(text: &str, tokenizer: &SpanTokenizer, into: &mut Vec<u64>) {
    let text = compared_part(text);
    let mut tokens = SpannedTokens::default();
    if tokenizer.tokenize_text(text, &mut tokens).is_err() {
        return;
    }
    into.push(count_title_tokens(text, &tokens) as u64);
    into.extend((0..tokens.len()).map(|at| {
        let value = tokens.values()[at];
        let value = if value <= char::MAX as u64 {
            value << 2
        } else {
            value & !MARKS
        };
        value | marks_of_token(text, tokens.byte_range(at..at + 1))
    }));
}

/// Returns the number of tokens of the first line that has any; 0 if the line is too long, if it is only a tag of HTML, or
/// if there is no other.
fn count_title_tokens(text: &str, tokens: &SpannedTokens) -> usize {
    let most = tokens.len().min(MOST_TITLE_TOKENS + 1);
    let ends_line = |&at: &usize| {
        let between = tokens.byte_range(at - 1..at).end..tokens.byte_range(at..at + 1).start;
        text[between].contains(['\n', '\r'])
    };
    let title = (1..most).find(ends_line).unwrap_or(0);
    if title > 0 && is_tag(text, tokens.byte_range(0..title)) {
        return 0;
    }
    title
}

/// Returns `true` if a part of a text stands within a tag of HTML, such as `<div class="page">`.
fn is_tag(text: &str, part: Range<usize>) -> bool {
    let before = text[..part.start].trim_end();
    let before = before.trim_end_matches(['/', '!', '?', '-']);
    before.ends_with('<') && !text[part].contains(['<', '>'])
}

fn marks_of_token(text: &str, place: Range<usize>) -> u64 {
    let spelling = &text[place.clone()];
    let (mut digits, mut characters) = (0, 0);
    let (mut has_inner_capital, mut is_after_lower) = (false, false);
    for character in spelling.chars() {
        characters += 1;
        digits += usize::from(character.is_numeric());
        has_inner_capital |= is_after_lower && character.is_uppercase();
        is_after_lower = character.is_lowercase();
    }
    let begins_with_prefix = spelling
        .chars()
        .take(2)
        .filter(|character| character.is_uppercase())
        .count()
        == 2
        && spelling.chars().any(char::is_lowercase);
    // Markdown escapes underscores.
    let rest = &text[place.end..];
    let is_beside_underscore =
        text[..place.start].ends_with('_') || rest.starts_with('_') || rest.starts_with("\\_");
    let mut marks = 0;
    if 2 * digits >= characters {
        marks |= NUMBER_MARK;
    }
    if digits > 0 || has_inner_capital || begins_with_prefix || is_beside_underscore {
        marks |= CODE_MARK;
    }
    marks
}

/// Returns what two texts differ in, if they say different things. Each list is that of [`append_marked_tokens`]; texts
/// without a list are not compared.
pub(crate) fn find_difference(a: &[u64], b: &[u64]) -> Option<ContentDifference> {
    // The alignment of some texts depends on their order.
    if a > b {
        return find_ordered_difference(b, a).map(ContentDifference::swap_texts);
    }
    find_ordered_difference(a, b)
}

fn find_ordered_difference(a: &[u64], b: &[u64]) -> Option<ContentDifference> {
    let comparison = TextComparison {
        texts: [MarkedText::new(a)?, MarkedText::new(b)?],
    };
    let titles = comparison.list_title_differences();
    let has_codes =
        |words: &TitleDifference| [0, 1].iter().all(|&text| comparison.has_code(words, text));
    if let Some(difference) = titles.iter().find(|words| has_codes(words)) {
        return Some(ContentDifference::Title(difference.places.clone()));
    }
    let mut recurring = titles
        .iter()
        .filter(|words| comparison.may_recur(words))
        .peekable();
    let added = [0, 1].map(|text| comparison.list_added_codes(&titles, text));
    let may_differ_in_numbers = comparison.may_differ_in_numbers();
    let has_added = added.iter().any(|codes| !codes.is_empty());
    if recurring.peek().is_none() && !has_added && !may_differ_in_numbers {
        return None;
    }
    let aligned = comparison.align_texts();
    if let Some(difference) = recurring.find(|words| aligned.does_replacement_recur(words)) {
        return Some(ContentDifference::Title(difference.places.clone()));
    }
    if [0, 1]
        .iter()
        .any(|&text| aligned.is_added_again(&added[text], text))
    {
        let titles = comparison.texts.each_ref().map(|text| 0..text.title_tokens);
        return Some(ContentDifference::Title(titles));
    }
    may_differ_in_numbers
        .then(|| aligned.find_number_difference())
        .flatten()
}

impl ContentDifference {
    fn swap_texts(self) -> Self {
        match self {
            Self::Title([a, b]) => Self::Title([b, a]),
            Self::Numbers([a, b]) => Self::Numbers([b, a]),
        }
    }
}

/// A text by its marked tokens.
struct MarkedText<'t> {
    title_tokens: usize,
    tokens: &'t [u64],
    /// The tokens without their marks.
    values: Vec<u64>,
}

impl<'t> MarkedText<'t> {
    fn new(list: &'t [u64]) -> Option<Self> {
        let (&title_tokens, tokens) = list.split_first()?;
        Some(Self {
            title_tokens: title_tokens as usize,
            tokens,
            values: tokens.iter().map(|token| token & !MARKS).collect(),
        })
    }

    fn title(&self) -> &[u64] {
        &self.values[..self.title_tokens]
    }

    fn body(&self) -> &[u64] {
        &self.values[self.title_tokens..]
    }

    fn numbers_of(&self, place: Range<usize>) -> impl Iterator<Item = u64> {
        let tokens = self.tokens[place].iter();
        let numbers = tokens.filter(|&token| token & NUMBER_MARK != 0);
        numbers.map(|token| token & !MARKS)
    }
}

/// A place at which a title has words that the other title has nowhere, or both titles have.
struct TitleDifference {
    /// The tokens of each text.
    places: [Range<usize>; 2],
    /// The words of each text that the other title has nowhere, by their values.
    words: [Vec<u64>; 2],
}

/// Two texts that are compared.
struct TextComparison<'t> {
    texts: [MarkedText<'t>; 2],
}

impl TextComparison<'_> {
    fn list_title_differences(&self) -> Vec<TitleDifference> {
        let [a, b] = self.texts.each_ref().map(MarkedText::title);
        let runs = align_tokens(a, b);
        let places = list_changed_places(&runs, a.len(), b.len()).into_iter();
        let differences = places.map(|place| {
            let words = [0, 1].map(|text| self.list_own_words(text, place.tokens[text].clone()));
            TitleDifference {
                places: place.tokens,
                words,
            }
        });
        differences.collect()
    }

    /// Returns the codes that a title has where the other one has no word of its own, without those that are merely
    /// numbers, and without those that the text has nowhere else. Titles without a common word add nothing to each other.
    fn list_added_codes(&self, titles: &[TitleDifference], text: usize) -> Vec<u64> {
        let (marked, other) = (&self.texts[text], self.texts[1 - text].title());
        let mut codes = Vec::new();
        if !marked.title().iter().any(|word| other.contains(word)) {
            return codes;
        }
        for difference in titles
            .iter()
            .filter(|words| words.words[1 - text].is_empty())
        {
            let words = &difference.words[text];
            let tokens = marked.tokens[difference.places[text].clone()].iter();
            let added = tokens.filter(|&token| token & MARKS == CODE_MARK);
            let added = added.map(|token| token & !MARKS);
            codes.extend(added.filter(|code| words.contains(code) && marked.body().contains(code)));
        }
        codes
    }

    /// Returns the words in a part of a title that the other title has nowhere.
    fn list_own_words(&self, text: usize, place: Range<usize>) -> Vec<u64> {
        let other = self.texts[1 - text].title();
        let words = self.texts[text].values[place].iter().copied();
        words.filter(|word| !other.contains(word)).collect()
    }

    /// Returns `true` if a word of a text's difference is a code.
    fn has_code(&self, difference: &TitleDifference, text: usize) -> bool {
        let words = &difference.words[text];
        let tokens = self.texts[text].tokens[difference.places[text].clone()].iter();
        tokens
            .filter(|&token| token & CODE_MARK != 0)
            .any(|token| words.contains(&(token & !MARKS)))
    }

    /// Returns `true` if each text has one of its words after its title, without which no replacement recurs.
    fn may_recur(&self, difference: &TitleDifference) -> bool {
        let texts = self.texts.iter().zip(&difference.words);
        texts
            .into_iter()
            .all(|(text, words)| text.body().iter().any(|token| words.contains(token)))
    }

    /// Returns `true` if each text has at least [`LEAST_NUMBERS`] numbers more often than the other.
    fn may_differ_in_numbers(&self) -> bool {
        let mut counts: HashMap<u64, i64> = HashMap::new();
        for (text, step) in self.texts.iter().zip([1, -1]) {
            for number in text.numbers_of(0..text.tokens.len()) {
                *counts.entry(number).or_default() += step;
            }
        }
        let more_often = |sign: i64| counts.values().filter(|&&count| count * sign > 0).count();
        more_often(1) >= LEAST_NUMBERS && more_often(-1) >= LEAST_NUMBERS
    }

    fn align_texts(&self) -> AlignedTexts<'_> {
        let [a, b] = self.texts.each_ref().map(|text| text.values.as_slice());
        let runs = align_tokens(a, b);
        let mut inner = list_changed_places(&runs, a.len(), b.len());
        inner.retain(|place| place.is_inner);
        AlignedTexts {
            texts: &self.texts,
            runs,
            inner,
        }
    }
}

/// A place at which a text, or both have tokens that are not aligned.
struct ChangedPlace {
    /// The tokens of each text.
    tokens: [Range<usize>; 2],
    /// `true` if equal runs are on both sides.
    is_inner: bool,
}

fn list_changed_places(runs: &[EqualRun], a_length: usize, b_length: usize) -> Vec<ChangedPlace> {
    let ends = runs
        .iter()
        .map(|run| (run.a + run.length, run.b + run.length));
    let starts = runs
        .iter()
        .map(|run| (run.a, run.b))
        .chain([(a_length, b_length)]);
    let gaps = std::iter::once((0, 0)).chain(ends).zip(starts);
    let places = gaps.enumerate().map(|(gap, (start, end))| ChangedPlace {
        tokens: [start.0..end.0, start.1..end.1],
        is_inner: gap > 0 && gap < runs.len(),
    });
    places
        .filter(|place| place.tokens.iter().any(|tokens| !tokens.is_empty()))
        .collect()
}

/// Two texts with the places inside their common part at which tokens are replaced, added or removed.
struct AlignedTexts<'t> {
    texts: &'t [MarkedText<'t>; 2],
    runs: Vec<EqualRun>,
    inner: Vec<ChangedPlace>,
}

impl AlignedTexts<'_> {
    /// Returns `true` if one of the words of the first title is replaced by one of the second after the titles, too. It does not
    /// count if the common part has each of the two words at more places than that: they are words of the language, such as
    /// `of` and `a`.
    fn does_replacement_recur(&self, difference: &TitleDifference) -> bool {
        let is_after_titles = |place: &&ChangedPlace| {
            let tokens = place.tokens.iter().zip(self.texts);
            tokens
                .into_iter()
                .all(|(tokens, text)| tokens.start >= text.title_tokens)
        };
        let mut replaced: BTreeMap<[u64; 2], usize> = BTreeMap::new();
        for place in self.inner.iter().filter(is_after_titles) {
            let recurring = [0, 1].map(|text| {
                let here = &self.texts[text].values[place.tokens[text].clone()];
                let words = difference.words[text].iter().copied();
                words.filter(|word| here.contains(word)).max()
            });
            if let [Some(a), Some(b)] = recurring {
                *replaced.entry([a, b]).or_default() += 1;
            }
        }
        replaced.retain(|words, places| {
            let mut common = words.iter().map(|&word| self.count_common(word));
            common.any(|count| count <= *places)
        });
        let is_word = |words: &[u64; 2]| words.iter().all(|&word| word > LARGEST_CHARACTER);
        replaced.keys().any(is_word) || replaced.values().sum::<usize>() >= LEAST_CHARACTER_PLACES
    }

    /// Returns at how many places of the common part after the titles both texts have a word.
    fn count_common(&self, word: u64) -> usize {
        let [a, b] = self.texts;
        let runs = self.runs.iter().map(|run| {
            let titles = a.title_tokens.saturating_sub(run.a);
            let titles = titles.max(b.title_tokens.saturating_sub(run.b));
            &a.values[run.a + titles.min(run.length)..run.a + run.length]
        });
        let tokens = runs.flatten();
        tokens.filter(|&&token| token == word).count()
    }

    /// Returns `true` if a text has one of some codes after its title at a place inside the common part where the other
    /// text has it not.
    fn is_added_again(&self, codes: &[u64], text: usize) -> bool {
        let is_added = |place: &ChangedPlace| {
            let [here, there] =
                [text, 1 - text].map(|text| &self.texts[text].values[place.tokens[text].clone()]);
            place.tokens[text].start >= self.texts[text].title_tokens
                && codes
                    .iter()
                    .any(|code| here.contains(code) && !there.contains(code))
        };
        !codes.is_empty() && self.inner.iter().any(is_added)
    }

    fn find_number_difference(&self) -> Option<ContentDifference> {
        let [a, b] = self.texts;
        let equal = self
            .runs
            .iter()
            .map(|run| a.numbers_of(run.a..run.a + run.length).count());
        let equal: usize = equal.sum();
        let mut replaced = 0;
        let mut distinct = [HashSet::new(), HashSet::new()];
        let mut first = None;
        for place in &self.inner {
            let [in_a, in_b] = place.tokens.clone();
            let numbers: [Vec<u64>; 2] =
                [a.numbers_of(in_a).collect(), b.numbers_of(in_b).collect()];
            let count = numbers[0].len().min(numbers[1].len());
            if count > 0 && numbers[0] != numbers[1] {
                first.get_or_insert_with(|| place.tokens.clone());
                replaced += count;
                for (distinct, numbers) in distinct.iter_mut().zip(numbers) {
                    distinct.insert(numbers);
                }
            }
        }
        let is_enough = distinct
            .iter()
            .all(|numbers| numbers.len() >= LEAST_NUMBERS);
        (is_enough && replaced >= equal).then_some(ContentDifference::Numbers(first?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recipe::Recipe;

    fn marked(text: &str) -> Vec<u64> {
        let mut list = Vec::new();
        append_marked_tokens(text, &SpanTokenizer::new(&Recipe::default()), &mut list);
        list
    }

    fn difference(a: &str, b: &str) -> Option<ContentDifference> {
        find_difference(&marked(a), &marked(b))
    }

    const PAGE: &str = "Sets the extent of the area that is drawn. It has no effect while a list is compiled, and fails \
                        with an error if the extent is negative.";

    fn page(name: &str) -> String {
        format!("{name} function\n{PAGE}\nCall it once before the first frame.\n{PAGE}")
    }

    #[test]
    fn codes_in_the_title_are_about_different_things() {
        assert_eq!(
            difference(&page("glRectd"), &page("glRects")),
            Some(ContentDifference::Title([0..1, 0..1]))
        );
        assert_eq!(
            difference(&page("Error 4656"), &page("Error 4657")),
            Some(ContentDifference::Title([1..2, 1..2]))
        );
        // Only one of them is a code.
        assert_eq!(difference(&page("glRectd"), &page("Area")), None);
    }

    #[test]
    fn another_headline_of_one_article_is_no_difference() {
        let article = |headline: &str| format!("{headline}\n{PAGE} {PAGE}");
        let (a, b) = (
            article("Area drawn at last"),
            article("How we draw the area"),
        );
        assert_eq!(difference(&a, &b), None);
        // The name of a paper is in its footer, too.
        let (a, b) = (
            format!("{a} Herald\nHerald"),
            format!("{b} Tribune\nTribune"),
        );
        let [a, b] = [a, b].map(|text| text.replacen('\n', " Herald\n", 1));
        assert_eq!(difference(&a, &b.replacen("Herald", "Tribune", 1)), None);
    }

    #[test]
    fn a_recurring_replacement_in_the_title_is_a_difference() {
        let page = |what: &str, body: &str| {
            format!("Files for {what}\n{PAGE} The words of {body} are known. {PAGE}")
        };
        let (a, b) = (
            page("Bulgarian", "Bulgarian"),
            page("Portuguese", "Portuguese"),
        );
        assert_eq!(
            difference(&a, &b),
            Some(ContentDifference::Title([2..3, 2..3]))
        );
        assert_eq!(
            difference(&page("Bulgarian", "it"), &page("Portuguese", "it")),
            None
        );
        // A single character has to recur twice.
        let page = |what: &str, second: &str| {
            format!("词表：{what}\n{PAGE} 这是{what}的词。{PAGE} 另有{second}的表。{PAGE}")
        };
        assert_eq!(difference(&page("甲", "丙"), &page("乙", "丙")), None);
        assert!(difference(&page("甲", "甲"), &page("乙", "乙")).is_some());
    }

    #[test]
    fn a_recurring_word_of_the_language_is_no_difference() {
        let article = |headline: &str, bread: &str| {
            format!("{headline}\n{PAGE} They ate {bread} bread at noon. {PAGE}")
        };
        let nurses = article("Nurses like the roof of the hall", "of");
        let guards = article("Guards paint a ship today", "a");
        assert_eq!(difference(&nurses, &guards), None);
        // A word that the common part has nowhere is what a text is about, however often it has the other one.
        let page = |what: &str| {
            format!(
                "Files for {what}\n{PAGE} The words of {what} are known. Portuguese too, Portuguese. {PAGE}"
            )
        };
        let (bulgarian, portuguese) = (page("Bulgarian"), page("Portuguese"));
        assert!(difference(&bulgarian, &portuguese).is_some());
        let listing = |text: &str| text.replace("too, ", "too, Bulgarian, Bulgarian, ");
        assert_eq!(
            difference(&listing(&bulgarian), &listing(&portuguese)),
            None
        );
    }

    #[test]
    fn a_code_that_is_added_to_title_and_body_is_a_difference() {
        let page = |operator: &str, used: &str| {
            format!("The operator xor {operator}\n{PAGE} Write a xor {used} for short. {PAGE}")
        };
        let (plain, assigning) = (page("", ""), page("_eq", "_eq"));
        assert_eq!(
            difference(&plain, &assigning),
            Some(ContentDifference::Title([0..3, 0..4]))
        );
        // A word, or a number, or a code that is added to the title alone makes none.
        assert_eq!(difference(&plain, &page("new", "new")), None);
        assert_eq!(difference(&plain, &page("2015", "2015")), None);
        assert_eq!(difference(&plain, &page("_eq", "")), None);
        let untitled = page("", "").replace('\n', " ");
        assert_eq!(difference(&untitled, &page("_eq", "_eq")), None);
        // At the edge, it may be a footer.
        assert_eq!(
            difference(&plain, &format!("{}. x_eq", page("_eq", ""))),
            None
        );
    }

    #[test]
    fn a_text_of_one_line_or_with_a_long_first_line_has_no_title() {
        let line = |name: &str| page(name).replace('\n', " ");
        assert_eq!(difference(&line("glRectd"), &line("glRects")), None);
        for (words, is_title) in [(MOST_TITLE_TOKENS, true), (MOST_TITLE_TOKENS + 1, false)] {
            let long = |name: &str| format!("{name}{}\n{PAGE}", " word".repeat(words - 1));
            assert_eq!(
                difference(&long("glRectd"), &long("glRects")).is_some(),
                is_title,
                "{words}"
            );
        }
    }

    #[test]
    fn half_of_the_numbers_and_two_of_them_are_a_difference() {
        let notice = |first: u32, second: u32, others: &str| {
            format!(
                "Road {first} is closed for {second} days because of works. {PAGE} {others} Ask at the office."
            )
        };
        let differ =
            |a: &str, b: &str| matches!(difference(a, b), Some(ContentDifference::Numbers(_)));
        assert!(differ(&notice(12, 30, ""), &notice(47, 85, "")));
        // One corrected number, and a number that both replace by the same.
        assert!(!differ(&notice(12, 30, ""), &notice(12, 85, "")));
        assert!(!differ(&notice(12, 30, ""), &notice(1, 1, "")));
        // A number beside an underscore is the same number.
        let plain = notice(12, 30, "See area 5 and area 6.");
        let joined = notice(12, 30, "See area_5 and area_6.");
        assert!(!differ(&plain, &joined));
        // Two of four numbers are half of them, and two of five are fewer.
        assert!(differ(
            &notice(12, 30, "See 7, 8."),
            &notice(47, 85, "See 7, 8.")
        ));
        assert!(!differ(
            &notice(12, 30, "See 7, 8, 9."),
            &notice(47, 85, "See 7, 8, 9.")
        ));
    }

    #[test]
    fn texts_without_tokens_have_no_difference() {
        assert_eq!(difference("", "1\n2"), None);
        assert_eq!(find_difference(&[], &marked(&page("glRectd"))), None);
        assert_eq!(difference("\u{feff}\r\n \r\n", "!"), None);
    }

    proptest! {
        /// The result does not depend on the order of the texts, and equal texts have no difference.
        #[test]
        fn the_order_of_texts_makes_no_difference(
            a in "([a-c甲乙][a-c1-3甲乙]{0,2}[ \n]){0,40}",
            b in "([a-c甲乙][a-c1-3甲乙]{0,2}[ \n]){0,40}",
        ) {
            let (a, b) = (marked(&a), marked(&b));
            let swapped = find_difference(&b, &a).map(ContentDifference::swap_texts);
            prop_assert_eq!(find_difference(&a, &b), swapped);
            prop_assert_eq!(find_difference(&a, &a), None);
        }
    }
}
