//! `news-md5`: the fingerprints of a widely copied Python 2 script for news.
//!
//! Features are the parts of title and text between white space, as Python 2.7 defines it. Bit i + 32 of the
//! MD5 digest, read as one number, votes for bit i.

use super::{CompatBuffers, md5_number, python};
use crate::arch::Cpu;
use crate::digest::{DigestState, Md5};

/// Number of lowest bits of a digest that do not vote.
const UNUSED_BITS: u32 = 32;

pub(super) fn token_hash(state: DigestState) -> u128 {
    md5_number(state) >> UNUSED_BITS
}

pub(super) fn analyze_tokens(cpu: Cpu, text: &str, buffers: &mut CompatBuffers) {
    python::places_like_python_2(cpu, text, &mut buffers.ranges);
    buffers.hash_ranges::<Md5>(cpu, text.as_bytes(), token_hash);
}
