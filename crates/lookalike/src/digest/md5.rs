//! MD5 (RFC 1321).

use super::{BLOCK_WORDS, Digest, DigestState};

/// MD5.
pub(crate) struct Md5;

/// The integer part of 2^32 |sin(i + 1)|.
#[rustfmt::skip]
const SINE_CONSTANTS: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];

/// Rotations of the steps, which repeat after four steps in every round.
const STEP_ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

impl Digest for Md5 {
    const START: DigestState = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0];

    #[inline(always)]
    fn word(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn length_words(bits: u64) -> [u32; 2] {
        [bits as u32, (bits >> 32) as u32]
    }

    #[inline(always)]
    fn digest_block(state: DigestState, words: [u32; BLOCK_WORDS]) -> DigestState {
        let [mut a, mut b, mut c, mut d, _] = state;
        // Every step is written out, because compilers vectorise a loop over lanes only if it contains no
        // other loop.
        macro_rules! steps {
            ($mixed:expr, $factor:literal * at + $summand:literal; $($at:literal)*) => { $(
                let word = words[($factor * $at + $summand) % BLOCK_WORDS];
                let sum = a
                    .wrapping_add(SINE_CONSTANTS[$at].wrapping_add(word))
                    .wrapping_add($mixed(b, c, d));
                let next = b.wrapping_add(sum.rotate_left(STEP_ROTATIONS[$at / 16][$at % 4]));
                (a, b, c, d) = (d, next, b, c);
            )* };
        }
        steps!(select_bits, 1 * at + 0; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        steps!(|b, c, d| select_bits(d, b, c), 5 * at + 1;
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        steps!(|b, c, d| b ^ c ^ d, 3 * at + 5;
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47);
        steps!(|b: u32, c: u32, d: u32| c ^ (b | !d), 7 * at + 0;
            48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
        [
            state[0].wrapping_add(a),
            state[1].wrapping_add(b),
            state[2].wrapping_add(c),
            state[3].wrapping_add(d),
            0,
        ]
    }
}

/// Returns the bits of `one` where `by` is 1, and those of `other` where it is 0.
#[inline(always)]
fn select_bits(by: u32, one: u32, other: u32) -> u32 {
    by & one | !by & other
}
