//! Administration of a running service: keys, certificates, aliases, snapshots, settings, log and metrics.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::guarded::{ADMIN, READ, WRITE, line, with_key};
use crate::service::{Reply, Service, TLS_OPTIONS, document, wait_until, write_certificate};
use crate::support::Place;

#[test]
fn leaked_key_is_replaced_without_restart() {
    let place = Place::new();
    place.write("keys", line("read", READ));
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    let status = |key| with_key(&service, key, "GET", "/v1/collections", "").status;
    assert_eq!((status(READ), status(ADMIN)), (200, 401));
    place.write("keys", line("admin", ADMIN));
    service.signal("-HUP");
    wait_until("the leaked key is refused", || status(READ) == 401);
    assert_eq!(status(ADMIN), 200);
    // A file that is not valid changes nothing.
    place.write("keys", [&line("read", READ), "write\n"].concat());
    service.signal("-HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((status(READ), status(ADMIN)), (401, 200));
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the keys were read again"), "{log}");
    let refused = "the keys were not read again";
    assert!(log.contains(refused) && log.contains("line 2"), "{log}");
    assert!(!log.contains(ADMIN) && !log.contains(READ), "{log}");
}

#[test]
fn keys_expire_and_are_limited_to_collections() {
    let place = Place::new();
    let with = |line: String, more: &str| format!("{} {more}\n", line.trim_end());
    let keys = [
        with(line("write", WRITE), "name=tenant collections=a,b-*"),
        with(line("admin", READ), "name=old expires=2020-01-01"),
        line("admin", ADMIN),
    ];
    place.write("keys", keys.concat());
    let service = Service::launch(&place, "--keys keys --log-requests");
    while service.get("/readyz").status != 200 {}
    for name in ["a", "b-1", "c"] {
        let path = format!("/v1/collections/{name}");
        assert_eq!(with_key(&service, ADMIN, "PUT", &path, "{}").status, 201);
    }
    let expired = with_key(&service, READ, "GET", "/v1/collections", "");
    assert_eq!(expired.problem(), (401, "unauthenticated".into()));
    assert!(expired.text().contains("2020-01-01"), "{}", expired.text());
    let text = document("x", "some text").to_string();
    for (name, expected) in [("a", 200), ("b-1", 200), ("c", 403), ("none", 403)] {
        let path = format!("/v1/collections/{name}/documents");
        let reply = with_key(&service, WRITE, "POST", &path, &text);
        assert_eq!(reply.status, expected, "{name}: {}", reply.text());
    }
    let listed = with_key(&service, WRITE, "GET", "/v1/collections", "").json();
    let names: Vec<_> = listed["collections"].as_array().unwrap().iter().collect();
    let names: Vec<_> = names
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b-1"]);
    let metrics = with_key(&service, WRITE, "GET", "/metrics", "");
    assert_eq!(metrics.problem(), (403, "forbidden".into()));
    let segment = with_key(&service, WRITE, "POST", "/v1/segment", "{\"texts\":[]}");
    assert_eq!(segment.status, 200);
    // Names of failed collections are hidden from callers who may not see all.
    let ready = with_key(&service, WRITE, "GET", "/readyz", "").json();
    assert_eq!(ready["failed"], 0);
    let (_, log) = service.stop();
    assert!(
        log.contains("key=\"tenant\"") && log.contains("key=\"old\""),
        "{log}"
    );
    assert!(log.contains("collection=\"b-1\""), "{log}");
    assert!(!log.contains(WRITE) && !log.contains("some text"), "{log}");
}

#[test]
fn requests_have_ids() {
    let place = Place::new();
    let options = "--log-requests --log-format json --slow-request 1ms";
    let service = Service::start(&place, options);
    service.make("a", json!({}));
    let request =
        |headers: &[(&str, &str)], path: &str| service.connect().request("GET", path, headers, b"");
    let named = request(&[("X-Request-Id", "mine-1")], "/v1/collections/a/stats");
    assert_eq!(named.header("x-request-id"), Some("mine-1"));
    let problem = request(&[("X-Request-Id", "mine-2")], "/v1/collections/none");
    assert_eq!(problem.json()["request_id"], "mine-2");
    assert_eq!(problem.header("x-request-id"), Some("mine-2"));
    assert_eq!(
        problem.header("content-length").map(str::to_owned),
        Some(problem.text().len().to_string())
    );
    let odd = request(&[("X-Request-Id", "two words")], "/v1/nothing");
    let id = odd.header("x-request-id").unwrap().to_owned();
    assert!(id.len() >= 18 && !id.contains(' '), "{id}");
    assert_eq!(odd.json()["request_id"], id.as_str());
    let long = document("x", &"many words ".repeat(100_000));
    assert_eq!(
        service.post("/v1/collections/a/documents", &long).status,
        200
    );
    let (_, log) = service.stop();
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let find = |id: &str| lines.iter().find(|line| line["request_id"] == id).unwrap();
    let named = find("mine-1");
    assert_eq!(
        (&named["call"], &named["collection"]),
        (&json!("get_stats"), &json!("a"))
    );
    assert_eq!(
        (&named["status"], &named["client"]),
        (&json!(200), &json!("127.0.0.1"))
    );
    assert_eq!(
        (&find("mine-2")["status"], &find(&id)["call"]),
        (&json!(404), &json!("none"))
    );
    let is_slow = |line: &&Value| line["message"] == "slow request" && line["call"] == "insert";
    let slow = lines.iter().find(is_slow).unwrap();
    assert_eq!(slow["level"], "WARN");
}

#[test]
fn certificate_is_replaced_without_restart() {
    let place = Place::new();
    let first = write_certificate(&place, 2090);
    let service = Service::launch(&place, TLS_OPTIONS);
    let answers = |trusted| {
        let answer = service.try_get_encrypted(trusted, "/livez");
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    };
    let states_expiry = |trusted, year_begins: &str| {
        let metrics = service.try_get_encrypted(trusted, "/metrics").unwrap();
        let sample = format!("\nlookalike_certificate_expiry_seconds {year_begins}\n");
        metrics.contains(&sample)
    };
    assert!(answers(&first));
    assert!(states_expiry(&first, "3786912000"));
    let second = write_certificate(&place, 2091);
    assert!(!answers(&second));
    service.signal("-HUP");
    wait_until("the new certificate is in use", || answers(&second));
    assert!(!answers(&first));
    assert!(states_expiry(&second, "3818448000"));
    place.write("key.pem", "damaged");
    service.signal("-HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert!(answers(&second) && states_expiry(&second, "3818448000"));
    let (_, log) = service.stop();
    assert!(log.contains("the certificate was not read again"), "{log}");
}

/// A chain that no client could read is refused at the start, and replaces no certificate.
#[test]
fn damaged_chain_replaces_no_certificate() {
    let place = Place::new();
    let first = write_certificate(&place, 2090);
    let service = Service::launch(&place, TLS_OPTIONS);
    let answers = || {
        let answer = service.try_get_encrypted(&first, "/livez");
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    };
    assert!(answers());
    let garbage = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
    place.write("cert.pem", place.read("cert.pem") + garbage);
    service.signal("-HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert!(answers());
    let (_, log) = service.stop();
    assert!(log.contains("the certificate was not read again"), "{log}");
    assert!(log.contains("certificate 2 of 2"), "{log}");
    place.refused(
        &format!("serve --data other --listen 127.0.0.1:0 {TLS_OPTIONS}"),
        &["the certificate cert.pem", "certificate 2 of 2"],
    );
}

#[test]
fn alias_switches_under_load() {
    let place = Place::new();
    let service = Service::start(&place, "");
    for name in ["posts-1", "posts-2"] {
        service.make(name, json!({ "method": "exact" }));
    }
    let to = |name: &str| json!({ "collection": name });
    let set = service.put("/v1/aliases/live", &to("posts-1"));
    assert_eq!(
        set.json(),
        json!({ "alias": "live", "collection": "posts-1" })
    );
    let rows = |name: &str| {
        let stats = service.get(&format!("/v1/collections/{name}/stats")).json();
        stats["rows"].as_u64().unwrap()
    };
    let (clients, each) = (4, 150);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let mut connection = service.connect();
            scope.spawn(move || {
                for at in 0..each {
                    let sent = document(&format!("{client}-{at}"), &format!("text {client} {at}"));
                    let reply = connection.json("POST", "/v1/collections/live/documents", &sent);
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    assert_eq!(reply.json()["verdict"], "kept");
                }
            });
        }
        wait_until("documents arrive", || rows("posts-1") > 50);
        assert_eq!(service.put("/v1/aliases/live", &to("posts-2")).status, 200);
        let before = rows("posts-1");
        // A request that had begun may end in the former collection.
        wait_until("documents arrive", || rows("posts-2") > 50);
        assert!(rows("posts-1") <= before + clients);
    });
    assert_eq!(rows("posts-1") + rows("posts-2"), clients * each);
    assert_eq!(rows("live"), rows("posts-2"));
    drop(service);
    let service = Service::start(&place, "");
    let listed = service.get("/v1/aliases").json();
    assert_eq!(listed, json!({ "aliases": { "live": "posts-2" } }));
    let shown = service.get("/v1/collections/live").json();
    assert_eq!(shown["name"], "posts-2");
}

#[test]
fn aliases_and_collections_share_their_names() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    service.make("b", json!({}));
    let change = |changes: Value| service.post("/v1/aliases", &changes);
    let both = json!({ "set": { "x": "a", "y": "b" } });
    assert_eq!(
        change(both).json(),
        json!({ "aliases": { "x": "a", "y": "b" } })
    );
    // Two aliases change places in one step, and one that fails changes nothing.
    let swapped = json!({ "set": { "x": "b", "y": "a" } });
    assert_eq!(
        change(swapped.clone()).json(),
        json!({ "aliases": swapped["set"] })
    );
    for (changes, status, code) in [
        (json!({ "set": { "z": "a", "Z": "a" } }), 422, "bad_name"),
        (
            json!({ "set": { "z": "a", "b": "a" } }),
            409,
            "collection_conflict",
        ),
        (json!({ "set": { "z": "none" } }), 404, "no_collection"),
        (json!({ "set": { "z": "x" } }), 404, "no_collection"),
        (
            json!({ "set": { "z": "a" }, "remove": ["none"] }),
            404,
            "no_alias",
        ),
        (
            json!({ "set": { "x": "a" }, "remove": ["x"] }),
            422,
            "bad_name",
        ),
        (json!({ "sets": {} }), 400, "bad_json"),
        (json!({ "set": ["x"] }), 400, "bad_json"),
    ] {
        let refused = change(changes.clone());
        assert_eq!(refused.problem(), (status, code.to_owned()), "{changes}");
    }
    let listed = service.get("/v1/aliases").json();
    assert_eq!(listed["aliases"], swapped["set"]);
    let many: serde_json::Map<_, _> = (0..1001).map(|at| (format!("n{at}"), json!("a"))).collect();
    assert_eq!(
        change(json!({ "set": many })).problem(),
        (422, "bad_name".into())
    );
    let conflict = (409, "collection_conflict".to_owned());
    assert_eq!(
        service.put("/v1/collections/x", &json!({})).problem(),
        conflict
    );
    assert_eq!(service.delete("/v1/collections/x").problem(), conflict);
    assert_eq!(service.delete("/v1/collections/a").problem(), conflict);
    assert_eq!(service.delete("/v1/aliases/y").status, 204);
    assert_eq!(
        service.delete("/v1/aliases/y").problem(),
        (404, "no_alias".into())
    );
    assert_eq!(service.delete("/v1/collections/a").status, 204);
}

#[test]
fn limited_key_reaches_collections_through_aliases() {
    let place = Place::new();
    let limited = format!("{} collections=a\n", line("read", READ).trim_end());
    place.write("keys", [limited, line("admin", ADMIN)].concat());
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    for name in ["a", "b"] {
        let path = format!("/v1/collections/{name}");
        assert_eq!(with_key(&service, ADMIN, "PUT", &path, "{}").status, 201);
    }
    let changes = "{\"set\":{\"to-a\":\"a\",\"to-b\":\"b\"}}";
    let refused = with_key(&service, READ, "POST", "/v1/aliases", changes);
    assert_eq!(refused.status, 403);
    assert_eq!(
        with_key(&service, ADMIN, "POST", "/v1/aliases", changes).status,
        200
    );
    for (name, status) in [("a", 200), ("to-a", 200), ("b", 403), ("to-b", 403)] {
        let path = format!("/v1/collections/{name}/stats");
        assert_eq!(
            with_key(&service, READ, "GET", &path, "").status,
            status,
            "{name}"
        );
    }
    let listed = with_key(&service, READ, "GET", "/v1/aliases", "").json();
    assert_eq!(listed, json!({ "aliases": { "to-a": "a" } }));
}

/// An alias that has taken the name of a deleted collection gives no access to what that collection has left, and none
/// to the name itself.
#[test]
fn limited_key_reaches_no_snapshots_through_aliases() {
    let place = Place::new();
    let limited = format!("{} collections=mine\n", line("admin", WRITE).trim_end());
    place.write("keys", [limited, line("admin", ADMIN)].concat());
    let service = Service::launch(&place, "--keys keys --snapshots copies");
    while service.get("/readyz").status != 200 {}
    let admin = |method: &str, path: &str, body: &str| {
        let reply = with_key(&service, ADMIN, method, path, body);
        assert!(reply.status < 300, "{method} {path}: {}", reply.text());
        reply
    };
    admin("PUT", "/v1/collections/mine", "{}");
    admin("PUT", "/v1/collections/gone", "{}");
    admin(
        "POST",
        "/v1/collections/gone/snapshot",
        "{\"name\":\"last\"}",
    );
    admin("DELETE", "/v1/collections/gone", "");
    admin("PUT", "/v1/aliases/gone", "{\"collection\":\"mine\"}");
    let tried = |method: &str, path: &str, body: &str| {
        with_key(&service, WRITE, method, path, body).problem()
    };
    for (method, path, body) in [
        ("DELETE", "/v1/snapshots/gone/last", ""),
        (
            "POST",
            "/v1/collections/mine/restore",
            "{\"snapshot\":\"last\",\"from\":\"gone\"}",
        ),
        (
            "POST",
            "/v1/collections/gone/restore",
            "{\"snapshot\":\"last\"}",
        ),
        ("PUT", "/v1/collections/gone", "{}"),
        ("PATCH", "/v1/collections/gone", "{}"),
        ("DELETE", "/v1/collections/gone", ""),
    ] {
        let refused = (403, "forbidden".to_owned());
        assert_eq!(tried(method, path, body), refused, "{method} {path}");
    }
    let listed = with_key(&service, WRITE, "GET", "/v1/snapshots", "").json();
    assert_eq!(listed, json!({ "snapshots": [] }));
    // The caller may use the collection that the alias names.
    let stats = with_key(&service, WRITE, "GET", "/v1/collections/gone/stats", "");
    assert_eq!(stats.status, 200);
    let path = "/v1/collections/gone/snapshot";
    let made = with_key(&service, WRITE, "POST", path, "{\"name\":\"first\"}");
    assert_eq!(made.json()["collection"], "mine");
    admin("DELETE", "/v1/snapshots/mine/first", "");
    admin("DELETE", "/v1/snapshots/gone/last", "");
}

/// With many collections, a page of metrics has a few lines for each, and sums of the other figures.
#[test]
fn metrics_of_many_collections_are_short() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let names: Vec<_> = (0..51).map(|at| format!("c{at}")).collect();
    let fill = |name: &str| {
        service.make(name, json!({ "method": "exact" }));
        let path = format!("/v1/collections/{name}/documents");
        assert_eq!(service.post(&path, &document("x", "some text")).status, 200);
    };
    let lines_of = |metrics: &str, name: &str| {
        let label = format!("collection=\"{name}\"");
        metrics.lines().filter(|line| line.contains(&label)).count()
    };
    names[..50].iter().for_each(|name| fill(name));
    let all = service.get("/metrics").text();
    let of_one = lines_of(&all, "c7");
    assert!(of_one > 15 && lines_of(&all, "*") == 0, "{all}");
    fill(&names[50]);
    let summed = service.get("/metrics").text();
    assert_eq!(lines_of(&summed, "c7"), 3);
    let kept = "lookalike_documents_total{collection=\"*\",result=\"kept\"} 51\n";
    assert!(summed.contains(kept), "{summed}");
    // Another collection takes three lines.
    let bytes: usize = summed
        .lines()
        .filter(|line| line.contains("collection=\"c7\""))
        .map(|line| line.len() + 1)
        .sum();
    assert!(bytes < 150, "{bytes}");
    let one = service.get("/metrics?collection=c7").text();
    assert_eq!((lines_of(&one, "c7"), lines_of(&one, "*")), (of_one, 0));
    let missing = service.get("/metrics?collection=none");
    assert_eq!(missing.problem(), (404, "no_collection".into()));
    let version = format!(
        "lookalike_build_info{{version=\"{}\"}} 1\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in [&version, "process_open_fds ", "lookalike_disk_free_bytes "] {
        assert!(one.contains(line), "{line}{one}");
    }
}

fn snapshots_of(service: &Service, collection: &str) -> Vec<String> {
    let path = format!("/v1/snapshots?collection={collection}");
    let listed = service.get(&path).json();
    let listed = listed["snapshots"].as_array().unwrap().iter();
    listed
        .map(|listed| listed["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn snapshot_is_restored_while_documents_arrive() {
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    service.make("a", json!({ "method": "exact" }));
    let insert = |collection: &str, at: usize| {
        let path = format!("/v1/collections/{collection}/documents");
        let reply = service.post(&path, &document(&format!("d{at}"), &format!("text {at}")));
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    (0..200).for_each(|at| assert_eq!(insert("a", at)["verdict"], "kept"));
    let made = service.post("/v1/collections/a/snapshot", &json!({ "name": "one" }));
    assert_eq!(made.status, 201);
    let listed = service.get("/v1/snapshots").json();
    let one = &listed["snapshots"][0];
    assert_eq!(
        (&one["collection"], &one["name"]),
        (&json!("a"), &json!("one"))
    );
    assert!(one["bytes"].as_u64().unwrap() > 1000, "{one}");
    assert!(one["time"].as_str().unwrap().ends_with('Z'), "{one}");
    let restore =
        |to: &str, body: Value| service.post(&format!("/v1/collections/{to}/restore"), &body);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (200..400).for_each(|at| drop(insert("a", at))));
        let restored = restore("b", json!({ "snapshot": "one", "from": "a" }));
        assert_eq!(restored.status, 201, "{}", restored.text());
        assert_eq!(restored.json()["settings"]["method"], "exact");
        writer.join().unwrap();
    });
    let rows =
        |name: &str| service.get(&format!("/v1/collections/{name}/stats")).json()["rows"].clone();
    assert_eq!((rows("a"), rows("b")), (json!(400), json!(200)));
    // A known document gets its first answer, and the restored collection goes on.
    assert_eq!(insert("b", 7)["seq"], 8);
    assert_eq!(insert("b", 400)["seq"], 201);
    for (to, body, expected) in [
        (
            "a",
            json!({ "snapshot": "one" }),
            (409, "collection_conflict"),
        ),
        (
            "c",
            json!({ "snapshot": "two", "from": "a" }),
            (404, "no_snapshot"),
        ),
        ("c", json!({ "snapshot": "one" }), (404, "no_snapshot")),
        (
            "c",
            json!({ "snapshot": "../a", "from": "a" }),
            (422, "bad_name"),
        ),
        (
            "c",
            json!({ "snapshot": "one", "from": ".." }),
            (422, "bad_name"),
        ),
        ("c", json!({ "from": "a" }), (400, "bad_json")),
    ] {
        let refused = restore(to, body.clone());
        assert_eq!(
            refused.problem(),
            (expected.0, expected.1.to_owned()),
            "{body}"
        );
    }
    // A damaged snapshot does not become a collection.
    let folder = place.path("copies/a/one");
    let texts = std::fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().path());
    let texts: Vec<_> = texts
        .filter(|it| it.extension().is_some_and(|it| it == "texts"))
        .collect();
    let mut bytes = std::fs::read(&texts[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&texts[0], bytes).unwrap();
    let damaged = restore("c", json!({ "snapshot": "one", "from": "a" }));
    assert_eq!(damaged.problem(), (500, "damaged".into()));
    assert_eq!(service.get("/v1/collections/c").status, 404);
    assert!(!place.has("data/c") && !place.has("data/.restoring-c"));
    assert_eq!(service.delete("/v1/snapshots/a/one").status, 204);
    assert_eq!(
        service.delete("/v1/snapshots/a/one").problem(),
        (404, "no_snapshot".into())
    );
    assert!(snapshots_of(&service, "a").is_empty());
    assert!(
        !place.has("copies/a"),
        "{:?}",
        std::fs::read_dir(place.path("copies/a"))
            .unwrap()
            .collect::<Vec<_>>()
    );
    drop(service);
    let service = Service::start(&place, "");
    let stats = service.get("/v1/collections/b/stats").json();
    assert_eq!(stats["rows"], 201);
    let refused = service.get("/v1/snapshots");
    assert_eq!(refused.problem(), (400, "bad_request".into()));
}

/// A copy that was interrupted is not a collection, and it is removed at the next start.
#[test]
fn interrupted_restore_leaves_nothing() {
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    service.make("a", json!({}));
    assert_eq!(
        service
            .post("/v1/collections/a/snapshot", &json!({ "name": "one" }))
            .status,
        201
    );
    service.kill();
    std::fs::create_dir(place.path("data/.restoring-b")).unwrap();
    for name in ["lock", "partitions", "manifest.new"] {
        place.write(&format!("data/.restoring-b/{name}"), "half");
    }
    let service = Service::start(&place, "--snapshots copies");
    assert!(!place.has("data/.restoring-b"));
    assert_eq!(service.get("/v1/collections/b").status, 404);
    let restored = service.post(
        "/v1/collections/b/restore",
        &json!({ "snapshot": "one", "from": "a" }),
    );
    assert_eq!(restored.status, 201);
}

#[test]
fn snapshots_are_made_on_a_schedule() {
    let place = Place::new();
    let options = "--snapshots copies --snapshot-every 1s --snapshot-keep 2";
    let service = Service::start(&place, options);
    service.make("a", json!({}));
    assert_eq!(
        service
            .post("/v1/collections/a/snapshot", &json!({ "name": "auto" }))
            .status,
        201
    );
    // The schedule would delete a snapshot of such a name.
    for (name, status) in [
        ("auto-20200101t000000z", 422),
        ("auto-20990101t000000z", 422),
        ("auto-20261301t000000z", 201),
    ] {
        let made = service.post("/v1/collections/a/snapshot", &json!({ "name": name }));
        assert_eq!(made.status, status, "{name}: {}", made.text());
        if status == 422 {
            assert_eq!(made.problem().1, "bad_name");
            assert!(made.text().contains("use another name"), "{}", made.text());
        }
    }
    let deleted = service.delete("/v1/snapshots/a/auto-20261301t000000z");
    assert_eq!(deleted.status, 204);
    let automatic = || -> Vec<String> {
        let names = snapshots_of(&service, "a").into_iter();
        names.filter(|name| name.starts_with("auto-")).collect()
    };
    wait_until("a snapshot is made", || !automatic().is_empty());
    let first = automatic().remove(0);
    wait_until("the first is deleted", || !automatic().contains(&first));
    // The newest two stay, and a third while it replaces one of them.
    assert!((2..=3).contains(&automatic().len()), "{:?}", automatic());
    assert!(snapshots_of(&service, "a").contains(&"auto".to_owned()));
    let metrics = service.get("/metrics").text();
    let age = "lookalike_snapshot_age_seconds{collection=\"a\"} ";
    let age = metrics
        .lines()
        .find_map(|line| line.strip_prefix(age))
        .unwrap();
    assert!(age.parse::<u64>().unwrap() < 20, "{age}");
    drop(service);
    for (options, said) in [
        ("--snapshot-every 1h", "--snapshots PLACE"),
        ("--snapshot-keep 3", "without --snapshot-every"),
        ("--snapshots copies --snapshot-every 0s", "below a second"),
    ] {
        place.refused(
            &format!("serve --data other --listen 127.0.0.1:0 {options}"),
            &[said],
        );
    }
}

/// A collector of traces, which keeps what it is sent.
#[cfg(feature = "traces")]
fn start_collector() -> (std::net::SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (sender, received)) =
        (listener.local_addr().unwrap(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                let read = stream.read(&mut buffer).unwrap();
                bytes.extend_from_slice(&buffer[..read]);
                let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
                let Some(head) = head else { continue };
                let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
                let length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                if read == 0 || bytes.len() >= head + 4 + length.unwrap().parse::<usize>().unwrap()
                {
                    break;
                }
            }
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if sender.send(bytes).is_err() {
                return;
            }
        }
    });
    (address, received)
}

#[cfg(feature = "traces")]
#[test]
fn requests_are_traced() {
    let (address, received) = start_collector();
    let place = Place::new();
    let service = Service::start(&place, &format!("--traces http://{address}/v1/traces"));
    service.make("posts", json!({}));
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [("traceparent", parent.as_str()), ("X-Request-Id", "mine-7")];
    let path = "/v1/collections/posts/stats";
    let reply = service.connect().request("GET", path, &headers, b"");
    assert_eq!(reply.status, 200);
    // The last spans are sent before the service ends.
    assert_eq!(service.stop().0, Some(0));
    let sent: Vec<u8> = received.try_iter().flatten().collect();
    let id: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&trace[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let contains = |part: &[u8]| sent.windows(part.len()).any(|window| window == part);
    for part in [
        "POST /v1/traces",
        "get_stats",
        "put_collection",
        "mine-7",
        "posts",
    ] {
        assert!(contains(part.as_bytes()), "{part}");
    }
    assert!(contains(&id) && !contains(b"livez") && !contains(b"ready"));
    place.refused(
        "serve --data other --listen 127.0.0.1:0 --traces nowhere",
        &["--traces nowhere: give a URL"],
    );
}

#[cfg(not(feature = "traces"))]
#[test]
fn traces_need_their_feature() {
    Place::new().refused(
        "serve --data other --listen 127.0.0.1:0 --traces http://localhost:4318/v1/traces",
        &["built without traces", "--features traces"],
    );
}

fn ask(service: &Service, method: &str, path: &str, body: &str) -> Reply {
    let headers = [("content-type", "application/json")];
    service
        .connect()
        .request(method, path, &headers, body.as_bytes())
}

/// Settings that may change take effect at once, survive a restart, and are those of `PUT` from then on.
#[test]
fn settings_change_by_patch() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let path = "/v1/collections/a";
    let made = json!({ "window": "1h", "skew": "10m" }).to_string();
    assert_eq!(ask(&service, "PUT", path, &made).status, 201);
    let insert = |service: &Service, id: &str, text: &str, time: &str| {
        let body = json!({ "id": id, "text": text, "time": time }).to_string();
        ask(service, "POST", "/v1/collections/a/documents", &body)
    };
    let text = "the keeper lights the lamp of the harbour";
    insert(&service, "one", text, "2024-05-01T00:00:00Z");
    let again = insert(&service, "two", text, "2024-05-01T02:00:00Z").json();
    assert_eq!(again["verdict"], "kept", "{again}");
    let patch = |service: &Service, change: Value| ask(service, "PATCH", path, &change.to_string());
    let changed = patch(
        &service,
        json!({ "window": "1d", "on_conflict": "replace" }),
    );
    assert_eq!(changed.status, 200, "{}", changed.text());
    let settings = changed.json()["settings"].clone();
    assert_eq!(settings["window"], "1d");
    assert_eq!(
        (&settings["skew"], &settings["on_conflict"]),
        (&json!("10m"), &json!("replace"))
    );
    let wide = insert(&service, "three", text, "2024-05-01T03:00:00Z").json();
    assert_eq!(
        (&wide["verdict"], &wide["of"]),
        (&json!("duplicate"), &json!("two")),
        "{wide}"
    );
    let replaced = insert(&service, "three", "other words", "2024-05-01T03:00:00Z");
    assert_eq!(replaced.status, 200, "{}", replaced.text());
    // Without a change everything stays.
    assert_eq!(changed.json()["created"]["window"], "1h");
    let same = patch(&service, json!({ "window": "24h" }));
    assert_eq!((same.status, &same.json()["settings"]), (200, &settings));
    let former = ask(&service, "PUT", path, &made);
    assert_eq!(former.problem(), (409, "collection_conflict".into()));
    assert!(
        former.text().contains("its `window` is"),
        "{}",
        former.text()
    );
    assert_eq!(
        ask(&service, "PUT", path, &settings.to_string()).status,
        200
    );
    for (change, said) in [
        (json!({ "threshold": 0.5 }), "`threshold` cannot change"),
        (json!({ "recipe": "words-1" }), "switch an alias"),
        (json!({ "holds": null }), "`holds` cannot change"),
        (json!({ "window": null }), "a window cannot be removed"),
        (json!({ "refresh": null }), "`refresh` is null"),
        (
            json!({ "window": "2 days" }),
            "the field `window` is '2 days'",
        ),
        (json!({ "window": "0s" }), "below a microsecond"),
        (json!({ "window": "5m" }), "`skew` would be 600s"),
        (json!({ "skew": "2d" }), "longer than the `window`"),
        (json!({}), "the change is empty"),
    ] {
        let refused = patch(&service, change);
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains(said), "{said}: {}", refused.text());
    }
    assert_eq!(ask(&service, "PATCH", path, "[]").problem().0, 400);
    for wrong in [
        json!({ "expire": "never" }),
        json!({ "refresh": "yes" }),
        json!({ "skew": 5 }),
        json!({ "size": 1 }),
    ] {
        assert_eq!(patch(&service, wrong).problem(), (400, "bad_json".into()));
    }
    let twice = ask(&service, "PATCH", path, r#"{"window":"1d","window":"2d"}"#);
    assert_eq!(twice.problem().0, 400, "{}", twice.text());
    assert_eq!(
        ask(
            &service,
            "PATCH",
            "/v1/collections/none",
            "{\"refresh\":true}"
        )
        .status,
        404
    );
    assert_eq!(ask(&service, "PUT", "/v1/collections/b", "{}").status, 201);
    let forever = ask(
        &service,
        "PATCH",
        "/v1/collections/b",
        "{\"window\":\"1d\"}",
    );
    assert_eq!(forever.status, 422);
    assert!(
        forever.text().contains("without a window"),
        "{}",
        forever.text()
    );
    assert_eq!(
        ask(&service, "PUT", "/v1/aliases/now", r#"{"collection":"a"}"#).status,
        200
    );
    let alias = ask(
        &service,
        "PATCH",
        "/v1/collections/now",
        "{\"refresh\":true}",
    );
    assert_eq!(alias.problem(), (409, "collection_conflict".into()));
    let metrics = service.get("/metrics").text();
    for line in [
        "lookalike_requests_total{call=\"patch_collection\",status=\"2xx\"} 2",
        "lookalike_sync_seconds_bucket{collection=\"a\",le=\"+Inf\"} ",
        "lookalike_sync_seconds_sum{collection=\"a\"} 0.",
        "lookalike_sync_seconds_count{collection=\"b\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("lookalike_sync_seconds_count{collection=\"a\"} 0"));
    drop(service);
    let service = Service::start(&place, "");
    while service.get("/readyz").status != 200 {}
    assert_eq!(service.get(path).json()["settings"], settings);
    drop(service);
    place.ok("store export data/a -o a.jsonl --settings a.json");
    let exported: Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!(exported["window"], "1d");
}

/// Only a key of the role `admin` changes settings.
#[test]
fn patch_needs_the_role_admin() {
    let place = Place::new();
    let keys = [
        line("read", READ),
        line("write", WRITE),
        line("admin", ADMIN),
    ];
    place.write("keys", keys.concat());
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    let path = "/v1/collections/a";
    assert_eq!(
        with_key(&service, ADMIN, "PUT", path, "{\"window\":\"1d\"}").status,
        201
    );
    for (key, status) in [(READ, 403), (WRITE, 403), (ADMIN, 200)] {
        let reply = with_key(&service, key, "PATCH", path, "{\"refresh\":true}");
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

/// An alias that is switched while a body arrives changes neither the collection nor the rights of the caller.
#[test]
fn request_keeps_the_collection_that_it_began_with() {
    let place = Place::new();
    let limited = format!("{} collections=a\n", line("write", WRITE).trim_end());
    place.write("keys", [limited, line("admin", ADMIN)].concat());
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    let admin = |method: &str, path: &str, body: &str| {
        let reply = with_key(&service, ADMIN, method, path, body);
        assert!(reply.status < 300, "{path}: {}", reply.text());
        reply
    };
    admin("PUT", "/v1/collections/a", "{}");
    admin("PUT", "/v1/collections/b", "{}");
    admin(
        "POST",
        "/v1/collections/b/documents",
        "{\"id\":\"x\",\"text\":\"kept in b\"}",
    );
    for (path, body) in [
        ("documents/delete", "{\"ids\":[\"x\"]}"),
        ("documents", "{\"id\":\"y\",\"text\":\"some other text\"}"),
        ("query?limit=1", "{\"text\":\"kept in b\"}"),
    ] {
        admin("PUT", "/v1/aliases/live", "{\"collection\":\"a\"}");
        let mut slow = service.connect();
        let head = format!(
            "POST /v1/collections/live/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRITE}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        slow.send(head.as_bytes()).unwrap();
        slow.send(&body.as_bytes()[..5]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        admin("PUT", "/v1/aliases/live", "{\"collection\":\"b\"}");
        slow.send(&body.as_bytes()[5..]).unwrap();
        let reply = slow.reply().unwrap();
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(
            !reply.text().contains("\"x\",\"deleted\":true"),
            "{}",
            reply.text()
        );
        assert!(!reply.text().contains("duplicate"), "{}", reply.text());
    }
    admin("GET", "/v1/collections/b/documents/x", "");
    admin("GET", "/v1/collections/a/documents/y", "");
}

/// A key for some collections learns only which of these use a recipe.
#[test]
fn users_of_recipes_are_hidden_from_limited_keys() {
    let place = Place::new();
    let limited = format!("{} collections=a\n", line("read", READ).trim_end());
    place.write("keys", [limited, line("admin", ADMIN)].concat());
    let service = Service::launch(&place, "--keys keys");
    while service.get("/readyz").status != 200 {}
    let recipe = place.ok("recipe words-1").text().to_owned();
    let body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"recipe\"\r\n\r\n{recipe}\r\n--x--\r\n"
    );
    let key = format!("Bearer {ADMIN}");
    let headers = [
        ("Authorization", key.as_str()),
        ("Content-Type", "multipart/form-data; boundary=x"),
    ];
    let put = service
        .connect()
        .request("PUT", "/v1/recipes/mine", &headers, body.as_bytes());
    assert_eq!(put.status, 201, "{}", put.text());
    for name in ["a", "b"] {
        let path = format!("/v1/collections/{name}");
        let made = with_key(&service, ADMIN, "PUT", &path, "{\"recipe\":\"mine\"}");
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let users = |key| {
        let shown = with_key(&service, key, "GET", "/v1/recipes/mine", "");
        shown.json()["collections"].clone()
    };
    assert_eq!(users(ADMIN), json!(["a", "b"]));
    assert_eq!(users(READ), json!(["a"]));
}
