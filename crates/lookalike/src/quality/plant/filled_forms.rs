//! Filled forms made of a document: its text with other values at some places.

use std::collections::HashSet;

use super::EditPlanter;
use super::random::SplitMix64;
use super::stock::TextStock;
use super::structure::{TextUnit, split_units};

/// Largest number of slots of a form.
const MOST_SLOTS: usize = 6;

/// Words and characters for each slot, so that a form is mostly frame.
const UNITS_PER_SLOT: usize = 10;

/// Words and characters before the first slot and behind the last, which belong to the frame.
const EDGE_UNITS: usize = 6;

/// Words or characters of a made-up header, if the corpus has no passages.
const HEADER_WORDS: usize = 5;

/// Number of attempts to make a text that differs from those before.
const FILLING_ATTEMPTS: usize = 4;

impl EditPlanter {
    /// Returns up to `count` texts that fill a form of the document. Each text has other values than the document at the same one
    /// to six places. Numbers are preferred as places. A number becomes another number of as many digits, and a word or a
    /// character those of other documents. Returns none if the text is too short for a slot.
    ///
    /// ```
    /// use lookalike::quality::plant::{EditPlanter, TextStock};
    ///
    /// let planter = EditPlanter::new(7, TextStock::new(["Two old boats left the harbour at dawn."]));
    /// let text = "The ferry to the island leaves the northern pier at 7 every morning from March to the end of October.";
    /// let filled = planter.fill_form("doc-1", text, 3);
    /// assert_eq!(filled.len(), 3);
    /// assert!(filled.iter().all(|form| form.starts_with("The ferry to the island") && form != text));
    /// assert!(planter.fill_form("doc-2", "Too short.", 3).is_empty());
    /// ```
    pub fn fill_form(&self, id: &str, text: &str, count: usize) -> Vec<String> {
        let units = split_units(text);
        let mut random = SplitMix64::from_document(self.seed, id, "slots");
        let slots = choose_slots(&units, text, &mut random);
        if slots.is_empty() {
            return Vec::new();
        }
        let mut known = HashSet::from([text.to_owned()]);
        let mut filled = Vec::new();
        for number in 0..count {
            let new = (0..FILLING_ATTEMPTS).find_map(|attempt| {
                let purpose = format!("fill {number} {attempt}");
                let mut random = SplitMix64::from_document(self.seed, id, &purpose);
                let text = fill_slots(text, &slots, &self.stock, &mut random)?;
                known.insert(text.clone()).then_some(text)
            });
            filled.extend(new);
        }
        filled
    }

    /// Returns the text under a header: a passage that documents begin or end with, or else some words of other documents.
    /// Returns `None` if the stock is empty.
    pub fn add_header(&self, id: &str, text: &str) -> Option<String> {
        let mut random = SplitMix64::from_document(self.seed, id, "header");
        let header = self.choose_line(text, &mut random)?;
        Some(format!("{header}\n{text}"))
    }

    /// Returns the text before a footer, chosen as [`add_header`](Self::add_header) chooses a header.
    pub fn add_footer(&self, id: &str, text: &str) -> Option<String> {
        let mut random = SplitMix64::from_document(self.seed, id, "footer");
        let footer = self.choose_line(text, &mut random)?;
        Some(format!("{text}\n{footer}"))
    }

    fn choose_line(&self, text: &str, random: &mut SplitMix64) -> Option<String> {
        if let Some(passage) = self.stock.choose_passage(text, random) {
            return Some(passage.to_owned());
        }
        let words = (0..HEADER_WORDS).filter_map(|_| self.stock.choose_word("", random));
        let line = words.collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            return Some(line);
        }
        let characters = (0..HEADER_WORDS).filter_map(|_| self.stock.choose_character("", random));
        let line: String = characters.collect();
        (!line.is_empty()).then_some(line)
    }
}

/// Chooses places inside a text, in its order, with a part of the frame between two of them.
fn choose_slots<'u>(
    units: &'u [TextUnit],
    text: &str,
    random: &mut SplitMix64,
) -> Vec<&'u TextUnit> {
    let inner = units.len().saturating_sub(2 * EDGE_UNITS);
    let most = (units.len() / UNITS_PER_SLOT).min(MOST_SLOTS);
    if inner == 0 || most == 0 {
        return Vec::new();
    }
    let count = 1 + random.next_below(most);
    let section = inner / count;
    // A slot lies in the first half of its section, so that the frame follows it.
    let slots = (0..count).map(|slot| {
        let start = EDGE_UNITS + slot * section;
        let places = &units[start..start + section.div_ceil(2)];
        let number = places.iter().find(|unit| is_number(unit, text));
        number.or_else(|| random.choose_one(places))
    });
    slots.flatten().collect()
}

fn is_number(unit: &TextUnit, text: &str) -> bool {
    text[unit.range.clone()]
        .bytes()
        .all(|byte| byte.is_ascii_digit())
}

/// Returns the text with a new value in each slot; `None` if the stock has no other value for one.
fn fill_slots(
    text: &str,
    slots: &[&TextUnit],
    stock: &TextStock,
    random: &mut SplitMix64,
) -> Option<String> {
    let mut filled = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for slot in slots {
        filled.push_str(&text[copied..slot.range.start]);
        push_value(&text[slot.range.clone()], slot, stock, random, &mut filled)?;
        copied = slot.range.end;
    }
    filled.push_str(&text[copied..]);
    Some(filled)
}

/// Appends a value other than `old`.
fn push_value(
    old: &str,
    slot: &TextUnit,
    stock: &TextStock,
    random: &mut SplitMix64,
    into: &mut String,
) -> Option<()> {
    if old.bytes().all(|byte| byte.is_ascii_digit()) {
        let mut attempts = (0..FILLING_ATTEMPTS).map(|_| draw_number(old.len(), random));
        into.push_str(&attempts.find(|number| number != old)?);
    } else if slot.is_word {
        into.push_str(stock.choose_word(old, random)?);
    } else {
        for _ in 0..2 {
            into.push(stock.choose_character(old, random)?);
        }
    }
    Some(())
}

/// Returns a random number of so many digits; the first one is not 0.
fn draw_number(digits: usize, random: &mut SplitMix64) -> String {
    let digits = (0..digits).map(|at| {
        let least = usize::from(at == 0);
        char::from(b'0' + (least + random.next_below(10 - least)) as u8)
    });
    digits.collect()
}
