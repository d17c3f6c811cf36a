//! Words of commands that a message or a file shows, so that they work when they are pasted into a shell.

/// Quotes a word for a shell, unless it is a plain one.
pub(crate) fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-,=:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
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
            assert_eq!(quote_for_shell(word), quoted);
        }
    }
}
