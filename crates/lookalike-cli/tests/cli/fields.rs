//! Fields that no row has, JSON lists, bytes and numbers as values, and messages about unreadable inputs.

use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use crate::support::{Numbers, Place, corpus_jsonl, gzip, jsonl, read_parquet, row, rows, zstd};

const NEWS: &str = r#"{"id":"a","title":"one","body":"one two three four"}
{"id":"b","title":"two","body":"ONE two three four"}
{"id":"c","title":"three","body":"something else entirely here"}
"#;

/// If no row has the field, a command that reads rows writes nothing, in any format.
#[test]
fn field_without_values_changes_no_output() {
    let place = Place::new();
    place.write("news.jsonl", NEWS);
    place.write("news.jsonl.gz", gzip(NEWS.as_bytes()));
    place.write("old.jsonl", jsonl([("x", "known before")]));
    place.ok("index build lib old.jsonl");
    let files = ["precious.jsonl", "precious.tsv", "rejected"];
    for name in files {
        place.write(name, "precious");
    }
    let manifest = place.bytes("lib/manifest");
    let cases = [
        (
            "dedup news.jsonl -o precious.jsonl --text content",
            "content",
            "body",
        ),
        (
            "dedup news.jsonl.gz -o precious.jsonl --text content",
            "content",
            "body",
        ),
        (
            "dedup news.jsonl --text body --id key -o precious.jsonl",
            "key",
            "id",
        ),
        (
            "dedup news.jsonl --features words -o precious.jsonl",
            "words",
            "",
        ),
        (
            "dedup news.jsonl --text body --window 2d --time at -o precious.jsonl",
            "at",
            "",
        ),
        (
            "dedup news.jsonl --text body --within titles -o precious.jsonl",
            "titles",
            "title",
        ),
        (
            "dedup news.jsonl --text body --keep max:titles -o precious.jsonl",
            "titles",
            "title",
        ),
        (
            "dedup old.jsonl --against news.jsonl -o precious.jsonl",
            "text",
            "body",
        ),
        (
            "dedup news.jsonl --removed precious.tsv --rejected rejected",
            "text",
            "body",
        ),
        ("pairs news.jsonl -o precious.tsv", "text", "body"),
        ("pairs news.jsonl", "text", "body"),
        ("fingerprint news.jsonl -o precious.tsv", "text", "body"),
        ("fingerprint news.jsonl", "text", "body"),
        (
            "fingerprint news.jsonl --text body,content -o precious.tsv",
            "content",
            "",
        ),
        ("segment news.jsonl -o precious.tsv", "text", "body"),
        ("idf news.jsonl -o precious.tsv", "text", "body"),
        (
            "plant news.jsonl -o precious.jsonl --labels precious.tsv",
            "text",
            "body",
        ),
        ("index build lib news.jsonl --force", "text", "body"),
        ("index add lib news.jsonl", "text", "body"),
        ("search lib news.jsonl -o precious.tsv", "text", "body"),
        ("search lib news.jsonl --fingerprint code", "code", ""),
        (
            "eval news.jsonl --a title --b other --label id",
            "other",
            "",
        ),
    ];
    for (line, field, likely) in cases {
        let ran = place.refused(line, &[field, "`id`, `title`, `body`"]);
        if !likely.is_empty() {
            let said = format!("perhaps `{likely}` is meant");
            assert!(ran.err.contains(&said), "{line}: {}", ran.err);
        }
    }
    let ran = place.run_with("dedup - --text content -o precious.jsonl", NEWS.as_bytes());
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    for name in files {
        assert_eq!(place.read(name), "precious", "{name}");
    }
    assert_eq!(place.bytes("lib/manifest"), manifest);
}

/// It is enough that the last row has the field; the decision is not made by the first rows.
#[test]
fn field_of_the_last_row_alone_suffices() {
    let place = Place::new();
    let mut all = "{\"id\":\"x\",\"body\":\"no text at all in this row\"}\n".repeat(40_000);
    all.push_str(&row("last", "one two three"));
    place.write("in.jsonl", &all);
    let ran = place.run("dedup in.jsonl -o out.jsonl");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["last"]);
    // Without that row the run is refused, and its reason is not hidden by warnings.
    place.write("in.jsonl", all.split_once("{\"id\":\"last\"").unwrap().0);
    let ran = place.refused("dedup in.jsonl -o out.jsonl", &["40000 rows", "`text`"]);
    assert_eq!(ran.err.matches("in.jsonl:").count(), 3, "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["last"]);
}

#[test]
fn inputs_without_valid_rows_replace_no_output() {
    let place = Place::new();
    place.write("in.jsonl", "{\"id\":1,\"text\":null}\n{broken\n");
    place.write("out.jsonl", "precious");
    place.refused(
        "dedup in.jsonl -o out.jsonl",
        &["none of the 2 rows", "in.jsonl:1: the field `text` is null"],
    );
    assert_eq!(place.read("out.jsonl"), "precious");
}

#[test]
fn json_list_is_an_input() {
    let place = Place::new();
    let list = "[\n  {\n    \"id\": \"a\",\n    \"text\": \"one two three four\"\n  },\n  \
                {\"id\": \"b\", \"text\": \"One, two three four!\"},\n  {\"id\": \"c\", \"text\": \"else\"}\n]\n";
    place.write("in.json", list);
    place.write("in.json.zst", zstd(list.as_bytes()));
    let kept =
        "{\"id\": \"a\",\"text\": \"one two three four\"}\n{\"id\": \"c\", \"text\": \"else\"}\n";
    for name in ["in.json", "in.json.zst"] {
        place.ok(&format!("dedup {name} -o out.jsonl"));
        assert_eq!(place.read("out.jsonl"), kept, "{name}");
    }
    let ran = place.run_with("dedup - --format json -o -", list.as_bytes());
    assert_eq!((ran.code, ran.text()), (Some(0), kept));
    // An output with the extension `.json` is a JSON list too, annotated or not.
    for threads in [1, 2] {
        place.ok(&format!("dedup in.json -o out.json --threads {threads}"));
        let out: Value = serde_json::from_str(&place.read("out.json")).unwrap();
        let ids: Vec<_> = out
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["id"])
            .collect();
        assert_eq!(ids, ["a", "c"]);
    }
    place.ok("dedup out.json -o again.json --annotate");
    let out: Value = serde_json::from_str(&place.read("again.json")).unwrap();
    assert_eq!(out[1]["cluster"], "c");
    place.write("none.json", " [ ]\n");
    place.ok("dedup none.json -o none.out.json");
    let none: Value = serde_json::from_str(&place.read("none.out.json")).unwrap();
    assert_eq!(none, serde_json::json!([]));
    // A file of JSON lines is read as such, whatever its name.
    place.write("lines.json", kept);
    place.ok("dedup lines.json -o lines.out.json");
    assert_eq!(place.read("lines.out.json"), kept);

    place.write("bad.json", "[{\"id\":1,\"text\":\"good\"},7,{\"id\":2}]");
    let ran = place.run("dedup bad.json -o out.jsonl --rejected bad.out");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.err.contains("bad.json:2:") && ran.err.contains("bad.json:3:"),
        "{}",
        ran.err
    );
    assert_eq!(place.read("bad.out"), "7\n{\"id\":2}\n");
    place.write("cut.json", "[{\"id\":1,\"text\":\"good\"},{\"id\":2");
    place.refused(
        "dedup cut.json -o out.jsonl",
        &["cut.json", "before it is closed"],
    );
}

/// Writes a table with ids, times of which some are invalid, bytes and numbers.
fn write_table(place: &Place) {
    let times = vec!["2024-05-01", "yesterday", "2024-05-02", "2024-05-03"];
    let texts: Vec<Option<&[u8]>> = vec![
        Some(b"one two three"),
        Some(b"four five six"),
        Some(b"no \xFF text"),
        Some("one two three, 青溪".as_bytes()),
    ];
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(StringArray::from(vec!["a", "b", "c", "d"]))),
        ("text", Arc::new(BinaryArray::from(texts))),
        ("at", Arc::new(StringArray::from(times))),
        (
            "more",
            Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)])),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(place.path("x.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_bytes_are_text_if_utf8() {
    let place = Place::new();
    write_table(&place);
    let ran = place.run("dedup x.parquet -o out.parquet");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.err.contains(
            "x.parquet:3: the field `text` holds bytes that are not valid UTF-8 at byte 4"
        ),
        "{}",
        ran.err
    );
    assert_eq!(
        read_parquet(&place.path("out.parquet"), "id"),
        ["a", "b", "d"]
    );
    let ran = place.ok("segment x.parquet --lossy");
    assert_eq!(
        rows(ran.text())[2][1],
        "no \u{fffd} text".replace("\u{fffd} ", "")
    );
}

/// Unreadable rows, and rows that are refused after they were read, keep their number and all their columns.
#[test]
fn rejected_parquet_rows_keep_row_and_content() {
    let place = Place::new();
    write_table(&place);
    let line = "dedup x.parquet --window 2d --time at -o out.parquet --rejected bad.jsonl";
    let ran = place.run(line);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("x.parquet:2: the time"), "{}", ran.err);
    let bad: Vec<Value> = place
        .read("bad.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(bad.len(), 2);
    assert_eq!(
        (&bad[0]["file"], &bad[0]["row"]),
        (&"x.parquet".into(), &2.into())
    );
    let columns =
        serde_json::json!({"id": "b", "text": "four five six", "at": "yesterday", "more": 2});
    assert_eq!(bad[0]["columns"], columns);
    assert_eq!(
        (&bad[1]["row"], &bad[1]["columns"]["more"]),
        (&3.into(), &Value::Null)
    );
    assert_eq!(bad[1]["columns"]["text"], "6e6f20ff2074657874");

    let codes: ArrayRef = Arc::new(StringArray::from(vec!["12", "xyz", "13"]));
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("code", codes)]).unwrap();
    let file = std::fs::File::create(place.path("codes.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for line in [
        "index build lib codes.parquet --fingerprint code --rejected bad.jsonl",
        "search lib codes.parquet --fingerprint code --rejected bad.jsonl",
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(
            ran.err.contains("codes.parquet:2: 'xyz'"),
            "{line}: {}",
            ran.err
        );
        let bad: Value = serde_json::from_str(&place.read("bad.jsonl")).unwrap();
        assert_eq!(bad["row"], 2, "{line}");
        assert_eq!(
            bad["columns"],
            serde_json::json!({"id": "b", "code": "xyz"}),
            "{line}"
        );
    }
}

#[test]
fn equal_numbers_have_one_value_in_any_notation() {
    let place = Place::new();
    let rows = ["1", "1.0", "\"1\"", "1e0", "\"1.0\""]
        .into_iter()
        .enumerate();
    let rows = rows
        .map(|(at, part)| format!("{{\"id\":\"{at}\",\"part\":{part},\"text\":\"the same\"}}\n"));
    place.write("in.jsonl", rows.collect::<String>());
    place.ok("dedup in.jsonl --within part -o out.jsonl");
    // A string is taken by its characters.
    assert_eq!(place.ids("out.jsonl"), ["0", "4"]);
    place.write(
        "ids.jsonl",
        "{\"id\":7.0,\"text\":\"x\"}\n{\"id\":8,\"text\":\"x\"}\n{\"id\":2.50,\"text\":\"x\"}\n",
    );
    place.ok("dedup ids.jsonl --removed removed.tsv");
    let removed: Vec<_> = place
        .table("removed.tsv")
        .iter()
        .map(|row| row[..2].to_vec())
        .collect();
    assert_eq!(removed, [["8", "7"], ["2.5", "7"]]);
}

#[test]
fn mixed_numbers_and_strings_are_reported() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\":\"a\",\"v\":9,\"text\":\"x\"}\n{\"id\":\"b\",\"v\":\"high\",\"text\":\"x\"}\n",
    );
    let ran = place.ok("dedup in.jsonl --keep max:v -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["b"]);
    let said = "1 have a number and 1 a string in the field of --keep";
    let words = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(said), "{words}");
    let summary = place.summary("dedup in.jsonl --keep max:v --dry-run");
    assert_eq!(
        summary["mixed_values"],
        serde_json::json!({"numbers": 1, "strings": 1})
    );
    let summary = place.summary("dedup in.jsonl --keep max:id --dry-run");
    assert!(summary.get("mixed_values").is_none());
}

#[test]
fn unsupported_formats_are_named() {
    let place = Place::new();
    for (name, bytes, said) in [
        ("a.docx", &b"PK\x03\x04"[..], "word processor document"),
        ("a.jsonl.lz4", b"\x04\x22\x4D\x18", "compressed in a way"),
        ("a.arrow", b"ARROW1\0\0", "as Arrow: it has no footer"),
        ("b.jsonl", b"ARROW1\0\0", "an Arrow file"),
        ("renamed.txt", b"PK\x03\x04 and so on", ".docx"),
        (
            "wide.jsonl",
            b"{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0a\0\"\0}\0",
            "UTF-16",
        ),
    ] {
        place.write(name, bytes);
        place.refused(&format!("dedup {name} --dry-run"), &[name, said]);
    }
    let (big5, _, lost) = encoding_rs::BIG5.encode("後來他們在髮廊裡頭談了很久\n");
    assert!(!lost);
    place.write("big5.txt", &big5);
    place.refused("dedup big5.txt -o out.txt", &["--encoding big5"]);
}

/// `--format` is the format of the input in every command that reads rows, and all errors have the same
/// prefix.
#[test]
fn format_option_and_error_prefix_are_uniform() {
    let place = Place::new();
    place.write(
        "data",
        jsonl([("a", "one two three"), ("b", "four five six")]),
    );
    for line in [
        "dedup data -o out.jsonl",
        "pairs data",
        "fingerprint data",
        "segment data",
        "idf data -o idf.tsv",
        "index build lib data",
        "search lib data",
    ] {
        place.ok(&format!("{line} --format jsonl"));
        let unnamed = line.replace("build lib", "build none");
        let ran = place.refused(&unnamed, &["--format"]);
        assert!(ran.err.starts_with("lookalike: "), "{}", ran.err);
        assert!(!place.ok("reference").text().contains("--input-format"));
    }
    for line in ["dedup", "dedup data --nothing", "explode"] {
        let ran = place.refused(line, &[]);
        assert!(ran.err.starts_with("lookalike: "), "{line}: {}", ran.err);
    }
    place.ok("fingerprint data --format jsonl --digits binary");
}

#[test]
fn replaced_output_is_reported() {
    let place = Place::new();
    place.write("in.jsonl", row("a", "one two three"));
    let ran = place.ok("dedup in.jsonl -o out.jsonl");
    assert!(!ran.err.contains("replaced"), "{}", ran.err);
    let ran = place.ok("dedup in.jsonl -o out.jsonl");
    assert!(ran.err.contains("replaced out.jsonl"), "{}", ran.err);
    assert_eq!(place.ok("dedup in.jsonl -o out.jsonl --quiet").err, "");
    let ran = place.ok("dedup in.jsonl -o out.jsonl --dry-run");
    assert!(!ran.err.contains("replaced"), "{}", ran.err);
}

#[test]
fn every_command_reports_replaced_outputs() {
    let place = Place::new();
    let corpus = Numbers::new(4).corpus(60);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.write(
        "bad.jsonl",
        format!("{}no row\n", row("a", "one two three")),
    );
    for (line, outputs) in [
        (
            "plant in.jsonl -o planted.jsonl --labels labels.tsv --documents 20",
            &["planted.jsonl", "labels.tsv"][..],
        ),
        (
            "eval labels.tsv --corpus planted.jsonl --csv points.csv --svg curve.svg",
            &["points.csv", "curve.svg"],
        ),
        (
            "tune labels.tsv --corpus planted.jsonl -o tuned.toml --resamples 10",
            &["tuned.toml"],
        ),
        ("compare --literal one two --html page.html", &["page.html"]),
        (
            "index build lib bad.jsonl --rejected rejected.jsonl",
            &["rejected.jsonl"],
        ),
    ] {
        let first = place.run(line);
        assert!(!first.err.contains("replaced"), "{line}: {}", first.err);
        let again = place.run(&line.replace("build lib", "build other"));
        for output in outputs {
            let told = format!("replaced {output},");
            assert!(again.err.contains(&told), "{line}: {}", again.err);
        }
    }
}

/// Neither a failure while a directory is filled nor an interrupt leaves a directory behind.
#[test]
fn failed_runs_leave_no_empty_directory() {
    let place = Place::new();
    place.write("in/deep/a.jsonl", row("a", "one two three"));
    place.write(
        "in/b.jsonl",
        "{\"id\":\"b\",\"text\":\"four five six\",\"cluster\":1}\n",
    );
    place.refused("dedup in -o out/ --annotate", &["cluster"]);
    assert_eq!(place.names(), ["in"]);
    place.ok("dedup in -o out/");
    assert!(place.has("out/deep/a.jsonl") && place.has("out/b.jsonl"));
}

#[test]
fn lack_of_memory_is_reported() {
    let place = Place::new();
    let script = format!(
        "ulimit -v 700000; head -c 1200000000 /dev/zero | tr '\\0' x | \
         '{}' dedup - --max-row 4G -o out.jsonl --threads 1",
        env!("CARGO_BIN_EXE_lookalike")
    );
    let ran = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("lookalike: out of memory"), "{said}");
    assert!(place.names().is_empty());
}

/// On a terminal, which the program `script` provides if it is installed.
#[test]
fn interrupt_clears_the_progress_bar() {
    let place = Place::new();
    // Ends the run as soon as its bar is visible. SIGTERM is used, because an interrupt may be ignored where
    // the tests run.
    let script = format!(
        "(for i in $(seq 600); do grep -q reading shown && break; sleep .05; done; kill -TERM $$) &
         exec '{}' dedup - -o out.jsonl",
        env!("CARGO_BIN_EXE_lookalike")
    );
    place.write("run.sh", script);
    let ran = Command::new("script")
        .args([
            "-qfec",
            "mkfifo pipe; (sleep 40 > pipe) & sh run.sh < pipe",
            "shown",
        ])
        .env("TERM", "xterm")
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .output();
    let Ok(ran) = ran else {
        eprintln!("skipped: there is no program `script`");
        return;
    };
    let shown = String::from_utf8_lossy(&ran.stdout);
    assert!(!place.has("out.jsonl"));
    assert!(shown.contains("reading"), "{shown:?}");
    let last = shown.rsplit(['\r', '\n']).find(|line| !line.is_empty());
    assert!(!last.unwrap_or_default().contains("reading"), "{shown:?}");
}

/// Conversations with the same words, of one message and of several.
const CHATS: &str = r#"{"meta":{"key":"a","at":1},"messages":[{"role":"user","content":"how do tides work"},{"role":"bot","content":"the moon pulls the sea"}]}
{"meta":{"key":"b","at":2},"messages":[{"role":"user","content":"how do tides work"},{"role":"bot","content":"the moon pulls the sea"}]}
{"meta":{"key":"c","at":3},"messages":[{"role":"user","content":"something else entirely"},{"role":"bot"}]}
{"meta":{"key":"d","at":4},"messages":[]}
"#;

/// Returns the chats as a file with a column of lists of structs.
fn write_chats(path: &std::path::Path) {
    use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
    use arrow_schema::{DataType, Field};
    let names = ["role", "content"];
    let fields = names.map(|name| Field::new(name, DataType::Utf8, true));
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields.to_vec(), 4));
    let (mut keys, mut times) = (Vec::new(), Vec::new());
    for line in CHATS.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        keys.push(row["meta"]["key"].as_str().unwrap().to_owned());
        times.push(row["meta"]["at"].as_i64().unwrap());
        for message in row["messages"].as_array().unwrap() {
            for (at, name) in names.into_iter().enumerate() {
                let values = lists.values().field_builder::<StringBuilder>(at).unwrap();
                values.append_option(message[name].as_str());
            }
            lists.values().append(true);
        }
        lists.append(true);
    }
    let meta = arrow_array::StructArray::from(vec![
        (
            Arc::new(Field::new("key", DataType::Utf8, true)),
            Arc::new(StringArray::from(keys)) as ArrayRef,
        ),
        (
            Arc::new(Field::new("at", DataType::Int64, true)),
            Arc::new(Int64Array::from(times)) as ArrayRef,
        ),
    ]);
    let batch = RecordBatch::try_from_iter([
        ("meta", Arc::new(meta) as ArrayRef),
        ("messages", Arc::new(lists.finish()) as ArrayRef),
    ])
    .unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn fields_of_objects_in_lists_are_texts() {
    let place = Place::new();
    place.write("in.jsonl", CHATS);
    write_chats(&place.path("in.parquet"));
    // The same documents with the text in one field.
    place.write(
        "plain.jsonl",
        jsonl([
            ("a", "how do tides work\nthe moon pulls the sea"),
            ("b", "how do tides work\nthe moon pulls the sea"),
            ("c", "something else entirely"),
        ]),
    );
    let named = "--text messages.content --id meta.key";
    for command in ["fingerprint", "segment", "pairs"] {
        place.ok(&format!("{command} plain.jsonl -o plain.tsv"));
        let expected = place.read("plain.tsv").replace("plain.jsonl", "in");
        for input in ["in.jsonl", "in.parquet"] {
            let ran = place.run(&format!("{command} {input} {named} -o out.tsv"));
            assert_eq!(ran.code, Some(1), "{command} {input}: {}", ran.err);
            assert_eq!(
                place.read("out.tsv").replace(input, "in"),
                expected,
                "{command} {input}"
            );
        }
    }
    for input in ["in.jsonl", "in.parquet"] {
        let extension = input.split_once('.').unwrap().1;
        let line = format!(
            "dedup {input} {named} --time meta.at --window 1s --removed r.tsv -o out.{extension}"
        );
        let ran = place.run(&line);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(
            ran.err
                .contains(&format!("{input}:4: the field `messages.content`")),
            "{}",
            ran.err
        );
        assert_eq!(place.table("r.tsv")[0][..2], ["b", "a"], "{input}");
        // Within the roles, which are equal; within the keys, no two documents meet.
        for (within, removed) in [("messages.role", 1), ("meta.key", 0)] {
            let done = place.summary(&format!(
                "dedup {input} {named} --within {within} --dry-run"
            ));
            assert_eq!(done["removed"], removed, "{input} {within}");
        }
        let two = place.summary(&format!(
            "dedup {input} --text messages.role,messages.content --dry-run"
        ));
        assert_eq!(two["removed"], 1, "{input}");
    }
    let ran = place.refused(
        "dedup in.jsonl -o out.jsonl",
        &["`messages.content`", "`meta.key`"],
    );
    assert!(
        ran.err.contains("perhaps `messages.content` is meant"),
        "{}",
        ran.err
    );
}

/// A field whose own name has a dot comes before a path, and a list of strings is a text.
#[test]
fn names_with_dots_and_lists_of_strings_are_texts() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":1,"a.b":"one two three","a":[{"b":"other words"}]}
{"id":2,"a":[{"b":"other words"}],"a.b":"one two three"}
{"id":3,"a":{"b":["one two","three"]}}
"#,
    );
    let ran = place.ok("pairs in.jsonl --text a.b --threshold 1");
    assert_eq!(rows(ran.text()).len(), 2, "{}", ran.text());
    let refused = place.run("dedup in.jsonl --text a.b,id -o out.jsonl");
    assert!(
        refused.err.contains("`id` is a number, not a string"),
        "{}",
        refused.err
    );
}

/// A row whose lists are nested without end is a bad row; of lists in a list, all texts are joined.
#[test]
fn lists_nested_deeply_are_bad_rows() {
    let place = Place::new();
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let texts = r#"[[{"b":"one two"},[{"b":"three four"}]],{"b":"five"}]"#;
    place.write(
        "in.jsonl",
        format!("{{\"id\":\"1\",\"a\":{deep}}}\n{{\"id\":\"2\",\"a\":{texts}}}\n"),
    );
    let ran = place.run("dedup in.jsonl --text a.b -o out.jsonl");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("nested more than 128 deep"), "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["2"]);
    let tokens = place.run("segment in.jsonl --text a.b --recipe words-1");
    assert!(
        tokens.text().contains("2\tone two three four five"),
        "{}",
        tokens.text()
    );
}
