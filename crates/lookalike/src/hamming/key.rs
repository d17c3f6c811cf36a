//! Maps a block of a fingerprint to its bucket, and a query to every bucket that can hold a near
//! fingerprint.
//!
//! There are two kinds of key:
//!
//! - A *direct* key is the upper bits of the block. A near block differs in at most r of these
//!   bits, so a query visits the buckets of all keys within r.
//! - A *covering* key is the codeword of a Hamming code that is nearest to the block, which is
//!   never further away than one flip. All blocks within one flip of the query then fall into 15
//!   buckets (two [15, 11] codewords, 22 bits) or 16 buckets (one [31, 26] codeword, 26 bits),
//!   where a direct key needs 23 or 27. Bits of the block that no codeword covers do not affect the
//!   key.
//!
//! Both kinds can drop their lowest bits. Keys that then coincide are visited once.

use super::fingerprint_code::FingerprintCode;

/// Bucket number of at most 26 bits.
pub(crate) type BucketNumber = u32;

/// Largest number of buckets that a covering key visits.
pub(crate) const COVERING_PROBES: usize = 16;

/// The mapping of the block of a table to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKey {
    /// The upper `bits` bits of the segments of a block, first segment uppermost.
    Direct {
        /// Places of the segments; unused ones are empty.
        segments: BitSegments,
        /// Number of bits kept.
        bits: u32,
    },
    /// The codewords nearest to the 32 bits from bit `shift` on.
    Covering {
        shift: u32,
        code: CoveringCode,
        /// Number of bits kept.
        bits: u32,
    },
}

/// Runs of bits, as pairs of lowest bit and length.
pub(crate) type BitSegments = [(u8, u8); MOST_SEGMENTS];

/// Largest number of runs of bits in a key.
pub(crate) const MOST_SEGMENTS: usize = 8;

/// The Hamming codes that cover the 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoveringCode {
    /// Two codewords of 15 bits, 11 of which are free.
    TwoOf15,
    /// One codeword of 31 bits, 26 of which are free.
    OneOf31,
}

impl CoveringCode {
    /// Returns the number of block bits, from the lowest on, that the key depends on.
    pub(crate) const fn covered_bits(self) -> u32 {
        match self {
            Self::TwoOf15 => 30,
            Self::OneOf31 => 31,
        }
    }

    /// Returns the number of bits of the key.
    pub(crate) const fn key_bits(self) -> u32 {
        match self {
            Self::TwoOf15 => 22,
            Self::OneOf31 => 26,
        }
    }
}

impl BlockKey {
    /// Returns the number of bits of a bucket number.
    pub(crate) fn bucket_bits(&self) -> u32 {
        match *self {
            Self::Direct { bits, .. } | Self::Covering { bits, .. } => bits,
        }
    }

    /// Creates a direct key of the upper `most` bits of the runs, or of all bits if there are
    /// fewer. A run is given as start and width.
    pub(crate) fn direct_key(runs: &[(u32, u32)], most: u32) -> Self {
        let mut segments = BitSegments::default();
        // Runs keep their order, because `source_bits` relies on the upper part of a single run being
        // kept.
        for (segment, &(start, width)) in segments.iter_mut().zip(runs) {
            *segment = (start as u8, width as u8);
        }
        let width: u32 = runs.iter().map(|&(_, width)| width).sum();
        Self::Direct {
            segments,
            bits: width.min(most),
        }
    }

    /// Returns the bits that the bucket depends on, called the source, as their lowest bit and
    /// their number. A direct key must have a single run.
    pub(crate) fn source_bits(&self) -> (u32, u32) {
        match *self {
            Self::Direct { segments, bits } => {
                let (start, width) = segments[0];
                if bits == 0 {
                    return (0, 0);
                }
                (u32::from(start) + u32::from(width) - bits, bits)
            }
            Self::Covering { shift, .. } => (shift, 32),
        }
    }

    /// Returns the number of source bits that the bucket does not determine.
    pub(crate) fn remainder_bits(&self) -> u32 {
        match *self {
            Self::Direct { .. } => 0,
            Self::Covering { bits, .. } => 32 - bits,
        }
    }

    /// Returns the part of the source that the bucket does not determine.
    #[inline(always)]
    pub(crate) fn source_remainder<C: FingerprintCode>(&self, code: C) -> u32 {
        match *self {
            Self::Direct { .. } => 0,
            Self::Covering {
                shift,
                code: covering,
                bits,
            } => {
                let (key, syndromes) = split_word(covering, code.word_at(shift));
                let dropped = covering.key_bits() - bits;
                (key & ((1 << dropped) - 1)) | syndromes << dropped
            }
        }
    }

    /// Returns the source bits, lowest first, of fingerprints with this bucket and remainder.
    #[inline(always)]
    pub(crate) fn restore_source(&self, bucket: BucketNumber, remainder: u32) -> u32 {
        match *self {
            Self::Direct { .. } => bucket,
            Self::Covering {
                code: covering,
                bits,
                ..
            } => {
                let dropped = covering.key_bits() - bits;
                let key = bucket << dropped | remainder & ((1 << dropped) - 1);
                join_word(covering, key, remainder >> dropped)
            }
        }
    }

    /// Returns the number of buckets.
    pub(crate) fn bucket_count(&self) -> usize {
        1 << self.bucket_bits()
    }

    /// Returns the bucket of a fingerprint.
    #[inline(always)]
    pub(crate) fn bucket_of<C: FingerprintCode>(&self, code: C) -> BucketNumber {
        match *self {
            Self::Direct { segments, bits } => {
                let (value, width) = gather_segments(code, &segments);
                value.unbounded_shr(width - bits) as BucketNumber
            }
            Self::Covering {
                shift,
                code: covering,
                bits,
            } => nearest_codeword(covering, code.word_at(shift)) >> (covering.key_bits() - bits),
        }
    }

    /// Calls `visit` once with every bucket that can hold a fingerprint whose block differs from
    /// the query's in at most the radius, and with a lower bound of the number of differing bits.
    /// `deltas` sets the radius of a direct key; the radius of a covering key is 1.
    #[inline(always)]
    pub(crate) fn visit_probes<C: FingerprintCode>(
        &self,
        query: C,
        deltas: &[(BucketNumber, u8)],
        mut visit: impl FnMut(BucketNumber, u32),
    ) {
        match *self {
            Self::Direct { .. } => {
                let bucket = self.bucket_of(query);
                for &(delta, weight) in deltas {
                    visit(bucket ^ delta, weight.into());
                }
            }
            Self::Covering { shift, code, bits } => {
                let mut buckets = [0; COVERING_PROBES];
                let count = covering_ball(
                    code,
                    query.word_at(shift),
                    code.key_bits() - bits,
                    &mut buckets,
                );
                for &bucket in &buckets[..count] {
                    visit(bucket, 0);
                }
            }
        }
    }

    /// Returns the masks that turn a direct key into all keys within `radius`, each with the number
    /// of bits that it flips, fewest first.
    pub(crate) fn probe_deltas(&self, radius: u32) -> Vec<(BucketNumber, u8)> {
        let Self::Direct { bits, .. } = *self else {
            return Vec::new();
        };
        let mut deltas = vec![(0, 0)];
        let mut from = 0;
        for weight in 1..=radius.min(bits) as u8 {
            let last = from..deltas.len();
            from = deltas.len();
            for at in last {
                let delta: BucketNumber = deltas[at].0;
                // Flip only above the highest flipped bit, so that every set of bits comes up once.
                let lowest = BucketNumber::BITS - delta.leading_zeros();
                deltas.extend((lowest..bits).map(|bit| (delta | 1 << bit, weight)));
            }
        }
        deltas
    }
}

/// Returns the bits of all segments side by side, and their number.
#[inline(always)]
fn gather_segments<C: FingerprintCode>(code: C, segments: &BitSegments) -> (u128, u32) {
    let wide = code.widen();
    let (mut value, mut width) = (0u128, 0);
    for &(shift, length) in segments {
        if length == 0 {
            break;
        }
        let part = wide >> shift & super::fingerprint_code::low_bits_mask(length.into());
        // Only a segment of all 128 bits shifts by 128, and nothing precedes it.
        value = value.unbounded_shl(length.into()) | part;
        width += u32::from(length);
    }
    (value, width)
}

/// A Hamming code of 2^`CHECKS` − 1 bits: the free bits are the lowest, the check bits follow.
struct HammingCode<const CHECKS: usize, const DELTAS: usize> {
    /// For check bit j, the free bits whose parity it is.
    parities: [u32; CHECKS],
    /// For each syndrome, the masks that turn the free bits into those of every codeword within two
    /// flips, nearest first.
    deltas: [[u32; DELTAS]; 32],
}

static SHORT_CODE: HammingCode<4, 8> = HammingCode::new();
static LONG_CODE: HammingCode<5, 16> = HammingCode::new();

impl<const CHECKS: usize, const DELTAS: usize> HammingCode<CHECKS, DELTAS> {
    const FREE: u32 = (1 << CHECKS) - 1 - CHECKS as u32;

    const fn new() -> Self {
        // The syndrome of free bit i is the i-th number with at least two bits.
        let mut parities = [0; CHECKS];
        let mut flips = [0u32; 32];
        let (mut free, mut syndrome) = (0, 1usize);
        while syndrome < 1 << CHECKS {
            if syndrome.count_ones() > 1 {
                let mut check = 0;
                while check < CHECKS {
                    if syndrome >> check & 1 == 1 {
                        parities[check] |= 1 << free;
                    }
                    check += 1;
                }
                flips[syndrome] = 1 << free;
                free += 1;
            }
            syndrome += 1;
        }
        let mut deltas = [[0; DELTAS]; 32];
        let mut syndrome = 1;
        while syndrome < 1 << CHECKS {
            deltas[syndrome][0] = flips[syndrome];
            // The other codewords within two flips undo the syndrome by two bits.
            let (mut at, mut one) = (1, 1);
            while one < 1 << CHECKS {
                let other = one ^ syndrome;
                if one < other && one != syndrome && other != 0 {
                    deltas[syndrome][at] = flips[one] ^ flips[other];
                    at += 1;
                }
                one += 1;
            }
            syndrome += 1;
        }
        Self { parities, deltas }
    }

    /// Returns the free bits and the syndrome, which is 0 for a codeword.
    #[inline(always)]
    fn decode_word(&self, word: u32) -> (u32, usize) {
        let free = word & ((1 << Self::FREE) - 1);
        let mut syndrome = word >> Self::FREE;
        for (check, parity) in self.parities.iter().enumerate() {
            syndrome ^= ((free & parity).count_ones() & 1) << check;
        }
        (free, (syndrome & ((1 << CHECKS) - 1)) as usize)
    }

    /// Returns the free bits of the nearest codeword, and the syndrome, which identifies the bit
    /// that differs from it.
    #[inline(always)]
    fn split_word(&self, word: u32) -> (u32, u32) {
        let (free, syndrome) = self.decode_word(word);
        (free ^ self.deltas[syndrome][0], syndrome as u32)
    }

    /// Restores the word from the results of [`split_word`](Self::split_word).
    #[inline(always)]
    fn join_word(&self, nearest: u32, syndrome: u32) -> u32 {
        let free = nearest ^ self.deltas[syndrome as usize][0];
        let (_, checks) = self.decode_word(free);
        free | (checks as u32 ^ syndrome) << Self::FREE
    }

    /// Returns the free bits, and the deltas to every codeword that is nearest to some word within
    /// one flip.
    #[inline(always)]
    fn covering_ball(&self, word: u32) -> (u32, &[u32]) {
        let (free, syndrome) = self.decode_word(word);
        let count = if syndrome == 0 { 1 } else { DELTAS };
        (free, &self.deltas[syndrome][..count])
    }
}

#[inline(always)]
fn nearest_codeword(covering: CoveringCode, word: u32) -> u32 {
    split_word(covering, word).0
}

/// Returns the full key of a word, and the syndromes and uncovered bits, which the key does not
/// determine.
#[inline(always)]
fn split_word(covering: CoveringCode, word: u32) -> (u32, u32) {
    match covering {
        CoveringCode::TwoOf15 => {
            let (upper, upper_syndrome) = SHORT_CODE.split_word(word >> 15 & 0x7fff);
            let (lower, lower_syndrome) = SHORT_CODE.split_word(word & 0x7fff);
            let key = upper << 11 | lower;
            (key, word >> 30 << 8 | upper_syndrome << 4 | lower_syndrome)
        }
        CoveringCode::OneOf31 => {
            let (key, syndrome) = LONG_CODE.split_word(word & 0x7fff_ffff);
            (key, word >> 31 << 5 | syndrome)
        }
    }
}

/// Restores the word from the results of [`split_word`].
#[inline(always)]
fn join_word(covering: CoveringCode, key: u32, remainder: u32) -> u32 {
    match covering {
        CoveringCode::TwoOf15 => {
            let upper = SHORT_CODE.join_word(key >> 11 & 0x7ff, remainder >> 4 & 15);
            let lower = SHORT_CODE.join_word(key & 0x7ff, remainder & 15);
            (remainder >> 8 & 3) << 30 | upper << 15 | lower
        }
        CoveringCode::OneOf31 => {
            let word = LONG_CODE.join_word(key & 0x3ff_ffff, remainder & 31);
            (remainder >> 5 & 1) << 31 | word
        }
    }
}

/// Collects the buckets of all words within one flip, without their lowest `dropped` bits, and
/// returns their number.
#[inline(always)]
fn covering_ball(
    covering: CoveringCode,
    word: u32,
    dropped: u32,
    buckets: &mut [BucketNumber; COVERING_PROBES],
) -> usize {
    let mut count = 0;
    let mut push = |bucket: u32| {
        buckets[count] = bucket >> dropped;
        count += 1;
    };
    match covering {
        CoveringCode::TwoOf15 => {
            let (upper, upper_deltas) = SHORT_CODE.covering_ball(word >> 15 & 0x7fff);
            let (lower, lower_deltas) = SHORT_CODE.covering_ball(word & 0x7fff);
            let centre = lower ^ lower_deltas[0];
            for delta in upper_deltas {
                push((upper ^ delta) << 11 | centre);
            }
            let centre = (upper ^ upper_deltas[0]) << 11;
            for delta in &lower_deltas[1..] {
                push(centre | lower ^ delta);
            }
        }
        CoveringCode::OneOf31 => {
            let (free, deltas) = LONG_CODE.covering_ball(word & 0x7fff_ffff);
            for delta in deltas {
                push(free ^ delta);
            }
        }
    }
    if dropped > 0 {
        count = move_distinct_to_front(&mut buckets[..count]);
    }
    count
}

/// Moves distinct values to the front in order of first appearance, and returns their number.
fn move_distinct_to_front(buckets: &mut [BucketNumber]) -> usize {
    let mut kept = 0;
    for at in 0..buckets.len() {
        if !buckets[..kept].contains(&buckets[at]) {
            buckets[kept] = buckets[at];
            kept += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;

    fn visited(key: BlockKey, query: u64, radius: u32) -> Vec<BucketNumber> {
        let mut buckets = Vec::new();
        key.visit_probes(query, &key.probe_deltas(radius), |bucket, _| {
            buckets.push(bucket)
        });
        let mut sorted = buckets.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), buckets.len(), "a bucket was visited twice");
        buckets
    }

    #[test]
    fn covering_key_finds_all_within_one_flip() {
        for (code, most) in [(CoveringCode::TwoOf15, 15), (CoveringCode::OneOf31, 16)] {
            for bits in [code.key_bits(), code.key_bits() - 1, 14, 5, 1] {
                let key = BlockKey::Covering {
                    shift: 32,
                    code,
                    bits,
                };
                for seed in 0..300 {
                    let query = mix_bits(seed);
                    let buckets = visited(key, query, 1);
                    assert!(buckets.len() <= most);
                    assert!(
                        buckets
                            .iter()
                            .all(|&bucket| (bucket as usize) < key.bucket_count())
                    );
                    assert!(buckets.contains(&key.bucket_of(query)));
                    for flip in 32..64 {
                        assert!(buckets.contains(&key.bucket_of(query ^ 1 << flip)));
                    }
                    // Bits below the block do not affect the key.
                    assert_eq!(key.bucket_of(query), key.bucket_of(query ^ 0xffff_ffff));
                }
            }
        }
    }

    #[test]
    fn bucket_and_remainder_restore_the_source() {
        for code in [CoveringCode::TwoOf15, CoveringCode::OneOf31] {
            for bits in [code.key_bits(), code.key_bits() - 3, 1] {
                let key = BlockKey::Covering {
                    shift: 7,
                    code,
                    bits,
                };
                for seed in 0..2000 {
                    let value = mix_bits(seed);
                    let remainder = key.source_remainder(value);
                    assert_eq!(remainder.checked_shr(key.remainder_bits()).unwrap_or(0), 0);
                    assert_eq!(
                        key.restore_source(key.bucket_of(value), remainder),
                        value.word_at(7)
                    );
                }
            }
        }
        let key = BlockKey::direct_key(&[(20, 16)], 11);
        assert_eq!(key.source_bits(), (25, 11));
        let value = mix_bits(3);
        assert_eq!(
            key.restore_source(key.bucket_of(value), key.source_remainder(value)),
            value.word_at(25) & 0x7ff
        );
    }

    #[test]
    fn covering_keys_use_all_buckets_evenly() {
        for code in [CoveringCode::TwoOf15, CoveringCode::OneOf31] {
            let key = BlockKey::Covering {
                shift: 0,
                code,
                bits: 10,
            };
            let mut counts = vec![0u32; key.bucket_count()];
            for seed in 0..1 << 17 {
                counts[key.bucket_of(mix_bits(seed)) as usize] += 1;
            }
            assert!(counts.iter().all(|count| (60..220).contains(count)));
        }
    }

    #[test]
    fn direct_key_finds_all_within_its_radius() {
        let mut segments = BitSegments::default();
        (segments[0], segments[1]) = ((40, 9), (3, 6));
        let mask = 0x1ff << 40 | 0x3f << 3;
        for bits in [1, 4, 9, 11, 15] {
            let key = BlockKey::Direct { segments, bits };
            for radius in 0..4u32 {
                let query = mix_bits(u64::from(bits + radius));
                let buckets = visited(key, query, radius);
                for other in
                    (0..4000).map(|seed| mix_bits(seed) & mix_bits(seed + 9) & mix_bits(seed + 99))
                {
                    let other = query ^ other;
                    if (query ^ other).count_ones_in(mask) <= radius {
                        assert!(buckets.contains(&key.bucket_of(other)));
                    }
                }
                let binomial = |of: u32, some: u32| {
                    (0..some).fold(1u64, |value, at| {
                        value * u64::from(of - at) / u64::from(at + 1)
                    })
                };
                let volume: u64 = (0..=radius.min(bits))
                    .map(|some| binomial(bits, some))
                    .sum();
                assert_eq!(buckets.len() as u64, volume);
            }
        }
    }

    #[test]
    fn deltas_have_their_weight() {
        let key = BlockKey::Direct {
            segments: [(0, 12); MOST_SEGMENTS],
            bits: 12,
        };
        let deltas = key.probe_deltas(3);
        assert!(
            deltas
                .iter()
                .all(|(delta, weight)| delta.count_ones() == u32::from(*weight))
        );
        assert!(deltas.is_sorted_by_key(|(_, weight)| *weight));
    }
}
