//! Estimates the number of rows from a sample of the bytes.

use memchr::memchr_iter;

use super::column_portions::count_rows;
use super::file::{InputFile, InputStorage};
use super::{InputFormat, InputSet};
use crate::error::Result;

/// Number of samples over all files.
const SAMPLES_OF_ALL_FILES: u64 = 64;

/// Bytes per sample.
const LOOK_BYTES: u64 = 16 << 10;

impl InputSet {
    /// Returns the expected number of rows in all inputs, or `None` if an input cannot be sampled
    /// before it is read (standard input, lines of objects, compressed files, JSON lists).
    ///
    /// The number is exact for Parquet and Arrow, for tables and for files that are one document each. For other
    /// files it follows from the line ends in samples that are evenly spread over all bytes. Cost:
    /// reading 1 MiB, and the footer of each Parquet or Arrow file.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn expected_rows(&self) -> Result<Option<f64>> {
        if let Some(table) = self.open_table() {
            return Ok(Some(table.row_count() as f64));
        }
        let mut rows = 0.0;
        let mut lines = Vec::new();
        for file in self.input_files() {
            match (file.input_format(), file.storage()) {
                (InputFormat::TextFile, _) => rows += 1.0,
                (format, _) if format.is_columnar() => rows += count_rows(file)? as f64,
                (_, InputStorage::InPlace) if file.is_local_file() => lines.push(file),
                // Samples of an object would transfer all parts in which they lie before the first row is read. Copies
                // of streams and records are made while they are read.
                _ => return Ok(None),
            }
        }
        if !lines.is_empty() {
            rows += expected_lines(&lines)?;
        }
        Ok(Some(rows))
    }
}

fn expected_lines(files: &[&InputFile]) -> Result<f64> {
    let sizes = || files.iter().map(|file| file.size_on_disk().unwrap_or(0));
    let all: u64 = sizes().sum();
    let (mut seen, mut ends) = (0, 0);
    let mut bytes = Vec::new();
    let mut start = 0;
    let mut wanted = (0..SAMPLES_OF_ALL_FILES)
        .map(|look| (2 * look + 1) * (all / (2 * SAMPLES_OF_ALL_FILES)))
        .peekable();
    for (file, size) in files.iter().zip(sizes()) {
        let end = start + size;
        // Overlapping samples are joined, so a small file is read once and completely.
        let mut from = start;
        while let Some(place) = wanted.next_if(|&place| place < end) {
            let first = place.saturating_sub(LOOK_BYTES / 2).max(from);
            let last = (first + LOOK_BYTES).min(end);
            bytes.resize((last - first) as usize, 0);
            file.read_data_at(&mut bytes, first - start, None)?;
            seen += bytes.len();
            ends += memchr_iter(b'\n', &bytes).count();
            from = last;
        }
        start = end;
    }
    // At least one end is assumed, because even a row longer than all samples ends somewhere.
    Ok(ends.max(1) as f64 * (all as f64 / seen.max(1) as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::source::{ReadOptions, RowSource};

    fn expected(contents: &[&str]) -> f64 {
        let directory = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (at, content) in contents.iter().enumerate() {
            let path = directory.path().join(format!("{at}.jsonl"));
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            paths.push(path);
        }
        let inputs =
            InputSet::open_source(&RowSource::Paths(paths), &ReadOptions::default()).unwrap();
        inputs.expected_rows().unwrap().unwrap()
    }

    #[test]
    fn row_count_exact_if_small_else_estimated() {
        assert_eq!(expected(&["{}\n{}\n{}\n", "{}\n"]), 4.0);
        let short = "{\"text\":\"a b\"}\n";
        let long = format!("{{\"text\":\"{}\"}}\n", "word ".repeat(2000));
        // Most rows lie in the first fifth of the bytes; a sample from the start alone would predict
        // 350,000.
        let mixed = short.repeat(70_000) + &long.repeat(400);
        let rows = expected(&[&mixed, "", short]);
        assert!((60_000.0..80_000.0).contains(&rows), "{rows}");
    }

    #[test]
    fn row_longer_than_the_sample_counts_once() {
        let long = format!("{{\"text\":\"{}\"}}", "word ".repeat(1 << 20));
        let rows = expected(&[&long]);
        assert!((1.0..10.0).contains(&rows), "{rows}");
    }
}
