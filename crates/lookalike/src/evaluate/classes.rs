//! What kind of text it is: its script and its length.
//!
//! Lengths are counted in tokens: words in scripts written with spaces, single characters in scripts
//! written without. The borders between classes are those of characters of Chinese, and for words
//! about six tenths of them, since that many words say as much: a class holds texts of like content.

use crate::text::unicode::{Class, class};

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    /// At least four of five tokens are characters of scripts without spaces: Chinese, Japanese, Thai.
    WithoutSpaces,
    /// At least four of five tokens are words: English, Russian, Korean.
    WithSpaces,
    /// Both.
    Mixed,
    /// It has no letter and no digit.
    None,
}

impl Script {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithoutSpaces => "without spaces",
            Self::WithSpaces => "with spaces",
            Self::Mixed => "mixed",
            Self::None => "no letters",
        }
    }
}

/// How long a text is: up to each of [`CHARACTERS`](Self::CHARACTERS), or longer; in words, up to each
/// of [`WORDS`](Self::WORDS), where it is written with spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LengthClass {
    in_words: bool,
    class: usize,
}

impl LengthClass {
    /// The most characters of a text of each class but the last.
    pub const CHARACTERS: [usize; 4] = [15, 50, 300, 2000];

    /// The most words of a text of each class but the last.
    pub const WORDS: [usize; 4] = [9, 30, 180, 1200];

    fn new(script: Script, tokens: usize) -> Self {
        let in_words = script == Script::WithSpaces;
        let borders = if in_words {
            Self::WORDS
        } else {
            Self::CHARACTERS
        };
        let class = borders.partition_point(|&most| most < tokens);
        Self { in_words, class }
    }

    /// The name in reports, such as `16-50 characters`.
    pub fn name(self) -> String {
        let (borders, unit) = if self.in_words {
            (Self::WORDS, "words")
        } else {
            (Self::CHARACTERS, "characters")
        };
        match self.class {
            0 => format!("up to {} {unit}", borders[0]),
            class if class == borders.len() => format!("over {} {unit}", borders[class - 1]),
            class => format!("{}-{} {unit}", borders[class - 1] + 1, borders[class]),
        }
    }
}

/// Script and length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextClass {
    /// How it is written.
    pub script: Script,
    /// How long it is.
    pub length: LengthClass,
    /// Words, and characters of scripts without spaces.
    pub tokens: usize,
}

impl TextClass {
    /// The class of a text, as it is before normalisation. Cost: some ten nanoseconds a character.
    pub fn of(text: &str) -> Self {
        let (mut characters, mut words) = (0, 0);
        let mut in_word = false;
        for point in text.chars() {
            let kind = class(point);
            characters += usize::from(kind == Class::Character);
            words += usize::from(kind == Class::Word && !in_word);
            in_word = kind == Class::Word || in_word && kind == Class::Ignorable;
        }
        let tokens = characters + words;
        let script = if tokens == 0 {
            Script::None
        } else if 5 * characters >= 4 * tokens {
            Script::WithoutSpaces
        } else if 5 * words >= 4 * tokens {
            Script::WithSpaces
        } else {
            Script::Mixed
        };
        Self {
            script,
            length: LengthClass::new(script, tokens),
            tokens,
        }
    }
}
