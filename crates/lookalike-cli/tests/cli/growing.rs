//! `dedup --library` and `index compact`, compared with `dedup --against` all documents kept so far.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::libraries::two_languages;
use crate::support::{Numbers, Place, corpus_jsonl, jsonl, row};

/// Options of runs, and of a library that must be built for them.
const VARIANTS: [(&str, &str); 12] = [
    ("", ""),
    ("--threshold 0.6 --keep longest", ""),
    ("--threshold 0.9 --keep longest,last", ""),
    ("--verify containment --threshold 0.8", ""),
    ("--verify cosine", ""),
    ("--verify levenshtein --threshold 0.7", ""),
    ("--verify indel --unit words", "--texts"),
    ("--method exact", ""),
    ("--method simhash --distance 3", ""),
    ("--method simhash --distance 9 --verify none", ""),
    (
        "--method simhash --distance 6 --verify cosine --threshold 0.6",
        "--distance 8",
    ),
    (
        "--method simhash --candidates blocks --distance 7 --verify levenshtein",
        "",
    ),
];

/// A corpus that comes in rounds, with short, equal and empty texts among the others.
struct GrowingCorpus {
    place: Place,
    rounds: Vec<Vec<(String, String)>>,
    /// Options of every run.
    options: &'static str,
}

impl GrowingCorpus {
    fn new(options: &'static str, documents: usize) -> Self {
        let mut corpus = two_languages(documents);
        let mut numbers = Numbers::new(5);
        for at in (0..corpus.len()).step_by(9) {
            corpus[at].1 = ["?", "", "a", "*** !!", "!", "Ａ"][numbers.below(6)].to_owned();
        }
        for at in (0..corpus.len()).step_by(13) {
            corpus[at].1 = corpus[numbers.below(corpus.len())].1.to_uppercase();
        }
        for at in (1..corpus.len()).rev() {
            corpus.swap(at, numbers.below(at + 1));
        }
        let rounds = corpus.chunks(corpus.len() / 5 + 1).map(<[_]>::to_vec);
        Self {
            place: Place::new(),
            rounds: rounds.collect(),
            options,
        }
    }

    /// Runs a round beside `seen.lib` and against `seen.jsonl`, and compares all outputs. Returns how many documents
    /// were removed for one of the library.
    fn check_round(&self, round: usize) -> usize {
        let Self { place, options, .. } = self;
        place.write("new.jsonl", corpus_jsonl(&self.rounds[round]));
        let outputs = "-o out.jsonl --removed removed.tsv --clusters clusters.tsv";
        let read = || ["out.jsonl", "removed.tsv", "clusters.tsv"].map(|name| place.read(name));
        let known = if place.read("seen.jsonl").is_empty() {
            ""
        } else {
            "--against seen.jsonl"
        };
        place.ok(&format!("dedup new.jsonl {options} {outputs} {known}"));
        let expected = read();
        place.ok(&format!(
            "dedup new.jsonl {options} {outputs} --library seen.lib --threads {}",
            1 + round % 3
        ));
        let found = read().map(|text| text.replace("\tseen.lib\t", "\tseen.jsonl\t"));
        assert_eq!(found, expected, "{options}, round {round}");
        let has_text = |line: &&str| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["text"] != ""
        };
        let kept = expected[0].lines().filter(has_text);
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        place.write("seen.jsonl", place.read("seen.jsonl") + &kept);
        expected[1].matches("\tseen.jsonl\t").count()
    }

    /// Removes every `step`th document from the library and from the file.
    fn remove_documents(&self, step: usize) {
        let ids: BTreeSet<_> = self
            .place
            .ids("seen.jsonl")
            .into_iter()
            .step_by(step)
            .collect();
        let line = format!(
            "index remove seen.lib {}",
            Vec::from_iter(ids.clone()).join(" ")
        );
        self.place.ok(&line);
        let seen = self.place.read("seen.jsonl");
        let left = seen.lines().filter(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            !ids.contains(row["id"].as_str().unwrap())
        });
        let left: String = left.map(|line| format!("{line}\n")).collect();
        self.place.write("seen.jsonl", left);
    }

    fn library(&self) -> Value {
        let ran = self.place.ok("index info seen.lib --json");
        serde_json::from_slice(&ran.out).unwrap()
    }
}

#[test]
fn library_equals_all_documents_kept_so_far() {
    for (options, build) in VARIANTS {
        let corpus = GrowingCorpus::new(options, 160);
        let place = &corpus.place;
        place.write("seen.jsonl", "");
        if !build.is_empty() {
            place.write("seen.jsonl", row("first", "the first document of all"));
            place.ok(&format!("index build seen.lib seen.jsonl {build}"));
        }
        corpus.check_round(0);
        let mut named = corpus.check_round(1);
        corpus.remove_documents(5);
        named += corpus.check_round(2);
        // Most of it: segments are rewritten.
        corpus.remove_documents(2);
        let before = corpus.library();
        place.ok("index compact seen.lib");
        let after = corpus.library();
        assert_eq!(after["fingerprints"], before["fingerprints"], "{options}");
        assert_eq!(
            (
                &after["tombstones"],
                after["segments"].as_array().unwrap().len()
            ),
            (&0.into(), 1),
            "{options}"
        );
        named += corpus.check_round(3);
        corpus.remove_documents(7);
        named += corpus.check_round(4);
        assert!(named > 15, "{options}: {named}");
        place.ok("index verify seen.lib");
        let seen = place.read("seen.jsonl").lines().count();
        assert_eq!(corpus.library()["fingerprints"], seen, "{options}");
    }
}

/// Documents of words of their own and of sentences that other rounds have too.
fn round_of_passages(round: usize) -> Vec<(String, String)> {
    let mut numbers = Numbers::new(70 + round as u64);
    let mut shared = Numbers::new(69);
    let sentence = |numbers: &mut Numbers, words: usize| {
        let words = (0..words).map(|_| format!("w{}", numbers.below(1 << 40)));
        words.collect::<Vec<_>>().join(" ") + ". "
    };
    let pool: Vec<String> = (0..40).map(|_| sentence(&mut shared, 12)).collect();
    let documents = (0..80).map(|at| {
        let mut text = sentence(&mut numbers, 5);
        for _ in 0..numbers.below(4) {
            text += &pool[numbers.below(pool.len())];
        }
        (format!("{round}-{at}"), text + &sentence(&mut numbers, 5))
    });
    documents.collect()
}

#[test]
fn passages_of_the_library_are_those_of_its_documents() {
    let corpus = GrowingCorpus {
        place: Place::new(),
        rounds: (0..4).map(round_of_passages).collect(),
        options: "--method exact --passages remove --min-length 10",
    };
    let GrowingCorpus { place, options, .. } = &corpus;
    place.write("seen.jsonl", "");
    let mut from_library = 0;
    for (number, round) in corpus.rounds.iter().enumerate() {
        let documents = corpus_jsonl(round);
        place.write("new.jsonl", &documents);
        let outputs = "-o out.jsonl --cuts cuts.tsv";
        let known = match number {
            0 => "",
            _ => "--against seen.jsonl",
        };
        let read = || ["out.jsonl", "cuts.tsv"].map(|name| place.read(name));
        place.ok(&format!("dedup new.jsonl {options} {outputs} {known}"));
        let expected = read();
        place.ok(&format!(
            "dedup new.jsonl {options} {outputs} --library seen.lib"
        ));
        let found = read().map(|text| text.replace("\tseen.lib\t", "\tseen.jsonl\t"));
        assert_eq!(found, expected, "round {number}");
        from_library += found[1].matches("\tseen.jsonl\t").count();
        // All documents differ, so all of them are kept.
        place.write("seen.jsonl", place.read("seen.jsonl") + &documents);
        match number {
            1 => corpus.remove_documents(3),
            2 => {
                corpus.remove_documents(2);
                place.ok("index compact seen.lib");
            }
            _ => {}
        }
    }
    assert!(from_library > 50, "{from_library}");
    place.ok("index verify seen.lib");
    // The library is an index of passages.
    place.ok("passages new.jsonl --index seen.lib -o found.tsv");
    assert!(place.table("found.tsv").len() > 50);
    let shown = place.ok("index info seen.lib");
    let shown = String::from_utf8(shown.out).unwrap();
    assert!(shown.contains("of at least 10 words"), "{shown}");
    // Shorter passages would not all be found.
    place.refused(
        "dedup new.jsonl --method exact --library seen.lib --passages mark --min-length 9 -o o.jsonl",
        &["seen.lib", "at least 10 words", "--min-length is 9"],
    );
}

/// Returns a place with a library of one round, and with further documents in `new.jsonl`.
fn place_with_library() -> Place {
    let place = Place::new();
    let corpus = Numbers::new(8).corpus(300);
    place.write("old.jsonl", corpus_jsonl(&corpus[..200]));
    place.write("new.jsonl", corpus_jsonl(&corpus[200..]));
    place.ok("dedup old.jsonl --library seen.lib -o old-kept.jsonl");
    place
}

fn manifest(place: &Place) -> Vec<u8> {
    place.bytes("seen.lib/manifest")
}

#[test]
fn documents_of_the_library_come_before_those_of_against() {
    let place = place_with_library();
    let corpus = Numbers::new(9).corpus(100);
    place.write(
        "known.jsonl",
        corpus_jsonl(&corpus) + &place.read("new.jsonl").replace("\"d", "\"k"),
    );
    let tables = "--removed removed.tsv --clusters clusters.tsv";
    place.ok(&format!(
        "dedup new.jsonl --against old-kept.jsonl known.jsonl -o out.jsonl {tables}"
    ));
    let read = || ["out.jsonl", "removed.tsv", "clusters.tsv"].map(|name| place.read(name));
    let expected = read();
    let line =
        format!("dedup new.jsonl --against known.jsonl --library seen.lib -o out.jsonl {tables}");
    let summary = place.summary(&line);
    let found = read().map(|text| text.replace("\tseen.lib\t", "\told-kept.jsonl\t"));
    assert_eq!(found, expected);
    assert_eq!(
        (&summary["against"], &summary["kept"]),
        (&200.into(), &0.into())
    );
}

#[test]
fn repeated_and_rehearsed_runs_add_nothing() {
    let place = place_with_library();
    let before = manifest(&place);
    let line = "dedup new.jsonl --library seen.lib --removed removed.tsv";
    let rehearsed = place.summary("dedup new.jsonl --library seen.lib --dry-run");
    assert_eq!(manifest(&place), before);
    assert_eq!(rehearsed["library"]["added"], 0);
    let first = place.summary(line);
    assert_eq!(first["kept"], rehearsed["kept"]);
    let library = &first["library"];
    assert_eq!(library["added"], first["kept"]);
    let sum = library["compared"].as_u64().unwrap() + library["added"].as_u64().unwrap();
    assert_eq!(library["rows"], sum);
    let again = place.summary(line);
    assert_eq!(
        (&again["kept"], &again["library"]["added"]),
        (&0.into(), &0.into())
    );
    assert_eq!(again["library"]["rows"], library["rows"]);
    assert_eq!(place.table("removed.tsv").len(), 100);
    // Nothing is created for a rehearsal.
    place.ok("dedup new.jsonl --library other.lib --dry-run");
    assert!(!place.has("other.lib"));
}

#[test]
fn failed_runs_add_nothing() {
    let place = place_with_library();
    let (before, files) = (manifest(&place), place.names());
    let files_of_library = || std::fs::read_dir(place.path("seen.lib")).unwrap().count();
    let count = files_of_library();
    place.write(
        "twice.jsonl",
        place.read("new.jsonl") + &row("d0", "an id of the library has another text now"),
    );
    for (line, words) in [
        (
            "dedup new.jsonl --library seen.lib -o nowhere/out.jsonl",
            "nowhere",
        ),
        (
            "dedup new.jsonl missing.jsonl --library seen.lib -o out.jsonl",
            "missing.jsonl",
        ),
        (
            "dedup twice.jsonl --library seen.lib -o out.jsonl --strict",
            "the id 'd0'",
        ),
        (
            "dedup new.jsonl --library seen.lib -o seen.lib/out.jsonl",
            "inside the index seen.lib",
        ),
        (
            "dedup new.jsonl --library seen.lib -o out.jsonl --text no",
            "`no`",
        ),
        (
            "dedup new.jsonl --library fresh.lib -o out.jsonl --text no",
            "`no`",
        ),
        (
            "dedup twice.jsonl --library seen.lib -o out.jsonl --id-row",
            "row 2 of the inputs has no id",
        ),
    ] {
        place.refused(line, &[words]);
        assert_eq!(manifest(&place), before, "{line}");
        assert_eq!(files_of_library(), count, "{line}");
    }
    let left: Vec<_> = place
        .names()
        .into_iter()
        .filter(|name| name != "twice.jsonl")
        .collect();
    assert_eq!(left, files);
    // Without --strict, both documents have the id.
    let done = place.summary("dedup twice.jsonl --library seen.lib -o out.jsonl");
    assert_eq!(done["library"]["repeated_ids"], 1);
}

#[test]
fn libraries_and_runs_must_agree() {
    let place = place_with_library();
    place.ok("index build near.lib old.jsonl --distance-only");
    place.ok("index build words.lib old.jsonl --recipe words-1");
    let prints = place.ok("fingerprint old.jsonl").text().to_owned();
    place.write("prints.tsv", prints);
    place.ok("index build prints.lib prints.tsv --fingerprints");
    place.write("strange/file.txt", "something");
    let refused = |options: &str, words: &[&str]| {
        place.refused(&format!("dedup new.jsonl -o out.jsonl {options}"), words);
        assert!(!place.has("out.jsonl"));
    };
    let cases: [(&str, &[&str]); 18] = [
        (
            "--library near.lib",
            &["near.lib", "without --distance-only"],
        ),
        ("--library prints.lib", &["prints.lib", "unknown recipe"]),
        ("--library strange", &["strange exists and is not an index"]),
        (
            "--library seen.lib --recipe words-1",
            &[
                "seen.lib has the recipe default-1",
                "words-1",
                "leave --recipe out",
            ],
        ),
        (
            "--library seen.lib --set ngram=4",
            &["seen.lib", "leave --recipe out"],
        ),
        (
            "--library seen.lib --verify levenshtein",
            &["compares texts", "--texts"],
        ),
        (
            "--library seen.lib --method minhash",
            &["--method minhash", "--method auto, exact or simhash"],
        ),
        ("--library seen.lib --method join", &["--method join"]),
        (
            "--library seen.lib --method sentences",
            &["--method sentences"],
        ),
        (
            "--library seen.lib --method simhash --distance 4",
            &["the distance 4 is above 3", "--distance 4"],
        ),
        (
            "--library seen.lib --method simhash --candidates blocks",
            &["4 equal blocks", "--plan blocks --distance 3"],
        ),
        (
            "--library seen.lib --threshold 0.19",
            &["the threshold 0.19", "give a higher threshold"],
        ),
        ("--library seen.lib --within site", &["'site'", "--against"]),
        (
            "--library seen.lib --window 2d --time t",
            &["no times", "--against"],
        ),
        ("--library seen.lib --audit", &["--audit", "--against"]),
        (
            "--library seen.lib --report report.html",
            &["--report", "--against"],
        ),
        (
            "--library seen.lib --components",
            &["--components", "--against"],
        ),
        (
            "--library seen.lib --passages mark",
            &[
                "seen.lib",
                "texts and grams",
                "new library with --passages",
                "--against",
            ],
        ),
    ];
    for (options, words) in cases {
        refused(options, words);
    }
    refused("--library seen.lib --work run1", &["--library", "--work"]);
    // Without --recipe, that of the library holds.
    let done = place.summary("dedup new.jsonl --library words.lib --removed removed.tsv");
    assert_eq!(done["recipe"], "words-1");
}

#[test]
fn rows_without_ids_continue_the_numbers_of_the_library() {
    let place = Place::new();
    place.write(
        "first.txt",
        "the boat left at dawn\n\nnobody came to the harbour\n",
    );
    place.write(
        "second.txt",
        "NOBODY came to the harbour\nthe gulls came back\n",
    );
    place.write("third.txt", "the gulls came BACK\nthe boat left at dawn!\n");
    for (name, kept, added) in [("first", "", 2), ("second", "2", 1), ("third", "4,1", 0)] {
        let line = format!("dedup {name}.txt --library seen.lib --removed removed.tsv");
        assert_eq!(place.summary(&line)["library"]["added"], added, "{name}");
        let removed = place.table("removed.tsv");
        let named: Vec<_> = removed.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(named.join(","), kept, "{name}");
    }
}

#[test]
fn removed_texts_leave_the_disk_by_compaction() {
    let place = Place::new();
    let secret = "a rather peculiar sentence about turquoise locomotives";
    let others = Numbers::new(4).corpus(50);
    place.write("in.jsonl", corpus_jsonl(&others) + &row("secret", secret));
    place.write(
        "more.jsonl",
        jsonl([("more", "quite another document, which is added later")]),
    );
    place.ok("index build seen.lib in.jsonl --texts");
    place.ok("index add seen.lib more.jsonl");
    place.ok("index remove seen.lib secret");
    let search = "search seen.lib in.jsonl --threshold 0.6";
    let before = place.ok(search).out;
    let ran = place.summary("index compact seen.lib");
    assert_eq!((&ran["erased"], &ran["segments"]), (&1.into(), &2.into()));
    assert_eq!(ran["index"]["fingerprints"], 51);
    assert_eq!(place.ok(search).out, before);
    let again = manifest(&place);
    assert_eq!(place.summary("index compact seen.lib")["erased"], 0);
    assert_eq!(manifest(&place), again);
    place.ok("index verify seen.lib");
    place.refused("index compact other.lib", &["other.lib", "not an index"]);
}
