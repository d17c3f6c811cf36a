//! Decoding of bytes to text: byte order marks, UTF-8, and other encodings row by row.

use encoding_rs::{DecoderResult, Encoding, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE};

use crate::foreign_files::likely_encoding;

/// The treatment of text that is not valid in its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InvalidText {
    /// The row or the file is refused.
    #[default]
    Reject,
    /// Each malformed sequence, and each lone surrogate in a JSON escape, is read as U+FFFD.
    Lossy,
}

/// Refuses encodings in which a line feed or a delimiter can be part of another character.
///
/// # Errors
/// If the encoding is one of these. The message is a sentence without a full stop.
pub fn check_encoding(encoding: &'static Encoding) -> Result<(), String> {
    if encoding.is_ascii_compatible() {
        return Ok(());
    }
    Err(format!(
        "the encoding {} cannot be read row by row; convert the input to UTF-8 first",
        encoding.name()
    ))
}

/// The byte order mark of UTF-8.
pub const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the length of the byte order mark at the start of an input; the first row begins after it.
pub fn bom_length(bytes: &[u8], encoding: &'static Encoding) -> usize {
    let utf8 = encoding == UTF_8 && bytes.starts_with(UTF8_MARK);
    let gb18030 =
        (encoding == GB18030 || encoding == GBK) && bytes.starts_with(b"\x84\x31\x95\x33");
    let utf16 = utf16_by_mark(bytes) == Some(encoding);
    match (utf8, gb18030, utf16) {
        (true, ..) => UTF8_MARK.len(),
        (_, true, _) => 4,
        (.., true) => 2,
        _ => 0,
    }
}

/// Returns the encoding of a file that begins with the byte order mark of UTF-16. That of little-endian UTF-32 begins with
/// the same two bytes and is none.
pub fn utf16_by_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] => None,
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// Fewest bytes from which UTF-16 is recognised without a byte order mark.
const FEWEST_UTF16_BYTES: usize = 8;

/// Returns `true` if an input that is to be read as UTF-8 is in fact UTF-16. Either it starts with the
/// byte order mark of UTF-16 (or of little-endian UTF-32), or every second byte is zero and no other
/// is, as in UTF-16 text in Latin letters.
pub fn is_utf16(bytes: &[u8], encoding: &'static Encoding) -> bool {
    let zeros = |from: usize| bytes.iter().skip(from).step_by(2).all(|&byte| byte == 0);
    let others = |from: usize| bytes.iter().skip(from).step_by(2).all(|&byte| byte != 0);
    let alternates =
        bytes.len() >= FEWEST_UTF16_BYTES && [0, 1].iter().any(|&at| zeros(at) && others(1 - at));
    let has_mark = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    encoding == UTF_8 && (has_mark || alternates)
}

/// Returns the encoding in which a file that is one text is probably written: UTF-8 if it is valid, else the one that its
/// bytes look like. `None` if they say too little.
pub fn guess_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        return Some(UTF_8);
    }
    if is_utf16(bytes, UTF_8) {
        return utf16_by_mark(bytes);
    }
    Encoding::for_label(likely_encoding(bytes)?.as_bytes())
}

/// Decodes a file that is one text, without its byte order mark.
///
/// # Errors
/// The reason why it cannot be decoded, which speaks of the file: a sentence without a full stop.
pub fn decode_file(
    bytes: &[u8],
    encoding: &'static Encoding,
    invalid_text: InvalidText,
) -> Result<String, String> {
    let by_mark = utf16_by_mark(bytes).filter(|&by_mark| encoding == UTF_8 || encoding == by_mark);
    if by_mark.is_none() {
        check_encoding(encoding)?;
    }
    if by_mark.is_none() && is_utf16(bytes, encoding) {
        return Err(
            "it looks like UTF-16 without a byte order mark: convert it to UTF-8 first".to_owned(),
        );
    }
    let encoding = by_mark.unwrap_or(encoding);
    let decoding = RowDecoding {
        encoding,
        invalid_text,
    };
    let mut room = String::new();
    let text = decoding
        .decode_row(&bytes[bom_length(bytes, encoding)..], &mut room)
        .map_err(|reason| reason.replacen("the row", "the file", 1))?;
    Ok(text.to_owned())
}

/// Fewest characters beyond ASCII of a row that is taken for UTF-8 if it is valid. Of 1.5 million Chinese titles in
/// GB18030, those that are valid UTF-8 by chance have at most six.
const FEWEST_WIDE_CHARACTERS: usize = 10;

/// Returns `true` if bytes that are to be read in another encoding are UTF-8.
pub(crate) fn is_surely_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok_and(|text| {
        text.chars()
            .filter(|character| !character.is_ascii())
            .nth(FEWEST_WIDE_CHARACTERS - 1)
            .is_some()
    })
}

/// Returns `true` if a file that is to be read in another encoding is UTF-8: if it surely is, or if it is valid and would
/// otherwise be an unlikely sequence of single bytes, of pairs beyond GB 2312, or nothing valid.
pub(crate) fn is_utf8_instead_of(bytes: &[u8], other: &'static Encoding) -> bool {
    if other == UTF_8 || bytes.is_ascii() {
        return false;
    }
    let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
        return false;
    };
    let is_likely_in_other = || match other {
        _ if other.is_single_byte() => false,
        _ if other == GB18030 || other == GBK => is_gb2312(bytes) && !is_latin(text),
        _ => other
            .decode_without_bom_handling_and_without_replacement(bytes)
            .is_some(),
    };
    is_surely_utf8(bytes) || bytes.starts_with(UTF8_MARK) || !is_likely_in_other()
}

/// Returns `true` if all characters beyond ASCII are letters of Latin script beside ASCII. Each of them is a pair of bytes,
/// which is one of GB 2312 as well, but Chinese characters seldom stand alone.
fn is_latin(text: &str) -> bool {
    let is_latin = |character: char| matches!(character, '\u{c0}'..='\u{24f}');
    let mut before = ' ';
    text.chars().all(|character| {
        let fits = character.is_ascii() || is_latin(character) && before.is_ascii();
        before = character;
        fits
    })
}

/// Returns `true` if all bytes beyond ASCII are pairs of GB 2312.
fn is_gb2312(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((&lead, behind)) = rest.split_first() {
        rest = behind;
        if lead.is_ascii() {
            continue;
        }
        let Some((&trail, behind)) = rest.split_first() else {
            return false;
        };
        if !(0xA1..=0xF7).contains(&lead) || !(0xA1..=0xFE).contains(&trail) {
            return false;
        }
        rest = behind;
    }
    true
}

/// The encoding of the rows and the treatment of malformed text.
#[derive(Debug, Clone, Copy)]
pub struct RowDecoding {
    /// The encoding, which [`check_encoding`] accepts.
    pub encoding: &'static Encoding,
    /// The treatment of malformed text.
    pub invalid_text: InvalidText,
}

impl RowDecoding {
    /// Returns all of `bytes` as text if the encoding is UTF-8 and `bytes` is valid.
    pub fn decode_whole<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        if self.encoding == UTF_8 {
            simdutf8::basic::from_utf8(bytes).ok()
        } else {
            None
        }
    }

    /// Decodes one row. The text is borrowed from `bytes` if possible, otherwise written to `room`.
    ///
    /// # Errors
    /// The reason why the row is refused: a sentence without a full stop.
    pub fn decode_row<'a>(&self, bytes: &'a [u8], room: &'a mut String) -> Result<&'a str, String> {
        if self.encoding != UTF_8 {
            return self.transcode_bytes(bytes, room);
        }
        match (simdutf8::compat::from_utf8(bytes), self.invalid_text) {
            (Ok(text), _) => Ok(text),
            (Err(error), InvalidText::Reject) => {
                let hint = likely_encoding(bytes).map_or_else(String::new, |label| {
                    format!("; it looks like --encoding {label}")
                });
                Err(format!(
                    "the row is not valid UTF-8 at its byte {}{hint}",
                    error.valid_up_to() + 1
                ))
            }
            (Err(_), InvalidText::Lossy) => {
                room.clear();
                room.push_str(&String::from_utf8_lossy(bytes));
                Ok(room)
            }
        }
    }

    fn transcode_bytes<'a>(&self, bytes: &[u8], room: &'a mut String) -> Result<&'a str, String> {
        if self.invalid_text == InvalidText::Reject && is_surely_utf8(bytes) {
            return Err(format!(
                "the row is UTF-8, not {}: leave out --encoding for this input",
                self.encoding.name()
            ));
        }
        let mut decoder = self.encoding.new_decoder_without_bom_handling();
        room.clear();
        let mut read = 0;
        loop {
            let rest = &bytes[read..];
            // `None` occurs only if the length overflows `usize`.
            let most = decoder.max_utf8_buffer_length_without_replacement(rest.len());
            room.reserve(most.ok_or("the row is too long to be decoded")?);
            let (result, used) = decoder.decode_to_string_without_replacement(rest, room, true);
            read += used;
            match (result, self.invalid_text) {
                (DecoderResult::InputEmpty, _) => return Ok(room),
                (DecoderResult::OutputFull, _) => {}
                (DecoderResult::Malformed(..), InvalidText::Lossy) => room.push('\u{FFFD}'),
                (DecoderResult::Malformed(..), InvalidText::Reject) => {
                    let name = self.encoding.name();
                    return Err(format!(
                        "the row is not valid {name} before its byte {}",
                        read + 1
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(
        encoding: &'static Encoding,
        invalid_text: InvalidText,
        bytes: &[u8],
    ) -> Option<String> {
        let mut room = String::new();
        RowDecoding {
            encoding,
            invalid_text,
        }
        .decode_row(bytes, &mut room)
        .ok()
        .map(str::to_owned)
    }

    #[test]
    fn legacy_encodings_are_decoded() {
        for encoding in [encoding_rs::GB18030, encoding_rs::BIG5, encoding_rs::EUC_KR] {
            let text = "{\"text\": \"中文\"}";
            let (bytes, _, _) = encoding.encode(text);
            assert_eq!(
                decode(encoding, InvalidText::Reject, &bytes).as_deref(),
                Some(text)
            );
        }
    }

    #[test]
    fn files_of_utf16_are_decoded_by_their_mark() {
        let text = "两个字，a😀\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [
            [b"\xFF\xFE", &little[..]].concat(),
            [b"\xFE\xFF", &big[..]].concat(),
        ] {
            let decoded = decode_file(&bytes, UTF_8, InvalidText::Reject);
            assert_eq!(decoded.as_deref(), Ok(text));
            let guessed = guess_encoding(&bytes).unwrap();
            assert_eq!(bom_length(&bytes, guessed), 2);
            assert_eq!(
                decode_file(&bytes, guessed, InvalidText::Reject).as_deref(),
                Ok(text)
            );
            let torn = &bytes[..bytes.len() - 1];
            assert!(decode_file(torn, UTF_8, InvalidText::Reject).is_err());
            assert!(decode_file(torn, UTF_8, InvalidText::Lossy).is_ok());
        }
        assert!(decode_file(b"\xFF\xFE\0\0a\0\0\0", UTF_8, InvalidText::Reject).is_err());
        assert!(decode_file(b"a\0b\0c\0d\0", UTF_8, InvalidText::Reject).is_err());
    }

    /// Ten characters beyond ASCII are recognised, nine are not. A run that repairs rows refuses neither.
    #[test]
    fn utf8_is_not_read_as_another_encoding() {
        let ten = "这些字不是另一种编码";
        for encoding in [encoding_rs::WINDOWS_1252, encoding_rs::GB18030] {
            let read = |invalid_text, text: &str| decode(encoding, invalid_text, text.as_bytes());
            assert_eq!(read(InvalidText::Reject, ten), None);
            assert!(read(InvalidText::Lossy, ten).is_some());
        }
        let latin = |text: &str| {
            decode(
                encoding_rs::WINDOWS_1252,
                InvalidText::Reject,
                text.as_bytes(),
            )
        };
        assert!(latin(&"é".repeat(9)).is_some());
        assert_eq!(latin(&"é".repeat(10)), None);
    }

    /// A file is one text, so a few characters suffice where the other encoding makes an unlikely text of them.
    #[test]
    fn files_of_utf8_are_not_read_as_another_encoding() {
        for text in ["It’s ‘so’", "a\u{2019}b", "ein Wörterbuch", "café"] {
            assert!(is_utf8_instead_of(
                text.as_bytes(),
                encoding_rs::WINDOWS_1252
            ));
            assert!(is_utf8_instead_of(text.as_bytes(), GB18030), "{text}");
        }
        for encoding in [encoding_rs::WINDOWS_1252, GB18030] {
            assert!(!is_utf8_instead_of(b"plain ASCII", encoding));
            assert!(is_utf8_instead_of("\u{feff}plain".as_bytes(), encoding));
            let (other, ..) = encoding.encode("café, 中");
            assert!(!is_utf8_instead_of(&other, encoding));
        }
        // These two characters of GB 2312 are two of UTF-8 as well, and are read as the option says.
        let (short, ..) = GB18030.encode("脂");
        assert_eq!(std::str::from_utf8(&short), Ok("\u{5ac}"));
        assert!(!is_utf8_instead_of(&short, GB18030));
        assert!(!is_utf8_instead_of(b"plain", UTF_8));
    }

    #[test]
    fn malformed_rows_are_rejected_or_repaired() {
        for (encoding, bytes) in [
            (encoding_rs::UTF_8, &b"a\xFFb"[..]),
            (encoding_rs::GB18030, b"a\xFFb"),
            (encoding_rs::BIG5, b"a\xFFb"),
        ] {
            assert_eq!(decode(encoding, InvalidText::Reject, bytes), None);
            assert_eq!(
                decode(encoding, InvalidText::Lossy, bytes).as_deref(),
                Some("a\u{FFFD}b")
            );
        }
        // A character cut short at the end of the row.
        assert_eq!(
            decode(encoding_rs::GB18030, InvalidText::Reject, b"a\xD6"),
            None
        );
    }

    #[test]
    fn byte_order_marks_are_handled() {
        assert_eq!(bom_length("\u{FEFF}a".as_bytes(), UTF_8), 3);
        assert_eq!(bom_length(b"a", UTF_8), 0);
        assert_eq!(bom_length(b"\x84\x31\x95\x33a", GB18030), 4);
        assert!(is_utf16(b"\xFF\xFEa\0", UTF_8));
        assert!(is_utf16(b"{\0\"\0a\0\"\0:\0", UTF_8));
        assert!(is_utf16(b"\0{\0\"\0a\0\"\0:", UTF_8));
        assert!(!is_utf16(b"{\"a\":1}\n\0", UTF_8) && !is_utf16(&[0; 64], UTF_8));
        assert!(check_encoding(encoding_rs::UTF_16LE).is_err());
        assert!(check_encoding(encoding_rs::ISO_2022_JP).is_err());
        assert!(check_encoding(encoding_rs::SHIFT_JIS).is_ok());
    }
}
