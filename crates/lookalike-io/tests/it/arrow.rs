//! Arrow files and streams are read as the Parquet files of the same columns, and damage is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields as ArrowFields};
use lookalike_io::error::ErrorKind;
use lookalike_io::source::{InputFormat, InputSet, ReadOptions, WantedFields};
use tempfile::tempdir;

use crate::support::{Read, read, read_on};

/// Writes batches as a stream if the name ends in `.arrows`, otherwise as a file.
pub(crate) fn write_arrow(
    path: &Path,
    batches: &[RecordBatch],
    compression: Option<CompressionType>,
) {
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(compression).unwrap();
    let (file, schema) = (fs::File::create(path).unwrap(), batches[0].schema());
    if path.extension().is_some_and(|it| it == "arrows") {
        let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        return writer.finish().unwrap();
    }
    let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

/// Divides columns into batches of this many rows.
pub(crate) fn batches_of(columns: Vec<(&str, ArrayRef)>, rows: usize) -> Vec<RecordBatch> {
    let named = columns.into_iter().map(|(name, array)| (name, array, true));
    let whole = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let starts = (0..whole.num_rows()).step_by(rows);
    starts
        .map(|start| whole.slice(start, rows.min(whole.num_rows() - start)))
        .collect()
}

fn with_text(field: &str, block_bytes: usize) -> ReadOptions {
    ReadOptions {
        fields: WantedFields {
            text: vec![field.to_owned()],
            ..WantedFields::default()
        },
        block_bytes,
        ..ReadOptions::default()
    }
}

const CODECS: [Option<CompressionType>; 3] = [
    None,
    Some(CompressionType::LZ4_FRAME),
    Some(CompressionType::ZSTD),
];

#[test]
fn strings_of_every_type_in_files_and_streams() {
    let directory = tempdir().unwrap();
    let texts: Vec<Option<String>> = (0..50)
        .map(|row| (row % 10 != 3).then(|| format!("text {row} 中文").repeat(row % 4)))
        .collect();
    let borrowed: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
    let dictionary: DictionaryArray<Int32Type> = borrowed.iter().copied().collect();
    let text_fields = ArrowFields::from(vec![Field::new("text", DataType::Utf8, true)]);
    let inner: ArrayRef = Arc::new(StringArray::from(borrowed.clone()));
    let outer_valid: Vec<bool> = (0..50).map(|row| row != 1).collect();
    let nested = StructArray::new(text_fields, vec![inner], Some(outer_valid.into()));
    let bytes = borrowed.iter().map(|it| it.map(str::as_bytes));
    let arrays: [(&str, ArrayRef); 6] = [
        ("text", Arc::new(StringArray::from(borrowed.clone()))),
        ("text", Arc::new(LargeStringArray::from(borrowed.clone()))),
        ("text", Arc::new(StringViewArray::from(borrowed.clone()))),
        ("text", Arc::new(bytes.collect::<BinaryArray>())),
        ("text", Arc::new(dictionary)),
        ("nested", Arc::new(nested)),
    ];
    for (at, (name, array)) in arrays.into_iter().enumerate() {
        // Columns before and after, whose buffers are not read.
        let before: ArrayRef = Arc::new(StringViewArray::from_iter_values(
            (0..50).map(|row| format!("a long view {row}").repeat(9)),
        ));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50));
        let columns = vec![("before", before), (name, array), ("id", ids)];
        for (rows, file) in [(7, "a.arrow"), (50, "b.feather"), (1, "c.arrows")] {
            let path = directory.path().join(file);
            write_arrow(&path, &batches_of(columns.clone(), rows), CODECS[at % 3]);
            let field = if name == "nested" {
                "nested.text"
            } else {
                "text"
            };
            for block_bytes in [1, 100, 1 << 20] {
                let inputs =
                    InputSet::open_paths(from_ref(&path), &with_text(field, block_bytes)).unwrap();
                assert_eq!(inputs.expected_rows().unwrap(), Some(50.0));
                let found = read_on(2, &inputs).unwrap();
                let expected: Vec<&str> = (texts.iter().enumerate())
                    .filter(|(row, _)| name != "nested" || *row != 1)
                    .filter_map(|(_, text)| text.as_deref())
                    .collect();
                assert_eq!(found.texts(), expected, "{name} {file} {block_bytes}");
                assert_eq!(
                    found.rows[4].id.as_deref(),
                    Some(if name == "nested" { "6" } else { "5" })
                );
                assert_eq!(found.bad.len() + found.rows.len(), 50);
                assert!(found.bad.iter().all(|bad| bad.line == bad.number));
            }
        }
    }
}

#[test]
fn scalars_features_and_whole_bad_rows() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("p"), Some("q")]);
    lists.append_value([Some("r")]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from(vec![Some("a"), None]))),
        (
            "number",
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
        ),
        ("day", Arc::new(Date32Array::from(vec![1, -1]))),
        ("list", Arc::new(lists.finish())),
    ];
    write_arrow(&path, &batches_of(columns, 1), None);
    let fields = WantedFields {
        extra: ["number", "day"].map(str::to_owned).to_vec(),
        features: Some("list".to_owned()),
        ..WantedFields::default()
    };
    let options = ReadOptions {
        fields,
        ..ReadOptions::default()
    };
    let found = read(from_ref(&path), &options).unwrap();
    let expected = ["18446744073709552000=18446744073709551615", "86400=86400"];
    assert_eq!(found.rows[0].extra, expected);
    assert_eq!(found.rows[0].features.as_ref().unwrap().len(), 2);
    let inputs = InputSet::open_paths(from_ref(&path), &ReadOptions::default()).unwrap();
    let Read { rows, bad } = read_on(1, &inputs).unwrap();
    assert_eq!((rows.len(), bad[0].line), (1, 2));
    let mut shown = Vec::new();
    let show = &mut |_: &_, json: &str| {
        shown.push(json.to_owned());
        Ok(())
    };
    inputs.visit_whole_rows(&bad, show).unwrap();
    assert_eq!(
        shown,
        [r#"{"text":null,"number":null,"day":"1969-12-31","list":["r"]}"#]
    );
    let error = read(from_ref(&path), &with_text("day", 100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("`day` of"), "{error}");
}

#[test]
fn a_stream_replaces_its_dictionaries() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.arrows");
    let batch = |words: [&str; 3]| {
        let words: DictionaryArray<Int8Type> = words.into_iter().collect();
        let column: ArrayRef = Arc::new(words);
        RecordBatch::try_from_iter([("text", column)]).unwrap()
    };
    let batches = [
        batch(["a", "b", "a"]),
        batch(["c", "a", "d"]),
        batch(["c", "a", "d"]),
    ];
    write_arrow(&path, &batches, None);
    for threads in [1, 3] {
        let inputs = InputSet::open_paths(from_ref(&path), &with_text("text", 1)).unwrap();
        let found = read_on(threads, &inputs).unwrap();
        assert_eq!(found.texts(), ["a", "b", "a", "c", "a", "d", "c", "a", "d"]);
    }
}

#[test]
fn content_decides_between_file_and_stream() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let batches = batches_of(vec![("text", texts)], 2);
    write_arrow(&path("stream.arrows"), &batches, None);
    write_arrow(&path("file.arrow"), &batches, None);
    fs::rename(path("stream.arrows"), path("named.arrow")).unwrap();
    fs::rename(path("file.arrow"), path("named.arrows")).unwrap();
    let read_named = |name: &str, format: Option<InputFormat>| {
        let options = ReadOptions {
            format,
            ..ReadOptions::default()
        };
        read(&[path(name)], &options)
    };
    assert_eq!(
        read_named("named.arrow", None).unwrap().texts(),
        ["a", "b", "c"]
    );
    assert_eq!(
        read_named("named.arrows", None).unwrap().texts(),
        ["a", "b", "c"]
    );
    let compressed = zstd::encode_all(&*fs::read(path("named.arrow")).unwrap(), 1).unwrap();
    fs::write(path("packed.zst"), compressed).unwrap();
    let found = read_named("packed.zst", Some(InputFormat::Arrow)).unwrap();
    assert_eq!(found.texts(), ["a", "b", "c"]);
    let without_rows = RecordBatch::new_empty(batches[0].schema());
    for name in ["empty.arrow", "empty.arrows"] {
        write_arrow(&path(name), from_ref(&without_rows), None);
        assert_eq!(read_named(name, None).unwrap().rows.len(), 0);
    }
}

fn refusal(path: &PathBuf) -> String {
    let error = read(from_ref(path), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(error.to_string().contains(&name), "{error}");
    error.to_string()
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let directory = tempdir().unwrap();
    let texts: Vec<String> = (0..50)
        .map(|row| format!("text {row} ").repeat(row % 12))
        .collect();
    let texts: ArrayRef = Arc::new(StringArray::from(texts));
    let labels: DictionaryArray<Int32Type> = (0..50).map(|_| "same").collect();
    let columns: Vec<(&str, ArrayRef)> = vec![("text", texts), ("label", Arc::new(labels))];
    let batches = batches_of(columns, 7);
    for (at, name) in ["a.arrow", "b.arrow", "c.arrows", "d.arrows"]
        .into_iter()
        .enumerate()
    {
        let path = directory.path().join(name);
        let codec = CODECS[[0, 1, 0, 2][at]];
        write_arrow(&path, &batches, codec);
        let whole = fs::read(&path).unwrap();
        let is_stream = name.ends_with("s");
        for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
            fs::write(&path, &whole[..cut]).unwrap();
            match read(from_ref(&path), &ReadOptions::default()) {
                // A stream may end without the mark of its end, between two batches.
                Ok(found) => {
                    assert!(is_stream && found.rows.len() % 7 == 0 || cut + 8 >= whole.len())
                }
                Err(_) => drop(refusal(&path)),
            }
        }
        for at in (0..whole.len()).step_by(29) {
            let mut damaged = whole.clone();
            damaged[at] ^= [0x5A, 0xFF][at % 2];
            fs::write(&path, &damaged).unwrap();
            // There are no checksums, so damage may go unnoticed, but it must not panic.
            let _ = read(from_ref(&path), &ReadOptions::default());
        }
        fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
        let said = refusal(&path);
        assert!(
            said.contains(if is_stream { "bytes follow" } else { "footer" }),
            "{said}"
        );
        fs::write(&path, &whole).unwrap();
        assert_eq!(
            read(&[path], &ReadOptions::default()).unwrap().rows.len(),
            50
        );
    }
    for (bytes, said) in [
        (&b""[..], "even a file without rows"),
        (b"FEA1 and more", "version 1"),
        (b"{\"text\":\"a\"}\n", "neither"),
        (b"ARROW1\0\0", "cut off"),
        (b"\xFF\xFF\xFF\xFF", "neither"),
    ] {
        let path = directory.path().join("foreign.arrow");
        fs::write(&path, bytes).unwrap();
        let message = refusal(&path);
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn errors_name_batch_rows_and_column() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..9).map(|row| format!("distinct text {row}")),
    ));
    write_arrow(
        &path,
        &batches_of(vec![("id", ids), ("text", texts)], 3),
        None,
    );
    let mut bytes = fs::read(&path).unwrap();
    let found = bytes
        .windows(15)
        .position(|window| window == b"distinct text 4")
        .unwrap();
    bytes[found] = 0xFF;
    fs::write(&path, bytes).unwrap();
    let said = refusal(&path);
    let place = "record batch 2 (rows 4 to 6): column `text`";
    assert!(said.contains(place), "{said}");
}

/// Portions of a compressed record batch have as many rows as those of a plain one, because decoded bytes count.
#[test]
fn compression_makes_portions_no_larger() {
    let place = tempdir().unwrap();
    let of = |at: usize| Some(format!("row {at} ").repeat(20));
    let texts: ArrayRef = Arc::new((0..3000).map(of).collect::<StringArray>());
    let batches = batches_of(vec![("text", texts)], 3000);
    for name in ["in.arrow", "in.arrows"] {
        let path = place.path().join(name);
        let portions = |codec| {
            write_arrow(&path, &batches, codec);
            let options = with_text("text", 1 << 10);
            let inputs = InputSet::open_paths(from_ref(&path), &options).unwrap();
            std::iter::from_fn(|| inputs.next_block().unwrap()).count()
        };
        let plain = portions(None);
        assert!(plain > 20, "{plain}");
        for codec in &CODECS[1..] {
            assert!(plain.abs_diff(portions(*codec)) <= 1);
        }
    }
}

/// What a large record batch takes in memory is known before it is read, also if it is compressed.
#[test]
fn large_record_batches_are_counted_before_they_are_read() {
    let place = tempdir().unwrap();
    let texts = |count: usize| -> ArrayRef {
        let of = |at: usize| format!("row {at} ").repeat(20);
        Arc::new((0..count).map(of).map(Some).collect::<StringArray>())
    };
    let bytes_of = |name: &str, count: usize, rows: usize, codec| {
        let path = place.path().join(name);
        write_arrow(
            &path,
            &batches_of(vec![("text", texts(count))], rows),
            codec,
        );
        let inputs = InputSet::open_paths(from_ref(&path), &with_text("text", 1 << 10)).unwrap();
        (
            inputs.decoding_bytes().unwrap(),
            fs::metadata(&path).unwrap().len(),
        )
    };
    for name in ["in.arrow", "in.arrows"] {
        let (plain, on_disk) = bytes_of(name, 3000, 3000, None);
        assert!(
            (2 * on_disk - 8192..=2 * on_disk).contains(&plain),
            "{plain} {on_disk}"
        );
        for codec in &CODECS[1..] {
            let (compressed, on_disk) = bytes_of(name, 3000, 3000, *codec);
            assert!(on_disk < plain / 6);
            assert!(
                (plain..plain + 2 * on_disk + 8192).contains(&compressed),
                "{compressed}"
            );
        }
        // Two thirds of the rows are in the first batch.
        let (parted, _) = bytes_of(name, 3000, 2000, None);
        assert!((plain * 6 / 10..plain * 7 / 10).contains(&parted));
        assert_eq!(
            bytes_of(name, 3000, 10, None).0,
            0,
            "batches are smaller than the blocks"
        );
    }
}
