//! The stock that edits put into a text: passages, sentences, words and characters of other documents.

use std::collections::HashMap;

use super::random::SplitMix64;
use super::structure::{paragraph_ranges, sentence_ranges, split_units};

/// Passages longer than this are no boilerplate, in characters.
const LONGEST_PASSAGE: usize = 300;

/// So many passages are kept, the most frequent.
const KEPT_PASSAGES: usize = 200;

/// So many sentences, and so many words and characters, are taken from a document.
const SENTENCES_EACH: usize = 4;
const WORDS_EACH: usize = 32;

/// Text of a corpus that is put into other documents of it.
///
/// ```
/// use lookalike::quality::plant::{PlantedEdit, EditPlanter, TextStock};
///
/// // An inserted sentence comes from another document of the corpus.
/// let planter = EditPlanter::new(7, TextStock::new(["Wheat was cheap that year."]));
/// let edits = PlantedEdit::parse_edits("insert-sentences:20%")?;
/// let text = "Rain fell. The mill stood still. Nobody came. Two dogs slept. Night fell.";
/// let planted = planter.plant_edits("doc-1", text, &edits).unwrap();
/// assert!(planted.contains("Wheat was cheap that year"));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextStock {
    /// First and last paragraphs: those that several documents share if there are any.
    passages: Vec<String>,
    sentences: Vec<String>,
    words: Vec<String>,
    characters: Vec<char>,
}

impl TextStock {
    /// Collects from texts, of which a few hundred are enough; the same texts in the same order give
    /// the same stock.
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut stock = Self::default();
        let mut passages: HashMap<&str, usize> = HashMap::new();
        for text in texts {
            let paragraphs = paragraph_ranges(text);
            let ends = [paragraphs.first(), paragraphs.last()];
            let several = paragraphs.len() > 1;
            for range in ends.into_iter().flatten().filter(|_| several) {
                let passage = &text[range.clone()];
                if passage.chars().nth(LONGEST_PASSAGE).is_none() {
                    *passages.entry(passage).or_default() += 1;
                }
            }
            stock.add_parts(text);
        }
        stock.add_passages(passages);
        stock
    }

    fn add_parts(&mut self, text: &str) {
        let sentences = sentence_ranges(text);
        let chosen = spread_evenly(&sentences, SENTENCES_EACH);
        self.sentences
            .extend(chosen.map(|range| text[range.clone()].to_owned()));
        let units = split_units(text);
        for unit in spread_evenly(&units, WORDS_EACH) {
            let piece = &text[unit.range.clone()];
            if unit.is_word {
                self.words.push(piece.to_owned());
            } else {
                self.characters.extend(piece.chars());
            }
        }
    }

    fn add_passages(&mut self, passages: HashMap<&str, usize>) {
        let mut passages: Vec<_> = passages.into_iter().collect();
        passages.sort_unstable_by_key(|&(passage, count)| (std::cmp::Reverse(count), passage));
        let shared = passages.iter().filter(|(_, count)| *count > 1).count();
        if shared > 0 {
            passages.truncate(shared);
        }
        passages.truncate(KEPT_PASSAGES);
        self.passages = passages
            .into_iter()
            .map(|(passage, _)| passage.to_owned())
            .collect();
    }

    /// A passage that the text does not have.
    pub(super) fn choose_passage(&self, text: &str, random: &mut SplitMix64) -> Option<&str> {
        other_than(&self.passages, random, |passage| !text.contains(passage))
    }

    /// A sentence that the text does not have.
    pub(super) fn choose_sentence(&self, text: &str, random: &mut SplitMix64) -> Option<&str> {
        other_than(&self.sentences, random, |sentence| !text.contains(sentence))
    }

    /// A word other than this one.
    pub(super) fn choose_word(&self, word: &str, random: &mut SplitMix64) -> Option<&str> {
        other_than(&self.words, random, |other| other != word)
    }

    /// A character of a script written without spaces, other than this one.
    pub(super) fn choose_character(&self, piece: &str, random: &mut SplitMix64) -> Option<char> {
        let tries = (0..DRAW_TRIES).filter_map(|_| random.choose_one(&self.characters).copied());
        tries.into_iter().find(|&other| !piece.contains(other))
    }
}

/// So often something else is drawn before there is nothing else.
const DRAW_TRIES: usize = 8;

fn other_than<'s>(
    list: &'s [String],
    random: &mut SplitMix64,
    fits: impl Fn(&str) -> bool,
) -> Option<&'s str> {
    let mut tries = (0..DRAW_TRIES).filter_map(|_| random.choose_one(list));
    tries.find(|item| fits(item)).map(String::as_str)
}

/// Up to `most` of a list, evenly spread over it.
fn spread_evenly<T>(list: &[T], most: usize) -> impl Iterator<Item = &T> {
    let count = most.min(list.len());
    (0..count).map(move |at| &list[at * list.len() / count])
}
