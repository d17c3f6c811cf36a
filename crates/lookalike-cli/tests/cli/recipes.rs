//! Recipes with files that are uploaded to the service: the same results as with the command, and what happens
//! to an upload that is wrong, interrupted or in use.

use serde_json::{Value, json};

use crate::service::{Reply, Service, document};
use crate::serving::{evidence, removed};
use crate::support::{Place, corpus_jsonl};

/// A part of a body: its name, the name of a file if it is one, and the content.
pub(crate) type Part<'a> = (&'a str, &'a str, &'a [u8]);

const BOUNDARY: &str = "a-boundary-0123456789";

/// Builds a body.
fn form(parts: &[Part]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let file = if file.is_empty() {
            String::new()
        } else {
            format!("; filename=\"{file}\"")
        };
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

fn form_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

pub(crate) fn upload(service: &Service, name: &str, parts: &[Part]) -> Reply {
    let path = format!("/v1/recipes/{name}");
    let kind = form_type();
    let headers = [("Content-Type", kind.as_str())];
    let body = form(parts);
    service.connect().request("PUT", &path, &headers, &body)
}

/// Uploads a recipe of single words without those of a list.
fn upload_words(service: &Service, name: &str, stopwords: &str) -> Reply {
    let parts = [
        ("recipe", "", WORDS.as_bytes()),
        ("file", "stop.txt", stopwords.as_bytes()),
    ];
    upload(service, name, &parts)
}

const WORDS: &str = r#"
name = "words"
version = 1
normalize = ["nfkc", "fold"]
tokens = "words"
ngram = 1
[filter]
stopwords = ["stop.txt"]
[simhash]
bits = 64
[minhash]
family = "fast-similarity"
slots = 128
"#;

/// Writes `mine.toml` with a dictionary, stopwords and a table of document frequencies, and returns the recipe's
/// id.
fn make_recipe(place: &Place) -> String {
    place.write("corpus.jsonl", chinese_corpus());
    place.write("words.txt", "青溪市 5 ns\n有轨电车 100\n海岛渡船\n");
    place.write("stop.txt", "的\n了\n在\n");
    let set = "--set segment.user=words.txt --set filter.stopwords=stop.txt";
    place.ok(&format!(
        "idf corpus.jsonl --recipe jieba {set} -o idf.tsv --quiet"
    ));
    let set = format!("{set} --set simhash.weights=tfidf --set simhash.table=idf.tsv");
    let toml = place.ok(&format!("recipe jieba {set}")).out;
    let toml = String::from_utf8(toml).unwrap();
    place.write("mine.toml", &toml);
    let first = toml.lines().next().unwrap();
    first.strip_prefix("# id ").unwrap().to_owned()
}

fn chinese_corpus() -> String {
    let places = ["青溪市", "海岛渡船", "老码头", "北山", "灯塔"];
    let events = [
        "有轨电车今天通车了",
        "在清晨解开了缆绳",
        "的图书馆重新开放",
        "举行了长跑比赛",
    ];
    let ends = [
        "市民免费一天",
        "观众很多",
        "直到夜里",
        "没有人受伤",
        "明年再来",
        "记者报道",
    ];
    let mut documents = Vec::new();
    for (at, place) in places.iter().enumerate() {
        for event in events {
            for end in ends {
                let id = format!("d{}", documents.len());
                let extra = if documents.len() % 3 == 0 {
                    "在的"
                } else {
                    ""
                };
                let next = places[(at + 1) % places.len()];
                documents.push((id, format!("{place}{event}，{extra}{end}，{next}也一样。")));
            }
        }
    }
    corpus_jsonl(&documents)
}

/// Uploads the recipe that [`make_recipe`] wrote, with its files.
fn upload_made(place: &Place, service: &Service) -> Reply {
    let bytes = |name: &str| place.bytes(name);
    let (toml, words, stop, idf) = (
        bytes("mine.toml"),
        bytes("words.txt"),
        bytes("stop.txt"),
        bytes("idf.tsv"),
    );
    let parts: [Part; 4] = [
        ("recipe", "mine.toml", &toml),
        ("file", "words.txt", &words),
        ("file", "stop.txt", &stop),
        ("file", "idf.tsv", &idf),
    ];
    upload(service, "mine", &parts)
}

fn texts_of(corpus: &str) -> Vec<Value> {
    let lines = corpus.lines();
    let text = |line| serde_json::from_str::<Value>(line).unwrap()["text"].clone();
    lines.map(text).collect()
}

/// The service gives the id, the tokens, the weights, the fingerprints, the similarities and the verdicts that
/// the command gives with the same files.
#[test]
fn uploaded_recipe_gives_the_results_of_the_command() {
    let place = Place::new();
    let recipe_id = make_recipe(&place);
    let service = Service::start(&place, "");
    let reply = upload_made(&place, &service);
    assert_eq!(reply.status, 201, "{}", reply.text());
    let made = reply.json();
    assert_eq!(
        (&made["name"], &made["recipe_id"]),
        (&json!("mine"), &json!(recipe_id))
    );
    let corpus = place.read("corpus.jsonl");
    let texts = texts_of(&corpus);

    let asked = json!({ "recipe": "mine", "texts": texts });
    let answer = service.post("/v1/fingerprint", &asked).json();
    assert_eq!(answer["recipe_id"], json!(recipe_id));
    place.ok("fingerprint corpus.jsonl --recipe mine.toml --quiet -o codes.tsv");
    let expected: Vec<Value> = (place.table("codes.tsv").into_iter())
        .map(|row| row[1].clone().into())
        .collect();
    assert_eq!(answer["fingerprints"], Value::from(expected));

    let few = &texts[..5];
    let asked = json!({ "recipe": "mine", "texts": few, "weights": true });
    let answer = service.post("/v1/segment", &asked).json();
    for (text, result) in few.iter().zip(answer["results"].as_array().unwrap()) {
        place.write("one.jsonl", json!({ "id": "a", "text": text }).to_string());
        place.ok("segment one.jsonl --recipe mine.toml --weights --quiet -o terms.tsv");
        let expected: Vec<_> = (place.table("terms.tsv").into_iter())
            .map(|row| (row[1].clone(), row[3].parse::<f64>().unwrap()))
            .collect();
        let terms = result["terms"].as_array().unwrap().iter();
        let given = terms.map(|term| {
            let weight = term["weight"].as_f64().unwrap();
            (term["term"].as_str().unwrap().to_owned(), weight)
        });
        assert!(expected.len() > 3);
        assert_eq!(given.collect::<Vec<_>>(), expected);
    }

    let (a, b) = (texts[0].as_str().unwrap(), texts[1].as_str().unwrap());
    let mut command = place.command("compare --literal --json --recipe mine.toml");
    let ran = command.args([a, b]).output().unwrap();
    let expected: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let asked = json!({ "recipe": "mine", "pairs": [{ "a": a, "b": b }] });
    let answer = service.post("/v1/compare", &asked).json();
    for part in ["similarities", "fingerprints"] {
        assert_eq!(answer["results"][0][part], expected[part], "{part}");
    }

    for settings in [
        json!({ "recipe": "mine", "threshold": 0.6 }),
        json!({ "recipe": "mine", "method": "simhash", "distance": 9, "measure": "none" }),
    ] {
        let options = if settings["method"].is_null() {
            "--recipe mine.toml --threshold 0.6"
        } else {
            "--recipe mine.toml --method simhash --distance 9 --verify none"
        };
        let expected = removed(&place, options);
        assert!(expected.len() > 5, "{}", expected.len());
        service.make("a", settings);
        let described = service.get("/v1/collections/a").json();
        assert_eq!(described["recipe_id"], json!(recipe_id));
        assert_eq!(described["settings"]["recipe"], "mine");
        // The settings as they are answered make the same collection.
        let again = service.put("/v1/collections/a", &described["settings"]);
        assert_eq!(again.status, 200, "{}", again.text());
        for answer in service.post_lines("/v1/collections/a/documents", corpus.as_bytes()) {
            let expected = expected.get(answer["id"].as_str().unwrap());
            assert_eq!(evidence(&answer).as_ref(), expected, "{answer}");
        }
        assert_eq!(service.delete("/v1/collections/a").status, 204);
    }
}

/// A recipe is listed, read, kept over a restart, protected while it is used, and deleted.
#[test]
fn recipe_is_protected_while_it_is_used() {
    let place = Place::new();
    let mut service = Service::start(&place, "");
    assert_eq!(service.get("/v1/recipes").json(), json!({ "recipes": [] }));
    let first = upload_words(&service, "mine", "the\nof\n");
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!(upload_words(&service, "mine", "the\nof\n").status, 200);
    // Until it is used, another recipe may take its place.
    let second = upload_words(&service, "mine", "the\nof\nand\n");
    assert_eq!(second.status, 200, "{}", second.text());
    assert_ne!(first.json()["recipe_id"], second.json()["recipe_id"]);
    service.make("a", json!({ "recipe": "mine" }));
    let path = "/v1/collections/a/documents";
    service.post(
        path,
        &document("x", "the ship and the harbour of the lantern"),
    );

    for round in 0..2 {
        if round == 1 {
            service.kill();
            service = Service::start(&place, "");
        }
        let again = service.post(path, &document("y", "ship, harbour, lantern"));
        assert_eq!(again.json()["of"], "x", "{}", again.text());
        let got = service.get("/v1/recipes/mine").json();
        let mut expected = second.json();
        expected["collections"] = json!(["a"]);
        assert_eq!(got, expected);
        let file = &got["files"][0];
        assert_eq!(
            (&file["name"], &file["bytes"]),
            (&json!("stop.txt"), &json!(11))
        );
        let digest = format!("\"stop.txt\" = {}", file["digest"]);
        assert!(got["recipe"].as_str().unwrap().contains(&digest), "{got}");
        let listed = service.get("/v1/recipes").json();
        let entry = json!({
            "name": "mine", "state": "intact", "recipe_id": got["recipe_id"], "bytes": 11,
        });
        assert_eq!(listed, json!({ "recipes": [entry] }));
        assert_eq!(upload_words(&service, "mine", "the\nof\nand\n").status, 200);
        let refused = upload_words(&service, "mine", "the\n");
        assert_eq!(refused.problem(), (409, "recipe_conflict".into()));
        assert!(refused.text().contains("the collection 'a' uses 'mine'"));
        let refused = service.delete("/v1/recipes/mine");
        assert_eq!(refused.problem(), (409, "recipe_conflict".into()));
        assert!(refused.text().contains("used by the collections a: delete"));
        assert_eq!(service.get("/v1/recipes/mine").json(), got);
        if round == 1 {
            assert_eq!(service.delete("/v1/collections/a").status, 204);
            assert_eq!(service.delete("/v1/recipes/mine").status, 204);
            let gone = service.get("/v1/recipes/mine");
            assert_eq!(gone.problem(), (404, "no_recipe".into()));
            let gone = service.delete("/v1/recipes/mine");
            assert_eq!(gone.problem(), (404, "no_recipe".into()));
            let gone = service.put("/v1/collections/b", &json!({ "recipe": "mine" }));
            assert_eq!(gone.problem(), (422, "bad_settings".into()));
            assert!(
                gone.text().contains("no recipe named 'mine'"),
                "{}",
                gone.text()
            );
        }
    }
}

#[test]
fn wrong_uploads_are_refused() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let toml = WORDS.as_bytes();
    let stop: Part = ("file", "stop.txt", b"the\n");
    let recipe: Part = ("recipe", "", toml);
    let with_digest = format!("{WORDS}[files]\n\"stop.txt\" = \"{}\"\n", "0".repeat(32));
    let yanyiwu = WORDS.replace("tokens", "token");
    let many: Vec<_> = (0..32).map(|at| format!("f{at}.txt")).collect();
    let mut too_many = vec![recipe];
    too_many.extend(many.iter().map(|name| ("file", name.as_str(), &b"x\n"[..])));
    let cases: Vec<(&str, Vec<Part>, u16, &str)> = vec![
        (
            "Mine",
            vec![recipe, stop],
            422,
            "'Mine' is not a valid name",
        ),
        (
            "jieba",
            vec![recipe, stop],
            422,
            "'jieba' is the name of a built-in recipe",
        ),
        (
            "default",
            vec![recipe, stop],
            422,
            "built-in recipe: use another name",
        ),
        (
            "a",
            vec![],
            400,
            "the part `recipe` with the TOML of the recipe is missing",
        ),
        (
            "a",
            vec![stop],
            400,
            "the part `recipe` with the TOML of the recipe is missing",
        ),
        (
            "a",
            vec![recipe],
            422,
            "names the file 'stop.txt', which is not sent",
        ),
        (
            "a",
            vec![recipe, recipe, stop],
            400,
            "the part `recipe` is repeated",
        ),
        (
            "a",
            vec![recipe, stop, stop],
            400,
            "the file 'stop.txt' is sent twice",
        ),
        (
            "a",
            vec![recipe, stop, ("file", "x", b"")],
            422,
            "the file 'x' is sent, but",
        ),
        (
            "a",
            vec![recipe, ("file", "", b"the\n")],
            400,
            "a filename of 0 bytes",
        ),
        (
            "a",
            vec![recipe, ("files", "x", b"")],
            400,
            "the part `files` is unknown",
        ),
        (
            "a",
            vec![recipe, ("file", "stop.txt", b"\xff\n")],
            422,
            "stop.txt:1: the line is not UTF-8",
        ),
        (
            "a",
            vec![("recipe", "", b"\xff"), stop],
            400,
            "is not UTF-8 at byte 0",
        ),
        (
            "a",
            vec![("recipe", "", yanyiwu.as_bytes()), stop],
            422,
            "this is not a recipe",
        ),
        (
            "a",
            vec![("recipe", "", with_digest.as_bytes()), stop],
            422,
            "it is not the file of the recipe",
        ),
        ("a", too_many, 413, "more than 32 parts"),
    ];
    for (name, parts, status, said) in cases {
        let reply = upload(&service, name, &parts);
        assert_eq!(reply.problem().0, status, "{said}: {}", reply.text());
        assert!(reply.text().contains(said), "{said}: {}", reply.text());
    }
    let send = |kind: &str, body: &[u8]| {
        let headers = [("Content-Type", kind)];
        service
            .connect()
            .request("PUT", "/v1/recipes/a", &headers, body)
    };
    for kind in [
        "application/json",
        "multipart/form-data",
        "multipart/mixed; boundary=x",
    ] {
        let reply = send(kind, b"{}");
        assert_eq!(reply.problem(), (415, "unsupported_type".into()), "{kind}");
        assert!(
            reply
                .text()
                .contains("give multipart/form-data with a boundary")
        );
    }
    // A body that ends anywhere but at its end is not a recipe.
    let whole = form(&[recipe, stop]);
    for end in (0..whole.len() - 4).step_by(13) {
        let reply = send(&form_type(), &whole[..end]);
        assert_eq!(reply.problem().0, 400, "{end}: {}", reply.text());
    }
    let large = vec![b'a'; 32 << 20];
    let reply = upload(&service, "a", &[recipe, ("file", "stop.txt", &large)]);
    assert_eq!(reply.problem(), (413, "too_large".into()));
    let small = Service::start(&Place::new(), "--max-queue 1MiB --max-document 512KiB");
    let reply = upload(
        &small,
        "a",
        &[recipe, ("file", "stop.txt", &large[..1 << 18])],
    );
    assert_eq!(reply.problem(), (413, "too_large".into()));
    assert_eq!(service.get("/v1/recipes").json(), json!({ "recipes": [] }));
    // Nothing stays of the budget.
    assert!(
        service
            .get("/metrics")
            .text()
            .contains("lookalike_queue_bytes 0")
    );
    let get = service.get("/v1/recipes/Mine");
    assert_eq!(get.problem(), (422, "bad_name".into()));
}

/// A service that is killed in the middle of an upload, after each part of the body in turn, has the old recipe.
#[test]
fn killed_upload_leaves_the_old_recipe() {
    let place = Place::new();
    let mut service = Service::start(&place, "");
    assert_eq!(upload_words(&service, "mine", "the\n").status, 201);
    let expected = service.get("/v1/recipes/mine").json();
    let body = form(&[
        ("recipe", "", WORDS.as_bytes()),
        ("file", "stop.txt", b"of\n"),
    ]);
    let head = format!(
        "PUT /v1/recipes/mine HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: \
         {}\r\n\r\n",
        form_type(),
        body.len()
    );
    for sent in [0, body.len() / 2, body.len() - 1] {
        let mut connection = service.connect();
        connection.send(head.as_bytes()).unwrap();
        connection.send(&body[..sent]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        service.kill();
        service = Service::start(&place, "");
        assert_eq!(service.get("/v1/recipes/mine").json(), expected, "{sent}");
    }
    // The remains of an interrupted write are removed.
    service.kill();
    place.write("data/.recipes/mine.recipe.new", "lookalike-rec");
    let service = Service::start(&place, "");
    assert_eq!(service.get("/v1/recipes/mine").json(), expected);
    assert!(!place.has("data/.recipes/mine.recipe.new"));
}

/// A damaged file is refused with its name. Another upload heals it, and collections have their own copy.
#[test]
fn damaged_recipe_is_refused_until_it_is_uploaded_again() {
    let place = Place::new();
    let service = Service::start(&place, "");
    upload_words(&service, "mine", "the\nof\n");
    service.make("a", json!({ "recipe": "mine" }));
    service.kill();
    let file = "data/.recipes/mine.recipe";
    let damaged = place.read(file).replace("the\nof\n", "the\nor\n");
    place.write(file, damaged);
    let service = Service::start(&place, "");
    let listed = service.get("/v1/recipes").json();
    assert_eq!(listed["recipes"][0]["state"], "damaged");
    for reply in [
        service.get("/v1/recipes/mine"),
        service.post("/v1/segment", &json!({ "recipe": "mine", "texts": ["a"] })),
        service.put("/v1/collections/b", &json!({ "recipe": "mine" })),
    ] {
        assert_eq!(reply.problem(), (500, "damaged".into()), "{}", reply.text());
        let said = "the recipe 'mine' cannot be used: 'mine.recipe' is damaged";
        assert!(reply.text().contains(said) && reply.text().contains("upload it again"));
    }
    let path = "/v1/collections/a/documents";
    assert_eq!(
        service
            .post(path, &document("x", "the ship of harbour"))
            .status,
        200
    );
    // A recipe that a collection uses is not replaced.
    let refused = upload_words(&service, "mine", "the\nor\n");
    assert_eq!(refused.problem(), (409, "recipe_conflict".into()));
    assert_eq!(upload_words(&service, "mine", "the\nof\n").status, 200);
    assert_eq!(service.get("/v1/recipes/mine").status, 200);
    service.kill();
    // A damaged copy in a collection keeps the collection closed, and only this one.
    let damaged = place
        .read("data/a/recipe")
        .replace("the\nof\n", "the\nor\n");
    place.write("data/a/recipe", damaged);
    let service = Service::launch(&place, "");
    while service.get("/readyz").json()["opening"] != json!([]) {}
    assert_eq!(service.get("/readyz").json()["failed"], json!(["a"]));
    let reply = service.get("/v1/collections/a");
    assert_eq!(reply.problem(), (503, "stopped".into()));
    assert!(
        reply.text().contains("'recipe' is damaged"),
        "{}",
        reply.text()
    );
}

/// `store repair` reads an uploaded recipe from the collection's own copy if the settings have only its name, and says
/// so if the copy is damaged or missing.
#[test]
fn repair_reads_the_recipe_of_the_collection() {
    let place = Place::new();
    let service = Service::start(&place, "");
    upload_words(&service, "mine", "the\nof\n");
    service.make("a", json!({ "recipe": "mine" }));
    let sent = document("x", "the ship of the harbour");
    service.post("/v1/collections/a/documents", &sent);
    place.write("answer.json", service.get("/v1/collections/a").text());
    service.kill();
    std::fs::remove_file(place.path("data/a/manifest")).unwrap();
    place.ok("store repair data/a data/b --settings answer.json --quiet");
    place.ok("store verify data/b --quiet");
    place.write("other.json", r#"{"recipe":"others"}"#);
    let repair = "store repair data/a none --settings";
    let refused = place.refused(
        &format!("{repair} other.json"),
        &[
            "there is no recipe named 'others'",
            "store export --settings",
        ],
    );
    assert!(!refused.err.contains("upload"), "{}", refused.err);
    let recipe = place.path("data/a/recipe");
    let mut bytes = std::fs::read(&recipe).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&recipe, bytes).unwrap();
    let damaged = &["'mine' cannot be read", "'recipe' is damaged"];
    place.refused(&format!("{repair} answer.json"), damaged);
    std::fs::remove_file(&recipe).unwrap();
    let missing = &["there is no recipe named 'mine'"];
    place.refused(&format!("{repair} answer.json"), missing);
    assert!(!place.has("none"));
}

/// A snapshot and an export carry the recipe and its files to another machine.
#[test]
fn recipe_travels_with_snapshots_and_exports() {
    let place = Place::new();
    let service = Service::start(&place, "--snapshots copies");
    let made = upload_words(&service, "mine", "the\nof\n").json();
    service.make("a", json!({ "recipe": "mine" }));
    let path = "/v1/collections/a";
    service.post(
        &format!("{path}/documents"),
        &document("x", "the ship of the harbour"),
    );
    let snapshot = service.post(&format!("{path}/snapshot"), &json!({ "name": "b" }));
    assert_eq!(snapshot.status, 201, "{}", snapshot.text());
    service.kill();
    let there = Place::new();
    let copy = place.path("copies/a/b");
    there.ok(&format!("store restore {} data/a", copy.display()));
    let data = place.path("data/a");
    there.ok(&format!(
        "store export {} -o all.jsonl --settings settings.json --quiet",
        data.display()
    ));
    there.ok("store import data/b all.jsonl --settings settings.json --quiet");
    there.ok("store verify data/b --quiet");
    there.ok("store repair data/b data/c --settings settings.json --quiet");
    let service = Service::start(&there, "");
    for name in ["a", "b", "c"] {
        let described = service.get(&format!("/v1/collections/{name}")).json();
        assert_eq!(described["recipe_id"], made["recipe_id"]);
        assert_eq!(described["settings"]["recipe"], "mine");
        let again = document("y", "ship harbour");
        let reply = service.post(&format!("/v1/collections/{name}/documents"), &again);
        assert_eq!(reply.json()["of"], "x", "{name}: {}", reply.text());
    }
    // The name is free there for the same content alone.
    let refused = upload_words(&service, "mine", "the\n");
    assert_eq!(refused.problem(), (409, "recipe_conflict".into()));
    assert_eq!(upload_words(&service, "mine", "the\nof\n").status, 201);
    let users = service.get("/v1/recipes/mine").json()["collections"].clone();
    assert_eq!(users, json!(["a", "b", "c"]));
}

/// While a recipe is replaced again and again, every collection gets one of its contents, and from then on the
/// name keeps it.
#[test]
fn recipe_is_replaced_or_used_but_not_both() {
    let place = Place::new();
    let service = Service::start(&place, "");
    for round in 0..10 {
        upload_words(&service, "mine", "the\n");
        let name = format!("c{round}");
        std::thread::scope(|scope| {
            let (service, collection) = (&service, &name);
            scope.spawn(move || upload_words(service, "mine", "of\n"));
            scope.spawn(move || {
                service.make(collection, json!({ "recipe": "mine" }));
            });
        });
        let described = service.get(&format!("/v1/collections/{name}")).json();
        let recipe = service.get("/v1/recipes/mine").json();
        assert_eq!(recipe["recipe_id"], described["recipe_id"]);
        assert_eq!(recipe["collections"], json!([name]));
        assert_eq!(
            service.delete(&format!("/v1/collections/{name}")).status,
            204
        );
    }
}

/// Reading recipes needs a key that may read, and changing them one that may write.
#[test]
fn recipes_need_the_role_of_the_call() {
    let place = Place::new();
    let keys = ["read-read-read-1", "write-write-writ"];
    let environment = [
        ("LOOKALIKE_READ_KEY", keys[0]),
        ("LOOKALIKE_WRITE_KEY", keys[1]),
    ];
    let service = Service::launch_with(&place, "", &environment);
    let kind = form_type();
    let body = form(&[
        ("recipe", "", WORDS.as_bytes()),
        ("file", "stop.txt", b"the\n"),
    ]);
    let send = |key: &str, method: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        let mut headers = vec![("Content-Type", kind.as_str())];
        if !key.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        service
            .connect()
            .request(method, path, &headers, &body)
            .status
    };
    for (method, path, statuses) in [
        ("PUT", "/v1/recipes/mine", [401, 403, 201]),
        ("GET", "/v1/recipes/mine", [401, 200, 200]),
        ("GET", "/v1/recipes", [401, 200, 200]),
        ("DELETE", "/v1/recipes/mine", [401, 403, 204]),
    ] {
        for (key, status) in ["", keys[0], keys[1]].into_iter().zip(statuses) {
            assert_eq!(send(key, method, path), status, "{method} {path} {key}");
        }
    }
}
