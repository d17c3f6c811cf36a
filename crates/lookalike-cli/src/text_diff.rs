//! Word-by-word differences of two texts, for people.
//!
//! Text that only the first has is in `[-…-]`, text that only the second has in `{+…+}`. Colours repeat that
//! and add no meaning.

use lookalike_comparison::text_diff::{DiffPassage, PassageSide};

use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, format_count};

/// Number of words above which a common passage is shortened to its ends.
const LONG_PASSAGE: usize = 60;

/// Passages that [`mark_briefly`] shows.
const SHOWN_PASSAGES: usize = 40;

/// Words left at each end of a shortened passage.
const CONTEXT_WORDS: usize = 20;

/// Returns the passages as one text. `full` keeps long common passages unshortened.
pub(crate) fn mark_passages(
    passages: &[DiffPassage<'_>],
    full: bool,
    printer: &OutputPrinter,
) -> String {
    let pieces = passages.iter().map(|passage| {
        let piece = match passage.side {
            PassageSide::Both if !full => {
                shorten_passage(&passage.words, messages::words_in_common)
            }
            _ => passage.words.concat(),
        };
        mark_piece(passage.side, &piece, printer)
    });
    pieces.collect()
}

/// Returns the passages as one text of bounded length: long passages are shortened, whichever text has them, and the
/// passages beyond the first 40 are counted.
pub(crate) fn mark_briefly(passages: &[DiffPassage<'_>], printer: &OutputPrinter) -> String {
    let shown = passages.iter().take(SHOWN_PASSAGES).map(|passage| {
        let describe = match passage.side {
            PassageSide::Both => messages::words_in_common,
            PassageSide::Kept | PassageSide::Removed => messages::words_left_out,
        };
        let piece = shorten_passage(&passage.words, describe);
        mark_piece(passage.side, &piece, printer)
    });
    let mut text: String = shown.collect();
    let rest = passages.iter().skip(SHOWN_PASSAGES);
    let rest = rest.filter(|piece| piece.side != PassageSide::Both).count();
    if rest > 0 {
        let rest = NounCount(rest as u64, CountedNoun::FurtherDifference);
        text.push_str(&format!(" {}", messages::further_differences(rest)));
    }
    text
}

/// Returns a piece of text with the marks of its side.
fn mark_piece(side: PassageSide, piece: &str, printer: &OutputPrinter) -> String {
    let piece = escape_control(piece);
    match side {
        PassageSide::Both => piece.into_owned(),
        PassageSide::Kept => {
            let marked = format!("[-{piece}-]");
            printer
                .paint_for_output(TextTone::Left, &marked)
                .into_owned()
        }
        PassageSide::Removed => {
            let marked = format!("{{+{piece}+}}");
            printer
                .paint_for_output(TextTone::Right, &marked)
                .into_owned()
        }
    }
}

/// Returns the words, or the ends of a long passage with the number of words between them, which `describe` describes.
fn shorten_passage(words: &[&str], describe: fn(String) -> String) -> String {
    let is_word = |word: &&&str| !word.trim().is_empty();
    let hidden = match words.len().checked_sub(2 * CONTEXT_WORDS) {
        Some(_) if words.len() > LONG_PASSAGE => &words[CONTEXT_WORDS..words.len() - CONTEXT_WORDS],
        _ => return words.concat(),
    };
    let number = format_count(hidden.iter().filter(is_word).count() as u64);
    let (head, tail) = (
        &words[..CONTEXT_WORDS],
        &words[words.len() - CONTEXT_WORDS..],
    );
    format!(
        "{} {} {}",
        head.concat().trim_end(),
        describe(number),
        tail.concat().trim_start()
    )
}

/// Returns a text on one line. Line ends are where the page was wide enough, and say nothing of a copy.
pub(crate) fn join_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns two texts below each other, each behind its label, for passages whose differences would be no help.
pub(crate) fn show_both(texts: [(&str, &str); 2]) -> String {
    let lines = texts.map(|(label, text)| format!("{label}{}", escape_control(&join_lines(text))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use lookalike_comparison::text_diff::diff_passages;

    use super::*;

    fn shown(kept: &str, removed: &str) -> String {
        let passages = diff_passages(kept, removed);
        let side = |wanted: PassageSide| {
            let on = passages
                .iter()
                .filter(|p| p.side == PassageSide::Both || p.side == wanted);
            on.flat_map(|p| p.words.iter().copied()).collect::<String>()
        };
        assert_eq!(
            (
                &side(PassageSide::Kept)[..],
                &side(PassageSide::Removed)[..]
            ),
            (kept, removed)
        );
        mark_passages(&passages, false, &OutputPrinter::new(true))
    }

    #[test]
    fn differences_are_marked_word_by_word() {
        assert_eq!(
            shown("the old fox", "the new fox"),
            "the [-old-]{+new+} fox"
        );
        assert_eq!(
            shown("今天天气很好", "今天天气不好"),
            "今天天气[-很-]{+不+}好"
        );
        assert_eq!(shown("", "a"), "{+a+}");
        assert_eq!(shown("same", "same"), "same");
    }

    #[test]
    fn only_common_passages_are_shortened() {
        let words: Vec<_> = (0..200).map(|n| format!("w{n}")).collect();
        let common = words.join(" ");
        let text = shown(&format!("{common} x"), &format!("{common} y"));
        assert!(
            text.contains("words in common") && text.contains("[-x-]{+y+}"),
            "{text}"
        );
        assert!(
            !text.contains("w100") && text.starts_with("w0 ") && text.contains("w199"),
            "{text}"
        );
        let whole = mark_passages(
            &diff_passages(&common, &common),
            true,
            &OutputPrinter::new(true),
        );
        assert_eq!(whole, common);
        let passages = diff_passages(&common, "");
        let brief = mark_briefly(&passages, &OutputPrinter::new(true));
        assert!(
            brief.contains("… 359 words …") || brief.contains("words …"),
            "{brief}"
        );
        assert!(!brief.contains("w100") && brief.ends_with("-]"), "{brief}");
        let different = shown(&common, "");
        assert!(different.contains("w100"), "{different}");
    }
}
