//! Rings of cache lines.

use crate::arch::{CacheLine, ChunkedLines, LINE};
use crate::error::{Error, ErrorKind, Result};

/// Link value that refers to no line.
pub(super) const NONE: u32 = 0;

/// Position of the last word of a line.
pub(super) const LAST: usize = LINE - 1;

/// Returns the last word of a line: the number of another line plus one, or [`NONE`].
#[inline(always)]
pub(super) fn line_link(line: &CacheLine) -> u32 {
    line.0[LAST]
}

/// Converts an error of reserving memory.
pub(super) fn out_of_memory(error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::Limit,
        format!("the live index cannot grow, because memory is exhausted: {error}"),
    )
}

/// Lines that form rings, and a list of free lines.
///
/// The last word of a line is its link: the number of the next line, plus one. A ring is named by
/// its newest line, whose link leads to the oldest line. Both ends are therefore reachable from
/// the name, and a whole ring is freed in one step.
#[derive(Debug)]
pub(super) struct LineRings {
    lines: ChunkedLines,
    free: u32,
    /// Number of lines that have ever been in use.
    touched: u32,
}

impl LineRings {
    pub(super) fn new(chunk_bits: u32) -> Self {
        Self {
            lines: ChunkedLines::new(chunk_bits),
            free: NONE,
            touched: 0,
        }
    }

    /// Makes room for `more` lines than have ever been in use.
    pub(super) fn reserve_lines(&mut self, more: u32) -> Result<()> {
        let lines = u64::from(self.touched) + u64::from(more);
        self.lines.reserve_lines(lines).map_err(out_of_memory)
    }

    /// Returns all lines, whether in use or not.
    pub(super) fn lines_mut(&mut self) -> &mut ChunkedLines {
        &mut self.lines
    }

    /// Returns the number of lines that have ever been in use, which is what takes memory.
    pub(super) fn touched_lines(&self) -> u32 {
        self.touched
    }

    #[inline(always)]
    pub(super) fn get(&self, at: u32) -> &CacheLine {
        self.lines.line(at)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut CacheLine {
        self.lines.line_mut(at)
    }

    /// Returns the line that follows; the newest is followed by the oldest.
    #[inline(always)]
    pub(super) fn next_line(&self, at: u32) -> u32 {
        self.get(at).0[LAST] - 1
    }

    /// Adds a line as the newest of the ring that had `newest`, or as a new ring. The words of the
    /// line are arbitrary. Room for it must have been reserved.
    pub(super) fn push_line(&mut self, newest: Option<u32>) -> u32 {
        let at = if self.free == NONE {
            self.touched += 1;
            self.touched - 1
        } else {
            let at = self.free - 1;
            self.free = self.get(at).0[LAST];
            at
        };
        let oldest = match newest {
            Some(newest) => std::mem::replace(&mut self.get_mut(newest).0[LAST], at + 1),
            None => at + 1,
        };
        self.get_mut(at).0[LAST] = oldest;
        at
    }

    /// Frees the oldest line of a ring of more than one line.
    pub(super) fn free_oldest(&mut self, newest: u32) {
        let oldest = self.next_line(newest);
        debug_assert_ne!(oldest, newest);
        self.get_mut(newest).0[LAST] = self.next_line(oldest) + 1;
        self.get_mut(oldest).0[LAST] = self.free;
        self.free = oldest + 1;
    }

    /// Frees a whole ring.
    pub(super) fn free_ring(&mut self, newest: u32) {
        let oldest = self.next_line(newest);
        self.get_mut(newest).0[LAST] = self.free;
        self.free = oldest + 1;
    }
}
