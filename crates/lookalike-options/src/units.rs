//! Durations and sizes as a user writes them: a number, for durations with a unit.

use std::time::Duration;

/// Parses a duration, a number with the unit s, m, h, d or w, and returns it in seconds.
///
/// # Errors
/// If the text is not such a duration. The message is a phrase that can follow the text.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let wrong = || "give a number with a unit: 90s, 15m, 36h, 2d or 1w".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        'w' => 604_800.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .map_err(|_| wrong())?;
    Some(number * seconds)
        .filter(|total| total.is_finite() && *total >= 0.0)
        .ok_or_else(wrong)
}

/// Parses a duration as [`parse_seconds`] does, for a wait or a window.
///
/// # Errors
/// As there, or if the duration is longer than the type can hold.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(parse_seconds(text)?);
    duration.map_err(|_| "the duration is too long: give 30s, 5m or 2d".to_owned())
}

/// Parses a size in bytes, a whole number above 0. It may have the unit K, M, G (of 1000) or Ki, Mi, Gi (of
/// 1024), and a B after it. K, M, G and B may be in lower case.
///
/// # Errors
/// If the text is not such a size. The message is a phrase that can follow the text.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let letters = &text[digits.len()..];
    let unit: Option<u64> = match letters.strip_suffix(['b', 'B']).unwrap_or(letters) {
        "" => Some(1),
        "k" | "K" => Some(1000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let bytes = unit.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
    bytes
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "give a size, such as 500000, 100M or 1Gi".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_seconds() {
        let cases = [
            ("90s", 90.0),
            ("15m", 900.0),
            ("36h", 129_600.0),
            ("2d", 172_800.0),
            ("1w", 604_800.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse_seconds(text), Ok(seconds), "{text}");
        }
        assert_eq!(parse_seconds("1.5h"), Ok(5400.0));
        for text in [
            "", "d", "2", "2x", "-1d", "infd", "NaNs", "2 days", "1e400s", "2日",
        ] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    /// Callers name the text themselves, so the message of a duration does not repeat it.
    #[test]
    fn overlong_duration_is_refused_without_its_text() {
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_seconds("1e30s"), Ok(1e30));
        let refused = parse_duration("1e30s").unwrap_err();
        assert_eq!(refused, "the duration is too long: give 30s, 5m or 2d");
    }

    #[test]
    fn sizes_are_bytes_with_or_without_a_unit() {
        let cases = [
            ("1", 1),
            ("500000", 500_000),
            ("7B", 7),
            ("7b", 7),
            ("2k", 2000),
            ("2KB", 2000),
            ("3m", 3_000_000),
            ("3Mb", 3_000_000),
            ("4gB", 4_000_000_000),
            ("5Ki", 5120),
            ("5KiB", 5120),
            ("6Mi", 6 << 20),
            ("7Gib", 7 << 30),
            ("18446744073709551615", u64::MAX),
            ("17179869183Gi", 17_179_869_183 << 30),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "B",
            "K",
            "0",
            "0G",
            "-1",
            "1.5G",
            "1 G",
            "1BB",
            "1KBb",
            "1T",
            "1ki",
            "1kB1",
            "G1",
            "18446744073709551616",
            "17179869184Gi",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
