//! Every input format and compression, and every way to name inputs and fields.

use lookalike_oracle::effort::is_long_run;

use crate::support::{
    Place, Ran, bzip2, gunzip, gzip, jsonl, peak_memory, read_parquet, row, unzstd, write_parquet,
    xz, zstd,
};

/// b is a duplicate of a except for case and punctuation; c is different.
const DOCUMENTS: [(&str, &str); 4] = [
    ("a", "The quick brown fox jumps over the lazy dog"),
    ("b", "the QUICK brown fox jumps over the lazy dog!"),
    ("c", "后来他们在发廊里头谈了很久"),
    ("d", "後來他們在髮廊裏頭談了很久。"),
];

fn as_csv(delimiter: &str) -> String {
    let rows = DOCUMENTS.map(|(id, text)| format!("{id}{delimiter}{text}\n"));
    format!("id{delimiter}text\n{}", rows.concat())
}

fn as_text() -> String {
    DOCUMENTS.map(|(_, text)| format!("{text}\n")).concat()
}

/// Returns the lines of `all` that a dedup keeps: the header, and the first document of each pair.
fn kept_lines(all: &str, header: bool) -> String {
    let lines: Vec<_> = all.split_inclusive('\n').collect();
    let shift = usize::from(header);
    let kept = (0..lines.len()).filter(|at| *at < shift || (at - shift).is_multiple_of(2));
    kept.map(|at| lines[at]).collect()
}

#[test]
fn formats_and_compressions_keep_row_bytes() {
    let inputs = [
        ("jsonl", jsonl(DOCUMENTS), false),
        ("ndjson", jsonl(DOCUMENTS), false),
        ("csv", as_csv(","), true),
        ("tsv", as_csv("\t"), true),
        ("txt", as_text(), false),
    ];
    type Code = fn(&[u8]) -> Vec<u8>;
    let plain: Code = <[u8]>::to_vec;
    let compressions: [(&str, Code, Code); 3] = [
        ("", plain, plain),
        (".gz", gzip, gunzip),
        (".zst", zstd, unzstd),
    ];
    for (extension, bytes, header) in inputs {
        for (suffix, compress, _) in compressions {
            for (out_suffix, _, decompress) in compressions {
                let place = Place::new();
                let name = format!("in.{extension}{suffix}");
                place.write(&name, compress(bytes.as_bytes()));
                let out = format!("out.{extension}{out_suffix}");
                let ran = place.ok(&format!("dedup {name} -o {out}"));
                assert!(ran.out.is_empty());
                let kept = String::from_utf8(decompress(&place.bytes(&out))).unwrap();
                assert_eq!(kept, kept_lines(&bytes, header), "{name} -> {out}");
            }
        }
    }
}

/// Sets the size of the dictionary in the first block of an xz stream to the largest one.
fn with_largest_dictionary(mut stream: Vec<u8>) -> Vec<u8> {
    // The header of the stream has 12 bytes. That of the block begins with its size in units of 4 bytes, less one, and
    // flags; the filter LZMA2 (21) has one byte of properties; a checksum ends it.
    let end = 12 + 4 * (usize::from(stream[12]) + 1);
    let filter = 12
        + stream[12..end]
            .iter()
            .position(|&byte| byte == 0x21)
            .unwrap();
    assert_eq!(stream[filter + 1], 1);
    stream[filter + 2] = 40;
    let checksum = crc32fast::hash(&stream[12..end - 4]);
    stream[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
    stream
}

#[test]
fn xz_and_bzip2_are_read() {
    let place = Place::new();
    let rows = jsonl(DOCUMENTS);
    place.write("plain.jsonl", &rows);
    place.ok("dedup plain.jsonl -o kept.jsonl");
    let expected = place.bytes("kept.jsonl");
    let half = rows.len() / 2;
    for (name, compress) in [
        ("in.jsonl.xz", xz as fn(&[u8]) -> Vec<u8>),
        ("in.jsonl.bz2", bzip2),
        // By its content.
        ("renamed.jsonl", xz),
        ("named.jsonl", bzip2),
    ] {
        // Several streams, of which one is empty, are one input.
        let bytes = rows.as_bytes();
        let streams = [
            compress(&bytes[..half]),
            compress(b""),
            compress(&bytes[half..]),
        ];
        place.write(name, streams.concat());
        place.ok(&format!("dedup {name} -o kept.jsonl"));
        assert!(place.bytes("kept.jsonl") == expected, "{name}");
        let mut torn = compress(bytes);
        torn.truncate(torn.len() - 9);
        place.write(name, torn);
        place.refused(
            &format!("dedup {name} -o kept.jsonl"),
            &[name, "decompress"],
        );
    }
    place.write("empty.jsonl.bz2", bzip2(b""));
    place.ok("dedup empty.jsonl.bz2 plain.jsonl -o kept.jsonl");
    place.write("other.jsonl.xz", gzip(rows.as_bytes()));
    place.refused(
        "dedup other.jsonl.xz -o kept.jsonl",
        &["other.jsonl.xz is not compressed as its extension says"],
    );
    // A dictionary of 4 GiB, whatever the data need.
    place.write(
        "bomb.jsonl.xz",
        with_largest_dictionary(xz(rows.as_bytes())),
    );
    place.refused(
        "dedup bomb.jsonl.xz -o kept.jsonl",
        &["bomb.jsonl.xz", "emory"],
    );
    // Text that begins like a stream of bzip2 is text.
    place.write("text.txt", "BZh9 is how such a file begins\n");
    place.ok("dedup text.txt -o kept.txt");
    place.write("2.txt", "h\n");
    place.ok("dedup 2.txt -o kept.txt");
}

/// Parquet is read from its end, so input from a pipe is copied first.
#[test]
fn parquet_on_standard_input_and_compressed() {
    let place = Place::new();
    let ids = vec!["a", "b", "c"];
    let texts = vec!["one two three", "One, two, three", "four five six"];
    write_parquet(&place.path("in.parquet"), &[("id", ids), ("text", texts)]);
    place.ok("dedup in.parquet -o expected.parquet --removed expected.tsv");
    let ran = place.run_with(
        "dedup - --format parquet -o out.parquet --removed out.tsv",
        &place.bytes("in.parquet"),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    place.write("packed", gzip(&place.bytes("in.parquet")));
    place.ok("dedup packed --format parquet -o packed.parquet --removed packed.tsv");
    for name in ["out", "packed"] {
        let kept = read_parquet(&place.path(&format!("{name}.parquet")), "id");
        assert_eq!(kept, ["a", "c"], "{name}");
        // The source is named as on the command line.
        let source = if name == "out" { "-" } else { name };
        let expected = place.read("expected.tsv").replace("in.parquet", source);
        assert_eq!(place.read(&format!("{name}.tsv")), expected);
    }
    let ran = place.run_with("dedup - --format parquet --dry-run", b"no Parquet");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("Parquet"), "{}", ran.err);
}

/// A pipe with a name can be opened only once. Windows has none in a directory.
#[cfg(unix)]
#[test]
fn parquet_comes_through_a_named_pipe() {
    let place = Place::new();
    let ids = vec!["a", "b", "c"];
    let texts = vec!["one two three", "One, two, three", "four five six"];
    write_parquet(&place.path("in.parquet"), &[("id", ids), ("text", texts)]);
    let pipe = place.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let bytes = place.bytes("in.parquet");
    let writing = std::thread::spawn(move || std::fs::write(pipe, bytes));
    place.ok("dedup pipe --format parquet -o out.parquet --removed out.tsv");
    writing.join().unwrap().unwrap();
    assert_eq!(read_parquet(&place.path("out.parquet"), "id"), ["a", "c"]);
    place.ok("dedup in.parquet -o expected.parquet --removed expected.tsv");
    let expected = place.read("expected.tsv").replace("in.parquet", "pipe");
    assert_eq!(place.read("out.tsv"), expected);
}

#[test]
fn parquet_keeps_all_columns() {
    let place = Place::new();
    let columns = |column: usize| -> Vec<&str> {
        DOCUMENTS
            .iter()
            .map(|(id, text)| if column == 0 { *id } else { *text })
            .collect()
    };
    let more = vec!["p", "q", "r", "s"];
    let all = [("id", columns(0)), ("text", columns(1)), ("more", more)];
    write_parquet(&place.path("in.parquet"), &all);
    place.ok("dedup in.parquet -o out.parquet --removed removed.parquet");
    assert_eq!(read_parquet(&place.path("out.parquet"), "id"), ["a", "c"]);
    assert_eq!(read_parquet(&place.path("out.parquet"), "more"), ["p", "r"]);
    assert_eq!(
        read_parquet(&place.path("removed.parquet"), "id"),
        ["b", "d"]
    );
    assert_eq!(
        read_parquet(&place.path("removed.parquet"), "kept"),
        ["a", "c"]
    );
}

/// The same rows have the same verdicts in every format, and come out in every other one.
#[test]
fn formats_with_columns_have_the_verdicts_of_jsonl() {
    let place = Place::new();
    let rows = (0..4000).map(|at| {
        let text = format!("report {} of the day {}", at % 1500, (at % 1500) * 7);
        format!(
            "{{\"id\":{at},\"text\":\"{text}\",\"time\":\"2026-01-{:02}T00:00:00Z\",\"n\":{{\"k\":[{at}]}}}}\n",
            1 + at % 28
        )
    });
    place.write("in.jsonl", rows.collect::<String>());
    let options = "--time time --window 10d --keep max:id";
    place.ok(&format!(
        "dedup in.jsonl -o out.jsonl --removed out.tsv {options}"
    ));
    let expected = (place.read("out.jsonl"), place.read("out.tsv"));
    place.write("no.jsonl", "{\"text\":\"something else altogether\"}\n");
    for name in ["in.parquet", "in.arrow", "in.feather", "in.arrows"] {
        // Nothing is like the other document and no threshold is above 1: every row is kept.
        place.ok(&format!(
            "dedup in.jsonl -o {name} --threshold 1 --id-row --within id --text text"
        ));
        for more in ["", " --memory 150M --threads 2", " --work run --resume"] {
            place.ok(&format!(
                "dedup {name} -o back.jsonl --removed back.tsv {options}{more}"
            ));
            let removed = place.read("back.tsv").replace(name, "in.jsonl");
            assert_eq!(
                (place.read("back.jsonl"), removed),
                expected,
                "{name}{more}"
            );
            let _ = std::fs::remove_dir_all(place.path("run"));
        }
        place.ok(&format!(
            "dedup {name} -o out.arrow --removed out.arrow.tsv {options}"
        ));
        place.ok("dedup out.arrow -o again.jsonl --threshold 1 --id-row --within id");
        assert_eq!(place.read("again.jsonl"), expected.0, "{name}");
        let ran = place.run_with(
            &format!(
                "dedup - --format {} -o piped.jsonl {options}",
                if name == "in.parquet" {
                    "parquet"
                } else {
                    "arrow"
                }
            ),
            &place.bytes(name),
        );
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(place.read("piped.jsonl"), expected.0, "{name}");
        let head = place.ok(&format!("head {name} --rows 1"));
        assert!(
            head.text().contains("n.k") || head.text().contains("n "),
            "{}",
            head.text()
        );
    }
    let ran = place.ok("dedup in.arrow -o - --quiet");
    place.write("stream.arrow", &ran.out);
    place.ok("dedup stream.arrow -o stream.jsonl --threshold 1 --id-row --within id");
    place.ok("dedup in.arrow -o plain.jsonl");
    assert_eq!(place.read("stream.jsonl"), place.read("plain.jsonl"));
    place.ok("pairs in.arrow -o pairs.arrow");
    place.ok("pairs in.jsonl -o pairs.jsonl");
    assert!(place.bytes("pairs.arrow").starts_with(b"ARROW1"));
    place.write(
        "bad.jsonl",
        "{\"id\":1,\"text\":\"a\",\"f\":1}\n{\"id\":2,\"text\":\"b\",\"f\":\"x\"}\n",
    );
    place.refused(
        "dedup bad.jsonl -o bad.parquet",
        &[
            "the field `f` is a number in bad.jsonl:1 and a string in bad.jsonl:2",
            ".jsonl",
        ],
    );
    assert!(!place.path("bad.parquet").exists());
}

#[test]
fn standard_input_and_output() {
    let place = Place::new();
    let ran = place.run_with("dedup - -o -", jsonl(DOCUMENTS).as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.text(), kept_lines(&jsonl(DOCUMENTS), false));
    assert!(ran.err.contains("removed"), "{}", ran.err);
    let ran = place.run_with("dedup - -o - --format csv", as_csv(",").as_bytes());
    assert_eq!(ran.text(), kept_lines(&as_csv(","), true));
    let ran = place.run_with("dedup - -o - --quiet", &gzip(jsonl(DOCUMENTS).as_bytes()));
    assert_eq!(
        (ran.text(), &ran.err[..]),
        (&kept_lines(&jsonl(DOCUMENTS), false)[..], "")
    );
    let ran = place.run_with("pairs -", jsonl(DOCUMENTS).as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.text()
            .starts_with("a\tb\tsimilarity\ta_source\ta_row\tb_source\tb_row\n"),
        "{}",
        ran.text()
    );
}

#[test]
fn inputs_directories_and_globs_are_joined() {
    let place = Place::new();
    for (at, (id, text)) in DOCUMENTS.into_iter().enumerate() {
        place.write(&format!("pile/deep{}/{at}.jsonl", at % 2), row(id, text));
    }
    place.write("pile/notes.md", "not read");
    for inputs in [
        "pile",
        "pile/deep0 pile/deep1",
        "pile/deep*/*.jsonl",
        "pile/deep*",
    ] {
        place.ok(&format!("dedup {inputs} -o out.jsonl"));
        assert_eq!(place.ids("out.jsonl"), ["a", "c"], "{inputs}");
    }
    place.ok("dedup pile -o mirror/");
    let mirrored = ["deep0/0", "deep0/2", "deep1/1", "deep1/3"].map(|name| {
        let name = format!("mirror/{name}.jsonl");
        if place.has(&name) {
            place.read(&name).lines().count()
        } else {
            0
        }
    });
    assert_eq!(mirrored, [1, 1, 0, 0]);
}

#[test]
fn one_file_can_be_one_document() {
    let place = Place::new();
    place.write("pile/one.txt", "Line one of this\nand line two of it");
    place.write("pile/two.txt", "line one of this and line two of it\n");
    place.write("pile/three.txt", "Something else that is not like it");
    place.ok("dedup pile --document-per-file --removed removed.tsv");
    let removed = place.table("removed.tsv");
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0][..2], ["pile/two.txt", "pile/one.txt"]);
    place.refused(
        "dedup pile --document-per-file --format csv -o x",
        &["plain text"],
    );
}

#[test]
fn columns_of_csv_without_a_header_are_numbers() {
    let place = Place::new();
    place.write("in.csv", as_csv(",").split_once('\n').unwrap().1);
    place.ok("dedup in.csv --no-header --text 2 --id 1 -o out.csv --removed removed.tsv");
    assert_eq!(
        place.read("out.csv"),
        kept_lines(&place.read("in.csv"), false)
    );
    assert_eq!(place.table("removed.tsv")[0][..2], ["b", "a"]);
    place.refused("dedup in.csv --no-header -o out.csv", &["text"]);
    place.refused(
        "dedup in.csv --no-header --format jsonl -o out.csv",
        &["--no-header"],
    );
}

#[test]
fn texts_of_several_and_of_nested_fields() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"title":"One two three","body":{"text":"four five six"}}
{"title":"one two three","body":{"text":"Four five six!"}}
{"title":"one two three","body":{"text":"something else"}}
"#,
    );
    place.ok("dedup in.jsonl --text title,body.text -o out.jsonl");
    assert_eq!(place.read("out.jsonl").lines().count(), 2);
    place.ok("dedup in.jsonl --text title -o out.jsonl");
    assert_eq!(place.read("out.jsonl").lines().count(), 1);
    place.ok("dedup in.jsonl --text body.text -o out.jsonl --removed removed.tsv");
    assert_eq!(place.table("removed.tsv")[0][..2], ["2", "1"]);
    place.refused(
        "dedup in.jsonl --text title, -o out.jsonl",
        &["--text", "empty"],
    );
}

#[test]
fn ids_are_a_field_or_the_number_of_the_row() {
    let place = Place::new();
    place.write("in.jsonl", "{\"key\":7,\"id\":\"x\",\"text\":\"a b c\"}\n{\"key\":8,\"id\":\"y\",\"text\":\"A b, c\"}\n");
    for (option, expected) in [
        ("", ["y", "x"]),
        ("--id key", ["8", "7"]),
        ("--id-row", ["2", "1"]),
    ] {
        place.ok(&format!("dedup in.jsonl {option} --removed removed.tsv"));
        assert_eq!(place.table("removed.tsv")[0][..2], expected, "{option}");
    }
    place.refused(
        "dedup in.jsonl --id key --id-row -o x",
        &["--id", "--id-row"],
    );
}

#[test]
fn other_encodings_and_malformed_text() {
    let place = Place::new();
    let (gb, _, lost) = encoding_rs::GB18030.encode("后来他们谈了很久\n後來他們談了很久\n");
    assert!(!lost);
    place.write("in.txt", &gb);
    place.ok("dedup in.txt --encoding gb18030 -o out.txt");
    let (first, _, _) = encoding_rs::GB18030.encode("后来他们谈了很久\n");
    assert_eq!(place.bytes("out.txt"), first.to_vec());

    place.refused(
        "dedup in.txt -o out.txt",
        &["in.txt:1:", "--encoding gb18030", "stays as it was"],
    );
    assert_eq!(place.bytes("out.txt"), first.to_vec());
    place.ok("dedup in.txt --lossy -o out.txt");
    place.refused(
        "dedup in.txt --encoding klingon -o out.txt",
        &["encoding", "gb18030"],
    );
    place.refused("dedup in.txt --encoding utf-16le -o out.txt", &["UTF-16LE"]);

    place.write(
        "bom.csv",
        [b"\xef\xbb\xbf", as_csv(",").as_bytes()].concat(),
    );
    place.ok("dedup bom.csv --id id --removed removed.tsv");
    assert_eq!(place.table("removed.tsv").len(), 2);
}

#[test]
fn weights_beyond_the_limit_are_bad_rows() {
    let place = Place::new();
    let row = |weight: &str| format!("{{\"id\":\"{weight}\",\"f\":{{\"x\":{weight},\"y\":1}}}}\n");
    let rows = ["999999.5", "1000000", "1000000.5", "1e300", "0", "-1"].map(row);
    place.write("in.jsonl", rows.concat());
    let ran = place.run("fingerprint in.jsonl --features f");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.text().lines().count(), 3);
    for weight in ["1000000.5", "1e300", "0", "-1"] {
        let number: f64 = weight.parse().unwrap();
        let said = format!("the weight {number} is not a number above 0 and at most 1000000");
        assert!(ran.err.contains(&said), "{said}: {}", ran.err);
    }
}

#[test]
fn features_are_equal_only_with_equal_weights() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","f":{"aaa":100,"bbb":1}}
{"id":"b","f":{"aaa":1,"bbb":100}}
{"id":"c","f":["aaa","bbb"]}
{"id":"d","f":{"aaa":100,"bbb":1}}
"#,
    );
    place.ok("dedup in.jsonl --features f --verify cosine --threshold 0.9 -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "b", "c"]);
    place.ok("dedup in.jsonl --features f --method simhash --verify none -o out.jsonl");
    assert_eq!(place.ids("out.jsonl")[..2], ["a", "b"]);
    // The sets are equal, whatever the weights.
    place.ok("dedup in.jsonl --features f -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a"]);
}

#[test]
fn unclosed_quote_is_a_bad_row() {
    let place = Place::new();
    place.write(
        "in.csv",
        "id,text\n0,first\n1,\"open\n2,abc def\n3,abc def\n",
    );
    let ran = place.run("dedup in.csv -o out.csv --rejected bad.csv");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.err.contains("in.csv:3") && ran.err.contains("not closed"),
        "{}",
        ran.err
    );
    assert_eq!(place.read("out.csv"), "id,text\n0,first\n");
    assert!(place.read("bad.csv").contains("\"open"));
}

#[test]
fn features_can_be_given() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        r#"{"id":"a","words":["x","y","z","w"]}
{"id":"b","words":["w","z","y","x","x"]}
{"id":"c","words":["x","y","z","v"]}
{"id":"d","words":{"x":2,"y":1.5,"z":1,"w":9}}
"#,
    );
    place.ok("dedup in.jsonl --features words --removed removed.tsv -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "c"]);
    place.ok("dedup in.jsonl --features words --threshold 0.6 -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a"]);
    place.write("in.csv", "id,tags\na,x y z w\nb,w z y x\n");
    place.ok("dedup in.csv --features tags -o out.csv");
    assert_eq!(place.read("out.csv"), "id,tags\na,x y z w\n");
}

#[test]
fn unknown_or_mixed_formats_are_refused() {
    let place = Place::new();
    place.write("data.bin", row("a", "b"));
    place.refused("dedup data.bin -o out.jsonl", &["data.bin", "extension"]);
    place.ok("dedup data.bin --format jsonl -o out.jsonl");
    place.write("one.csv", "id,text\n1,a\n");
    place.write("two.csv", "text,id\na,2\n");
    place.refused("dedup one.csv two.csv -o out.csv", &["two.csv"]);
}

#[test]
fn row_length_is_limited() {
    let place = Place::new();
    let long = "long ".repeat(300);
    let rows = jsonl([("a", "one two"), ("b", &long), ("c", "three four")]);
    place.write("in.jsonl", rows);
    let line = "dedup in.jsonl --max-row 1K -o out.jsonl --rejected bad.jsonl";
    let ran = place.run(line);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let said = "in.jsonl:2: the row has 1521 bytes, more than the limit of 1000";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(place.ids("out.jsonl"), ["a", "c"]);
    let rejected: serde_json::Value = serde_json::from_str(&place.read("bad.jsonl")).unwrap();
    assert_eq!(
        (&rejected["file"], &rejected["row"]),
        (&"in.jsonl".into(), &2.into())
    );
    assert_eq!(place.summary(line)["rejected"], 1);
    place.refused(&format!("{line} --strict"), &["in.jsonl:2: ", "1000"]);
    place.ok("dedup in.jsonl --max-row 2KiB -o out.jsonl");
    // Without one usable row the output stays as it was.
    place.write("long.jsonl", jsonl([("b", &long[..])]));
    place.refused(
        "dedup long.jsonl --max-row 1K -o out.jsonl",
        &["none of the 1 rows"],
    );
    assert_eq!(place.read("out.jsonl").lines().count(), 3);
}

/// A row of 100 MB, of a file, compressed and quoted, is skipped in less memory than it has bytes. Further rows keep their
/// places.
#[test]
fn rows_beyond_the_limit_are_not_in_memory() {
    let place = Place::new();
    let long = "long\\n".repeat(16_000_000);
    let row_of = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    let rows = [
        row_of("a", "one two"),
        row_of("b", &long),
        row_of("c", "three four"),
    ]
    .concat();
    place.write("in.jsonl", &rows);
    place.write("in.jsonl.gz", gzip(rows.as_bytes()));
    let long = "long\n".repeat(20_000_000);
    place.write(
        "in.csv",
        format!("id,text\na,one two\nb,\"{long}\"\nc,three four\n"),
    );
    for (input, output) in [
        ("in.jsonl", "out.jsonl"),
        ("in.jsonl.gz", "out.jsonl"),
        ("in.csv", "out.csv"),
    ] {
        let line = format!("dedup {input} --max-row 1M -o {output} --removed r.tsv --threads 1");
        let mut child = place.spawn(&line);
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(peak_memory(child.id()).unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(peak < 80_000_000, "{input}: {peak} bytes");
        let kept: Vec<_> = place.read(output).lines().map(str::to_owned).collect();
        assert_eq!(
            kept.len(),
            if output == "out.csv" { 3 } else { 2 },
            "{input}"
        );
        assert!(kept[kept.len() - 1].contains("three four"), "{input}");
        let ran = place.run(&format!("{line} --against {input}"));
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let removed = place.table("r.tsv");
        assert_eq!((&*removed[1][0], &*removed[1][7]), ("c", "3"), "{input}");
    }
}

fn utf16(text: &str) -> Vec<u8> {
    let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// Files of UTF-16 give the rows of the same files in UTF-8.
#[test]
fn utf16_with_a_byte_order_mark_is_read() {
    let place = Place::new();
    let table = "id\ttext\na\t第一篇文章的内容是关于近似重复的\nb\t第一篇文章的内容是关于近似重复的\nc\tother words here\n";
    let lines = "第一篇文章的内容\r\nsecond line of text\r\n第一篇文章的内容\r\n";
    let rows = jsonl([
        ("a", "one two three"),
        ("b", "four five 六"),
        ("c", "one two three"),
    ]);
    for (name, text) in [("in.tsv", table), ("in.txt", lines), ("in.jsonl", &rows)] {
        let (_, extension) = name.split_once('.').unwrap();
        place.write(name, text);
        place.ok(&format!("dedup {name} -o utf8.{extension}"));
        let expected = place.bytes(&format!("utf8.{extension}"));
        place.write(name, utf16(text));
        place.write(&format!("{name}.gz"), gzip(&utf16(text)));
        for (input, output) in [(name.to_owned(), "of16"), (format!("{name}.gz"), "of16gz")] {
            place.ok(&format!("dedup {input} -o {output}.{extension}"));
            assert_eq!(
                place.bytes(&format!("{output}.{extension}")),
                expected,
                "{input}"
            );
        }
        let ran = place.run_with(
            &format!("dedup - --format {extension} -o -").replace("--format txt", "--format text"),
            &utf16(text),
        );
        assert_eq!(ran.out, expected, "{name} {}", ran.err);
    }
    let mut torn = utf16(&rows);
    torn.truncate(torn.len() - 5);
    place.write("torn.jsonl", torn);
    let ran = place.run("dedup torn.jsonl -o out.jsonl");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("torn.jsonl:3: "), "{}", ran.err);
}

/// Essays in UTF-16 are compared as they are in UTF-8, by every command that reads documents.
#[test]
fn documents_in_utf16_are_read() {
    let place = Place::new();
    let essay = "The tide comes in twice a day, and the harbour fills with boats that were aground before.\n";
    place.write("a/one.txt", essay);
    place.write("a/two.txt", utf16(essay));
    place.write("a/three.html", utf16(&format!("<p>{essay}</p>")));
    let done = place.summary("passages a -o out.jsonl");
    assert_eq!(done["guessed_encodings"][0]["encoding"], "utf-16le");
    assert_eq!(done["guessed_encodings"][0]["files"], 2);
    assert_eq!(place.read("out.jsonl").lines().count(), 3);
    let ran = place.ok("compare a/one.txt a/two.txt --json");
    let compared: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(compared["match"], true, "{compared}");
    let ran = place.ok("dedup a/one.txt a/two.txt --document-per-file -o out/");
    assert!(ran.err.contains('1'), "{}", ran.err);
    assert_eq!(
        place.summary("dedup a/one.txt a/two.txt --document-per-file --dry-run")["removed"],
        1
    );
}

#[test]
fn temporary_files_use_the_given_directory() {
    let place = Place::new();
    place.write("in.jsonl.zst", zstd(jsonl(DOCUMENTS).as_bytes()));
    place.write("scratch/keep", "");
    place.ok("dedup in.jsonl.zst -o out.jsonl --scratch scratch");
    assert_eq!(std::fs::read_dir(place.path("scratch")).unwrap().count(), 1);
    place.refused(
        "dedup in.jsonl.zst -o out.jsonl --scratch nowhere",
        &["nowhere"],
    );
}

/// A damaged file with columns is an error of the data, also where the libraries that read it panic.
#[test]
fn damaged_files_with_columns_are_no_mistakes_of_the_program() {
    let place = Place::new();
    let texts: Vec<String> = (0..60).map(|at| format!("船长解开缆绳 {at}")).collect();
    let ids: Vec<String> = (0..60).map(|at| at.to_string()).collect();
    let rows = ids.iter().zip(&texts);
    place.write("in.jsonl", jsonl(rows.map(|(id, text)| (&**id, &**text))));
    let mut refused = 0;
    // Some bits of these pages make the reader of Parquet panic.
    let step = if is_long_run() { 3 } else { 9 };
    for (name, step) in [("in.parquet", step), ("in.arrow", 60), ("in.arrows", 60)] {
        place.ok(&format!("dedup in.jsonl -o {name} --threshold 1"));
        let bytes = place.bytes(name);
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            place.write(name, damaged);
            let ran = place.run(&format!("dedup {name} -o out.parquet"));
            let is_apology = ran.err.contains("mistake in the program");
            assert!(!is_apology, "{at}: {}", ran.err);
            assert!(ran.code == Some(0) || ran.err.contains(name), "{}", ran.err);
            refused += usize::from(ran.code != Some(0));
        }
    }
    assert!(refused > 50, "{refused}");
}

/// Columns that are separated otherwise are named, and read with the option.
#[test]
fn other_delimiters_are_named_and_read() {
    let place = Place::new();
    for (delimiter, option) in [(';', ";"), ('|', "|"), ('\t', "tab")] {
        let rows =
            "id,text\n1,the ferry leaves at seven\n2,a bridge\n3,the ferry leaves at seven\n";
        place.write("a.csv", rows.replace(',', &delimiter.to_string()));
        place.refused(
            "dedup a.csv -o kept.csv",
            &[&format!("--delimiter {}", shown(delimiter))],
        );
        place.ok(&format!("dedup a.csv -o kept.csv --delimiter {option}"));
        let kept = place.read("kept.csv").replace(delimiter, ",");
        assert_eq!(kept, "id,text\n1,the ferry leaves at seven\n2,a bridge\n");
    }
    place.write("b.csv", "{\"id\":1,\"text\":\"a\"}\n");
    place.refused(
        "dedup b.csv -o kept.csv",
        &["looks like JSON", "--format jsonl"],
    );
    place.write("c.jsonl.gz", "{\"id\":1,\"text\":\"a\"}\n");
    place.refused(
        "dedup c.jsonl.gz -o kept.jsonl",
        &["c.jsonl.gz", "looks like JSON that is not compressed"],
    );
}

fn shown(delimiter: char) -> String {
    match delimiter {
        '\t' => "tab".to_owned(),
        other => format!("'{other}'"),
    }
}
