//! The first reading: all threads convert rows to sketches; the results are in input order.

use std::time::Instant;

use lookalike::byte_reader::ByteReader;
use lookalike::quality::audit::SampleComparer;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{DocumentSketcher, DocumentSketches};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet, ParseScratch, RowPlace};

use super::audit::RunAudit;
use super::documents::block_codec::{put_count, read_count};
use super::documents::{ExtraFields, ReadDocuments};
use super::forecast::RowSampling;
use super::ordered_pipeline::first_blocks_in_order;
use super::progress::ProgressListener;
use super::rejected::{RowTally, tell_bad_rows};
use super::settings::RunSettings;
use super::work_directory::{ReadingSteps, StoredBlock};

/// Everything needed to convert a row to a sketch.
pub(super) struct CorpusReader<'a> {
    pub(super) settings: &'a RunSettings,
    pub(super) analyzer: TextAnalyzer,
    pub(super) sketcher: DocumentSketcher,
    pub(super) extra: ExtraFields,
    /// Receives all bad rows in order.
    pub(super) reject: &'a RejectRows<'a>,
    /// The audit of the run, with the size on disk of all inputs in bytes, if it is known.
    pub(super) audit: Option<(&'a RunAudit, Option<u64>)>,
    /// The selection of rows if not all are read. Bad rows are then only counted.
    pub(super) sampling: Option<&'a RowSampling>,
    /// The steps of these inputs, if the run can be interrupted.
    pub(super) steps: Option<ReadingSteps<'a>>,
}

/// The documents of a block.
struct BlockPart {
    documents: ReadDocuments,
    /// The bytes to store, if the run can be interrupted and the block is not stored yet.
    encoded: Option<Vec<u8>>,
    bytes_on_disk: u64,
}

/// Receives the bad rows of a block.
pub(super) type RejectRows<'a> = dyn Fn(&InputSet, &[BadRow]) -> Result<()> + Sync + 'a;

/// The buffers of one thread.
#[derive(Default)]
struct ReadWorker {
    parse: ParseScratch,
    scratch: AnalysisScratch,
    /// The counter of the audit, if there is one.
    counter: Option<SampleComparer>,
}

/// Number of features of short documents kept from the first reading; they take 96 MiB.
const FEATURES_HELD: usize = 12 << 20;

/// Number of documents after which memory is reserved for all.
const FIRST_DOCUMENTS: usize = 4096;

/// Analyses a row by its features if they are given, otherwise by its text.
pub(crate) fn analyze_row<'s>(
    analyzer: &TextAnalyzer,
    row: &InputRow<'_>,
    scratch: &'s mut AnalysisScratch,
) -> TextAnalysis<'s> {
    match &row.features {
        Some(features) => analyzer.analyze_features(features.iter_weighted(), scratch),
        None => analyzer.analyze_text(row.text, scratch),
    }
}

impl CorpusReader<'_> {
    /// Creates an empty store of sketches.
    pub(super) fn new_sketches(&self) -> DocumentSketches {
        self.sketcher.new_sketches(FEATURES_HELD)
    }

    /// Reads all inputs and appends their documents to `documents`.
    pub(super) fn read_inputs(
        &self,
        inputs: &InputSet,
        documents: ReadDocuments,
        progress: &dyn ProgressListener,
    ) -> Result<ReadDocuments> {
        let (mut documents, mut tally) = (documents, RowTally::default());
        let mut expected = match self.sampling {
            None => inputs.expected_rows()?,
            Some(_) => None,
        };
        first_blocks_in_order(
            inputs,
            progress,
            || self.new_worker(),
            || self.sampling.is_some_and(RowSampling::is_enough),
            |block, worker, _| self.read_block(inputs, block, worker),
            |part| {
                self.join_part(inputs, part, (&mut documents, &mut tally), progress)?;
                // The first documents show how long their lists are.
                if documents.len() >= FIRST_DOCUMENTS
                    && let Some(rows) = expected.take()
                {
                    documents.reserve_documents((1.02 * rows) as usize);
                }
                Ok(())
            },
        )?;
        if let Some(steps) = &self.steps {
            steps.finish_steps()?;
        }
        if self.sampling.is_none() {
            tally.refuse_useless(inputs)?;
        }
        Ok(documents)
    }

    fn new_worker(&self) -> ReadWorker {
        ReadWorker {
            counter: self.audit.map(|(audit, _)| audit.new_comparer()),
            ..ReadWorker::default()
        }
    }

    fn read_block(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<BlockPart> {
        let bytes_on_disk = block.bytes_on_disk();
        if let Some(steps) = &self.steps
            && let Some(stored) = steps.take_block(block.ordinal())?
        {
            return Ok(BlockPart {
                documents: self.restore_block((inputs, block), steps, &stored, worker)?,
                encoded: None,
                bytes_on_disk,
            });
        }
        let documents = self.sketch_block(inputs, block, worker)?;
        let steps = self.steps.as_ref();
        let encoded = steps.map(|steps| self.encode_block((inputs, block), &documents, steps));
        Ok(BlockPart {
            documents,
            encoded,
            bytes_on_disk,
        })
    }

    fn encode_block(
        &self,
        (inputs, block): (&InputSet, &InputBlock),
        documents: &ReadDocuments,
        steps: &ReadingSteps<'_>,
    ) -> Vec<u8> {
        let mut bytes = block.bytes_on_disk().to_le_bytes().to_vec();
        let seen = inputs.seen_fields();
        put_count(seen.len(), &mut bytes);
        bytes.extend(seen.into_iter().map(u8::from));
        documents.encode_block(&self.sketcher, steps.keeps_lists(), &mut bytes);
        bytes
    }

    /// Returns the documents of a block that is stored, without sketching them again.
    fn restore_block(
        &self,
        (inputs, block): (&InputSet, &InputBlock),
        steps: &ReadingSteps<'_>,
        stored: &StoredBlock,
        worker: &mut ReadWorker,
    ) -> Result<ReadDocuments> {
        let refuse = |what: &str| steps.refuse_block(stored, what);
        let (size, seen, mut documents) = self
            .decode_block(stored.as_bytes())
            .ok_or_else(|| refuse("its documents cannot be read"))?;
        if size != block.bytes_on_disk() {
            return Err(refuse("it was made from another input"));
        }
        let rows = block.row_numbers();
        inputs.observe_seen(rows.end - rows.start, &seen);
        if !block.has_fixed_places() {
            let mut places = Vec::new();
            inputs.parse_block(block, &mut worker.parse, &mut |row| {
                places.push(match row {
                    Ok(row) => (row.number, row.place),
                    Err(bad) => (bad.number, bad.place),
                });
                Ok(())
            })?;
            if !documents.replace_places(&places) {
                return Err(refuse("it was made from other rows"));
            }
        }
        Ok(documents)
    }

    /// Returns the size on disk, the fields that rows have had, and the documents of a stored block.
    fn decode_block(&self, bytes: &[u8]) -> Option<(u64, Vec<bool>, ReadDocuments)> {
        let mut reader = ByteReader::new(bytes);
        let size = reader.read_u64()?;
        let fields = read_count(&mut reader)?;
        let seen = reader.read_bytes(fields)?.iter().map(|&seen| seen != 0);
        let seen = seen.collect();
        let documents = ReadDocuments::decode_block(&mut reader, &self.sketcher, FEATURES_HELD)?;
        reader.is_at_end().then_some((size, seen, documents))
    }

    fn sketch_block(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<ReadDocuments> {
        if let Some(sampling) = self.sampling {
            sampling.begin_block(block);
        }
        if let Some((audit, bytes)) = self.audit {
            let buffers = (&mut worker.parse, &mut worker.scratch);
            audit.audit_drawing().draw_from_block(
                (inputs, bytes),
                block,
                &self.analyzer,
                buffers,
            )?;
        }
        self.read_part(inputs, block, worker)
    }

    fn join_part(
        &self,
        inputs: &InputSet,
        part: BlockPart,
        (documents, tally): (&mut ReadDocuments, &mut RowTally),
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        let BlockPart {
            documents: mut part,
            encoded,
            bytes_on_disk,
        } = part;
        if part.len() > 0 {
            progress.rows_usable();
        }
        tally.add_rows(part.len() as u64, &part.bad);
        tell_bad_rows(&part.bad, progress, self.settings.strict, |rows| {
            (self.reject)(inputs, rows)
        })?;
        let added = part.len() as u64;
        documents.append_documents(&mut part);
        if let Some(steps) = &self.steps {
            steps.note_room(documents.sketches.has_feature_room());
            if let Some(encoded) = encoded {
                steps.push_block(&encoded, added, bytes_on_disk)?;
            }
        }
        let limit = lookalike::DocId::LIMIT;
        if documents.len() >= limit {
            return Err(Error::limit_error(format!(
                "a run holds at most {limit} documents"
            )));
        }
        Ok(())
    }

    fn read_part(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<ReadDocuments> {
        let ReadWorker {
            parse,
            scratch,
            counter,
        } = worker;
        let base = self
            .audit
            .map_or(0, |(audit, _)| audit.audit_drawing().row_number_base());
        let mut part = ReadDocuments::with_sketches(self.new_sketches());
        inputs.parse_block(block, parse, &mut |row| {
            if let Some(sampling) = self.sampling {
                let Ok(row) = row else {
                    sampling.count_bad_row();
                    return Ok(());
                };
                if sampling.takes_row(row.number) {
                    let begun = Instant::now();
                    match part.push_row(&row, &self.extra) {
                        Ok(()) => self.sketcher.add_document(
                            &analyze_row(&self.analyzer, &row, scratch),
                            &mut part.sketches,
                        ),
                        Err(_) => sampling.count_bad_row(),
                    }
                    sampling.add_sketching(begun.elapsed());
                }
                return Ok(());
            }
            let bad = match row {
                Ok(row) => {
                    part.bytes += u64::from(row.place.byte_length());
                    match part.push_row(&row, &self.extra) {
                        Ok(()) => {
                            let analysis = analyze_row(&self.analyzer, &row, scratch);
                            let (Some((audit, _)), Some(counter)) = (self.audit, &mut *counter)
                            else {
                                self.sketcher.add_document(&analysis, &mut part.sketches);
                                return Ok(());
                            };
                            counter.begin_document(&analysis);
                            let sketches = &mut part.sketches;
                            let see = &mut |features: &[u64]| counter.take_features(features);
                            self.sketcher.add_showing_features(&analysis, sketches, see);
                            audit.compare_with_drawn(base + row.number, &analysis, counter);
                            return Ok(());
                        }
                        Err(reason) => make_bad_row(inputs, &row, reason),
                    }
                }
                Err(bad) => {
                    part.bytes += u64::from(bad.place.byte_length());
                    bad
                }
            };
            part.bad.push(bad);
            Ok(())
        })?;
        Ok(part)
    }
}

/// Creates the report of a valid row that this run cannot use.
pub(crate) fn make_bad_row(inputs: &InputSet, row: &InputRow<'_>, reason: String) -> BadRow {
    BadRow {
        file: inputs.input_of(row.place).display_name().to_owned(),
        line: row.line,
        number: row.number,
        reason,
        place: row.place,
    }
}

/// Returns the name of the input and the line of a row, given its place and its number.
pub(super) fn row_position(inputs: &InputSet, place: RowPlace, number: u64) -> (&str, u64) {
    let file = inputs.input_of(place);
    let header = u64::from(file.header_row().is_some());
    let line = number - file.first_number().unwrap_or(1) + 1 + header;
    (file.display_name(), line)
}
