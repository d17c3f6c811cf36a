//! The grams of frames: runs of tokens by which the forms are found that a text may have.
//!
//! A frame is known by its rarest grams of three tokens. Grams of two tokens, and then of one, are added while there are
//! fewer than [`ENOUGH_GRAMS`], because the parts of a frame may be too short for longer ones. A bitmap
//! rejects nearly all grams of a text that no frame has.

use std::collections::HashMap;
use std::ops::Range;

use super::form_index::IndexedFrame;
use crate::hash::mix_bits;

/// Largest number of tokens of a gram.
const LONGEST_GRAM: usize = 3;

/// Least number of grams by which a frame is known, if shorter ones are more.
const ENOUGH_GRAMS: usize = 8;

/// Largest number of grams by which a frame is known.
const MOST_GRAMS: usize = 48;

/// Bits of the bitmap for each gram.
const BITS_PER_GRAM: usize = 32;

/// A gram of a frame: its length in tokens and its hash.
pub(super) type FrameGram = (usize, u64);

/// The grams of all frames of a table.
#[derive(Debug, Default)]
pub(super) struct FrameGrams {
    /// For each length of grams, whether a frame has one.
    has_length: [bool; LONGEST_GRAM + 1],
    /// One bit per gram, at the low bits of its hash.
    bitmap: Vec<u64>,
    positions: HashMap<u64, u32>,
    /// The forms of each gram.
    forms: Vec<Vec<u32>>,
}

impl FrameGrams {
    /// Builds the index of the grams of each frame, and notes in the frames how many of theirs are in it.
    pub(super) fn new(mut grams: Vec<Vec<FrameGram>>, frames: &mut [IndexedFrame]) -> Self {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for (_, gram) in grams.iter().flatten() {
            *counts.entry(*gram).or_default() += 1;
        }
        let mut index = Self::default();
        for ((form, grams), frame) in (0..).zip(&mut grams).zip(frames) {
            grams.sort_unstable_by_key(|&(length, gram)| (counts[&gram], length, gram));
            grams.truncate(MOST_GRAMS);
            frame.gram_count = grams.len();
            for &(length, gram) in &*grams {
                index.has_length[length] = true;
                let next = index.forms.len() as u32;
                let position = *index.positions.entry(gram).or_insert(next);
                if position == next {
                    index.forms.push(Vec::new());
                }
                index.forms[position as usize].push(form);
            }
        }
        index.fill_bitmap();
        index
    }

    fn fill_bitmap(&mut self) {
        let bits = (BITS_PER_GRAM * self.positions.len()).next_power_of_two();
        self.bitmap = vec![0; bits.div_ceil(64)];
        for &gram in self.positions.keys() {
            let bit = self.bit_of(gram);
            self.bitmap[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn bit_of(&self, gram: u64) -> usize {
        gram as usize & (64 * self.bitmap.len() - 1)
    }

    fn may_have(&self, gram: u64) -> bool {
        let bit = self.bit_of(gram);
        self.bitmap[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// Returns the numbers of the different grams of frames that a text has.
    pub(super) fn find_grams(&self, tokens: &[u64]) -> Vec<u32> {
        let mut found = Vec::new();
        if self.positions.is_empty() {
            return found;
        }
        for length in (1..=LONGEST_GRAM).filter(|&length| self.has_length[length]) {
            let grams = tokens.windows(length).map(hash_gram);
            let known = grams.filter(|&gram| self.may_have(gram));
            found.extend(known.filter_map(|gram| self.positions.get(&gram)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the forms whose frames are known by a gram.
    pub(super) fn forms_of(&self, gram_number: u32) -> &[u32] {
        &self.forms[gram_number as usize]
    }
}

/// Returns the grams by which a frame may be known: grams of three tokens, and shorter ones while they are too few.
pub(super) fn choose_grams(tokens: &[u64], parts: &[Range<usize>]) -> Vec<FrameGram> {
    let mut chosen: Vec<FrameGram> = Vec::new();
    for length in (1..=LONGEST_GRAM).rev() {
        let grams = parts
            .iter()
            .flat_map(|part| tokens[part.clone()].windows(length));
        chosen.extend(grams.map(|gram| (length, hash_gram(gram))));
        chosen.sort_unstable();
        chosen.dedup();
        if chosen.len() >= ENOUGH_GRAMS {
            break;
        }
    }
    chosen
}

fn hash_gram(tokens: &[u64]) -> u64 {
    let start = tokens.len() as u64;
    let join = |hash: u64, &token: &u64| mix_bits(hash.rotate_left(23) ^ token);
    tokens.iter().fold(start, join)
}
