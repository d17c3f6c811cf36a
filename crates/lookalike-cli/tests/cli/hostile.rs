//! Clients of the service that are slow, wrong or malicious.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::service::{NDJSON, Service, document, wait_until};
use crate::support::{Place, gzip, zstd};

const INSERT: &str = "/v1/collections/a/documents";

fn service(place: &Place, options: &str) -> Service {
    let service = Service::start(place, options);
    service.make("a", json!({}));
    service
}

/// Returns the statuses with which a service answers bytes that are not a request of our client.
fn raw(service: &Service, bytes: &[u8]) -> Vec<u16> {
    let mut connection = service.connect();
    let _ = connection.send(bytes);
    let mut statuses = Vec::new();
    while let Ok(reply) = connection.reply() {
        statuses.push(reply.status);
    }
    statuses
}

#[test]
fn bad_lines_are_answered_in_order() {
    let place = Place::new();
    let service = service(&place, "--max-document 2Ki");
    let long = document("long", &"x".repeat(5000)).to_string();
    let fits = document("fits", &"y ".repeat(900)).to_string();
    let deep = format!(
        "{{\"id\":\"deep\",\"text\":{}1{}}}",
        "[".repeat(700),
        "]".repeat(700)
    );
    let longest_id = "i".repeat(513);
    let lines: [(&[u8], &str); 22] = [
        (
            b"\xef\xbb\xbf{\"id\":\"a\",\"text\":\"the first one\"}",
            "kept",
        ),
        (b"", ""),
        (b"\r", ""),
        (b" \t\r", ""),
        (br#"["z","a text",null,null,null]"#, "bad_json"),
        (br#"[{"id":"z","text":"a text"}]"#, "bad_json"),
        (b"nonsense", "bad_json"),
        (b"{\"id\":\"b\",\"text\":\"\xff\xfe\"}", "bad_json"),
        (br#"{"id":"c","text":"\ud800"}"#, "bad_json"),
        (deep.as_bytes(), "bad_json"),
        (br#"{"id":"n","text":"x","meta":"\ud800"}"#, "bad_json"),
        (br#"{"id":18446744073709551616,"text":"x"}"#, "bad_json"),
        (long.as_bytes(), "too_large"),
        (fits.as_bytes(), "kept"),
        (br#"{"id":"d","txt":"x"}"#, "bad_json"),
        (br#"{"id":"","text":"x"}"#, "bad_document"),
        (
            br#"{"id":"e","fingerprint":"00000000000000ff"}"#,
            "bad_document",
        ),
        (br#"{"id":"a","text":"not the first one"}"#, "id_conflict"),
        (b"[1,2]", "bad_json"),
        (b"\xef\xbb\xbf{\"id\":\"f\",\"text\":\"x\"}", "bad_json"),
        (
            b" {\"id\":\"g\",\"text\":\"the first one\"}\t\r",
            "duplicate",
        ),
        (b"\0", "bad_json"),
    ];
    let too_long = document(&longest_id, "x").to_string();
    let mut body = Vec::new();
    for (line, _) in &lines {
        body.extend_from_slice(line);
        body.push(b'\n');
    }
    body.extend_from_slice(too_long.as_bytes());
    let answers = service.post_lines(INSERT, &body);
    let expected = lines
        .iter()
        .enumerate()
        .filter(|(_, (_, said))| !said.is_empty());
    let mut expected: Vec<_> = expected.map(|(at, (_, said))| (at + 1, *said)).collect();
    expected.push((lines.len() + 1, "bad_document"));
    assert_eq!(answers.len(), expected.len());
    for (answer, (line, said)) in answers.iter().zip(expected) {
        match answer.get("problem") {
            Some(problem) => assert_eq!(
                (&problem["code"], &answer["line"]),
                (&json!(said), &json!(line))
            ),
            None => assert_eq!(answer["verdict"], said, "line {line}"),
        }
    }
    let rows = service.get("/v1/collections/a/stats").json()["rows"].clone();
    assert_eq!(rows, 3);
}

#[test]
fn limits_hold_at_their_borders() {
    let place = Place::new();
    let service = service(&place, "--max-document 1Ki --max-body 4Ki");
    let sized = |bytes: usize| {
        let empty = document("x", "").to_string().len();
        document("x", &"z".repeat(bytes - empty)).to_string()
    };
    for (bytes, status) in [(1023, 200), (1024, 409), (1025, 413)] {
        let kind = [("Content-Type", "application/json")];
        let reply = service
            .connect()
            .request("POST", INSERT, &kind, sized(bytes).as_bytes());
        assert_eq!(reply.status, status, "{bytes}: {}", reply.text());
    }
    for (bytes, code) in [
        (1023, Value::Null),
        (1024, json!("id_conflict")),
        (1025, json!("too_large")),
    ] {
        let lines = service.post_lines(INSERT, sized(bytes).as_bytes());
        assert_eq!(lines[0]["problem"]["code"], code, "{bytes}");
    }
    let line = format!("{}\n", document("y", &"w".repeat(479)));
    for (lines, last) in [(8, Value::Null), (9, json!("too_large"))] {
        let body = line.repeat(lines);
        assert_eq!(line.len(), 500);
        let answers = service.post_lines(INSERT, body.as_bytes());
        assert_eq!(answers.last().unwrap()["problem"]["code"], last);
        assert_eq!(answers[0]["verdict"], "kept");
    }
}

#[test]
fn line_of_100_mb_is_refused_next_line_accepted() {
    let place = Place::new();
    let service = service(&place, "");
    let line = document("huge", &"x".repeat(100_000_000));
    let body = format!("{line}\n{}\n", document("next", "some text"));
    let before = service.peak_memory();
    let answers = service.post_lines(INSERT, body.as_bytes());
    assert_eq!(answers.len(), 2);
    assert_eq!(
        (&answers[0]["line"], &answers[0]["problem"]["code"]),
        (&json!(1), &json!("too_large"))
    );
    assert_eq!(
        (&answers[1]["id"], &answers[1]["verdict"]),
        (&json!("next"), &json!("kept"))
    );
    let more = service.peak_memory() - before;
    assert!(
        more < 100_000_000,
        "{more} bytes for a line that is not taken"
    );
}

#[test]
fn decompression_bombs_are_refused() {
    let place = Place::new();
    let service = service(&place, "--max-document 64Ki --max-body 1Mi");
    let zeros = vec![b'0'; 64 << 20];
    for (encoding, bomb) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Encoding", encoding),
        ];
        let refused = service.connect().request("POST", INSERT, &headers, &bomb);
        assert_eq!(refused.problem(), (413, "too_large".into()));
        let headers = [("Content-Type", NDJSON), ("Content-Encoding", encoding)];
        let reply = service.connect().request("POST", INSERT, &headers, &bomb);
        let lines = reply.lines();
        assert_eq!(lines.last().unwrap()["problem"]["code"], "too_large");
    }
    let half = &gzip(b"{\"id\":\"a\",\"text\":\"x\"}")[..20];
    for (encoding, body, expected) in [
        ("gzip", half, (400, "bad_body")),
        ("gzip", b"no gzip", (400, "bad_body")),
        ("zstd", b"no zstd", (400, "bad_body")),
        ("gzip", b"", (400, "bad_body")),
        ("br", b"{}", (415, "unsupported_encoding")),
        ("gzip, gzip", b"{}", (415, "unsupported_encoding")),
    ] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Encoding", encoding),
        ];
        let refused = service.connect().request("POST", INSERT, &headers, body);
        assert_eq!(
            refused.problem(),
            (expected.0, expected.1.to_owned()),
            "{encoding}"
        );
    }
}

#[test]
fn malformed_requests_are_refused() {
    let place = Place::new();
    let service = service(&place, "--max-header 8Ki");
    for (kind, expected) in [
        ("text/plain", (415, "unsupported_type")),
        ("application/json; charset=utf-8", (400, "bad_json")),
        ("", (415, "unsupported_type")),
    ] {
        let headers = [("Content-Type", kind)];
        let refused = service.connect().request("POST", INSERT, &headers, b"?");
        assert_eq!(
            refused.problem(),
            (expected.0, expected.1.to_owned()),
            "{kind}"
        );
    }
    for (method, path) in [
        ("PATCH", INSERT),
        ("PUT", INSERT),
        ("TRACE", "/"),
        ("BREW", "/"),
    ] {
        let refused = service.connect().request(method, path, &[], b"");
        assert_eq!(
            refused.problem(),
            (405, "method_not_allowed".into()),
            "{method}"
        );
        assert!(refused.header("allow").is_some());
    }
    for path in [
        "/v1",
        "/v1/collections/a/documents/x/y",
        "/v1/collections//documents",
        "/../etc/passwd",
    ] {
        let refused = service.get(path);
        assert!(
            matches!(refused.status, 404 | 405 | 422),
            "{path}: {}",
            refused.status
        );
    }
    let refused = service.get("/v1/collections/a/documents/%FF");
    assert_eq!(refused.problem(), (400, "bad_request".into()));
    let head = "POST /v1/collections/a/documents HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\n";
    let conflicting = format!("{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}x");
    assert_eq!(raw(&service, conflicting.as_bytes()), [400]);
    let both = format!(
        "{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
    );
    assert!(
        raw(&service, both.as_bytes())
            .iter()
            .all(|&status| status >= 400)
    );
    let no_length = format!("{head}Content-Length: -1\r\n\r\n");
    assert_eq!(raw(&service, no_length.as_bytes()), [400]);
    let bad_chunk = format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n");
    assert_eq!(raw(&service, bad_chunk.as_bytes()), [400]);
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(20_000)
    );
    assert_eq!(raw(&service, huge.as_bytes()), [431]);
    assert_eq!(raw(&service, b"\x16\x03\x01\x02\x00\x01\x00"), [400]);
    assert_eq!(service.get("/livez").status, 200);
}

#[test]
fn foreign_host_names_are_refused() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let status = |host: &str| {
        raw(
            &service,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    };
    for (host, expected) in [
        ("localhost", 200),
        ("127.0.0.1:7600", 200),
        ("[::1]", 200),
        ("example.com", 421),
        ("127.0.0.1.example.com:7600", 421),
        ("", 421),
    ] {
        assert_eq!(status(host), [expected], "{host}");
    }
    assert_eq!(raw(&service, b"GET / HTTP/1.0\r\n\r\n"), [421]);
    // A probe of a load balancer need not name the service.
    for (request, expected) in [
        ("GET /livez HTTP/1.0\r\n\r\n", 200),
        ("GET /readyz HTTP/1.0\r\n\r\n", 200),
        ("GET /livez HTTP/1.0\r\nHost: example.com\r\n\r\n", 421),
        ("GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n", 421),
        ("GET /v1/collections HTTP/1.0\r\n\r\n", 421),
    ] {
        assert_eq!(raw(&service, request.as_bytes()), [expected], "{request}");
    }
}

#[test]
fn expect_header_gets_100_continue() {
    let place = Place::new();
    let service = service(&place, "--body-timeout 0.6s");
    let lines = format!(
        "{}\n{}\n",
        document("x", "some text"),
        document("y", "another one")
    );
    for (kind, body) in [
        (NDJSON, lines.as_str()),
        (
            "application/json",
            &document("z", "a third one").to_string(),
        ),
    ] {
        let mut connection = service.connect();
        let head = format!(
            "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n\
             Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.send(head.as_bytes()).unwrap();
        // The client sends nothing of the body before this.
        assert_eq!(connection.reply().unwrap().status, 100, "{kind}");
        connection.send(body.as_bytes()).unwrap();
        let reply = connection.reply().unwrap();
        assert_eq!(reply.status, 200, "{kind}");
        let verdicts = reply
            .lines()
            .into_iter()
            .map(|line| line["verdict"].clone());
        assert!(verdicts.eq(body.lines().map(|_| json!("kept"))), "{kind}");
    }
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
             Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
        )
    };
    // A client that does not continue after `100 Continue` is cut off. A refused client is not told to
    // continue.
    assert_eq!(raw(&service, head(INSERT).as_bytes()), [100, 408]);
    let none = head("/v1/collections/none/documents");
    assert_eq!(raw(&service, none.as_bytes()), [404]);
}

#[test]
fn declared_too_large_body_is_refused_at_once() {
    let place = Place::new();
    let service = service(&place, "--max-document 1Ki");
    let mut connection = service.connect();
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 99999999999\r\n\r\n"
    );
    let begun = Instant::now();
    connection.send(head.as_bytes()).unwrap();
    let refused = connection.reply().unwrap();
    assert_eq!(refused.problem(), (413, "too_large".into()));
    assert!(
        refused
            .text()
            .contains("has 99999999999 bytes, more than the limit of 1024"),
        "{}",
        refused.text()
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Sends everything before it reads anything, as many clients do.
fn send_first(service: &Service, kind: &str, body: &[u8]) -> crate::service::Reply {
    let mut connection = service.connect();
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes()).unwrap();
    connection.send(body).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    connection.reply().unwrap()
}

#[test]
fn refusal_reaches_client_that_only_sends() {
    let place = Place::new();
    let service = service(&place, "--max-document 64Ki --max-body 1Mi");
    let line = format!("{}\n", document("x", &"some text ".repeat(10)));
    let body = line.repeat((24 << 20) / line.len());
    let answers = send_first(&service, NDJSON, body.as_bytes()).lines();
    assert_eq!(answers.len(), (1 << 20) / line.len() + 1);
    assert_eq!(answers.last().unwrap()["problem"]["code"], "too_large");
    let refused = send_first(&service, "application/json", body.as_bytes());
    assert_eq!(refused.problem(), (413, "too_large".into()));
}

#[test]
fn request_head_has_at_most_100_headers() {
    let place = Place::new();
    let service = service(&place, "");
    for (more, expected) in [(98, 200), (99, 431)] {
        let head: String = (0..more).map(|n| format!("X-{n}: x\r\n")).collect();
        let head =
            format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n");
        assert_eq!(raw(&service, head.as_bytes()), [expected], "{more}");
    }
}

#[test]
fn slow_clients_are_cut_off() {
    let place = Place::new();
    let service = service(&place, "--header-timeout 0.4s --body-timeout 0.4s");
    let begun = Instant::now();
    let mut idle = service.connect();
    let mut half = service.connect();
    half.send(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    let mut body = service.connect();
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    body.send(head.as_bytes()).unwrap();
    let mut lines = service.connect();
    let first = format!("{}\n", document("x", "some text"));
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: 1000\r\n\r\n{first}"
    );
    lines.send(head.as_bytes()).unwrap();
    // Sending a single byte from time to time is no progress either.
    let mut drops = service.connect();
    drops.send(head.as_bytes()).unwrap();
    let mut writer = drops.stream.get_ref().try_clone().unwrap();
    let dropping = std::thread::spawn(move || {
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(50));
            if writer.write_all(b" ").is_err() {
                break;
            }
        }
    });
    assert_eq!(body.reply().unwrap().problem(), (408, "too_slow".into()));
    for connection in [&mut lines, &mut drops] {
        let answers = connection.reply().unwrap().lines();
        assert_eq!(answers[0]["id"], "x");
        assert_eq!(answers[1]["problem"]["code"], "too_slow");
    }
    for connection in [&mut idle, &mut half] {
        let mut rest = Vec::new();
        let _ = connection.stream.read_to_end(&mut rest);
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.is_empty() || rest.contains(" 408 "), "{rest}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    dropping.join().unwrap();
    assert_eq!(service.get("/livez").status, 200);
}

#[test]
fn unread_responses_are_dropped() {
    let place = Place::new();
    let service = service(&place, "--body-timeout 0.5s");
    // The answers have a hundred times as many bytes, more than the system keeps for a client.
    let body = "x\n".repeat(150_000);
    let mut connection = service.connect();
    let head = format!(
        "POST /v1/collections/a/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes()).unwrap();
    let _ = connection.send(body.as_bytes());
    let begun = Instant::now();
    loop {
        let metrics = service.get("/metrics").text();
        // Only the connection of the metrics is left, and no bytes wait.
        let left = ["lookalike_connections 1\n", "lookalike_queue_bytes 0\n"];
        if left.iter().all(|line| metrics.contains(line)) {
            break;
        }
        assert!(begun.elapsed() < crate::service::PATIENCE, "{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn responses_wait_for_a_client_that_only_sends() {
    let place = Place::new();
    let service = service(&place, "");
    let body: String = (0..60_000)
        .map(|n| format!("{{\"id\":{n},\"text\":\"text {n}\"}}\n"))
        .collect();
    let mut connection = service.connect();
    let head = format!(
        "POST /v1/collections/a/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes()).unwrap();
    connection.send(body.as_bytes()).unwrap();
    let reply = connection.reply().unwrap();
    assert_eq!(reply.lines().len(), 60_000);
}

#[test]
fn overload_is_answered_with_retry_after() {
    let place = Place::new();
    let service = service(&place, "--max-queue 1Mi --max-document 600Ki");
    let half = |id: &str| document(id, &"z".repeat(580_000)).to_string();
    let mut waiting = service.connect();
    let sent = half("w");
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        sent.len()
    );
    waiting.send(head.as_bytes()).unwrap();
    waiting.send(&sent.as_bytes()[..570_000]).unwrap();
    let begun = Instant::now();
    while !service
        .get("/metrics")
        .text()
        .contains("lookalike_queue_bytes 570000\n")
    {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
    let kind = [("Content-Type", "application/json")];
    let refused = service
        .connect()
        .request("POST", INSERT, &kind, half("x").as_bytes());
    assert_eq!(refused.problem(), (429, "busy".into()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    waiting.send(&sent.as_bytes()[570_000..]).unwrap();
    assert_eq!(waiting.reply().unwrap().status, 200);
    let taken = service
        .connect()
        .request("POST", INSERT, &kind, half("x").as_bytes());
    assert_eq!(taken.status, 200);
}

#[test]
fn nearly_full_disk_is_reported() {
    let place = Place::new();
    let before = service(&place, "");
    let first = before.post(INSERT, &document("w", "what was answered"));
    assert_eq!(before.get("/readyz").status, 200);
    drop(before);
    let service = Service::launch(&place, "--headroom 1000000G");
    while service.get("/readyz").json()["opening"] != json!([]) {}
    let refused = service.post(INSERT, &document("x", "some text"));
    assert_eq!(refused.problem(), (507, "disk_full".into()));
    assert!(refused.header("retry-after").is_some());
    let asked = service.post("/v1/collections/a/query", &document("x", "some text"));
    assert_eq!(asked.status, 200);
    // An acknowledged document is answered again, because that needs no room.
    let again = service.post(INSERT, &document("w", "what was answered"));
    assert_eq!((again.status, again.json()), (200, first.json()));
    let ready = service.get("/readyz");
    assert_eq!((ready.status, &ready.json()["full"]), (503, &json!(["a"])));
    let listed = service.get("/v1/collections").json();
    assert_eq!(listed["collections"][0]["state"], "full");
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("lookalike_collection_up{collection=\"a\"} 0\n"));
    let refused = service.put("/v1/collections/b", &json!({}));
    assert_eq!(refused.problem(), (507, "disk_full".into()));
    assert!(!place.has("data/b"));
}

/// Connections that one client keeps open do not prevent others from creating and deleting collections.
#[test]
fn idle_streams_do_not_block_deletion() {
    let place = Place::new();
    let service = service(&place, "");
    service.make("b", json!({}));
    let mut idle = service.connect();
    let line = format!("{}\n", document("x", "some text"));
    let head = format!(
        "POST /v1/collections/a/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{line}\r\n",
        line.len()
    );
    idle.send(head.as_bytes()).unwrap();
    let mut half = service.connect();
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    half.send(head.as_bytes()).unwrap();
    // Both requests have started.
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    assert_eq!(service.delete("/v1/collections/a").status, 204);
    assert_eq!(service.delete("/v1/collections/b").status, 204);
    service.make("c", json!({}));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    let lines = idle.reply().unwrap().lines();
    assert_eq!(lines[0]["verdict"], "kept");
    assert_eq!(lines[1]["problem"]["code"], "deleting");
}

/// While a deletion waits for a client that does not take its answers, others can create and delete
/// collections. The deletion ends when that client disconnects.
#[test]
fn waiting_deletion_blocks_no_other() {
    let place = Place::new();
    let options = "--max-queue 1Mi --max-document 64Ki --body-timeout 60s";
    let service = service(&place, options);
    let mut greedy = service.connect();
    let body = "x\n".repeat(300_000);
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let held = || {
        let metrics = service.get("/metrics").text();
        let mut lines = metrics.lines();
        let held = lines.find_map(|line| line.strip_prefix("lookalike_answer_bytes "));
        held.unwrap().parse::<u64>().unwrap()
    };
    let goes = greedy.stream.get_ref().try_clone().unwrap();
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let _ = greedy.send(head.as_bytes());
            let _ = greedy.send(body.as_bytes());
        });
        let begun = Instant::now();
        while held() < 1 << 19 {
            assert!(begun.elapsed() < crate::service::PATIENCE);
        }
        let deleting = scope.spawn(|| service.delete("/v1/collections/a").status);
        while service.get("/v1/collections/a").status == 200 {
            assert!(begun.elapsed() < crate::service::PATIENCE);
        }
        let refused = service.put("/v1/collections/a", &json!({}));
        assert_eq!(refused.problem(), (503, "deleting".into()));
        service.make("b", json!({}));
        assert_eq!(service.delete("/v1/collections/b").status, 204);
        // Far from the end of the time that the client has, and the deletion still waits for it.
        assert!(!deleting.is_finished());
        assert!(begun.elapsed() < Duration::from_secs(40));
        // The client goes away with its last handle of the connection.
        goes.shutdown(std::net::Shutdown::Both).unwrap();
        sending.join().unwrap();
        drop(goes);
        assert_eq!(deleting.join().unwrap(), 204);
        assert!(begun.elapsed() < Duration::from_secs(60));
    });
}

/// The size of a head is that of the whole head, however it arrives. Requests that match no call are counted.
#[test]
fn request_heads_are_limited_and_counted() {
    let place = Place::new();
    let service = service(&place, "--max-header 32Ki");
    let of = |bytes: usize| {
        let head = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: \r\n\r\n";
        head.replace("x: ", &format!("x: {}", "y".repeat(bytes - head.len())))
    };
    let limit = 32 << 10;
    for (bytes, status) in [(limit, 200), (limit + 1, 431), (40_000, 431)] {
        assert_eq!(raw(&service, of(bytes).as_bytes()), [status], "{bytes}");
    }
    let slowly = |bytes: usize| {
        let mut connection = service.connect();
        for part in of(bytes).as_bytes().chunks(4000) {
            connection.send(part).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        connection.reply().unwrap().status
    };
    assert_eq!((slowly(limit), slowly(limit + 1)), (200, 431));
    let long = format!("/{}", "y".repeat(40_000));
    let refused = service.get(&long);
    assert_eq!(refused.problem(), (431, "head_too_large".into()));
    assert_eq!(service.get("/none").status, 404);
    assert_eq!(raw(&service, b"nonsense\r\n\r\n"), [400]);
    // A connection is counted at its end, after the answer to it.
    wait_until("the requests are counted", || {
        let metrics = service.get("/metrics").text();
        metrics.contains("lookalike_requests_total{call=\"none\",status=\"4xx\"} 5\n")
            && metrics.contains("lookalike_malformed_requests_total 1\n")
    });
}

#[test]
fn ambiguous_request_heads_are_refused() {
    let place = Place::new();
    let service = service(&place, "");
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    );
    let sent = document("x", "some text").to_string();
    let chunk = format!("{:x}\r\n{sent}\r\n0\r\n\r\n", sent.len());
    for bad in [
        format!("Transfer-Encoding: gzip, chunked\r\n\r\n{chunk}"),
        format!("Transfer-Encoding: chunked\r\nHost: other\r\n\r\n{chunk}"),
    ] {
        let statuses = raw(&service, format!("{head}{bad}").as_bytes());
        assert_eq!(statuses.first(), Some(&400), "{bad}");
    }
    assert_eq!(service.get(&format!("{INSERT}/x")).status, 404);
}

/// Unknown fields and parameters are refused, and nothing is done.
#[test]
fn unknown_fields_and_parameters_are_refused() {
    let place = Place::new();
    let service = service(&place, "");
    let sent = document("x", "some text");
    let bad = (400, "bad_request".to_owned());
    let refused = service.post(&format!("{INSERT}?dry=1"), &sent);
    assert_eq!(refused.problem(), bad);
    for path in [
        "/v1/collections?limit=3",
        "/v1/collections/a/stats?x=1",
        "/v1/collections/a/documents/x?x=1",
        "/v1/collections/a/documents/%ZZ",
        "/v1/collections/a/documents/x%4",
    ] {
        assert_eq!(service.get(path).problem(), bad, "{path}");
    }
    assert_eq!(service.get("/readyz?verbose").status, 200);
    let send = |method: &str, path: &str, kind: &str, body: &str| {
        let headers = [("Content-Type", kind)];
        let mut connection = service.connect();
        connection.request(method, path, &headers, body.as_bytes())
    };
    for (method, path, body) in [
        (
            "PUT",
            "/v1/collections/b",
            r#"{"threshold":0.8,"threshold":0.9}"#,
        ),
        (
            "POST",
            "/v1/fingerprint",
            r#"{"texts":["a"],"texts":["b"]}"#,
        ),
        (
            "POST",
            "/v1/compare",
            r#"{"pairs":[{"a":"x","b":"y","a":"z"}]}"#,
        ),
    ] {
        let refused = send(method, path, "application/json", body);
        assert_eq!(refused.problem(), (400, "bad_json".into()), "{body}");
        let said = refused.text();
        assert!(said.contains("duplicate field"), "{said}");
    }
    let sent = sent.to_string();
    for (kind, status) in [
        ("application/json; charset=gbk", 415),
        ("application/x-ndjson;charset=latin1", 415),
        ("application/json; Charset=\"UTF-8\"", 200),
    ] {
        assert_eq!(send("POST", INSERT, kind, &sent).status, status, "{kind}");
    }
}

/// The metrics count every document and every line by its outcome.
#[test]
fn documents_are_counted_by_verdict() {
    let place = Place::new();
    let service = service(&place, "--max-document 1Ki");
    let long = "x".repeat(2000);
    let line = document("x", "some text");
    let body = format!("{line}\n{line}\nnonsense\n{long}\n");
    service.post_lines(INSERT, body.as_bytes());
    service.post(INSERT, &line);
    service.post(INSERT, &document("y", "some text!"));
    let asked = document("q", "some text");
    let body = format!("{asked}\nnonsense\n{long}\n");
    service.post_lines("/v1/collections/a/query", body.as_bytes());
    service.post("/v1/collections/a/query", &asked);
    let metrics = service.get("/metrics").text();
    for (result, count) in [
        ("kept", 1),
        ("duplicate", 1),
        ("again", 2),
        ("late", 0),
        ("refused", 2),
        ("queried", 2),
        ("refused_query", 2),
    ] {
        let line =
            format!("lookalike_documents_total{{collection=\"a\",result=\"{result}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

#[test]
fn running_requests_finish_before_the_stop() {
    let place = Place::new();
    let mut service = service(&place, "--drain 20s");
    let mut connection = service.connect();
    let sent = document("x", "some text").to_string();
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        sent.len()
    );
    connection.send(head.as_bytes()).unwrap();
    connection.send(&sent.as_bytes()[..5]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    service.signal("-TERM");
    let begun = Instant::now();
    while std::net::TcpStream::connect(service.address).is_ok() {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
    connection.send(&sent.as_bytes()[5..]).unwrap();
    assert_eq!(connection.reply().unwrap().json()["verdict"], "kept");
    assert_eq!(service.wait().0, Some(0));
    let again = Service::start(&place, "--drain 0.2s");
    assert_eq!(again.get(&format!("{INSERT}/x")).status, 200);
    let mut connection = again.connect();
    connection.send(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (code, log) = again.stop();
    assert_eq!(code, Some(0));
    assert!(log.contains("the time limit of --drain is over"), "{log}");
}

#[test]
fn data_directory_is_locked_by_one_process() {
    let place = Place::new();
    let _service = service(&place, "");
    place.refused(
        "serve --data data --listen 127.0.0.1:0",
        &["data", "another process has it open"],
    );
}

#[test]
fn failed_deletion_is_reported() {
    let place = Place::new();
    let service = Service::launch_to_fail(&place);
    service.make("a", json!({}));
    service.make("b", json!({}));
    for collection in ["a", "b"] {
        let path = format!("/v1/collections/{collection}/documents");
        assert_eq!(service.post(&path, &document("x", "some text")).status, 200);
    }
    assert_eq!(service.get("/readyz").status, 200);
    service.refuse_writes();
    let refused = service.delete("/v1/collections/a/documents/x");
    assert_eq!(refused.problem(), (503, "stopped".into()));
    let ready = service.get("/readyz");
    assert_eq!(
        (ready.status, &ready.json()["stopped"]),
        (503, &json!(["a"]))
    );
    let listed = service.get("/v1/collections").json();
    assert_eq!(listed["collections"][0]["state"], "stopped");
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("lookalike_collection_up{collection=\"a\"} 0\n"));
    assert!(metrics.contains("lookalike_collection_up{collection=\"b\"} 1\n"));
}

#[test]
fn snapshot_directory_is_outside_the_data() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    lookalike_system::create_symlink(&place.path("data"), &place.path("link")).unwrap();
    for snapshots in ["data", "data/copies", ".", "data/../data/x", "link/copies"] {
        place.refused(
            &format!("serve --data data --listen 127.0.0.1:0 --snapshots {snapshots}"),
            &[
                &format!("--snapshots {snapshots} and --data data"),
                "separate",
            ],
        );
    }
    let _service = Service::start(&place, "--snapshots data-copies");
}

/// Returns the names in a directory.
fn names(place: &Place, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(directory)).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn foreign_files_are_not_changed() {
    let place = Place::new();
    let service = Service::start(&place, "");
    place.write("data/foreign/precious.txt", "mine");
    std::fs::create_dir_all(place.path("data/nested/a")).unwrap();
    for name in ["foreign", "nested"] {
        let refused = service.put(&format!("/v1/collections/{name}"), &json!({}));
        assert_eq!(refused.problem(), (409, "collection_conflict".into()));
    }
    assert_eq!(names(&place, "data/foreign"), ["precious.txt"]);
    // The remains of an interrupted creation do not prevent another one.
    for file in ["lock", "manifest.new", "partitions"] {
        place.write(&format!("data/begun/{file}"), "");
    }
    service.make("begun", json!({}));
    service.make("a", json!({}));
    place.write("data/a/precious.txt", "mine");
    let refused = service.delete("/v1/collections/a");
    assert_eq!(refused.problem(), (409, "collection_conflict".into()));
    assert!(refused.text().contains("precious.txt"));
    assert_eq!(service.get("/v1/collections/a").status, 200);
    std::fs::remove_file(place.path("data/a/precious.txt")).unwrap();
    assert_eq!(service.delete("/v1/collections/a").status, 204);
    assert!(!place.has("data/a") && !place.has("data/.deleted-a"));
    let refused = service.put("/v1/collections/lock", &json!({}));
    assert_eq!(refused.problem(), (422, "bad_name".into()));
    drop(service);
    place.write("data/.deleted-z/manifest", "");
    place.write("data/.deleted-z/precious.txt", "mine");
    let _service = Service::start(&place, "");
    assert_eq!(names(&place, "data/.deleted-z"), ["precious.txt"]);
}

#[test]
fn missing_manifest_is_reported() {
    let place = Place::new();
    let service = service(&place, "");
    service.post(INSERT, &document("x", "some text"));
    drop(service);
    std::fs::remove_file(place.path("data/a/manifest")).unwrap();
    let service = Service::launch(&place, "");
    let ready = service.get("/readyz");
    assert_eq!(
        (ready.status, &ready.json()["failed"]),
        (503, &json!(["a"]))
    );
    let refused = service.put("/v1/collections/a", &json!({}));
    assert_eq!(refused.problem(), (503, "stopped".into()));
    assert!(
        refused.text().contains("no 'manifest'"),
        "{}",
        refused.text()
    );
    let (_, log) = service.stop();
    assert!(log.contains("cannot be opened"), "{log}");
}

#[test]
fn refused_documents_are_named_by_id() {
    let place = Place::new();
    let service = service(&place, "");
    let lines: [(&str, Value); 7] = [
        (r#"{"id":"a","txt":"x"}"#, json!("a")),
        (r#"{"text":"x","time":"soon","id":7}"#, json!("7")),
        (r#"{"id":"b"}"#, json!("b")),
        (r#"{"id":"c","text":"x","fingerprint":"1"}"#, json!("c")),
        (r#"{"id":"d","text":"x""#, Value::Null),
        (r#"["e"]"#, Value::Null),
        (r#"{"text":"x"}"#, Value::Null),
    ];
    let body: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    let answers = service.post_lines(INSERT, body.as_bytes());
    assert_eq!(answers.len(), lines.len());
    for (answer, (line, id)) in answers.iter().zip(&lines) {
        assert!(answer["problem"].is_object(), "{answer}");
        assert_eq!(answer["id"], *id, "{line}");
    }
}

#[test]
fn bodies_are_objects_with_optional_bom() {
    let place = Place::new();
    let service = service(&place, "");
    let send = |method: &str, path: &str, body: &str| {
        let kind = [("Content-Type", "application/json")];
        service
            .connect()
            .request(method, path, &kind, body.as_bytes())
    };
    let bad = (400, "bad_json".to_owned());
    let listed = r#"["x","some text",null,null,null]"#;
    assert_eq!(send("POST", INSERT, listed).problem(), bad);
    assert_eq!(send("PUT", "/v1/collections/b", "[]").problem(), bad);
    let pairs = r#"{"pairs":[["x","y"]]}"#;
    assert_eq!(send("POST", "/v1/compare", pairs).problem(), bad);
    let marked = "\u{feff}{\"id\":\"x\",\"text\":\"some text\"}";
    assert_eq!(send("POST", INSERT, marked).status, 200);
    for settings in [
        json!({ "threshold": 1e-9 }),
        json!({ "method": "simhash", "distance": 65 }),
    ] {
        let refused = service.put("/v1/collections/c", &settings);
        assert_eq!(
            refused.problem(),
            (422, "bad_settings".into()),
            "{settings}"
        );
    }
}

#[test]
fn compared_bytes_are_limited() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let pairs = |bytes: usize| {
        let half = "x".repeat(bytes / 4);
        let rest = "x".repeat(bytes - 3 * half.len());
        json!({ "pairs": [{ "a": half, "b": half }, { "a": half, "b": rest }] })
    };
    let taken = service.post("/v1/compare", &pairs(64 << 10));
    assert_eq!(taken.json()["results"].as_array().unwrap().len(), 2);
    let refused = service.post("/v1/compare", &pairs((64 << 10) + 1));
    assert_eq!(refused.problem(), (413, "too_large".into()));
    assert!(
        refused.text().contains("more than the limit of 65536"),
        "{}",
        refused.text()
    );
    let none = service.post("/v1/compare", &json!({ "pairs": [] }));
    assert_eq!(none.json(), json!({ "results": [] }));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let taken = service.post("/v1/compare", &pairs(8 << 10));
                assert_eq!(taken.status, 200);
            });
        }
    });
}

/// Limits on what one request can cause: an answer much longer than its texts, or a comparison in time that
/// grows with the square of their length.
#[test]
fn costly_requests_are_limited() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let segment = |bytes: usize| {
        let text = "a b".repeat(bytes / 3);
        let body = json!({ "texts": [text], "recipe": "default", "weights": true });
        service.post("/v1/segment", &body)
    };
    let terms = segment(1 << 19).json()["results"][0]["terms"].clone();
    assert!(terms.as_array().is_some_and(|terms| !terms.is_empty()));
    assert_eq!(segment(1 << 20).problem(), (413, "too_large".into()));

    service.make("a", json!({ "measure": "indel", "threshold": 0.6 }));
    let text = |bytes: usize| "abcd ".repeat(bytes)[..bytes].to_owned();
    let most = service.post(INSERT, &document("most", &text(64 << 10)));
    assert_eq!(most.status, 200, "{}", most.text());
    let refused = service.post(INSERT, &document("more", &text((64 << 10) + 1)));
    assert_eq!(refused.problem(), (413, "too_large".into()));
    assert!(
        refused.text().contains("has 65537 bytes"),
        "{}",
        refused.text()
    );
    service.make("b", json!({}));
    let taken = service.post(
        "/v1/collections/b/documents",
        &document("more", &text((64 << 10) + 1)),
    );
    assert_eq!(taken.status, 200);

    let clusters = |query: &str| service.get(&format!("/v1/collections/a/clusters?{query}"));
    assert_eq!(clusters("limit=1000&members=100").status, 200);
    let refused = clusters("limit=1000&members=101");
    assert_eq!(refused.problem(), (400, "bad_request".into()));
    assert!(refused.text().contains("100000"), "{}", refused.text());
}

#[test]
fn unread_responses_share_one_limit() {
    let place = Place::new();
    let options = "--max-queue 1Mi --max-document 64Ki --body-timeout 0.6s";
    let service = service(&place, options);
    let body = "x\n".repeat(300_000);
    let head = format!(
        "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connections: Vec<_> = (0..3).map(|_| service.connect()).collect();
    std::thread::scope(|scope| {
        for connection in &mut connections {
            let (head, body) = (&head, &body);
            scope.spawn(move || {
                let _ = connection.send(head.as_bytes());
                let _ = connection.send(body.as_bytes());
            });
        }
        let begun = Instant::now();
        let mut most = 0;
        loop {
            let metrics = service.get("/metrics").text();
            let held = metrics
                .lines()
                .find_map(|line| line.strip_prefix("lookalike_answer_bytes "));
            let held: u64 = held.unwrap().parse().unwrap();
            assert!(held <= 1 << 20, "{held}");
            most = most.max(held);
            if most > 1 << 18 && held == 0 && metrics.contains("lookalike_connections 1\n") {
                break;
            }
            assert!(begun.elapsed() < crate::service::PATIENCE, "{metrics}");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn unfinished_lines_do_not_block_each_other() {
    let place = Place::new();
    let options = "--max-queue 1Mi --max-document 900Ki --body-timeout 40s";
    let service = service(&place, options);
    let begun = Instant::now();
    let mut clients: Vec<_> = ["x", "y"]
        .map(|id| {
            let body = format!("{}\n", document(id, &"z ".repeat(400_000)));
            let head = format!(
                "POST {INSERT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NDJSON}\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            let mut client = service.connect();
            client.send(head.as_bytes()).unwrap();
            client.send(&body.as_bytes()[..450_000]).unwrap();
            (client, body)
        })
        .into();
    let waiting = |bytes: u64| {
        let metrics = service.get("/metrics").text();
        let waits = metrics
            .lines()
            .find_map(|line| line.strip_prefix("lookalike_queue_bytes "));
        waits.unwrap().parse::<u64>().unwrap() >= bytes
    };
    while !waiting(900_000) {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
    let ended: Vec<_> = std::thread::scope(|scope| {
        let ended = clients.iter_mut().map(|(client, body)| {
            scope.spawn(move || {
                let _ = client.send(&body.as_bytes()[450_000..]);
                client.reply().unwrap().lines()
            })
        });
        let ended: Vec<_> = ended.collect();
        ended.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
    let busy = ended.iter().filter(|it| it[0]["problem"]["code"] == "busy");
    assert!(busy.count() >= 1);
    assert!(ended.iter().all(|it| it.len() == 1));
    // A line that is too long occupies no budget, however long it is.
    let long = vec![b'x'; 4 << 20];
    let answers = service.post_lines(INSERT, &long);
    assert_eq!(answers[0]["problem"]["code"], "too_large");
    assert!(!waiting(1));
}
