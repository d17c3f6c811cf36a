//! Forms: filled forms that say different things are kept, their repeats are removed, at every door.

use serde_json::{Value, json};

use crate::recipes::{Part, upload};
use crate::reporting::read_report;
use crate::service::Service;
use crate::serving::{evidence, removed};
use crate::support::{Numbers, Place, Ran, corpus_jsonl, read_parquet, rows};

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
        let notice = |road: u32, days: u32, who: &str| {
            format!(
                "The council announces that road {road} is closed from the bridge to the market for {days} days, because \
                 the gas pipes below it are replaced. Buses stop at the church instead. We ask all {who} to allow for \
                 more time, and thank them for their patience."
            )
        };
        for at in 0..4 {
            self.push(format!("page{at}"), format!("Error C{}\n{body}", 4000 + at));
            self.push(format!("notice{at}"), notice(1700 + at, 25 + at, "people"));
        }
        let page = format!("Error C4002\n{}", numbers.edited(&body, 1));
        for (id, text) in [
            ("page-again", page),
            ("notice-again", notice(1702, 27, "passengers")),
        ] {
            self.repeats.push(id.to_owned());
            self.push(id.to_owned(), text);
        }
    }

    /// Returns `true` if a document is a filled form or a repeat of one.
    fn is_filled_form(id: &str) -> bool {
        let others = ["copy", "page", "notice"];
        !others.iter().any(|other| id.starts_with(other))
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
        place.ok_as_given(&line);
        let table = place.table("removed.tsv");
        table.into_iter().map(|row| row[0].clone()).collect()
    };
    let without = ids("--forms off");
    assert!(without.len() > 160, "{}", without.len());
    assert_eq!(ids("--forms learn"), corpus.repeats);
    assert_eq!(ids(""), corpus.repeats);
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
    let pairs = |options: &str| {
        rows(
            place
                .ok_as_given(&format!("pairs in.jsonl {options}"))
                .text(),
        )
    };
    let learned = pairs("--forms learn");
    assert_eq!(pairs(""), learned);
    assert!(pairs("--forms off").len() > 10 * learned.len());
    for pair in &learned {
        let (a, b) = (&pair[0], &pair[1]);
        let are_copies = a.starts_with("copy") && b.starts_with("copy");
        let is_repeat =
            corpus.repeats.contains(b) && b.trim_end_matches("-again") == &a[..a.len() - 1];
        let number = |id: &str| id.trim_start_matches(char::is_alphabetic).to_owned();
        assert!(
            are_copies || is_repeat || number(a) == number(b),
            "{pair:?}"
        );
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
    let expected = removed(&place, "--forms forms.toml");
    place.ok_as_given("dedup corpus.jsonl --removed own.tsv --recipe mine.toml");
    assert_eq!(place.table("own.tsv"), place.table("removed.tsv"));
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
        (&json!(4), &json!(206))
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
}

/// The documents of each form are listed with the values of their slots.
#[test]
fn documents_of_forms_are_listed() {
    let place = Place::new();
    FormCorpus::new().write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let done = place.summary("forms check forms.toml corpus.jsonl -o slots.jsonl");
    let forms = done["forms"].as_array().unwrap();
    let documents: u64 = forms
        .iter()
        .map(|form| form["documents"].as_u64().unwrap())
        .sum();
    assert_eq!(json!(documents), done["documents_of_forms"]);
    assert!(forms.len() == 4 && documents > 100, "{done}");
    let slots = place.read("slots.jsonl");
    let slots: Vec<Value> = slots
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_first = slots
        .iter()
        .filter(|slot| slot["form"] == forms[0]["name"] && slot["slot"] == 1);
    assert_eq!(json!(of_first.count()), forms[0]["documents"]);
    let table = place.read("forms.toml");
    let example = table
        .split("values = [[\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    assert!(
        slots.iter().any(|slot| slot["value"].as_str() == example),
        "{example:?}"
    );
    let listed = place.ok("forms check forms.toml corpus.jsonl -o again.tsv");
    let count = format!("{documents} documents");
    assert!(listed.err.contains(&count), "{} {count}", listed.err);
    place.refused("forms check none.toml in.jsonl", &["none.toml"]);
}

/// A table that is extended keeps its forms, and gets those of documents that are of none of them.
#[test]
fn extended_table_keeps_its_forms() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o whole.toml");
    let is_of_first = |id: &str| {
        let number = id
            .strip_prefix("form")
            .and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| number % 4 == 0)
    };
    let first = corpus.documents.iter();
    let first: Vec<_> = first.filter(|(id, _)| is_of_first(id)).cloned().collect();
    place.write("first.jsonl", corpus_jsonl(&first));
    place.ok("forms learn first.jsonl -o first.toml");
    let done = place.summary("forms learn in.jsonl --extend first.toml -o extended.toml");
    assert_eq!(done["forms"], json!(4));
    let extended = place.read("extended.toml");
    assert!(
        extended.starts_with(place.read("first.toml").trim_end()),
        "{extended}"
    );
    let removed = |table: &str| {
        let done = place.summary(&format!("dedup corpus.jsonl --dry-run --forms {table}"));
        done["removed"].clone()
    };
    assert_eq!(removed("extended.toml"), removed("whole.toml"));
    // Nothing is left to learn.
    place.ok("forms learn in.jsonl --extend extended.toml -o again.toml");
    assert_eq!(place.read("again.toml"), extended);
}

/// `--forms off` leaves out the forms of the recipe, and learning anew does not depend on them.
#[test]
fn forms_of_the_recipe_are_left_out_on_request() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let removed = |options: &str| {
        let line = format!("dedup in.jsonl --dry-run --json {options}");
        let done: Value = serde_json::from_slice(&place.ok_as_given(&line).out).unwrap();
        done["removed"].as_u64().unwrap()
    };
    let recipe = "--set forms=forms.toml";
    assert_eq!(removed(recipe), corpus.repeats.len() as u64);
    let without = removed("--forms off");
    assert_eq!(removed(&format!("{recipe} --forms off")), without);
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

/// `removed` and `pairs` name the form that both documents have, in every format, and only if forms are compared.
#[test]
fn tables_name_the_form() {
    let place = Place::new();
    let mut corpus = FormCorpus::new();
    let repeated = corpus.documents[5].1.clone();
    corpus.push("equal".to_owned(), repeated);
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let names: Vec<String> = place
        .read("forms.toml")
        .lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .map(|name| name.trim_matches('"').to_owned())
        .collect();
    assert_eq!(names.len(), 4);
    place.ok("dedup in.jsonl --removed r.tsv --forms forms.toml --quiet");
    let forms: Vec<String> = place
        .table("r.tsv")
        .iter()
        .map(|row| row.last().unwrap().clone())
        .collect();
    for (row, form) in place.table("r.tsv").iter().zip(&forms) {
        assert_eq!(row.len(), 11);
        assert_eq!(
            FormCorpus::is_filled_form(&row[0]),
            !form.is_empty(),
            "{row:?}"
        );
        assert!(form.is_empty() || names.contains(form), "{row:?}");
    }
    assert!(place.read("r.tsv").starts_with("id\tkept\tsimilarity"));
    assert!(place.read("r.tsv").contains("\tkept_row\tform\n"));
    let written = place.read("r.tsv");
    place.ok("dedup in.jsonl --removed r.tsv --forms learn --quiet");
    assert_eq!(place.read("r.tsv"), written);
    place.ok("dedup in.jsonl --removed r.csv --forms learn --quiet");
    assert_eq!(place.read("r.csv"), written.replace('\t', ","));
    place.ok("dedup in.jsonl --removed r.jsonl --forms learn --quiet");
    let of_rows: Vec<String> = place.read("r.jsonl").lines().map(form_of_row).collect();
    assert_eq!(of_rows, forms);
    place.ok("dedup in.jsonl --removed r.parquet --forms learn --quiet");
    assert_eq!(read_parquet(&place.path("r.parquet"), "form"), forms);

    let learned = place.ok("pairs in.jsonl --forms learn").text().to_owned();
    assert_eq!(
        place.ok("pairs in.jsonl --forms forms.toml").text(),
        learned
    );
    assert!(learned.contains("\tb_row\tform\n"));
    for row in rows(&learned) {
        assert_eq!(row.len(), 8);
        assert_eq!(
            FormCorpus::is_filled_form(&row[0]),
            !row[7].is_empty(),
            "{row:?}"
        );
    }
    for line in ["dedup in.jsonl --removed -", "pairs in.jsonl"] {
        assert!(
            place
                .ok(line)
                .text()
                .lines()
                .next()
                .unwrap()
                .ends_with("_row")
        );
        // Forms are compared although the table has none.
        place.write("none.toml", "lookalike_forms = 1");
        let ran = place.ok(&format!("{line} --forms none.toml"));
        assert!(ran.text().lines().next().unwrap().ends_with("_row\tform"));
        assert!(
            rows(ran.text())
                .iter()
                .all(|row| row.last().unwrap().is_empty())
        );
    }
}

/// `pairs --apart` lists what the similarity finds, with the reason of what forms keep apart.
#[test]
fn pairs_that_forms_keep_apart_are_listed() {
    let place = Place::new();
    let mut corpus = FormCorpus::new();
    let body = PROSE;
    corpus.push("title1".to_owned(), format!("glRectd\n{body}"));
    corpus.push("title2".to_owned(), format!("glRects\n{body}"));
    let paid = |a: u32, b: u32| format!("Paid {a} and then {b} for all of it. {body} The end.");
    corpus.push("paid1".to_owned(), paid(12, 30));
    corpus.push("paid2".to_owned(), paid(47, 85));
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    let similar = rows(place.ok("pairs in.jsonl --forms off").text());
    for forms in ["learn", "forms.toml"] {
        let line = format!("pairs in.jsonl --forms {forms}");
        let listed = rows(place.ok(&format!("{line} --apart")).text());
        let of_similarity: Vec<_> = listed.iter().map(|row| row[..7].to_vec()).collect();
        assert_eq!(of_similarity, similar, "{forms}");
        let matching = listed.iter().filter(|row| row[8].is_empty());
        let matching: Vec<_> = matching.map(|row| row[..8].to_vec()).collect();
        assert_eq!(matching, rows(place.ok(&line).text()), "{forms}");
        let reason = |a: &str, b: &str| {
            let row = listed.iter().find(|row| row[0] == a && row[1] == b);
            row.map(|row| row[8].clone())
        };
        assert_eq!(reason("form0", "form4").as_deref(), Some("form"));
        assert_eq!(reason("title1", "title2").as_deref(), Some("title"));
        assert_eq!(reason("paid1", "paid2").as_deref(), Some("numbers"));
        let done = place.summary(&format!("{line} --apart -o pairs.tsv"));
        let apart = listed.len() - matching.len();
        assert_eq!(done["apart"], json!(apart));
        assert_eq!(done["pairs"], json!(matching.len()));
    }
    place.refused("pairs in.jsonl --apart", &["--apart", "--forms"]);
}

/// Returns the ids in the first column of a table.
fn first_column(place: &Place, name: &str) -> Vec<String> {
    let table = place.table(name).into_iter();
    table.map(|row| row[0].clone()).collect()
}

/// A directory keeps the forms of its run, so that a run that is continued decides by the same.
#[test]
fn interrupted_runs_keep_their_forms() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    let line = "dedup in.jsonl --removed removed.tsv --quiet --work work";
    place.ok_as_given(line);
    assert_eq!(first_column(&place, "removed.tsv"), corpus.repeats);
    let step = "work/forms-000001.step";
    let kept = place.bytes(step);
    place.ok("forms learn in.jsonl -o forms.toml");
    let table = place.bytes("forms.toml");
    assert!(kept.windows(table.len()).any(|part| part == table));
    place.ok_as_given(&format!("{line} --resume"));
    assert!(place.bytes(step) == kept);
    // A run with other forms is another run, and one whose table was changed or lost is damaged.
    place.refused(&format!("{line} --resume --forms off"), &["recipe"]);
    let mut changed = kept.clone();
    changed[kept.len() / 2] ^= 1;
    place.write(step, &changed);
    let resume = format!("{line} --resume --forms learn");
    // Separators and messages of the system differ.
    let name = "forms-000001.step";
    place.refused(&resume, &[name, "damaged"]);
    std::fs::remove_file(place.path(step)).unwrap();
    place.refused(&resume, &[name, "os error 2"]);
    // A run that was begun without forms cannot go on with them.
    place.ok("dedup in.jsonl --removed off.tsv --quiet --work off");
    place.refused(
        "dedup in.jsonl --removed off.tsv --work off --resume --forms learn",
        &["begun without forms", "--forms"],
    );
    // The next run in the directory learns anew.
    place.ok_as_given(line);
    assert_eq!(first_column(&place, "removed.tsv"), corpus.repeats);
    // Without a demand for forms it goes on without.
    place.ok_as_given("dedup in.jsonl --removed again.tsv --quiet --work off --resume");
    assert_eq!(place.table("again.tsv"), place.table("off.tsv"));
}

/// A library keeps the forms that it was made with, and a library without forms has none later.
#[test]
fn libraries_keep_their_forms() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    let (first, second) = corpus.documents.split_at(120);
    place.write("first.jsonl", corpus_jsonl(first));
    place.write("second.jsonl", corpus_jsonl(second));
    place.ok("forms learn first.jsonl -o forms.toml");
    place.ok("dedup second.jsonl --against first.jsonl --removed expected.tsv --forms forms.toml");
    place.ok_as_given("dedup first.jsonl --library seen.lib --removed first.tsv");
    place.ok("dedup first.jsonl --removed expected-first.tsv --forms forms.toml");
    let columns = |name: &str| -> Vec<Vec<String>> {
        let table = place.table(name).into_iter();
        table.map(|row| row[..3].to_vec()).collect()
    };
    assert_eq!(columns("first.tsv"), columns("expected-first.tsv"));
    // Documents of the first month that were removed are not in the library, so the second month is compared with the
    // others.
    place.ok_as_given("dedup second.jsonl --library seen.lib --removed second.tsv");
    assert_eq!(
        first_column(&place, "second.tsv"),
        first_column(&place, "expected.tsv")
    );
    let ids = first_column(&place, "second.tsv");
    assert!(
        ids.len() > 10 && ids.iter().all(|id| corpus.repeats.contains(id)),
        "{ids:?}"
    );
    place.refused(
        "dedup second.jsonl --library seen.lib --dry-run --forms learn",
        &["seen.lib", "made with", "--forms"],
    );
    // The same recipe has the forms of the library, and no others.
    let line = "dedup second.jsonl --library seen.lib --dry-run";
    place.ok_as_given(&format!("{line} --recipe default"));
    place.refused(
        &format!("{line} --forms off"),
        &["made with other forms", "--forms"],
    );
    place.ok("dedup first.jsonl --library plain.lib --removed plain.tsv");
    place.ok_as_given("dedup second.jsonl --library plain.lib --removed plain.tsv");
    assert!(place.table("plain.tsv").len() > ids.len());
}

/// Where there can be no forms, the default learns none, and no run says otherwise than it does.
#[test]
fn the_default_learns_where_it_can() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("pairs in.jsonl --recipe 1e0ng --forms off -o off.tsv");
    place.ok_as_given("pairs in.jsonl --recipe 1e0ng -o default.tsv");
    assert_eq!(place.table("default.tsv"), place.table("off.tsv"));
    let mut features = String::new();
    for (id, text) in &corpus.documents {
        let words: Vec<&str> = text.split(' ').collect();
        features += &format!("{}\n", json!({ "id": id, "features": words }));
    }
    place.write("features.jsonl", features);
    let line = "dedup features.jsonl --features features --dry-run --json";
    let of = |ran: Ran| -> Value { serde_json::from_slice(&ran.out).unwrap() };
    let (given, off) = (of(place.ok_as_given(line)), of(place.ok(line)));
    assert_eq!(given["removed"], off["removed"]);
    // A limit of memory does not decide about verdicts, also where the input can be read only once.
    for options in ["--memory 300M", "--library new.lib"] {
        let line = format!("dedup - --removed removed.tsv {options}");
        let mut child = place.command_as_given(&line);
        child.stdin(std::fs::File::open(place.path("in.jsonl")).unwrap());
        let ran = Ran::from(child.output().unwrap());
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        assert_eq!(
            first_column(&place, "removed.tsv"),
            corpus.repeats,
            "{line}"
        );
    }
}

/// A table and a library say what to do about forms that they do not have; a run with its own forms says nothing.
#[test]
fn missing_forms_are_named() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.write("none.toml", "lookalike_forms = 1");
    place.write(
        "other.jsonl",
        corpus_jsonl(&[("other".to_owned(), PROSE.to_owned())]),
    );
    place.ok_as_given("dedup other.jsonl --library seen.lib --removed removed.tsv");
    let told = |options: &str| {
        place
            .ok_as_given(&format!("dedup in.jsonl --dry-run {options}"))
            .err
    };
    for (options, advice) in [
        ("--forms off", "run again with --forms learn"),
        ("--forms none.toml", "--extend TABLE"),
        ("--library seen.lib", "begin a new one with a table"),
    ] {
        let told = told(options);
        assert!(told.contains("may be filled forms"), "{options}: {told}");
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(advice), "{options}: {told}");
    }
    assert!(!told("").contains("may be filled forms"));
}

/// An audit counts by the forms of the run: what they keep apart is neither missed nor wrong.
#[test]
fn audits_count_by_the_forms() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    for forms in ["--forms learn", ""] {
        let line = format!("dedup in.jsonl --dry-run --audit=206 --json {forms}");
        let done: Value = serde_json::from_slice(&place.ok_as_given(&line).out).unwrap();
        assert_eq!(done["removed"], json!(corpus.repeats.len()), "{done}");
        let audit = &done["audit"];
        assert_eq!(audit["recall"]["share"], json!(1.0), "{audit}");
        assert_eq!(audit["precision"]["share"], json!(1.0), "{audit}");
        assert_eq!(audit["left_together"]["share"], json!(0.0), "{audit}");
        assert_eq!(
            audit["contents"]["different"]["share"],
            json!(0.0),
            "{audit}"
        );
    }
}

/// Returns the form of a row of JSONL; empty if it has none.
fn form_of_row(row: &str) -> String {
    let row: Value = serde_json::from_str(row).unwrap();
    row["form"].as_str().unwrap_or_default().to_owned()
}

/// The summary counts the forms, and the documents that they keep.
#[test]
fn summaries_count_forms() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    let removed = |options: &str| -> Vec<String> {
        place.ok(&format!(
            "dedup in.jsonl --removed removed.tsv --quiet {options}"
        ));
        let table = place.table("removed.tsv");
        table.into_iter().map(|row| row[0].clone()).collect()
    };
    let (without, with) = (removed("--forms off"), removed("--forms learn"));
    let kept_apart = without.iter().filter(|id| !with.contains(id)).count();
    assert!(kept_apart > 100);
    let of = |line: &str| place.summary(line)["forms"].clone();
    let learned = json!({ "forms": 4, "documents": 176, "kept_apart": kept_apart });
    assert_eq!(of("dedup in.jsonl --dry-run --forms learn"), learned);
    place.ok("forms learn in.jsonl -o forms.toml");
    let known = json!({ "forms": 4, "documents": 176 });
    assert_eq!(of("dedup in.jsonl --dry-run --forms forms.toml"), known);
    for forms in ["learn", "forms.toml"] {
        let line = format!("pairs in.jsonl -o pairs.tsv --forms {forms}");
        assert_eq!(of(&line), known, "{forms}");
    }
    assert_eq!(of("dedup in.jsonl --dry-run"), Value::Null);
    let ran = place.ok("dedup in.jsonl --dry-run --forms learn");
    let line = format!("  kept apart       {kept_apart} documents: similar to others, but");
    assert!(ran.err.contains(&line), "{}", ran.err);
    let line = "  forms            4, of 176 documents\n";
    assert!(ran.err.contains(line), "{}", ran.err);
    let told = place
        .ok("dedup in.jsonl --dry-run --forms learn --lang zh")
        .err;
    assert!(told.contains("4 个，涉及 176 篇文档"), "{told}");
}

/// `explain` shows the frame once, the values of both documents, and what keeps them apart.
#[test]
fn explanation_shows_the_slots() {
    let place = Place::new();
    place.write("forms.toml", SHOP_TABLE);
    let offer = |name: &str, colour: &str, notice: &str| {
        format!(
            "{notice} {} {name} {} 120 {} {colour} {} 7 {} 4 {}",
            SHOP[0], SHOP[1], SHOP[2], SHOP[3], SHOP[4], SHOP[5]
        )
    };
    let documents = [
        ("a", offer("Sol", "red", "")),
        ("b", offer("Sol", "green", "Again.")),
        ("c", offer("Luna", "blue", "")),
    ];
    let documents = documents.map(|(id, text)| (id.to_owned(), text));
    place.write("in.jsonl", corpus_jsonl(&documents));
    let done = place.ok("dedup in.jsonl --removed r.tsv --forms forms.toml");
    let hint = "lookalike explain r.tsv ID in.jsonl --forms forms.toml";
    assert!(done.err.contains(hint), "{}", done.err);
    assert_eq!(place.table("r.tsv").len(), 1);
    let ran = place.ok("explain r.tsv b in.jsonl --forms forms.toml");
    let expected = "
Form offer: its frame, and the values of both texts in its slots; * marks those that differ
  Only this week in all our shops: the lamp [1] for a price of no more than [2] euros, in the colour [3] and \
with a warranty of [4] years, delivered to your door within [5] working days, as long as there are some left.
         kept  removed
  [1]    Sol   Sol
  [2]    120   120
  [3] *  red   green
  [4]    7     7
  [5]    4     4
";
    assert!(ran.text().contains(expected), "{}", ran.text());
    assert!(
        ran.text().contains("  form         offer\n"),
        "{}",
        ran.text()
    );
    assert!(!ran.text().contains("do not match"), "{}", ran.text());
    let ran = place.ok("explain r.tsv b in.jsonl --set forms=forms.toml --json");
    let said: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(said["form"], "offer");
    let slot = json!({ "kept": "red", "removed": "green", "equal": false });
    assert_eq!(said["now"]["form"]["slots"][2], slot);
    assert_eq!(said["now"]["apart"], Value::Null);
    // A run without forms has removed c.
    place.ok("dedup in.jsonl --removed all.tsv");
    let ran = place.ok("explain all.tsv c in.jsonl");
    assert!(!ran.text().contains("Form offer"), "{}", ran.text());
    let ran = place.ok("explain all.tsv c in.jsonl --forms forms.toml");
    let reason = "by these forms they do not match: they are filled forms of one frame";
    assert!(ran.text().contains(reason), "{}", ran.text());
    assert!(
        ran.text().contains("  [1] *  Sol   Luna\n"),
        "{}",
        ran.text()
    );
    place.refused(
        "explain all.tsv c in.jsonl --forms learn",
        &["lookalike forms learn"],
    );
}

/// A title or numbers keep texts apart, too, and the explanation says which.
#[test]
fn explanation_names_title_and_numbers() {
    let place = Place::new();
    place.write("none.toml", "lookalike_forms = 1");
    let body = PROSE;
    let documents = [
        ("a", format!("glRectd\n{body}")),
        ("b", format!("glRects\n{body}")),
        ("c", format!("Paid 12 and then 30 and that was all. {body}")),
        ("d", format!("Paid 47 and then 85 and that was all. {body}")),
    ];
    let documents = documents.map(|(id, text)| (id.to_owned(), text));
    place.write("in.jsonl", corpus_jsonl(&documents));
    place.ok("dedup in.jsonl --removed r.tsv");
    let explain = |id: &str| {
        place.ok(&format!(
            "explain r.tsv {id} in.jsonl --forms none.toml --json"
        ))
    };
    let said: Value = serde_json::from_slice(&explain("b").out).unwrap();
    assert_eq!(said["now"]["apart"]["by"], "title");
    let reason = said["now"]["apart"]["reason"].as_str().unwrap();
    assert!(reason.ends_with("'glRectd' and 'glRects'"), "{reason}");
    place.write("in.jsonl", corpus_jsonl(&documents[2..]));
    place.ok("dedup in.jsonl --removed r.tsv");
    let said: Value = serde_json::from_slice(&explain("d").out).unwrap();
    assert_eq!(said["now"]["apart"]["by"], "numbers");
    let told = place.ok("explain r.tsv d in.jsonl --forms none.toml --lang zh");
    let told = told.text();
    assert!(told.contains("多数数字不同：'12' 和 '47'"), "{told}");
}

/// A text without numbers.
const PROSE: &str = "The path along the river is closed for walkers until the bank has been mended, because the water \
    took away part of it in the last storm of the winter. Those who want to reach the mill may go around by the old \
    railway, which begins behind the church, or wait for the ferry that the fishermen have promised to run from the \
    steps below the market whenever somebody rings the bell. The council thanks all who have helped to fill the sacks \
    with sand, and hopes that nobody will have to do so again before the harvest is over.";

const SHOP: [&str; 6] = [
    "Only this week in all our shops: the lamp",
    "for a price of no more than",
    "euros, in the colour",
    "and with a warranty of",
    "years, delivered to your door within",
    "working days, as long as there are some left.",
];

const SHOP_TABLE: &str = r#"lookalike_forms = 1
[[form]]
name = "offer"
frame = [
    "Only this week in all our shops: the lamp",
    "for a price of no more than",
    "euros, in the colour",
    "and with a warranty of",
    "years, delivered to your door within",
    "working days, as long as there are some left.",
]
"#;

/// A limit on the memory changes no verdict, and no table.
#[test]
fn limited_memory_changes_nothing() {
    let place = Place::new();
    let mut numbers = Numbers::new(9);
    let mut corpus = FormCorpus::new();
    for at in 0..60_000 {
        corpus.push(format!("other{at}"), numbers.text(60));
    }
    let repeated = corpus.documents[5].1.clone();
    corpus.push("equal".to_owned(), repeated);
    corpus.write(&place);
    let run = |options: &str| {
        place.ok(&format!(
            "dedup in.jsonl -o out.jsonl --removed removed.tsv --threads 1 --quiet {options}"
        ));
        (place.read("out.jsonl"), place.read("removed.tsv"))
    };
    let expected = run("--forms learn");
    assert_eq!(run("--forms learn --memory 150MB"), expected);
    let done = place.summary("dedup in.jsonl --dry-run --threads 1 --memory 150MB --forms learn");
    assert!(
        done["spilled"]["bytes"].as_u64() > Some(10_000_000),
        "{done}"
    );
    let pairs = |options: &str| {
        let line = format!("pairs in.jsonl --threads 1 --quiet --forms learn {options}");
        place.ok(&line).text().to_owned()
    };
    assert_eq!(pairs("--memory 150MB"), pairs(""));
    // The directory is made before forms are learned with temporary files in it.
    assert_eq!(run("--forms learn --memory 150MB --work new"), expected);
    place.refused(
        "dedup in.jsonl -o none/out.jsonl --forms learn --work other",
        &["none/out.jsonl"],
    );
    place.refused(
        "pairs in.jsonl --threads 1 --forms learn --memory 150MB --apart",
        &["--apart", "--memory"],
    );
}

/// Returns a line of a file of decisions about a form of a report, as the page writes it.
fn decide_form(report: &Value, form: usize, label: &str) -> String {
    let forms = &report["forms"];
    let [a, b] = [0, 1].map(|side| &forms["examples"][form][side]);
    let line = json!({
        "a": a["content"], "b": b["content"], "label": label, "recipe": report["plan"]["recipe_id"],
        "a_key": a["key"], "b_key": b["key"],
        "form": { "name": forms["name"][form], "frame": forms["frame"][form] },
    });
    format!("{line}\n")
}

/// A report lists the forms with the values of their documents, and a decision about one changes the verdicts of all its
/// documents.
#[test]
fn report_lists_forms_and_decisions_are_about_all_their_documents() {
    let place = Place::new();
    let corpus = FormCorpus::new();
    corpus.write(&place);
    place.ok("forms learn in.jsonl -o forms.toml");
    place.ok("forms check forms.toml in.jsonl -o slots.tsv");
    let slots = place.table("slots.tsv");
    let line = "dedup in.jsonl --removed removed.tsv --report r.html";
    for options in ["", "--forms forms.toml", "--memory 300M"] {
        place.ok_as_given(&format!("{line} {options}"));
        let report = read_report(&place, "r.html");
        let (forms, documents) = (&report["forms"], &report["form_documents"]);
        assert_eq!(forms["total"], 4, "{options}");
        let possible = forms["possible"].as_array().unwrap().iter();
        assert_eq!(
            possible
                .filter(|possible| **possible == json!(false))
                .count(),
            4
        );
        assert_eq!(forms["documents"][0], 48, "{options}");
        assert_eq!(forms["removed"][0], 8, "{options}");
        let listed = documents["form"].as_array().unwrap().iter().enumerate();
        let of_first: Vec<usize> = listed
            .filter(|(_, form)| **form == 0)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(of_first.len(), 40);
        for &at in &of_first {
            let id = documents["id"][at].as_str().unwrap();
            let values = slots
                .iter()
                .filter(|slot| slot[0] == id)
                .map(|slot| slot[3].clone());
            assert_eq!(
                json!(values.collect::<Vec<_>>()),
                documents["values"][at],
                "{id}"
            );
            assert_eq!(
                json!(id.starts_with("repeat")),
                documents["removed"][at],
                "{id}"
            );
        }
    }
    place.ok_as_given(line);
    let report = read_report(&place, "r.html");
    place.write("d.jsonl", decide_form(&report, 0, "same"));
    let options = "--decisions d.jsonl";
    let done = place.ok_as_given(&format!("{line} {options} --json"));
    let done: Value = serde_json::from_slice(&done.out).unwrap();
    assert_eq!(done["decisions"]["forms"], 1);
    assert_eq!(done["forms"]["forms"], 3);
    // Of the documents of the form one is left, and all others are as before.
    assert_eq!(done["removed"], corpus.repeats.len() + 39);
    let decided = read_report(&place, "r.html");
    assert_eq!(decided["summary"]["decisions"]["forms"], 1);
    // A frame that a person has decided to be that of copies is not listed as a possible form.
    let frames = decided["forms"]["frame"].as_array().unwrap();
    assert!(!frames.contains(&report["forms"]["frame"][0]), "{frames:?}");
    // Without learning, the decision is about its two texts alone.
    let off = place.ok_as_given(&format!("{line} {options} --forms off --json"));
    let off: Value = serde_json::from_slice(&off.out).unwrap();
    assert_eq!(off["decisions"]["forms_not_applied"], 1);
    let said = place.ok_as_given(&format!("dedup in.jsonl --dry-run {options} --forms off"));
    assert!(
        said.err.contains("1 of these applied to two texts alone"),
        "{}",
        said.err
    );
}

/// Fewer documents than a form is learned of are a possible form, and a person can say that they are one.
#[test]
fn possible_forms_become_forms_by_a_decision() {
    let place = Place::new();
    let mut numbers = Numbers::new(11);
    let [before, between, after] = [20, 15, 18].map(|words| numbers.text(words));
    let offer = |name: &str, price: u32| format!("{before} {name} {between} {price} {after}");
    let names = ["walnut", "maple", "cedar", "birch"];
    let mut documents: Vec<(String, String)> = (0..4)
        .map(|at| (format!("offer{at}"), offer(names[at], 20 + at as u32)))
        .collect();
    documents.push(("again".to_owned(), format!("Again: {}", offer("cedar", 22))));
    place.write("in.jsonl", corpus_jsonl(&documents));
    let line = "dedup in.jsonl --removed removed.tsv --report r.html";
    place.ok_as_given(line);
    assert_eq!(
        first_column(&place, "removed.tsv"),
        ["offer1", "offer2", "offer3", "again"]
    );
    let report = read_report(&place, "r.html");
    assert_eq!(report["forms"]["total"], 0);
    assert_eq!(report["forms"]["possible"], json!([true]));
    assert_eq!(report["forms"]["frame"][0].as_array().unwrap().len(), 3);
    assert_eq!(report["forms"]["documents"], json!([5]));
    place.write("d.jsonl", decide_form(&report, 0, "different"));
    place.ok_as_given(&format!("{line} --decisions d.jsonl"));
    assert_eq!(first_column(&place, "removed.tsv"), ["again"]);
    let report = read_report(&place, "r.html");
    assert_eq!(report["forms"]["possible"], json!([false]));
    // The texts have changed, so the form that a person has made is in none of them.
    let others: Vec<(String, String)> = (0..4)
        .map(|at| (format!("other{at}"), numbers.text(40)))
        .collect();
    place.write("others.jsonl", corpus_jsonl(&others));
    let line = "dedup others.jsonl --dry-run --decisions d.jsonl";
    let done = place.ok_as_given(&format!("{line} --json"));
    let done: Value = serde_json::from_slice(&done.out).unwrap();
    assert_eq!(done["decisions"]["forms_without_documents"], 1);
    let said = place.ok_as_given(line);
    assert!(
        said.err
            .contains("1 of these make a form that no two similar"),
        "{}",
        said.err
    );
    // The labels of a report are still labels of pairs.
    place.refused(
        "eval d.jsonl --corpus in.jsonl",
        &["none of the 1 labelled pairs is similar"],
    );
    place.write("d.jsonl", "{\"form\":{\"name\":\"f\",\"frame\":[\"x\"]}}\n");
    place.refused(
        "dedup in.jsonl --dry-run --decisions d.jsonl",
        &["d.jsonl:1"],
    );
}
