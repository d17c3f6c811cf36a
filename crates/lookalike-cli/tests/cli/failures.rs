//! Failures: wrong arguments, broken inputs, full disks, closed pipes and interrupts.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Numbers, Place, Ran, corpus_jsonl, gzip, jsonl, row, write_parquet, zstd};

fn one() -> Place {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "one two three"), ("b", "four five six")]),
    );
    place
}

#[test]
fn contradictory_and_useless_options_are_refused() {
    let place = one();
    let cases: &[(&str, &[&str])] = &[
        ("dedup in.jsonl", &["-o OUT", "--dry-run"]),
        ("dedup -o x.jsonl", &["IN"]),
        (
            "dedup in.jsonl -o x --distance 3",
            &["--distance 3", "--method simhash"],
        ),
        (
            "dedup in.jsonl -o x --method exact --threshold 0.8",
            &["--threshold", "no effect"],
        ),
        (
            "dedup in.jsonl -o x --method exact --verify none",
            &["--verify", "no effect"],
        ),
        (
            "dedup in.jsonl -o x --method simhash --verify none --threshold 0.8",
            &["--threshold", "--distance"],
        ),
        (
            "dedup in.jsonl -o x --threshold 0",
            &["0", "above 0 and at most 1"],
        ),
        ("dedup in.jsonl -o x --threshold 1.5", &["1.5"]),
        ("dedup in.jsonl -o x --threshold nan", &["nan"]),
        ("dedup in.jsonl -o x --method best", &["best", "minhash"]),
        ("dedup in.jsonl -o x --verify sine", &["sine", "cosine"]),
        ("dedup in.jsonl -o x --threads 0", &["1 to 1024"]),
        ("dedup in.jsonl -o x --format xml", &["xml", "jsonl"]),
        ("dedup in.jsonl -o x --max-row 5G", &["5G", "4 GiB"]),
        ("dedup in.jsonl -o - --removed -", &["standard output"]),
        ("dedup in.jsonl -o same --removed same", &["same"]),
        ("dedup - - -o x.jsonl", &["standard input"]),
        ("dedup in.jsonl -o x --id nothing --strict", &["nothing"]),
        (
            "dedup in.jsonl -o x.jsonl --features nothing --strict",
            &["nothing"],
        ),
        ("pairs", &["IN"]),
        ("explain", &["REMOVED"]),
        ("explode", &["explode"]),
        (
            "in.jsonl",
            &["is a file", "did you mean `lookalike dedup in.jsonl"],
        ),
        (".", &["is a folder", "`lookalike passages .`"]),
        ("dedup in.jsonl -o x.xlsx", &["x.xlsx", "kept rows", ".csv"]),
        (
            "dedup in.jsonl -o x.jsonl --removed x.PDF",
            &["x.PDF", ".pdf"],
        ),
        (
            "dedup in.jsonl -o x.jsonl --report x.pdf",
            &["x.pdf", ".html"],
        ),
        ("passages in.jsonl --report x.docx", &["x.docx", ".html"]),
        (
            "dedup in.jsonl -o x --delimiter ;;",
            &["one ASCII character"],
        ),
        (
            "dedup in.jsonl -o x --delimiter ; --format jsonl",
            &["--delimiter", "CSV and TSV"],
        ),
        (
            "dedup in.jsonl -o x --max-row 3 --strict",
            &["in.jsonl:1", "more than the limit of 3"],
        ),
        (
            "dedup in.jsonl -o x --set ngram=many",
            &["`ngram = \"many\"`", "invalid type"],
        ),
        ("recipe nothing", &["nothing", "default-1"]),
    ];
    for (line, words) in cases {
        place.refused(line, words);
    }
    assert_eq!(place.names(), ["in.jsonl"]);
}

#[test]
fn missing_or_unreadable_inputs_are_refused() {
    let place = one();
    place.refused(
        "dedup in.jsonl nowhere.jsonl -o x.jsonl",
        &["nowhere.jsonl"],
    );
    place.refused("dedup no*.jsonl -o x.jsonl", &["no*.jsonl"]);
    place.write("empty/.hidden", "");
    place.refused("dedup empty -o x.jsonl", &["empty"]);
    place.refused(
        "dedup in.jsonl --against nowhere.jsonl -o x.jsonl",
        &["nowhere.jsonl"],
    );
    place.refused("dedup in.jsonl -o no/such/x.jsonl", &["no/such/x.jsonl"]);
    let locked = place.path("locked.jsonl");
    fs::write(&locked, row("a", "b")).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&locked).is_err() {
        place.refused("dedup locked.jsonl -o x.jsonl", &["locked.jsonl"]);
    }
    // Root can read whatever the permissions are, but nobody can follow this symbolic link.
    std::os::unix::fs::symlink("loop.jsonl", place.path("loop.jsonl")).unwrap();
    place.refused("dedup loop.jsonl -o x.jsonl", &["loop.jsonl"]);
    assert!(!place.has("x.jsonl"));
}

#[test]
fn input_is_never_overwritten() {
    let place = one();
    std::os::unix::fs::symlink("in.jsonl", place.path("link.jsonl")).unwrap();
    fs::hard_link(place.path("in.jsonl"), place.path("hard.jsonl")).unwrap();
    let before = place.bytes("in.jsonl");
    for option in ["-o", "--removed", "--clusters", "--rejected"] {
        for name in ["in.jsonl", "./in.jsonl", "link.jsonl", "hard.jsonl"] {
            place.refused(&format!("dedup in.jsonl {option} {name}"), &["in.jsonl"]);
        }
    }
    place.write("other.jsonl", jsonl([("x", "y")]));
    place.refused(
        "dedup other.jsonl --against in.jsonl -o in.jsonl",
        &["in.jsonl"],
    );
    place.refused("pairs in.jsonl -o in.jsonl", &["in.jsonl"]);
    assert_eq!(place.bytes("in.jsonl"), before);
}

#[test]
fn truncated_archives_and_tables_are_refused() {
    let place = Place::new();
    let rows = corpus_jsonl(&Numbers::new(5).corpus(500));
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 2 / 3].to_vec();
    place.write("cut.jsonl.gz", cut(gzip(rows.as_bytes())));
    place.write("cut.jsonl.zst", cut(zstd(rows.as_bytes())));
    write_parquet(
        &place.path("cut.parquet"),
        &[("text", vec!["a b c", "d e f"])],
    );
    let parquet = cut(place.bytes("cut.parquet"));
    place.write("cut.parquet", parquet);
    place.write("false.jsonl.gz", "this is no gzip");
    place.write("out.jsonl", "before");
    for name in [
        "cut.jsonl.gz",
        "cut.jsonl.zst",
        "cut.parquet",
        "false.jsonl.gz",
    ] {
        place.refused(
            &format!("dedup {name} -o out.jsonl --rejected bad.jsonl"),
            &[name],
        );
        place.refused(&format!("pairs {name} -o out.jsonl"), &[name]);
    }
    assert_eq!(place.read("out.jsonl"), "before");
    assert!(!place.has("bad.jsonl"));
}

const BAD: &str = r#"{"id":"a","text":"good one here"}
{"id":"b"}
{"id":"c","text":null}
{"id":"d","text":17}
{"id":"e","text":[7]}
{"text":"no id"}
not json
{"id":{"a":1},"text":"x"}
{"id":"z","text":"good one here!"}
"#;

#[test]
fn bad_rows_are_reported_counted_and_skipped() {
    let place = Place::new();
    place.write("in.jsonl", BAD);
    let ran = place.run("dedup in.jsonl -o out.jsonl");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["a"]);
    for line in 2..=8 {
        assert!(
            ran.err.contains(&format!("in.jsonl:{line}: ")),
            "line {line}:\n{}",
            ran.err
        );
    }
    assert!(ran.err.contains("7 left out"), "{}", ran.err);
    let ran = place.run("pairs in.jsonl --all");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let row = ran.text().lines().nth(1).unwrap_or_default();
    assert_eq!(row, "a\tz\t1\tin.jsonl\t1\tin.jsonl\t9");
    assert_eq!(ran.text().lines().count(), 2);
}

#[test]
fn bad_rows_are_grouped_by_reason() {
    let place = Place::new();
    let good = row("a", "one two three");
    let broken: String = (0..200)
        .map(|at| format!("{{\"text\": {}x}}\n", " ".repeat(at)))
        .collect();
    place.write(
        "in.jsonl",
        format!("{}{broken}{good}", "{\"id\":1}\n".repeat(1015)),
    );
    for command in ["dedup", "pairs", "fingerprint", "segment", "passages"] {
        let ran = place.run(&format!("{command} in.jsonl -o out.jsonl --quiet"));
        assert_eq!(ran.code, Some(1), "{command}: {}", ran.err);
        assert_eq!(
            ran.err.matches("in.jsonl:").count(),
            6,
            "{command}: {}",
            ran.err
        );
        assert_eq!(ran.err.lines().count(), 8, "{command}: {}", ran.err);
        for words in [
            "1,012 more bad rows: the field `text` is missing\n",
            "197 more bad rows: the row is not valid JSON: expected value at its byte …; --rejected FILE",
        ] {
            assert!(ran.err.contains(words), "{command}: {words} in {}", ran.err);
        }
        let ran = place.run(&format!(
            "{command} in.jsonl -o out.jsonl --rejected bad.jsonl --quiet"
        ));
        assert!(!ran.err.contains("--rejected"), "{command}: {}", ran.err);
        assert_eq!(place.read("bad.jsonl").lines().count(), 1215, "{command}");
    }
    let mut chinese = place.command("dedup in.jsonl -o out.jsonl --quiet");
    let ran = Ran::from(chinese.env("LC_ALL", "zh_CN.UTF-8").output().unwrap());
    assert!(
        ran.err.contains("1,012 个坏行：缺少字段 `text`\n"),
        "{}",
        ran.err
    );
}

#[test]
fn strict_run_stops_at_the_first_bad_row() {
    let place = Place::new();
    place.write("in.jsonl", BAD);
    for command in ["dedup", "pairs"] {
        let ran = place.run(&format!(
            "{command} in.jsonl -o out.jsonl --rejected bad.jsonl --strict"
        ));
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert_eq!(ran.err.matches("in.jsonl:").count(), 1, "{}", ran.err);
        assert!(
            ran.err.contains("in.jsonl:2:") && ran.err.contains("text"),
            "{}",
            ran.err
        );
    }
    assert_eq!(place.names(), ["in.jsonl"]);
}

#[test]
fn strict_run_refuses_repeated_ids() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "one two"), ("b", "three four"), ("a", "five six")]),
    );
    place.refused(
        "dedup in.jsonl -o out.jsonl --strict",
        &["'a'", "in.jsonl:1", "in.jsonl:3", "--id-row"],
    );
    assert!(!place.has("out.jsonl"));
    place.ok("dedup in.jsonl -o out.jsonl --strict --id-row");
    assert_eq!(place.read("out.jsonl").lines().count(), 3);
}

#[test]
fn empty_inputs_give_empty_outputs() {
    let place = Place::new();
    place.write("in.jsonl", "");
    let summary = place.summary("dedup in.jsonl -o out.jsonl --removed r.tsv");
    assert_eq!(
        (&summary["documents"], &summary["kept"]),
        (&0.into(), &0.into())
    );
    assert_eq!(place.read("out.jsonl"), "");
    assert_eq!(place.read("r.tsv").lines().count(), 1);
    place.write("in.csv", "id,text\n");
    place.ok("dedup in.csv -o out.csv");
    assert_eq!(place.read("out.csv"), "id,text\n");
    assert_eq!(place.run_with("dedup - -o -", b"").code, Some(0));
}

#[test]
fn broken_pipe_is_success() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        (0..1500)
            .map(|n| row(&n.to_string(), "one two three"))
            .collect::<String>(),
    );
    let many = corpus_jsonl(&Numbers::new(2).corpus(3000));
    place.write("many.jsonl", many);
    for line in [
        "pairs in.jsonl --all",
        "dedup many.jsonl -o - --threshold 1",
        "dedup --help",
    ] {
        let mut child = place.command(line).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut start = [0; 10];
        stdout.read_exact(&mut start).unwrap();
        drop(stdout);
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{line}: {said}");
        assert!(!said.contains("roken pipe"), "{line}: {said}");
    }
}

#[test]
fn full_disk_is_reported_as_failure() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(2).corpus(200)));
    for line in [
        "dedup in.jsonl -o -",
        "pairs in.jsonl",
        "recipe",
        "dedup --explain-plan",
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let ran = place.command(line).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("No space left"), "{line}: {said}");
    }
    place.refused(
        "dedup in.jsonl -o /dev/full",
        &["/dev/full", "No space left"],
    );
}

/// In a file system of 64 kB, if the system lets a test have one: whichever output is written first, all
/// outputs stay as they were.
#[test]
fn full_file_system_keeps_existing_files() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(2).corpus(2000)));
    for options in ["", "--threads 1", "--keep last", "--annotate"] {
        let script = format!(
            "for file in out.jsonl removed.tsv clusters.tsv; do echo before > $file; done\n\
             '{}' dedup ../in.jsonl -o out.jsonl --removed removed.tsv --clusters clusters.tsv \
             {options}\n\
             echo code $?; ls -A; cat *",
            env!("CARGO_BIN_EXE_lookalike")
        );
        let Some((said, error)) = place.run_on_small_disk(64 << 10, &script) else {
            return;
        };
        let left: Vec<&str> = said.lines().collect();
        let files = ["clusters.tsv", "out.jsonl", "removed.tsv"];
        let as_before = [&["code 2"][..], &files, &["before"; 3]].concat();
        assert_eq!(left, as_before, "{options}: {error}");
    }
}

/// A failure other than that of a disk: the rows of one input cannot be annotated.
#[test]
fn outputs_appear_together_or_not_at_all() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"text\":\"one text\"}\n{\"text\":\"one text\",\"cluster\":1}\n",
    );
    for name in ["removed.tsv", "clusters.tsv", "rejected"] {
        place.write(name, "before");
    }
    let outputs = "--removed removed.tsv --clusters clusters.tsv --rejected rejected";
    place.refused(
        &format!("dedup in.jsonl -o out.jsonl --annotate {outputs}"),
        &["row 2", "cluster"],
    );
    for name in ["removed.tsv", "clusters.tsv", "rejected"] {
        assert_eq!(place.read(name), "before", "{name}");
    }
    assert!(!place.path("out.jsonl").exists());
}

#[test]
fn output_over_recipe_or_output_is_refused() {
    let place = Place::new();
    place.write("in.jsonl", "{\"text\":\"one text\"}\n");
    place.write("my.toml", place.ok("recipe default").out);
    let before = place.read("my.toml");
    place.refused(
        "dedup in.jsonl --recipe my.toml -o ./my.toml",
        &["my.toml", "recipe", "would overwrite it"],
    );
    assert_eq!(place.read("my.toml"), before);
    place.refused(
        "dedup in.jsonl -o out.jsonl --removed ./out.jsonl",
        &["out.jsonl", "both"],
    );
    place.refused(
        "pairs in.jsonl -o out.tsv --rejected ./out.tsv",
        &["out.tsv", "both"],
    );
    place.refused(
        "dedup in.jsonl -o /dev/stdout --removed /dev/stdout",
        &["/dev/stdout", "both"],
    );
    // Standard output, and a file of that name.
    place.ok("dedup in.jsonl -o - --removed ./-");
    assert_eq!(place.read("-").lines().count(), 1);
    // Both outputs are discarded or shown on a terminal.
    place.ok("dedup in.jsonl -o /dev/null --removed /dev/zero");
}

#[test]
fn skipped_files_of_directories_are_reported() {
    let place = Place::new();
    place.write("data/in.jsonl", "{\"text\":\"one text\"}\n");
    for name in [
        "data/notes.md",
        "data/deep/x.log",
        "data/_SUCCESS",
        "data/.hidden",
    ] {
        place.write(name, "anything");
    }
    for line in [
        "dedup data/ -o out.jsonl",
        "fingerprint data/ -o out.tsv",
        "pairs data/",
    ] {
        let ran = place.ok(line);
        assert!(
            ran.err.contains("2 files in directories") && ran.err.contains("data/deep/x.log"),
            "{line}: {}",
            ran.err
        );
    }
    let ran = place.ok("dedup data/in.jsonl -o out.jsonl");
    assert!(!ran.err.contains("directories"), "{}", ran.err);
}

/// If the reader of one output goes away, the other outputs are still completed.
#[test]
fn broken_pipe_completes_other_outputs() {
    let place = Place::new();
    let texts =
        (0..30_000).map(|at| format!("{{\"id\":\"{at:0>20}\",\"text\":\"the same text\"}}\n"));
    place.write("in.jsonl", texts.collect::<String>());
    place.write("bad.jsonl", format!("no JSON\n{}", place.read("in.jsonl")));
    let closed = |line: &str| {
        let mut child = place.spawn(line);
        drop(child.stdout.take());
        let ran = crate::support::Ran::from(child.wait_with_output().unwrap());
        assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
        ran.code
    };
    let line = "dedup in.jsonl -o kept.jsonl --clusters clusters.tsv --removed -";
    assert_eq!(closed(line), Some(0));
    assert_eq!(place.read("kept.jsonl").lines().count(), 1);
    assert_eq!(place.read("clusters.tsv").lines().count(), 30_001);
    assert_eq!(closed("dedup in.jsonl -o - --removed removed.tsv"), Some(0));
    assert_eq!(place.read("removed.tsv").lines().count(), 30_000);
    closed("pairs bad.jsonl --all --rejected rejected.jsonl");
    assert_eq!(place.read("rejected.jsonl"), "no JSON\n");
}

/// Names that the system gives to pipes can be written to, and files keep their permissions.
#[test]
fn outputs_keep_pipes_and_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("in.jsonl", "{\"text\":\"one text\"}\n");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let ran = place.ok(&format!("dedup in.jsonl -o {name}"));
        assert_eq!(ran.text(), "{\"text\":\"one text\"}\n", "{name}");
    }
    place.write("out.jsonl", "before");
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(place.path("out.jsonl"), mode(0o640)).unwrap();
    place.ok("dedup in.jsonl -o out.jsonl");
    let now = fs::metadata(place.path("out.jsonl")).unwrap().permissions();
    assert_eq!(now.mode() & 0o777, 0o640);
}

/// The refusal precedes the first row, which would be refused otherwise.
#[test]
fn unwritable_outputs_are_refused_at_once() {
    let place = Place::new();
    for name in ["in.jsonl", "a/x.jsonl", "b/x.jsonl", "data/in.jsonl"] {
        place.write(name, "no JSON\n{\"text\":\"one text\"}\n");
    }
    let at_once = |line: &str, words: &[&str]| {
        let ran = place.refused(&format!("dedup --strict {line}"), words);
        assert!(!ran.err.contains("row 1"), "{line}: {}", ran.err);
    };
    at_once("in.jsonl -o out.csv", &["out.csv"]);
    at_once(
        "a/x.jsonl b/x.jsonl -o out/",
        &["a/x.jsonl and b/x.jsonl", "out/x.jsonl"],
    );
    at_once("data/in.jsonl -o data/", &["data/in.jsonl", "overwritten"]);
    at_once("- --format jsonl -o out/", &["no file name"]);
    at_once("in.jsonl -o out.jsonl.bz2", &["out.jsonl.bz2", ".zst"]);
    at_once("in.jsonl --removed r.xml", &["r.xml", ".parquet"]);
    at_once("in.jsonl --clusters c.tsv.xz", &["c.tsv.xz", ".gz"]);
    assert!(!place.has("out"));
}

/// Returns `true` if this process was started with a signal ignored. Its children inherit that.
fn is_ignored(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap_or(0) >> (signal - 1) & 1 == 1
}

#[test]
fn interrupt_leaves_no_files() {
    for (name, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)] {
        if is_ignored(number) {
            continue;
        }
        let place = Place::new();
        place.write("scratch/keep", "");
        let mut child = place.spawn(
            "dedup - -o out.jsonl --removed r.tsv --clusters c.parquet --rejected b.jsonl \
             --scratch scratch",
        );
        // This is more than a pipe holds: once it has been written, the program is reading.
        let rows = corpus_jsonl(&Numbers::new(4).corpus(3000));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(rows.as_bytes()).unwrap();
        interrupt(child.id(), name);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(
            ended.status.code(),
            Some(128 + number as i32),
            "{:?}",
            ended.status.signal()
        );
        assert_eq!(place.names(), ["scratch"]);
        assert_eq!(fs::read_dir(place.path("scratch")).unwrap().count(), 1);
        drop(stdin);
    }
}

/// At any moment of the interrupt, outputs are either complete or absent.
#[test]
fn interrupt_leaves_complete_outputs_or_none() {
    let place = Place::new();
    let rows = corpus_jsonl(&Numbers::new(4).corpus(3000));
    place.write("in.jsonl", &rows);
    place.ok("dedup in.jsonl -o whole.jsonl");
    for delay in [5, 20, 40, 80, 160, 320] {
        let child = place
            .command("dedup in.jsonl -o out.jsonl")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        interrupt(child.id(), "TERM");
        child.wait_with_output().unwrap();
        let names = place.names();
        assert!(
            names
                .iter()
                .all(|name| name.ends_with(".jsonl") && !name.starts_with('.'))
        );
        if place.has("out.jsonl") {
            assert!(
                place.bytes("out.jsonl") == place.bytes("whole.jsonl"),
                "after {delay} ms"
            );
            fs::remove_file(place.path("out.jsonl")).unwrap();
        }
    }
}

fn interrupt(process: u32, signal: &str) {
    // The process may have ended already.
    let _ = Command::new("kill")
        .args([&format!("-{signal}"), &process.to_string()])
        .output();
}

#[test]
fn control_characters_are_escaped_on_output() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\":\"a\\u001b[2J\",\"text\":\"x y\"}\n{\"id\":\"b\",\"text\":\"x y\"}\n",
    );
    let ran = place.ok("dedup in.jsonl --removed r.tsv");
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    let ran = place.ok("explain r.tsv b in.jsonl");
    assert!(!ran.text().contains('\u{1b}'), "{}", ran.text());
}
