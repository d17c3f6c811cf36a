//! Passages are the same bytes in any memory.

use std::path::Path;

use lookalike::passages::PassageSettings;
use lookalike_batch::run::{
    MemoryLimit, OffsetUnit, PassageOrder, PassageOutputs, PassageRunSettings, PassagesSummary,
    RunInputs, RunSettings, SHOWN_PASSAGE_CHARACTERS, SilentProgress, find_passages,
};
use lookalike_io::error::Result;
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{ReadOptions, RowSource};
use lookalike_options::boilerplate_limit::BoilerplateLimit;
use tempfile::tempdir;

fn hash(at: u64) -> u64 {
    lookalike::value_hash(&at.to_le_bytes())
}

/// Documents that share passages with earlier ones, and some a paragraph that many have.
fn write_corpus(path: &Path, seed: u64, documents: u64) {
    let words = |from: u64, count: u64| -> Vec<String> {
        (from..from + count)
            .map(|at| format!("w{}", hash(at) % 20_000))
            .collect()
    };
    let mut rows = String::new();
    for document in 0..documents {
        let random = hash(seed << 32 | document);
        let mut text = words((seed << 40) + 1000 * document, 40 + random % 100);
        if document % 3 == 1 {
            // From a document of any corpus with the same words.
            text.extend(words(1000 * (random % 200) + 5, 20 + random % 50));
        }
        if document % 4 == 2 {
            text.extend(words(900_000_000, 25));
        }
        if document % 10 == 7 {
            let mut shuffled = words(1000 * (random % 150), 60);
            shuffled.sort();
            text.extend(shuffled);
        }
        rows += &format!(
            "{}\n",
            serde_json::json!({ "id": format!("{seed}-{document}"), "text": text.join(" ") })
        );
    }
    rows += "{\"text\": 7}\n";
    std::fs::write(path, rows).unwrap();
}

fn settings(max_documents: BoilerplateLimit, reworded: bool, threads: usize) -> PassageRunSettings {
    let passages = PassageSettings::new(12).unwrap();
    PassageRunSettings {
        reading: RunSettings {
            read: ReadOptions {
                block_bytes: 16 << 10,
                ..ReadOptions::default()
            },
            threads,
            ..RunSettings::default()
        },
        passages: passages.with_reworded(reworded),
        max_documents,
        base: RowSource::default(),
        index: None,
        offsets: OffsetUnit::Characters,
        order: PassageOrder::Position,
        described: 5,
        common_characters: SHOWN_PASSAGE_CHARACTERS,
        limits: None,
    }
}

fn bounded(settings: &PassageRunSettings, working_set: u64) -> PassageRunSettings {
    let mut settings = settings.clone();
    settings.reading.memory = Some(MemoryLimit {
        bytes: 1 << 40,
        is_set: true,
        working_set: Some(working_set),
    });
    settings
}

/// Finds passages. Returns the table and the summary.
fn find(
    directory: &Path,
    against: Option<&str>,
    settings: &PassageRunSettings,
) -> Result<(Vec<u8>, PassagesSummary)> {
    let inputs = RunInputs {
        documents: vec![directory.join("in.jsonl")].into(),
        against: against
            .map(|path| directory.join(path))
            .into_iter()
            .collect::<Vec<_>>()
            .into(),
    };
    let table = directory.join("table.tsv");
    let outputs = PassageOutputs {
        passages: Some(OutputTarget::Path(table.clone())),
        rejected: None,
        extracted: None,
        report: None,
    };
    let summary = find_passages(&inputs, settings, &outputs, &SilentProgress)?;
    Ok((std::fs::read(table).unwrap(), summary))
}

/// Returns the parts of a summary that do not depend on memory and time.
fn comparable(summary: &PassagesSummary) -> String {
    format!(
        "{:?}",
        PassagesSummary {
            index_bytes: 0,
            seconds: 0.0,
            spilled: None,
            ..summary.clone()
        }
    )
}

/// From a run of every few grams to one run.
const WORKING_SETS: [u64; 3] = [1, 200_000, 1 << 30];

#[test]
fn passages_are_the_same_in_any_memory() {
    let directory = tempdir().unwrap();
    write_corpus(&directory.path().join("in.jsonl"), 0, 600);
    write_corpus(&directory.path().join("sources.jsonl"), 1, 300);
    let limits = [
        BoilerplateLimit::Usual,
        BoilerplateLimit::Documents(1),
        BoilerplateLimit::Unlimited,
    ];
    for (number, limit) in limits.into_iter().enumerate() {
        for against in [None, Some("sources.jsonl")] {
            for reworded in [false, true] {
                let settings = settings(limit, reworded, 1 + number);
                let (expected, summary) = find(directory.path(), against, &settings).unwrap();
                assert!(
                    summary.spilled.is_none() && (summary.passages > 20 || number == 1),
                    "{summary:?}"
                );
                for working_set in WORKING_SETS {
                    let settings = bounded(&settings, working_set);
                    let (found, spilled) = find(directory.path(), against, &settings).unwrap();
                    assert!(
                        found == expected,
                        "{limit:?} {against:?} {reworded} {working_set}"
                    );
                    assert_eq!(comparable(&spilled), comparable(&summary));
                    let runs = spilled.spilled.unwrap().runs;
                    assert!(runs >= if working_set < 1000 { 50 } else { 1 }, "{runs}");
                }
            }
        }
    }
}

#[test]
fn passages_that_wait_for_their_order_are_refused_beyond_the_limit() {
    let directory = tempdir().unwrap();
    write_corpus(&directory.path().join("in.jsonl"), 0, 300);
    let mut settings = settings(BoilerplateLimit::Usual, false, 2);
    settings.order = PassageOrder::Longest;
    let (expected, _) = find(directory.path(), None, &settings).unwrap();
    let (found, _) = find(directory.path(), None, &bounded(&settings, 1 << 30)).unwrap();
    assert!(found == expected);
    let error = find(directory.path(), None, &bounded(&settings, 1000)).unwrap_err();
    assert!(
        error.to_string().contains("wait for their order"),
        "{error}"
    );
}
