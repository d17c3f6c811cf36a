//! `check_text`: whether a text is new to an index or to a collection of a service.
//!
//! For an index this is `lookalike dedup --library` with one document: the same verdict, and the same insert if the text is
//! new. For a service it is a query, or an insert.

use anyhow::{Result, bail};
use lookalike_batch::index::{RunIndexSettings, find_stored_document, index_recipe};
use lookalike_batch::run::{
    DedupOutputs, RunInputs, RunSettings, TextStateCounts, run_dedup_beside_index,
};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{MemoryTable, RowSource};
use lookalike_options::keep_order::KeepOrder;
use serde_json::{Value, json};

use super::{ID_TEXT, MEASURE, THRESHOLD, ToolDescription, spell_number};
use crate::commands::mcp::answer::ToolAnswer;
use crate::commands::mcp::call_watch::CallWatch;
use crate::commands::mcp::protocol::show_text;
use crate::commands::mcp::tool_input::{CommandArguments, ParameterKind, ToolInput, ToolParameter};
use crate::commands::mcp::tool_server::ToolServer;
use crate::commands::shared::matching_runs::MatchingRunArgs;

pub(super) const TOOL: ToolDescription = ToolDescription {
    name: "check_text",
    title: "Check whether a text is new",
    description: "Says whether a text is new to an index of this server, or to a collection of its service: new, or a \
                  near-duplicate of which document, with the similarity.",
    parameters: &[
        ToolParameter::required(
            "text",
            ParameterKind::Text { max_bytes: 4 << 20 },
            "The text, at most 4 MiB",
        ),
        ToolParameter::optional(
            "index",
            ParameterKind::Path,
            "Name of an index of this server. Default: the only one",
        ),
        ToolParameter::optional(
            "collection",
            ParameterKind::Text { max_bytes: 200 },
            "Name of a collection of the service, which is asked instead of an index",
        ),
        THRESHOLD,
        MEASURE,
    ],
    insert_parameters: &[
        ToolParameter::optional(
            "insert",
            ParameterKind::Flag,
            "Insert the text if it is new; a collection keeps a duplicate, too, marked as one. Default: false",
        ),
        ToolParameter::optional("id", ID_TEXT, "Id of the text. `insert` needs one"),
    ],
    is_open_world: true,
    run: check_text,
};

/// Id of a text that is not inserted.
const UNNAMED_TEXT: &str = "text";

fn check_text(server: &ToolServer, input: &ToolInput, watch: &CallWatch) -> Result<ToolAnswer> {
    if input.flag("insert") && input.text("id").is_none_or(str::is_empty) {
        bail!("insert needs the argument id, under which the text is found later");
    }
    match input.text("collection") {
        Some(_) if input.text("index").is_some() => {
            bail!("give `index` or `collection`, not both")
        }
        Some(collection) => check_in_collection(server, input, watch, collection),
        None => check_in_index(server, input, watch),
    }
}

fn check_in_index(server: &ToolServer, input: &ToolInput, watch: &CallWatch) -> Result<ToolAnswer> {
    let path = server.find_index(input.text("index"))?;
    let args: MatchingRunArgs = CommandArguments::default()
        .option_if_given("threshold", spell_number(input.number("threshold")))
        .option_if_given("verify", input.text("measure"))
        .option("threads", "1")
        .values(["-"])
        .parse()?;
    let settings = RunSettings {
        // One text needs no plan of the memory.
        memory: None,
        ..args.to_settings_with(&KeepOrder::default(), index_recipe(path)?)?
    };
    let id = input.text("id").unwrap_or(UNNAMED_TEXT);
    let text = input.text("text").unwrap_or_default();
    let table = MemoryTable::from_texts("text", [(id, text)].into_iter());
    let inputs = RunInputs {
        documents: RowSource::Table(table),
        against: RowSource::default(),
    };
    let is_known_id = input.flag("insert") && find_stored_document(path, id, None)?.is_some();
    let directory = tempfile::tempdir()?;
    let removed = directory.path().join("removed.jsonl");
    let outputs = DedupOutputs {
        removed: Some(OutputTarget::Path(removed.clone())),
        ..DedupOutputs::default()
    };
    let index = RunIndexSettings {
        path: path.to_owned(),
        adds_kept: input.flag("insert") && !is_known_id,
    };
    let done = run_dedup_beside_index(&inputs, &settings, &outputs, &index, watch)?;
    let removal = std::fs::read_to_string(&removed)?;
    let removal: Option<Value> = removal
        .lines()
        .next()
        .map(serde_json::from_str)
        .transpose()?;
    if is_known_id && removal.is_none() {
        bail!(
            "the index has another text with the id '{}', and this one is not its near-duplicate: give another id. Nothing \
             was inserted",
            show_text(id)
        );
    }
    let compared = done.library.as_ref().map_or(0, |library| library.compared);
    let added = done.library.as_ref().map_or(0, |library| library.added);
    let of = removal.as_ref().map(|removal| &removal["kept"]);
    let similarity = removal.as_ref().map(|removal| &removal["similarity"]);
    let too_short = describe_short_text(&done.states).filter(|_| removal.is_none());
    let fields = json!({
        "index": path.display().to_string(),
        "new": if too_short.is_some() { Value::Null } else { json!(removal.is_none()) },
        "of": of,
        "similarity": similarity,
        "method": removal.as_ref().map(|removal| &removal["method"]),
        "threshold": done.run.threshold,
        "measure": done.run.measure,
        "recipe": done.run.recipe,
        "compared": compared,
        "inserted": added > 0,
    });
    let verdict = match (of.and_then(Value::as_str), similarity) {
        (Some(of), Some(similarity)) => describe_duplicate(of, similarity),
        _ => too_short.unwrap_or(NEW_TEXT).to_owned(),
    };
    Ok(ToolAnswer::new(with_insert(verdict, added > 0), fields))
}

fn check_in_collection(
    server: &ToolServer,
    input: &ToolInput,
    watch: &CallWatch,
    collection: &str,
) -> Result<ToolAnswer> {
    for name in ["threshold", "measure"] {
        if input.has(name) {
            bail!("{name} has no effect on a collection, which has its own: leave it out");
        }
    }
    let (call, document) = if input.flag("insert") {
        let id = input.text("id").unwrap_or_default();
        ("documents", json!({ "id": id, "text": input.text("text") }))
    } else {
        ("query", json!({ "text": input.text("text") }))
    };
    let answer = server
        .service()?
        .post_document(collection, call, &document, watch)?;
    // A document that is late has no number and is not stored.
    let inserted = answer["seq"].is_number() && input.flag("insert");
    let fields = json!({
        "collection": collection,
        "new": answer["verdict"] == "kept",
        "verdict": answer["verdict"],
        "of": answer["of"],
        "similarity": answer["similarity"],
        "cluster": answer["cluster"],
        "inserted": inserted,
    });
    let verdict = match (answer["verdict"].as_str(), answer["of"].as_str()) {
        (_, Some(of)) => describe_duplicate(of, &answer["similarity"]),
        (Some("kept"), None) => NEW_TEXT.to_owned(),
        (verdict, None) => format!(
            "The verdict is {}.",
            show_text(verdict.unwrap_or("unknown"))
        ),
    };
    Ok(ToolAnswer::new(with_insert(verdict, inserted), fields))
}

/// Returns the verdict about a text without features that no document equals, in words.
fn describe_short_text(states: &TextStateCounts) -> Option<&'static str> {
    if states.empty > 0 {
        Some("The text is empty, too short to compare: it matches nothing.")
    } else if states.too_short + states.symbols_only > 0 {
        Some("The text is too short to compare: only an equal text matches it, and there is none.")
    } else {
        None
    }
}

/// The verdict about a text that is new, in words.
const NEW_TEXT: &str = "The text is new.";

fn describe_duplicate(of: &str, similarity: &Value) -> String {
    format!(
        "The text is a near-duplicate of {}. Similarity: {similarity}.",
        show_text(of)
    )
}

fn with_insert(verdict: String, inserted: bool) -> String {
    if inserted {
        format!("{verdict} It was inserted.")
    } else {
        verdict
    }
}
