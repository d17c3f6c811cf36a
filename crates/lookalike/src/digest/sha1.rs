//! SHA-1 (RFC 3174).

use sha1::Digest as _;

use super::{BLOCK_WORDS, Digest, DigestState};

/// SHA-1.
pub(crate) struct Sha1;

/// The constants of the four rounds: the square roots of 2, 3, 5 and 10 in units of 2^-30.
const ROUND_CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

impl Digest for Sha1 {
    const START: DigestState = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];

    #[inline(always)]
    fn word(bytes: [u8; 4]) -> u32 {
        u32::from_be_bytes(bytes)
    }

    #[inline(always)]
    fn length_words(bits: u64) -> [u32; 2] {
        [(bits >> 32) as u32, bits as u32]
    }

    fn digest_message(message: &[u8]) -> DigestState {
        let bytes = sha1::Sha1::digest(message);
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|at| u32::from_be_bytes(words[at]))
    }

    #[inline(always)]
    fn digest_block(state: DigestState, mut words: [u32; BLOCK_WORDS]) -> DigestState {
        let [mut a, mut b, mut c, mut d, mut e] = state;
        // Every step is written out, because compilers vectorise a loop over lanes only if it contains no
        // other loop.
        macro_rules! steps {
            ($mixed:expr; $($at:literal)*) => { $(
                let word = schedule_word::<$at>(&mut words);
                let next = a
                    .rotate_left(5)
                    .wrapping_add($mixed(b, c, d))
                    .wrapping_add(e)
                    .wrapping_add(ROUND_CONSTANTS[$at / 20].wrapping_add(word));
                (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
            )* };
        }
        steps!(|b: u32, c: u32, d: u32| b & c | !b & d;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
        steps!(|b, c, d| b ^ c ^ d;
            20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
        steps!(|b: u32, c: u32, d: u32| b & c | b & d | c & d;
            40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
        steps!(|b, c, d| b ^ c ^ d;
            60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79);
        [
            state[0].wrapping_add(a),
            state[1].wrapping_add(b),
            state[2].wrapping_add(c),
            state[3].wrapping_add(d),
            state[4].wrapping_add(e),
        ]
    }
}

/// Returns the word of step `AT`. From the seventeenth step on it is computed from four earlier words, in
/// place.
#[inline(always)]
fn schedule_word<const AT: usize>(words: &mut [u32; BLOCK_WORDS]) -> u32 {
    let slot = AT % BLOCK_WORDS;
    if AT >= BLOCK_WORDS {
        let earlier = |by: usize| words[(AT - by) % BLOCK_WORDS];
        words[slot] = (earlier(3) ^ earlier(8) ^ earlier(14) ^ earlier(16)).rotate_left(1);
    }
    words[slot]
}
