//! Several documents of a cluster or none (`--keep-count`, `--drop-all`), and fields about copies (`--copies`, `--sources`,
//! `--weight`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Numbers, Place, read_parquet, write_parquet};

/// Ways of running that give the same outputs.
const WAYS: [&str; 6] = [
    "",
    "--threads 1",
    "--memory 1GB",
    "--within part",
    "--against known.jsonl",
    "--work run",
];

/// Clusters `a b c d` and `e f`, and `g` alone; `known.jsonl` is alone.
fn place_with_clusters() -> Place {
    let place = Place::new();
    let documents = [
        ("a", "one two three four", 1, json!("2023-10")),
        ("e", "five six seven eight", 1, json!("2023-10")),
        ("b", "One two three four!", 4, json!("2023-14")),
        ("c", "one, two, three, four", 3, json!("2023-14")),
        ("g", "nothing of the kind here", 1, json!(null)),
        ("f", "Five six seven eight.", 2, json!(17)),
        ("d", "ONE TWO THREE FOUR", 2, json!("2024-1\"0")),
    ];
    let rows = documents.map(|(id, text, q, crawl)| {
        let row = json!({"id": id, "text": text, "q": q, "crawl": crawl, "part": 1});
        format!("{row}\n")
    });
    place.write("in.jsonl", rows.concat());
    place.write(
        "known.jsonl",
        "{\"id\":\"k\",\"text\":\"another text altogether\"}\n",
    );
    place
}

fn begin_again(place: &Place) {
    for directory in ["seen.lib", "run"] {
        let _ = std::fs::remove_dir_all(place.path(directory));
    }
}

fn json_rows(place: &Place, name: &str) -> Vec<Value> {
    let text = place.read(name);
    let rows = text.lines().map(|row| serde_json::from_str(row).unwrap());
    rows.collect()
}

#[test]
fn several_documents_of_a_cluster_are_kept() {
    let place = place_with_clusters();
    for way in WAYS {
        let line = "dedup in.jsonl --keep max:q --keep-count 2 --copies n -o out.jsonl --removed removed.tsv \
                    --clusters clusters.tsv";
        place.ok(&format!("{line} {way}"));
        assert_eq!(place.ids("out.jsonl"), ["e", "b", "c", "g", "f"], "{way}");
        let copies: Vec<_> = json_rows(&place, "out.jsonl")
            .iter()
            .map(|row| row["n"].as_u64().unwrap())
            .collect();
        assert_eq!(copies, [1, 3, 1, 1, 1], "{way}");
        let removed = place.table("removed.tsv");
        let named: Vec<_> = removed
            .iter()
            .map(|row| (&*row[0], &*row[1], &*row[5]))
            .collect();
        assert_eq!(named, [("a", "b", "b"), ("d", "b", "b")], "{way}");
        let clusters = place.table("clusters.tsv");
        let members: Vec<_> = clusters
            .iter()
            .map(|row| (&*row[0], &*row[1], &*row[4]))
            .collect();
        assert_eq!(
            members,
            [
                ("a", "b", "false"),
                ("e", "f", "true"),
                ("b", "b", "true"),
                ("c", "b", "true"),
                ("f", "f", "true"),
                ("d", "b", "false"),
            ],
            "{way}"
        );
        begin_again(&place);
    }
    let summary = place.summary("dedup in.jsonl --keep-count 3 --dry-run");
    assert_eq!(
        (&summary["kept"], &summary["removed"]),
        (&json!(6), &json!(1))
    );
    let one = place.summary("dedup in.jsonl --keep-count 1 --dry-run");
    assert_eq!((&one["kept"], &one["removed"]), (&json!(3), &json!(4)));
    // A known document counts, although it is not written.
    place.write(
        "known.jsonl",
        "{\"id\":\"k\",\"text\":\"one two three four\"}\n",
    );
    place.ok("dedup in.jsonl --against known.jsonl --keep-count 2 -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "e", "g", "f"]);
}

#[test]
fn clusters_are_dropped() {
    let place = place_with_clusters();
    for way in WAYS {
        let line = "dedup in.jsonl --drop-all=3 -o out.jsonl --removed removed.tsv --clusters clusters.tsv \
                    --report report.html";
        place.ok(&format!("{line} {way}"));
        assert_eq!(place.ids("out.jsonl"), ["e", "g"], "{way}");
        let removed = place.table("removed.tsv");
        let named: Vec<_> = removed
            .iter()
            .map(|row| (&*row[0], &*row[1], &*row[5]))
            .collect();
        assert_eq!(
            named,
            [
                ("a", "b", "a"),
                ("b", "a", "a"),
                ("c", "a", "a"),
                ("f", "e", "e"),
                ("d", "a", "a"),
            ],
            "{way}"
        );
        let clusters = place.table("clusters.tsv");
        let kept: Vec<_> = clusters
            .iter()
            .filter(|row| row[4] == "true")
            .map(|row| &*row[0])
            .collect();
        assert_eq!(kept, ["e"], "{way}");
        begin_again(&place);
    }
    let summary = place.summary("dedup in.jsonl --drop-all --dry-run");
    assert_eq!(
        [
            &summary["kept"],
            &summary["removed"],
            &summary["dropped"],
            &summary["clusters"]
        ],
        [&json!(1), &json!(6), &json!(2), &json!(2)]
    );
    let ran = place.ok("dedup in.jsonl --drop-all -o out.jsonl");
    assert!(
        ran.err.contains("of 2 clusters no document is kept"),
        "{}",
        ran.err
    );
    // Every removal can be explained, also that of a document that would represent its cluster.
    place.ok("dedup in.jsonl --drop-all -o out.jsonl --removed removed.tsv");
    place.ok("explain removed.tsv a in.jsonl");
    place.write(
        "known.jsonl",
        "{\"id\":\"k\",\"text\":\"five six seven eight\"}\n",
    );
    place.ok("dedup in.jsonl --against known.jsonl --drop-all=3 -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["g"]);
}

#[test]
fn kept_rows_say_how_many_copies_they_stand_for() {
    let place = place_with_clusters();
    let line = "dedup in.jsonl --copies copies --sources crawl --most-sources 2 --weight w -o";
    for way in WAYS.iter().copied().chain(["--library seen.lib"]) {
        place.ok(&format!("{line} out.jsonl {way}"));
        let rows = json_rows(&place, "out.jsonl");
        let added: Vec<_> = rows
            .iter()
            .map(|row| json!([row["id"], row["copies"], row["sources"], row["w"]]))
            .collect();
        let expected = [
            json!(["a", 4, ["2023-14", "2023-10"], 2.386294]),
            json!(["e", 2, ["17", "2023-10"], 1.693147]),
            json!(["g", 1, [], 1]),
        ];
        assert_eq!(added, expected, "{way}");
        begin_again(&place);
    }
    // A resumed run knows the sources of the blocks that it does not read again.
    place.ok(&format!("{line} out.jsonl --work run"));
    place.ok(&format!("{line} again.jsonl --work run --resume"));
    assert_eq!(place.read("again.jsonl"), place.read("out.jsonl"));
    place.ok("dedup in.jsonl --annotate --copies n -o all.jsonl");
    let copies: Vec<_> = json_rows(&place, "all.jsonl")
        .iter()
        .map(|row| row["n"].clone())
        .collect();
    assert_eq!(json!(copies), json!([4, 2, null, null, 1, null, null]));
    place.ok(&format!("{line} out.parquet"));
    let parquet = place.path("out.parquet");
    assert_eq!(read_parquet(&parquet, "id"), ["a", "e", "g"]);
    place.ok("dedup out.parquet -o back.jsonl");
    let back = json_rows(&place, "back.jsonl");
    assert_eq!(back[0]["sources"], json!(["2023-14", "2023-10"]));
    assert_eq!(back[1]["copies"], json!(2));
    place.ok(&format!("{line} out.arrow"));
    place.write(
        "in.csv",
        "id,text,site\n1,one two three,x\n2,One two three,\"y,z\"\n3,one two three.,\"y,z\"\n4,other words,\n",
    );
    place.write("weights.tsv", "copies\tweight\n1\t1\n2\t0.5\n5\t0\n");
    place.ok("dedup in.csv --copies n --sources site=sites --weight w --weight-by weights.tsv -o out.csv");
    assert_eq!(
        place.read("out.csv"),
        "id,text,site,n,sites,w\n1,one two three,x,3,\"[\"\"y,z\"\",\"\"x\"\"]\",0.5\n4,other words,,1,[],1\n"
    );
    let (ids, texts) = (vec!["a", "b"], vec!["one two three", "One two three"]);
    write_parquet(&place.path("in.parquet"), &[("id", ids), ("text", texts)]);
    place.ok("dedup in.parquet --copies n --weight w --weight-by sqrt -o out.parquet");
}

#[test]
fn contradictory_outputs_of_copies_are_refused() {
    let place = place_with_clusters();
    place.write("weights.tsv", "2\t0.5\n");
    for (options, said) in [
        ("--keep-count 2 --annotate", "--keep-count selects the rows"),
        ("--drop-all --annotate", "--drop-all selects the rows"),
        ("--keep-count 2 --drop-all", "--drop-all"),
        (
            "--keep-count 2 --library new.lib",
            "a library keeps one document",
        ),
        ("--drop-all --library new.lib", "cannot be taken back"),
        (
            "--keep-count 2 --passages remove",
            "nearly all of their text",
        ),
        ("--copies n --passages remove", "run twice"),
        (
            "--copies n --sources crawl=n",
            "two added fields would have the name `n`",
        ),
        ("--copies similarity --annotate", "two added fields"),
        ("--copies q", "`q`"),
        ("--sources crwl", "--sources crwl: none of the 7 documents"),
        ("--sources =x", "FIELD=NAME"),
        ("--weight w --weight-by no.tsv", "no.tsv"),
        ("--weight w --weight-by weights.tsv", "begin with 1"),
        ("--weight-by sqrt", "--weight"),
        ("--drop-all=1", "--drop-all"),
        ("--keep-count 0", "--keep-count"),
    ] {
        place.refused(&format!("dedup in.jsonl -o out.jsonl {options}"), &[said]);
        assert!(
            !place.has("out.jsonl") && !place.has("new.lib"),
            "{options}"
        );
    }
    place.refused("dedup in.jsonl --copies n --removed r.tsv", &["-o OUT"]);
}

/// Writes a corpus in months, with a crawl for each month, and all of it in `all.jsonl`.
fn write_months(place: &Place, documents: usize, months: usize) {
    let mut numbers = Numbers::new(29);
    let mut corpus = numbers.corpus(documents);
    for at in (0..corpus.len()).step_by(11) {
        corpus[at].1 = ["?", "", "short"][numbers.below(3)].to_owned();
    }
    for at in (1..corpus.len()).rev() {
        corpus.swap(at, numbers.below(at + 1));
    }
    let mut all = String::new();
    for (month, documents) in corpus.chunks(corpus.len() / months + 1).enumerate() {
        let mut rows = String::new();
        for (at, (id, text)) in documents.iter().enumerate() {
            let crawl = format!("crawl-{}", (month + at % 2) % months);
            rows += &format!("{}\n", json!({"id": id, "text": text, "crawl": crawl}));
        }
        place.write(&format!("month-{month}.jsonl"), &rows);
        all += &rows;
    }
    place.write("all.jsonl", all);
}

/// Returns the copies and the sources of kept rows by id.
fn counts_of_rows(place: &Place, name: &str) -> BTreeMap<String, (u64, Value)> {
    let rows = json_rows(place, name).into_iter().map(|row| {
        let id = row["id"].as_str().unwrap().to_owned();
        (id, (row["n"].as_u64().unwrap(), row["sources"].clone()))
    });
    rows.collect()
}

/// Returns the copies and the sources in a table of `index counts` by id.
fn counts_of_library(place: &Place, line: &str) -> BTreeMap<String, (u64, Value)> {
    place.ok(&format!("index counts seen.lib -o counts.tsv {line}"));
    let rows = place.table("counts.tsv").into_iter().map(|row| {
        let sources = row
            .get(2)
            .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        (row[0].clone(), (row[1].parse().unwrap(), sources))
    });
    rows.collect()
}

/// Twelve runs, one for each month, count as one run over all months does.
#[test]
fn libraries_count_the_copies_of_later_runs() {
    let place = Place::new();
    let months = 12;
    write_months(&place, 1500, months);
    let options = "--copies n --sources crawl --most-sources 20 --threshold 0.6 --forms off";
    place.ok(&format!("dedup all.jsonl {options} -o all-kept.jsonl"));
    let expected = counts_of_rows(&place, "all-kept.jsonl");
    let mut written = 0;
    for month in 0..months {
        let memory = if month % 3 == 1 { "--memory 1GB" } else { "" };
        let line = format!(
            "dedup month-{month}.jsonl {options} {memory} -o kept-{month}.jsonl --library seen.lib"
        );
        place.ok(&line);
        written += counts_of_rows(&place, &format!("kept-{month}.jsonl")).len();
    }
    let counted = counts_of_library(&place, "--most-sources 20");
    let mut both = 0;
    for (id, counts) in &counted {
        if let Some(expected) = expected.get(id) {
            assert_eq!(counts, expected, "{id}");
            both += 1;
        }
    }
    assert!(
        both * 100 >= counted.len() * 99,
        "{both} of {}",
        counted.len()
    );
    assert!(counted.values().filter(|(copies, _)| *copies > 2).count() > 50);
    // Empty texts are in no library.
    assert!(written > counted.len());
    place.ok("index verify seen.lib");
    // Removal and compaction keep the counts of all other rows.
    let gone: Vec<&String> = counted.keys().step_by(3).collect();
    place.write(
        "gone.txt",
        gone.iter().map(|id| format!("{id}\n")).collect::<String>(),
    );
    place.ok("index remove seen.lib --ids gone.txt");
    let mut rest = counted.clone();
    gone.iter().for_each(|id| drop(rest.remove(*id)));
    assert_eq!(counts_of_library(&place, "--most-sources 20"), rest);
    place.ok("index compact seen.lib");
    assert_eq!(counts_of_library(&place, "--most-sources 20"), rest);
    place.ok("index verify seen.lib");
    assert!(
        place
            .read("seen.lib/manifest")
            .starts_with("lookalike-library 5 ")
    );
    let names = std::fs::read_dir(place.path("seen.lib")).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let file = format!(
        "seen.lib/{}",
        names.find(|name| name.ends_with(".counts")).unwrap()
    );
    let whole = place.bytes(&file);
    for at in (0..whole.len()).step_by(whole.len() / 7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        place.write(&file, &damaged);
        place.refused("index verify seen.lib", &[".counts"]);
        place.refused("index counts seen.lib -o x.tsv", &[".counts"]);
        assert!(!place.has("x.tsv"));
    }
    place.write(&file, &whole);
    let short = counts_of_library(&place, "--most-sources 1");
    assert!(
        short
            .values()
            .all(|(_, sources)| sources.as_array().unwrap().len() <= 1)
    );
    place.refused(
        "dedup month-0.jsonl --library seen.lib --threshold 0.6 -o x.jsonl",
        &["counts the sources", "--sources crawl"],
    );
    place.refused(
        "index counts seen.lib -o seen.lib/counts.tsv",
        &["inside the index"],
    );
}

/// A library that was made before, or by `index build`, is read, and its counts begin with the next run.
#[test]
fn counts_of_earlier_libraries_begin_later() {
    let place = Place::new();
    write_months(&place, 300, 3);
    place.ok("index build seen.lib month-0.jsonl");
    let before = place.read("seen.lib/manifest");
    assert!(before.starts_with("lookalike-library 3 "), "{before}");
    assert!(
        counts_of_library(&place, "")
            .values()
            .all(|(copies, _)| *copies == 1)
    );
    // A run that changes nothing leaves it as it is.
    place.ok("dedup month-1.jsonl --library seen.lib --dry-run");
    assert_eq!(place.read("seen.lib/manifest"), before);
    place.ok("dedup month-1.jsonl --library seen.lib -o kept.jsonl --removed removed.tsv");
    let counted = counts_of_library(&place, "");
    let removed = place.table("removed.tsv").len() as u64;
    let kept = counted.len() as u64;
    let total: u64 = counted.values().map(|(copies, _)| copies).sum();
    // Equal empty texts are kept and not in the library, and nothing is removed for them.
    assert_eq!(total, kept + removed);
    let ran = place.ok("index counts seen.lib -o counts.jsonl");
    assert!(ran.err.contains("begin later"), "{}", ran.err);
    place.ok("dedup month-2.jsonl --library seen.lib -o kept.jsonl");
    let printed = place.ok("index counts seen.lib");
    assert!(printed.text().starts_with("id\tcopies\n"));
}
