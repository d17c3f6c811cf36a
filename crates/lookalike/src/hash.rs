//! The frozen hashes of the engine.
//!
//! Every fingerprint depends on these functions, so their output never changes: the golden vectors pin it.
//! They are portable, because bytes are read little-endian and nothing depends on the CPU. They are built
//! from two steps: the folded 64 × 64 → 128 bit multiplication known from wyhash and rapidhash, and a
//! bijective finaliser. They have no key and do not resist an adversary who constructs collisions.
//!
//! Cost: two loads, two masks and one multiplication for a word of at most 16 bytes.

/// Two constants, each with a byte that never occurs in UTF-8, so that no word cancels them to zero.
const SECRET: [u64; 2] = [0xfa35_8ff0_9b5a_2d17, 0x3c6e_f372_fe94_f82b];

/// Odd multipliers for the positions of an n-gram (digits of the golden ratio, mixed).
pub(crate) const POSITION: [u64; 32] = {
    let mut multipliers = [0; 32];
    let mut at = 0;
    while at < 32 {
        multipliers[at] = mix_bits(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(at as u64 + 1)) | 1;
        at += 1;
    }
    multipliers
};

/// Returns the high and low half of the 128-bit product, xored.
#[inline(always)]
pub(crate) const fn fold_product(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// A bijection of 64 bits in which every input bit reaches every output bit (the finaliser of
/// MurmurHash3 with the constants of David Stafford's variant 13).
#[inline(always)]
pub(crate) const fn mix_bits(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Bytes that a buffer given to [`hash_word_in`] must hold from the start of the word on.
pub(crate) const WORD_PADDING: usize = 16;

/// Returns the hash of the word of `length` bytes at `at` in `buffer`. The buffer must hold at least
/// [`WORD_PADDING`] bytes from `at` on; the bytes behind the word do not affect the hash.
#[inline(always)]
pub(crate) fn hash_word_in(buffer: &[u8], at: usize, length: usize) -> u64 {
    if length > WORD_PADDING {
        return hash_long_word(&buffer[at..at + length]);
    }
    let (low, high) = split_halves(&buffer[at..at + WORD_PADDING]);
    let [low_mask, high_mask] = MASKS[length];
    fold_product(
        low & low_mask ^ SECRET[0],
        high & high_mask ^ SECRET[1] ^ ((length as u64) << 56),
    )
}

/// Returns the hash of a word.
pub(crate) fn hash_word(bytes: &[u8]) -> u64 {
    if bytes.len() > WORD_PADDING {
        return hash_long_word(bytes);
    }
    let mut padded = [0; WORD_PADDING];
    padded[..bytes.len()].copy_from_slice(bytes);
    hash_word_in(&padded, 0, bytes.len())
}

/// Returns the frozen 64-bit hash of a byte string, for example of a document's id or as a checksum. Equal
/// byte strings have equal hashes.
pub fn value_hash(bytes: &[u8]) -> u64 {
    mix_bits(hash_word(bytes))
}

/// Domain of [`value_digest`].
const DIGEST_DOMAIN: u64 = 0x6469_6765_7374;

/// Returns the frozen 128-bit hash of a byte string, for example to compare long lists of values on two machines.
/// It does not resist an adversary who constructs collisions.
pub fn value_digest(bytes: &[u8]) -> u128 {
    hash_bytes(DIGEST_DOMAIN, bytes)
}

/// `MASKS[n]` keeps the first n of 16 bytes.
static MASKS: [[u64; 2]; WORD_PADDING + 1] = {
    let mut masks = [[0; 2]; WORD_PADDING + 1];
    let mut length = 1;
    while length <= WORD_PADDING {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
};

#[inline(always)]
fn split_halves(bytes: &[u8]) -> (u64, u64) {
    let (low, high) = bytes.split_at(8);
    let read = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("a half is eight bytes"));
    (read(low), read(high))
}

/// Hashes 16 bytes at a time. The last step takes the last 16 bytes, which overlap the previous ones.
#[cold]
fn hash_long_word(bytes: &[u8]) -> u64 {
    let mut state = mix_bits(bytes.len() as u64);
    let mut absorb = |chunk: &[u8]| {
        let (low, high) = split_halves(chunk);
        state = fold_product(low ^ SECRET[0], high ^ SECRET[1] ^ state);
    };
    let before_last = (bytes.len() - 1) / WORD_PADDING * WORD_PADDING;
    bytes[..before_last]
        .chunks_exact(WORD_PADDING)
        .for_each(&mut absorb);
    absorb(&bytes[bytes.len() - WORD_PADDING..]);
    state
}

/// Returns the 128-bit hash of a sequence of values of up to 64 bits. `domain` separates uses: the same
/// values have unrelated hashes in two domains.
///
/// Four chains are independent, so that the multiplications overlap and the cost is their throughput, not
/// their latency.
pub(crate) fn hash_sequence<T: Copy + Into<u64>>(domain: u64, values: &[T]) -> u128 {
    let mut chains = POSITION_SEEDS;
    let mut blocks = values.chunks_exact(4);
    for block in &mut blocks {
        for (chain, &value) in chains.iter_mut().zip(block) {
            let value = value.into();
            *chain = fold_product(*chain ^ value, POSITION[0]).wrapping_add(value);
        }
    }
    for (chain, &value) in chains.iter_mut().zip(blocks.remainder()) {
        let value = value.into();
        *chain = fold_product(*chain ^ value, POSITION[1]).wrapping_add(value);
    }
    let [a, b, c, d] = chains.map(mix_bits);
    let length = mix_bits(values.len() as u64 ^ domain);
    let low = mix_bits(a ^ b.rotate_left(21) ^ length)
        .wrapping_add(mix_bits(c.wrapping_add(d.rotate_left(43))));
    let high = mix_bits(a.wrapping_add(c.rotate_left(13)) ^ POSITION[2])
        .wrapping_add(mix_bits(b ^ d.rotate_left(33) ^ length.rotate_left(32)));
    u128::from(low) | (u128::from(high) << 64)
}

const POSITION_SEEDS: [u64; 4] = [POSITION[4], POSITION[5], POSITION[6], POSITION[7]];

/// Returns the 128-bit hash of a byte string in `domain`.
pub(crate) fn hash_bytes(domain: u64, bytes: &[u8]) -> u128 {
    let mut values = Vec::with_capacity(bytes.len() / 8 + 2);
    let mut chunks = bytes.chunks_exact(8);
    values.extend((&mut chunks).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight"))));
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    values.extend([u64::from_le_bytes(last), bytes.len() as u64]);
    hash_sequence(domain, &values)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn word_hash_does_not_depend_on_alignment() {
        let text: Vec<u8> = (0..200).map(|at| b'a' + (at * 7 % 26) as u8).collect();
        for length in 1..80 {
            for at in 0..20 {
                assert_eq!(
                    hash_word_in(&text, at, length),
                    hash_word(&text[at..at + length])
                );
            }
        }
    }

    #[test]
    fn words_do_not_collide() {
        let mut seen = HashSet::new();
        for number in 0..300_000u32 {
            assert!(seen.insert(hash_word(number.to_string().as_bytes())));
            assert!(seen.insert(hash_word(format!("word{number:020}").as_bytes())));
        }
        for length in 0..40 {
            assert!(seen.insert(hash_word(&vec![0; length])));
        }
    }

    #[test]
    fn every_byte_of_a_word_counts() {
        for length in 1..100 {
            let word_of = vec![b'a'; length];
            let mut seen = HashSet::from([hash_word(&word_of)]);
            for at in 0..length {
                let mut other = word_of.clone();
                other[at] = b'b';
                assert!(seen.insert(hash_word(&other)), "byte {at} of {length}");
            }
        }
    }

    #[test]
    fn every_input_bit_reaches_every_output_bit() {
        let mut least = u32::MAX;
        for bit in 0..64 {
            let mut flips = [0u32; 64];
            for sample in 0..1000u64 {
                let base = mix_bits(sample.wrapping_mul(77_777));
                let difference = mix_bits(base) ^ mix_bits(base ^ (1 << bit));
                (0..64).for_each(|out| flips[out] += (difference >> out & 1) as u32);
            }
            least = least.min(*flips.iter().min().unwrap());
        }
        assert!(least > 400, "a bit flips only {least} times in 1000");
    }

    #[test]
    fn sequences_have_distinct_hashes() {
        let mut seen = HashSet::new();
        for length in 0..40 {
            let values: Vec<u64> = (0..length).collect();
            assert!(seen.insert(hash_sequence(0, &values)));
            assert!(seen.insert(hash_sequence(1, &values)));
            for at in 0..values.len() {
                let mut other = values.clone();
                other[at] += 1000;
                assert!(seen.insert(hash_sequence(0, &other)));
                if at > 0 {
                    let mut swapped = values.clone();
                    swapped.swap(at - 1, at);
                    assert!(seen.insert(hash_sequence(0, &swapped)));
                }
            }
        }
        assert_ne!(hash_bytes(0, b"a"), hash_bytes(0, b"a\0"));
    }
}
