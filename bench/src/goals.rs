//! What was aimed at, beside what was measured: one table, so that no figure that fell short is missed
//! among those that did not.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tables::read;

/// A figure aimed at. Rows are found by the fields that tell them apart.
struct Goal {
    what: &'static str,
    wanted: Wanted,
    unit: &'static str,
    measured: fn() -> Result<f64>,
}

enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

use Wanted::{AtLeast, AtMost};

/// The table of one part of the document.
pub fn table(part: &str) -> Result<String> {
    let goals: &[Goal] = match part {
        "batch" => &BATCH,
        "hamming" => &HAMMING,
        "chinese" => &CHINESE,
        "service" => &SERVICE,
        "python" => &PYTHON,
        _ => anyhow::bail!("there are no goals of '{part}'"),
    };
    let mut table = "| what | aimed at | measured | reached |\n|---|---|---|---|\n".to_owned();
    for goal in goals {
        let measured = (goal.measured)().with_context(|| goal.what)?;
        let unit = match goal.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let (sign, wanted, reached) = match goal.wanted {
            AtLeast(wanted) => ("≥", wanted, measured >= wanted),
            AtMost(wanted) => ("≤", wanted, measured <= wanted),
        };
        let _ = writeln!(
            table,
            "| {} | {sign} {}{unit} | {}{unit} | {} |",
            goal.what,
            figure(wanted),
            figure(measured),
            if reached { "yes" } else { "**no**" },
        );
    }
    Ok(table)
}

/// Some three digits, more before the point.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A field of the first row of a result that has these values.
fn of(name: &str, row: &[(&str, &str)], field: &str) -> Result<f64> {
    let results = read(name)?;
    let rows = results.get("measured").or_else(|| results.get("runs"));
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fits = |one: &&Value| row.iter().all(|(key, value)| text(&one[*key]) == *value);
    rows.and_then(Value::as_array)
        .and_then(|rows| rows.iter().find(fits))
        .and_then(|row| row[field].as_f64())
        .with_context(|| format!("{name}.json has no {field} of {row:?}"))
}

fn dedup(corpus: &str, format: &str, threshold: &str, field: &str) -> Result<f64> {
    let row = [
        ("corpus", corpus),
        ("format", format),
        ("threshold", threshold),
        ("threads", "2"),
    ];
    of("dedup", &row, field)
}

/// The speed of a format as a share of that of plain JSONL or TSV.
fn share(corpus: &str, format: &str) -> Result<f64> {
    let speed = |format| dedup(corpus, format, "0.8", "megabytes_per_second");
    Ok(speed(format)? / speed("as it is")?)
}

/// The highest peak of memory of a corpus, in any format, as a share of its bound.
fn memory(corpus: &str) -> Result<f64> {
    let results = read("memory")?;
    let rows = results["measured"].as_array().context("no rows")?;
    let rows = rows.iter().filter(|row| row["corpus"] == corpus);
    let shares =
        rows.map(|row| Some(row["peak_megabytes"].as_f64()? / row["bound_megabytes"].as_f64()?));
    let most = shares.collect::<Option<Vec<_>>>().context("no peaks")?;
    most.into_iter().reduce(f64::max).context("no rows")
}

fn sketch(corpus: &str, recipe: &str, sketch: &str, instructions: &str) -> Result<f64> {
    let row = [
        ("corpus", corpus),
        ("recipe", recipe),
        ("sketch", sketch),
        ("instructions", instructions),
    ];
    of("sketch", &row, "megabytes_per_second")
}

const BATCH: [Goal; 27] = [
    Goal {
        what: "`dedup` of en_docs, 2 threads, threshold .8",
        wanted: AtLeast(600.0),
        unit: "MB/s",
        measured: || dedup("en_docs", "as it is", "0.8", "megabytes_per_second"),
    },
    Goal {
        what: "the same at .75, the default since",
        wanted: AtLeast(600.0),
        unit: "MB/s",
        measured: || dedup("en_docs", "as it is", "0.75", "megabytes_per_second"),
    },
    Goal {
        what: "beside rensa, one thread each",
        wanted: AtLeast(30.0),
        unit: "times",
        measured: || of("peers", &[("tool", "rensa")], "lookalike_is_faster_by"),
    },
    Goal {
        what: "beside datatrove, 4,000 documents, two workers each",
        wanted: AtLeast(300.0),
        unit: "times",
        measured: || of("peers", &[("tool", "datatrove")], "lookalike_is_faster_by"),
    },
    Goal {
        what: "`dedup` of zh_docs, threshold .8",
        wanted: AtLeast(350.0),
        unit: "MB/s",
        measured: || dedup("zh_docs", "as it is", "0.8", "megabytes_per_second"),
    },
    Goal {
        what: "the same at .75",
        wanted: AtLeast(350.0),
        unit: "MB/s",
        measured: || dedup("zh_docs", "as it is", "0.75", "megabytes_per_second"),
    },
    Goal {
        what: "`dedup` of zh_short, threshold .8",
        wanted: AtLeast(1.0),
        unit: "M rows/s",
        measured: || {
            dedup(
                "zh_short",
                "as it is",
                "0.8",
                "million_documents_per_second",
            )
        },
    },
    Goal {
        what: "the same at .75",
        wanted: AtLeast(1.0),
        unit: "M rows/s",
        measured: || {
            dedup(
                "zh_short",
                "as it is",
                "0.75",
                "million_documents_per_second",
            )
        },
    },
    Goal {
        what: "en_docs as Parquet, share of that speed",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("en_docs", "parquet"),
    },
    Goal {
        what: "en_docs as `.jsonl.zst`",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("en_docs", "zstd"),
    },
    Goal {
        what: "zh_docs as Parquet",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("zh_docs", "parquet"),
    },
    Goal {
        what: "zh_docs as `.jsonl.zst`",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("zh_docs", "zstd"),
    },
    Goal {
        what: "zh_short as Parquet",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("zh_short", "parquet"),
    },
    Goal {
        what: "zh_short as `.tsv.zst`",
        wanted: AtLeast(0.4),
        unit: "",
        measured: || share("zh_short", "zstd"),
    },
    Goal {
        what: "MinHash of English text (`default-1`)",
        wanted: AtLeast(800.0),
        unit: "MB/s",
        measured: || sketch("en_docs", "default-1", "fast-similarity-128", "avx512"),
    },
    Goal {
        what: "SimHash of English text (`words-1`)",
        wanted: AtLeast(1200.0),
        unit: "MB/s",
        measured: || sketch("en_docs", "words-1", "simhash-64", "avx512"),
    },
    Goal {
        what: "MinHash of Chinese text (`characters-3`)",
        wanted: AtLeast(500.0),
        unit: "MB/s",
        measured: || sketch("zh_docs", "characters-3", "fast-similarity-128", "avx512"),
    },
    Goal {
        what: "SimHash of Chinese text (`characters-3`)",
        wanted: AtLeast(700.0),
        unit: "MB/s",
        measured: || sketch("zh_docs", "characters-3", "simhash-64", "avx512"),
    },
    Goal {
        what: "with AVX2, MinHash of English text",
        wanted: AtLeast(400.0),
        unit: "MB/s",
        measured: || sketch("en_docs", "default-1", "fast-similarity-128", "avx2"),
    },
    Goal {
        what: "with AVX2, SimHash of English text",
        wanted: AtLeast(600.0),
        unit: "MB/s",
        measured: || sketch("en_docs", "words-1", "simhash-64", "avx2"),
    },
    Goal {
        what: "with AVX2, MinHash of Chinese text",
        wanted: AtLeast(250.0),
        unit: "MB/s",
        measured: || sketch("zh_docs", "characters-3", "fast-similarity-128", "avx2"),
    },
    Goal {
        what: "with AVX2, SimHash of Chinese text",
        wanted: AtLeast(350.0),
        unit: "MB/s",
        measured: || sketch("zh_docs", "characters-3", "simhash-64", "avx2"),
    },
    Goal {
        what: "most memory of en_docs, share of its bound",
        wanted: AtMost(1.0),
        unit: "",
        measured: || memory("en_docs"),
    },
    Goal {
        what: "most memory of zh_docs",
        wanted: AtMost(1.0),
        unit: "",
        measured: || memory("zh_docs"),
    },
    Goal {
        what: "most memory of zh_short",
        wanted: AtMost(1.0),
        unit: "",
        measured: || memory("zh_short"),
    },
    Goal {
        what: "most memory of one template 100,000 times",
        wanted: AtMost(1.0),
        unit: "",
        measured: || memory("template"),
    },
    Goal {
        what: "least recall beside the exact join, thresholds .6 to .9",
        wanted: AtLeast(0.99),
        unit: "",
        measured: least_recall,
    },
];

fn least_recall() -> Result<f64> {
    let results = read("quality")?;
    let rows = results["measured"].as_array().context("no rows")?;
    let recalls = rows.iter().map(|row| row["recall"].as_f64());
    let all = recalls.collect::<Option<Vec<_>>>().context("no recall")?;
    all.into_iter().reduce(f64::min).context("no rows")
}

fn lookup(distance: u32, bits: u32, layout: &str, field: &str) -> Result<f64> {
    let results = read("hamming")?;
    let rows = results["measured"].as_array().context("no rows")?;
    let fits = |row: &&Value| {
        row["count"] == 50_000_000
            && row["distance"] == distance
            && row["bits"] == bits
            && row["plan"]
                .as_str()
                .is_some_and(|plan| plan.ends_with(layout))
    };
    let row = rows.iter().find(fits).context("no such row")?;
    row[field].as_f64().context("no such field")
}

fn join(rows: &str) -> Result<f64> {
    let row = [
        ("fingerprints", "uniform"),
        ("rows", rows),
        ("bits", "64"),
        ("distance", "3"),
        ("threads", "2"),
        ("way", "join"),
    ];
    of("join", &row, "seconds")
}

fn live(what: &str) -> Result<f64> {
    of("live", &[("what", what)], "figure")
}

const HAMMING: [Goal; 22] = [
    Goal {
        what: "50 M, k = 3, batched, at most 24 B each (lines)",
        wanted: AtMost(0.6),
        unit: "µs",
        measured: || lookup(3, 64, "lines)", "batched_microseconds"),
    },
    Goal {
        what: "the same at most 17 B each (packed)",
        wanted: AtMost(0.9),
        unit: "µs",
        measured: || lookup(3, 64, "packed)", "batched_microseconds"),
    },
    Goal {
        what: "one at a time (lines)",
        wanted: AtMost(1.1),
        unit: "µs",
        measured: || lookup(3, 64, "lines)", "single_microseconds"),
    },
    Goal {
        what: "bytes each (lines)",
        wanted: AtMost(24.0),
        unit: "B",
        measured: || lookup(3, 64, "lines)", "bytes_each"),
    },
    Goal {
        what: "bytes each (packed)",
        wanted: AtMost(17.0),
        unit: "B",
        measured: || lookup(3, 64, "packed)", "bytes_each"),
    },
    Goal {
        what: "50 M, k = 6, batched",
        wanted: AtMost(6.0),
        unit: "µs",
        measured: || lookup(6, 64, "lines)", "batched_microseconds"),
    },
    Goal {
        what: "50 M of 128 bits, k = 7, batched",
        wanted: AtMost(3.0),
        unit: "µs",
        measured: || lookup(7, 128, "lines)", "batched_microseconds"),
    },
    Goal {
        what: "build, 50 M, both cores",
        wanted: AtMost(2.0),
        unit: "s",
        measured: || lookup(3, 64, "lines)", "build_seconds"),
    },
    Goal {
        what: "10 M beside faiss `IndexBinaryMultiHash(64, 4, 16)`",
        wanted: AtLeast(200.0),
        unit: "times",
        measured: || {
            let row = [("tool", "faiss IndexBinaryMultiHash(64, 4, 16)")];
            of("faiss", &row, "lookalike_is_faster_by")
        },
    },
    Goal {
        what: "10 M beside faiss `IndexBinaryFlat`",
        wanted: AtLeast(20_000.0),
        unit: "times",
        measured: || {
            let row = [("tool", "faiss IndexBinaryFlat")];
            of("faiss", &row, "lookalike_is_faster_by")
        },
    },
    Goal {
        what: "a billion, k = 3: bytes each",
        wanted: AtMost(15.0),
        unit: "B",
        measured: || of("hamming_large", &[("distance", "3")], "bytes_each"),
    },
    Goal {
        what: "a billion, batched",
        wanted: AtMost(2.5),
        unit: "µs",
        measured: || {
            of(
                "hamming_large",
                &[("distance", "3")],
                "batched_microseconds",
            )
        },
    },
    Goal {
        what: "all pairs, 50 M, k = 3, both cores",
        wanted: AtMost(4.0),
        unit: "s",
        measured: || join("50000000"),
    },
    Goal {
        what: "all pairs, 1 M, k = 3, both cores",
        wanted: AtMost(0.06),
        unit: "s",
        measured: || join("1000000"),
    },
    Goal {
        what: "live, 50 M: inserts while it grows",
        wanted: AtLeast(4.0),
        unit: "M/s",
        measured: || live("insert, growing from nothing"),
    },
    Goal {
        what: "inserts while the window slides",
        wanted: AtLeast(4.0),
        unit: "M/s",
        measured: || live("insert, window sliding"),
    },
    Goal {
        what: "look-ups beside 1 M inserts/s, batched",
        wanted: AtMost(1.0),
        unit: "µs",
        measured: || live("look-up meanwhile, batched"),
    },
    Goal {
        what: "memory, window sliding",
        wanted: AtMost(36.0),
        unit: "B each",
        measured: || live("memory, window sliding"),
    },
    Goal {
        what: "longest pause while it grows, on the clock",
        wanted: AtMost(20.0),
        unit: "ms",
        measured: || live("longest insertion of 128 meanwhile, on the clock"),
    },
    Goal {
        what: "longest pause while it grows, time worked",
        wanted: AtMost(20.0),
        unit: "ms",
        measured: || live("longest insertion of 128 meanwhile, time worked"),
    },
    Goal {
        what: "en_docs: look-ups within 20 medians and 50 ns a match",
        wanted: AtLeast(100.0),
        unit: "%",
        measured: || live("look-ups within 20 medians and 50 ns a match (en_docs)"),
    },
    Goal {
        what: "zh_short: the same",
        wanted: AtLeast(100.0),
        unit: "%",
        measured: || live("look-ups within 20 medians and 50 ns a match (zh_short)"),
    },
];

fn chinese(work: &str, recipe: &str) -> Result<f64> {
    let row = [("work", work), ("recipe", recipe)];
    of("chinese", &row, "megabytes_per_second")
}

fn beside_package(corpus: &str, recipe: &str) -> Result<f64> {
    let row = [("corpus", corpus), ("recipe", recipe)];
    of("compat_peers", &row, "engine_times")
}

const CHINESE: [Goal; 10] = [
    Goal {
        what: "SimHash through jieba, TF-IDF, top 20, one core",
        wanted: AtLeast(20.0),
        unit: "MB/s",
        measured: || chinese("TF-IDF, top 20, SimHash", "jieba"),
    },
    Goal {
        what: "beside segmentation alone",
        wanted: AtLeast(0.8),
        unit: "",
        measured: || {
            Ok(chinese("TF-IDF, top 20, SimHash", "jieba")? / chinese("jieba-rs alone", "")?)
        },
    },
    Goal {
        what: "`idf` with jieba, two cores",
        wanted: AtLeast(40.0),
        unit: "MB/s",
        measured: || chinese("document frequencies", "jieba"),
    },
    Goal {
        what: "`idf` with 2-grams of characters",
        wanted: AtLeast(150.0),
        unit: "MB/s",
        measured: || chinese("document frequencies", "characters-2"),
    },
    Goal {
        what: "`idf` with 3-grams of characters",
        wanted: AtLeast(150.0),
        unit: "MB/s",
        measured: || chinese("document frequencies", "characters-3"),
    },
    Goal {
        what: "`1e0ng` beside PyPI simhash, English",
        wanted: AtLeast(100.0),
        unit: "times",
        measured: || beside_package("en_docs", "1e0ng"),
    },
    Goal {
        what: "the same, Chinese",
        wanted: AtLeast(100.0),
        unit: "times",
        measured: || beside_package("zh_docs", "1e0ng"),
    },
    Goal {
        what: "`datasketch-affine32` beside PyPI datasketch, English",
        wanted: AtLeast(20.0),
        unit: "times",
        measured: || beside_package("en_docs", "datasketch-affine32"),
    },
    Goal {
        what: "the same, Chinese",
        wanted: AtLeast(20.0),
        unit: "times",
        measured: || beside_package("zh_docs", "datasketch-affine32"),
    },
    Goal {
        what: "Levenshtein of two sentences of 17 characters, a million times, characters decoded",
        wanted: AtMost(150.0),
        unit: "ms",
        measured: || of("measures", &[("what", "Levenshtein")], "milliseconds"),
    },
];

fn stored(what: &str, unit: &str, documents: &str) -> Result<f64> {
    let row = [("what", what), ("unit", unit), ("documents", documents)];
    of("serve", &row, "figure")
}

fn served(what: &str, unit: &str) -> Result<f64> {
    of("http", &[("what", what), ("unit", unit)], "figure")
}

const SERVICE: [Goal; 13] = [
    Goal {
        what: "bulk NDJSON of zh_short over HTTP, its client on the same cores",
        wanted: AtLeast(150.0),
        unit: "thousand/s",
        measured: || served("bulk, titles", "thousand documents/s"),
    },
    Goal {
        what: "bulk without HTTP",
        wanted: AtLeast(150.0),
        unit: "thousand/s",
        measured: || stored("bulk, durable (titles, default)", "thousand/s", "1500000"),
    },
    Goal {
        what: "bulk with 20 M in the window, without HTTP",
        wanted: AtLeast(100.0),
        unit: "thousand/s",
        measured: || {
            stored(
                "bulk, durable (many in the window, default)",
                "thousand/s",
                "20000000",
            )
        },
    },
    Goal {
        what: "check and insert at 2,000 a second, 20 M, without HTTP, 99 of 100",
        wanted: AtMost(3.0),
        unit: "ms",
        measured: || {
            let what = "check and insert at 2,000 a second, durable, 99 of 100";
            stored(what, "ms", "20000000")
        },
    },
    Goal {
        what: "the same over HTTP, 1.5 M",
        wanted: AtMost(3.0),
        unit: "ms",
        measured: || {
            let what = "single, documents, 64 connections at 2000 a second";
            served(what, "ms, 99th percentile")
        },
    },
    Goal {
        what: "check alone, 20 M, without HTTP, 99 of 100",
        wanted: AtMost(0.2),
        unit: "ms",
        measured: || stored("check, 99 of 100", "ms", "20000000"),
    },
    Goal {
        what: "the same over HTTP, 1.5 M",
        wanted: AtMost(0.2),
        unit: "ms",
        measured: || {
            let what = "single, query, 64 connections at 2000 a second";
            served(what, "ms, 99th percentile")
        },
    },
    Goal {
        what: "memory, 20 M, default recipe",
        wanted: AtMost(200.0),
        unit: "B/document",
        measured: || {
            stored(
                "memory (many in the window, default)",
                "B/document",
                "20000000",
            )
        },
    },
    Goal {
        what: "memory, 5 M, SimHash",
        wanted: AtMost(60.0),
        unit: "B/document",
        measured: || {
            stored(
                "memory (many in the window, SimHash)",
                "B/document",
                "5000000",
            )
        },
    },
    Goal {
        what: "single documents, 64 connections",
        wanted: AtLeast(15.0),
        unit: "thousand/s",
        measured: || served("single, documents, 64 connections", "thousand documents/s"),
    },
    Goal {
        what: "long English documents, bulk, over HTTP",
        wanted: AtLeast(120.0),
        unit: "MB/s",
        measured: || served("bulk, english", "MB/s"),
    },
    Goal {
        what: "opening with 20 M",
        wanted: AtMost(30.0),
        unit: "s",
        measured: || stored("opening (many in the window, default)", "s", "20000000"),
    },
    Goal {
        what: "opening with 20 M, every cache lost",
        wanted: AtMost(180.0),
        unit: "s",
        measured: || {
            stored(
                "opening without sketches (many in the window, default)",
                "s",
                "20000000",
            )
        },
    },
];

fn package(what: &'static str, field: &str) -> Result<f64> {
    of("python", &[("what", what)], field)
}

fn spark(corpus: &str, documents: &str) -> Result<f64> {
    let row = [("corpus", corpus), ("documents", documents)];
    of("spark", &row, "share")
}

const PYTHON: [Goal; 7] = [
    Goal {
        what: "`la.dedup` of a table of en_docs beside the command on the file",
        wanted: AtLeast(0.8),
        unit: "",
        measured: || package("`la.dedup` of a pyarrow table, 2 threads", "ratio"),
    },
    Goal {
        what: "datasketch's loop, a token at a time, the import changed",
        wanted: AtLeast(10.0),
        unit: "times",
        measured: || {
            let what = "`MinHash` and `MinHashLSH`: update, a token at a time";
            package(what, "ratio")
        },
    },
    Goal {
        what: "the same, a document at a time",
        wanted: AtLeast(10.0),
        unit: "times",
        measured: || {
            let what = "`MinHash` and `MinHashLSH`: update_batch, a document at a time";
            package(what, "ratio")
        },
    },
    Goal {
        what: "signatures of texts beside rensa's, one thread each",
        wanted: AtLeast(5.0),
        unit: "times",
        measured: || {
            let what = "`la.minhash`, texts to 128 slots of word pairs, 1 threads";
            package(what, "ratio")
        },
    },
    Goal {
        what: "Spark, en_docs, beside the command",
        wanted: AtLeast(0.25),
        unit: "",
        measured: || spark("en_docs", "38698"),
    },
    Goal {
        what: "Spark, zh_docs",
        wanted: AtLeast(0.25),
        unit: "",
        measured: || spark("zh_docs", "33284"),
    },
    Goal {
        what: "Spark, a million titles",
        wanted: AtLeast(0.25),
        unit: "",
        measured: || spark("zh_short", "1000000"),
    },
];
