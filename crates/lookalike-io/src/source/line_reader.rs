//! Rows that end at a line feed: finding their ends, counting them, and cutting a stream of bytes into
//! blocks of whole rows.
//!
//! In CSV with quoting, a line feed between quotes does not end a row. A quote opens a field only at
//! the start of the field, which the byte before it shows. Therefore row ends are found without
//! parsing, by jumping from quote to quote. In all accepted encodings the bytes of line feed, quote,
//! comma, tab and semicolon are never part of another character.

use memchr::{memchr, memchr_iter, memchr2, memrchr};

use super::byte_stream::ByteStream;
use crate::error::Result;
use crate::spool::SpoolFile;

/// The rule for the end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowEnds {
    /// A line feed.
    LineFeed,
    /// A line feed outside of quotes. A quote opens after this delimiter or at the start of a row.
    OutsideQuotes(u8),
}

impl RowEnds {
    /// Returns the end of the row that starts at `start`, its line feed included, or the end of `bytes`
    /// if no line feed ends it.
    pub(super) fn find_row_end(self, bytes: &[u8], start: usize) -> usize {
        match self {
            Self::LineFeed => find_line_end(bytes, start),
            Self::OutsideQuotes(delimiter) => {
                let end = find_line_end(bytes, start);
                match memchr(b'"', &bytes[start..end]) {
                    None => end,
                    Some(_) => quoted_row_end(bytes, start, delimiter),
                }
            }
        }
    }
}

fn find_line_end(bytes: &[u8], start: usize) -> usize {
    memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length + 1)
}

fn quoted_row_end(bytes: &[u8], start: usize, delimiter: u8) -> usize {
    let mut at = start;
    while let Some(found) = memchr2(b'\n', b'"', &bytes[at..]) {
        let found = at + found;
        at = found + 1;
        if bytes[found] == b'\n' {
            return at;
        }
        if found == start || bytes[found - 1] == delimiter {
            at = closing_quote(bytes, at);
        }
    }
    bytes.len()
}

/// Returns the position after the quote that closes a quoted field, or the end of `bytes` if none does.
/// The opening quote is before `at`.
fn closing_quote(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr(b'"', &bytes[at..]) {
        at += found + 1;
        if bytes.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Returns a row without its line end.
pub(crate) fn trim_line_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// The numbers of line feeds and of rows in a piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LineCount {
    pub(super) lines: u64,
    pub(super) rows: u64,
}

/// Counts the rows of `bytes`, which consists of whole rows.
pub(super) fn count_rows(bytes: &[u8], ends: RowEnds) -> LineCount {
    match ends {
        RowEnds::OutsideQuotes(_) if memchr(b'"', bytes).is_some() => count_one_by_one(bytes, ends),
        _ => count_lines(bytes),
    }
}

fn count_one_by_one(bytes: &[u8], ends: RowEnds) -> LineCount {
    let (mut count, mut at) = (LineCount::default(), 0);
    while at < bytes.len() {
        let end = ends.find_row_end(bytes, at);
        count.lines += memchr_iter(b'\n', &bytes[at..end]).count() as u64;
        count.rows += u64::from(!trim_line_end(&bytes[at..end]).is_empty());
        at = end;
    }
    count
}

/// Counts line feeds and rows in one pass that the compiler vectorises.
fn count_lines(bytes: &[u8]) -> LineCount {
    let (mut lines, mut blank) = (0u64, 0u64);
    let (one, two) = (bytes.get(1..).unwrap_or(&[]), bytes.get(2..).unwrap_or(&[]));
    let stride = 128;
    let whole = two.len() / stride * stride;
    for start in (0..whole).step_by(stride) {
        let part = start..start + stride;
        let (mut ends, mut blanks) = (0u8, 0u8);
        for ((&a, &b), &c) in bytes[part.clone()]
            .iter()
            .zip(&one[part.clone()])
            .zip(&two[part])
        {
            let end = a == b'\n';
            ends += u8::from(end);
            blanks += u8::from(end & ((b == b'\n') | ((b == b'\r') & (c == b'\n'))));
        }
        lines += u64::from(ends);
        blank += u64::from(blanks);
    }
    for at in whole..bytes.len() {
        let end = bytes[at] == b'\n';
        lines += u64::from(end);
        blank += u64::from(end && starts_blank_line(&bytes[at + 1..]));
    }
    blank += u64::from(starts_blank_line(bytes));
    let open_end = trim_line_end(&bytes[memrchr(b'\n', bytes).map_or(0, |at| at + 1)..]);
    LineCount {
        lines,
        rows: lines - blank + u64::from(!open_end.is_empty()),
    }
}

fn starts_blank_line(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\n") || bytes.starts_with(b"\r\n")
}

/// A buffer whose first `used` bytes are valid. The bytes after them are not cleared between uses.
#[derive(Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    used: usize,
}

impl ReadBuffer {
    pub(super) fn filled_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    pub(super) fn truncate(&mut self, used: usize) {
        self.used = self.used.min(used);
    }

    pub(super) fn extend_from(&mut self, bytes: &[u8]) {
        self.grow_to(self.used + bytes.len());
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn grow_to(&mut self, room: usize) {
        if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
    }

    /// Removes the first `length` bytes.
    fn remove_start(&mut self, length: usize) {
        self.bytes.copy_within(length..self.used, 0);
        self.used -= length;
    }

    /// Reads until the buffer holds `goal` bytes. Returns `true` if the stream ended before that.
    pub(super) fn read_until_goal(
        &mut self,
        goal: usize,
        stream: &mut ByteStream,
        spool: Option<&SpoolFile>,
    ) -> Result<bool> {
        self.grow_to(goal);
        let start = self.used;
        let mut ended = false;
        while self.used < goal && !ended {
            let read = stream.read_bytes(&mut self.bytes[self.used..goal])?;
            self.used += read;
            ended = read == 0;
        }
        match spool {
            Some(spool) if self.used > start => {
                spool.append_bytes(&self.bytes[start..self.used])?;
            }
            _ => {}
        }
        Ok(ended)
    }
}

/// Size limits of cutting.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutSizes {
    pub(super) block_bytes: usize,
    pub(super) max_row_bytes: u32,
}

/// Result of [`LineReader::read_next_rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsRead {
    /// The buffer holds whole rows, which begin at this offset of the decompressed input.
    Rows { offset: u64 },
    /// One row is longer than the limit. The buffer is empty, because the row was skipped.
    Oversized(OversizedRow),
}

/// A row beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OversizedRow {
    /// Offset in the decompressed input.
    pub(super) offset: u64,
    /// Length in bytes, with the line end.
    pub(super) length: u64,
    /// Number of line feeds in it.
    pub(super) lines: u64,
    /// `true` if the input ends with it and no line feed ends it.
    pub(super) is_unterminated: bool,
}

/// Cuts one input into blocks of whole rows.
pub(super) struct LineReader {
    stream: ByteStream,
    spooled: bool,
    ends: RowEnds,
    sizes: CutSizes,
    /// Bytes read beyond the last cut: the beginning of a row.
    carry: Vec<u8>,
    /// Offset of the carry in the decompressed input.
    offset: u64,
    ended: bool,
}

impl LineReader {
    /// Creates a reader at the start of `stream`. `spooled` decides whether the bytes read are also
    /// copied to the spool.
    pub(super) fn new(stream: ByteStream, spooled: bool, ends: RowEnds, sizes: CutSizes) -> Self {
        Self {
            stream,
            spooled,
            ends,
            sizes,
            carry: Vec::new(),
            offset: 0,
            ended: false,
        }
    }

    /// Returns the bytes read from the file or object so far; see [`ByteStream::source_position`].
    pub(super) fn source_position(&self) -> u64 {
        self.stream.source_position()
    }

    /// Returns the first bytes of the input, at most `length`. They stay unread.
    pub(super) fn peek_start(&mut self, length: usize, spool: Option<&SpoolFile>) -> Result<&[u8]> {
        let mut buffer = ReadBuffer::default();
        self.ended =
            buffer.read_until_goal(length, &mut self.stream, spool.filter(|_| self.spooled))?;
        self.carry.extend_from_slice(buffer.filled_bytes());
        Ok(&self.carry)
    }

    /// Skips the first bytes of those that [`peek_start`](Self::peek_start) has returned.
    pub(super) fn skip_start(&mut self, length: usize) {
        self.carry.drain(..length);
        self.offset += length as u64;
    }

    /// Continues behind rows that are known, which end at the byte `end` of the input. Returns `false` if they must be
    /// read all the same.
    pub(super) fn skip_known(&mut self, start: u64, end: u64) -> Result<bool> {
        if self.spooled || start < self.offset || !self.stream.seek_to(end)? {
            return Ok(false);
        }
        self.carry.clear();
        self.ended = false;
        self.offset = end;
        Ok(true)
    }

    /// Fills `buffer` with the next rows, or skips one that is longer than the limit. Returns `None` at the end. The buffer
    /// never holds much more than the limit and a block.
    pub(super) fn read_next_rows(
        &mut self,
        buffer: &mut ReadBuffer,
        spool: Option<&SpoolFile>,
    ) -> Result<Option<RowsRead>> {
        let spool = spool.filter(|_| self.spooled);
        buffer.clear();
        buffer.extend_from(&self.carry);
        self.carry.clear();
        let mut cutter = RowCutter::new(self.ends);
        let mut goal = self.sizes.block_bytes.max(1);
        let length = loop {
            self.ended = self.ended || buffer.read_until_goal(goal, &mut self.stream, spool)?;
            if self.ended {
                break buffer.filled_bytes().len();
            }
            match cutter.last_row_end(buffer.filled_bytes()) {
                0 => match self.larger_goal(buffer.filled_bytes().len()) {
                    Some(larger) => goal = larger,
                    None => return self.skip_row(cutter, buffer, spool).map(Some),
                },
                length => break length,
            }
        };
        self.carry
            .extend_from_slice(&buffer.filled_bytes()[length..]);
        buffer.truncate(length);
        let offset = self.offset;
        self.offset += length as u64;
        Ok((length > 0).then_some(RowsRead::Rows { offset }))
    }

    /// Returns the next size of the buffer, for a row that is longer than the present one, or `None` if it is longer than
    /// the limit.
    fn larger_goal(&self, length: usize) -> Option<usize> {
        let most = self.sizes.max_row_bytes as usize;
        (length <= most).then(|| (length * 2).clamp(1, most + 1))
    }

    /// Skips the row that begins in `buffer`, in which `cutter` has found no end. Only a block of it is in memory at a time.
    fn skip_row(
        &mut self,
        mut cutter: RowCutter,
        buffer: &mut ReadBuffer,
        spool: Option<&SpoolFile>,
    ) -> Result<RowsRead> {
        let offset = self.offset;
        let (mut passed, mut lines) = (0, 0);
        let rest = loop {
            let skipped = cutter.skip_examined();
            lines += memchr_iter(b'\n', &buffer.filled_bytes()[..skipped]).count() as u64;
            passed += skipped as u64;
            buffer.remove_start(skipped);
            let goal = buffer.filled_bytes().len() + self.sizes.block_bytes.max(1);
            self.ended = buffer.read_until_goal(goal, &mut self.stream, spool)?;
            let bytes = buffer.filled_bytes();
            match cutter.first_row_end(bytes) {
                Some(end) => break end,
                None if self.ended => break bytes.len(),
                None => {}
            }
        };
        let (row, next) = buffer.filled_bytes().split_at(rest);
        lines += memchr_iter(b'\n', row).count() as u64;
        let is_unterminated = row.last() != Some(&b'\n');
        self.carry.extend_from_slice(next);
        buffer.clear();
        let length = passed + rest as u64;
        self.offset += length;
        Ok(RowsRead::Oversized(OversizedRow {
            offset,
            length,
            lines,
            is_unterminated,
        }))
    }
}

/// Finds the last row end in a growing buffer and examines each byte once.
struct RowCutter {
    ends: RowEnds,
    at: usize,
    quoted: bool,
    first_end: Option<usize>,
    last_end: usize,
}

impl RowCutter {
    fn new(ends: RowEnds) -> Self {
        Self {
            ends,
            at: 0,
            quoted: false,
            first_end: None,
            last_end: 0,
        }
    }

    /// Returns the end of the last whole row in `bytes`, or 0 if there is none. More bytes may follow.
    fn last_row_end(&mut self, bytes: &[u8]) -> usize {
        match self.ends {
            RowEnds::LineFeed => self.pass_unquoted(bytes, bytes.len()),
            RowEnds::OutsideQuotes(delimiter) => while self.next_quote(bytes, delimiter) {},
        }
        self.last_end
    }

    /// Returns the end of the first whole row in `bytes`, if there is one. More bytes may follow.
    fn first_row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        self.last_row_end(bytes);
        self.first_end
    }

    /// Returns the number of bytes at the start of a row without an end that are no longer needed, and continues as if the
    /// buffer began behind them. The last byte that was examined stays, because it decides whether a quote opens a cell.
    fn skip_examined(&mut self) -> usize {
        let skipped = self.at.saturating_sub(1);
        self.at -= skipped;
        skipped
    }

    /// Moves to `to` over bytes outside of quotes, and records the last row end among them.
    fn pass_unquoted(&mut self, bytes: &[u8], to: usize) {
        if let Some(found) = memrchr(b'\n', &bytes[self.at..to]) {
            self.last_end = self.at + found + 1;
            let first = || memchr(b'\n', &bytes[self.at..to]).map(|found| self.at + found + 1);
            self.first_end = self.first_end.or_else(first);
        }
        self.at = to;
    }

    /// Moves past the next quote. Returns `true` if there was one whose meaning more bytes cannot
    /// change.
    fn next_quote(&mut self, bytes: &[u8], delimiter: u8) -> bool {
        let quote = memchr(b'"', &bytes[self.at..]).map(|found| self.at + found);
        match (quote, self.quoted) {
            (None, true) => self.at = bytes.len(),
            (None, false) => self.pass_unquoted(bytes, bytes.len()),
            (Some(quote), true) => match bytes.get(quote + 1) {
                None => self.at = quote,
                Some(b'"') => self.at = quote + 2,
                Some(_) => (self.at, self.quoted) = (quote + 1, false),
            },
            (Some(quote), false) => {
                self.pass_unquoted(bytes, quote);
                self.quoted =
                    quote == 0 || bytes[quote - 1] == delimiter || bytes[quote - 1] == b'\n';
                self.at = quote + 1;
            }
        }
        quote.is_some_and(|quote| self.at > quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference for row ends: examines the input byte by byte.
    fn plain_ends(bytes: &[u8], ends: RowEnds) -> Vec<usize> {
        let (mut found, mut quoted, mut at) = (Vec::new(), false, 0);
        let mut field_start = true;
        while at < bytes.len() {
            let byte = bytes[at];
            at += 1;
            match (ends, quoted, byte) {
                (RowEnds::OutsideQuotes(_), true, b'"') if bytes.get(at) == Some(&b'"') => at += 1,
                (RowEnds::OutsideQuotes(_), true, b'"') => quoted = false,
                (RowEnds::OutsideQuotes(_), true, _) => {}
                (RowEnds::OutsideQuotes(_), false, b'"') if field_start => quoted = true,
                (_, _, b'\n') => found.push(at),
                _ => {}
            }
            field_start = match ends {
                RowEnds::LineFeed => false,
                RowEnds::OutsideQuotes(delimiter) => {
                    !quoted && (byte == b'\n' || byte == delimiter)
                }
            };
        }
        found
    }

    fn input() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::sample::select(b"ab,\"\n\r".to_vec());
        prop::collection::vec(bytes, 0..400)
    }

    proptest! {
        #[test]
        fn row_ends_equal_reference_reader(bytes in input(), quoting: bool) {
            let ends = if quoting { RowEnds::OutsideQuotes(b',') } else { RowEnds::LineFeed };
            let (mut found, mut at) = (Vec::new(), 0);
            while at < bytes.len() {
                at = ends.find_row_end(&bytes, at);
                found.push(at);
            }
            let mut expected = plain_ends(&bytes, ends);
            if expected.last().copied().unwrap_or(0) < bytes.len() {
                expected.push(bytes.len());
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!(count_rows(&bytes, ends), count_one_by_one(&bytes, ends));
        }

        #[test]
        fn long_rows_are_skipped_to_their_ends(bytes in input(), quoting: bool, most in 0u32..20, step in 1usize..9) {
            let ends = if quoting { RowEnds::OutsideQuotes(b',') } else { RowEnds::LineFeed };
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, &bytes).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            let sizes = CutSizes { block_bytes: step, max_row_bytes: most };
            let stream = ByteStream::from_plain("bytes", file);
            let mut reader = LineReader::new(stream, false, ends, sizes);
            let (mut buffer, mut at) = (ReadBuffer::default(), 0);
            while let Some(read) = reader.read_next_rows(&mut buffer, None).unwrap() {
                match read {
                    RowsRead::Rows { offset } => {
                        prop_assert_eq!(offset as usize, at);
                        let end = at + buffer.filled_bytes().len();
                        prop_assert_eq!(buffer.filled_bytes(), &bytes[at..end]);
                        at = end;
                    }
                    RowsRead::Oversized(row) => {
                        prop_assert_eq!(row.offset as usize, at);
                        let end = ends.find_row_end(&bytes, at);
                        prop_assert_eq!(at + row.length as usize, end);
                        prop_assert!(row.length > u64::from(most));
                        let lines = bytes[at..end].iter().filter(|&&byte| byte == b'\n').count();
                        prop_assert_eq!(row.lines as usize, lines);
                        prop_assert_eq!(row.is_unterminated, bytes[end - 1] != b'\n');
                        at = end;
                    }
                }
            }
            prop_assert_eq!(at, bytes.len());
        }

        #[test]
        fn cuts_fall_on_row_ends(
            bytes in input(),
            quoting: bool,
            steps in prop::collection::vec(1usize..9, 1..200),
        ) {
            let ends = if quoting { RowEnds::OutsideQuotes(b',') } else { RowEnds::LineFeed };
            let mut cutter = RowCutter::new(ends);
            let mut length = 0;
            for step in steps {
                length = (length + step).min(bytes.len());
                let expected = plain_ends(&bytes[..length], ends).last().copied().unwrap_or(0);
                prop_assert_eq!(cutter.last_row_end(&bytes[..length]), expected);
            }
        }
    }
}
