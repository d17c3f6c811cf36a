//! UTF-16 as UTF-8, while it is read.
//!
//! Spreadsheets and editors of Windows write tables and texts in UTF-16 with a byte order mark. Rows cannot be cut in it byte
//! by byte, so the bytes are converted before. A malformed unit becomes a byte that is never valid in UTF-8: the row in
//! which it stands is then refused or repaired as a row of malformed UTF-8 is.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding};

/// Bytes from which UTF-16 is recognised: its byte order mark, and two bytes that tell it from UTF-32.
pub(super) const LONGEST_MARK: usize = 4;

/// Bytes converted at a time.
const CONVERTED_BYTES: usize = 64 << 10;

/// A byte that no UTF-8 contains.
const MALFORMED_BYTE: u8 = 0xFF;

/// Reads UTF-16 as UTF-8, without its byte order mark.
pub(super) struct Utf16Reader<R> {
    inner: R,
    decoder: Decoder,
    input: Vec<u8>,
    /// The bytes of `input` that are not converted yet.
    unread: std::ops::Range<usize>,
    is_ended: bool,
    output: Vec<u8>,
    /// The bytes of `output` that were handed out.
    taken: usize,
}

impl<R: Read> Utf16Reader<R> {
    pub(super) fn new(inner: R, encoding: &'static Encoding) -> Self {
        Self {
            inner,
            decoder: encoding.new_decoder_with_bom_removal(),
            input: vec![0; CONVERTED_BYTES],
            unread: 0..0,
            is_ended: false,
            output: Vec::new(),
            taken: 0,
        }
    }

    /// Converts the next bytes into `output`, which is empty only at the end.
    fn convert_next(&mut self) -> io::Result<()> {
        self.output.clear();
        self.taken = 0;
        while self.output.is_empty() && !(self.is_ended && self.unread.is_empty()) {
            if self.unread.is_empty() {
                let length = self.inner.read(&mut self.input)?;
                self.unread = 0..length;
                self.is_ended = length == 0;
            }
            // A unit of two bytes becomes at most three, and what the decoder keeps at most four.
            self.output.resize(2 * self.unread.len() + 16, 0);
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.input[self.unread.clone()],
                &mut self.output,
                self.is_ended,
            );
            self.unread.start += read;
            self.output.truncate(written);
            if let DecoderResult::Malformed(..) = result {
                self.output.push(MALFORMED_BYTE);
            } else if self.is_ended {
                self.unread = 0..0;
                break;
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.output.len() {
            self.convert_next()?;
        }
        let ready = &self.output[self.taken..];
        let length = ready.len().min(room.len());
        room[..length].copy_from_slice(&ready[..length]);
        self.taken += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{UTF_16BE, UTF_16LE};
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns few bytes at a time.
    struct SlowReader(Vec<u8>, usize);

    impl Read for SlowReader {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(room.len());
            room[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(length)
        }
    }

    /// The reference: every unit that belongs to no character is one malformed byte.
    fn converted(units: &[u16]) -> Vec<u8> {
        let characters = char::decode_utf16(units.iter().copied());
        let bytes = characters.flat_map(|character| match character {
            Ok(character) => character.to_string().into_bytes(),
            Err(_) => vec![MALFORMED_BYTE],
        });
        bytes.collect()
    }

    proptest! {
        #[test]
        fn every_unit_is_converted(
            units in prop::collection::vec(prop_oneof![any::<u16>(), 0xD7F0u16..0xE010, 0x20u16..0x80], 0..200),
            step in 1usize..9,
            is_big: bool,
        ) {
            prop_assume!(units.first() != Some(&0xFEFF));
            let to_bytes = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            let marked = std::iter::once(0xFEFF).chain(units.iter().copied());
            let bytes: Vec<u8> = marked.flat_map(to_bytes).collect();
            let encoding = if is_big { UTF_16BE } else { UTF_16LE };
            let mut reader = Utf16Reader::new(SlowReader(bytes, step), encoding);
            let mut found = Vec::new();
            reader.read_to_end(&mut found).unwrap();
            prop_assert_eq!(found, converted(&units));
        }
    }
}
