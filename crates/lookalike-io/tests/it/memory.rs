//! Tables in memory give the same rows as Parquet and JSONL files.

use std::fs::File;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, ListArray, RecordBatch,
    StringArray, StringViewArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields as ArrowFields};
use lookalike_io::source::{
    IdField, InputSet, MemoryTable, ReadOptions, RowPlace, RowSource, WantedFields,
};
use parquet::arrow::ArrowWriter;
use tempfile::tempdir;

use crate::support::{Owned, Read, read_on};

const ROWS: usize = 61;

/// Every kind of column that can be read, with nulls.
fn columns() -> RecordBatch {
    let rows = || 0..ROWS;
    let text = |row: usize| (row % 10 != 3).then(|| format!("text {row} 中文").repeat(row % 4));
    let texts: Vec<Option<String>> = rows().map(text).collect();
    let borrowed = || texts.iter().map(Option::as_deref);
    let nested = StructArray::new(
        ArrowFields::from(vec![Field::new("body", DataType::Utf8, true)]),
        vec![Arc::new(borrowed().collect::<StringArray>())],
        Some(rows().map(|row| row != 1).collect::<Vec<_>>().into()),
    );
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows() {
        for item in 0..row % 3 {
            lists.values().append_value(format!("f{item}"));
        }
        lists.append(row % 7 != 0);
    }
    let ids = rows().map(|row| (row % 11 != 5).then_some(9_007_199_254_740_993 + row as i64));
    let arrays: [(&str, ArrayRef); 8] = [
        ("items", Arc::new(lists_of_structs())),
        ("id", Arc::new(ids.collect::<Int64Array>())),
        ("text", Arc::new(borrowed().collect::<StringArray>())),
        ("large", Arc::new(borrowed().collect::<LargeStringArray>())),
        ("view", Arc::new(borrowed().collect::<StringViewArray>())),
        ("nested", Arc::new(nested)),
        ("list", Arc::new(lists.finish())),
        (
            "truth",
            Arc::new(BooleanArray::from_iter(
                rows().map(|row| Some(row % 2 == 0)),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// Lists of no, one and two structs with a text, some of which are null.
fn lists_of_structs() -> ListArray {
    let lengths: Vec<usize> = (0..ROWS).map(|row| row % 3).collect();
    let texts =
        (0..lengths.iter().sum()).map(|at: usize| (at % 5 != 2).then(|| format!("item {at}")));
    let fields = ArrowFields::from(vec![Field::new("body", DataType::Utf8, true)]);
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let values = StructArray::new(fields, vec![texts], None);
    let item = Field::new("item", values.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths(lengths);
    ListArray::new(Arc::new(item), offsets, Arc::new(values), None)
}

/// The same rows in batches of odd sizes. One batch is empty, and most do not start at the beginning of
/// their buffers.
fn in_memory(columns: &RecordBatch) -> MemoryTable {
    let cuts = [0, 1, 2, 2, 30, ROWS];
    let batches = cuts
        .windows(2)
        .map(|cut| columns.slice(cut[0], cut[1] - cut[0]));
    MemoryTable::new("data", columns.schema(), batches.collect()).unwrap()
}

fn in_parquet(columns: &RecordBatch, path: &Path) {
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, columns.schema(), None).unwrap();
    writer.write(columns).unwrap();
    writer.close().unwrap();
}

/// The properties that do not depend on where the rows are stored.
fn told(read: &Read) -> (Vec<Owned>, Vec<(u64, u64, String)>) {
    let rows = read.rows.iter().cloned();
    let rows = rows.map(|row| Owned {
        place: RowPlace::new(0, 0),
        ..row
    });
    let bad = read.bad.iter();
    let bad = bad.map(|bad| (bad.number, bad.line, bad.reason.clone()));
    (rows.collect(), bad.collect())
}

#[test]
fn tables_read_like_parquet() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("rows.parquet");
    let columns = columns();
    in_parquet(&columns, &path);
    let table = RowSource::Table(in_memory(&columns));
    let name = |name: &str| vec![name.to_owned()];
    let wanted = [
        (name("text"), IdField::RowNumber, None, vec![]),
        (name("text"), IdField::Default, None, name("truth")),
        (name("large"), IdField::RowNumber, None, name("large")),
        (
            name("view"),
            IdField::Named("text".into()),
            None,
            name("id"),
        ),
        (
            name("nested.body"),
            IdField::RowNumber,
            None,
            name("nested.body"),
        ),
        (
            name("items.body"),
            IdField::RowNumber,
            None,
            name("items.body"),
        ),
        (name("list"), IdField::RowNumber, None, vec![]),
        (
            [name("text"), name("view")].concat(),
            IdField::RowNumber,
            None,
            vec![],
        ),
        (
            name("text"),
            IdField::RowNumber,
            Some("list".to_owned()),
            name("nested.body"),
        ),
    ];
    for (text, id, features, extra) in wanted {
        for block_bytes in [1, 7, 200, 1 << 20] {
            let options = ReadOptions {
                block_bytes,
                fields: WantedFields {
                    text: text.clone(),
                    id: id.clone(),
                    features: features.clone(),
                    extra: extra.clone(),
                    ..WantedFields::default()
                },
                ..ReadOptions::default()
            };
            let of_file =
                read_on(1, &InputSet::open_paths(from_ref(&path), &options).unwrap()).unwrap();
            for threads in [1, 3] {
                let inputs = InputSet::open_source(&table, &options).unwrap();
                let held = read_on(threads, &inputs).unwrap();
                assert_eq!(told(&held), told(&of_file), "{text:?} {id:?}");
                assert!(held.bad.iter().all(|bad| bad.file == "data"));
            }
            assert!(!of_file.rows.is_empty() && !of_file.bad.is_empty());
        }
    }
}

#[test]
fn unusable_columns_are_refused() {
    let columns = columns();
    let table = RowSource::Table(in_memory(&columns));
    for (text, said) in [
        ("nowhere", "data has no column `nowhere` among `items`"),
        (
            "truth",
            "the column `truth` of data is of the type Boolean, which cannot be used as text",
        ),
    ] {
        let options = ReadOptions {
            fields: WantedFields {
                text: vec![text.to_owned()],
                ..WantedFields::default()
            },
            ..ReadOptions::default()
        };
        let Err(error) = InputSet::open_source(&table, &options) else {
            panic!("{text} was read");
        };
        assert!(error.to_string().contains(said), "{error}");
    }
    let other = columns.project(&[0]).unwrap();
    let error = MemoryTable::new("data", columns.schema(), vec![columns, other]).unwrap_err();
    assert!(error.to_string().contains("data has a batch"), "{error}");
}
