//! Corpora with planted edits.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::plain::{jaccard, similarities};
use crate::support::{Numbers, Place, corpus_jsonl, jsonl, rows};

/// Returns the texts of a planted corpus by id, in order.
fn texts(place: &Place, name: &str) -> Vec<(String, String)> {
    let text = place.read(name);
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let cell = |name: &str| row[name].as_str().unwrap().to_owned();
        (cell("id"), cell("text"))
    };
    text.lines().map(row).collect()
}

#[test]
fn labels_are_true_of_copies_and_natural_pairs() {
    let place = Place::new();
    let corpus = Numbers::new(3).corpus(300);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    // After these edits a text still consists of words separated by single spaces, which the plain definition
    // needs.
    place.ok(
        "plant in.jsonl -o out.jsonl --labels labels.tsv --documents 40 --copies 4 --near 0.5 \
         --edits replace-words,delete-words,insert-words --combined 2 --quiet",
    );
    let planted = texts(&place, "out.jsonl");
    assert_eq!(planted[..300], corpus[..]);
    let ids: HashSet<_> = planted.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), planted.len());
    let of: HashMap<_, _> = planted
        .iter()
        .map(|(id, text)| (&id[..], &text[..]))
        .collect();
    let truth = similarities(&corpus);
    let at = |id: &str| id[1..].parse::<usize>().unwrap();
    let (mut copies, mut pairs) = (HashSet::new(), HashSet::new());
    let mut others = HashSet::new();
    for label in rows(&place.read("labels.tsv")) {
        let [a, b, same, kind, strength, edits, similarity] = &label[..] else {
            panic!("{label:?}");
        };
        let similarity: f64 = similarity.parse().unwrap();
        let (of_a, of_b) = (of[&a[..]], of[&b[..]]);
        assert_eq!(similarity, jaccard(of_a, of_b.trim_end()), "{label:?}");
        if kind == "sibling" || kind == "unrelated" {
            let is_sibling = similarity >= 0.05;
            assert_eq!(
                (&same[..], kind == "sibling"),
                ("0", is_sibling),
                "{label:?}"
            );
            assert!(similarity < 0.5 && at(a) < at(b), "{label:?}");
            assert!(others.insert((at(a), at(b))));
            continue;
        }
        if kind == "natural" || kind == "near-miss" {
            assert_eq!(similarity, truth[at(b)][at(a)]);
            assert_eq!(
                (same == "1", same == "1"),
                (similarity >= 0.75, kind == "natural")
            );
            assert!(similarity >= 0.5);
            assert!(pairs.insert((at(a), at(b))));
            continue;
        }
        assert_eq!(same, "1");
        assert_ne!(of_a, of_b);
        assert!(b.starts_with(&format!("{a}#")) && copies.insert(b.clone()));
        let parts = edits.split('+').count();
        let expected = ["", kind, "two-edits", "three-edits"][parts];
        assert_eq!(
            (kind == expected, strength.is_empty()),
            (true, parts > 1),
            "{label:?}"
        );
    }
    assert!(!others.is_empty());
    assert_eq!(copies.len(), planted.len() - 300);
    assert!(copies.len() > 150, "{}", copies.len());
    // Pairs of different texts count between the first documents of their texts only; equal texts are paired
    // with the first of them.
    let first = |at: usize| (0..at).all(|earlier| truth[at][earlier] < 1.0);
    let all = (0..300).filter(|&b| first(b)).flat_map(|b| {
        let truth = &truth;
        let alike = (0..b).filter(move |&a| first(a) && truth[b][a] >= 0.5);
        alike.map(move |a| (a, b))
    });
    let equal = (0..300).filter(|&b| !first(b)).map(|b| {
        let mut earlier = (0..b).filter(|&a| truth[b][a] >= 1.0);
        (earlier.next().unwrap(), b)
    });
    let equal: Vec<_> = equal.collect();
    assert!(!equal.is_empty());
    assert_eq!(pairs, all.chain(equal).collect::<HashSet<_>>());
}

#[test]
fn files_depend_on_the_seed_not_on_threads() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(4).corpus(400)));
    let made = |threads: usize, seed: usize| {
        let ran = place.ok(&format!(
            "plant in.jsonl -o out.jsonl --labels labels.jsonl --documents 60 --pairs 30 \
             --threads {threads} --seed {seed}"
        ));
        (
            ran.out,
            place.bytes("out.jsonl"),
            place.bytes("labels.jsonl"),
        )
    };
    let one = made(1, 1);
    assert!(one == made(3, 1), "three threads made something else");
    let other = made(1, 2);
    assert!(one.1 != other.1 && one.2 != other.2);
    let labels = String::from_utf8(one.2).unwrap();
    for label in ["natural", "near-miss"] {
        let drawn = labels.lines().filter(|line| line.contains(label)).count();
        assert_eq!(drawn, 30, "{label}");
    }
}

#[test]
fn table_counts_copies_and_unapplied_edits() {
    let place = Place::new();
    let texts = [
        (
            "a#1",
            "the 7th boat leaves at nine with all that we have on board of it",
        ),
        (
            "b",
            "no number in this text at all, so nothing of the kind can change",
        ),
        ("c", ""),
    ];
    place.write("in.jsonl", jsonl(texts));
    let line = "plant in.jsonl -o out.jsonl --labels l.tsv --combined 0 --edits changed-number";
    let summary = place.summary(line);
    let counts = ["documents", "sampled", "copies"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [Some(3), Some(2), Some(1)]);
    assert_eq!(summary["mark"], "##");
    let effect = &summary["effects"][0];
    assert_eq!(effect["kind"], "changed-number");
    assert_eq!(effect["not_applicable"], 1);
    assert_eq!(effect["all"]["copies"], 1);
    // Two of 14 pairs of words have changed.
    assert_eq!(effect["all"]["mean"], 12.0 / 16.0);
    assert_eq!(effect["by_length"][0]["length"], "1-15");
    assert_eq!(rows(&place.read("l.tsv"))[0][1], "a#1##1");
    let shown = String::from_utf8(place.ok(line).out).unwrap();
    let row = shown
        .lines()
        .find(|line| line.starts_with("changed-number"));
    let cells: Vec<_> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells[1..4], ["1", "1", "0.750"]);
}

#[test]
fn impossible_plants_are_refused() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "one text"), ("b", "another text")]),
    );
    place.write("empty.jsonl", jsonl([("a", " ")]));
    let refusals = [
        (
            "in.jsonl -o out.tsv --labels l.tsv",
            &["out.tsv", ".jsonl"][..],
        ),
        ("in.jsonl -o - --labels l.tsv", &["standard output"]),
        ("in.jsonl -o l.csv --labels l.csv", &["l.csv", "both"]),
        (
            "in.jsonl -o o.jsonl --labels l.tsv --near 0.9",
            &["0.9", "0.75"],
        ),
        (
            "in.jsonl -o o.jsonl --labels l.tsv --edits typo",
            &["'typo'", "typos"],
        ),
        ("in.jsonl -o o.jsonl --labels l.tsv --documents 0", &["0"]),
        (
            "in.jsonl -o o.jsonl --labels l.tsv --features f",
            &["features"],
        ),
        ("in.jsonl -o in.jsonl --labels l.tsv", &["in.jsonl"]),
        ("empty.jsonl -o o.jsonl --labels l.tsv", &["no document"]),
    ];
    for (line, words) in refusals {
        place.refused(&format!("plant {line}"), words);
        assert!(!place.has("l.tsv") && !place.has("o.jsonl"));
    }
}

/// Equal texts are natural pairs too, each with the first of them.
#[test]
fn equal_texts_are_natural_pairs() {
    let place = Place::new();
    let (text, other) = ("one two three four five six", "seven eight nine ten");
    place.write(
        "in.jsonl",
        jsonl([
            ("a", text),
            ("b", other),
            ("c", text),
            ("d", "ONE two three four five six"),
            ("e", ""),
        ]),
    );
    place.ok("plant in.jsonl -o o.jsonl --labels l.tsv --documents 1 --recipe words-1");
    let natural: Vec<_> = rows(&place.read("l.tsv"))
        .into_iter()
        .filter(|row| row[3] == "natural")
        .collect();
    let pairs: Vec<_> = natural
        .iter()
        .map(|row| (&row[0][..], &row[1][..], &row[6][..]))
        .collect();
    assert_eq!(pairs, [("a", "c", "1"), ("a", "d", "1")]);
    // Natural pairs take only the room that is left.
    place.ok("plant in.jsonl -o o.jsonl --labels l.tsv --documents 1 --recipe words-1 --pairs 1");
    let table = place.read("l.tsv");
    assert_eq!(
        table
            .lines()
            .filter(|line| line.contains("natural"))
            .count(),
        1
    );
}

/// Documents of twenty topics that share a third to two thirds of their words, and a few near misses: a
/// threshold below .45 would remove most of them.
fn topics() -> Vec<(String, String)> {
    let mut numbers = Numbers::new(8);
    let mut own = 0;
    let mut text = |topic: usize, shared: usize| {
        let words = (0..60).map(|word| {
            own += 1;
            if word < shared {
                format!("t{topic}w{word}")
            } else {
                format!("own{own}")
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let mut texts: Vec<String> = (0..400)
        .map(|at| text(at % 20, 20 + numbers.below(17)))
        .collect();
    texts.extend((0..12).map(|at| text(100 + at / 2, 46)));
    let ids = (0..).map(|at| format!("d{at}"));
    ids.zip(texts).collect()
}

/// The setting that tuning recommends on a planted corpus removes the planted copies and little else, because
/// negatives of every similarity have labels.
#[test]
fn tuned_recipe_removes_planted_copies() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&topics()));
    let planted = place.summary(
        "plant in.jsonl -o out.jsonl --labels labels.tsv --documents 80 --copies 4 --combined 0 \
         --edits replace-words:1%,replace-words:5%,replace-words:10%,delete-words:20%,truncate-tail:50%",
    );
    assert_eq!(planted["near_misses"], 6);
    let count = |name: &str| planted[name].as_u64().unwrap();
    assert!(
        count("siblings") > 100 && count("unrelated") > 10,
        "{planted}"
    );
    let copies = count("copies") as f64;
    let ran =
        place.ok("tune labels.tsv --corpus out.jsonl -o mine.toml --resamples 50 --quiet --json");
    let tuned: Value = serde_json::from_slice(&ran.out).unwrap();
    let documents = 412.0 + copies;
    let tried = &tuned["tried_on"];
    assert_eq!(tried["is_corpus"], true);
    for of in ["documents", "total"] {
        assert_eq!(tried[of].as_f64(), Some(documents), "{of}");
    }
    let chosen = &tuned["settings"][tuned["chosen"].as_u64().unwrap() as usize];
    let share = chosen["removed"]["share"].as_f64().unwrap();
    let expected = copies / documents;
    assert!(
        (share - expected).abs() < 0.1,
        "{share} for {expected}: {chosen}"
    );
    // Below the limit of the labels nothing is chosen, by any setting.
    for setting in tuned["settings"].as_array().unwrap() {
        let (Some(cut), Some(limit)) =
            (setting["cut"].as_f64(), setting["reach"]["limit"].as_f64())
        else {
            continue;
        };
        let is_within = if setting["sweep"] == "distance" {
            cut <= limit
        } else {
            cut >= limit
        };
        assert!(is_within, "{setting}");
    }
    // On the documents as they were, hardly any is removed.
    let command = tuned["command"].as_str().unwrap();
    let line = command.strip_prefix("lookalike ").unwrap();
    let line = line.replace("IN", "in.jsonl").replace("OUT", "kept.jsonl");
    let removed = place.summary(&line)["removed"].as_u64().unwrap();
    assert!(removed <= 20, "{removed} of 412: {command}");
}

/// Labels without negatives over a range of similarities are told of, and nothing there is recommended.
#[test]
fn labels_out_of_range_are_reported() {
    let place = Place::new();
    let mut number = 0;
    let mut row = |shared: usize, label: u8| {
        number += 1;
        let words = |from: usize| {
            let words = (from..from + 20).map(|word| format!("w{number}x{word}"));
            words.collect::<Vec<_>>().join(" ")
        };
        let row = serde_json::json!({ "a": words(0), "b": words(20 - shared), "label": label });
        format!("{row}\n")
    };
    let mut rows = String::new();
    for _ in 0..30 {
        for shared in [8, 12, 16, 18] {
            rows.push_str(&row(shared, 1));
        }
        for shared in [15, 16] {
            rows.push_str(&row(shared, 0));
        }
    }
    place.write("p.jsonl", rows);
    let line = "tune p.jsonl --recipe words-1 --resamples 20";
    let ran = place.ok(line);
    let said = "no pair with a similarity from 0.05 to 0.6 by words-1";
    let tuned: Value = serde_json::from_slice(&place.ok(&format!("{line} --json")).out).unwrap();
    let settings = tuned["settings"].as_array().unwrap();
    let plain = &settings[0];
    assert_eq!(
        (&plain["measure"], &plain["recipe"]),
        (&"jaccard".into(), &"words-1".into())
    );
    assert_eq!(plain["reach"]["limit"], 0.6);
    assert!(plain["cut"].as_f64().unwrap() >= 0.6);
    let warnings = tuned["warnings"].as_array().unwrap();
    if tuned["chosen"] == 0 {
        assert!(warnings[0].as_str().unwrap().contains(said), "{warnings:?}");
    }
    assert!(
        !warnings.is_empty() && ran.err.contains(warnings[0].as_str().unwrap()),
        "{}",
        ran.err
    );
    // Each text of a pair, because no corpus was named.
    assert_eq!(tuned["tried_on"]["total"], 360);
    assert_eq!(tuned["tried_on"]["is_corpus"], false);
    assert!(
        ran.text()
            .contains("removes: the share of 360 labelled texts"),
        "{}",
        ran.text()
    );
}

/// Filled forms share the frame of their document and have other values, and a table of forms tells them from their
/// repeats, which a threshold cannot.
#[test]
fn planted_forms_are_told_from_their_repeats() {
    let place = Place::new();
    let mut numbers = Numbers::new(7);
    let corpus: Vec<_> = (0..60)
        .map(|at| (format!("d{at}"), numbers.text(80)))
        .collect();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let line = "plant in.jsonl -o out.jsonl --labels labels.tsv --documents 20 --copies 0 --combined 0 --forms 10";
    let done = place.summary(line);
    assert_eq!(done["filled_forms"], 120, "{done}");
    let repeats = done["form_repeats"].as_u64().unwrap();
    assert!((20..=30).contains(&repeats), "{done}");
    assert_eq!(done["copies"], 0);
    let planted = texts(&place, "out.jsonl");
    let of: HashMap<_, _> = planted
        .iter()
        .map(|(id, text)| (&id[..], &text[..]))
        .collect();
    let distinct: HashSet<_> = planted.iter().map(|(_, text)| text).collect();
    assert_eq!(distinct.len(), planted.len());
    let mut kinds: HashMap<String, u64> = HashMap::new();
    for label in rows(&place.read("labels.tsv")) {
        let (a, b) = (of[&label[0][..]], of[&label[1][..]]);
        if label[3] == "filled-form" {
            assert_eq!(label[2], "0");
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let (a, b) = (words(a), words(b));
            assert_eq!(a.len(), b.len());
            let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
            assert!((1..=6).contains(&differing), "{differing}");
            assert_eq!((&a[..6], &a[74..]), (&b[..6], &b[74..]));
        } else if label[3] == "form-repeat" {
            assert_eq!(label[2], "1");
            assert!(b.contains(a), "{a} {b}");
        }
        *kinds.entry(label[3].clone()).or_default() += 1;
    }
    assert_eq!(kinds["filled-form"], 120);
    assert_eq!(kinds["form-repeat"], repeats);
    // The same seed gives the same files, whatever the number of threads.
    let first = (place.read("out.jsonl"), place.read("labels.tsv"));
    place.ok(&format!("{line} --threads 1"));
    assert_eq!((place.read("out.jsonl"), place.read("labels.tsv")), first);

    place.ok("forms learn out.jsonl -o forms.toml");
    let at_default = |options: &str| {
        let figures = place.summary(&format!(
            "eval labels.tsv --corpus out.jsonl --kind kind {options}"
        ));
        let points = figures["settings"][0]["points"].as_array().unwrap().clone();
        let point = points.into_iter().find(|point| point["cut"] == 0.75);
        let counts = point.unwrap()["method"]["counts"].clone();
        ["true_positives", "false_positives"].map(|count| counts[count].as_u64().unwrap())
    };
    let [found, wrong] = at_default("--forms off");
    let [found_with, wrong_with] = at_default("--forms forms.toml");
    assert!(wrong > 90 && wrong_with <= 2, "{wrong} {wrong_with}");
    assert!(
        found_with + 1 >= found && found >= repeats,
        "{found} {found_with}"
    );
    place.refused(
        "eval labels.tsv --corpus out.jsonl --forms learn",
        &["forms learn"],
    );
    let tuned = place.ok("tune labels.tsv --corpus out.jsonl --forms forms.toml -o tuned.toml");
    assert!(
        place.read("tuned.toml").contains("forms = \"forms.toml\""),
        "{}",
        tuned.err
    );
}
