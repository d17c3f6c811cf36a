//! Little-endian numbers, lists and strings from the front of bytes, with a bounds check at every read.
//!
//! ```
//! use lookalike::byte_reader::{ByteReader, put_string};
//!
//! let mut bytes = 7_u64.to_le_bytes().to_vec();
//! put_string("word", &mut bytes);
//!
//! let mut reader = ByteReader::new(&bytes);
//! assert_eq!((reader.read_u64(), reader.read_string()), (Some(7), Some("word")));
//! assert!(reader.is_at_end());
//! // Nothing is left, so a further read finds no number.
//! assert_eq!(reader.read_u8(), None);
//! ```

/// Bytes that are read from the front. A read returns `None` if too few are left.
#[derive(Clone, Debug)]
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// Creates a reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Returns `true` if nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `count` bytes.
    pub fn read_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads as many bytes as an array has.
    pub fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads `count` numbers of `N` bytes. Allocates nothing if too few bytes are left.
    pub fn read_list<T, const N: usize>(
        &mut self,
        count: usize,
        read: fn([u8; N]) -> T,
    ) -> Option<Vec<T>> {
        if self.0.len() / N < count {
            return None;
        }
        (0..count).map(|_| self.read_array().map(read)).collect()
    }

    /// Reads a byte.
    pub fn read_u8(&mut self) -> Option<u8> {
        self.read_array().map(u8::from_le_bytes)
    }

    /// Reads a number of 4 bytes.
    pub fn read_u32(&mut self) -> Option<u32> {
        self.read_array().map(u32::from_le_bytes)
    }

    /// Reads a number of 8 bytes.
    pub fn read_u64(&mut self) -> Option<u64> {
        self.read_array().map(u64::from_le_bytes)
    }

    /// Reads a signed number of 8 bytes.
    pub fn read_i64(&mut self) -> Option<i64> {
        self.read_array().map(i64::from_le_bytes)
    }

    /// Reads a number of 16 bytes.
    pub fn read_u128(&mut self) -> Option<u128> {
        self.read_array().map(u128::from_le_bytes)
    }

    /// Reads bytes after their number, which has 4 bytes.
    pub fn read_sized_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.read_u32()?;
        self.read_bytes(length as usize)
    }

    /// Reads a text after the number of its bytes, which has 4 bytes. Returns `None` if it is not UTF-8.
    pub fn read_string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.read_sized_bytes()?).ok()
    }
}

/// Appends the number of bytes of a text, and the text.
pub fn put_string(text: &str, into: &mut Vec<u8>) {
    into.extend((text.len() as u32).to_le_bytes());
    into.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read that needs more bytes than are left returns nothing and takes nothing.
    #[test]
    fn reads_stop_at_the_end() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 2];
        let mut reader = ByteReader::new(&bytes);
        assert_eq!(reader.read_u128(), None);
        assert_eq!(reader.read_list(usize::MAX, u64::from_le_bytes), None);
        assert_eq!(reader.read_list(3, u32::from_le_bytes), None);
        assert_eq!(reader.clone().read_i64(), Some(1 + (2 << 56)));
        assert_eq!(reader.read_list(1, u32::from_le_bytes), Some(vec![1]));
        assert_eq!((reader.read_bytes(5), reader.rest().len()), (None, 4));
        assert_eq!(reader.read_sized_bytes(), None);
        assert!(reader.is_at_end());
    }

    #[test]
    fn strings_are_read_back_and_checked() {
        let mut bytes = Vec::new();
        ["", "短い"]
            .iter()
            .for_each(|text| put_string(text, &mut bytes));
        bytes.extend([1, 0, 0, 0, 0xff]);
        let mut reader = ByteReader::new(&bytes);
        assert_eq!(
            (reader.read_string(), reader.read_string()),
            (Some(""), Some("短い"))
        );
        assert_eq!(reader.clone().read_sized_bytes(), Some(&[0xff][..]));
        assert_eq!(reader.read_string(), None);
    }
}
