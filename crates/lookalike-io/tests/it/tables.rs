//! Small tables are written in every format.

use std::path::Path;
use std::slice::from_ref;

use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_ipc::reader::{FileReader, StreamReader};
use lookalike_io::error::ErrorKind;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableWriter};
use lookalike_io::source::{InputSet, ReadOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use tempfile::tempdir;

use crate::support::{load, names, store};

const COLUMNS: [TableColumn<'_>; 4] = [
    TableColumn::Text("id"),
    TableColumn::Number("similarity"),
    TableColumn::Integer("count"),
    TableColumn::Bool("kept"),
];

fn write(path: &Path) {
    let mut table =
        TableWriter::create_table(&OutputTarget::Path(path.to_path_buf()), &COLUMNS, None).unwrap();
    let rows = [
        [
            TableCell::Text("plain"),
            TableCell::Number(1.0),
            TableCell::Integer(3),
            TableCell::Bool(true),
        ],
        [
            TableCell::Text("a\t\"b\",\nc"),
            TableCell::Number(0.1),
            TableCell::Null,
            TableCell::Bool(false),
        ],
        [
            TableCell::Text("中"),
            TableCell::Null,
            TableCell::Integer(u64::MAX),
            TableCell::Null,
        ],
    ];
    for row in rows {
        table.push_row(&row).unwrap();
    }
    assert!(!path.exists());
    assert_eq!(table.finish_table().unwrap().rows, 3);
}

#[test]
fn each_format_by_its_extension() {
    let directory = tempdir().unwrap();
    let tsv = "id\tsimilarity\tcount\tkept\nplain\t1\t3\ttrue\na\\t\"b\",\\nc\t0.1\t\tfalse\n\
               中\t\t18446744073709551615\t\n";
    let csv = "id,similarity,count,kept\nplain,1,3,true\n\"a\t\"\"b\"\",\nc\",0.1,,false\n\
               中,,18446744073709551615,\n";
    let jsonl = "{\"id\":\"plain\",\"similarity\":1,\"count\":3,\"kept\":true}\n\
                 {\"id\":\"a\\t\\\"b\\\",\\nc\",\"similarity\":0.1,\"count\":null,\"kept\":false}\n\
                 {\"id\":\"中\",\"similarity\":null,\"count\":18446744073709551615,\"kept\":null}\n";
    for (extension, expected) in [("tsv", tsv), ("csv", csv), ("jsonl", jsonl), ("out", tsv)] {
        for compression in ["", ".gz", ".zst"] {
            let path = directory.path().join(format!("a.{extension}{compression}"));
            write(&path);
            assert_eq!(String::from_utf8(load(&path)).unwrap(), expected);
            std::fs::remove_file(&path).unwrap();
        }
    }
    let path = directory.path().join("a.parquet");
    write(&path);
    let file = std::fs::File::open(&path).unwrap();
    let batch = ParquetRecordBatchReader::try_new(file, 10)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(1), "a\t\"b\",\nc");
    assert!(batch.column(2).is_null(1));
    for name in ["a.arrow", "a.feather", "a.arrows"] {
        let path = directory.path().join(name);
        write(&path);
        let file = std::fs::File::open(&path).unwrap();
        let read = if name.ends_with("arrows") {
            StreamReader::try_new(file, None).unwrap().next()
        } else {
            FileReader::try_new(file, None).unwrap().next()
        };
        assert_eq!(read.unwrap().unwrap(), batch, "{name}");
    }
    for name in ["a.parquet.gz", "a.arrow.zst"] {
        let output = OutputTarget::Path(directory.path().join(name));
        let error = TableWriter::create_table(&output, &COLUMNS, None)
            .err()
            .unwrap();
        assert!(error.to_string().contains("compressed twice"), "{error}");
    }
}

#[test]
fn table_is_written_completely_or_not_at_all() {
    let directory = tempdir().unwrap();
    let input = store(directory.path(), "in.jsonl", b"{\"text\":\"a\"}\n");
    let inputs = InputSet::open_paths(from_ref(&input), &ReadOptions::default()).unwrap();
    let error = TableWriter::create_table(&OutputTarget::Path(input), &COLUMNS, Some(&inputs))
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    for name in ["a.tsv", "a.parquet", "a.arrow", "a.arrows"] {
        let output = OutputTarget::Path(directory.path().join(name));
        let mut table = TableWriter::create_table(&output, &COLUMNS, Some(&inputs)).unwrap();
        assert!(table.push_row(&[TableCell::Null]).is_err());
        drop(table);
    }
    assert_eq!(names(directory.path()), ["in.jsonl"]);
}
