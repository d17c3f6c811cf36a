//! Bytes that one thread makes and another frees.
//!
//! An allocator keeps what a thread has allocated for that thread, also once another has freed it. Answers that wait for
//! slow clients are made by threads that then have nothing to do, so what is freed of them would stay as long as the rest.

use bytes::Bytes;
use memmap2::MmapMut;

/// Length from which bytes have pages of their own, which whoever frees them gives back to the system.
const OWN_PAGES: usize = 128 << 10;

/// Returns bytes whose memory is free for all threads once they are dropped. Cost: a copy.
pub(crate) fn detach_bytes(bytes: Vec<u8>) -> Bytes {
    if bytes.len() < OWN_PAGES {
        return bytes.into();
    }
    // Without further mappings, the bytes stay where they are.
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
        for length in [0, 1, OWN_PAGES - 1, OWN_PAGES, OWN_PAGES + 1, 3 * OWN_PAGES] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(detach_bytes(bytes.clone()), bytes);
        }
    }
}
