//! Lines of a bulk body, cut into portions that are processed together.

use std::ops::Range;

use bytes::Bytes;

use crate::api::body::{BYTE_ORDER_MARK, body_too_large};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::limits::byte_budget::HeldBytes;

/// Lines from which on a portion is full.
const PORTION_LINES: usize = 4096;

/// Bytes from which on a portion is full.
const PORTION_BYTES: usize = 4 << 20;

/// Blank lines that a body may have. They are skipped without an answer, but cost time.
const MAX_BLANK_LINES: u64 = 100_000;

/// A line of a portion.
pub(super) struct PortionLine {
    /// Line number in the body, from 1.
    pub(super) number: u64,
    /// Position of its bytes in the portion; `None` if the line is too long.
    pub(super) bytes: Option<Range<usize>>,
}

/// Complete lines of a body, which are processed together, and the incomplete one behind them.
pub(super) struct LinePortion {
    pub(super) bytes: Vec<u8>,
    pub(super) lines: Vec<PortionLine>,
    /// Start of the incomplete last line.
    pub(super) line_start: usize,
    /// Number of the incomplete line.
    pub(super) number: u64,
    /// `true` if the rest of the incomplete line is skipped because it is too long.
    pub(super) too_long: bool,
    max_line_bytes: usize,
    /// Budget of the bytes.
    pub(super) permits: Option<HeldBytes>,
    /// Blank lines of the body so far.
    blank_lines: u64,
}

impl LinePortion {
    pub(super) fn new(max_line_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            lines: Vec::new(),
            line_start: 0,
            number: 1,
            too_long: false,
            max_line_bytes,
            permits: None,
            blank_lines: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= PORTION_LINES || self.line_start >= PORTION_BYTES
    }

    /// Adds bytes until the portion is full; returns the bytes that are left.
    pub(super) fn push_bytes(&mut self, mut piece: Bytes) -> Bytes {
        while !piece.is_empty() && !self.is_full() {
            let end = memchr::memchr(b'\n', &piece);
            let part = piece.split_to(end.map_or(piece.len(), |end| end + 1));
            if !self.too_long {
                self.bytes
                    .extend_from_slice(&part[..end.unwrap_or(part.len())]);
                self.drop_if_too_long();
            }
            if end.is_some() {
                self.end_current_line();
            }
        }
        piece
    }

    /// Returns how many bytes of a piece the portion would hold. Drops a line that becomes too long with this
    /// piece, because bytes that are dropped must not wait for budget.
    pub(super) fn count_kept(&mut self, piece: &[u8]) -> usize {
        let end = memchr::memchr(b'\n', piece).unwrap_or(piece.len());
        if !self.too_long && self.bytes.len() - self.line_start + end > self.max_line_bytes {
            self.bytes.truncate(self.line_start);
            self.too_long = true;
            self.release_unused_budget();
        }
        if self.too_long {
            piece.len() - end
        } else {
            piece.len()
        }
    }

    /// Checks the number of blank lines.
    ///
    /// # Errors
    /// If the body has more than [`MAX_BLANK_LINES`].
    pub(super) fn check_blank_lines(&self) -> Result<(), ApiProblem> {
        if self.blank_lines <= MAX_BLANK_LINES {
            return Ok(());
        }
        let detail =
            format!("the body has more than {MAX_BLANK_LINES} blank lines: leave them out");
        Err(ApiProblem::new(ProblemCode::TooLarge, detail))
    }

    fn drop_if_too_long(&mut self) {
        if self.bytes.len() - self.line_start > self.max_line_bytes {
            self.bytes.truncate(self.line_start);
            self.too_long = true;
        }
    }

    /// Ends the current line. A blank line is counted and dropped, and so is a byte order mark before the first one.
    pub(super) fn end_current_line(&mut self) {
        let mut line = self.line_start..self.bytes.len();
        if self.number == 1 && self.bytes[line.clone()].starts_with(BYTE_ORDER_MARK) {
            line.start += BYTE_ORDER_MARK.len();
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let is_blank = self.bytes[line.clone()].iter().all(blank);
        if self.too_long || !is_blank {
            self.lines.push(PortionLine {
                number: self.number,
                bytes: (!self.too_long).then_some(line),
            });
        } else {
            self.blank_lines += 1;
        }
        self.line_start = self.bytes.len();
        self.number += 1;
        self.too_long = false;
    }

    /// Takes the complete lines; the incomplete one stays.
    pub(super) fn take_complete_lines(&mut self) -> Self {
        let mut next = Self {
            number: self.number,
            too_long: self.too_long,
            blank_lines: self.blank_lines,
            ..Self::new(self.max_line_bytes)
        };
        next.bytes.extend_from_slice(&self.bytes[self.line_start..]);
        if !next.bytes.is_empty()
            && let Some(permits) = &mut self.permits
        {
            next.permits = Some(permits.split_bytes(next.bytes.len()));
        }
        std::mem::replace(self, next)
    }

    /// Releases the budget of bytes that are not kept: line ends, blank lines, and lines that are too long.
    pub(super) fn release_unused_budget(&mut self) {
        let released = self.permits.as_mut().and_then(|permits| {
            let unused = permits.byte_count().checked_sub(self.bytes.len())?;
            Some(permits.split_bytes(unused))
        });
        drop(released);
    }

    pub(super) fn line_bytes(&self, line: &PortionLine) -> Result<&[u8], ApiProblem> {
        match &line.bytes {
            Some(bytes) => Ok(&self.bytes[bytes.clone()]),
            None => Err(body_too_large("the line", self.max_line_bytes as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::byte_budget::{ByteBudget, ClientId};

    /// Lines with their numbers; `None` for a line that is too long.
    type Lines = Vec<(u64, Option<Vec<u8>>)>;

    fn lines_of(portion: &LinePortion) -> Lines {
        let lines = portion.lines.iter();
        lines
            .map(|line| {
                (
                    line.number,
                    portion.line_bytes(line).ok().map(<[u8]>::to_vec),
                )
            })
            .collect()
    }

    /// Returns the same lines, computed in the simplest way.
    fn plainly(body: &[u8], longest: usize) -> Lines {
        let lines = (1..).zip(body.split(|&byte| byte == b'\n'));
        lines
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(|(number, line)| (number, (line.len() <= longest).then(|| line.to_vec())))
            .collect()
    }

    fn cut(body: &[u8], longest: usize, piece: impl Fn(usize) -> usize) -> Lines {
        let (mut portion, mut lines, mut at) = (LinePortion::new(longest), Vec::new(), 0);
        while at < body.len() {
            let end = (at + piece(at).max(1)).min(body.len());
            let mut rest = Bytes::copy_from_slice(&body[at..end]);
            while !rest.is_empty() {
                rest = portion.push_bytes(rest);
                if portion.is_full() {
                    assert!(portion.lines.len() <= PORTION_LINES);
                    lines.extend(lines_of(&portion.take_complete_lines()));
                }
            }
            at = end;
        }
        if portion.bytes.len() > portion.line_start || portion.too_long {
            portion.end_current_line();
        }
        lines.extend(lines_of(&portion.take_complete_lines()));
        lines
    }

    #[test]
    fn lines_do_not_depend_on_chunk_borders() {
        let long = "x".repeat(50);
        let pieces = [
            "a",
            "",
            "\r",
            " \t ",
            "bc\r",
            "longest!",
            "too long!",
            &long,
            "é",
            "",
            "end",
        ];
        for ends in ["\n", ""] {
            let body = pieces.join("\n") + ends;
            let expected = plainly(body.as_bytes(), 8);
            assert_eq!(
                expected.iter().filter(|(_, line)| line.is_none()).count(),
                2
            );
            for size in 1..=body.len() {
                assert_eq!(cut(body.as_bytes(), 8, |_| size), expected, "{size}");
            }
            for seed in 0..50 {
                let piece = |at: usize| (at * 31 + seed * 17) % 7;
                assert_eq!(cut(body.as_bytes(), 8, piece), expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn batches_are_bounded() {
        let many: Vec<u8> = (0..3 * PORTION_LINES)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .collect();
        assert_eq!(cut(&many, 100, |_| many.len()), plainly(&many, 100));
        let mut portion = LinePortion::new(PORTION_BYTES);
        let large = [vec![b'x'; PORTION_BYTES], b"\nrest".to_vec()].concat();
        let rest = portion.push_bytes(large.into());
        assert!(portion.is_full());
        assert_eq!(&rest[..], b"rest");
    }

    #[test]
    fn waiting_bytes_are_released() {
        let queue = ByteBudget::new(1000);
        let mut portion = LinePortion::new(100);
        portion.permits = queue.try_take_bytes(ClientId::Key(0), 300);
        portion.push_bytes(Bytes::from_static(b"line\nbegun"));
        let taken = portion.take_complete_lines();
        assert_eq!(queue.free_bytes(), 700);
        drop(taken);
        assert_eq!(queue.free_bytes(), 1000 - "begun".len());
        drop(portion);
        assert_eq!(queue.free_bytes(), 1000);
    }
}
