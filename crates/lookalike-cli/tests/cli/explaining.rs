//! `lookalike explain`.

use std::process::Command;

use serde_json::Value;

use crate::plain;
use crate::reporting::decide_boats;
use crate::support::{Numbers, Place, corpus_jsonl, jsonl};

/// Creates a run with three documents: b is a with another word, c is a with its words in another order.
fn removed() -> Place {
    let place = Place::new();
    let text = (0..30)
        .map(|n| format!("w{n}"))
        .collect::<Vec<_>>()
        .join(" ");
    let near = text.replace("w29", "other");
    place.write(
        "in.jsonl",
        jsonl([("a", &text[..]), ("b", &near), ("c", "all alone here")]),
    );
    place.ok("dedup in.jsonl -o out.jsonl --removed r.tsv");
    place
}

#[test]
fn removal_is_explained() {
    let place = removed();
    let ran = place.ok("explain r.tsv b in.jsonl");
    let said = ran.text();
    for word in [
        "b was removed: it is a near-duplicate of a, which was kept",
        "in.jsonl, row 1",
        "in.jsonl, row 2",
        "found by join",
        "28 features shared, of 29 in the kept and 29 in the removed text",
        "the recorded similarity is that of",
        "[-w29-]{+other+}",
        "default-1",
    ] {
        assert!(said.contains(word), "no '{word}' in:\n{said}");
    }
}

#[test]
fn explanation_is_the_same_in_every_format() {
    let place = removed();
    for name in [
        "r.tsv",
        "r.csv",
        "r.jsonl",
        "r.parquet",
        "r.tsv.gz",
        "r.jsonl.zst",
        "r.log",
    ] {
        place.ok(&format!("dedup in.jsonl --removed {name}"));
        let ran = place.ok(&format!("explain {name} b in.jsonl --json"));
        let said: Value = serde_json::from_slice(&ran.out).unwrap();
        assert_eq!(
            (&said["kept"], &said["removed"]),
            (&"a".into(), &true.into()),
            "{name}"
        );
        assert_eq!(
            (&said["similarity"], &said["threshold"]),
            (&(28.0 / 30.0).into(), &0.75.into())
        );
        assert_eq!(
            (&said["method"], &said["cluster"]),
            (&"join".into(), &"a".into())
        );
        assert_eq!(
            (&said["now"]["fits_record"], &said["now"]["shared_features"]),
            (&true.into(), &28.into())
        );
        assert_eq!(said["kept_document"]["row"], 1);
        assert_eq!(said["differences"][0]["side"], "both");
    }
}

#[test]
fn kept_documents_are_explained() {
    let place = removed();
    let kept = place.ok("explain r.tsv a in.jsonl");
    assert!(kept.text().contains("a was not removed"), "{}", kept.text());
    assert!(
        kept.text()
            .contains("1 document was removed because of it: b"),
        "{}",
        kept.text()
    );
    let alone = place.ok("explain r.tsv c in.jsonl");
    assert!(
        alone
            .text()
            .contains("No document was removed as a duplicate of it"),
        "{}",
        alone.text()
    );
    let said = place.ok("explain r.tsv a in.jsonl --json");
    let said: Value = serde_json::from_slice(&said.out).unwrap();
    assert_eq!(
        (&said["removed"], &said["duplicates"]),
        (&false.into(), &serde_json::json!(["b"]))
    );
    place.refused("explain r.tsv nobody in.jsonl", &["nobody", "r.tsv"]);
}

#[test]
fn changed_texts_are_reported() {
    let place = removed();
    let changed = place
        .read("in.jsonl")
        .replace("w5 ", "changed ")
        .replacen("changed", "w5", 1);
    place.write("in.jsonl", changed);
    let ran = place.ok("explain r.tsv b in.jsonl");
    assert!(
        ran.text()
            .contains("the recorded similarity is not that of"),
        "{}",
        ran.text()
    );
    let ran = place.ok("explain r.tsv b out.jsonl in.jsonl --recipe words-1 --json");
    assert!(
        ran.text().contains("\"fits_record\":false"),
        "{}",
        ran.text()
    );
    place.write("in.jsonl", jsonl([("b", "only this is left")]));
    place.refused(
        "explain r.tsv b in.jsonl",
        &["kept document a", "--against"],
    );
    place.refused("explain in.jsonl b in.jsonl", &["in.jsonl"]);
}

#[test]
fn kept_reference_documents_are_explained() {
    let place = Place::new();
    place.write(
        "old.jsonl",
        jsonl([("x", "one two three four"), ("y", "other words")]),
    );
    place.write(
        "new.jsonl",
        jsonl([("y", "five six seven"), ("x", "one TWO three four")]),
    );
    place.ok("dedup new.jsonl --against old.jsonl --removed r.tsv");
    let ran = place.ok("explain r.tsv x new.jsonl --against old.jsonl");
    assert!(ran.text().contains("old.jsonl, row 1"), "{}", ran.text());
    assert!(
        ran.text().contains("equal after normalisation"),
        "{}",
        ran.text()
    );
    place.refused("explain r.tsv x new.jsonl", &["--against"]);
    // Each of the two files has its own row numbers.
    place.ok("dedup new.jsonl --against old.jsonl --removed r.tsv --id-row");
    let ran = place.ok("explain r.tsv 2 new.jsonl --against old.jsonl --id-row");
    assert!(ran.text().contains("old.jsonl, row 1"), "{}", ran.text());
}

#[test]
fn ids_with_tabs_are_found_in_tsv() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a\tb", "one two three"), ("c\nd", "one two three")]),
    );
    place.ok("dedup in.jsonl --removed r.tsv");
    let mut command = place.command("explain r.tsv");
    let ran = command.args(["c\nd", "in.jsonl"]).output().unwrap();
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn features_and_sketches() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\":\"a\",\"f\":[\"x\",\"y\"]}\n{\"id\":\"b\",\"f\":[\"y\",\"x\"]}\n",
    );
    place.ok("dedup in.jsonl --features f --removed r.tsv");
    let ran = place.ok("explain r.tsv b in.jsonl --features f");
    assert!(
        ran.text().contains("the recorded similarity is that of"),
        "{}",
        ran.text()
    );

    let mut numbers = Numbers::new(9);
    let text = numbers.text(300);
    let near = numbers.edited(&text, 3);
    place.write("long.jsonl", jsonl([("a", &text[..]), ("b", &near)]));
    for options in [
        "--method minhash --verify none",
        "--method simhash --distance 20 --verify none",
    ] {
        place.ok(&format!("dedup long.jsonl {options} --removed r.tsv"));
        let ran = place.ok("explain r.tsv b long.jsonl");
        assert!(
            ran.text().contains("the recorded similarity is that of"),
            "{options}: {}",
            ran.text()
        );
        assert!(
            ran.text()
                .contains(&format!("{:.4}", plain::jaccard(&text, &near)))
        );
        assert!(ran.text().contains("words in common"), "{}", ran.text());
        assert!(
            !place
                .ok("explain r.tsv b long.jsonl --full")
                .text()
                .contains("words in common")
        );
    }
}

#[test]
fn every_removal_of_a_corpus_can_be_explained() {
    let place = Place::new();
    let corpus = Numbers::new(21).corpus(200);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.ok("dedup in.jsonl --removed r.tsv --threshold 0.6");
    for row in place.table("r.tsv").iter().take(25) {
        let ran = place.ok(&format!("explain r.tsv {} in.jsonl --json", row[0]));
        let said: Value = serde_json::from_slice(&ran.out).unwrap();
        assert_eq!(
            (&said["kept"], &said["now"]["fits_record"]),
            (&row[1][..].into(), &true.into())
        );
    }
}

#[test]
fn runs_without_a_check_need_not_be_named() {
    let place = Place::new();
    let mut numbers = Numbers::new(13);
    let text = numbers.text(300);
    let near = numbers.edited(&text, 3);
    place.write("in.jsonl", jsonl([("a", &text[..]), ("b", &near)]));
    for (options, measure) in [
        ("", "Jaccard index"),
        (
            "--method minhash --verify none",
            "share of equal MinHash slots",
        ),
        (
            "--method bottomk --verify none",
            "estimate from the smallest hashes",
        ),
        (
            "--method simhash --distance 20 --verify none",
            "share of equal SimHash bits",
        ),
    ] {
        place.ok(&format!("dedup in.jsonl {options} --removed r.tsv"));
        let ran = place.ok("explain r.tsv b in.jsonl");
        let fits = format!("the recorded similarity is that of the present texts ({measure})");
        assert!(ran.text().contains(&fits), "{options}: {}", ran.text());
    }
    let ran = place.ok("explain r.tsv b in.jsonl --verify jaccard");
    assert!(
        ran.text().contains("is not that of the present texts"),
        "{}",
        ran.text()
    );
}

/// The kept document of a run with a library is read from it, or the command says which file to add.
#[test]
fn kept_documents_of_libraries_are_explained() {
    let place = Place::new();
    let text = "one two three four five six seven eight";
    let near = "one two three four five six seven nine";
    place.write("old.jsonl", jsonl([("z", "all alone here"), ("a", text)]));
    // The new file has an id of the library for another text.
    place.write(
        "new.jsonl",
        jsonl([("a", "something else entirely"), ("b", near)]),
    );
    let options = "--threshold 0.5 --removed r.tsv";
    for (library, extra) in [("bare.lib", ""), ("full.lib", " --passages mark")] {
        place.ok(&format!(
            "dedup old.jsonl --library {library} -o out.jsonl{extra}"
        ));
        place.ok(&format!(
            "dedup new.jsonl --library {library} {options} -o new-out.jsonl{extra}"
        ));
        assert_eq!(place.table("r.tsv")[0][8..10], [library, "2"]);
        if library == "bare.lib" {
            place.refused(
                "explain r.tsv b new.jsonl",
                &[
                    "row 2 of the library bare.lib",
                    "stores no texts",
                    "--against",
                ],
            );
        } else {
            let ran = place.ok("explain r.tsv b new.jsonl");
            for word in [
                "full.lib, row 2",
                "[-eight-]{+nine+}",
                "the recorded similarity is that of",
            ] {
                assert!(ran.text().contains(word), "{word} in {}", ran.text());
            }
            std::fs::rename(place.path("full.lib"), place.path("moved.lib")).unwrap();
            let moved = place.ok("explain r.tsv b new.jsonl --library moved.lib");
            assert!(
                moved.text().contains("moved.lib, row 2"),
                "{}",
                moved.text()
            );
        }
        let ran = place.ok("explain r.tsv b new.jsonl --against old.jsonl");
        assert!(
            ran.text().contains("the recorded similarity is that of"),
            "{}",
            ran.text()
        );
    }
}

/// The command that the summary of a run names explains its removals, with decisions and other options of the run.
#[test]
fn decisions_are_explained() {
    let place = Place::new();
    let decisions = decide_boats(&place, &[("a", "d", "same"), ("a", "b", "different")]);
    place.write("d.jsonl", decisions);
    let options = "--text text --threshold 0.95 --decisions d.jsonl";
    let ran = place.ok(&format!(
        "dedup in.jsonl {options} --removed r.tsv -o out.jsonl"
    ));
    let removed = place.table("r.tsv");
    assert!(
        removed
            .iter()
            .any(|row| row[0] == "d" && row[3] == "decision"),
        "{removed:?}"
    );
    let command = ran
        .err
        .lines()
        .find_map(|line| line.split_once("lookalike explain "));
    let command = format!("explain {}", command.unwrap().1);
    let of = |id: &str| command.replace("ID", id);
    assert!(
        command.contains("--decisions d.jsonl --text text"),
        "{command}"
    );
    let ran = place.ok(&of("d"));
    let words = "a person has decided that these two texts are the same";
    assert!(ran.text().contains(words), "{}", ran.text());
    let said: Value =
        serde_json::from_slice(&place.ok(&format!("{} --json", of("d"))).out).unwrap();
    let decision = &said["now"]["decision"];
    assert_eq!(
        (&decision["label"], &decision["applied"]),
        (&"same".into(), &true.into())
    );
    let without = place.ok(&of("d").replace("--decisions d.jsonl", ""));
    assert!(
        without.text().contains("give the file of decisions"),
        "{}",
        without.text()
    );
    let kept = place.ok(&of("a"));
    let words = "the same as 1, different from 1 others";
    assert!(kept.text().contains(words), "{}", kept.text());
}

/// Returns a shell of the system that runs the program with the words of a line.
#[cfg(unix)]
fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{} {line}", env!("CARGO_BIN_EXE_lookalike"))]);
    shell
}

#[cfg(windows)]
fn shell(line: &str) -> Command {
    use std::os::windows::process::CommandExt as _;
    let program = lookalike_system::resolve_path(env!("CARGO_BIN_EXE_lookalike").as_ref()).unwrap();
    let mut shell = Command::new("cmd");
    shell.raw_arg(format!("/s /c \"{} {line}\"", program.display()));
    shell
}

/// The command that the summary names works when it is pasted into a shell, whatever options decide about reading.
#[test]
fn named_command_works_in_a_shell() {
    let place = Place::new();
    let text = "渡轮早上七点从岛上的码头开出没有人会误了船期因为老船长总是等";
    let rows = format!("号;文 章\n甲;{text}\n乙;{text}着\n");
    let (bytes, _, _) = encoding_rs::GB18030.encode(&rows);
    place.write("my news.txt", &bytes);
    let options = "--format csv --delimiter ; --encoding gb18030 --id 号 --text 文%20章 --set ngram=3 --threshold 0.5";
    let ran = place.ok(&format!(
        "dedup my%20news.txt {options} --verify containment --removed re'moved.tsv"
    ));
    assert_eq!(place.table("re'moved.tsv").len(), 1, "{}", ran.err);
    let command = ran
        .err
        .lines()
        .find_map(|line| line.split_once("lookalike explain "));
    let command = command.unwrap().1;
    assert!(command.contains("--encoding gb18030"), "{command}");
    let line = format!("explain {}", command.replace(" ID ", " 乙 "));
    let said = shell(&line)
        .current_dir(place.path(""))
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    let text = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{line}\n{error}");
    assert!(text.contains("乙 was removed"), "{text}");
    assert!(
        text.contains("the recorded similarity is that of"),
        "{text}"
    );
}

/// A document that is in the library, or among those of `--against`, counts as kept, and is no unknown one.
#[test]
fn documents_beside_the_inputs_are_explained() {
    let place = Place::new();
    let text = "one two three four five six seven eight";
    place.write("old.jsonl", jsonl([("z", "all alone here"), ("a", text)]));
    let near = "one two three four five six seven nine";
    place.write("new.jsonl", jsonl([("b", near), ("c", "another one")]));
    let options = "--threshold 0.5 --removed r.tsv";
    for (library, extra) in [("bare.lib", ""), ("full.lib", " --passages mark")] {
        place.ok(&format!(
            "dedup old.jsonl --library {library} -o out.jsonl{extra}"
        ));
        let ran = place.ok(&format!(
            "dedup new.jsonl --library {library} {options} -o new-out.jsonl{extra}"
        ));
        let command = format!("explain r.tsv ID new.jsonl --library {library}");
        assert!(ran.err.contains(&command), "{}", ran.err);
        let of = |id: &str| command.replace("ID", id);
        let known = place.ok(&of("a"));
        for word in [
            "a was not removed: it is in the library".to_owned(),
            format!("{library}, row 2"),
            "1 document was removed because of it: b".to_owned(),
        ] {
            assert!(known.text().contains(&word), "{word} in {}", known.text());
        }
        let alone = place.ok(&of("z"));
        assert!(
            alone.text().contains("No document was removed"),
            "{}",
            alone.text()
        );
        // The table names the library of those that it names as kept.
        let named = place.ok("explain r.tsv a new.jsonl");
        assert_eq!(named.text(), known.text());
        let said: Value = serde_json::from_slice(&place.ok(&(of("a") + " --json")).out).unwrap();
        assert_eq!(
            (&said["removed"], &said["found_in"], &said["duplicates"]),
            (&false.into(), &"library".into(), &serde_json::json!(["b"]))
        );
        let stored = (library == "full.lib").then_some(text);
        assert_eq!(said["document"]["text"], serde_json::json!(stored));
        place.refused(&of("nobody"), &["nobody", "r.tsv"]);
    }
    let told = place.ok("explain r.tsv a new.jsonl --library bare.lib --lang zh");
    assert!(told.text().contains("它在库中"), "{}", told.text());
    place.ok(&format!(
        "dedup new.jsonl --against old.jsonl {options} -o new-out.jsonl"
    ));
    let known = place.ok("explain r.tsv a new.jsonl --against old.jsonl");
    assert!(
        known
            .text()
            .contains("a was not removed: it is a reference document (old.jsonl, row 2)"),
        "{}",
        known.text()
    );
}
