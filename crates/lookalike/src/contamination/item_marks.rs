//! The words of an item in an excerpt of a document, for people who look at a finding.
//!
//! A finding has the place of the part that was found. Its single words, and the places of choices and answer, are found
//! again here, because only the findings that are shown need them. All tokens weigh the same, so a word on the edge of
//! the part may be marked differently from how the search has counted it.
//!
//! Cost: the product of the tokens of each text and those of the excerpt, in operations of about a nanosecond.

use std::collections::HashMap;
use std::ops::Range;

use super::alignment::{AlignmentBuffers, align_unit};
use super::index::{ItemTexts, MAX_UNIT_TOKENS};
use super::item_tokens::ItemTokenizer;
use super::nearby_parts::{MAX_EXACT_PART_TOKENS, gap_between};
use super::search::ItemPart;
use super::term_table::NO_TERM;
use crate::error::Result;

/// Weight of every token in an alignment, in sixteenths of bits: that of a rather rare word.
const TOKEN_WEIGHT: u32 = 12 * 16;

/// Term of a token of an item that the excerpt does not have.
const ABSENT_TERM: u32 = NO_TERM - 1;

/// The words that an item and an excerpt of a document share, as ranges of bytes of each text. The ranges of a text ascend
/// and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemMarks {
    /// Of the question.
    pub question: Vec<Range<usize>>,
    /// Of each choice.
    pub choices: Vec<Vec<Range<usize>>>,
    /// Of the answer.
    pub answer: Vec<Range<usize>>,
    /// Of the excerpt.
    pub excerpt: Vec<Range<usize>>,
}

/// Marks the words of items in excerpts, one after another.
#[derive(Debug, Default)]
pub struct ItemMarker {
    tokenizer: ItemTokenizer,
    alignment: AlignmentBuffers,
}

impl ItemMarker {
    /// Marks the words of an item in an excerpt. `place` has the bytes of the excerpt in which `part` was found. Choices and
    /// answer are looked for in the rest of it if the part is the question.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if a text has 4 GiB or more.
    ///
    /// ```
    /// use lookalike::contamination::{ItemMarker, ItemPart, ItemTexts};
    ///
    /// let item = ItemTexts { question: "Who rows the boat?", choices: &[], answer: "Ottilie", passage: "" };
    /// let excerpt = "They ask WHO ROWS the old boat. It is Ottilie.";
    /// let marks = ItemMarker::default().mark_item(item, ItemPart::Question, excerpt, 9..30)?;
    /// let marked: Vec<&str> = marks.excerpt.into_iter().map(|range| &excerpt[range]).collect();
    /// assert_eq!(marked, ["WHO ROWS the", "boat", "Ottilie"]);
    /// # Ok::<_, lookalike::Error>(())
    /// ```
    pub fn mark_item(
        &mut self,
        item: ItemTexts<'_>,
        part: ItemPart,
        excerpt: &str,
        place: Range<usize>,
    ) -> Result<ItemMarks> {
        let mut excerpt = ExcerptTokens::new(&mut self.tokenizer, excerpt, &place)?;
        let mut marks = ItemMarks {
            choices: vec![Vec::new(); item.choices.len()],
            ..ItemMarks::default()
        };
        match part {
            ItemPart::Question => {
                marks.question = self.mark_found(item.question, &mut excerpt)?;
                for (choice, marks) in item.choices.iter().zip(&mut marks.choices) {
                    *marks = self.mark_nearby(choice, &mut excerpt)?;
                }
                marks.answer = self.mark_nearby(item.answer, &mut excerpt)?;
            }
            ItemPart::Answer => marks.answer = self.mark_found(item.answer, &mut excerpt)?,
        }
        marks.excerpt = excerpt.marked_ranges();
        Ok(marks)
    }

    /// Marks the text that was found, and takes its words out of the excerpt.
    fn mark_found(&mut self, text: &str, excerpt: &mut ExcerptTokens) -> Result<Vec<Range<usize>>> {
        let text = TextTokens::new(&mut self.tokenizer, text, excerpt)?;
        let place = excerpt.place.clone();
        let within = &excerpt.terms[place.clone()];
        let alignment = align_unit(
            &text.terms,
            within,
            |_| TOKEN_WEIGHT,
            0,
            &mut self.alignment,
        );
        let places = alignment.places.iter();
        let places: Vec<Option<usize>> = places
            .map(|found| found.map(|found| place.start + found as usize))
            .collect();
        for &found in places.iter().flatten() {
            excerpt.is_marked[found] = true;
            excerpt.terms[found] = NO_TERM;
        }
        Ok(text.found_ranges(&places))
    }

    /// Marks a choice or an answer if it stands in the excerpt: a short one token by token, nearest to the part that was
    /// found, and three quarters of a longer one.
    fn mark_nearby(
        &mut self,
        text: &str,
        excerpt: &mut ExcerptTokens,
    ) -> Result<Vec<Range<usize>>> {
        let text = TextTokens::new(&mut self.tokenizer, text, excerpt)?;
        let count = text.terms.len();
        let places: Vec<Option<usize>> = if count == 0 {
            Vec::new()
        } else if count <= MAX_EXACT_PART_TOKENS {
            let Some(place) = excerpt.find_nearest(&text.terms) else {
                return Ok(Vec::new());
            };
            place.map(Some).collect()
        } else {
            let terms = &excerpt.terms;
            let alignment =
                align_unit(&text.terms, terms, |_| TOKEN_WEIGHT, 0, &mut self.alignment);
            if 4 * alignment.found_count() < 3 * count {
                return Ok(Vec::new());
            }
            let places = alignment.places.iter();
            places.map(|found| found.map(|at| at as usize)).collect()
        };
        for &found in places.iter().flatten() {
            excerpt.is_marked[found] = true;
        }
        Ok(text.found_ranges(&places))
    }
}

/// The tokens of an excerpt. Those of the part that was found become [`NO_TERM`] once they are marked.
struct ExcerptTokens {
    /// The term of each different token.
    numbers: HashMap<u64, u32>,
    terms: Vec<u32>,
    bytes: Vec<Range<usize>>,
    is_marked: Vec<bool>,
    /// The tokens of the part that was found.
    place: Range<usize>,
}

impl ExcerptTokens {
    fn new(tokenizer: &mut ItemTokenizer, text: &str, place: &Range<usize>) -> Result<Self> {
        let tokens = tokenizer.tokenize_text(text)?;
        let mut numbers = HashMap::new();
        let mut terms = Vec::with_capacity(tokens.len());
        for &token in tokens.values() {
            let next = numbers.len() as u32;
            terms.push(*numbers.entry(token).or_insert(next));
        }
        let bytes = (0..tokens.len()).map(|at| tokens.byte_range(at..at + 1));
        let bytes: Vec<Range<usize>> = bytes.collect();
        let start = bytes.partition_point(|range| range.start < place.start);
        let end = bytes.partition_point(|range| range.end <= place.end);
        Ok(Self {
            numbers,
            is_marked: vec![false; terms.len()],
            terms,
            bytes,
            place: start..end.max(start),
        })
    }

    /// Returns the tokens nearest to the part that was found that are these, one behind the other.
    fn find_nearest(&self, terms: &[u32]) -> Option<Range<usize>> {
        let windows = self.terms.windows(terms.len()).enumerate();
        let equal = windows.filter(|(_, window)| *window == terms);
        let places = equal.map(|(at, _)| at..at + terms.len());
        places.min_by_key(|place| (gap_between(place, &self.place), place.start))
    }

    fn marked_ranges(&self) -> Vec<Range<usize>> {
        join_marked(&self.bytes, |at| self.is_marked[at])
    }
}

/// The first tokens of a text of an item, as terms of an excerpt.
struct TextTokens {
    terms: Vec<u32>,
    bytes: Vec<Range<usize>>,
}

impl TextTokens {
    fn new(tokenizer: &mut ItemTokenizer, text: &str, excerpt: &ExcerptTokens) -> Result<Self> {
        let tokens = tokenizer.tokenize_text(text)?;
        let values = tokens.values().iter().take(MAX_UNIT_TOKENS);
        let terms = values.map(|token| excerpt.numbers.get(token).copied().unwrap_or(ABSENT_TERM));
        let terms: Vec<u32> = terms.collect();
        let bytes = (0..terms.len()).map(|at| tokens.byte_range(at..at + 1));
        Ok(Self {
            bytes: bytes.collect(),
            terms,
        })
    }

    /// Returns the bytes of the tokens that have a place.
    fn found_ranges(&self, places: &[Option<usize>]) -> Vec<Range<usize>> {
        join_marked(&self.bytes, |at| {
            places.get(at).copied().flatten().is_some()
        })
    }
}

/// Returns the bytes of runs of marked tokens, with what stands between the tokens of a run.
fn join_marked(bytes: &[Range<usize>], is_marked: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut last_marked = None;
    for (at, range) in bytes.iter().enumerate().filter(|&(at, _)| is_marked(at)) {
        match ranges.last_mut() {
            Some(last) if last_marked == at.checked_sub(1) => last.end = range.end,
            _ => ranges.push(range.clone()),
        }
        last_marked = Some(at);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "Which instrument in her kitchen tells the height of the tide?";

    /// Returns the marked parts of the question, of the choices, of the answer and of the excerpt.
    fn mark(
        choices: &[&str],
        answer: &str,
        part: ItemPart,
        excerpt: &str,
        place: &str,
    ) -> [Vec<String>; 4] {
        let choices: Vec<String> = choices.iter().map(|&choice| choice.to_owned()).collect();
        let item = ItemTexts {
            question: QUESTION,
            choices: &choices,
            answer,
            passage: "",
        };
        let start = excerpt.find(place).unwrap();
        let place = start..start + place.len();
        let marks = ItemMarker::default().mark_item(item, part, excerpt, place);
        let marks = marks.unwrap();
        let parts = |text: &str, ranges: &[Range<usize>]| -> Vec<String> {
            let parts = ranges.iter().map(|range| text[range.clone()].to_owned());
            parts.collect()
        };
        let of_choices = choices.iter().zip(&marks.choices);
        [
            parts(QUESTION, &marks.question),
            of_choices
                .flat_map(|(choice, ranges)| parts(choice, ranges))
                .collect(),
            parts(answer, &marks.answer),
            parts(excerpt, &marks.excerpt),
        ]
    }

    #[test]
    fn replaced_words_are_not_marked() {
        let quoted = "WHICH INSTRUMENT in her <b>pantry</b> tells the height of the tide";
        let excerpt = format!("The tide of notes. {quoted}? Nobody knew the height.");
        let [question, _, _, marked] = mark(&[], "", ItemPart::Question, &excerpt, quoted);
        assert_eq!(
            question,
            ["Which instrument in her", "tells the height of the tide"]
        );
        assert_eq!(
            marked,
            ["WHICH INSTRUMENT in her", "tells the height of the tide"]
        );
    }

    #[test]
    fn choices_and_answer_are_marked_nearby() {
        let excerpt =
            format!("{QUESTION} (A) a brass gauge (B) an oak hourglass. Right: A brass gauge");
        let choices = ["a brass gauge", "an oak hourglass", "a folding sextant"];
        let [question, chosen, answer, marked] = mark(
            &choices,
            "a brass gauge",
            ItemPart::Question,
            &excerpt,
            QUESTION,
        );
        assert_eq!(question, [QUESTION.trim_end_matches('?')]);
        assert_eq!(chosen, ["a brass gauge", "an oak hourglass"]);
        assert_eq!(answer, ["a brass gauge"]);
        assert_eq!(
            marked,
            [
                QUESTION.trim_end_matches('?'),
                "a brass gauge",
                "an oak hourglass"
            ]
        );
    }

    #[test]
    fn question_is_not_looked_for_beside_a_found_answer() {
        let answer = "It is the gauge of brass that hangs beside the window of her pantry";
        let excerpt = format!("{QUESTION} {answer}.");
        let [question, _, marked_answer, marked] =
            mark(&[], answer, ItemPart::Answer, &excerpt, answer);
        assert_eq!(question, Vec::<String>::new());
        assert_eq!(marked_answer, [answer]);
        assert_eq!(marked, [answer]);
    }

    #[test]
    fn texts_without_words_have_no_marks() {
        let marks = ItemMarker::default().mark_item(
            ItemTexts {
                question: "?!",
                choices: &["–".to_owned()],
                answer: "",
                passage: "",
            },
            ItemPart::Question,
            "",
            0..0,
        );
        let expected = ItemMarks {
            choices: vec![Vec::new()],
            ..ItemMarks::default()
        };
        assert_eq!(marks.unwrap(), expected);
    }
}
