//! Fields of a row as texts, lists and answers.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::printed_values::parse_printed;

/// The fields of a row. A null is a missing field.
#[derive(Clone, Copy)]
pub(super) struct RowFields<'a> {
    fields: &'a Map<String, Value>,
}

/// The notation of an answer that is one of the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerNotation {
    /// The number of a choice, from 0.
    IndexFromZero,
    /// The number of a choice, from 1.
    IndexFromOne,
    /// The label of a choice, by default `A`, `B`, …; several of them for several right choices.
    Label,
    /// Not known: the text of a choice, else its label, else its number from 0.
    Any,
}

/// The choices of an item, with their labels if the row has some.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LabelledChoices {
    pub(super) texts: Vec<String>,
    labels: Vec<String>,
}

impl<'a> RowFields<'a> {
    pub(super) fn new(fields: &'a Map<String, Value>) -> Self {
        Self { fields }
    }

    /// Returns the names of the fields that have a value.
    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        let has_value = |(name, value): (&'a String, &Value)| (!value.is_null()).then_some(&**name);
        self.fields.iter().filter_map(has_value)
    }

    /// Returns the fields of the inner object `doc`, as evaluation harnesses log a row of a benchmark.
    pub(super) fn inner_document(self) -> Option<Self> {
        match self.fields.get("doc") {
            Some(Value::Object(fields)) => Some(Self { fields }),
            _ => None,
        }
    }

    /// Returns a value that is not null. A field with this very name comes before a path `a.b`, which also reaches
    /// into an object that is spelled in a string.
    pub(super) fn value(self, path: &str) -> Option<Cow<'a, Value>> {
        let found = match self.fields.get(path) {
            Some(value) => Cow::Borrowed(value),
            None => {
                let (outer, inner) = path.split_once('.')?;
                match self.fields.get(outer)? {
                    Value::Object(fields) => return RowFields { fields }.value(inner),
                    Value::String(text) => {
                        let Value::Object(fields) = parse_printed(text)? else {
                            return None;
                        };
                        let value = RowFields { fields: &fields }.value(inner)?;
                        Cow::Owned(value.into_owned())
                    }
                    _ => return None,
                }
            }
        };
        Some(found).filter(|value| !value.is_null())
    }

    /// Returns the first of these fields that has a value.
    pub(super) fn first_value(self, paths: &[&str]) -> Option<Cow<'a, Value>> {
        paths.iter().find_map(|path| self.value(path))
    }

    /// Returns the first of these fields as text; empty if none is a string, a number or a truth value.
    pub(super) fn text(self, paths: &[&str]) -> String {
        self.first_value(paths)
            .and_then(|value| text_of(&value))
            .unwrap_or_default()
    }

    /// Returns the strings of a list, or nothing if the field is none.
    pub(super) fn texts(self, paths: &[&str]) -> Vec<String> {
        self.first_value(paths)
            .and_then(|value| texts_of(&value))
            .unwrap_or_default()
    }

    /// Returns the choices in a field, without labels that stand in their texts.
    pub(super) fn choices(self, paths: &[&str]) -> LabelledChoices {
        self.first_value(paths)
            .and_then(|value| LabelledChoices::from_value(&value))
            .unwrap_or_default()
    }

    /// Returns the choices that have a field each; those without a value are left out.
    pub(super) fn choices_of_fields(self, paths: &[&str]) -> LabelledChoices {
        let values = paths.iter().filter_map(|path| self.value(path));
        LabelledChoices::from_texts(values.filter_map(|value| text_of(&value)).collect())
    }
}

/// Returns a single value as text, without white space around it.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the items of a list of single values, also of one that a string spells. Nulls are left out.
pub(super) fn texts_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            items.map(text_of).collect()
        }
        Value::String(text) => match parse_printed(text)? {
            list @ Value::Array(_) => texts_of(&list),
            _ => None,
        },
        _ => None,
    }
}

impl LabelledChoices {
    /// Creates choices from texts. Labels in front of them, such as `(A)` or `B.`, are taken off if every text has its
    /// own.
    pub(super) fn from_texts(texts: Vec<String>) -> Self {
        let labels: Vec<String> = (0..texts.len()).map(letter_label).collect();
        let stripped: Option<Vec<String>> = (texts.iter().zip(&labels))
            .map(|(text, label)| strip_label(text, label).map(str::to_owned))
            .collect();
        match stripped {
            Some(texts) if texts.len() > 1 => Self { texts, labels },
            _ => Self { texts, labels },
        }
    }

    /// Reads a list of texts, an object with the lists `text` and `label`, a list of objects with `text` and `label`,
    /// or an object with the texts by their labels.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::from_value(&parse_printed(text)?),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let mut choices = Self::default();
                for item in items {
                    let item = RowFields::new(item.as_object()?);
                    choices.texts.push(text_of(&*item.value("text")?)?);
                    choices.labels.push(item.text(&["label", "id"]));
                }
                Some(choices)
            }
            Value::Array(_) => texts_of(value).map(Self::from_texts),
            Value::Object(fields) => {
                let row = RowFields::new(fields);
                if let Some(texts) = row.value("text").and_then(|texts| texts_of(&texts)) {
                    let labels = row.texts(&["label"]);
                    return Some(Self { texts, labels });
                }
                let by_label: Option<Vec<_>> = fields
                    .iter()
                    .filter(|(_, text)| !text.is_null())
                    .map(|(label, text)| Some((label.clone(), text_of(text)?)))
                    .collect();
                let (labels, texts) = by_label?.into_iter().unzip();
                Some(Self { texts, labels })
            }
            _ => None,
        }
    }

    /// Returns the text of the right choice, or of the right ones by line. An answer that names no choice is its own
    /// text if there are no choices or if it is longer than a label; otherwise it is unknown and empty.
    pub(super) fn resolve_answer(
        &self,
        answer: Option<&Value>,
        notation: AnswerNotation,
    ) -> String {
        match answer {
            None => String::new(),
            Some(Value::Array(answers)) => {
                let resolved = answers
                    .iter()
                    .map(|one| self.resolve_answer(Some(one), notation));
                let resolved: Vec<String> = resolved.filter(|text| !text.is_empty()).collect();
                resolved.join("\n")
            }
            Some(answer) => {
                let Some(text) = text_of(answer).filter(|text| !text.is_empty()) else {
                    return String::new();
                };
                let found = self.find_choices(&text, answer.is_number(), notation);
                found.unwrap_or_else(|| {
                    let is_text = self.texts.is_empty() || text.chars().count() > 2;
                    if is_text { text } else { String::new() }
                })
            }
        }
    }

    fn find_choices(
        &self,
        answer: &str,
        is_number: bool,
        notation: AnswerNotation,
    ) -> Option<String> {
        let by_text = || self.texts.iter().find(|text| *text == answer).cloned();
        let by_label = || self.find_labels(answer);
        let by_index = |first: i64| {
            let index = answer.parse::<i64>().ok()?.checked_sub(first)?;
            self.texts.get(usize::try_from(index).ok()?).cloned()
        };
        match notation {
            AnswerNotation::IndexFromZero => by_index(0).or_else(by_label).or_else(by_text),
            AnswerNotation::IndexFromOne => by_index(1).or_else(by_label).or_else(by_text),
            AnswerNotation::Label => {
                let by_number = || by_index(i64::from(!is_number));
                by_label().or_else(by_text).or_else(by_number)
            }
            AnswerNotation::Any if is_number => by_index(0),
            AnswerNotation::Any => by_text().or_else(by_label).or_else(|| by_index(0)),
        }
    }

    /// Returns the texts of the choices with these labels: `B`, `(B)`, `B.`, or several as in `ABD` and `A, C`.
    fn find_labels(&self, answer: &str) -> Option<String> {
        let text_with = |label: &str| {
            let same = |known: &String| known.eq_ignore_ascii_case(label);
            let at = self.labels.iter().position(same)?;
            self.texts.get(at).cloned()
        };
        let is_around = |found: char| "().:[]、，．".contains(found) || found.is_whitespace();
        let bare = answer.trim_matches(is_around);
        if let Some(text) = text_with(answer).or_else(|| text_with(bare)) {
            return Some(text);
        }
        let letters: Vec<char> = bare
            .chars()
            .filter(|&found| !is_around(found) && found != ',')
            .collect();
        let is_series = letters.iter().all(char::is_ascii_uppercase)
            && letters.windows(2).all(|pair| pair[0] < pair[1]);
        let texts = letters.iter().map(|letter| text_with(&letter.to_string()));
        let texts: Vec<String> = texts.collect::<Option<_>>().filter(|_| is_series)?;
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

/// Returns the label of the choice at an index: `A` to `Z`, then numbers.
fn letter_label(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// Returns a text without its label: `(A)`, `A)`, `A.`, `A:`, or the same in full width.
fn strip_label<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let text = text.trim_start();
    let opened = text.strip_prefix(['(', '（']);
    let rest = opened.unwrap_or(text).strip_prefix(label)?;
    let closing: &[char] = match opened {
        Some(_) => &[')', '）'],
        None => &[')', '）', '.', '．', ':', '：', '、'],
    };
    rest.strip_prefix(closing).map(str::trim_start)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choices(value: Value) -> LabelledChoices {
        LabelledChoices::from_value(&value).unwrap()
    }

    #[test]
    fn fields_are_reached_by_paths() {
        let row = json!({
            "a": {"b": {"c": 1}}, "a.d": "own", "e": null, "f": "{'g': ['x']}", "n": {"o": null}
        });
        let fields = RowFields::new(row.as_object().unwrap());
        assert_eq!(fields.text(&["a.b.c"]), "1");
        assert_eq!(fields.text(&["a.d"]), "own");
        assert_eq!(fields.texts(&["f.g"]), ["x"]);
        for missing in ["e", "n.o", "a.b.d", "a.d.e", "z"] {
            assert_eq!(fields.value(missing), None, "{missing}");
        }
        assert_eq!(fields.names().collect::<Vec<_>>(), ["a", "a.d", "f", "n"]);
    }

    #[test]
    fn choices_have_many_forms() {
        for value in [
            json!(["red", "blue"]),
            json!({"text": ["red", "blue"], "label": ["A", "B"]}),
            json!([{"label": "A", "text": "red"}, {"label": "B", "text": "blue"}]),
            json!({"A": "red", "B": "blue", "C": null}),
            json!("['red' 'blue']"),
            json!(["(A)red", "(B) blue"]),
            json!(["A. red", "B．blue"]),
        ] {
            let found = choices(value.clone());
            assert_eq!(found.texts, ["red", "blue"], "{value}");
            assert_eq!(found.labels, ["A", "B"], "{value}");
        }
        // Not every text has its label.
        let kept = choices(json!(["A. red", "blue"]));
        assert_eq!(kept.texts, ["A. red", "blue"]);
        assert_eq!(LabelledChoices::from_value(&json!(["a", ["b"]])), None);
        assert_eq!(LabelledChoices::from_value(&json!("red; blue")), None);
    }

    #[test]
    fn answers_are_texts_of_choices() {
        use AnswerNotation::*;
        let plain = choices(json!(["4", "2", "1", "0"]));
        let numbered = choices(json!({"text": ["red", "blue"], "label": ["1", "2"]}));
        for (choices, answer, notation, expected) in [
            (&plain, json!(1), IndexFromZero, "2"),
            (&plain, json!("1"), IndexFromZero, "2"),
            (&plain, json!("2"), IndexFromOne, "2"),
            (&plain, json!("2"), Any, "2"),
            (&plain, json!(2), Any, "1"),
            (&plain, json!("C"), Label, "1"),
            (&plain, json!("(C)"), Label, "1"),
            (&plain, json!("ABD"), Label, "4\n2\n0"),
            (&plain, json!("A, C"), Label, "4\n1"),
            (&plain, json!(["A", "C"]), Label, "4\n1"),
            (&plain, json!([0, 3]), IndexFromZero, "4\n0"),
            (&plain, json!(-1), IndexFromZero, ""),
            (&plain, json!("E"), Label, ""),
            (&plain, json!(""), Label, ""),
            (&plain, json!("none of these"), Label, "none of these"),
            (&numbered, json!("2"), Label, "blue"),
            (&LabelledChoices::default(), json!("E"), Label, "E"),
            (&LabelledChoices::default(), json!(7), Any, "7"),
        ] {
            let found = choices.resolve_answer(Some(&answer), notation);
            assert_eq!(found, expected, "{answer} {notation:?}");
        }
        assert_eq!(plain.resolve_answer(None, Any), "");
    }
}
