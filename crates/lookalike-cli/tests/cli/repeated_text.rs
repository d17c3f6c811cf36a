//! Text that stands in an earlier document: `lookalike dedup --passages`.

use serde_json::{Value, json};

use crate::support::{Numbers, Place, jsonl, read_parquet, write_parquet};

/// A notice of 14 words that other documents repeat.
const NOTICE: &str =
    "All rights reserved. No part of this text may be copied without our permission.";

fn corpus() -> Vec<(String, String)> {
    let mut numbers = Numbers::new(5);
    let mut texts = Vec::new();
    for at in 0..300 {
        let own = |numbers: &mut Numbers| {
            let words = (0..15).map(|_| format!("w{}", numbers.below(1 << 40)));
            words.collect::<Vec<_>>().join(" ")
        };
        let copied: &str = match at {
            0 => "",
            _ => texts[numbers.below(at)],
        };
        let mut sentences: Vec<&str> = copied.split_inclusive(['.', '。', '\n']).collect();
        sentences.truncate(numbers.below(4));
        let (before, after) = (own(&mut numbers), own(&mut numbers));
        let notice = if at.is_multiple_of(3) { NOTICE } else { "" };
        let stop = [". ", ".\n", "。"][numbers.below(3)];
        let text: String = format!(
            "{before}{stop}{}{stop}🏝️ {after}.\r\n{notice}",
            sentences.concat()
        );
        texts.push(Box::leak(text.into_boxed_str()) as &str);
    }
    let named = texts.iter().enumerate();
    named
        .map(|(at, text)| (format!("d{at}"), (*text).to_owned()))
        .collect()
}

fn json_rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Puts the passages of a table of cuts back into a text.
fn put_back<'a>(rest: &str, cuts: impl Iterator<Item = &'a Value>) -> String {
    let mut text: Vec<char> = rest.chars().collect();
    for cut in cuts {
        let start = cut["start"].as_u64().unwrap() as usize;
        let passage = cut["text"].as_str().unwrap().chars();
        text.splice(start..start, passage);
    }
    text.into_iter().collect()
}

#[test]
fn every_cut_can_be_put_back() {
    let place = Place::new();
    let corpus = corpus();
    place.write(
        "in.jsonl",
        jsonl(corpus.iter().map(|(id, text)| (&**id, &**text))),
    );
    let command = "dedup in.jsonl --method exact --passages remove --min-length 10";
    place.ok(&format!(
        "{command} -o out.jsonl --cuts cuts.jsonl --threads 2"
    ));
    let cuts = json_rows(&place.read("cuts.jsonl"));
    let kept = json_rows(&place.read("out.jsonl"));
    assert!(cuts.len() > 250, "{}", cuts.len());
    let text_of = |id: &Value| &corpus.iter().find(|it| *id == it.0).unwrap().1;
    let part = |text: &str, cut: &Value, keys: [&str; 2]| -> String {
        let [start, end] = keys.map(|key| cut[key].as_u64().unwrap() as usize);
        text.chars().skip(start).take(end - start).collect()
    };
    for row in &kept {
        let own = cuts.iter().filter(|cut| cut["id"] == row["id"]);
        assert_eq!(
            put_back(row["text"].as_str().unwrap(), own),
            *text_of(&row["id"])
        );
    }
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|it: char| !it.is_alphanumeric());
        words
            .filter(|line| !line.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    for cut in &cuts {
        let own = part(text_of(&cut["id"]), cut, ["start", "end"]);
        let first = part(text_of(&cut["first"]), cut, ["first_start", "first_end"]);
        assert_eq!(own, cut["text"].as_str().unwrap());
        assert_eq!(words(&own), words(&first));
        assert_eq!(words(&own).len() as u64, cut["length"].as_u64().unwrap());
        // The first occurrence stays where it is.
        let stays = kept.iter().find(|row| row["id"] == cut["first"]).unwrap();
        assert!(
            words(stays["text"].as_str().unwrap())
                .join(" ")
                .contains(&words(&first).join(" "))
        );
        let number = |key: &str| cut[key].as_u64().unwrap();
        assert!(number("first_row") < number("row"));
        assert_eq!(cut["source"], "in.jsonl");
    }
    // Nothing is left to cut.
    let again =
        place.summary("dedup out.jsonl --method exact --passages remove --min-length 10 --dry-run");
    assert_eq!(again["passages"]["passages"], 0, "{again}");
    place.ok(&format!(
        "{command} -o single.jsonl --cuts single-cuts.jsonl --threads 1"
    ));
    assert_eq!(place.bytes("out.jsonl"), place.bytes("single.jsonl"));
    assert_eq!(place.bytes("cuts.jsonl"), place.bytes("single-cuts.jsonl"));
}

#[test]
fn marked_passages_are_those_that_would_be_removed() {
    let place = Place::new();
    let text = |own: &str| format!("{own}\n{NOTICE}");
    let (a, b) = (
        text("The first one."),
        text("船。The second, which is longer."),
    );
    place.write(
        "in.jsonl",
        jsonl([("a", &*a), ("b", &*b), ("c", "Something else.")]),
    );
    place.ok("dedup in.jsonl --passages mark --min-length 8 -o out.jsonl --cuts cuts.jsonl");
    let rows = json_rows(&place.read("out.jsonl"));
    let start = b.chars().count() - NOTICE.len();
    let first = a.len() - NOTICE.len();
    assert_eq!(
        rows[1],
        json!({"id": "b", "text": b, "passages": [{
            "start": start, "end": start + NOTICE.len(), "first": "a", "first_start": first,
            // The full stop is no word.
            "first_end": a.len() - 1,
        }]})
    );
    assert_eq!(rows[0]["passages"], json!([]));
    assert_eq!(rows[2]["passages"], json!([]));
    place.ok("dedup in.jsonl --passages remove --min-length 8 -o removed.jsonl --cuts same.jsonl");
    assert_eq!(place.bytes("cuts.jsonl"), place.bytes("same.jsonl"));
    assert_eq!(
        json_rows(&place.read("removed.jsonl"))[1]["text"],
        "船。The second, which is longer.\n"
    );
}

#[test]
fn every_format_of_rows_is_cut() {
    let place = Place::new();
    let texts = [
        format!("One, \"with\" signs. {NOTICE}"),
        format!("Two, \"with\" signs. {NOTICE}"),
    ];
    let rest = "Two, \"with\" signs. ";
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    place.write(
        "in.csv",
        format!("n,text\n1,{}\n2,{}\n", quoted(&texts[0]), quoted(&texts[1])),
    );
    place.write("in.txt", format!("{}\n{}\n", texts[0], texts[1]));
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.txt", &texts[0]);
    place.write("in/b.txt", format!("\u{feff}{}", texts[1]));
    write_parquet(
        &place.path("in.parquet"),
        &[
            ("text", texts.iter().map(|text| &**text).collect()),
            ("n", vec!["1", "2"]),
        ],
    );
    let remove = |inputs: &str, output: &str| {
        place.ok(&format!(
            "dedup {inputs} --passages remove --min-length 8 --threshold 0.9 -o {output}"
        ))
    };
    remove("in.csv", "out.csv");
    let expected = format!("n,text\n1,{}\n2,{}\n", quoted(&texts[0]), quoted(rest));
    assert_eq!(place.read("out.csv"), expected);
    remove("in.txt", "out.txt");
    assert_eq!(place.read("out.txt"), format!("{}\n{rest}\n", texts[0]));
    remove("in --document-per-file", "out/");
    assert_eq!(place.read("out/a.txt"), texts[0]);
    assert_eq!(place.read("out/b.txt"), format!("\u{feff}{rest}"));
    remove("in.parquet", "out.parquet");
    assert_eq!(
        read_parquet(&place.path("out.parquet"), "text"),
        [&*texts[0], rest]
    );
    assert_eq!(read_parquet(&place.path("out.parquet"), "n"), ["1", "2"]);
    place.ok("dedup in.parquet --passages mark --min-length 8 --threshold 0.9 -o marked.parquet");
    let marked = read_parquet(&place.path("marked.parquet"), "passages");
    assert_eq!(marked[0], "[]");
    assert!(
        marked[1].starts_with("[{\"end\":") || marked[1].starts_with("[{\"start\":"),
        "{}",
        marked[1]
    );
    place.refused(
        "dedup in.txt --passages mark -o out.txt",
        &["in.txt", "plain text", "no fields"],
    );
}

#[test]
fn references_and_parts_decide_what_is_earlier() {
    let place = Place::new();
    let row = |id: &str, site: &str| json!({"id": id, "site": site, "text": format!("{id} alone. {NOTICE}")});
    let rows = [row("a", "x"), row("b", "y"), row("c", "x")];
    place.write("in.jsonl", rows.map(|row| format!("{row}\n")).concat());
    let cut_ids = |options: &str| {
        let found = place.summary(&format!(
            "dedup in.jsonl --passages remove --min-length 8 --method exact -o out.jsonl --cuts cuts.tsv {options}"
        ));
        let cuts = place.table("cuts.tsv");
        assert_eq!(found["passages"]["passages"], cuts.len());
        cuts.iter()
            .map(|cut| format!("{} from {}", cut[0], cut[1]))
            .collect::<Vec<_>>()
    };
    assert_eq!(cut_ids(""), ["b from a", "c from a"]);
    assert_eq!(cut_ids("--within site"), ["c from a"]);
    place.write("known.jsonl", jsonl([("k", NOTICE)]));
    let found = cut_ids("--against known.jsonl");
    assert_eq!(found, ["a from k", "b from k", "c from k"]);
    assert_eq!(place.table("cuts.tsv")[0][9], "known.jsonl");
    // A removed document is nobody's first occurrence.
    place.write(
        "twins.jsonl",
        jsonl([("p", "Short."), ("q", "short"), ("r", "Short.")]),
    );
    let done = place.summary("dedup twins.jsonl --passages remove --min-length 2 --dry-run");
    assert_eq!(
        (&done["removed"], &done["passages"]["passages"]),
        (&json!(2), &json!(0))
    );
}

#[test]
fn summary_says_what_became_of_the_texts() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([
            ("a", &*format!("Mine. {NOTICE}")),
            ("b", NOTICE),
            ("c", NOTICE),
        ]),
    );
    let command = "dedup in.jsonl --passages remove --min-length 8 --threshold 1 -o out.jsonl";
    let shown = place.ok(command);
    assert!(
        shown
            .err
            .contains("1 removed in 1 kept document, with 14 words or characters in all"),
        "{}",
        shown.err
    );
    let empty = "nothing is left of 1 kept document";
    assert!(shown.err.contains(empty), "{}", shown.err);
    let summary = place.summary(command);
    assert_eq!(
        summary["passages"],
        json!({"action": "remove", "min_words": 8, "documents": 1, "passages": 1, "tokens": 14, "emptied": 1})
    );
    assert_eq!(
        json_rows(&place.read("out.jsonl"))[1],
        json!({"id": "b", "text": ""})
    );
}

#[test]
fn contradictions_are_refused() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("a", "One."), ("b", "Two.")]));
    place.refused("dedup in.jsonl -o o.jsonl --min-length 8", &["--passages"]);
    place.refused("dedup in.jsonl -o o.jsonl --cuts c.tsv", &["--passages"]);
    place.refused(
        "dedup in.jsonl -o o.jsonl --passages remove --annotate",
        &["--annotate"],
    );
    place.refused(
        "dedup in.jsonl -o o.jsonl --passages remove --text id,text",
        &["`id`, `text`", "name one"],
    );
    place.refused(
        "dedup in.jsonl -o o.jsonl --passages remove --min-length 1",
        &["--min-length"],
    );
    place.refused(
        "dedup in.jsonl -o o.jsonl --passages remove --cuts in.jsonl",
        &["in.jsonl"],
    );
    assert!(!place.has("o.jsonl"));
}
