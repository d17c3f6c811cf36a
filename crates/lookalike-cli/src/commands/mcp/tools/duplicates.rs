//! `find_near_duplicates`: the clusters of near-duplicates in files, as `lookalike dedup` finds them.
//!
//! The run writes its table of removed documents to a temporary file. That is read twice: for the sizes of all clusters,
//! and for the members of those that the answer has. So the memory does not grow with the removed documents, but only with
//! the clusters. The beginnings of the texts are read from the inputs at the end.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Result, anyhow};
use lookalike_batch::run::{DedupOutputs, DedupSummary, RunSettings, run_dedup};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::InputSet;
use lookalike_options::keep_order::KeepOrder;
use lookalike_options::shown_text::shorten_text;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ID_FIELD, MEASURE, RECIPE, TEXT_FIELD, THRESHOLD, ToolDescription, spell_number};
use crate::commands::mcp::answer::{AnswerList, ToolAnswer};
use crate::commands::mcp::call_watch::CallWatch;
use crate::commands::mcp::tool_input::{ParameterKind, ToolInput, ToolParameter};
use crate::commands::mcp::tool_server::ToolServer;
use crate::commands::shared::documents::{lock_ignoring_poison, visit_rows};
use crate::commands::shared::matching_runs::MatchingRunArgs;

/// Usual numbers of clusters, of members of a cluster, and of characters of a text in an answer.
const USUAL_CLUSTERS: usize = 20;
const USUAL_MEMBERS: usize = 10;
const USUAL_CHARACTERS: usize = 200;

pub(super) const TOOL: ToolDescription = ToolDescription {
    name: "find_near_duplicates",
    title: "Find near-duplicates",
    description: "Finds the near-duplicates in files or folders (JSONL, CSV, Parquet, Arrow, plain text). Returns clusters, \
                  the largest first: the document to keep and those that repeat it, with similarities, places and the \
                  beginnings of their texts. Nothing is written.",
    parameters: &[
        ToolParameter::required(
            "inputs",
            ParameterKind::Paths,
            "Files and folders with the documents",
        ),
        TEXT_FIELD,
        ID_FIELD,
        THRESHOLD,
        MEASURE,
        RECIPE,
        ToolParameter::optional(
            "document_per_file",
            ParameterKind::Flag,
            "Each plain text file is one document, not each line. Default: false",
        ),
        ToolParameter::optional(
            "forms",
            ParameterKind::Choice(|| ["learn", "off"].map(str::to_owned).to_vec()),
            "learn keeps filled forms apart that differ in their slots; off compares by similarity alone. Default: learn \
             where it is possible",
        ),
        ToolParameter::optional(
            "max_clusters",
            ParameterKind::Integer {
                least: 1,
                most: 1000,
            },
            "Number of clusters in the answer. Default: 20",
        ),
        ToolParameter::optional(
            "skip_clusters",
            ParameterKind::Integer {
                least: 0,
                most: u32::MAX as u64,
            },
            "Number of clusters before the first one in the answer. Default: 0",
        ),
        ToolParameter::optional(
            "max_members",
            ParameterKind::Integer {
                least: 1,
                most: 1000,
            },
            "Number of removed documents listed for a cluster. Default: 10",
        ),
        ToolParameter::optional(
            "text_characters",
            ParameterKind::Integer {
                least: 0,
                most: 10_000,
            },
            "Number of characters of each text. Default: 200",
        ),
    ],
    insert_parameters: &[],
    is_open_world: false,
    run: find_near_duplicates,
};

fn find_near_duplicates(
    server: &ToolServer,
    input: &ToolInput,
    watch: &CallWatch,
) -> Result<ToolAnswer> {
    let paths = server.resolve_paths(input, "inputs")?;
    let args: MatchingRunArgs = server
        .run_arguments(input)
        .option_if_given("threshold", spell_number(input.number("threshold")))
        .option_if_given("verify", input.text("measure"))
        .option_if_given("recipe", input.text("recipe"))
        .option_if_given("forms", input.text("forms"))
        .flag("document-per-file", input.flag("document_per_file"))
        .values(&paths)
        .parse()?;
    let settings = args.to_settings(&KeepOrder::default())?;
    let settings = RunSettings {
        read: server.bound_reading(settings.read.clone()),
        ..settings
    };
    let directory = tempfile::tempdir()?;
    let table = directory.path().join("removed.jsonl");
    let outputs = DedupOutputs {
        removed: Some(OutputTarget::Path(table.clone())),
        ..DedupOutputs::default()
    };
    let inputs = args.run_inputs(&[]);
    let done = run_dedup(&inputs, &settings, &outputs, watch).map_err(|error| {
        let has_folder = paths.iter().any(|path| path.is_dir());
        explain_refused_input(error, has_folder)
    })?;
    let mut shown = ShownClusters::read_table(&table, input, watch)?;
    shown.add_texts(
        &InputSet::open_source(&inputs.documents, &settings.read)?,
        &settings,
        input,
        watch,
    )?;
    Ok(shown.into_answer(&done, watch))
}

/// Adds to the error about a file without the field of the texts that it was not named, but found in a folder.
fn explain_refused_input(error: lookalike_io::error::Error, has_folder: bool) -> anyhow::Error {
    let reason = error.to_string();
    if has_folder && reason.contains("no column") {
        anyhow!(
            "{reason}. `inputs` has a folder: name the files with documents in place of it, or give text_field"
        )
    } else {
        error.into()
    }
}

/// A row of the table of removed documents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct RemovalRow {
    id: String,
    kept: String,
    similarity: f64,
    method: String,
    source: String,
    row: u64,
    kept_source: String,
    kept_row: u64,
}

impl RemovalRow {
    fn kept_place(&self) -> DocumentPlace {
        (self.kept_source.clone(), self.kept_row)
    }
}

/// A source and a row in it, from 1.
type DocumentPlace = (String, u64);

/// A kept document and those that name it.
struct ShownCluster {
    kept: String,
    kept_place: DocumentPlace,
    removed: u64,
    members: Vec<RemovalRow>,
}

/// The clusters of an answer.
struct ShownClusters {
    clusters: Vec<ShownCluster>,
    total: u64,
    skipped: u64,
    /// The beginnings of the texts.
    texts: HashMap<DocumentPlace, String>,
}

impl ShownClusters {
    /// Reads the largest clusters from the table of removed documents. Of equally large ones the first come first.
    fn read_table(table: &Path, input: &ToolInput, watch: &CallWatch) -> Result<Self> {
        let mut sizes: HashMap<DocumentPlace, (u64, u64)> = HashMap::new();
        visit_removals(table, watch, |removal| {
            let first = sizes.len() as u64;
            sizes.entry(removal.kept_place()).or_insert((0, first)).0 += 1;
        })?;
        let total = sizes.len() as u64;
        let mut order: Vec<_> = sizes.into_iter().collect();
        order.sort_by_key(|(_, (removed, first))| (std::cmp::Reverse(*removed), *first));
        let skipped = input.integer("skip_clusters", 0).min(order.len());
        let chosen = order
            .into_iter()
            .skip(skipped)
            .take(input.integer("max_clusters", USUAL_CLUSTERS));
        let mut clusters: Vec<_> = chosen
            .map(|(kept_place, (removed, _))| ShownCluster {
                kept: String::new(),
                kept_place,
                removed,
                members: Vec::new(),
            })
            .collect();
        let numbers = clusters.iter().enumerate();
        let numbers: HashMap<DocumentPlace, usize> = numbers
            .map(|(number, cluster)| (cluster.kept_place.clone(), number))
            .collect();
        let most = input.integer("max_members", USUAL_MEMBERS);
        visit_removals(table, watch, |removal| {
            let Some(&number) = numbers.get(&removal.kept_place()) else {
                return;
            };
            let cluster = &mut clusters[number];
            cluster.kept.clone_from(&removal.kept);
            if cluster.members.len() < most {
                cluster.members.push(removal);
            }
        })?;
        Ok(Self {
            clusters,
            total,
            skipped: skipped as u64,
            texts: HashMap::new(),
        })
    }

    /// Reads the beginnings of the texts from the inputs.
    fn add_texts(
        &mut self,
        inputs: &InputSet,
        settings: &RunSettings,
        input: &ToolInput,
        watch: &CallWatch,
    ) -> Result<()> {
        let shown = input.integer("text_characters", USUAL_CHARACTERS);
        let mut wanted: HashMap<&str, HashSet<u64>> = HashMap::new();
        for cluster in &self.clusters {
            let members = cluster.members.iter();
            let members = members.map(|member| (&*member.source, member.row));
            let kept = (&*cluster.kept_place.0, cluster.kept_place.1);
            for (source, row) in members.chain([kept]) {
                wanted.entry(source).or_default().insert(row);
            }
        }
        if shown == 0 || wanted.is_empty() {
            return Ok(());
        }
        let found = Mutex::new(HashMap::new());
        visit_rows(inputs, settings.threads, &|row| {
            if let Ok(row) = row {
                let (source, number) = inputs.source_row(row.place, row.number);
                let rows = wanted.get(source);
                if rows.is_some_and(|rows| rows.contains(&number)) {
                    let place = (source.to_owned(), number);
                    lock_ignoring_poison(&found).insert(place, shorten_text(row.text, shown));
                }
            }
            !watch.is_over()
        })?;
        watch.stop_if_over();
        self.texts = std::mem::take(&mut *lock_ignoring_poison(&found));
        Ok(())
    }

    fn into_answer(self, done: &DedupSummary, watch: &CallWatch) -> ToolAnswer {
        let summary = format!(
            "{} of {} documents repeat another one, in {} clusters, at a similarity of at least {}.",
            done.removed, done.documents, done.clusters, done.run.threshold
        );
        let fields = json!({
            "documents": done.documents,
            "kept": done.kept,
            "removed": done.removed,
            "cluster_count": done.clusters,
            "threshold": done.run.threshold,
            "measure": done.run.measure,
            "recipe": done.run.recipe,
            "rejected": done.run.rejected,
            "rejected_rows": watch.named_rows(),
        });
        let text_of = |source: &str, row: u64| self.texts.get(&(source.to_owned(), row));
        let clusters = self.clusters.iter().map(|cluster| {
            let (source, row) = &cluster.kept_place;
            let members = cluster.members.iter().map(|member| {
                json!({
                    "id": member.id,
                    "similarity": member.similarity,
                    "method": member.method,
                    "source": member.source,
                    "row": member.row,
                    "text": text_of(&member.source, member.row),
                })
            });
            json!({
                "kept": { "id": cluster.kept, "source": source, "row": row, "text": text_of(source, *row) },
                "removed_count": cluster.removed,
                "removed": members.collect::<Vec<_>>(),
            })
        });
        let clusters: Vec<Value> = clusters.collect();
        ToolAnswer::new(summary, fields).with_list(AnswerList {
            name: "clusters",
            items: clusters,
            total: self.total,
            skipped: self.skipped,
            how_to_get_rest: "call again with skip_clusters set to `next`.",
        })
    }
}

/// Calls `visit` for every row of the table.
fn visit_removals(
    table: &Path,
    watch: &CallWatch,
    mut visit: impl FnMut(RemovalRow),
) -> Result<()> {
    for (number, line) in (0u64..).zip(BufReader::new(File::open(table)?).lines()) {
        if number % 1024 == 0 {
            watch.stop_if_over();
        }
        visit(serde_json::from_str(&line?)?);
    }
    Ok(())
}
