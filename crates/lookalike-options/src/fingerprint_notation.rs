//! Notations of fingerprints: hexadecimal, decimal and binary digits.

use std::fmt::Write;

use crate::shown_text::shorten_text;

/// The notation of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FingerprintNotation {
    /// One hexadecimal digit for every four bits. Reading accepts a prefix `0x`, both cases, and any
    /// number of leading zeros.
    #[default]
    Hex,
    /// A whole number without leading zeros. A negative number of 64 bits is also read, as two's
    /// complement.
    Decimal,
    /// One digit per bit, the highest bit first.
    Binary,
}

/// Stands for the fingerprint of a text that has none.
pub const NO_FINGERPRINT: &str = "-";

/// Characters of a malformed fingerprint that a message shows at most.
const MAX_SHOWN_CHARACTERS: usize = 40;

impl FingerprintNotation {
    /// All notations.
    pub const ALL: [Self; 3] = [Self::Hex, Self::Decimal, Self::Binary];

    /// Returns the name of the notation in options and requests.
    pub fn option_name(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Decimal => "decimal",
            Self::Binary => "binary",
        }
    }

    /// Returns the name of the notation.
    pub fn notation_name(self) -> &'static str {
        match self {
            Self::Hex => "hexadecimal",
            Self::Decimal => "decimal",
            Self::Binary => "binary",
        }
    }

    /// Appends a fingerprint of `bits` bits.
    pub fn append_fingerprint(self, fingerprint: u128, bits: u32, out: &mut String) {
        let digits = bits.div_ceil(4) as usize;
        let written = match self {
            Self::Hex => write!(out, "{fingerprint:0digits$x}"),
            Self::Decimal => write!(out, "{fingerprint}"),
            Self::Binary => write!(out, "{fingerprint:0width$b}", width = bits as usize),
        };
        written.expect("writing to a string does not fail");
    }

    /// Parses a fingerprint of `bits` bits. Returns `None` for `-`, which stands for a text that has
    /// none.
    ///
    /// # Errors
    ///
    /// If the text is not a fingerprint in this notation or has more than `bits` bits. The message
    /// quotes it.
    pub fn parse_fingerprint(self, text: &str, bits: u32) -> Result<Option<u128>, String> {
        if text == NO_FINGERPRINT {
            return Ok(None);
        }
        let (radix, digits) = match self {
            Self::Hex => (16, text.strip_prefix("0x").unwrap_or(text)),
            Self::Decimal => (10, text),
            Self::Binary => (2, text),
        };
        if self == Self::Decimal && bits == 64 && text.starts_with('-') {
            let signed = text
                .parse::<i64>()
                .map_err(|_| self.misread_message(text, bits))?;
            return Ok(Some(u128::from(signed as u64)));
        }
        let value = parse_digits(digits, radix).ok_or_else(|| self.misread_message(text, bits))?;
        if u128::MAX >> (128 - bits) >= value {
            Ok(Some(value))
        } else {
            Err(format!(
                "the fingerprint '{}' has more than the {bits} bits it must fit into{}",
                shorten_text(text, MAX_SHOWN_CHARACTERS),
                self.hint_at_decimal(text)
            ))
        }
    }

    /// Says what to do if a hexadecimal number that is too large may be a decimal one.
    fn hint_at_decimal(self, text: &str) -> &'static str {
        if self == Self::Hex && text.bytes().all(|byte| byte.is_ascii_digit()) {
            ": it looks decimal, and hexadecimal digits are expected (the command has --digits decimal)"
        } else {
            ""
        }
    }

    fn misread_message(self, text: &str, bits: u32) -> String {
        if text.is_empty() {
            return "the fingerprint is empty; one that a text does not have is written as -"
                .into();
        }
        format!(
            "'{}' is not a fingerprint of {bits} bits in {} digits",
            shorten_text(text, MAX_SHOWN_CHARACTERS),
            self.notation_name()
        )
    }
}

fn parse_digits(digits: &str, radix: u32) -> Option<u128> {
    if digits.is_empty() {
        return None;
    }
    // Special cases for 64 bits, because they are several times as fast and cover nearly all
    // fingerprints.
    if radix == 16 && digits.len() <= 16 {
        return parse_short_hex(digits.as_bytes()).map(u128::from);
    }
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match digits.len() {
        _ if !plain => None,
        1..=16 => u64::from_str_radix(digits, radix).ok().map(u128::from),
        _ => u128::from_str_radix(digits, radix).ok(),
    }
}

/// Stands in [`HEX_DIGITS`] for a byte that is no digit; no digit has its upper bits.
const NO_DIGIT: u8 = 0xf0;

/// The value of each byte as a hexadecimal digit.
static HEX_DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let (lower, upper) = (b"0123456789abcdef"[digit], b"0123456789ABCDEF"[digit]);
        values[lower as usize] = digit as u8;
        values[upper as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// Parses at most 16 hexadecimal digits, without a branch for each.
fn parse_short_hex(digits: &[u8]) -> Option<u64> {
    let (mut value, mut all_digits) = (0, 0);
    for &byte in digits {
        let digit = HEX_DIGITS[usize::from(byte)];
        all_digits |= digit;
        value = value << 4 | u64::from(digit & 0xf);
    }
    (all_digits & NO_DIGIT == 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_fingerprints_parse_back() {
        for bits in [8, 9, 63, 64, 65, 127, 128] {
            let most = u128::MAX >> (128 - bits);
            for value in [0, 1, most / 3, most] {
                for digits in [
                    FingerprintNotation::Hex,
                    FingerprintNotation::Decimal,
                    FingerprintNotation::Binary,
                ] {
                    let mut text = String::new();
                    digits.append_fingerprint(value, bits, &mut text);
                    assert_eq!(
                        digits.parse_fingerprint(&text, bits),
                        Ok(Some(value)),
                        "{text}"
                    );
                    assert_eq!(digits.parse_fingerprint("-", bits), Ok(None));
                }
            }
        }
    }

    #[test]
    fn decimal_numbers_among_hexadecimal_ones_are_suspected() {
        let hex = FingerprintNotation::Hex;
        let parsed = hex.parse_fingerprint("17676873585679812141", 64);
        assert!(parsed.unwrap_err().contains("--digits decimal"));
        let parsed = hex.parse_fingerprint("1767687358567981214f", 64);
        assert!(!parsed.unwrap_err().contains("decimal"));
    }

    #[test]
    fn fingerprints_parse_at_their_width() {
        let written = |digits: FingerprintNotation, value, bits| {
            let mut text = String::new();
            digits.append_fingerprint(value, bits, &mut text);
            text
        };
        assert_eq!(
            written(FingerprintNotation::Hex, 0xab, 64),
            "00000000000000ab"
        );
        assert_eq!(written(FingerprintNotation::Binary, 5, 8), "00000101");
        assert_eq!(
            written(FingerprintNotation::Decimal, u64::MAX.into(), 64),
            u64::MAX.to_string()
        );
        for (digits, text, value) in [
            (FingerprintNotation::Hex, "ab", 0xab),
            (FingerprintNotation::Hex, "0xAB", 0xab),
            (FingerprintNotation::Hex, "0000000000000000000ab", 0xab),
            (FingerprintNotation::Decimal, "0012", 12),
            (FingerprintNotation::Decimal, "-1", u64::MAX.into()),
            (
                FingerprintNotation::Decimal,
                "-9223372036854775808",
                1 << 63,
            ),
        ] {
            assert_eq!(
                digits.parse_fingerprint(text, 64),
                Ok(Some(value)),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_fingerprints_are_named() {
        for (digits, text, bits, message) in [
            (FingerprintNotation::Hex, "", 64, "is empty"),
            (
                FingerprintNotation::Hex,
                "xyz",
                64,
                "'xyz' is not a fingerprint of 64 bits in hexadecimal",
            ),
            (FingerprintNotation::Hex, "+1", 64, "'+1'"),
            (FingerprintNotation::Hex, "0x", 64, "'0x'"),
            (
                FingerprintNotation::Hex,
                "100",
                8,
                "'100' has more than the 8 bits",
            ),
            (
                FingerprintNotation::Hex,
                "10000000000000000",
                64,
                "more than the 64 bits",
            ),
            (
                FingerprintNotation::Decimal,
                "18446744073709551616",
                64,
                "more than the 64 bits",
            ),
            (FingerprintNotation::Decimal, "-1", 63, "'-1'"),
            (
                FingerprintNotation::Decimal,
                "-9223372036854775809",
                64,
                "-9223372036854775809",
            ),
            (FingerprintNotation::Decimal, "1e5", 64, "'1e5'"),
            (FingerprintNotation::Binary, "102", 64, "binary"),
            (FingerprintNotation::Hex, "é", 64, "'é'"),
        ] {
            let error = digits.parse_fingerprint(text, bits).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        let long = "é".repeat(100);
        assert!(
            FingerprintNotation::Hex
                .parse_fingerprint(&long, 64)
                .unwrap_err()
                .len()
                < 160
        );
    }
}
