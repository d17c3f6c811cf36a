//! Helpers that read inputs through the crate, and compress and decompress without it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lookalike_io::error::Result;
use lookalike_io::source::{
    BadRow, FieldValue, InputRow, InputSet, ParseScratch, ReadOptions, RowPlace,
};

/// An owned row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned {
    pub(crate) id: Option<String>,
    pub(crate) text: String,
    pub(crate) features: Option<Vec<(String, f64)>>,
    pub(crate) extra: Vec<String>,
    pub(crate) number: u64,
    pub(crate) place: RowPlace,
}

impl Owned {
    fn new(row: &InputRow<'_>) -> Self {
        Self {
            id: row.id.map(str::to_owned),
            text: row.text.to_owned(),
            features: row.features.map(|features| {
                features
                    .iter_weighted()
                    .map(|(text, weight)| (text.into(), weight))
                    .collect()
            }),
            extra: row.extra.iter().map(shown).collect(),
            number: row.number,
            place: row.place,
        }
    }
}

fn shown(scalar: &FieldValue<'_>) -> String {
    match scalar {
        FieldValue::Missing => "missing".to_owned(),
        FieldValue::Null => "null".to_owned(),
        FieldValue::Number { value, literal } => format!("{value}={literal}"),
        FieldValue::Text(text) => format!("'{text}'"),
        FieldValue::Bool(value) => value.to_string(),
    }
}

/// The rows read, in input order.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) rows: Vec<Owned>,
    pub(crate) bad: Vec<BadRow>,
}

impl Read {
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.text.as_str()).collect()
    }
}

/// Reads all inputs on several threads and verifies that every row can be read again with the same
/// result.
pub(crate) fn read_on(threads: usize, inputs: &InputSet) -> Result<Read> {
    let parts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut scratch = ParseScratch::default();
            while let Some(block) = inputs.next_block()? {
                let mut part = Read::default();
                inputs.parse_block(&block, &mut scratch, &mut |row| {
                    match row {
                        Ok(row) => part.rows.push(Owned::new(&row)),
                        Err(bad) => part.bad.push(bad),
                    }
                    Ok(())
                })?;
                parts.lock().unwrap().push((block.ordinal(), part));
                inputs.recycle_block(block);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap())
    })?;
    let mut parts = parts.into_inner().unwrap();
    parts.sort_by_key(|(ordinal, _)| *ordinal);
    assert!(
        parts
            .iter()
            .enumerate()
            .all(|(at, (ordinal, _))| at as u64 == *ordinal)
    );
    let mut all = Read::default();
    for (_, part) in parts {
        all.rows.extend(part.rows);
        all.bad.extend(part.bad);
    }
    let mut scratch = ParseScratch::default();
    for row in &all.rows {
        let again = inputs.reread_row(row.place, &mut scratch, Owned::new)?;
        let (id, text, features) = (&again.id, &again.text, &again.features);
        assert_eq!((id, text, features), (&row.id, &row.text, &row.features));
    }
    Ok(all)
}

/// Opens and reads inputs on one thread.
pub(crate) fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<Read> {
    read_on(1, &InputSet::open_paths(paths, options)?)
}

/// Writes `bytes` to a file, compressed according to its extension; gzip and zstd files have two
/// members.
pub(crate) fn store(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let stored = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => [gzip(first), gzip(second)].concat(),
        Some("zst") => [zstd(first), zstd(second)].concat(),
        _ => bytes.to_vec(),
    };
    std::fs::write(&path, stored).unwrap();
    path
}

/// Returns the content of a file, decompressed according to its extension.
pub(crate) fn load(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => {
            let mut plain = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]);
            std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
            plain
        }
        Some("zst") => zstd::decode_all(&bytes[..]).unwrap(),
        _ => bytes,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Returns the names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
