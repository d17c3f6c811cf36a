//! `java-classic`: the fingerprints of a widely copied Java class.
//!
//! Features are separated by spaces, tabs, line feeds, carriage returns and form feeds. The hash is that of
//! strings in Python 2, over UTF-16 units, with as many bits as the fingerprint. A hash of fewer bits is the
//! low end of a hash of more bits.

use super::CompatBuffers;

const HASH_FACTOR: u128 = 1_000_003;

pub(super) fn token_hash(token: &str) -> u128 {
    let mut units = token.encode_utf16().map(u128::from).peekable();
    let start = units.peek().map_or(0, |first| first << 7);
    let (hash, length) = units.fold((start, 0), |(hash, length), unit| {
        (hash.wrapping_mul(HASH_FACTOR) ^ unit, length + 1)
    });
    hash ^ length
}

pub(super) fn split_tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', '\n', '\r', '\u{c}'])
        .filter(|token| !token.is_empty())
}

pub(super) fn analyze_tokens(text: &str, buffers: &mut CompatBuffers) {
    split_tokens(text).for_each(|token| buffers.push_hash(token_hash(token)));
}

/// Returns the values that the class's method `subByDistance` lists for a fingerprint of `bits` bits: one for
/// every block of `bits` / (`distance` + 1) bits, rounded down, from the lowest block on.
///
/// The class reads the bits of a block from the lowest one on and takes the first for the highest digit, so a
/// value is the block with its bits in reverse. It stops behind the highest bit that is 1 and so leaves out
/// the blocks above it; here every block has a value, because fingerprints that are near can agree in just
/// these. [`count_reachable_blocks`] returns how many the class lists. A distance that leaves less than one
/// bit for a block gives no values.
///
/// ```
/// use lookalike::sketch::java_block_values;
///
/// // "This is a test string for testing" under the recipe `java-classic`.
/// assert_eq!(java_block_values(0x800d8e90e45cc488, 64, 3), [4387, 14887, 2417, 45057]);
/// ```
pub fn java_block_values(fingerprint: u128, bits: u32, distance: u32) -> Vec<u128> {
    let width = block_width(bits, distance);
    let value = |block: u32| {
        let upwards = (0..width).map(|bit| fingerprint >> (block * width + bit) & 1);
        upwards.fold(0, |value, bit| value << 1 | bit)
    };
    let blocks = bits.checked_div(width).unwrap_or(0);
    (0..blocks).map(value).collect()
}

/// Returns how many of the values of [`java_block_values`] the class itself lists: those of the blocks that
/// end at or below the highest bit that is 1.
pub fn count_reachable_blocks(fingerprint: u128, bits: u32, distance: u32) -> usize {
    let length = u128::BITS - fingerprint.leading_zeros();
    let blocks = length.checked_div(block_width(bits, distance));
    blocks.unwrap_or(0) as usize
}

fn block_width(bits: u32, distance: u32) -> u32 {
    bits / distance.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the class, on strings of digits.
    fn list_as_class(fingerprint: u128, bits: u32, distance: u32) -> Vec<u128> {
        let each = (bits / (distance + 1)) as usize;
        let digits: String = format!("{fingerprint:b}").chars().rev().collect();
        let length = digits.len() * usize::from(fingerprint > 0);
        let blocks = digits.as_bytes()[..length].chunks_exact(each);
        let blocks = blocks.map(|block| std::str::from_utf8(block).unwrap());
        blocks
            .map(|block| u128::from_str_radix(block, 2).unwrap())
            .collect()
    }

    #[test]
    fn blocks_have_the_values_of_the_class() {
        for bits in [8, 32, 64, 128] {
            for distance in [0, 1, 2, 3, 4, 6, 7] {
                for seed in 0..200 {
                    let high = u128::from(crate::hash::mix_bits(seed + 1000)) << 64;
                    let code = high | u128::from(crate::hash::mix_bits(seed));
                    let code = code >> (128 - bits) >> (seed as u32 % bits);
                    let values = java_block_values(code, bits, distance);
                    let reachable = count_reachable_blocks(code, bits, distance);
                    assert_eq!(list_as_class(code, bits, distance), values[..reachable]);
                }
            }
        }
    }

    #[test]
    fn blocks_above_the_highest_one_are_not_lost() {
        // The class lists nothing of 0, and 3 of 4 blocks here.
        assert_eq!(java_block_values(0, 64, 3), [0; 4]);
        assert_eq!(count_reachable_blocks(0, 64, 3), 0);
        assert_eq!(count_reachable_blocks(1 << 62, 64, 3), 3);
        assert_eq!(count_reachable_blocks(1 << 63, 64, 3), 4);
        // Twelve bits for each of five blocks; four bits are in none.
        assert_eq!(java_block_values(u128::from(u64::MAX), 64, 4), [0xfff; 5]);
        assert_eq!(java_block_values(1, 8, 8), [0u128; 0]);
        assert_eq!(java_block_values(1, 8, u32::MAX), [0u128; 0]);
    }
}
