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

/// Bytes of text from which a frame is closed. They are few, because reading one row decompresses its frame.
const FRAME_BYTES: usize = 16 << 10;

/// Compression level of Zstandard.
const ZSTD_LEVEL: i32 = 3;

/// Bytes of a frame's entry in the table.
const FRAME_ENTRY_BYTES: u64 = 24;

/// Texts compressed in the format of the file; several threads produce such batches.
#[derive(Default)]
pub(super) struct TextBatch {
    /// Texts of the frame that is being filled, with their lengths.
    open: Vec<u8>,
    open_rows: u64,
    /// Compressed frames.
    bytes: Vec<u8>,
    frames: Vec<FrameSizes>,
}

/// Sizes of a frame of a batch.
struct FrameSizes {
    rows: u64,
    compressed_bytes: u64,
    /// Bytes of the texts with their lengths.
    text_bytes: u64,
}

/// An entry of the table of frames. The table in memory ends with the entry of an empty frame, which begins where the
/// last one ends.
#[derive(Clone, Copy)]
struct FrameEntry {
    first_row: u64,
    /// Start of the compressed frame in the file.
    start: u64,
    /// Bytes of the texts with their lengths.
    text_bytes: u64,
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
    frames: Vec<FrameEntry>,
    rows: u64,
}

/// A decompressed frame of one file. Use a separate one for each [`StoredTexts`].
#[derive(Default)]
pub(super) struct UnpackedFrame {
    /// Index of the frame.
    frame: Option<usize>,
    bytes: Vec<u8>,
    /// Range of each text in the frame.
    places: Vec<(usize, usize)>,
}

impl FrameEntry {
    fn from_bytes(entry: &[u8]) -> Self {
        let number = |at: usize| u64::from_le_bytes(to_array(&entry[at..at + 8]));
        Self {
            first_row: number(0),
            start: number(8),
            text_bytes: number(16),
        }
    }

    fn append_bytes(self, into: &mut Vec<u8>) {
        for number in [self.first_row, self.start, self.text_bytes] {
            into.extend(number.to_le_bytes());
        }
    }
}

impl TextBatch {
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
            self.frames.push(FrameSizes {
                rows: self.open_rows,
                compressed_bytes: packed.len() as u64,
                text_bytes: self.open.len() as u64,
            });
            self.bytes.extend_from_slice(&packed);
            self.open.clear();
            self.open_rows = 0;
        }
        Ok(())
    }

    /// Returns the bytes of the compressed frames. The open frame is not counted.
    pub(super) fn compressed_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the compressed frames. The open frame stays.
    pub(super) fn clear_frames(&mut self) {
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
    pub(super) fn append_batch(&mut self, batch: &TextBatch) -> Result<()> {
        let mut start = self.file.byte_length();
        for frame in &batch.frames {
            let entry = FrameEntry {
                first_row: self.rows,
                start,
                text_bytes: frame.text_bytes,
            };
            entry.append_bytes(&mut self.table);
            self.rows += frame.rows;
            start += frame.compressed_bytes;
        }
        self.file.put_bytes(&batch.bytes)
    }

    /// Appends all texts of another file without recompressing them.
    pub(super) fn copy_texts(&mut self, texts: &StoredTexts) -> Result<()> {
        let base = self.file.byte_length();
        let (end, frames) = texts.end_and_frames();
        for frame in frames {
            let entry = FrameEntry {
                first_row: self.rows + frame.first_row,
                start: base + frame.start,
                ..*frame
            };
            entry.append_bytes(&mut self.table);
        }
        self.rows += texts.rows;
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
        let short = || damaged_file(path, "it is too short for its table of frames");
        let at = file.byte_length().checked_sub(16).ok_or_else(short)?;
        let ends = file.read_range(at, at + 16)?;
        let count = u64::from_le_bytes(to_array(&ends[..8]));
        let rows = u64::from_le_bytes(to_array(&ends[8..]));
        let table = count
            .checked_mul(FRAME_ENTRY_BYTES)
            .and_then(|bytes| at.checked_sub(bytes));
        let table = table.ok_or_else(short)?;
        let entries = file.read_range(table, at)?;
        let mut frames: Vec<FrameEntry> = entries
            .chunks_exact(FRAME_ENTRY_BYTES as usize)
            .map(FrameEntry::from_bytes)
            .collect();
        frames.push(FrameEntry {
            first_row: rows,
            start: table,
            text_bytes: 0,
        });
        let ascending = frames[0].first_row == 0
            && frames[0].start == 0
            && frames.windows(2).all(|pair| {
                pair[0].first_row < pair[1].first_row && pair[0].start <= pair[1].start
            });
        drop((ends, entries));
        if ascending {
            Ok(Self { file, frames, rows })
        } else {
            Err(damaged_file(path, "its table of frames is out of order"))
        }
    }

    /// Returns where the last frame ends, and the frames.
    fn end_and_frames(&self) -> (u64, &[FrameEntry]) {
        let (end, frames) = self
            .frames
            .split_last()
            .expect("the table has an entry for its end");
        (end.start, frames)
    }

    /// From now on, keeps only the [`MIN_RECENT_PAGES`] most recently read pages in memory.
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
            .partition_point(|frame| frame.first_row <= row)
            .checked_sub(1)
            .filter(|_| row < self.rows)
            .ok_or_else(wrong)?;
        if unpacked.frame != Some(frame) {
            unpacked.frame = None;
            self.unpack_frame(frame, unpacked)?;
            unpacked.frame = Some(frame);
        }
        let (start, end) = unpacked.places[(row - self.frames[frame].first_row) as usize];
        std::str::from_utf8(&unpacked.bytes[start..end]).map_err(|_| wrong())
    }

    fn unpack_frame(&self, index: usize, unpacked: &mut UnpackedFrame) -> Result<()> {
        let (frame, next) = (self.frames[index], self.frames[index + 1]);
        let (first_row, last_row) = (frame.first_row, next.first_row - 1);
        let wrong = |what: &str| {
            damaged_file(
                self.file.file_path(),
                &format!("the texts of rows {first_row} to {last_row} {what}"),
            )
        };
        let packed = self.file.read_range(frame.start, next.start)?;
        // The size that the frame itself declares must be the one in the table, which limits the memory
        // to allocate.
        let most = usize::try_from(frame.text_bytes).map_err(|_| wrong("are too long"))?;
        let content_size = zstd::zstd_safe::get_frame_content_size(&packed);
        if content_size.ok().flatten() != Some(frame.text_bytes) {
            return Err(wrong("are not as long as the table of frames says"));
        }
        unpacked.bytes = zstd::bulk::decompress(&packed, most)
            .map_err(|cause| wrong(&format!("cannot be decompressed ({cause})")))?;
        unpacked.places.clear();
        let mut at = 0;
        for _ in first_row..=last_row {
            let (start, length) =
                read_length_at(&unpacked.bytes, at).ok_or_else(|| wrong("are truncated"))?;
            at = start + length;
            if at > unpacked.bytes.len() {
                return Err(wrong("are truncated"));
            }
            unpacked.places.push((start, at));
        }
        if at < unpacked.bytes.len() {
            return Err(wrong("end before their frame does"));
        }
        Ok(())
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// If a page, a frame or a text is damaged.
    pub(super) fn verify_file(&self) -> Result<()> {
        self.file.verify_pages()?;
        let mut unpacked = UnpackedFrame::default();
        (0..self.rows).try_for_each(|row| self.text_of_row(row, &mut unpacked).map(drop))
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
            let mut batch = TextBatch::default();
            for row in 0..count {
                batch.push_text(&text(row)).unwrap();
                if row % 150 == 0 {
                    batch.close_frame().unwrap();
                    writer.append_batch(&batch).unwrap();
                    batch.clear_frames();
                }
            }
            batch.close_frame().unwrap();
            writer.append_batch(&batch).unwrap();
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
    /// A writer that is wrong seals its mistakes, so the seals of pages do not find them.
    #[test]
    fn frames_with_wrong_texts_are_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("texts");
        let verify = |open: &[u8], rows: u64| {
            let mut batch = TextBatch {
                open: open.to_vec(),
                open_rows: rows,
                ..TextBatch::default()
            };
            batch.close_frame().unwrap();
            let mut writer = TextsWriter::create_file(&path).unwrap();
            writer.append_batch(&batch).unwrap();
            writer.finish_file().unwrap();
            StoredTexts::open_file(&path).unwrap().verify_file()
        };
        verify(b"\x01a\x02bc", 2).unwrap();
        for (open, message) in [
            (&b"\x01a\x02b"[..], "the texts of rows 0 to 1 are truncated"),
            (
                b"\x01a\x02bcd",
                "the texts of rows 0 to 1 end before their frame does",
            ),
            (b"\x01a\x02\xe6\x96", "the text of row 1 is not valid"),
        ] {
            let error = verify(open, 2).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
