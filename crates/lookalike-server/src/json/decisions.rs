//! Decisions of a person, as lines of requests, and their effects.

use lookalike_comparison::decision_lines::{label_of, parse_label, parse_text};
use lookalike_store::{
    DecisionOutcome, DecisionRequest, DecisionSubject, InsertAnswer, NamedText, RejudgedDocument,
    StoredDecision,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verdicts::VerdictJson;
use super::{JsonObject, bad_json_problem};
use crate::api::problem::{ApiProblem, ProblemCode, ProblemJson, shorten_text};

/// Label of a line that withdraws a decision.
pub(crate) const NO_DECISION: &str = "none";

/// A line of a file of decisions, or one that names two documents by their ids alone. Fields for people are ignored, as
/// in a file.
#[derive(Deserialize)]
struct DecisionLine {
    label: String,
    a: Option<String>,
    b: Option<String>,
    a_key: Option<String>,
    b_key: Option<String>,
    recipe: Option<String>,
    /// A run writes any id as a string, but the file may have been made by others.
    a_id: Option<Value>,
    b_id: Option<Value>,
    form: Option<IgnoredAny>,
}

/// A line that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadDecision {
    pub(crate) request: DecisionRequest,
    /// `true` if the decision is about all documents of a form. It is applied to the two texts alone.
    pub(crate) has_form: bool,
}

fn bad_decision(detail: impl Into<String>) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadDecision, detail)
}

fn id_of(id: Option<Value>) -> Option<String> {
    match id {
        Some(Value::String(id)) if !id.is_empty() => Some(id),
        _ => None,
    }
}

/// Reads a decision. `recipes` are the identities of the recipe of the collection, with and without forms.
///
/// # Errors
/// If the line is not a decision, or one about another recipe.
pub(crate) fn read_decision(line: &[u8], recipes: &[String]) -> Result<ReadDecision, ApiProblem> {
    let line: JsonObject<DecisionLine> =
        serde_json::from_slice(line).map_err(|error| bad_json_problem(&error))?;
    let JsonObject(line) = line;
    let decision = if line.label == NO_DECISION {
        None
    } else {
        let label = parse_label(&line.label);
        let wrong =
            |reason: String| bad_decision(format!("{reason}, and not {NO_DECISION} either"));
        Some(label.map_err(wrong)?)
    };
    let has_form = line.form.is_some();
    let subject = read_subject(line, recipes)?;
    Ok(ReadDecision {
        request: DecisionRequest { subject, decision },
        has_form,
    })
}

fn read_subject(line: DecisionLine, recipes: &[String]) -> Result<DecisionSubject, ApiProblem> {
    let (a_id, b_id) = (id_of(line.a_id), id_of(line.b_id));
    let texts = [line.a, line.b, line.a_key, line.b_key, line.recipe];
    if texts.iter().all(Option::is_none)
        && let (Some(a_id), Some(b_id)) = (&a_id, &b_id)
    {
        return Ok(DecisionSubject::Documents([a_id.clone(), b_id.clone()]));
    }
    let [Some(a), Some(b), Some(a_key), Some(b_key), Some(recipe)] = texts else {
        return Err(bad_decision(
            "a decision has a, b, a_key, b_key and recipe, as in a file of decisions, or a_id and b_id alone, the ids of \
             two documents of the collection",
        ));
    };
    if !recipes.contains(&recipe) {
        return Err(bad_decision(format!(
            "the decision was made under the recipe '{}', and the collection has '{}': decide about its documents again",
            shorten_text(&recipe),
            recipes.first().map_or("", String::as_str)
        )));
    }
    let text = |side, content: &str, key: &str, id| {
        let text = parse_text(side, content, key).map_err(bad_decision)?;
        Ok::<_, ApiProblem>(NamedText { text, id })
    };
    Ok(DecisionSubject::Texts([
        text("a", &a, &a_key, a_id)?,
        text("b", &b, &b_key, b_id)?,
    ]))
}

/// A decision that holds, with the fields of a line of a file.
#[derive(Serialize)]
pub(crate) struct DecisionJson<'a> {
    seq: u64,
    a: String,
    b: String,
    label: &'static str,
    recipe: &'a str,
    a_key: String,
    b_key: String,
    a_id: Option<&'a str>,
    b_id: Option<&'a str>,
    /// Microseconds since 1970.
    decided_us: i64,
}

impl<'a> DecisionJson<'a> {
    pub(crate) fn new(stored: &'a StoredDecision, recipe: &'a str) -> Self {
        let [a, b] = &stored.texts;
        Self {
            seq: stored.seq,
            a: a.text.content.to_string(),
            b: b.text.content.to_string(),
            label: label_of(stored.decision),
            recipe,
            a_key: format!("{:032x}", a.text.text_key),
            b_key: format!("{:032x}", b.text.text_key),
            a_id: a.id.as_deref(),
            b_id: b.id.as_deref(),
            decided_us: stored.at.0,
        }
    }
}

/// Effect of the decision on a line, or the problem that prevented it.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum DecisionResultJson<'a> {
    Decided(DecidedJson<'a>),
    Refused {
        /// Number of the line, from 1.
        line: usize,
        problem: ProblemJson<'a>,
    },
}

#[derive(Serialize)]
pub(crate) struct DecidedJson<'a> {
    /// Number of the line, from 1.
    line: usize,
    /// `applied` if the verdicts of stored documents changed, `recorded` if the decision changed none of them, `unchanged`
    /// if the same was decided before.
    outcome: &'static str,
    label: &'static str,
    /// Number of the decision; null if it was withdrawn.
    seq: Option<u64>,
    a: String,
    b: String,
    a_id: Option<&'a str>,
    b_id: Option<&'a str>,
    /// The first documents that were judged again, with their new verdicts.
    changed: Vec<RejudgedJson<'a>>,
    /// Number of all documents that were judged again.
    changed_total: usize,
    /// Value of `after` of a list of documents that has the others; null if there are none.
    next: Option<u64>,
    /// Documents past the window, whose verdict stands.
    past_window: u64,
    /// `false` if the decision is about all documents of a form: it was applied to the two texts alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    form_applied: Option<bool>,
}

#[derive(Serialize)]
struct RejudgedJson<'a> {
    #[serde(flatten)]
    verdict: VerdictJson<'a>,
    before: VerdictJson<'a>,
}

impl<'a> From<&'a RejudgedDocument> for RejudgedJson<'a> {
    fn from(rejudged: &'a RejudgedDocument) -> Self {
        let to_json = |answer: &'a InsertAnswer| VerdictJson::from(answer);
        Self {
            verdict: to_json(&rejudged.after),
            before: to_json(&rejudged.before),
        }
    }
}

impl<'a> DecisionResultJson<'a> {
    /// Returns the result of a line.
    pub(crate) fn new(line: usize, outcome: &'a DecisionOutcome, has_form: bool) -> Self {
        let [a, b] = &outcome.texts;
        Self::Decided(DecidedJson {
            line,
            outcome: if !outcome.is_new {
                "unchanged"
            } else if outcome.rejudged.total == 0 {
                "recorded"
            } else {
                "applied"
            },
            label: outcome.decision.map_or(NO_DECISION, label_of),
            seq: outcome.seq,
            a: a.text.content.to_string(),
            b: b.text.content.to_string(),
            a_id: a.id.as_deref(),
            b_id: b.id.as_deref(),
            changed: outcome
                .rejudged
                .first
                .iter()
                .map(RejudgedJson::from)
                .collect(),
            changed_total: outcome.rejudged.total,
            next: outcome.rejudged.continue_after(),
            past_window: outcome.past_window,
            form_applied: has_form.then_some(false),
        })
    }

    /// Returns the result of a line that was refused.
    pub(crate) fn refused(line: usize, problem: &'a ApiProblem) -> Self {
        Self::Refused {
            line,
            problem: problem.to_json(),
        }
    }
}

/// Returns the line that withdraws a decision, for an entry of a shared log.
pub(crate) fn withdrawal_line(texts: &[NamedText; 2], recipe: &str) -> Value {
    let [a, b] = texts;
    serde_json::json!({
        "label": NO_DECISION,
        "recipe": recipe,
        "a": a.text.content.to_string(),
        "b": b.text.content.to_string(),
        "a_key": format!("{:032x}", a.text.text_key),
        "b_key": format!("{:032x}", b.text.text_key),
        "a_id": a.id,
        "b_id": b.id,
    })
}

#[cfg(test)]
mod tests {
    use lookalike::content_hash::ContentHash;
    use lookalike::dedup::PairDecision;
    use serde_json::json;

    use super::*;

    fn line(label: &str) -> Value {
        json!({
            "a": ContentHash::from_text("x").to_string(), "b": ContentHash::from_text("y").to_string(),
            "label": label, "recipe": "r", "a_key": format!("{:032x}", 1), "b_key": format!("{:032x}", 2),
            "a_id": "1", "b_id": 2, "similarity": 0.8,
        })
    }

    fn read(line: &Value) -> Result<ReadDecision, ApiProblem> {
        read_decision(line.to_string().as_bytes(), &["r".to_owned()])
    }

    #[test]
    fn lines_of_a_file_and_ids_are_read() {
        for (label, decision) in [
            ("same", Some(PairDecision::Same)),
            ("different", Some(PairDecision::Different)),
            ("none", None),
        ] {
            let found = read(&line(label)).unwrap();
            assert_eq!((found.request.decision, found.has_form), (decision, false));
            let DecisionSubject::Texts([a, b]) = found.request.subject else {
                panic!("it names texts");
            };
            assert_eq!(
                (a.text.content, a.text.text_key),
                (ContentHash::from_text("x"), 1)
            );
            assert_eq!((a.id.as_deref(), b.id), (Some("1"), None));
        }
        let by_ids = read(&json!({"label": "same", "a_id": "1", "b_id": "2"})).unwrap();
        let ids = ["1", "2"].map(str::to_owned);
        assert_eq!(by_ids.request.subject, DecisionSubject::Documents(ids));
        let mut with_form = line("same");
        with_form["form"] = json!({"name": "n", "frame": ["a", "b"]});
        assert!(read(&with_form).unwrap().has_form);
    }

    #[test]
    fn withdrawal_is_read_as_it_is_written() {
        let DecisionSubject::Texts(texts) = read(&line("same")).unwrap().request.subject else {
            panic!("it names texts");
        };
        let withdrawn = read(&withdrawal_line(&texts, "r")).unwrap();
        assert_eq!(withdrawn.request.subject, DecisionSubject::Texts(texts));
        assert_eq!(withdrawn.request.decision, None);
    }

    #[test]
    fn other_lines_are_refused() {
        let changed = |field: &str, value: Value| {
            let mut line = line("same");
            line[field] = value;
            line
        };
        for (line, words) in [
            (changed("label", json!("yes")), "`label` is 'yes'"),
            (
                changed("recipe", json!("other")),
                "under the recipe 'other'",
            ),
            (changed("recipe", Value::Null), "a decision has a, b"),
            (changed("b_key", json!("12")), "`b_key` is '12'"),
            (json!({"label": "same", "a_id": "1"}), "a decision has a, b"),
            (json!([]), "an object"),
        ] {
            let problem = read(&line).unwrap_err();
            assert!(problem.detail.contains(words), "{}", problem.detail);
        }
    }
}
