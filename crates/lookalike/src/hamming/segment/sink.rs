//! Receivers of the parts of a segment while it is built: columns in memory, or a file.
//!
//! A file has its sections one after another, and the length of most is known only when they are
//! complete. The lines of a table, which are half of a file or more, are written as they come. All other
//! columns are put aside in a [`ColumnBuffer`] until the sections before them are complete.

use std::io::{self, Write};

use bytemuck::Pod;
use rayon::prelude::*;

use super::TableColumns;
use super::build::{FirstPart, TablePart};
use super::columns::{ColumnMut, SegmentColumn};
use super::file::SectionWriter;
use crate::arch::{CacheLine, LINE};
use crate::error::{Error, Result};
use crate::hamming::key::BlockKey;
use crate::hamming::plan::BucketLayout;

/// Receives the parts of all tables, in their order.
pub(super) trait SegmentSink {
    fn begin_table(&mut self, sizes: &TableSizes) -> Result<()>;

    /// Receives the next parts of the open table.
    fn put_tables(&mut self, parts: &[&TablePart]) -> Result<()>;

    /// Receives the columns of the first table alone: the bits of each fingerprint that no table stores, its row, and the
    /// lists of rows of equal ones.
    fn put_fingerprints(&mut self, parts: &[FirstPart]) -> Result<()>;

    fn end_table(&mut self) -> Result<()>;
}

/// Sizes of a table that are known before it is built.
#[derive(Clone, Copy)]
pub(super) struct TableSizes {
    layout: BucketLayout,
    /// Largest number of lines.
    lines: usize,
    /// Entries of the directory, or 0.
    directory: usize,
}

impl TableSizes {
    pub(super) fn new(layout: BucketLayout, key: &BlockKey, rows: usize, is_first: bool) -> Self {
        let has_directory = is_first || layout == BucketLayout::Packed;
        Self {
            layout,
            lines: match layout {
                BucketLayout::Lines => key.bucket_count(),
                BucketLayout::Packed => rows.div_ceil(LINE),
            },
            directory: if has_directory {
                key.bucket_count() + 1
            } else {
                0
            },
        }
    }
}

/// Columns of a segment in memory.
pub(super) struct MemorySink {
    tables: Vec<TableColumns>,
    open: Option<SegmentTable>,
    rests: GrowingColumn<u8>,
    ids: GrowingColumn<u32>,
    lists: Vec<u32>,
}

/// The table that is being built.
struct SegmentTable {
    sizes: TableSizes,
    lines: GrowingColumn<u32>,
    directory: GrowingColumn<u32>,
    overflow: Vec<CacheLine>,
}

/// The complete columns of a segment.
pub(super) struct SegmentColumns {
    pub(super) tables: Vec<TableColumns>,
    pub(super) rests: SegmentColumn<u8>,
    pub(super) ids: SegmentColumn<u32>,
    pub(super) lists: SegmentColumn<u32>,
}

/// A column that is filled from the front.
struct GrowingColumn<T> {
    values: ColumnMut<T>,
    length: usize,
}

impl<T: Pod + Send + Sync> GrowingColumn<T> {
    fn allocate(most: usize) -> Result<Self> {
        Ok(Self {
            values: ColumnMut::allocate_zeroed(most)?,
            length: 0,
        })
    }

    /// Appends parts, which the threads share.
    fn append_parts(&mut self, parts: &[&[T]]) {
        let mut left = &mut self.values[self.length..];
        let mut places = Vec::with_capacity(parts.len());
        for part in parts {
            let (own, behind) = left.split_at_mut(part.len());
            places.push(own);
            left = behind;
            self.length += part.len();
        }
        let places = places.into_par_iter().zip(parts);
        places.for_each(|(place, part)| place.copy_from_slice(part));
    }
}

/// Returns values as a column.
fn column_from<T: Pod>(values: &[T]) -> Result<SegmentColumn<T>> {
    let mut column = ColumnMut::allocate_zeroed(values.len())?;
    column.copy_from_slice(values);
    column.into_read_only(values.len())
}

impl MemorySink {
    pub(super) fn new(rows: usize, rest_bytes: usize) -> Result<Self> {
        Ok(Self {
            tables: Vec::new(),
            open: None,
            rests: GrowingColumn::allocate(rows * rest_bytes)?,
            ids: GrowingColumn::allocate(rows)?,
            lists: Vec::new(),
        })
    }

    pub(super) fn finish_columns(self) -> Result<SegmentColumns> {
        Ok(SegmentColumns {
            tables: self.tables,
            rests: self.rests.values.into_read_only(self.rests.length)?,
            ids: self.ids.values.into_read_only(self.ids.length)?,
            lists: column_from(&self.lists)?,
        })
    }
}

impl SegmentSink for MemorySink {
    fn begin_table(&mut self, sizes: &TableSizes) -> Result<()> {
        let mut directory = GrowingColumn::allocate(sizes.directory)?;
        if sizes.directory > 0 {
            directory.append_parts(&[&[0]]);
        }
        self.open = Some(SegmentTable {
            sizes: *sizes,
            lines: GrowingColumn::allocate(sizes.lines * LINE)?,
            directory,
            overflow: Vec::new(),
        });
        Ok(())
    }

    fn put_tables(&mut self, parts: &[&TablePart]) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let lines: Vec<_> = parts
            .iter()
            .map(|part| part.line_words(open.sizes.layout))
            .collect();
        open.lines.append_parts(&lines);
        if open.sizes.directory > 0 {
            let ends: Vec<_> = parts.iter().map(|part| &part.ends[..]).collect();
            open.directory.append_parts(&ends);
        }
        for part in parts {
            open.overflow.extend_from_slice(&part.overflow);
        }
        Ok(())
    }

    fn put_fingerprints(&mut self, parts: &[FirstPart]) -> Result<()> {
        let rests: Vec<_> = parts.iter().map(|part| &part.rests[..]).collect();
        self.rests.append_parts(&rests);
        let ids: Vec<_> = parts.iter().map(|part| &part.ids[..]).collect();
        self.ids.append_parts(&ids);
        for part in parts {
            self.lists.extend_from_slice(&part.lists);
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.tables.push(TableColumns {
            lines: open
                .lines
                .values
                .into_lines(open.lines.length.div_ceil(LINE))?,
            directory: open
                .directory
                .values
                .into_read_only(open.directory.length)?,
            overflow: column_from(&open.overflow)?,
        });
        Ok(())
    }
}

/// Bytes that are put aside until they can be written.
pub trait ColumnBuffer {
    /// Appends bytes.
    ///
    /// # Errors
    /// Returns the error of the place where the bytes are kept.
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes all bytes, and empties the buffer.
    ///
    /// # Errors
    /// Returns the error of the place where the bytes are kept, or of the output.
    fn move_bytes(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

impl ColumnBuffer for Vec<u8> {
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn move_bytes(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&std::mem::take(self))
    }
}

/// Sections of a file that is written while the segment is built.
pub(super) struct FileSink<'a, B> {
    sections: SectionWriter<'a>,
    sizes: TableSizes,
    directory: B,
    overflow: B,
    rests: B,
    ids: B,
    lists: B,
}

impl<'a, B: ColumnBuffer> FileSink<'a, B> {
    pub(super) fn new(out: &'a mut dyn Write, new_buffer: impl Fn() -> B) -> Self {
        Self {
            sections: SectionWriter::new(out),
            sizes: TableSizes {
                layout: BucketLayout::Packed,
                lines: 0,
                directory: 0,
            },
            directory: new_buffer(),
            overflow: new_buffer(),
            rests: new_buffer(),
            ids: new_buffer(),
            lists: new_buffer(),
        }
    }

    /// Writes the sections behind the tables. Returns the lengths and checksums of all sections.
    pub(super) fn finish_sections(mut self) -> Result<Vec<(u64, u32)>> {
        for column in [&mut self.rests, &mut self.ids, &mut self.lists] {
            move_section(column, &mut self.sections)?;
        }
        Ok(self.sections.finish_sections())
    }
}

/// Writes a section that was put aside.
fn move_section(column: &mut impl ColumnBuffer, sections: &mut SectionWriter<'_>) -> Result<()> {
    let moved = sections
        .begin_section()
        .and_then(|()| column.move_bytes(sections));
    moved.map_err(write_failed)?;
    sections.end_section();
    Ok(())
}

fn write_failed(cause: io::Error) -> Error {
    Error::file_error("cannot write the index", cause)
}

/// Puts values aside.
fn put_aside<T: Pod>(column: &mut impl ColumnBuffer, values: &[T]) -> Result<()> {
    column
        .append_bytes(bytemuck::cast_slice(values))
        .map_err(write_failed)
}

impl<B: ColumnBuffer> SegmentSink for FileSink<'_, B> {
    fn begin_table(&mut self, sizes: &TableSizes) -> Result<()> {
        self.sizes = *sizes;
        if sizes.directory > 0 {
            put_aside(&mut self.directory, &[0u32])?;
        }
        self.sections.begin_section().map_err(write_failed)
    }

    fn put_tables(&mut self, parts: &[&TablePart]) -> Result<()> {
        for part in parts {
            let words = part.line_words(self.sizes.layout);
            self.sections
                .write_all(bytemuck::cast_slice(words))
                .map_err(write_failed)?;
            if self.sizes.directory > 0 {
                put_aside(&mut self.directory, &part.ends)?;
            }
            put_aside(&mut self.overflow, &part.overflow)?;
        }
        Ok(())
    }

    fn put_fingerprints(&mut self, parts: &[FirstPart]) -> Result<()> {
        for part in parts {
            put_aside(&mut self.rests, &part.rests)?;
            put_aside(&mut self.ids, &part.ids)?;
            put_aside(&mut self.lists, &part.lists)?;
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        // The last line of a packed table may be incomplete.
        let line = size_of::<CacheLine>();
        let behind = self.sections.open_length() as usize % line;
        let padding = &[0; size_of::<CacheLine>()][..(line - behind) % line];
        self.sections.write_all(padding).map_err(write_failed)?;
        self.sections.end_section();
        move_section(&mut self.directory, &mut self.sections)?;
        move_section(&mut self.overflow, &mut self.sections)
    }
}
