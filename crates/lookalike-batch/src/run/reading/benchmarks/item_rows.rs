//! Rows that are items as they are kept here: the form in which [`write_item_rows`] writes items of several benchmarks to
//! one file.
//!
//! | field | has |
//! |---|---|
//! | `benchmark`, `id` | the name of the benchmark and the id of the item in it |
//! | `question`, `answer`, `passage` | its texts; empty strings where it has none |
//! | `choices` | a list of texts, which may be empty |
//!
//! A row has all of these fields and no others. So files of other origin are not taken for this form, and what is read is
//! equal to what was written: names, ids, and texts to the character.

use lookalike_io::error::Result;
use lookalike_io::sink::{ByteWriter, OutputTarget, StagedOutput};
use serde::Serialize;

use super::field_values::RowFields;
use super::presets::ParsedItem;
use super::{BenchmarkItem, BenchmarkSet};

/// Name of the form, where others have the name of their preset.
pub(super) const ITEM_ROWS: &str = "items";

/// A row with an item of a named benchmark.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ItemRow {
    pub(super) benchmark: String,
    pub(super) id: String,
    pub(super) texts: ParsedItem,
}

impl ItemRow {
    /// Returns the row if it has the fields of this form.
    pub(super) fn from_fields(row: RowFields<'_>) -> Option<Self> {
        const FIELDS: [&str; 6] = [
            "benchmark",
            "id",
            "question",
            "choices",
            "answer",
            "passage",
        ];
        if row.names().any(|name| !FIELDS.contains(&name)) {
            return None;
        }
        let text = |name: &str| row.value(name)?.as_str().map(str::to_owned);
        let choices = row.value("choices")?;
        let choices = choices.as_array()?.iter();
        let choices = choices.map(|choice| choice.as_str().map(str::to_owned));
        Some(Self {
            benchmark: text("benchmark").filter(|name| !name.is_empty())?,
            id: text("id").filter(|id| !id.is_empty())?,
            texts: ParsedItem {
                question: text("question")?,
                choices: choices.collect::<Option<_>>()?,
                answer: text("answer")?,
                passage: text("passage")?,
            },
        })
    }
}

/// Writes items as JSONL, in the order in which they come.
///
/// # Errors
/// If the output cannot be created or written.
pub(in crate::run) fn write_item_rows<'a>(
    set: &BenchmarkSet,
    items: impl IntoIterator<Item = &'a BenchmarkItem>,
    output: &OutputTarget,
) -> Result<StagedOutput> {
    #[derive(Serialize)]
    struct WrittenRow<'a> {
        benchmark: &'a str,
        id: &'a str,
        question: &'a str,
        choices: &'a [String],
        answer: &'a str,
        passage: &'a str,
    }
    let mut writer = ByteWriter::create_output(output)?;
    for item in items {
        let row = WrittenRow {
            benchmark: &set.benchmarks[item.benchmark as usize].name,
            id: &item.id,
            question: &item.question,
            choices: &item.choices,
            answer: &item.answer,
            passage: &item.passage,
        };
        let mut line = serde_json::to_vec(&row).expect("strings have a form in JSON");
        line.push(b'\n');
        writer.write_bytes(&line)?;
    }
    writer.prepare_output()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(row: &Value) -> Option<ItemRow> {
        ItemRow::from_fields(RowFields::new(row.as_object().unwrap()))
    }

    #[test]
    fn rows_have_exactly_these_fields() {
        let row = json!({
            "benchmark": "mmlu/test", "id": "7", "question": "Which?", "choices": ["A. a", "B. b"], "answer": "B",
            "passage": ""
        });
        let item = read(&row).unwrap();
        assert_eq!((&*item.benchmark, &*item.id), ("mmlu/test", "7"));
        // Nothing is interpreted: neither labels of choices nor an answer that is one.
        assert_eq!(item.texts.choices, ["A. a", "B. b"]);
        assert_eq!(item.texts.answer, "B");
        for name in [
            "benchmark",
            "id",
            "question",
            "choices",
            "answer",
            "passage",
        ] {
            let mut without = row.clone();
            without.as_object_mut().unwrap().remove(name);
            assert_eq!(read(&without), None, "{name}");
        }
        for (name, value) in [
            ("subject", json!("x")),
            ("id", json!(7)),
            ("choices", json!([1])),
        ] {
            let mut changed = row.clone();
            changed[name] = value;
            assert_eq!(read(&changed), None, "{name}");
        }
    }
}
