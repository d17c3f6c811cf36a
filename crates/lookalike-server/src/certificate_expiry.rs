//! When a certificate expires, read from its bytes.
//!
//! A certificate is DER (RFC 5280, section 4.1): elements of a tag, a length and a content, one inside the other. The
//! elements before the time of expiry are skipped, and nothing behind it is read:
//!
//! ```text
//! Certificate SEQUENCE
//!   tbsCertificate SEQUENCE
//!     version [0], serialNumber, signature, issuer     the version may be absent
//!     validity SEQUENCE
//!       notBefore, notAfter                            YYMMDDHHMMSSZ or YYYYMMDDHHMMSSZ
//! ```
//!
//! It verifies nothing: clients do that, and `certificate_handshake` when the certificate is loaded.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio_rustls::rustls::pki_types::CertificateDer;

const INTEGER_TAG: u8 = 0x02;
const UTC_TIME_TAG: u8 = 0x17;
const GENERALIZED_TIME_TAG: u8 = 0x18;
const SEQUENCE_TAG: u8 = 0x30;
const VERSION_TAG: u8 = 0xa0;

/// Returns the earliest expiry of all certificates in a chain, in seconds since 1970. `None` if the chain is empty or a
/// certificate has no valid time of expiry.
pub(crate) fn earliest_expiry(chain: &[CertificateDer<'_>]) -> Option<i64> {
    let times = chain.iter().map(|certificate| read_expiry(certificate));
    times.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// Returns the time of expiry of a certificate in DER, in seconds since 1970.
fn read_expiry(certificate: &[u8]) -> Option<i64> {
    let mut certificate = DerReader(DerReader(certificate).read_content(SEQUENCE_TAG)?);
    let mut to_be_signed = DerReader(certificate.read_content(SEQUENCE_TAG)?);
    if to_be_signed.0.first() == Some(&VERSION_TAG) {
        to_be_signed.read_content(VERSION_TAG)?; // version
    }
    to_be_signed.read_content(INTEGER_TAG)?; // serialNumber
    to_be_signed.read_content(SEQUENCE_TAG)?; // signature
    to_be_signed.read_content(SEQUENCE_TAG)?; // issuer
    let mut validity = DerReader(to_be_signed.read_content(SEQUENCE_TAG)?);
    validity.read_element()?; // notBefore
    let (tag, time) = validity.read_element()?;
    parse_time(tag, std::str::from_utf8(time).ok()?)
}

/// Parses a time, in seconds since 1970. Two digits of a year stand for 1950 to 2049.
fn parse_time(tag: u8, time: &str) -> Option<i64> {
    let time = match tag {
        GENERALIZED_TIME_TAG => time.to_owned(),
        UTC_TIME_TAG if time.get(..2)? < "50" => format!("20{time}"),
        UTC_TIME_TAG => format!("19{time}"),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", time).ok()?;
    let zoned = time.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_second())
}

/// The rest of a sequence of DER elements.
struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    /// Reads an element of this tag and returns its content.
    fn read_content(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.read_element()?;
        (found == tag).then_some(content)
    }

    /// Reads an element and returns its tag and its content.
    fn read_element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first_length_byte, rest) = rest.split_first()?;
        // A first byte below 128 is the length itself. In any other, the lower seven bits say how many bytes of the
        // length follow.
        let (length, rest) = match first_length_byte {
            0..0x80 => (usize::from(first_length_byte), rest),
            _ => {
                let byte_count = usize::from(first_length_byte & 0x7f);
                let (length_bytes, rest) = rest.split_at_checked(byte_count)?;
                (decode_big_endian(length_bytes)?, rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}

/// Decodes 1 to 4 big-endian bytes; `None` for any other length.
fn decode_big_endian(bytes: &[u8]) -> Option<usize> {
    let has_valid_length = (1..=4).contains(&bytes.len());
    has_valid_length.then(|| {
        bytes
            .iter()
            .fold(0, |sum, &byte| (sum << 8) | usize::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a certificate for `localhost` that expires at the beginning of a day, in DER.
    fn certificate_until(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(year, month, day);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn expiry_is_read_in_both_forms() {
        for (date, expected) in [
            // Two digits of the year up to 2049, four from 2050 on.
            ((2031, 2, 3), 1_927_843_200),
            ((2049, 12, 31), 2_524_521_600),
            ((2050, 1, 1), 2_524_608_000),
            ((2100, 3, 1), 4_107_542_400),
        ] {
            let (year, month, day) = date;
            let read = read_expiry(&certificate_until(year, month, day));
            assert_eq!(read, Some(expected), "{date:?}");
        }
        assert_eq!(parse_time(UTC_TIME_TAG, "700101000000Z"), Some(0));
        assert_eq!(
            parse_time(UTC_TIME_TAG, "491231235959Z"),
            Some(2_524_607_999)
        );
        assert_eq!(
            parse_time(UTC_TIME_TAG, "500101000000Z"),
            Some(-631_152_000)
        );
    }

    #[test]
    fn chain_expires_with_the_earliest_of_its_certificates() {
        let chain = |years: &[i32]| -> Vec<CertificateDer<'static>> {
            let certificates = years.iter().map(|&year| certificate_until(year, 1, 1));
            certificates.map(CertificateDer::from).collect()
        };
        assert_eq!(
            earliest_expiry(&chain(&[2040, 2031, 2035])),
            Some(1_924_992_000)
        );
        assert_eq!(earliest_expiry(&[]), None);
        let mut damaged = chain(&[2031]);
        damaged.push(CertificateDer::from(vec![0x30, 0x00]));
        assert_eq!(earliest_expiry(&damaged), None);
    }

    #[test]
    fn truncated_certificates_have_no_expiry() {
        let whole = certificate_until(2031, 2, 3);
        for length in 0..whole.len() {
            assert_eq!(read_expiry(&whole[..length]), None, "{length} bytes");
        }
        for time in ["", "310203", "3102030000", "311303000000Z", "310203000000"] {
            assert_eq!(parse_time(UTC_TIME_TAG, time), None, "{time}");
        }
        assert_eq!(parse_time(SEQUENCE_TAG, "310203000000Z"), None);
        let endless = [0x30, 0x84, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(read_expiry(&endless), None);
        assert_eq!(read_expiry(&[0x30, 0x80]), None);
        assert_eq!(read_expiry(&[0x30, 0x85, 1, 0, 0, 0, 0]), None);
    }
}
