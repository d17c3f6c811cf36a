//! The text of a Markdown document, with the place of every character.
//!
//! CommonMark with tables, strikethrough, footnotes, task lists and front matter, which is no text. Markers and
//! link targets are removed, code is kept, and blocks of HTML are read as HTML.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::html::append_html;
use crate::span_map::SpanMapBuilder;

/// Bytes of memory of a line: the nodes of its text and of its end, and their spans.
const BYTES_PER_LINE: usize = 256;

/// Bytes of memory of a marker: its node, that of the text behind it, and their spans, in lists that grow. The parser
/// took 150 bytes on average, and up to 290 where its lists had just grown.
const BYTES_PER_MARKER: usize = 300;

/// Returns the bytes of memory that the tree of a Markdown document and the spans of its text take at most.
pub(crate) fn estimate_tree_bytes(bytes: &[u8]) -> usize {
    let mut before = b'\n';
    let of_bytes = bytes.iter().map(|&byte| {
        let bytes = match byte {
            b'\n' | b'\r' => BYTES_PER_LINE,
            b'*' | b'_' | b'~' | b'`' | b'[' | b']' | b'!' | b'<' | b'>' | b'&' | b'\\' | b'|'
            | b'+' | b'-' | b'#' | b'$' | b'^' => BYTES_PER_MARKER,
            // The number of an item of a list.
            b'.' | b')' if before.is_ascii_digit() => BYTES_PER_MARKER,
            _ => 0,
        };
        before = byte;
        bytes
    });
    of_bytes.sum()
}

/// Appends the text of a Markdown document, the original of the builder.
pub(crate) fn append_markdown(source: &str, out: &mut SpanMapBuilder<'_>) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut is_metadata = false;
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        match event {
            Event::Start(Tag::MetadataBlock(_)) => is_metadata = true,
            Event::End(TagEnd::MetadataBlock(_)) => is_metadata = false,
            _ if is_metadata => {}
            // The indentation of a block of HTML, which the block has itself.
            Event::Text(_) if range.is_empty() => {}
            Event::Text(text) | Event::Code(text) => append_text(source, &text, range, out),
            Event::SoftBreak | Event::HardBreak => out.push_replaced(b"\n", range),
            Event::Start(Tag::HtmlBlock) => append_block(source, range, out),
            Event::InlineHtml(tag) if is_line_break(&tag) => out.push_replaced(b"\n", range),
            Event::Rule => out.push_separator(range.start),
            Event::Start(tag) if !is_inline(&tag.to_end()) => out.push_separator(range.start),
            Event::End(tag) if !is_inline(&tag) => out.push_separator(range.end),
            _ => {}
        }
    }
}

/// Appends text or code. The range of code includes its backticks.
fn append_text(source: &str, text: &str, range: Range<usize>, out: &mut SpanMapBuilder<'_>) {
    match source[range.clone()].find(text) {
        Some(at) => out.push_copy(range.start + at..range.start + at + text.len()),
        None => out.push_replaced(text.as_bytes(), range),
    }
}

fn append_block(source: &str, range: Range<usize>, out: &mut SpanMapBuilder<'_>) {
    out.push_separator(range.start);
    append_html(source, range, out);
}

fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_start_matches('<');
    name.get(..2)
        .is_some_and(|start| start.eq_ignore_ascii_case("br"))
        && name[2..].starts_with(['>', '/', ' '])
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image
            | TagEnd::Superscript
            | TagEnd::Subscript
    )
}
