//! Matches, and the choice of the kept document of a group.

use serde_json::Value;

use crate::plain;
use crate::support::{Numbers, Place, corpus_jsonl, jsonl, row};

/// Returns the words w0, w1, and so on. A text of n + 1 words has n features.
fn words(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn threshold_is_inclusive() {
    // 9 and 8 features, of which 8 are shared: 8/9.
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", &words(0..10)[..]), ("b", &words(0..9))]),
    );
    for method in ["auto", "minhash", "join"] {
        for (threshold, kept) in [
            ("0.88", 1),
            ("0.8888888888888888", 1),
            ("0.888888888888889", 2),
            ("0.9", 2),
            ("1", 2),
        ] {
            place.ok(&format!(
                "dedup in.jsonl --method {method} --threshold {threshold} -o out.jsonl"
            ));
            assert_eq!(place.ids("out.jsonl").len(), kept, "{method} {threshold}");
        }
    }
}

#[test]
fn every_measure_matches_at_its_threshold() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", &words(0..21)[..]), ("b", &words(0..15))]),
    );
    // 20 and 14 features: Jaccard 0.7, containment 1.
    let removed = |options: &str| {
        place.ok(&format!("dedup in.jsonl {options} --removed removed.tsv"));
        place.table("removed.tsv").first().map(|row| row[2].clone())
    };
    assert_eq!(removed(""), None);
    assert_eq!(removed("--threshold 0.7"), Some("0.7".into()));
    assert_eq!(
        removed("--verify containment --threshold 0.8"),
        Some("1".into())
    );
    assert_eq!(removed("--verify none --threshold 0.7"), Some("0.7".into()));
}

#[test]
fn recorded_threshold_is_the_one_used() {
    let place = Place::new();
    let mut numbers = Numbers::new(1);
    let text = numbers.text(400);
    let near = numbers.edited(&text, 2);
    place.write("in.jsonl", jsonl([("a", &text[..]), ("b", &near)]));
    for (options, expected) in [
        ("--threshold 0.5", "0.5"),
        ("--method minhash --verify none --threshold 0.5", "0.5"),
        ("--method simhash --distance 16 --verify none", "0.75"),
        ("--method simhash --distance 32 --verify none", "0.5"),
        ("--method simhash --distance 32", "0.75"),
        ("--method sentences --verify none", "1"),
        ("--method exact", "1"),
    ] {
        let command = format!("dedup in.jsonl {options} --removed removed.tsv");
        let summary = place.summary(&command);
        assert_eq!(
            summary["threshold"].to_string().parse::<f64>(),
            expected.parse()
        );
        for row in place.table("removed.tsv") {
            assert_eq!(row[4], expected, "{options}");
            let similarity: f64 = row[2].parse().unwrap();
            assert!(similarity >= expected.parse().unwrap(), "{options}");
        }
    }
}

#[test]
fn fingerprints_by_distance() {
    let place = Place::new();
    let mut numbers = Numbers::new(1);
    let text = numbers.text(400);
    let near = numbers.edited(&text, 2);
    place.write(
        "in.jsonl",
        jsonl([("a", &text[..]), ("b", &near), ("c", &numbers.text(400))]),
    );
    let run = |options: &str| {
        place.ok(&format!(
            "dedup in.jsonl --method simhash {options} --removed removed.tsv"
        ));
        place.table("removed.tsv")
    };
    let removed = run("--distance 12 --verify none");
    assert_eq!(
        (removed.len(), &removed[0][0][..], &removed[0][3][..]),
        (1, "b", "simhash")
    );
    let similarity: f64 = removed[0][2].parse().unwrap();
    let bits = (64.0 * (1.0 - similarity)).round() as u32;
    assert!(bits > 0 && bits <= 12);
    assert_eq!(run(&format!("--distance {bits} --verify none")).len(), 1);
    assert_eq!(
        run(&format!("--distance {} --verify none", bits - 1)).len(),
        0
    );
    let checked: f64 = run("--distance 12")[0][2].parse().unwrap();
    assert_eq!(checked, plain::jaccard(&text, &near));
    place.refused(
        "dedup in.jsonl --method simhash --distance 64 -o x",
        &["64", "bits"],
    );
}

#[test]
fn exact_method_matches_equal_texts_only() {
    let place = Place::new();
    let texts = [
        "one two three four",
        "ONE two; three, four",
        "one two three four five",
    ];
    place.write(
        "in.jsonl",
        jsonl([("a", texts[0]), ("b", texts[1]), ("c", texts[2])]),
    );
    place.ok("dedup in.jsonl --method exact -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "c"]);
}

#[test]
fn recipes_by_name_and_from_files() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "red green blue"), ("b", "blue red green")]),
    );
    place.ok("dedup in.jsonl -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "b"]);
    place.ok("dedup in.jsonl -o out.jsonl --recipe words-1");
    assert_eq!(place.ids("out.jsonl"), ["a"]);
    let recipe = place.ok("recipe words-1");
    place.write("mine.toml", &recipe.out);
    let summary = place.summary("dedup in.jsonl --dry-run --recipe mine.toml");
    assert_eq!(summary["kept"], 1);
    assert!(
        recipe
            .text()
            .contains(summary["recipe_id"].as_str().unwrap())
    );
    place.write("bad.toml", recipe.text().replace("ngram = 1", "ngram = 0"));
    place.refused(
        "dedup in.jsonl -o x --recipe bad.toml",
        &["bad.toml", "ngram is 0", "1 to 32"],
    );
    place.refused("dedup in.jsonl -o x --recipe none.toml", &["none.toml"]);
    place.refused("dedup in.jsonl -o x --recipe wurds", &["wurds", "words-1"]);
}

#[test]
fn keep_option_selects_the_kept_document() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","text":"one two three four","n":5,"s":"m"}
{"id":"b","text":"One two three four!!!","n":10,"s":"k"}
{"id":"c","text":"one two three four.","n":9,"s":"z"}
{"id":"d","text":"ONE TWO THREE FOUR"}
"#,
    );
    let kept = [
        ("first", "a"),
        ("last", "d"),
        ("longest", "b"),
        ("max:n", "b"),
        ("min:n", "a"),
        ("max:s", "c"),
        ("min:s", "b"),
        ("max:id", "d"),
        ("min:id", "a"),
    ];
    for (rule, id) in kept {
        place.ok(&format!("dedup in.jsonl --keep {rule} -o out.jsonl"));
        assert_eq!(place.ids("out.jsonl"), [id], "{rule}");
    }
    place.refused(
        "dedup in.jsonl --keep best -o out.jsonl",
        &["best", "max:FIELD"],
    );
}

/// Each key of `--keep` decides where those before it are equal, and the last ties go to the first document. All ways
/// of running give the same outputs.
#[test]
fn keep_option_takes_several_keys() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","text":"one two three four","q":5,"site":"x","part":1}
{"id":"b","text":"One two three four!!!","q":7,"part":1}
{"id":"c","text":"one two three four!!!","q":7.0,"site":"z","part":1}
{"id":"d","text":"ONE TWO THREE FOUR","q":7,"site":"y","part":1}
"#,
    );
    let ways = [
        "",
        "--memory 1GB",
        "--within part",
        "--against known.jsonl",
        "--library seen.lib",
        "--work run",
    ];
    place.write(
        "known.jsonl",
        "{\"id\":\"k\",\"text\":\"nothing of the kind\"}\n",
    );
    for (rule, id) in [
        ("max:q", "b"),
        ("max:q,first", "b"),
        ("max:q,last", "d"),
        ("max:q,longest", "b"),
        ("max:q,longest,last", "c"),
        ("max:q,min:site", "d"),
        ("max:q,max:site", "c"),
        ("longest,min:q,last", "c"),
        ("min:q,longest", "a"),
    ] {
        for way in ways {
            place.ok(&format!(
                "dedup in.jsonl --keep {rule} {way} -o out.jsonl --removed removed.tsv"
            ));
            assert_eq!(place.ids("out.jsonl"), [id], "{rule} {way}");
            for directory in ["seen.lib", "run"] {
                let _ = std::fs::remove_dir_all(place.path(directory));
            }
        }
    }
    for (rule, said) in [
        ("first,longest", "give first as the last key"),
        ("max:q,min:q", "min:q never decides"),
        ("max:q,", "none of the 4 documents has a field 'q,'"),
        (
            "longest,max:likes",
            "--keep longest,max:likes: none of the 4",
        ),
    ] {
        place.refused(&format!("dedup in.jsonl --keep {rule} -o x.jsonl"), &[said]);
    }
}

/// Values of `--keep` are compared exactly, and documents without a valid value come last.
#[test]
fn keep_order_compares_values() {
    let place = Place::new();
    let kept = |rule: &str, input: &str| -> String {
        place.ok(&format!(
            "dedup {input} --keep {rule} -o out.{}",
            &input[3..]
        ));
        let row = place.read(&format!("out.{}", &input[3..]));
        row.lines().last().unwrap().to_owned()
    };
    place.write(
        "in.csv",
        "id,text,v\n1,same,5\n2,same,\n3,same,7\n4,same,NaN\n5,same, \n6,same,6.5\n",
    );
    assert!(kept("max:v", "in.csv").starts_with("3,"));
    assert!(kept("min:v", "in.csv").starts_with("1,"));
    let row =
        |id: u32, value: &str| format!("{{\"id\":\"{id}\",\"text\":\"same\",\"v\":{value}}}\n");
    let values = |values: &[&str]| -> String {
        (1..)
            .zip(values)
            .map(|(id, value)| row(id, value))
            .collect()
    };
    // Integers beyond the precision of `f64`, beside floating-point numbers.
    for (all, least, largest) in [
        (
            &["1700000000000000001", "1700000000000000100", "1.7e18"][..],
            3,
            2,
        ),
        (
            &[
                "9007199254740993",
                "9007199254740992.0",
                "9007199254740994.0",
            ],
            2,
            3,
        ),
        (
            &[
                "-9007199254740993",
                "-9007199254740992.0",
                "\"-9007199254740994\"",
            ],
            3,
            2,
        ),
        (&["2", "2.5", "1.5", "null", "\"\""], 3, 2),
        (
            &[
                "9223372036854775807",
                "9223372036854775808",
                "1e400",
                "-1e400",
            ],
            4,
            3,
        ),
        (&["-0.0", "0", "0.0"], 1, 1),
        (&["true", "false", "\"text\"", "7"], 2, 3),
    ] {
        place.write("in.jsonl", values(all));
        assert_eq!(
            kept("min:v", "in.jsonl"),
            row(least, all[least as usize - 1]).trim_end()
        );
        assert_eq!(
            kept("max:v", "in.jsonl"),
            row(largest, all[largest as usize - 1]).trim_end()
        );
    }
    // The order by `--keep` does not apply to known documents.
    place.write("old.csv", "id,text\nx,same\n");
    place.ok("dedup in.csv --against old.csv --keep max:v -o out.csv");
    assert_eq!(place.read("out.csv"), "id,text,v\n");
}

/// If another measure decides, the summary says which pairs were not compared at all.
#[test]
fn candidate_threshold_is_reported() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "alpha beta gamma"), ("b", "alpha beta")]),
    );
    for (options, from) in [
        ("--verify containment --threshold 1", false),
        ("--method minhash --verify containment", true),
        ("--verify levenshtein --unit words", true),
        ("--method simhash --verify levenshtein", false),
        ("", false),
    ] {
        for command in ["dedup in.jsonl --dry-run", "pairs in.jsonl -o out.tsv"] {
            let line = format!("{command} {options}");
            let told = place.ok(&line).err.contains("no others were compared");
            let summary = place.summary(&line);
            let number = summary.get("candidate_threshold").and_then(Value::as_f64);
            assert_eq!((told, number.is_some()), (from, from), "{line}");
            assert!(number.is_none_or(|number| number > 0.0 && number <= 1.0));
        }
    }
}

/// Tables distinguish documents of one id by source and row; the summary counts them.
#[test]
fn shared_ids_of_both_inputs_are_reported() {
    let place = Place::new();
    place.write("old.jsonl", jsonl([("1", "alpha beta"), ("x", "old text")]));
    place.write(
        "new.jsonl",
        jsonl([("1", "gamma delta"), ("2", "alpha beta")]),
    );
    place.write("other.jsonl", jsonl([("3", "alpha beta")]));
    for (line, shared) in [
        ("new.jsonl --against old.jsonl", Some(1)),
        ("new.jsonl --against old.jsonl --id-row", Some(2)),
        ("new.jsonl --against other.jsonl", None),
        ("new.jsonl", None),
    ] {
        let summary = place.summary(&format!("dedup {line} --dry-run"));
        assert_eq!(
            summary.get("shared_ids").and_then(Value::as_u64),
            shared,
            "{line}"
        );
        let told = place
            .ok(&format!("dedup {line} --dry-run"))
            .err
            .contains("shared ids");
        assert_eq!(told, shared.is_some(), "{line}");
    }
}

#[test]
fn text_field_without_values_is_refused() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"title\":\"Weekly report\",\"body\":\"alpha beta\"}\n{\"title\":\"Weekly report\"}\n",
    );
    place.ok("dedup in.jsonl --text title,body -o out.jsonl");
    assert_eq!(place.read("out.jsonl"), place.read("in.jsonl"));
    place.ok("dedup in.jsonl --text title,%20body -o out.jsonl");
    assert_eq!(place.read("out.jsonl"), place.read("in.jsonl"));
    place.refused(
        "dedup in.jsonl --text title,bodi -o out.jsonl",
        &["--text title,bodi", "none of the 2 documents", "'bodi'"],
    );
}

#[test]
fn within_restricts_pairs_to_equal_values() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","text":"one two three","lang":"en"}
{"id":"b","text":"one two three","lang":"de"}
{"id":"c","text":"one two three","lang":"en"}
{"id":"d","text":"one two three"}
{"id":"e","text":"one two three","lang":null}
"#,
    );
    place.ok("dedup in.jsonl --within lang -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "b", "d"]);
}

/// Some rows may lack a field that an option names, but not all rows, because a misspelled name would
/// silently change the result.
#[test]
fn field_without_values_is_refused() {
    let place = Place::new();
    let rows = r#"{"id":"a","text":"one two three","rank":1}
{"id":"b","text":"one two three"}
"#;
    place.write("in.jsonl", rows);
    for (options, said) in [
        (
            "--within lnag",
            "--within lnag: none of the 2 documents has a field 'lnag'",
        ),
        (
            "--keep max:likes",
            "--keep max:likes: none of the 2 documents",
        ),
        ("--within rank --keep min:likes", "--keep min:likes"),
        ("--keep min:rank --within lnag", "--within lnag"),
    ] {
        place.refused(&format!("dedup in.jsonl -o out.jsonl {options}"), &[said]);
        assert!(!place.has("out.jsonl"), "{options}");
    }
    place.refused("pairs in.jsonl --within lnag", &["--within lnag"]);
    place.ok("dedup in.jsonl --keep max:rank --within rank -o out.jsonl");
    place.write("empty.jsonl", "");
    place.ok("dedup empty.jsonl --within lnag -o empty-out.jsonl");
    place.write("null.jsonl", "{\"text\":\"a\",\"rank\":null}\n");
    place.ok("dedup null.jsonl --within rank -o null-out.jsonl");
    // It is enough that the field occurs in the known documents, or in the others.
    place.write("known.jsonl", "{\"id\":\"k\",\"text\":\"one two three\"}\n");
    place.ok("dedup in.jsonl --against known.jsonl --within rank -o against.jsonl");
    assert_eq!(place.ids("against.jsonl"), ["a"]);
    place.refused(
        "dedup in.jsonl --text body -o none.jsonl",
        &["none of the 2 rows", "`body`", "perhaps `text` is meant"],
    );
}

#[test]
fn window_restricts_pairs_by_time() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","text":"one two three","at":"2024-05-01T00:00:00Z","unix":0}
{"id":"b","text":"one two three","at":"2024-05-03T00:00:00Z","unix":172800}
{"id":"c","text":"one two three","at":"2024-05-03T00:00:01Z","unix":172801}
{"id":"d","text":"one two three","at":"2024-05-04","unix":259200}
"#,
    );
    for field in ["at", "unix"] {
        for (window, kept) in [
            ("2d", &["a", "c"][..]),
            ("172799s", &["a", "b"]),
            ("172801s", &["a", "d"]),
            ("1w", &["a"]),
            ("0s", &["a", "b", "c", "d"]),
        ] {
            place.ok(&format!(
                "dedup in.jsonl --window {window} --time {field} -o out.jsonl"
            ));
            assert_eq!(place.ids("out.jsonl"), kept, "{window} by {field}");
        }
    }
    place.refused("dedup in.jsonl --window 2d -o x", &["--time"]);
    place.refused("dedup in.jsonl --time at -o x", &["--window"]);
    place.refused("dedup in.jsonl --window 2 --time at -o x", &["36h"]);
    place.write("bad.jsonl", "{\"text\":\"a\",\"at\":\"yesterday\"}\n");
    place.refused(
        "dedup bad.jsonl --window 2d --time at -o x.jsonl",
        &["yesterday"],
    );
}

/// An ambiguous value is refused, not interpreted.
#[test]
fn ambiguous_times_are_refused() {
    let place = Place::new();
    for (time, said) in [
        ("20240310", Some("may be a date")),
        ("\"20240310\"", Some("may be a date")),
        ("1710201600000", Some("milliseconds")),
        ("\"1710201600000\"", Some("seconds since 1970")),
        ("20240310.0", None),
        ("20249999", None),
        ("\"2024-03-10\"", None),
        ("\"2024-03-10T05:00:00+08:00\"", None),
        ("\"2024-03-10T05:00:00[Asia/Shanghai]\"", Some("ISO 8601")),
        ("99999999999", None),
    ] {
        let later = "{\"text\":\"one two three\",\"at\":\"2024-05-01\"}\n";
        let row = format!("{{\"text\":\"one two three\",\"at\":{time}}}\n{later}");
        place.write("in.jsonl", row);
        let ran = place.run("dedup in.jsonl --window 2h --time at -o out.jsonl");
        match said {
            None => assert_eq!(ran.code, Some(0), "{time}: {}", ran.err),
            Some(said) => {
                assert_eq!(ran.code, Some(1), "{time}");
                assert!(ran.err.contains(said), "{time}: {}", ran.err);
            }
        }
    }
}

#[test]
fn known_documents_are_matched_and_kept() {
    let place = Place::new();
    place.write(
        "old.jsonl",
        jsonl([("x", "one two three"), ("y", "one two three!")]),
    );
    place.write(
        "new.jsonl",
        jsonl([
            ("a", "four five six"),
            ("x", "One two three"),
            ("b", "four five six"),
        ]),
    );
    place.ok("dedup new.jsonl --against old.jsonl -o out.jsonl --removed removed.tsv");
    assert_eq!(place.ids("out.jsonl"), ["a"]);
    let removed: Vec<_> = place
        .table("removed.tsv")
        .iter()
        .map(|row| row[..2].join("<-"))
        .collect();
    assert_eq!(removed, ["x<-x", "b<-a"]);
    let summary = place.summary("dedup new.jsonl --against old.jsonl --dry-run");
    assert_eq!(
        (&summary["documents"], &summary["against"]),
        (&3.into(), &2.into())
    );
    let kept_last = "dedup new.jsonl --against old.jsonl --keep last -o out.jsonl";
    place.ok(kept_last);
    assert_eq!(place.ids("out.jsonl"), ["b"]);
    let pairs = place.ok("pairs new.jsonl --against old.jsonl");
    let all = place.ok("pairs new.jsonl --against old.jsonl --all");
    assert_eq!(all.text(), pairs.text());
    let listed: Vec<_> = pairs.text().lines().skip(1).collect();
    assert_eq!(
        listed,
        [
            "x\tx\t1\told.jsonl\t1\tnew.jsonl\t2",
            "y\tx\t1\told.jsonl\t2\tnew.jsonl\t2"
        ]
    );
    let distinct = place.ok("pairs new.jsonl --against old.jsonl --distinct");
    assert_eq!(distinct.text().lines().count(), 1);
}

#[test]
fn short_texts_match_equals_and_empty_none() {
    let place = Place::new();
    let texts = ["", "", " \t", "x", "X!", "y", "?!", " ?!", "!?", "\u{200b}"];
    let rows: String = texts
        .iter()
        .enumerate()
        .map(|(n, text)| row(&n.to_string(), text))
        .collect();
    place.write("in.jsonl", rows);
    for method in ["auto", "minhash", "simhash", "join", "exact"] {
        place.ok(&format!("dedup in.jsonl --method {method} -o out.jsonl"));
        assert_eq!(
            place.ids("out.jsonl"),
            ["0", "1", "2", "3", "5", "6", "8", "9"],
            "{method}"
        );
    }
    let states = &place.summary("dedup in.jsonl --dry-run")["states"];
    assert_eq!(
        (&states["too_short"], &states["empty"]),
        (&3.into(), &3.into())
    );
}

/// On a mixed corpus, methods that find all pairs remove exactly what the rule says, with its evidence. The
/// other methods remove only what the laws allow.
#[test]
fn verdicts_follow_the_rule() {
    let place = Place::new();
    let corpus = Numbers::new(7).corpus(600);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let similarities = plain::similarities(&corpus);
    let position = |id: &str| id[1..].parse::<usize>().unwrap();
    for threshold in ["0.6", "0.8", "0.95"] {
        let number: f64 = threshold.parse().unwrap();
        let expected = plain::verdicts(&similarities, number);
        assert!(expected.len() > 50);
        for method in ["join", "auto", "minhash"] {
            place.ok(&format!(
                "dedup in.jsonl --method {method} --threshold {threshold} -o out.jsonl \
                 --removed removed.tsv"
            ));
            let removed = place.table("removed.tsv");
            let kept = place.ids("out.jsonl");
            assert_eq!(kept.len() + removed.len(), corpus.len());
            for row in &removed {
                let (id, of) = (&row[0], &row[1]);
                let similarity: f64 = row[2].parse().unwrap();
                assert!(kept.contains(of) && !kept.contains(id), "{row:?}");
                assert_eq!(
                    similarity,
                    similarities[position(id)][position(of)],
                    "{row:?}"
                );
                assert!(
                    similarity >= number && row[5] == *of && row[4] == threshold,
                    "{row:?}"
                );
                if method == "join" {
                    assert_eq!(
                        expected[&position(id)],
                        (position(of), similarity),
                        "{row:?}"
                    );
                }
            }
            let missed = expected.len().abs_diff(removed.len());
            assert!(
                missed
                    <= if method == "join" {
                        0
                    } else {
                        expected.len() / 50
                    },
                "{method}"
            );
        }
    }
    place.ok("dedup in.jsonl --method join --threshold 1 -o out.jsonl");
    place.ok("dedup out.jsonl --method join --threshold 1 -o again.jsonl");
    assert_eq!(place.read("out.jsonl"), place.read("again.jsonl"));
}

#[test]
fn pairs_equal_the_definition() {
    let place = Place::new();
    let corpus = Numbers::new(3).corpus(300);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let mut expected = Vec::new();
    for (b, similarity) in plain::similarities(&corpus).iter().enumerate() {
        let near = (0..b).filter(|&a| similarity[a] >= 0.7);
        expected.extend(near.map(|a| (a, b, similarity[a])));
    }
    expected.sort_by_key(|(a, b, _)| (*a, *b));
    let position = |id: &str| id[1..].parse::<usize>().unwrap();
    let found = |table: &str| -> Vec<(usize, usize, f64)> {
        let rows = crate::support::rows(table).into_iter();
        rows.map(|row| {
            (
                position(&row[0]),
                position(&row[1]),
                row[2].parse().unwrap(),
            )
        })
        .collect()
    };
    let line = "pairs in.jsonl --method join --threshold 0.7";
    assert_eq!(found(place.ok(&format!("{line} --all")).text()), expected);
    let is_first =
        |at: usize| corpus.iter().position(|(_, text)| *text == corpus[at].1) == Some(at);
    let is_copy = |a: usize, b: usize| corpus[a].1 == corpus[b].1;
    let all = expected.len();
    expected.retain(|&(a, b, _)| is_first(a) && (is_first(b) || is_copy(a, b)));
    place.ok(&format!("{line} -o linked.tsv"));
    assert_eq!(found(&place.read("linked.tsv")), expected);
    let linked = expected.len();
    expected.retain(|&(a, b, _)| !is_copy(a, b));
    place.ok(&format!("{line} --distinct -o distinct.tsv"));
    assert_eq!(found(&place.read("distinct.tsv")), expected);
    assert!(expected.len() < linked && linked < all, "{linked} of {all}");
}

/// Repeated ids are counted and reported once; `--strict` refuses them. Rows tell the documents apart.
#[test]
fn repeated_ids_do_not_stop_a_run() {
    let place = Place::new();
    let rows = [
        ("x", "one two three"),
        ("y", "four five"),
        ("x", "four five"),
        ("x", "Six"),
    ];
    place.write("in.jsonl", jsonl(rows));
    let told =
        "2 documents have the id of an earlier document, first 'x' in in.jsonl:1 and in.jsonl:3";
    for command in [
        "dedup in.jsonl -o out.jsonl --removed r.tsv",
        "pairs in.jsonl -o p.tsv",
    ] {
        let ran = place.ok(command);
        assert_eq!(ran.err.matches(told).count(), 1, "{command}: {}", ran.err);
        assert_eq!(place.summary(command)["repeated_ids"], 2);
        place.refused(
            &format!("{command} --strict"),
            &["the id 'x'", "is in in.jsonl:1 and in.jsonl:3", "--id-row"],
        );
    }
    assert_eq!(place.ids("out.jsonl"), ["x", "y", "x"]);
    assert_eq!(place.table("r.tsv")[0][..2], ["x", "y"]);
    assert_eq!(
        place.table("r.tsv")[0][6..],
        ["in.jsonl", "3", "in.jsonl", "2"]
    );
    assert_eq!(place.table("p.tsv").len(), 1);
    // Ids of known documents are counted together with the others.
    let summary = place.summary("dedup in.jsonl --against in.jsonl --dry-run");
    assert_eq!(summary["repeated_ids"], 4);
    place.ok("dedup in.jsonl --strict --id-row --dry-run");
    place.refused(
        "plant in.jsonl -o o.jsonl --labels l.tsv",
        &["'x'", "ids must differ"],
    );
    // Repeats are counted per row, not per pair of rows.
    let many: String = (0..60_000)
        .map(|at| row("same", &format!("w{at}")))
        .collect();
    place.write("many.jsonl", many);
    let summary = place.summary("dedup many.jsonl --dry-run");
    assert_eq!(summary["repeated_ids"], 59_999);
}

/// If an id must identify a document, a repeated one is refused with the places to choose from.
#[test]
fn repeated_id_selects_no_document() {
    let place = Place::new();
    let rows = [
        ("x", "one two three four"),
        ("y", "five six seven"),
        ("x", "One two three four"),
    ];
    place.write("in.jsonl", jsonl(rows));
    place.ok("dedup in.jsonl --removed r.tsv -o out.jsonl");
    let words = &[
        "2 documents have the id 'x'",
        "in.jsonl:1, in.jsonl:3",
        "as in in.jsonl:1",
    ];
    place.refused("explain r.tsv x in.jsonl", words);
    let said = place.ok("explain r.tsv in.jsonl:3 in.jsonl");
    assert!(
        said.text()
            .contains("x was removed: it is a near-duplicate of x, which was kept"),
        "{}",
        said.text()
    );
    assert!(said.text().contains("in.jsonl, row 3"), "{}", said.text());
    let said = place.ok("explain r.tsv in.jsonl:1 in.jsonl --json");
    let said: Value = serde_json::from_slice(&said.out).unwrap();
    assert_eq!(
        (&said["removed"], &said["document"]["row"]),
        (&false.into(), &1.into())
    );
    assert_eq!(said["duplicates"], serde_json::json!(["x"]));

    place.refused("compare in.jsonl#x in.jsonl#y", words);
    let said = place.ok("compare in.jsonl:3 in.jsonl#y");
    assert!(said.text().contains("in.jsonl, row 3"), "{}", said.text());
    place.refused("compare in.jsonl:9 in.jsonl#y", &["no document in row 9"]);

    place.write("l.csv", "a,b,label\nx,y,0\nin.jsonl:3,in.jsonl:1,1\n");
    let line = "eval l.csv --corpus in.jsonl --resamples 0";
    place.refused(
        line,
        &[
            "'x'",
            "name the document by source and row",
            "'in.jsonl:1' or 'in.jsonl:3'",
        ],
    );
    place.write(
        "l.csv",
        "a,b,label\nin.jsonl:1,y,0\nin.jsonl:3,in.jsonl:1,1\n",
    );
    place.ok(line);
}

/// A cluster is suspicious if many documents are removed that are similar and not equal; a component if it chains many.
#[test]
fn possible_forms_and_chained_clusters_are_reported() {
    let place = Place::new();
    let reasons = |rows: String, options: &str| {
        place.write("in.jsonl", rows);
        let said = place.summary(&format!("dedup in.jsonl -o out.jsonl {options}"));
        let found = said["suspicious"].as_array().unwrap().iter();
        let reason = |one: &Value| {
            one["reason"]
                .as_str()
                .unwrap()
                .split(':')
                .next()
                .map(str::to_owned)
        };
        found.map(|one| reason(one).unwrap()).collect::<Vec<_>>()
    };
    let alike = |similar: usize, equal: usize| {
        let text = words(0..30);
        let similar = (0..similar).map(|at| row(&format!("c{at}"), &format!("{text} end{at}")));
        let equal = (0..equal).map(|at| row(&format!("e{at}"), &format!("{text} end0")));
        similar.chain(equal).collect::<String>()
    };
    assert_eq!(reasons(alike(11, 0), ""), ["form"]);
    assert!(reasons(alike(10, 100), "").is_empty());
    assert!(reasons(alike(11, 0), "--forms learn").is_empty());
    place.write("in.jsonl", alike(12, 3));
    let told = place.ok("dedup in.jsonl -o out.jsonl").err;
    assert!(told.contains("  c0: form: 11 removed documents"), "{told}");
    assert!(told.contains("run again with --forms learn"), "{told}");

    // Neighbours share 8 of 10 features, the next ones 7 of 11.
    let chain = |length: usize| -> String {
        let text = |at: usize| row(&format!("d{at}"), &words(at..at + 10));
        (0..length).map(text).collect()
    };
    let options = "--clusters c.tsv --components";
    assert_eq!(reasons(chain(7), options), ["stretched"]);
    assert!(reasons(chain(6), options).is_empty());
    assert!(reasons(chain(7), "").is_empty());
}

#[test]
fn forecast_works_on_empty_and_bad_inputs() {
    let place = Place::new();
    place.write("empty.jsonl", "");
    let text = place
        .ok("dedup empty.jsonl --explain-plan")
        .text()
        .to_owned();
    assert!(text.contains("about 0."), "{text}");
    place.write(
        "bad.jsonl",
        "{\"id\":\"a\",\"text\":\"one two\"}\njunk\n{\"id\":\"b\",\"text\":7}\n",
    );
    let ran = place.ok("dedup bad.jsonl --explain-plan --json");
    let json: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(json["forecast"]["documents"], 1, "{json}");
    assert_eq!(json["forecast"]["bad_rows"], 2);
    let text = place.ok("dedup bad.jsonl --explain-plan").text().to_owned();
    assert!(
        text.contains("2 rows of the sample cannot be used"),
        "{text}"
    );
}
