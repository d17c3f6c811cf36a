//! Classes of texts by script and length.
//!
//! Lengths are counted in tokens: words in scripts written with spaces, single characters in scripts
//! written without. The limits between classes are numbers of Chinese characters. For words they are
//! about six tenths of these, because that many words say as much. So a class holds texts of similar
//! content in all scripts.

use crate::text::unicode::{CharacterClass, character_class};

/// The kind of script that a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptClass {
    /// At least four of five tokens are characters of scripts without spaces: Chinese, Japanese, Thai.
    WithoutSpaces,
    /// At least four of five tokens are words: English, Russian, Korean.
    WithSpaces,
    /// Both.
    Mixed,
    /// No letters and no digits.
    None,
}

impl ScriptClass {
    /// Returns the name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithoutSpaces => "without spaces",
            Self::WithSpaces => "with spaces",
            Self::Mixed => "mixed",
            Self::None => "no letters",
        }
    }
}

/// The length class of a text. The upper limits are [`CHARACTER_LIMITS`](Self::CHARACTER_LIMITS) or, for texts
/// written with spaces, [`WORD_LIMITS`](Self::WORD_LIMITS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LengthClass {
    in_words: bool,
    class: usize,
}

impl LengthClass {
    /// Largest number of characters in each class but the last.
    pub const CHARACTER_LIMITS: [usize; 4] = [15, 50, 300, 2000];

    /// Largest number of words in each class but the last.
    pub const WORD_LIMITS: [usize; 4] = [9, 30, 180, 1200];

    fn new(script: ScriptClass, tokens: usize) -> Self {
        let in_words = script == ScriptClass::WithSpaces;
        let borders = if in_words {
            Self::WORD_LIMITS
        } else {
            Self::CHARACTER_LIMITS
        };
        let class = borders.partition_point(|&most| most < tokens);
        Self { in_words, class }
    }

    /// Returns the name that reports use, for example `16-50 characters`.
    pub fn name(self) -> String {
        let (borders, unit) = if self.in_words {
            (Self::WORD_LIMITS, "words")
        } else {
            (Self::CHARACTER_LIMITS, "characters")
        };
        match self.class {
            0 => format!("up to {} {unit}", borders[0]),
            class if class == borders.len() => format!("over {} {unit}", borders[class - 1]),
            class => format!("{}-{} {unit}", borders[class - 1] + 1, borders[class]),
        }
    }
}

/// The script and length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextClass {
    /// Kind of script.
    pub script: ScriptClass,
    /// Length class.
    pub length: LengthClass,
    /// Number of words and of characters of scripts without spaces.
    pub tokens: usize,
}

impl TextClass {
    /// Returns the class of a text before normalisation. Cost: some ten nanoseconds a character.
    pub fn classify_text(text: &str) -> Self {
        let (mut characters, mut words) = (0, 0);
        let mut in_word = false;
        for point in text.chars() {
            let kind = character_class(point);
            characters += usize::from(kind == CharacterClass::Character);
            words += usize::from(kind == CharacterClass::Word && !in_word);
            in_word = kind == CharacterClass::Word || in_word && kind == CharacterClass::Ignorable;
        }
        let tokens = characters + words;
        let script = if tokens == 0 {
            ScriptClass::None
        } else if 5 * characters >= 4 * tokens {
            ScriptClass::WithoutSpaces
        } else if 5 * words >= 4 * tokens {
            ScriptClass::WithSpaces
        } else {
            ScriptClass::Mixed
        };
        Self {
            script,
            length: LengthClass::new(script, tokens),
            tokens,
        }
    }
}
