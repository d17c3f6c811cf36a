//! The messages of a client: lines of bounded length.

use std::io::{self, BufRead};

/// Largest number of bytes of a message, 16 MiB. The rest of a longer line is read and dropped.
pub(super) const MAX_FRAME_BYTES: usize = 16 << 20;

/// Capacity of the buffer that is kept between messages, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageFrame<'a> {
    /// Its bytes, without the line end.
    Line(&'a [u8]),
    /// A line of more than [`MAX_FRAME_BYTES`], which was dropped.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads lines. It holds at most one of them, of at most [`MAX_FRAME_BYTES`].
pub(super) struct FrameReader<R> {
    input: R,
    line: Vec<u8>,
    max_bytes: usize,
}

impl<R: BufRead> FrameReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            max_bytes: MAX_FRAME_BYTES,
        }
    }

    /// Reads the next line. The end of the input ends a line, too.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) fn next_frame(&mut self) -> io::Result<MessageFrame<'_>> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        let (mut is_too_long, mut has_bytes) = (false, false);
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(cause),
            };
            let end = available.iter().position(|&byte| byte == b'\n');
            let (part, used) = match end {
                Some(end) => (&available[..end], end + 1),
                None => (available, available.len()),
            };
            let is_at_end = used == 0;
            has_bytes |= !is_at_end;
            is_too_long |= part.len() > self.max_bytes - self.line.len();
            if is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(part);
            }
            self.input.consume(used);
            if end.is_some() || is_at_end {
                break;
            }
        }
        Ok(if is_too_long {
            MessageFrame::TooLong
        } else if has_bytes {
            MessageFrame::Line(&self.line)
        } else {
            MessageFrame::End
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_have_a_largest_length() {
        for capacity in [1, 3, 4, 5, 64] {
            let input =
                BufReader::with_capacity(capacity, &b"abcd\n\nabcde\nxy\nabcdefghij\nz"[..]);
            let mut reader = FrameReader::new(input);
            reader.max_bytes = 4;
            let mut read = Vec::new();
            loop {
                match reader.next_frame().unwrap() {
                    MessageFrame::Line(line) => {
                        read.push(String::from_utf8(line.to_vec()).unwrap())
                    }
                    MessageFrame::TooLong => read.push("too long".to_owned()),
                    MessageFrame::End => break,
                }
            }
            assert_eq!(read, ["abcd", "", "too long", "xy", "too long", "z"]);
        }
    }
}
