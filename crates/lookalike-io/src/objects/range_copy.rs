//! The parts of an object that were read, in a file of this machine.
//!
//! A reader of Parquet asks for many small pieces: the footer, headers of pages, pages. Each piece is taken
//! from a part of [`PART_BYTES`], which is requested once and then kept. Parts without a piece are never
//! requested. All objects of a run share one temporary file. Of an object that keeps its parts beyond the process,
//! the parts are those of [`ObjectCopies`](super::ObjectCopies).

use std::io;
use std::ops::Range;
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
    /// `None` if the object itself keeps its parts.
    temporary: Option<TemporaryParts>,
}

/// Parts in a temporary file.
#[derive(Debug)]
struct TemporaryParts {
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
            temporary: Some(TemporaryParts {
                spool,
                parts: (0..count).map(|_| Mutex::default()).collect(),
            }),
        }
    }

    /// Returns the copy of an object that [keeps its parts](StoredObject::keeps_parts).
    pub(crate) fn of_kept(object: &Arc<StoredObject>) -> Self {
        Self {
            object: Arc::clone(object),
            length: object.byte_length().unwrap_or(0),
            temporary: None,
        }
    }

    pub(crate) fn byte_length(&self) -> u64 {
        self.length
    }

    /// Reads bytes from offset `start` on, at most to the end of the part that it lies in. Returns their
    /// number; 0 at the end of the object.
    pub(crate) fn read_at(&self, room: &mut [u8], start: u64) -> io::Result<usize> {
        let Some(temporary) = &self.temporary else {
            return self.object.read_kept_at(room, start);
        };
        let Some(part) = temporary.parts.get((start / PART_BYTES) as usize) else {
            return Ok(0);
        };
        let within = start % PART_BYTES;
        let part_start = start - within;
        let part_bytes = PART_BYTES.min(self.length - part_start);
        let length = room.len().min(part_bytes.saturating_sub(within) as usize);
        let kept = self.find_part(&temporary.spool, part, part_start..part_start + part_bytes)?;
        temporary
            .spool
            .read_exact_at(&mut room[..length], kept + within)?;
        Ok(length)
    }

    /// Fills `room` with bytes from offset `start` on.
    pub(crate) fn read_exact_at(&self, mut room: &mut [u8], mut start: u64) -> io::Result<()> {
        while !room.is_empty() {
            let length = self.read_at(room, start)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            start += length as u64;
            room = &mut room[length..];
        }
        Ok(())
    }

    /// Returns the offset of a part in the temporary file. Requests the part if it is not there.
    fn find_part(
        &self,
        spool: &SpoolFile,
        part: &Mutex<Option<u64>>,
        range: Range<u64>,
    ) -> io::Result<u64> {
        let mut kept = part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offset) = *kept {
            return Ok(offset);
        }
        let bytes = wait_for(self.object.fetch_range(range))?;
        let offset = spool
            .append_bytes(&bytes)
            .map_err(|error| ObjectFailure::Failed(error.to_string()))?;
        *kept = Some(offset);
        Ok(offset)
    }
}
