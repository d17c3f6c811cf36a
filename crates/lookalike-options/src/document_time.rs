//! Times of documents as users write them.

/// Parses a time: seconds since 1970 as a number, or an ISO 8601 date or date and time, in UTC unless
/// it has an offset. It rejects three ambiguous forms:
///
/// - eight digits, because they may be a date (`20240310`);
/// - numbers from 10¹¹ on, because they are probably not seconds;
/// - times with a time zone name (`[Asia/Shanghai]`), because the rules of time zones change.
pub fn parse_time(text: &str) -> Option<f64> {
    if is_compact_date(text) || text.contains('[') {
        return None;
    }
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|&number| is_plausible_time(number));
    }
    let timestamp = text.parse::<jiff::Timestamp>().or_else(|_| {
        let civil: jiff::civil::DateTime = text.parse()?;
        Ok::<_, jiff::Error>(civil.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
    });
    timestamp
        .ok()
        .map(|timestamp| timestamp.as_microsecond() as f64 / 1e6)
}

/// Returns `true` if the text could be a date of the years 1900 to 2199 without hyphens, as ISO 8601
/// permits.
pub fn is_compact_date(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    text.len() == 8
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (1900..2200).contains(&number(0..4))
        && (1..=12).contains(&number(4..6))
        && (1..=31).contains(&number(6..8))
}

/// Returns `true` unless the time is beyond the year 5138, which indicates milliseconds instead of
/// seconds.
pub fn is_plausible_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds.abs() < 1e11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_unless_they_are_ambiguous() {
        for (text, seconds) in [
            ("0", 0.0),
            ("-1.5", -1.5),
            ("1710072000.0", 1_710_072_000.0),
            ("2024-03-10", 1_710_028_800.0),
            ("2024-03-10T12:00:00", 1_710_072_000.0),
            ("2024-03-10T12:00:00+08:00", 1_710_043_200.0),
        ] {
            assert_eq!(parse_time(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "soon",
            "20240310",
            "1e11",
            "nan",
            "2024-03-10T12:00:00[Asia/Shanghai]",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
