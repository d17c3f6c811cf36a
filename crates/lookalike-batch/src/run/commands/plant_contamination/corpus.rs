//! The documents of a corpus: where their rows are, and which of them are drawn.

use lookalike::quality::plant::EditPlanter;
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, ParseScratch};
use rayon::prelude::*;

use crate::run::commands::plant::longest_run;
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::rejected_rows::OpenedRows;
use crate::run::reading::repeated_ids::{find_repeats, read_id};
use crate::run::reading::row_analysis::{id_text, make_bad_row};
use crate::run::settings::RunSettings;

/// A corpus after the first reading. Memory: 28 bytes and the id for each document.
pub(super) struct PlantedInto<'a> {
    opened: &'a OpenedRows<'a>,
    documents: ReadDocuments,
    /// Documents with a text, by rank: a random order that follows from the seed and the ids.
    pub(super) ranked: Vec<usize>,
    /// Length of the longest run of marks in an id.
    pub(super) longest_run: usize,
}

/// The documents of a block.
struct RankedBlock {
    documents: ReadDocuments,
    bad: Vec<BadRow>,
    /// Rank, and index in the block.
    ranked: Vec<(u64, usize)>,
    longest_run: usize,
}

impl<'a> PlantedInto<'a> {
    /// Reads all rows.
    ///
    /// # Errors
    /// If an input fails, if ids repeat, if no row has a text, and in a strict run if a row is bad.
    pub(super) fn read(
        opened: &'a OpenedRows<'a>,
        settings: &RunSettings,
        planter: &EditPlanter,
    ) -> Result<Self> {
        let inputs = &opened.inputs;
        let fields = ExtraFields::new(settings);
        let mut corpus = Self {
            opened,
            documents: ReadDocuments::default(),
            ranked: Vec::new(),
            longest_run: 0,
        };
        let mut ranked: Vec<(u64, usize)> = Vec::new();
        parse_blocks_in_order(
            inputs,
            opened.progress,
            |block, parse, number: &mut String, _| {
                let mut read = RankedBlock {
                    documents: ReadDocuments::default(),
                    bad: Vec::new(),
                    ranked: Vec::new(),
                    longest_run: 0,
                };
                inputs.parse_block(block, parse, &mut |row| {
                    let row = match row {
                        Ok(row) => row,
                        Err(bad) => {
                            read.documents.bytes += u64::from(bad.place.byte_length());
                            read.bad.push(bad);
                            return Ok(());
                        }
                    };
                    read.documents.bytes += u64::from(row.place.byte_length());
                    let index = read.documents.len();
                    if let Err(reason) = read.documents.push_row(&row, &fields) {
                        read.bad.push(make_bad_row(inputs, &row, reason));
                        return Ok(());
                    }
                    let id = id_text(&row, number);
                    read.longest_run = read.longest_run.max(longest_run(id));
                    if !row.text.trim().is_empty() {
                        read.ranked.push((planter.document_rank(id), index));
                    }
                    Ok(())
                })?;
                Ok(read)
            },
            |mut block| {
                opened.report_rows(&block.bad, block.documents.len() as u64)?;
                let first = corpus.documents.len();
                let numbered = block.ranked.iter();
                ranked.extend(numbered.map(|&(rank, index)| (rank, first + index)));
                corpus.longest_run = corpus.longest_run.max(block.longest_run);
                corpus.documents.append_documents(&mut block.documents)
            },
        )?;
        opened.refuse_useless()?;
        corpus.documents.check_fields(inputs, &fields, settings)?;
        // Labels address documents by their ids.
        if let Some(repeated) = find_repeats(inputs, &corpus.documents)? {
            return Err(repeated.repeats_error(settings));
        }
        if ranked.is_empty() {
            return Err(Error::input_error(
                "there is no document with a text to plant items in",
            ));
        }
        ranked.par_sort_unstable();
        corpus.ranked = ranked.into_iter().map(|(_, index)| index).collect();
        Ok(corpus)
    }

    /// Returns the number of documents.
    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Returns the bytes of all rows.
    pub(super) fn bytes(&self) -> u64 {
        self.documents.bytes
    }

    /// Returns the id of a document.
    pub(super) fn document_id(&self, document: usize) -> Result<String> {
        let id = read_id(&self.opened.inputs, &self.documents, document)?;
        Ok(id.into_owned())
    }

    /// Reads texts again.
    pub(super) fn read_texts(&self, documents: &[usize]) -> Result<Vec<String>> {
        let read = |parse: &mut ParseScratch, &document: &usize| {
            let place = self.documents.place_of(document);
            let inputs = &self.opened.inputs;
            inputs.reread_row(place, parse, |row| row.text.to_owned())
        };
        documents
            .par_iter()
            .map_init(ParseScratch::default, read)
            .collect()
    }
}
