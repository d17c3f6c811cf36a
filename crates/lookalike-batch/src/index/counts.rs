//! Counts: how many documents the rows of a segment stand for, and where these came from.
//!
//! A row that a run has kept stands for its document and for all that this run and later ones removed because of it.
//! Rows that stand for one document and have no sources are left out. The data of the file are
//!
//! | part | bytes |
//! |---|---|
//! | entries, ascending by row | for each: row (4), copies (8), number of sources (4), and for each source its name (4) and its documents (8), ascending by name |
//! | names of sources | for each: length (4) and UTF-8 |
//! | start of the names, number of names | 8 each |
//!
//! Counts change with every run, so they are in a file of their own, which is written anew and replaced with the
//! manifest.
//!
//! Cost: reading and writing take the memory of the names and of some pages. A run writes the counts of those segments
//! anew of which it has found copies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lookalike_io::error::Result;

use crate::index::manifest::{CountsEntry, IndexManifest, SegmentEntry, file_name};
use crate::index::paged::{
    FileMagic, MIN_RECENT_PAGES, PagedFile, PagedWriter, damaged_file, to_array,
};
use crate::index::row_set::RowSet;
use crate::sealed_manifest::FileChecksum;

const COUNTS_MAGIC: FileMagic = *b"LAcc";

/// Extension of the file.
pub(super) const COUNTS_FILE: &str = "counts";

/// Bytes of the fixed parts: of an entry, of a source, and of the end of the data.
const ENTRY_BYTES: u64 = 16;
const SOURCE_BYTES: u64 = 12;
const END_BYTES: u64 = 16;

/// The documents for which a row stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DocumentCounts {
    /// Their number.
    pub(crate) copies: u64,
    /// Their sources with the number of documents of each.
    pub(crate) sources: Vec<(String, u64)>,
}

/// Documents that were removed because of rows, ascending by row.
pub(crate) type RowUpdates = [(u32, DocumentCounts)];

/// Counts of a row, with sources by the numbers of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NumberedCounts {
    row: u32,
    copies: u64,
    sources: Vec<(u32, u64)>,
}

/// Writes counts, row by row.
pub(super) struct CountsWriter {
    file: PagedWriter,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl CountsWriter {
    pub(super) fn create_file(path: &Path) -> Result<Self> {
        Ok(Self {
            file: PagedWriter::create_file(path, COUNTS_MAGIC)?,
            names: Vec::new(),
            numbers: HashMap::new(),
        })
    }

    fn number_of(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Adds the counts of a row. Rows are added in ascending order.
    pub(super) fn push_row(&mut self, row: u32, counts: &DocumentCounts) -> Result<()> {
        let sources = counts.sources.iter();
        let sources = sources.map(|(name, documents)| (self.number_of(name), *documents));
        let numbered = NumberedCounts {
            row,
            copies: counts.copies,
            sources: sources.collect(),
        };
        self.push_numbered(numbered)
    }

    fn push_numbered(&mut self, mut counts: NumberedCounts) -> Result<()> {
        if counts.copies == 1 && counts.sources.is_empty() {
            return Ok(());
        }
        counts.sources.sort_unstable();
        self.file.put_bytes(&counts.row.to_le_bytes())?;
        self.file.put_bytes(&counts.copies.to_le_bytes())?;
        let sources = counts.sources.len() as u32;
        self.file.put_bytes(&sources.to_le_bytes())?;
        for (name, documents) in counts.sources {
            self.file.put_bytes(&name.to_le_bytes())?;
            self.file.put_bytes(&documents.to_le_bytes())?;
        }
        Ok(())
    }

    /// Completes the file. Returns its seal.
    pub(super) fn finish_file(mut self) -> Result<FileChecksum> {
        let start = self.file.byte_length();
        for name in &self.names {
            self.file.put_bytes(&(name.len() as u32).to_le_bytes())?;
            self.file.put_bytes(name.as_bytes())?;
        }
        self.file.put_bytes(&start.to_le_bytes())?;
        let names = self.names.len() as u64;
        self.file.put_bytes(&names.to_le_bytes())?;
        self.file.finish_file().map(FileChecksum)
    }
}

/// The counts of a segment, which are read in order.
pub(super) struct CountsReader {
    /// `None` if the segment has no file of counts, or has no more entries.
    file: Option<PagedFile>,
    path: PathBuf,
    names: Vec<String>,
    /// Where the next entry starts, and where the last one ends.
    at: u64,
    end: u64,
    next: Option<NumberedCounts>,
}

impl CountsReader {
    /// Opens the counts of a segment. A segment without counts has no entries.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or is not the one that the manifest names.
    pub(super) fn open_counts(index_path: &Path, entry: &SegmentEntry) -> Result<Self> {
        let mut reader = Self {
            file: None,
            path: index_path.to_path_buf(),
            names: Vec::new(),
            at: 0,
            end: 0,
            next: None,
        };
        if let Some(counts) = &entry.counts {
            reader.path = index_path.join(file_name(counts.file, COUNTS_FILE));
            let mut file = PagedFile::open_file(&reader.path, COUNTS_MAGIC)?;
            if FileChecksum(file.seal()) != counts.seal {
                return Err(reader.damaged("it is not the file that the manifest names"));
            }
            file.keep_recent_pages(MIN_RECENT_PAGES);
            reader.read_names(&file)?;
            reader.file = Some(file);
            reader.advance(entry.rows)?;
        }
        Ok(reader)
    }

    fn damaged(&self, what: &str) -> lookalike_io::error::Error {
        damaged_file(&self.path, what)
    }

    fn read_names(&mut self, file: &PagedFile) -> Result<()> {
        let length = file.byte_length();
        let end = length.checked_sub(END_BYTES);
        let end = end.ok_or_else(|| self.damaged("it has no end"))?;
        let numbers = file.read_range(end, length)?;
        let (start, count) = (read_u64(&numbers, 0), read_u64(&numbers, 8));
        if start > end {
            return Err(self.damaged("its names begin behind its end"));
        }
        let mut at = start;
        for _ in 0..count {
            let bytes = file.read_range(at, at.saturating_add(4))?;
            let length = u64::from(u32::from_le_bytes(to_array(&bytes)));
            let name = file.read_range(at + 4, (at + 4).saturating_add(length))?;
            let name = std::str::from_utf8(&name);
            let name = name.map_err(|_| self.damaged("a name of a source is not UTF-8"))?;
            self.names.push(name.to_owned());
            at += 4 + length;
        }
        if at != end {
            return Err(self.damaged("its names do not fill their place"));
        }
        self.end = start;
        Ok(())
    }

    /// Reads the entry of the next row, of `rows` rows.
    fn advance(&mut self, rows: u64) -> Result<()> {
        let before = self.next.take().map(|counts| counts.row);
        let Some(file) = self.file.as_ref().filter(|_| self.at < self.end) else {
            return Ok(());
        };
        let bytes = file.read_range(self.at, self.at + ENTRY_BYTES)?;
        let row = u32::from_le_bytes(to_array(&bytes[..4]));
        let copies = read_u64(&bytes, 4);
        let count = u64::from(u32::from_le_bytes(to_array(&bytes[12..16])));
        let start = self.at + ENTRY_BYTES;
        let bytes = file.read_range(start, start + count * SOURCE_BYTES)?;
        let sources = bytes.chunks_exact(SOURCE_BYTES as usize);
        let sources = sources.map(|source| {
            let name = u32::from_le_bytes(to_array(&source[..4]));
            (name, read_u64(source, 4))
        });
        let sources: Vec<(u32, u64)> = sources.collect();
        let is_known = |&(name, _): &(u32, u64)| (name as usize) < self.names.len();
        let is_after = before.is_none_or(|before| before < row) && u64::from(row) < rows;
        if !is_after || !sources.iter().all(is_known) {
            return Err(self.damaged("its entries are out of order"));
        }
        self.at = start + count * SOURCE_BYTES;
        self.next = Some(NumberedCounts {
            row,
            copies,
            sources,
        });
        Ok(())
    }

    /// Returns the counts of a row. Rows are asked for in ascending order, and each once.
    pub(super) fn counts_of(&mut self, row: u32, rows: u64) -> Result<DocumentCounts> {
        while self.next.as_ref().is_some_and(|next| next.row < row) {
            self.advance(rows)?;
        }
        Ok(match self.next.as_ref().filter(|next| next.row == row) {
            Some(next) => self.name_sources(next),
            None => DocumentCounts {
                copies: 1,
                sources: Vec::new(),
            },
        })
    }

    fn name_sources(&self, counts: &NumberedCounts) -> DocumentCounts {
        let sources = counts.sources.iter();
        let named = sources.map(|&(name, count)| (self.names[name as usize].clone(), count));
        DocumentCounts {
            copies: counts.copies,
            sources: named.collect(),
        }
    }

    /// Calls `visit` with every row that has an entry, in ascending order.
    pub(super) fn visit_entries(
        &mut self,
        rows: u64,
        mut visit: impl FnMut(u32, DocumentCounts) -> Result<()>,
    ) -> Result<()> {
        while let Some(next) = &self.next {
            let (row, counts) = (next.row, self.name_sources(next));
            visit(row, counts)?;
            self.advance(rows)?;
        }
        Ok(())
    }
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(to_array(&bytes[at..at + 8]))
}

/// Adds counts to those of a row.
fn add_counts(counts: &mut DocumentCounts, more: &DocumentCounts) {
    counts.copies += more.copies;
    for (name, documents) in &more.sources {
        match counts.sources.iter_mut().find(|(other, _)| other == name) {
            Some((_, all)) => *all += documents,
            None => counts.sources.push((name.clone(), *documents)),
        }
    }
}

/// Writes the counts of a segment anew, with more documents for some of its rows. The manifest then names the new file.
pub(super) fn update_counts(
    index_path: &Path,
    manifest: &mut IndexManifest,
    segment: usize,
    updates: &RowUpdates,
) -> Result<()> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let entry = &mut manifest.segments[segment];
    let mut writer = CountsWriter::create_file(&index_path.join(file_name(file, COUNTS_FILE)))?;
    let mut updates = updates.iter().peekable();
    let one = || DocumentCounts {
        copies: 1,
        sources: Vec::new(),
    };
    CountsReader::open_counts(index_path, entry)?.visit_entries(entry.rows, |row, counts| {
        while let Some((before, more)) = updates.next_if(|(before, _)| *before < row) {
            let mut counts = one();
            add_counts(&mut counts, more);
            writer.push_row(*before, &counts)?;
        }
        let mut counts = counts;
        if let Some((_, more)) = updates.next_if(|(other, _)| *other == row) {
            add_counts(&mut counts, more);
        }
        writer.push_row(row, &counts)
    })?;
    for (row, more) in updates {
        let mut counts = one();
        add_counts(&mut counts, more);
        writer.push_row(*row, &counts)?;
    }
    let seal = writer.finish_file()?;
    entry.counts = Some(CountsEntry {
        file,
        seal,
        uncounted: entry.count_uncounted(),
    });
    Ok(())
}

/// Writes the counts of the rows of several segments that become one with the number `file`, without removed rows.
/// Returns `None` if none of the segments has counts.
pub(super) fn merge_counts(
    index_path: &Path,
    file: u64,
    sources: &[(&SegmentEntry, &RowSet)],
) -> Result<Option<CountsEntry>> {
    if sources.iter().all(|(entry, _)| entry.counts.is_none()) {
        return Ok(None);
    }
    let mut writer = CountsWriter::create_file(&index_path.join(file_name(file, COUNTS_FILE)))?;
    let mut base = 0u64;
    for &(entry, removed) in sources {
        let removed_before = removed.rank_before();
        CountsReader::open_counts(index_path, entry)?.visit_entries(
            entry.rows,
            |row, counts| {
                if removed.contains_row(row) {
                    return Ok(());
                }
                let live = base + u64::from(row) - u64::from(removed_before(row));
                writer.push_row(live as u32, &counts)
            },
        )?;
        base += entry.rows - removed.count_rows();
    }
    Ok(Some(CountsEntry {
        file,
        seal: writer.finish_file()?,
        uncounted: sources
            .iter()
            .map(|(entry, _)| entry.count_uncounted())
            .sum(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(copies: u64, sources: &[(&str, u64)]) -> DocumentCounts {
        DocumentCounts {
            copies,
            sources: sources
                .iter()
                .map(|&(name, count)| (name.to_owned(), count))
                .collect(),
        }
    }

    #[test]
    fn counts_round_trip() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(file_name(7, COUNTS_FILE));
        let mut writer = CountsWriter::create_file(&path).unwrap();
        let all = [
            (0, counts(1, &[])),
            (1, counts(3, &[("b", 2), ("a", 1)])),
            (2, counts(1, &[("a", 1)])),
            (5, counts(1 << 40, &[])),
        ];
        for (row, counts) in &all {
            writer.push_row(*row, counts).unwrap();
        }
        let entry = CountsEntry {
            file: 7,
            seal: writer.finish_file().unwrap(),
            uncounted: 0,
        };
        let segment = SegmentEntry {
            file: 7,
            rows: 6,
            codes: FileChecksum(0),
            bytes: 0,
            first: None,
            ids: None,
            texts: None,
            unfingerprinted: None,
            matching: None,
            grams: None,
            removed: None,
            counts: Some(entry.clone()),
        };
        let mut reader = CountsReader::open_counts(place.path(), &segment).unwrap();
        for (row, counts) in &all {
            assert_eq!(reader.counts_of(*row, 6).unwrap(), *counts, "{row}");
        }
        let small = SegmentEntry {
            rows: 5,
            ..segment.clone()
        };
        let mut reader = CountsReader::open_counts(place.path(), &small).unwrap();
        assert!(reader.counts_of(5, 5).is_err());
        let other = SegmentEntry {
            counts: Some(CountsEntry {
                seal: FileChecksum(1),
                ..entry
            }),
            ..segment
        };
        assert!(CountsReader::open_counts(place.path(), &other).is_err());
    }

    #[test]
    fn added_counts_keep_their_sources() {
        let mut all = counts(2, &[("a", 1), ("b", 1)]);
        add_counts(&mut all, &counts(3, &[("b", 2), ("c", 1)]));
        assert_eq!(all, counts(5, &[("a", 1), ("b", 3), ("c", 1)]));
    }
}
