//! `lookalike head`.

use crate::support::{Place, jsonl, write_parquet};

#[test]
fn fields_and_first_rows_are_shown() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        concat!(
            r#"{"id": 7, "text": "Old Captain!", "meta": {"lang": "en", "tags": ["a"]}, "note": null}"#,
            "\n",
            r#"{"id": "x", "text": "a", "more": true}"#,
            "\n{not json\n"
        ),
    );
    let shown = place.ok("head in.jsonl").text().to_owned();
    for line in [
        "in.jsonl: JSONL,",
        "Fields of the first 3 rows",
        "id           2  number|string  7",
        "meta.lang     1  string    en",
        "meta.tags     1  list      [\"a\"]",
        "note          0",
        "in.jsonl:1, id 7",
        "  text      Old Captain!, 12 characters",
        "  tokens    old captain, 2",
        "in.jsonl:3 cannot be used",
    ] {
        assert!(
            shown.replace("  ", " ").contains(&line.replace("  ", " ")) || shown.contains(line),
            "{line}\n{shown}"
        );
    }
    let json: serde_json::Value =
        serde_json::from_slice(&place.ok("head in.jsonl --json --rows 1").out).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1);
    assert_eq!(
        json["rows"][0]["tokens"],
        serde_json::json!(["old", "captain"])
    );
    assert_eq!(json["looked_at"], 3);
}

#[test]
fn a_missing_text_field_shows_those_that_exist() {
    let place = Place::new();
    place.write("in.jsonl", "{\"title\": \"a b c d\", \"n\": 1}\n");
    let shown = place.ok("head in.jsonl").text().to_owned();
    assert!(
        shown.contains("title") && shown.contains("--text FIELD"),
        "{shown}"
    );
    let shown = place.ok("head in.jsonl --text title").text().to_owned();
    assert!(shown.contains("a b c d, 7 characters"), "{shown}");
}

/// The first values of the fields are read in the stated encoding, too.
#[test]
fn fields_are_shown_in_the_stated_encoding() {
    let place = Place::new();
    let encoded = |text: &str| encoding_rs::GBK.encode(text).0.into_owned();
    place.write("in.csv", encoded("编号,正文\n1,消息在此\n"));
    place.write(
        "in.jsonl",
        encoded("{\"编号\": 1, \"正文\": \"消息在此\"}\n"),
    );
    for input in ["in.csv", "in.jsonl"] {
        let line = format!("head {input} --encoding gbk --id 编号 --text 正文 --json");
        let head: serde_json::Value = serde_json::from_slice(&place.ok(&line).out).unwrap();
        let fields = head["fields"].as_array().unwrap();
        let text = fields.iter().find(|field| field["name"] == "正文");
        assert_eq!(text.unwrap()["example"], "消息在此", "{input}");
    }
}

#[test]
fn every_format_has_a_head() {
    let place = Place::new();
    place.write("in.csv", "id,text,more\n1,\"one, two\",x\n");
    place.write("in.txt", "first line\nsecond line\n");
    place.write("a.jsonl", jsonl([("a", "one two three")]));
    write_parquet(
        &place.path("in.parquet"),
        &[
            ("id", vec!["p"]),
            ("text", vec!["one two"]),
            ("more", vec!["z"]),
        ],
    );
    for (line, shown) in [
        ("head in.csv", "one, two"),
        ("head in.parquet", "more"),
        ("head in.txt --rows 2", "in.txt:2, id 2"),
        ("head a.jsonl in.csv", "the first of 2 inputs"),
        ("head in.txt --rows 0", "text, a document in each line"),
    ] {
        let text = place.ok(line).text().to_owned();
        assert!(text.contains(shown), "{line}\n{text}");
    }
    place.refused("head missing.jsonl", &["missing.jsonl"]);
}
