//! Answers of tools, which have a largest size.
//!
//! An answer has fields and one or more lists, the best items first. Items that do not fit are left out; the answer says
//! how many, and how to get them.

use serde_json::{Map, Value, json};

/// Largest size of an answer in bytes, 1 MiB: the whole message.
pub(super) const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Largest size of the lists of an answer, in bytes. The other fields are short, and a message in words beside them is,
/// too.
const MAX_LIST_BYTES: usize = MAX_ANSWER_BYTES - (128 << 10);

/// A list of an answer.
pub(super) struct AnswerList {
    /// Field that has it.
    pub(super) name: &'static str,
    pub(super) items: Vec<Value>,
    /// Number of all items that there are.
    pub(super) total: u64,
    /// Items before the first one, which the client has skipped.
    pub(super) skipped: u64,
    /// A sentence that says how to get those that are left out.
    pub(super) how_to_get_rest: &'static str,
}

/// The result of a tool.
pub(super) struct ToolAnswer {
    /// The result in a sentence.
    pub(super) summary: String,
    pub(super) fields: Map<String, Value>,
    pub(super) lists: Vec<AnswerList>,
}

impl ToolAnswer {
    /// Creates an answer without lists from an object.
    pub(super) fn new(summary: String, fields: Value) -> Self {
        let Value::Object(fields) = fields else {
            unreachable!("answers are objects");
        };
        Self {
            summary,
            fields,
            lists: Vec::new(),
        }
    }

    pub(super) fn with_list(mut self, list: AnswerList) -> Self {
        self.lists.push(list);
        self
    }

    /// Returns the result of the call, with as many items of the lists as fit. Every list gets an equal part of the
    /// room, and what it does not use goes to those after it.
    pub(super) fn into_result(self) -> Value {
        let Self {
            mut summary,
            mut fields,
            lists,
        } = self;
        let mut room = MAX_LIST_BYTES;
        let mut left_out = Map::new();
        let count = lists.len();
        for (at, list) in lists.into_iter().enumerate() {
            let (kept, used) = take_fitting(list.items, room / (count - at));
            room -= used;
            let shown = list.skipped + kept.len() as u64;
            let missing = list.total.saturating_sub(shown);
            if missing > 0 {
                left_out.insert(
                    list.name.to_owned(),
                    json!({ "count": missing, "next": shown, "how": list.how_to_get_rest }),
                );
                summary.push_str(&format!(
                    " {missing} {} are left out: {}",
                    list.name, list.how_to_get_rest
                ));
            }
            fields.insert(list.name.to_owned(), Value::Array(kept));
        }
        if !left_out.is_empty() {
            fields.insert("left_out".to_owned(), Value::Object(left_out));
        }
        json!({
            "content": [{ "type": "text", "text": summary }],
            "structuredContent": fields,
            "isError": false,
        })
    }
}

/// Returns the first items whose JSON has at most `room` bytes, and the bytes of their JSON.
fn take_fitting(items: Vec<Value>, room: usize) -> (Vec<Value>, usize) {
    let mut used = 0;
    let mut kept = Vec::new();
    for item in items {
        let bytes = item.to_string().len() + 1;
        if used + bytes > room {
            break;
        }
        used += bytes;
        kept.push(item);
    }
    (kept, used)
}

/// Returns the result of a call that a tool refuses or that fails.
pub(super) fn refusal_result(reason: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": reason }], "isError": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &'static str, count: usize, bytes: usize, total: u64) -> AnswerList {
        AnswerList {
            name,
            items: vec![json!("x".repeat(bytes - 3)); count],
            total,
            skipped: 0,
            how_to_get_rest: "ask for less.",
        }
    }

    #[test]
    fn answers_fit_and_say_what_is_left_out() {
        let answer = ToolAnswer::new("Found.".to_owned(), json!({ "all": 1 }))
            .with_list(list("few", 3, 100, 3))
            .with_list(list("many", 3000, 1000, 5000));
        let result = answer.into_result();
        let content = &result["structuredContent"];
        assert_eq!(content["few"].as_array().unwrap().len(), 3);
        let shown = content["many"].as_array().unwrap().len();
        assert_eq!(shown, (MAX_LIST_BYTES - 300) / 1000);
        let left_out = &content["left_out"];
        assert_eq!(left_out["many"]["count"], 5000 - shown);
        assert_eq!(left_out["many"]["next"], shown);
        assert_eq!(left_out["few"], Value::Null);
        assert!(result.to_string().len() <= MAX_ANSWER_BYTES);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("many are left out: ask for less."), "{text}");
    }

    #[test]
    fn a_complete_answer_leaves_nothing_out() {
        let answer = ToolAnswer::new(String::new(), json!({})).with_list(list("few", 2, 10, 2));
        let result = answer.into_result();
        assert_eq!(result["structuredContent"]["left_out"], Value::Null);
        assert_eq!(result["isError"], false);
    }
}
