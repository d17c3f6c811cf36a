//! The table of cuts.

use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter};

use super::description::DescribedCuts;
use super::searched_texts::SearchedTexts;

/// Writes the table of cuts.
pub(super) struct CutTable<'a> {
    texts: &'a SearchedTexts<'a>,
    table: TableWriter,
}

impl<'a> CutTable<'a> {
    /// Begins the table.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn create_table(
        output: &OutputTarget,
        texts: &'a SearchedTexts<'a>,
    ) -> Result<Self> {
        let columns = [
            TableColumn::Text("id"),
            TableColumn::Text("first"),
            TableColumn::Integer("start"),
            TableColumn::Integer("end"),
            TableColumn::Integer("first_start"),
            TableColumn::Integer("first_end"),
            TableColumn::Integer("length"),
            TableColumn::Text("source"),
            TableColumn::Integer("row"),
            TableColumn::Text("first_source"),
            TableColumn::Integer("first_row"),
            TableColumn::Text("text"),
        ];
        let documents = &texts.corpus_rows().opened.documents;
        let table = TableWriter::create_table(output, &columns, Some(documents))?;
        Ok(Self { texts, table })
    }

    /// Writes a row for each piece of a document.
    ///
    /// # Errors
    /// If the table cannot be written.
    pub(super) fn write_cuts(&mut self, described: &DescribedCuts) -> Result<()> {
        let id = self.texts.id_of(described.number)?;
        let (source, row) = self.texts.source_and_row(described.number);
        for piece in &described.pieces {
            let (first_source, first_row) = self.texts.source_and_row(piece.first);
            self.table.push_row(&[
                TableCell::Text(&id),
                TableCell::Text(&piece.first_id),
                TableCell::Integer(piece.place.start),
                TableCell::Integer(piece.place.end),
                TableCell::Integer(piece.first_place.start),
                TableCell::Integer(piece.first_place.end),
                TableCell::Integer(piece.length),
                TableCell::Text(source),
                TableCell::Integer(row),
                TableCell::Text(first_source),
                TableCell::Integer(first_row),
                TableCell::Text(&piece.text),
            ])?;
        }
        Ok(())
    }

    /// Completes the table, which is then still to be put in place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn prepare_table(self) -> Result<StagedOutput> {
        self.table.prepare_table()
    }
}
