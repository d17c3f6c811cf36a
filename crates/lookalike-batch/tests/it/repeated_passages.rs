//! Repeated passages are the same bytes in any memory, beside a library, and after an interruption.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lookalike::passages::{PassageSettings, RepeatedRun, TextCut};
use lookalike::plan::{MatchMethod, MatchSettings};
use lookalike_batch::index::RunIndexSettings;
use lookalike_batch::repeated_text_shuffle::{PlaceNaming, RepeatedTextSteps};
use lookalike_batch::run::{
    DedupOutputs, DedupSummary, MemoryLimit, RepeatedTextAction, RepeatedTextSettings, RunInputs,
    RunSettings, SilentProgress, WorkSettings, run_dedup, run_dedup_beside_index,
    run_resumable_dedup,
};
use lookalike_io::error::Result;
use lookalike_io::sink::OutputTarget;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        lookalike::value_hash(&self.0.to_le_bytes()) as usize % limit
    }

    fn words(&mut self, count: usize) -> String {
        let words = (0..count).map(|_| format!("w{}", self.below(1 << 40)));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Fewest words of a passage.
const MIN_WORDS: u32 = 10;

/// Documents with sentences of their own and sentences that follow one another in earlier documents, so that passages
/// begin and end within what was cut before. Some words are single characters. Many documents have a notice.
fn write_corpus(path: &Path, seed: u64, documents: usize, sources: &mut Vec<String>) {
    let mut random = Random(seed);
    let notice = "All rights reserved. No part of this text may be copied without our permission.";
    let mut rows = String::new();
    for at in 0..documents {
        let before = 3 + random.below(12);
        let mut sentences = vec![random.words(before) + "."];
        for _ in 0..random.below(3) {
            if sources.is_empty() {
                break;
            }
            let source = &sources[random.below(sources.len())];
            let parts: Vec<&str> = source.split_inclusive(['.', '\n', '。']).collect();
            let from = random.below(parts.len());
            let until = (from + 1 + random.below(4)).min(parts.len());
            let copied = parts[from..until].concat();
            // Case does not count.
            let is_upper = random.below(4) == 0;
            sentences.push(if is_upper {
                copied.to_uppercase()
            } else {
                copied
            });
        }
        if at % 3 == 1 {
            sentences.push(notice.to_owned());
        }
        if at % 5 == 2 {
            sentences.push("所有来访者必须在门口登记，随身携带有效证件。".to_owned());
        }
        let after = 1 + random.below(15);
        sentences.push(random.words(after) + ".");
        let text = sentences.join([" ", "\n", "\n\n"][random.below(3)]);
        let site = ["x", "y"][random.below(2)];
        let row = serde_json::json!({ "id": format!("{seed}-{at}"), "text": text, "site": site });
        rows += &format!("{row}\n");
        if at % 50 == 7 {
            rows += "{\"text\": 7}\n";
        }
        sources.push(text);
    }
    std::fs::write(path, rows).unwrap();
}

/// The files of a test.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn outputs(&self, name: &str, action: RepeatedTextAction, min_words: u32) -> DedupOutputs {
        let output = |what: &str| Some(OutputTarget::Path(self.path(&format!("{name}-{what}"))));
        DedupOutputs {
            kept: output("kept.jsonl"),
            cuts: output("cuts.tsv"),
            passages: Some(RepeatedTextSettings {
                action,
                passages: PassageSettings::new(min_words).unwrap(),
            }),
            ..DedupOutputs::default()
        }
    }

    fn inputs(&self, documents: &str, against: Option<&str>) -> RunInputs {
        let against = against.map(|name| self.path(name));
        RunInputs {
            documents: vec![self.path(documents)].into(),
            against: against.into_iter().collect::<Vec<_>>().into(),
        }
    }

    /// Returns kept rows and cuts.
    fn results(&self, name: &str) -> [String; 2] {
        ["kept.jsonl", "cuts.tsv"].map(|what| self.read(&format!("{name}-{what}")))
    }
}

fn settings(threads: usize) -> RunSettings {
    let mut settings = RunSettings {
        matching: MatchSettings {
            method: MatchMethod::Exact,
            ..MatchSettings::default()
        },
        threads,
        ..RunSettings::default()
    };
    settings.read.block_bytes = 16 << 10;
    settings
}

/// Returns the settings with a limit of which so many bytes are for what grows with the inputs.
fn bounded(settings: &RunSettings, working_set: u64) -> RunSettings {
    RunSettings {
        memory: Some(MemoryLimit {
            bytes: 1 << 40,
            is_set: true,
            working_set: Some(working_set),
        }),
        ..settings.clone()
    }
}

/// Returns the parts of the counts that do not depend on memory and library.
fn counts(summary: &DedupSummary) -> [u64; 4] {
    let found = summary.passages.unwrap();
    [found.documents, found.passages, found.tokens, found.emptied]
}

/// From parts that are divided several times to everything in memory.
const WORKING_SETS: [u64; 4] = [1, 20_000, 400_000, 1 << 30];

#[test]
fn cuts_of_passages_are_the_same_in_any_memory() {
    let files = Files::new();
    let mut sources = Vec::new();
    write_corpus(&files.path("known.jsonl"), 1, 150, &mut sources);
    write_corpus(&files.path("in.jsonl"), 2, 700, &mut sources);
    let actions = [RepeatedTextAction::Remove, RepeatedTextAction::Mark];
    for (number, against) in [None, Some("known.jsonl"), None].into_iter().enumerate() {
        let run = |settings: &RunSettings, name: &str| {
            let outputs = files.outputs(name, actions[number % 2], MIN_WORDS);
            let inputs = files.inputs("in.jsonl", against);
            run_dedup(&inputs, settings, &outputs, &SilentProgress).unwrap()
        };
        let mut settings = settings(1 + number);
        settings.within = (number == 2).then(|| "site".to_owned());
        let expected = run(&settings, "expected");
        assert!(expected.passages.unwrap().passages > 300, "{expected:?}");
        assert_eq!(expected.passages.unwrap().spilled_bytes, 0);
        for working_set in WORKING_SETS {
            let found = run(&bounded(&settings, working_set), "found");
            let is_same = files.results("expected") == files.results("found");
            assert!(is_same, "{against:?} {working_set}");
            assert_eq!(counts(&found), counts(&expected), "{working_set}");
            let spilled = found.passages.unwrap().spilled_bytes;
            // Between them it depends on how many runs of words occur again.
            match working_set {
                400_000 => {}
                _ => assert_eq!(spilled > 0, working_set < 400_000, "{working_set}"),
            }
            if working_set == 1 {
                // Every place is written several times, because parts are divided again and again.
                assert!(spilled > 1_000_000, "{spilled}");
            }
        }
    }
}

/// A document as the steps of many machines take it.
struct NumberedText {
    id: String,
    text: String,
    partition: u64,
}

/// Returns the documents of some lines that have a text.
fn numbered_texts(lines: &str, is_partitioned: bool) -> Vec<NumberedText> {
    let rows = lines.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let site = row["site"].as_str().unwrap_or_default();
        Some(NumberedText {
            id: row["id"].as_str()?.to_owned(),
            text: row["text"].as_str()?.to_owned(),
            partition: if is_partitioned {
                lookalike::value_hash(site.as_bytes())
            } else {
                0
            },
        })
    });
    rows.flatten().collect()
}

/// Returns the repeated runs of each document from `known` on, found by comparing each hash with all others.
fn join_runs(
    steps: &RepeatedTextSteps,
    documents: &[NumberedText],
    known: u32,
) -> BTreeMap<u32, Vec<RepeatedRun>> {
    let mut places: Vec<(u64, u32, u32)> = Vec::new();
    for (number, document) in (0..).zip(documents) {
        let hashes = steps.hash_runs(&document.text, document.partition).unwrap();
        places.extend((0..).zip(hashes).map(|(start, hash)| (hash, number, start)));
    }
    places.sort_unstable();
    let join = |document: u32, start: u32| u64::from(document) << 32 | u64::from(start);
    let mut repeated: BTreeMap<u32, Vec<RepeatedRun>> = BTreeMap::new();
    for equal in places.chunk_by(|a, b| a.0 == b.0) {
        let (_, first, first_start) = equal[0];
        let later = equal
            .iter()
            .filter(|place| place.1 > first && place.1 >= known);
        for &(_, number, start) in later {
            let run = RepeatedRun::from_numbers(join(number, start), join(first, first_start));
            repeated.entry(number).or_default().push(run);
        }
    }
    repeated.values_mut().for_each(|runs| runs.sort_unstable());
    repeated
}

/// Returns the rows of the table of cuts, and the texts of all documents from `known` on, as many machines find them.
fn cut_on_many_machines(
    steps: &RepeatedTextSteps,
    documents: &[NumberedText],
    known: usize,
) -> (Vec<Value>, Vec<String>) {
    let text_of = |number: u32| documents[number as usize].text.clone();
    let mut naming = PlaceNaming::new();
    let mut named: BTreeMap<u32, Vec<TextCut>> = BTreeMap::new();
    for (number, runs) in join_runs(steps, documents, known as u32) {
        let cuts = steps.choose_cuts(&text_of(number), &runs).unwrap();
        named.insert(number, naming.name_places(number, cuts).to_vec());
    }
    let mut rows = Vec::new();
    let mut texts: Vec<String> = documents[known..]
        .iter()
        .map(|document| document.text.clone())
        .collect();
    for (&number, cuts) in &named {
        let pieces = cuts.iter().flat_map(|cut| &cut.pieces);
        let places: Vec<_> = pieces
            .map(|piece| {
                let text = text_of(piece.document);
                let places = steps.describe_places(text, &[piece.source_tokens()]);
                places.unwrap().remove(0)
            })
            .collect();
        let cut = steps.describe_cuts(text_of(number), cuts, &places).unwrap();
        texts[number as usize - known] = cut.rest;
        rows.extend(cut.pieces.iter().map(|piece| {
            serde_json::json!({
                "id": documents[number as usize].id,
                "first": documents[piece.first as usize].id,
                "start": piece.characters.start,
                "end": piece.characters.end,
                "first_start": piece.first_characters.start,
                "first_end": piece.first_characters.end,
                "length": piece.length,
                "text": piece.text,
            })
        }));
    }
    (rows, texts)
}

#[test]
fn cuts_of_passages_on_many_machines_are_those_of_one() {
    let files = Files::new();
    let mut sources = Vec::new();
    write_corpus(&files.path("known.jsonl"), 21, 100, &mut sources);
    write_corpus(&files.path("in.jsonl"), 22, 400, &mut sources);
    let cases = [(None, false), (Some("known.jsonl"), false), (None, true)];
    for (against, is_partitioned) in cases {
        for min_words in [MIN_WORDS - 1, MIN_WORDS, MIN_WORDS + 1, 2 * MIN_WORDS] {
            let mut settings = settings(2);
            settings.within = is_partitioned.then(|| "site".to_owned());
            let mut outputs = files.outputs("one", RepeatedTextAction::Remove, min_words);
            outputs.cuts = Some(OutputTarget::Path(files.path("one-cuts.jsonl")));
            let inputs = files.inputs("in.jsonl", against);
            run_dedup(&inputs, &settings, &outputs, &SilentProgress).unwrap();
            let kept = files.read("one-kept.jsonl");
            let known = against.map_or(String::new(), |name| files.read(name));
            let mut documents = numbered_texts(&known, is_partitioned);
            let known = documents.len();
            let kept_documents = kept_lines(&files.read("in.jsonl"), &kept);
            documents.extend(numbered_texts(&kept_documents, is_partitioned));
            let passages = PassageSettings::new(min_words).unwrap();
            let steps = RepeatedTextSteps::new(&settings.recipe, passages);
            let (rows, texts) = cut_on_many_machines(&steps, &documents, known);
            let expected = files.read("one-cuts.jsonl");
            let expected: Vec<Value> = expected
                .lines()
                .map(|line| {
                    let mut row: Value = serde_json::from_str(line).unwrap();
                    for place in ["source", "row", "first_source", "first_row"] {
                        row.as_object_mut().unwrap().remove(place);
                    }
                    row
                })
                .collect();
            assert!(
                expected.len() > if min_words == 2 * MIN_WORDS { 20 } else { 100 },
                "{}",
                expected.len()
            );
            assert_eq!(rows, expected, "{against:?} {is_partitioned} {min_words}");
            let kept: Vec<String> = numbered_texts(&kept, false)
                .into_iter()
                .map(|document| document.text)
                .collect();
            assert_eq!(texts, kept, "{against:?} {is_partitioned} {min_words}");
        }
    }
}

/// Returns the lines of documents that are among kept rows.
fn kept_lines(documents: &str, kept: &str) -> String {
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().map(str::to_owned)
    };
    let kept: BTreeSet<_> = kept.lines().filter_map(id).collect();
    let lines = documents.lines();
    let lines = lines.filter(|line| id(line).is_some_and(|id| kept.contains(&id)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn passages_beside_a_library_are_those_against_its_documents() {
    for working_set in [None, Some(1), Some(1 << 30)] {
        let files = Files::new();
        let mut sources = Vec::new();
        std::fs::write(files.path("seen.jsonl"), "").unwrap();
        let mut from_library = 0;
        for round in 0..4 {
            write_corpus(&files.path("new.jsonl"), 10 + round, 200, &mut sources);
            let settings = settings(1 + round as usize % 3);
            let action = RepeatedTextAction::Remove;
            let against = (round > 0).then_some("seen.jsonl");
            let inputs = files.inputs("new.jsonl", against);
            let outputs = files.outputs("expected", action, MIN_WORDS);
            let expected = run_dedup(&inputs, &settings, &outputs, &SilentProgress).unwrap();
            let library = RunIndexSettings {
                path: files.path("seen.lib"),
                adds_kept: true,
            };
            let limited = match working_set {
                None => settings.clone(),
                Some(working_set) => bounded(&settings, working_set),
            };
            let inputs = files.inputs("new.jsonl", None);
            let outputs = files.outputs("found", action, MIN_WORDS);
            let found =
                run_dedup_beside_index(&inputs, &limited, &outputs, &library, &SilentProgress);
            let found = found.unwrap();
            let [kept, cuts] = files.results("found");
            let cuts = cuts.replace("seen.lib\t", "seen.jsonl\t");
            let [expected_kept, expected_cuts] = files.results("expected");
            assert!(kept == expected_kept, "{round} {working_set:?}");
            assert_eq!(cuts, expected_cuts, "{round} {working_set:?}");
            assert_eq!(counts(&found), counts(&expected));
            let rows = found.passages.unwrap().library_rows;
            assert_eq!(rows.is_some_and(|rows| rows > 0), round > 0, "{rows:?}");
            from_library += cuts.matches("seen.jsonl\t").count();
            let new = kept_lines(&files.read("new.jsonl"), &kept);
            std::fs::write(files.path("seen.jsonl"), files.read("seen.jsonl") + &new).unwrap();
        }
        assert!(from_library > 200, "{from_library}");
    }
}

/// Returns how many passages of `found` words a library of `least` words finds in a run for `wanted` words.
fn find_beside_library(least: u32, wanted: u32, found: usize) -> Result<u64> {
    let files = Files::new();
    let mut random = Random(u64::from(least));
    let passage = random.words(found);
    let row = |id: &str, own: &str| {
        let text = format!("{own}. {passage}. {own}");
        format!("{}\n", serde_json::json!({ "id": id, "text": text }))
    };
    let [first, second] = [random.words(3), random.words(3)];
    std::fs::write(files.path("a.jsonl"), row("a", &first)).unwrap();
    std::fs::write(files.path("b.jsonl"), row("b", &second)).unwrap();
    let library = RunIndexSettings {
        path: files.path("seen.lib"),
        adds_kept: true,
    };
    let run = |documents: &str, min_words: u32| {
        let inputs = files.inputs(documents, None);
        let outputs = files.outputs("out", RepeatedTextAction::Remove, min_words);
        run_dedup_beside_index(&inputs, &settings(1), &outputs, &library, &SilentProgress)
    };
    run("a.jsonl", least)?;
    Ok(run("b.jsonl", wanted)?.passages.unwrap().passages)
}

#[test]
fn passages_of_a_library_are_found_from_their_smallest_length_on() {
    for least in [2, 3, 12, 40] {
        for wanted in [least, least + 1, 3 * least] {
            let length = wanted as usize;
            for (found, passages) in [(length - 1, 0), (length, 1), (length + 1, 1)] {
                let counted = find_beside_library(least, wanted, found).unwrap();
                assert_eq!(counted, passages, "{least} {wanted} {found}");
            }
        }
    }
    let error = find_beside_library(12, 11, 20).unwrap_err().to_string();
    for named in ["at least 12 words", "--min-length is 11", "give 12 or more"] {
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_library_without_texts_says_what_it_lacks_and_stays_as_it_is() {
    let files = Files::new();
    write_corpus(&files.path("new.jsonl"), 3, 20, &mut Vec::new());
    let library = RunIndexSettings {
        path: files.path("seen.lib"),
        adds_kept: true,
    };
    let run = |outputs: &DedupOutputs| {
        let inputs = files.inputs("new.jsonl", None);
        run_dedup_beside_index(&inputs, &settings(1), outputs, &library, &SilentProgress)
    };
    let added = run(&DedupOutputs::default()).unwrap();
    let with_passages = files.outputs("out", RepeatedTextAction::Remove, MIN_WORDS);
    let error = run(&with_passages).unwrap_err().to_string();
    for named in ["seen.lib", "texts and grams", "begin a new library"] {
        assert!(error.contains(named), "{error}");
    }
    let again = run(&DedupOutputs::default()).unwrap();
    assert_eq!(again.library.unwrap().rows, added.library.unwrap().rows);
    assert_eq!(again.kept, 0);
}

/// Returns the steps of repeated text in a directory, by name.
fn cut_steps(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("cuts-")).collect();
    names.sort();
    names
}

#[test]
fn resumed_runs_take_stored_cuts_of_passages() {
    let files = Files::new();
    write_corpus(&files.path("in.jsonl"), 4, 400, &mut Vec::new());
    let inputs = files.inputs("in.jsonl", None);
    for working_set in [None, Some(1), Some(1 << 30)] {
        let settings = match working_set {
            None => settings(2),
            Some(working_set) => bounded(&settings(2), working_set),
        };
        let work = |resume: bool| WorkSettings {
            directory: files.path("work"),
            resume,
        };
        let run = |name: &str, min_words: u32, resume: bool| {
            let outputs = files.outputs(name, RepeatedTextAction::Remove, min_words);
            let work = work(resume);
            run_resumable_dedup(&inputs, &settings, &outputs, &work, &SilentProgress).unwrap()
        };
        let plain = |name: &str, min_words: u32| {
            let outputs = files.outputs(name, RepeatedTextAction::Remove, min_words);
            run_dedup(&inputs, &settings, &outputs, &SilentProgress).unwrap()
        };
        let expected = plain("expected", MIN_WORDS);
        run("first", MIN_WORDS, false);
        assert_eq!(files.results("first"), files.results("expected"));
        let steps = cut_steps(&files.path("work"));
        assert!(!steps.is_empty());
        let bytes = || std::fs::read(files.path("work").join(&steps[0])).unwrap();
        let before = bytes();
        // The outputs are others, so the run writes them; its cuts are stored.
        let found = run("found", MIN_WORDS, true);
        assert_eq!(files.results("found"), files.results("expected"));
        assert_eq!(counts(&found), counts(&expected));
        assert_eq!(
            found.passages.unwrap().spilled_bytes,
            0,
            "nothing was searched"
        );
        assert!(bytes() == before);
        // Longer passages are other ones, so that nothing stored is used.
        let expected = plain("expected", 2 * MIN_WORDS);
        let found = run("found", 2 * MIN_WORDS, true);
        assert_eq!(files.results("found"), files.results("expected"));
        assert_eq!(counts(&found), counts(&expected));
        assert!(bytes() != before);
        std::fs::remove_dir_all(files.path("work")).unwrap();
    }
}
