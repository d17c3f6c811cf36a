//! Runs out of core give the results of runs in memory, byte for byte.

use std::path::Path;

use lookalike::Threshold;
use lookalike::dedup::CopyPairs;
use lookalike::plan::{CandidateRule, MatchMethod, MatchSettings, SimilarityMeasure};
use lookalike_batch::index::RunIndexSettings;
use lookalike_batch::run::{
    CopyFields, DedupOutputs, DedupSummary, KeptMembers, MemoryLimit, PairsOutputs, RunInputs,
    RunSettings, RunWindow, SilentProgress, SourcesField, WorkSettings, find_pairs, run_dedup,
    run_dedup_beside_index, run_resumable_dedup,
};
use lookalike_io::sink::OutputTarget;
use lookalike_options::keep_order::parse_keep;
use tempfile::tempdir;

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        lookalike::value_hash(&self.0.to_le_bytes()) as usize % limit
    }

    fn words(&mut self, count: usize) -> Vec<String> {
        (0..count)
            .map(|_| format!("w{}", self.below(5000)))
            .collect()
    }
}

/// Documents of families that drift, short and long, with equal texts, texts of one template, bad rows and empty
/// texts.
pub(crate) fn write_corpus(path: &Path, seed: u64, documents: usize) {
    let mut random = Random(seed);
    let families: Vec<Vec<String>> = (0..40)
        .map(|family| random.words(if family % 2 == 0 { 14 } else { 160 }))
        .collect();
    let template = random.words(150);
    let mut texts: Vec<String> = Vec::new();
    let mut rows = String::new();
    for at in 0..documents {
        let text = match random.below(12) {
            0 => ["", " ", "!", "one", "One.", "two"][random.below(6)].to_owned(),
            1 if !texts.is_empty() => texts[random.below(texts.len())].to_uppercase(),
            2 => [template.clone(), random.words(40)].concat().join(" "),
            3 => random.words(100).join(" "),
            _ => {
                let mut edited = families[random.below(40)].clone();
                for _ in 0..random.below(1 + edited.len() / 8) {
                    let place = random.below(edited.len());
                    edited[place] = format!("w{}", random.below(5000));
                }
                edited.join(" ")
            }
        };
        let (part, time) = (["x", "y"][at % 2], 1000 + 7 * (at * 31 % documents));
        let row = serde_json::json!({
            "id": format!("d{at}"), "text": text, "part": part, "time": time, "rank": random.below(50),
        });
        rows += &format!("{row}\n");
        if at % 200 == 77 {
            rows += "{\"id\": \"bad\", \"text\": 7}\n";
        }
        texts.push(text);
    }
    std::fs::write(path, rows).unwrap();
}

fn at(method: MatchMethod, measure: SimilarityMeasure, threshold: f64) -> MatchSettings {
    MatchSettings {
        method,
        measure,
        threshold: Threshold::new(threshold).unwrap(),
        ..MatchSettings::default()
    }
}

/// Settings of every method, and of every rule for which documents may match or come first.
pub(crate) fn all_settings() -> Vec<RunSettings> {
    let matching = [
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.75),
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.5),
        at(MatchMethod::Auto, SimilarityMeasure::Containment, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Levenshtein, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Sketch, 0.75),
        at(MatchMethod::MinHash, SimilarityMeasure::Cosine, 0.75),
        at(MatchMethod::Join, SimilarityMeasure::Jaccard, 0.6),
        at(MatchMethod::Exact, SimilarityMeasure::Jaccard, 0.75),
        at(MatchMethod::Sentences, SimilarityMeasure::Jaccard, 0.6),
        at(MatchMethod::BottomK, SimilarityMeasure::Jaccard, 0.75),
        MatchSettings {
            distance: 9,
            candidates: CandidateRule::Distance,
            ..at(MatchMethod::SimHash, SimilarityMeasure::Jaccard, 0.6)
        },
    ];
    let keep = [
        "first",
        "last",
        "longest",
        "max:rank,longest,last",
        "min:rank",
        "longest,min:rank",
        "max:rank",
    ];
    let matching = matching.into_iter().enumerate();
    matching
        .map(|(number, matching)| {
            let mut settings = RunSettings {
                matching,
                keep: parse_keep(keep[number % keep.len()]).unwrap(),
                within: (number % 4 == 1).then(|| "part".to_owned()),
                sources: Some("part".to_owned()),
                window: (number % 4 == 2).then(|| RunWindow {
                    seconds: 900.0,
                    field: "time".to_owned(),
                }),
                threads: 1 + number % 3,
                ..RunSettings::default()
            };
            // Many blocks, so that parts and groups get documents of several.
            settings.read.block_bytes = 8 << 10;
            settings
        })
        .collect()
}

/// Returns the settings with a limit of which so many bytes are for keys and groups.
fn out_of_core(settings: &RunSettings, working_set: u64) -> RunSettings {
    RunSettings {
        memory: Some(MemoryLimit {
            bytes: 1 << 40,
            is_set: true,
            working_set: Some(working_set),
        }),
        ..settings.clone()
    }
}

/// From a part for every few keys and a group for every component, to one of each.
const WORKING_SETS: [u64; 3] = [1, 300_000, 1 << 30];

#[test]
fn verdicts_are_those_of_a_run_in_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("a.jsonl"), 1, 900);
    write_corpus(&path("b.jsonl"), 2, 500);
    let mut groups = Vec::new();
    for (number, settings) in all_settings().iter().enumerate() {
        let against = if number % 3 == 2 {
            vec![path("b.jsonl")]
        } else {
            Vec::new()
        };
        let inputs = RunInputs {
            documents: vec![path("a.jsonl")].into(),
            against: against.into(),
        };
        let run = |settings: &RunSettings, name: &str| {
            let output = |what: &str| Some(OutputTarget::Path(path(&format!("{name}-{what}"))));
            let outputs = DedupOutputs {
                kept: output("kept.jsonl"),
                annotate: number % 5 == 4,
                members: match number % 5 {
                    1 => KeptMembers::Best(2),
                    2 => KeptMembers::DropClusters(3),
                    _ => KeptMembers::Representative,
                },
                copy_fields: CopyFields {
                    copies: Some("copies".to_owned()),
                    sources: Some(SourcesField {
                        name: "sources".to_owned(),
                        most: 3,
                    }),
                    weight: None,
                },
                removed: output("removed.tsv"),
                clusters: output("clusters.tsv"),
                components: true,
                rejected: output("rejected"),
                ..DedupOutputs::default()
            };
            run_dedup(&inputs, settings, &outputs, &SilentProgress).unwrap()
        };
        let expected = run(settings, "expected");
        assert!(expected.removed > 30 && expected.spilled.is_none());
        for working_set in WORKING_SETS {
            let done = run(&out_of_core(settings, working_set), "found");
            let what = format!("{:?} {working_set}", settings.matching);
            for output in ["kept.jsonl", "removed.tsv", "clusters.tsv", "rejected"] {
                let bytes = |name: &str| std::fs::read(path(&format!("{name}-{output}"))).unwrap();
                assert!(bytes("expected") == bytes("found"), "{output}: {what}");
            }
            let shown = |summary: &DedupSummary| {
                let mut json = serde_json::to_value(summary).unwrap();
                for field in ["seconds", "stages", "spilled"] {
                    json.as_object_mut().unwrap().remove(field);
                }
                json
            };
            assert_eq!(shown(&expected), shown(&done), "{what}");
            groups.push(done.spilled.unwrap().groups);
        }
    }
    assert!(groups.iter().any(|&groups| groups > 50), "{groups:?}");
    assert!(groups.contains(&1), "{groups:?}");
}

/// Settings of all rules that decide beside an index.
fn settings_beside_index() -> impl Iterator<Item = RunSettings> {
    let methods = [MatchMethod::Auto, MatchMethod::Exact, MatchMethod::SimHash];
    let all = all_settings().into_iter();
    all.filter(move |settings| methods.contains(&settings.matching.method))
        .map(|settings| RunSettings {
            within: None,
            window: None,
            ..settings
        })
}

/// Files of an index by name.
fn index_files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn verdicts_beside_an_index_are_those_of_a_run_in_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("all.jsonl"), 7, 900);
    write_corpus(&path("known.jsonl"), 8, 200);
    let all = std::fs::read_to_string(path("all.jsonl")).unwrap();
    // Both parts have documents of the same families, and equal texts.
    let part = |is_new: bool| {
        let lines = all.lines().enumerate();
        let lines = lines.filter(|(at, _)| (at % 3 > 0) == is_new);
        lines
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    std::fs::write(path("old.jsonl"), part(false)).unwrap();
    std::fs::write(path("new.jsonl"), part(true)).unwrap();
    let mut from_index = 0;
    for (number, settings) in settings_beside_index().enumerate() {
        let run = |settings: &RunSettings, documents: &str, name: &str| {
            let output = |what: &str| Some(OutputTarget::Path(path(&format!("{name}-{what}"))));
            let outputs = DedupOutputs {
                kept: output("kept.jsonl"),
                removed: output("removed.tsv"),
                clusters: output("clusters.tsv"),
                ..DedupOutputs::default()
            };
            let against = [path("known.jsonl")];
            let inputs = RunInputs {
                documents: vec![path(documents)].into(),
                against: against[..number % 2].to_vec().into(),
            };
            let index = RunIndexSettings {
                path: path(&format!("{name}.lib")),
                adds_kept: true,
            };
            run_dedup_beside_index(&inputs, settings, &outputs, &index, &SilentProgress).unwrap()
        };
        // A run in memory and one out of core, each beside an index of its own, first new and then with rows.
        for working_set in [WORKING_SETS[number % 2], WORKING_SETS[2]] {
            for name in ["expected.lib", "found.lib"] {
                let _ = std::fs::remove_dir_all(path(name));
            }
            let bounded = out_of_core(&settings, working_set);
            for documents in ["old.jsonl", "new.jsonl"] {
                let expected = run(&settings, documents, "expected");
                let found = run(&bounded, documents, "found");
                let what = format!("{:?} {working_set} {documents}", settings.matching);
                for output in ["kept.jsonl", "removed.tsv", "clusters.tsv"] {
                    let text = |name: &str| {
                        std::fs::read_to_string(path(&format!("{name}-{output}"))).unwrap()
                    };
                    let expected = text("expected").replace("expected.lib", "found.lib");
                    assert!(expected == text("found"), "{output}: {what}");
                    from_index += expected.matches("found.lib").count();
                }
                assert!(
                    index_files(&path("expected.lib")) == index_files(&path("found.lib")),
                    "{what}"
                );
                assert!(expected.spilled.is_none() && found.spilled.is_some());
                let added = |summary: &DedupSummary| summary.library.as_ref().unwrap().added;
                assert_eq!(added(&expected), added(&found), "{what}");
            }
        }
    }
    assert!(from_index > 1000, "{from_index}");
}

#[test]
fn pairs_are_those_of_a_run_in_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("a.jsonl"), 3, 700);
    write_corpus(&path("b.jsonl"), 4, 400);
    let copies = [CopyPairs::WithEarliest, CopyPairs::All, CopyPairs::None];
    let mut all_pairs = 0;
    for (number, settings) in all_settings().iter().enumerate() {
        let against = if number % 4 == 3 {
            vec![path("b.jsonl")]
        } else {
            Vec::new()
        };
        let inputs = RunInputs {
            documents: vec![path("a.jsonl")].into(),
            against: against.into(),
        };
        let run = |settings: &RunSettings, name: &str| {
            let outputs = PairsOutputs {
                pairs: Some(OutputTarget::Path(path(name))),
                sample: None,
                report: None,
                copies: copies[number % 3],
                apart: false,
                rejected: None,
            };
            find_pairs(&inputs, settings, &outputs, &SilentProgress).unwrap()
        };
        let expected = run(settings, "expected.tsv");
        all_pairs += expected.pairs;
        for working_set in WORKING_SETS {
            let found = run(&out_of_core(settings, working_set), "found.tsv");
            let bytes = |name: &str| std::fs::read(path(name)).unwrap();
            let what = format!("{:?} {working_set}", settings.matching);
            assert!(bytes("expected.tsv") == bytes("found.tsv"), "{what}");
            assert_eq!(expected.equal_texts, found.equal_texts, "{what}");
        }
    }
    assert!(all_pairs > 3000, "{all_pairs}");
}

#[test]
fn resumed_runs_take_stored_keys() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_corpus(&path("a.jsonl"), 5, 600);
    let inputs = RunInputs {
        documents: vec![path("a.jsonl")].into(),
        against: Vec::new().into(),
    };
    let mut settings = out_of_core(&RunSettings::default(), 100_000);
    settings.read.block_bytes = 8 << 10;
    let run = |settings: &RunSettings, name: &str, resume: bool| {
        let outputs = DedupOutputs {
            removed: Some(OutputTarget::Path(path(name))),
            ..DedupOutputs::default()
        };
        let work = WorkSettings {
            directory: path("work"),
            resume,
        };
        run_resumable_dedup(&inputs, settings, &outputs, &work, &SilentProgress)
    };
    run(&settings, "first.tsv", false).unwrap();
    let steps = || {
        let names = std::fs::read_dir(path("work")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(".step")).collect();
        names.sort();
        names
    };
    let before = steps();
    assert!(!before.is_empty());
    let repeated = run(&settings, "again.tsv", true).unwrap();
    assert!(repeated.removed > 30 && repeated.spilled.is_some());
    let bytes = |name: &str| std::fs::read(path(name)).unwrap();
    assert!(bytes("first.tsv") == bytes("again.tsv"));
    assert_eq!(steps(), before);
    // The memory of a machine is more than enough, and a run that has begun out of core stays so.
    let machine = MemoryLimit {
        bytes: 8 << 30,
        is_set: false,
        working_set: None,
    };
    settings.memory = Some(machine);
    let continued = run(&settings, "machine.tsv", true).unwrap();
    assert!(continued.spilled.is_some());
    assert!(bytes("first.tsv") == bytes("machine.tsv"));
    // Steps of a run in memory have no keys.
    settings.memory = Some(MemoryLimit {
        is_set: true,
        ..machine
    });
    let error = run(&settings, "other.tsv", true).unwrap_err().to_string();
    assert!(error.contains("begun with temporary files"), "{error}");
}
