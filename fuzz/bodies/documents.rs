//! Checks that every part of a stripped text leads back to its characters in the original.

use lookalike_documents::decoding::InvalidText;
use lookalike_documents::{DocumentKind, ExtractOptions, ExtractedText, extract_text};

/// Panics if the bytes violate that rule. The first byte chooses Markdown or HTML, the others are the document.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, document)) = bytes.split_first() else {
        return;
    };
    let kind = match choice % 2 {
        0 => DocumentKind::Markdown,
        _ => DocumentKind::Html,
    };
    let options = ExtractOptions {
        invalid_text: InvalidText::Lossy,
        ..ExtractOptions::default()
    };
    match extract_text(kind, document, &options) {
        Ok(extracted) => check_ranges(&extracted),
        Err(reason) => assert!(!reason.contains("cuts characters"), "{reason}"),
    }
}

/// Checks that the ranges of successive characters are whole, in order and disjoint unless a part stands
/// for several characters, and that the text of each range is the character, or a replacement of it.
fn check_ranges(extracted: &ExtractedText) {
    let original = extracted.original_text();
    let mut before = 0..0;
    for (at, character) in extracted.text.char_indices() {
        let range = extracted
            .original_range(at..at + character.len_utf8())
            .expect("marked-up text has positions");
        assert!(range.start <= range.end && range.end <= original.len());
        assert!(
            range.start >= before.end || range == before,
            "{before:?} is before {range:?}"
        );
        let part = &original[range.clone()];
        let is_replaced = part.contains(['&', '\0', '\r', '\n', '\t', '`', '\\', '<', '>']);
        let is_line_end = character == '\n';
        assert!(
            part.chars().eq([character]) || is_replaced || is_line_end,
            "{character:?} from {part:?}"
        );
        before = range;
    }
    let whole = extracted.original_range(0..extracted.text.len());
    assert!(whole.is_some_and(|range| range.end <= original.len()));
}
