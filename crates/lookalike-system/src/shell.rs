//! Words of commands as shells take them.

use crate::current;

/// The rules by which the shells of a system split a line into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellSyntax {
    /// The rules of `sh`, which other shells of Unix follow.
    Posix,
    /// The rules that `cmd` and PowerShell of Windows have in common, by which programs split their command line. `%NAME%` in
    /// `cmd` and `$NAME` in PowerShell are replaced also between quotation marks, and only `cmd` passes on a word that has a
    /// quotation mark itself.
    Windows,
}

impl ShellSyntax {
    /// The syntax of the shells of this system.
    pub const CURRENT: Self = current::SHELL_SYNTAX;

    /// Returns a word so that it stays one word, with the same characters, in a line for a shell. A plain word is not quoted.
    pub fn quote_word(self, word: &str) -> String {
        if !word.is_empty() && word.chars().all(|c| self.is_plain(c)) {
            return word.to_owned();
        }
        match self {
            Self::Posix => format!("'{}'", word.replace('\'', "'\\''")),
            Self::Windows => quote_for_windows(word),
        }
    }

    fn is_plain(self, character: char) -> bool {
        // PowerShell makes a list of words with a comma between them, and reads `@` and `%` as its own.
        let marks = match self {
            Self::Posix => "/._-,=:@%+",
            Self::Windows => "/\\._-=:+",
        };
        character.is_alphanumeric() || marks.contains(character)
    }
}

/// Returns a word between quotation marks. A program reads `\"` as a quotation mark, and then `\\` as `\`.
fn quote_for_windows(word: &str) -> String {
    let mut quoted = String::from("\"");
    let mut backslashes = 0;
    for character in word.chars() {
        if character == '"' {
            quoted.push_str(&"\\".repeat(backslashes + 1));
        }
        backslashes = if character == '\\' {
            backslashes + 1
        } else {
            0
        };
        quoted.push(character);
    }
    quoted.push_str(&"\\".repeat(backslashes));
    quoted.push('"');
    quoted
}

/// Returns a word as the shells of this system take it; see [`ShellSyntax::quote_word`].
pub fn quote_for_shell(word: &str) -> String {
    ShellSyntax::CURRENT.quote_word(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_of_unix_would_change_are_quoted() {
        for (word, quoted) in [
            ("in.jsonl", "in.jsonl"),
            ("s3://bucket/a,b=c:1", "s3://bucket/a,b=c:1"),
            ("新闻.jsonl", "新闻.jsonl"),
            ("my file.jsonl", "'my file.jsonl'"),
            ("it's", "'it'\\''s'"),
            ("*.jsonl", "'*.jsonl'"),
            (";", "';'"),
            ("", "''"),
        ] {
            assert_eq!(ShellSyntax::Posix.quote_word(word), quoted);
        }
    }

    #[test]
    fn words_that_a_shell_of_windows_would_change_are_quoted() {
        for (word, quoted) in [
            (r"C:\essays\élève.txt", r"C:\essays\élève.txt"),
            ("新闻.jsonl", "新闻.jsonl"),
            (r"C:\my essays\a.txt", r#""C:\my essays\a.txt""#),
            (r"C:\my essays\", r#""C:\my essays\\""#),
            ("title,body", r#""title,body""#),
            ("it's", r#""it's""#),
            (r#"a"b"#, r#""a\"b""#),
            (r#"a\"b"#, r#""a\\\"b""#),
            (";", r#"";""#),
            ("", r#""""#),
        ] {
            assert_eq!(ShellSyntax::Windows.quote_word(word), quoted);
        }
    }
}
