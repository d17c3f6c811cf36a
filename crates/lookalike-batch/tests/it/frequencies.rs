//! Tables of document frequencies are the same bytes in any memory.

use std::path::{Path, PathBuf};

use lookalike::Recipe;
use lookalike_batch::run::{
    IdfSettings, IdfSummary, MemoryLimit, SilentProgress, write_frequencies,
};
use lookalike_io::error::Result;
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::ReadOptions;
use tempfile::tempdir;

/// Texts of words of which few are frequent, some in Chinese, some without words, and a bad row.
fn write_corpus(path: &Path, seed: u64, documents: u64) {
    let hash = |at: u64| lookalike::value_hash(&(seed << 40 | at).to_le_bytes());
    let mut rows = String::new();
    for document in 0..documents {
        let word = |at: u64| {
            let number = hash(document * 1000 + at);
            let rank = (number % 3000) * (number >> 20 & 0x3ff) / 1024;
            match number % 5 {
                0 => format!("{}", char::from_u32(0x4e00 + rank as u32).unwrap()),
                1 => format!("W{rank}"),
                _ => format!("w{rank}"),
            }
        };
        let words: Vec<String> = (0..hash(document) % 60).map(word).collect();
        rows += &format!("{}\n", serde_json::json!({ "text": words.join(" ") }));
    }
    rows += "{\"text\": 7}\n";
    std::fs::write(path, rows).unwrap();
}

/// Learns a table. Returns its bytes and the summary.
fn learn(input: &Path, settings: &IdfSettings) -> Result<(Vec<u8>, IdfSummary)> {
    let output = input.with_extension("table");
    let target = OutputTarget::Path(output.clone());
    let source = vec![input.to_path_buf()].into();
    let summary = write_frequencies(&source, settings, &target, None, &SilentProgress)?;
    Ok((std::fs::read(output).unwrap(), summary))
}

fn settings_of(recipe: &str, merge: &[PathBuf], threads: usize) -> IdfSettings {
    IdfSettings {
        recipe: Recipe::built_in(recipe).unwrap(),
        least_documents: 1,
        top: None,
        merge: merge.to_vec(),
        read: ReadOptions {
            block_bytes: 16 << 10,
            ..ReadOptions::default()
        },
        threads,
        strict: false,
        memory: None,
    }
}

/// Returns the settings with a limit of which so many bytes are for terms.
fn bounded(settings: &IdfSettings, working_set: u64) -> IdfSettings {
    IdfSettings {
        memory: Some(MemoryLimit {
            bytes: 1 << 40,
            is_set: true,
            working_set: Some(working_set),
        }),
        ..settings.clone()
    }
}

/// From a run of every few terms to one run of each shard.
const WORKING_SETS: [u64; 4] = [1, 100_000, 2_000_000, 1 << 30];

#[test]
fn tables_are_the_same_in_any_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("a.jsonl"), 1, 1500);
    write_corpus(&path("b.jsonl"), 2, 700);
    for (number, recipe) in ["characters-3", "default", "words-1", "jieba"]
        .iter()
        .enumerate()
    {
        let threads = 1 + number % 3;
        let earlier = learn(&path("b.jsonl"), &settings_of(recipe, &[], threads)).unwrap();
        std::fs::write(path("b.tsv"), &earlier.0).unwrap();
        let merged = [path("b.tsv"), path("b.tsv")];
        for (merge, least, top) in [
            (&[][..], 1, None),
            (&[], 3, Some(50)),
            (&merged[..1], 1, None),
            (&merged[..], 4, Some(1000)),
        ] {
            let settings = IdfSettings {
                least_documents: least,
                top,
                ..settings_of(recipe, merge, threads)
            };
            let (expected, summary) = learn(&path("a.jsonl"), &settings).unwrap();
            assert!(
                summary.terms > 0 && summary.spilled.is_none(),
                "{summary:?}"
            );
            for working_set in WORKING_SETS {
                let settings = bounded(&settings, working_set);
                let (found, spilled) = learn(&path("a.jsonl"), &settings).unwrap();
                assert!(found == expected, "{recipe} {least} {working_set}");
                assert_eq!(
                    (spilled.counted, spilled.terms, spilled.rejected),
                    (summary.counted, summary.terms, 1)
                );
                let spilled = spilled.spilled.unwrap();
                let least_runs = if working_set == 1 { 500 } else { 100 };
                assert!(
                    spilled.bytes > 10_000 && spilled.runs > least_runs,
                    "{spilled:?}"
                );
            }
        }
    }
}

#[test]
fn a_limit_that_suffices_spills_nothing() {
    let directory = tempdir().unwrap();
    let input = directory.path().join("a.jsonl");
    write_corpus(&input, 3, 300);
    let settings = settings_of("default", &[], 2);
    let limited = IdfSettings {
        memory: Some(MemoryLimit {
            bytes: 300 << 20,
            is_set: true,
            working_set: None,
        }),
        ..settings.clone()
    };
    let (expected, _) = learn(&input, &settings).unwrap();
    let (found, summary) = learn(&input, &limited).unwrap();
    assert!(found == expected && summary.spilled.is_none());
}

#[test]
fn tables_to_merge_are_checked_in_any_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("a.jsonl"), 4, 100);
    let table = learn(&path("a.jsonl"), &settings_of("words-1", &[], 1))
        .unwrap()
        .0;
    let table = String::from_utf8(table).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let mut repeated = lines.clone();
    repeated[9] = lines[8];
    let cut = lines[..lines.len() - 1].join("\n");
    for (name, text, message) in [
        (
            "repeated.tsv",
            repeated.join("\n"),
            "repeated.tsv:10: the term",
        ),
        ("cut.tsv", cut, "it was truncated or changed"),
        (
            "no.tsv",
            "x\t1\n".to_owned(),
            "is not a table of document frequencies",
        ),
    ] {
        std::fs::write(path(name), text).unwrap();
        let settings = settings_of("words-1", &[path(name)], 1);
        for settings in [settings.clone(), bounded(&settings, 1)] {
            let error = learn(&path("a.jsonl"), &settings).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
    let own = path("own.tsv");
    std::fs::write(&own, table).unwrap();
    let settings = settings_of("jieba", &[own], 1);
    for settings in [settings.clone(), bounded(&settings, 1)] {
        let error = learn(&path("a.jsonl"), &settings).unwrap_err().to_string();
        assert!(
            error.contains("own.tsv was learned under the recipe words-1"),
            "{error}"
        );
    }
}
