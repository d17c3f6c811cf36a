//! Decisions of a person in the service.

use serde_json::{Value, json};

use crate::service::{NDJSON, Service, document};
use crate::support::Place;

const DECISIONS: &str = "/v1/collections/news/decisions";

const FERRY: &str =
    "The ferry to the island leaves at seven in the morning and nobody ever misses it.";

/// Makes a collection with a kept document, a similar one, a copy of the first, and one that differs.
fn start(place: &Place) -> Service {
    let service = Service::start(place, "");
    service.make("news", json!({}));
    let lines: String = [
        ("kept", FERRY.to_owned()),
        ("near", FERRY.replace('.', " today.")),
        ("copy", FERRY.to_uppercase()),
        (
            "other",
            "A lamp burns by the harbour all night long.".to_owned(),
        ),
    ]
    .map(|(id, text)| format!("{}\n", document(id, &text)))
    .concat();
    let answers = service.post_lines("/v1/collections/news/documents", lines.as_bytes());
    assert_eq!(
        verdicts_of(&answers),
        [Value::Null, json!("kept"), json!("kept"), Value::Null]
    );
    service
}

fn verdicts_of(answers: &[Value]) -> Vec<Value> {
    answers.iter().map(|answer| answer["of"].clone()).collect()
}

fn verdicts(service: &Service) -> Vec<Value> {
    let documents = ["kept", "near", "copy", "other"].map(|id| {
        service
            .get(&format!("/v1/collections/news/documents/{id}"))
            .json()
    });
    verdicts_of(&documents)
}

fn by_ids(a: &str, b: &str, label: &str) -> Value {
    json!({ "a_id": a, "b_id": b, "label": label })
}

fn decide(service: &Service, decision: &Value) -> Value {
    let reply = service.post(DECISIONS, decision);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let results = reply.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 1);
    results[0].clone()
}

/// An overruled verdict changes, stays changed after `kill -9`, and is taken back.
#[test]
fn verdicts_are_overruled_and_restored() {
    let place = Place::new();
    let service = start(&place);
    let result = decide(&service, &by_ids("kept", "near", "different"));
    assert_eq!(result["outcome"], "applied");
    let changed = &result["changed"];
    assert_eq!(changed.as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &changed[0]["id"],
            &changed[0]["verdict"],
            &changed[0]["before"]["of"]
        ),
        (&json!("near"), &json!("kept"), &json!("kept"))
    );
    let again = decide(&service, &by_ids("near", "kept", "different"));
    assert_eq!(
        (&again["outcome"], &again["changed"]),
        (&json!("unchanged"), &json!([]))
    );
    let joined = decide(&service, &by_ids("kept", "other", "same"));
    assert_eq!(joined["changed"][0]["of"], "kept");
    let overruled = [Value::Null, Value::Null, json!("kept"), json!("kept")];
    assert_eq!(verdicts(&service), overruled);
    service.kill();

    let service = Service::start(&place, "");
    assert_eq!(verdicts(&service), overruled);
    let later = document("later", &FERRY.replace('.', " today."));
    let later = service
        .post("/v1/collections/news/documents", &later)
        .json();
    assert_eq!(later["of"], "near");
    let listed = service.get(DECISIONS).json();
    assert_eq!(
        (&listed["total"], &listed["next"]),
        (&json!(2), &Value::Null)
    );
    let first = service.get(&format!("{DECISIONS}?limit=1")).json();
    let next = first["next"].as_u64().unwrap();
    let second = service
        .get(&format!("{DECISIONS}?limit=1&after={next}"))
        .json();
    assert_eq!(second["decisions"][0], listed["decisions"][1]);
    let about = service.get(&format!("{DECISIONS}?document=other")).json();
    assert_eq!(about["decisions"], json!([listed["decisions"][1]]));
    let decision = &listed["decisions"][0];
    assert_eq!(
        (&decision["label"], &decision["b_id"]),
        (&json!("different"), &json!("near"))
    );
    let path = format!(
        "{DECISIONS}/{}/{}",
        decision["b"].as_str().unwrap(),
        decision["a"].as_str().unwrap()
    );
    let withdrawn = service.delete(&path);
    assert_eq!(withdrawn.status, 200, "{}", withdrawn.text());
    assert_eq!(withdrawn.json()["results"][0]["label"], "none");
    assert_eq!(service.delete(&path).problem(), (404, "no_decision".into()));
    assert_eq!(
        verdicts(&service),
        [Value::Null, json!("kept"), json!("kept"), json!("kept")]
    );
    // The lines of the list are those of a file.
    let restored = decide(&service, decision);
    assert_eq!(restored["outcome"], "applied");
    assert_eq!(verdicts(&service), overruled);
}

/// The file that a run honours has the same effect in the service, bad lines among them included.
#[test]
fn file_of_decisions_is_sent_as_it_is() {
    let place = Place::new();
    let service = start(&place);
    decide(&service, &by_ids("kept", "near", "different"));
    decide(&service, &by_ids("kept", "other", "same"));
    let decisions = service.get(DECISIONS).json()["decisions"].clone();
    let mut lines: Vec<Value> = decisions.as_array().unwrap().clone();
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("decisions.jsonl", &file);
    let corpus = service.get("/v1/collections/news/export").text();
    // In the order in which the documents came.
    let mut rows: Vec<&str> = corpus.lines().collect();
    let place_of = |row: &str| {
        ["\"kept\"", "\"near\"", "\"copy\"", "\"other\""]
            .iter()
            .position(|id| row.contains(&format!("\"id\":{id}")))
    };
    rows.sort_by_key(|row| place_of(row));
    place.write("corpus.jsonl", rows.join("\n") + "\n");
    place.ok("dedup corpus.jsonl -o kept.jsonl --removed removed.tsv --decisions decisions.jsonl --quiet");
    let removed = place.table("removed.tsv").into_iter();
    let removed: Vec<_> = removed
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(removed, [pair("copy", "kept"), pair("other", "kept")]);

    // A new collection gets the decisions before its documents.
    service.make("again", json!({}));
    lines.insert(1, json!({ "label": "same", "a_id": "kept" }));
    let mut other_recipe = lines[0].clone();
    other_recipe["recipe"] = json!("00");
    lines.push(other_recipe);
    lines.push(by_ids("kept", "kept", "same"));
    let sent: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
    let reply = service.connect().request(
        "POST",
        "/v1/collections/again/decisions",
        &[("Content-Type", NDJSON)],
        sent.as_bytes(),
    );
    let results = reply.json()["results"].clone();
    let outcome = |at: usize| {
        let result = &results[at];
        let code = result["problem"]["code"].as_str();
        (
            result["line"].as_u64().unwrap(),
            code.or(result["outcome"].as_str()).unwrap().to_owned(),
        )
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(outcome),
        [
            (1, "recorded".to_owned()),
            (3, "bad_decision".to_owned()),
            (5, "recorded".to_owned()),
            (7, "bad_decision".to_owned()),
            (9, "bad_decision".to_owned()),
        ]
    );
    let rows = rows.join("\n");
    let answers = service.post_lines("/v1/collections/again/documents", rows.as_bytes());
    assert_eq!(
        verdicts_of(&answers),
        [Value::Null, Value::Null, json!("kept"), json!("kept")]
    );
    let codes = json!({ "method": "simhash", "measure": "none", "holds": "fingerprints" });
    service.make("codes", codes);
    let refused = service
        .post("/v1/collections/codes/decisions", &lines[0])
        .json();
    assert_eq!(refused["results"][0]["problem"]["code"], "bad_decision");
    let missing = service.post("/v1/collections/none/decisions", &lines[0]);
    assert_eq!(missing.problem(), (404, "no_collection".into()));
}

/// Decisions are in exports of the command, and in what is imported of them.
#[test]
fn decisions_are_exported_and_imported() {
    let place = Place::new();
    let service = start(&place);
    decide(&service, &by_ids("kept", "near", "different"));
    service.stop();
    place.ok("store export data/news -o news.jsonl --settings news.json");
    let exported = place.read("news.jsonl");
    assert_eq!(exported.lines().count(), 5);
    assert!(
        exported.starts_with("{\"decision\":\"different\","),
        "{exported}"
    );
    let summary = place.ok("store import data/copy news.jsonl --settings news.json --json");
    let summary: Value = serde_json::from_str(summary.text()).unwrap();
    assert_eq!(
        (&summary["documents"], &summary["decisions"]),
        (&json!(4), &json!(1))
    );
    let again = place.ok("store export data/copy").text().to_owned();
    let without_numbers = |lines: &str| {
        let documents = lines.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("seq");
            line
        });
        documents.collect::<Vec<_>>()
    };
    assert_eq!(without_numbers(&again), without_numbers(&exported));
}

/// An answer lists the first documents that were judged again, and says how many there are and where the others are listed.
#[test]
fn changed_documents_of_an_answer_are_bounded() {
    let place = Place::new();
    let service = start(&place);
    let lamp = "A lamp burns by the harbour all night long.";
    for number in 1..5 {
        let copy = document(&format!("other{number}"), lamp);
        service.post("/v1/collections/news/documents", &copy);
    }
    let path = format!("{DECISIONS}?limit=2");
    let body = format!(
        "{}\n{}\n",
        by_ids("kept", "other", "same"),
        by_ids("kept", "near", "different")
    );
    let sent =
        service
            .connect()
            .request("POST", &path, &[("Content-Type", NDJSON)], body.as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
    let results = sent.json()["results"].clone();
    let ids = |list: &Value| -> Vec<Value> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["id"].clone()).collect()
    };
    let (first, second) = (&results[0], &results[1]);
    assert_eq!(
        (&first["changed_total"], ids(&first["changed"]).len()),
        (&json!(5), 2)
    );
    assert_eq!(
        (&second["changed_total"], ids(&second["changed"]).len()),
        (&json!(1), 0)
    );
    assert_eq!(second["outcome"], "applied");
    let list = |next: &Value, limit: usize| {
        let path = format!("/v1/collections/news/documents?after={next}&limit={limit}");
        ids(&service.get(&path).json()["documents"])
    };
    let rest = list(&first["next"], 3);
    let all: Vec<Value> = ids(&first["changed"]).into_iter().chain(rest).collect();
    let expected = ["other", "other1", "other2", "other3", "other4"];
    assert_eq!(all, expected.map(Value::from));
    assert_eq!(list(&second["next"], 1), ["near"].map(Value::from));
    let whole = decide(&service, &by_ids("kept", "near", "none"));
    assert_eq!(
        (&whole["changed_total"], &whole["next"]),
        (&json!(1), &Value::Null)
    );
    for wrong in ["0", "1001", "all"] {
        let refused = service.post(
            &format!("{DECISIONS}?limit={wrong}"),
            &by_ids("a", "b", "same"),
        );
        assert_eq!(refused.problem(), (400, "bad_request".into()), "{wrong}");
    }
}

/// Makes a withdrawal that more documents follow than one decision judges again, and returns the answer to it.
pub(crate) fn withdraw_too_much(service: &Service) -> (u16, String) {
    service.make("large", json!({}));
    let documents = "/v1/collections/large/documents";
    let near = FERRY.replace('.', " today.");
    service.post(documents, &document("a", FERRY));
    service.post(documents, &document("b", &near));
    let decisions = "/v1/collections/large/decisions";
    let decided = service.post(decisions, &by_ids("a", "b", "different"));
    let decided = decided.json()["results"][0].clone();
    let lines: String = (0..1001)
        .map(|number| format!("{}\n", document(&format!("copy{number}"), &near)))
        .collect();
    let answers = service.post_lines(documents, lines.as_bytes());
    assert!(answers.iter().all(|answer| answer["of"] == "b"));
    let [a, b] = ["a", "b"].map(|side| decided[side].as_str().unwrap());
    service.delete(&format!("{decisions}/{a}/{b}")).problem()
}

/// A withdrawal that is refused is no success, and leaves the decision as it is.
#[test]
fn refused_withdrawal_is_a_problem() {
    let place = Place::new();
    let service = Service::start(&place, "");
    assert_eq!(withdraw_too_much(&service), (422, "bad_decision".into()));
    let listed = service.get("/v1/collections/large/decisions").json();
    assert_eq!(listed["total"], 1);
}
