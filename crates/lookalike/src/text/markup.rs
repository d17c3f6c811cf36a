//! Removal of markup: the text that a reader would see.

use pulldown_cmark::{Event, Options, Parser, TagEnd};

use super::html::{HtmlReceiver, read_html};

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
    let visible = VisibleText {
        plain: &mut plain,
        is_hidden: false,
    };
    read_html(text, visible);
    String::from_utf8(plain).expect("the tokeniser cuts UTF-8 between characters")
}

/// The text of an HTML document as far as it has been read.
struct VisibleText<'p> {
    plain: &'p mut Vec<u8>,
    /// `true` within a script or style.
    is_hidden: bool,
}

impl HtmlReceiver for VisibleText<'_> {
    fn receive_text(&mut self, text: &[u8]) {
        if !self.is_hidden {
            // The HTML standard drops U+0000 from text.
            self.plain.extend(text.iter().filter(|&&byte| byte != 0));
        }
    }

    fn receive_tag(&mut self, name: &[u8], is_start: bool) -> bool {
        if !INLINE_ELEMENTS.contains(&name) {
            self.plain.push(b'\n');
        }
        let is_hiding = matches!(name, b"script" | b"style");
        if is_hiding {
            self.is_hidden = is_start;
        }
        is_hiding
    }
}

/// Elements that do not separate words.
const INLINE_ELEMENTS: [&[u8]; 19] = [
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
