//! The bytes of an object in order, for threads that wait for them.

use std::fmt;
use std::io::{self, Read};

use bytes::{Buf, Bytes};
use futures_util::stream::{BoxStream, StreamExt};

use super::ObjectFailure;
use super::client::wait_for;

/// Reads an object once. Nothing is requested before the first read.
pub(crate) struct ObjectStream {
    parts: BoxStream<'static, Result<Bytes, ObjectFailure>>,
    /// Bytes that were received and not handed out yet.
    received: Bytes,
}

impl ObjectStream {
    pub(super) fn new(parts: BoxStream<'static, Result<Bytes, ObjectFailure>>) -> Self {
        Self {
            parts,
            received: Bytes::new(),
        }
    }
}

impl fmt::Debug for ObjectStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStream").finish_non_exhaustive()
    }
}

impl Read for ObjectStream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.received.is_empty() {
            match wait_for(self.parts.next()) {
                None => return Ok(0),
                Some(part) => self.received = part?,
            }
        }
        let length = room.len().min(self.received.len());
        self.received.copy_to_slice(&mut room[..length]);
        Ok(length)
    }
}
