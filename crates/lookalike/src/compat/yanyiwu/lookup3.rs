//! The hash lookup3 of Bob Jenkins (2006), with which this tool hashes words.

/// Number of bytes that are mixed at a time.
const BLOCK_BYTES: usize = 12;

/// Rotations of the mixing steps, and of the final steps.
const MIXING_ROTATIONS: [u32; 6] = [4, 6, 8, 16, 19, 4];
const FINISHING_ROTATIONS: [u32; 7] = [14, 11, 25, 16, 4, 14, 24];

/// Returns 64 bits of the hash without seeds, with the better mixed half above.
pub(in crate::compat) fn hash_64(bytes: &[u8]) -> u64 {
    let [primary, secondary] = hash_pair(bytes, [0; 2]);
    u64::from(primary) << 32 | u64::from(secondary)
}

/// Returns the primary and the secondary hash for their seeds (`hashlittle2`).
fn hash_pair(bytes: &[u8], [primary, secondary]: [u32; 2]) -> [u32; 2] {
    let start = (bytes.len() as u32)
        .wrapping_add(0xdead_beef)
        .wrapping_add(primary);
    let mut state = [start, start, start.wrapping_add(secondary)];
    if !bytes.is_empty() {
        // The last block may be full, but is never empty.
        let (blocks, rest) = bytes.split_at((bytes.len() - 1) / BLOCK_BYTES * BLOCK_BYTES);
        for block in blocks.as_chunks::<BLOCK_BYTES>().0 {
            add_block(&mut state, block);
            mix_state(&mut state);
        }
        let mut last = [0; BLOCK_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        add_block(&mut state, &last);
        finish_state(&mut state);
    }
    [state[2], state[1]]
}

fn add_block(state: &mut [u32; 3], block: &[u8; BLOCK_BYTES]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix_state(state: &mut [u32; 3]) {
    for (step, by) in MIXING_ROTATIONS.into_iter().enumerate() {
        let (at, next, before) = (step % 3, (step + 1) % 3, (step + 2) % 3);
        state[at] = state[at].wrapping_sub(state[before]) ^ state[before].rotate_left(by);
        state[before] = state[before].wrapping_add(state[next]);
    }
}

fn finish_state(state: &mut [u32; 3]) {
    for (step, by) in FINISHING_ROTATIONS.into_iter().enumerate() {
        let (at, before) = ((step + 2) % 3, (step + 1) % 3);
        state[at] = (state[at] ^ state[before]).wrapping_sub(state[before].rotate_left(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_the_published_ones() {
        let speech = "Four score and seven years ago";
        for (text, seeds, expected) in [
            ("", [0, 0], [0xdead_beef, 0xdead_beef]),
            ("", [0, 0xdead_beef], [0xbd5b_7dde, 0xdead_beef]),
            ("", [0xdead_beef, 0xdead_beef], [0x9c09_3ccd, 0xbd5b_7dde]),
            (speech, [0, 0], [0x1777_0551, 0xce72_26e6]),
            (speech, [0, 1], [0xe360_7cae, 0xbd37_1de4]),
            (speech, [1, 0], [0xcd62_8161, 0x6cbe_a4b3]),
        ] {
            assert_eq!(
                hash_pair(text.as_bytes(), seeds),
                expected,
                "{text} {seeds:x?}"
            );
        }
        assert_eq!(hash_64(speech.as_bytes()), 0x1777_0551_ce72_26e6);
    }

    #[test]
    fn every_byte_counts_at_every_length() {
        let mut seen = std::collections::HashSet::new();
        for length in 1..=40 {
            let mut bytes = vec![7; length];
            assert!(seen.insert(hash_64(&bytes)));
            for at in 0..length {
                bytes[at] ^= 1;
                assert!(seen.insert(hash_64(&bytes)), "byte {at} of {length}");
                bytes[at] ^= 1;
            }
        }
    }
}
