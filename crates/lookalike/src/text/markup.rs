//! Removal of markup: the text that a reader would see.

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer};
use pulldown_cmark::{Event, Options, Parser, TagEnd};

/// Returns the text of a CommonMark document with tables, strikethrough and footnotes. Markers, link targets
/// and inline HTML are removed; code is kept.
pub(super) fn from_markdown(text: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    let mut plain = String::with_capacity(text.len());
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Text(text) | Event::Code(text) => plain.push_str(&text),
            Event::SoftBreak | Event::HardBreak | Event::Rule => plain.push('\n'),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableCell
                | TagEnd::TableRow,
            ) => plain.push('\n'),
            _ => {}
        }
    }
    plain
}

/// Returns the text of an HTML document or fragment. Tags, comments, scripts and styles are removed, entities
/// are resolved, and block elements are separated by line feeds.
pub(super) fn strip_html(text: &str) -> String {
    // A byte order mark is no text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut plain = Vec::with_capacity(text.len());
    let emitter = TextEmitter {
        plain: &mut plain,
        name: Vec::new(),
        is_start: false,
        last_start: Vec::new(),
        is_hidden: false,
    };
    let Ok(()) = Tokenizer::new_with_emitter(text, emitter).finish();
    String::from_utf8(plain).expect("the tokeniser cuts UTF-8 between characters")
}

/// Receives the tokens of an HTML document.
struct TextEmitter<'p> {
    plain: &'p mut Vec<u8>,
    /// Name of the tag that is being read, in lower case.
    name: Vec<u8>,
    is_start: bool,
    /// Name of the last start tag, which alone ends the content of a script or style.
    last_start: Vec<u8>,
    /// `true` within a script or style.
    is_hidden: bool,
}

impl TextEmitter<'_> {
    fn begin_tag(&mut self, is_start: bool) {
        self.name.clear();
        self.is_start = is_start;
    }
}

impl Emitter for TextEmitter<'_> {
    type Token = Infallible;

    fn set_last_start_tag(&mut self, last_start_tag: Option<&[u8]>) {
        self.last_start.clear();
        self.last_start
            .extend_from_slice(last_start_tag.unwrap_or_default());
    }

    fn emit_eof(&mut self) {}

    fn emit_error(&mut self, _: Error) {}

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    fn emit_string(&mut self, string: &[u8]) {
        if !self.is_hidden {
            // The HTML standard drops U+0000 from text.
            self.plain.extend(string.iter().filter(|&&byte| byte != 0));
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
        }
        let name = self.name.as_slice();
        if !INLINE.contains(&name) {
            self.plain.push(b'\n');
        }
        let content = match name {
            b"script" => State::ScriptData,
            b"style" => State::RawText,
            _ => return None,
        };
        self.is_hidden = self.is_start;
        self.is_start.then_some(content)
    }

    fn emit_current_comment(&mut self) {}

    fn emit_current_doctype(&mut self) {}

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
}

/// Elements that do not separate words.
const INLINE: [&[u8]; 19] = [
    b"a", b"abbr", b"b", b"bdi", b"cite", b"code", b"del", b"em", b"font", b"i", b"ins", b"kbd",
    b"mark", b"s", b"small", b"span", b"strong", b"sub", b"sup",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_reduced_to_visible_text() {
        let text = "# A *title*\n\nSome [link](http://x.y) and `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        let words: Vec<_> = from_markdown(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(
            words,
            [
                "A", "title", "Some", "link", "and", "code.", "a", "b", "1", "2"
            ]
        );
    }

    #[test]
    fn html_is_reduced_to_visible_text() {
        let html = "<!doctype html><p>One&nbsp;t<b>w</b>o &amp; three<br>four<script>var a = '<p>';\
                    </script><style>p {}</style><!-- no --><li>five</p>";
        let words: Vec<_> = strip_html(html)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(words, ["One", "two", "&", "three", "four", "five"]);
        for odd in [
            "",
            "<",
            "<script>",
            "<script>x</scr",
            "a<b",
            "&#xfffff;",
            "</style>z",
        ] {
            strip_html(odd);
        }
        assert!(strip_html("<script>x</script>y").contains('y'));
    }

    /// Results of recipes never change, so neither does what is made of malformed documents.
    #[test]
    fn odd_html_has_the_same_text_forever() {
        for (html, text) in [
            ("\u{feff}a\0b\r\nc\rd", "ab\nc\nd"),
            (
                "a&#0;&#128;&#xd800;&#x110000;b",
                "a\u{fffd}€\u{fffd}\u{fffd}b",
            ),
            ("&notit; &notin; &ampx &NotEqualTilde;", "¬it; ∉ &x ≂̸"),
            ("<title>a<b>c</title>", "\nac\n"),
            (
                "<script>a</style>b<!--<script>c</script>d--></script>e",
                "\n\ne",
            ),
            ("<style>a</script>b</styles>c</STYLE >d", "\n\nd"),
            ("a<![CDATA[b]]>c<!-->d<!--e--!>f<?g>h</>i</ j>k", "acdfhik"),
            ("<script/>a", "\n"),
            ("a<b", "a"),
            ("a</", "a</"),
            ("a<", "a<"),
        ] {
            assert_eq!(strip_html(html), text, "{html:?}");
        }
    }
}
