//! Little-endian numbers and length-prefixed strings, with a bounds check at every read.

/// Bytes that are read from the front.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take_bytes(N)?.try_into().ok()
    }

    pub(crate) fn read_u8(&mut self) -> Option<u8> {
        self.take_array().map(u8::from_le_bytes)
    }

    pub(crate) fn read_u32(&mut self) -> Option<u32> {
        self.take_array().map(u32::from_le_bytes)
    }

    pub(crate) fn read_u64(&mut self) -> Option<u64> {
        self.take_array().map(u64::from_le_bytes)
    }

    pub(crate) fn read_i64(&mut self) -> Option<i64> {
        self.take_array().map(i64::from_le_bytes)
    }

    pub(crate) fn read_u128(&mut self) -> Option<u128> {
        self.take_array().map(u128::from_le_bytes)
    }

    pub(crate) fn read_string(&mut self) -> Option<&'a str> {
        let length = self.read_u32()?;
        std::str::from_utf8(self.take_bytes(length as usize)?).ok()
    }

    /// Returns `true` if nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a string with its length.
pub(crate) fn put_string(text: &str, into: &mut Vec<u8>) {
    into.extend((text.len() as u32).to_le_bytes());
    into.extend(text.as_bytes());
}
