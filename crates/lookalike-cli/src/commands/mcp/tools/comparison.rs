//! `compare_texts`: what two texts share, as `lookalike compare` shows it.

use anyhow::Result;
use lookalike_comparison::comparison::ComparisonCase;
use serde_json::{Value, json};

use super::{MEASURE, RECIPE, THRESHOLD, ToolDescription, spell_number};
use crate::commands::compare::{CompareArgs, with_comparison};
use crate::commands::mcp::answer::{AnswerList, ToolAnswer};
use crate::commands::mcp::call_watch::CallWatch;
use crate::commands::mcp::tool_input::{CommandArguments, ParameterKind, ToolInput, ToolParameter};
use crate::commands::mcp::tool_server::ToolServer;

/// Longest text, in bytes. Some similarities take time in proportion to the product of both lengths.
const COMPARED_TEXT: ParameterKind = ParameterKind::Text {
    max_bytes: 64 << 10,
};

pub(super) const TOOL: ToolDescription = ToolDescription {
    name: "compare_texts",
    title: "Compare two texts",
    description: "Compares two texts: every similarity, whether they match at the threshold and why, the passages that \
                  they share, and their differences word by word.",
    parameters: &[
        ToolParameter::required("a", COMPARED_TEXT, "First text, at most 64 KiB"),
        ToolParameter::required("b", COMPARED_TEXT, "Second text, at most 64 KiB"),
        THRESHOLD,
        MEASURE,
        RECIPE,
    ],
    insert_parameters: &[],
    is_open_world: false,
    run: compare_texts,
};

fn compare_texts(_: &ToolServer, input: &ToolInput, _: &CallWatch) -> Result<ToolAnswer> {
    let [a, b] = ["a", "b"].map(|name| input.text(name).unwrap_or_default());
    let args: CompareArgs = CommandArguments::default()
        .flag("literal", true)
        .option_if_given("threshold", spell_number(input.number("threshold")))
        .option_if_given("verify", input.text("measure"))
        .option_if_given("recipe", input.text("recipe"))
        .values([a, b])
        .parse()?;
    with_comparison(&args, |case| Ok(answer_comparison(case)))
}

fn answer_comparison(case: &ComparisonCase<'_>) -> ToolAnswer {
    let mut steps = case.to_json();
    let mut take = |name: &str| steps.get_mut(name).map_or(Value::Null, Value::take);
    let mut shared = take("shared");
    let passages = match shared["passages"].take() {
        Value::Array(passages) => passages,
        _ => Vec::new(),
    };
    let parts = case.shared.passages.iter().zip(passages);
    let passages: Vec<_> = parts
        .map(|(passage, mut described)| {
            described["text"] = json!(case.a.text[passage.a.bytes.clone()]);
            described
        })
        .collect();
    let differences = match take("differences") {
        Value::Array(differences) => differences,
        _ => Vec::new(),
    };
    let verdict = &case.compared.verdict;
    let outcome = if verdict.matched.is_some() {
        "The texts match"
    } else {
        "The texts do not match"
    };
    let summary = format!(
        "{outcome}: {}. {} shared passages.",
        verdict.why,
        passages.len()
    );
    let fields = json!({
        "match": take("match"),
        "method": take("method"),
        "similarity": take("similarity"),
        "why": take("why"),
        "figures": take("figures"),
        "recipe": take("recipe"),
        "share_of_a": shared["share_of_a"].take(),
        "share_of_b": shared["share_of_b"].take(),
    });
    let list = |name, items: Vec<Value>| AnswerList {
        name,
        total: items.len() as u64,
        items,
        skipped: 0,
        how_to_get_rest: "compare shorter texts.",
    };
    ToolAnswer::new(summary, fields)
        .with_list(list("passages", passages))
        .with_list(list("differences", differences))
}
