//! Lists and objects that stand in a string, as CSV has them.
//!
//! Libraries write a list into a cell of CSV as they print it. Read are JSON, and what Python and NumPy print:
//!
//! ```text
//! ["a", "b"]      ['a', "b"]      ['a' 'b']      [1 2 3]
//! {'text': array(['a', 'b'], dtype=object), 'label': array(['A', 'B'], dtype=object)}
//! ```
//!
//! NumPy prints a long array with `...` in its middle; such a value is no list, because items are missing.

use serde_json::{Map, Value};

/// Largest depth of nested values.
const MAX_DEPTH: usize = 32;

/// Returns the list or the object that a string spells. Other values are not looked for, because every text would be
/// one.
pub(super) fn parse_printed(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['[', '{', '(']) && !text.starts_with("array(") {
        return None;
    }
    if let Ok(value @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text) {
        return Some(value);
    }
    let mut reader = PrintedReader { text, at: 0 };
    let value = reader.read_value(0)?;
    reader.skip_blanks();
    let is_container = matches!(value, Value::Array(_) | Value::Object(_));
    (reader.at == text.len() && is_container).then_some(value)
}

struct PrintedReader<'a> {
    text: &'a str,
    at: usize,
}

impl PrintedReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Consumes `expected` if it is next, after white space.
    fn accept(&mut self, expected: char) -> bool {
        self.skip_blanks();
        let is_next = self.rest().starts_with(expected);
        self.at += if is_next { expected.len_utf8() } else { 0 };
        is_next
    }

    fn read_value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_blanks();
        match self.rest().chars().next()? {
            '[' => self.read_list(']', depth),
            '(' => self.read_list(')', depth),
            '{' => self.read_object(depth),
            quote @ ('\'' | '"') => self.read_string(quote).map(Value::String),
            _ => self.read_word(depth),
        }
    }

    fn read_list(&mut self, close: char, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.accept(close) {
            items.push(self.read_value(depth + 1)?);
            self.accept(',');
        }
        Some(Value::Array(items))
    }

    fn read_object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut fields = Map::new();
        while !self.accept('}') {
            let Value::String(name) = self.read_value(depth + 1)? else {
                return None;
            };
            if !self.accept(':') {
                return None;
            }
            fields.insert(name, self.read_value(depth + 1)?);
            self.accept(',');
        }
        Some(Value::Object(fields))
    }

    fn read_string(&mut self, quote: char) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        let rest = self.rest().to_owned();
        let mut chars = rest.char_indices();
        while let Some((at, found)) = chars.next() {
            if found == quote {
                self.at += at + 1;
                return Some(text);
            }
            if found != '\\' {
                text.push(found);
                continue;
            }
            let (_, escaped) = chars.next()?;
            match escaped {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\n' => {}
                'x' | 'u' | 'U' => {
                    let digits = match escaped {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let mut code = 0;
                    for _ in 0..digits {
                        code = code * 16 + chars.next()?.1.to_digit(16)?;
                    }
                    text.push(char::from_u32(code)?);
                }
                '\\' | '\'' | '"' => text.push(escaped),
                other => text.extend(['\\', other]),
            }
        }
        None
    }

    /// Reads a number, a constant, or `array(…)`, of which only the first argument counts.
    fn read_word(&mut self, depth: usize) -> Option<Value> {
        let is_end = |found: char| found.is_whitespace() || "[](){},:'\"".contains(found);
        let length = self.rest().find(is_end).unwrap_or(self.rest().len());
        let word = self.rest()[..length].to_owned();
        self.at += length;
        match word.as_str() {
            "array" if self.accept('(') => {
                let value = self.read_value(depth + 1)?;
                let end = self.rest().find(')')?;
                self.at += end + 1;
                Some(value)
            }
            "None" | "nan" | "NaN" | "null" => Some(Value::Null),
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            number => {
                // NumPy prints `1.` for 1.0.
                let digits = number.strip_suffix('.').unwrap_or(number);
                let is_number = digits.ends_with(|last: char| last.is_ascii_digit());
                let value = serde_json::from_str::<serde_json::Number>(digits).ok();
                value.filter(|_| is_number).map(Value::Number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_as_libraries_print_them() {
        for (text, expected) in [
            (r#"["a", "b"]"#, json!(["a", "b"])),
            (r#"['a', "it's"]"#, json!(["a", "it's"])),
            ("['a' 'b'\n 'c']", json!(["a", "b", "c"])),
            ("[1 2. -3]", json!([1, 2, -3])),
            (
                r"['\u4e2d\x41\n\\', None, True]",
                json!(["中A\n\\", null, true]),
            ),
            ("('x',)", json!(["x"])),
            ("[]", json!([])),
            (
                "{'text': array(['a', 'b'], dtype=object), 'label': array(['A', 'B'],\n      dtype=object)}",
                json!({"text": ["a", "b"], "label": ["A", "B"]}),
            ),
        ] {
            assert_eq!(parse_printed(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_are_no_lists() {
        for text in [
            "",
            "a",
            "12",
            "'quoted'",
            "[a, b]",
            "[1, 2] and more",
            "(in brackets) a text",
            "['open",
            "{'a' 1}",
            "{1: 2}",
            "[1 2 ... 8 9]",
            r"['\u12']",
            "array(1)",
        ] {
            assert_eq!(parse_printed(text), None, "{text}");
        }
        assert_eq!(parse_printed(&"[".repeat(500)), None);
    }
}
