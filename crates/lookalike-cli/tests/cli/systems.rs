//! Uses on every system: names and ends of lines as other systems have them, in each command that a teacher or a
//! first run needs. `tools/systems/test` runs these tests on Windows, under Wine and on macOS.

use std::path::Path;

use lookalike_system::{NAMES_IGNORE_CASE, ShellSyntax};
use serde_json::{Value, json};

use crate::reporting::read_report;
use crate::service::{Service, document};
use crate::support::{Place, jsonl, rows};

/// A sentence, and the same with one word replaced.
const SENTENCE: &str = "the ferry to the island leaves at seven in the morning and nobody misses it because the next one leaves \
                        at noon and the captain waits for no one";

fn near(text: &str) -> String {
    text.replace("captain", "skipper")
}

/// A path with spaces, Chinese and accented letters, far beyond 260 characters.
fn long_name() -> String {
    let part = "Aufsätze der 作文 class";
    let directories = vec![part; 16].join("/");
    format!("{directories}/élève 一.jsonl")
}

/// Returns a path as an argument of [`Place::run`].
fn argument(path: &Path) -> String {
    path.to_str().unwrap().replace(' ', "%20")
}

#[test]
fn lines_of_windows_keep_their_ends() {
    let place = Place::new();
    let rows = jsonl([
        ("a", SENTENCE),
        ("b", &near(SENTENCE)),
        ("c", "something else"),
    ]);
    place.write("in.jsonl", rows.replace('\n', "\r\n"));
    place.ok("dedup in.jsonl -o out.jsonl --removed removed.tsv");
    let kept = jsonl([("a", SENTENCE), ("c", "something else")]);
    assert_eq!(place.read("out.jsonl"), kept.replace('\n', "\r\n"));
    assert_eq!(place.table("removed.tsv")[0][..2], ["b", "a"]);
    place.write(
        "in.csv",
        format!("id,text\r\na,{SENTENCE}\r\nb,{SENTENCE}\r\n"),
    );
    place.ok("dedup in.csv -o out.csv");
    assert_eq!(
        place.read("out.csv"),
        format!("id,text\r\na,{SENTENCE}\r\n")
    );
}

#[test]
fn names_are_long_and_have_any_letters() {
    let place = Place::new();
    let name = long_name();
    assert!(name.chars().count() > 350);
    place.write(&name, jsonl([("a", SENTENCE), ("b", &near(SENTENCE))]));
    let input = argument(&place.path(&name));
    let output = place.path(&name).with_file_name("übrig.jsonl");
    place.ok(&format!("dedup {input} -o {}", argument(&output)));
    let kept = std::fs::read_to_string(&output).unwrap();
    assert_eq!(kept, jsonl([("a", SENTENCE)]));
    place.ok(&format!("pairs {input} -o pairs.tsv"));
    assert_eq!(place.table("pairs.tsv").len(), 1);
    // A relative path, too.
    place.ok(&format!(
        "dedup {} -o again.jsonl",
        name.replace(' ', "%20")
    ));
    assert_eq!(place.read("again.jsonl"), kept);
}

#[test]
fn patterns_are_expanded_by_the_program() {
    let place = Place::new();
    for name in ["one.txt", "two.txt", "three.md"] {
        place.write(name, format!("{SENTENCE}\n"));
    }
    place.ok("pairs *.txt -o pairs.tsv");
    assert_eq!(place.table("pairs.tsv").len(), 1);
    place.ok("dedup *.txt -o out.text");
    assert_eq!(place.read("out.text"), format!("{SENTENCE}\n"));
    place.refused("dedup *.csv -o out.csv", &["no file matches `*.csv`"]);
    // Hidden files, and those by which a word processor locks a document.
    for name in [".four.txt", "~$one.txt"] {
        place.write(name, format!("{SENTENCE}\n"));
    }
    place.ok("pairs *.txt -o visible.tsv");
    assert_eq!(place.table("visible.tsv").len(), 1);
    // The names of sources are the same on every system.
    for name in ["class/one.txt", "class/two.txt"] {
        place.write(name, format!("{SENTENCE}\n"));
    }
    place.ok("pairs c*/*.txt -o nested.tsv");
    let pair = &place.table("nested.tsv")[0];
    assert_eq!([&*pair[3], &*pair[5]], ["class/one.txt", "class/two.txt"]);
}

#[test]
fn case_of_a_pattern_is_that_of_the_shells() {
    let place = Place::new();
    for name in ["one.txt", "TWO.TXT"] {
        place.write(name, format!("{SENTENCE}\n"));
    }
    let ran = place.ok("dedup *.txt -o out.txt --json");
    let summary: Value = serde_json::from_slice(&ran.out).unwrap();
    let documents = if NAMES_IGNORE_CASE { 2 } else { 1 };
    assert_eq!(summary["documents"], documents, "{summary}");
}

#[test]
fn path_that_took_a_quotation_mark_is_explained() {
    let place = Place::new();
    // A shell of Windows passes on `"my essays\" -o out.tsv` as one word.
    let line = "pairs my%20essays\"%20-o%20out.tsv";
    if ShellSyntax::CURRENT == ShellSyntax::Windows {
        place.refused(line, &["leave the backslash out"]);
    } else {
        place.refused(line, &["cannot open my essays\" -o out.tsv"]);
    }
}

#[test]
fn folder_of_essays_shows_who_shares_what() {
    let place = Place::new();
    place.write(
        "essays/甲.txt",
        format!("My own words come first. {SENTENCE}. And an end."),
    );
    place.write(
        "essays/class b/乙.txt",
        format!("Other thoughts.\r\n{SENTENCE}\r\n"),
    );
    place.write(
        "essays/丙.md",
        "# Title\n\nNothing of this is in another essay of the class.\n",
    );
    // The files that Windows keeps in folders are nobody's documents.
    for name in ["desktop.ini", "Thumbs.db", "~$essay.docx"] {
        place.write(&format!("essays/{name}"), "[.ShellClassInfo]\r\n");
    }
    let ran = place.ok("passages essays -o shared.jsonl --report shared.html");
    assert!(!ran.err.contains("skipped"), "{}", ran.err);
    let rows: Vec<Value> = place
        .read("shared.jsonl")
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert!(!rows.is_empty());
    for row in &rows {
        let names = row.to_string();
        assert!(
            names.contains("essays/甲.txt") && names.contains("essays/class b/乙.txt"),
            "{names}"
        );
    }
    assert_eq!(read_report(&place, "shared.html")["kind"], "passages");
    let compared = place.ok("compare essays/甲.txt essays/class%20b/乙.txt --json");
    let compared: Value = serde_json::from_slice(&compared.out).unwrap();
    assert!(compared.is_object(), "{compared}");
}

#[test]
fn removal_is_explained_and_a_library_searched() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("a", SENTENCE), ("b", &near(SENTENCE))]));
    place.ok("dedup in.jsonl -o out.jsonl --removed removed.tsv");
    let explained = place.ok("explain removed.tsv b in.jsonl");
    assert!(explained.text().contains("[-captain-]{+skipper+}"));
    place.ok("index build library in.jsonl --distance 8");
    let found = place.ok("search library in.jsonl --distance 8");
    assert!(found.text().lines().count() > 2, "{}", found.text());
    // An addition replaces files of the library, which were open.
    place.write(
        "more.jsonl",
        jsonl([("c", "quite another text about a mountain and its railway")]),
    );
    place.ok("index add library more.jsonl");
    place.ok("index compact library");
    let found = place.ok("search library more.jsonl --distance 0");
    assert_eq!(rows(found.text())[0][..2], ["c", "c"]);
}

#[test]
fn run_with_temporary_files_gives_the_same() {
    let place = Place::new();
    let rows: String = (0..400)
        .map(|n| jsonl([(&*format!("d{n}"), &*format!("{SENTENCE} number {}", n / 2))]))
        .collect();
    place.write("in.jsonl", rows);
    place.ok("dedup in.jsonl -o memory.jsonl --removed memory.tsv");
    for option in ["--memory 400M", "--work work"] {
        place.ok(&format!(
            "dedup in.jsonl -o disk.jsonl --removed disk.tsv {option}"
        ));
        for (one, other) in [("disk.jsonl", "memory.jsonl"), ("disk.tsv", "memory.tsv")] {
            assert_eq!(place.bytes(one), place.bytes(other), "{option}");
        }
    }
    // An existing output is replaced, and nothing else remains beside it.
    place.ok("dedup in.jsonl -o memory.jsonl");
    assert!(place.names().iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn device_discards_what_is_written() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("a", SENTENCE)]));
    let devices = ["/dev/null", "NUL"].map(Path::new);
    let device = devices
        .into_iter()
        .find(|path| lookalike_system::is_device(path));
    let device = device.unwrap().to_str().unwrap();
    place.ok(&format!("dedup in.jsonl -o {device}"));
    assert_eq!(place.names(), ["in.jsonl"]);
}

#[test]
fn service_keeps_its_documents() {
    let place = Place::new();
    let documents = "/v1/collections/news/documents";
    let service = Service::start(&place, "");
    let page = service
        .connect()
        .request("GET", "/", &[("Accept", "text/html")], b"");
    assert!(page.text().starts_with("<!doctype html>"));
    service.make("news", json!({}));
    let kept = service.post(documents, &document("a", SENTENCE)).json();
    assert_eq!(kept["verdict"], "kept", "{kept}");
    service.kill();
    let service = Service::start(&place, "");
    let removed = service
        .post(documents, &document("b", &near(SENTENCE)))
        .json();
    assert_eq!(
        (&removed["verdict"], &removed["of"]),
        (&json!("duplicate"), &json!("a"))
    );
    assert_eq!(service.delete("/v1/collections/news").status, 204);
    assert!(!place.has("data/news"));
}
