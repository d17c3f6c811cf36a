//! The text of an HTML document, with the place of every character.
//!
//! Tags, comments, `head`, scripts and styles are no text. Elements that separate words end a line. The
//! tokeniser of html5gum follows the HTML standard and keeps no tree, so that time is linear and memory does not
//! depend on the depth of elements.

use std::convert::Infallible;
use std::ops::Range;

use html5gum::{Emitter, State, Tokenizer, naive_next_state};

use crate::span_map::SpanMapBuilder;

/// Appends the text of the HTML in a range of `source`, the original of the builder.
pub(crate) fn append_html(source: &str, range: Range<usize>, out: &mut SpanMapBuilder<'_>) {
    let emitter = TextEmitter {
        source: source.as_bytes(),
        position: range.start,
        consumed: range.start,
        out,
        name: Vec::new(),
        is_start: false,
        last_start: Vec::new(),
        hidden: None,
        in_head: false,
    };
    let Ok(()) = Tokenizer::new_with_emitter(&source[range], emitter).finish();
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
const INLINE: [&[u8]; 40] = [
    b"a", b"abbr", b"acronym", b"b", b"bdi", b"bdo", b"big", b"cite", b"code", b"data", b"del",
    b"dfn", b"em", b"font", b"i", b"img", b"ins", b"kbd", b"label", b"mark", b"meter", b"nobr",
    b"output", b"q", b"rb", b"ruby", b"s", b"samp", b"script", b"small", b"span", b"strike",
    b"strong", b"sub", b"sup", b"time", b"tt", b"u", b"var", b"wbr",
];

/// Elements whose content is hidden and ends at the next end tag of the same name.
const HIDDEN: [&[u8]; 5] = [b"script", b"style", b"iframe", b"noembed", b"noframes"];

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

/// Receives the tokens of an HTML document.
struct TextEmitter<'a, 'b> {
    source: &'a [u8],
    /// The offset just after what the tokeniser has read.
    position: usize,
    /// The end of the part of the source that text, tags or comments have accounted for.
    consumed: usize,
    out: &'a mut SpanMapBuilder<'b>,
    name: Vec<u8>,
    is_start: bool,
    last_start: Vec<u8>,
    hidden: Option<&'static [u8]>,
    in_head: bool,
}

impl TextEmitter<'_, '_> {
    fn is_hidden(&self) -> bool {
        self.hidden.is_some() || self.in_head
    }

    fn begin_tag(&mut self, is_start: bool) {
        self.name.clear();
        self.is_start = is_start;
    }

    /// Ends a line just before the tag, unless its element is part of a line.
    fn separate_words(&mut self) {
        let is_inline = INLINE.contains(&self.name.as_slice());
        if !is_inline && !self.is_hidden() {
            self.out.push_separator(self.consumed);
        }
    }

    fn update_hidden(&mut self) {
        let name = self.name.as_slice();
        if self.is_start {
            let hides = HIDDEN.iter().find(|hidden| **hidden == name);
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

impl Emitter for TextEmitter<'_, '_> {
    type Token = Infallible;

    fn set_last_start_tag(&mut self, last_start_tag: Option<&[u8]>) {
        self.last_start.clear();
        self.last_start
            .extend_from_slice(last_start_tag.unwrap_or_default());
    }

    fn emit_eof(&mut self) {}

    fn emit_error(&mut self, _: html5gum::Error) {}

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    fn emit_string(&mut self, string: &[u8]) {
        let (range, is_copy) = self.locate_string(string);
        self.consumed = range.end;
        match (self.is_hidden(), is_copy) {
            (true, _) => {}
            (false, true) => self.out.push_copy(range),
            (false, false) => self.out.push_replaced(string, range),
        }
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(true);
    }

    fn init_end_tag(&mut self) {
        self.begin_tag(false);
    }

    fn init_comment(&mut self) {}

    fn emit_current_tag(&mut self) -> Option<State> {
        if self.is_start {
            self.last_start.clone_from(&self.name);
        } else {
            self.last_start.clear();
        }
        self.update_hidden();
        self.separate_words();
        self.consumed = self.position;
        match self.name.as_slice() {
            // Without scripts, which nothing runs here, the content of `noscript` is ordinary.
            b"noscript" => None,
            name if self.is_start => naive_next_state(name),
            _ => None,
        }
    }

    fn emit_current_comment(&mut self) {
        self.consumed = self.position;
    }

    fn emit_current_doctype(&mut self) {
        self.consumed = self.position;
    }

    fn set_self_closing(&mut self) {}

    fn set_force_quirks(&mut self) {}

    fn push_tag_name(&mut self, name: &[u8]) {
        self.name.extend_from_slice(name);
    }

    fn push_comment(&mut self, _: &[u8]) {}

    fn push_doctype_name(&mut self, _: &[u8]) {}

    fn init_doctype(&mut self) {}

    fn init_attribute(&mut self) {}

    fn push_attribute_name(&mut self, _: &[u8]) {}

    fn push_attribute_value(&mut self, _: &[u8]) {}

    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        !self.is_start && !self.last_start.is_empty() && self.last_start == self.name
    }

    fn move_position(&mut self, offset: isize) {
        self.position = self.position.saturating_add_signed(offset);
    }
}
