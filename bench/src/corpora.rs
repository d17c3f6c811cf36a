//! Real and generated corpora in every format.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

/// An uncompressed corpus file.
pub struct Corpus {
    /// Name for reports.
    pub name: String,
    /// Path of a JSONL or TSV file.
    pub path: PathBuf,
}

/// The three corpora of the main benchmarks.
pub const REAL_CORPORA: [&str; 3] = ["en_docs.jsonl", "zh_docs.jsonl", "zh_short.tsv"];

impl Corpus {
    /// Unpacks a real corpus into a folder.
    pub fn real(data: &Path, name: &str, folder: &Path) -> Result<Self> {
        let packed = data.join(format!("{name}.zst"));
        let source = File::open(&packed)
            .with_context(|| format!("cannot open {}: give --data", packed.display()))?;
        let path = folder.join(name);
        let unpacked = File::create(&path)?;
        zstd::stream::copy_decode(source, &unpacked)?;
        // Sync now, because the system would otherwise write it while a benchmark uses the disk.
        unpacked.sync_all()?;
        let name = name.split('.').next().unwrap_or(name).to_owned();
        Ok(Self { name, path })
    }

    /// Writes a generated corpus as JSONL.
    pub fn from_documents(
        name: &str,
        documents: &[(String, String)],
        folder: &Path,
    ) -> Result<Self> {
        let path = folder.join(format!("{name}.jsonl"));
        let mut file = std::io::BufWriter::new(File::create(&path)?);
        for (id, text) in documents {
            writeln!(file, "{}", serde_json::json!({ "id": id, "text": text }))?;
        }
        file.flush()?;
        Ok(Self {
            name: name.to_owned(),
            path,
        })
    }

    /// Returns the texts.
    pub fn texts(&self) -> Result<Vec<String>> {
        Ok(self.columns()?.1.pop().unwrap_or_default())
    }

    /// Writes the same rows compressed with Zstandard.
    pub fn zstd(&self) -> Result<PathBuf> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let path = self.path.with_file_name(format!("{name}.zst"));
        zstd::stream::copy_encode(File::open(&self.path)?, File::create(&path)?, 3)?;
        Ok(path)
    }

    /// Writes the same rows as Parquet, with all columns as strings.
    pub fn parquet(&self) -> Result<PathBuf> {
        const ROWS_PER_BATCH: usize = 100_000;
        let path = self.path.with_extension("parquet");
        let (names, columns) = self.columns()?;
        let rows = columns.first().map_or(0, Vec::len);
        let batch = |from: usize| -> Result<RecordBatch> {
            let to = (from + ROWS_PER_BATCH).min(rows);
            let arrays = names.iter().zip(&columns).map(|(name, values)| {
                let array: ArrayRef = Arc::new(StringArray::from_iter_values(&values[from..to]));
                (name.as_str(), array)
            });
            Ok(RecordBatch::try_from_iter(arrays)?)
        };
        let first = batch(0)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(20_000))
            .build();
        let mut writer =
            ArrowWriter::try_new(File::create(&path)?, first.schema(), Some(properties))?;
        for from in (0..rows).step_by(ROWS_PER_BATCH) {
            writer.write(&batch(from)?)?;
        }
        writer.close()?;
        Ok(path)
    }

    fn columns(&self) -> Result<(Vec<String>, Vec<Vec<String>>)> {
        let content = std::fs::read_to_string(&self.path)?;
        if self
            .path
            .extension()
            .is_some_and(|extension| extension == "tsv")
        {
            let mut lines = content.lines();
            let names = lines
                .next()
                .unwrap_or_default()
                .split('\t')
                .map(str::to_owned);
            let names: Vec<String> = names.collect();
            let mut columns = vec![Vec::new(); names.len()];
            for line in lines {
                for (column, value) in columns.iter_mut().zip(line.split('\t')) {
                    column.push(value.to_owned());
                }
            }
            return Ok((names, columns));
        }
        let mut columns = vec![Vec::new(); 2];
        for line in content.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            for (column, name) in columns.iter_mut().zip(["id", "text"]) {
                let value = row[name]
                    .as_str()
                    .map_or_else(|| row[name].to_string(), str::to_owned);
                column.push(value);
            }
        }
        Ok((vec!["id".to_owned(), "text".to_owned()], columns))
    }
}
