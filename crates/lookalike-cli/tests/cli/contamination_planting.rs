//! Items of benchmarks that are planted into a corpus, found by `decontaminate`, and scored by `eval`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Numbers, Place, row, rows};

const SYLLABLES: [&str; 24] = [
    "ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "za", "del", "fin", "gor", "hal", "jun",
    "kor", "lan", "mer", "nos", "par", "quil", "ros", "sul", "tam",
];

const CHARACTERS: &str = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联言权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坏";

fn word(numbers: &mut Numbers) -> String {
    (0..2 + numbers.below(2))
        .map(|_| SYLLABLES[numbers.below(SYLLABLES.len())])
        .collect()
}

fn english(numbers: &mut Numbers, words: usize) -> String {
    let words: Vec<String> = (0..words).map(|_| word(numbers)).collect();
    words.join(" ")
}

fn chinese(numbers: &mut Numbers, characters: &[char], length: usize) -> String {
    (0..length)
        .map(|_| characters[numbers.below(characters.len())])
        .collect()
}

/// Writes 120 English documents, 80 Chinese ones, and two benchmarks of 120 items each.
fn write_corpus_and_benchmarks(place: &Place) {
    let mut numbers = Numbers::new(5);
    let characters: Vec<char> = CHARACTERS.chars().collect();
    let mut corpus = String::new();
    for at in 0..200 {
        let mut text = String::new();
        for sentence in 0..24 {
            if at < 120 {
                let length = 7 + numbers.below(9);
                let _ = write!(text, "{}.", english(&mut numbers, length));
            } else {
                let length = 12 + numbers.below(20);
                let _ = write!(text, "{}。", chinese(&mut numbers, &characters, length));
            }
            text.push(if sentence % 6 == 5 { '\n' } else { ' ' });
        }
        corpus.push_str(&row(&format!("d{at}"), &text));
    }
    place.write("in.jsonl", corpus);
    let starts = [
        "Which of the following is",
        "What does it mean that",
        "How many",
    ];
    let mut quiz = String::new();
    for at in 0..120 {
        let length = 2 + numbers.below(20);
        let words = english(&mut numbers, length);
        // Every third question has numbers, so that decoys can share them.
        let question = match at % 3 {
            2 => format!("{} of 12 and 340 {words} make 7 in {at}?", starts[2]),
            start => format!("{} {words}?", starts[start]),
        };
        let choices: Vec<String> = (0..4).map(|_| english(&mut numbers, 4)).collect();
        let item = json!({"id": format!("q{at}"), "question": question, "choices": choices, "answer": at % 4});
        let _ = writeln!(quiz, "{item}");
    }
    place.write("evals/quiz/test.jsonl", quiz);
    let mut exam = "id,question,A,B,C,D,answer\n".to_owned();
    for at in 0..120 {
        let length = 8 + numbers.below(30);
        let question = chinese(&mut numbers, &characters, length);
        let _ = write!(exam, "{at},下列关于{question}的说法");
        for _ in 0..4 {
            let _ = write!(exam, ",{}", chinese(&mut numbers, &characters, 6));
        }
        let _ = writeln!(exam, ",{}", ["A", "B", "C", "D"][at % 4]);
    }
    place.write("evals/exam.csv", exam);
}

const PLANT: &str = "plant in.jsonl --contamination evals -o planted.jsonl --labels truth.tsv --indexed items.jsonl";
const DECONTAMINATE: &str =
    "decontaminate planted.jsonl --benchmarks items.jsonl --findings findings.tsv";

#[test]
fn planted_items_are_found_and_scored() {
    let place = Place::new();
    write_corpus_and_benchmarks(&place);
    let done = place.summary(PLANT);
    let count = |name: &str| done[name].as_u64().unwrap();
    assert_eq!([count("documents"), count("items")], [200, 240], "{done}");
    assert_eq!(
        count("indexed") + count("held_out") + count("unused_items"),
        240
    );
    assert!((90..150).contains(&count("indexed")), "{done}");
    assert_eq!(count("sampled"), count("indexed"));

    // Documents stay as they are, and each planted one has a row.
    let mut texts: HashMap<String, String> = HashMap::new();
    for line in place.read("planted.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let cell = |name: &str| row[name].as_str().unwrap().to_owned();
        assert_eq!(texts.insert(cell("id"), cell("text")), None);
    }
    for line in place.read("in.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(texts[row["id"].as_str().unwrap()], row["text"]);
    }
    let mut indexed: HashMap<(String, String), String> = HashMap::new();
    for line in place.read("items.jsonl").lines() {
        let item: Value = serde_json::from_str(line).unwrap();
        let cell = |name: &str| item[name].as_str().unwrap().to_owned();
        indexed.insert((cell("benchmark"), cell("id")), cell("question"));
        assert_eq!(item["choices"].as_array().unwrap().len(), 4);
        assert!(
            item["choices"]
                .as_array()
                .unwrap()
                .contains(&item["answer"])
        );
    }
    assert_eq!(indexed.len() as u64, count("indexed"));
    let benchmarks: HashSet<&str> = indexed.keys().map(|(benchmark, _)| &**benchmark).collect();
    assert_eq!(benchmarks, HashSet::from(["quiz/test", "exam"]));
    let truth = rows(&place.read("truth.tsv"));
    assert_eq!(truth.len() as u64, count("planted") + count("decoys"));
    assert_eq!(truth.len() + 200, texts.len());
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    for planted in &truth {
        let [document, host, benchmark, item, form, label, words] = &planted[..] else {
            panic!("{planted:?}");
        };
        assert!(document.starts_with(&format!("{host}#")) && texts.contains_key(host));
        let question = indexed.get(&(benchmark.clone(), item.clone()));
        assert_eq!(question.is_some(), form != "same-series", "{planted:?}");
        if form == "verbatim" {
            assert!(texts[document].contains(question.unwrap()), "{planted:?}");
            assert_eq!(label, "1");
        }
        assert!(words.parse::<u64>().unwrap() >= 6, "{planted:?}");
        *forms.entry(form).or_default() += 1;
    }
    assert_eq!(forms.len(), 17, "{forms:?}");
    assert_eq!(forms["verbatim"] as u64, count("sampled"));

    let found = place.summary(DECONTAMINATE);
    assert_eq!(found["items"], done["indexed"]);
    let names: Vec<&Value> = found["benchmarks"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{found}");
    assert!(
        names
            .iter()
            .all(|benchmark| benchmark["presets"] == json!(["items"]))
    );
    let scored = place.ok("eval findings.tsv --contamination truth.tsv --json");
    let scored: Value = serde_json::from_slice(&scored.out).unwrap();
    for form in scored["forms"].as_array().unwrap() {
        let recall = form["recall"].as_f64().unwrap();
        let least = if form["form"] == "replaced-words" {
            0.5
        } else {
            0.95
        };
        assert!(recall >= least, "{form}");
    }
    assert_eq!(scored["forms"].as_array().unwrap().len(), 12);
    assert_eq!(scored["decoy_kinds"].as_array().unwrap().len(), 5);
    assert_eq!(scored["planted"], done["planted"]);
    assert!(scored["precision"].as_f64().unwrap() >= 0.95, "{scored}");
    assert!(
        scored["forms"][0]["short"].as_u64().unwrap() > 10,
        "{scored}"
    );

    let shown = place.ok("eval findings.tsv --contamination truth.tsv");
    for part in ["table-cells", "same-series", "precision", "right findings"] {
        assert!(shown.text().contains(part), "{}", shown.text());
    }
    let shown = place.ok("eval findings.tsv --contamination truth.tsv --lang zh");
    for part in ["table-cells", "精确率", "诱饵"] {
        assert!(shown.text().contains(part), "{}", shown.text());
    }

    // Other items than the indexed ones were searched for.
    place.ok("decontaminate planted.jsonl --benchmarks evals --findings all.tsv");
    let line = "eval all.tsv --contamination truth.tsv";
    place.refused(line, &["holds out", "plant --indexed"]);
    place.write("other.tsv", "id\tbenchmark\titem\nd1\tothers\t7\n");
    let line = "eval other.tsv --contamination truth.tsv";
    place.refused(line, &["others", "plant --indexed"]);
    for (options, words) in [
        ("--method simhash", &["--method"][..]),
        ("--clusters x.tsv", &["--clusters"]),
        ("findings.tsv", &["2 tables"]),
    ] {
        let line = format!("eval findings.tsv --contamination truth.tsv {options}");
        place.refused(&line, words);
    }
    place.write(
        "twice.tsv",
        place.read("truth.tsv") + &truth[0].join("\t") + "\n",
    );
    let line = "eval findings.tsv --contamination twice.tsv";
    place.refused(line, &[&truth[0][0], "earlier row"]);
}

#[test]
fn planted_items_depend_on_the_seed_and_not_on_threads() {
    let place = Place::new();
    write_corpus_and_benchmarks(&place);
    let plant = |options: &str| {
        place.ok(&format!("{PLANT} --documents 30 --quiet {options}"));
        ["planted.jsonl", "truth.tsv", "items.jsonl"].map(|name| place.bytes(name))
    };
    let one = plant("--threads 1");
    let truth = rows(&String::from_utf8_lossy(&one[1]));
    let verbatim = truth.iter().filter(|planted| planted[4] == "verbatim");
    assert_eq!(verbatim.count(), 30);
    assert!(
        one == plant("--threads 3"),
        "three threads made something else"
    );
    let other = plant("--threads 3 --seed 2");
    let differs = one.iter().zip(&other).all(|(one, other)| one != other);
    assert!(differs);
}

#[test]
fn impossible_contamination_is_refused() {
    let place = Place::new();
    write_corpus_and_benchmarks(&place);
    place.write(
        "one.jsonl",
        "{\"question\":\"What is this?\",\"answer\":\"It\"}\n",
    );
    let line = |options: &str| format!("plant in.jsonl -o p.jsonl --labels t.tsv {options}");
    let contamination = "--contamination evals --indexed i.jsonl";
    for options in [
        "--copies 2",
        "--edits typos",
        "--threshold 0.8",
        "--recipe words-2",
        "--forms 3",
    ] {
        let option = options.split(' ').next().unwrap();
        place.refused(&line(&format!("{contamination} {options}")), &[option]);
    }
    for (options, words) in [
        ("--contamination evals", &["--indexed"][..]),
        ("--indexed i.jsonl", &["--contamination"]),
        (
            "--contamination evals --indexed i.tsv",
            &["i.tsv", ".jsonl"],
        ),
        ("--contamination evals --indexed -", &["standard output"]),
        ("--contamination evals --indexed t.tsv", &["t.tsv", "both"]),
        (
            "--contamination evals --indexed evals/quiz/test.jsonl",
            &["benchmarks", "overwritten"],
        ),
        ("--contamination one.jsonl --indexed i.jsonl", &["too few"]),
        ("--contamination missing --indexed i.jsonl", &["missing"]),
    ] {
        place.refused(&line(options), words);
        let written = ["p.jsonl", "t.tsv", "i.jsonl"].map(|name| place.has(name));
        assert_eq!(written, [false; 3], "{options}");
    }
    let repeated = row("d", "one text") + &row("d", "another text");
    place.write("in.jsonl", repeated);
    place.refused(&line(contamination), &["'d'", "--id-row"]);
}
