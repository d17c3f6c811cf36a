//! Clients that take more than their share are refused, and others are served meanwhile.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lookalike_oracle::effort::choose_effort;
use serde_json::json;
use sha2::{Digest, Sha256};
use socket2::{Domain, Socket, Type};

use crate::service::{Connection, NDJSON, Reply, Service, document, wait_until};
use crate::support::{Place, zstd};

const INSERT: &str = "/v1/collections/a/documents";
const QUERY: &str = "/v1/collections/a/query";

const READ: &str = "read-read-read-1";
const WRITE: &str = "write-write-writ";
const ADMIN: &str = "admin-admin-admi";

/// Longest time that an honest request may take. Tests share the processor, so it is generous.
const PROMPTLY: Duration = Duration::from_secs(3);

/// Starts a service with one key of each role, and a collection.
fn service_with_keys(place: &Place, options: &str) -> Service {
    let keys = [("read", READ), ("write", WRITE), ("admin", ADMIN)];
    let lines = keys.map(|(role, key)| {
        let hash = Sha256::digest(key.as_bytes());
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{role} sha256:{digits}\n")
    });
    place.write("keys", lines.concat());
    let service = Service::start(place, &format!("--keys keys {options}"));
    let made = send(&service, ADMIN, "PUT", "/v1/collections/a", &[], b"{}");
    assert_eq!(made.status, 201, "{}", made.text());
    service
}

fn send(
    service: &Service,
    key: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let key = format!("Bearer {key}");
    let mut all = vec![("Authorization", key.as_str())];
    if headers.iter().all(|(name, _)| *name != "Content-Type") {
        all.push(("Content-Type", "application/json"));
    }
    all.extend_from_slice(headers);
    service.connect().request(method, path, &all, body)
}

/// Inserts a document with the key of the role `write`.
fn insert(service: &Service, body: &serde_json::Value) -> Reply {
    send(
        service,
        WRITE,
        "POST",
        INSERT,
        &[],
        body.to_string().as_bytes(),
    )
}

/// Compresses with the highest level of gzip.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let best = flate2::Compression::best();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), best);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Connects from another address of this machine.
fn connect_from(from: &str, to: SocketAddr) -> Connection {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from: SocketAddr = format!("{from}:0").parse().unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    Connection::from_stream(socket.into()).unwrap()
}

/// Returns `true` if the service has closed the connection without an answer.
fn is_closed(connection: &mut Connection) -> bool {
    matches!(connection.stream.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn small_expanding_bodies_stall_no_client() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let newlines = vec![b'\n'; choose_effort(32 << 20, 256 << 20)];
    let long = format!("{{\"id\":\"x\",\"text\":\"{}\"}}", "a".repeat(16 << 20));
    let bombs = [
        ("zstd", NDJSON, zstd(&newlines)),
        ("gzip", NDJSON, gzip(&newlines)),
        ("zstd", NDJSON, zstd(long.as_bytes())),
        (
            "gzip",
            "application/json",
            gzip(&long.as_bytes()[..15 << 20]),
        ),
    ];
    std::thread::scope(|scope| {
        for (encoding, kind, bomb) in &bombs {
            assert!(bomb.len() < newlines.len() / 250, "{}", bomb.len());
            let headers = [("Content-Encoding", *encoding), ("Content-Type", *kind)];
            for _ in 0..3 {
                let service = &service;
                scope.spawn(move || {
                    let reply = send(service, READ, "POST", QUERY, &headers, bomb);
                    let text = reply.text();
                    assert!(text.contains("too_large"), "{encoding} {kind}: {text}");
                    assert!(matches!(reply.status, 200 | 413), "{}", reply.status);
                });
            }
        }
        for at in 0..10 {
            let begun = Instant::now();
            assert_eq!(service.get("/livez").status, 200);
            let body = document(&at.to_string(), &format!("an honest text, number {at}"));
            let inserted = insert(&service, &body);
            assert_eq!(inserted.status, 200, "{}", inserted.text());
            assert!(begun.elapsed() < PROMPTLY, "{:?}", begun.elapsed());
        }
    });
}

/// A body of up to 4 MiB is accepted however well it compresses, because honest text can compress well
/// too: the ratio counts only beyond 4 MiB.
#[test]
fn slightly_expanding_bodies_are_accepted() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "a".repeat(bytes - 11));
    for (bytes, status) in [((4 << 20) - 1, 200), (4 << 20, 200), ((4 << 20) + 1, 413)] {
        let body = text(bytes);
        assert_eq!(body.len(), bytes);
        let headers = [("Content-Encoding", "zstd")];
        let reply = send(
            &service,
            READ,
            "POST",
            QUERY,
            &headers,
            &zstd(body.as_bytes()),
        );
        assert_eq!(reply.status, status, "{bytes}: {}", reply.text());
    }
}

#[test]
fn blank_lines_are_skipped_up_to_a_limit() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let headers = [("Content-Type", NDJSON)];
    for (blank, refused) in [(99_999, false), (100_000, false), (100_001, true)] {
        let body = format!("{}{}\n", "\n".repeat(blank), document("q", "a text"));
        let reply = send(&service, READ, "POST", QUERY, &headers, body.as_bytes());
        assert_eq!(
            reply.text().contains("100000 blank lines"),
            refused,
            "{blank}"
        );
    }
}

#[test]
fn connections_per_address_are_limited() {
    let place = Place::new();
    let service = Service::start(&place, "--connections-per-address 4");
    let mut open: Vec<_> = (0..4)
        .map(|_| connect_from("127.0.0.2", service.address))
        .collect();
    for connection in &mut open {
        assert_eq!(connection.request("GET", "/livez", &[], b"").status, 200);
    }
    assert!(is_closed(&mut connect_from("127.0.0.2", service.address)));
    assert_eq!(service.get("/livez").status, 200);
    open.pop();
    let begun = Instant::now();
    while is_closed_before_its_answer(&service) {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
    let metrics = service.get("/metrics").text();
    let refused = "lookalike_refused_connections_total";
    assert!(metrics.contains(refused) && !metrics.contains(&format!("{refused} 0\n")));
}

fn is_closed_before_its_answer(service: &Service) -> bool {
    let mut connection = connect_from("127.0.0.2", service.address);
    connection.try_request("GET", "/livez", &[], b"").is_err()
}

#[test]
fn trusted_proxy_has_no_connection_limit() {
    let place = Place::new();
    let options = "--connections-per-address 2 --trusted-proxy 127.0.0.3,127.0.0.2";
    let service = Service::start(&place, options);
    let mut open: Vec<_> = (0..6)
        .map(|_| connect_from("127.0.0.2", service.address))
        .collect();
    for connection in &mut open {
        assert_eq!(connection.request("GET", "/livez", &[], b"").status, 200);
    }
    place.refused(
        "serve --data other --trusted-proxy proxy",
        &["proxy", "10.0.0.1"],
    );
}

/// Returns the statuses of requests from an address, each with the `X-Forwarded-For` that are made of
/// its number.
fn statuses(service: &Service, from: &str, forwarded: impl Fn(usize) -> Vec<String>) -> Vec<u16> {
    let mut connection = connect_from(from, service.address);
    let mut ask = |at| {
        let names = forwarded(at);
        let headers: Vec<_> = names
            .iter()
            .map(|name| ("X-Forwarded-For", &**name))
            .collect();
        let reply = connection.request("GET", "/v1/collections", &headers, b"");
        reply.status
    };
    (0..60).map(&mut ask).collect()
}

/// Behind a trusted proxy a client is the address that the proxy names last; whatever a client says
/// before that, or without a proxy, counts for nothing.
#[test]
fn trusted_proxy_names_its_clients() {
    let place = Place::new();
    let service = Service::start(&place, "--max-rate 1 --trusted-proxy 127.0.0.2");
    let (proxy, other) = ("127.0.0.2", "127.0.0.3");
    let client = |at: usize| vec![format!("10.0.1.{at}")];
    let each = statuses(&service, proxy, client);
    assert!(each.iter().all(|&status| status == 200), "{each:?}");
    let limited = |from: &str, forwarded: &dyn Fn(usize) -> Vec<String>| {
        statuses(&service, from, forwarded).contains(&429)
    };
    let same = |at: usize| vec![format!("10.0.3.{at}, 10.0.2.1")];
    assert!(limited(proxy, &same), "a client that names others first");
    let several = |at: usize| vec![format!("10.0.4.{at}"), " 10.0.2.2 ".to_owned()];
    assert!(limited(proxy, &several), "the same in two headers");
    let network = |at: usize| vec![format!("2001:db8::{at:x}")];
    assert!(limited(proxy, &network), "of IPv6 a network is one client");
    let wrong = |at: usize| vec![format!("client-{at}")];
    assert!(limited(proxy, &wrong), "what is no address is the proxy");
    assert!(limited(other, &client), "an address that is not trusted");
}

/// While idle connections occupy all slots, probes are answered and all other requests are told to come
/// again.
#[test]
fn probes_have_reserved_connections() {
    let place = Place::new();
    let service = Service::start(&place, "--connections 3");
    // The connection by which `start` asked for readiness may still have a slot. Until it is gone, the last
    // of these is refused.
    let mut idle = Vec::new();
    let begun = Instant::now();
    while idle.len() < 3 {
        assert!(begun.elapsed() < crate::service::PATIENCE);
        let mut connection = service.connect();
        let reply = connection.request("GET", "/v1/collections", &[], b"");
        if reply.status == 200 {
            idle.push(connection);
        }
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    let refused = service.get("/v1/collections");
    assert_eq!(refused.problem(), (429, "busy".into()));
    idle.pop();
    let begun = Instant::now();
    while service.get("/v1/collections").status != 200 {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
}

/// Returns a text of the same blocks as the others, in another order: 64,000 bytes.
fn permute_blocks(seed: usize) -> String {
    let mut blocks: Vec<usize> = (0..16).collect();
    let mut state = seed as u64 + 1;
    for at in (1..blocks.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        blocks.swap(at, (state >> 33) as usize % (at + 1));
    }
    let block = |block: usize| {
        let word = move |word: usize| (16 * word + block).wrapping_mul(0x9e37_79b9) & 0xfff_ffff;
        (0..500).map(move |at| format!("{:07x} ", word(at)))
    };
    blocks.into_iter().flat_map(block).collect()
}

/// Texts that share their blocks are candidates of one another, and far apart: those that would take too long
/// to verify are refused, and other clients are served meanwhile.
#[test]
fn costly_comparisons_stall_no_client() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let settings = json!({ "measure": "levenshtein" }).to_string();
    let path = "/v1/collections/edits";
    let made = send(&service, ADMIN, "PUT", path, &[], settings.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let (insert, query) = (format!("{path}/documents"), format!("{path}/query"));
    let honest = |at: usize| {
        let text: String = (0..300).map(|word| format!("{at}w{word} ")).collect();
        document(&format!("honest-{at}"), &text).to_string()
    };
    let attack: String = (0..choose_effort(60, 150))
        .map(|at| {
            format!(
                "{}\n",
                document(&format!("attack-{at}"), &permute_blocks(at))
            )
        })
        .collect();
    let lines = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let headers = [("Content-Type", NDJSON)];
            send(
                &service,
                WRITE,
                "POST",
                &insert,
                &headers,
                attack.as_bytes(),
            )
            .lines()
        });
        let mut at = 0;
        while !attacker.is_finished() {
            for path in [&query, &insert] {
                let begun = Instant::now();
                let reply = send(&service, ADMIN, "POST", path, &[], honest(at).as_bytes());
                assert_eq!(reply.json()["verdict"], "kept", "{}", reply.text());
                assert!(begun.elapsed() < PROMPTLY, "{path}: {:?}", begun.elapsed());
            }
            at += 1;
        }
        assert!(at > 3, "{at} honest documents");
        attacker.join().unwrap()
    });
    let refused = lines
        .iter()
        .filter(|line| line["problem"]["code"] == "too_costly");
    let (refused, taken) = (refused.count(), lines.len());
    assert!(
        refused > taken / 2 && refused < taken - 1,
        "{refused} of {taken}"
    );
    let near = honest(0)
        .replace("0w299 ", "other ")
        .replace("honest-0", "near");
    let begun = Instant::now();
    let reply = send(&service, ADMIN, "POST", &insert, &[], near.as_bytes()).json();
    assert_eq!(reply["of"], "honest-0", "{reply}");
    assert!(begun.elapsed() < PROMPTLY);
}

/// Stalled uploads leave room for the documents of others, and are ended.
#[test]
fn stalled_uploads_leave_room_for_others() {
    let place = Place::new();
    let options = "--max-queue 4Mi --max-document 1Mi --body-timeout 3s";
    let service = service_with_keys(&place, options);
    let head = format!(
        "POST {QUERY} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {READ}\r\n\
         Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n{{\"text\":\""
    );
    let mut stalled: Vec<_> = (0..17)
        .map(|_| {
            let mut connection = service.connect();
            connection.send(head.as_bytes()).unwrap();
            let _ = connection.send(&vec![b'a'; 900 << 10]);
            connection
        })
        .collect();
    let begun = Instant::now();
    for at in 0..20 {
        let body = document(&at.to_string(), &format!("{at} {}", "b ".repeat(20_000)));
        let inserted = insert(&service, &body);
        assert_eq!(inserted.status, 200, "{}", inserted.text());
    }
    assert!(begun.elapsed() < crate::service::PATIENCE);
    for connection in &mut stalled {
        let status = connection.reply().unwrap().status;
        assert!(matches!(status, 408 | 429), "{status}");
    }
}

/// A body that always brings a little is cut off too.
#[test]
fn slow_bodies_are_cut_off() {
    let place = Place::new();
    let service = service_with_keys(&place, "--body-timeout 1s");
    for kind in ["application/json", NDJSON] {
        let head = format!(
            "POST {QUERY} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {READ}\r\n\
             Content-Type: {kind}\r\nContent-Length: 1048576\r\n\r\n{{\"text\":\""
        );
        let mut connection = service.connect();
        connection.send(head.as_bytes()).unwrap();
        let begun = Instant::now();
        // More than 1 KiB within the time that a body may be silent, but much less than 32 KiB per second.
        while connection.send(&[b'a'; 1100]).is_ok() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(250));
            if connection.has_answer() {
                break;
            }
        }
        let reply = connection.reply().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "{kind}");
        assert!(
            reply.text().contains("too_slow"),
            "{kind}: {}",
            reply.text()
        );
    }
}

/// Writes a chunk of a request body.
fn send_chunk(connection: &mut Connection, bytes: &[u8]) -> std::io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    connection.send(&chunk)
}

/// A key that is removed inserts nothing over the requests that it has open, and reads nothing.
#[test]
fn revoked_keys_end_open_requests() {
    let place = Place::new();
    let service = service_with_keys(&place, "--drain 5s");
    // More than the buffers of a connection hold.
    for at in 0..32 {
        let text = format!("word{at} ").repeat(100_000);
        let inserted = insert(&service, &document(&format!("long-{at}"), &text));
        assert_eq!(inserted.status, 200, "{}", inserted.text());
    }
    let head = |method: &str, path: &str, key: &str, kind: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: {kind}\r\n"
        )
    };
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let mut bulk = service.connect();
    bulk.send((head("POST", INSERT, WRITE, NDJSON) + chunked).as_bytes())
        .unwrap();
    let line = |at: usize| {
        let document = document(&format!("line-{at}"), &format!("one of many lines, {at}"));
        format!("{document}\n").into_bytes()
    };
    send_chunk(&mut bulk, &line(0)).unwrap();
    let mut single = service.connect();
    single
        .send((head("POST", INSERT, WRITE, "application/json") + chunked).as_bytes())
        .unwrap();
    send_chunk(&mut single, b"{\"id\":\"single\",").unwrap();
    let mut export = service.connect();
    let path = "/v1/collections/a/export";
    export
        .send((head("GET", path, READ, "application/json") + "\r\n").as_bytes())
        .unwrap();
    let stored = |id: &str| {
        let path = format!("{INSERT}/{id}");
        send(&service, ADMIN, "GET", &path, &[], b"").status == 200
    };
    wait_until("the first line is stored", || stored("line-0"));
    wait_until("the export has begun", || export.has_answer());
    let digits = |key: &str| -> String {
        let hash = Sha256::digest(key.as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    place.write("keys", format!("admin sha256:{}\n", digits(ADMIN)));
    service.signal("-HUP");
    wait_until("the key is refused", || {
        send(&service, WRITE, "GET", "/v1/collections", &[], b"").status == 401
    });
    // The service may have closed the connections by now.
    let _ = send_chunk(&mut bulk, &line(1));
    let _ = send_chunk(&mut single, b"\"text\":\"a text\"}");
    let _ = single.send(b"0\r\n\r\n");
    let answer = bulk.reply().unwrap();
    let lines = answer.lines();
    assert_eq!(lines.len(), 2, "{}", answer.text());
    assert_eq!(lines[0]["id"], "line-0");
    assert_eq!(lines[1]["problem"]["code"], "unauthenticated");
    assert_eq!(single.reply().unwrap().problem().0, 401);
    // The export breaks off, because its client has not taken all of it.
    if let Ok(complete) = export.reply() {
        let shown: String = complete.text().chars().take(300).collect();
        panic!("{} bytes: {shown}", complete.body.len());
    }
    assert!(!stored("line-1") && !stored("single"));
}

/// A refusal repeats little of a value, however long the value is.
#[test]
fn long_values_are_repeated_shortly() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let long = "a".repeat(300_000);
    let recipe = format!("name = \"x\"\nscheme = \"{long}\"\n");
    let upload = format!(
        "--x\r\nContent-Disposition: form-data; name=\"recipe\"\r\n\r\n{recipe}\r\n--x--\r\n"
    );
    let settings = |name: &str| json!({ name: long }).to_string();
    let parts = "multipart/form-data; boundary=x";
    let kind = "application/json";
    for (method, path, kind, body) in [
        ("PUT", "/v1/recipes/mine", parts, upload),
        ("PUT", "/v1/collections/b", kind, settings("recipe")),
        ("PUT", "/v1/collections/b", kind, settings("measure")),
        ("PUT", "/v1/collections/b", kind, settings("window")),
        ("PUT", "/v1/collections/b", kind, settings(&long)),
        (
            "PUT",
            "/v1/collections/b",
            kind,
            json!({ "recipe": { "toml": recipe } }).to_string(),
        ),
        ("PUT", "/v1/aliases/b", kind, settings("collection")),
        ("POST", "/v1/segment", kind, settings("recipe")),
    ] {
        let headers = [("Content-Type", kind)];
        let refused = send(&service, ADMIN, method, path, &headers, body.as_bytes());
        assert!((400..500).contains(&refused.status), "{method} {path}");
        let shown: String = refused.text().chars().take(200).collect();
        assert!(refused.body.len() < 8000, "{method} {path}: {shown}");
    }
}

/// However many pairs one client has compared, another one does not wait for all of them.
#[test]
fn long_responses_leave_a_turn_to_others() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let long = |seed: usize| {
        let mut numbers = crate::support::Numbers::new(seed as u64);
        let (a, b) = (numbers.text(1500), numbers.text(1500));
        json!({ "pairs": [{ "a": a, "b": b }] }).to_string()
    };
    let compare = |key: &str, body: &str| {
        let reply = send(&service, key, "POST", "/v1/compare", &[], body.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    let (many, answered) = (12, std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for seed in 0..many {
            let (compare, answered) = (&compare, &answered);
            let body = long(seed);
            scope.spawn(move || {
                compare(READ, &body);
                answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        // All of them are on their way when the first one is answered.
        let begun = Instant::now();
        while answered.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            assert!(begun.elapsed() < crate::service::PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        compare(
            WRITE,
            &json!({ "pairs": [{ "a": "one", "b": "two" }] }).to_string(),
        );
        let before = answered.load(std::sync::atomic::Ordering::SeqCst);
        assert!(before <= many / 2, "{before} of {many} came first");
    });
}

#[test]
fn requests_per_second_are_limited() {
    let place = Place::new();
    let service = service_with_keys(&place, "--max-rate 3");
    let ask = |key| send(&service, key, "GET", "/v1/collections", &[], b"");
    let refused = (0..100)
        .map(|_| ask(READ))
        .find(|reply| reply.status == 429)
        .unwrap();
    assert_eq!(refused.problem(), (429, "too_many_requests".into()));
    assert!(
        refused.head.to_lowercase().contains("retry-after: 1"),
        "{}",
        refused.head
    );
    assert_eq!(ask(WRITE).status, 200);
    assert!((0..20).all(|_| service.get("/livez").status == 200));
}

/// A connection whose request was refused before its body was read is not reused.
#[test]
fn early_refusals_announce_the_close() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    let body = vec![b'a'; 200_000];
    for (key, method, path, kind, status) in [
        ("none-none-none-1", "POST", INSERT, "application/json", 401),
        (READ, "POST", INSERT, "application/json", 403),
        (WRITE, "POST", "/v1/nothing", "application/json", 404),
        (
            WRITE,
            "POST",
            "/v1/collections/b/documents",
            "application/json",
            404,
        ),
        (WRITE, "PATCH", INSERT, "application/json", 405),
        (WRITE, "POST", INSERT, "text/plain", 415),
    ] {
        let reply = send(
            &service,
            key,
            method,
            path,
            &[("Content-Type", kind)],
            &body,
        );
        assert_eq!(reply.status, status, "{method} {path}");
        let head = reply.head.to_lowercase();
        assert!(
            head.contains("connection: close"),
            "{method} {path}: {head}"
        );
    }
    let mut connection = service.connect();
    for _ in 0..2 {
        // The connection stays open if the request has no body.
        let reply = connection.request("GET", "/v1/nothing", &[], b"");
        assert_eq!(reply.status, 404);
        assert!(!reply.head.to_lowercase().contains("connection: close"));
    }
}

#[test]
fn hangup_signal_stops_nothing() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.signal("-HUP");
    for _ in 0..20 {
        assert_eq!(service.get("/livez").status, 200);
    }
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("SIGHUP"), "{log}");
}

/// Only callers with the right to read learn the names of collections.
#[test]
fn readiness_names_collections_to_readers_alone() {
    let place = Place::new();
    let service = service_with_keys(&place, "");
    drop(service);
    std::fs::create_dir(place.path("data/broken")).unwrap();
    place.write("data/broken/manifest", "nothing");
    let service = Service::launch(&place, "--keys keys");
    let begun = Instant::now();
    let ready = || service.get("/readyz").json();
    while ready()["opening"] != 0 {
        assert!(begun.elapsed() < crate::service::PATIENCE);
    }
    assert_eq!(ready()["failed"], json!(1));
    let named = send(&service, READ, "GET", "/readyz", &[], b"").json();
    assert_eq!(named["failed"], json!(["broken"]));
}

/// A stop signal ends a service that is under attack.
#[test]
fn service_under_attack_stops_in_time() {
    let place = Place::new();
    let mut service = service_with_keys(&place, "--drain 1s");
    let bomb = zstd(&vec![b'\n'; 32 << 20]);
    let head = format!(
        "POST {QUERY} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {READ}\r\n\
         Content-Type: {NDJSON}\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
        bomb.len() + 1
    );
    let mut attackers: Vec<_> = (0..8).map(|_| service.connect()).collect();
    for connection in &mut attackers {
        let _ = connection.send(head.as_bytes());
        let _ = connection.send(&bomb);
    }
    let begun = Instant::now();
    service.signal("-TERM");
    let (code, log) = service.wait();
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}: {log}",
        begun.elapsed()
    );
    assert_eq!(code, Some(0), "{log}");
}
