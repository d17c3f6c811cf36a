//! The texts of a segment, one per row, compressed in frames.
//!
//! ```text
//! frames                 Zstandard; each holds the texts of some rows, each with its length before it
//! first row, start, size  for each frame: 3 × 8 bytes; size is that of the decompressed frame
//! number of frames       8 bytes
//! number of rows         8 bytes
//! ```
//!
//! Lengths are encoded as in [ids](super::ids).

use std::path::Path;

use lookalike_io::error::{Error, Result};

use crate::index::ids::{put_length, read_length_at};
use crate::index::paged::{
    FileMagic, MIN_RECENT_PAGES, PagedFile, PagedWriter, damaged_file, to_array,
};

const TEXTS_MAGIC: FileMagic = *b"LAtx";

/// Target size of a frame in bytes of text. It is small, because reading one row decompresses its
/// frame.
const FRAME_BYTES: usize = 16 << 10;

/// Compression level of Zstandard.
const ZSTD_LEVEL: i32 = 3;

/// Bytes of a frame's entry in the table.
const FRAME_ENTRY_BYTES: u64 = 24;

/// Texts in the format of the file; several threads produce such batches.
#[derive(Default)]
pub(super) struct TextLot {
    open: Vec<u8>,
    open_rows: u64,
    bytes: Vec<u8>,
    /// Rows, compressed bytes and decompressed bytes of each frame.
    frames: Vec<[u64; 3]>,
}

/// Writes the texts of a segment.
pub(super) struct TextsWriter {
    file: PagedWriter,
    table: Vec<u8>,
    rows: u64,
}

/// The texts of a segment.
pub(super) struct StoredTexts {
    file: PagedFile,
    /// First row, start and decompressed bytes of each frame, and an entry for the end.
    frames: Vec<[u64; 3]>,
    rows: u64,
}

/// A decompressed frame, reused for subsequent rows.
#[derive(Default)]
pub(super) struct UnpackedFrame {
    frame: Option<usize>,
    bytes: Vec<u8>,
    /// Range of each text in the frame.
    places: Vec<(usize, usize)>,
}

impl TextLot {
    pub(super) fn push_text(&mut self, text: &str) -> Result<()> {
        put_length(text.len(), &mut self.open);
        self.open.extend_from_slice(text.as_bytes());
        self.open_rows += 1;
        if self.open.len() >= FRAME_BYTES {
            self.close_frame()
        } else {
            Ok(())
        }
    }

    /// Ends the last frame. Must be called before the batch is put into a file.
    pub(super) fn close_frame(&mut self) -> Result<()> {
        if self.open_rows > 0 {
            let packed = zstd::bulk::compress(&self.open, ZSTD_LEVEL)
                .map_err(|cause| Error::output_error(format!("cannot compress texts: {cause}")))?;
            let sizes = [packed.len() as u64, self.open.len() as u64];
            self.frames.push([self.open_rows, sizes[0], sizes[1]]);
            self.bytes.extend_from_slice(&packed);
            self.open.clear();
            self.open_rows = 0;
        }
        Ok(())
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear_texts(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

impl TextsWriter {
    pub(super) fn create_file(path: &Path) -> Result<Self> {
        Ok(Self {
            file: PagedWriter::create_file(path, TEXTS_MAGIC)?,
            table: Vec::new(),
            rows: 0,
        })
    }

    /// Appends a closed batch.
    pub(super) fn put_lot(&mut self, lot: &TextLot) -> Result<()> {
        let mut start = self.file.byte_length();
        for &[rows, packed, bytes] in &lot.frames {
            for number in [self.rows, start, bytes] {
                self.table.extend(number.to_le_bytes());
            }
            self.rows += rows;
            start += packed;
        }
        self.file.put_bytes(&lot.bytes)
    }

    /// Appends all texts of another file without recompressing them.
    pub(super) fn copy_texts(&mut self, texts: &StoredTexts) -> Result<()> {
        let base = self.file.byte_length();
        for frame in texts.frames.windows(2) {
            for number in [self.rows + frame[0][0], base + frame[0][1], frame[0][2]] {
                self.table.extend(number.to_le_bytes());
            }
        }
        self.rows += texts.rows;
        let end = texts.frames.last().map_or(0, |end| end[1]);
        texts.file.scan_pages(end, |page| self.file.put_bytes(page))
    }

    /// Completes the file and returns its seal.
    pub(super) fn finish_file(mut self) -> Result<u64> {
        let frames = self.table.len() as u64 / FRAME_ENTRY_BYTES;
        self.file.put_bytes(&self.table)?;
        self.file.put_bytes(&frames.to_le_bytes())?;
        self.file.put_bytes(&self.rows.to_le_bytes())?;
        self.file.finish_file()
    }
}

impl StoredTexts {
    pub(super) fn open_file(path: &Path) -> Result<Self> {
        let file = PagedFile::open_file(path, TEXTS_MAGIC)?;
        let short = || damaged_file(path, "it is too short for its number of rows");
        let at = file.byte_length().checked_sub(16).ok_or_else(short)?;
        let ends = file.read_range(at, at + 16)?;
        let count = u64::from_le_bytes(to_array(&ends[..8]));
        let rows = u64::from_le_bytes(to_array(&ends[8..]));
        let table = count
            .checked_mul(FRAME_ENTRY_BYTES)
            .and_then(|bytes| at.checked_sub(bytes));
        let table = table.ok_or_else(short)?;
        let entries = file.read_range(table, at)?;
        let mut frames: Vec<[u64; 3]> = entries
            .chunks_exact(FRAME_ENTRY_BYTES as usize)
            .map(|entry| [0, 8, 16].map(|at| u64::from_le_bytes(to_array(&entry[at..at + 8]))))
            .collect();
        frames.push([rows, table, 0]);
        let ascending = frames[0][0] == 0
            && frames[0][1] == 0
            && frames
                .windows(2)
                .all(|pair| pair[0][0] < pair[1][0] && pair[0][1] <= pair[1][1]);
        drop((ends, entries));
        if ascending {
            Ok(Self { file, frames, rows })
        } else {
            Err(damaged_file(path, "its table of frames is out of order"))
        }
    }

    /// Keeps only the pages that were read last from now on.
    pub(super) fn keep_recent_pages(&mut self) {
        self.file.keep_recent_pages(MIN_RECENT_PAGES);
    }

    /// Returns the file.
    pub(super) fn file_mut(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.rows
    }

    pub(super) fn seal(&self) -> u64 {
        self.file.seal()
    }

    /// Returns the text of a row. Decompresses its frame into `unpacked` unless it is there already.
    pub(super) fn text_of_row<'a>(
        &self,
        row: u64,
        unpacked: &'a mut UnpackedFrame,
    ) -> Result<&'a str> {
        let wrong = || {
            damaged_file(
                self.file.file_path(),
                &format!("the text of row {row} is not valid"),
            )
        };
        let frame = self
            .frames
            .partition_point(|frame| frame[0] <= row)
            .checked_sub(1)
            .filter(|_| row < self.rows)
            .ok_or_else(wrong)?;
        if unpacked.frame != Some(frame) {
            unpacked.frame = None;
            self.unpack_frame(frame, unpacked)?;
            unpacked.frame = Some(frame);
        }
        let (start, end) = unpacked.places[(row - self.frames[frame][0]) as usize];
        std::str::from_utf8(&unpacked.bytes[start..end]).map_err(|_| wrong())
    }

    fn unpack_frame(&self, index: usize, unpacked: &mut UnpackedFrame) -> Result<()> {
        let ([first, start, bytes], [next, end, _]) = (self.frames[index], self.frames[index + 1]);
        let wrong = |what: &str| {
            damaged_file(
                self.file.file_path(),
                &format!("the texts of rows {first} to {next} {what}"),
            )
        };
        let packed = self.file.read_range(start, end)?;
        // The size that the frame itself declares must be the one in the table, which limits the memory
        // to allocate.
        let most = usize::try_from(bytes).map_err(|_| wrong("are too long"))?;
        let content_size = zstd::zstd_safe::get_frame_content_size(&packed);
        if content_size.ok().flatten() != Some(bytes) {
            return Err(wrong("are not as long as the table of frames says"));
        }
        unpacked.bytes = zstd::bulk::decompress(&packed, most)
            .map_err(|cause| wrong(&format!("cannot be decompressed ({cause})")))?;
        unpacked.places.clear();
        let mut at = 0;
        for _ in first..next {
            let (start, length) =
                read_length_at(&unpacked.bytes, at).ok_or_else(|| wrong("are truncated"))?;
            at = start + length;
            if at > unpacked.bytes.len() {
                return Err(wrong("are truncated"));
            }
            unpacked.places.push((start, at));
        }
        Ok(())
    }

    pub(super) fn verify_file(&self) -> Result<()> {
        self.file.verify_pages()?;
        let mut unpacked = UnpackedFrame::default();
        (0..self.frames.len() - 1).try_for_each(|frame| self.unpack_frame(frame, &mut unpacked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_in_any_order_and_from_copies() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        let text = |row: usize| format!("{row} 文 {}", "word ".repeat(row * 37 % 900));
        for count in [0, 1, 400] {
            let mut writer = TextsWriter::create_file(&one).unwrap();
            let mut lot = TextLot::default();
            for row in 0..count {
                lot.push_text(&text(row)).unwrap();
                if row % 150 == 0 {
                    lot.close_frame().unwrap();
                    writer.put_lot(&lot).unwrap();
                    lot.clear_texts();
                }
            }
            lot.close_frame().unwrap();
            writer.put_lot(&lot).unwrap();
            writer.finish_file().unwrap();
            let texts = StoredTexts::open_file(&one).unwrap();
            let mut writer = TextsWriter::create_file(&two).unwrap();
            writer.copy_texts(&texts).unwrap();
            writer.copy_texts(&texts).unwrap();
            writer.finish_file().unwrap();
            let twice = StoredTexts::open_file(&two).unwrap();
            assert_eq!((texts.len(), twice.len()), (count as u64, 2 * count as u64));
            texts.verify_file().unwrap();
            twice.verify_file().unwrap();
            let (mut unpacked, mut other) = (UnpackedFrame::default(), UnpackedFrame::default());
            for row in (0..count).map(|row| row * 269 % count) {
                assert_eq!(
                    texts.text_of_row(row as u64, &mut unpacked).unwrap(),
                    text(row)
                );
                for at in [row, row + count] {
                    assert_eq!(twice.text_of_row(at as u64, &mut other).unwrap(), text(row));
                }
            }
            assert!(texts.text_of_row(count as u64, &mut unpacked).is_err());
        }
    }
}
