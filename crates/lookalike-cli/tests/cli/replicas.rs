//! Several services that follow one shared log, in a directory.

#![cfg(feature = "object-store")]

use serde_json::{Value, json};

use crate::service::{Reply, Service, document, wait_until};
use crate::support::Place;

/// A text of which `edit` is one word.
fn text(topic: &str, edit: &str) -> String {
    let words: Vec<_> = (0..20).map(|at| format!("{topic}{at}")).collect();
    format!("{} {edit}", words.join(" "))
}

/// Places of replicas: each with a data directory of its own, and all with one log.
struct ReplicaPlaces {
    shared: Place,
    places: Vec<Place>,
}

impl ReplicaPlaces {
    fn new(count: usize) -> Self {
        Self {
            shared: Place::new(),
            places: (0..count).map(|_| Place::new()).collect(),
        }
    }

    fn url(&self) -> String {
        format!("file://{}", self.shared.path("log").display())
    }

    fn options(&self, at: usize) -> String {
        format!("--shared-log {} --replica r{at} --headroom 1Mi", self.url())
    }

    fn start(&self, at: usize) -> Service {
        Service::start(&self.places[at], &self.options(at))
    }

    fn start_all(&self) -> Vec<Service> {
        (0..self.places.len()).map(|at| self.start(at)).collect()
    }
}

fn position(reply: &Reply) -> u64 {
    let header = reply.header("lookalike-position");
    header
        .unwrap_or_else(|| panic!("{}", reply.head))
        .parse()
        .unwrap()
}

/// Returns the export of a replica that has applied a record.
fn export(service: &Service, record: u64) -> String {
    let header = [("Lookalike-Position", &*record.to_string())];
    let path = "/v1/collections/news/export";
    let reply = service.connect().request("GET", path, &header, b"");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

fn insert(service: &Service, id: &str, text: &str) -> Reply {
    let reply = service.post("/v1/collections/news/documents", &document(id, text));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

/// Whatever is changed at one replica, in bulk or alone, is so at all of them.
#[test]
fn every_change_reaches_every_replica() {
    let places = ReplicaPlaces::new(2);
    let services = places.start_all();
    let (first, second) = (&services[0], &services[1]);
    let made = first.put("/v1/collections/news", &json!({ "threshold": 0.6 }));
    assert_eq!((made.status, position(&made)), (201, 1));
    // The other replica looks at the end of the log before it says that there is no collection.
    let kept = insert(second, "a", &text("harbour", "one"));
    assert_eq!(kept.json()["verdict"], "kept");
    let lines: String = ["two", "three"]
        .iter()
        .map(|edit| format!("{}\n", document(edit, &text("harbour", edit))))
        .collect();
    let answers = first.post_lines("/v1/collections/news/documents", lines.as_bytes());
    for answer in &answers {
        assert_eq!(answer["of"], "a", "{answer}");
    }
    // Each line of a bulk insert has its record; the other replica has the document once it has applied that.
    let record = answers.last().unwrap()["record"].as_u64().unwrap();
    let header = [("Lookalike-Position", &*record.to_string())];
    let path = "/v1/collections/news/documents/three";
    let read = second.connect().request("GET", path, &header, b"");
    assert_eq!(read.status, 200, "{}", read.text());
    let queried = first.post_lines("/v1/collections/news/query", lines.as_bytes());
    assert!(queried.iter().all(|answer| answer["record"].is_null()));
    let again = insert(second, "a", &text("harbour", "one"));
    assert_eq!(again.json()["seq"], kept.json()["seq"]);
    let conflict = second.post(
        "/v1/collections/news/documents",
        &document("a", "another text under the same id"),
    );
    assert_eq!(conflict.problem(), (409, "id_conflict".into()));
    let refused = second.put("/v1/collections/news", &json!({ "threshold": 0.7 }));
    assert_eq!(refused.problem(), (409, "collection_conflict".into()));
    assert_eq!(
        first
            .put("/v1/aliases/live", &json!({ "collection": "news" }))
            .status,
        200
    );
    assert_eq!(
        first.delete("/v1/collections/news/documents/none").status,
        404
    );
    let deleted = first.delete("/v1/collections/news/documents/two");
    assert_eq!(deleted.status, 204);
    let ids = json!({ "ids": ["three", "none"] });
    let deleted = second.post("/v1/collections/live/documents/delete", &ids);
    let results = &deleted.json()["results"];
    assert_eq!(
        (&results[0]["deleted"], &results[1]["deleted"]),
        (&json!(true), &json!(false))
    );
    let last = position(&deleted);
    let (one, other) = (export(first, last), export(second, last));
    assert_eq!(one, other);
    assert_eq!(one.lines().count(), 1, "{one}");
    // Reads by sequence number.
    let seq = kept.json()["seq"].as_u64().unwrap();
    let read = first.get(&format!("/v1/collections/news/documents/a?at_least={seq}"));
    assert_eq!(read.status, 200, "{}", read.text());
    let gone = second.delete("/v1/collections/news");
    assert_eq!(gone.problem(), (409, "collection_conflict".into()));
    assert_eq!(second.delete("/v1/aliases/live").status, 204);
    let gone = second.delete("/v1/collections/news");
    let header = [("Lookalike-Position", &*position(&gone).to_string())];
    let path = "/v1/collections/news";
    assert_eq!(
        first.connect().request("GET", path, &header, b"").status,
        404
    );
}

/// Documents that are compared by edit distance are checked in turns, and every replica has the same verdicts.
#[test]
fn costly_documents_are_inserted_in_order() {
    let places = ReplicaPlaces::new(2);
    let services = places.start_all();
    let (first, second) = (&services[0], &services[1]);
    first.make(
        "news",
        json!({ "measure": "levenshtein", "threshold": 0.9 }),
    );
    let long = |edit: usize| text("harbour", &format!("{edit:04}"));
    let mut lines: String = (0..60)
        .map(|at| format!("{}\n", document(&format!("d{at:02}"), &long(at))))
        .collect();
    lines.push_str("no document\n");
    let answers = first.post_lines("/v1/collections/news/documents", lines.as_bytes());
    assert_eq!(answers.len(), 61);
    assert_eq!(answers[0]["verdict"], "kept", "{}", answers[0]);
    for (at, answer) in answers[1..60].iter().enumerate() {
        assert_eq!(
            (&answer["of"], &answer["id"]),
            (&json!("d00"), &json!(format!("d{:02}", at + 1)))
        );
    }
    assert_eq!(
        answers[60]["problem"]["code"], "bad_json",
        "{}",
        answers[60]
    );
    let alone = insert(second, "alone", &long(70));
    assert_eq!(alone.json()["of"], "d00");
    let last = position(&alone);
    assert_eq!(export(first, last), export(second, last));
}

/// Uploads a recipe under the name `own`.
fn upload_recipe(service: &Service, place: &Place) {
    let boundary = "xx";
    let recipe = place.ok("recipe words-3");
    let recipe = recipe.text();
    let body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"recipe\"\r\n\r\n{recipe}\r\n--{boundary}--\r\n"
    );
    let kind = format!("multipart/form-data; boundary={boundary}");
    let headers = [("Content-Type", &*kind)];
    let uploaded = service
        .connect()
        .request("PUT", "/v1/recipes/own", &headers, body.as_bytes());
    assert_eq!(uploaded.status, 201, "{}", uploaded.text());
}

/// A directory with nothing but a recipe becomes the beginning of a new log, and does not follow one that exists.
#[test]
fn recipe_alone_is_the_beginning_of_a_log() {
    let places = ReplicaPlaces::new(2);
    let alone = Service::start(&places.places[0], "--headroom 1Mi");
    upload_recipe(&alone, &places.shared);
    alone.kill();
    let services = places.start_all();
    let made = services[1].put("/v1/collections/news", &json!({ "recipe": "own" }));
    assert_eq!(made.status, 201, "{}", made.text());
    let kept = insert(&services[0], "a", &text("harbour", "one"));
    let last = position(&kept);
    assert_eq!(export(&services[0], last), export(&services[1], last));
    let stranger = Place::new();
    let alone = Service::start(&stranger, "--headroom 1Mi");
    upload_recipe(&alone, &places.shared);
    alone.kill();
    let line = format!(
        "serve --data data --listen 127.0.0.1:0 --shared-log {} --replica stranger",
        places.url()
    );
    stranger.refused(&line, &["recipes", "do not come from the shared log"]);
}

/// Recipes are uploaded to all replicas, and a collection uses them on each.
#[test]
fn uploaded_recipe_is_that_of_all_replicas() {
    let places = ReplicaPlaces::new(2);
    let services = places.start_all();
    upload_recipe(&services[0], &places.shared);
    let made = services[0].put("/v1/collections/news", &json!({ "recipe": "own" }));
    assert_eq!(made.status, 201, "{}", made.text());
    insert(&services[1], "a", &text("harbour", "one"));
    let used = services[1].delete("/v1/recipes/own");
    assert_eq!(used.problem(), (409, "recipe_conflict".into()));
}

/// A replica without room on its disk waits, and neither refuses a collection that others create nor stops.
#[test]
fn full_disk_waits_with_a_new_collection() {
    let places = ReplicaPlaces::new(2);
    let other = places.start(0);
    let options = places.options(1).replace("1Mi", "1000000G");
    let full = Service::start(&places.places[1], &options);
    let refused = full.put("/v1/collections/news", &json!({}));
    assert_eq!(refused.problem(), (503, "log_unavailable".into()));
    let shown = refused.text();
    assert!(shown.contains("room on its disk"), "{shown}");
    // The other replica has it, and so has this one once there is room.
    let kept = insert(&other, "a", &text("harbour", "one"));
    full.kill();
    let back = places.start(1);
    let last = position(&kept);
    assert_eq!(export(&back, last), export(&other, last));
}

/// A replica that is killed and one that lost its disk come back with everything that was answered.
#[test]
fn killed_and_erased_replicas_come_back() {
    let places = ReplicaPlaces::new(2);
    let mut services = places.start_all();
    services[0].make("news", json!({ "threshold": 0.6 }));
    for number in 0..10 {
        insert(
            &services[number % 2],
            &format!("d{number}"),
            &text(&format!("t{}", number / 2), "x"),
        );
    }
    services.remove(0).kill();
    let last = position(&insert(&services[0], "later", &text("later", "x")));
    std::fs::remove_dir_all(places.places[0].path("data")).unwrap();
    let back = places.start(0);
    assert_eq!(export(&back, last), export(&services[0], last));
    assert_eq!(export(&back, last).lines().count(), 11);
    services.remove(0).kill();
    let other = places.start(1);
    assert_eq!(export(&back, last), export(&other, last));
    // The log, replayed to a moment, has what there was at that moment.
    back.kill();
    other.kill();
    let url = places.url();
    let place = Place::new();
    let restored = place.ok(&format!("store restore {url} then --at 6"));
    assert!(restored.err.contains("record 6"), "{}", restored.err);
    place.ok("store export then/news -o then.jsonl");
    assert_eq!(place.read("then.jsonl").lines().count(), 5);
    let latest = place.summary(&format!("store restore {url} latest --at latest"));
    assert_eq!(latest["collections"], json!(["news"]));
    place.ok("store export latest/news -o latest.jsonl");
    assert_eq!(place.read("latest.jsonl").lines().count(), 11);
    place.refused(
        &format!("store restore {url} never --at 9000"),
        &["record 9000"],
    );
    place.refused(
        &format!("store restore {url} latest --at latest"),
        &["has collections"],
    );
}

/// The collections of a service become the beginning of a log, from which other replicas start.
#[test]
fn running_service_moves_onto_a_log_and_off() {
    let places = ReplicaPlaces::new(2);
    let alone = Service::start(&places.places[0], "");
    alone.make("news", json!({ "threshold": 0.6 }));
    insert(&alone, "a", &text("harbour", "one"));
    let before = alone.get("/v1/collections/news/export").text();
    assert_eq!(alone.stop().0, Some(0));
    let first = places.start(0);
    let second = places.start(1);
    assert_eq!(export(&second, 1), before);
    let repeated = insert(&second, "b", &text("harbour", "two"));
    assert_eq!(repeated.json()["of"], "a");
    let after = export(&first, position(&repeated));
    let (_, log) = first.stop();
    // A replica is ready once it has caught up, and says so once.
    let ready = log.matches("ready: follows the shared log");
    assert_eq!(ready.count(), 1, "{log}");
    assert!(!log.lines().any(|line| line.ends_with(" ready")), "{log}");
    assert!(log.contains("beginning of the shared log"), "{log}");
    // A directory with collections of its own belongs to no other log.
    let stranger = Place::new();
    let own = Service::start(&stranger, "");
    own.make("news", json!({}));
    own.stop();
    let options = format!(
        "serve --data data --listen 127.0.0.1:0 {}",
        places.options(7)
    );
    stranger.refused(&options, &["do not come from the shared log"]);
    let alone = Service::start(&places.places[0], "");
    assert_eq!(alone.get("/v1/collections/news/export").text(), after);
    insert(&alone, "alone", &text("alone", "x"));
    let (_, log) = alone.stop();
    assert!(log.contains("leaves it"), "{log}");
    assert!(!log.contains("follows the shared log"), "{log}");
    // The old log does not have what came in between, and a new one begins with all of it.
    let line = format!(
        "serve --data data --listen 127.0.0.1:0 {}",
        places.options(0)
    );
    places.places[0].refused(&line, &["do not come from the shared log"]);
    let new_log = ReplicaPlaces::new(1);
    let first = Service::start(&places.places[0], &new_log.options(0));
    begins_anew(&first);
    assert_eq!(first.stop().0, Some(0));
}

/// Checks that a replica whose collections have followed another log takes every kind of change.
fn begins_anew(service: &Service) {
    let kept = insert(service, "new", &text("another", "x"));
    assert_eq!(kept.json()["verdict"], "kept");
    assert_eq!(
        insert(service, "c", &text("harbour", "c")).json()["of"],
        "a"
    );
    assert_eq!(
        service.delete("/v1/collections/news/documents/new").status,
        204
    );
    assert_eq!(
        service.get("/v1/collections/news/documents/new").status,
        404
    );
    assert_eq!(service.delete("/v1/collections/news").status, 204);
    assert_eq!(service.get("/v1/collections/news").status, 404);
}

/// A state of the past becomes the beginning of a new log.
#[test]
fn restored_directory_begins_a_new_log() {
    let places = ReplicaPlaces::new(1);
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    insert(&first, "a", &text("harbour", "one"));
    for number in 0..20 {
        insert(
            &first,
            &format!("d{number}"),
            &text(&format!("t{number}"), "x"),
        );
    }
    first.stop();
    let place = Place::new();
    place.ok(&format!("store restore {} data --at latest", places.url()));
    let new_log = ReplicaPlaces::new(1);
    let again = Service::start(&place, &new_log.options(0));
    begins_anew(&again);
}

/// A replica that meets a damaged log stops, says so, and answers queries; the log is repaired from its copies.
#[test]
fn damaged_log_stops_a_replica_and_is_repaired() {
    let places = ReplicaPlaces::new(2);
    let services = places.start_all();
    services[0].make("news", json!({ "threshold": 0.6 }));
    let mut last = 0;
    for number in 0..5 {
        last = position(&insert(
            &services[0],
            &format!("d{number}"),
            &text(&format!("t{number}"), "x"),
        ));
    }
    let before = export(&services[1], last);
    let mut services = services.into_iter();
    let first = services.next().unwrap();
    services.next().unwrap().kill();
    let record = places.shared.path(&format!("log/log/{last:016x}"));
    let whole = std::fs::read(&record).unwrap();
    std::fs::remove_file(&record).unwrap();
    // The record is missing for a replica that has it, and must not be written anew.
    let reply = first.post(
        "/v1/collections/news/documents",
        &document("x", &text("x", "x")),
    );
    assert_eq!(reply.problem(), (503, "log_stopped".into()));
    let ready = first.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(
        ready.json()["log"]["stopped"]
            .as_str()
            .unwrap()
            .contains("missing")
    );
    assert_eq!(first.get("/v1/collections/news/export").text(), before);
    let (_, log) = first.stop();
    assert!(log.contains("the replica has stopped"), "{log}");
    let url = places.url();
    let place = &places.places[0];
    let verified = place.run(&format!("store log verify {url}"));
    assert_eq!(verified.code, Some(2), "{}", verified.err);
    let repaired = place.summary(&format!("store log repair {url} --from data"));
    assert!(
        repaired["repaired"]
            .as_array()
            .unwrap()
            .contains(&json!(last)),
        "{repaired}"
    );
    assert_eq!(std::fs::read(&record).unwrap(), whole);
    // The change that was not acknowledged may be in the log.
    let second = places.start(1);
    assert!(export(&second, last).starts_with(&before));
}

/// A snapshot beside the log is where a new replica starts, and what the log before it is removed for.
#[test]
fn new_replica_starts_from_the_newest_snapshot() {
    let places = ReplicaPlaces::new(2);
    let options = format!("{} --snapshot-log-every 1s", places.options(0));
    let first = Service::start(&places.places[0], &options);
    first.make("news", json!({ "threshold": 0.6 }));
    let mut last = position(&insert(&first, "a", &text("harbour", "one")));
    assert_eq!(
        first
            .put("/v1/aliases/live", &json!({ "collection": "news" }))
            .status,
        200
    );
    let status = || places.places[0].summary(&format!("store log status {}", places.url()));
    wait_until("a snapshot is made", || {
        !status()["snapshots"].as_array().unwrap().is_empty()
    });
    for number in 0..3 {
        last = position(&insert(
            &first,
            &format!("b{number}"),
            &text(&format!("t{number}"), "x"),
        ));
    }
    let second = places.start(1);
    assert_eq!(export(&second, last), export(&first, last));
    assert_eq!(second.get("/v1/collections/live").json()["name"], "news");
    wait_until("both replicas have left marks", || {
        status()["replicas"].as_array().unwrap().len() == 2
    });
    let (_, log) = second.stop();
    assert!(log.contains("restored from the shared log"), "{log}");
    let exported = places.places[0].ok(&format!(
        "store log export {} --collection news",
        places.url()
    ));
    let kinds: Vec<Value> = exported
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert_eq!(
        (&kinds[0], &kinds[4]),
        (&json!("create-collection"), &json!("insert"))
    );
}

#[test]
fn options_of_replicas_need_a_log() {
    let place = Place::new();
    for (options, named) in [
        (
            "--replica a",
            "--replica has no effect without --shared-log",
        ),
        (
            "--snapshot-log-every 1h",
            "--snapshot-log-every has no effect",
        ),
        ("--shared-log /shared --replica a", "'/shared' is no URL"),
        (
            "--shared-log file:///x --replica A",
            "'A' is not a valid name of a replica",
        ),
        ("--shared-log ftp://x/y --replica a", "ftp://x/y"),
        (
            "--shared-log file:///x --replica a --keep-log 1h",
            "--keep-log has no effect",
        ),
    ] {
        place.refused(
            &format!("serve --data data --listen 127.0.0.1:0 {options}"),
            &[named],
        );
    }
    let shared = place.path("log");
    let line = format!("store restore {} d --at noon", shared.display());
    place.refused(&line, &["'noon' is no moment"]);
}
