//! Rows with one answer each, of which several make an item: the form in which allenai/decon keeps benchmarks.
//!
//! | field | has |
//! |---|---|
//! | `eval_key`, `split` | the name of the benchmark: `eval_key/split` |
//! | `eval_instance_index` | the number of the item |
//! | `config` | a part of the benchmark, whose items are numbered separately |
//! | `question`, `passage` | those of the item, equal in all of its rows |
//! | `answer` | one answer |
//! | `is_correct` | `true` for the right one of several; missing if there is only one |
//!
//! Rows of an item have the same benchmark, part, number and question. They need not be consecutive, so one entry per
//! item stays in memory until all rows are read.

use std::collections::HashMap;

use serde_json::Value;

use super::BenchmarkItem;
use super::field_values::{LabelledChoices, RowFields};

/// Name of the form, where others have the name of their preset.
pub(super) const ANSWER_ROWS: &str = "decon";

/// Names of parts that say nothing.
const WHOLE_PARTS: [&str; 4] = ["", "all", "main", "default"];

/// A row with one answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerRow {
    pub(super) benchmark: String,
    pub(super) id: String,
    pub(super) question: String,
    pub(super) passage: String,
    answer: String,
    is_correct: Option<bool>,
}

impl AnswerRow {
    /// Returns the row if it has the fields of this form.
    pub(super) fn from_fields(row: RowFields<'_>) -> Option<Self> {
        for field in ["eval_key", "eval_instance_index", "question"] {
            row.value(field)?;
        }
        let (key, split, part) = (
            row.text(&["eval_key"]),
            row.text(&["split"]),
            row.text(&["config"]),
        );
        let number = row.text(&["eval_instance_index"]);
        Some(Self {
            benchmark: if split.is_empty() {
                key
            } else {
                format!("{key}/{split}")
            },
            id: if WHOLE_PARTS.contains(&part.as_str()) {
                number
            } else {
                format!("{part}:{number}")
            },
            question: row.text(&["question"]),
            passage: row.text(&["passage"]),
            answer: row.text(&["answer"]),
            is_correct: match row.value("is_correct").as_deref() {
                Some(Value::Bool(is_correct)) => Some(*is_correct),
                _ => None,
            },
        })
    }
}

/// The answers of items, until all rows are read.
#[derive(Debug, Default)]
pub(super) struct AnswerGroups {
    /// The items of each benchmark and id. Several have different questions.
    items: HashMap<(u32, String), Vec<usize>>,
    /// The answers of each item, by its index, in the order of the rows.
    answers: HashMap<usize, Vec<(String, Option<bool>)>>,
}

impl AnswerGroups {
    /// Adds the answer of a row to its item, which is appended to `items` if the row is its first. Returns `true` if
    /// it was appended.
    pub(super) fn add_row(
        &mut self,
        benchmark: u32,
        row: AnswerRow,
        items: &mut Vec<BenchmarkItem>,
    ) -> bool {
        let places = self.items.entry((benchmark, row.id.clone())).or_default();
        let known = places
            .iter()
            .copied()
            .find(|&at| items[at].question == row.question);
        let at = known.unwrap_or(items.len());
        if known.is_none() {
            places.push(at);
            items.push(BenchmarkItem {
                benchmark,
                id: row.id,
                question: row.question,
                choices: Vec::new(),
                answer: String::new(),
                passage: row.passage,
            });
        }
        self.answers
            .entry(at)
            .or_default()
            .push((row.answer, row.is_correct));
        known.is_none()
    }

    /// Sets the choices and the answers of the items. Rows that do not say whether they are correct are no choices
    /// beside rows that do: they repeat the label of the right one.
    pub(super) fn finish_items(self, items: &mut [BenchmarkItem]) {
        for (at, answers) in self.answers {
            let is_marked = answers.iter().any(|(_, is_correct)| is_correct.is_some());
            let mut texts: Vec<String> = Vec::new();
            let mut right = None;
            for (text, is_correct) in answers {
                if text.is_empty() || is_marked && is_correct.is_none() {
                    continue;
                }
                let place = texts.iter().position(|known| *known == text);
                let place = place.unwrap_or_else(|| {
                    texts.push(text);
                    texts.len() - 1
                });
                if is_correct == Some(true) {
                    right.get_or_insert(place);
                }
            }
            let is_single = texts.len() == 1 && !is_marked;
            let choices = LabelledChoices::from_texts(texts).texts;
            let item = &mut items[at];
            if is_single {
                item.answer = choices.into_iter().next().unwrap_or_default();
                continue;
            }
            item.answer = right.map_or_else(String::new, |place| choices[place].clone());
            item.choices = choices;
        }
    }
}
