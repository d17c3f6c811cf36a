//! The schemas and parameters of the calls on decisions, for the OpenAPI description.

use serde_json::{Value, json};

use crate::api::decisions::{CHANGED_IN_ANSWER, DECISIONS_ON_PAGE, MAX_DECISION_LINES};

/// Returns the schemas of decisions.
pub(crate) fn decision_schemas() -> Value {
    let text = json!({ "type": "string" });
    let optional_text = json!({ "type": ["string", "null"] });
    let content = json!({ "type": "string", "pattern": "^sha256:[0-9a-fA-F]{64}$" });
    let key = json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$" });
    let number = json!({ "type": "integer", "minimum": 0 });
    let verdict = json!({ "$ref": "#/components/schemas/Verdict" });
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    json!({
        "Decision": {
            "type": "object",
            "description": format!(
                "A line of a file of decisions, with `a`, `b`, `a_key`, `b_key` and `recipe`; or the ids of two documents, \
                 `a_id` and `b_id` alone. Other fields are ignored. At most {MAX_DECISION_LINES} in a request."
            ),
            "required": ["label"],
            "properties": {
                "label": {
                    "enum": ["same", "different", "none"],
                    "description": "`none` withdraws the decision on the two texts.",
                },
                "a": content, "b": content, "a_key": key, "b_key": key, "recipe": text, "a_id": text, "b_id": text,
            },
        },
        "StoredDecision": {
            "type": "object",
            "description": "It is a line of a file of decisions, too.",
            "required": ["seq", "a", "b", "label", "recipe", "a_key", "b_key", "a_id", "b_id", "decided_us"],
            "properties": {
                "seq": number, "a": content, "b": content, "a_key": key, "b_key": key, "recipe": text,
                "label": { "enum": ["same", "different"] },
                "a_id": optional_text, "b_id": optional_text,
                "decided_us": { "type": "integer", "description": "Microseconds since 1970." },
            },
        },
        "DecisionPage": {
            "type": "object",
            "required": ["decisions", "next", "total"],
            "properties": {
                "decisions": {
                    "type": "array", "items": { "$ref": "#/components/schemas/StoredDecision" },
                },
                "next": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Value of `after` for the next page; null at the end.",
                },
                "total": number,
            },
        },
        "DecisionResults": {
            "type": "object",
            "required": ["results"],
            "properties": {
                "results": {
                    "type": "array",
                    "description": "In the order of the lines. All effects are on disk.",
                    "items": {
                        "type": "object",
                        "required": ["line"],
                        "properties": {
                            "line": number,
                            "outcome": {
                                "enum": ["applied", "recorded", "unchanged"],
                                "description": "`applied`: documents were judged again. `recorded`: no stored document \
                                    was, and the decision holds for later ones; a withdrawal does not restore earlier \
                                    verdicts. `unchanged`: the same was decided before, or there is nothing to withdraw.",
                            },
                            "label": { "enum": ["same", "different", "none"] },
                            "seq": { "type": ["integer", "null"], "minimum": 0 },
                            "a": content, "b": content, "a_id": optional_text, "b_id": optional_text,
                            "changed": {
                                "type": "array",
                                "description": "The documents that were judged again, with their new verdicts and \
                                    sequence numbers, and the verdicts `before`: the first ones, up to `limit` of all \
                                    results together.",
                                "items": {
                                    "allOf": [verdict, {
                                        "type": "object", "required": ["before"], "properties": { "before": verdict },
                                    }],
                                },
                            },
                            "changed_total": {
                                "type": "integer", "minimum": 0,
                                "description": "Number of documents that were judged again.",
                            },
                            "next": {
                                "type": ["integer", "null"], "minimum": 0,
                                "description": "Value of `after` with which the list of documents goes on after \
                                    `changed`; null if `changed` has all.",
                            },
                            "past_window": number,
                            "form_applied": {
                                "const": false,
                                "description": "The decision is about all documents of a form, and was applied to the \
                                    two texts alone.",
                            },
                            "problem": problem,
                        },
                    },
                },
            },
        },
    })
}

/// Returns the parameters of the calls on decisions, except those of all calls.
pub(crate) fn decision_parameter(call: &str, name: &str) -> Option<(Value, &'static str)> {
    let count = |(usual, most): (usize, usize)| json!({ "type": "integer", "minimum": 1, "maximum": most, "default": usual });
    match (call, name) {
        ("decide" | "withdraw_decision", "limit") => Some((
            count(CHANGED_IN_ANSWER),
            "Most documents in `changed`, of all results together.",
        )),
        ("list_decisions", "after") => Some((
            json!({ "type": "integer", "minimum": 0 }),
            "The `next` of the previous page.",
        )),
        ("list_decisions", "limit") => {
            Some((count(DECISIONS_ON_PAGE), "Number of decisions per page."))
        }
        ("list_decisions", "document") => Some((
            json!({ "type": "string" }),
            "Only decisions on the text of the document with this id.",
        )),
        _ => None,
    }
}
