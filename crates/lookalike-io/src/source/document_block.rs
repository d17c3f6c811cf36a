//! Rows of a block of files that hold one document each.

use super::block::{DocumentFiles, ParseScratch};
use super::decode::bom_length;
use super::file::{InputFile, InputStorage};
use super::inputs::{InputSet, is_wanted};
use super::row_values::RowPosition;
use super::{RowPlace, RowResult};
use crate::error::{Error, Result};

impl InputSet {
    /// Reads the files of a block of documents.
    pub(super) fn load_documents(&self, documents: &mut DocumentFiles) -> Result<()> {
        documents.buffer = self.take_buffer();
        documents.buffer.clear();
        let most = self.options.max_row_bytes as usize;
        for index in 0..documents.ends.len() {
            let file = &self.files[documents.file + index];
            let start = documents.buffer.filled_bytes().len();
            let mut stream = file.open_stream()?;
            let mut goal = usize::try_from(file.size_on_disk().unwrap_or(0))
                .unwrap_or(most)
                .min(most)
                + 1;
            while !documents
                .buffer
                .read_until_goal(start + goal, &mut stream, None)?
            {
                if goal > most {
                    let name = file.display_name();
                    return Err(Error::limit_error(format!(
                        "{name} is longer than {most} bytes"
                    )));
                }
                goal = (goal * 2).min(most + 1);
            }
            let end = documents.buffer.filled_bytes().len();
            if let (InputStorage::Stream, Some(spool)) = (file.storage(), &self.records) {
                file.set_spooled_at(
                    spool.append_bytes(&documents.buffer.filled_bytes()[start..end])?,
                );
            }
            file.check_unchanged()?;
            documents.ends[index] = end;
        }
        Ok(())
    }

    pub(super) fn parse_documents(
        &self,
        documents: &DocumentFiles,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for (index, &end) in documents.ends.iter().enumerate() {
            let file = &self.files[documents.file + index];
            let place = RowPlace::new(
                self.bases[documents.file + index],
                self.row_length(file, start, end)?,
            );
            let number = documents.number + index as u64;
            let position = RowPosition {
                file: file.display_name(),
                line: 1,
                number,
                place,
            };
            let bytes = &documents.buffer.filled_bytes()[start..end];
            start = end;
            if is_wanted(wanted, number) {
                self.visit_document(file, bytes, position, scratch, &mut *visit)?;
            }
        }
        Ok(())
    }

    pub(super) fn visit_document<R>(
        &self,
        file: &InputFile,
        bytes: &[u8],
        position: RowPosition<'_>,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        let layout = self.row_layout();
        let bytes = &bytes[bom_length(bytes, self.options.encoding)..];
        let parsed = self
            .decoding
            .decode_row(bytes, &mut scratch.decoded)
            .and_then(|text| {
                self.parse_row(file, layout, text, &mut scratch.values, &mut scratch.cells)
            });
        match parsed {
            Ok(row) => row.visit_row(&layout.plan, position, visit),
            Err(reason) => visit(Err(position.bad_row_for(reason))),
        }
    }
}
