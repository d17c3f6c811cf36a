//! The output of `--json`, compared with its documentation.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Numbers, Place, corpus_jsonl};

/// Collects the names of all fields, at any depth.
fn names(value: &Value, names_of: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names_of.insert(name.clone());
                names(value, names_of);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, names_of)),
        _ => {}
    }
}

/// Returns all names between backticks.
fn documented() -> BTreeSet<String> {
    let document = include_str!("../../../../docs/summaries.md");
    let quoted = document.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[test]
fn every_field_of_a_summary_is_documented() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(2).corpus(200)));
    place.write(
        "l.csv",
        (0..60).fold("a,b,label,kind\n".to_owned(), |table, at| {
            table + &format!("w{at} x y z,w{at} x y z v,1,k\nw{at} x y,q{at} r s,0,k\n")
        }),
    );
    place.write(
        "q.jsonl",
        (0..20).fold(String::new(), |items, at| {
            items + &format!("{{\"question\":\"How many of w{at} x{at} y{at} z{at} are there?\",\"answer\":\"v{at}\"}}\n")
        }),
    );
    // A question that is boilerplate, and a row without one.
    let question = "Which zanthomere blooms behind the harbour office of Quillfeather";
    let asked = (0..25).map(|at| (at.to_string(), question.to_owned()));
    place.write("asked.jsonl", corpus_jsonl(&asked.collect::<Vec<_>>()));
    place.write(
        "quiz.jsonl",
        format!("{{\"question\":\"{question}\"}}\n{{\"question\":\"\"}}\n"),
    );
    place.ok("dedup in.jsonl -o o.jsonl --clusters c.jsonl --removed r.tsv");
    let removed = place.read("r.tsv");
    let explained = removed.lines().nth(1).unwrap().split('\t').next().unwrap();
    let documented = documented();
    place.write("fi.tsv", "id\tbenchmark\titem\n");
    for line in [
        "dedup in.jsonl --dry-run --audit --components --json",
        "dedup in.jsonl --against in.jsonl --dry-run --method minhash --verify containment --audit --json",
        "dedup in.jsonl --dry-run --passages mark --min-length 4 --json",
        "dedup in.jsonl -o w.jsonl --work work --json",
        "status work --json",
        "pairs in.jsonl -o p.tsv --audit=20 --json",
        "pairs in.jsonl --sample-by-similarity 2 --json",
        "passages in.jsonl -o pa.tsv --max-documents 1 --min-length 3 --json",
        "passages in.jsonl -o pa.tsv --against in.jsonl --json",
        "decontaminate asked.jsonl --benchmarks quiz.jsonl --json",
        "dedup in.jsonl --explain-plan --json",
        "dedup in.jsonl --explain-plan --method simhash --verify levenshtein --json",
        "dedup in.jsonl --explain-plan --method sentences --json",
        "dedup in.jsonl --explain-plan --method bottomk --json",
        "eval l.csv --kind kind --json",
        "eval l.csv --method simhash --json",
        "eval c.jsonl --clusters c.jsonl --json",
        "tune l.csv --resamples 10 --json",
        "plant in.jsonl -o pl.jsonl --labels pl.csv --documents 20 --json",
        "plant in.jsonl --contamination q.jsonl -o pc.jsonl --labels pc.tsv --indexed qi.jsonl --json",
        "eval fi.tsv --contamination pc.tsv --json",
        "fingerprint in.jsonl -o f.tsv --json",
        "segment in.jsonl -o s.tsv --json",
        "idf in.jsonl -o i.tsv --recipe words-1 --json",
        "idf in.jsonl --explain-plan --memory 1G --json",
        "passages index build pl in.jsonl --json",
        "index build lib in.jsonl --json",
        "index info lib --json",
        "index verify lib --json",
        "index remove lib d1 --json",
        "search lib in.jsonl -o m.tsv --json",
        "compare in.jsonl#d0 in.jsonl#d1 --json",
        "compare in.jsonl#d0 in.jsonl#d1 --recipe 1e0ng --method sentences --json",
        "compare --fingerprints 0a 0b --json",
        &format!("explain r.tsv {explained} in.jsonl --json"),
    ] {
        let ran = place.ok(line);
        let summary: Value = serde_json::from_slice(&ran.out).unwrap();
        let mut fields = BTreeSet::new();
        names(&summary, &mut fields);
        let missing: Vec<_> = fields.difference(&documented).collect();
        assert!(missing.is_empty(), "{line}: {missing:?}");
    }
}
