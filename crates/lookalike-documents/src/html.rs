//! The text of an HTML document, with the place of every character.
//!
//! Tags, comments, `head`, scripts and styles are no text. Elements that separate words end a line. Time is linear and
//! memory does not depend on the depth of elements.

use std::ops::Range;

use lookalike::text::html::{HtmlReceiver, read_html};

use crate::span_map::SpanMapBuilder;

/// Appends the text of the HTML in a range of `source`, the original of the builder.
pub(crate) fn append_html(source: &str, range: Range<usize>, out: &mut SpanMapBuilder<'_>) {
    let placed = PlacedText {
        source: source.as_bytes(),
        position: range.start,
        consumed: range.start,
        out,
        hidden: None,
        in_head: false,
    };
    read_html(&source[range], placed);
}

/// Bytes of memory of a span of the text, in a list that grows.
const BYTES_PER_SPAN: usize = 48;

/// Returns the bytes of memory of the spans that the text of some HTML has at most: a tag or a character reference ends
/// one.
pub(crate) fn estimate_span_bytes(bytes: &[u8]) -> usize {
    let ends = bytes.iter().filter(|&&byte| matches!(byte, b'<' | b'&'));
    2 * BYTES_PER_SPAN * ends.count()
}

/// Elements that do not separate words.
const INLINE_ELEMENTS: [&[u8]; 40] = [
    b"a", b"abbr", b"acronym", b"b", b"bdi", b"bdo", b"big", b"cite", b"code", b"data", b"del",
    b"dfn", b"em", b"font", b"i", b"img", b"ins", b"kbd", b"label", b"mark", b"meter", b"nobr",
    b"output", b"q", b"rb", b"ruby", b"s", b"samp", b"script", b"small", b"span", b"strike",
    b"strong", b"sub", b"sup", b"time", b"tt", b"u", b"var", b"wbr",
];

/// Elements whose content is hidden and ends at the next end tag of the same name.
const HIDDEN_ELEMENTS: [&[u8]; 5] = [b"script", b"style", b"iframe", b"noembed", b"noframes"];

/// Elements that can be in `head`. Any other start tag ends it.
const OF_HEAD: [&[u8]; 11] = [
    b"base",
    b"basefont",
    b"bgsound",
    b"head",
    b"link",
    b"meta",
    b"noscript",
    b"script",
    b"style",
    b"template",
    b"title",
];

/// The text of an HTML document as far as it has been read, and where it stands.
struct PlacedText<'a, 'b> {
    source: &'a [u8],
    /// The offset just after what the tokeniser has read.
    position: usize,
    /// The end of the part of the source that text, tags or comments have accounted for.
    consumed: usize,
    out: &'a mut SpanMapBuilder<'b>,
    hidden: Option<&'static [u8]>,
    in_head: bool,
}

impl PlacedText<'_, '_> {
    fn is_hidden(&self) -> bool {
        self.hidden.is_some() || self.in_head
    }

    /// Ends a line just before the tag, unless its element is part of a line.
    fn separate_words(&mut self, name: &[u8]) {
        if !INLINE_ELEMENTS.contains(&name) && !self.is_hidden() {
            self.out.push_separator(self.consumed);
        }
    }

    fn update_hidden(&mut self, name: &[u8], is_start: bool) {
        if is_start {
            let hides = HIDDEN_ELEMENTS.iter().find(|hidden| **hidden == name);
            self.hidden = self.hidden.or(hides.copied());
            self.in_head = match name {
                b"head" => true,
                _ => self.in_head && OF_HEAD.contains(&name),
            };
        } else {
            if self.hidden == Some(name) {
                self.hidden = None;
            }
            self.in_head &= name != b"head";
        }
    }

    /// Returns the range of the source that a string stands for, and `true` if the source has the same
    /// bytes there.
    fn locate_string(&self, string: &[u8]) -> (Range<usize>, bool) {
        let end = self.position.clamp(self.consumed, self.source.len());
        let copied = end.saturating_sub(string.len()).max(self.consumed)..end;
        if self.source[copied.clone()] == *string {
            (copied, true)
        } else {
            (self.consumed..end, false)
        }
    }
}

impl HtmlReceiver for PlacedText<'_, '_> {
    fn receive_text(&mut self, text: &[u8]) {
        let (range, is_copy) = self.locate_string(text);
        self.consumed = range.end;
        match (self.is_hidden(), is_copy) {
            (true, _) => {}
            (false, true) => self.out.push_copy(range),
            (false, false) => self.out.push_replaced(text, range),
        }
    }

    fn receive_tag(&mut self, name: &[u8], is_start: bool) -> bool {
        self.update_hidden(name, is_start);
        self.separate_words(name);
        self.consumed = self.position;
        // Without scripts, which nothing runs here, the content of `noscript` is ordinary.
        name != b"noscript"
    }

    fn receive_comment(&mut self) {
        self.consumed = self.position;
    }

    fn move_place(&mut self, offset: isize) {
        self.position = self.position.saturating_add_signed(offset);
    }
}
