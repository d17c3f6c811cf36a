//! Rows of a block of files that hold one document each.

use lookalike_documents::decoding::{bom_length, utf16_by_mark};
use lookalike_documents::{DocumentKind, ExtractOptions, ExtractedText, extract_text};

use super::block::{DocumentFiles, ParseScratch};
use super::file::{InputFile, InputStorage, READ_AHEAD};
use super::inputs::{InputSet, is_wanted};
use super::line_reader::ReadBuffer;
use super::row_values::{ParsedRow, RowPosition};
use super::{IdField, RowPlace, RowResult};
use crate::error::{Error, ErrorKind, Result};

impl InputSet {
    /// Reads the files of a block of documents. A document file that cannot be read gets its reason, and
    /// so does any file beyond the limit; else a file that cannot be read is an error.
    pub(super) fn load_documents(&self, documents: &mut DocumentFiles) -> Result<()> {
        documents.buffer = self.take_buffer();
        documents.buffer.clear();
        let files = &self.files[documents.file..documents.file + documents.ends.len()];
        for (index, file) in files.iter().enumerate() {
            let next = files[index + 1..].iter();
            next.take(READ_AHEAD).for_each(InputFile::read_ahead);
            let start = documents.buffer.filled_bytes().len();
            let loaded = match file.document_kind() {
                Some(Err(reason)) => Err(reason.clone()),
                kind => match self.load_document(file, &mut documents.buffer) {
                    Err(error) if kind.is_none() && error.kind() != ErrorKind::Limit => {
                        return Err(error);
                    }
                    loaded => loaded.map_err(|error| error.to_string()),
                },
            };
            documents.failures[index] = loaded.err();
            if documents.failures[index].is_some() {
                documents.buffer.truncate(start);
            }
            let end = documents.buffer.filled_bytes().len();
            if let (InputStorage::Stream, Some(spool)) = (file.storage(), &self.records)
                && !file.is_extracted()
            {
                file.set_spooled_at(
                    spool.append_bytes(&documents.buffer.filled_bytes()[start..end])?,
                );
            }
            file.check_unchanged()?;
            documents.ends[index] = end;
        }
        Ok(())
    }

    /// Appends a whole file.
    fn load_document(&self, file: &InputFile, buffer: &mut ReadBuffer) -> Result<()> {
        let most = self.options.max_row_bytes as usize;
        let too_long =
            || Error::limit_error(format!("the file is longer than the limit of {most} bytes"));
        let size = file.size_on_disk().unwrap_or(0);
        if size > most as u64 {
            return Err(too_long());
        }
        let start = buffer.filled_bytes().len();
        let mut stream = file.open_stream()?;
        if let Some(encoding) = stream.converted_encoding() {
            self.count_guessed(encoding, file.display_name());
        }
        let mut goal = size as usize + 1;
        while !buffer.read_until_goal(start + goal, &mut stream, None)? {
            if goal > most {
                return Err(too_long());
            }
            goal = (goal * 2).min(most + 1);
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
            // A file beyond the limit has its reason among the failures, and no bytes here.
            let length = self.row_length(file, start..end).unwrap_or(0);
            let place = RowPlace::new(self.bases[documents.file + index], length);
            let number = documents.number + index as u64;
            let position = RowPosition {
                file: file.display_name(),
                line: 1,
                number,
                place,
            };
            let bytes = &documents.buffer.filled_bytes()[start..end];
            start = end;
            if !is_wanted(wanted, number) {
                continue;
            }
            match (&documents.failures[index], file.document_kind()) {
                (Some(reason), _) => {
                    visit(Err(position.without_bytes().bad_row_for(reason.clone())))?
                }
                (None, Some(Ok(kind))) => {
                    self.visit_new_document(file, *kind, bytes, position, scratch, visit)?;
                }
                _ => self.visit_document(file, bytes, position, scratch, &mut *visit)?,
            }
        }
        Ok(())
    }

    /// Extracts the text of a document file, and keeps it if it is to be read again from there.
    fn visit_new_document(
        &self,
        file: &InputFile,
        kind: DocumentKind,
        bytes: &[u8],
        mut position: RowPosition<'_>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let options = self.extract_options();
        let extracted = match extract_text(kind, bytes, &options) {
            Ok(extracted) => extracted,
            Err(reason) => return visit(Err(position.without_bytes().bad_row_for(reason))),
        };
        let is_told = options.guesses_encoding || utf16_by_mark(bytes).is_some();
        if is_told && !file.is_extracted() {
            let encoding = options.encoding_of(bytes);
            if encoding != options.encoding {
                self.count_guessed(encoding, file.display_name());
            }
        }
        let text = &extracted.text;
        if let (true, Some(spool)) = (file.is_extracted(), &self.records) {
            let length = match self.row_length(file, 0..text.len()) {
                Ok(length) => length,
                Err(reason) => return visit(Err(position.without_bytes().bad_row_for(reason))),
            };
            position.place = RowPlace::new(position.place.start_offset(), length);
            file.set_spooled_at(spool.append_bytes(text.as_bytes())?);
        }
        self.visit_text(file, text, position, scratch, visit)
    }

    fn extract_options(&self) -> ExtractOptions {
        ExtractOptions {
            encoding: self.options.encoding,
            guesses_encoding: self.options.guesses_encoding,
            invalid_text: self.options.invalid_text,
            max_bytes: self.options.max_row_bytes,
            pdf: self
                .options
                .document_files
                .as_ref()
                .and_then(|document_files| document_files.pdf.clone()),
        }
    }

    /// Reads a document again: with the places of its characters if it is a document file, and otherwise as the
    /// plain text of its row.
    ///
    /// # Errors
    ///
    /// As [`reread_row`](Self::reread_row).
    pub fn reread_document(
        &self,
        place: RowPlace,
        scratch: &mut ParseScratch,
    ) -> Result<ExtractedText> {
        let file = self.input_of(place);
        let Some(Ok(kind)) = file.document_kind() else {
            let text = |row: &super::InputRow<'_>| row.text.to_owned();
            let text = self.reread_row(place, scratch, text)?;
            return Ok(ExtractedText::from_plain_text(text));
        };
        let mut bytes = Vec::new();
        self.read_place(place, &mut bytes)?;
        self.extract_again(file, *kind, bytes)
    }

    /// Extracts the text of a document file from the bytes that were kept of it.
    fn extract_again(
        &self,
        file: &InputFile,
        kind: DocumentKind,
        bytes: Vec<u8>,
    ) -> Result<ExtractedText> {
        let extracted = if file.is_extracted() {
            String::from_utf8(bytes)
                .map(ExtractedText::without_positions)
                .map_err(|_| "its copy is damaged".to_owned())
        } else {
            extract_text(kind, &bytes, &self.extract_options())
        };
        extracted.map_err(|reason| {
            Error::input_error(format!(
                "{} was changed while it was being read: {reason}",
                file.display_name()
            ))
        })
    }

    pub(super) fn visit_document<R>(
        &self,
        file: &InputFile,
        bytes: &[u8],
        position: RowPosition<'_>,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        if let Some(Ok(kind)) = file.document_kind() {
            return match self.extract_again(file, *kind, bytes.to_vec()) {
                Ok(extracted) => self.visit_text(file, &extracted.text, position, scratch, visit),
                Err(error) => visit(Err(position.bad_row_for(error.to_string()))),
            };
        }
        let bytes = &bytes[bom_length(bytes, self.options.encoding)..];
        let mut room = std::mem::take(&mut scratch.decoded);
        let visited = match self.decoding.decode_row(bytes, &mut room) {
            Ok(text) => self.visit_text(file, text, position, scratch, visit),
            Err(reason) => visit(Err(position.bad_row_for(reason))),
        };
        scratch.decoded = room;
        visited
    }

    /// Visits the row of a file that is one document. Its name is its id unless ids are row numbers.
    fn visit_text<R>(
        &self,
        file: &InputFile,
        text: &str,
        position: RowPosition<'_>,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        let id = (self.options.fields.id == IdField::Default).then(|| file.display_name());
        let row = ParsedRow::from_plain_text(id, text, &scratch.values);
        row.visit_row(&self.document_layout().plan, position, visit)
    }
}
