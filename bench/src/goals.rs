//! One table of goals and measurements, so that every missed goal is visible.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tables::read;

/// A goal for a measured value.
struct Goal {
    what: &'static str,
    wanted: Wanted,
    unit: &'static str,
    measured: Measured,
}

enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

type Measured = fn() -> Result<f64>;

const fn at_least(what: &'static str, wanted: f64, unit: &'static str, measured: Measured) -> Goal {
    let wanted = Wanted::AtLeast(wanted);
    Goal {
        what,
        wanted,
        unit,
        measured,
    }
}

const fn at_most(what: &'static str, wanted: f64, unit: &'static str, measured: Measured) -> Goal {
    let wanted = Wanted::AtMost(wanted);
    Goal {
        what,
        wanted,
        unit,
        measured,
    }
}

impl Goal {
    /// Returns whether the goal is reached, and its row of a table.
    fn compare(&self) -> Result<(bool, String)> {
        let measured = (self.measured)().with_context(|| self.what)?;
        let unit = match self.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let (sign, wanted, is_reached) = match self.wanted {
            Wanted::AtLeast(wanted) => ("≥", wanted, measured >= wanted),
            Wanted::AtMost(wanted) => ("≤", wanted, measured <= wanted),
        };
        let row = format!(
            "| {} | {sign} {}{unit} | {}{unit} |",
            self.what,
            figure(wanted),
            figure(measured),
        );
        Ok((is_reached, row))
    }
}

/// Returns the table of one part of the document of goals.
pub fn table(part: &str) -> Result<String> {
    let goals: &[Goal] = match part {
        "batch" => &BATCH_GOALS,
        "hamming" => &HAMMING_GOALS,
        "chinese" => &CHINESE_GOALS,
        "service" => &SERVICE_GOALS,
        "python" => &PYTHON_GOALS,
        "page" => &PAGE_GOALS,
        _ => anyhow::bail!("there are no goals of '{part}'"),
    };
    let mut table = "| what | aimed at | measured | reached |\n|---|---|---|---|\n".to_owned();
    for goal in goals {
        let (is_reached, row) = goal.compare()?;
        let reached = if is_reached { "yes" } else { "**no**" };
        let _ = writeln!(table, "{row} {reached} |");
    }
    Ok(table)
}

/// Returns the table of all goals that were missed.
pub fn missed_table() -> Result<String> {
    let parts: [&[Goal]; 6] = [
        &BATCH_GOALS,
        &HAMMING_GOALS,
        &CHINESE_GOALS,
        &SERVICE_GOALS,
        &PYTHON_GOALS,
        &PAGE_GOALS,
    ];
    let mut table = "| what | aimed at | measured |\n|---|---|---|\n".to_owned();
    for goal in parts.into_iter().flatten() {
        let (is_reached, row) = goal.compare()?;
        if !is_reached {
            let _ = writeln!(table, "{row}");
        }
    }
    Ok(table)
}

/// Formats a value with about three digits, or more before the point.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns a field of the first row of a result that has these values.
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

/// Returns the speed of a format as a share of that of plain JSONL or TSV.
fn share(corpus: &str, format: &str) -> Result<f64> {
    let speed = |format| dedup(corpus, format, "0.8", "megabytes_per_second");
    Ok(speed(format)? / speed("as it is")?)
}

/// Returns the highest peak memory of a corpus in any format, as a share of its bound.
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

const BATCH_GOALS: [Goal; 29] = [
    at_least(
        "`dedup` of en_docs, 2 threads, threshold .8",
        600.0,
        "MB/s",
        || dedup("en_docs", "as it is", "0.8", "megabytes_per_second"),
    ),
    at_least("the same at .75, the default since", 600.0, "MB/s", || {
        dedup("en_docs", "as it is", "0.75", "megabytes_per_second")
    }),
    at_least(
        "`dedup` of en_docs beside rensa, one thread each",
        30.0,
        "times",
        || of("peers", &[("tool", "rensa")], "lookalike_is_faster_by"),
    ),
    at_least(
        "`dedup` beside datatrove, 4,000 documents, two workers each",
        300.0,
        "times",
        || of("peers", &[("tool", "datatrove")], "lookalike_is_faster_by"),
    ),
    at_least("`dedup` of zh_docs, threshold .8", 350.0, "MB/s", || {
        dedup("zh_docs", "as it is", "0.8", "megabytes_per_second")
    }),
    at_least("the same at .75", 350.0, "MB/s", || {
        dedup("zh_docs", "as it is", "0.75", "megabytes_per_second")
    }),
    at_least("`dedup` of zh_short, threshold .8", 1.0, "M rows/s", || {
        dedup(
            "zh_short",
            "as it is",
            "0.8",
            "million_documents_per_second",
        )
    }),
    at_least("the same at .75", 1.0, "M rows/s", || {
        dedup(
            "zh_short",
            "as it is",
            "0.75",
            "million_documents_per_second",
        )
    }),
    at_least("en_docs as Parquet, share of that speed", 0.4, "", || {
        share("en_docs", "parquet")
    }),
    at_least("en_docs as `.jsonl.zst`", 0.4, "", || {
        share("en_docs", "zstd")
    }),
    at_least(
        "zh_docs as Parquet, share of the speed of JSONL",
        0.4,
        "",
        || share("zh_docs", "parquet"),
    ),
    at_least("zh_docs as `.jsonl.zst`", 0.4, "", || {
        share("zh_docs", "zstd")
    }),
    at_least("zh_short as Parquet", 0.4, "", || {
        share("zh_short", "parquet")
    }),
    at_least("zh_short as `.tsv.zst`", 0.4, "", || {
        share("zh_short", "zstd")
    }),
    at_least(
        "MinHash of English text (`default-1`)",
        800.0,
        "MB/s",
        || sketch("en_docs", "default-1", "fast-similarity-128", "avx512"),
    ),
    at_least(
        "SimHash of English text (`words-1`)",
        1200.0,
        "MB/s",
        || sketch("en_docs", "words-1", "simhash-64", "avx512"),
    ),
    at_least(
        "MinHash of Chinese text (`characters-3`)",
        500.0,
        "MB/s",
        || sketch("zh_docs", "characters-3", "fast-similarity-128", "avx512"),
    ),
    at_least(
        "SimHash of Chinese text (`characters-3`)",
        700.0,
        "MB/s",
        || sketch("zh_docs", "characters-3", "simhash-64", "avx512"),
    ),
    at_least("with AVX2, MinHash of English text", 400.0, "MB/s", || {
        sketch("en_docs", "default-1", "fast-similarity-128", "avx2")
    }),
    at_least("with AVX2, SimHash of English text", 600.0, "MB/s", || {
        sketch("en_docs", "words-1", "simhash-64", "avx2")
    }),
    at_least("with AVX2, MinHash of Chinese text", 250.0, "MB/s", || {
        sketch("zh_docs", "characters-3", "fast-similarity-128", "avx2")
    }),
    at_least("with AVX2, SimHash of Chinese text", 350.0, "MB/s", || {
        sketch("zh_docs", "characters-3", "simhash-64", "avx2")
    }),
    at_most(
        "most memory of en_docs, share of its bound",
        1.0,
        "",
        || memory("en_docs"),
    ),
    at_most("most memory of zh_docs", 1.0, "", || memory("zh_docs")),
    at_most("most memory of zh_short", 1.0, "", || memory("zh_short")),
    at_most("most memory of one template 100,000 times", 1.0, "", || {
        memory("template")
    }),
    at_most("of 20,000 long documents of one", 1.0, "", || {
        memory("long template")
    }),
    at_least(
        "least recall beside the exact join, thresholds .6 to .9",
        0.99,
        "",
        || least("recall"),
    ),
    at_least(
        "least precision beside the oracle on strings, the same thresholds",
        1.0,
        "",
        || least("precision"),
    ),
];

fn least(quality: &str) -> Result<f64> {
    let results = read("quality")?;
    let rows = results["measured"].as_array().context("no rows")?;
    let figures = rows.iter().map(|row| row[quality].as_f64());
    let all = figures.collect::<Option<Vec<_>>>().context("no figure")?;
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

fn live_texts(what: &str) -> Result<f64> {
    of("live_texts", &[("what", what)], "figure")
}

const HAMMING_GOALS: [Goal; 28] = [
    at_most(
        "50 M, k = 3, batched, at most 24 B each (lines)",
        0.6,
        "µs",
        || lookup(3, 64, "lines)", "batched_microseconds"),
    ),
    at_most("the same at most 17 B each (packed)", 0.9, "µs", || {
        lookup(3, 64, "packed)", "batched_microseconds")
    }),
    at_most("one at a time (lines)", 1.1, "µs", || {
        lookup(3, 64, "lines)", "single_microseconds")
    }),
    at_most("bytes each (lines)", 24.0, "B", || {
        lookup(3, 64, "lines)", "bytes_each")
    }),
    at_most("bytes each (packed)", 17.0, "B", || {
        lookup(3, 64, "packed)", "bytes_each")
    }),
    at_most("50 M, k = 6, batched (packed)", 6.0, "µs", || {
        lookup(6, 64, "packed)", "batched_microseconds")
    }),
    at_most("50 M of 128 bits, k = 7, batched", 3.0, "µs", || {
        lookup(7, 128, "lines)", "batched_microseconds")
    }),
    at_most("build, 50 M, both cores", 2.0, "s", || {
        lookup(3, 64, "lines)", "build_seconds")
    }),
    at_least(
        "10 M beside faiss `IndexBinaryMultiHash(64, 4, 16)`",
        200.0,
        "times",
        || {
            let row = [("tool", "faiss IndexBinaryMultiHash(64, 4, 16)")];
            of("faiss", &row, "lookups_are_faster_by")
        },
    ),
    at_least(
        "10 M beside faiss `IndexBinaryFlat`",
        20_000.0,
        "times",
        || {
            let row = [("tool", "faiss IndexBinaryFlat")];
            of("faiss", &row, "lookups_are_faster_by")
        },
    ),
    at_most("distances of a million pairs", 2000.0, "µs", || {
        let row = [("plan", "distances of a million pairs, together")];
        of("hamming", &row, "single_microseconds")
    }),
    at_most("a billion, k = 3: bytes each", 15.0, "B", || {
        of("hamming_large", &[("distance", "3")], "bytes_each")
    }),
    at_most("a billion, batched", 2.5, "µs", || {
        of(
            "hamming_large",
            &[("distance", "3")],
            "batched_microseconds",
        )
    }),
    at_most("a billion, build", 120.0, "s", || {
        of("hamming_large", &[("distance", "3")], "build_seconds")
    }),
    at_most("a billion, batched, without AVX-512", 2.5, "µs", || {
        let row = [("distance", "3")];
        of("hamming_large_avx2", &row, "batched_microseconds")
    }),
    at_most("a billion, build, without AVX-512", 120.0, "s", || {
        of("hamming_large_avx2", &[("distance", "3")], "build_seconds")
    }),
    at_most(
        "a million queries of 50 M from the command line, one thread, each",
        0.6,
        "µs",
        || {
            let row = [("what", "search"), ("threads", "1")];
            of("search", &row, "microseconds_each")
        },
    ),
    at_most(
        "the same, two threads, its default there",
        0.6,
        "µs",
        || {
            let row = [("what", "search"), ("threads", "2")];
            of("search", &row, "microseconds_each")
        },
    ),
    at_most("all pairs, 50 M, k = 3, both cores", 4.0, "s", || {
        join("50000000")
    }),
    at_most("all pairs, 1 M, k = 3, both cores", 0.06, "s", || {
        join("1000000")
    }),
    at_least("live, 50 M: inserts while it grows", 4.0, "M/s", || {
        live("insert, growing from nothing")
    }),
    at_least("inserts while the window slides", 4.0, "M/s", || {
        live("insert, window sliding")
    }),
    at_most("look-ups beside 1 M inserts/s, batched", 1.0, "µs", || {
        live("look-up meanwhile, batched")
    }),
    at_most("memory, window sliding", 36.0, "B each", || {
        live("memory, window sliding")
    }),
    at_most(
        "longest pause while it grows, on the clock",
        20.0,
        "ms",
        || live("longest insertion of 128 meanwhile, on the clock"),
    ),
    at_most(
        "longest pause while it grows, time worked",
        20.0,
        "ms",
        || live("longest insertion of 128 meanwhile, time worked"),
    ),
    at_least(
        "en_docs: look-ups within 20 medians and 50 ns a match",
        100.0,
        "%",
        || live_texts("look-ups within 20 medians and 50 ns a match (en_docs)"),
    ),
    at_least("zh_short: the same", 100.0, "%", || {
        live_texts("look-ups within 20 medians and 50 ns a match (zh_short)")
    }),
];

fn chinese(work: &str, recipe: &str) -> Result<f64> {
    let row = [("work", work), ("recipe", recipe)];
    of("chinese", &row, "megabytes_per_second")
}

fn beside_package(corpus: &str, recipe: &str) -> Result<f64> {
    let row = [("corpus", corpus), ("recipe", recipe)];
    of("compat_peers", &row, "engine_times")
}

const CHINESE_GOALS: [Goal; 10] = [
    at_least(
        "SimHash through jieba, TF-IDF, top 20, one core",
        20.0,
        "MB/s",
        || chinese("TF-IDF, top 20, SimHash", "jieba"),
    ),
    at_least(
        "SimHash through jieba beside segmentation alone",
        0.8,
        "",
        || Ok(chinese("TF-IDF, top 20, SimHash", "jieba")? / chinese("jieba-rs alone", "")?),
    ),
    at_least("`idf` with jieba, two cores", 40.0, "MB/s", || {
        chinese("document frequencies", "jieba")
    }),
    at_least("`idf` with 2-grams of characters", 150.0, "MB/s", || {
        chinese("document frequencies", "characters-2")
    }),
    at_least("`idf` with 3-grams of characters", 150.0, "MB/s", || {
        chinese("document frequencies", "characters-3")
    }),
    at_least(
        "`1e0ng` beside PyPI simhash, English",
        100.0,
        "times",
        || beside_package("en_docs", "1e0ng"),
    ),
    at_least("the same, Chinese", 100.0, "times", || {
        beside_package("zh_docs", "1e0ng")
    }),
    at_least(
        "`datasketch-affine32` beside PyPI datasketch, English",
        20.0,
        "times",
        || beside_package("en_docs", "datasketch-affine32"),
    ),
    at_least("the same, Chinese", 20.0, "times", || {
        beside_package("zh_docs", "datasketch-affine32")
    }),
    at_most(
        "Levenshtein of two sentences of 17 characters, a million times, characters decoded",
        150.0,
        "ms",
        || of("measures", &[("what", "Levenshtein")], "milliseconds"),
    ),
];

fn stored(what: &str, unit: &str, documents: &str) -> Result<f64> {
    let row = [("what", what), ("unit", unit), ("documents", documents)];
    of("serve", &row, "figure")
}

fn stored_large(what: &str) -> Result<f64> {
    of("serve_large", &[("what", what)], "figure")
}

fn served(what: &str, unit: &str) -> Result<f64> {
    of("http", &[("what", what), ("unit", unit)], "figure")
}

fn served_large(what: &str, unit: &str) -> Result<f64> {
    let row = [("what", what), ("unit", unit)];
    of("http_large", &row, "figure")
}

/// Returns the largest value of `field` among all attacks, leaving out the row without one.
fn worst_attack(field: &str) -> Result<f64> {
    let results = read("attacks")?;
    let rows = results["measured"].as_array().context("no rows")?;
    let attacks = rows.iter().filter(|row| row["attack"] != "none");
    let figures = attacks.map(|row| row[field].as_f64());
    let all = figures.collect::<Option<Vec<_>>>().context("no figure")?;
    all.into_iter().reduce(f64::max).context("no rows")
}

fn compacted(what: &str) -> Result<f64> {
    of("compaction", &[("what", what)], "figure")
}

const SERVICE_GOALS: [Goal; 29] = [
    at_least(
        "bulk NDJSON of zh_short over HTTP, its client on the same cores",
        150.0,
        "thousand/s",
        || served("bulk, titles", "thousand documents/s"),
    ),
    at_least("bulk without HTTP", 150.0, "thousand/s", || {
        stored("bulk, durable (titles, default)", "thousand/s", "1500000")
    }),
    at_least(
        "bulk with 20 M in the window, without HTTP",
        100.0,
        "thousand/s",
        || {
            stored(
                "bulk, durable (many in the window, default)",
                "thousand/s",
                "20000000",
            )
        },
    ),
    at_most(
        "check and insert at 2,000 a second, 20 M, without HTTP, 99 of 100",
        3.0,
        "ms",
        || {
            let what = "check and insert at 2,000 a second, durable, 99 of 100";
            stored(what, "ms", "20000000")
        },
    ),
    at_most("the same over HTTP, 1.5 M", 3.0, "ms", || {
        let what = "single, documents, 64 connections at 2000 a second";
        served(what, "ms, 99th percentile")
    }),
    at_most(
        "check alone, 20 M, without HTTP, 99 of 100",
        0.2,
        "ms",
        || stored("check, 99 of 100", "ms", "20000000"),
    ),
    at_most("the same over HTTP, 1.5 M", 0.2, "ms", || {
        let what = "single, query, 64 connections at 2000 a second";
        served(what, "ms, 99th percentile")
    }),
    at_least(
        "bulk with 20 M in the window, over HTTP",
        100.0,
        "thousand/s",
        || served_large("bulk, titles", "thousand documents/s"),
    ),
    at_most(
        "check and insert at 2,000 a second, 20 M, over HTTP, 99 of 100",
        3.0,
        "ms",
        || {
            let what = "single, documents, 64 connections at 2000 a second";
            served_large(what, "ms, 99th percentile")
        },
    ),
    at_most("check alone, 20 M, over HTTP, 99 of 100", 0.2, "ms", || {
        let what = "single, query, 64 connections at 2000 a second";
        served_large(what, "ms, 99th percentile")
    }),
    at_most("from `kill -9` to ready with 20 M", 30.0, "s", || {
        served_large("from kill -9 to ready again", "s")
    }),
    at_most("the same with every cache lost", 180.0, "s", || {
        served_large("the same with every cache lost", "s")
    }),
    at_most("memory, 20 M, default recipe", 200.0, "B/document", || {
        stored(
            "memory (many in the window, default)",
            "B/document",
            "20000000",
        )
    }),
    at_least(
        "bulk with 50 M in the window, without HTTP",
        80.0,
        "thousand/s",
        || stored_large("bulk, durable (many in the window, default)"),
    ),
    at_most("memory, 50 M, default recipe", 200.0, "B/document", || {
        stored_large("memory (many in the window, default)")
    }),
    at_most("memory, 50 M, SimHash", 60.0, "B/document", || {
        stored_large("memory (many in the window, SimHash)")
    }),
    at_least(
        "single documents, 64 connections",
        15.0,
        "thousand/s",
        || served("single, documents, 64 connections", "thousand documents/s"),
    ),
    at_least(
        "long English documents, bulk, over HTTP",
        120.0,
        "MB/s",
        || served("bulk, english", "MB/s"),
    ),
    at_most("opening with 20 M", 30.0, "s", || {
        stored("opening (many in the window, default)", "s", "20000000")
    }),
    at_most("opening with 20 M, every cache lost", 180.0, "s", || {
        stored(
            "opening without sketches (many in the window, default)",
            "s",
            "20000000",
        )
    }),
    at_most(
        "honest requests under the worst attack, 99 of 100",
        250.0,
        "ms",
        || worst_attack("p99_ms"),
    ),
    at_most("honest requests refused under an attack", 0.0, "", || {
        worst_attack("refused")
    }),
    at_most(
        "`/livez` under the worst attack, 99 of 100",
        50.0,
        "ms",
        || worst_attack("probe_p99_ms"),
    ),
    at_most(
        "`/livez` under the worst attack, longest",
        250.0,
        "ms",
        || worst_attack("probe_longest_ms"),
    ),
    at_most(
        "from SIGTERM to the end with `--drain 5s` under attack",
        8.0,
        "s",
        || worst_attack("end_seconds"),
    ),
    at_most("acknowledged inserts lost under an attack", 0.0, "", || {
        worst_attack("lost")
    }),
    at_most(
        "2,000 inserts a second while partitions are compacted, 99 of 100",
        5.0,
        "ms",
        || compacted("inserts of 1, 2000 documents a second, 99 of 100 (while compacted)"),
    ),
    at_least(
        "bulk while partitions are compacted, share of that left alone",
        0.85,
        "",
        || compacted("bulk while compacted, share of that left alone"),
    ),
    at_most(
        "disk after 8,000 documents were replaced 100 times, of that after one round",
        2.0,
        "times",
        || compacted("disk after 100 rounds of replacement, of that after one"),
    ),
];

fn package(what: &'static str, field: &str) -> Result<f64> {
    of("python", &[("what", what)], field)
}

fn page(what: &'static str, field: &str) -> Result<f64> {
    of("page", &[("what", what)], field)
}

const PAGE_GOALS: [Goal; 3] = [
    at_most(
        "all that a first visit of the page in the browser loads, compressed with gzip",
        3.0,
        "MB",
        || {
            let what = "compressed with gzip: all that a first visit loads";
            of("page_sizes", &[("what", what)], "megabytes")
        },
    ),
    at_most(
        "passages of 60 essays in the page, processor time",
        1.0,
        "s",
        || page("passages of 60 essays", "processor_seconds"),
    ),
    at_most(
        "`dedup` of a million titles in the page, processor time",
        30.0,
        "s",
        || page("`dedup` of a million titles", "processor_seconds"),
    ),
];

fn spark(corpus: &str, documents: &str) -> Result<f64> {
    let row = [("corpus", corpus), ("documents", documents)];
    of("spark", &row, "share")
}

const PYTHON_GOALS: [Goal; 7] = [
    at_least(
        "`la.dedup` of a table of en_docs beside the command on the file",
        0.8,
        "",
        || package("`la.dedup` of a pyarrow table, 2 threads", "ratio"),
    ),
    at_least(
        "datasketch's loop, a token at a time, the import changed",
        10.0,
        "times",
        || {
            let what = "`MinHash` and `MinHashLSH`: update, a token at a time";
            package(what, "ratio")
        },
    ),
    at_least("the same, a document at a time", 10.0, "times", || {
        let what = "`MinHash` and `MinHashLSH`: update_batch, a document at a time";
        package(what, "ratio")
    }),
    at_least(
        "signatures of texts beside rensa's, one thread each",
        5.0,
        "times",
        || {
            let what = "`la.minhash`, texts to 128 slots of word pairs, 1 threads";
            package(what, "ratio")
        },
    ),
    at_least("Spark, en_docs, beside the command", 0.25, "", || {
        spark("en_docs", "38698")
    }),
    at_least("Spark, zh_docs", 0.25, "", || spark("zh_docs", "33284")),
    at_least(
        "Spark beside the command, a million titles",
        0.25,
        "",
        || spark("zh_short", "1000000"),
    ),
];
