//! Audits compared with the truth, which is computed by the plain definition.

use std::collections::{BTreeMap, HashSet};

use lookalike_oracle::effort::choose_effort;
use serde_json::Value;

use crate::plain::similarities;
use crate::support::{Numbers, Place, corpus_jsonl, gzip, write_parquet};

/// A method that loses pairs, because it requires fingerprints that are near each other.
const BROKEN: &str = "--method simhash --distance 8 --threshold 0.6";

fn corpus() -> Vec<(String, String)> {
    Numbers::new(11).corpus(600)
}

/// Returns the later similar documents of each document, without equal texts.
fn similar(corpus: &[(String, String)], threshold: f64) -> BTreeMap<usize, Vec<usize>> {
    let all = similarities(corpus);
    let mut similar: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for b in 0..corpus.len() {
        for a in 0..b {
            if all[b][a] >= threshold && corpus[a].1 != corpus[b].1 {
                similar.entry(a).or_default().push(b);
            }
        }
    }
    similar
}

/// Returns the mean over documents of the share of their similar ones for which `holds` is true.
fn mean(similar: &BTreeMap<usize, Vec<usize>>, holds: impl Fn(usize, usize) -> bool) -> f64 {
    let shares = similar.iter().map(|(&a, others)| {
        let part = others.iter().filter(|&&b| holds(a, b)).count();
        part as f64 / others.len() as f64
    });
    shares.sum::<f64>() / similar.len() as f64
}

fn at(id: &str) -> usize {
    id[1..].parse().unwrap()
}

/// Returns the pairs in a table that `pairs` wrote.
fn found(place: &Place, table: &str) -> HashSet<(usize, usize)> {
    let rows = place.table(table);
    rows.iter().map(|row| (at(&row[0]), at(&row[1]))).collect()
}

fn near(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9
}

#[test]
fn full_audit_equals_the_truth() {
    let place = Place::new();
    let corpus = corpus();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let similar = similar(&corpus, 0.6);
    place.ok(&format!("pairs in.jsonl -o all.tsv --all {BROKEN}"));
    let found = found(&place, "all.tsv");
    let recall = mean(&similar, |a, b| found.contains(&(a, b)));
    assert!(
        recall > 0.05 && recall < 0.8,
        "nothing to tell apart: {recall}"
    );
    let summary = place.summary(&format!("pairs in.jsonl -o p.tsv {BROKEN} --audit=600"));
    let audit = &summary["audit"];
    assert_eq!(
        (&audit["sampled"], &audit["seed"]),
        (&600u64.into(), &1u64.into())
    );
    assert_eq!(audit["recall"]["cases"], similar.len());
    assert!(near(&audit["recall"]["share"], recall), "{audit} {recall}");
    assert_eq!(audit["precision"]["share"], 1.0);
    assert!(audit.get("left_together").is_none());
    // Of the duplicates, those count whose earlier document and own row both remain.
    let summary = place.summary(&format!(
        "dedup in.jsonl -o kept.jsonl {BROKEN} --audit=600"
    ));
    let kept: HashSet<_> = place.ids("kept.jsonl").iter().map(|id| at(id)).collect();
    let left = mean(&similar, |a, b| kept.contains(&a) && kept.contains(&b));
    assert!(left > 0.05, "the damage is too small to see: {left}");
    let audit = &summary["audit"];
    assert!(
        near(&audit["left_together"]["share"], left),
        "{audit} {left}"
    );
    assert!(near(&audit["recall"]["share"], recall));
    let lengths = audit["by_length"].as_array().unwrap();
    let cases: u64 = lengths
        .iter()
        .map(|length| length["recall"]["cases"].as_u64().unwrap())
        .sum();
    assert_eq!(cases, similar.len() as u64);
    let compared = lengths
        .iter()
        .map(|length| length["precision"]["cases"].as_u64().unwrap());
    assert_eq!(
        compared.sum::<u64>(),
        audit["precision"]["cases"].as_u64().unwrap()
    );
}

/// The audit counts removals that say something else, and shows those to look at first. A run that keeps them has none.
#[test]
fn other_contents_are_counted_and_shown() {
    let place = Place::new();
    let offer = |at: usize| {
        let text = format!(
            "Harbour kettle number {at}0{at}, {at}9 euros, made by hand in our own workshop on the quay and sent to your door \
             within three working days, postage included, and you may send it back within thirty days in its box"
        );
        serde_json::json!({ "id": format!("offer-{at}"), "text": text }).to_string() + "\n"
    };
    let story = "The old captain untied the rope at dawn and set course for the island in the north, where his brother has \
                 kept the light for thirty years without a day of rest or a letter from home";
    let copy =
        |id: &str, text: &str| serde_json::json!({ "id": id, "text": text }).to_string() + "\n";
    let mut corpus: String = (1..=20).map(offer).collect();
    corpus += &copy("story", story);
    corpus += &copy("copy", &format!("Reuters. {story}"));
    corpus += &copy("equal", story);
    place.write("in.jsonl", corpus);
    let off = "dedup in.jsonl -o kept.jsonl --forms off --audit --json";
    let summary: serde_json::Value = serde_json::from_slice(&place.run(off).out).unwrap();
    let contents = &summary["audit"]["contents"];
    // The equal copy is not compared, and the one with a header says the same.
    assert_eq!(contents["different"]["cases"], 20, "{contents}");
    assert!(near(&contents["different"]["share"], 19.0 / 20.0));
    let examples = contents["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 1, "{contents}");
    assert_eq!(examples[0]["kept"], "offer-1");
    assert_eq!(examples[0]["of_same"], 19);
    let told = place
        .run("dedup in.jsonl -o kept.jsonl --forms off --audit")
        .err;
    assert!(told.contains("other contents   0.9500"), "{told}");
    assert!(told.contains("and 18 more beside offer-1: "), "{told}");
    // Pairs are listed and not removed, so they lose nothing.
    let pairs = place.summary("pairs in.jsonl -o pairs.tsv --forms off --audit");
    assert!(pairs["audit"].get("contents").is_none());
}

/// Planted edits show the damage of a broken method, and no damage of a sound one.
#[test]
fn only_a_broken_method_loses_planted_edits() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&corpus()));
    let planted = |method: &str| {
        let line = format!("dedup in.jsonl --dry-run {method} --audit=600");
        place.summary(&line)["audit"]["planted"].clone()
    };
    let by_edit = |planted: &Value, count: fn(&Value) -> u64| -> u64 {
        planted["by_edit"]
            .as_array()
            .unwrap()
            .iter()
            .map(count)
            .sum()
    };
    for method in ["--method join --threshold 0.6", BROKEN] {
        let planted = planted(method);
        let copies = planted["copies"].as_u64().unwrap();
        assert!(copies > 100, "{planted}");
        assert_eq!(
            by_edit(&planted, |edit| edit["copies"].as_u64().unwrap()),
            copies
        );
        let cases = planted["recall"]["cases"].as_u64().unwrap();
        let similar = by_edit(&planted, |edit| edit["recall"]["cases"].as_u64().unwrap());
        assert!(cases > 50 && similar == cases, "{planted}");
        let recall = planted["recall"]["share"].as_f64().unwrap();
        match method {
            BROKEN => assert!(recall < 0.9, "{planted}"),
            _ => assert!((recall - 1.0).abs() < 1e-9, "{planted}"),
        }
    }
}

#[test]
fn ninety_percent_of_intervals_hold_the_truth() {
    let place = Place::new();
    let corpus = corpus();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let similar = similar(&corpus, 0.6);
    for method in [BROKEN, "--threshold 0.6"] {
        place.ok(&format!("pairs in.jsonl -o all.tsv --all {method}"));
        let found = found(&place, "all.tsv");
        let recall = mean(&similar, |a, b| found.contains(&(a, b)));
        let seeds = choose_effort(30, 100);
        let holds = (0..seeds).filter(|seed| {
            let summary = place.summary(&format!(
                "pairs in.jsonl -o p.tsv {method} --audit=100 --audit-seed {seed}"
            ));
            let estimate = &summary["audit"]["recall"];
            let end = |name: &str| estimate[name].as_f64().unwrap();
            assert_eq!(summary["audit"]["sampled"], 100);
            end("low") <= recall && recall <= end("high")
        });
        let covered = holds.count();
        assert!(
            covered * 10 >= seeds * 9,
            "{covered} of {seeds} with {method}"
        );
    }
}

#[test]
fn audit_changes_no_output_at_any_threads() {
    let place = Place::new();
    let corpus = corpus();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.write("in.jsonl.gz", gzip(corpus_jsonl(&corpus).as_bytes()));
    let (ids, texts): (Vec<_>, Vec<_>) = corpus.iter().map(|(a, b)| (&a[..], &b[..])).unzip();
    write_parquet(&place.path("in.parquet"), &[("id", ids), ("text", texts)]);
    place.ok("dedup in.jsonl -o plain.jsonl --removed plain.tsv");
    let mut audits: Vec<serde_json::Map<String, Value>> = Vec::new();
    for (input, threads) in [
        ("in.jsonl", 1),
        ("in.jsonl", 4),
        ("in.jsonl.gz", 3),
        ("in.parquet", 2),
    ] {
        let summary = place.summary(&format!(
            "dedup {input} -o out.{kind} --removed out.tsv --audit=80 --threads {threads}",
            kind = if input == "in.parquet" {
                "parquet"
            } else {
                "jsonl"
            }
        ));
        let named = place.read("out.tsv").replace(input, "in.jsonl");
        assert_eq!(named, place.read("plain.tsv"));
        let mut audit = summary["audit"].as_object().unwrap().clone();
        if input == "in.jsonl.gz" {
            // A compressed file cannot be examined in advance, so more documents are held for a while.
            audit["memory_bytes"] = audits.first().unwrap()["memory_bytes"].clone();
        }
        audits.push(audit);
    }
    assert!(
        audits.iter().all(|audit| *audit == audits[0]),
        "{audits:#?}"
    );
    assert_eq!(place.read("out.jsonl"), place.read("plain.jsonl"));
    let other = place.summary("dedup in.jsonl --dry-run --audit=80 --audit-seed 2");
    assert_ne!(other["audit"]["recall"], audits[0]["recall"]);
    assert!(
        place
            .summary("dedup in.jsonl --dry-run")
            .get("audit")
            .is_none()
    );
}

#[test]
fn audit_respects_known_documents_and_windows() {
    let place = Place::new();
    let text = "one two three four five six seven eight nine ten eleven twelve";
    let row = |id: &str, own: &str, part: &str| {
        format!("{{\"id\":\"{id}\",\"text\":\"{text} {own}\",\"part\":\"{part}\"}}\n")
    };
    place.write("old.jsonl", row("a", "x", "p") + &row("b", "y", "p"));
    place.write("in.jsonl", row("c", "z", "p") + &row("d", "u", "q"));
    // c and d are listed with a and with b, but not with each other.
    let summary = place.summary("pairs in.jsonl --against old.jsonl -o p.tsv --audit");
    assert_eq!(
        (&summary["pairs"], &summary["audit"]["pairs"]),
        (&4u64.into(), &4u64.into())
    );
    let line = "dedup in.jsonl --against old.jsonl --dry-run --audit --within part";
    // c is in one part with the known documents a and b.
    assert_eq!(place.summary(line)["audit"]["pairs"], 2);
}

#[test]
fn audit_measures_precision_of_estimates() {
    let place = Place::new();
    let corpus = corpus();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let line = "pairs in.jsonl -o p.tsv --method minhash --threshold 0.8 --verify none --audit=600";
    let summary = place.summary(line);
    let precision = &summary["audit"]["precision"];
    let share = precision["share"].as_f64().unwrap();
    // As many pairs as are compared again, or all of them.
    let pairs = summary["pairs"].as_u64().unwrap();
    assert_eq!(precision["cases"], pairs.min(200));
    assert!(share > 0.5 && share < 1.0, "{share}");
    let recall = summary["audit"]["recall"]["share"].as_f64().unwrap();
    assert!(recall > 0.5 && recall < 1.0, "{recall}");
}

#[test]
fn measures_without_feature_sets_are_refused() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(1).corpus(10)));
    let refusals = [
        ("--method exact", &["--audit", "exact"][..]),
        ("--verify levenshtein", &["--audit", "levenshtein"]),
        ("--verify cosine", &["--audit", "cosine"]),
        (
            "--method simhash --verify none",
            &["--audit", "--verify none"],
        ),
        (
            "--method simhash --verify containment",
            &["--audit", "containment"],
        ),
        (
            "--verify containment",
            &["--audit", "--verify containment", "every pair is found"],
        ),
    ];
    for (options, words) in refusals {
        place.refused(&format!("pairs in.jsonl {options} --audit"), words);
    }
    place.refused("pairs in.jsonl --audit=0", &["0"]);
    place.refused("pairs in.jsonl --audit-seed 3", &["--audit"]);
    place.ok("pairs in.jsonl --audit --method minhash --verify containment");
}

/// Short rows precede long ones, as in concatenated files.
#[test]
fn sample_size_does_not_depend_on_lengths() {
    let place = Place::new();
    let mut numbers = Numbers::new(5);
    let mut documents = Vec::new();
    for at in 0..6_000 {
        documents.push((format!("s{at}"), numbers.text(2)));
    }
    for at in 0..1_500 {
        documents.push((format!("l{at}"), numbers.text(700)));
    }
    place.write("in.jsonl", corpus_jsonl(&documents));
    for (asked, drawn) in [(1, 1), (300, 300), (7_499, 7_499), (9_000, 7_500)] {
        let summary = place.summary(&format!("dedup in.jsonl --dry-run --audit={asked}"));
        assert_eq!(summary["audit"]["sampled"], drawn, "{asked}");
        assert_eq!(summary["audit"]["requested"], drawn, "{asked}");
    }
    // An input that cannot be examined in advance may yield a smaller sample, and the report says so.
    place.write("in.jsonl.gz", gzip(corpus_jsonl(&documents).as_bytes()));
    let audit = place.summary("dedup in.jsonl.gz --dry-run --audit=2000")["audit"].clone();
    let (drawn, wanted) = (
        audit["sampled"].as_u64().unwrap(),
        audit["requested"].as_u64(),
    );
    assert_eq!(wanted, Some(2000));
    let text = place.ok("dedup in.jsonl.gz --dry-run --audit=2000").err;
    assert_eq!(
        text.contains("of the 2,000 requested"),
        drawn < 2000,
        "{text}"
    );
}

/// With sketches, containment is computed only for pairs with a minimum Jaccard index. The audit reports that
/// minimum, because it does not know any other pairs.
#[test]
fn containment_audit_states_its_minimum_jaccard() {
    let place = Place::new();
    let mut numbers = Numbers::new(6);
    let mut documents = Vec::new();
    for at in 0..40 {
        let text = numbers.text(100);
        let start = text.split(' ').take(40).collect::<Vec<_>>().join(" ");
        documents.extend([(format!("a{at}"), text), (format!("b{at}"), start)]);
    }
    place.write("in.jsonl", corpus_jsonl(&documents));
    let line =
        "dedup in.jsonl --dry-run --method minhash --verify containment --threshold .8 --audit";
    let summary = place.summary(line);
    let least = summary["audit"]["least_jaccard"].as_f64().unwrap();
    assert!((least - 2.0 / 3.0).abs() < 0.001, "{least}");
    let text = place.ok(line).err;
    assert!(
        text.contains("with a Jaccard index of 0.6667 or more are found"),
        "{text}"
    );
    let plain = place.summary("dedup in.jsonl --dry-run --audit");
    assert!(plain["audit"].get("least_jaccard").is_none());
}
