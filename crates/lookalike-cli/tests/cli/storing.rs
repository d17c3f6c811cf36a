//! `lookalike store`: collections that no service has open.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{Service, document};
use crate::support::{Numbers, Place, corpus_jsonl};

/// Creates a collection with some hundred documents, one of which is deleted.
fn place() -> Place {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({ "recipe": "words-3", "threshold": 0.7 }));
    let corpus = corpus_jsonl(&Numbers::new(8).corpus(300));
    service.post_lines("/v1/collections/a/documents", corpus.as_bytes());
    service.delete("/v1/collections/a/documents/d7");
    place
}

/// Returns the rows of an export without the fields that change when documents are inserted again.
fn documents(place: &Place, name: &str) -> Vec<Value> {
    let lines = place.read(name);
    let mut rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for row in &mut rows {
        row.as_object_mut()
            .unwrap()
            .retain(|field, _| field != "seq");
    }
    rows
}

/// Changes a byte in the middle of the file with this ending.
fn damage(place: &Place, ending: &str) {
    let directory = place.path("data/a");
    let files = std::fs::read_dir(&directory)
        .unwrap()
        .map(|it| it.unwrap().path());
    let path = files
        .into_iter()
        .find(|file| file.to_str().unwrap().ends_with(ending))
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn intact_collection_passes_verification() {
    let place = place();
    let ran = place.ok("store verify data/a");
    assert!(
        ran.out.is_empty()
            && ran
                .err
                .contains("299 documents with 301 rows in 1 partition: whole"),
        "{}",
        ran.err
    );
    let summary = place.summary("store verify data/a");
    assert_eq!(
        (&summary["documents"], &summary["findings"]),
        (&json!(299), &json!([]))
    );
    assert!(place.ok("store verify data/a --quiet").err.is_empty());
}

#[test]
fn exported_documents_can_be_imported() {
    let place = place();
    place.ok("store export data/a -o a.jsonl --settings a.json");
    let exported = documents(&place, "a.jsonl");
    assert_eq!(exported.len(), 299);
    assert_eq!(
        place.ok("store export data/a").text(),
        place.read("a.jsonl")
    );
    let ran = place.ok("store import data/b a.jsonl --settings a.json");
    assert!(ran.err.contains("299 documents imported"), "{}", ran.err);
    place.ok("store export data/b -o b.jsonl.zst --settings b.json");
    place.ok("store import c b.jsonl.zst --settings b.json");
    place.ok("store export c -o c.jsonl.gz");
    place.ok("store import c c.jsonl.gz");
    place.ok("store export c -o c.jsonl --json");
    assert_eq!(place.read("a.json"), place.read("b.json"));
    let settings: Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!(
        (&settings["recipe"], &settings["threshold"]),
        (&json!("words-3"), &json!(0.7))
    );
    let again = documents(&place, "c.jsonl");
    let without_verdicts = |rows: &[Value]| -> Vec<_> {
        rows.iter()
            .map(|row| {
                (
                    row["id"].clone(),
                    row["text"].clone(),
                    row["time_us"].clone(),
                )
            })
            .collect()
    };
    assert_eq!(without_verdicts(&exported), without_verdicts(&again));
    let service = Service::start(&place, "");
    let shown = service.get("/v1/collections/b").json();
    assert_eq!(shown["settings"], settings);
    let stats = service.get("/v1/collections/b/stats").json();
    assert_eq!(stats["rows"], 299);
}

/// Rows that cannot be inserted are reported and skipped, as in other commands.
#[test]
fn import_reports_and_skips_bad_rows() {
    let place = Place::new();
    place.write("settings.json", "{}");
    let lines = [
        "\u{feff}{\"id\":\"a\",\"time_us\":0,\"text\":\"one two three\"}",
        "{\"id\":\"b\"}",
        "",
        "{\"id\":\"a\",\"time_us\":0,\"text\":\"something else\"}",
        "{\"id\":\"\",\"time_us\":0,\"text\":\"x\"}",
        "{\"id\":\"c\",\"time_us\":0,\"text\":\"other words here\"}",
    ];
    place.write("in.jsonl", lines.join("\n"));
    let ran = place.run("store import new in.jsonl --settings settings.json");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for said in [
        "in.jsonl:2: missing field `time_us` at column 10",
        "in.jsonl:4: document 'a' exists with other content",
        "in.jsonl:5: the id '' has 0 bytes",
        "2 documents imported, 3 bad rows skipped",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    let ran = place.run("store import new in.jsonl --json");
    let summary: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(
        summary,
        json!({ "documents": 2, "new": 0, "existing": 2, "decisions": 0, "rejected": 3 })
    );
    assert_eq!(place.ok("store export new").text().lines().count(), 2);
}

/// Sketches are a cache: without them a collection is intact, and the report says that they will be rebuilt.
#[test]
fn wrong_sketches_are_reported() {
    let place = place();
    damage(&place, ".sketches");
    let said = place.ok("store verify data/a").err;
    assert!(
        said.contains("the service computes them again from the texts"),
        "{said}"
    );
    assert!(said.contains(": whole"), "{said}");
}

/// Missing rows are noticed by every command, and the texts beside them stay.
#[test]
fn lost_rows_are_reported_and_texts_kept() {
    let place = place();
    std::fs::remove_file(database(&place)).unwrap();
    let texts = place.path("data/a/0000000000000001.texts");
    let lost = "'0000000000000001.rows' is damaged";
    for command in ["verify data/a", "repair data/a data/mended"] {
        let ran = place.run(&format!("store {command}"));
        assert_ne!(ran.code, Some(0));
        assert!(ran.err.contains(lost), "{}", ran.err);
        assert!(texts.exists());
    }
    let service = Service::launch(&place, "");
    while service.get("/readyz").json()["opening"] != json!([]) {}
    assert_eq!(service.get("/readyz").json()["failed"], json!(["a"]));
    assert!(texts.exists());
    let (_, log) = service.stop();
    assert!(log.contains("0000000000000001.rows"), "{log}");
}

/// A damaged text is reported to every request that is compared with it, and by health and metrics.
#[test]
fn damaged_text_is_reported_everywhere() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let words = "one two three four five six seven eight nine ten eleven";
    let text = format!("{words} twelve");
    service.make("a", json!({}));
    service.post("/v1/collections/a/documents", &document("x", &text));
    drop(service);
    damage(&place, ".texts");
    let service = Service::start(&place, "");
    let near = document("secret-id", &format!("{words} thirteen"));
    for path in ["query", "documents"] {
        let path = format!("/v1/collections/a/{path}");
        let refused = service.post(&path, &near);
        assert_eq!(refused.problem(), (500, "damaged".into()));
        let lines = service.post_lines(&path, near.to_string().as_bytes());
        assert_eq!(lines[0]["problem"]["code"], "damaged");
    }
    let ready = service.get("/readyz");
    let damaged = &ready.json()["damaged"];
    assert_eq!((ready.status, damaged), (503, &json!(["a"])));
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("lookalike_collection_damaged{collection=\"a\"} 1\n"));
    assert!(metrics.contains("lookalike_collection_up{collection=\"a\"} 1\n"));
    let (_, log) = service.stop();
    assert!(log.contains("ERROR") && log.contains("damaged"), "{log}");
    assert!(
        !log.contains("secret-id") && !log.contains("seven"),
        "{log}"
    );
}

/// While the disk refuses to read rows, the service is not ready, and says which collection it is.
#[test]
fn readiness_reports_unreadable_rows() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    service.make("whole", json!({}));
    // More rows than the database keeps in memory.
    let meta = "m".repeat(8000);
    let line = |at: usize| json!({ "id": at.to_string(), "text": format!("text number {at}"), "meta": meta });
    let lines: String = (0..400).map(|at| format!("{}\n", line(at))).collect();
    let documents = "/v1/collections/a/documents";
    service.post_lines(documents, lines.as_bytes());
    assert_eq!(service.get("/readyz").status, 200);
    let path = database(&place);
    let bytes = std::fs::read(&path).unwrap();
    // The end of the file is gone, and the service has it open.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 14).unwrap();
    let get = |at: usize| service.get(&format!("{documents}/{at}"));
    let refused = (0..400).map(get).find(|reply| reply.status != 200).unwrap();
    assert_eq!(refused.problem(), (500, "disk".into()));
    for _ in 0..2 {
        let ready = service.get("/readyz");
        assert_eq!(
            (ready.status, &ready.json()["unreadable"]),
            (503, &json!(["a"]))
        );
    }
    let metrics = service.get("/metrics").text();
    for (name, value) in [("a", 1), ("whole", 0)] {
        let said = format!("lookalike_collection_unreadable{{collection=\"{name}\"}} {value}\n");
        assert!(metrics.contains(&said), "{metrics}");
    }
    let listed = service.get("/v1/collections").json();
    assert_eq!(listed["collections"][0]["state"], "unreadable");
    service.kill();
    std::fs::write(&path, bytes).unwrap();
    let service = Service::start(&place, "");
    assert_eq!(service.get(&format!("{documents}/399")).status, 200);
}

/// Restored and imported files hold texts, so only their owner can read them.
#[cfg(unix)]
#[test]
fn restored_and_imported_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    service.make("a", json!({}));
    service.post("/v1/collections/a/documents", &document("x", "some text"));
    let made = service.post("/v1/collections/a/snapshot", &json!({ "name": "b" }));
    assert_eq!(made.status, 201, "{}", made.text());
    drop(service);
    place.ok("store restore copies/a/b restored");
    place.ok("store export data/a -o a.jsonl --settings a.json");
    place.ok("store import imported a.jsonl --settings a.json");
    place.ok("store repair data/a repaired");
    let mode = |path: std::path::PathBuf| {
        let metadata = std::fs::metadata(path).unwrap();
        metadata.permissions().mode() & 0o777
    };
    for directory in ["restored", "imported", "repaired"] {
        assert_eq!(mode(place.path(directory)), 0o700, "{directory}");
        let files = files_in(&place, directory);
        assert!(files.len() > 3, "{files:?}");
        for (name, _) in files {
            let path = place.path(directory).join(&name);
            assert_eq!(mode(path), 0o600, "{directory}/{name}");
        }
    }
}

#[test]
fn damage_is_found_and_repaired() {
    let place = place();
    damage(&place, ".texts");
    let ran = place.run("store verify data/a --json");
    let report: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains("is damaged") && ran.err.contains("store repair"),
        "{}",
        ran.err
    );
    let readable = report["documents"].as_u64().unwrap();
    assert!(readable < 299 && !report["findings"].as_array().unwrap().is_empty());
    let ran = place.run("store repair data/a data/mended");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.err.contains("warning:") && ran.err.contains("written to data/mended"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("documents have returned"), "{}", ran.err);
    place.ok("store verify data/mended");
    let service = Service::launch(&place, "");
    while service.get("/readyz").json()["opening"] != json!([]) {}
    let rows = service.get("/v1/collections/mended/stats").json()["rows"]
        .as_u64()
        .unwrap();
    assert!(
        rows <= readable && rows + 2 >= readable,
        "{rows} of {readable}"
    );
}

/// A collection without its manifest is repaired if the original settings are given.
#[test]
fn lost_manifest_is_repaired() {
    let place = place();
    place.ok("store export data/a -o before.jsonl --settings a.json");
    std::fs::remove_file(place.path("data/a/manifest")).unwrap();
    place.refused("store repair data/a mended", &["manifest", "--settings"]);
    place.write("b.json", r#"{"threshold":0.5}"#);
    let ran = place.run("store repair data/a mended --settings b.json");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("no partition belongs to"), "{}", ran.err);
    assert!(!place.has("mended"));
    place.ok("store repair data/a mended --settings a.json");
    place.ok("store export mended -o after.jsonl");
    let count = |name: &str| place.read(name).lines().count();
    assert_eq!(count("before.jsonl"), count("after.jsonl"));
}

/// Settings that were changed are exported with those of the creation. Each of the two files, the export and the answer
/// of the service, replaces a lost manifest; the repaired and the imported collection have the changed settings.
#[test]
fn changed_settings_are_repaired_and_imported() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let path = "/v1/collections/a";
    service.make("a", json!({ "window": "1d", "recipe": "words-3" }));
    let changed = json!({ "window": "3d", "on_conflict": "replace" });
    let mut connection = service.connect();
    assert_eq!(connection.json("PATCH", path, &changed).status, 200);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    for (id, hours) in [("old", 40), ("new", 0)] {
        let text = format!("the words of the {id} document of this test");
        let sent = json!({ "id": id, "text": text, "time": now - hours * 3600 });
        let answer = service.post(&format!("{path}/documents"), &sent).json();
        assert_eq!(answer["verdict"], "kept");
    }
    place.write("answer.json", service.get(path).text());
    assert_eq!(service.stop().0, Some(0));
    place.ok("store export data/a -o all.jsonl --settings export.json --quiet");
    let exported: Value = serde_json::from_str(&place.read("export.json")).unwrap();
    assert_eq!(
        (&exported["window"], &exported["created"]["window"]),
        (&json!("3d"), &json!("1d"))
    );
    let current = json!({ "window": "3d", "on_conflict": "replace", "recipe": "words-3" });
    place.write("current.json", current.to_string());
    std::fs::remove_file(place.path("data/a/manifest")).unwrap();
    place.refused(
        "store repair data/a none --settings current.json",
        &["no partition belongs", "those of its creation"],
    );
    place.ok("store repair data/a data/b --settings export.json --quiet");
    place.ok("store repair data/a data/c --settings answer.json --quiet");
    place.ok("store import data/d all.jsonl --settings export.json --quiet");
    std::fs::remove_dir_all(place.path("data/a")).unwrap();
    let service = Service::start(&place, "");
    for name in ["b", "c", "d"] {
        let path = format!("/v1/collections/{name}");
        let shown = service.get(&path).json();
        let settings = &shown["settings"];
        assert_eq!(
            (&settings["window"], &settings["on_conflict"]),
            (&json!("3d"), &json!("replace")),
            "{shown}"
        );
        assert_eq!(service.get(&format!("{path}/stats")).json()["rows"], 2);
    }
}

/// Returns the path of the database of the collection.
fn database(place: &Place) -> std::path::PathBuf {
    let files = std::fs::read_dir(place.path("data/a")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_database = |it: &std::path::PathBuf| it.to_str().unwrap().ends_with(".rows");
    files.find(is_database).unwrap()
}

const PAGE: usize = 4096;

/// Any page of a database is lost: it is named, and other collections stay in service.
#[test]
fn zeroed_page_is_damage() {
    let place = place();
    let service = Service::start(&place, "");
    service.make("whole", json!({}));
    drop(service);
    let path = database(&place);
    let bytes = std::fs::read(&path).unwrap();
    let mut unopened = 0;
    for at in (0..bytes.len()).step_by(PAGE) {
        if bytes[at..].iter().take(PAGE).all(|&byte| byte == 0) {
            continue;
        }
        let mut damaged = bytes.clone();
        damaged[at..]
            .iter_mut()
            .take(PAGE)
            .for_each(|byte| *byte = 0);
        std::fs::write(&path, &damaged).unwrap();
        let ran = place.run("store verify data/a");
        assert!(
            !ran.err.contains("mistake in the program"),
            "{at}: {}",
            ran.err
        );
        if ran.code == Some(0) {
            continue;
        }
        assert!(matches!(ran.code, Some(1 | 2)), "{at}: {:?}", ran.code);
        assert!(ran.err.contains("is damaged"), "{at}: {}", ran.err);
        std::fs::write(&path, &damaged).unwrap();
        let new = format!("mended-{at}");
        let ran = place.run(&format!("store repair data/a {new}"));
        assert_eq!(ran.code, Some(1), "{at}: {}", ran.err);
        place.ok(&format!("store verify {new}"));
        std::fs::write(&path, &damaged).unwrap();
        let service = Service::launch(&place, "");
        while service.get("/readyz").json()["opening"] != json!([]) {}
        let sent = service.post(
            "/v1/collections/whole/documents",
            &document("x", "some text"),
        );
        assert_eq!(sent.status, 200);
        unopened += usize::from(service.get("/readyz").json()["failed"] == json!(["a"]));
    }
    assert!(unopened > 0);
}

#[test]
fn invalid_collections_are_refused() {
    let place = place();
    place.refused(
        "store verify none",
        &["none is not a collection", "manifest"],
    );
    assert!(!place.has("none"));
    place.refused("store verify data", &["name one of data/a"]);
    place.refused(
        "store repair data/a data/a",
        &["data/a already is a collection"],
    );
    place.refused(
        "store export data/a --json",
        &["--json needs standard output"],
    );
    place.write("bad.jsonl", "{\"id\":\"x\"}\n");
    place.write("settings.json", "{}");
    place.write("wrong.json", "{\"windw\":\"2d\"}");
    place.refused(
        "store import data/a bad.jsonl --settings settings.json",
        &["data/a already is a collection"],
    );
    place.refused(
        "store import new bad.jsonl --settings wrong.json",
        &["wrong.json", "`windw` is unknown"],
    );
    place.refused(
        "store import new none.jsonl --settings settings.json",
        &["cannot read none.jsonl"],
    );
    assert!(!place.has("new"));
    place.refused("store import data/a bad.jsonl --strict", &["bad.jsonl:1: "]);
    place.refused(
        "store import new bad.jsonl --settings settings.json --strict",
        &["bad.jsonl:1: missing field `time_us` at column 10"],
    );
    assert!(!place.has("new"));
    for name in ["x.csv", "x.parquet", "x.tsv.gz"] {
        place.refused(&format!("store export data/a -o {name}"), &[name, "JSONL"]);
        assert!(!place.has(name));
    }
    let _service = Service::start(&place, "");
    place.refused("store verify data/a", &["another process has"]);
}

/// Snapshots in a directory and in an object store are restored as the collection was.
#[test]
fn snapshots_are_restored() {
    let place = Place::new();
    let directory = place.path("copies");
    let url = format!("file://{}", place.path("in/a/bucket").display());
    std::fs::create_dir_all(place.path("in/a/bucket")).unwrap();
    for (number, snapshots) in [directory.display().to_string(), url].iter().enumerate() {
        let name = format!("c{number}");
        let service = Service::start(&place, &format!("--snapshots {snapshots}"));
        service.make(&name, json!({ "recipe": "words-3", "threshold": 0.7 }));
        let corpus = corpus_jsonl(&Numbers::new(8).corpus(300));
        let path = format!("/v1/collections/{name}");
        service.post_lines(&format!("{path}/documents"), corpus.as_bytes());
        service.delete(&format!("{path}/documents/d7"));
        let monday = json!({ "name": "monday" });
        let made = service.post(&format!("{path}/snapshot"), &monday);
        assert_eq!(made.status, 201, "{}", made.text());
        let again = service.post(&format!("{path}/snapshot"), &monday);
        assert_eq!(again.problem(), (409, "snapshot_conflict".into()));
        service.post(&format!("{path}/documents"), &document("y", "a later one"));
        drop(service);
        let ran = place.ok(&format!(
            "store restore {snapshots}/{name}/monday data/again{number}"
        ));
        let whole = "299 documents with 301 rows in 1 partition: whole";
        assert!(ran.err.contains(whole), "{}", ran.err);
        place.refused(
            &format!("store restore {snapshots}/{name}/monday data/again{number}"),
            &["already is a collection"],
        );
        place.refused(
            &format!("store restore {snapshots}/{name}/tuesday data/new"),
            &["tuesday"],
        );
        assert!(!place.path("data/new").exists());
        let service = Service::start(&place, "");
        let at = |id: &str| service.get(&format!("/v1/collections/again{number}/documents/{id}"));
        assert_eq!(
            [at("d8").status, at("d7").status, at("y").status],
            [200, 404, 404]
        );
    }
}

/// Returns the names and contents of the files in a directory.
fn files_in(place: &Place, directory: &str) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(place.path(directory)).unwrap();
    let mut files: Vec<_> = files
        .map(|file| {
            let entry = file.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A snapshot may be on a read-only disk: no file is created or changed there.
#[test]
fn snapshot_is_read_only() {
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    service.make("a", json!({}));
    let corpus = corpus_jsonl(&Numbers::new(8).corpus(300));
    service.post_lines("/v1/collections/a/documents", corpus.as_bytes());
    let made = service.post("/v1/collections/a/snapshot", &json!({ "name": "b" }));
    assert_eq!(made.status, 201, "{}", made.text());
    drop(service);
    std::fs::remove_file(place.path("copies/a/b/lock")).unwrap();
    let before = files_in(&place, "copies/a/b");
    place.ok("store verify copies/a/b");
    place.ok("store restore copies/a/b restored");
    place.ok("store repair copies/a/b repaired");
    assert!(files_in(&place, "copies/a/b") == before);
    for directory in ["restored", "repaired"] {
        let said = place.ok(&format!("store verify {directory}")).err;
        assert!(said.contains("300 documents"), "{said}");
    }
}

/// A snapshot taken while documents arrive contains all documents up to one of them, with their answers.
#[test]
fn snapshot_of_running_service_is_a_prefix() {
    let place = Place::new();
    let url = format!("file://{}", place.path("bucket").display());
    std::fs::create_dir(place.path("bucket")).unwrap();
    let service = Service::start(&place, &format!("--snapshots {url}"));
    service.make("a", json!({}));
    let corpus = corpus_jsonl(&Numbers::new(9).corpus(6000));
    let lines: Vec<&str> = corpus.lines().collect();
    let ledger = Mutex::new(HashMap::new());
    let answered = || ledger.lock().unwrap().len();
    let snapshot = |name: &str| {
        let before = answered();
        let made = service.post("/v1/collections/a/snapshot", &json!({ "name": name }));
        assert_eq!(made.status, 201, "{}", made.text());
        (name.to_owned(), before)
    };
    let snapshots: Vec<_> = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            for portion in lines.chunks(20) {
                let body = portion.join("\n");
                let answers = service.post_lines("/v1/collections/a/documents", body.as_bytes());
                let answers = answers
                    .into_iter()
                    .map(|answer| (answer["seq"].as_u64().unwrap(), answer));
                ledger.lock().unwrap().extend(answers);
            }
        });
        let mut snapshots = Vec::new();
        while !sending.is_finished() && snapshots.len() < 12 {
            std::thread::sleep(Duration::from_millis(30));
            snapshots.push(snapshot(&format!("s{}", snapshots.len())));
        }
        snapshots
    });
    drop(service);
    let ledger = ledger.into_inner().unwrap();
    assert_eq!(ledger.len(), lines.len());
    let mut lengths = Vec::new();
    for (name, before) in &snapshots {
        place.ok(&format!("store restore {url}/a/{name} {name}"));
        let exported = place.ok(&format!("store export {name}"));
        let rows = exported.text().lines().map(serde_json::from_str::<Value>);
        let mut length = 0;
        for row in rows.map(Result::unwrap) {
            length += 1;
            let answer = &ledger[&length];
            assert_eq!(row["seq"], length);
            for field in ["id", "of", "similarity"] {
                assert_eq!(row[field], answer[field], "{row} {answer}");
            }
        }
        assert!(
            length >= *before as u64,
            "{before} were answered, {length} copied"
        );
        lengths.push(length);
    }
    assert!(
        lengths.iter().any(|&length| length > 0 && length < 6000),
        "{lengths:?}"
    );
}
