//! The elements of one JSON list as lines, so that a `.json` file of objects is read like JSONL.
//!
//! An element keeps its bytes, except for line breaks outside of strings and the white space after
//! them. Elements are not validated here; an element that is not a valid object becomes a bad row. A
//! list that does not end is an error, and so is anything after the list, because it is then unknown
//! what is missing.

use std::fmt;
use std::io::{self, Read};

use lookalike_documents::decoding::UTF8_MARK;

/// Bytes read at a time.
const INPUT_BYTES: usize = 64 << 10;

/// Reads a JSON list as lines, one for each element.
pub(super) struct ListRows<R> {
    reader: R,
    input: Vec<u8>,
    /// Range of `input` that has not been processed.
    unused: std::ops::Range<usize>,
    output: Vec<u8>,
    /// Bytes of `output` that have been handed out.
    taken: usize,
    place: ListState,
    /// Bytes of input before the current one.
    position: u64,
    /// Completed elements.
    elements: u64,
}

/// The error of bytes that are not one whole JSON list. It has a type of its own because decoders under the list also
/// return [`io::ErrorKind::InvalidData`], for damaged compression.
#[derive(Debug)]
pub(super) struct MalformedList(String);

impl MalformedList {
    /// Returns `true` if this error of a [`ListRows`] is about the list, and not about reading its bytes.
    pub(super) fn is_cause_of(error: &io::Error) -> bool {
        let cause = error.get_ref();
        cause.is_some_and(|cause| cause.is::<Self>())
    }
}

impl fmt::Display for MalformedList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for MalformedList {}

/// The state of the scanner before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListState {
    /// Before the bracket that opens the list, with the number of bytes of a byte order mark seen so
    /// far.
    Before(usize),
    /// Before the first element, or before the end of an empty list.
    First,
    /// After a comma.
    Next,
    /// In an element, at this depth of braces and brackets.
    Inside(usize),
    /// In white space after a line break within an element.
    Broken(usize),
    /// In a string of an element.
    Text(usize),
    /// After a backslash in a string.
    Escape(usize),
    /// After the list.
    After,
}

impl<R: Read> ListRows<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            input: vec![0; INPUT_BYTES],
            unused: 0..0,
            output: Vec::new(),
            taken: 0,
            place: ListState::Before(0),
            position: 0,
            elements: 0,
        }
    }

    fn malformed_list(&self, what: &str) -> io::Error {
        let message = format!(
            "{what} at byte {} of the list, after {} elements",
            self.position + 1,
            self.elements
        );
        io::Error::new(io::ErrorKind::InvalidData, MalformedList(message))
    }

    /// Reads until there is output. Returns `false` at the end of the list.
    fn fill_output(&mut self) -> io::Result<bool> {
        self.output.clear();
        self.taken = 0;
        while self.output.is_empty() {
            if self.unused.is_empty() {
                let length = self.reader.read(&mut self.input)?;
                self.unused = 0..length;
                if length == 0 {
                    return match self.place {
                        ListState::After => Ok(false),
                        _ => Err(self.malformed_list("the JSON list ends before it is closed")),
                    };
                }
            }
            let input = std::mem::take(&mut self.input);
            let used = self.unused.clone().try_for_each(|at| -> io::Result<()> {
                self.process_byte(input[at])?;
                self.position += 1;
                Ok(())
            });
            self.input = input;
            self.unused = 0..0;
            used?;
        }
        Ok(true)
    }

    fn process_byte(&mut self, byte: u8) -> io::Result<()> {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.place = match (self.place, byte) {
            (ListState::Before(seen), _) if seen < 3 && byte == UTF8_MARK[seen] => {
                ListState::Before(seen + 1)
            }
            (ListState::Before(_), b'[') => ListState::First,
            (ListState::Before(_), _) if blank => ListState::Before(UTF8_MARK.len()),
            (ListState::Before(_), _) => return Err(self.malformed_list("there is no JSON list")),
            (ListState::First | ListState::Next | ListState::After, _) if blank => self.place,
            (ListState::First, b']') => ListState::After,
            (ListState::First | ListState::Next, b',' | b']') => {
                return Err(self.malformed_list("an element is missing"));
            }
            (ListState::First | ListState::Next, _) => self.process_element_byte(0, byte),
            (ListState::Broken(depth), _) if blank => ListState::Broken(depth),
            (ListState::Inside(depth) | ListState::Broken(depth), _) => {
                self.process_element_byte(depth, byte)
            }
            (ListState::Text(depth), b'"') => self.keep_byte(byte, ListState::Inside(depth)),
            (ListState::Text(depth), b'\\') => self.keep_byte(byte, ListState::Escape(depth)),
            // A line feed within a string is invalid and would split the row. A tab is as invalid, but
            // keeps the row in one piece.
            (ListState::Text(depth), b'\n') => self.keep_byte(b'\t', ListState::Text(depth)),
            (ListState::Text(depth), _) => self.keep_byte(byte, ListState::Text(depth)),
            (ListState::Escape(depth), b'\n') => self.keep_byte(b'\t', ListState::Text(depth)),
            (ListState::Escape(depth), _) => self.keep_byte(byte, ListState::Text(depth)),
            (ListState::After, _) => {
                return Err(self.malformed_list("there is more text after the JSON list"));
            }
        };
        Ok(())
    }

    fn keep_byte(&mut self, byte: u8, next: ListState) -> ListState {
        self.output.push(byte);
        next
    }

    /// Processes one byte of an element outside of strings.
    fn process_element_byte(&mut self, depth: usize, byte: u8) -> ListState {
        match byte {
            b'"' => self.keep_byte(byte, ListState::Text(depth)),
            b'{' | b'[' => self.keep_byte(byte, ListState::Inside(depth + 1)),
            b',' if depth == 0 => self.end_element(ListState::Next),
            b']' if depth == 0 => self.end_element(ListState::After),
            b'}' | b']' => self.keep_byte(byte, ListState::Inside(depth.saturating_sub(1))),
            b'\n' | b'\r' => ListState::Broken(depth),
            _ => self.keep_byte(byte, ListState::Inside(depth)),
        }
    }

    fn end_element(&mut self, next: ListState) -> ListState {
        self.elements += 1;
        self.keep_byte(b'\n', next)
    }
}

impl<R: Read> Read for ListRows<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.output.len() && !room.is_empty() && !self.fill_output()? {
            return Ok(0);
        }
        let rest = &self.output[self.taken..];
        let length = rest.len().min(room.len());
        room[..length].copy_from_slice(&rest[..length]);
        self.taken += length;
        Ok(length)
    }
}

/// Returns `true` if these first bytes of a file begin a JSON list.
pub(super) fn begins_list(start: &[u8]) -> bool {
    let start = start.strip_prefix(UTF8_MARK).unwrap_or(start);
    start.trim_ascii_start().first() == Some(&b'[')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &str, step: usize) -> Result<String, String> {
        struct Steps<'a>(&'a [u8], usize);
        impl Read for Steps<'_> {
            fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
                let length = self.1.min(self.0.len()).min(room.len());
                room[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        let mut rows = String::new();
        let mut reader = ListRows::new(Steps(list.as_bytes(), step));
        match reader.read_to_string(&mut rows) {
            Ok(_) => Ok(rows),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn elements_become_lines() {
        let cases = [
            ("[]", ""),
            ("\u{FEFF} [ ] \n", ""),
            (
                r#"[{"a": 1}, {"b": [1, 2]}]"#,
                "{\"a\": 1}\n{\"b\": [1, 2]}\n",
            ),
            (
                "[\n  {\n    \"a\": \"x, ]}\\\"\",\r\n    \"b\": {}\n  },\n  7\n]\n",
                "{\"a\": \"x, ]}\\\"\",\"b\": {}}\n7\n",
            ),
            ("[\"a\nb\"]", "\"a\tb\"\n"),
            ("[{\"a\":1}\n]", "{\"a\":1}\n"),
        ];
        for (list, expected) in cases {
            for step in [1, 3, 1000] {
                assert_eq!(rows(list, step).as_deref(), Ok(expected), "{list}");
            }
        }
    }

    #[test]
    fn incomplete_list_is_an_error() {
        for (list, said) in [
            ("", "ends before it is closed"),
            ("[{\"a\":1},", "ends before it is closed"),
            ("[{\"a\":1}", "after 0 elements"),
            ("{}", "no JSON list"),
            ("[1,]", "an element is missing"),
            ("[,1]", "an element is missing"),
            ("[1] 2", "more text after the JSON list"),
        ] {
            let error = rows(list, 2).unwrap_err();
            assert!(error.contains(said), "{list}: {error}");
        }
    }

    #[test]
    fn list_is_detected_by_its_start() {
        assert!(begins_list(b"\xEF\xBB\xBF \n[{") && begins_list(b"["));
        assert!(!begins_list(b"{\"a\":[]}") && !begins_list(b""));
    }
}
