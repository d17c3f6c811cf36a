//! `datasketch-legacy` and `datasketch-affine32`: the features of the Python package `datasketch`, before 2.0 and
//! since.
//!
//! In that package the caller supplies the tokens. Here they are the unchanged parts of the text between
//! white space, as Python 3 defines it. The hash of a token is the first four bytes of its SHA-1,
//! little-endian. A feature has eight of these bytes, so that Jaccard indexes are those of the tokens,
//! without collisions of the shorter hashes.

use super::{CompatBuffers, python};
use crate::arch::Cpu;
use crate::digest::{DigestState, Sha1};

pub(super) fn message_hash(state: DigestState) -> u128 {
    u128::from(u64::from(state[0].swap_bytes()) | u64::from(state[1].swap_bytes()) << 32)
}

/// Returns the hashes of messages that the caller has cut; see
/// [`MessageHasher`](crate::sketch::MessageHasher).
pub(crate) fn hash_messages<'b>(
    cpu: Cpu,
    bytes: &[u8],
    ends: &[usize],
    buffers: &'b mut CompatBuffers,
) -> &'b [u64] {
    let mut start = 0;
    buffers.ranges.clear();
    buffers.ranges.extend(ends.iter().map(|&end| {
        let range = start..end;
        start = end;
        range
    }));
    buffers.hash_ranges::<Sha1>(cpu, bytes, message_hash);
    &buffers.low
}

pub(super) fn analyze_messages(cpu: Cpu, text: &str, buffers: &mut CompatBuffers) {
    python::find_words(cpu, text, &mut buffers.ranges);
    buffers.hash_ranges::<Sha1>(cpu, text.as_bytes(), message_hash);
}
