//! Canonical digits of numbers in ids and in the field of `--within`, which are compared as strings.

use std::borrow::Cow;

/// Largest distance of the decimal point from the first significant digit; other numbers stay
/// unchanged.
const MOST_DIGITS: usize = 400;

/// Returns a number in its shortest exact decimal form: without an exponent, without superfluous zeros,
/// and without a point if it is whole. For example `1`, `1.0` and `1e0` all become `1`, which equals
/// the string `1`. Strings are never changed.
#[must_use]
pub fn shortest_digits(literal: &str) -> Cow<'_, str> {
    let is_whole = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = literal.strip_prefix('-').unwrap_or(literal);
    if is_whole(unsigned) && (unsigned == literal || unsigned != "0") {
        return Cow::Borrowed(literal);
    }
    shorten_number(literal).map_or(Cow::Borrowed(literal), Cow::Owned)
}

fn shorten_number(literal: &str) -> Option<String> {
    let (sign, rest) = match literal.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", literal),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // `point` counts the significant digits before the decimal point; it may be negative.
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let point = whole.len() as i64 + exponent - leading as i64;
    if point.unsigned_abs() as usize > MOST_DIGITS {
        return None;
    }
    Some(match usize::try_from(point) {
        Ok(point) if point >= significant.len() => {
            format!(
                "{sign}{significant}{}",
                "0".repeat(point - significant.len())
            )
        }
        Ok(point) if point > 0 => {
            let (whole, fraction) = significant.split_at(point);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!(
            "{sign}0.{}{significant}",
            "0".repeat(point.unsigned_abs() as usize)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_one_form() {
        for (literal, shortest) in [
            ("1", "1"),
            ("1.0", "1"),
            ("1e0", "1"),
            ("10e-1", "1"),
            ("-0", "0"),
            ("0.0", "0"),
            ("-1.50", "-1.5"),
            ("1e3", "1000"),
            ("1.25E+1", "12.5"),
            ("0.00012", "0.00012"),
            ("12e-5", "0.00012"),
            ("100", "100"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("12345678901234567890.0", "12345678901234567890"),
            ("NaN", "NaN"),
            ("1e999999", "1e999999"),
        ] {
            assert_eq!(shortest_digits(literal), shortest, "{literal}");
        }
    }

    proptest! {
        #[test]
        fn shortest_digits_keep_the_value(whole in 0u32..2000, fraction in 0u32..1000, exponent in -8i32..9, negative: bool) {
            let sign = if negative { "-" } else { "" };
            let literal = format!("{sign}{whole}.{fraction:03}e{exponent}");
            let shortest = shortest_digits(&literal);
            prop_assert_eq!(shortest.parse::<f64>().unwrap(), literal.parse::<f64>().unwrap());
            prop_assert!(!shortest.contains(['e', 'E']));
            let again = shortest_digits(&shortest);
            prop_assert_eq!(&again, &shortest);
        }
    }
}
