//! Several services that follow one shared log, in a directory.

#![cfg(feature = "object-store")]

use lookalike_log::{EntryKind, LogEntry, LogTail, SharedLog};
use lookalike_server::with_log_store;
use serde_json::{Value, json};

use crate::decisions::withdraw_too_much;
use crate::service::{NDJSON, Reply, Service, document, wait_until};
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

/// A withdrawal that is refused has the same answer with a log as without one.
#[test]
fn refused_withdrawal_is_a_problem_of_every_replica() {
    let places = ReplicaPlaces::new(1);
    let service = places.start(0);
    assert_eq!(withdraw_too_much(&service), (422, "bad_decision".into()));
    let listed = service.get("/v1/collections/large/decisions").json();
    assert_eq!(listed["total"], 1);
}

/// A decision at one replica overrules the verdicts of all, and is withdrawn at another one.
#[test]
fn decisions_reach_every_replica() {
    let places = ReplicaPlaces::new(2);
    let services = places.start_all();
    let (first, second) = (&services[0], &services[1]);
    first.make("news", json!({ "threshold": 0.6 }));
    insert(first, "a", &text("harbour", "one"));
    let near = insert(second, "b", &text("harbour", "two"));
    assert_eq!(near.json()["of"], "a");
    let path = "/v1/collections/news/decisions";
    let different = json!({ "a_id": "a", "b_id": "b", "label": "different" });
    let decided = first.post(path, &different);
    assert_eq!(decided.status, 200, "{}", decided.text());
    let result = &decided.json()["results"][0];
    assert_eq!(
        (&result["outcome"], &result["changed"][0]["verdict"]),
        (&json!("applied"), &json!("kept"))
    );
    let record = position(&decided);
    assert_eq!(export(first, record), export(second, record));
    let header = [("Lookalike-Position", &*record.to_string())];
    let listed = second.connect().request("GET", path, &header, b"").json();
    let decision = listed["decisions"][0].clone();
    let (a, b) = (
        decision["a"].as_str().unwrap(),
        decision["b"].as_str().unwrap(),
    );
    let withdrawn = second.delete(&format!("{path}/{a}/{b}"));
    assert_eq!(withdrawn.json()["results"][0]["changed"][0]["of"], "a");
    // A line that is none is refused without an entry, and the others are applied.
    let lines = format!("{different}\n{{}}\n");
    let sent = first
        .connect()
        .request("POST", path, &[("Content-Type", NDJSON)], lines.as_bytes());
    let results = sent.json()["results"].clone();
    assert_eq!(results[0]["outcome"], "applied");
    assert_eq!(results[1]["problem"]["code"], "bad_json");
    let record = position(&sent);
    let expected = export(first, record);
    assert_eq!(expected, export(second, record));
    // A replica that is killed derives the same again.
    let mut services = services;
    services.remove(1).kill();
    let second = places.start(1);
    assert_eq!(export(&second, record), expected);
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
    assert!(!place.has("never"));
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
    assert!(
        log.contains("leaves it") && log.contains("applied="),
        "{log}"
    );
    assert!(!log.contains("follows the shared log"), "{log}");
    // The old log does not have what came in between, and a new one begins with all of it.
    let line = format!(
        "serve --data data --listen 127.0.0.1:0 {}",
        places.options(0)
    );
    places.places[0].refused(&line, &["do not come from the shared log"]);
    let new_log = ReplicaPlaces::new(1);
    let copy = places.places[0].path("data/.shared-log/0000000000002328");
    std::fs::write(&copy, "of the old log").unwrap();
    let first = Service::start(&places.places[0], &new_log.options(0));
    begins_anew(&first);
    assert!(!copy.exists());
    assert_eq!(first.stop().0, Some(0));
}

/// Moves a service onto a log; returns its export and the folder of its collection in the first snapshot.
fn begin_with_collection(places: &ReplicaPlaces) -> (String, std::path::PathBuf) {
    let alone = Service::start(&places.places[0], "");
    alone.make("news", json!({ "threshold": 0.6 }));
    insert(&alone, "a", &text("harbour", "one"));
    assert_eq!(alone.stop().0, Some(0));
    let first = places.start(0);
    let exported = export(&first, 1);
    first.stop();
    let snapshot = "log/snapshots/0000000000000001-r0/news";
    (exported, places.shared.path(snapshot))
}

/// A restoration that fails is tried again until it succeeds.
#[test]
fn failed_restoration_is_tried_again() {
    let places = ReplicaPlaces::new(2);
    let (exported, collection) = begin_with_collection(&places);
    let hidden = places.shared.path("hidden");
    std::fs::rename(&collection, &hidden).unwrap();
    let second = Service::launch(&places.places[1], &places.options(1));
    wait_until("the restoration fails", || {
        let ready = second.get("/readyz");
        assert_eq!(ready.status, 503);
        ready.text().contains("'news' is missing")
    });
    std::fs::rename(&hidden, &collection).unwrap();
    wait_until("the restoration succeeds", || {
        second.get("/readyz").status == 200
    });
    assert_eq!(export(&second, 1), exported);
    let (_, log) = second.stop();
    assert!(log.contains("is tried again"), "{log}");
}

/// A replica that is restarted while the store is away answers queries, and refuses changes.
#[test]
fn restarted_replica_answers_without_its_store() {
    let places = ReplicaPlaces::new(1);
    let (exported, _) = begin_with_collection(&places);
    let options = "--shared-log s3://bucket/log --replica r0 --headroom 1Mi";
    // Nothing listens there.
    let environment = [
        ("AWS_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "none"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
    ];
    let away = Service::launch_with(&places.places[0], options, &environment);
    wait_until("the collection is open", || {
        away.get("/v1/collections/news/export").status == 200
    });
    assert_eq!(away.get("/v1/collections/news/export").text(), exported);
    assert_eq!(away.get("/readyz").status, 503);
    let refused = away.post(
        "/v1/collections/news/documents",
        &document("x", &text("x", "x")),
    );
    assert_eq!(refused.problem(), (503, "catching_up".into()));
    assert_eq!(away.stop().0, Some(0));
    let back = places.start(0);
    insert(&back, "later", &text("later", "x"));
}

/// A second process on the directory of a replica changes nothing in it.
#[test]
fn directory_of_a_running_replica_is_left_alone() {
    let places = ReplicaPlaces::new(1);
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    let checkpoint = places.places[0].path("data/shared-log.json");
    assert!(checkpoint.exists());
    for options in ["", &places.options(0)] {
        let line = format!("serve --data data --listen 127.0.0.1:0 {options}");
        places.places[0].refused(&line, &["another process has it open"]);
        assert!(checkpoint.exists());
    }
    insert(&first, "a", &text("harbour", "one"));
    first.kill();
    let back = places.start(0);
    assert_eq!(back.get("/v1/collections/news/documents/a").status, 200);
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
    let repair = format!("store log repair {url} --from data");
    place.refused(&repair, &["the replica 'r1' of", "if it was killed"]);
    std::fs::remove_file(places.shared.path("log/replicas/r1")).unwrap();
    let repaired = place.summary(&repair);
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
        status()["snapshots"][0]["complete"] == true
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

/// A moment is restored from another snapshot, or from the first records, if the best snapshot is damaged.
#[test]
fn restoration_passes_a_damaged_snapshot() {
    let places = ReplicaPlaces::new(1);
    let (url, place) = (places.url(), &places.places[0]);
    let options = format!("{} --snapshot-log-every 1s", places.options(0));
    let first = Service::start(place, &options);
    first.make("news", json!({ "threshold": 0.6 }));
    insert(&first, "a", &text("harbour", "one"));
    let status = || place.summary(&format!("store log status {url}"));
    wait_until("a snapshot is made", || {
        status()["snapshots"][0]["complete"] == true
    });
    first.stop();
    let snapshots: Vec<_> = std::fs::read_dir(places.shared.path("log/snapshots"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for snapshot in &snapshots {
        for entry in std::fs::read_dir(snapshot.join("news")).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "rows")
            {
                std::fs::write(path, "damaged").unwrap();
            }
        }
    }
    let line = format!("store restore {url} latest --at latest");
    let restored = place.summary(&line);
    let unusable = restored["unusable_snapshots"].as_array().unwrap();
    assert_eq!(unusable.len(), snapshots.len(), "{restored}");
    for snapshot in unusable {
        let reason = snapshot["reason"].as_str().unwrap();
        assert!(reason.contains("damaged"), "{restored}");
    }
    place.ok("store export latest/news -o latest.jsonl");
    assert_eq!(place.read("latest.jsonl").lines().count(), 1);
    let again = place.ok(&format!("store restore {url} again --at latest"));
    assert!(again.err.contains("cannot be used"), "{}", again.err);
}

/// Returns the JSON summary of a command that has found damages, and so has the exit code 2.
fn summary_of_findings(place: &Place, line: &str) -> Value {
    let ran = place.run(&format!("{line} --json"));
    assert_eq!(ran.code, Some(2), "{line}\n{}", ran.err);
    serde_json::from_slice(&ran.out).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The last record is lost. An empty replica does not go on with such a log, because a mark tells of the record. Without the
/// mark it writes another one with its number, and the copies of the first replica replace that only if a person says so.
#[test]
fn lost_end_of_a_log_is_noticed_and_repaired() {
    let places = ReplicaPlaces::new(2);
    let (url, place) = (places.url(), &places.places[0]);
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    let mut last = 0;
    for number in 0..3 {
        let topic = format!("t{number}");
        last = position(&insert(&first, &topic, &text(&topic, "x")));
    }
    first.stop();
    place.ok(&format!("store log verify {url}"));
    let status = place.summary(&format!("store log status {url}"));
    let mark = &status["replicas"][0];
    assert_eq!(mark["stopped"], "the service was ended", "{status}");
    let applied = mark["applied"].as_u64().unwrap();
    assert!(applied == last && mark["digest"].is_string(), "{status}");
    let words = place.ok(&format!("store log status {url}")).err;
    assert!(
        words.contains("s ago") && words.contains("has stopped: the service was ended"),
        "{words}"
    );
    let chinese = place.ok(&format!("store log status {url} --lang zh")).err;
    assert!(
        chinese.contains("落后 0 条记录，") && chinese.contains("秒前"),
        "{chinese}"
    );
    let object = |number: u64| places.shared.path(&format!("log/log/{number:016x}"));
    let whole = std::fs::read(object(applied)).unwrap();
    std::fs::remove_file(object(applied)).unwrap();
    let lost = summary_of_findings(place, &format!("store log verify {url}"));
    assert_eq!(lost["kinds"], json!({ "lost_records": 1 }), "{lost}");
    let expected = format!(
        "the log ends with record {} (object 'log/{:016x}'), but the replica 'r0' has applied record {applied} (object \
         'log/{applied:016x}'): records are lost",
        applied - 1,
        applied - 1
    );
    place.refused(&format!("store log verify {url}"), &[&expected]);
    let chinese = place.run(&format!("store log verify {url} --lang zh")).err;
    assert!(chinese.contains("有记录丢失"), "{chinese}");
    // Its own name changes nothing: the mark of the erased replica stays.
    for name in ["r0", "r1"] {
        let serve = format!("serve --data erased --listen 127.0.0.1:0 --shared-log {url}");
        let line = format!("{serve} --replica {name} --headroom 1Mi");
        places.places[1].refused(&line, &[&expected, "remove 'replicas/r0'"]);
    }
    assert!(!object(applied).exists());
    let (mark, aside) = (places.shared.path("log/replicas/r0"), place.path("mark"));
    std::fs::copy(&mark, &aside).unwrap();
    std::fs::remove_file(&mark).unwrap();
    let second = places.start(1);
    insert(&second, "other", &text("other", "x"));
    second.stop();
    std::fs::copy(&aside, &mark).unwrap();
    let forked = std::fs::read(object(applied)).unwrap();
    assert_ne!(forked, whole);
    let found = summary_of_findings(place, &format!("store log verify {url}"));
    assert_eq!(found["contradictions"][0]["name"], "r0", "{found}");
    // A record that is whole is not overwritten.
    let repair = format!("store log repair {url} --from data");
    place.refused(
        &repair,
        &[
            "have different records from record",
            "could not be repaired",
        ],
    );
    assert_eq!(std::fs::read(object(applied)).unwrap(), forked);
    let repaired = place.summary(&format!("{repair} --replace"));
    assert_eq!(repaired["replaced"], json!([applied]), "{repaired}");
    assert_eq!(std::fs::read(object(applied)).unwrap(), whole);
    let kept: Vec<_> = std::fs::read_dir(places.shared.path("log/replaced"))
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(kept, [forked]);
}

/// A store that loses all objects stops the replica that goes on, which says what to do, and its copies bring them back.
#[test]
fn emptied_store_is_filled_again_from_a_replica() {
    let places = ReplicaPlaces::new(1);
    let (url, place) = (places.url(), &places.places[0]);
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    let last = position(&insert(&first, "a", &text("harbour", "one")));
    let before = export(&first, last);
    std::fs::remove_dir_all(places.shared.path("log/log")).unwrap();
    let reply = first.post(
        "/v1/collections/news/documents",
        &document("x", &text("x", "x")),
    );
    assert_eq!(reply.problem(), (503, "log_stopped".into()));
    let reason = first.get("/readyz").json()["log"]["stopped"].to_string();
    for words in ["has lost records", "store log repair URL --from DIR"] {
        assert!(reason.contains(words), "{reason}");
    }
    first.stop();
    let status = place.summary(&format!("store log status {url}"));
    let stopped = status["replicas"][0]["stopped"].as_str().unwrap();
    assert!(stopped.contains("has lost records"), "{status}");
    place.ok(&format!("store log repair {url} --from data"));
    place.ok(&format!("store log verify {url}"));
    let again = places.start(0);
    assert!(export(&again, last).starts_with(&before));
}

/// A replica that finds another log below its URL says so, and its copies do not repair that log.
#[test]
fn other_log_below_the_url_is_named() {
    let (places, others) = (ReplicaPlaces::new(1), ReplicaPlaces::new(1));
    for places in [&places, &others] {
        let service = places.start(0);
        service.make("news", json!({ "threshold": 0.6 }));
        insert(&service, "a", &text("harbour", "one"));
        service.stop();
    }
    let place = &places.places[0];
    let identity = |places: &ReplicaPlaces| {
        let status = place.summary(&format!("store log status {}", places.url()));
        status["log"].as_str().unwrap().to_owned()
    };
    let (own, other) = (identity(&places), identity(&others));
    let refused = place.refused(
        &format!("store log repair {} --from data", others.url()),
        &[&own, &other, "the copies are of log"],
    );
    assert!(refused.err.lines().count() < 8, "{}", refused.err);
    let moved = Service::launch(place, &others.options(0));
    wait_until("the replica stops", || {
        moved.get("/readyz").json()["log"]["stopped"].is_string()
    });
    let reason = moved.get("/readyz").json()["log"]["stopped"].to_string();
    for words in ["the log is another one than before", &own, &other] {
        assert!(reason.contains(words), "{reason}");
    }
}

/// Only `serve` creates the directory of a log.
#[test]
fn commands_create_no_log() {
    let place = Place::new();
    place.write("data/.shared-log/copy", "");
    let path = place.path("nowhere/log");
    let url = format!("file://{}", path.display());
    let lines = [
        format!("store log status {url}"),
        format!("store log verify {url}"),
        format!("store log export {url}"),
        format!("store log prune {url} --before 5"),
        format!("store log repair {url} --from data"),
        format!("store restore {url} restored --at latest"),
    ];
    let expected = format!("there is no log below {url}");
    for line in &lines {
        place.refused(line, &[&expected]);
    }
    assert_eq!(place.names(), ["data"]);
    // A directory without a log is none, either, but a lost log may be written back to it.
    std::fs::create_dir_all(&path).unwrap();
    for line in lines.iter().filter(|line| !line.contains("repair")) {
        place.refused(line, &[&expected]);
    }
    assert_eq!(place.names(), ["data", "nowhere"]);
}

/// Moments that cannot be restored are refused with the first one that can, and leave nothing.
#[test]
fn restoration_names_the_first_moment() {
    let places = ReplicaPlaces::new(1);
    let (url, place) = (places.url(), Place::new());
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    let last = position(&insert(&first, "a", &text("harbour", "one")));
    first.stop();
    for moment in ["0", "2020-01-01T00:00:00Z"] {
        place.refused(
            &format!("store restore {url} early/yesterday --at {moment}"),
            &[
                "is before the first moment",
                "behind record 1 (object 'log/0000000000000001')",
            ],
        );
    }
    place.refused(
        &format!("store restore {url} late --at 9000"),
        &["record 9000"],
    );
    assert!(place.names().is_empty());
    // Content that stood in the directory before stays.
    place.write("own/file", "x");
    place.refused(
        &format!("store restore {url} own --at 9000"),
        &["record 9000"],
    );
    assert_eq!(std::fs::read_dir(place.path("own")).unwrap().count(), 1);
    // Without a moment, the last state of a log is restored.
    let latest = place.summary(&format!("store restore {url} latest"));
    assert!(latest["record"].as_u64() >= Some(last), "{latest}");
    assert_eq!(latest["differing_checks"], json!([]));
    place.ok("store export latest/news -o latest.jsonl");
    assert_eq!(place.read("latest.jsonl").lines().count(), 1);
}

/// A wrong comparison of states does not end a restoration.
#[test]
fn restoration_passes_a_wrong_comparison() {
    let places = ReplicaPlaces::new(1);
    let (url, place) = (places.url(), Place::new());
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    insert(&first, "a", &text("harbour", "one"));
    first.stop();
    append_wrong_comparison(&url);
    let line = format!("store restore {url} latest --at latest");
    let restored = place.summary(&line);
    let differing = json!([{ "record": 64, "writer": "forger", "collections": ["news"] }]);
    assert_eq!(restored["differing_checks"], differing, "{restored}");
    let warned = place.ok(&line.replace(" latest ", " again "));
    for words in [
        "behind record 64 (object 'log/0000000000000040'), the restored collections news",
        "differ from the restored one: 1",
    ] {
        assert!(warned.err.contains(words), "{}", warned.err);
    }
}

/// Appends records up to number 64 and beyond, and then a comparison that says another state behind record 64.
fn append_wrong_comparison(url: &str) {
    let entry = |kind, body: &str| LogEntry {
        kind,
        subject: String::new(),
        body: body.as_bytes().to_owned(),
    };
    let appended = with_log_store(url, |store| {
        let mut log = SharedLog::open(store, "forger", LogTail::default());
        while log.read_next().unwrap().is_some() {}
        while log.tail().next <= 65 {
            let advance = entry(EntryKind::AdvanceClock, "");
            log.append(vec![advance], 0).unwrap();
        }
        let digests = json!({ "record": 64, "collections": { "news": "0".repeat(32) } });
        let compare = entry(EntryKind::CheckState, &digests.to_string());
        log.append(vec![compare], 0).unwrap();
        Ok::<_, lookalike_server::Error>(())
    });
    appended.unwrap();
}

/// An export has everything before a damaged record, and says where it ends.
#[test]
fn export_ends_at_a_damaged_record() {
    let places = ReplicaPlaces::new(1);
    let (url, place) = (places.url(), &places.places[0]);
    let first = places.start(0);
    first.make("news", json!({ "threshold": 0.6 }));
    for number in 0..5 {
        let topic = format!("t{number}");
        insert(&first, &topic, &text(&topic, "x"));
    }
    wait_until("the replica has left a mark", || {
        let status = place.summary(&format!("store log status {url}"));
        !status["replicas"].as_array().unwrap().is_empty()
    });
    let repair = format!("store log repair {url} --from data");
    place.refused(
        &repair,
        &[
            "the replica 'r0' of",
            "seems to run",
            "remove 'replicas/r0'",
        ],
    );
    let chinese = place.run(&format!("{repair} --lang zh")).err;
    assert!(chinese.contains("副本 'r0'"), "{chinese}");
    first.stop();
    let line = format!("store log export {url} -o whole.jsonl");
    assert_eq!(place.summary(&line)["damage"], Value::Null);
    places.shared.write("log/log/0000000000000004", "damaged");
    std::fs::remove_file(places.shared.path("log/log/0000000000000006")).unwrap();
    let exported = place.run(&format!("store log export {url}"));
    assert_eq!(exported.code, Some(2), "{}", exported.err);
    let whole = place.read("whole.jsonl");
    let begin: Vec<_> = whole.lines().take(3).collect();
    assert_eq!(exported.text().lines().collect::<Vec<_>>(), begin);
    let said = &exported.err;
    assert!(
        said.contains("ends with record 3 (object 'log/0000000000000003')"),
        "{said}"
    );
    let line = format!("store log export {url} -o begin.jsonl");
    let summary = summary_of_findings(place, &line);
    assert_eq!(
        (&summary["entries"], &summary["last"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(place.read("begin.jsonl").lines().count(), 3);
    let verified = summary_of_findings(place, &format!("store log verify {url}"));
    assert_eq!(verified["kinds"]["not_a_record"], 1, "{verified}");
    assert_eq!(verified["damages"][0]["number"], 4);
    let words = place.run(&format!("store log verify {url} --lang zh")).err;
    assert!(
        words.contains("记录 4（对象 'log/0000000000000004'）：它不是记录"),
        "{words}"
    );
    place.ok(&format!("store log repair {url} --from data"));
    place.ok(&format!("store log verify {url}"));
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
        (
            "--shared-log file:///x --replica a --snapshot-log-every 1h --keep-log 59m",
            "--keep-log is below an hour",
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
