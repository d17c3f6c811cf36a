//! Bytes that one thread makes and another frees.
//!
//! An allocator keeps the memory that a thread has allocated for that thread, also once another thread has freed it.
//! The threads that make answers for slow clients then have nothing to do. So the memory of such an answer would stay
//! with an idle thread after the client has taken it.

use bytes::Bytes;
use memmap2::MmapMut;

/// Length, in bytes, from which an answer has memory pages of its own. Dropping it returns them to the system.
const OWN_PAGES_BYTES: usize = 128 << 10;

/// Returns the bytes in memory that any thread can use again once they are dropped. Cost: a copy.
pub(crate) fn detach_bytes(bytes: Vec<u8>) -> Bytes {
    if bytes.len() < OWN_PAGES_BYTES {
        return bytes.into();
    }
    // If the system refuses a mapping, the bytes stay where they are.
    let Ok(mut pages) = MmapMut::map_anon(bytes.len()) else {
        return bytes.into();
    };
    pages.copy_from_slice(&bytes);
    Bytes::from_owner(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_the_same() {
        for length in [
            0,
            1,
            OWN_PAGES_BYTES - 1,
            OWN_PAGES_BYTES,
            OWN_PAGES_BYTES + 1,
            3 * OWN_PAGES_BYTES,
        ] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(detach_bytes(bytes.clone()), bytes);
        }
    }
}
