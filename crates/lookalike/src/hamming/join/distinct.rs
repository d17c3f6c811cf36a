//! Fingerprints in ascending order, with equal ones collapsed.

use std::ops::Range;

use rayon::prelude::*;

use super::super::fingerprint_code::{FingerprintCode, low_bits_mask};
use crate::arch::LargePageArray;
use crate::error::{Error, ErrorKind, Result};

/// The distinct values of a list of fingerprints, ascending, each with its rows.
///
/// Takes [`FingerprintCode::BITS`]/8 + 8 bytes per row and half a byte per value. While it is built, each
/// thread takes a few hundred KiB more, or 32 bytes per row of the largest run of fingerprints that
/// agree in their upper bits.
///
/// ```
/// use lookalike::hamming::join::DistinctCodes;
///
/// let distinct = DistinctCodes::new(&[9_u64, 4, 9], 64)?;
/// assert_eq!(distinct.codes(), [4, 9]);
/// assert_eq!(distinct.rows_of_value(1), [0, 2]);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct DistinctCodes<C: FingerprintCode> {
    codes: LargePageArray<C>,
    /// Start of the rows of every value. There is an element per row, but only the first `length`
    /// are used.
    starts: LargePageArray<u32>,
    rows: LargePageArray<u32>,
    length: usize,
    directory: CodeDirectory,
}

impl<C: FingerprintCode> DistinctCodes<C> {
    /// Sorts fingerprints of `bits` bits. Runs in the `rayon` pool in which it is called.
    ///
    /// # Errors
    /// Returns an error if there are more than 2³² − 1 fingerprints, if one of them has a bit above
    /// the lowest `bits`, or if there is not enough memory.
    pub fn new(codes: &[C], bits: u32) -> Result<Self> {
        let above = !low_bits_mask(bits.min(C::BITS));
        if codes.len() > u32::MAX as usize {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("{} fingerprints are more than 2³² − 1", codes.len()),
            ));
        }
        if let Some(row) = codes
            .par_iter()
            .position_any(|code| code.widen() & above != 0)
        {
            return Err(Error::setting_error(format!(
                "the fingerprint {:#x} in row {row} has more than {bits} bits",
                codes[row].widen()
            )));
        }
        Self::sort_codes(codes)
    }

    fn sort_codes(codes: &[C]) -> Result<Self> {
        let buckets = SortBuckets::new(codes);
        let mut sorted = LargePageArray::allocate_zeroed(codes.len())?;
        let mut rows = LargePageArray::allocate_zeroed(codes.len())?;
        let mut starts = LargePageArray::allocate_zeroed(codes.len())?;
        let ends = buckets.scatter_codes(codes, &mut sorted, &mut rows);
        let lengths: Vec<usize> = ends.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let pieces = split_pieces(&mut sorted, &lengths)
            .into_iter()
            .zip(split_pieces(&mut rows, &lengths))
            .zip(split_pieces(&mut starts, &lengths))
            .zip(&ends);
        let pieces: Vec<_> = pieces.collect();
        let distinct: Vec<usize> = pieces
            .into_par_iter()
            .map_init(
                BucketSorter::default,
                |sorter, (((codes, rows), starts), &start)| {
                    sorter.sort_bucket(codes, rows);
                    collapse_runs(codes, starts, start as u32)
                },
            )
            .collect();
        let mut length = 0;
        for (&start, &count) in ends.iter().zip(&distinct) {
            if start != length {
                sorted.copy_within(start..start + count, length);
                starts.copy_within(start..start + count, length);
            }
            length += count;
        }
        let directory = CodeDirectory::new(&sorted[..length])?;
        Ok(Self {
            codes: sorted,
            starts,
            rows,
            length,
            directory,
        })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there are no values.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the values, ascending.
    pub fn codes(&self) -> &[C] {
        &self.codes[..self.length]
    }

    /// Returns the rows of the value at position `at`, ascending; there is at least one.
    pub fn rows_of_value(&self, at: u32) -> &[u32] {
        let at = at as usize;
        let end = if at + 1 < self.length {
            self.starts[at + 1] as usize
        } else {
            self.rows.len()
        };
        &self.rows[self.starts[at] as usize..end]
    }

    /// Returns the rows of every value that has more than one.
    pub fn repeated_rows(&self) -> impl Iterator<Item = &[u32]> {
        let all = (0..self.length as u32).map(|at| self.rows_of_value(at));
        all.filter(|rows| rows.len() > 1)
    }

    /// Returns the position of a value, which must exist.
    pub(super) fn position_of(&self, code: C) -> u32 {
        let range = self.directory.candidate_range(code);
        let before = self.codes[range.clone()].partition_point(|&other| other < code);
        (range.start + before) as u32
    }
}

/// Starts of the runs of values that have the same upper bits.
#[derive(Debug)]
struct CodeDirectory {
    starts: LargePageArray<u32>,
    shift: u32,
    mask: u128,
}

/// Values per entry of the directory, if they are spread evenly.
const TO_AN_ENTRY: usize = 8;

impl CodeDirectory {
    fn new<C: FingerprintCode>(sorted: &[C]) -> Result<Self> {
        let varying = match sorted {
            [first, .., last] => first.differing_bits(*last).widen(),
            _ => 0,
        };
        let width = u128::BITS - varying.leading_zeros();
        let bits = (sorted.len() / TO_AN_ENTRY).max(1).ilog2().min(width);
        let shift = width - bits;
        let mut directory = Self {
            starts: LargePageArray::allocate_zeroed((1 << bits) + 1)?,
            shift,
            mask: low_bits_mask(bits),
        };
        const PIECE: usize = 4096;
        let upper = |code: &C| (code.widen() >> shift.min(127) & low_bits_mask(bits)) as usize;
        let pieces = directory.starts.par_chunks_mut(PIECE).enumerate();
        pieces.for_each(|(piece, starts)| {
            let first = piece * PIECE;
            let mut at = sorted.partition_point(|code| upper(code) < first);
            for (entry, start) in (first..).zip(starts) {
                while at < sorted.len() && upper(&sorted[at]) < entry {
                    at += 1;
                }
                *start = at as u32;
            }
        });
        Ok(directory)
    }

    fn candidate_range<C: FingerprintCode>(&self, code: C) -> Range<usize> {
        let entry = (code.widen() >> self.shift.min(127) & self.mask) as usize;
        self.starts[entry] as usize..self.starts[entry + 1] as usize
    }
}

/// Buckets by the uppermost bits that vary.
struct SortBuckets {
    shift: u32,
    mask: usize,
}

/// Codes per bucket that is sorted at once, few enough to stay in the cache.
const BUCKET: usize = 8192;

/// Largest number of bits of a bucket number, so that cursors and open cache lines stay in the
/// cache.
const MOST_BITS: u32 = 12;

impl SortBuckets {
    fn new<C: FingerprintCode>(codes: &[C]) -> Self {
        let width = u128::BITS - find_varying_bits(codes).leading_zeros();
        let bits = (codes.len() / BUCKET)
            .max(1)
            .ilog2()
            .min(MOST_BITS)
            .min(width);
        Self {
            shift: (width - bits).min(C::BITS - 1),
            mask: low_bits_mask(bits) as usize,
        }
    }

    #[inline(always)]
    fn bucket_of<C: FingerprintCode>(&self, code: C) -> usize {
        code.word_at(self.shift) as usize & self.mask
    }

    /// Copies codes and rows bucket by bucket. Returns the starts of the buckets and the end of the
    /// last.
    fn scatter_codes<C: FingerprintCode>(
        &self,
        codes: &[C],
        to: &mut [C],
        rows: &mut [u32],
    ) -> Vec<usize> {
        let buckets = self.mask + 1;
        let piece = piece_length(codes.len());
        let counts: Vec<Vec<usize>> = codes
            .par_chunks(piece)
            .map(|codes| {
                let mut counts = vec![0; buckets];
                codes
                    .iter()
                    .for_each(|&code| counts[self.bucket_of(code)] += 1);
                counts
            })
            .collect();
        let targets = deal_buckets(to, &counts)
            .into_iter()
            .zip(deal_buckets(rows, &counts));
        let targets: Vec<_> = targets.collect();
        let pieces = codes.par_chunks(piece).enumerate().zip(targets);
        pieces.for_each(|((at, codes), (to, rows))| {
            let mut cursors: Vec<_> = to
                .into_iter()
                .zip(rows)
                .map(|(to, rows)| to.iter_mut().zip(rows))
                .collect();
            for (row, &code) in ((at * piece) as u32..).zip(codes) {
                let next = cursors[self.bucket_of(code)].next();
                let (to, number) = next.expect("there is room for all that were counted");
                (*to, *number) = (code, row);
            }
        });
        let mut ends = vec![0; buckets + 1];
        for bucket in 0..buckets {
            let count: usize = counts.iter().map(|counts| counts[bucket]).sum();
            ends[bucket + 1] = ends[bucket] + count;
        }
        ends
    }
}

/// Returns the number of codes that a thread takes at a time in a pass over all codes.
pub(super) fn piece_length(length: usize) -> usize {
    length
        .div_ceil(4 * rayon::current_num_threads())
        .max(1 << 14)
}

/// Gives every piece its part of every bucket; the buckets follow one another.
pub(super) fn deal_buckets<'a, T>(
    mut to: &'a mut [T],
    counts: &[Vec<usize>],
) -> Vec<Vec<&'a mut [T]>> {
    let buckets = counts.first().map_or(0, Vec::len);
    let mut parts: Vec<_> = counts.iter().map(|_| Vec::with_capacity(buckets)).collect();
    for bucket in 0..buckets {
        for (parts, counts) in parts.iter_mut().zip(counts) {
            let part;
            (part, to) = to.split_at_mut(counts[bucket]);
            parts.push(part);
        }
    }
    parts
}

/// Cuts a slice into pieces of these lengths.
fn split_pieces<'a, T>(mut from: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let cut = |&length: &usize| {
        let piece;
        (piece, from) = std::mem::take(&mut from).split_at_mut(length);
        piece
    };
    lengths.iter().map(cut).collect()
}

/// Buffers for sorting a bucket.
#[derive(Default)]
struct BucketSorter<C> {
    entries: Vec<(C, u32)>,
    at: Vec<u32>,
}

impl<C: FingerprintCode> BucketSorter<C> {
    /// Sorts by code, then row; the rows are ascending already.
    fn sort_bucket(&mut self, codes: &mut [C], rows: &mut [u32]) {
        const LARGE: usize = 1 << 17;
        if codes.len() > LARGE {
            self.entries.clear();
            let both = codes.iter().copied().zip(rows.iter().copied());
            self.entries.extend(both);
            self.entries.par_sort_unstable();
        } else {
            self.spread_by_upper_bits(codes, rows);
            for few in self.at.windows(2) {
                let few = &mut self.entries[few[0] as usize..few[1] as usize];
                if few.len() > 1 {
                    few.sort_unstable();
                }
            }
        }
        for ((code, row), entry) in codes.iter_mut().zip(rows).zip(&self.entries) {
            (*code, *row) = *entry;
        }
    }

    /// Groups codes by their upper bits, ascending. A group has few codes if they are spread
    /// evenly.
    fn spread_by_upper_bits(&mut self, codes: &[C], rows: &[u32]) {
        const FEW: usize = 4;
        let width = u128::BITS - find_varying_bits(codes).leading_zeros();
        let bits = (codes.len() / FEW).max(1).ilog2().min(width);
        let (shift, mask) = (
            (width - bits).min(C::BITS - 1),
            low_bits_mask(bits) as usize,
        );
        let part = |code: C| code.word_at(shift) as usize & mask;
        // The starts of all groups are followed by the end of the last one.
        self.at.clear();
        self.at.resize(mask + 3, 0);
        codes.iter().for_each(|&code| self.at[part(code) + 2] += 1);
        for at in 2..self.at.len() {
            self.at[at] += self.at[at - 1];
        }
        self.entries.resize(codes.len(), Default::default());
        for (&code, &row) in codes.iter().zip(rows) {
            let at = &mut self.at[part(code) + 1];
            self.entries[*at as usize] = (code, row);
            *at += 1;
        }
        self.at.pop();
    }
}

/// Moves the distinct values of a sorted run to the front, stores the starts of their rows, and
/// returns their number. The rows of the run start at `first`.
fn collapse_runs<C: FingerprintCode>(codes: &mut [C], starts: &mut [u32], first: u32) -> usize {
    let mut kept = 0;
    for at in 0..codes.len() {
        if at == 0 || codes[at] != codes[kept - 1] {
            codes[kept] = codes[at];
            starts[kept] = first + at as u32;
            kept += 1;
        }
    }
    kept
}

/// Returns the bits in which any two of the codes differ.
pub(super) fn find_varying_bits<C: FingerprintCode>(codes: &[C]) -> u128 {
    let Some(&first) = codes.first() else {
        return 0;
    };
    let differing = |codes: &[C]| {
        codes
            .iter()
            .fold(0, |bits, code| bits | code.differing_bits(first).widen())
    };
    const PIECE: usize = 1 << 16;
    if codes.len() <= PIECE {
        return differing(codes);
    }
    let pieces = codes.par_chunks(PIECE).map(differing);
    pieces.reduce(|| 0, |one, other| one | other)
}
