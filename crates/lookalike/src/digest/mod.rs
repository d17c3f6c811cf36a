//! MD5 and SHA-1, for fingerprints that are defined by them.
//!
//! Neither resists an attacker. They are here because other tools' fingerprints use them (RFC 1321 and
//! RFC 3174). Most features of a text are short, and a message of up to [`MAX_ONE_BLOCK_BYTES`] bytes is
//! one block of MD5 or SHA-1. [`digest_ranges`] therefore processes up to [`LANES`] messages side by side,
//! [`LANES_PER_VECTOR`] of them in each vector. Longer messages are processed block by block. For SHA-1 this is done by
//! the crate `sha1`, because it uses the CPU's own instructions.
//!
//! Cost: the 64 steps of MD5 or the 80 of SHA-1 for every sixteen messages, even if there are fewer, and a
//! copy of each message into its lane.

mod hash_cache;
mod md5;
mod sha1;

use std::marker::PhantomData;
use std::ops::Range;

pub(crate) use hash_cache::{HashCache, ShortMessage};
pub(crate) use md5::Md5;
pub(crate) use sha1::Sha1;

use crate::arch::{Arch, Cpu, Kernel};

/// State of a digest: its words in order. MD5 has four words and leaves the last one at 0.
pub(crate) type DigestState = [u32; 5];

/// A hash that processes blocks of sixteen words, with a padding of a one bit, zeros and the length.
pub(crate) trait Digest {
    /// State before the first block.
    const START: DigestState;

    /// Converts four bytes of a message to a word.
    fn word(bytes: [u8; 4]) -> u32;

    /// Returns the last two words of the last block, for the length of the message in bits.
    fn length_words(bits: u64) -> [u32; 2];

    /// Returns the state after a block.
    fn digest_block(state: DigestState, words: [u32; BLOCK_WORDS]) -> DigestState;

    /// Returns the digest of a message of any length.
    fn digest_message(message: &[u8]) -> DigestState
    where
        Self: Sized,
    {
        digest_by_blocks::<Self>(message)
    }
}

const BLOCK_WORDS: usize = 16;
const BLOCK_BYTES: usize = 4 * BLOCK_WORDS;

/// Largest number of bytes of a message that fits into one block with its padding.
pub(crate) const MAX_ONE_BLOCK_BYTES: usize = BLOCK_BYTES - 9;

/// Number of messages side by side. It is several vectors, so that the CPU can work on one while another
/// waits.
pub(crate) const LANES: usize = 64;

/// Number of lanes that are computed together: those of the widest vector. Few messages thus cost little.
const LANES_PER_VECTOR: usize = 16;

/// Words of many messages or states, with one message per lane.
pub(crate) type LaneColumns<const WORDS: usize> = [[u32; LANES]; WORDS];

/// Returns the digest of a message of any length, block by block.
fn digest_by_blocks<D: Digest>(message: &[u8]) -> DigestState {
    let (blocks, rest) = message.as_chunks::<BLOCK_BYTES>();
    let state = blocks.iter().fold(D::START, |state, block| {
        D::digest_block(state, message_words::<D>(block))
    });
    let mut last = [0; 2 * BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let count = 1 + usize::from(rest.len() > MAX_ONE_BLOCK_BYTES);
    let (blocks, _) = last[..count * BLOCK_BYTES].as_chunks::<BLOCK_BYTES>();
    let mut state = state;
    for (at, block) in blocks.iter().enumerate() {
        let mut words = message_words::<D>(block);
        if at + 1 == count {
            words[BLOCK_WORDS - 2..].copy_from_slice(&D::length_words(8 * message.len() as u64));
        }
        state = D::digest_block(state, words);
    }
    state
}

#[inline(always)]
fn message_words<D: Digest>(block: &[u8; BLOCK_BYTES]) -> [u32; BLOCK_WORDS] {
    let (words, _) = block.as_chunks::<4>();
    std::array::from_fn(|at| D::word(words[at]))
}

/// Calls `emit` with the index and the digest of the message in each of the `chosen` ranges of `bytes`.
/// Messages of more than [`MAX_ONE_BLOCK_BYTES`] bytes may come before earlier ones.
pub(crate) fn digest_ranges<D: Digest>(
    cpu: Cpu,
    bytes: &[u8],
    ranges: &[Range<usize>],
    chosen: &[usize],
    mut emit: impl FnMut(usize, DigestState),
) {
    let mut short = Vec::with_capacity(LANES);
    for &at in chosen {
        let range = &ranges[at];
        if range.len() > MAX_ONE_BLOCK_BYTES {
            emit(at, D::digest_message(&bytes[range.clone()]));
            continue;
        }
        short.push(at);
        if short.len() == LANES {
            digest_side_by_side::<D>(cpu, bytes, ranges, &short, &mut emit);
            short.clear();
        }
    }
    digest_side_by_side::<D>(cpu, bytes, ranges, &short, &mut emit);
}

/// Digests at most [`LANES`] messages of one block each, and calls `emit` as [`digest_ranges`] does.
fn digest_side_by_side<D: Digest>(
    cpu: Cpu,
    bytes: &[u8],
    ranges: &[Range<usize>],
    chosen: &[usize],
    emit: &mut impl FnMut(usize, DigestState),
) {
    if chosen.is_empty() {
        return;
    }
    let mut messages: LaneColumns<BLOCK_WORDS> = [[0; LANES]; BLOCK_WORDS];
    for (lane, &at) in chosen.iter().enumerate() {
        let message = &bytes[ranges[at].clone()];
        let mut block = [0; BLOCK_BYTES];
        block[..message.len()].copy_from_slice(message);
        block[message.len()] = 0x80;
        let mut words = message_words::<D>(&block);
        words[BLOCK_WORDS - 2..].copy_from_slice(&D::length_words(8 * message.len() as u64));
        for (column, word) in messages.iter_mut().zip(words) {
            column[lane] = word;
        }
    }
    let states = cpu.run(OneBlockKernel::<D> {
        messages: &messages,
        count: chosen.len(),
        digest: PhantomData,
    });
    for (lane, &at) in chosen.iter().enumerate() {
        emit(at, states.map(|column| column[lane]));
    }
}

struct OneBlockKernel<'a, D> {
    messages: &'a LaneColumns<BLOCK_WORDS>,
    count: usize,
    digest: PhantomData<D>,
}

impl<D: Digest> Kernel for OneBlockKernel<'_, D> {
    type Output = LaneColumns<5>;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> LaneColumns<5> {
        digest_one_block::<D>(self.count, |word, lane| self.messages[word][lane])
    }
}

/// Returns the states after one block. Lanes from `count` on are unspecified. `word(at, lane)` returns word `at` of the
/// message in `lane`; a word that is constant over all lanes is folded by the compiler.
///
/// The body of the loop over lanes is one whole block without inner loops, because compilers turn such loops
/// into vector instructions.
#[inline(always)]
pub(crate) fn digest_one_block<D: Digest>(
    count: usize,
    word: impl Fn(usize, usize) -> u32,
) -> LaneColumns<5> {
    let mut states = [[0; LANES]; 5];
    for vector in 0..count
        .div_ceil(LANES_PER_VECTOR)
        .min(LANES / LANES_PER_VECTOR)
    {
        for lane in vector * LANES_PER_VECTOR..(vector + 1) * LANES_PER_VECTOR {
            let state = D::digest_block(D::START, std::array::from_fn(|at| word(at, lane)));
            for (column, value) in states.iter_mut().zip(state) {
                column[lane] = value;
            }
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use ::md5::Digest as _;

    use super::{
        Cpu, Digest, DigestState, LANES, Md5, Range, Sha1, digest_by_blocks, digest_ranges,
    };

    fn message(length: usize) -> Vec<u8> {
        (0..length as u64)
            .map(|at| crate::hash::mix_bits(at ^ (length as u64) << 32) as u8)
            .collect()
    }

    fn md5_bytes(state: DigestState) -> Vec<u8> {
        state[..4]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    fn sha1_bytes(state: DigestState) -> Vec<u8> {
        state.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Returns messages of every length from 0 to 200, some of them too long for a lane.
    fn messages() -> (Vec<u8>, Vec<Range<usize>>) {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for number in 0..=400 {
            let message = message(number * 83 % 201);
            ranges.push(bytes.len()..bytes.len() + message.len());
            bytes.extend(message);
        }
        (bytes, ranges)
    }

    #[test]
    fn digests_equal_references_at_every_length() {
        for length in 0..=200 {
            let message = message(length);
            let expected = ::md5::Md5::digest(&message).to_vec();
            assert_eq!(
                md5_bytes(digest_by_blocks::<Md5>(&message)),
                expected,
                "{length}"
            );
            let expected = ::sha1::Sha1::digest(&message).to_vec();
            assert_eq!(
                sha1_bytes(digest_by_blocks::<Sha1>(&message)),
                expected,
                "{length}"
            );
        }
    }

    #[test]
    fn lanes_equal_single_messages() {
        let (bytes, ranges) = messages();
        for cpu in Cpu::detect_all() {
            for count in [0, 1, 2, LANES - 1, LANES, LANES + 1, ranges.len()] {
                let chosen: Vec<usize> = (0..count).collect();
                let mut seen = vec![0; count];
                digest_ranges::<Md5>(cpu, &bytes, &ranges, &chosen, |at, state| {
                    let message = &bytes[ranges[at].clone()];
                    assert_eq!(state, Md5::digest_message(message), "{} {at}", cpu.name());
                    seen[at] += 1;
                });
                digest_ranges::<Sha1>(cpu, &bytes, &ranges, &chosen, |at, state| {
                    let message = &bytes[ranges[at].clone()];
                    assert_eq!(state, Sha1::digest_message(message), "{} {at}", cpu.name());
                    seen[at] += 1;
                });
                assert!(seen.iter().all(|&times| times == 2));
            }
        }
    }
}
