//! The elements of one JSON list as lines, so that a `.json` file of objects is read like JSONL.
//!
//! An element keeps its bytes, except for line breaks outside of strings and the white space after
//! them. Elements are not validated here; an element that is not a valid object becomes a bad row. A
//! list that does not end is an error, and so is anything after the list, because it is then unknown
//! what is missing.

use std::io::{self, Read};

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
    place: Place,
    /// Bytes of input before the current one.
    position: u64,
    /// Completed elements.
    elements: u64,
}

/// The state of the scanner before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
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

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> ListRows<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            input: vec![0; INPUT_BYTES],
            unused: 0..0,
            output: Vec::new(),
            taken: 0,
            place: Place::Before(0),
            position: 0,
            elements: 0,
        }
    }

    fn wrong(&self, what: &str) -> io::Error {
        let message = format!(
            "{what} at byte {} of the list, after {} elements",
            self.position + 1,
            self.elements
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    }

    /// Reads until there is output. Returns `false` at the end of the list.
    fn fill(&mut self) -> io::Result<bool> {
        self.output.clear();
        self.taken = 0;
        while self.output.is_empty() {
            if self.unused.is_empty() {
                let length = self.reader.read(&mut self.input)?;
                self.unused = 0..length;
                if length == 0 {
                    return match self.place {
                        Place::After => Ok(false),
                        _ => Err(self.wrong("the JSON list ends before it is closed")),
                    };
                }
            }
            let input = std::mem::take(&mut self.input);
            let used = self.unused.clone().try_for_each(|at| -> io::Result<()> {
                self.step(input[at])?;
                self.position += 1;
                Ok(())
            });
            self.input = input;
            self.unused = 0..0;
            used?;
        }
        Ok(true)
    }

    fn step(&mut self, byte: u8) -> io::Result<()> {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.place = match (self.place, byte) {
            (Place::Before(seen), _) if seen < 3 && byte == MARK[seen] => Place::Before(seen + 1),
            (Place::Before(_), b'[') => Place::First,
            (Place::Before(_), _) if blank => Place::Before(MARK.len()),
            (Place::Before(_), _) => return Err(self.wrong("there is no JSON list")),
            (Place::First | Place::Next | Place::After, _) if blank => self.place,
            (Place::First, b']') => Place::After,
            (Place::First | Place::Next, b',' | b']') => {
                return Err(self.wrong("an element is missing"));
            }
            (Place::First | Place::Next, _) => self.inside(0, byte),
            (Place::Broken(depth), _) if blank => Place::Broken(depth),
            (Place::Inside(depth) | Place::Broken(depth), _) => self.inside(depth, byte),
            (Place::Text(depth), b'"') => self.keep(byte, Place::Inside(depth)),
            (Place::Text(depth), b'\\') => self.keep(byte, Place::Escape(depth)),
            // A line feed within a string is invalid and would split the row. A tab is as invalid, but
            // keeps the row in one piece.
            (Place::Text(depth), b'\n') => self.keep(b'\t', Place::Text(depth)),
            (Place::Text(depth), _) => self.keep(byte, Place::Text(depth)),
            (Place::Escape(depth), b'\n') => self.keep(b'\t', Place::Text(depth)),
            (Place::Escape(depth), _) => self.keep(byte, Place::Text(depth)),
            (Place::After, _) => return Err(self.wrong("there is more text after the JSON list")),
        };
        Ok(())
    }

    fn keep(&mut self, byte: u8, next: Place) -> Place {
        self.output.push(byte);
        next
    }

    /// Processes one byte of an element outside of strings.
    fn inside(&mut self, depth: usize, byte: u8) -> Place {
        match byte {
            b'"' => self.keep(byte, Place::Text(depth)),
            b'{' | b'[' => self.keep(byte, Place::Inside(depth + 1)),
            b',' if depth == 0 => self.end_element(Place::Next),
            b']' if depth == 0 => self.end_element(Place::After),
            b'}' | b']' => self.keep(byte, Place::Inside(depth.saturating_sub(1))),
            b'\n' | b'\r' => Place::Broken(depth),
            _ => self.keep(byte, Place::Inside(depth)),
        }
    }

    fn end_element(&mut self, next: Place) -> Place {
        self.elements += 1;
        self.keep(b'\n', next)
    }
}

impl<R: Read> Read for ListRows<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.output.len() && !room.is_empty() && !self.fill()? {
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
    let start = start.strip_prefix(MARK).unwrap_or(start);
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
    fn what_is_no_whole_list_is_an_error() {
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
    fn a_list_is_known_by_its_start() {
        assert!(begins_list(b"\xEF\xBB\xBF \n[{") && begins_list(b"["));
        assert!(!begins_list(b"{\"a\":[]}") && !begins_list(b""));
    }
}
