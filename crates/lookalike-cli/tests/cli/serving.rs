//! The service: verdicts, ids, windows, clusters, and its reports about itself.

use std::collections::HashMap;
use std::sync::Barrier;

use lookalike_oracle::generate::generate_contained;
use serde_json::{Value, json};

use crate::service::{NDJSON, Service, document, wait_until};
use crate::support::{Numbers, Place, corpus_jsonl, gzip, jsonl, zstd};

/// Returns the documents that a batch run removes, each with the kept document and the similarity.
pub(crate) fn removed(place: &Place, options: &str) -> HashMap<String, (String, f64)> {
    place.ok(&format!(
        "dedup corpus.jsonl -o kept.jsonl --removed removed.tsv --quiet {options}"
    ));
    let rows = place.table("removed.tsv").into_iter();
    rows.map(|row| (row[0].clone(), (row[1].clone(), row[2].parse().unwrap())))
        .collect()
}

/// Returns the verdict of an answer in the same form.
pub(crate) fn evidence(answer: &Value) -> Option<(String, f64)> {
    assert!(answer.get("problem").is_none(), "{answer}");
    if answer["verdict"] == "kept" {
        assert_eq!(
            (&answer["of"], &answer["cluster"]),
            (&Value::Null, &answer["id"])
        );
        return None;
    }
    assert_eq!(
        (&answer["verdict"], &answer["of"]),
        (&json!("duplicate"), &answer["cluster"])
    );
    let of = answer["of"].as_str().unwrap().to_owned();
    Some((of, answer["similarity"].as_f64().unwrap()))
}

fn check_stream(corpus: &str, settings: &Value, options: &str) {
    let place = Place::new();
    place.write("corpus.jsonl", corpus);
    let expected = removed(&place, options);
    assert!(expected.len() > 10);
    let service = Service::start(&place, "");
    service.make("a", settings.clone());
    let answers = service.post_lines("/v1/collections/a/documents", corpus.as_bytes());
    assert_eq!(answers.len(), corpus.lines().count());
    for (seq, (answer, line)) in (1..).zip(answers.iter().zip(corpus.lines())) {
        let sent: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&answer["id"], &answer["seq"]), (&sent["id"], &json!(seq)));
        let expected = expected.get(answer["id"].as_str().unwrap());
        assert_eq!(evidence(answer).as_ref(), expected, "{settings} {answer}");
    }
}

#[test]
fn stream_verdicts_equal_batch_verdicts() {
    let corpus = corpus_jsonl(&Numbers::new(1).corpus(6000));
    check_stream(&corpus, &json!({}), "");
    let few: String = corpus
        .lines()
        .take(1500)
        .flat_map(|line| [line, "\n"])
        .collect();
    check_stream(
        &few,
        &json!({ "recipe": "words-3", "threshold": 0.6, "measure": "containment" }),
        "--recipe words-3 --threshold 0.6 --verify containment",
    );
    let contained = generate_contained(2000, 3);
    let contained = jsonl(contained.iter().map(|(id, text)| (&id[..], &text[..])));
    for threshold in [0.5, 0.9] {
        check_stream(
            &contained,
            &json!({ "threshold": threshold, "measure": "containment" }),
            &format!("--threshold {threshold} --verify containment"),
        );
    }
    check_stream(
        &few,
        &json!({ "method": "simhash", "distance": 6, "measure": "none" }),
        "--method simhash --distance 6 --verify none",
    );
}

#[test]
fn windowed_stream_verdicts_equal_batch() {
    let corpus = Numbers::new(2).corpus(2000);
    let lines = corpus.iter().enumerate().map(|(at, (id, text))| {
        let time = 1_600_000_000 + at / 3;
        format!("{}\n", json!({ "id": id, "text": text, "time": time }))
    });
    let lines: String = lines.collect();
    check_stream(
        &lines,
        &json!({ "window": "2m" }),
        "--window 2m --time time",
    );
}

#[test]
fn compressed_bodies_are_expanded() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let corpus = corpus_jsonl(&Numbers::new(3).corpus(500));
    service.make("plain", json!({}));
    let plain = service.post_lines("/v1/collections/plain/documents", corpus.as_bytes());
    let two = [gzip(&corpus.as_bytes()[..7]), gzip(&corpus.as_bytes()[7..])].concat();
    for (name, encoding, body) in [
        ("gzip", "gzip", gzip(corpus.as_bytes())),
        ("members", "gzip", two),
        ("zstd", "zstd", zstd(corpus.as_bytes())),
    ] {
        service.make(name, json!({}));
        let headers = [("Content-Type", NDJSON), ("Content-Encoding", encoding)];
        let path = format!("/v1/collections/{name}/documents");
        let reply = service.connect().request("POST", &path, &headers, &body);
        assert_eq!(
            (reply.status, reply.lines()),
            (200, plain.clone()),
            "{name}"
        );
    }
    let one = gzip(document("new", "one document").to_string().as_bytes());
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    let path = "/v1/collections/gzip/documents";
    assert_eq!(
        service
            .connect()
            .request("POST", path, &headers, &one)
            .status,
        200
    );
}

#[test]
fn concurrent_equal_documents_keep_exactly_one() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let (clients, rounds) = (12, 25);
    let mut numbers = Numbers::new(4);
    let texts: Vec<_> = (0..rounds).map(|_| numbers.text(12)).collect();
    let barrier = Barrier::new(clients);
    let client = |client: usize| {
        let mut connection = service.connect();
        let mut answers = Vec::new();
        for (round, text) in texts.iter().enumerate() {
            let sent = document(&format!("{round}-{client}"), text);
            barrier.wait();
            let path = "/v1/collections/a/documents";
            answers.push(if client.is_multiple_of(3) {
                let line = format!("{sent}\n");
                let headers = [("Content-Type", NDJSON)];
                let reply = connection.request("POST", path, &headers, line.as_bytes());
                reply.lines().remove(0)
            } else {
                connection.json("POST", path, &sent).json()
            });
        }
        answers
    };
    let answers: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..clients)
            .map(|at| scope.spawn(move || client(at)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for round in 0..rounds {
        let of_round = || answers.iter().map(|of_client| &of_client[round]);
        let kept: Vec<_> = of_round().filter(|it| it["verdict"] == "kept").collect();
        assert_eq!(kept.len(), 1);
        let first = of_round().map(|it| it["seq"].as_u64().unwrap()).min();
        assert_eq!(kept[0]["seq"].as_u64(), first);
        assert!(of_round().all(|it| it["cluster"] == kept[0]["id"]));
    }
}

#[test]
fn repeated_id_gets_the_first_answer() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    service.make("b", json!({ "on_conflict": "replace" }));
    for name in ["a", "b"] {
        let path = format!("/v1/collections/{name}/documents");
        let first = service.post(&path, &document("x", "one two three four"));
        let repeat = service.post(&path, &document("y", "one, two, three: four!"));
        assert_eq!(evidence(&repeat.json()), Some(("x".into(), 1.0)));
        for _ in 0..2 {
            let again = service.post(&path, &document("x", "one two three four"));
            assert_eq!(again.json(), first.json());
        }
        let again = service.post_lines(
            &path,
            document("y", "one, two, three: four!")
                .to_string()
                .as_bytes(),
        );
        assert_eq!(again, [repeat.json()]);
    }
    let other = document("x", "something else altogether");
    let refused = service.post("/v1/collections/a/documents", &other);
    assert_eq!(refused.problem(), (409, "id_conflict".into()));
    let lines = service.post_lines("/v1/collections/a/documents", other.to_string().as_bytes());
    assert_eq!(lines[0]["problem"]["code"], "id_conflict");
    assert_eq!(
        (&lines[0]["id"], &lines[0]["line"]),
        (&json!("x"), &json!(1))
    );

    let replaced = service.post("/v1/collections/b/documents", &other).json();
    assert_eq!(
        (&replaced["verdict"], &replaced["seq"]),
        (&json!("kept"), &json!(4))
    );
    let shown = service.get("/v1/collections/b/documents/y").json();
    assert_eq!(
        (&shown["of"], &shown["of_gone"]),
        (&json!("x"), &json!(true))
    );
    let third = document("z", "one two three four");
    assert_eq!(
        service.post("/v1/collections/b/documents", &third).json()["verdict"],
        "kept"
    );
}

#[test]
fn ids_that_clients_resolve_in_paths_stand_in_the_query() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let path = "/v1/collections/a/documents";
    let island = "nine men left the quiet island before the storm came";
    let texts = [
        (".", "the tram to the harbour does not run this weekend"),
        ("..", island),
        (
            "-",
            "wheat and barley were cheap on the market of this autumn",
        ),
    ];
    for (id, text) in texts {
        let inserted = service.post(path, &document(id, text)).json();
        assert_eq!(inserted["verdict"], "kept", "{id}");
    }
    for id in [".", "..", "-", "%2E", "%2e."] {
        let shown = service.get(&format!("{path}/-?id={id}")).json();
        assert_eq!(shown["id"], id.to_lowercase().replace("%2e", "."), "{id}");
    }
    assert_eq!(service.get(&format!("{path}/-")).json()["id"], "-");
    let copy = document("copy", &island.to_uppercase());
    assert_eq!(service.post(path, &copy).json()["of"], "..");
    let cluster = service.get("/v1/collections/a/clusters/-?id=..&members=5");
    assert_eq!(cluster.json()["members"][0]["id"], "copy");
    assert_eq!(service.delete(&format!("{path}/-?id=.")).status, 204);
    let gone = service.get(&format!("{path}/-?id=."));
    assert_eq!(gone.problem(), (404, "no_document".into()));
    // Two ids contradict each other.
    let both = service.get(&format!("{path}/copy?id=.."));
    assert_eq!(both.problem(), (400, "bad_request".into()));
    assert!(both.json()["detail"].as_str().unwrap().contains("'copy'"));
}

#[test]
fn documents_are_shown_queried_and_deleted() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let sent = json!({
        "id": "a/b?c", "text": "老船长解开了缆绳", "time": "2024-05-01T00:00:00Z",
        "meta": { "source": "x", "n": 1.50 },
    });
    let path = "/v1/collections/a/documents";
    assert_eq!(service.post(path, &sent).json()["verdict"], "kept");
    let shown = service.get(&format!("{path}/a%2Fb%3Fc")).json();
    for field in ["id", "text", "time", "meta"] {
        assert_eq!(shown[field], sent[field], "{field}");
    }
    assert_eq!(shown["of_gone"], false);

    let asked = document("q", "老船長解開了纜繩！");
    for _ in 0..2 {
        let answer = service.post("/v1/collections/a/query", &asked).json();
        assert_eq!(evidence(&answer), Some(("a/b?c".into(), 1.0)));
        assert_eq!(answer["seq"], Value::Null);
    }
    let lines = format!("{asked}\n{}\n", document("r", "别的事"));
    let answers = service.post_lines("/v1/collections/a/query", lines.as_bytes());
    assert_eq!(
        (&answers[0]["verdict"], &answers[1]["verdict"]),
        (&json!("duplicate"), &json!("kept"))
    );

    assert_eq!(
        service.get(&format!("{path}/q")).problem(),
        (404, "no_document".into())
    );
    assert_eq!(service.delete(&format!("{path}/a%2Fb%3Fc")).status, 204);
    assert_eq!(
        service.delete(&format!("{path}/a%2Fb%3Fc")).problem(),
        (404, "no_document".into())
    );
    assert_eq!(
        service.post("/v1/collections/a/query", &asked).json()["verdict"],
        "kept"
    );
}

#[test]
fn query_needs_no_id() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    service.make("codes", json!({ "holds": "fingerprints", "distance": 3 }));
    let insert = "/v1/collections/a/documents";
    let query = "/v1/collections/a/query";
    service.post(insert, &document("x", "one two three four"));
    let asked = json!({ "text": "one, two, three: four!" });
    let answer = service.post(query, &asked).json();
    let told = json!({
        "id": null, "verdict": "duplicate", "of": "x", "cluster": "x", "similarity": 1.0, "seq": null,
    });
    assert_eq!(answer, told);
    let new = json!({ "text": "something else altogether" });
    let answers = service.post_lines(
        query,
        format!("{asked}\n{new}\n{{\"id\":null}}\n").as_bytes(),
    );
    let kept = json!({
        "id": null, "verdict": "kept", "of": null, "cluster": null, "similarity": null, "seq": null,
    });
    assert_eq!(answers[..2], [told, kept]);
    assert_eq!(
        (&answers[2]["id"], &answers[2]["line"]),
        (&Value::Null, &json!(3))
    );
    // If an id is given, the document stored under it decides.
    let other = service.post(query, &document("x", "something else altogether"));
    assert_eq!(other.problem(), (409, "id_conflict".into()));
    assert_eq!(
        service
            .post(query, &document("x", "one two three four"))
            .json()["seq"],
        1
    );
    for (path, sent) in [
        (insert, &new),
        (insert, &json!({ "id": null, "text": "x" })),
    ] {
        let refused = service.post(path, sent);
        assert_eq!(refused.problem(), (400, "bad_json".into()));
        assert!(
            refused.text().contains("missing field `id`"),
            "{}",
            refused.text()
        );
    }
    let refused = service.post("/v1/collections/codes/query", &new).json();
    assert_eq!(
        refused["detail"],
        "document (without an id) has no fingerprint"
    );
    let lines = service.post_lines("/v1/collections/codes/query", new.to_string().as_bytes());
    assert_eq!(lines[0]["id"], Value::Null);
}

#[test]
fn future_time_makes_no_other_document_late() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({ "window": "2m" }));
    let path = "/v1/collections/a/documents";
    let ahead = json!({ "id": "ahead", "text": "of another year", "time": "2200-01-01" });
    assert_eq!(service.post(path, &ahead).json()["seq"], 1);
    assert_eq!(
        service.post(path, &document("x", "some text")).json()["seq"],
        2
    );
    assert_eq!(
        service.post(path, &document("y", "some text")).json()["of"],
        "x"
    );
    let longer = json!({ "window": "2m", "skew": "3m" });
    let refused = service.put("/v1/collections/b", &longer);
    assert_eq!(refused.problem(), (422, "bad_settings".into()));
    assert!(
        refused
            .text()
            .contains("`skew` is 3m, which is longer than the `window` of 2m"),
        "{}",
        refused.text()
    );
}

#[test]
fn bulk_time_ends_with_the_last_answer() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let mut connection = service.connect();
    let line = format!("{}\n", document("x", "some text"));
    let head = format!(
        "POST /v1/collections/a/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: {}\r\n\r\n",
        2 * line.len()
    );
    connection.send(head.as_bytes()).unwrap();
    connection.send(line.as_bytes()).unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        std::io::BufRead::read_line(&mut connection.stream, &mut head).unwrap();
    }
    let mut answers = Vec::new();
    connection.chunk(&mut answers).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let figure = |name: &str| {
        let metrics = service.get("/metrics").text();
        let name = format!("lookalike_request_seconds_{name}{{call=\"insert\"}} ");
        let figure = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&name))
            .unwrap()
            .parse::<f64>();
        figure.unwrap()
    };
    assert_eq!(figure("count"), 0.0);
    connection.send(line.as_bytes()).unwrap();
    while connection.chunk(&mut answers).unwrap() {}
    assert_eq!(answers.split(|&byte| byte == b'\n').count(), 3);
    assert_eq!(figure("count"), 1.0);
    assert!(figure("sum") >= 0.3);
}

#[test]
fn clusters_are_listed_by_pages() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let path = "/v1/collections/a";
    let mut numbers = Numbers::new(5);
    for group in 0..5 {
        let text = numbers.text(20);
        for member in 0..=group {
            let sent = document(&format!("{group}-{member}"), &text);
            service.post(&format!("{path}/documents"), &sent);
        }
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = service
            .get(&format!("{path}/clusters?limit=2&members=2{after}"))
            .json();
        found.extend(page["clusters"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    let names: Vec<_> = found
        .iter()
        .map(|it| it["cluster"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["1-0", "2-0", "3-0", "4-0"]);
    assert_eq!(
        (&found[1]["more"], &found[3]["more"]),
        (&json!(false), &json!(true))
    );
    let whole = service.get(&format!("{path}/clusters/4-0")).json();
    let members = whole["members"].as_array().unwrap();
    assert_eq!((members.len(), &whole["more"]), (4, &json!(false)));
    assert_eq!(members[0]["id"], "4-4");
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = service
            .get(&format!("{path}/clusters/4-0?members=3{after}"))
            .json();
        pages.push(page["members"].as_array().unwrap().len());
        assert_eq!(page["more"], json!(page["next"].is_u64()));
        let Some(next) = page["next"].as_u64() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(pages, [3, 1]);
    let kept = &whole["kept"]["seq"];
    for (after, code) in [(kept.to_string(), 422), ("x".to_owned(), 400)] {
        let refused = service.get(&format!("{path}/clusters/4-0?after={after}"));
        assert_eq!(refused.problem().0, code);
    }
    for id in ["4-1", "none"] {
        let none = service.get(&format!("{path}/clusters/{id}"));
        assert_eq!(none.problem(), (404, "no_cluster".into()));
    }
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=x",
        "page=1",
        "limit=1&limit=2",
    ] {
        let refused = service.get(&format!("{path}/clusters?{query}"));
        assert_eq!(refused.problem(), (400, "bad_request".into()), "{query}");
    }
}

/// The preferred document is the best by a field of `meta`, whatever the verdicts are.
#[test]
fn clusters_show_the_preferred_version() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let path = "/v1/collections/a";
    let mut numbers = Numbers::new(6);
    let (first, second) = (numbers.text(20), numbers.text(20));
    let insert = |id: &str, text: &str, meta: Value| {
        let sent = json!({ "id": id, "text": text, "meta": meta });
        service.post(&format!("{path}/documents"), &sent);
    };
    for (id, meta) in [
        ("kept", json!({ "quality": 2, "name": "b" })),
        ("low", json!({ "quality": -1.5, "name": "c" })),
        (
            "best",
            json!({ "quality": 9_007_199_254_740_993_u64, "at": { "quality": 1 } }),
        ),
        (
            "rounded",
            json!({ "quality": 9_007_199_254_740_992_u64, "name": "" }),
        ),
        ("same", json!({ "quality": "9007199254740993" })),
        ("none", json!([{ "quality": 1e300 }])),
    ] {
        insert(id, &first, meta);
    }
    for id in ["plain-1", "plain-2"] {
        insert(id, &second, json!({ "quality": null }));
    }
    let before = service.get(&format!("{path}/clusters")).json();
    let preferred = |query: &str| {
        let page = service.get(&format!("{path}/clusters?{query}")).json();
        let ids: Vec<_> = page["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                it["preferred"]["document"]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        ids.join(" ")
    };
    for (query, ids) in [
        ("prefer=max:quality", "best plain-1"),
        ("prefer=min:quality", "low plain-1"),
        ("prefer=max:name", "low plain-1"),
        ("prefer=min:name", "kept plain-1"),
        ("prefer=max:nothing&members=1", "kept plain-1"),
        ("prefer=max:at", "kept plain-1"),
        ("prefer=max:at.quality", "kept plain-1"),
    ] {
        assert_eq!(preferred(query), ids, "{query}");
    }
    let one = service.get(&format!(
        "{path}/clusters/kept?prefer=max:quality&members=1"
    ));
    let one = one.json();
    assert_eq!(one["kept"]["id"], "kept");
    let best = &one["preferred"];
    assert_eq!(best["document"]["verdict"], "duplicate");
    assert_eq!(best["document"]["of"], "kept");
    assert_eq!(best["value"], json!(9_007_199_254_740_993_u64));
    assert_eq!(
        (&best["considered"], &best["complete"]),
        (&json!(6), &json!(true))
    );
    let plain = service.get(&format!("{path}/clusters/plain-1?prefer=max:quality"));
    assert_eq!(plain.json()["preferred"]["value"], Value::Null);
    // The representative stays what it was, and nothing is preferred unless it is asked for.
    assert_eq!(service.get(&format!("{path}/clusters")).json(), before);
    assert!(before["clusters"][0].get("preferred").is_none());
    // A page compares the 100 newest members.
    for number in 0..100 {
        insert(&format!("more-{number}"), &first, json!({ "quality": 3 }));
    }
    let page = service
        .get(&format!("{path}/clusters?prefer=max:quality"))
        .json();
    let found = &page["clusters"][0]["preferred"];
    assert_eq!(found["document"]["id"], "more-0");
    assert_eq!(
        (&found["considered"], &found["complete"]),
        (&json!(101), &json!(false))
    );
    let one = service.get(&format!("{path}/clusters/kept?prefer=max:quality"));
    assert_eq!(one.json()["preferred"]["document"]["id"], "best");
    service.delete(&format!("{path}/documents/best"));
    let one = service.get(&format!("{path}/clusters/kept?prefer=max:quality"));
    assert_eq!(one.json()["preferred"]["document"]["id"], "same");
    let wide = service.get(&format!("{path}/clusters?prefer=max:quality&limit=101"));
    assert_eq!(wide.problem(), (400, "bad_request".into()));
    let long = format!("prefer=max:{}", "f".repeat(257));
    for query in [
        "prefer=quality",
        "prefer=max:",
        "prefer=first",
        "prefer=",
        &long,
    ] {
        for place in ["clusters", "clusters/kept"] {
            let refused = service.get(&format!("{path}/{place}?{query}"));
            assert_eq!(refused.problem(), (400, "bad_request".into()), "{query}");
        }
    }
}

#[test]
fn expired_documents_are_not_found() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({ "window": "1h" }));
    let path = "/v1/collections/a/documents";
    let at = |id: &str, seconds: i64| {
        let start = 1_600_000_000;
        let sent = json!({ "id": id, "text": "the same text each time", "time": start + seconds });
        service.post(path, &sent).json()
    };
    assert_eq!(at("a", 0)["verdict"], "kept");
    assert_eq!(at("b", 3600)["of"], "a");
    assert_eq!(at("c", 3601)["verdict"], "kept");
    assert_eq!(at("d", 7201)["of"], "c");
    let late = at("late", 0);
    assert_eq!(
        (&late["seq"], &late["verdict"]),
        (&Value::Null, &json!("kept"))
    );
    assert_eq!(service.get(&format!("{path}/late")).status, 404);
    let shown = service.get(&format!("{path}/d")).json();
    assert_eq!(shown["of_gone"], false);
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("lookalike_documents_total{collection=\"a\",result=\"late\"} 1"));
}

/// If the window follows the wall clock, a document leaves the window and the disk without any request.
/// `stats` and the metrics distinguish live documents from those that are still on disk.
#[test]
fn documents_expire_from_disk_without_writes() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("plain", json!({}));
    service.make(
        "wall",
        json!({ "window": "2s", "skew": "1s", "expire": "wall" }),
    );
    let settings = service.get("/v1/collections/wall").json();
    assert_eq!(settings["settings"]["expire"], "wall");
    let refused = service.put("/v1/collections/none", &json!({ "expire": "wall" }));
    assert_eq!(refused.problem(), (422, "bad_settings".into()));
    for name in ["plain", "wall"] {
        let path = format!("/v1/collections/{name}/documents");
        let answer = service.post(&path, &document("a", "words that nobody should keep"));
        assert_eq!(answer.status, 200);
    }
    let on_disk = || {
        let files = std::fs::read_dir(place.path("data/wall")).unwrap();
        let mut files = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
        let words = b"words that nobody";
        files.any(|file| file.windows(words.len()).any(|window| window == words))
    };
    assert!(on_disk());
    let begun = std::time::Instant::now();
    while on_disk() {
        assert!(begun.elapsed() < crate::service::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(service.get("/v1/collections/wall/documents/a").status, 404);
    let stats = service.get("/v1/collections/wall/stats").json();
    assert_eq!(
        (&stats["rows"], &stats["dead_rows"]),
        (&json!(0), &json!(0))
    );

    assert_eq!(
        service.delete("/v1/collections/plain/documents/a").status,
        204
    );
    let stats = service.get("/v1/collections/plain/stats").json();
    assert_eq!(
        (&stats["rows"], &stats["dead_rows"]),
        (&json!(0), &json!(2))
    );
    let metrics = service.get("/metrics").text();
    for figure in [
        "rows{collection=\"plain\"} 0\n",
        "dead_rows{collection=\"plain\"} 2\n",
    ] {
        assert!(
            metrics.contains(&format!("lookalike_collection_{figure}")),
            "{metrics}"
        );
    }
}

#[test]
fn collections_are_created_shown_and_deleted() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let path = "/v1/collections/news";
    assert_eq!(service.get(path).problem(), (404, "no_collection".into()));
    let settings = json!({ "threshold": 0.9, "window": "2d", "refresh": true });
    service.make("news", settings.clone());
    assert_eq!(service.put(path, &settings).status, 200);
    let shown = service.get(path).json();
    assert_eq!(service.put(path, &shown["settings"]).status, 200);
    assert_eq!(shown["settings"]["threshold"], 0.9);
    let recipe = place.ok("recipe default");
    assert!(recipe.text().contains(shown["recipe_id"].as_str().unwrap()));
    let other = service.put(path, &json!({ "threshold": 0.8 }));
    assert_eq!(other.problem(), (409, "collection_conflict".into()));
    let differ = "its `expire` is \"documents\", not null; its `refresh` is true, not null; its `skew` is \"5m\", not null; its `threshold` is 0.9, \
                  not 0.8; its `window` is \"2d\", not null";
    assert!(other.json()["detail"].as_str().unwrap().ends_with(differ));
    service.make(
        "codes",
        json!({ "method": "simhash", "measure": "none", "holds": "fingerprints" }),
    );
    let names = |service: &Service| {
        let listed = service.get("/v1/collections").json();
        let listed = listed["collections"].as_array().unwrap().clone();
        listed
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&service), ["codes", "news"]);
    for (name, settings, expected) in [
        ("Big", json!({}), (422, "bad_name")),
        ("a%2Fb", json!({}), (422, "bad_name")),
        ("%2E%2E", json!({}), (422, "bad_name")),
        ("x", json!({ "distance": 3 }), (422, "bad_settings")),
        ("x", json!({ "windw": "2d" }), (400, "bad_json")),
        ("x", json!([]), (400, "bad_json")),
    ] {
        let refused = service.put(&format!("/v1/collections/{name}"), &settings);
        assert_eq!(
            refused.problem(),
            (expected.0, expected.1.to_owned()),
            "{name} {settings}"
        );
    }
    let code = json!({ "id": "a", "fingerprint": "00000000000000ff" });
    let near = json!({ "id": "b", "fingerprint": "00000000000000fe" });
    let codes = "/v1/collections/codes/documents";
    assert_eq!(service.post(codes, &code).json()["verdict"], "kept");
    assert_eq!(service.post(codes, &near).json()["of"], "a");
    assert_eq!(
        service.get(&format!("{codes}/b")).json()["fingerprint"],
        near["fingerprint"]
    );
    assert_eq!(
        service.post(codes, &document("c", "text")).problem(),
        (422, "bad_document".into())
    );

    assert_eq!(service.delete(path).status, 204);
    assert_eq!(
        service.delete(path).problem(),
        (404, "no_collection".into())
    );
    assert!(!place.has("data/news"));
    service.make("news", json!({}));
    assert_eq!(service.get("/v1/collections/news/stats").json()["rows"], 0);
    drop(service);
    let service = Service::start(&place, "");
    assert_eq!(names(&service), ["codes", "news"]);
    assert_eq!(service.get(&format!("{codes}/b")).json()["of"], "a");
}

#[test]
fn collection_in_use_can_be_deleted() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let mut connection = service.connect();
    let head = format!(
        "POST /v1/collections/a/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let chunk = |line: &Value| format!("{:x}\r\n{line}\n\r\n", line.to_string().len() + 1);
    connection.send(head.as_bytes()).unwrap();
    connection
        .send(chunk(&document("1", "first text")).as_bytes())
        .unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        std::io::BufRead::read_line(&mut connection.stream, &mut head).unwrap();
    }
    let mut answers = Vec::new();
    // A single line is answered before the body has ended.
    connection.chunk(&mut answers).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&answers).unwrap()["verdict"],
        "kept"
    );
    std::thread::scope(|scope| {
        let deleting = scope.spawn(|| service.delete("/v1/collections/a"));
        while service.get("/v1/collections/a").status == 200 {}
        let _ = connection.send(chunk(&document("2", "second text")).as_bytes());
        let mut last = Vec::new();
        while connection.chunk(&mut last).unwrap_or(false) {}
        let last = String::from_utf8(last).unwrap();
        assert!(
            last.lines().last().unwrap().contains("\"deleting\""),
            "{last}"
        );
        assert_eq!(deleting.join().unwrap().status, 204);
    });
    assert!(!place.has("data/a"));
}

#[test]
fn compare_call_equals_the_command() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let (a, b) = ("the cat sat on the mat today", "the cat sat on a mat today");
    let reply = service.post(
        "/v1/compare",
        &json!({ "pairs": [{ "a": a, "b": b }, { "a": a, "b": a }], "threshold": 0.5 }),
    );
    let results = reply.json()["results"].as_array().unwrap().clone();
    let mut command = place.command("compare --literal --json --threshold 0.5");
    let printed: Value =
        serde_json::from_slice(&command.args([a, b]).output().unwrap().stdout).unwrap();
    for field in [
        "figures",
        "distance",
        "match",
        "similarity",
        "why",
        "blocks",
        "differences",
        "aligned",
    ] {
        assert_eq!(results[0][field], printed[field], "{field}");
    }
    // Texts that are equal after normalisation do not differ where they are aligned.
    let pair = json!({ "pairs": [{ "a": "The Cat", "b": "the cat" }] });
    let compared = service.post("/v1/compare", &pair).json();
    assert_eq!(
        compared["results"][0]["aligned"],
        json!([{ "a": "The", "b": "the" }, { "both": " " }, { "a": "Cat", "b": "cat" }])
    );
    assert_eq!(results[1]["similarity"], 1.0);

    place.write(
        "two.jsonl",
        corpus_jsonl(&[("1".into(), a.into()), ("2".into(), "!".into())]),
    );
    for options in [
        "",
        "--method minhash",
        "--method bottomk",
        "--digits binary",
    ] {
        let mut asked = json!({ "texts": [a, "!"] });
        let words: Vec<_> = options.split(' ').collect();
        if let [name, value] = words[..] {
            asked[name.trim_start_matches('-')] = value.into();
        }
        let made = service.post("/v1/fingerprint", &asked).json();
        place.ok(&format!("fingerprint two.jsonl -o out.jsonl {options}"));
        let printed: Value =
            serde_json::from_str(place.read("out.jsonl").lines().next().unwrap()).unwrap();
        assert_eq!(made["fingerprints"][0], printed["fingerprint"], "{options}");
        let second: Value =
            serde_json::from_str(place.read("out.jsonl").lines().nth(1).unwrap()).unwrap();
        assert_eq!(made["fingerprints"][1], second["fingerprint"], "{options}");
    }
    let segmented = service.post("/v1/segment", &json!({ "texts": [b] })).json();
    let mut command = place.command("segment --recipe jieba --quiet --literal");
    let printed = String::from_utf8(command.arg(b).output().unwrap().stdout).unwrap();
    let tokens: Vec<_> = segmented["results"][0]["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect();
    assert!(printed.contains(&tokens.join(" ")), "{printed}");
    assert_eq!(segmented["recipe"], "jieba");
    let weighed = service
        .post(
            "/v1/segment",
            &json!({ "texts": [b], "weights": true, "recipe": "default" }),
        )
        .json();
    assert_eq!(weighed["results"][0]["terms"][0]["term"], "the cat");
    for (path, asked, code) in [
        (
            "/v1/compare",
            json!({ "pairs": [{ "a": "x" }] }),
            (400, "bad_json"),
        ),
        (
            "/v1/compare",
            json!({ "pairs": [], "distance": 1 }),
            (422, "bad_settings"),
        ),
        (
            "/v1/compare",
            json!({ "pairs": [{ "a": "x".repeat(70_000), "b": "" }] }),
            (413, "too_large"),
        ),
        (
            "/v1/fingerprint",
            json!({ "texts": ["x"], "sentences": 1 }),
            (422, "bad_settings"),
        ),
        ("/v1/fingerprint", json!({}), (400, "bad_json")),
        (
            "/v1/segment",
            json!({ "texts": ["x"], "recipe": "x = 1\nsegment.user = \"/etc/passwd\"" }),
            (422, "bad_settings"),
        ),
        (
            "/v1/segment",
            json!({ "texts": ["x"], "window": "2d" }),
            (400, "bad_json"),
        ),
    ] {
        let refused = service.post(path, &asked);
        assert_eq!(
            refused.problem(),
            (code.0, code.1.to_owned()),
            "{path} {asked}"
        );
    }
}

/// A query with `limit` lists the kept documents that a scan finds, the most similar first and of equally similar
/// ones the earliest first.
#[test]
fn query_lists_the_most_similar_documents() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let settings = json!({ "recipe": "words-1", "method": "join", "threshold": 0.5 });
    service.make("a", settings);
    // Documents with half of the words of the query match it, and seldom one another.
    let words: Vec<String> = (0..10).map(|at| format!("word{at}")).collect();
    let asked = words.join(" ");
    let mut numbers = Numbers::new(9);
    let mut subset = |size: usize| {
        let mut chosen = words.clone();
        while chosen.len() > size {
            chosen.remove(numbers.below(chosen.len()));
        }
        chosen.join(" ")
    };
    let corpus: Vec<_> = (0..300)
        .map(|at| (format!("d{at}"), subset(4 + at % 3)))
        .collect();
    let lines = corpus_jsonl(&corpus);
    let answers = service.post_lines("/v1/collections/a/documents", lines.as_bytes());
    let mut expected: Vec<(f64, u64, &str)> = Vec::new();
    for (answer, (id, text)) in answers.iter().zip(&corpus) {
        let similarity = text.split(' ').count() as f64 / 10.0;
        if answer["verdict"] == "kept" && similarity >= 0.5 {
            expected.push((similarity, answer["seq"].as_u64().unwrap(), id));
        }
    }
    expected.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    assert!(expected.len() > 4 && expected[0].0 > 0.5, "{expected:?}");
    let query = |id: Option<&str>, limit: usize| {
        let path = format!("/v1/collections/a/query?limit={limit}");
        let reply = service.post(&path, &json!({ "id": id, "text": asked }));
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    for limit in [1, 2, expected.len(), 1000] {
        let found = query(None, limit);
        assert_eq!(found["verdict"], "duplicate");
        assert_eq!(found["of"], found["matches"][0]["id"]);
        let matches = expected
            .iter()
            .take(limit)
            .map(|(similarity, seq, id)| json!({ "id": id, "similarity": similarity, "seq": seq }));
        assert_eq!(found["matches"], Value::from_iter(matches), "{limit}");
    }
    // A query for a stored document does not list that document.
    service.post("/v1/collections/a/documents", &document("same", &asked));
    let stored = query(Some("same"), 1000);
    assert_eq!(stored["matches"].as_array().unwrap().len(), expected.len());
    let nothing = service.post(
        "/v1/collections/a/query?limit=5",
        &json!({ "text": "other" }),
    );
    assert_eq!(
        (&nothing.json()["verdict"], &nothing.json()["matches"]),
        (&json!("kept"), &json!([]))
    );
    let without = service.post("/v1/collections/a/query", &json!({ "text": asked }));
    assert!(without.json().get("matches").is_none());
    for (limit, said) in [
        ("0", "limit` is 0"),
        ("1001", "limit` is 1001"),
        ("many", "is 'many'"),
    ] {
        let path = format!("/v1/collections/a/query?limit={limit}");
        let reply = service.post(&path, &json!({ "text": asked }));
        assert_eq!(reply.problem(), (400, "bad_request".into()));
        assert!(reply.text().contains(said) && reply.text().contains("from 1 to 1000"));
    }
    let lines = [("Content-Type", NDJSON)];
    let path = "/v1/collections/a/query?limit=5";
    let reply = service.connect().request("POST", path, &lines, b"{}\n");
    assert_eq!(reply.problem(), (415, "unsupported_type".into()));
}

/// The nearest document of a text that matches nothing is that of a comparison with every kept one, by every measure.
#[test]
fn nearest_document_is_that_of_all_comparisons() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let mut numbers = Numbers::new(11);
    let words: Vec<String> = numbers.text(24).split(' ').map(str::to_owned).collect();
    let asked = words.join(" ");
    // Texts that share less and less with the one that is asked about, and one that shares nothing.
    let mut corpus: Vec<(String, String)> = (0..6)
        .map(|kept| {
            let own = numbers.text(8 + 2 * kept);
            let shared = words[..14 - 2 * kept].join(" ");
            (format!("near-{kept}"), format!("{shared} {own}"))
        })
        .collect();
    corpus.push(("far".to_owned(), numbers.text(24)));
    let all_settings = [
        json!({ "threshold": 0.9 }),
        json!({ "threshold": 0.95, "measure": "containment" }),
        json!({ "threshold": 0.95, "measure": "cosine" }),
        json!({ "threshold": 0.9, "measure": "levenshtein" }),
        json!({ "threshold": 0.9, "measure": "indel", "unit": "words" }),
        json!({ "threshold": 0.9, "measure": "lcs" }),
    ];
    for (at, settings) in all_settings.into_iter().enumerate() {
        let name = format!("a{at}");
        let collection = format!("/v1/collections/{name}");
        service.make(&name, settings.clone());
        let lines = corpus_jsonl(&corpus);
        service.post_lines(&format!("{collection}/documents"), lines.as_bytes());
        let mut request = settings.clone();
        let pairs = corpus
            .iter()
            .map(|(_, text)| json!({ "a": asked, "b": text }));
        request["pairs"] = Value::from_iter(pairs);
        let compared = service.post("/v1/compare", &request).json();
        let results = compared["results"].as_array().unwrap();
        let similarity = |at: usize| results[at]["similarity"].as_f64().unwrap();
        let best = (0..corpus.len())
            .rev()
            .max_by(|&one, &other| similarity(one).total_cmp(&similarity(other)));
        let best = best.unwrap();
        let query = |sent: Value| {
            let reply = service.post(&format!("{collection}/query?limit=5&nearest=true"), &sent);
            assert_eq!(reply.status, 200, "{}", reply.text());
            reply.json()
        };
        let found = query(json!({ "text": asked }));
        assert_eq!(
            (&found["verdict"], &found["matches"]),
            (&json!("kept"), &json!([]))
        );
        let document =
            json!({ "id": corpus[best].0, "similarity": similarity(best), "seq": best + 1 });
        let nearest = json!({ "document": document, "considered": corpus.len(), "complete": true });
        assert_eq!(found["nearest"], nearest, "{settings}");
        // A document is not its own nearest one, and one with a match has none.
        let own = query(json!({ "id": "near-0", "text": corpus[0].1 }));
        assert_eq!(own["nearest"]["considered"], corpus.len() - 1, "{settings}");
        assert_ne!(own["nearest"]["document"]["id"], "near-0");
        assert!(
            query(json!({ "text": corpus[0].1 }))
                .get("nearest")
                .is_none()
        );
        let unlike = query(json!({ "text": "§§ ¶¶" }));
        assert_eq!(unlike["nearest"]["document"], Value::Null, "{settings}");
    }
    service.make("codes", json!({ "holds": "fingerprints", "distance": 3 }));
    let fingerprint = json!({ "fingerprint": "86a5be3a5f7e2d11" });
    for (path, code) in [
        (
            "/v1/collections/codes/query?limit=1&nearest=true",
            "bad_settings",
        ),
        ("/v1/collections/codes/query?nearest=true", "bad_request"),
    ] {
        assert_eq!(service.post(path, &fingerprint).problem().1, code);
    }
}

/// Of many documents those are compared that share most with the text, and the answer says that they are not all.
#[test]
fn nearest_document_of_many_is_a_candidate() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let mut numbers = Numbers::new(12);
    let mut corpus: Vec<(String, String)> = (0..2100)
        .map(|at| (format!("other-{at}"), numbers.text(12)))
        .collect();
    let asked = numbers.text(40);
    let half: Vec<&str> = asked.split(' ').take(25).collect();
    corpus.push((
        "half".to_owned(),
        format!("{} {}", half.join(" "), numbers.text(15)),
    ));
    let lines = corpus_jsonl(&corpus);
    service.post_lines("/v1/collections/a/documents", lines.as_bytes());
    let path = "/v1/collections/a/query?limit=1&nearest=true";
    let found = service.post(path, &json!({ "text": asked })).json();
    let nearest = &found["nearest"];
    assert_eq!(nearest["document"]["id"], "half", "{nearest}");
    assert_eq!(nearest["complete"], false);
    assert!(nearest["considered"].as_u64().unwrap() < 100, "{nearest}");
}

/// The activity has every insert once, in intervals that follow each other.
#[test]
fn activity_shows_the_inserts_of_the_last_minutes() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    let mut numbers = Numbers::new(13);
    let text = numbers.text(12);
    for id in ["1", "2", "3"] {
        service.post("/v1/collections/a/documents", &document(id, &text));
    }
    let sum = |activity: &Value, field: &str| -> u64 {
        let samples = activity["samples"].as_array().unwrap();
        samples
            .iter()
            .map(|sample| sample[field].as_u64().unwrap())
            .sum()
    };
    wait_until("the inserts are in the activity", || {
        let activity = service.get("/v1/activity").json();
        sum(&activity, "kept") + sum(&activity, "duplicates") == 3
    });
    let activity = service.get("/v1/activity").json();
    assert_eq!(
        (sum(&activity, "kept"), sum(&activity, "duplicates")),
        (1, 2)
    );
    let classes = activity["bounds_seconds"].as_array().unwrap().len() + 1;
    let mut inserts = 0;
    for sample in activity["samples"].as_array().unwrap() {
        let times = sample["insert_times"].as_array().unwrap();
        assert!(times.is_empty() || times.len() == classes, "{sample}");
        inserts += times
            .iter()
            .map(|count| count.as_u64().unwrap())
            .sum::<u64>();
    }
    assert_eq!(inserts, 3);
}

#[test]
fn service_describes_itself() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    assert_eq!(service.get("/livez").json()["live"], true);
    let ready = json!({
        "ready": true, "collections": 1, "opening": [], "stopped": [], "failed": [], "full": [],
        "damaged": [], "unreadable": [],
    });
    assert_eq!(service.get("/readyz").json(), ready);
    let described = service.get("/openapi.json").json();
    let page = service.get("/").text();
    for (path, operations) in described["paths"].as_object().unwrap() {
        assert!(page.contains(&format!(" {path} ")), "{path}");
        let real = path.replace("{collection}", "a").replace("{id}", "none");
        for method in ["get", "put", "post", "delete"] {
            // Every described call is found, even without a body or a document.
            let reply = service
                .connect()
                .request(&method.to_uppercase(), &real, &[], b"");
            let described = operations.get(method).is_some();
            assert_eq!(reply.status == 405, !described, "{method} {path}");
            if real == "/v1/collections/a" && method == "delete" {
                service.make("a", json!({}));
            }
        }
    }
    let line = "/paths/~1v1~1collections~1{collection}~1documents/post/responses/200/content/\
                application~1x-ndjson/x-itemSchema/$ref";
    assert_eq!(
        described.pointer(line),
        Some(&json!("#/components/schemas/LineVerdict"))
    );
    service.post("/v1/collections/a/documents", &document("x", "some text"));
    // The budget of a document is released when it has been answered.
    let metrics = service.get("/metrics").text();
    for line in [
        "lookalike_documents_total{collection=\"a\",result=\"kept\"} 1",
        "lookalike_requests_total{call=\"insert\",status=\"2xx\"} 1",
        "lookalike_request_seconds_count{call=\"live\"} ",
        "lookalike_collection_up{collection=\"a\"} 1",
        "lookalike_queue_bytes 0",
        "lookalike_memory_bytes{collection=\"a\",part=\"ids\"}",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
    ] {
        for path in ["/", "/nothing", "/v1/collections/none"] {
            assert_eq!(service.get(path).header(name), Some(value), "{path}");
        }
    }
    let reply =
        service
            .connect()
            .request("OPTIONS", "/v1/collections", &[("Origin", "http://x")], b"");
    assert_eq!(reply.status, 405);
    assert!(!reply.head.to_lowercase().contains("access-control"));
    // Windows has no signals; `tools/systems/compare.py` ends a service there.
    #[cfg(unix)]
    {
        let (code, log) = service.stop();
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.contains("stopped") && !log.contains("some text"),
            "{log}"
        );
    }
}

#[test]
fn snapshots_open_as_collections() {
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    service.make("a", json!({}));
    service.post(
        "/v1/collections/a/documents",
        &document("x", "some text here"),
    );
    let path = "/v1/collections/a/snapshot";
    let made = service.post(path, &json!({ "name": "monday" }));
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(
        service.post(path, &json!({ "name": "monday" })).problem().0,
        409
    );
    assert_eq!(
        service.post(path, &json!({ "name": "../x" })).problem(),
        (422, "bad_name".into())
    );
    assert_eq!(
        service.post(path, &json!({})).problem(),
        (400, "bad_json".into())
    );
    service.post(
        "/v1/collections/a/documents",
        &document("y", "later than that"),
    );
    drop(service);
    std::fs::remove_dir_all(place.path("data/a")).unwrap();
    std::fs::rename(place.path("copies/a/monday"), place.path("data/a")).unwrap();
    let service = Service::start(&place, "");
    let at = |id: &str| {
        service
            .get(&format!("/v1/collections/a/documents/{id}"))
            .status
    };
    assert_eq!((at("x"), at("y")), (200, 404));
    assert_eq!(
        service.post(path, &json!({ "name": "b" })).problem(),
        (400, "bad_request".into())
    );
}

#[test]
fn damaged_collection_blocks_no_other() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("good", json!({}));
    service.make("bad", json!({}));
    service.post(
        "/v1/collections/bad/documents",
        &document("x", "some text here"),
    );
    drop(service);
    let manifest = place.path("data/bad/manifest");
    let mut bytes = std::fs::read(&manifest).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&manifest, bytes).unwrap();
    let service = Service::launch(&place, "");
    let ready = loop {
        let reply = service.get("/readyz");
        if reply.json()["opening"] == json!([]) {
            break reply;
        }
    };
    assert_eq!(
        (ready.status, &ready.json()["failed"]),
        (503, &json!(["bad"]))
    );
    let refused = service.get("/v1/collections/bad/documents/x");
    assert_eq!(refused.problem(), (503, "stopped".into()));
    let sent = document("x", "some text here");
    assert_eq!(
        service.post("/v1/collections/good/documents", &sent).status,
        200
    );
    assert_eq!(service.delete("/v1/collections/bad").status, 204);
    assert_eq!(service.get("/readyz").status, 200);
}

/// A browser gets the console with a policy of its own, other programs get the list of calls.
#[test]
fn browsers_get_the_console() {
    let place = Place::new();
    let browser = [("Accept", "text/html,application/xhtml+xml;q=0.9")];
    let service = Service::start(&place, "");
    let page = service.connect().request("GET", "/", &browser, b"");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert!(page.text().starts_with("<!doctype html>"));
    let list = service.get("/");
    assert_eq!(
        list.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(list.text().contains("/v1/collections"));
    // Every other answer keeps the policy that allows nothing.
    let other = service
        .get("/livez")
        .header("content-security-policy")
        .map(str::to_owned);
    assert_eq!(
        other.as_deref(),
        Some("default-src 'none'; frame-ancestors 'none'")
    );
    drop(service);

    let place = Place::new();
    let service = Service::start(&place, "--no-console");
    let list = service.connect().request("GET", "/", &browser, b"");
    assert_eq!(
        list.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
}
