//! Reading a row again from its place.

use super::block::ParseScratch;
use super::file::{InputFile, InputStorage};
use super::inputs::InputSet;
use super::line_reader::trim_line_end;
use super::row_values::RowPosition;
use super::{InputFormat, InputRow, RowPlace, RowResult, frame};
use crate::error::{Error, Result};

impl InputSet {
    /// Reads one row again and parses it.
    ///
    /// # Errors
    ///
    /// If the row cannot be read again, or if it has become a bad row because its file has changed.
    pub fn reread_row<R>(
        &self,
        place: RowPlace,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(&InputRow<'_>) -> R,
    ) -> Result<R> {
        let file = self.input_of(place);
        if let Some(table) = &self.table {
            let row = place.start_offset();
            let columns = table.read_columns(
                row..row + 1,
                &self.row_layout().plan,
                self.options.invalid_text,
            )?;
            return self.visit_table_row(&columns, 0, row, scratch, |row| match row {
                Ok(row) => Ok(visit(&row)),
                Err(bad) => Err(Error::input_error(format!("{}: {}", bad.file, bad.reason))),
            })?;
        }
        let mut bytes = std::mem::take(&mut scratch.bytes);
        let read = self.read_place(place, &mut bytes);
        let result = read.and_then(|()| self.reparse_row(file, place, &bytes, scratch, visit));
        scratch.bytes = bytes;
        result
    }

    pub(super) fn reparse_row<R>(
        &self,
        file: &InputFile,
        place: RowPlace,
        bytes: &[u8],
        scratch: &mut ParseScratch,
        visit: impl FnOnce(&InputRow<'_>) -> R,
    ) -> Result<R> {
        let changed = |reason: &str| {
            Error::input_error(format!(
                "{} was changed while it was being read: {reason}",
                file.display_name()
            ))
        };
        let position = RowPosition {
            file: file.display_name(),
            line: 0,
            number: 0,
            place,
        };
        let visit = |row: RowResult<'_>| match row {
            Ok(row) => Ok(visit(&row)),
            Err(bad) => Err(changed(&bad.reason)),
        };
        if file.input_format().is_columnar() {
            let row = frame::decode_frame(bytes, &mut scratch.entries, place, 0);
            return visit(
                row.ok_or_else(|| position.bad_row_for("its copy is damaged".to_owned())),
            );
        }
        if file.input_format() == InputFormat::TextFile {
            return self.visit_document(file, bytes, position, scratch, visit);
        }
        let layout = self.row_layout();
        let parsed = self
            .decoding
            .decode_row(trim_line_end(bytes), &mut scratch.decoded)
            .and_then(|row| {
                self.parse_row(file, layout, row, &mut scratch.values, &mut scratch.cells)
            });
        match parsed {
            Ok(row) => row.visit_row(&layout.plan, position, visit),
            Err(reason) => Err(changed(&reason)),
        }
    }

    /// Reads the bytes of one row again into `bytes`, with the line end if there is one. For Parquet, Arrow
    /// and tables in memory the bytes are the id and the text as one line of JSON.
    ///
    /// # Errors
    ///
    /// If the row cannot be read again.
    pub fn read_raw_row(&self, place: RowPlace, bytes: &mut Vec<u8>) -> Result<()> {
        if self.table.is_some() {
            return self.reread_row(place, &mut ParseScratch::default(), |row| {
                *bytes = as_json_line(row);
            });
        }
        self.read_place(place, bytes)?;
        let file = self.input_of(place);
        if !file.input_format().is_columnar() {
            return Ok(());
        }
        let mut entries = Vec::new();
        let row = frame::decode_frame(bytes, &mut entries, place, 0);
        let row = row.ok_or_else(|| Error::input_error("the copy of a row is damaged"))?;
        *bytes = as_json_line(&row);
        Ok(())
    }

    pub(super) fn read_place(&self, place: RowPlace, bytes: &mut Vec<u8>) -> Result<()> {
        let index = self.input_index(place);
        bytes.resize(place.byte_length() as usize, 0);
        self.read_data(index, place.start_offset() - self.bases[index], bytes)
    }

    /// Fills `bytes` from the data of an input, from offset `start`.
    pub(crate) fn read_data(&self, file: usize, start: u64, bytes: &mut [u8]) -> Result<()> {
        let file = &self.files[file];
        let records =
            file.storage() == InputStorage::Records || file.input_format() == InputFormat::TextFile;
        let spool = if records {
            &self.records
        } else {
            &self.streams
        };
        file.read_data_at(bytes, start, spool.as_ref())
    }
}

/// Returns the id and the text of a row as one line of JSON.
fn as_json_line(row: &InputRow<'_>) -> Vec<u8> {
    let json = serde_json::json!({ "id": row.id, "text": row.text });
    format!("{json}\n").into_bytes()
}
