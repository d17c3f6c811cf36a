//! Places of markup in a text: HTML tags, HTML entities, LaTeX commands and targets of Markdown links.
//!
//! Their letters are no words of the text. Nothing is parsed: a tag is `<`, a letter or `/`, and `>` within
//! [`MAX_TAG_BYTES`]; a command is a backslash and letters; an entity is `&`, letters or digits, and `;`.
//!
//! Cost: one search for three bytes.

use std::ops::Range;

/// Longest HTML tag in bytes. A `<` without `>` within it is a sign of comparison.
const MAX_TAG_BYTES: usize = 512;

/// Longest HTML entity in bytes, without `&` and `;`.
const MAX_ENTITY_BYTES: usize = 8;

/// Replaces `places` by the ranges of bytes that are markup, in the order of the text.
pub(super) fn find_markup(text: &str, places: &mut Vec<Range<usize>>) {
    places.clear();
    let bytes = text.as_bytes();
    let mut end = 0;
    for at in memchr::memchr3_iter(b'<', b'\\', b'&', bytes) {
        if at < end {
            continue;
        }
        let rest = &bytes[at + 1..];
        let length = match bytes[at] {
            b'<' => tag_length(rest),
            b'\\' => command_length(rest),
            _ => entity_length(rest),
        };
        if let Some(length) = length {
            end = at + 1 + length;
            places.push(at..end);
        }
    }
    add_link_targets(text, places);
}

/// Adds the targets of Markdown links: `](`, and all to the next `)` in the line.
fn add_link_targets(text: &str, places: &mut Vec<Range<usize>>) {
    let count = places.len();
    for at in memchr::memmem::find_iter(text.as_bytes(), b"](") {
        let rest = &text.as_bytes()[at..];
        let within = &rest[..rest.len().min(MAX_TAG_BYTES)];
        let end = memchr::memchr2(b')', b'\n', within);
        if let Some(end) = end.filter(|&end| within[end] == b')') {
            places.push(at..at + end + 1);
        }
    }
    if places.len() == count {
        return;
    }
    places.sort_unstable_by_key(|place| place.start);
    // Markup within a target is part of it, and a target that begins within markup is none.
    let mut end = 0;
    places.retain(|place| {
        let is_outside = place.start >= end;
        if is_outside {
            end = place.end;
        }
        is_outside
    });
}

/// Returns the number of bytes of a tag behind its `<`.
fn tag_length(rest: &[u8]) -> Option<usize> {
    let first = *rest.first()?;
    if !first.is_ascii_alphabetic() && first != b'/' && first != b'!' {
        return None;
    }
    let within = &rest[..rest.len().min(MAX_TAG_BYTES)];
    let end = memchr::memchr2(b'<', b'>', within)?;
    (within[end] == b'>').then_some(end + 1)
}

/// Returns the number of letters of a LaTeX command behind its backslash.
fn command_length(rest: &[u8]) -> Option<usize> {
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let length = letters.count();
    (length > 0).then_some(length)
}

/// Returns the number of bytes of an entity behind its `&`.
fn entity_length(rest: &[u8]) -> Option<usize> {
    let within = &rest[..rest.len().min(MAX_ENTITY_BYTES + 1)];
    let end = memchr::memchr(b';', within)?;
    let name = within[..end].strip_prefix(b"#").unwrap_or(&within[..end]);
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_alphanumeric);
    is_name.then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markup_of(text: &str) -> Vec<&str> {
        let mut places = Vec::new();
        find_markup(text, &mut places);
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn tags_commands_and_entities_are_markup() {
        assert_eq!(
            markup_of("<p class='a'>x</p> \\frac{1}{2} &nbsp; &#39;"),
            ["<p class='a'>", "</p>", "\\frac", "&nbsp;", "&#39;"]
        );
        assert_eq!(
            markup_of("[a](https://x.example/<b>) [i](j [k](l\n) <i>[m](n)</i>"),
            ["](https://x.example/<b>)", "<i>", "](n)", "</i>"]
        );
    }

    #[test]
    fn signs_are_no_markup() {
        assert!(markup_of("a < b, 3 <4, a<b<c, \\(x\\), R&D; and AT&T, & so on;").len() <= 1);
        assert_eq!(markup_of("i < 3 && j > 4"), [""; 0]);
        let open = format!("<a{}>", " ".repeat(MAX_TAG_BYTES));
        assert_eq!(markup_of(&open), [""; 0]);
    }
}
