//! Cuts of copied text: whole sentences and lines of which all tokens stand in earlier documents.
//!
//! A text is divided into *segments*: sentences with the closing quotes and blanks after them, and line ends. A segment
//! is copied if all of its tokens are. Copied segments that follow one another are a *cut* if they are long enough
//! together. A segment without a token, such as a blank line, is cut with the copied segment before it, if the text
//! that stays before both ends with a line end.
//!
//! The first occurrence that a cut names is not cut itself: where it was, the cut names an earlier document.

use std::ops::Range;

use super::grams::token_width;
use super::repeats::CopiedPiece;
use super::{PassageSettings, to_visible_characters};
use crate::byte_reader::ByteReader;
use crate::text::{SpannedTokens, split_sentences};

/// A part of a text that stands in earlier documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextCut {
    /// Bytes of the text.
    pub bytes: Range<usize>,
    /// The pieces of which it consists, in order: all tokens of the cut.
    pub pieces: Vec<CopiedPiece>,
}

impl TextCut {
    /// Appends the cut as bytes: where it begins and ends (8 bytes each), the number of its pieces (4), and for each piece
    /// its tokens, its document and the token there (4 each).
    pub fn encode_cut(&self, into: &mut Vec<u8>) {
        into.extend((self.bytes.start as u64).to_le_bytes());
        into.extend((self.bytes.end as u64).to_le_bytes());
        into.extend((self.pieces.len() as u32).to_le_bytes());
        for piece in &self.pieces {
            let numbers = [
                piece.tokens.start,
                piece.tokens.end,
                piece.document,
                piece.start,
            ];
            into.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
        }
    }

    /// Reads a cut. Returns `None` if the bytes are too few, or if a range ends before it begins.
    pub fn decode_cut(reader: &mut ByteReader<'_>) -> Option<Self> {
        let bytes =
            usize::try_from(reader.read_u64()?).ok()?..usize::try_from(reader.read_u64()?).ok()?;
        let count = reader.read_u32()?;
        let pieces = (0..count).map(|_| {
            let piece = CopiedPiece {
                tokens: reader.read_u32()?..reader.read_u32()?,
                document: reader.read_u32()?,
                start: reader.read_u32()?,
            };
            let is_valid = piece.tokens.start <= piece.tokens.end;
            is_valid.then_some(piece)
        });
        let pieces = pieces.collect::<Option<Vec<_>>>()?;
        (bytes.start <= bytes.end).then_some(Self { bytes, pieces })
    }
}

/// Returns the cuts of a text, ascending: as much of its copied pieces as whole sentences and lines allow.
/// `pieces` ascend without an overlap, as [`join_repeated_runs`](super::join_repeated_runs) returns them.
pub fn choose_cuts(
    text: &str,
    tokens: &SpannedTokens,
    pieces: &[CopiedPiece],
    settings: PassageSettings,
) -> Vec<TextCut> {
    let mut cuts = Vec::new();
    let mut open = OpenCut::default();
    let mut kept_end = 0;
    for segment in divide_segments(text, tokens) {
        let goes_along = segment.tokens.is_empty()
            && !open.bytes.is_empty()
            && (kept_end == 0 || text[..kept_end].ends_with(['\n', '\r']));
        if goes_along || is_copied(&segment.tokens, pieces) {
            open.append_segment(segment);
        } else {
            kept_end = segment.bytes.end;
            cuts.extend(open.close_cut(tokens, pieces, settings));
        }
    }
    cuts.extend(open.close_cut(tokens, pieces, settings));
    cuts
}

/// Returns `true` if there are tokens and all of them lie in pieces.
fn is_copied(tokens: &Range<u32>, pieces: &[CopiedPiece]) -> bool {
    let mut covered = tokens.start;
    let first = pieces.partition_point(|piece| piece.tokens.end <= tokens.start);
    for piece in &pieces[first..] {
        if piece.tokens.start > covered || covered >= tokens.end {
            break;
        }
        covered = piece.tokens.end;
    }
    !tokens.is_empty() && covered >= tokens.end
}

/// Copied segments that follow one another so far.
#[derive(Default)]
struct OpenCut {
    bytes: Range<usize>,
    tokens: Range<u32>,
}

impl OpenCut {
    fn append_segment(&mut self, segment: SegmentSpan) {
        if self.bytes.is_empty() {
            (self.bytes, self.tokens) = (segment.bytes, segment.tokens);
        } else {
            self.bytes.end = segment.bytes.end;
            self.tokens.end = self.tokens.end.max(segment.tokens.end);
        }
    }

    /// Returns the cut if it is long enough, and begins anew.
    fn close_cut(
        &mut self,
        tokens: &SpannedTokens,
        pieces: &[CopiedPiece],
        settings: PassageSettings,
    ) -> Option<TextCut> {
        let OpenCut {
            bytes,
            tokens: range,
        } = std::mem::take(self);
        let values = &tokens.values()[range.start as usize..range.end as usize];
        let width: u64 = values.iter().map(|&it| u64::from(token_width(it))).sum();
        if bytes.is_empty() || width < u64::from(settings.min_width()) {
            return None;
        }
        let overlapping = pieces
            .iter()
            .filter(|piece| piece.tokens.start < range.end && range.start < piece.tokens.end);
        Some(TextCut {
            pieces: overlapping
                .map(|overlapping| overlapping.part_in(&range))
                .collect(),
            bytes,
        })
    }
}

/// A sentence, or a line end.
struct SegmentSpan {
    bytes: Range<usize>,
    tokens: Range<u32>,
}

/// Divides a text into segments, which contain every byte once. No segment ends within a token or within a character
/// as a reader sees it.
fn divide_segments(text: &str, tokens: &SpannedTokens) -> Vec<SegmentSpan> {
    let mut segments: Vec<SegmentSpan> = Vec::new();
    for border in segment_borders(text) {
        let (start, first) = segments
            .last()
            .map_or((0, 0), |piece| (piece.bytes.end, piece.tokens.end));
        let is_whole = to_visible_characters(text, 0..border).end == border;
        if let Some(end) = tokens.count_until(border)
            && is_whole
            && start < border
        {
            segments.push(SegmentSpan {
                bytes: start..border,
                tokens: first..end as u32,
            });
        }
    }
    segments
}

/// Returns where segments may end, in the order of the text.
fn segment_borders(text: &str) -> impl Iterator<Item = usize> {
    let mut end = 0;
    split_sentences(text).flat_map(move |sentence| {
        end += sentence.len();
        let line = sentence.trim_end_matches(is_line_end).len();
        if line < sentence.len() {
            [end - sentence.len() + line, end]
        } else {
            [end_of_trail(text, end); 2]
        }
    })
}

/// Returns the end of the closing quotes and blanks after a sentence.
fn end_of_trail(text: &str, end: usize) -> usize {
    let after = text[end..].trim_start_matches(is_closing);
    let after = after.trim_start_matches(|it: char| it.is_whitespace() && !is_line_end(it));
    text.len() - after.len()
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_closing(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』' | '）' | '】' | '》'
    )
}

/// Lets the pieces of a document's cuts name what stays: a piece whose first occurrence was cut is divided, and each part
/// names the place that its own first occurrence names. `find_cuts` returns the cuts of an earlier document, ascending,
/// for which this has been done already; an empty list if it has none.
///
/// # Errors
/// Those of `find_cuts`.
pub fn name_remaining_places<T: AsRef<[TextCut]>, E>(
    cuts: &mut [TextCut],
    mut find_cuts: impl FnMut(u32) -> Result<T, E>,
) -> Result<(), E> {
    for cut in cuts {
        for piece in std::mem::take(&mut cut.pieces) {
            let source_cuts = find_cuts(piece.document)?;
            push_remaining(&piece, source_cuts.as_ref(), &mut cut.pieces);
        }
    }
    Ok(())
}

/// Appends the parts of a piece, each with a place that stays. `source_cuts` are those of its first occurrence.
fn push_remaining(piece: &CopiedPiece, source_cuts: &[TextCut], kept: &mut Vec<CopiedPiece>) {
    let source = piece.source_tokens();
    let cut_pieces = source_cuts.iter().flat_map(|cut| &cut.pieces);
    let overlapping = cut_pieces
        .filter(|piece| piece.tokens.start < source.end && source.start < piece.tokens.end);
    let mut at = source.start;
    for cut in overlapping {
        let part = cut.part_in(&source);
        if at < part.tokens.start {
            push_joined(piece.part_in_source(&(at..part.tokens.start)), kept);
        }
        let own = piece.part_in_source(&part.tokens);
        at = part.tokens.end;
        let tokens = own.tokens;
        push_joined(CopiedPiece { tokens, ..part }, kept);
    }
    if at < source.end {
        push_joined(piece.part_in_source(&(at..source.end)), kept);
    }
}

/// Appends a piece, or extends the last one if it goes on in both documents.
fn push_joined(piece: CopiedPiece, pieces: &mut Vec<CopiedPiece>) {
    match pieces.last_mut() {
        Some(last)
            if last.document == piece.document
                && last.tokens.end == piece.tokens.start
                && last.source_tokens().end == piece.start =>
        {
            last.tokens.end = piece.tokens.end;
        }
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use super::super::repeats::{RepeatedRuns, RunCounter, RunList, join_repeated_runs};
    use super::*;
    use crate::Recipe;
    use crate::text::SpanTokenizer;

    fn tokenize(text: &str) -> SpannedTokens {
        let mut tokens = SpannedTokens::default();
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        tokenizer.tokenize_text(text, &mut tokens).unwrap();
        tokens
    }

    fn segments(text: &str) -> Vec<&str> {
        let segments = divide_segments(text, &tokenize(text));
        segments
            .iter()
            .map(|segment| &text[segment.bytes.clone()])
            .collect()
    }

    #[test]
    fn segments_are_sentences_and_line_ends() {
        for (text, expected) in [
            ("", &[][..]),
            ("One boat", &["One boat"]),
            ("\"One.\" Two.  Three", &["\"One.\" ", "Two.  ", "Three"]),
            ("One\r\n\r\nTwo.\n", &["One", "\r\n", "\r\n", "Two.", "\n"]),
            (
                "他说：“好。”\u{3000}再见。",
                &["他说：“好。”\u{3000}", "再见。"],
            ),
            ("3.14 is no end. Right", &["3.14 is no end. ", "Right"]),
            ("好。\u{301}再见", &["好。\u{301}再见"]),
        ] {
            assert_eq!(segments(text), expected, "{text:?}");
        }
    }

    /// The cuts of the documents of a corpus.
    #[derive(Default)]
    struct CutList(BTreeMap<u32, Vec<TextCut>>);

    impl CutList {
        fn add_cuts(&mut self, document: u32, mut cuts: Vec<TextCut>) {
            let find_cuts = |document| Ok::<_, Infallible>(self.cuts_of(document));
            let Ok(()) = name_remaining_places(&mut cuts, find_cuts);
            if !cuts.is_empty() {
                self.0.insert(document, cuts);
            }
        }

        fn cuts_of(&self, document: u32) -> &[TextCut] {
            self.0.get(&document).map_or(&[], Vec::as_slice)
        }

        fn documents(&self) -> Vec<u32> {
            self.0.keys().copied().collect()
        }
    }

    #[test]
    fn cuts_are_read_as_they_were_written() {
        let piece = |first: u32| CopiedPiece {
            tokens: first..first + 9,
            document: 70_000 + first,
            start: 3,
        };
        let cuts = [
            TextCut {
                bytes: 0..1 << 33,
                pieces: vec![piece(0), piece(9)],
            },
            TextCut {
                bytes: 7..7,
                pieces: Vec::new(),
            },
        ];
        let mut bytes = Vec::new();
        cuts.iter().for_each(|cut| cut.encode_cut(&mut bytes));
        let mut reader = ByteReader::new(&bytes);
        for cut in &cuts {
            assert_eq!(TextCut::decode_cut(&mut reader).as_ref(), Some(cut));
        }
        assert!(reader.is_at_end());
        for length in 0..bytes.len() {
            let mut reader = ByteReader::new(&bytes[..length]);
            let read = [(); 2].map(|()| TextCut::decode_cut(&mut reader));
            assert!(read.contains(&None), "{length}");
        }
    }

    /// Cuts the texts of a corpus, for passages of two words.
    fn cut_corpus(texts: &[String]) -> CutList {
        let settings = PassageSettings::new(2).unwrap();
        let tokens: Vec<_> = texts.iter().map(|text| tokenize(text)).collect();
        let mut runs = RunList::new(settings);
        let (counter, mut places) = (RunCounter::new(1), Vec::new());
        for tokens in &tokens {
            runs.fill_runs(tokens.values(), 0);
            counter.count_runs(&runs);
        }
        for (document, tokens) in (0..).zip(&tokens) {
            runs.fill_runs(tokens.values(), 0);
            counter.collect_repeated(&runs, document, &mut places);
        }
        let repeated = RepeatedRuns::from_places(places);
        let mut list = CutList::default();
        for (document, (text, tokens)) in (0..).zip(texts.iter().zip(&tokens)) {
            runs.fill_runs(tokens.values(), 0);
            let all = repeated.as_slice();
            let from = all.partition_point(|run| run.document() < document);
            let until = all.partition_point(|run| run.document() <= document);
            let pieces = join_repeated_runs(&all[from..until], &runs);
            list.add_cuts(document, choose_cuts(text, tokens, &pieces, settings));
        }
        list
    }

    fn remaining(text: &str, cuts: &[TextCut]) -> String {
        let mut rest = String::new();
        let mut at = 0;
        for cut in cuts {
            rest.push_str(&text[at..cut.bytes.start]);
            at = cut.bytes.end;
        }
        rest + &text[at..]
    }

    fn remaining_texts(texts: &[&str]) -> Vec<String> {
        let texts: Vec<String> = texts.iter().map(|&it| it.to_owned()).collect();
        let list = cut_corpus(&texts);
        let numbered = (0..).zip(&texts);
        numbered
            .map(|(document, text)| remaining(text, list.cuts_of(document)))
            .collect()
    }

    #[test]
    fn whole_sentences_are_cut() {
        for (text, expected) in [
            // A part of a sentence stays.
            ("The boat sails on. New.", "The boat sails on. New."),
            ("New. THE BOAT sails! More", "New. More"),
            ("The boat sails", ""),
            // Words that are too few stay.
            ("New the. Boat", "New the. Boat"),
            ("New.\n\nThe boat sails.\n\nMore.", "New.\n\nMore."),
            ("New. The boat sails.\n\nMore.", "New. \n\nMore."),
        ] {
            let rest = remaining_texts(&["The boat sails.", text]);
            assert_eq!(rest, ["The boat sails.", expected], "{text:?}");
        }
    }

    #[test]
    fn first_occurrence_that_was_cut_is_named_by_what_stays() {
        let texts = [
            "It is a boat.",
            "New. It is a boat.",
            "Other. It is a boat. It",
        ];
        let texts = texts.map(str::to_owned);
        let list = cut_corpus(&texts);
        let piece = |document: u32| list.cuts_of(document)[0].pieces[0].clone();
        assert_eq!(list.documents(), [1, 2]);
        for document in [1, 2] {
            assert_eq!((piece(document).document, piece(document).start), (0, 0));
            assert_eq!(piece(document).tokens, 1..5);
        }
    }

    fn sentences() -> impl Strategy<Value = String> {
        let sentence = proptest::collection::vec("[ab]", 0..5);
        let sentence = sentence.prop_map(|words| words.join(" "));
        let stop = prop_oneof![Just(". "), Just("."), Just("\n"), Just("。")];
        let text = proptest::collection::vec((sentence, stop), 0..6);
        text.prop_map(|parts| {
            parts
                .iter()
                .map(|(text, stop)| format!("{text}{stop}"))
                .collect()
        })
    }

    /// Returns which tokens lie in a run of two words that an earlier text has.
    fn scan_copied(corpus: &[SpannedTokens], document: usize) -> Vec<bool> {
        let values = corpus[document].values();
        let mut copied = vec![false; values.len()];
        for start in 0..values.len().saturating_sub(1) {
            let run = &values[start..start + 2];
            let has_run = |it: &SpannedTokens| it.values().windows(2).any(|window| window == run);
            if corpus[..document].iter().any(has_run) {
                copied[start..start + 2].fill(true);
            }
        }
        copied
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn what_is_cut_stays_elsewhere(texts in proptest::collection::vec(sentences(), 0..6)) {
            let list = cut_corpus(&texts);
            let tokens: Vec<_> = texts.iter().map(|text| tokenize(text)).collect();
            let is_cut = |document: usize, token: usize| {
                let bytes = tokens[document].byte_range(token..token + 1);
                let mut cuts = list.cuts_of(document as u32).iter();
                cuts.any(|cut| cut.bytes.start <= bytes.start && bytes.end <= cut.bytes.end)
            };
            for (document, text) in texts.iter().enumerate() {
                let copied = scan_copied(&tokens, document);
                // Every segment that is copied and long enough alone is cut.
                for segment in divide_segments(text, &tokens[document]) {
                    let own = segment.tokens.start as usize..segment.tokens.end as usize;
                    if own.len() >= 2 && copied[own.clone()].iter().all(|&it| it) {
                        prop_assert!(own.clone().all(|cut| is_cut(document, cut)));
                    }
                }
                let mut named = vec![];
                for cut in list.cuts_of(document as u32) {
                    for piece in &cut.pieces {
                        for at in 0..piece.tokens.end - piece.tokens.start {
                            let token = (piece.tokens.start + at) as usize;
                            let (first, place) = (piece.document as usize, (piece.start + at) as usize);
                            prop_assert!(first < document && copied[token]);
                            prop_assert_eq!(tokens[first].values()[place], tokens[document].values()[token]);
                            prop_assert!(!is_cut(first, place));
                            named.push(token);
                        }
                    }
                }
                let cut: Vec<usize> = (0..copied.len()).filter(|&it| is_cut(document, it)).collect();
                prop_assert_eq!(named, cut);
            }
        }
    }
}
