//! Removal of markup: the text that a reader would see.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
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
    let sink = PlainText {
        plain: RefCell::default(),
        hidden: Cell::new(0),
    };
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(text));
    // The result only says whether a script end tag was found, and there is nothing to resume.
    while !queue.is_empty() {
        let _ = tokenizer.feed(&queue);
    }
    tokenizer.end();
    tokenizer.sink.plain.into_inner()
}

struct PlainText {
    plain: RefCell<String>,
    hidden: Cell<u32>,
}

impl TokenSink for PlainText {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if self.hidden.get() == 0 => {
                self.plain.borrow_mut().push_str(&text);
            }
            Token::TagToken(tag) => return self.process_tag(&tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl PlainText {
    fn process_tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        if !INLINE.contains(&name) {
            self.plain.borrow_mut().push('\n');
        }
        if matches!(name, "script" | "style") {
            let opens = tag.kind == TagKind::StartTag;
            self.hidden.set(u32::from(opens));
            if opens {
                let raw = if name == "script" {
                    RawKind::ScriptData
                } else {
                    RawKind::Rawtext
                };
                return TokenSinkResult::RawData(raw);
            }
        }
        TokenSinkResult::Continue
    }
}

/// Elements that do not separate words.
const INLINE: [&str; 19] = [
    "a", "abbr", "b", "bdi", "cite", "code", "del", "em", "font", "i", "ins", "kbd", "mark", "s",
    "small", "span", "strong", "sub", "sup",
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
}
