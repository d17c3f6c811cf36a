//! Forms: filled forms that say different things are kept, their repeats are removed, at every door.

use serde_json::json;

use crate::recipes::{Part, upload};
use crate::service::Service;
use crate::serving::{evidence, removed};
use crate::support::{Numbers, Place, corpus_jsonl, rows};

/// Filled forms, repeats of some of them, and copies of an article, in no order.
struct FormCorpus {
    documents: Vec<(String, String)>,
    /// Documents of which an earlier one says the same.
    repeats: Vec<String>,
}

impl FormCorpus {
    fn new() -> Self {
        let mut numbers = Numbers::new(5);
        let mut corpus = Self {
            documents: Vec::new(),
            repeats: Vec::new(),
        };
        let frames: Vec<[String; 3]> = (0..4)
            .map(|_| [12, 20, 9].map(|words| numbers.text(words)))
            .collect();
        for at in 0..160_usize {
            let [a, b, c] = &frames[at % 4];
            let (name, price) = (format!("name{}", numbers.below(100_000)), 1000 + at);
            let text = format!("{a} {name} {b} {price} {c}");
            corpus.push(format!("form{at}"), text.clone());
            if at % 10 == 3 {
                corpus.repeats.push(format!("repeat{at}"));
                corpus.push(format!("repeat{at}"), format!("Again. {text}"));
            }
        }
        let article = numbers.text(150);
        for at in 0..20 {
            let copy = numbers.edited(&article, at % 5);
            if at > 0 {
                corpus.repeats.push(format!("copy{at}"));
            }
            corpus.push(format!("copy{at}"), copy);
        }
        corpus.add_pages(&mut numbers);
        corpus
    }

    /// Adds pages that differ in their titles and notices that differ in their numbers, fewer than a form takes, and a
    /// repeat of each.
    fn add_pages(&mut self, numbers: &mut Numbers) {
        let body = numbers.text(80);
        let [a, b] = [40, 40].map(|words| numbers.text(words));
        for at in 0..4 {
            self.push(format!("page{at}"), format!("Error C{}\n{body}", 4000 + at));
            let notice = format!("{a} {} {b} {} {a}", 1700 + at, 25 + at);
            self.push(format!("notice{at}"), notice);
        }
        let pages = [
            ("page", format!("Error C4002\n{}", numbers.edited(&body, 1))),
            (
                "notice",
                format!("{a} 1702 {b} 27 {}", numbers.edited(&a, 1)),
            ),
        ];
        for (what, text) in pages {
            let id = format!("{what}-again");
            self.repeats.push(id.clone());
            self.push(id, text);
        }
    }

    fn push(&mut self, id: String, text: String) {
        self.documents.push((id, text));
    }

    fn write(&self, place: &Place) {
        place.write("in.jsonl", corpus_jsonl(&self.documents));
        place.write("corpus.jsonl", corpus_jsonl(&self.documents));
    }
}

#[test]
fn filled_forms_are_kept_and_repeats_removed() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    let ids = |options: &str| -> Vec<String> {
        let line = format!("dedup in.jsonl --removed removed.tsv --quiet {options}");
        place.ok(&line);
        let table = place.table("removed.tsv");
        table.into_iter().map(|row| row[0].clone()).collect()
    };
    let without = ids("--forms off");
    assert!(without.len() > 160, "{}", without.len());
    assert_eq!(ids("--forms learn"), corpus.repeats);
    for options in [
        "--threads 1",
        "--threads 3",
        "--method join",
        "--method minhash",
    ] {
        assert_eq!(
            ids(&format!("--forms learn {options}")),
            corpus.repeats,
            "{options}"
        );
    }
    place.ok("forms learn in.jsonl -o forms.toml");
    assert_eq!(ids("--forms forms.toml"), corpus.repeats);
    assert_eq!(ids("--set forms=forms.toml"), corpus.repeats);
    // With verification by other measures, which the filled forms reach too.
    for measure in ["containment", "cosine", "levenshtein"] {
        let options = format!("--verify {measure} --forms forms.toml");
        assert_eq!(ids(&options), corpus.repeats, "{measure}");
    }
}

#[test]
fn pairs_agree_with_dedup() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    let pairs = |options: &str| rows(place.ok(&format!("pairs in.jsonl {options}")).text());
    let learned = pairs("--forms learn");
    assert!(pairs("").len() > 10 * learned.len());
    for pair in &learned {
        let (a, b) = (&pair[0], &pair[1]);
        let are_copies = a.starts_with("copy") && b.starts_with("copy");
        let number = |id: &str| id.trim_start_matches(char::is_alphabetic).to_owned();
        assert!(are_copies || number(a) == number(b), "{pair:?}");
    }
    place.ok("forms learn in.jsonl -o forms.toml");
    assert_eq!(pairs("--forms forms.toml"), learned);
}

/// The table belongs to the recipe, and a collection with it gives the verdicts of `dedup`.
#[test]
fn service_gives_the_verdicts_of_the_command() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn corpus.jsonl -o forms.toml");
    let toml = place.ok("recipe default --set forms=forms.toml").out;
    place.write("mine.toml", &toml);
    let expected = removed(&place, "--recipe mine.toml");
    assert_eq!(expected.len(), corpus.repeats.len());
    let service = Service::start(&place, "");
    let forms = place.bytes("forms.toml");
    let parts: [Part; 2] = [
        ("recipe", "mine.toml", &toml),
        ("file", "forms.toml", &forms),
    ];
    assert_eq!(upload(&service, "mine", &parts).status, 201);
    service.make("a", json!({ "recipe": "mine" }));
    let lines = place.bytes("corpus.jsonl");
    for answer in service.post_lines("/v1/collections/a/documents", &lines) {
        let expected = expected.get(answer["id"].as_str().unwrap());
        assert_eq!(evidence(&answer).as_ref(), expected, "{answer}");
    }
}

#[test]
fn table_is_shown_and_wrong_ones_are_refused() {
    let place = Place::new();
    FormCorpus::new().write(&place);
    let done = place.summary("forms learn in.jsonl -o forms.toml");
    assert_eq!(
        (&done["forms"], &done["documents"]),
        (&json!(4), &json!(196))
    );
    let shown = place.ok("forms show forms.toml");
    assert_eq!(shown.text().matches("[1]").count(), 8, "{}", shown.text());
    place.refused(
        "forms show forms.toml nothing",
        &["no form named 'nothing'"],
    );
    place.write("bad.toml", "lookalike_forms = 7");
    place.refused(
        "dedup in.jsonl --dry-run --forms bad.toml",
        &["bad.toml", "version 7"],
    );
    place.refused("dedup in.jsonl --dry-run --forms none.toml", &["none.toml"]);
    place.refused(
        "dedup in.jsonl --dry-run --forms forms.toml --recipe 1e0ng",
        &["forms", "1e0ng"],
    );
    place.refused("forms learn in.jsonl -o in.jsonl", &["in.jsonl", ".toml"]);
    place.write("in.toml", "text");
    place.refused(
        "forms learn in.toml --format text -o in.toml",
        &["in.toml", "input"],
    );
    place.refused("forms learn in.jsonl --recipe 1e0ng", &["1e0ng"]);
    place.refused(
        "dedup in.jsonl --dry-run --features text --forms forms.toml",
        &["--features", "forms"],
    );
    place.refused(
        "dedup in.jsonl -o out.jsonl --work w --forms learn",
        &["lookalike forms learn"],
    );
    place.refused(
        "dedup in.jsonl --dry-run --audit --forms learn",
        &["--audit", "--forms"],
    );
}

/// `--forms off` leaves out the forms of the recipe, and learning anew does not depend on them.
#[test]
fn forms_of_the_recipe_are_left_out_on_request() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let removed = |options: &str| {
        let done = place.summary(&format!("dedup in.jsonl --dry-run {options}"));
        done["removed"].as_u64().unwrap()
    };
    let recipe = "--set forms=forms.toml";
    assert_eq!(removed(recipe), corpus.repeats.len() as u64);
    assert_eq!(removed(&format!("{recipe} --forms off")), removed(""));
    assert_eq!(
        removed(&format!("{recipe} --forms learn")),
        corpus.repeats.len() as u64
    );
    let before = place.read("forms.toml");
    place.ok(&format!("forms learn in.jsonl {recipe} -o again.toml"));
    assert_eq!(place.read("again.toml"), before);
}

/// A library gives the verdicts of `--against`, and `search` those of `pairs`.
#[test]
fn libraries_give_the_verdicts_of_the_command() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let (base, repeats): (Vec<_>, Vec<_>) = corpus
        .documents
        .iter()
        .cloned()
        .partition(|(id, _)| id.starts_with("form"));
    place.write("base.jsonl", corpus_jsonl(&base));
    place.write("repeats.jsonl", corpus_jsonl(&repeats));
    let set = "--set forms=forms.toml --recipe default";
    place.ok(&format!("index build lib base.jsonl --texts {set}"));
    let against = place
        .ok("pairs repeats.jsonl --against base.jsonl --forms forms.toml -o pairs.tsv --quiet");
    assert_eq!(against.err, "");
    let mut expected: Vec<(String, String)> = place
        .table("pairs.tsv")
        .iter()
        .map(|row| (row[1].clone(), row[0].clone()))
        .collect();
    expected.sort();
    assert_eq!(expected.len(), 16);
    let found = place.ok("search lib repeats.jsonl --threshold 0.75");
    let mut found: Vec<(String, String)> = rows(found.text())
        .iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    found.sort();
    assert_eq!(found, expected);
    place.ok(&format!("index build bare base.jsonl {set}"));
    place.refused(
        "search bare repeats.jsonl --threshold 0.75",
        &["forms", "texts"],
    );
}

/// A comparison says that the forms keep two documents apart.
#[test]
fn comparison_names_the_forms() {
    let place = Place::new();
    FormCorpus::new().write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let set = "--recipe default --set forms=forms.toml";
    let ran = place.ok(&format!("compare in.jsonl#form0 in.jsonl#form4 {set}"));
    assert!(
        ran.text().contains("filled forms of one frame"),
        "{}",
        ran.text()
    );
    let ran = place.ok(&format!(
        "compare in.jsonl#form0 in.jsonl#form1 {set} --threshold 0.1"
    ));
    assert!(!ran.text().contains("hundred"), "{}", ran.text());
}

/// A limit on the memory changes no verdict.
#[test]
fn limited_memory_changes_nothing() {
    let place = Place::new();
    let mut numbers = Numbers::new(9);
    let mut corpus = FormCorpus::new();
    for at in 0..3000 {
        corpus.push(format!("other{at}"), numbers.text(60));
    }
    corpus.write(&place);
    let run = |options: &str| {
        place.ok(&format!(
            "dedup in.jsonl -o out.jsonl --removed removed.tsv --threads 1 --quiet {options}"
        ));
        (place.read("out.jsonl"), place.read("removed.tsv"))
    };
    let expected = run("--forms learn");
    assert_eq!(run("--forms learn --memory 120MB"), expected);
}
