//! Copied passages: `lookalike passages`.

use serde_json::json;

use crate::reporting::read_report;
use crate::service::Service;
use crate::support::{Numbers, Place, jsonl};

const SOURCE: &str = "The ferry leaves at seven. Nobody on the island misses it, because the next one leaves at noon, \
                      and the captain waits for no one. In winter it does not leave at all.";

/// Returns words that occur nowhere else.
fn filler(numbers: &mut Numbers, words: usize) -> String {
    let word = |_| format!("x{}", numbers.below(1 << 40));
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn article_is_compared_with_a_folder() {
    let place = Place::new();
    std::fs::create_dir(place.path("sources")).unwrap();
    place.write("sources/ferry.txt", SOURCE);
    place.write(
        "sources/other.txt",
        "Something else, about nothing that anybody has ever written before.",
    );
    let copy = "nobody on the Island misses it because the next one leaves at noon, and our captain waits for no one";
    place.write(
        "essay.txt",
        format!("As is well known:\n{copy}. That is all."),
    );
    place.ok("passages essay.txt --against sources -o passages.jsonl");
    let row: serde_json::Value = serde_json::from_str(place.read("passages.jsonl").trim()).unwrap();
    let start = "As is well known:\n".len();
    assert_eq!(row["source"], "sources/ferry.txt", "{row}");
    assert_eq!(row["kind"], "edited");
    assert_eq!(
        (row["start"].as_u64(), row["end"].as_u64()),
        (Some(start as u64), Some((start + copy.len()) as u64))
    );
    assert_eq!(row["length"], 20);
    assert_eq!(row["similarity"], 0.95);
    let source = SOURCE.find("Nobody").unwrap()..SOURCE.find("no one").unwrap() + 6;
    assert_eq!(row["source_start"], source.start);
    assert_eq!(row["source_end"], source.end);
    let shown = place.ok("passages essay.txt --against sources --show");
    assert!(
        shown
            .text()
            .contains("1. essay.txt, line 2, from sources/ferry.txt, line 1: 20 words, edited"),
        "{}",
        shown.text()
    );
    assert!(shown.text().contains("[-the-]{+our+}"), "{}", shown.text());
}

#[test]
fn positions_count_characters_or_bytes() {
    let place = Place::new();
    let passage = "清晨六點，老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島";
    let copy = "清晨六点老船长已经把缆绳解开了。岸上的人都知道他今天要去东边的小岛";
    let (a, b) = (format!("序🏝️。{passage}。"), format!("他说：{copy}！"));
    place.write("in.jsonl", jsonl([("a", &*a), ("b", &*b)]));
    let at = |options: &str| {
        place.ok(&format!("passages in.jsonl {options} -o out.tsv"));
        place.table("out.tsv").remove(0)
    };
    let row = at("");
    assert_eq!(&row[..2], ["b", "a"]);
    let part = |text: &str, from: &str, to: &str| -> String {
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        text.chars().skip(from).take(to - from).collect()
    };
    assert_eq!(part(&b, &row[2], &row[3]), copy);
    assert_eq!(part(&a, &row[4], &row[5]), passage);
    assert_eq!(&row[7..], ["1", "verbatim"]);
    let row = at("--offsets bytes");
    assert_eq!(&b[row[2].parse().unwrap()..row[3].parse().unwrap()], copy);
    assert_eq!(
        &a[row[4].parse().unwrap()..row[5].parse().unwrap()],
        passage
    );
}

#[test]
fn source_is_the_earlier_document() {
    let place = Place::new();
    let rows = |times: [&str; 2]| {
        let row = |id: &str, time: &str| {
            serde_json::json!({"id": id, "text": SOURCE, "time": time, "site": id}).to_string()
        };
        format!("{}\n{}\n", row("first", times[0]), row("second", times[1]))
    };
    let found = |options: &str| {
        place.ok(&format!("passages in.jsonl {options} -o out.tsv"));
        let rows = place.table("out.tsv");
        rows.iter()
            .map(|row| format!("{} from {}", row[0], row[1]))
            .collect::<Vec<_>>()
    };
    place.write("in.jsonl", rows(["2026-03-02", "2026-03-01"]));
    assert_eq!(found(""), ["second from first"]);
    assert_eq!(found("--time time"), ["first from second"]);
    assert_eq!(found("--time time --window 1d"), ["first from second"]);
    assert_eq!(found("--time time --window 23h"), [""; 0]);
    assert_eq!(found("--within site"), [""; 0]);
    place.refused("passages in.jsonl --window 1d -o out.tsv", &["--time"]);
    place.refused("passages in.jsonl --time when -o out.tsv", &["when"]);
}

#[test]
fn planted_passages_are_found_at_every_thread_count() {
    let mut numbers = Numbers::new(7);
    let place = Place::new();
    let mut documents = Vec::new();
    let mut planted = Vec::new();
    for number in 0..60 {
        let words = filler(&mut numbers, 300);
        let words: Vec<&str> = words.split(' ').collect();
        let mut text = filler(&mut numbers, 80);
        if number >= 30 {
            let from = &documents[number - 30];
            let (_, source): &(String, String) = from;
            let source: Vec<&str> = source.split(' ').collect();
            let length = 12 + numbers.below(100);
            let start = numbers.below(200);
            text += " ";
            let begin = text.len();
            text += &source[start..start + length].join(" ");
            planted.push((
                format!("d{number}"),
                format!("d{}", number - 30),
                begin,
                text.len(),
                length,
            ));
        }
        text = format!("{text} {}", words.join(" "));
        documents.push((format!("d{number}"), text));
    }
    let rows = documents.iter().map(|(id, text)| (&**id, &**text));
    place.write("in.jsonl", jsonl(rows));
    place.ok("passages in.jsonl --threads 1 -o one.tsv");
    place.ok("passages in.jsonl --threads 3 -o three.tsv");
    assert_eq!(place.read("one.tsv"), place.read("three.tsv"));
    let found = place.table("one.tsv");
    assert_eq!(found.len(), planted.len());
    for (row, (document, source, start, end, length)) in found.iter().zip(planted) {
        let expected = [document, source, start.to_string(), end.to_string()];
        assert_eq!(row[..4], expected);
        assert_eq!(
            row[6..],
            [length.to_string(), "1".into(), "verbatim".into()]
        );
    }
    // One word less than the shortest passage is not enough.
    place.ok("passages in.jsonl --min-length 112 -o long.tsv");
    assert!(place.table("long.tsv").is_empty());
}

#[test]
fn boilerplate_is_counted_and_hides_no_copy() {
    let mut numbers = Numbers::new(9);
    let place = Place::new();
    let notice = "Permission is granted to anyone who has this text to read it aloud on the quay before noon.";
    let rare = filler(&mut numbers, 40);
    let mut text = |number: usize| match number {
        3 | 20 => format!("{notice} {rare} {}", filler(&mut numbers, 20)),
        _ => format!("{notice} {}", filler(&mut numbers, 60)),
    };
    let documents: Vec<_> = (0..30)
        .map(|number| (number.to_string(), text(number)))
        .collect();
    place.write(
        "in.jsonl",
        jsonl(documents.iter().map(|(id, text)| (&**id, &**text))),
    );
    let done = place.summary("passages in.jsonl -o out.tsv");
    assert_eq!(
        (
            done["pairs"].as_u64(),
            done["boilerplate"]["documents"].as_u64()
        ),
        (Some(1), Some(30))
    );
    let rows = place.table("out.tsv");
    assert_eq!(&rows[0][..2], ["20", "3"]);
    let said = place.ok("passages in.jsonl -o out.tsv").err;
    assert!(
        said.contains("boilerplate") && said.contains("--max-documents none"),
        "{said}"
    );
    let all = place.summary("passages in.jsonl -o out.tsv --max-documents none");
    assert_eq!(all["pairs"].as_u64(), Some(30 * 29 / 2));
    for (limit, pairs) in [
        ("29", 1),
        ("30", 30 * 29 / 2),
        ("96%", 1),
        ("100%", 30 * 29 / 2),
    ] {
        let done = place.summary(&format!(
            "passages in.jsonl -o out.tsv --max-documents {limit}"
        ));
        assert_eq!(done["pairs"].as_u64(), Some(pairs), "{limit}");
    }
}

#[test]
fn table_is_ranked_on_request() {
    let mut numbers = Numbers::new(11);
    let place = Place::new();
    let parts: Vec<String> = [14, 40, 20, 22]
        .map(|words| filler(&mut numbers, words))
        .into();
    let mut gap = || filler(&mut numbers, 60);
    let documents = [
        ("a", format!("{} {} {}", parts[0], gap(), parts[1])),
        ("b", format!("{} {} {}", parts[2], gap(), parts[3])),
        ("c", format!("{} {} {}", parts[0], gap(), gap())),
        ("d", format!("{} {} {}", gap(), parts[1], gap())),
        ("e", format!("{} {} {}", parts[2], gap(), parts[3])),
    ];
    place.write(
        "in.jsonl",
        jsonl(documents.iter().map(|(id, text)| (*id, &**text))),
    );
    let lengths = |order: &str| {
        place.ok(&format!("passages in.jsonl --order {order} -o out.tsv"));
        let rows = place.table("out.tsv");
        rows.iter()
            .map(|row| row[6].parse().unwrap())
            .collect::<Vec<usize>>()
    };
    assert_eq!(lengths("position"), [14, 40, 20, 22]);
    assert_eq!(lengths("longest"), [40, 22, 20, 14]);
    assert_eq!(lengths("copied"), [20, 22, 40, 14]);
}

#[test]
fn hostile_texts_are_searched() {
    let place = Place::new();
    let same =
        "the same sentence again and again, until nobody reads it any more at all. ".repeat(10_000);
    place.write(
        "in.jsonl",
        jsonl([
            ("a", &*same),
            ("b", &same[9..]),
            ("empty", ""),
            ("signs", "… !!! 🏝️"),
            ("one", &"字".repeat(300_000)),
        ]),
    );
    let done = place.summary("passages in.jsonl -o out.tsv");
    assert_eq!(
        (done["documents"].as_u64(), done["passages"].as_u64()),
        (Some(5), Some(1))
    );
    let rows = place.table("out.tsv");
    assert_eq!(
        rows[0][2..4],
        ["0".to_owned(), (same.len() - 9 - 2).to_string()]
    );
    place.refused("passages in.jsonl --min-length 1", &["--min-length", "2"]);
    place.refused("passages in.jsonl --max-documents 0", &["none"]);
    place.refused("passages in.jsonl --show -o -", &["--show"]);
    place.refused(
        "passages in.jsonl --show --rejected -",
        &["only one output"],
    );
    place.refused("passages in.jsonl --json", &["-o FILE"]);
}

#[test]
fn found_passages_are_scored() {
    let place = Place::new();
    let head = "document\tsource\tstart\tend\tsource_start\tsource_end\n";
    place.write(
        "true.tsv",
        format!("{head}a\ts\t100\t200\t0\t100\nb\ts\t0\t50\t300\t350\n"),
    );
    let found = "a\ts\t100\t150\t0\t50\na\ts\t160\t220\t60\t120\nb\ts\t0\t25\t300\t325\nc\ts\t0\t10\t0\t10\n";
    place.write("found.tsv", format!("{head}{found}"));
    let said = place.ok("eval found.tsv --passages true.tsv");
    let expected = "4 passages found, 2 true, of which 2 are detected\n\
                    precision    0.667  (0.821 over all characters)\n\
                    recall       0.700  (0.767 over all characters)\n\
                    granularity  1.500\n\
                    plagdet      0.517\n";
    assert_eq!(said.text(), expected);
    // The tables of `passages` can be scored, in every format.
    place.write("in.jsonl", jsonl([("a", SOURCE), ("b", &SOURCE[27..])]));
    for extension in ["tsv", "csv", "jsonl", "parquet"] {
        place.ok(&format!("passages in.jsonl -o out.{extension}"));
        let done = place.summary(&format!("eval out.{extension} --passages out.{extension}"));
        assert_eq!(
            (done["plagdet"].as_f64(), done["found"].as_u64()),
            (Some(1.0), Some(1))
        );
    }
    place.write("empty.tsv", head);
    let done = place.summary("eval empty.tsv --passages true.tsv");
    assert_eq!(
        (done["recall"].as_f64(), done["plagdet"].as_f64()),
        (Some(0.0), Some(0.0))
    );
    place.refused(
        "eval found.tsv --passages empty.tsv",
        &["empty.tsv", "no rows"],
    );
    place.write("bad.tsv", format!("{head}a\ts\t9\t9\t0\t1\n"));
    place.refused("eval bad.tsv --passages true.tsv", &["bad.tsv:2", "9 to 9"]);
    place.write("bad.tsv", format!("{head}a\ts\tx\t9\t0\t1\n"));
    place.refused(
        "eval bad.tsv --passages true.tsv",
        &["bad.tsv:2", "`start`"],
    );
    place.refused(
        "eval found.tsv found.tsv --passages true.tsv",
        &["--passages"],
    );
}

#[test]
fn comparison_shows_passages_of_different_texts() {
    let mut numbers = Numbers::new(13);
    let place = Place::new();
    let copy = "nobody on the Island misses it because the next one leaves at noon, and our captain waits for no one";
    let a = format!("{SOURCE} {}", filler(&mut numbers, 90));
    let b = format!(
        "{}\n<b>{copy}</b>. {}",
        filler(&mut numbers, 30),
        filler(&mut numbers, 60)
    );
    place.write("a.txt", &a);
    place.write("b.txt", &b);
    let shown = place.ok("compare a.txt b.txt --html page.html");
    let expected = "1. line 2 of B, line 1 of A: 20 words, edited, similarity 0.95";
    assert!(
        shown.text().contains(expected) && !shown.text().contains("Texts: ["),
        "{}",
        shown.text()
    );
    let page = read_report(&place, "page.html");
    let passage = &page["comparison"]["shared"]["passages"][0];
    assert_eq!(
        (&passage["kind"], &passage["similarity"]),
        (&json!("edited"), &json!(0.95))
    );
    for (side, start) in [("a", "Nobody on"), ("b", "nobody on")] {
        let text = page["comparison"][side]["text"].as_str().unwrap();
        let at = passage[side]["start"].as_u64().unwrap() as usize;
        let shown: String = text.chars().skip(at).take(start.len()).collect();
        assert_eq!(shown, start);
    }
    let told = place.summary("compare a.txt b.txt");
    let spot = &told["shared"]["passages"][0]["b"];
    let start = b.find("nobody").unwrap();
    assert_eq!(
        (spot["start"].as_u64(), spot["line"].as_u64()),
        (Some(start as u64), Some(2))
    );
    // Texts that differ by edits alone are shown with their differences.
    place.write("c.txt", a.replace("captain", "pilot"));
    assert!(
        place
            .ok("compare a.txt c.txt")
            .text()
            .contains("[-captain-]{+pilot+}")
    );
}

#[test]
fn service_finds_passages_of_pairs() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let (a, b) = (SOURCE, &SOURCE[27..]);
    let ask = |body: &serde_json::Value| service.post("/v1/passages", body);
    let pairs = json!([{ "a": a, "b": b }, { "a": a, "b": "" }]);
    let found = ask(&json!({ "pairs": pairs })).json();
    let told = |at: usize| &found["results"][at];
    place.write("a.txt", a);
    place.write("b.txt", b);
    assert_eq!(told(0), &place.summary("compare a.txt b.txt")["shared"]);
    assert_eq!(told(0)["share_of_b"], 1.0);
    assert_eq!(told(1)["passages"], json!([]));
    let few = ask(&json!({ "pairs": pairs, "min_length": 100 })).json();
    assert_eq!(few["results"][0]["passages"], json!([]));
    let many = json!(vec![json!({ "a": "", "b": "" }); 101]);
    for (body, problem) in [
        (
            json!({ "pairs": pairs, "min_length": 1 }),
            (422, "bad_settings"),
        ),
        (
            json!({ "pairs": pairs, "threshold": 0.5 }),
            (400, "bad_json"),
        ),
        (json!({ "pairs": [{ "a": "x" }] }), (400, "bad_json")),
        (json!({ "pairs": many }), (413, "too_large")),
    ] {
        let refused = ask(&body);
        assert_eq!((refused.status, &*refused.problem().1), problem, "{body}");
    }
}

/// Returns a source with two sentences far apart, and a text in which they alternate: each time one is a passage.
fn alternating_texts(bytes: usize) -> (String, String) {
    let (first, second) = ("a b c d e f g h i j k l m", "n o p q r s t u v w x y z");
    let source = format!("{first} {} {second}", filler(&mut Numbers::new(3), 100));
    (source, format!("{first} {second} ").repeat(bytes / 52))
}

/// A search beyond the work or the memory of a request is refused, or answered with what was found.
#[test]
fn service_bounds_the_search_for_passages() {
    let place = Place::new();
    let service = Service::start(
        &place,
        "--max-queue 16Mi --max-document 4Mi --max-passage-steps 300000",
    );
    let idle = service.peak_memory();
    let small = json!({ "a": SOURCE, "b": &SOURCE[27..] });
    // Too much memory, and too much work.
    let (source, text) = alternating_texts(3 << 20);
    let many = json!({ "a": source, "b": text });
    let dense = json!({ "a": "船到".repeat(20_000), "b": "到船".repeat(20_000) });
    for (pair, said) in [(&many, "bytes of memory"), (&dense, "300000 steps")] {
        let ask = |partial: bool| {
            let pairs = json!([small, pair, small]);
            let body = json!({ "pairs": pairs, "partial": partial });
            service.post("/v1/passages", &body)
        };
        let refused = ask(false);
        let told = refused.text();
        assert_eq!(refused.problem(), (422, "too_costly".to_owned()), "{told}");
        assert!(
            told.contains(said) || told.contains("single characters"),
            "{told}"
        );
        let partial = ask(true).json();
        assert_eq!(partial["complete"], false);
        assert_eq!(partial["results"].as_array().unwrap().len(), 1);
        assert_eq!(partial["results"][0]["share_of_b"], 1.0);
    }
    let documents = |texts: &[&str], partial: bool| {
        let rows: Vec<_> = (texts.iter().enumerate())
            .map(|(at, text)| json!({ "id": at.to_string(), "text": text }))
            .collect();
        let body = json!({ "documents": rows, "partial": partial });
        service.post("/v1/passages/documents", &body)
    };
    let (source, text) = alternating_texts(80 << 10);
    let texts = [SOURCE, &SOURCE[27..], &source, &text];
    let refused = documents(&texts, false);
    assert_eq!(
        refused.problem(),
        (422, "too_costly".to_owned()),
        "{}",
        refused.text()
    );
    let partial = documents(&texts, true).json();
    assert_eq!(partial["complete"], false);
    assert_eq!(partial["passages"][0]["source"], "0");
    let whole = documents(&texts[..2], false).json();
    assert_eq!(whole["complete"], true);
    assert_eq!(whole["passages"][0], partial["passages"][0]);

    service.make("a", json!({}));
    for (id, text) in [("ferry", SOURCE), ("both", &source)] {
        service.post(
            "/v1/collections/a/documents",
            &json!({ "id": id, "text": text }),
        );
    }
    let sources = |text: &str, partial: bool| {
        let body = json!({ "text": text, "limit": 1000, "partial": partial });
        service.post("/v1/collections/a/passages", &body)
    };
    let found = sources(SOURCE, false).json();
    assert_eq!(
        (&found["complete"], &found["sources"][0]["id"]),
        (&json!(true), &json!("ferry"))
    );
    let refused = sources(&text, false);
    assert_eq!(
        refused.problem(),
        (422, "too_costly".to_owned()),
        "{}",
        refused.text()
    );
    assert_eq!(sources(&text, true).json()["complete"], false);

    let markers = "*a_ ".repeat(900_000);
    let headers = [("Content-Type", "application/octet-stream")];
    let read = |text: &str| {
        let path = "/v1/extract?name=a.md";
        service
            .connect()
            .request("POST", path, &headers, text.as_bytes())
    };
    assert_eq!(read(&markers).problem(), (413, "too_large".to_owned()));
    assert_eq!(read("*a_ b").json()["text"], "*a_ b\n");
    let taken = service.peak_memory() - idle;
    assert!(taken <= (16 + 128) << 20, "{taken} bytes");
}

/// The service finds in documents what the command finds in files of them: the same rows, totals and report.
#[test]
fn service_finds_passages_of_documents() {
    let mut numbers = Numbers::new(23);
    let place = Place::new();
    let service = Service::start(&place, "");
    let taken = filler(&mut numbers, 40);
    let mut texts: Vec<String> = (0..30)
        .map(|at| match at % 3 {
            0 => format!("{} {taken}", filler(&mut numbers, 60)),
            1 => format!("{taken} 😀 {}", filler(&mut numbers, 60)),
            _ => filler(&mut numbers, 80),
        })
        .collect();
    texts.push(SOURCE.to_owned());
    texts.push(SOURCE[27..].to_owned());
    let rows: Vec<_> = (texts.iter().enumerate())
        .map(|(at, text)| json!({ "id": format!("d{at}"), "text": text }))
        .collect();
    let lines = |rows: &[serde_json::Value]| -> String {
        rows.iter().map(|row| format!("{row}\n")).collect()
    };
    place.write("all.jsonl", lines(&rows));
    place.write("new.jsonl", lines(&rows[20..]));
    place.write("old.jsonl", lines(&rows[..20]));
    let ask = |body: &serde_json::Value| service.post("/v1/passages/documents", body);
    for (body, line) in [
        (json!({ "documents": rows }), "all.jsonl"),
        (
            json!({ "documents": rows, "reworded": true }),
            "all.jsonl --reworded",
        ),
        (
            json!({ "documents": rows[20..], "against": rows[..20], "min_length": 5 }),
            "new.jsonl --against old.jsonl --min-length 5",
        ),
    ] {
        let found = ask(&body).json();
        place.ok(&format!("passages {line} -o found.jsonl"));
        let told: Vec<serde_json::Value> = (place.read("found.jsonl").lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(told.len() > 5, "{line}");
        // A table writes 1 where JSON of a number has 1.0.
        let plain = |rows: &[serde_json::Value]| -> Vec<String> {
            let plain = rows.iter().map(|row| {
                let mut row = row.clone();
                row["similarity"] = json!(row["similarity"].as_f64());
                row.to_string()
            });
            plain.collect()
        };
        let served = found["passages"].as_array().unwrap();
        assert_eq!(plain(served), plain(&told), "{line}");
        let summary = place.summary(&format!("passages {line} -o found.tsv"));
        for field in [
            "documents",
            "against",
            "passages",
            "pairs",
            "copying",
            "copied_tokens",
            "reworded_tokens",
            "tokens",
        ] {
            assert_eq!(found["summary"][field], summary[field], "{line} {field}");
        }
        assert_eq!(found["report"], serde_json::Value::Null);
        let mut wanted = body.clone();
        wanted["report"] = true.into();
        wanted["language"] = "zh".into();
        let page = ask(&wanted).json()["report"].as_str().unwrap().to_owned();
        place.write("served.html", page);
        place.ok(&format!("passages {line} --report run.html --lang zh"));
        let [served, run] = ["served.html", "run.html"].map(|page| read_report(&place, page));
        assert_eq!(served["language"], "zh");
        assert_eq!(
            (&served["pairs"], &served["texts"]),
            (&run["pairs"], &run["texts"]),
            "{line}"
        );
    }
    let none = json!({ "id": "x", "text": "" });
    for (body, problem) in [
        (
            json!({ "documents": vec![&none; 1001] }),
            (413, "too_large"),
        ),
        (
            json!({ "documents": vec![&none; 600], "against": vec![&none; 401] }),
            (413, "too_large"),
        ),
        (
            json!({ "documents": rows, "min_length": 1 }),
            (422, "bad_settings"),
        ),
        (
            json!({ "documents": rows, "language": "zh" }),
            (422, "bad_settings"),
        ),
        (
            json!({ "documents": rows, "report": true, "language": "fr" }),
            (422, "bad_settings"),
        ),
        (json!({ "documents": [{ "id": "x" }] }), (400, "bad_json")),
        (
            json!({ "documents": rows, "window": "2d" }),
            (400, "bad_json"),
        ),
        (json!({}), (400, "bad_json")),
    ] {
        let refused = ask(&body);
        assert_eq!((refused.status, &*refused.problem().1), problem);
    }
    let most = ask(&json!({ "documents": vec![&none; 1000] }));
    assert_eq!(most.json()["passages"], json!([]));
}

/// Returns a text with every third word replaced, and each four in reverse order.
fn reword(numbers: &mut Numbers, text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for word in words.iter_mut().step_by(3) {
        *word = filler(numbers, 1);
    }
    words.chunks_mut(4).for_each(<[String]>::reverse);
    words.join(" ")
}

#[test]
fn reworded_passages_are_found_on_request() {
    let mut numbers = Numbers::new(17);
    let place = Place::new();
    let mut rows: Vec<(String, String)> = (0..200)
        .map(|it| (format!("d{it}"), filler(&mut numbers, 300)))
        .collect();
    let part = |text: &str, from: usize, count: usize| -> String {
        let words = text.split(' ').skip(from).take(count);
        words.collect::<Vec<_>>().join(" ")
    };
    let taken = part(&rows[70].1, 100, 80);
    let copy = reword(&mut numbers, &taken);
    let (head, tail) = (filler(&mut numbers, 100), filler(&mut numbers, 60));
    rows.push(("washed".to_owned(), format!("{head} {copy} {tail}")));
    let named = rows.iter().map(|row| (&*row.0, &*row.1));
    place.write("in.jsonl", jsonl(named));
    let table = |options: &str| {
        place.ok(&format!("passages in.jsonl {options} -o out.tsv"));
        place.table("out.tsv")
    };
    assert_eq!(table(""), Vec::<Vec<String>>::new());
    let found = table("--reworded --threads 1");
    assert_eq!(found.len(), 1, "{found:?}");
    let row = &found[0];
    assert_eq!([&row[0], &row[1], &row[8]], ["washed", "d70", "reworded"]);
    let number = |at: usize| -> usize { row[at].parse().unwrap() };
    let is_near = |a: usize, b: usize| a.abs_diff(b) < 100;
    assert!(is_near(number(2), head.len()) && is_near(number(3), head.len() + copy.len()));
    let start = rows[70].1.find(&taken).unwrap();
    assert!(is_near(number(4), start) && is_near(number(5), start + taken.len()));
    assert_eq!(table("--reworded --threads 4"), found);
    let shown = place.ok("passages in.jsonl --reworded --show");
    assert!(shown.text().contains("\n   first:  ") && shown.text().contains("\n   second: "));
    let chinese = place.ok("passages in.jsonl --reworded --show --lang zh");
    for part in ["洗稿，相似度", "\n   前一篇：", "\n   后一篇："] {
        assert!(chinese.text().contains(part), "{part}: {}", chinese.text());
    }

    // Figures tell what lies in reworded passages alone from what was copied.
    let taken_whole = part(&rows[70].1, 0, 60);
    place.write(
        "both.jsonl",
        jsonl([("both", &*format!("{taken_whole} {head} {copy}"))]),
    );
    let both = place.summary("passages both.jsonl --against in.jsonl --reworded -o both.tsv");
    let lengths = |is_reworded: bool| -> u64 {
        let passages = place.table("both.tsv").into_iter();
        let of_kind =
            passages.filter(|row| row[1] == "d70" && (row[8] == "reworded") == is_reworded);
        of_kind.map(|row| row[6].parse::<u64>().unwrap()).sum()
    };
    let pairs = both["most_copied"].as_array().unwrap();
    let pair = pairs.iter().find(|pair| pair["source"] == "d70").unwrap();
    assert_eq!(lengths(false), 60);
    assert_eq!(pair["reworded"], lengths(true));
    assert_eq!(pair["copied"], 60 + lengths(true));
    let told = place.ok("passages in.jsonl --reworded -o out.tsv").err;
    assert!(
        told.contains(" words of it in reworded passages alone"),
        "{told}"
    );

    // The same of the two texts alone, from every door.
    place.write("a.txt", &rows[70].1);
    place.write("b.txt", &rows[200].1);
    let told = &place.summary("compare a.txt b.txt --reworded")["shared"];
    assert_eq!(told["passages"][0]["kind"], "reworded");
    assert_eq!(told["passages"][0]["b"]["start"], number(2));
    assert_eq!(
        place.summary("compare a.txt b.txt")["shared"]["passages"],
        json!([])
    );
    let shown = place.ok("compare a.txt b.txt --reworded --html page.html");
    assert!(shown.text().contains("\n     A: ") && shown.text().contains("\n     B: "));
    let page = read_report(&place, "page.html");
    assert_eq!(
        page["comparison"]["shared"]["passages"][0]["kind"],
        "reworded"
    );
    let service = Service::start(&place, "");
    let pairs = json!([{ "a": rows[70].1, "b": rows[200].1 }]);
    let ask = |reworded: bool| {
        let body = json!({ "pairs": pairs, "reworded": reworded });
        service.post("/v1/passages", &body).json()["results"][0].clone()
    };
    assert_eq!(&ask(true), told);
    assert_eq!(ask(false)["passages"], json!([]));

    place.ok("passages index build lib in.jsonl");
    place.refused(
        "passages b.txt --index lib --reworded",
        &["--reworded", "--index"],
    );
}

/// Sources that the service finds for a text: id, first and last character in the text and in the source, length.
fn served_rows(service: &Service, text: &str) -> Vec<String> {
    let body = json!({ "text": text, "limit": 1000 });
    let reply = loop {
        let reply = service.post("/v1/collections/c/passages", &body);
        match reply.status {
            503 => {
                assert_eq!(reply.problem().1, "passages_not_ready");
                assert_eq!(reply.header("retry-after"), Some("1"));
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            200 => break reply.json(),
            status => panic!("{status}: {}", reply.text()),
        }
    };
    let mut rows = Vec::new();
    for source in reply["sources"].as_array().unwrap() {
        assert_eq!(source["id"], source["cluster"]);
        for passage in source["passages"].as_array().unwrap() {
            rows.push(format!(
                "{} {} {} {} {} {} {} {}",
                source["id"].as_str().unwrap(),
                passage["b"]["start"],
                passage["b"]["end"],
                passage["a"]["start"],
                passage["a"]["end"],
                passage["length"],
                passage["similarity"].as_f64().unwrap(),
                passage["kind"].as_str().unwrap(),
            ));
        }
    }
    rows.sort();
    rows
}

/// The same rows, as the command finds them in documents.
fn command_rows(place: &Place, documents: &[(String, String)], text: &str) -> Vec<String> {
    let rows = documents.iter().map(|(id, text)| (&**id, &**text));
    place.write("kept.jsonl", jsonl(rows));
    place.write("query.jsonl", jsonl([("query", text)]));
    place.ok("passages query.jsonl --against kept.jsonl -o out.tsv");
    let table = place.table("out.tsv").into_iter();
    let mut rows: Vec<_> = table.map(|row| row[1..].join(" ")).collect();
    rows.sort();
    rows
}

/// Documents that share a notice, and of which a text has a part of every second one.
fn copied_documents(numbers: &mut Numbers, count: usize) -> (Vec<(String, String)>, String) {
    let notice = "Permission is granted to anyone who has this text to read it aloud on the quay before noon.";
    let mut documents = Vec::new();
    let mut text = format!("{notice} ");
    for number in 0..count {
        let words = 14 + numbers.below(30);
        let part = filler(numbers, words);
        let kept = format!(
            "{notice} {} {part} {}",
            filler(numbers, 40),
            filler(numbers, 40)
        );
        if number % 2 == 0 {
            text += &format!("{part} {} ", filler(numbers, 20));
        }
        documents.push((format!("d{number}"), kept));
    }
    (documents, text)
}

fn insert_all(service: &Service, documents: &[(String, String)]) {
    for (id, text) in documents {
        let body = json!({ "id": id, "text": text });
        let reply = service.post("/v1/collections/c/documents", &body);
        assert_eq!(reply.json()["verdict"], "kept", "{}", reply.text());
    }
}

#[test]
fn service_finds_sources_as_the_command_does() {
    let mut numbers = Numbers::new(21);
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("c", json!({}));
    assert_eq!(served_rows(&service, SOURCE), [""; 0]);
    // Around the number of documents that make boilerplate of the notice.
    let (mut documents, text) = copied_documents(&mut numbers, 26);
    for (from, to) in [(0, 19), (19, 20), (20, 21), (21, 26)] {
        insert_all(&service, &documents[from..to]);
        let found = served_rows(&service, &text);
        assert_eq!(found, command_rows(&place, &documents[..to], &text), "{to}");
        assert!(found.len() >= to / 2);
    }
    // A duplicate is no source. A deleted document is none, and counts for no boilerplate.
    let copy = json!({ "id": "copy", "text": documents[0].1 });
    service.post("/v1/collections/c/documents", &copy);
    for (id, _) in documents.drain(..8) {
        assert_eq!(
            service
                .delete(&format!("/v1/collections/c/documents/{id}"))
                .status,
            204
        );
    }
    let found = served_rows(&service, &text);
    assert_eq!(found, command_rows(&place, &documents, &text));
    assert!(found.len() > 18, "18 documents have the notice: {found:?}");
    let stats = service.get("/v1/collections/c/stats").json();
    assert!(stats["memory"]["passages"].as_u64() > Some(100), "{stats}");
    // The answer is on disk, and an index of the same texts finds the same.
    service.kill();
    let service = Service::start(&place, "");
    assert_eq!(served_rows(&service, &text), found);
    service.stop();
    let service = Service::start(&place, "");
    assert_eq!(served_rows(&service, &text), found);
}

#[test]
fn expired_and_replaced_documents_are_no_sources() {
    let mut numbers = Numbers::new(23);
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("c", json!({ "window": "1d", "on_conflict": "replace" }));
    let (documents, text) = copied_documents(&mut numbers, 12);
    let insert = |id: &str, text: &str, day: u32| {
        let time = format!("2026-03-{day:02}T00:00:00Z");
        let body = json!({ "id": id, "text": text, "time": time });
        assert_eq!(
            service.post("/v1/collections/c/documents", &body).status,
            200
        );
    };
    for (number, (id, text)) in documents.iter().enumerate() {
        insert(id, text, if number < 6 { 1 } else { 4 });
    }
    let found = served_rows(&service, &text);
    assert_eq!(found, command_rows(&place, &documents[6..], &text));
    assert!(!found.is_empty());
    let other = filler(&mut numbers, 60);
    insert("d8", &other, 4);
    let mut left = documents[6..].to_vec();
    left[2].1 = other;
    let found = served_rows(&service, &text);
    assert_eq!(found, command_rows(&place, &left, &text));
    insert("late", &filler(&mut numbers, 30), 9);
    assert_eq!(served_rows(&service, &text), [""; 0]);
}

#[test]
fn many_documents_are_indexed_in_the_background_and_purged() {
    let mut numbers = Numbers::new(25);
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("c", json!({}));
    let (documents, text) = copied_documents(&mut numbers, 12);
    // More than a search reads by itself.
    let mut lines = String::new();
    for number in 0..20_000 {
        let text = format!("{number} {}", filler(&mut numbers, 14));
        lines += &format!("{}\n", json!({ "id": format!("f{number}"), "text": text }));
    }
    service.post_lines("/v1/collections/c/documents", lines.as_bytes());
    insert_all(&service, &documents);
    let body = json!({ "text": text });
    let reply = service.post("/v1/collections/c/passages", &body);
    assert_eq!(reply.problem(), (503, "passages_not_ready".to_owned()));
    let found = served_rows(&service, &text);
    assert_eq!(found, command_rows(&place, &documents, &text));
    let memory = || service.get("/v1/collections/c/stats").json()["memory"]["passages"].as_u64();
    let before = memory().unwrap();
    for ids in (0..20_000).collect::<Vec<_>>().chunks(1000) {
        let ids: Vec<_> = ids.iter().map(|number| format!("f{number}")).collect();
        service.post("/v1/collections/c/documents/delete", &json!({ "ids": ids }));
    }
    assert_eq!(served_rows(&service, &text), found);
    assert!(
        memory().unwrap() * 5 < before,
        "{before} before, {:?} now",
        memory()
    );
}

#[test]
fn searches_for_sources_are_refused_with_a_reason() {
    let place = Place::new();
    let service = Service::start(&place, "--passage-memory 100");
    service.make("c", json!({}));
    service.make("bare", json!({ "holds": "fingerprints", "distance": 3 }));
    let ask = |name: &str, body: serde_json::Value| {
        let reply = service.post(&format!("/v1/collections/{name}/passages"), &body);
        let detail = reply.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (reply.problem(), detail)
    };
    for (name, body, problem, said) in [
        (
            "bare",
            json!({ "text": "x" }),
            (422, "bad_settings"),
            "holds fingerprints",
        ),
        (
            "none",
            json!({ "text": "x" }),
            (404, "no_collection"),
            "none",
        ),
        ("c", json!({}), (400, "bad_json"), "`text` is missing"),
        (
            "c",
            json!({ "text": "x", "more": 1 }),
            (400, "bad_json"),
            "`more` is unknown",
        ),
        (
            "c",
            json!({ "text": "x", "min_length": 11 }),
            (422, "bad_settings"),
            "`min_length` is 11",
        ),
        (
            "c",
            json!({ "text": "x", "min_length": 10_001 }),
            (422, "bad_settings"),
            "10001",
        ),
        (
            "c",
            json!({ "text": "x", "limit": 0 }),
            (422, "bad_settings"),
            "`limit` is 0",
        ),
        (
            "c",
            json!({ "text": "x", "limit": 1001 }),
            (422, "bad_settings"),
            "`limit` is 1001",
        ),
    ] {
        let (found, detail) = ask(name, body.clone());
        assert_eq!((found.0, &*found.1), problem, "{body}");
        assert!(detail.contains(said), "{body}: {detail}");
    }
    let text = filler(&mut Numbers::new(27), 300);
    insert_all(&service, &[("a".to_owned(), text)]);
    let (found, detail) = ask("c", json!({ "text": "x" }));
    assert_eq!(found, (507, "passage_memory".to_owned()));
    assert!(
        detail.contains("100 bytes") && detail.contains("--passage-memory"),
        "{detail}"
    );
}

/// Without times or given sources, nobody is said to have copied; with them, the source is named.
#[test]
fn direction_is_told_only_where_it_is_known() {
    let place = Place::new();
    std::fs::create_dir(place.path("essays")).unwrap();
    place.write("essays/a.txt", format!("{SOURCE} One ends here."));
    place.write(
        "essays/b.txt",
        format!("Another begins like this. {SOURCE}"),
    );
    place.write(
        "essays/c.txt",
        "Nothing of it is in this one, which speaks of other things.",
    );
    let both = place.ok("passages essays -o p.tsv --show");
    let told = format!("{}{}", both.text(), both.err);
    for word in [
        "essays/b.txt, line 1, and essays/a.txt, line 1",
        "essays/b.txt and essays/a.txt share",
        "2 documents share",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    for word in ["from essays", "source", "copied"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
    let told = place.ok("passages essays -o p.tsv --lang zh").err;
    assert!(told.contains("essays/b.txt 与 essays/a.txt 共有"), "{told}");
    assert!(!told.contains("来自") && !told.contains("抄"), "{told}");
    let told = place
        .ok("passages essays/b.txt --against essays/a.txt -o p.tsv")
        .err;
    assert!(told.contains("essays/b.txt from essays/a.txt"), "{told}");
    let done = place.summary("passages essays -o p.tsv");
    assert_eq!(
        (&done["directed"], &done["sharing"], &done["copying"]),
        (&json!(false), &json!(2), &json!(1))
    );
    let done = place.summary("passages essays/b.txt --against essays/a.txt -o p.tsv");
    assert_eq!(
        (&done["directed"], &done["sharing"]),
        (&json!(true), &json!(1))
    );
}

/// Files of a folder are read in the encoding that each looks like, the summary says so, and locks are no documents.
#[test]
fn encodings_of_a_folder_are_guessed() {
    let place = Place::new();
    std::fs::create_dir(place.path("essays")).unwrap();
    let text =
        "清晨六點，老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島，可是誰也沒有說話。";
    let simplified =
        "清晨六点，老船长已经把缆绳解开了，岸上的人都知道他今天要去东边的小岛，可是谁也没有说话。";
    let encoded =
        |encoding: &'static encoding_rs::Encoding, text| encoding.encode(text).0.into_owned();
    place.write("essays/a.txt", simplified);
    place.write("essays/b.txt", encoded(encoding_rs::GB18030, simplified));
    place.write("essays/c.md", encoded(encoding_rs::BIG5, text));
    place.write("essays/~$c.docx", "a lock");
    place.write("essays/d.pdf", "no PDF");
    place.write("essays/e.pages", "of a kind that is not read");
    let german = "Der Leuchtturmwärter hätte gern beschlossen, dass die Straße größer würde, aber die Fähre fuhr jeden \
        Abend früher über das stürmische Meer, und niemand hörte später, wie er müde die Tür schloss und den Schlüssel \
        ängstlich unter die Bücher legte.";
    place.write("essays/f.txt", encoded(encoding_rs::WINDOWS_1252, german));
    place.write("essays/g.txt", german);
    let ran = place.run("passages essays -o warned.jsonl");
    assert!(ran.err.contains("essays/e.pages; give"), "{}", ran.err);
    let done = place.summary("passages essays -o p.jsonl --report r.html");
    assert_eq!(
        (
            &done["documents"],
            &done["pairs"],
            &done["unreadable_files"]
        ),
        (&json!(5), &json!(4), &json!(1))
    );
    assert_eq!(done["skipped_files"], 1);
    assert_eq!(done["unreadable"][0]["file"], "essays/d.pdf");
    assert_eq!(done["unreadable"][1]["file"], "essays/e.pages");
    let guessed = done["guessed_encodings"].as_array().unwrap();
    let guessed = guessed.iter().map(|one| {
        (
            one["encoding"].as_str().unwrap(),
            one["first"].as_str().unwrap(),
        )
    });
    assert_eq!(
        Vec::from_iter(guessed),
        [
            ("big5", "essays/c.md"),
            ("gb18030", "essays/b.txt"),
            ("windows-1252", "essays/f.txt")
        ]
    );
    assert_eq!(
        done["guessed_encodings"][0]["names"],
        json!(["essays/c.md"])
    );
    // The positions are those of the decoded texts.
    let rows: Vec<serde_json::Value> = place
        .read("p.jsonl")
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert!(
        rows.iter()
            .all(|row| row["start"] == 0 && row["source_start"] == 0),
        "{rows:?}"
    );
    let page = read_report(&place, "r.html");
    assert_eq!(page["summary"]["unreadable"][0]["file"], "essays/d.pdf");
    // A stated encoding does not refuse the files that are surely UTF-8.
    place.ok("passages essays/a.txt essays/b.txt -o p.jsonl --encoding gb18030");
    assert_eq!(place.read("p.jsonl").lines().count(), 1);
}
