//! The tables of the documents, made from the results.
//!
//! A table stands between `<!-- table NAME -->` and `<!-- end -->`.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::goals;
use crate::machine::{results, root};

const TABLE_DOCUMENTS: [&str; 18] = [
    "bench/README.md",
    "bench/figures/contamination.md",
    "bench/figures/fingerprints.md",
    "bench/figures/forms-judged.md",
    "bench/figures/forms.md",
    "bench/figures/goals.md",
    "bench/figures/labelled-pairs.md",
    "bench/figures/page.md",
    "bench/figures/passages.md",
    "bench/figures/recall.md",
    "bench/figures/replicas.md",
    "bench/figures/service.md",
    "bench/figures/sketches.md",
    "bench/figures/whole-runs.md",
    "docs/evaluation.md",
    "docs/guide/in-the-browser.md",
    "docs/python/speed.md",
    "docs/spark-steps.md",
];

/// Writes the results into the documents, or reports the stale documents.
pub fn run(check: bool) -> Result<()> {
    let mut stale = Vec::new();
    for name in TABLE_DOCUMENTS {
        let path = root().join(name);
        let before =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let after = with_tables(&before)?;
        if after != before {
            stale.push(name);
            if !check {
                std::fs::write(&path, after)?;
            }
        }
    }
    if check && !stale.is_empty() {
        bail!(
            "stale tables in {}: run `cargo run -p lookalike-bench -- tables`",
            stale.join(", ")
        );
    }
    Ok(())
}

fn with_tables(document: &str) -> Result<String> {
    let mut page = String::new();
    let mut rest = document;
    while let Some(at) = rest.find("<!-- table ") {
        let head = at + rest[at..].find("-->").context("a marker has no end")? + 3;
        let name = rest[at + 11..head - 3].trim();
        let tail = rest
            .find("<!-- end -->")
            .with_context(|| format!("{name} has no end"))?;
        page.push_str(&rest[..head]);
        page.push('\n');
        page.push_str(&table(name)?);
        rest = &rest[tail..];
        let end = "<!-- end -->".len();
        page.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    page.push_str(rest);
    Ok(page)
}

fn table(name: &str) -> Result<String> {
    match name {
        "machine" => machine("dedup"),
        "machine hamming" => machine("hamming"),
        "machine join" => machine("join"),
        "dedup" => rows("dedup", &DEDUP_COLUMNS, |_| true),
        "dedup default" => rows("dedup", &DEDUP_COLUMNS, |row| row["threshold"] == 0.75),
        "forms" => rows("forms", &FORMS_COLUMNS, |_| true),
        "forms alone" => rows("forms", &FORMS_ALONE_COLUMNS, |row| {
            row["corpus"] == "alone"
        }),
        "forms labelled" => rows("forms_labelled", &FORMS_LABELLED_COLUMNS, |_| true),
        "forms revisions" => rows("forms_revisions", &FORMS_REVISIONS_COLUMNS, |_| true),
        "forms cost" => rows("forms_cost", &FORMS_COST_COLUMNS, |_| true),
        "forms judged" => rows("forms_judged", &FORMS_JUDGED_COLUMNS, |_| true),
        "form sizes" => rows("form_sizes", &FORM_SIZES_COLUMNS, |_| true),
        "machine forms" => machine("forms"),
        "siblings" => rows("siblings", &SIBLINGS_COLUMNS, |_| true),
        "machine siblings" => machine("siblings"),
        "memory" => rows("memory", &MEMORY_COLUMNS, |_| true),
        "machine memory" => machine("memory"),
        "growth" => rows("growth", &GROWTH_COLUMNS, |_| true),
        "machine growth" => machine("growth"),
        "bounded" => rows("bounded", &BOUNDED_COLUMNS, |_| true),
        "machine bounded" => machine("bounded"),
        "bounded passages" => rows("bounded_passages", &BOUNDED_PASSAGES_COLUMNS, |_| true),
        "machine bounded passages" => machine("bounded_passages"),
        "forecast" => rows("forecast", &FORECAST_COLUMNS, |_| true),
        "machine forecast" => machine("forecast"),
        "search" => rows("search", &SEARCH_COLUMNS, |_| true),
        "machine search" => machine("search"),
        "live" => rows("live", &LIVE_COLUMNS, |_| true),
        "live texts" => rows("live_texts", &LIVE_COLUMNS, |_| true),
        "machine live texts" => machine("live_texts"),
        "serve" => rows("serve", &SERVE_COLUMNS, |_| true),
        "machine serve" => machine("serve"),
        "serve large" => rows("serve_large", &SERVE_COLUMNS, |_| true),
        "machine serve large" => machine("serve_large"),
        "http" => rows("http", &SERVE_COLUMNS, |_| true),
        "machine http" => machine("http"),
        "http large" => rows("http_large", &SERVE_COLUMNS, |_| true),
        "machine http large" => machine("http_large"),
        "attacks" => rows("attacks", &ATTACKS_COLUMNS, |_| true),
        "machine attacks" => machine("attacks"),
        "compaction" => rows("compaction", &SERVE_COLUMNS, |_| true),
        "machine compaction" => machine("compaction"),
        "sketch" => rows("sketch", &SKETCH_COLUMNS, |_| true),
        "measures" => rows("measures", &MEASURES_COLUMNS, |_| true),
        "compat" => rows("compat", &COMPAT_COLUMNS, |_| true),
        "compat peers" => rows("compat_peers", &COMPAT_PEERS_COLUMNS, |_| true),
        "chinese" => rows("chinese", &CHINESE_COLUMNS, |_| true),
        "machine chinese" => machine("chinese"),
        "hamming" => rows("hamming", &HAMMING_COLUMNS, |_| true),
        "hamming uniform" => rows("hamming", &HAMMING_COLUMNS, |row| {
            row["fingerprints"] == "uniform" && row["count"] == 50_000_000
        }),
        "hamming large" => rows("hamming_large", &HAMMING_COLUMNS, |_| true),
        "hamming large avx2" => rows("hamming_large_avx2", &HAMMING_COLUMNS, |_| true),
        "machine hamming large avx2" => machine("hamming_large_avx2"),
        "join" => rows("join", &JOIN_COLUMNS, |_| true),
        "quality" => rows("quality", &QUALITY_COLUMNS, |_| true),
        "quality at .8" => rows("quality", &QUALITY_COLUMNS, |row| row["threshold"] == 0.8),
        "quality classes" => rows("quality_classes", &QUALITY_CLASSES_COLUMNS, |_| true),
        "quality methods" => rows("quality_methods", &QUALITY_METHODS_COLUMNS, |_| true),
        "passages" => rows("passages", &PASSAGES_COLUMNS, |row| {
            row["reworded"] == false
        }),
        "passages reworded" => rows("passages", &PASSAGES_COLUMNS, |row| row["reworded"] == true),
        "passages speed" => rows("passages_speed", &PASSAGES_SPEED_COLUMNS, |_| true),
        "passages answers" => rows("passages_answers", &PASSAGES_ANSWERS_COLUMNS, |_| true),
        "machine passages" => machine("passages_speed"),
        "contamination" => rows("contamination_forms", &CONTAMINATION_COLUMNS, |row| {
            row["is_decoy"] == false
        }),
        "contamination decoys" => {
            rows("contamination_forms", &CONTAMINATION_DECOY_COLUMNS, |row| {
                row["is_decoy"] == true
            })
        }
        "contamination runs" => rows("contamination_runs", &CONTAMINATION_RUNS_COLUMNS, |_| true),
        "machine contamination" => machine("contamination_runs"),
        "replicas inserts" => rows("replicas_inserts", &REPLICA_INSERT_COLUMNS, |_| true),
        "replicas bulk" => rows("replicas_bulk", &REPLICA_BULK_COLUMNS, |_| true),
        "replicas beginning" => rows("replicas_beginning", &REPLICA_BEGINNING_COLUMNS, |_| true),
        "replicas rounds" => rows("replicas_rounds", &REPLICA_ROUND_COLUMNS, |_| true),
        "replicas feed" => rows("replicas_feed", &REPLICA_FEED_COLUMNS, |_| true),
        "replicas requests" => rows("replicas_requests", &REPLICA_REQUEST_COLUMNS, |_| true),
        "replicas request run" => rows("replicas_requests", &REPLICA_REQUEST_RUN_COLUMNS, |row| {
            row["request"] == "sum"
        }),
        "replicas namespaces" => rows("replicas_namespaces", &REPLICA_NAMESPACE_COLUMNS, |_| true),
        "replicas full disk" => rows("replicas_full_disk", &REPLICA_FULL_DISK_COLUMNS, |_| true),
        "replicas throttled" => rows("replicas_throttled", &REPLICA_THROTTLED_COLUMNS, |_| true),
        "replicas exclusive" => rows("replicas_exclusive", &REPLICA_EXCLUSIVE_COLUMNS, |_| true),
        "machine replicas" => machine("replicas_bulk"),
        "planted" => rows("planted", &PLANTED_COLUMNS, |_| true),
        "planted lengths" => rows("planted_lengths", &PLANTED_LENGTHS_COLUMNS, |_| true),
        "audit" => rows("audit", &AUDIT_COLUMNS, |_| true),
        "settings" => settings(),
        "settings all" => all_settings(),
        "settings fixed" => rows("settings", &SETTINGS_COLUMNS, |row| {
            row["chosen_by"] == "fixed"
        }),
        "settings precise" => rows("settings", &SETTINGS_COLUMNS, |row| {
            row["chosen_by"] == "precision"
        }),
        "quality peers" => rows("quality_peers", &QUALITY_PEERS_COLUMNS, |row| {
            row["which"] != "our tokens, best threshold"
        }),
        "quality peers tokens" => rows("quality_peers", &QUALITY_PEERS_COLUMNS, |row| {
            row["which"] == "our tokens, best threshold"
        }),
        "spark" => rows("spark", &SPARK_COLUMNS, |_| true),
        "machine spark" => machine("spark"),
        "python" => rows("python", &PYTHON_COLUMNS, |_| true),
        "spark scale" => rows("spark_scale", &SPARK_SCALE_COLUMNS, |_| true),
        "page" => rows("page", &PAGE_COLUMNS, |_| true),
        "page sizes" => rows("page_sizes", &PAGE_SIZE_COLUMNS, |_| true),
        "machine page" => machine("page"),
        "python calls" => rows("python_calls", &PYTHON_CALLS_COLUMNS, |_| true),
        "peers" => peers(),
        "faiss" => faiss(),
        "goals missed" => goals::missed_table(),
        _ => match name.strip_prefix("goals ") {
            Some(part) => goals::table(part),
            None => bail!("there is no table '{name}'"),
        },
    }
}

/// Reads the results of a benchmark.
pub fn read(name: &str) -> Result<Value> {
    let path = results().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn machine(of: &str) -> Result<String> {
    let machine = &read(of)?["machine"];
    let instructions = machine["instructions"].as_str();
    let instructions = instructions.map(|best| format!(", best instructions: {best}"));
    Ok(format!(
        "{}, {} cores, {} GiB{}\n",
        machine["cpu"].as_str().unwrap_or_default(),
        machine["cores"],
        machine["memory_gib"],
        instructions.unwrap_or_default()
    ))
}

/// Heading, field, and digits after the point.
type Columns<const N: usize> = [(&'static str, &'static str, usize); N];

const PYTHON_COLUMNS: Columns<7> = [
    ("what", "what", 0),
    ("beside", "beside", 0),
    ("unit", "unit", 0),
    ("package", "package", 0),
    ("the other", "other", 0),
    ("ratio", "ratio", 2),
    ("the same?", "note", 0),
];

const PAGE_COLUMNS: Columns<3> = [
    ("work", "what", 0),
    ("MB", "megabytes", 1),
    ("processor seconds", "processor_seconds", 2),
];

const PAGE_SIZE_COLUMNS: Columns<2> = [("the page", "what", 0), ("MB", "megabytes", 2)];

const PYTHON_CALLS_COLUMNS: Columns<5> = [
    ("call", "what", 0),
    ("µs", "microseconds", 1),
    ("beside", "beside", 0),
    ("µs there", "other", 1),
    ("ratio", "ratio", 2),
];

const MEMORY_COLUMNS: Columns<5> = [
    ("corpus", "corpus", 0),
    ("input", "format", 0),
    ("documents", "documents", 0),
    ("peak MB", "peak_megabytes", 0),
    ("bound MB", "bound_megabytes", 0),
];

const GROWTH_COLUMNS: Columns<6> = [
    ("documents", "documents", 0),
    ("kept", "kept", 0),
    ("seconds", "seconds", 1),
    ("µs of processor time each", "microseconds_a_document", 2),
    ("relative", "growth", 2),
    ("bytes of memory each", "bytes_a_document", 0),
];

const BOUNDED_COLUMNS: Columns<9> = [
    ("corpus", "corpus", 0),
    ("documents", "documents", 0),
    ("GB", "gigabytes", 1),
    ("limit in MB", "limit_megabytes", 0),
    ("seconds", "seconds", 1),
    ("speed beside no limit", "speed", 2),
    ("peak MB", "peak_megabytes", 0),
    ("MB of temporary files", "temporary_megabytes", 0),
    ("groups", "groups", 0),
];

const BOUNDED_PASSAGES_COLUMNS: Columns<8> = [
    ("documents", "documents", 0),
    ("GB", "gigabytes", 1),
    ("passages cut", "passages", 0),
    ("limit in MB", "limit_megabytes", 0),
    ("seconds", "seconds", 1),
    ("speed beside no limit", "speed", 2),
    ("peak MB", "peak_megabytes", 0),
    ("MB of temporary files", "temporary_megabytes", 0),
];

const FORECAST_COLUMNS: Columns<8> = [
    ("corpus", "corpus", 0),
    ("documents", "documents", 0),
    ("seconds predicted", "predicted_seconds", 2),
    ("taken", "seconds", 2),
    ("MB predicted", "predicted_megabytes", 0),
    ("taken", "peak_megabytes", 0),
    (
        "MB of temporary files predicted",
        "predicted_temporary_megabytes",
        0,
    ),
    ("taken", "temporary_megabytes", 0),
];

const SEARCH_COLUMNS: Columns<7> = [
    ("what", "what", 0),
    ("fingerprints", "fingerprints", 0),
    ("queries", "queries", 0),
    ("threads", "threads", 0),
    ("seconds", "seconds", 2),
    ("of it opening", "opening_seconds", 2),
    ("µs each", "microseconds_each", 2),
];

const DEDUP_COLUMNS: Columns<9> = [
    ("corpus", "corpus", 0),
    ("input", "format", 0),
    ("threshold", "threshold", 2),
    ("threads", "threads", 0),
    ("documents", "documents", 0),
    ("removed", "removed", 0),
    ("seconds", "seconds", 2),
    ("MB/s", "megabytes_per_second", 0),
    ("M documents/s", "million_documents_per_second", 2),
];

const REPLICA_INSERT_COLUMNS: Columns<3> = [
    ("case", "what", 0),
    ("median", "median_ms", 1),
    ("99 of 100", "p99_ms", 1),
];

const REPLICA_BULK_COLUMNS: Columns<5> = [
    ("run", "run", 0),
    ("documents", "documents", 0),
    ("without a log", "without", 0),
    ("with one", "with", 0),
    ("share", "share", 2),
];

const REPLICA_BEGINNING_COLUMNS: Columns<5> = [
    ("titles", "titles", 0),
    ("inserted in s", "inserting_s", 0),
    ("opened again in s", "reopening_s", 0),
    ("snapshot in s", "snapshot_s", 0),
    ("new replica ready in s", "new_replica_ready_s", 0),
];

const REPLICA_ROUND_COLUMNS: Columns<8> = [
    ("store", "store", 0),
    ("rounds", "rounds", 0),
    ("documents", "documents", 0),
    ("killed", "kill", 0),
    ("erased", "erase", 0),
    ("stopped", "stop", 0),
    ("cut", "partition", 0),
    ("longest outage", "longest_outage", 2),
];

const REPLICA_FEED_COLUMNS: Columns<7> = [
    ("minutes", "minutes", 0),
    ("store", "store", 0),
    ("documents", "documents", 0),
    ("kept", "kept", 0),
    ("records", "records", 0),
    ("median ms", "median_ms", 0),
    ("99 of 100 ms", "p99_ms", 0),
];

const REPLICA_REQUEST_COLUMNS: Columns<6> = [
    ("clients send to", "receivers", 0),
    ("request", "request", 0),
    ("a second", "per_second", 2),
    ("by the formula", "predicted_per_second", 2),
    ("USD a month", "usd_a_month", 2),
    ("by the formula", "predicted_usd_a_month", 2),
];

const REPLICA_REQUEST_RUN_COLUMNS: Columns<9> = [
    ("store", "store", 0),
    ("seconds", "seconds", 0),
    ("replicas", "replicas", 0),
    ("clients send to", "receivers", 0),
    ("documents a second", "documents_per_second", 0),
    ("records a second, at most", "writes_per_second", 0),
    ("inserts with 503", "refused_inserts", 0),
    ("median ms", "median_ms", 0),
    ("99 of 100 ms", "p99_ms", 0),
];

const REPLICA_NAMESPACE_COLUMNS: Columns<9> = [
    ("store", "store", 0),
    ("rounds", "rounds", 0),
    ("documents", "documents", 0),
    ("one cut", "partition", 0),
    ("all cut", "outage", 0),
    ("link down", "link_down", 0),
    ("silence", "silence", 0),
    ("lost answers", "lost_answers", 0),
    ("longest outage", "longest_outage", 2),
];

const REPLICA_FULL_DISK_COLUMNS: Columns<7> = [
    ("store", "store", 0),
    ("rounds", "rounds", 0),
    ("documents", "documents", 0),
    ("killed without room", "killed", 0),
    ("records behind, at most", "most_records_behind", 0),
    ("equal after s, at most", "longest_catch_up_seconds", 1),
    ("longest outage", "longest_outage", 2),
];

const REPLICA_THROTTLED_COLUMNS: Columns<10> = [
    ("store", "store", 0),
    ("rounds", "rounds", 0),
    ("documents", "documents", 0),
    ("refused", "refused", 2),
    ("lost", "lost", 2),
    ("delayed", "delayed", 2),
    ("starts again", "failed_starts", 0),
    ("median ms", "median_ms", 1),
    ("99 of 100 ms", "p99_ms", 1),
    ("longest outage", "longest_outage", 2),
];

const REPLICA_EXCLUSIVE_COLUMNS: Columns<6> = [
    ("store", "store", 0),
    ("objects", "objects", 0),
    ("clients", "clients", 0),
    ("created", "created", 0),
    ("exists already", "already_there", 0),
    ("other answers", "other", 0),
];

const CONTAMINATION_COLUMNS: Columns<9> = [
    ("corpus", "corpus", 0),
    ("benchmarks", "benchmarks", 0),
    ("form", "kind", 0),
    ("planted", "planted", 0),
    ("found", "lookalike", 3),
    ("by decon", "decon", 3),
    ("under 13 words", "short", 0),
    ("found", "lookalike_short", 3),
    ("by decon", "decon_short", 3),
];

const CONTAMINATION_DECOY_COLUMNS: Columns<6> = [
    ("corpus", "corpus", 0),
    ("benchmarks", "benchmarks", 0),
    ("decoy", "kind", 0),
    ("planted", "planted", 0),
    ("taken for an item", "lookalike", 3),
    ("by decon", "decon", 3),
];

const CONTAMINATION_RUNS_COLUMNS: Columns<12> = [
    ("corpus", "corpus", 0),
    ("benchmarks", "benchmarks", 0),
    ("tool", "tool", 0),
    ("items", "items", 0),
    ("recall", "recall", 3),
    ("precision by documents", "document_precision", 3),
    ("precision by findings", "precision", 3),
    ("findings in other documents", "in_other_documents", 0),
    ("MB/s", "megabytes_per_second", 0),
    ("seconds for the index", "index_seconds", 1),
    ("MB of the index", "index_megabytes", 0),
    ("peak MB", "peak_megabytes", 0),
];

const AUDIT_COLUMNS: Columns<10> = [
    ("corpus", "corpus", 0),
    ("method", "method", 0),
    ("drawn", "drawn", 0),
    ("of them with a partner", "cases", 0),
    ("true recall", "recall", 4),
    ("audits", "audits", 0),
    ("that held it", "held", 0),
    ("dedup, s", "seconds", 2),
    ("audited, s", "audited_seconds", 2),
    ("more", "share", 2),
];

const FORMS_COLUMNS: Columns<9> = [
    ("language", "language", 0),
    ("corpus", "corpus", 0),
    ("`--forms`", "forms", 0),
    ("documents", "documents", 0),
    ("filled forms lost, %", "lost_percent", 2),
    (
        "the same, from twelve of a form on",
        "lost_percent_from_twelve",
        2,
    ),
    ("repeats removed", "repeats_removed", 3),
    ("copies of articles removed", "copies_removed", 3),
    ("articles taken for forms, %", "articles_apart_percent", 2),
];

/// Columns of a table of one corpus, which need not name it.
const FORMS_ALONE_COLUMNS: Columns<8> = {
    let [language, _, a, b, c, d, e, f, g] = FORMS_COLUMNS;
    [language, a, b, c, d, e, f, g]
};

const FORMS_LABELLED_COLUMNS: Columns<7> = [
    ("set", "set", 0),
    ("positive", "positive", 0),
    ("negative", "negative", 0),
    ("recall, `off`", "recall_off", 3),
    ("`learn`", "recall_learn", 3),
    ("precision, `off`", "precision_off", 3),
    ("`learn`", "precision_learn", 3),
];

const FORMS_REVISIONS_COLUMNS: Columns<4> = [
    ("set", "set", 0),
    ("`--forms`", "forms", 0),
    ("pairs of one page", "of_one_page", 0),
    ("pairs of two pages", "of_two_pages", 0),
];

const FORMS_COST_COLUMNS: Columns<5> = [
    ("corpus", "corpus", 0),
    ("`--forms`", "forms", 0),
    ("removed", "removed", 0),
    ("seconds", "seconds", 2),
    ("processor seconds", "processor_seconds", 2),
];

const FORMS_JUDGED_COLUMNS: Columns<5> = [
    ("with forms", "outcome", 0),
    ("document", "document", 0),
    ("beside", "beside", 0),
    ("judged", "verdict", 0),
    ("what differs", "reason", 0),
];

const FORM_SIZES_COLUMNS: Columns<5> = [
    ("language", "language", 0),
    ("corpus", "corpus", 0),
    ("documents of a form", "documents_of_form", 0),
    ("filled forms", "filled_forms", 0),
    ("lost, %", "lost_percent", 2),
];

const SIBLINGS_COLUMNS: Columns<9> = [
    ("words", "words", 0),
    ("of their own, of 100", "own", 0),
    ("their places", "places", 0),
    ("templates", "templates", 0),
    ("method", "method", 0),
    ("documents", "documents", 0),
    ("kept", "kept", 0),
    ("seconds", "seconds", 2),
    ("µs a document", "microseconds_a_document", 0),
];

const PASSAGES_COLUMNS: Columns<8> = [
    ("language", "corpus", 0),
    ("change", "change", 0),
    ("strength, %", "percent", 0),
    ("passages", "passages", 0),
    ("precision", "precision", 3),
    ("recall", "recall", 3),
    ("granularity", "granularity", 3),
    ("plagdet", "plagdet", 3),
];

const PASSAGES_ANSWERS_COLUMNS: Columns<5> = [
    ("shortest passage, words", "min_length", 0),
    ("cut", "copied", 3),
    ("light", "light", 3),
    ("heavy", "heavy", 3),
    ("all three", "all", 3),
];

const PASSAGES_SPEED_COLUMNS: Columns<3> = [
    ("what", "what", 0),
    ("measured", "value", 2),
    ("unit", "unit", 0),
];

const SPARK_COLUMNS: Columns<8> = [
    ("corpus", "corpus", 0),
    ("documents", "documents", 0),
    ("removed", "removed", 0),
    ("identical", "identical", 0),
    ("command, s", "command_seconds", 2),
    ("Spark decided, s", "spark_decided_seconds", 2),
    ("Spark, s", "spark_seconds", 2),
    ("share", "share", 2),
];

const SPARK_SCALE_COLUMNS: Columns<9> = [
    ("corpus", "corpus", 0),
    ("documents", "documents", 0),
    ("`links_on_driver`", "links_on_driver", 0),
    ("cluster", "master", 0),
    ("removed", "removed", 0),
    ("jobs", "jobs", 0),
    ("bytes a document", "shuffled_bytes_a_document", 0),
    ("driver's heap, MB", "driver_heap_megabytes", 0),
    ("seconds", "seconds", 1),
];

const LIVE_COLUMNS: Columns<4> = [
    ("what", "what", 0),
    ("fingerprints", "fingerprints", 0),
    ("figure", "figure", 2),
    ("unit", "unit", 0),
];

const SERVE_COLUMNS: Columns<4> = [
    ("what", "what", 0),
    ("documents", "documents", 0),
    ("figure", "figure", 2),
    ("unit", "unit", 0),
];

const ATTACKS_COLUMNS: Columns<13> = [
    ("attack", "attack", 0),
    ("honest requests", "requests", 0),
    ("refused", "refused", 0),
    ("median, ms", "median_ms", 1),
    ("99 of 100, ms", "p99_ms", 1),
    ("longest, ms", "longest_ms", 1),
    ("`/livez`, failed", "failed_probes", 0),
    ("median, ms", "probe_median_ms", 1),
    ("99 of 100, ms", "probe_p99_ms", 1),
    ("longest, ms", "probe_longest_ms", 1),
    ("seconds from SIGTERM to the end", "end_seconds", 1),
    ("acknowledged", "acknowledged", 0),
    ("lost", "lost", 0),
];

const SKETCH_COLUMNS: Columns<6> = [
    ("corpus", "corpus", 0),
    ("recipe", "recipe", 0),
    ("sketch", "sketch", 0),
    ("instructions", "instructions", 0),
    ("MB/s", "megabytes_per_second", 0),
    ("M documents/s", "million_documents_per_second", 2),
];

const MEASURES_COLUMNS: Columns<2> = [
    ("a million times", "what", 0),
    ("milliseconds", "milliseconds", 0),
];

const COMPAT_COLUMNS: Columns<5> = [
    ("corpus", "corpus", 0),
    ("recipe", "recipe", 0),
    ("instructions", "instructions", 0),
    ("MB/s", "megabytes_per_second", 0),
    ("thousand documents/s", "thousand_documents_per_second", 0),
];

const COMPAT_PEERS_COLUMNS: Columns<7> = [
    ("corpus", "corpus", 0),
    ("recipe", "recipe", 0),
    ("package", "package", 0),
    ("its MB/s", "package_megabytes_per_second", 2),
    ("the command's MB/s", "command_megabytes_per_second", 0),
    ("times", "command_times", 0),
    ("times, the engine alone", "engine_times", 0),
];

const CHINESE_COLUMNS: Columns<5> = [
    ("work", "work", 0),
    ("recipe", "recipe", 0),
    ("threads", "threads", 0),
    ("MB/s", "megabytes_per_second", 0),
    ("tokens, fingerprints, terms", "made", 0),
];

const HAMMING_COLUMNS: Columns<10> = [
    ("fingerprints", "fingerprints", 0),
    ("count", "count", 0),
    ("bits", "bits", 0),
    ("k", "distance", 0),
    ("plan", "plan", 0),
    ("bytes each", "bytes_each", 1),
    ("built, s", "build_seconds", 2),
    ("batched, µs", "batched_microseconds", 3),
    ("alone, µs", "single_microseconds", 3),
    ("matches a query", "matches_per_query", 2),
];

const JOIN_COLUMNS: Columns<10> = [
    ("fingerprints", "fingerprints", 0),
    ("bits", "bits", 0),
    ("distance ≤", "distance", 0),
    ("rows", "rows", 0),
    ("distinct", "values", 0),
    ("pairs", "pairs", 0),
    ("way", "way", 0),
    ("threads", "threads", 0),
    ("seconds", "seconds", 3),
    ("of which sorting", "sorting_seconds", 3),
];

const QUALITY_COLUMNS: Columns<6> = [
    ("corpus", "corpus", 0),
    ("threshold", "threshold", 1),
    ("documents", "documents", 0),
    ("true pairs", "true_pairs", 0),
    ("recall", "recall", 5),
    ("precision", "precision", 5),
];

const PLANTED_COLUMNS: Columns<8> = [
    ("corpus", "corpus", 0),
    ("edit", "kind", 0),
    ("strength", "strength", 0),
    ("copies", "copies", 0),
    ("median similarity", "median", 3),
    ("at .75 or more", "similar", 0),
    ("share", "similar_share", 3),
    ("recall of those", "recall", 4),
];

const PLANTED_LENGTHS_COLUMNS: Columns<5> = [
    ("corpus", "corpus", 0),
    ("length", "length", 0),
    ("edits that leave any", "kinds", 0),
    ("copies at .75 or more", "similar", 0),
    ("recall of the worst edit", "lowest_recall", 4),
];

const SETTINGS_COLUMNS: Columns<6> = [
    ("set", "set", 0),
    ("threshold", "cut", 3),
    ("precision", "precision", 4),
    ("recall", "recall", 4),
    ("F1", "f1", 4),
    ("its interval", "f1_interval", 0),
];

const QUALITY_CLASSES_COLUMNS: Columns<5> = [
    ("script", "script", 0),
    ("length", "length", 0),
    ("threshold", "threshold", 1),
    ("true pairs", "true_pairs", 0),
    ("recall", "recall", 5),
];

const QUALITY_METHODS_COLUMNS: Columns<5> = [
    ("corpus", "corpus", 0),
    ("method", "method", 0),
    ("true pairs", "true_pairs", 0),
    ("recall", "recall", 5),
    ("seconds", "seconds", 2),
];

const QUALITY_PEERS_COLUMNS: Columns<8> = [
    ("set", "set", 0),
    ("tool", "tool", 0),
    ("with", "which", 0),
    ("setting", "setting", 0),
    ("precision", "precision", 3),
    ("recall", "recall", 3),
    ("F1", "f1", 3),
    ("MB/s", "megabytes_per_second", 1),
];

fn rows<const N: usize>(
    name: &str,
    columns: &Columns<N>,
    wanted: impl Fn(&Value) -> bool,
) -> Result<String> {
    let results = read(name)?;
    let measured = results["measured"].as_array().context("no rows")?;
    let mut table = header(columns.iter().map(|(heading, ..)| *heading));
    for row in measured.iter().filter(|row| wanted(row)) {
        for (_, field, digits) in columns {
            let _ = write!(table, "| {} ", cell(&row[*field], *digits));
        }
        table.push_str("|\n");
    }
    Ok(table)
}

fn header<'a>(headings: impl Iterator<Item = &'a str> + Clone) -> String {
    let row: String = headings
        .clone()
        .map(|heading| format!("| {heading} "))
        .collect();
    let rule: String = headings.map(|_| "|---").collect();
    format!("{row}|\n{rule}|\n")
}

fn cell(value: &Value, digits: usize) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("{:.digits$}", number.as_f64().unwrap_or_default()),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns a table of the default, the best single setting and the best peer, with one row per set.
fn settings() -> Result<String> {
    let settings = measured("settings")?;
    let peers = measured("quality_peers")?;
    let headings = [
        "set",
        "pairs",
        "default: precision",
        "recall",
        "F1",
        "`auto`, threshold by F1",
        "best single setting",
        "best peer, at best",
        "command on the same texts",
    ];
    let mut table = header(headings.into_iter());
    for of_set in settings.chunk_by(|a, b| a["set"] == b["set"]) {
        let chosen = |by: &'static str| of_set.iter().filter(move |row| row["chosen_by"] == by);
        let default = chosen("default").next().context("a set has the default")?;
        let auto = chosen("F1").next().context("a set has tuned rows")?;
        let single = highest(chosen("F1").skip(1)).context("a set has single settings")?;
        let judged = |ours: bool| {
            let rows = peers.iter().filter(|row| row["set"] == default["set"]);
            let best = highest(rows.filter(|row| (row["tool"] == "lookalike") == ours));
            best.with_context(|| format!("no peers on {}", default["set"]))
        };
        let (peer, ours) = (judged(false)?, judged(true)?);
        let _ = writeln!(
            table,
            "| {} | {} + {} | {} | {} | {} | {} at {} | {} at {}: {} | {}, {}: {} | {} |",
            cell(&default["set"], 0),
            cell(&default["positive"], 0),
            cell(&default["negative"], 0),
            cell(&default["precision"], 3),
            cell(&default["recall"], 3),
            cell(&default["f1"], 3),
            cell(&auto["f1"], 3),
            auto["cut"],
            cell(&single["setting"], 0),
            single["cut"],
            cell(&single["f1"], 3),
            cell(&peer["tool"], 0),
            cell(&peer["setting"], 0),
            cell(&peer["f1"], 3),
            cell(&ours["f1"], 3),
        );
    }
    Ok(table)
}

/// Returns a table of the F1 of every setting on every set.
fn all_settings() -> Result<String> {
    let rows = measured("settings")?;
    let tuned: Vec<&Value> = rows.iter().filter(|row| row["chosen_by"] == "F1").collect();
    let distinct = |field: &str| {
        let mut names: Vec<&str> = Vec::new();
        for name in tuned.iter().filter_map(|row| row[field].as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let sets = distinct("set");
    let mut table = header(std::iter::once("setting").chain(sets.iter().copied()));
    for setting in distinct("setting") {
        let _ = write!(table, "| {setting} ");
        for set in &sets {
            let row = tuned
                .iter()
                .find(|row| row["set"] == *set && row["setting"] == setting);
            let _ = write!(
                table,
                "| {} ",
                row.map_or(String::new(), |row| cell(&row["f1"], 3))
            );
        }
        table.push_str("|\n");
    }
    Ok(table)
}

fn measured(name: &str) -> Result<Vec<Value>> {
    let mut results = read(name)?;
    match results["measured"].take() {
        Value::Array(rows) => Ok(rows),
        _ => bail!("no rows in {name}"),
    }
}

fn highest<'a>(rows: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let f1 = |row: &Value| row["f1"].as_f64().unwrap_or(-1.0);
    rows.reduce(|best, row| if f1(row) > f1(best) { row } else { best })
}

fn faiss() -> Result<String> {
    let results = read("faiss")?;
    let runs = results["runs"].as_array().context("no runs")?;
    let headings = [
        "tool",
        "queries",
        "µs a look-up",
        "look-ups in memory are faster by",
        "the command by",
    ];
    let mut table = header(headings.into_iter());
    for run in runs {
        let faster = |by: &str| match run.get(by) {
            Some(faster) => format!("{}×", cell(faster, 0)),
            None => String::new(),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            cell(&run["tool"], 0),
            cell(&run["queries"], 0),
            cell(&run["microseconds"], 2),
            faster("lookups_are_faster_by"),
            faster("command_is_faster_by"),
        );
    }
    Ok(table)
}

fn peers() -> Result<String> {
    let results = read("peers")?;
    let runs = results["runs"].as_array().context("no runs")?;
    let headings = [
        "tool",
        "input",
        "workers",
        "seconds",
        "MB/s",
        "recall",
        "precision",
        "lookalike is faster by",
    ];
    let mut table = header(headings.into_iter());
    for run in runs {
        let judged = &run["judged_by"];
        let faster = run.get("lookalike_is_faster_by");
        let _ = writeln!(
            table,
            "| {} {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(&run["tool"], 0),
            cell(&run["version"], 0),
            cell(&run["file"], 0),
            cell(&run["workers"], 0),
            cell(&run["seconds"], 2),
            cell(&run["megabytes_per_second"], 1),
            cell(&judged["recall"], 3),
            cell(&judged["precision"], 3),
            faster.map_or(String::new(), |faster| format!("{}×", cell(faster, 0)))
        );
    }
    Ok(table)
}
