//! Search for bytes of a block, with the fastest instructions of the CPU.
//!
//! Readers of text formats run it on every block they read. Cost: some tens of picoseconds per byte, and less
//! than a nanosecond for every byte found.

use crate::arch::{Arch, BLOCK, Cpu, Kernel};

/// Largest number of bytes that [`find_either`] searches.
pub const MOST_SEARCHED_BYTES: usize = 4096;

/// Returns the positions of all bytes in `bytes` that equal one of `wanted`, ascending. `room` is a buffer
/// that is reused from call to call.
///
/// ```
/// let mut room = Vec::new();
/// let places = lookalike::bytes::find_either(br#"say \"yes\""#, *b"\"\\", &mut room);
/// assert_eq!(places, [4, 5, 9, 10]);
/// ```
///
/// # Panics
/// If `bytes` is longer than [`MOST_SEARCHED_BYTES`].
pub fn find_either<'r>(bytes: &[u8], wanted: [u8; 2], room: &'r mut Vec<u32>) -> &'r [u32] {
    assert!(
        bytes.len() <= MOST_SEARCHED_BYTES,
        "at most {MOST_SEARCHED_BYTES} bytes at a time"
    );
    if room.len() < MOST_SEARCHED_BYTES + BLOCK {
        room.resize(MOST_SEARCHED_BYTES + BLOCK, 0);
    }
    let count = Cpu::detect_best().run(FindEither {
        bytes,
        wanted,
        places: room,
    });
    &room[..count]
}

struct FindEither<'a> {
    bytes: &'a [u8],
    wanted: [u8; 2],
    places: &'a mut [u32],
}

impl Kernel for FindEither<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) -> usize {
        let Self {
            bytes,
            wanted,
            places,
        } = self;
        let mut count = 0;
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (at, block) in blocks.iter().enumerate() {
            let found = arch.either(block, wanted);
            count += arch.positions(found, (at * BLOCK) as u32, unused_places(places, count));
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            let found = arch.either(&block, wanted) & u64::MAX >> (BLOCK - rest.len());
            let base = (blocks.len() * BLOCK) as u32;
            count += arch.positions(found, base, unused_places(places, count));
        }
        count
    }
}

/// Returns the buffer behind the first `count` positions.
#[inline(always)]
fn unused_places(places: &mut [u32], count: usize) -> &mut [u32; BLOCK] {
    let room = places[count..].first_chunk_mut();
    room.expect("there is room for a block behind all places")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_equals_plain_search_at_every_alignment() {
        let bytes: Vec<u8> = (0..MOST_SEARCHED_BYTES as u64 + 64)
            .map(|at| crate::hash::mix_bits(at) as u8 % 7)
            .collect();
        let mut room = vec![1; 9];
        for length in (0..300).chain([MOST_SEARCHED_BYTES - 1, MOST_SEARCHED_BYTES]) {
            for start in [0, 1, 31, 63] {
                let bytes = &bytes[start..start + length];
                for wanted in [[0, 3], [5, 5], [9, 200]] {
                    let places = find_either(bytes, wanted, &mut room);
                    let found = |at: &u32| wanted.contains(&bytes[*at as usize]);
                    let expected: Vec<u32> = (0..length as u32).filter(found).collect();
                    assert_eq!(places, expected);
                }
            }
        }
    }
}
