//! Kept rows are written unchanged, all of them or none, and never over an input.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::builder::*;
use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_select::concat::concat_batches;
use lookalike_io::error::{ErrorKind, Result};
use lookalike_io::sink::{
    AddedField, AddedFields, AddedKind, AddedValue, CollectedTable, LeftOutText, OutputRows,
    OutputTarget, RowChange, WriteOptions, WrittenOutput, prepare_kept,
};
use lookalike_io::source::{InputSet, ReadOptions, RowPlace};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tempfile::tempdir;

use crate::support::{load, names, read_on, store};

/// Returns `true` for the rows that are kept.
pub(crate) type Keep = fn(usize) -> bool;

struct Rows {
    rows: Vec<(RowPlace, u64)>,
    keep: Keep,
}

impl OutputRows for Rows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.rows[index].0
    }

    fn row_number(&self, index: usize) -> u64 {
        self.rows[index].1
    }

    fn is_kept(&self, index: usize) -> bool {
        (self.keep)(index)
    }
}

const ADDED: AddedFields<'_> = AddedFields {
    fields: &[
        AddedField {
            name: Cow::Borrowed("cluster"),
            kind: AddedKind::Text,
        },
        AddedField {
            name: Cow::Borrowed("duplicate_of"),
            kind: AddedKind::Text,
        },
        AddedField {
            name: Cow::Borrowed("similarity"),
            kind: AddedKind::Number,
        },
    ],
    values: &added_values,
};

fn added_values(index: usize) -> Result<Vec<AddedValue>> {
    let cluster = AddedValue::Text(format!("c\"{index}"));
    Ok(if index % 2 == 1 {
        vec![
            cluster,
            AddedValue::Text("中".to_owned()),
            AddedValue::Number(0.875),
        ]
    } else {
        vec![cluster, AddedValue::Null, AddedValue::Null]
    })
}

pub(crate) fn write_with(
    inputs: &InputSet,
    keep: Keep,
    output: &Path,
    threads: usize,
    annotate: bool,
) -> Result<WrittenOutput> {
    let found = read_on(2, inputs)?;
    let rows = found
        .rows
        .iter()
        .map(|row| (row.place, row.number))
        .collect();
    let rows = Rows { rows, keep };
    let options = WriteOptions {
        change: if annotate {
            RowChange::AddFields(&ADDED)
        } else {
            RowChange::Unchanged
        },
        threads,
    };
    let last = AtomicU64::new(0);
    let progress = |rows: u64| {
        last.fetch_max(rows, Ordering::Relaxed);
    };
    let output = OutputTarget::Path(output.to_path_buf());
    let written = prepare_kept(inputs, &rows, &output, &options, &progress)?.commit_output()?;
    assert!(last.into_inner() <= rows.len() as u64);
    Ok(written)
}

pub(crate) fn write(paths: &[PathBuf], keep: Keep, output: &Path) -> Result<WrittenOutput> {
    let inputs = InputSet::open_paths(paths, &ReadOptions::default())?;
    write_with(&inputs, keep, output, 2, false)
}

const KEEP: [Keep; 5] = [
    |_| true,
    |_| false,
    |row| row % 3 != 0,
    |row| row % 50 == 7,
    |row| !(5..=590).contains(&row),
];

/// Rows of several lengths with both line ends, as one input and as a list.
fn lines(count: usize, header: &str, make: impl Fn(usize) -> String) -> (String, Vec<String>) {
    let rows: Vec<String> = (0..count)
        .map(|row| make(row) + if row % 5 == 0 { "\r\n" } else { "\n" })
        .collect();
    (format!("{header}{}", rows.concat()), rows)
}

#[test]
fn kept_rows_are_the_input_rows_byte_for_byte() {
    let directory = tempdir().unwrap();
    let json = |row: usize| {
        format!(
            "{{ \"text\" : \"{}\", \"n\":[{row}] }} ",
            "x\\n".repeat(row % 400)
        )
    };
    let csv = |row: usize| format!("{row},\"a\n{}\"", "中".repeat(row % 300));
    let tsv = |row: usize| format!("{row}\t\"{}", "y".repeat(row % 300));
    let text = |row: usize| format!("line {row} {}", "z".repeat(row % 100));
    for (extension, header, (input, rows)) in [
        ("jsonl", "", lines(600, "", json)),
        ("csv", "id,text\r\n", lines(600, "id,text\r\n", csv)),
        ("tsv", "id\ttext\n", lines(600, "id\ttext\n", tsv)),
        ("txt", "", lines(600, "", text)),
    ] {
        for from in ["", ".gz", ".zst"] {
            let path = store(
                directory.path(),
                &format!("in.{extension}{from}"),
                input.as_bytes(),
            );
            for to in ["", ".gz", ".zst"] {
                for (case, keep) in KEEP.into_iter().enumerate() {
                    let output = directory.path().join(format!("out.{extension}{to}"));
                    let inputs =
                        InputSet::open_paths(from_ref(&path), &ReadOptions::default()).unwrap();
                    let written = write_with(&inputs, keep, &output, 1 + case % 3, false).unwrap();
                    let kept: Vec<_> = (0..rows.len()).filter(|&row| keep(row)).collect();
                    let expected: String = kept.iter().map(|&row| rows[row].as_str()).collect();
                    let found = load(&output);
                    assert!(
                        found == format!("{header}{expected}").as_bytes(),
                        "{extension} {from} {to} {case}"
                    );
                    assert_eq!(written.rows, kept.len() as u64);
                    assert_eq!(written.bytes, fs::metadata(&output).unwrap().len());
                }
            }
        }
    }
    let expected: Vec<_> = ["csv", "jsonl", "tsv", "txt"]
        .into_iter()
        .flat_map(|extension| ["", ".gz", ".zst"].map(|to| format!("out.{extension}{to}")))
        .collect();
    let found: Vec<_> = names(directory.path())
        .into_iter()
        .filter(|name| !name.starts_with("in."))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn missing_last_line_feed_is_added_if_needed() {
    let directory = tempdir().unwrap();
    let first = store(directory.path(), "1.txt", b"\xEF\xBB\xBFa\nb");
    let second = store(directory.path(), "2.txt", b"c\n\n\nd");
    let output = directory.path().join("out.txt");
    let cases: [(Keep, &str); 4] = [
        (|_| true, "a\nb\nc\nd"),
        (|row| row < 2, "a\nb"),
        (|row| row != 1, "a\nc\nd"),
        (|row| row == 1 || row == 3, "b\nd"),
    ];
    for (keep, expected) in cases {
        write(&[first.clone(), second.clone()], keep, &output).unwrap();
        assert_eq!(fs::read_to_string(&output).unwrap(), expected);
    }
}

#[test]
fn annotations_are_appended_inside_rows() {
    let directory = tempdir().unwrap();
    let cases = [
        (
            "a.jsonl",
            "{\"text\":\"a\"}\r\n{ \"text\" : \"b\\u0000\" } \n",
            "{\"text\":\"a\",\"cluster\":\"c\\\"0\",\"duplicate_of\":null,\"similarity\":null}\r\n\
             { \"text\" : \"b\\u0000\",\"cluster\":\"c\\\"1\",\"duplicate_of\":\"中\",\"similarity\":0.875}\n",
        ),
        (
            "a.csv",
            "id,text\r\n1,\"a\nb\"\r\n2,b",
            "id,text,cluster,duplicate_of,similarity\r\n1,\"a\nb\",\"c\"\"0\",,\r\n2,b,\"c\"\"1\",中,0.875",
        ),
        (
            "a.tsv",
            "id\ttext\n1\ta\n2\tb\n",
            "id\ttext\tcluster\tduplicate_of\tsimilarity\n1\ta\tc\"0\t\t\n2\tb\tc\"1\t中\t0.875\n",
        ),
    ];
    let annotate = |path: &Path, options: &ReadOptions| {
        let output = path.with_file_name(format!(
            "out.{}",
            path.extension().unwrap().to_str().unwrap()
        ));
        let inputs = InputSet::open_paths(&[path.to_path_buf()], options).unwrap();
        write_with(&inputs, |_| true, &output, 2, true).map(|_| load(&output))
    };
    for (name, input, expected) in cases {
        let path = store(directory.path(), name, input.as_bytes());
        // Blanks before the line end do not belong to the object.
        let expected = expected.replace("} \n", "}\n");
        let found = annotate(&path, &ReadOptions::default()).unwrap();
        assert_eq!(
            String::from_utf8(found).unwrap().replace("} \n", "}\n"),
            expected
        );
    }
    let gb = ReadOptions {
        encoding: encoding_rs::GB18030,
        ..ReadOptions::default()
    };
    let input = encoding_rs::GB18030
        .encode("{\"text\":\"中文\"}\n{\"text\":\"文\"}\n")
        .0;
    let path = store(directory.path(), "b.jsonl", &input);
    let found = annotate(&path, &gb).unwrap();
    let found = encoding_rs::GB18030.decode(&found).0.into_owned();
    assert!(found.contains("\"duplicate_of\":\"\\u4e2d\""), "{found}");
    for (name, input, reason) in [
        (
            "c.jsonl",
            "{\"text\":\"a\",\"cluster\":1}\n",
            "field `cluster` exists already",
        ),
        (
            "c.csv",
            "text,similarity\na,b\n",
            "already has a column `similarity`",
        ),
        ("c.txt", "a\n", "no fields can be added"),
    ] {
        let path = store(directory.path(), name, input.as_bytes());
        let error = annotate(&path, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn inputs_are_never_written_over() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    let input = store(root, "a.jsonl", b"{\"text\":\"a\"}\n");
    fs::hard_link(&input, root.join("hard.jsonl")).unwrap();
    lookalike_system::create_symlink(&input, &root.join("soft.jsonl")).unwrap();
    for name in ["a.jsonl", "hard.jsonl", "soft.jsonl"] {
        let error = write(from_ref(&input), |_| true, &root.join(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("overwritten"), "{error}");
    }
    let error = write(from_ref(&input), |_| true, root).unwrap_err();
    assert!(error.to_string().contains("overwritten"), "{error}");
    assert_eq!(fs::read(&input).unwrap(), b"{\"text\":\"a\"}\n");
    assert_eq!(names(root), ["a.jsonl", "hard.jsonl", "soft.jsonl"]);
}

#[test]
fn failed_runs_leave_no_files() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    let input = store(root, "a.jsonl", b"{\"text\":\"a\"}\n");
    let csv = store(root, "b.csv", b"text\na\n");
    for (inputs, output) in [
        (vec![input.clone()], "out.csv"),
        (vec![csv.clone()], "out.tsv.gz"),
        (vec![input.clone(), csv.clone()], "out.jsonl"),
    ] {
        let error = write(&inputs, |_| true, &root.join(output)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    let error = write(from_ref(&input), |_| true, &root.join("none/out.jsonl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Output);
    if Path::new("/dev/full").exists() {
        let error = write(from_ref(&input), |_| true, Path::new("/dev/full")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Output, "{error}");
    }
    let inputs = InputSet::open_paths(from_ref(&input), &ReadOptions::default()).unwrap();
    let found = read_on(1, &inputs).unwrap();
    let rows = Rows {
        rows: vec![(found.rows[0].place, 1)],
        keep: |_| true,
    };
    fs::write(&input, "{\"text\":\"other\"}\n").unwrap();
    let output = OutputTarget::Path(root.join("out.jsonl"));
    let options = WriteOptions {
        change: RowChange::Unchanged,
        threads: 1,
    };
    let error = match prepare_kept(&inputs, &rows, &output, &options, &|_| ()) {
        Ok(_) => panic!("rows that are no longer there were written"),
        Err(error) => error,
    };
    assert!(error.to_string().contains("was changed"), "{error}");
    assert_eq!(names(root), ["a.jsonl", "b.csv"]);
}

#[test]
fn output_directory_mirrors_the_inputs() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("in/sub")).unwrap();
    store(
        &root.join("in"),
        "a.jsonl",
        b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
    );
    store(
        &root.join("in/sub"),
        "b.jsonl.gz",
        b"{\"text\":\"c\"}\n{\"text\":\"d\"}",
    );
    store(&root.join("in/sub"), "c.csv", b"text\ne\n");
    let output = PathBuf::from(format!("{}/out/", root.display()));
    let written = write(&[root.join("in")], |row| row % 2 == 0, &output).unwrap();
    assert_eq!(written.rows, 3);
    assert_eq!(names(&output), ["a.jsonl", "sub"]);
    assert_eq!(load(&output.join("a.jsonl")), b"{\"text\":\"a\"}\n");
    assert_eq!(load(&output.join("sub/b.jsonl.gz")), b"{\"text\":\"c\"}\n");
    assert_eq!(load(&output.join("sub/c.csv")), b"text\ne\n");
    let same = [root.join("in/a.jsonl"), root.join("in/a.jsonl")];
    let error = write(&same, |_| true, &output).unwrap_err();
    assert!(error.to_string().contains("both be written"), "{error}");

    let documents = root.join("documents");
    fs::create_dir(&documents).unwrap();
    for name in ["x.md", "y.txt", "z"] {
        store(&documents, name, name.as_bytes());
    }
    let by_file = ReadOptions {
        document_per_file: true,
        ..ReadOptions::default()
    };
    let inputs = InputSet::open_paths(&[documents], &by_file).unwrap();
    let output = PathBuf::from(format!("{}/kept/", root.display()));
    write_with(&inputs, |row| row != 1, &output, 2, false).unwrap();
    assert_eq!(names(&output), ["x.md", "z"]);
}

fn table(start: i64, count: i64) -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..count {
        lists.append_value((0..row % 4).map(|value| Some(value as i32)));
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            Arc::new(Int64Array::from_iter_values(start..start + count)),
        ),
        (
            "text",
            Arc::new(StringViewArray::from_iter(
                (0..count).map(|row| (row % 11 != 4).then(|| format!("text {row}"))),
            )),
        ),
        ("list", Arc::new(lists.finish())),
        (
            "time",
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(start..start + count)
                    .with_timezone("Asia/Shanghai"),
            ),
        ),
        (
            "price",
            Arc::new(
                Decimal128Array::from_iter_values((0..count).map(i128::from))
                    .with_precision_and_scale(20, 3)
                    .unwrap(),
            ),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn store_parquet(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "origin".into(),
            "here".to_owned(),
        )]))
        .build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn load_parquet(path: &Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let pairs = builder
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap()
        .clone();
    assert!(
        pairs
            .iter()
            .any(|pair| pair.key == "origin" && pair.value.as_deref() == Some("here"))
    );
    for group in builder.metadata().row_groups() {
        assert_eq!(
            group.column(0).compression(),
            parquet::basic::Compression::SNAPPY
        );
    }
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder
        .build()
        .unwrap()
        .map(|batch| batch.unwrap())
        .collect();
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn parquet_keeps_columns_types_and_metadata() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    let (first, second) = (root.join("1.parquet"), root.join("2.parquet"));
    let all = [table(0, 730), table(1000, 250)];
    store_parquet(&first, &all[0]);
    store_parquet(&second, &all[1]);
    let whole = concat_batches(&all[0].schema(), &all).unwrap();
    // Rows without text are bad rows and not in the row set.
    let good: Vec<usize> = (0..980)
        .filter(|&row| whole.column(1).is_valid(row))
        .collect();
    let output = root.join("out.parquet");
    for (case, keep) in KEEP.into_iter().enumerate() {
        let inputs =
            InputSet::open_paths(&[first.clone(), second.clone()], &ReadOptions::default())
                .unwrap();
        for annotate in [false, true] {
            let inputs = if annotate {
                &InputSet::open_paths(&[first.clone(), second.clone()], &ReadOptions::default())
                    .unwrap()
            } else {
                &inputs
            };
            write_with(inputs, keep, &output, 1 + case % 3, annotate).unwrap();
            let found = load_parquet(&output);
            let kept: Vec<usize> = (0..good.len()).filter(|&row| keep(row)).collect();
            let indices = UInt64Array::from_iter_values(kept.iter().map(|&row| good[row] as u64));
            let expected = arrow_select::take::take_record_batch(&whole, &indices).unwrap();
            assert_eq!(found.num_rows(), expected.num_rows());
            for name in ["id", "text", "list", "time", "price"] {
                assert_eq!(found.column_by_name(name), expected.column_by_name(name));
            }
            assert_eq!(found.num_columns(), if annotate { 8 } else { 5 });
            if annotate {
                let clusters = found.column_by_name("cluster").unwrap().as_string::<i32>();
                for (at, row) in kept.iter().enumerate() {
                    assert_eq!(clusters.value(at), format!("c\"{row}"));
                }
            }
        }
    }
    let other = root.join("3.parquet");
    store_parquet(&other, &all[0].project(&[0, 1]).unwrap());
    let error = write(&[first.clone(), other], |_| true, &output).unwrap_err();
    assert!(error.to_string().contains("different columns"), "{error}");
    let error = write(&[first], |_| true, &root.join("out.parquet.gz")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// Rows whose verdicts become known one after another.
struct Slow<'a> {
    rows: &'a Rows,
    known: AtomicU64,
}

impl OutputRows for Slow<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.rows.place_of(index)
    }

    fn row_number(&self, index: usize) -> u64 {
        self.rows.row_number(index)
    }

    fn is_kept(&self, index: usize) -> bool {
        while self.known.load(Ordering::Acquire) <= index as u64 {
            std::thread::yield_now();
        }
        self.rows.is_kept(index)
    }
}

#[test]
fn kept_rows_stay_hidden_until_the_commit() {
    let directory = tempdir().unwrap();
    let (input, rows) = lines(9000, "", |row| {
        format!(
            "{{\"text\":\"{row}\",\"more\":\"{}\"}}",
            "x".repeat(row % 700)
        )
    });
    let path = store(directory.path(), "in.jsonl", input.as_bytes());
    let inputs = InputSet::open_paths(&[path], &ReadOptions::default()).unwrap();
    let found = read_on(2, &inputs).unwrap();
    let keep: Keep = |row| row % 3 != 0;
    let all = Rows {
        rows: found
            .rows
            .iter()
            .map(|row| (row.place, row.number))
            .collect(),
        keep,
    };
    let slow = Slow {
        rows: &all,
        known: AtomicU64::new(0),
    };
    let target = directory.path().join("out.jsonl");
    let output = OutputTarget::Path(target.clone());
    let options = WriteOptions {
        change: RowChange::Unchanged,
        threads: 2,
    };
    let prepared = std::thread::scope(|scope| {
        let copying = scope.spawn(|| prepare_kept(&inputs, &slow, &output, &options, &|_| ()));
        for known in (0..=all.len() as u64).step_by(500) {
            slow.known.store(known, Ordering::Release);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        copying.join().unwrap().unwrap()
    });
    // Where a file has a name from the start, it is one that listings leave out.
    let seen = names(directory.path());
    let is_seen = |name: &&String| cfg!(target_os = "linux") || !name.starts_with('.');
    assert_eq!(
        seen.iter().filter(is_seen).collect::<Vec<_>>(),
        ["in.jsonl"]
    );
    prepared.commit_output().unwrap();
    let expected: String = (0..)
        .zip(&rows)
        .filter(|(row, _)| keep(*row))
        .map(|(_, row)| &row[..])
        .collect();
    assert_eq!(fs::read_to_string(target).unwrap(), expected);
}

/// Writes all rows of an input; the text of the second row loses the part between its brackets.
fn cut_second(
    input: &Path,
    output: &OutputTarget,
    options: &ReadOptions,
    text: &str,
) -> Result<()> {
    let inputs = InputSet::open_paths(&[input.to_path_buf()], options)?;
    let found = read_on(2, &inputs)?;
    let rows = found.rows.iter().map(|row| (row.place, row.number));
    let rows = Rows {
        rows: rows.collect(),
        keep: |_| true,
    };
    let range = text.find('[').unwrap()..text.find(']').unwrap() + 1;
    let left_out = LeftOutText {
        ranges: vec![0..0, range],
        length: text.len(),
    };
    let left_out = |row: usize| Ok((row == 1).then(|| left_out.clone()));
    let options = WriteOptions {
        change: RowChange::CutText(&left_out),
        threads: 2,
    };
    prepare_kept(&inputs, &rows, output, &options, &|_| ())?.commit_output()?;
    Ok(())
}

#[test]
fn a_table_in_memory_has_the_parts_that_are_left_out() {
    let folder = tempdir().unwrap();
    let input = store(folder.path(), "in.txt", b"x\na [b]c\nz\n");
    let collected = CollectedTable::default();
    let target = OutputTarget::Memory(collected.clone());
    cut_second(&input, &target, &ReadOptions::default(), "a [b]c").unwrap();
    let (_, batches) = collected.take_batches().unwrap();
    let batch = &batches[0];
    let rows = batch["row"].as_primitive::<types::UInt64Type>();
    assert_eq!(rows.values(), &[0, 1, 2]);
    let left_out = batch["left_out"].as_list::<i32>();
    let parts = left_out.value(1);
    assert_eq!(
        parts.as_primitive::<types::UInt64Type>().values(),
        &[0, 0, 2, 5]
    );
    assert!(left_out.is_null(0) && left_out.is_null(2));
}

#[test]
fn only_the_text_of_a_cut_row_changes() {
    let folder = tempdir().unwrap();
    let lossy = ReadOptions {
        invalid_text: lookalike_documents::decoding::InvalidText::Lossy,
        ..ReadOptions::default()
    };
    let cases: [(&str, &[u8], &[u8]); 7] = [
        (
            "a.jsonl",
            b"{\"text\":\"x\"}\r\n { \"n\": 1.0, \"t\\u0065xt\": \"a \\u005b\\n b]c\" , \"m\":[]} \n",
            b"{\"text\":\"x\"}\r\n { \"n\": 1.0, \"t\\u0065xt\": \"a c\" , \"m\":[]} \n",
        ),
        (
            "b.csv",
            b"n,text,m\n1,x,\"2\"\n\"1\",\"a [\"\" b]c\",\"2\"\n",
            b"n,text,m\n1,x,\"2\"\n\"1\",a c,\"2\"\n",
        ),
        ("c.tsv", b"text\tm\nx\t\"\na [b]c\t\"\n", b"text\tm\nx\t\"\na c\t\"\n"),
        ("d.txt", b"x\na [b]c\n", b"x\na c\n"),
        ("e.json", b"[{\"text\":\"x\"},\n{\"text\":\"a [b]c\"}]", b"[\n{\"text\":\"x\"},\n{\"text\":\"a c\"}\n]\n"),
        (
            "f.jsonl",
            b"{\"text\":\"x\"}\n{\"text\":\"a [\\ud800]c\",\"n\":\"\xff\"}\n",
            "{\"text\":\"x\"}\n{\"text\":\"a c\",\"n\":\"\u{fffd}\"}\n".as_bytes(),
        ),
        (
            "g.jsonl",
            b"{\"text\":\"x\"}\n{\"text\":\"a [b]c\"}",
            b"{\"text\":\"x\"}\n{\"text\":\"a c\"}",
        ),
    ];
    for (name, content, expected) in cases {
        let (input, output) = (
            folder.path().join(name),
            folder.path().join(format!("out-{name}")),
        );
        fs::write(&input, content).unwrap();
        let text = match name {
            "a.jsonl" => "a [\n b]c",
            "b.csv" => "a [\" b]c",
            "f.jsonl" => "a [\u{fffd}]c",
            _ => "a [b]c",
        };
        let target = OutputTarget::Path(output.clone());
        cut_second(&input, &target, &lossy, text).unwrap();
        assert_eq!(fs::read(&output).unwrap(), expected, "{name}");
        let error = cut_second(&input, &target, &lossy, &format!("{text} more")).unwrap_err();
        assert!(error.to_string().contains("row 2, in "), "{error}");
        assert!(error.to_string().contains("was changed"), "{error}");
    }
}

#[test]
fn text_is_cut_in_columns_of_any_kind_of_strings() {
    let folder = tempdir().unwrap();
    let texts = vec![Some("x"), Some("a [b]c")];
    let columns: [ArrayRef; 3] = [
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts)),
    ];
    for column in columns {
        let data_type = column.data_type().clone();
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("n", numbers, false),
            ("text", column, true),
        ]);
        let batch = batch.unwrap();
        let (input, output) = (
            folder.path().join("a.parquet"),
            folder.path().join("b.parquet"),
        );
        let mut writer =
            ArrowWriter::try_new(fs::File::create(&input).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let target = OutputTarget::Path(output.clone());
        cut_second(&input, &target, &ReadOptions::default(), "a [b]c").unwrap();
        let file = fs::File::open(&output).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .build()
            .unwrap();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let written = concat_batches(&batches[0].schema(), &batches).unwrap();
        assert_eq!(written.column(0), batch.column(0));
        assert_eq!(written.column(1).data_type(), &data_type);
        let cut = lookalike_io::source::to_large_strings(written.column(1)).unwrap();
        assert_eq!(cut.iter().collect::<Vec<_>>(), [Some("x"), Some("a c")]);
    }
}
