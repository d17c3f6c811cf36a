//! JSONL, Parquet and Arrow become each other, with all fields, types and nulls.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::Int8Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Field, Fields as ArrowFields};
use arrow_select::concat::concat_batches;
use lookalike_io::error::ErrorKind;
use lookalike_io::source::{InputSet, ParseScratch, ReadOptions, WantedFields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::tempdir;

use crate::arrow::{batches_of, write_arrow};
use crate::support::{load, store};
use crate::writing::{write, write_with};

/// Rows of every kind of JSON.
const LINES: &str = r#"{"id":1,"text":"first 中文","on":true,"big":18446744073709551615,"half":1,"tags":["a",null],"meta":{"k":1,"in":{"x":[[1],[]]}},"none":null,"void":[]}
{"id":2,"text":"second \"quoted\"\n","on":false,"half":0.1,"tags":[],"late":"x"}
{"id":-3,"text":"third","on":null,"big":0,"half":-2.5e-7,"tags":null,"meta":null,"none":null,"void":null}
{"text":"fourth","id":9007199254740993,"half":3,"meta":{"in":null,"new":"n"},"tags":["b"]}
"#;

/// The same rows as columns give them back: every field, in the order in which fields occur.
const CONVERTED: &str = r#"{"id":1,"text":"first 中文","on":true,"big":18446744073709551615,"half":1.0,"tags":["a",null],"meta":{"k":1,"in":{"x":[[1],[]]},"new":null},"none":null,"void":[],"late":null}
{"id":2,"text":"second \"quoted\"\n","on":false,"big":null,"half":0.1,"tags":[],"meta":null,"none":null,"void":null,"late":"x"}
{"id":-3,"text":"third","on":null,"big":0,"half":-2.5e-7,"tags":null,"meta":null,"none":null,"void":null,"late":null}
{"id":9007199254740993,"text":"fourth","on":null,"big":null,"half":3.0,"tags":["b"],"meta":{"k":null,"in":null,"new":"n"},"none":null,"void":null,"late":null}
"#;

const COLUMNAR: [&str; 4] = ["b.parquet", "b.arrow", "b.feather", "b.arrows"];

/// Returns all rows of a file with columns.
fn rows_of(path: &Path) -> RecordBatch {
    let file = fs::File::open(path).unwrap();
    let (schema, batches): (_, Vec<RecordBatch>) = match path.extension().unwrap().to_str() {
        Some("parquet") => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let schema = Arc::clone(builder.schema());
            let reader = builder.build().unwrap();
            (schema, reader.map(|batch| batch.unwrap()).collect())
        }
        Some("arrows") => {
            let reader = StreamReader::try_new(file, None).unwrap();
            (
                reader.schema(),
                reader.map(|batch| batch.unwrap()).collect(),
            )
        }
        _ => {
            let reader = FileReader::try_new(file, None).unwrap();
            (
                reader.schema(),
                reader.map(|batch| batch.unwrap()).collect(),
            )
        }
    };
    concat_batches(&schema, &batches).unwrap()
}

fn text_of(path: &Path) -> String {
    String::from_utf8(load(path)).unwrap()
}

#[test]
fn jsonl_becomes_columns_and_jsonl_again() {
    let directory = tempdir().unwrap();
    let jsonl = store(directory.path(), "a.jsonl", LINES.as_bytes());
    let list = format!("[{}]", LINES.trim_end().replace("}\n{", "},\n{"));
    let list = store(directory.path(), "a.json", list.as_bytes());
    for input in [&jsonl, &list] {
        for name in COLUMNAR {
            let columns = directory.path().join(name);
            assert_eq!(write(from_ref(input), |_| true, &columns).unwrap().rows, 4);
            let types: Vec<String> = (rows_of(&columns).schema().fields().iter())
                .map(|field| field.data_type().to_string())
                .collect();
            assert_eq!(
                types[..5],
                ["Int64", "Utf8", "Boolean", "UInt64", "Float64"],
                "{name}"
            );
            for back in ["c.jsonl", "c.jsonl.zst", "c.ndjson.gz"] {
                let back = directory.path().join(back);
                write(from_ref(&columns), |_| true, &back).unwrap();
                assert_eq!(text_of(&back), CONVERTED, "{name}");
                // What was converted once does not change any more.
                let again = directory.path().join("d.arrow");
                write(from_ref(&back), |_| true, &again).unwrap();
                assert_eq!(
                    rows_of(&again),
                    rows_of(&columns)
                        .with_schema(rows_of(&again).schema())
                        .unwrap()
                );
            }
            let some = directory.path().join("some.jsonl");
            write(from_ref(&columns), |row| row % 2 == 1, &some).unwrap();
            let expected: Vec<&str> = CONVERTED.lines().skip(1).step_by(2).collect();
            assert_eq!(text_of(&some).lines().collect::<Vec<_>>(), expected);
        }
    }
}

/// Columns of every type, with nulls, of five rows.
fn every_type() -> Vec<(&'static str, ArrayRef)> {
    let valid = || Some(NullBuffer::from(vec![true, true, false, true, true]));
    let texts = vec![Some("a"), Some("中"), None, Some(""), Some("a")];
    let words: DictionaryArray<Int8Type> = texts.iter().copied().collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut large = LargeListBuilder::new(StringBuilder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    let mut numbered = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    for row in 0..5 {
        (0..row).for_each(|item| lists.values().append_option((item != 1).then_some(item)));
        lists.append(row != 2);
        large.append_value([Some("x"), None]);
        if row % 2 == 1 {
            maps.keys().append_value("k");
            maps.values().append_value(f64::from(row) / 2.0);
            numbered.keys().append_value(row);
            numbered.values().append_value("v");
        }
        maps.append(row != 2).unwrap();
        numbered.append(true).unwrap();
    }
    let fixed = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Float32, true)),
        2,
        Arc::new(Float32Array::from_iter_values(
            (0..10).map(|it| it as f32 / 4.0),
        )),
        valid(),
    );
    let inner = Field::new("in", DataType::Utf8, true);
    let nested = StructArray::new(
        ArrowFields::from(vec![inner]),
        vec![Arc::new(StringArray::from(texts.clone()))],
        valid(),
    );
    let strings = ListArray::new(
        Arc::new(Field::new_list_field(words.data_type().clone(), true)),
        OffsetBuffer::from_lengths([1, 1, 1, 1, 1]),
        Arc::new(words.clone()),
        None,
    );
    let times = vec![
        Some(0),
        Some(-1),
        None,
        Some(1_700_000_000_123),
        Some(86_399_999),
    ];
    let decimals = Decimal128Array::from(vec![Some(-12_345), Some(5), None, Some(0), Some(100)]);
    let small: Vec<Option<i8>> = vec![Some(-1), Some(0), None, Some(127), Some(1)];
    let floats = [
        Some(0.1),
        Some(f64::NAN),
        None,
        Some(f64::INFINITY),
        Some(1e300),
    ];
    vec![
        (
            "text",
            Arc::new(StringArray::from(vec!["r0", "r1", "r2", "r3", "r4"])),
        ),
        ("int8", Arc::new(Int8Array::from(small))),
        (
            "uint64",
            Arc::new(UInt64Array::from(vec![
                Some(u64::MAX),
                Some(0),
                None,
                Some(1),
                Some(2),
            ])),
        ),
        ("float64", Arc::new(Float64Array::from(floats.to_vec()))),
        (
            "float32",
            Arc::new(Float32Array::from(vec![
                Some(0.1),
                Some(1.0),
                None,
                Some(-0.5),
                Some(2.0),
            ])),
        ),
        (
            "decimal",
            Arc::new(decimals.with_precision_and_scale(9, 3).unwrap()),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![
                Some(true),
                Some(false),
                None,
                Some(true),
                Some(true),
            ])),
        ),
        ("large", Arc::new(LargeStringArray::from(texts.clone()))),
        ("view", Arc::new(StringViewArray::from(texts))),
        (
            "binary",
            Arc::new(BinaryArray::from_opt_vec(vec![
                Some(b"a"),
                Some(b"\xFF\x01"),
                None,
                Some(b""),
                Some(b"b"),
            ])),
        ),
        (
            "date",
            Arc::new(Date32Array::from(vec![
                Some(0),
                Some(-1),
                None,
                Some(19_675),
                Some(1),
            ])),
        ),
        (
            "time",
            Arc::new(TimestampMillisecondArray::from(times.clone())),
        ),
        (
            "zoned",
            Arc::new(TimestampMillisecondArray::from(times).with_timezone("+02:00")),
        ),
        (
            "clock",
            Arc::new(Time32MillisecondArray::from(vec![
                Some(0),
                Some(1),
                None,
                Some(3_600_000),
                Some(5),
            ])),
        ),
        ("word", Arc::new(words)),
        ("list", Arc::new(lists.finish())),
        ("largelist", Arc::new(large.finish())),
        ("fixed", Arc::new(fixed)),
        ("strings", Arc::new(strings)),
        ("nested", Arc::new(nested)),
        ("map", Arc::new(maps.finish())),
        ("numbered", Arc::new(numbered.finish())),
        ("nothing", Arc::new(NullArray::new(5))),
    ]
}

const FIRST_AND_FOURTH: [&str; 2] = [
    r#"{"text":"r0","int8":-1,"uint64":18446744073709551615,"float64":0.1,"float32":0.1,"decimal":-12.345,"bool":true,"large":"a","view":"a","binary":"a","date":"1970-01-01","time":"1970-01-01T00:00:00","zoned":"1970-01-01T00:00:00Z","clock":"00:00:00","word":"a","list":[],"largelist":["x",null],"fixed":[0.0,0.25],"strings":["a"],"nested":{"in":"a"},"map":{},"numbered":[],"nothing":null}"#,
    r#"{"text":"r3","int8":127,"uint64":1,"float64":null,"float32":-0.5,"decimal":0.000,"bool":true,"large":"","view":"","binary":"","date":"2023-11-14","time":"2023-11-14T22:13:20.123","zoned":"2023-11-14T22:13:20.123Z","clock":"01:00:00","word":"","list":[0,null,2],"largelist":["x",null],"fixed":[1.5,1.75],"strings":[""],"nested":{"in":""},"map":{"k":1.5},"numbered":[[3,"v"]],"nothing":null}"#,
];

#[test]
fn columns_of_every_type_become_jsonl_and_each_other() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let batches = batches_of(every_type(), 2);
    write_arrow(&path("a.arrow"), &batches, None);
    let given = rows_of(&path("a.arrow"));
    let writer = fs::File::create(path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(writer, given.schema(), None).unwrap();
    writer.write(&given).unwrap();
    writer.close().unwrap();
    let mut lines = Vec::new();
    for input in ["a.arrow", "a.parquet"] {
        let input = path(input);
        write(from_ref(&input), |_| true, &path("b.jsonl")).unwrap();
        lines.push(text_of(&path("b.jsonl")));
        for name in COLUMNAR {
            write(from_ref(&input), |_| true, &path(name)).unwrap();
            write(&[path(name)], |_| true, &path("c.jsonl")).unwrap();
            assert_eq!(text_of(&path("c.jsonl")), lines[0], "{input:?} {name}");
            write(from_ref(&input), |row| row % 2 == 0, &path(name)).unwrap();
            assert_eq!(rows_of(&path(name)).num_rows(), 3);
        }
    }
    assert_eq!(lines[0], lines[1]);
    let all: Vec<&str> = lines[0].lines().collect();
    assert_eq!([all[0], all[3]], FIRST_AND_FOURTH);
    assert!(all[2].contains(r#""bool":null,"large":null"#) && all[2].contains(r#""binary":null"#));
    assert!(all[1].contains(r#""float64":null"#) && all[1].contains(r#""binary":"ff01""#));
    // From Arrow to Arrow every column keeps its type and its dictionary.
    write(&[path("a.arrow")], |_| true, &path("b.arrow")).unwrap();
    assert_eq!(rows_of(&path("b.arrow")), given);
    // With two inputs, the dictionaries may differ: values stand in their place.
    fs::copy(path("a.arrow"), path("a2.arrow")).unwrap();
    write(
        &[path("a.arrow"), path("a2.arrow")],
        |_| true,
        &path("b.arrow"),
    )
    .unwrap();
    let both = rows_of(&path("b.arrow"));
    assert_eq!(both.num_rows(), 10);
    assert_eq!(
        both.column_by_name("word").unwrap().data_type(),
        &DataType::Utf8
    );
}

#[test]
fn many_rows_keep_their_order_on_many_threads() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let rows = (0..60_000).map(|row| {
        let text = format!("text {row} ").repeat(1 + row % 90);
        format!("{{\"id\":{row},\"text\":\"{text}\"}}\n")
    });
    let jsonl = store(
        directory.path(),
        "a.jsonl",
        rows.collect::<String>().as_bytes(),
    );
    for name in ["b.parquet", "b.arrow", "b.arrows"] {
        write(from_ref(&jsonl), |row| row % 3 != 0, &path(name)).unwrap();
        write(&[path(name)], |_| true, &path("c.jsonl")).unwrap();
        let expected: Vec<String> = text_of(&jsonl).lines().map(str::to_owned).collect();
        let expected: Vec<&String> = (expected.iter().enumerate())
            .filter(|(row, _)| row % 3 != 0)
            .map(|(_, line)| line)
            .collect();
        assert!(
            text_of(&path("c.jsonl"))
                .lines()
                .eq(expected.into_iter().map(String::as_str)),
            "{name}"
        );
    }
}

#[test]
fn fields_are_added_to_rows_that_are_converted() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let jsonl = store(
        directory.path(),
        "a.jsonl",
        b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
    );
    let open =
        |input: &PathBuf| InputSet::open_paths(from_ref(input), &ReadOptions::default()).unwrap();
    let expected = "{\"text\":\"a\",\"cluster\":\"c\\\"0\",\"duplicate_of\":null,\"similarity\":null}\n\
                    {\"text\":\"b\",\"cluster\":\"c\\\"1\",\"duplicate_of\":\"中\",\"similarity\":0.875}\n";
    for name in COLUMNAR {
        write_with(&open(&jsonl), |_| true, &path(name), 2, true).unwrap();
        write(&[path(name)], |_| true, &path("c.jsonl")).unwrap();
        assert_eq!(text_of(&path("c.jsonl")), expected, "{name}");
        let plain = path("plain.arrow");
        write(from_ref(&jsonl), |_| true, &plain).unwrap();
        write_with(&open(&plain), |_| true, &path("d.jsonl"), 2, true).unwrap();
        assert_eq!(text_of(&path("d.jsonl")), expected, "{name}");
        let error =
            write_with(&open(&path(name)), |_| true, &path("e.jsonl"), 2, true).unwrap_err();
        assert!(
            error.to_string().contains("already has a column `cluster`"),
            "{error}"
        );
    }
}

#[test]
fn fields_without_a_common_type_are_named() {
    let directory = tempdir().unwrap();
    for (second, said) in [
        (
            r#"{"text":"b","f":7}"#,
            &[
                "`f` is a string in",
                "a.jsonl:1 and a number in",
                "a.jsonl:3",
            ][..],
        ),
        (
            r#"{"text":"b","m":{"k":[{"z":1},{"z":"x"}]}}"#,
            &["`m.k[].z` is a number", "a string"],
        ),
        (
            r#"{"text":"b","n":-1}"#,
            &["`n` is a negative number", "above 2^63"],
        ),
        (
            r#"{"text":"b","p":0.5}"#,
            &["`p` is a number with a fraction", "beyond 2^53"],
        ),
        (
            r#"{"text":"b","q":18446744073709551616}"#,
            &["a.jsonl:3", "64 bits"],
        ),
    ] {
        let first = r#"{"text":"a","f":"s","n":18446744073709551615,"p":9007199254740993}"#;
        let lines = format!("{first}\n{{\"text\":\"\"}}\n{second}\n");
        let jsonl = store(directory.path(), "a.jsonl", lines.as_bytes());
        let error = write(
            from_ref(&jsonl),
            |_| true,
            &directory.path().join("b.parquet"),
        )
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        for said in said {
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(!directory.path().join("b.parquet").exists());
        // Only the kept rows count.
        write(
            from_ref(&jsonl),
            |row| row < 2,
            &directory.path().join("c.parquet"),
        )
        .unwrap();
    }
}

#[test]
fn what_cannot_be_converted_is_refused_by_name() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let refused = |input: &PathBuf, output: &str, said: &[&str]| {
        let error = write(from_ref(input), |_| true, &path(output)).unwrap_err();
        for said in said {
            assert!(error.to_string().contains(said), "{output}: {error}");
        }
        assert!(!path(output).exists());
    };
    let csv = store(directory.path(), "a.csv", b"id,text\n1,a\n");
    let jsonl = store(
        directory.path(),
        "a.jsonl",
        b"{\"text\":\"a\",\"empty\":{}}\n",
    );
    refused(
        &csv,
        "b.parquet",
        &["is CSV", "would be Parquet", "only JSONL"],
    );
    refused(&jsonl, "b.csv", &["is JSONL", "would be CSV"]);
    refused(
        &jsonl,
        "b.parquet.gz",
        &["compressed as a whole", "last extension"],
    );
    refused(&jsonl, "b.arrow.zst", &["compressed as a whole"]);
    refused(&jsonl, "b.parquet", &["`empty`", "Parquet does not have"]);
    write(from_ref(&jsonl), |_| true, &path("b.arrow")).unwrap();
    refused(&path("b.arrow"), "c.parquet", &["b.arrow", "`empty`"]);
    write(&[path("b.arrow")], |_| true, &path("c.jsonl")).unwrap();
    assert_eq!(text_of(&path("c.jsonl")), "{\"text\":\"a\",\"empty\":{}}\n");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let times: ArrayRef = Arc::new(DurationSecondArray::from(vec![1]));
    let columns = vec![("text", texts), ("took", times)];
    write_arrow(&path("d.arrow"), &batches_of(columns, 1), None);
    refused(
        &path("d.arrow"),
        "e.jsonl",
        &["d.arrow", "`took`", "Duration"],
    );
    refused(&path("d.arrow"), "e.tsv", &["is Arrow", "would be TSV"]);
}

#[test]
fn inputs_without_rows_become_outputs_without_rows() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = batches_of(vec![("text", texts)], 1).remove(0);
    write_arrow(
        &path("a.arrow"),
        &[RecordBatch::new_empty(batch.schema())],
        None,
    );
    write(&[path("a.arrow")], |_| true, &path("b.jsonl")).unwrap();
    assert_eq!(text_of(&path("b.jsonl")), "");
    write(&[path("a.arrow")], |_| true, &path("b.parquet")).unwrap();
    let rows = rows_of(&path("b.parquet"));
    assert_eq!(
        (rows.num_rows(), rows.schema().field(0).name().as_str()),
        (0, "text")
    );
    for name in COLUMNAR {
        write(&[path("b.jsonl")], |_| true, &path(name)).unwrap();
        assert_eq!(rows_of(&path(name)).num_columns(), 0);
    }
}

/// Rows with all of their fields are the same in every format.
#[test]
fn whole_rows_have_all_fields() {
    let directory = tempdir().unwrap();
    let jsonl = store(directory.path(), "a.jsonl", CONVERTED.as_bytes());
    let list = format!("[{}]", CONVERTED.trim_end().replace("}\n{", "},\n{"));
    let mut paths = vec![
        jsonl.clone(),
        store(directory.path(), "a.json", list.as_bytes()),
    ];
    for name in COLUMNAR {
        let columns = directory.path().join(name);
        write(from_ref(&jsonl), |_| true, &columns).unwrap();
        paths.push(columns);
    }
    let expected: Vec<serde_json::Value> = CONVERTED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for path in &paths {
        let (rows, bad) = whole_rows(from_ref(path));
        assert!(bad.is_empty(), "{bad:?}");
        let numbers: Vec<u64> = rows.iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, [1, 2, 3, 4], "{}", path.display());
        let fields: Vec<&serde_json::Value> = rows.iter().map(|(.., fields)| fields).collect();
        assert_eq!(
            fields,
            expected.iter().collect::<Vec<_>>(),
            "{}",
            path.display()
        );
    }
    // Inputs with different columns, and bad rows of every format that has lines.
    let delimited = [
        store(directory.path(), "c.csv", b"a,b\n\n1,\"x\"\"\ny\"\n2\n"),
        store(directory.path(), "d.tsv", b"c\n\"z\n"),
        store(
            directory.path(),
            "e.jsonl",
            b"{\"a\":\n[1]\n{\"a\": \"\\ud800\"}\n",
        ),
        store(directory.path(), "f.txt", b"text\n"),
    ];
    let (rows, bad) = whole_rows(&delimited);
    let shown: Vec<String> = (rows.iter())
        .map(|(number, line, fields)| format!("{number} {line} {fields}"))
        .collect();
    assert_eq!(
        shown,
        [
            "1 3 {\"a\":\"1\",\"b\":\"x\\\"\\ny\"}",
            "1 2 {\"c\":\"\\\"z\"}"
        ]
    );
    assert_eq!(
        bad,
        [
            "5 the row has 1 fields where the first row has 2",
            "1 the row is not valid JSON: EOF while parsing a value at its byte 5",
            "2 the row is a JSON list, not an object",
            "3 an escape in the row is half of a surrogate pair",
            "1 the row is plain text, which has no fields",
        ]
    );
}

/// A row of [`whole_rows`]: its number, its line and its fields.
type NumberedFields = (u64, u64, serde_json::Value);

/// Reads all rows with all of their fields, and the lines and reasons of bad rows.
fn whole_rows(paths: &[PathBuf]) -> (Vec<NumberedFields>, Vec<String>) {
    let options = ReadOptions {
        fields: WantedFields::whole_rows(),
        again: false,
        ..ReadOptions::default()
    };
    let inputs = InputSet::open_paths(paths, &options).unwrap();
    let mut scratch = ParseScratch::default();
    let (mut rows, mut bad) = (Vec::new(), Vec::new());
    while let Some(block) = inputs.next_block().unwrap() {
        inputs
            .parse_whole_rows(&block, &mut scratch, &mut |row| {
                match row {
                    Ok(row) => rows.push((row.number, row.line, row.fields.into())),
                    Err(row) => bad.push(format!("{} {}", row.line, row.reason)),
                }
                Ok(())
            })
            .unwrap();
        inputs.recycle_block(block);
    }
    (rows, bad)
}
