//! The text and the tags of an HTML document, one after another.
//!
//! The tokeniser of html5gum follows the HTML standard and keeps no tree, so that time is linear and memory does not depend
//! on the depth of elements. It asks for some thirty methods, most of them about attributes and comments, which are no text.
//! A [`HtmlReceiver`] has those that matter to a text. Recipes that remove HTML have one, and readers of document files
//! another, because they follow the places of characters.

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer, naive_next_state};

/// Receives the parts of an HTML document in their order.
pub trait HtmlReceiver {
    /// Receives text, in which character references are resolved. The tokeniser cuts it between characters.
    fn receive_text(&mut self, text: &[u8]);

    /// Receives a start or end tag with its name in lower case, without its attributes.
    ///
    /// Returns `true` if the content of an element with this name can have no tags, as that of `script`, so that it is one
    /// text up to the end tag. The result is ignored for end tags, and for elements whose content is ordinary by the
    /// standard.
    fn receive_tag(&mut self, name: &[u8], is_start: bool) -> bool;

    /// Receives the end of a comment or document type.
    fn receive_comment(&mut self) {}

    /// Moves the place up to which the document has been read by some bytes, also backwards.
    fn move_place(&mut self, _offset: isize) {}
}

/// Passes the parts of an HTML document or fragment to a receiver.
pub fn read_html(html: &str, receiver: impl HtmlReceiver) {
    let tokens = HtmlTokens {
        receiver,
        name: Vec::new(),
        is_start: false,
        last_start: Vec::new(),
    };
    let Ok(()) = Tokenizer::new_with_emitter(html, tokens).finish();
}

/// The tag that is being read, and the receiver of everything else.
struct HtmlTokens<R> {
    receiver: R,
    /// Name of the tag, in lower case.
    name: Vec<u8>,
    is_start: bool,
    /// Name of the last start tag, which alone ends content without tags.
    last_start: Vec<u8>,
}

impl<R> HtmlTokens<R> {
    fn begin_tag(&mut self, is_start: bool) {
        self.name.clear();
        self.is_start = is_start;
    }
}

impl<R: HtmlReceiver> Emitter for HtmlTokens<R> {
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
        self.receiver.receive_text(string);
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
        let has_no_tags = self.receiver.receive_tag(&self.name, self.is_start);
        if has_no_tags && self.is_start {
            naive_next_state(&self.name)
        } else {
            None
        }
    }

    fn emit_current_comment(&mut self) {
        self.receiver.receive_comment();
    }

    fn emit_current_doctype(&mut self) {
        self.receiver.receive_comment();
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
        self.receiver.move_place(offset);
    }
}
