//! Outputs and where they are written.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Numbers, Place, corpus_jsonl, gunzip, jsonl, read_parquet, unzstd};

fn small() -> Place {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([
            ("a", "one two three four"),
            ("b", "ONE two three four"),
            ("c", "something else entirely here"),
            ("d", "one, two, three, four"),
        ]),
    );
    place
}

/// Inputs without a row replace no output with content, unless that is allowed.
#[test]
fn empty_inputs_replace_nothing() {
    let place = small();
    place.ok("dedup in.jsonl -o out.jsonl --removed removed.tsv --report report.html");
    place.write("out.csv", "id,text\nold,text\n");
    place.write("mirror/empty.jsonl", "{\"id\": \"old\"}\n");
    let names = [
        "out.jsonl",
        "removed.tsv",
        "report.html",
        "out.csv",
        "mirror/empty.jsonl",
    ];
    let before = names.map(|name| place.read(name));
    place.write("empty.jsonl", "");
    place.write("blank.jsonl", "\n\n");
    place.write("header.csv", "id,text\n");
    for (arguments, input, replaced) in [
        (
            "empty.jsonl -o out.jsonl",
            "empty.jsonl has no row",
            "out.jsonl",
        ),
        (
            "blank.jsonl -o out.jsonl",
            "blank.jsonl has no row",
            "out.jsonl",
        ),
        ("header.csv -o out.csv", "header.csv has no row", "out.csv"),
        (
            "empty.jsonl -o new.jsonl --removed removed.tsv",
            "empty.jsonl has no row",
            "removed.tsv",
        ),
        (
            "empty.jsonl -o new.jsonl --report report.html",
            "empty.jsonl has no row",
            "report.html",
        ),
        (
            "empty.jsonl --against in.jsonl -o out.jsonl",
            "empty.jsonl has no row",
            "out.jsonl",
        ),
        (
            "empty.jsonl blank.jsonl -o out.jsonl",
            "none of the 2 inputs has a row",
            "out.jsonl",
        ),
        (
            "empty.jsonl -o mirror/",
            "empty.jsonl has no row",
            "mirror/empty.jsonl",
        ),
    ] {
        let replaced = format!("{replaced} would be replaced");
        place.refused(
            &format!("dedup {arguments}"),
            &[input, &replaced, "--allow-empty"],
        );
    }
    // Below a directory, each output is that of one input.
    for line in [
        "dedup empty.jsonl in.jsonl -o mirror/",
        "dedup in.jsonl empty.jsonl -o mirror/",
    ] {
        let words = [
            "empty.jsonl has no row",
            "mirror/empty.jsonl would be replaced",
        ];
        place.refused(line, &words);
        assert!(!place.has("mirror/in.jsonl"), "{line}");
    }
    assert_eq!(names.map(|name| place.read(name)), before);
    assert!(!place.has("new.jsonl"));
    // Neither a new output nor one without content loses anything.
    for _ in 0..2 {
        place.ok("dedup empty.jsonl -o new.jsonl");
        assert_eq!(place.read("new.jsonl"), "");
    }
    place.ok("dedup empty.jsonl -o -");
    place.ok("dedup empty.jsonl --dry-run");
    place.ok("dedup empty.jsonl -o out.jsonl --removed removed.tsv --allow-empty");
    assert_eq!(place.read("out.jsonl"), "");
    assert_eq!(place.read("removed.tsv").lines().count(), 1);
}

#[test]
fn removed_table_in_every_format() {
    let place = small();
    let tsv = "id\tkept\tsimilarity\tmethod\tthreshold\tcluster\tsource\trow\tkept_source\tkept_row\n\
               b\ta\t1\texact\t0.75\ta\tin.jsonl\t2\tin.jsonl\t1\n\
               d\ta\t1\texact\t0.75\ta\tin.jsonl\t4\tin.jsonl\t1\n";
    place.ok("dedup in.jsonl --removed r.tsv");
    assert_eq!(place.read("r.tsv"), tsv);
    place.ok("dedup in.jsonl --removed r.csv");
    assert_eq!(place.read("r.csv"), tsv.replace('\t', ","));
    place.ok("dedup in.jsonl --removed r.tsv.gz");
    assert_eq!(gunzip(&place.bytes("r.tsv.gz")), tsv.as_bytes());
    place.ok("dedup in.jsonl --removed r.csv.zst");
    assert_eq!(
        unzstd(&place.bytes("r.csv.zst")),
        tsv.replace('\t', ",").as_bytes()
    );
    place.ok("dedup in.jsonl --removed r.jsonl");
    let first: serde_json::Value =
        serde_json::from_str(place.read("r.jsonl").lines().next().unwrap()).unwrap();
    for (field, text) in [
        ("id", "b"),
        ("kept", "a"),
        ("method", "exact"),
        ("cluster", "a"),
        ("source", "in.jsonl"),
        ("kept_source", "in.jsonl"),
    ] {
        assert_eq!(first[field], text);
    }
    assert_eq!((&first["row"], &first["kept_row"]), (&2.into(), &1.into()));
    assert_eq!(
        (first["similarity"].as_f64(), first["threshold"].as_f64()),
        (Some(1.0), Some(0.75))
    );
    place.ok("dedup in.jsonl --removed r.parquet");
    assert_eq!(read_parquet(&place.path("r.parquet"), "id"), ["b", "d"]);
    assert_eq!(
        read_parquet(&place.path("r.parquet"), "threshold"),
        ["0.75", "0.75"]
    );
    let source = read_parquet(&place.path("r.parquet"), "source");
    assert_eq!(source, ["in.jsonl", "in.jsonl"]);
    assert_eq!(read_parquet(&place.path("r.parquet"), "row"), ["2", "4"]);
    assert_eq!(place.ok("dedup in.jsonl --removed -").text(), tsv);
}

#[test]
fn cluster_table_omits_single_documents() {
    let place = small();
    place.ok("dedup in.jsonl --clusters c.tsv");
    assert_eq!(
        place.read("c.tsv"),
        "id\tcluster\trepresentative\tsimilarity\tkept\tsource\trow\n\
         a\ta\ta\t1\ttrue\tin.jsonl\t1\nb\ta\ta\t1\tfalse\tin.jsonl\t2\n\
         d\ta\ta\t1\tfalse\tin.jsonl\t4\n"
    );
}

/// Equal texts in every format of the table: a, b and d are equal.
#[test]
fn pair_table_in_every_format() {
    let place = small();
    let header = "a\tb\tsimilarity\ta_source\ta_row\tb_source\tb_row\n";
    let [ab, ad, bd] = [("a", 1, "b", 2), ("a", 1, "d", 4), ("b", 2, "d", 4)]
        .map(|(a, at, b, to)| format!("{a}\t{b}\t1\tin.jsonl\t{at}\tin.jsonl\t{to}\n"));
    let tsv = format!("{header}{ab}{ad}");
    assert_eq!(place.ok("pairs in.jsonl").text(), tsv);
    assert_eq!(place.ok("pairs in.jsonl --distinct").text(), header);
    assert_eq!(
        place.ok("pairs in.jsonl --all").text(),
        format!("{tsv}{bd}")
    );
    place.refused("pairs in.jsonl --all --distinct", &["--all", "--distinct"]);
    place.ok("pairs in.jsonl -o p.csv");
    assert_eq!(place.read("p.csv"), tsv.replace('\t', ","));
    place.ok("pairs in.jsonl -o p.jsonl");
    assert_eq!(
        place.read("p.jsonl").lines().next(),
        Some(
            "{\"a\":\"a\",\"b\":\"b\",\"similarity\":1,\"a_source\":\"in.jsonl\",\"a_row\":1,\
             \"b_source\":\"in.jsonl\",\"b_row\":2}"
        )
    );
    place.ok("pairs in.jsonl -o p.parquet");
    let column = |name| read_parquet(&place.path("p.parquet"), name);
    assert_eq!(
        (column("b"), column("b_row")),
        (vec!["b".into(), "d".into()], vec!["2".into(), "4".into()])
    );
    let summary = place.summary("pairs in.jsonl -o p.tsv");
    assert_eq!(
        (&summary["pairs"], &summary["equal_texts"]),
        (&2.into(), &2.into())
    );
}

/// The same file twice: each row is a copy of its first reading, named by source and row.
#[test]
fn copies_in_two_files_are_paired() {
    let place = Place::new();
    let rows = jsonl([
        ("a", "one two three"),
        ("b", "four five six"),
        ("c", "seven eight"),
    ]);
    place.write("one.jsonl", format!("{rows}{{}}\n"));
    place.write(
        "two.csv",
        "id,text\na,one two three\nb,four five six\nc,seven eight\n",
    );
    let ran = place.run("pairs one.jsonl two.csv");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let expected = ["a", "b", "c"].into_iter().zip(1..);
    let expected =
        expected.map(|(id, row)| format!("{id}\t{id}\t1\tone.jsonl\t{row}\ttwo.csv\t{row}"));
    let listed: Vec<_> = ran.text().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(listed, expected.collect::<Vec<_>>());
    place.run("dedup one.jsonl two.csv --removed r.tsv");
    let removed = place.table("r.tsv");
    let places: Vec<_> = removed.iter().map(|row| row[6..].join(" ")).collect();
    assert_eq!(
        places,
        [
            "two.csv 1 one.jsonl 1",
            "two.csv 2 one.jsonl 2",
            "two.csv 3 one.jsonl 3"
        ]
    );
}

#[test]
fn components_connect_separate_clusters() {
    // A chain: neighbours reach 0.6, ends do not, so the third is kept.
    let words = |from: usize| {
        (from..from + 9)
            .map(|n| format!("w{n}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let place = Place::new();
    let texts = [
        words(0),
        words(2),
        words(4),
        "quite another text than these".to_owned(),
    ];
    let ids = ["a", "b", "c", "d"];
    place.write(
        "in.jsonl",
        jsonl(ids.into_iter().zip(texts.iter().map(String::as_str))),
    );
    place.ok("dedup in.jsonl --threshold 0.6 --components --clusters c.tsv -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "c", "d"]);
    let table = place.table("c.tsv");
    let shown: Vec<_> = table
        .iter()
        .map(|row| format!("{} {} {}", row[0], row[1], row[7]))
        .collect();
    assert_eq!(shown, ["a a a", "b a a", "c c a"]);
    let summary = place.summary("dedup in.jsonl --threshold 0.6 --components --dry-run");
    assert_eq!(
        (&summary["clusters"], &summary["components"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn annotated_output_has_all_rows() {
    let place = small();
    place.ok("dedup in.jsonl -o out.jsonl --annotate");
    let rows: Vec<serde_json::Value> = place
        .read("out.jsonl")
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        (&rows[0]["cluster"], &rows[0]["duplicate_of"]),
        (&"a".into(), &().into())
    );
    assert_eq!(
        (&rows[1]["cluster"], &rows[1]["duplicate_of"]),
        (&"a".into(), &"a".into())
    );
    assert_eq!(
        (rows[1]["similarity"].as_f64(), &rows[2]["similarity"]),
        (Some(1.0), &().into())
    );
    place.refused(
        "dedup in.jsonl --annotate --removed r.tsv",
        &["--annotate", "-o"],
    );
    place.write("in.csv", "id,text\na,x y z\nb,\"X y, z\"\n");
    place.ok("dedup in.csv -o out.csv --annotate");
    assert_eq!(
        place.read("out.csv"),
        "id,text,cluster,duplicate_of,similarity\na,x y z,a,,\nb,\"X y, z\",a,a,1\n"
    );
}

#[test]
fn dry_run_reports_all_and_writes_nothing() {
    let place = small();
    let before = place.names();
    let ran = place.ok("dedup in.jsonl -o out.jsonl --removed r.tsv --clusters c.tsv --dry-run");
    assert_eq!(place.names(), before);
    assert!(ran.out.is_empty());
    for word in [
        "4 documents",
        "removed          2 (50.0 %)",
        "nothing (--dry-run)",
    ] {
        assert!(ran.err.contains(word), "no '{word}' in:\n{}", ran.err);
    }
}

#[test]
fn summary_is_written_as_json() {
    let place = small();
    let summary = place.summary("dedup in.jsonl -o out.jsonl");
    for field in [
        "documents",
        "kept",
        "removed",
        "clusters",
        "rejected",
        "bytes",
        "seconds",
        "method",
        "threshold",
        "recipe",
    ] {
        assert!(summary.get(field).is_some(), "{field}");
    }
    assert_eq!(
        (&summary["documents"], &summary["kept"]),
        (&4.into(), &2.into())
    );
    assert_eq!(
        (&summary["removed"], &summary["clusters"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (&summary["method"], &summary["recipe"]),
        (&"auto".into(), &"default-1".into())
    );
    assert_eq!(summary["bytes"], place.bytes("in.jsonl").len());
    place.refused("dedup in.jsonl -o - --json", &["--json", "standard output"]);
    place.refused("pairs in.jsonl --json", &["--json", "-o"]);
    let pairs = place.summary("pairs in.jsonl -o p.tsv --all");
    assert_eq!(pairs["pairs"], 3);
}

#[test]
fn summary_names_the_next_step() {
    let place = small();
    let ran = place.ok("dedup in.jsonl -o out.jsonl --removed r.tsv");
    for word in [
        "equal after normalisation",
        "out.jsonl",
        "lookalike explain r.tsv ID in.jsonl",
    ] {
        assert!(ran.err.contains(word), "no '{word}' in:\n{}", ran.err);
    }
    assert!(!ran.err.contains('\u{1b}'));
    assert_eq!(place.ok("dedup in.jsonl -o out.jsonl --quiet").err, "");
}

#[test]
fn plan_is_shown_without_reading_inputs() {
    let place = Place::new();
    for command in ["dedup", "pairs"] {
        let ran = place.ok(&format!("{command} --explain-plan"));
        for word in [
            "25 bands x 5 rows",
            "default-1",
            "0.750",
            "<- threshold",
            "up to 64",
            "bytes",
        ] {
            assert!(ran.text().contains(word), "no '{word}' in:\n{}", ran.text());
        }
    }
    let plan = place.ok("dedup --explain-plan --json --threshold 0.9 --verify containment");
    let plan: serde_json::Value = serde_json::from_slice(&plan.out).unwrap();
    assert_eq!(
        (&plan["threshold"], &plan["measure"]),
        (&0.9.into(), &"containment".into())
    );
    assert!(plan["recall"].is_null() && plan["candidate_threshold"].is_null());
    let text = place.ok("dedup --explain-plan --threshold 0.9 --verify containment");
    for words in [
        "shared features / features of the smaller document >= 0.9\n",
        "all documents: every pair is found, whatever the lengths",
    ] {
        assert!(
            text.text().contains(words),
            "no '{words}' in:\n{}",
            text.text()
        );
    }
    let plan = "dedup --explain-plan --json --method minhash --threshold 0.9 --verify containment";
    let plan: serde_json::Value = serde_json::from_slice(&place.ok(plan).out).unwrap();
    assert_eq!(
        plan["candidate_threshold"].as_f64().map(|it| it > 0.818),
        Some(true)
    );
    assert!(plan["recall"].as_array().unwrap().len() > 5);
    let ran = place.ok("dedup --explain-plan --method simhash --distance 5");
    assert!(ran.text().contains("5 of 64 bits"), "{}", ran.text());
    let ran = place.ok("dedup --explain-plan --method join");
    assert!(ran.text().contains("every pair is found"), "{}", ran.text());
    place.ok("dedup --explain-plan --method exact");
    place.refused(
        "dedup --explain-plan --method minhash --threshold 0.01",
        &["0.01"],
    );
}

#[test]
fn rejected_rows_are_kept_byte_for_byte() {
    let place = Place::new();
    let bad = "{\"id\":\"x\"}\n{broken\n{\"id\":\"z\",\"text\":7}";
    place.write("in.jsonl", format!("{}{bad}", jsonl([("a", "b c d")])));
    let ran = place.run("dedup in.jsonl -o out.jsonl --rejected bad.jsonl");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(place.read("bad.jsonl"), format!("{bad}\n"));
    assert_eq!(place.ids("out.jsonl"), ["a"]);
    let ran = place.run("pairs in.jsonl --rejected bad.gz");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(
        gunzip(&place.bytes("bad.gz")),
        format!("{bad}\n").as_bytes()
    );
}

/// The bytes of every output are the same for any number of threads.
#[test]
fn outputs_do_not_depend_on_threads() {
    let place = Place::new();
    let corpus = Numbers::new(11).corpus(3000);
    let mut rows: Vec<String> = corpus_jsonl(&corpus)
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect();
    rows.insert(1500, "{\"id\":\"bad\"}\n".to_owned());
    place.write("in.jsonl", rows.concat());
    let outputs = [
        "out.jsonl",
        "r.tsv",
        "c.tsv",
        "bad.jsonl",
        "all.jsonl",
        "p.tsv",
    ];
    for method in ["auto", "simhash --distance 8"] {
        let run = |threads: usize| {
            let options = format!("--method {method} --threshold 0.7 --threads {threads} --quiet");
            let first = place.run(&format!(
                "dedup in.jsonl {options} -o out.jsonl --removed r.tsv --clusters c.tsv \
                 --components --rejected bad.jsonl"
            ));
            let second = place.run(&format!("dedup in.jsonl {options} -o all.jsonl --annotate"));
            let third = place.run(&format!("pairs in.jsonl {options} -o p.tsv"));
            assert_eq!(
                [first.code, second.code, third.code],
                [Some(1); 3],
                "{}",
                first.err
            );
            (outputs.map(|name| place.bytes(name)), first.err)
        };
        let one = run(1);
        assert!(one.0.iter().all(|bytes| bytes.len() > 10));
        for threads in [2, 8] {
            assert!(run(threads) == one, "{method} with {threads} threads");
        }
    }
}

/// A plan with inputs predicts the comparisons of a run: exactly, if all rows are in the sample.
#[test]
fn plan_predicts_the_number_of_comparisons() {
    let place = Place::new();
    let rows = |from: u32, to: u32| -> String {
        let text = |at: u32| {
            let words = (0..90).map(|word| match word {
                40 => format!("w{at} "),
                _ => format!("t{}x{word} ", at / 3),
            });
            format!(
                "{{\"id\":\"{at}\",\"text\":\"{}\"}}\n",
                words.collect::<String>()
            )
        };
        (from..to).map(text).collect()
    };
    place.write("in.jsonl", rows(0, 300));
    let plan = place.summary("pairs in.jsonl --explain-plan");
    let forecast = &plan["forecast"];
    assert_eq!(forecast["documents"], 300);
    assert_eq!(forecast["sampled"], 300);
    let compared = forecast["compared"].as_array().unwrap();
    let sum = |name: &str| -> f64 { compared.iter().map(|it| it[name].as_f64().unwrap()).sum() };
    let pairs = place.summary("pairs in.jsonl -o p.tsv --distinct");
    assert_eq!(
        sum("pairs") - sum("false_candidates"),
        pairs["pairs"].as_f64().unwrap()
    );
    assert_eq!(pairs["pairs"], 300);
    assert_eq!(sum("verified_pairs"), sum("sampled_pairs"));
    assert!(forecast["sampled_steps"].as_u64().unwrap() > 0);

    // Of many rows a sample is taken. Each text is in three rows that are far apart.
    place.write("many.jsonl", rows(0, 60_000));
    let plan = place.summary("pairs many.jsonl --explain-plan");
    let forecast = &plan["forecast"];
    assert_eq!(forecast["documents"], 60_000);
    let share = forecast["sampled_share"].as_f64().unwrap();
    assert!((0.1..0.25).contains(&share), "{share}");
    let compared = forecast["compared"].as_array().unwrap();
    let pairs: f64 = compared
        .iter()
        .map(|it| it["pairs"].as_f64().unwrap())
        .sum();
    assert!((45_000.0..75_000.0).contains(&pairs), "{pairs}");
    assert!(forecast["memory_bytes"].as_u64().unwrap() > 60_000 * 45);

    // A run that keeps few documents compares each one with these, not with everything that matches it.
    let alike = |to: u32| -> String {
        let template: String = (0..90).map(|word| format!("t{word} ")).collect();
        let row = |at| format!("{{\"id\":\"{at}\",\"text\":\"{template}w{at}\"}}\n");
        (0..to).map(row).collect()
    };
    place.write("alike.jsonl", alike(20_000));
    let compared = |command: &str| {
        let plan = place.summary(&format!("{command} alike.jsonl --explain-plan"));
        let compared = plan["forecast"]["compared"].as_array().unwrap().clone();
        let pairs = compared.iter().map(|it| it["pairs"].as_f64().unwrap());
        pairs.sum::<f64>()
    };
    let (all, to_decide) = (compared("pairs"), compared("dedup"));
    // Of the pairs of the sample, a part is compared.
    let plan = place.summary("pairs alike.jsonl --explain-plan --verify levenshtein");
    let route = &plan["forecast"]["compared"][0];
    assert!(route["verified_pairs"].as_u64() <= Some(4096), "{route}");
    assert!(route["sampled_pairs"].as_u64() > Some(1_000_000), "{route}");
    assert!((1.5e8..2.5e8).contains(&all), "{all}");
    assert!((15_000.0..40_000.0).contains(&to_decide), "{to_decide}");

    let ran = place.ok("dedup in.jsonl --explain-plan");
    assert!(
        ran.text()
            .contains("Prediction for 300 documents, from a sample of 300"),
        "{}",
        ran.text()
    );
    place.refused("dedup missing.jsonl --explain-plan", &["missing.jsonl"]);
    place.refused("dedup - --explain-plan", &["standard input"]);
}

/// Returns the names of all files below a directory, hidden ones first.
fn names_below(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A run that is killed while it writes a directory of outputs leaves complete files under temporary names, and the next
/// run removes them.
#[test]
fn leftovers_of_a_killed_run_in_a_directory_are_removed() {
    let place = Place::new();
    let rows = |at: usize| corpus_jsonl(&Numbers::new(at as u64).corpus(30));
    for at in 0..400 {
        place.write(&format!("in/{at:03}.jsonl"), rows(at));
    }
    let foreign = "out/.000.jsonl.0123456789abcdef.tmp";
    place.write(foreign, "of somebody else");
    let is_temporary = |name: &String| name.ends_with(".tmp");
    let left = (0..20).any(|_| {
        let mut run = place.spawn("dedup in -o out/ --quiet");
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) && run.try_wait().unwrap().is_none() {
            if names_below(&place.path("out"))
                .iter()
                .filter(|it| is_temporary(it))
                .count()
                > 20
            {
                break;
            }
        }
        run.kill().unwrap();
        run.wait().unwrap();
        names_below(&place.path("out"))
            .iter()
            .filter(|it| is_temporary(it))
            .count()
            > 20
    });
    assert!(left, "the run was never killed in time");
    place.ok("dedup in -o out/ --quiet");
    let hidden = names_below(&place.path("out"));
    let hidden: Vec<_> = hidden.iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(hidden, [foreign.trim_start_matches("out/")]);
    assert_eq!(names_below(&place.path("out")).len(), 401);
}
