//! The fields of well-known benchmarks, recognised by the fields of a row.
//!
//! A preset matches a row that has all of its required fields, each in the right shape. If several match, the one with
//! the most required fields counts, and among these the first of the table; so the choice depends on the row alone.
//! A preset stands for every benchmark with the same fields, not only for the one that it is named after.
//!
//! | preset | required fields | question; choices; answer; passage |
//! |---|---|---|
//! | `mmlu` | `question`, `choices` (list), `answer` | as named; the answer is a number from 0 |
//! | `mmlu-pro` | `question`, `options` (list), `answer`, `answer_index` | by the index, else the letter |
//! | `gsm8k` | `question`, `answer` with `####` | the whole answer with its steps |
//! | `arc` | `question` or `question_stem`, `choices` with labels, `answerKey` | also CommonsenseQA and OpenBookQA |
//! | `arc-stem` | `question.stem`, `question.choices`, `answerKey` | their first publication |
//! | `hellaswag` | `ctx`, `endings` | `label` from 0 |
//! | `agieval` | `question`, `options` (list), `label` | letters of one or several choices; `passage` |
//! | `agieval-query` | `query`, `choices` (list), `gold` | the question is cut out of the query |
//! | `c-eval` | `question`, `A`, `B`, `C`, `D` | also CMMLU; `answer` is a letter |
//! | `humaneval` | `prompt`, `canonical_solution` | |
//! | `mbpp` | `text` or `prompt`, `code` | |
//! | `truthfulqa` | `question`, `best_answer`, `correct_answers`, `incorrect_answers` | all answers are choices |
//! | `truthfulqa-choice` | `question`, `mc1_targets` | the choice with label 1 |
//! | `winogrande` | `sentence`, `option1`, `option2` | `answer` from 1 |
//! | `piqa` | `goal`, `sol1`, `sol2` | `label` from 0 |
//! | `copa` | `premise`, `choice1`, `choice2` | `label` from 0 |
//! | `medmcqa` | `question`, `opa`, `opb`, `cop` | `cop` from 0 |
//! | `boolq` | `question`, `passage`, `answer` or `label` (truth value) | `yes` or `no` |
//! | `squad` | `question`, `context`, `answers.text` | the first answer |
//! | `triviaqa` | `question`, `answer.value` or `answer.aliases` | the value, else the first alias |
//! | `nq-open` | `question`, `answer` (list) | the first answer |
//! | `drop` | `passage`, `question`, `answers_spans.spans` | the first span |
//! | `math` | `problem`, `solution` | the whole solution |
//! | `gpqa` | `Question`, `Correct Answer`, `Incorrect Answer 1` | the right answer is the first choice |
//! | `sciq` | `question`, `correct_answer`, `distractor1` | the same; `support` |
//! | `siqa` | `context`, `question`, `answerA`, `answerB` | `label` from 1, or a letter |
//! | `race` | `article`, `question`, `options` (list), `answer` | a letter |
//! | `lambada` | `text` and nothing else | the last word is the answer |
//! | `ifeval` | `prompt`, `instruction_id_list` | |
//! | `aime` | `problem`, `answer` | |
//! | `bbh` | `input`, `target` | |
//! | `nli` | `premise`, `hypothesis` | the premise is the passage |
//! | `mt-bench` | `turns` (list) | all turns |
//! | `question-choices` | a question, choices in any form | an answer in any form |
//! | `question-answer` | a question, an answer | |
//! | `question` | a question | |
//! | `instruction` | `instruction` | `output` |
//! | `prompt` | `prompt` | an answer |
//!
//! Names that begin with a capital letter are accepted where publications differ in it.

use serde_json::Value;

use super::field_values::{AnswerNotation, LabelledChoices, RowFields, text_of, texts_of};

/// The texts of an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ParsedItem {
    pub(super) question: String,
    pub(super) choices: Vec<String>,
    pub(super) answer: String,
    pub(super) passage: String,
}

/// A kind of rows.
pub(super) struct ItemPreset {
    pub(super) name: &'static str,
    required: &'static [RequiredField],
    /// The only other fields that a row may have; `None` allows all.
    allowed: Option<&'static [&'static str]>,
    build: fn(RowFields<'_>) -> ParsedItem,
}

/// A field under one of several names.
struct RequiredField {
    names: &'static [&'static str],
    shape: FieldShape,
}

#[derive(Clone, Copy)]
enum FieldShape {
    /// A string.
    Text,
    /// A string, a number or a truth value.
    Single,
    /// A truth value, or one that is spelled as a string or as 0 or 1.
    Truth,
    /// A string with a short answer after `####`.
    WorkedAnswer,
    /// A list of single values.
    List,
    /// Choices in any form.
    Choices,
    /// Choices that have labels of their own.
    LabelledChoices,
    /// Any value.
    Any,
}

impl FieldShape {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Single => text_of(value).is_some(),
            Self::Truth => truth_of(value).is_some(),
            Self::WorkedAnswer => value.as_str().is_some_and(|text| text.contains("####")),
            Self::List => texts_of(value).is_some(),
            Self::Choices => has_choices(value),
            Self::LabelledChoices => texts_of(value).is_none() && has_choices(value),
            Self::Any => true,
        }
    }
}

fn has_choices(value: &Value) -> bool {
    LabelledChoices::from_value(value).is_some_and(|choices| !choices.texts.is_empty())
}

const fn text(names: &'static [&'static str]) -> RequiredField {
    shaped(names, FieldShape::Text)
}

const fn single(names: &'static [&'static str]) -> RequiredField {
    shaped(names, FieldShape::Single)
}

const fn list(names: &'static [&'static str]) -> RequiredField {
    shaped(names, FieldShape::List)
}

const fn shaped(names: &'static [&'static str], shape: FieldShape) -> RequiredField {
    RequiredField { names, shape }
}

const QUESTION: &[&str] = &["question", "Question"];
const ANY_QUESTION: &[&str] = &["question", "Question", "question_stem", "query", "stem"];
const ANY_CHOICES: &[&str] = &["choices", "options", "Choices", "Options", "endings"];
const ANSWER: &[&str] = &["answer", "Answer"];
const ANY_ANSWER: &[&str] = &[
    "answer",
    "Answer",
    "target",
    "correct_answer",
    "label",
    "gold",
    "final_answer",
    "output",
    "response",
    "completion",
];
/// Fields of the right choice, the most exact ones first.
const CHOSEN: &[&str] = &[
    "answerKey",
    "answer_idx",
    "answer_index",
    "correct_option",
    "correct",
    "answer",
    "Answer",
    "label",
    "gold",
    "target",
    "correct_answer",
];
const PASSAGE: &[&str] = &[
    "passage", "context", "article", "support", "Passage", "Context",
];
const PROBLEM: &[&str] = &["problem", "Problem"];

/// All presets.
static PRESETS: [ItemPreset; 38] = [
    ItemPreset {
        name: "mmlu",
        required: &[text(QUESTION), list(&["choices"]), single(ANSWER)],
        allowed: None,
        build: |row| with_choices(row, &["choices"], ANSWER, AnswerNotation::IndexFromZero),
    },
    ItemPreset {
        name: "mmlu-pro",
        required: &[
            text(QUESTION),
            list(&["options"]),
            single(ANSWER),
            single(&["answer_index"]),
        ],
        allowed: None,
        build: |row| {
            let notation = AnswerNotation::IndexFromZero;
            with_choices(row, &["options"], &["answer_index", "answer"], notation)
        },
    },
    ItemPreset {
        name: "gsm8k",
        required: &[text(QUESTION), shaped(ANSWER, FieldShape::WorkedAnswer)],
        allowed: None,
        build: |row| without_choices(row, QUESTION, ANSWER),
    },
    ItemPreset {
        name: "arc",
        required: &[
            text(&["question", "question_stem"]),
            shaped(&["choices"], FieldShape::LabelledChoices),
            single(&["answerKey"]),
        ],
        allowed: None,
        build: |row| with_choices(row, &["choices"], &["answerKey"], AnswerNotation::Label),
    },
    ItemPreset {
        name: "arc-stem",
        required: &[
            text(&["question.stem"]),
            shaped(&["question.choices"], FieldShape::Choices),
        ],
        allowed: None,
        build: |row| ParsedItem {
            question: row.text(&["question.stem"]),
            ..with_choices(
                row,
                &["question.choices"],
                &["answerKey"],
                AnswerNotation::Label,
            )
        },
    },
    ItemPreset {
        name: "hellaswag",
        required: &[text(&["ctx"]), list(&["endings"])],
        allowed: None,
        build: |row| ParsedItem {
            question: row.text(&["ctx"]),
            ..with_choices(row, &["endings"], &["label"], AnswerNotation::IndexFromZero)
        },
    },
    ItemPreset {
        name: "agieval",
        required: &[
            text(QUESTION),
            list(&["options"]),
            shaped(&["label"], FieldShape::Any),
        ],
        allowed: None,
        build: |row| with_choices(row, &["options"], &["label"], AnswerNotation::Label),
    },
    ItemPreset {
        name: "agieval-query",
        required: &[
            text(&["query"]),
            list(&["choices"]),
            shaped(&["gold"], FieldShape::Any),
        ],
        allowed: None,
        build: agieval_query,
    },
    ItemPreset {
        name: "c-eval",
        required: &[
            text(QUESTION),
            single(&["A"]),
            single(&["B"]),
            single(&["C"]),
            single(&["D"]),
        ],
        allowed: None,
        build: |row| {
            let letters = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
            let choices = row.choices_of_fields(&letters);
            with_chosen(row, choices, ANSWER, AnswerNotation::Label)
        },
    },
    ItemPreset {
        name: "humaneval",
        required: &[text(&["prompt"]), text(&["canonical_solution"])],
        allowed: None,
        build: |row| without_choices(row, &["prompt"], &["canonical_solution"]),
    },
    ItemPreset {
        name: "mbpp",
        required: &[text(&["text", "prompt"]), text(&["code"])],
        allowed: None,
        build: |row| without_choices(row, &["text", "prompt"], &["code"]),
    },
    ItemPreset {
        name: "truthfulqa",
        required: &[
            text(QUESTION),
            text(&["best_answer", "Best Answer"]),
            shaped(&["correct_answers", "Correct Answers"], FieldShape::Any),
            shaped(&["incorrect_answers", "Incorrect Answers"], FieldShape::Any),
        ],
        allowed: None,
        build: truthful_answers,
    },
    ItemPreset {
        name: "truthfulqa-choice",
        required: &[text(QUESTION), list(&["mc1_targets.choices"])],
        allowed: None,
        build: |row| {
            let choices = row.texts(&["mc1_targets.choices"]);
            let labels = row.texts(&["mc1_targets.labels"]);
            let right = labels.iter().position(|label| label == "1");
            ParsedItem {
                question: row.text(QUESTION),
                answer: right
                    .and_then(|at| choices.get(at).cloned())
                    .unwrap_or_default(),
                choices,
                passage: String::new(),
            }
        },
    },
    ItemPreset {
        name: "winogrande",
        required: &[
            text(&["sentence"]),
            single(&["option1"]),
            single(&["option2"]),
        ],
        allowed: None,
        build: |row| {
            let choices = row.choices_of_fields(&["option1", "option2"]);
            ParsedItem {
                question: row.text(&["sentence"]),
                ..with_chosen(row, choices, ANSWER, AnswerNotation::IndexFromOne)
            }
        },
    },
    ItemPreset {
        name: "piqa",
        required: &[text(&["goal"]), single(&["sol1"]), single(&["sol2"])],
        allowed: None,
        build: |row| {
            let choices = row.choices_of_fields(&["sol1", "sol2"]);
            ParsedItem {
                question: row.text(&["goal"]),
                ..with_chosen(row, choices, &["label"], AnswerNotation::IndexFromZero)
            }
        },
    },
    ItemPreset {
        name: "copa",
        required: &[
            text(&["premise"]),
            single(&["choice1"]),
            single(&["choice2"]),
        ],
        allowed: None,
        build: |row| {
            let choices = row.choices_of_fields(&["choice1", "choice2"]);
            ParsedItem {
                // Its field `question` says only `cause` or `effect`.
                question: row.text(&["premise"]),
                ..with_chosen(row, choices, &["label"], AnswerNotation::IndexFromZero)
            }
        },
    },
    ItemPreset {
        name: "medmcqa",
        required: &[
            text(QUESTION),
            single(&["opa"]),
            single(&["opb"]),
            single(&["cop"]),
        ],
        allowed: None,
        build: |row| {
            let choices = row.choices_of_fields(&["opa", "opb", "opc", "opd"]);
            with_chosen(row, choices, &["cop"], AnswerNotation::IndexFromZero)
        },
    },
    ItemPreset {
        name: "boolq",
        required: &[
            text(QUESTION),
            text(&["passage"]),
            shaped(&["answer", "label"], FieldShape::Truth),
        ],
        allowed: None,
        build: |row| {
            let answer = row.first_value(&["answer", "label"]);
            let answer = match answer.and_then(|value| truth_of(&value)) {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            ParsedItem {
                answer: answer.to_owned(),
                ..without_choices(row, QUESTION, &[])
            }
        },
    },
    ItemPreset {
        name: "squad",
        required: &[text(QUESTION), text(&["context"]), list(&["answers.text"])],
        allowed: None,
        build: |row| with_first_answer(row, &["answers.text"]),
    },
    ItemPreset {
        name: "triviaqa",
        required: &[
            text(QUESTION),
            shaped(&["answer.value", "answer.aliases"], FieldShape::Any),
        ],
        allowed: None,
        build: |row| ParsedItem {
            // The pages that it comes with are no passage, because the question does not need them.
            question: row.text(QUESTION),
            answer: first_answer(row, &["answer.value", "answer.aliases"]),
            ..ParsedItem::default()
        },
    },
    ItemPreset {
        name: "nq-open",
        required: &[text(QUESTION), list(ANSWER)],
        allowed: None,
        build: |row| with_first_answer(row, ANSWER),
    },
    ItemPreset {
        name: "drop",
        required: &[
            text(QUESTION),
            text(&["passage"]),
            list(&["answers_spans.spans"]),
        ],
        allowed: None,
        build: |row| with_first_answer(row, &["answers_spans.spans"]),
    },
    ItemPreset {
        name: "math",
        required: &[text(PROBLEM), text(&["solution", "Solution"])],
        allowed: None,
        build: |row| without_choices(row, PROBLEM, &["solution", "Solution"]),
    },
    ItemPreset {
        name: "gpqa",
        required: &[
            text(QUESTION),
            single(&["Correct Answer"]),
            single(&["Incorrect Answer 1"]),
        ],
        allowed: None,
        build: |row| {
            let answers = [
                "Correct Answer",
                "Incorrect Answer 1",
                "Incorrect Answer 2",
                "Incorrect Answer 3",
            ];
            with_first_choice(row, &answers)
        },
    },
    ItemPreset {
        name: "sciq",
        required: &[
            text(QUESTION),
            single(&["correct_answer"]),
            single(&["distractor1"]),
        ],
        allowed: None,
        build: |row| {
            let answers = [
                "correct_answer",
                "distractor1",
                "distractor2",
                "distractor3",
            ];
            with_first_choice(row, &answers)
        },
    },
    ItemPreset {
        name: "siqa",
        required: &[
            text(QUESTION),
            text(&["context"]),
            single(&["answerA"]),
            single(&["answerB"]),
        ],
        allowed: None,
        build: |row| {
            let choices = row.choices_of_fields(&["answerA", "answerB", "answerC"]);
            let notation = AnswerNotation::IndexFromOne;
            with_chosen(row, choices, &["label", "correct"], notation)
        },
    },
    ItemPreset {
        name: "race",
        required: &[
            text(&["article"]),
            text(QUESTION),
            list(&["options"]),
            single(ANSWER),
        ],
        allowed: None,
        build: |row| with_choices(row, &["options"], ANSWER, AnswerNotation::Label),
    },
    ItemPreset {
        name: "lambada",
        required: &[text(&["text"])],
        allowed: Some(&["text", "domain", "id", "idx"]),
        build: |row| {
            let text = row.text(&["text"]);
            let (question, answer) = text
                .rsplit_once(char::is_whitespace)
                .unwrap_or((text.as_str(), ""));
            ParsedItem {
                question: question.trim_end().to_owned(),
                answer: answer.to_owned(),
                ..ParsedItem::default()
            }
        },
    },
    ItemPreset {
        name: "ifeval",
        required: &[
            text(&["prompt"]),
            shaped(&["instruction_id_list"], FieldShape::Any),
        ],
        allowed: None,
        build: |row| without_choices(row, &["prompt"], &[]),
    },
    ItemPreset {
        name: "aime",
        required: &[text(PROBLEM), single(ANSWER)],
        allowed: None,
        build: |row| without_choices(row, PROBLEM, ANSWER),
    },
    ItemPreset {
        name: "bbh",
        required: &[text(&["input"]), single(&["target"])],
        allowed: None,
        build: |row| without_choices(row, &["input"], &["target"]),
    },
    ItemPreset {
        name: "nli",
        required: &[text(&["premise"]), text(&["hypothesis"])],
        allowed: None,
        build: |row| ParsedItem {
            question: row.text(&["hypothesis"]),
            passage: row.text(&["premise"]),
            ..ParsedItem::default()
        },
    },
    ItemPreset {
        name: "mt-bench",
        required: &[list(&["turns"])],
        allowed: None,
        build: |row| ParsedItem {
            question: row.texts(&["turns"]).join("\n"),
            ..ParsedItem::default()
        },
    },
    ItemPreset {
        name: "question-choices",
        required: &[text(ANY_QUESTION), shaped(ANY_CHOICES, FieldShape::Choices)],
        allowed: None,
        build: |row| with_choices(row, ANY_CHOICES, CHOSEN, AnswerNotation::Any),
    },
    ItemPreset {
        name: "question-answer",
        required: &[text(ANY_QUESTION), single(ANY_ANSWER)],
        allowed: None,
        build: |row| without_choices(row, ANY_QUESTION, ANY_ANSWER),
    },
    ItemPreset {
        name: "question",
        required: &[text(ANY_QUESTION)],
        allowed: None,
        build: |row| without_choices(row, ANY_QUESTION, &[]),
    },
    ItemPreset {
        name: "instruction",
        required: &[text(&["instruction"])],
        allowed: None,
        build: |row| ParsedItem {
            passage: row.text(&["input"]),
            ..without_choices(row, &["instruction"], &["output", "response"])
        },
    },
    ItemPreset {
        name: "prompt",
        required: &[text(&["prompt"])],
        allowed: None,
        build: |row| without_choices(row, &["prompt"], ANY_ANSWER),
    },
];

impl ItemPreset {
    /// Returns the most specific preset that matches a row.
    pub(super) fn find(row: RowFields<'_>) -> Option<&'static Self> {
        let mut best: Option<&Self> = None;
        for preset in &PRESETS {
            let is_better = best.is_none_or(|best| preset.required.len() > best.required.len());
            if is_better && preset.matches(row) {
                best = Some(preset);
            }
        }
        best
    }

    /// Returns the number of presets.
    #[cfg(test)]
    pub(super) fn count() -> usize {
        PRESETS.len()
    }

    /// Returns the texts of a row that matches.
    pub(super) fn item_texts(&self, row: RowFields<'_>) -> ParsedItem {
        (self.build)(row)
    }

    fn matches(&self, row: RowFields<'_>) -> bool {
        let is_allowed = |name| self.allowed.is_none_or(|allowed| allowed.contains(&name));
        self.required.iter().all(|field| {
            let accepts = |name| {
                row.value(name)
                    .is_some_and(|value| field.shape.accepts(&value))
            };
            field.names.iter().any(|name| accepts(name))
        }) && row.names().all(is_allowed)
    }
}

/// Returns an item with a field of choices, of which the first of the fields `chosen` names the right one.
fn with_choices(
    row: RowFields<'_>,
    choices: &[&str],
    chosen: &[&str],
    notation: AnswerNotation,
) -> ParsedItem {
    with_chosen(row, row.choices(choices), chosen, notation)
}

fn with_chosen(
    row: RowFields<'_>,
    choices: LabelledChoices,
    chosen: &[&str],
    notation: AnswerNotation,
) -> ParsedItem {
    let answer = row.first_value(chosen);
    ParsedItem {
        question: row.text(ANY_QUESTION),
        answer: choices.resolve_answer(answer.as_deref(), notation),
        choices: choices.texts,
        passage: row.text(PASSAGE),
    }
}

fn without_choices(row: RowFields<'_>, question: &[&str], answer: &[&str]) -> ParsedItem {
    ParsedItem {
        question: row.text(question),
        choices: Vec::new(),
        answer: row.text(answer),
        passage: row.text(PASSAGE),
    }
}

/// Returns an item whose choices have a field each, the right one first.
fn with_first_choice(row: RowFields<'_>, answers: &[&str]) -> ParsedItem {
    let choices = row.choices_of_fields(answers).texts;
    ParsedItem {
        question: row.text(QUESTION),
        answer: choices.first().cloned().unwrap_or_default(),
        choices,
        passage: row.text(PASSAGE),
    }
}

fn with_first_answer(row: RowFields<'_>, answers: &[&str]) -> ParsedItem {
    ParsedItem {
        answer: first_answer(row, answers),
        ..without_choices(row, QUESTION, &[])
    }
}

/// Returns the text of the first field that has a value, or the first of its texts.
fn first_answer(row: RowFields<'_>, answers: &[&str]) -> String {
    let Some(value) = row.first_value(answers) else {
        return String::new();
    };
    match texts_of(&value) {
        Some(texts) => texts.into_iter().next().unwrap_or_default(),
        None => text_of(&value).unwrap_or_default(),
    }
}

/// Returns the item of TruthfulQA. Its CSV has several answers in one cell, with semicolons between them.
fn truthful_answers(row: RowFields<'_>) -> ParsedItem {
    let answers = |names: &[&str]| match row.first_value(names) {
        None => Vec::new(),
        Some(value) => texts_of(&value).unwrap_or_else(|| {
            let text = text_of(&value).unwrap_or_default();
            let parts = text.split(';').map(str::trim);
            parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        }),
    };
    let mut choices = answers(&["correct_answers", "Correct Answers"]);
    choices.extend(answers(&["incorrect_answers", "Incorrect Answers"]));
    ParsedItem {
        question: row.text(QUESTION),
        choices,
        answer: row.text(&["best_answer", "Best Answer"]),
        passage: String::new(),
    }
}

/// Returns the item of AGIEval in one text: passage, `Q:` and question, `Answer Choices:` and the choices.
fn agieval_query(row: RowFields<'_>) -> ParsedItem {
    let query = row.text(&["query"]);
    let stem = ["Answer Choices:", "选项："]
        .iter()
        .find_map(|mark| query.rsplit_once(mark))
        .map_or(query.as_str(), |(before, _)| before);
    let (passage, question) = ["Q:", "问题："]
        .iter()
        .find_map(|mark| stem.rsplit_once(mark))
        .unwrap_or(("", stem));
    ParsedItem {
        question: question.trim().to_owned(),
        passage: passage.trim().to_owned(),
        ..with_choices(row, &["choices"], &["gold"], AnswerNotation::IndexFromZero)
    }
}

fn truth_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => match number.as_u64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim() {
            "true" | "True" | "yes" | "Yes" | "1" => Some(true),
            "false" | "False" | "no" | "No" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
