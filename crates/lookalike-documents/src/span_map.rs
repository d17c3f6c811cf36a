//! The place of each character of a stripped text in the original.
//!
//! Guarantees: the segments cover the text without gaps, in order of the text and of the original; a
//! range of whole characters maps to a range of whole characters. Cost: 16 bytes for each segment, and
//! one binary search for each end of a range. A text without markup is one segment.

use std::ops::Range;

/// The original of a stripped text, and for each part of the text its byte range there.
#[derive(Debug, Clone)]
pub struct SpanMap {
    original: String,
    segments: Vec<TextSegment>,
}

/// A part of the stripped text. It ends where the next one begins.
#[derive(Debug, Clone, Copy)]
struct TextSegment {
    text_start: u32,
    start: u32,
    end: u32,
    /// `true` if the original has the same bytes. Otherwise the whole segment stands for the whole
    /// range, for example `&` for `&amp;`.
    is_copy: bool,
}

impl SpanMap {
    /// Returns the file after decoding, without a byte order mark. Ranges of the map are of this text.
    pub fn original_text(&self) -> &str {
        &self.original
    }

    /// Returns the number of bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.original.len() + size_of_val(self.segments.as_slice())
    }

    /// Returns the byte range of the original that a byte range of the stripped text comes from.
    ///
    /// `range` consists of whole characters. The result contains the markup between them. A character
    /// reference such as `&amp;` is never cut. An empty range, and a line feed that separates blocks, map to
    /// an empty range.
    pub fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let start = self.original_start(range.start);
        if range.is_empty() {
            return start..start;
        }
        let last = self.segment_at(range.end - 1);
        let end = if last.is_copy {
            last.start as usize + range.end - last.text_start as usize
        } else {
            last.end as usize
        };
        start..end.max(start)
    }

    fn original_start(&self, at: usize) -> usize {
        let segment = self.segment_at(at);
        if segment.is_copy {
            segment.start as usize + at - segment.text_start as usize
        } else {
            segment.start as usize
        }
    }

    fn segment_at(&self, at: usize) -> TextSegment {
        let after = self
            .segments
            .partition_point(|segment| segment.text_start as usize <= at);
        let none = TextSegment {
            text_start: 0,
            start: 0,
            end: 0,
            is_copy: false,
        };
        after.checked_sub(1).map_or(none, |at| self.segments[at])
    }
}

/// Collects a stripped text together with its map.
pub(crate) struct SpanMapBuilder<'a> {
    original: &'a str,
    text: Vec<u8>,
    segments: Vec<TextSegment>,
}

impl<'a> SpanMapBuilder<'a> {
    /// Creates a builder for a text of at most 4 GiB, which the limit of a document ensures.
    pub(crate) fn new(original: &'a str) -> Self {
        Self {
            original,
            text: Vec::with_capacity(original.len() / 2),
            segments: Vec::new(),
        }
    }

    /// Appends a range of the original.
    pub(crate) fn push_copy(&mut self, range: Range<usize>) {
        self.text
            .extend_from_slice(&self.original.as_bytes()[range.clone()]);
        let length = range.len();
        match self.segments.last_mut() {
            Some(last) if last.is_copy && last.end as usize == range.start => {
                last.end = range.end as u32;
            }
            _ => self.push_segment(length, range, true),
        }
    }

    /// Appends text that stands for a range of the original.
    pub(crate) fn push_replaced(&mut self, text: &[u8], range: Range<usize>) {
        if !text.is_empty() {
            self.text.extend_from_slice(text);
            self.push_segment(text.len(), range, false);
        }
    }

    /// Ends a line before the offset `at` of the original, unless the text has just ended one.
    pub(crate) fn push_separator(&mut self, at: usize) {
        if self.text.last().is_some_and(|&byte| byte != b'\n') {
            self.push_replaced(b"\n", at..at);
        }
    }

    fn push_segment(&mut self, length: usize, range: Range<usize>, is_copy: bool) {
        self.segments.push(TextSegment {
            text_start: (self.text.len() - length) as u32,
            start: range.start as u32,
            end: range.end as u32,
            is_copy,
        });
    }

    /// Returns the text and its segments. The text is `None` if it is not UTF-8.
    pub(crate) fn finish_text(self) -> Option<(String, SpanSegments)> {
        let text = String::from_utf8(self.text).ok()?;
        Some((text, SpanSegments(self.segments)))
    }
}

/// The segments of a map without its original.
pub(crate) struct SpanSegments(Vec<TextSegment>);

impl SpanSegments {
    /// Adds the original, which is the one that the builder had.
    pub(crate) fn with_original(self, original: String) -> SpanMap {
        SpanMap {
            original,
            segments: self.0,
        }
    }
}
