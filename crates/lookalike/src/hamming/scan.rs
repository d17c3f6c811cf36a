//! Plain search methods, kept as oracles and as baselines: comparing with every fingerprint,
//! probing the whole neighbourhood of a query, and storing the whole neighbourhood of every
//! fingerprint.

use std::collections::HashMap;

use super::fingerprint_code::{FingerprintCode, low_bits_mask};
use super::plan::MOST_NEIGHBOURHOODS;
use crate::arch::{Arch, Cpu, Kernel};
use crate::error::{Error, Result};
use crate::types::Distance;

/// Calls `visit` with the row and the distance of every fingerprint within `distance` of the query,
/// in row order. Costs one comparison per fingerprint.
///
/// ```
/// use lookalike::Distance;
/// use lookalike::hamming::scan::scan_within;
///
/// let (codes, mut found) = ([0b0000_u64, 0b0111, 0b1111], Vec::new());
/// scan_within(&codes, 0b0011, Distance::new(1, 64)?, |row, distance| found.push((row, distance)));
/// assert_eq!(found, [(1, 1)]);
/// # Ok::<_, lookalike::Error>(())
/// ```
pub fn scan_within<C: FingerprintCode>(
    codes: &[C],
    query: C,
    distance: Distance,
    mut visit: impl FnMut(usize, u32),
) {
    for (row, &code) in codes.iter().enumerate() {
        let differing = code.hamming_distance(query);
        if differing <= distance.get() {
            visit(row, differing);
        }
    }
}

/// Writes the Hamming distance of `a[i]` and `b[i]` to `pairwise_distances[i]`, with the fastest bit count
/// that the CPU offers.
///
/// # Panics
/// If the three slices differ in length.
pub fn pairwise_distances<C: FingerprintCode>(a: &[C], b: &[C], distances: &mut [u8]) {
    assert!(a.len() == b.len() && a.len() == distances.len());
    Cpu::detect_best().run(DistancesKernel { a, b, distances });
}

struct DistancesKernel<'a, C> {
    a: &'a [C],
    b: &'a [C],
    distances: &'a mut [u8],
}

impl<C: FingerprintCode> Kernel for DistancesKernel<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        for ((distance, &a), &b) in self.distances.iter_mut().zip(self.a).zip(self.b) {
            *distance = a.hamming_distance(b) as u8;
        }
    }
}

/// Calls `visit` with every fingerprint of `bits` bits within `distance` of a centre, the centre
/// first. There are Σ C(bits, j) of them, for example 43,745 for 64 bits and distance 3.
pub fn neighbourhood<C: FingerprintCode>(
    centre: C,
    bits: u32,
    distance: Distance,
    mut visit: impl FnMut(C),
) {
    debug_assert_eq!(centre.widen() & !low_bits_mask(bits), 0);
    fn flip<C: FingerprintCode>(
        code: C,
        from: u32,
        bits: u32,
        left: u32,
        visit: &mut impl FnMut(C),
    ) {
        visit(code);
        if left == 0 {
            return;
        }
        for bit in from..bits {
            flip(
                code.differing_bits(C::narrow_from(1 << bit)),
                bit + 1,
                bits,
                left - 1,
                visit,
            );
        }
    }
    flip(centre, 0, bits, distance.get(), &mut visit);
}

/// Hash map from fingerprint to rows; a search probes the whole neighbourhood of the query.
#[derive(Debug)]
pub struct ExpandedQueryIndex<C> {
    rows: HashMap<C, Vec<u32>>,
    bits: u32,
}

impl<C: FingerprintCode> ExpandedQueryIndex<C> {
    /// Builds the map from fingerprints of `bits` bits.
    pub fn new(codes: &[C], bits: u32) -> Self {
        let mut rows: HashMap<C, Vec<u32>> = HashMap::new();
        for (row, &code) in codes.iter().enumerate() {
            rows.entry(code).or_default().push(row as u32);
        }
        Self { rows, bits }
    }

    /// Returns the rows within `distance` and their distances, sorted.
    pub fn search_within(&self, query: C, distance: Distance) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        neighbourhood(query, self.bits, distance, |code| {
            if let Some(rows) = self.rows.get(&code) {
                found.extend(rows.iter().map(|&row| (row, code.hamming_distance(query))));
            }
        });
        found.sort_unstable();
        found
    }
}

/// Hash map from every value near a fingerprint to its row; a search is one look-up. The map holds
/// one entry per value in the neighbourhood of each fingerprint.
#[derive(Debug)]
pub struct StoredNeighbourhoodIndex<C> {
    rows: HashMap<C, Vec<u32>>,
    codes: Vec<C>,
}

impl<C: FingerprintCode> StoredNeighbourhoodIndex<C> {
    /// Largest number of fingerprints that can be stored.
    pub const LIMIT: usize = MOST_NEIGHBOURHOODS as usize;

    /// Builds the map from fingerprints of `bits` bits.
    ///
    /// # Errors
    /// Returns an error if there are more than [`LIMIT`](Self::LIMIT) fingerprints.
    pub fn new(codes: &[C], bits: u32, distance: Distance) -> Result<Self> {
        if codes.len() > Self::LIMIT {
            return Err(Error::setting_error(format!(
                "{} fingerprints are more than the {} whose neighbourhoods can be stored",
                codes.len(),
                Self::LIMIT
            )));
        }
        let mut rows: HashMap<C, Vec<u32>> = HashMap::new();
        for (row, &code) in codes.iter().enumerate() {
            neighbourhood(code, bits, distance, |near| {
                rows.entry(near).or_default().push(row as u32);
            });
        }
        Ok(Self {
            rows,
            codes: codes.to_vec(),
        })
    }

    /// Returns the rows near the query and their distances, sorted.
    pub fn search_near(&self, query: C) -> Vec<(u32, u32)> {
        let rows = self.rows.get(&query).map_or(&[][..], Vec::as_slice);
        rows.iter()
            .map(|&row| (row, self.codes[row as usize].hamming_distance(query)))
            .collect()
    }
}

/// The block inverted index in its usual form: one hash map per block, from the value of the block
/// to rows.
#[derive(Debug)]
pub struct BlockInvertedIndex<C> {
    maps: Vec<HashMap<C, Vec<u32>>>,
    masks: Vec<C>,
    codes: Vec<C>,
    distance: Distance,
}

impl<C: FingerprintCode> BlockInvertedIndex<C> {
    /// Builds the index with `distance` + 1 blocks of about equal width.
    pub fn new(codes: &[C], bits: u32, distance: Distance) -> Self {
        let blocks = distance.get() + 1;
        let masks: Vec<C> = (0..blocks)
            .map(|block| {
                let (from, to) = (bits * block / blocks, bits * (block + 1) / blocks);
                C::narrow_from(low_bits_mask(to) ^ low_bits_mask(from))
            })
            .collect();
        let mut maps = vec![HashMap::<C, Vec<u32>>::new(); masks.len()];
        for (row, &code) in codes.iter().enumerate() {
            for (map, mask) in maps.iter_mut().zip(&masks) {
                let value = C::narrow_from(code.widen() & mask.widen());
                map.entry(value).or_default().push(row as u32);
            }
        }
        Self {
            maps,
            masks,
            codes: codes.to_vec(),
            distance,
        }
    }

    /// Returns the rows near the query and their distances, sorted.
    pub fn search_near(&self, query: C) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (map, mask) in self.maps.iter().zip(&self.masks) {
            let value = C::narrow_from(query.widen() & mask.widen());
            for &row in map.get(&value).map_or(&[][..], Vec::as_slice) {
                let differing = self.codes[row as usize].hamming_distance(query);
                if differing <= self.distance.get() {
                    found.push((row, differing));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;

    #[test]
    fn ball_of_64_bits_at_distance_3_has_43745_codes() {
        let mut count = 0;
        neighbourhood(7u64, 64, Distance::new(3, 64).unwrap(), |_| count += 1);
        assert_eq!(count, 43_745);
    }

    #[test]
    fn baselines_agree() {
        for bits in [8, 20] {
            let mask = low_bits_mask(bits) as u64;
            let codes: Vec<u64> = (0..300).map(|seed| mix_bits(seed % 250) & mask).collect();
            for distance in 0..4 {
                let distance = Distance::new(distance, bits).unwrap();
                let expanded = ExpandedQueryIndex::new(&codes, bits);
                let stored = StoredNeighbourhoodIndex::new(&codes, bits, distance).unwrap();
                let buckets = BlockInvertedIndex::new(&codes, bits, distance);
                for query in (200..260).map(|seed| mix_bits(seed) & mask) {
                    let mut expected = Vec::new();
                    scan_within(&codes, query, distance, |row, differing| {
                        expected.push((row as u32, differing));
                    });
                    assert_eq!(expanded.search_within(query, distance), expected);
                    assert_eq!(stored.search_near(query), expected);
                    assert_eq!(buckets.search_near(query), expected);
                }
            }
        }
        assert!(
            StoredNeighbourhoodIndex::new(&vec![0u64; 10_001], 64, Distance::new(1, 64).unwrap())
                .is_err()
        );
    }
}
