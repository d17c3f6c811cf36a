//! Runs with `--work`: killed, resumed, refused, and seen from outside.

use std::fs::{self, File};
use std::time::Instant;

use lookalike_oracle::effort::is_long_run;
use serde_json::{Value, json};

use crate::support::{Numbers, Place, corpus_jsonl, gzip, row, write_parquet};

/// A run that is killed: its arguments without `--work`, and its outputs.
struct KilledRun {
    line: &'static str,
    outputs: &'static [&'static str],
}

/// Runs with every kind of input and of output that is kept or repeated.
const RUNS: [KilledRun; 7] = [
    KilledRun {
        line: "dedup a.jsonl b.jsonl -o OUT/kept.jsonl --removed OUT/removed.tsv --clusters OUT/clusters.tsv \
               --rejected OUT/rejected",
        outputs: &["kept.jsonl", "removed.tsv", "clusters.tsv", "rejected"],
    },
    KilledRun {
        line: "dedup b.jsonl.gz --against a.jsonl -o OUT/kept.jsonl.gz --removed OUT/removed.tsv --keep longest,max:time",
        outputs: &["kept.jsonl.gz", "removed.tsv"],
    },
    KilledRun {
        line: "dedup a.parquet b.parquet -o OUT/kept.parquet --removed OUT/removed.parquet --method minhash",
        outputs: &["kept.parquet", "removed.parquet"],
    },
    KilledRun {
        line: "dedup a.jsonl b.jsonl -o OUT/all.jsonl --annotate --within part --window 400s --time time \
               --keep max:time --clusters OUT/clusters.tsv --components",
        outputs: &["all.jsonl", "clusters.tsv"],
    },
    KilledRun {
        line: "dedup a.jsonl -o OUT/kept.jsonl --removed OUT/removed.tsv --verify levenshtein --threshold 0.8",
        outputs: &["kept.jsonl", "removed.tsv"],
    },
    KilledRun {
        line: "dedup a.jsonl b.jsonl -o OUT/kept.jsonl --removed OUT/removed.tsv --forms learn",
        outputs: &["kept.jsonl", "removed.tsv"],
    },
    KilledRun {
        line: "dedup a.jsonl b.jsonl -o OUT/kept.jsonl --cuts OUT/cuts.tsv --passages remove --min-length 4 --forms off",
        outputs: &["kept.jsonl", "cuts.tsv"],
    },
];

/// Writes the inputs of [`RUNS`], with some bad rows.
fn write_inputs(place: &Place, documents: usize) {
    let mut numbers = Numbers::new(11);
    let corpus = numbers.corpus(2 * documents);
    let (a, b) = corpus.split_at(documents);
    for (name, part) in [("a", a), ("b", b)] {
        let mut rows = String::new();
        for (at, (id, text)) in part.iter().enumerate() {
            let (time, part) = (at * 7, ["x", "y"][at % 2]);
            rows += &format!(
                "{}\n",
                json!({ "id": id, "text": text, "time": time, "part": part })
            );
            if at % 500 == 77 {
                rows += "{\"id\": \"bad\", \"text\": 7}\n";
            }
        }
        place.write(&format!("{name}.jsonl"), &rows);
        place.write(&format!("{name}.jsonl.gz"), gzip(rows.as_bytes()));
        let ids = part.iter().map(|(id, _)| &**id).collect();
        let texts = part.iter().map(|(_, text)| &**text).collect();
        write_parquet(
            &place.path(&format!("{name}.parquet")),
            &[("id", ids), ("text", texts)],
        );
    }
}

fn line_into(run: &KilledRun, directory: &str) -> String {
    run.line.replace("OUT", directory)
}

fn assert_same_outputs(place: &Place, run: &KilledRun, what: &str) {
    for output in run.outputs {
        assert!(
            place.bytes(&format!("expected/{output}")) == place.bytes(&format!("out/{output}")),
            "{output} differs, {what}: {}",
            run.line
        );
    }
    let strays = fs::read_dir(place.path("out")).unwrap().count();
    assert_eq!(strays, run.outputs.len(), "{}", run.line);
}

fn remove_directory(place: &Place, name: &str) {
    let _ = fs::remove_dir_all(place.path(name));
}

fn clear_directory(place: &Place, name: &str) {
    remove_directory(place, name);
    fs::create_dir(place.path(name)).unwrap();
}

/// Kills runs at random moments, `kills` times in all, and resumes each until it is done.
fn kill_and_resume(kills: usize, documents: usize) {
    let place = Place::new();
    write_inputs(&place, documents);
    let mut numbers = Numbers::new(12);
    let (mut killed, mut resumed) = (0, 0);
    let mut expected = vec![None; RUNS.len()];
    while killed < kills {
        for (run, seconds) in RUNS.iter().zip(&mut expected) {
            remove_directory(&place, "work");
            for directory in ["expected", "out"] {
                clear_directory(&place, directory);
            }
            let begun = Instant::now();
            place.run(&line_into(run, "expected"));
            let whole = *seconds.get_or_insert(begun.elapsed());
            let line = format!("{} --work work --resume", line_into(run, "out"));
            // Four times at most, so that every run ends.
            for _ in 0..4 {
                let delay = whole.mul_f64(numbers.below(1000) as f64 / 900.0);
                let mut child = place.command(&line).spawn().unwrap();
                std::thread::sleep(delay);
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                let status = place.run("status work --verify --json");
                let has_begun = place.has("work/manifest") || place.has("work/forms/manifest");
                assert_eq!(
                    status.code,
                    Some(if has_begun { 0 } else { 2 }),
                    "{}",
                    status.err
                );
                if has_begun {
                    let status: Value = serde_json::from_slice(&status.out).unwrap();
                    resumed += usize::from(status["steps"] != 0);
                }
            }
            let ran = place.run(&line);
            assert!(matches!(ran.code, Some(0 | 1)), "{line}\n{}", ran.err);
            assert_same_outputs(&place, run, "after kills");
        }
    }
    assert!(resumed > 0, "no run had a step when it was killed");
}

#[test]
fn killed_runs_resume_with_the_same_bytes() {
    if is_long_run() {
        kill_and_resume(20, 12_000)
    } else {
        kill_and_resume(5, 3000)
    }
}

#[test]
#[ignore = "takes minutes"]
fn runs_killed_200_times_resume_with_the_same_bytes() {
    kill_and_resume(200, 12_000);
}

/// Every step of a finished run is used again, so this needs no kill.
#[test]
fn stored_steps_yield_the_same_bytes() {
    let place = Place::new();
    write_inputs(&place, 1500);
    for run in &RUNS {
        for directory in ["expected", "out", "work"] {
            clear_directory(&place, directory);
        }
        place.run(&line_into(run, "expected"));
        let line = format!("{} --work work", line_into(run, "out"));
        let first = place.run(&line);
        assert_same_outputs(&place, run, "with --work");
        clear_directory(&place, "out");
        let again = place.run(&format!("{line} --resume --threads 1"));
        assert_eq!(first.code, again.code, "{}", again.err);
        assert_same_outputs(&place, run, "from stored steps");
    }
}

/// The copies of compressed documents are made again, in any order.
#[test]
fn documents_in_files_resume_too() {
    let place = Place::new();
    let mut numbers = Numbers::new(13);
    for at in 0..60 {
        let text = numbers.text(50);
        place.write(&format!("in/{at}.txt"), &text);
        place.write(
            &format!("in/{at}-copy.txt.gz"),
            gzip(numbers.edited(&text, 2).as_bytes()),
        );
    }
    let line = "dedup in --document-per-file --removed removed.tsv --work work";
    place.ok(line);
    let before = place.bytes("removed.tsv");
    assert_eq!(place.table("removed.tsv").len(), 60);
    fs::remove_file(place.path("removed.tsv")).unwrap();
    place.ok(&format!("{line} --resume"));
    assert!(before == place.bytes("removed.tsv"));
}

/// Creates a finished run in `work` of `in.jsonl`.
fn finished_run() -> Place {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(14).corpus(400)));
    place.ok(FINISHED);
    place
}

const FINISHED: &str = "dedup in.jsonl -o out.jsonl --work work";

/// Changes the manifest, and makes its checksum right again.
fn change_manifest(place: &Place, change: impl FnOnce(&mut Value)) {
    let text = place.read("work/manifest");
    let (_, body) = text.split_once('\n').unwrap();
    let mut value: Value = serde_json::from_str(body).unwrap();
    change(&mut value);
    let body = format!("{value}\n");
    let checksum = lookalike::value_hash(body.as_bytes());
    place.write(
        "work/manifest",
        format!("lookalike-work 3 {checksum:016x}\n{body}"),
    );
}

fn step_names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path("work")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".step")).collect();
    names.sort();
    names
}

#[test]
fn finished_runs_are_not_repeated() {
    let place = finished_run();
    let changed = |name: &str| place.path(name).metadata().unwrap().modified().unwrap();
    let (before, written) = (
        place.summary("dedup in.jsonl --dry-run"),
        changed("out.jsonl"),
    );
    let said = place.ok(&format!("{FINISHED} --resume")).err;
    assert!(!said.contains("replaced"), "{said}");
    let mut again = place.summary(&format!("{FINISHED} --resume"));
    for timing in ["seconds", "stages"] {
        again[timing] = before[timing].clone();
    }
    assert_eq!(before, again);
    assert_eq!(written, changed("out.jsonl"));
    // Outputs that are gone, changed or new are written.
    let whole = place.bytes("out.jsonl");
    fs::remove_file(place.path("out.jsonl")).unwrap();
    place.ok(&format!("{FINISHED} --resume"));
    assert!(place.bytes("out.jsonl") == whole);
    place.write("out.jsonl", "other");
    place.ok(&format!("{FINISHED} --resume"));
    assert!(place.bytes("out.jsonl") == whole);
    place.ok("dedup in.jsonl -o more.jsonl --removed more.tsv --work work --resume");
    assert!(place.bytes("more.jsonl") == whole && place.has("more.tsv"));
    // Without --resume, a finished run makes room for a new one.
    place.ok("dedup in.jsonl -o out.jsonl --work work --threshold 0.9");
    assert!(place.bytes("out.jsonl") != whole);
}

/// The pass that learns forms is a run of its own inside the directory, with the files of a run without forms.
#[test]
fn a_run_that_was_killed_while_it_learned_forms_goes_on() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(16).corpus(400)));
    let expected_line = "dedup in.jsonl -o expected.jsonl --removed expected.tsv --forms learn";
    place.ok(expected_line);
    place.ok("dedup in.jsonl --dry-run --forms off --work work");
    change_manifest(&place, |manifest| manifest["stage"] = json!("write"));
    fs::rename(place.path("work"), place.path("learned")).unwrap();
    fs::create_dir(place.path("work")).unwrap();
    fs::rename(place.path("learned"), place.path("work/forms")).unwrap();
    let status: Value = serde_json::from_slice(&place.ok("status work --json").out).unwrap();
    assert_eq!(
        (&status["learns_forms"], &status["documents"]),
        (&json!(true), &json!(400))
    );
    assert!(place.ok("status work").text().contains("learning forms: "));
    let line = "dedup in.jsonl -o out.jsonl --removed out.tsv --forms learn --work work";
    place.refused(line, &["work holds an unfinished run", "--resume"]);
    let resume = format!("{line} --resume");
    place.refused(
        &format!("{resume} --threshold 0.9"),
        &["work/forms", "threshold"],
    );
    place.refused(
        "dedup in.jsonl -o out.jsonl --work work --resume --forms off",
        &["was interrupted while it learned its forms"],
    );
    let step = "work/forms/documents-000001.step";
    let whole = place.bytes(step);
    place.write(step, &whole[..whole.len() - 1]);
    place.refused(&resume, &[step, "where the manifest says"]);
    place.write(step, &whole);
    place.ok(&resume);
    assert!(place.bytes("out.jsonl") == place.bytes("expected.jsonl"));
    assert!(place.bytes("out.tsv") == place.bytes("expected.tsv"));
    assert!(place.has("work/manifest") && !place.has("work/forms"));
    // The step of the forms is verified as others are, and a run that is continued knows what they keep apart.
    fs::remove_file(place.path("out.jsonl")).unwrap();
    let summary = |line: &str| -> Value {
        serde_json::from_slice(&place.ok(&format!("{line} --json")).out).unwrap()
    };
    let again = summary(&resume);
    assert_eq!(again["forms"], summary(expected_line)["forms"]);
    let step = "work/forms-000001.step";
    let whole = place.bytes(step);
    place.write(step, &whole[..whole.len() - 1]);
    place.refused(&resume, &[step, "damaged"]);
    place.refused_status("status work", step);
    place.write(step, &whole);
    let status: Value = serde_json::from_slice(&place.ok("status work --json").out).unwrap();
    assert_eq!(status["learns_forms"], json!(false));
}

/// A process that learns forms has the directory for itself.
#[test]
fn a_directory_in_which_forms_are_learned_is_locked() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(17).corpus(20)));
    fs::create_dir(place.path("work")).unwrap();
    let lock = File::create(place.path("work/lock")).unwrap();
    lock.lock().unwrap();
    place.refused(
        "dedup in.jsonl -o out.jsonl --forms learn --work work",
        &["another process works on the run in work"],
    );
    assert!(!place.has("work/forms"));
}

#[test]
fn dry_runs_are_continued_by_real_ones() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(15).corpus(300)));
    place.ok("dedup in.jsonl --dry-run --work work");
    place.ok("dedup in.jsonl -o out.jsonl --work work --resume");
    place.ok("dedup in.jsonl -o expected.jsonl");
    assert!(place.bytes("out.jsonl") == place.bytes("expected.jsonl"));
}

#[test]
fn damaged_and_foreign_steps_are_refused_by_name() {
    let place = finished_run();
    let expected = place.bytes("out.jsonl");
    fs::remove_file(place.path("out.jsonl")).unwrap();
    place.ok("dedup in.jsonl -o other.jsonl --work other");
    let resume = format!("{FINISHED} --resume");
    let steps = step_names(&place);
    // A busy machine divides the verdicts into several steps.
    let kind = |step: &str| step.split('-').next().map(str::to_owned);
    assert_eq!(steps[0], "documents-000001.step");
    assert_eq!(steps[1], "verdicts-000001.step");
    for step in &steps {
        let name = format!("work/{step}");
        let whole = place.bytes(&name);
        let other = steps.iter().find(|it| kind(it) != kind(step)).unwrap();
        let mut flipped = whole.clone();
        for at in [0, 5, 9, 17, 20, whole.len() / 2, whole.len() - 1] {
            flipped[at] ^= 0x20;
            place.write(&name, &flipped);
            place.refused(&resume, &[&name, "damaged"]);
            place.refused_status("status work --verify", &name);
            flipped[at] ^= 0x20;
        }
        for length in [0, 1, 32, 40, whole.len() - 1] {
            place.write(&name, &whole[..length]);
            place.refused(&resume, &[&name, "where the manifest says"]);
            place.refused_status("status work", &name);
        }
        place.write(&name, place.bytes(&format!("work/{other}")));
        place.refused(&resume, &[&name]);
        // The same step of another run with the same settings.
        place.write(&name, place.bytes(&format!("other/{step}")));
        place.refused(&resume, &[&name, "another run"]);
        fs::remove_file(place.path(&name)).unwrap();
        place.refused(&resume, &[&name, "No such file"]);
        place.refused_status("status work", &name);
        place.write(&name, &whole);
    }
    let manifest = place.bytes("work/manifest");
    for at in [0, 15, 20, 40, manifest.len() / 2, manifest.len() - 2] {
        let mut flipped = manifest.clone();
        flipped[at] ^= 1;
        place.write("work/manifest", flipped);
        place.refused(&resume, &["work/manifest"]);
        place.refused("status work", &["work/manifest"]);
    }
    place.write("work/manifest", &manifest);
    change_manifest(&place, |value| value["steps"][0]["first"] = json!(3));
    place.refused(&resume, &["work/manifest", "not contiguous"]);
    place.write("work/manifest", &manifest);
    place.ok(&resume);
    assert!(place.bytes("out.jsonl") == expected);
}

impl Place {
    /// Runs `status`, which shows the state and then refuses because of this file.
    fn refused_status(&self, line: &str, file: &str) {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(2), "{line}");
        assert!(
            ran.text().contains(file) && ran.err.contains(file),
            "{}",
            ran.err
        );
    }
}

#[test]
fn changed_runs_are_refused_with_the_difference() {
    let place = finished_run();
    let unfinished = |value: &mut Value| value["stage"] = json!("write");
    change_manifest(&place, unfinished);
    place.refused(FINISHED, &["work holds an unfinished run", "--resume"]);
    let resume = format!("{FINISHED} --resume");
    for (options, words) in [
        ("--threshold 0.9", ["threshold 0.75", "0.9"]),
        ("--method minhash", ["method auto", "minhash"]),
        ("--keep last", ["keep rule first", "last"]),
        ("--text title", ["text field text", "title"]),
        ("--within id", ["`within` not set", "is id"]),
        ("--recipe words-3", ["recipe default", "words-3"]),
        ("--against other.jsonl", ["other.jsonl", "given"]),
    ] {
        place.write("other.jsonl", row("a", "some other text"));
        place.refused(&format!("{resume} {options}"), &words);
    }
    place.refused(
        "dedup other.jsonl -o out.jsonl --work work --resume",
        &["in.jsonl", "other.jsonl"],
    );
    place.refused(
        "dedup in.jsonl other.jsonl -o out.jsonl --work work --resume",
        &["other.jsonl is given"],
    );
    change_manifest(&place, |value| value["program"] = json!("0.0.9"));
    place.refused(&resume, &["lookalike 0.0.9"]);
    let version = env!("CARGO_PKG_VERSION");
    change_manifest(&place, |value| value["program"] = json!(version));
    let whole = place.bytes("in.jsonl");
    place.write(
        "in.jsonl",
        [&*whole, b"{\"id\":\"z\",\"text\":\"z\"}\n"].concat(),
    );
    place.refused(&resume, &["in.jsonl has changed"]);
}

#[test]
fn unsuitable_runs_are_refused() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(16).corpus(20)));
    place.refused(
        "dedup - -o out.jsonl --work work",
        &["standard input", "--work"],
    );
    assert!(!place.has("work"));
    place.refused(&format!("{FINISHED} --audit"), &["--audit", "--work"]);
    place.refused("dedup in.jsonl -o out.jsonl --resume", &["--work"]);
    place.write("work/notes.txt", "mine");
    place.refused(FINISHED, &["work holds notes.txt"]);
    assert_eq!(place.read("work/notes.txt"), "mine");
    place.refused("dedup in.jsonl -o out.jsonl --work in.jsonl", &["in.jsonl"]);
    place.refused(
        "dedup in.jsonl -o out.jsonl --work none/work",
        &["none/work"],
    );
    place.refused("status none", &["none holds no run"]);
}

#[test]
fn status_shows_the_progress_and_the_process() {
    let place = finished_run();
    let status =
        || -> Value { serde_json::from_slice(&place.ok("status work --json").out).unwrap() };
    let before = status();
    assert_eq!(before["stage"], "finished");
    assert_eq!(before["process"], Value::Null);
    assert_eq!(before["documents"], 400);
    assert_eq!(before["decided"], json!({ "done": 400, "total": 400 }));
    let bytes = place.bytes("in.jsonl").len();
    assert_eq!(before["read"], json!({ "done": bytes, "total": bytes }));
    let text = place.ok("status work").text().to_owned();
    assert!(
        text.contains("finished") && text.contains("100.0 %"),
        "{text}"
    );
    change_manifest(&place, |value| {
        value["stage"] = json!("decide");
        value["steps"].as_array_mut().unwrap().truncate(1);
    });
    let text = place.ok("status work").text().to_owned();
    assert!(text.contains("no process works on it"), "{text}");
    assert!(text.contains("0 of 400 documents (0.0 %)"), "{text}");
    let lock = File::open(place.path("work/lock")).unwrap();
    lock.lock().unwrap();
    place.write("work/lock", "4711");
    assert_eq!(status()["process"], 4711);
    place.refused(&format!("{FINISHED} --resume"), &["another process"]);
    drop(lock);
    place.ok(&format!("{FINISHED} --resume"));
}

/// In a file system that is too small, if the system lets a test have one, the run fails. Once there is room, it is
/// resumed.
#[test]
fn full_disks_leave_a_run_that_resumes() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(17).corpus(3000)));
    place.ok("dedup in.jsonl -o expected.jsonl --forms learn");
    let size = place.bytes("in.jsonl").len();
    let program = env!("CARGO_BIN_EXE_lookalike");
    // Too small for the first step, and for the outputs.
    for room in [64 << 10, size * 3 / 4] {
        let run = format!("'{program}' dedup ../in.jsonl -o out.jsonl --work work --resume");
        let script = format!(
            "{run}; echo code $?\n\
             mount -o remount,size=256m none . || exit 77\n\
             {run}; echo code $?; cmp out.jsonl ../expected.jsonl && echo same; ls -A"
        );
        let Some((said, error)) = place.run_on_small_disk(room, &script) else {
            return;
        };
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines,
            ["code 2", "code 0", "same", "out.jsonl", "work"],
            "{error}"
        );
    }
}

/// A run that is killed while it puts outputs in place leaves temporary names, which the resumed run removes.
#[test]
fn temporary_names_of_a_killed_run_are_removed() {
    let place = finished_run();
    change_manifest(&place, |value| value["stage"] = json!("write"));
    let (stale, mine) = (".out.jsonl.0123456789abcdef.tmp", ".out.jsonl.mine.tmp");
    for name in [stale, mine, ".other.jsonl.0123456789abcdef.tmp"] {
        place.write(name, "left");
    }
    place.ok(&format!("{FINISHED} --resume"));
    let names = place.names();
    assert!(!names.contains(&stale.to_owned()) && names.contains(&mine.to_owned()));
    assert_eq!(names.len(), 5, "{names:?}");
}
