//! Evaluation against labels: pairs, groups and clusters.

use serde_json::{Value, json};

use crate::support::{Numbers, Place, gzip, read_parquet, write_parquet, zstd};

/// Returns edited and unrelated pairs as text, text, label, kind.
fn pairs(count: usize) -> Vec<[String; 4]> {
    let mut numbers = Numbers::new(11);
    let mut pairs = Vec::new();
    for at in 0..count {
        let text = numbers.text([8, 30, 90][at % 3]);
        let edits = at % 5;
        let edited = numbers.edited(&text, edits);
        let kind = if edits > 2 { "heavy" } else { "light" };
        pairs.push([text.clone(), edited, "1".to_owned(), kind.to_owned()]);
        let other = numbers.text(30);
        pairs.push([text, other, "0".to_owned(), "other".to_owned()]);
    }
    pairs
}

fn as_jsonl(pairs: &[[String; 4]]) -> String {
    pairs
        .iter()
        .map(|[a, b, label, kind]| {
            let label: i32 = label.parse().unwrap();
            format!(
                "{}\n",
                json!({ "a": a, "b": b, "label": label, "kind": kind })
            )
        })
        .collect()
}

fn as_csv(pairs: &[[String; 4]]) -> String {
    let rows = pairs
        .iter()
        .map(|[a, b, label, kind]| format!("\"{a}\",\"{b}\",{label},{kind}\n"));
    std::iter::once("a,b,label,kind\n".to_owned())
        .chain(rows)
        .collect()
}

fn evaluation(place: &Place, line: &str) -> Value {
    let ran = place.ok(&format!("{line} --json --quiet"));
    assert!(ran.err.is_empty(), "{}", ran.err);
    let mut value: Value = serde_json::from_slice(&ran.out).unwrap();
    value.as_object_mut().unwrap().remove("seconds");
    value
}

#[test]
fn every_format_gives_the_same_figures() {
    let place = Place::new();
    let pairs = pairs(24);
    place.write("p.jsonl", as_jsonl(&pairs));
    place.write("p.csv", as_csv(&pairs));
    place.write("p.jsonl.gz", gzip(as_jsonl(&pairs).as_bytes()));
    place.write("p.csv.zst", zstd(as_csv(&pairs).as_bytes()));
    let column = |at: usize| pairs.iter().map(|row| &*row[at]).collect();
    let columns = ["a", "b", "label", "kind"];
    let columns: Vec<_> = columns.into_iter().zip((0..4).map(column)).collect();
    write_parquet(&place.path("p.parquet"), &columns);
    let expected = evaluation(&place, "eval p.jsonl --kind kind");
    assert_eq!(expected["labelled"]["similar"], 24);
    assert_eq!(expected["labelled"]["units"], 24);
    for name in ["p.csv", "p.jsonl.gz", "p.csv.zst", "p.parquet"] {
        assert_eq!(
            evaluation(&place, &format!("eval {name} --kind kind")),
            expected,
            "{name}"
        );
    }
    let tsv = as_csv(&pairs).replace('"', "").replace(',', "\t");
    place.write("p.tsv", &tsv);
    assert_eq!(evaluation(&place, "eval p.tsv --kind kind"), expected);
    let numbered = tsv.split_once('\n').unwrap().1;
    place.write("n.tsv", numbered);
    let line = "eval n.tsv --no-header --a 1 --b 2 --label 3 --kind 4";
    assert_eq!(evaluation(&place, line), expected);
    let gb = encoding_rs::GB18030.encode("a,b,label\n今晚有讲座,今晚有講座,1\n今晚有讲座,明天,0\n");
    place.write("gb.csv", gb.0);
    let figures = evaluation(&place, "eval gb.csv --encoding gb18030");
    assert_eq!(
        figures["settings"][0]["points"][19]["method"]["f1"]["value"],
        1.0
    );
}

#[test]
fn rows_sides_and_threads_do_not_matter() {
    let place = Place::new();
    let mut pairs = pairs(30);
    place.write("p.jsonl", as_jsonl(&pairs));
    let line = |name| format!("eval {name} --method auto,simhash --kind kind");
    let expected = evaluation(&place, &line("p.jsonl"));
    for threads in [1, 2, 8] {
        let line = format!("{} --threads {threads}", line("p.jsonl"));
        assert!(evaluation(&place, &line) == expected, "{threads}");
    }
    pairs.reverse();
    pairs.iter_mut().step_by(2).for_each(|row| row.swap(0, 1));
    place.write("turned.jsonl", as_jsonl(&pairs));
    assert!(evaluation(&place, &line("turned.jsonl")) == expected);
    let other = evaluation(&place, &format!("{} --seed 2", line("p.jsonl")));
    assert_ne!(other["settings"], expected["settings"]);
}

#[test]
fn recall_against_distance_is_one_command() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(40)));
    let figures = evaluation(&place, "eval p.jsonl --method simhash --distance 12");
    let setting = &figures["settings"][0];
    assert_eq!(setting["sweep"], "distance");
    let points = setting["points"].as_array().unwrap();
    assert_eq!(points.len(), 13);
    let value = |point: &Value, figure: &str| point["method"][figure]["value"].as_f64().unwrap();
    assert!(points.is_sorted_by(|a, b| value(a, "recall") <= value(b, "recall")));
    assert_eq!(points[3]["cut"], 3.0);
    // A run finds the same pairs at this distance.
    let texts: Vec<_> = pairs(40)
        .into_iter()
        .enumerate()
        .flat_map(|(at, [a, b, ..])| [(format!("{at}a"), a), (format!("{at}b"), b)])
        .collect();
    place.write("texts.jsonl", crate::support::corpus_jsonl(&texts));
    let line = "pairs texts.jsonl --method simhash --verify none --distance 3 --all --quiet";
    let found = place.ok(line);
    let partners = found.text().lines().skip(1).filter(|row| {
        let mut ids = row.split('\t').map(|id| id.trim_end_matches(['a', 'b']));
        ids.next() == ids.next()
    });
    let counts = &points[3]["method"]["counts"];
    let all =
        counts["true_positives"].as_u64().unwrap() + counts["false_positives"].as_u64().unwrap();
    assert_eq!(partners.count() as u64, all);
}

#[test]
fn table_marks_the_best_row() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(20)));
    let ran = place.ok("eval p.jsonl --kind kind");
    let text = ran.text();
    assert!(
        text.starts_with("56 texts: 20 pairs similar, 20 not\n"),
        "{text}"
    );
    assert!(text.contains("intervals: 95 % of 1,000 resamples of 20 units"));
    let best: Vec<_> = text.lines().filter(|line| line.starts_with('*')).collect();
    assert_eq!(best.len(), 1);
    assert!(best[0].ends_with("<- best"), "{text}");
    assert!(text.contains("  by length at threshold ") && text.contains("  by kind at threshold "));
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    assert!(ran.err.ends_with(" s\n"), "{}", ran.err);
    let bare = place.ok("eval p.jsonl --resamples 0 --quiet");
    assert!(!bare.text().contains('(') && bare.err.is_empty());
}

#[test]
fn grades_words_and_ids() {
    let place = Place::new();
    place.write(
        "grades.csv",
        "a,b,j\none two three,one two three four,0.9\none two three,one two,.6\nfive six,seven eight,-1\n",
    );
    let figures = evaluation(
        &place,
        "eval grades.csv --label j --positive 0.8 --negative -0.5",
    );
    let labelled = &figures["labelled"];
    assert_eq!(
        (
            &labelled["similar"],
            &labelled["different"],
            &labelled["ungraded"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    let ran = place.ok("eval grades.csv --label j --positive 0.8 --negative 0.5 --quiet");
    assert!(ran.text().contains("; 1 between the two grades left out"));
    place.write(
        "ids.tsv",
        "a\tb\tlabel\nx\t2\tduplicate\n2\tx\tDUP\nx\ty\tDifferent\n",
    );
    place.write(
        "corpus.jsonl",
        "{\"id\":\"x\",\"text\":\"one two three\"}\n{\"id\":2,\"text\":\"ONE two three\"}\n{\"id\":\"y\",\"text\":\"other words\"}\n{\"id\":\"z\",\"text\":\"\"}\n",
    );
    for (line, told) in [("", true), (" --corpus corpus.jsonl", false)] {
        let ran = place.ok(&format!("eval ids.tsv{line} --quiet"));
        assert_eq!(ran.err.contains("--corpus FILE"), told, "{}", ran.err);
    }
    let ran = place.ok("eval ids.tsv --corpus corpus.jsonl --quiet");
    let text = ran.text();
    assert!(
        text.starts_with("3 texts: 1 pair similar, 1 not; 1 row repeats a pair"),
        "{text}"
    );
    assert!(text.contains("1.000"));
}

#[test]
fn groups_by_row_and_by_list_are_the_same() {
    let place = Place::new();
    let mut numbers = Numbers::new(3);
    let (mut rows, mut lists) = (String::new(), String::new());
    for group in 0..25 {
        let text = numbers.text(20);
        let texts: Vec<_> = (0..group % 4 + 1)
            .map(|edits| numbers.edited(&text, edits))
            .collect();
        for text in &texts {
            rows += &format!("{}\n", json!({ "group": group, "text": text }));
        }
        lists += &format!(
            "{}\n",
            json!({ "group": group.to_string(), "texts": texts })
        );
    }
    place.write("rows.jsonl", rows);
    place.write("lists.jsonl", lists);
    let by_rows = evaluation(&place, "eval rows.jsonl --groups --method auto,simhash");
    let by_lists = evaluation(
        &place,
        "eval lists.jsonl --texts texts --method auto,simhash",
    );
    assert_eq!(by_rows, by_lists);
    let texts = by_rows["labelled"]["texts"].as_u64().unwrap();
    let similar = by_rows["labelled"]["similar"].as_u64().unwrap();
    let different = by_rows["labelled"]["different"].as_u64().unwrap();
    assert_eq!(similar + different, texts * (texts - 1) / 2);
    assert_eq!(by_rows["settings"][0]["points"][0]["cut"], 0.3);
    let read = "eval lists.jsonl --texts group";
    place.refused(read, &["lists.jsonl:1", "`group` is a string, not a list"]);
}

#[test]
fn every_method_and_measure_is_measured() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(10)));
    let line = "eval p.jsonl --method auto,minhash,bottomk,join,simhash --verify \
                jaccard,containment,cosine,levenshtein,indel,lcs --recipe default --recipe words-1 \
                --resamples 0";
    let figures = evaluation(&place, line);
    let settings = figures["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 60);
    for setting in settings {
        assert!(setting["best"].is_u64(), "{setting}");
        assert!(setting["points"][0]["method"]["f1"]["interval"].is_null());
    }
    let line = "eval p.jsonl --method auto,minhash,bottomk,simhash,sentences --verify none";
    assert_eq!(
        evaluation(&place, line)["settings"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    let ran = place.ok("eval p.jsonl --method exact,sentences --quiet");
    assert!(
        ran.text().contains("default-1, exact\n") && ran.text().contains("default-1, sentences\n")
    );
    // There are too few slots for the lowest thresholds.
    let ran = place.ok("eval p.jsonl --method minhash --set minhash.slots=16 --quiet");
    assert!(ran.text().contains("no plan"), "{}", ran.text());
}

/// The method of the articles, and the pairs that its candidates miss.
#[test]
fn blocks_of_fingerprints_are_measured() {
    let place = Place::new();
    let (mut labels, mut texts) = (String::from("a,b,label\n"), String::new());
    for (at, [a, b, label, _]) in pairs(60).iter().enumerate() {
        labels.push_str(&format!("a{at},b{at},{label}\n"));
        texts.push_str(&format!(
            "{}\n{}\n",
            json!({"id": format!("a{at}"), "text": a}),
            json!({"id": format!("b{at}"), "text": b})
        ));
    }
    place.write("labels.csv", labels);
    place.write("texts.jsonl", texts);
    let by = "--method simhash --candidates blocks --verify levenshtein";
    let line = format!("eval labels.csv --corpus texts.jsonl {by} --resamples 0");
    let figures = evaluation(&place, &line);
    assert_eq!(figures["settings"][0]["blocks"], 4);
    let points = figures["settings"][0]["points"].as_array().unwrap();
    let point = points.iter().find(|point| point["cut"] == 0.8).unwrap();
    let found = |by: &str| point[by]["counts"]["true_positives"].as_u64().unwrap();
    assert!(
        0 < found("method") && found("method") < found("measure"),
        "{point}"
    );
    // A run lists the pairs that are found.
    let listed = place.ok(&format!("pairs texts.jsonl --all {by} --threshold 0.8"));
    let labelled = crate::support::rows(listed.text());
    let labelled = labelled.iter().filter(|row| {
        let is_pair = row[0][1..] == row[1][1..];
        is_pair && row[0][1..].parse::<usize>().unwrap() % 2 == 0
    });
    assert_eq!(labelled.count() as u64, found("method"));
    let ran = place.ok(&format!("{line} --quiet"));
    let name = "default-1, simhash, levenshtein by characters, sharing one of 4 blocks\n";
    assert!(ran.text().contains(name), "{}", ran.text());
    for line in [
        "--candidates blocks",
        "--candidates blocks --method simhash",
    ] {
        place.refused(
            &format!("eval labels.csv --corpus texts.jsonl {line}"),
            &["--candidates is for fingerprints that are verified"],
        );
    }
}

#[test]
fn undefined_figures_are_null() {
    let place = Place::new();
    place.write(
        "p.csv",
        "a,b,label\none two,three four,1\nfive six,seven eight,0\n",
    );
    let figures = evaluation(&place, "eval p.csv");
    let point = &figures["settings"][0]["points"][19]["method"];
    assert_eq!(
        point["precision"],
        json!({ "value": null, "interval": null })
    );
    assert_eq!(point["recall"]["value"], 0.0);
    let ran = place.ok("eval p.csv --quiet");
    assert!(!ran.text().contains("NaN"));
}

#[test]
fn curves_are_drawn_and_tabled() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(20)));
    place.ok("eval p.jsonl --method simhash,minhash --csv points.csv --svg curves.svg");
    let csv = place.read("points.csv");
    assert!(csv.starts_with("recipe,method,measure,open,cut,by,found,wrong,missed,precision,"));
    assert!(csv.contains("default-1,simhash,none,distance,3,method,"));
    assert_eq!(
        csv.lines().filter(|line| line.ends_with(",true")).count(),
        4
    );
    let svg = place.read("curves.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("prefers-color-scheme: dark") && svg.matches("<polyline").count() >= 6);
    place.ok("eval p.jsonl --csv points.parquet");
    let best = read_parquet(&place.path("points.parquet"), "best");
    assert_eq!(best.iter().filter(|best| *best == "true").count(), 2);
}

#[test]
fn clusters_against_true_ones() {
    let place = Place::new();
    place.write(
        "true.tsv",
        "id\tcluster\na\t1\nb\t1\nc\t2\nd\t2\ne\t2\nf\t3\n",
    );
    place.write(
        "found.tsv",
        "id\tcluster\trepresentative\na\tx\ta\nb\tx\ta\nc\ty\tc\nd\ty\tc\n",
    );
    let ran = place.ok("eval true.tsv --clusters found.tsv --quiet");
    let text = ran.text();
    assert!(
        text.starts_with(
            "6 documents; 2 clusters predicted, 2 true (with two or more documents); 1 the same in both\n"
        ),
        "{text}"
    );
    let figures = evaluation(&place, "eval true.tsv --clusters found.tsv --documents 10");
    let value = |of: &str, figure: &str| figures[of][figure]["value"].as_f64().unwrap();
    assert_eq!(
        (value("pairwise", "precision"), value("pairwise", "recall")),
        (1.0, 0.5)
    );
    assert_eq!(value("b_cubed", "precision"), 1.0);
    // c and d lack one of three documents, e lacks two of three, and the other seven lack none.
    assert!(
        (value("b_cubed", "recall") - (7.0 + 2.0 / 3.0 * 2.0 + 1.0 / 3.0) / 10.0).abs() < 1e-12
    );
    assert_eq!(value("exact_set", "f1"), 0.5);
    assert_eq!(
        (&figures["documents"], &figures["in_predicted"]),
        (&json!(10), &json!(4))
    );
    let refused = |line: &str, said: &[&str]| place.refused(line, said);
    refused(
        "eval true.tsv --clusters found.tsv --documents 5",
        &["is 5, but", "have 6"],
    );
    place.write("twice.tsv", "id\tcluster\na\t1\nb\t1\na\t2\n");
    refused(
        "eval true.tsv --clusters twice.tsv",
        &["twice.tsv:4", "'a' is already in twice.tsv:2"],
    );
    refused(
        "eval true.tsv found.tsv --clusters found.tsv",
        &["compares two tables"],
    );
    for option in [
        "--method simhash",
        "--svg x.svg",
        "--text t",
        "--id-row",
        "--kind k",
    ] {
        let line = format!("eval true.tsv --clusters found.tsv {option}");
        refused(&line, &["cannot be used with"]);
    }
    place.write("none.tsv", "id\tcluster\n");
    refused(
        "eval none.tsv --clusters found.tsv",
        &["none.tsv has no rows"],
    );
}

#[test]
fn dedup_outputs_can_be_scored() {
    let place = Place::new();
    let corpus = Numbers::new(5).corpus(200);
    place.write("docs.jsonl", crate::support::corpus_jsonl(&corpus));
    place.ok("dedup docs.jsonl --clusters true.tsv --method join --threshold 0.6 --quiet");
    place.ok("dedup docs.jsonl --clusters found.parquet --method simhash --distance 6 --quiet");
    let figures = evaluation(
        &place,
        "eval true.tsv --clusters found.parquet --documents 200",
    );
    assert_eq!(figures["documents"], 200);
    let recall = figures["b_cubed"]["recall"]["value"].as_f64().unwrap();
    assert!((0.5..1.0).contains(&recall), "{recall}");
}

#[test]
fn faulty_labelled_files_are_refused_by_place() {
    let place = Place::new();
    let head = "{\"a\":\"x y\",\"b\":\"x z\",\"label\":1}\n{\"a\":\"u\",\"b\":\"v\",\"label\":0}\n";
    for (row, said) in [
        (
            r#"{"a":"x","label":1}"#,
            "p.jsonl:3: the field `b` is missing",
        ),
        (
            r#"{"a":"x","b":"  ","label":1}"#,
            "p.jsonl:3: the field `b` is empty",
        ),
        (
            r#"{"a":"x","b":null,"label":1}"#,
            "p.jsonl:3: the field `b` is empty",
        ),
        (
            r#"{"a":7,"b":"x","label":1}"#,
            "p.jsonl:3: the field `a` is the number 7, not a string",
        ),
        (
            r#"{"a":"x","b":"w"}"#,
            "p.jsonl:3: the field `label` is missing",
        ),
        (
            r#"{"a":"x","b":"w","label":0.5}"#,
            "p.jsonl:3: the label in field `label` is '0.5'",
        ),
        (
            r#"{"a":"x","b":"w","label":"maybe"}"#,
            "p.jsonl:3: the label in field `label` is 'maybe'",
        ),
        (
            r#"{"a":"x z","b":"x y","label":0}"#,
            "p.jsonl:3: the pair is labelled not similar, but similar in p.jsonl:1",
        ),
        ("{", "p.jsonl:3: "),
    ] {
        place.write("p.jsonl", format!("{head}{row}\n"));
        place.refused("eval p.jsonl", &[said]);
    }
    place.write("p.csv", "a,b,label\nx y,x z,1\nu,,0\n");
    place.refused("eval p.csv", &["p.csv:3: the field `b` is empty"]);
    place.refused("eval p.csv --b c", &["p.csv", "no column `c`"]);
    place.write("one.csv", "a,b,label\nx y,x z,1\nu v,u v w,1\n");
    place.refused(
        "eval one.csv",
        &["one.csv: all 2 labelled pairs are similar", "need"],
    );
    place.write("empty.csv", "a,b,label\n");
    place.refused("eval empty.csv", &["empty.csv has no rows"]);
    place.write("empty.jsonl", "");
    place.refused("eval empty.jsonl", &["empty.jsonl has no rows"]);
    place.write("between.csv", "a,b,label\nx,y,0.6\n");
    place.refused(
        "eval between.csv --positive 0.8 --negative 0.5",
        &["there is no labelled pair"],
    );
    place.refused(
        "eval one.csv --positive 0.8 --negative 0.5",
        &["all 2 labelled pairs are similar"],
    );
    place.write("grade.csv", "a,b,label\nx,y,high\n");
    place.refused(
        "eval grade.csv --positive 0.8 --negative 0.5",
        &["grade.csv:2: the grade in field `label` is 'high', not a number"],
    );
    place.write("ids.csv", "a,b,label\nx,y,1\nx,q,0\np,x,0\n");
    place.write("docs.csv", "id,text\nx,one\ny,two\n");
    place.refused(
        "eval ids.csv --corpus docs.csv",
        &["ids.csv:3: no document of docs.csv has the id 'q' (2 ids are unknown)"],
    );
    place.write("docs.csv", "id,text\nx,one\ny,two\nx,three\n");
    place.refused(
        "eval ids.csv --corpus docs.csv",
        &[
            "docs.csv:4: the id 'x' is already in docs.csv:2",
            "'docs.csv:1' or 'docs.csv:3'",
        ],
    );
    place.write("plain.txt", "x\n");
    place.refused("eval plain.txt", &["plain text"]);
    place.write("groups.csv", "group,text\ng,x y\ng,x z\n");
    place.refused(
        "eval groups.csv --groups",
        &["all 1 labelled pairs are similar"],
    );
}

#[test]
fn options_without_effect_are_refused() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(5)));
    for (options, said) in [
        ("--distance 5", "--distance 5 is for fingerprints"),
        ("--sentences 2", "--sentences 2 is for --method sentences"),
        ("--unit words", "--unit is for --verify levenshtein"),
        (
            "--method exact --verify cosine",
            "--verify has no effect with --method exact",
        ),
        ("--positive 0.8", "--negative"),
        ("--positive 0.5 --negative 0.5", "must be below"),
        ("--text body", "--text is for groups and for --corpus"),
        ("--features f", "--features f is not for labelled texts"),
        ("--documents 5", "--clusters"),
        ("--groups --kind k", "cannot be used with"),
        ("--groups --label k", "cannot be used with"),
        ("--group g", "--group g is for groups"),
        ("--id key", "--id and --id-row are for --corpus"),
        (
            "--method simhash --from 0.5",
            "--from 0.5 is for thresholds",
        ),
        (
            "--method simhash --distance 64",
            "64 is not below the 64 bits",
        ),
        ("--csv - --json", "standard output"),
        ("--recipe nothing", "no recipe named 'nothing'"),
        ("--from 0", "above 0"),
    ] {
        place.refused(&format!("eval p.jsonl {options}"), &[said]);
    }
}

#[test]
fn tuning_makes_a_recipe_that_runs() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(100)));
    let ran = place.ok("tune p.jsonl -o mine.toml --quiet");
    let text = ran.text();
    assert!(ran.err.is_empty(), "{}", ran.err);
    assert!(
        text.contains("half for choosing: 50 similar, 50 not; half held back: 50 similar, 50 not"),
        "{text}"
    );
    assert_eq!(text.matches("<- chosen").count(), 1);
    assert!(
        text.contains("  untuned ") && text.contains("  runner-up "),
        "{text}"
    );
    let command = text.lines().last().unwrap();
    let toml = place.read("mine.toml");
    assert!(toml.contains(command) && toml.contains("# held back: precision "));
    place.write(
        "docs.jsonl",
        crate::support::corpus_jsonl(&Numbers::new(5).corpus(50)),
    );
    let line = command.strip_prefix("lookalike ").unwrap();
    let line = line
        .replace("IN", "docs.jsonl")
        .replace("OUT", "kept.jsonl");
    let summary = place.summary(&line);
    assert_eq!(summary["documents"], 50);

    let line = "tune p.jsonl --json --quiet --goal precision>=0.99";
    let tuned: Value = serde_json::from_slice(&place.ok(line).out).unwrap();
    let settings = tuned["settings"].as_array().unwrap();
    let chosen = &settings[tuned["chosen"].as_u64().unwrap() as usize];
    assert_eq!(chosen["is_as_good"], true);
    assert!(chosen["counts"]["false_positives"].as_u64() <= Some(1));
    assert!(settings.len() > 40 && tuned["goal"] == "precision>=0.99");
    assert!(tuned["held_back"]["megabytes_per_second"].as_f64().unwrap() > 0.0);
    place.write("again.toml", tuned["recipe"].as_str().unwrap());
    let id = place.ok("recipe again.toml");
    assert!(id.text().contains(chosen["recipe_id"].as_str().unwrap()));
    // With the reported threshold it finds the reported result.
    let line = format!(
        "eval p.jsonl --recipe again.toml --method {} --verify {} --resamples 0",
        chosen["method"].as_str().unwrap(),
        chosen["measure"].as_str().unwrap()
    );
    assert!(evaluation(&place, &line)["settings"][0]["best"].is_u64());
}

#[test]
fn tuning_keeps_the_files_of_a_recipe_readable() {
    let place = Place::new();
    let pairs = pairs(40);
    place.write("p.jsonl", as_jsonl(&pairs));
    let texts: Vec<&str> = pairs.iter().map(|[a, ..]| &a[..]).collect();
    place.write("docs.txt", texts.join("\n"));
    place.write("base/stop.txt", "word7\n");
    place.write("stop.txt", "word7\n");
    place.ok("idf docs.txt --recipe words-1 --set filter.stopwords=stop.txt -o base/idf.tsv");
    let recipe = place.ok("recipe words-1 --set filter.stopwords=stop.txt");
    let recipe = recipe.text().replace(
        "weights = \"frequency\"",
        "weights = \"tfidf\"\ntable = \"idf.tsv\"",
    );
    place.write("base/base.toml", recipe);
    std::fs::create_dir(place.path("made")).unwrap();
    for output in ["made/mine.toml", "mine.toml", "base/mine.toml"] {
        let line =
            format!("tune p.jsonl --recipe base/base.toml -o {output} --resamples 20 --json");
        let tuned: Value = serde_json::from_slice(&place.ok(&line).out).unwrap();
        let settings = tuned["settings"].as_array().unwrap();
        let tried = |recipe: &str, method: &str, measure: &str| {
            let is = |it: &&Value| {
                it["recipe"] == recipe && it["method"] == method && it["measure"] == measure
            };
            settings.iter().find(is).is_some()
        };
        assert!(tried("words-1+", "bottomk", "none"));
        for weights in ["", "-levels", "-frequency", "-binary"] {
            assert!(
                tried(&format!("words-1+{weights}"), "simhash", "none"),
                "{weights}"
            );
        }
        assert!(tried("words-1+-levels", "auto", "cosine"));
        assert!(
            tried("words-3-binary", "simhash", "none")
                && !tried("words-3-levels", "simhash", "none")
        );
        let id = place.ok(&format!("recipe {output}"));
        let chosen = &settings[tuned["chosen"].as_u64().unwrap() as usize];
        assert!(id.text().contains(chosen["recipe_id"].as_str().unwrap()));
        assert!(place.read(output).contains("stop.txt"));
    }
    assert!(place.read("base/mine.toml").contains("[\"stop.txt\"]"));
    assert!(place.read("mine.toml").contains("[\"base/stop.txt\"]"));
}

#[test]
fn tuning_does_not_depend_on_threads() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(20)));
    let settings = |threads: usize| {
        let line = format!("tune p.jsonl --json --quiet --resamples 100 --threads {threads}");
        let mut tuned: Value = serde_json::from_slice(&place.ok(&line).out).unwrap();
        let held = tuned["held_back"]["metrics"].take();
        (tuned["settings"].take(), tuned["chosen"].take(), held)
    };
    let expected = settings(1);
    assert!(settings(2) == expected && settings(8) == expected);
}

#[test]
fn impossible_tunings_are_refused() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(20)));
    place.write("toml.toml", "x");
    for (options, said) in [
        ("-o mine.json", "give it the extension .toml"),
        ("--goal recall", "give f1, or precision>="),
        ("--goal precision>=1.5", "above 0 and at most 1"),
        ("--recipe 1e0ng", "has the features of another tool"),
        (
            "--set simhash.weights=given --set simhash.table=toml.toml",
            "toml.toml:1: a line is a term, a tab, its weight",
        ),
    ] {
        place.refused(&format!("tune p.jsonl {options}"), &[said]);
    }
    place.write(
        "few.csv",
        "a,b,label\none two,one two three,1\nfour five,six seven,0\n",
    );
    place.refused(
        "tune few.csv",
        &["2 units of connected texts", "one held back"],
    );
    place.write("some.jsonl", as_jsonl(&pairs(48)));
    let said = place.ok("tune some.jsonl --resamples 50").err;
    assert!(
        said.contains("only 24 similar and 24 other pairs"),
        "{said}"
    );
    place.write("labels.toml", as_jsonl(&pairs(20)));
    place.refused(
        "tune labels.toml --format jsonl -o labels.toml",
        &["labels.toml"],
    );
    assert_eq!(place.read("labels.toml"), as_jsonl(&pairs(20)));
    place.refused("eval p.jsonl --csv p.jsonl", &["p.jsonl"]);
    place.refused("eval p.jsonl --svg p.jsonl", &["p.jsonl"]);
    assert_eq!(place.read("p.jsonl"), as_jsonl(&pairs(20)));
}

/// All contradictory labels are reported at once. On request such pairs are dropped, or their first label
/// counts.
#[test]
fn contradictory_pairs_are_reported_or_resolved() {
    let place = Place::new();
    place.write(
        "l.csv",
        "a,b,label\none two,one two three,1\nfour five,six,0\none two three,one two,0\n\
         seven,eight,0\nsix,four five,1\nseven,nine ten,1\nfour five,six,0\n",
    );
    let line = "eval l.csv --resamples 0";
    place.refused(
        line,
        &[
            "l.csv:4: the pair is labelled not similar, but similar in l.csv:2",
            "l.csv:6: the pair is labelled similar, but not similar in l.csv:3",
            "2 pairs have contradictory labels",
            "--contradictory drop",
        ],
    );
    let figures = |how: &str| {
        let read = evaluation(&place, &format!("{line} --contradictory {how}"));
        let of = |field: &str| read["labelled"][field].as_u64().unwrap();
        [
            of("similar"),
            of("different"),
            of("repeated"),
            of("contradictory"),
        ]
    };
    assert_eq!(figures("drop"), [1, 1, 1, 2]);
    assert_eq!(figures("first"), [2, 2, 1, 2]);
}

#[test]
fn outputs_overwrite_no_input_and_no_output() {
    let place = Place::new();
    place.write("p.jsonl", as_jsonl(&pairs(20)));
    let recipe = place.ok("recipe words-1").text().to_owned();
    place.write("mine.toml", &recipe);
    place.write("in.jsonl", "{\"id\":\"a\",\"text\":\"one two\"}\n");
    for line in [
        "eval p.jsonl --recipe mine.toml --csv mine.toml",
        "tune p.jsonl --recipe mine.toml -o mine.toml",
        "plant in.jsonl -o o.jsonl --labels mine.toml --recipe mine.toml",
        "pairs in.jsonl --recipe mine.toml -o mine.toml",
        "fingerprint in.jsonl --recipe mine.toml -o mine.toml",
        "segment in.jsonl --recipe mine.toml -o mine.toml",
        "idf in.jsonl --recipe mine.toml -o mine.toml",
        "dedup in.jsonl -o o.jsonl --removed mine.toml --recipe mine.toml",
    ] {
        place.refused(line, &["mine.toml", "the recipe of --recipe"]);
        assert_eq!(place.read("mine.toml"), recipe, "{line}");
    }
    place.refused(
        "eval p.jsonl --csv same.svg --svg same.svg",
        &["--csv and --svg", "same.svg"],
    );
    place.refused("eval p.jsonl --svg curves.png", &["curves.png", ".svg"]);
    place.refused("eval p.jsonl --csv -", &["--csv -", "give a file"]);
}

#[test]
fn tsv_ids_match_ids_of_other_tables() {
    let place = Place::new();
    let text = "one two three four five six";
    let document = |id: &str, text: &str| format!("{}\n", json!({ "id": id, "text": text }));
    place.write(
        "in.jsonl",
        ["a\tb", "c\nd", "e"].map(|id| document(id, text)).concat()
            + &document("q\\w", "seven eight nine ten"),
    );
    for table in ["c.tsv", "c.jsonl", "c.csv"] {
        place.ok(&format!("dedup in.jsonl -o o.jsonl --clusters {table}"));
    }
    for (predicted, truth) in [
        ("c.jsonl", "c.tsv"),
        ("c.tsv", "c.csv"),
        ("c.csv", "c.jsonl"),
    ] {
        let scores = evaluation(&place, &format!("eval {truth} --clusters {predicted}"));
        assert_eq!(scores["in_predicted"], scores["in_truth"]);
        assert_eq!(scores["documents"], scores["in_truth"], "{scores}");
        assert_eq!(scores["pairwise"]["f1"]["value"], 1.0, "{scores}");
    }
    place.write("l.tsv", "a\tb\tlabel\na\\tb\tc\\nd\t1\na\\tb\tq\\w\t0\n");
    let labels = evaluation(&place, "eval l.tsv --corpus in.jsonl");
    assert_eq!(labels["labelled"]["different"], 1);
}

#[test]
fn labels_of_a_corpus_are_judged_by_its_texts() {
    let place = Place::new();
    let texts = [
        ("x1", "one two three"),
        ("x2", "one two three four"),
        ("x3", "five six seven"),
        ("x4", "one two three"),
    ];
    let rows = texts.map(|(id, text)| format!("{}\n", json!({ "id": id, "text": text })));
    place.write("corpus.jsonl", rows.concat());
    let labels = |rows: &str| {
        place.write("l.csv", format!("a,b,label\n{rows}"));
        "eval l.csv --corpus corpus.jsonl --resamples 0"
    };
    place.refused(
        labels("x1,x2,1\nx1,x3,0\nx4,x2,0\n"),
        &["l.csv:4", "l.csv:2", "not similar"],
    );
    let read = evaluation(&place, labels("x1,x2,1.0\nx2,x4,1\nx1,x3,0.0\n"));
    assert_eq!(read["labelled"]["repeated"], 1);
    assert_eq!(read["labelled"]["texts"], 3);
    place.write("twice.jsonl", rows.concat() + &rows[1]);
    place.refused(
        "eval l.csv --corpus twice.jsonl",
        &["twice.jsonl:5", "'x2'", "twice.jsonl:2"],
    );
    // The format option applies to the labels; the corpus is recognised by its own name.
    place.write("labels", "a,b,label\nx1,x2,1\nx1,x3,0\n");
    evaluation(&place, "eval labels --format csv --corpus corpus.jsonl");
}

#[test]
fn rows_without_a_kind_form_their_own_kind() {
    let place = Place::new();
    place.write(
        "p.csv",
        "a,b,label,kind\none two,one two,1,typos\none two,three four,0,\nfive six,five six,1,0.5\n",
    );
    let read = evaluation(&place, "eval p.csv --kind kind --resamples 0");
    let named: Vec<_> = read["settings"][0]["breakdown"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["by"] == "kind")
        .flat_map(|one| one["classes"].as_array().unwrap())
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(named, ["(none)", "0.5", "typos"], "{read}");
    place.refused("eval p.csv --kind label2", &["label2"]);
    place.write(
        "q.csv",
        "a,b,label,kind\none two,one two,1,\none,three,0,\n",
    );
    place.refused("eval q.csv --kind kind", &["q.csv", "`kind`"]);
}

/// The labels follow nothing in the texts, so a result on one half need not hold on the other.
#[test]
fn goal_missed_on_test_half_is_reported() {
    let place = Place::new();
    let mut missed = 0;
    for seed in 0..6 {
        let mut numbers = Numbers::new(seed);
        let rows = (0..120).map(|at| {
            let text = numbers.text(20);
            let label = numbers.below(2);
            let row = json!({ "a": numbers.edited(&text, at % 7), "b": text, "label": label });
            format!("{row}\n")
        });
        place.write("p.jsonl", rows.collect::<String>());
        let ran = place.run("tune p.jsonl --goal precision>=0.58 --resamples 20 --json");
        if ran.code != Some(0) {
            continue;
        }
        let tuned: Value = serde_json::from_slice(&ran.out).unwrap();
        let held = &tuned["held_back"]["metrics"]["precision"]["value"];
        let is_missed = held.as_f64().unwrap() < 0.58;
        let is_told = ran.err.contains("missed on the half held back");
        assert_eq!(is_told, is_missed, "{held} {}", ran.err);
        missed += u32::from(is_missed);
    }
    assert!(missed > 0);
}
