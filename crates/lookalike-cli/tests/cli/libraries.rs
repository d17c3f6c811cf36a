//! `index` and `search`, compared with a scan over the output of `fingerprint`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use lookalike_oracle::effort::choose_effort;
use serde_json::Value;

use crate::support::{Numbers, Place, corpus_jsonl, jsonl, read_parquet, row, rows, write_parquet};

/// Fingerprints by id, in order.
type Table = Vec<(String, u128)>;

fn fingerprints(place: &Place, line: &str) -> Table {
    rows(place.ok(line).text())
        .into_iter()
        .filter(|row| row[1] != "-")
        .map(|row| (row[0].clone(), u128::from_str_radix(&row[1], 16).unwrap()))
        .collect()
}

/// Returns the expected output of a search: by query, then by distance, then by row.
fn scan(queries: &Table, library: &Table, distance: u32) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (query, code) in queries {
        let mut near: Vec<_> = library
            .iter()
            .enumerate()
            .map(|(row, (id, other))| ((code ^ other).count_ones(), row, id))
            .filter(|(bits, ..)| *bits <= distance)
            .collect();
        near.sort_unstable();
        found.extend(
            near.into_iter()
                .map(|(bits, _, id)| vec![query.clone(), id.clone(), bits.to_string()]),
        );
    }
    found
}

/// Returns fingerprints with many near others at every distance.
fn planted(numbers: &mut Numbers, count: usize, bits: u32) -> Table {
    let mask = u128::MAX >> (128 - bits);
    let mut codes: Vec<u128> = Vec::new();
    for _ in 0..count {
        let code = if codes.is_empty() || numbers.below(3) == 0 {
            (0..16).fold(0, |code, _| code << 8 | numbers.below(256) as u128)
        } else {
            let flips = numbers.below(7);
            let origin = codes[numbers.below(codes.len())];
            (0..flips).fold(origin, |code, _| code ^ 1 << numbers.below(bits as usize))
        };
        codes.push(code & mask);
    }
    (0..).map(|n| format!("f{n}")).zip(codes).collect()
}

fn lines(table: &[(String, u128)]) -> String {
    table
        .iter()
        .map(|(id, code)| format!("{id}\t{code:x}\n"))
        .collect()
}

fn info(place: &Place, library: &str) -> Value {
    let ran = place.ok(&format!("index info {library} --json"));
    serde_json::from_slice(&ran.out).unwrap()
}

#[test]
fn documents_are_found_like_by_a_scan() {
    let place = Place::new();
    let corpus = Numbers::new(11).corpus(2000);
    place.write("all.jsonl", corpus_jsonl(&corpus));
    place.write("library.jsonl", corpus_jsonl(&corpus[..1500]));
    place.write("queries.jsonl", corpus_jsonl(&corpus[1200..]));
    let all = fingerprints(&place, "fingerprint all.jsonl");
    let known: BTreeSet<_> = corpus[..1500].iter().map(|(id, _)| id).collect();
    let asked: BTreeSet<_> = corpus[1200..].iter().map(|(id, _)| id).collect();
    let of = |ids: &BTreeSet<&String>| -> Table {
        all.iter()
            .filter(|(id, _)| ids.contains(id))
            .cloned()
            .collect()
    };
    let (library, queries) = (of(&known), of(&asked));
    let built = place.ok("index build lib library.jsonl --distance 8");
    assert!(
        built.out.is_empty() && built.err.contains("holds"),
        "{}",
        built.err
    );
    for distance in [0, 1, 3, 7, 8] {
        let ran = place.ok(&format!("search lib queries.jsonl --distance {distance}"));
        assert!(ran.text().starts_with("query\tmatch\tdistance\n"));
        let expected = scan(&queries, &library, distance);
        assert!(expected.len() > 300);
        assert_eq!(rows(ran.text()), expected, "{distance}");
        for threads in [1, 4] {
            let line =
                format!("search lib queries.jsonl --distance {distance} --threads {threads}");
            assert_eq!(place.ok(&line).out, ran.out);
        }
    }
    place.ok("fingerprint queries.jsonl -o queries.tsv");
    let bare = place.ok("search lib queries.tsv --fingerprints");
    assert_eq!(bare.out, place.ok("search lib queries.jsonl").out);
}

#[test]
fn bare_fingerprints_in_every_width_and_plan() {
    let place = Place::new();
    let all = [(64, 3), (8, 1), (128, 7), (32, 2), (64, 6), (100, 3)];
    for &(bits, distance) in &all[..choose_effort(3, all.len())] {
        let table = planted(&mut Numbers::new(bits.into()), 1500, bits);
        place.write("codes.tsv", lines(&table));
        let expected = scan(&table, &table, distance);
        let halves = format!("{},{}", bits / 2, bits - bits / 2);
        for plan in [
            "auto",
            "blocks",
            "permuted",
            "scan",
            "neighbourhoods",
            &halves,
        ] {
            let build = format!(
                "index build lib codes.tsv --fingerprints --bits {bits} --distance {distance} \
                 --plan {plan} --force"
            );
            place.ok(&build);
            let ran = place.ok("search lib codes.tsv --fingerprints");
            assert_eq!(rows(ran.text()), expected, "{bits} bits, {plan}");
        }
        for below in [distance - 1, 0] {
            let line = format!("search lib codes.tsv --fingerprints --distance {below}");
            assert_eq!(rows(place.ok(&line).text()), scan(&table, &table, below));
        }
        let line = format!(
            "search lib codes.tsv --fingerprints --distance {}",
            distance + 1
        );
        let most = distance.to_string();
        let above = (distance + 1).to_string();
        place.refused(&line, &[&above, &most, "lib"]);
    }
}

/// Bytes of all files of an index by name, without its lock.
fn index_files(place: &Place, library: &str) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(place.path(library)).unwrap();
    let named = files.map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        let bytes = place.bytes(&format!("{library}/{name}"));
        (name, bytes)
    });
    named.filter(|(name, _)| name != "lock").collect()
}

/// An array as `numpy.save` writes it.
fn numpy_array(codes: &[u64]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<u8', 'fortran_order': False, 'shape': ({},), }}",
        codes.len()
    );
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:<117}\n").bytes());
    file.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
    file
}

#[test]
fn binary_files_and_limits_of_memory_make_the_same_index() {
    let place = Place::new();
    let codes: Vec<u64> = planted(&mut Numbers::new(9), 60_000, 64)
        .into_iter()
        .map(|(_, code)| code as u64)
        .collect();
    let hex =
        |codes: &[u64]| -> String { codes.iter().map(|code| format!("{code:016x}\n")).collect() };
    let bytes =
        |codes: &[u64]| -> Vec<u8> { codes.iter().flat_map(|code| code.to_le_bytes()).collect() };
    let (first, second) = codes.split_at(codes.len() / 3);
    place.write("all.txt", hex(&codes));
    place.write("first.txt", hex(first));
    place.write("second.txt", hex(second));
    place.write("all.npy", numpy_array(&codes));
    place.write("all.u64", bytes(&codes));
    place.write("first.npy", numpy_array(first));
    place.write("second.u64", bytes(second));
    let decimal: Vec<String> = codes.iter().map(u64::to_string).collect();
    let decimal = decimal.iter().map(String::as_str).collect();
    write_parquet(&place.path("all.parquet"), &[("fingerprint", decimal)]);

    for plan in ["auto", "blocks", "permuted"] {
        let build = |inputs: &str| {
            place.ok(&format!(
                "index build lib {inputs} --fingerprints --plan {plan} --force"
            ));
            let files = index_files(&place, "lib");
            fs::remove_dir_all(place.path("lib")).unwrap();
            files
        };
        let expected = build("all.txt");
        for inputs in [
            "first.txt second.txt",
            "all.npy",
            "all.u64",
            "first.npy second.u64",
            "all.parquet --id-row --digits decimal",
            "all.txt --memory 256Mi --threads 2",
            "all.u64 --memory 224Mi --threads 1",
            "all.npy --threads 1",
        ] {
            assert!(build(inputs) == expected, "{inputs}, {plan}");
        }
    }

    place.ok("index build lib first.txt --fingerprints");
    place.ok("index add lib second.u64 --fingerprints");
    place.write("queries.txt", hex(&codes[..2000]));
    let by_parts = place.ok("search lib queries.txt --fingerprints").out;
    place.ok("index build whole all.txt --fingerprints");
    assert!(by_parts == place.ok("search whole queries.txt --fingerprints").out);
}

/// The fingerprints and the columns of their index do not fit in the memory, so files hold most of them.
#[test]
fn building_keeps_within_the_memory() {
    let place = Place::new();
    let count = choose_effort(6_000_000, 16_000_000);
    let mut numbers = Numbers::new(3);
    let mut bytes = Vec::with_capacity(8 * count);
    for _ in 0..count / 8 {
        let code = (0..8).fold(0u64, |code, _| code << 8 | numbers.below(256) as u64);
        // Runs of similar fingerprints, made faster than single ones.
        bytes.extend((0..8).flat_map(|at| (code.rotate_left(at * 7)).to_le_bytes()));
    }
    place.write("codes.u64", bytes);
    place.ok("index build free codes.u64 --fingerprints --threads 1");
    for memory in [224u64, 400] {
        let peak = place.peak_of(&format!(
            "index build lib{memory} codes.u64 --fingerprints --threads 1 --memory {memory}Mi --quiet"
        ));
        assert!(peak <= memory << 20, "{peak} bytes of {memory} MiB");
        assert!(index_files(&place, &format!("lib{memory}")) == index_files(&place, "free"));
    }
}

#[test]
fn unsuitable_binary_files_and_options_are_refused() {
    let place = Place::new();
    let codes = [1u64, 2, 1 << 60];
    let array = numpy_array(&codes);
    place.write("a.npy", &array);
    place.write("cut.npy", &array[..array.len() - 3]);
    place.write("a.u64", [0; 12]);
    place.write("a.txt", "00\n");
    place.write("a.jsonl", row("a", "one two three"));
    for (line, words) in [
        (
            "cut.npy",
            vec!["cut.npy", "149 bytes", "3 integers", "cut off"],
        ),
        ("a.npy a.u64", vec!["a.u64", "12 bytes"]),
        (
            "a.npy a.txt",
            vec!["a.txt", "binary files of fingerprints alone"],
        ),
        (
            "a.npy --bits 60",
            vec!["a.npy", "row 3", "1152921504606846976", "60 bits"],
        ),
        ("a.npy --digits hex", vec!["--digits", "binary"]),
        ("a.npy --id name", vec!["--id", "name"]),
        ("a.npy --rejected bad.jsonl", vec!["--rejected"]),
        (
            "a.txt --memory 1M",
            vec!["--memory", "1000000", "Mi or more"],
        ),
    ] {
        let line = format!("index build lib {line} --fingerprints");
        let ran = place.run(&line);
        assert!(ran.code != Some(0) && ran.out.is_empty(), "{line}");
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        words
            .iter()
            .for_each(|word| assert!(said.contains(word), "{line}: no '{word}' in: {said}"));
        assert!(!place.has("lib") && !place.has("bad.jsonl"), "{line}");
    }
    place.refused(
        "index build lib a.txt --fingerprints --memory 200Mi --threads 1",
        &["209715200", "1 thread", "--memory 224Mi"],
    );
    place.write("named.txt", "a\t00\n");
    place.ok("index build ids named.txt --fingerprints --memory 1G --threads 1");
    place.ok("index build numbered named.txt --fingerprints --memory 1G --threads 1 --id-row");
    place.refused(
        "index build lib a.jsonl --memory 200M --threads 1",
        &["200000000", "1 thread", "--memory 25", "Mi or more"],
    );
    place.ok("index build lib a.npy --fingerprints");
    place.refused("search lib a.npy --fingerprints", &[".npy", "index build"]);
    // Rows of an index either have ids or are numbered.
    place.write("named.tsv", "x\t0000000000000001\n");
    place.ok("index build named named.tsv --fingerprints");
    let ran = place.run("index add named a.npy --fingerprints");
    assert!(
        ran.code != Some(0) && ran.err.contains("has no id"),
        "{}",
        ran.err
    );
}

#[test]
fn fingerprints_come_in_lines_and_fields() {
    let place = Place::new();
    let table = planted(&mut Numbers::new(2), 300, 64);
    let expected = scan(&table, &table, 3);
    let column = |form: &dyn Fn(u64) -> String| -> Vec<String> {
        table.iter().map(|(_, code)| form(*code as u64)).collect()
    };
    let hex = column(&|code| format!("{code:016x}"));
    let decimal = column(&|code| code.to_string());
    let signed = column(&|code| (code as i64).to_string());
    let binary = column(&|code| format!("{code:064b}"));
    let ids: Vec<_> = table.iter().map(|(id, _)| id.as_str()).collect();
    let join = |values: &[String], header: &str, between: &str| -> String {
        let rows = ids.iter().zip(values);
        let rows = rows.map(|(id, value)| format!("{id}{between}{value}\n"));
        format!("{header}{}", rows.collect::<String>())
    };
    let objects = |values: &[String], quote: &str| -> String {
        let rows = ids.iter().zip(values);
        rows.map(|(id, value)| {
            format!("{{\"id\":\"{id}\",\"a\":{{\"f\":{quote}{value}{quote}}}}}\n")
        })
        .collect()
    };
    place.write("hex.tsv", join(&hex, "", "\t"));
    place.write("header.tsv", join(&hex, "id\tfingerprint\n", "\t"));
    place.write("decimal.txt", join(&decimal, "", "\t"));
    place.write("binary.tsv", join(&binary, "id\tfingerprint\n", "\t"));
    place.write("hex.csv", join(&hex, "id,fingerprint\n", ","));
    place.write("named.tsv", join(&signed, "id\tcode\n", "\t"));
    place.write("strings.jsonl", objects(&hex, "\""));
    place.write("numbers.jsonl", objects(&decimal, ""));
    let texts: Vec<_> = hex.iter().map(String::as_str).collect();
    write_parquet(
        &place.path("hex.parquet"),
        &[("id", ids.clone()), ("fingerprint", texts)],
    );
    let forms = [
        "hex.tsv --fingerprints",
        "header.tsv --fingerprints",
        "decimal.txt --fingerprints --digits decimal",
        "binary.tsv --fingerprints --digits binary",
        "hex.csv --fingerprints",
        "hex.csv --fingerprint fingerprint",
        "named.tsv --fingerprint code --digits decimal",
        "strings.jsonl --fingerprint a.f",
        "numbers.jsonl --fingerprint a.f",
        "hex.parquet --fingerprints",
    ];
    for form in forms {
        place.ok(&format!("index build lib {form} --force"));
        let ran = place.ok(&format!("search lib {form}"));
        assert_eq!(rows(ran.text()), expected, "{form}");
    }
    // Rows with only a fingerprint are numbered.
    let alone: String = hex.iter().map(|code| format!("{code}\n")).collect();
    let piped = place.run_with("index build alone - --fingerprints", alone.as_bytes());
    assert_eq!(piped.code, Some(0), "{}", piped.err);
    let found = place.run_with("search alone - --fingerprints", alone.as_bytes());
    let number = |id: &String| (id[1..].parse::<usize>().unwrap() + 1).to_string();
    let numbered: Vec<_> = expected
        .iter()
        .map(|row| vec![number(&row[0]), number(&row[1]), row[2].clone()])
        .collect();
    assert_eq!(rows(found.text()), numbered);
    assert_eq!(info(&place, "alone")["has_ids"], false);
}

#[test]
fn random_adds_and_removes_equal_a_map() {
    let place = Place::new();
    let mut numbers = Numbers::new(77);
    let all = planted(&mut numbers, 3000, 64);
    let queries: Table = all.iter().step_by(7).cloned().collect();
    place.write("queries.tsv", lines(&queries));
    place.write("none.tsv", "");
    place.ok("index build lib none.tsv --fingerprints");
    assert!(rows(place.ok("search lib queries.tsv --fingerprints").text()).is_empty());
    // The content of the index, in the order of its rows.
    let mut held: Table = Vec::new();
    let mut next = 0;
    let mut most_segments = 0;
    for step in 0..30 {
        if numbers.below(3) < 2 && next < all.len() {
            let count = [1, 5, 40, 400][numbers.below(4)].min(all.len() - next);
            let new = &all[next..next + count];
            next += count;
            place.write("new.tsv", lines(new));
            place.ok("index add lib new.tsv --fingerprints");
            held.extend_from_slice(new);
        } else if !held.is_empty() {
            let count = [1, 3, held.len() / 3, held.len() * 2 / 3][numbers.below(4)];
            let mut gone = BTreeSet::new();
            for _ in 0..count {
                gone.insert(held[numbers.below(held.len())].0.clone());
            }
            let ids: String = gone.iter().map(|id| format!("{id}\n")).collect();
            place.write("gone.txt", ids);
            place.ok("index remove lib --ids gone.txt");
            held.retain(|(id, _)| !gone.contains(id));
        }
        let ran = place.ok("search lib queries.tsv --fingerprints");
        assert_eq!(rows(ran.text()), scan(&queries, &held, 3), "step {step}");
        let info = info(&place, "lib");
        assert_eq!(info["fingerprints"], held.len());
        most_segments = most_segments.max(info["segments"].as_array().unwrap().len());
    }
    assert!((2..9).contains(&most_segments), "{most_segments}");
    place.ok("index verify lib");
    // Every file belongs to the index.
    let names = fs::read_dir(place.path("lib")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let segments = info(&place, "lib")["segments"].as_array().unwrap().len();
    assert!(names.len() <= 2 + 3 * segments, "{names:?}");
}

#[test]
fn numbered_rows_keep_their_numbers() {
    let place = Place::new();
    let codes: Vec<u64> = (0..40).map(|n| n * 0x0101_0101_0101_0101).collect();
    let file =
        |codes: &[u64]| -> String { codes.iter().map(|code| format!("{code:x}\n")).collect() };
    place.write("a", file(&codes[..30]));
    place.write("b", file(&codes[30..]));
    place.ok("index build lib a --fingerprints --distance 0");
    place.ok("index remove lib 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
    place.ok("index add lib b --fingerprints");
    place.ok("index remove lib 31");
    let ran = place.run_with("search lib - --fingerprints", file(&codes).as_bytes());
    let found: Vec<_> = rows(ran.text())
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let expected: Vec<_> = (21..=40)
        .filter(|number| *number != 31)
        .map(|number| (number.to_string(), number.to_string()))
        .collect();
    assert_eq!(found, expected);
    let ran = place.run("index remove lib 31 021 99 x 40");
    assert_eq!(ran.code, Some(1));
    for missing in ["'31'", "'021'", "'99'", "'x'"] {
        assert!(ran.err.contains(missing), "{}", ran.err);
    }
    assert_eq!(info(&place, "lib")["fingerprints"], 18);
    place.write("named", "x\tff\n");
    place.refused(
        "index add lib named --fingerprints",
        &["row 1", "--id-row", "numbered"],
    );
    place.ok("index add lib named --fingerprints --id-row");
}

#[test]
fn bad_rows_alone_replace_no_index() {
    let place = Place::new();
    place.write("good.tsv", "a\t7\nb\t0\n");
    place.write("bad.tsv", "a\txyz\nb\tuvw\n");
    place.ok("index build lib good.tsv --fingerprints");
    place.refused(
        "index build lib bad.tsv --fingerprints --force",
        &["none of the 2 rows", "stays as it was"],
    );
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    place.ok("index verify lib");
    place.write("none.tsv", "");
    place.ok("index build lib none.tsv --fingerprints --force");
    assert_eq!(info(&place, "lib")["fingerprints"], 0);
}

#[test]
fn matches_are_nearest_first_up_to_the_limit() {
    let place = Place::new();
    place.write("lib.tsv", "a\t7\nb\t0\nc\t1\nd\t3\ne\t0\nf\tff00\n");
    place.write("q.tsv", "q\t0\nr\tffff0000\ns\tff01\n");
    place.ok("index build lib lib.tsv --fingerprints");
    let found = |options: &str| -> Vec<String> {
        let ran = place.ok(&format!("search lib q.tsv --fingerprints {options}"));
        rows(ran.text()).iter().map(|row| row.join(" ")).collect()
    };
    assert_eq!(
        found(""),
        ["q b 0", "q e 0", "q c 1", "q d 2", "q a 3", "s f 1"]
    );
    assert_eq!(found("--nearest 1"), ["q b 0", "s f 1"]);
    assert_eq!(found("--nearest 3"), ["q b 0", "q e 0", "q c 1", "s f 1"]);
    assert_eq!(found("--first"), ["q a 3", "s f 1"]);
    assert_eq!(found("--limit 5").len(), 6);
    assert_eq!(
        found("--limit 2"),
        ["q b 0 true", "q e 0 true", "s f 1 false"]
    );
    let header = place.ok("search lib q.tsv --fingerprints --limit 5");
    assert!(
        header
            .text()
            .starts_with("query\tmatch\tdistance\ttruncated\nq\tb\t0\tfalse\n")
    );
    let ran = place.ok("search lib q.tsv --fingerprints --limit 2");
    assert!(
        ran.err.contains("truncated") && ran.err.contains("1 query"),
        "{}",
        ran.err
    );
    let ran = place.ok("search lib q.tsv --fingerprints --limit 4 --json -o out.tsv");
    let summary: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(
        (&summary["truncated"], &summary["matched"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        (&summary["queries"], &summary["matches"]),
        (&3.into(), &5.into())
    );
    for extension in ["jsonl", "csv", "parquet"] {
        place.ok(&format!(
            "search lib q.tsv --fingerprints -o out.{extension}"
        ));
    }
    let first = "{\"query\":\"q\",\"match\":\"b\",\"distance\":0}\n";
    assert!(place.read("out.jsonl").starts_with(first));
    assert!(
        place
            .read("out.csv")
            .starts_with("query,match,distance\nq,b,0\n")
    );
    assert_eq!(read_parquet(&place.path("out.parquet"), "match").len(), 6);
}

#[test]
fn stored_texts_are_compared() {
    let place = Place::new();
    let corpus = Numbers::new(23).corpus(900);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.ok("index build lib in.jsonl --texts --distance 12");
    place.ok("index build bare in.jsonl --distance 12");
    // The features of the default recipe are pairs of neighbouring words for these texts.
    let features: BTreeMap<&str, BTreeSet<(&str, &str)>> = corpus
        .iter()
        .map(|(id, text)| {
            let words: Vec<_> = text.split(' ').collect();
            (
                id.as_str(),
                words.windows(2).map(|pair| (pair[0], pair[1])).collect(),
            )
        })
        .collect();
    let similarity = |a: &str, b: &str, least: bool| {
        let (a, b) = (&features[a], &features[b]);
        let shared = a.intersection(b).count();
        let whole = if least {
            a.len().min(b.len())
        } else {
            a.len() + b.len() - shared
        };
        shared as f64 / whole as f64
    };
    let near = rows(place.ok("search lib in.jsonl").text());
    for (option, least, threshold) in [
        ("--verify jaccard", false, 0.75),
        ("--threshold 0.5", false, 0.5),
        ("--verify containment --threshold 0.9", true, 0.9),
    ] {
        let ran = place.ok(&format!("search lib in.jsonl --distance 12 {option}"));
        assert!(ran.text().starts_with("query\tmatch\tsimilarity\n"));
        let expected: BTreeSet<_> = near
            .iter()
            .map(|row| {
                (
                    row[0].clone(),
                    row[1].clone(),
                    similarity(&row[0], &row[1], least),
                )
            })
            .filter(|(.., similarity)| *similarity >= threshold)
            .map(|(query, found, similarity)| vec![query, found, similarity.to_string()])
            .collect();
        let found = rows(ran.text());
        assert_eq!(
            found.iter().cloned().collect::<BTreeSet<_>>(),
            expected,
            "{option}"
        );
        assert_eq!(found.len(), expected.len());
        for pair in found.windows(2).filter(|pair| pair[0][0] == pair[1][0]) {
            let value = |row: &[String]| row[2].parse::<f64>().unwrap();
            assert!(value(&pair[0]) >= value(&pair[1]));
        }
    }
    let none = rows(
        place
            .ok("search bare in.jsonl --verify none --distance 4")
            .text(),
    );
    for (row, distance) in none
        .iter()
        .zip(rows(place.ok("search lib in.jsonl --distance 4").text()))
    {
        let bits: f64 = distance[2].parse().unwrap();
        assert_eq!(row[2].parse::<f64>().unwrap(), 1.0 - bits / 64.0);
    }
    place.refused(
        "search bare in.jsonl --threshold 0.5 --distance 3",
        &["--texts", "bare"],
    );
    place.refused("search bare in.jsonl --verify lcs", &["--texts", "bare"]);
    place.refused(
        "search lib in.jsonl --verify none --threshold 0.5",
        &["--threshold"],
    );
    place.write("f", "0\n");
    place.refused(
        "search lib f --fingerprints --threshold 0.5",
        &["bare fingerprints"],
    );
    // Texts survive merging, and the removal of half of the rows.
    let gone: String = corpus[..500]
        .iter()
        .map(|(id, _)| format!("{id}\n"))
        .collect();
    place.write("gone", gone);
    place.ok("index remove lib --ids gone");
    place.write("more.jsonl", corpus_jsonl(&corpus[..300]));
    place.ok("index add lib more.jsonl");
    let ran = place.ok("index verify lib");
    assert!(
        ran.err.contains("computed again from their texts"),
        "{}",
        ran.err
    );
    let found = rows(
        place
            .ok("search lib more.jsonl --verify jaccard --nearest 1")
            .text(),
    );
    assert!(found.len() > 250 && found.iter().all(|row| row[2] == "1"));
}

/// Returns short and long documents in English and Chinese, all different.
pub(crate) fn two_languages(documents: usize) -> Vec<(String, String)> {
    let mut numbers = Numbers::new(31);
    let mut corpus = numbers.corpus(documents);
    let character =
        |numbers: &mut Numbers| char::from_u32(0x4e00 + numbers.below(3000) as u32).unwrap();
    let mut chinese: Vec<Vec<char>> = Vec::new();
    for at in 0..documents {
        let mut text = match at % 3 {
            0 => {
                let length = [6, 12, 30, 66, 90, 200, 500][numbers.below(7)];
                (0..length).map(|_| character(&mut numbers)).collect()
            }
            _ => chinese[numbers.below(chinese.len())].clone(),
        };
        for _ in 0..numbers.below(text.len() / 8 + 2) {
            let place = numbers.below(text.len());
            text[place] = character(&mut numbers);
        }
        corpus.push((format!("z{at}"), text.iter().collect()));
        chinese.push(text);
    }
    let mut seen = BTreeSet::new();
    corpus.retain(|(_, text)| seen.insert(text.clone()));
    corpus
}

#[test]
fn search_by_threshold_equals_pairs() {
    let place = Place::new();
    let corpus = two_languages(450);
    let (first, rest) = corpus.split_at(600);
    let (second, third) = rest.split_at(40);
    for (name, part) in [("first", first), ("second", second), ("third", third)] {
        place.write(&format!("{name}.jsonl"), corpus_jsonl(part));
    }
    place.ok("index build lib first.jsonl");
    // Some rows become tombstones, and further rows get a segment of their own.
    let gone: BTreeSet<_> = first
        .iter()
        .step_by(17)
        .map(|(id, _)| id.as_str())
        .collect();
    let ids: Vec<_> = gone.iter().copied().collect();
    place.ok(&format!("index remove lib {}", ids.join(" ")));
    place.ok("index add lib second.jsonl");
    assert_eq!(info(&place, "lib")["segments"].as_array().unwrap().len(), 2);
    let check = |held: usize, library: &str, option: &str| {
        let held = corpus[..held].iter();
        let held = held.filter(|(id, _)| !gone.contains(id.as_str()));
        let held: Vec<_> = held.cloned().collect();
        place.write("held.jsonl", corpus_jsonl(&held));
        let order: BTreeMap<_, _> = held.iter().map(|(id, _)| id.as_str()).zip(0..).collect();
        let expected = rows(place.ok(&format!("pairs held.jsonl {option}")).text());
        let expected: BTreeSet<_> = expected.iter().map(|row| row[..3].to_vec()).collect();
        let ran = place.ok(&format!("search {library} held.jsonl {option}"));
        let line = format!("search {library} held.jsonl {option} --threads 1");
        assert_eq!(place.ok(&line).out, ran.out, "{option}");
        let found = rows(ran.text());
        let itself = found.iter().filter(|row| row[0] == row[1]);
        assert_eq!(itself.count(), held.len(), "{option}");
        let once = found
            .iter()
            .filter(|row| order[row[0].as_str()] < order[row[1].as_str()]);
        let once: BTreeSet<_> = once.cloned().collect();
        assert_eq!(found.len(), 2 * once.len() + held.len(), "{option}");
        assert!(expected.len() > 50, "{option}: {}", expected.len());
        assert_eq!(once, expected, "{option}");
        ran.err
    };
    for threshold in ["0.5", "0.75", "0.9"] {
        for measure in ["jaccard", "containment", "cosine"] {
            let option = format!("--threshold {threshold} --verify {measure}");
            let said = check(640, "lib", &option);
            let named = format!("{measure} at least {threshold}");
            assert!(said.contains(&named), "{said}");
            let join = match measure {
                "containment" => "exact join by containment",
                _ => "exact join up to 64 features",
            };
            assert!(said.contains(join), "{said}");
        }
    }
    place.ok("index verify lib");
    // Merging drops removed rows and renumbers the others.
    place.ok("index add lib third.jsonl");
    assert_eq!(info(&place, "lib")["has_features"], true);
    check(corpus.len(), "lib", "--threshold 0.6");
    place.ok("index verify lib");
    place.write("held.jsonl", corpus_jsonl(&corpus));
    place.ok("index build texts held.jsonl --texts");
    place.ok(&format!("index remove texts {}", ids.join(" ")));
    check(
        corpus.len(),
        "texts",
        "--verify levenshtein --threshold 0.8",
    );
}

#[test]
fn distance_indexes_refuse_thresholds() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "one two three"), ("b", "four five six")]),
    );
    place.ok("index build lib in.jsonl --distance-only --texts");
    assert_eq!(info(&place, "lib")["has_features"], false);
    let words = ["lib", "index build lib IN --force", "--distance-only"];
    place.refused("search lib in.jsonl --threshold 0.5", &words);
    place.ok("search lib in.jsonl --threshold 0.5 --distance 3");
    // An index of a version without records can be read, but not searched by threshold.
    let manifest = place.read("lib/manifest");
    let second = manifest.replacen("lookalike-library 3", "lookalike-library 2", 1);
    place.write("lib/manifest", second);
    place.refused("search lib in.jsonl --verify cosine", &words);
    assert_eq!(rows(place.ok("search lib in.jsonl").text()).len(), 2);
    place.ok("index build lib in.jsonl --force");
    let found = place.ok("search lib in.jsonl --threshold 0.5").out;
    assert_eq!(found, b"query\tmatch\tsimilarity\na\ta\t1\nb\tb\t1\n");
    place.write("bare.tsv", "c\t1\n");
    place.refused(
        "index add lib bare.tsv --fingerprints",
        &["lib", "--distance-only"],
    );
}

#[test]
fn documents_that_share_a_block_are_found() {
    let place = Place::new();
    // 16 bits at distance 1 give two blocks of 8 bits.
    place.write("lib.tsv", "a\t00ff\nb\tff00\nc\t00f0\nd\tffff\n");
    place.ok("index build lib lib.tsv --fingerprints --bits 16 --distance 1 --plan blocks");
    let ran = place.run_with(
        "search lib - --fingerprints --candidates blocks",
        b"q\t0000\n",
    );
    let found: Vec<_> = rows(ran.text()).iter().map(|row| row.join(" ")).collect();
    assert_eq!(found, ["q c 4", "q a 8", "q b 8"]);
    place.ok("index build auto lib.tsv --fingerprints --bits 16 --distance 1");
    place.refused(
        "search auto lib.tsv --fingerprints --candidates blocks",
        &["auto", "--plan blocks"],
    );
    place.refused(
        "search lib lib.tsv --fingerprints --candidates blocks --distance 1",
        &["--distance 1", "--candidates blocks"],
    );
}

#[test]
fn other_recipe_is_refused_by_name() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        jsonl([("a", "one two three"), ("b", "four five six")]),
    );
    place.ok("index build lib in.jsonl");
    place.ok("search lib in.jsonl --recipe default");
    let ids = place.ok("recipe");
    let id = |name: &str| -> String {
        let line = ids
            .text()
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let words = [
        "default-1",
        &id("default-1"),
        "words-3",
        &id("words-3"),
        "never compare",
    ];
    place.refused("search lib in.jsonl --recipe words-3", &words);
    place.write("codes", "0\n");
    place.ok("index build bare codes --fingerprints");
    place.refused(
        "search bare in.jsonl",
        &["unknown recipe", "--fingerprints"],
    );
    place.refused(
        "search bare codes --fingerprints --recipe default",
        &["unknown recipe", "default-1"],
    );
    place.ok("index build known codes --fingerprints --recipe default");
    place.ok("search known in.jsonl");
    place.refused(
        "index build x codes --fingerprints --recipe default --bits 32",
        &["32", "64"],
    );
}

/// Repeated ids are counted and reported, refused by `--strict`, and removed together.
#[test]
fn repeated_ids_are_counted() {
    let place = Place::new();
    place.write("twice.tsv", "a\t1\nb\t2\na\t3\na\t4\n");
    place.refused(
        "index build lib twice.tsv --fingerprints --strict",
        &["'a'", "rows 1 and 3", "--id-row"],
    );
    assert!(!place.has("lib"));
    let ran = place.ok("index build lib twice.tsv --fingerprints");
    let told =
        "2 rows have the id of an earlier row, first 'a' in row 1 of the inputs and row 3 of";
    assert_eq!(ran.err.matches(told).count(), 1, "{}", ran.err);
    assert!(ran.err.contains("`index remove`"), "{}", ran.err);
    place.write("more.tsv", "c\t5\nb\t6\nb\t7\nc\t5\n");
    let before = place.bytes("lib/manifest");
    place.refused(
        "index add lib more.tsv --fingerprints --strict",
        &["'b'", "row 2", "lib", "index remove"],
    );
    assert_eq!(place.bytes("lib/manifest"), before);
    let done = place.summary("index add lib more.tsv --fingerprints");
    assert_eq!(
        (&done["added"], &done["repeated_ids"]),
        (&4.into(), &3.into())
    );
    assert_eq!(place.summary("index remove lib b")["removed"], 3);
    // The id of a removed row is free again.
    place.write("again.tsv", "b\t6\n");
    let done = place.summary("index add lib again.tsv --fingerprints --strict");
    assert_eq!(done["repeated_ids"], 0);
    place.write("probe.tsv", "1\n3\n4\n");
    let ran = place.ok("search lib probe.tsv --fingerprints --distance 0");
    let found = ran.text();
    assert_eq!(found.matches("\ta\t").count(), 3, "{found}");
    // Many equal ids in the index and in the addition are compared once each.
    let many = |from: u32| -> String {
        (from..from + 60_000)
            .map(|at| format!("same\t{at}\n"))
            .collect()
    };
    place.write("many.tsv", many(0));
    let done = place.summary("index build many many.tsv --fingerprints");
    assert_eq!(done["repeated_ids"], 59_999);
    place.write("many.tsv", many(60_000));
    let done = place.summary("index add many many.tsv --fingerprints");
    assert_eq!(done["repeated_ids"], 60_000);
}

#[test]
fn either_all_rows_have_ids_or_none() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\nb\t2\n");
    place.ok("index build lib in.tsv --fingerprints");
    place.write("alone.tsv", "7\n");
    place.refused(
        "index add lib alone.tsv --fingerprints",
        &["row 1", "no id", "--id"],
    );
    place.write("mixed.tsv", "x\t7\n8\n");
    place.refused(
        "index build mixed mixed.tsv --fingerprints",
        &["row 2", "no id"],
    );
    place.write("empty.tsv", "\t7\n");
    place.refused(
        "index build e empty.tsv --fingerprints",
        &["empty.tsv:1: the id is empty"],
    );
    assert!(!place.has("e"));
}

#[test]
fn bad_rows_are_reported() {
    let place = Place::new();
    place.write(
        "codes.tsv",
        "id\tfingerprint\na\t12\nb\txyz\nc\t-\nd\t1ffffffffffffffff\ne\t13\n",
    );
    let ran = place.run("index build lib codes.tsv --fingerprints --rejected bad.tsv");
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("codes.tsv:3: 'xyz' is not a fingerprint"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("codes.tsv:5:") && ran.err.contains("64 bits"),
        "{}",
        ran.err
    );
    assert_eq!(place.read("bad.tsv"), "b\txyz\nd\t1ffffffffffffffff\n");
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    let ran = place.run("search lib codes.tsv --fingerprints --json -o out.tsv");
    assert_eq!(ran.code, Some(1));
    let summary: Value = serde_json::from_slice(&ran.out).unwrap();
    let counts = ["queries", "empty", "rejected"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(counts, [3, 1, 2]);
    let ran = place.run("index build strict codes.tsv --fingerprints --strict");
    assert_eq!((ran.code, place.has("strict")), (Some(2), false));
    // Lines are counted as in the file, empty ones included.
    place.write("blank.tsv", "a\t12\n\n\n\nb\tzz\n");
    place.write("blank.csv", "id,fingerprint\n\n\"a\nb\",01\n\nc,zz\n");
    for (line, said) in [
        ("search lib blank.tsv --fingerprints", "blank.tsv:5:"),
        ("search lib blank.csv --fingerprints", "blank.csv:6:"),
    ] {
        let ran = place.run(line);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
    place.refused(
        "search lib codes.tsv --fingerprints -o lib/manifest",
        &["lib/manifest"],
    );
    place.refused(
        "search lib codes.tsv --fingerprints -o x.parquet.gz",
        &["twice"],
    );
    place.write("ids", "\u{feff}a\n");
    place.ok("index remove lib --ids ids");
    // If no row is good, nothing is written.
    place.write("all.tsv", "xyz\n");
    place.write("all.jsonl", "{\"fingerprint\":\"xyz\"}\n");
    place.write("all.csv", "before");
    for line in [
        "search lib all.tsv --fingerprints -o all.csv",
        "search lib all.jsonl --fingerprint fingerprint",
        "index add lib all.tsv --fingerprints",
    ] {
        place.refused(line, &["none of the 1 rows", "'xyz' is not a fingerprint"]);
    }
    assert_eq!(place.read("all.csv"), "before");
}

/// Documents too short for a fingerprint match documents that are equal after normalisation, or equal as they
/// are if normalisation leaves nothing. Empty documents match nothing.
#[test]
fn texts_too_short_match_equal_texts() {
    let texts = [
        ("p", "one"),
        ("q", ""),
        ("r", "one two three"),
        ("s", "ONE!"),
        ("t", "!!!"),
        ("u", "!?!"),
        ("v", "two"),
    ];
    let queries = [
        ("one", "One."),
        ("two", "two"),
        ("raw", " !!! "),
        ("empty", " "),
        ("rich", "one two three"),
        ("none", "three"),
    ];
    for bits in [64, 8, 128] {
        let place = Place::new();
        place.write("in.jsonl", jsonl(texts));
        place.write("q.jsonl", jsonl(queries));
        let toml = place.ok(&format!("recipe default --set simhash.bits={bits}"));
        place.write("mine.toml", toml.out);
        let ran = place.ok("index build lib in.jsonl --texts --recipe mine.toml --distance 3");
        assert!(
            ran.err.contains("5 too short for a fingerprint"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("1 without text"), "{}", ran.err);
        let found = |options: &str| -> Vec<String> {
            let ran = place.ok(&format!("search lib q.jsonl {options}"));
            let rows = rows(ran.text()).into_iter();
            rows.map(|row| row.join(" ")).collect()
        };
        let expected = ["one p 0", "one s 0", "two v 0", "raw t 0", "rich r 0"];
        assert_eq!(found(""), expected);
        let similar = ["one p 1", "one s 1", "two v 1", "raw t 1", "rich r 1"];
        for check in ["none", "jaccard", "levenshtein", "cosine"] {
            assert_eq!(found(&format!("--verify {check}")), similar, "{check}");
        }
        assert_eq!(found("--first")[0], "one p 0");
        assert_eq!(found("--nearest 1")[0], "one p 0");
        let summary: Value =
            serde_json::from_slice(&place.ok("search lib q.jsonl --json -o out.tsv").out).unwrap();
        let counts = ["queries", "unfingerprinted", "empty", "matched"];
        assert_eq!(
            counts.map(|count| summary[count].as_u64().unwrap()),
            [6, 4, 1, 4]
        );
        // Rows change their positions when others are removed and segments are merged.
        place.ok("index verify lib");
        place.ok("index remove lib p u");
        place.write("more.jsonl", jsonl([("w", "one"), ("x", "four five six")]));
        place.ok("index add lib more.jsonl");
        let info = info(&place, "lib");
        assert_eq!(
            (&info["fingerprints"], &info["unfingerprinted"]),
            (&6.into(), &4.into())
        );
        assert_eq!(info["segments"].as_array().unwrap().len(), 1);
        let expected = ["one s 0", "one w 0", "two v 0", "raw t 0", "rich r 0"];
        assert_eq!(found("--distance 0"), expected);
        place.ok("index verify lib");
        place.ok("index remove lib s");
        assert_eq!(self::info(&place, "lib")["unfingerprinted"], 3);
        place.ok("index remove lib t v w");
        assert_eq!(found("--distance 0"), ["rich r 0"]);
        place.ok("index verify lib");
    }
}

/// An index of the first version of the manifest has no documents without fingerprint.
#[test]
fn indexes_of_version_1_are_read() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\nb\t2\n");
    place.ok("index build lib in.tsv --fingerprints");
    let manifest = place.read("lib/manifest");
    assert!(!manifest.contains("poor"));
    let first = manifest.replacen("lookalike-library 3", "lookalike-library 1", 1);
    place.write("lib/manifest", first);
    let found = place
        .ok("search lib in.tsv --fingerprints --distance 0")
        .out;
    assert_eq!(found, b"query\tmatch\tdistance\na\ta\t0\nb\tb\t0\n");
    place.write("more.tsv", "c\t4\n");
    place.ok("index add lib more.tsv --fingerprints");
    assert!(
        place
            .read("lib/manifest")
            .starts_with("lookalike-library 3 ")
    );
    place.ok("index verify lib");
}

/// Rows without ids are numbered as in the inputs, including rows that are left out.
#[test]
fn rows_left_out_have_numbers() {
    let place = Place::new();
    let text = |words: &str| format!("{{\"text\":\"{words}\"}}\n");
    let rows_of = |from: usize| -> String {
        let rich = |at: usize| text(&format!("row number {at} of them all"));
        [
            &rich(from),
            "bad\n",
            &text(""),
            &rich(from + 3),
            &text("poor"),
        ]
        .concat()
    };
    place.write("a.jsonl", rows_of(1));
    place.write("b.jsonl", rows_of(6));
    place.write("c.jsonl", [rows_of(1), rows_of(6)].concat());
    assert_eq!(place.run("index build apart a.jsonl").code, Some(1));
    assert_eq!(place.run("index add apart b.jsonl").code, Some(1));
    assert_eq!(place.run("index build together c.jsonl").code, Some(1));
    // The same holds if a whole input is left out.
    place.write("empty.jsonl", [text(""), "bad\n".to_owned()].concat());
    place.write("last.jsonl", text("the last of all rows"));
    place.run("index add apart empty.jsonl");
    place.ok("index add apart last.jsonl");
    assert_eq!(rows(place.ok("search apart last.jsonl").text())[0][1], "13");
    for library in ["apart", "together"] {
        let ran = place.run(&format!("search {library} c.jsonl --distance 0"));
        let found = rows(ran.text()).into_iter();
        let found: Vec<_> = found.map(|row| (row[0].clone(), row[1].clone())).collect();
        let expected = [
            (1, 1),
            (4, 4),
            (5, 5),
            (5, 10),
            (6, 6),
            (9, 9),
            (10, 5),
            (10, 10),
        ];
        let expected = expected.map(|(a, b): (u32, u32)| (a.to_string(), b.to_string()));
        assert_eq!(found, expected, "{library}");
        place.ok(&format!("index verify {library}"));
        place.ok(&format!("index remove {library} 4 10"));
    }
}

#[test]
fn existing_index_is_not_overwritten() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\n");
    place.write("docs/mine.txt", "mine");
    place.ok("index build lib in.tsv --fingerprints");
    place.refused(
        "index build lib in.tsv --fingerprints",
        &["lib", "--force", "index add"],
    );
    for force in ["", "--force"] {
        place.refused(
            &format!("index build docs in.tsv --fingerprints {force}"),
            &["docs", "is not an index"],
        );
        place.refused(
            &format!("index build in.tsv in.tsv --fingerprints {force}"),
            &["in.tsv"],
        );
    }
    assert_eq!(place.read("docs/mine.txt"), "mine");
    place.write("other.tsv", "b\t2\nc\t3\n");
    place.ok("index build lib other.tsv --fingerprints --force");
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    place.refused(
        "index build lib nothing.tsv --fingerprints --force",
        &["nothing.tsv"],
    );
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    place.ok("index verify lib");
    fs::create_dir(place.path("empty")).unwrap();
    place.ok("index build empty in.tsv --fingerprints");
    // The remains of an interrupted writer are ignored.
    place.write("begun/00000001.ids", "half");
    place.write("begun/lock", "");
    place.ok("index build begun in.tsv --fingerprints");
    place.write("begun/00000009.codes", "half");
    place.ok("index add begun other.tsv --fingerprints");
    assert!(!place.has("begun/00000009.codes"));
}

#[test]
fn invalid_indexes_are_refused() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\n");
    fs::create_dir(place.path("empty")).unwrap();
    for line in [
        "search LIB in.tsv --fingerprints",
        "index add LIB in.tsv --fingerprints",
        "index remove LIB a",
        "index info LIB",
        "index verify LIB",
    ] {
        for (library, said) in [("none", "no such directory"), ("empty", "no manifest")] {
            place.refused(
                &line.replace("LIB", library),
                &[library, said, "index build"],
            );
        }
        place.refused(&line.replace("LIB", "in.tsv"), &["in.tsv"]);
    }
    assert!(!place.has("none"));
    assert!(fs::read_dir(place.path("empty")).unwrap().next().is_none());
}

#[test]
fn damage_is_detected_and_named() {
    let place = Place::new();
    let mut corpus = Numbers::new(5).corpus(300);
    corpus.extend(["hello", "Hello!", "再"].map(|it| (format!("poor {it}"), it.to_owned())));
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.ok("index build lib in.jsonl --texts");
    let gone: Vec<_> = corpus
        .iter()
        .filter(|(_, text)| text.len() > 50)
        .take(20)
        .collect();
    let gone: Vec<_> = gone.iter().map(|(id, _)| id.as_str()).collect();
    place.ok(&format!("index remove lib {}", gone.join(" ")));
    let good = place.ok("search lib in.jsonl --verify jaccard").out;
    let files = fs::read_dir(place.path("lib")).unwrap();
    let mut names: Vec<_> = files
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock")
        .collect();
    names.sort();
    assert_eq!(names.len(), 9, "{names:?}");
    let mut numbers = Numbers::new(9);
    for name in &names {
        let file = format!("lib/{name}");
        let whole = place.bytes(&file);
        let mut damaged = vec![
            Vec::new(),
            whole[..whole.len() - 1].to_vec(),
            [&whole[..], b"x"].concat(),
        ];
        for _ in 0..4 {
            let mut flipped = whole.clone();
            flipped[numbers.below(whole.len())] ^= 1 << numbers.below(8);
            damaged.push(flipped);
            damaged.push(whole[..numbers.below(whole.len())].to_vec());
        }
        for bytes in damaged {
            fs::write(place.path(&file), &bytes).unwrap();
            place.refused("index verify lib", &["lib/"]);
            // A wrong answer is never given: the search is refused, or does not need the damaged part.
            let ran = place.run("search lib in.jsonl --verify jaccard -o out.tsv --quiet");
            assert!(matches!(ran.code, Some(0 | 2)), "{name}: {}", ran.err);
            assert!(
                !ran.err.contains("mistake in the program"),
                "{name}: {}",
                ran.err
            );
            if ran.code == Some(0) {
                assert_eq!(place.bytes("out.tsv"), good, "{name}");
            }
        }
        fs::remove_file(place.path(&file)).unwrap();
        place.refused("index verify lib", &["lib"]);
        fs::write(place.path(&file), &whole).unwrap();
        place.ok("index verify lib");
    }
    let manifest = place.read("lib/manifest");
    place.write(
        "lib/manifest",
        manifest.replacen("lookalike-library 3", "lookalike-library 6", 1),
    );
    place.refused(
        "search lib in.jsonl",
        &["version 6", "versions 1, 2, 3, 4, 5", "manifest"],
    );
    // A well-formed file from another index.
    place.write("lib/manifest", &manifest);
    let others = corpus
        .iter()
        .map(|(id, text)| (format!("{id}x"), text.clone()));
    place.write("other.jsonl", corpus_jsonl(&others.collect::<Vec<_>>()));
    place.ok("index build other other.jsonl --texts");
    fs::copy(
        place.path("other/00000001.ids"),
        place.path("lib/00000001.ids"),
    )
    .unwrap();
    place.refused("search lib in.jsonl", &["00000001.ids", "not the file"]);
}

#[test]
fn one_writer_and_many_readers_can_open() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\n");
    place.ok("index build lib in.tsv --fingerprints");
    let mut writer = place.spawn("index add lib - --fingerprints");
    let mut stdin = writer.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"b\t2\n").unwrap();
    // The writer locks the index until its input ends. It must have the lock before others try, because
    // otherwise they would get it.
    let wait_for_lock = |writer: &std::process::Child| {
        let files = format!("/proc/{}/fd", writer.id());
        let lock = place.path("lib/lock").canonicalize().unwrap();
        let is_open = || {
            let files = fs::read_dir(&files).unwrap().flatten();
            files
                .flat_map(|file| fs::read_link(file.path()))
                .any(|file| file == lock)
        };
        while !is_open() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    let refused = |line: &str| {
        place.refused(line, &["lib", "being changed by another process"]);
    };
    wait_for_lock(&writer);
    refused("index remove lib nothing");
    refused("index add lib in.tsv --fingerprints");
    refused("index build lib in.tsv --fingerprints --force");
    assert_eq!(
        rows(place.ok("search lib in.tsv --fingerprints").text()).len(),
        1
    );
    drop(stdin);
    assert!(writer.wait().unwrap().success());
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    // Killing a writer leaves the index as it was.
    let mut writer = place.spawn("index add lib - --fingerprints");
    let stdin = writer.stdin.take().unwrap();
    wait_for_lock(&writer);
    refused("index remove lib nothing");
    writer.kill().unwrap();
    writer.wait().unwrap();
    drop(stdin);
    assert_eq!(info(&place, "lib")["fingerprints"], 2);
    place.ok("index remove lib b");
}

#[test]
fn many_equal_fingerprints_and_queries() {
    let place = Place::new();
    let equal = "00000000deadbeef\n".repeat(choose_effort(10_000, 60_000));
    place.write("equal", &equal);
    place.ok("index build lib equal --fingerprints");
    place.write("queries", "deadbeef\ndeadbeee\n0\n".repeat(3000));
    let ran = place.ok("search lib queries --fingerprints --limit 2");
    assert_eq!(rows(ran.text()).len(), 12_000);
    assert!(
        ran.err.contains("6,000 queries with more matches"),
        "{}",
        ran.err
    );
    place.write("few", "deadbeef\n".repeat(20));
    let all = place.ok("search lib few --fingerprints");
    assert_eq!(all.text().lines().count(), 1 + 20 * equal.lines().count());
    let last = format!("20\t{}\t0\n", equal.lines().count());
    assert!(all.text().ends_with(&last));
}

#[test]
fn neighbourhoods_are_stored_for_small_indexes_only() {
    let place = Place::new();
    let table = planted(&mut Numbers::new(21), 10_001, 64);
    place.write("most.tsv", lines(&table[..9_999]));
    place.write("two.tsv", lines(&table[9_999..]));
    place.write("one.tsv", lines(&table[9_999..10_000]));
    place.write("all.tsv", lines(&table));
    let build = "--fingerprints --plan neighbourhoods --distance 1";
    let said = ["neighbourhoods", "at most 10000", "10001"];
    place.refused(&format!("index build lib all.tsv {build}"), &said);
    assert!(!place.has("lib"));
    place.ok(&format!("index build lib most.tsv {build}"));
    place.refused("index add lib two.tsv --fingerprints", &said);
    assert_eq!(info(&place, "lib")["fingerprints"], 9_999);
    place.ok("index add lib one.tsv --fingerprints");
    place.ok("index verify lib");
    let found = place.ok("search lib one.tsv --fingerprints");
    assert_eq!(
        rows(found.text()),
        scan(&table[9_999..10_000].to_vec(), &table[..10_000].to_vec(), 1)
    );
    let shown = place.ok("index plan --count 10000 --plan neighbourhoods");
    let chosen = "neighbourhoods (direct keys of 20 bits, packed)  <- this one";
    assert!(shown.text().contains(chosen), "{}", shown.text());
    place.refused("index plan --count 10001 --plan neighbourhoods", &said);
}

#[test]
fn plans_are_shown_and_refused() {
    let place = Place::new();
    let ran = place.ok("index plan --count 50M");
    assert!(ran.text().contains("50,000,000 fingerprints of 64 bits") && ran.text().contains("<-"));
    let ran = place.ok("index plan --count 1,000,000 --plan blocks --json");
    let value: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(value["count"], 1_000_000);
    assert!(value["plan"]["bytes"].as_f64().unwrap() > 1e6);
    assert!(value["alternatives"].as_array().unwrap().len() > 3);
    place.refused(
        "index plan --count 1G --index-memory 1M",
        &["1000000000", "--index-memory"],
    );
    let said = place.ok("index plan --count 50M --live").text().to_owned();
    assert!(said.contains("32,32; 1,1 (live)  <- this one"), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    let said: Value =
        serde_json::from_slice(&place.ok("index plan --count 1M --live --json").out).unwrap();
    assert_eq!(
        (&said["live"], &said["plan"]["probes"]),
        (&true.into(), &32.0.into())
    );
    place.refused(
        "index plan --count 50M --live --index-memory 1G",
        &["1.0 GB"],
    );
    place.refused("index plan --count 50M --live --plan blocks", &["--plan"]);
    place.refused("index plan --count 50M --live --distance 17", &["17", "16"]);
    place.refused("index plan --count 10 --distance 17", &["17", "16"]);
    place.refused("index plan --count 10 --bits 7", &["7"]);
    place.refused("index plan --count 10 --plan best", &["best", "permuted"]);
    place.refused(
        "index plan --count 10 --plan 22,21,21;0,0,0",
        &["miss pairs"],
    );
    let said: Value =
        serde_json::from_slice(&place.ok("index plan --count 1M --plan 22,21,21 --json").out)
            .unwrap();
    let plan = said["plan"]["plan"].as_str().unwrap();
    assert!(plan.starts_with("22,21,21; 1,0,0 "), "{plan}");
    assert_eq!(said["tables"], serde_json::json!([]));
    let permuted = place.ok("index plan --count 1M --plan permuted");
    let tables = permuted
        .text()
        .lines()
        .filter(|line| line.contains(" | ") && line.ends_with(" bits"));
    assert_eq!(tables.count(), 10);
    assert!(
        permuted.text().contains("  0 2 | 1 3 4  26 bits"),
        "{}",
        permuted.text()
    );
    place.refused("index plan --count 0", &["0"]);
    place.write("in", "1\n");
    place.refused("index build lib in --fingerprints --plan best", &["best"]);
    place.refused("index build lib in --fingerprints --distance 64", &["64"]);
    place.refused("index build lib in --fingerprints --texts", &["--texts"]);
    place.refused("index build lib in --fingerprints --text body", &["--text"]);
    place.refused("index build lib in --digits hex", &["--fingerprints"]);
    place.refused("index build lib in --fingerprints --id name", &["name"]);
    assert_eq!(place.names(), ["in"]);
}
