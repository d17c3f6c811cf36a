//! Items of benchmarks in a corpus: `lookalike decontaminate`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::reporting::read_report;
use crate::support::{Numbers, Place, jsonl, read_parquet, row, rows, write_parquet};

/// The columns of the table of findings.
const FINDINGS_HEADER: &str =
    "id\tbenchmark\titem\tfound\tscore\tstart\tend\titem_start\titem_end\tsource\trow";

const TIDE: &str = "A lighthouse keeper on a rocky island lights the lamp forty minutes before sunset and puts it out at \
                    dawn. Which instrument in her kitchen tells her the height of the tide?";
const TIDE_CHOICES: [&str; 4] = [
    "a brass tide gauge",
    "a folding sextant",
    "a mercury barometer",
    "an hourglass of oak",
];
const ROPE: &str = "A ropemaker needs $\\frac{3}{4}$ of a bale of hemp for every $12$ metres of mooring rope and has $n = 26$ \
                    bales in the loft. How many whole ropes of $90$ metres can she deliver to the harbour office?";
const ROPE_ANSWER: &str = "Seven and a half dozen metres make one rope, and every dozen takes three quarters of a bale, so a \
                           rope takes 5.625 bales. The loft is enough for four of them and leaves three and a half bales behind \
                           the winch. #### 4";
const SONG: &str = "Who wrote the harbour song?";
const SONG_ANSWER: &str = "Ottilie Brandvold";
const RARE: &str = "Where does Quillfeather's zanthomere bloom?";
const BOAT: &str = "青溪镇的老船长每天清晨六点解开缆绳，驶向东边的小岛送信；如果遇到顺风，他在几点以前能够回到码头？";
const BOAT_TRADITIONAL: &str = "青溪鎮的老船長每天清晨六點解開纜繩，駛向東邊的小島送信；如果遇到順風，他在幾點以前能夠回到碼頭？";
const BOAT_CHOICES: [&str; 4] = ["上午九点一刻", "上午十点半", "中午十二点", "下午两点"];

/// Returns a place with benchmarks in `evals`: three files in the form of MMLU, GSM8K and C-Eval, and one of short questions.
fn place_with_benchmarks() -> Place {
    let place = Place::new();
    let mmlu = json!({"id": "tide", "question": TIDE, "choices": TIDE_CHOICES, "answer": 0});
    place.write("evals/mmlu.jsonl", format!("{mmlu}\n"));
    let gsm8k = json!({"id": "rope", "question": ROPE, "answer": ROPE_ANSWER});
    place.write("evals/gsm8k.jsonl", format!("{gsm8k}\n"));
    let [a, b, c, d] = BOAT_CHOICES;
    place.write(
        "evals/ceval.csv",
        format!("id,question,A,B,C,D,answer\nboat,{BOAT},{a},{b},{c},{d},B\n"),
    );
    let short = [
        json!({"id": "song", "question": SONG, "answer": SONG_ANSWER}),
        json!({"id": "rare", "question": RARE, "answer": "on the quay"}),
    ];
    place.write(
        "evals/short.jsonl",
        short.map(|item| format!("{item}\n")).concat(),
    );
    place
}

/// Returns documents of a town by the sea, whose words are those of the short question, with ids from `plain0` on.
fn town_documents(numbers: &mut Numbers, documents: usize) -> Vec<(String, String)> {
    const WORDS: [&str; 24] = [
        "wrote", "harbour", "song", "the", "boat", "wind", "who", "letter", "quay", "morning",
        "of", "and", "captain", "rope", "sail", "in", "winter", "old", "street", "is", "sea",
        "lamp", "house", "tide",
    ];
    let text = |numbers: &mut Numbers| {
        let words: Vec<&str> = (0..200)
            .map(|_| WORDS[numbers.below(WORDS.len())])
            .collect();
        words.join(" ")
    };
    (0..documents)
        .map(|number| (format!("plain{number}"), text(numbers)))
        .collect()
}

fn write_documents(place: &Place, name: &str, documents: &[(String, String)]) {
    place.write(
        name,
        jsonl(documents.iter().map(|(id, text)| (&**id, &**text))),
    );
}

/// Returns a text between two others, as items stand in pages.
fn page_with(text: &str) -> String {
    format!(
        "Notes of an evening class, written down by a pupil.\n\n{text}\n\nNobody knew more than that on the day."
    )
}

/// Runs the command with the benchmarks, and returns the findings by document, item and what was found.
fn findings_of(place: &Place, options: &str) -> BTreeSet<(String, String, String)> {
    place.ok(&format!(
        "decontaminate in.jsonl --benchmarks evals --findings found.tsv {options}"
    ));
    let table = place.table("found.tsv").into_iter();
    table
        .map(|row| (row[0].clone(), row[2].clone(), row[3].clone()))
        .collect()
}

/// Returns every fourth word on a line of its own.
fn over_lines(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let lines: Vec<String> = words.chunks(4).map(|line| line.join(" ")).collect();
    lines.join("\n")
}

fn in_table(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let cells: Vec<String> = words
        .chunks(6)
        .map(|cell| format!("| {} |", cell.join(" ")))
        .collect();
    cells.join("\n")
}

/// Returns the text with each `step`-th word between `opening` and `closing`.
fn marked(text: &str, step: usize, opening: &str, closing: &str) -> String {
    let words = text.split(' ').enumerate().map(|(at, word)| {
        if at % step == step - 1 {
            format!("{opening}{word}{closing}")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn without_punctuation(text: &str) -> String {
    text.chars()
        .filter(|point| point.is_alphanumeric() || *point == ' ')
        .collect()
}

#[test]
fn items_are_found_in_every_form() {
    let place = place_with_benchmarks();
    let replaced = TIDE
        .replace("rocky", "barren")
        .replace("sunset", "nightfall")
        .replace("kitchen", "pantry");
    let [first, second, third, fourth] = TIDE_CHOICES;
    let boat_spaced: String = BOAT.chars().map(|point| format!("{point} ")).collect();
    let [nine, ten, noon, two] = BOAT_CHOICES;
    let forms: Vec<(&str, String, &str, &str)> = vec![
        ("verbatim", TIDE.to_owned(), "tide", "question"),
        ("capitals", TIDE.to_uppercase(), "tide", "question"),
        ("bare", without_punctuation(TIDE), "tide", "question"),
        (
            "dashes",
            TIDE.replace(' ', " – ").replace('.', "!"),
            "tide",
            "question",
        ),
        ("lines", over_lines(TIDE), "tide", "question"),
        ("table", in_table(TIDE), "tide", "question"),
        (
            "html",
            marked(TIDE, 3, "<b class=\"x\">", "</b>&nbsp;"),
            "tide",
            "question",
        ),
        (
            "latex",
            marked(TIDE, 4, "\\textbf{", "}"),
            "tide",
            "question",
        ),
        (
            "markdown",
            marked(TIDE, 4, "**[", "](https://town.example/a_b?c=d)**"),
            "tide",
            "question",
        ),
        ("replaced", replaced, "tide", "question"),
        (
            "choices",
            format!("{TIDE}\nA. {first}\nB. {second}\nC. {third}\nD. {fourth}"),
            "tide",
            "both",
        ),
        (
            "shuffled",
            format!("{TIDE} (1) {fourth} (2) {second} (3) {first} (4) {third}"),
            "tide",
            "both",
        ),
        ("formulae", ROPE.to_owned(), "rope", "question"),
        (
            "plain-formulae",
            ROPE.replace("\\frac{3}{4}", "3/4").replace('$', ""),
            "rope",
            "question",
        ),
        (
            "other-formulae",
            ROPE.replace("\\frac", "\\dfrac").replace('$', "\\("),
            "rope",
            "question",
        ),
        (
            "worked",
            format!("Q: {ROPE}\nA: {ROPE_ANSWER}"),
            "rope",
            "both",
        ),
        ("中文", BOAT.to_owned(), "boat", "question"),
        ("繁體", BOAT_TRADITIONAL.to_owned(), "boat", "question"),
        (
            "全角",
            BOAT.replace('，', " , ").replace('？', "?!"),
            "boat",
            "question",
        ),
        ("空格", boat_spaced, "boat", "question"),
        (
            "换行",
            BOAT.replace('；', "\n\n").replace('，', "\n"),
            "boat",
            "question",
        ),
        (
            "网页",
            BOAT.replace("老船长", "<a href='/c'>老船长</a>")
                .replace("小岛", "<i>小岛</i>"),
            "boat",
            "question",
        ),
        (
            "换词",
            BOAT.replace("送信", "送货").replace("以前", "之前"),
            "boat",
            "question",
        ),
        (
            "选项",
            format!("{BOAT}D {two} C {noon} B {ten} A {nine}"),
            "boat",
            "both",
        ),
        ("答案", format!("{BOAT}\n\n答案：{ten}。"), "boat", "both"),
    ];
    let mut documents = town_documents(&mut Numbers::new(3), 40);
    for (id, text, ..) in &forms {
        documents.push(((*id).to_owned(), page_with(text)));
        documents.push((format!("{id} alone"), text.clone()));
    }
    write_documents(&place, "in.jsonl", &documents);
    let found = findings_of(&place, "");
    let mut missing = String::new();
    let mut expected = BTreeSet::new();
    for (id, text, item, parts) in forms {
        for id in [id.to_owned(), format!("{id} alone")] {
            let finding = (id.clone(), item.to_owned(), parts.to_owned());
            if !found.contains(&finding) {
                let _ = writeln!(missing, "{id}: {item} ({parts}) in {text}");
            }
            expected.insert(finding);
        }
    }
    assert_eq!(missing, "", "{found:?}");
    assert_eq!(found, expected);
}

#[test]
fn short_questions_are_found_with_their_answer_or_rare_words() {
    let place = place_with_benchmarks();
    let mut documents = town_documents(&mut Numbers::new(5), 600);
    for (id, text) in [
        ("alone", SONG.to_owned()),
        ("answered", format!("{SONG} It was {SONG_ANSWER}.")),
        ("answered before", format!("{SONG_ANSWER}. {SONG}")),
        (
            "far",
            format!(
                "{SONG} {} {SONG_ANSWER}",
                "the boat of the quay and the sea ".repeat(40)
            ),
        ),
        ("other answer", format!("{SONG} It was Casimir Underhill.")),
        ("rare", RARE.to_owned()),
    ] {
        documents.push((id.to_owned(), page_with(&text)));
    }
    write_documents(&place, "in.jsonl", &documents);
    let finding =
        |id: &str, item: &str, found: &str| (id.to_owned(), item.to_owned(), found.to_owned());
    let expected = [
        finding("answered", "song", "both"),
        finding("answered before", "song", "both"),
        finding("rare", "rare", "question"),
    ];
    assert_eq!(findings_of(&place, ""), BTreeSet::from(expected));
}

#[test]
fn similar_texts_are_no_findings() {
    let place = place_with_benchmarks();
    let texts = [
        // The same topic.
        "The keeper of the lighthouse is seventy. Her kitchen on the island smells of fish and of the oil for the lamp, \
         which burns from sunset until dawn. Of all her instruments the gauge of the tide is the one that she trusts.",
        "A tide gauge of brass stands beside a folding sextant and a mercury barometer in the museum of the harbour.",
        // Another question of the series.
        "A lighthouse keeper on a rocky island lights the lamp forty minutes before sunset and puts it out at dawn. How \
         much oil does the lamp burn between the first and the last night of a leap year?",
        "青溪镇的老船长每天清晨六点解开缆绳，驶向东边的小岛送信；今年冬天他打算把船修好，然后到南方去看望女儿一家人。",
        "青溪镇的邮差每天清晨骑车进山送信，路上要翻过三座小山；如果下雪，他要到天黑以后才能回到家里。",
        // A formula with other numbers.
        "A bricklayer needs $\\frac{2}{3}$ of a barrow of sand for every $17$ bricks and has $n = 31$ barrows in the yard. \
         How many whole walls of $80$ bricks can he build?",
        "Let $a_1 = 3$, $a_2 = 4$ and $a_{n} = 12 a_{n - 1} + 26$. Find $a_{90}$ modulo $4$.",
    ];
    let mut documents = town_documents(&mut Numbers::new(7), 200);
    documents.extend(
        texts
            .iter()
            .enumerate()
            .map(|(at, text)| (format!("near{at}"), page_with(text))),
    );
    write_documents(&place, "in.jsonl", &documents);
    assert_eq!(findings_of(&place, ""), BTreeSet::new());
}

#[test]
fn items_of_a_series_do_not_stand_for_one_another() {
    let place = Place::new();
    let stem = "Which of the following statements about the river that is described in the passage above is true";
    let question = |at: usize| format!("{stem}: statement {at} or statement {}?", at * 7 + 3);
    let items: String = (0..60)
        .map(|at| {
            format!(
                "{}\n",
                json!({"id": at.to_string(), "question": question(at), "answer": "neither"})
            )
        })
        .collect();
    place.write("evals/series.jsonl", items);
    place.write("in.jsonl", row("one", &page_with(&format!("{stem}?"))));
    assert_eq!(findings_of(&place, ""), BTreeSet::new());
    // Numbers in formulae set them apart.
    let sum = |at: usize| {
        format!(
            "Compute the value of ${} \\times {} + {}$ and reduce it modulo ${}$.",
            at + 11,
            at * 3 + 17,
            at + 5,
            at + 2
        )
    };
    let items: String = (0..60)
        .map(|at| {
            format!(
                "{}\n",
                json!({"id": at.to_string(), "question": sum(at), "answer": (at + 1).to_string()})
            )
        })
        .collect();
    place.write("evals/series.jsonl", items);
    let other = sum(1000);
    place.write("in.jsonl", row("other", &page_with(&other)));
    assert_eq!(findings_of(&place, ""), BTreeSet::new());
}

#[test]
fn boilerplate_is_named_and_found_only_with_more() {
    let place = place_with_benchmarks();
    let with_choices = format!("{TIDE} {}", TIDE_CHOICES.join(", "));
    let write = |quotations: usize| {
        let mut documents = town_documents(&mut Numbers::new(9), 20);
        for number in 0..quotations {
            let text = page_with(&format!("{TIDE} Page {number}."));
            documents.push((format!("quoted{number}"), text));
        }
        documents.push(("answered".to_owned(), page_with(&with_choices)));
        documents.push(("other".to_owned(), page_with(BOAT)));
        write_documents(&place, "in.jsonl", &documents);
    };
    write(30);
    let line = "decontaminate in.jsonl --benchmarks evals --findings found.tsv -o out.jsonl --report report.html";
    let summary = place.summary(line);
    let report = read_report(&place, "report.html");
    assert_eq!(report["boilerplate_count"], 1);
    assert_eq!(report["boilerplate"], summary["boilerplate_questions"]);
    let found = place.table("found.tsv").into_iter();
    assert_eq!(
        found.map(|row| row[0].clone()).collect::<Vec<_>>(),
        ["answered", "other"]
    );
    assert_eq!(summary["boilerplate"], 30);
    assert_eq!(
        summary["boilerplate_questions"],
        json!([{"benchmark": "mmlu", "item": "tide", "question": TIDE, "documents": 30}])
    );
    assert_eq!(place.ids("out.jsonl").len(), 50);
    let said = place.ok(line).err;
    for words in [
        "boilerplate, found only with an answer or choices: 'A lighthouse keeper",
        "(mmlu tide), in 30 documents",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = place.ok(&format!("{line} --lang zh")).err;
    assert!(
        said.contains("套话") && said.contains("出现在 30 篇文档中"),
        "{said}"
    );
    // Twenty documents are not too many, and one more is.
    for (quotations, findings) in [(20, 22), (21, 2)] {
        write(quotations);
        assert_eq!(findings_of(&place, "").len(), findings, "{quotations}");
    }
}

#[test]
fn findings_have_places_in_both_texts() {
    let place = place_with_benchmarks();
    let bad = "{\"id\": \"broken\", \"text\": 5}\n";
    let texts = [
        ("tide", page_with(&TIDE.to_uppercase())),
        ("half", page_with(&format!("🏝️ {BOAT_TRADITIONAL}"))),
        ("two", format!("{ROPE}\n{BOAT}\n{}", BOAT_CHOICES[1])),
        (
            "plain",
            "Nothing of the kind stands here, and nobody asks for it.".to_owned(),
        ),
        ("answer", page_with(ROPE_ANSWER)),
    ];
    let [tide, half, two, plain, answer] = texts.each_ref().map(|(id, text)| row(id, text));
    place.write("in/a.jsonl", format!("{bad}{tide}{half}"));
    place.write("in/b.jsonl", format!("{two}{plain}{answer}"));
    let ran =
        place.run("decontaminate in --benchmarks evals --findings found.tsv --items items.tsv");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let table = place.read("found.tsv");
    assert_eq!(table.lines().next(), Some(FINDINGS_HEADER));
    let item_text = |item: &str, found: &str| match (item, found) {
        ("tide", _) => TIDE,
        ("boat", _) => BOAT,
        (_, "answer") => ROPE_ANSWER,
        _ => ROPE,
    };
    let part = |text: &str, start: &str, end: &str| -> String {
        let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
        text.chars().skip(start).take(end - start).collect()
    };
    let words = |text: &str| {
        let text = text.to_lowercase().replace("\\frac", "");
        text.chars()
            .filter(|point| point.is_alphanumeric())
            .collect::<String>()
    };
    let mut order = Vec::new();
    for row in rows(&table) {
        let [
            id,
            benchmark,
            item,
            found,
            score,
            start,
            end,
            item_start,
            item_end,
            source,
            number,
        ] = &row[..]
        else {
            panic!("{row:?}");
        };
        let text = &texts.iter().find(|(name, _)| name == id).unwrap().1;
        let in_document = part(text, start, end);
        let in_item = part(item_text(item, found), item_start, item_end);
        if id == "half" {
            assert_eq!(in_document, BOAT_TRADITIONAL.trim_end_matches('？'));
        } else {
            assert_eq!(words(&in_document), words(&in_item), "{row:?}");
        }
        assert_eq!(
            in_item,
            item_text(item, found).trim_end_matches(['?', '？']),
            "{row:?}"
        );
        let score: f64 = score.parse().unwrap();
        assert!((0.0..=1.0).contains(&score));
        let at = (
            benchmark.clone(),
            item.clone(),
            found.clone(),
            source.clone(),
            number.clone(),
        );
        order.push((id.clone(), at, score));
    }
    let at = |benchmark: &str, item: &str, found: &str, source: &str, number: &str| {
        [benchmark, item, found, source, number]
            .map(str::to_owned)
            .into()
    };
    let expected = [
        ("tide", at("mmlu", "tide", "question", "in/a.jsonl", "2")),
        ("half", at("ceval", "boat", "question", "in/a.jsonl", "3")),
        ("two", at("gsm8k", "rope", "question", "in/b.jsonl", "1")),
        ("two", at("ceval", "boat", "both", "in/b.jsonl", "1")),
        ("answer", at("gsm8k", "rope", "answer", "in/b.jsonl", "3")),
    ];
    let found: BTreeSet<_> = order
        .iter()
        .map(|(id, at, _)| (&**id, at.clone()))
        .collect();
    assert_eq!(found, BTreeSet::from(expected));
    // The findings of a document are ordered by score.
    let of_two: Vec<f64> = order
        .iter()
        .filter(|(id, ..)| id == "two")
        .map(|(.., score)| *score)
        .collect();
    assert!(of_two.is_sorted_by(|a, b| a >= b), "{of_two:?}");

    let items = place.read("items.tsv");
    assert_eq!(
        items.lines().next(),
        Some("benchmark\titem\tfound\tscore\tdocuments")
    );
    let items: Vec<_> = rows(&items)
        .into_iter()
        .map(|row| {
            [&row[0], &row[1], &row[2], &row[4]]
                .map(String::as_str)
                .join(" ")
        })
        .collect();
    assert_eq!(
        items,
        [
            "ceval boat both 2",
            "gsm8k rope answer 2",
            "mmlu tide question 1"
        ]
    );
}

/// Returns the marked parts of a text of a report.
fn marked_parts(text: &Value) -> Vec<String> {
    let units: Vec<u16> = text["text"].as_str().unwrap().encode_utf16().collect();
    let marks = text["marks"].as_array().unwrap().iter();
    let parts = marks.map(|mark| {
        let [start, end] = [0, 1].map(|at| mark[at].as_u64().unwrap() as usize);
        String::from_utf16(&units[start..end]).unwrap()
    });
    parts.collect()
}

/// Returns the data of a report without the time of the run.
fn timeless_report(place: &Place, name: &str) -> Value {
    let mut report = read_report(place, name);
    report["created"] = Value::Null;
    report["summary"]["seconds"] = Value::Null;
    report
}

/// Writes a corpus of two files: one with four contaminated documents behind a bad row, and one with a fifth and 600 others.
fn write_contaminated_corpus(place: &Place) {
    let first = [
        row("tide", &page_with(&TIDE.replace("kitchen", "pantry"))),
        row(
            "boat",
            &page_with(&format!("🏝️ {BOAT_TRADITIONAL} {}", BOAT_CHOICES[1])),
        ),
        row("rare", &page_with(RARE)),
        row(
            "rare again",
            &format!("{RARE} {}", "of the quay and the sea ".repeat(90)),
        ),
    ];
    let bad = "{\"id\": \"broken\", \"text\": 5}\n";
    place.write("in/a.jsonl", format!("{bad}{}", first.concat()));
    let song = page_with(&format!("{SONG} It was {SONG_ANSWER}."));
    let mut second = vec![
        ("song".to_owned(), song),
        ("answer".to_owned(), page_with(ROPE_ANSWER)),
    ];
    second.extend(town_documents(&mut Numbers::new(5), 600));
    write_documents(place, "in/b.jsonl", &second);
}

#[test]
fn report_counts_all_findings() {
    let place = place_with_benchmarks();
    write_contaminated_corpus(&place);
    let line =
        "decontaminate in --benchmarks evals -o out/ --findings found.tsv --report report.html";
    let summary = place.summary(line);
    let report = read_report(&place, "report.html");
    assert_eq!(
        (&report["format"], &report["version"], &report["kind"]),
        (
            &json!("lookalike-report"),
            &json!(1),
            &json!("contamination")
        )
    );
    for (field, value) in summary.as_object().unwrap() {
        match &**field {
            "seconds" => {}
            "benchmarks" | "boilerplate_questions" => {
                assert_eq!(report["summary"][field], Value::Null);
            }
            _ => assert_eq!(report["summary"][field], *value, "{field}"),
        }
    }
    assert_eq!(summary["rejected"], 1);
    assert_eq!(
        report["written"],
        json!([["kept rows", "out/"], ["findings", "found.tsv"]])
    );
    let benchmarks = report["benchmarks"].as_array().unwrap().iter();
    let benchmarks: Vec<Value> = benchmarks
        .map(|benchmark| {
            let fields = [
                "name",
                "items",
                "found",
                "found_both",
                "documents",
                "findings",
                "found_items",
            ];
            Value::from(fields.map(|field| benchmark[field].clone()).to_vec())
        })
        .collect();
    assert_eq!(
        Value::from(benchmarks),
        json!([
            ["ceval", 1, 1, 1, 1, 1, ["boat"]],
            ["gsm8k", 1, 1, 0, 1, 1, ["rope"]],
            ["mmlu", 1, 1, 0, 1, 1, ["tide"]],
            ["short", 2, 2, 1, 3, 3, ["song", "rare"]],
        ])
    );
    assert_eq!(report["benchmark_count"], 4);
    let mut expected = vec![0; 101];
    for row in place.table("found.tsv") {
        let score: f64 = row[4].parse().unwrap();
        expected[(score * 100.0 + 1e-9) as usize] += 1;
    }
    assert_eq!(report["scores"], json!(expected));
}

#[test]
fn report_shows_findings_beside_their_items() {
    let place = place_with_benchmarks();
    write_contaminated_corpus(&place);
    place.run("decontaminate in --benchmarks evals --findings found.tsv --report report.html");
    let report = read_report(&place, "report.html");
    let findings = report["findings"].as_array().unwrap();
    let heads: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let fields = ["item", "found", "id", "source", "row", "documents"];
            Value::from(fields.map(|field| finding[field].clone()).to_vec())
        })
        .collect();
    // The first finding of each item comes before the second one of another, and an answer before a question alone.
    assert_eq!(
        Value::from(heads),
        json!([
            ["boat", "both", "boat", "in/a.jsonl", 3, 1],
            ["rope", "answer", "answer", "in/b.jsonl", 2, 1],
            ["tide", "question", "tide", "in/a.jsonl", 2, 1],
            ["song", "both", "song", "in/b.jsonl", 1, 1],
            ["rare", "question", "rare", "in/a.jsonl", 4, 2],
            ["rare", "question", "rare again", "in/a.jsonl", 5, 2],
        ])
    );
    let table = place.table("found.tsv");
    for finding in findings {
        let row = table.iter().find(|row| finding["id"] == *row[0]).unwrap();
        assert_eq!(finding["score"].as_f64(), row[4].parse().ok(), "{row:?}");
    }
    let [boat, rope, tide, _, _, again] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(
        marked_parts(&boat["question"]),
        [BOAT.trim_end_matches('？')]
    );
    let choices = boat["choices"].as_array().unwrap();
    let choices: Vec<_> = choices.iter().map(marked_parts).collect();
    let right = vec![BOAT_CHOICES[1].to_owned()];
    assert_eq!(choices, [vec![], right.clone(), vec![], vec![]]);
    assert_eq!(marked_parts(&boat["answer"]), right);
    // Question and answer stand one behind the other.
    let whole = format!("{BOAT_TRADITIONAL} {}", BOAT_CHOICES[1]);
    assert_eq!(marked_parts(&boat["excerpt"]), [whole]);
    assert_eq!(boat["continues"], json!([false, false]));
    assert_eq!(marked_parts(&rope["question"]), Vec::<String>::new());
    assert_eq!(marked_parts(&rope["excerpt"]), [ROPE_ANSWER]);
    let (before, behind) = TIDE.split_once(" kitchen ").unwrap();
    let both_sides = [before, behind.trim_end_matches('?')];
    assert_eq!(marked_parts(&tide["question"]), both_sides);
    assert_eq!(marked_parts(&tide["excerpt"]), both_sides);
    // Of a long document some context is shown.
    let text = again["excerpt"]["text"].as_str().unwrap();
    assert_eq!(again["continues"], json!([false, true]));
    assert!(
        text.starts_with(RARE) && text.len() < RARE.len() + 400,
        "{text}"
    );
}

#[test]
fn report_depends_neither_on_threads_nor_on_an_interruption() {
    let place = place_with_benchmarks();
    write_contaminated_corpus(&place);
    let line = "decontaminate in --benchmarks evals";
    place.run(&format!("{line} --threads 1 --report one.html"));
    place.run(&format!("{line} --threads 4 --report four.html"));
    place.run(&format!("{line} --work run --items items.tsv"));
    let resumed = place.run(&format!("{line} --work run --resume --report resumed.html"));
    assert_eq!(resumed.code, Some(1), "{}", resumed.err);
    let expected = timeless_report(&place, "one.html");
    assert_eq!(expected["findings"].as_array().unwrap().len(), 6);
    for name in ["four.html", "resumed.html"] {
        assert_eq!(timeless_report(&place, name), expected, "{name}");
    }
}

#[test]
fn memory_is_planned_and_limited() {
    let place = place_with_benchmarks();
    write_documents(
        &place,
        "in.jsonl",
        &town_documents(&mut Numbers::new(13), 300),
    );
    let line = "decontaminate in.jsonl --benchmarks evals --threads 2";
    let plan = place.summary(&format!("{line} --memory 1G --explain-plan"));
    assert_eq!(
        (&plan["items"], &plan["limit_bytes"]),
        (&json!(5), &json!(1_000_000_000))
    );
    let documents = plan["documents"].as_u64().unwrap();
    assert!((250..=350).contains(&documents), "{documents}");
    let bytes = |field: &str| plan[field].as_u64().unwrap();
    let parts = ["item_bytes", "weight_bytes", "row_bytes", "thread_bytes"];
    for part in parts {
        assert!(bytes(part) > 0, "{part}: {plan}");
    }
    let resident: u64 = parts.map(bytes).iter().sum();
    assert!(bytes("in_memory_bytes") > resident, "{plan}");
    let smallest = bytes("smallest_limit_bytes");
    assert!(smallest > resident, "{plan}");
    let said = place
        .ok(&format!("{line} --memory 1G --explain-plan"))
        .text()
        .to_owned();
    let least = format!("--memory {}M", smallest.div_ceil(1_000_000));
    for words in [
        "5 items in about ",
        "Memory, with a limit of 1.0 GB",
        &least,
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = place.ok(&format!("{line} --memory 1G --explain-plan --lang zh"));
    assert!(said.text().contains("5 道题，语料约 "), "{}", said.text());
    place.ok(&format!("{line} --memory {smallest} --findings found.tsv"));
    let least = format!("give {} MB or more", smallest.div_ceil(1_000_000));
    for option in ["--findings new.tsv", "--explain-plan"] {
        place.refused(
            &format!("{line} --memory {} {option}", smallest - 1),
            &["too little for 5 items of benchmarks", &least],
        );
    }
    assert!(!place.has("new.tsv"));
}

/// A corpus without a row replaces no output with content, unless that is allowed.
#[test]
fn an_empty_corpus_replaces_nothing() {
    let place = place_with_benchmarks();
    place.write("in.jsonl", row("a", TIDE) + &row("b", "Nothing else."));
    let outputs = "-o out.jsonl --findings found.tsv --items items.tsv --report report.html";
    place.ok(&format!(
        "decontaminate in.jsonl --benchmarks evals {outputs}"
    ));
    let names = ["out.jsonl", "found.tsv", "items.tsv", "report.html"];
    let before = names.map(|name| place.read(name));
    place.write("empty.jsonl", "");
    for (option, name) in [
        ("-o", "out.jsonl"),
        ("--findings", "found.tsv"),
        ("--items", "items.tsv"),
        ("--report", "report.html"),
    ] {
        place.refused(
            &format!("decontaminate empty.jsonl --benchmarks evals {option} {name}"),
            &[
                "empty.jsonl has no row",
                &format!("{name} would be replaced"),
                "--allow-empty",
            ],
        );
    }
    assert_eq!(names.map(|name| place.read(name)), before);
    place.ok("decontaminate empty.jsonl --benchmarks evals -o new.jsonl");
    assert_eq!(place.read("new.jsonl"), "");
    place.ok(&format!(
        "decontaminate empty.jsonl --benchmarks evals --allow-empty {outputs}"
    ));
    assert_eq!(place.read("out.jsonl"), "");
    assert_eq!(place.read("found.tsv"), format!("{FINDINGS_HEADER}\n"));
    let report = read_report(&place, "report.html");
    assert_eq!(report["findings"], json!([]));
}

/// Returns the cells of a column of CSV, which may be quoted.
fn column_of_csv(text: &str, column: &str) -> Vec<String> {
    let mut rows = vec![vec![String::new()]];
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().unwrap();
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => {
                row.last_mut().unwrap().push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(String::new()),
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            _ => row.last_mut().unwrap().push(character),
        }
    }
    let at = rows[0].iter().position(|name| name == column).unwrap();
    let rows = rows[1..].iter().filter(|row| row.len() > 1);
    rows.map(|row| row[at].clone()).collect()
}

#[test]
fn cuts_leave_the_exact_rest() {
    let place = place_with_benchmarks();
    let answer = BOAT_CHOICES[1];
    // The id, the text, and what is left of it with `--cut passage` and `--cut sentence`.
    let documents = [
        (
            "within",
            format!("The class met at ten. Then she asked: {RARE} Nobody answered. It was late."),
            "The class met at ten. Then she asked: Nobody answered. It was late.",
            "The class met at ten. Nobody answered. It was late.",
        ),
        ("whole", RARE.to_owned(), "", ""),
        (
            "chinese",
            format!("上课了。老师问：{BOAT}有人说是{answer}。大家都笑了。"),
            "上课了。老师问：大家都笑了。",
            "上课了。大家都笑了。",
        ),
        (
            "quoted",
            format!("She asked: \"{RARE}\" Nobody answered. It was late."),
            "She asked: Nobody answered. It was late.",
            "Nobody answered. It was late.",
        ),
        (
            "page",
            format!("<p>{RARE}</p>\n<p>Nobody answered.</p>"),
            "<p></p>\n<p>Nobody answered.</p>",
            "<p>Nobody answered.</p>",
        ),
        (
            "twice",
            format!(
                "{BOAT_TRADITIONAL}\n\nIt was late.\n{}\n\nNobody answered.",
                TIDE.to_uppercase()
            ),
            "\nIt was late.\n\nNobody answered.",
            "\nIt was late.\n\nNobody answered.",
        ),
        (
            "plain",
            "Nothing stands here.".to_owned(),
            "Nothing stands here.",
            "Nothing stands here.",
        ),
    ];
    let notes = ["a,\"b\"", "c", "d", "e", "f", "g", "h"];
    let columns = [
        (
            "id",
            documents.iter().map(|(id, ..)| *id).collect::<Vec<_>>(),
        ),
        (
            "text",
            documents.iter().map(|(_, text, ..)| &**text).collect(),
        ),
        ("note", notes.to_vec()),
    ];
    write_parquet(&place.path("in.parquet"), &columns);
    let mut csv = "id,text,note\n".to_owned();
    let mut lines = String::new();
    for ((id, text, ..), note) in documents.iter().zip(notes) {
        let quoted = |cell: &str| cell.replace('"', "\"\"");
        let _ = writeln!(csv, "{id},\"{}\",\"{}\"", quoted(text), quoted(note));
        let _ = writeln!(lines, "{}", json!({"id": id, "note": note, "text": text}));
    }
    place.write("in.csv", csv);
    place.write("in.jsonl", lines);
    for cut in ["document", "passage", "sentence"] {
        let rests = documents
            .iter()
            .map(|(id, _, passage, sentence)| match cut {
                "document" if *id != "plain" => (*id, ""),
                "sentence" => (*id, *sentence),
                _ => (*id, *passage),
            });
        let expected: Vec<(&str, &str)> = rests.filter(|(_, rest)| !rest.is_empty()).collect();
        let removed = documents.len() - expected.len();
        for format in ["jsonl", "csv", "parquet"] {
            let out = format!("{cut}.{format}");
            let line = format!("decontaminate in.{format} --benchmarks evals --cut {cut} -o {out}");
            let summary = place.summary(&line);
            let counts = [&summary["kept"], &summary["removed"], &summary["cut"]];
            let cuts = documents.len() - 1 - removed;
            assert_eq!(
                counts,
                [&json!(expected.len()), &json!(removed), &json!(cuts)],
                "{out}"
            );
            let read = |column: &str| match format {
                "parquet" => read_parquet(&place.path(&out), column),
                "csv" => column_of_csv(&place.read(&out), column),
                _ => {
                    let rows = place.read(&out);
                    let rows = rows
                        .lines()
                        .map(|row| serde_json::from_str::<Value>(row).unwrap());
                    rows.map(|row| row[column].as_str().unwrap().to_owned())
                        .collect()
                }
            };
            let (ids, texts, notes) = (read("id"), read("text"), read("note"));
            let found: Vec<_> = ids
                .iter()
                .zip(&texts)
                .map(|(id, text)| (&**id, &**text))
                .collect();
            assert_eq!(found, expected, "{out}");
            assert_eq!(notes.last().map(String::as_str), Some("h"));
        }
    }
    // A row of which nothing is cut stays byte for byte.
    let input = place.read("in.jsonl");
    let last = input.lines().last().unwrap();
    assert_eq!(place.read("document.jsonl"), format!("{last}\n"));
    assert_eq!(place.read("sentence.jsonl").lines().last(), Some(last));
    place.refused(
        "decontaminate in.jsonl --benchmarks evals --cut passage --text note,text -o out.jsonl",
        &["`note`, `text`", "--cut document"],
    );
}

#[test]
fn result_depends_neither_on_threads_nor_on_order() {
    let mut numbers = Numbers::new(11);
    let place = place_with_benchmarks();
    let mut documents = town_documents(&mut numbers, 300);
    for number in 0..60 {
        let text = [TIDE, ROPE, BOAT, RARE, SONG, ROPE_ANSWER][number % 6];
        let text = match number % 5 {
            0 => text.to_uppercase(),
            1 => format!("{text} {SONG_ANSWER}"),
            2 => format!("{text} {}", TIDE_CHOICES.join(" ")),
            _ => text.to_owned(),
        };
        documents.insert(
            numbers.below(documents.len()),
            (format!("item{number}"), page_with(&text)),
        );
    }
    write_documents(&place, "in.jsonl", &documents);
    let line = "decontaminate in.jsonl --benchmarks evals --cut sentence";
    for threads in ["1", "4"] {
        place.ok(&format!(
            "{line} --threads {threads} -o out{threads}.jsonl --findings found{threads}.tsv --items items{threads}.tsv"
        ));
    }
    for name in ["out", "found", "items"] {
        let extension = if name == "out" { "jsonl" } else { "tsv" };
        let of = |threads: u8| place.read(&format!("{name}{threads}.{extension}"));
        assert_eq!(of(1), of(4), "{name}");
    }
    let findings = |name: &str| {
        let without_row = |row: Vec<String>| row[..10].join(" ");
        place
            .table(name)
            .into_iter()
            .map(without_row)
            .collect::<BTreeSet<_>>()
    };
    let expected = findings("found1.tsv");
    assert!(expected.len() > 30, "{expected:?}");
    for _ in 0..3 {
        for at in (1..documents.len()).rev() {
            documents.swap(at, numbers.below(at + 1));
        }
        write_documents(&place, "in.jsonl", &documents);
        place.ok(&format!("{line} --findings shuffled.tsv"));
        assert_eq!(findings("shuffled.tsv"), expected);
    }
}

#[test]
fn fields_of_a_benchmark_are_named() {
    let place = Place::new();
    place.write(
        "quiz.csv",
        format!(
            "n,ask,x,y,key\nq1,{},a barometer of tin,an hourglass,y\n",
            RARE.replace(',', "")
        ),
    );
    place.write(
        "in.jsonl",
        row("a", &page_with(&format!("{RARE} An hourglass."))),
    );
    place.refused(
        "decontaminate in.jsonl --benchmarks quiz.csv --findings found.tsv",
        &[
            "quiz.csv:2: its fields are those of no known benchmark: `",
            "--fields question=ask",
        ],
    );
    let line = "decontaminate in.jsonl --findings found.tsv --benchmarks quiz.csv";
    let summary = place.summary(&format!(
        "{line} --fields question=ask,choices=x+y,answer=key,id=n"
    ));
    assert_eq!(summary["benchmarks"][0]["presets"], json!(["fields"]));
    let found = place.table("found.tsv");
    assert_eq!(found[0][..3], ["a", "quiz", "q1"]);
    for (fields, words) in [
        (
            "question=nothing",
            "the field `nothing`, which --fields names for the question, is missing among",
        ),
        (
            "question=ask,answer=nothing",
            "no row has the field `nothing`, which --fields names for `answer`",
        ),
        ("answer=key", "has no question: add question=FIELD"),
    ] {
        let ran = place.run(&format!("{line} --fields {fields}"));
        assert_eq!(ran.code, Some(2), "{fields}");
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{fields}: {said}");
    }
}

#[test]
fn rows_without_documents_and_items_are_reported() {
    let place = place_with_benchmarks();
    place.write(
        "in.jsonl",
        format!(
            "{}not json\n{{\"id\":\"b\"}}\n{}",
            row("a", TIDE),
            row("c", "Nothing else.")
        ),
    );
    place.write(
        "evals/gsm8k.jsonl",
        format!(
            "{}\n{}\n",
            json!({"question": ROPE, "answer": ROPE_ANSWER}),
            json!({"question": " ", "answer": "4"})
        ),
    );
    let line = "decontaminate in.jsonl --benchmarks evals -o out.jsonl --rejected bad.jsonl";
    let ran = place.run(line);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["c"]);
    assert_eq!(place.read("bad.jsonl"), "not json\n{\"id\":\"b\"}\n");
    for words in [
        "in.jsonl:2",
        "in.jsonl:3",
        "1 row is no item (evals/gsm8k.jsonl:2: the question is empty)",
    ] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    let summary = place.summary(line);
    assert_eq!(
        (&summary["documents"], &summary["rejected"]),
        (&json!(2), &json!(2))
    );
    let strict = place.run(&format!("{line} --strict"));
    assert_eq!(strict.code, Some(2), "{}", strict.err);
}

#[test]
fn files_without_items_are_named() {
    let place = place_with_benchmarks();
    place.write("in.jsonl", row("a", TIDE));
    place.write("evals/README.md", "# About these benchmarks\n");
    let said = place
        .ok("decontaminate in.jsonl --benchmarks evals --findings found.tsv")
        .err;
    assert!(
        said.contains("1 file") && said.contains("skipped") && said.contains("README.md"),
        "{said}"
    );
    place.refused(
        "decontaminate in.jsonl --benchmarks evals/README.md --findings found.tsv",
        &["evals/README.md"],
    );
}

#[test]
fn contradictory_arguments_are_refused() {
    let place = place_with_benchmarks();
    place.write("in.jsonl", row("a", TIDE));
    let corpus = place.read("in.jsonl");
    place.refused(
        "decontaminate in.jsonl --benchmarks evals",
        &[
            "there is nothing to write: give -o",
            "--findings or --items",
            "--report",
            "--json",
        ],
    );
    place.write("evals/without.jsonl", "{\"colour\": \"red\"}\n");
    place.refused(
        "decontaminate in.jsonl --benchmarks evals --findings found.tsv",
        &[
            "evals/without.jsonl:1",
            "no known benchmark: `colour`",
            "--fields question=colour",
        ],
    );
    std::fs::remove_file(place.path("evals/without.jsonl")).unwrap();
    for output in ["-o", "--findings", "--items", "--report", "--rejected"] {
        let others = if output == "-o" { "" } else { "-o out.jsonl" };
        if output != "-o" {
            place.refused(
                &format!("decontaminate in.jsonl --benchmarks evals {output} in.jsonl {others}"),
                &["in.jsonl"],
            );
            assert_eq!(place.read("in.jsonl"), corpus);
        }
        // A benchmark is an input, too.
        for benchmarks in ["evals", "evals/mmlu.jsonl"] {
            let before = place.read("evals/mmlu.jsonl");
            place.refused(
                &format!("decontaminate in.jsonl --benchmarks {benchmarks} {others} {output} evals/mmlu.jsonl"),
                &["evals/mmlu.jsonl"],
            );
            assert_eq!(place.read("evals/mmlu.jsonl"), before);
        }
    }
    place.refused(
        "decontaminate in.jsonl --benchmarks evals -o in.jsonl",
        &["in.jsonl"],
    );
    // A directory mirrors the corpus, and may hold a benchmark of that name.
    let benchmark = place.read("evals/mmlu.jsonl");
    place.write("corpus/mmlu.jsonl", &corpus);
    for line in [
        "decontaminate corpus --benchmarks evals -o evals/",
        "decontaminate corpus --benchmarks evals/mmlu.jsonl -o evals",
        "dedup corpus --against evals --text question -o evals/",
    ] {
        place.refused(line, &["evals/mmlu.jsonl", "it would be overwritten"]);
        assert_eq!(place.read("evals/mmlu.jsonl"), benchmark, "{line}");
    }
    place.refused(
        "decontaminate in.jsonl --benchmarks evals -o out.jsonl --findings out.jsonl",
        &["the corpus and the findings cannot both be written to out.jsonl"],
    );
    place.refused(
        "decontaminate in.jsonl --benchmarks none --findings found.tsv",
        &["none"],
    );
    assert!(!place.has("out.jsonl") && !place.has("found.tsv"));
}

#[test]
fn summary_speaks_both_languages() {
    let place = place_with_benchmarks();
    write_documents(
        &place,
        "in.jsonl",
        &[
            ("a".to_owned(), page_with(TIDE)),
            ("b".to_owned(), BOAT.to_owned()),
            ("c".to_owned(), "Nothing.".to_owned()),
        ],
    );
    place.write(
        "evals/tiny.jsonl",
        "{\"question\": \"Why so?\", \"answer\": \"x\"}\n",
    );
    let line = "decontaminate in.jsonl --benchmarks evals --cut passage -o out.jsonl";
    let said = place.ok(line).err;
    for words in [
        "3 documents (",
        "2 documents, 2 findings",
        "parts of 1 document; 1 document has nothing left",
        "2 of 6 found in the corpus",
        "  mmlu: 1 of 1 item, in 1 document\n",
        "  gsm8k: 0 of 1 item, in 0 documents\n",
        "1 item cannot be found, because the question has fewer than three words",
        "out.jsonl",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = place.ok(&format!("{line} --lang zh")).err;
    for words in [
        "3 篇文档（",
        "2 篇文档，2 处",
        "1 篇文档的一部分；1 篇文档什么也没有留下",
        "6 道题中有 2 道出现在语料中",
        "  mmlu：1 道题中的 1 道，出现在 1 篇文档中",
        "1 道题无法查找，因为题目不足三个词（四个汉字）",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let quiet = place.ok(&format!("{line} --quiet"));
    assert_eq!((quiet.err.as_str(), quiet.text()), ("", ""));
}

#[test]
fn summary_as_json_has_all_counts() {
    let place = place_with_benchmarks();
    let documents = [
        ("a".to_owned(), page_with(TIDE)),
        ("b".to_owned(), format!("{BOAT} {}", BOAT_CHOICES[1])),
        ("c".to_owned(), "Nothing at all.".to_owned()),
    ];
    write_documents(&place, "in.jsonl", &documents);
    let summary = place.summary("decontaminate in.jsonl --benchmarks evals");
    let fields: Vec<&str> = summary
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "documents",
        "kept",
        "removed",
        "cut",
        "findings",
        "items",
        "items_found",
        "short_items",
        "boilerplate",
        "boilerplate_questions",
        "benchmarks",
        "rejected",
        "bytes",
        "index_bytes",
        "seconds",
    ];
    expected.sort_unstable();
    let mut fields = fields;
    fields.sort_unstable();
    assert_eq!(fields, expected);
    for (field, value) in [
        ("documents", 3),
        ("kept", 1),
        ("removed", 2),
        ("cut", 0),
        ("findings", 2),
        ("items", 5),
        ("items_found", 2),
    ] {
        assert_eq!(summary[field], value, "{field}");
    }
    let ceval = summary["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|benchmark| benchmark["name"] == "ceval")
        .unwrap();
    let expected: Value = json!({
        "name": "ceval", "presets": ["c-eval"], "items": 1, "rejected": 0, "rejected_rows": [], "found": 1, "found_both": 1,
        "documents": 1
    });
    assert_eq!(*ceval, expected);
}
