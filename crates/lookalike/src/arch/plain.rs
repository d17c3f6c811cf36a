//! The reference version of all operations, for every CPU.

use super::{Arch, BLOCK, BlockMasks, CacheLine, LANES, StripLanes};

/// Plain Rust without special instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Arch for Plain {
    #[inline(always)]
    fn ascii_block<const FOLD: bool>(
        self,
        block: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
    ) -> BlockMasks {
        let mut masks = BlockMasks {
            word: 0,
            space: 0,
            non_ascii: 0,
        };
        for (at, (&byte, copy)) in block.iter().zip(copy).enumerate() {
            let kind = BYTE_KINDS[usize::from(byte)];
            *copy = if FOLD { byte | kind & CASE_BIT } else { byte };
            masks.word |= u64::from(kind & WORD_BYTE) << at;
            masks.space |= u64::from(kind >> 1 & 1) << at;
            masks.non_ascii |= u64::from(byte >> 7) << at;
        }
        masks
    }

    #[inline(always)]
    fn either(self, block: &[u8; BLOCK], wanted: [u8; 2]) -> u64 {
        let found = |&byte: &u8| u64::from(byte == wanted[0] || byte == wanted[1]);
        let found = block.iter().map(found).enumerate();
        found.fold(0, |bits, (at, found)| bits | found << at)
    }

    #[inline(always)]
    fn positions(self, mut bits: u64, base: u32, positions: &mut [u32; BLOCK]) -> usize {
        let count = bits.count_ones() as usize;
        for position in &mut positions[..count] {
            *position = base + bits.trailing_zeros();
            bits &= bits - 1;
        }
        count
    }

    #[inline(always)]
    fn near(self, line: &CacheLine, query: u32, limit: u32) -> u32 {
        let words = line.0.iter().enumerate();
        words.fold(0, |mask, (at, word)| {
            mask | u32::from((word ^ query).count_ones() <= limit) << at
        })
    }

    #[inline(always)]
    fn near_64(self, numbers: &[u64; 8], query: u64, limit: u32) -> u32 {
        let numbers = numbers.iter().enumerate();
        numbers.fold(0, |mask, (at, number)| {
            mask | u32::from((number ^ query).count_ones() <= limit) << at
        })
    }

    #[inline(always)]
    fn near_128(self, numbers: &[u128; 4], query: u128, limit: u32) -> u32 {
        let numbers = numbers.iter().enumerate();
        numbers.fold(0, |mask, (at, number)| {
            mask | u32::from((number ^ query).count_ones() <= limit) << at
        })
    }

    #[inline(always)]
    fn differing(self, a: &[[u64; 8]], b: &[[u64; 8]]) -> u64 {
        let pairs = a.as_flattened().iter().zip(b.as_flattened());
        pairs.map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
    }

    #[inline(always)]
    fn gather(self, word: u64, mut mask: u64) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while mask != 0 {
            bits |= (word >> mask.trailing_zeros() & 1) << at;
            mask &= mask - 1;
            at += 1;
        }
        bits
    }

    #[inline(always)]
    fn advance_strips(
        self,
        strips: &mut StripLanes,
        rows: &[[u64; LANES]],
        symbols: &[u32; LANES],
        first: &[u64; LANES],
        above: [u64; 2],
    ) {
        let before = *strips;
        for (lane, &symbol) in symbols.iter().enumerate() {
            let equal = rows.get(symbol as usize).map_or(0, |rows| rows[lane]);
            let edge = |right: &[u64; LANES], above: u64| {
                let below = lane.checked_sub(1).map_or(0, |before| right[before] >> 63);
                below & !first[lane] | above & first[lane]
            };
            let above_rises = edge(&before.right_rises, above[0]);
            let above_falls = edge(&before.right_falls, above[1]);
            let (rises, falls) = (before.rises[lane], before.falls[lane]);
            let no_cost_down = equal | falls;
            let equal = equal | above_falls;
            let no_cost_right = ((equal & rises).wrapping_add(rises) ^ rises) | equal;
            let right_rises = falls | !(no_cost_right | rises);
            let right_falls = rises & no_cost_right;
            strips.right_rises[lane] = right_rises;
            strips.right_falls[lane] = right_falls;
            let right_rises = right_rises << 1 | above_rises;
            let right_falls = right_falls << 1 | above_falls;
            strips.rises[lane] = right_falls | !(no_cost_down | right_rises);
            strips.falls[lane] = right_rises & no_cost_down;
        }
    }
}

const WORD_BYTE: u8 = 1;
const SPACE_BYTE: u8 = 2;
/// The bit that makes an upper-case letter lower-case.
const CASE_BIT: u8 = 0x20;

static BYTE_KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        kinds[byte] = if value.is_ascii_uppercase() {
            WORD_BYTE | CASE_BIT
        } else if value.is_ascii_alphanumeric() {
            WORD_BYTE
        } else if value == b' ' || value.is_ascii_control() {
            SPACE_BYTE
        } else {
            0
        };
        byte += 1;
    }
    kinds
};
