//! Reasons of bad rows without their values, by which messages and reports group the rows.

use std::borrow::Cow;

/// Returns the reason of a bad row with `…` in place of each number and each value in single quotes, for example
/// `the row is not valid JSON: expected value at its byte …`.
///
/// Names of fields, which stand in backticks, stay, because they tell reasons apart; a value in backticks stands at the
/// beginning.
pub fn reason_pattern(reason: &str) -> Cow<'_, str> {
    let is_varied = |c: char| c.is_ascii_digit() || c == '\'';
    if !reason.contains(is_varied) && !reason.starts_with('`') {
        return Cow::Borrowed(reason);
    }
    let mut pattern = String::new();
    let mut rest = reason;
    if let Some(end) = (rest.strip_prefix('`')).and_then(|value| value.find('`')) {
        pattern.push('…');
        rest = &rest[end + 2..];
    }
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '`' => quoted_length(rest, '`'),
            '\'' => quoted_length(rest, '\''),
            '0'..='9' => Some(number_length(rest)),
            _ => None,
        };
        let Some(length) = length else {
            pattern.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        if next == '`' {
            pattern.push_str(&rest[..length]);
        } else {
            pattern.push('…');
        }
        rest = &rest[length..];
    }
    Cow::Owned(pattern)
}

/// Returns the length of the quoted text at the start of `text`, or `None` if no quote closes it.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    text[1..].find(quote).map(|end| end + 2)
}

fn number_length(text: &str) -> usize {
    let is_other = |c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',');
    text.find(is_other).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_values_are_one_group() {
        for (one, other, is_same) in [
            ("wrong at its byte 17", "wrong at its byte 9", true),
            (
                "the field `a` is missing",
                "the field `b` is missing",
                false,
            ),
            (
                "the field `a1` is missing",
                "the field `a2` is missing",
                false,
            ),
            (
                "the time in field 'at' is 'x'",
                "the time in field 'at' is 'y z'",
                true,
            ),
            (
                "`1x` in field `n` is not a number",
                "`2y` in field `n` is not a number",
                true,
            ),
            (
                "`1x` in field `n` is not a number",
                "`1x` in field `m` is not a number",
                false,
            ),
        ] {
            let same = reason_pattern(one) == reason_pattern(other);
            assert_eq!(same, is_same, "{one} | {other}");
        }
    }
}
