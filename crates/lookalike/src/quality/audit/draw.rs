//! Which documents are drawn, and how many.
//!
//! Every document has a number that follows from the seed and the document's name alone. The documents with
//! the smallest numbers are drawn, so the sample does not depend on the order in which documents come.

use crate::hash::value_hash;

/// One document in this many is drawn, within the two bounds below.
const DOCUMENTS_A_DRAW: f64 = 80.0;
const FEWEST_DRAWN: usize = 500;
const MOST_DRAWN: usize = 1_000;

/// Returns the number by which a document is drawn. `name` identifies the document, for example by its row.
pub fn draw_number(seed: u64, name: &[u8]) -> u64 {
    let seed = seed.to_le_bytes();
    let mut seeded = [0; SHORT_NAME + 8];
    if let Some(place) = seeded.get_mut(8..8 + name.len()) {
        place.copy_from_slice(name);
        seeded[..8].copy_from_slice(&seed);
        return value_hash(&seeded[..8 + name.len()]);
    }
    value_hash(&[&seed, name].concat())
}

/// Largest length of a name in bytes that is hashed without an allocation.
const SHORT_NAME: usize = 56;

/// Returns the number of documents to draw from `documents`, if nobody asks for another one.
pub fn default_sample_size(documents: f64) -> usize {
    ((documents / DOCUMENTS_A_DRAW) as usize).clamp(FEWEST_DRAWN, MOST_DRAWN)
}

/// Returns the largest number with which a document may be among the `wanted` drawn ones of `documents`.
///
/// It admits `surplus` times as many as wanted, and four standard deviations more, so it is very unlikely
/// that chance yields too few. Of those admitted, the documents with the smallest numbers are drawn.
pub fn draw_limit(wanted: usize, documents: f64, surplus: f64) -> u64 {
    let wanted = wanted as f64;
    let share = (surplus * wanted + 4.0 * wanted.sqrt() + 8.0) / documents;
    if share < 1.0 {
        (share * u64::MAX as f64) as u64
    } else {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_admit_the_wanted_documents() {
        for (wanted, documents) in [(1, 1u32), (20, 25), (100, 5_000), (1_000, 200_000)] {
            for seed in 1..=5 {
                let limit = draw_limit(wanted, f64::from(documents), 1.0);
                let admitted = (0..documents)
                    .filter(|row| draw_number(seed, &row.to_le_bytes()) <= limit)
                    .count();
                assert!(admitted >= wanted, "{admitted} of {wanted}");
                assert!(
                    admitted as f64 <= wanted as f64 + 8.0 * (wanted as f64).sqrt() + 24.0
                        || documents < 100,
                    "{admitted} of {wanted}"
                );
            }
        }
    }

    #[test]
    fn names_of_any_length_have_a_number() {
        let name = [7; SHORT_NAME + 2];
        for length in [
            0,
            1,
            SHORT_NAME - 1,
            SHORT_NAME,
            SHORT_NAME + 1,
            SHORT_NAME + 2,
        ] {
            let seeded = [&3u64.to_le_bytes()[..], &name[..length]].concat();
            assert_eq!(draw_number(3, &name[..length]), value_hash(&seeded));
        }
    }

    #[test]
    fn sizes_follow_the_documents_within_bounds() {
        let sizes = [0.0, 40_000.0, 48_000.0, 80_000.0, 1e12].map(default_sample_size);
        assert_eq!(sizes, [500, 500, 600, 1_000, 1_000]);
    }
}
