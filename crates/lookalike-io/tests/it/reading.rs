//! Reading of every format, compression, block size and kind of damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields as ArrowFields};
use lookalike_documents::decoding::InvalidText;
use lookalike_io::error::ErrorKind;
use lookalike_io::source::{
    AllowedFolders, IdField, InputFormat, InputSet, ReadOptions, WantedFields,
};
use lookalike_system::create_symlink;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tempfile::tempdir;

use crate::support::{names, read, read_on, store};

const BLOCKS: [usize; 6] = [1, 2, 7, 64, 1000, 1 << 20];
const COMPRESSIONS: [&str; 3] = ["", ".gz", ".zst"];

fn options() -> ReadOptions {
    ReadOptions::default()
}

fn with_fields(fields: WantedFields) -> ReadOptions {
    ReadOptions {
        fields,
        ..options()
    }
}

/// JSON rows with unusual features that are still valid rows.
fn jsonl() -> String {
    let mut input = String::new();
    for number in 0..60 {
        let text = match number % 6 {
            0 => "plain".repeat(number),
            1 => "中文字符".repeat(number),
            2 => "line\\nline \\\"quoted\\\" \\u4e2d\\ud83d\\ude00".to_owned(),
            3 => String::new(),
            4 => "{\\\"nested\\\": [1, 2]} , \\\\ ".repeat(7),
            _ => "é".repeat(200),
        };
        let end = ["\n", "\r\n", "\n\n", "\n\r\n\n"][number % 4];
        input +=
            &format!("{{\"x\": [{number}, {{}}], \"text\": \"{text}\", \"id\": {number}}}{end}");
    }
    input
}

/// Ids and texts as `serde_json` parses them, line by line.
fn plain_jsonl(input: &str) -> Vec<(String, String)> {
    let lines = input.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            (
                value["id"].to_string(),
                value["text"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[test]
fn jsonl_in_every_compression_and_block_size() {
    let directory = tempdir().unwrap();
    for open_end in [false, true] {
        let mut input = jsonl();
        if open_end {
            input.truncate(input.trim_end().len());
        }
        for bom in ["", "\u{FEFF}"] {
            for compression in COMPRESSIONS {
                let stored = format!("{bom}{input}");
                let name = format!("a.jsonl{compression}");
                let path = store(directory.path(), &name, stored.as_bytes());
                for block_bytes in BLOCKS {
                    let options = ReadOptions {
                        block_bytes,
                        ..options()
                    };
                    let inputs = InputSet::open_paths(from_ref(&path), &options).unwrap();
                    let found = read_on(1 + block_bytes % 3, &inputs).unwrap();
                    assert!(found.bad.is_empty(), "{:?}", found.bad);
                    let rows = found
                        .rows
                        .iter()
                        .map(|row| (row.id.clone().unwrap(), row.text.clone()));
                    assert_eq!(rows.collect::<Vec<_>>(), plain_jsonl(&input));
                    let numbers = found.rows.iter().map(|row| row.number);
                    assert!(numbers.eq(1..=found.rows.len() as u64));
                    let mut raw = Vec::new();
                    let lines = input
                        .split_inclusive('\n')
                        .filter(|line| !line.trim().is_empty());
                    for (row, line) in found.rows.iter().zip(lines) {
                        inputs.read_raw_row(row.place, &mut raw).unwrap();
                        assert_eq!(raw, line.as_bytes());
                    }
                }
            }
        }
    }
}

#[test]
fn csv_as_the_csv_crate_reads_it() {
    let directory = tempdir().unwrap();
    let mut input = "id,text,\"no\nte\"\r\n".to_owned();
    for number in 0..40 {
        let text = match number % 5 {
            0 => "plain",
            1 => "\"quoted, \"\"twice\"\"\nover\r\n\n\nlines\"",
            2 => "stray \" quote",
            3 => "\"中文，\"",
            _ => "",
        };
        input += &format!("{number},{text},x{}", ["\n", "\r\n", "\n\n"][number % 3]);
    }
    let mut reader = csv::Reader::from_reader(input.as_bytes());
    let expected: Vec<(String, String)> = reader
        .records()
        .map(|record| {
            record
                .map(|record| (record[0].to_owned(), record[1].to_owned()))
                .unwrap()
        })
        .collect();
    for compression in COMPRESSIONS {
        let path = store(
            directory.path(),
            &format!("a.csv{compression}"),
            input.as_bytes(),
        );
        for block_bytes in BLOCKS {
            let found = read(
                from_ref(&path),
                &ReadOptions {
                    block_bytes,
                    ..options()
                },
            )
            .unwrap();
            assert!(found.bad.is_empty(), "{:?}", found.bad);
            let rows = found
                .rows
                .iter()
                .map(|row| (row.id.clone().unwrap(), row.text.clone()));
            assert_eq!(rows.collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn tsv_takes_quotes_literally() {
    let directory = tempdir().unwrap();
    let input = "id\ttext\n1\t\"one\n2\ttw\"o\"\r\n3\t\n4\ta\tb\n5\n6\tlast";
    for compression in COMPRESSIONS {
        let path = store(
            directory.path(),
            &format!("a.tsv{compression}"),
            input.as_bytes(),
        );
        for block_bytes in BLOCKS {
            let found = read(
                from_ref(&path),
                &ReadOptions {
                    block_bytes,
                    ..options()
                },
            )
            .unwrap();
            assert_eq!(found.texts(), ["\"one", "tw\"o\"", "", "last"]);
            let bad: Vec<_> = found.bad.iter().map(|bad| (bad.line, bad.number)).collect();
            assert_eq!(bad, [(5, 4), (6, 5)]);
            assert!(
                found.bad[0].reason.contains("3 fields"),
                "{}",
                found.bad[0].reason
            );
        }
    }
}

#[test]
fn columns_by_number_and_in_several_files() {
    let directory = tempdir().unwrap();
    let first = store(directory.path(), "1.csv", b"a,b\nc,d\n");
    let second = store(directory.path(), "2.csv", b"e,f\n");
    let fields = WantedFields {
        text: vec!["2".to_owned()],
        extra: vec!["1".to_owned()],
        ..WantedFields::default()
    };
    let numbered = ReadOptions {
        header: false,
        ..with_fields(fields)
    };
    let found = read(&[first.clone(), second.clone()], &numbered).unwrap();
    assert_eq!(found.texts(), ["b", "d", "f"]);
    assert_eq!(found.rows[2].extra, ["'e'"]);
    assert_eq!(found.rows[2].id, None);
    let fields = WantedFields {
        text: vec!["b".to_owned()],
        ..WantedFields::default()
    };
    let error = read(&[first.clone(), second], &with_fields(fields)).unwrap_err();
    assert!(error.to_string().contains("`e`, `f`"), "{error}");
    let error = read(&[first], &options()).unwrap_err();
    assert!(error.to_string().contains("no column `text`"), "{error}");
}

#[test]
fn text_by_line_and_by_file() {
    let directory = tempdir().unwrap();
    let input = "first line\r\n\n  \nthird {\"text\": 1}";
    for compression in COMPRESSIONS {
        let path = store(
            directory.path(),
            &format!("a.txt{compression}"),
            input.as_bytes(),
        );
        for block_bytes in BLOCKS {
            let found = read(
                from_ref(&path),
                &ReadOptions {
                    block_bytes,
                    ..options()
                },
            )
            .unwrap();
            assert_eq!(found.texts(), ["first line", "  ", "third {\"text\": 1}"]);
            let by_file = ReadOptions {
                block_bytes,
                document_per_file: true,
                ..options()
            };
            let found = read(from_ref(&path), &by_file).unwrap();
            assert_eq!(found.texts(), [input]);
            assert_eq!(found.rows[0].id.as_deref(), path.to_str());
        }
        fs::remove_file(path).unwrap();
    }
    for number in 0..600 {
        let content = format!("\u{FEFF}document {number}\n");
        store(
            directory.path(),
            &format!("{number:03}.md"),
            content.as_bytes(),
        );
    }
    let by_file = ReadOptions {
        document_per_file: true,
        ..options()
    };
    let inputs = InputSet::open_paths(&[directory.path().to_path_buf()], &by_file).unwrap();
    let found = read_on(2, &inputs).unwrap();
    assert_eq!(found.rows.len(), 600);
    assert_eq!(found.rows[599].text, "document 599\n");
    assert_eq!(found.rows[599].number, 600);
}

#[test]
fn one_huge_row_among_small_ones() {
    let directory = tempdir().unwrap();
    let huge = "ab\\n".repeat(1 << 20);
    let input = format!("{{\"text\":\"a\"}}\n{{\"text\":\"{huge}\"}}\n{{\"text\":\"b\"}}\n");
    for compression in COMPRESSIONS {
        let path = store(
            directory.path(),
            &format!("a.jsonl{compression}"),
            input.as_bytes(),
        );
        let small = ReadOptions {
            block_bytes: 1000,
            ..options()
        };
        let found = read(from_ref(&path), &small).unwrap();
        let lengths: Vec<_> = found.rows.iter().map(|row| row.text.len()).collect();
        assert_eq!(lengths, [1, 3 << 20, 1]);
        let limited = ReadOptions {
            max_row_bytes: 1 << 20,
            ..small
        };
        let found = read(&[path], &limited).unwrap();
        let lengths: Vec<_> = found.rows.iter().map(|row| row.text.len()).collect();
        assert_eq!(lengths, [1, 1]);
        let numbers: Vec<_> = found.rows.iter().map(|row| row.number).collect();
        assert_eq!(numbers, [1, 3]);
        let [bad] = &found.bad[..] else {
            panic!("{:?}", found.bad)
        };
        assert_eq!(bad.number, 2);
        assert_eq!(bad.place.byte_length(), 0);
        assert!(
            bad.reason.contains("more than the limit of 1048576"),
            "{bad:?}"
        );
    }
    let path = store(
        directory.path(),
        "a.csv",
        format!("text\n\"{huge}").as_bytes(),
    );
    let limited = ReadOptions {
        max_row_bytes: 1 << 20,
        block_bytes: 1000,
        ..options()
    };
    let found = read(&[path], &limited).unwrap();
    assert!(
        found.bad[0].reason.contains("never closed"),
        "{:?}",
        found.bad
    );
    let path = store(directory.path(), "b.csv", huge.as_bytes());
    let error = read(&[path], &limited).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Limit,
        "a header beyond the limit: {error}"
    );
}

#[test]
fn empty_inputs_yield_no_rows() {
    let directory = tempdir().unwrap();
    for name in [
        "a.jsonl",
        "a.csv",
        "a.tsv",
        "a.txt",
        "a.jsonl.gz",
        "a.csv.zst",
    ] {
        for content in ["", "\n", "\r\n\n", "\u{FEFF}"] {
            let path = store(directory.path(), name, content.as_bytes());
            let found = read(&[path], &options()).unwrap();
            assert!(
                found.rows.is_empty() && found.bad.is_empty(),
                "{name} {content:?}"
            );
        }
    }
}

#[test]
fn bad_rows_are_reported_with_place_and_reason() {
    let directory = tempdir().unwrap();
    let input = b"{\"id\":1,\"text\":\"a\"}\n\n{\"id\":2}\n{\"id\":3,\"text\":null}\n{\"id\":4,\"text\":[1]}\n\
        {\"text\":\"a\"}\n{\"id\":null,\"text\":\"a\"}\n{\"id\":[],\"text\":\"a\"}\n[1]\nnot json\n\
        {\"id\":9,\"text\":\"\xFF\"}\n{\"id\":10,\"text\":\"\\ud800\"}\n{\"id\":11,\"text\":\"b\"}";
    let path = store(directory.path(), "a.jsonl", input);
    let reasons = [
        (3, 2, "`text` is missing"),
        (4, 3, "`text` is null"),
        (5, 4, "`text` is a list"),
        (6, 5, "`id` is missing"),
        (7, 6, "`id` is null"),
        (8, 7, "`id` is a list"),
        (9, 8, "a JSON list"),
        (10, 9, "not valid JSON"),
        (11, 10, "not valid UTF-8 at its byte 17"),
        (12, 11, "surrogate"),
    ];
    for block_bytes in BLOCKS {
        let options = ReadOptions {
            block_bytes,
            ..options()
        };
        let found = read(from_ref(&path), &options).unwrap();
        assert_eq!(found.texts(), ["a", "b"]);
        assert_eq!(found.rows[1].number, 12);
        assert_eq!(found.bad.len(), reasons.len());
        for (bad, (line, number, reason)) in found.bad.iter().zip(reasons) {
            assert!(bad.reason.contains(reason), "{bad:?}");
            assert_eq!((bad.line, bad.number), (line, number));
            assert_eq!(Path::new(&bad.file), path);
        }
        let lossy = ReadOptions {
            invalid_text: InvalidText::Lossy,
            ..options
        };
        let found = read(from_ref(&path), &lossy).unwrap();
        assert_eq!(found.texts(), ["a", "\u{FFFD}", "\u{FFFD}", "b"]);
    }
}

#[test]
fn ids_are_decided_by_the_first_row() {
    let directory = tempdir().unwrap();
    let without = store(
        directory.path(),
        "1.jsonl",
        b"{\"text\":\"a\"}\n{\"text\":\"b\",\"id\":7}\n",
    );
    let with = store(
        directory.path(),
        "2.jsonl",
        b"{\"text\":\"c\",\"id\":\"x\"}\n{\"text\":\"d\"}\n",
    );
    let found = read(&[without.clone(), with.clone()], &options()).unwrap();
    assert!(found.rows.iter().all(|row| row.id.is_none()));
    assert_eq!(found.rows.len(), 4);
    let found = read(&[with, without], &options()).unwrap();
    assert_eq!(found.texts(), ["c", "b"]);
    let digits =
        b"{\"id\":123456789012345678901234567890,\"text\":\"\"}\n{\"id\":1.50,\"text\":\"\"}\n";
    let path = store(directory.path(), "3.jsonl", digits);
    let found = read(from_ref(&path), &options()).unwrap();
    let ids: Vec<_> = found
        .rows
        .iter()
        .map(|row| row.id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["123456789012345678901234567890", "1.5"]);
    let row_number = with_fields(WantedFields {
        id: IdField::RowNumber,
        ..WantedFields::default()
    });
    assert_eq!(read(&[path], &row_number).unwrap().rows[0].id, None);
    let text = store(directory.path(), "4.txt", b"a");
    let named = with_fields(WantedFields {
        id: IdField::Named("x".into()),
        ..WantedFields::default()
    });
    assert_eq!(read(&[text], &named).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn nested_joined_and_further_fields() {
    let directory = tempdir().unwrap();
    let input = br#"{"a":{"b":"x","c":null},"title":"t","n":12345678901234567891,"on":true,"f":["p",["q",2]]}
{"a.b":"y","n":"z","f":"p  q"}
{"a":{"b":"x"},"n":[1],"f":[]}
{"title":null,"f":{"p":1}}
"#;
    let path = store(directory.path(), "a.jsonl", input);
    let fields = WantedFields {
        text: vec!["title".to_owned(), "a.b".to_owned()],
        extra: vec!["n".to_owned(), "on".to_owned(), "a.c".to_owned()],
        ..WantedFields::default()
    };
    let found = read(from_ref(&path), &with_fields(fields.clone())).unwrap();
    assert_eq!(found.texts(), ["t\nx", "y"]);
    let number = "12345678901234567000=12345678901234567891";
    assert_eq!(found.rows[0].extra, [number, "true", "null"]);
    assert_eq!(found.rows[1].extra, ["'z'", "missing", "missing"]);
    assert!(
        found.bad[0].reason.contains("`n` is a list"),
        "{:?}",
        found.bad
    );
    assert!(
        found.bad[1].reason.contains("all of the fields"),
        "{:?}",
        found.bad
    );
    let features = WantedFields {
        features: Some("f".to_owned()),
        ..WantedFields::default()
    };
    let found = read(&[path], &with_fields(features)).unwrap();
    let features: Vec<_> = found
        .rows
        .iter()
        .map(|row| row.features.clone().unwrap())
        .collect();
    let p = ("p".to_owned(), 1.0);
    let q = |weight| ("q".to_owned(), weight);
    assert_eq!(
        features,
        [
            vec![p.clone(), q(2.0)],
            vec![p.clone(), q(1.0)],
            vec![],
            vec![p]
        ]
    );
}

#[test]
fn legacy_encodings() {
    let directory = tempdir().unwrap();
    // In Big5 and GB18030 some of these characters have a backslash, a brace or a pipe as their second
    // byte.
    let texts = ["許功蓋", "中文", "a|b\\c", "珡牁", "𠀀"];
    for encoding in [encoding_rs::GB18030, encoding_rs::BIG5, encoding_rs::UTF_8] {
        let texts: Vec<_> = texts
            .into_iter()
            .filter(|text| !encoding.encode(text).2)
            .collect();
        let json: String = texts
            .iter()
            .map(|text| format!("{}\n", serde_json::json!({"text": text})))
            .collect();
        let csv: String = texts.iter().map(|text| format!("x,\"{text}\"\n")).collect();
        let tsv: String = texts.iter().map(|text| format!("x\t{text}\n")).collect();
        let inputs = [
            ("a.jsonl", json),
            ("a.csv", format!("note,text\n{csv}")),
            ("a.tsv", format!("note\ttext\n{tsv}")),
            ("a.txt", texts.join("\n")),
        ];
        for (name, input) in inputs {
            let path = store(directory.path(), name, &encoding.encode(&input).0);
            for block_bytes in BLOCKS {
                let options = ReadOptions {
                    encoding,
                    block_bytes,
                    ..options()
                };
                assert_eq!(
                    read(from_ref(&path), &options).unwrap().texts(),
                    texts,
                    "{name}"
                );
            }
        }
    }
    let path = store(directory.path(), "a.txt", b"\xD6\xD0\n\xD6\n\xFF\xFF\nok\n");
    let gb = ReadOptions {
        encoding: encoding_rs::GB18030,
        ..options()
    };
    let found = read(from_ref(&path), &gb).unwrap();
    assert_eq!((found.texts(), found.bad.len()), (vec!["中", "ok"], 2));
    let utf16 = ReadOptions {
        encoding: encoding_rs::UTF_16LE,
        ..options()
    };
    assert_eq!(read(&[path], &utf16).unwrap_err().kind(), ErrorKind::Usage);
    let path = store(directory.path(), "b.txt", b"\xFF\xFEa\0");
    assert_eq!(read(&[path], &options()).unwrap().texts(), ["a"]);
    let path = store(directory.path(), "c.txt", b"a\0b\0c\0d\0");
    assert!(
        read(&[path], &options())
            .unwrap_err()
            .to_string()
            .contains("UTF-16")
    );
}

#[test]
fn truncated_and_corrupt_compressed_files() {
    let directory = tempdir().unwrap();
    let input = jsonl().repeat(20);
    for compression in [".gz", ".zst"] {
        let path = store(
            directory.path(),
            &format!("a.jsonl{compression}"),
            input.as_bytes(),
        );
        let whole = fs::read(&path).unwrap();
        for cut in [1, 3, 10, whole.len() / 3, whole.len() - 9, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            let error = read(from_ref(&path), &options()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{cut}: {error}");
            assert!(error.to_string().contains("a.jsonl"), "{error}");
        }
        let mut damaged = whole.clone();
        let middle = damaged.len() / 3;
        damaged[middle..middle + 8].fill(0x55);
        fs::write(&path, &damaged).unwrap();
        let error = read(from_ref(&path), &options()).unwrap_err();
        assert!(error.to_string().contains("near its byte"), "{error}");
        fs::write(&path, "{\"text\":\"not compressed\"}\n").unwrap();
        assert!(
            read(from_ref(&path), &options())
                .unwrap_err()
                .to_string()
                .contains("extension")
        );
        // A compressed file is recognised without the extension.
        let other = directory.path().join("b.jsonl");
        fs::write(&other, &whole).unwrap();
        assert_eq!(read(&[other], &options()).unwrap().rows.len(), 1200);
    }
}

/// The decoder of xz reports damage by the same kind of error as a malformed list. The message must blame the
/// compression, and a malformed list in an intact file must still be named as such.
#[test]
fn damaged_compressed_list_is_reported_as_damaged() {
    use std::io::{Read, Write};

    let directory = tempdir().unwrap();
    let list = |rows: usize| {
        let rows: Vec<String> = (0..rows)
            .map(|row| format!("{{\"id\": {row}, \"text\": \"{}\"}}", row * row))
            .collect();
        format!("[{}]", rows.join(",\n"))
    };
    let compress = |text: &str| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let path = directory.path().join("a.json.xz");
    let mut damaged = compress(&list(5000));
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].fill(0x55);
    let mut decoder = liblzma::read::XzDecoder::new(&*damaged);
    let cause = decoder.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(cause.kind(), std::io::ErrorKind::InvalidData);
    fs::write(&path, &damaged).unwrap();
    let error = read(from_ref(&path), &options()).unwrap_err().to_string();
    assert!(error.contains("cannot decompress"), "{error}");
    assert!(!error.contains("JSON list"), "{error}");
    fs::write(&path, compress("[{\"text\": \"a\"},]")).unwrap();
    let error = read(from_ref(&path), &options()).unwrap_err().to_string();
    assert!(
        error.contains("as a JSON list: an element is missing"),
        "{error}"
    );
}

#[test]
fn directories_globs_and_missing_inputs() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("b/c")).unwrap();
    fs::create_dir(root.join(".hidden")).unwrap();
    for name in [
        "b/2.jsonl",
        "a.jsonl",
        "b/c/3.jsonl",
        ".x.jsonl",
        ".hidden/4.jsonl",
        "_SUCCESS",
        "n.md",
    ] {
        store(root, name, format!("{{\"text\":\"{name}\"}}\n").as_bytes());
    }
    lookalike_system::create_symlink(root, &root.join("b/loop")).unwrap();
    let found = read(&[root.to_path_buf()], &options()).unwrap();
    assert_eq!(found.texts(), ["a.jsonl", "b/2.jsonl", "b/c/3.jsonl"]);
    let found = read(&[root.join("b/*.jsonl"), root.join("a.jsonl")], &options()).unwrap();
    assert_eq!(found.texts(), ["b/2.jsonl", "a.jsonl"]);
    // Hidden names need a pattern that begins with a full stop.
    let found = read(&[root.join("*.jsonl")], &options()).unwrap();
    assert_eq!(found.texts(), ["a.jsonl"]);
    let found = read(&[root.join(".*.jsonl")], &options()).unwrap();
    assert_eq!(found.texts(), [".x.jsonl"]);
    for (path, kind) in [
        ("none.jsonl", ErrorKind::Input),
        ("*.csv", ErrorKind::Input),
        (".hidden/none", ErrorKind::Input),
        ("n.md", ErrorKind::Usage),
    ] {
        assert_eq!(
            read(&[root.join(path)], &options()).unwrap_err().kind(),
            kind,
            "{path}"
        );
    }
    let explicit = ReadOptions {
        format: Some(InputFormat::Jsonl),
        ..options()
    };
    assert_eq!(
        read(&[root.join("n.md")], &explicit).unwrap().texts(),
        ["n.md"]
    );
    let two = [PathBuf::from("-"), PathBuf::from("-")];
    assert_eq!(
        InputSet::open_paths(&two, &options()).err().unwrap().kind(),
        ErrorKind::Usage
    );
    assert_eq!(names(root).len(), 6);
}

#[test]
fn pipes_are_read_and_spooled() {
    let directory = tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let input = jsonl();
    let writer = std::thread::spawn({
        let (pipe, input) = (pipe.clone(), input.clone());
        move || fs::write(pipe, input).unwrap()
    });
    let found = read(
        &[pipe],
        &ReadOptions {
            block_bytes: 100,
            ..options()
        },
    )
    .unwrap();
    writer.join().unwrap();
    assert_eq!(found.rows.len(), plain_jsonl(&input).len());
}

#[test]
fn changed_file_is_detected() {
    let directory = tempdir().unwrap();
    let path = store(directory.path(), "a.jsonl", b"{\"text\":\"a\"}\n");
    let inputs = InputSet::open_paths(from_ref(&path), &options()).unwrap();
    fs::write(&path, "{\"text\":\"b\"}\n{\"text\":\"c\"}\n").unwrap();
    let error = read_on(1, &inputs).unwrap_err();
    assert!(error.to_string().contains("was changed"), "{error}");
    assert!(inputs.next_block().unwrap().is_none());
}

/// Writes a Parquet file in row groups of seven rows.
fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(7))
        .build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_strings_of_every_type() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let texts: Vec<Option<String>> = (0..50)
        .map(|row| (row % 10 != 3).then(|| format!("text {row} 中文").repeat(row % 4)))
        .collect();
    let borrowed: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
    let dictionary: DictionaryArray<Int32Type> = borrowed.iter().copied().collect();
    let text_fields = ArrowFields::from(vec![Field::new("text", DataType::Utf8, true)]);
    let inner: ArrayRef = Arc::new(StringArray::from(borrowed.clone()));
    let outer_valid: Vec<bool> = (0..50).map(|row| row != 1).collect();
    let nested = StructArray::new(text_fields, vec![inner], Some(outer_valid.into()));
    let arrays: [(&str, ArrayRef); 5] = [
        ("text", Arc::new(StringArray::from(borrowed.clone()))),
        ("text", Arc::new(LargeStringArray::from(borrowed.clone()))),
        ("text", Arc::new(StringViewArray::from(borrowed.clone()))),
        ("text", Arc::new(dictionary)),
        ("nested", Arc::new(nested)),
    ];
    for (name, array) in arrays {
        let ids = Int64Array::from_iter_values(9_007_199_254_740_993..9_007_199_254_740_993 + 50);
        parquet(&path, vec![("id", Arc::new(ids)), (name, array)]);
        let field = if name == "nested" {
            "nested.text"
        } else {
            "text"
        };
        let fields = WantedFields {
            text: vec![field.to_owned()],
            ..WantedFields::default()
        };
        for block_bytes in BLOCKS {
            let options = ReadOptions {
                block_bytes,
                ..with_fields(fields.clone())
            };
            let inputs = InputSet::open_paths(from_ref(&path), &options).unwrap();
            let found = read_on(2, &inputs).unwrap();
            let expected: Vec<&str> = texts
                .iter()
                .enumerate()
                .filter(|(row, _)| name != "nested" || *row != 1)
                .filter_map(|(_, text)| text.as_deref())
                .collect();
            assert_eq!(found.texts(), expected, "{name}");
            assert_eq!(found.rows[0].id.as_deref(), Some("9007199254740993"));
            assert_eq!(found.bad.len() + found.rows.len(), 50);
            assert!(found.bad.iter().all(|bad| bad.reason.contains("is null")));
            assert!(found.bad.iter().all(|bad| bad.line == bad.number));
        }
    }
}

#[test]
fn parquet_scalars_and_features() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("p"), Some("q")]);
    lists.append_value([Some("r")]);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Float32Builder::new());
    maps.keys().append_value("p");
    maps.values().append_value(2.5);
    maps.append(true).unwrap();
    maps.append(true).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from(vec!["a", "b"]))),
        (
            "number",
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
        ),
        ("double", Arc::new(Float64Array::from(vec![0.1, -2.0]))),
        ("day", Arc::new(Date32Array::from(vec![1, -1]))),
        (
            "time",
            Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_120, -1])),
        ),
        ("on", Arc::new(BooleanArray::from(vec![true, false]))),
        ("name", Arc::new(StringArray::from(vec![Some("n"), None]))),
        ("list", Arc::new(lists.finish())),
        ("map", Arc::new(maps.finish())),
    ];
    parquet(&path, columns);
    let extra = ["number", "double", "day", "time", "on", "name"]
        .map(str::to_owned)
        .to_vec();
    let fields = WantedFields {
        extra,
        features: Some("list".to_owned()),
        ..WantedFields::default()
    };
    let found = read(from_ref(&path), &with_fields(fields)).unwrap();
    assert_eq!(
        found.rows[0].extra,
        [
            "18446744073709552000=18446744073709551615",
            "0.1=0.1",
            "86400=86400",
            "1700000000.12=1700000000.12",
            "true",
            "'n'"
        ]
    );
    assert_eq!(
        found.rows[1].extra,
        [
            "null",
            "-2=-2.0",
            "-86400=-86400",
            "-0.001=-0.001",
            "false",
            "null"
        ]
    );
    let features: Vec<_> = found
        .rows
        .iter()
        .map(|row| row.features.clone().unwrap().len())
        .collect();
    assert_eq!(features, [2, 1]);
    let fields = WantedFields {
        features: Some("map".to_owned()),
        ..WantedFields::default()
    };
    let found = read(from_ref(&path), &with_fields(fields)).unwrap();
    assert_eq!(found.rows[0].features, Some(vec![("p".to_owned(), 2.5)]));
    for (text, extra) in [
        ("number", "day"),
        ("none", "day"),
        ("text", "list"),
        ("text", "none"),
    ] {
        let fields = WantedFields {
            text: vec![text.into()],
            extra: vec![extra.into()],
            ..WantedFields::default()
        };
        let error = read(from_ref(&path), &with_fields(fields)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
}

#[test]
fn damaged_parquet_is_refused() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let texts: Vec<String> = (0..50)
        .map(|row| format!("text {row}").repeat(row))
        .collect();
    parquet(&path, vec![("text", Arc::new(StringArray::from(texts)))]);
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = read(from_ref(&path), &options()).unwrap_err();
        assert!(error.to_string().contains("a.parquet"), "{error}");
    }
    for at in (4..whole.len()).step_by(23) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x5A;
        fs::write(&path, &damaged).unwrap();
        // Parquet has no checksums by default, so damage may go unnoticed, but it must not panic.
        let _ = read(from_ref(&path), &options());
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(read(&[path], &options()).unwrap().rows.len(), 50);
}

#[test]
fn links_out_of_the_allowed_folders_are_left_out() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("in")).unwrap();
    let row = |text: &str| format!("{{\"text\":\"{text}\"}}\n");
    store(directory.path(), "in/a.jsonl", row("inside").as_bytes());
    store(directory.path(), "out.jsonl", row("outside").as_bytes());
    create_symlink(&path("in/a.jsonl"), &path("in/near.jsonl")).unwrap();
    create_symlink(&path("out.jsonl"), &path("in/far.jsonl")).unwrap();
    create_symlink(&path("none.jsonl"), &path("in/none.jsonl")).unwrap();
    let options = ReadOptions {
        allowed_folders: Some(AllowedFolders::new(&[path("in")]).unwrap()),
        ..options()
    };
    let inputs = InputSet::open_paths(&[path("in")], &options).unwrap();
    let found = read_on(1, &inputs).unwrap();
    let texts: Vec<_> = found.rows.iter().map(|row| &row.text[..]).collect();
    assert_eq!(texts, ["inside", "inside"]);
    assert_eq!(
        inputs.skipped_files(),
        [path("in/far.jsonl"), path("in/none.jsonl")]
    );
    for refused in ["out.jsonl", "in/far.jsonl", "none.jsonl", "*.jsonl"] {
        let opened = InputSet::open_paths(&[path(refused)], &options);
        let message = opened.err().unwrap().to_string();
        assert!(
            message.contains("not below a folder"),
            "{refused}: {message}"
        );
    }
}
