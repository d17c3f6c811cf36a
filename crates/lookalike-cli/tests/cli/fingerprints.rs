//! `fingerprint`.

use std::io::Write;

use crate::support::{Numbers, Place, corpus_jsonl, jsonl, read_parquet, row, rows};

fn corpus() -> Vec<(String, String)> {
    Numbers::new(5).corpus(3000)
}

#[test]
fn fingerprints_keep_input_order() {
    let place = Place::new();
    let corpus = corpus();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    let whole = place.ok("fingerprint in.jsonl");
    assert!(whole.text().starts_with("id\tfingerprint\n"));
    let table = rows(whole.text());
    assert!(
        table
            .iter()
            .map(|row| &row[0])
            .eq(corpus.iter().map(|(id, _)| id))
    );
    assert!(table.iter().all(|row| row[1].len() == 16));
    // The fingerprint of a document depends only on the document.
    for at in [0, 1, 1500, 2999] {
        let (id, text) = &corpus[at];
        let alone = place.run_with("fingerprint - --threads 1", row(id, text).as_bytes());
        assert_eq!(rows(alone.text()), [table[at].clone()]);
    }
    for threads in [1, 3, 8] {
        let ran = place.ok(&format!("fingerprint in.jsonl --threads {threads}"));
        assert_eq!(ran.out, whole.out);
    }
}

#[test]
fn fingerprint_notations_have_one_value() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&corpus()[..50]));
    let digits = |format: &str| -> Vec<String> {
        let ran = place.ok(&format!("fingerprint in.jsonl {format}"));
        let column = rows(ran.text()).into_iter().map(|row| row[1].clone());
        column.collect()
    };
    let hex = digits("");
    assert_eq!(digits("--digits hex"), hex);
    let number = |text: &str, radix| u64::from_str_radix(text, radix).unwrap();
    let values: Vec<u64> = hex.iter().map(|text| number(text, 16)).collect();
    let decimal: Vec<_> = digits("--digits decimal")
        .iter()
        .map(|text| number(text, 10))
        .collect();
    let binary = digits("--digits binary");
    assert!(binary.iter().all(|text| text.len() == 64));
    let binary: Vec<_> = binary.iter().map(|text| number(text, 2)).collect();
    assert_eq!((&decimal, &binary), (&values, &values));

    place.ok("fingerprint in.jsonl -o out.parquet");
    assert_eq!(read_parquet(&place.path("out.parquet"), "fingerprint"), hex);
    place.ok("fingerprint in.jsonl -o out.jsonl");
    let first = place.read("out.jsonl");
    let first = first.lines().next().unwrap();
    assert_eq!(
        first,
        format!("{{\"id\":\"d0\",\"fingerprint\":\"{}\"}}", hex[0])
    );
    place.ok("fingerprint in.jsonl -o out.csv");
    assert!(
        place
            .read("out.csv")
            .starts_with(&format!("id,fingerprint\nd0,{}\n", hex[0]))
    );
}

#[test]
fn recipe_sets_number_of_bits_and_slots() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&corpus()[..20]));
    let toml = place
        .ok("recipe default")
        .text()
        .replace("bits = 64", "bits = 128");
    place.write("wide.toml", toml.replace("slots = 128", "slots = 16"));
    let wide = place.ok("fingerprint in.jsonl --recipe wide.toml");
    let narrow = place.ok("fingerprint in.jsonl");
    for (wide, narrow) in rows(wide.text()).iter().zip(rows(narrow.text())) {
        assert_eq!(wide[1].len(), 32);
        assert!(wide[1].ends_with(&narrow[1]));
    }
    let minhash = "fingerprint in.jsonl --method minhash --recipe wide.toml";
    let signatures = place.ok(minhash);
    for row in rows(signatures.text()) {
        let slots: Vec<u32> = row[1]
            .split(' ')
            .map(|slot| slot.parse().unwrap())
            .collect();
        assert_eq!(slots.len(), 16);
    }
    place.ok(&format!("{minhash} -o s.jsonl"));
    for (line, row) in place.read("s.jsonl").lines().zip(rows(signatures.text())) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let slots: Vec<_> = value["fingerprint"]
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(slots.join(" "), row[1]);
    }
    place.ok(&format!("{minhash} -o s.parquet"));
    assert_eq!(
        read_parquet(&place.path("s.parquet"), "fingerprint").len(),
        20
    );
    place.refused(
        &format!("{minhash} --digits hex"),
        &["--digits", "--method minhash"],
    );
}

#[test]
fn texts_too_short_have_a_dash() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", ""), ("b", "one"), ("c", "!?"), ("d", "one two")]),
    );
    let ran = place.ok("fingerprint in.jsonl");
    let table = rows(ran.text());
    let poor: Vec<_> = table.iter().map(|row| row[1] == "-").collect();
    assert_eq!(poor, [true, true, true, false]);
    assert!(ran.err.contains("3 too short"), "{}", ran.err);
    let ran = place.ok("fingerprint in.jsonl --method minhash");
    assert!(
        ran.text()
            .starts_with("id\tfingerprint\na\t-\nb\t-\nc\t-\nd\t")
    );
    place.ok("fingerprint in.jsonl --method minhash -o out.jsonl");
    assert!(
        place
            .read("out.jsonl")
            .starts_with("{\"id\":\"a\",\"fingerprint\":null}\n")
    );
}

#[test]
fn bad_rows_are_reported_and_skipped() {
    let place = Place::new();
    let rows_in = "{\"id\":1,\"text\":\"one two three\"}\nnonsense\n{\"id\":3}\n{\"id\":4,\"text\":\"five six\"}\n";
    place.write("in.jsonl", rows_in);
    let ran = place.run("fingerprint in.jsonl --rejected bad.jsonl");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("in.jsonl:2:") && ran.err.contains("in.jsonl:3:"));
    let ids: Vec<_> = rows(ran.text())
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(ids, ["1", "4"]);
    assert_eq!(place.read("bad.jsonl"), "nonsense\n{\"id\":3}\n");
    let ran = place.run("fingerprint in.jsonl --strict -o out.tsv");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("in.jsonl:2:") && !place.has("out.tsv"));
    let piped = place.run_with("fingerprint - --rejected -  -o out.tsv", rows_in.as_bytes());
    assert_eq!(piped.text(), "nonsense\n{\"id\":3}\n");
}

#[test]
fn rows_are_streamed() {
    // The first documents are printed while the input is still open.
    let place = Place::new();
    let mut child = place.spawn("fingerprint - --format text --threads 2");
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let line = format!("{}\n", Numbers::new(3).text(150));
    let writer = std::thread::spawn(move || {
        // This is more than all pipes and blocks between the two ends hold.
        for _ in 0..20_000 {
            stdin.write_all(line.as_bytes()).unwrap();
        }
        stdin
    });
    let mut start = [0; 15];
    std::io::Read::read_exact(&mut stdout, &mut start).unwrap();
    assert_eq!(&start, b"id\tfingerprint\n");
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
        rest
    });
    drop(writer.join().unwrap());
    assert_eq!(rest.join().unwrap().lines().count(), 20_000);
    assert!(child.wait().unwrap().success());
}

#[test]
fn fingerprint_summaries_and_refusals() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&corpus()[..10]));
    let summary = place.summary("fingerprint in.jsonl -o out.tsv");
    assert_eq!(summary["documents"], 10);
    assert_eq!(summary["method"], "simhash");
    assert_eq!(summary["size"], 64);
    place.refused(
        "fingerprint in.jsonl --json",
        &["--json", "standard output"],
    );
    place.refused("fingerprint in.jsonl -o x --rejected x", &["x"]);
    place.refused(
        "fingerprint in.jsonl -o in.jsonl",
        &["in.jsonl", "overwritten"],
    );
    place.refused("fingerprint", &["IN"]);
    place.refused("fingerprint in.jsonl --digits octal", &["octal", "decimal"]);
    let empty = place.run_with("fingerprint -", b"");
    assert_eq!((empty.code, empty.text()), (Some(0), "id\tfingerprint\n"));
}

#[test]
fn hashes_on_the_command_line_show_every_step() {
    let place = Place::new();
    let shown = place.ok("fingerprint --hashes CSDN=100101:4%20blog=101011:5 --hashes x=01:2");
    assert_eq!(
        shown.text(),
        "Features of 1: weight, hash, votes from the highest bit\n  \
         CSDN       4  100101     4  -4  -4   4  -4   4\n  \
         blog       5  101011     5  -5   5  -5   5   5\n\n\
         Features of 2: weight, hash, votes from the highest bit\n  \
         x       2  01    -2   2\n\n\
         Sums of the votes, from the highest bit; above 0 gives 1\n  \
         1       9    -9     1    -1     1     9\n  \
         2      -2     2\n\n\
         Fingerprints\n  1   101011  2b\n  2   01  1\n"
    );
    let json = place.ok("fingerprint --json --hashes a=10011100:5%20b=01110101:4");
    let said: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    let document = &said["documents"][0];
    assert_eq!(
        document["sums"].to_string(),
        "[1.0,-1.0,-1.0,9.0,1.0,9.0,-9.0,-1.0]"
    );
    assert_eq!(
        (&document["bits"], &document["fingerprint"]),
        (&"10011100".into(), &"9c".into())
    );
    place.refused(
        "fingerprint --hashes a=10:1 --hashes a=12:1",
        &["--hashes, document 2", "'12' of 'a'"],
    );
    place.refused("fingerprint --hashes a=10:1 in.jsonl", &["--hashes", "IN"]);
    place.refused(
        "fingerprint --hashes a=10:1 -o out.tsv",
        &["--hashes", "--output"],
    );
    place.refused(
        "fingerprint --hashes a=10:1 --set ngram=2",
        &["--hashes", "--set"],
    );
}

#[test]
fn permutations_show_the_minima_of_sets() {
    let place = Place::new();
    let sets =
        "--shingles S1=a%20d --shingles S2=c --shingles S3=b%20d%20e --shingles S4=a%20c%20d";
    let shown = place.ok(&format!(
        "fingerprint {sets} --permutation b%20e%20a%20d%20c"
    ));
    for line in [
        "           S1  S2  S3  S4\n  b        0   0   1   0\n",
        "  minimum  a   c   b   a\n",
        "  S1 S4  1 of 1  1.0000  0.6667\n",
    ] {
        assert!(shown.text().contains(line), "no {line} in {}", shown.text());
    }
    let json = place.ok(&format!(
        "fingerprint {sets} --json --permutation b%20e%20a%20d%20c --permutation d%20c%20b%20a%20e"
    ));
    let said: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!(
        said["permutations"][1]["minima"].to_string(),
        r#"["d","c","d","d"]"#
    );
    assert_eq!(said["pairs"][1]["equal_minima"], 1);
    assert_eq!(said["pairs"][1]["estimate"], 0.5);
    assert_eq!(said["pairs"][1]["jaccard"], 0.25);
    place.refused(&format!("fingerprint {sets}"), &["--permutation"]);
    place.refused("fingerprint --permutation a", &["--shingles"]);
    place.refused(
        &format!("fingerprint {sets} --permutation b%20e%20a%20d"),
        &["lacks the shingle 'c'", "all 5 shingles"],
    );
    place.refused(
        "fingerprint --shingles a --permutation a",
        &["'a'", "NAME=SHINGLE"],
    );
}
