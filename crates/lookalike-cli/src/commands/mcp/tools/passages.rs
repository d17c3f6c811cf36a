//! `shared_passages`: which documents share passages, as `lookalike passages` finds them.

use anyhow::Result;
use lookalike_batch::run::{
    PassageOutputs, PassageRunSettings, PassagesSummary, RunInputs, find_passages,
};
use serde_json::{Value, json};

use super::{ID_FIELD, TEXT_FIELD, ToolDescription};
use crate::commands::mcp::answer::{AnswerList, ToolAnswer};
use crate::commands::mcp::call_watch::CallWatch;
use crate::commands::mcp::tool_input::{ParameterKind, ToolInput, ToolParameter};
use crate::commands::mcp::tool_server::ToolServer;
use crate::commands::passages::{PassagesArgs, passage_settings};

/// Largest and usual number of passages and pairs in an answer.
const MAX_PASSAGES: u64 = 1000;
const USUAL_PASSAGES: usize = 20;

pub(super) const TOOL: ToolDescription = ToolDescription {
    name: "shared_passages",
    title: "Find shared passages",
    description: "Finds passages that documents share: which document has what in common with which other one, the longest \
                  passages first, with their texts. Files of plain text, Markdown, HTML, Word and PDF are one document \
                  each; rows of JSONL, CSV and Parquet are documents.",
    parameters: &[
        ToolParameter::required(
            "inputs",
            ParameterKind::Paths,
            "Files and folders with the documents",
        ),
        ToolParameter::optional(
            "against",
            ParameterKind::Paths,
            "Files and folders with possible sources. Only what the documents share with these is found then",
        ),
        ToolParameter::optional(
            "min_length",
            ParameterKind::Integer {
                least: 2,
                most: 1000,
            },
            "Shortest passage in words; a word counts as two characters of a script without spaces. Default: 12",
        ),
        ToolParameter::optional(
            "reworded",
            ParameterKind::Flag,
            "Also find reworded passages. Default: false",
        ),
        ToolParameter::optional(
            "max_passages",
            ParameterKind::Integer {
                least: 1,
                most: MAX_PASSAGES,
            },
            "Number of passages and of pairs of documents in the answer. Default: 20",
        ),
        TEXT_FIELD,
        ID_FIELD,
    ],
    insert_parameters: &[],
    is_open_world: false,
    run: find_shared_passages,
};

fn find_shared_passages(
    server: &ToolServer,
    input: &ToolInput,
    watch: &CallWatch,
) -> Result<ToolAnswer> {
    let documents = server.resolve_paths(input, "inputs")?;
    let against = server.resolve_paths(input, "against")?;
    let shown = input.integer("max_passages", USUAL_PASSAGES).to_string();
    let min_length = input.integer("min_length", 0);
    let args: PassagesArgs = server
        .run_arguments(input)
        .option("show", shown)
        .option_if_given(
            "min-length",
            (min_length > 0).then(|| min_length.to_string()),
        )
        .flag("reworded", input.flag("reworded"))
        .values(&documents)
        .parse()?;
    let settings = passage_settings(&args)?;
    let settings = PassageRunSettings {
        reading: lookalike_batch::run::RunSettings {
            read: server.bound_reading(settings.reading.read.clone()),
            ..settings.reading.clone()
        },
        ..settings
    };
    let inputs = RunInputs {
        documents: documents.into(),
        against: against.into(),
    };
    let outputs = PassageOutputs {
        passages: None,
        rejected: None,
        extracted: None,
        report: None,
    };
    let done = find_passages(&inputs, &settings, &outputs, watch)?;
    Ok(answer_passages(&done, watch))
}

fn answer_passages(done: &PassagesSummary, watch: &CallWatch) -> ToolAnswer {
    let summary = format!(
        "{} passages in {} of {} documents, between {} pairs of documents.",
        done.passages, done.sharing, done.documents, done.pairs
    );
    let fields = json!({
        "documents": done.documents,
        "against": done.against,
        "documents_with_passages": done.sharing,
        "directed": done.directed,
        "words": done.tokens,
        "words_in_passages": done.copied_tokens,
        "min_length": done.min_words,
        "boilerplate": done.boilerplate,
        "rejected": done.rejected,
        "rejected_rows": watch.named_rows(),
        "recipe": done.recipe,
    });
    let how_to_get_rest = "raise max_passages, or name fewer inputs.";
    let pairs = done.most_copied.iter().map(|pair| {
        json!({
            "document": pair.document,
            "source": pair.source,
            "passages": pair.passages,
            "words": pair.copied,
            "words_in_reworded_passages_alone": pair.reworded,
            "share_of_document": pair.share,
            "share_of_source": pair.source_share,
            "longest": pair.longest,
        })
    });
    let passages = done.longest.iter().map(|passage| json!(passage));
    let list = |name, items: Vec<Value>, total| AnswerList {
        name,
        items,
        total,
        skipped: 0,
        how_to_get_rest,
    };
    ToolAnswer::new(summary, fields)
        .with_list(list("pairs", pairs.collect(), done.pairs))
        .with_list(list("passages", passages.collect(), done.passages))
}
