//! The parts of an object that were read, in a temporary file.
//!
//! A reader of Parquet asks for many small pieces: the footer, headers of pages, pages. Each piece is taken
//! from a part of [`PART_BYTES`], which is requested once and then kept. Parts without a piece are never
//! requested. All objects of a run share one temporary file.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::client::wait_for;
use super::stored_object::StoredObject;
use super::{ObjectFailure, PART_BYTES};
use crate::spool::SpoolFile;

/// An object that is read at any offset.
#[derive(Debug)]
pub(crate) struct RangeCopy {
    object: Arc<StoredObject>,
    length: u64,
    spool: Arc<SpoolFile>,
    /// Offset of each part in the temporary file, once it was read. A part is locked while it is requested.
    parts: Vec<Mutex<Option<u64>>>,
}

impl RangeCopy {
    /// Creates a copy without any part.
    pub(crate) fn new(object: &Arc<StoredObject>, spool: Arc<SpoolFile>) -> Self {
        let length = object.byte_length().unwrap_or(0);
        let count = length.div_ceil(PART_BYTES);
        Self {
            object: Arc::clone(object),
            length,
            spool,
            parts: (0..count).map(|_| Mutex::default()).collect(),
        }
    }

    pub(crate) fn byte_length(&self) -> u64 {
        self.length
    }

    /// Reads bytes from offset `start` on, at most to the end of the part that it lies in. Returns their
    /// number; 0 at the end of the object.
    pub(crate) fn read_at(&self, room: &mut [u8], start: u64) -> io::Result<usize> {
        let Some(part) = self.parts.get((start / PART_BYTES) as usize) else {
            return Ok(0);
        };
        let within = start % PART_BYTES;
        let part_start = start - within;
        let part_bytes = PART_BYTES.min(self.length - part_start);
        let length = room.len().min(part_bytes.saturating_sub(within) as usize);
        let kept = self.find_part(part, part_start, part_bytes)?;
        self.spool
            .read_exact_at(&mut room[..length], kept + within)?;
        Ok(length)
    }

    /// Returns the offset of a part in the temporary file. Requests the part if it is not there.
    fn find_part(&self, part: &Mutex<Option<u64>>, start: u64, length: u64) -> io::Result<u64> {
        let mut kept = part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offset) = *kept {
            return Ok(offset);
        }
        let bytes = wait_for(self.object.fetch_range(start..start + length))?;
        let offset = self
            .spool
            .append_bytes(&bytes)
            .map_err(|error| ObjectFailure::Failed(error.to_string()))?;
        *kept = Some(offset);
        Ok(offset)
    }
}
