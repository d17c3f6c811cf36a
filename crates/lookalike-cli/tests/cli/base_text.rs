//! Text that all documents were given: `lookalike passages --base`, and the hint where nobody said so.

use serde_json::{Value, json};

use crate::reporting::read_report;
use crate::service::Service;
use crate::support::{Numbers, Place, jsonl};

/// Words of a part of a text that is own or copied text as a whole.
const PART_WORDS: usize = 50;

/// Words of a part that is given. No passage goes on across so many other words, so that other words in their place part
/// passages, too.
const GIVEN_WORDS: usize = 90;

/// Returns words that occur nowhere else, each of eight characters.
fn unique_words(numbers: &mut Numbers, words: usize) -> String {
    let letter = |numbers: &mut Numbers| char::from(b'a' + numbers.below(26) as u8);
    let word = |numbers: &mut Numbers| -> String { (0..8).map(|_| letter(numbers)).collect() };
    let words: Vec<String> = (0..words).map(|_| word(numbers)).collect();
    words.join(" ")
}

/// A class whose texts are made of given, copied and own parts, and the same class with other words in place of each
/// given part.
struct ClassTexts {
    given: Vec<String>,
    texts: Vec<(String, String)>,
    without_given: Vec<(String, String)>,
}

impl ClassTexts {
    fn new(numbers: &mut Numbers, documents: usize) -> Self {
        let mut parts = |count: usize, words: usize| -> Vec<String> {
            (0..count).map(|_| unique_words(numbers, words)).collect()
        };
        let (given, copied) = (parts(3, GIVEN_WORDS), parts(6, PART_WORDS));
        let (mut texts, mut without_given) = (Vec::new(), Vec::new());
        for at in 0..documents {
            let (mut text, mut other) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                let (part, is_given) = match numbers.below(3) {
                    0 => (given[numbers.below(3)].clone(), true),
                    1 => (copied[numbers.below(6)].clone(), false),
                    _ => (unique_words(numbers, PART_WORDS), false),
                };
                let replaced = if is_given {
                    unique_words(numbers, GIVEN_WORDS)
                } else {
                    part.clone()
                };
                text.push(part);
                other.push(replaced);
            }
            texts.push((format!("d{at}"), text.join(". ")));
            without_given.push((format!("d{at}"), other.join(". ")));
        }
        Self {
            given,
            texts,
            without_given,
        }
    }

    /// Checks that no passage of a table has a given part, in either text.
    fn assert_nothing_given(&self, rows: &[Vec<String>]) {
        for row in rows {
            for (id, start, end) in [(0, 2, 3), (1, 4, 5)] {
                let (_, text) = self
                    .texts
                    .iter()
                    .find(|(name, _)| *name == row[id])
                    .unwrap();
                let [start, end] = [start, end].map(|at: usize| row[at].parse::<usize>().unwrap());
                let passage = &text[start..end];
                assert!(
                    !self
                        .given
                        .iter()
                        .any(|given| passage.contains(given.as_str())),
                    "{row:?}"
                );
            }
        }
    }
}

/// Returns the first rows that two tables do not share.
fn first_difference(a: &[Vec<String>], b: &[Vec<String>]) -> Option<(Vec<String>, Vec<String>)> {
    let all = 0..a.len().max(b.len());
    let rows = all.map(|at| [a, b].map(|rows| rows.get(at).cloned().unwrap_or_default()));
    let mut different = rows.filter(|[a, b]| a != b);
    different.next().map(|[a, b]| (a, b))
}

fn write_rows(place: &Place, name: &str, rows: &[(String, String)]) {
    place.write(name, jsonl(rows.iter().map(|(id, text)| (&**id, &**text))));
}

/// Passages beside a base equal those of the same texts with other words in place of the base: in all documents, against
/// sources, in an index, out of core, and at any number of threads.
#[test]
fn passages_are_those_of_texts_without_the_base() {
    let place = Place::new();
    let mut numbers = Numbers::new(41);
    let class = ClassTexts::new(&mut numbers, 60);
    for (at, given) in class.given.iter().enumerate() {
        place.write(&format!("given{at}.txt"), given);
    }
    let base = "--base given0.txt --base given1.txt --base given2.txt";
    for (name, texts) in [("in", &class.texts), ("oracle", &class.without_given)] {
        write_rows(&place, &format!("{name}.jsonl"), texts);
        write_rows(&place, &format!("{name}-old.jsonl"), &texts[..40]);
        write_rows(&place, &format!("{name}-new.jsonl"), &texts[40..]);
    }
    place.ok("passages index build lib in-old.jsonl");
    for options in ["--max-documents none", "--max-documents 30", "--reworded"] {
        let line = format!("passages in.jsonl {base} {options}");
        let done = place.summary(&format!("{line} --threads 1 -o one.tsv"));
        place.ok(&format!("{line} --threads 3 -o three.tsv"));
        assert!(place.bytes("one.tsv") == place.bytes("three.tsv"));
        place.ok(&format!("{line} --memory 400M -o spilled.tsv"));
        assert!(place.bytes("one.tsv") == place.bytes("spilled.tsv"));
        let rows = place.table("one.tsv");
        assert!(rows.len() > 20, "{options}");
        if options == "--reworded" {
            // Regions are parted at the base, so they are not those of texts with other words.
            class.assert_nothing_given(&rows);
        } else {
            place.ok(&format!("passages oracle.jsonl {options} -o oracle.tsv"));
            assert_eq!(first_difference(&rows, &place.table("oracle.tsv")), None);
        }
        let given = |(_, text): &(String, String)| {
            let parts = text
                .split(". ")
                .filter(|part| class.given.iter().any(|given| given == part));
            parts.count()
        };
        let parts: Vec<usize> = class.texts.iter().map(given).collect();
        let having = parts.iter().filter(|&&count| count > 0).count();
        let tokens = parts.iter().sum::<usize>() * GIVEN_WORDS;
        let expected = json!({ "texts": 3, "documents": having, "tokens": tokens });
        assert_eq!(done["base"], expected);
    }
    for limit in ["none", "30"] {
        let limit = format!("--max-documents {limit}");
        place.ok(&format!(
            "passages oracle-new.jsonl --against oracle-old.jsonl {limit} -o oracle.tsv"
        ));
        assert!(!place.table("oracle.tsv").is_empty());
        place.ok(&format!(
            "passages in-new.jsonl --against in-old.jsonl {base} {limit} -o against.tsv"
        ));
        let [against, oracle] = ["against.tsv", "oracle.tsv"].map(|name| place.table(name));
        assert_eq!(first_difference(&against, &oracle), None);
        place.ok(&format!(
            "passages in-new.jsonl --index lib {base} {limit} -o indexed.tsv"
        ));
        assert!(place.bytes("indexed.tsv") == place.bytes("against.tsv"));
    }
}

const QUESTION: &str = "Describe in your own words why the ferry to the island of Aurea sails before noon, who waits for \
                        it on the other side, and which three reasons the harbour master gives for the delay in March.";

const ANSWER: &str = "The harbour master says that the mail is late, that the crew sleeps on board, and that the old \
                      engine needs a whole hour before it is warm enough to leave the quay at all.";

/// Writes five essays with the question, two of which share an answer.
fn write_class(place: &Place) {
    std::fs::create_dir(place.path("essays")).unwrap();
    for (at, name) in ["ann", "ben", "cem", "dia", "eva"].into_iter().enumerate() {
        let mut numbers = Numbers::new(60 + at as u64);
        let answer = if at < 2 { ANSWER } else { "" };
        let own = unique_words(&mut numbers, 60);
        place.write(
            &format!("essays/{name}.txt"),
            format!("{QUESTION}\n\n{answer} {own}\n"),
        );
    }
    place.write("question.txt", QUESTION);
}

#[test]
fn question_of_a_class_is_left_out_and_told() {
    let place = Place::new();
    write_class(&place);
    let whole = place.summary("passages essays -o whole.tsv");
    assert_eq!(
        (&whole["pairs"], &whole["sharing"]),
        (&json!(10), &json!(5))
    );
    assert_eq!(
        whole["base"],
        json!({ "texts": 0, "documents": 0, "tokens": 0 })
    );
    let told =
        place.ok("passages essays --base question.txt -o left.tsv --report left.html --show");
    let done = place.summary("passages essays --base question.txt -o left.tsv");
    assert_eq!((&done["pairs"], &done["sharing"]), (&json!(1), &json!(2)));
    let words = QUESTION.split_whitespace().count();
    assert_eq!(
        done["base"],
        json!({ "texts": 1, "documents": 5, "tokens": 5 * words })
    );
    let rows = place.table("left.tsv");
    let essay = place.read("essays/ben.txt");
    let at = |column: usize| rows[0][column].parse::<usize>().unwrap();
    assert_eq!(&essay[at(2)..at(3)], ANSWER.trim_end_matches('.'));
    assert!(
        told.err.contains(&format!(
            "{} words of 5 documents stand in 1 text",
            5 * words
        )),
        "{}",
        told.err
    );
    let told = place
        .ok("passages essays --base question.txt -o left.tsv --lang zh")
        .err;
    assert!(told.contains("出自公共的 1 篇文本"), "{told}");
    let page = read_report(&place, "left.html");
    assert_eq!(page["summary"]["base"]["documents"], 5);
    assert_eq!(page["pairs"]["total"], 1);
}

#[test]
fn text_of_more_than_half_of_all_documents_is_told() {
    let place = Place::new();
    write_class(&place);
    let done = place.summary("passages essays -o p.tsv --report p.html");
    let common = &done["common"];
    assert_eq!(common["documents"], 5, "{common}");
    assert_eq!(common["text"], QUESTION.trim_end_matches('.'));
    assert_eq!(
        common["characters"],
        QUESTION.trim_end_matches('.').chars().count()
    );
    assert_eq!(&read_report(&place, "p.html")["summary"]["common"], common);
    let hint = format!(
        "a passage of {} characters stands in 5 of 5 documents: --base FILE or --max-documents 4",
        QUESTION.len() - 1
    );
    let told = place.ok("passages essays -o p.tsv").err;
    assert!(told.contains(&hint), "{hint}: {told}");
    let told = place.ok("passages essays -o p.tsv --lang zh").err;
    assert!(
        told.contains("5 篇文档中的 5 篇里：--base FILE 或 --max-documents 4"),
        "{told}"
    );
    // Both remedies leave it out.
    for option in ["--base question.txt", "--max-documents 4"] {
        let done = place.summary(&format!("passages essays {option} -o p.tsv"));
        assert_eq!(done["common"], Value::Null, "{option}");
        assert_eq!(done["pairs"], 1, "{option}");
    }
    // The limit counts sources, so it is no remedy against sources.
    let told = place
        .ok("passages essays --against question.txt -o p.tsv")
        .err;
    assert!(
        told.contains("stands in 5 of 5 documents: --base FILE leaves it out"),
        "{told}"
    );
    // Two documents that share a text are a finding, and of three documents, too.
    place.write(
        "two.jsonl",
        jsonl([("a", ANSWER), ("b", ANSWER), ("c", "nothing of it")]),
    );
    assert_eq!(
        place.summary("passages two.jsonl -o p.tsv")["common"],
        Value::Null
    );
    place.write(
        "three.jsonl",
        jsonl([("a", ANSWER), ("b", ANSWER), ("c", ANSWER)]),
    );
    assert_eq!(
        place.summary("passages three.jsonl -o p.tsv")["common"]["documents"],
        3
    );
}

#[test]
fn lengths_count_characters_where_there_are_no_words() {
    let place = Place::new();
    let passage = "清晨六点，老船长已经把缆绳解开了，岸上的人都知道他今天要去东边的小岛送信";
    place.write(
        "zh.jsonl",
        jsonl([
            ("a", &*format!("序。{passage}。")),
            ("b", &*format!("他说：{passage}！")),
        ]),
    );
    let done = place.summary("passages zh.jsonl -o p.tsv");
    assert_eq!(
        (&done["longest"][0]["unit"], &done["most_copied"][0]["unit"]),
        (&json!("characters"), &json!("characters"))
    );
    let shown = place.ok("passages zh.jsonl -o p.tsv --show");
    let characters = passage
        .chars()
        .filter(|character| !"，".contains(*character))
        .count();
    assert!(
        shown
            .text()
            .contains(&format!("{characters} characters, verbatim")),
        "{}",
        shown.text()
    );
    let shown = place.ok("passages zh.jsonl -o p.tsv --show --lang zh");
    assert!(
        shown.text().contains(&format!("{characters} 字，")),
        "{}",
        shown.text()
    );
    place.write("en.jsonl", jsonl([("a", ANSWER), ("b", ANSWER)]));
    let done = place.summary("passages en.jsonl -o p.tsv --report p.html");
    assert_eq!(done["longest"][0]["unit"], "words");
    assert_eq!(
        read_report(&place, "p.html")["pairs"]["unit"],
        json!(["words"])
    );
}

#[test]
fn edits_of_a_passage_are_in_the_report() {
    let place = Place::new();
    let edited = ANSWER.replace("crew sleeps", "whole crew lives");
    place.write(
        "in.jsonl",
        jsonl([("a", ANSWER), ("b", &edited), ("c", ANSWER)]),
    );
    place.ok("passages in.jsonl -o p.tsv --report p.html");
    let page = read_report(&place, "p.html");
    let pairs = &page["pairs"];
    for at in 0..3 {
        let [document, source] =
            ["document", "source"].map(|side| pairs[side][at].as_str().unwrap());
        let runs: Vec<u64> = pairs["edits"][at][0]
            .as_array()
            .unwrap()
            .iter()
            .map(|number| number.as_u64().unwrap())
            .collect();
        if [document, source] == ["c", "a"] {
            assert_eq!(runs, [0; 0], "a verbatim passage has no edits");
            continue;
        }
        // The runs cover both parts, and what only one has is the edit.
        let texts = |id: &str| if id == "b" { &*edited } else { ANSWER };
        let (mut of_source, mut of_document) = (0, 0);
        let mut only = [String::new(), String::new()];
        for run in runs.chunks(3) {
            let (a, b) = (run[1] as usize, run[2] as usize);
            match run[0] {
                2 => only[0] += &texts(source)[of_source..of_source + a],
                3 => only[1] += &texts(document)[of_document..of_document + b],
                _ => {}
            }
            of_source += a;
            of_document += b;
        }
        let length = |start: usize, end: usize| {
            pairs["marks"][at][0][end].as_u64().unwrap()
                - pairs["marks"][at][0][start].as_u64().unwrap()
        };
        assert_eq!(
            (of_document as u64, of_source as u64),
            (length(0, 1), length(2, 3))
        );
        let changed = only.join("|");
        assert!(
            changed.contains("sleeps") && changed.contains("lives"),
            "{changed}"
        );
    }
}

#[test]
fn base_texts_are_read_like_documents_or_refused() {
    let place = Place::new();
    write_class(&place);
    let pairs = |line: &str| place.summary(&format!("passages {line} -o p.tsv"))["pairs"].as_u64();
    // Rows without an id, HTML, and a folder.
    place.write("rows.jsonl", format!("{}\n", json!({ "text": QUESTION })));
    place.write(
        "page.html",
        format!("<p>{}</p>", QUESTION.replace("ferry", "<b>ferry</b>")),
    );
    std::fs::create_dir(place.path("given")).unwrap();
    place.write("given/question.txt", QUESTION);
    for base in [
        "rows.jsonl",
        "page.html",
        "given",
        "question.txt --base page.html",
    ] {
        assert_eq!(pairs(&format!("essays --base {base}")), Some(1), "{base}");
    }
    place.write("short.txt", "why the ferry");
    assert_eq!(pairs("essays --base short.txt"), Some(10));
    let short = place.summary("passages essays --base short.txt --base question.txt -o p.tsv");
    assert_eq!(
        (&short["base"]["short_texts"], &short["base"]["short_names"]),
        (&json!(1), &json!(["short.txt"]))
    );
    let told = place.ok("passages essays --base short.txt -o p.tsv").err;
    let words = "nothing is left out of 1 text, shorter than 5 words (10 characters): short.txt";
    assert!(told.contains(words), "{told}");
    let told = place
        .ok("passages essays --base short.txt -o p.tsv --lang zh")
        .err;
    assert!(
        told.contains("1 篇文本不足 5 个词（10 个字），没有排除任何内容：short.txt"),
        "{told}"
    );
    place.write("empty.txt", " \n");
    place.refused("passages essays --base empty.txt -o p.tsv", &["no words"]);
    place.refused(
        "passages essays --base nowhere.txt -o p.tsv",
        &["nowhere.txt"],
    );
    place.write("bad.jsonl", "{\"text\": 7}\n");
    place.refused(
        "passages essays --base bad.jsonl -o p.tsv",
        &["base text", "bad.jsonl:1"],
    );
    place.refused(
        "passages - --base - -o p.tsv",
        &["standard input", "base text"],
    );
}

/// Base texts count towards the limit of memory: they are refused by name if they do not fit, and the plan has them.
#[test]
fn base_texts_count_towards_the_memory() {
    let place = Place::new();
    write_class(&place);
    let mut numbers = Numbers::new(7);
    let words = unique_words(&mut numbers, 400_000);
    place.write("form.txt", &words);
    let line = "passages essays --threads 1 -o p.tsv";
    let plan = |base: &str| {
        let plan = place.summary(&format!("{line}{base} --memory 1G --explain-plan"));
        let figure = |name: &str| plan[name].as_u64().unwrap();
        (figure("base_bytes"), figure("smallest_limit_bytes"))
    };
    let (without, smallest) = plan("");
    assert_eq!(without, 0);
    let (bytes, larger) = plan(" --base form.txt");
    assert!(bytes > 400_000 * 16, "{bytes}");
    assert_eq!(larger, smallest + bytes);
    place.ok(&format!("{line} --memory {smallest}"));
    let megabytes = format!("base texts of {} MB", bytes.div_ceil(1_000_000));
    place.refused(
        &format!("{line} --base form.txt --memory {smallest}"),
        &[
            &megabytes,
            &format!("give {} MB", larger.div_ceil(1_000_000)),
        ],
    );
    place.ok(&format!("{line} --base form.txt --memory {larger}"));
}

/// A base text of a script without spaces is counted in characters.
#[test]
fn left_out_characters_are_no_words() {
    let place = Place::new();
    let question = "请用自己的话说明渡轮为什么在中午以前开往对岸并写出港务长提到的三个原因";
    for (name, own) in [
        ("甲", "因为邮件来得太晚了大家只好等"),
        ("乙", "老船长说发动机要热一个小时才行"),
    ] {
        place.write(&format!("essays/{name}.txt"), format!("{question}{own}"));
    }
    place.write("question.txt", question);
    let line = "passages essays --base question.txt -o p.tsv";
    let count = 2 * question.chars().count();
    let told = place.ok(line).err;
    assert!(
        told.contains(&format!(
            "{count} characters of 2 documents stand in 1 text"
        )),
        "{told}"
    );
    let told = place.ok(&format!("{line} --lang zh")).err;
    assert!(
        told.contains(&format!("有 {count} 字出自公共的 1 篇文本")),
        "{told}"
    );
}

/// The service leaves out what the command leaves out, and says that nobody is the source.
#[test]
fn service_leaves_out_base_texts() {
    let place = Place::new();
    let service = Service::start(&place, "");
    write_class(&place);
    let names = ["ann", "ben", "cem", "dia", "eva"];
    let documents: Vec<Value> = names
        .iter()
        .map(|name| json!({ "id": format!("essays/{name}.txt"), "text": place.read(&format!("essays/{name}.txt")) }))
        .collect();
    let ask = |body: Value| service.post("/v1/passages/documents", &body);
    for (fields, options) in [
        (json!({}), ""),
        (json!({ "base": [QUESTION] }), "--base question.txt"),
        (json!({ "max_documents": 4 }), "--max-documents 4"),
        (json!({ "max_documents": "60%" }), "--max-documents 60%"),
        (json!({ "max_documents": "none" }), "--max-documents none"),
    ] {
        let mut body = json!({ "documents": documents });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let found = ask(body).json();
        let summary = place.summary(&format!("passages essays {options} -o p.tsv"));
        assert_eq!(found["directed"], false);
        for field in [
            "passages",
            "pairs",
            "sharing",
            "base",
            "common",
            "boilerplate",
        ] {
            assert_eq!(found["summary"][field], summary[field], "{options} {field}");
        }
    }
    // A text that is left out of the next search is told as a whole.
    let given: String = (0..900).map(|at| format!("given{at} ")).collect();
    let class =
        ["a", "b", "c"].map(|id| json!({ "id": id, "text": format!("{id}0. {given}{id}1.") }));
    let common = ask(json!({ "documents": class })).json()["summary"]["common"].clone();
    assert_eq!(common["text"], given.trim_end());
    assert_eq!(common["characters"], given.trim_end().len());
    let left = ask(json!({ "documents": class, "base": [common["text"]] })).json();
    assert_eq!(left["summary"]["pairs"], 0);
    let found = ask(json!({ "documents": documents[..1], "against": documents[1..] })).json();
    assert_eq!(found["directed"], true);
    let refused = ask(json!({ "documents": documents, "max_documents": "0" }));
    assert_eq!(refused.problem(), (422, "bad_settings".to_owned()));
    let refused = ask(json!({ "documents": documents, "base": ["", " \n"] }));
    assert_eq!(refused.problem(), (422, "bad_settings".to_owned()));
    let refused = ask(json!({ "documents": documents, "base": "text" }));
    assert_eq!(refused.problem(), (400, "bad_json".to_owned()));
    // Pairs of texts.
    let pair = json!({ "a": documents[0]["text"], "b": documents[1]["text"] });
    let shared = |base: Value| {
        let found = service
            .post("/v1/passages", &json!({ "pairs": [pair], "base": base }))
            .json();
        assert_eq!(found["directed"], false);
        found["results"][0]["passages"].clone()
    };
    let (whole, left) = (shared(json!([])), shared(json!([QUESTION])));
    assert_eq!(
        (&whole[0]["a"]["start"], whole.as_array().unwrap().len()),
        (&json!(0), 1)
    );
    assert_eq!(left[0]["a"]["start"], QUESTION.len() + 2);
    assert_eq!(left[0]["length"], ANSWER.split_whitespace().count());
    // Kept documents of a collection.
    service.make("c", json!({ "threshold": 0.99 }));
    for document in &documents {
        assert_eq!(
            service.post("/v1/collections/c/documents", document).status,
            200
        );
    }
    let sources = |base: Value| {
        let body = json!({ "text": place.read("essays/ann.txt"), "base": base, "limit": 9 });
        let found = service.post("/v1/collections/c/passages", &body).json();
        found["sources"].as_array().unwrap().len()
    };
    assert_eq!(sources(json!([])), 5);
    assert_eq!(sources(json!([QUESTION])), 2);
}
