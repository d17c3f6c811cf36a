//! Calls on many documents: lists, several by their ids, exports.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::guarded::{ADMIN, READ, WRITE, line, with_key};
use crate::service::{Connection, Service, document, wait_until};
use crate::support::{Numbers, Place, corpus_jsonl};

const DOCUMENTS: &str = "/v1/collections/a/documents";
const EXPORT: &str = "/v1/collections/a/export";

/// Starts a service with the collection `a`.
fn service(place: &Place, options: &str) -> Service {
    let service = Service::start(place, options);
    service.make("a", json!({}));
    service
}

/// Returns all documents that a query lists, read page by page.
fn list_all(service: &Service, query: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), json!(0));
    loop {
        let page = service.get(&format!("{DOCUMENTS}?after={after}&{query}"));
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        all.extend(page["documents"].as_array().unwrap().clone());
        after = page["next"].clone();
        if after.is_null() {
            return all;
        }
    }
}

fn ids(documents: &[Value]) -> Vec<&str> {
    documents
        .iter()
        .map(|document| document["id"].as_str().unwrap())
        .collect()
}

/// Lists have the documents of the collection in order, each as it is shown alone.
#[test]
fn documents_are_listed_in_pages() {
    let place = Place::new();
    let service = service(&place, "");
    assert_eq!(
        service.get(DOCUMENTS).json(),
        json!({ "documents": [], "next": null })
    );
    let corpus = corpus_jsonl(&Numbers::new(31).corpus(300));
    let answers = service.post_lines(DOCUMENTS, corpus.as_bytes());
    for id in ["d7", "d8", "d150"] {
        assert_eq!(service.delete(&format!("{DOCUMENTS}/{id}")).status, 204);
    }
    let expected: Vec<_> = answers
        .iter()
        .filter(|answer| !["d7", "d8", "d150"].contains(&answer["id"].as_str().unwrap()))
        .collect();
    for query in ["limit=7", "limit=1000", "text=false"] {
        let listed = list_all(&service, query);
        assert_eq!(listed.len(), expected.len());
        for (listed, answer) in listed.iter().zip(&expected) {
            for (field, value) in answer.as_object().unwrap() {
                assert_eq!(&listed[field], value, "{field}");
            }
            assert!(listed.get("text").is_none() && listed["time"].is_string());
        }
    }
    let with_texts = list_all(&service, "text=true&limit=50");
    for listed in with_texts.iter().step_by(17) {
        let id = listed["id"].as_str().unwrap();
        assert_eq!(listed, &service.get(&format!("{DOCUMENTS}/{id}")).json());
    }
    let kept = list_all(&service, "verdict=kept");
    let duplicates = list_all(&service, "verdict=duplicate");
    assert!(kept.iter().all(|it| it["verdict"] == "kept") && kept.len() > 10);
    assert!(duplicates.iter().all(|it| it["verdict"] == "duplicate") && duplicates.len() > 10);
    assert_eq!(kept.len() + duplicates.len(), expected.len());
    // Any sequence number is a place to go on from.
    let seq = answers[99]["seq"].as_u64().unwrap();
    let page = service
        .get(&format!("{DOCUMENTS}?after={seq}&limit=1"))
        .json();
    assert_eq!(page["documents"][0]["id"], answers[100]["id"]);
    let beyond = service
        .get(&format!("{DOCUMENTS}?after={}", u64::MAX))
        .json();
    assert_eq!(beyond, json!({ "documents": [], "next": null }));
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=x",
        "after=-1",
        "after=18446744073709551616",
        "text=1",
        "verdict=duplicates",
        "page=1",
        "limit=1&limit=2",
        "meta.=1",
        "meta.a=%4",
        "meta.a=%ff",
        "meta.a=1&meta.%61=1",
    ] {
        let refused = service.get(&format!("{DOCUMENTS}?{query}"));
        assert_eq!(refused.problem(), (400, "bad_request".into()), "{query}");
    }
    let many: String = (0..17).map(|at| format!("&meta.f{at}=1")).collect();
    let refused = service.get(&format!("{DOCUMENTS}?limit=1{many}"));
    assert!(
        refused
            .text()
            .contains("17 conditions on `meta`, more than the limit of 16")
    );
    let none = service.get("/v1/collections/none/documents");
    assert_eq!(none.problem(), (404, "no_collection".into()));
}

/// Conditions on fields of `meta` select documents by the type of the value.
#[test]
fn lists_are_filtered_by_meta() {
    let place = Place::new();
    let service = service(&place, "");
    for (id, meta) in [
        ("a", json!({ "source": "news", "n": 1, "ok": true })),
        ("b", json!({ "source": "news", "n": 2.0, "ok": false })),
        ("c", json!({ "source": "新华 社", "n": "2" })),
        ("d", json!({ "source": "a&b=c+d", "n": null })),
        ("e", json!(["news"])),
        ("f", Value::Null),
    ] {
        let sent = json!({ "id": id, "text": format!("the text of {id} alone"), "meta": meta });
        assert_eq!(service.post(DOCUMENTS, &sent).status, 200);
    }
    for (query, expected) in [
        ("meta.source=news", "ab"),
        ("meta.source=news&meta.n=2", "b"),
        ("meta.source=news&meta.n=2&verdict=duplicate", ""),
        ("meta.n=2e0", "b"),
        ("meta.n=%222%22", "c"),
        ("meta.n=null", "def"),
        ("meta.ok=true", "a"),
        ("meta.ok=%22true%22", ""),
        ("meta.source=%E6%96%B0%E5%8D%8E+%E7%A4%BE", "c"),
        ("meta.s%6Furce=%E6%96%B0%E5%8D%8E%20%E7%A4%BE", "c"),
        ("meta.source=a%26b=c%2Bd", "d"),
        ("meta.source=", ""),
        ("meta.other=1", ""),
    ] {
        let listed = list_all(&service, &format!("limit=1&{query}"));
        assert_eq!(ids(&listed).concat(), expected, "{query}");
    }
}

/// Conditions on fields of `meta` select clusters by the kept document, whatever its members have.
#[test]
fn clusters_are_filtered_by_meta() {
    let place = Place::new();
    let service = service(&place, "");
    for (id, text, source) in [
        ("a", "the text of the first cluster", "news"),
        ("b", "the text of the first cluster", "mail"),
        ("c", "other words are in the second one", "mail"),
        ("d", "other words are in the second one", "news"),
        ("e", "a third cluster with the same source", "news"),
        ("f", "a third cluster with the same source", "news"),
        ("g", "this document stays alone in its cluster", "news"),
    ] {
        let sent = json!({ "id": id, "text": text, "meta": { "source": source, "n": 1 } });
        assert_eq!(service.post(DOCUMENTS, &sent).status, 200);
    }
    let clusters = "/v1/collections/a/clusters";
    for (query, expected) in [
        ("", "ace"),
        ("&meta.source=news", "ae"),
        ("&meta.source=mail", "c"),
        ("&meta.source=news&meta.n=1", "ae"),
        ("&meta.source=news&meta.n=2", ""),
        ("&meta.other=null&prefer=max:n", "ace"),
    ] {
        let (mut found, mut after) = (String::new(), String::new());
        loop {
            let page = service.get(&format!("{clusters}?limit=1{query}{after}"));
            assert_eq!(page.status, 200, "{}", page.text());
            let page = page.json();
            for cluster in page["clusters"].as_array().unwrap() {
                found += cluster["cluster"].as_str().unwrap();
                assert_eq!(cluster["members"].as_array().unwrap().len(), 1);
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{query}");
    }
    let many: String = (0..17).map(|at| format!("&meta.f{at}=1")).collect();
    let refused = service.get(&format!("{clusters}?limit=1{many}"));
    assert_eq!(refused.problem(), (400, "bad_request".into()));
}

/// Cursors go on while documents are inserted and deleted.
#[test]
fn pages_continue_while_documents_change() {
    let place = Place::new();
    let service = service(&place, "");
    let insert = |from: usize| {
        let lines: String = (from..from + 100)
            .map(|at| {
                format!(
                    "{}\n",
                    document(&format!("d{at}"), &format!("text number {at}"))
                )
            })
            .collect();
        service.post_lines(DOCUMENTS, lines.as_bytes());
    };
    insert(0);
    let (mut seen, mut after, mut page_number) = (Vec::new(), json!(0), 0);
    while !after.is_null() {
        let page = service
            .get(&format!("{DOCUMENTS}?after={after}&limit=30"))
            .json();
        let listed = page["documents"].as_array().unwrap();
        seen.extend(ids(listed).into_iter().map(str::to_owned));
        after = page["next"].clone();
        match page_number {
            // The document of the cursor itself, one before it and one after it.
            0 => {
                let body = json!({ "ids": ["d29", "d3", "d40"] });
                assert_eq!(
                    service.post(&format!("{DOCUMENTS}/delete"), &body).status,
                    200
                );
            }
            1 => insert(100),
            _ => {}
        }
        page_number += 1;
    }
    let expected: Vec<_> = (0..200)
        .filter(|at| *at != 40)
        .map(|at| format!("d{at}"))
        .collect();
    assert_eq!(seen, expected);
}

/// Several documents are shown and deleted at once, in the order of their ids.
#[test]
fn documents_are_got_and_deleted_in_batches() {
    let place = Place::new();
    let service = service(&place, "");
    let (get, delete) = (format!("{DOCUMENTS}/get"), format!("{DOCUMENTS}/delete"));
    for (id, text) in [
        ("a", "one two three"),
        ("7", "one two three"),
        ("x/y", "others"),
    ] {
        service.post(DOCUMENTS, &document(id, text));
    }
    let body = json!({ "ids": ["x/y", "none", 7, "a", "a"] });
    let got = service.post(&get, &body).json();
    let shown = |id: &str| service.get(&format!("{DOCUMENTS}/{id}")).json();
    let (x, seven, a) = (shown("x%2Fy"), shown("7"), shown("a"));
    assert_eq!(got, json!({ "documents": [x, null, seven, a, a] }));
    // A number of characters cuts the texts, and nothing else.
    service.post(DOCUMENTS, &document("zh", "𝄞黎明时分"));
    let cut = json!({ "ids": ["a", "zh", "none"], "characters": 3 });
    let cut = service.post(&get, &cut).json();
    let (mut a_cut, mut zh_cut) = (a.clone(), shown("zh"));
    (a_cut["text"], zh_cut["text"]) = (json!("one"), json!("𝄞黎明"));
    assert_eq!(cut, json!({ "documents": [a_cut, zh_cut, null] }));
    service.delete(&format!("{DOCUMENTS}/zh"));
    let body = json!({ "ids": [7, "none", "x/y", "7"] });
    let results = json!({ "results": [
        { "id": "7", "deleted": true },
        { "id": "none", "deleted": false },
        { "id": "x/y", "deleted": true },
        { "id": "7", "deleted": false },
    ] });
    assert_eq!(service.post(&delete, &body).json(), results);
    for path in [&get, &delete] {
        let empty = service.post(path, &json!({ "ids": [] }));
        assert_eq!(empty.status, 200);
        let most: Vec<_> = (0..1000).map(|it| format!("none-{it}")).collect();
        assert_eq!(service.post(path, &json!({ "ids": most })).status, 200);
        let over = vec!["none"; 1001];
        let refused = service.post(path, &json!({ "ids": over }));
        assert_eq!(refused.problem(), (413, "too_large".into()));
        assert!(
            refused
                .text()
                .contains("1001 ids, more than the limit of 1000")
        );
        for body in [
            json!({}),
            json!(["a"]),
            json!({ "ids": "a" }),
            json!({ "ids": [null] }),
            json!({ "ids": [1.5] }),
            json!({ "ids": ["a"], "all": true }),
        ] {
            let refused = service.post(path, &body);
            assert_eq!(refused.problem(), (400, "bad_json".into()), "{body}");
        }
        let refused = service.post(&path.replace("/a/", "/none/"), &json!({ "ids": ["a"] }));
        assert_eq!(refused.problem(), (404, "no_collection".into()));
        let lines = [("Content-Type", "application/x-ndjson")];
        let refused = service
            .connect()
            .request("POST", path, &lines, b"{\"ids\":[]}");
        assert_eq!(refused.problem(), (415, "unsupported_type".into()));
        let huge = json!({ "ids": ["z".repeat(5 << 20)] });
        assert_eq!(
            service.post(path, &huge).problem(),
            (413, "too_large".into())
        );
    }
    assert_eq!(shown("a")["id"], "a");
    service.kill();
    // The deletions were on disk when they were answered.
    let service = Service::start(&place, "");
    assert_eq!(ids(&list_all(&service, "limit=9")), ["a"]);
    // More than 64 MiB of texts are not made into one answer.
    for id in 0..5 {
        let long = format!("{id} {}", "z".repeat(14 << 20));
        assert_eq!(
            service
                .post(DOCUMENTS, &document(&id.to_string(), &long))
                .status,
            200
        );
    }
    let refused = service.post(&get, &json!({ "ids": [0, 1, 2, 3, 4, "a"] }));
    assert_eq!(refused.problem(), (413, "too_large".into()));
    assert!(
        refused.text().contains("the first 5 of 6 documents"),
        "{}",
        refused.text()
    );
    let got = service.post(&get, &json!({ "ids": [0, 1, 2, 3] }));
    assert_eq!(got.json()["documents"][3]["id"], "3");
}

/// The words of paths are ids as well.
#[test]
fn documents_can_have_the_names_of_calls() {
    let place = Place::new();
    let service = service(&place, "");
    for id in ["get", "delete"] {
        service.post(DOCUMENTS, &document(id, &format!("the text of {id}")));
        let path = format!("{DOCUMENTS}/{id}");
        assert_eq!(service.get(&path).json()["id"], *id);
        assert_eq!(service.delete(&path).status, 204);
        assert_eq!(service.get(&path).problem(), (404, "no_document".into()));
        assert_eq!(service.put(&path, &json!({})).status, 405);
    }
}

#[test]
fn roles_hold_for_many_documents() {
    let place = Place::new();
    let keys = [
        line("read", READ),
        line("write", WRITE),
        line("admin", ADMIN),
    ];
    place.write("keys", keys.concat());
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    with_key(&service, ADMIN, "PUT", "/v1/collections/a", "{}");
    let body = "{\"ids\":[\"x\"]}";
    for (method, path, body, reads) in [
        ("GET", DOCUMENTS, "", true),
        ("GET", EXPORT, "", true),
        ("POST", &format!("{DOCUMENTS}/get"), body, true),
        ("POST", &format!("{DOCUMENTS}/delete"), body, false),
        ("GET", &format!("{DOCUMENTS}/delete"), "", true),
        ("DELETE", &format!("{DOCUMENTS}/get"), "", false),
    ] {
        let status = with_key(&service, READ, method, path, body).status;
        assert_eq!(status != 403, reads, "{method} {path}");
        assert_ne!(with_key(&service, WRITE, method, path, body).status, 403);
        assert_eq!(
            with_key(&service, "wrong-wrong-wron", method, path, body).status,
            401
        );
    }
}

/// Inserts an export into a new collection as it is. The documents must be the same, with their times and `meta`.
fn check_insertion_of_export(service: &Service, export: &str, settings: Value) {
    let documents_of = |lines: &str| -> Vec<Value> {
        let fields = ["id", "time_us", "text", "fingerprint", "meta"];
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|line| fields.map(|field| line[field].clone()).to_vec().into())
            .collect()
    };
    service.make("copy", settings);
    let answers = service.post_lines("/v1/collections/copy/documents", export.as_bytes());
    assert_eq!(answers.len(), export.lines().count());
    let copy = service.get("/v1/collections/copy/export").text();
    assert!(documents_of(&copy) == documents_of(export));
    assert_eq!(service.delete("/v1/collections/copy").status, 204);
}

/// An export over HTTP is that of the command, byte by byte.
#[test]
fn export_equals_the_command() {
    let place = Place::new();
    let service = service(&place, "");
    service.make("empty", json!({}));
    let codes_settings = json!({ "holds": "fingerprints", "recipe": "news-md5" });
    service.make("codes", codes_settings.clone());
    service.make(
        "window",
        json!({ "window": "2m", "refresh": true, "on_conflict": "replace" }),
    );
    let corpus = Numbers::new(33).corpus(3000);
    service.post_lines(DOCUMENTS, corpus_jsonl(&corpus).as_bytes());
    let ids: Vec<_> = (0..900).map(|at| format!("d{}", at * 3)).collect();
    service.post(&format!("{DOCUMENTS}/delete"), &json!({ "ids": ids }));
    let timed = corpus.iter().enumerate().map(|(at, (id, text))| {
        let time = 1_600_000_000 + at / 10;
        let sent = json!({ "id": id, "text": text, "time": time, "meta": { "at": at } });
        format!("{sent}\n")
    });
    let timed: String = timed.collect();
    service.post_lines("/v1/collections/window/documents", timed.as_bytes());
    let codes: String = (0..100u64)
        .map(|at| format!("{{\"id\":{at},\"fingerprint\":\"{:x}\"}}\n", at * 77))
        .collect();
    service.post_lines("/v1/collections/codes/documents", codes.as_bytes());
    let names = ["a", "empty", "codes", "window"];
    let exports = names.map(|name| {
        let reply = service.get(&format!("/v1/collections/{name}/export"));
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
        reply.text()
    });
    let counts = exports.each_ref().map(|it| it.lines().count());
    assert!(
        counts[0] > 2000 && counts[1] == 0 && counts[2] == 100 && counts[3] > 500,
        "{counts:?}"
    );
    let listed = list_all(&service, "limit=1000");
    assert_eq!(listed.len(), counts[0]);
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("lookalike_requests_total{call=\"export\",status=\"2xx\"} 4\n"));
    assert!(metrics.contains("lookalike_answer_bytes 0\n"));
    for (at, like) in [(0, json!({})), (2, codes_settings), (3, json!({}))] {
        check_insertion_of_export(&service, &exports[at], like);
    }
    assert_eq!(service.stop().0, Some(0));
    for (name, export) in names.iter().zip(&exports) {
        assert!(
            place.ok(&format!("store export data/{name}")).text() == export,
            "{name}"
        );
    }
    // It can be imported.
    place.write("a.jsonl", &exports[0]);
    place.ok("store export data/a -o same.jsonl --settings a.json");
    place.ok("store import copy a.jsonl --settings a.json");
}

#[test]
fn export_needs_a_framed_answer() {
    let place = Place::new();
    let service = service(&place, "");
    service.post(DOCUMENTS, &document("x", "some text"));
    let mut connection = service.connect();
    let head = format!("GET {EXPORT} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    connection.send(head.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains(" 400 ") && answer.contains("needs HTTP/1.1"),
        "{answer}"
    );
    for (path, status) in [
        ("/v1/collections/none/export", 404),
        (&format!("{EXPORT}?after=1"), 400),
    ] {
        assert_eq!(service.get(path).problem().0, status);
    }
}

/// Fills the collection `a` with documents of 60 kB.
fn fill(service: &Service, count: usize) {
    for portion in 0..count.div_ceil(100) {
        let lines: String = (0..100)
            .map(|at| {
                let number = portion * 100 + at;
                let text = format!("{number} {}", format!("w{number} ").repeat(9_000));
                format!("{}\n", document(&format!("d{number}"), &text))
            })
            .collect();
        service.post_lines(DOCUMENTS, lines.as_bytes());
    }
}

/// Begins an export and reads only its head.
fn begin_export(service: &Service) -> Connection {
    let mut connection = service.connect();
    let head = format!("GET {EXPORT} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.send(head.as_bytes()).unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let mut byte = [0];
        connection.stream.read_exact(&mut byte).unwrap();
        head.push(byte[0].into());
    }
    assert!(head.contains(" 200 ") && head.contains("chunked"), "{head}");
    connection
}

/// Reads the rest of an export. Returns what came, and `true` if it was complete.
fn read_rest(mut connection: Connection) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        match connection.chunk(&mut body) {
            Ok(true) => {}
            Ok(false) => return (body, true),
            Err(_) => return (body, false),
        }
    }
}

/// Clients that do not read their exports keep no lock and little memory, and nobody waits for them. The documents
/// of the beginning that still exist are in the export, however late it is read.
#[test]
fn slow_exports_hold_nothing() {
    let place = Place::new();
    let service = service(&place, "--max-queue 32Mi --max-document 1Mi");
    fill(&service, 500);
    let before = service.peak_memory();
    let slow: Vec<_> = (0..12).map(|_| begin_export(&service)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    for at in 0..20 {
        let sent = document(&format!("later-{at}"), &format!("later text number {at}"));
        assert_eq!(service.post(DOCUMENTS, &sent).status, 200);
        assert_eq!(service.get(&format!("{DOCUMENTS}?limit=5")).status, 200);
    }
    assert_eq!(service.delete(&format!("{DOCUMENTS}/d499")).status, 204);
    let other = service.get(EXPORT);
    assert_eq!(other.lines().len(), 519);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let metrics = service.get("/metrics").text();
    let held = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lookalike_answer_bytes "));
    let held: u64 = held.unwrap().parse().unwrap();
    assert!(held > 0 && held < 12 * (2 << 20), "{held}");
    let grown = service.peak_memory() - before;
    // The texts of all exports take 330 MB. What the allocator keeps varies by 80 MB from run to run.
    assert!(grown < 160 << 20, "{grown}");
    for connection in slow {
        let (body, is_complete) = read_rest(connection);
        assert!(is_complete);
        let lines = String::from_utf8(body).unwrap();
        let found: HashSet<String> = lines
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let expected: HashSet<_> = (0..499).map(|at| format!("d{at}")).collect();
        assert_eq!(found, expected);
    }
}

/// An export ends when its client is silent for too long or disconnects, and gives back what it holds.
#[test]
fn abandoned_exports_end() {
    let place = Place::new();
    let service = service(&place, "--body-timeout 0.6s");
    fill(&service, 500);
    let silent = begin_export(&service);
    drop(begin_export(&service));
    wait_until("the exports do not end", || {
        let metrics = service.get("/metrics").text();
        ["lookalike_connections 1\n", "lookalike_answer_bytes 0\n"]
            .iter()
            .all(|line| metrics.contains(line))
    });
    let (_, is_complete) = read_rest(silent);
    assert!(!is_complete);
    assert_eq!(service.get(EXPORT).lines().len(), 500);
    let (_, log) = service.stop();
    check_disconnected(&log, 2);
}

/// Checks that the log has one line for each of the exports whose client disconnected, and no warning.
fn check_disconnected(log: &str, exports: usize) {
    let about = |line: &&str| line.contains("call=\"export\"") || line.contains("an export");
    let lines: Vec<_> = log.lines().filter(about).collect();
    let ended = "the client disconnected before the end of its answer";
    let disconnected = lines.iter().filter(|line| line.contains(ended)).count();
    assert_eq!((disconnected, lines.len()), (exports, exports), "{log}");
    assert!(!log.contains("WARN"), "{log}");
}

/// A client that disconnects during an export is no warning, also if the export was slow.
#[test]
fn disconnected_export_is_one_line() {
    let place = Place::new();
    let service = service(&place, "--slow-request 1ms --log-requests");
    fill(&service, 500);
    drop(begin_export(&service));
    wait_until("the export does not end", || {
        let metrics = service.get("/metrics").text();
        metrics.contains("lookalike_answer_bytes 0\n")
            && metrics.contains("lookalike_requests_total{call=\"export\",status=\"4xx\"} 1\n")
    });
    let (_, log) = service.stop();
    let log: String = log
        .lines()
        .filter(|line| line.contains("export"))
        .map(|line| format!("{line}\n"))
        .collect();
    check_disconnected(&log, 1);
}

/// A deletion of the collection does not wait for an export that its client reads, and an export that ends early does
/// not look complete.
#[test]
fn deletion_and_stop_end_exports() {
    let place = Place::new();
    let service = service(&place, "--drain 0.3s");
    fill(&service, 500);
    let reader = begin_export(&service);
    let deleting = std::thread::scope(|scope| {
        let deleting = scope.spawn(|| service.delete("/v1/collections/a").status);
        wait_until("the deletion does not begin", || {
            service.get("/v1/collections/a").status != 200
        });
        let (_, is_complete) = read_rest(reader);
        assert!(!is_complete);
        deleting.join().unwrap()
    });
    assert_eq!(deleting, 204);
    service.make("a", json!({}));
    fill(&service, 500);
    let reader = begin_export(&service);
    let (code, log) = service.stop();
    assert_eq!(code, Some(0));
    assert!(log.contains("the time limit of --drain is over"), "{log}");
    let (_, is_complete) = read_rest(reader);
    assert!(!is_complete);
}

/// An export that meets a damaged text breaks off, or is refused if nothing was sent.
#[test]
fn damaged_export_is_not_complete() {
    let place = Place::new();
    let service = service(&place, "");
    fill(&service, 300);
    drop(service);
    let directory = fs::read_dir(place.path("data/a")).unwrap();
    let texts = directory
        .map(|directory| directory.unwrap().path())
        .find(|it| it.to_str().unwrap().ends_with(".texts"))
        .unwrap();
    let whole = fs::read(&texts).unwrap();
    for (at, is_begun) in [(whole.len() / 2, true), (whole.len() / 1000, false)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&texts, bytes).unwrap();
        let service = Service::start(&place, "");
        if is_begun {
            let (body, is_complete) = read_rest(begin_export(&service));
            let count = String::from_utf8(body).unwrap().lines().count();
            assert!(!is_complete && (20..200).contains(&count), "{count}");
        } else {
            assert_eq!(service.get(EXPORT).problem(), (500, "damaged".into()));
        }
        assert_eq!(service.get("/readyz").json()["damaged"], json!(["a"]));
        let ids: Vec<_> = (0..300).map(|at| format!("d{at}")).collect();
        let refused = service.post(&format!("{DOCUMENTS}/get"), &json!({ "ids": ids }));
        assert_eq!(refused.problem(), (500, "damaged".into()));
        // Lists without texts do not need the damaged part.
        assert_eq!(list_all(&service, "limit=1000").len(), 300);
        let metrics = service.get("/metrics").text();
        assert!(metrics.contains("lookalike_requests_total{call=\"export\",status=\"5xx\"} 1\n"));
    }
}
