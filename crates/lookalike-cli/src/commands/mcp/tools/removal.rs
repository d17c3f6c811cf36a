//! `explain_removal`: why a document was removed, as `lookalike explain` tells it.

use anyhow::Result;
use lookalike_options::shown_text::shorten_text;
use serde_json::{Value, json};

use super::{ID_FIELD, ID_TEXT, MEASURE_NAME, RECIPE, TEXT_FIELD, ToolDescription};
use crate::commands::explain::{ExplainArgs, explain_as_json};
use crate::commands::mcp::answer::{AnswerList, ToolAnswer};
use crate::commands::mcp::call_watch::CallWatch;
use crate::commands::mcp::tool_input::{ParameterKind, ToolInput, ToolParameter};
use crate::commands::mcp::tool_server::ToolServer;
use crate::commands::shared::inputs::read_options;

/// Number of characters of a document in an answer.
const SHOWN_CHARACTERS: usize = 20_000;

pub(super) const TOOL: ToolDescription = ToolDescription {
    name: "explain_removal",
    title: "Explain a removal",
    description: "Tells why `lookalike dedup` removed a document: the kept document that it repeats, their similarity then \
                  and now, both texts and their differences. It needs the table of removed documents (--removed) and the \
                  inputs of that run.",
    parameters: &[
        ToolParameter::required(
            "removed",
            ParameterKind::Path,
            "Table of removed documents that `lookalike dedup --removed` wrote",
        ),
        ToolParameter::required(
            "id",
            ID_TEXT,
            "Id of the document; or SOURCE:ROW as in the table, if several documents have the id",
        ),
        ToolParameter::required(
            "inputs",
            ParameterKind::Paths,
            "Files and folders that the run read",
        ),
        ToolParameter::optional(
            "against",
            ParameterKind::Paths,
            "Files and folders that the run had as --against",
        ),
        ToolParameter::optional(
            "measure",
            MEASURE_NAME,
            "Measure of the run. Default: jaccard or none, depending on which fits the record",
        ),
        RECIPE,
        TEXT_FIELD,
        ID_FIELD,
    ],
    insert_parameters: &[],
    is_open_world: false,
    run: explain_removal,
};

fn explain_removal(server: &ToolServer, input: &ToolInput, _: &CallWatch) -> Result<ToolAnswer> {
    let removed = server.resolve_path(input.text("removed").unwrap_or_default())?;
    let inputs = server.resolve_paths(input, "inputs")?;
    let against = server.resolve_paths(input, "against")?;
    let id = input.text("id").unwrap_or_default();
    let mut arguments = server
        .reading_arguments(input)
        .option_if_given("recipe", input.text("recipe"))
        .option_if_given("verify", input.text("measure"));
    for path in against {
        arguments = arguments.option("against", path);
    }
    let args: ExplainArgs = arguments
        .values([removed.into_os_string(), id.into()])
        .values(inputs)
        .parse()?;
    let options = server.bound_reading(read_options(&args.reading)?);
    Ok(answer_removal(explain_as_json(&args, &options)?))
}

fn answer_removal(mut explained: Value) -> ToolAnswer {
    for document in ["kept_document", "removed_document", "document"] {
        if let Some(Value::String(text)) = explained.pointer_mut(&format!("/{document}/text")) {
            *text = shorten_text(text, SHOWN_CHARACTERS);
        }
    }
    let id = shorten_text(explained["id"].as_str().unwrap_or_default(), 80);
    let summary = if explained["removed"] == true {
        let kept = shorten_text(explained["kept"].as_str().unwrap_or_default(), 80);
        let similarity = explained["similarity"].to_string();
        format!(
            "{id} was removed: it is a near-duplicate of {kept}, which was kept. Similarity: {similarity}."
        )
    } else {
        format!("{id} was not removed.")
    };
    let mut lists = Vec::new();
    for (name, how_to_get_rest) in [
        ("differences", "run `lookalike explain` for all of them."),
        ("duplicates", "read the table of removed documents."),
    ] {
        let taken = explained
            .as_object_mut()
            .and_then(|fields| fields.remove(name));
        if let Some(Value::Array(items)) = taken {
            lists.push(AnswerList {
                name,
                total: items.len() as u64,
                items,
                skipped: 0,
                how_to_get_rest,
            });
        }
    }
    lists.into_iter().fold(
        ToolAnswer::new(summary, json!(explained)),
        ToolAnswer::with_list,
    )
}
