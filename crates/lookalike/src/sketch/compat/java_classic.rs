//! `java-classic`: the fingerprints of a widely copied Java class.
//!
//! Features are separated by spaces, tabs, line feeds, carriage returns and form feeds. The hash is that of
//! strings in Python 2, over UTF-16 units, with as many bits as the fingerprint. A hash of fewer bits is the
//! low end of a hash of more bits.

use super::CompatBuffers;

const FACTOR: u128 = 1_000_003;

pub(super) fn token_hash(token: &str) -> u128 {
    let mut units = token.encode_utf16().map(u128::from).peekable();
    let start = units.peek().map_or(0, |first| first << 7);
    let (hash, length) = units.fold((start, 0), |(hash, length), unit| {
        (hash.wrapping_mul(FACTOR) ^ unit, length + 1)
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
