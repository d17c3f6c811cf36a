//! The report of a run, and decisions that a person makes in it.

use std::collections::{HashMap, HashSet};

use lookalike_oracle::effort::choose_effort;
use lookalike_oracle::generate::{self, CorpusKind};
use lookalike_oracle::{OracleVerdict, all_pairs, verdicts_from_pairs};
use serde_json::{Value, json};

use crate::support::{Numbers, Place, corpus_jsonl, jsonl, row};

/// Returns the data of a report.
pub(crate) fn read_report(place: &Place, name: &str) -> Value {
    let page = place.read(name);
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    let values = value.as_array().unwrap().iter();
    values.map(|value| value.as_u64().unwrap()).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let values = value.as_array().unwrap().iter();
    values
        .map(|value| value.as_str().unwrap().to_owned())
        .collect()
}

/// Content hash and text key by document id, for documents whose texts a report has.
fn decided_texts(report: &Value) -> HashMap<String, (String, String)> {
    let [contents, keys] = ["content", "key"].map(|column| strings(&report["texts"][column]));
    let mut texts = HashMap::new();
    for rows in ["removals", "clusters"] {
        let ids = strings(&report[rows]["id"]);
        let places = report[rows]["text"].as_array().unwrap();
        for (id, place) in ids.into_iter().zip(places) {
            if let Some(at) = place.as_u64() {
                let at = at as usize;
                texts.insert(id, (contents[at].clone(), keys[at].clone()));
            }
        }
    }
    texts
}

fn decision_line(a: &(String, String), b: &(String, String), label: &str, recipe: &str) -> String {
    let line = json!({
        "a": a.0, "b": b.0, "label": label, "recipe": recipe, "a_key": a.1, "b_key": b.1,
    });
    format!("{line}\n")
}

fn removed(place: &Place, options: &str) -> HashMap<String, (String, f64, String)> {
    place.ok(&format!("dedup in.jsonl {options} --removed removed.tsv"));
    let rows = place.table("removed.tsv").into_iter();
    rows.map(|row| {
        let found = (row[1].clone(), row[2].parse().unwrap(), row[3].clone());
        (row[0].clone(), found)
    })
    .collect()
}

#[test]
fn report_counts_every_document() {
    let place = Place::new();
    let corpus = generate::generate_corpus(CorpusKind::English, 900, 71);
    let documents = corpus.iter().map(|(id, text)| (&id[..], &text[..]));
    let bad = "{\"id\":\"x\"}\nnot JSON at column 1\n";
    place.write("in.jsonl", jsonl(documents) + bad);
    let summary =
        place.summary("dedup in.jsonl --report r.html --removed removed.tsv --threshold 0.6");
    let report = read_report(&place, "r.html");
    assert_eq!(
        (&report["format"], &report["version"], &report["kind"]),
        (&json!("lookalike-report"), &json!(1), &json!("dedup"))
    );
    let count = summary["removed"].as_u64().unwrap();
    assert!(count > 50, "{count}");
    for field in ["documents", "kept", "removed", "clusters", "rejected"] {
        assert_eq!(report["summary"][field], summary[field], "{field}");
    }
    let similarities = numbers(&report["similarities"]);
    assert_eq!(
        (similarities.len(), similarities.iter().sum()),
        (101, count)
    );
    let sizes = report["cluster_sizes"].as_array().unwrap();
    let sizes: Vec<_> = sizes.iter().map(numbers).collect();
    assert_eq!(
        sizes.iter().map(|size| size[1]).sum::<u64>(),
        summary["clusters"]
    );
    assert_eq!(
        sizes
            .iter()
            .map(|size| (size[0] - 1) * size[1])
            .sum::<u64>(),
        count
    );
    let reasons = report["bad_rows"].as_array().unwrap();
    assert_eq!(
        reasons
            .iter()
            .map(|reason| reason["rows"].as_u64().unwrap())
            .sum::<u64>(),
        2
    );

    // Every row agrees with the table, and every difference covers both texts.
    let table: HashMap<String, Vec<String>> = place
        .table("removed.tsv")
        .into_iter()
        .map(|row| (row[0].clone(), row))
        .collect();
    let (removals, clusters) = (&report["removals"], &report["clusters"]);
    let (ids, kept) = (strings(&removals["id"]), strings(&clusters["id"]));
    assert_eq!(ids.len() as u64, count);
    let cluster = numbers(&removals["cluster"]);
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(table[id][1], kept[cluster[at] as usize]);
        let similarity = removals["similarity"][at].as_f64().unwrap();
        assert!((similarity - table[id][2].parse::<f64>().unwrap()).abs() < 1e-6);
    }
    let units = |at: &Value| {
        let text = &report["texts"]["text"][at.as_u64().unwrap() as usize];
        text.as_str().unwrap().encode_utf16().count() as u64
    };
    let characters = numbers(&report["texts"]["characters"]);
    let mut whole = 0;
    let differences = &report["differences"];
    let shown = numbers(&differences["removal"]);
    assert!(shown.len() > 50, "{}", shown.len());
    for (row, runs) in shown
        .into_iter()
        .zip(differences["runs"].as_array().unwrap())
    {
        let (row, runs) = (row as usize, numbers(runs));
        let side = |at: usize| runs.chunks(3).map(|run| run[at]).sum::<u64>();
        let (a, b) = (
            &clusters["text"][cluster[row] as usize],
            &removals["text"][row],
        );
        // Of cut texts, the end that only one of them has is left out.
        let is_whole = |at: &Value| characters[at.as_u64().unwrap() as usize] <= 8000;
        if is_whole(a) && is_whole(b) {
            assert_eq!((side(1), side(2)), (units(a), units(b)));
            whole += 1;
        }
        assert!(side(1) <= units(a) && side(2) <= units(b));
    }

    assert!(whole > 40, "{whole}");

    // The nearest to the threshold come first.
    let nearest = numbers(&report["nearest"]).into_iter();
    let nearest: Vec<f64> = nearest
        .map(|row| removals["similarity"][row as usize].as_f64().unwrap())
        .collect();
    assert!(nearest.is_sorted() && nearest.len() > 20);
}

#[test]
fn report_stays_small_and_repeats_itself() {
    let place = Place::new();
    let mut rows = String::new();
    for number in 0..900 {
        let text: Vec<String> = (0..700).map(|at| format!("w{number}x{at}")).collect();
        rows += &row(&format!("{number}a"), &text.join(" "));
        rows += &row(&format!("{number}b"), &format!("{} more", text.join(" ")));
    }
    place.write("in.jsonl", rows);
    for name in ["one.html", "two.html"] {
        place.ok(&format!("dedup in.jsonl --report {name}"));
    }
    let (one, two) = (
        read_report(&place, "one.html"),
        read_report(&place, "two.html"),
    );
    assert_eq!(one["removals"]["total"], 900);
    let texts = strings(&one["texts"]["text"]);
    let bytes: usize = texts.iter().map(String::len).sum();
    assert!((5_500_000..6_100_000).contains(&bytes), "{bytes}");
    assert!(place.bytes("one.html").len() < 7_000_000);
    for part in ["removals", "clusters", "texts", "differences", "nearest"] {
        assert_eq!(one[part], two[part], "{part}");
    }
}

#[test]
fn hostile_texts_stay_data() {
    let place = Place::new();
    let hostile =
        "</script><script>alert(1)</script><!--<b>\u{202e}\u{0} and some more words to compare";
    place.write(
        "in.jsonl",
        row("</script>", hostile) + &row("<!--", &format!("{hostile} again")),
    );
    place.ok("dedup in.jsonl --report r.html --threshold 0.5");
    let page = place.read("r.html");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<!--"));
    let report = read_report(&place, "r.html");
    assert_eq!(report["clusters"]["id"][0], "</script>");
    let texts = strings(&report["texts"]["text"]);
    assert!(texts.iter().any(|text| text == hostile));
}

/// Random decisions on texts, some of which several documents have: the verdicts are those of the corrected relation.
#[test]
fn verdicts_follow_the_corrected_relation() {
    let mut overruled = 0;
    let seeds = choose_effort(1, 3);
    for seed in 0..seeds {
        let place = Place::new();
        let mut corpus = generate::generate_corpus(CorpusKind::English, 350, 80 + seed);
        for at in (0..300).step_by(40) {
            let copy = corpus[at].1.clone();
            corpus.push((format!("copy of {at}"), copy));
        }
        let documents = corpus.iter().map(|(id, text)| (&id[..], &text[..]));
        place.write("in.jsonl", jsonl(documents));
        let options = "--method join --threshold 0.5";
        place.ok(&format!("dedup in.jsonl {options} --report r.html"));
        let report = read_report(&place, "r.html");
        let recipe = report["plan"]["recipe_id"].as_str().unwrap();
        let known = decided_texts(&report);
        let texts: Vec<&str> = corpus.iter().map(|(_, text)| &text[..]).collect();
        let pairs = all_pairs(&texts, 2, 0.5);

        let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed + 1);
        let mut below = |limit: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % limit
        };
        let able: Vec<usize> = (0..corpus.len())
            .filter(|&at| known.contains_key(&corpus[at].0))
            .collect();
        let mut decided: HashMap<(&str, &str), bool> = HashMap::new();
        for round in 0..40 {
            let (a, b) = match round % 2 {
                0 => (able[below(able.len())], able[below(able.len())]),
                _ => {
                    let (a, b, _) = pairs[below(pairs.len())];
                    (a, b)
                }
            };
            let both_able = able.contains(&a) && able.contains(&b);
            if both_able && texts[a] != texts[b] {
                let both = (texts[a].min(texts[b]), texts[a].max(texts[b]));
                decided.entry(both).or_insert(round % 3 == 0);
            }
        }
        let of_text: HashMap<&str, &(String, String)> = corpus
            .iter()
            .filter_map(|(id, text)| Some((&text[..], known.get(id)?)))
            .collect();
        let lines = decided.iter().map(|(&(a, b), &same)| {
            let label = if same { "same" } else { "different" };
            decision_line(of_text[a], of_text[b], label, recipe)
        });
        place.write("decisions.jsonl", lines.collect::<String>());

        let decision = |a: usize, b: usize| {
            let both = (texts[a].min(texts[b]), texts[a].max(texts[b]));
            decided.get(&both).copied()
        };
        // Documents that differ from the same third one do not match, unless their texts are equal.
        let differ: Vec<HashSet<&str>> = (0..texts.len())
            .map(|a| {
                let others = (0..texts.len()).filter(|&b| decision(a, b) == Some(false));
                others.map(|b| texts[b]).collect()
            })
            .collect();
        let mut corrected: Vec<_> = pairs
            .iter()
            .filter(|&&(a, b, similarity)| {
                let is_apart = similarity < 1.0 && !differ[a].is_disjoint(&differ[b]);
                decision(a, b).is_none() && !is_apart
            })
            .copied()
            .collect();
        for b in 0..texts.len() {
            let same = (0..b).filter(|&a| decision(a, b) == Some(true));
            corrected.extend(same.map(|a| (a, b, 1.0)));
        }
        let order: Vec<usize> = (0..texts.len()).collect();
        let verdicts = |pairs: &[(usize, usize, f64)]| -> HashMap<String, (String, f64)> {
            let verdicts = verdicts_from_pairs(&order, 0, pairs)
                .into_iter()
                .enumerate();
            verdicts
                .filter_map(|(at, verdict)| match verdict {
                    OracleVerdict::Kept => None,
                    OracleVerdict::Removed { kept, similarity } => {
                        Some((corpus[at].0.clone(), (corpus[kept].0.clone(), similarity)))
                    }
                })
                .collect()
        };
        let expected = verdicts(&corrected);
        let options = format!("{options} --decisions decisions.jsonl");
        let found = removed(&place, &options).into_iter();
        let found: HashMap<_, _> = found
            .map(|(id, (kept, similarity, _))| (id, (kept, similarity)))
            .collect();
        assert_eq!(found, expected, "{seed}");
        overruled += usize::from(expected != verdicts(&pairs));
    }
    assert_eq!(overruled, seeds as usize);
}

const BOATS: [(&str, &str); 4] = [
    (
        "a",
        "the old boat left the harbour at dawn with nine men on board and a dog",
    ),
    (
        "b",
        "the old boat left the harbour at dawn with ten men on board and a dog",
    ),
    (
        "c",
        "The old boat left the harbour at dawn, with nine men on board and a dog!",
    ),
    (
        "d",
        "the old boat left the town at noon and nobody knows what the price of wheat will be",
    ),
];

/// Decides about documents of [`BOATS`] and returns the file's text.
pub(crate) fn decide_boats(place: &Place, decisions: &[(&str, &str, &str)]) -> String {
    place.write("in.jsonl", jsonl(BOATS));
    place.ok("dedup in.jsonl --threshold 0.1 --report r.html");
    let report = read_report(place, "r.html");
    let recipe = report["plan"]["recipe_id"].as_str().unwrap();
    let known = decided_texts(&report);
    // A text that is in no report: its hash is known, and its key is of no document here.
    let other = (format!("sha256:{}", "0".repeat(64)), "0".repeat(32));
    let text = |id: &str| known.get(id).unwrap_or(&other);
    let lines = decisions
        .iter()
        .map(|(a, b, label)| decision_line(text(a), text(b), label, recipe));
    lines.collect()
}

/// Texts that normalisation alone makes equal can be told apart, and decided copies are one with nothing else.
#[test]
fn texts_that_are_equal_after_normalisation_can_be_told_apart() {
    let place = Place::new();
    let decisions = decide_boats(&place, &[("a", "c", "different"), ("a", "b", "different")]);
    place.write("d.jsonl", decisions);
    let kept_of = |options: &str| {
        let mut found: Vec<_> = removed(&place, options)
            .into_iter()
            .map(|(id, (kept, _, how))| (id, kept, how))
            .collect();
        found.sort();
        found
    };
    let owned = |rows: &[(&str, &str, &str)]| -> Vec<_> {
        let rows = rows.iter();
        rows.map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned()))
            .collect()
    };
    let options = "--threshold 0.6";
    assert_eq!(
        kept_of(options),
        owned(&[("b", "a", "join"), ("c", "a", "exact")])
    );
    let options = "--threshold 0.6 --decisions d.jsonl";
    // Both differ from the first one, so they differ from each other.
    assert_eq!(kept_of(options), owned(&[]));
    let decisions = [
        ("a", "c", "different"),
        ("a", "b", "different"),
        ("b", "c", "same"),
    ];
    place.write("d.jsonl", decide_boats(&place, &decisions));
    assert_eq!(kept_of(options), owned(&[("c", "b", "decision")]));
    place.write("d.jsonl", decide_boats(&place, &[("b", "c", "same")]));
    let options = "--threshold 0.95 --decisions d.jsonl";
    assert_eq!(kept_of(options), owned(&[("c", "a", "exact")]));
    let options = "--threshold 0.95 --keep last --decisions d.jsonl";
    assert_eq!(
        kept_of(options),
        owned(&[("a", "c", "exact"), ("b", "c", "decision")])
    );
}

#[test]
fn decisions_are_counted() {
    let place = Place::new();
    let decisions = decide_boats(
        &place,
        &[
            ("a", "b", "different"),
            ("b", "c", "same"),
            ("a", "nothing", "same"),
        ],
    );
    let other = decisions
        .lines()
        .next()
        .unwrap()
        .replace("\"recipe\":\"", "\"recipe\":\"0");
    place.write("d.jsonl", decisions + &other);
    let summary = place.summary("dedup in.jsonl --dry-run --decisions d.jsonl");
    assert_eq!(
        summary["decisions"],
        json!({ "same": 2, "different": 1, "without_pair": 1, "of_other_recipes": 1 })
    );
    let said = place.ok("dedup in.jsonl --dry-run --decisions d.jsonl").err;
    for words in [
        "2 the same, 1 different",
        "1 met no pair",
        "1 of another recipe",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(
        place.summary("dedup in.jsonl --dry-run").get("decisions"),
        None
    );
}

#[test]
fn decisions_that_cannot_be_used_are_refused() {
    let place = Place::new();
    let decisions = decide_boats(&place, &[("a", "b", "different"), ("a", "b", "same")]);
    place.write("both.jsonl", &decisions);
    let line = "dedup in.jsonl --dry-run --decisions";
    place.refused(
        &format!("{line} both.jsonl"),
        &["both.jsonl:2", "both.jsonl:1", "remove one"],
    );
    place.write("other.jsonl", "{\"id\":1}\n");
    place.refused(
        &format!("{line} other.jsonl"),
        &["other.jsonl:1", "not a decision"],
    );
    place.refused(
        &format!("{line} missing.jsonl"),
        &["cannot read", "missing.jsonl"],
    );
}

/// The same file is a list of labels.
#[test]
fn decisions_are_labels() {
    let place = Place::new();
    let decisions = decide_boats(&place, &[("a", "b", "same"), ("a", "d", "different")]);
    assert!(!decisions.contains(&"0".repeat(64)), "{decisions}");
    place.write("d.jsonl", decisions);
    let measured = place.summary("eval d.jsonl --corpus in.jsonl --resamples 0");
    assert_eq!(
        (
            &measured["labelled"]["similar"],
            &measured["labelled"]["different"]
        ),
        (&json!(1), &json!(1)),
        "{measured}"
    );
}

/// A run that is resumed has the decisions that it began with.
#[test]
fn resumed_run_has_the_same_decisions() {
    let place = Place::new();
    place.write("d.jsonl", decide_boats(&place, &[("a", "b", "different")]));
    let line = "dedup in.jsonl --removed removed.tsv --work work --resume";
    place.ok(&format!("{line} --decisions d.jsonl"));
    place.refused(line, &["decisions"]);
    let ids: HashSet<String> = place
        .table("removed.tsv")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert!(!ids.contains("b"), "{ids:?}");
}

/// Decisions of a run that learns forms name its recipe without them, and apply to it in memory and with a directory.
#[test]
fn decisions_outlive_learned_forms() {
    let place = Place::new();
    place.write("d.jsonl", decide_boats(&place, &[("a", "b", "different")]));
    let base = "dedup in.jsonl --removed removed.tsv --decisions d.jsonl --quiet";
    for options in ["", "--work work"] {
        place.ok_as_given(&format!("{base} {options} --report r.html"));
        let removed = place.table("removed.tsv");
        assert!(removed.iter().all(|row| row[0] != "b"), "{removed:?}");
        let recipe = read_report(&place, "r.html")["plan"]["recipe_id"].clone();
        let decided = place.read("d.jsonl");
        assert!(decided.contains(recipe.as_str().unwrap()), "{recipe}");
    }
}

#[test]
fn pairs_and_evaluations_are_reported() {
    let place = Place::new();
    let corpus = generate::generate_corpus(CorpusKind::Chinese, 500, 91);
    let documents = corpus.iter().map(|(id, text)| (&id[..], &text[..]));
    place.write("in.jsonl", jsonl(documents));
    let line = "pairs in.jsonl -o pairs.jsonl --report p.html --threshold 0.5";
    let pairs = place.summary(line)["pairs"].as_u64().unwrap();
    let report = read_report(&place, "p.html");
    assert_eq!(
        (&report["kind"], &report["removals"]["total"]),
        (&json!("pairs"), &json!(pairs))
    );
    assert_eq!(numbers(&report["similarities"]).iter().sum::<u64>(), pairs);
    assert_eq!(numbers(&report["removals"]["row"]).len() as u64, pairs);
    assert!(pairs > 50, "{pairs}");
    let mut listed = HashSet::new();
    for line in place.read("pairs.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        listed.insert((
            row["a"].as_str().unwrap().to_owned(),
            row["b"].as_str().unwrap().to_owned(),
        ));
    }
    let firsts = strings(&report["clusters"]["id"]);
    let cluster = numbers(&report["removals"]["cluster"]);
    for (at, b) in strings(&report["removals"]["id"]).into_iter().enumerate() {
        assert!(listed.contains(&(firsts[cluster[at] as usize].clone(), b)));
    }
    place.refused("pairs in.jsonl -o x.html --report x.html", &["x.html"]);

    place.write(
        "d.jsonl",
        decide_boats(&place, &[("a", "b", "same"), ("a", "d", "different")]),
    );
    place.ok("eval d.jsonl --corpus in.jsonl --report e.html");
    let report = read_report(&place, "e.html");
    assert_eq!(report["kind"], "eval");
    assert_eq!(
        report["evaluation"]["settings"].as_array().unwrap().len(),
        1
    );
    assert_eq!(report["names"][0], "default-1, auto, jaccard");
    place.refused("eval d.jsonl --corpus in.jsonl --report -", &["--report -"]);
}

/// Marks stand where the table says, also where characters take two units of UTF-16.
#[test]
fn passages_are_reported_with_their_places() {
    let place = Place::new();
    let shared =
        "a passage of more than twelve words that both essays have in common 船 word for word";
    let own = |word: &str| format!("{word} 𝄞 of its own ").repeat(20);
    place.write(
        "essay.txt",
        format!("{}{shared}. {}", own("thought"), own("end")),
    );
    place.write("source.txt", format!("{shared}. {}", own("other")));
    let line = "passages essay.txt --against source.txt -o p.jsonl --report p.html";
    let summary = place.summary(line);
    let report = read_report(&place, "p.html");
    assert_eq!(
        (&report["kind"], &report["pairs"]["total"]),
        (&json!("passages"), &summary["pairs"])
    );
    let rows = place.read("p.jsonl");
    assert_eq!(rows.lines().count(), 1);
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let mark = report["pairs"]["marks"][0][0].as_array().unwrap();
    for (column, field, at) in [("document_text", "", 0), ("source_text", "source_", 2)] {
        let number = report["pairs"][column][0].as_u64().unwrap() as usize;
        let text = report["texts"]["text"][number].as_str().unwrap();
        let units: Vec<u16> = text.encode_utf16().collect();
        let range = |at: usize| mark[at].as_u64().unwrap() as usize;
        let marked = String::from_utf16(&units[range(at)..range(at + 1)]).unwrap();
        let start = row[format!("{field}start")].as_u64().unwrap() as usize;
        let end = row[format!("{field}end")].as_u64().unwrap() as usize;
        let expected: String = text.chars().skip(start).take(end - start).collect();
        assert_eq!(marked, expected);
        assert!(marked.contains("more than twelve words"), "{marked}");
    }
    assert_eq!((&mark[4], &mark[6]), (&row["length"], &row["kind"]));
    // Without -o there is no table, and standard output stays empty.
    let ran = place.ok("passages essay.txt --against source.txt --report p.html --quiet");
    assert_eq!(ran.text(), "");
}

/// The report and the plan in the terminal give one probability for one pair, and report and summary one speed.
#[test]
fn report_and_terminal_agree() {
    let place = Place::new();
    let corpus = Numbers::new(5).corpus(300);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    for options in [
        "--threshold 0.83",
        "--threshold 0.9 --verify cosine",
        "--method minhash --threshold 0.8",
        "--method bottomk --threshold 0.7",
    ] {
        let done = place.summary(&format!(
            "dedup in.jsonl {options} --report r.html -o out.jsonl"
        ));
        let report = read_report(&place, "r.html");
        let plan = place.ok(&format!("dedup {options} --explain-plan --json"));
        let plan: Value = serde_json::from_slice(&plan.out).unwrap();
        let plan = plan.get("plan").unwrap_or(&plan);
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        let mut at_threshold = false;
        for point in plan["recall"].as_array().unwrap() {
            let similarity = point["similarity"].as_f64().unwrap();
            let recall = rounded(point["recall"].as_f64().unwrap());
            let hundredth = (similarity * 100.0).round() as usize;
            if (similarity * 100.0 - hundredth as f64).abs() < 1e-9 {
                assert_eq!(
                    report["plan"]["curve"][hundredth], recall,
                    "{options} {similarity}"
                );
            }
            if Some(similarity) == plan["candidate_threshold"].as_f64() {
                assert_eq!(report["plan"]["recall_at_threshold"], recall, "{options}");
                at_threshold = true;
            }
        }
        assert!(at_threshold, "{options}: {plan}");
        assert_eq!(report["summary"]["seconds"], done["seconds"], "{options}");
    }
    let speed = |bytes: f64, seconds: f64| (seconds > 0.05).then(|| bytes / seconds);
    let summary = read_report(&place, "r.html")["summary"].clone();
    let expected = speed(
        summary["bytes"].as_f64().unwrap(),
        summary["seconds"].as_f64().unwrap(),
    );
    assert_eq!(summary["bytes_per_second"].as_f64(), expected);
}
